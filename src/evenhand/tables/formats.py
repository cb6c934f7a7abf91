"""What a column holds: numbers, dates or categories, and how they are written."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import InputError, Parameter
from evenhand.tables.columns import Column
from evenhand.tables.dates import DATE_ORDERS, find_date_style
from evenhand.tables.numbers import find_number_style, is_number_style, shortened

# A column of text is read as numbers, or as dates, if this share of its values are, and it has this
# many rows at least; the other values then count as missing.
MOSTLY, FEWEST_MOSTLY = 0.98, 50
# Words beside numbers, or dates, that are so few that they may all mean that a value is missing.
MOST_WORDS = 3
COLUMN_TYPES = ("number", "date", "category", "score")


@dataclass(frozen=True)
class ColumnFormat:
    """How a column is read.

    Parameters
    ----------
    kind : {"number", "date", "category", "score", "dropped"}
        What it holds.
    written : str
        How its numbers or dates are written: ``"decimal comma"``, ``"in $"``, ``"day first"``;
        empty for ``1,234.5`` and ``2024-12-31``.
    tolerant : bool
        Whether values that are no numbers, or no dates, count as missing.
    note : str
        What is odd about how it is read, in words.
    remark : str
        What else to know of it before it is an input, in words.
    """

    kind: str = "category"
    written: str = ""
    tolerant: bool = False
    note: str = ""
    remark: str = ""


def _may_be_written(kind: str, written: str) -> bool:
    if kind in ("number", "score"):
        return is_number_style(written)
    return written in DATE_ORDERS if kind == "date" else not written


def check_written(kind: str, written: str) -> None:
    """Refuse a number style, or a date style, that there is not."""
    if not _may_be_written(kind, written):
        raise InputError("unknown_style", type=kind, written=written)


def parse_kind(text: str, column: str) -> tuple[str, str | None]:
    """Tell a column's type and style, if it is given, from words such as "date, month first"."""
    kind, _, written = text.partition(", ")
    plain = kind in ("number", "score") and written == "decimal point"
    if kind not in COLUMN_TYPES or not _may_be_written(kind, "" if plain else written):
        raise InputError("unknown_kind", column=column, value=text)
    return kind, "" if plain else written or None


def find_format(
    texts: Column, *, kind: str | None = None, written: str | None = None
) -> ColumnFormat:
    """Say how a column of text is best read; ``kind`` and ``written`` are what a user has said.

    Numbers need one decimal mark and one currency throughout, dates one order. Where both marks
    would do, commas separate thousands; where both orders would do, the day is first.
    """
    counts = texts.counts()
    total = int(counts.sum())
    score = kind == "score"
    kind = "number" if score else kind
    if kind == "category" or not total:
        return ColumnFormat("score" if score else kind or "category", tolerant=score)
    if kind is None and _are_codes(texts, counts):
        return ColumnFormat(note="codes with leading zeros")
    but_for = ""
    for tried, find in (("number", find_number_style), ("date", find_date_style)):
        if kind not in (None, tried):
            continue
        style, good, note = find(texts, counts, written)
        n_bad = total - int(counts[good].sum())
        if kind is None and not n_bad:
            return ColumnFormat(tried, style, note=note)
        words = most_frequent(texts, np.where(good, 0, counts))
        if kind is not None and n_bad == total:
            asked = f"{tried}, {written}" if written else tried
            about = {"column": texts.name, "values": words}
            if score:
                raise InputError("text_as_scores", scores=Parameter("scores"), **about)
            raise InputError("no_value_of_kind", kind=asked, **about)
        what = f"a value that is no {tried}" if n_bad == 1 else f"{n_bad:,} that are no {tried}s"
        what = f"{what} ({words}), count as missing"
        if kind is not None:
            what = what if n_bad else f"values that are no {tried} count as missing"
        elif total < FEWEST_MOSTLY or n_bad > (1 - MOSTLY) * total:
            if 2 * n_bad < total and int((~good).sum()) <= MOST_WORDS < int(good.sum()):
                advice = Parameter("kinds", {texts.name: tried})
                but_for = (
                    f"{tried}s but for {words} in {n_bad:,} rows; if that means missing: {advice}"
                )
            continue
        read_as = "score" if score else tried
        return ColumnFormat(
            read_as, style, tolerant=True, note="; ".join(filter(None, [note, what]))
        )
    return ColumnFormat(note=but_for)


def most_frequent(texts: Column, counts: NDArray[np.intp]) -> str:
    """Name the three most frequent texts of those that are counted."""
    order = np.argsort(-counts, kind="stable")[:3]
    return ", ".join(repr(shortened(texts.levels[i])) for i in order if counts[i])


def _are_codes(texts: Column, counts: NDArray[np.intp]) -> bool:
    """Say whether digits are names: some begin with 0, and all are as long, or these are many."""
    levels = texts.levels.tolist()
    led = np.array([t[0] == "0" and len(t) > 1 and t.isdecimal() for t in levels])
    if not led.any():
        return False
    as_long = len({len(t) for t in levels}) == 1 and all(t.isdigit() for t in levels)
    return as_long or bool(counts[led].sum() > (1 - MOSTLY) * counts.sum())
