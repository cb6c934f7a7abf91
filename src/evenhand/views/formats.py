"""Numbers and lists of names as people read them, the same on screens and on the page."""

from __future__ import annotations

import re
from math import floor
from typing import Any

NONE = "–"

# A picture's accuracies are those of points up to this rate: beyond it the last improvement of the
# rate may cost all accuracy, which would flatten everything else.
VISIBLE_RATE = 0.995


def plain_name(summary: dict[str, Any]) -> str:
    """Name what the saved model is compared with: the same model where no target is asked for."""
    return "the model as it was" if summary.get("adjusted") else optimum_name(summary)


def optimum_name(summary: dict[str, Any]) -> str:
    """Name what the fit begins with: the most accurate score of its columns."""
    estimates = "the most accurate score of the same estimates"
    return estimates if summary.get("boosted") else "plain logistic regression"


def fixed(x: float, digits: int) -> str:
    """Write a number with so many digits, halves upwards, as ``page.js`` does."""
    scale = 10**digits
    n = floor(abs(x) * scale + 0.5)
    sign = "−" if x < 0 and n else ""
    return f"{sign}{n // scale}" + (f".{n % scale:0{digits}d}" if digits else "")


def grouped(x: float, digits: int) -> str:
    """Write a number as :func:`fixed` does, with a comma between thousands."""
    whole, point, rest = fixed(x, digits).partition(".")
    return re.sub(r"(?<=\d)(?=(\d{3})+$)", ",", whole) + point + rest


def percent(x: float | None) -> str:
    """Write a share as a percentage."""
    return NONE if x is None else f"{fixed(100 * x, 1)}%"


def points(x: float | None) -> str:
    """Write a difference of shares in percentage points, with its sign."""
    return NONE if x is None else f"{'+' if x >= 0 else ''}{fixed(100 * x, 1)}"


def thousands(n: float) -> str:
    """Write a count with a comma between thousands."""
    return f"{floor(n + 0.5):,}"


def fill_in(sentence: str, values: dict[str, str]) -> str:
    """Put values in the place of their names in braces; what they hold is not looked at again."""
    return re.sub(r"\{(\w+)\}", lambda name: values[name[1]], sentence)


def listed(items: list[str], joint: str = "and") -> str:
    """Join with commas and a last "and"."""
    if len(items) < 2:
        return "".join(items)
    return f"{', '.join(items[:-1])} {joint} {items[-1]}"


def quoted(name: str) -> str:
    """Put a name from the table in quotes, its direction of writing kept to itself."""
    return f"“\u2068{name}\u2069”"
