"""The booster of :class:`~evenhand.FairBoostedClassifier`, as an estimator for other methods."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from evenhand.models.boosted_columns import default_booster, fit_stopped
from evenhand.peers._base import FloatArray


class StoppedBooster(ClassifierMixin, BaseEstimator):
    """The default booster, which finds rows to stop by among those that it is given.

    Parameters
    ----------
    random_state : int, optional
        Seed of the booster, and of the tenth of the rows that it stops by.
    """

    def __init__(self, random_state: int | None = None) -> None:
        self.random_state = random_state

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> StoppedBooster:
        """Fit to some rows; of a sole label there is nothing to learn."""
        self.classes_, target = np.unique(y, return_inverse=True)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        booster = default_booster().set_params(random_state=self.random_state)
        several = len(self.classes_) > 1
        self.model_ = fit_stopped(booster, np.asarray(X), target, weight) if several else None
        return self

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each label."""
        if self.model_ is None:
            return np.ones((len(X), 1))
        return np.asarray(self.model_.predict_proba(np.asarray(X)), dtype=np.float64)

    def predict(self, X: Any) -> Any:
        """Give the most likely label."""
        return self.classes_[self.predict_proba(X).argmax(axis=1)]
