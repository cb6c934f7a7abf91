"""fairlearn's methods behind the interface of the peers."""

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils import check_random_state

from evenhand._sklearn import StrOptions
from evenhand.models.inputs import CodedRows
from evenhand.peers._adapter import Adapter, quiet
from evenhand.peers._base import (
    CONSTRAINTS,
    BoolArray,
    FloatArray,
    GroupPeer,
    TargetPeer,
    best_for,
    share_within,
)
from evenhand.peers._docs import adapter_docs

MOMENTS = {
    "statistical_parity": "DemographicParity",
    "demographic_parity": "DemographicParity",
    "selection_rate": "DemographicParity",
    "true_positive_rate": "TruePositiveRateParity",
    "equal_opportunity": "TruePositiveRateParity",
    "false_positive_rate": "FalsePositiveRateParity",
    "equalized_odds": "EqualizedOdds",
    "accuracy": "ErrorRateParity",
}
THRESHOLD_CONSTRAINTS = {
    "statistical_parity": "demographic_parity",
    "demographic_parity": "demographic_parity",
    "selection_rate": "selection_rate_parity",
    "true_positive_rate": "true_positive_rate_parity",
    "equal_opportunity": "true_positive_rate_parity",
    "false_positive_rate": "false_positive_rate_parity",
    "true_negative_rate": "true_negative_rate_parity",
    "false_negative_rate": "false_negative_rate_parity",
    "equalized_odds": "equalized_odds",
}


def _draw(positive: FloatArray, random_state: Any) -> BoolArray:
    """Draw answers from their probabilities; certain ones are never left to the draw."""
    draw = check_random_state(random_state).random_sample(len(positive))
    return np.asarray(draw < positive)


class _FairlearnAdapter(Adapter):
    """What the adapters for fairlearn share."""

    def _fit_model(self, model: Any, rows: CodedRows) -> None:
        """Fit the original and keep it."""
        self.model_ = model
        with quiet("fairlearn"), self._threads(rows):
            model.fit(rows.X, rows.y, sensitive_features=rows.z)

    def _chance(self, X: FloatArray, **groups: Any) -> FloatArray:
        """Probability of ``classes_[1]`` in the original's lottery."""
        with quiet("fairlearn"):
            proba = np.asarray(self.model_._pmf_predict(X, **groups))
        return np.clip(proba[:, 1], 0.0, 1.0)


@dataclass(eq=False, repr=False)
@adapter_docs
class FairlearnExponentiatedGradient(_FairlearnAdapter):
    r"""fairlearn's ExponentiatedGradient: a lottery over classifiers.

    .. math:: \min_Q \operatorname{err}(Q) \quad\text{such that}\quad
        |\,\mu_j(Q) - \mu(Q)\,| \le \text{bound for every group } j,

    solved as a game in which the classifier answers by weighted fits of the base estimator. A row's
    label is drawn at random from Q.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        Also ``"true_positive_rate"``, ``"false_positive_rate"``, ``"equalized_odds"`` or
        ``"accuracy"``.
    bound : float, default=0.01
        Largest difference between a group's rate and the overall one.
    ratio : float, optional
        Bound ratios instead: each group's rate over the overall one, and its inverse, are at least
        this. ``bound`` is then the slack.
    eps : float, default=0.01
        fairlearn's limit on the multipliers: their sum is at most 1/eps.
    max_iter : int, default=50
        Rounds of the game.
    estimator, l2, random_state

    Attributes
    ----------
    model_ : fairlearn.reductions.ExponentiatedGradient
        The fitted original.
    versions_

    References
    ----------
    A. Agarwal, A. Beygelzimer, M. Dudík, J. Langford, H. Wallach, "A Reductions Approach to Fair
    Classification", ICML 2018.
    """

    _library = "fairlearn.reductions"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "notion": [StrOptions(set(MOMENTS))],
    }

    notion: str = "statistical_parity"
    _: KW_ONLY
    bound: float = 0.01
    ratio: float | None = None
    eps: float = 0.01
    max_iter: int = 50
    estimator: Any = None
    l2: float = 1e-4
    random_state: Any = None

    def _fit(self, rows: CodedRows) -> None:
        reductions = self._import()
        limits = {"difference_bound": self.bound}
        if self.ratio is not None:
            limits = {"ratio_bound": self.ratio, "ratio_bound_slack": self.bound}
        model = reductions.ExponentiatedGradient(
            self._base(rows),
            constraints=getattr(reductions, MOMENTS[self.notion])(**limits),
            eps=self.eps,
            max_iter=self.max_iter,
        )
        self._fit_model(model, rows)

    def _positive(self, X: FloatArray) -> FloatArray:
        return self._chance(X)

    def _answer(self, X: FloatArray) -> BoolArray:
        return _draw(self._positive(X), self.random_state)


@dataclass(eq=False, repr=False)
@adapter_docs
class FairlearnGridSearch(TargetPeer, _FairlearnAdapter):
    r"""fairlearn's GridSearch: one classifier for each multiplier λ of a grid.

    .. math:: h_\lambda = \arg\min_h \operatorname{err}(h) + \lambda^\top \gamma(h),

    γ being the constraint's violations. Of them all, the answer is the most accurate on the
    training data whose rates there have a ratio of at least τ.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        Also ``"true_positive_rate"``, ``"false_positive_rate"`` or ``"accuracy"``.
    tau
    grid_size : int, default=41
        Number of multipliers.
    grid_limit : float, default=1.0
        Largest of them. For statistical parity of two groups, 1 is enough to relabel every row of
        the smaller group.
    min_share, estimator, l2

    Attributes
    ----------
    predictors_ : list
        The fitted base estimator of each multiplier.
    counts_ : ndarray of shape (grid_size, 2, 2, 2)
        Their training counts: group × label × prediction.
    best_ : int
        Which of them answers.
    rate_, accuracy_, feasible_
    model_ : fairlearn.reductions.GridSearch
        The fitted original.
    versions_

    References
    ----------
    A. Agarwal, A. Beygelzimer, M. Dudík, J. Langford, H. Wallach, "A Reductions Approach to Fair
    Classification", ICML 2018.
    """

    _library = "fairlearn.reductions"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        # Equalized odds are two rates, and a choice by τ needs one.
        "notion": [StrOptions(MOMENTS.keys() - {"equalized_odds"})],
    }

    notion: str = "statistical_parity"
    _: KW_ONLY
    tau: float = 0.8
    grid_size: int = 41
    grid_limit: float = 1.0
    min_share: float = 0.01
    estimator: Any = None
    l2: float = 1e-4

    def _train(self, rows: CodedRows) -> None:
        reductions = self._import()
        model = reductions.GridSearch(
            self._base(rows),
            constraints=getattr(reductions, MOMENTS[self.notion])(),
            grid_size=self.grid_size,
            grid_limit=self.grid_limit,
        )
        self._fit_model(model, rows)
        self.predictors_ = list(self.model_.predictors_)
        cell = (rows.z * 2 + rows.y) * 2
        counts = [
            np.bincount(cell + p.predict(rows.X).astype(np.intp), minlength=8)
            for p in self.predictors_
        ]
        self.counts_ = np.array(counts, dtype=np.float64).reshape(-1, 2, 2, 2)

    def _choose(self) -> None:
        value = self._target.value(self.counts_)
        value[~share_within(self.counts_, self.min_share).all(axis=1)] = np.nan
        right = self.counts_[..., 0, 0].sum(axis=1) + self.counts_[..., 1, 1].sum(axis=1)
        self.best_, self.feasible_ = best_for(self._target, right, value)
        self.rate_ = float(value[self.best_])
        self.accuracy_ = float(right[self.best_] / self.counts_[0].sum())

    def _positive(self, X: FloatArray) -> FloatArray:
        predictor = self.predictors_[self.best_]
        proba = np.asarray(predictor.predict_proba(X))
        if proba.shape[1] == 1:  # fairlearn's constant classifier knows one label
            return np.full(len(X), float(predictor.classes_[0]))
        return proba[:, 1]

    def _answer(self, X: FloatArray) -> BoolArray:
        # The base estimator's own, which may not be where one half is.
        return np.asarray(self.predictors_[self.best_].predict(X), dtype=np.intp) == 1


@dataclass(eq=False, repr=False)
@adapter_docs
class FairlearnThresholdOptimizer(GroupPeer, _FairlearnAdapter):
    r"""fairlearn's ThresholdOptimizer: cuts for each group, which must be known to predict.

    The group's rates are made equal on the training data, or are brought within ``bound``, by cuts
    on the base estimator's score, with a lottery between two cuts where one is not enough.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        Also ``"true_positive_rate"``, ``"false_positive_rate"``, ``"true_negative_rate"``,
        ``"false_negative_rate"`` or ``"equalized_odds"``.
    bound : float, optional
        Largest difference of the rate between groups; equal by default. Not for equalized odds;
        needs a fairlearn whose ThresholdOptimizer has ``tol``.
    grid_size : int, default=1000
        Rates tried.
    estimator : estimator, optional
        With ``predict_proba``; logistic regression by default.
    l2, random_state

    Attributes
    ----------
    model_ : fairlearn.postprocessing.ThresholdOptimizer
        The fitted original.
    versions_

    References
    ----------
    M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NIPS 2016.
    """

    _library = "fairlearn.postprocessing"
    needs_group = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "notion": [StrOptions(set(THRESHOLD_CONSTRAINTS))],
    }

    notion: str = "statistical_parity"
    _: KW_ONLY
    bound: float | None = None
    grid_size: int = 1000
    estimator: Any = None
    l2: float = 1e-4
    random_state: Any = None

    def _fit(self, rows: CodedRows) -> None:
        model = self._import().ThresholdOptimizer(
            estimator=self._base(rows),
            constraints=THRESHOLD_CONSTRAINTS[self.notion],
            objective="accuracy_score",
            grid_size=self.grid_size,
            predict_method="predict_proba",
            **({} if self.bound is None else {"tol": self.bound}),
        )
        self._fit_model(model, rows)

    def _positive(self, X: FloatArray, z: Any = None) -> FloatArray:
        return self._chance(X, sensitive_features=z)

    def _answer(self, X: FloatArray, z: Any = None) -> BoolArray:
        return _draw(self._positive(X, z), self.random_state)
