"""Options that several commands share, and how their text is read."""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="CSV or Parquet, also compressed; - reads standard input."),
]

ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that train has written.")]

Label = Annotated[str, typer.Option(help="Column of the true labels.")]

Sensitive = Annotated[
    list[str], typer.Option(help="Sensitive column; given several times, values are crossed.")
]

Favourable = Annotated[
    str | None,
    typer.Option(
        help="The favourable label; two labels other than 0/1, -1/1 or true/false need it.",
        show_default="the larger of 0/1, -1/1, true/false; of more than two each counts",
    ),
]

FavourableOne = Annotated[
    str | None,
    typer.Option(
        help="The favourable label; labels other than 0/1, -1/1 or true/false need it.",
        show_default="the larger of 0/1, -1/1, true/false",
    ),
]

Delimiter = Annotated[
    str | None, typer.Option(help="What separates fields.", show_default="found out")
]

Encoding = Annotated[str | None, typer.Option(help="Encoding of the text.", show_default="utf-8")]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]

Out = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]

Bins = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "For a sensitive number such as age: how many bins, or edges as 30,45,60. With several "
            "--sensitive columns as age=30,45,60; may be repeated."
        )
    ),
]

MinGroupSize = Annotated[
    int, typer.Option(min=1, help="Groups of fewer rows are not compared, unless two are all.")
]


class Missing(StrEnum):
    """What to do with rows that have no group."""

    error = "error"
    drop = "drop"
    group = "group"


MissingGroups = Annotated[
    Missing,
    typer.Option(help="Rows without a group: refuse them, drop them, or make them a group."),
]

Na = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "Word that stands for a missing value, besides the empty cell; may be repeated. It "
            "replaces the list of such words; '' leaves none."
        ),
        show_default="? - -- NA N/A n/a #N/A <NA> NaN nan null NULL None",
    ),
]

KeepNa = Annotated[
    list[str] | None,
    typer.Option(help="Column in which such words are values; may be repeated."),
]


class Selection(StrEnum):
    """On which rows the point is chosen."""

    train = "train"
    holdout = "holdout"
    crossfit = "crossfit"


def parse_confidence(text: str) -> float | str | None:
    """Tell how sure a target shall be from a number, none or certified."""
    if text in ("certified", "none"):
        return None if text == "none" else text
    with suppress(ValueError):
        if 0.5 <= float(text) < 1:
            return float(text)
    raise ValueError(
        f"--confidence {text!r}; give a number from 0.5 to below 1, certified, or none."
    )


def one_character(delimiter: str | None) -> str | None:
    """Read a delimiter, which may be written ``tab``."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"--delimiter {delimiter!r}; give one character, or tab.")
    return delimiter


def parse_target(tau: float) -> float:
    """Refuse a target that is no ratio."""
    if not 0 < tau <= 1:
        raise ValueError(f"--tau {tau:g}; give a ratio above 0 and at most 1.")
    return tau


def parse_bins(texts: list[str] | None) -> Any:
    """Tell bins from texts such as 30,45,60, or those of each column from age=30,45,60."""
    found = {}
    for text in texts or []:
        column, named, bins = text.rpartition("=")
        if column in found or (texts and len(texts) > 1 and not named):
            raise ValueError(
                f"--bins {text!r}; say once for each column which it has, as in age=30,45,60."
            )
        try:
            # A comma alone makes one edge of a number.
            values = [float(part) for part in bins.removesuffix(",").split(",")]
        except ValueError:
            raise ValueError(
                f"--bins {text!r}; give a number of bins or edges such as 30,45,60, after a column "
                "and = if there are several."
            ) from None
        found[column] = int(values[0]) if len(values) == 1 and "," not in bins else values
    return found.get("", found or None)


def parse_kinds(texts: list[str]) -> dict[str, str]:
    """Tell column and kind from texts such as zip=category."""
    kinds = {}
    for text in texts:
        column, found, kind = text.rpartition("=")
        if not found:
            raise ValueError(f"--kind {text!r}; name a column and its kind, as in zip=category.")
        if column in kinds:
            raise ValueError(f"--kind is given twice for column {column!r}; give it once.")
        kinds[column] = kind
    return kinds
