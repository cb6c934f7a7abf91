"""Methods kept well elsewhere, behind the same interface: fairlearn's and OxonFair's.

They come with ``pip install 'evenhand[peers]'`` and are imported when fitted.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from copy import copy
from importlib.metadata import version
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.model_selection import train_test_split
from sklearn.utils import check_random_state

from evenhand._extras import import_extra
from evenhand.core.rates import Rate
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import (
    BoolArray,
    FloatArray,
    GroupPeer,
    Peer,
    TargetPeer,
    find_rate,
    logistic_regression,
    one_thread,
    share_within,
)

__all__ = [
    "FairlearnExponentiatedGradient",
    "FairlearnGridSearch",
    "FairlearnThresholdOptimizer",
    "OxonFairClassifier",
]

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


def _check_notion(notion: Any, known: Collection[str], library: str) -> None:
    if notion not in known:
        raise ValueError(
            f"notion={notion!r}; {library} has {', '.join(map(repr, known))} for this method."
        )


@contextmanager
def _quiet(logger: str) -> Iterator[None]:
    """Keep a library's remarks about itself, and its use of pandas, from the user; errors pass."""
    log = logging.getLogger(logger)
    level = log.level
    log.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", category=FutureWarning)
            warnings.simplefilter("ignore", category=DeprecationWarning)
            yield
    finally:
        log.setLevel(level)


class _Adapter(Peer):
    """What the adapters share; they take no ``sample_weight``."""

    _library: str
    """Module of the original."""

    estimator: Any
    l2: float

    def fit(  # type: ignore[override]
        self, X: Any, y: Any, *, sensitive_features: Any = None
    ) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.

        Returns
        -------
        self
            The fitted estimator.
        """
        self._check_parameters()
        self._import()  # a missing package is named before the rows are looked at
        rows = self._code(X, y, sensitive_features)
        packages = (self._library.partition(".")[0], "scikit-learn")
        self.versions_ = {package: version(package) for package in packages}
        self._fit(rows)
        return self

    def _import(self) -> Any:
        return import_extra(self._library, "peers")

    def _base(self, rows: CodedRows) -> Any:
        """Give the base estimator, unfitted."""
        if self.estimator is not None:
            return clone(self.estimator)
        return logistic_regression(self.l2, float(len(rows.y)), rows.X.shape[1])

    def _threads(self, rows: CodedRows) -> Any:
        """Limit threads for the default estimator; the user's may need them."""
        return one_thread(rows.X.shape[1]) if self.estimator is None else nullcontext()


class _FairlearnAdapter(_Adapter):
    """What the adapters for fairlearn share."""

    def _fit_model(self, model: Any, rows: CodedRows) -> None:
        """Fit the original and keep it."""
        self.model_ = model
        with _quiet("fairlearn"), self._threads(rows):
            model.fit(rows.X, rows.y, sensitive_features=rows.z)

    def _chance(self, X: FloatArray, **groups: Any) -> FloatArray:
        """Probability of ``classes_[1]`` in the original's lottery."""
        with _quiet("fairlearn"):
            proba = np.asarray(self.model_._pmf_predict(X, **groups))
        return np.clip(proba[:, 1], 0.0, 1.0)


def _draw(positive: FloatArray, random_state: Any) -> BoolArray:
    """Draw answers from their probabilities; certain ones are never left to the draw."""
    draw = check_random_state(random_state).random_sample(len(positive))
    return np.asarray(draw < positive)


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
    estimator : estimator, optional
        With ``fit(X, y, sample_weight)`` and ``predict``; logistic regression by default.
    l2 : float, default=1e-4
        Ridge of the default estimator.
    random_state : int, RandomState or None, default=None
        Seed of the draws of ``predict``; with an int the same rows get the same labels each time.

    Attributes
    ----------
    model_ : fairlearn.reductions.ExponentiatedGradient
        The fitted original.
    versions_ : dict
        Package to version.

    References
    ----------
    A. Agarwal, A. Beygelzimer, M. Dudík, J. Langford, H. Wallach, "A Reductions Approach to Fair
    Classification", ICML 2018.
    """

    _library = "fairlearn.reductions"

    def __init__(
        self,
        notion: str = "statistical_parity",
        *,
        bound: float = 0.01,
        ratio: float | None = None,
        eps: float = 0.01,
        max_iter: int = 50,
        estimator: Any = None,
        l2: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.notion = notion
        self.bound = bound
        self.ratio = ratio
        self.eps = eps
        self.max_iter = max_iter
        self.estimator = estimator
        self.l2 = l2
        self.random_state = random_state

    def _check_parameters(self) -> None:
        _check_notion(self.notion, MOMENTS, "fairlearn")

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


class FairlearnGridSearch(TargetPeer, _FairlearnAdapter):
    r"""fairlearn's GridSearch: one classifier for each multiplier λ of a grid.

    .. math:: h_\lambda = \arg\min_h \operatorname{err}(h) + \lambda^\top \gamma(h),

    γ being the constraint's violations. Of them all, the answer is the most accurate on the
    training data whose rates there have a ratio of at least τ.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        Also ``"true_positive_rate"``, ``"false_positive_rate"`` or ``"accuracy"``.
    tau : float, default=0.8
        Least ratio of the rate between the groups.
    grid_size : int, default=41
        Number of multipliers.
    grid_limit : float, default=1.0
        Largest of them. For statistical parity of two groups, 1 is enough to relabel every row of
        the smaller group.
    min_share : float, default=0.01
        Least share of predicted positives and of predicted negatives in each group, without which a
        classifier is no answer.
    estimator : estimator, optional
        With ``fit(X, y, sample_weight)`` and ``predict``; logistic regression by default.
    l2 : float, default=1e-4
        Ridge of the default estimator.

    Attributes
    ----------
    predictors_ : list
        The fitted base estimator of each multiplier.
    counts_ : ndarray of shape (grid_size, 2, 2, 2)
        Their training counts: group × label × prediction.
    best_ : int
        Which of them answers.
    rate_, accuracy_, feasible_
        Its ratio and accuracy on the training data, and whether τ was reached there.
    model_ : fairlearn.reductions.GridSearch
        The fitted original.
    versions_ : dict
        Package to version.

    References
    ----------
    A. Agarwal, A. Beygelzimer, M. Dudík, J. Langford, H. Wallach, "A Reductions Approach to Fair
    Classification", ICML 2018.
    """

    _library = "fairlearn.reductions"

    def __init__(
        self,
        notion: str = "statistical_parity",
        *,
        tau: float = 0.8,
        grid_size: int = 41,
        grid_limit: float = 1.0,
        min_share: float = 0.01,
        estimator: Any = None,
        l2: float = 1e-4,
    ) -> None:
        self.notion = notion
        self.tau = tau
        self.grid_size = grid_size
        self.grid_limit = grid_limit
        self.min_share = min_share
        self.estimator = estimator
        self.l2 = l2

    def _check_parameters(self) -> None:
        # Equalized odds are two rates, and a choice by τ needs one.
        known = [notion for notion in MOMENTS if notion != "equalized_odds"]
        _check_notion(self.notion, known, "fairlearn")
        super()._check_parameters()

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
        ratio = find_rate(self.notion).ratio(self.counts_)
        ratio[~share_within(self.counts_, self.min_share).all(axis=1)] = np.nan
        right = self.counts_[..., 0, 0].sum(axis=1) + self.counts_[..., 1, 1].sum(axis=1)
        reached = ratio >= self.tau  # never where the ratio is undefined
        self.feasible_ = bool(reached.any())
        if self.feasible_:
            self.best_ = int(np.argmax(np.where(reached, right, -1.0)))
        else:
            self.best_ = int(np.argmax(np.where(np.isnan(ratio), -1.0, ratio)))
        self.rate_ = float(ratio[self.best_])
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
    l2 : float, default=1e-4
        Ridge of the default estimator.
    random_state : int, RandomState or None, default=None
        Seed of the draws of ``predict``.

    Attributes
    ----------
    model_ : fairlearn.postprocessing.ThresholdOptimizer
        The fitted original.
    versions_ : dict
        Package to version.

    References
    ----------
    M. Hardt, E. Price, N. Srebro, "Equality of Opportunity in Supervised Learning", NIPS 2016.
    """

    _library = "fairlearn.postprocessing"
    needs_group = True

    def __init__(
        self,
        notion: str = "statistical_parity",
        *,
        bound: float | None = None,
        grid_size: int = 1000,
        estimator: Any = None,
        l2: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.notion = notion
        self.bound = bound
        self.grid_size = grid_size
        self.estimator = estimator
        self.l2 = l2
        self.random_state = random_state

    def _check_parameters(self) -> None:
        _check_notion(self.notion, THRESHOLD_CONSTRAINTS, "fairlearn")

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


def _group_metric(metrics: Any, rate: Rate) -> Any:
    """Give a rate as OxonFair's kind of metric; empty denominators count as 1, as they do there."""

    def value(TP: Any, FP: Any, FN: Any, TN: Any) -> Any:
        cells = {(0, 0): TN, (0, 1): FP, (1, 0): FN, (1, 1): TP}
        top = sum(cells[c] for c in rate.numerator)
        bottom = sum(cells[c] for c in rate.denominator)
        return top / np.maximum(1, bottom)

    return metrics.GroupMetric(value, rate.name.replace("_", " "), not rate.is_error)


class _InferredGroups:
    """Group of each row as a classifier guesses it: one column a group, and one for doubt.

    Only columns that occur in the training data are kept, because OxonFair fails on one without
    rows; a later row of such a kind goes to the most frequent one.
    """

    def __init__(self, model: Any, doubt: float, X: FloatArray) -> None:
        self.model, self.doubt = model, doubt
        self.kinds, count = np.unique(self._kind(X), return_counts=True)
        self.common = int(np.argmax(count))

    def _kind(self, X: FloatArray) -> NDArray[np.intp]:
        proba = np.asarray(self.model.predict_proba(X))
        return np.where(proba.max(axis=1) < self.doubt, -1, proba.argmax(axis=1))

    def __call__(self, X: FloatArray) -> FloatArray:
        kind = self._kind(X)
        column = np.clip(np.searchsorted(self.kinds, kind), 0, len(self.kinds) - 1)
        column = np.where(self.kinds[column] == kind, column, self.common)
        return np.eye(len(self.kinds))[column]


class OxonFairClassifier(TargetPeer, GroupPeer, _Adapter):
    r"""OxonFair's cuts for each group, the group being guessed from X unless it is given.

    .. math:: \hat y = [\,p(x) > c_{g(x)}\,], \qquad \max_c \text{accuracy}
        \quad\text{such that}\quad \min_j r_j / \max_j r_j \ge \tau,

    with the rates of the true groups. g is a logistic regression's guess of the group, or "in
    doubt" where it is not sure enough; or the group itself. OxonFair searches the cuts on a grid.
    Its metrics cannot be pickled, and so neither can a fitted classifier.
    ``predict_proba`` is moved by the cuts so that one half decides: no probability in the strict
    sense.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        ``"statistical_parity"``, ``"false_discovery"``, ``"equal_opportunity"`` or any name in
        :data:`evenhand.core.rates.RATES`.
    tau : float, default=0.8
        Least ratio of the rate between the groups.
    infer_groups : bool, default=True
        Guess groups from X. If False, ``predict`` needs ``sensitive_features``.
    doubt : float, default=2/3
        A guess less probable than this is in doubt, and such rows have a cut of their own.
    min_share : float, default=0.01
        Least share of predicted positives and of predicted negatives in each group. OxonFair itself
        takes a classifier that calls everybody positive for an answer.
    validation_size : float, optional
        Share of the rows kept from the base estimators, on which the cuts are found. By default the
        cuts are found on all the training rows, as those of the other methods here are; a base
        estimator that overfits needs a share.
    estimator : estimator, optional
        With ``predict_proba``, for labels and for groups; logistic regression by default.
    l2 : float, default=1e-4
        Ridge of the default estimator.
    random_state : int, RandomState or None, default=None
        Seed of the split for ``validation_size``.

    Attributes
    ----------
    model_ : oxonfair.FairPredictor
        The fitted original.
    rate_, accuracy_, feasible_
        Ratio and accuracy where the cuts were found, and whether τ was reached there.
    versions_ : dict
        Package to version.

    References
    ----------
    E. Delaney, Z. Fu, S. Wachter, B. Mittelstadt, C. Russell, "OxonFair: A Flexible Toolkit for
    Algorithmic Fairness", NeurIPS 2024.
    """

    _library = "oxonfair"

    def __init__(
        self,
        notion: str = "statistical_parity",
        *,
        tau: float = 0.8,
        infer_groups: bool = True,
        doubt: float = 2 / 3,
        min_share: float = 0.01,
        validation_size: float | None = None,
        estimator: Any = None,
        l2: float = 1e-4,
        random_state: Any = None,
    ) -> None:
        self.notion = notion
        self.tau = tau
        self.infer_groups = infer_groups
        self.doubt = doubt
        self.min_share = min_share
        self.validation_size = validation_size
        self.estimator = estimator
        self.l2 = l2
        self.random_state = random_state

    @property
    def needs_group(self) -> bool:  # type: ignore[override]
        """Whether ``predict`` needs the group of each row."""
        return not self.infer_groups

    def _train(self, rows: CodedRows) -> None:
        oxonfair = self._import()
        train = held = np.arange(len(rows.y))
        if self.validation_size is not None:
            train, held = train_test_split(
                train,
                test_size=self.validation_size,
                random_state=self.random_state,
                stratify=rows.z * 2 + rows.y,
            )
        infer: Any = False
        with self._threads(rows):
            label = self._base(rows).fit(rows.X[train], rows.y[train])
            if self.infer_groups:
                group = self._base(rows).fit(rows.X[train], rows.z[train])
        if self.infer_groups:
            infer = _InferredGroups(group, self.doubt, rows.X[held])
        data = {"data": rows.X[held], "target": rows.y[held], "groups": rows.z[held]}
        # Doubt is a group of its own here, hence no threshold there.
        self.model_ = oxonfair.FairPredictor(label, data, inferred_groups=infer, threshold=0)
        metrics = oxonfair.group_metrics
        ratio = _group_metric(metrics, find_rate(self.notion)).min_ratio
        share = metrics.pos_pred_rate
        limits = ((share.min, self.min_share, ">"), (share.max, 1 - self.min_share, "<"))
        try:
            with _quiet("oxonfair"):
                self.model_.fit(metrics.accuracy, ratio, self.tau, additional_constraints=limits)
        except IndexError as error:  # its way to say that nothing satisfies the limits
            raise ValueError(
                f"OxonFair found no cuts that leave {self.min_share:.0%} predicted positives and "
                "negatives in each group."
            ) from error
        self._metrics = metrics.accuracy, ratio

    def _move(self) -> None:
        self.model_ = copy(self.model_)
        with _quiet("oxonfair"):
            self.model_.fit(*self._metrics, self.tau, recompute=False)

    def _choose(self) -> None:
        scores = self.model_.frontier[0]
        reached = scores[1] >= self.tau
        self.feasible_ = bool(reached.any())
        if self.feasible_:
            best = int(np.argmax(np.where(reached, scores[0], -1.0)))
        else:
            best = int(np.argmax(scores[1]))
        self.accuracy_, self.rate_ = float(scores[0][best]), float(scores[1][best])

    def _positive(self, X: FloatArray, z: Any = None) -> FloatArray:
        data: dict[str, Any] = {"data": X, "target": np.zeros(len(X))}
        if z is not None:
            data["groups"] = z
        with _quiet("oxonfair"):
            scores = np.asarray(self.model_.predict_proba(data))
        # The scores' difference is in [-2, 2]: the base estimator's, moved by a cut.
        return np.clip(0.5 + (scores[:, 1] - scores[:, 0]) / 2, 0.0, 1.0)
