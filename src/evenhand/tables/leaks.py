"""How well one column tells another: leaks of the label, stand-ins for a sensitive attribute.

What a column tells is measured on rows that it was not found on: half of the rows say how often
each of its values goes with what is to be told, the other half is put in that order, and the area
under the ROC curve (AUC) says how well; then the other way round.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.errors import InputWarning, Parameter
from evenhand.tables.identifiers import is_identifier_name

# An input with an AUC this large gives the label away, or stands in for a sensitive column.
LEAK, STAND_IN = 0.995, 0.95
# This many of the inputs that tell most of a sensitive column are named.
MOST_STAND_INS = 5

# This many rows are looked at, drawn evenly.
MOST_ROWS = 20_000
# Fewer rows on either side tell nothing for sure.
FEWEST_ROWS = 10
# A number stands for itself if it has this many rows on average; else it is put in a bin.
ROWS_OF_A_VALUE, MOST_BINS = 10, 100
# This many values are told one by one; a number of more is told by where it lies.
MOST_VALUES = 20
# Whole numbers of more values are a quantity.
MOST_CODES = 50
# A count, such as of children, has this share of its rows on 0 or 1, 2, 3 ... without a gap.
COUNTED = 0.9


class Event(NamedTuple):
    """What a column may tell: which rows have it, and its name if it is one of many."""

    rows: NDArray[np.bool_]
    value: str | None


def draw_rows(n: int) -> NDArray[np.intp]:
    """Draw rows of a table, in an order that says nothing; of a small one all."""
    return np.random.default_rng(0).choice(n, min(n, MOST_ROWS), replace=False)


def events_of(values: NDArray[Any]) -> list[Event]:
    """Give what there is to tell of a column: floats with NaN, or anything with None.

    One of two values, each of several, and of a number with many values whether it is above each of
    19 quantiles.
    """
    codes, levels = pd.factorize(values)
    sizes = np.bincount(codes[codes >= 0], minlength=len(levels))
    if values.dtype.kind == "f" and len(levels) > MOST_VALUES:
        edges = np.unique(np.nanquantile(values, np.linspace(0.05, 0.95, 19)))
        events = [Event(values > edge, f"more than {edge:g}") for edge in edges.tolist()]
    else:
        largest = np.argsort(-sizes, kind="stable")[: 1 if len(levels) == 2 else MOST_VALUES]
        several = len(levels) > 2
        events = [Event(codes == k, str(levels[k]) if several else None) for k in largest.tolist()]
    return [t for t in events if FEWEST_ROWS <= t.rows.sum() <= len(values) - FEWEST_ROWS]


def best_told(values: NDArray[Any], events: Sequence[Event]) -> tuple[float, Event | None]:
    """Say which of several things a column tells best, and with which AUC.

    The column has codes of a category, -1 where missing, or numbers, NaN where missing.
    """
    numbers = values.dtype.kind == "f"
    if not events or (numbers and np.isnan(values).all()):
        return 0.0, None
    aucs: list[tuple[float, Event]] = []
    if numbers:
        values, ranks = _binned(values)
        aucs = [(_auc_of_ranks(ranks, event.rows), event) for event in events]
    aucs += [(_auc_of_codes(values + 1, event.rows), event) for event in events]
    return max(aucs, key=lambda pair: pair[0])


def _binned(values: NDArray[np.float64]) -> tuple[NDArray[np.intp], NDArray[np.float64]]:
    """Give codes of numbers, or of bins of as many rows, and ranks; -1 and 0 where missing."""
    codes, levels = pd.factorize(values, sort=True)
    sizes = np.bincount(codes[codes >= 0])
    below = np.cumsum(sizes) - sizes
    ranks = np.append(below + (sizes + 1) / 2, 0.0)[codes]
    n = len(values)
    if len(levels) > n / ROWS_OF_A_VALUE:
        bins = below * min(MOST_BINS, n // ROWS_OF_A_VALUE) // n
        codes = np.append(bins, -1)[codes]
    return codes, ranks


def _auc_of_ranks(ranks: NDArray[np.float64], target: NDArray[np.bool_]) -> float:
    """AUC of a number as it stands; of the rows only the direction is found."""
    inside = ranks[target]
    n_yes, n_no = len(inside), len(ranks) - len(inside)
    yes = int(np.count_nonzero(inside))
    no = int(np.count_nonzero(ranks)) - yes
    above = inside.sum() - yes * (yes + 1) / 2
    # Beside a row without a value any other is a tie.
    auc = (above + (n_yes * n_no - yes * no) / 2) / (n_yes * n_no)
    return float(max(auc, 1 - auc))


def _auc_of_codes(codes: NDArray[np.intp], target: NDArray[np.bool_]) -> float:
    """AUC of the share that each code has in the other half of the rows."""
    half = np.empty(len(target), dtype=np.intp)
    for rows in (np.flatnonzero(target), np.flatnonzero(~target)):
        half[rows] = np.arange(len(rows)) % 2
    n_codes = int(codes.max()) + 1
    cells = np.bincount((half * 2 + target) * n_codes + codes, minlength=4 * n_codes)
    counts = cells.reshape(2, 2, n_codes).astype(np.float64)
    aucs = []
    for here, there in ((0, 1), (1, 0)):
        n_rows = counts[here].sum(axis=0)
        share = (counts[here, 1] + counts[here, 1].sum() / n_rows.sum()) / (n_rows + 1)
        levels, rank = np.unique(share, return_inverse=True)
        no, yes = (np.bincount(rank, weights=c, minlength=len(levels)) for c in counts[there])
        aucs.append(float(yes @ (np.cumsum(no) - no / 2) / (yes.sum() * no.sum())))
    return sum(aucs) / 2


def look_like_codes(values: NDArray[np.float64], events: Sequence[Event]) -> bool:
    """Say whether numbers look like codes: few, whole, with gaps, and no order in the label."""
    present = ~np.isnan(values)
    if not events or (values[present] % 1 != 0).any():
        return False
    levels, codes, sizes = np.unique(values[present], return_inverse=True, return_counts=True)
    few = 3 <= len(levels) <= min(MOST_CODES, len(codes) // ROWS_OF_A_VALUE)
    if not few or len(np.unique(np.diff(levels))) == 1:
        return False
    run = np.cumprod(np.diff(levels, prepend=levels[0] - 1) == 1) > 0
    if levels[0] in (0, 1) and sizes[run].sum() >= COUNTED * len(codes):
        return False
    return not any(_ordered(levels, codes, sizes, event.rows[present]) for event in events)


def _ordered(
    levels: NDArray[np.float64],
    codes: NDArray[np.intp],
    sizes: NDArray[np.intp],
    target: NDArray[np.bool_],
) -> bool:
    """Say whether a trend makes up half, at least, of what the shares of a target differ by."""
    n = len(codes)
    mean = target.mean()
    spread = mean * (1 - mean)
    shares = np.bincount(codes, weights=target) / sizes - mean
    between = sizes @ shares**2 - (len(levels) - 1) * spread
    for scale in (levels, np.cumsum(sizes) - sizes / 2):  # in proportion, or by rank
        centred = scale - sizes @ scale / n
        trend = (sizes * centred) @ shares
        trend = trend**2 / (sizes @ centred**2)
        if trend >= 4 * spread and trend - spread >= between / 2:
            return True
    return False


def find_stand_ins(
    inputs: Iterable[tuple[str, NDArray[Any]]],
    label: Sequence[Event],
    groups: Mapping[str, Sequence[Event]],
    free: Collection[str],
) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Find inputs that tell the label or a sensitive column, and numbers that may be codes.

    ``inputs`` are columns with their values, as of :func:`best_told`; ``label`` and ``groups`` are
    what they may tell; ``free`` are numbers that no user has said to be numbers. The results are
    what to know of each column, in words, and the columns, five at most, that tell most of the
    sensitive ones, each with its AUC.
    """
    remarks: dict[str, str] = {}
    best: dict[str, float] = {}
    for name, values in inputs:
        words = []
        if name in free and (look_like_codes(values, label) or _named_codes(values, name)):
            advice = Parameter("kinds", {name: "category"})
            words.append(f"whole numbers that look like codes; if they are: {advice}")
        exclude = Parameter("exclude", [name])
        auc, event = best_told(values, label)
        if auc >= LEAK:
            which = "" if event is None or event.value is None else f" {event.value!r}"
            words.append(_tells(f"the label{which}", auc))
            warning = InputWarning("leak", column=name, tells=words[-1], exclude=exclude)
            warnings.warn(warning, stacklevel=5)
        for column, events in groups.items():
            auc, event = best_told(values, events)
            if event is None:
                continue
            best[name] = max(best.get(name, 0.0), auc)
            if auc >= STAND_IN:
                which = "" if event.value is None else f"{event.value!r} of "
                words.append(_tells(f"{which}{column!r}, which is sensitive,", auc))
                warning = InputWarning(
                    "stand_in", column=name, sensitive=column, tells=words[-1], exclude=exclude
                )
                warnings.warn(warning, stacklevel=5)
        remarks[name] = "; ".join(words)
    most = sorted(best, key=lambda name: (-best[name], name))[:MOST_STAND_INS]
    return remarks, [{"column": name, "auc": round(best[name], 4)} for name in most]


def _tells(what: str, auc: float) -> str:
    if auc == 1:
        return f"tells {what} without fail"
    # Rounded down: 0.9996 is not 1.
    return f"tells {what} almost always (AUC {int(1000 * auc) / 1000:.3f} on rows not learned from)"


def _named_codes(values: NDArray[np.float64], column: str) -> bool:
    """Say whether whole numbers that repeat have the name of an identifier, such as store_id."""
    present = values[~np.isnan(values)]
    whole = bool((present % 1 == 0).all())
    return whole and is_identifier_name(column) and len(np.unique(present)) > 2
