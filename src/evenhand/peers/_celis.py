"""The meta-algorithm of Celis, Huang, Keswani and Vishnoi."""

from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from evenhand._sklearn import HasMethods, Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.core.rates import overall_accuracy
from evenhand.models.inputs import CodedRows, merge_alike
from evenhand.models.settings import FairnessWarning, warn
from evenhand.peers._base import CONSTRAINTS, SINGLE_RATES, FloatArray, ScorePeer, TargetPeer
from evenhand.peers._celis_game import Game, cell_counts
from evenhand.peers._celis_shipped import SLACK, JointGaussian, combinations
from evenhand.peers._docs import peer_docs

# Inputs with fewer nonzeros than this share are fitted as sparse ones, which is faster.
SPARSE_SHARE = 0.3


@dataclass(eq=False, repr=False)
@peer_docs
class CelisClassifier(TargetPeer, ScorePeer):
    r"""Threshold of a combination of posteriors, found by the meta-algorithm of Celis et al.

    Let :math:`p_{jy}(x)` estimate :math:`P[Z = j, Y = y \mid x]`, and let :math:`q_j(f)` be the
    rate of group j under a classifier f: any ratio of sums of its confusion matrix. A classifier
    with :math:`\min_j q_j / \max_j q_j \ge \tau` has all its rates in an interval
    :math:`[a, a / \tau]`. For each a on a grid,

    .. math:: \max_f P[f(X) = Y] \quad\text{s.t.}\quad a \le q_j(f) \le \min(1, a / \tau)
        \ \text{ for all } j

    is linear in f once the bounds are multiplied by the rates' denominators, and by Lagrangian
    duality it is solved by

    .. math:: f(x) = \Big[\sum_{j, y} v_{jy}\, p_{jy}(x) > t\Big],

    with v affine in one multiplier for each bound. The dual is minimised over the multipliers on
    the training rows to a gap of 10⁻⁷ in accuracy. The group is not needed to predict.

    Estimates are not labels: a rule whose estimated rates have the ratio τ may miss it on the rows.
    So τ is measured on the training labels. Every threshold rule met by the algorithm is a
    candidate, and so are all cuts t of their combinations and of others near the best of these, as
    many as keep to 1.5 million scores: on few rows the best rule by the estimates is not the best
    by the labels. The answer is the most accurate candidate whose measured ratio is at least
    ``tau``. With ``at(tau)`` the posteriors are not estimated anew.

    The score is :math:`\sum_{j, y} v_{jy}\, p_{jy}(x) - t`, and ``predict_proba`` is half of one
    plus the score, cut off at 0 and 1: above one half where the prediction is positive. Where no
    constraint binds it is the estimate of P[Y = 1 | x] up to ``cut_``; otherwise it is not a
    frequency. Row weights are for an ``estimator`` that takes any.

    Parameters
    ----------
    notion, tau
    epsilon : float, default=0.01
        Step of the grid of a.
    estimator : classifier with ``predict_proba``, optional
        Estimates the posteriors; it is fitted to the cell of each row as a class, 2·group + label.
        Multinomial logistic regression by default.
    search : {"planes", "shipped"}, default="planes"
        ``"shipped"`` estimates and searches as AIF360's ``MetaFairClassifier`` does, for the
        selection and the false discovery rate: ``epsilon``, ``estimator`` and ``min_share`` are
        ignored, and the answer is the most accurate rule whose ratio reaches ``tau`` − 0.2, or, if
        none does, the plain one: where P[Y = 1 | x] is above one half.
    min_share : float, default=0.01
        A rule counts only if every group has between this share and 1 − this share of predicted
        positives, and some of both.
    random_state : int, RandomState or None, default=None
        Given to an estimator that takes one and has none; seed of the shipped search.

    Attributes
    ----------
    classes_, groups_
    estimator_ : classifier
        The fitted estimator of posteriors.
    combination_ : ndarray of shape (2, 2)
        v, group × label.
    cut_ : float
        t.
    intervals_ : DataFrame
        The intervals for ``tau`` that have a solution: ``low``, ``high`` and ``accuracy``, which is
        the estimated accuracy of the best randomised classifier. Intervals that are known to be
        clearly worse than the best are left out.
    accuracy_, rate_, feasible_, n_features_in_, feature_names_in_

    References
    ----------
    L. E. Celis, L. Huang, V. Keswani, N. K. Vishnoi, "Classification with Fairness Constraints: A
    Meta-Algorithm with Provable Guarantees", FAT* 2019.

    Examples
    --------
    >>> from evenhand.datasets import encoded_split, load_adult
    >>> from evenhand.peers import CelisClassifier
    >>> split = encoded_split(load_adult("coarse"), random_state=0)
    >>> model = CelisClassifier(tau=0.8)
    >>> model = model.fit(split.X_train, split.y_train, sensitive_features=split.z_train)
    >>> model.feasible_, bool(model.at(0.9).rate_ >= 0.9)  # no new estimate of posteriors
    (True, True)
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "epsilon": [Interval(Real, 1e-4, 0.5, closed="both")],
        "estimator": [HasMethods(["fit", "predict_proba"]), None],
        "search": [StrOptions({"planes", "shipped"})],
    }

    notion: str = "statistical_parity"
    tau: float = 0.8
    _: KW_ONLY
    epsilon: float = 0.01
    estimator: Any = None
    search: str = "planes"
    min_share: float = 0.01
    random_state: Any = None

    @classmethod
    def shipped(cls, notion: str, tau: float, **changes: Any) -> Self:
        """Give the form of the authors' comparison: AIF360's ``MetaFairClassifier``."""
        return cls(notion, tau, search="shipped", **changes)

    def _train(self, rows: CodedRows) -> None:
        rate = SINGLE_RATES[self.notion]
        if self.search == "shipped":
            if rate.name not in ("selection_rate", "false_discovery_rate"):
                raise InputError("shipped_notion", notion=Parameter("notion", self.notion))
            self._gaussian = JointGaussian.of(rows)
            self._game = Game(self._posterior(rows.X), rows, rate, 0.0)
            return
        estimator = self.estimator
        if estimator is None:
            rows = merge_alike(rows)
            estimator = LogisticRegression(max_iter=1000)
        self.estimator_ = clone(estimator)
        if self.estimator_.get_params().get("random_state", self) is None:
            self.estimator_.set_params(random_state=self.random_state)
        given = {} if rows.weight is None else {"sample_weight": rows.weight}
        inputs = rows.X
        if self.estimator is None and np.count_nonzero(inputs) < SPARSE_SHARE * inputs.size:
            inputs = csr_array(inputs)
        self.estimator_.fit(inputs, rows.z * 2 + rows.y, **given)
        self._game = Game(self._posterior(rows.X), rows, rate, self.min_share)

    def _posterior(self, X: FloatArray) -> FloatArray:
        """Estimated probability of each cell; 0 for one that the estimator has never seen."""
        if self.search == "shipped":
            return self._gaussian.posterior(X)
        posterior = np.zeros((len(X), 4))
        posterior[:, self.estimator_.classes_] = self.estimator_.predict_proba(X)
        return posterior

    def _move(self) -> None:
        self._game = self._game.fresh()

    def _settle(self) -> None:
        if self.search == "planes":
            return super()._settle()
        self._choose_shipped()
        if not self.feasible_:
            rate = "no defined rate" if np.isnan(self.rate_) else f"a rate of {self.rate_:.6g}"
            about = {"tau": Parameter("tau", self.tau), "notion": self.notion, "rate": rate}
            search = Parameter("search", self.search)
            warn(FairnessWarning("shipped_slack", **about, search=search, slack=SLACK))

    def _choose_shipped(self) -> None:
        """Take the most accurate rule whose measured ratio reaches τ less a slack, if one does."""
        game, rate = self._game, SINGLE_RATES[self.notion]
        share = float(game.count[2:].sum() / game.count.sum())
        random = check_random_state(self.random_state)
        rules = combinations(self._gaussian, rate, share, float(self.tau), random)
        rules = [np.array([0.0, 1.0, 0.0, 1.0]), *rules]
        counts = cell_counts(np.array([game.at_half(rule) for rule in rules]), game.count)
        accuracy, ratio = overall_accuracy(counts), np.nan_to_num(rate.ratio(counts))
        kept = ratio >= self.tau - SLACK
        kept[0] = not kept[1:].any()  # without a rule, where P[Y = 1 | x] is above one half
        best = int(np.argmax(np.where(kept, accuracy, -1.0)))
        self.combination_, self.cut_ = rules[best].reshape(2, 2), 0.5
        self.accuracy_, self.rate_ = float(accuracy[best]), float(rate.ratio(counts[best]))
        self.feasible_ = bool(self._target.reached(self.rate_))

    def _choose(self) -> None:
        game = self._game
        intervals = game.explore(float(self.tau), self.epsilon)
        self.intervals_ = pd.DataFrame(
            [interval[:3] for interval in intervals], columns=["low", "high", "accuracy"]
        ).sort_values("low", ignore_index=True)
        game.refine(self._target)
        accuracy, rate = game.measured()
        reaches = np.array([self._target.reached(value) for value in rate])
        self.feasible_ = bool(reaches.any())
        if self.feasible_:
            order = np.lexsort([-rate, np.where(reaches, -accuracy, np.inf)])
        else:
            order = np.lexsort([-accuracy, np.where(np.isnan(rate), np.inf, -rate)])
        best = int(order[0])
        self.combination_ = game.rules[best].combination.reshape(2, 2)
        self.cut_ = game.rules[best].cut
        self.accuracy_, self.rate_ = float(accuracy[best]), float(rate[best])

    def _score(self, X: FloatArray) -> FloatArray:
        return np.asarray(self._posterior(X) @ self.combination_.ravel() - self.cut_)

    def _squash(self, score: FloatArray) -> FloatArray:
        return np.clip((1 + score) / 2, 0, 1)
