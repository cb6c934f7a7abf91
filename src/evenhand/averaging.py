r"""A randomised classifier: a few points of one frontier, each answering a share of the time.

With the probabilities q of the points, accuracy and rates of the mixture are means of the points'
own, if predictions do not change a rate's denominator. The best mixture for τ is the linear program

.. math:: \max_q\; \sum_i q_i\, a_i \quad\text{with}\quad
    \sum_i q_i\,(p_{ij} - \tau\, p_{il}) \ge 0 \ \text{for all groups } j \ne l,

with :math:`a_i` the accuracy of point i and :math:`p_{ij}` its rate in group j; of several rates
all have these constraints, m in all. :func:`mix` finds it as Agarwal et al. (2018) do, with the
frontier's points for classifiers: exponentiated-gradient multipliers

.. math:: \lambda_c = B\, \frac{e^{\theta_c}}{1 + \sum_{c'} e^{\theta_{c'}}}, \qquad
    i_t = \arg\max_i\; a_i + \sum_c \lambda_c\, g_{ic}, \qquad
    \theta_c \leftarrow \theta_c - \frac{\eta}{\sqrt t}\, g_{i_t c},

with :math:`g_{ic}` what point i has to spare in constraint c. Of the points that answered, a basic
solution needs m + 1 at most; points that its own multipliers call for are added until there are
none, which makes it exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog
from sklearn.utils import check_random_state

from evenhand.frontier import Point
from evenhand.inputs import is_dask
from evenhand.rates import AnyRate, overall_accuracy

__all__ = ["AveragedClassifier", "Mixture", "best_mixture", "check_linear", "mix", "to_spare"]

FloatArray = NDArray[Any]

# Multipliers are in units of accuracy for a rate: a whole one costs less than this.
BOUND, ROUNDS, SPEED = 10.0, 200, 20.0
# Probabilities below this, and misses of a constraint, are rounding.
ROUNDING = 1e-9


def check_linear(rate: AnyRate) -> None:
    """Refuse rates of which a mixture's is not the mean of its points' rates."""
    for part in rate.parts:
        if not part.fixed_denominator:
            raise ValueError(
                f"points cannot be averaged for the {part.name.replace('_', ' ')}: its denominator "
                "depends on the predictions, and a mixture's rate is no mean of its points' rates; "
                "use at(tau)."
            )


def to_spare(counts: FloatArray, rate: AnyRate, tau: float) -> FloatArray:
    r"""Give what each point has to spare in each constraint, :math:`p_j - \tau c\, p_l`.

    Parameters
    ----------
    counts : ndarray of shape (n_points, n_groups, n_labels, n_labels)
        Weight per group × label × prediction.
    rate : Rate or WorstRate
        The rate, or several with shares c of the target.
    tau : float
        The target.

    Returns
    -------
    ndarray of shape (n_points, n_rates · n_groups · (n_groups − 1))
        Negative where the constraint is missed; NaN where a rate is undefined.
    """
    shares = getattr(rate, "shares", ()) or (1.0,) * len(rate.parts)
    out = []
    for part, share in zip(rate.parts, shares, strict=True):
        p = part.per_group(counts)
        low, high = np.nonzero(~np.eye(p.shape[-1], dtype=bool))
        out.append(p[..., low] - tau * share * p[..., high])
    return np.concatenate(out, axis=-1)


def _answers(accuracy: FloatArray, spare: FloatArray) -> NDArray[np.intp]:
    """Points that are the best response to exponentiated-gradient multipliers at some time."""
    theta, found = np.zeros(spare.shape[1]), set()
    for t in range(1, ROUNDS + 1):
        top = max(float(theta.max()), 0.0)
        power = np.exp(theta - top)
        multipliers = BOUND * power / (np.exp(-top) + power.sum())
        i = int(np.argmax(accuracy + spare @ multipliers))
        found.add(i)
        theta = theta - SPEED / sqrt(t) * spare[i]
    return np.array(sorted(found))


def mix(accuracy: FloatArray, spare: FloatArray) -> FloatArray | None:
    """Find the probabilities of the most accurate mixture that meets every constraint.

    Parameters
    ----------
    accuracy : ndarray of shape (n_points,)
        Accuracy of each point.
    spare : ndarray of shape (n_points, n_constraints)
        What each has to spare in each constraint.

    Returns
    -------
    ndarray of shape (n_points,) or None
        Probabilities, at most ``n_constraints + 1`` of them positive; None if no mixture does.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.averaging import mix
    >>> mix(np.array([0.9, 0.7, 0.6]), np.array([[-0.1], [0.1], [0.2]])).round(3).tolist()
    [0.667, 0.0, 0.333]
    """
    offered = _answers(accuracy, spare)
    while True:
        found = linprog(
            -accuracy[offered],
            A_ub=-spare[offered].T,
            b_ub=np.zeros(spare.shape[1]),
            A_eq=np.ones((1, len(offered))),
            b_eq=[1.0],
            method="highs-ds",  # a simplex method: its solutions are basic
        )
        if found.status == 0:
            # A point that is worth more at these multipliers than the mixture would improve it.
            worth = accuracy - spare @ found.ineqlin.marginals + found.eqlin.marginals[0]
            more = np.setdiff1d(np.flatnonzero(worth > ROUNDING), offered)
            more = more[np.argsort(-worth[more])[:1]]
        elif len(offered) == len(accuracy):
            return None
        else:
            more = np.setdiff1d(np.arange(len(accuracy)), offered)
        if not len(more):
            break
        offered = np.append(offered, more)
    q = np.zeros(len(accuracy))
    q[offered] = np.where(found.x > ROUNDING, found.x, 0.0)
    return q / q.sum()


class Mixture(NamedTuple):
    """Points by number, their probabilities, and the mixture's expected figures."""

    points: NDArray[np.intp]
    weights: FloatArray
    rate: float
    accuracy: float


def best_mixture(counts: FloatArray, n_groups: int, rate: AnyRate, tau: float) -> Mixture | None:
    """Mix points for τ by their counts, of which the first ``n_groups`` are compared.

    None if no mixture reaches τ. Points without a rate are left out.
    """
    spare = to_spare(counts[:, :n_groups], rate, tau)
    usable = np.flatnonzero(np.isfinite(spare).all(axis=1))
    if not len(usable):
        return None
    right = overall_accuracy(counts)
    q = mix(right[usable], spare[usable])
    if q is None:
        return None
    index, weights = usable[q > 0], q[q > 0]
    mean = np.tensordot(weights, counts[index], axes=1)
    figures = rate.ratio(mean[:n_groups]), overall_accuracy(mean)
    return Mixture(index, weights, *map(float, figures))


class AveragedClassifier:
    r"""A mixture of a few points of one fit: for each row one of them is drawn, and it answers.

    **Two equal rows may get different answers, and so may one row that is asked about twice.**
    Where that cannot be defended, ``FairClassifier.at`` gives one point for all. What a mixture
    gives in return is the most accuracy for τ that the frontier's points have together on the rows
    they were chosen on.

    Made by ``FairClassifier.averaged``; :func:`evenhand.averaging.mix` finds the mixture.

    Parameters
    ----------
    estimators : sequence of FairClassifier
        A fitted classifier for each point.
    weights : array-like of shape (n_points,)
        Probability of each.
    tau : float
        The target.
    rate, accuracy : float
        The mixture's expected figures.
    random_state : int, RandomState or None, default=None
        Seed of the draws. An integer gives the same draws at each call, for rows in the same order.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        The labels in sorted order.
    estimators_ : list of FairClassifier
        The classifiers that are drawn from.
    points_ : list of Point
        Their points on the frontier, m + 1 at most of m constraints.
    weights_ : ndarray of shape (n_points,)
        Probability of each.
    rate_, accuracy_ : float
        Expected ratio of the groups' rates, and expected accuracy, on the rows the mixture was
        chosen on.
    feasible_ : bool
        Whether ``rate_`` reaches τ, up to rounding.

    Examples
    --------
    >>> from evenhand import FairClassifier
    >>> from evenhand.datasets import encoded_split, load_adult
    >>> X, X_test, y, y_test, z, z_test = encoded_split(load_adult(), random_state=0)
    >>> model = FairClassifier(tau=0.9, random_state=0).fit(X, y, sensitive_features=z)
    >>> mixed = model.averaged()
    >>> len(mixed.points_), round(mixed.rate_, 6), bool(mixed.accuracy_ >= model.accuracy_)
    (2, 0.9, True)
    """

    def __init__(
        self,
        estimators: Sequence[Any],
        weights: Any,
        tau: float,
        rate: float,
        accuracy: float,
        random_state: Any = None,
    ) -> None:
        self.estimators_, self.tau, self.random_state = list(estimators), tau, random_state
        self.weights_ = np.asarray(weights, dtype=np.float64)
        self.classes_ = self.estimators_[0].classes_
        self.points_: list[Point] = [model.point_ for model in self.estimators_]
        self.rate_, self.accuracy_ = rate, accuracy
        self.feasible_ = rate >= tau - ROUNDING

    def _answers(self, X: Any, sensitive_features: Any) -> NDArray[np.intp]:
        """Every point's answer to each row as a number of ``classes_``."""
        every = [m.predict(X, sensitive_features=sensitive_features) for m in self.estimators_]
        return np.searchsorted(self.classes_, np.column_stack(every))

    def _on_dask(self, method: str, X: Any, sensitive_features: Any, n: int, dtype: Any) -> Any:
        """Have n numbers for each row of a Dask collection, as an array still to compute."""
        from evenhand.engines._dask import on_partitions

        groups = self.estimators_[0]._dask_groups(sensitive_features)
        return on_partitions(self, method, X, groups, shape=(n,), dtype=dtype)

    def _pick(self, answers: NDArray[np.intp], numbers: FloatArray) -> NDArray[Any]:
        """Label of each row by the point that a number from 0 to 1 draws."""
        ends = np.cumsum(self.weights_)
        drawn = np.searchsorted(ends / ends[-1], numbers, side="right")
        return self.classes_[answers[np.arange(len(answers)), drawn]]

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predicted label of each row, by a point drawn for it.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like, optional
            Group of each row; needed with ``group_cuts``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``. Of Dask collections an array that is still to compute; its draws
            depend on the rows' numbers, not on their partitions.
        """
        random = check_random_state(self.random_state)
        if is_dask(X):
            from evenhand.engines._dask import drawn

            answers = self._on_dask("_answers", X, sensitive_features, len(self.weights_), np.intp)
            seed = int(random.randint(2**31 - 1))
            return drawn(self._pick, answers, seed, self.classes_.dtype)
        answers = self._answers(X, sensitive_features)
        return self._pick(answers, random.random_sample(len(answers)))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Probability with which :meth:`predict` gives each label; not that of the label itself.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Inputs.
        sensitive_features : array-like, optional
            Group of each row; needed with ``group_cuts``.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        if is_dask(X):
            n_classes = len(self.classes_)
            return self._on_dask("predict_proba", X, sensitive_features, n_classes, np.float64)
        answers = self._answers(X, sensitive_features)
        share = [(answers == c) @ self.weights_ for c in range(len(self.classes_))]
        return np.minimum(np.column_stack(share), 1.0)

    def __repr__(self) -> str:
        shares = ", ".join(f"{w:.3g}" for w in self.weights_)
        return f"AveragedClassifier(tau={self.tau}, weights_=[{shares}])"
