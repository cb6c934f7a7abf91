r"""Counts of many cuts of many rows, from histograms that add up over the blocks.

Of a large table only ``N_CUTS`` cuts are tried, between which a sample of its rows is spread
evenly. A score falls into one of ``FINE`` bins, and a table says how many cuts are below each bin:
a row costs a few operations whatever the number of cuts, and only histograms leave a block. The
bins are of equal width in :math:`t / (1 + |t|)`, with t the score from the middle of the sample in
units of its spread, so that a few scores far away do not take the bins of all the others.

A cut is on a *quantity*: the score, or, of more than two labels, the margin by which a label is
ahead of the best other one.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse

from evenhand.core.arrays import FloatArray, like, namespace
from evenhand.core.left_out import LeftOut
from evenhand.core.row_sums import STEP_ROWS, float64_scores, scores_of
from evenhand.core.rows import Block, Rows, make_block
from evenhand.engines.kernels import faster_version, has_numba, has_triton
from evenhand.engines.memory import BLOCK_ROWS, MemoryRows
from evenhand.frontier.cuts import margins

__all__ = [
    "Grid",
    "Shape",
    "by_iterate",
    "cut_counts",
    "cut_histograms",
    "cut_weights",
    "histogram_curves",
    "make_grids",
    "zero_counts",
]

# Rows of the sample, bins of equal width, and cuts.
SAMPLE, FINE, N_CUTS = 8192, 1 << 14, 1024


class Shape(NamedTuple):
    """Shape of the histograms: groups incl. the rest, labels, and labels whose cut is swept."""

    n_groups_all: int
    labels: int
    movable: tuple[int, ...]

    @property
    def outputs(self) -> int:
        """How many scores a row has: one of two labels, else one for each."""
        return 1 if self.labels == 2 else self.labels

    @property
    def cells(self) -> int:
        """Number of histograms of a quantity: group × label (× best other one of many labels)."""
        return self.n_groups_all * (2 if self.labels == 2 else self.labels**2)


class Grid(NamedTuple):
    """Cuts on one quantity, and for each bin of it how many of them are below."""

    middle: float
    per_unit: float
    below: NDArray[np.int16]
    cuts: FloatArray


def by_iterate(scores: Any, outputs: int) -> Any:
    """Scores of some iterates, a row for each output of each, as (iterates, outputs, rows)."""
    return scores.reshape(scores.shape[0] // outputs, outputs, scores.shape[1])


def _quantities(block: Block, W: FloatArray, shape: Shape) -> Iterator[tuple[Any, Any]]:
    """Of each iterate, and each movable label, the quantity that is cut and the cell it counts in.

    Of many labels a cell is group × label × best other label.
    """
    all_scores = scores_of(block.X, block.extra, W).T
    for scores in by_iterate(all_scores, shape.outputs):
        if shape.labels == 2:
            yield scores[0], block.cell
        else:
            for c in shape.movable:
                margin, rival = margins(scores, c)
                yield margin, block.cell * shape.labels + rival


def sampled(block: Block, W: FloatArray, shape: Shape, step: int) -> FloatArray:
    """Quantities of every ``step``-th row of the table, shape (quantities, rows)."""
    first = -block.start % step
    columns = (None if column is None else column[first::step] for column in block[3:])
    few = Block._make([block.start + first, block.X[first::step], None, *columns])
    return namespace(block.y).stack([q for q, _ in _quantities(few, W, shape)])


def make_grids(rows: Rows, W: FloatArray, shape: Shape) -> list[Grid]:
    """Grids for each quantity of some iterates, from a sample of the rows."""
    step = -(-rows.n_samples // SAMPLE)
    return [_grid(v) for v in rows.collect(sampled, W, shape, step)]


def _spread(values: FloatArray) -> tuple[float, float]:
    """Median of values, and how far its neighbours reach: more of them if those are all alike."""
    middle, *at = np.quantile(values[::4], [0.5, 0.25, 0.75, 0.05, 0.95, 0.0, 1.0]).tolist()
    ranges = zip(at[::2], at[1::2], strict=True)
    width = next((b - a for a, b in ranges if b - a > 1e-12 * max(abs(a), abs(b))), 1.0)
    # No round share of the width, so that edges of bins are not scores where those are few.
    return middle + width / 777.7, width


def _grid(values: FloatArray) -> Grid:
    """Make cuts between values, on the bins' edges; if many are possible, evenly spread ones."""
    middle, width = _spread(values)
    bins = np.minimum(bin_of((values - middle) / width), FINE - 1)
    count = np.bincount(bins.astype(np.int64), minlength=FINE)
    full = np.flatnonzero(count)
    ends = np.cumsum(count[full])[:-1]
    which = np.arange(len(ends))
    if len(ends) > N_CUTS:
        which = np.unique(np.searchsorted(ends, np.linspace(ends[0], ends[-1], N_CUTS)))
    # In the middle between a bin with values and the next.
    edges = (full[which] + full[which + 1] + 1) // 2
    below = np.cumsum(np.bincount(edges, minlength=FINE))
    t = edges / (FINE / 2) - 1
    cuts = middle + width * (t / (1 - np.abs(t)))
    return Grid(middle, 1 / width, below.astype(np.int16), cuts)


def bin_of(t: Any) -> Any:
    """Bin of a quantity less the middle, in units of the spread, as a number with a fraction."""
    return (t / (1 + abs(t)) + 1) * (FINE / 2)


def cut_histograms(block: Block, W: FloatArray, grids: Sequence[Grid], shape: Shape) -> FloatArray:
    """Weight per quantity × cell × number of cuts below, shape (quantities, cells, N_CUTS + 1)."""
    xp, weights = namespace(block.y), []
    tables = like(np.stack([grid.below for grid in grids]), block.cell)
    quantities = zip(_quantities(block, W, shape), grids, tables, strict=True)
    size = shape.cells * (N_CUTS + 1)
    for (values, cell), grid, table in quantities:
        bins = xp.minimum(bin_of((values - grid.middle) * grid.per_unit), FINE - 1)
        below = table[xp.asarray(bins, dtype=block.cell.dtype)]
        code = cell * (N_CUTS + 1) + below
        weights.append(xp.bincount(code, weights=block.weight, minlength=size))
    counts = xp.asarray(xp.stack(weights), dtype=block.y.dtype)
    return counts.reshape(len(grids), shape.cells, N_CUTS + 1)


@faster_version(cut_histograms, "numpy")
def _range_version(
    rows: MemoryRows, W: FloatArray, grids: Sequence[Grid], shape: Shape
) -> Callable[..., FloatArray]:
    """Make histograms of a few ranges of rows: one for each block would take much memory."""
    compiled = shape.labels == 2 and has_numba()
    statistic = _compiled_histograms if compiled else _stepwise_histograms
    return lambda join: rows.reduce_ranges(join, statistic, W, grids, shape)


@faster_version(cut_histograms, "torch")
def _fused_version(
    rows: Any, W: FloatArray, grids: Sequence[Grid], shape: Shape
) -> Callable[..., FloatArray] | None:
    if shape.labels > 2 or rows.weighted or not has_triton(rows.X):
        return None
    return lambda join: rows.reduce(join, _fused_histograms, W, grids, shape)


def _steps(block: Block, n_rows: int) -> Iterator[Block]:
    """Cut a range of rows into blocks."""
    for i in range(0, len(block.y), n_rows):
        yield make_block(block.X, i, i + n_rows, *block[3:])


def _stepwise_histograms(block: Block, *args: Any) -> FloatArray:
    return reduce(np.add, (cut_histograms(some, *args) for some in _steps(block, BLOCK_ROWS)))


def _tables(grids: Sequence[Grid]) -> tuple[FloatArray, ...]:
    """Middles of the grids, units of the spread, and how many cuts are below each bin."""
    return tuple(
        np.array([getattr(grid, name) for grid in grids])
        for name in ("middle", "per_unit", "below")
    )


def _fused_histograms(
    block: Block, W: FloatArray, grids: Sequence[Grid], shape: Shape
) -> FloatArray:
    from evenhand.engines.triton_kernels import fused_counts

    size = len(grids), shape.cells, N_CUTS + 1
    return fused_counts(block.X, block.extra, block.cell, W, _tables(grids), size)


def _compiled_histograms(
    block: Block, W: FloatArray, grids: Sequence[Grid], shape: Shape
) -> FloatArray:
    from evenhand.frontier.numba_counts import count_bins

    counts = np.zeros((len(grids), shape.cells, N_CUTS + 1))
    weights, w_last = like(W[:-1], block.X), np.ascontiguousarray(W[-1])
    (middles, per_units, tables), none = _tables(grids), np.zeros(0)
    for some in _steps(block, BLOCK_ROWS if issparse(block.X) else STEP_ROWS):
        weight = none if some.weight is None else some.weight
        count_bins(
            some.X @ weights, some.extra, w_last, some.cell, weight, middles, per_units, tables,
            counts,
        )  # fmt: skip
    return counts


def cut_weights(grid: Grid, histogram: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Cuts, and each cell's weight below and above them, shape (cells, 2, n_cuts)."""
    below = np.cumsum(histogram, axis=1)
    total, below = below[:, -1:], below[:, : len(grid.cuts)]
    return grid.cuts, np.stack([below, total - below], axis=1)


def histogram_curves(
    cuts: FloatArray, weights: FloatArray, groups: int, n_groups_all: int
) -> tuple[list[tuple[FloatArray, FloatArray]], Callable[..., Any] | None]:
    """First two arguments of :func:`group_cuts`, from :func:`cut_weights`."""
    by_group = weights.reshape(n_groups_all, 2, 2, -1)

    def rest(mean: FloatArray) -> tuple[FloatArray, FloatArray]:
        nearest = np.abs(cuts - mean[:, None]).argmin(axis=1)
        return cuts[nearest], by_group[groups][..., nearest]

    return [(cuts, by_group[j]) for j in range(groups)], rest if n_groups_all > groups else None


def zero_counts(block: Block, W: FloatArray, shape: Shape) -> FloatArray:
    """Weight per iterate × group × label × answer at the cut 0, flat behind the first."""
    n = W.shape[1] // shape.outputs
    cut = np.zeros((n, shape.n_groups_all if shape.outputs == 1 else shape.labels))
    return cut_counts(block, W, np.arange(n), cut, shape.n_groups_all, shape.labels).reshape(n, -1)


def cut_counts(
    block: Block,
    W: FloatArray,
    column: Any,
    cut: FloatArray,
    n_groups: int,
    n_labels: int,
    left_out: LeftOut | None = None,
) -> FloatArray:
    """Weight per cut × group × label × answer; ``column`` has the iterate of each cut.

    A cut is one number, one for each group, or one for each of many labels. Scores are in float64,
    as predictions are; with ``left_out``, what each row adds to its own is taken off.
    """
    xp, outputs = namespace(block.extra), 1 if n_labels == 2 else n_labels
    scores = float64_scores(block, W)
    if left_out is not None:
        scores = scores - left_out.effect(block)
    scores = by_iterate(scores.T, outputs)
    size = n_groups * n_labels**2
    if cut.ndim == 2:
        histograms, group = [], block.cell // n_labels
        for at, c in zip(column.tolist(), like(cut, block.extra), strict=True):
            if outputs == 1:
                answer = scores[at, 0] > c[group]
            else:
                answer = xp.argmax(scores[at] - c[:, None], axis=0)
            code = block.cell * n_labels + answer
            histograms.append(xp.bincount(code, weights=block.weight, minlength=size))
        counts = xp.asarray(xp.stack(histograms), dtype=block.extra.dtype)
        return counts.reshape(len(cut), n_groups, n_labels, n_labels)
    counts = xp.zeros_like(like(np.zeros((len(cut), n_groups, 2, 2)), block.extra))
    for j, s in enumerate(scores[:, 0]):
        # The points of an iterate by rising cut: a row is positive at as many as its score exceeds.
        points = np.flatnonzero(column == j)
        points = points[np.argsort(cut[points], kind="stable")]
        bins = len(points) + 1
        code = block.cell * bins + xp.searchsorted(like(cut[points], s), s)
        histogram = xp.bincount(code, weights=block.weight, minlength=2 * n_groups * bins)
        histogram = xp.asarray(histogram, dtype=block.extra.dtype).reshape(n_groups, 2, bins)
        below = xp.cumsum(histogram, axis=-1)
        for i, point in enumerate(points.tolist()):
            counts[point, ..., 0] = below[..., i]
            counts[point, ..., 1] = below[..., -1] - below[..., i]
    return counts
