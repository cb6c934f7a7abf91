"""What a column holds: numbers, dates or categories, and how they are written.

:func:`find_reading` looks at a column of text and says how to read it, as a :class:`Reading` of
plain values; :func:`read_numbers` and :func:`read_days` then read it so, whichever rows come
together.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

__all__ = [
    "CellError",
    "MissingWords",
    "Reading",
    "as_frame",
    "check_width",
    "check_words",
    "check_written",
    "count_words",
    "date_parts",
    "find_reading",
    "identifier",
    "is_identifier_name",
    "is_number",
    "known_values",
    "listed",
    "numbered",
    "parse_kind",
    "read_days",
    "read_numbers",
    "read_texts",
    "refuse_words",
    "repeated_identifier",
    "siblings",
]

# Words that stand for a value that is not there, unless a user says which do. What has a value of
# its own in a saved model must stay one, so none may be added here.
NO_VALUE = (
    *("?", "-", "--", "NA", "N/A", "n/a", "#N/A", "<NA>"),
    *("NaN", "nan", "null", "NULL", "None"),
)
# A column of text is read as numbers, or as dates, if so many of its values are, and it has so many
# rows at least; the other values then count as missing.
MOSTLY, FEWEST_MOSTLY = 0.98, 50
# Words beside numbers, or dates, that are so few that they may all mean that a value is missing.
MOST_WORDS = 3
KINDS = ("number", "date", "category")
# How dates may be written; the first that fits most rows is taken.
ISO, DATE_ORDERS = "", ("", "year first", "day first", "month first")
COMMA = "decimal comma"

_CURRENCY, _SPACES = "$€£¥₹₽₩₺₪₦₱", " \u00a0\u2009\u202f"


def _number_pattern(decimal: str, thousands: str) -> re.Pattern[str]:
    """Numbers as people write them, such as -$1,234.5 or 12 %, with these marks."""
    # A group of three after 0 is no thousand: 0,512 has a decimal comma.
    whole = rf"[1-9]\d{{0,2}}(?P<mark>[{thousands}'’{_SPACES}])\d{{3}}(?:(?P=mark)\d{{3}})*|\d+"
    size = rf"(?:(?:{whole})(?:{decimal}\d*)?|{decimal}\d+)(?:[eE][+-]?\d+)?|[iI]nf"
    before = rf"(?P<sign>[+\-−]?)(?:(?P<before>[{_CURRENCY}])\s?)?(?P<inner>[+\-−]?)"
    return re.compile(rf"{before}(?P<size>{size})\s*(?P<after>[%{_CURRENCY}]?)")


_PLAIN = re.compile(r"[+-]?[0-9]+(?:\.[0-9]*)?(?:[eE][+-]?[0-9]+)?")
_NUMBER = {"": _number_pattern(r"\.", ","), COMMA: _number_pattern(",", ".")}
_MARKS = str.maketrans("", "", f",'’{_SPACES}")
_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_TIME = r"(?:(?:T|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(?:([AaPp])\.?[Mm]\.?)?)?"
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([./-]) ?(\d{{1,2}})\2 ?(\d{{4}}){_TIME}")
_YEAR_FIRST = re.compile(rf"(\d{{4}})([./-])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_CODE = re.compile(r"0\d+")


class CellError(ValueError):
    """A cell cannot be read; ``row`` counts from 0.

    Parameters
    ----------
    before, after : str
        What is said before and after the row is named.
    row : int
        The row, among those that were read.
    """

    def __init__(self, before: str, row: int, after: str) -> None:
        super().__init__(before, row, after)
        self.before, self.row, self.after = before, row, after

    def __str__(self) -> str:
        return f"{self.before} in row {self.row + 1}{self.after}"

    def moved(self, rows: int) -> CellError:
        """Give the same error for a table that has so many rows before these."""
        return CellError(self.before, self.row + rows, self.after)


@dataclass(frozen=True)
class Reading:
    """How a column is read.

    Parameters
    ----------
    kind : {"number", "date", "category", "dropped"}
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


@dataclass(frozen=True)
class MissingWords:
    """Which words stand for a value that is not there; an empty cell always does.

    Parameters
    ----------
    words : frozenset of str, optional
        The words; by default those of ``NO_VALUE``, which nobody has chosen.
    kept : frozenset of str
        Columns in which they are values.
    """

    words: frozenset[str] | None = None
    kept: frozenset[str] = frozenset()

    @classmethod
    def chosen(
        cls, na: str | Collection[str] | None, keep_na: str | Collection[str]
    ) -> MissingWords:
        """Make them of what a user says."""
        words = [na] if isinstance(na, str) else na
        kept = [keep_na] if isinstance(keep_na, str) else keep_na
        return cls(None if words is None else frozenset(w.strip() for w in words), frozenset(kept))

    def of(self, column: str) -> frozenset[str]:
        """Give the words that stand for no value in a column."""
        if column in self.kept:
            return frozenset()
        return frozenset(NO_VALUE) if self.words is None else self.words


BUILT_IN = MissingWords()


# Columns of no more rows are looked at without pandas.
FEW_VALUES = 1000
# Each column is looked at by itself, which takes a few milliseconds however short it is.
MOST_COLUMNS = 10_000

# ---- tables and their values -----------------------------------------------------------------


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Name the first few."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def as_frame(X: Any) -> Any:
    """See a pandas, polars or pyarrow table as a narwhals frame with a name for every column."""
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])] if X.ndim == 2 else None)
    if isinstance(X, pd.DataFrame) and not all(isinstance(name, str) for name in X.columns):
        X = X.rename(columns=str)
    names = pd.Index(getattr(X, "column_names", getattr(X, "columns", [])))
    if names.has_duplicates:
        twice = names[names.duplicated()][0]
        raise ValueError(f"the table has two columns called {twice!r}; rename one of them.")
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(
            f"the table is a {type(X).__name__}; give a pandas or polars frame with named columns."
        ) from None


def check_width(frame: Any) -> None:
    """Refuse a table of so many columns that looking at each would take all day."""
    n = len(frame.columns)
    if n > MOST_COLUMNS:
        raise ValueError(
            f"the table has {n:,} columns, and each is looked at by itself; bring at most "
            f"{MOST_COLUMNS:,}, or give FairClassifier an array of numbers, which may have more."
        )


def _nothing(value: Any) -> bool:
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
    )


def numbered(values: Any) -> tuple[NDArray[np.intp], list[Any]]:
    """Give each value's number, −1 if it is missing, and the different values in their order."""
    if len(values) > FEW_VALUES:
        codes, levels = pd.factorize(pd.Series(values, dtype=object), use_na_sentinel=True)
        return codes, list(levels)
    # Of a short column pandas has hardly begun.
    known: dict[Any, int] = {}
    codes = [-1 if _nothing(v) else known.setdefault(v, len(known)) for v in values]
    return np.array(codes, dtype=np.intp), list(known)


def _distinct(series: Any) -> tuple[NDArray[np.intp], list[Any]]:
    """Give each cell the number of its value, -1 where the frame has none; and the values."""
    try:
        return numbered(series.to_list())
    except TypeError:
        raise ValueError(
            f"column {series.name!r} holds lists or records; give one value per cell, or drop it."
        ) from None


def read_texts(series: Any, missing: MissingWords = BUILT_IN) -> NDArray[np.object_]:
    """Values as text, None where missing; 3.0 is written as 3."""
    codes, levels = _distinct(series)
    no_value = missing.of(series.name) | {""}

    def text(value: Any) -> str | None:
        if _nothing(value):
            return None
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        written = str(value).strip()
        return None if isinstance(value, str) and written in no_value else written

    words = np.array([*(text(level) for level in levels), None], dtype=object)
    return words[codes]


def count_words(series: Any, missing: MissingWords) -> Counter[str]:
    """Count the words of a column that stand for no value."""
    codes, levels = _distinct(series)
    no_value = missing.of(series.name)
    found: Counter[str] = Counter()
    for level, n in zip(levels, np.bincount(codes[codes >= 0]).tolist(), strict=True):
        if isinstance(level, str) and level.strip() in no_value:
            found[level.strip()] += n
    return found


def check_words(frame: Any, columns: Sequence[str], missing: MissingWords) -> None:
    """Refuse words in these columns that nobody has said to be values, or to be missing.

    Parameters
    ----------
    frame : narwhals frame
        The table.
    columns : sequence of str
        Columns whose rows without a value are left out: the label and the sensitive ones.
    missing : MissingWords
        What a user has said.
    """
    for name in missing.kept:
        if name not in frame.columns:
            raise ValueError(
                f"keep_na={name!r}: the table has no column {name!r}; it has "
                f"{listed(frame.columns)}."
            )
    if missing.words is None:
        here = [name for name in columns if name in frame.columns]
        refuse_words({name: count_words(frame[name], missing) for name in here}, frame)


def refuse_words(found: Mapping[str, Counter[str]], frame: Any) -> None:
    """Refuse the words that were counted, if any; ``frame`` is the table, or a sample of it."""
    column = next((name for name, words in found.items() if words), None)
    if column is None:
        return
    parts = [f"{word!r} in {n:,} row{'s' * (n > 1)}" for word, n in found[column].most_common()]
    others = [name for name, dtype in frame.schema.items() if not dtype.is_nested()]
    seen = sum(
        (count_words(frame[name], BUILT_IN) for name in others), sum(found.values(), Counter())
    )
    words = [word for word in NO_VALUE if word in seen]
    raise ValueError(
        f"column {column!r} has {', '.join(parts)}, which may be a value or stand for none; say "
        f"keep_na={[column]!r} if it is a value, or na={words!r} if it is none."
    )


def known_values(texts: NDArray[np.object_]) -> list[str]:
    """Return the distinct values that are not missing, sorted."""
    return sorted({t for t in pd.unique(texts) if t is not None})


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


# ---- numbers ---------------------------------------------------------------------------------


def _parse_number(text: str, decimal: str) -> tuple[float, str] | None:
    """Read a number as people write it, and its currency, if any."""
    if not decimal and _PLAIN.fullmatch(text):  # most are, and this is quick
        return float(text), ""
    found = _NUMBER[decimal].fullmatch(text)
    if found is None:
        return None
    before, after = found["before"] or "", found["after"]
    if (found["sign"] and found["inner"]) or (before and after):
        return None
    size = found["size"]
    if decimal:
        size = size.replace(".", "").replace(",", ".")
    value = float(size.translate(_MARKS))
    value = -value if (found["sign"] or found["inner"]) in ("-", "−") else value
    return (value / 100, "") if after == "%" else (value, before or after)


def _number_style(written: str) -> tuple[str, str]:
    """Tell decimal mark and currency from how numbers are written."""
    parts = written.split(", ") if written else []
    unit = next((part.removeprefix("in ") for part in parts if part.startswith("in ")), "")
    return (COMMA if COMMA in parts else ""), unit


def _number_of(text: str, decimal: str, unit: str) -> float:
    """Read a number that is written so; NaN if it is not."""
    found = _parse_number(text, decimal)
    return found[0] if found is not None and found[1] in ("", unit) else np.nan


def is_number(text: str) -> bool:
    """Say whether a text is a number such as 1,234.5 or 12%."""
    return not np.isnan(_number_of(text, "", ""))


def read_numbers(
    series: Any,
    column: str,
    *,
    written: str = "",
    tolerant: bool = False,
    missing: MissingWords = BUILT_IN,
) -> NDArray[np.float64]:
    """Values as numbers, NaN where missing; if ``tolerant``, also where there is no number."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        if series.dtype == nw.Boolean:
            return np.array([np.nan if _nothing(v) else float(v) for v in series.to_list()])
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    texts = read_texts(series, missing)
    style = _number_style(written)
    values = _each(texts, lambda text: _number_of(text, *style))
    if not tolerant:
        _refuse(values, texts, column, "numbers", written, "correct that value")
    return values


def _each(texts: NDArray[np.object_], parse: Callable[[str], float]) -> NDArray[np.float64]:
    """Parse every distinct text once."""
    codes, known = numbered(texts)
    return np.array([*(parse(text) for text in known), np.nan])[codes]


def _refuse(
    values: NDArray[np.float64],
    texts: NDArray[np.object_],
    column: str,
    plural: str,
    written: str,
    advice: str,
) -> None:
    """Refuse the first text that was not read."""
    bad = np.flatnonzero(np.isnan(values) & np.array([t is not None for t in texts], dtype=bool))
    if len(bad):
        how = f" ({written})" if written else ""
        raise CellError(
            f"column {column!r} held {plural}{how} when the model was trained, and now "
            f"{_quoted(texts[bad[0]])}",
            int(bad[0]),
            f"; {advice} or leave it empty.",
        )


# ---- dates -----------------------------------------------------------------------------------

MONTHS = tuple(pd.to_datetime(f"2024-{m:02d}-01").month_name() for m in range(1, 13))
WEEKDAYS = tuple(pd.to_datetime(f"2024-01-0{d}").day_name() for d in range(1, 8))
_EPOCH = datetime(1970, 1, 1)


def _day_of(text: str, written: str) -> float:
    """Days since 1970 of a date that is written so; NaN if it is not."""
    found = (_YEAR_FIRST if written == "year first" else _YEAR_LAST).fullmatch(text)
    if found is None:
        return np.nan
    first, _, second, third, hour, minute, seconds, half = found.groups()
    year, month, day = {
        "year first": (first, second, third),
        "day first": (third, second, first),
        "month first": (third, first, second),
    }[written]
    hours = int(hour or 0)
    if half is not None:
        if not 1 <= hours <= 12:
            return np.nan
        hours = hours % 12 + 12 * (half in "pP")
    clock = hours, int(minute or 0), int(seconds or 0)
    try:
        stamp = datetime(int(year), int(month), int(day), *clock)
    except ValueError:
        return np.nan
    return (stamp - _EPOCH).total_seconds() / 86400


def _iso_days(texts: Any) -> NDArray[np.float64]:
    stamps = pd.to_datetime(
        pd.Series(texts, dtype=object), format="ISO8601", errors="coerce", utc=True
    )
    return _as_days(stamps)


def _as_days(stamps: pd.Series) -> NDArray[np.float64]:
    day = (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return day.to_numpy(dtype=np.float64, na_value=np.nan)


def read_days(
    series: Any,
    column: str,
    *,
    written: str = "",
    tolerant: bool = False,
    missing: MissingWords = BUILT_IN,
) -> NDArray[np.float64]:
    """Dates as days since 1970, NaN where missing; if ``tolerant``, also where there is no date."""
    if series.dtype in (nw.Datetime, nw.Date):
        values = pd.Series(series.to_list(), dtype=object)
        try:
            return _as_days(pd.to_datetime(values, utc=True))
        except (ValueError, OverflowError):
            raise ValueError(
                f"column {column!r} has dates too far away to count days to; correct them."
            ) from None
    texts = read_texts(series, missing)
    days = _iso_days(texts) if written == ISO else _each(texts, lambda text: _day_of(text, written))
    if not tolerant:
        advice = "write it as 2024-12-31" if written == ISO else "write it as the others"
        _refuse(days, texts, column, "dates", written, advice)
    return days


def date_parts(days: NDArray[np.float64]) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Month and weekday of each day."""
    stamps = pd.to_datetime(pd.Series(np.floor(days)), unit="D")
    parts = []
    for part in (stamps.dt.month_name(), stamps.dt.day_name()):
        parts.append(np.array([None if _nothing(v) else v for v in part], dtype=object))
    return parts[0], parts[1]


# ---- how a column is read --------------------------------------------------------------------


def check_written(kind: str, written: str) -> None:
    """Refuse a way of writing that there is not."""
    if kind == "number":
        unit = f"in [{_CURRENCY}]"
        if re.fullmatch(f"({COMMA})?|(?:{COMMA}, )?{unit}", written):
            return
    elif kind == "date":
        if written in DATE_ORDERS:
            return
    elif not written:
        return
    raise ValueError(f"a {kind} is not written {written!r}")


def parse_kind(text: str, column: str) -> tuple[str, str | None]:
    """Tell kind and way of writing, if it is given, from words such as "date, month first"."""
    kind, _, written = text.partition(", ")
    plain = kind == "number" and written == "decimal point"
    try:
        if kind not in KINDS:
            raise ValueError
        check_written(kind, "" if plain else written)
    except ValueError:
        raise ValueError(
            f"column {column!r} cannot be read as {text!r}; use 'category', 'number', 'number, "
            "decimal comma', 'number, decimal point', 'date', 'date, day first', 'date, month "
            "first' or 'date, year first'."
        ) from None
    return kind, "" if plain else written or None


def find_reading(
    texts: NDArray[np.object_],
    column: str,
    *,
    kind: str | None = None,
    written: str | None = None,
) -> Reading:
    """Say how a column of text is best read; ``kind`` and ``written`` are what is known already.

    Numbers need one decimal mark and one currency throughout, dates one order. Where both marks
    would do, commas separate thousands; where both orders would do, the day is first.
    """
    counts = pd.Series(texts, dtype=object).value_counts()
    total = int(counts.sum())
    if kind == "category" or not total:
        return Reading(kind or "category")
    if kind is None and _are_codes(counts):
        return Reading(note="codes with leading zeros")
    ways = {"number": _number_ways, "date": _date_ways}
    but_for = ""
    for each, find in ways.items():
        if kind not in (None, each):
            continue
        style, good, note = find(counts, written)
        n_bad = total - int(counts[good].sum())
        if kind is None and not n_bad:
            return Reading(each, style, note=note)
        bad = ", ".join(_quoted(t) for t in counts.index[~good][:3])
        if kind is not None and n_bad == total:
            how = f", {written}" if written else ""
            raise ValueError(
                f"none of the values of column {column!r} is a {each}{how} ({bad}); read it as "
                "something else."
            )
        what = f"a value that is no {each}" if n_bad == 1 else f"{n_bad:,} that are no {each}s"
        what = f"{what} ({bad}), count as missing"
        if kind is not None:
            what = what if n_bad else f"values that are no {each} count as missing"
        elif total < FEWEST_MOSTLY or n_bad > (1 - MOSTLY) * total:
            if 2 * n_bad < total and int((~good).sum()) <= MOST_WORDS < int(good.sum()):
                but_for = (
                    f"{each}s but for {bad} in {n_bad:,} rows; if that means missing: "
                    f"kinds={{{column!r}: {each!r}}}"
                )
            continue
        return Reading(each, style, tolerant=True, note="; ".join(filter(None, [note, what])))
    return Reading(note=but_for)


def _are_codes(counts: pd.Series) -> bool:
    """Say whether digits are names: some begin with 0, and all are as long, or these are many."""
    led = np.array([bool(_CODE.fullmatch(text)) for text in counts.index])
    if not led.any():
        return False
    digits = all(text.isdigit() for text in counts.index)
    as_long = digits and len({len(text) for text in counts.index}) == 1
    return as_long or bool(counts[led].sum() > (1 - MOSTLY) * counts.sum())


Way = tuple[str, NDArray[np.bool_], str]


def _number_ways(counts: pd.Series, written: str | None) -> Way:
    """Find how numbers are written, which values are such numbers, and what is odd about them."""
    marks = ["", COMMA] if written is None else [_number_style(written)[0]]
    commas = any("," in text for text in counts.index)
    ways, fits = {}, {}
    for mark in marks:
        ways[mark] = [_parse_number(text, mark) for text in counts.index]
        fits[mark] = np.array([found is not None for found in ways[mark]])
        if fits[mark].all() and not commas:
            break  # where all are numbers as they stand, nothing else is tried
    decimal = max(ways, key=lambda d: int(counts[fits[d]].sum()))
    units = [p[1] if p is not None else "" for p in ways[decimal]]
    unit = ""
    if any(units):
        unit = str(counts.groupby(units).sum().drop("", errors="ignore").idxmax())
    good = fits[decimal] & np.isin(units, ["", unit])
    style = ", ".join(filter(None, [decimal, f"in {unit}" if unit else ""]))
    if style:
        return style, good, f"read as numbers, {style}"
    held = counts.index[good]
    note = ""
    if any(not text.isascii() or set(text) & set(",%' ") for text in held):
        note = "numbers written as text"
        if any("," in text for text in held) and COMMA in ways and fits[COMMA][good].all():
            note += ", commas between thousands"
    return "", good, note


def _date_ways(counts: pd.Series, written: str | None) -> Way:
    """Find how dates are written, which values are such dates, and what is odd about them."""
    texts = counts.index.to_numpy(dtype=object)
    fits = {}
    for order in DATE_ORDERS if written is None else (written,):
        if order == ISO:
            good = np.array([bool(_ISO_DATE.fullmatch(text)) for text in texts])
            if good.any():
                good[good] = ~np.isnan(_iso_days(texts[good]))
        else:
            good = ~np.isnan(np.array([_day_of(text, order) for text in texts]))
        fits[order] = good
    n_good = {order: int(counts[good].sum()) for order, good in fits.items()}
    order = max(n_good, key=lambda o: n_good[o])
    if order == ISO:
        return order, fits[order], "dates written as text"
    note = f"read as dates, {order}"
    if order == "day first" and n_good.get("month first") == n_good[order]:
        note += ", though each could be month first"
    return order, fits[order], note


# ---- identifiers -----------------------------------------------------------------------------

# A column in which every row is different tells rows apart, and nothing else: text of so many rows,
# and whole numbers of so many, if they also look like numbers of rows, not like a quantity.
FEWEST_ROWS_OF_NAMES, FEWEST_ROWS_OF_NUMBERS = 20, 100
# Of the whole numbers between the smallest and the largest, so many at least are there.
FEW_GAPS = 0.9
# Of rows that a column's name says to be numbered, so many at most have the same number on average.
MOST_ROWS_OF_ONE = 10
_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_ID_WORDS = frozenset({"id", "ids", "identifier", "key", "nbr", "nr", "uuid", "guid"})
# An account_number tells accounts apart; number_of_children is a quantity.
_LAST_ID_WORDS = frozenset({"no", "number"})
# A column of an index may be a quantity, too, unless every row has another.
_INDEX_WORDS = frozenset({"index", "idx"})


def is_identifier_name(column: str) -> bool:
    """Say whether a name is that of an identifier, as patient_nbr, customerID and case number."""
    words = [word.lower() for word in _WORDS.findall(column)]
    return bool(_ID_WORDS & set(words)) or (bool(words) and words[-1] in _LAST_ID_WORDS)


def identifier(values: NDArray[np.float64], column: str) -> str:
    """Say why a column of numbers is an identifier; empty if it is none.

    Every row has another whole number, and either they are consecutive, or there are 100 rows at
    least and the numbers have few gaps, rise or fall from row to row, or the column's name says so.
    Or the name says so, and a whole number has 10 rows at most on average.
    """
    known = values[~np.isnan(values)]
    n, n_distinct = len(known), len(np.unique(known))
    if n < FEWEST_ROWS_OF_NAMES or (known % 1 != 0).any():
        return ""
    named = is_identifier_name(column)
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


# ---- siblings --------------------------------------------------------------------------------

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
