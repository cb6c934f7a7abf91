"""From a table to a defended model: audit, train, summarise.

What the command line does, as functions: each takes tables and gives plain values, prints nothing
and writes nothing.
"""

from __future__ import annotations

import hashlib
import platform
from collections.abc import Callable, Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._versions import package_version
from evenhand.classifier import FairClassifier
from evenhand.columns import as_frame, listed, read_texts
from evenhand.cuts import decide
from evenhand.frontier import Frontier
from evenhand.inputs import code_known_groups
from evenhand.persist import SavedModel
from evenhand.rates import RATES, Rate, group_codes, overall_accuracy, wilson_interval
from evenhand.selection import count_points
from evenhand.tables import (
    FairPipeline,
    TableEncoder,
    bins_by_column,
    fair_pipeline,
    find_edges,
    group_values,
    take_table_rows,
)

__all__ = [
    "audit",
    "compare_methods",
    "dataset_frame",
    "dataset_list",
    "fingerprint",
    "label_values",
    "summarise",
    "train",
]

# More labels than this are no labels but a quantity.
MOST_LABELS = 20
# More groups than this are no groups but names.
MOST_GROUPS = 100
# A number with more values than this needs bins.
MOST_VALUES = 20


def label_values(X: Any, label: str, *, least: int = 2) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Give the labels of a table, and which rows have one.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    label : str
        The column.
    least : int, default=2
        How many different values it must have.

    Returns
    -------
    tuple of (ndarray, ndarray of bool)
        Labels of the rows that have one, as whole numbers where all are, else as text; and which
        rows those are.
    """
    frame = as_frame(X)
    if label not in frame.columns:
        raise ValueError(f"the table has no column {label!r}; it has {listed(frame.columns)}.")
    texts = read_texts(frame[label])
    known = np.array([t is not None for t in texts])
    if not known.any():
        raise ValueError(f"column {label!r} has no value in any row.")
    values = texts[known].astype(str)
    distinct = np.unique(values)
    if len(distinct) < least:
        raise ValueError(
            f"column {label!r} has the value {str(distinct[0])!r} in every row; a label needs two."
        )
    if len(distinct) > MOST_LABELS:
        raise ValueError(
            f"column {label!r} has {len(distinct):,} different values, such as "
            f"{listed(distinct.tolist(), 3)}; a label has a few (at most {MOST_LABELS})."
        )
    try:
        numbers = np.array([int(v) for v in values])
    except ValueError:
        return values, known
    return numbers, known


def as_label(text: str | None, classes: NDArray[Any], column: str, option: str) -> Any:
    """Find the label that a user wrote as text."""
    for value in classes.tolist():
        if str(value) == text:
            return value
    raise ValueError(
        f"{option} {text!r} is no value of column {column!r}; it has {listed(classes.tolist())}."
    )


def _groups(
    X: Any, sensitive: Sequence[str], missing_groups: str, bins: Any = None
) -> tuple[Any, Any]:
    """Group of each row that has one, and which rows those are."""
    bins = bins_by_column(bins, sensitive)
    pipeline = FairPipeline(
        [("classifier", FairClassifier())],
        sensitive=list(sensitive),
        missing_groups=missing_groups,
        bins=bins,
    )
    values, known = pipeline.groups(X)
    check_groups(values, bins)
    return (values if values.shape[1] > 1 else values.iloc[:, 0]), known


def check_groups(values: pd.DataFrame, bins: Mapping[str, Any]) -> None:
    """Refuse sensitive columns whose values are no groups."""
    for name in values.columns:
        n = values[name].nunique()
        known_values = values[name].dropna()
        written = (str(v).replace(".", "", 1).lstrip("-").isdigit() for v in known_values.unique())
        if name not in bins and n > MOST_VALUES and all(written):
            raise ValueError(
                f"column {name!r} is a number with {n} distinct values; say with --bins which "
                f"values are a group, for example --bins {name}=30,45,60."
            )
        if n > MOST_GROUPS and not pd.api.types.is_numeric_dtype(values[name]):
            raise ValueError(
                f"column {name!r} has {n:,} different values; groups are few (at most "
                f"{MOST_GROUPS}): is it a name or a number of persons?"
            )


def fingerprint(X: Any) -> str:
    """Give a short mark of a table's values, which another table hardly has."""
    frame = as_frame(X)
    digest = hashlib.sha256()
    for name in frame.columns:
        try:
            texts: Any = read_texts(frame[name])
        except ValueError:  # lists or records, which may be in columns that are no inputs
            texts = list(map(str, frame[name].to_list()))
        values = pd.Series(texts, dtype=object)
        digest.update(name.encode())
        digest.update(pd.util.hash_pandas_object(values, index=False).to_numpy().tobytes())
    return digest.hexdigest()[:16]


# ---- audit -----------------------------------------------------------------------------------


def _interval(rate: Rate, counts: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Rate of each group with its 95% interval."""
    top, bottom = rate._fractions(counts)
    low, high = wilson_interval(top, bottom)
    return [
        {"value": _plain(a / b if b else np.nan), "low": _plain(x), "high": _plain(y)}
        for a, b, x, y in zip(top, bottom, low, high, strict=True)
    ]


def _plain(value: Any) -> float | None:
    """Give a number as JSON has it: no NaN."""
    return float(value) if np.isfinite(value) else None


def audit(
    X: Any,
    *,
    label: str | None = None,
    prediction: str | None = None,
    sensitive: Sequence[str],
    favourable: str | None = None,
    privileged: str | None = None,
    missing_groups: str = "error",
    bins: Any = None,
    tau: float = 0.8,
) -> dict[str, Any]:
    """Compare groups in a table of answers, or of labels alone.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    label, prediction : str, optional
        Columns of true labels and of predictions; at least one. With both, all rates are given;
        with one, how often each group has the favourable value of it.
    sensitive : sequence of str
        Sensitive columns; several are crossed.
    favourable : str, optional
        The favourable value; by default the larger of two.
    privileged : str, optional
        A group that the others are compared with; by default the group whose rate is largest.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group.
    bins : int, sequence of float, or mapping of str to these, optional
        Bins of sensitive numbers, as of :func:`evenhand.fair_pipeline`.
    tau : float, default=0.8
        What the ratio is held against; 0.8 is the four-fifths rule.

    Returns
    -------
    dict
        Plain values: groups with their sizes and rates, ratios, the verdict.
    """
    if label is None and prediction is None:
        raise ValueError("name a column of labels or of predictions, or both.")
    check_roles(label, sensitive)
    n_rows = len(as_frame(X))
    groups, kept = _groups(X, sensitive, missing_groups, bins)
    X = X if kept.all() else take_table_rows(X, kept)
    dropped = [{"reason": "without a group", "n": int((~kept).sum())}]
    columns = [c for c in (label, prediction) if c is not None]
    # A classifier that says the same to everybody may well be audited, beside labels.
    least = {column: 1 if column == prediction and label is not None else 2 for column in columns}
    known = np.ones(len(groups), dtype=bool)
    for column in columns:
        have = label_values(X, column, least=least[column])[1]
        dropped.append(
            {"reason": f"without a value in {column!r}", "n": int((known & ~have).sum())}
        )
        known &= have
    X, groups = (X, groups) if known.all() else (take_table_rows(X, known), groups[known])
    values = {column: label_values(X, column, least=least[column])[0] for column in columns}
    first = values[columns[0]]
    if len(columns) == 2:
        other = values[columns[1]] = _same_numbers(values[columns[1]], first)
        strange = sorted(set(map(str, other)) - set(map(str, first)))
        if strange:
            raise ValueError(
                f"column {columns[1]!r} has the value {strange[0]!r}, which column {columns[0]!r} "
                f"has not ({listed(np.unique(first).tolist())})."
            )
    classes = np.unique(first)
    if favourable is None and len(classes) > 2:
        raise ValueError(
            f"column {columns[0]!r} has {len(classes)} different values "
            f"({listed(classes.tolist())}); say which is favourable with --favourable."
        )
    good = (
        classes[-1]
        if favourable is None
        else as_label(favourable, classes, columns[0], "--favourable")
    )
    names, z = group_codes(groups)
    if len(names) < 2:
        raise ValueError(
            f"{joined(sensitive)} has one group only, {names[0]!r}; at least two are compared."
        )
    yes = {column: (v.astype(str) == str(good)) for column, v in values.items()}
    answer = yes[columns[-1]]
    truth = yes[columns[0]]
    cell = (z * 2 + truth) * 2 + answer
    counts = np.bincount(cell, minlength=4 * len(names)).reshape(-1, 2, 2).astype(float)
    rates = list(RATES.values()) if len(columns) == 2 else [RATES["selection_rate"]]
    place = None
    if privileged is not None:
        place = names.tolist().index(as_label(privileged, names, joined(sensitive), "--privileged"))
    report: dict[str, Any] = {
        "n_rows": n_rows,
        "dropped": [d for d in dropped if d["n"]],
        "label": label,
        "prediction": prediction,
        "sensitive": list(sensitive),
        "favourable": str(good),
        "privileged": privileged,
        "tau": tau,
        "groups": [str(n) for n in names.tolist()],
        "sizes": counts.sum(axis=(1, 2)).astype(int).tolist(),
        "rates": {},
        "ratios": {},
        "association": _plain(_cramers_v(z, answer)),
    }
    for rate in rates:
        report["rates"][rate.name] = _interval(rate, counts)
        values_ = rate.per_group(counts)
        if place is None:
            ratio = float(rate.ratio(counts))
        else:
            with np.errstate(invalid="ignore", divide="ignore"):
                ratio = float(np.min(np.delete(values_, place)) / values_[place])
        report["ratios"][rate.name] = _plain(ratio)
    if len(columns) == 2:
        report["accuracy"] = _plain(overall_accuracy(counts))
    ratio = report["ratios"]["selection_rate"]
    report["passed"] = bool(ratio is not None and ratio >= tau)
    return report


def _same_numbers(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Write numbers as the labels are written, so that 1 is 1.0; if some are none, change none."""
    try:
        known = {float(label): label for label in np.unique(labels)}
        written = {value: known.get(float(value), value) for value in np.unique(values)}
    except ValueError:
        return values
    return np.array([written[value] for value in values])


def _cramers_v(z: NDArray[Any], answer: NDArray[np.bool_]) -> float:
    r"""Association of group and answer, from 0 to 1; of two groups the size of the correlation."""
    table = np.bincount(z * 2 + answer, minlength=2 * (int(z.max()) + 1)).reshape(-1, 2)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    if not (expected > 0).all():
        return float("nan")
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum()))


def joined(names: Sequence[str]) -> str:
    return " × ".join(names)


# ---- training --------------------------------------------------------------------------------


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
    bins: Any = None,
    title: str = "table",
    command: str = "",
    seed: int = 0,
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
        The favourable label; by default the larger of two, and each of more.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group.
    sensitive_inputs : bool, default=False
        Whether the sensitive columns are inputs as well.
    exclude : sequence of str
        Further columns that are no inputs.
    kinds : mapping of str to str, optional
        How to read columns, as of :class:`~evenhand.TableEncoder`; found out by default.
    bins : int, sequence of float, or mapping of str to these, optional
        Bins of sensitive numbers, as of :func:`evenhand.fair_pipeline`.
    title, command : str
        What to call the table, and how the training can be repeated.
    seed : int, default=0
        Seed of the split and of the selection.
    **params
        Parameters of :class:`~evenhand.FairClassifier`.

    Returns
    -------
    SavedModel
        The fitted pipeline and the facts of its training.
    """
    check_roles(label, sensitive, kinds or {}, sensitive_inputs=sensitive_inputs)
    X, y, dropped = _labelled(X, label, sensitive, missing_groups, bins)
    bins = bins_by_column(bins, sensitive)
    if len(sensitive) > 1:
        # On all rows, so that those held back are in the same bins.
        bins = find_edges(group_values(X, sensitive, numbers=list(bins)), bins)
    mark = fingerprint(X)
    groups, _ = _groups(X, sensitive, missing_groups, bins)
    n_rows = len(y) + sum(d["n"] for d in dropped)
    classes = np.unique(y)
    if favourable is not None:
        params["pos_label"] = as_label(favourable, classes, label, "--favourable")
    # What a column holds is seen on all rows, so that it does not depend on who is held back.
    outside = [label, *exclude]
    hidden = () if sensitive_inputs else list(sensitive)
    look = TableEncoder(exclude=outside, sensitive=hidden, kinds=kinds)
    look.fit(X, y)
    X_test = y_test = None
    if test is not None:
        X_test, y_test, _ = _labelled(test, label, sensitive, missing_groups, bins)
        unknown = sorted(set(y_test.tolist()) - set(classes.tolist()), key=str)
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
        encoder=TableEncoder(exclude=outside, kinds=kinds),
        bins=bins,
        random_state=seed,
        **params,
    )
    pipeline.fit(X, y, encoder__readings=look.readings_)
    model: FairClassifier = pipeline[-1]
    facts: dict[str, Any] = {
        "title": title,
        "label": label,
        "sensitive": list(sensitive),
        "n_rows": n_rows,
        "rows_dropped": dropped,
        "n_train": len(y),
        "n_test": 0 if y_test is None else len(y_test),
        "test_title": "the test table" if test is not None else "held back from the start",
        "fingerprint": mark,
        "seed": seed,
        "command": command,
    } | facts_of_fit(model)
    plain = model.trajectory_.iterates[:1]
    facts["plain"] = {"weights": plain[0].tolist(), "counts": {}}
    encoded = pipeline[:-1].transform(X)
    facts["plain"]["counts"]["train"] = _plain_counts(pipeline, X, y, encoded, plain).tolist()
    _count_parts(facts, "train", pipeline, X, y, encoded)
    if y_test is not None:
        encoded = pipeline[:-1].transform(X_test)
        facts["plain"]["counts"]["test"] = _plain_counts(
            pipeline, X_test, y_test, encoded, plain
        ).tolist()
        _count_parts(facts, "test", pipeline, X_test, y_test, encoded)
    return SavedModel(pipeline, facts)


def check_roles(
    label: str | None,
    sensitive: Sequence[str],
    kinds: Collection[str] = (),
    *,
    sensitive_inputs: bool = False,
) -> None:
    """Refuse a label that is sensitive, and a kind for a column that is no input."""
    if label in sensitive:
        raise ValueError(f"column {label!r} cannot be both the label and the sensitive one.")
    twice = [name for i, name in enumerate(sensitive) if name in sensitive[:i]]
    if twice:
        raise ValueError(f"the sensitive column {twice[0]!r} is named twice; name it once.")
    for name in kinds:
        if name == label or (name in sensitive and not sensitive_inputs):
            what = "the label" if name == label else "sensitive"
            raise ValueError(f"column {name!r} is {what}, no input, so it cannot have a kind.")


def facts_of_fit(model: FairClassifier, *packages: str) -> dict[str, Any]:
    """Give what is known of any fit: favourable labels, time, versions of these packages, too."""
    used = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas", *packages)
    return {
        "favourable": [str(model._labels[c]) for c in model.frontier_.favourable],
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version()} | {p: package_version(p) for p in used},
    }


def _labelled(
    X: Any, label: str, sensitive: Sequence[str], missing_groups: str, bins: Any = None
) -> tuple[Any, NDArray[Any], list[dict[str, Any]]]:
    """Rows that have a label and a group, their labels, and what was left out."""
    _, kept = _groups(X, sensitive, missing_groups, bins)
    dropped = [{"reason": f"without a value in {joined(sensitive)!r}", "n": int((~kept).sum())}]
    X = X if kept.all() else take_table_rows(X, kept)
    y, known = label_values(X, label)
    dropped.append({"reason": f"without a value in {label!r}", "n": int((~known).sum())})
    X = X if known.all() else take_table_rows(X, known)
    return X, y, [d for d in dropped if d["n"]]


def _split(
    X: Any, y: NDArray[Any], groups: Any, test_size: float, seed: int
) -> tuple[Any, NDArray[Any], Any, NDArray[Any]]:
    """Hold back a share of the rows for a test, within each label of each group."""
    from evenhand.selection import split_rows

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
    """Write down the counts of the frontier's points, and of those off it that may be certified."""
    facts[f"{part}_counts"] = count(model.frontier_).tolist()
    if model._certify is not None and model.held_out_ is not None:
        found = facts.setdefault("candidate_counts", {})
        found[part] = count(model.held_out_.points).tolist()


def _plain_counts(
    pipeline: FairPipeline, X: Any, y: NDArray[Any], encoded: Any, w: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Count what plain logistic regression predicts: where the fit began, at the cut 0."""
    model, cell = pipeline[-1], _cells(pipeline, X, y)
    n_labels = len(model.classes_)
    weights = w.reshape(-1, encoded.shape[1] + 1)
    scores = np.asarray(encoded @ weights[:, :-1].T) + weights[:, -1]
    answer = decide(scores if n_labels > 2 else scores[:, 0], 0.0)
    shape = (n_kinds(model), n_labels, n_labels)
    return (
        np.bincount(cell * n_labels + answer, minlength=int(np.prod(shape)))
        .reshape(shape)
        .astype(float)
    )


# ---- summary ---------------------------------------------------------------------------------


def summarise(saved: SavedModel) -> dict[str, Any]:
    """Give what a report needs to know of a saved model, as plain values.

    Parameters
    ----------
    saved : SavedModel
        What :func:`train` gave or :func:`evenhand.persist.load_model` loaded.

    Returns
    -------
    dict
        Plain values; the keys are those of :func:`evenhand.report.render`.
    """
    pipeline, facts = saved.model, saved.facts
    model: FairClassifier = pipeline[-1]
    frontier, rate = model.frontier_, model._rate
    shares = getattr(rate, "shares", ()) or (1.0,) * len(rate.parts)
    n_train = int(facts["n_train"])
    parts = [{"key": "train", "title": "training rows", "n": n_train, "weighted": False}]
    test = facts.get("test_counts")
    if test is not None:
        parts.append(
            {"key": "test", "title": "test rows", "n": int(facts["n_test"]), "weighted": False}
        )
    points = []
    for i in range(len(frontier)):
        counts = {"train": facts["train_counts"][i]}
        if test is not None:
            counts["test"] = test[i]
        points.append(
            {
                "accuracy": _plain(frontier.accuracy[i]),
                "rate": _plain(frontier.rate[i]),
                "sure": i < frontier.n_sure,
                "counts": counts,
            }
        )
    curves = model.trajectory_.to_frame()
    names = ("leg", "iteration", "loss_c", "loss_u", "accuracy", "rate")
    return {
        "title": facts["title"],
        "asked": {
            "label": facts["label"],
            "favourable": facts["favourable"],
            "sensitive": facts["sensitive"],
            "notions": [model.notion] if isinstance(model.notion, str) else list(model.notion),
            "taus": [float(t) for t in np.atleast_1d(model.tau)],
            "selection": model.selection,
            "delta": model.delta if model.selection == "certified" else None,
        },
        "reached": {
            "feasible": bool(model.feasible_),
            "rate": _plain(model.rate_),
            "accuracy": _plain(model.accuracy_),
            "where": model._where,
            "guarantee": None if model.guarantee_ is None else str(model.guarantee_),
        },
        "rate": {
            "name": rate.ratio_name,
            "parts": [
                {
                    "name": part.name,
                    "numerator": [list(c) for c in part.numerator],
                    "denominator": [list(c) for c in part.denominator],
                    "share": float(share),
                }
                for part, share in zip(rate.parts, shares, strict=True)
            ],
        },
        "groups": [str(g) for g in model.groups_.tolist()],
        "labels": [str(v) for v in model._labels.tolist()],
        "parts": parts,
        "points": points,
        "chosen": _chosen(frontier, model.point_),
        "saved": {
            "accuracy": _plain(model.point_.accuracy),
            "rate": _plain(model.point_.rate),
            "sure": True,
            "counts": _saved_counts(model, facts),
        },
        "tau": float(np.max(model.tau)),
        "plain": {"counts": facts["plain"]["counts"]},
        "curves": {
            name: [v if isinstance(v, str) else _plain(v) for v in curves[name].tolist()]
            for name in names
        },
        "weights": _changed_weights(pipeline, facts["plain"]["weights"]),
        "data": {
            "rows": int(facts["n_rows"]),
            "rows_dropped": facts["rows_dropped"],
            "decisions": _decisions(pipeline, facts["label"]),
            "small_groups": {str(g): int(n) for g, n in model.small_groups_.items()},
            "fingerprint": facts["fingerprint"],
        },
        "about": {name: facts[name] for name in ("versions", "seed", "command", "created")},
    }


def _decisions(pipeline: FairPipeline, label: str) -> list[dict[str, Any]]:
    """Give what became of each column, the label by its name."""
    found = pipeline.named_steps["encoder"].decisions().to_dict("records")
    return [
        d | {"kind": "label", "action": "what is predicted"} if d["column"] == label else d
        for d in found
    ]


def _chosen(frontier: Frontier, point: Any) -> int | None:
    """Find the chosen point on the frontier; a certified one may be off it."""
    for i in range(len(frontier)):
        if frontier.iterate[i] == point.iterate and np.array_equal(frontier.cut[i], point.cut):
            return i
    return None


def _saved_counts(model: FairClassifier, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Find the chosen point's counts on each part; none if an earlier version did not count it.

    The point is on the frontier, or the last iterate if none was eligible, or one of those off the
    frontier that may be certified.
    """
    keys = [key for key in ("train", "test") if f"{key}_counts" in facts]
    point, frontier = model.point_, model.frontier_
    on = {key: facts[f"{key}_counts"] for key in keys}
    off = facts.get("candidate_counts", {})
    i = _chosen(frontier, point)
    if i is not None:
        return {key: on[key][i] for key in keys}
    if off and model.held_out_ is not None:
        i = _chosen(model.held_out_.points, point)
        if i is not None:
            return {key: off[key][i] for key in keys}
    last = frontier.last
    if last.iterate == point.iterate and np.array_equal(last.cut, point.cut):
        return {key: on[key][-1] for key in keys}
    return {}


def _changed_weights(
    pipeline: FairPipeline, plain: Sequence[float], most: int = 20
) -> list[dict[str, Any]]:
    """Weights that differ most from those of plain logistic regression, of the last label."""
    model = pipeline[-1]
    names = [str(n) for n in pipeline.named_steps["encoder"].get_feature_names_out()]
    before = np.reshape(plain, (-1, len(names) + 1))[-1, :-1] * model._sign
    after = model.coef_[-1]
    order = np.argsort(-np.abs(after - before), kind="stable")[:most]
    return [{"name": names[i], "fair": float(after[i]), "plain": float(before[i])} for i in order]


# ---- comparison and datasets -----------------------------------------------------------------

# Methods of evenhand itself that are quick, for a first look.
QUICK = ("evenhand", "accuracy_only", "reweighing", "zhang", "celis", "group_thresholds")


def compare_methods(
    X: Any,
    *,
    label: str,
    sensitive: Sequence[str],
    methods: Sequence[str] | None = None,
    taus: Sequence[float] = (0.8, 0.9),
    notion: str = "statistical_parity",
    favourable: str | None = None,
    splits: int = 3,
    jobs: int = 1,
    seed: int = 0,
    missing_groups: str = "error",
    bins: Any = None,
    verbose: int = 0,
) -> pd.DataFrame:
    """Compare evenhand with other methods on a table's rows.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    label, sensitive, favourable, missing_groups, bins
        As of :func:`train`.
    methods : sequence of str, optional
        Names in :data:`evenhand.peers.METHODS`; those that are quick by default.
    taus, notion, splits, jobs, seed, verbose
        As of :func:`evenhand.peers.compare`.

    Returns
    -------
    DataFrame
        What :func:`evenhand.peers.compare` gives.
    """
    from evenhand.peers import METHODS, compare

    unknown = [method for method in methods or () if method not in METHODS]
    if unknown:
        raise ValueError(f"--method {unknown[0]!r}; use one of {', '.join(map(repr, METHODS))}.")
    check_roles(label, sensitive)
    X, y, _ = _labelled(X, label, sensitive, missing_groups, bins)
    groups, _ = _groups(X, sensitive, missing_groups, bins)
    classes = np.unique(y)
    if len(classes) > 2 and favourable is None:
        raise ValueError(
            f"column {label!r} has {len(classes)} different values; the comparison is for two: say "
            "which one is favourable with --favourable, and the others are taken together."
        )
    good = (
        classes[-1] if favourable is None else as_label(favourable, classes, label, "--favourable")
    )
    wanted = list(
        methods or [key for key in QUICK if notion in (METHODS[key].notions or (notion,))]
    )
    table = X if isinstance(X, pd.DataFrame) else as_frame(X).to_pandas()
    # What a column holds is seen on all rows, so that every split reads it alike.
    plans = TableEncoder(exclude=[label, *sensitive]).fit(table).plans_
    kinds = {p.column: ", ".join(filter(None, [p.kind, p.written])) for p in plans}
    outside = [p.column for p in plans if p.kind == "dropped"]
    kinds = {column: kind for column, kind in kinds.items() if column not in outside}
    return compare(
        table,
        (y == good).astype(int),
        pd.Series(group_codes(groups)[0][group_codes(groups)[1]]),
        methods=wanted,
        notion=notion,
        taus=list(taus),
        n_splits=splits,
        transformer=TableEncoder(exclude=outside, kinds=kinds),
        random_state=seed,
        n_jobs=jobs,
        verbose=verbose,
    )


def dataset_list() -> list[dict[str, Any]]:
    """List the datasets, as plain values."""
    from evenhand.datasets import DATASETS

    inside = ("adult", "german")
    return [
        {
            "name": d.name,
            "title": d.title,
            "rows": d.rows,
            "what": d.what,
            "label": d.label,
            "favourable": str(d.favourable),
            "sensitive": [s.name for s in d.sensitive],
            "loader": f"evenhand.datasets.{d.loader}",
            "inside": d.name in inside,
            "licence": d.licence,
        }
        for d in DATASETS.values()
    ]


def dataset_frame(name: str) -> pd.DataFrame:
    """Give a dataset's table with its label and sensitive columns in it.

    Parameters
    ----------
    name : str
        Its name in :data:`evenhand.datasets.DATASETS`.
    """
    from evenhand import datasets

    if name not in datasets.DATASETS:
        raise ValueError(
            f"there is no dataset {name!r}; there are {listed(list(datasets.DATASETS))}."
        )
    record = datasets.DATASETS[name]
    data = getattr(datasets, record.loader)()
    missing = {} if record.label in data.frame else {record.label: data.target}
    return pd.DataFrame(data.frame.assign(**missing))
