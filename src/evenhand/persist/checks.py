"""What is refused of the values in a model file.

Checksums say that a file is the one that was saved, not who saved it. What a later step relies on
is checked here, so that a bad file is refused on loading and not somewhere inside: types and
sizes of plain values, shapes and ranges of arrays, and figures that contradict each other.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from reprlib import repr as brief
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.rates import Partition, WorstRate, overall_accuracy
from evenhand.core.targets import Target
from evenhand.engines.chunks import MOST_ROWS
from evenhand.frontier.held_out import HeldOut
from evenhand.frontier.points import Frontier
from evenhand.models.classifier import FairClassifier
from evenhand.models.settings import Settings
from evenhand.models.training import Fit
from evenhand.persist.archive import Limits, refuse
from evenhand.statistics.bounds import BOUNDS, margin_of
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
MATTERS = {"column": str, "label": float, "group": float}
UNLABELLED = {"other_groups": int, "uncompared": dict}
# What is said in two places.
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
    # A truth value is a whole number to Python, but not here.
    elif not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        _check_good(name, value, False)
    elif kind is int:
        refuse(not 0 <= value <= MOST_ROWS, "out_of_range", name=name, most=MOST_ROWS)


def check_fields(values: Mapping[str, Any], table: Mapping[str, Any], name: str = "{}") -> None:
    """Refuse values that are not of the kinds of a table; ``{}`` in ``name`` is the key."""
    for key, kind in table.items():
        check_value(name.replace("{}", key), values[key], kind)


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
    uneven = not isinstance(values, list) or len(values) != shape[0]
    refuse(uneven, "uneven_lists", name=name)
    for inner in values:
        _check_lists(name, inner, shape[1:])


def check_array(
    name: str, values: Any, shape: Shape, most: float | None = None, *, finite: bool = True
) -> None:
    """Refuse numbers of another shape, or not from 0 to ``most`` if that is given."""
    refuse((given := shape_of(values)) != shape, "other_shape", name=name, given=given, shape=shape)
    if not isinstance(values, np.ndarray | np.generic):
        _check_lists(name, values, shape)
    array = np.asarray(values)
    refuse(array.dtype.kind not in "biuf", "no_numbers", name=name)
    # Without a copy; NaN fails the comparison.
    wrong = finite and array.size and not (array.max() <= LARGEST and array.min() >= -LARGEST)
    refuse(wrong, "not_finite", name=name)
    outside = most is not None and ((array < 0).any() or (array > most).any())
    refuse(outside, "out_of_range", name=name, most=most)


def _check_counts(name: str, values: Any, shape: Shape) -> None:
    # Others would be copied whenever something is computed of them.
    other = isinstance(values, np.ndarray) and values.dtype != np.float64
    refuse(other, "other_dtype", name=name)
    check_array(name, values, shape, MOST_ROWS)


def check_index(name: str, values: Any, low: int, high: int) -> None:
    """Refuse what are no whole numbers from ``low`` to below ``high``."""
    array = np.asarray(values)
    inside = array.dtype.kind in "iu" and ((array >= low) & (array < high)).all()
    refuse(array.size and not inside, "bad_index", name=name, low=low, high=high - 1)


def _check_rows(name: str, counts: NDArray[np.float64], rows: NDArray[np.float64]) -> None:
    """Refuse points that do not all have the same rows of each group and label."""
    difference = counts.sum(axis=-1)
    difference -= rows
    np.abs(difference, out=difference)
    other = difference.max(initial=0.0) > SAME * rows.sum()
    refuse(other, "other_rows", name=name)


def _check_same(name: str, values: Any, expected: Any) -> None:
    same = np.allclose(values, expected, rtol=0.0, atol=SAME, equal_nan=True)
    refuse(not same, "contradicts_counts", name=name)


def _check_agrees(name: str, agrees: Any) -> None:
    """Refuse what contradicts the rest of the file."""
    refuse(not agrees, "contradiction", name=name)


def _check_number(what: str, n: int, most: int) -> None:
    """Refuse more of something than any model has."""
    refuse(n > most, "too_many", what=what, most=most)


def _check_good(name: str, value: Any, good: bool) -> None:
    """Refuse a plain value that no fit has."""
    shown = value if isinstance(value, str) else brief(value)
    refuse(not good, "bad_value", name=name, value=shown[:40])


def _check_figures(name: str, points: Any, fit: Fit) -> None:
    """Refuse accuracies and rates that do not follow from the counts."""
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
    _check_agrees("group_cuts", fit.group_cuts == model.group_cuts)
    favourable = model.settings().favourable(fit.classes)
    check = partial(
        _check_frontier,
        fit=fit,
        favourable=favourable,
        n_iterates=len(arrays["kept.row"]),
        limits=limits,
    )
    check("frontier", frontier)
    for name, falls in (("rate", -frontier.rate), ("accuracy", frontier.utility)):
        unordered = (np.diff(falls) > SAME).any()
        refuse(unordered, "unordered_points", name=name)
    if frontier.conservative is not None:
        check("conservative", frontier.conservative)
    _check_trajectory(fit, legs, arrays, limits)


def check_choice(fit: Fit, model: FairClassifier, limits: Limits) -> None:
    """Refuse a confidence, or rows where rates are looked at, that are not the fit's."""
    sure, delta, place = fit.confidence, fit.delta, fit.place
    number = isinstance(sure, float) and 0.5 <= sure < 1
    _check_good("delta", delta, delta is None or 0 < delta < 1)
    _check_good("confidence", sure, sure in (None, "certified") or number)
    wrong = (sure == "certified") == (delta is None)
    refuse(wrong, "confidence_without_delta")
    margin = 0.0 if isinstance(sure, str) else margin_of(sure)
    _check_agrees("margin", abs(fit.margin - margin) <= SAME)
    expected = ["holdout"] if delta is not None else [model.selection]
    expected += ["left_out"] * (expected == ["train"])
    refuse(place not in expected or (fit.held_out is None) != (place == "train"), "other_selection")
    if fit.held_out is not None:
        check_held_out(fit, fit.held_out, limits)


def check_names(
    classes: NDArray[Any],
    labels: NDArray[Any],
    groups: NDArray[Any],
    settings: Settings,
    limits: Limits,
) -> None:
    """Refuse groups and labels that are not different, or in another order than the fit's."""
    for name, values in (("classes", classes.tolist()), ("groups", groups.tolist())):
        wrong = len(values) < 2 or len(set(values)) < len(values)
        refuse(wrong, "not_different", name=name)
    _check_number("groups", len(groups), limits.groups)
    settings.check_classes(classes, guess=False)
    ordered = settings.label_order(classes).tolist()
    refuse(
        labels.tolist() != ordered or classes.tolist() != sorted(classes.tolist()),
        "unordered_labels",
    )


def _check_inputs(fit: Fit, model: FairClassifier) -> None:
    """Refuse inputs that are not different columns: all, or all but the column of the groups."""
    n_inputs, n_columns = len(fit.inputs), model.n_features_in_
    check_array("inputs", fit.inputs, (n_inputs,))
    check_index("inputs", fit.inputs, 0, n_columns)
    wrong = not n_inputs or len(np.unique(fit.inputs)) < n_inputs
    refuse(wrong, "repeated_inputs")
    names = getattr(model, "feature_names_in_", None)
    refuse(n_columns > n_inputs + 1, "other_columns", n_inputs=n_inputs, n_columns=n_columns)
    n_names = n_columns if names is None else len(names)
    refuse(n_names != n_columns, "other_columns", n_inputs=n_columns, n_columns=n_names)
    if fit.edges is not None:
        check_array("edges", fit.edges, (len(fit.edges),))


def partitions_from(state: Any, settings: Settings, n_groups: int) -> tuple[Partition, ...]:
    """Give the groups of each attribute; refuse such as no fit has."""
    check_value("partitions", state, list)
    _check_agrees("partitions", not state or settings.attributes != "crossed")
    found = []
    for about in state:
        check_fields(about, {"name": str, "groups": TEXTS, "members": list, "small": list})
        for group, n in about["small"]:
            check_value("small", group, str)
            check_value("small", n, int)
        members = tuple(tuple(one) for one in about["members"])
        for number in (numbers := [j for one in members for j in one]):
            check_value("members", number, int)
        good = len(members) == len(about["groups"]) > 1 and all(members)
        good &= len(set(numbers)) == len(numbers) and set(numbers) <= set(range(n_groups))
        _check_agrees("partitions", good)
        small = tuple((group, n) for group, n in about["small"])
        found.append(Partition(about["name"], tuple(about["groups"]), members, small))
    return tuple(found)


def target_from(
    state: Mapping[str, Any],
    settings: Settings,
    classes: NDArray[Any],
    n_groups: int,
    partitions: Sequence[Partition],
    limits: Limits,
) -> Target:
    """Give the target of the classifier's notion with the shares of a file, if it is the file's."""
    cells, parts, n_labels = ("numerator", "denominator"), state["parts"], len(classes)
    n_cells = sum(len(part[key]) for part in parts for key in cells)
    _check_number("cells", n_cells, limits.cells)
    favourable = settings.favourable(classes)
    if n_labels > 2:
        n_pairs = n_labels**2 * len(favourable) * len(settings.notion_of(2).components)
        _check_number("pairs", n_pairs, limits.pairs)
    own = settings.target_of(n_labels, favourable, partitions)
    rate = own.rate
    n_rates = n_groups * len(rate.components)
    _check_number("rates", n_rates, limits.rates)
    same = len(parts) == len(rate.components) and state["name"] == rate.name
    for part, ours in zip(parts, rate.components, strict=False):
        same &= (part["name"], part["is_error"]) == (ours.name, ours.is_error)
        same &= all(sorted(map(tuple, part[key])) == sorted(getattr(ours, key)) for key in cells)
    _check_agrees("the rate", same)
    _check_agrees("comparison", state["comparison"] == own.comparison)
    _check_agrees("kinds", tuple(state.get("kinds", own.kinds)) == own.kinds)
    target = _with_level(own, state)
    # A move to another target changes the last digits of shares.
    _check_agrees("shares", target.like(own))
    return target


def other_target(state: Mapping[str, Any], target: Target) -> Target:
    """Give the target of the other comparison that a file has points for."""
    _check_agrees("other", state["comparison"] in [one.comparison for one in target.others])
    return _with_level(target.others[0], state)


def _with_level(own: Target, state: Mapping[str, Any]) -> Target:
    """Give a target with the level and the shares of a file."""
    check_fields(state, {"level": float, "comparison": str})
    level, shares = float(state["level"]), tuple(map(float, state["shares"]))
    _check_good("level", level, own.worst <= level <= own.worst + 1)
    n = len(own.kinds)
    good = len(shares) == n and all(0 < c < LARGEST for c in shares)
    _check_agrees("shares", good and (isinstance(own.rate, WorstRate) or shares == (1.0,)))
    rate = replace(own.rate, shares=shares) if isinstance(own.rate, WorstRate) else own.rate
    return replace(own, rate=rate, level=level)


def _check_frontier(
    name: str,
    frontier: Frontier,
    *,
    fit: Fit,
    favourable: list[int],
    n_iterates: int,
    limits: Limits,
) -> None:
    """Refuse points that are no model's, or whose figures do not follow from their counts."""
    n, n_labels, last = len(frontier.rate), len(fit.classes), frontier.last
    n_groups = fit.n_groups_all
    cuts = (n_groups,) if fit.group_cuts else (n_labels,) if n_labels > 2 else ()
    _check_number("points", n, limits.points)
    check_array(f"{name}.iterate", frontier.iterate, (n,))
    for column, worst in (("accuracy", 0.0), ("rate", fit.target.worst)):
        check_array(f"{name}.{column}", getattr(frontier, column) - worst, (n,), 1 + SAME)
    check_array(f"{name}.cut", frontier.cut, (n, *cuts) if n else frontier.cut.shape)
    check_array(f"{name}.last.cut", last.cut, cuts)
    _check_counts(f"{name}.counts", frontier.counts, (n, n_groups, n_labels, n_labels))
    _check_counts(f"{name}.last.counts", last.counts, (n_groups, n_labels, n_labels))
    check_index(f"{name}.iterate", np.append(frontier.iterate, last.iterate), 0, n_iterates)
    _check_agrees(f"{name}.favourable", frontier.favourable == favourable)
    _check_agrees(f"{name}.rate_name", frontier.rate_name == fit.target.name)
    _check_agrees(f"{name}.n_sure", frontier.n_sure <= n)
    rows = fit.frontier.last.counts.sum(axis=-1)
    for part, points in ((name, frontier), (f"{name}.last", last)):
        _check_rows(f"{part}.counts", points.counts, rows)
        _check_figures(part, points, fit)


def check_held_out(fit: Fit, held_out: HeldOut, limits: Limits) -> None:
    """Refuse figures of rows held out that do not follow from their counts."""
    n, n_groups, certify = len(held_out.points), len(fit.groups), fit.delta
    shape = fit.frontier.last.counts.shape
    refuse(held_out.n_fitted < 1, "no_fitted_rows")
    # To find how many rows a certificate would take, some more bounds are computed.
    n_pairs = n_groups**2 * len(fit.rate.components)
    if certify is not None:
        tested = BOUNDS[held_out.bound_name].spread(np.arange(n), n_groups)
        _check_number("bounds", (len(tested) + 20) * n_pairs, limits.bounds)
        _check_number("rows held out", held_out.n_rows, limits.held_out)
    _check_counts("held_out.counts", held_out.counts, (n, *shape))
    _check_counts("held_out.last", held_out.last, shape)
    worst = fit.target.worst
    for column, least in (("accuracy", 0.0), ("rate", worst), ("bound", worst)):
        # A rate may be undefined among the rows held out, and a bound unknown.
        values = getattr(held_out, column) - least
        check_array(f"held_out.{column}", values, (n,), finite=False)
        check_array(f"held_out.{column}", np.nan_to_num(values), (n,), 1 + SAME)
    _check_figures("held_out", held_out, fit)
    _check_rows("held_out.counts", held_out.counts, held_out.last.sum(axis=-1))
    if np.isfinite(held_out.bound).any():
        _check_sizes(held_out, alike=certify is not None)
    if certify is not None:
        _check_same("held_out.bound", held_out.bound, held_out.bounds(fit.target, certify))


def _check_sizes(held_out: HeldOut, *, alike: bool) -> None:
    """Refuse counts of rows without weights that are not as many as is said.

    Certificates may be of weights that are all ``alike``: of the rows fitted to, the counts are
    multiples of one then.
    """
    same = abs(held_out.last.sum() - held_out.n_rows) <= SAME * held_out.n_rows
    _check_agrees("held_out.n_rows", same)
    counts = held_out.points.last.counts
    weight = counts.sum() / held_out.n_fitted
    whole = np.abs(counts / weight - np.rint(counts / weight)).max() <= 1e-6
    fits = whole and (abs(weight - 1) <= SAME or (alike and weight > 1))
    _check_agrees("held_out.n_fitted", bool(fits))


def _check_trajectory(
    fit: Fit, legs: Any, arrays: Mapping[str, NDArray[Any]], limits: Limits
) -> None:
    """Refuse a record of a run, or kept iterates, that no fit of the classifier makes."""
    check_value("leg", legs, TEXTS)
    row, n, n_iterates = arrays["kept.row"], len(legs), len(arrays["kept.row"])
    n_steps = max(n, n_iterates)
    _check_number("steps", n_steps, limits.steps)
    check_array("kept.row", row, (n_iterates,))
    check_index("kept.row", row, -1, n)
    check_array("kept.iterate", arrays["kept.iterate"], (n_iterates, n_weights(fit)))
    series = {name for name in arrays if name.startswith("trajectory.")}
    columns = {f"trajectory.{name}" for name in ("counts", *SERIES)}
    _check_agrees("trajectory", series == (columns if n else set()))
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
    kinds = ("number", "category", "date", "score", "dropped")
    wrong = set(plan) != set(PLAN) or plan["kind"] not in kinds
    refuse(wrong, "bad_plan", plan=brief(plan))
    check_written(plan["kind"], plan["written"])
    column, values = plan["column"], plan["categories"]
    check_fields(plan, PLAN, f"{{}} of column {brief(column)}")
    wrong = plan["scale"] <= 0
    refuse(wrong, "bad_scale", column=column)
    refuse(
        len(set(values)) < len(values) or (plan["kind"] == "category" and not values),
        "repeated_categories",
        column=column,
    )


def check_facts(facts: Any, classifier: FairClassifier, sensitive: list[str] | None) -> None:
    """Refuse facts of a training that a report could not be made of; others may be anything."""
    check_value("facts", facts, dict)
    if "answers" not in facts:
        return
    refuse(sensitive is None, "no_encoder")
    check_fields(facts, FACTS)
    check_value("versions", list(facts["versions"].values()), TEXTS)
    for tau in facts.get("earlier_taus", []):
        check_value("earlier_taus", tau, float)
        check_array("earlier_taus", abs(tau), (), 1.0)
    if facts.get("weight") is not None:
        check_value("weight", facts["weight"], str)
    for dropped in facts["rows_dropped"]:
        check_fields({"whom": ""} | dropped, DROPPED, "rows_dropped")
    # Models of earlier versions have none.
    check_value("stand_ins", facts.get("stand_ins", []), list)
    for stand_in in facts.get("stand_ins", []):
        check_fields(stand_in, STAND_IN, "stand_ins")
        check_array("auc", stand_in["auc"], (), 1.0)
    check_value("matters", facts.get("matters", []), list)  # of boosted models
    for matters in facts.get("matters", []):
        check_fields(matters, MATTERS, "matters")
    if "unlabelled" in facts:  # some rows of the table have no label
        _check_unlabelled(facts, classifier)
    fit, used = classifier.fitted_, [facts["n_train"]]
    used += [facts["n_test"]] if facts["test_title"] != "the test table" else []
    used += [dropped["n"] for dropped in facts["rows_dropped"] if dropped.get("part") != "test"]
    _check_agrees("favourable", facts["favourable"] == fit.favourable)
    _check_agrees("sensitive", facts["sensitive"] == sensitive)
    _check_agrees("n_rows", facts["n_rows"] >= sum(used))
    check_array("plain.weights", facts["plain"]["weights"], (n_weights(fit),))
    best = facts["plain"].get("best_cut")  # models of earlier versions, and of many labels: none
    if best is not None:
        check_array("plain.best_cut.cut", best["cut"], ())
    for part in ("train", *(["test"] if "test_counts" in facts else [])):
        _check_part(part, facts, classifier)
        name, counts = f"{part}_counts", classifier.frontier_.last.counts
        if "other" in facts:
            check_value("other", facts["other"], dict)
            other = np.asarray(facts["other"][name])
            _check_counts(name, facts["other"][name], (len(other), *counts.shape))
            _check_rows(name, other.astype(float), np.array(facts[name][-1]).sum(axis=-1))


def _check_unlabelled(facts: Mapping[str, Any], classifier: FairClassifier) -> None:
    """Refuse counts of rows without a label that are no counts, or not of this model."""
    check_value("unlabelled", facts["unlabelled"], dict)
    about, counts = {"uncompared": {}} | facts["unlabelled"], classifier.frontier_.last.counts
    check_fields(about, UNLABELLED, "unlabelled.{}")
    check_fields(about["uncompared"], dict.fromkeys(about["uncompared"], int), "unlabelled.{}")
    _check_counts("unlabelled.rows", about["rows"], counts.shape[:1])
    parts = [part for part in ("train", "test") if f"{part}_counts" in facts]
    _check_agrees("unlabelled.parts", about["parts"] in (parts[:1], parts))
    if "unlabelled_counts" in facts:
        shape = (len(classifier.answers_) + 1, *counts.shape)
        _check_counts("unlabelled_counts", facts["unlabelled_counts"], shape)
        same = np.sum(facts["unlabelled_counts"], axis=(2, 3)) == np.array(about["rows"])
        _check_agrees("unlabelled_counts", bool(np.all(same)))


def _check_part(part: str, facts: Mapping[str, Any], model: FairClassifier) -> None:
    """Refuse counts of a part of the rows that are not of those rows, or not of this model."""
    fitted, name = model.frontier_.last.counts, f"{part}_counts"
    plain, best = facts["plain"]["counts"], facts["plain"].get("best_cut")
    _check_counts(name, facts[name], (len(model.answers_) + 1, *fitted.shape))
    counts = np.array(facts[name], dtype=np.float64)
    rows = counts[-1].sum(axis=-1)
    _check_rows(name, counts, rows)
    weighted = facts.get("weight") is not None
    _check_agrees(f"n_{part}", weighted or rows.sum() == facts[f"n_{part}"])
    others = {f"plain.counts.{part}": plain[part]}
    if best is not None:
        others[f"plain.best_cut.{part}"] = best["counts"][part]
    for key, values in others.items():
        _check_counts(key, values, fitted.shape)
        _check_rows(key, np.array(values, dtype=np.float64), rows)
    if part != "train":
        return
    held_out = model.held_out_
    if held_out is not None and model.fitted_.place == "holdout":
        fitted = fitted + held_out.last
    # A fit brings weights to a scale of its own.
    scale = rows.sum() / fitted.sum() if weighted else 1.0
    if facts.get("person") is None:
        _check_rows("the frontier", fitted * scale, rows)
    else:  # one row of each person held out is counted
        _check_agrees("the frontier", weighted or bool((fitted.sum(axis=-1) <= rows).all()))
    if model.fitted_.place in ("train", "left_out") and not model.fitted_.noise:
        # Scores at a cut may fall on either side of it when they are computed once more.
        own = model.answers_.points.counts[model.answers_.index]
        moved = np.abs(counts[:-1] - own * scale).sum(axis=(1, 2, 3))
        few = 2 * (rows.sum() / facts["n_train"] if weighted else 1.0)
        _check_agrees(name, moved.max(initial=0.0) <= few + MOVED * rows.sum())
