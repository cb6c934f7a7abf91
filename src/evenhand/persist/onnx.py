r"""A trained pipeline as an ONNX graph, for places without Python.

The graph has an input for each column: numbers as float64, shape (n, 1), NaN where missing; text as
strings, shape (n, 1). Numbers and dates that were text in the table, such as ``3,14 €``, are to be
read before, as the model's property ``read <column>`` says. Its outputs are ``label``, the number
of the predicted label in ``classes_`` order, which is not always 1 for the favourable answer (the
properties ``label 0``, ``label 1`` and ``favourable`` say what they are), and ``score``, as
:meth:`~evenhand.FairClassifier.decision_function` gives it, each with a ``_`` behind it if a column
is called so. The score is

.. math:: \sum_{\text{numbers}} w_j \frac{x_j - m_j}{s_j} + \sum_{\text{texts}} t_j[x_j] + b,

with a table :math:`t_j` of the weights of a column's values. :func:`onnx_feeds` makes the inputs of
a table.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._extras import import_extra
from evenhand.core.errors import InputError
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.tables.dates import MONTHS, WEEKDAYS
from evenhand.tables.groups import MISSING
from evenhand.tables.pipeline import FairPipeline
from evenhand.tables.plans import OTHER

__all__ = ["onnx_feeds", "to_onnx"]

OPSET, ML_OPSET, IR_VERSION = 17, 3, 8
OUTPUTS = ("label", "score")
ESTIMATES = "columns of estimates, boosted or adjusted,"


def _check(model: Any) -> None:
    if isinstance(model, FairBoostedClassifier):
        raise InputError("not_exportable", what=ESTIMATES)
    if not isinstance(model, FairPipeline):
        name = type(model).__name__
        raise TypeError(f"a {name} cannot be exported; give a fitted fair_pipeline.")
    has = {
        "a cut for each group": getattr(model[-1], "needs_group", False),
        ESTIMATES: isinstance(model[-1], FairBoostedClassifier),
        "a noise column": hasattr(model[-1], "noise_coef_"),
    }
    for what in (what for what, there in has.items() if there):
        raise InputError("not_exportable", what=what)


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
    encoder, classifier = model.named_steps["encoder"], model[-1]
    graph = _Graph(onnx, encoder, classifier)
    for k, plan in enumerate(encoder.plans_):
        graph.add_column(k, plan)
    opsets = {"": OPSET, "ai.onnx.ml": ML_OPSET}
    imports = [onnx.helper.make_opsetid(*opset) for opset in opsets.items()]
    proto = onnx.helper.make_model(
        graph.finished(), opset_imports=imports, producer_name="evenhand"
    )
    proto.ir_version = IR_VERSION
    properties = {f"label {i}": str(c) for i, c in enumerate(classifier.classes_.tolist())}
    properties["favourable"] = " | ".join(classifier.fitted_.favourable)
    properties |= {
        f"read {p.column}": f"{p.kind}, {p.written}" for p in encoder.plans_ if p.written
    }
    onnx.helper.set_model_props(proto, properties)
    onnx.checker.check_model(proto)
    return bytes(proto.SerializeToString())


class _Graph:
    """A graph that is made column by column: each adds a term to the score."""

    def __init__(self, onnx: Any, encoder: Any, classifier: Any) -> None:
        self.onnx, self.encoder, self.classifier = onnx, encoder, classifier
        names = encoder.get_feature_names_out().tolist()
        self.weights = dict(zip(names, classifier.coef_.T, strict=True))
        self.nodes: list[Any] = []
        self.inputs: list[Any] = []
        self.constants: list[Any] = []
        self.terms: list[str] = []
        columns = set(encoder.feature_names_in_.tolist())
        # Names inside the graph begin as no column does.
        self.prefix = "."
        while any(str(name).startswith(self.prefix) for name in columns):
            self.prefix += "."
        self.results = {name: f"{name}{'_' * (name in columns)}" for name in OUTPUTS}

    def constant(self, name: str, value: Any) -> str:
        """Add a constant and give its name."""
        name = f"{self.prefix}{name}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.asarray(value), name))
        return name

    def node(self, kind: str, inputs: list[str], name: str, **attributes: Any) -> str:
        """Add a node and give the name of its output."""
        name = self.results.get(name, f"{self.prefix}{name}")
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, [name], **attributes))
        return name

    def value(self, name: str, kind: str, *shape: Any) -> Any:
        """Describe an input or an output."""
        number = getattr(self.onnx.TensorProto, kind)
        return self.onnx.helper.make_tensor_value_info(name, number, ["n", *shape])

    def add_column(self, k: int, plan: Any) -> None:
        """Add what the k-th column contributes to the score."""
        if plan.kind == "category":
            self.add_text(k, plan.column, list(plan.categories))
        elif plan.kind != "dropped":
            self.add_number(k, plan)
        if plan.kind == "date":
            n, name = len(self.encoder.plans_), self.encoder.derived_name
            self.add_text(n + k, name(plan.column, ": month"), list(MONTHS))
            self.add_text(2 * n + k, name(plan.column, ": weekday"), list(WEEKDAYS))

    def add_number(self, k: int, plan: Any) -> None:
        """Add a number, filled and scaled, and the flag of a missing one."""
        column = plan.column
        self.inputs.append(self.value(column, "DOUBLE", 1))
        fill, mean, scale = (
            self.constant(f"{name}{k}", np.array([[getattr(plan, name)]]))
            for name in ("fill", "mean", "scale")
        )
        weight = self.constant(f"w{k}", self.weights[column][None])
        missing = self.node("IsNaN", [column], f"missing{k}")
        filled = self.node("Where", [missing, fill, column], f"x{k}")
        centred = self.node("Sub", [filled, mean], f"c{k}")
        scaled = self.node("Div", [centred, scale], f"z{k}")
        self.terms.append(self.node("Mul", [scaled, weight], f"t{k}"))
        if plan.indicator:
            weights = self.weights[self.encoder.derived_name(column, " is missing")]
            flag = self.node("Cast", [missing], f"m{k}", to=self.onnx.TensorProto.DOUBLE)
            weight = self.constant(f"v{k}", weights[None])
            self.terms.append(self.node("Mul", [flag, weight], f"s{k}"))

    def add_text(self, k: int, column: str, values: list[str]) -> None:
        """Add the weight of a text, which a table has for each value."""
        self.inputs.append(self.value(column, "STRING", 1))
        rows = [self.weights[f"{column} = {value}"] for value in values]
        table = np.vstack([*rows, np.zeros(len(self.classifier.coef_))])  # last: an unknown value
        other = values.index(OTHER) if OTHER in values else len(values)
        missing = values.index(MISSING) if MISSING in values else other
        codes = {v: i for i, v in enumerate(values) if v not in (MISSING, OTHER)} | {"": missing}
        code = self.node(
            "LabelEncoder",
            [column],
            f"code{k}",
            domain="ai.onnx.ml",
            keys_strings=list(codes),
            values_int64s=list(codes.values()),
            default_int64=other,
        )
        flat = self.node("Reshape", [code, self.constant(f"flat{k}", [-1])], f"flat_code{k}")
        self.terms.append(self.node("Gather", [self.constant(f"table{k}", table), flat], f"t{k}"))

    def finished(self) -> Any:
        """Add the sum of the terms, the score and the label; give the graph."""
        n_outputs, sign = len(self.classifier.coef_), self.classifier.fitted_.sign
        intercept = self.constant("intercept", self.classifier.intercept_[None])
        total = self.node("Sum", [*self.terms, intercept], "total")
        if n_outputs == 1:
            score = self.node("Reshape", [total, self.constant("one_axis", [-1])], "score")
            zero = self.constant("zero", 0.0)
            # As predict has it: a score of exactly 0 is not the favourable label's.
            above = self.node("Greater", [score, zero] if sign > 0 else [zero, score], "above")
            if sign < 0:
                above = self.node("Not", [above], "not_above")
            self.node("Cast", [above], "label", to=self.onnx.TensorProto.INT64)
        else:
            score = self.node("Identity", [total], "score")
            self.node("ArgMax", [score], "label", axis=1, keepdims=0)
        label, shape = self.results["label"], [n_outputs] if n_outputs > 1 else []
        outputs = [self.value(label, "INT64"), self.value(score, "DOUBLE", *shape)]
        return self.onnx.helper.make_graph(
            self.nodes, "evenhand", self.inputs, outputs, self.constants
        )


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
    feeds = {}
    for name, values in encoder.clean(X).items():
        if values.dtype.kind == "f":
            feeds[name] = values[:, None]
        else:
            texts = [
                "" if v == MISSING else "\0" if v is None or v == OTHER else v
                for v in values.tolist()
            ]
            feeds[name] = np.array(texts, dtype=object)[:, None]
    return feeds
