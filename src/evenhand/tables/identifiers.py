"""Columns that tell rows apart, and columns that belong together, by their names and values."""

import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

# A column in which every row is different tells rows apart, and nothing else: text of at least this
# many rows, and whole numbers, if they also look like numbers of rows, not like a quantity.
FEWEST_ROWS_OF_NAMES, FEWEST_ROWS_OF_NUMBERS = 20, 100
# The least share of the whole numbers between the smallest and the largest that are there.
FEW_GAPS = 0.9
# The most rows, on average, with the same number in a column that is named as an identifier.
MOST_ROWS_OF_ONE = 10
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ID_WORDS = frozenset({"id", "ids", "identifier", "key", "nbr", "nr", "uuid", "guid"})
# An account_number tells accounts apart; number_of_children is a quantity.
_LAST_ID_WORDS = frozenset({"no", "number"})
# A column of an index may be a quantity, too, unless every row has another.
_INDEX_WORDS = frozenset({"index", "idx"})


def is_identifier_name(column: str) -> bool:
    """Say whether a name is an identifier's, as patient_nbr, customerID and case number."""
    words = [word.lower() for word in _WORDS.findall(column)]
    return bool(_ID_WORDS & set(words)) or (bool(words) and words[-1] in _LAST_ID_WORDS)


def identifier(values: NDArray[np.float64], column: str) -> str:
    """Say why a column of numbers is an identifier; empty if it is not.

    Every row has another whole number, and either they are consecutive, or there are 100 rows at
    least and the numbers have few gaps, rise or fall from row to row, or the column's name says so.
    Or the name says so, and a whole number has 10 rows at most on average.
    """
    known = values[~np.isnan(values)]
    n, named = len(known), is_identifier_name(column)
    if n < FEWEST_ROWS_OF_NAMES or (known % 1 != 0).any():
        return ""
    n_distinct = len(np.unique(known))
    if n_distinct < len(values):
        return repeated_identifier(n_distinct, n, "whole numbers") if named else ""
    span = values.max() - values.min() + 1
    if span == n:
        return "numbers the rows: an identifier"
    if n < FEWEST_ROWS_OF_NUMBERS:
        return ""
    if n >= FEW_GAPS * span:
        return "numbers the rows, with gaps: an identifier"
    steps = np.diff(values)
    if (steps > 0).all() or (steps < 0).all():
        return "another whole number in every row, in order: an identifier"
    if named or _INDEX_WORDS & {word.lower() for word in _WORDS.findall(column)}:
        return "another whole number in every row, and its name: an identifier"
    return ""


def repeated_identifier(n_distinct: int, n_rows: int, what: str) -> str:
    """Say why a column with the name of an identifier is one though values repeat, or nothing."""
    if n_rows < FEWEST_ROWS_OF_NUMBERS or n_distinct * MOST_ROWS_OF_ONE < n_rows:
        return ""
    return f"{n_distinct:,} different {what} in {n_rows:,} rows, and its name: an identifier"


# Names that number the columns of a table, whatever they hold.
_ANY_COLUMN = frozenset(
    {"attr", "attribute", "col", "column", "feat", "feature", "field", "input", "item", "question"}
    | {"var", "variable"}
)


def siblings(columns: Sequence[str]) -> list[list[str]]:
    """Find columns whose names differ by a number only, as diag_1 and diag_2; not x1 and x2."""
    families: dict[str, list[str]] = {}
    for name in columns:
        stem = re.sub(r"[0-9]+", "0", name)
        words = [word.lower() for word in _WORDS.findall(stem)]
        if any(len(word) > 1 and word not in _ANY_COLUMN for word in words):
            families.setdefault(stem, []).append(name)
    return [family for family in families.values() if len(family) > 1]
