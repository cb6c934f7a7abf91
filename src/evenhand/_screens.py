"""What the command line shows: tables for a terminal, made of plain values."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from rich import box
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evenhand.rates import overall_accuracy, rate_text
from evenhand.report._figures import rate_of
from evenhand.report._words import rate_titles, useless_sentence

__all__ = [
    "say_written",
    "show_audit",
    "show_comparison",
    "show_datasets",
    "show_frontier",
    "show_point",
    "show_proportion",
    "show_training",
]

# Targets that a frontier is read at.
TARGETS = (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99)


def _console() -> Console:
    # Never markup: what a table says is text, whatever brackets it has.
    return Console(markup=False, highlight=False, emoji=False)


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
    console.print(
        f"{_short(what)} = {_short(found['favourable'])} by {sensitive}, "
        f"{sum(found['sizes']):,} rows",
        style="bold",
    )
    for dropped in found["dropped"]:
        console.print(f"left out: {dropped['n']:,} rows {_short(dropped['reason'])}", style="dim")
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
    if found["association"] is not None:
        console.print(
            f"Group and {_short(what)} go together with {found['association']:.3f} (Cramér's V: 0 "
            "not at all, 1 completely).",
            style="dim",
        )
    ratio, tau = found["ratios"]["selection_rate"], found["tau"]
    against = (
        f"of the worst-off group to {_short(found['privileged'])}"
        if found["privileged"]
        else "of the smallest to the largest rate"
    )
    rule = "the four-fifths rule" if tau == 0.8 else f"a ratio of {tau:g}"
    if ratio is None:
        verdict, style = f"{rule} cannot be judged: nobody has the favourable value.", "yellow"
    elif found["passed"]:
        verdict, style = f"passes {rule}: the ratio {against} is {_ratio(ratio, tau)}.", "green"
    else:
        verdict, style = f"fails {rule}: the ratio {against} is {_ratio(ratio, tau)}.", "red"
    console.print(verdict[0].upper() + verdict[1:], style=f"bold {style}")


def _audit_table(found: dict[str, Any], names: list[str], *, wide: bool) -> Table:
    """Rates of all groups, or if these are ``wide`` the smallest and the largest."""
    table = _table("", *(["smallest", "largest"] if wide else names), "ratio")
    if not wide:
        table.add_row(*_cells("rows", *(f"{n:,}" for n in found["sizes"]), ""))
    for name, groups in found["rates"].items():
        ratio = found["ratios"][name]
        low = Text(
            _ratio(ratio, found["tau"]),
            style="" if ratio is None or ratio >= found["tau"] else "red",
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
        rows.append(("plain logistic regression", summary["plain"]["counts"][key]))
    if key in summary["saved"]["counts"]:
        several = len(summary["rate"]["parts"]) > 1  # each has its τ beside it
        name = "evenhand" if several else f"evenhand, τ = {summary['tau']:g}"
        rows.append((name, summary["saved"]["counts"][key]))
    return rows


def _sentence(summary: dict[str, Any]) -> Text:
    reached, goals = summary["reached"], _notion_taus(summary)
    if reached["guarantee"] is not None:
        text = reached["guarantee"]
        return Text(
            text[0].upper() + text[1:] + ".", style="green" if reached["feasible"] else "red"
        )
    alike = len({tau for _, tau in goals}) == 1
    if alike:
        what = f"τ = {summary['tau']:g} for {' and '.join(name for name, _ in goals)} is"
        rate = f": {_ratio(reached['rate'], summary['tau'])}"
    else:
        what = " and ".join(f"τ = {tau:.4g} for {name}" for name, tau in goals) + " are"
        # Of several targets the rate is on the scale of the strictest.
        share = None if reached["rate"] is None else reached["rate"] / summary["tau"]
        rate = f": one ratio is at {_percent(share)} of its target"
    if reached["feasible"]:
        return Text(f"{what} reached {reached['where']}{rate if alike else ''}.", style="green")
    best = rate.replace(": ", ": the best is ", 1) if alike else rate
    return Text(f"{what} NOT reached {reached['where']}{best}.", style="bold red")


def show_point(summary: dict[str, Any], notes: Sequence[str]) -> None:
    """Show the chosen point beside plain logistic regression."""
    console = _console()
    console.print(_sentence(summary))
    for part in summary["parts"]:
        rows = _rows(summary, part["key"])
        if rows:
            console.print(_show_points(summary, rows, part["key"]))
    _warn_of_test(console, summary)
    useless = useless_sentence(summary).translate(_NO_MARKS)
    if useless:
        console.print(_short(useless, 400), style="bold red")
    if not summary["saved"]["counts"]:
        console.print(
            "An earlier evenhand trained this model and did not count its answers: train it anew "
            "to see them.",
            style="yellow",
        )
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
    below = [
        f"the {f'{name} ' if name else ''}ratio is {_ratio(ratio, tau)}, below τ = {tau:.4g}"
        for name, ratio, tau in zip(names, ratios, taus, strict=True)
        if not ratio >= tau
    ]
    if below and summary["reached"]["feasible"]:
        advice = (
            "The certificate is for the population that the rows were drawn from; a sample of it "
            "may be on the other side."
            if summary["asked"]["selection"] == "certified"
            else "--selection certified asks for a τ that holds on new rows."
        )
        console.print(f"On the test rows {', and '.join(below)}. {advice}", style="yellow")


def show_training(summary: dict[str, Any], notes: Sequence[str]) -> None:
    """Show what was found in the table and the chosen point."""
    console = _console()
    data, asked = summary["data"], summary["asked"]
    favourable = " | ".join(_short(f, 30) for f in asked["favourable"])
    sensitive = " × ".join(_short(s, 30) for s in asked["sensitive"])
    console.print(
        f"{_short(summary['title'])}: {data['rows']:,} rows, "
        f"{_short(asked['label'])} = {favourable} by {sensitive}",
        style="bold",
    )
    for dropped in data["rows_dropped"]:
        console.print(f"left out: {dropped['n']:,} rows {_short(dropped['reason'])}", style="dim")
    table = _table("column", "kind", "what was done")
    table.columns[1].justify = table.columns[2].justify = "left"
    shown = data["decisions"][:30]
    for decision in shown:
        style = "dim" if decision["kind"] == "dropped" else ""
        cells = (_short(decision["column"], 30), decision["kind"], _short(decision["action"], 90))
        table.add_row(*(Text(c, style=style) for c in cells))
    console.print(table)
    if len(data["decisions"]) > len(shown):
        more = len(data["decisions"]) - len(shown)
        console.print(f"… and {more:,} more columns; the report has them all.", style="dim")
    if data["small_groups"]:
        small = ", ".join(f"{_short(g, 30)} ({n})" for g, n in data["small_groups"].items())
        console.print(f"Too few rows to compare: {small}", style="yellow")
    show_point(summary, notes)


def show_frontier(summary: dict[str, Any]) -> None:
    """Show the frontier at some targets, and as bars."""
    console = _console()
    points, key = summary["points"], _part_key(summary)
    part = next(p for p in summary["parts"] if p["key"] == key)
    console.print(
        f"{_short(summary['title'])}: {len(points)} points, figures on "
        f"{part['n']:,} {part['title']}",
        style="bold",
    )
    if not points:
        console.print("No point is eligible: some group gets nearly the same answer everywhere.")
    rates = np.array([p["rate"] for p in points])
    goals = _notion_taus(summary)
    alike = len({tau for _, tau in goals}) == 1
    several = len(summary["rate"]["parts"]) > 1
    names = [f"{n}, ratio" for n in _rate_names(summary)] if several else [summary["rate"]["name"]]
    table = _table("τ", "accuracy", *names, "accuracy kept")
    rows = []
    saved = summary["saved"]["counts"].get(key)
    for tau in sorted({*TARGETS, summary["tau"]}):
        i = int(np.searchsorted(rates, tau))
        # The saved model may be chosen on other rows than those that the rates are of.
        if tau == summary["tau"] and saved is not None:
            rows.append((tau, True, *_figures(summary, saved)[:2]))
        elif i < len(points):
            rows.append((tau, False, *_figures(summary, points[i]["counts"][key])[:2]))
    best = max(accuracy for _, _, accuracy, _ in rows) if rows else 1.0
    least = min(accuracy for _, _, accuracy, _ in rows) if rows else 0.0
    for tau, is_saved, accuracy, ratios in rows:
        mark = " ◀ saved" if is_saved else ""
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
    top = float(rates.max())
    told = "The highest rate is" if not several else "The highest worst ratio is"
    scale = "" if alike else ", on the scale of the strictest target"
    console.print(f"{told} {top:.3f}{scale}. Bars do not start at 0.", style="dim")


# ---- the others ------------------------------------------------------------------------------


def show_comparison(means: pd.DataFrame) -> None:
    """Show the means of a comparison, a table for each τ."""
    console = _console()
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
        "met: share of splits whose test rate reaches τ. †: needs the group to predict.",
        style="dim",
    )
    for error in dict.fromkeys(e for e in means["error"] if e):
        console.print(f"left out: {_short(error, 200)}", style="yellow")


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
