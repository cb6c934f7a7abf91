"""Files that commands read and write."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand._atomic import write_atomically
from evenhand.cli import options as opt


def read_file(path: str, delimiter: str | None, encoding: str | None) -> Any:
    """Read a table as the options say."""
    from evenhand.tables.read import read_table

    return read_table(path, delimiter=opt.one_character(delimiter), encoding=encoding)


def check_writable(path: Path, *inputs: str | Path | None) -> None:
    """Refuse a place that cannot be written to, before the work is done, and one that is read."""
    if str(path) == "-":
        raise ValueError("-o -: this command writes files only; name one.")
    for other in inputs:
        if other is not None and str(other) != "-" and _same(path, Path(other)):
            raise ValueError(f"{path} is an input; it would be replaced by the output.")
    if path.exists() and not path.is_dir() and not path.is_file():
        raise ValueError(f"{path} is no regular file; name one.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file.")
    if not path.parent.exists():
        raise ValueError(f"there is no folder {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path.parent} cannot be written to.")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def load(path: Path, *, whole: bool = False) -> Any:
    """Load a model that has its table encoder and, if ``whole``, the facts of its training."""
    from evenhand.persist import model_file as persist
    from evenhand.tables.pipeline import FairPipeline

    saved = persist.load_model(path)
    if not isinstance(saved.model, FairPipeline):
        raise ValueError(
            f"{path} holds a classifier without the encoder of its table; use it in Python, with "
            "evenhand.load_model."
        )
    if whole and "train_counts" not in saved.facts:
        raise ValueError(
            f"{path} was saved in Python or by an earlier evenhand, without the facts that "
            "evenhand train keeps; it can predict and be exported, and for the rest train it anew."
        )
    return saved


@contextmanager
def caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Catch what the library warns of, for :func:`evenhand.cli.wording.notes_of`."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        yield caught


def write_text(path: Path, text: str) -> None:
    """Write a text file, whole or not at all."""
    write_atomically(path, lambda file: file.write(text.encode()))


def write_table(path: Path, frame: Any) -> None:
    """Write a table by the name of its file, whole or not at all."""
    from evenhand.tables.write import write_chunks

    write_atomically(path, lambda file: write_chunks([frame], file, str(path)))


def title_of(file: str | None) -> str:
    """Give what a table is called in a report."""
    return "standard input" if file == "-" else Path(str(file)).name
