"""Rows of a table as the mathematics sees them: blocks of columns, and what an engine offers.

A :class:`Block` is some rows at hand. :class:`Rows` are all of them, wherever they are: an engine
(:mod:`evenhand.engines`) applies a function to blocks and joins the results. A :class:`Share` names
rows by chance and by their numbers alone, so that it can be taken wherever they are.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse

from evenhand.core.arrays import FloatArray, like, namespace

T = TypeVar("T")


class Block(NamedTuple):
    """Some rows: inputs, the extra column, label, what is guessed, group × label cell, weight.

    ``z`` is the group's number, or the quantity that the adversary regresses; ``start`` is the
    number of the first row in the whole table.
    """

    start: int
    X: Any
    X_t: Any
    extra: FloatArray
    y: FloatArray
    z: FloatArray
    cell: FloatArray
    weight: FloatArray | None


def make_block(X: Any, i: int, j: int, *columns: Any, start: int = 0) -> Block:
    """Rows i to j of X and of the columns, sharing their memory; X begins at the row ``start``."""
    j = min(j, X.shape[0])
    if issparse(X):
        a, b = X.indptr[i], X.indptr[j]
        arrays = (X.data[a:b], X.indices[a:b], X.indptr[i : j + 1] - a)
        inputs = csr_matrix(arrays, shape=(j - i, X.shape[1]))
    else:
        inputs = X[i:j]
    others = (None if column is None else column[i:j] for column in columns)
    return Block._make([start + i, inputs, inputs.T, *others])


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

    An engine evaluates functions of :mod:`evenhand.core.row_sums` where the rows are and joins the
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
    def reduce(self, join: Callable[[T, T], T], statistic: Callable[..., T], *args: Any) -> T:
        """Join ``statistic(block, *args)`` over the blocks of rows, two by two."""

    @abstractmethod
    def apply(self, statistic: Callable[..., FloatArray], *args: Any) -> Sequence[FloatArray]:
        """``statistic(block, *args)`` of the blocks, in the order of the rows."""

    @abstractmethod
    def take(self, share: Share) -> "Rows":
        """Take the rows of a share, where they are."""

    def sum(self, statistic: Callable[..., T], *args: Any) -> T:
        """Add up ``statistic(block, *args)`` over the blocks of rows."""
        return self.reduce(add, statistic, *args)

    def collect(
        self, statistic: Callable[..., FloatArray], *args: Any, out: FloatArray | None = None
    ) -> FloatArray:
        """Put :meth:`apply`'s results side by side; their last dimension is the rows'.

        ``out`` is an array to fill.
        """
        return np.concatenate(self.apply(statistic, *args), axis=-1, out=out)


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
