"""Rows in memory, summed block by block on all cores; and what every engine must offer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import reduce
from itertools import pairwise
from operator import add
from threading import Lock, get_ident
from typing import Any, NamedTuple, TypeVar, cast

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from threadpoolctl import ThreadpoolController

from evenhand._arrays import has_numba, like, namespace
from evenhand.rowmath import Block, Game, Recode, Sums, make_block, row_sums, sees_powers

__all__ = [
    "MemoryRows",
    "Rows",
    "Share",
    "as_columns",
    "canonical",
    "cores",
    "row_numbers",
    "share_cells",
]

FloatArray = NDArray[Any]
T = TypeVar("T")

# Small enough to stay in cache between the two products, large enough that the calls into NumPy
# cost little beside the work.
BLOCK_BYTES, BLOCK_ROWS = 2 << 20, 8192
# Blocks that a core takes at a time.
TASK = 2
# From this many rows on, sums are compiled if numba is there: it takes a moment to load.
COMPILED_ROWS = 8192
# From this many rows on there is more to share among cores.
LARGE = 1 << 18
# Share of nonzero inputs below which a dense table is held as CSR.
MOSTLY_ZEROS = 0.25


def row_numbers(rows: NDArray[np.integer[Any]], seed: int) -> FloatArray:
    """Random number, from 0 to 1, of each row by the row's number."""
    # The finaliser of SplitMix64: as good as drawn, for each row by itself.
    x = rows.astype(np.uint64) + np.uint64(seed)
    with np.errstate(over="ignore"):
        x = x * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return (x >> np.uint64(11)) * 2.0**-53


class Share(NamedTuple):
    """Rows whose random number, from 0 to 1, is in an interval, or all the others.

    The numbers follow from the rows' numbers and a seed, wherever the rows are.
    """

    seed: int
    low: float
    high: float
    inside: bool

    def of(self, start: int, n: int) -> NDArray[np.bool_]:
        """Which of n rows from number ``start`` on belong to it."""
        number = row_numbers(np.arange(start, start + n), self.seed)
        return ((number >= self.low) & (number < self.high)) == self.inside


def share_cells(block: Block, share: Share, n_cells: int) -> FloatArray:
    """How many rows of each cell belong to a share."""
    mask = like(share.of(block.start, len(block.y)), block.cell)
    return namespace(block.y).bincount(block.cell[mask != 0], minlength=n_cells)


class Rows(ABC):
    """Rows of a table, wherever they are.

    An engine evaluates functions of :mod:`evenhand.rowmath` where the rows are and joins the
    results; it knows nothing of what they mean. Results are NumPy's.

    Attributes
    ----------
    n_samples, n_features : int
        Shape of the inputs.
    dtype : dtype
        Precision of the inputs, as NumPy calls it.
    weighted : bool
        Whether rows have weights.
    """

    n_samples: int
    n_features: int
    dtype: Any
    weighted: bool

    @abstractmethod
    def reduce(self, join: Callable[[T, T], T], part: Callable[..., T], *args: Any) -> T:
        """Join ``part(block, *args)`` over the blocks of rows, two by two."""

    @abstractmethod
    def collect(
        self, part: Callable[..., FloatArray], *args: Any, out: FloatArray | None = None
    ) -> FloatArray:
        """``part(block, *args)`` of the blocks, side by side in the order of the rows.

        Rows are the last dimension; ``out`` is an array to fill.
        """

    @abstractmethod
    def take(self, share: Share) -> Rows:
        """Take the rows of a share, where they are."""

    def sum(self, part: Callable[..., T], *args: Any) -> T:
        """Add up ``part(block, *args)`` over the blocks of rows."""
        return self.reduce(add, part, *args)


def as_columns(
    n_samples: int,
    y: Any,
    z: Any,
    *,
    n_labels: int,
    quantity: Any = None,
    extra: Any = None,
    sample_weight: Any = None,
) -> tuple[Any, ...]:
    """Columns of a block beside X: extra, label, what is guessed, cell, weight."""
    y, z = np.asarray(y, dtype=np.float64), np.asarray(z)
    extra = np.ones(n_samples) if extra is None else np.asarray(extra, dtype=np.float64)
    guessed = np.asarray(z if quantity is None else quantity, dtype=np.float64)
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    return extra, y, guessed, (z * n_labels + y).astype(np.intp), weight


def canonical(X: Any) -> Any:
    """CSR with each entry once and in order: SciPy would see to that in the user's own arrays."""
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


class _Cores:
    """Threads for the cores that fits may use.

    How many that is, is the user's say: the environment, ``threadpoolctl.threadpool_limits``, or
    joblib, whose workers get one each. Overlapping fits share the threads.
    """

    def __init__(self) -> None:
        self._lock, self._turn, self._users, self.count = Lock(), Lock(), 0, 1
        self._owner = 0
        self._blas: Any = None
        self.pool: ThreadPoolExecutor | None = None

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Have threads for compiled loops."""
        with self._lock:
            self._users += 1
            if self._users == 1:
                with self._turn:  # or BLAS would seem to have one thread
                    self._blas = ThreadpoolController().select(user_api="blas")
                    self.count = max([1, *(int(b["num_threads"]) for b in self._blas.info())])
                self.pool = ThreadPoolExecutor(self.count) if self.count > 1 else None
        try:
            yield
        finally:
            with self._lock:
                self._users -= 1
                if not self._users and self.pool is not None:
                    self.pool.shutdown(wait=False)
                    self.pool = None

    @contextmanager
    def without_blas(self) -> Iterator[None]:
        """Have threads for NumPy's functions, with BLAS held to one.

        BLAS's number of threads belongs to the whole process, and is set back by the thread that
        set it: overlapping fits take turns, or one would restore what another had set.
        """
        with self(), self._turn, self._blas.limit(limits=1):
            self._owner = get_ident()
            try:
                yield
            finally:
                self._owner = 0

    def map(self, function: Callable[..., T], *items: Iterable[Any]) -> Iterator[T]:
        """As ``map``, on several cores inside ``with cores.without_blas():``, in order."""
        pool = self.pool if self._owner == get_ident() else None
        return map(function, *items) if pool is None else pool.map(function, *items)

    def share(self, function: Callable[[Any], None], items: Iterable[Any]) -> None:
        """Call a function with each item; this thread takes its share, without being woken."""
        left = iter(items)

        def work() -> None:
            for item in left:
                function(item)

        pool = self.pool
        pending = [pool.submit(work) for _ in range(self.count - 1)] if pool is not None else []
        work()
        for future in pending:
            future.result()


cores = _Cores()


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
        Number of the first row in the whole table, of which these are a part.
    """

    def __init__(
        self, X: Any, columns: Sequence[Any], block_rows: int | None = None, start: int = 0
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
        self._X, self._columns, self._start = X, columns, start
        self._loop: tuple[Any, Any] = (None, None)
        # Tasks of a few blocks each: as many whatever the number of cores, so that sums are, too.
        self._tasks = [self.blocks[i : i + TASK] for i in range(0, len(self.blocks), TASK)]
        n_ranges = 4 if self.n_samples < LARGE else 16
        self._edges = np.linspace(0, self.n_samples, n_ranges + 1).astype(np.intp).tolist()

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel as the arrays, which blocks share."""
        block_rows = len(self.blocks[0].y) if self.blocks else None
        return MemoryRows, (self._X, self._columns, block_rows, self._start)

    def reduce(self, join: Callable[[T, T], T], part: Callable[..., T], *args: Any) -> T:
        """Join the parts in the order of the rows, however many cores found them."""
        if part is row_sums and self._compilable(*args[3:]):
            return cast(T, self._compiled(*args))

        def task(blocks: Sequence[Block]) -> T:
            # A diverging run may overflow; whoever asked sees it in the sums.
            with np.errstate(over="ignore", invalid="ignore"):
                return reduce(join, (part(block, *args) for block in blocks))

        if not getattr(part, "in_steps", False):
            return reduce(join, cores.map(task, self._tasks))
        ranges = [
            make_block(self._X, i, j, *self._columns, start=self._start)
            for i, j in pairwise(self._edges)
            if j > i
        ]
        return reduce(join, cores.map(task, [[block] for block in ranges]))

    def take(self, share: Share) -> MemoryRows:
        """Copy the rows of a share."""
        rows = np.flatnonzero(share.of(self._start, self.n_samples))
        columns = [None if c is None else c[rows] for c in self._columns]
        return MemoryRows(self._X[rows], columns, start=self._start)

    def _compilable(self, game: Game, recode: Recode | None) -> bool:
        """Whether there is a compiled loop for these sums, and it is worth its loading."""
        return (
            self.n_samples >= COMPILED_ROWS
            and sees_powers(game)
            and (issparse(self._X) or self._X.flags.c_contiguous)
            and has_numba()
        )

    def _compiled(
        self, w: FloatArray, u: FloatArray, scale: float, game: Game, recode: Recode | None
    ) -> Sums:
        """Add up the sums of ranges of rows, as many whatever the number of cores."""
        from evenhand.engines._compiled import compiled_sums

        known, sums = self._loop
        if not (known and known[0] is game and known[1] is recode):
            sums = compiled_sums(self._X, self._columns, game, recode)
            self._loop = (game, recode), sums
        return sums(cores.share, self._edges, w, u, scale)

    def collect(
        self, part: Callable[..., FloatArray], *args: Any, out: FloatArray | None = None
    ) -> FloatArray:
        """``part(block, *args)`` of the blocks, side by side in the order of the rows."""
        found = list(cores.map(lambda block: part(block, *args), self.blocks))
        return np.concatenate(found, axis=-1, out=out)
