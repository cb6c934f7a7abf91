"""The screens of ``evenhand compare`` and ``evenhand datasets``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pandas as pd

from evenhand.core.errors import Parameter
from evenhand.views.formats import NONE
from evenhand.views.targets import words_of
from evenhand.views.terminal.screen import Grid, Screen, short


def show_comparison(comparison: pd.DataFrame) -> None:
    """Show the means of a comparison, a table for each τ."""
    from evenhand.peers import summarize

    screen, means, words = Screen(), summarize(comparison), words_of(comparison.attrs)
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
    if notes:
        screen.say(f"note: {short(notes, 1000)}", "yellow")
    for tau, part in means.groupby("tau"):
        title = f"{words.goal(tau)}, test data"
        table = Grid("method", "accuracy", words.name, "met", "seconds", title=title)
        for row in part.itertuples():
            name = f"{row.method}{' †' if row.needs_group else ''}"
            if row.error:
                table.row(name, NONE, NONE, NONE, "")
                continue
            met = f"{100 * row.met:.0f}%" if row.met == row.met else NONE
            rate = words.text(row.rate, tau)
            table.row(name, f"{row.accuracy:.4f}", rate, met, f"{row.seconds:.1f}")
        screen.print(table)
    screen.say(
        f"met: share of the splits in which the {words.name} on test data reaches {words.symbol}. "
        "†: needs the group to predict. Every method that is fitted here is chosen by its "
        f"{words.name} on the training part alone, without the margin that train leaves by default "
        f"({screen.spell(Parameter('confidence', 0.9))}); with it {words.symbol} is met more "
        "often.",
        "dim",
    )
    bad = means[means["ineligible"] != ""]
    for (name, share, why), part in bad.groupby(["method", "eligible", "ineligible"], sort=False):
        taus = ", ".join(f"{tau:g}" for tau in part["tau"])
        screen.say(
            f"{name}, {words.symbol} = {taus}: in {100 * (1 - share):.0f}% of the splits its "
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
