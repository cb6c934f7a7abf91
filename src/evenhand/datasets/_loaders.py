"""The loaders: a record and its table make inputs, labels and groups."""

from __future__ import annotations

from functools import cache
from importlib.resources import as_file, files
from io import BytesIO
from typing import Any, Literal

import numpy as np
import pandas as pd
from sklearn.compose import ColumnTransformer
from sklearn.preprocessing import StandardScaler
from sklearn.utils import Bunch

from evenhand.datasets._fetch import fetch_table
from evenhand.datasets._records import DATASETS, Dataset


@cache
def _embedded(name: str) -> pd.DataFrame:
    with as_file(files("evenhand.datasets") / f"{name}.csv.xz") as path:
        return pd.read_csv(path, keep_default_na=False)


def _one_hot(table: pd.DataFrame, columns: list[str], *, drop: bool) -> pd.DataFrame:
    """One 0/1 column per value; with ``drop``, one for a column of two values."""
    coded = pd.get_dummies(table[columns].astype(str), dtype=float, prefix_sep="=")
    if drop:
        spare = [f"{c}={min(levels)}" for c in columns if len(levels := set(table[c])) == 2]
        coded = coded.drop(columns=spare)
    return coded


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
    columns: list[Any] = numbers
    data: tuple[Any, Any, Any] = (X, y, z)
    if not as_frame:
        columns = [names.index(c) for c in numbers]
        data = (X.to_numpy(), y.to_numpy(), z.to_numpy())
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


def _from_record(
    record: Dataset,
    table: pd.DataFrame,
    *,
    sensitive: str | None,
    sensitive_as_input: bool,
    as_frame: bool,
    return_X_y_z: bool,
) -> Any:
    attribute = record.attribute(sensitive)
    hidden = () if sensitive_as_input else (attribute.column,)
    numbers = [c for c in record.numbers if c not in hidden]
    categories = [c for c in record.categories if c not in hidden]
    X = pd.concat([table[numbers].astype(float), _one_hot(table, categories, drop=True)], axis=1)
    z = attribute.of(table)
    if sensitive_as_input and attribute.column not in (*record.numbers, *record.categories):
        second = attribute.groups[1]
        X[f"{attribute.name}={second}"] = (z == second).astype(float)
    return pack(
        X,
        (table[record.label] == record.favourable).astype(int),
        z,
        numbers=numbers,
        frame=table,
        descr=record.datasheet,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


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
    as_frame: bool = True,
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
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays, and ``frame`` is None.

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
    record = DATASETS["adult"]
    table = _embedded("adult").rename(columns={"income-per-year": record.label})
    if encoding == "full":
        table = table[~(table == "?").any(axis=1)].reset_index(drop=True)
        numbers = list(record.numbers)
        one_hot = _one_hot(table, list(record.categories), drop=False)
        X = pd.concat([table[numbers].astype(float), one_hot], axis=1)
    else:
        numbers, X = [], _coarse(table)
    if sensitive_as_input is None:
        sensitive_as_input = encoding == "coarse"
    z = record.attribute(None).of(table)
    if sensitive_as_input:
        X.insert(1, "sex=Male", (z == "Male").astype(float))
    return pack(
        X,
        (table[record.label] == record.favourable).astype(int),
        z,
        numbers=numbers,
        frame=table,
        descr=record.datasheet,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


def load_german(
    return_X_y_z: bool = False,
    *,
    sensitive: Literal["sex", "age"] = "sex",
    sensitive_as_input: bool = False,
    as_frame: bool = True,
) -> Any:
    """German credit: is an applicant for a loan a good risk? Sensitive attribute: sex, or age.

    The 1,000 rows are inside the package; nothing is downloaded.

    Parameters
    ----------
    return_X_y_z : bool, default=False
        Return ``(X, y, z)`` instead of a Bunch.
    sensitive : {"sex", "age"}, default="sex"
        The sensitive attribute; age has the groups up to 25 and over 25 years.
    sensitive_as_input : bool, default=False
        Whether it is also an input: the column ``sex=male``, or ``age`` in years.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays, and ``frame`` is None.

    Returns
    -------
    Bunch
        ``data`` (numbers as they are, categories as 0/1 columns), ``target`` (1: good),
        ``sensitive_features``, ``encoder`` (unfitted transformer that standardises the numbers, for
        :func:`encoded_split`), ``frame`` (the table), ``feature_names``, ``DESCR`` (the datasheet,
        with source, licence and limits).

    Examples
    --------
    >>> from evenhand.datasets import load_german
    >>> X, y, z = load_german(return_X_y_z=True)
    >>> X.shape, float(y.mean()), sorted(z.unique())
    ((1000, 55), 0.7, ['female', 'male'])
    """
    return _from_record(
        DATASETS["german"],
        _embedded("german"),
        sensitive=sensitive,
        sensitive_as_input=sensitive_as_input,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


def _read_compas(content: bytes) -> pd.DataFrame:
    columns = DATASETS["compas"].columns
    filters = ["days_b_screening_arrest", "is_recid", "score_text"]
    table = pd.read_csv(
        BytesIO(content),
        usecols=[*columns, *filters],  # names and birth dates are not even read
        keep_default_na=False,
        na_values={"days_b_screening_arrest": [""]},
    )
    kept = (
        table["days_b_screening_arrest"].between(-30, 30)
        & (table["is_recid"] != -1)
        & (table["c_charge_degree"] != "O")
        & (table["score_text"] != "N/A")
        & table["race"].isin(DATASETS["compas"].sensitive[0].groups)
    )
    return table[kept]


def _compas_from_openml(frame: pd.DataFrame) -> pd.DataFrame:
    counts = [*DATASETS["compas"].numbers, "two_year_recid"]
    table = frame[counts].astype(float).astype(int)

    def pick(column: str, yes: str, no: str) -> Any:
        return np.where(frame[column].astype(float) == 1, yes, no)

    return table.assign(
        c_charge_degree=pick("c_charge_degree_F", "F", "M"),
        race=pick("race_Caucasian", "Caucasian", "African-American"),
        sex=pick("sex", "Male", "Female"),
    )


_BANK_COLUMNS = [
    *("age", "job", "marital", "education", "default", "balance", "housing", "loan", "contact"),
    *("day", "month", "duration", "campaign", "pdays", "previous", "poutcome", "y"),
]


def _read_bank(content: bytes) -> pd.DataFrame:
    return pd.read_csv(BytesIO(content), sep=";", keep_default_na=False)


def _bank_from_openml(frame: pd.DataFrame) -> pd.DataFrame:
    table = frame.set_axis(_BANK_COLUMNS, axis=1)
    numbers = list(DATASETS["bank"].numbers)
    words = table.drop(columns=numbers).astype(str)
    words["y"] = words["y"].replace({"1": "no", "2": "yes"})
    return pd.concat([table[numbers].astype(float).astype(int), words], axis=1)


_CREDIT_CODES = {
    "sex": {1: "male", 2: "female"},
    "education": {1: "graduate school", 2: "university", 3: "high school", 4: "other"},
    "marriage": {1: "married", 2: "single", 3: "other"},
}


def _credit_default(table: pd.DataFrame) -> pd.DataFrame:
    """Name the columns of the published table, which are always in this order, decode it."""
    numbers = DATASETS["credit_default"].numbers
    columns = ["limit", "sex", "education", "marriage", "age", *numbers[2:], "default"]
    table = table.set_axis(columns, axis=1).astype(float).astype(int)
    for column, codes in _CREDIT_CODES.items():
        table[column] = table[column].map(codes).fillna("undocumented")
    return table


def _read_credit_default(content: bytes) -> pd.DataFrame:
    return _credit_default(pd.read_csv(BytesIO(content)).drop(columns="ID"))


def _credit_default_from_openml(frame: pd.DataFrame) -> pd.DataFrame:
    return _credit_default(frame.drop(columns=[c for c in frame if str(c).lower() == "id"]))


def _read_law_school(content: bytes) -> pd.DataFrame:
    table = pd.read_csv(BytesIO(content), keep_default_na=False)
    numbers = dict.fromkeys(DATASETS["law_school"].numbers, float)
    return table.astype(numbers).assign(sex=table["sex"].map({1: "female", 2: "male"}))


_READERS: dict[str, tuple[Any, Any]] = {
    "compas": (_read_compas, _compas_from_openml),
    "bank": (_read_bank, _bank_from_openml),
    "credit_default": (_read_credit_default, _credit_default_from_openml),
    "law_school": (_read_law_school, None),
}


def _fetch(
    name: str,
    *,
    data_home: Any,
    download_if_missing: bool,
    source: str,
    sensitive: str | None,
    **options: Any,
) -> Any:
    record = DATASETS[name]
    record.attribute(sensitive)  # a misspelt attribute is found before the network is asked
    reduce, from_openml = _READERS[name]
    table = fetch_table(
        record,
        reduce=reduce,
        from_openml=from_openml,
        data_home=data_home,
        download_if_missing=download_if_missing,
        source=source,
    )
    return _from_record(record, table, sensitive=sensitive, **options)


def fetch_compas(
    *,
    sensitive: Literal["race", "sex"] = "race",
    sensitive_as_input: bool = False,
    data_home: Any = None,
    download_if_missing: bool = True,
    source: Literal["index", "openml"] = "index",
    as_frame: bool = True,
    return_X_y_z: bool = False,
) -> Any:
    """COMPAS: is a person not arrested again within two years? Sensitive: race, or sex.

    ProPublica's two-year file with its usual filter, African-American and Caucasian people: 5,278
    rows. Inputs are age, prior offences, three juvenile counts and the degree of the charge. Names
    and birth dates are never read, stored or returned.

    Parameters
    ----------
    sensitive : {"race", "sex"}, default="race"
        The sensitive attribute; the rows are the same for both.
    sensitive_as_input : bool, default=False
        Whether it is also an input: the column ``race=Caucasian`` or ``sex=Male``.
    data_home : str or path, optional
        scikit-learn's data folder by default; the table is kept in its folder ``evenhand``.
    download_if_missing : bool, default=True
        Whether a table that is not there may be downloaded; otherwise it is an OSError.
    source : {"index", "openml"}, default="index"
        The package index that pip is configured with, or OpenML through scikit-learn (not tested
        against the live service); a table that differs from the known one is refused.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays, and ``frame`` is None.
    return_X_y_z : bool, default=False
        Return ``(X, y, z)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``target`` is 1 for people who are not arrested again.

    Raises
    ------
    OSError
        If the table can neither be found nor downloaded; the message names the file to bring.

    Examples
    --------
    >>> from evenhand.datasets import fetch_compas
    >>> data = fetch_compas()  # doctest: +SKIP
    >>> data.data.shape  # doctest: +SKIP
    (5278, 6)
    """
    return _fetch(
        "compas",
        sensitive=sensitive,
        sensitive_as_input=sensitive_as_input,
        data_home=data_home,
        download_if_missing=download_if_missing,
        source=source,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


def fetch_bank(
    *,
    sensitive: Literal["age", "marital"] = "age",
    sensitive_as_input: bool = False,
    data_home: Any = None,
    download_if_missing: bool = True,
    source: Literal["index", "openml"] = "index",
    as_frame: bool = True,
    return_X_y_z: bool = False,
) -> Any:
    """Bank marketing: does a client subscribe to a term deposit? Sensitive: age, or marriage.

    The 45,211 rows of UCI's ``bank-full.csv``. The call's duration is left out: it is known only
    when the outcome is known too.

    Parameters
    ----------
    sensitive : {"age", "marital"}, default="age"
        Age has the groups 25 to 60 years and all others; marital status married and not married.
    sensitive_as_input : bool, default=False
        Whether its column, age in years or marital status, is also an input.
    data_home : str or path, optional
        scikit-learn's data folder by default; the table is kept in its folder ``evenhand``.
    download_if_missing : bool, default=True
        Whether a table that is not there may be downloaded; otherwise it is an OSError.
    source : {"index", "openml"}, default="index"
        The package index that pip is configured with, or OpenML through scikit-learn (not tested
        against the live service); a table that differs from the known one is refused.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays, and ``frame`` is None.
    return_X_y_z : bool, default=False
        Return ``(X, y, z)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``target`` is 1 for clients who subscribe.

    Raises
    ------
    OSError
        If the table can neither be found nor downloaded; the message names the file to bring.

    Examples
    --------
    >>> from evenhand.datasets import fetch_bank
    >>> data = fetch_bank()  # doctest: +SKIP
    >>> data.data.shape  # doctest: +SKIP
    (45211, 46)
    """
    return _fetch(
        "bank",
        sensitive=sensitive,
        sensitive_as_input=sensitive_as_input,
        data_home=data_home,
        download_if_missing=download_if_missing,
        source=source,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


def fetch_credit_default(
    *,
    sensitive: Literal["sex", "marriage"] = "sex",
    sensitive_as_input: bool = False,
    data_home: Any = None,
    download_if_missing: bool = True,
    source: Literal["index", "openml"] = "index",
    as_frame: bool = True,
    return_X_y_z: bool = False,
) -> Any:
    """Credit default: is next month's payment made? Sensitive: sex, or marriage.

    UCI's 30,000 credit card clients in Taiwan, 2005.

    Parameters
    ----------
    sensitive : {"sex", "marriage"}, default="sex"
        Marriage has the groups married and not married.
    sensitive_as_input : bool, default=False
        Whether it is also an input: the column ``sex=male``, or marital status.
    data_home : str or path, optional
        scikit-learn's data folder by default; the table is kept in its folder ``evenhand``.
    download_if_missing : bool, default=True
        Whether a table that is not there may be downloaded; otherwise it is an OSError.
    source : {"index", "openml"}, default="index"
        The package index that pip is configured with, or OpenML through scikit-learn (not tested
        against the live service); a table that differs from the known one is refused.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays, and ``frame`` is None.
    return_X_y_z : bool, default=False
        Return ``(X, y, z)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``target`` is 1 for clients who do not default.

    Raises
    ------
    OSError
        If the table can neither be found nor downloaded; the message names the file to bring.

    Examples
    --------
    >>> from evenhand.datasets import fetch_credit_default
    >>> data = fetch_credit_default()  # doctest: +SKIP
    >>> data.data.shape  # doctest: +SKIP
    (30000, 29)
    """
    return _fetch(
        "credit_default",
        sensitive=sensitive,
        sensitive_as_input=sensitive_as_input,
        data_home=data_home,
        download_if_missing=download_if_missing,
        source=source,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


def fetch_law_school(
    *,
    sensitive: Literal["race", "sex"] = "race",
    sensitive_as_input: bool = False,
    data_home: Any = None,
    download_if_missing: bool = True,
    source: Literal["index", "openml"] = "index",
    as_frame: bool = True,
    return_X_y_z: bool = False,
) -> Any:
    """Law school: is the bar examination passed at the first attempt? Sensitive: race, or sex.

    The 21,791 students of the Law School Admission Council's study in the form widely used:
    entrance test, college grades, first-year grades, region of the examination.

    Parameters
    ----------
    sensitive : {"race", "sex"}, default="race"
        Race has the groups White and Non-White.
    sensitive_as_input : bool, default=False
        Whether it is also an input: the column ``race=White`` or ``sex=male``.
    data_home : str or path, optional
        scikit-learn's data folder by default; the table is kept in its folder ``evenhand``.
    download_if_missing : bool, default=True
        Whether a table that is not there may be downloaded; otherwise it is an OSError.
    source : {"index", "openml"}, default="index"
        The package index that pip is configured with; OpenML does not have this table.
    as_frame : bool, default=True
        Return pandas objects; otherwise arrays, and ``frame`` is None.
    return_X_y_z : bool, default=False
        Return ``(X, y, z)`` instead of a Bunch.

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``target`` is 1 for students who pass.

    Raises
    ------
    OSError
        If the table can neither be found nor downloaded; the message names the file to bring.

    Examples
    --------
    >>> from evenhand.datasets import fetch_law_school
    >>> data = fetch_law_school()  # doctest: +SKIP
    >>> data.data.shape  # doctest: +SKIP
    (21791, 14)
    """
    return _fetch(
        "law_school",
        sensitive=sensitive,
        sensitive_as_input=sensitive_as_input,
        data_home=data_home,
        download_if_missing=download_if_missing,
        source=source,
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )
