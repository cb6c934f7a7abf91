"""Tables in chunks, which are coded where they are.

A :class:`Chunk` has the user's values. Its :class:`Facts`, joined over the chunks, say what the
numbers of labels and groups are (:func:`coding_of`); with them :func:`coded` makes of a chunk rows
like any others.
"""

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import dataclass
from functools import reduce
from numbers import Integral
from typing import Any, NamedTuple, TypeVar

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import check_array

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import check_missing, check_weights
from evenhand.core.rows import Rows, Share, as_columns
from evenhand.engines.coding import Coding, count_levels, group_values, make_coding, recode
from evenhand.engines.memory import MemoryRows, canonical

T = TypeVar("T")

# Largest number of rows that weights may stand for.
MOST_ROWS = 1e15


class Chunk(NamedTuple):
    """Some rows as the user has them: inputs, labels, values of the sensitive columns, weights."""

    X: Any
    y: Any
    sensitive: Any
    weight: Any = None


@dataclass(frozen=True)
class Facts:
    """What a coding needs to know of the values of a chunk. Add two to join their rows."""

    rows: tuple[int, ...]
    labels: pd.Series
    groups: pd.Series
    largest: FloatArray
    """Largest absolute value of each column of X; NaN where a value is missing."""
    dtypes: frozenset[str]
    label_kinds: frozenset[str]
    """Kinds of the labels' arrays, as NumPy calls them."""
    weight: tuple[float, float, int]
    """Sum of the weights, of their squares, and how many are positive."""
    extremes: tuple[float, float]
    """Smallest positive and largest weight."""

    def __add__(self, other: "Facts") -> "Facts":
        (a_low, a_high), (b_low, b_high) = self.extremes, other.extremes
        a, b = self.weight, other.weight
        return Facts(
            self.rows + other.rows,
            self.labels.add(other.labels, fill_value=0),
            self.groups.add(other.groups, fill_value=0),
            np.maximum(self.largest, other.largest),
            self.dtypes | other.dtypes,
            self.label_kinds | other.label_kinds,
            (a[0] + b[0], a[1] + b[1], a[2] + b[2]),
            (min(a_low, b_low), max(a_high, b_high)),
        )


def _values(values: Any, name: str, advice: str) -> pd.Series:
    series = pd.Series(np.asarray(values)) if not isinstance(values, pd.Series) else values
    check_missing(series, name, advice)
    return series.reset_index(drop=True)


def check_shape(X: Any) -> None:
    """Refuse anything but a table, and an empty one; not every collection knows its rows."""
    n_dims = getattr(X, "ndim", 0)
    if n_dims != 2:
        raise InputError("not_two_dimensions", n=n_dims)
    for n, what in zip(X.shape, ("rows", "columns"), strict=True):
        if isinstance(n, Integral):
            _check_some(n, what)


def _check_some(n: Any, what: str) -> None:
    if not n:
        raise InputError("empty_table", what=what)


def column_sizes(X: Any) -> FloatArray:
    """Largest absolute value of each column of an array or CSR matrix; NaN if one is missing."""
    sizes = np.zeros(X.shape[1])
    if issparse(X):
        np.maximum.at(sizes, X.indices, np.abs(X.data))
    elif len(X):
        sizes = np.maximum(X.max(axis=0), -X.min(axis=0)).astype(np.float64)
    return sizes


def check_columns(sizes: FloatArray, dtype: Any, names: Any = None) -> None:
    """Refuse missing inputs, infinite ones, and those so large that sums of squares overflow."""

    def first(bad: NDArray[np.bool_]) -> Any:
        j = int(np.argmax(bad))
        return j if names is None else names[j]

    unknown = ~np.isfinite(sizes)
    if unknown.any():
        raise InputError("inputs_not_finite", column=first(unknown))
    large = sizes > float(np.finfo(dtype).max) ** 0.25
    if large.any():
        largest, dtype = float(sizes[np.argmax(large)]), np.dtype(dtype).name
        raise InputError("inputs_too_large", column=first(large), largest=largest, dtype=dtype)


def check_numbers(values: Any, name: str, column: Any = None) -> None:
    """Refuse the first value of an argument, or of one of its columns, that is no real number."""
    for value in pd.Series(values).tolist():
        try:
            float(value)
        except (TypeError, ValueError):
            data = {"argument": Parameter(name), "value": str(value)[:60]}
            if column is None:
                raise InputError("not_a_number", **data) from None
            raise InputError("not_a_number_in_column", column=column, **data) from None


def _inputs(X: Any) -> Any:
    """Give inputs as float32 or float64, dense or CSR, by scikit-learn's rules."""
    try:
        checked = check_array(
            X,
            accept_sparse="csr",
            dtype=(np.float64, np.float32),
            ensure_all_finite=False,
            ensure_min_samples=0,
            ensure_min_features=0,
        )
        return canonical(checked)
    except (TypeError, ValueError):
        table = pd.DataFrame(X.data if issparse(X) else X)
        for j, name in enumerate(table.columns):
            check_numbers(table.iloc[:, j], "X", None if issparse(X) else name)
        raise


def as_weights(values: Any) -> FloatArray:
    """Give row weights as numbers; refuse any that is not a number or cannot be added up."""
    try:
        weight = check_array(
            values,
            ensure_2d=False,
            dtype=np.float64,
            ensure_all_finite=False,
            ensure_min_samples=0,
            input_name="sample_weight",
        )
    except (TypeError, ValueError):
        check_numbers(values, "sample_weight")
        raise
    check_weights(weight)
    return np.asarray(weight)


def counted(chunk: Chunk) -> tuple[Chunk, NDArray[np.intp] | None]:
    """Leave out rows of weight 0, and give the numbers of the others; None if all are kept."""
    chunk = chunk._replace(X=_inputs(chunk.X))
    if chunk.weight is None:
        return chunk, None
    weight = as_weights(chunk.weight)
    if weight.all():
        return chunk._replace(weight=weight), None
    rows = np.flatnonzero(weight)
    y, sensitive = (v.iloc[rows] if hasattr(v, "iloc") else np.asarray(v)[rows] for v in chunk[1:3])
    return Chunk(chunk.X[rows], y, sensitive, weight[rows]), rows


def check_lengths(chunk: Chunk) -> None:
    """Refuse columns that have not the rows of X."""
    n = chunk.X.shape[0]
    names = ("y", "sensitive_features", "sample_weight")
    for name, column in zip(names, chunk[1:], strict=True):
        if column is not None and len(column) != n:
            raise InputError(
                "lengths_differ_in_chunk", argument=Parameter(name), n=len(column), expected=n
            )


def check_length(n: int, expected: int, name: str) -> None:
    """Refuse an argument that has not the rows of X."""
    if n != expected:
        raise InputError("lengths_differ", argument=Parameter(name), n=n, expected=expected)


def check_any_weight(total: float) -> None:
    """Refuse weights that are all zero."""
    if not total:
        raise InputError("weights_all_zero", argument=Parameter("sample_weight"))


def chunk_facts(chunk: Chunk) -> Facts:
    """Find the facts of a chunk, and refuse what no fit can use."""
    check_lengths(chunk)
    # What is missing is refused in rows that do not count, too, as in memory.
    chunk = chunk._replace(X=_inputs(chunk.X))
    largest = column_sizes(chunk.X)
    y = _values(chunk.y, "y", "drop those rows (NaN is no label)")
    chunk, rows = counted(chunk)
    y, groups = y if rows is None else y.iloc[rows], group_values(chunk.sensitive)
    # An empty chunk says nothing of the others' types.
    types = [(chunk.X.dtype.name, chunk.y.dtype.kind)] if len(y) else []
    return Facts(
        (len(y),),
        count_levels(y, "y")[0],
        count_levels(groups, "sensitive_features")[0],
        largest,
        frozenset(name for name, _ in types),
        frozenset(kind for _, kind in types),
        *weight_facts(chunk.weight),
    )


def weight_facts(weight: FloatArray | None) -> tuple[tuple[float, float, int], tuple[float, float]]:
    """Find the fields ``weight`` and ``extremes`` of :class:`Facts`."""
    weight = np.ones(1) if weight is None else weight
    sums = float(weight.sum()), float(weight @ weight), int(np.count_nonzero(weight))
    return sums, (float(weight[weight > 0].min(initial=np.inf)), float(weight.max(initial=0.0)))


def _codes(chunk: Chunk, coding: Coding) -> tuple[FloatArray, FloatArray | None]:
    """Group × label of each row, and its weight."""
    y = recode(*count_levels(_values(chunk.y, "y", ""), "y"), coding.labels)
    groups = group_values(chunk.sensitive)
    z = recode(*count_levels(groups, "sensitive_features"), coding.groups)
    weight = None
    if coding.per_weight is not None:
        weight = chunk.weight * coding.per_weight
    return z * coding.n_labels + y, weight


def _rows(
    X: FloatArray, cell: FloatArray, weight: FloatArray | None, coding: Coding, start: int
) -> MemoryRows:
    z, y = np.divmod(cell.astype(np.intp), coding.n_labels)
    X = X.astype(coding.dtype, copy=False)
    X = X if issparse(X) else np.ascontiguousarray(X)
    columns = as_columns(X.shape[0], y, z, n_labels=coding.n_labels, sample_weight=weight)
    return MemoryRows(X, columns, start=start)


def coded(chunk: Chunk, coding: Coding, start: int) -> MemoryRows:
    """Code the rows of a chunk; its first row is number ``start`` of the table."""
    chunk, _ = counted(chunk)
    return _rows(chunk.X, *_codes(chunk, coding), coding, start)


def check_weight_range(least: float, most: float, total: float) -> None:
    """Refuse weights that sums cannot hold, or that stand for more rows than there can be."""
    if most > 1e100 or least < 1e-100 or total > MOST_ROWS:
        rows = f", {total:.3g} rows in all" if total > MOST_ROWS else ""
        about = {"argument": Parameter("sample_weight"), "least": least, "most": most}
        raise InputError("weights_too_far_apart", rows=rows, **about)


def coding_of(facts: Facts, *, names: Any, weighted: bool, survey: bool, **options: Any) -> Coding:
    """Give the coding of a table in chunks, from the facts of all.

    ``names`` are the names of X's columns, if it has any; options are of :func:`make_coding`.
    """
    total, squares, positive = facts.weight
    if weighted:
        check_any_weight(positive)
    _check_some(sum(facts.rows), "rows")
    dtype = np.float32 if facts.dtypes == {"float32"} else np.float64
    check_columns(facts.largest, dtype, names)
    per_weight = None
    if weighted:
        mean = total / positive
        check_weight_range(*facts.extremes, total if mean >= 1 and not survey else 0.0)
        per_weight = total / squares if survey else 1 / mean if mean < 1 else 1.0
    text = str if facts.label_kinds == {"U"} else None  # as in memory
    return make_coding(
        facts.labels, facts.groups, label_dtype=text, dtype=dtype, per_weight=per_weight, **options
    )


class ChunkRows(Rows):
    """Rows of a table in chunks, by the facts of all chunks and the coding made of them."""

    def __init__(self, facts: Facts, coding: Coding, n_features: int) -> None:
        self.n_samples, self.n_features = sum(facts.rows), n_features
        self.dtype, self.weighted = np.dtype(coding.dtype), coding.per_weight is not None
        self.starts: list[int] = np.cumsum([0, *facts.rows[:-1]]).tolist()


class StreamRows(ChunkRows):
    """Rows whose inputs are read again at every pass, a chunk at a time.

    ``chunks`` are row groups of Parquet files (:class:`evenhand.engines.parquet.RowGroup`).
    What is kept are two bytes for the cell of each row, and its weight if it has one. ``facts`` are
    those of all chunks, added up.
    """

    def __init__(
        self, chunks: Sequence[Any], facts: Facts, coding: Coding, n_features: int
    ) -> None:
        super().__init__(facts, coding, n_features)
        width = np.uint16 if len(coding.groups) * coding.n_labels < 2**16 else np.intp
        self._chunks: list[tuple[Any, Any, int, FloatArray, FloatArray | None]] = []
        for chunk, start, n in zip(chunks, self.starts, facts.rows, strict=True):
            if n:
                kept, rows = counted(chunk.read())
                cell, weight = _codes(kept, coding)
                self._chunks.append((chunk, rows, start, cell.astype(width), weight))
        self._coding = coding
        self._share: Share | None = None

    def _read(self) -> Iterator[MemoryRows]:
        """Read the rows of each chunk that has any."""
        with ThreadPoolExecutor(1) as reader:
            # The next chunk is read while one is summed.
            reading = reader.submit(self._chunks[0][0].inputs)
            for i, (_, kept, start, cell, weight) in enumerate(self._chunks, 1):
                X = reading.result()
                if i < len(self._chunks):
                    reading = reader.submit(self._chunks[i][0].inputs)
                X = X if kept is None else X[kept]
                rows = _rows(X, cell, weight, self._coding, start)
                rows = rows if self._share is None else rows.take(self._share)
                if rows.n_samples:
                    yield rows

    def take(self, share: Share) -> "StreamRows":
        """Take the rows of a share; they are picked at every pass."""
        other = copy(self)
        other._share = share
        other.n_samples = sum(
            int(share.of(start, len(cell)).sum()) for _, _, start, cell, _ in self._chunks
        )
        return other

    def reduce(self, join: Callable[[T, T], T], statistic: Callable[..., T], *args: Any) -> T:
        """Join the results in the order of the rows."""
        return reduce(join, (rows.reduce(join, statistic, *args) for rows in self._read()))

    def apply(self, statistic: Callable[..., FloatArray], *args: Any) -> Sequence[FloatArray]:
        """Give one result for each chunk that has rows."""
        return [rows.collect(statistic, *args) for rows in self._read()]
