"""Columns that gradient boosting makes of a row: probabilities of label and group, out of fold."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from evenhand._sklearn import safe_indexing
from evenhand.core.errors import InputError, Parameter
from evenhand.models.inputs import CodedRows

__all__ = ["BoostedColumns", "check_scorer", "deal_folds", "default_booster", "probability_columns"]

FloatArray = NDArray[np.float64]

# Beyond these a probability says no more, and its logit would be the whole column's scale.
SURE = 1e-6
# Of fewer rows, what the booster refuses is for lack of rows.
FEW_ROWS = 100


class FoldModels(NamedTuple):
    """Label and group models that have not seen one fold."""

    label: Any
    group: Any


# Estimators of scikit-learn are imported where they are used: importing evenhand stays light.


def default_booster() -> Any:
    """Give a booster that stops early on any table; the usual one overfits a few thousand rows."""
    from sklearn.ensemble import HistGradientBoostingClassifier

    return HistGradientBoostingClassifier(
        learning_rate=0.05, max_iter=400, max_leaf_nodes=15, early_stopping=True
    )


def deal_folds(cell: NDArray[np.intp], n_folds: int, order: NDArray[np.intp]) -> NDArray[np.intp]:
    """Fold of each row: the rows of each cell in the order given, dealt out in turn.

    Two rows of a cell are never in one fold unless every fold has one.
    """
    fold = np.empty(len(cell), dtype=np.intp)
    fold[np.lexsort((order, cell))] = np.arange(len(cell)) % n_folds
    return fold


def probability_columns(label: FloatArray, group: FloatArray, *, interactions: bool) -> FloatArray:
    """Columns from P(y=1 | x) and from P(z=k | x) for every group but the first.

    Parameters
    ----------
    label : ndarray of shape (n_samples,)
        Probability of the favourable label.
    group : ndarray of shape (n_samples, n_groups - 1)
        Probability of each group but the first.
    interactions : bool
        Add the products of the two.
    """
    columns = [logit(np.clip(label, SURE, 1 - SURE)), label, *group.T]
    if interactions:
        columns += [*(label[:, None] * group).T]
    return np.column_stack(columns)


def _targets(rows: CodedRows) -> list[tuple[NDArray[np.intp], NDArray[np.bool_]]]:
    """Give what is modelled, label and group, and the rows that have it: no small groups."""
    return [(rows.y, np.ones(len(rows.y), dtype=bool)), (rows.z, rows.z < len(rows.groups))]


def _fit_models(booster: Any, X: Any, rows: CodedRows, kept: NDArray[np.bool_]) -> FoldModels:
    """Fit a clone of the booster for label and group on some of the rows."""
    models = []
    for target, has_target in _targets(rows):
        index = np.flatnonzero(kept & has_target)
        extra = {} if rows.weight is None else {"sample_weight": rows.weight[index]}
        try:
            models.append(clone(booster).fit(safe_indexing(X, index), target[index], **extra))
        except ValueError as error:
            if len(index) >= FEW_ROWS:
                raise
            raise InputError(
                "too_few_rows_for_booster", n=len(index), n_rows=len(kept), error=str(error)
            ) from error
    return FoldModels(*models)


def check_scorer(scorer: Any, name: str) -> None:
    """Refuse a scorer that gives no scores or is not fitted."""
    if not (hasattr(scorer, "decision_function") or hasattr(scorer, "predict_proba")):
        raise InputError("no_scores", scorer=name)
    if hasattr(scorer, "fit"):
        try:
            check_is_fitted(scorer)
        except NotFittedError:
            raise InputError("scorer_not_fitted", scorer=name) from None


def _scorer_column(scorer: Any, X: Any, name: str) -> FloatArray:
    """Score of each row by a fitted estimator: its decision function, or P of its second class."""
    if hasattr(scorer, "decision_function"):
        scores = np.asarray(scorer.decision_function(X), dtype=np.float64)
    else:
        scores = np.asarray(scorer.predict_proba(X), dtype=np.float64)
        scores = scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores
    if scores.shape != (X.shape[0],):
        raise InputError(
            "scores_of_other_shape", scorer=name, shape=scores.shape, n_rows=X.shape[0]
        )
    if not np.isfinite(scores).all():
        raise InputError("infinite_scores", scorer=name)
    return scores


class BoostedColumns:
    """Columns of rows: out of fold of those it is fitted to, means over the models of others.

    Nothing here has seen the label or the group of a row that was not given to ``fit``.
    """

    def __init__(
        self,
        booster: Any,
        *,
        n_folds: int,
        interactions: bool,
        scorers: Sequence[Any],
        n_jobs: int | None,
        seed: int,
    ) -> None:
        self.booster = clone(booster) if booster is not None else default_booster()
        if self.booster.get_params().get("random_state", seed) is None:
            self.booster.set_params(random_state=seed)
        self.n_folds, self.interactions = n_folds, interactions
        self.scorers, self.n_jobs, self.seed = scorers, n_jobs, seed

    def fit(self, X: Any, rows: CodedRows, order: NDArray[np.intp], where: str) -> FloatArray:
        """Fit the models; columns of the rows, out of fold, before standardisation."""
        from sklearn.preprocessing import StandardScaler

        self.folds = deal_folds(rows.z * 2 + rows.y, self.n_folds, order)
        self._check_folds(rows, where)
        folds = range(self.n_folds)
        self.models = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_models)(self.booster, X, rows, self.folds != k) for k in folds
        )
        index = [np.flatnonzero(self.folds == k) for k in folds]
        out_of_fold = [
            self.from_models(models, safe_indexing(X, fold))
            for models, fold in zip(self.models, index, strict=True)
        ]
        columns = np.empty((len(rows.y), out_of_fold[0].shape[1]))
        columns[np.concatenate(index)] = np.concatenate(out_of_fold)
        columns = np.column_stack([columns, *self._scores(X)])
        self.scaler = StandardScaler().fit(columns, sample_weight=rows.weight)
        self._name(rows)
        return columns

    def __call__(self, X: Any) -> FloatArray:
        """Columns of rows that were not fitted to, before standardisation."""
        columns = np.mean([self.from_models(models, X) for models in self.models], axis=0)
        return np.column_stack([columns, *self._scores(X)])

    def scale(self, columns: FloatArray) -> FloatArray:
        """Standardise."""
        return np.asarray(self.scaler.transform(columns))

    def from_models(self, models: FoldModels, X: Any) -> FloatArray:
        """Columns by the models of one fold."""
        label, group = (np.asarray(model.predict_proba(X), dtype=np.float64) for model in models)
        return probability_columns(label[:, 1], group[:, 1:], interactions=self.interactions)

    def _scores(self, X: Any) -> list[FloatArray]:
        return [_scorer_column(s, X, f"scorers[{i}]") for i, s in enumerate(self.scorers)]

    def _name(self, rows: CodedRows) -> None:
        others = [str(group) for group in rows.groups[1:]]
        self.names = ["label logit", "label probability"]
        self.names += [f"group probability[{group}]" for group in others]
        if self.interactions:
            self.names += [f"both probabilities[{group}]" for group in others]
        self.names += [f"scorers[{i}]" for i in range(len(self.scorers))]

    def _check_folds(self, rows: CodedRows, where: str) -> None:
        """Refuse folds that are empty or whose models would not know all labels and groups."""
        if len(rows.y) < self.n_folds:
            raise InputError(
                "more_folds_than_rows",
                n_folds=Parameter("n_folds", self.n_folds),
                n=len(rows.y),
                where=where,
            )
        levels = (("label", rows.classes), ("group", rows.groups))
        for (what, names), (code, has_code) in zip(levels, _targets(rows), strict=True):
            seen = np.zeros((self.n_folds, len(names)), dtype=bool)
            seen[self.folds[has_code], code[has_code]] = True
            few = np.flatnonzero(seen.sum(axis=0) < 2)
            if len(few):
                n = int(np.sum(code == few[0]))
                raise InputError(
                    "too_few_rows_for_folds",
                    what=what,
                    value=names.tolist()[few[0]],
                    n=n,
                    s="s" * (n != 1),
                    where=where,
                    n_folds=self.n_folds,
                )
