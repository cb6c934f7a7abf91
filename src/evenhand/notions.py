r"""Notions of fairness: what is measured, what the adversary sees, what is regularised.

A notion is a record of three things:

- the **rate** that is compared between groups (a row of :data:`evenhand.rates.RATES`);
- the **features** :math:`\varphi(s, y)` from which the adversary :math:`g = \sigma(u^\top\varphi)`
  guesses a row's group, and their derivative in the score s;
- the **gap** :math:`D(w)` of the regulariser :math:`\tfrac{\kappa}{2} D(w)^2`, once for each
  reading of the paper.

Nothing else in the package knows which notions exist.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from evenhand.rates import RATES, Rate

__all__ = [
    "NOTIONS",
    "CellSums",
    "Gap",
    "LinearGap",
    "Notion",
    "PrintedDiscoveryGap",
    "SoftRateGap",
    "false_discovery",
    "statistical_parity",
]

FloatArray = NDArray[Any]
READINGS = ("corrected", "printed")


class CellSums(NamedTuple):
    """Sums over the rows of each cell group × label.

    ``weight`` has shape (groups, 2); ``value``, the sum of a row quantity such as the probability
    f, the same; ``vector``, the sum of a multiple of the row's inputs, shape (groups, 2, n).
    """

    weight: FloatArray
    value: FloatArray
    vector: FloatArray


class Gap(Protocol):
    r"""The quantity D(w) whose square is regularised.

    ``soft`` says whether D needs the sums of f and of :math:`f' x` at w in each cell; otherwise the
    sums of x, which never change, are enough and the regulariser costs no pass over the data.
    """

    soft: bool

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """D and its gradient at w."""

    def scale(self, cells: CellSums) -> float:
        r"""Squared size of the gradient that makes :math:`\mu` dimensionless, :math:`\kappa = \mu L_1 / \text{scale}`."""  # noqa: E501


@dataclass(frozen=True)
class LinearGap:
    r"""Difference of the groups' mean scores, :math:`D = \delta^\top w`, :math:`\delta = \bar x_0 - \bar x_1`.

    Parameters
    ----------
    printed : bool, default=False
        The paper's sums over a group divided by P[G_j], which are N times the group means.
    """  # noqa: E501

    printed: bool = False
    soft = False

    def _delta(self, cells: CellSums) -> FloatArray:
        mean = cells.vector.sum(axis=1) / cells.weight.sum(axis=1)[:, None]
        factor = cells.weight.sum() if self.printed else 1.0
        return factor * (mean[0] - mean[1])

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """D and its gradient at w."""
        delta = self._delta(cells)
        return float(delta @ w), delta

    def scale(self, cells: CellSums) -> float:
        r""":math:`\|\delta\|^2`."""
        delta = self._delta(cells)
        return float(delta @ delta)


@dataclass(frozen=True)
class SoftRateGap:
    r"""Difference :math:`D = F_0 - F_1` of a rate whose predictions are the probabilities f.

    With :math:`F_j = a_j / b_j`, both sums over cells of counts in which a row is positive to the
    degree f and negative to the degree 1 − f,

    .. math:: \nabla F_j = (\nabla a_j - F_j \nabla b_j) / b_j,
        \qquad \nabla \textstyle\sum f = \sum f' x .

    For false discovery: :math:`F_j = \sum_j f (1 - y) / \sum_j f`.
    """

    rate: Rate
    soft = True

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """D and its gradient at w."""
        positive, d_positive = cells.value, cells.vector
        count = np.stack([cells.weight - positive, positive], axis=-1)
        d_count = np.stack([-d_positive, d_positive], axis=2)
        top = sum(count[:, y, p] for y, p in self.rate.numerator)
        bottom = sum(count[:, y, p] for y, p in self.rate.denominator)
        d_top = sum(d_count[:, y, p] for y, p in self.rate.numerator)
        d_bottom = sum(d_count[:, y, p] for y, p in self.rate.denominator)
        bottom = np.maximum(bottom, np.finfo(np.float64).tiny)
        rate = top / bottom
        gradient = (d_top - rate[:, None] * d_bottom) / bottom[:, None]
        return float(rate[0] - rate[1]), gradient[0] - gradient[1]

    def scale(self, cells: CellSums) -> float:
        r""":math:`\|\nabla D(0)\|^2`; cells are those at w = 0."""
        gradient = self(np.zeros(cells.vector.shape[-1]), cells)[1]
        return float(gradient @ gradient)


@dataclass(frozen=True)
class PrintedDiscoveryGap:
    r"""The paper's product of sums of scores, :math:`D = w^\top M w`.

    .. math:: D = \Big(\sum_{y=0, z=1} s \Big)\Big(\sum_{z=0} s\Big)
                - \Big(\sum_{y=0, z=0} s \Big)\Big(\sum_{z=1} s\Big)

    Scores are signed, so this is no mass and the regulariser is quartic. Its gradient vanishes at
    0; :math:`\|M\|_F^2` stands for the scale.
    """

    soft = False

    @staticmethod
    def _sums(cells: CellSums) -> tuple[FloatArray, FloatArray]:
        return cells.vector[:, 0], cells.vector.sum(axis=1)

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """D and its gradient at w."""
        false, all_ = self._sums(cells)
        f, a = false @ w, all_ @ w
        gradient = f[1] * all_[0] + a[0] * false[1] - f[0] * all_[1] - a[1] * false[0]
        return float(f[1] * a[0] - f[0] * a[1]), gradient

    def scale(self, cells: CellSums) -> float:
        r""":math:`\|M\|_F^2` of the symmetric M."""
        false, all_ = self._sums(cells)
        # M is the symmetric part of A = PᵀQ, two rows each: no n × n matrix is needed.
        P, Q = np.stack([false[1], -false[0]]), all_
        cross = Q @ P.T
        return float(np.sum((P @ P.T) * (Q @ Q.T)) + np.sum(cross * cross.T)) / 2


Features = Callable[[FloatArray, FloatArray, FloatArray, float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Notion:
    r"""A notion of fairness.

    Parameters
    ----------
    name : str
        Its name in ``FairClassifier(notion=...)``.
    rate : Rate
        The rate per group whose smallest-to-largest ratio must reach τ.
    n_features : int
        Length of the adversary's u.
    features : callable ``(s, f, y, scale) -> (phi, d_phi)``
        The adversary's features and their derivatives in s, both of shape (n_features, rows), from
        the score s, the probability f and the label y. ``scale`` is a typical size of s, constant
        in differentiation: features that grow with s take s / scale.
    gaps : mapping of reading to Gap
        The regularised quantity in the ``"corrected"`` and the ``"printed"`` reading.
    better_than_chance : bool, default=False
        Whether a classifier counts only if every group's rate is better than that of labels drawn
        at random; needed where the rate conditions on the prediction, because a classifier that is
        wrong about everybody alike has a perfect ratio.
    """

    name: str
    rate: Rate
    n_features: int
    features: Features
    gaps: Mapping[str, Gap]
    better_than_chance: bool = False

    def chance(self, counts: Any) -> FloatArray:
        """Each group's rate if predictions were drawn without looking at the row."""
        c = np.asarray(counts, dtype=np.float64)
        label = c.sum(axis=-1)
        # Predictions that ignore the label: any share of positives will do, one half is one.
        return self.rate.per_group(np.stack([label / 2, label / 2], axis=-1))

    def eligible(self, counts: Any, min_share: float) -> NDArray[np.bool_]:
        """Whether a classifier with these counts counts as an answer at all.

        Every group must have between ``min_share`` and 1 − ``min_share`` predicted positives and,
        where the notion asks for it, a rate better than chance. Counts may have leading dimensions.
        """
        share = RATES["selection_rate"].per_group(counts)
        # The tolerance lets 1% of 100 rows be 1 row.
        ok = np.all((share >= min_share - 1e-12) & (share <= 1 - min_share + 1e-12), axis=-1)
        if self.better_than_chance:
            rate, chance = self.rate.per_group(counts), self.chance(counts)
            better = rate < chance if self.rate.is_error else rate > chance
            ok = ok & np.all(better, axis=-1)
        return ok


def statistical_parity(degree: int = 2) -> Notion:
    r"""Equal selection rates; the adversary sees :math:`[1, s, \dots, s^d]`."""

    def features(
        s: FloatArray, f: FloatArray, y: FloatArray, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        scaled = s / scale
        phi = np.empty((degree + 1, len(s)))
        d_phi = np.empty_like(phi)
        phi[0], d_phi[0] = 1.0, 0.0
        for k in range(1, degree + 1):
            np.multiply(phi[k - 1], scaled, out=phi[k])
            np.multiply(phi[k - 1], k / scale, out=d_phi[k])
        return phi, d_phi

    return Notion(
        name="statistical_parity",
        rate=RATES["selection_rate"],
        n_features=degree + 1,
        features=features,
        gaps={"corrected": LinearGap(), "printed": LinearGap(printed=True)},
    )


def false_discovery(degree: int = 2) -> Notion:
    r"""Equal false discovery rates; the adversary sees :math:`[1, f, y]`, whatever the degree."""

    def features(
        s: FloatArray, f: FloatArray, y: FloatArray, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        slope = f * (1 - f)
        zero = np.zeros_like(f)
        return np.stack([np.ones_like(f), f, y]), np.stack([zero, slope, zero])

    rate = RATES["false_discovery_rate"]
    return Notion(
        name="false_discovery",
        rate=rate,
        n_features=3,
        features=features,
        gaps={"corrected": SoftRateGap(rate), "printed": PrintedDiscoveryGap()},
        better_than_chance=True,
    )


NOTIONS: dict[str, Callable[[int], Notion]] = {
    "statistical_parity": statistical_parity,
    "false_discovery": false_discovery,
}
"""Notions by name; each is made for a degree of the adversary."""
