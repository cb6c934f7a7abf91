"""The rates of groups, and how far the groups are apart.

Everything here is a function of one array of counts with shape ``(..., n_groups, 2, 2)``: group ×
true label × predicted label. A rate is a ratio of two sums of its cells, so one row of a table
defines it; leading dimensions are free, which is how the frontier evaluates thousands of cuts at
once.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.core.arrays import FloatArray


@dataclass(frozen=True)
class Partition:
    """Groups as a rate compares them, made of the groups that are counted.

    Of crossed attributes one attribute's values are such groups, or the combinations themselves,
    without those that are too small.

    Parameters
    ----------
    name : str
        What they are by, such as ``"sex"``.
    groups : tuple of str
        Their names.
    members : tuple of tuple of int
        For each the numbers of the counted groups that it consists of.
    small : tuple of (str, int)
        Rows of each that is too small to be compared.
    """

    name: str
    groups: tuple[str, ...]
    members: tuple[tuple[int, ...], ...]
    small: tuple[tuple[str, int], ...] = ()

    def merge(self, values: FloatArray, axis: int = -1) -> FloatArray:
        """Add up what the members have along an axis."""
        # The counted groups come first, whatever the memory order: long sweeps stay fast.
        first = np.moveaxis(values, axis, 0)
        merged = [sum((first[j] for j in one[1:]), first[one[0]]) for one in self.members]
        return np.moveaxis(np.stack(merged), 0, axis)

    def place(self, n: int) -> NDArray[np.intp]:
        """Give the number of the group of each of n counted ones; -1 where it is in none."""
        places = np.full(n, -1)
        for number, one in enumerate(self.members):
            places[list(one)] = number
        return places

    def spread(self, values: FloatArray, n: int) -> FloatArray:
        """Give each of n counted groups what its group has, 0 where it is in none."""
        return np.append(values, 0.0)[self.place(n)]


@dataclass(frozen=True)
class Rate:
    r"""A rate per group, :math:`r_j = \sum_{(y, \hat y) \in A} c_{j y \hat y} \big/ \sum_{(y, \hat y) \in B} c_{j y \hat y}`.

    Parameters
    ----------
    name : str
        The rate's name in tables.
    numerator, denominator : tuple of (int, int)
        The cells (true label, predicted label) of A and of B.
    is_error : bool
        Whether 0 is the best value. When every group's rate is 0, the ratio of an error rate is 1 (all
        are perfect) and the ratio of any other rate is undefined (nobody gets anything).
    by : Partition, optional
        The groups that are compared; those that are counted by default.
    """  # noqa: E501

    name: str
    numerator: tuple[tuple[int, int], ...]
    denominator: tuple[tuple[int, int], ...]
    is_error: bool = False
    by: Partition | None = None

    @property
    def components(self) -> tuple["Rate", ...]:
        """The rate itself, as :class:`WorstRate` has several."""
        return (self,)

    def name_of(self, comparison: str) -> str:
        """Name a comparison of the groups' rates in words."""
        whose = "" if self.by is None else f" by {self.by.name}"
        if (self.name, comparison) == ("selection_rate", "ratio"):
            return f"statistical rate{whose}"
        return f"{self.name.replace('_', ' ')} {comparison}{whose}"

    @property
    def ratio_name(self) -> str:
        """The ratio's name in words."""
        return self.name_of("ratio")

    @property
    def shares(self) -> tuple[float, ...]:
        """Share of the target that it must reach, as :class:`WorstRate` has several."""
        return (1.0,)

    @property
    def fixed_denominator(self) -> bool:
        """Whether predictions do not change the denominator: the rate is linear in them then."""
        n_labels = 1 + max(max(cell) for cell in self.denominator)
        return len(self.denominator) == n_labels * len({y for y, _ in self.denominator})

    def of_label(self, label: int, n_labels: int) -> "Rate":
        """Give the same rate of one label among many against all the others together.

        Counts then have shape ``(..., n_groups, n_labels, n_labels)``.
        """
        if (label, n_labels) == (1, 2):
            return self

        def cells(of_two: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
            all_cells = product(range(n_labels), repeat=2)
            return tuple((y, p) for y, p in all_cells if (y == label, p == label) in of_two)

        return replace(self, numerator=cells(self.numerator), denominator=cells(self.denominator))

    def fractions(self, counts: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator of each group's rate."""
        c = np.asarray(counts, dtype=np.float64)
        top = sum(c[..., y, p] for y, p in self.numerator)
        bottom = sum(c[..., y, p] for y, p in self.denominator)
        if self.by is not None:
            return self.by.merge(np.asarray(top)), self.by.merge(np.asarray(bottom))
        return np.asarray(top), np.asarray(bottom)

    def groups(self, counted: Sequence[Any]) -> Sequence[Any]:
        """Name the groups that are compared; ``counted`` are those of the counts."""
        return counted if self.by is None else self.by.groups

    def per_group(self, counts: ArrayLike) -> FloatArray:
        """Rate of each group, shape ``(..., n_groups)``; NaN where the denominator is empty."""
        top, bottom = self.fractions(counts)
        # full_like keeps the memory order of the counts, which is what makes long sweeps fast
        return np.divide(top, bottom, out=np.full_like(bottom, np.nan), where=bottom > 0)

    def _extremes(self, counts: ArrayLike) -> tuple[Any, ...]:
        """Lowest and highest of the groups' fractions, and whether all rates are defined."""
        # Fractions are compared by cross-multiplication: 36/100 to 45/100 is 0.8, while the
        # quotient of the two quotients would be just below.
        top, bottom = (np.moveaxis(v, -1, 0) for v in self.fractions(counts))
        (low, low_b), (high, high_b) = (top[0], bottom[0]), (top[0], bottom[0])
        for t, b in zip(top[1:], bottom[1:], strict=True):
            less, more = t * low_b < low * b, t * high_b > high * b
            low, low_b = np.where(less, t, low), np.where(less, b, low_b)
            high, high_b = np.where(more, t, high), np.where(more, b, high_b)
        defined = (bottom > 0).all(axis=0) & (len(top) > 1)
        return low, low_b, high, high_b, defined

    def ratio(self, counts: ArrayLike) -> FloatArray:
        r"""Smallest over largest group rate, :math:`\min_j r_j / \max_j r_j`.

        NaN if a group's rate is undefined or there is one group only. All rates 0: 1 for an error
        rate, NaN otherwise.
        """
        low, low_b, high, high_b, defined = self._extremes(counts)
        out = np.where(defined & self.is_error, 1.0, np.nan)
        return np.divide(low * high_b, low_b * high, out=out, where=defined & (high > 0))

    def difference(self, counts: ArrayLike) -> FloatArray:
        r"""Largest less smallest group rate, :math:`\max_j r_j - \min_j r_j`.

        NaN if a group's rate is undefined or there is one group only.
        """
        low, low_b, high, high_b, defined = self._extremes(counts)
        out = np.full(np.shape(defined), np.nan)
        return np.divide(high * low_b - low * high_b, low_b * high_b, out=out, where=defined)

    def log_ratio_error(self, counts: ArrayLike) -> FloatArray:
        r"""Give the standard error of the logarithm of the ratio.

        .. math:: \sigma^2 = \sum_j \frac{1}{a_j + 1/2} - \frac{1}{b_j + 1/2},

        with :math:`r_j = a_j / b_j` in counts of rows, the sum over the two groups whose terms are
        largest.
        """
        top, bottom = (np.moveaxis(v, -1, 0) for v in self.fractions(counts))
        return _error_of_two(1 / (top + 0.5) - 1 / (bottom + 0.5))

    def difference_error(self, counts: ArrayLike) -> FloatArray:
        r"""Give the standard error of the difference, as :meth:`log_ratio_error` is made.

        .. math:: \sigma^2 = \sum_j \frac{(a_j + 1/2)(b_j - a_j + 1/2)}{(b_j + 1)^3}
        """
        top, bottom = (np.moveaxis(v, -1, 0) for v in self.fractions(counts))
        return _error_of_two((top + 0.5) * (bottom - top + 0.5) / (bottom + 1) ** 3)


def _error_of_two(variance: FloatArray) -> FloatArray:
    """Root of the sum of the two largest variances, along the first axis."""
    if len(variance) > 2:
        variance = np.partition(variance, -2, axis=0)[-2:]
    return np.sqrt(np.maximum(variance.sum(axis=0), 0.0))


@dataclass(frozen=True)
class WorstRate:
    r"""Several rates that must all be alike between groups: the worst of their ratios counts.

    .. math:: \min\Big(1, \min_k \frac{1}{c_k} \frac{\min_j r_{kj}}{\max_j r_{kj}}\Big)

    Parameters
    ----------
    name : str
        Its name in tables.
    components : tuple of Rate
        The rates.
    shares : tuple of float, optional
        :math:`c_k` in (0, 1]: the share of the target that rate k must reach; 1 each by default.
    """

    name: str
    components: tuple[Rate, ...]
    shares: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "shares", self.shares or (1.0,) * len(self.components))

    def name_of(self, comparison: str) -> str:
        """Name the worst of the comparisons in words."""
        what = "shortfall" if comparison == "mixed" else comparison
        return f"{self.name.replace('_', ' ')} {what}"

    @property
    def ratio_name(self) -> str:
        """The ratio's name in words."""
        return self.name_of("ratio")

    def of_label(self, label: int, n_labels: int) -> "WorstRate":
        """Give the same rates of one label among many against all the others together."""
        components = tuple(rate.of_label(label, n_labels) for rate in self.components)
        return replace(self, components=components)

    def ratio(self, counts: ArrayLike) -> FloatArray:
        """Smallest of the ratios, each over its share; NaN if one is undefined."""
        ratios = np.stack([rate.ratio(counts) for rate in self.components])
        if set(self.shares) != {1.0}:
            # A ratio of its share of a level is at the level, whatever rounding made of it.
            shares = np.reshape(self.shares, (-1,) + (1,) * (ratios.ndim - 1))
            ratios = np.round(ratios / shares, 12)
        return np.asarray(np.minimum(ratios, 1.0).min(axis=0))

    def difference(self, counts: ArrayLike) -> FloatArray:
        """Largest of the rates' differences between groups; shares play no role."""
        return np.asarray(
            np.stack([rate.difference(counts) for rate in self.components]).max(axis=0)
        )


AnyRate = Rate | WorstRate


def by_partition(rate: AnyRate, partitions: Sequence[Partition]) -> WorstRate:
    """Give the rate between the groups of each of some partitions, one after the other."""
    pairs = list(product(partitions, zip(rate.components, rate.shares, strict=True)))
    rates = tuple(replace(one, by=by) for by, (one, _) in pairs)
    return WorstRate(rate.name, rates, tuple(share for _, (_, share) in pairs))


_TN, _FP, _FN, _TP = (0, 0), (0, 1), (1, 0), (1, 1)

RATES: dict[str, Rate] = {
    rate.name: rate
    for rate in (
        Rate("selection_rate", (_FP, _TP), (_TN, _FP, _FN, _TP)),
        Rate("accuracy", (_TN, _TP), (_TN, _FP, _FN, _TP)),
        Rate("true_positive_rate", (_TP,), (_FN, _TP)),
        Rate("false_positive_rate", (_FP,), (_TN, _FP), is_error=True),
        Rate("true_negative_rate", (_TN,), (_TN, _FP)),
        Rate("false_negative_rate", (_FN,), (_FN, _TP), is_error=True),
        Rate("false_discovery_rate", (_FP,), (_FP, _TP), is_error=True),
        Rate("false_omission_rate", (_FN,), (_TN, _FN), is_error=True),
        Rate("positive_predictive_value", (_TP,), (_FP, _TP)),
        Rate("negative_predictive_value", (_TN,), (_TN, _FN)),
    )
}
"""Every rate by name."""


def overall_accuracy(counts: ArrayLike) -> FloatArray:
    """Share of right predictions in all groups together, for any number of labels."""
    c = np.asarray(counts, dtype=np.float64)
    right, total = np.trace(c, axis1=-2, axis2=-1).sum(axis=-1), c.sum(axis=(-3, -2, -1))
    return np.divide(right, total, out=np.full_like(total, np.nan), where=total > 0)


EQUALIZED_ODDS = WorstRate(
    "equalized_odds", (RATES["true_positive_rate"], RATES["false_positive_rate"])
)
"""True and false positive rates, both."""
