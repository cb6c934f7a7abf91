"""How what is maximised is written: on screens, in pictures and on the page."""

from __future__ import annotations

from typing import Any

from evenhand.core.objectives import ACCURACY, OUTCOMES, Objective
from evenhand.views.formats import NONE, grouped, listed, percent


def objective_words(objective: Objective) -> dict[str, Any]:
    """Give what the page's script and its sentences take.

    A value is shown as ``per`` times itself, with so many ``digits`` and the ``unit``.
    """
    name, share = objective.words, objective.per == 1
    words: dict[str, Any] = {"worth": name, "Worth": name.capitalize()}
    words |= {"per": 100.0, "unit": "%", "digits": 1, "top": "most accurate"}
    words |= {"lost": "points less accurate", "gained": "points more accurate"}
    words |= {"alike": "as accurate as", "under": "less accurate than"}
    if objective == ACCURACY:
        return words
    points = "points " * share
    words |= {"top": "best", "lost": f"{points}less {name}", "gained": f"{points}more {name}"}
    words |= {"alike": f"as much {name} as", "under": f"at less {name} than"}
    if not share:
        words |= {"per": objective.per, "unit": "", "digits": objective.digits}
    return words


def value_text(words: dict[str, Any], value: float | None) -> str:
    """Write a value as the page does, a share as a percentage, by its :func:`objective_words`."""
    if value is None:
        return NONE
    return grouped(words["per"] * value, words["digits"]) + str(words["unit"])


def heading(objective: Objective) -> str:
    """Name the value above a column of the terminal, where there is little room."""
    return objective.words.removesuffix(" decisions")


def cell_text(objective: Objective, value: float) -> str:
    """Write a value in a table of the terminal: a share with four digits."""
    return f"{value:.4f}" if objective.per == 1 else value_text(objective_words(objective), value)


def says(objective: Objective, value: float) -> str:
    """Say what a value is, behind whoever has it."""
    return objective.text(value, percent)


def objective_sentence(objective: Objective) -> str:
    """Say what is maximised, if it is not the accuracy."""
    if objective.name == "balanced_accuracy":
        return (
            "the balanced accuracy: of the rows of each label the share answered rightly, and of "
            "these shares the mean."
        )
    if objective.name != "profit":
        return ""
    amounts = []
    for y, answer, _, outcome in OUTCOMES.values():
        gain = objective.gains[y][answer]
        if gain:
            amounts.append(f"{outcome} {'costs' if gain < 0 else 'earns'} {abs(gain):,.6g}")
    return (
        f"the profit; {listed(amounts)}, positive being the favourable answer. It is shown per "
        "1,000 decisions, in the unit of these numbers; a cost is negative."
    )
