"""Targets: what is demanded of the counts."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from numpy.typing import ArrayLike

from evenhand.core.arrays import FloatArray
from evenhand.core.rates import AnyRate, rate_text

# How groups are compared, by name: what is measured of the counts, the larger the fairer.
COMPARISONS: dict[str, Callable[[AnyRate, ArrayLike], FloatArray]] = {
    "ratio": lambda rate, counts: rate.ratio(counts)
}


def reaches(value: Any, level: float) -> bool:
    """Whether a value will do at a level; an undefined one, NaN or None, does not."""
    return value is not None and bool(value >= level)


@dataclass(frozen=True)
class Target:
    r"""A rate, how the groups' rates are compared, and the least value that will do.

    .. math:: v(\text{counts}) \ge \ell, \qquad
        v = \min_j r_j / \max_j r_j \text{ for a ratio.}

    Of several rates each has its own demand, and the strictest has the level ℓ: a
    :class:`~evenhand.core.rates.WorstRate` measures the others on its scale.

    Parameters
    ----------
    rate : Rate or WorstRate
        The rate, or several.
    level : float
        The least value, τ of a ratio; of several rates, the strictest one's.
    comparison : {"ratio"}, default="ratio"
        How the groups are compared, a key of :data:`COMPARISONS`.

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
    """

    rate: AnyRate
    level: float
    comparison: str = "ratio"

    def value(self, counts: ArrayLike) -> FloatArray:
        """Measure the counts of the compared groups; NaN where it is undefined."""
        return COMPARISONS[self.comparison](self.rate, counts)

    def reached(self, value: Any) -> bool:
        """Whether a value will do; an undefined one does not."""
        return reaches(value, self.level)

    def at(self, level: float) -> "Target":
        """Give the same demand at another level; the others stay in proportion."""
        return replace(self, level=float(level))

    @property
    def components(self) -> tuple["Target", ...]:
        """Each rate's own target: the same comparison at its share of the level."""
        return tuple(
            Target(part, float(round(self.level * share, 12)), self.comparison)
            for part, share in zip(self.rate.components, self.rate.shares, strict=True)
        )

    @property
    def demands(self) -> tuple[tuple[str, float], ...]:
        """What each rate's comparison is called, and its own level."""
        return tuple((part.rate.ratio_name, part.level) for part in self.components)

    def text(self, value: float) -> str:
        """Write a value with as many digits as show whether it will do."""
        return rate_text(value, self.level)

    def __str__(self) -> str:
        if len({level for _, level in self.demands}) < 2:
            return f"τ = {self.level:g}"
        return ", ".join(f"{level:g} for the {name}" for name, level in self.demands)
