"""Tables of text: their encoding, delimiter and header, and rows as :mod:`csv` finds them."""

import codecs
import csv
import io
import re
from collections.abc import Generator, Iterator
from contextlib import closing
from itertools import chain
from threading import Event, Lock
from typing import Any, NamedTuple

import pyarrow as pa
from pyarrow import csv as arrow_csv

from evenhand.core.errors import Parameter
from evenhand.tables.file_errors import TableFileError, check_header, first_line

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

# Rows of a batch that is read by csv.
CSV_ROWS = 10_000
# Bytes that are parsed at once.
BLOCK_BYTES = 1 << 22
# Read after the last row, as a row of its own unless a quote is open.
END = "\0end"


def look_ahead(file: Any, n: int) -> bytes:
    """Look at the first n bytes of a file."""
    start = file.read(n)
    file.seek(0)
    return start


class _Dialect(NamedTuple):
    """How a table is written; ``size`` is the number of bytes of its header."""

    name: str
    header: list[str]
    size: int
    delimiter: str
    encoding: str


def read_csv(
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
    probe = look_ahead(file, PROBE_BYTES)
    if not probe.strip():
        raise TableFileError("empty_file", file=name)
    marked = next((e for mark, e in BYTE_ORDER_MARKS.items() if probe.startswith(mark)), None)
    encoding = encoding or marked or "utf-8"
    if b"\x00" in probe and not re.match(r"utf[-_]?(16|32)", encoding.lower()):
        raise TableFileError("zero_bytes", file=name)
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
    return _Dialect(name, header, size, delimiter, encoding)


class _OddError(Exception):
    """Text that pyarrow would read in another way than :mod:`csv`, or that it may have misread."""


class _Watched:
    """A file of bytes whose last line ends, without blanks before values, which csv skips."""

    closed = False

    def __init__(self, file: Any, delimiter: str) -> None:
        self._file, self._last = file, b"\n"
        self._odd = (delimiter.encode() + b" ", b"\n ", b"\r ")
        self._lock, self._over = Lock(), Event()

    def read(self, n: int) -> bytes:
        """Read n bytes."""
        with self._lock:
            data: bytes = b"" if self.closed else self._file.read(n)
            if not data and (self.closed or self._last == b"\n"):
                self._over.set()
                return b""
            data = data or b"\n"
        joined = self._last + data
        if any(odd in joined for odd in self._odd):
            self._over.set()
            raise _OddError
        self._last = joined[-1:]
        return data

    def close(self) -> None:
        """Read no more: pyarrow reads ahead in a thread, which may outlive its reader.

        A thread that waits for the interpreter when that ends would abort the program, so it may
        read what is now the end; one that has read ahead enough does not come, nor wait.
        """
        with self._lock:
            self.closed, self._file = True, None
        self._over.wait(0.5)


# pyarrow's threads must not be the last to hold one of these: to let go of it they would need the
# interpreter, which may have ended by then.
_KEPT: list[Any] = []


def _read_quickly(file: Any, dialect: _Dialect) -> Iterator[pa.RecordBatch]:
    header, delimiter = dialect.header, dialect.delimiter
    if dialect.encoding != "utf-8-sig" or not delimiter.isascii() or delimiter == " ":
        raise _OddError
    if len(header) == 1:  # a line of blanks is no row, and pyarrow takes it for one
        raise _OddError
    file.seek(dialect.size)
    batch, watched = None, _Watched(file, delimiter)
    source = pa.PythonFile(watched, mode="r")
    _KEPT.append(source)
    with (
        closing(watched),
        arrow_csv.open_csv(
            source,
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
        raise _OddError  # a quote may be open, and all that follows one field


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
                about = {"n": len(row), "s": "s" * (len(row) > 1), "n_header": len(header)}
                raise TableFileError("ragged_row", file=name, line=reader.line_num, **about)
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
        raise TableFileError("open_quote", file=name, line=line + 1)
    yield _batch(part[n_read:], header)


def _batch(rows: list[list[str]], header: list[str]) -> pa.RecordBatch:
    columns = zip(*rows, strict=True) if rows else [()] * len(header)
    return pa.RecordBatch.from_arrays([pa.array(c, pa.string()) for c in columns], names=header)


def _decoded(probe: bytes, encoding: str, name: str) -> str:
    try:
        return probe.decode(encoding)
    except LookupError:
        raise TableFileError("unknown_encoding", encoding=encoding) from None
    except UnicodeDecodeError as error:
        if len(probe) - error.start < 4 and len(probe) >= PROBE_BYTES:
            return probe[: error.start].decode(encoding)  # a character is cut in two
        raise _wrong_encoding(error, encoding, name) from None


def _wrong_encoding(error: UnicodeDecodeError, encoding: str, name: str) -> TableFileError:
    byte = error.object[error.start]
    # Which latin-1 has no characters for, but what Windows calls by its name has.
    likely = "cp1252" if 0x80 <= byte < 0xA0 else "latin-1"
    about = {"encoding": encoding, "likely": Parameter("encoding", likely)}
    return TableFileError("wrong_encoding", file=name, byte=byte, **about)


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


def _irregular(file: str, error: Exception) -> TableFileError:
    return TableFileError("irregular_file", file=file, why=first_line(error))
