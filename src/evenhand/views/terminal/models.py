"""What the command line shows: tables for a terminal, made of plain values."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evenhand.core.rates import RATES, overall_accuracy, rate_text
from evenhand.views.report.words import (
    again_sentence,
    missed_over_all,
    rate_titles,
    unlabelled_sentences,
    useless_sentence,
)
from evenhand.workflow.labels import favourable_answer
from evenhand.workflow.summary import rate_of

__all__ = [
    "say_notes",
    "say_written",
    "show_audit",
    "show_comparison",
    "show_datasets",
    "show_frontier",
    "show_point",
    "show_proportion",
    "show_training",
    "show_use",
]

# What plain logistic regression is called at the cut that is best on the training rows.
BEST_CUT = "plain, best cut"
# Targets that a frontier is read at.
TARGETS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)


def _console(*, stderr: bool = False) -> Console:
    # Never markup: what a table says is text, whatever brackets it has.
    return Console(markup=False, highlight=False, emoji=False, stderr=stderr)


def _table(*columns: str, title: str | None = None) -> Table:
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        title=None if title is None else Text(title, style="bold"),
        title_justify="left",
    )
    for i, column in enumerate(columns):
        table.add_column(Text(column), justify="left" if i == 0 else "right", overflow="fold")
    return table


def _fits(table: Table) -> bool:
    """Whether a table can be shown as wide as it wants to be."""
    console = _console()
    wanted = Measurement.get(console, console.options.update(width=10_000), table)
    return wanted.maximum <= console.width


def _cells(*values: Any) -> list[Text]:
    return [v if isinstance(v, Text) else Text(str(v)) for v in values]


def _short(text: str, most: int = 60) -> str:
    """Give text of a table in one line that a screen can show."""
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


# An option with its value, which is to be pasted whole; else a word.
_PIECE = re.compile(r"""\(?--[\w-]+ (?:'[^']*'|[^\s'"]+)+\S*|\S+""")


class _Folded:
    """Text that is folded between words and never inside an option and its value."""

    def __init__(self, text: str, style: str = "") -> None:
        self.pieces, self.style = _PIECE.findall(text), style
        each = (cell_len(piece) for piece in self.pieces if "--" in piece)
        self.longest_option = max(each, default=1)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.longest_option, cell_len(" ".join(self.pieces)) or 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [""]
        for piece in self.pieces:
            longer = f"{lines[-1]} {piece}".lstrip()
            if lines[-1] and cell_len(longer) > options.max_width:
                lines.append(piece)
            else:
                lines[-1] = longer
        yield Text("\n".join(lines), style=self.style, overflow="fold")


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f}%"


def _ratio(value: float | None, tau: float = 0.0) -> str:
    """Write a ratio so that it is seen on which side of τ it is."""
    return "–" if value is None or value != value else rate_text(value, tau)


def _with_interval(group: dict[str, Any]) -> str:
    if group["value"] is None:
        return "–"
    low, high = (_percent(group[end])[:-1] for end in ("low", "high"))
    return f"{_percent(group['value'])} ({low}–{high})"


def _say_favourable(console: Console, label: str, values: Sequence[str]) -> None:
    """Begin a screen: a label such as "default" may well count as favourable by mistake."""
    answer = favourable_answer(_short(label), [_short(v, 30) for v in values])
    console.print(f"favourable answer: {answer}", style="bold")


def show_use(answer: str, group_use: str) -> None:
    """Say which answer a saved model takes for favourable, and whether the group decides."""
    console = _console()
    console.print(f"favourable answer: {_short(answer, 100)}", style="bold", soft_wrap=True)
    if group_use:
        console.print(_short(group_use, 400), style="bold yellow")


def say_notes(notes: Sequence[str]) -> None:
    """Say on standard error what a user should know before the work is done."""
    console = _console(stderr=True)
    for note in notes:
        # Not wrapped here, so that an option to paste stays in one piece.
        console.print(f"note: {_short(note, 400)}", style="yellow", soft_wrap=True)


def say_written(paths: Sequence[Path]) -> None:
    """Name the files that were written."""
    console = _console()
    for path in paths:
        console.print(f"written: {path}", soft_wrap=True)


# ---- audit -----------------------------------------------------------------------------------


def show_audit(found: dict[str, Any]) -> None:
    """Show an audit: sizes, rates with intervals, ratios, the verdict."""
    console = _console()
    names = [_short(g, 30) for g in found["groups"]]
    sensitive = " × ".join(_short(s, 30) for s in found["sensitive"])
    what = found["prediction"] or found["label"]
    _say_favourable(console, what, [found["favourable"]])
    console.print(f"by {sensitive}, {found['n_rows_compared']:,} rows", style="bold")
    for dropped in found["dropped"]:
        console.print(f"left out: {dropped['n']:,} rows {_short(dropped['reason'])}", style="dim")
    _say_other_labels(console, found)
    if found["small_groups"]:
        small = ", ".join(
            f"{_short(g['group'], 30)} ({g['favourable']} of {g['rows']} favourable)"
            for g in found["small_groups"]
        )
        console.print(
            f"not compared, fewer than {found['min_group_size']} rows: {small}", style="yellow"
        )
    table = _audit_table(found, names, wide=False)
    wide = len(names) > 4 or not _fits(table)
    if wide:
        table = _audit_table(found, names, wide=True)
    console.print(table)
    if wide:
        every = list(found["rates"].items())
        for start in range(0, len(every), 2):
            part = every[start : start + 2]
            block = _table("group", "rows", *(name.replace("_", " ") for name, _ in part))
            for k, (name, n) in enumerate(zip(names, found["sizes"], strict=True)):
                shown = [_with_interval(groups[k]) for _, groups in part]
                block.add_row(*_cells(name, f"{n:,}", *shown))
            console.print(block)
    console.print("In brackets: 95% intervals (Wilson's).", style="dim")
    perfect = [
        name.replace("_", " ")
        for name, groups in found["rates"].items()
        if RATES[name].is_error and all(g["value"] == 0 for g in groups)
    ]
    if perfect:
        console.print(
            f"No ratio, because no group has such an error: {', '.join(perfect)}.", style="dim"
        )
    if found["association"] is not None:
        console.print(
            f"Group and {_short(what)} go together with {found['association']:.3f} (Cramér's V: 0 "
            "not at all, 1 completely).",
            style="dim",
        )
    _say_missing_labels(console, found)
    _say_verdict(console, found, names)


def _say_other_labels(console: Console, found: dict[str, Any]) -> None:
    """Say which answers count as not favourable, and which of them may be mistakes."""
    others = found.get("not_favourable")
    if not others:
        return
    column = _short(found["label"] or found["prediction"])
    each = [f"{_short(w, 30)} ({_rows_of(n)})" for w, n in others.items()]
    where = f" in {column}" if found["label"] and found["prediction"] else ""
    console.print(f"counted as not favourable{where}: {', '.join(each)}")
    words = found["perhaps_missing"]
    if words:
        named = " and ".join(repr(_short(w, 30)) for w in words)
        options = " ".join(f"--na {shlex.quote(w)}" for w in words)
        console.print(
            f"If {named} in {column} means that there is no outcome, {options} leaves these rows "
            "out.",
            style="bold yellow",
        )
    for same in found["alike_labels"]:
        each = [f"{_short(w, 30)!r} ({_rows_of(n)})" for w, n in same.items()]
        console.print(
            f"{' and '.join(each)} in {column} are counted as different answers, though they "
            "differ only in how they are written. If they mean the same, write them alike first.",
            style="bold yellow",
        )


def _rows_of(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _say_missing_labels(console: Console, found: dict[str, Any]) -> None:
    """Say which rows the rates are of, if some rows have no answer or no label."""
    alone = found["prediction"] is None
    what = _short(found["label"] if alone else found["prediction"])
    unanswered = found["missing_labels" if alone else "missing_predictions"]
    if unanswered is not None:
        known, every = found["n_rows_compared"], sum(p["rows"] for p in unanswered["by_group"])
        console.print(
            f"The rate is of {known:,} of {every:,} rows, those that have {what}: a selected part.",
            style="yellow",
        )
        if unanswered["related"]:
            why = _which_groups(found, unanswered, what)
            console.print(f"{why} {_what_follows(found, unanswered)}", style="bold yellow")
    missing = found.get("missing_labels")
    if alone or missing is None:
        return
    every, known = found["rows"]["selection_rate"], found["rows"]["accuracy"]
    label = _short(found["label"])
    console.print(
        f"The selection rate is of all {every:,} rows that have {what}. All other rates need "
        f"{label} and are of the {known:,} rows that have one: a selected part.",
        style="yellow",
    )
    if missing["related"]:
        why = _which_answers(found)
        console.print(f"{why} {_what_follows(found, missing)}", style="bold yellow")


def _which_groups(found: dict[str, Any], missing: dict[str, Any], what: str) -> str:
    """Say in which groups answers are missing."""
    parts = missing["by_group"]
    if len(parts) > 4:
        parts = sorted(parts, key=lambda part: part["missing"] / part["rows"])
        parts = [parts[0], parts[-1]]
    shares = [
        f"{_percent(part['missing'] / part['rows'])} of the {_rows_of(part['rows'])} of "
        f"{_short(part['group'], 30)}"
        for part in parts
    ]
    sensitive = " × ".join(_short(s, 30) for s in found["sensitive"])
    return f"Who has no {what} depends on {sensitive}: it is missing in {' and '.join(shares)}."


def _which_answers(found: dict[str, Any]) -> str:
    """Say with which answers labels are missing, in all rows or within groups."""
    missing = found["missing_labels"]
    label, prediction = _short(found["label"]), _short(found["prediction"])
    if missing["related_pooled"]:
        where = [("Who", missing)]
    else:
        related = [part for part in missing["by_group"] if part["related"]]
        where = [(f"Among {_short(part['group'], 30)}, who", part) for part in related[:4]]
    sentences = []
    for who, part in where:
        shares = [
            f"{_percent(by['missing'] / by['rows'])} of the {by['rows']:,} rows {name}"
            for name, by in zip(
                ("with another", "with the favourable"),
                part["by_prediction"].values(),
                strict=True,
            )
            if by["rows"]
        ]
        sentences.append(
            f"{who} has no {label} depends on {prediction}: it is missing in "
            f"{' and '.join(shares)} answer."
        )
    return " ".join(sentences)


def _what_follows(found: dict[str, Any], missing: dict[str, Any]) -> str:
    """Say which rates cannot be judged because answers, or labels, are missing."""
    unsure = missing["not_judged"]
    tau = f"{found['tau']:g}"
    if "related_pooled" not in missing:
        which = "labels" if found["prediction"] is None else "answers"
        if unsure:
            return f"The missing {which} could put the ratio on the other side of {tau}."
        return f"But whatever the missing {which} are, the ratio stays on its side of {tau}."
    needy = [n for n, r in found["ratios"].items() if n != "selection_rate" and r is not None]
    if not unsure:
        return f"But whatever the missing labels are, every ratio stays on its side of {tau}."
    if len(unsure) == len(needy):
        return "No rate that needs it can be judged; their ratios are in brackets."
    return (
        f"Ratios in brackets cannot be judged: the missing labels could put them on the other side "
        f"of {tau}."
    )


def _say_verdict(console: Console, found: dict[str, Any], names: list[str]) -> None:
    ratio, tau = found["ratios"]["selection_rate"], found["tau"]
    rule = "the four-fifths rule" if tau == 0.8 else f"a ratio of {tau:g}"
    both = found["prediction"] is not None
    whose = "selection rate" if both and found.get("missing_labels") else "rate"
    what = _short(found["prediction"] or found["label"])
    if 0 in found["sizes"]:
        none = [name for name, n in zip(names, found["sizes"], strict=True) if n == 0]
        verdict, style = f"{rule} cannot be judged: no row of {none[0]} has {what}", "yellow"
    elif ratio is None:
        verdict, style = f"{rule} cannot be judged: nobody has the favourable value", "yellow"
    elif not found["judged"]:
        verdict, style = (
            f"{rule} cannot be judged: too many rows have no {what}, and who has none depends on "
            f"the group; of the other rows the ratio is {_ratio(ratio, tau)}",
            "yellow",
        )
    else:
        word, style = ("passes", "green") if found["passed"] else ("fails", "red")
        verdict = (
            f"{word} {rule}: the ratio of the smallest to the largest {whose} is "
            f"{_ratio(ratio, tau)}"
        )
    console.print(f"{verdict[0].upper()}{verdict[1:]}.", style=f"bold {style}")
    if found["privileged"] is not None:
        each = found["ratios_to_privileged"]["selection_rate"]
        shown = [
            f"{name} {_ratio(r, tau)}"
            for name, group, r in zip(names, found["groups"], each, strict=True)
            if group != found["privileged"]
        ]
        console.print(f"Over the rate of {_short(found['privileged'])}: {', '.join(shown)}.")
    other = found.get("with_small_groups")
    if other is not None and found["judged"] and other["passed"] != found["passed"]:
        console.print(
            "The groups that were not compared change the verdict: with them the ratio is "
            f"{_ratio(other['ratio'], tau)}, which {'passes' if other['passed'] else 'fails'}.",
            style="bold yellow",
        )


def _audit_table(found: dict[str, Any], names: list[str], *, wide: bool) -> Table:
    """Rates of all groups, or if these are ``wide`` the smallest and the largest."""
    table = _table("", *(["smallest", "largest"] if wide else names), "ratio")
    if not wide:
        table.add_row(*_cells("rows", *(f"{n:,}" for n in found["sizes"]), ""))
    missing = [found.get(key) for key in ("missing_labels", "missing_predictions")]
    unsure = {name for about in missing if about is not None for name in about["not_judged"]}
    for name, groups in found["rates"].items():
        ratio = found["ratios"][name]
        chosen = name in unsure
        text = _ratio(ratio, found["tau"])
        low = Text(
            f"({text})" if chosen else text,
            style="dim" if chosen else "" if ratio is None or ratio >= found["tau"] else "red",
        )
        if wide:
            known = [(g["value"], i) for i, g in enumerate(groups) if g["value"] is not None]
            ends = [min(known), max(known)] if known else []
            shown = [f"{_percent(v)} {names[i]}" for v, i in ends] or ["–", "–"]
        else:
            shown = [_with_interval(g) for g in groups]
        table.add_row(*_cells(name.replace("_", " "), *shown, low))
    return table


# ---- models ----------------------------------------------------------------------------------


def _figures(summary: dict[str, Any], counts: Any) -> tuple[float, list[float], list[NDArray[Any]]]:
    """Accuracy, and of each rate of the summary the groups' ratio and values, of counts."""
    c = np.asarray(counts, dtype=float)
    compared = c[: len(summary["groups"])]
    parts = rate_of(summary).parts
    ratios = [float(part.ratio(compared)) for part in parts]
    return float(overall_accuracy(c)), ratios, [part.per_group(compared) for part in parts]


def _part_taus(summary: dict[str, Any]) -> list[float]:
    """Target of each rate."""
    return [summary["tau"] * part["share"] for part in summary["rate"]["parts"]]


def _notion_taus(summary: dict[str, Any]) -> list[tuple[str, float]]:
    """Each notion in words with its target."""
    asked = summary["asked"]
    taus = np.broadcast_to(asked["taus"], (len(asked["notions"]),)).tolist()
    return [(n.replace("_", " "), t) for n, t in zip(asked["notions"], taus, strict=True)]


def _rate_names(summary: dict[str, Any]) -> list[str]:
    titles = rate_titles(summary["rate"]["parts"], summary["labels"], "")
    names = [t["title"][:1].lower() + t["title"][1:] for t in titles]
    return [_short(name.translate(_NO_MARKS)) for name in names]


# Marks of the direction of writing, which the report's words have around names.
_NO_MARKS = dict.fromkeys(map(ord, "\u2068\u2069"))


def _part_key(summary: dict[str, Any]) -> str:
    return str(summary["parts"][-1]["key"])


def _show_points(summary: dict[str, Any], rows: list[tuple[str, Any]], key: str) -> Table:
    part = next(p for p in summary["parts"] if p["key"] == key)
    where = f"On {part['n']:,} {part['title']}"
    figures = [(name, *_figures(summary, counts)) for name, counts in rows]
    wide = len(summary["groups"]) > 4
    groups = ["lowest", "highest"] if wide else [_short(g, 20) for g in summary["groups"]]

    def shown(values: NDArray[Any]) -> list[str]:
        ends = [values.min(), values.max()] if wide else values.tolist()
        return [_percent(v if v == v else None) for v in ends]

    taus, names = _part_taus(summary), _rate_names(summary)
    if len(taus) == 1:
        table = _table(
            "",
            "accuracy",
            summary["rate"]["name"],
            *groups,
            title=f"{where} ({names[0]} of each group)",
        )
        for name, accuracy, ratios, values in figures:
            ratio = _ratio(ratios[0], taus[0])
            table.add_row(*_cells(name, f"{accuracy:.4f}", ratio, *shown(values[0])))
        if _fits(table):
            return table
    # A row for each group: there is room for any number of them.
    table = _table("", "τ", *(name for name, *_ in figures), title=where)
    table.add_row(*_cells("accuracy", "", *(f"{accuracy:.4f}" for _, accuracy, *_ in figures)))
    for k, (name, tau) in enumerate(zip(names, taus, strict=True)):
        found = [ratios[k] for _, _, ratios, _ in figures]
        cells = [Text(_ratio(r, tau), style="" if r >= tau else "red") for r in found]
        table.add_row(*_cells(f"{name}, ratio", f"{tau:.4g}", *cells))
        columns = [shown(values[k]) for *_, values in figures]
        for group, *each in zip(groups, *columns, strict=True):
            table.add_row(*(Text(c, style="dim") for c in (f"  {group}", "", *each)))
    return table


def _rows(summary: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    rows = []
    if summary["plain"] is not None and key in summary["plain"]["counts"]:
        plain, best = summary["plain"], summary["plain"].get("best_cut")
        rows.append(("plain logistic regression", plain["counts"][key]))
        if best is not None and best["cut"] != 0:
            rows.append((BEST_CUT, best["counts"][key]))
    if key in summary["saved"]["counts"]:
        several = len(summary["rate"]["parts"]) > 1  # each has its τ beside it
        name = "evenhand" if several else f"evenhand, τ = {summary['tau']:g}"
        rows.append((name, summary["saved"]["counts"][key]))
    return rows


def _sentence(summary: dict[str, Any]) -> Text:
    reached, goals = summary["reached"], _notion_taus(summary)
    label = _short(summary["asked"]["label"], 30)
    chosen = f", among rows that have a {label}" if summary.get("unlabelled") else ""
    chosen += ", but NOT over all rows" if missed_over_all(summary) else ""
    good = "bold yellow" if missed_over_all(summary) else "green"
    if reached["guarantee"] is not None:
        text = reached["guarantee"] + (chosen if reached["feasible"] else "")
        return Text(text[0].upper() + text[1:] + ".", style=good if reached["feasible"] else "red")
    alike = len({tau for _, tau in goals}) == 1
    if alike:
        what = f"τ = {summary['tau']:g} for {' and '.join(name for name, _ in goals)} is"
        rate = f": {_ratio(reached['rate'], summary['tau'])}"
    else:
        what = " and ".join(f"τ = {tau:.4g} for {name}" for name, tau in goals) + " are"
        # Of several targets the rate is on the scale of the strictest.
        share = None if reached["rate"] is None else reached["rate"] / summary["tau"]
        rate = f": one ratio is at {_percent(share)} of its target"
    sure = _sure(summary)
    if sure and alike:
        who = f"among people whose {label} is known" if chosen else "in the population"
        rate += f", and {_ratio(reached['bound'], summary['tau'])} or more {who}"
    if reached["feasible"]:
        text = f"{what} reached {reached['where']}{sure}{chosen}{rate if alike else ''}."
        return Text(text, style=good)
    if reached["rate"] is None:
        rate = ": no model has a ratio"
    elif alike:
        rate = rate.replace(": ", ": the nearest is ", 1)
    return Text(f"{what} NOT reached {reached['where']}{sure}{rate}.", style="bold red")


def _sure(summary: dict[str, Any]) -> str:
    """Say with which confidence a point was chosen."""
    asked = summary["asked"]
    if asked["confidence"] == "certified":
        return f", each with a certificate of confidence {1 - asked['delta']:g}"
    return f" with a confidence of about {asked['confidence']:g}" if asked["confidence"] else ""


def _say_first(console: Console, summary: dict[str, Any]) -> None:
    """Say which answer counts as favourable, and whether the group decides."""
    _say_favourable(console, summary["asked"]["label"], summary["asked"]["favourable"])
    if summary["group_use"]:
        console.print(_short(summary["group_use"], 400), style="bold yellow")


def show_point(summary: dict[str, Any], notes: Sequence[str]) -> None:
    """Show the chosen point beside plain logistic regression."""
    console = _console()
    _say_first(console, summary)
    _show_outcome(console, summary, notes)


def _say_unlabelled(console: Console, summary: dict[str, Any]) -> None:
    """Say whom the figures leave out, if some rows have no label."""
    said = {k: s.translate(_NO_MARKS) for k, s in unlabelled_sentences(summary).items()}
    below = missed_over_all(summary)
    styles = {"rows": "yellow", "warning": "bold yellow", "every": "bold red" if below else ""}
    for name, sentence in said.items():
        if sentence:
            console.print(_short(sentence, 1000), style=styles[name])


def _show_outcome(console: Console, summary: dict[str, Any], notes: Sequence[str]) -> None:
    console.print(_sentence(summary))
    _say_unlabelled(console, summary)
    if again_sentence(summary):
        console.print(again_sentence(summary), style="yellow")
    for part in summary["parts"]:
        rows = _rows(summary, part["key"])
        if not rows:
            continue
        table = _show_points(summary, rows, part["key"])
        best = next((row for row in rows if row[0] == BEST_CUT), None)
        if best is None or _fits(table):
            console.print(table)
            continue
        rows.remove(best)
        console.print(_show_points(summary, rows, part["key"]))
        accuracy, ratios, _ = _figures(summary, best[1])
        shown = ", ".join(_ratio(r, t) for r, t in zip(ratios, _part_taus(summary), strict=True))
        console.print(f"{best[0]}: accuracy {accuracy:.4f}, ratio {shown}", style="dim")
    _warn_of_test(console, summary)
    useless = useless_sentence(summary).translate(_NO_MARKS)
    if useless:
        console.print(_short(useless, 400), style="bold red")
    for note in notes:
        if not note.startswith(("--tau ", "no point can")):  # the first sentence said so
            console.print(f"note: {_short(note, 400)}", style="yellow")


def show_proportion(summary: dict[str, Any]) -> None:
    """Say what became of the targets of several notions when one was given."""
    if len({tau for _, tau in _notion_taus(summary)}) > 1:
        _console().print(
            f"--tau {summary['tau']:g} is the strictest target; the others stay in proportion to "
            "it.",
            style="dim",
        )


def _warn_of_test(console: Console, summary: dict[str, Any]) -> None:
    """Say plainly if the target is missed on the test rows."""
    counts = summary["saved"]["counts"].get("test")
    if counts is None:
        return
    ratios, taus = _figures(summary, counts)[1], _part_taus(summary)
    names = _rate_names(summary) if len(taus) > 1 else [""]
    named = [f"the {name} ratio" if name else "the ratio" for name in names]
    unknown = [what for what, ratio in zip(named, ratios, strict=True) if ratio != ratio]
    if unknown:
        console.print(
            f"On the test rows {' and '.join(unknown)} cannot be computed.", style="yellow"
        )
    below = [
        f"{what} is {_ratio(ratio, tau)}, below τ = {tau:.4g}"
        for what, ratio, tau in zip(named, ratios, taus, strict=True)
        if ratio < tau
    ]
    if below and summary["reached"]["feasible"]:
        advice = (
            "The certificate is for the population that the rows were drawn from; a sample of it "
            "may be on the other side."
            if summary["asked"]["confidence"] == "certified"
            else "Test rows are a sample themselves: a ratio that holds in the population is "
            "sometimes below τ among them."
            if summary["asked"]["confidence"]
            else "--confidence 0.9, or certified, asks for a τ that holds on new rows."
        )
        console.print(f"On the test rows {', and '.join(below)}. {advice}", style="yellow")


def show_training(summary: dict[str, Any], notes: Sequence[str]) -> None:
    """Show what was found in the table and the chosen point."""
    console = _console()
    data, asked = summary["data"], summary["asked"]
    _say_first(console, summary)
    sensitive = " × ".join(_short(s, 30) for s in asked["sensitive"])
    console.print(f"{_short(summary['title'])}: {data['rows']:,} rows by {sensitive}", style="bold")
    for dropped in data["rows_dropped"]:
        console.print(f"left out: {dropped['n']:,} rows {_short(dropped['reason'])}", style="dim")
    shown = data["decisions"][:30]
    _show_decisions(console, shown)
    if len(data["decisions"]) > len(shown):
        more = len(data["decisions"]) - len(shown)
        console.print(f"… and {more:,} more columns; the report has them all.", style="dim")
    if data["small_groups"]:
        small = "; ".join(f"{_short(g, 30)} ({n})" for g, n in data["small_groups"].items())
        console.print(f"Too few rows to compare: {small}", style="yellow")
    _show_outcome(console, summary, notes)


def _show_decisions(console: Console, decisions: Sequence[dict[str, Any]]) -> None:
    """Show what became of columns, every option to paste in one piece."""
    table = _table("column", "kind", "what was done")
    table.columns[1].justify = table.columns[2].justify = "left"
    cells = [
        (
            _short(d["column"], 30),
            d["kind"],
            _Folded(_short(d["action"], 400), "dim" if d["kind"] == "dropped" else ""),
        )
        for d in decisions
    ]
    longest = max((text.longest_option for *_, text in cells), default=1)
    # What is left for the names beside kinds, options and what is between columns.
    room = console.width - longest - max((cell_len(kind) for _, kind, _ in cells), default=0) - 8
    if room < 10:
        # The terminal itself breaks such a line, and copies it whole.
        for name, kind, text in cells:
            line = f"{name} ({kind}): {' '.join(text.pieces)}"
            console.print(line, style=text.style, soft_wrap=True)
        return
    table.columns[1].no_wrap = True
    table.columns[0].max_width, table.columns[2].min_width = room, longest
    for name, kind, text in cells:
        table.add_row(Text(name, style=text.style), Text(kind, style=text.style), text)
    console.print(table)


def show_frontier(summary: dict[str, Any]) -> None:
    """Show the frontier at some targets, and as bars."""
    console = _console()
    points, key = summary["points"], _part_key(summary)
    _say_first(console, summary)
    part = next(p for p in summary["parts"] if p["key"] == key)
    console.print(
        f"{_short(summary['title'])}: {len(points)} points, figures on "
        f"{part['n']:,} {part['title']}",
        style="bold",
    )
    _say_unlabelled(console, summary)
    if not points:
        console.print("No point is eligible: some group gets nearly the same answer everywhere.")
    goals = _notion_taus(summary)
    alike = len({tau for _, tau in goals}) == 1
    several = len(summary["rate"]["parts"]) > 1
    names = [f"{n}, ratio" for n in _rate_names(summary)] if several else [summary["rate"]["name"]]
    table = _table("τ", "accuracy", *names, "accuracy kept")
    rows = []
    reach = np.array([p["reach"] for p in points])
    for tau in sorted({*TARGETS, summary["tau"]}):
        i = int(np.searchsorted(reach, tau))
        if tau == summary["tau"]:
            rows.append((tau, True, *_figures(summary, summary["saved"]["counts"][key])[:2]))
        elif i < len(points):
            rows.append((tau, False, *_figures(summary, points[i]["counts"][key])[:2]))
    best = max(accuracy for _, _, accuracy, _ in rows) if rows else 1.0
    least = min(accuracy for _, _, accuracy, _ in rows) if rows else 0.0
    for tau, is_saved, accuracy, ratios in rows:
        mark = " ◀ saved" if is_saved else ""
        mark += ", not reached" * (is_saved and not summary["reached"]["feasible"])
        room = 5 if several else 24
        share = (accuracy - least) / (best - least) if best > least else 1.0
        width = 6 + round(room * share)
        bar = Text("█" * width + mark, style="cyan")
        each = [tau] if alike else [tau * t / summary["tau"] for _, t in goals]
        shown = [
            _ratio(r, tau * p["share"])
            for r, p in zip(ratios, summary["rate"]["parts"], strict=True)
        ]
        target = " / ".join(f"{t:.3g}" for t in each)
        table.add_row(*_cells(target, f"{accuracy:.4f}", *shown), bar)
    table.columns[-1].justify = "left"
    console.print(table)
    if not alike:
        order = " / ".join(name for name, _ in goals)
        console.print(f"τ is that of {order}, always in this proportion.", style="dim")
    if not points:
        return
    scale = "" if alike else ", on the scale of the strictest target"
    console.print(
        f"The points were chosen {summary['reached']['where']}{_sure(summary)}. The highest target "
        f"that one answers is {reach.max():.3f}{scale}. Bars do not start at 0.",
        style="dim",
    )


# ---- the others ------------------------------------------------------------------------------


def show_comparison(found: pd.DataFrame) -> None:
    """Show the means of a comparison, a table for each τ."""
    from evenhand.peers import summarize

    console, means = _console(), summarize(found)
    answer, dropped, small = (
        str(found[c].iloc[0]) for c in ("favourable_answer", "rows_dropped", "small_groups")
    )
    console.print(f"favourable answer: {_short(answer, 100)}", style="bold")
    if dropped:
        console.print(f"left out: {_short(dropped, 400)}", style="dim")
    if small:
        console.print(
            f"left out, too few rows to test on: {_short(small, 400)}; no method is fitted to them "
            "or judged by them.",
            style="yellow",
        )
    for tau, part in means.groupby("tau"):
        table = _table(
            "method", "accuracy", "rate", "met", "seconds", title=f"τ = {tau:g}, test data"
        )
        for row in part.itertuples():
            name = f"{row.method}{' †' if row.needs_group else ''}"
            if row.error:
                table.add_row(*_cells(name, "–", "–", "–", ""))
                continue
            met = f"{100 * row.met:.0f}%" if row.met == row.met else "–"
            table.add_row(
                *_cells(
                    name, f"{row.accuracy:.4f}", _ratio(row.rate, tau), met, f"{row.seconds:.1f}"
                )
            )
        console.print(table)
    console.print(
        "met: share of splits whose test rate reaches τ. †: needs the group to predict. Every "
        "method is chosen by its rate on the training part alone; a τ that holds more often needs "
        "a margin (train --confidence).",
        style="dim",
    )
    bad = means[means["ineligible"] != ""]
    for (name, share, why), part in bad.groupby(["method", "eligible", "ineligible"], sort=False):
        taus = ", ".join(f"{tau:g}" for tau in part["tau"])
        console.print(
            f"{name}, τ = {taus}: in {100 * (1 - share):.0f}% of the splits its answers count as "
            f"none and τ as not met, because {_short(why, 120)}.",
            style="yellow",
        )
    for error, part in means[means["error"] != ""].groupby("error", sort=False):
        names = ", ".join(dict.fromkeys(part["method"]))
        console.print(f"left out: {names}: {_short(str(error), 200)}", style="yellow")


def show_datasets(listed: Sequence[dict[str, Any]]) -> None:
    """Show the datasets."""
    console = _console()
    table = _table("name", "rows", "label", "sensitive", "what it is")
    for column in table.columns[2:]:
        column.justify = "left"
    for d in listed:
        title = d["title"] if d["inside"] else f"{d['title']} (fetched once)"
        sensitive = ", ".join(d["sensitive"])
        table.add_row(*_cells(d["name"], f"{d['rows']:,}", d["label"], sensitive, title))
    console.print(table)
    console.print("evenhand train --demo adult needs no file.", style="dim")
