r"""FairBoostedClassifier: the linear engine on columns that gradient boosting makes.

Among classifiers that do not see the group, the most accurate one at given ratios of selection
rates cuts a linear function of probabilities,

.. math:: \hat y = \Big[\,P(y{=}1 \mid x) - \sum_k \lambda_k\, P(z{=}k \mid x) > c\,\Big],

because both the accuracy and each group's selection rate are linear in the decision, with these
probabilities as coefficients. So a linear model needs no more than good estimates of them, and
:class:`~evenhand.FairClassifier` finds λ and c, and every other point of the frontier.

Boosted models know the labels of the rows they were fitted to. So rows that a selection holds out
are set aside before any model is fitted, and :class:`BoostedColumns` is made anew for each split.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
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
from evenhand.models.inputs import (
    CodedRows,
    as_table,
    blank_groups,
    check_labels,
    check_not_alone,
    code_rows,
    group_column,
    take_rows,
)
from evenhand.models.training import learn

__all__ = ["FairBoostedClassifier"]

FloatArray = NDArray[np.float64]


def _check_kinds(X: pd.DataFrame) -> None:
    """Refuse columns that are neither numbers nor categories."""
    others = {
        str(name): dtype
        for name, dtype in X.dtypes.items()
        if not (pd.api.types.is_numeric_dtype(dtype) or isinstance(dtype, pd.CategoricalDtype))
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
""")
@dataclass(eq=False, repr=False)
class FairBoostedClassifier(ShowsSummary, ChecksParameters, ClassifierMixin, BaseEstimator):
    r"""Fair classifier as strong as gradient boosting, with the whole frontier of one fit.

    Two boosted models, of the label and of the group given X, are fitted K times, each time without
    one fold. The columns of a training row come from the models that have not seen it,

    .. math:: \phi(x_i) = \big(\operatorname{logit} p_{-i},\; p_{-i},\; q_{-i}\big)(x_i), \qquad
        p \approx P(y{=}1 \mid x),\quad q_k \approx P(z{=}k \mid x),

    and the columns of a new row are the mean over all K models. Standardised, they are inputs of a
    :class:`~evenhand.FairClassifier`: solver, frontier and selection are its own. Its score being
    linear, the mean over the columns of the K models is the mean over the K scores.

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
    notion, tau
    classifier : FairClassifier, optional
        The engine, with parameters of its own such as ``method``; it is cloned. What is a parameter
        here as well, such as ``tau``, is given here, and ``group_cuts`` is refused: the group is
        not needed to predict.
    booster : estimator, optional
        Model of label and group, with ``fit(X, y)`` and ``predict_proba``; it is cloned. By default
        ``HistGradientBoostingClassifier(learning_rate=0.05, max_iter=400, max_leaf_nodes=15,
        early_stopping=True)``: the usual one overfits tables of a few thousand rows.
    n_folds : int, default=5
        K.
    interactions : bool, default=False
        Add the columns :math:`p\,q_k`. Statistical parity does not need them; the optimum for rates
        that depend on the label is bilinear in p and q.
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
    bins : int or list of float, optional
        The sensitive attribute is a number, such as age. Rates are compared between bins, as many
        of equal size or those between the values given, and each bin has its probability column.
    random_state : int, RandomState or None, default=None
        Seed of folds, of boosting and, unless the engine has one of its own, of the rows held out.
    n_jobs : int, optional
        Folds fitted at once. Boosting uses several threads already; more jobs help on tables too
        small for that.

    Attributes
    ----------
    classes_, groups_, small_groups_
    classifier_ : FairClassifier
        The fitted engine; ``classifier_.coef_`` are the weights of the standardised columns.
    column_names_ : list of str
        What the columns are.
    models_ : list of pairs (label, group)
        The boosted models that have not seen a fold.
    folds_ : ndarray of shape (n_samples,)
        Fold of each row of positive weight; −1 for rows held out.
    columns_ : ndarray of shape (n_samples, n_columns)
        Columns of those rows before standardisation: out of fold, or for rows held out the means
        over the models, none of which has seen them.
    scaler_ : StandardScaler
        Standardises the columns.
    frontier_, point_, held_out_, answers_, guarantee_, trajectory_
    rate_, rate_bound_, accuracy_, feasible_, converged_, n_iter_, n_features_in_, feature_names_in_

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

    notion: str | Sequence[str] = "statistical_parity"
    tau: float | Sequence[float] = 0.8
    _: KW_ONLY
    classifier: FairClassifier | None = None
    booster: Any = None
    n_folds: int = 5
    interactions: bool = False
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
    bins: Any = None
    random_state: Any = None
    n_jobs: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairClassifier._parameter_constraints,
        "classifier": [FairClassifier, None],
        "booster": [HasMethods(["fit", "predict_proba"]), None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "interactions": ["boolean"],
        "scorers": [list, tuple],
        "random_state": ["random_state"],
        "n_jobs": [Integral, None],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.classifier_tags.multi_class = False
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
        sensitive_features
        sample_weight : array-like of shape (n_samples,), optional
            Row weights, for boosting, standardisation and rates. A row of weight 0 is as if not
            there; one of weight 2 is not quite two rows, which would be in two folds.

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
            two_labels=True,
            **settings.coding,
        )
        settings.check_classes(rows.classes)
        labels = settings.label_order(rows.classes)
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
            maker = self._maker(seed)
            among = " to fit to" if len(held) else ""
            columns = maker.fit(
                safe_indexing(X, part.X[:, 0]), part._replace(classes=labels), order[fitted], among
            )
            others = scaled = np.empty((0, columns.shape[1]))
            if len(held):
                others = maker(safe_indexing(X, rest.X[:, 0]))
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
        self._columns, self.folds_, self.columns_ = kept[0]
        self.classes_, self._group_column = rows.classes, column
        self.models_, self.scaler_ = self._columns.models, self._columns.scaler
        self.column_names_ = self._columns.names
        engine.n_features_in_ = len(self.column_names_)
        self.classifier_ = engine.adopt(fit)
        return self._adopt()

    def _engine(self) -> FairClassifier:
        """Clone the engine and give it what is decided here."""
        usual, own = FairClassifier(), self.get_params(deep=False)
        engine = usual if self.classifier is None else clone(self.classifier)
        shared = usual.get_params(deep=False).keys() & own.keys() - {"random_state"}
        for name in sorted(shared):
            value, default = getattr(engine, name), getattr(usual, name)
            if not (isinstance(value, type(default)) and value == default):
                raise InputError("parameter_of_engine", parameter=Parameter(name, value), name=name)
        if engine.group_cuts:
            raise InputError("boosted_group_cuts")
        engine.set_params(**{name: own[name] for name in shared} | {"sensitive_features": None})
        engine.settings()  # its errors come before long work
        return engine

    def _maker(self, seed: int) -> BoostedColumns:
        return BoostedColumns(
            self.booster,
            n_folds=self.n_folds,
            interactions=self.interactions,
            scorers=self.scorers,
            n_jobs=self.n_jobs,
            seed=seed,
        )

    def _check(self, X: Any, column: int | None, y: Any = None, *, reset: bool) -> Any:
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

    def _adopt(self) -> FairBoostedClassifier:
        """Show the engine's findings as one's own."""
        for name in FOUND:
            setattr(self, name, getattr(self.classifier_, name))
        return self

    @documented(FairClassifier.at.__doc__)
    def at(self, tau: float) -> FairBoostedClassifier:
        """Give the same fit at another target, without training.

        Parameters
        ----------
        tau

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
        other.tau = other.classifier_.tau
        return other._adopt()

    def columns(self, X: Any) -> FloatArray:
        """Columns of new rows, standardised: the inputs of ``classifier_``.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples, n_columns)
            In the order of ``column_names_``.
        """
        check_is_fitted(self)
        X = self._check(X, self._group_column, reset=False)
        return self._columns.scale(self._columns(X))

    def decision_function(self, X: Any) -> FloatArray:
        """Score less the chosen cut; positive means ``classes_[1]``.

        Parameters
        ----------
        X

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
        X

        Returns
        -------
        ndarray of shape (n_samples,)
            Values of ``classes_``.
        """
        columns = self.columns(X)
        return self.classifier_.predict(columns)

    def predict_proba(self, X: Any) -> FloatArray:
        """Sigmoid of :meth:`decision_function`, a score between 0 and 1.

        It is above one half where the prediction is positive, but it is not calibrated: fairness
        and the cut move it away from the label's frequency.

        Parameters
        ----------
        X

        Returns
        -------
        ndarray of shape (n_samples, 2)
            Columns in the order of ``classes_``.
        """
        columns = self.columns(X)
        return self.classifier_.predict_proba(columns)
