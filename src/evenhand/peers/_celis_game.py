"""Group-fair classification of rows whose posteriors are known: the search of Celis et al."""

from copy import copy
from typing import Any, NamedTuple, Self

import numpy as np
from scipy.optimize import linprog

from evenhand.core.rates import RATES, Rate
from evenhand.core.targets import Target
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import FloatArray, share_within

# Scores nearer to 0 than this are ties, which a rule may decide either way.
TIE = 1e-10
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
# Scores that may be sorted in search of better cuts; rules from which other combinations are
# sought, and how far below the best they may be; the first step from one to another as a share of
# its size, the least as a share of that.
MAX_SCORES, STARTS, NEAR, FIRST_STEP, LEAST_STEP = 1_500_000, 30, 0.01, 0.5, 0.01
# What accuracy gains from a positive row of each cell: group 0's labels 0 and 1, group 1's.
GAIN = np.array([-1.0, 1.0, -1.0, 1.0])


class Rule(NamedTuple):
    """Threshold rule: positive where the posteriors' combination exceeds the cut."""

    combination: FloatArray
    cut: float


class Interval(NamedTuple):
    """Best randomised classifier with rates within [low, high]."""

    low: float
    high: float
    accuracy: float
    multipliers: FloatArray
    feasible: bool


class Game:
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
        self.rules: list[Rule] = []
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
                self.rules.append(Rule(combination, cut))
                self.positive.append(mass)
                self.positive_count.append(self._per_cell(self.weight * chosen))
            numbers.append(number)
        return numbers

    def _fraction(self, j: int) -> list[tuple[FloatArray, float]]:
        """Group j's rate: slope and offset in m of its numerator and of its denominator."""
        fraction = []
        for cells in (self.rate.numerator, self.rate.denominator):
            slope, offset = np.zeros(4), 0.0
            for y, prediction in cells:
                slope[2 * j + y] += 1 if prediction else -1
                offset += 0.0 if prediction else self.mass[2 * j + y]
            fraction.append((slope, offset))
        return fraction

    def constraints(self, low: float, high: float) -> tuple[FloatArray, FloatArray]:
        """Conditions that rates are within [low, high], as rows c and d of c·m + d ≥ 0.

        A rate is a fraction whose two parts are affine in m, so low ≤ top / bottom ≤ high is
        linear after multiplication. A share of positives in each group is required as well: a
        group without any would meet both, with a rate that is not defined.
        """
        slopes, offsets = [], []
        for j in range(2):
            total = max(float(self.mass[2 * j : 2 * j + 2].sum()), np.finfo(np.float64).tiny)
            (top, top_0), (bottom, bottom_0) = self._fraction(j)
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
    ) -> Interval | None:
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
                self.respond(combination)
                break
        feasible = float(mixture.x[-n_met:].sum()) <= FEASIBLE
        return Interval(low, high, value, multipliers, feasible)

    def explore(self, tau: float, epsilon: float) -> list[Interval]:
        """Solve the intervals [a, a / tau] for a on the grid; give those that have a solution."""
        solved: list[Interval] = []
        floor = -np.inf
        lows = np.minimum(np.arange(0, 1 + epsilon / 2, epsilon), 1)
        # From the unconstrained classifier's rates outwards: good answers first.
        rates = self.rate.per_group(cell_counts(self.positive[0], self.mass))
        middle = float(np.nanmean(rates)) if np.isfinite(rates).any() else 0.5
        for low in lows[np.argsort(np.abs(lows - middle), kind="stable")].tolist():
            near = min(solved, key=lambda s: abs(s.low - low)).multipliers if solved else None
            interval = self.solve(low, min(1.0, low / tau), near, floor)
            if interval is not None:
                solved.append(interval)
                if interval.feasible:
                    floor = max(floor, interval.accuracy - MARGIN)
        return [interval for interval in solved if interval.feasible]

    def refine(self, target: Target) -> None:
        """Add rules that reach the target by the rows' labels and are more accurate there.

        The rules met are best by the estimates, which on few rows are far from the labels. So all
        cuts of their combinations are counted, and all cuts of those a step away from the best ones
        along the multipliers' directions, the steps being halved until nothing is gained.
        """
        accuracy, rate = self.measured()
        order = np.lexsort([-accuracy, -np.clip(np.nan_to_num(rate), 0.0, target.level)])
        met = {self.rules[i].combination.tobytes(): self.rules[i].combination for i in order}
        combinations = [*met.values()][: MAX_SCORES // len(self.share)]
        left = MAX_SCORES // len(self.share) - len(combinations)
        floor = accuracy[rate >= target.level].max(initial=0.0) - NEAR
        starts = [(self._cut_anew(c, target, floor), c) for c in combinations]
        ways = np.unique([w for j in (0, 1) for w, _ in self._fraction(j) if w.any()], axis=0)
        for best, combination in sorted(starts, key=lambda start: -start[0])[:STARTS]:
            step = FIRST_STEP * max(1.0, float(np.abs(combination).max()))
            least = step * LEAST_STEP
            while step > least and left >= 2 * len(ways):
                near = [combination + sign * step * way for way in ways for sign in (-1, 1)]
                values = [self._cut_anew(c, target, best) for c in near]
                left -= len(near)
                if max(values) > best:
                    best = max(values)
                    combination = near[values.index(best)]
                else:
                    step /= 2

    def _cut_anew(self, combination: FloatArray, target: Target, floor: float) -> float:
        """Add the most accurate cut that reaches the target, if one is above the floor."""
        score = self.posterior @ combination
        order = np.argsort(-score)
        score, cell, weight = score[order], self.cell[order], self.weight[order]
        accuracy = self.count[0] + self.count[2] + np.cumsum(GAIN[cell] * weight)
        apart = score[:-1] - score[1:] > 2 * TIE * max(1.0, float(np.abs(combination).max()))
        last = np.flatnonzero(apart & (accuracy[:-1] > (floor + TIE) * self.count.sum()))
        inside = np.zeros((len(score), 4))
        inside[np.arange(len(score)), cell] = weight
        positive = np.cumsum(inside, axis=0)[last] if len(last) else inside[:0]
        right, rate = self._judge(positive)
        right[~(rate >= target.level)] = 0.0  # NaN reaches nothing
        if right.max(initial=0.0) <= max(floor + TIE, 0.0):
            return floor
        best = int(np.argmax(right))
        self.rules.append(Rule(combination, float(score[last[best] : last[best] + 2].mean())))
        self.positive_count.append(positive[best])
        return float(right[best])

    def measured(self) -> tuple[FloatArray, FloatArray]:
        """Accuracy and rate of every rule met, by the rows' labels; NaN if it is ineligible."""
        return self._judge(np.array(self.positive_count))

    def _judge(self, positive: FloatArray) -> tuple[FloatArray, FloatArray]:
        counts = cell_counts(positive, self.count)
        accuracy = counts[..., [0, 1], [0, 1]].sum(axis=(-2, -1)) / self.count.sum()
        share = RATES["selection_rate"].per_group(counts)
        proper = share_within(counts, self.min_share) & (share > 0) & (share < 1)
        return accuracy, np.where(proper.all(axis=-1), self.rate.ratio(counts), np.nan)


def cell_counts(positive: FloatArray, total: FloatArray) -> FloatArray:
    """Group × label × prediction from the cells' positive and whole mass."""
    counts = np.stack([np.maximum(total - positive, 0), positive], axis=-1)
    return counts.reshape(*positive.shape[:-1], 2, 2, 2)
