"""Rows to fit to and rows to hold out, by chance within strata; and what is refused of a split."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter

__all__ = [
    "check_fitted",
    "check_held_out",
    "check_unweighted",
    "one_of_each",
    "rows_of",
    "split_folds",
    "split_rows",
]


def check_unweighted(weight: FloatArray | None) -> None:
    """Refuse weights that differ: the bounds count rows."""
    if weight is not None and (weight != weight[0]).any():
        raise InputError(
            "certified_with_weights",
            certified=Parameter("confidence", "certified"),
            weights=Parameter("sample_weight"),
            confidence=Parameter("confidence", 0.9),
        )


def check_fitted(
    z: NDArray[np.intp], y: NDArray[np.intp], names: tuple[list[Any], list[Any]]
) -> None:
    """Refuse rows to fit to that lack a group or a label."""
    for codes, values, what in ((z, names[0], "of group"), (y, names[1], "with label")):
        missing = np.flatnonzero(np.bincount(codes, minlength=len(values)) == 0)
        if len(missing):
            raise InputError("no_row_to_fit", what=what, value=values[int(missing[0])])


def check_held_out(z: NDArray[np.intp], groups: list[Any], otherwise: Parameter) -> None:
    """Refuse rows to hold out that lack a group that is compared; ``otherwise`` holds none out."""
    missing = np.flatnonzero(np.bincount(z, minlength=len(groups))[: len(groups)] == 0)
    if len(missing):
        raise InputError(
            "no_row_to_hold_out",
            group=groups[int(missing[0])],
            otherwise=otherwise,
        )


def rows_of(index: Any, n_rows: int) -> NDArray[np.intp]:
    """Numbers of the rows that a user's split names, by number or by a mask."""
    try:
        return np.arange(n_rows)[index]
    except IndexError:
        raise InputError("rows_of_folds", cv=Parameter("cv"), n=n_rows) from None


def _shuffled(strata: NDArray[np.intp], random: Any) -> list[NDArray[np.intp]]:
    """Rows of each stratum in random order."""
    return [random.permutation(np.flatnonzero(strata == s)) for s in np.unique(strata)]


def split_rows(
    strata: NDArray[np.intp], share: float, random: np.random.RandomState
) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """Rows to fit on and rows to hold out: of each stratum, ``share`` of its rows at random.

    Of a stratum of two rows or more at least one is on either side; a single row is fitted to.
    """
    held_out = []
    for rows in _shuffled(strata, random):
        n = int(np.clip(round(share * len(rows)), min(len(rows) - 1, 1), max(len(rows) - 1, 0)))
        held_out.append(rows[:n])
    out = np.sort(np.concatenate(held_out))
    return np.setdiff1d(np.arange(len(strata)), out), out


def one_of_each(
    rows: NDArray[np.intp], persons: NDArray[np.intp], random: np.random.RandomState
) -> NDArray[np.intp]:
    """Draw one row of each person among some rows."""
    mixed = random.permutation(rows)
    return np.sort(mixed[np.unique(persons[mixed], return_index=True)[1]])


def split_folds(
    strata: NDArray[np.intp], n_folds: int, random: np.random.RandomState
) -> list[tuple[NDArray[np.intp], NDArray[np.intp]]]:
    """For each fold the rows of the others and its own; strata are dealt out in random order."""
    fold = np.empty(len(strata), dtype=np.intp)
    # One deal for all, so that folds differ by one row at most.
    fold[np.concatenate(_shuffled(strata, random))] = np.arange(len(strata)) % n_folds
    return [(np.flatnonzero(fold != k), np.flatnonzero(fold == k)) for k in range(n_folds)]
