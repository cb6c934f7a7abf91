"""What users bring, checked and coded: groups, labels, weights, scales."""

from collections.abc import Callable, Collection
from contextlib import suppress
from datetime import date
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils.multiclass import check_classification_targets

from evenhand._sklearn import check_sample_weight, safe_indexing
from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.groups import check_missing, crossed, only_text, rising
from evenhand.core.rates import Partition
from evenhand.core.row_sums import column_ends
from evenhand.core.rows import Rows
from evenhand.engines.chunks import check_columns, check_numbers, check_weight_range, column_sizes
from evenhand.engines.coding import (
    attribute_columns,
    count_levels,
    group_values,
    joined,
    listed,
    make_coding,
    make_partitions,
    named,
    recode,
)
from evenhand.models.bins import bin_names, in_bins, numbers_for_bins
from evenhand.models.settings import warn

# Standard deviations further apart than this deserve a warning.
MAX_SPREAD = 100
# And so do columns of float32 whose values differ by less than this share of their size.
LEAST_SPREAD = 1e-3
# Constants that were computed differ by the last digits of float64.
ROUNDING = 1e-13
# Sample size for the test whether merging duplicate rows can pay.
SAMPLE_ROWS = 1 << 14
# Rows compared at once when duplicates are merged.
CHECK_ROWS = 8192


Where = int | str | Callable[[Any], Any] | None


def is_tensor(X: Any) -> bool:
    """Whether X is PyTorch's; it need not be installed."""
    return type(X).__module__.split(".")[0] == "torch"


def is_dask(X: Any) -> bool:
    """Whether X is a Dask collection; Dask need not be installed."""
    return hasattr(X, "__dask_graph__")


def on_host(values: Any) -> Any:
    """Give a tensor as NumPy's array; anything else as it is."""
    if not is_tensor(values):
        return values
    from evenhand.engines.torch import as_plain

    return as_plain(values).cpu().numpy()


def as_table(X: Any) -> Any:
    """X, as a pandas frame if it is another library's, so that columns can be found by name."""
    if hasattr(X, "columns") and not hasattr(X, "iloc"):
        return pd.DataFrame({name: np.asarray(X[name]) for name in X.columns})
    return X


def group_column(X: Any, where: Where, sensitive_features: Any) -> int | None:
    """Index of the column of X that is sensitive and no input; None if X has no such column.

    It holds the groups, unless ``fit`` was given others.
    """
    if where is None and sensitive_features is None:
        raise InputError("no_groups")
    if where is None or callable(where):
        return None
    by_name = isinstance(where, str)
    if by_name and sensitive_features is not None and where not in getattr(X, "columns", ()):
        return None
    shape = X.shape if hasattr(X, "shape") else np.shape(X)
    if len(shape) != 2:
        return None  # scikit-learn's checks refuse it
    column = _named_column(X, str(where)) if by_name else int(where)
    if not -shape[1] <= column < shape[1]:
        raise InputError(
            "unknown_column_index", where=Parameter("sensitive_features", where), n=shape[1]
        )
    return int(column) % int(shape[1])


def check_labels(y: Any) -> None:
    """Refuse labels of types without an order, and missing ones that are no numbers.

    Missing ones among numbers scikit-learn sees.
    """
    dtype = getattr(y, "dtype", None)
    if isinstance(y, list | tuple) or isinstance(dtype, pd.CategoricalDtype):
        y = pd.Series([*y], dtype=object)
    elif isinstance(y, np.ndarray) and dtype == np.dtype(object) and y.ndim == 1:
        y = pd.Series(y)
    if isinstance(y, pd.Series):
        check_missing(y, "y", "drop those rows (NaN is no label)")
        if y.dtype == np.dtype(object):
            with suppress(TypeError):  # lists and the like, which scikit-learn refuses
                _check_label_values(pd.unique(y))


@only_text()
def _check_label_values(values: NDArray[Any]) -> None:
    """Refuse distinct labels that are no plain values, or of several types."""
    kinds = {type(value) for value in values}
    if tuple in kinds:
        raise InputError("labels_in_tuples")
    rising(values, "y")
    if bool in kinds and len(kinds) > 1:
        raise InputError("mixed_booleans", types=joined(sorted(k.__name__ for k in kinds)))
    for value in values:
        str(value).encode()


def check_weights(X: Any, sample_weight: Any, *, survey: bool = False) -> tuple[Any, Any]:
    r"""Check the weights and find the rows of positive weight; both None if no weights are given.

    Weights of a survey are brought to a sum of Kish's effective number of rows,
    :math:`(\sum w)^2 / \sum w^2`.
    """
    if sample_weight is None:
        return None, None
    given = np.asarray(sample_weight)
    if given.dtype.kind in "biuf" and not given.any():
        raise InputError("zero_weights")
    if given.dtype.kind not in "biuf" and given.ndim == 1:
        check_numbers(given, "sample_weight")
    weight = check_sample_weight(sample_weight, X, dtype=np.float64, ensure_non_negative=True)
    least, most = float(weight[weight > 0].min()), float(weight.max())
    with np.errstate(over="ignore"):
        total = float(weight.sum())
    # Standard errors take a weight for a number of rows, and a row is at least one.
    mean = total / np.count_nonzero(weight)
    check_weight_range(least, most, total if mean >= 1 and not survey else 0.0)
    if survey:
        weight = weight * (total / (weight @ weight))
    elif mean < 1:
        weight = weight / mean
    return weight, None if weight.all() else np.flatnonzero(weight)


def find_groups(
    X: Any, column: int | None, where: Where, sensitive_features: Any, used: Any
) -> Any:
    """Find the group of each used row: as given, else in a column of X or by a function of X."""
    if sensitive_features is None and callable(where):
        return where(X if used is None else safe_indexing(X, used))
    if sensitive_features is not None or column is None:
        values = crossed(sensitive_features, "sensitive_features")
        n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
        _check_length(values, n_rows)
    elif hasattr(X, "iloc"):
        values = X.iloc[:, column]
    elif issparse(X):
        values = pd.Series(X.tocsc()[:, [column]].toarray().ravel())
    else:
        dense = isinstance(X, np.ndarray) or is_tensor(X)
        cells = on_host(X[:, column]) if dense else [row[column] for row in X]
        values = pd.Series(cells).infer_objects()
    if used is not None:
        values = safe_indexing(values, used)
    return values


def _check_length(values: pd.Series, n_rows: int) -> None:
    """Refuse groups of other rows than X has."""
    if len(values) != n_rows:
        raise InputError("unequal_lengths", n=len(values), n_rows=n_rows)


def _named_column(X: Any, name: str) -> int:
    names = list(getattr(X, "columns", []))
    if not names:
        raise InputError("no_column_names", where=Parameter("sensitive_features", name))
    if name not in names:
        raise InputError("lost_sensitive_column", column=name, columns=listed(names, 10))
    return names.index(name)


def blank_groups(X: Any, column: int | None) -> Any:
    """X with zeros in the group column, which is no input and may hold text."""
    if column is None or issparse(X):
        return X
    if hasattr(X, "iloc"):
        X = X.copy(deep=False)
        if column < X.shape[1]:
            X.isetitem(column, 0.0)
        return X
    X = np.array(X, dtype=None if hasattr(X, "dtype") else object)
    if X.ndim == 2 and column < X.shape[1]:
        X[:, column] = 0
    return X


def check_not_alone(X: Any) -> None:
    """Refuse a table that has no column but the group column."""
    if X.shape[1] == 1:
        raise InputError("only_sensitive_column")


def find_no_numbers(X: Any) -> tuple[Any, str] | None:
    """Find the first column of X that holds text, dates or, in a frame, nothing: what it holds."""
    if hasattr(X, "iloc"):
        columns = [(name, X.iloc[:, j]) for j, name in enumerate(X.columns)]
    else:
        values = np.asarray(X, dtype=object)
        columns = list(enumerate(values.T)) if values.ndim == 2 else []
    for name, column in columns:
        for value in pd.unique(pd.Series(column).astype(object)):
            if isinstance(value, str):
                try:
                    float(value)
                except ValueError:
                    return name, f"text, such as {value!r}"
            if isinstance(value, date | np.datetime64):
                return name, f"dates, such as {value}"
    for name, column in columns if hasattr(X, "iloc") else ():
        n = int(pd.isna(column).sum())
        if n:
            return name, f"{n} missing value{'s' * (n > 1)} (NaN)"
    return None


def check_sizes(X: Any, names: Any = None) -> None:
    """Refuse inputs so large that sums of their squares overflow, by the names of the columns."""
    values = X.data if issparse(X) else X
    if values.size and max(values.max(), -values.min()) > float(np.finfo(X.dtype).max) ** 0.25:
        check_columns(column_sizes(X), X.dtype, names)


class CodedRows(NamedTuple):
    """The rows that count: inputs, numbers of the labels and of the groups, weights.

    ``inputs`` are the columns of the user's X that X has. Rows of groups too small to compare have
    the number ``len(groups)``; ``small`` says how many rows each of these groups has. If the groups
    are bins of a number, ``quantity`` is that number, standardised, and ``edges`` separate them;
    ``extra`` is the noise column, and ``person`` whose row it is, if that was said. ``directions``
    are weights that are known to be worth a place among the iterates. If an engine has the rows, it
    is their ``source``, and X, y, z and weight are None. ``partitions`` are the groups of each
    attribute, if these are what is compared.
    """

    X: Any
    y: NDArray[np.intp]
    z: NDArray[np.intp]
    weight: NDArray[np.float64] | None
    inputs: NDArray[np.intp]
    classes: NDArray[Any]
    groups: NDArray[Any]
    small: dict[Any, int]
    quantity: NDArray[np.float64] | None = None
    extra: NDArray[np.float64] | None = None
    edges: NDArray[np.float64] | None = None
    person: NDArray[np.intp] | None = None
    source: Rows | None = None
    directions: NDArray[np.float64] | None = None
    partitions: tuple[Partition, ...] = ()

    @property
    def n_rows(self) -> int:
        """How many there are."""
        return len(self.y) if self.source is None else self.source.n_samples

    @property
    def weighted(self) -> bool:
        """Whether they have weights."""
        return self.weight is not None if self.source is None else self.source.weighted


def take_rows(rows: CodedRows, index: Any) -> CodedRows:
    """Take some of the rows; classes and groups stay as they are."""
    if rows.source is not None:
        return rows._replace(source=rows.source.take(index))
    names = "X", "y", "z", "weight", "extra", "quantity", "person"
    columns: dict[str, Any] = {name: getattr(rows, name) for name in names}
    return rows._replace(**{k: v[index] for k, v in columns.items() if v is not None})


def code_rows(
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any = None,
    *,
    table: Any = None,
    column: int | None = None,
    where: Where = None,
    survey: bool = False,
    extra: Any = None,
    bins: Any = None,
    attributes: str = "crossed",
    **options: Any,
) -> CodedRows:
    """Check the weights, find the groups, drop rows of zero weight, and code labels and groups.

    ``table``, ``column`` and ``where`` say where :func:`find_groups` looks, in X by default;
    options are those of :func:`evenhand.engines.coding.make_coding`. Of ``attributes`` that are not
    crossed alone all crossed groups are counted, however small, and partitions are compared.
    """
    weight, used = check_weights(X, sample_weight, survey=survey)
    groups = find_groups(X if table is None else table, column, where, sensitive_features, used)
    check_classification_targets(y)
    y, among = np.asarray(y), ""
    if used is not None:
        X, y, weight = X[used], y[used], weight[used]
        extra = None if extra is None else extra[used]
        among = " among the rows of positive weight"
    quantity = edges = None
    if bins is None:
        values = group_values(groups)
    else:
        values, quantity, edges = in_bins(groups, bins, weight)
    _check_length(values, X.shape[0])
    labels, levels = count_levels(y, "y"), count_levels(values, "sensitive_features")
    columns = None
    if attributes != "crossed":
        given = groups if sensitive_features is None else sensitive_features
        columns = attribute_columns(given, used)
    least = options.get("min_group_size", 1)
    if columns is not None:
        options["min_group_size"] = 1
    options |= {"label_dtype": y.dtype, "where": among, "binned": bins is not None}
    coding = make_coding(labels[0], levels[0], **options)
    y, z = recode(*labels, coding.labels), recode(*levels, coding.groups)
    names = coding.classes, coding.compared, coding.small
    rows = CodedRows(X, y, z, weight, np.arange(X.shape[1]), *names, quantity, extra, edges)
    if columns is None:
        return rows
    crossed_too = attributes == "both"
    partitions = make_partitions(columns, z, coding.compared, least, crossed_too=crossed_too)
    return rows._replace(partitions=partitions)


def code_known_groups(
    name: str,
    groups: NDArray[Any],
    sensitive_features: Any,
    n_rows: int,
    *,
    small: Collection[Any] = (),
    edges: NDArray[np.float64] | None = None,
) -> NDArray[np.intp]:
    """Index of each row's group among those seen in ``fit``; small ones have the last of all."""
    if sensitive_features is None:
        raise InputError("group_needed", name=name)
    values = crossed(sensitive_features, "sensitive_features")
    check_missing(values, "sensitive_features", "a group is never guessed")
    _check_length(values, n_rows)
    if edges is not None:
        z = np.searchsorted(edges, numbers_for_bins(values), side="right")
        values = pd.Series(bin_names(edges)[z], index=values.index)
    index = {group: i for i, group in enumerate(groups.tolist())}
    index |= dict.fromkeys(small, len(groups))
    codes = values.map(index)
    if codes.isna().any() and edges is None:
        # Models of earlier versions have a comma between the values of a crossed group.
        codes = codes.fillna(crossed(sensitive_features, "sensitive_features", ", ").map(index))
    if codes.isna().any():
        unknown = values[codes.isna()].tolist()[0]
        about = {"groups": Parameter("sensitive_features"), "known": listed(index)}
        raise InputError("unknown_group", group=unknown, shown=named(unknown), **about)
    return codes.to_numpy(dtype=np.intp)


def merge_alike(rows: CodedRows) -> CodedRows:
    """Merge duplicate rows into one row of their summed weight.

    Tables of few categories have few distinct rows, and every sum over rows stays the same. Nothing
    is done unless it leaves a quarter of the rows or fewer.
    """
    if rows.quantity is not None:
        return rows  # duplicates are rare
    X, n = rows.X, len(rows.y)
    probe = np.random.default_rng(0).standard_normal(X.shape[1]).astype(X.dtype)
    # Were the distinct rows a quarter of millions of rows, a sample would hold duplicates.
    sample = X[:: max(n // SAMPLE_ROWS, 1)]
    if sample.shape[0] > 1000 and len(np.unique(sample @ probe)) == sample.shape[0]:
        return rows
    code = np.unique(X @ probe, return_inverse=True)[1]
    code = (code * (len(rows.groups) + 1) + rows.z) * len(rows.classes) + rows.y
    _, first, code = np.unique(code, return_index=True, return_inverse=True)
    if len(first) > n // 4:
        return rows
    merged = X[first]
    # Different rows may have the same product with the probe.
    for i in range(0, n, CHECK_ROWS):
        chunk = slice(i, i + CHECK_ROWS)
        different = merged[code[chunk]] != X[chunk]
        if different.nnz if issparse(X) else different.any():
            return rows
    weight = np.bincount(code, weights=rows.weight, minlength=len(first)).astype(np.float64)
    return rows._replace(X=merged, y=rows.y[first], z=rows.z[first], weight=weight)


def check_digits(rows: Rows, unused: NDArray[np.bool_], names: Any) -> None:
    """Warn of columns that differ too little for their size, and name them.

    They are coarse in float32. In float64 they are those of the ``unused``, which the solver takes
    for constants, that are none.
    """
    coarse = np.dtype(rows.dtype) == np.float32
    if not (coarse or unused.any()):
        return
    most, least = rows.reduce(np.maximum, column_ends) * [[1.0], [-1.0]]
    spread, size = most - least, np.maximum(np.abs(most), np.abs(least))
    few = unused & (spread > ROUNDING * size)
    if coarse:
        few = (spread > 0) & (spread < LEAST_SPREAD * size)
    if not few.any():
        return
    about = {"columns": names[few].tolist(), "named": listed(names[few])}
    if coarse:
        warn(InputWarning("coarse_float32", **about))
    else:
        warn(InputWarning("taken_for_constant", **about))


def check_scales(scale: NDArray[np.float64], names: Any, otherwise: str = "") -> None:
    """Warn if columns differ in scale, and name the fewer of the large and the small ones.

    ``otherwise`` says what else than scaling helps.
    """
    varying = scale > 0
    if not varying.any():
        return
    low, high = scale[varying].min(), scale.max()
    if high <= MAX_SPREAD * low:
        return
    large = scale > np.sqrt(low * high)
    small = varying & ~large
    few, size = (large, "large") if large.sum() <= small.sum() else (small, "small")
    about = {"columns": names[few].tolist(), "named": listed(names[few]), "otherwise": otherwise}
    are = "is" if few.sum() == 1 else "are"
    warn(InputWarning("unlike_scales", factor=high / low, are=are, size=size, **about))
