"""Rows in memory, summed block by block on all cores."""

from collections.abc import Callable, Sequence
from functools import reduce
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from scipy.sparse import csr_matrix, issparse

from evenhand.core.arrays import FloatArray
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import Game, Recode, Sums, penalized_sums, row_sums, sees_powers
from evenhand.core.rows import Block, Rows, Share, as_columns, make_block
from evenhand.engines.kernels import LIMITS, Limits, can_compile, faster_version, find_faster
from evenhand.engines.threads import cores

T = TypeVar("T")

# Small enough to stay in cache between the two products, large enough that the calls into NumPy
# cost little beside the work.
BLOCK_BYTES, BLOCK_ROWS = 2 << 20, 8192
# Blocks that a core takes at a time.
TASK = 2
# From this many rows on there is more to share among cores.
LARGE = 1 << 18
# Share of nonzero inputs below which a dense table is held as CSR.
MOSTLY_ZEROS = 0.25


def canonical(X: Any) -> Any:
    """Give CSR with each entry once and in order; SciPy would change the user's own arrays."""
    if issparse(X) and not X.has_canonical_format:
        X = X.copy()
        X.sum_duplicates()
    return X


def _compact(X: Any) -> Any:
    """CSR if X is dense but mostly zeros, as one-hot tables are: the products cost a fraction."""
    if issparse(X):
        return canonical(X)
    if np.count_nonzero(X) > MOSTLY_ZEROS * X.size:
        return X
    return csr_matrix(X)


class MemoryRows(Rows):
    """Rows of NumPy arrays, or of a CSR matrix, in blocks that share their memory.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Inputs, float32 or float64. Copied only if dense and mostly zeros.
    columns : sequence of ndarray
        The other columns of a block, from :func:`as_columns`.
    block_rows : int, optional
        Rows in a block; by default what fits in cache.
    start : int, default=0
        Number of the first row in the whole table, if this is a chunk of it.
    limits : Limits
        From which size on loops are compiled.
    """

    def __init__(
        self,
        X: Any,
        columns: Sequence[Any],
        block_rows: int | None = None,
        start: int = 0,
        limits: Limits = LIMITS,
    ) -> None:
        X = _compact(X)
        self.n_samples, self.n_features = X.shape
        self.dtype, self.weighted = X.dtype, columns[-1] is not None
        if block_rows is None:
            n = max(self.n_samples, 1)
            row_bytes = X.nnz * 12 / n if issparse(X) else X.itemsize * self.n_features
            block_rows = int(min(max(BLOCK_BYTES / max(row_bytes, 1), 256), BLOCK_ROWS))
        starts = range(0, self.n_samples, block_rows)
        self.blocks: list[Block] = [
            make_block(X, i, i + block_rows, *columns, start=start) for i in starts
        ]
        self.X, self.columns, self.start, self.limits = X, columns, start, limits
        self._loop: tuple[Any, Any, Any] = (None, None, None)
        self._prices: Any = None
        # Tasks of a few blocks. They do not depend on the number of cores, so neither do sums.
        self._tasks = [self.blocks[i : i + TASK] for i in range(0, len(self.blocks), TASK)]
        n_ranges = 4 if self.n_samples < LARGE else 16
        self._edges = np.linspace(0, self.n_samples, n_ranges + 1).astype(np.intp).tolist()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the arrays, which blocks share."""
        block_rows = len(self.blocks[0].y) if self.blocks else None
        return MemoryRows, (self.X, self.columns, block_rows, self.start, self.limits)

    def reduce(self, join: Callable[[T, T], T], statistic: Callable[..., T], *args: Any) -> T:
        """Join the results in the order of the rows, however many cores found them."""
        faster = find_faster(statistic, "numpy", self, *args)
        return self._join(join, statistic, args, self._tasks) if faster is None else faster(join)

    def reduce_ranges(
        self, join: Callable[[T, T], T], statistic: Callable[..., T], *args: Any
    ) -> T:
        """As :meth:`reduce`, with a few large ranges of rows in place of blocks."""
        ranges = [
            make_block(self.X, i, j, *self.columns, start=self.start)
            for i, j in pairwise(self._edges)
            if j > i
        ]
        return self._join(join, statistic, args, [[block] for block in ranges])

    @staticmethod
    def _join(
        join: Callable[[T, T], T], statistic: Callable[..., T], args: Any, tasks: list[list[Block]]
    ) -> T:
        def task(blocks: Sequence[Block]) -> T:
            # A diverging run may overflow; whoever asked sees it in the sums.
            with np.errstate(over="ignore", invalid="ignore"):
                return reduce(join, (statistic(block, *args) for block in blocks))

        return reduce(join, cores.map(task, tasks))

    @property
    def compiled(self) -> bool:
        """Whether there are compiled loops for them."""
        contiguous = issparse(self.X) or self.X.flags.c_contiguous
        return bool(contiguous) and can_compile(self.n_samples, self.limits)

    def take(self, share: Share) -> "MemoryRows":
        """Copy the rows of a share, which then are in blocks of their own."""
        rows = np.flatnonzero(share.of(self.start, self.n_samples))
        columns = [None if c is None else c[rows] for c in self.columns]
        return MemoryRows(self.X[rows], columns, start=self.start, limits=self.limits)

    def compiled_sums(
        self, w: FloatArray, u: FloatArray, scale: float, game: Game, recode: Recode | None
    ) -> Sums:
        """Add up :func:`row_sums` of ranges of rows, as many whatever the number of cores."""
        from evenhand.engines.numba_sums import compiled_sums

        if not (self._loop[0] is game and self._loop[1] is recode):
            self._loop = game, recode, compiled_sums(self.X, self.columns, game, recode)
        sums: Sums = self._loop[2](cores.share, self._edges, w, u, scale)
        return sums

    def compiled_prices(self, w: FloatArray, prices: FloatArray, n_cells: int) -> FloatArray:
        """Add up :func:`penalized_sums` of ranges of rows, as :meth:`compiled_sums` does."""
        from evenhand.engines.numba_sums import compiled_prices

        if self._prices is None:
            self._prices = compiled_prices(self.X, self.columns, n_cells)
        sums: FloatArray = self._prices(cores.share, self._edges, w, prices)
        return sums

    def apply(self, statistic: Callable[..., FloatArray], *args: Any) -> Sequence[FloatArray]:
        """Give one result for each block, found on all cores."""
        return list(cores.map(lambda block: statistic(block, *args), self.blocks))


@faster_version(row_sums, "numpy")
def _compiled_version(
    rows: MemoryRows,
    w: FloatArray,
    u: FloatArray,
    scale: float,
    game: Game,
    recode: Recode | None = None,
) -> Callable[..., Sums] | None:
    if sees_powers(game) and rows.compiled:
        return lambda join: rows.compiled_sums(w, u, scale, game, recode)
    return None


@faster_version(penalized_sums, "numpy")
def _compiled_prices(
    rows: MemoryRows, w: FloatArray, prices: FloatArray, n_cells: int
) -> Callable[..., FloatArray] | None:
    if rows.compiled:
        return lambda join: rows.compiled_prices(w, prices, n_cells)
    return None


def make_oracle(
    X: Any,
    y: Any,
    z: Any,
    *,
    n_labels: int = 2,
    n_groups: int | None = None,
    quantity: Any = None,
    extra: Any = None,
    sample_weight: Any = None,
    block_rows: int | None = None,
    limits: Limits = LIMITS,
    **settings: Any,
) -> Oracle:
    """Make the oracle of arrays.

    Parameters
    ----------
    X, block_rows, limits
        As of :class:`MemoryRows`.
    y, z : ndarray of shape (n_samples,)
        Number of the label and of the group, from 0.
    n_labels : int, default=2
        How many labels there are.
    n_groups : int, optional
        How many groups are compared; rows with a higher number are fitted, but belong to no group.
        All groups by default.
    quantity, extra, sample_weight : ndarray of shape (n_samples,), optional
        What the adversary guesses instead of the group: a number, whose bins are the groups;
        the column η, ones by default; positive row weights.
    **settings
        Notion, reading and constants, as :class:`evenhand.core.oracle.Oracle` takes them.
    """
    z = np.asarray(z)
    k = int(z.max()) + 1 if n_groups is None else n_groups
    columns = as_columns(
        X.shape[0],
        y,
        np.minimum(z, k),
        n_labels=n_labels,
        quantity=quantity,
        extra=extra,
        sample_weight=sample_weight,
    )
    rows = MemoryRows(X, columns, block_rows, limits=limits)
    return Oracle(rows, n_labels=n_labels, n_groups=k, quantity=quantity is not None, **settings)
