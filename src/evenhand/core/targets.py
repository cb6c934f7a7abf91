"""Targets: what is demanded of the counts."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.notions import Notion, find_notion, of_labels
from evenhand.core.rates import AnyRate, Partition, Rate, WorstRate, by_partition

# How groups are compared, by name: what is measured of the counts, the larger the fairer.
COMPARISONS: dict[str, Callable[[AnyRate, ArrayLike], FloatArray]] = {
    "ratio": lambda rate, counts: rate.ratio(counts),
    "difference": lambda rate, counts: 0.0 - rate.difference(counts),
}
# What a value is called where people read it, and what it is multiplied by for them. A mixed
# target's value is its own kind.
READ = {"ratio": ("rate", 1.0), "difference": ("difference", -1.0), "mixed": ("shortfall", -1.0)}
# Values that were divided by shares are alike in so many digits.
DIGITS = 12


def reaches(value: Any, level: float) -> bool:
    """Whether a value will do at a level; an undefined one, NaN or None, does not."""
    return value is not None and bool(value >= level)


@dataclass(frozen=True)
class Target:
    r"""A rate, how the groups' rates are compared, and the least value that will do.

    .. math:: v(\text{counts}) \ge \ell, \qquad
        v = \min_j r_j / \max_j r_j \text{ for a ratio,} \qquad
        v = -(\max_j r_j - \min_j r_j) \text{ for a difference.}

    A value is the larger the fairer, and a difference of at most ε is the level :math:`-\epsilon`.
    Of several rates each has a share :math:`c_k` of the level, 1 for the strictest one, and

    .. math:: v = \min\Big(1, \min_k v_k / c_k\Big), \qquad c_k = \ell_k / \ell.

    Where ratios and differences are mixed, the *shortfalls* count: :math:`u_k = 1 - r` of a ratio,
    of which :math:`1 - \tau` is allowed, and the difference itself, of which ε is,

    .. math:: v = -\max_k u_k / c_k, \qquad c_k = a_k / a, \qquad \ell = -a = -\min_k a_k,

    with :math:`a_k` what is allowed. So the level is reached exactly if every rate's own is, and a
    target at half the level allows half of every shortfall.

    Parameters
    ----------
    rate : Rate or WorstRate
        The rate, or several with their shares.
    level : float
        The least value: τ of ratios, −ε of differences; of several rates, the strictest one's.
    comparison : {"ratio", "difference", "mixed"}, default="ratio"
        How the groups are compared, a key of :data:`COMPARISONS`, or ``"mixed"``.
    kinds : tuple of str, optional
        Of a mixed target, each rate's own comparison.

    Examples
    --------
    >>> from evenhand.core.rates import RATES
    >>> from evenhand.core.targets import Target
    >>> target = Target(RATES["selection_rate"], 0.8)
    >>> counts = [[[55, 9], [9, 27]], [[50, 5], [5, 40]]]
    >>> float(target.value(counts)), target.reached(target.value(counts))
    (0.8, True)
    >>> target.at(0.9).demands
    (('statistical rate', 0.9),)
    >>> small = Target(RATES["selection_rate"], -0.05, "difference")
    >>> float(small.value(counts)), str(small)
    (-0.09, 'ε = 0.05')
    """

    rate: AnyRate
    level: float
    comparison: str = "ratio"
    kinds: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        own = self.kinds or (self.comparison,) * len(self.rate.components)
        object.__setattr__(self, "kinds", own)

    @property
    def worst(self) -> float:
        """No value is less than this, and none is more than one above it."""
        return 0.0 if self.comparison == "ratio" else -1.0

    @property
    def offsets(self) -> tuple[float, ...]:
        """What is added to each rate's own value: a ratio's is compared by its shortfall."""
        mixed = self.comparison == "mixed"
        return tuple(-1.0 if mixed and kind == "ratio" else 0.0 for kind in self.kinds)

    def values(self, counts: ArrayLike) -> list[FloatArray]:
        """Measure each rate's own value."""
        pairs = zip(self.rate.components, self.kinds, strict=True)
        return [COMPARISONS[kind](rate, counts) for rate, kind in pairs]

    def scaled(self, values: Sequence[Any]) -> FloatArray:
        """Bring each rate's own value to the scale of the level, shape (n_rates, ...)."""
        stacked = np.array(values, dtype=np.float64)
        if len(stacked) < 2:
            return stacked
        shape = (-1,) + (1,) * (stacked.ndim - 1)
        stacked = (stacked + np.reshape(self.offsets, shape)) / np.reshape(self.rate.shares, shape)
        if set(self.rate.shares) != {1.0}:
            # A value of its share of a level is at the level, whatever rounding made of it.
            stacked = stacked.round(DIGITS)
        return np.minimum(stacked, 1.0) if self.comparison == "ratio" else stacked

    def value(self, counts: ArrayLike) -> FloatArray:
        """Measure the counts of the compared groups; NaN where it is undefined."""
        return np.asarray(self.scaled(self.values(counts)).min(axis=0))

    def cautious(self, counts: ArrayLike, caution: float, values: Any = None) -> FloatArray:
        """Give the value less ``caution`` standard errors, of the worst ratio or else of each.

        ``values`` are those of the counts, if they are known.
        """
        scaled, less = self.scaled(self.values(counts) if values is None else values), []
        parts = zip(self.rate.components, self.kinds, self.rate.shares, self.offsets, strict=True)
        for value, (rate, kind, share, offset) in zip(scaled, parts, strict=True):
            if kind == "difference":
                less.append(value - caution * rate.difference_error(counts) / share)
            else:
                shift, error = offset / share, rate.log_ratio_error(counts)
                less.append((value - shift) * np.exp(-caution * error) + shift)
        if self.comparison != "ratio":
            return np.asarray(np.min(less, axis=0))
        worst = np.argmin(scaled, axis=0)
        return np.asarray(np.take_along_axis(np.array(less), worst[None], axis=0)[0])

    def reached(self, value: Any) -> bool:
        """Whether a value will do; an undefined one does not."""
        return reaches(value, self.level)

    def at(self, level: float) -> "Target":
        """Give the same demand at another level; the others stay in proportion."""
        return replace(self, level=float(level))

    def by(self, partitions: Sequence[Partition]) -> "Target":
        """Give the same demand between the groups of some partitions; without any, this one."""
        if not partitions:
            return self
        kinds = self.kinds * len(partitions)
        return replace(self, rate=by_partition(self.rate, partitions), kinds=kinds)

    def like(self, other: "Target") -> bool:
        """Whether another target measures the same on the same scale, at whatever level."""
        same = (self.rate.components, self.kinds) == (other.rate.components, other.kinds)
        return same and np.allclose(self.rate.shares, other.rate.shares, rtol=0.0, atol=1e-9)

    @property
    def others(self) -> tuple["Target", ...]:
        """The other comparison of the same rates, all at one level, if it is not demanded as well.

        Its level is its worst value, which nobody asks for.
        """
        if self.comparison == "mixed":
            return ()
        rate = self.rate
        rate = replace(rate, shares=()) if isinstance(rate, WorstRate) else rate
        if self.comparison == "ratio":
            return (Target(rate, -1.0, "difference"),)
        return (Target(rate, 0.0),)

    @property
    def components(self) -> tuple["Target", ...]:
        """Each rate's own target: its comparison at its share of the level."""
        parts = zip(self.rate.components, self.rate.shares, self.kinds, self.offsets, strict=True)
        return tuple(
            Target(part, float(round(self.level * share - offset, DIGITS)), kind)
            for part, share, kind, offset in parts
        )

    @property
    def name(self) -> str:
        """What is compared with the level, in words."""
        return self.rate.name_of(self.comparison)

    @property
    def demands(self) -> tuple[tuple[str, float], ...]:
        """What each rate's comparison is called, and its own level as people read it."""
        level = [READ[part.comparison][1] * part.level + 0.0 for part in self.components]
        return tuple((part.name, x) for part, x in zip(self.components, level, strict=True))

    def text(self, value: float) -> str:
        """Write a value, as people read it, with three digits or as many as show if it will do.

        Examples
        --------
        >>> from evenhand.core.rates import RATES
        >>> Target(RATES["selection_rate"], 0.8).text(0.79996)
        '0.79996'
        """
        sign = READ[self.comparison][1]
        for digits in range(3, 16):
            text = f"{sign * value + 0.0:.{digits}f}"
            if self.reached(sign * float(text)) == self.reached(value):
                return text
        return repr(float(sign * value))

    def __str__(self) -> str:
        demands = self.demands
        if self.comparison != "mixed" and len({level for _, level in demands}) < 2:
            return f"{'τ' if self.comparison == 'ratio' else 'ε'} = {demands[0][1]:g}"
        return ", ".join(f"{level:g} for the {name}" for name, level in demands)


def find_target(
    names: str | Sequence[str],
    tau: Any = None,
    epsilon: Any = None,
    *,
    n_labels: int = 2,
    favourable: Sequence[int] = (1,),
) -> Target:
    """Make the target that is demanded of a notion, or of several.

    Parameters
    ----------
    names : str or sequence of str
        Names of notions.
    tau : float or sequence of float or None, optional
        Least ratio of each notion's rates, or of all; None: no ratio is demanded. Without an
        ``epsilon`` it is 0.8.
    epsilon : float or sequence of float or None, optional
        Largest difference, as ``tau``. Of a notion that has both, both are demanded.
    n_labels : int, default=2
        How many labels there are.
    favourable : sequence of int, default=(1,)
        Numbers of the labels that count as favourable, each by itself, if there are more than two.
    """
    notion = find_notion(names)
    tau = 0.8 if tau is None and epsilon is None else tau
    listed = [names] if isinstance(names, str) else list(names)
    ratios, differences = (
        _each(given, name, names, len(listed))
        for given, name in ((tau, "tau"), (epsilon, "epsilon"))
    )
    if not all(0 < t <= 1 for t in ratios if t is not None):
        raise InputError("target_out_of_range", tau=Parameter("tau", tau))
    if not all(0 <= e < 1 for e in differences if e is not None):
        raise InputError("difference_out_of_range", epsilon=Parameter("epsilon", epsilon))
    asked: dict[tuple[Rate, str], float] = {}
    for label in favourable if n_labels > 2 else (1,):
        for name, t, e in zip(listed, ratios, differences, strict=True):
            if t is None and e is None:
                given = Parameter("tau", tau), Parameter("epsilon", epsilon)
                raise InputError("no_target", notion=name, tau=given[0], epsilon=given[1])
            for part in find_notion(name).rate.components:
                for kind, level in (("ratio", t), ("difference", None if e is None else -e)):
                    if level is not None:
                        key = part.of_label(label, n_labels), kind
                        # Of a rate that two notions have in common, the stricter target counts.
                        asked[key] = max(float(level), asked.get(key, -1.0))
    rates, kinds = zip(*asked, strict=True)
    comparison = kinds[0] if len(set(kinds)) == 1 else "mixed"
    levels = np.array(list(asked.values()))
    if comparison == "mixed":
        levels -= [kind == "ratio" for kind in kinds]
    level = float(levels.max().round(DIGITS)) if comparison == "mixed" else float(levels.max())
    if level == 0 and levels.min() < 0:
        given = Parameter("tau", tau), Parameter("epsilon", epsilon)
        raise InputError("equal_beside_others", tau=given[0], epsilon=given[1])
    shares = tuple((levels / level).tolist() if level else [1.0] * len(levels))
    found = notion if n_labels == 2 else of_labels(notion, favourable, n_labels)
    if len(rates) == 1 and isinstance(found, Notion):
        return Target(rates[0], level, comparison)
    return Target(WorstRate(found.name, rates, shares), level, comparison, kinds)


def _each(given: Any, name: str, notions: Any, n: int) -> list[float | None]:
    """Give a target for each notion; refuse lists of another length."""
    if given is None or np.ndim(given) == 0:
        return [given] * n
    if isinstance(notions, str) or len(given) != n:
        of = Parameter("notion", notions)
        raise InputError("targets_of_notions", tau=Parameter(name, given), notion=of)
    return list(given)


def moved(now: Target, was_tau: Any, was_epsilon: Any, tau: Any, epsilon: Any) -> tuple[Any, Any]:
    """Give the parameters of a target that is moved to another level, the others in proportion.

    Parameters
    ----------
    now : Target
        What is demanded now, by the parameters that it was made of, ``was_tau`` and
        ``was_epsilon``.
    tau, epsilon : float or None
        The new level of the strictest ratio and of the strictest difference, one or both.
    """
    if tau is None and epsilon is None:
        raise InputError("nothing_to_move", tau=Parameter("tau"), epsilon=Parameter("epsilon"))
    if now.comparison == "mixed":
        if tau == 1 or epsilon == 0:
            named = {"tau": Parameter("tau", tau), "epsilon": Parameter("epsilon", epsilon)}
            raise InputError("equal_beside_others", **named)
        allowed = 1 - float(np.max(_some(was_tau))), float(np.min(_some(was_epsilon)))
        asked = None if tau is None else 1 - tau, epsilon
        of = [new / old for new, old in zip(asked, allowed, strict=True) if new is not None]
        taus, epsilons = (_times(v, of[i]) for v, i in ((_short(was_tau), 0), (was_epsilon, -1)))
        if max(_some(taus) + _some(epsilons)) >= 1:
            given = Parameter("tau", tau) if epsilon is None else Parameter("epsilon", epsilon)
            raise InputError("moved_too_far", target=given)
        return _short(taus), epsilons
    if now.comparison == "ratio" and epsilon is None and np.ndim(was_tau):
        return _times(was_tau, tau / np.max(_some(was_tau))), None
    if now.comparison == "difference" and tau is None and np.ndim(was_epsilon):
        return None, _times(was_epsilon, epsilon / max(np.min(_some(was_epsilon)), 1e-300))
    return tau, epsilon


def _some(given: Any) -> list[float]:
    return [v for v in np.atleast_1d(np.array(given, dtype=object)) if v is not None]


def _times(given: Any, factor: float) -> Any:
    """Multiply a number, or those in a list that are no None."""
    if np.ndim(given):
        return [None if v is None else float(np.round(v * factor, DIGITS)) for v in given]
    return float(np.round(given * factor, DIGITS))


def _short(given: Any) -> Any:
    """Give what is short of 1, as :func:`_times`."""
    return [None if v is None else 1 - v for v in given] if np.ndim(given) else 1 - given
