"""Saved models: one file of plain data, safe to open from anywhere.

A model file is a zip archive of three members:

- ``manifest.json``: the format's name and version, the evenhand that wrote it, and a SHA-256 of
  each other member;
- ``model.json``: what kind of model it is, parameters, plans of the columns, groups, labels, the
  frontier's shape and the facts of the training, with every array named;
- ``arrays.npz``: those arrays, numbers only.

Nothing in it is code and nothing is unpickled: whoever wrote the file, opening it can only give a
model or an error. A model that is loaded predicts bit for bit as the saved one.
"""

from __future__ import annotations

import hashlib
import io
import json
import lzma
import os
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand._versions import package_version
from evenhand.classifier import FairClassifier, FairnessWarning
from evenhand.columns import check_written
from evenhand.frontier import Frontier, Point
from evenhand.notions import find_notion
from evenhand.rates import AnyRate, Rate, WorstRate
from evenhand.selection import HeldOut
from evenhand.tables import ColumnPlan, FairPipeline, TableEncoder
from evenhand.trajectory import Trajectory

__all__ = [
    "ModelFileError",
    "SavedModel",
    "load_model",
    "model_writer",
    "save_model",
    "write_atomically",
]

FORMAT, FORMAT_VERSION = "evenhand-model", 1
MEMBERS = ("manifest.json", "model.json", "arrays.npz")
# No model is this large; a small file that claims to be is meant to fill the memory.
MOST_BYTES = 4 << 30
# What plain values of the wrong kind, size or depth can bring about.
UNREADABLE = (
    KeyError,
    TypeError,
    ValueError,
    IndexError,
    AttributeError,
    ArithmeticError,
    MemoryError,
    RecursionError,
    EOFError,
    zipfile.BadZipFile,
)


class ModelFileError(ValueError):
    """A file is no model, or no longer the one that was saved."""


@dataclass(frozen=True)
class SavedModel:
    """A model and what is known of its training.

    Parameters
    ----------
    model : FairPipeline or FairClassifier
        Fitted.
    facts : dict
        Facts of the training, plain values.
    """

    model: Any
    facts: dict[str, Any]


def write_atomically(
    path: str | os.PathLike[str],
    write: Callable[[Any], Any],
    *more: tuple[str | os.PathLike[str], Callable[[Any], Any]],
) -> None:
    """Write one file, or several, so that they are there whole or not at all.

    Parameters
    ----------
    path : path-like
        Where to.
    write : callable
        Given a binary file to write to.
    *more : tuple of (path-like, callable)
        Further files; none is put in its place before all are written.
    """
    umask = os.umask(0)
    os.umask(umask)
    written: list[tuple[str, Path]] = []
    try:
        for target, fill in ((path, write), *more):
            # A link is followed: what it leads to is replaced, not the link.
            place = Path(os.path.realpath(target))
            try:
                handle, name = tempfile.mkstemp(prefix=f".{place.name}.", dir=place.parent)
            except OSError as error:
                error.filename = str(target)  # nobody knows the temporary one
                raise
            written.append((name, place))
            with os.fdopen(handle, "wb") as file:
                fill(file)
            Path(name).chmod(0o666 & ~umask)  # as any other file, not as a temporary one
        for name, place in written:
            os.replace(name, place)
    except BaseException:
        for name, _ in written:
            Path(name).unlink(missing_ok=True)
        raise


def save_model(
    model: Any, path: str | os.PathLike[str], *, facts: Mapping[str, Any] | None = None
) -> None:
    """Save a fitted classifier or pipeline as one file of plain data.

    Parameters
    ----------
    model : FairPipeline or FairClassifier
        Fitted.
    path : path-like
        The file; an old one is replaced once the new one is whole.
    facts : mapping, optional
        Facts of the training to keep with it, plain values.
    """
    write_atomically(path, model_writer(model, facts=facts))


def model_writer(model: Any, *, facts: Mapping[str, Any] | None = None) -> Callable[[Any], None]:
    """Give what writes a model to a binary file, for :func:`write_atomically`.

    Parameters are those of :func:`save_model`.
    """
    arrays: dict[str, NDArray[Any]] = {}
    state: dict[str, Any] = {"facts": dict(facts or {})}
    if isinstance(model, FairPipeline):
        encoder = model.named_steps["encoder"]
        state["pipeline"] = {
            "sensitive": list(model.sensitive),
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
        classifier = model.named_steps["classifier"]
    else:
        classifier = model
    if type(classifier) is not FairClassifier:
        raise TypeError(
            f"a {type(classifier).__name__} cannot be saved; models are FairClassifier, alone or "
            "in a fair_pipeline."
        )
    if not classifier.__sklearn_is_fitted__():
        raise ValueError("the model is not fitted yet; there is nothing to save.")
    state["classifier"] = _classifier_state(classifier, arrays)
    held = io.BytesIO()
    np.savez(held, allow_pickle=False, **arrays)
    members = {
        "model.json": json.dumps(state, allow_nan=True, ensure_ascii=False).encode(),
        "arrays.npz": held.getvalue(),
    }
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": f"evenhand {package_version('evenhand')}",
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }

    def write(file: Any) -> None:
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("manifest.json", json.dumps(manifest, indent=1))
            for name, data in members.items():
                archive.writestr(name, data)

    return write


def load_model(path: str | os.PathLike[str]) -> SavedModel:
    """Load a saved model.

    Parameters
    ----------
    path : path-like
        The file.

    Returns
    -------
    SavedModel
        The model, fitted, and the facts of its training.
    """
    path = Path(path)
    members = _read_members(path)
    try:
        manifest = json.loads(members["manifest.json"])
        known = manifest.get("format") == FORMAT
    except (ValueError, AttributeError, RecursionError):
        known = False
    if not known:
        raise ModelFileError(f"{path} is no evenhand model.")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has the format version {version!r}, and this evenhand reads {FORMAT_VERSION}; "
            f"it was written by {str(manifest.get('written_by'))[:60]!r}."
        )
    for name in MEMBERS[1:]:
        found = hashlib.sha256(members[name]).hexdigest()
        if manifest.get("sha256", {}).get(name) != found:
            raise ModelFileError(
                f"{path} is damaged or was changed: its {name} is not the one that was saved."
            )
    try:
        state = json.loads(members["model.json"])
        with zipfile.ZipFile(io.BytesIO(members["arrays.npz"])) as inner:
            if sum(info.file_size for info in inner.infolist()) > MOST_BYTES:
                raise ValueError("its arrays are larger than any model's")
        with np.load(io.BytesIO(members["arrays.npz"]), allow_pickle=False) as held:
            arrays = {name: held[name] for name in held.files}
        classifier = _classifier_from(state["classifier"], arrays)
        if "pipeline" not in state:
            return SavedModel(classifier, _check_facts(state["facts"], classifier))
        encoder = _encoder_from(state["encoder"])
        n_inputs = len(encoder.get_feature_names_out())
        if n_inputs != classifier.n_features_in_:
            raise ValueError(
                f"the columns make {n_inputs} inputs, the classifier has "
                f"{classifier.n_features_in_}"
            )
        about = state["pipeline"]
        _check_texts("sensitive", about["sensitive"])
        if not about["sensitive"] or about["missing_groups"] not in ("error", "drop", "group"):
            raise ValueError("no sensitive columns, or no way with missing groups")
        pipeline = FairPipeline(
            [("encoder", encoder), ("classifier", classifier)],
            sensitive=about["sensitive"],
            missing_groups=about["missing_groups"],
        )
        pipeline.n_dropped_ = int(about["n_dropped"])
        # Models of earlier versions have no bins that are crossed.
        pipeline.bins = about.get("bins") or None
        pipeline.edges_ = _edges_from(about)
        if set(pipeline.edges_) != set(pipeline.bins or {}):
            raise ValueError("bins and their edges are not of the same columns")
        return SavedModel(pipeline, _check_facts(state["facts"], pipeline))
    except UNREADABLE as error:
        what = str(error).splitlines()[0][:200] if str(error) else ""
        raise ModelFileError(
            f"{path} is no model this evenhand can read ({type(error).__name__}: {what!s})."
        ) from None


def _read_members(path: Path) -> dict[str, bytes]:
    with path.open("rb") as file:
        return _members_of(file, path)


def _members_of(file: Any, path: Path) -> dict[str, bytes]:
    try:
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if "manifest.json" not in names:
                raise ModelFileError(f"{path} is no evenhand model.")
            if sorted(names) != sorted(MEMBERS):
                raise ModelFileError(
                    f"{path} is damaged or was changed: it should hold {', '.join(MEMBERS)}."
                )
            if sum(info.file_size for info in archive.infolist()) > MOST_BYTES:
                raise ModelFileError(f"{path} says it is larger than any model; it is not opened.")
            return {name: archive.read(name) for name in MEMBERS}
    except zipfile.BadZipFile as error:
        what = "is damaged" if "CRC" in str(error) else "is no evenhand model, or a part of one"
        raise ModelFileError(f"{path} {what}.") from None
    except ModelFileError:
        raise
    except (OSError, struct.error, zlib.error, lzma.LZMAError, RuntimeError, *UNREADABLE):
        # Places in the file that are not there, ways to compress that do not exist, and the like.
        raise ModelFileError(f"{path} is damaged.") from None


# ---- values ----------------------------------------------------------------------------------


def _values(array: NDArray[Any]) -> dict[str, Any]:
    """Write labels, groups or names with what kind of values they are."""
    kinds = {"O": "object", "U": "str", "b": "bool", "i": "int", "u": "int", "f": "float"}
    kind = kinds.get(np.asarray(array).dtype.kind)
    values = np.asarray(array).tolist()
    plain = all(isinstance(v, str | bool | int | float) for v in values)
    if kind is None or not plain:
        raise TypeError(f"labels or groups such as {values[0]!r} cannot be saved; use text.")
    return {"kind": kind, "values": values}


def _array(held: Mapping[str, Any]) -> NDArray[Any]:
    kinds = {"object": object, "str": str, "bool": bool, "int": np.int64, "float": np.float64}
    return np.array(held["values"], dtype=kinds[held["kind"]])


def _rate_state(rate: AnyRate) -> dict[str, Any]:
    parts = [asdict(part) for part in rate.parts]
    return {"name": rate.name, "parts": parts, "shares": list(getattr(rate, "shares", ()))}


def _rate_from(state: Mapping[str, Any], *, single: bool) -> AnyRate:
    parts = [
        Rate(
            str(p["name"]),
            tuple((int(y), int(z)) for y, z in p["numerator"]),
            tuple((int(y), int(z)) for y, z in p["denominator"]),
            bool(p["is_error"]),
        )
        for p in state["parts"]
    ]
    if single:
        return parts[0]
    return WorstRate(str(state["name"]), tuple(parts), tuple(map(float, state["shares"])))


# ---- the classifier --------------------------------------------------------------------------

COLUMNS = ("iterate", "cut", "accuracy", "rate", "counts")
PLAIN = ("_where", "_requirement", "_by_group", "_certify", "_sign", "_interrupted")


def _frontier_state(
    frontier: Frontier, arrays: dict[str, NDArray[Any]], name: str
) -> dict[str, Any]:
    arrays |= {f"{name}.{column}": getattr(frontier, column) for column in COLUMNS}
    last = frontier.last
    arrays[f"{name}.last.counts"] = np.asarray(last.counts)
    arrays[f"{name}.last.cut"] = np.asarray(last.cut)
    return {
        "last": [last.iterate, last.accuracy, last.rate],
        "favourable": [int(c) for c in frontier.favourable],
        "rate_name": frontier.rate_name,
        "complete": frontier.complete,
        "n_sure": frontier.n_sure,
        "wary": frontier.wary is not None,
    }


def _frontier_from(
    state: Mapping[str, Any],
    arrays: Mapping[str, NDArray[Any]],
    name: str,
    groups: list[Any],
    labels: list[Any],
    wary: Frontier | None = None,
) -> Frontier:
    cut = arrays[f"{name}.last.cut"]
    iterate, accuracy, rate = state["last"]
    last = Point(
        int(iterate),
        cut if cut.ndim else float(cut),
        float(accuracy),
        float(rate),
        arrays[f"{name}.last.counts"],
        False,
    )
    return Frontier(
        iterate=arrays[f"{name}.iterate"],
        cut=arrays[f"{name}.cut"],
        accuracy=arrays[f"{name}.accuracy"],
        rate=arrays[f"{name}.rate"],
        counts=arrays[f"{name}.counts"],
        groups=groups,
        last=last,
        labels=labels,
        favourable=[int(c) for c in state["favourable"]],
        rate_name=str(state["rate_name"]),
        complete=bool(state["complete"]),
        n_sure=int(state["n_sure"]),
        wary=wary,
    )


def _classifier_state(model: FairClassifier, arrays: dict[str, NDArray[Any]]) -> dict[str, Any]:
    params = model.get_params()
    if callable(params["sensitive_feature"]):
        raise TypeError("a classifier whose sensitive_feature is a function cannot be saved.")
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
    state: dict[str, Any] = {
        "params": params,
        "plain": {name: getattr(model, name) for name in PLAIN},
        "classes": _values(model.classes_),
        "labels": _values(model._labels),
        "groups": _values(model.groups_),
        "small_groups": [[name, int(n)] for name, n in model.small_groups_.items()],
        "n_features_in": model.n_features_in_,
        "n_iter": int(model.n_iter_),
        "converged": bool(model.converged_),
        "rate": _rate_state(model._rate) | {"single": isinstance(model._rate, Rate)},
        "frontier": _frontier_state(model.frontier_, arrays, "frontier"),
    }
    if hasattr(model, "feature_names_in_"):
        state["feature_names_in"] = _values(model.feature_names_in_)
    if model.frontier_.wary is not None:
        state["wary"] = _frontier_state(model.frontier_.wary, arrays, "wary")
    arrays["inputs"] = model._inputs
    if model._edges is not None:
        arrays["edges"] = model._edges
    held = model.held_out_
    if held is not None:
        own = held.points is not model.frontier_
        state["held_out"] = {"n_rows": held.n_rows, "n_fitted": held.n_fitted, "own": own}
        for column in ("counts", "accuracy", "rate", "bound", "last"):
            arrays[f"held_out.{column}"] = getattr(held, column)
        if own:
            state["held_out"]["points"] = _frontier_state(held.points, arrays, "held_out.points")
    rows, kept = model.trajectory_._rows, model.trajectory_._kept
    state["trajectory"] = {"leg": [row["leg"] for row in rows]}
    if rows:
        for name in rows[0]:
            if name != "leg":
                arrays[f"trajectory.{name}"] = np.array([row[name] for row in rows])
    arrays["kept.row"] = np.array([row for row, _ in kept])
    arrays["kept.iterate"] = np.array([iterate for _, iterate in kept])
    return state


def _classifier_from(
    state: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]
) -> FairClassifier:
    for name, array in arrays.items():
        if array.dtype.kind not in "biuf":
            raise ValueError(f"the array {name!r} holds no numbers")
    params = dict(state["params"])
    unknown = set(params) - set(FairClassifier().get_params())
    if unknown:
        raise ValueError(f"unknown parameter {min(unknown)!r}")
    model = FairClassifier(**params)
    model._validate_params()
    for name in PLAIN:
        setattr(model, name, state["plain"][name])
    model.classes_, model._labels = _array(state["classes"]), _array(state["labels"])
    model.groups_ = _array(state["groups"])
    model.small_groups_ = {
        (tuple(name) if isinstance(name, list) else name): int(n)
        for name, n in state["small_groups"]
    }
    model.n_features_in_ = int(state["n_features_in"])
    if "feature_names_in" in state:
        model.feature_names_in_ = _array(state["feature_names_in"])
    model.n_iter_, model.converged_ = int(state["n_iter"]), bool(state["converged"])
    model._inputs, model._edges = arrays["inputs"], arrays.get("edges")
    model._rate = _rate_from(state["rate"], single=bool(state["rate"]["single"]))
    names = model.groups_.tolist(), model._labels.tolist()
    wary = _frontier_from(state["wary"], arrays, "wary", *names) if "wary" in state else None
    model.frontier_ = _frontier_from(state["frontier"], arrays, "frontier", *names, wary=wary)
    model.held_out_ = None
    if "held_out" in state:
        about, points = state["held_out"], model.frontier_
        if about["own"]:
            points = _frontier_from(about["points"], arrays, "held_out.points", *names)
        columns = {
            name: arrays[f"held_out.{name}"]
            for name in ("counts", "accuracy", "rate", "bound", "last")
        }
        n_rows, n_fitted = int(about["n_rows"]), int(about["n_fitted"])
        model.held_out_ = HeldOut(points, **columns, n_rows=n_rows, n_fitted=n_fitted)
    trajectory = model.trajectory_ = Trajectory(model._rate, len(model.groups_))
    legs = state["trajectory"]["leg"]
    series = {
        name.split(".", 1)[1]: arrays[name] for name in arrays if name.startswith("trajectory.")
    }
    trajectory._rows = [
        {"leg": str(leg)} | {name: v[i] if v[i].ndim else v[i].item() for name, v in series.items()}
        for i, leg in enumerate(legs)
    ]
    pairs = zip(arrays["kept.row"].tolist(), arrays["kept.iterate"], strict=True)
    trajectory._kept = [(int(row), iterate) for row, iterate in pairs]
    _check_classifier(model)
    with warnings.catch_warnings():
        # Whoever saved a model that misses its target was told.
        warnings.simplefilter("ignore", FairnessWarning)
        return model._choose()


# ---- checks ----------------------------------------------------------------------------------
# Checksums say that a file is the one that was saved, not who saved it: what a later step relies on
# is looked at here, so that it is said on loading and not somewhere inside.


def _check_shape(name: str, values: Any, shape: tuple[int, ...], *, finite: bool = True) -> None:
    array = np.asarray(values)
    if array.dtype.kind not in "biuf" or array.shape != shape:
        raise ValueError(f"{name} has the shape {array.shape} and not {shape}")
    if finite and not (np.abs(array) <= LARGEST).all():
        raise ValueError(f"{name} has values that are no numbers, or too large")


def _check_counts(name: str, values: Any, shape: tuple[int, ...]) -> None:
    _check_range(name, values, shape, MOST_ROWS)


def _check_range(name: str, values: Any, shape: tuple[int, ...], most: float) -> None:
    _check_shape(name, values, shape)
    array = np.asarray(values)
    if (array < 0).any() or (array > most).any():
        raise ValueError(f"{name} has values below 0 or above {most:g}")


def _check_index(name: str, values: Any, low: int, high: int) -> None:
    array = np.asarray(values)
    inside = array.dtype.kind in "iu" and ((array >= low) & (array < high)).all()
    if array.size and not inside:
        raise ValueError(f"{name} has numbers that are not from {low} to {high - 1}")


def _check_type(name: str, value: Any, kind: type | tuple[type, ...]) -> None:
    # A truth value is a whole number to Python, but none here.
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{name} is {str(value)[:40]!r}")


def _check_texts(name: str, values: Any) -> None:
    _check_type(name, values, list)
    for value in values:
        _check_type(name, value, str)


def _check_classifier(model: FairClassifier) -> None:
    """Refuse a classifier whose parts do not fit together."""
    find_notion(model.notion, model.degree, model.tau)
    for name, kind in {
        "_where": str,
        "_requirement": str,
        "_by_group": bool,
        "_interrupted": bool,
    }.items():
        _check_type(name, getattr(model, name), kind)
    if model._sign not in (1, -1):
        raise ValueError(f"_sign is {model._sign!r}")
    if model._certify is not None and not 0 < model._certify < 1:
        raise ValueError(f"_certify is {model._certify!r}")
    for name in ("classes_", "groups_"):
        values = getattr(model, name).tolist()
        if len(values) < 2 or len(set(values)) < len(values):
            raise ValueError(f"{name} are not two or more different values")
    if sorted(model._labels.tolist(), key=str) != sorted(model.classes_.tolist(), key=str):
        raise ValueError("the labels are not the classes")
    n_labels, n_inputs = len(model.classes_), len(model._inputs)
    kinds = len(model.groups_) + bool(model.small_groups_)
    _check_shape("inputs", model._inputs, (n_inputs,))
    _check_index("inputs", model._inputs, 0, model.n_features_in_)
    if not n_inputs or len(np.unique(model._inputs)) < n_inputs:
        raise ValueError("inputs are none, or one of them twice")
    if model._edges is not None:
        _check_shape("edges", model._edges, (len(model._edges),))
    for part in model._rate.parts:
        for cell in (*part.numerator, *part.denominator):
            _check_index(f"the rate {part.name!r}", np.array(cell), 0, n_labels)
        top, bottom = set(part.numerator), set(part.denominator)
        once = (len(top), len(bottom)) == (len(part.numerator), len(part.denominator))
        if not top or not top <= bottom or not once:
            raise ValueError(f"the rate {part.name!r} is no share of anything")
    shares = getattr(model._rate, "shares", ())
    if shares and (len(shares) != len(model._rate.parts) or min(shares) <= 0):
        raise ValueError("the rates have no shares that fit them")
    trajectory = model.trajectory_
    n_kept, n_rows = len(trajectory._kept), len(trajectory._rows)
    width = (1 if n_labels == 2 else n_labels) * (n_inputs + 1)
    _check_shape("kept.iterate", trajectory.iterates, (n_kept, width))
    _check_index("kept.row", trajectory.iterate_rows, -1, n_rows)
    for row in trajectory._rows:
        if set(row) != {"leg", "counts", *SERIES}:
            raise ValueError("the trajectory does not have the columns it should have")
        _check_counts("trajectory.counts", row["counts"], (kinds, n_labels, n_labels))
        for name, value in row.items():
            if name not in ("leg", "counts"):
                _check_shape(f"trajectory.{name}", value, (), finite=False)
    shape = (kinds, n_labels, n_labels)
    cuts = (kinds,) if model._by_group else (n_labels,) if n_labels > 2 else ()
    _check_frontier("frontier", model.frontier_, shape, cuts, n_kept)
    held = model.held_out_
    if model.frontier_.wary is not None:
        _check_frontier("wary", model.frontier_.wary, shape, cuts, n_kept)
    if held is not None:
        if held.points is not model.frontier_:
            _check_frontier("held_out.points", held.points, shape, cuts, n_kept)
        n = len(held.points)
        if held.n_rows < 0 or held.n_fitted < 1:
            raise ValueError("no rows were fitted to, or fewer than none held out")
        _check_shape("held_out.counts", held.counts, (n, *shape), finite=False)
        _check_shape("held_out.last", held.last, shape, finite=False)
        for name in ("accuracy", "rate", "bound"):
            # A rate may be undefined among the rows held out, and a bound unknown.
            _check_shape(f"held_out.{name}", getattr(held, name), (n,), finite=False)
            _check_range(f"held_out.{name}", np.nan_to_num(getattr(held, name)), (n,), 1 + 1e-9)


def _check_frontier(
    name: str, frontier: Frontier, shape: tuple[int, ...], cuts: tuple[int, ...], n_kept: int
) -> None:
    n = len(frontier.rate)
    _check_shape(f"{name}.iterate", frontier.iterate, (n,))
    for column in ("accuracy", "rate"):
        _check_range(f"{name}.{column}", getattr(frontier, column), (n,), 1 + 1e-9)
    _check_shape(f"{name}.cut", frontier.cut, (n, *cuts) if n else frontier.cut.shape)
    _check_counts(f"{name}.counts", frontier.counts, (n, *shape))
    _check_counts(f"{name}.last.counts", frontier.last.counts, shape)
    _check_shape(f"{name}.last.cut", frontier.last.cut, cuts)
    _check_index(f"{name}.iterate", np.append(frontier.iterate, frontier.last.iterate), 0, n_kept)
    _check_index(f"{name}.favourable", np.array(frontier.favourable), 0, shape[-1])
    if not frontier.favourable or not 0 <= frontier.n_sure <= n:
        raise ValueError(f"{name} has no favourable label, or more sure points than points")


# Columns of a trajectory besides its legs and counts.
SERIES = (
    *("iteration", "alpha", "loss_c", "loss_w", "loss_u", "gap", "norm_c", "norm_f", "norm_step"),
    *("evaluations", "seconds"),
)
# No table has so many rows, and no weight or median is so large.
MOST_ROWS, LARGEST = 1e15, 1e100
FACTS: dict[str, type] = {
    "title": str,
    "label": str,
    "n_rows": int,
    "n_train": int,
    "n_test": int,
    "test_title": str,
    "fingerprint": str,
    "seed": int,
    "command": str,
    "created": str,
}


def _check_facts(facts: Any, model: Any) -> dict[str, Any]:
    """Refuse facts of a training that a report could not be made of; others may be anything."""
    _check_type("facts", facts, dict)
    if "train_counts" not in facts:
        return dict(facts)
    if not isinstance(model, FairPipeline):
        raise ValueError("facts of a training need the encoder of its table")
    classifier: FairClassifier = model[-1]
    for name, kind in FACTS.items():
        _check_type(name, facts[name], kind)
    for name in ("sensitive", "favourable"):
        _check_texts(name, facts[name])
    for dropped in facts["rows_dropped"]:
        _check_type("rows_dropped", dropped["reason"], str)
        _check_type("rows_dropped", dropped["n"], int)
    _check_type("versions", facts["versions"], dict)
    _check_texts("versions", list(facts["versions"].values()))
    n_labels = len(classifier.classes_)
    kinds = len(classifier.groups_) + bool(classifier.small_groups_)
    shape = (kinds, n_labels, n_labels)
    plain = facts["plain"]
    _check_shape("plain.weights", plain["weights"], classifier.trajectory_.iterates.shape[1:])
    for part in ("train", *(["test"] if "test_counts" in facts else [])):
        name = f"{part}_counts"
        _check_counts(name, facts[name], (len(classifier.frontier_) + 1, *shape))
        _check_counts(f"plain.counts.{part}", plain["counts"][part], shape)
        # Models of earlier versions, and those that are not certified, have none.
        if "candidate_counts" in facts:
            n = len(classifier.held_out_.points) + 1 if classifier.held_out_ else 0
            _check_counts(f"candidate_counts.{part}", facts["candidate_counts"][part], (n, *shape))
    return dict(facts)


def _edges_from(about: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    edges = {}
    for name, values in about.get("edges", {}).items():
        edges[name] = np.array(values, dtype=np.float64)
        rising = edges[name].ndim == 1 and bool((np.diff(edges[name]) > 0).all())
        if name not in about["sensitive"] or not rising or not np.isfinite(edges[name]).all():
            raise ValueError(f"no edges of bins of column {name!r}")
    return edges


def _check_plan(plan: Mapping[str, Any]) -> None:
    """Refuse a plan that no column can be read by."""
    column = plan["column"]
    for name in ("column", "action"):
        _check_type(name, plan[name], str)
    for name in ("names", "categories"):
        _check_texts(f"{name} of column {column!r}", plan[name])
    for name in ("fill", "mean", "scale"):
        _check_shape(f"{name} of column {column!r}", plan[name], ())
    if plan["scale"] <= 0:
        raise ValueError(f"the scale of column {column!r} is not above 0")
    values = plan["categories"]
    if len(set(values)) < len(values) or (plan["kind"] == "category" and not values):
        raise ValueError(f"the categories of column {column!r} are none, or one of them twice")


def _encoder_from(state: Mapping[str, Any]) -> TableEncoder:
    known = {field.name for field in fields(ColumnPlan)}
    plans = []
    for plan in state["plans"]:
        # Models of earlier versions do not say how values are written: in one way only.
        plan = {"written": ""} | plan
        if set(plan) != known or plan["kind"] not in ("number", "category", "date", "dropped"):
            raise ValueError(f"no plan of a column: {plan!r}")
        check_written(plan["kind"], plan["written"])
        _check_plan(plan)
        plans.append(
            ColumnPlan(
                str(plan["column"]),
                str(plan["kind"]),
                str(plan["action"]),
                tuple(map(str, plan["names"])),
                float(plan["fill"]),
                float(plan["mean"]),
                float(plan["scale"]),
                bool(plan["indicator"]),
                bool(plan["tolerant"]),
                tuple(map(str, plan["categories"])),
                plan["written"],
            )
        )
    if len({plan.column for plan in plans}) < len(plans):
        raise ValueError("two plans of one column")
    return TableEncoder.from_plans(plans, sparse=bool(state["sparse"]), **state["params"])
