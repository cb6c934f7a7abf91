"""Baselines of a comparison: accuracy alone, fairness alone, a constant, and simple remedies."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from evenhand._sklearn import Interval, StrOptions
from evenhand.core.errors import InputError
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import Rate
from evenhand.core.solvers import SOLVERS, minimize_loss
from evenhand.core.targets import Target
from evenhand.core.updates import normal, power_schedule
from evenhand.engines.memory import make_oracle
from evenhand.models.inputs import CodedRows
from evenhand.models.settings import FitWarning, warn
from evenhand.peers._base import (
    CONSTRAINTS,
    SINGLE_RATES,
    BoolArray,
    FloatArray,
    GroupPeer,
    LinearPeer,
    Peer,
    TargetPeer,
    logistic_regression,
    one_thread,
    share_within,
)
from evenhand.peers._docs import peer_docs

# Scores closer than this, relative to the largest, are the same score.
RESOLUTION = 1e-9


def _fit_logistic(rows: CodedRows, weight: Any, l2: float) -> FloatArray:
    """Weights of plain logistic regression, the intercept last."""
    n_features = rows.X.shape[1]
    total = float(len(rows.y) if weight is None else weight.sum())
    model = logistic_regression(l2, total, n_features)
    with one_thread(n_features):
        model.fit(rows.X, rows.y, sample_weight=weight)
    return np.append(model.coef_[0], model.intercept_)


@dataclass(eq=False, repr=False)
@peer_docs
class AccuracyOnly(LinearPeer):
    r"""Plain logistic regression: fairness is not looked at, groups are checked and not used.

    .. math:: \min_w \text{log-loss}(\sigma(w^\top \hat x), y) + \tfrac{\lambda}{2}\|w\|^2

    Parameters
    ----------
    l2
    """

    many_groups = True

    _: KW_ONLY
    l2: float = 1e-4

    def _fit(self, rows: CodedRows) -> None:
        self._set_weights(_fit_logistic(rows, rows.weight, self.l2))


@dataclass(eq=False, repr=False)
@peer_docs
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "notion": [StrOptions(set(NOTIONS))],
        "mu": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions({"agd", "gd"})],
        "max_iter": [Interval(Integral, 0, None, closed="left")],
    }

    notion: str = "statistical_parity"
    _: KW_ONLY
    l2: float = 1e-4
    mu: float = 10.0
    solver: str = "agd"
    max_iter: int = 500

    def _fit(self, rows: CodedRows) -> None:
        oracle = make_oracle(
            rows.X,
            rows.y,
            rows.z,
            notion=NOTIONS[self.notion](2),
            mu=self.mu,
            l2=self.l2,
            sample_weight=rows.weight,
        )
        start = np.zeros(oracle.n_weights)
        w, _ = minimize_loss(oracle, start, max_iter=200, callback=lambda iteration: None)
        iterations = SOLVERS[self.solver].run(
            oracle,
            w,
            rule=lambda grad_c, grad_f, alpha: normal(0 * grad_c, grad_f, 1.0),
            schedule=power_schedule(1.0, 0.0),
            max_iter=self.max_iter,
        )
        self.n_iter_ = 0
        for iteration in iterations:
            w, self.n_iter_ = iteration.q, iteration.t
        if self.n_iter_ < self.max_iter:
            warn(FitWarning("ascent_diverged", step=self.n_iter_ + 1))
        self._set_weights(w)


class ConstantClassifier(Peer):
    """The more frequent label for everybody, with the labels' shares as probabilities.

    Inputs and groups are checked and not used.

    Attributes
    ----------
    share_ : float
        Share of ``classes_[1]``; its label is predicted if it is more than one half.
    """

    many_groups = True

    def _fit(self, rows: CodedRows) -> None:
        self.share_ = float(np.average(rows.y, weights=rows.weight))

    def _positive(self, X: FloatArray) -> FloatArray:
        return np.full(len(X), self.share_)


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


def best_pair(a: Curve, b: Curve, target: Target) -> tuple[int, int, bool]:
    r"""Cuts of two groups with the best accuracy whose ratio of rates reaches the target τ.

    The ratio is at least τ where :math:`\tau r_a \le r_b \le r_a / \tau`. With the cuts of b sorted
    by their rate these are a range for every cut of a, and a range maximum finds the most accurate:
    all pairs are searched in :math:`O(n \log n)`. If no pair reaches τ, the one with the highest
    ratio and False.
    """
    (rate,), tau = target.rate.components, target.level
    rate_a, rate_b = rate.per_group(a.counts), rate.per_group(b.counts)
    order = np.argsort(rate_b, kind="stable")
    sorted_b = rate_b[order]
    right_a, right_b = (c.counts[:, 0, 0] + c.counts[:, 1, 1] for c in (a, b))
    # A ratio of exactly τ may be a rounding below it.
    start = np.searchsorted(sorted_b, tau * rate_a * (1 - 1e-12), side="left")
    stop = np.searchsorted(sorted_b, rate_a / tau * (1 + 1e-12), side="right")
    paired = np.flatnonzero(stop > start)
    if len(paired):
        partner = order[_range_argmax(right_b[order], start[paired], stop[paired])]
        best = int(np.argmax(right_a[paired] + right_b[partner]))
        return int(paired[best]), int(partner[best]), True
    near = np.searchsorted(sorted_b, rate_a)
    i = np.concatenate([np.arange(len(rate_a))] * 2)
    j = order[np.clip(np.concatenate([near - 1, near]), 0, len(order) - 1)]
    best = int(np.argmax(target.value(np.stack([a.counts[i], b.counts[j]], axis=1))))
    return int(i[best]), int(j[best]), False


@dataclass(eq=False, repr=False)
@peer_docs
class GroupThresholds(TargetPeer, GroupPeer):
    r"""Logistic regression with one cut for each group, which must be known to predict.

    .. math:: \hat y = [\,w^\top \hat x > c_z\,], \qquad
        \max_{c_0, c_1} \text{accuracy} \quad\text{such that}\quad
        \min(r_0, r_1) / \max(r_0, r_1) \ge \tau,

    accuracy and rates counted on the training data. All pairs of cuts between distinct scores are
    searched, whatever the rate.

    Parameters
    ----------
    notion, tau, l2, min_share

    Attributes
    ----------
    cuts_ : ndarray of shape (2,)
        Cut of each group's scores, in the order of ``groups_``.
    rate_, accuracy_, feasible_

    References
    ----------
    M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NIPS 2016.
    """

    needs_group = True

    notion: str = "statistical_parity"
    _: KW_ONLY
    tau: float = 0.8
    l2: float = 1e-4
    min_share: float = 0.01

    def _train(self, rows: CodedRows) -> None:
        rate = SINGLE_RATES[self.notion]
        weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        w = _fit_logistic(rows, rows.weight, self.l2)
        self.coef_, self.intercept_ = w[None, :-1], w[-1:]
        score = rows.X @ self.coef_[0] + self.intercept_[0]
        self._curves = []
        for j in (0, 1):
            group = rows.z == j
            curve = group_curve(score[group], rows.y[group], weight[group])
            self._curves.append(_eligible(curve, rate, self.min_share))
            if not len(self._curves[j].cut):
                raise InputError(
                    "no_group_cut",
                    group=self.groups_.tolist()[j],
                    least=self.min_share,
                    rate=rate.name.replace("_", " "),
                )

    def _choose(self) -> None:
        a, b = self._curves
        i, j, self.feasible_ = best_pair(a, b, self._target)
        counts = np.stack([a.counts[i], b.counts[j]])
        self.cuts_ = np.array([a.cut[i], b.cut[j]])
        self.rate_ = float(self._target.value(counts))
        self.accuracy_ = float((counts[:, 0, 0] + counts[:, 1, 1]).sum() / counts.sum())

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Score of each row less its group's cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        return self._score(*self._check_with_groups(X, sensitive_features))

    def _score(self, X: FloatArray, z: Any) -> FloatArray:
        return np.asarray(X @ self.coef_[0] + self.intercept_[0] - self.cuts_[z])

    def _positive(self, X: FloatArray, z: Any = None) -> FloatArray:
        return expit(self._score(X, z))

    def _answer(self, X: FloatArray, z: Any = None) -> BoolArray:
        return self._score(X, z) > 0


@dataclass(eq=False, repr=False)
@peer_docs
class Reweighing(LinearPeer):
    r"""Logistic regression on rows weighted so that label and group are independent.

    .. math:: \omega(z, y) = \frac{P(z)\,P(y)}{P(z, y)}

    With ``sample_weight``, probabilities are weighted by it, and ω multiplies it.

    Parameters
    ----------
    l2

    Attributes
    ----------
    weights_ : ndarray of shape (n_groups, 2)
        ω of each group × label; NaN for a cell without rows.

    References
    ----------
    F. Kamiran, T. Calders, "Data preprocessing techniques for classification without
    discrimination", Knowledge and Information Systems 33, 2012.
    """

    many_groups = True

    _: KW_ONLY
    l2: float = 1e-4

    def _fit(self, rows: CodedRows) -> None:
        cell = rows.z * 2 + rows.y
        shape = (len(self.groups_), 2)
        joint = np.bincount(cell, weights=rows.weight, minlength=2 * shape[0]).reshape(shape)
        joint = joint / joint.sum()
        product = np.outer(joint.sum(axis=1), joint.sum(axis=0))
        empty = np.full(shape, np.nan)
        self.weights_ = np.divide(product, joint, out=empty, where=joint > 0)
        weight = self.weights_.ravel()[cell]
        if rows.weight is not None:
            weight = weight * rows.weight
        self._set_weights(_fit_logistic(rows, weight, self.l2))
