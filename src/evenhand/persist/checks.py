"""What is refused of the values in a model file.

Checksums say that a file is the one that was saved, not who saved it. What a later step relies on
is checked here, so that a bad file is refused on loading and not somewhere inside: types and
sizes of plain values, shapes and ranges of arrays, and figures that contradict each other.
"""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from reprlib import repr as brief
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.rates import WorstRate, overall_accuracy
from evenhand.core.targets import COMPARISONS, Target
from evenhand.engines.chunks import MOST_ROWS
from evenhand.frontier.bounds import exact_bound, margin_of
from evenhand.frontier.held_out import HeldOut
from evenhand.frontier.points import Frontier
from evenhand.models.classifier import FairClassifier
from evenhand.models.settings import Settings
from evenhand.models.training import Fit
from evenhand.persist.archive import Limits
from evenhand.tables.formats import check_written

Shape = tuple[int, ...]
# No weight or median is so large.
LARGEST = 1e100
# Sums of the same numbers in another order differ by less.
SAME = 1e-9
# Share of the rows that another way to compute scores may put on the other side of a cut.
MOVED = 0.01

# Tables of what plain values are called and what they are: text, a truth value, a dict, a whole
# number of something in a table (int), any finite number (float), or a list of texts.
TEXTS = "texts"
PLAN = {
    **dict.fromkeys(("column", "kind", "action", "written"), str),
    **dict.fromkeys(("names", "categories"), TEXTS),
    **dict.fromkeys(("fill", "mean", "scale"), float),
    **dict.fromkeys(("indicator", "tolerant"), bool),
}
FIT = {
    **dict.fromkeys(("place", "requirement"), str),
    **dict.fromkeys(("group_cuts", "noise"), bool),
    "margin": float,
}
FACTS = {
    **dict.fromkeys(("title", "label", "test_title", "fingerprint", "command", "created"), str),
    **dict.fromkeys(("n_rows", "n_train", "n_test", "seed"), int),
    **dict.fromkeys(("sensitive", "favourable"), TEXTS),
    "versions": dict,
}
DROPPED = {"reason": str, "n": int, "whom": str}
STAND_IN = {"column": str, "auc": float}
UNLABELLED = {"other_groups": int, "uncompared": dict}
# Columns of a trajectory besides its legs and counts.
SERIES = (
    *("iteration", "alpha", "loss_c", "loss_w", "loss_u", "gap", "norm_c", "norm_f", "norm_step"),
    *("evaluations", "seconds"),
)


def check_value(name: str, value: Any, kind: Any) -> None:
    """Refuse a plain value that is not of a kind, as the tables above name it."""
    if kind is TEXTS:
        check_value(name, value, list)
        for text in value:
            check_value(name, text, str)
    elif kind is float:
        check_array(name, value, ())
    # A truth value is a whole number to Python, but none here.
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {(value if isinstance(value, str) else brief(value))[:40]!r}")
    elif kind is int and not 0 <= value <= MOST_ROWS:
        raise ValueError(f"{name} is below 0 or above {MOST_ROWS:g}")


def check_fields(values: Mapping[str, Any], table: Mapping[str, Any], name: str = "{}") -> None:
    """Refuse values that are not of the kinds of a table; ``{}`` in ``name`` is the key."""
    for key, kind in table.items():
        check_value(name.replace("{}", key), values[key], kind)


def refuse(wrong: Any, reason: str) -> None:
    """Raise an error for a reason, if something is wrong."""
    if wrong:
        raise ValueError(reason)


def shape_of(values: Any) -> Shape:
    """Give the shape of an array, or of lists in lists as the first of each has it."""
    if isinstance(values, np.ndarray | np.generic):
        return values.shape
    shape = []
    while isinstance(values, list):
        shape.append(len(values))
        values = values[0] if values else None
    return tuple(shape)


def _check_lists(name: str, values: Any, shape: Shape) -> None:
    """Refuse lists of texts, say: NumPy would make all as long as the longest."""
    if not shape:
        check_value(name, values, (int, float))
        return
    if not isinstance(values, list) or len(values) != shape[0]:
        raise ValueError(f"{name} has lists that are not of the shape {shape}")
    for inner in values:
        _check_lists(name, inner, shape[1:])


def check_array(
    name: str, values: Any, shape: Shape, most: float | None = None, *, finite: bool = True
) -> None:
    """Refuse numbers of another shape, or not from 0 to ``most`` if that is given."""
    refuse((given := shape_of(values)) != shape, f"{name} has the shape {given} and not {shape}")
    if not isinstance(values, np.ndarray | np.generic):
        _check_lists(name, values, shape)
    array = np.asarray(values)
    refuse(array.dtype.kind not in "biuf", f"{name} holds no numbers")
    # Without a copy; NaN fails the comparison.
    if finite and array.size and not (array.max() <= LARGEST and array.min() >= -LARGEST):
        raise ValueError(f"{name} has values that are no numbers, or too large")
    if most is not None and ((array < 0).any() or (array > most).any()):
        raise ValueError(f"{name} has values below 0 or above {most:g}")


def _check_counts(name: str, values: Any, shape: Shape) -> None:
    # Others would be copied whenever something is computed of them.
    if isinstance(values, np.ndarray) and values.dtype != np.float64:
        raise ValueError(f"{name} is not of float64 numbers")
    check_array(name, values, shape, MOST_ROWS)


def _check_index(name: str, values: Any, low: int, high: int) -> None:
    array = np.asarray(values)
    inside = array.dtype.kind in "iu" and ((array >= low) & (array < high)).all()
    refuse(array.size and not inside, f"{name} has numbers that are not from {low} to {high - 1}")


def _check_rows(name: str, counts: NDArray[np.float64], rows: NDArray[np.float64]) -> None:
    """Refuse points of which one has other rows of some group and label than another."""
    difference = counts.sum(axis=-1)
    difference -= rows
    np.abs(difference, out=difference)
    if difference.max(initial=0.0) > SAME * rows.sum():
        raise ValueError(f"{name} is not of the same rows at every point")


def _check_same(name: str, values: Any, expected: Any) -> None:
    if not np.allclose(values, expected, rtol=0.0, atol=SAME, equal_nan=True):
        raise ValueError(f"{name} is not what the counts give")


def _check_figures(name: str, points: Any, fit: Fit) -> None:
    """Refuse accuracies and rates that are not those of the counts."""
    rates = fit.target.value(points.counts[..., : len(fit.groups), :, :])
    figures = {"accuracy": overall_accuracy(points.counts), "rate": rates}
    for figure, expected in figures.items():
        _check_same(f"{name}.{figure}", getattr(points, figure), expected)


def check_fit(
    fit: Fit, model: FairClassifier, legs: Any, arrays: Mapping[str, NDArray[Any]], limits: Limits
) -> None:
    """Refuse a fit whose parts do not go together, and a run that is not its own.

    ``model`` has the parameters and knows the columns; ``legs`` and ``arrays`` are the record of
    the run as a file has it.
    """
    _check_inputs(fit, model)
    frontier = fit.frontier
    refuse(fit.group_cuts != model.group_cuts, "group_cuts is not what the parameter says")
    favourable = model.settings().favourable(fit.classes)
    check = partial(
        _check_frontier,
        fit=fit,
        favourable=favourable,
        n_iterates=len(arrays["kept.row"]),
        limits=limits,
    )
    check("frontier", frontier)
    refuse((np.diff(frontier.rate) < -SAME).any(), "frontier.rate does not rise")
    refuse((np.diff(frontier.accuracy) > SAME).any(), "frontier.accuracy does not fall")
    if frontier.conservative is not None:
        check("conservative", frontier.conservative)
    _check_trajectory(fit, legs, arrays, limits)


def check_choice(fit: Fit, model: FairClassifier, limits: Limits) -> None:
    """Refuse a confidence, or rows where rates are looked at, that are not the fit's."""
    sure, delta, place = fit.confidence, fit.delta, fit.place
    refuse(delta is not None and not 0 < delta < 1, f"delta is {brief(delta)}")
    if sure not in (None, "certified") and not (isinstance(sure, float) and 0.5 <= sure < 1):
        raise ValueError(f"confidence is {brief(sure)}")
    refuse((sure == "certified") == (delta is None), "confidence and delta are not of one fit")
    margin = 0.0 if isinstance(sure, str) else margin_of(sure)
    refuse(abs(fit.margin - margin) > SAME, "margin is not that of the confidence")
    expected = "holdout" if delta is not None else model.selection
    if place != expected or (fit.held_out is None) != (place == "train"):
        raise ValueError("the rows that rates were looked at on are not those of the selection")
    if fit.held_out is not None:
        _check_held_out(fit, fit.held_out, limits)


def check_names(
    classes: NDArray[Any],
    labels: NDArray[Any],
    groups: NDArray[Any],
    settings: Settings,
    limits: Limits,
) -> None:
    """Refuse groups and labels that are not different, or in another order than the fit's."""
    for name, values in (("classes", classes.tolist()), ("groups", groups.tolist())):
        if len(values) < 2 or len(set(values)) < len(values):
            raise ValueError(f"{name} are not two or more different values")
    refuse(len(groups) > limits.groups, f"there are more than {limits.groups:,} groups")
    settings.check_classes(classes, guess=False)
    ordered = settings.label_order(classes).tolist()
    if labels.tolist() != ordered or classes.tolist() != sorted(classes.tolist()):
        raise ValueError("the labels are not the classes, the favourable one of two last")


def _check_inputs(fit: Fit, model: FairClassifier) -> None:
    """Refuse inputs that are not different columns, all but that of the groups."""
    n_inputs, n_columns = len(fit.inputs), model.n_features_in_
    check_array("inputs", fit.inputs, (n_inputs,))
    _check_index("inputs", fit.inputs, 0, n_columns)
    if not n_inputs or len(np.unique(fit.inputs)) < n_inputs:
        raise ValueError("inputs are none, or one of them twice")
    names = getattr(model, "feature_names_in_", None)
    if n_columns > n_inputs + 1 or (names is not None and len(names) != n_columns):
        raise ValueError(f"there are {n_inputs} inputs of {n_columns} columns")
    if fit.edges is not None:
        check_array("edges", fit.edges, (len(fit.edges),))


def target_from(
    state: Mapping[str, Any],
    settings: Settings,
    classes: NDArray[Any],
    n_groups: int,
    limits: Limits,
) -> Target:
    """Give the target of the classifier's notion with the shares of a file, if it is the file's."""
    cells, parts, n_labels = ("numerator", "denominator"), state["parts"], len(classes)
    if sum(len(part[key]) for part in parts for key in cells) > limits.cells:
        raise ValueError("the rates have more cells than any model's")
    favourable = settings.favourable(classes)
    if n_labels > 2:
        n_pairs = n_labels**2 * len(favourable) * len(settings.notion_of(2).components)
        refuse(n_pairs > limits.pairs, "there are more labels than any model's")
    rate = settings.notion_of(n_labels, favourable).rate
    n_rates = n_groups * len(rate.components)
    refuse(n_rates > limits.rates, "the groups have more rates than any model's")
    same = len(parts) == len(rate.components) and state["name"] == rate.name
    for part, own in zip(parts, rate.components, strict=False):
        same &= (part["name"], part["is_error"]) == (own.name, own.is_error)
        same &= all(sorted(map(tuple, part[key])) == sorted(getattr(own, key)) for key in cells)
    refuse(not same, "the rate is not that of the notion")
    shares = tuple(map(float, state["shares"]))
    # A move to another target changes their last digits.
    if len(shares) != len(parts) or not np.allclose(shares, rate.shares, rtol=0.0, atol=SAME):
        raise ValueError("the rates have no shares that fit them")
    check_fields(state, {"level": float, "comparison": str})
    refuse(not 0 < state["level"] <= 1, f"the target's level is {brief(state['level'])}")
    refuse(state["comparison"] not in COMPARISONS, "groups are compared in no known way")
    rate = replace(rate, shares=shares) if isinstance(rate, WorstRate) else rate
    return Target(rate, float(state["level"]), state["comparison"])


def _check_frontier(
    name: str,
    frontier: Frontier,
    *,
    fit: Fit,
    favourable: list[int],
    n_iterates: int,
    limits: Limits,
) -> None:
    """Refuse points that are no model's, or whose figures are not those of their counts."""
    n, n_labels, last = len(frontier.rate), len(fit.classes), frontier.last
    n_groups = fit.n_groups_all
    cuts = (n_groups,) if fit.group_cuts else (n_labels,) if n_labels > 2 else ()
    refuse(n > limits.points, f"{name} has more than {limits.points:,} points")
    check_array(f"{name}.iterate", frontier.iterate, (n,))
    for column in ("accuracy", "rate"):
        check_array(f"{name}.{column}", getattr(frontier, column), (n,), 1 + SAME)
    check_array(f"{name}.cut", frontier.cut, (n, *cuts) if n else frontier.cut.shape)
    check_array(f"{name}.last.cut", last.cut, cuts)
    _check_counts(f"{name}.counts", frontier.counts, (n, n_groups, n_labels, n_labels))
    _check_counts(f"{name}.last.counts", last.counts, (n_groups, n_labels, n_labels))
    _check_index(f"{name}.iterate", np.append(frontier.iterate, last.iterate), 0, n_iterates)
    refuse(frontier.favourable != favourable, f"{name}.favourable is not the favourable label")
    refuse(frontier.rate_name != fit.rate.ratio_name, f"{name}.rate_name is not that of the notion")
    refuse(frontier.n_sure > n, f"{name} has more sure points than points")
    rows = fit.frontier.last.counts.sum(axis=-1)
    for part, points in ((name, frontier), (f"{name}.last", last)):
        _check_rows(f"{part}.counts", points.counts, rows)
        _check_figures(part, points, fit)


def _check_held_out(fit: Fit, held_out: HeldOut, limits: Limits) -> None:
    """Refuse figures of rows held out that are not those of their counts."""
    n, n_groups, certify = len(held_out.points), len(fit.groups), fit.delta
    shape = fit.frontier.last.counts.shape
    refuse(held_out.n_fitted < 1, "no rows were fitted to")
    # To find how many rows a certificate would take, some more bounds are computed.
    n_bounds = (n + 20) * n_groups * len(fit.rate.components)
    if certify is not None and n_bounds > limits.bounds:
        raise ValueError("there are more points and groups than any certified model's")
    _check_counts("held_out.counts", held_out.counts, (n, *shape))
    _check_counts("held_out.last", held_out.last, shape)
    for column in ("accuracy", "rate", "bound"):
        # A rate may be undefined among the rows held out, and a bound unknown.
        values = getattr(held_out, column)
        check_array(f"held_out.{column}", values, (n,), finite=False)
        check_array(f"held_out.{column}", np.nan_to_num(values), (n,), 1 + SAME)
    _check_figures("held_out", held_out, fit)
    _check_rows("held_out.counts", held_out.counts, held_out.last.sum(axis=-1))
    if np.isfinite(held_out.bound).any():
        _check_sizes(held_out, alike=certify is not None)
    if certify is not None:
        expected = exact_bound(
            held_out.counts[:, :n_groups], fit.target, certify, held_out.bound_name
        )
        _check_same("held_out.bound", held_out.bound, expected)


def _check_sizes(held_out: HeldOut, *, alike: bool) -> None:
    """Refuse counts of rows without weights that are not as many as is said.

    Certificates may be of weights that are all ``alike``: of the rows fitted to, the counts are
    multiples of one then.
    """
    if abs(held_out.last.sum() - held_out.n_rows) > SAME * held_out.n_rows:
        raise ValueError("held_out.counts are not of as many rows as n_rows says")
    counts = held_out.points.last.counts
    weight = counts.sum() / held_out.n_fitted
    whole = np.abs(counts / weight - np.rint(counts / weight)).max() <= 1e-6
    if not whole or not (abs(weight - 1) <= SAME or (alike and weight > 1)):
        raise ValueError("the frontier's counts are not of as many rows as n_fitted says")


def _check_trajectory(
    fit: Fit, legs: Any, arrays: Mapping[str, NDArray[Any]], limits: Limits
) -> None:
    """Refuse a record of a run, or kept iterates, that no fit of the classifier makes."""
    check_value("leg", legs, TEXTS)
    row, n, n_iterates = arrays["kept.row"], len(legs), len(arrays["kept.row"])
    refuse(max(n, n_iterates) > limits.steps, f"the run has more than {limits.steps:,} steps")
    check_array("kept.row", row, (n_iterates,))
    _check_index("kept.row", row, -1, n)
    check_array("kept.iterate", arrays["kept.iterate"], (n_iterates, n_weights(fit)))
    series = {name for name in arrays if name.startswith("trajectory.")}
    if series != ({f"trajectory.{name}" for name in ("counts", *SERIES)} if n else set()):
        raise ValueError("the trajectory does not have the columns it should have")
    for name in series - {"trajectory.counts"}:
        check_array(name, arrays[name], (n,), finite=False)
    if n:
        counts, shape = arrays["trajectory.counts"], fit.frontier.last.counts.shape
        _check_counts("trajectory.counts", counts, (n, *shape))


def n_weights(fit: Fit) -> int:
    """Count the weights of an iterate."""
    n_labels = len(fit.classes)
    return (1 if n_labels == 2 else n_labels) * (len(fit.inputs) + 1)


def check_plan(plan: Mapping[str, Any]) -> None:
    """Refuse a plan that no column can be read by."""
    if set(plan) != set(PLAN) or plan["kind"] not in ("number", "category", "date", "dropped"):
        raise ValueError(f"no plan of a column: {brief(plan)}")
    check_written(plan["kind"], plan["written"])
    column, values = plan["column"], plan["categories"]
    check_fields(plan, PLAN, f"{{}} of column {brief(column)}")
    refuse(plan["scale"] <= 0, f"the scale of column {column!r} is not above 0")
    if len(set(values)) < len(values) or (plan["kind"] == "category" and not values):
        raise ValueError(f"the categories of column {column!r} are none, or one of them twice")


def check_facts(facts: Any, classifier: FairClassifier, sensitive: list[str] | None) -> None:
    """Refuse facts of a training that a report could not be made of; others may be anything."""
    check_value("facts", facts, dict)
    if "answers" not in facts:
        return
    refuse(sensitive is None, "facts of a training need the encoder of its table")
    check_fields(facts, FACTS)
    check_value("versions", list(facts["versions"].values()), TEXTS)
    for tau in facts.get("earlier_taus", []):
        check_array("earlier_taus", tau, (), 1.0)
    for dropped in facts["rows_dropped"]:
        check_fields({"whom": ""} | dropped, DROPPED, "rows_dropped")
    # Models of earlier versions have none.
    check_value("stand_ins", facts.get("stand_ins", []), list)
    for stand_in in facts.get("stand_ins", []):
        check_fields(stand_in, STAND_IN, "stand_ins")
        refuse(not 0 <= stand_in["auc"] <= 1, f"no AUC: {stand_in['auc']!r}")
    if "unlabelled" in facts:  # some rows of the table have no label
        _check_unlabelled(facts, classifier)
    fit, used = classifier.fitted_, [facts["n_train"]]
    used += [facts["n_test"]] if facts["test_title"] != "the test table" else []
    used += [dropped["n"] for dropped in facts["rows_dropped"] if dropped.get("part") != "test"]
    refuse(facts["favourable"] != fit.favourable, "favourable is not the model's favourable label")
    refuse(facts["sensitive"] != sensitive, "sensitive is not what the model's groups are of")
    refuse(facts["n_rows"] < sum(used), "n_rows is less than the rows that were used")
    check_array("plain.weights", facts["plain"]["weights"], (n_weights(fit),))
    best = facts["plain"].get("best_cut")  # models of earlier versions, and of many labels: none
    if best is not None:
        check_array("plain.best_cut.cut", best["cut"], ())
    for part in ("train", *(["test"] if "test_counts" in facts else [])):
        _check_part(part, facts, classifier)


def _check_unlabelled(facts: Mapping[str, Any], classifier: FairClassifier) -> None:
    """Refuse counts of rows without a label that are none, or not those of this model."""
    check_value("unlabelled", facts["unlabelled"], dict)
    about, counts = {"uncompared": {}} | facts["unlabelled"], classifier.frontier_.last.counts
    check_fields(about, UNLABELLED, "unlabelled.{}")
    check_fields(about["uncompared"], dict.fromkeys(about["uncompared"], int), "unlabelled.{}")
    _check_counts("unlabelled.rows", about["rows"], counts.shape[:1])
    parts = [part for part in ("train", "test") if f"{part}_counts" in facts]
    if about["parts"] not in (parts[:1], parts):
        raise ValueError(f"unlabelled.parts is {str(about['parts'])[:40]!r}")
    if "unlabelled_counts" in facts:
        shape = (len(classifier.answers_) + 1, *counts.shape)
        _check_counts("unlabelled_counts", facts["unlabelled_counts"], shape)
        if (np.sum(facts["unlabelled_counts"], axis=(2, 3)) != np.array(about["rows"])).any():
            raise ValueError("unlabelled_counts are not those of unlabelled.rows")


def _check_part(part: str, facts: Mapping[str, Any], model: FairClassifier) -> None:
    """Refuse counts of a part of the rows that are not of those rows, or not of this model."""
    fitted, name = model.frontier_.last.counts, f"{part}_counts"
    plain, best = facts["plain"]["counts"], facts["plain"].get("best_cut")
    _check_counts(name, facts[name], (len(model.answers_) + 1, *fitted.shape))
    counts = np.array(facts[name], dtype=np.float64)
    rows = counts[-1].sum(axis=-1)
    _check_rows(name, counts, rows)
    refuse(rows.sum() != facts[f"n_{part}"], f"{name} is not of as many rows as n_{part} says")
    others = {f"plain.counts.{part}": plain[part]}
    if best is not None:
        others[f"plain.best_cut.{part}"] = best["counts"][part]
    for key, values in others.items():
        _check_counts(key, values, fitted.shape)
        _check_rows(key, np.array(values, dtype=np.float64), rows)
    if part != "train":
        return
    held_out = model.held_out_
    # What is trained with facts has no weights.
    if held_out is not None and model.selection != "crossfit":
        fitted = fitted + held_out.last
    _check_rows("the frontier", fitted, rows)
    if held_out is None and not model.fitted_.noise:
        # Scores at a cut may fall on either side of it when they are computed once more.
        moved = np.abs(counts[:-1] - model.answers_.counts).sum(axis=(1, 2, 3))
        if moved.max(initial=0.0) > 2 + MOVED * rows.sum():
            raise ValueError("train_counts are not those of the frontier's points")
