"""A model as plain values and arrays of numbers, and back."""

import warnings
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

from evenhand.core.errors import InputError, InputWarning
from evenhand.core.rates import Rate
from evenhand.core.targets import Target
from evenhand.core.trajectory import Trajectory
from evenhand.frontier.choice import answer
from evenhand.frontier.held_out import HeldOut, candidates
from evenhand.frontier.points import COLUMNS, Frontier, Point
from evenhand.models.adjusted import FairAdjusted
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.classifier import FairClassifier
from evenhand.models.method import Method
from evenhand.models.settings import PLACES, FairnessWarning
from evenhand.models.training import Fit, Other
from evenhand.persist.archive import Limits, refuse
from evenhand.persist.boosted import boosted_from, boosted_state
from evenhand.persist.checks import (
    FIT,
    TEXTS,
    check_array,
    check_choice,
    check_facts,
    check_fields,
    check_fit,
    check_held_out,
    check_names,
    check_plan,
    check_value,
    other_target,
    partitions_from,
    shape_of,
    target_from,
)
from evenhand.statistics.bounds import BOUNDS, FIRST_BOUND
from evenhand.tables.encoder import TableEncoder, as_names
from evenhand.tables.pipeline import FairPipeline
from evenhand.tables.plans import ColumnPlan

Arrays = dict[str, NDArray[Any]]
# Fields of a fit that are plain values, and those that are labels or groups.
PLAIN = (
    *("place", "confidence", "delta", "margin", "group_cuts", "noise", "requirement", "n_iter"),
)
NAMES = ("classes", "labels", "groups")
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


# What went wrong is not kept, only that something did.
UNCONVERGED = InputWarning("unconverged")


def to_state(model: Any, facts: Mapping[str, Any]) -> tuple[dict[str, Any], Arrays]:
    """Give a fitted classifier or pipeline, with facts of its training, as values and arrays."""
    arrays: Arrays = {}
    state: dict[str, Any] = {"facts": dict(facts)}
    tabular = isinstance(model, FairPipeline)
    classifier = model.named_steps["classifier"] if tabular else model
    if type(classifier) not in (FairClassifier, FairBoostedClassifier, FairAdjusted):
        raise TypeError(
            f"a {type(classifier).__name__} cannot be saved; models are FairClassifier, "
            "FairBoostedClassifier or FairAdjusted, alone or in a fair_pipeline."
        )
    if not classifier.__sklearn_is_fitted__():
        raise InputError("not_fitted")
    if tabular:
        encoder = model.named_steps["encoder"]
        state["pipeline"] = {
            "sensitive": as_names(model.sensitive_features),
            "missing_groups": model.missing_groups,
            "n_dropped": getattr(model, "n_dropped_", 0),
            "by_person": bool(getattr(model, "by_person_", False)),
            "bins": {name: np.asarray(bins).tolist() for name, bins in (model.bins or {}).items()},
            "edges": {name: edges.tolist() for name, edges in model.edges_.items()},
        }
        state["encoder"] = {
            "params": encoder.get_params(),
            "plans": [asdict(plan) for plan in encoder.plans_],
            "sparse": encoder.sparse_,
        }
    if isinstance(classifier, FairBoostedClassifier):
        state["boosted"] = boosted_state(classifier, arrays, _values_of)
        classifier = classifier.classifier_
    state["classifier"] = _classifier_state(classifier, arrays)
    return state, arrays


def from_state(
    state: Any, arrays: Arrays, version: int, limits: Limits
) -> tuple[Any, dict[str, Any]]:
    """Make the model of a file and give the facts of its training; refuse what is not one."""
    if version in MIGRATIONS:
        MIGRATIONS[version](state, arrays)
    about, facts = state["classifier"], state["facts"]
    model: Any = _classifier_from(about, arrays, limits)
    classifier = model
    if "boosted" in state:
        model = boosted_from(state["boosted"], arrays, classifier, limits, _array_of)
    check_facts(facts, classifier, state["pipeline"]["sensitive"] if "pipeline" in state else None)
    if "pipeline" in state:
        model = _pipeline_from(state, model, limits)
    # The steps of a run take much memory: they are made last, of a good file only.
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
    """Add what the first files of version 1 leave out, and use its last names."""
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
    about.get("held_out", {}).setdefault("bound", FIRST_BOUND)
    if "pipeline" in state:
        state["pipeline"] = {"bins": {}, "edges": {}} | state["pipeline"]
        state["encoder"]["plans"] = [{"written": ""} | plan for plan in state["encoder"]["plans"]]


def _from_version_1(state: dict[str, Any], arrays: Arrays) -> None:
    """Version 1 had the method's parameters among the others, and a fit's fields as attributes."""
    _complete_version_1(state)
    about = state["classifier"]
    params, plain = about["params"], about.pop("plain")
    method = {name: params.pop(name) for name in Method().get_params() if name in params}
    params["method"] = method
    places = {words: place for place, words in PLACES.items()}
    about["fit"] = {
        "place": places.get(plain["_where"]),
        "confidence": plain["_confidence"],
        "delta": plain["_certify"],
        "margin": plain["_margin"],
        "group_cuts": plain["_by_group"],
        "noise": method.get("extra_column") == "noise",
        "requirement": plain["_requirement"],
        "n_iter": about.pop("n_iter"),
    }
    about["target"] = about.pop("rate") | {"level": plain["_first_tau"], "comparison": "ratio"}
    if "wary" in about:
        about["conservative"] = about.pop("wary")
    for name in [name for name in arrays if name.startswith("wary.")]:
        arrays[f"conservative.{name.removeprefix('wary.')}"] = arrays.pop(name)


# What brings the state of a file of an older version to today's form, in place, before it is
# checked.
MIGRATIONS: dict[int, Callable[[dict[str, Any], Arrays], None]] = {1: _from_version_1}


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
    refuse(not all(isinstance(value, plain) for value in values), "mixed_values", kind=kind)
    wrong = kind == "str" and len(values) * max(map(len, values), default=0) > limits.text
    refuse(wrong, "long_names")
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


def _frontiers_from(state: Mapping[str, Any], arrays: Arrays, prefix: str, **more: Any) -> Frontier:
    """Make a frontier, with its conservative one if a file has it."""
    frontier = _frontier_from(state["frontier"], arrays, f"{prefix}frontier", **more)
    if "conservative" not in state:
        return frontier
    name = f"{prefix}conservative"
    conservative = _frontier_from(state["conservative"], arrays, name, **more)
    return replace(frontier, conservative=conservative)


def _frontier_from(state: Mapping[str, Any], arrays: Arrays, name: str, **more: Any) -> Frontier:
    check_fields(state, ABOUT_FRONTIER, f"{name}.{{}}")
    iterate, accuracy, rate = state["last"]
    counts, cut = arrays[f"{name}.last.counts"], arrays[f"{name}.last.cut"]
    at = cut if cut.ndim else float(cut)
    more |= {key: state[key] for key in ABOUT_FRONTIER}
    more |= {column: arrays[f"{name}.{column}"] for column in COLUMNS}
    source = more["sources"][int(iterate)] if 0 <= int(iterate) < len(more["sources"]) else ""
    return Frontier(
        last=Point(int(iterate), at, float(accuracy), float(rate), counts, False, source),
        favourable=[int(c) for c in state["favourable"]],
        **more,
    )


def _classifier_state(model: FairClassifier, arrays: Arrays) -> dict[str, Any]:
    fit = model.fitted_
    rate, trajectory = fit.rate, fit.trajectory
    state: dict[str, Any] = {
        "params": _plain_params(model),
        "fit": {name: getattr(fit, name) for name in PLAIN},
        **{name: _values_of(getattr(fit, name)) for name in NAMES},
        "n_features_in": int(model.n_features_in_),
        "converged": bool(model.converged_),
        "small_groups": [[name, int(n)] for name, n in fit.small_groups.items()],
        **({"partitions": [asdict(by) for by in fit.partitions]} if fit.partitions else {}),
        "target": {
            **_target_state(fit.target),
            "name": rate.name,
            "parts": [_part_state(part) for part in rate.components],
        },
        **_side_state(fit.frontier, fit.held_out, arrays),
        "trajectory": {
            "leg": [step["leg"] for step in trajectory.steps],
            "source": list(trajectory.sources),
        },
    }
    if hasattr(model, "feature_names_in_"):
        state["feature_names_in"] = _values_of(model.feature_names_in_)
    if fit.other is not None:
        target, front, held_out = fit.other
        side = _side_state(front, held_out, arrays, "other.")
        state["other"] = _target_state(target) | side
    arrays["inputs"] = fit.inputs
    if fit.edges is not None:
        arrays["edges"] = fit.edges
    for name in trajectory.steps[0] if trajectory.steps else ():
        if name != "leg":
            arrays[f"trajectory.{name}"] = np.array([step[name] for step in trajectory.steps])
    arrays |= {"kept.row": trajectory.iterate_rows, "kept.iterate": trajectory.iterates}
    return state


def _part_state(rate: Rate) -> dict[str, Any]:
    """Give a rate as plain values, without its groups, which the fit has."""
    state = asdict(rate)
    del state["by"]
    return state


def _target_state(target: Target) -> dict[str, Any]:
    about: dict[str, Any] = {"level": target.level, "comparison": target.comparison}
    return about | {"kinds": list(target.kinds), "shares": list(target.rate.shares)}


def _side_state(
    frontier: Frontier, held_out: HeldOut | None, arrays: Arrays, prefix: str = ""
) -> dict[str, Any]:
    """Write the points for one comparison, and their figures on rows not fitted to."""
    state: dict[str, Any] = {"frontier": _frontier_state(frontier, arrays, f"{prefix}frontier")}
    if frontier.conservative is not None:
        name = f"{prefix}conservative"
        state["conservative"] = _frontier_state(frontier.conservative, arrays, name)
    if held_out is not None:
        state["held_out"] = {
            "n_rows": held_out.n_rows,
            "n_fitted": held_out.n_fitted,
            "bound": held_out.bound_name,
            "own": held_out.points is not frontier,
        }
        arrays |= {f"{prefix}held_out.{column}": getattr(held_out, column) for column in HELD_OUT}
    return state


def _plain_params(model: FairClassifier) -> dict[str, Any]:
    """Give the parameters as plain values, without what only the fit needed."""
    params = model.get_params(deep=False) | {"method": model.method.get_params()}
    if callable(params["sensitive_features"]):
        raise TypeError("a classifier whose sensitive_features is a function cannot be saved.")
    if not isinstance(params["random_state"], int | type(None)):
        params["random_state"] = None  # a generator's state is no fact of the model
    if not isinstance(params["cv"], int):
        params["cv"] = 5  # a splitter served its purpose in the fit
    if params["bins"] is not None and np.ndim(params["bins"]):
        params["bins"] = [float(edge) for edge in params["bins"]]
    for name in ("notion", "tau", "epsilon"):
        if isinstance(params[name], tuple | np.ndarray):
            params[name] = list(params[name])
    if isinstance(params["objective"], Mapping):
        params["objective"] = {name: float(value) for name, value in params["objective"].items()}
    if isinstance(params["pos_label"], np.generic):
        params["pos_label"] = params["pos_label"].item()
    return params


def _classifier_from(state: Mapping[str, Any], arrays: Arrays, limits: Limits) -> FairClassifier:
    model = _unfitted_from(state["params"])
    settings, about = model.settings(), state["fit"]
    check_fields(state, {"n_features_in": int, "converged": bool})
    check_fields(about, {**FIT, "n_iter": int})
    classes, labels, groups = (_array_of(state[name], limits) for name in NAMES)
    check_names(classes, labels, groups, settings, limits)
    small = {tuple(g) if isinstance(g, list) else g: n for g, n in state["small_groups"]}
    for n in small.values():
        check_value("small_groups", n, int)
    model.n_features_in_ = state["n_features_in"]
    if "feature_names_in" in state:
        model.feature_names_in_ = _array_of(state["feature_names_in"], limits)
    partitions = partitions_from(state.get("partitions", []), settings, len(groups))
    target = target_from(state["target"], settings, classes, len(groups), partitions, limits)
    rows = arrays["kept.row"].tolist()
    sources = tuple(_sources_from(state["trajectory"], rows))
    more = {"groups": groups.tolist(), "labels": labels.tolist(), "sources": sources}
    more |= {"objective": settings.objective_of(len(classes))}
    kept = list(zip(rows, arrays["kept.iterate"], sources, strict=True))
    rate = settings.notion_of(len(classes), settings.favourable(classes), partitions).rate
    later: Any = None
    fit = Fit(
        **{name: about[name] for name in PLAIN},
        classes=classes,
        labels=labels,
        groups=groups,
        small_groups=small,
        inputs=arrays["inputs"],
        edges=arrays.get("edges"),
        target=target,
        frontier=_frontiers_from(state, arrays, "", comparison=target.comparison, **more),
        trajectory=Trajectory(rate, len(groups), kept),
        held_out=None,
        answers=later,  # when it is known that the counts are good
        partitions=partitions,
        trouble=None if state["converged"] else UNCONVERGED,
    )
    check_fit(fit, model, state["trajectory"]["leg"], arrays, limits)
    if "held_out" in state:
        fit = replace(fit, held_out=_held_out_from(state["held_out"], arrays, fit.frontier))
    check_choice(fit, model, limits)
    if "other" in state:
        fit = replace(fit, other=_other_from(state, arrays, fit, model, limits, more))
    margin, delta = fit.margin, fit.delta
    answers = answer(fit.frontier, fit.held_out, target, margin=margin, certify=delta)
    with warnings.catch_warnings():
        # Whoever saved a model that misses its target, or did not converge, was told.
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.adopt(replace(fit, answers=answers))


def _other_from(
    state: Mapping[str, Any],
    arrays: Arrays,
    fit: Fit,
    model: FairClassifier,
    limits: Limits,
    more: dict[str, Any],
) -> Other:
    """Make the points for the other comparison; refuse them as those for the target."""
    about = state["other"]
    target = other_target(about, fit.target)
    frontier = _frontiers_from(about, arrays, "other.", comparison=target.comparison, **more)
    # A certificate's bounds are made when this target is asked for.
    side = replace(fit, target=target, frontier=frontier, held_out=None, delta=None)
    check_fit(side, model, state["trajectory"]["leg"], arrays, limits)
    refuse(("held_out" in about) != (fit.held_out is not None), "other_selection")
    if "held_out" in about:
        held_out = _held_out_from(about["held_out"], arrays, frontier, "other.")
        held_out = replace(held_out, bound=np.full(len(held_out.rate), np.nan))
        side = replace(side, held_out=held_out)
        check_held_out(side, held_out, limits)
    return Other(target, frontier, side.held_out)


def _sources_from(about: Mapping[str, Any], rows: list[int]) -> list[str]:
    """Say what found each kept iterate; files that do not say have the solver's alone."""
    legs = about["leg"]
    check_value("leg", legs, TEXTS)
    if "source" not in about:
        optimum = {row for row, leg in enumerate(legs) if leg == "optimum"}
        return ["optimum" if row in optimum else "solver" for row in rows]
    check_value("source", about["source"], TEXTS)
    refuse(len(about["source"]) != len(rows), "contradiction", name="source")
    return list(about["source"])


def _unfitted_from(params: Mapping[str, Any]) -> FairClassifier:
    """Make the estimator of some parameters; refuse those that it has not."""
    check_value("method", params["method"], dict)
    for given, usual in ((params, FairClassifier()), (params["method"], Method())):
        unknown = set(given) - set(usual.get_params(deep=False))
        refuse(unknown, "unknown_parameter", name=min(unknown, default=""))
    for name in ("tau", "epsilon"):
        if isinstance(params.get(name), list):
            given = [value for value in params[name] if value is not None]
            check_array(name, given, (len(given),))
    # What files say that do not know of them yet.
    method = {"metric": "none", "candidates": "solver"} | params["method"]
    return FairClassifier(**{**params, "method": Method(**method)})


def _held_out_from(
    about: Mapping[str, Any], arrays: Arrays, frontier: Frontier, prefix: str = ""
) -> HeldOut:
    check_fields(about, {"n_rows": int, "n_fitted": int, "bound": str, "own": bool})
    bound = about["bound"]
    refuse(bound not in BOUNDS, "unknown_bound", bound=bound[:40])
    columns = {column: arrays[f"{prefix}held_out.{column}"] for column in HELD_OUT}
    return HeldOut(
        candidates(frontier) if about["own"] else frontier,
        **columns,
        n_rows=about["n_rows"],
        n_fitted=about["n_fitted"],
        bound_name=about["bound"],
    )


def _pipeline_from(state: Mapping[str, Any], classifier: Any, limits: Limits) -> FairPipeline:
    about = state["pipeline"]
    check_fields(about, {"sensitive": TEXTS, "n_dropped": int})
    wrong = not about["sensitive"] or about["missing_groups"] not in ("error", "drop", "group")
    refuse(wrong, "bad_group_columns")
    by_person = about.get("by_person", False)  # earlier files do not say
    check_value("by_person", by_person, bool)
    edges, bins = _edges_from(about), about["bins"] or None
    wrong = set(edges) != set(bins or {})
    refuse(wrong, "edges_without_bins")
    encoder = encoder_from(state["encoder"], classifier.n_features_in_, limits)
    pipeline = FairPipeline(
        [("encoder", encoder), ("classifier", classifier)],
        sensitive_features=about["sensitive"],
        missing_groups=about["missing_groups"],
    )
    pipeline.n_dropped_, pipeline.bins, pipeline.edges_ = about["n_dropped"], bins, edges
    pipeline.by_person_ = by_person
    return pipeline


def _edges_from(about: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    edges = {}
    for name, values in about["edges"].items():
        check_array("edges", values, shape_of(values)[:1])
        edges[name] = np.array(values, dtype=np.float64)
        rising = edges[name].ndim == 1 and (np.diff(edges[name]) > 0).all()
        wrong = name not in about["sensitive"] or not rising
        refuse(wrong, "bad_edges", column=name)
    return edges


def encoder_from(state: Mapping[str, Any], n_inputs: int, limits: Limits) -> TableEncoder:
    """Make a fitted encoder; refuse one that makes another number of inputs."""
    plans, text = [], 0
    for plan in state["plans"]:
        check_plan(plan)
        # Every input of a column has the column's name in its own.
        text += len(plan["column"]) * (len(plan["categories"]) + 4)
        wrong = text > 4 * limits.text
        refuse(wrong, "long_input_names")
        own: dict[str, Any] = {name: tuple(plan[name]) for name in ("names", "categories")}
        own |= {name: float(plan[name]) for name in ("fill", "mean", "scale")}
        plans.append(ColumnPlan(**(plan | own)))
    for name in ("na", "keep_na"):  # the first files do not have them
        words = state["params"].get(name) or []
        check_value(name, [words] if isinstance(words, str) else words, TEXTS)
    columns = {plan.column for plan in plans}
    refuse(len(columns) < len(plans), "two_plans")
    # An encoder of many columns takes time: none is made that has more inputs than it should.
    least = sum(max(len(plan.categories) - 1, plan.kind != "dropped") for plan in plans)
    _check_inputs(least > n_inputs, least, n_inputs)
    encoder = TableEncoder.from_plans(plans, sparse=bool(state["sparse"]), **state["params"])
    n = len(encoder.get_feature_names_out())
    _check_inputs(n != n_inputs, n, n_inputs)
    return encoder


def _check_inputs(wrong: bool, n: int, n_inputs: int) -> None:
    refuse(wrong, "other_inputs", n=n, n_inputs=n_inputs)
