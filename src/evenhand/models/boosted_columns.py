"""Columns that gradient boosting makes of a row: probabilities of label and group, out of fold."""

from collections.abc import Mapping, Sequence
from importlib.util import find_spec
from inspect import signature
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from evenhand._sklearn import safe_indexing
from evenhand.core.errors import InputError, Parameter
from evenhand.core.objectives import Objective
from evenhand.core.rates import AnyRate
from evenhand.engines.threads import cores, pools
from evenhand.models.directions import walk_to_parity
from evenhand.models.inputs import CodedRows
from evenhand.models.trees import family_of, forest_of

__all__ = [
    "BoostedColumns",
    "check_scorer",
    "deal_folds",
    "default_booster",
    "fit_stopped",
    "probability_columns",
    "scores_of",
]

FloatArray = NDArray[np.float64]

# Beyond these a probability says no more, and its logit would be the whole column's scale.
SURE = 1e-6
# Of fewer rows, what the booster refuses is for lack of rows.
FEW_ROWS = 100
# Of text, which only a model that was brought can have; scikit-learn's booster takes 255.
MOST_VALUES = 200


class FoldModels(NamedTuple):
    """Models that have not seen one fold: of the label, and of the group of each label's rows."""

    label: Any
    groups: tuple[Any, ...]


# Estimators are imported where they are used: importing evenhand stays light.


def default_booster() -> Any:
    """Give LightGBM's booster if it is installed, else scikit-learn's: both stop early.

    The usual ones overfit tables of a few thousand rows.
    """
    if find_spec("lightgbm") is not None:
        from lightgbm import LGBMClassifier

        return LGBMClassifier(
            learning_rate=0.1,
            n_estimators=400,
            num_leaves=7,
            early_stopping_round=20,
            deterministic=True,
            force_row_wise=True,
            verbosity=-1,
        )
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


def probability_columns(joint: FloatArray, *, aware: bool = False) -> FloatArray:
    """Columns from P(label, group | x).

    Parameters
    ----------
    joint : ndarray of shape (n_samples, n_labels, n_groups)
        Probability of each label and group; label 0 and group 0 follow from the others.
    aware : bool
        The group is known: only the label's columns.
    """
    label = joint.sum(axis=2)
    log = np.log(np.clip(label, SURE, 1 - SURE))
    columns = [log[:, 1:] - log[:, :1], label[:, 1:]]
    if not aware:
        columns += [joint[:, :, 1:].sum(axis=1), joint[:, 1:, 1:].reshape(len(joint), -1)]
    return np.column_stack(columns)


def column_names(classes: Sequence[Any], groups: Sequence[Any], *, aware: bool) -> list[str]:
    """Names of the columns, in their order; with two labels the favourable one goes unnamed."""
    kinds, others = ("logit", "probability"), [str(label) for label in classes[1:]]
    of = [f"[{label}]" for label in others] if len(others) > 1 else [""]
    labels = [f"{label}, " for label in others] if len(others) > 1 else [""]
    only = [f"label {kind}{label}" for kind in kinds for label in of]
    if aware:
        return only
    return [
        *only,
        *[f"group probability[{group}]" for group in groups[1:]],
        *[f"both probabilities[{label}{group}]" for label in labels for group in groups[1:]],
    ]


def rule_weights(rules: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Weights and intercepts that the columns of two labels need to be some rules.

    Parameters
    ----------
    rules : ndarray of shape (n_rules, 2, n_groups)
        Weights of P(label, group | x).
    """
    first = rules[:, :1, :1]
    label, group = (rules[:, 1, :1] - first[:, 0]), rules[:, 0, 1:] - first[:, 0]
    both = rules[:, 1, 1:] - rules[:, 1, :1] - rules[:, 0, 1:] + first[:, 0]
    return np.hstack([np.zeros_like(label), label, group, both]), first[:, 0, 0]


def check_scorer(scorer: Any, name: str) -> None:
    """Refuse a scorer that gives no scores or is not fitted."""
    if not (hasattr(scorer, "decision_function") or hasattr(scorer, "predict_proba")):
        raise InputError("no_scores", scorer=name)
    if hasattr(scorer, "fit"):
        try:
            check_is_fitted(scorer)
        except NotFittedError:
            raise InputError("scorer_not_fitted", scorer=name) from None


def scores_of(
    scorer: Any, X: Any, name: str, ways: Sequence[str] = ("decision_function", "predict_proba")
) -> FloatArray:
    """Score of each row by a fitted estimator: its decision function, or P of its second class.

    ``ways`` are in the order in which they are tried.
    """
    way = next(way for way in ways if hasattr(scorer, way))
    scores = np.asarray(getattr(scorer, way)(X), dtype=np.float64)
    if way == "predict_proba":
        scores = scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores
    if scores.shape != (X.shape[0],):
        raise InputError(
            "scores_of_other_shape", scorer=name, shape=scores.shape, n_rows=X.shape[0]
        )
    if not np.isfinite(scores).all():
        raise InputError("infinite_scores", scorer=name)
    return scores


def _values_of(column: Any) -> list[Any] | None:
    """Values of a column of categories, or the most frequent ones of text; None of numbers."""
    if hasattr(column, "cat"):
        return list(column.cat.categories)
    if pd.api.types.is_numeric_dtype(column.dtype):
        return None
    counts = column.value_counts(sort=False)
    return sorted(counts.sort_index().nlargest(MOST_VALUES).index.tolist())


class BoosterInputs:
    """What a booster is given of a table: numbers, with categories numbered, or what it takes.

    Of a booster whose trees can be read, categories are numbered here, in the order of the fitted
    frame's; unknown ones are missing. Any other is given the table as it is.
    """

    def __init__(self, X: Any, booster: Any) -> None:
        frame = hasattr(X, "iloc")
        kinds = [_values_of(X.iloc[:, j]) for j in range(X.shape[1])] if frame else []
        self.categories = {j: values for j, values in enumerate(kinds) if values is not None}
        own = getattr(booster, "categorical_features", None)
        self.plain = bool(family_of(booster)) and own in (None, "from_dtype")

    @property
    def n_categories(self) -> int:
        """The most that a column has."""
        return max(map(len, self.categories.values()), default=0)

    def __call__(self, X: Any, z: Any) -> Any:
        """Give the inputs of some rows; ``z`` are their groups if these are an input, too."""
        if not self.plain:
            if z is None:
                return X
            return X.assign(**{"known group": z}) if hasattr(X, "iloc") else np.column_stack([X, z])
        columns = X
        if self.categories:
            numbered = [
                pd.Index(self.categories[j]).get_indexer(X.iloc[:, j])
                if j in self.categories
                else X.iloc[:, j].to_numpy(dtype=np.float64, na_value=np.nan)
                for j in range(X.shape[1])
            ]
            columns = np.column_stack([np.where(c == -1, np.nan, c) if j in self.categories else c
                                       for j, c in enumerate(numbered)])  # fmt: skip
        elif hasattr(X, "iloc"):  # whole numbers may have pd.NA
            columns = X.to_numpy(dtype=np.float64, na_value=np.nan)
        columns = np.asarray(columns, dtype=np.float64)
        return columns if z is None else np.column_stack([columns, z])

    def told(self, booster: Any, n_columns: int) -> tuple[Any, dict[str, Any]]:
        """Give the booster, told which columns are categories, and what else its fit is given."""
        family, at = family_of(booster), sorted(self.categories)
        if not (self.plain and at):
            return booster, {}
        if family == "LGBMClassifier":
            return booster, {"categorical_feature": at}
        if family == "XGBClassifier":
            kinds = ["c" if j in self.categories else "q" for j in range(n_columns)]
            return clone(booster).set_params(feature_types=kinds, enable_categorical=True), {}
        return clone(booster).set_params(categorical_features=at), {}


class Estimate:
    """A fitted model of a target, as P(target | x) for all its values, those not seen included."""

    def __init__(
        self,
        model: Any,
        seen: NDArray[np.intp],
        n_values: int,
        n_categories: int,
        *,
        trees: bool = True,
    ) -> None:
        self.model, self.seen, self.n_values = model, seen, n_values
        self.forest = forest_of(model, n_categories) if trees and model is not None else None

    def __call__(self, X: Any) -> FloatArray:
        """Probability of each value, shape (n_samples, n_values)."""
        n = X.shape[0]
        found = np.ones((n, 1))
        if self.forest is not None:
            found = self.forest.predict_proba(X)
        elif self.model is not None:
            found = np.asarray(self.model.predict_proba(X), dtype=np.float64)
            if not np.isfinite(found).all():
                raise InputError("infinite_probabilities", booster=type(self.model).__name__)
        whole = np.zeros((n, self.n_values))
        whole[:, self.seen] = found
        return whole


def _fit_estimate(
    booster: Any,
    options: dict[str, Any],
    X: Any,
    target: NDArray[np.intp],
    weight: FloatArray | None,
    index: NDArray[np.intp],
    sizes: tuple[int, int],
) -> Estimate:
    """Fit a clone of the booster to some rows; a sole value needs no model."""
    n_values, n_categories = sizes
    seen, target = np.unique(target[index], return_inverse=True)
    if len(seen) == 1:
        return Estimate(None, seen, n_values, n_categories)
    rows, weight = safe_indexing(X, index), None if weight is None else weight[index]
    try:
        model = fit_stopped(booster, rows, target, weight, options)
    except ValueError as error:
        if len(index) >= FEW_ROWS:
            raise
        raise InputError(
            "too_few_rows_for_booster", n=len(index), n_rows=len(X), error=str(error)
        ) from error
    return Estimate(model, seen, n_values, n_categories)


def fit_stopped(
    booster: Any,
    X: Any,
    target: NDArray[Any],
    weight: FloatArray | None,
    options: Mapping[str, Any] = MappingProxyType({}),
) -> Any:
    """Fit a clone of the booster, on one thread; one that needs rows to stop by has a tenth."""
    model, fitted, extra = clone(booster), np.ones(len(target), dtype=bool), dict(options)
    params = model.get_params()
    if family_of(model) and params.get("n_jobs", 1) is None:
        model.set_params(n_jobs=1)
    if params.get("early_stopping_round") or params.get("early_stopping_rounds"):
        codes = np.unique(target, return_inverse=True)[1]
        fitted = _to_fit(codes, params.get("random_state"))
        held = safe_indexing(X, np.flatnonzero(~fitted)), target[~fitted]
        if (~fitted).any():
            if "eval_X" in signature(model.fit).parameters:  # of newer LightGBM
                extra |= dict(zip(("eval_X", "eval_y"), held, strict=True))
            else:
                extra["eval_set"] = [held]
        else:
            stop = {k for k in ("early_stopping_round", "early_stopping_rounds") if k in params}
            model.set_params(**dict.fromkeys(stop))
    if family_of(model) == "XGBClassifier" and (~fitted).any():
        extra["verbose"] = False
    if weight is not None:
        steps = getattr(model, "steps", None)  # of a pipeline
        extra[f"{steps[-1][0]}__sample_weight" if steps else "sample_weight"] = weight[fitted]
    with pools().limit(limits=1, user_api="openmp"):
        return model.fit(safe_indexing(X, np.flatnonzero(fitted)), target[fitted], **extra)


def _to_fit(target: NDArray[np.intp], seed: Any) -> NDArray[np.bool_]:
    """Say which rows to fit to; a tenth of each value's are to stop by."""
    order = np.random.RandomState(seed).permutation(len(target))
    fold = deal_folds(target, 10, order)
    return (fold != 0) | (np.bincount(target)[target] < 2)


class BoostedColumns:
    """Columns of rows: out of fold of those it is fitted to, means over the models of others.

    Nothing here has seen the label or the group of a row that was not given to ``fit``.
    """

    def __init__(
        self,
        booster: Any,
        *,
        n_folds: int,
        scorers: Sequence[Any],
        n_jobs: int | None,
        seed: int,
        aware: bool = False,
        brought: Any = None,
    ) -> None:
        self.booster = clone(booster) if booster is not None else default_booster()
        if self.booster.get_params().get("random_state", seed) is None:
            self.booster.set_params(random_state=seed)
        self.n_folds, self.scorers = n_folds, scorers
        self.n_jobs, self.aware = n_jobs, aware
        # The label's model, if it is not the booster: a Brought.
        self.brought = brought

    @property
    def alone(self) -> bool:
        """Whether a score that was brought is the only column: its cuts are all that is chosen."""
        return self.aware and self.brought is not None

    def fit(self, X: Any, rows: CodedRows, order: NDArray[np.intp], where: str) -> FloatArray:
        """Fit the models; columns of the rows, out of fold, before standardisation."""
        from sklearn.preprocessing import StandardScaler

        n_labels, n_groups, folds = len(rows.classes), len(rows.groups), range(self.n_folds)
        self.folds = deal_folds(rows.z * n_labels + rows.y, self.n_folds, order)
        if rows.person is not None:  # no model answers for a person that it has seen
            _, first, person = np.unique(rows.person, return_index=True, return_inverse=True)
            self.folds = self.folds[first][person]
        if not (self.alone and self.brought.fixed):
            self._check_folds(rows, where)
        self.inputs = BoosterInputs(X, self.booster)
        inputs = self._given(X, rows.z)[1]
        booster, options = self.inputs.told(self.booster, 0 if self.alone else inputs.shape[1])
        own = self.brought is None
        jobs = [(self.folds != k, rows.y, n_labels) for k in folds if own]
        if not self.aware:
            for k in folds:
                known = (self.folds != k) & (rows.z < n_groups)
                of = [known & (rows.y == c) for c in range(n_labels)]
                # Where no row has the label, any row is better than none.
                jobs += [(kept if kept.any() else known, rows.z, n_groups) for kept in of]
        with cores():
            n_jobs = cores.count if self.n_jobs is None else self.n_jobs
        found = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_fit_estimate)(
                *(booster, options, inputs, target, rows.weight, np.flatnonzero(kept)),
                (n_values, self.inputs.n_categories),
            )
            for kept, target, n_values in jobs
        )
        labels = found[: self.n_folds] if own else self.brought.fit(X, rows, self.folds, n_jobs)
        # A score that is nobody's fold needs no copies, unless groups have models beside it.
        n_models = len(labels) if self.alone else self.n_folds
        groups = np.array(found[own * self.n_folds :], dtype=object).reshape(n_models, -1)
        self.models = [
            FoldModels(labels[k % len(labels)], tuple(row)) for k, row in enumerate(groups)
        ]
        self.joint = np.empty((len(rows.y), n_labels, 1 if self.aware else n_groups))
        columns = np.empty((len(rows.y), 1))
        for k, models in enumerate(self.models):
            held = np.flatnonzero((self.folds == k) | (n_models == 1))
            given = self._given(safe_indexing(X, held), rows.z[held])
            self.joint[held] = self.from_models(models, given)
            if self.alone:
                columns[held] = self._columns_by(models, given)
        if not self.alone:
            columns = probability_columns(self.joint, aware=self.aware)
        columns = np.column_stack([columns, *self._scores(X)])
        self.scaler = StandardScaler().fit(columns, sample_weight=rows.weight)
        self.names = self.names_of(rows.classes.tolist(), rows.groups.tolist())
        self.names += [f"scorers[{i}]" for i in range(len(self.scorers))]
        return columns

    def directions(self, rows: CodedRows, rate: AnyRate, objective: Objective) -> FloatArray | None:
        """Weights of the standardised columns, and intercepts, that are optimal for some rates.

        Of two labels whose groups are estimated; None of others.
        """
        if self.aware or len(rows.classes) > 2:
            return None
        worths = objective.worths(np.bincount(rows.y, weights=rows.weight, minlength=2))
        rules = walk_to_parity(self.joint, rows.y, rows.z, rows.weight, rate, worths)
        weights, intercept = rule_weights(rules)
        weights = np.pad(weights, ((0, 0), (0, len(self.scorers))))
        intercept = intercept + weights @ self.scaler.mean_
        return np.column_stack([weights * self.scaler.scale_, intercept])

    def names_of(self, classes: Sequence[Any], groups: Sequence[Any]) -> list[str]:
        """Names of the columns, without those of scorers."""
        return ["score"] if self.alone else column_names(classes, groups, aware=self.aware)

    def __call__(self, X: Any, z: Any = None) -> FloatArray:
        """Columns of rows that were not fitted to, before standardisation."""
        given = self._given(X, z)
        columns = np.mean([self._columns_by(models, given) for models in self.models], axis=0)
        return np.column_stack([columns, *self._scores(X)])

    def joint_of(self, X: Any, z: Any = None) -> FloatArray:
        """P(label, group | x) of rows that were not fitted to, the mean over the models."""
        given = self._given(X, z)
        return np.mean([self.from_models(models, given) for models in self.models], axis=0)

    def scale(self, columns: FloatArray) -> FloatArray:
        """Standardise."""
        return np.asarray(self.scaler.transform(columns))

    def _given(self, X: Any, z: Any) -> tuple[Any, Any]:
        """Give what the label's models are given of some rows, and what those of the groups are."""
        if self.brought is None:
            return (self.inputs(X, z if self.aware else None),) * 2
        return self.brought.inputs(X, None), None if self.aware else self.inputs(X, None)

    def from_models(self, models: FoldModels, given: tuple[Any, Any]) -> FloatArray:
        """P(label, group | x) by the models of one fold."""
        label = models.label(given[0])
        if self.aware:
            return np.asarray(label[:, :, None])
        groups = np.stack([group(given[1]) for group in models.groups], axis=1)
        return np.asarray(label[:, :, None] * groups)

    def _columns_by(self, models: FoldModels, given: tuple[Any, Any]) -> FloatArray:
        if self.alone:
            return np.asarray(models.label.logit(given[0])[:, None])
        return probability_columns(self.from_models(models, given), aware=self.aware)

    def _scores(self, X: Any) -> list[FloatArray]:
        return [scores_of(s, X, f"scorers[{i}]") for i, s in enumerate(self.scorers)]

    def _check_folds(self, rows: CodedRows, where: str) -> None:
        """Refuse folds that are empty or whose models would not know all labels and groups."""
        if len(rows.y) < self.n_folds:
            raise InputError(
                "more_folds_than_rows",
                n_folds=Parameter("n_folds", self.n_folds),
                n=len(rows.y),
                where=where,
            )
        targets = (("label", rows.classes, rows.y), ("group", rows.groups, rows.z))
        for what, names, code in targets:
            has_code = code < len(names)
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
