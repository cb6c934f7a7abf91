"""The record of a frontier and of one of its points, and how points are pruned."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.objectives import ACCURACY, Objective
from evenhand.core.rates import RATES
from evenhand.core.targets import READ

__all__ = ["Frontier", "Point"]

# Bins of the rate: a point that another beats by a whole bin is dropped before points are sorted.
RATE_BINS = 8192

# The fields of a frontier that have an entry for each point.
COLUMNS = ("iterate", "cut", "accuracy", "rate", "counts")


class Point(NamedTuple):
    """A classifier on the frontier: an iterate and a cut on its scores.

    The cut is a number, or one for each group, or one for each of many labels. ``source`` says what
    found the iterate (:attr:`evenhand.core.trajectory.Trajectory.sources`).
    """

    iterate: int
    cut: Any
    accuracy: float
    rate: float
    counts: FloatArray
    feasible: bool
    source: str = ""


@dataclass(frozen=True)
class Frontier:
    """The (iterate, cut) pairs worth choosing, with their figures on the data they were found on.

    Sorted by rising rate and falling utility, which is the accuracy unless another objective is
    maximised. Empty if no point was eligible.

    Parameters
    ----------
    iterate : ndarray of int
        Which kept iterate.
    cut : ndarray of shape (n_points,) or (n_points, n)
        Decision cut: a row is positive if its score exceeds it. With a cut for each group, or a
        number for each of many labels, a row of them (:func:`evenhand.frontier.cuts.decide`).
    accuracy, rate : ndarray
        Accuracy, and the value of the target (:class:`~evenhand.core.targets.Target`), the larger
        the fairer: the ratio of the groups' rates, or minus their largest difference.
    counts : ndarray of shape (n_points, n_groups, n_labels, n_labels)
        Weight per group × label × prediction; rows in no group, if there are any, are last.
    groups : sequence
        The compared groups' names.
    labels : sequence, default=(0, 1)
        The labels' names.
    favourable : sequence of int, default=(1,)
        Numbers of the labels that count as positive, each by itself.
    last : Point
        The last iterate at cut 0: the answer when nothing is eligible.
    rate_name : str
        What ``rate`` is, in words.
    comparison : str, default="ratio"
        How groups are compared (:attr:`evenhand.core.targets.Target.comparison`).
    complete : bool
        False if the sweep was interrupted; its points are then the best so far.
    objective : Objective
        What is maximised.
    n_sure : int
        How many points, from the first, no other beats in utility and in its rate less a margin
        for chance. The others have higher rates, which may be chance.
    sources : sequence of str, default=()
        What found each iterate, by its number.
    conservative : Frontier, optional
        Every point that no other beats in utility and in its rate less the margin: also those that
        others beat in utility and in the rate itself, which have more positives and so a surer
        rate. Sorted by falling utility.
    """

    iterate: NDArray[np.intp]
    cut: FloatArray
    accuracy: FloatArray
    rate: FloatArray
    counts: FloatArray
    groups: Sequence[Any]
    last: Point
    labels: Sequence[Any] = (0, 1)
    favourable: Sequence[int] = (1,)
    rate_name: str = "rate"
    comparison: str = "ratio"
    complete: bool = True
    n_sure: int = 0
    sources: Sequence[str] = ()
    conservative: Frontier | None = None
    objective: Objective = ACCURACY

    def __len__(self) -> int:
        return len(self.rate)

    @property
    def utility(self) -> FloatArray:
        """What points are chosen by: the objective's utility of each."""
        return self.accuracy if self.objective == ACCURACY else self.objective.utility(self.counts)

    @property
    def value(self) -> FloatArray:
        """What the objective is at each point, as people read it."""
        return self.accuracy if self.objective == ACCURACY else self.objective.value(self.counts)

    @property
    def constant(self) -> float:
        """Utility of the same answer to everybody, the best one."""
        return self.objective.best_for_everybody(self.last.counts)[1]

    def take(self, index: NDArray[np.intp]) -> Frontier:
        """Give some of the points, by their numbers."""
        columns: dict[str, Any] = {name: getattr(self, name)[index] for name in COLUMNS}
        return replace(self, **columns, n_sure=0, conservative=None)

    def select(self, level: float) -> Point:
        """Choose the point of the highest utility whose value, ``rate``, is at least ``level``.

        Equal utility: the higher rate, then the earlier iterate, then the larger cut. If no point
        reaches ``level``, the one of the highest rate, or the last iterate if none is eligible,
        both with ``feasible=False``.
        """
        if not len(self):
            return self.last
        i = int(np.searchsorted(self.rate, level, side="left"))
        return point_of(self, min(i, len(self) - 1), i < len(self))

    def to_frame(self) -> pd.DataFrame:
        """One row per point, with each group's selection rate.

        ``rate`` is the ratio; in its place, ``difference`` is the largest difference of the groups'
        rates, or ``shortfall`` what misses of mixed targets, both the smaller the fairer.
        ``source`` says what found it; ``below_constant``, that the same answer to everybody would
        be right more often, or worth more by the objective, whose value has a column of its name.
        """
        columns: dict[str, Any] = {"iterate": self.iterate}
        if self.sources:
            columns["source"] = [self.sources[i] for i in self.iterate]
        if self.cut.ndim == 1:
            columns["cut"] = self.cut
        else:
            named = self.labels if len(self.labels) > 2 else [*self.groups, "others"]
            columns |= {f"cut[{name}]": c for name, c in zip(named, self.cut.T, strict=False)}
        name, sign = READ[self.comparison]
        columns |= {"accuracy": self.accuracy, name: sign * self.rate}
        if self.objective.name not in columns:
            columns[self.objective.name] = self.value
        columns["below_constant"] = self.utility < self.constant - 1e-12
        for c in self.favourable:
            selected = RATES["selection_rate"].of_label(c, len(self.labels))
            share = selected.per_group(self.counts[:, : len(self.groups)])
            label = f", {self.labels[c]}" if len(self.labels) > 2 else ""
            columns |= {
                f"selection_rate[{g}{label}]": share[:, j] for j, g in enumerate(self.groups)
            }
        return pd.DataFrame(columns)


class Points(NamedTuple):
    """Columns of points while sweeping: the target's value, and ``sure``, that less a margin."""

    iterate: NDArray[np.intp]
    cut: FloatArray
    utility: FloatArray
    rate: FloatArray
    sure: FloatArray
    counts: FloatArray

    def take(self, index: Any) -> Points:
        return Points(*(column[index] for column in self))

    def join(self, others: Iterable[Points]) -> Points:
        return Points(*map(np.concatenate, zip(self, *others, strict=True)))

    def pareto(self, by: str) -> Points:
        """Keep the points no other beats in utility and in the column ``by``.

        Ties are broken as in :meth:`Frontier.select`.
        """
        # One quick sort leaves few points for the slow ones.
        merit = getattr(self, by)
        order = np.argsort(merit)
        utility = self.utility[order]
        best = np.maximum.accumulate(utility[::-1])[::-1]
        few = self.take(order[utility >= best - 1e-12])
        # Sums of fractional weights that are equal may differ in the last digits.
        utility, merit, rate = (np.round(v, 12) for v in (few.utility, getattr(few, by), few.rate))
        order = np.lexsort((*-few.cut.T, few.iterate, -rate, -merit, -utility))
        best = np.maximum.accumulate(np.concatenate([[-np.inf], merit[order]]))
        return few.take(order[merit[order] > best[:-1]])

    def utility_by(self, by: str, worst: float) -> FloatArray:
        """Best utility among the points of a Pareto set from a bin's upper edge on.

        The first bin begins at the ``worst`` value.
        """
        edges = worst + np.arange(1, RATE_BINS + 2) / RATE_BINS
        return np.append(self.utility, -np.inf)[np.searchsorted(getattr(self, by), edges)]

    def beats(self, by: str, to_beat: FloatArray, worst: float) -> NDArray[np.bool_]:
        """Which points have more utility than :meth:`utility_by` of others says for their bin."""
        return beats(self.utility, getattr(self, by), to_beat, worst)


def beats(
    utility: FloatArray, merit: FloatArray, to_beat: FloatArray, worst: float
) -> NDArray[np.bool_]:
    """As :meth:`Points.beats`, of columns."""
    above = merit - worst
    # An undefined value fails the comparison.
    bins = (np.where(above >= 0, above, 0.0) * RATE_BINS).astype(np.intp)
    return np.asarray((utility > to_beat[bins]) & (merit == merit))


def point_of(points: Any, i: int, feasible: bool, sources: Sequence[str] = ()) -> Point:
    cut, iterate = points.cut[i], int(points.iterate[i])
    sources = sources or getattr(points, "sources", ())
    return Point(
        iterate,
        cut if np.ndim(cut) else float(cut),
        float(points.accuracy[i]),
        float(points.rate[i]),
        points.counts[i],
        feasible,
        sources[iterate] if sources else "",
    )
