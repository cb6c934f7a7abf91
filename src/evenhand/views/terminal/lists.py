"""The screens of ``evenhand compare`` and ``evenhand datasets``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from evenhand.core.errors import Parameter
from evenhand.core.targets import READ
from evenhand.views.formats import NONE
from evenhand.views.targets import TARGET_WORDS
from evenhand.views.terminal.screen import Grid, Screen, short


def show_comparison(comparison: pd.DataFrame) -> None:
    """Show the means of a comparison, a table for each τ."""
    from evenhand.peers import summarize

    screen, means = Screen(), summarize(comparison)
    kind = str(comparison["comparison"].iloc[0])
    words, (measured, sign) = TARGET_WORDS[kind], READ[kind]
    name = "tau" if kind == "ratio" else "epsilon"
    by = str(comparison["attributes"].iloc[0])
    about = ("favourable_answer", "rows_dropped", "small_groups", "notes")
    answer, dropped, small, notes = (str(comparison[c].iloc[0]) for c in about)
    screen.say(f"favourable answer: {short(answer, 100)}", "bold")
    if dropped:
        screen.say(f"left out: {short(dropped, 400)}", "dim")
    if small:
        screen.say(
            f"left out, too few rows to test on: {short(small, 400)}; no method is fitted to them "
            "or judged by them.",
            "yellow",
        )
    weight = comparison["weight"].iloc[0]
    if weight is not None:
        screen.say(f"Fits and figures are weighted by {short(weight, 100)}.", "yellow")
    if by != "crossed":
        too = ", and of their combinations" * (by == "both")
        screen.say(
            f"Groups are those of each sensitive column by itself{too}: the worst counts. "
            "Methods that know one column of groups are given the combinations.",
            "yellow",
        )
    if notes:
        screen.say(f"note: {short(notes, 1000)}", "yellow")
    for level, part in means.groupby(name):
        title = f"{comparison.attrs['rate_name']}, {words.goal(sign * level)}, test data"
        table = Grid("method", "accuracy", words.name, "met", "seconds", title=title)
        for row in part.itertuples():
            method = f"{row.method}{' †' if row.needs_group else ''}"
            if row.error:
                table.row(method, NONE, NONE, NONE, "")
                continue
            met = f"{100 * row.met:.0f}%" if row.met == row.met else NONE
            rate = words.text(sign * getattr(row, measured), sign * level)
            table.row(method, f"{row.accuracy:.4f}", rate, met, f"{row.seconds:.1f}")
        screen.print(table)
    screen.say(
        f"met: share of the splits in which the {words.name} on test data reaches {words.symbol}. "
        "†: needs the group to predict. Every method that is fitted here is chosen by its "
        f"{words.name} on the training part alone, without the margin that train leaves by default "
        f"({screen.spell(Parameter('confidence', 0.9))}); with it {words.symbol} is met more "
        "often.",
        "dim",
    )
    if kind != "ratio" or by != "crossed":
        of = " between the combinations" * (by != "crossed")
        screen.say(
            f"A method that cannot be asked for this itself is asked for several ratios{of}, and "
            f"gets the most accurate that reaches {words.symbol} on the training part.",
            "dim",
        )
    bad = means[means["ineligible"] != ""]
    for (method, share, why), part in bad.groupby(["method", "eligible", "ineligible"], sort=False):
        levels = ", ".join(f"{level:g}" for level in part[name])
        screen.say(
            f"{method}, {words.symbol} = {levels}: in {100 * (1 - share):.0f}% of the splits its "
            f"answers do not count and {words.symbol} is not met, because {short(why, 120)}.",
            "yellow",
        )
    for error, part in means[means["error"] != ""].groupby("error", sort=False):
        names = ", ".join(dict.fromkeys(part["method"]))
        screen.say(f"left out: {names}: {short(str(error), 200)}", "yellow")


def show_datasets(datasets: Sequence[dict[str, Any]]) -> None:
    """Show the datasets."""
    words = ("label", "sensitive", "what it is")
    table = Grid("name", "rows", *words, left=words)
    for d in datasets:
        title = d["title"] if d["inside"] else f"{d['title']} (downloaded once)"
        table.row(d["name"], f"{d['rows']:,}", d["label"], ", ".join(d["sensitive"]), title)
    Screen().print(table)
    screen = Screen()
    screen.say(f"evenhand train {screen.spell(Parameter('demo', 'adult'))} needs no file.", "dim")
