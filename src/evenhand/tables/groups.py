"""Groups of a table's rows: sensitive columns as they come, in bins, rows without a group."""

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.errors import InputError, Parameter
from evenhand.models.bins import bin_edges, bin_names
from evenhand.tables.columns import BUILT_IN, MissingWords, as_table, listed
from evenhand.tables.numbers import is_number, read_numbers, read_weights

# What the group of rows without a value is called.
MISSING = "(missing)"
# More groups than this are no groups but names.
MOST_GROUPS = 100
# A number with more values than this needs bins.
MOST_VALUES = 20


class Columns(NamedTuple):
    """Which columns of a table hold labels, groups and weights, and how these are read."""

    label: str | None
    sensitive: Sequence[str]
    missing_groups: str = "error"
    bins: Any = None
    missing: MissingWords = BUILT_IN
    weight: str | None = None

    def weights(self, X: Any) -> NDArray[np.float64] | None:
        """Give each row's weight, if a column holds weights."""
        return None if self.weight is None else read_weights(X, self.weight, self.missing)

    def values(self, X: Any, *, numbers: bool = False) -> pd.DataFrame:
        """Give the sensitive columns; ``numbers`` says that all are to be binned."""
        binned = numbers or list(bins_by_column(self.bins, self.sensitive))
        return group_values(X, self.sensitive, numbers=binned, missing=self.missing)

    def group_columns(self, X: Any, *, numbers: bool = False) -> pd.DataFrame:
        """Give the sensitive columns, of those with bins the bins, missing where a value is."""
        values = self.values(X, numbers=numbers)
        return as_bins(values, find_edges(values, self.bins))

    def groups(self, X: Any) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Group of each row that has one, and which rows those are."""
        values, kept = known_groups(self.group_columns(X), self.missing_groups)
        check_groups(values, bins_by_column(self.bins, self.sensitive))
        return values, kept


def check_groups(values: pd.DataFrame, bins: Mapping[str, Any]) -> None:
    """Refuse sensitive columns whose values are no groups."""
    for name in values.columns:
        known = values[name].dropna().unique()
        written = (str(v).replace(".", "", 1).lstrip("-").isdigit() for v in known)
        if name not in bins and len(known) > MOST_VALUES and all(written):
            example = Parameter("bins", {name: [30, 45, 60]})
            raise InputError("bins_needed", column=name, n=len(known), bins=example)
        if len(known) > MOST_GROUPS and not pd.api.types.is_numeric_dtype(values[name]):
            raise InputError("too_many_groups", column=name, n=len(known), most=MOST_GROUPS)


def group_values(
    X: Any,
    sensitive: Sequence[str],
    *,
    numbers: bool | Collection[str] = False,
    missing: MissingWords = BUILT_IN,
) -> pd.DataFrame:
    """Give a table's sensitive columns: numbers stay numbers, all else is text or None.

    ``numbers`` says whether numbers written as text are numbers, because bins are to be made of
    them; or in which columns they are.
    """
    table = as_table(X)
    columns = {}
    for name in sensitive:
        if name not in table.columns:
            raise InputError("unknown_sensitive_column", column=name, columns=listed(table.columns))
        texts = table[name].as_text(missing)
        number = table[name].dtype.is_numeric()
        for_bins = numbers if isinstance(numbers, bool) else name in numbers
        if not number and for_bins:
            number = all(map(is_number, texts.levels))
        values = read_numbers(table[name], missing=missing) if number else np.empty(0)
        # Beyond 2**53 floats merge whole numbers, and with them groups.
        if not number or (not for_bins and np.abs(values).max(initial=0.0) >= 2**53):
            columns[name] = pd.Series(texts.text_values(), dtype=object)
            continue
        whole = np.isfinite(values).all() and (values % 1 == 0).all()
        columns[name] = pd.Series(values.astype(np.int64) if whole else values)
    return pd.DataFrame(columns)


def find_edges(values: pd.DataFrame, bins: Any) -> dict[str, NDArray[np.float64]]:
    """Find the edges of the bins of each column that has some, on the rows that have a value."""
    edges = {}
    for name, wanted in bins_by_column(bins, list(values.columns)).items():
        if np.ndim(wanted) == 0 and not (isinstance(wanted, Integral) and int(wanted) >= 2):
            raise InputError("too_few_bins", column=name, bins=Parameter("bins", wanted))
        known = numbers_for_bins(values, name).dropna()
        edges[name] = bin_edges(known.to_numpy(dtype=np.float64), wanted)
    return edges


def numbers_for_bins(values: pd.DataFrame, name: str) -> pd.Series:
    """Give a column to make bins of; refuse what is no number."""
    column = values[name]
    if not pd.api.types.is_numeric_dtype(column):
        words = [str(v) for v in column.dropna().unique() if not is_number(str(v))]
        if words:
            raise InputError("bins_of_no_number", column=name, value=words[0])
    return column


def in_bins(values: pd.Series, edges: NDArray[np.float64]) -> pd.Series:
    """Give the name of each value's bin, None where it is missing."""
    numbers = values.to_numpy(dtype=np.float64)
    names = bin_names(edges)[np.searchsorted(edges, numbers, side="right")]
    return pd.Series(names, index=values.index, dtype=object).where(~np.isnan(numbers), None)


def as_bins(values: pd.DataFrame, edges: Mapping[str, NDArray[np.float64]]) -> pd.DataFrame:
    """Give sensitive columns with bins in place of the numbers that have edges."""
    named = {name: in_bins(numbers_for_bins(values, name), edges[name]) for name in edges}
    return values.assign(**named)


def as_names(column: pd.Series) -> pd.Series:
    """Write numbers as names, None where one is missing; 1.0 is written as 1."""
    if not pd.api.types.is_numeric_dtype(column):
        return column
    names = [None if v != v else str(int(v)) if v % 1 == 0 else str(v) for v in column.tolist()]
    return pd.Series(names, index=column.index, dtype=object)


def known_groups(
    values: pd.DataFrame, missing_groups: str, *, numbers: bool = False, n: Any = 1
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Give the sensitive columns of the rows that are kept, and which rows those are.

    ``missing_groups`` says what becomes of rows without a value: ``"error"``, ``"drop"`` or
    ``"group"``; with the last, numbers become names, unless ``numbers`` says that bins are still to
    be made of them. ``n`` is how many rows each stands for.
    """
    if missing_groups not in ("error", "drop", "group"):
        raise InputError(
            "unknown_missing_groups", missing_groups=Parameter("missing_groups", missing_groups)
        )
    if missing_groups == "group" and not numbers:
        values = values.apply(as_names)  # with a name among them, numbers are names as well
    missing = values.isna()
    known = ~missing.any(axis=1).to_numpy()
    taken = values.columns[(values == MISSING).any()]
    if missing_groups == "group" and len(taken):
        raise InputError("taken_group_name", column=taken[0], value=MISSING)
    if known.all():
        return values, known
    if missing_groups == "error":
        column = missing.columns[missing.any()][0]
        n_missing = int((missing[column] * n).sum())
        about = {"n": n_missing, "s": "s" * (n_missing > 1)}
        drop = Parameter("missing_groups", "drop")
        raise InputError("rows_without_group", column=column, drop=drop, **about)
    if missing_groups == "drop":
        return values[known].reset_index(drop=True), known
    return values.astype(object).where(~missing, MISSING), np.ones(len(values), dtype=bool)


def bins_by_column(bins: Any, sensitive: Sequence[str]) -> dict[str, Any]:
    """Say which sensitive column has which bins; bins without a name belong to the only one."""
    if bins is None:
        return {}
    if not isinstance(bins, Mapping):
        if len(sensitive) > 1:
            raise InputError(
                "bins_of_which_column",
                n=len(sensitive),
                example=Parameter("bins", {sensitive[0]: [30, 45, 60]}),
            )
        return {sensitive[0]: bins}
    for name in bins:
        if name not in sensitive:
            raise InputError("bins_of_other_column", column=name, columns=listed(list(sensitive)))
    return dict(bins)
