r"""Lower bounds of a ratio of rates, from counts: exact, or approximate for a confidence.

The exact bounds are one-sided. Of the rows that a group's rate :math:`p_j` conditions on,
:math:`b_j` in number, :math:`a_j` count; given :math:`b_j`, :math:`a_j` is binomial, and Clopper
and Pearson's

.. math:: \ell_j = B^{-1}(\epsilon;\, a_j,\, b_j - a_j + 1), \qquad
    h_j = B^{-1}(1 - \epsilon;\, a_j + 1,\, b_j - a_j),

with :math:`B^{-1}` the quantile of the beta distribution, are each on the wrong side of
:math:`p_j` with probability ε at most.
"""

from itertools import permutations

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv, ndtri

from evenhand.core.arrays import FloatArray
from evenhand.core.rates import AnyRate, Rate, WorstRate, wilson_interval
from evenhand.core.targets import Target

__all__ = [
    "BOUND",
    "BOUNDS",
    "clopper_pearson",
    "exact_bound",
    "lower_ratio",
    "lower_value",
    "margin_of",
    "ratio_bound",
    "rows_factor",
]

# Above this many times the rows at hand, no number of rows is reported.
MOST_ROWS = 1e9


def clopper_pearson(
    hits: ArrayLike, trials: ArrayLike, error: float
) -> tuple[FloatArray, FloatArray]:
    """One-sided lower and upper confidence bounds of a probability, each wrong at most ``error``.

    Parameters
    ----------
    hits, trials : array-like
        Successes and trials. NaN where there are no trials.
    error : float
        Probability with which a bound may be on the wrong side.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Lower and upper bounds.

    Examples
    --------
    >>> from evenhand.frontier.bounds import clopper_pearson
    >>> [round(float(bound), 3) for bound in clopper_pearson(36, 100, 0.025)]
    [0.266, 0.462]
    """
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(trials, dtype=float))
    some = n > 0
    lower, upper = (np.where(some, bound, np.nan) for bound in (0.0, 1.0))
    inside = some & (k > 0)
    lower[inside] = betaincinv(k[inside], n[inside] - k[inside] + 1, error)
    inside = some & (k < n)
    upper[inside] = 1 - betaincinv(n[inside] - k[inside], k[inside] + 1, error)
    return lower, upper


def ratio_bound(counts: ArrayLike, rate: AnyRate, delta: float) -> FloatArray:
    r"""Lower confidence bound of the ratio of the smallest to the largest group rate.

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
    high = 1.0
    while not target.reached(exact_bound(high * counts, target, delta)):
        high *= 2
        if high > MOST_ROWS:
            return float("inf")
    low = high / 2
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        reached = target.reached(exact_bound(middle * counts, target, delta))
        low, high = (low, middle) if reached else (middle, high)
    return high


# By how many standard errors the log ratio of a chosen point is better on the rows it was chosen on
# than in the population, on the average over generated tables (``benchmarks/confidence.py``).
CHOSEN = 0.3


def margin_of(confidence: float | None) -> float:
    r"""Give the standard errors of the log ratio by which a confidence asks it to be above τ.

    .. math:: \Phi^{-1}(\text{confidence}) + 0.3,

    the second term for what choosing among many points adds: the chosen one looks better than it
    is. Without a confidence it is 0.

    Parameters
    ----------
    confidence : float or None
        About the probability with which the ratio in the population shall reach τ.

    Examples
    --------
    >>> from evenhand.frontier.bounds import margin_of
    >>> round(margin_of(0.9), 3), margin_of(None)
    (1.582, 0.0)
    """
    return 0.0 if confidence is None else float(ndtri(confidence)) + CHOSEN


def lower_ratio(counts: ArrayLike, rate: AnyRate, margin: float) -> FloatArray:
    r"""Ratio of the groups' rates less a margin for chance.

    .. math:: \min_{j \ne i} \exp\Big(\log\frac{r_j}{r_i}
        - \sqrt{\log^2\frac{r_j}{\ell_j} + \log^2\frac{h_i}{r_i}}\Big)

    over all ordered pairs of groups, with :math:`\ell` and :math:`h` Wilson's limits of each rate,
    ``margin`` standard errors away (Zou and Donner's way to join two intervals into one of their
    quotient). Of many rows it is :math:`r_j / r_i \cdot e^{-m \sigma}`, σ the standard error of the
    logarithm; of few, a rate of 3 in 3 is not certain, as a standard error of 0 would have it.

    If several rates must all hold, the smallest counts, each over its share, at most 1. NaN
    where a ratio is undefined, 0 where a group has no hit.

    Parameters
    ----------
    counts : array-like of shape (..., n_groups, n_labels, n_labels)
        Weight per group × label × prediction.
    rate : Rate or WorstRate
        The rate, or several.
    margin : float
        The standard errors m.
    """
    if not margin:
        return rate.ratio(counts)
    lower = [
        _lower_of_one(counts, component, margin) / share
        for component, share in zip(rate.components, rate.shares, strict=True)
    ]
    return np.minimum(np.min(lower, axis=0), 1.0)


def _lower_of_one(counts: ArrayLike, rate: Rate, margin: float) -> FloatArray:
    """As :func:`lower_ratio`, of one rate."""
    ratio = rate.ratio(counts)
    top, bottom = (np.moveaxis(v, -1, 0) for v in rate.fractions(counts))
    low, high = wilson_interval(top, bottom, margin)
    lower = np.full(ratio.shape, np.inf)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = np.log(top / bottom)
        down, up = value - np.log(low), np.log(high) - value
        for j, i in permutations(range(len(value)), 2):
            pair = value[j] - value[i] - np.hypot(down[j], up[i])
            lower = np.fmin(lower, np.exp(pair))
    lower = np.where((top > 0).all(axis=0), np.minimum(lower, ratio), 0.0)
    return np.where(np.isnan(ratio), np.nan, lower)


# The bound that guarantees are made by; a model file says by which its own was made.
BOUND = "clopper-pearson"
BOUNDS = {BOUND: {"ratio": ratio_bound}}
LOWER = {"ratio": lower_ratio}


def exact_bound(counts: ArrayLike, target: Target, delta: float, name: str = BOUND) -> FloatArray:
    """Exact lower confidence bound of a target's value, by the bound of a name in ``BOUNDS``."""
    return BOUNDS[name][target.comparison](counts, target.rate, delta)


def lower_value(counts: ArrayLike, target: Target, margin: float) -> FloatArray:
    """Give a target's value less a margin for chance of ``margin`` standard errors."""
    return LOWER[target.comparison](counts, target.rate, margin)
