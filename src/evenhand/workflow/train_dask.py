"""Training on Parquet files with Dask: the table stays where its workers are.

What a column holds is found out on a sample of the rows, which comes here; besides it only counts
and sums do. The result is that of :func:`evenhand.workflow.train.train`.
"""

import hashlib
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from dask.delayed import Delayed, delayed
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.utils import check_random_state

from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.rows import Share
from evenhand.engines.chunks import Chunk as CodedChunk
from evenhand.engines.dask import DaskRows, compute, dask_facts, persist
from evenhand.models.classifier import FairClassifier
from evenhand.models.fit_rows import code_chunks
from evenhand.models.inputs import CodedRows
from evenhand.persist.model_file import SavedModel
from evenhand.tables.columns import CellError, Table, as_table, check_words, refuse_words
from evenhand.tables.encoder import TableEncoder
from evenhand.tables.groups import Columns, check_groups, find_edges
from evenhand.tables.pipeline import FairPipeline
from evenhand.workflow.counting import with_counts
from evenhand.workflow.dask_chunks import Chunk, draw_sample, read_chunk
from evenhand.workflow.labels import label_values, too_few_to_test
from evenhand.workflow.settings import TrainSettings
from evenhand.workflow.unlabelled import count_unlabelled
from evenhand.workflow.value_key import Key, count_values, look_up, make_key


def train_chunks(
    chunks: Sequence[Chunk], settings: TrainSettings, before_fit: Callable[[], None] | None = None
) -> SavedModel:
    """Train a fair classifier on a table in chunks, with the Dask scheduler that is set.

    The workers must see the files of the chunks, too. All else is as of
    :func:`evenhand.workflow.train.train`.
    """
    settings.check()
    for name in ("person", "weight"):
        if (column := getattr(settings, name)) is not None:
            raise InputError("for_tables_in_memory", parameter=Parameter(name, column))
    pipeline = _pipeline(settings)
    share = Share(settings.seed, 0.0, settings.test_size, True)
    drawn, held = draw_sample(chunks, settings.seed, share)
    sample = as_table(drawn)
    columns = _group_columns(sample, settings, pipeline)
    counts = _count(chunks, sample, columns)
    key, dropped, (groups, n_unlabelled) = make_key(counts, columns)
    settings.name_favourable(pipeline, _rows_of_labels(key, counts))

    look = _fit_encoder(pipeline, sample, held, columns, key, before_fit)
    encoder: TableEncoder = pipeline.named_steps["encoder"]
    n_rows = sum(chunk.n_rows for chunk in chunks)
    if n_rows > len(sample):
        outside = [settings.label, *settings.exclude]
        hidden = [] if settings.sensitive_inputs else settings.sensitive
        _note_sample(encoder, [*outside, *hidden], len(sample), n_rows)
    about = delayed((encoder, columns, key, share), traverse=False, pure=False)
    model = pipeline[-1]
    model.n_features_in_ = len(encoder.get_feature_names_out())
    rows, test, mark = _coded(model, chunks, about, key, n_rows if settings.test_size else 0)
    model.fit_rows(rows, model.settings(), check_random_state(settings.seed))
    pipeline.n_dropped_ = 0  # as in memory, where rows without a group do not come to the fit
    facts = {
        **settings.facts(),
        "n_rows": n_rows,
        "rows_dropped": dropped,
        "test_title": "held back from the start",
        "fingerprint": mark,
        "stand_ins": look.stand_ins_,
    }
    parts = {"train": rows.source, "test": test}
    saved = with_counts(pipeline, facts, parts, "dask", "distributed")
    if len(groups):
        counted = [part for part, rows in parts.items() if rows is not None]
        found = count_unlabelled(model, groups, n_unlabelled)
        saved.facts["unlabelled"] = found | {"parts": counted}
    return saved


def _pipeline(settings: TrainSettings) -> FairPipeline:
    """Make the pipeline; refuse what is not for a table in chunks."""
    pipeline = settings.pipeline()
    model: FairClassifier = pipeline[-1]
    model.settings().check_chunks("dask", "a table in parts")
    for name, wanted in (pipeline.bins or {}).items():
        if np.ndim(wanted) == 0:
            raise InputError(
                "edges_needed", column=name, bins=Parameter("bins", {name: [30, 45, 60]})
            )
    return pipeline


def _group_columns(sample: Table, settings: TrainSettings, pipeline: FairPipeline) -> Columns:
    """Say how groups and labels are read; refuse columns that hold none, as the sample shows.

    Before anything is counted: groups and labels that are none may be as many as the rows.
    """
    columns = settings.columns._replace(bins=pipeline.bins)
    pipeline.edges_ = find_edges(columns.values(sample), columns.bins)
    columns = columns._replace(bins=pipeline.edges_)
    check_groups(columns.group_columns(sample), pipeline.edges_)
    check_words(sample, [*columns.sensitive, settings.label], columns.missing)
    label_values(sample, settings.label, least=1, missing=columns.missing)
    return columns


def _count(chunks: Sequence[Chunk], sample: Table, columns: Columns) -> Counter[tuple[Any, ...]]:
    """Count the values of all chunks; refuse words that may stand for no value."""
    asked = delayed(columns, traverse=False, pure=False)
    counted = compute(*(delayed(count_values)(chunk, asked) for chunk in chunks))
    if columns.missing.words is None:  # the sample may have none of them
        words: dict[str, Counter[str]] = {
            name: sum((one[1][name] for one in counted), Counter()) for name in counted[0][1]
        }
        refuse_words(words, sample)
    return reduce(add, (one[0] for one in counted), Counter())


def _rows_of_labels(key: Key, counts: Counter[tuple[Any, ...]]) -> dict[Any, int]:
    """How many rows each label has."""
    rows: Counter[Any] = Counter()
    for values, meaning in key.items():
        rows[meaning.label] += counts[values]
    return dict(sorted(rows.items()))


def _fit_encoder(
    pipeline: FairPipeline,
    sample: Table,
    held: NDArray[np.bool_],
    columns: Columns,
    key: Key,
    before_fit: Callable[[], None] | None,
) -> TableEncoder:
    """Fit the encoder to the sample's training rows; give one that has seen all rows of it."""
    encoder: TableEncoder = pipeline.named_steps["encoder"]
    known = look_up(sample, columns, key)
    fitted = ~held[known.kept] | known.rare
    sample = sample.take(known.kept)
    look = clone(encoder).fit(sample, known.y)
    if before_fit is not None:
        before_fit()
    encoder.fit_transform(sample.take(fitted), known.y[fitted], formats=look.formats_)
    return look


class Encoded(NamedTuple):
    """What becomes of a chunk: rows to fit to, rows to test on, a mark of its values."""

    train: CodedChunk
    test: CodedChunk
    mark: str


def _encode(chunk: Chunk, about: tuple[TableEncoder, Columns, Key, Share]) -> Encoded:
    """Encode a chunk as the sample was, where it is."""
    encoder, roles, key, share = about
    used = [plan.column for plan in encoder.plans_ if plan.kind != "dropped"]
    columns = list(dict.fromkeys([*used, *roles.sensitive, str(roles.label)]))
    frame = read_chunk(chunk, columns).to_pandas().reset_index(drop=True)
    table = as_table(frame)
    known = look_up(table, roles, key)
    held = share.of(chunk.start, chunk.n_rows)[known.kept] & ~known.rare
    mark = hashlib.sha256(pd.util.hash_pandas_object(frame, index=False).to_numpy().tobytes())
    if known.kept.any():
        X = _inputs(encoder, table, known.kept, chunk.start)
    else:
        X = np.empty((0, len(encoder.get_feature_names_out())))
    train, test = (CodedChunk(X[rows], known.y[rows], known.groups[rows]) for rows in (~held, held))
    return Encoded(train, test, mark.hexdigest())


def _inputs(encoder: TableEncoder, table: Table, kept: NDArray[np.bool_], start: int) -> Any:
    """Give the inputs; a value that cannot be read is named by its row in the whole table."""
    try:
        return encoder.transform(table.take(kept))
    except CellError as error:
        data = error.data | {"row": start + int(np.flatnonzero(kept)[error.data["row"] - 1]) + 1}
        if error.code != "unreadable_value":
            raise CellError(error.code, **data) from None
        raise CellError("unreadable_value_outside_sample", **data) from None


def _note_sample(encoder: TableEncoder, outside: Sequence[str], n_seen: int, n_rows: int) -> None:
    """Say in the decisions that they were made on a sample."""
    seen = f" (seen on {n_seen:,} rows)"
    encoder.plans_ = [
        plan if plan.column in outside else replace(plan, action=plan.action + seen)
        for plan in encoder.plans_
    ]
    warnings.warn(InputWarning("seen_on_sample", n=n_seen, n_rows=n_rows), stacklevel=3)


def _coded(
    model: FairClassifier, chunks: Sequence[Chunk], about: Delayed, key: Key, n_rows: int
) -> tuple[CodedRows, DaskRows | None, str]:
    """Encode and code the rows to fit to, and those to test on if they are drawn from any.

    ``n_rows`` is how many they are drawn from. Last is a mark of all values. Workers may forget
    what was encoded when this is done.
    """
    encoded = persist(*(delayed(_encode)(chunk, about) for chunk in chunks))
    marks = compute(*(one.mark for one in encoded))
    mark = hashlib.sha256("".join(marks).encode()).hexdigest()[:16]
    parts = [one.train for one in encoded]
    facts = dask_facts(parts)
    alone = [m.group for m in key.values() if m.group not in facts.groups.index]
    if alone:
        seed, size = Parameter("seed"), Parameter("test_size")
        raise InputError("group_in_test_only", group=alone[0], seed=seed, test_size=size)
    coding, rows = code_chunks(model.settings(), facts, weighted=False)
    rows = rows._replace(source=DaskRows(parts, facts, coding, model.n_features_in_))
    if not n_rows:
        return rows, None, mark
    parts = [one.test for one in encoded]
    test = DaskRows(parts, dask_facts(parts), coding, model.n_features_in_)
    if not test.n_samples:
        raise too_few_to_test(n_rows)
    return rows, test, mark
