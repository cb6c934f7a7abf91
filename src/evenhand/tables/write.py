"""Write tables: CSV or Parquet, compressed, by the name of the file."""

import bz2
import gzip
import lzma
import zipfile
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pandas as pd

from evenhand._extras import import_extra
from evenhand.tables.file_errors import TableFileError, first_line


def write_chunks(frames: Iterable[pd.DataFrame], file: Any, name: str) -> int:
    """Write a table that comes in chunks, and give its number of rows.

    A file whose name ends in ``.parquet`` is Parquet, any other CSV, compressed if it ends in
    ``.gz``, ``.bz2``, ``.xz``, ``.zip`` or ``.zst``. Values are written as they are.
    """
    suffix = Path(name).suffix.lower()
    if suffix == ".parquet":
        return _write_parquet(frames, file, name)
    n = 0
    with _compressed(file, suffix, name) as plain:
        for frame in frames:
            plain.write(frame.to_csv(index=False, header=not n, lineterminator="\n").encode())
            n += len(frame)
    return n


@contextmanager
def _compressed(file: Any, suffix: str, name: str) -> Iterator[Any]:
    """Give what compresses as a file's name says."""
    with ExitStack() as opened:
        if suffix == ".gz":
            # Without a time in it, so that the same table is the same file.
            file = opened.enter_context(gzip.GzipFile("", "wb", fileobj=file, mtime=0))
        elif suffix == ".bz2":
            file = opened.enter_context(bz2.open(file, "wb"))
        elif suffix == ".xz":
            file = opened.enter_context(lzma.open(file, "wb"))
        elif suffix == ".zst":
            arrow = import_extra("pyarrow", "parquet")
            file = opened.enter_context(arrow.CompressedOutputStream(file, "zstd"))
        elif suffix == ".zip":
            archive = opened.enter_context(zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED))
            inner = zipfile.ZipInfo(Path(name).stem)
            inner.compress_type = zipfile.ZIP_DEFLATED
            file = opened.enter_context(archive.open(inner, "w", force_zip64=True))
        yield file


def _write_parquet(frames: Iterable[pd.DataFrame], file: Any, name: str) -> int:
    parquet = import_extra("pyarrow.parquet", "parquet")
    arrow = import_extra("pyarrow", "parquet")
    n, writer, schema = 0, None, None
    with ExitStack() as opened:
        for frame in frames:
            try:
                part = arrow.Table.from_pandas(frame, schema=schema, preserve_index=False)
                if writer is None:
                    # A column without a value so far may have some later: as text.
                    schema = arrow.schema(
                        field.with_type(arrow.string())
                        if arrow.types.is_null(field.type)
                        else field
                        for field in part.schema.remove_metadata()
                    )
                    part = part.cast(schema)
                    writer = opened.enter_context(parquet.ParquetWriter(file, schema))
                writer.write_table(part.cast(schema))
            except arrow.lib.ArrowException as error:
                raise TableFileError(
                    "unwritable_parquet", file=name, why=first_line(error)
                ) from None
            n += len(frame)
    return n
