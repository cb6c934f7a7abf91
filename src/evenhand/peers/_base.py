"""What the peers share: how rows come in, how answers go out, targets, and documentation.

:class:`Peer` has the public methods and their documentation; a peer fills in the hooks.
"""

from abc import ABC, abstractmethod
from contextlib import nullcontext
from copy import copy
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, validate_data
from threadpoolctl import threadpool_limits

from evenhand._sklearn import ChecksParameters, HasMethods, Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import RATES, Rate
from evenhand.core.targets import Target
from evenhand.models.inputs import (
    CodedRows,
    check_labels,
    check_sizes,
    code_known_groups,
    code_rows,
)
from evenhand.models.settings import FairnessWarning, warn
from evenhand.peers._docs import peer_docs

FloatArray = NDArray[np.float64]
BoolArray = NDArray[np.bool_]

ALIASES = {"demographic_parity": "statistical_parity"}
# Rates that groups can share, by the name of a notion; a notion of several rates has none.
_NOTION_RATES = {name: make(2).rate for name, make in NOTIONS.items()} | RATES
SINGLE_RATES: dict[str, Rate] = {
    name: rate for name, rate in _NOTION_RATES.items() if isinstance(rate, Rate)
}
SINGLE_RATES |= {alias: SINGLE_RATES[name] for alias, name in ALIASES.items()}
# What parameters that several peers have may be; a peer adds its own.
CONSTRAINTS: dict[str, list[Any]] = {
    "notion": [StrOptions(set(SINGLE_RATES))],
    "tau": [Interval(Real, 0, 1, closed="right")],
    "min_share": [Interval(Real, 0, 0.5, closed="left")],
    "l2": [Interval(Real, 0, None, closed="left")],
    "relative": ["boolean"],
    "covariance_bound": [Interval(Real, 0, None, closed="left")],
    "estimator": [HasMethods(["fit", "predict"]), None],
    "random_state": ["random_state"],
}
# Newton's method by Cholesky takes half the time of L-BFGS on Adult's 85 columns; its cost grows
# with the cube of their number.
NEWTON_COLUMNS = 500


def best_for(target: Target, accuracy: Any, values: Any) -> tuple[int, bool]:
    """Find the most accurate answer whose value reaches the target, else the one of highest value.

    The second value says whether the target is reached; an undefined value never reaches it.
    """
    reached = np.array([target.reached(value) for value in values])
    merit = np.where(reached, accuracy, -1.0) if reached.any() else np.nan_to_num(values, nan=-1.0)
    return int(np.argmax(merit)), bool(reached.any())


def share_within(counts: FloatArray, min_share: float) -> BoolArray:
    """Whether shares of predicted positives are between ``min_share`` and its complement."""
    share = RATES["selection_rate"].per_group(counts)
    # The tolerance lets 1% of 100 rows be 1 row.
    return np.asarray((share >= min_share - 1e-12) & (share <= 1 - min_share + 1e-12))


def logistic_regression(l2: float, total: float, n_features: int) -> LogisticRegression:
    r"""Logistic regression with the loss of ``FairClassifier``: mean log-loss + λ/2 ‖w‖².

    ``total`` is the rows' total weight.
    """
    solver = "newton-cholesky" if n_features <= NEWTON_COLUMNS else "lbfgs"
    return LogisticRegression(C=1 / (max(l2, 1e-12) * total), solver=solver, max_iter=1000)


def one_thread(n_features: int) -> Any:
    """Keep linear algebra in one thread while a table of few columns is fitted.

    Its products are too small to share: where the cores have other work, the threads that wait for
    one another take several times as long as one alone.
    """
    return threadpool_limits(1) if n_features <= NEWTON_COLUMNS else nullcontext()


def _two_columns(positive: FloatArray) -> FloatArray:
    return np.column_stack([1 - positive, positive])


@peer_docs
class Peer(ChecksParameters, ClassifierMixin, BaseEstimator, ABC):
    """Base of the peers: a two-class estimator fitted with ``sensitive_features``.

    A subclass has :meth:`_fit` and :meth:`_positive`, and :meth:`_answer` if it needs its own. The
    favourable outcome is ``classes_[1]``.
    """

    needs_group = False
    """Whether ``predict`` needs the group of each row (``predict(X, sensitive_features=...)``)."""
    many_groups = False
    """Whether there may be more than two groups."""

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = CONSTRAINTS

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X, y, sensitive_features, sample_weight

        Returns
        -------
        self
        """
        self._validate_params()
        rows = self._code(X, y, sensitive_features, sample_weight)
        self._fit(rows)
        return self

    def predict(self, X: Any) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        return self._label(self._answer(self._check(X)))

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each label; where there is a score, its sigmoid if nothing else is said.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        return _two_columns(self._positive(self._check(X)))

    @abstractmethod
    def _fit(self, rows: CodedRows) -> None:
        """Set the fitted attributes."""

    @abstractmethod
    def _positive(self, X: FloatArray) -> FloatArray:
        """Probability of ``classes_[1]`` for checked rows."""

    def _answer(self, X: FloatArray) -> BoolArray:
        """Whether ``classes_[1]`` is predicted, for checked rows."""
        return self._positive(X) > 0.5

    def _label(self, answer: BoolArray) -> Any:
        return self.classes_[answer.astype(np.intp)]

    def _code(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any = None
    ) -> CodedRows:
        """Check what ``fit`` was given; labels and groups as 0 and 1; set the fitted names."""
        if sensitive_features is None:
            raise InputError("missing_groups")
        check_labels(y)
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        check_sizes(X, getattr(self, "feature_names_in_", None))
        options: dict[str, Any] = {"two_groups": not self.many_groups, "two_labels": True}
        rows = code_rows(X, y, sensitive_features, sample_weight, **options)
        self.classes_, self.groups_ = rows.classes, rows.groups
        return rows

    def _check(self, X: Any) -> FloatArray:
        """Check rows to predict for."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))


@peer_docs
class ScorePeer(Peer):
    """A peer that predicts ``classes_[1]`` where its score is positive."""

    def decision_function(self, X: Any) -> FloatArray:
        """Score of each row; positive means ``classes_[1]``.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        return self._score(self._check(X))

    @abstractmethod
    def _score(self, X: FloatArray) -> FloatArray:
        """Score of checked rows."""

    def _squash(self, score: FloatArray) -> FloatArray:
        """Turn scores into probabilities."""
        return expit(score)

    def _positive(self, X: FloatArray) -> FloatArray:
        return self._squash(self._score(X))

    def _answer(self, X: FloatArray) -> BoolArray:
        return self._score(X) > 0


class LinearPeer(ScorePeer):
    """A peer whose answer is a hyperplane, in ``coef_`` and ``intercept_``."""

    coef_: FloatArray
    intercept_: FloatArray

    def _set_weights(self, w: FloatArray) -> None:
        """Keep the weights; the last one is the intercept."""
        self.coef_, self.intercept_ = w[None, :-1].copy(), w[-1:].copy()

    def _score(self, X: FloatArray) -> FloatArray:
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])


@peer_docs
class GroupPeer(Peer):
    """A peer that may need the group to predict.

    Its hooks are given the index of each row's group too, or None if ``needs_group`` is False.
    """

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, if ``needs_group``.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        return self._label(self._answer(*self._check_with_groups(X, sensitive_features)))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Probability of each label; where there is a score, its sigmoid if nothing else is said.

        Parameters
        ----------
        X
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, if ``needs_group``.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        return _two_columns(self._positive(*self._check_with_groups(X, sensitive_features)))

    def _check_with_groups(self, X: Any, sensitive_features: Any) -> tuple[FloatArray, Any]:
        """Check rows to predict for, and their groups if they matter."""
        X = self._check(X)
        if not self.needs_group:
            return X, None
        return X, code_known_groups(type(self).__name__, self.groups_, sensitive_features, len(X))

    @abstractmethod
    def _positive(self, X: FloatArray, z: Any = None) -> FloatArray:
        """Probability of ``classes_[1]`` for checked rows of these groups."""

    def _answer(self, X: FloatArray, z: Any = None) -> BoolArray:
        return self._positive(X, z) > 0.5


class TargetPeer(Peer):
    """A peer with a target ``tau`` that can be moved after training.

    Instead of ``_fit`` a subclass has :meth:`_train` and :meth:`_choose`.
    """

    notion: str
    tau: float
    min_share: float
    rate_: float
    feasible_: bool

    @property
    def _target(self) -> Target:
        """What is demanded of the counts on the training data."""
        return Target(SINGLE_RATES[self.notion], float(self.tau))

    def at(self, tau: float) -> Self:
        """Give the same fit at another target, without training.

        Parameters
        ----------
        tau : float
            The new target, in (0, 1].

        Returns
        -------
        estimator of the same class
            A fitted classifier; this one stays as it is.
        """
        return self._aimed(tau=tau)

    def _aimed(self, **target: float | None) -> Self:
        """Give the same fit with other parameters of the target."""
        check_is_fitted(self)
        other = copy(self)
        for name, level in target.items():
            setattr(other, name, level)
        other._validate_params()
        other._move()
        other._settle()
        return other

    def _fit(self, rows: CodedRows) -> None:
        self._train(rows)
        self._settle()

    @abstractmethod
    def _train(self, rows: CodedRows) -> None:
        """Set what choices for ``tau`` are made from."""

    def _move(self) -> None:
        """Replace what a choice for a new ``tau`` would change in the estimator it came from."""

    @abstractmethod
    def _choose(self) -> None:
        """Take the best answer for ``tau``; set ``rate_``, ``accuracy_`` and ``feasible_``."""

    def _settle(self) -> None:
        """Choose, and warn if the target was not reached."""
        self._choose()
        if np.isnan(self.rate_):
            warn(
                FairnessWarning(
                    "no_eligible_rule",
                    tau=Parameter("tau", self.tau),
                    notion=self.notion,
                    least=self.min_share,
                    most=1 - self.min_share,
                )
            )
        elif not self.feasible_:
            warn(
                FairnessWarning(
                    "target_not_reached",
                    tau=Parameter("tau", self.tau),
                    notion=self.notion,
                    rate=self.rate_,
                )
            )
