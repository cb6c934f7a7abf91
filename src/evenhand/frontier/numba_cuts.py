"""Loops over sorted scores, compiled by numba: which cuts are worth a closer look."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.notions import AnyNotion
from evenhand.core.targets import Target

__all__ = ["CutFinder"]

# Rows in a bin of scores, on the average, and how many bins there are at the least.
BIN_ROWS, LEAST_BINS = 8, 256
# Rows of a bin beyond which NumPy sorts them.
FULL_BIN = 64
# Accuracies closer than this count as equal here: the sweep compares the candidates again.
SLACK = 1e-9
# What is left of a sum when its fractional weights are taken away one by one.
ROUNDING = 1e-11


@njit(cache=True, nogil=True)
def _fill_bins(
    s: Any, cell: Any, weight: Any, high: float, per_unit: float, bin_of: Any, mass: Any,
    above: Any, top: Any,
) -> None:  # fmt: skip
    """Put rows into bins of equal width, the highest first.

    Notes the bin of each row, the weight of each bin's cells and above it, and its highest score.
    """
    last = np.uintp(len(top) - 1)
    for i in range(len(s)):
        at = min(np.uintp((high - s[i]) * per_unit), last)
        bin_of[i] = at
        mass[at, np.uintp(cell[i])] += weight[i] if len(weight) else 1.0
        top[at] = max(top[at], s[i])
    for b in range(1, len(top)):
        for c in range(mass.shape[1]):
            above[b, c] = above[b - 1, c] + mass[b - 1, c]


@njit(cache=True, nogil=True, error_model="numpy")
def _two_largest(most: float, second: float, term: float) -> tuple[float, float]:
    if term > most:
        return term, most
    return most, max(second, term)


@njit(cache=True, nogil=True, error_model="numpy")
def _counted(cells: Any, k: int, y: int, negative: float, positive: float) -> float:
    """Weight that rate k's numerator, or denominator, counts of rows with label y.

    ``cells`` has 1 for each label × answer that is counted, else 0.
    """
    return negative * cells[k, 2 * y] + positive * cells[k, 2 * y + 1]


@njit(cache=True, nogil=True, error_model="numpy")
def _bar(bars: Any, value: float, worst: float) -> int:
    """Bin of a value among the bars, the worst value in the first one."""
    last = bars.shape[1] - 1
    return max(min(int((value - worst + 1e-9) * last), last), 0)


@njit(cache=True, nogil=True, error_model="numpy")
def _lowered(value: float, margin: float, differs: bool, scale: float, shift: float) -> float:
    """Value of a rate less its margin, as :meth:`evenhand.core.targets.Target.cautious` has it."""
    if differs:
        return value - margin * scale
    return (value - shift) * np.exp(-margin) + shift


@njit(cache=True, nogil=True, error_model="numpy")
def _mark_bins(
    mass: Any, above: Any, total: Any, whole: float, rates: Any, bars: Any, caution: float,
    marked: Any,
) -> None:  # fmt: skip
    """Mark the bins that may have a candidate, from bounds on utility and value within each.

    ``above`` is the weight of the cells above each bin, ``total`` in all.
    """
    compared, tops, bottoms, _, differs, scales, shifts, worst, worths = rates
    ratios = worst == 0
    n_bins, n_cells, last = mass.shape[0], mass.shape[1], bars.shape[1] - 1
    slack, right = SLACK * whole, 0.0
    for c in range(0, n_cells, 2):
        right += worths[0] * total[c]  # of no positive answer
    for b in range(n_bins):
        gain, loss = 0.0, 0.0
        for c in range(0, n_cells, 2):
            gain, loss = gain + worths[1] * mass[b, c + 1], loss + worths[0] * mass[b, c]
        best = right + gain + slack
        right += gain - loss
        if not gain + loss or best <= min(bars[0, last], bars[1, last]) * whole:
            continue
        value, sure, variance = worst + 1, worst + 1, np.inf
        for k in range(tops.shape[0]):
            least, most, first, second = np.inf, 0.0, 0.0, 0.0
            for g in range(compared):
                a_low, a_high, b_low, b_high = 0.0, 0.0, 0.0, 0.0
                for y in range(2):
                    up, moved = above[b, 2 * g + y], mass[b, 2 * g + y]
                    rest = total[2 * g + y] - up
                    a, d = _counted(tops, k, y, rest, up), _counted(tops, k, y, -moved, moved)
                    a_low, a_high = a_low + a + min(d, 0.0), a_high + a + max(d, 0.0)
                    a, d = _counted(bottoms, k, y, rest, up), _counted(bottoms, k, y, -moved, moved)
                    b_low, b_high = b_low + a + min(d, 0.0), b_high + a + max(d, 0.0)
                a_low, a_high = a_low - slack, a_high + slack
                b_low, b_high = b_low - slack, b_high + slack
                least = min(least, a_high / b_low if b_low > 0 else np.inf)
                most = max(most, a_low / b_high)
                if differs[k]:
                    misses = max(b_low - a_high, 0.0) + 0.5
                    term = (max(a_low, 0.0) + 0.5) * misses / (b_high + 1) ** 3
                else:
                    term = 1 / (a_high + 0.5) - 1 / (max(b_low, a_high) + 0.5)
                first, second = _two_largest(first, second, term)
            own = worst + 1
            if differs[k]:
                own = min(least - most, 0.0) * scales[k]
            elif most > 0:
                own = min(least / most * scales[k] + shifts[k], own)
            value, variance = min(value, own), min(variance, first + second)
            margin = caution * np.sqrt(max(first + second - 1e-12, 0.0))
            sure = min(sure, _lowered(own, margin, differs[k], scales[k], shifts[k]))
        if ratios:
            # Which rate is the worst within the bin is not known.
            sure = value * np.exp(-caution * np.sqrt(max(variance - 1e-12, 0.0)))
        at, surely = _bar(bars, value, worst), _bar(bars, sure, worst)
        marked[b] = best > min(bars[0, at], bars[1, surely]) * whole


@njit(cache=True, nogil=True)
def _sort_rows(
    s: Any, bin_of: Any, marked: Any, starts: Any, ends: Any, some: Any, rows: Any
) -> int:
    """Put the rows of marked bins in ``rows``, by falling score.

    Returns how many there are, or -1 if a bin has too many to be sorted here. ``starts`` and
    ``ends`` are zeros, ``some`` is room to work in.
    """
    n = 0
    for i in range(len(bin_of)):
        some[n] = i  # branch-free: avoids misprediction
        n += marked[bin_of[i]]
    for q in range(n):
        ends[bin_of[some[q]]] += 1
    before = 0
    for b in range(len(marked)):
        if ends[b] > FULL_BIN:
            return -1
        starts[b] = before
        before += ends[b]
        ends[b] = starts[b]
    for q in range(n):
        i = some[q]
        b = bin_of[i]
        # By insertion: those before it in its bin are sorted.
        j = ends[b]
        while j > starts[b] and s[rows[j - 1]] < s[i]:
            rows[j] = rows[j - 1]
            j -= 1
        rows[j] = i
        ends[b] += 1
    return n


@njit(cache=True, nogil=True, error_model="numpy")
def _walk(
    s: Any, cell: Any, weight: Any, bin_of: Any, above: Any, below: Any, total: Any, whole: float,
    gap: float, rates: Any, bars: Any, caution: float, min_share: float, prune: bool, room: Any,
) -> int:  # fmt: skip
    """Go through the rows of marked bins, from the highest score; note the candidates among cuts.

    ``bin_of`` is the bin of each row, ``above`` the cells' weight above each bin and ``below`` the
    next score below it. ``rates`` say of how many groups they are, which of label × answer each
    counts, whether it is an error and whether its difference counts, what its value is multiplied
    by and what is added then, the worst value, and what a right answer of each label is worth.
    Returns how many cuts were noted, the first in ``room``, with each cell's weight above them, the
    second. Values are as in :class:`evenhand.core.targets.Target`. With ``prune``, cuts that others
    of these beat are left out, and the bars are raised for the next iterates.
    """
    compared, tops, bottoms, errors, differs, scales, shifts, lowest, worths = rates
    # A and B are numerators and denominators of the rates of each group.
    cuts, counts, merit, bins, best, up, A, B, own = room
    ratios = lowest == 0
    n, n_bins, n_rates, n_cells = len(s), bars.shape[1] - 1, tops.shape[0], len(total)
    slack, tiny = SLACK * whole, ROUNDING * whole
    noted, right = 0, 0.0
    for i in range(n):
        if i == 0 or bin_of[i] != bin_of[i - 1]:
            right = 0.0
            for c in range(n_cells):
                up[c] = above[bin_of[i], c]
                right += worths[c % 2] * (up[c] if c % 2 else total[c] - up[c])
            for k in range(n_rates):
                for g in range(n_cells // 2):
                    A[k, g], B[k, g] = 0.0, 0.0
                    for y in range(2):
                        c = 2 * g + y
                        A[k, g] += _counted(tops, k, y, total[c] - up[c], up[c])
                        B[k, g] += _counted(bottoms, k, y, total[c] - up[c], up[c])
        w = weight[i] if len(weight) else 1.0
        j, y = cell[i] >> 1, cell[i] & 1
        up[np.uintp(cell[i])] += w
        right += worths[1] * w if y else -worths[0] * w
        for k in range(n_rates):
            A[k, j] += _counted(tops, k, y, -w, w)
            B[k, j] += _counted(bottoms, k, y, -w, w)
        following = s[i + 1] if i + 1 < n and bin_of[i + 1] == bin_of[i] else below[bin_of[i]]
        if not s[i] - following > gap or following == -np.inf:
            continue
        fits, firm = True, True  # shares of positives, and without a doubt
        for g in range(compared):
            share, all_g = up[2 * g] + up[2 * g + 1], total[2 * g] + total[2 * g + 1]
            spare = min(share, all_g - share) - min_share * all_g
            fits, firm = fits and spare > -slack, firm and spare > slack
        if not fits:
            continue
        worst, which, defined = np.inf, 0, True
        for k in range(n_rates):
            low, low_b = A[k, 0], B[k, 0]
            high, high_b = low, low_b
            defined = defined and low_b > tiny
            for g in range(1, compared):
                a, b = A[k, g], B[k, g]
                defined = defined and b > tiny
                if a * low_b < low * b:
                    low, low_b = a, b
                if a * high_b > high * b:
                    high, high_b = a, b
            if differs[k]:
                value = (low * high_b - high * low_b) / (low_b * high_b) * scales[k]
            else:
                defined = defined and (high > tiny or errors[k])
                ratio = low * high_b / (low_b * high) if high > tiny else 1.0
                value = min(ratio * scales[k] + shifts[k], lowest + 1)
            own[k] = value
            if value < worst:
                worst, which = value, k
        if not defined:
            continue
        at = _bar(bars, worst, lowest)
        # The value less its margin is at most the value, and its bar at least as high.
        if right + slack <= min(bars[0, at], bars[1, at]) * whole:
            continue
        sure = np.inf
        for k in range(n_rates):
            if ratios and k != which:
                continue
            most, second = -np.inf, -np.inf
            for g in range(compared):
                a, b = A[k, g], B[k, g]
                if differs[k]:
                    term = (a + 0.5) * (b - a + 0.5) / (b + 1) ** 3
                else:
                    term = 1 / (a + 0.5) - 1 / (b + 0.5)
                most, second = _two_largest(most, second, term)
            margin = caution * np.sqrt(max(most + second, 0.0))
            sure = min(sure, _lowered(own[k], margin, differs[k], scales[k], shifts[k]))
        surely = _bar(bars, sure, lowest)
        if right + slack <= min(bars[0, at], bars[1, surely]) * whole:
            continue
        cuts[noted] = s[i] + (following - s[i]) / 2
        for c in range(n_cells):
            counts[c, noted] = up[c]
        merit[noted], bins[0, noted], bins[1, noted] = right, at, surely
        if firm:
            for k in range(2):
                best[k, bins[k, noted]] = max(best[k, bins[k, noted]], right)
        noted += 1
    if prune:
        for b in range(n_bins, -1, -1):
            for k in range(2):
                bars[k, b] = max(bars[k, b], best[k, b + 1] / whole)
                best[k, b] = max(best[k, b], best[k, b + 1])
        left = 0
        for q in range(noted):
            # Those of a higher bin have a higher value.
            if merit[q] + slack > min(best[0, bins[0, q] + 1], best[1, bins[1, q] + 1]):
                cuts[left] = cuts[q]
                for c in range(n_cells):
                    counts[c, left] = counts[c, q]
                left += 1
        noted = left
    return noted


def _arrays_of(target: Target, groups: int, worths: FloatArray) -> tuple[Any, ...]:
    """Describe a target, of so many groups, and the objective to the compiled loops."""
    parts, shares = target.rate.components, np.array(target.rate.shares)
    tops, bottoms = (
        np.array([[(i // 2, i % 2) in cells for i in range(4)] for cells in sides], float)
        for sides in ([r.numerator for r in parts], [r.denominator for r in parts])
    )
    errors = np.array([part.is_error for part in parts])
    differs = np.array([kind == "difference" for kind in target.kinds])
    shifts = np.array(target.offsets) / shares
    return groups, tops, bottoms, errors, differs, 1 / shares, shifts, target.worst, worths


class CutFinder:
    """Cuts as of :func:`~evenhand.frontier.cuts.one_cut`, without most that other points beat.

    Rows are put into bins; a bin is sorted only if it may have a candidate.

    ``cell``, group × label, and ``weight`` are of the rows. For each of the ``targets`` cuts are
    sought by themselves. ``groups`` are compared, of ``n_groups_all`` with the rest. Every group
    must have at least ``min_share`` of positives and of negatives.
    """

    def __init__(
        self,
        cell: NDArray[np.intp],
        weight: FloatArray | None,
        notion: AnyNotion,
        targets: Sequence[Target],
        groups: int,
        n_groups_all: int,
        cautions: Sequence[float],
        min_share: float,
        worths: FloatArray,
        n_edges: int,
    ) -> None:
        n, n_cells = len(cell), 2 * n_groups_all
        self.cell, self.weight = cell, np.zeros(0) if weight is None else weight
        self.min_share = min_share
        arrays = [_arrays_of(target, groups, worths) for target in targets]
        self.targets = list(zip(arrays, cautions, strict=True))
        # Only an eligible cut beats others, and of eligibility only the shares are checked here.
        self.prune = not any(one.better_than_chance for one in notion.components)
        # Made once and used by every call: fresh memory of this size is slow to come by.
        self.n_bins = max(n // BIN_ROWS, LEAST_BINS)
        self.bin_of, self.some, self.order = np.empty((3, n), np.intp)
        self.top, self.marked = np.empty(self.n_bins), np.empty(self.n_bins, dtype=bool)
        self.mass, self.above = np.empty((2, self.n_bins, n_cells))
        self.ranges = np.empty((2, self.n_bins), np.intp)
        self.cuts, self.counts = np.empty(n), np.empty((n_cells, n))
        self.best = np.empty((2, n_edges + 1))
        merit, bins, up = np.empty(n), np.empty((2, n), int), np.empty(n_cells)
        most = max(len(target.kinds) for target in targets)
        (A, B), own = np.empty((2, most, n_groups_all)), np.empty(most)
        self.room = self.cuts, self.counts, merit, bins, self.best, up, A, B, own

    def __call__(
        self, scores: FloatArray, gap: float, bars: Sequence[FloatArray]
    ) -> list[tuple[FloatArray, FloatArray]]:
        """Cuts in gaps between scores wider than ``gap``; each cell's weight below and above them.

        ``bars`` are for each target utilities in bins of its value and of the value less the
        caution; a candidate exceeds one of the two. Candidates raise them, so calls follow one
        another.
        """
        above, high = self.above, float(scores.max())
        per_unit = self.n_bins / max(high - float(scores.min()), 1e-300)
        for zeros in (self.mass, above[0]):
            zeros.fill(0)
        self.top.fill(-np.inf)
        of_bins = self.bin_of, self.mass, above, self.top
        _fill_bins(scores, self.cell, self.weight, high, per_unit, *of_bins)
        pairs = zip(self.targets, bars, strict=True)
        return [self._find(scores, gap, *target, bar) for target, bar in pairs]

    def _find(
        self,
        scores: FloatArray,
        gap: float,
        rates: tuple[Any, ...],
        caution: float,
        bars: FloatArray,
    ) -> tuple[FloatArray, FloatArray]:
        """Find the cuts for one target, with the bins filled."""
        cell, weight, above = self.cell, self.weight, self.above
        for zeros in (self.marked, self.ranges):
            zeros.fill(0)
        self.best.fill(-np.inf)
        total = above[-1] + self.mass[-1]
        whole = float(total.sum())
        _mark_bins(self.mass, above, total, whole, rates, bars, caution, self.marked)
        starts, ends = self.ranges
        n_rows = _sort_rows(scores, self.bin_of, self.marked, starts, ends, self.some, self.order)
        rows = self.order[:n_rows]
        if n_rows < 0:
            rows = np.flatnonzero(self.marked[self.bin_of])
            rows = rows[np.argsort(scores[rows])[::-1]]
        # The next score below a bin is the highest of the next one that has rows.
        below = np.append(np.maximum.accumulate(self.top[::-1])[::-1][1:], -np.inf)
        noted = _walk(
            scores[rows], cell[rows], weight[rows] if len(weight) else weight, self.bin_of[rows],
            above, below, total, whole, gap, rates, bars, caution, self.min_share,
            self.prune, self.room,
        )  # fmt: skip
        counts = self.counts[:, :noted]
        negative = total[:, None] - counts
        negative[negative < ROUNDING * whole] = 0.0
        return self.cuts[:noted].copy(), np.stack([negative, counts], axis=1)
