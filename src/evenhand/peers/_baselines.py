"""What a comparison needs beside the methods: the ends of the scale and simple remedies."""

from __future__ import annotations

import warnings
from contextlib import nullcontext
from copy import copy
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted
from threadpoolctl import threadpool_limits

from evenhand.classifier import FairnessWarning
from evenhand.inputs import CodedRows
from evenhand.notions import NOTIONS
from evenhand.oracle import Oracle
from evenhand.peers._base import LinearPeer, Peer
from evenhand.rates import RATES, Rate, as_series, check_missing
from evenhand.solvers import SOLVERS, Iteration, minimize_loss, solve
from evenhand.updates import power_schedule

__all__ = [
    "AccuracyOnly",
    "ConstantClassifier",
    "FairnessOnly",
    "GroupThresholds",
    "Reweighing",
]

FloatArray = NDArray[np.float64]

ALIASES = {
    "statistical_parity": "selection_rate",
    "demographic_parity": "selection_rate",
    "false_discovery": "false_discovery_rate",
    "equal_opportunity": "true_positive_rate",
}
# Newton's method by Cholesky takes half the time of L-BFGS on Adult's 85 columns; its cost grows
# with the cube of their number.
NEWTON_COLUMNS = 500
# Scores closer than this, relative to the largest, are the same score.
RESOLUTION = 1e-9


def find_rate(notion: Any) -> Rate:
    """Give the rate that a notion compares between groups."""
    name = ALIASES.get(notion, notion)
    if name not in RATES:
        known = ", ".join(map(repr, [*ALIASES, *RATES]))
        raise ValueError(f"notion={notion!r}; use one of {known}.")
    return RATES[name]


def check_tau(tau: Any) -> None:
    """Refuse a target that is no ratio."""
    if not 0 < tau <= 1:
        raise ValueError(f"tau={tau!r} must be in (0, 1].")


def check_min_share(min_share: Any) -> None:
    """Refuse a least share that leaves nothing."""
    if not 0 <= min_share < 0.5:
        raise ValueError(f"min_share={min_share!r} must be in [0, 0.5).")


def share_within(counts: FloatArray, min_share: float) -> NDArray[np.bool_]:
    """Whether shares of predicted positives are between ``min_share`` and its complement."""
    share = RATES["selection_rate"].per_group(counts)
    # The tolerance lets 1% of 100 rows be 1 row.
    return np.asarray((share >= min_share - 1e-12) & (share <= 1 - min_share + 1e-12))


def logistic_regression(l2: float, total: float, n_features: int) -> LogisticRegression:
    r"""Logistic regression with the loss of ``FairClassifier``: mean log-loss + λ/2 ‖w‖².

    ``total`` is the rows' total weight.
    """
    if not 0 <= l2 < np.inf:
        raise ValueError(f"l2={l2!r} must be at least 0.")
    solver = "newton-cholesky" if n_features <= NEWTON_COLUMNS else "lbfgs"
    return LogisticRegression(C=1 / (max(l2, 1e-12) * total), solver=solver, max_iter=1000)


def one_thread(n_features: int) -> Any:
    """Keep linear algebra in one thread while a table of few columns is fitted.

    Its products are too small to share: where the cores have other work, the threads that wait for
    one another take several times as long as one alone.
    """
    return threadpool_limits(1) if n_features <= NEWTON_COLUMNS else nullcontext()


def code_known_groups(
    peer: Any, groups: NDArray[Any], sensitive_features: Any, n_rows: int
) -> NDArray[np.intp]:
    """Index of each row's group among those seen in ``fit``."""
    name = type(peer).__name__
    if sensitive_features is None:
        raise ValueError(
            f"{name} needs the group of each row to predict: pass sensitive_features=..."
        )
    values = as_series(sensitive_features, "sensitive_features")
    check_missing(values, "sensitive_features", "a group is never guessed")
    if len(values) != n_rows:
        raise ValueError(
            f"sensitive_features has {len(values)} rows, X has {n_rows}; they must be the same "
            "rows."
        )
    index = {group: i for i, group in enumerate(groups.tolist())}
    codes = values.map(index)
    if codes.isna().any():
        unknown = values[codes.isna()].tolist()[0]
        raise ValueError(
            f"sensitive_features has the group {unknown!r}, which fit did not see; it saw "
            f"{', '.join(map(repr, index))}."
        )
    return codes.to_numpy(dtype=np.intp)


def warn_unreached(peer: Any, tau: float, rate: float, stacklevel: int) -> None:
    """Say that a target was not reached."""
    warnings.warn(
        f"tau={tau} was not reached on the training data for {peer.notion}: the highest rate found "
        f"is {rate:.6g}. The classifier is kept with feasible_=False.",
        FairnessWarning,
        stacklevel=stacklevel + 1,
    )


def _fit_logistic(rows: CodedRows, weight: Any, l2: float) -> FloatArray:
    """Weights of plain logistic regression, the intercept last."""
    n_features = rows.X.shape[1]
    total = float(len(rows.y) if weight is None else weight.sum())
    model = logistic_regression(l2, total, n_features)
    with one_thread(n_features):
        model.fit(rows.X, rows.y, sample_weight=weight)
    return np.append(model.coef_[0], model.intercept_)


class AccuracyOnly(LinearPeer):
    r"""Plain logistic regression: fairness is not looked at.

    .. math:: \min_w \text{log-loss}(\sigma(w^\top \hat x), y) + \tfrac{\lambda}{2}\|w\|^2

    Parameters
    ----------
    l2 : float, default=1e-4
        Ridge λ, on all weights but the intercept, as in ``FairClassifier``.
    """

    def __init__(self, *, l2: float = 1e-4) -> None:
        self.l2 = l2

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> AccuracyOnly:
        """Fit; the groups are checked and not used.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        AccuracyOnly
            The fitted estimator.
        """
        rows = self._code(X, y, sensitive_features, sample_weight)
        self._set_weights(_fit_logistic(rows, rows.weight, self.l2))
        return self


class FairnessOnly(LinearPeer):
    r"""A hyperplane that follows the fairness objective alone.

    From the optimum of plain logistic regression, the ascent of ``FairClassifier``'s

    .. math:: L_w = \text{log-loss}(\sigma(u^\top\varphi), z) - \tfrac{\kappa}{2} D(w)^2

    with the classification loss left out of every step: :math:`d = -g_F`. The answer is the last
    iterate. Its accuracy is whatever it happens to be, and so are its answers: to call everybody
    positive is fair, too.

    Parameters
    ----------
    notion : {"statistical_parity", "false_discovery"}
        What is to be equal between the groups.
    l2 : float, default=1e-4
        Ridge λ of the logistic regression at the start.
    mu : float, default=10.0
        Strength of the regulariser, as in ``FairClassifier``.
    solver : {"agd", "gd"}, default="agd"
        Accelerated or plain descent; the latter stays nearer to where it started.
    max_iter : int, default=500
        Steps.

    Attributes
    ----------
    n_iter_ : int
        Steps taken.
    """

    def __init__(
        self,
        notion: str = "statistical_parity",
        *,
        l2: float = 1e-4,
        mu: float = 10.0,
        solver: str = "agd",
        max_iter: int = 500,
    ) -> None:
        self.notion = notion
        self.l2 = l2
        self.mu = mu
        self.solver = solver
        self.max_iter = max_iter

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairnessOnly:
        """Fit.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        FairnessOnly
            The fitted estimator.
        """
        if self.notion not in NOTIONS:
            raise ValueError(f"notion={self.notion!r}; use one of {', '.join(map(repr, NOTIONS))}.")
        if self.solver not in ("agd", "gd"):
            raise ValueError(f"solver={self.solver!r}; use 'agd' or 'gd'.")
        rows = self._code(X, y, sensitive_features, sample_weight)
        oracle = Oracle(
            rows.X,
            rows.y,
            rows.z,
            notion=NOTIONS[self.notion](2),
            mu=self.mu,
            l2=self.l2,
            sample_weight=rows.weight,
        )

        def ignore(iteration: Iteration) -> None:
            pass

        w = minimize_loss(oracle, np.zeros(oracle.n_weights), max_iter=200, callback=ignore)[0]
        iterations = solve(
            oracle,
            w,
            solver=SOLVERS[self.solver](),
            rule=lambda grad_c, grad_f, alpha: -grad_f,
            schedule=power_schedule(1.0, 0.0),
            max_iter=self.max_iter,
        )
        self.n_iter_ = 0
        for iteration in iterations:
            w, self.n_iter_ = iteration.q, iteration.t
        if self.n_iter_ < self.max_iter:
            warnings.warn(
                f"the run diverged at step {self.n_iter_ + 1}; the weights before it are used.",
                ConvergenceWarning,
                stacklevel=2,
            )
        self._set_weights(w)
        return self


class ConstantClassifier(Peer):
    """The more frequent label for everybody, with the labels' shares as probabilities.

    Attributes
    ----------
    share_ : float
        Share of ``classes_[1]``; its label is predicted if it is more than one half.
    """

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> ConstantClassifier:
        """Count the labels.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs, checked and not used.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        ConstantClassifier
            The fitted estimator.
        """
        rows = self._code(X, y, sensitive_features, sample_weight)
        self.share_ = float(np.average(rows.y, weights=rows.weight))
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Share of each label in the training data, for every row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        X = self._check(X)
        return np.tile([1 - self.share_, self.share_], (len(X), 1))


class Curve(NamedTuple):
    """All cuts of one group's scores: a row is positive if its score exceeds the cut."""

    cut: FloatArray
    counts: FloatArray
    """Weight per label × prediction, shape (n_cuts, 2, 2)."""


def group_curve(score: FloatArray, y: NDArray[np.intp], weight: FloatArray) -> Curve:
    """Count at every cut between distinct scores, one above them all and one below."""
    order = np.argsort(score)
    s, y, weight = score[order], y[order], weight[order]
    gap = RESOLUTION * max(float(np.abs(s).max()), 1.0)
    ends = np.flatnonzero(np.diff(s) > gap) + 1
    cut = np.concatenate([[s[0] - 1], (s[ends - 1] + s[ends]) / 2, [s[-1] + 1]])
    below = np.concatenate([[0], ends, [len(s)]])
    counts = np.empty((len(cut), 2, 2))
    for label in (0, 1):
        running = np.concatenate([[0.0], np.cumsum(weight * (y == label))])
        counts[:, label, 0] = running[below]
        counts[:, label, 1] = running[-1] - running[below]
    return Curve(cut, counts)


def _eligible(curve: Curve, rate: Rate, min_share: float) -> Curve:
    """Keep the cuts that can be part of an answer."""
    value = rate.per_group(curve.counts)
    ok = share_within(curve.counts, min_share) & np.isfinite(value)
    if not rate.is_error:
        ok &= value > 0  # two zeros have no ratio
    return Curve(curve.cut[ok], curve.counts[ok])


def _range_argmax(values: FloatArray, start: Any, stop: Any) -> NDArray[np.intp]:
    """Find the largest of ``values[start:stop]`` for many non-empty ranges, by a sparse table."""
    table = [np.arange(len(values))]
    while 2 ** len(table) <= len(values):
        half = 2 ** (len(table) - 1)
        a, b = table[-1][:-half], table[-1][half:]
        table.append(np.where(values[a] >= values[b], a, b))
    level = np.log2(stop - start).astype(int)
    out = np.empty(len(start), dtype=np.intp)
    for k in np.unique(level):
        at = level == k
        a, b = table[k][start[at]], table[k][stop[at] - 2**k]
        out[at] = np.where(values[a] >= values[b], a, b)
    return out


def best_pair(a: Curve, b: Curve, rate: Rate, tau: float) -> tuple[int, int, bool]:
    r"""Cuts of two groups with the best accuracy whose rates have a ratio of at least τ.

    The ratio is at least τ where :math:`\tau r_a \le r_b \le r_a / \tau`. With the cuts of b sorted
    by their rate these are a range for every cut of a, and a range maximum finds the most accurate:
    all pairs are searched in :math:`O(n \log n)`. If no pair reaches τ, the one with the highest
    ratio and False.
    """
    rate_a, rate_b = rate.per_group(a.counts), rate.per_group(b.counts)
    order = np.argsort(rate_b, kind="stable")
    sorted_b = rate_b[order]
    right_a, right_b = (c.counts[:, 0, 0] + c.counts[:, 1, 1] for c in (a, b))
    # A ratio of exactly τ may be a rounding below it.
    start = np.searchsorted(sorted_b, tau * rate_a * (1 - 1e-12), side="left")
    stop = np.searchsorted(sorted_b, rate_a / tau * (1 + 1e-12), side="right")
    found = np.flatnonzero(stop > start)
    if len(found):
        partner = order[_range_argmax(right_b[order], start[found], stop[found])]
        best = int(np.argmax(right_a[found] + right_b[partner]))
        return int(found[best]), int(partner[best]), True
    near = np.searchsorted(sorted_b, rate_a)
    i = np.concatenate([np.arange(len(rate_a))] * 2)
    j = order[np.clip(np.concatenate([near - 1, near]), 0, len(order) - 1)]
    ratio = rate.ratio(np.stack([a.counts[i], b.counts[j]], axis=1))
    best = int(np.argmax(ratio))
    return int(i[best]), int(j[best]), False


class GroupThresholds(Peer):
    r"""Logistic regression with one cut for each group, which must be known to predict.

    .. math:: \hat y = [\,w^\top \hat x > c_z\,], \qquad
        \max_{c_0, c_1} \text{accuracy} \quad\text{such that}\quad
        \min(r_0, r_1) / \max(r_0, r_1) \ge \tau,

    accuracy and rates counted on the training data. All pairs of cuts between distinct scores are
    searched, whatever the rate.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        ``"statistical_parity"``, ``"false_discovery"``, ``"equal_opportunity"`` or any name in
        :data:`evenhand.rates.RATES`.
    tau : float, default=0.8
        Least ratio of the rate between the groups.
    l2 : float, default=1e-4
        Ridge λ, as in ``FairClassifier``.
    min_share : float, default=0.01
        Least share of predicted positives and of predicted negatives in each group.

    Attributes
    ----------
    cuts_ : ndarray of shape (2,)
        Cut of each group's scores, in the order of ``groups_``.
    rate_, accuracy_ : float
        Ratio and accuracy on the training data.
    feasible_ : bool
        Whether τ was reached there.

    References
    ----------
    M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NIPS 2016.
    """

    needs_group = True

    def __init__(
        self,
        notion: str = "statistical_parity",
        *,
        tau: float = 0.8,
        l2: float = 1e-4,
        min_share: float = 0.01,
    ) -> None:
        self.notion = notion
        self.tau = tau
        self.l2 = l2
        self.min_share = min_share

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> GroupThresholds:
        """Fit the regression and find the cuts.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        GroupThresholds
            The fitted estimator.
        """
        rate = find_rate(self.notion)
        check_tau(self.tau)
        check_min_share(self.min_share)
        rows = self._code(X, y, sensitive_features, sample_weight)
        n = len(rows.y)
        weight = np.ones(n) if rows.weight is None else rows.weight
        w = _fit_logistic(rows, rows.weight, self.l2)
        self.coef_, self.intercept_ = w[None, :-1], w[-1:]
        score = rows.X @ self.coef_[0] + self.intercept_[0]
        self._curves = []
        for j in (0, 1):
            of = rows.z == j
            curve = group_curve(score[of], rows.y[of], weight[of])
            self._curves.append(_eligible(curve, rate, self.min_share))
            if not len(self._curves[j].cut):
                raise ValueError(
                    f"no cut on the scores of group {self.groups_.tolist()[j]!r} leaves "
                    f"{self.min_share:.0%} positives and negatives and a defined "
                    f"{rate.name.replace('_', ' ')}."
                )
        return self._choose(stacklevel=2)

    def _choose(self, stacklevel: int) -> GroupThresholds:
        """Take the best cuts for ``tau``."""
        rate = find_rate(self.notion)
        a, b = self._curves
        i, j, self.feasible_ = best_pair(a, b, rate, self.tau)
        counts = np.stack([a.counts[i], b.counts[j]])
        self.cuts_ = np.array([a.cut[i], b.cut[j]])
        self.rate_ = float(rate.ratio(counts))
        self.accuracy_ = float((counts[:, 0, 0] + counts[:, 1, 1]).sum() / counts.sum())
        if not self.feasible_:
            warn_unreached(self, self.tau, self.rate_, stacklevel + 1)
        return self

    def at(self, tau: float) -> GroupThresholds:
        """Give the same regression with the cuts of another target, without training.

        Parameters
        ----------
        tau : float
            The new target, in (0, 1].

        Returns
        -------
        GroupThresholds
            A fitted classifier; this one stays as it is.
        """
        check_is_fitted(self)
        check_tau(tau)
        other = copy(self)
        other.tau = tau
        return other._choose(stacklevel=2)

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Score of each row less its group's cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        X = self._check(X)
        z = code_known_groups(self, self.groups_, sensitive_features, len(X))
        return np.asarray(X @ self.coef_[0] + self.intercept_[0] - self.cuts_[z])

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        score = self.decision_function(X, sensitive_features=sensitive_features)
        return self.classes_[(score > 0).astype(np.intp)]

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Sigmoid of the score less the group's cut.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X, sensitive_features=sensitive_features))
        return np.column_stack([1 - positive, positive])


class Reweighing(LinearPeer):
    r"""Logistic regression on rows weighted so that label and group are independent.

    .. math:: \omega(z, y) = \frac{P(z)\,P(y)}{P(z, y)}

    Parameters
    ----------
    l2 : float, default=1e-4
        Ridge λ, as in ``FairClassifier``.

    Attributes
    ----------
    weights_ : ndarray of shape (2, 2)
        ω of each group × label; NaN for a cell without rows.

    References
    ----------
    F. Kamiran, T. Calders, "Data preprocessing techniques for classification without
    discrimination", Knowledge and Information Systems 33, 2012.
    """

    def __init__(self, *, l2: float = 1e-4) -> None:
        self.l2 = l2

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Reweighing:
        """Find the weights and fit with them.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights; probabilities are weighted by them, and ω multiplies them.

        Returns
        -------
        Reweighing
            The fitted estimator.
        """
        rows = self._code(X, y, sensitive_features, sample_weight)
        cell = rows.z * 2 + rows.y
        joint = np.bincount(cell, weights=rows.weight, minlength=4).reshape(2, 2)
        joint = joint / joint.sum()
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        empty = np.full((2, 2), np.nan)
        self.weights_ = np.divide(product, joint, out=empty, where=joint > 0)
        weight = self.weights_.ravel()[cell]
        if rows.weight is not None:
            weight = weight * rows.weight
        self._set_weights(_fit_logistic(rows, weight, self.l2))
        return self
