"""A boosted or adjusted classifier as plain values and arrays: trees beside the engine's fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import pairwise
from textwrap import shorten
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.preprocessing import StandardScaler

from evenhand.core.errors import InputError
from evenhand.models.adjusted import FairAdjusted
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.boosted_columns import BoostedColumns, BoosterInputs, Estimate, FoldModels
from evenhand.models.brought import Brought, Curve, Scored
from evenhand.models.classifier import FairClassifier
from evenhand.models.trees import ARRAYS, PER_NODE, PER_TREE, Forest
from evenhand.persist.archive import Limits, refuse
from evenhand.persist.checks import check_array, check_fields, check_index, check_value

Arrays = dict[str, NDArray[Any]]
# What the classifier has beside the engine's parameters, and what a file says of it.
OWN = ("n_folds", "random_state", "n_jobs", "sensitive_features")
ABOUT = {"booster": str, "n_features_in": int, "own_engine": bool, "models": list}
# What a model that was brought adds; of a column of scores its number and name.
BROUGHT = {"words": str, "before": str, "curve": list}


def _short(words: str) -> str:
    return shorten(words, 100, placeholder=" …")


def boosted_state(
    model: FairBoostedClassifier, arrays: Arrays, write_values: Callable[[Any], Any]
) -> dict[str, Any]:
    """Give what a fitted boosted classifier is beside its engine; trees go to ``arrays``."""
    columns, params = model.maker_, model.get_params(deep=False)
    labels = [getattr(models.label, "source", models.label) for models in columns.models]
    if model.scorers:
        raise InputError("unsavable_scorers")
    read = all(isinstance(e, int) or getattr(e, "forest", None) for e in labels)
    if isinstance(model, FairAdjusted) and not read:
        raise InputError(
            "unsavable_estimator", estimator=shorten(model.scores_, 100, placeholder=" …")
        )
    estimates = [
        e
        for label, models in zip(labels, columns.models, strict=True)
        for e in (label, *models.groups)
        if not isinstance(e, int)
    ]
    if any(e.model is not None and e.forest is None for e in estimates):
        raise InputError(
            "unsavable_booster", booster=shorten(model.booster_, 100, placeholder=" …")
        )
    if callable(params["sensitive_features"]):
        raise TypeError("a classifier whose sensitive_features is a function cannot be saved.")
    if not isinstance(params["random_state"], int | type(None)):
        params["random_state"] = None  # a generator's state is no fact of the model
    forests = [e.forest for e in estimates if e.forest is not None]
    for name in ARRAYS:
        parts = [getattr(forest, name).ravel() for forest in forests]
        arrays[f"trees.{name}"] = np.concatenate(parts) if parts else np.empty(0)
    arrays["trees.sizes"] = np.array([_sizes(f) for f in forests], dtype=np.int64).reshape(-1, 7)
    arrays |= {f"scaler.{name}": getattr(columns.scaler, f"{name}_") for name in ("mean", "scale")}
    state = {
        "params": {name: params[name] for name in OWN},
        "own_engine": model.classifier is not None,
        "booster": model.booster_,
        "n_features_in": int(model.n_features_in_),
        "group_column": model.group_column_,
        "categories": [
            [int(j), write_values(np.array(values, dtype=object))]
            for j, values in columns.inputs.categories.items()
        ],
        "models": [[e.seen.tolist(), e.forest is not None] for e in estimates],
    }
    if hasattr(model, "feature_names_in_"):
        state["feature_names_in"] = write_values(model.feature_names_in_)
    if isinstance(model, FairAdjusted):
        column, curve = isinstance(labels[0], int), columns.brought.curve
        state["brought"] = {
            "words": model.scores_,
            "before": model.before_,
            "curve": [] if curve is None else [curve.slope, curve.intercept, curve.probability],
            "column": labels[0] if column else None,
            "estimator": model.estimator if column else None,
        }
    return state


def _sizes(forest: Forest) -> list[int]:
    sizes = (forest.roots, forest.feature, forest.values, forest.base)
    return [*map(len, sizes), *forest.sets.shape, forest.slopes.shape[1]]


def boosted_from(
    state: Mapping[str, Any],
    arrays: Arrays,
    engine: FairClassifier,
    limits: Limits,
    read_values: Callable[[Any, Limits], NDArray[Any]],
) -> FairBoostedClassifier:
    """Make the classifier of a file around its engine; refuse trees that cannot be walked."""
    check_fields(state, ABOUT)
    params = state["params"]
    refuse(set(params) != set(OWN), "unknown_parameter", name="boosted")
    shared = FairBoostedClassifier().get_params(deep=False).keys() & engine.get_params(deep=False)
    values = {name: getattr(engine, name) for name in shared - set(OWN)}
    own_engine = FairClassifier(method=engine.method) if state["own_engine"] else None
    about = state.get("brought")
    kind = FairBoostedClassifier if about is None else FairAdjusted
    model: Any = kind(**values, **params, classifier=own_engine)
    model.check_parameters()
    fit, column, n = engine.fitted_, state["group_column"], state["n_features_in"]
    labels = fit.labels.tolist()
    n_inputs = n - (column is not None)
    brought = None if about is None else _brought_from(about, model, n_inputs, len(labels))
    aware = bool(engine.group_cuts) or (brought is not None and brought.is_all_of(n_inputs))
    columns = BoostedColumns(
        None,
        n_folds=model.n_folds,
        scorers=(),
        n_jobs=None,
        seed=0,
        aware=aware,
        brought=brought,
    )
    names = columns.names_of(labels, fit.groups.tolist())
    wrong = len(names) != engine.n_features_in_
    refuse(wrong, "other_columns", n_inputs=len(names), n_columns=engine.n_features_in_)
    if column is not None:
        check_value("group_column", column, int)
        check_index("group_column", column, 0, n)
    inputs = _inputs_from(state["categories"], n_inputs, limits, read_values)
    estimates = _estimates_from(state["models"], arrays, n_inputs + (aware and brought is None))
    scored = brought is not None and brought.fixed
    per_fold = (not scored) + (0 if aware else len(labels))
    n_models = 1 if scored and aware else model.n_folds
    refuse(len(estimates) != n_models * per_fold, "bad_trees", what="models")
    for i, estimate in enumerate(estimates):
        of_label = not scored and i % per_fold == 0
        estimate.n_values = len(labels) if of_label else len(fit.groups)
        check_index("models", estimate.seen, 0, estimate.n_values)
    scaler = StandardScaler()
    for name in ("mean", "scale"):
        check_array(f"scaler.{name}", arrays[f"scaler.{name}"], (len(names),))
        setattr(scaler, f"{name}_", arrays[f"scaler.{name}"])
    flat = scaler.scale_ <= 0
    refuse(flat.any(), "bad_scale", column=names[int(np.argmax(flat))])
    scaler.n_features_in_ = len(names)
    columns.inputs, columns.scaler, columns.names = inputs, scaler, names
    columns.models = []
    for k in range(n_models):
        own = estimates[k * per_fold : (k + 1) * per_fold]
        label: Any = own.pop(0) if brought is None or not scored else brought.estimator
        if brought is not None and brought.curve is not None:
            label = Scored(label, brought.curve)
        columns.models.append(FoldModels(label, tuple(own)))
    if brought is not None and not scored:
        brought.inputs = inputs
    model.n_features_in_ = n
    if "feature_names_in" in state:
        model.feature_names_in_ = read_values(state["feature_names_in"], limits)
        n_names = len(model.feature_names_in_)
        refuse(n_names != n, "other_columns", n_inputs=n, n_columns=n_names)
    if about is not None:
        model.scores_, model.before_ = about["words"], about["before"]
    fitted: FairBoostedClassifier = model.adopt(engine, columns, column, state["booster"])
    return fitted


def _brought_from(about: Any, model: Any, n_inputs: int, n_labels: int) -> Brought:
    """Make what was brought: a column of scores, or trees whose estimator is not known here."""
    check_fields(about, BROUGHT)
    column, curve = about["column"], about["curve"]
    if column is not None:
        check_value("column", column, int)
        check_index("column", column, 0, n_inputs)
        check_value(
            "estimator", about["estimator"], str if isinstance(about["estimator"], str) else int
        )
        model.estimator = about["estimator"]
    refuse(column is not None and n_labels > 2, "bad_trees", what="labels")
    # Of two labels there is a curve; of more, probabilities are taken as they are.
    refuse(len(curve) != (3 if n_labels == 2 else 0), "bad_trees", what="curve")
    brought = Brought(column, about["words"], prefit=True, seed=0)
    brought.fixed = column is not None
    if curve:
        check_array("curve", curve[:2], (2,))
        check_value("curve", curve[2], bool)
        brought.curve = Curve(float(curve[0]), float(curve[1]), curve[2])
    return brought


def _inputs_from(
    categories: Any,
    n_inputs: int,
    limits: Limits,
    read_values: Callable[[Any, Limits], NDArray[Any]],
) -> BoosterInputs:
    inputs = BoosterInputs(np.empty((0, n_inputs)), None)
    inputs.plain = True
    for j, values in categories:
        check_value("categories", j, int)
        check_index("categories", j, 0, n_inputs)
        inputs.categories[j] = read_values(values, limits).tolist()
        unlike = len(set(inputs.categories[j])) < len(inputs.categories[j])
        refuse(unlike, "repeated_categories", column=j)
    return inputs


def _estimates_from(models: Any, arrays: Arrays, n_inputs: int) -> list[Estimate]:
    """Cut the arrays into forests; a model of one value has none."""
    sizes = arrays["trees.sizes"]
    old = "trees.slopes" not in arrays  # a file from before linear models were read
    check_array("trees.sizes", sizes, (len(sizes), 6 if old else 7))
    if old:
        arrays["trees.slopes"] = np.empty(0)
        sizes = np.pad(sizes, ((0, 0), (0, 1)))
    check_index("trees.sizes", sizes, 0, 1 << 31)
    n_trees, n_nodes, n_leaves, n_base, n_sets, width, n_slopes = sizes.T.tolist()
    lengths = {
        **dict.fromkeys(PER_TREE, n_trees),
        **dict.fromkeys(PER_NODE, n_nodes),
        "values": n_leaves,
        "base": n_base,
        "sets": [rows * wide for rows, wide in zip(n_sets, width, strict=True)],
        "slopes": [rows * wide for rows, wide in zip(n_base, n_slopes, strict=True)],
    }
    parts = {}
    for name in ARRAYS:
        ends = np.cumsum([0, *lengths[name]])
        whole = arrays[f"trees.{name}"]
        refuse(whole.shape != (ends[-1],), "bad_trees", what=name)
        parts[name] = [whole[a:b] for a, b in pairwise(ends.tolist())]
    estimates, number = [], 0
    for seen, has_forest in models:
        check_value("models", seen, list)
        seen = np.array(seen)
        wrong = seen.dtype.kind != "i" or seen.ndim != 1 or len(np.unique(seen)) < len(seen)
        refuse(wrong or not len(seen), "bad_trees", what="classes")
        estimate = Estimate(None, seen, 0, 0)
        refuse(bool(has_forest) != (len(seen) > 1), "bad_trees", what="models")
        if has_forest:
            refuse(number >= len(sizes), "bad_trees", what="models")
            own = {name: parts[name][number] for name in ARRAYS}
            own["sets"] = own["sets"].reshape(n_sets[number], width[number])
            refuse(n_slopes[number] not in (0, n_inputs), "bad_trees", what="slopes")
            own["slopes"] = own["slopes"].reshape(n_base[number], n_slopes[number])
            estimate.forest = Forest(**own)
            _check_forest(estimate.forest, len(seen), n_inputs)
            number += 1
        estimates.append(estimate)
    refuse(number != len(sizes), "bad_trees", what="models")
    return estimates


def _check_forest(forest: Forest, n_classes: int, n_inputs: int) -> None:
    """Refuse a forest with an index out of range, or in which a walk might not end."""
    n_nodes, n_leaves, n_outputs = len(forest.feature), len(forest.values), len(forest.base)
    for name in ("missing_left", "sets"):
        refuse(getattr(forest, name).dtype != np.bool_, "other_dtype", name=f"trees.{name}")
    for name in (*PER_TREE, "feature", "left", "right", "category"):
        refuse(getattr(forest, name).dtype != np.int64, "other_dtype", name=f"trees.{name}")
    for name in ("threshold", "values", "base", "slopes"):
        refuse(getattr(forest, name).dtype != np.float64, "other_dtype", name=f"trees.{name}")
    refuse(n_outputs != (n_classes if n_classes > 2 else 1), "bad_trees", what="outputs")
    check_index("trees.output", forest.output, 0, n_outputs)
    check_index("trees.roots", forest.roots, -n_leaves, n_nodes)
    check_index("trees.feature", forest.feature, 0, n_inputs)
    check_index("trees.category", forest.category, -1, len(forest.sets))
    own = np.arange(n_nodes)
    for name in ("left", "right"):
        below = getattr(forest, name)
        check_index(f"trees.{name}", below, -n_leaves, n_nodes)
        # What comes after a node can never lead back to it.
        refuse(((below >= 0) & (below <= own)).any(), "bad_trees", what="order of nodes")
    refuse(np.isnan(forest.threshold).any(), "not_finite", name="trees.threshold")
    for name in ("values", "base", "slopes"):
        check_array(f"trees.{name}", getattr(forest, name), getattr(forest, name).shape)
