"""Saved models: one file of plain data, safe to open from anywhere.

A model file is a zip archive of three members:

- ``manifest.json``: the format's name and version, the evenhand that wrote it, and a SHA-256 of
  each other member;
- ``model.json``: what kind of model it is, parameters, plans of the columns, groups, labels, the
  frontier's shape and the facts of the training, with every array named;
- ``arrays.npz``: those arrays, numbers only.

Nothing in it is code and nothing is unpickled: whoever wrote the file, opening it can only give a
model or an error. A file is held to limits before anything of it is unpacked or parsed, so that one
that is refused has taken little time and memory; and figures that follow from others are found
again, so that one that contradicts itself is refused. A model that is loaded predicts bit for bit
as the saved one.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
import re
import struct
import warnings
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields
from functools import partial
from pathlib import Path
from reprlib import repr as brief
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from evenhand._atomic import write_atomically
from evenhand._extras import package_version
from evenhand.core.notions import AnyNotion, find_notion, of_labels
from evenhand.core.rates import AnyRate, Rate, WorstRate, overall_accuracy
from evenhand.core.trajectory import Trajectory
from evenhand.frontier.bounds import margin_of, ratio_bound
from evenhand.frontier.held_out import HeldOut, candidates
from evenhand.frontier.points import COLUMNS, Frontier, Point
from evenhand.models.classifier import PLACES, FairClassifier, FairnessWarning
from evenhand.models.inputs import MOST_ROWS
from evenhand.tables.encoder import ColumnPlan, TableEncoder, as_names
from evenhand.tables.parse import check_written
from evenhand.tables.pipeline import FairPipeline

__all__ = [
    "ModelFileError",
    "SavedModel",
    "load_model",
    "model_writer",
    "save_model",
]

FORMAT, FORMAT_VERSION = "evenhand-model", 1
MEMBERS = ("manifest.json", "model.json", "arrays.npz")
# The most bytes of each member, and of the memory that the values of model.json may take: of 20,000
# inputs and 100 iterates a model has as much. No file takes more than 64 MB before it is refused.
MOST_BYTES = {"manifest.json": 1 << 16, "model.json": 8 << 20, "arrays.npz": 20 << 20}
MOST_MEMORY = 40 << 20
# What is larger than this may not be so many times as large as it is packed.
FREE_BYTES, MOST_PACKED = 1 << 20, 100
# Bytes of a list of members, bytes that say what an array is, and bytes read at a time.
MOST_DIRECTORY, MOST_HEADER, CHUNK = 1 << 14, 1000, 1 << 16
# Steps of a run and iterates, points of a frontier, groups, and cells of all rates together.
MOST_STEPS, MOST_POINTS, MOST_GROUPS, MOST_CELLS = 100_000, 20_000, 10_000, 200_000
# Pairs of labels looked at to find the rates' cells, rates of all groups together, and exact bounds
# of these at all points of a certified model.
MOST_PAIRS, MOST_RATES, MOST_BOUNDS = 1_000_000, 20_000, 100_000
# Characters of texts that NumPy holds, each as long as the longest, and of the inputs' names.
MOST_TEXT = 1 << 19
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
    """A model and what is known of its training; it predicts as the model does.

    Parameters
    ----------
    model : FairPipeline or FairClassifier
        Fitted.
    facts : dict
        Facts of the training, plain values.
    """

    model: Any
    facts: dict[str, Any]

    def predict(self, X: Any, **params: Any) -> Any:
        """Predicted label of each row, as the model's ``predict`` gives it."""
        return self.model.predict(X, **params)

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Scores of each label, as the model's ``predict_proba`` gives them."""
        return self.model.predict_proba(X, **params)


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
    try:
        plain = json.dumps(state, allow_nan=True, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        text = error.object[max(error.start - 20, 0) : error.end + 20]
        raise ValueError(
            f"{text!r} has a character that no file can hold; rename that group, label or column."
        ) from None
    members = {"model.json": plain, "arrays.npz": held.getvalue()}
    for name, data in members.items():
        if len(data) > MOST_BYTES[name] or (name == "model.json" and _memory(data) > MOST_MEMORY):
            raise ValueError(
                f"the model is too large to be saved: its {name} has {len(data) >> 20} MB, more "
                "than a file may have; leave out columns, or keep fewer iterates with n_iterates."
            )
    manifest = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "written_by": f"evenhand {package_version('evenhand')}",
        "sha256": {name: hashlib.sha256(data).hexdigest() for name, data in members.items()},
    }
    whole = io.BytesIO()
    with zipfile.ZipFile(whole, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("manifest.json", json.dumps(manifest, indent=1))
        for name, data in members.items():
            # What could be packed too well is not.
            large = len(data) > FREE_BYTES
            bomb = large and len(data) > MOST_PACKED * len(zlib.compress(data))
            archive.writestr(name, data, zipfile.ZIP_STORED if bomb else None)
    try:
        _loaded(whole, "it")  # what is saved can be loaded
    except ModelFileError as error:
        raise ValueError(f"the model cannot be saved, because {error}") from None
    return lambda file: file.write(whole.getvalue())


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
    with Path(path).open("rb") as file:
        return _loaded(file, str(path))


def _loaded(file: IO[bytes], path: str) -> SavedModel:
    members = _members_of(file, path)
    try:
        arrays = _arrays_from(members.pop("arrays.npz"))
        state = _state_from(members.pop("model.json"))
        classifier = _classifier_from(state["classifier"], arrays)
        model = classifier
        if "pipeline" in state:
            model = _pipeline_from(state, classifier)
        else:
            _check_facts(state["facts"], classifier, None)
        _add_steps(classifier.trajectory_, state["classifier"]["trajectory"]["leg"], arrays)
        return SavedModel(model, _known_facts(state["facts"]))
    except UNREADABLE as error:
        what = str(error).splitlines()[0][:200] if str(error) else ""
        raise ModelFileError(
            f"{path} is no model this evenhand can read ({type(error).__name__}: {what!s})."
        ) from None


def _pipeline_from(state: Mapping[str, Any], classifier: FairClassifier) -> FairPipeline:
    about = state["pipeline"]
    _check_texts("sensitive", about["sensitive"])
    if not about["sensitive"] or about["missing_groups"] not in ("error", "drop", "group"):
        raise ValueError("no sensitive columns, or no way with missing groups")
    _check_facts(state["facts"], classifier, about["sensitive"])
    n_dropped, edges = _whole("n_dropped", about["n_dropped"]), _edges_from(about)
    # Models of earlier versions have no bins that are crossed.
    bins = about.get("bins") or None
    if set(edges) != set(bins or {}):
        raise ValueError("bins and their edges are not of the same columns")
    encoder = _encoder_from(state["encoder"], classifier.n_features_in_)
    n_inputs = len(encoder.get_feature_names_out())
    if n_inputs != classifier.n_features_in_:
        raise ValueError(_other_inputs(n_inputs, classifier.n_features_in_))
    pipeline = FairPipeline(
        [("encoder", encoder), ("classifier", classifier)],
        sensitive_features=about["sensitive"],
        missing_groups=about["missing_groups"],
    )
    pipeline.n_dropped_, pipeline.bins, pipeline.edges_ = n_dropped, bins, edges
    return pipeline


# ---- members ---------------------------------------------------------------------------------


def _members_of(file: IO[bytes], path: str) -> dict[str, bytes]:
    """Read the members, each as far as a model's may go, and compare their checksums."""
    try:
        _check_directory(file)
        with zipfile.ZipFile(file) as archive:
            names = archive.namelist()
            if "manifest.json" not in names:
                raise ModelFileError(f"{path} is no evenhand model.")
            if sorted(names) != sorted(MEMBERS):
                raise ModelFileError(
                    f"{path} is damaged or was changed: it should hold {', '.join(MEMBERS)}."
                )
            for info in archive.infolist():
                most = min(MOST_BYTES[info.filename], FREE_BYTES + MOST_PACKED * info.compress_size)
                # What cannot be packed grows a little; what grows more is packed to take time.
                packed = info.file_size + info.file_size // 100 + 1000
                if info.file_size > most or info.compress_size > packed:
                    raise ModelFileError(
                        f"{path} says it is larger than any model; it is not opened."
                    )
            known = _check_manifest(_unpacked(archive, MEMBERS[0])[0], path)
            members = {}
            for name in MEMBERS[1:]:
                members[name], found = _unpacked(archive, name)
                if known.get(name) != found:
                    raise ModelFileError(
                        f"{path} is damaged or was changed: its {name} is not the one that was "
                        "saved."
                    )
            return members
    except zipfile.BadZipFile as error:
        what = "is damaged" if "CRC" in str(error) else "is no evenhand model, or a part of one"
        raise ModelFileError(f"{path} {what}.") from None
    except ModelFileError:
        raise
    except (OSError, struct.error, zlib.error, RuntimeError, *UNREADABLE):
        # Places in the file that are not there, ways to compress that do not exist, and the like.
        raise ModelFileError(f"{path} is damaged.") from None


def _check_directory(file: IO[bytes]) -> None:
    """Refuse a long list of members before it is read: it is the end of the file that says so."""
    size = file.seek(0, io.SEEK_END)
    file.seek(max(size - 42, 0))
    end = file.read(42)
    # Neither NumPy nor this module ends a file with a remark, or makes one of four gigabytes.
    if end[-22:-18] != b"PK\5\6" or end.startswith(b"PK\6\7"):
        raise zipfile.BadZipFile("there is no end")
    if int.from_bytes(end[-10:-6], "little") > MOST_DIRECTORY:
        raise zipfile.BadZipFile("there are many members")


def _unpacked(archive: zipfile.ZipFile, name: str) -> tuple[bytes, str]:
    """Read a member piece by piece, with its checksum."""
    info, digest, data = archive.getinfo(name), hashlib.sha256(), io.BytesIO()
    if info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
        raise ValueError("a member is packed in a way that models are not")
    with archive.open(info) as member:
        while piece := member.read(CHUNK):
            digest.update(piece)
            data.write(piece)
    return data.getvalue(), digest.hexdigest()


def _check_manifest(data: bytes, path: str) -> dict[str, Any]:
    """Give the checksums that a manifest has."""
    try:
        manifest = _plain_values(data)
        known = manifest.get("format") == FORMAT
    except (ValueError, AttributeError, RecursionError):
        known = False
    if not known:
        raise ModelFileError(f"{path} is no evenhand model.")
    version = manifest.get("format_version")
    if version != FORMAT_VERSION:
        raise ModelFileError(
            f"{path} has the format version {brief(version)}, and this evenhand reads "
            f"{FORMAT_VERSION}; it was written by {brief(manifest.get('written_by'))}."
        )
    return dict(manifest.get("sha256", {}))


def _memory(data: bytes) -> int:
    """Give the most memory that a JSON text and its values may take."""
    sizes = {b",": 64, b":": 64, b"[": 80, b"{": 200}
    values = sum(size * data.count(mark) for mark, size in sizes.items())
    return values + len(data) * (2 if data.isascii() else 5)


def _state_from(data: bytes) -> Any:
    if _memory(data) > MOST_MEMORY:
        raise ValueError("its model.json has more values than any model's")
    return _plain_values(data)


# Escapes of halves of characters: two that are one, or, as the group of the match, one alone.
HALVES = re.compile(
    r"(?<!\\)(?:\\\\)*\\u[dD](?:[89abAB]\w\w\\u[dD][c-fC-F]\w\w|([89a-fA-F]))",
)


def _plain_values(data: bytes) -> Any:
    """Read JSON in UTF-8, as it is written, without half a character, which nothing can show."""
    text = data.decode()
    if any(match[1] for match in HALVES.finditer(text)):
        raise ValueError("its text has half a character")
    return json.loads(text)


def _arrays_from(data: bytes) -> dict[str, NDArray[Any]]:
    """Read the arrays, none of which is larger than what the file has of it."""
    held = io.BytesIO(data)
    _check_directory(held)
    with zipfile.ZipFile(held) as inner:
        members = inner.infolist()
        stored = all(info.compress_type == zipfile.ZIP_STORED for info in members)
        if not stored or sum(info.file_size for info in members) > len(data):
            raise ValueError("its arrays are larger than what holds them")
        n = 0
        for info in members:
            with inner.open(info) as member:
                n += _check_header(info, member)
        # However few bytes each number has here, those that are computed with have eight.
        if 8 * n > MOST_BYTES["arrays.npz"]:
            raise ValueError("its arrays have more numbers than any model's")
    held.seek(0)
    with np.load(held, allow_pickle=False, max_header_size=MOST_HEADER) as arrays:
        return {name: arrays[name] for name in arrays.files}


def _check_header(info: zipfile.ZipInfo, member: IO[bytes]) -> int:
    """Count an array's numbers; refuse one that has none, or is not as large as it says."""
    name, versions = info.filename.removesuffix(".npy"), np.lib.format
    readers = {(1, 0): versions.read_array_header_1_0, (2, 0): versions.read_array_header_2_0}
    read = readers[versions.read_magic(member)]
    shape, _, dtype = read(member, max_header_size=MOST_HEADER)
    if dtype.kind not in "biuf":
        raise ValueError(f"the array {name!r} holds no numbers")
    if math.prod(shape) * dtype.itemsize != info.file_size - member.tell():
        raise ValueError(f"the array {name!r} is not as large as it says")
    return math.prod(shape)


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
    kinds: dict[str, tuple[Any, Any]] = {
        "object": (object, str | bool | int | float),
        "str": (str, str),
        "bool": (bool, bool),
        "int": (np.int64, int),
        "float": (np.float64, int | float),
    }
    values, kind = held["values"], held["kind"]
    dtype, plain = kinds[kind]
    _check_type("values", values, list)
    if not all(isinstance(value, plain) for value in values):
        raise ValueError(f"labels, groups or names are not all of the kind {kind!r}")
    if kind == "str" and len(values) * max(map(len, values), default=0) > MOST_TEXT:
        raise ValueError("labels, groups or names are longer than any model's")
    return np.array(values, dtype=dtype)


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


def _renamed(params: Mapping[str, Any]) -> dict[str, Any]:
    """Give parameters under today's names, and with today's values."""
    old = ("sensitive_feature", "sensitive")
    found = {"sensitive_features" if name in old else name: v for name, v in params.items()}
    return found | ({"init": "optimum"} if found.get("init") == "auto" else {})


# ---- the classifier --------------------------------------------------------------------------

PLAIN = (
    *("_where", "_requirement", "_by_group", "_certify", "_sign", "_interrupted"),
    *("_margin", "_confidence", "_first_tau"),
)


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
    params = _with_confidence(_renamed(state["params"]))
    unknown = set(params) - set(FairClassifier().get_params())
    if unknown:
        raise ValueError(f"unknown parameter {min(unknown)!r}")
    model = FairClassifier(**params)
    model._validate_params()
    _check_shape("tau", model.tau, _shape_of(model.tau)[:1])
    # Models of earlier versions had no margin.
    usual = {"_margin": 0.0, "_confidence": model.confidence, "_first_tau": np.max(model.tau)}
    plain = usual | dict(state["plain"])
    for name in PLAIN:
        setattr(model, name, plain[name])
    model.classes_, model._labels = _array(state["classes"]), _array(state["labels"])
    model.groups_ = _array(state["groups"])
    model.small_groups_ = {
        (tuple(name) if isinstance(name, list) else name): _whole("small_groups", n)
        for name, n in state["small_groups"]
    }
    model.n_features_in_ = _whole("n_features_in", state["n_features_in"])
    if "feature_names_in" in state:
        model.feature_names_in_ = _array(state["feature_names_in"])
    model.n_iter_, model.converged_ = _whole("n_iter", state["n_iter"]), bool(state["converged"])
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
        n_rows, n_fitted = (_whole(name, about[name]) for name in ("n_rows", "n_fitted"))
        model.held_out_ = HeldOut(points, **columns, n_rows=n_rows, n_fitted=n_fitted)
    _check_classifier(model, len(arrays["kept.row"]))
    model.trajectory_ = _trajectory_from(model, state["trajectory"]["leg"], arrays)
    with warnings.catch_warnings():
        # Whoever saved a model that misses its target was told.
        warnings.simplefilter("ignore", FairnessWarning)
        model._find_answers()
        return model._choose()


def _with_confidence(params: dict[str, Any]) -> dict[str, Any]:
    """Say of a model of an earlier version how sure its target was to be."""
    if "confidence" in params:
        return params
    if params.get("selection") == "certified":
        return params | {"confidence": "certified", "selection": "train"}
    return params | {"confidence": None}


def _trajectory_from(
    model: FairClassifier, legs: Any, arrays: Mapping[str, NDArray[Any]]
) -> Trajectory:
    """Check the record of a run, and make it but for its steps."""
    _check_texts("leg", legs)
    n, n_labels, (row, iterate) = len(legs), len(model.classes_), (arrays[name] for name in KEPT)
    if max(n, len(row)) > MOST_STEPS:
        raise ValueError(f"the run has more than {MOST_STEPS:,} steps")
    _check_shape("kept.row", row, (len(row),))
    _check_index("kept.row", row, -1, n)
    width = (1 if n_labels == 2 else n_labels) * (len(model._inputs) + 1)
    _check_shape("kept.iterate", iterate, (len(row), width))
    series = _series_of(arrays)
    if set(series) != ({"counts", *SERIES} if n else set()):
        raise ValueError("the trajectory does not have the columns it should have")
    for name, values in series.items():
        if name == "counts":
            _check_counts("trajectory.counts", values, (n, *model.frontier_.last.counts.shape))
        else:
            _check_shape(f"trajectory.{name}", values, (n,), finite=False)
    trajectory = Trajectory(model._rate, len(model.groups_))
    trajectory._kept = list(zip(row.tolist(), iterate, strict=True))
    return trajectory


def _series_of(arrays: Mapping[str, NDArray[Any]]) -> dict[str, NDArray[Any]]:
    return {
        name.split(".", 1)[1]: arrays[name] for name in arrays if name.startswith("trajectory.")
    }


def _add_steps(trajectory: Trajectory, legs: list[str], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Add the steps of the run; they take much memory, so that only a good file's are added."""
    series = _series_of(arrays)
    trajectory._rows = [
        {"leg": leg} | {name: v[i] if v[i].ndim else v[i].item() for name, v in series.items()}
        for i, leg in enumerate(legs)
    ]


# ---- checks ----------------------------------------------------------------------------------
# Checksums say that a file is the one that was saved, not who saved it: what a later step relies on
# is looked at here, so that it is said on loading and not somewhere inside.


def _shape_of(values: Any) -> tuple[int, ...]:
    """Give the shape of an array, or of lists in lists as the first of each has it."""
    if isinstance(values, np.ndarray | np.generic):
        return values.shape
    shape = []
    while isinstance(values, list):
        shape.append(len(values))
        values = values[0] if values else None
    return tuple(shape)


def _check_lists(name: str, values: Any, shape: tuple[int, ...]) -> None:
    """Refuse lists of texts, say: NumPy would make all as long as the longest."""
    if not shape:
        _check_type(name, values, (int, float))
        return
    if not isinstance(values, list) or len(values) != shape[0]:
        raise ValueError(f"{name} has lists that are not of the shape {shape}")
    for inner in values:
        _check_lists(name, inner, shape[1:])


def _check_shape(name: str, values: Any, shape: tuple[int, ...], *, finite: bool = True) -> None:
    found = _shape_of(values)
    if found != shape:
        raise ValueError(f"{name} has the shape {found} and not {shape}")
    if not isinstance(values, np.ndarray | np.generic):
        _check_lists(name, values, shape)
    array = np.asarray(values)
    if array.dtype.kind not in "biuf":
        raise ValueError(f"{name} holds no numbers")
    # Without a copy, and of what is no number this is not so.
    if finite and array.size and not (array.max() <= LARGEST and array.min() >= -LARGEST):
        raise ValueError(f"{name} has values that are no numbers, or too large")


def _check_counts(name: str, values: Any, shape: tuple[int, ...]) -> None:
    # Others would be copied whenever something is computed of them.
    if isinstance(values, np.ndarray) and values.dtype != np.float64:
        raise ValueError(f"{name} is not of float64 numbers")
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
        raise ValueError(f"{name} is {(value if isinstance(value, str) else brief(value))[:40]!r}")


def _whole(name: str, value: Any) -> int:
    """Give a whole number that a table may have of something."""
    _check_type(name, value, int)
    if not 0 <= value <= MOST_ROWS:
        raise ValueError(f"{name} is below 0 or above {MOST_ROWS:g}")
    return int(value)


def _check_texts(name: str, values: Any) -> None:
    _check_type(name, values, list)
    for value in values:
        _check_type(name, value, str)


def _check_classifier(model: FairClassifier, n_kept: int) -> None:
    """Refuse a classifier whose parts do not fit together."""
    for name, kind in {
        "_where": str,
        "_requirement": str,
        "_by_group": bool,
        "_interrupted": bool,
    }.items():
        _check_type(name, getattr(model, name), kind)
    _check_promise(model)
    _check_names(model)
    n_labels, n_inputs = len(model.classes_), len(model._inputs)
    kinds = len(model.groups_) + bool(model.small_groups_)
    _check_shape("inputs", model._inputs, (n_inputs,))
    _check_index("inputs", model._inputs, 0, model.n_features_in_)
    if not n_inputs or len(np.unique(model._inputs)) < n_inputs:
        raise ValueError("inputs are none, or one of them twice")
    # The groups may be in a column, which is no input.
    n_columns = model.n_features_in_
    names = getattr(model, "feature_names_in_", None)
    if n_columns > n_inputs + 1 or (names is not None and len(names) != n_columns):
        raise ValueError(f"there are {n_inputs} inputs of {n_columns} columns")
    if model._edges is not None:
        _check_shape("edges", model._edges, (len(model._edges),))
    favourable = _check_rate(model)
    shape = (kinds, n_labels, n_labels)
    cuts = (kinds,) if model._by_group else (n_labels,) if n_labels > 2 else ()
    rows = model.frontier_.last.counts.sum(axis=-1)
    check = partial(
        _check_frontier,
        rate=model._rate,
        shape=shape,
        cuts=cuts,
        n_kept=n_kept,
        favourable=favourable,
        rows=rows,
    )
    check("frontier", model.frontier_)
    if (np.diff(model.frontier_.rate) < -SAME).any():
        raise ValueError("frontier.rate does not rise")
    if (np.diff(model.frontier_.accuracy) > SAME).any():
        raise ValueError("frontier.accuracy does not fall")
    held = model.held_out_
    if model.frontier_.wary is not None:
        check("wary", model.frontier_.wary)
    if held is None:
        return
    if held.points is not model.frontier_:
        check("held_out.points", held.points)
        found = candidates(model.frontier_)
        if not all(np.array_equal(getattr(found, c), getattr(held.points, c)) for c in COLUMNS):
            raise ValueError("held_out.points are not those of the frontier")
    n = len(held.points)
    if held.n_fitted < 1:
        raise ValueError("no rows were fitted to")
    # How many rows a certificate would take is found by some more of them.
    bounds = (n + 20) * len(model.groups_) * len(model._rate.parts)
    if model._certify is not None and bounds > MOST_BOUNDS:
        raise ValueError("there are more points and groups than any certified model's")
    _check_counts("held_out.counts", held.counts, (n, *shape))
    _check_counts("held_out.last", held.last, shape)
    for name in ("accuracy", "rate", "bound"):
        # A rate may be undefined among the rows held out, and a bound unknown.
        _check_shape(f"held_out.{name}", getattr(held, name), (n,), finite=False)
        _check_range(f"held_out.{name}", np.nan_to_num(getattr(held, name)), (n,), 1 + SAME)
    _check_figures("held_out", held, model._rate, len(model.groups_))
    _check_rows("held_out.counts", held.counts, held.last.sum(axis=-1))
    if np.isfinite(held.bound).any():
        _check_sizes(held, rows, alike=model._certify is not None)
    if model._certify is not None:
        bound = ratio_bound(held.counts[:, : len(model.groups_)], model._rate, model._certify)
        _check_same("held_out.bound", held.bound, bound)


def _check_promise(model: FairClassifier) -> None:
    """Refuse a confidence, or a place where rates are looked at, that is not the fit's."""
    sure, certify = model._confidence, model._certify
    if certify is not None and not 0 < certify < 1:
        raise ValueError(f"_certify is {brief(certify)}")
    if sure not in (None, "certified") and not (isinstance(sure, float) and 0.5 <= sure < 1):
        raise ValueError(f"_confidence is {brief(sure)}")
    if (sure == "certified") != (certify is not None):
        raise ValueError("_confidence and _certify are not of one fit")
    for name in ("_margin", "_first_tau"):
        _check_shape(name, getattr(model, name), ())
    if not np.isclose(model._margin, 0.0 if isinstance(sure, str) else margin_of(sure), atol=SAME):
        raise ValueError("_margin is not that of the confidence")
    place = "holdout" if certify is not None else model.selection
    if model._where != PLACES[place] or (model.held_out_ is None) != (place == "train"):
        raise ValueError("the rows that rates were looked at on are not those of the selection")
    if model._by_group != model.group_cuts:
        raise ValueError("_by_group is not what group_cuts says")


def _check_names(model: FairClassifier) -> None:
    """Refuse groups and labels that are no such, or in another order than the fit's."""
    for name in ("classes_", "groups_"):
        values = getattr(model, name).tolist()
        if len(values) < 2 or len(set(values)) < len(values):
            raise ValueError(f"{name} are not two or more different values")
    if len(model.groups_) > MOST_GROUPS:
        raise ValueError(f"there are more than {MOST_GROUPS:,} groups")
    classes = model.classes_.tolist()
    model._check_labels(model.classes_, guess=False)
    labels = model._label_order(model.classes_).tolist()
    if model._labels.tolist() != labels or classes != sorted(classes):
        raise ValueError("the labels are not the classes, the favourable one of two last")
    if model._sign != (1 if labels[-1] == classes[-1] else -1):
        raise ValueError(f"_sign is {brief(model._sign)}")


def _check_rate(model: FairClassifier) -> list[int]:
    """Refuse another rate than the notion's; give the numbers of the favourable labels."""
    n_labels, parts = len(model.classes_), model._rate.parts
    if sum(len(part.numerator) + len(part.denominator) for part in parts) > MOST_CELLS:
        raise ValueError("the rates have more cells than any model's")
    notion: AnyNotion = find_notion(model.notion, model.degree, model.tau)
    if n_labels > 2:
        classes, one = model.classes_.tolist(), model.pos_label
        asked = range(n_labels) if one is None else [classes.index(one)]
        if n_labels**2 * len(asked) * len(notion.parts) > MOST_PAIRS:
            raise ValueError("there are more labels than any model's")
        notion = of_labels(notion, asked, n_labels)
    if len(model.groups_) * len(notion.rate.parts) > MOST_RATES:
        raise ValueError("the groups have more rates than any model's")
    rate = notion.rate
    if (model._rate.name, _cells(model._rate)) != (rate.name, _cells(rate)):
        raise ValueError("the rate is not that of the notion")
    shares, found = (getattr(r, "shares", ()) for r in (model._rate, rate))
    # A move to another target changes their last digits.
    if len(shares) != len(found) or not np.allclose(shares, found, rtol=0.0, atol=SAME):
        raise ValueError("the rates have no shares that fit them")
    return sorted({part.favourable for part in notion.parts})


def _cells(rate: AnyRate) -> list[Any]:
    """Give what a rate's parts count."""
    return [
        (part.name, sorted(part.numerator), sorted(part.denominator), bool(part.is_error))
        for part in rate.parts
    ]


def _check_rows(name: str, counts: NDArray[np.float64], rows: NDArray[np.float64]) -> None:
    """Refuse points of which one has other rows of some group and label than another."""
    found = counts.sum(axis=-1)
    found -= rows
    np.abs(found, out=found)
    if found.max(initial=0.0) > SAME * rows.sum():
        raise ValueError(f"{name} is not of the same rows at every point")


def _check_sizes(held: HeldOut, rows: NDArray[np.float64], *, alike: bool) -> None:
    """Refuse counts of rows without weights that are not as many as is said.

    Certificates may be of weights that are all ``alike``: of the rows fitted to, the counts are
    multiples of one then.
    """
    if abs(held.last.sum() - held.n_rows) > SAME * held.n_rows:
        raise ValueError("held_out.counts are not of as many rows as n_rows says")
    weight = rows.sum() / held.n_fitted
    found = held.points.last.counts / weight
    whole = np.abs(found - np.rint(found)).max() <= 1e-6
    if not whole or not (abs(weight - 1) <= SAME or (alike and weight > 1)):
        raise ValueError("the frontier's counts are not of as many rows as n_fitted says")


def _check_frontier(
    name: str,
    frontier: Frontier,
    *,
    rate: AnyRate,
    shape: tuple[int, ...],
    cuts: tuple[int, ...],
    n_kept: int,
    favourable: list[int],
    rows: NDArray[np.float64],
) -> None:
    n = len(frontier.rate)
    if n > MOST_POINTS:
        raise ValueError(f"{name} has more than {MOST_POINTS:,} points")
    _check_shape(f"{name}.iterate", frontier.iterate, (n,))
    for column in ("accuracy", "rate"):
        _check_range(f"{name}.{column}", getattr(frontier, column), (n,), 1 + SAME)
    _check_shape(f"{name}.cut", frontier.cut, (n, *cuts) if n else frontier.cut.shape)
    _check_counts(f"{name}.counts", frontier.counts, (n, *shape))
    _check_counts(f"{name}.last.counts", frontier.last.counts, shape)
    _check_shape(f"{name}.last.cut", frontier.last.cut, cuts)
    _check_index(f"{name}.iterate", np.append(frontier.iterate, frontier.last.iterate), 0, n_kept)
    if list(frontier.favourable) != favourable:
        raise ValueError(f"{name}.favourable is not the favourable label")
    if frontier.rate_name != rate.ratio_name:
        raise ValueError(f"{name}.rate_name is not that of the notion")
    if not 0 <= frontier.n_sure <= n:
        raise ValueError(f"{name} has more sure points than points")
    for what, counts in (("counts", frontier.counts), ("last.counts", frontier.last.counts)):
        _check_rows(f"{name}.{what}", counts, rows)
    _check_figures(name, frontier, rate, len(frontier.groups))
    _check_figures(f"{name}.last", frontier.last, rate, len(frontier.groups))


def _check_figures(name: str, points: Any, rate: AnyRate, n_groups: int) -> None:
    """Refuse accuracies and rates that are not those of the counts."""
    _check_same(f"{name}.accuracy", points.accuracy, overall_accuracy(points.counts))
    _check_same(f"{name}.rate", points.rate, rate.ratio(points.counts[..., :n_groups, :, :]))


def _check_same(name: str, values: Any, found: Any) -> None:
    if not np.allclose(values, found, rtol=0.0, atol=SAME, equal_nan=True):
        raise ValueError(f"{name} is not what the counts give")


# Columns of a trajectory besides its legs and counts.
SERIES = (
    *("iteration", "alpha", "loss_c", "loss_w", "loss_u", "gap", "norm_c", "norm_f", "norm_step"),
    *("evaluations", "seconds"),
)
KEPT = ("kept.row", "kept.iterate")
# No weight or median is so large.
LARGEST = 1e100
# Sums of the same numbers in another order differ by less.
SAME = 1e-9
# Share of the rows that another way to compute scores may put on the other side of a cut.
MOVED = 0.01
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


def _known_facts(facts: Mapping[str, Any]) -> dict[str, Any]:
    if "answers" in facts:
        return dict(facts)
    # Earlier versions counted other points: such a model predicts, but has no report.
    return {name: value for name, value in facts.items() if name != "train_counts"}


def _check_facts(facts: Any, classifier: FairClassifier, sensitive: list[str] | None) -> None:
    """Refuse facts of a training that a report could not be made of; others may be anything."""
    _check_type("facts", facts, dict)
    if "answers" not in facts:
        return
    if sensitive is None:
        raise ValueError("facts of a training need the encoder of its table")
    for name, kind in FACTS.items():
        _check_type(name, facts[name], kind)
        if kind is int:
            _whole(name, facts[name])
    for name in ("sensitive", "favourable"):
        _check_texts(name, facts[name])
    for tau in facts.get("earlier_taus", []):
        _check_range("earlier_taus", tau, (), 1.0)
    for dropped in facts["rows_dropped"]:
        _check_type("rows_dropped", dropped["reason"], str)
        _whole("rows_dropped", dropped["n"])
        _check_type("rows_dropped", dropped.get("whom", ""), str)
    if "unlabelled" in facts:  # some rows of the table have no label
        _check_unlabelled(facts, classifier)
    # Models of earlier versions have none.
    _check_type("stand_ins", facts.get("stand_ins", []), list)
    for stand_in in facts.get("stand_ins", []):
        _check_type("stand_ins", stand_in["column"], str)
        _check_type("stand_ins", stand_in["auc"], float)
        if not 0 <= stand_in["auc"] <= 1:
            raise ValueError(f"no AUC: {stand_in['auc']!r}")
    _check_type("versions", facts["versions"], dict)
    _check_texts("versions", list(facts["versions"].values()))
    frontier = classifier.frontier_
    labels = classifier._labels.tolist()
    if facts["favourable"] != [str(labels[c]) for c in frontier.favourable]:
        raise ValueError("favourable is not the model's favourable label")
    if facts["sensitive"] != sensitive:
        raise ValueError("sensitive is not what the model's groups are of")
    own = facts["n_test"] if facts["test_title"] != "the test table" else 0
    dropped = sum(d["n"] for d in facts["rows_dropped"] if d.get("part") != "test")
    if facts["n_rows"] < facts["n_train"] + own + dropped:
        raise ValueError("n_rows is less than the rows that were used")
    plain = facts["plain"]
    width = classifier.trajectory_._kept[0][1].shape
    _check_shape("plain.weights", plain["weights"], width)
    best = plain.get("best_cut")  # models of earlier versions, and of many labels, have none
    if best is not None:
        _check_shape("plain.best_cut.cut", best["cut"], ())
    for part in ("train", *(["test"] if "test_counts" in facts else [])):
        _check_part(part, facts, classifier)


def _check_unlabelled(facts: Mapping[str, Any], classifier: FairClassifier) -> None:
    """Refuse counts of rows without a label that are none, or not those of this model."""
    about = facts["unlabelled"]
    _check_type("unlabelled", about, dict)
    n_labels = len(classifier.classes_)
    kinds = len(classifier.groups_) + bool(classifier.small_groups_)
    _check_counts("unlabelled.rows", about["rows"], (kinds,))
    _whole("unlabelled.other_groups", about["other_groups"])
    _check_type("unlabelled.uncompared", about.get("uncompared", {}), dict)
    for n in about.get("uncompared", {}).values():
        _whole("unlabelled.uncompared", n)
    known = [part for part in ("train", "test") if f"{part}_counts" in facts]
    if about["parts"] not in (known[:1], known):
        raise ValueError(f"unlabelled.parts is {str(about['parts'])[:40]!r}")
    if "unlabelled_counts" in facts:
        shape = (len(classifier.answers_) + 1, kinds, n_labels, n_labels)
        _check_counts("unlabelled_counts", facts["unlabelled_counts"], shape)
        if (np.sum(facts["unlabelled_counts"], axis=(2, 3)) != np.array(about["rows"])).any():
            raise ValueError("unlabelled_counts are not those of unlabelled.rows")


def _check_part(part: str, facts: Mapping[str, Any], model: FairClassifier) -> None:
    """Refuse counts of a part of the rows that are not of those rows, or not of this model."""
    shape, name = model.frontier_.last.counts.shape, f"{part}_counts"
    plain, best = facts["plain"]["counts"], facts["plain"].get("best_cut")
    _check_counts(name, facts[name], (len(model.answers_) + 1, *shape))
    counts = np.array(facts[name], dtype=np.float64)
    rows = counts[-1].sum(axis=-1)
    _check_rows(name, counts, rows)
    if rows.sum() != facts[f"n_{part}"]:
        raise ValueError(f"{name} is not of as many rows as n_{part} says")
    each = {f"plain.counts.{part}": plain[part]}
    if best is not None:
        each[f"plain.best_cut.{part}"] = best["counts"][part]
    for key, values in each.items():
        _check_counts(key, values, shape)
        _check_rows(key, np.array(values, dtype=np.float64), rows)
    if part != "train":
        return
    held, fitted = model.held_out_, model.frontier_.last.counts
    # What is trained with facts has no weights.
    seen = fitted if held is None or model.selection == "crossfit" else fitted + held.last
    _check_rows("the frontier", seen, rows)
    if held is None and model.extra_column == "ones":
        # Scores at a cut may fall on either side of it when they are computed once more.
        moved = np.abs(counts[:-1] - model.answers_.counts).sum(axis=(1, 2, 3))
        if moved.max(initial=0.0) > 2 + MOVED * rows.sum():
            raise ValueError("train_counts are not those of the frontier's points")


def _edges_from(about: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    edges = {}
    for name, values in about.get("edges", {}).items():
        _check_lists("edges", values, _shape_of(values)[:1])
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


def _other_inputs(found: int, expected: int) -> str:
    return f"the columns make {found} inputs, the classifier has {expected}"


def _encoder_from(state: Mapping[str, Any], n_inputs: int | None = None) -> TableEncoder:
    known = {field.name for field in fields(ColumnPlan)}
    plans, text = [], 0
    for plan in state["plans"]:
        # Models of earlier versions do not say how values are written: in one way only.
        plan = {"written": ""} | plan
        if set(plan) != known or plan["kind"] not in ("number", "category", "date", "dropped"):
            raise ValueError(f"no plan of a column: {brief(plan)}")
        check_written(plan["kind"], plan["written"])
        _check_plan(plan)
        # Every input of a column has the column's name in its own.
        text += len(plan["column"]) * (len(plan["categories"]) + 4)
        if text > 4 * MOST_TEXT:
            raise ValueError("the names of the inputs are longer than any model's")
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
    for name in ("na", "keep_na"):  # which models of earlier versions have not
        words = state["params"].get(name) or []
        _check_texts(name, [words] if isinstance(words, str) else words)
    if len({plan.column for plan in plans}) < len(plans):
        raise ValueError("two plans of one column")
    # An encoder of many columns takes time: none is made that has more inputs than it should.
    least = sum(max(len(plan.categories) - 1, plan.kind != "dropped") for plan in plans)
    if n_inputs is not None and least > n_inputs:
        raise ValueError(_other_inputs(least, n_inputs))
    return TableEncoder.from_plans(plans, sparse=bool(state["sparse"]), **_renamed(state["params"]))
