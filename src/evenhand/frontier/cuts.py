"""From scores to answers: decision cuts, and the counts of every cut worth a look.

A row's answer depends on its scores and on a *cut*, in one of three ways:

- two labels, one cut: positive if the score exceeds it;
- two labels, a cut for each group: positive if the score exceeds the row's group's;
- more labels, a number for each: the label whose score less its number is the largest.

:func:`decide` applies a cut. The others give, for the scores of one iterate, many cuts and the
counts of each, shape (n_groups_all, labels, labels, n_cuts): group, or the rest, × label × answer.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray, namespace

__all__ = ["decide", "join_label_cuts", "label_cuts", "margins", "one_cut"]

# Cuts tried for a label, when there are many labels, and in a group, when several rates count.
FEW_CUTS = 512


def decide(scores: FloatArray, cut: Any, group: NDArray[np.intp] | None = None) -> NDArray[np.intp]:
    """Give each row the number of a label.

    Parameters
    ----------
    scores : ndarray of shape (n_rows,) or (n_rows, n_labels)
        Scores, of more than two labels one for each.
    cut : float or ndarray
        One number; or one for each group, with ``group``; or one for each of many labels.
    group : ndarray of shape (n_rows,), optional
        Number of each row's group.

    Returns
    -------
    ndarray of shape (n_rows,)
        Numbers of labels.
    """
    if scores.ndim == 2:
        return np.asarray(np.argmax(scores - cut, axis=1))
    cut = np.asarray(cut)
    level = cut[group] if cut.ndim and group is not None else cut
    return np.asarray(scores > level).astype(np.intp)


def one_cut(
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
    # np.take, not above[:, ends], whose memory order would slow down all that follows. The total
    # comes from the same running sum: nothing is left below the last row, not even rounding.
    total, above = above[:, -1:], np.take(above, ends, axis=1)
    return high + (low - high) / 2, np.stack([total - above, above], axis=1)


def _few_cuts(
    scores: FloatArray, gap: float, cell: NDArray[np.intp], weight: FloatArray | None, n_cells: int
) -> tuple[FloatArray, FloatArray]:
    """As :func:`one_cut`, with at most ``FEW_CUTS`` cuts, between which rows are spread evenly."""
    s = np.sort(scores)
    ends = np.flatnonzero(s[1:] - s[:-1] > gap)
    if len(ends) > FEW_CUTS:
        ends = ends[np.unique(np.searchsorted(ends, np.linspace(0, ends[-1], FEW_CUTS)))]
    cuts = s[ends] + (s[ends + 1] - s[ends]) / 2
    bins = len(cuts) + 1
    code = cell * bins + np.searchsorted(cuts, scores, side="left")
    histogram = np.bincount(code, weights=weight, minlength=n_cells * bins).astype(float)
    below = histogram.reshape(n_cells, bins).cumsum(axis=1)
    return cuts, np.stack([below[:, :-1], below[:, -1:] - below[:, :-1]], axis=1)


def label_cuts(
    scores: FloatArray,
    gap: float,
    cell: NDArray[np.intp],
    weight: FloatArray | None,
    n_groups_all: int,
    movable: Sequence[int],
) -> tuple[FloatArray, FloatArray]:
    """Cuts, shape (n_cuts, n_labels), that favour or disfavour one of many labels; their counts.

    As :func:`one_cut`, of scores of shape (n_labels, n_rows). The numbers of the labels ``movable``
    are moved, one at a time; all others are 0.
    """
    K = len(scores)
    margin_cuts = []
    for c in movable:
        margin, rival = margins(scores, c)
        margin_cuts.append(_few_cuts(margin, gap, cell * K + rival, weight, n_groups_all * K * K))
    return join_label_cuts(margin_cuts, movable, n_groups_all, K)


def margins(scores: FloatArray, c: int) -> tuple[FloatArray, FloatArray]:
    """By how much label c is ahead of the best other one in each row, and which that is."""
    xp = namespace(scores)
    others = [j for j in range(len(scores)) if j != c]
    rival = xp.argmax(scores[others], axis=0)
    return scores[c] - xp.max(scores[others], axis=0), rival + (rival >= c)


def join_label_cuts(
    margin_cuts: Sequence[tuple[FloatArray, FloatArray]],
    movable: Sequence[int],
    n_groups_all: int,
    K: int,
) -> tuple[FloatArray, FloatArray]:
    """Join the cuts on each label's margin, with weights per cell × rival, into one set of cuts.

    The weights have shape (n_groups_all · K · K, 2, n_cuts).
    """
    cuts, counts = [], []
    for c, (moved, weights) in zip(movable, margin_cuts, strict=True):
        below, above = (weights[:, p].reshape(n_groups_all, K, K, -1) for p in (0, 1))
        below[:, :, c] += above.sum(axis=2)
        at = np.zeros((len(moved), K))
        at[:, c] = moved
        cuts.append(at)
        counts.append(below)
    return np.concatenate(cuts), np.concatenate(counts, axis=-1)
