"""Tables in files: CSV of any delimiter, encoding and compression, Parquet, standard input.

:func:`read_table` gives a whole table, :func:`read_chunks` one chunk after the other, for files
that are larger than memory.
"""

import bz2
import gzip
import lzma
import sys
import zipfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from typing import Any
from zlib import error as zlib_error

import pandas as pd
import pyarrow as pa

from evenhand.tables.csv_text import look_ahead, read_csv
from evenhand.tables.file_errors import TableFileError, check_header, first_line, no_rows

__all__ = ["TableFileError", "read_chunks", "read_table"]

# Rows of a chunk.
CHUNK_ROWS = 100_000


def read_table(
    path: str | Path, *, delimiter: str | None = None, encoding: str | None = None
) -> pd.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : str or Path
        A CSV or Parquet file, CSV also compressed (gzip, bzip2, xz, zstd, a zip of one file);
        ``"-"`` is standard input.
    delimiter : str, optional
        What separates fields; found out by default.
    encoding : str, optional
        The text's encoding; UTF-8, or what a byte order mark says, by default.

    Returns
    -------
    DataFrame
        The table.
    """
    return next(read_chunks(path, delimiter=delimiter, encoding=encoding, rows=None))


def read_chunks(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    rows: int | None = CHUNK_ROWS,
) -> Generator[pd.DataFrame, None, None]:
    """Read a table in chunks of ``rows`` rows; all of it at once if that is None.

    Other parameters are as of :func:`read_table`.
    """
    name = "standard input" if str(path) == "-" else str(path)
    with ExitStack() as opened:
        file = _opened(path, name, opened)
        head = look_ahead(file, 4)
        if head == b"PAR1":
            batches, what = _parquet(file, name, rows or CHUNK_ROWS), "columns"
        else:
            plain = opened.enter_context(_decompressed(file, head, name))
            batches, what = read_csv(plain, name, delimiter, encoding), "a header"
        opened.callback(batches.close)
        full = (batch for batch in batches if len(batch))
        if rows is None:
            parts = list(full)
            frames = iter([pa.Table.from_batches(parts).to_pandas()] if parts else [])
        else:
            starts = ((batch, i) for batch in full for i in range(0, len(batch), rows))
            frames = (batch.slice(i, rows).to_pandas() for batch, i in starts)
        first = next(frames, None)
        if first is None:
            raise no_rows(name, what)
        yield first
        yield from frames


def _opened(path: str | Path, name: str, opened: ExitStack) -> Any:
    """Open a file that may be read again from its start, as standard input may not."""
    if str(path) == "-":
        return _copied(sys.stdin.buffer, opened)
    if Path(path).is_dir():
        raise TableFileError("folder", file=name)
    return opened.enter_context(Path(path).open("rb"))


def _copied(stream: Any, opened: ExitStack) -> Any:
    """Copy a stream to a file without a name."""
    file = opened.enter_context(TemporaryFile())  # noqa: SIM115
    copyfileobj(stream, file)
    file.seek(0)
    return file


@contextmanager
def _decompressed(file: Any, head: bytes, name: str) -> Iterator[Any]:
    """Give the text's bytes, whatever they are wrapped in."""
    modules = {b"\x1f\x8b": gzip, b"BZh": bz2, b"\xfd7zX": lzma}
    module: Any = next((m for mark, m in modules.items() if head.startswith(mark)), None)
    try:
        with ExitStack() as opened:
            if module is not None:
                file = opened.enter_context(module.open(file))
            elif head == b"\x28\xb5\x2f\xfd":
                file = _copied(pa.CompressedInputStream(file, "zstd"), opened)
            elif head == b"PK\x03\x04":
                archive = opened.enter_context(zipfile.ZipFile(file))
                names = [n for n in archive.namelist() if not n.endswith("/")]
                if len(names) != 1:
                    raise TableFileError("zip_of_several", file=name, n=len(names))
                file = opened.enter_context(archive.open(names[0]))
            yield file
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib_error):
        raise TableFileError("damaged_file", file=name) from None


def _parquet(file: Any, name: str, rows: int) -> Generator[pa.RecordBatch, None, None]:
    from pyarrow.parquet import ParquetFile

    try:
        table = ParquetFile(file)
        check_header(table.schema_arrow.names, name)
        yield from table.iter_batches(batch_size=rows)
    except pa.lib.ArrowException as error:
        raise TableFileError("unreadable_parquet", file=name, why=first_line(error)) from None
