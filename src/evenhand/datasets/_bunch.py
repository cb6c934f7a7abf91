"""What every loader returns, and what their documentation shares."""

from typing import Any

import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

SHARED = """
data_home : str or path, optional
    scikit-learn's data folder by default; the table is kept in its folder ``evenhand``.
download_if_missing : bool, default=True
    Whether a table that is not there may be downloaded. A table that can neither be found nor
    downloaded is an OSError, whose message names the file to bring.
source : {"index", "openml"}, default="index"
    The package index that pip is configured with, or OpenML through scikit-learn (not tested
    against the live service); a table that differs from the known one is refused.
as_frame : bool, default=True
    Return pandas objects; otherwise arrays, and ``frame`` is None.
return_X_y_z : bool, default=False
    Return ``(X, y, z)`` instead of a Bunch.
random_state : int, RandomState or None, default=None
    Seed.
"""
"""Entries for :func:`evenhand._extras.documented`."""


def number_scaler(columns: list[Any], as_frame: bool, center: bool = True) -> ColumnTransformer:
    """Unfitted transformer that standardises the given columns and lets the others through."""
    encoder = ColumnTransformer(
        [("numbers", StandardScaler(with_mean=center), columns)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    )
    return encoder.set_output(transform="pandas") if as_frame else encoder


def pack(
    X: pd.DataFrame,
    y: pd.Series,
    z: pd.Series,
    *,
    numbers: list[str],
    frame: pd.DataFrame,
    descr: str,
    as_frame: bool = True,
    return_X_y_z: bool = False,
) -> Any:
    """Put together what every loader returns."""
    names = list(X.columns)
    columns: list[Any] = numbers if as_frame else [names.index(c) for c in numbers]
    data: tuple[Any, ...] = (X, y, z) if as_frame else tuple(v.to_numpy() for v in (X, y, z))
    if return_X_y_z:
        return data
    return Bunch(
        data=data[0],
        target=data[1],
        sensitive_features=data[2],
        encoder=number_scaler(columns, as_frame),
        frame=frame.copy() if as_frame else None,
        feature_names=names,
        DESCR=descr,
    )
