"""Probabilities of rows by models that have not seen them."""

from collections.abc import Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from evenhand.core.errors import InputError, Parameter
from evenhand.models.boosted_columns import deal_folds
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import FloatArray, logistic_regression, one_thread
from evenhand.peers._booster import StoppedBooster


def mean_proba(models: Sequence[Any], X: FloatArray, n_classes: int) -> FloatArray:
    """Probability of each class, mean over the models; 0 of a class that a model never saw."""
    out = np.zeros((len(X), n_classes))
    for model in models:
        out[:, model.classes_] += model.predict_proba(X) / len(models)
    return out


def fold_models(
    estimator: Any, rows: CodedRows, target: NDArray[np.intp], n_folds: int | None, seed: Any
) -> tuple[list[Any], FloatArray]:
    """Fit a classifier of some target; give it with the rows' probabilities of each class.

    With folds there is a model for each, fitted without it, and a row's probabilities are of the
    model that has not seen it; otherwise one model, of all rows. Folds hold equal shares of each
    label in each group.

    Without an estimator it is boosting with folds, and logistic regression otherwise.
    """
    X, n_classes = rows.X, int(target.max()) + 1

    def fitted(kept: Any) -> Any:
        extra = {} if rows.weight is None else {"sample_weight": rows.weight[kept]}
        model = clone(estimator) if estimator is not None else default
        with nullcontext() if estimator is not None or n_folds else one_thread(X.shape[1]):
            return model.fit(X[kept], target[kept], **extra)

    if n_folds is None:
        total = float(len(X) if rows.weight is None else rows.weight.sum())
        default = logistic_regression(1e-4, total, X.shape[1])
        models = [fitted(np.arange(len(X)))]
        return models, mean_proba(models, X, n_classes)
    order = check_random_state(seed).permutation(len(X))
    folds = deal_folds(rows.z * 2 + rows.y, n_folds, order)
    if len(X) < n_folds:
        number = Parameter("n_folds", n_folds)
        raise InputError("more_folds_than_rows", n_folds=number, n=len(X), where="")
    models, proba = [], np.empty((len(X), n_classes))
    for fold in range(n_folds):
        default, held = StoppedBooster(0), folds == fold
        models.append(fitted(np.flatnonzero(~held)))
        proba[held] = mean_proba(models[-1:], X[held], n_classes)
    return models, proba
