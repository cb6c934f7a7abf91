r"""The accuracy–fairness frontier of one fit.

Every kept iterate with every cut on its scores is a classifier. One sort of an iterate's scores
gives the counts, and so accuracy and rate, of all its cuts; :func:`sweep` goes over the iterates
and keeps the Pareto set. Choosing a point for a target τ is then a look-up, with no more training.

Among so many points some owe their rate to luck, and the most accurate ones that reach τ are mostly
those. A point is therefore kept only if no other is as accurate and as *surely* fair: rates are
compared less :math:`\sqrt{2 \ln m}` standard errors, which is by how much the luckiest of m looks
better than it is. τ itself is held against the rate as it is. Where no such point reaches τ, the
points of still higher rates follow, luck or not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from math import log, sqrt
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from threadpoolctl import ThreadpoolController

from evenhand.oracle import Oracle, float64_scores
from evenhand.rates import RATES

__all__ = ["Frontier", "Point", "sweep"]

FloatArray = NDArray[Any]

# Scores closer than this, relative to the size of the terms they are sums of, are the same score.
RESOLUTION = {np.dtype(np.float32): 1e-6, np.dtype(np.float64): 1e-12}
# Scores held at once while sweeping; never rows × iterates.
SWEEP_SCORES = 1 << 22
# A point that a known one beats by a whole bin of rate is dropped before anything is sorted.
RATE_BINS = 2048


class Point(NamedTuple):
    """A classifier on the frontier: an iterate and a cut on its scores."""

    iterate: int
    cut: float
    accuracy: float
    rate: float
    counts: FloatArray
    feasible: bool


@dataclass(frozen=True)
class Frontier:
    """The (iterate, cut) pairs worth choosing, with their figures on the data they were found on.

    Sorted by rising rate; accuracy falls along the first ``n_sure`` points and along the others.
    Empty if no point was eligible.

    Parameters
    ----------
    iterate : ndarray of int
        Which kept iterate.
    cut : ndarray
        Decision cut: a row is positive if its score exceeds it.
    accuracy, rate : ndarray
        Accuracy, and ratio of the notion's rate between the groups.
    counts : ndarray of shape (n_points, n_groups, 2, 2)
        Weight per group × label × prediction; last, if there are any, that of rows in no group.
    groups : sequence
        The compared groups' names.
    last : Point
        The last iterate at cut 0: the answer when nothing is eligible.
    rate_name : str
        What ``rate`` is, in words.
    complete : bool
        False if the sweep was interrupted; the points are then those found so far.
    n_sure : int
        How many points, from the first, no other beats in accuracy and in its rate less a margin
        for luck. The others have higher rates, which may be luck.
    wary : Frontier, optional
        Every point that no other beats in accuracy and in its rate less the margin: also those that
        others beat in accuracy and in the rate itself, which have more positives and so a surer
        rate. Sorted by falling accuracy.
    """

    iterate: NDArray[np.intp]
    cut: FloatArray
    accuracy: FloatArray
    rate: FloatArray
    counts: FloatArray
    groups: Sequence[Any]
    last: Point
    rate_name: str = "rate"
    complete: bool = True
    n_sure: int = 0
    wary: Frontier | None = None

    def __len__(self) -> int:
        return len(self.rate)

    def select(self, tau: float) -> Point:
        """Choose the most accurate point whose rate is at least ``tau``.

        Among the sure points if one of them reaches ``tau``, else among the others. Equal accuracy:
        the higher rate, then the earlier iterate, then the larger cut. If no point reaches ``tau``,
        the one of the highest rate, or the last iterate if none is eligible, both with
        ``feasible=False``.
        """
        if not len(self):
            return self.last
        i = int(np.searchsorted(self.rate, tau, side="left"))
        return _point(self, min(i, len(self) - 1), feasible=i < len(self))

    def to_frame(self) -> pd.DataFrame:
        """One row per point, with each group's selection rate."""
        columns = {
            "iterate": self.iterate,
            "cut": self.cut,
            "accuracy": self.accuracy,
            "rate": self.rate,
        }
        share = RATES["selection_rate"].per_group(self.counts[:, : len(self.groups)])
        columns |= {f"selection_rate[{g}]": share[:, j] for j, g in enumerate(self.groups)}
        return pd.DataFrame(columns)


class _Points(NamedTuple):
    """Columns of points while sweeping; ``sure`` is the rate less its margin for luck."""

    iterate: NDArray[np.intp]
    cut: FloatArray
    accuracy: FloatArray
    rate: FloatArray
    sure: FloatArray
    counts: FloatArray

    def take(self, index: Any) -> _Points:
        return _Points(*(column[index] for column in self))

    def join(self, others: Iterable[_Points]) -> _Points:
        return _Points(*map(np.concatenate, zip(self, *others, strict=True)))

    def pareto(self, by: str) -> _Points:
        """Keep the points no other beats in accuracy and in the column ``by``.

        Ties are broken as in :meth:`Frontier.select`.
        """
        # One quick sort leaves few points for the slow ones.
        merit = getattr(self, by)
        order = np.argsort(merit)
        accuracy = self.accuracy[order]
        best = np.maximum.accumulate(accuracy[::-1])[::-1]
        few = self.take(order[accuracy >= best - 1e-12])
        # Sums of fractional weights that are equal may differ in the last digits.
        accuracy, merit, rate = (
            np.round(v, 12) for v in (few.accuracy, getattr(few, by), few.rate)
        )
        order = np.lexsort((-few.cut, few.iterate, -rate, -merit, -accuracy))
        best = np.maximum.accumulate(np.concatenate([[-np.inf], merit[order]]))
        return few.take(order[merit[order] > best[:-1]])

    def accuracy_by(self, by: str) -> FloatArray:
        """Best accuracy among the points of a Pareto set from a bin's upper edge on."""
        edges = np.arange(1, RATE_BINS + 2) / RATE_BINS
        return np.append(self.accuracy, -np.inf)[np.searchsorted(getattr(self, by), edges)]

    def beats(self, by: str, to_beat: FloatArray) -> NDArray[np.bool_]:
        """Which points are more accurate than :meth:`accuracy_by` of others says for their bin."""
        merit = getattr(self, by)
        bins = (np.where(merit >= 0, merit, 0.0) * RATE_BINS).astype(np.intp)
        # An undefined rate fails the comparison.
        return (self.accuracy > to_beat[bins]) & (merit >= 0)


def _cut_counts(
    scores: FloatArray, gap: float, cell: NDArray[np.intp], weight: FloatArray | None, n_cells: int
) -> tuple[FloatArray, FloatArray]:
    """Cuts in the gaps between scores wider than ``gap``; each cell's weight below and above them.

    Weights have shape (n_cells, 2, n_cuts).
    """
    order = np.argsort(scores)[::-1]
    s, cell = scores[order], cell[order]
    member = cell == np.arange(n_cells)[:, None]
    above = np.cumsum(member if weight is None else member * weight[order], axis=1, dtype=float)
    ends = np.flatnonzero(s[:-1] - s[1:] > gap)
    high, low = s[ends], s[ends + 1]
    # np.take, not above[:, ends], whose memory order would slow down all that follows. The total is
    # that of the same running sum, so that nothing is left below the last row, not even rounding.
    total, above = above[:, -1:], np.take(above, ends, axis=1)
    return high + (low - high) / 2, np.stack([total - above, above], axis=1)


# BLAS's number of threads belongs to the whole process: sweeps of overlapping fits take turns, or
# one would restore what another had set.
_ONE_SWEEP = Lock()


@contextmanager
def _worker_map() -> Iterator[Callable[..., Any]]:
    """Give a ``map`` over as many threads as BLAS may use, with one BLAS thread each.

    How many that is, is the user's say: the environment, ``threadpoolctl.threadpool_limits``, or
    joblib, whose workers get one each.
    """
    with _ONE_SWEEP:
        blas = ThreadpoolController().select(user_api="blas")
        threads = max([1, *(int(pool["num_threads"]) for pool in blas.info())])
        with blas.limit(limits=1), ThreadPoolExecutor(threads) as pool:
            yield pool.map


def sweep(
    oracle: Oracle,
    iterates: FloatArray,
    *,
    cut: bool = True,
    min_share: float = 0.01,
    groups: Sequence[Any] = (0, 1),
) -> Frontier:
    """Frontier of the iterates on the oracle's data.

    Parameters
    ----------
    oracle : Oracle
        The data and the notion.
    iterates : ndarray of shape (n_iterates, n_weights)
        Weights, the earliest first.
    cut : bool, default=True
        Sweep every cut; otherwise only the cut 0 of each iterate, the paper's thresholding, and
        without caution.
    min_share : float, default=0.01
        Least share of predicted positives, and of negatives, in every group.
    groups : sequence, default=(0, 1)
        Names of the groups.
    """
    notion, k, blocks = oracle.notion, oracle.game.kinds, oracle.blocks
    compared = oracle.n_groups
    cell = np.concatenate([b.cell for b in blocks])
    weight = None if blocks[0].weight is None else np.concatenate([b.weight for b in blocks])
    resolution = RESOLUTION[np.dtype(blocks[0].X.dtype)]
    caution = 0.0

    def points(i: int, cuts: FloatArray, weights: FloatArray) -> _Points:
        """Points of an iterate, from its cuts and the cells' weights below and above them."""
        counts = weights.reshape(k, 2, 2, len(cuts))
        accuracy = RATES["accuracy"].per_group(np.moveaxis(counts.sum(axis=0), -1, 0))
        counts = np.moveaxis(counts, -1, 0)  # a view; rates are computed along contiguous memory
        index = np.full(len(cuts), i, dtype=np.intp)
        rate = notion.rate.ratio(counts[:, :compared])
        return _Points(index, cuts, accuracy, rate, rate, counts)

    def at_zero(i: int, scores: FloatArray) -> _Points:
        weights = np.bincount(cell * 2 + (scores > 0), weights=weight, minlength=4 * k)
        return points(i, np.zeros(1), weights.astype(np.float64))

    def survivors(
        i: int, scores: FloatArray, size: float, to_beat: dict[str, FloatArray]
    ) -> dict[str, _Points]:
        """Find the iterate's Pareto sets, less most of what known points beat already."""
        if cut:
            gap = resolution * size
            found = points(i, *_cut_counts(scores, gap, cell, weight, 2 * k))
            # Nothing is sure of more than its rate: this drops most, and nothing that counts.
            found = found.take(found.beats("rate", to_beat["sure"]))
            luck = caution * notion.rate.log_ratio_error(found.counts[:, :compared])
            found = found._replace(sure=found.rate * np.exp(-luck))
        else:
            found = at_zero(i, scores)
        found = found.take(notion.eligible(found.counts[:, :compared], min_share))
        return {by: found.take(found.beats(by, bar)).pareto(by) for by, bar in to_beat.items()}

    nothing = points(0, np.zeros(0), np.zeros((2 * k, 2, 0)))
    best = {"sure": nothing, "rate": nothing} if cut else {"rate": nothing}
    sizes = np.abs(iterates) @ oracle.column_size
    chunk = max(1, min(16, SWEEP_SCORES // len(cell)))

    def scores_of(part: Any, map_: Callable[..., Any]) -> FloatArray:
        W = np.ascontiguousarray(iterates[part].T)
        scores = np.concatenate(list(map_(lambda b: float64_scores(b, W), blocks))).T
        return np.ascontiguousarray(scores)

    last = at_zero(len(iterates) - 1, scores_of([-1], map)[0])
    if cut:
        gaps = np.diff(np.sort(scores_of([0], map)[0]))
        n_cuts = int(np.count_nonzero(gaps > resolution * sizes[0]))
        caution = sqrt(2 * log(max(n_cuts, 1) * len(iterates)))
    # A few from all over the run come first, so that the others have something to beat.
    first = np.unique(np.linspace(0, len(iterates) - 1, 6).astype(np.intp))
    order = np.concatenate([first, np.setdiff1d(np.arange(len(iterates)), first)])
    edges = [*range(0, len(first), min(chunk, 2)), *range(len(first), len(order), chunk)]
    complete = True
    try:
        with _worker_map() as map_:
            for start, stop in pairwise([*edges, len(order)]):
                part = order[start:stop]
                scores = scores_of(part, map_)
                to_beat = {by: known.accuracy_by(by) for by, known in best.items()}
                found = list(
                    map_(
                        lambda i, s, m, t=to_beat: survivors(i, s, m, t), part, scores, sizes[part]
                    )
                )
                best = {
                    by: known.join(each[by] for each in found).pareto(by)
                    for by, known in best.items()
                }
    except KeyboardInterrupt:
        complete = False
        if not len(best["rate"].rate):
            eligible = notion.eligible(last.counts[:, :compared], min_share) & (last.rate >= 0)
            best = {"rate": last.take(eligible)}
    every = best["rate"]
    wary = best.get("sure", every)
    chosen = wary.pareto("rate")
    beyond = every.take(every.rate > chosen.rate.max(initial=-1.0))
    n_sure = len(chosen.rate)
    chosen = chosen.join([beyond])

    def frontier(points: _Points, **about: Any) -> Frontier:
        return Frontier(
            points.iterate,
            points.cut,
            points.accuracy,
            points.rate,
            points.counts,
            groups=list(groups),
            last=_point(last, 0, feasible=False),
            rate_name=notion.rate.ratio_name,
            complete=complete,
            **about,
        )

    return frontier(chosen, n_sure=n_sure, wary=frontier(wary))


def _point(points: Any, i: int, *, feasible: bool) -> Point:
    return Point(
        int(points.iterate[i]),
        float(points.cut[i]),
        float(points.accuracy[i]),
        float(points.rate[i]),
        points.counts[i],
        feasible,
    )
