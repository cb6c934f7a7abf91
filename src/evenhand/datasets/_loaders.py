"""The loaders: a record and its table make inputs, labels and groups."""

from functools import cache
from importlib.resources import as_file, files
from typing import Any, Literal

import numpy as np
import pandas as pd

from evenhand._extras import documented
from evenhand.core.errors import InputError, Parameter
from evenhand.datasets._bunch import SHARED, pack
from evenhand.datasets._catalogue import DATASETS
from evenhand.datasets._fetch import fetch_table
from evenhand.datasets._records import Dataset


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


def _from_record(
    record: Dataset,
    table: pd.DataFrame,
    *,
    sensitive: str | None,
    sensitive_as_input: bool,
    **form: bool,
) -> Any:
    """Make inputs, labels and groups of a record's table; ``form`` is for :func:`pack`."""
    attribute = record.attribute(sensitive)
    hidden = () if sensitive_as_input else (attribute.column,)
    numbers = [c for c in record.numbers if c not in hidden]
    categories = [c for c in record.categories if c not in hidden]
    X = pd.concat([table[numbers].astype(float), _one_hot(table, categories, drop=True)], axis=1)
    z = attribute.of(table)
    if sensitive_as_input and attribute.column not in (*record.numbers, *record.categories):
        second = attribute.groups[1]
        X[f"{attribute.name}={second}"] = (z == second).astype(float)
    return _pack(record, table, X, z, numbers, **form)


def _pack(
    record: Dataset, table: pd.DataFrame, X: pd.DataFrame, z: pd.Series, numbers: Any, **form: bool
) -> Any:
    """Pack inputs and groups with the labels and the datasheet of the record."""
    y = (table[record.label] == record.favourable).astype(int)
    return pack(X, y, z, numbers=numbers, frame=table, descr=record.datasheet, **form)


def _coarse(table: pd.DataFrame) -> pd.DataFrame:
    decade = np.minimum(table["age"] // 10 * 10, 70)
    years = table["education-num"]
    columns = {"race=White": table["race"] == "White"}
    columns |= {f"age={d}s": decade == d for d in range(10, 70, 10)} | {"age>=70": decade == 70}
    columns |= {"education<6": years < 6}
    columns |= {f"education={n}": years == n for n in range(6, 13)}
    columns |= {"education>12": years > 12}
    return pd.DataFrame(columns).astype(float)


@documented(SHARED)
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
    return_X_y_z
    sensitive_as_input : bool, optional
        Whether X has the column ``sex=Male``. By default only in ``"coarse"``.
    as_frame

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
        raise InputError("unknown_table_encoding", encoding=Parameter("encoding", encoding))
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
    return _pack(record, table, X, z, numbers, as_frame=as_frame, return_X_y_z=return_X_y_z)


@documented(SHARED)
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
    return_X_y_z
    sensitive : {"sex", "age"}, default="sex"
        The sensitive attribute; age has the groups up to 25 and over 25 years.
    sensitive_as_input : bool, default=False
        Whether it is also an input: the column ``sex=male``, or ``age`` in years.
    as_frame

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
    return _from_record(DATASETS["german"], _embedded("german"), **locals())


def _fetch(
    name: str,
    *,
    data_home: Any,
    download_if_missing: bool,
    source: str,
    sensitive: str | None,
    **options: Any,
) -> Any:
    """Fetch the table of a name; ``options`` are for :func:`_from_record`."""
    record = DATASETS[name]
    record.attribute(sensitive)  # a misspelt attribute is found before the network is asked
    table = fetch_table(record, data_home, download_if_missing, source)
    return _from_record(record, table, sensitive=sensitive, **options)


@documented(SHARED)
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
    data_home, download_if_missing, source, as_frame, return_X_y_z

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``data`` has 5,278 rows and 6 columns, and ``target`` is 1
        for people who are not arrested again.
    """
    return _fetch("compas", **locals())


@documented(SHARED)
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
    data_home, download_if_missing, source, as_frame, return_X_y_z

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``data`` has 45,211 rows and 46 columns, and ``target`` is 1
        for clients who subscribe.
    """
    return _fetch("bank", **locals())


@documented(SHARED)
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
    data_home, download_if_missing, source, as_frame, return_X_y_z

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``data`` has 30,000 rows and 29 columns, and ``target`` is 1
        for clients who do not default.
    """
    return _fetch("credit_default", **locals())


@documented(SHARED)
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
    data_home, download_if_missing
    source : {"index", "openml"}, default="index"
        The package index that pip is configured with; OpenML does not have this table.
    as_frame, return_X_y_z

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``data`` has 21,791 rows and 14 columns, and ``target`` is 1
        for students who pass.
    """
    return _fetch("law_school", **locals())
