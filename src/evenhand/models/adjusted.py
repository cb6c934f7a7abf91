"""FairAdjusted: a model that somebody has already, made fair with its whole frontier."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass, field
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import get_tags

from evenhand._extras import documented
from evenhand._sklearn import HasMethods
from evenhand.core.errors import InputError
from evenhand.engines.coding import listed
from evenhand.models.boosted import FairBoostedClassifier, shown
from evenhand.models.brought import Brought, check_brought, checked_scores
from evenhand.models.classifier import FairClassifier

__all__ = ["FairAdjusted"]


@dataclass(eq=False, repr=False)
class _Brings:
    """The first parameter, before those that every fair classifier has."""

    estimator: Any = None


@documented(FairClassifier.__doc__)
@documented(FairBoostedClassifier.__doc__)
@dataclass(eq=False, repr=False)
class FairAdjusted(FairBoostedClassifier, _Brings):
    r"""A classifier that you have already, or its scores, made fair with the whole frontier.

    It is :class:`~evenhand.FairBoostedClassifier` with another model of the label: the columns are
    made of the :math:`P(y{=}1 \mid x)` of the model that is brought, and of boosted models of the
    group, given the inputs and the label. ``predict`` does not need the group. With ``group_cuts``
    nothing estimates the group: the score is the only column, and each group has its own cut.

    A score is honest on rows that its model has not seen. So an estimator that is not fitted is
    fitted K times, each time without one fold, and one that is fitted must be said to be new to the
    rows (``prefit``). A column of scores is taken as it is: if what made it has seen these rows,
    every figure here is too good.

    Scores of two labels become probabilities by a logistic curve, fitted to the same rows,
    :math:`P(y{=}1 \mid s) = \sigma(a\,t + b)`, where t is the logit of scores between 0 and 1, and
    others themselves: few models' probabilities are right as they are. The curve keeps the order of
    the scores, or turns it, for a risk is a score as well.

    Parameters
    ----------
    estimator : estimator, str or int
        A classifier with ``predict_proba`` or ``decision_function``: any of scikit-learn's,
        LightGBM's or XGBoost's, or a pipeline. Or the column of X that holds its scores, by name or
        index; other columns of X are what the group is estimated from, beside the score.
    notion, tau
    prefit : bool, default=False
        Whether the estimator is fitted, and the rows given to ``fit`` are new to it. It is then
        used as it is, and kept by ``clone``. Otherwise one that is fitted is refused.
    classifier
    booster : estimator, optional
        Model of the group, as for :class:`~evenhand.FairBoostedClassifier`. Text is a category to
        the usual ones.
    n_folds, scorers, confidence, selection, holdout, cv, delta, sensitive_features, min_group_size
    pos_label, survey_weights
    group_cuts : bool, default=False
        Attribute-aware: each group has its own cut of the score, and ``predict`` needs the group.
    bins, random_state, n_jobs

    Attributes
    ----------
    scores_ : str
        What was adjusted, and what is known of the rows that its model has seen.
    before_ : str
        Where the score is cut if nobody says, in words.
    classes_, groups_, small_groups_, classifier_, column_names_, booster_, models_, maker_, folds_
    columns_, scaler_
    frontier_, point_, held_out_, answers_, guarantee_, trajectory_
    rate_, rate_bound_, accuracy_, feasible_, converged_, n_iter_, n_features_in_, feature_names_in_

    Examples
    --------
    >>> from sklearn.linear_model import LogisticRegression
    >>> from sklearn.pipeline import make_pipeline
    >>> from evenhand import FairAdjusted
    >>> from evenhand.datasets import load_german
    >>> data = load_german()
    >>> mine = make_pipeline(data.encoder, LogisticRegression(max_iter=1000))
    >>> model = FairAdjusted(mine, tau=0.9, group_cuts=True, confidence=None, random_state=0)
    >>> model = model.fit(data.data, data.target, sensitive_features=data.sensitive_features)
    >>> model.feasible_, model.column_names_
    (True, ['score'])
    """

    prefit: bool = field(default=False, kw_only=True)

    takes_text: ClassVar[bool] = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **FairBoostedClassifier._parameter_constraints,
        "estimator": [
            *(HasMethods([name]) for name in ("predict", "predict_proba", "decision_function")),
            *(str, Integral, None),
        ],
        "prefit": ["boolean"],
    }

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        if hasattr(self.estimator, "__sklearn_tags__"):
            tags.input_tags.allow_nan = get_tags(self.estimator).input_tags.allow_nan
        return tags

    def __sklearn_clone__(self) -> FairAdjusted:
        # clone would make an unfitted copy of a fitted estimator.
        bare = copy(self)
        bare.estimator = None if self.prefit else self.estimator
        other: Any = FairBoostedClassifier.__sklearn_clone__(bare)
        other.estimator = self.estimator if self.prefit else other.estimator
        return other

    @documented(FairBoostedClassifier.fit.__doc__)
    def fit(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        sample_weight: Any = None,
        persons: Any = None,
    ) -> FairAdjusted:
        """Fit the models, and the classifier and its frontier on their columns.

        Parameters
        ----------
        X : array-like or DataFrame of shape (n_samples, n_features)
            Inputs, as the estimator takes them, or the column of scores and whatever else says
            something of the group: numbers, in a DataFrame also categories and text. Not sparse.
        y, sensitive_features, sample_weight, persons

        Returns
        -------
        FairAdjusted
            The fitted estimator.
        """
        self._validate_params()
        check_brought(self.estimator, prefit=self.prefit, weighted=sample_weight is not None)
        super().fit(
            X,
            y,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            persons=persons,
        )
        brought = self.maker_.brought
        self.scores_, self.before_ = brought.words, brought.cut[1]
        return self

    def _check(self, X: Any, column: int | None, y: Any = None, *, reset: bool) -> Any:
        """Check X as for boosting, and that the scores, if they are a column, are numbers."""
        checked = super()._check(X, column, y, reset=reset)
        table = checked[0] if reset else checked
        place = self._place(table, column)
        if place is None:
            return checked
        if hasattr(table, "iloc"):
            score = checked_scores(table.iloc[:, place], str(table.columns[place]))
            table = table.copy(deep=False)
            table.isetitem(place, score)
        else:
            checked_scores(table[:, place], str(place))
        return (table, checked[1]) if reset else table

    def _place(self, X: Any, column: int | None) -> int | None:
        """Find the column of scores in X, which has the group column no more."""
        if not isinstance(self.estimator, str | Integral):
            return None
        about: dict[str, Any] = {"column": self.estimator}
        if isinstance(self.estimator, str):
            names = [str(name) for name in getattr(X, "columns", ())]
            if self.estimator not in names:
                known = listed(names, 10) or "no names"
                raise InputError("unknown_score_column", columns=known, **about)
            return names.index(self.estimator)
        n, place = X.shape[1] + (column is not None), int(self.estimator)
        place += n * (place < 0)
        if not 0 <= place < n or place == column:
            raise InputError("unknown_score_column", columns=f"{n} columns", **about)
        return place - (column is not None and place > column)

    def _brought(self, seed: int, X: Any, column: int | None) -> Brought:
        place = self._place(X, column)
        if place is None:
            how = "as it was fitted, to other rows" if self.prefit else "fitted out of fold"
            words = f"the scores of {shown(self.estimator)}, {how}"
            return Brought(self.estimator, words, prefit=self.prefit, seed=seed)
        words = f"the scores in column {self.estimator!r}, taken as they are"
        return Brought(place, words, prefit=False, seed=seed)

    def before(self) -> NDArray[np.float64]:
        """Weights of the standardised columns with which ``classifier_`` is the score by itself.

        It is then cut where ``before_`` says, if the cut is 0.

        Returns
        -------
        ndarray of shape (n_weights,)
            Intercepts are last; of more than two labels one after the other.
        """
        n, n_labels = len(self.column_names_), len(self.classes_)
        several = n_labels > 2
        # The first columns are the log-odds of all labels but the first.
        weights = np.zeros((n_labels - 1, n + 1))
        own = np.arange(n_labels - 1)
        weights[own, own], weights[:, -1] = self.scaler_.scale_[own], self.scaler_.mean_[own]
        weights[:, -1] -= 0.0 if several else self.maker_.brought.cut[0]
        return np.concatenate([np.zeros((int(several), n + 1)), weights]).ravel()

    @property
    def _out_of_fold(self) -> bool:
        return not (self.prefit or isinstance(self.estimator, str | Integral))
