"""The Adult (census income) data, inside the package."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

_NUMBERS = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
_CATEGORIES = [
    "workclass",
    "marital-status",
    "occupation",
    "relationship",
    "race",
    "native-country",
]


@cache
def _table() -> pd.DataFrame:
    with as_file(files("evenhand.datasets") / "adult.csv.xz") as path:
        return pd.read_csv(path, keep_default_na=False).rename(
            columns={"income-per-year": "income"}
        )


def _full(table: pd.DataFrame) -> pd.DataFrame:
    one_hot = pd.get_dummies(table[_CATEGORIES].astype(str), dtype=float, prefix_sep="=")
    return pd.concat([table[_NUMBERS].astype(float), one_hot], axis=1)


def _coarse(table: pd.DataFrame) -> pd.DataFrame:
    decade = np.minimum(table["age"] // 10 * 10, 70)
    years = table["education-num"]
    columns = {"race=White": table["race"] == "White"}
    columns |= {f"age={d}s": decade == d for d in range(10, 70, 10)} | {"age>=70": decade == 70}
    columns |= {"education<6": years < 6}
    columns |= {f"education={n}": years == n for n in range(6, 13)}
    columns |= {"education>12": years > 12}
    return pd.DataFrame(columns).astype(float)


def load_adult(
    encoding: Literal["full", "coarse"] = "full",
    return_X_y_z: bool = False,
    *,
    sensitive_as_input: bool | None = None,
) -> Any:
    """Adult: does a person earn more than 50,000 dollars a year? Sensitive attribute: sex.

    All 48,842 rows are inside the package; nothing is downloaded.

    Parameters
    ----------
    encoding : {"full", "coarse"}, default="full"
        ``"full"``: the 45,222 rows without missing values, five numbers and six one-hot categorical
        columns (85 columns). ``"coarse"``: all rows as 18 binary columns: race, sex, age in
        decades, education in bins.
    return_X_y_z : bool, default=False
        Return ``(X, y, z)`` instead of a Bunch.
    sensitive_as_input : bool, optional
        Whether X has the column ``sex=Male``. By default only in ``"coarse"``.

    Returns
    -------
    Bunch
        ``data`` (DataFrame of numbers), ``target`` (1: over 50K), ``sensitive_features``
        (``"Female"``, ``"Male"``), ``encoder`` (unfitted transformer that standardises the numbers:
        fit it on the training part, or let :func:`encoded_split` do so), ``frame`` (the table as
        published), ``feature_names``, ``DESCR`` (the datasheet, with source and licence).

    Examples
    --------
    >>> from evenhand.datasets import load_adult
    >>> X, y, z = load_adult(return_X_y_z=True)
    >>> X.shape, round(float(y.mean()), 3), sorted(z.unique())
    ((45222, 85), 0.248, ['Female', 'Male'])
    """
    if encoding not in ("full", "coarse"):
        raise ValueError(f"encoding={encoding!r}; use 'full' or 'coarse'.")
    table = _table()
    if encoding == "full":
        table = table[~(table == "?").any(axis=1)].reset_index(drop=True)
    X = _full(table) if encoding == "full" else _coarse(table)
    if sensitive_as_input is None:
        sensitive_as_input = encoding == "coarse"
    if sensitive_as_input:
        X.insert(1, "sex=Male", (table["sex"] == "Male").astype(float))
    y = (table["income"] == ">50K").astype(int)
    z = table["sex"].copy()
    if return_X_y_z:
        return X, y, z
    numbers = _NUMBERS if encoding == "full" else []
    encoder = ColumnTransformer(
        [("numbers", StandardScaler(), numbers)],
        remainder="passthrough",
        verbose_feature_names_out=False,
    ).set_output(transform="pandas")
    return Bunch(
        data=X,
        target=y,
        sensitive_features=z,
        encoder=encoder,
        frame=table.copy(),
        feature_names=list(X.columns),
        DESCR=(files("evenhand.datasets") / "adult.md").read_text(encoding="utf-8"),
    )
