"""What all comparators share: how rows come in and how a linear score goes out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand.inputs import CodedRows, check_labels, check_weights, code_rows, find_groups

__all__ = ["LinearPeer", "Peer"]

FloatArray = NDArray[np.float64]


class Peer(ClassifierMixin, BaseEstimator):
    """Base of the comparators: a two-class estimator fitted with ``sensitive_features``.

    A subclass has ``fit(X, y, *, sensitive_features, sample_weight=None)``, which begins with
    :meth:`_code`, and ``predict_proba``. The favourable outcome is ``classes_[1]``.
    """

    needs_group = False
    """Whether ``predict`` needs the group of each row (``predict(X, sensitive_features=...)``)."""

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        return tags

    def _code(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any = None
    ) -> CodedRows:
        """Check what ``fit`` was given; labels and groups as 0 and 1; set the fitted names."""
        if sensitive_features is None:
            raise ValueError("the groups are missing: pass fit(X, y, sensitive_features=...).")
        check_labels(y)
        X, y = validate_data(self, X, y, dtype=np.float64, order="C")
        weight, used = check_weights(X, sample_weight)
        groups = find_groups(X, None, None, sensitive_features, used)
        rows = code_rows(X, y, groups, weight, used, None)
        self.classes_, self.groups_ = rows.classes, rows.groups
        return rows

    def _check(self, X: Any) -> FloatArray:
        """Check rows to predict for."""
        check_is_fitted(self)
        return np.asarray(validate_data(self, X, reset=False, dtype=np.float64))

    def predict(self, X: Any) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        positive = self.predict_proba(X)[:, 1] > 0.5
        return self.classes_[positive.astype(np.intp)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Probability of each label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        raise NotImplementedError


class LinearPeer(Peer):
    """A comparator whose answer is a hyperplane, in ``coef_`` and ``intercept_``."""

    coef_: FloatArray
    intercept_: FloatArray

    def _set_weights(self, w: FloatArray) -> None:
        """Keep the weights; the last one is the intercept."""
        self.coef_, self.intercept_ = w[None, :-1].copy(), w[-1:].copy()

    def decision_function(self, X: Any) -> FloatArray:
        """Score of each row; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Scores.
        """
        X = self._check(X)
        return np.asarray(X @ self.coef_[0] + self.intercept_[0])

    def predict_proba(self, X: Any) -> FloatArray:
        """Sigmoid of the score.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])

    def predict(self, X: Any) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]
