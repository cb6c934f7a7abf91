"""A randomised classifier: a few points of one frontier, each answering a share of the time."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import check_random_state

from evenhand._extras import documented
from evenhand.frontier.mixtures import ROUNDING
from evenhand.frontier.points import Point
from evenhand.models.inputs import is_dask
from evenhand.models.predictions import Predictions

FloatArray = NDArray[Any]


@documented(Predictions.predict.__doc__)
class AveragedClassifier:
    r"""A mixture of a few points of one fit: for each row one of them is drawn, and it answers.

    **Two equal rows may get different answers, and so may one row that is asked about twice.**
    Where that cannot be defended, ``FairClassifier.at`` gives one point for all. What a mixture
    gives in return is the most accuracy for τ that the frontier's points have together on the rows
    they were chosen on.

    Made by ``FairClassifier.averaged``; :func:`evenhand.frontier.mixtures.mix` finds the mixture.

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
    feasible : bool, optional
        Whether the target is reached, as surely as it was asked for; by default, whether ``rate``
        reaches it.

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
        Whether τ is reached, with the confidence that was asked for.

    Examples
    --------
    >>> from evenhand import FairClassifier
    >>> from evenhand.datasets import encoded_split, load_adult
    >>> X, X_test, y, y_test, z, z_test = encoded_split(load_adult(), random_state=0)
    >>> model = FairClassifier(tau=0.9, confidence=None).fit(X, y, sensitive_features=z)
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
        feasible: bool | None = None,
    ) -> None:
        self.estimators_, self.tau, self.random_state = list(estimators), tau, random_state
        self.weights_ = np.asarray(weights, dtype=np.float64)
        self.classes_ = self.estimators_[0].classes_
        self.points_: list[Point] = [model.point_ for model in self.estimators_]
        self.rate_, self.accuracy_ = rate, accuracy
        self.feasible_ = bool(rate >= tau - ROUNDING if feasible is None else feasible)

    @property
    def needs_group(self) -> bool:
        """Whether ``predict`` must be told each row's group."""
        return bool(self.estimators_[0].needs_group)

    def _answers(self, X: Any, sensitive_features: Any) -> NDArray[np.intp]:
        """Every point's answer to each row as a number of ``classes_``."""
        labels = [m.predict(X, sensitive_features=sensitive_features) for m in self.estimators_]
        return np.searchsorted(self.classes_, np.column_stack(labels))

    def _on_dask(self, method: str, X: Any, sensitive_features: Any, n: int, dtype: Any) -> Any:
        """Have n numbers for each row of a Dask collection, as an array still to compute."""
        from evenhand.engines.dask import on_partitions

        groups = self.estimators_[0].groups_for_dask(sensitive_features)
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
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``. Of Dask collections an array that is still to compute; its draws
            depend on the rows' numbers, not on their partitions.
        """
        random = check_random_state(self.random_state)
        if is_dask(X):
            from evenhand.engines.dask import drawn

            answers = self._on_dask("_answers", X, sensitive_features, len(self.weights_), np.intp)
            seed = int(random.randint(2**31 - 1))
            return drawn(self._pick, answers, seed, self.classes_.dtype)
        answers = self._answers(X, sensitive_features)
        return self._pick(answers, random.random_sample(len(answers)))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Probability with which :meth:`predict` gives each label, not of the label itself.

        Parameters
        ----------
        X, sensitive_features

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
