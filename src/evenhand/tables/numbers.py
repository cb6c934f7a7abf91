"""Numbers as people write them: decimal marks, thousands, currencies, percent."""

import re
from typing import Any

import narwhals as nw
import numpy as np
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.tables.columns import BUILT_IN, CellError, Column, MissingWords, as_table, no_column

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
_ODD = re.compile(r"[,%' ]|[^\x00-\x7f]")
_STYLE = re.compile(rf"(?:({COMMA})(?:, in ([{_CURRENCY}]))?|in ([{_CURRENCY}]))?")

# A number and its currency; NaN is no number.
_PARSED = np.dtype([("value", np.float64), ("unit", "U1")])
_NO_NUMBER = (np.nan, "")


def _parse(text: str, decimal: str) -> tuple[float, str]:
    """Read a number as people write it, and its currency, if any."""
    match = _NUMBER[decimal].fullmatch(text)
    if match is None:
        return _NO_NUMBER
    before, after = match["before"] or "", match["after"]
    if (match["sign"] and match["inner"]) or (before and after):
        return _NO_NUMBER
    size = match["size"]
    if decimal:
        size = size.replace(".", "").replace(",", ".")
    value = float(size.translate(_MARKS))
    value = -value if (match["sign"] or match["inner"]) in ("-", "−") else value
    return (value / 100, "") if after == "%" else (value, before or after)


def _parse_all(texts: list[str], decimal: str) -> NDArray[Any]:
    """Read each text once: plain numbers quickly, others as people write them."""
    parsed = np.full(len(texts), np.nan, dtype=_PARSED)
    parsed["unit"] = ""
    plain = np.zeros(len(texts), dtype=bool)
    if not decimal:
        plain = np.fromiter(map(_is_plain, texts), dtype=bool, count=len(texts))
        quick = texts if plain.all() else [t for t, yes in zip(texts, plain, strict=True) if yes]
        parsed["value"][plain] = np.fromiter(map(float, quick), np.float64, len(quick))
    for i in np.flatnonzero(~plain):
        parsed[i] = _parse(texts[i], decimal)
    return parsed


def _is_plain(text: str) -> bool:
    return _PLAIN.fullmatch(text) is not None


def _parsed(texts: Column, decimal: str) -> NDArray[Any]:
    return texts.on_levels(("numbers", decimal), lambda levels: _parse_all(levels, decimal))


def _in_unit(parsed: NDArray[Any], unit: str) -> NDArray[np.bool_]:
    return (parsed["unit"] == "") | (parsed["unit"] == unit)


def is_number_style(style: str) -> bool:
    """Say whether numbers may be written so."""
    return bool(_STYLE.fullmatch(style))


def _decimal_and_unit(style: str) -> tuple[str, str]:
    decimal, unit, unit_alone = _STYLE.fullmatch(style).groups("")  # type: ignore[union-attr]
    return decimal, unit or unit_alone


def is_number(text: str) -> bool:
    """Say whether a text is a number such as 1,234.5 or 12%."""
    value, unit = _parse_all([text], "")[0]
    return not np.isnan(value) and not unit


def read_numbers(
    column: Column, *, written: str = "", tolerant: bool = False, missing: MissingWords = BUILT_IN
) -> NDArray[np.float64]:
    """Give each row's number, NaN where missing; if ``tolerant``, also where there is no number."""
    if column.dtype.is_numeric() or column.dtype == nw.Boolean:
        own = column.on_levels("numbers", lambda levels: np.array(levels, dtype=np.float64))
        return column.spread(own)
    texts, (decimal, unit) = column.as_text(missing), _decimal_and_unit(written)
    parsed = _parsed(texts, decimal)
    values = np.where(_in_unit(parsed, unit), parsed["value"], np.nan)
    if not tolerant:
        refuse_unread(texts, values, "numbers", written, "correct that value")
    return texts.spread(values)


def read_weights(X: Any, column: str, words: MissingWords = BUILT_IN) -> NDArray[np.float64]:
    """Give each row's weight; refuse a column that does not hold one for every row."""
    table = as_table(X)
    if column not in table.columns:
        raise no_column(column, table.columns)
    weights = read_numbers(table[column], tolerant=True, missing=words)
    texts = table[column].as_text(words)
    if (missing := texts.codes < 0).any():
        raise InputError("missing_weights", **_rows_of(texts, missing))
    if (unread := np.isnan(weights)).any():
        raise InputError("unreadable_weights", **_rows_of(texts, unread))
    if (negative := weights < 0).any():
        raise InputError("negative_weights", **_rows_of(texts, negative))
    if (infinite := np.isinf(weights)).any():
        raise InputError("infinite_weights", **_rows_of(texts, infinite))
    if not weights.any():
        raise InputError("no_positive_weight", column=column, n=len(weights))
    return weights


def _rows_of(texts: Column, rows: NDArray[np.bool_]) -> dict[str, Any]:
    """Say of a column in how many rows something is wrong, and what the first of them has."""
    values, first, n = texts.levels.tolist(), int(texts.codes[rows][0]), int(rows.sum())
    value = shortened(values[first]) if first >= 0 else ""
    return {"column": texts.name, "n": n, "rows": "rows" if n > 1 else "row", "value": value}


def refuse_unread(
    texts: Column, values: NDArray[np.float64], plural: str, written: str, advice: str
) -> None:
    """Refuse the first text that was not read."""
    unread = np.flatnonzero(np.isnan(values))
    if len(unread):
        row = int(np.flatnonzero(texts.codes == unread[0])[0]) + 1
        what = f"{plural} ({written})" if written else plural
        about = {"value": shortened(texts.levels[unread[0]]), "row": row, "advice": advice}
        raise CellError("unreadable_value", column=texts.name, what=what, **about)


def shortened(text: str) -> str:
    """Give the beginning of a long text."""
    return text if len(text) <= 40 else f"{text[:40]}…"


def find_number_style(
    texts: Column, counts: NDArray[np.intp], written: str | None
) -> tuple[str, NDArray[np.bool_], str]:
    """Find how numbers are written, which levels are such numbers, and what is odd about them."""
    levels = texts.levels.tolist()
    decimals = ["", COMMA] if written is None else [_decimal_and_unit(written)[0]]
    commas = "," in "".join(levels)
    parsed, fits = {}, {}
    for decimal in decimals:
        parsed[decimal] = _parsed(texts, decimal)
        fits[decimal] = ~np.isnan(parsed[decimal]["value"])
        if fits[decimal].all() and not commas:
            break  # where all are numbers as they stand, nothing else is tried
    decimal = max(parsed, key=lambda d: int(counts[fits[d]].sum()))
    units, unit = parsed[decimal]["unit"], ""
    rows = {str(u): int(counts[units == u].sum()) for u in np.unique(units) if u}
    if rows:
        unit = max(rows, key=rows.__getitem__)
    good = fits[decimal] & _in_unit(parsed[decimal], unit)
    style = ", ".join(filter(None, [decimal, f"in {unit}" if unit else ""]))
    if style:
        return style, good, f"read as numbers, {style}"
    numbers = levels if good.all() else texts.levels[good].tolist()
    note = ""
    if any(map(_ODD.search, numbers)):
        note = "numbers written as text"
        if any("," in text for text in numbers) and COMMA in fits and fits[COMMA][good].all():
            note += ", commas between thousands"
    return "", good, note
