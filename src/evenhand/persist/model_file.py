"""Saved models: one file of plain data, safe to open from anywhere.

A model file is a zip archive of three members:

- ``manifest.json``: the format's name and version, the evenhand that wrote it, and a SHA-256 of
  each other member;
- ``model.json``: what kind of model it is, parameters, plans of the columns, groups, labels, the
  frontier's shape and the facts of the training, with every array named;
- ``arrays.npz``: those arrays, numbers only.

Nothing in it is code and nothing is unpickled: whoever wrote the file, opening it can only give a
model or an error. A file is held to limits before anything of it is unpacked or parsed, so that one
that is refused has taken little time and memory; and figures that follow from others are computed
again, so that one that contradicts itself is refused. A model that is loaded predicts bit for bit
as the saved one.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evenhand._atomic import write_atomically
from evenhand.core.errors import InputError
from evenhand.persist import archive
from evenhand.persist.archive import LIMITS, Limits, ModelFileError
from evenhand.persist.state import from_state, to_state

__all__ = ["ModelFileError", "SavedModel", "load_model", "model_writer", "save_model"]


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


def model_writer(
    model: Any, *, facts: Mapping[str, Any] | None = None, limits: Limits = LIMITS
) -> Callable[[Any], None]:
    """Give what writes a model to a binary file, for :func:`write_atomically`.

    It has the parameters of :func:`save_model`, and ``limits`` that the file is held to.
    """
    label = getattr(model, "label_", None)
    known = {} if label is None else {"label": label}
    file = archive.pack(*to_state(model, {**known, **(facts or {})}), limits)
    try:
        read_model(file, "it", limits)  # what is saved can be loaded
    except ModelFileError as error:
        raise InputError("unsavable_model", reason=error) from None
    return lambda out: out.write(file.getvalue())


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
        return read_model(file, str(path))


def read_model(file: IO[bytes], path: str, limits: Limits = LIMITS) -> SavedModel:
    """Read a model from an open file; ``path`` is its name in errors."""
    version, members = archive.unpack(file, path, limits)
    try:
        arrays = archive.parse_arrays(members.pop("arrays.npz"), limits)
        state = archive.parse_state(members.pop("model.json"), limits)
        return SavedModel(*from_state(state, arrays, version, limits))
    except archive.UNREADABLE as error:
        text = str(error).splitlines()[0][:200] if str(error) else ""
        raise ModelFileError(
            "unreadable_model",
            path=path,
            reason=text if isinstance(error, InputError) else f"{type(error).__name__}: {text}",
            cause=error,
        ) from None
