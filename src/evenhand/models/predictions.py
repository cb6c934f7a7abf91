"""What a fitted linear classifier answers: scores, labels, probabilities, of arrays and Dask."""

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax
from sklearn.utils import check_consistent_length, check_random_state, column_or_1d
from sklearn.utils.validation import check_is_fitted, validate_data

from evenhand._extras import documented
from evenhand.frontier.cuts import decide
from evenhand.models.fit_rows import refuse_text
from evenhand.models.inputs import (
    as_table,
    blank_groups,
    code_known_groups,
    find_groups,
    is_dask,
    on_host,
)
from evenhand.models.training import Fit

# What needs the groups to predict, as its error calls it.
AWARE = "a FairClassifier with group_cuts=True"


@documented("""
X : array-like or sparse matrix of shape (n_samples, n_features)
    Inputs.
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
    Group of each row; needed with ``group_cuts``, else not looked at.
""")
class Predictions:
    """The methods of :class:`~evenhand.FairClassifier` that need a fit."""

    fitted_: Fit
    classes_: NDArray[Any]
    groups_: NDArray[Any]
    small_groups_: dict[Any, int]
    coef_: NDArray[np.float64]
    intercept_: NDArray[np.float64]
    n_features_in_: int
    sensitive_features: Any
    random_state: Any

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        r"""Score less the chosen cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            :math:`s - \text{cut}`; of more than two labels one for each, the largest of which is
            predicted.
        """
        check_is_fitted(self)
        if is_dask(X):
            return self._on_dask("decision_function", X, sensitive_features)
        X, sensitive_features = on_host(X), on_host(sensitive_features)
        table = as_table(X)
        column = np.setdiff1d(np.arange(self.n_features_in_), self.fitted_.inputs)
        inputs = blank_groups(table, int(column[0])) if len(column) else X
        try:
            checked = validate_data(
                self, inputs, reset=False, accept_sparse="csr", dtype=np.float64
            )
        except (ValueError, TypeError):
            refuse_text(
                inputs,
                "this FairClassifier was fitted to numbers; make it the numbers that fit was "
                "given, or fit fair_pipeline(...) instead, which takes tables as they come.",
            )
            raise
        scores = checked @ self.coef_.T
        if self.fitted_.group_cuts:
            if sensitive_features is None and self.sensitive_features is not None:
                at = int(column[0]) if len(column) else None
                sensitive_features = find_groups(table, at, self.sensitive_features, None, None)
            group = code_known_groups(
                AWARE,
                self.groups_,
                sensitive_features,
                checked.shape[0],
                small=self.small_groups_,
                edges=self.fitted_.edges,
            )
            scores = scores[:, 0] + self.intercept_[group]
        else:
            scores = scores + self.intercept_
        if hasattr(self, "noise_coef_"):
            noise = check_random_state(self.random_state).uniform(size=checked.shape[0])
            scores = scores.reshape(-1) + self.noise_coef_ * noise
        return np.asarray(scores if len(self.classes_) > 2 else scores.reshape(-1))

    def _on_dask(self, method: str, X: Any, sensitive_features: Any) -> Any:
        """Have a method's result for Dask collections, as a Dask array that is still to compute."""
        from evenhand.engines.dask import on_partitions

        groups, n = self.groups_for_dask(sensitive_features), len(self.classes_)
        wide = method == "predict_proba" or (method == "decision_function" and n > 2)
        dtype = self.classes_.dtype if method == "predict" else np.float64
        return on_partitions(self, method, X, groups, shape=(n,) if wide else (), dtype=dtype)

    def groups_for_dask(self, sensitive_features: Any) -> Any:
        """Give groups if predictions need them; refuse at once that they are missing."""
        check_is_fitted(self)
        if not self.fitted_.group_cuts:
            return None
        if sensitive_features is None and self.sensitive_features is None:
            code_known_groups(AWARE, self.groups_, None, 0)  # says so
        return sensitive_features

    def predict(self, X: Any, *, sensitive_features: Any = None) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        if is_dask(X):
            return self._on_dask("predict", X, sensitive_features)
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        # A score of exactly 0 is not the favourable label's, whichever that is.
        return self.fitted_.labels[decide(self.fitted_.sign * scores, 0.0)]

    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.
        sensitive_features

        Returns
        -------
        float
            Share of right predictions.
        """
        if is_dask(X):
            from evenhand.engines.dask import dask_score

            groups = self.groups_for_dask(sensitive_features)
            return dask_score(self, X, y, groups, sample_weight)
        y, sample_weight = column_or_1d(on_host(y)), on_host(sample_weight)
        answer = self.predict(X, sensitive_features=sensitive_features)
        check_consistent_length(answer, y, sample_weight)
        return float(np.average(answer == y, weights=sample_weight))

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> NDArray[np.float64]:
        """Sigmoid or softmax of :meth:`decision_function`, scores between 0 and 1.

        The predicted label's is the largest, but they are not calibrated: fairness and the cut move
        them away from the labels' frequencies.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Columns in the order of ``classes_``.
        """
        if is_dask(X):
            return self._on_dask("predict_proba", X, sensitive_features)
        scores = self.decision_function(X, sensitive_features=sensitive_features)
        if scores.ndim == 2:
            return np.asarray(softmax(scores, axis=1))
        positive = expit(scores)
        return np.column_stack([1 - positive, positive])
