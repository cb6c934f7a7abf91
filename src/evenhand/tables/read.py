"""Tables in files: CSV of any delimiter, encoding and compression, Parquet, standard input.

:func:`read_table` gives a whole table, :func:`read_chunks` one chunk after the other, for files
that are larger than memory. What is wrong with a file is said
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
from contextlib import ExitStack, closing, contextmanager
from itertools import chain
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryFile
from threading import Lock
from typing import Any, NamedTuple
from zlib import error as zlib_error

import pandas as pd
import pyarrow as pa
from pyarrow import csv as arrow_csv

from evenhand.core.errors import InputError, Parameter

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

# Rows of a chunk; and of one that is read by csv.
CHUNK_ROWS, CSV_ROWS = 100_000, 10_000
# Bytes that are parsed at once.
BLOCK_BYTES = 1 << 22
# Read after the last row, as a row of its own unless a quote is open.
END = "\0end"


class TableFileError(InputError):
    """A file is no table that can be read."""


def no_rows(file: str, what: str) -> TableFileError:
    """Say that a file has columns, or a header, and nothing else."""
    return TableFileError(
        "file_without_rows", "{file} has {what} but no rows.", file=file, what=what
    )


def _irregular(file: str, error: Exception) -> TableFileError:
    return TableFileError(
        "irregular_file",
        "{file} is no regular table: {why}",
        file=file,
        why=first_line(error),
    )


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
    """Read a table in chunks of so many rows; all of it at once if ``rows`` is None.

    Parameters are those of :func:`read_table`.
    """
    name = "standard input" if str(path) == "-" else str(path)
    with ExitStack() as opened:
        file = _opened(path, name, opened)
        head = _ahead(file, 4)
        if head == b"PAR1":
            batches, what = _parquet(file, name, rows or CHUNK_ROWS), "columns"
        else:
            plain = opened.enter_context(_decompressed(file, head, name))
            batches, what = _csv(plain, name, delimiter, encoding), "a header"
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
        raise TableFileError("folder", "{file} is a folder; give a file.", file=name)
    return opened.enter_context(Path(path).open("rb"))


def _copied(stream: Any, opened: ExitStack) -> Any:
    """Copy a stream to a file without a name."""
    file = opened.enter_context(TemporaryFile())  # noqa: SIM115
    copyfileobj(stream, file)
    file.seek(0)
    return file


def _ahead(file: Any, n: int) -> bytes:
    """Look at the first n bytes of a file."""
    start = file.read(n)
    file.seek(0)
    return start


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
                    raise TableFileError(
                        "zip_of_several",
                        "{file} is a zip of {n} files; give one table at a time.",
                        file=name,
                        n=len(names),
                    )
                file = opened.enter_context(archive.open(names[0]))
            yield file
    except (EOFError, gzip.BadGzipFile, lzma.LZMAError, zipfile.BadZipFile, zlib_error):
        raise TableFileError(
            "damaged_file", "{file} is compressed and damaged, or only a part.", file=name
        ) from None


def _parquet(file: Any, name: str, rows: int) -> Generator[pa.RecordBatch, None, None]:
    from pyarrow.parquet import ParquetFile

    try:
        table = ParquetFile(file)
        check_header(table.schema_arrow.names, name)
        yield from table.iter_batches(batch_size=rows)
    except pa.lib.ArrowException as error:
        raise TableFileError(
            "unreadable_parquet",
            "{file} is no readable Parquet file: {why}",
            file=name,
            why=first_line(error),
        ) from None


class _Dialect(NamedTuple):
    """How a table is written: its header, the lines and bytes that has, and all that follows."""

    name: str
    header: list[str]
    lines: int
    size: int
    delimiter: str
    encoding: str


def _csv(
    file: Any, name: str, delimiter: str | None, encoding: str | None
) -> Generator[pa.RecordBatch, None, None]:
    """Read text with pyarrow; what that refuses, or reads in another way, with :mod:`csv`.

    Every value stays as it is written: what a column holds is the encoder's to say, and must not
    depend on which rows are read together.
    """
    dialect = _find_dialect(file, name, delimiter, encoding)
    n = 0
    try:
        for batch in _read_quickly(file, dialect):
            n += len(batch)
            yield batch
    except (_OddError, pa.ArrowInvalid):
        yield from _read_exactly(file, dialect, n)


def _find_dialect(file: Any, name: str, delimiter: str | None, encoding: str | None) -> _Dialect:
    probe = _ahead(file, PROBE_BYTES)
    if not probe.strip():
        raise TableFileError("empty_file", "{file} is empty.", file=name)
    marked = next((e for mark, e in BYTE_ORDER_MARKS.items() if probe.startswith(mark)), None)
    encoding = encoding or marked or "utf-8"
    if b"\x00" in probe and not re.match(r"utf[-_]?(16|32)", encoding.lower()):
        raise TableFileError(
            "zero_bytes", "{file} is no table of text: it has zero bytes in it.", file=name
        )
    text = _decoded(probe, encoding, name).removeprefix("\ufeff")
    utf8 = codecs.lookup(encoding).name in ("utf-8", "utf-8-sig")
    if utf8:
        encoding = "utf-8-sig"
    lines = [line for line in re.split(r"(?<=\n)|(?<=\r)(?!\n)", text) if line]
    if len(probe) >= PROBE_BYTES and len(lines) > 1:
        lines = lines[:-1]  # the last may be a part of one
    delimiter = delimiter or _find_delimiter(lines)
    csv.field_size_limit(1 << 30)
    try:
        reader = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
        header = [column.strip() for column in next(reader)]
    except csv.Error as error:
        raise _irregular(name, error) from None
    check_header(header, name)
    size = len("".join(lines[: reader.line_num]).encode())
    size += len(codecs.BOM_UTF8) if probe.startswith(codecs.BOM_UTF8) else 0
    return _Dialect(name, header, reader.line_num, size, delimiter, encoding)


class _OddError(Exception):
    """Text that pyarrow would read in another way than :mod:`csv`, or that it may have misread."""


class _Watched:
    """A file of bytes whose last line ends, without blanks before values, which csv skips."""

    closed = False

    def __init__(self, file: Any, delimiter: str) -> None:
        self._file, self._last = file, b"\n"
        self._odd = (delimiter.encode() + b" ", b"\n ", b"\r ")
        self._lock = Lock()

    def read(self, n: int) -> bytes:
        """Read so many bytes."""
        with self._lock:
            if self.closed:
                return b""
            data: bytes = self._file.read(n) or (b"" if self._last == b"\n" else b"\n")
        joined = self._last + data
        if any(odd in joined for odd in self._odd):
            raise _OddError
        self._last = joined[-1:]
        return data

    def close(self) -> None:
        """Read no more: pyarrow reads ahead in a thread, which may outlive its reader."""
        with self._lock:
            self.closed = True


def _read_quickly(file: Any, dialect: _Dialect) -> Iterator[pa.RecordBatch]:
    header, delimiter = dialect.header, dialect.delimiter
    if dialect.encoding != "utf-8-sig" or not delimiter.isascii() or delimiter == " ":
        raise _OddError
    if len(header) == 1:  # a line of blanks is no row, and pyarrow takes it for one
        raise _OddError
    file.seek(dialect.size)
    batch, watched = None, _Watched(file, delimiter)
    with (
        closing(watched),
        arrow_csv.open_csv(
            pa.PythonFile(watched, mode="r"),
            read_options=arrow_csv.ReadOptions(column_names=header, block_size=BLOCK_BYTES),
            parse_options=arrow_csv.ParseOptions(delimiter=delimiter, newlines_in_values=True),
            convert_options=arrow_csv.ConvertOptions(
                column_types=dict.fromkeys(header, pa.string())
            ),
        ) as reader,
    ):
        for batch in reader:
            yield batch
    if batch is not None and len(batch) and batch[-1][-1].as_py().endswith(("\n", "\r")):
        raise _OddError  # a quote may be open, of which all that follows is one field


def _read_exactly(file: Any, dialect: _Dialect, n_read: int) -> Iterator[pa.RecordBatch]:
    """Read all rows but the first few with :mod:`csv`; refuse one that is ragged, by its line."""
    name, header = dialect.name, dialect.header
    file.seek(0)
    text = io.TextIOWrapper(file, encoding=dialect.encoding, newline="")
    reader = csv.reader(chain(text, [END]), delimiter=dialect.delimiter, skipinitialspace=True)
    part: list[list[str]] = []
    try:
        next(reader)
        line = reader.line_num
        for row in reader:
            if row and row[-1].endswith(END):
                break
            if len(row) != len(header) and row not in ([], [""]):
                raise TableFileError(
                    "ragged_row",
                    "{file} has {n} field{s} in line {line} and {n_header} in its header; correct "
                    "that line.",
                    file=name,
                    n=len(row),
                    s="s" * (len(row) > 1),
                    line=reader.line_num,
                    n_header=len(header),
                )
            if row and (len(row) > 1 or row[0]):
                part.append(row)
            line = reader.line_num
            if len(part) == CSV_ROWS:
                yield _batch(part[n_read:], header)
                n_read, part = max(n_read - len(part), 0), []
    except UnicodeDecodeError as error:
        raise _wrong_encoding(error, dialect.encoding.removesuffix("-sig"), name) from None
    except csv.Error as error:
        raise _irregular(name, error) from None
    finally:
        text.detach()
    if row != [END]:
        raise TableFileError(
            "open_quote",
            "{file} has a quote that is never closed, in the row that begins in line {line}; "
            "correct that line.",
            file=name,
            line=line + 1,
        )
    yield _batch(part[n_read:], header)


def _batch(rows: list[list[str]], header: list[str]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], names=header)


def _decoded(probe: bytes, encoding: str, name: str) -> str:
    try:
        return probe.decode(encoding)
    except LookupError:
        raise TableFileError(
            "unknown_encoding",
            "there is no encoding {encoding!r}; try utf-8 or latin-1.",
            encoding=encoding,
        ) from None
    except UnicodeDecodeError as error:
        if len(probe) - error.start < 4 and len(probe) >= PROBE_BYTES:
            return probe[: error.start].decode(encoding)  # a character is cut in two
        raise _wrong_encoding(error, encoding, name) from None


def _wrong_encoding(error: UnicodeDecodeError, encoding: str, name: str) -> TableFileError:
    byte = error.object[error.start]
    # Which latin-1 has no characters for, but what Windows calls by its name has.
    likely = "cp1252" if 0x80 <= byte < 0xA0 else "latin-1"
    return TableFileError(
        "wrong_encoding",
        "{file} is not {encoding} text (byte 0x{byte:02x}); say how it is encoded, for example "
        "{likely}, or utf-16.",
        file=name,
        encoding=encoding,
        byte=byte,
        likely=Parameter("encoding", likely),
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


def check_header(header: list[str], name: str) -> None:
    seen = set()
    for place, raw in enumerate(header, 1):
        column = raw.strip()
        if not column:
            raise TableFileError(
                "unnamed_column",
                "{file} has no name for column {place}; give it one.",
                file=name,
                place=place,
            )
        if column in seen:
            raise TableFileError(
                "column_twice_in_file",
                "{file} has two columns called {column!r}; rename one of them.",
                file=name,
                column=column,
            )
        seen.add(column)


def first_line(error: Exception) -> str:
    """Give the first sentence of another library's error."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.removeprefix("Error tokenizing data. ").rstrip(".") + "."
