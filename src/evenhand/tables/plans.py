"""What becomes of a column: a plan of plain values that can be shown, saved and restored."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import InputError, Parameter
from evenhand.tables.columns import CellError, Column
from evenhand.tables.dates import MONTHS, WEEKDAYS
from evenhand.tables.formats import ColumnFormat
from evenhand.tables.groups import MISSING
from evenhand.tables.identifiers import (
    FEWEST_ROWS_OF_NAMES,
    identifier,
    is_identifier_name,
    repeated_identifier,
)

OTHER = "(other)"

LARGEST = 1e100


@dataclass(frozen=True)
class ColumnPlan:
    """What becomes of a column.

    Parameters
    ----------
    column : str
        Its name.
    kind : {"number", "category", "date", "score", "dropped"}
        How it is read; a score is a number as it stands, in every row.
    action : str
        What was decided, in words.
    names : tuple of str
        Names of the inputs made of it.
    fill, mean, scale : float
        Of a number, and of the days of a date: what stands for missing values, and the mean and
        standard deviation it is brought to 0 and 1 with.
    indicator : bool
        Whether a further input says that the value was missing.
    tolerant : bool
        Whether values that are no numbers, or no dates, count as missing, because the table it was
        learned from had a few.
    categories : tuple of str
        Of a category, the values that have an input each. ``"(missing)"`` and ``"(other)"``, if
        there, stand for missing and for all other values; without the latter an unseen value has
        zeros everywhere.
    written : str
        How numbers or dates are written, if they are text: such as ``"decimal comma"``, ``"in $"``
        or ``"day first"``; empty for ``1,234.5`` and ``2024-12-31``.
    """

    column: str
    kind: str
    action: str
    names: tuple[str, ...] = ()
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    indicator: bool = False
    tolerant: bool = False
    categories: tuple[str, ...] = field(default=())
    written: str = ""

    def date_names(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Names of the inputs for the months and for the weekdays of a date."""
        names = self.names[1 + self.indicator :]
        return names[: len(MONTHS)], names[len(MONTHS) :]


def drop(column: str, action: str) -> ColumnPlan:
    """Plan to leave a column out."""
    return ColumnPlan(column, "dropped", action)


def plan_number(
    values: NDArray[np.float64],
    name: str,
    format_: ColumnFormat,
    derived_name: Callable[[str, str], str],
    *,
    sure: bool,
) -> ColumnPlan:
    """Plan a column of numbers or of days, NaN where missing.

    ``derived_name`` names an input made of a column; ``sure`` says that it is no identifier.
    """
    infinite = int(np.isinf(values).sum())
    if infinite:
        raise InputError("infinite_column", column=name, n=infinite, s="s" * (infinite > 1))
    present = values[~np.isnan(values)]
    if not len(present):
        return drop(name, "no value in any row")
    least, most = float(present.min()), float(present.max())
    if max(-least, most) > LARGEST:
        raise InputError("too_large_column", column=name, value=max(-least, most))
    n_missing = len(values) - len(present)
    if least == most and not n_missing:
        return drop(name, "the same value in every row")
    why = identifier(values, name) if format_.kind == "number" and not sure else ""
    if why:
        return drop(name, f"{why}; {Parameter('kinds', {name: 'number'})} keeps it")
    words = [format_.note] if format_.note else []
    if n_missing:
        fill = _written(float(np.median(present)), format_.kind)
        words.append(
            f"{n_missing:,} missing value{'s' * (n_missing > 1)} set to the median, {fill}"
        )
    names: tuple[str, ...] = (name,)
    names += (derived_name(name, " is missing"),) if n_missing else ()
    if format_.kind == "date":
        words.append("as days, month and weekday")
        names += tuple(input_name(derived_name(name, ": month"), m) for m in MONTHS)
        names += tuple(input_name(derived_name(name, ": weekday"), d) for d in WEEKDAYS)
    return ColumnPlan(
        name,
        format_.kind,
        "; ".join(words) or "as it is",
        names,
        indicator=bool(n_missing),
        tolerant=format_.tolerant,
        written=format_.written,
    )


def _written(value: float, kind: str) -> str:
    """Write a number, or the day that so many days since 1970 are."""
    if kind == "date":
        return str(np.datetime64("1970-01-01") + int(value))
    return f"{value:,.0f}" if 1e4 <= abs(value) < 1e9 else f"{value:.4g}"


def plan_score(values: NDArray[np.float64], name: str, format_: ColumnFormat) -> ColumnPlan:
    """Plan a column of scores: neither filled nor scaled."""
    present = values[np.isfinite(values)]
    if len(present) == len(values) and present.min() == present.max():
        raise InputError("constant_scores", where=f"in column {name!r}", score=float(present[0]))
    written = format_.written
    return ColumnPlan(name, "score", "the score, as it is", (name,), tolerant=True, written=written)


def plan_category(
    texts: Column, format_: ColumnFormat, *, min_count: int, max_categories: int, sure: bool
) -> ColumnPlan:
    """Plan a column of categories; ``sure`` says that it is no identifier."""
    name, counts = texts.name, dict(zip(texts.levels, texts.counts().tolist(), strict=True))
    n_present = sum(counts.values())
    n_missing = len(texts) - n_present
    if not counts:
        return drop(name, "no value in any row")
    if len(counts) == 1 and not n_missing:
        return drop(name, "the same value in every row")
    why = ""
    if len(counts) == n_present and n_present >= FEWEST_ROWS_OF_NAMES:
        why = "another value in every row: an identifier"
    elif is_identifier_name(name):
        why = repeated_identifier(len(counts), n_present, "values")
    if why and not sure:
        return drop(name, f"{why}; {Parameter('kinds', {name: 'category'})} keeps it")
    order = sorted(counts, key=lambda value: (-counts[value], value))
    # Of two values one is enough, however rare the other is.
    least = min_count if len(order) > 2 else 1
    frequent = [value for value in order[:max_categories] if counts[value] >= least]
    own = sorted(set(frequent) - {MISSING, OTHER})
    n_rare = len(order) - len(own)
    words = [format_.note] if format_.note else []
    if not own and not n_missing:
        words.append(f"{len(order):,} values, none of them in {least} rows")
        return drop(name, f"{'; '.join(words)}: nothing to learn from")
    words.append(f"{len(order):,} value{'s' * (len(order) > 1)}")
    if n_rare:
        words.append(f"{n_rare:,} rare one{'s' * (n_rare > 1)} taken together")
        own.append(OTHER)
    if n_missing:
        words.append(f"{n_missing:,} missing, a value of their own")
        own.append(MISSING)
    names = tuple(input_name(name, value) for value in own)
    return ColumnPlan(name, "category", "; ".join(words), names, categories=tuple(own))


def lost_zeros(texts: Column, plan: ColumnPlan) -> tuple[str, str] | None:
    """Find a value that is a category but for its leading zeros, and that category.

    A spreadsheet, or a reader that takes codes for numbers, writes 00501 as 501.
    """
    bare = {c.lstrip("0"): c for c in plan.categories if c[:1] == "0" and c.isdecimal()}
    if not bare:
        return None
    counts = zip(texts.levels.tolist(), texts.counts().tolist(), strict=True)
    lost = [value for value, n in counts if n and value in bare and value not in plan.categories]
    return (min(lost), bare[min(lost)]) if lost else None


def category_places(texts: Column, plan: ColumnPlan) -> NDArray[np.int32]:
    """Give the place of each row's category; −1 where nothing stands for its value."""
    place = {value: i for i, value in enumerate(plan.categories)}
    other = place.pop(OTHER, -1)
    missing = place.pop(MISSING, other)
    places = [place.get(value, other) for value in texts.levels]
    return texts.spread(np.array(places, dtype=np.int32), missing)


def check_scores(values: NDArray[np.float64], column: Column) -> None:
    """Refuse a row without a score, by what it holds instead."""
    wrong = np.flatnonzero(np.isnan(values))
    if len(wrong):
        i, name = int(wrong[0]), column.name
        cell = column.as_text().text_values()[i]
        held = "no value" if cell is None else f"the value {cell!r}"
        about = {"n": len(wrong), "s": "s" * (len(wrong) > 1)}
        raise CellError("no_score", column=name, held=held, row=i + 1, **about)


def check_sizes(values: NDArray[np.float64], column: str) -> None:
    """Refuse numbers that no model can work with, by their row."""
    infinite = np.flatnonzero(np.isinf(values))
    if len(infinite):
        raise CellError("infinite_value", column=column, row=int(infinite[0]) + 1)
    large = np.flatnonzero(np.abs(values) > LARGEST)
    if len(large):
        raise CellError(
            "too_large_value", column=column, value=float(values[large[0]]), row=int(large[0]) + 1
        )


def input_name(column: str, value: Any) -> str:
    """Name the input for a value of a column."""
    return f"{column} = {value}"
