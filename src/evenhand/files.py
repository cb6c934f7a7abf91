"""Tables in files: CSV of any delimiter, encoding and compression, Parquet, standard input.

:func:`read_table` gives a whole table, :func:`read_chunks` one part after the other, for files that
are larger than memory. What is wrong with a file is said in one sentence that names it.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import io
import lzma
import re
import sys
import zipfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from itertools import islice
from pathlib import Path
from typing import Any
from zlib import error as zlib_error

import pandas as pd

from evenhand._versions import import_extra

__all__ = ["TableFileError", "read_chunks", "read_table"]

DELIMITERS = ",;\t|"
# How much of a file is looked at to learn its delimiter and encoding, and how many of its rows are
# checked for their number of fields.
PROBE_BYTES, PROBE_ROWS = 1 << 20, 1000
BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe": "utf-16",
    b"\xfe\xff": "utf-16",
}
# A row of a stream is part of a chunk of so many.
CHUNK_ROWS = 100_000


class TableFileError(ValueError):
    """A file is no table that can be read."""


def read_table(
    path: str | Path, *, delimiter: str | None = None, encoding: str | None = None
) -> pd.DataFrame:
    """Read a table.

    Parameters
    ----------
    path : str or Path
        A CSV or Parquet file, CSV also compressed (gzip, bzip2, xz, or a zip of one file); ``"-"``
        is standard input.
    delimiter : str, optional
        What separates fields; found out by default.
    encoding : str, optional
        The text's encoding; UTF-8, or what a byte order mark says, by default.

    Returns
    -------
    DataFrame
        The table.
    """
    chunks = list(read_chunks(path, delimiter=delimiter, encoding=encoding, rows=None))
    return chunks[0]


def read_chunks(
    path: str | Path,
    *,
    delimiter: str | None = None,
    encoding: str | None = None,
    rows: int | None = CHUNK_ROWS,
) -> Generator[pd.DataFrame, None, None]:
    """Read a table in chunks of so many rows; all of it at once if ``rows`` is None.

    Parameters are those of :func:`read_table`.
    """
    name = "standard input" if str(path) == "-" else str(path)
    with _opened(path, name) as file:
        head, file = _ahead(file, 4)
        if head == b"PAR1":
            yield from _parquet(path, file, name, rows)
            return
        with _decompressed(file, head, name) as plain:
            yield from _csv(plain, name, delimiter, encoding, rows)


@contextmanager
def _opened(path: str | Path, name: str) -> Iterator[Any]:
    if str(path) == "-":
        yield sys.stdin.buffer
        return
    if Path(path).is_dir():
        raise TableFileError(f"{name} is a folder; give a file.")
    with Path(path).open("rb") as file:
        yield file


@contextmanager
def _decompressed(file: Any, head: bytes, name: str) -> Iterator[Any]:
    """Give the text's bytes, whatever they are wrapped in."""
    try:
        if head[:2] == b"\x1f\x8b":
            with gzip.open(file) as plain:
                yield io.BufferedReader(plain)
        elif head[:3] == b"BZh":
            with bz2.open(file) as plain:
                yield io.BufferedReader(plain)
        elif head[:4] == b"\xfd7zX":
            with lzma.open(file) as plain:
                yield io.BufferedReader(plain)
        elif head[:4] == b"PK\x03\x04":
            with zipfile.ZipFile(io.BytesIO(file.read())) as archive:
                names = [n for n in archive.namelist() if not n.endswith("/")]
                if len(names) != 1:
                    raise TableFileError(
                        f"{name} is a zip of {len(names)} files; give one table at a time."
                    )
                with archive.open(names[0]) as plain:
                    yield io.BufferedReader(plain)
        else:
            yield file
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib_error):
        raise TableFileError(f"{name} is compressed and damaged, or only a part.") from None


def _parquet(path: str | Path, file: Any, name: str, rows: int | None) -> Iterator[pd.DataFrame]:
    parquet = import_extra("pyarrow.parquet", "parquet")
    arrow = import_extra("pyarrow", "parquet")
    source = io.BytesIO(file.read()) if str(path) == "-" else str(path)
    try:
        held = parquet.ParquetFile(source)
        repeated = pd.Index(held.schema_arrow.names)
        _check_header(repeated.tolist(), name)
        batches = [held.read()] if rows is None else held.iter_batches(batch_size=rows)
        n = 0
        for part in (batch.to_pandas() for batch in batches):
            n += len(part)
            if len(part):
                yield part
    except arrow.lib.ArrowException as error:
        raise TableFileError(f"{name} is no readable Parquet file: {_first(error)}") from None
    if not n:
        raise TableFileError(f"{name} has columns but no rows.")


def _csv(
    file: Any, name: str, delimiter: str | None, encoding: str | None, rows: int | None
) -> Generator[pd.DataFrame, None, None]:
    probe, file = _ahead(file, PROBE_BYTES)
    if not probe.strip():
        raise TableFileError(f"{name} is empty.")
    if encoding is None:
        encoding = next((e for mark, e in BYTE_ORDER_MARKS.items() if probe.startswith(mark)), None)
    wide = encoding is not None and encoding.lower().replace("_", "-").startswith("utf-16")
    if b"\x00" in probe and not wide:
        raise TableFileError(f"{name} is no table of text: it has zero bytes in it.")
    encoding = encoding or "utf-8"
    text = _decoded(probe, encoding, name)
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    lines = [line for line in lines if line]
    if len(probe) >= PROBE_BYTES and len(lines) > 1:
        lines = lines[:-1]  # the last may be a part of one
    if delimiter is None:
        delimiter = _find_delimiter(lines)
    header = _check_rows(lines, delimiter, name)
    options: dict[str, Any] = {
        "sep": delimiter,
        "encoding": encoding,
        # Every value as it is written: what a column holds is the encoder's to say, and must not
        # depend on which rows are read together.
        "dtype": str,
        "keep_default_na": False,
        "chunksize": rows,
        "skipinitialspace": True,
    }
    n = 0
    try:
        with ExitStack() as opened:
            read = pd.read_csv(file, **options)
            parts = [read] if rows is None else opened.enter_context(read)
            for part in parts:
                n += len(part)
                part.columns = pd.Index(header)
                if len(part):
                    yield part
    except UnicodeDecodeError as error:
        raise _wrong_encoding(error, encoding, name) from None
    except (pd.errors.ParserError, csv.Error) as error:
        raise TableFileError(f"{name} is no regular table: {_first(error)}") from None
    if not n:
        raise TableFileError(f"{name} has a header but no rows.")


class _Replayed(io.RawIOBase):
    """A stream of which the start has been read already."""

    def __init__(self, start: bytes, rest: Any) -> None:
        self._start, self._rest = io.BytesIO(start), rest

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read from the start, then from the rest."""
        data = self._start.read(len(buffer)) or self._rest.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)


def _ahead(file: Any, n: int) -> tuple[bytes, Any]:
    """Look at the first n bytes of a stream; give them, and the stream with them in it."""
    start = b""
    while len(start) < n and (more := file.read(n - len(start))):
        start += more
    return start, io.BufferedReader(_Replayed(start, file))


def _decoded(probe: bytes, encoding: str, name: str) -> str:
    try:
        return probe.decode(encoding)
    except LookupError:
        raise TableFileError(f"there is no encoding {encoding!r}; try utf-8 or latin-1.") from None
    except UnicodeDecodeError as error:
        if len(probe) - error.start < 4 and len(probe) >= PROBE_BYTES:
            return probe[: error.start].decode(encoding)  # a character is cut in two
        raise _wrong_encoding(error, encoding, name) from None


def _wrong_encoding(error: UnicodeDecodeError, encoding: str, name: str) -> TableFileError:
    return TableFileError(
        f"{name} is not {encoding} text (byte 0x{error.object[error.start]:02x}); say its encoding "
        "with --encoding, for example latin-1 or utf-16."
    )


def _find_delimiter(lines: list[str]) -> str:
    """Find the delimiter that the first lines have equally often, and most often."""
    some = [line for line in lines[:20] if line.strip()]

    def fields(delimiter: str) -> tuple[bool, int]:
        try:
            counts = [len(row) for row in csv.reader(some, delimiter=delimiter)]
        except csv.Error:
            return False, 0
        return counts[0] > 1 and min(counts) == max(counts), counts[0]

    return max(DELIMITERS, key=fields)


def _check_rows(lines: list[str], delimiter: str, name: str) -> list[str]:
    """Check the header, and that the first rows have as many fields; give the header."""
    csv.field_size_limit(1 << 30)
    try:
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        header = next(reader)
        _check_header(header, name)
        # The last line of what was looked at may be the start of a long quoted field.
        for row in islice(reader, PROBE_ROWS):
            if row and len(row) != len(header) and reader.line_num < len(lines):
                raise TableFileError(
                    f"{name} has {len(row)} fields in line {reader.line_num} and "
                    f"{len(header)} in its header."
                )
    except csv.Error as error:
        raise TableFileError(f"{name} is no regular table: {_first(error)}") from None
    return [column.strip() for column in header]


def _check_header(header: list[str], name: str) -> None:
    seen = set()
    for place, raw in enumerate(header, 1):
        column = raw.strip()
        if not column:
            raise TableFileError(f"{name} has no name for column {place}; give it one.")
        if column in seen:
            raise TableFileError(f"{name} has two columns called {column!r}; rename one of them.")
        seen.add(column)


def _first(error: Exception) -> str:
    """Give the first sentence of another library's error."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.removeprefix("Error tokenizing data. ").rstrip(".") + "."
