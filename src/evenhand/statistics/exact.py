r"""Exact tests and bounds of how two probabilities compare.

Of an ordered pair of groups :math:`(j, k)`, with :math:`a` hits among :math:`b` trials each, two
ways to compare, each with a level :math:`\ell`:

.. math:: H_0:\ p_j \le \ell\, p_k \ \text{("ratio")} \qquad
    H_0:\ p_j \le p_k - \ell \ \text{("difference").}

**Order.** Outcomes are ordered by the score limit :math:`L`: the level at which the score
statistic, with both probabilities estimated under :math:`p_j = \ell p_k` (Farrington and Manning,
Miettinen and Nurminen), is the normal quantile of 1 − δ (of .95 at least).

**p-value.** The outcomes :math:`R` that speak at least as strongly against :math:`H_0` as the one
seen are the same whatever the level, so

.. math:: p(\ell) = \sup_{p_k \in C} P(R \mid p_j(\ell, p_k),\, p_k) + \gamma ,

with Clopper and Pearson's interval :math:`C` of :math:`p_k`, which is wrong with probability
:math:`\gamma` (Berger and Boos), is a valid p-value; and as :math:`R` is closed upwards in
:math:`a_j`, it rises as :math:`H_0` grows. So the bound is the level where it passes δ (Buehler).
The order may depend on δ, which is fixed before the outcome is seen.

**The supremum is bounded, not searched**: the second derivative of any event's probability, in the
arcsine of the root of the larger :math:`p`, is at most :math:`K = 4 (b_k + \ell b_j)`, and
:math:`(4 + 2|\ell|)(b_j + b_k)` of a difference, so that between two points :math:`\Delta` apart it
is at most :math:`K \Delta^2 / 8` above their chord. ``docs/guarantees.md`` has the proofs.
"""

from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln, ndtri

from evenhand.core.arrays import FloatArray
from evenhand.engines.kernels import LIMITS, can_compile, faster_version, find_faster
from evenhand.statistics.proportions import clopper_pearson

__all__ = ["Pair", "error_of", "lower_bound", "order_of", "p_value", "score_limit"]

# The error of the nuisance's interval, or this share of δ where that is less.
GAMMA, GAMMA_SHARE = 1e-4, 0.02
# Share of δ that the bound of the supremum may cost.
SLACK = 0.01
# Probability that sums over the bulk of a binomial leave out on either side, and add.
TAIL = 1e-9
# Probabilities nearer to 0 or 1 are moved there, so that no quotient overflows.
TINY = 1e-16
# The least normal quantile whose score limit orders the outcomes, that of .95.
ORDER = 1.6448536269514722
# Halvings to find a score limit; its lower end is taken, so that it never passes for more.
HALVINGS = 32
# Probabilities of hits that are held at once.
MOST_CELLS = 1 << 20
# Into how many parts a range of levels is cut, and how often.
PARTS, ROUNDS = 16, 6

Ints = NDArray[np.intp]


def score(a_j: Any, a_k: Any, b_j: Any, b_k: Any, level: Any, difference: bool) -> Any:
    r"""Score statistic of an outcome at a level, with the probabilities estimated under it.

    Of a ratio :math:`(\hat p_j - \ell \hat p_k) / \sigma` with
    :math:`\sigma^2 = \tilde p_j (1 - \tilde p_j) / b_j + \ell^2 \tilde p_k (1 - \tilde p_k) / b_k`.
    Here a difference's level is a lower bound of :math:`p_j - p_k`.
    """
    n = b_j + b_k
    if difference:
        c2 = (b_j + 2 * b_k) * level - n - a_j - a_k
        c1 = (b_k * level - n - 2 * a_k) * level + a_j + a_k
        middle = c2 / (3 * n)
        radius = np.sqrt(np.maximum(middle * middle - c1 / (3 * n), 0.0))
        q = middle**3 - middle * c1 / (2 * n) + a_k * level * (1 - level) / (2 * n)
        radius = np.copysign(radius, q)
        turn = np.minimum(np.maximum(q / (radius**3 + np.copysign(1e-300, q)), -1.0), 1.0)
        p_k = 2 * radius * np.cos((np.pi + np.arccos(turn)) / 3) - middle
        p_k = np.minimum(np.maximum(p_k, np.maximum(0.0, -level)), np.minimum(1.0, 1 - level))
        p_j = p_k + level
        times, apart = 1.0, a_j / b_j - a_k / b_k - level
    else:
        half = (a_j + b_k + level * (a_k + b_j)) / 2
        root = np.sqrt(np.maximum(half * half - level * n * (a_j + a_k), 0.0))
        p_k = (a_j + a_k) / (half + root)
        p_j = level * p_k
        times, apart = level, a_j / b_j - level * (a_k / b_k)
    variance = p_j * (1 - p_j) / b_j + times * times * (p_k * (1 - p_k) / b_k)
    return apart / np.sqrt(np.maximum(variance, 1e-300))


def score_limit(
    hits: Sequence[Any] | FloatArray,
    trials: Sequence[Any] | FloatArray,
    *,
    difference: bool = False,
    quantile: float = ORDER,
) -> FloatArray:
    """Levels at which the score statistics of outcomes are a normal quantile, never above them.

    Parameters
    ----------
    hits, trials : tuple of (array-like, array-like)
        Of the first group and of the second; fractions will do.
    difference : bool, default=False
        Whether the level is one of :math:`p_j - p_k`; else it is one of :math:`p_j / p_k`.
    quantile : float, default=1.6448536269514722
        The quantile.
    """
    values = np.broadcast_arrays(*(np.asarray(v, dtype=np.float64) for v in (*hits, *trials)))
    a_j, a_k, b_j, b_k = values
    low = np.full(a_j.shape, -1.0 if difference else 0.0)
    high = np.ones(low.shape)
    for _ in range(HALVINGS):
        middle = (low + high) / 2
        # A ratio's level r / (1 - r) may be any.
        level = middle if difference else middle / (1 - middle)
        up = score(a_j, a_k, b_j, b_k, level, difference) >= quantile
        low, high = np.where(up, middle, low), np.where(up, high, middle)
    return low if difference else low / (1 - low)


def region(
    trials: tuple[int, int], limit: float, difference: bool, ends: tuple[int, int], order: float
) -> Ints:
    """Least hits of the first group whose score limit reaches one, for hits of the second.

    The latter are those between two ``ends``; one more than its trials if none is enough. It never
    falls: were the statistic not monotone, the larger region would be taken.
    """
    a_k = np.arange(ends[0], ends[1] + 1)
    low, high = np.full(len(a_k), -1), np.full(len(a_k), trials[0] + 1)
    while (high - low > 1).any():
        middle = (low + high) // 2
        up = score(middle, a_k, *trials, limit, difference) >= order
        low, high = np.where(up, low, middle), np.where(up, middle, high)
    return np.minimum.accumulate(np.maximum(high, 0)[::-1])[::-1].astype(np.intp)


def chances(
    p_j: FloatArray, p_k: FloatArray, trials: tuple[int, int], least: Ints, start: int
) -> FloatArray:
    """Probability that the first group's hits are at least ``least`` of the second's.

    ``least`` is of hits from ``start`` on that hold all but twice :data:`TAIL` of the second's
    distribution; what is left out is added.
    """
    if len(p_j) > 1 and len(p_j) * (len(least) + trials[0]) > MOST_CELLS:
        half = len(p_j) // 2
        parts = ((p_j[:half], p_k[:half]), (p_j[half:], p_k[half:]))
        return np.concatenate([chances(*part, trials, least, start) for part in parts])
    a_k = np.arange(start, start + len(least))
    a_j = np.arange(_bulk(p_j.min(), trials[0])[0], _bulk(p_j.max(), trials[0])[1] + 1)
    weight = _weights(a_j, trials[0], p_j)
    above = np.cumsum(weight[:, ::-1], axis=1)[:, ::-1]
    above = np.concatenate([above, np.zeros((len(p_j), 1))], axis=1)
    at = np.clip(least - a_j[0], 0, len(a_j))
    return np.asarray((_weights(a_k, trials[1], p_k) * above[:, at]).sum(axis=1) + 4 * TAIL)


def _weights(hits: Ints, trials: int, p: FloatArray) -> FloatArray:
    """Binomial probabilities of some hits, each row of them scaled to a sum of 1."""
    p = np.clip(p, TINY, 1 - TINY)[:, None]
    log = hits * np.log(p) + (trials - hits) * np.log1p(-p)
    log -= gammaln(hits + 1) + gammaln(trials - hits + 1)
    weight = np.exp(log - log.max(axis=1, keepdims=True))
    return np.asarray(weight / weight.sum(axis=1, keepdims=True))


def _bulk(p: float, trials: int) -> tuple[int, int]:
    """Give the ends of the hits that hold all but :data:`TAIL` on either side (Bernstein)."""
    depth = -np.log(TAIL)
    away = depth / 3 + np.sqrt(depth * depth / 9 + 2 * depth * trials * p * (1 - p))
    return max(int(trials * p - away), 0), min(int(trials * p + away) + 1, trials)


def _compiled(name: str, rows: float) -> Callable[..., Any] | None:
    """Find a loop that does the same, if there are enough rows for it."""
    if not can_compile(int(rows), LIMITS):
        return None
    return cast(Callable[..., Any], getattr(import_module("evenhand.statistics.numba_exact"), name))


@faster_version(region, "numpy")
def _compiled_region(rows: float) -> Callable[..., Any] | None:
    return _compiled("region", rows)


@faster_version(chances, "numpy")
def _compiled_chances(rows: float) -> Callable[..., Any] | None:
    return _compiled("chances", rows)


class Pair(NamedTuple):
    """What is seen of an ordered pair of groups, and what follows from it for every level.

    Parameters
    ----------
    hits, trials : tuple of (int, int)
        Of the first group and of the second.
    difference : bool
        Whether levels are of :math:`p_j - p_k`; else they are of :math:`p_j / p_k`.
    low, high : float
        The interval C of the second probability.
    chance : callable
        Takes both probabilities and gives that of an outcome as far up in the order.
    """

    hits: tuple[int, int]
    trials: tuple[int, int]
    difference: bool
    low: float
    high: float
    chance: Callable[[FloatArray, FloatArray], FloatArray]

    @classmethod
    def of(
        cls,
        hits: Any,
        trials: Any,
        difference: bool,
        gamma: float,
        limit: float | None = None,
        rows: float = 0,
        order: float = ORDER,
    ) -> "Pair":
        """Prepare a pair, with the quantile whose score limits ``order`` the outcomes.

        ``limit`` is that of the outcome seen; ``rows`` is about how many are looked at in all,
        with other pairs.
        """
        (a_j, a_k), (b_j, b_k) = hits, trials = tuple(map(int, hits)), tuple(map(int, trials))
        if limit is None:
            limit = float(score_limit(hits, trials, difference=difference, quantile=order))
        low, high = (float(v) for v in clopper_pearson(a_k, b_k, gamma / 2))
        ends = _bulk(low, b_k)[0], _bulk(high, b_k)[1]
        rows = max(rows, b_j + b_k)
        find = find_faster(region, "numpy", rows) or region
        count = find_faster(chances, "numpy", rows) or chances
        least = find(trials, limit, difference, ends, order)
        # Rounding must not leave out what is seen.
        np.minimum(least[: a_k - ends[0] + 1], a_j, out=least[: a_k - ends[0] + 1])

        def chance(p_j: FloatArray, p_k: FloatArray) -> FloatArray:
            return count(p_j, p_k, trials, least, ends[0])

        return cls(hits, trials, difference, low, high, chance)

    @property
    def seen(self) -> float:
        """The level of the rates seen; infinite for a ratio to 0."""
        p_j, p_k = (a / b for a, b in zip(self.hits, self.trials, strict=True))
        return p_j - p_k if self.difference else p_j / p_k if p_k else np.inf

    def supremum(self, level: float, aim: float = 0.0) -> tuple[float, float]:
        """Bound the probability over the boundary of a hypothesis, and say where it is largest.

        The bound is within 1%, or as close as tells whether ``aim`` is kept: what is within half
        a percent of it, or above, is not looked at any closer.
        """
        less = abs(level) if self.difference else min(level, 1 / level) if level else 0.0
        # The probabilities are below and at the larger one of a ratio; of a difference they are
        # ``less`` apart, and that which is nearer to 0 or 1 is at the angle.
        first = level > (0 if self.difference else 1)

        def at(angle: FloatArray, shift: FloatArray) -> tuple[FloatArray, FloatArray]:
            base = np.sin(angle) ** 2
            pair = (base - shift, base - shift + less) if self.difference else (base * less, base)
            p_j, p_k = pair[::-1] if first else pair
            return np.clip(p_j, 0, 1), np.clip(p_k, self.low, self.high)

        b_j, b_k = self.trials
        if self.difference:
            curvature = (4 + 2 * less) * (b_j + b_k)
            down = 0.0 if first else less
            ends = np.clip([self.low - down, self.high - down], 0, 1 - less)
            half = np.clip((1 - less) / 2, *ends)
            pieces = [(ends[0], half, 0.0), (half + less, ends[1] + less, less)]
        else:
            curvature = 4 * (b_j + less * b_k if first else b_k + less * b_j)
            up = level if first else 1.0
            pieces = [(min(self.low * up, 1.0), min(self.high * up, 1.0), 0.0)]
        spans = []
        for low, high, apart in pieces:
            start, end = np.arcsin(np.sqrt([low, high]))
            n = 1 + int(min((end - start) * np.sqrt(curvature / (aim or 0.1)) / 2, 200))
            edges = np.linspace(start, end, n + 1)
            spans.append(np.array([edges[:-1], edges[1:], np.full(n, apart)]))
        left, right, shift = np.concatenate(spans, axis=1)
        best, where, most = float("-inf"), 0.0, float("-inf")
        f_left, f_right = (self.chance(*at(angle, shift)) for angle in (left, right))
        while True:
            for angle, f in ((left, f_left), (right, f_right)):
                if f[i := int(np.argmax(f))] > best:
                    best, where = float(f[i]), float(at(angle[i], shift[i])[1])
            # What a curve through two points may reach if it bends no more than so.
            rise, step = curvature * (right - left) ** 2 / 2, f_right - f_left
            top = (f_left + f_right) / 2 + rise / 4 + step**2 / (4 * np.maximum(rise, TINY))
            top = np.where(np.abs(step) < rise, top, np.maximum(f_left, f_right))
            split = top > (aim or best + SLACK * max(best, GAMMA))
            most = max(most, top[~split].max(initial=-np.inf))
            if (aim and best > aim * (1 - SLACK / 2)) or not split.any():
                return max(most, best, top.max()), where
            left, right, shift, f_left, f_right = (
                v[split] for v in (left, right, shift, f_left, f_right)
            )
            middle = (left + right) / 2
            f = self.chance(*at(middle, shift))
            left, right = np.append(left, middle), np.append(middle, right)
            f_left, f_right = np.append(f_left, f), np.append(f, f_right)
            shift = np.append(shift, shift)

    def rejects(self, level: float, error: float) -> bool:
        """Whether all hypotheses up to a level are rejected with an error."""
        beyond = self.difference and level < -self.high
        return beyond or (level < self.seen and self.supremum(level, error)[0] <= error)

    def bound(self, error: float, high: float) -> float:
        """Find the largest level, ``high`` at most, below which all are rejected with an error."""
        floor = max(-1.0, -self.high) if self.difference else 0.0
        p = (self.hits[1] + 0.5) / (self.trials[1] + 1)
        # A ratio above 1 / p would be of a probability above 1.
        level = high if np.isfinite(high) else 1 / p
        while level > floor:
            level = self._level_at(p, error * (1 - SLACK), floor, level)
            most, p = self.supremum(level, error)
            if most <= error:
                break
        return max(level, floor)

    def _level_at(self, p: float, error: float, low: float, high: float) -> float:
        """Find the level up to which the probability is small, where the second group's is p."""
        for _ in range(ROUNDS):
            levels = np.linspace(low, high, PARTS + 1)
            # Where a difference leaves no first probability, the second is as much larger.
            p_k = np.maximum(p, -levels) if self.difference else np.full(PARTS + 1, p)
            p_j = p_k + levels if self.difference else p_k * levels
            large = np.flatnonzero(self.chance(np.clip(p_j, 0, 1), p_k) > error)
            if not len(large):
                return high
            if not large[0]:
                return low
            low, high = levels[large[0] - 1], levels[large[0]]
        return float(low)


def error_of(delta: float) -> tuple[float, float]:
    """Share out δ: what the nuisance's interval may be wrong with, and what is left."""
    gamma = min(GAMMA, GAMMA_SHARE * delta)
    return gamma, delta - gamma


def order_of(delta: float) -> float:
    """Quantile whose score limits order the outcomes for bounds of an error of δ.

    Another one is valid as well, but loose: a bound is sharp where the order looks at the level
    that it ends at. Above δ = .05 it stays, as small quantiles tell outcomes apart badly.
    """
    return ORDER if delta >= 0.05 else float(-ndtri(delta))


def p_value(
    hits: Sequence[int], trials: Sequence[int], level: float, comparison: str = "ratio"
) -> float:
    r"""Exact p-value of the hypothesis that one probability is too low against another.

    It orders outcomes as :func:`lower_bound` does at δ = .05, and its γ is 0.0001. Verdicts and
    certificates come from :func:`lower_bound`, whose order and γ are made for their δ, and which
    may reject at a small δ what has a larger p-value here.

    Parameters
    ----------
    hits, trials : tuple of (int, int)
        Hits and trials of the first group and of the second.
    level : float
        :math:`\ell` of :math:`p_j \le \ell p_k`, or of :math:`p_j \le p_k - \ell`.
    comparison : {"ratio", "difference"}, default="ratio"
        Which of the two.

    Returns
    -------
    float
        At most 1; never below γ = 0.0001. 1 where a group has no trials.

    Examples
    --------
    >>> from evenhand.statistics.exact import p_value
    >>> round(p_value((90, 100), (100, 100), 0.8), 4)
    0.0091
    >>> round(p_value((90, 100), (100, 100), 0.2, "difference"), 4)
    0.0089
    """
    difference = comparison == "difference"
    if not min(trials) or (not difference and not hits[0]):
        return 1.0
    pair = Pair.of(hits, trials, difference, GAMMA)
    level = -level if difference else level
    if difference and level < -pair.high:
        return GAMMA
    return float(min(pair.supremum(level)[0] + GAMMA, 1.0))


def lower_bound(
    hits: Sequence[int], trials: Sequence[int], delta: float, comparison: str = "ratio"
) -> float:
    r"""Exact lower confidence bound of :math:`p_j / p_k`, or of :math:`p_j - p_k`.

    Parameters
    ----------
    hits, trials : tuple of (int, int)
        Hits and trials of the first group and of the second.
    delta : float
        Probability with which the bound may exceed what it bounds, below 0.5.
    comparison : {"ratio", "difference"}, default="ratio"
        What is bounded.

    Returns
    -------
    float
        The bound, never above what is seen; all hypotheses of smaller values are rejected with an
        error of δ at most. NaN where a group has no trials.

    Examples
    --------
    >>> from evenhand.statistics.exact import lower_bound
    >>> round(lower_bound((90, 100), (100, 100), 0.05), 3)
    0.836
    """
    difference = comparison == "difference"
    if not min(trials):
        return float("nan")
    if not difference and not hits[0]:
        return 0.0
    gamma, error = error_of(delta)
    pair = Pair.of(hits, trials, difference, gamma, order=order_of(delta))
    return pair.bound(error, pair.seen)
