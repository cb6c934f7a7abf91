"""Which point of a frontier answers which target, so that it holds on rows the fit has not seen.

A point chosen on the data it was fitted to has a rate that is better there than elsewhere.
:func:`answer` finds the point for every τ from counts alone, on whatever rows they are of, with the
margin of a confidence or by tests on held-out rows (:mod:`evenhand.statistics.bounds`).
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil, floor
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.objectives import Objective
from evenhand.core.rates import overall_accuracy
from evenhand.core.targets import READ, Target
from evenhand.frontier.held_out import HeldOut, candidates, order_of_tests
from evenhand.frontier.points import Frontier, Point, point_of
from evenhand.statistics.bounds import lower_gain, lower_value, margin_of, rows_factor

__all__ = ["Answers", "Choice", "Guarantee", "answer", "beats_constant", "guaranteed_choice"]

# How sure it must be that a point is right more often than the same answer to everybody.
BEYOND_CHANCE = margin_of(0.9)


@dataclass(frozen=True)
class Guarantee:
    r"""What ``confidence="certified"`` can say of the chosen point.

    With confidence :math:`1 - \delta` over the draw of the held-out rows, the target holds in the
    population that the rows are drawn from. ``str()`` says it in words.

    Parameters
    ----------
    certified : bool
        Whether the point is certified; all else is about the point that is kept if not.
    target : Target
        What is demanded.
    delta : float
        Probability of a wrong guarantee.
    bound : float
        Lower confidence bound of the target's value of the point by itself; at least its level if
        certified.
    rate : float
        The target's value on the held-out rows.
    n_rows : int
        Rows held out.
    tested, candidates : int
        Points that were tested, the failed one included, and points in line to be tested.
    rows_needed : int or None
        Without a guarantee: about how many held-out rows it would take at the rates seen, of
        persons one each; None if no number would do. None as well if certified.
    moved : bool
        Whether the target was named after the fit, in place of another.
    """

    certified: bool
    target: Target
    delta: float
    bound: float
    rate: float
    n_rows: int
    tested: int
    candidates: int
    rows_needed: int | None
    moved: bool = False

    def __str__(self) -> str:
        target, n = self.target, len(self.target.demands)
        ratios, each = target.comparison == "ratio", target.comparison
        what = each if n < 2 else "worst of the ratios" if ratios else "largest of the differences"
        if len(set(target.rate.shares)) > 1:
            # Several rates are measured in shares of their targets.
            of = "worst ratio" if ratios else "largest difference"
            what = f"{of}, in units of its target over the strictest,"
        if each == "mixed":
            what = "largest shortfall, in units of what its target allows over the strictest,"
        seen = f"on {self.n_rows:,} held-out rows the {what} is {target.text(self.rate)}"
        sure = f"{1 - self.delta:.4g}"
        if self.certified:
            subject = f"the {each}" if n < 2 else f"every {each}"
            holds = f"{subject} in the population is at {'least' if ratios else 'most'} {target}"
            if each == "mixed":
                holds = f"every target holds in the population: {target}"
            two = max(1 - 2 * self.delta, 0.0)
            later = (
                f"; this target was named after the fit for another: any two targets fixed "
                f"beforehand hold together with confidence {two:.4g}, more of them, or the best of "
                "several, with less"
            )
            return (
                f"certified: with confidence {sure} {holds} ({seen}; {self.tested} of "
                f"{self.candidates} points tested{later * self.moved})"
            )
        if not self.candidates:
            return f"no point can be certified for {target}: there is none to test"
        text = (
            f"no point can be certified for {target} with confidence {sure}: of the "
            f"fairest, {seen}, which shows no {'more' if ratios else 'less'} than "
            f"{target.text(self.bound)}; "
        )
        if self.rows_needed is None:
            return (
                f"{text}that is itself too {'low' if ratios else 'large'}, so at these rates no "
                "number of rows would be enough; a fit to more rows may find fairer points"
            )
        digits = 10 ** max(len(str(self.rows_needed)) - 2, 0)  # two of them are enough
        needed = ceil(self.rows_needed / digits) * digits
        return text + f"at these rates about {needed:,} held-out rows would be needed"


class Choice(NamedTuple):
    """A point with its figures on the rows it was chosen on.

    ``bound`` is what the ratio in the population reaches with the confidence that was asked for;
    without one it is the rate itself. ``beats_constant`` says whether the point is worth more than
    the same answer to everybody, beyond chance, by the objective, whose ``value`` is beside the
    accuracy. ``guarantee`` is there if one was sought.
    """

    point: Point
    rate: float
    accuracy: float
    value: float
    bound: float
    beats_constant: bool
    guarantee: Guarantee | None = None

    @classmethod
    def of(
        cls, counts: FloatArray, objective: Objective, point: Point, rate: float, accuracy: float,
        bound: float,
    ) -> Choice:  # fmt: skip
        """Make it of a point whose counts say what it is worth."""
        value, beats = float(objective.value(counts)), beats_constant(counts, objective)
        return cls(point, rate, accuracy, value, bound, beats)


@dataclass(frozen=True)
class Answers:
    r"""Which point answers which target: the choice for every τ, made at once.

    Sorted by rising ``reach`` and falling utility: of the points that reach τ the first is the
    most accurate, or the best by another objective. So a higher τ never has a better answer.

    Parameters
    ----------
    points : Frontier
        The points that may be chosen, with their figures on the rows fitted to.
    index : ndarray of int
        Which of them are answers.
    reach : ndarray
        The largest τ that each answers: its ratio less the margin of the confidence asked for, or
        the least exact bound among it and those tested before it.
    accuracy, rate : ndarray
        Figures on the rows that the choice looks at.
    counts : ndarray of shape (n_answers, n_groups, n_labels, n_labels)
        Weight per group × label × prediction of these rows.
    last : Choice
        What is chosen if there is no point at all.
    """

    points: Frontier
    index: NDArray[np.intp]
    reach: FloatArray
    accuracy: FloatArray
    rate: FloatArray
    counts: FloatArray
    last: Choice

    def __len__(self) -> int:
        return len(self.index)

    def choose(self, tau: float) -> Choice:
        """Choose the most accurate point that reaches τ, or the best by another objective.

        If none does, the one that comes nearest, with ``feasible=False``.
        """
        i = self.find(tau)
        if i is None:
            return self.last
        point = point_of(self.points, int(self.index[i]), bool(self.reach[i] >= tau))
        rate, accuracy, reach = float(self.rate[i]), float(self.accuracy[i]), float(self.reach[i])
        return Choice.of(self.counts[i], self.points.objective, point, rate, accuracy, reach)

    def find(self, tau: float) -> int | None:
        """Find the number of the answer to τ, else of the one nearest to it; None without any."""
        if not len(self):
            return None
        return min(int(np.searchsorted(self.reach, tau, side="left")), len(self) - 1)

    def strictest(self) -> tuple[float, Choice] | None:
        """Find the strictest level whose answer beats one answer to everybody, and that answer.

        The level is rounded to the looser side, to three digits; None if no answer does.
        """
        if not len(self):
            return None
        better = np.flatnonzero(lower_gain(self.counts, BEYOND_CHANCE, self.points.objective) > 0)
        if not len(better):
            return None
        level = floor(1000 * float(self.reach[better[-1]]) + 1e-9) / 1000
        loosest = 0.0 if self.points.comparison == "ratio" else -1.0
        return (level, self.choose(level)) if level > loosest else None

    def to_frame(self) -> pd.DataFrame:
        """One row per answer: the strictest target it answers, its accuracy and its rate.

        The target is ``tau`` of a ratio, and ``epsilon`` of a difference, which stands in place of
        the rate then.
        """
        name, sign = READ[self.points.comparison]
        goal = {"rate": "tau", "difference": "epsilon"}.get(name, "allowed")
        columns = {goal: sign * self.reach, "accuracy": self.accuracy, name: sign * self.rate}
        objective = self.points.objective
        if objective.name not in columns:
            columns[objective.name] = objective.value(self.counts)
        return pd.DataFrame(columns)


def answer(
    frontier: Frontier,
    held_out: HeldOut | None,
    target: Target,
    *,
    margin: float = 0.0,
    certify: float | None = None,
) -> Answers:
    r"""Find the answers to all targets.

    With ``certify``, the points in :func:`order_of_tests` are tested on the held-out rows: a point
    passes if its exact bound reaches τ. At the first failure it ends, and of those that
    passed the most accurate, or the best by another objective, is taken. An error needs that a
    point passes whose ratio in the population is below τ. The first such point in line is fixed
    before the held-out rows are seen, no other passes unless it does, and it passes with
    probability δ at most: the number of tests costs nothing.

    Parameters
    ----------
    frontier : Frontier
        The points, with their figures on the rows fitted to.
    held_out : HeldOut, optional
        Points with their figures on other rows, from which to choose; without it, those fitted to.
    target : Target
        What is demanded; its level does not count.
    margin : float, default=0
        Standard errors by which a ratio must be above τ (:func:`margin_of`).
    certify : float, optional
        δ: choose by tests on held-out rows that guarantee τ.
    """
    if held_out is None:
        points: Any = candidates(frontier) if margin else frontier
        figures: Any = points
    else:
        points, figures = held_out.points, held_out
    compared = figures.counts[:, : len(points.groups)]
    reach, order = lower_value(compared, target, margin), np.zeros(0, dtype=np.intp)
    if certify is not None:
        order, reach = order_of_tests(figures, target, certify), np.full(len(points), np.nan)
        bound = figures.bound[order]
        reach[order] = np.minimum.accumulate(bound)  # an undefined bound ends the tests
    index = _best_for_each(figures.utility, reach, figures.rate)
    if len(order) and order[0] not in index[-1:]:
        # Where no test is passed, the first in line is kept, and what is said is about it.
        index = np.append(index, order[0])
    if len(points) and not len(index):
        # None has a rate on the rows looked at: the one that is fairest where it was fitted.
        index = np.array([np.argmax(points.rate)])
    counts = frontier.last.counts if held_out is None else held_out.last
    ratio = float(target.value(counts[: len(frontier.groups)]))
    accuracy = float(overall_accuracy(counts))
    last = Choice.of(counts, frontier.objective, frontier.last, ratio, accuracy, ratio)
    return Answers(
        points,
        index,
        reach[index],
        figures.accuracy[index],
        figures.rate[index],
        figures.counts[index],
        last,
    )


def beats_constant(counts: FloatArray, objective: Objective) -> bool:
    """Say whether a point is worth more than one answer to everybody, beyond chance."""
    return bool(lower_gain(counts, BEYOND_CHANCE, objective) > 0)


def _best_for_each(utility: FloatArray, reach: FloatArray, rate: FloatArray) -> NDArray[np.intp]:
    """Points that no other beats in utility and reach, by rising reach; ties: the higher rate."""
    defined = np.flatnonzero(~np.isnan(reach))
    # Sums of fractional weights that are equal may differ in the last digits.
    utility, level = np.round(utility[defined], 12), np.round(reach[defined], 12)
    order = np.lexsort((-rate[defined], -level, -utility))
    best = np.maximum.accumulate(np.concatenate([[-np.inf], level[order]]))
    return defined[order[level[order] > best[:-1]]]


def guaranteed_choice(
    answers: Answers, held_out: HeldOut, target: Target, delta: float, *, moved: bool
) -> Choice:
    """Choose by tests on held-out rows, and say what they guarantee; ``moved`` as in Guarantee."""
    tau = target.level
    order, at = order_of_tests(held_out, target, delta), answers.find(tau)
    # How many pass before the first failure; an undefined bound fails.
    passed = int(np.argmin(np.append(held_out.bound[order] >= tau, False)))
    i = -1 if at is None else int(answers.index[at])
    needed = None
    if len(order) and not passed:
        compared = held_out.counts[i][: len(held_out.points.groups)]
        factor = rows_factor(compared, target, delta)
        needed = ceil(factor * held_out.n_rows) if np.isfinite(factor) else None
    bound = float(held_out.bound[i]) if len(order) else np.nan
    guarantee = Guarantee(
        certified=passed > 0,
        target=target,
        delta=float(delta),
        bound=bound,
        rate=float(held_out.rate[i]) if len(order) else np.nan,
        n_rows=held_out.n_rows,
        tested=min(passed + 1, len(order)),
        candidates=len(order),
        rows_needed=needed,
        moved=moved,
    )
    return answers.choose(tau)._replace(bound=bound, guarantee=guarantee)
