"""A model as plain values and arrays of numbers, and back."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.rates import Rate
from evenhand.core.trajectory import Trajectory
from evenhand.frontier.held_out import HeldOut
from evenhand.frontier.points import COLUMNS, Frontier, Point
from evenhand.models.classifier import FairClassifier, FairnessWarning
from evenhand.persist.archive import Limits
from evenhand.persist.checks import (
    BOUND,
    BOUNDS,
    TEXTS,
    check_array,
    check_classifier,
    check_facts,
    check_fields,
    check_plan,
    check_value,
    rate_from,
    refuse,
    shape_of,
)
from evenhand.tables.encoder import ColumnPlan, TableEncoder, as_names
from evenhand.tables.pipeline import FairPipeline

__all__ = ["MIGRATIONS", "encoder_from", "from_state", "to_state"]

Arrays = dict[str, NDArray[Any]]
# Attributes of a fitted classifier that are plain values, and, by their keys, those that are values
# of a table and whole numbers.
PLAIN = (
    *("_where", "_requirement", "_by_group", "_certify", "_sign", "_interrupted"),
    *("_margin", "_confidence", "_first_tau"),
)
NAMES = {
    "classes": "classes_",
    "labels": "_labels",
    "groups": "groups_",
    "feature_names_in": "feature_names_in_",
}
NUMBERS = {"n_features_in": int, "n_iter": int, "converged": bool}
# What a frontier has besides its points, and what rows held out have of each.
ABOUT_FRONTIER = {"rate_name": str, "complete": bool, "n_sure": int}
HELD_OUT = ("counts", "accuracy", "rate", "bound", "last")
# Kinds of labels, groups and names: NumPy's letters for them, the type of an array of them, and
# the types they have as plain values.
KINDS: dict[str, tuple[str, Any, Any]] = {
    "object": ("O", object, str | bool | int | float),
    "str": ("U", str, str),
    "bool": ("b", bool, bool),
    "int": ("iu", np.int64, int),
    "float": ("f", np.float64, int | float),
}


def to_state(model: Any, facts: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Give a fitted classifier or pipeline, with facts of its training, as values and arrays."""
    arrays: Arrays = {}
    state: dict[str, Any] = {"facts": dict(facts)}
    classifier = model
    if isinstance(model, FairPipeline):
        encoder, classifier = (model.named_steps[name] for name in ("encoder", "classifier"))
        state["pipeline"] = {
            "sensitive": as_names(model.sensitive_features),
            "missing_groups": model.missing_groups,
            "n_dropped": getattr(model, "n_dropped_", 0),
            "bins": {name: np.asarray(bins).tolist() for name, bins in (model.bins or {}).items()},
            "edges": {name: edges.tolist() for name, edges in model.edges_.items()},
        }
        state["encoder"] = {
            "params": encoder.get_params(),
            "plans": [asdict(plan) for plan in encoder.plans_],
            "sparse": bool(encoder.transformer_.sparse_output_),
        }
    if type(classifier) is not FairClassifier:
        raise TypeError(
            f"a {type(classifier).__name__} cannot be saved; models are FairClassifier, alone or "
            "in a fair_pipeline."
        )
    if not classifier.__sklearn_is_fitted__():
        raise ValueError("the model is not fitted yet; there is nothing to save.")
    state["classifier"] = _classifier_state(classifier, arrays)
    return state, arrays


def from_state(
    state: Any, arrays: Arrays, version: int, limits: Limits
) -> tuple[FairPipeline | FairClassifier, dict[str, Any]]:
    """Make the model of a file and give the facts of its training; refuse what is not one."""
    MIGRATIONS[version](state)
    about, facts = state["classifier"], state["facts"]
    model = classifier = _classifier_from(about, arrays, limits)
    check_facts(facts, classifier, state["pipeline"]["sensitive"] if "pipeline" in state else None)
    if "pipeline" in state:
        model = _pipeline_from(state, classifier, limits)
    # The steps of a run take much memory: only those of a good file are made.
    series = {name.split(".")[1]: v for name, v in arrays.items() if name.startswith("trajectory.")}
    classifier.trajectory_.steps = [
        {"leg": leg} | {name: v[i] if v[i].ndim else v[i].item() for name, v in series.items()}
        for i, leg in enumerate(about["trajectory"]["leg"])
    ]
    if "answers" not in facts:
        # Earlier versions counted other points: such a model predicts, but has no report.
        facts.pop("train_counts", None)
    return model, facts


def _complete_version_1(state: dict[str, Any]) -> None:
    """Add what the first files of version 1 leave out, and use today's names."""
    about = state["classifier"]
    params = about["params"]
    for renamed in (params, state.get("encoder", {}).get("params", {})):
        for old in {"sensitive_feature", "sensitive"} & set(renamed):
            renamed["sensitive_features"] = renamed.pop(old)
    if params.get("init") == "auto":
        params["init"] = "optimum"
    if "confidence" not in params:
        certified = params.get("selection") == "certified"
        params |= {"confidence": "certified", "selection": "train"} if certified else {}
        params.setdefault("confidence", None)
    tau = params["tau"]
    first = {"_first_tau": max(tau) if isinstance(tau, list) else tau}
    about["plain"] = {"_margin": 0.0, "_confidence": params["confidence"]} | first | about["plain"]
    about.get("held_out", {}).setdefault("bound", BOUND)
    if "pipeline" in state:
        state["pipeline"] = {"bins": {}, "edges": {}} | state["pipeline"]
        state["encoder"]["plans"] = [{"written": ""} | plan for plan in state["encoder"]["plans"]]


# What brings the state of a file of some version to today's form, in place, before it is checked.
MIGRATIONS: dict[int, Callable[[dict[str, Any]], None]] = {1: _complete_version_1}


def _values_of(array: NDArray[Any]) -> dict[str, Any]:
    """Write labels, groups or names with what kind of values they are."""
    letter, values = np.asarray(array).dtype.kind, np.asarray(array).tolist()
    kind = next((name for name, (letters, *_) in KINDS.items() if letter in letters), None)
    plain = all(isinstance(value, str | bool | int | float) for value in values)
    if kind is None or not plain:
        raise TypeError(f"labels or groups such as {values[0]!r} cannot be saved; use text.")
    return {"kind": kind, "values": values}


def _array_of(state: Mapping[str, Any], limits: Limits) -> NDArray[Any]:
    values, kind = state["values"], state["kind"]
    _, dtype, plain = KINDS[kind]
    check_value("values", values, list)
    if not all(isinstance(value, plain) for value in values):
        raise ValueError(f"labels, groups or names are not all of the kind {kind!r}")
    if kind == "str" and len(values) * max(map(len, values), default=0) > limits.text:
        raise ValueError("labels, groups or names are longer than any model's")
    return np.array(values, dtype=dtype)


def _frontier_state(frontier: Frontier, arrays: Arrays, name: str) -> dict[str, Any]:
    arrays |= {f"{name}.{column}": getattr(frontier, column) for column in COLUMNS}
    last = frontier.last
    arrays |= {f"{name}.last.counts": last.counts, f"{name}.last.cut": np.asarray(last.cut)}
    return {
        "last": [last.iterate, last.accuracy, last.rate],
        "favourable": [int(c) for c in frontier.favourable],
        **{key: getattr(frontier, key) for key in ABOUT_FRONTIER},
    }


def _frontier_from(
    state: Mapping[str, Any], arrays: Arrays, name: str, model: FairClassifier, **more: Any
) -> Frontier:
    check_fields(state, ABOUT_FRONTIER, f"{name}.{{}}")
    iterate, accuracy, rate = state["last"]
    counts, cut = arrays[f"{name}.last.counts"], arrays[f"{name}.last.cut"]
    at = cut if cut.ndim else float(cut)
    more |= {key: state[key] for key in ABOUT_FRONTIER}
    more |= {column: arrays[f"{name}.{column}"] for column in COLUMNS}
    return Frontier(
        groups=model.groups_.tolist(),
        labels=model._labels.tolist(),
        last=Point(int(iterate), at, float(accuracy), float(rate), counts, False),
        favourable=[int(c) for c in state["favourable"]],
        **more,
    )


def _classifier_state(model: FairClassifier, arrays: Arrays) -> dict[str, Any]:
    rate, frontier, held_out = model._rate, model.frontier_, model.held_out_
    own, trajectory = vars(model), model.trajectory_
    state: dict[str, Any] = {
        "params": _plain_params(model),
        "plain": {name: own[name] for name in PLAIN},
        **{key: _values_of(own[name]) for key, name in NAMES.items() if name in own},
        **{key: kind(own[f"{key}_"]) for key, kind in NUMBERS.items()},
        "small_groups": [[name, int(n)] for name, n in model.small_groups_.items()],
        "rate": {
            "name": rate.name,
            "parts": [asdict(part) for part in rate.components],
            "shares": list(rate.shares),
            "single": isinstance(rate, Rate),
        },
        "frontier": _frontier_state(frontier, arrays, "frontier"),
        "trajectory": {"leg": [step["leg"] for step in trajectory.steps]},
    }
    if frontier.conservative is not None:
        state["wary"] = _frontier_state(frontier.conservative, arrays, "wary")
    if held_out is not None:
        about = {"n_rows": held_out.n_rows, "n_fitted": held_out.n_fitted, "bound": BOUND}
        state["held_out"] = about | {"own": held_out.points is not frontier}
        arrays |= {f"held_out.{column}": getattr(held_out, column) for column in HELD_OUT}
        if held_out.points is not frontier:
            points = _frontier_state(held_out.points, arrays, "held_out.points")
            state["held_out"]["points"] = points
    arrays["inputs"] = model._inputs
    if model._edges is not None:
        arrays["edges"] = model._edges
    for name in trajectory.steps[0] if trajectory.steps else ():
        if name != "leg":
            arrays[f"trajectory.{name}"] = np.array([step[name] for step in trajectory.steps])
    arrays |= {"kept.row": trajectory.iterate_rows, "kept.iterate": trajectory.iterates}
    return state


def _plain_params(model: FairClassifier) -> dict[str, Any]:
    """Give the parameters as plain values, without what only the fit needed."""
    params = model.get_params()
    if callable(params["sensitive_features"]):
        raise TypeError("a classifier whose sensitive_features is a function cannot be saved.")
    if not isinstance(params["random_state"], int | type(None)):
        params["random_state"] = None  # a generator's state is no fact of the model
    if not isinstance(params["cv"], int):
        params["cv"] = 5  # a splitter served its purpose in the fit
    if params["bins"] is not None and np.ndim(params["bins"]):
        params["bins"] = [float(edge) for edge in params["bins"]]
    for name in ("notion", "tau"):
        if isinstance(params[name], tuple | np.ndarray):
            params[name] = list(params[name])
    if isinstance(params["pos_label"], np.generic):
        params["pos_label"] = params["pos_label"].item()
    return params


def _classifier_from(state: Mapping[str, Any], arrays: Arrays, limits: Limits) -> FairClassifier:
    unknown = set(state["params"]) - set(FairClassifier().get_params())
    refuse(unknown, f"unknown parameter {min(unknown, default='')!r}")
    model = FairClassifier(**state["params"])
    model._validate_params()
    check_array("tau", model.tau, shape_of(model.tau)[:1])
    check_fields(state, NUMBERS)
    attributes = {name: state["plain"][name] for name in PLAIN}
    attributes |= {f"{key}_": state[key] for key in NUMBERS}
    for key, name in NAMES.items():
        if key in state:
            attributes[name] = _array_of(state[key], limits)
    model.__dict__.update(attributes)
    small = {tuple(g) if isinstance(g, list) else g: n for g, n in state["small_groups"]}
    for n in small.values():
        check_value("small_groups", n, int)
    model.small_groups_ = small
    model._rate = rate_from(state["rate"], model, limits)
    model._inputs, model._edges = arrays["inputs"], arrays.get("edges")
    conservative = _frontier_from(state["wary"], arrays, "wary", model) if "wary" in state else None
    model.frontier_ = _frontier_from(
        state["frontier"], arrays, "frontier", model, conservative=conservative
    )
    about = state.get("held_out", {"bound": BOUND})
    model.held_out_ = _held_out_from(about, arrays, model) if "held_out" in state else None
    check_classifier(model, state["trajectory"]["leg"], arrays, about["bound"], limits)
    kept = list(zip(arrays["kept.row"].tolist(), arrays["kept.iterate"], strict=True))
    model.trajectory_ = Trajectory(model._rate, len(model.groups_), kept)
    with warnings.catch_warnings():
        # Whoever saved a model that misses its target was told.
        warnings.simplefilter("ignore", FairnessWarning)
        model._find_answers()
        return model._choose()


def _held_out_from(about: Mapping[str, Any], arrays: Arrays, model: FairClassifier) -> HeldOut:
    check_fields(about, {"n_rows": int, "n_fitted": int, "bound": str, "own": bool})
    refuse(about["bound"] not in BOUNDS, f"no bound is called {about['bound'][:40]!r}")
    points = model.frontier_
    if about["own"]:
        points = _frontier_from(about["points"], arrays, "held_out.points", model)
    columns = {column: arrays[f"held_out.{column}"] for column in HELD_OUT}
    return HeldOut(points, **columns, n_rows=about["n_rows"], n_fitted=about["n_fitted"])


def _pipeline_from(
    state: Mapping[str, Any], classifier: FairClassifier, limits: Limits
) -> FairPipeline:
    about = state["pipeline"]
    check_fields(about, {"sensitive": TEXTS, "n_dropped": int})
    if not about["sensitive"] or about["missing_groups"] not in ("error", "drop", "group"):
        raise ValueError("no sensitive columns, or no way with missing groups")
    edges, bins = _edges_from(about), about["bins"] or None
    refuse(set(edges) != set(bins or {}), "bins and their edges are not of the same columns")
    encoder = encoder_from(state["encoder"], classifier.n_features_in_, limits)
    pipeline = FairPipeline(
        [("encoder", encoder), ("classifier", classifier)],
        sensitive_features=about["sensitive"],
        missing_groups=about["missing_groups"],
    )
    pipeline.n_dropped_, pipeline.bins, pipeline.edges_ = about["n_dropped"], bins, edges
    return pipeline


def _edges_from(about: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    edges = {}
    for name, values in about["edges"].items():
        check_array("edges", values, shape_of(values)[:1])
        edges[name] = np.array(values, dtype=np.float64)
        rising = edges[name].ndim == 1 and (np.diff(edges[name]) > 0).all()
        refuse(name not in about["sensitive"] or not rising, f"no edges of bins of column {name!r}")
    return edges


def encoder_from(state: Mapping[str, Any], n_inputs: int, limits: Limits) -> TableEncoder:
    """Make a fitted encoder; refuse one that makes another number of inputs."""
    plans, text = [], 0
    for plan in state["plans"]:
        check_plan(plan)
        # Every input of a column has the column's name in its own.
        text += len(plan["column"]) * (len(plan["categories"]) + 4)
        refuse(text > 4 * limits.text, "the names of the inputs are longer than any model's")
        own: dict[str, Any] = {name: tuple(plan[name]) for name in ("names", "categories")}
        own |= {name: float(plan[name]) for name in ("fill", "mean", "scale")}
        plans.append(ColumnPlan(**(plan | own)))
    for name in ("na", "keep_na"):  # which the first files have not
        words = state["params"].get(name) or []
        check_value(name, [words] if isinstance(words, str) else words, TEXTS)
    refuse(len({plan.column for plan in plans}) < len(plans), "two plans of one column")
    # An encoder of many columns takes time: none is made that has more inputs than it should.
    least = sum(max(len(plan.categories) - 1, plan.kind != "dropped") for plan in plans)
    other = "the columns make {} inputs, the classifier has {}"
    refuse(least > n_inputs, other.format(least, n_inputs))
    encoder = TableEncoder.from_plans(plans, sparse=bool(state["sparse"]), **state["params"])
    n = len(encoder.get_feature_names_out())
    refuse(n != n_inputs, other.format(n, n_inputs))
    return encoder
