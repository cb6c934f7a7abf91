"""Training on Parquet files with Dask: the table stays where its workers are.

What a column holds is found out on a sample of the rows, which comes here; besides it only counts
and sums do. The result is that of :func:`evenhand.workflow.train.train`.
"""

from __future__ import annotations

import hashlib
import logging
import signal
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial, reduce
from multiprocessing import resource_tracker
from operator import add
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from evenhand.core.groups import group_codes
from evenhand.core.row_sums import float64_scores
from evenhand.core.rows import Block, Rows, Share
from evenhand.engines.coding import Part
from evenhand.engines.dask import DaskRows, compute, dask_facts, persist
from evenhand.engines.parquet import find_files
from evenhand.frontier.cuts import decide
from evenhand.frontier.held_out import count_rows
from evenhand.models.classifier import FairClassifier
from evenhand.models.inputs import CodedRows
from evenhand.persist.model_file import SavedModel
from evenhand.tables.encoder import TableEncoder
from evenhand.tables.groups import MISSING, find_edges, without_group
from evenhand.tables.parse import (
    CellError,
    MissingWords,
    as_frame,
    check_words,
    count_words,
    read_texts,
    refuse_words,
)
from evenhand.tables.pipeline import FairPipeline, fair_pipeline
from evenhand.tables.read import TableFileError, check_header
from evenhand.workflow.labels import (
    check_groups,
    check_roles,
    favourable_label,
    joined,
    label_values,
    whom_left_out,
)
from evenhand.workflow.train import (
    add_counts,
    best_cut,
    count_unlabelled,
    cut_gains,
    facts_of_fit,
    n_kinds,
)

__all__ = ["Piece", "dask_client", "find_pieces", "train_pieces"]

# Rows on which it is found out what the columns hold.
SAMPLE = 200_000
# Row groups of a file are taken together up to so many rows.
PIECE_ROWS = 1 << 17
# Rows of a label of a group that are fewer are all fitted to, or the test might take every one.
RARE = 10
# Cuts among which the best of plain logistic regression is sought, in log-odds.
CUTS = np.arange(-1000, 1001) / 100
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

    Parameters
    ----------
    address : str, optional
        Such as ``"tcp://10.0.0.1:8786"``.
    most : int, optional
        The most worker processes to start here; as many as there are cores by default.
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
            raise ValueError(
                f"no Dask scheduler answers at {address!r}; start one there, or say --dask alone "
                "for one on this machine."
            ) from error
    with client, client.as_current():
        yield client


# ---- the pieces of a table -------------------------------------------------------------------


class Piece(NamedTuple):
    """Some row groups of a Parquet file, with the number of their first row in the whole table."""

    path: str
    groups: list[int]
    start: int
    n_rows: int


def find_pieces(path: str) -> list[Piece]:
    """Find the pieces of a table.

    Parameters
    ----------
    path : str
        A Parquet file, a folder of them, or a pattern such as ``"data/*.parquet"``.
    """
    try:
        files = find_files(path)
    except FileNotFoundError as error:
        raise TableFileError(str(error)) from None
    pieces: list[Piece] = []
    start = 0
    for file in files:
        groups: list[int] = []
        n = 0
        sizes = _row_groups(file)
        for i, size in enumerate(sizes):
            groups, n = [*groups, i], n + size
            if n and (i == len(sizes) - 1 or n + sizes[i + 1] > PIECE_ROWS):
                pieces.append(Piece(str(file.resolve()), groups, start, n))
                start, groups, n = start + n, [], 0
    if not pieces:
        raise TableFileError(f"{path} has columns but no rows.")
    return pieces


def _row_groups(file: Path) -> list[int]:
    """Rows of each row group of a file."""
    try:
        about = pq.read_metadata(file)
        check_header(about.schema.to_arrow_schema().names, str(file))
    except pa.lib.ArrowException:
        raise TableFileError(
            f"{file} is no Parquet file, and --dask reads no others; write the table as Parquet, "
            "or leave --dask out."
        ) from None
    return [about.row_group(i).num_rows for i in range(about.num_row_groups)]


def _read(piece: Piece, columns: Sequence[str] | None = None) -> pa.Table:
    """Read a piece, or some columns of it."""
    file = pq.ParquetFile(piece.path)
    missing = [name for name in columns or () if name not in file.schema_arrow.names]
    if missing:
        raise TableFileError(
            f"{piece.path} has no column {missing[0]!r}, which other files of the table have."
        )
    return file.read_row_groups(piece.groups, columns=columns)


# ---- the sample ------------------------------------------------------------------------------


def _sample(piece: Piece, n: int, seed: int, share: Share) -> tuple[pa.Table, NDArray[np.bool_]]:
    """Draw rows of a piece, and say which of them belong to a share."""
    random = np.random.default_rng([seed, piece.start])
    rows = np.sort(random.choice(piece.n_rows, n, replace=False))
    return _read(piece).take(rows), share.of(piece.start, piece.n_rows)[rows]


def _sampled(
    pieces: Sequence[Piece], seed: int, share: Share
) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
    """Draw as large a part of every piece, of small tables all; say which rows are held back."""
    ends = np.cumsum([0, *(piece.n_rows for piece in pieces)])
    quotas = np.diff(ends * min(SAMPLE, int(ends[-1])) // ends[-1]).tolist()
    drawn = compute(
        *(
            delayed(_sample)(piece, n, seed, share)
            for piece, n in zip(pieces, quotas, strict=True)
            if n
        )
    )
    try:
        table = pa.concat_tables([one[0] for one in drawn], promote_options="permissive")
    except pa.lib.ArrowException as error:
        raise TableFileError(
            f"the files hold columns of different types ({str(error).splitlines()[0]}); write "
            "them alike."
        ) from None
    return table.to_pandas(), np.concatenate([one[1] for one in drawn])


# ---- who belongs to which group --------------------------------------------------------------


class Kind(NamedTuple):
    """Numbers of a group and of a label, and whether both have too few rows to be divided."""

    group: int
    label: int
    rare: bool


LEFT_OUT = Kind(-1, -1, False)


class Key(NamedTuple):
    """What values of the sensitive columns and, behind them, of the label mean.

    Rows whose values ``kinds`` has not are left out.
    """

    kinds: dict[tuple[Any, ...], Kind]
    groups: NDArray[Any]
    labels: NDArray[Any]


def _combinations(
    frame: pd.DataFrame, pipeline: FairPipeline, label: str
) -> tuple[list[tuple[Any, ...]], NDArray[np.intp]]:
    """Distinct values of the sensitive columns and of the label, and the number of each row's."""
    values = pipeline._group_columns(frame).astype(object)
    values.columns = pd.RangeIndex(values.shape[1])
    texts = read_texts(as_frame(frame)[label], pipeline._missing_words())
    values[values.shape[1]] = pd.Series(texts, dtype=object)
    number = values.groupby(list(values.columns), dropna=False, sort=False).ngroup().to_numpy()
    first = np.unique(number, return_index=True)[1]
    distinct = values.iloc[first].itertuples(index=False, name=None)
    return [tuple(None if pd.isna(v) else v for v in one) for one in distinct], number


def _count(
    piece: Piece, pipeline: FairPipeline, label: str
) -> tuple[Counter[tuple[Any, ...]], dict[str, Counter[str]]]:
    """Count the combinations in a piece, and of each column the words that stand for no value."""
    columns = [*pipeline.sensitive_features, label]
    frame = _read(piece, columns).to_pandas()
    distinct, number = _combinations(frame, pipeline, label)
    seen, missing = as_frame(frame), pipeline._missing_words()
    words = {name: count_words(seen[name], missing) for name in columns}
    return Counter(dict(zip(distinct, np.bincount(number).tolist(), strict=True))), words


def _column(values: Sequence[Any]) -> pd.Series:
    """Numbers as pandas has them, all else as it is."""
    series = pd.Series(values)
    return series if series.dtype.kind in "iuf" else pd.Series(values, dtype=object)


def _make_key(
    counts: Mapping[tuple[Any, ...], int], pipeline: FairPipeline, label: str
) -> tuple[Key, list[dict[str, Any]], tuple[pd.DataFrame, NDArray[Any]]]:
    """Give groups and labels their numbers, as in memory; say how many rows are left out.

    Last come the groups of rows without a label, and how many rows each stands for.
    """
    names = list(pipeline.sensitive_features)
    distinct, n = list(counts), np.array(list(counts.values()))
    values = pd.DataFrame({name: _column([d[j] for d in distinct]) for j, name in enumerate(names)})
    missing = values.isna()
    kept = ~missing.any(axis=1).to_numpy()
    if pipeline.missing_groups == "error" and not kept.all():
        column = missing.columns[missing.any()][0]
        raise ValueError(without_group(column, int(n[missing[column]].sum())))
    if pipeline.missing_groups == "group":
        values = values.astype(object).where(~missing, MISSING)
        kept = np.ones(len(distinct), dtype=bool)
    check_groups(values[kept], pipeline.edges_)
    dropped = [{"reason": f"without a value in {joined(names)!r}", "n": int(n[~kept].sum())}]
    rows = np.flatnonzero(kept)
    texts = pd.DataFrame({label: [distinct[i][-1] for i in rows]}, dtype=object)
    y, known = label_values(texts, label, missing=pipeline._missing_words())
    dropped.append({"reason": f"without a value in {label!r}", "n": int(n[rows[~known]].sum())})
    compared = values.iloc[rows] if len(names) > 1 else values.iloc[rows, 0]
    dropped[-1] |= whom_left_out(compared, known, n[rows])
    unlabelled = values.iloc[rows[~known]].reset_index(drop=True), n[rows[~known]]
    rows = rows[known]
    groups, z = group_codes(values.iloc[rows])
    labels, y = np.unique(y, return_inverse=True)
    cell = z * len(labels) + y
    rare = (np.bincount(cell, weights=n[rows]) < RARE)[cell]
    kinds = {
        distinct[i]: Kind(*kind)
        for i, *kind in zip(rows, z.tolist(), y.tolist(), rare.tolist(), strict=True)
    }
    return Key(kinds, groups, labels), [d for d in dropped if d["n"]], unlabelled


class Known(NamedTuple):
    """Of the rows of a piece: which are kept, and of these label, group, and whether it is rare."""

    kept: NDArray[np.bool_]
    y: NDArray[Any]
    groups: NDArray[Any]
    rare: NDArray[np.bool_]


def _look_up(frame: pd.DataFrame, pipeline: FairPipeline, label: str, key: Key) -> Known:
    distinct, number = _combinations(frame, pipeline, label)
    group, y, rare = np.array([key.kinds.get(d, LEFT_OUT) for d in distinct])[number].T
    kept = group >= 0
    return Known(kept, key.labels[y[kept]], key.groups[group[kept]], rare[kept].astype(bool))


# ---- encoding --------------------------------------------------------------------------------


class Encoded(NamedTuple):
    """What becomes of a piece: rows to fit to, rows to test on, a mark of its values."""

    train: Part
    test: Part
    mark: str


def _encode(piece: Piece, about: tuple[TableEncoder, FairPipeline, str, Key, Share]) -> Encoded:
    """Encode a piece as the sample was, where it is."""
    encoder, pipeline, label, key, share = about
    used = [plan.column for plan in encoder.plans_ if plan.kind != "dropped"]
    columns = list(dict.fromkeys([*used, *pipeline.sensitive_features, label]))
    frame = _read(piece, columns).to_pandas().reset_index(drop=True)
    known = _look_up(frame, pipeline, label, key)
    held = share.of(piece.start, piece.n_rows)[known.kept] & ~known.rare
    mark = hashlib.sha256(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    if known.kept.any():
        X = _inputs(encoder, frame, known.kept, piece.start)
    else:
        X = np.empty((0, len(encoder.get_feature_names_out())))
    train, test = (Part(X[rows], known.y[rows], known.groups[rows]) for rows in (~held, held))
    return Encoded(train, test, mark.hexdigest())


def _inputs(encoder: TableEncoder, frame: pd.DataFrame, kept: NDArray[np.bool_], start: int) -> Any:
    """Give the inputs; a value that cannot be read is named by its row in the whole table."""
    try:
        return encoder.transform(frame[kept])
    except CellError as error:
        row = start + int(np.flatnonzero(kept)[error.row])
        # The sample did not have it.
        before = error.before.replace(
            "when the model was trained, and now", "in the rows that were looked at, and"
        )
        raise CellError(before, row, error.after) from None


def _part(encoded: Encoded, name: str) -> Part:
    return getattr(encoded, name)


def _note_sample(encoder: TableEncoder, outside: Sequence[str], n_rows: int) -> None:
    """Say in the decisions that they were made on a sample."""
    seen = f" (seen on {SAMPLE:,} rows)"
    encoder.plans_ = [
        plan if plan.column in outside else replace(plan, action=plan.action + seen)
        for plan in encoder.plans_
    ]
    warnings.warn(
        f"what the columns hold was found out on a sample of {SAMPLE:,} of the {n_rows:,} rows, "
        "drawn evenly from all files; the model was fitted to all of them.",
        UserWarning,
        stacklevel=3,
    )


# ---- training --------------------------------------------------------------------------------


def train_pieces(
    pieces: Sequence[Piece],
    *,
    label: str,
    sensitive: Sequence[str],
    test_size: float = 0.3,
    favourable: str | None = None,
    missing_groups: str = "error",
    sensitive_inputs: bool = False,
    exclude: Sequence[str] = (),
    kinds: Mapping[str, str] | None = None,
    na: Sequence[str] | None = None,
    keep_na: Sequence[str] = (),
    bins: Any = None,
    title: str = "table",
    command: str = "",
    seed: int = 0,
    before_fit: Callable[[], None] | None = None,
    **params: Any,
) -> SavedModel:
    """Train a fair classifier on a table in pieces, with the Dask scheduler that is set.

    Parameters
    ----------
    pieces : sequence of Piece
        The table, from :func:`find_pieces`; the workers must see the files, too.
    test_size : float, default=0.3
        Share of the rows that is held back as a test, each row drawn by itself; 0 for none.
    label, sensitive, favourable, missing_groups, sensitive_inputs, exclude, kinds, na, \
keep_na, bins, title, command, seed, before_fit, **params
        As of :func:`evenhand.workflow.train.train`.

    Returns
    -------
    SavedModel
        The fitted pipeline and the facts of its training.
    """
    check_roles(label, sensitive, kinds or {}, sensitive_inputs=sensitive_inputs)
    outside = [label, *exclude]
    hidden = [] if sensitive_inputs else list(sensitive)
    missing = MissingWords.chosen(na, keep_na)
    pipeline = fair_pipeline(
        sensitive,
        missing_groups=missing_groups,
        sensitive_inputs=sensitive_inputs,
        encoder=TableEncoder(exclude=outside, kinds=kinds, na=na, keep_na=keep_na),
        bins=bins,
        random_state=seed,
        **params,
    )
    model: FairClassifier = pipeline[-1]
    model._validate_params()
    model._check_parts("dask", "a table in parts")
    for name, wanted in (pipeline.bins or {}).items():
        if np.ndim(wanted) == 0:
            raise ValueError(
                f"bins of equal size need all values of {name!r} in one place; give edges, as in "
                f"--bins {name}=30,45,60."
            )
    share = Share(seed, 0.0, test_size, True)
    sample, held = _sampled(pieces, seed, share)
    pipeline.edges_ = find_edges(pipeline._group_values(sample), pipeline.bins or {})
    # Before anything is counted: groups and labels that are none may be as many as the rows.
    check_groups(pipeline._group_columns(sample), pipeline.edges_)
    check_words(as_frame(sample), [*sensitive, label], missing)
    label_values(sample, label, least=1, missing=missing)
    asked = delayed(pipeline, traverse=False, pure=False)
    counted = compute(*(delayed(_count)(piece, asked, label) for piece in pieces))
    if na is None:  # the sample may have none of them
        names = counted[0][1]
        refuse_words(
            {name: sum((one[1][name] for one in counted), Counter()) for name in names},
            as_frame(sample),
        )
    counts: Counter[tuple[Any, ...]] = reduce(add, (one[0] for one in counted), Counter())
    key, dropped, (groups, n_unlabelled) = _make_key(counts, pipeline, label)
    if "pos_label" not in params:
        rows_of = dict.fromkeys(key.labels.tolist(), 0)
        for values, kind in key.kinds.items():
            rows_of[key.labels.tolist()[kind.label]] += counts[values]
        model.set_params(pos_label=favourable_label(rows_of, label, favourable, each=True))

    known = _look_up(sample, pipeline, label, key)
    fitted = ~held[known.kept] | known.rare
    sample = sample[known.kept]
    encoder: TableEncoder = pipeline.named_steps["encoder"]
    look = clone(encoder).set_params(sensitive_features=hidden).fit(sample, known.y)
    if before_fit is not None:
        before_fit()
    encoder.fit_transform(sample[fitted], known.y[fitted], readings=look.readings_)
    n_rows = sum(piece.n_rows for piece in pieces)
    if n_rows > SAMPLE:
        _note_sample(encoder, [*outside, *hidden], n_rows)

    about = delayed((encoder, pipeline, label, key, share), traverse=False, pure=False)
    encoded = persist(*(delayed(_encode)(piece, about) for piece in pieces))
    marks = compute(*(delayed(_part)(one, "mark") for one in encoded))
    n_inputs = len(encoder.get_feature_names_out())
    rows, train, test = _coded(model, encoded, n_inputs, key, n_rows if test_size else 0)
    del encoded  # the workers may forget it
    model.n_features_in_ = n_inputs
    model._fit_rows(rows._replace(source=train), check_random_state(seed))
    pipeline.n_dropped_ = 0  # as in memory, where rows without a group do not come to the fit

    facts: dict[str, Any] = {
        "title": title,
        "label": label,
        "sensitive": list(sensitive),
        "n_rows": n_rows,
        "rows_dropped": dropped,
        "n_train": train.n_samples,
        "n_test": 0 if test is None else test.n_samples,
        "test_title": "held back from the start",
        "fingerprint": hashlib.sha256("".join(marks).encode()).hexdigest()[:16],
        "stand_ins": look.stand_ins_,
        "seed": seed,
        "command": command,
        "plain": {"weights": model.trajectory_.iterates[0].tolist(), "counts": {}},
    } | facts_of_fit(model, "dask", "distributed")
    if len(model.classes_) == 2:
        gains = train.sum(_block_gains, _plain_weights(model, train), CUTS)
        facts["plain"]["best_cut"] = {"cut": best_cut(CUTS, gains), "counts": {}}
    for name, each in (("train", train), ("test", test)):
        if each is not None:
            facts["plain"]["counts"][name] = _plain_counts(model, each, 0.0).tolist()
            best = facts["plain"].get("best_cut")
            if best is not None:
                best["counts"][name] = _plain_counts(model, each, best["cut"]).tolist()
            iterates = model.trajectory_.iterates
            count = partial(count_rows, iterates=iterates, rows=each, n_groups=n_kinds(model))
            add_counts(facts, name, model, count)
    if len(groups):
        parts = ["train", *["test"] * (test is not None)]
        facts["unlabelled"] = count_unlabelled(model, groups, n_unlabelled) | {"parts": parts}
    return SavedModel(pipeline, facts)


def _coded(
    model: FairClassifier, encoded: Sequence[Delayed], n_inputs: int, key: Key, n_rows: int
) -> tuple[CodedRows, DaskRows, DaskRows | None]:
    """Code the rows to fit to, and those to test on if they are drawn from any ``n_rows``."""
    parts = [delayed(_part)(one, "train") for one in encoded]
    facts = dask_facts(parts)
    alone = [group for group in key.groups.tolist() if group not in facts.groups.index]
    if alone:
        raise ValueError(
            f"all rows of the group {alone[0]!r} were drawn for the test; use another --seed or a "
            "smaller --test-size."
        )
    coding, rows = model._coding(facts, False)
    train = DaskRows(parts, facts, coding, n_inputs)
    if not n_rows:
        return rows, train, None
    parts = [delayed(_part)(one, "test") for one in encoded]
    test = DaskRows(parts, dask_facts(parts), coding, n_inputs)
    if not test.n_samples:
        raise ValueError(
            f"{n_rows:,} rows are too few to hold some back for a test; use --test-size 0."
        )
    return rows, train, test


def _plain_weights(model: FairClassifier, rows: Rows) -> NDArray[np.float64]:
    """Weights of plain logistic regression: where the fit began."""
    W = model.trajectory_.iterates[0].reshape(-1, rows.n_features + 1).T
    return np.ascontiguousarray(W)


def _plain_counts(model: FairClassifier, rows: Rows, cut: float) -> NDArray[np.float64]:
    """Count what plain logistic regression predicts at a cut."""
    n_labels = len(model.classes_)
    shape = (n_kinds(model), n_labels, n_labels)
    W, size = _plain_weights(model, rows), int(np.prod(shape))
    return rows.sum(_block_counts, W, cut, n_labels, size).reshape(shape)


def _block_counts(
    block: Block, W: NDArray[np.float64], cut: float, n_labels: int, size: int
) -> NDArray[np.float64]:
    scores = float64_scores(block, W)
    answer = decide(scores if n_labels > 2 else scores[:, 0], cut)
    return np.bincount(block.cell * n_labels + answer, minlength=size).astype(np.float64)


def _block_gains(
    block: Block, W: NDArray[np.float64], cuts: NDArray[np.float64]
) -> NDArray[np.float64]:
    return cut_gains(float64_scores(block, W)[:, 0], block.cell, cuts)
