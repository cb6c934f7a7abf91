"""A table whose columns are read once: the distinct values of each, and which one each row has.

:func:`as_table` takes a frame of any library. A :class:`Column` is made when it is first asked for;
what is made of its distinct values, such as texts and numbers, is kept, and goes with the rows that
are taken of it (:meth:`Table.take`).
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.errors import InputError, Parameter

# Words that stand for a value that is not there, unless a user says which do. What has a value of
# its own in a saved model must stay one, so none may be added here.
NO_VALUE = (
    *("?", "-", "--", "NA", "N/A", "n/a", "#N/A", "<NA>"),
    *("NaN", "nan", "null", "NULL", "None"),
)
# Each column is looked at by itself, which takes a few milliseconds however short it is.
MOST_COLUMNS = 10_000


class CellError(InputError):
    """A value cannot be read; ``data["row"]`` is its row, counted from 1."""

    def moved(self, rows: int) -> CellError:
        """Give the same error for a table that has this many rows before these."""
        return CellError(self.code, **self.data | {"row": self.data["row"] + rows})


@dataclass(frozen=True)
class MissingWords:
    """Which words stand for a value that is not there; an empty one always does.

    Parameters
    ----------
    words : frozenset of str, optional
        The words; by default those of ``NO_VALUE``, which nobody has chosen.
    kept : frozenset of str
        Columns in which they are values.
    """

    words: frozenset[str] | None = None
    kept: frozenset[str] = frozenset()

    @classmethod
    def chosen(
        cls, na: str | Collection[str] | None, keep_na: str | Collection[str]
    ) -> MissingWords:
        """Make them of what a user says."""
        words = [na] if isinstance(na, str) else na
        kept = [keep_na] if isinstance(keep_na, str) else keep_na
        return cls(None if words is None else frozenset(w.strip() for w in words), frozenset(kept))

    def of(self, column: str) -> frozenset[str]:
        """Give the words that stand for no value in a column."""
        if column in self.kept:
            return frozenset()
        return frozenset(NO_VALUE) if self.words is None else self.words


BUILT_IN = MissingWords()


class Column:
    """A column, as its distinct values and the number of each row's.

    Parameters
    ----------
    name : str
        Its name.
    dtype : narwhals dtype
        What its frame says that it holds.
    codes : ndarray of int32
        The place of each row's value in ``levels``; −1 where there is none.
    levels : pandas Index
        The distinct values, in the order in which they first come.
    source : tuple, optional
        The column that this one has some rows of, which rows, and the places of its levels there.
    """

    def __init__(
        self,
        name: str,
        dtype: Any,
        codes: NDArray[np.int32],
        levels: pd.Index,
        source: tuple[Column, NDArray[np.bool_], NDArray[np.int32]] | None = None,
    ) -> None:
        self.name, self.dtype, self.codes = name, dtype, codes
        self.levels, self._source = levels, source
        self._kept: dict[Hashable, NDArray[Any]] = {}
        self._texts: dict[frozenset[str], Column] = {}

    @classmethod
    def read(cls, series: Any) -> Column:
        """Read a column of a narwhals frame."""
        native = series.to_native()
        try:
            try:
                values = native if isinstance(native, pd.Series) else _objects(series)
                codes, levels = pd.factorize(values)
            except NotImplementedError:  # types that pandas has no table of
                codes, levels = pd.factorize(_objects(series))
        except TypeError:
            raise InputError("nested_column", column=series.name) from None
        return cls(series.name, series.dtype, codes.astype(np.int32), levels)

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.bool_]) -> Column:
        """Take some rows, by a mask."""
        codes = self.codes[rows]
        used = pd.unique(codes[codes >= 0])
        place = np.full(len(self.levels) + 1, -1, dtype=np.int32)
        place[used] = np.arange(len(used))
        return Column(self.name, self.dtype, place[codes], self.levels[used], (self, rows, used))

    def on_levels(
        self, key: Hashable, compute: Callable[[list[Any]], NDArray[Any]]
    ) -> NDArray[Any]:
        """Compute something of each level, once for all rows of the table."""
        if self._source is not None:
            source, _, used = self._source
            return source.on_levels(key, compute)[used]
        if key not in self._kept:
            self._kept[key] = compute(self.levels.tolist())
        return self._kept[key]

    def spread(self, values: NDArray[Any], missing: Any = np.nan) -> NDArray[Any]:
        """Give each row what its level has."""
        return np.append(values, np.array([missing], dtype=values.dtype))[self.codes]

    def counts(self) -> NDArray[np.intp]:
        """Count the rows of each level."""
        return np.bincount(self.codes[self.codes >= 0], minlength=len(self.levels))

    def as_text(self, missing: MissingWords = BUILT_IN) -> Column:
        """Give the column as text without blanks around it; 3.0 is written as 3."""
        words = missing.of(self.name)
        if words not in self._texts:
            if self._source is None:
                self._texts[words] = self._written(words | {""})
            else:
                source, rows, _ = self._source
                texts = source.as_text(missing)
                self._texts[words] = self if texts is source else texts.take(rows)
        return self._texts[words]

    def _written(self, no_value: frozenset[str]) -> Column:
        values = self.levels.tolist()
        texts = [_text(value, no_value) for value in values]
        if texts == values:
            return self
        dtype = self.levels.dtype if isinstance(self.levels.dtype, pd.StringDtype) else object
        place, levels = pd.factorize(pd.Series(texts, dtype=dtype))
        return Column(
            self.name, self.dtype, np.append(place, -1).astype(np.int32)[self.codes], levels
        )

    def text_values(self) -> NDArray[np.object_]:
        """Give each row's text, None where there is none."""
        return self.spread(np.array([*self.levels, None], dtype=object)[:-1], None)


def _objects(series: Any) -> pd.Series:
    return pd.Series(series.to_list(), dtype=object)


def _text(value: Any, no_value: frozenset[str]) -> str | None:
    if isinstance(value, str):
        text = value.strip()
        return None if text in no_value else text
    if isinstance(value, float):
        if value.is_integer():
            return str(int(value))
        if value != value:
            return None
    return str(value).strip()


class Table:
    """A narwhals frame, with its columns read once; or some rows of another table, ``source``."""

    def __init__(self, frame: Any, source: tuple[Table, NDArray[np.bool_]] | None = None) -> None:
        self._frame, self._source = frame, source
        self._columns: dict[str, Column] = {}
        self.columns: list[str] = frame.columns if source is None else source[0].columns
        self._n_rows = len(frame) if source is None else int(source[1].sum())

    def __len__(self) -> int:
        return self._n_rows

    def __getitem__(self, name: str) -> Column:
        if name not in self._columns:
            if self._source is None:
                self._columns[name] = Column.read(self._frame[name])
            else:
                table, rows = self._source
                self._columns[name] = table[name].take(rows)
        return self._columns[name]

    @property
    def frame(self) -> Any:
        """The frame, as narwhals sees it."""
        if self._source is None:
            return self._frame
        table, rows = self._source
        return table.frame.filter(rows.tolist())

    def release(self) -> None:
        """Let go of the frame if all columns are read: a large one is most of the memory."""
        if self._source is not None:
            self._source[0].release()
        elif len(self._columns) == len(self.columns):
            self._frame = None
            if "pyarrow" in sys.modules:  # which keeps what it has freed
                sys.modules["pyarrow"].default_memory_pool().release_unused()

    def take(self, rows: NDArray[np.bool_]) -> Table:
        """Take some rows, by a mask."""
        return self if rows.all() else Table(None, (self, rows))


def listed(names: Sequence[Any], most: int = 10) -> str:
    """Name the first few."""
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


def no_column(name: str, columns: Sequence[str]) -> InputError:
    """Say that a table has no such column."""
    return InputError("unknown_column", column=name, columns=listed(columns))


def as_table(X: Any) -> Table:
    """See an array, or a pandas, polars or pyarrow table, as one whose columns are read once."""
    if isinstance(X, Table):
        return X
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])] if X.ndim == 2 else None)
    if isinstance(X, pd.DataFrame) and not all(isinstance(name, str) for name in X.columns):
        X = X.rename(columns=str)
    names = pd.Index(getattr(X, "column_names", getattr(X, "columns", [])))
    if names.has_duplicates:
        raise InputError("column_twice", column=names[names.duplicated()][0])
    try:
        return Table(nw.from_native(X, eager_only=True))
    except TypeError:
        raise InputError("not_a_table", type=type(X).__name__) from None


def check_width(table: Table) -> None:
    """Refuse a table with too many columns to look at each."""
    n = len(table.columns)
    if n > MOST_COLUMNS:
        raise InputError("too_many_columns", n=n, most=MOST_COLUMNS)


def count_words(column: Column, missing: MissingWords) -> Counter[str]:
    """Count the words of a column that stand for no value."""
    no_value = missing.of(column.name)
    words: Counter[str] = Counter()
    for level, n in zip(column.levels, column.counts().tolist(), strict=True):
        if isinstance(level, str) and level.strip() in no_value:
            words[level.strip()] += n
    return words


def check_words(X: Any, columns: Sequence[str], missing: MissingWords) -> None:
    """Refuse words that nobody has said to be values, or to be missing.

    The columns are those whose rows without a value are left out: label and sensitive ones.
    """
    table = as_table(X)
    for name in missing.kept:
        if name not in table.columns:
            kept, columns = Parameter("keep_na", name), listed(table.columns)
            raise InputError("unknown_kept_column", keep_na=kept, column=name, columns=columns)
    if missing.words is None:
        present = [name for name in columns if name in table.columns]
        refuse_words({name: count_words(table[name], missing) for name in present}, table)


def refuse_words(words: Mapping[str, Counter[str]], table: Table) -> None:
    """Refuse the words that were counted, if any; the table may be a sample."""
    column = next((name for name, counts in words.items() if counts), None)
    if column is None:
        return
    seen = {word for counts in words.values() for word in counts}
    for name, dtype in table.frame.schema.items():
        if not dtype.is_nested():
            seen |= set(count_words(table[name], BUILT_IN))
    parts = [f"{word!r} in {n:,} row{'s' * (n > 1)}" for word, n in words[column].most_common()]
    kept, na = Parameter("keep_na", [column]), [word for word in NO_VALUE if word in seen]
    about = {"column": column, "words": ", ".join(parts)}
    raise InputError("unclear_words", keep_na=kept, na=Parameter("na", na), **about)
