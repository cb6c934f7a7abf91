"""Train on a table, and write down what was done: facts, and counts of every answer."""

from __future__ import annotations

import platform
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from evenhand._extras import package_version
from evenhand.core.groups import group_codes
from evenhand.frontier.cuts import decide
from evenhand.frontier.held_out import count_points
from evenhand.frontier.points import Frontier
from evenhand.models.classifier import FairClassifier
from evenhand.models.inputs import code_known_groups
from evenhand.persist.model_file import SavedModel
from evenhand.tables.encoder import TableEncoder, as_names
from evenhand.tables.groups import bins_by_column, find_edges, group_values, take_table_rows
from evenhand.tables.parse import (
    MissingWords,
    as_frame,
    check_width,
)
from evenhand.tables.pipeline import FairPipeline, fair_pipeline
from evenhand.workflow.labels import (
    check_roles,
    favourable_label,
    fingerprint,
    groups_of,
    label_counts,
    labelled_rows,
)

__all__ = ["train"]


def train(
    X: Any,
    *,
    label: str,
    sensitive: Sequence[str],
    test: Any = None,
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
    """Train a fair classifier on a table, and write down what was done.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    label : str
        The label's column.
    sensitive : sequence of str
        Sensitive columns; several are crossed.
    test : pandas, polars or pyarrow table, optional
        Rows to test on; by default a share of the table.
    test_size : float, default=0.3
        That share, drawn within each label of each group; 0 for none.
    favourable : str, optional
        The favourable label; by default the larger of 0/1, -1/1 or false/true, and each of more
        than two. Of another pair it is never guessed.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group.
    sensitive_inputs : bool, default=False
        Whether the sensitive columns are inputs as well.
    exclude : sequence of str
        Further columns that are no inputs.
    kinds : mapping of str to str, optional
        How to read columns, as of :class:`~evenhand.TableEncoder`; found out by default.
    na, keep_na : sequence of str
        Words that stand for a missing value, and columns in which they are values, as of
        :class:`~evenhand.TableEncoder`.
    bins : int, sequence of float, or mapping of str to these, optional
        Bins of sensitive numbers, as of :func:`evenhand.fair_pipeline`.
    title, command : str
        What to call the table, and how the training can be repeated.
    seed : int, default=0
        Seed of the split and of the selection.
    before_fit : callable, optional
        Called when the columns were looked at, and leaks and stand-ins warned of, before the fit.
    **params
        Parameters of :class:`~evenhand.FairClassifier`.

    Returns
    -------
    SavedModel
        The fitted pipeline and the facts of its training.
    """
    check_roles(label, sensitive, kinds or {}, sensitive_inputs=sensitive_inputs)
    check_width(as_frame(X))
    missing = MissingWords.chosen(na, keep_na)
    X, y, dropped, unlabelled = labelled_rows(X, label, sensitive, missing_groups, bins, missing)
    bins = bins_by_column(bins, sensitive)
    if len(sensitive) > 1:
        # On all rows, so that those held back are in the same bins.
        bins = find_edges(group_values(X, sensitive, numbers=list(bins), missing=missing), bins)
    mark = fingerprint(X)
    groups, _ = groups_of(X, sensitive, missing_groups, bins, missing)
    n_rows = len(y) + sum(d["n"] for d in dropped)
    classes = label_counts(y)
    if "pos_label" not in params:
        params["pos_label"] = favourable_label(classes, label, favourable, each=True)
    # What a column holds is seen on all rows, so that it does not depend on who is held back.
    hidden = () if sensitive_inputs else list(sensitive)
    encoder = TableEncoder(exclude=[label, *exclude], kinds=kinds, na=na, keep_na=keep_na)
    look = clone(encoder).set_params(sensitive_features=hidden).fit(X, y)
    if before_fit is not None:
        before_fit()
    X_test = y_test = None
    if test is not None:
        X_test, y_test, left_out, _ = labelled_rows(
            test, label, sensitive, missing_groups, bins, missing
        )
        dropped += [
            d | {"reason": f"of the test table {d['reason']}", "part": "test"} for d in left_out
        ]
        unknown = sorted(set(y_test.tolist()) - set(classes), key=str)
        if unknown:
            raise ValueError(
                f"the test table has the label {unknown[0]!r} in column {label!r}, which the "
                f"training table has not."
            )
    elif test_size:
        X, y, X_test, y_test = _split(X, y, groups, test_size, seed)
    pipeline = fair_pipeline(
        sensitive,
        missing_groups=missing_groups,
        sensitive_inputs=sensitive_inputs,
        encoder=encoder,
        bins=bins,
        random_state=seed,
        **params,
    )
    pipeline.fit(X, y, encoder__readings=look.readings_)
    facts = {
        "title": title,
        "label": label,
        "n_rows": n_rows,
        "rows_dropped": dropped,
        "test_title": "the test table" if test is not None else "held back from the start",
        "fingerprint": mark,
        "stand_ins": look.stand_ins_,
        "seed": seed,
        "command": command,
    }
    saved = with_facts(pipeline, facts, train=(X, y), test=(X_test, y_test))
    if unlabelled is not None:
        _add_unlabelled(saved.facts, pipeline, unlabelled, ["train", "test"][: 1 + (test is None)])
    return saved


def with_facts(
    pipeline: FairPipeline,
    facts: Mapping[str, Any],
    *,
    train: tuple[Any, NDArray[Any]],
    test: tuple[Any, Any],
) -> SavedModel:
    """Give a fitted pipeline with what a report needs: facts, and counts on the rows of each part.

    ``train`` and ``test`` are a table and its labels, both None where there is no test.
    """
    model: FairClassifier = pipeline[-1]
    plain = model.trajectory_.iterates[:1]
    parts = {"train": train, "test": test}
    held = {f"n_{part}": 0 if y is None else len(y) for part, (_, y) in parts.items()}
    known: dict[str, Any] = {
        **facts,
        "sensitive": as_names(pipeline.sensitive_features),
        **held,
        **facts_of_fit(model),
        "plain": {"weights": plain[0].tolist(), "counts": {}},
    }
    for part, (X, y) in parts.items():
        if y is not None:
            encoded = pipeline[:-1].transform(X)
            _add_plain(known["plain"], part, pipeline, X, y, encoded, plain)
            _count_parts(known, part, pipeline, X, y, encoded)
    return SavedModel(pipeline, known)


def facts_of_fit(model: FairClassifier, *packages: str) -> dict[str, Any]:
    """Give what is known of any fit: favourable labels, time, versions of these packages, too."""
    used = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas", *packages)
    return {
        "favourable": [str(model._labels[c]) for c in model.frontier_.favourable],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version()} | {p: package_version(p) for p in used},
    }


def _add_unlabelled(
    facts: dict[str, Any], pipeline: FairPipeline, X: Any, parts: Sequence[str]
) -> None:
    """Write down how many rows of each group have no label, and what every point predicts there.

    ``parts`` are those that, with these rows, are the whole table.
    """
    model, groups = pipeline[-1], pipeline.groups(X)[0]
    parts = [part for part in parts if f"{part}_counts" in facts]
    facts["unlabelled"] = count_unlabelled(model, groups) | {"parts": parts}
    rows, z = facts["unlabelled"]["rows"], group_numbers(model, groups)
    if (z < 0).any():
        X = take_table_rows(X, z >= 0)
    if not any(rows):
        return
    # Any label will do: it is not looked at.
    y = np.full(sum(rows), model._labels[0])
    try:
        encoded = pipeline[:-1].transform(X)
    except ValueError as error:
        warnings.warn(
            f"rows without a label cannot be read, so the ratio over all rows is not known: "
            f"{error}",
            UserWarning,
            stacklevel=3,
        )
        return
    _count_parts(facts, "unlabelled", pipeline, X, y, encoded)


def count_unlabelled(
    model: FairClassifier, groups: pd.DataFrame, n: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Count rows without a label by group; ``n`` says how many rows each of ``groups`` stands for.

    ``uncompared`` are groups that have rows enough, but too few labels to be compared.
    """
    n = np.ones(len(groups), dtype=int) if n is None else n
    z = group_numbers(model, groups)
    rows = np.bincount(z[z >= 0], weights=n[z >= 0], minlength=n_kinds(model))
    uncompared = {}
    other = (z < 0) | (z >= len(model.groups_))
    if model._edges is None and other.any():
        names, codes = group_codes(
            groups[other] if groups.shape[1] > 1 else groups[other].iloc[:, 0]
        )
        sizes = np.bincount(codes, weights=n[other]).astype(int)
        uncompared = {
            str(group): size
            for group, size in zip(names.tolist(), sizes.tolist(), strict=True)
            if size + model.small_groups_.get(group, 0) >= model.min_group_size
        }
    return {
        "rows": rows.astype(int).tolist(),
        "other_groups": int(n[z < 0].sum()),
        "uncompared": uncompared,
    }


def group_numbers(model: FairClassifier, groups: pd.DataFrame) -> NDArray[np.intp]:
    """Group of each row as the classifier numbers them; -1 of one that it does not know."""
    values = groups if groups.shape[1] > 1 else groups.iloc[:, 0]

    def number(part: Any) -> NDArray[np.intp]:
        return code_known_groups(
            "the model",
            model.groups_,
            part,
            len(part),
            small=model.small_groups_,
            edges=model._edges,
        )

    try:
        return number(values)
    except ValueError:
        names, codes = group_codes(values)
        found = np.full(len(names), -1, dtype=np.intp)
        for i in range(len(names)):
            with suppress(ValueError):
                found[i] = number(values[codes == i][:1])[0]
        return found[codes]


def _split(
    X: Any, y: NDArray[Any], groups: Any, test_size: float, seed: int
) -> tuple[Any, NDArray[Any], Any, NDArray[Any]]:
    """Hold back a share of the rows for a test, within each label of each group."""
    from evenhand.frontier.splits import split_rows

    z = group_codes(groups)[1]
    strata = z * len(np.unique(y)) + np.unique(y, return_inverse=True)[1]
    # A stratum of one row stays with the training rows.
    alone = np.isin(strata, np.flatnonzero(np.bincount(strata) == 1))
    rows = np.flatnonzero(~alone)
    if not len(rows):
        raise ValueError(
            f"{len(y)} rows are too few to hold some back for a test; use --test-size 0."
        )
    held = rows[split_rows(strata[rows], test_size, np.random.RandomState(seed))[1]]
    mask = np.zeros(len(y), dtype=bool)
    mask[held] = True
    return take_table_rows(X, ~mask), y[~mask], take_table_rows(X, mask), y[mask]


def _cells(pipeline: FairPipeline, X: Any, y: NDArray[Any]) -> NDArray[np.intp]:
    """Group × label of each row, groups and labels as the classifier numbers them."""
    model = pipeline[-1]
    groups, _ = pipeline.groups(X)
    z = code_known_groups(
        "the model",
        model.groups_,
        groups if groups.shape[1] > 1 else groups.iloc[:, 0],
        len(y),
        small=model.small_groups_,
        edges=model._edges,
    )
    number = {label: i for i, label in enumerate(model._labels.tolist())}
    codes = np.array([number[label] for label in y.tolist()], dtype=np.intp)
    return z * len(model.classes_) + codes


def n_kinds(model: FairClassifier) -> int:
    return len(model.groups_) + bool(model.small_groups_)


def _count_parts(
    facts: dict[str, Any], part: str, pipeline: FairPipeline, X: Any, y: NDArray[Any], encoded: Any
) -> None:
    """Write down what every point that may be chosen predicts for the rows of a part."""
    model, cell = pipeline[-1], _cells(pipeline, X, y)
    iterates, kinds = model.trajectory_.iterates, n_kinds(model)
    add_counts(
        facts, part, model, lambda p: count_points(p, iterates, encoded, None, cell, None, kinds)
    )


def add_counts(
    facts: dict[str, Any],
    part: str,
    model: FairClassifier,
    count: Callable[[Frontier], NDArray[np.float64]],
) -> None:
    """Write down the counts of the points that answer some target."""
    answers = model.answers_
    facts["answers"] = len(answers)
    facts[f"{part}_counts"] = count(answers.points.take(answers.index)).tolist()


def _add_plain(
    facts: dict[str, Any],
    part: str,
    pipeline: FairPipeline,
    X: Any,
    y: NDArray[Any],
    encoded: Any,
    w: NDArray[np.float64],
) -> None:
    """Count what plain logistic regression, where the fit began, predicts: at 0 and its best cut.

    The best cut is that of the training rows, whose part comes first.
    """
    model, cell = pipeline[-1], _cells(pipeline, X, y)
    n_labels = len(model.classes_)
    weights = w.reshape(-1, encoded.shape[1] + 1)
    scores = np.asarray(encoded @ weights[:, :-1].T) + weights[:, -1]
    scores = scores if n_labels > 2 else scores[:, 0]
    shape = (n_kinds(model), n_labels, n_labels)

    def count(cut: float) -> Any:
        answer = cell * n_labels + decide(scores, cut)
        return np.bincount(answer, minlength=int(np.prod(shape))).reshape(shape).tolist()

    facts["counts"][part] = count(0.0)
    if n_labels == 2:
        if part == "train":
            s = np.unique(scores)
            cuts = np.unique([0.0, s[0] - 1, *(s[:-1] + np.diff(s) / 2), s[-1]])
            cut = best_cut(cuts, cut_gains(scores, cell, cuts))
            facts["best_cut"] = {"cut": cut, "counts": {}}
        facts["best_cut"]["counts"][part] = count(facts["best_cut"]["cut"])


def cut_gains(
    scores: NDArray[np.float64], cell: NDArray[np.intp], cuts: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Give how many more rows are right when the cut rises to each of ``cuts`` from the one before.

    The last number is of the rows above all cuts. Odd cells are those of the favourable label.
    """
    gain = np.where(cell % 2 == 1, -1.0, 1.0)
    found = np.bincount(np.searchsorted(cuts, scores), weights=gain, minlength=len(cuts) + 1)
    return found.astype(np.float64)


def best_cut(cuts: NDArray[np.float64], gains: NDArray[np.float64]) -> float:
    """Find the most accurate of rising cuts; 0, which is among them, if no other is better."""
    right = np.cumsum(gains)[:-1]
    i = int(np.argmax(right))
    return float(cuts[i]) if right[i] > right[np.searchsorted(cuts, 0.0)] else 0.0
