"""Parquet files as parts of a table, a row group each."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from evenhand.engines._parts import Part

__all__ = ["find_files", "parquet_parts"]


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
) -> tuple[list[Callable[[], Part]], list[str]]:
    """Functions that read the parts, and the names of the inputs.

    ``columns`` are the inputs; by default all numbers but label, sensitive columns and weight.
    """
    schema = pq.read_schema(paths[0])
    others = {label, *sensitive, *([weight] if weight else [])}
    for name in [*others, *(columns or [])]:
        if name not in schema.names:
            raise ValueError(
                f"{paths[0].name} has no column {name!r}; it has {', '.join(schema.names[:20])}."
            )
    inputs = list(columns) if columns else [n for n in schema.names if n not in others]
    for name in inputs:
        kind = schema.field(name).type
        if not (
            pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_boolean(kind)
        ):
            raise ValueError(
                f"column {name!r} holds {kind}, not numbers; name the inputs with columns=..., or "
                "encode it first: evenhand train FILE and fair_pipeline do."
            )
    if not inputs:
        raise ValueError("there is no column left to learn from.")
    parts: list[Callable[[], Part]] = []
    for path in paths:
        file = pq.ParquetFile(path)
        if not set(inputs) | others <= set(file.schema_arrow.names):
            missing = sorted((set(inputs) | others) - set(file.schema_arrow.names))
            raise ValueError(
                f"{path.name} has no column {missing[0]!r}, which {paths[0].name} has."
            )
        parts += [
            partial(_read, path, i, inputs, label, list(sensitive), weight)
            for i in range(file.num_row_groups)
        ]
    return parts, inputs


def _read(
    path: Path, group: int, inputs: list[str], label: str, sensitive: list[str], weight: str | None
) -> Part:
    names = list(dict.fromkeys([*inputs, label, *sensitive, *([weight] if weight else [])]))
    table = pq.ParquetFile(path).read_row_group(group, columns=names)
    single = all(pa.types.is_float32(table.schema.field(n).type) for n in inputs)
    X = np.empty((table.num_rows, len(inputs)), dtype=np.float32 if single else np.float64)
    for j, name in enumerate(inputs):
        X[:, j] = table[name].to_numpy()
    groups = table.select(sensitive).to_pandas()
    return Part(
        X,
        table[label].to_pandas(),
        groups if len(sensitive) > 1 else groups[sensitive[0]],
        None if weight is None else table[weight].to_numpy(),
    )
