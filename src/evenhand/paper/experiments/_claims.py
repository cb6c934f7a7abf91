"""Experiments and the paper's statements as records; how these are judged and written down."""

import hashlib
import json
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

Cell = dict[str, Any]
Rows = list[dict[str, Any]]

PRINTED, CORRECTED = "printed", "corrected"
ALL = "all"
"""In a column of a reading or a choice: rows that are the same whichever it is."""

HOLDS = "holds"
VACUOUS = "holds (vacuous)"
CORRECTED_ONLY = "corrected only"
PRINTED_ONLY = "printed only"
DEPENDS = "depends on"
UNDECIDED = "undecided"
OPEN = "cannot be decided here"
FAILS = "does not hold"
VERDICTS = (HOLDS, VACUOUS, CORRECTED_ONLY, PRINTED_ONLY, DEPENDS, UNDECIDED, OPEN, FAILS)
"""The verdicts; :data:`DEPENDS` is followed by the choices that decide."""


class Choice(NamedTuple):
    """Something that the paper leaves open or says in two ways; its first value is the centre."""

    phrase: str
    values: tuple[str, ...]
    readings: tuple[str, ...] = (PRINTED, CORRECTED)
    joint: tuple[str, ...] = ()
    """Values with which something else is another one, too: a verdict that they alone change does
    not depend on this choice."""


CHOICES: dict[str, Choice] = {
    "ridge": Choice("the ridge", ("1/N", "1"), (PRINTED,)),
    "start": Choice("the start", ("zero", "N(0, 0.1²)", "N(0, 1)", "optimum")),
    "discovery_start": Choice("the start", ("optimum", "zero")),
    "mu": Choice("μ", ("10", "1")),
    "alpha": Choice("α", ("0.1/√t", "1/√t")),
    "step": Choice("AGD's step", ("1/(α_t L₁L₂√t)", "1/(α L₁L₂√t)", "η"), (PRINTED,)),
    "rival": Choice("the rival", ("as shipped", "as here")),
    "counting": Choice("which rivals count", ("(all)", "(those about as fair)")),
    "encoding": Choice("the encoding", ("full", "Zafar's")),
    "size": Choice("the sample size", ("1,000", "20,000")),
    "objective": Choice(
        "the fairness objective",
        ("the model's", "Section 6.1's", "Section 6.1's (20,000 rows)"),
        joint=("Section 6.1's (20,000 rows)",),
    ),
    "noise": Choice("the noise's mean", ("½", "0")),
    "adversary": Choice("the adversary's view", ("[1, s, s²]", "[1, f]")),
}
"""The choices by the name of their column in a table."""


class Variant(NamedTuple):
    """A reading with all choices at the centre, but for one."""

    reading: str
    choice: str = ""
    value: str = ""

    @property
    def label(self) -> str:
        """What is chosen, in words; the centre has none."""
        return f"{CHOICES[self.choice].phrase.removeprefix('the ')} {self.value}"

    def rows(self, table: pd.DataFrame) -> pd.DataFrame:
        """Give its rows of a table: a choice that has no column there is left to the test.

        The test finds it in a column of that name.
        """
        wanted = {"reading": self.reading} | {name: c.values[0] for name, c in CHOICES.items()}
        if self.choice:
            wanted[self.choice] = self.value
        keep = pd.Series(True, table.index)
        for column, value in wanted.items():
            if column in table:
                keep &= table[column].fillna(ALL).isin([value, ALL])
        if not keep.any():
            raise RuntimeError(f"the table has no rows for {self}")
        return table[keep].assign(**{name: wanted[name] for name in CHOICES if name not in table})


class Finding(NamedTuple):
    """What was measured, and whether it meets the criterion; None: ``why`` is the verdict."""

    value: str
    holds: bool | None
    why: str = ""


@dataclass(frozen=True)
class Claim:
    """A statement of the paper, with the test that decides it.

    Parameters
    ----------
    statement : str
        What the paper says, in our words.
    place : str
        Where it says so.
    criterion : str
        What must be measured for it to hold.
    test : callable ``(rows) -> Finding``
        Decides it from the rows of a :class:`Variant` of the experiment's table.
    one_reading : bool, default=False
        Whether the statement does not depend on the reading.
    choices : tuple of str, default=()
        What is varied for it, besides the ridge of the printed reading.
    """

    statement: str
    place: str
    criterion: str
    test: Callable[[pd.DataFrame], Finding]
    one_reading: bool = False
    choices: tuple[str, ...] = ()

    def variants(self) -> Iterator[Variant]:
        """Give each reading's centre, and what it becomes with each choice varied by itself."""
        names = self.choices if self.one_reading else ("ridge", *self.choices)
        for reading in (CORRECTED,) if self.one_reading else (PRINTED, CORRECTED):
            yield Variant(reading)
            for name in names:
                if reading in CHOICES[name].readings:
                    yield from (Variant(reading, name, v) for v in CHOICES[name].values[1:])


@dataclass(frozen=True)
class Experiment:
    """One experiment of the paper.

    Parameters
    ----------
    name : str
        Its name on the command line and of its files.
    title : str
        What it shows, in a line.
    cells : callable ``(quick) -> list of dict``
        The grid: each cell is a small dictionary of numbers and strings, its seed among them.
    run : callable ``(**cell) -> list of dict``
        Rows of the table for one cell; a function of the cell alone.
    draw : callable ``(table) -> Figure``
        The picture.
    caption : str
        What a reader must know to judge the picture.
    claims : tuple of Claim
        The paper's statements that its table decides.
    needs : tuple of str, default=()
        Packages of the extra ``paper`` that it cannot do without, besides matplotlib.
    complete : callable ``(table) -> table``, optional
        Adds what all cells together tell.
    """

    name: str
    title: str
    cells: Callable[[bool], list[Cell]]
    run: Callable[..., Rows]
    draw: Callable[[pd.DataFrame], Any]
    caption: str
    claims: tuple[Claim, ...]
    needs: tuple[str, ...] = ()
    complete: Callable[[pd.DataFrame], pd.DataFrame] = lambda table: table


@cache
def claims_texts() -> dict[str, Any]:
    """Read the titles, captions and claims of all experiments."""
    return tomllib.loads((files(__package__) / "claims.toml").read_text(encoding="utf-8"))


def criteria_hash() -> str:
    """Fingerprint of all statements, criteria and choices, which a page of verdicts carries."""
    shown = ("introduction", "title", "caption")
    texts = claims_texts().items()
    kept = {name: {k: v for k, v in text.items() if k not in shown} for name, text in texts}
    text = json.dumps(kept, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def experiment(
    name: str,
    *,
    tests: Mapping[str, Callable[[pd.DataFrame], Finding]],
    section: str | None = None,
    words: Mapping[str, str] | None = None,
    **parts: Any,
) -> Experiment:
    """Make an experiment with the title, caption and claims that ``claims.toml`` has for it.

    Parameters
    ----------
    name : str
        Its name, and there the name of its section unless ``section`` is another.
    tests : mapping of str to callable
        The test of each claim, by the claim's name in that section.
    words : mapping, optional
        What stands there in braces.
    **parts
        ``cells``, ``run``, ``draw``, ``needs`` and ``complete`` of :class:`Experiment`.
    """
    text = claims_texts()[section or name]

    def write(sentence: str) -> str:
        return sentence.format_map(words) if words else sentence

    def claim(key: str) -> Claim:
        stated = text["claims"][key]
        stated = stated | {"choices": tuple(stated.get("choices", text.get("choices", ())))}
        return Claim(test=tests[key], **stated | {"statement": write(stated["statement"])})

    return Experiment(
        name=name,
        title=write(text["title"]),
        caption=write(text["caption"]),
        claims=tuple(map(claim, tests)),
        **parts,
    )


_MARKS = {True: "✓", False: "✗", None: "?"}


@dataclass(frozen=True)
class Verdict:
    """A claim that was judged."""

    claim: Claim
    experiment: str
    findings: dict[Variant, Finding]
    verdict: str

    def measured(self, reading: str) -> str:
        """Text of what was measured in a reading: at the centre, and where that changes."""
        centre = self.findings.get(Variant(reading))
        if centre is None:
            return "–"
        lines, alike = [f"{_MARKS[centre.holds]} {centre.value}"], []
        for variant, found in self.findings.items():
            if variant.reading != reading or not variant.choice:
                continue
            if found.holds == centre.holds:
                alike.append(variant.label)
            else:
                lines.append(f"{_MARKS[found.holds]} {variant.label}: {found.value}")
        if alike:
            lines.append(f"{_MARKS[centre.holds]} too: {'; '.join(alike)}")
        return "\n".join(lines)

    def to_dict(self) -> dict[str, Any]:
        """Everything as strings and truth values."""
        return {
            "claim": self.claim.statement,
            "place": self.claim.place,
            "criterion": self.claim.criterion,
            "experiment": self.experiment,
            "findings": [v._asdict() | f._asdict() for v, f in self.findings.items()],
            "verdict": self.verdict,
        }


def judge(claim: Claim, experiment: str, table: pd.DataFrame) -> Verdict:
    """Hold a claim against a table, in every reading and with every choice."""
    findings = {variant: claim.test(variant.rows(table)) for variant in claim.variants()}
    deciding = [
        name
        for name in CHOICES
        if any(
            {True, False} <= {findings[Variant(v.reading)].holds, found.holds}
            for v, found in findings.items()
            if v.choice == name and v.value not in CHOICES[name].joint
        )
    ]
    centres = {v.reading: found for v, found in findings.items() if not v.choice}
    unknown = [found.why or OPEN for found in centres.values() if found.holds is None]
    held = [reading for reading, found in centres.items() if found.holds]
    if deciding:
        phrases = [CHOICES[name].phrase for name in deciding]
        verdict = f"{DEPENDS} {' and '.join(filter(None, [', '.join(phrases[:-1]), phrases[-1]]))}"
    elif unknown:
        verdict = OPEN if OPEN in unknown else UNDECIDED
    elif len(held) == len(centres):
        empty = all(found.why == VACUOUS for found in centres.values())
        verdict = VACUOUS if empty else HOLDS
    else:
        verdict = {(): FAILS, (PRINTED,): PRINTED_ONLY, (CORRECTED,): CORRECTED_ONLY}[tuple(held)]
    return Verdict(claim, experiment, findings, verdict)


def means(table: pd.DataFrame, by: str, **where: object) -> pd.DataFrame:
    """Means over the seeds for each value of ``by``, of the rows where columns have given values.

    A run without a rate (nobody predicted positive, say) counts as rate 0: it is never fair.
    """
    for column, value in where.items():
        table = table[table[column] == value]
    constant = table["constant"] if "constant" in table else pd.Series(0.0, table.index)
    numbers = table.assign(rate=table["rate"].fillna(0.0), constant=constant.fillna(0.0))
    return numbers.groupby(by)[["accuracy", "rate", "constant"]].mean()


def dagger(*curves: pd.DataFrame) -> str:
    """Mark what rests on runs that give a group one answer and have a rate all the same."""
    return " †" if any(((c["constant"] > 0) & (c["rate"] > 0)).any() for c in curves) else ""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def tally(verdicts: Sequence[Verdict]) -> str:
    """Count the verdicts, in words."""
    kinds = [DEPENDS if v.verdict.startswith(DEPENDS) else v.verdict for v in verdicts]
    counts = [f"{kinds.count(kind)} × {kind}" for kind in VERDICTS if kind in kinds]
    text = f"{len(kinds)} claims: {', '.join(counts)}"
    return text.replace(DEPENDS, f"{DEPENDS} a choice")


def claims_markdown(
    verdicts: Sequence[Verdict], experiments: Iterable[Experiment], notes: Iterable[str]
) -> str:
    """Write the judged claims as a table in Markdown, and the pictures under it."""
    lines = [
        "# The paper's claims, judged",
        "",
        claims_texts()["page"]["introduction"],
        *(f"{note}\n" for note in notes),
        f"**{tally(verdicts)}.**",
        "",
        "| | Claim, and its test | Printed | Corrected | Verdict |",
        "|---|---|---|---|---|",
    ]
    for number, verdict in enumerate(verdicts, 1):
        claim = verdict.claim
        cells = (
            str(number),
            f"{claim.statement} ({claim.place}).\n*Test*: {claim.criterion}.",
            verdict.measured(PRINTED),
            verdict.measured(CORRECTED),
            f"**{verdict.verdict}**\n[{verdict.experiment}](#{verdict.experiment})",
        )
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    lines += ["", f"<!-- criteria {criteria_hash()} -->"]
    for e in experiments:
        picture = f"![{e.title}]({e.name}.png)"
        lines += ["", f"## {e.name}", "", f"**{e.title}.** {e.caption}", "", picture]
    return "\n".join(lines) + "\n"


def judge_all(experiments: Iterable[tuple[Experiment, pd.DataFrame]]) -> list[Verdict]:
    """Judge every claim of some experiments."""
    return [judge(c, e.name, table) for e, table in experiments for c in e.claims]
