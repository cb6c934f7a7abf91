"""Groups of a table's rows: sensitive columns as they come, in bins, rows without a group."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.errors import InputError, Parameter
from evenhand.models.bins import bin_edges, bin_names
from evenhand.tables.columns import BUILT_IN, MissingWords, as_table, listed
from evenhand.tables.numbers import is_number, read_numbers

__all__ = ["group_values"]

# What the group of rows without a value is called.
MISSING = "(missing)"


def group_values(
    X: Any,
    sensitive: Sequence[str],
    *,
    numbers: bool | Collection[str] = False,
    missing: MissingWords = BUILT_IN,
) -> pd.DataFrame:
    """Give a table's sensitive columns, None where a value is missing.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    sensitive : sequence of str
        Names of columns.
    numbers : bool or collection of str, default=False
        Whether numbers written as text are numbers, because bins are to be made of them; or in
        which columns they are.
    missing : MissingWords
        Words that stand for no value.

    Returns
    -------
    DataFrame
        Numbers stay numbers; all else is text.
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


def find_edges(values: pd.DataFrame, bins: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
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
    values: pd.DataFrame, missing_groups: str, *, numbers: bool = False
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Give the sensitive columns of the rows that are kept, and which rows those are.

    ``missing_groups`` says what becomes of rows without a value: ``"error"``, ``"drop"`` or
    ``"group"``; with the last, numbers become names, unless ``numbers`` says that bins are still to
    be made of them.
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
        raise without_group(column, int(missing[column].sum()))
    if missing_groups == "drop":
        return values[known].reset_index(drop=True), known
    return values.astype(object).where(~missing, MISSING), np.ones(len(values), dtype=bool)


def without_group(column: str, n: int) -> InputError:
    """Say that rows have no group."""
    return InputError(
        "rows_without_group",
        column=column,
        n=n,
        s="s" * (n > 1),
        drop=Parameter("missing_groups", "drop"),
    )


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
