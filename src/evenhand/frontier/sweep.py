r"""The accuracy–fairness frontier of one fit.

Every kept iterate with every cut on its scores is a classifier (:mod:`evenhand.frontier.cuts`). One
sort of an iterate's scores gives the counts, and so accuracy and rate, of all its cuts;
:func:`sweep` goes over the iterates and keeps the Pareto set. Of more than ``EXACT_ROWS`` rows the
cuts are those of a histogram (:mod:`evenhand.frontier.histograms`). Choosing a point for a target τ
is then a look-up, with no more training.

Among so many points some owe their rate to luck, and the most accurate ones that reach τ are mostly
those. A point is therefore kept only if no other is as accurate and as *surely* fair: rates are
compared less :math:`\sqrt{2 \ln m}` standard errors, which is by how much the luckiest of m looks
better than it is. Where no such point reaches a rate, the points of still higher rates follow, luck
or not. Along the frontier the rate rises and the accuracy falls, always.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from math import log, sqrt
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_consistent_length

from evenhand.core.arrays import FloatArray
from evenhand.core.groups import as_binary, group_codes
from evenhand.core.notions import find_notion
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import float64_scores
from evenhand.core.rows import Block
from evenhand.engines.kernels import has_numba
from evenhand.engines.memory import COMPILED_ROWS, make_oracle
from evenhand.engines.threads import cores
from evenhand.frontier.cuts import join_label_cuts, label_cuts, one_cut
from evenhand.frontier.group_cuts import group_cuts, score_curves
from evenhand.frontier.histograms import (
    N_CUTS,
    STEP_ROWS,
    Asked,
    cut_weights,
    make_grids,
    tally,
    tally_curves,
    zero_counts,
)
from evenhand.frontier.points import RATE_BINS, Frontier, Points, point_of

__all__ = ["score_frontier", "sweep"]

# Scores closer than this, relative to the size of the terms they are sums of, are the same score:
# they are found in float64, as those of predictions are, whatever the precision of the inputs.
RESOLUTION = 1e-12

# Up to this many rows every cut is tried, of more those of a histogram.
EXACT_ROWS = 1 << 16

# Scores held at once while sweeping; never rows × iterates.
SWEEP_SCORES = 1 << 22


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
    notion, k, rows = oracle.notion, oracle.game.kinds, oracle.rows
    compared, L, n_labels = oracle.n_groups, oracle.game.outputs, oracle.game.labels
    favourable = sorted({part.favourable for part in notion.parts})
    asked = Asked(k, n_labels, tuple(favourable))
    exact = cut and rows.n_samples <= EXACT_ROWS
    compiled = exact and not by_group and L == 1
    compiled = compiled and rows.n_samples >= COMPILED_ROWS and has_numba()
    cell: Any = rows.collect(_cell) if exact else None
    weight = rows.collect(_weight) if exact and rows.weighted else None
    caution = 0.0

    def points(iterate: NDArray[np.intp], cuts: FloatArray, counts: FloatArray) -> Points:
        """Points of some iterates, from their cuts and the counts of each."""
        counts = counts.reshape(k, n_labels, n_labels, len(cuts))
        # counts are read along contiguous memory; what is moved to the front is a view
        right = np.sum([counts[:, y, y].sum(axis=0) for y in range(n_labels)], axis=0)
        accuracy = right / counts.sum(axis=(0, 1, 2))
        counts = np.moveaxis(counts, -1, 0)
        rate = notion.rate.ratio(counts[:, :compared])
        return Points(iterate, cuts.reshape(len(cuts), width), accuracy, rate, rate, counts)

    def every_cut(found: Any, gap: float, bars: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Cuts of an iterate, or those that may be news, and the counts of each."""
        if L > 1:
            if exact:
                return label_cuts(found, gap, cell, weight, k, favourable)
            each = [cut_weights(*pair) for pair in found]
            return join_label_cuts(each, favourable, k, n_labels)
        if not exact:
            cuts, counts = cut_weights(*found[0])
        elif compiled:
            return promising(found[0], gap, bars)
        else:
            cuts, counts = one_cut(found[0], gap, cell, weight, 2 * k)
        if not by_group:
            return cuts, counts
        curves = (
            score_curves(found[0], gap, cell, weight, compared, k)
            if exact
            else tally_curves(cuts, counts, compared, k)
        )
        apart, apart_counts = group_cuts(
            *curves,
            rate=notion.rate,
            eligible=lambda counts: notion.eligible(counts, min_share),
        )
        alike, counts = np.repeat(cuts[:, None], k, axis=1), counts.reshape(k, 2, 2, -1)
        return np.concatenate([alike, apart]), np.concatenate([counts, apart_counts], axis=-1)

    def some_cuts(found: Any, size: float, bars: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Give the cuts of an iterate and their counts, less most of what known points beat."""
        cuts, counts = every_cut(found, RESOLUTION * size, bars)
        if exact and not compiled:
            # Nothing is sure of more than its rate: this drops most, and nothing that counts.
            new = points(np.zeros(len(cuts), np.intp), cuts, counts).beats("rate", bars[1])
            cuts, counts = cuts[new], counts[..., new]
        return cuts.reshape(-1, width), counts.reshape(k, n_labels, n_labels, -1)

    def survivors(part: NDArray[np.intp], to_beat: dict[str, FloatArray]) -> Points:
        """Eligible points of some iterates, less most of what known ones beat."""
        if not cut:
            counts = np.moveaxis(found_in(part), 0, -1)
            found = points(part, np.zeros((len(part), width)), counts)
        else:
            bars = np.stack([to_beat["rate"], to_beat["sure"]])
            # What a compiled loop finds spares the next one work, more than another core would.
            on_cores: Any = map if compiled else cores.map
            each = list(on_cores(partial(some_cuts, bars=bars), found_in(part), sizes[part]))
            cuts, counts = (list(column) for column in zip(*each, strict=True))
            iterate = np.repeat(part, [len(c) for c in cuts])
            found = points(iterate, np.concatenate(cuts), np.concatenate(counts, axis=-1))
            found = found.take(found.beats("rate", to_beat["sure"]))
            luck = caution * notion.rate.log_ratio_error(found.counts[:, :compared])
            found = found._replace(sure=found.rate * np.exp(-luck))
        return found.take(notion.eligible(found.counts[:, :compared], min_share))

    width = n_labels if L > 1 else k if by_group else 1
    none = np.empty(0, dtype=np.intp)
    nothing = points(none, np.zeros((0, width)), np.zeros((k * n_labels, n_labels, 0)))
    best = {"sure": nothing, "rate": nothing} if cut else {"rate": nothing}
    # The size of the terms a score is the sum of; of many labels, of the two that are compared.
    sizes = (np.abs(iterates).reshape(len(iterates), L, -1) @ oracle.column_size).sum(axis=1)
    chunk = max(1, min(16, SWEEP_SCORES // (L * rows.n_samples))) if exact else 16
    scores = np.empty((chunk * L, rows.n_samples)) if exact else np.empty(0)

    def weights(part: Any) -> FloatArray:
        """Weights of some iterates, in columns."""
        return np.ascontiguousarray(iterates[part].reshape(-1, oracle.n_columns).T)

    def found_in(part: Any) -> Any:
        """Find what points of some iterates are made of: scores, histograms, or counts at 0."""
        W = weights(part)
        if not cut:
            return rows.sum(zero_counts, W, asked)
        if exact:
            rows.collect(_scores, W, out=scores[: W.shape[1]])
            return scores[: W.shape[1]].reshape(-1, L, rows.n_samples)
        grids = make_grids(rows, W, asked)
        pairs = list(zip(grids, rows.sum(tally, W, grids, asked), strict=True))
        each = len(pairs) // len(part)
        return [pairs[i : i + each] for i in range(0, len(pairs), each)]

    at_zero = rows.sum(zero_counts, weights([-1]), asked)
    last = points(np.array([len(iterates) - 1]), np.zeros((1, width)), at_zero[0])
    if cut:
        n_cuts = N_CUTS
        if exact:
            gaps = np.diff(np.sort(found_in([0])[0][0]))
            n_cuts = int(np.count_nonzero(gaps > RESOLUTION * sizes[0]))
        caution = sqrt(2 * log(max(n_cuts, 1) * len(iterates)))
    if compiled:
        from evenhand.frontier.numba_cuts import cut_finder

        promising = cut_finder(
            cell, weight, 2 * k, notion, compared, caution, min_share, RATE_BINS + 1
        )
    # A few from all over the run come first, so that the others have something to beat.
    first = np.unique(np.linspace(0, len(iterates) - 1, 6).astype(np.intp))
    order = np.concatenate([first, np.setdiff1d(np.arange(len(iterates)), first)])
    edges = [*range(0, len(first), min(chunk, 2)), *range(len(first), len(order), chunk)]
    complete = True
    try:
        with cores.without_blas():
            for start, stop in pairwise([*edges, len(order)]):
                part = order[start:stop]
                to_beat = {by: known.accuracy_by(by) for by, known in best.items()}
                found = survivors(part, to_beat)
                best = {
                    by: known.join([found.take(found.beats(by, to_beat[by]))]).pareto(by)
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
    highest = chosen.rate.max(initial=-1.0)
    beyond = every.take(every.rate > highest + 1e-12)
    # A point that is less accurate than one of a higher rate answers no target.
    chosen = chosen.join([beyond]).pareto("rate")
    n_sure = int(np.count_nonzero(chosen.rate <= highest + 1e-12))

    def frontier(points: Points, **about: Any) -> Frontier:
        return Frontier(
            points.iterate,
            points.cut[:, 0] if width == 1 else points.cut,
            points.accuracy,
            points.rate,
            points.counts,
            groups=list(groups),
            last=point_of(last._replace(cut=last.cut[:, 0] if width == 1 else last.cut), 0, False),
            labels=list(labels),
            favourable=favourable,
            rate_name=notion.rate.ratio_name,
            complete=complete,
            **about,
        )

    return frontier(chosen, n_sure=n_sure, wary=frontier(wary))


def _scores(block: Block, W: FloatArray) -> FloatArray:
    """Scores of some iterates in float64, a row for each."""
    if not isinstance(block.X, np.ndarray):
        return float64_scores(block, W).T
    scores, weights = np.empty((W.shape[1], len(block.y))), np.ascontiguousarray(W[:-1].T)
    for i in range(0, len(block.y), STEP_ROWS):
        some = slice(i, i + STEP_ROWS)
        np.matmul(weights, block.X[some].astype(np.float64).T, out=scores[:, some])
        scores[:, some] += W[-1][:, None] * block.extra[some]
    return scores


def _cell(block: Block) -> FloatArray:
    return block.cell


def _weight(block: Block) -> FloatArray:
    return block.weight  # type: ignore[return-value]


def score_frontier(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    notion: str = "statistical_parity",
    min_share: float = 0.01,
) -> Frontier:
    """Frontier of the cuts on any classifier's scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two values.
    y_score : array-like of shape (n_samples,)
        Scores; higher is more favourable.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights.
    pos_label : label, optional
        The favourable label. Needed unless labels are 0/1, -1/1 or booleans.
    notion : str, default="statistical_parity"
        Which rate is compared.
    min_share : float, default=0.01
        Least share of predicted positives, and of negatives, in every group.

    Returns
    -------
    Frontier
        Its points are cuts of one iterate, the scores themselves.
    """
    score = np.asarray(y_score, dtype=np.float64)
    if score.ndim != 1 or not np.isfinite(score).all():
        raise ValueError("y_score must be one finite number for each row.")
    _, codes = group_codes(sensitive_features)
    # As a classifier's predictions the labels are checked and coded.
    y, _ = as_binary(y_true, y_true, pos_label)
    check_consistent_length(y, score, codes)
    oracle = make_oracle(
        score[:, None], y, codes, notion=find_notion(notion), sample_weight=sample_weight
    )
    groups = group_codes(sensitive_features)[0].tolist()
    return sweep(oracle, np.array([[1.0, 0.0]]), min_share=min_share, groups=groups)
