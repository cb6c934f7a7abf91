"""A table of Parquet files in chunks for Dask: the cluster, the chunks, a sample of their rows."""

import logging
import signal
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask.delayed import delayed
from numpy.typing import NDArray

from evenhand.core.errors import InputError
from evenhand.core.rows import Share
from evenhand.engines.dask import compute
from evenhand.engines.parquet import find_files
from evenhand.tables.file_errors import TableFileError, check_header, no_rows

# Rows on which it is found out what the columns hold.
SAMPLE = 200_000
# Row groups of a file are taken together up to so many rows.
CHUNK_ROWS = 1 << 17
# Seconds that a scheduler has to answer.
PATIENCE = 10


def _hear_no_interrupt() -> None:
    if hasattr(signal, "pthread_sigmask"):  # not on Windows
        resource_tracker.ensure_running()  # it would let the thread hear again
        signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})


def _start_here(**settings: Any) -> Any:
    """Start a scheduler whose workers hear no interrupt: the command does, and ends them."""
    from distributed import Client

    # Processes inherit what the thread that starts them does not hear.
    with ThreadPoolExecutor(1, initializer=_hear_no_interrupt) as thread:
        client = thread.submit(Client, **settings)
        try:
            return client.result()
        except KeyboardInterrupt:
            client.result().close()
            raise


@contextmanager
def dask_client(address: str | None, most: int | None = None) -> Iterator[Any]:
    """Have a Dask scheduler: the one at an address, or one on this machine until the end.

    The latter has a worker process for each core, or ``most`` of them.
    """
    from dask.system import CPU_COUNT
    from distributed import Client

    # After an interrupt asyncio tells of each task that was under way.
    logging.getLogger("asyncio").setLevel(logging.CRITICAL)
    if address is None:
        client = _start_here(
            n_workers=min(CPU_COUNT, most or CPU_COUNT),
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,  # what goes wrong in a worker is said here, once
            set_as_default=False,
        )
    else:
        try:
            # As the default it would stay so, in part, if it cannot be reached.
            client = Client(address, timeout=PATIENCE, set_as_default=False)
        except (OSError, ValueError) as error:
            raise InputError("no_scheduler", address=address) from error
    with client, client.as_current():
        yield client


class Chunk(NamedTuple):
    """Some row groups of a Parquet file, with the number of their first row in the whole table."""

    path: str
    groups: list[int]
    start: int
    n_rows: int


def find_chunks(path: str) -> list[Chunk]:
    """Find the chunks of a Parquet file, a folder of them, or a pattern such as ``"*.parquet"``."""
    try:
        files = find_files(path)
    except FileNotFoundError as error:
        raise TableFileError("no_files", why=error) from None
    chunks: list[Chunk] = []
    start = 0
    for file in files:
        groups: list[int] = []
        n = 0
        sizes = _row_groups(file)
        for i, size in enumerate(sizes):
            groups, n = [*groups, i], n + size
            if n and (i == len(sizes) - 1 or n + sizes[i + 1] > CHUNK_ROWS):
                chunks.append(Chunk(str(file.resolve()), groups, start, n))
                start, groups, n = start + n, [], 0
    if not chunks:
        raise no_rows(path, "columns")
    return chunks


def _row_groups(file: Path) -> list[int]:
    """Rows of each row group of a file."""
    try:
        about = pq.read_metadata(file)
        check_header(about.schema.to_arrow_schema().names, str(file))
    except pa.lib.ArrowException:
        raise TableFileError("not_parquet", file=str(file)) from None
    return [about.row_group(i).num_rows for i in range(about.num_row_groups)]


def read_chunk(chunk: Chunk, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a chunk, or some columns of it."""
    file = pq.ParquetFile(chunk.path)
    missing = [name for name in columns or () if name not in file.schema_arrow.names]
    if missing:
        raise TableFileError("file_without_column", file=chunk.path, column=missing[0])
    return file.read_row_groups(chunk.groups, columns=columns)


def _draw(chunk: Chunk, n: int, seed: int, share: Share) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Draw rows of a chunk, and say which of them belong to a share."""
    random = np.random.default_rng([seed, chunk.start])
    rows = np.sort(random.choice(chunk.n_rows, n, replace=False))
    return read_chunk(chunk).take(rows), share.of(chunk.start, chunk.n_rows)[rows]


def draw_sample(
    chunks: Sequence[Chunk], seed: int, share: Share
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Draw the same share of every chunk, all rows of a small table; say which are held back."""
    ends = np.cumsum([0, *(chunk.n_rows for chunk in chunks)])
    quotas = np.diff(ends * min(SAMPLE, int(ends[-1])) // ends[-1]).tolist()
    asked = zip(chunks, quotas, strict=True)
    drawn = compute(*(delayed(_draw)(chunk, n, seed, share) for chunk, n in asked if n))
    try:
        table = pa.concat_tables([one[0] for one in drawn], promote_options="permissive")
    except pa.lib.ArrowException as error:
        raise TableFileError("files_of_different_types", why=str(error).splitlines()[0]) from None
    return table.to_pandas(), np.concatenate([one[1] for one in drawn])
