"""Train on a table in memory, and write down what was done."""

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.groups import group_codes
from evenhand.frontier.splits import split_rows
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.persist.model_file import SavedModel
from evenhand.tables.columns import as_table, check_width, no_column
from evenhand.tables.groups import bins_by_column, find_edges
from evenhand.tables.pipeline import FairPipeline
from evenhand.workflow.counting import add_answers, rows_in_memory, with_counts
from evenhand.workflow.labels import (
    check_new_rows,
    fingerprint,
    label_counts,
    labelled_rows,
    too_few_to_test,
    warn_of_alike_groups,
)
from evenhand.workflow.matters import what_matters
from evenhand.workflow.settings import TrainSettings
from evenhand.workflow.unlabelled import count_unlabelled, numbers_or_none

__all__ = ["train"]


def train(
    X: Any, *, test: Any = None, before_fit: Callable[[], None] | None = None, **settings: Any
) -> SavedModel:
    """Train a fair classifier on a table, and write down what was done.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    test : pandas, polars or pyarrow table, optional
        Rows to test on; by default a share of the table.
    before_fit : callable, optional
        Called when the columns were looked at, and leaks and stand-ins warned of, before the fit.
    **settings
        Fields of :class:`~evenhand.workflow.settings.TrainSettings`, of which ``label`` and
        ``sensitive`` are needed, and parameters of :class:`~evenhand.FairClassifier`.

    Returns
    -------
    SavedModel
        The fitted pipeline and the facts of its training.
    """
    return train_table(X, TrainSettings.of(**settings), test=test, before_fit=before_fit)


def train_table(
    X: Any,
    settings: TrainSettings,
    *,
    test: Any = None,
    before_fit: Callable[[], None] | None = None,
) -> SavedModel:
    """As :func:`train`, with the settings in one record."""
    settings.check()
    X = as_table(X)
    check_width(X)
    X, y, dropped, unlabelled = labelled_rows(X, settings.columns)
    settings = replace(settings, bins=_edges_on_all_rows(X, settings))
    if settings.scores is not None and settings.params.get("group_cuts"):
        # The score is the only input, so that nothing else is needed to predict.
        used = {settings.label, settings.scores, settings.person, *settings.sensitive}
        settings = replace(settings, exclude=[name for name in X.columns if name not in used])
    facts: dict[str, Any] = {
        **settings.facts(),
        "n_rows": len(y) + sum(d["n"] for d in dropped),
        "rows_dropped": dropped,
        "test_title": "held back from the start" if test is None else "the test table",
        "fingerprint": fingerprint(X),
    }
    warn_of_alike_groups(X, settings.columns)
    X.release()
    labels = label_counts(y)
    pipeline = settings.pipeline()
    settings.name_favourable(pipeline, labels)
    # What a column holds is seen on all rows, so that it does not depend on who is held back.
    look = clone(pipeline.named_steps["encoder"]).fit(X, y)
    facts["stand_ins"] = look.stand_ins_
    if before_fit is not None:
        before_fit()
    X_test = y_test = None
    if test is not None:
        X_test, y_test, left_out = _test_rows(test, settings, labels)
        dropped += left_out
        check_new_rows(X, X_test, "test")
    elif settings.test_size:
        X, y, X_test, y_test = _split(X, y, settings)
    persons = None if settings.person is None else _persons(X, settings)
    weights = [None if rows is None else settings.columns.weights(rows) for rows in (X, X_test)]
    pipeline.fit(X, y, encoder__formats=look.formats_, persons=persons, sample_weight=weights[0])
    parts: dict[str, Any] = {"train": (X, y, weights[0]), "test": (X_test, y_test, weights[1])}
    saved = with_facts(pipeline, facts, **parts)
    if unlabelled is not None and settings.weight is not None:
        n, told = len(unlabelled), Parameter("weight", settings.weight)
        warnings.warn(InputWarning("unlabelled_not_weighed", n=n, weight=told), stacklevel=3)
    elif unlabelled is not None:
        _add_unlabelled(saved.facts, pipeline, unlabelled, ["train", "test"][: 1 + (test is None)])
    return saved


def with_facts(
    pipeline: FairPipeline,
    facts: Mapping[str, Any],
    *,
    train: tuple[Any, NDArray[Any], Any],
    test: tuple[Any, Any, Any],
) -> SavedModel:
    """Give a fitted pipeline with what a report needs: facts, and counts on the rows of each part.

    ``train`` and ``test`` are a table, its labels, None both where there is no test, and weights,
    if rows have some.
    """
    rows = {
        part: None if y is None else rows_in_memory(pipeline, X, y, weight, fitted=part == "train")
        for part, (X, y, weight) in {"train": train, "test": test}.items()
    }
    if isinstance(pipeline[-1], FairBoostedClassifier):
        part = "train" if test[1] is None else "test"
        facts = {**facts, **what_matters(pipeline, (train if test[1] is None else test)[0], part)}
    return with_counts(pipeline, facts, rows)


def _edges_on_all_rows(X: Any, settings: TrainSettings) -> dict[str, Any]:
    """Find bins of several columns on all rows, so that those held back are in the same bins."""
    if len(settings.sensitive) == 1:
        return bins_by_column(settings.bins, settings.sensitive)
    return find_edges(settings.columns.values(X), settings.bins)


def _test_rows(
    test: Any, settings: TrainSettings, labels: Mapping[Any, int]
) -> tuple[Any, NDArray[Any], list[dict[str, Any]]]:
    """Rows of a test table with their labels, and what was left out of it."""
    X, y, dropped, _ = labelled_rows(test, settings.columns, several_groups=False)
    unknown = sorted(set(y.tolist()) - set(labels), key=str)
    if unknown:
        raise InputError("unknown_test_label", column=settings.label, value=unknown[0])
    told = [d | {"reason": f"of the test table {d['reason']}", "part": "test"} for d in dropped]
    return X, y, told


def _split(
    X: Any, y: NDArray[Any], settings: TrainSettings
) -> tuple[Any, NDArray[Any], Any, NDArray[Any]]:
    """Hold back a share of the rows for a test, within each label of each group.

    For a certificate within each group: exact tests ask for labels that do not depend on those of
    other rows.
    """
    groups, _ = settings.columns.groups(X)
    labels, codes = np.unique(y, return_inverse=True)
    strata = group_codes(groups)[1]
    if settings.params.get("confidence") != "certified":
        strata = strata * len(labels) + codes
    first = person = np.arange(len(y))
    if settings.person is not None:
        _, first, person = np.unique(_persons(X, settings), return_index=True, return_inverse=True)
    random = np.random.RandomState(settings.seed)
    held = split_rows(strata[first], settings.test_size, random)[1]
    if not len(held):
        raise too_few_to_test(len(y))
    mask = np.isin(person, held)
    return X.take(~mask), y[~mask], X.take(mask), y[mask]


def _persons(X: Any, settings: TrainSettings) -> NDArray[np.intp]:
    """Give the number of the person of each row; refuse rows without one."""
    column = str(settings.person)
    if column not in X.columns:
        raise no_column(column, X.columns)
    codes = X[column].as_text(settings.columns.missing).codes
    if (codes < 0).any():
        raise InputError("rows_without_person", column=column, n=int((codes < 0).sum()))
    return np.asarray(codes)


def _add_unlabelled(
    facts: dict[str, Any], pipeline: FairPipeline, X: Any, parts: Sequence[str]
) -> None:
    """Write down how many rows of each group have no label, and what every point predicts there.

    ``parts`` are those that, with these rows, are the whole table.
    """
    model, groups = pipeline[-1], pipeline.groups(X)[0]
    parts = [part for part in parts if f"{part}_counts" in facts]
    facts["unlabelled"] = count_unlabelled(model, groups) | {"parts": parts}
    known = numbers_or_none(model, groups) >= 0
    if not known.any():
        return
    X = X.take(known)
    try:
        # Any label will do: it is not looked at.
        rows = rows_in_memory(pipeline, X, np.full(known.sum(), model.fitted_.labels[0]))
    except ValueError as error:
        warnings.warn(InputWarning("unreadable_unlabelled_rows", why=error), stacklevel=3)
        return
    add_answers(facts, "unlabelled", model, rows)
