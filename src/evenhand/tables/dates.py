"""Dates as people write them, as days since 1970, months and weekdays."""

import re
from datetime import datetime
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.tables.columns import BUILT_IN, Column, MissingWords
from evenhand.tables.numbers import refuse_unread

# How dates may be written; the first that fits most rows is taken.
ISO, DATE_ORDERS = "", ("", "year first", "day first", "month first")
MONTHS = tuple(pd.to_datetime(f"2024-{m:02d}-01").month_name() for m in range(1, 13))
WEEKDAYS = tuple(pd.to_datetime(f"2024-01-0{d}").day_name() for d in range(1, 8))

_ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
_TIME = r"(?:(?:T|\s+)(\d{1,2}):(\d{2})(?::(\d{2})(?:[.,]\d+)?)?\s*(?:([AaPp])\.?[Mm]\.?)?)?"
_YEAR_LAST = re.compile(rf"(\d{{1,2}})([./-]) ?(\d{{1,2}})\2 ?(\d{{4}}){_TIME}")
_YEAR_FIRST = re.compile(rf"(\d{{4}})([./-])(\d{{1,2}})\2(\d{{1,2}}){_TIME}")
_EPOCH = datetime(1970, 1, 1)


def _day_of(text: str, order: str) -> float:
    """Days since 1970 of a date that is written in this order; NaN if it is not."""
    match = (_YEAR_FIRST if order == "year first" else _YEAR_LAST).fullmatch(text)
    if match is None:
        return np.nan
    first, _, second, third, hour, minute, seconds, half = match.groups()
    year, month, day = {
        "year first": (first, second, third),
        "day first": (third, second, first),
        "month first": (third, first, second),
    }[order]
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


def _iso_days(texts: list[str]) -> NDArray[np.float64]:
    stamps = pd.to_datetime(
        pd.Series(texts, dtype=object), format="ISO8601", errors="coerce", utc=True
    )
    return _as_days(stamps)


def _as_days(stamps: pd.Series) -> NDArray[np.float64]:
    day = (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return day.to_numpy(dtype=np.float64, na_value=np.nan)


def _parsed(texts: Column, order: str) -> NDArray[np.float64]:
    def parse(levels: list[str]) -> NDArray[np.float64]:
        if order == ISO:
            return _iso_days(levels)
        return np.array([_day_of(text, order) for text in levels], dtype=np.float64)

    return texts.on_levels(("days", order), parse)


def level_days(
    column: Column, *, written: str = "", tolerant: bool = False, missing: MissingWords = BUILT_IN
) -> tuple[Column, NDArray[np.float64]]:
    """Give days since 1970 of a column's levels, and the column that has these levels."""
    if column.dtype not in (nw.Datetime, nw.Date):
        column = column.as_text(missing)
        days = _parsed(column, written)
        if not tolerant:
            advice = "write it as 2024-12-31" if written == ISO else "write it as the others"
            refuse_unread(column, days, "dates", written, advice)
        return column, days

    def convert(levels: list[Any]) -> NDArray[np.float64]:
        return _as_days(pd.to_datetime(pd.Series(levels, dtype=object), utc=True))

    try:
        return column, column.on_levels("days", convert)
    except (ValueError, OverflowError):
        raise InputError("dates_too_far", column=column.name) from None


def read_days(column: Column, **how: Any) -> NDArray[np.float64]:
    """Give each row's days since 1970, NaN where missing; ``how`` as of :func:`level_days`."""
    column, days = level_days(column, **how)
    return column.spread(days)


def date_parts(days: NDArray[np.float64]) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
    """Give the place of each day's month in ``MONTHS`` and of its weekday; −1 where missing."""
    stamps = pd.to_datetime(pd.Series(np.floor(days)), unit="D").dt
    parts = stamps.month - 1, stamps.day_of_week
    month, weekday = (part.fillna(-1).to_numpy(dtype=np.int32) for part in parts)
    return month, weekday


def find_date_style(
    texts: Column, counts: NDArray[np.intp], written: str | None
) -> tuple[str, NDArray[np.bool_], str]:
    """Find how dates are written, which levels are such dates, and what is odd about them."""
    fits = {}
    for order in DATE_ORDERS if written is None else (written,):
        good = np.ones(len(texts.levels), dtype=bool)
        if order == ISO:
            good = np.array([bool(_ISO_DATE.fullmatch(text)) for text in texts.levels.tolist()])
        fits[order] = good & ~np.isnan(_parsed(texts, order)) if good.any() else good
    n_good = {order: int(counts[good].sum()) for order, good in fits.items()}
    order = max(n_good, key=lambda o: n_good[o])
    if order == ISO:
        return order, fits[order], "dates written as text"
    note = f"read as dates, {order}"
    if order == "day first" and n_good.get("month first") == n_good[order]:
        note += ", though each could be month first"
    return order, fits[order], note
