"""Parquet files as tables in chunks: each row group is one."""

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Message, Parameter
from evenhand.engines.chunks import Chunk

# What an input may hold.
NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
# Rows that are put together at a time.
FEW_ROWS = 2048


class NoParquetFileError(Message, FileNotFoundError):
    """A path names no Parquet file."""


def find_files(path: Any) -> list[Path]:
    """Parquet files that a path, a folder, a pattern, or several of them name, sorted."""
    given = [path] if isinstance(path, str | Path) else list(path)
    paths: list[Path] = []
    for one in given:
        here = Path(one)
        if here.is_dir():
            files = sorted(here.glob("*.parquet"))
        elif here.exists():
            files = [here]
        else:
            files = [Path(name) for name in sorted(glob(str(one)))]
        if not files and here.is_dir() and (keyed := sorted(here.glob("*=*"))):
            raise NoParquetFileError("partitioned_parquet", path=str(one), folder=keyed[0].name)
        if not files:
            raise NoParquetFileError("no_parquet_file", path=str(one))
        paths += files
    return paths


def parquet_chunks(
    paths: Sequence[Path],
    label: str,
    sensitive: Sequence[str],
    columns: Sequence[str] | None = None,
    weight: str | None = None,
) -> tuple[list["RowGroup"], list[str]]:
    """Find the chunks of a table in files, and the names of its inputs.

    ``columns`` are the inputs; by default all numbers but label, sensitive columns and weight.
    """
    files = []
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                files.append((path, file.metadata, file.schema_arrow))
        except pa.ArrowInvalid:
            raise InputError("damaged_parquet_file", file=path.name) from None
    # Files without rows need not know what their columns would hold.
    filled = [file for file in files if file[1].num_rows] or files[:1]
    first, _, schema = filled[0]
    others = {label, *sensitive, *([weight] if weight else [])}
    for name in [*others, *(columns or [])]:
        if name not in schema.names:
            known = ", ".join(schema.names[:20])
            raise InputError("file_lacks_column", file=first.name, column=name, columns=known)
    if isinstance(columns, str):
        raise InputError("columns_not_listed", columns=Parameter("columns", columns))
    if not sensitive:
        raise InputError("no_sensitive_column", argument=Parameter("sensitive_features"))
    if label in sensitive:
        raise InputError("label_is_sensitive", column=label)
    if columns is None:
        # What pandas writes of an index is no column of the table.
        index = [n for n in schema.names if n.startswith("__index_level_")]
        inputs = [n for n in schema.names if n not in others and n not in index]
    else:
        inputs = list(columns)
        for name in inputs:
            if name in others:
                raise InputError("column_not_an_input", column=name)
            if inputs.count(name) > 1:
                raise InputError("column_named_twice", columns=Parameter("columns"), column=name)
    if not inputs:
        raise InputError("no_inputs_left")
    chunks: list[RowGroup] = []
    for path, metadata, own_schema in filled:
        missing = sorted((set(inputs) | others) - set(own_schema.names))
        if missing:
            raise InputError(
                "files_differ_in_column", file=path.name, column=missing[0], other=first.name
            )
        _check_columns(path, own_schema, inputs, others, weight)
        for name in (label, *sensitive):
            types = [_type_name(s.field(name).type) for s in (schema, own_schema)]
            if types[0] != types[1]:
                about = {"first_type": types[0], "first": first.name, "type": types[1]}
                raise InputError("files_differ_in_type", column=name, file=path.name, **about)
        chunks += [
            RowGroup(path, i, metadata, inputs, label, tuple(sensitive), weight)
            for i in range(metadata.num_row_groups)
        ]
    if not chunks:
        raise InputError("file_without_rows", file=first.name, what="columns")
    return chunks, inputs


def _check_columns(
    path: Path, schema: Any, inputs: Sequence[str], others: Collection[str], weight: str | None
) -> None:
    """Refuse names that two columns of a file have, and inputs and weights that are no numbers."""
    count = Counter(schema.names)
    for name in (*inputs, *others):
        if count[name] > 1:
            raise InputError("two_columns_alike", file=path.name, column=name)
    for name in (*inputs, *([weight] if weight else [])):
        arrow_type = schema.field(name).type
        if _is_number(arrow_type) or (name == weight and pa.types.is_decimal(arrow_type)):
            continue
        about = {"column": name, "file": path.name, "type": str(arrow_type)}
        if name == weight:
            raise InputError("weights_not_numbers", argument=Parameter("sample_weight"), **about)
        raise InputError("inputs_not_numbers", columns=Parameter("columns"), **about)


def _is_number(arrow_type: Any) -> bool:
    return any(is_(arrow_type) for is_ in NUMBERS)


def _type_name(arrow_type: Any) -> str:
    """Say what a column holds, whatever the width and the coding of its values."""
    arrow_type = arrow_type.value_type if pa.types.is_dictionary(arrow_type) else arrow_type
    if pa.types.is_boolean(arrow_type):
        return "booleans"
    if pa.types.is_string(arrow_type) or pa.types.is_large_string(arrow_type):
        return "text"
    return "numbers" if _is_number(arrow_type) else str(arrow_type)


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file, opened anew at every read, so that no file stays open."""

    path: Path
    number: int
    metadata: Any
    names: list[str]
    label: str
    sensitive: tuple[str, ...]
    weight: str | None

    def _table(self, columns: list[str]) -> Any:
        with pq.ParquetFile(self.path, metadata=self.metadata) as file:
            return file.read_row_group(self.number, columns=columns)

    def inputs(self) -> FloatArray:
        """Read the inputs, the only columns that every pass needs."""
        return _matrix(self._table(self.names), self.names)

    def read(self) -> Chunk:
        """Read inputs, labels, groups and weights."""
        weight = [self.weight] if self.weight else []
        table = self._table(
            list(dict.fromkeys([*self.names, self.label, *self.sensitive, *weight]))
        )
        groups = table.select(list(self.sensitive)).to_pandas()
        return Chunk(
            _matrix(table, self.names),
            table[self.label].to_pandas(),
            groups if len(self.sensitive) > 1 else groups[self.sensitive[0]],
            None if self.weight is None else table[self.weight].to_numpy(),
        )


def _matrix(table: Any, names: list[str]) -> FloatArray:
    """Make one array of columns of numbers; missing ones are NaN."""
    single = all(pa.types.is_float32(table.schema.field(name).type) for name in names)
    X = np.empty((table.num_rows, len(names)), dtype=np.float32 if single else np.float64)
    columns = [table[name].to_numpy() for name in names]
    # A few rows at a time: whole columns would fetch all of X from memory for each of them.
    for i in range(0, len(X), FEW_ROWS):
        for j, column in enumerate(columns):
            X[i : i + FEW_ROWS, j] = column[i : i + FEW_ROWS]
    return X
