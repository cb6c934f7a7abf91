r"""Multiplier paths: from the unconstrained optimum towards parity, with no adversary.

The groups' rates enter the loss with multipliers :math:`\kappa_{rj}`, one for each rate r and
group j, which begin at 0 and grow a little at every evaluation, most for the group that is furthest
off,

.. math:: \kappa_{rj} \leftarrow \kappa_{rj} + \frac{\Lambda}{T}\,
    \frac{d_{rj}}{\max|d|}, \qquad d_{rj} = \frac{p_{rj} - p_r}{p_r},

with :math:`p_{rj}` the group's rate at the decision cut 0, :math:`p_r` the rate of all groups,
T iterations and a reach of :math:`\Lambda = 3` for each rate. Past parity a d changes its sign, so
that the walk stays about there. Accelerated descent follows, one step for each step of the
multipliers: every step is warm-started, and nothing is solved to the end.

Both are for two labels. A path is a record with ``evaluate`` and ``smoothness``; :class:`Walk`
makes of it a problem that :func:`evenhand.core.solvers.solve` can be given. A path needs of the
data only the oracle's moments, with other labels, weights or gaps.
"""

from copy import copy
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.gaps import CellSums, SoftRateGap
from evenhand.core.notions import AnyNotion
from evenhand.core.oracle import Moments, Oracle
from evenhand.core.rates import Rate
from evenhand.core.row_sums import penalized_sums

# How far the multipliers may go for each rate. At 1 a positive answer is worth as much as a right
# one. Chosen on validation splits of the training data, where parity is reached below 1.5 and
# reaches of 1, 2 and 3 are alike; other tables may have further to go.
REACH = 3.0
# The weight of a cell whose cost is 0: its rows must still be counted.
LEAST_COST = 1e-6
# Largest |f''| of the sigmoid over the largest second derivative of the log-loss, 1/4.
BEND = 4 / (6 * np.sqrt(3))


class Path(Protocol):
    """How multipliers enter the loss."""

    def check(self, notion: AnyNotion) -> None:
        """Refuse a notion that the path cannot serve."""

    def evaluate(self, oracle: Oracle, w: FloatArray, kappa: FloatArray) -> Moments:
        """Moments at w, with multipliers of shape (n_rates, n_groups)."""

    def smoothness(self, oracle: Oracle, kappa: FloatArray) -> float:
        """Smoothness of the loss with these multipliers."""


@dataclass(frozen=True)
class _Penalty:
    r"""The weighted sum :math:`\sum_{rj} c_{rj} F_{rj}(w)` of soft rates, in a gap's place."""

    rates: tuple[Rate, ...]
    weights: FloatArray
    soft = True

    def __call__(self, w: FloatArray, cells: CellSums) -> tuple[float, FloatArray]:
        """Sum and its gradient at w."""
        value, gradient = 0.0, np.zeros_like(w)
        for rate, c in zip(self.rates, self.weights, strict=True):
            soft, slope = SoftRateGap(rate).rates(cells)
            value, gradient = value + float(c @ soft), gradient + c @ slope
        return value, gradient

    def scale(self, cells: CellSums) -> float:
        """Weights are in units of the loss already."""
        return 1.0


@dataclass(frozen=True)
class SoftRatePath:
    r"""Penalise the soft rates, whose predictions are the probabilities :math:`f = \sigma(s)`.

    .. math:: L_C(w) + 2\sum_{rj} \kappa_{rj}\, \frac{b_{rj}}{N}\, F_{rj}(w),

    :math:`F_{rj}` as in :class:`~evenhand.core.gaps.SoftRateGap` and :math:`b_{rj}` its
    denominator at w = 0. At the decision boundary a row's log-loss is twice as steep as f. Any rate
    will do.
    """

    def check(self, notion: AnyNotion) -> None:
        """Every notion's rates can be soft."""

    def evaluate(self, oracle: Oracle, w: FloatArray, kappa: FloatArray) -> Moments:
        """Moments of the penalised loss: ``grad_f`` is the penalty's descent direction."""
        # Multipliers of merged groups are those of each group that they consist of.
        if oracle.n_groups > 2 and all(r.fixed_denominator for r in oracle.notion.rate.components):
            return self._evaluate_linear(oracle, w, kappa)
        rates = tuple(replace(rate, by=None) for rate in oracle.notion.rate.components)
        half = oracle.cells[0].weight[..., None] / [2, 2]
        bottom = np.stack([rate.fractions(half)[1] for rate in rates])
        penalty = _Penalty(rates, 2 * kappa * bottom / oracle.total)
        first = oracle.notion.components[:1]  # its adversary is there in name only
        view = copy(oracle)
        view.gaps, view.kappas = [penalty], [1.0]
        view.asked, view.cells = oracle.asked[:1], oracle.cells[:1]
        view.game = oracle.game._replace(notions=first, soft=(first[0].favourable,))
        m = view.evaluate(w, np.zeros(oracle.game.guess.n_outputs * first[0].n_features))
        return m._replace(loss_w=m.loss_w + m.loss_u)  # without the adversary's loss

    def _evaluate_linear(self, oracle: Oracle, w: FloatArray, kappa: FloatArray) -> Moments:
        """Evaluate rates whose denominators are fixed, which are linear in f, by a price per cell.

        One product with X then does for all groups.
        """
        rates = oracle.notion.rate.components
        n, prices = oracle.game.n_groups_all * 2, np.zeros((oracle.game.n_groups_all, 2))
        prices[: oracle.n_groups] = 2 * kappa.T @ _effects(oracle.notion)
        sums = oracle.rows.sum(penalized_sums, oracle.weights(w), prices.ravel(), n)
        counts, gradient = sums[2 : 2 + 2 * n].reshape(-1, 2, 2), sums[2 + 2 * n :].reshape(2, -1)
        if oracle.metric is not None:
            gradient = oracle.metric.gradient(gradient)
        gradient = gradient / oracle.total
        # What the rates count whatever the answer is.
        without = [[float((y, 0) in rate.numerator) for y in (0, 1)] for rate in rates]
        fixed = 2 * float(((without @ oracle.cells[0].weight.T) * kappa).sum())
        return Moments(
            loss_c=float(sums[0] / oracle.total + 0.5 * (oracle.ridge @ w**2)),
            loss_w=-(float(sums[1]) + fixed) / oracle.total,
            grad_c=gradient[0] + oracle.ridge * w,
            grad_f=-gradient[1],
            counts=counts,
            **dict.fromkeys(("loss_u", "gap", "steepness"), 0.0),
            **dict.fromkeys(("smoothness_u", "scale"), 1.0),
            grad_u=np.zeros(1),
        )

    def smoothness(self, oracle: Oracle, kappa: FloatArray) -> float:
        r""":math:`L_1 (1 + 2 \max_s 4|f''(s)|\, \max_j \sum_r |\kappa_{rj}|)`, an estimate where denominators vary."""  # noqa: E501
        return oracle.smoothness * (1 + 2 * BEND * float(np.abs(kappa).sum(axis=0).max()))


def _effects(notion: AnyNotion) -> FloatArray:
    """Give what a positive answer adds to each rate's numerator, by label; (n_rates, 2)."""
    effects = [
        [((y, 1) in rate.numerator) - ((y, 0) in rate.numerator) for y in (0, 1)]
        for rate in notion.rate.components
    ]
    return np.array(effects, dtype=np.float64)


@dataclass(frozen=True)
class CostSensitivePath:
    r"""Logistic regression on labels and weights that say what a positive answer is worth.

    Of a row with label y in group j it is

    .. math:: v_{jy} = (2y - 1) - \sum_r \kappa_{rj}\, a_r(y), \qquad
        a_r(y) = [(y, 1) \in A_r] - [(y, 0) \in A_r],

    with :math:`A_r` the cells that the rate's numerator counts; the row's label becomes
    :math:`[v > 0]`, its weight :math:`|v|`. For rates whose denominator no prediction changes this
    is the Lagrangian of the most accurate classifier with equal rates, its zero-one loss replaced
    by the log-loss.
    """

    def check(self, notion: AnyNotion) -> None:
        """Refuse rates whose denominator depends on the predictions."""
        for component in notion.components:
            if not all(rate.fixed_denominator for rate in component.rate.components):
                raise InputError(
                    "solver_cannot_serve",
                    solver=Parameter("solver", "cost_sensitive"),
                    notion=Parameter("notion", component.name),
                    soft_rate=Parameter("solver", "soft_rate"),
                    agd=Parameter("solver", "agd"),
                )

    def costs(self, notion: AnyNotion, kappa: FloatArray) -> FloatArray:
        """Worth of a positive answer in each group × label, shape (n_groups, 2)."""
        return np.array([-1.0, 1.0]) - kappa.T @ _effects(notion)

    def view(self, oracle: Oracle, kappa: FloatArray) -> tuple[Oracle, FloatArray]:
        """Give the oracle of the rows with these labels and weights, and the weight of each cell.

        Rows in no compared group keep theirs.
        """
        v = np.tile([-1.0, 1.0], (oracle.game.n_groups_all, 1))
        v[: oracle.n_groups] = self.costs(oracle.notion, kappa)
        label, size = (v > 0).astype(np.float64), np.maximum(np.abs(v), LEAST_COST)
        view = copy(oracle)
        view.recode = label.ravel(), size.ravel()
        return view, size

    def evaluate(self, oracle: Oracle, w: FloatArray, kappa: FloatArray) -> Moments:
        """Moments of the weighted loss; counts have the rows' own labels and weights."""
        view, size = self.view(oracle, kappa)
        m = view.evaluate(w, np.zeros(oracle.n_adversary))
        nothing = np.zeros_like(m.grad_c)
        return m._replace(counts=m.counts / size[..., None], grad_f=nothing, loss_w=0.0)

    def smoothness(self, oracle: Oracle, kappa: FloatArray) -> float:
        r""":math:`L_1 \max_{jy} |v_{jy}|`."""
        return oracle.smoothness * max(float(np.abs(self.costs(oracle.notion, kappa)).max()), 1.0)


class Walk:
    r"""The problem that a solver meets on a path: it changes a little at every evaluation.

    Parameters
    ----------
    oracle : Oracle
        The data and the notion.
    path : Path
        How multipliers enter the loss.
    max_iter : int
        Evaluations in all, over which the multipliers may go as far as ``reach``.
    reach : float, default=3.0
        How far that is for each rate.
    many : bool, default=False
        For many groups, some of them small: what grows are multipliers of the rates, whoever has
        them, :math:`\lambda_{rj} = \kappa_{rj} b_{rj} / N`, so that a small group's counts as much
        as a large one's; and it grows ever faster, as :math:`(t / T)^2`.

    Attributes
    ----------
    kappa : ndarray of shape (n_rates, n_groups)
        The multipliers.
    """

    n_adversary, mu = 1, 0.0

    def __init__(
        self,
        oracle: Oracle,
        path: Path,
        max_iter: int,
        reach: float = REACH,
        *,
        many: bool = False,
    ) -> None:
        n_rates = len(oracle.notion.rate.components)
        # Where each attribute has rates of its own, the reach is for all of them together.
        self.oracle, self.path = oracle, path
        self.pace = reach * (1 if many else n_rates) / max_iter
        self.max_iter, self.many, self.t = max_iter, many, 0
        self.n_weights, self.smoothness = oracle.n_weights, oracle.smoothness
        self.kappa = np.zeros((n_rates, oracle.n_groups))

    def smoothness_at(self, alpha: float, steepness: float) -> float:
        """Smoothness at the present multipliers; an estimate of the mean row's with many groups."""
        if not self.many:
            return self.path.smoothness(self.oracle, self.kappa)
        share = self.oracle.cells[0].weight.sum(axis=1) / self.oracle.total
        mean = np.abs(self.kappa).sum(axis=0) @ share
        return self.oracle.smoothness * (1 + 2 * BEND * float(mean))

    def evaluate(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Moments:
        """Moments at w; then the multipliers move. There is no adversary: u stays 0."""
        m = self.path.evaluate(self.oracle, w, self.kappa)
        rate, counts = self.oracle.notion.rate, m.counts[: self.oracle.n_groups]
        off = np.stack([_deviations(component, counts, self.many) for component in rate.components])
        most, pace = np.abs(off).max(), self.pace
        if self.many:
            pace *= (2 * self.t + 1) / self.max_iter
            self.t += 1
        if most > 0:
            self.kappa = self.kappa + pace * off / most
        gap = float(np.nan_to_num(rate.difference(counts)))
        return m._replace(grad_u=np.zeros(1), loss_u=0.0, gap=gap, smoothness_u=1.0)


def _deviations(rate: Rate, counts: FloatArray, by_share: bool = False) -> FloatArray:
    """Relative distance of each group's rate from the rate of all rows; 0 where it is undefined.

    With ``by_share`` it is over the group's share of the rows that the rate is of. Of merged groups
    each that is counted has that of the one that it is in.
    """
    top, bottom = rate.fractions(counts)
    whole = top.sum() / bottom.sum() if bottom.sum() > 0 else 0.0
    if not whole > 0:
        return np.zeros(len(counts))
    rates = np.divide(top, bottom, out=np.full_like(top, whole), where=bottom > 0)
    off = rates / whole - 1
    if by_share:
        off = np.divide(off * bottom.mean(), bottom, out=np.zeros_like(off), where=bottom > 0)
    return off if rate.by is None else rate.by.spread(off, len(counts))
