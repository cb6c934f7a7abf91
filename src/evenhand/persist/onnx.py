r"""A trained pipeline as an ONNX graph, for places without Python.

The graph has an input for each column: numbers as float64, shape (n, 1), NaN where missing; text as
strings, shape (n, 1). Numbers and dates that were text in the table, such as ``3,14 €``, are to be
read before, as the model's property ``read <column>`` says. Its outputs are ``label``, the number
of the predicted label in ``classes_`` order, and ``score``, as
:meth:`~evenhand.FairClassifier.decision_function` gives it, each with a ``_`` behind it if a column
is called so. The score is

.. math:: \sum_{\text{numbers}} w_j \frac{x_j - m_j}{s_j} + \sum_{\text{texts}} t_j[x_j] + b,

with a table :math:`t_j` of the weights of a column's values. :func:`onnx_feeds` makes the inputs of
a table.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._extras import import_extra
from evenhand.tables.encoder import OTHER
from evenhand.tables.groups import MISSING
from evenhand.tables.parse import MONTHS, WEEKDAYS, as_frame
from evenhand.tables.pipeline import FairPipeline

__all__ = ["onnx_feeds", "to_onnx"]

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
OUTPUTS = ("label", "score")


def _check(model: Any) -> None:
    if not isinstance(model, FairPipeline):
        name = type(model).__name__
        raise TypeError(f"a {name} cannot be exported; give a fitted fair_pipeline.")
    if getattr(model[-1], "needs_group", False):
        raise ValueError("a model with a cut for each group cannot be exported to ONNX.")
    if hasattr(model[-1], "noise_coef_"):
        raise ValueError("a model with a noise column cannot be exported to ONNX.")


def to_onnx(model: Any) -> bytes:
    """Write a pipeline as an ONNX model.

    Parameters
    ----------
    model : FairPipeline
        Fitted; one cut for everybody.

    Returns
    -------
    bytes
        What to write to a file.
    """
    _check(model)
    onnx = import_extra("onnx", "onnx")
    helper, numpy_helper, kinds = onnx.helper, onnx.numpy_helper, onnx.TensorProto
    encoder, classifier = model.named_steps["encoder"], model[-1]
    weights = dict(zip(encoder.get_feature_names_out().tolist(), classifier.coef_.T, strict=True))
    n_outputs = len(classifier.coef_)
    nodes, inputs, constants, terms = [], [], [], []

    # Names inside the graph begin as no column does.
    own = "."
    while any(str(name).startswith(own) for name in encoder.feature_names_in_):
        own += "."
    results = {out: f"{out}{'_' * (out in set(encoder.feature_names_in_))}" for out in OUTPUTS}

    def constant(name: str, value: NDArray[Any]) -> str:
        name = f"{own}{name}"
        constants.append(numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(kind: str, ins: list[str], out: str, **attributes: Any) -> str:
        out = results.get(out, f"{own}{out}")
        nodes.append(helper.make_node(kind, ins, [out], **attributes))
        return out

    def number(k: int, plan: Any) -> None:
        column = name = plan.column
        fill, mean, scale, indicator = plan.fill, plan.mean, plan.scale, plan.indicator
        inputs.append(helper.make_tensor_value_info(column, kinds.DOUBLE, ["n", 1]))
        unknown = node("IsNaN", [column], f"missing{k}")
        filled = node("Where", [unknown, constant(f"fill{k}", np.array([[fill]])), column], f"x{k}")
        centred = node("Sub", [filled, constant(f"mean{k}", np.array([[mean]]))], f"c{k}")
        scaled = node("Div", [centred, constant(f"scale{k}", np.array([[scale]]))], f"z{k}")
        terms.append(node("Mul", [scaled, constant(f"w{k}", weights[name][None])], f"t{k}"))
        flag = weights[encoder._derived(name, " is missing")] if indicator else None
        if flag is not None:
            as_number = node("Cast", [unknown], f"m{k}", to=kinds.DOUBLE)
            terms.append(node("Mul", [as_number, constant(f"v{k}", flag[None])], f"s{k}"))

    def text(k: int, column: str, values: list[str]) -> None:
        inputs.append(helper.make_tensor_value_info(column, kinds.STRING, ["n", 1]))
        rows = [weights[f"{column} = {value}"] for value in values]
        table = np.vstack([*rows, np.zeros(n_outputs)])  # the last is that of an unknown value
        other = values.index(OTHER) if OTHER in values else len(values)
        missing = values.index(MISSING) if MISSING in values else other
        known = [(v, i) for i, v in enumerate(values) if v not in (MISSING, OTHER)]
        code = node(
            "LabelEncoder",
            [column],
            f"code{k}",
            domain="ai.onnx.ml",
            keys_strings=[*(v for v, _ in known), ""],
            values_int64s=[*(i for _, i in known), missing],
            default_int64=other,
        )
        flat = node("Reshape", [code, constant(f"flat{k}", np.array([-1]))], f"flat_code{k}")
        terms.append(node("Gather", [constant(f"table{k}", table), flat], f"t{k}"))

    for k, plan in enumerate(encoder.plans_):
        if plan.kind == "dropped":
            continue
        if plan.kind == "category":
            text(k, plan.column, list(plan.categories))
            continue
        number(k, plan)
        if plan.kind == "date":
            n = len(encoder.plans_)
            text(n + k, encoder._derived(plan.column, ": month"), list(MONTHS))
            text(2 * n + k, encoder._derived(plan.column, ": weekday"), list(WEEKDAYS))
    terms.append(constant("intercept", classifier.intercept_[None]))
    total = node("Sum", terms, "total")
    if n_outputs == 1:
        score = node("Reshape", [total, constant("one_axis", np.array([-1]))], "score")
        zero = constant("zero", np.array(0.0))
        # As predict has it: a score of exactly 0 is not the favourable label's.
        above = node("Greater", [score, zero] if classifier._sign > 0 else [zero, score], "above")
        if classifier._sign < 0:
            above = node("Not", [above], "not_above")
        node("Cast", [above], "label", to=kinds.INT64)
        shape: list[Any] = ["n"]
    else:
        node("Identity", [total], "score")
        node("ArgMax", [results["score"]], "label", axis=1, keepdims=0)
        shape = ["n", n_outputs]
    outputs = [
        helper.make_tensor_value_info(results["label"], kinds.INT64, ["n"]),
        helper.make_tensor_value_info(results["score"], kinds.DOUBLE, shape),
    ]
    graph = helper.make_graph(nodes, "evenhand", inputs, outputs, constants)
    opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid("ai.onnx.ml", ML_OPSET)]
    proto = helper.make_model(graph, opset_imports=opsets, producer_name="evenhand")
    proto.ir_version = IR_VERSION
    labels = [str(label) for label in classifier.classes_.tolist()]
    properties = {f"label {i}": label for i, label in enumerate(labels)}
    properties |= {
        f"read {p.column}": f"{p.kind}, {p.written}" for p in encoder.plans_ if p.written
    }
    helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString())


def onnx_feeds(model: Any, X: Any) -> dict[str, NDArray[Any]]:
    """Make the inputs of the ONNX graph from a table.

    Parameters
    ----------
    model : FairPipeline
        The pipeline that was exported.
    X : pandas, polars or pyarrow table
        The table.

    Returns
    -------
    dict of str to ndarray
        What to give to an ``InferenceSession``.
    """
    _check(model)
    encoder = model.named_steps["encoder"]
    clean = encoder._clean(as_frame(X))
    feeds = {}
    for name in clean.columns:
        values = clean[name]
        if values.dtype.kind == "f":
            if name in encoder.feature_names_in_:
                feeds[name] = values.to_numpy()[:, None]
        else:
            texts = [
                "" if v == MISSING else "\0" if v is None or v == OTHER else v
                for v in values.tolist()
            ]
            feeds[name] = np.array(texts, dtype=object)[:, None]
    return feeds
