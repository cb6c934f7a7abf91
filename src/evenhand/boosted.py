r"""FairBoostedClassifier: the linear engine on columns that gradient boosting makes.

Among classifiers that do not see the group, the most accurate one at a given ratio of selection
rates cuts a linear function of two probabilities,

.. math:: \hat y = [\,P(y{=}1 \mid x) - \lambda\, P(z{=}1 \mid x) > c\,],

because both the accuracy and each group's selection rate are linear in the decision, with these
probabilities as coefficients. So a linear model needs no more than good estimates of them, and
:class:`~evenhand.FairClassifier` finds λ and c, and every other point of the frontier.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.exceptions import NotFittedError
from sklearn.utils import _safe_indexing, check_consistent_length, check_random_state
from sklearn.utils._param_validation import HasMethods, Interval
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from evenhand.classifier import FairClassifier
from evenhand.inputs import (
    CodedRows,
    as_table,
    blank_groups,
    check_labels,
    check_weights,
    code_rows,
    find_groups,
    group_column,
)

__all__ = ["FairBoostedClassifier"]

FloatArray = NDArray[np.float64]

# Beyond these a probability says no more, and its logit would be the whole column's scale.
SURE = 1e-6


class _FoldModels(NamedTuple):
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


def deal_folds(cell: NDArray[np.intp], n_folds: int, rng: Any) -> NDArray[np.intp]:
    """Fold of each row: the rows of each cell in random order, dealt out in turn.

    Two rows of a cell are never in one fold unless every fold has one.
    """
    order = np.lexsort((rng.permutation(len(cell)), cell))
    fold = np.empty(len(cell), dtype=np.intp)
    fold[order] = np.arange(len(cell)) % n_folds
    return fold


def probability_columns(label: FloatArray, group: FloatArray, *, interactions: bool) -> FloatArray:
    """Columns from P(y=1 | x) and from P(z=k | x) for every group but the first.

    Parameters
    ----------
    label : ndarray of shape (n_samples,)
        Probability of ``classes_[1]``.
    group : ndarray of shape (n_samples, n_groups - 1)
        Probability of each group but the first.
    interactions : bool
        Add the products of the two.
    """
    columns = [logit(np.clip(label, SURE, 1 - SURE)), label, *group.T]
    if interactions:
        columns += [*(label[:, None] * group).T]
    return np.column_stack(columns)


def _fit_models(
    booster: Any, X: Any, targets: Sequence[Any], weight: Any, rows: Any
) -> _FoldModels:
    """Fit a clone of the booster for each target on some of the rows."""
    part = _safe_indexing(X, rows)
    extra = {} if weight is None else {"sample_weight": weight[rows]}
    return _FoldModels(*(clone(booster).fit(part, target[rows], **extra) for target in targets))


class _Leaves:
    """Which leaf of each of a few small trees a row falls into, one-hot.

    HistGradientBoosting has no ``apply``; but a tree adds the same to the score of all rows in a
    leaf, and so the steps of ``staged_decision_function`` tell the leaves apart.
    """

    def __init__(self, n_trees: int, seed: int) -> None:
        from sklearn.ensemble import HistGradientBoostingClassifier
        from sklearn.preprocessing import OneHotEncoder

        self.model = HistGradientBoostingClassifier(
            max_iter=n_trees,
            max_leaf_nodes=8,
            min_samples_leaf=50,
            learning_rate=0.3,
            early_stopping=False,
            random_state=seed,
        )
        self.encoder = OneHotEncoder(handle_unknown="ignore", sparse_output=False)

    def _steps(self, X: Any) -> FloatArray:
        stages = np.array(list(self.model.staged_decision_function(X)))
        # Differences of sums: the same leaf's may differ in the last digits.
        steps = np.moveaxis(np.diff(stages, axis=0, prepend=0.0), 1, 0)
        return np.round(steps.reshape(len(steps), -1), 9).astype(np.float64)

    def fit(self, X: Any, y: Any, weight: Any) -> FloatArray:
        """Fit on all rows; leaves of models that have seen different rows have nothing in common.

        Returns the columns of X.
        """
        self.model.fit(X, y, sample_weight=weight)
        return np.asarray(self.encoder.fit_transform(self._steps(X)))

    def __call__(self, X: Any) -> FloatArray:
        return np.asarray(self.encoder.transform(self._steps(X)))


def _check_scorer(scorer: Any, name: str) -> None:
    if not (hasattr(scorer, "decision_function") or hasattr(scorer, "predict_proba")):
        raise ValueError(f"{name} has neither decision_function nor predict_proba.")
    if hasattr(scorer, "fit"):
        try:
            check_is_fitted(scorer)
        except NotFittedError:
            raise ValueError(
                f"{name} is not fitted, and is never fitted here; fit it first, on other rows."
            ) from None


def _scorer_column(scorer: Any, X: Any, name: str) -> FloatArray:
    """Score of each row by a fitted estimator: its decision function, or P of its second class."""
    if hasattr(scorer, "decision_function"):
        scores = np.asarray(scorer.decision_function(X), dtype=np.float64)
    else:
        scores = np.asarray(scorer.predict_proba(X), dtype=np.float64)
        scores = scores[:, 1] if scores.ndim == 2 and scores.shape[1] == 2 else scores
    if scores.shape != (X.shape[0],):
        raise ValueError(
            f"{name} gave scores of shape {scores.shape} for {X.shape[0]} rows; one score per row "
            "is needed, as two-class estimators give."
        )
    if not np.isfinite(scores).all():
        raise ValueError(f"{name} gave scores that are NaN or infinite; they cannot be a column.")
    return scores


def _check_kinds(X: pd.DataFrame) -> None:
    """Refuse columns that are neither numbers nor categories."""
    for name, dtype in X.dtypes.items():
        if not (pd.api.types.is_numeric_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype)):
            raise ValueError(
                f"column {name!r} of X is of type {dtype}; make it numbers, or categories with "
                f"X.astype({{{name!r}: 'category'}})."
            )


class FairBoostedClassifier(ClassifierMixin, BaseEstimator):
    r"""Fair classifier as strong as gradient boosting, with the whole frontier of one fit.

    Two boosted models, of the label and of the group given X, are fitted K times, each time without
    one fold. The columns of a training row come from the models that have not seen it,

    .. math:: \phi(x_i) = \big(\operatorname{logit} p_{-i},\; p_{-i},\; q_{-i}\big)(x_i), \qquad
        p \approx P(y{=}1 \mid x),\quad q_k \approx P(z{=}k \mid x),

    those of a new row are the mean over all K models. Standardised, they are the inputs of a
    :class:`~evenhand.FairClassifier`: solver, frontier and selection are its own. Its score being
    linear, the mean over the columns of the K models is the mean over the K scores.

    Group and label are needed to fit, not to predict. But the model contains an estimate of the
    group and uses it: see the user guide's page on boosting.

    ``rate_``, ``accuracy_`` and ``frontier_`` are out of fold too: they are what models that had
    not seen a row say of it. ``predict`` on the training rows gives other, better looking figures,
    since all K models answer and most of them have seen the row.

    Parameters
    ----------
    notion : {"statistical_parity", "false_discovery"}, default="statistical_parity"
        Which rate the groups shall share.
    tau : float, default=0.8
        Least ratio of the smallest to the largest group rate.
    classifier : FairClassifier, optional
        The engine, with parameters of its own such as ``mu``; it is cloned. ``notion``, ``tau``
        and ``sensitive_feature`` are those given here.
    booster : estimator, optional
        Model of label and group, with ``fit(X, y)`` and ``predict_proba``; it is cloned. By default
        ``HistGradientBoostingClassifier(learning_rate=0.05, max_iter=400, max_leaf_nodes=15,
        early_stopping=True)``: the usual one overfits tables of a few thousand rows.
    n_folds : int, default=5
        K.
    interactions : bool, default=False
        Add the columns :math:`p\,q_k`. Statistical parity does not need them; the optimum for rates
        that depend on the label is bilinear in p and q.
    leaves : int, default=0
        Add the leaves of this many trees, for label and for group each, as indicators. Trees that
        have seen different rows have no leaves in common, so these are fitted on all rows: such
        columns are not out of fold. They gained nothing on Adult and cost accuracy on COMPAS.
    scorers : sequence of fitted estimators, default=()
        The score of each, ``decision_function`` or else the probability of its second class, is one
        more column. They are given X without the group column and are never fitted, not even copies
        of them. Use estimators that were fitted on other rows.
    sensitive_feature : int, str or callable, optional
        Where to find the groups when ``fit`` is not given ``sensitive_features``: a column of X by
        index or name, which is then not an input, or a function of X.
    random_state : int, RandomState or None, default=None
        Seed of folds and boosting.
    n_jobs : int, optional
        Folds fitted at once. Boosting uses several threads already; more jobs help on tables too
        small for that.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the favourable one.
    groups_ : ndarray of shape (n_groups,)
        The groups.
    classifier_ : FairClassifier
        The fitted engine; ``classifier_.coef_`` are the weights of the standardised columns.
    column_names_ : list of str
        What the columns are.
    models_ : list of pairs (label, group)
        The boosted models that have not seen a fold.
    folds_ : ndarray of shape (n_samples,)
        Fold of each row of positive weight.
    columns_ : ndarray of shape (n_samples, n_columns)
        Columns of those rows before standardisation.
    scaler_ : StandardScaler
        Standardises the columns, but for leaves.
    frontier_ : Frontier
        Accuracy and rate, out of fold, of every point worth choosing.
    trajectory_ : Trajectory
        The engine's run.
    rate_, accuracy_ : float
        Rate and accuracy of the chosen point, out of fold.
    feasible_ : bool
        Whether ``rate_`` reaches ``tau``.
    converged_ : bool
        False if the engine's run diverged or was interrupted.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from evenhand import FairBoostedClassifier
    >>> from evenhand.datasets import load_german
    >>> data = load_german()
    >>> model = FairBoostedClassifier(
    ...     tau=0.9, booster=HistGradientBoostingClassifier(max_iter=10), random_state=0)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.feasible_, model.column_names_
    (True, ['label logit', 'label probability', 'group probability[male]'])
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "notion": [str],  # the engine looks it up
        "tau": [Interval(Real, 0, 1, closed="right")],
        "classifier": [FairClassifier, None],
        "booster": [HasMethods(["fit", "predict_proba"]), None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "interactions": ["boolean"],
        "leaves": [Interval(Integral, 0, None, closed="left")],
        "scorers": [list, tuple],
        "sensitive_feature": [Integral, str, callable, None],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __init__(
        self,
        notion: str = "statistical_parity",
        tau: float = 0.8,
        *,
        classifier: FairClassifier | None = None,
        booster: Any = None,
        n_folds: int = 5,
        interactions: bool = False,
        leaves: int = 0,
        scorers: Sequence[Any] = (),
        sensitive_feature: int | str | Callable[[Any], Any] | None = None,
        random_state: Any = None,
        n_jobs: int | None = None,
    ) -> None:
        self.notion = notion
        self.tau = tau
        self.classifier = classifier
        self.booster = booster
        self.n_folds = n_folds
        self.interactions = interactions
        self.leaves = leaves
        self.scorers = scorers
        self.sensitive_feature = sensitive_feature
        self.random_state = random_state
        self.n_jobs = n_jobs

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
        tags.input_tags.allow_nan = True
        tags.non_deterministic = (
            self.classifier is not None and self.classifier.extra_column == "noise"
        )
        return tags

    def __sklearn_clone__(self) -> FairBoostedClassifier:
        # clone would make unfitted copies of the scorers.
        bare = copy(self)
        bare.scorers = ()
        other: FairBoostedClassifier = BaseEstimator.__sklearn_clone__(bare)
        other.scorers = self.scorers
        return other

    def fit(
        self, X: Any, y: Any, *, sensitive_features: Any = None, sample_weight: Any = None
    ) -> FairBoostedClassifier:
        """Fit the boosted models, and the classifier and its frontier on their columns.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs: numbers of any scales, in a DataFrame also pandas categories; NaN is a value
            like others. Not sparse.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,), optional
            Group of each row. Not needed if the constructor's ``sensitive_feature`` says where to
            find it.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, for boosting, standardisation and rates. A row of weight 0 is as if not
            there; one of weight 2 is not quite two rows, which would be in two folds.

        Returns
        -------
        FairBoostedClassifier
            The fitted estimator.
        """
        from sklearn.preprocessing import StandardScaler

        self._validate_params()
        engine = self._engine()
        for i, scorer in enumerate(self.scorers):
            _check_scorer(scorer, f"scorers[{i}]")
        check_labels(y)
        where = self.sensitive_feature
        table = as_table(X) if isinstance(where, int | str) else X
        column = group_column(table, where, sensitive_features)
        X, y = self._check(table, column, y, reset=True)
        weight, used = check_weights(X, sample_weight)
        groups = find_groups(table, column, where, sensitive_features, used)
        # Row numbers stand in for X, which may have categories.
        rows = code_rows(np.arange(X.shape[0])[:, None], y, groups, weight, used, None)
        X = X if used is None else _safe_indexing(X, used)
        self.classes_, self.groups_, self._column = rows.classes, rows.groups, column
        rng = check_random_state(self.random_state)
        self.folds_ = deal_folds(rows.z * 2 + rows.y, self.n_folds, rng)
        self._check_folds(rows)
        seed = int(rng.randint(np.iinfo(np.int32).max))
        self.columns_ = self._fit_columns(X, rows, seed)
        n_scaled = len(self.column_names_) - self._n_leaves
        self.scaler_ = StandardScaler().fit(self.columns_[:, :n_scaled], sample_weight=rows.weight)
        if engine.random_state is None:
            engine.set_params(random_state=seed)
        self.classifier_ = engine.fit(
            self._scale(self.columns_),
            rows.classes[rows.y],
            sensitive_features=rows.groups[rows.z],
            sample_weight=rows.weight,
        )
        return self._adopt()

    def _engine(self) -> FairClassifier:
        """Clone the engine and give it what is decided here."""
        engine = FairClassifier() if self.classifier is None else clone(self.classifier)
        usual = FairClassifier().get_params()
        for name in ("notion", "tau", "sensitive_feature"):
            held = getattr(engine, name)
            if held != usual[name] and held != getattr(self, name):
                raise ValueError(
                    f"classifier has {name}={held!r}; give {name} to FairBoostedClassifier itself."
                )
        return engine.set_params(notion=self.notion, tau=self.tau, sensitive_feature=None)

    def _check(self, X: Any, column: int | None, y: Any = "no_validation", *, reset: bool) -> Any:
        """Check X, and y if given, as scikit-learn does; leave out the group column.

        A frame stays a frame, for its categories and for scorers that know its names.
        """
        table = blank_groups(as_table(X), column)
        is_frame = hasattr(table, "iloc")
        options: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        if is_frame:
            _check_kinds(table)
            if any(isinstance(kind, pd.CategoricalDtype) for kind in table.dtypes):
                options = {"skip_check_array": True}
        checked = validate_data(self, table, y, reset=reset, **options)
        if isinstance(y, str) and y == "no_validation":
            checked, y = checked, None
        else:
            checked, y = checked
            y = column_or_1d(y, warn=True)
            check_consistent_length(table, y)
        X = table if is_frame else checked
        if column is not None:
            if X.shape[1] == 1:
                raise ValueError(
                    "X has no column but the sensitive one; there is nothing to learn from."
                )
            others = np.delete(np.arange(X.shape[1]), column)
            X = X.iloc[:, others] if is_frame else X[:, others]
        return X if y is None else (X, y)

    def _check_folds(self, rows: CodedRows) -> None:
        """Refuse folds that are empty or whose models would not know all labels and groups."""
        if len(rows.y) < self.n_folds:
            raise ValueError(f"n_folds={self.n_folds}, but there are only {len(rows.y)} rows.")
        for what, code, levels in (
            ("label", rows.y, rows.classes),
            ("group", rows.z, rows.groups),
        ):
            known = np.zeros((self.n_folds, len(levels)), dtype=bool)
            known[self.folds_, code] = True
            few = np.flatnonzero(known.sum(axis=0) < 2)
            if len(few):
                n = int(np.sum(code == few[0]))
                raise ValueError(
                    f"{what} '{levels[few[0]]}' has {n} row{'s' * (n != 1)}, too few for "
                    f"{self.n_folds} folds: models fitted without that fold would not know it."
                )

    def _fit_columns(self, X: Any, rows: CodedRows, seed: int) -> FloatArray:
        """Fit the models; columns of the training rows, out of fold, and their names."""
        booster = clone(self.booster) if self.booster is not None else default_booster()
        if booster.get_params().get("random_state", seed) is None:
            booster.set_params(random_state=seed)
        targets = rows.y, rows.z
        folds = range(self.n_folds)
        self.models_ = Parallel(n_jobs=self.n_jobs)(
            delayed(_fit_models)(booster, X, targets, rows.weight, np.flatnonzero(self.folds_ != k))
            for k in folds
        )
        held = [np.flatnonzero(self.folds_ == k) for k in folds]
        parts = [
            self._model_columns(models, _safe_indexing(X, part))
            for models, part in zip(self.models_, held, strict=True)
        ]
        columns = np.empty((len(rows.y), parts[0].shape[1]))
        columns[np.concatenate(held)] = np.concatenate(parts)
        self._leaves = [_Leaves(self.leaves, seed) for _ in targets] if self.leaves else []
        leaves = [
            trees.fit(X, target, rows.weight)
            for trees, target in zip(self._leaves, targets, strict=False)
        ]
        self._n_leaves = sum(found.shape[1] for found in leaves)
        others = [str(group) for group in rows.groups[1:]]
        self.column_names_ = ["label logit", "label probability"]
        self.column_names_ += [f"group probability[{group}]" for group in others]
        if self.interactions:
            self.column_names_ += [f"both probabilities[{group}]" for group in others]
        self.column_names_ += [f"scorers[{i}]" for i in range(len(self.scorers))]
        for name, found in zip(("label", "group"), leaves, strict=False):
            self.column_names_ += [f"{name} leaf {i}" for i in range(found.shape[1])]
        return np.column_stack([columns, *self._scores(X), *leaves])

    def _scale(self, columns: FloatArray) -> FloatArray:
        """Standardise all but the leaves: of a rare leaf's indicator one would make a giant."""
        n_scaled = self.scaler_.n_features_in_
        return np.column_stack(
            [self.scaler_.transform(columns[:, :n_scaled]), columns[:, n_scaled:]]
        )

    def _model_columns(self, models: _FoldModels, X: Any) -> FloatArray:
        label, group = (np.asarray(model.predict_proba(X), dtype=np.float64) for model in models)
        return probability_columns(label[:, 1], group[:, 1:], interactions=self.interactions)

    def _scores(self, X: Any) -> list[FloatArray]:
        return [_scorer_column(s, X, f"scorers[{i}]") for i, s in enumerate(self.scorers)]

    def _adopt(self) -> FairBoostedClassifier:
        """Show the engine's findings as one's own."""
        for name in ("frontier_", "trajectory_", "rate_", "accuracy_", "feasible_", "converged_"):
            setattr(self, name, getattr(self.classifier_, name))
        return self

    def at(self, tau: float) -> FairBoostedClassifier:
        """Give the same fit at another target, without training.

        Parameters
        ----------
        tau : float
            The new target, in (0, 1].

        Returns
        -------
        FairBoostedClassifier
            A fitted classifier; this one stays as it is.
        """
        check_is_fitted(self)
        other = copy(self)
        other.tau = tau
        other._validate_params()
        other.classifier_ = self.classifier_.at(tau)
        return other._adopt()

    def columns(self, X: Any) -> FloatArray:
        """Columns of new rows, standardised: the inputs of ``classifier_``.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            In the order of ``column_names_``.
        """
        check_is_fitted(self)
        X = self._check(X, self._column, reset=False)
        columns = np.mean([self._model_columns(models, X) for models in self.models_], axis=0)
        leaves = [trees(X) for trees in self._leaves]
        return self._scale(np.column_stack([columns, *self._scores(X), *leaves]))

    def decision_function(self, X: Any) -> FloatArray:
        """Score less the chosen cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Mean score of the models, less the cut.
        """
        columns = self.columns(X)
        return self.classifier_.decision_function(columns)

    def predict(self, X: Any) -> Any:
        """Predicted label of each row.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        positive = self.decision_function(X) > 0
        return self.classes_[positive.astype(np.intp)]

    def predict_proba(self, X: Any) -> FloatArray:
        """Sigmoid of :meth:`decision_function`, a score between 0 and 1.

        It is above one half where the prediction is positive, but it is not calibrated: fairness
        and the cut move it away from the label's frequency.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        positive = expit(self.decision_function(X))
        return np.column_stack([1 - positive, positive])
