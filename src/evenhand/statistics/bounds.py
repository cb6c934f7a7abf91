"""Lower bounds of how groups compare, from counts: exact, or approximate for a confidence.

The exact ones are what certificates promise. They have a name each, which files keep.
"""

from collections.abc import Callable
from itertools import permutations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import ndtri

from evenhand.core.arrays import FloatArray
from evenhand.core.objectives import ACCURACY, Objective
from evenhand.core.rates import AnyRate, Rate, WorstRate
from evenhand.core.targets import Target
from evenhand.statistics.exact import Pair, error_of, order_of, score_limit
from evenhand.statistics.proportions import clopper_pearson, wilson_interval

__all__ = [
    "BOUND",
    "BOUNDS",
    "FIRST_BOUND",
    "exact_bound",
    "expected_bound",
    "lower_difference",
    "lower_gain",
    "lower_ratio",
    "lower_value",
    "margin_of",
    "ratio_bound",
    "rows_factor",
]

# Above this many times the rows at hand, no number of rows is reported.
MOST_TIMES = 1e9
# Beyond so many rows an estimate is not computed anew by the exact bound, which it comes near to.
MOST_ROWS = 1e7
# Pairs whose limits are found at once, and that are tested at all points together.
MOST_PAIRS, MOST_TESTED = 1 << 18, 20_000


def exact_score_bound(counts: ArrayLike, target: Target, delta: float) -> FloatArray:
    r"""Least of the exact lower bounds of all ordered pairs of groups and all rates.

    .. math:: \min_{r} \frac{1}{c_r} \Big(o_r + \min_{j \ne k} L_\delta(a_j, b_j; a_k, b_k)\Big),

    with :func:`~evenhand.statistics.exact.lower_bound` for L, of a ratio or a difference as the
    target compares the rate, the share :math:`c_r` of the target that a rate must reach, and its
    offset :math:`o_r`, −1 of a ratio in a mixed target (:class:`~evenhand.core.targets.Target`).
    Each pair has all of δ: the population misses the target only if
    some pair does, and to say otherwise the bound of that pair must be wrong.
    """
    counts = np.asarray(counts, dtype=np.float64)
    shape = counts.shape[:-3]
    found = np.full(int(np.prod(shape)), np.nan)
    if counts.shape[-3] < 2:
        return found.reshape(shape)
    pairs = _pairs(np.rint(counts.reshape(-1, *counts.shape[-3:])), target)
    order = order_of(delta)
    limit = _limits(pairs, order)
    gamma, error = error_of(delta)
    for i in np.flatnonzero((pairs.trials > 0).all(axis=(0, 2))):
        least = np.inf
        # Of most pairs it is only asked whether they are above what others have shown.
        for n in np.argsort((limit[i] + pairs.offset) / pairs.share):
            share, offset, difference = (of[n] for of in pairs[2:])
            most = least * share - offset
            if not difference and most <= 0:
                continue  # no ratio is less
            if not difference and not pairs.hits[0, i, n]:
                least = min(least, offset / share)
                if least <= target.worst:
                    break
                continue
            pair = Pair.of(
                pairs.hits[:, i, n],
                pairs.trials[:, i, n],
                bool(difference),
                gamma,
                limit=float(limit[i, n]),
                rows=pairs.trials.sum(),
                order=order,
            )
            if least == np.inf or not pair.rejects(most, error):
                bound = pair.bound(error, min(pair.seen, most))
                least = min(least, (bound + offset) / share)
        found[i] = least
    seen = target.value(counts)
    return np.where(found.reshape(shape) > seen, seen, found.reshape(shape))


class _Pairs(NamedTuple):
    """Hits and trials, shape (2, n, n_pairs), of ordered pairs of groups for each rate.

    And of each pair how its value is brought to the target's scale, and how it is compared.
    """

    hits: FloatArray
    trials: FloatArray
    share: FloatArray
    offset: FloatArray
    difference: NDArray[np.bool_]


def _pairs(counts: FloatArray, target: Target) -> _Pairs:
    fractions = []
    for rate in target.rate.components:
        found = np.array(rate.fractions(counts))
        fractions.append(found[..., np.array(list(permutations(range(found.shape[-1]), 2))).T])
    hits, trials = np.moveaxis(np.concatenate(fractions, axis=-1), 2, 1)
    differs = [kind == "difference" for kind in target.kinds]
    n_pairs = [found.shape[-1] for found in fractions]
    about = (np.repeat(of, n_pairs) for of in (target.rate.shares, target.offsets, differs))
    return _Pairs(hits, trials, *about)


def _limits(pairs: _Pairs, quantile: float) -> FloatArray:
    """Give the score limit of each pair, as it is compared."""
    limit = np.empty(pairs.hits.shape[1:])
    for difference in (False, True):
        of = pairs.difference == difference
        if of.any():
            hits, trials = pairs.hits[..., of], np.maximum(pairs.trials[..., of], 1e-9)
            limit[:, of] = score_limit(hits, trials, difference=difference, quantile=quantile)
    return limit


def expected_bound(counts: ArrayLike, target: Target, delta: float) -> FloatArray:
    """Score limit that :func:`exact_bound` comes near to, at once; fractions of rows will do."""
    counts = np.asarray(counts, dtype=np.float64)
    shape, n_groups = counts.shape[:-3], counts.shape[-3]
    found, quantile = np.full(int(np.prod(shape)), np.nan), float(ndtri(1 - delta))
    if n_groups > 1:
        counts, at_once = counts.reshape(-1, *counts.shape[-3:]), 1 + MOST_PAIRS // n_groups**2
        for start in range(0, len(counts), at_once):
            block = slice(start, start + at_once)
            pairs = _pairs(counts[block], target)
            scaled = (_limits(pairs, quantile) + pairs.offset) / pairs.share
            limit = scaled.min(axis=1)
            found[block] = np.where((pairs.trials > 0).all(axis=(0, 2)), limit, np.nan)
    return found.reshape(shape)


def ratio_bound(counts: ArrayLike, rate: AnyRate, delta: float) -> FloatArray:
    r"""Lower confidence bound of the smallest over the largest rate, as in files of old.

    .. math:: \min_j \ell_j \big/ \max_k h_k, \qquad \epsilon = \delta / 2 .

    Half of δ for each side is enough for any number of groups. Let j be the group whose rate in the
    population is the smallest and k the one whose is the largest. The smallest lower bound is at
    most :math:`\ell_j`, the largest upper bound at least :math:`h_k`; so the quotient exceeds
    :math:`p_j / p_k` only if :math:`\ell_j > p_j` or :math:`h_k < p_k`, two events of probability
    δ/2. The other groups' bounds can only make the quotient smaller.

    Nor do several rates that must all hold cost more: the smallest of their bounds reaches τ
    wrongly only if the bound of a rate that misses τ does, and one such rate is enough to look at.

    Parameters
    ----------
    counts : array-like of shape (..., n_groups, 2, 2)
        Rows per group × label × prediction, unweighted.
    rate : Rate or WorstRate
        The rate, or several.
    delta : float
        Probability with which the bound may exceed the ratio in the population.

    Returns
    -------
    ndarray
        The bound, never above ``rate.ratio(counts)``. NaN where a group's rate is undefined or
        there is one group only. Where no group has any hits it is 0, also for an error rate, whose
        ratio is 1 then: a handful of rows without an error is no proof.
    """
    if isinstance(rate, WorstRate):
        pairs = zip(rate.components, rate.shares, strict=True)
        return np.asarray(np.min([ratio_bound(counts, r, delta) / c for r, c in pairs], axis=0))
    top, bottom = rate.fractions(counts)
    if top.shape[-1] < 2:
        return np.full(top.shape[:-1], np.nan)
    lower, upper = clopper_pearson(top, bottom, delta / 2)
    # min and max give NaN if one of the groups has it.
    return np.asarray(lower.min(axis=-1) / upper.max(axis=-1))


def rows_factor(counts: ArrayLike, target: Target, delta: float) -> float:
    r"""How many times the rows, at the same rates, make :func:`exact_bound` reach the target.

    Infinite if no number does: the observed ratio, to which the bound rises, must exceed τ.
    """
    counts = np.asarray(counts, dtype=float)
    if not target.value(counts) > target.level:
        return float("inf")
    low, high = 1.0, MOST_TIMES
    for _ in range(3):
        times = np.geomspace(low, high, 200)
        reached = expected_bound(times[:, None, None, None] * counts, target, delta) >= target.level
        if not reached.any():
            return float("inf")
        i = int(np.argmax(reached))
        low, high = times[max(i - 1, 0)], times[i]
    while high * counts.sum() < MOST_ROWS:
        if target.reached(exact_bound(high * counts, target, delta)):
            break
        high *= 1.05
    return float(high)


# By how many standard errors the log ratio of a chosen point is better on the rows it was chosen on
# than in the population, on the average over generated tables (``benchmarks/confidence.py``).
CHOSEN = 0.3


def margin_of(confidence: float | None) -> float:
    r"""Give the standard errors by which a confidence asks a value to be above its target.

    .. math:: \Phi^{-1}(\text{confidence}) + 0.3,

    the second term for what choosing among many points adds: the chosen one looks better than it
    is. Without a confidence it is 0.

    Parameters
    ----------
    confidence : float or None
        About the probability with which the value in the population shall reach the target.

    Examples
    --------
    >>> from evenhand.statistics.bounds import margin_of
    >>> round(margin_of(0.9), 3), margin_of(None)
    (1.582, 0.0)
    """
    return 0.0 if confidence is None else float(ndtri(confidence)) + CHOSEN


def lower_gain(counts: ArrayLike, margin: float, objective: Objective = ACCURACY) -> FloatArray:
    r"""Rows more that are right than by the same answer to everybody, less a margin for chance.

    .. math:: b - c - m \sqrt{b + c},

    where b rows are right that the commonest label as everybody's answer has wrong, and c the other
    way round: all other rows are right, or wrong, by either (McNemar). By another objective the
    rows of each label weigh what a right answer is worth, their variance its square, and of several
    answers to everybody that are equally good the one counts that is the hardest to beat.

    Parameters
    ----------
    counts : array-like of shape (..., n_groups, n_labels, n_labels)
        Weight per group × label × prediction.
    margin : float
        The standard errors m.
    objective : Objective
        What is maximised.

    Examples
    --------
    >>> from evenhand.statistics.bounds import lower_gain
    >>> counts = [[[50, 4], [20, 16]], [[5, 0], [3, 2]]]  # 73 right of 100; of "0" to all 59
    >>> float(lower_gain(counts, 0.0)), round(float(lower_gain(counts, 2.0)), 3)
    (14.0, 4.619)
    """
    total = np.asarray(counts, dtype=np.float64).sum(axis=-3)
    n, right = total.sum(axis=-1), np.diagonal(total, axis1=-2, axis2=-1)
    worth = objective.worths(n)
    gain, lost, spread = worth * right, worth * (n - right), worth**2
    # Of each label as everybody's answer: what is earned besides, and what is lost of it.
    b, c = gain.sum(axis=-1, keepdims=True) - gain, lost
    variance = (spread * right).sum(axis=-1, keepdims=True) + spread * (n - 2 * right)
    beaten = b - c - margin * np.sqrt(np.maximum(variance, 0.0))
    best = (worth * n).max(axis=-1, keepdims=True)
    return np.asarray(np.where(worth * n >= best * (1 - 1e-9), beaten, np.inf).min(axis=-1))


def lower_ratio(counts: ArrayLike, rate: Rate, margin: float) -> FloatArray:
    r"""Ratio of the groups' rates less a margin for chance.

    .. math:: \min_{j \ne i} \exp\Big(\log\frac{r_j}{r_i}
        - \sqrt{\log^2\frac{r_j}{\ell_j} + \log^2\frac{h_i}{r_i}}\Big)

    over all ordered pairs of groups, with :math:`\ell` and :math:`h` Wilson's limits of each rate,
    ``margin`` standard errors away (Zou and Donner's way to join two intervals into one of their
    quotient). Of many rows it is :math:`r_j / r_i \cdot e^{-m \sigma}`, σ the standard error of the
    logarithm; of few, a rate of 3 in 3 is not certain, as a standard error of 0 would have it.

    NaN where the ratio is undefined, 0 where a group has no hit.

    Parameters
    ----------
    counts : array-like of shape (..., n_groups, n_labels, n_labels)
        Weight per group × label × prediction.
    rate : Rate
        The rate.
    margin : float
        The standard errors m.
    """
    ratio = rate.ratio(counts)
    top, _, value, low, high = _with_limits(counts, rate, margin)
    lower = np.full(ratio.shape, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(value)
        down, up = value - np.log(low), np.log(high) - value
        for j, i in permutations(range(len(value)), 2):
            pair = value[j] - value[i] - np.hypot(down[j], up[i])
            lower = np.fmin(lower, np.exp(pair))
    lower = np.where((top > 0).all(axis=0), np.minimum(lower, ratio), 0.0)
    return np.where(np.isnan(ratio), np.nan, lower)


def lower_difference(counts: ArrayLike, rate: Rate, margin: float) -> FloatArray:
    r"""Minus the largest difference of the groups' rates, less a margin for chance.

    .. math:: \min_{j \ne i} \Big(r_j - r_i - \sqrt{(r_j - \ell_j)^2 + (h_i - r_i)^2}\Big)

    over all ordered pairs of groups (Newcombe's interval); parameters as of :func:`lower_ratio`.
    """
    difference = rate.difference(counts)
    *_, value, low, high = _with_limits(counts, rate, margin)
    lower = 0.0 - difference
    for j, i in permutations(range(len(value)), 2):
        pair = value[j] - value[i] - np.hypot(value[j] - low[j], high[i] - value[i])
        lower = np.minimum(lower, pair)
    return np.asarray(lower)


def _with_limits(counts: ArrayLike, rate: Rate, margin: float) -> tuple[FloatArray, ...]:
    """Hits, trials, rates and Wilson's limits of each group."""
    top, bottom = (np.moveaxis(v, -1, 0) for v in rate.fractions(counts))
    with np.errstate(divide="ignore", invalid="ignore"):
        return top, bottom, top / bottom, *wilson_interval(top, bottom, margin)


class Bound(NamedTuple):
    """A way to bound a target's value.

    Parameters
    ----------
    exact : callable
        Takes counts of whole rows, a target and δ; gives lower confidence bounds.
    expected : callable
        As ``exact``, of counts that are expected; tests are put in order by it.
    most_tests : int or None
        How many points are tested at the most, fewer of many groups.
    worth : float
        Least share that a tested point keeps of what the most accurate one gains over one answer
        to everybody.
    """

    exact: Callable[[Any, Target, float], FloatArray]
    expected: Callable[[Any, Target, float], FloatArray]
    most_tests: int | None = None
    worth: float = 0.0

    def spread(self, order: NDArray[np.intp], n_groups: int) -> NDArray[np.intp]:
        """Give those in line that are tested, evenly spread, the first and the last among them."""
        if self.most_tests is None or not len(order):
            return order
        n = min(max(MOST_TESTED // n_groups**2, 20), self.most_tests)
        return order[np.unique(np.linspace(0, len(order) - 1, n).round().astype(int))]


def _two_limits(counts: ArrayLike, target: Target, delta: float) -> FloatArray:
    return ratio_bound(counts, target.rate, delta)


# A guarantee for a classifier that has lost more of its worth is not what was asked for.
WORTH = 2 / 3
# The bound that guarantees are made by; a model file says by which its own was made,
# one of the first version by none.
BOUND, FIRST_BOUND = "exact-score", "clopper-pearson"
BOUNDS = {
    BOUND: Bound(exact_score_bound, expected_bound, 100, WORTH),
    FIRST_BOUND: Bound(_two_limits, _two_limits),
}
LOWER = {"ratio": lower_ratio, "difference": lower_difference}


def exact_bound(counts: ArrayLike, target: Target, delta: float, name: str = BOUND) -> FloatArray:
    """Exact lower confidence bound of a target's value, by the bound of a name in ``BOUNDS``."""
    return BOUNDS[name].exact(counts, target, delta)


def lower_value(counts: ArrayLike, target: Target, margin: float) -> FloatArray:
    """Give a target's value less a margin for chance of ``margin`` standard errors.

    If several rates must all hold, the smallest counts, each on the target's scale.
    """
    if not margin:
        return target.value(counts)
    pairs = zip(target.rate.components, target.kinds, strict=True)
    lower = [LOWER[kind](counts, rate, margin) for rate, kind in pairs]
    return np.asarray(target.scaled(lower).min(axis=0))
