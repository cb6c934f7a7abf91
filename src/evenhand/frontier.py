r"""The accuracy–fairness frontier of one fit.

Every kept iterate with every cut on its scores is a classifier (:mod:`evenhand.cuts`). One sort of
an iterate's scores gives the counts, and so accuracy and rate, of all its cuts; :func:`sweep` goes
over the iterates and keeps the Pareto set. Choosing a point for a target τ is then a look-up, with
no more training.

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

from evenhand.cuts import decide, group_cuts, label_cuts, one_cut
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
    """A classifier on the frontier: an iterate and a cut on its scores.

    The cut is a number, or one for each group, or one for each of many labels.
    """

    iterate: int
    cut: Any
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
    cut : ndarray of shape (n_points,) or (n_points, n)
        Decision cut: a row is positive if its score exceeds it. With a cut for each group, or a
        number for each of many labels, a row of them (:func:`evenhand.cuts.decide`).
    accuracy, rate : ndarray
        Accuracy, and ratio of the notion's rate between the groups.
    counts : ndarray of shape (n_points, n_groups, n_labels, n_labels)
        Weight per group × label × prediction; last, if there are any, that of rows in no group.
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
    labels: Sequence[Any] = (0, 1)
    favourable: Sequence[int] = (1,)
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
        return _point(self, min(i, len(self) - 1), i < len(self))

    def to_frame(self) -> pd.DataFrame:
        """One row per point, with each group's selection rate."""
        columns: dict[str, Any] = {"iterate": self.iterate}
        if self.cut.ndim == 1:
            columns["cut"] = self.cut
        else:
            named = self.labels if len(self.labels) > 2 else [*self.groups, "others"]
            columns |= {f"cut[{name}]": c for name, c in zip(named, self.cut.T, strict=False)}
        columns |= {"accuracy": self.accuracy, "rate": self.rate}
        for c in self.favourable:
            selected = RATES["selection_rate"].of_label(c, len(self.labels))
            share = selected.per_group(self.counts[:, : len(self.groups)])
            label = f", {self.labels[c]}" if len(self.labels) > 2 else ""
            columns |= {
                f"selection_rate[{g}{label}]": share[:, j] for j, g in enumerate(self.groups)
            }
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
        order = np.lexsort((*-few.cut.T, few.iterate, -rate, -merit, -accuracy))
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
    by_group: bool = False,
    min_share: float = 0.01,
    groups: Sequence[Any] = (0, 1),
    labels: Sequence[Any] = (0, 1),
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
    by_group : bool, default=False
        Sweep cuts that differ between the groups as well.
    min_share : float, default=0.01
        Least share of predicted positives, and of negatives, in every group.
    groups : sequence, default=(0, 1)
        Names of the groups.
    labels : sequence, default=(0, 1)
        Names of the labels.
    """
    notion, k, blocks = oracle.notion, oracle.game.kinds, oracle.blocks
    compared, L, n_labels = oracle.n_groups, oracle.game.outputs, oracle.game.labels
    favourable = sorted({part.favourable for part in notion.parts})
    cell = np.concatenate([b.cell for b in blocks])
    weight = None if blocks[0].weight is None else np.concatenate([b.weight for b in blocks])
    resolution = RESOLUTION[np.dtype(blocks[0].X.dtype)]
    caution = 0.0

    def points(i: int, cuts: FloatArray, counts: FloatArray) -> _Points:
        """Points of an iterate, from its cuts and the counts of each."""
        counts = counts.reshape(k, n_labels, n_labels, len(cuts))
        # counts are read along contiguous memory; what is moved to the front is a view
        right = np.sum([counts[:, y, y].sum(axis=0) for y in range(n_labels)], axis=0)
        accuracy = right / counts.sum(axis=(0, 1, 2))
        counts = np.moveaxis(counts, -1, 0)
        index = np.full(len(cuts), i, dtype=np.intp)
        rate = notion.rate.ratio(counts[:, :compared])
        return _Points(index, cuts.reshape(len(cuts), width), accuracy, rate, rate, counts)

    def at_zero(i: int, scores: FloatArray) -> _Points:
        answer = decide(scores[0] if L == 1 else scores.T, 0.0)
        counts = np.bincount(cell * n_labels + answer, weights=weight, minlength=k * n_labels**2)
        return points(i, np.zeros((1, width)), counts.astype(np.float64))

    def cut_points(i: int, scores: FloatArray, gap: float) -> _Points:
        if L > 1:
            return points(i, *label_cuts(scores, gap, cell, weight, k, favourable))
        cuts, counts = one_cut(scores[0], gap, cell, weight, 2 * k)
        if not by_group:
            return points(i, cuts, counts)
        alike = points(i, np.repeat(cuts[:, None], k, axis=1), counts)
        apart = group_cuts(
            scores[0],
            gap,
            cell,
            weight,
            rate=notion.rate,
            groups=compared,
            kinds=k,
            eligible=lambda counts: notion.eligible(counts, min_share),
        )
        return alike.join([points(i, *apart)])

    def survivors(
        i: int, scores: FloatArray, size: float, to_beat: dict[str, FloatArray]
    ) -> dict[str, _Points]:
        """Find the iterate's Pareto sets, less most of what known points beat already."""
        if cut:
            gap = resolution * size
            found = cut_points(i, scores, gap)
            # Nothing is sure of more than its rate: this drops most, and nothing that counts.
            found = found.take(found.beats("rate", to_beat["sure"]))
            luck = caution * notion.rate.log_ratio_error(found.counts[:, :compared])
            found = found._replace(sure=found.rate * np.exp(-luck))
        else:
            found = at_zero(i, scores)
        found = found.take(notion.eligible(found.counts[:, :compared], min_share))
        return {by: found.take(found.beats(by, bar)).pareto(by) for by, bar in to_beat.items()}

    width = n_labels if L > 1 else k if by_group else 1
    nothing = points(0, np.zeros((0, width)), np.zeros((k * n_labels, n_labels, 0)))
    best = {"sure": nothing, "rate": nothing} if cut else {"rate": nothing}
    # The size of the terms a score is the sum of; of many labels, of the two that are compared.
    sizes = (np.abs(iterates).reshape(len(iterates), L, -1) @ oracle.column_size).sum(axis=1)
    chunk = max(1, min(16, SWEEP_SCORES // (L * len(cell))))

    def scores_of(part: Any, map_: Callable[..., Any]) -> FloatArray:
        """Scores of some iterates, shape (iterates, outputs, rows)."""
        W = np.ascontiguousarray(iterates[part].reshape(-1, oracle.n_columns).T)
        scores = np.concatenate(list(map_(lambda b: float64_scores(b, W), blocks))).T
        return np.ascontiguousarray(scores).reshape(-1, L, len(cell))

    last = at_zero(len(iterates) - 1, scores_of([-1], map)[0])
    if cut:
        gaps = np.diff(np.sort(scores_of([0], map)[0, 0]))
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
            points.cut[:, 0] if width == 1 else points.cut,
            points.accuracy,
            points.rate,
            points.counts,
            groups=list(groups),
            last=_point(last._replace(cut=last.cut[:, 0] if width == 1 else last.cut), 0, False),
            labels=list(labels),
            favourable=favourable,
            rate_name=notion.rate.ratio_name,
            complete=complete,
            **about,
        )

    return frontier(chosen, n_sure=n_sure, wary=frontier(wary))


def _point(points: Any, i: int, feasible: bool) -> Point:
    cut = points.cut[i]
    return Point(
        int(points.iterate[i]),
        cut if np.ndim(cut) else float(cut),
        float(points.accuracy[i]),
        float(points.rate[i]),
        points.counts[i],
        feasible,
    )
