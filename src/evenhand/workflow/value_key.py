"""Which group and label the values of a table in chunks mean, called as in memory.

The chunks count the combinations of values; the key is made of all counts in one place, and each
chunk is read by it.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.engines.coding import group_values
from evenhand.tables.columns import Table, as_table, count_words
from evenhand.tables.groups import Columns, check_groups, known_groups
from evenhand.workflow.dask_chunks import Chunk, read_chunk
from evenhand.workflow.labels import check_labelled_groups, joined, label_values, whom_left_out

# Rows of a label of a group that are fewer are all fitted to, or the test might take every one.
RARE = 10


class Meaning(NamedTuple):
    """A group, a label, and whether both together have too few rows to be divided."""

    group: Any
    label: Any
    rare: bool


# What values of the sensitive columns and, behind them, of the label mean; rows of others are left
# out.
Key = dict[tuple[Any, ...], Meaning]


def _combinations(table: Table, columns: Columns) -> tuple[list[tuple[Any, ...]], NDArray[np.intp]]:
    """Distinct values of the sensitive columns and of the label, and the number of each row's."""
    values = columns.group_columns(table).astype(object)
    values.columns = pd.RangeIndex(values.shape[1])
    texts = table[str(columns.label)].as_text(columns.missing).text_values()
    values[values.shape[1]] = pd.Series(texts, dtype=object)
    number = values.groupby(list(values.columns), dropna=False, sort=False).ngroup().to_numpy()
    first = np.unique(number, return_index=True)[1]
    distinct = values.iloc[first].itertuples(index=False, name=None)
    return [tuple(None if pd.isna(v) else v for v in one) for one in distinct], number


def count_values(
    chunk: Chunk, columns: Columns
) -> tuple[Counter[tuple[Any, ...]], dict[str, Counter[str]]]:
    """Count the combinations in a chunk, and of each column the words that stand for no value."""
    names = [*columns.sensitive, str(columns.label)]
    table = as_table(read_chunk(chunk, names).to_pandas())
    distinct, number = _combinations(table, columns)
    words = {name: count_words(table[name], columns.missing) for name in names}
    return Counter(dict(zip(distinct, np.bincount(number).tolist(), strict=True))), words


def _column(values: Sequence[Any]) -> pd.Series:
    """Numbers as pandas has them, all else as it is."""
    series = pd.Series(values)
    return series if series.dtype.kind in "iuf" else pd.Series(values, dtype=object)


def make_key(
    counts: Mapping[tuple[Any, ...], int], columns: Columns
) -> tuple[Key, list[dict[str, Any]], tuple[pd.DataFrame, NDArray[Any]]]:
    """Name the group and the label of values, as in memory; say how many rows are left out.

    Last come the groups of rows without a label, and how many rows each stands for.
    """
    names, label = columns.sensitive, str(columns.label)
    distinct, n = list(counts), np.array(list(counts.values()))
    values = pd.DataFrame({name: _column([d[j] for d in distinct]) for j, name in enumerate(names)})
    values, kept = known_groups(values, columns.missing_groups, n=n)
    check_groups(values, columns.bins)
    dropped = [{"reason": f"without a value in {joined(names)!r}", "n": int(n[~kept].sum())}]
    rows = np.flatnonzero(kept)
    texts = pd.DataFrame({label: [distinct[i][-1] for i in rows]}, dtype=object)
    y, known = label_values(texts, label, missing=columns.missing)
    dropped.append({"reason": f"without a value in {label!r}", "n": int(n[rows[~known]].sum())})
    check_labelled_groups(values, known, columns)
    dropped[-1] |= whom_left_out(values, known, n[rows])
    unlabelled = values[~known].reset_index(drop=True), n[rows[~known]]
    rows = rows[known]
    groups = group_values(values[known])
    sizes = pd.Series(n[rows]).groupby([groups.to_numpy(), y]).transform("sum")
    meanings = zip(groups.tolist(), y.tolist(), (sizes < RARE).tolist(), strict=True)
    key = {distinct[i]: Meaning(*meaning) for i, meaning in zip(rows, meanings, strict=True)}
    return key, [d for d in dropped if d["n"]], unlabelled


class Known(NamedTuple):
    """Of the rows of a chunk: which are kept, and of these label, group, and whether it is rare."""

    kept: NDArray[np.bool_]
    y: NDArray[Any]
    groups: NDArray[Any]
    rare: NDArray[np.bool_]


def look_up(table: Table, columns: Columns, key: Key) -> Known:
    """Read groups and labels of a chunk by the key."""
    distinct, number = _combinations(table, columns)
    meant = [key.get(values) for values in distinct]
    places = np.cumsum([meaning is not None for meaning in meant]) - 1
    kept = np.array([meaning is not None for meaning in meant])[number]
    meanings = [meaning for meaning in meant if meaning is not None]
    groups, y, rare = (
        (np.array(column) for column in zip(*meanings, strict=True))
        if meanings
        else (np.empty(0), np.empty(0), np.empty(0, dtype=bool))
    )
    at = places[number[kept]]
    return Known(kept, y[at], groups[at], rare[at])
