"""Rows in the partitions of Dask collections: sums are found where the partitions are."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import reduce
from itertools import pairwise
from operator import add
from typing import Any, TypeVar

import dask.array as da
import numpy as np
from dask.base import compute, is_dask_collection, persist
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray

from evenhand.engines._parts import Coding, Facts, Part, coded, part_facts
from evenhand.engines._rows import MemoryRows, Rows, Share

__all__ = ["DaskRows", "dask_facts", "dask_parts", "on_partitions"]

FloatArray = NDArray[Any]
T = TypeVar("T")

# Results that are joined by one task.
FAN_IN = 8


def _delayed_parts(collection: Any, lengths: Sequence[int] | None) -> list[Any]:
    """Partitions of a collection; of an array in memory pieces of the given lengths."""
    if isinstance(collection, da.Array):
        if lengths is not None and not np.isnan(sum(collection.chunks[0])):
            if sum(collection.chunks[0]) != sum(lengths):
                raise ValueError(
                    f"X has {sum(lengths)} rows and another collection {sum(collection.chunks[0])};"
                    " they must be the same rows."
                )
            collection = collection.rechunk({0: tuple(lengths)})
        if collection.ndim == 2:
            collection = collection.rechunk({1: -1})
        return list(collection.to_delayed().ravel())
    if is_dask_collection(collection):
        # Optimised each by itself, columns of one frame may get other partitions than the inputs.
        return list(collection.to_delayed(optimize_graph=False))
    if lengths is None:
        raise ValueError("X is no Dask collection, though another argument is; make X one, too.")
    if len(collection) != sum(lengths):
        raise ValueError(
            f"an argument has {len(collection)} rows, X has {sum(lengths)}; they must be the same "
            "rows."
        )
    ends = np.cumsum([0, *lengths]).tolist()
    take = collection.iloc if hasattr(collection, "iloc") else np.asarray(collection)
    return [take[i:j] for i, j in pairwise(ends)]


def _lengths(X: Any, parts: Sequence[Any]) -> list[int]:
    """Rows of each partition, counted where they are if X does not know."""
    if isinstance(X, da.Array) and not np.isnan(sum(X.chunks[0])):
        return list(X.chunks[0])
    return list(compute(*[delayed(len)(part) for part in parts]))


def dask_parts(X: Any, y: Any, sensitive: Any, weight: Any) -> list[Delayed]:
    """Make the parts of a table, one for each partition of X.

    The others are Dask collections with the same partitions, or arrays in memory.
    """
    inputs = _delayed_parts(X, None)
    others = [v for v in (y, sensitive, weight) if v is not None]
    # Frames have partitions of their own; arrays are cut as X is.
    cut = any(isinstance(v, da.Array) or not is_dask_collection(v) for v in others)
    lengths = _lengths(X, inputs) if cut else None
    columns = [
        [None] * len(inputs) if v is None else _delayed_parts(v, lengths)
        for v in (y, sensitive, weight)
    ]
    for name, parts in zip(("y", "sensitive_features", "sample_weight"), columns, strict=True):
        if len(parts) != len(inputs):
            raise ValueError(
                f"{name} has {len(parts)} partitions, X has {len(inputs)}; they must be the same."
            )
    make = delayed(Part, pure=True)
    return [make(*values) for values in zip(inputs, *columns, strict=True)]


def dask_facts(parts: Sequence[Delayed]) -> Facts:
    """Facts of all parts."""
    (found,) = compute([delayed(part_facts)(part) for part in parts])
    return reduce(add, found)


class DaskRows(Rows):
    """Rows of Dask partitions, coded and kept where they are.

    Parameters
    ----------
    parts : sequence of Delayed
        Parts of the table.
    facts : Facts
        Those of all parts.
    coding : Coding
        Numbers of labels and groups.
    n_features : int
        How many inputs there are.
    """

    def __init__(
        self, parts: Sequence[Delayed], facts: Facts, coding: Coding, n_features: int
    ) -> None:
        starts = np.cumsum([0, *facts.rows[:-1]]).tolist()
        make = delayed(coded, pure=True)
        kept = [make(p, coding, s) for p, s, n in zip(parts, starts, facts.rows, strict=True) if n]
        self._rows = list(persist(*kept))
        self.n_samples, self.n_features = sum(facts.rows), n_features
        self.dtype, self.weighted = np.dtype(coding.dtype), coding.per_weight is not None

    def reduce(self, join: Callable[[T, T], T], part: Callable[..., T], *args: Any) -> T:
        """Join the parts in a tree, in the order of the rows; only the last result leaves it."""
        shared = delayed((join, part, args), traverse=False, pure=False)
        level = [delayed(_reduce, pure=False)(rows, shared) for rows in self._rows]
        while len(level) > 1:
            level = [
                delayed(_join, pure=False)(join, level[i : i + FAN_IN])
                for i in range(0, len(level), FAN_IN)
            ]
        (found,) = compute(level[0], optimize_graph=False)
        return found

    def collect(
        self, part: Callable[..., FloatArray], *args: Any, out: FloatArray | None = None
    ) -> FloatArray:
        """``part(block, *args)`` of the blocks, side by side in the order of the rows."""
        shared = delayed((part, args), traverse=False, pure=False)
        found = [delayed(_collect, pure=False)(rows, shared) for rows in self._rows]
        return np.concatenate(compute(*found, optimize_graph=False), axis=-1, out=out)

    def take(self, share: Share) -> DaskRows:
        """Copy the rows of a share, where they are."""
        other = copy(self)
        taken = persist(*(delayed(_take, pure=True)(rows, share) for rows in self._rows))
        sizes = compute(*(delayed(_size)(rows) for rows in taken))
        other._rows = [rows for rows, n in zip(taken, sizes, strict=True) if n]
        other.n_samples = sum(sizes)
        return other


def _take(rows: MemoryRows, share: Share) -> MemoryRows:
    return rows.take(share)


def _size(rows: MemoryRows) -> int:
    return rows.n_samples


def _reduce(rows: MemoryRows, what: Any) -> Any:
    join, part, args = what
    return rows.reduce(join, part, *args)


def _join(join: Callable[[T, T], T], found: Sequence[T]) -> T:
    return reduce(join, found)


def _collect(rows: MemoryRows, what: Any) -> FloatArray:
    part, args = what
    return rows.collect(part, *args)


def on_partitions(model: Any, method: str, X: Any, sensitive: Any) -> da.Array:
    """Array of what a model's method gives for each partition, to be computed where they are."""
    function = delayed(_applied, pure=False)
    shared = delayed(model, traverse=False, pure=False)
    inputs = _delayed_parts(X, None)
    lengths = _lengths(X, inputs)
    groups = [None] * len(inputs) if sensitive is None else _delayed_parts(sensitive, lengths)
    n_classes = len(model.classes_)
    wide = method == "predict_proba" or (method == "decision_function" and n_classes > 2)
    dtype = model.classes_.dtype if method == "predict" else np.dtype(np.float64)
    pieces = [
        da.from_delayed(
            function(shared, method, part, group),
            shape=(n, n_classes) if wide else (n,),
            dtype=dtype,
        )
        for part, group, n in zip(inputs, groups, lengths, strict=True)
    ]
    return da.concatenate(pieces)


def _applied(model: Any, method: str, X: Any, groups: Any) -> FloatArray:
    return np.asarray(getattr(model, method)(X, sensitive_features=groups))
