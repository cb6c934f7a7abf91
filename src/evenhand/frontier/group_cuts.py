"""A cut for each group: the best ones for every target of the groups' rates."""

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.rates import Rate
from evenhand.core.targets import Target
from evenhand.frontier.cuts import FEW_CUTS, one_cut

__all__ = ["group_cuts", "score_curves"]

# Width of the bins of log rates, and the least rate that has a bin of its own.
RATE_STEP, LEAST_RATE = 0.0005, 1e-5
# The best group cuts are sought for about this many ratios of rates, from 1 to the least.
N_RATIOS, LEAST_RATIO = 300, 0.2

# The same of rates themselves, for differences: width of the bins, differences and the largest.
DIFFERENCE_STEP, N_DIFFERENCES, MOST_APART = 0.00025, 300, 0.5

# For one rate the best are sought at about this many levels of the highest rate, each by itself:
# where more rows are favoured, the rate is surer. Of several rates at once, which are sought in
# combination, so many times fewer targets of each are enough.
N_LEVELS, FEWER = 100, 5

# Where several rates count: width of the bins of values, of ratios or others, and of log levels.
RATIO_STEP, SHORTFALL_STEP, LEVEL_STEP = 0.01, 0.0025, 0.1


class _Curve(NamedTuple):
    """A group's cuts from the highest to the lowest, with its counts, shape (n_cuts, 1, 2, 2)."""

    cut: FloatArray
    counts: FloatArray
    right: FloatArray
    """Worth of its rows that are answered rightly."""


def group_cuts(
    groups: Sequence[tuple[FloatArray, FloatArray]],
    rest: Callable[[FloatArray], tuple[FloatArray, FloatArray]] | None,
    *,
    target: Target,
    eligible: Callable[[FloatArray], NDArray[np.bool_]],
    worths: ArrayLike = (1.0, 1.0),
) -> tuple[FloatArray, FloatArray]:
    r"""Best cuts for each group, for many ratios of the groups' rates, and their counts.

    For a ratio τ and a highest rate h every group takes, by itself, the most accurate of its cuts
    whose rate is in :math:`[\tau h, h]`, and in :math:`[h - \epsilon, h]` for a difference ε; of
    all h about one level the best is kept. One sort of each group's scores gives its cuts, and
    running maxima over its rates, sorted into bins, give all h at once. Where several rates count,
    the best of all h is kept, and cuts of the groups are also tried in combination.

    Parameters
    ----------
    groups : sequence of (cuts, weights)
        The cuts of each compared group, and its weights at them, shape (2, 2, n_cuts): label ×
        answer.
    rest : callable, optional
        Takes cuts for rows of no group, which get the groups' mean cut, and gives those that are
        taken and their weights. None if there are no such rows.
    target : Target
        What the groups shall share.
    eligible : callable
        Whether counts, shape (n, 1, 2, 2), are admissible for a group.
    worths : array-like of shape (2,), default=(1.0, 1.0)
        What a right answer is worth for each label: then the best are not the most accurate ones.

    Returns
    -------
    cuts : ndarray of shape (n_cuts, n_groups_all)
    counts : ndarray of shape (n_groups_all, 2, 2, n_cuts)
    """
    n_groups_all = len(groups) + (rest is not None)
    nothing = np.zeros((0, n_groups_all)), np.zeros((n_groups_all, 2, 2, 0))
    curves, (other, favourable) = [], np.asarray(worths)
    for cut, weights in groups:
        counts = np.moveaxis(weights, -1, 0)[:, None]
        good = eligible(counts)
        if not good.any():
            return nothing
        counts = counts[good]
        right = other * counts[:, 0, 0, 0] + favourable * counts[:, 0, 1, 1]
        curves.append(_Curve(cut[good], counts, right))
    pairs = list(zip(target.rate.components, target.kinds, strict=True))
    chosen = [_windows(curves, rate, kind, len(pairs) == 1) for rate, kind in pairs]
    if len(pairs) > 1:
        chosen.append(_merged(curves, target))
    picked = np.unique(np.concatenate(chosen), axis=0)
    if not len(picked):
        return nothing
    cuts = np.column_stack([c.cut[i] for c, i in zip(curves, picked.T, strict=True)])
    counts = np.stack([c.counts[i, 0] for c, i in zip(curves, picked.T, strict=True)])
    counts = np.moveaxis(counts, 1, -1)
    if rest is not None:
        size = np.array([c.counts[0].sum() for c in curves])
        mean, rest_counts = rest(cuts @ (size / size.sum()))
        cuts, counts = np.column_stack([cuts, mean]), np.concatenate([counts, rest_counts[None]])
    return cuts, counts


def score_curves(
    scores: FloatArray,
    gap: float,
    cell: NDArray[np.intp],
    weight: FloatArray | None,
    groups: int,
    n_groups_all: int,
) -> tuple[list[tuple[FloatArray, FloatArray]], Callable[..., Any] | None]:
    """First two arguments of :func:`group_cuts` for the scores of all rows, as :func:`one_cut`'s.

    ``groups`` are compared; ``n_groups_all`` is one more if there are rows of no group.
    """
    group_curves = []
    for j in range(groups):
        rows = cell // 2 == j
        w = None if weight is None else weight[rows]
        group_curves.append(one_cut(scores[rows], gap, cell[rows] % 2, w, 2))
    others = cell // 2 == groups
    w = None if weight is None else weight[others]

    def rest(cuts: FloatArray) -> tuple[FloatArray, FloatArray]:
        answers = scores[others] > cuts[:, None]
        counts = [np.bincount(cell[others] % 2 * 2 + a, weights=w, minlength=4) for a in answers]
        return cuts, np.reshape(counts, (-1, 2, 2)).transpose(1, 2, 0)

    return group_curves, rest if n_groups_all > groups else None


def _log_bins(value: FloatArray) -> NDArray[np.intp]:
    """Bins of the logarithms of rates, the highest rate's the first."""
    return (-np.log(np.maximum(value, LEAST_RATE)) / RATE_STEP).astype(np.intp)


def _rate_bins(value: FloatArray) -> NDArray[np.intp]:
    """Bins of rates, the highest one's the first."""
    return ((1 - value) / DIFFERENCE_STEP).astype(np.intp)


def _windows(curves: Sequence[_Curve], rate: Rate, kind: str, by_level: bool) -> NDArray[np.intp]:
    """For each of many targets, the cut of each group in the best window of that width.

    ``by_level``: in the best one at each of many levels.
    """
    of_ratios = kind == "ratio"
    bins_of = _log_bins if of_ratios else _rate_bins
    n_bins = int(bins_of(np.zeros(1))[0]) + 1
    best = np.full((len(curves), n_bins), -np.inf)
    which = np.zeros((len(curves), n_bins), dtype=np.intp)
    for j, curve in enumerate(curves):
        value = rate.per_group(curve.counts)[:, 0]
        defined = np.flatnonzero(np.isfinite(value))
        bins = np.minimum(bins_of(value[defined]), n_bins - 1)
        order = np.argsort(curve.right[defined], kind="stable")  # the best is written last
        best[j, bins[order]] = curve.right[defined][order]
        which[j, bins[order]] = defined[order]
    picked = []
    widest = -np.log(LEAST_RATIO) / RATE_STEP if of_ratios else MOST_APART / DIFFERENCE_STEP
    n_widths = (N_RATIOS if of_ratios else N_DIFFERENCES) // (1 if by_level else FEWER)
    own = np.arange(len(curves))[:, None]
    # The maximum over the bins h, ..., h + power - 1, and where it is.
    reach, power, place = best, 1, np.broadcast_to(np.arange(n_bins), best.shape)
    for width in np.unique(np.geomspace(1, widest, n_widths).astype(int)).tolist():
        while 2 * power <= width:
            first = reach[:, :-power] >= reach[:, power:]
            reach = np.where(first, reach[:, :-power], reach[:, power:])
            place = np.where(first, place[:, :-power], place[:, power:])
            power *= 2
        # Two of these windows cover one of the width.
        ends = slice(n_bins - width + 1), slice(width - power, None)
        total = np.maximum(reach[:, ends[0]], reach[:, ends[1]]).sum(axis=0)
        starts = np.arange(0, len(total), len(total) if not by_level else n_bins // N_LEVELS)
        h = np.array([s + total[s:e].argmax() for s, e in pairwise([*starts, len(total)])])
        h = h[np.isfinite(total[h])]
        pair = np.stack([h, h + width - power])
        side = reach[:, pair].argmax(axis=1)
        at = np.take_along_axis(place[:, pair], side[:, None], axis=1)[:, 0]
        picked.append(which[own, at].T)
    return np.concatenate(picked)


def _merged(curves: Sequence[_Curve], target: Target) -> NDArray[np.intp]:
    """For several rates: groups are joined one by one, and of many values the best joint is kept.

    Of the cuts of the groups so far, only the most accurate is kept of all that are alike in the
    target's value and in the first rate's level: exact but for the grids when there are two groups.
    """
    rates = target.rate.components
    step = RATIO_STEP if target.comparison == "ratio" else SHORTFALL_STEP
    thin = [np.unique(np.linspace(0, len(c.cut) - 1, FEW_CUTS // 2).astype(int)) for c in curves]
    low: FloatArray = np.zeros((len(rates), 0))
    high = low
    right, index = np.zeros(0), np.zeros((0, 0), dtype=np.intp)
    for j, (curve, few) in enumerate(zip(curves, thin, strict=True)):
        value = np.stack([rate.per_group(curve.counts[few])[:, 0] for rate in rates])
        defined = np.isfinite(value).all(axis=0)
        value, few = value[:, defined], few[defined]
        if not len(few):
            return np.zeros((0, len(curves)), dtype=np.intp)
        if not j:
            low, high, right, index = value, value, curve.right[few], few[:, None]
            continue
        shape = (len(rates), len(right), len(few))
        low = np.minimum(low[:, :, None], value[:, None]).reshape(len(rates), -1)
        high = np.maximum(high[:, :, None], value[:, None]).reshape(len(rates), -1)
        right = (right[:, None] + curve.right[few]).ravel()
        ratios = np.divide(low, high, out=np.ones_like(low), where=high > 0)
        values = [
            r if kind == "ratio" else a - b
            for r, a, b, kind in zip(ratios, low, high, target.kinds, strict=True)
        ]
        worth = target.scaled(values).min(axis=0) - target.worst
        alike = (worth / step).astype(np.intp)
        if j + 1 < len(curves):
            level = (-np.log(np.maximum(high[0], LEAST_RATE)) / LEVEL_STEP).astype(np.intp)
            alike = alike * (int(-np.log(LEAST_RATE) / LEVEL_STEP) + 2) + level
        order = np.lexsort((-right, alike))
        kept = order[np.unique(alike[order], return_index=True)[1]]
        before, now = np.unravel_index(kept, shape[1:])
        index = np.column_stack([index[before], few[now]])
        low, high, right = low[:, kept], high[:, kept], right[kept]
    return index
