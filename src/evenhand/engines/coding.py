"""Labels and groups become numbers: one coding for arrays, tensors, files, Dask and tables.

A table is coded in three steps, wherever its rows are: :func:`count_levels` of each chunk gives its
distinct values with their counts, which add up; :func:`make_coding` says from the counts of all
chunks which number each value has; :func:`recode` gives the rows of a chunk their numbers. A table
in memory is one chunk.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.multiclass import check_classification_targets

from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import (
    MISSING_GROUP,
    check_missing,
    crossed,
    distinct_values,
    group_codes,
    only_text,
    rising,
)
from evenhand.core.rates import Partition

# A number with more distinct values than this is a quantity, not a group.
MAX_GROUP_VALUES = 20
# Characters of a value in an error.
LONGEST = 60


def named(value: Any) -> str:
    """Write a value as it is in Python, a long one by its beginning."""
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"


def joined(texts: Sequence[str], most: int = 5) -> str:
    """Name the first of many things, and how many more there are."""
    more = len(texts) - most
    return ", ".join(texts[:most]) + (f" … and {more:,} more" if more > 0 else "")


def listed(values: Any, most: int = 5) -> str:
    """Name the first of many values, as they are in Python."""
    return joined([named(v) for v in values], most)


@only_text()
def group_values(sensitive_features: Any) -> pd.Series:
    """Give the group of each row; refuse missing ones."""
    values = crossed(sensitive_features, "sensitive_features")
    check_missing(values, "sensitive_features", MISSING_GROUP)
    return values.reset_index(drop=True)


@only_text()
def count_levels(values: Any, name: str) -> tuple[pd.Series, NDArray[np.intp]]:
    """Count the rows of each distinct value, and number each row's value among them.

    The counts, by value, add up over chunks. An error calls the values by ``name``.
    """
    codes, distinct = distinct_values(values, name)
    return pd.Series(np.bincount(codes, minlength=len(distinct)), index=distinct), codes


def recode(levels: pd.Series, codes: NDArray[np.intp], numbers: Mapping[Any, int]) -> Any:
    """Give the number of each row's value, from :func:`count_levels`."""
    distinct = levels.index.to_numpy().tolist()
    return np.array([numbers[v] for v in distinct], dtype=np.intp)[codes]


@dataclass(frozen=True)
class Coding:
    """Numbers of the labels and of the groups.

    Parameters
    ----------
    labels, groups : dict
        The number of each label, and of each group; all small groups share the last number.
    classes, compared : ndarray
        The labels, and the groups that are compared, in sorted order.
    small : dict
        Rows of each group that is too small to be compared.
    dtype : dtype
        That of the inputs.
    per_weight : float or None
        What weights are multiplied by, if there are any.
    """

    labels: dict[Any, int]
    groups: dict[Any, int]
    classes: NDArray[Any]
    compared: NDArray[Any]
    small: dict[Any, int]
    dtype: Any = np.float64
    per_weight: float | None = None

    @property
    def n_labels(self) -> int:
        """How many labels there are."""
        return len(self.labels)


@only_text()
def make_coding(
    labels: pd.Series,
    groups: pd.Series,
    *,
    label_dtype: Any = None,
    label_order: Callable[[NDArray[Any]], NDArray[Any]] | None = None,
    min_group_size: int = 1,
    where: str = "",
    two_groups: bool = False,
    two_labels: bool = False,
    binned: bool = False,
    **more: Any,
) -> Coding:
    """Say which number each label and each group has, from the counts of all rows.

    Parameters
    ----------
    labels, groups : Series
        Rows of each label and of each group, from :func:`count_levels`.
    label_dtype : dtype, optional
        That of the labels as the user has them.
    label_order : callable, optional
        Gives sorted labels in the order of their numbers; as they are by default.
    min_group_size : int, default=1
        Of more than two groups, those with fewer rows are not compared.
    where : str
        Of which rows an error speaks.
    two_groups, two_labels : bool
        Whether more than two are refused.
    binned : bool
        Whether the groups are bins of a number.
    **more
        Fields of :class:`Coding`.
    """
    classes = np.asarray(labels.index)
    classes = classes[rising(classes, "y")]
    classes = classes if label_dtype is None else classes.astype(label_dtype)
    check_classification_targets(classes)
    for label in classes.tolist():
        str(label).encode()  # half a character is refused here, not when a model is saved
    levels, codes = group_codes(groups.index.to_series())
    size = np.zeros(len(levels), dtype=np.intp)
    size[codes] = groups.to_numpy()
    if len(classes) < 2:
        raise InputError("one_class", classes=listed(classes), where=where)
    if two_labels and len(classes) > 2:
        # The first sentence is what scikit-learn's checks of estimators look for.
        raise InputError("many_classes", n=len(classes), classes=listed(classes), where=where)
    _check_groups(levels, where, two=two_groups, binned=binned)
    compared, number, small = compared_groups(levels, size, min_group_size, where)
    order = classes if label_order is None else label_order(classes)
    return Coding(
        {label: i for i, label in enumerate(order.tolist())},
        dict(zip(levels.tolist(), number.tolist(), strict=True)),
        classes,
        compared,
        small,
        **more,
    )


def _check_groups(levels: NDArray[Any], where: str, *, two: bool, binned: bool) -> None:
    """Refuse too few groups, too many, and numbers that are no groups."""
    argument, n = Parameter("sensitive_features"), len(levels)
    if n < 2 or (two and n > 2):
        about = {"n": n, "s": "s" * (n != 1), "where": where, "groups": listed(levels)}
        needed = "two" if two else "at least two"
        raise InputError("number_of_groups", argument=argument, needed=needed, **about)
    if not binned and n > MAX_GROUP_VALUES and np.issubdtype(levels.dtype, np.number):
        raise InputError("groups_are_numbers", argument=argument, n=n, bins=Parameter("bins"))


def attribute_columns(values: Any, used: Any = None) -> pd.DataFrame | None:
    """Give the columns of several attributes, of the rows used; None of one column."""
    if isinstance(values, np.ndarray) and values.ndim == 2:
        values = pd.DataFrame(values).infer_objects()
    if hasattr(values, "columns") and not isinstance(values, pd.DataFrame):
        values = pd.DataFrame({column: np.asarray(values[column]) for column in values.columns})
    if not isinstance(values, pd.DataFrame) or values.shape[1] < 2:
        return None
    return values if used is None else values.iloc[used]


def make_partitions(
    columns: pd.DataFrame,
    z: NDArray[np.intp],
    crossed: NDArray[Any],
    least: int,
    *,
    crossed_too: bool,
) -> tuple[Partition, ...]:
    """Give the groups of each attribute, and if asked for the crossed ones that are large enough.

    ``z`` is the number of each row's group among all ``crossed`` ones.
    """
    first = np.unique(z, return_index=True)[1]

    def partition(name: str, levels: Any, codes: NDArray[Any]) -> Partition:
        """Give the groups of the levels that have rows enough."""
        where = f" of {name!r}"
        _check_groups(np.asarray(levels), where, two=False, binned=True)
        sizes = np.bincount(codes, minlength=len(levels))
        compared, number, small = compared_groups(np.asarray(levels), sizes, least, where)
        place = number[codes[first]]
        members = [tuple(np.flatnonzero(place == j).tolist()) for j in range(len(compared))]
        names = tuple(map(str, compared.tolist()))
        left_out = tuple((str(group), int(n)) for group, n in small.items())
        return Partition(name, names, tuple(members), left_out)

    found = [partition(str(name), *group_codes(columns[name])) for name in columns]
    if crossed_too:
        found.append(partition(" × ".join(map(str, columns)), crossed, z))
    return tuple(found)


def compared_groups(
    levels: NDArray[Any], size: NDArray[Any], least: int, where: str = ""
) -> tuple[NDArray[Any], NDArray[np.intp], dict[Any, int]]:
    """Find the groups to compare, the number of each group, and the sizes of the small ones."""
    large = size >= least
    if len(levels) == 2 or large.all():
        return levels, np.arange(len(levels)), {}
    if large.sum() < 2:
        sizes = joined([f"{named(g)}: {n}" for g, n in zip(levels, size, strict=True)])
        given, name = Parameter("min_group_size", least), Parameter("min_group_size")
        raise InputError("small_groups", min_group_size=given, where=where, sizes=sizes, name=name)
    number = np.where(large, np.cumsum(large) - 1, large.sum())
    small = dict(zip(levels[~large].tolist(), size[~large].tolist(), strict=True))
    return levels[large], number, small
