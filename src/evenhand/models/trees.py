r"""Boosted trees and logistic regressions as plain arrays, whichever library fitted them.

A :class:`Forest` answers as the model that it was made of: the sums of its leaves are the same to
the last digit (of XGBoost, which adds up in float32, to the digits of that). Nothing but arrays is
needed for it, so it can be saved, checked and loaded where the library is not there.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, softmax

from evenhand._sklearn import boosted_trees
from evenhand.core.errors import InputError
from evenhand.engines.kernels import LIMITS, can_compile
from evenhand.engines.threads import cores

__all__ = ["Forest", "family_of", "forest_of"]

FloatArray = NDArray[np.float64]
# Rows that are answered at once: without compiled loops all trees are walked side by side.
CHUNK = 2048
# Arrays of a forest: of trees, of nodes, of leaves.
PER_TREE = ("roots", "output")
PER_NODE = ("feature", "threshold", "left", "right", "missing_left", "category")
ARRAYS = (*PER_TREE, *PER_NODE, "sets", "values", "base", "slopes")


class Split(NamedTuple):
    """Where a node sends its rows.

    A number goes left up to ``threshold``, a category if it is in ``categories``, and what is
    neither, NaN among them, if ``missing_left``.
    """

    feature: int
    threshold: float
    missing_left: bool
    left: Any
    right: Any
    categories: NDArray[np.bool_] | None = None


# What a node of a library's tree is: a leaf's value, or a split with the nodes below it.
Reader = Callable[[Any], float | Split]


@dataclass(frozen=True)
class Forest:
    r"""The sum of trees and a linear function, by output, and probabilities made of it.

    Parameters
    ----------
    roots, output : ndarray of shape (n_trees,)
        Node where a tree begins, and the output that it adds to. A negative node −1 − i is leaf i.
    feature, threshold, left, right, missing_left, category : ndarray of shape (n_nodes,)
        Column that a node looks at; a number up to the threshold goes left, and NaN if
        ``missing_left``. With ``category`` ≥ 0 the column holds numbers of categories, and those in
        that row of ``sets`` go left. The nodes below a node come after it, so that no walk is
        without an end.
    sets : ndarray of bool of shape (n_sets, n_categories)
        Categories that go left; one beyond them goes where NaN goes.
    values : ndarray of shape (n_leaves,)
        What a leaf adds.
    base : ndarray of shape (n_outputs,)
        What every row begins with: one output s for two classes, whose second one has the
        probability :math:`\sigma(s)`, else one for each class, of which a softmax is taken.
    slopes : ndarray of shape (n_outputs, n_features) or (n_outputs, 0)
        What a unit of each column adds; no columns of trees alone.
    """

    roots: NDArray[np.int64]
    output: NDArray[np.int64]
    feature: NDArray[np.int64]
    threshold: FloatArray
    left: NDArray[np.int64]
    right: NDArray[np.int64]
    missing_left: NDArray[np.bool_]
    category: NDArray[np.int64]
    sets: NDArray[np.bool_]
    values: FloatArray
    base: FloatArray
    slopes: FloatArray

    @property
    def n_classes(self) -> int:
        """How many classes it tells apart."""
        return max(len(self.base), 2)

    def raw(self, X: FloatArray) -> FloatArray:
        """Sum of the leaves and slopes of each row, shape (n_samples, n_outputs)."""
        out = np.tile(self.base, (len(X), 1))
        if self.slopes.size:
            X = np.asarray(X, dtype=np.float64)
            gaps = np.flatnonzero(~np.isfinite(X).all(axis=0))
            if len(gaps):
                raise InputError("inputs_not_finite", column=int(gaps[0]))
            out += X @ self.slopes.T
        starts = range(0, len(X), CHUNK)
        walk = self._walk
        if can_compile(len(X), LIMITS):
            from evenhand.engines.numba_trees import add_leaves

            arrays = [getattr(self, name) for name in (*PER_TREE, *PER_NODE, "sets", "values")]

            def walk(X: FloatArray, out: FloatArray) -> None:
                add_leaves(X, out, *arrays)

        with cores():
            cores.share(lambda i: walk(X[i : i + CHUNK], out[i : i + CHUNK]), starts)
        return out

    def _walk(self, X: FloatArray, out: FloatArray) -> None:
        """Add the leaves of a few rows, all trees side by side."""
        node = np.repeat(self.roots[:, None], len(X), axis=1)
        tree, row = np.nonzero(node >= 0)
        of_categories, gaps = bool(len(self.sets)), bool(np.isnan(X).any())
        while len(row):
            at = node[tree, row]
            x = X[row, self.feature[at]]
            left, missing = x <= self.threshold[at], np.isnan(x) if gaps else None
            if of_categories:
                s = self.category[at]
                known = (s >= 0) & (x >= 0) & (x < self.sets.shape[1])
                left[known] = self.sets[s[known], x[known].astype(np.intp)]
                missing = np.isnan(x) | ((s >= 0) & ~known)
            if missing is not None:
                left[missing] = self.missing_left[at[missing]]
            below = np.where(left, self.left[at], self.right[at])
            node[tree, row] = below
            inner = below >= 0
            row, tree = row[inner], tree[inner]
        # In the order of the trees, as they are fitted.
        for leaves, k in zip(node, self.output.tolist(), strict=True):
            out[:, k] += self.values[-1 - leaves]

    def predict_proba(self, X: FloatArray) -> FloatArray:
        """Probability of each class, shape (n_samples, n_classes)."""
        raw = self.raw(X)
        if raw.shape[1] > 1:
            return np.asarray(softmax(raw, axis=1))
        positive = expit(raw[:, 0])
        return np.column_stack([1 - positive, positive])


def _grow(trees: Sequence[tuple[int, Any, Reader]], base: Any) -> Forest:
    """Make a forest of a library's trees: of each its output, its root, and what reads a node."""
    roots, values, sets = [], [], list[NDArray[np.bool_]]()
    nodes: list[list[Any]] = []

    def place(found: float | Split) -> int:
        """Give a node's number; the nodes below it are still to be placed."""
        if not isinstance(found, Split):
            values.append(found)
            return -len(values)
        category = -1
        if found.categories is not None:
            category = len(sets)
            sets.append(found.categories)
        nodes.append([found.feature, found.threshold, 0, 0, found.missing_left, category, found])
        return len(nodes) - 1

    for _, root, read in trees:
        start = len(nodes)
        roots.append(place(read(root)))
        for at in _until_none_is_new(start, nodes):
            below = nodes[at].pop()
            nodes[at][2:4] = place(read(below.left)), place(read(below.right))
    width = max(map(len, sets), default=0)
    table = np.array([np.pad(one, (0, width - len(one))) for one in sets], dtype=bool)
    columns = dict(zip(PER_NODE, zip(*nodes, strict=True), strict=True)) if nodes else {}
    kinds = {"threshold": np.float64, "missing_left": np.bool_}
    return Forest(
        roots=np.array(roots, dtype=np.int64),
        output=np.array([k for k, *_ in trees], dtype=np.int64),
        **{n: np.array(columns.get(n, ()), dtype=kinds.get(n, np.int64)) for n in PER_NODE},
        sets=table.reshape(len(sets), width),
        values=np.array(values, dtype=np.float64),
        base=np.array(base, dtype=np.float64).ravel(),
        slopes=np.empty((np.size(base), 0)),
    )


def _until_none_is_new(start: int, nodes: list[Any]) -> Iterator[int]:
    """Give the numbers from ``start`` on of a list that grows meanwhile."""
    while start < len(nodes):
        yield start
        start += 1


def family_of(booster: Any) -> str:
    """Name of the library's class if its trees can be read, else an empty text."""
    return _kind(booster)[0] if _kind(booster) in READERS else ""


def _kind(model: Any) -> tuple[str, str]:
    """Give the names of a model's class and library."""
    return type(model).__name__, type(model).__module__.split(".")[0]


def forest_of(model: Any, n_categories: int = 0) -> Forest | None:
    """Give a fitted model's trees or weights as arrays; None where they cannot be read.

    Columns of categories hold their numbers, from 0 to below ``n_categories``.
    """
    steps = [model] if not hasattr(model, "steps") else [step for _, step in model.steps]
    if [_kind(step) for step in steps] in LINEAR:
        return _of_weights(steps)
    reader = READERS.get(_kind(model))
    return None if reader is None else reader(model, n_categories)


def _of_weights(steps: Sequence[Any]) -> Forest | None:
    """Read a logistic regression, after a standardisation or as it is."""
    *before, last = steps
    one_by_one = last.solver == "liblinear" and len(last.classes_) > 2
    if one_by_one or getattr(last, "multi_class", None) in ("ovr", "multinomial"):
        return None  # another function of the scores
    slopes = np.array(last.coef_, dtype=np.float64)
    base = last.intercept_ * np.ones(len(slopes))  # one 0 for all without an intercept
    for scaler in before:
        slopes /= 1.0 if scaler.scale_ is None else scaler.scale_
        base -= slopes @ (scaler.mean_ if scaler.with_mean else np.zeros(slopes.shape[1]))
    return replace(_grow([], base), slopes=slopes)


def _of_scikit_learn(model: Any, n_categories: int) -> Forest | None:
    rounds, base, columns, known = boosted_trees(model)
    trees = []
    for predictors in rounds:
        for k, predictor in enumerate(predictors):
            nodes, bitsets = predictor.nodes, predictor.raw_left_cat_bitsets

            def read(i: int, nodes: Any = nodes, bitsets: Any = bitsets) -> float | Split:
                node = nodes[i]
                if node["is_leaf"]:
                    return float(node["value"])
                column, missing = (
                    int(columns[node["feature_idx"]]),
                    bool(node["missing_go_to_left"]),
                )
                categories = None
                if node["is_categorical"]:
                    # The model has numbers of its own for the categories it has seen.
                    bits = np.unpackbits(
                        bitsets[node["bitset_idx"]].view(np.uint8), bitorder="little"
                    )
                    categories = np.full(n_categories, missing)
                    own = known[column]
                    categories[own] = bits[: len(own)].astype(bool)
                below = int(node["left"]), int(node["right"])
                return Split(column, float(node["num_threshold"]), missing, *below, categories)

            trees.append((k, 0, read))
    return _grow(trees, base)


def _of_lightgbm(model: Any, n_categories: int) -> Forest | None:
    dump = model.booster_.dump_model()
    objective, n_outputs = dump["objective"], dump["num_tree_per_iteration"]
    plain = objective == "binary sigmoid:1" or objective.startswith("multiclass num_class")
    if not plain or dump["average_output"]:
        return None

    foreign = []  # 0 as a missing value, and leaves with a linear model, are no trees of ours

    def read(node: Any) -> float | Split:
        if "split_feature" not in node:
            foreign.append("leaf_coeff" in node)
            return float(node["leaf_value"])
        foreign.append(node["missing_type"] == "Zero")
        column, below = node["split_feature"], (node["left_child"], node["right_child"])
        if node["decision_type"] == "==":
            categories = np.zeros(n_categories, dtype=bool)
            categories[[int(c) for c in node["threshold"].split("||")]] = True
            return Split(column, 0.0, False, *below, categories)
        threshold = float(node["threshold"])
        # Without missing values in training, NaN counts as 0.
        as_zero = node["missing_type"] == "None"
        missing = threshold >= 0 if as_zero else bool(node["default_left"])
        return Split(column, threshold, missing, *below)

    trees = [
        (i % n_outputs, info["tree_structure"], read) for i, info in enumerate(dump["tree_info"])
    ]
    forest = _grow(trees, np.zeros(n_outputs))
    return None if any(foreign) else forest


def _of_xgboost(model: Any, n_categories: int) -> Forest | None:
    learner = json.loads(model.get_booster().save_raw("json"))["learner"]
    booster, objective = learner["gradient_booster"], learner["objective"]["name"]
    if booster["name"] != "gbtree" or objective not in ("binary:logistic", "multi:softprob"):
        return None
    if model.missing is not None and not np.isnan(model.missing):
        return None  # the trees do not say which number is missing
    about, trees_of = learner["learner_model_param"], booster["model"]
    if any(int(tree["tree_param"]["size_leaf_vector"]) > 1 for tree in trees_of["trees"]):
        return None  # a leaf of multi_strategy="multi_output_tree" has a value for each class
    n_outputs = max(int(about["num_class"]), 1)
    base = np.float32(json.loads(about["base_score"])) * np.ones(n_outputs)
    base = np.log(base / (1 - base)) if n_outputs == 1 else base
    rounds = int(learner["attributes"].get("best_iteration", -1)) + 1
    found = list(zip(trees_of["tree_info"], trees_of["trees"], strict=True))
    per_round = n_outputs * max(int(trees_of["gbtree_model_param"]["num_parallel_tree"]), 1)
    trees = []
    for k, tree in found[: rounds * per_round or None]:
        sets = _categories_of(tree, n_categories)

        def read(i: int, tree: Any = tree, sets: Any = sets) -> float | Split:
            condition, left = tree["split_conditions"][i], tree["left_children"][i]
            if left < 0:
                return float(np.float32(condition))
            below, missing = (left, tree["right_children"][i]), bool(tree["default_left"][i])
            column = tree["split_indices"][i]
            if tree["split_type"][i]:  # those of the set go right
                return Split(column, 0.0, missing, *below, ~sets[i])
            return Split(column, _below(condition), missing, *below)

        trees.append((k, 0, read))
    return _grow(trees, base)


def _categories_of(tree: Any, n_categories: int) -> dict[int, NDArray[np.bool_]]:
    """Give the categories of each node of a tree of XGBoost."""
    sets = {}
    names = ("categories_nodes", "categories_segments", "categories_sizes")
    for node, start, size in zip(*(tree[name] for name in names), strict=True):
        sets[node] = np.zeros(n_categories, dtype=bool)
        sets[node][tree["categories"][start : start + size]] = True
    return sets


def _below(threshold: float) -> float:
    """Give the largest float64 that, rounded to float32, is below a float32."""
    t = np.float32(threshold)
    previous = np.nextafter(t, np.float32(-np.inf))
    middle = (float(previous) + float(t)) / 2
    # Halfway between two numbers rounding goes to the one whose last digit is even.
    goes_down = previous.view(np.uint32) % 2 == 0
    return float(middle if goes_down else np.nextafter(middle, -np.inf))


_LOGISTIC = ("LogisticRegression", "sklearn")
LINEAR = ([_LOGISTIC], [("StandardScaler", "sklearn"), _LOGISTIC])
"""Steps of models whose weights are read."""
READERS: dict[tuple[str, str], Callable[[Any, int], Forest | None]] = {
    ("HistGradientBoostingClassifier", "sklearn"): _of_scikit_learn,
    ("LGBMClassifier", "lightgbm"): _of_lightgbm,
    ("XGBClassifier", "xgboost"): _of_xgboost,
}
"""What reads the trees of a model, by the name of its class and of its library."""
