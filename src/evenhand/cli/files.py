"""Files that commands read and write."""

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand._atomic import write_atomically
from evenhand.cli import options as opt
from evenhand.core.errors import InputError


def read_file(path: str, delimiter: str | None, encoding: str | None) -> Any:
    """Read a table as the options say."""
    from evenhand.tables.read import read_table

    return read_table(path, delimiter=opt.one_character(delimiter), encoding=encoding)


def check_writable(path: Path, *inputs: str | Path | None) -> None:
    """Refuse a place that cannot be written to, before the work is done, and one that is read."""
    given = [Path(other) for other in inputs if other is not None and str(other) != "-"]
    if str(path) == "-":
        raise InputError("files_only")
    if any(_same(path, other) for other in given):
        raise InputError("output_is_input", path=path)
    if path.is_dir():
        raise InputError("output_is_folder", path=path)
    if path.exists() and not path.is_file():
        raise InputError("output_is_no_file", path=path)
    folder = path.parent
    if not folder.exists():
        raise InputError("no_folder", folder=folder)
    if not os.access(folder, os.W_OK):
        raise InputError("locked_folder", folder=folder)


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
        raise InputError("no_table_encoder", path=path)
    if whole and "train_counts" not in saved.facts:
        raise InputError("no_training_facts", path=path)
    return saved


# Warnings that say what the first sentence of a screen says.
VERDICTS = ("target_missed", "not_certified", "worse_than_constant")


@contextmanager
def caught_warnings() -> Iterator[list[warnings.WarningMessage]]:
    """Catch what the library warns of, for :func:`evenhand.core.errors.sentences`."""
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
