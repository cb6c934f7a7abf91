r"""The accuracy–fairness frontier of one fit.

Every kept iterate with every cut on its scores is a classifier (:mod:`evenhand.frontier.cuts`). One
sort of an iterate's scores gives the counts, and so accuracy and rate, of all its cuts;
:func:`sweep` goes over the iterates and keeps the Pareto set. Of more than
``Limits.exact_rows`` rows the cuts are a histogram's (:mod:`evenhand.frontier.histograms`).
Choosing a point for a target τ is then a look-up, with no more training.

Among many points some owe their rate to chance, and the most accurate ones that reach τ mostly do.
A point is therefore kept only if no other is as accurate and as *surely* fair: ratios are compared
less :math:`\sqrt{2 \ln m}` standard errors, which is by how much the best of m looks better than it
is. Where no such point reaches a rate, the points of still higher rates follow, chance or not.
Differences, and targets that mix them with ratios, are compared as they are. Along the frontier the
rate rises and the accuracy falls, always. Accuracy is what is maximised unless another objective is
given (:mod:`evenhand.core.objectives`), whose utility then takes its place.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial
from itertools import pairwise
from math import log, sqrt
from operator import attrgetter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.objectives import ACCURACY, Objective
from evenhand.core.oracle import Oracle
from evenhand.core.rates import AnyRate, overall_accuracy
from evenhand.core.row_sums import float64_scores
from evenhand.core.rows import Block
from evenhand.core.targets import Target
from evenhand.engines.kernels import LIMITS, Limits, can_compile, faster_version, find_faster
from evenhand.engines.threads import cores
from evenhand.frontier.cuts import join_label_cuts, label_cuts, one_cut
from evenhand.frontier.group_cuts import group_cuts, score_curves
from evenhand.frontier.histograms import (
    N_CUTS,
    Shape,
    cut_histograms,
    cut_weights,
    histogram_curves,
    make_grids,
    zero_counts,
)
from evenhand.frontier.points import RATE_BINS, Frontier, Points, beats, point_of

__all__ = ["sweep", "sweep_targets"]

# Scores closer than this, relative to the size of the terms they are sums of, are the same score:
# they are computed in float64, as predictions do, whatever the precision of the inputs.
RESOLUTION = 1e-12

# Up to how many rows every cut is tried where there are more groups than this, each of which is a
# part of every point, or where groups are merged, which no compiled loop does.
MANY_GROUPS, MANY_ROWS = 8, 4096

# More than what rounding makes of a quotient.
ROUNDING = 1e-9

# Of many cuts one in so many tells which groups are furthest apart.
SOME_CUTS = 64

# The most standard errors less which differences are compared. As many as for ratios would prefer
# rates that vary less to rates that are alike; a few are no better than none on validation parts
# inside training parts (benchmarks/differences.py --inner).
APART = 0.0

# Some cuts, and the counts of each.
Cuts = tuple[FloatArray, FloatArray]


def sweep(
    oracle: Oracle, iterates: FloatArray, target: Target | None = None, **how: Any
) -> Frontier:
    """Frontier of the iterates for one target, by default a ratio of the oracle's notion.

    Parameters
    ----------
    oracle, iterates
        As of :func:`sweep_targets`.
    target : Target, optional
        What points are compared by.
    **how : dict
        The other parameters of :func:`sweep_targets`.
    """
    return sweep_targets(oracle, iterates, [target or Target(oracle.notion.rate, 1.0)], **how)[0]


def sweep_targets(
    oracle: Oracle,
    iterates: FloatArray,
    targets: Sequence[Target],
    *,
    cut: bool = True,
    by_group: bool = False,
    min_share: float = 0.01,
    groups: Sequence[Any] = (0, 1),
    labels: Sequence[Any] = (0, 1),
    sources: Sequence[str] = (),
    objective: Objective = ACCURACY,
    limits: Limits = LIMITS,
) -> list[Frontier]:
    """Frontiers of the iterates on the oracle's data, one for each target.

    Parameters
    ----------
    oracle : Oracle
        The data and the notion.
    iterates : ndarray of shape (n_iterates, n_weights)
        Weights, the earliest first.
    targets : sequence of Target
        What points are compared by; their levels do not count.
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
    sources : sequence of str, default=()
        What found each iterate.
    objective : Objective
        What is maximised.
    limits : Limits
        Up to how many rows every cut is tried, and from how many on that is compiled.
    """
    strategy: type[Sweep] = HistogramCuts
    merged = any(rate.by is not None for rate in oracle.notion.rate.components)
    many = merged or oracle.n_groups > MANY_GROUPS
    exact_rows = min(limits.exact_rows, MANY_ROWS) if many else limits.exact_rows
    if not cut:
        strategy = ZeroCut
    elif oracle.rows.n_samples <= exact_rows:
        strategy = ExactCuts
    search = strategy(oracle, iterates, targets, by_group, min_share, limits, objective)
    complete = search.run()
    about = {"groups": list(groups), "labels": list(labels), "sources": tuple(sources)}
    return [search.frontier(k, complete=complete, **about) for k in range(len(targets))]


class Sweep(ABC):
    """The one loop: points of a few iterates at a time; the best so far are kept.

    Parameters are as in :func:`sweep_targets`; a strategy says which cuts there are. For each
    target points are compared by utility and by each of the columns ``merits`` of :class:`Points`.
    """

    merits: tuple[str, ...] = ("sure", "rate")
    chunk = 16

    def __init__(
        self,
        oracle: Oracle,
        iterates: FloatArray,
        targets: Sequence[Target],
        by_group: bool,
        min_share: float,
        limits: Limits,
        objective: Objective,
    ) -> None:
        self.targets, self.objective = targets, objective
        self.oracle, self.rows, self.notion = oracle, oracle.rows, oracle.notion
        self.iterates, self.by_group, self.min_share = iterates, by_group, min_share
        self.limits, self.outputs = limits, oracle.game.outputs
        self.groups, self.n_groups_all, self.labels = oracle.game[-3:]
        self.favourable = sorted({component.favourable for component in self.notion.components})
        self.shape = Shape(self.n_groups_all, self.labels, tuple(self.favourable))
        self.width = self.labels if self.outputs > 1 else self.n_groups_all if by_group else 1
        at_zero = self.rows.sum(zero_counts, self.weights([-1]), self.shape)
        totals = at_zero[0].reshape(self.n_groups_all, self.labels, self.labels).sum(axis=(0, 2))
        self.worths = objective.worths(totals)
        number = np.array([len(iterates) - 1])
        zero = np.zeros((1, self.width))
        self.last = [self.points(number, zero, at_zero[0], target) for target in targets]
        # For each target, by each merit.
        self.best = [dict.fromkeys(self.merits, last.take(slice(0))) for last in self.last]

    @abstractmethod
    def candidates(
        self, numbers: NDArray[np.intp], to_beat: list[dict[str, FloatArray]]
    ) -> list[Points]:
        """For each target, points of some iterates, less most of what the best so far beat."""

    def weights(self, numbers: Any) -> FloatArray:
        """Weights of some iterates, in columns."""
        return np.ascontiguousarray(self.iterates[numbers].reshape(-1, self.oracle.n_columns).T)

    def points(
        self, iterate: NDArray[np.intp], cuts: FloatArray, counts: FloatArray, target: Target
    ) -> Points:
        """Points of some iterates, from their cuts and the counts of each."""
        counts = counts.reshape(self.n_groups_all, self.labels, self.labels, len(cuts))
        utility, counts = self.utility(counts), np.moveaxis(counts, -1, 0)
        rate = target.value(counts[:, : self.groups])
        return Points(iterate, cuts.reshape(len(cuts), self.width), utility, rate, rate, counts)

    def utility(self, counts: FloatArray) -> FloatArray:
        """Give the utility of cuts by the objective; their counts have the cuts last."""
        # counts are read along contiguous memory; what is moved to the front is a view
        worths = enumerate(self.worths)
        right = np.sum([worth * counts[:, y, y].sum(axis=0) for y, worth in worths], axis=0)
        return np.asarray(right / counts.sum(axis=(0, 1, 2)))

    def eligible(self, points: Points) -> Points:
        """Points that count as an answer."""
        return points.take(self.notion.eligible(points.counts[:, : self.groups], self.min_share))

    def run(self) -> bool:
        """Go over all iterates; False if an interrupt ended it."""
        try:
            with cores.without_blas():
                for numbers in self.order():
                    to_beat = [
                        {by: found.utility_by(by, target.worst) for by, found in best.items()}
                        for target, best in zip(self.targets, self.best, strict=True)
                    ]
                    for k, points in enumerate(self.candidates(numbers, to_beat)):
                        self._keep(k, self.eligible(points), to_beat[k])
        except KeyboardInterrupt:
            for k, last in enumerate(self.last):
                if not len(self.best[k]["rate"].rate):
                    self.best[k] = {"rate": self.eligible(last.take(~np.isnan(last.rate)))}
            return False
        return True

    def _keep(self, k: int, points: Points, to_beat: dict[str, FloatArray]) -> None:
        """Keep the best of the points so far and some more, for the target k."""
        worst = self.targets[k].worst
        self.best[k] = {
            by: best.join([points.take(points.beats(by, to_beat[by], worst))]).pareto(by)
            for by, best in self.best[k].items()
        }

    def order(self) -> list[NDArray[np.intp]]:
        """Numbers of the iterates, a few at a time."""
        n = len(self.iterates)
        # A few from all over the run come first, so that the others have something to beat.
        first = np.unique(np.linspace(0, n - 1, 6).astype(np.intp))
        numbers = np.concatenate([first, np.setdiff1d(np.arange(n), first)])
        edges = [*range(0, len(first), min(self.chunk, 2)), *range(len(first), n, self.chunk), n]
        return [numbers[start:stop] for start, stop in pairwise(edges)]

    def frontier(self, k: int, **about: Any) -> Frontier:
        """Make the record of the best points for the target k."""
        target, at_zero, by_rate = self.targets[k], self.last[k], self.best[k]["rate"]
        conservative = self.best[k].get("sure", by_rate)
        chosen = conservative.pareto("rate")
        highest = chosen.rate.max(initial=-np.inf)
        # A point of less utility than one of a higher rate answers no target.
        chosen = chosen.join([by_rate.take(by_rate.rate > highest + 1e-12)]).pareto("rate")
        about |= {"favourable": self.favourable, "rate_name": target.name}
        about |= {"comparison": target.comparison, "objective": self.objective}
        if self.width == 1:
            at_zero, chosen, conservative = (
                points._replace(cut=points.cut[:, 0]) for points in (at_zero, chosen, conservative)
            )

        def record(p: Points, last: Any) -> Frontier:
            own = self.objective == ACCURACY
            accuracy = p.utility if own else overall_accuracy(p.counts)
            return Frontier(p.iterate, p.cut, accuracy, p.rate, p.counts, last=last, **about)

        last = point_of(record(at_zero, None), 0, False)
        chosen_frontier, conservative_frontier = record(chosen, last), record(conservative, last)
        n_sure = int(np.count_nonzero(chosen.rate <= highest + 1e-12))
        return replace(chosen_frontier, n_sure=n_sure, conservative=conservative_frontier)


class ZeroCut(Sweep):
    """The cut 0 of each iterate, the paper's thresholding, without caution."""

    merits = ("rate",)

    def candidates(
        self, numbers: NDArray[np.intp], to_beat: list[dict[str, FloatArray]]
    ) -> list[Points]:
        """One point for each of some iterates."""
        counts = self.rows.sum(zero_counts, self.weights(numbers), self.shape)
        cuts, counts = np.zeros((len(numbers), self.width)), np.moveaxis(counts, 0, -1)
        return [self.points(numbers, cuts, counts, target) for target in self.targets]


class ManyCuts(Sweep):
    """Many cuts of each iterate, about ``n_cuts``, which a strategy finds from a source of its own.

    ``sources(numbers)`` has one for each of some iterates. ``cuts(source, gap, bars)`` gives for
    each target cuts between scores further apart than ``gap``, and the counts of each; ``bars`` are
    each target's utilities to beat, in bins of its value and of the value less its margin.
    """

    n_cuts = N_CUTS
    sources: Callable[[Any], Any]
    cuts: Callable[..., list[Cuts]]
    on_cores: Callable[..., Any] = staticmethod(cores.map)

    @property
    def caution(self) -> float:
        """Standard errors by which the best of all cuts looks better than it is."""
        return sqrt(2 * log(max(self.n_cuts, 1) * len(self.iterates)))

    def caution_of(self, target: Target) -> float:
        """Give the standard errors less which values of a target are compared."""
        return self.caution if target.comparison == "ratio" else min(self.caution, APART)

    @cached_property
    def gaps(self) -> FloatArray:
        """Difference of scores, of each iterate, up to which they are the same."""
        # The size of the terms a score is the sum of; of many labels, of the two that are compared.
        terms = np.abs(self.iterates).reshape(len(self.iterates), self.outputs, -1)
        return RESOLUTION * (terms @ self.oracle.column_size).sum(axis=1)

    def candidates(
        self, numbers: NDArray[np.intp], to_beat: list[dict[str, FloatArray]]
    ) -> list[Points]:
        """For each target, points of some iterates, less most of what the best so far beat."""
        find = partial(self.cuts, bars=[np.stack([b["rate"], b["sure"]]) for b in to_beat])
        of_iterates = list(self.on_cores(find, self.sources(numbers), self.gaps[numbers]))
        points = list[Points]()
        found: tuple[Cuts, ...] = ()
        joined: tuple[Any, Any, Any] | None = None
        for own, target, bars in zip(
            zip(*of_iterates, strict=True), self.targets, to_beat, strict=True
        ):
            if joined is None or any(a is not b for a, b in zip(own, found, strict=True)):
                found, joined = own, self._joined(numbers, own)
            points.append(self._cautious(*joined, target, bars))
        return points

    def _joined(self, numbers: NDArray[np.intp], found: Sequence[Cuts]) -> tuple[Any, Any, Any]:
        """Put the cuts of some iterates together, with the iterate and the counts of each."""
        shape = self.n_groups_all, self.labels, self.labels, -1
        cuts = np.concatenate([c.reshape(-1, self.width) for c, _ in found])
        counts = np.concatenate([c.reshape(shape) for _, c in found], axis=-1)
        return np.repeat(numbers, [len(c) for c, _ in found]), cuts, counts

    def _cautious(
        self,
        iterate: NDArray[np.intp],
        cuts: FloatArray,
        counts: FloatArray,
        target: Target,
        bars: dict[str, FloatArray],
    ) -> Points:
        """Points of the cuts of some iterates, with their values less the margin."""
        if self.groups > MANY_GROUPS and all(part.by is None for part in target.rate.components):
            hopeful = self._hopeful(counts, target, bars)
            iterate, cuts, counts = iterate[hopeful], cuts[hopeful], counts[..., hopeful]
        points = self.points(iterate, cuts, counts, target)
        points = points.take(points.beats("rate", bars["sure"], target.worst))
        caution = self.caution_of(target)
        if not caution:
            return points
        return points._replace(sure=target.cautious(points.counts[:, : self.groups], caution))

    def _hopeful(
        self, counts: FloatArray, target: Target, bars: dict[str, FloatArray]
    ) -> NDArray[np.bool_]:
        """Which cuts may count, judged by the groups that are furthest apart in most of them.

        Among all groups no value is higher than among some, and no margin smaller.
        """
        few: set[int] = set()
        some = np.moveaxis(counts[: self.groups, ..., ::SOME_CUTS], -1, 0)
        for part in target.rate.components:
            rates = np.nan_to_num(part.per_group(some))
            for ends in (rates.argmin(axis=1), rates.argmax(axis=1)):
                few |= {*np.bincount(ends).argsort()[-2:].tolist()}
        apart = np.moveaxis(counts[sorted(few)], -1, 0)
        values, caution = target.values(apart), self.caution_of(target)
        rate = sure = target.scaled(values).min(axis=0)
        if caution and (target.comparison != "ratio" or len(values) == 1):
            sure = target.cautious(apart, caution, values)
        # What is undefined among some may be defined among all.
        rate, sure = (np.where(np.isnan(v), target.worst + 1.0, v) for v in (rate, sure))
        none = np.zeros(len(rate), np.intp)
        points = Points(none, none, self.utility(counts), rate, sure, apart)
        return np.logical_or.reduce([points.beats(by, bars[by], target.worst) for by in bars])

    def with_group_cuts(self, cuts: FloatArray, counts: FloatArray, curves: Any) -> Cuts:
        """Cuts that all groups share, and behind them those that differ, for the first target.

        The search for the latter is long, and targets after the first choose among the same.
        """
        apart, apart_counts = group_cuts(
            *curves,
            target=self.targets[0],
            worths=self.worths,
            eligible=lambda counts: self.notion.eligible(counts, self.min_share),
        )
        alike = np.repeat(cuts[:, None], self.n_groups_all, axis=1)
        counts = counts.reshape(self.n_groups_all, 2, 2, -1)
        return np.concatenate([alike, apart]), np.concatenate([counts, apart_counts], axis=-1)


class ExactCuts(ManyCuts):
    """Every cut between two scores of an iterate; the scores are held in memory."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        n = self.rows.n_samples
        self.chunk = max(1, min(16, self.limits.sweep_scores // (self.outputs * n)))
        self.scores = np.empty((self.chunk * self.outputs, n))
        self.cell: Any = self.rows.collect(attrgetter("cell"))
        self.weight = self.rows.collect(attrgetter("weight")) if self.rows.weighted else None
        steps = np.diff(np.sort(self.sources([0])[0][0]))
        self.n_cuts = int(np.count_nonzero(steps > self.gaps[0]))
        self.faster = find_faster(one_cut, "numpy", self)
        if self.faster is not None:
            # What a compiled loop finds spares the next one work, more than another core would.
            self.on_cores = map

    def sources(self, numbers: Any) -> Any:
        """Scores of some iterates, shape (iterates, outputs, rows)."""
        W = self.weights(numbers)
        scores = self.rows.collect(_scores, W, out=self.scores[: W.shape[1]])
        return scores.reshape(-1, self.outputs, self.rows.n_samples)

    def cuts(self, source: FloatArray, gap: float, bars: list[FloatArray]) -> list[Cuts]:
        """Cuts of an iterate, less most of what the best so far beat."""
        if self.faster is not None:
            found: list[Cuts] = self.faster(source[0], gap, bars)
            return found
        found, (cuts, counts) = [], self.all_cuts(source, gap)
        cells = counts.reshape(self.n_groups_all, self.labels, self.labels, -1)
        utility, compared = self.utility(cells), np.moveaxis(cells, -1, 0)[:, : self.groups]
        known: dict[AnyRate, tuple[FloatArray, FloatArray]] = {}
        for target, bar in zip(self.targets, bars, strict=True):
            if len(target.kinds) > 1:
                value = target.value(compared)
            else:
                if target.rate not in known:
                    rates = target.rate.components[0].per_group(compared).T
                    known[target.rate] = rates.min(axis=0), rates.max(axis=0)
                value = _at_most(target, *known[target.rate])
            # Nothing is sure of more than its rate: this drops most, and nothing that counts.
            better = beats(utility, value, bar[1], target.worst)
            found.append((cuts[better], counts[..., better]))
        return found

    def all_cuts(self, scores: FloatArray, gap: float) -> Cuts:
        """All cuts of an iterate, and the counts of each."""
        cell, weight, n_groups_all = self.cell, self.weight, self.n_groups_all
        if self.outputs > 1:
            return label_cuts(scores, gap, cell, weight, n_groups_all, self.favourable)
        cuts, counts = one_cut(scores[0], gap, cell, weight, 2 * n_groups_all)
        if not self.by_group:
            return cuts, counts
        curves = score_curves(scores[0], gap, cell, weight, self.groups, n_groups_all)
        return self.with_group_cuts(cuts, counts, curves)


@faster_version(one_cut, "numpy")
def _compiled_version(sweep: ExactCuts) -> Callable[..., list[Cuts]] | None:
    merged = any(rate.by is not None for rate in sweep.notion.rate.components)
    if sweep.by_group or sweep.outputs > 1 or merged:
        return None
    if not can_compile(sweep.rows.n_samples, sweep.limits):
        return None
    from evenhand.frontier.numba_cuts import CutFinder

    cautions = [sweep.caution_of(target) for target in sweep.targets]
    about = sweep.groups, sweep.n_groups_all, cautions, sweep.min_share, sweep.worths
    return CutFinder(sweep.cell, sweep.weight, sweep.notion, sweep.targets, *about, RATE_BINS + 1)


class HistogramCuts(ManyCuts):
    """Cuts on a grid, from histograms that add up wherever the rows are."""

    def sources(self, numbers: Any) -> list[Any]:
        """Grid and histogram of each quantity of some iterates."""
        W = self.weights(numbers)
        grids = make_grids(self.rows, W, self.shape)
        histograms = self.rows.sum(cut_histograms, W, grids, self.shape)
        pairs, n = list(zip(grids, histograms, strict=True)), len(grids) // len(numbers)
        return [pairs[i : i + n] for i in range(0, len(pairs), n)]

    def cuts(self, source: Any, gap: float, bars: list[FloatArray]) -> list[Cuts]:
        """Cuts of an iterate, and the counts of each, the same for each target."""
        return [self._grid_cuts(source)] * len(self.targets)

    def _grid_cuts(self, source: Any) -> Cuts:
        label_weights = [cut_weights(*pair) for pair in source]
        if self.outputs > 1:
            return join_label_cuts(label_weights, self.favourable, self.n_groups_all, self.labels)
        if not self.by_group:
            return label_weights[0]
        curves = histogram_curves(*label_weights[0], self.groups, self.n_groups_all)
        return self.with_group_cuts(*label_weights[0], curves)


def _at_most(target: Target, low: FloatArray, high: FloatArray) -> FloatArray:
    """Give a little more than a target's value, from the lowest and the highest of one rate.

    NaN where it is undefined. It spares most cuts the exact comparison of fractions.
    """
    if target.comparison == "difference":
        return low - high + ROUNDING
    # Without any positives the rates decide whether that is one or nothing.
    return np.divide(low, high, out=np.where(high == 0, 1.0, np.nan), where=high > 0) + ROUNDING


def _scores(block: Block, W: FloatArray) -> FloatArray:
    """Scores of some iterates in float64, a row for each."""
    return float64_scores(block, W).T
