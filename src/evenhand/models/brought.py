"""A model that somebody brings, as P(label | x): fitted here, fitted elsewhere, or a column."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from numpy.typing import NDArray
from scipy.special import expit, logit
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from evenhand._sklearn import safe_indexing
from evenhand.core.errors import InputError, Parameter
from evenhand.models.boosted_columns import (
    SURE,
    BoosterInputs,
    Estimate,
    FloatArray,
    fit_stopped,
    scores_of,
)
from evenhand.models.inputs import CodedRows
from evenhand.models.trees import family_of

__all__ = ["Brought", "Curve", "Scored"]

# The ridge of the curve, as FairClassifier's: where scores part the labels it has an end.
L2 = 1e-4
# Probabilities between these have different logits, so that cuts can tell them apart.
DISTINCT = (1e-300, 1 - 2.0**-53)


class Curve(NamedTuple):
    r"""P(favourable label | score s) as :math:`\sigma(a\,t + b)`, where t is s or its logit."""

    slope: float
    intercept: float
    probability: bool
    """Whether scores are between 0 and 1, so that t is the logit."""

    def logit(self, score: FloatArray) -> FloatArray:
        """Log-odds of the favourable label."""
        if self.probability:
            outside = score[(score < 0) | (score > 1)]
            if len(outside):
                raise InputError("score_not_between", score=float(outside[0]))
            score = logit(np.clip(score, *DISTINCT))
        return self.slope * score + self.intercept


def fit_curve(score: FloatArray, rows: CodedRows, probability: bool, where: str) -> Curve:
    """Fit the curve to the scores of rows that what made them had not seen."""
    if score.min() == score.max():
        raise InputError("constant_scores", where=where, score=float(score[0]))
    # Beyond SURE a probability says no more, and would draw the curve to itself.
    t = Curve(1.0, 0.0, probability).logit(np.clip(score, SURE, 1 - SURE) if probability else score)
    center, spread = float(t.mean()), float(t.std()) or 1.0
    total = float(len(score) if rows.weight is None else rows.weight.sum())
    model = LogisticRegression(C=1 / (L2 * total), solver="newton-cholesky")
    model.fit(((t - center) / spread)[:, None], rows.y, sample_weight=rows.weight)
    slope = float(model.coef_[0, 0]) / spread
    return Curve(slope, float(model.intercept_[0]) - slope * center, probability)


class Scored:
    """P(label | x) of two labels from a score."""

    def __init__(self, source: Any, curve: Curve) -> None:
        self.source, self.curve = source, curve

    def logit(self, X: Any) -> FloatArray:
        """Log-odds of the favourable label."""
        return self.curve.logit(score_of(self.source, X))

    def __call__(self, X: Any) -> FloatArray:
        """Probability of each label, shape (n_samples, 2)."""
        favourable = expit(self.logit(X))
        return np.column_stack([1 - favourable, favourable])


def score_of(source: Any, X: Any) -> FloatArray:
    """Score of each row: what a column holds, or what a fitted estimator of two labels says."""
    if isinstance(source, Estimate):
        return source(X)[:, 1]
    if not isinstance(source, int):
        return scores_of(source, X, "estimator", ("predict_proba", "decision_function"))
    return np.asarray(X.iloc[:, source] if hasattr(X, "iloc") else X[:, source], dtype=np.float64)


def checked_scores(values: Any, name: str) -> FloatArray:
    """Give a column of scores as numbers; refuse what is none."""
    given = pd.Series(values)
    numbers = pd.to_numeric(given, errors="coerce").to_numpy(dtype=np.float64, na_value=np.nan)
    wrong = np.flatnonzero(~np.isfinite(numbers))
    if len(wrong):
        value, missing = given.iloc[wrong[0]], bool(given.isna().iloc[wrong[0]])
        held = "no value" if missing else f"the value {value!r}"
        about = {"n": len(wrong), "s": "s" * (len(wrong) > 1)}
        raise InputError("no_score", column=name, held=held, row=int(wrong[0]) + 1, **about)
    return numbers


class Brought:
    """Makes the label's models of what was brought, out of fold if it is fitted here.

    Parameters
    ----------
    estimator : estimator or int
        A classifier, or the column of scores.
    words : str
        What it is, and what is known of the rows that its model has seen.
    prefit : bool
        Whether the estimator is fitted, to other rows.
    seed : int
        Of what an estimator that is fitted here leaves open.
    """

    def __init__(self, estimator: Any, words: str, *, prefit: bool, seed: int) -> None:
        self.fixed, self.words = prefit or isinstance(estimator, int), words
        self.estimator = estimator if self.fixed else clone(estimator)
        self.inputs: Any = _as_it_is
        self.curve: Curve | None = None
        if not self.fixed:
            seeds = [k for k, v in self.estimator.get_params().items() if v is None]
            seeds = [k for k in seeds if k.rpartition("__")[2] == "random_state"]
            self.estimator.set_params(**dict.fromkeys(seeds, seed))

    def fit(self, X: Any, rows: CodedRows, folds: NDArray[np.intp], n_jobs: int | None) -> Any:
        """Give models of the label: one for each fold that has not seen it, or one for all."""
        n_labels = len(rows.classes)
        if self.fixed:
            return [self._as_given(X, rows, n_labels)]
        family = family_of(self.estimator)
        if family:
            self.inputs = BoosterInputs(X, self.estimator)
        inputs = self.inputs(X, None)
        model, options = self.estimator, {}
        if family:
            model, options = self.inputs.told(model, inputs.shape[1])
        names = np.sort(rows.classes)
        # What is told labels by its parameters knows them by name; XGBoost takes numbers only.
        labels = rows.classes if family != "XGBClassifier" else names.searchsorted(rows.classes)
        fitted = Parallel(n_jobs=n_jobs, prefer="threads")(
            delayed(_fit)(model, options, inputs, rows, labels, np.flatnonzero(folds != k))
            for k in range(int(folds.max()) + 1)
        )
        shares = hasattr(fitted[0], "predict_proba")
        if shares:
            n_categories = self.inputs.n_categories if family else 0
            fitted = [Estimate(m, _places(m, labels), n_labels, n_categories) for m in fitted]
        if shares and n_labels > 2:
            return fitted
        _check_two(n_labels)
        score = np.empty(len(rows.y))
        for k, one in enumerate(fitted):
            held = np.flatnonzero(folds == k)
            score[held] = score_of(one, safe_indexing(inputs, held))
        self.curve = fit_curve(score, rows, shares, where="of estimator")
        return [Scored(one, self.curve) for one in fitted]

    def _as_given(self, X: Any, rows: CodedRows, n_labels: int) -> Any:
        source = self.estimator
        column = isinstance(source, int)
        if n_labels > 2 and not column and hasattr(source, "predict_proba"):
            if set(source.classes_.tolist()) != set(rows.classes.tolist()):
                known, given = source.classes_.tolist(), rows.classes.tolist()
                raise InputError("estimator_of_other_labels", known=known, given=given)
            return Estimate(source, _places(source, rows.classes), n_labels, 0, trees=False)
        _check_two(n_labels)
        score = score_of(source, X)
        shares = bool(score.min() >= 0 and score.max() <= 1)
        probability = shares if column else hasattr(source, "predict_proba")
        where = f"in column {_name_of(X, source)!r}" if column else "of estimator"
        self.curve = fit_curve(score, rows, probability, where)
        return Scored(source, self.curve)

    def is_all_of(self, n_inputs: int) -> bool:
        """Whether a column of scores is the only one of the inputs.

        What it says of the group is chance, but for its order: no model of the group is fitted.
        """
        return isinstance(self.estimator, int) and n_inputs == 1

    @property
    def cut(self) -> tuple[float, str]:
        """Log-odds at which the score is cut if nobody says, and where that is, in words."""
        if self.curve is None or self.curve.probability:
            return 0.0 if self.curve is None else self.curve.intercept, "at 0.5"
        if isinstance(self.estimator, int):
            return 0.0, "where a logistic curve of it says one half"
        return self.curve.intercept, "at 0"


def _as_it_is(X: Any, z: Any) -> Any:
    return X


def _name_of(X: Any, column: int) -> Any:
    return X.columns[column] if hasattr(X, "columns") else column


def _check_two(n_labels: int) -> None:
    if n_labels > 2:
        raise InputError("score_of_many_labels", n=n_labels)


def _places(model: Any, labels: NDArray[Any]) -> NDArray[np.intp]:
    """Give the number of each label that a model gives a probability of."""
    number = {label: i for i, label in enumerate(labels.tolist())}
    return np.array([number[label] for label in model.classes_.tolist()], dtype=np.intp)


def _fit(
    model: Any,
    options: dict[str, Any],
    X: Any,
    rows: CodedRows,
    labels: NDArray[Any],
    index: NDArray[np.intp],
) -> Any:
    weight = None if rows.weight is None else rows.weight[index]
    return fit_stopped(model, safe_indexing(X, index), labels[rows.y[index]], weight, options)


def check_brought(estimator: Any, *, prefit: bool, weighted: bool) -> None:
    """Refuse what gives no scores, and what would be fitted again, or not, unasked."""
    if estimator is None:
        raise InputError("nothing_brought", estimator=Parameter("estimator"))
    if isinstance(estimator, int | str):
        return
    if isinstance(estimator, type):
        raise InputError("estimator_is_a_class", name=estimator.__name__)
    if not (hasattr(estimator, "predict_proba") or hasattr(estimator, "decision_function")):
        raise InputError("no_scores", scorer=f"estimator, a {type(estimator).__name__},")
    fitted = _is_fitted(estimator)
    if prefit and not fitted:
        raise InputError("prefit_not_fitted", prefit=Parameter("prefit", True))
    if fitted and not prefit:
        raise InputError("already_fitted", prefit=Parameter("prefit", True))
    last = estimator[-1] if hasattr(estimator, "steps") else estimator
    if weighted and not prefit and not has_fit_parameter(last, "sample_weight"):
        raise InputError("estimator_without_weights", name=type(last).__name__)


def _is_fitted(estimator: Any) -> bool:
    if not hasattr(estimator, "fit"):
        return True
    try:
        check_is_fitted(estimator)
    except NotFittedError:
        return False
    return True
