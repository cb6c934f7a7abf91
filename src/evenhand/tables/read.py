"""Tables in files: CSV of any delimiter, encoding and compression, Parquet, standard input.

:func:`read_table` gives a whole table, :func:`read_chunks` one part after the other, for files that
are larger than memory, and :func:`write_chunks` writes them so. What is wrong with a file is said
in one sentence that names it.
"""

from __future__ import annotations

import bz2
import codecs
import csv
import gzip
import io
import lzma
import re
import sys
import zipfile
from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from zlib import error as zlib_error

import numpy as np
import pandas as pd

from evenhand._extras import import_extra

__all__ = ["TableFileError", "read_chunks", "read_table"]


DELIMITERS = ",;\t|"

# How much of a file is looked at to learn its delimiter and encoding.
PROBE_BYTES = 1 << 20

# The mark of UTF-32 begins as that of UTF-16 does, so it comes first.
BYTE_ORDER_MARKS = {
    b"\xef\xbb\xbf": "utf-8-sig",
    b"\xff\xfe\x00\x00": "utf-32",
    b"\x00\x00\xfe\xff": "utf-32",
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
        A CSV or Parquet file, CSV also compressed (gzip, bzip2, xz, a zip of one file, or with
        pyarrow zstd); ``"-"`` is standard input.
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
        elif head[:4] == b"\x28\xb5\x2f\xfd":
            arrow = import_extra("pyarrow", "parquet")
            with arrow.CompressedInputStream(file, "zstd") as plain:
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
        check_header(repeated.tolist(), name)
        batches = [held.read()] if rows is None else held.iter_batches(batch_size=rows)
        n = 0
        for part in (batch.to_pandas() for batch in batches):
            n += len(part)
            if len(part):
                yield part
    except arrow.lib.ArrowException as error:
        raise TableFileError(f"{name} is no readable Parquet file: {first_line(error)}") from None
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
    wide = encoding is not None and re.match(r"utf[-_]?(16|32)", encoding.lower())
    if b"\x00" in probe and not wide:
        raise TableFileError(f"{name} is no table of text: it has zero bytes in it.")
    encoding = encoding or "utf-8"
    text = _decoded(probe, encoding, name).removeprefix("\ufeff")
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", text)
    lines = [line for line in lines if line]
    if len(probe) >= PROBE_BYTES and len(lines) > 1:
        lines = lines[:-1]  # the last may be a part of one
    if delimiter is None:
        delimiter = _find_delimiter(lines)
    header = _header(lines, delimiter, name)
    if codecs.lookup(encoding).name not in ("utf-8", "utf-8-sig"):
        file = io.BufferedReader(_AsUtf8(file, encoding))
    elif probe.startswith(codecs.BOM_UTF8):
        file.read(len(codecs.BOM_UTF8))
    file = io.BufferedReader(_Checked(file, _FieldCount(len(header), delimiter, name)))
    options: dict[str, Any] = {
        "sep": delimiter,
        "encoding": "utf-8",
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
        raise TableFileError(f"{name} is no regular table: {first_line(error)}") from None
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


class _AsUtf8(io.RawIOBase):
    """A stream of text in another encoding, as UTF-8."""

    def __init__(self, file: Any, encoding: str) -> None:
        self._text, self._left = io.TextIOWrapper(file, encoding=encoding, newline=""), b""

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read what is left of the last characters, or more of them."""
        data = self._left or self._text.read(1 << 16).encode()
        n = min(len(buffer), len(data))
        buffer[:n], self._left = data[:n], data[n:]
        return n


class _Checked(io.RawIOBase):
    """A stream whose rows are counted as they are read."""

    def __init__(self, file: Any, count: _FieldCount) -> None:
        self._file, self._count = file, count

    def readable(self) -> bool:
        """Say that it can be read."""
        return True

    def readinto(self, buffer: Any) -> int:
        """Read, and refuse a row with too few or too many fields."""
        data = self._file.read(len(buffer))
        self._count.feed(data, last=not data)
        buffer[: len(data)] = data
        return len(data)


class _FieldCount:
    """Refuse rows that have not as many fields as the header: pandas fills up short ones.

    Most blocks of bytes have no quotes and are counted whole. In others a quote opens a field only
    at its start; where that is not plain to see, :mod:`csv` counts.
    """

    def __init__(self, n_fields: int, delimiter: str, name: str) -> None:
        self._n_fields, self._delimiter, self._name = n_fields, delimiter, name
        self._byte = delimiter.encode()
        self._plain = len(self._byte) == 1 and delimiter != " "
        # Lines before the block; the start of a row that has not ended; how long it must have
        # become to be looked at again.
        self._line, self._rest, self._wait = 0, b"", 0

    def feed(self, data: bytes, *, last: bool = False) -> None:
        """Count the fields of the rows that end in these bytes."""
        block = self._rest + data
        if len(block) < self._wait and not last:
            self._rest = block
            return
        held = b"\r" if block.endswith(b"\r") and not last else b""  # half a line end, maybe
        block = block[: len(block) - len(held)]
        if b"\r" in block:
            block = block.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
        if last and block and not block.endswith(b"\n"):
            block += b"\n"
        end = self._count(block, last)
        self._line += block.count(b"\n", 0, end)
        self._rest = block[end:] + held
        self._wait = 0 if end else 2 * len(self._rest)

    def _count(self, block: bytes, last: bool) -> int:
        """Check the rows of a block that begins with a row; say where the last of them ends."""
        if not self._plain:
            return self._slowly(block, last)
        quoted = b'"' in block
        end = block.rfind(b"\n") + 1
        if not quoted and block.count(self._byte, 0, end) == (self._n_fields - 1) * block.count(
            b"\n", 0, end
        ):
            return end
        values = np.frombuffer(block, dtype=np.uint8)
        outside: Any = True
        if quoted:
            quote = values == ord('"')
            inside = np.cumsum(quote, dtype=np.uint8) & 1
            opening = np.flatnonzero(quote & (inside == 1))
            before = np.where(opening > 0, values[opening - 1], ord("\n"))
            if not np.isin(before, [ord("\n"), ord('"'), self._byte[0]]).all():
                return self._slowly(block, last)
            outside = inside == 0
        ends = np.flatnonzero((values == ord("\n")) & outside)
        if not len(ends):
            return self._slowly(block, last) if last else 0
        delimiters = np.flatnonzero((values == self._byte[0]) & outside)
        found = np.diff(np.searchsorted(delimiters, ends), prepend=0)
        starts = np.concatenate([[0], ends[:-1] + 1])
        for i in np.flatnonzero(found != self._n_fields - 1):
            if block[starts[i] : ends[i]].strip():
                line = self._line + block.count(b"\n", 0, int(ends[i]) + 1)
                self._refuse(int(found[i]) + 1, line)
        return int(ends[-1]) + 1

    def _slowly(self, block: bytes, last: bool) -> int:
        """Check rows with Python's own reader, which may end in the middle of the last one."""
        lines = re.split(r"(?<=\n)", block.decode("utf-8", errors="surrogateescape"))
        lines = lines[:-1]  # empty, or a line that has not ended
        reader = csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True)
        ended, row, at = 0, None, 0
        if last:
            self._check_quotes(lines)
        for following in reader:
            self._check_row(row, at)
            ended, row, at = at, following, reader.line_num
        if last:
            self._check_row(row, at)
            ended = at
        whole = "".join(lines[:ended])
        return len(whole.encode("utf-8", errors="surrogateescape"))

    def _check_quotes(self, lines: list[str]) -> None:
        """Refuse a quote that is open at the end, of which all that follows is one field."""
        reader = csv.reader(lines, delimiter=self._delimiter, skipinitialspace=True)
        start = 0
        for _ in reader:
            if reader.line_num < len(lines):
                start = reader.line_num
        try:
            list(
                csv.reader(
                    lines[start:], delimiter=self._delimiter, skipinitialspace=True, strict=True
                )
            )
        except csv.Error as error:
            if "unexpected end of data" in str(error):
                raise TableFileError(
                    f"{self._name} has a quote that is never closed, in the row that begins in "
                    f"line {self._line + start + 1}; correct that line."
                ) from None

    def _check_row(self, row: list[str] | None, at: int) -> None:
        if row and len(row) != self._n_fields and row != [""]:
            self._refuse(len(row), self._line + at)

    def _refuse(self, n_fields: int, line: int) -> None:
        raise TableFileError(
            f"{self._name} has {n_fields} field{'s' * (n_fields > 1)} in line {line} and "
            f"{self._n_fields} in its header; correct that line."
        )


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
    byte = error.object[error.start]
    # Which latin-1 has no characters for, but what Windows calls by its name has.
    likely = "cp1252" if 0x80 <= byte < 0xA0 else "latin-1"
    return TableFileError(
        f"{name} is not {encoding} text (byte 0x{byte:02x}); say its encoding with --encoding, for "
        f"example {likely} or utf-16."
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


def _header(lines: list[str], delimiter: str, name: str) -> list[str]:
    """Check the header, and give it."""
    csv.field_size_limit(1 << 30)
    try:
        header = next(csv.reader(lines, delimiter=delimiter, skipinitialspace=True))
        check_header(header, name)
    except csv.Error as error:
        raise TableFileError(f"{name} is no regular table: {first_line(error)}") from None
    return [column.strip() for column in header]


def check_header(header: list[str], name: str) -> None:
    seen = set()
    for place, raw in enumerate(header, 1):
        column = raw.strip()
        if not column:
            raise TableFileError(f"{name} has no name for column {place}; give it one.")
        if column in seen:
            raise TableFileError(f"{name} has two columns called {column!r}; rename one of them.")
        seen.add(column)


def first_line(error: Exception) -> str:
    """Give the first sentence of another library's error."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.removeprefix("Error tokenizing data. ").rstrip(".") + "."
