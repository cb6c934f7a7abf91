"""What a frontier's points do on rows that were not fitted to: counts, and their record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.left_out import LeftOut
from evenhand.core.objectives import ACCURACY
from evenhand.core.rates import overall_accuracy
from evenhand.core.rows import Rows
from evenhand.core.targets import READ, Target
from evenhand.engines.memory import MemoryRows
from evenhand.frontier.histograms import cut_counts
from evenhand.frontier.points import COLUMNS, Frontier
from evenhand.statistics.bounds import BOUND, BOUNDS, exact_bound

__all__ = [
    "HeldOut",
    "candidates",
    "count_cuts",
    "count_points",
    "count_rows",
    "order_of_tests",
    "pool_folds",
]


@dataclass(frozen=True)
class HeldOut:
    """The points that may be chosen, on rows that were not fitted to.

    With ``"holdout"`` and for guarantees these are the figures of the points themselves on the
    held-out rows. With ``"crossfit"`` a figure is of the folds' points at the same nominal target,
    each on the rows of its fold, all folds together. Of rows fitted to with many columns they are
    those of the points themselves, each row as if it had been left out
    (:class:`~evenhand.core.left_out.LeftOut`).

    Parameters
    ----------
    points : Frontier
        The points, with their figures on the rows fitted to: the classifier's ``frontier_``, or
        for guarantees, or with a confidence, :func:`candidates` of it.
    counts : ndarray of shape (n_points, n_groups, 2, 2)
        Weight per group × label × prediction.
    accuracy, rate : ndarray of shape (n_points,)
        Accuracy, and the target's value, of a difference its negative.
    bound : ndarray of shape (n_points,)
        Lower confidence bound of the value in the population (:func:`exact_bound`), for a point
        looked at by itself. NaN for points that are not tested (:func:`order_of_tests`).
    last : ndarray of shape (n_groups, 2, 2)
        Counts of ``frontier_.last``.
    n_rows, n_fitted : int
        Rows that the counts are of, and rows that the frontier was fitted to.
    bound_name : str
        By which bound ``bound`` was made, a key of :data:`evenhand.statistics.bounds.BOUNDS`.
    """

    points: Frontier
    counts: FloatArray
    accuracy: FloatArray
    rate: FloatArray
    bound: FloatArray
    last: FloatArray
    n_rows: int
    n_fitted: int
    bound_name: str = BOUND

    @property
    def utility(self) -> FloatArray:
        """What points are chosen by: the objective's utility of each."""
        objective = self.points.objective
        return self.accuracy if objective == ACCURACY else objective.utility(self.counts)

    @classmethod
    def from_counts(
        cls,
        points: Frontier,
        counts: FloatArray,
        target: Target,
        *,
        delta: float | None,
        n_rows: int,
        n_fitted: int,
    ) -> HeldOut:
        """Make the record from :func:`count_points`; without ``delta`` there are no bounds."""
        counts, last = counts[:-1], counts[-1]
        accuracy, rate = overall_accuracy(counts), target.value(counts[:, : len(points.groups)])
        nothing = np.full(len(counts), np.nan)
        held_out = cls(points, counts, accuracy, rate, nothing, last, n_rows, n_fitted)
        if delta is None:
            return held_out
        return replace(held_out, bound=held_out.bounds(target, delta))

    def bounds(self, target: Target, delta: float) -> FloatArray:
        """Compute ``bound`` from the counts; NaN for points that are not tested."""
        bound, order = np.full(len(self.counts), np.nan), order_of_tests(self, target, delta)
        if BOUNDS[self.bound_name].most_tests is None:
            order = np.arange(len(bound))  # files of old have all
        counts = self.counts[order, : len(self.points.groups)]
        bound[order] = exact_bound(counts, target, delta, self.bound_name)
        return bound

    def to_frame(self) -> pd.DataFrame:
        """One row per point, with its figures on the rows fitted to and on the others."""
        fitted = self.points.to_frame()
        name, sign = READ[self.points.comparison]
        named = {"accuracy": "fitted_accuracy", name: f"fitted_{name}"}
        shares = [name for name in fitted.columns if name.startswith("selection_rate[")]
        figures = {"accuracy": self.accuracy, name: sign * self.rate, "bound": sign * self.bound}
        return fitted.rename(columns=named).drop(columns=shares).assign(**figures)


def order_of_tests(held_out: HeldOut, target: Target, delta: float) -> NDArray[np.intp]:
    """Points in the order in which they are tested: the fairest first, then ever more accurate.

    Order and points come from the rows fitted to alone; of the held-out rows only their number is
    used. The fairest is the one that is likeliest to pass: whose bound would be the
    highest if the held-out rows came out as the fitted ones did. (A rate of 1 among few positives
    is not fair but uncertain, and would end the tests before they began.)

    Not tested are points that are neither fairer in this sense nor more accurate than another, and
    points that keep less than two thirds of what the most accurate one gains over one answer to
    everybody (or the best one by another objective), unless there are no others: a classifier that
    says yes to nearly everybody has the surest rate, and a guarantee for it is worth nothing. Of
    the others at most a hundred are tested, evenly spread: each test more is one more at which it
    may end.
    """
    points = held_out.points
    if not len(points):
        return np.zeros(0, dtype=np.intp)
    size = held_out.n_rows / held_out.n_fitted
    bound = BOUNDS[held_out.bound_name]
    expected = bound.expected(points.counts[:, : len(points.groups)] * size, target, delta)
    order = np.lexsort((points.rate, -points.utility, -expected))
    order = order[expected[order] > target.worst]  # NaN is not
    utility, constant = points.utility, points.constant
    least = constant + bound.worth * max(float(utility.max()) - constant, 0.0)
    useful = (utility[order] > constant) & (utility[order] >= least)
    order = order[useful] if useful.any() else order
    utility = utility[order]
    best = np.maximum.accumulate(np.append(-np.inf, utility))[:-1]
    return bound.spread(order[utility > best], len(points.groups))


def candidates(frontier: Frontier) -> Frontier:
    """Points that may be certified: the frontier's, and all of ``frontier.conservative``.

    The latter have more positives than others as accurate and as fair, and so a rate that fewer
    rows can prove.
    """
    conservative = frontier.conservative
    if conservative is None:
        return frontier
    # The frontier's sure points are among the conservative ones.
    columns: dict[str, Any] = {
        name: np.concatenate(
            [getattr(conservative, name), getattr(frontier, name)[frontier.n_sure :]]
        )
        for name in COLUMNS
    }
    return replace(conservative, **columns)


def count_points(
    frontier: Frontier,
    iterates: FloatArray,
    X: Any,
    extra: FloatArray | None,
    cell: NDArray[np.intp],
    weight: FloatArray | None,
    n_groups: int,
) -> FloatArray:
    """Count what a frontier's points, and behind them its ``last``, predict for other rows.

    ``iterates`` are the weights that points refer to. ``cell`` is the group's number times the
    number of labels, plus the label's number; ``extra`` is a column of ones by default.
    ``n_groups`` is one more if there are rows that belong to none. Counts have shape
    (n_points + 1, n_groups, n_labels, n_labels).
    """
    extra = np.ones(X.shape[0]) if extra is None else extra
    rows = MemoryRows(X, (extra, extra, extra, cell, weight))
    return count_rows(frontier, iterates, rows, n_groups)


def count_rows(
    frontier: Frontier,
    iterates: FloatArray,
    rows: Rows,
    n_groups: int,
    left_out: LeftOut | None = None,
) -> FloatArray:
    """As :func:`count_points`, for rows wherever they are.

    Those fitted to can be counted as if each had been ``left_out``.
    """
    iterate = np.append(frontier.iterate, frontier.last.iterate)
    cut = np.append(frontier.cut, [frontier.last.cut], axis=0)
    used, column = np.unique(iterate, return_inverse=True)
    if left_out is not None:
        left_out = left_out._replace(shares=left_out.shares[:, used])
    n_labels = frontier.last.counts.shape[-1]
    return count_cuts(rows, iterates[used], column, cut, n_groups, n_labels, left_out)


def count_cuts(
    rows: Rows,
    iterates: FloatArray,
    column: Any,
    cut: FloatArray,
    n_groups: int,
    n_labels: int,
    left_out: LeftOut | None = None,
) -> FloatArray:
    """Weight per cut × group × label × prediction; ``column`` says which iterate each cut is of."""
    W = np.ascontiguousarray(iterates.reshape(-1, rows.n_features + 1).T)
    return rows.sum(cut_counts, W, column, cut, n_groups, n_labels, left_out)


def pool_folds(frontier: Frontier, folds: list[tuple[Frontier, FloatArray]]) -> FloatArray:
    """Out-of-fold counts of each point of a frontier, and of its ``last`` behind them.

    A point's rate is its nominal target τ′: what is demanded on the data a model was fitted to. In
    each fold, which has the frontier of the fit to all other rows and its :func:`count_points`, the
    point that answers τ′ there is taken, and its counts on the rows of the fold.
    """
    pooled = np.zeros((len(frontier) + 1, *frontier.last.counts.shape))
    for fold, counts in folds:
        i = np.searchsorted(fold.rate, frontier.rate, side="left")
        # Beyond its last point a fold answers with that, as Frontier.select does; an empty one
        # with its last iterate, whose counts are behind the points' counts.
        pooled[:-1] += counts[np.minimum(i, max(len(fold) - 1, 0))]
        pooled[-1] += counts[-1]
    return pooled
