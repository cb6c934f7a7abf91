r"""FairBoostedClassifier: the linear engine on columns that gradient boosting makes.

Among classifiers that do not see the group, the most accurate one at given rates of the groups
cuts a linear function of probabilities,

.. math:: \hat y = \Big[\,P(y{=}1 \mid x) - \sum_{yk} \lambda_{yk}\, P(y, z{=}k \mid x) > c\,\Big],

because both the accuracy and each group's rates are linear in the decision, with these
probabilities as coefficients. So a linear model needs no more than good estimates of them, and
:class:`~evenhand.FairClassifier` finds λ and c, and every other point of the frontier.

Boosted models know the labels of the rows they were fitted to. So rows that a selection holds out
are set aside before any model is fitted, and :class:`BoostedColumns` is made anew for each split.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import check_is_fitted, column_or_1d, validate_data

from evenhand._extras import documented
from evenhand._sklearn import ChecksParameters, HasMethods, Interval, safe_indexing
from evenhand.core.errors import InputError, Parameter
from evenhand.engines.coding import joined
from evenhand.models.boosted_columns import BoostedColumns, check_scorer
from evenhand.models.card import ShowsSummary
from evenhand.models.classifier import FOUND, FairClassifier
from evenhand.models.fit_rows import code_persons
from evenhand.models.inputs import (
    CodedRows,
    as_table,
    blank_groups,
    check_labels,
    check_not_alone,
    code_known_groups,
    code_rows,
    find_groups,
    group_column,
    take_rows,
)
from evenhand.models.training import Fit, learn

__all__ = ["FairBoostedClassifier"]

FloatArray = NDArray[np.float64]


def shown(booster: Any) -> str:
    """Write a booster's class and parameters on one line."""
    return " ".join(repr(booster).split())


def _check_kinds(X: pd.DataFrame, *, text: bool) -> None:
    """Refuse columns that are neither numbers nor categories, nor text where that may be."""
    are = pd.api.types
    others = {
        str(name): dtype
        for name, dtype in X.dtypes.items()
        if not (are.is_numeric_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype))
        if not (text and (are.is_object_dtype(dtype) or are.is_string_dtype(dtype)))
    }
    if others:
        raise InputError(
            "neither_numbers_nor_categories",
            described=joined([f"{name!r} is {dtype}" for name, dtype in others.items()], 10),
            columns=[*others],
        )


@documented(FairClassifier.__doc__)
@documented("""
X : array-like or DataFrame of shape (n_samples, n_features)
    Inputs.
sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes), optional
    Group of each row; needed with ``group_cuts``, else not looked at.
""")
@dataclass(eq=False, repr=False)
class FairBoostedClassifier(ShowsSummary, ChecksParameters, ClassifierMixin, BaseEstimator):
    r"""Fair classifier as strong as gradient boosting, with the whole frontier of one fit.

    Boosted models of the label, and of the group among the rows of each label, are fitted K times,
    each time without one fold. The columns of a training row come from the models that have not
    seen it,

    .. math:: \phi(x_i) = \big(\operatorname{logit} p_{-i},\; p_{-i},\; q_{-i},\; r_{-i}\big)(x_i),

    with :math:`p \approx P(y{=}1 \mid x)`, :math:`q_k \approx P(z{=}k \mid x)` and
    :math:`r_k \approx P(y{=}1, z{=}k \mid x) = P(y{=}1 \mid x)\,P(z{=}k \mid x, y{=}1)`, and the
    columns of a new row are the mean over all K models. Standardised, they are inputs of a
    :class:`~evenhand.FairClassifier`: solver, frontier and selection are its own. Its score being
    linear, the mean over the columns of the K models is the mean over the K scores. Directions that
    are optimal if the estimates are right (:mod:`evenhand.models.directions`) join its iterates.

    Group and label are needed to fit, not to predict. But the model contains an estimate of the
    group and uses it: see the user guide's page on boosting.

    ``rate_``, ``accuracy_`` and ``frontier_`` are out of fold too: they are what models that had
    not seen a row say of it. ``predict`` on the training rows gives other, better looking figures,
    since all K models answer and most of them have seen the row.

    Rows that ``selection`` holds out are set aside before boosting. No model has seen them, and all
    K models answer for them, as they do for new rows. ``"crossfit"`` repeats the whole fit,
    boosting and all, for each of ``cv`` folds, which are not the K above.

    Parameters
    ----------
    notion, tau, epsilon
    classifier : FairClassifier, optional
        The engine, with parameters of its own such as ``method``; it is cloned. What is a parameter
        here as well, such as ``tau``, is given here.
    booster : estimator, optional
        Model of label and group, with ``fit(X, y)`` and ``predict_proba``; it is cloned. By default
        LightGBM's if that is installed, else scikit-learn's, both so that they stop early
        (:func:`evenhand.models.boosted_columns.default_booster`); ``booster_`` says which it was.
    n_folds : int, default=5
        K.
    scorers : sequence of fitted estimators, default=()
        The score of each, ``decision_function`` or else the probability of its second class, is one
        more column. They are given X without the group column and are never fitted, not even copies
        of them. Use estimators that were fitted on other rows: no certificate holds for one that
        has seen the held-out rows.
    confidence, selection, holdout, cv, delta
    sensitive_features : int, str or callable, optional
        Where to find the groups when ``fit`` is not given ``sensitive_features``: a column of X by
        index or name, which is then not an input, or a function of X.
    min_group_size : int, default=30
        Of more than two groups, those with fewer rows are fitted but neither compared nor guessed.
        They are in ``small_groups_``.
    pos_label, survey_weights
    group_cuts : bool, default=False
        Attribute-aware: the group is an input of the label's model, ``predict`` needs it, and each
        group has its own cut; nothing estimates the group then. Two labels only.
    attributes, objective
    bins : int or list of float, optional
        The sensitive attribute is a number, such as age. Rates are compared between bins, as many
        of equal size or those between the values given, and each bin has its probability column.
    random_state : int, RandomState or None, default=None
        Seed of folds, of boosting and, unless the engine has one of its own, of the rows held out.
    n_jobs : int, optional
        Models fitted at once, each on one thread; by default as many as there are cores to use.

    Attributes
    ----------
    classes_, groups_, small_groups_
    classifier_ : FairClassifier
        The fitted engine; ``classifier_.coef_`` are the weights of the standardised columns.
    column_names_ : list of str
        What the columns are.
    booster_ : str
        The booster that was used, in words.
    models_ : list of pairs (label, groups)
        Models that have not seen a fold, of the label and of the group of each label's rows:
        called with inputs they give probabilities; ``model`` is the library's and ``forest`` its
        trees.
    maker_ : BoostedColumns
        What makes the columns.
    folds_ : ndarray of shape (n_samples,)
        Fold of each row of positive weight; −1 for rows held out.
    columns_ : ndarray of shape (n_samples, n_columns)
        Columns of those rows before standardisation: out of fold, or for rows held out the means
        over the models, none of which has seen them.
    scaler_ : StandardScaler
        Standardises the columns.
    frontier_, point_, held_out_, answers_, guarantee_, trajectory_, target_
    rate_, rate_bound_, accuracy_, value_, feasible_, converged_, n_iter_, n_features_in_
    feature_names_in_

    Examples
    --------
    >>> from sklearn.ensemble import HistGradientBoostingClassifier
    >>> from evenhand import FairBoostedClassifier
    >>> from evenhand.datasets import load_german
    >>> data = load_german()
    >>> model = FairBoostedClassifier(
    ...     tau=0.9, booster=HistGradientBoostingClassifier(max_iter=10), random_state=0)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.feasible_, model.column_names_[2:]
    (True, ['group probability[male]', 'both probabilities[male]'])
    """

    notion: str | Sequence[str] = "statistical_parity"
    tau: float | Sequence[float | None] | None = None
    epsilon: float | Sequence[float | None] | None = None
    _: KW_ONLY
    classifier: FairClassifier | None = None
    booster: Any = None
    n_folds: int = 5
    scorers: Sequence[Any] = ()
    confidence: float | str | None = 0.9
    selection: str = "train"
    holdout: float = 0.5
    cv: Any = 5
    delta: float = 0.05
    sensitive_features: int | str | Callable[[Any], Any] | None = None
    min_group_size: int = 30
    pos_label: Any = None
    survey_weights: bool = False
    group_cuts: bool = False
    bins: Any = None
    attributes: str = "crossed"
    objective: str | Mapping[str, float] = "accuracy"
    random_state: Any = None
    n_jobs: int | None = None

    takes_text: ClassVar[bool] = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairClassifier._parameter_constraints,
        "classifier": [FairClassifier, None],
        "booster": [HasMethods(["fit", "predict_proba"]), None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "scorers": [list, tuple],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.non_deterministic = self.classifier is not None and self.classifier.method.noise
        return tags

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "classifier_")  # the last of what a fit sets

    def __sklearn_clone__(self) -> FairBoostedClassifier:
        # clone would make unfitted copies of the scorers.
        bare = copy(self)
        bare.scorers = ()
        other: FairBoostedClassifier = BaseEstimator.__sklearn_clone__(bare)
        other.scorers = self.scorers
        return other

    @documented(FairClassifier.fit.__doc__)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        persons: Any = None,
    ) -> FairBoostedClassifier:
        """Fit the boosted models, and the classifier and its frontier on their columns.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs: numbers of any scales, in a DataFrame also pandas categories; NaN is a value
            like others. Not sparse.
        y : array-like of shape (n_samples,)
            Labels of any type, two or more.
        sensitive_features
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, for boosting, standardisation and rates. A row of weight 0 is as if not
            there; one of weight 2 is not quite two rows, which would be in two folds.
        persons

        Returns
        -------
        FairBoostedClassifier
            The fitted estimator.
        """
        self._validate_params()
        engine = self._engine()
        for i, scorer in enumerate(self.scorers):
            check_scorer(scorer, f"scorers[{i}]")
        check_labels(y)
        where = self.sensitive_features
        table = as_table(X) if isinstance(where, int | str) else X
        column = group_column(table, where, sensitive_features)
        X, y = self._check(table, column, y, reset=True)
        settings = engine.settings()
        rows = code_rows(
            np.arange(X.shape[0])[:, None],  # stands in for X, which may have categories
            y,
            sensitive_features,
            sample_weight,
            table=table,
            column=column,
            where=where,
            **settings.coding,
        )
        if persons is not None:
            rows = rows._replace(person=code_persons(persons, settings, rows, sample_weight))
        settings.check_classes(rows.classes)
        labels = settings.label_order(rows.classes)
        rate = settings.notion_of(len(labels), settings.favourable(rows.classes)).rate
        objective = settings.objective_of(len(labels))
        random = check_random_state(self.random_state)
        # Drawn for all rows before any are set aside: no draw depends on a label.
        order = random.permutation(len(rows.y))
        seed = int(random.randint(np.iinfo(np.int32).max))
        if engine.random_state is None:
            engine.set_params(random_state=seed)
        random = check_random_state(engine.random_state)
        if settings.method.noise:
            rows = rows._replace(extra=random.uniform(size=len(rows.y)))
        kept: list[tuple[BoostedColumns, NDArray[np.intp], FloatArray]] = []

        def view(fitted: Any, held: Any) -> tuple[CodedRows, CodedRows]:
            fitted = np.arange(len(rows.y)) if fitted is None else fitted
            part, rest = take_rows(rows, fitted), take_rows(rows, held)
            maker = self._maker(seed, X, column)
            among = " to fit to" if len(held) else ""
            part = part._replace(classes=labels)
            columns = maker.fit(safe_indexing(X, part.X[:, 0]), part, order[fitted], among)
            directions = None if settings.method.noise else maker.directions(part, rate, objective)
            part = part._replace(classes=rows.classes, directions=directions)
            others = scaled = np.empty((0, columns.shape[1]))
            if len(held):
                others = maker(safe_indexing(X, rest.X[:, 0]), rest.z)
                scaled = maker.scale(others)
            if not kept:  # a cross-fit makes others later, and needs only their counts
                folds, made = np.full(len(rows.y), -1), np.empty((len(rows.y), columns.shape[1]))
                folds[fitted], made[fitted], made[held] = maker.folds, columns, others
                kept.append((maker, folds, made))
            inputs = np.arange(columns.shape[1])
            return (
                part._replace(X=maker.scale(columns), inputs=inputs),
                rest._replace(X=scaled, inputs=inputs),
            )

        fit = learn(rows, settings, random, view)
        columns, self.folds_, self.columns_ = kept[0]
        engine.n_features_in_ = len(columns.names)
        return self.adopt(engine.adopt(fit), columns, column, shown(columns.booster))

    def adopt(
        self,
        engine: FairClassifier,
        columns: BoostedColumns,
        group_column: int | None,
        booster: str,
    ) -> FairBoostedClassifier:
        """Become the classifier of a fitted engine and of what makes its columns.

        Parameters
        ----------
        engine : FairClassifier
            Fitted to the columns.
        columns : BoostedColumns
            Fitted.
        group_column : int or None
            Column of X that is sensitive and no input.
        booster : str
            The booster, in words.

        Returns
        -------
        FairBoostedClassifier
            This estimator, fitted.
        """
        self.maker_, self.group_column_, self.booster_ = columns, group_column, booster
        self.models_, self.scaler_ = columns.models, columns.scaler
        self.column_names_, self.classes_ = columns.names, engine.classes_
        self.classifier_ = engine
        return self._show()

    def check_parameters(self) -> None:
        """Refuse parameters out of range."""
        self._validate_params()

    def _engine(self) -> FairClassifier:
        """Clone the engine and give it what is decided here."""
        usual, own = FairClassifier(), self.get_params(deep=False)
        engine = usual if self.classifier is None else clone(self.classifier)
        shared = usual.get_params(deep=False).keys() & own.keys() - {"random_state"}
        for name in sorted(shared):
            value, default = getattr(engine, name), getattr(usual, name)
            if not (isinstance(value, type(default)) and value == default):
                raise InputError(
                    "parameter_of_engine",
                    parameter=Parameter(name, value),
                    name=name,
                    owner=type(self).__name__,
                )
        engine.set_params(**{name: own[name] for name in shared} | {"sensitive_features": None})
        settings = engine.settings()  # its errors come before long work
        on_folds = settings.place == "train" and self._out_of_fold
        if settings.group_cuts and on_folds and settings.margin:
            raise InputError(
                "boosted_group_cuts",
                cuts=Parameter("group_cuts", True),
                confidence=Parameter("confidence", self.confidence),
                crossfit=Parameter("selection", "crossfit"),
                holdout=Parameter("selection", "holdout"),
                none=Parameter("confidence", None),
            )
        return engine

    def _maker(self, seed: int, X: Any, column: int | None) -> BoostedColumns:
        brought = self._brought(seed, X, column)
        only = brought is not None and brought.is_all_of(X.shape[1])
        return BoostedColumns(
            self.booster,
            n_folds=self.n_folds,
            scorers=self.scorers,
            n_jobs=self.n_jobs,
            seed=seed,
            aware=self.group_cuts or only,
            brought=brought,
        )

    def _brought(self, seed: int, X: Any, column: int | None) -> Any:
        """Give what makes the label's models, if that is not the booster."""
        return None

    @property
    def _out_of_fold(self) -> bool:
        """Whether the label's model is fitted here: K models, which all answer for new rows."""
        return True

    def _check(self, X: Any, column: int | None, y: Any = None, *, reset: bool) -> Any:
        """Check X, and y if given, as scikit-learn does; leave out the group column.

        A frame stays a frame, for its categories and for scorers that know its names.
        """
        table = blank_groups(as_table(X), column)
        is_frame = hasattr(table, "iloc")
        options: dict[str, Any] = {"dtype": np.float64, "ensure_all_finite": "allow-nan"}
        if is_frame:
            _check_kinds(table, text=self.takes_text)
            if not all(pd.api.types.is_numeric_dtype(kind) for kind in table.dtypes):
                options = {"skip_check_array": True}
        if reset:
            options["y"] = y
        X = validate_data(self, table, reset=reset, **options)
        if reset:
            X, y = X[0], column_or_1d(X[1], warn=True)
            check_consistent_length(table, y)
        X = table if is_frame else X
        if column is not None:
            check_not_alone(X)
            others = np.delete(np.arange(X.shape[1]), column)
            X = X.iloc[:, others] if is_frame else X[:, others]
        return (X, y) if reset else X

    def _show(self) -> FairBoostedClassifier:
        """Show the engine's findings as one's own."""
        for name in FOUND:
            setattr(self, name, getattr(self.classifier_, name))
        return self

    @documented(FairClassifier.at.__doc__)
    def at(self, tau: Any = None, *, epsilon: Any = None) -> FairBoostedClassifier:
        """Give the same fit at another target, without training.

        Parameters
        ----------
        tau, epsilon

        Returns
        -------
        FairBoostedClassifier
            A fitted classifier; this one stays as it is.
        """
        check_is_fitted(self)
        other = copy(self)
        other.tau, other.epsilon = tau, epsilon
        other._validate_params()
        other.classifier_ = self.classifier_.at(tau, epsilon=epsilon)
        other.tau, other.epsilon = other.classifier_.tau, other.classifier_.epsilon
        return other._show()

    @property
    def needs_group(self) -> bool:
        """Whether ``predict`` must be told each row's group."""
        return bool(self.group_cuts)

    @property
    def fitted_(self) -> Fit:
        """All that the engine's fit found."""
        return self.classifier_.fitted_

    def columns(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Columns of new rows, standardised: the inputs of ``classifier_``.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            In the order of ``column_names_``.
        """
        return self._columns_of(X, sensitive_features)[0]

    def estimates(self, X: Any, *, sensitive_features: Any = None) -> tuple[FloatArray, FloatArray]:
        """Estimated probabilities of the labels and of the groups, means over the models.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        tuple of (ndarray, ndarray)
            P(label | x), the favourable one of two last, and P(group | x) of ``groups_``; where the
            group is known, a column of ones.
        """
        X, z, _ = self._checked(X, sensitive_features)
        joint = self.maker_.joint_of(X, z)
        return joint.sum(axis=2), joint.sum(axis=1)

    def _columns_of(self, X: Any, sensitive_features: Any) -> tuple[FloatArray, Any]:
        """Give the standardised columns of new rows, and their groups if these are needed."""
        X, z, groups = self._checked(X, sensitive_features)
        return self.maker_.scale(self.maker_(X, z)), groups

    def _checked(self, X: Any, sensitive_features: Any) -> tuple[Any, Any, Any]:
        """Check new rows; give them with their groups, numbered and as given, if needed."""
        check_is_fitted(self)
        where, groups = self.sensitive_features, sensitive_features
        table = as_table(X) if isinstance(where, int | str) else X
        X = self._check(X, self.group_column_, reset=False)
        if not self.group_cuts:
            return X, None, None
        if groups is None and where is not None:
            groups = find_groups(table, self.group_column_, where, None, None)
        fit = self.fitted_
        small, edges = fit.small_groups, fit.edges
        aware = f"a {type(self).__name__} with group_cuts=True"
        z = code_known_groups(aware, fit.groups, groups, X.shape[0], small=small, edges=edges)
        return X, z, groups

    def decision_function(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
        """Score less the chosen cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X, sensitive_features

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            Mean score of the models, less the cut; of more than two labels one for each.
        """
        columns, groups = self._columns_of(X, sensitive_features)
        return self.classifier_.decision_function(columns, sensitive_features=groups)

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
        columns, groups = self._columns_of(X, sensitive_features)
        return self.classifier_.predict(columns, sensitive_features=groups)

    def predict_proba(self, X: Any, *, sensitive_features: Any = None) -> FloatArray:
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
        columns, groups = self._columns_of(X, sensitive_features)
        return self.classifier_.predict_proba(columns, sensitive_features=groups)

    @documented(FairClassifier.score.__doc__)
    def score(
        self, X: Any, y: Any, sample_weight: Any = None, *, sensitive_features: Any = None
    ) -> float:
        """Accuracy of the predictions.

        Parameters
        ----------
        X, y, sample_weight, sensitive_features

        Returns
        -------
        float
            Share of right predictions.
        """
        answer = self.predict(X, sensitive_features=sensitive_features)
        return float(np.average(answer == column_or_1d(y), weights=sample_weight))
