"""What a verdict says of the population, in the same words on every screen and on the page."""

from __future__ import annotations

from collections.abc import Mapping
from math import floor
from typing import Any

from evenhand.core.targets import Target
from evenhand.statistics.verdicts import FAILS, HOLDS, UNTOLD
from evenhand.views.formats import thousands
from evenhand.views.targets import TARGET_WORDS, TargetWords

# What a verdict on the population rests on.
ASSUMED = (
    "The population is whatever the rows are independent draws from; of rows that a model was "
    "fitted to nothing follows"
)
# What stands where intervals would.
NO_INTERVALS = "of weighted rows no exact interval is known"
STYLES = {HOLDS: "green", FAILS: "red", UNTOLD: "yellow"}


def population_sentence(
    verdict: Mapping[str, Any] | None,
    words: TargetWords,
    name: str = "",
    who: str = "",
    target: Target | None = None,
) -> str:
    """Say whether the target holds in the population; empty where the rule cannot be judged.

    ``verdict`` are plain values of :class:`~evenhand.statistics.verdicts.Verdict`, ``name`` is that
    of the value, if not the comparison's, and ``who`` are the population, if not all. Where groups
    are left out of the comparison, ``verdict["groups"]`` is ``"compared"``; ``verdict["rows"]`` are
    the rows that it rests on, if not all of the table. Of a mixed ``target`` each demand is named.
    """
    if verdict is None or verdict["rule"] == "cannot be judged":
        return ""
    if verdict["at_least"] is None:
        why = f": {NO_INTERVALS}" * bool(verdict.get("weighted"))
        goal = words.goal(verdict["level"])
        if target is not None and target.comparison == "mixed":
            return f"Whether {_demands(target)} in the population cannot be told{why}."
        return f"Whether {goal} holds in the population cannot be told{why}."
    if target is not None and target.comparison == "mixed":
        return _mixed_sentence(verdict, target, who or "in the population")
    level, found = verdict["level"], verdict["population"]
    low, high = (words.text(verdict[end], level) for end in ("at_least", "at_most"))
    ends = {HOLDS: f"{low} or {words.better}", FAILS: f"{high} or {words.worse}"}
    goal, who, sure = words.goal(level), who or "in the population", _sure(verdict)
    whose = " for the groups compared" * (verdict.get("groups") == "compared")
    rows, name = verdict.get("rows"), name or words.name
    these = f"the {rows}" if rows else "these rows"
    if found in ends:
        return (
            f"{who[0].upper()}{who[1:]} {goal} {found}{whose}: the {name} is {ends[found]}, "
            f"with {sure}."
        )
    text = (
        f"Whether {goal} holds{whose} {who} cannot be told from {these}: the {name} is "
        f"{ends[HOLDS]}, and {ends[FAILS]}, each with {sure}."
    )
    needed = verdict["rows_needed"]
    if needed is not None:
        text += f" About {thousands(needed)} {rows or 'rows'} at the same rates would tell."
    return text


def _demands(target: Target) -> str:
    """Write what a mixed target demands, each comparison by itself, to the looser side."""
    parts = []
    for part in target.components:
        words, level = TARGET_WORDS[part.comparison], floor(1e4 * part.level + 1e-6) / 1e4
        parts.append(f"the {part.name} is {words.level(max(level, -1.0))} or {words.better}")
    return " and ".join(parts)


def _mixed_sentence(verdict: Mapping[str, Any], target: Target, who: str) -> str:
    """Say whether every demand of a mixed target holds in the population."""
    found, sure = verdict["population"], _sure(verdict)
    whose = " for the groups compared" * (verdict.get("groups") == "compared")
    rows = verdict.get("rows")
    if found == HOLDS:
        return (
            f"{who[0].upper()}{who[1:]} every target holds{whose}: "
            f"{_demands(target.at(verdict['at_least']))}, with {sure}."
        )
    demands = _demands(target)
    if found == FAILS:
        return f"{who[0].upper()}{who[1:]} not all of this holds{whose}: {demands}, with {sure}."
    these = f"the {rows}" if rows else "these rows"
    text = f"Whether {demands}{whose} {who} cannot be told from {these} with {sure}."
    needed = verdict["rows_needed"]
    if needed is not None:
        text += f" About {thousands(needed)} {rows or 'rows'} at the same rates would tell."
    return text


def weight_sentence(column: str | None, survey: bool | None = None) -> str:
    """Say that figures are weighted, and by what; ``survey`` says what training takes it for."""
    if column is None:
        return ""
    means = {
        None: "",
        True: ", the number of people that a row of a survey speaks for",
        False: ", the number of equal rows that a row stands for",
    }[survey]
    return f"All figures are weighted by {column}{means}; {NO_INTERVALS}."


def bounds_sentence(verdict: Mapping[str, Any] | None, words: TargetWords) -> str:
    """Say between which values the target's value in the population is, if that is known."""
    if verdict is None or verdict["at_least"] is None:
        return ""
    ends = bounds_text([verdict["at_least"], verdict["at_most"]], words, verdict["level"])
    return f"in the population {ends}, each end with {_sure(verdict)}"


def bounds_text(bounds: Any, words: TargetWords, level: float) -> str:
    """Write between which values a target's value in the population is."""
    if bounds is None or bounds[0] is None:
        return ""
    return "–".join(words.text(end, level) for end in sorted(bounds, key=lambda v: words.sign * v))


def _sure(verdict: Mapping[str, Any]) -> str:
    return f"{100 * verdict['confidence']:g}% confidence"
