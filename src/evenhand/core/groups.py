"""Groups and labels as users write them: one group per row, in order, and labels as 0 and 1."""

import json
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse

from evenhand.core.errors import InputError, Parameter

# What to do about rows without a group.
MISSING_GROUP = "drop those rows or give them a group of their own, such as 'unknown'"


@contextmanager
def only_text() -> Iterator[None]:
    """Refuse text with half a surrogate pair, which cannot be encoded; the error names it."""
    try:
        yield
    except UnicodeEncodeError as error:
        raise InputError("half_character", value=error.object) from None


@only_text()
def group_codes(sensitive_features: Any, *, name: str = "sensitive_features") -> tuple[Any, Any]:
    """Distinct groups in sorted order and the group index of each row.

    Groups may be strings, booleans, numbers or categories. Several columns are crossed: a group is
    then a combination of values, named like ``"Female & Black"``. Bins such as ``"30 to 45"`` are
    in the order of their numbers. A missing value is an error: which group a person belongs to is
    never guessed.
    """
    values = crossed(sensitive_features, name)
    check_missing(values, name, MISSING_GROUP)
    codes, groups = distinct_values(values, name)
    groups = np.asarray(groups)
    for group in groups.tolist():
        str(group).encode()
    order = rising(groups, name)
    order = np.array(sorted(order, key=lambda i: _bins_first(groups[i])), dtype=np.intp)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return groups[order], rank[codes]


def distinct_values(values: Any, name: str) -> tuple[NDArray[np.intp], Any]:
    """Find the number of each row's value, and the distinct values; refuse lists and the like."""
    try:
        return pd.factorize(values)
    except TypeError:
        raise InputError("not_groups", argument=Parameter(name)) from None


# What is between the values of a crossed group, and the bins that inputs.bin_names names.
CROSS = " & "

# As people write it: letters of all alphabets stay.
_quoted = partial(json.dumps, ensure_ascii=False)

_BIN = re.compile(r"(below|from) (\S+)|(\S+) to (\S+)")


def _bins_first(group: Any) -> list[tuple[float, str]]:
    """Give what sorts a group: bins by where they begin, all else, after them, by its text."""
    if not isinstance(group, str):
        return []
    return [(_start(value), value) for value in group.split(CROSS)]


def _start(value: str) -> float:
    name = _BIN.fullmatch(value)
    if name is None:
        return np.inf
    try:
        edge = float(name[2] or name[3])
    except ValueError:
        return np.inf
    return -np.inf if name[1] == "below" else edge


def rising(values: NDArray[Any], name: str) -> NDArray[np.intp]:
    """Numbers that sort distinct values; refuse those that have no order."""
    try:
        return np.argsort(values, kind="stable")
    except TypeError:
        raise InputError(
            "mixed_types",
            argument=Parameter(name),
            types=", ".join(sorted({type(v).__name__ for v in values})),
        ) from None


@only_text()
def crossed(values: Any, name: str, between: str = CROSS) -> pd.Series:
    """One group per row: the column itself, or the combination of several columns' values."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] > 1:
        values = pd.DataFrame(values).infer_objects()
    if hasattr(values, "columns") and not isinstance(values, pd.DataFrame):
        values = pd.DataFrame({column: np.asarray(values[column]) for column in values.columns})
    if not isinstance(values, pd.DataFrame) or values.shape[1] < 2:
        return as_series(values, name)
    if not values.columns.is_unique:
        raise InputError("sensitive_twice", column=values.columns[values.columns.duplicated()][0])
    for column, of_rows in values.items():
        check_missing(of_rows, name, MISSING_GROUP, column=column)
    text = [_plain(values.iloc[:, j].astype(str), between) for j in range(values.shape[1])]
    joined = text[0].str.cat(text[1:], sep=between)
    return joined.rename(between.join(map(str, values.columns)))


def _plain(text: pd.Series, between: str) -> pd.Series:
    """Quote what has the separator, or "x & y" with "z" would be "x" with "y & z".

    So is what has one with a space beside it: "x &" with "y" would be "x" with "& y". Each value by
    itself: a group is called the same whatever other rows there are.
    """
    padded = " " + text + " " if between == CROSS else text  # no old name is another one now
    doubtful = padded.str.contains(between, regex=False) | text.str.startswith('"')
    return text.where(~doubtful, text.map(_quoted)) if doubtful.any() else text


@only_text()
def as_series(values: Any, name: str) -> pd.Series:
    """One value per row; a list is not made an array first, where a missing text becomes 'nan'."""
    if isinstance(values, pd.Series):
        return values
    if isinstance(values, pd.DataFrame):
        if values.shape[1] != 1:
            raise InputError("several_columns", argument=Parameter(name), n=values.shape[1])
        return values.iloc[:, 0]
    if issparse(values) or isinstance(values, str | dict) or not hasattr(values, "__len__"):
        raise InputError("not_a_column", argument=Parameter(name), type=type(values).__name__)
    values = list(values) if isinstance(values, list | tuple) else np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    nested = isinstance(values, list) and any(isinstance(v, list | tuple) for v in values)
    check_one_dimension(2 if nested else np.ndim(values), name)
    return pd.Series(values)


def check_one_dimension(n_dims: int, name: str) -> None:
    """Refuse an argument that has not one value per row."""
    if n_dims != 1:
        raise InputError("not_one_dimension", argument=Parameter(name), n=n_dims)


def check_missing(values: pd.Series, name: str, advice: str, column: Any = None) -> None:
    """Refuse missing values of an argument, or of one of its columns."""
    n = int(values.isna().sum())
    data = {"argument": Parameter(name), "n": n, "s": "s" * (n > 1), "advice": advice}
    if n and column is None:
        raise InputError("missing_values", **data)
    if n:
        raise InputError("missing_values_in_column", column=column, **data)


def check_weights(weight: NDArray[Any]) -> None:
    """Refuse row weights that cannot be added up."""
    if not np.isfinite(weight).all() or (weight < 0).any():
        raise InputError("bad_weights", argument=Parameter("sample_weight"))


def zero_one(labels: Iterable[Any]) -> dict[Any, float] | None:
    """Give the numbers of labels that are 0 and 1, -1 and 1, or false and true, also as text.

    Of these the larger is favourable unless a user says otherwise; of others (None) nobody can say
    which is.
    """
    words = {"false": "0", "true": "1"}
    numbers = {}
    for label in labels:
        text = str(label).strip().lower()
        try:
            numbers[label] = float(words.get(text, text))
        except ValueError:
            return None
    values = set(numbers.values())
    plain = len(values) == len(numbers) and (values <= {0, 1} or values <= {-1, 1})
    return numbers if plain else None


def plain_labels(classes: Iterable[Any]) -> bool:
    """Whether the last of the sorted labels is favourable without asking: 0/1, −1/1, true/false.

    Parameters
    ----------
    classes : iterable
        The different labels in sorted order.

    Examples
    --------
    >>> from evenhand.core.groups import plain_labels
    >>> plain_labels([False, True]), plain_labels(["-1", "1"]), plain_labels(["approved", "denied"])
    (True, True, False)
    """
    classes = list(classes)
    numbers = zero_one(classes)
    return numbers is not None and max(numbers, key=numbers.__getitem__) == classes[-1]


def as_binary(y_true: Any, y_pred: Any, pos_label: Any) -> tuple[Any, Any]:
    """Say of labels and predictions which are the favourable one."""
    true, pred = as_series(y_true, "y_true"), as_series(y_pred, "y_pred")
    check_missing(true, "y_true", "drop those rows")
    check_missing(pred, "y_pred", "a prediction must say something")
    labels = pd.unique(np.concatenate([true.astype(object), pred.astype(object)]))
    if pos_label is None:
        numbers = zero_one(labels)
        if numbers is None:
            raise InputError(
                "no_favourable_label",
                labels=", ".join(repr(v) for v in labels[:5]),
                pos_label=Parameter("pos_label"),
            )
        pos_label = next((label for label, number in numbers.items() if number == 1), 1)
    if len({*labels, pos_label}) > 2:
        raise InputError(
            "not_two_labels",
            labels=", ".join(repr(v) for v in labels[:5]),
            pos_label=Parameter("pos_label", pos_label),
            name=Parameter("pos_label"),
        )
    return (true == pos_label).to_numpy(dtype=bool), (pred == pos_label).to_numpy(dtype=bool)
