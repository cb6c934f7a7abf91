"""Parquet files as parts of a table, a row group each."""

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
from evenhand.engines.chunks import Part, PartSource

# What an input may hold.
NUMBERS = (pa.types.is_integer, pa.types.is_floating, pa.types.is_boolean)
# Rows that are put together at a time.
FEW_ROWS = 2048


def find_files(path: Any) -> list[Path]:
    """Parquet files that a path, a folder, a pattern, or several of them name, sorted."""
    given = [path] if isinstance(path, str | Path) else list(path)
    found: list[Path] = []
    for one in given:
        here = Path(one)
        if here.is_dir():
            files = sorted(here.glob("*.parquet"))
        elif here.exists():
            files = [here]
        else:
            files = [Path(name) for name in sorted(glob(str(one)))]
        if not files and here.is_dir() and (keyed := sorted(here.glob("*=*"))):
            raise FileNotFoundError(
                f"no Parquet file is in {str(one)!r} itself, but in folders such as "
                f"{keyed[0].name!r}, whose values are in no file; write the table without "
                "partitions, or fit to dask.dataframe.read_parquet of the folder."
            )
        if not files:
            raise FileNotFoundError(f"no Parquet file is at {str(one)!r}.")
        found += files
    return found


def parquet_parts(
    paths: Sequence[Path],
    label: str,
    sensitive: Sequence[str],
    columns: Sequence[str] | None = None,
    weight: str | None = None,
) -> tuple[list[PartSource], list[str]]:
    """Find the parts, and the names of the inputs.

    ``columns`` are the inputs; by default all numbers but label, sensitive columns and weight.
    """
    files = []
    for path in paths:
        try:
            with pq.ParquetFile(path) as file:
                files.append((path, file.metadata, file.schema_arrow))
        except pa.ArrowInvalid:
            raise ValueError(f"{path.name} is no Parquet file, or a damaged one.") from None
    # Files without rows need not know what their columns would hold.
    held = [file for file in files if file[1].num_rows] or files[:1]
    first, _, schema = held[0]
    others = {label, *sensitive, *([weight] if weight else [])}
    for name in [*others, *(columns or [])]:
        if name not in schema.names:
            raise ValueError(
                f"{first.name} has no column {name!r}; it has {', '.join(schema.names[:20])}."
            )
    if isinstance(columns, str):
        raise ValueError(f"columns={columns!r}; give a list of names.")
    if not sensitive:
        raise ValueError("sensitive_features is empty; name the column of the group.")
    if label in sensitive:
        raise ValueError(f"column {label!r} is the label and sensitive; it can be one of them.")
    if columns is None:
        # What pandas writes of an index is no column of the table.
        index = [n for n in schema.names if n.startswith("__index_level_")]
        inputs = [n for n in schema.names if n not in others and n not in index]
    else:
        inputs = list(columns)
        for name in inputs:
            if name in others:
                raise ValueError(
                    f"column {name!r} is the label, sensitive or the weight, and so no input."
                )
            if inputs.count(name) > 1:
                raise ValueError(f"columns names {name!r} twice.")
    if not inputs:
        raise ValueError("there is no column left to learn from.")
    parts: list[PartSource] = []
    for path, metadata, found in held:
        missing = sorted((set(inputs) | others) - set(found.names))
        if missing:
            raise ValueError(f"{path.name} has no column {missing[0]!r}, which {first.name} has.")
        _check_columns(path, found, inputs, others, weight)
        for name in (label, *sensitive):
            kinds = [_kind(each.field(name).type) for each in (schema, found)]
            if kinds[0] != kinds[1]:
                raise ValueError(
                    f"column {name!r} holds {kinds[0]} in {first.name} and {kinds[1]} in "
                    f"{path.name}; write them alike."
                )
        parts += [
            RowGroup(path, i, metadata, inputs, label, tuple(sensitive), weight)
            for i in range(metadata.num_row_groups)
        ]
    if not parts:
        raise ValueError(f"{first.name} has no rows.")
    return parts, inputs


def _check_columns(
    path: Path, schema: Any, inputs: Sequence[str], others: Collection[str], weight: str | None
) -> None:
    """Refuse names that two columns of a file have, and inputs and weights that are no numbers."""
    count = Counter(schema.names)
    for name in (*inputs, *others):
        if count[name] > 1:
            raise ValueError(f"{path.name} has two columns called {name!r}; rename one of them.")
    for name in (*inputs, *([weight] if weight else [])):
        kind = schema.field(name).type
        if _is_number(kind) or (name == weight and pa.types.is_decimal(kind)):
            continue
        advice = (
            "sample_weight must be numbers."
            if name == weight
            else "name the inputs with columns=..., or encode it first: evenhand train FILE and "
            "fair_pipeline do."
        )
        raise ValueError(f"column {name!r} of {path.name} holds {kind}, not numbers; {advice}")


def _is_number(kind: Any) -> bool:
    return any(is_(kind) for is_ in NUMBERS)


def _kind(kind: Any) -> str:
    """Say what a column holds, whatever the width and the coding of its values."""
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    if pa.types.is_boolean(kind):
        return "booleans"
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return "text"
    return "numbers" if _is_number(kind) else str(kind)


@dataclass(frozen=True)
class RowGroup:
    """A row group of a Parquet file."""

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
        """Read the inputs alone."""
        return _matrix(self._table(self.names), self.names)

    def read(self) -> Part:
        """Read all of it."""
        weight = [self.weight] if self.weight else []
        table = self._table(
            list(dict.fromkeys([*self.names, self.label, *self.sensitive, *weight]))
        )
        groups = table.select(list(self.sensitive)).to_pandas()
        return Part(
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
