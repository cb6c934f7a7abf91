"""Regularisers: how far apart the groups are at weights w, as a smooth function with a gradient."""

from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.rates import Rate

READINGS = ("corrected", "printed")

_TINY = np.finfo(np.float64).tiny


class CellSums(NamedTuple):
    """Sums over the rows of each cell group × label.

    ``weight`` has shape (groups, 2); ``value``, the sum of a row quantity such as the probability
    f, the same; ``vector``, the sum of a multiple of the row's inputs, shape (groups, 2, n).
    """

    weight: FloatArray
    value: FloatArray
    vector: FloatArray


class Gap(Protocol):
    r"""The regulariser's penalty :math:`\tfrac12 D(w)^2`.

    D is the difference between two groups of something. Of k groups all pairs count,

    .. math:: D^2 = \sum_{i<j} \omega_{ij} D_{ij}^2, \qquad
        \omega_{ij} = \frac{\pi_i \pi_j}{\sum_{i<j} \pi_i \pi_j},

    with the groups' shares :math:`\pi`. ``soft`` says whether it needs the sums of f and of
    :math:`f' x` at w in each cell; otherwise the sums of x, which never change, are enough and the
    regulariser costs no pass over the data.
    """

    soft: bool

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """Penalty and its gradient at w."""

    def scale(self, cells: CellSums) -> float:
        r"""Squared size of the gradient of D that makes :math:`\mu` dimensionless, :math:`\kappa = \mu L_1 / \text{scale}`."""  # noqa: E501


def _spread(value: FloatArray, weight: FloatArray) -> tuple[float, FloatArray]:
    r"""Give :math:`\tfrac12 \sum_{i<j} \omega_{ij} (F_i - F_j)^2` and its derivatives in the F.

    :math:`\sum_{i<j} \pi_i\pi_j (F_i - F_j)^2 = \sum_i \pi_i (F_i - \bar F)^2` for shares that sum
    to one.
    """
    if len(value) == 2:
        gap = value[0] - value[1]
        return 0.5 * float(gap * gap), np.array([gap, -gap])  # ** would raise where * is inf
    share = weight / weight.sum()
    off = value - share @ value
    pairs = (1 - share @ share) / 2
    return 0.5 * float(share @ off**2) / pairs, share * off / pairs


def _pair_scale(gradient: FloatArray, weight: FloatArray) -> float:
    r"""Give :math:`\sum_{i<j} \omega_{ij} \|\nabla F_i - \nabla F_j\|^2`."""
    if len(gradient) == 2:
        delta = gradient[0] - gradient[1]
        return float(delta @ delta)
    share = weight / weight.sum()
    off = gradient - share @ gradient
    return float(share @ np.sum(off**2, axis=1)) / ((1 - share @ share) / 2)


@dataclass(frozen=True)
class LinearGap:
    r"""Difference of the groups' mean scores, :math:`D = \delta^\top w`, :math:`\delta = \bar x_0 - \bar x_1`.

    Parameters
    ----------
    printed : bool, default=False
        The paper's sums over a group divided by P[G_j], which are N times the group means.
    labels : tuple of int, default=(0, 1)
        The labels of the rows whose mean is taken.
    """  # noqa: E501

    printed: bool = False
    labels: tuple[int, ...] = (0, 1)
    soft = False

    def _means(self, cells: CellSums) -> FloatArray:
        labels = list(self.labels)
        weight = cells.weight[:, labels].sum(axis=1)
        mean = cells.vector[:, labels].sum(axis=1) / np.maximum(weight, _TINY)[:, None]
        return mean * (cells.weight.sum() if self.printed else 1.0)

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """Penalty and its gradient at w."""
        mean = self._means(cells)
        penalty, slope = _spread(mean @ w, cells.weight.sum(axis=1))
        return penalty, slope @ mean

    def scale(self, cells: CellSums) -> float:
        r""":math:`\|\delta\|^2`."""
        return _pair_scale(self._means(cells), cells.weight.sum(axis=1))


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

    def rates(self, cells: CellSums) -> tuple[FloatArray, FloatArray]:
        """Soft rate of each group and its gradient."""
        positive, d_positive = cells.value, cells.vector
        count = np.stack([cells.weight - positive, positive], axis=-1)
        d_count = np.stack([-d_positive, d_positive], axis=2)
        top = sum(count[:, y, p] for y, p in self.rate.numerator)
        bottom = sum(count[:, y, p] for y, p in self.rate.denominator)
        d_top = sum(d_count[:, y, p] for y, p in self.rate.numerator)
        d_bottom = sum(d_count[:, y, p] for y, p in self.rate.denominator)
        bottom = np.maximum(bottom, _TINY)
        rate = top / bottom
        return rate, (d_top - rate[:, None] * d_bottom) / bottom[:, None]

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """Penalty and its gradient at w."""
        rate, gradient = self.rates(cells)
        penalty, slope = _spread(rate, cells.weight.sum(axis=1))
        return penalty, slope @ gradient

    def scale(self, cells: CellSums) -> float:
        r""":math:`\|\nabla D(0)\|^2`; cells are those at w = 0."""
        return _pair_scale(self.rates(cells)[1], cells.weight.sum(axis=1))


@dataclass(frozen=True)
class PrintedDiscoveryGap:
    r"""The paper's product of sums of scores, :math:`D = w^\top M w`, of two groups.

    .. math:: D = \Big(\sum_{y=0, z=1} s \Big)\Big(\sum_{z=0} s\Big)
                - \Big(\sum_{y=0, z=0} s \Big)\Big(\sum_{z=1} s\Big)

    Scores are signed, so this is no mass and the regulariser is quartic. Its gradient vanishes at
    0; :math:`\|M\|_F^2` stands for the scale.
    """

    soft = False

    @staticmethod
    def _sums(cells: CellSums) -> tuple[FloatArray, FloatArray]:
        if len(cells.weight) != 2:
            raise InputError(
                "formula_for_two_groups",
                n=len(cells.weight),
                reading=Parameter("reading", "corrected"),
            )
        return cells.vector[:, 0], cells.vector.sum(axis=1)

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """Penalty and its gradient at w."""
        false, all_ = self._sums(cells)
        f, a = false @ w, all_ @ w
        gap = f[1] * a[0] - f[0] * a[1]
        gradient = f[1] * all_[0] + a[0] * false[1] - f[0] * all_[1] - a[1] * false[0]
        return 0.5 * float(gap * gap), gap * gradient

    def scale(self, cells: CellSums) -> float:
        r""":math:`\|M\|_F^2` of the symmetric M."""
        false, all_ = self._sums(cells)
        # M is the symmetric part of A = PᵀQ, two rows each: no n × n matrix is needed.
        P, Q = np.stack([false[1], -false[0]]), all_
        cross = Q @ P.T
        return float(np.sum((P @ P.T) * (Q @ Q.T)) + np.sum(cross * cross.T)) / 2
