r"""Which point of a frontier to choose, so that its τ holds on rows the fit has not seen.

A point chosen on the data it was fitted to has a rate that is better there than elsewhere. The
selections here look at other rows: :func:`split_rows` and :func:`split_folds` set them aside,
:func:`count_points` counts every point's predictions on them, :func:`pool_folds` joins the counts
of folds, and :func:`choose` picks the point. Everything is a function of counts, for any rate and
any number of groups.

The bounds are one-sided and exact. Of the rows that a group's rate :math:`p_j` conditions on,
:math:`b_j` in number, :math:`a_j` count; given :math:`b_j`, :math:`a_j` is binomial, and Clopper
and Pearson's

.. math:: \ell_j = B^{-1}(\epsilon;\, a_j,\, b_j - a_j + 1), \qquad
    h_j = B^{-1}(1 - \epsilon;\, a_j + 1,\, b_j - a_j),

with :math:`B^{-1}` the quantile of the beta distribution, are each on the wrong side of
:math:`p_j` with probability ε at most.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.special import betaincinv

from evenhand._arrays import like, namespace
from evenhand.engines import MemoryRows, Rows
from evenhand.frontier import Frontier, Point, _point
from evenhand.rates import AnyRate, WorstRate, overall_accuracy, rate_text
from evenhand.rowmath import Block, float64_scores
from evenhand.tally import by_iterate

__all__ = [
    "Choice",
    "Guarantee",
    "HeldOut",
    "candidates",
    "check_part",
    "check_unweighted",
    "choose",
    "clopper_pearson",
    "count_points",
    "count_rows",
    "order_of_tests",
    "own_targets",
    "pool_folds",
    "ratio_bound",
    "rows_factor",
    "rows_of",
    "split_folds",
    "split_rows",
]

FloatArray = NDArray[Any]

# More rows than this many times those at hand are as good as no number at all.
MOST_ROWS = 1e9


# ---- bounds ----------------------------------------------------------------------------------


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
    >>> from evenhand.selection import clopper_pearson
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

    Nor do several rates of which all must hold cost more: the smallest of their bounds reaches τ
    wrongly only if that of a rate which misses τ does, and one such rate is enough to look at.

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
        shares = rate.shares or (1.0,) * len(rate.parts)
        parts = zip(rate.parts, shares, strict=True)
        return np.asarray(np.min([ratio_bound(counts, r, delta) / c for r, c in parts], axis=0))
    top, bottom = rate._fractions(counts)
    if top.shape[-1] < 2:
        return np.full(top.shape[:-1], np.nan)
    lower, upper = clopper_pearson(top, bottom, delta / 2)
    # min and max give NaN if one of the groups has it.
    return np.asarray(lower.min(axis=-1) / upper.max(axis=-1))


def rows_factor(counts: ArrayLike, rate: AnyRate, tau: float, delta: float) -> float:
    r"""How many times the rows, at the same rates, make :func:`ratio_bound` reach ``tau``.

    Infinite if no number does: the observed ratio, to which the bound rises, must exceed τ.

    Parameters
    ----------
    counts : array-like of shape (n_groups, 2, 2)
        Rows per group × label × prediction.
    rate : Rate
        The rate.
    tau, delta : float
        Target and probability of error.
    """
    counts = np.asarray(counts, dtype=float)
    if not rate.ratio(counts) > tau:
        return float("inf")
    high = 1.0
    while not ratio_bound(high * counts, rate, delta) >= tau:
        high *= 2
        if high > MOST_ROWS:
            return float("inf")
    low = high / 2
    while high / low > 1.001:
        middle = (low * high) ** 0.5
        reached = ratio_bound(middle * counts, rate, delta) >= tau
        low, high = (low, middle) if reached else (middle, high)
    return high


# ---- rows ------------------------------------------------------------------------------------


def check_unweighted(weight: FloatArray | None) -> None:
    """Refuse weights that differ: the bounds count rows."""
    if weight is not None and (weight != weight[0]).any():
        raise ValueError(
            "selection='certified' is for unweighted rows, and sample_weight differs from row to "
            "row; leave it out, or use selection='holdout' or 'crossfit', which certify nothing."
        )


def check_part(
    z: NDArray[np.intp], y: NDArray[np.intp], names: tuple[list[Any], list[Any]]
) -> None:
    """Refuse rows to fit to that lack a group or a label."""
    for codes, known, what in ((z, names[0], "of group"), (y, names[1], "with label")):
        missing = np.flatnonzero(np.bincount(codes, minlength=len(known)) == 0)
        if len(missing):
            raise ValueError(
                f"no row {what} {known[int(missing[0])]!r} is left to fit to when others are held "
                "out; hold out fewer, or bring more rows."
            )


def rows_of(index: Any, n_rows: int) -> NDArray[np.intp]:
    """Numbers of the rows that a user's split names, by number or by a mask."""
    try:
        return np.arange(n_rows)[index]
    except IndexError:
        raise ValueError(
            f"cv names rows that are not among the {n_rows} of positive weight; give the numbers "
            "of rows among those."
        ) from None


def _shuffled(strata: NDArray[np.intp], random: Any) -> list[NDArray[np.intp]]:
    """Rows of each stratum in random order."""
    return [random.permutation(np.flatnonzero(strata == s)) for s in np.unique(strata)]


def split_rows(
    strata: NDArray[np.intp], share: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to fit on and rows to hold out: of each stratum, ``share`` of its rows at random.

    Of a stratum of two rows or more at least one is on either side; a single row is fitted to.
    """
    held = []
    for rows in _shuffled(strata, random):
        n = int(np.clip(round(share * len(rows)), min(len(rows) - 1, 1), max(len(rows) - 1, 0)))
        held.append(rows[:n])
    out = np.sort(np.concatenate(held))
    return np.setdiff1d(np.arange(len(strata)), out), out


def split_folds(
    strata: NDArray[np.intp], n_folds: int, random: np.random.RandomState
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each fold the rows of the others and its own; strata are dealt out in random order."""
    fold = np.empty(len(strata), dtype=np.intp)
    # One deal for all, so that folds differ by one row at most.
    fold[np.concatenate(_shuffled(strata, random))] = np.arange(len(strata)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]


# ---- counts ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class HeldOut:
    """The points that may be chosen, on rows that were not fitted to.

    Of ``"holdout"`` and ``"certified"`` the figures are those of the points themselves on the
    held-out rows. Of ``"crossfit"`` they are those of the folds' points at the same nominal target,
    each on the rows of its fold, all folds together.

    Parameters
    ----------
    points : Frontier
        The points, with their figures on the rows fitted to: the classifier's ``frontier_``, or
        for ``"certified"`` :func:`candidates` of it.
    counts : ndarray of shape (n_points, n_groups, 2, 2)
        Weight per group × label × prediction.
    accuracy, rate : ndarray of shape (n_points,)
        Accuracy, and ratio of the notion's rate between the groups.
    bound : ndarray of shape (n_points,)
        Lower confidence bound of the ratio in the population (:func:`ratio_bound`), for a point
        looked at by itself. NaN where there is none: for weighted rows and for ``"crossfit"``.
    last : ndarray of shape (n_groups, 2, 2)
        Counts of ``frontier_.last``.
    n_rows, n_fitted : int
        Rows that the counts are of, and rows that the frontier was fitted to.
    """

    points: Frontier
    counts: FloatArray
    accuracy: FloatArray
    rate: FloatArray
    bound: FloatArray
    last: FloatArray
    n_rows: int
    n_fitted: int

    @classmethod
    def from_counts(
        cls,
        points: Frontier,
        counts: FloatArray,
        rate: AnyRate,
        *,
        delta: float | None,
        n_rows: int,
        n_fitted: int,
    ) -> HeldOut:
        """Make the record from :func:`count_points`; without ``delta`` there are no bounds."""
        counts, last = counts[:-1], counts[-1]
        bound, compared = np.full(len(counts), np.nan), counts[:, : len(points.groups)]
        if delta is not None:
            bound = ratio_bound(compared, rate, delta)
        accuracy = overall_accuracy(counts)
        return cls(points, counts, accuracy, rate.ratio(compared), bound, last, n_rows, n_fitted)

    def to_frame(self) -> pd.DataFrame:
        """One row per point, with its figures on the rows fitted to and on the others."""
        fitted = self.points.to_frame()
        named = {"accuracy": "fitted_accuracy", "rate": "fitted_rate"}
        shares = [name for name in fitted.columns if name.startswith("selection_rate[")]
        figures = {"accuracy": self.accuracy, "rate": self.rate, "bound": self.bound}
        return fitted.rename(columns=named).drop(columns=shares).assign(**figures)


def candidates(frontier: Frontier) -> Frontier:
    """Points that may be certified: those of the frontier, and all of ``frontier.wary``.

    The latter have more positives than others as accurate and as fair, and so a rate that fewer
    rows can prove.
    """
    wary = frontier.wary
    if wary is None:
        return frontier
    # The frontier's sure points are among the wary ones.
    columns: dict[str, Any] = {
        name: np.concatenate([getattr(wary, name), getattr(frontier, name)[frontier.n_sure :]])
        for name in ("iterate", "cut", "accuracy", "rate", "counts")
    }
    return replace(wary, **columns)


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

    Parameters
    ----------
    frontier : Frontier
        The points.
    iterates : ndarray of shape (n_iterates, n_weights)
        The weights they refer to.
    X : ndarray or CSR matrix of shape (n_rows, n_features)
        Inputs.
    extra : ndarray of shape (n_rows,), optional
        The extra column; ones by default.
    cell : ndarray of shape (n_rows,)
        The group's number times that of labels, plus the label's.
    weight : ndarray of shape (n_rows,), optional
        Row weights.
    n_groups : int
        Groups, and one more if there are rows that belong to none.

    Returns
    -------
    ndarray of shape (n_points + 1, n_groups, n_labels, n_labels)
        Weight per group × label × prediction.
    """
    extra = np.ones(X.shape[0]) if extra is None else extra
    rows = MemoryRows(X, (extra, extra, extra, cell, weight))
    return count_rows(frontier, iterates, rows, n_groups)


def count_rows(frontier: Frontier, iterates: FloatArray, rows: Rows, n_groups: int) -> FloatArray:
    """As :func:`count_points`, for rows wherever they are."""
    iterate = np.append(frontier.iterate, frontier.last.iterate)
    cut = np.append(frontier.cut, [frontier.last.cut], axis=0)
    used, column = np.unique(iterate, return_inverse=True)
    n_labels, n_columns = frontier.last.counts.shape[-1], rows.n_features + 1
    W = np.ascontiguousarray(iterates[used].reshape(-1, n_columns).T)
    return rows.sum(_point_counts, W, column, cut, n_groups, n_labels)


def _point_counts(
    block: Block, W: FloatArray, column: Any, cut: FloatArray, n_groups: int, n_labels: int
) -> FloatArray:
    """Count what points predict: cuts on the scores of some iterates, ``column`` says which."""
    xp, outputs = namespace(block.extra), 1 if n_labels == 2 else n_labels
    scores = by_iterate(float64_scores(block, W).T, outputs)
    size = n_groups * n_labels**2
    if cut.ndim == 2:
        found, group = [], block.cell // n_labels
        for at, c in zip(column.tolist(), like(cut, block.extra), strict=True):
            if outputs == 1:
                answer = scores[at, 0] > c[group]
            else:
                answer = xp.argmax(scores[at] - c[:, None], axis=0)
            place = block.cell * n_labels + answer
            found.append(xp.bincount(place, weights=block.weight, minlength=size))
        counts = xp.asarray(xp.stack(found), dtype=block.extra.dtype)
        return counts.reshape(len(cut), n_groups, n_labels, n_labels)
    counts = xp.zeros_like(like(np.zeros((len(cut), n_groups, 2, 2)), block.extra))
    for j, s in enumerate(scores[:, 0]):
        # The points of an iterate by rising cut: a row is positive at as many as its score exceeds.
        points = np.flatnonzero(column == j)
        points = points[np.argsort(cut[points], kind="stable")]
        bins = len(points) + 1
        place = block.cell * bins + xp.searchsorted(like(cut[points], s), s)
        found = xp.bincount(place, weights=block.weight, minlength=2 * n_groups * bins)
        found = xp.asarray(found, dtype=block.extra.dtype).reshape(n_groups, 2, bins)
        below = xp.cumsum(found, axis=-1)
        for i, point in enumerate(points.tolist()):
            counts[point, ..., 0] = below[..., i]
            counts[point, ..., 1] = below[..., -1] - below[..., i]
    return counts


def pool_folds(frontier: Frontier, folds: list[tuple[Frontier, FloatArray]]) -> FloatArray:
    """Out-of-fold counts of each point of a frontier, and of its ``last`` behind them.

    A point's rate is its nominal target τ′: what is asked of the data a model was fitted to. In
    each fold the point that answers τ′ there is taken, and its counts on the rows of the fold.

    Parameters
    ----------
    frontier : Frontier
        Of the fit to all rows.
    folds : list of (Frontier, ndarray)
        Frontier of the fit to all other rows, and :func:`count_points` of it on the fold.

    Returns
    -------
    ndarray of shape (n_points + 1, n_groups, 2, 2)
        Counts summed over the folds.
    """
    pooled = np.zeros((len(frontier) + 1, *frontier.last.counts.shape))
    for fold, counts in folds:
        i = np.searchsorted(fold.rate, frontier.rate, side="left")
        # Beyond its last point a fold answers with that, as Frontier.select does; an empty one
        # with its last iterate, whose counts are behind those of the points.
        pooled[:-1] += counts[np.minimum(i, max(len(fold) - 1, 0))]
        pooled[-1] += counts[-1]
    return pooled


# ---- choice ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Guarantee:
    r"""What ``selection="certified"`` can say of the chosen point.

    With confidence :math:`1 - \delta` over the draw of the held-out rows, the ratio of the groups'
    rates in the population that the rows are drawn from is at least τ. ``str()`` says it in words.

    Parameters
    ----------
    certified : bool
        Whether the point is certified; all else is about the point that is kept if not.
    tau, delta : float
        Target, and probability of a wrong certificate.
    bound : float
        Lower confidence bound of the ratio of the point by itself; at least τ if certified.
    rate : float
        Ratio on the held-out rows.
    n_rows : int
        Rows held out.
    tested, candidates : int
        Points that were tested, the failed one included, of so many in line.
    rows_needed : int or None
        Without a certificate: about how many rows in all, held out and fitted to, it would take at
        the rates seen; None if no number would do. None as well if certified.
    targets : tuple of (str, float)
        The name of each rate and its own target.
    """

    certified: bool
    tau: float
    delta: float
    bound: float
    rate: float
    n_rows: int
    tested: int
    candidates: int
    rows_needed: int | None
    targets: tuple[tuple[str, float], ...] = ()

    def __str__(self) -> str:
        alike = len({tau for _, tau in self.targets}) < 2
        what, target = "ratio", f"τ = {self.tau:g}"
        if not alike:
            # Ratios of several rates are measured in shares of their targets.
            what = "worst ratio, in units of its target over the strictest,"
            target = ", ".join(f"{tau:g} for the {name}" for name, tau in self.targets)
        elif len(self.targets) > 1:
            what = "worst of the ratios"
        held = f"on {self.n_rows:,} held-out rows the {what} is {rate_text(self.rate, self.tau)}"
        sure = f"{1 - self.delta:.4g}"
        if self.certified:
            subject = "the ratio" if len(self.targets) < 2 else "every ratio"
            return (
                f"certified: with confidence {sure} {subject} in the population is at least "
                f"{target} ({held}; {self.tested} of {self.candidates} points tested)"
            )
        if not self.candidates:
            return f"no point can be certified for {target}: there is none to test"
        text = (
            f"no point can be certified for {target} with confidence {sure}: of the "
            f"fairest, {held}, which shows no more than {rate_text(self.bound, self.tau)}; "
        )
        if self.rows_needed is None:
            return text + "at these rates no number of rows would be enough"
        digits = 10 ** max(len(str(self.rows_needed)) - 2, 0)  # two of them are enough
        needed = ceil(self.rows_needed / digits) * digits
        return text + f"at these rates about {needed:,} rows in all would be needed"


class Choice(NamedTuple):
    """A point, its figures on the rows it was chosen on, and a guarantee if one was sought."""

    point: Point
    rate: float
    accuracy: float
    guarantee: Guarantee | None = None


def order_of_tests(held: HeldOut, rate: AnyRate, delta: float) -> NDArray[np.intp]:
    """Points in the order in which they are tested: the fairest first, then ever more accurate.

    Order and points come from the fitting part alone; of the held-out rows only their number is
    used. The fairest is the one that is likeliest to pass: whose :func:`ratio_bound` would be the
    highest if the held-out rows came out as the fitted ones did. (A rate of 1 among few positives
    is not fair but uncertain, and would end the tests before they began.)

    Not tested are points that are neither fairer in this sense nor more accurate than another, and
    points that are no more accurate than one answer to everybody, unless there are no others: the
    surest rate is that of a classifier that says yes to nearly everybody, and a certificate for it
    is worth nothing.
    """
    points = held.points
    if not len(points):
        return np.zeros(0, dtype=np.intp)
    size = held.n_rows / held.n_fitted
    expected = ratio_bound(points.counts[:, : len(points.groups)] * size, rate, delta)
    order = np.lexsort((points.rate, -points.accuracy, -expected))
    order = order[expected[order] > 0]  # NaN is not
    labels = points.counts[0].sum(axis=(0, 2))
    useful = points.accuracy[order] > labels.max() / labels.sum()
    order = order[useful] if useful.any() else order
    accuracy = points.accuracy[order]
    best = np.maximum.accumulate(np.append(-np.inf, accuracy))[:-1]
    return order[accuracy > best]


def own_targets(rate: AnyRate, tau: float) -> tuple[tuple[str, float], ...]:
    """Name of each rate's ratio, and its own target if the strictest has ``tau``."""
    shares = getattr(rate, "shares", ()) or (1.0,) * len(rate.parts)
    return tuple(
        (part.ratio_name, float(round(tau * share, 12)))
        for part, share in zip(rate.parts, shares, strict=True)
    )


def _certify(held: HeldOut, rate: AnyRate, tau: float, delta: float) -> tuple[int, Guarantee]:
    """Test the points in line, stop at the first failure; the last that passed, else the first."""
    order = order_of_tests(held, rate, delta)
    n = int(np.argmin(np.append(held.bound[order] >= tau, False)))  # an undefined bound fails
    i = int(order[max(n - 1, 0)]) if len(order) else -1
    needed = None
    if len(order) and not n:
        compared = held.counts[i][: len(held.points.groups)]
        factor = rows_factor(compared, rate, tau, delta)
        needed = ceil(factor * (held.n_rows + held.n_fitted)) if np.isfinite(factor) else None
    return i, Guarantee(
        certified=n > 0,
        tau=float(tau),
        delta=float(delta),
        bound=float(held.bound[i]) if len(order) else np.nan,
        rate=float(held.rate[i]) if len(order) else np.nan,
        n_rows=held.n_rows,
        tested=min(n + 1, len(order)),
        candidates=len(order),
        rows_needed=needed,
        targets=own_targets(rate, tau),
    )


def _reach(held: HeldOut, tau: float) -> tuple[int, bool]:
    """Find the most accurate point whose held-out rate reaches ``tau``, else the fairest."""
    reached = held.rate >= tau
    if reached.any():
        return int(np.argmax(np.where(reached, held.points.accuracy, -np.inf))), True
    # Of equals, and of points without a rate, the one that is fairest where it was fitted.
    defined = np.where(np.isnan(held.rate), -np.inf, held.rate)
    return int(np.lexsort((held.points.rate, defined))[-1]) if len(defined) else -1, False


def choose(
    frontier: Frontier,
    held: HeldOut | None,
    rate: AnyRate,
    tau: float,
    *,
    certify: float | None = None,
) -> Choice:
    r"""Choose a point for τ.

    With ``certify``, the points in :func:`order_of_tests` are tested on the held-out rows: a point
    passes if its :func:`ratio_bound` reaches τ. At the first failure it ends, and the last that
    passed is taken. An error needs that a point passes whose ratio in the population is below τ.
    The first such point in line is fixed before the held-out rows are seen, no other passes unless
    it does, and it passes with probability δ at most: the number of tests costs nothing.

    Parameters
    ----------
    frontier : Frontier
        The points, with their figures on the rows fitted to.
    held : HeldOut, optional
        Points with their figures on other rows, from which to choose. Without it,
        :meth:`Frontier.select` chooses.
    rate : Rate
        The rate.
    tau : float
        The target.
    certify : float, optional
        δ: choose by certificates. Otherwise the most accurate point, on the rows fitted to, whose
        rate on the others reaches τ.

    Returns
    -------
    Choice
        Its point has ``feasible=False`` if there is none as asked for. It is the fairest then: the
        first that was tested, or without ``certify`` the one of the highest held-out rate; the last
        iterate if the frontier is empty.
    """
    if held is None:
        point = frontier.select(tau)
        return Choice(point, point.rate, point.accuracy)
    guarantee = None
    if certify is not None:
        i, guarantee = _certify(held, rate, tau, certify)
        feasible = guarantee.certified
    else:
        i, feasible = _reach(held, tau)
    if i < 0:
        accuracy = overall_accuracy(held.last)
        ratio = rate.ratio(held.last[: len(frontier.groups)])
        return Choice(frontier.last, float(ratio), float(accuracy), guarantee)
    point = _point(held.points, i, feasible)
    return Choice(point, float(held.rate[i]), float(held.accuracy[i]), guarantee)
