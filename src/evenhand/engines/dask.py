"""Rows in the partitions of Dask collections: sums are found where the partitions are."""

import warnings
from collections.abc import Callable, Sequence
from concurrent.futures import CancelledError
from copy import copy
from functools import reduce, wraps
from itertools import pairwise
from operator import add, attrgetter
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask import base
from dask.base import is_dask_collection
from dask.delayed import Delayed, delayed
from sklearn.exceptions import DataConversionWarning

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, InputWarning, Message, Parameter
from evenhand.core.groups import check_one_dimension, crossed
from evenhand.core.rows import Share, row_numbers
from evenhand.engines.chunks import (
    Chunk,
    ChunkRows,
    Facts,
    as_weights,
    check_any_weight,
    check_length,
    check_lengths,
    check_shape,
    chunk_facts,
    coded,
)
from evenhand.engines.coding import Coding
from evenhand.engines.memory import MemoryRows

T = TypeVar("T")

# Results that are joined by one task.
FAN_IN = 8


class SchedulerGoneError(Message, ConnectionError):
    """The Dask scheduler cannot be reached any more."""


class ColumnVectorWarning(InputWarning, DataConversionWarning):
    """Labels are a table of one column; scikit-learn's own warning is of the same class."""


def _naming_lost_scheduler(function: Callable[..., Any]) -> Callable[..., Any]:
    """Make a function of Dask raise SchedulerGoneError where its scheduler is gone."""

    @wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except (CancelledError, OSError) as error:
            if isinstance(error, OSError) and type(error).__name__ != "CommClosedError":
                raise  # a file that cannot be read
            raise SchedulerGoneError("scheduler_gone") from None

    return called


compute, persist = map(_naming_lost_scheduler, (base.compute, base.persist))


def _delayed_partitions(collection: Any, lengths: Sequence[int] = (), name: str = "X") -> list[Any]:
    """Partitions of a collection; an array in memory is cut into the given lengths."""
    countable = not is_dask_collection(collection) or (
        isinstance(collection, da.Array) and not np.isnan(sum(collection.chunks[0]))
    )
    if lengths and countable:
        check_length(len(collection), sum(lengths), name)
    if isinstance(collection, da.Array):
        if lengths and countable:
            collection = collection.rechunk({0: tuple(lengths)})
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    if is_dask_collection(collection):
        # Optimised each by itself, columns of one frame may get other partitions than the inputs.
        return list(collection.to_delayed(optimize_graph=False))
    ends = np.cumsum([0, *lengths]).tolist()
    take = collection.iloc if hasattr(collection, "iloc") else np.asarray(collection)
    return [take[i:j] for i, j in pairwise(ends)]


def _lengths(X: Any, partitions: Sequence[Any]) -> list[int]:
    """Rows of each partition, counted where they are if X does not know."""
    if isinstance(X, da.Array) and not np.isnan(sum(X.chunks[0])):
        return list(X.chunks[0])
    return list(compute(*[delayed(_n_rows)(partition) for partition in partitions]))


def _n_rows(X: Any) -> int:
    return int(X.shape[0])


def _column_partitions(
    column: Any, lengths: Sequence[int], n_partitions: int, name: str
) -> list[Any]:
    """Cut a column beside X as X is cut, into ``n_partitions``."""
    if column is None:
        return [None] * n_partitions
    partitions = _delayed_partitions(column, lengths, name)
    if len(partitions) != n_partitions:
        raise InputError(
            "partitions_differ", argument=Parameter(name), n=len(partitions), expected=n_partitions
        )
    return partitions


def _one_label_each(y: Any) -> Any:
    """Give labels of one dimension; of a single column with scikit-learn's warning."""
    y = y if hasattr(y, "ndim") else np.asarray(y)
    if y.ndim == 2 and y.shape[1] == 1:
        message = ColumnVectorWarning("column_vector")
        warnings.warn(message, stacklevel=2)
        return y[y.columns[0]] if hasattr(y, "columns") else y[:, 0]
    check_one_dimension(y.ndim, "y")
    return y


def _one_group_each(sensitive: Any) -> Any:
    """Cross the columns of what is in memory, as there: an array might hide missing values."""
    if sensitive is None or is_dask_collection(sensitive):
        return sensitive
    return crossed(sensitive, "sensitive_features")


def dask_chunks(X: Any, y: Any, sensitive: Any, weight: Any) -> list[Delayed]:
    """Make the chunks of a table, one for each partition of X.

    The others are Dask collections with the same partitions, or arrays in memory.
    """
    inputs = _delayed_partitions(X)
    y, sensitive = _one_label_each(y), _one_group_each(sensitive)
    if np.ndim(weight) > 1:
        check_one_dimension(np.ndim(weight), "sample_weight")
    others = [v for v in (y, sensitive, weight) if v is not None]
    # Frames have partitions of their own; arrays are cut as X is.
    cut = any(isinstance(v, da.Array) or not is_dask_collection(v) for v in others)
    lengths = _lengths(X, inputs) if cut else ()
    if weight is not None and np.ndim(weight) == 0:
        weight = np.full(sum(lengths), weight)
    columns = {"y": y, "sensitive_features": sensitive, "sample_weight": weight}
    others = [_column_partitions(v, lengths, len(inputs), name) for name, v in columns.items()]
    make = delayed(Chunk, pure=True)
    return [make(*values) for values in zip(inputs, *others, strict=True)]


def dask_facts(chunks: Sequence[Delayed]) -> Facts:
    """Find the facts of the chunks where they are, and add them up."""
    (facts,) = compute([delayed(chunk_facts)(chunk) for chunk in chunks])
    return reduce(add, facts)


class DaskRows(ChunkRows):
    """Rows of Dask partitions, the chunks of a table, coded and kept where they are."""

    def __init__(
        self, chunks: Sequence[Delayed], facts: Facts, coding: Coding, n_features: int
    ) -> None:
        super().__init__(facts, coding, n_features)
        make = delayed(coded, pure=True)
        sizes = zip(chunks, self.starts, facts.rows, strict=True)
        self._rows = list(persist(*[make(chunk, coding, start) for chunk, start, n in sizes if n]))

    def reduce(self, join: Callable[[T, T], T], statistic: Callable[..., T], *args: Any) -> T:
        """Join the results in a tree, in the order of the rows; only the last result leaves it."""
        shared = delayed((join, statistic, args), traverse=False, pure=False)
        level = [delayed(_reduce, pure=False)(rows, shared) for rows in self._rows]
        while len(level) > 1:
            level = [
                delayed(_join, pure=False)(join, level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        (result,) = compute(level[0], optimize_graph=False)
        return result

    def apply(self, statistic: Callable[..., FloatArray], *args: Any) -> Sequence[FloatArray]:
        """Give one result for each partition that has rows."""
        shared = delayed((statistic, args), traverse=False, pure=False)
        results = [delayed(_collect, pure=False)(rows, shared) for rows in self._rows]
        return compute(*results, optimize_graph=False)

    def take(self, share: Share) -> "DaskRows":
        """Copy the rows of a share, where they are."""
        other = copy(self)
        taken = persist(*(delayed(MemoryRows.take, pure=True)(rows, share) for rows in self._rows))
        sizes = compute(*(delayed(attrgetter("n_samples"))(rows) for rows in taken))
        other._rows = [rows for rows, n in zip(taken, sizes, strict=True) if n]
        other.n_samples = sum(sizes)
        return other


def _reduce(rows: MemoryRows, shared: Any) -> Any:
    join, statistic, args = shared
    return rows.reduce(join, statistic, *args)


def _join(join: Callable[[T, T], T], results: Sequence[T]) -> T:
    return reduce(join, results)


def _collect(rows: MemoryRows, shared: Any) -> FloatArray:
    statistic, args = shared
    return rows.collect(statistic, *args)


def on_partitions(
    model: Any, method: str, X: Any, sensitive: Any, *, shape: tuple[int, ...], dtype: Any
) -> da.Array:
    """Array of what a model's method gives for each partition, to be computed where they are.

    A row's result has this ``shape`` and ``dtype``.
    """
    check_shape(X)
    function = delayed(_applied, pure=False)
    shared = delayed(model, traverse=False, pure=False)
    inputs = _delayed_partitions(X)
    lengths = _lengths(X, inputs)
    sensitive = _one_group_each(sensitive)
    groups = _column_partitions(sensitive, lengths, len(inputs), "sensitive_features")
    results = [
        da.from_delayed(function(shared, method, X_chunk, group), shape=(n, *shape), dtype=dtype)
        if n
        else da.zeros((0, *shape), dtype=dtype)
        for X_chunk, group, n in zip(inputs, groups, lengths, strict=True)
    ]
    return da.concatenate(results)


def _applied(model: Any, method: str, X: Any, groups: Any) -> FloatArray:
    return np.asarray(getattr(model, method)(X, sensitive_features=groups))


def dask_score(model: Any, X: Any, y: Any, sensitive: Any, weight: Any) -> float:
    """Accuracy of a model; two sums of each partition are all that is sent."""
    check_shape(X)
    shared = delayed(model, traverse=False, pure=False)
    chunks = dask_chunks(X, y, sensitive, weight)
    sums = compute(*[delayed(_right, pure=False)(shared, chunk) for chunk in chunks])
    right, total = np.sum(sums, axis=0)
    check_any_weight(total)
    return float(right / total)


def _right(model: Any, chunk: Chunk) -> FloatArray:
    """Weight of the rows that a model gets right, and of all."""
    check_lengths(chunk)
    n = chunk.X.shape[0]
    if not n:
        return np.zeros(2)
    weight = np.ones(n) if chunk.weight is None else as_weights(chunk.weight)
    answer = model.predict(chunk.X, sensitive_features=chunk.sensitive)
    return np.array([weight[answer == np.asarray(chunk.y)].sum(), weight.sum()])


def drawn(pick: Callable[..., FloatArray], answers: da.Array, seed: int, dtype: Any) -> da.Array:
    """Array of ``pick(answers, numbers)``, with a random number for each row wherever it is."""
    rows = da.arange(answers.shape[0], chunks=answers.chunks[0])
    numbers = rows.map_blocks(row_numbers, seed, dtype=np.float64)
    return da.blockwise(pick, "i", answers, "ij", numbers, "i", concatenate=True, dtype=dtype)
