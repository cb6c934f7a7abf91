"""One way to split and encode, so that no encoding ever sees the test part."""

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import train_test_split

from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import group_codes


class Split(NamedTuple):
    """A training and a test part: inputs, labels, groups."""

    X_train: Any
    X_test: Any
    y_train: Any
    y_test: Any
    z_train: Any
    z_test: Any


def stratified_rows(
    y: Any, z: Any, *, test_size: float = 0.3, random_state: Any = None
) -> tuple[Any, Any]:
    """Row numbers of a training and a test part, stratified on label and group.

    Parameters
    ----------
    y, z : array-like of shape (n_samples,)
        Labels and groups.
    test_size : float, default=0.3
        Share of the test part.
    random_state : int, RandomState or None, default=None
        Seed of the split.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Rows to train on, rows to test on.
    """
    labels, y_code = group_codes(y, name="y")
    levels, z_code = group_codes(z)
    cells = z_code * len(labels) + y_code
    sizes = np.bincount(cells)
    if (sizes == 1).any():
        group, label = divmod(int(np.flatnonzero(sizes == 1)[0]), len(labels))
        raise InputError("one_row_in_cell", group=levels[group], label=labels[label])
    try:
        train, test = train_test_split(
            np.arange(len(cells)), test_size=test_size, random_state=random_state, stratify=cells
        )
    except ValueError as error:
        share, reason = Parameter("test_size", test_size), str(error)
        raise InputError(
            "rows_cannot_be_split", n=len(cells), test_size=share, reason=reason
        ) from None
    return train, test


def encoded_split(
    dataset: Any, *, target: Any = None, test_size: float = 0.3, random_state: Any = None
) -> Split:
    """Split a dataset, stratified on label and group, and encode it as the training part says.

    Parameters
    ----------
    dataset : Bunch
        What a loader returns: ``data``, ``target``, ``sensitive_features``, ``encoder``.
    target : array-like of shape (n_samples,), optional
        Labels to use instead, such as :func:`with_correlation` gives.
    test_size : float, default=0.3
        Share of the test part.
    random_state : int, RandomState or None, default=None
        Seed of the split.

    Returns
    -------
    Split
        ``X_train, X_test, y_train, y_test, z_train, z_test``.

    Examples
    --------
    >>> from evenhand.datasets import encoded_split, load_adult
    >>> split = encoded_split(load_adult(), random_state=0)
    >>> split.X_train.shape, split.X_test.shape
    ((31655, 85), (13567, 85))
    """
    y = dataset.target if target is None else target
    y = np.asarray(y) if isinstance(y, list | tuple) else y
    z = dataset.sensitive_features
    if len(y) != len(z):
        raise InputError("unequal_targets", target=Parameter("target"), n=len(y), rows=len(z))
    train, test = stratified_rows(y, z, test_size=test_size, random_state=random_state)

    def rows(values: Any, index: Any) -> Any:
        return values.iloc[index] if hasattr(values, "iloc") else values[index]

    encoder = clone(dataset.encoder)
    X_train = encoder.fit_transform(rows(dataset.data, train))
    X_test = encoder.transform(rows(dataset.data, test))
    return Split(X_train, X_test, rows(y, train), rows(y, test), rows(z, train), rows(z, test))
