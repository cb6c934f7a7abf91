"""The meta-algorithm of Celis, Huang, Keswani and Vishnoi."""

from copy import copy
from dataclasses import KW_ONLY, dataclass
from numbers import Real
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import pandas as pd
from scipy.optimize import linprog
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.utils import check_random_state

from evenhand._sklearn import HasMethods, Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.core.rates import RATES, Rate, overall_accuracy
from evenhand.models.inputs import CodedRows, merge_alike
from evenhand.peers._base import (
    CONSTRAINTS,
    SINGLE_RATES,
    FloatArray,
    ScorePeer,
    TargetPeer,
    share_within,
)
from evenhand.peers._celis_shipped import SLACK, JointGaussian, combinations
from evenhand.peers._docs import peer_docs

# Scores nearer to 0 than this are ties, which a rule may decide either way.
TIE = 1e-10
# Inputs with fewer nonzeros than this share are fitted as sparse ones, which is faster.
SPARSE_SHARE = 0.3
# A constraint that needs a larger multiplier than this cannot be met.
MAX_MULTIPLIER = 1e4
# Duality gap, in accuracy, at which an interval is solved, and how long it may take.
GAP, MAX_ROUNDS = 1e-7, 300
# Rules of earlier intervals with which an interval begins.
MAX_START = 30
# Sum of what the conditions lack, as rates, at which an interval has a solution.
FEASIBLE = 1e-7
# Intervals whose optimum is this far below the best known one are not solved to the end.
MARGIN = 0.003
# How often the target for estimated rates is moved, and by how little it may be.
MAX_TARGETS, LEAST_MOVE = 4, 0.005
# What accuracy gains from a positive row of each cell: group 0's labels 0 and 1, group 1's.
GAIN = np.array([-1.0, 1.0, -1.0, 1.0])


class _Rule(NamedTuple):
    """Threshold rule: positive where the posteriors' combination exceeds the cut."""

    combination: FloatArray
    cut: float


class _Interval(NamedTuple):
    """Best randomised classifier with rates within [low, high], and the rule next to it."""

    low: float
    high: float
    accuracy: float
    multipliers: FloatArray
    rule: int
    feasible: bool


class _Game:
    r"""Group-fair classification of rows whose posteriors are known.

    ``posterior`` has one column for each cell, group 0's labels 0 and 1, then group 1's. A
    classifier f enters only through the positive mass
    :math:`m_{jy} = \sum_i w_i p_{jy}(x_i) f_i` of the cells; accuracy and every constraint are
    affine in m. The Lagrangian is maximised, row by row, by a threshold of a combination of the
    posteriors, and the dual function is minimised over the multipliers by cutting planes. Each
    threshold rule met is a plane, for this interval and for all others.
    """

    def __init__(
        self, posterior: FloatArray, rows: CodedRows, rate: Rate, min_share: float
    ) -> None:
        self.rate, self.min_share, self.posterior = rate, min_share, posterior
        self.weight = np.ones(len(rows.y)) if rows.weight is None else rows.weight
        self.share = self.weight / self.weight.sum()
        self.cell = rows.z * 2 + rows.y
        self.mass = self.share @ posterior
        self.count = self._per_cell(self.weight)
        self.rules: list[_Rule] = []
        self.positive: list[FloatArray] = []  # estimated positive mass of each rule
        self.positive_count: list[FloatArray] = []  # the same by labels and groups of the rows
        self._known: dict[bytes, int] = {}
        self.respond(GAIN)

    def _per_cell(self, weight: FloatArray) -> FloatArray:
        return np.bincount(self.cell, weights=weight, minlength=4).astype(np.float64)

    def fresh(self) -> Self:
        """Give the same rows with no rule met, so that answers do not depend on earlier ones."""
        other = copy(self)
        other.rules, other.positive, other.positive_count, other._known = [], [], [], {}
        other.respond(GAIN)
        return other

    def at_half(self, combination: FloatArray) -> FloatArray:
        """Give the positive weight per cell where a combination is above one half."""
        return self._per_cell(self.weight * (self.posterior @ combination > 0.5))

    def respond(self, combination: FloatArray) -> list[int]:
        """Add the rules that maximise a combination of masses, and give their numbers."""
        numbers = []
        score = self.posterior @ combination
        tie = TIE * max(1.0, float(np.abs(combination).max()))
        for cut in (-tie, tie):
            chosen = score > cut
            mass = (self.share * chosen) @ self.posterior
            key = mass.round(12).tobytes()
            number = self._known.setdefault(key, len(self.rules))
            if number == len(self.rules):
                # Halfway between chosen and other scores: rounding may not move a row across.
                if chosen.any() and not chosen.all():
                    cut = float(score[chosen].min() + score[~chosen].max()) / 2
                self.rules.append(_Rule(combination, cut))
                self.positive.append(mass)
                self.positive_count.append(self._per_cell(self.weight * chosen))
            numbers.append(number)
        return numbers

    def constraints(self, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Conditions that rates are within [low, high], as rows c and d of c·m + d ≥ 0.

        A rate is a fraction whose two parts are affine in m, so low ≤ top / bottom ≤ high is
        linear after multiplication. A share of positives in each group is required as well: a
        group without any would meet both, with a rate that is not defined.
        """
        slopes, offsets = [], []
        for j in range(2):
            total = max(float(self.mass[2 * j : 2 * j + 2].sum()), np.finfo(np.float64).tiny)
            fraction = []
            for cells in (self.rate.numerator, self.rate.denominator):
                slope, offset = np.zeros(4), 0.0
                for y, prediction in cells:
                    slope[2 * j + y] += 1 if prediction else -1
                    offset += 0.0 if prediction else self.mass[2 * j + y]
                fraction.append((slope, offset))
            (top, top_0), (bottom, bottom_0) = fraction
            positive = np.repeat([j == 0, j == 1], 2).astype(np.float64)
            for c, d in (
                (top - low * bottom, top_0 - low * bottom_0),
                (high * bottom - top, high * bottom_0 - top_0),
                (positive, -self.min_share * total),
                (-positive, (1 - self.min_share) * total),
            ):
                slopes.append(c / total)
                offsets.append(d / total)
        return np.array(slopes), np.array(offsets)

    def dual(
        self, multipliers: FloatArray, slopes: FloatArray, offsets: FloatArray
    ) -> tuple[float, FloatArray]:
        """Upper bound on the accuracy, and the combination whose sign attains it."""
        combination = GAIN + multipliers @ slopes
        bound = self.share @ np.maximum(0, self.posterior @ combination)
        return float(bound + self.mass[0] + self.mass[2] + multipliers @ offsets), combination

    def solve(
        self, low: float, high: float, start: FloatArray | None = None, floor: float = -np.inf
    ) -> _Interval | None:
        """Solve one interval; nothing if its accuracy is below the floor."""
        slopes, offsets = self.constraints(low, high)
        n_met = len(offsets)
        multipliers = np.zeros(n_met) if start is None else start
        best, combination = self.dual(multipliers, slopes, offsets)
        # Rules far from the best Lagrangian do not matter to the optimum, or are met again.
        used = np.argsort(np.array(self.positive) @ -combination, kind="stable")[:MAX_START]
        used = used.tolist()
        mixture: Any = None
        for _ in range(MAX_ROUNDS):
            if best < floor:
                return None
            met = self.respond(combination)
            if not set(met) - set(used) and mixture is not None:
                break
            used += sorted(set(met) - set(used))
            masses = np.array([self.positive[i] for i in used])
            # The best mixture of the rules in use; what is missing is paid for.
            mixture = linprog(
                np.append(-(masses @ GAIN), np.full(n_met, MAX_MULTIPLIER)),
                A_ub=np.hstack([-(masses @ slopes.T + offsets).T, -np.eye(n_met)]),
                b_ub=np.zeros(n_met),
                A_eq=np.append(np.ones(len(used)), np.zeros(n_met))[None],
                b_eq=[1.0],
                method="highs-ds",
            )
            if mixture.x is None:
                return None
            value = float(self.mass[0] + self.mass[2] - mixture.fun)
            multipliers = np.maximum(0, -mixture.ineqlin.marginals)
            bound, combination = self.dual(multipliers, slopes, offsets)
            best = min(best, bound)
            if best - value <= GAP:
                met = self.respond(combination)
                break
        feasible = float(mixture.x[-n_met:].sum()) <= FEASIBLE
        return _Interval(low, high, value, multipliers, met[0], feasible)

    def explore(self, tau: float, epsilon: float) -> list[_Interval]:
        """Solve the intervals [a, a / tau] for a on the grid; give those that have a solution."""
        solved: list[_Interval] = []
        floor = -np.inf
        lows = np.minimum(np.arange(0, 1 + epsilon / 2, epsilon), 1)
        # From the unconstrained classifier's rates outwards: good answers first.
        rates = self.rate.per_group(_counts(self.positive[0], self.mass))
        middle = float(np.nanmean(rates)) if np.isfinite(rates).any() else 0.5
        for low in lows[np.argsort(np.abs(lows - middle), kind="stable")].tolist():
            near = min(solved, key=lambda s: abs(s.low - low)).multipliers if solved else None
            interval = self.solve(low, min(1.0, low / tau), near, floor)
            if interval is not None:
                solved.append(interval)
                if interval.feasible:
                    floor = max(floor, interval.accuracy - MARGIN)
        return [interval for interval in solved if interval.feasible]

    def measured(self) -> tuple[FloatArray, FloatArray]:
        """Accuracy and rate of every rule met, by the rows' labels; NaN if it is ineligible."""
        counts = _counts(np.array(self.positive_count), self.count)
        accuracy = counts[..., [0, 1], [0, 1]].sum(axis=(-2, -1)) / self.count.sum()
        share = RATES["selection_rate"].per_group(counts)
        proper = share_within(counts, self.min_share) & (share > 0) & (share < 1)
        return accuracy, np.where(proper.all(axis=-1), self.rate.ratio(counts), np.nan)


def _counts(positive: FloatArray, total: FloatArray) -> FloatArray:
    """Group × label × prediction from the cells' positive and whole mass."""
    counts = np.stack([np.maximum(total - positive, 0), positive], axis=-1)
    return counts.reshape(*positive.shape[:-1], 2, 2, 2)


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
    candidate; where the estimated ratio and the measured one differ, the intervals are solved
    again with a target moved by the difference; and the answer is the most accurate candidate whose
    measured ratio is at least ``tau``. With ``at(tau)`` the posteriors are not estimated anew.

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
        selection and the false discovery rate: ``epsilon`` and ``estimator`` are ignored, and the
        answer is the most accurate rule whose ratio reaches ``tau`` − 0.2.
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
            self._game = _Game(self._posterior(rows.X), rows, rate, 0.0)
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
        self._game = _Game(self._posterior(rows.X), rows, rate, self.min_share)

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
        return self._choose_shipped()

    def _choose_shipped(self) -> None:
        """Take the most accurate rule whose measured ratio reaches τ less a slack, if one does."""
        game, rate = self._game, SINGLE_RATES[self.notion]
        share = float(game.count[2:].sum() / game.count.sum())
        random = check_random_state(self.random_state)
        rules = combinations(self._gaussian, rate, share, float(self.tau), random)
        rules = [np.array([0.0, 1.0, 0.0, 1.0]), *rules]
        counts = _counts(np.array([game.at_half(rule) for rule in rules]), game.count)
        accuracy, ratio = overall_accuracy(counts), np.nan_to_num(rate.ratio(counts))
        kept = ratio >= self.tau - SLACK
        kept[0] = not kept[1:].any()  # without a rule, where P[Y = 1 | x] is above one half
        best = int(np.argmax(np.where(kept, accuracy, -1.0)))
        self.combination_, self.cut_ = rules[best].reshape(2, 2), 0.5
        self.accuracy_, self.rate_ = float(accuracy[best]), float(rate.ratio(counts[best]))
        self.feasible_ = bool(self._target.reached(self.rate_))

    def _choose(self) -> None:
        game, target = self._game, float(self.tau)
        tried: list[float] = []
        for _ in range(MAX_TARGETS):
            intervals = game.explore(target, self.epsilon)
            accuracy, rate = game.measured()
            if not tried:
                self.intervals_ = pd.DataFrame(
                    [interval[:3] for interval in intervals], columns=list(_Interval._fields[:3])
                ).sort_values("low", ignore_index=True)
            tried.append(target)
            if not intervals:
                break
            measured = rate[max(intervals, key=lambda s: s.accuracy).rule]
            target = float(np.clip(target + self.tau - measured, self.epsilon, 1.0))
            if not min(abs(target - t) for t in tried) >= LEAST_MOVE:  # NaN ends it too
                break
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
