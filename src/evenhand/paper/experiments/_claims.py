"""Experiments and the paper's statements as records; how these are judged and written down."""

import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

import pandas as pd

Cell = dict[str, Any]
Rows = list[dict[str, Any]]

PRINTED, RIDGE, CORRECTED = "printed", "printed, small ridge", "corrected"

HOLDS = "holds"
CORRECTED_ONLY = "holds in the corrected reading only"
PRINTED_ONLY = "holds in the printed reading only"
FAILS = "does not hold"
OPEN = "cannot be decided"
VERDICTS = (HOLDS, CORRECTED_ONLY, PRINTED_ONLY, FAILS, OPEN)


class Finding(NamedTuple):
    """What was measured in a reading, and whether that meets the criterion; None: cannot tell."""

    value: str
    holds: bool | None


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
    test : callable ``(table, reading) -> Finding``
        Decides it from the experiment's table.
    one_reading : bool, default=False
        Whether the statement does not depend on the reading.
    """

    statement: str
    place: str
    criterion: str
    test: Callable[[pd.DataFrame, str], Finding]
    one_reading: bool = False


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
    """

    name: str
    title: str
    cells: Callable[[bool], list[Cell]]
    run: Callable[..., Rows]
    draw: Callable[[pd.DataFrame], Any]
    caption: str
    claims: tuple[Claim, ...]
    needs: tuple[str, ...] = ()


@cache
def claims_texts() -> dict[str, Any]:
    """Read the titles, captions and claims of all experiments."""
    return tomllib.loads((files(__package__) / "claims.toml").read_text(encoding="utf-8"))


def experiment(
    name: str,
    *,
    tests: Mapping[str, Callable[[pd.DataFrame, str], Finding]],
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
        ``cells``, ``run``, ``draw`` and ``needs`` of :class:`Experiment`.
    """
    text = claims_texts()[section or name]

    def write(sentence: str) -> str:
        return sentence.format_map(words) if words else sentence

    def claim(key: str) -> Claim:
        stated = text["claims"][key]
        return Claim(test=tests[key], **stated | {"statement": write(stated["statement"])})

    return Experiment(
        name=name,
        title=write(text["title"]),
        caption=text["caption"],
        claims=tuple(map(claim, tests)),
        **parts,
    )


@dataclass(frozen=True)
class Verdict:
    """A claim that was judged."""

    claim: Claim
    experiment: str
    findings: dict[str, Finding]
    verdict: str

    def measured(self) -> tuple[str, str]:
        """Text of what was measured in the printed reading, and in the corrected one."""
        corrected = self.findings[CORRECTED].value
        if PRINTED not in self.findings:
            return "–", corrected
        printed, ridge = self.findings[PRINTED].value, self.findings[RIDGE].value
        return (printed if ridge == printed else f"{printed}\nridge 10⁻⁴: {ridge}"), corrected

    def to_dict(self) -> dict[str, Any]:
        """Everything as strings and truth values."""
        return {
            "claim": self.claim.statement,
            "place": self.claim.place,
            "criterion": self.claim.criterion,
            "experiment": self.experiment,
            "findings": {name: finding._asdict() for name, finding in self.findings.items()},
            "verdict": self.verdict,
        }


def judge(claim: Claim, experiment: str, table: pd.DataFrame) -> Verdict:
    """Hold a claim against a table, in every reading."""
    readings = (CORRECTED,) if claim.one_reading else (PRINTED, RIDGE, CORRECTED)
    findings = {reading: claim.test(table, reading) for reading in readings}
    corrected = findings[CORRECTED].holds
    printed = findings.get(PRINTED, findings[CORRECTED]).holds
    if printed is None or corrected is None:
        verdict = OPEN
    elif printed and corrected:
        verdict = HOLDS
    elif corrected:
        verdict = CORRECTED_ONLY
    else:
        verdict = PRINTED_ONLY if printed else FAILS
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


INTRODUCTION = """\
Each row is a statement of the paper, in our words, with the test that decides it, written before
the first full run unless it says otherwise. *Printed* is the paper's text to the letter, its ridge
½‖w‖² included; under it, where that differs, the same with a ridge of 10⁻⁴, which does not hold all
weights near zero. *Corrected* is the reading that the mathematics needs. *Holds*: in the printed
and in the corrected reading. Figures are means over the seeds; a run that calls nobody positive has
no rate and counts as 0. The rate is the paper's: to call everybody positive has rate 1. Where a
figure rests on runs that call fewer than 1% or more than 99% of a group positive, it has a †.
"""


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", "<br>")


def tally(verdicts: Sequence[Verdict]) -> str:
    """Count the verdicts, in words."""
    names = [v.verdict for v in verdicts]
    words = [f"{names.count(name)} {name}" for name in VERDICTS if name in names]
    plural = [
        text if text.startswith("1 ") else text.replace(" holds", " hold").replace(" does", " do")
        for text in words
    ]
    return f"{len(names)} claims: {', '.join(plural)}"


def claims_markdown(
    verdicts: Sequence[Verdict], experiments: Iterable[Experiment], notes: Iterable[str]
) -> str:
    """Write the judged claims as a table in Markdown, and the pictures under it."""
    lines = [
        "# The paper's claims, judged",
        "",
        INTRODUCTION,
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
            *verdict.measured(),
            f"**{verdict.verdict}**\n[{verdict.experiment}](#{verdict.experiment})",
        )
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    for e in experiments:
        picture = f"![{e.title}]({e.name}.png)"
        lines += ["", f"## {e.name}", "", f"**{e.title}.** {e.caption}", "", picture]
    return "\n".join(lines) + "\n"


def judge_all(experiments: Iterable[tuple[Experiment, pd.DataFrame]]) -> list[Verdict]:
    """Judge every claim of some experiments."""
    return [judge(c, e.name, table) for e, table in experiments for c in e.claims]
