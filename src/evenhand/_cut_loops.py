"""Loops over sorted scores, compiled by numba: which cuts are worth a closer look."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenhand.rates import AnyRate, WorstRate

__all__ = ["count_bins", "promising_cuts"]

FloatArray = NDArray[Any]

# Cells that fit into the last bits of a score, which moves by less than 2e-15 of itself.
FEW_CELLS, LAST_BITS = 8, 7


@njit(cache=True, nogil=True)
def _walk(
    s: Any, cell: Any, weight: Any, gap: float, n_cells: int, compared: int, tops: Any,
    bottoms: Any, errors: Any, shares: Any, bars: Any, caution: float, ends: Any, counts: Any,
) -> int:  # fmt: skip
    """Go from the highest score to the lowest; note the gaps whose cuts may be news.

    ``tops`` and ``bottoms`` say for each rate which of label × answer it counts. Returns how many
    were noted in ``ends``, with each cell's weight above the cut in ``counts``. Ratio and error are
    those of :class:`evenhand.rates.WorstRate`.
    """
    n, n_bins, n_rates, noted = len(s), bars.shape[1] - 1, tops.shape[0], 0
    above = np.zeros(n_cells)
    weighted = len(weight) > 0
    # Numerators and denominators of the rates of each group, beginning with no positive answer.
    A, B = np.zeros((n_rates, n_cells // 2)), np.zeros((n_rates, n_cells // 2))
    right, every = 0.0, 0.0
    for i in range(n):
        w = weight[i] if weighted else 1.0
        j, y = np.uintp(cell[i] >> 1), np.uintp(cell[i] & 1)
        every += w
        right += w * (1 - y)
        for k in range(n_rates):
            A[k, j] += w * tops[k, 2 * y]
            B[k, j] += w * bottoms[k, 2 * y]
    slack = 1e-9 * every  # whoever asked looks again
    for i in range(n - 1):
        w = weight[i] if weighted else 1.0
        j, y = np.uintp(cell[i] >> 1), np.uintp(cell[i] & 1)
        above[np.uintp(cell[i])] += w
        right += w if y else -w
        for k in range(n_rates):
            A[k, j] += w * (tops[k, 2 * y + 1] - tops[k, 2 * y])
            B[k, j] += w * (bottoms[k, 2 * y + 1] - bottoms[k, 2 * y])
        if not s[i] - s[i + 1] > gap:
            continue
        worst, which, defined = np.inf, 0, True
        for k in range(n_rates):
            low, low_b = A[k, 0], B[k, 0]
            high, high_b = low, low_b
            defined = defined and low_b > 0
            for g in range(1, compared):
                a, b = A[k, g], B[k, g]
                defined = defined and b > 0
                if a * low_b < low * b:
                    low, low_b = a, b
                if a * high_b > high * b:
                    high, high_b = a, b
            defined = defined and (high > 0 or errors[k])
            ratio = min(low * high_b / (low_b * high * shares[k]), 1.0) if high > 0 else 1.0
            if ratio < worst:
                worst, which = ratio, k
        if not defined:
            continue
        place = min(int((worst + 1e-9) * n_bins), n_bins)
        # A surely reached ratio is no higher, and its bar no lower.
        if right + slack <= min(bars[0, place], bars[1, place]) * every:
            continue
        if right + slack <= bars[0, place] * every:
            most, second = -np.inf, -np.inf
            for g in range(compared):
                term = 1 / (A[which, g] + 0.5) - 1 / (B[which, g] + 0.5)
                if term > most:
                    most, second = term, most
                elif term > second:
                    second = term
            sure = worst * np.exp(-caution * np.sqrt(max(most + second, 0.0)))
            place = min(int((sure + 1e-9) * n_bins), n_bins)
            if right + slack <= bars[1, place] * every:
                continue
        ends[noted] = i
        for c in range(n_cells):
            counts[c, noted] = above[c]
        noted += 1
    return noted


@njit(cache=True, nogil=True)
def count_bins(
    scores: Any, cell: Any, weight: Any, lows: Any, per_units: Any, below: Any, counts: Any
) -> None:
    """Add rows to histograms: for each column of scores, per cell and number of cuts below.

    ``below`` says for each bin of equal width, a row for each column, how many cuts are below it.
    """
    last = below.shape[1] - 1
    for i in range(scores.shape[0]):
        w = weight[i] if len(weight) else 1.0
        c = np.uintp(cell[i])
        for q in range(scores.shape[1]):
            place = (scores[i, q] - lows[q]) * per_units[q]
            # Comparisons with NaN are false.
            at = np.uintp(min(place, last)) if place > 0 else np.uintp(0)
            counts[q, c, np.uintp(below[q, at])] += w


def promising_cuts(
    scores: FloatArray,
    gap: float,
    cell: NDArray[np.intp],
    weight: FloatArray | None,
    n_cells: int,
    rate: AnyRate,
    compared: int,
    bars: FloatArray,
    caution: float,
) -> tuple[FloatArray, FloatArray]:
    """As :func:`evenhand.cuts.one_cut`, without most cuts that known points beat.

    ``bars`` has the accuracies to be exceeded, in bins of the rate's ratio and of the ratio less
    ``caution`` standard errors; the last is for a ratio of 1. One of the two must be exceeded.
    """
    if weight is None and n_cells <= FEW_CELLS:
        # Scores carry their cells through the sort, which is quicker than to find an order.
        bits = (scores.view(np.int64) & ~LAST_BITS) | cell
        s = np.sort(bits.view(np.float64))[::-1]
        cell = s.view(np.int64) & LAST_BITS
        weight = np.zeros(0)
    else:
        order = np.argsort(scores)[::-1]
        s, cell = scores[order], cell[order]
        weight = np.zeros(0) if weight is None else weight[order]
    masks = [
        np.array([[(i // 2, i % 2) in cells(part) for i in range(4)] for part in rate.parts], float)
        for cells in (lambda part: part.numerator, lambda part: part.denominator)
    ]
    shares = rate.shares if isinstance(rate, WorstRate) else ()
    ends, above = np.empty(len(s), np.intp), np.empty((n_cells, len(s)))
    walk: Any = _walk
    noted = walk(
        s,
        cell,
        weight,
        gap,
        n_cells,
        compared,
        *masks,
        np.array([part.is_error for part in rate.parts]),
        np.array(shares or (1.0,) * len(rate.parts)),
        bars,
        caution,
        ends,
        above,
    )
    ends, above = ends[:noted], above[:, :noted]
    mass = np.bincount(cell, weights=weight if len(weight) else None, minlength=n_cells)
    high, low = s[ends], s[ends + 1]
    return high + (low - high) / 2, np.stack([mass[:, None] - above, above], axis=1)
