"""The loaders: a record and its table make inputs, labels and groups."""

from collections.abc import Callable
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
    if not columns:
        return pd.DataFrame(index=table.index)
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


def _zafar(table: pd.DataFrame, numbers: list[str]) -> pd.DataFrame:
    """Make the inputs of Zafar's experiments: few levels of education and country, and no race."""
    school = dict.fromkeys(["Preschool", "1st-4th", "5th-6th", "7th-8th"], "prim-middle-school")
    school |= dict.fromkeys(["9th", "10th", "11th", "12th"], "high-school")
    table = table.assign(education=table["education"].replace(school))
    names = ["workclass", "education", "marital-status", "occupation", "relationship"]
    X = pd.concat([table[numbers].astype(float), _one_hot(table, names, drop=False)], axis=1)
    X["native-country=United-States"] = (table["native-country"] == "United-States").astype(float)
    return X


@documented(SHARED)
def load_adult(
    encoding: Literal["full", "coarse", "zafar"] = "full",
    return_X_y_z: bool = False,
    *,
    sensitive_as_input: bool | None = None,
    as_frame: bool = True,
) -> Any:
    """Adult: does a person earn more than 50,000 dollars a year? Sensitive attribute: sex.

    All 48,842 rows are inside the package; nothing is downloaded.

    Parameters
    ----------
    encoding : {"full", "coarse", "zafar"}, default="full"
        ``"full"``: the 45,222 rows without missing values, five numbers and six one-hot categorical
        columns (85 columns). ``"coarse"``: all rows as 18 binary columns: race, sex, age in
        decades, education in bins. ``"zafar"``: the rows of ``"full"`` as in the experiments of
        Zafar et al.: no race, education in ten levels, country as one column (50 columns).
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
    if encoding not in ("full", "coarse", "zafar"):
        raise InputError("unknown_table_encoding", encoding=Parameter("encoding", encoding))
    record = DATASETS["adult"]
    table = _embedded("adult").rename(columns={"income-per-year": record.label})
    if encoding != "coarse":
        table = table[~(table == "?").any(axis=1)].reset_index(drop=True)
        numbers = list(record.numbers)
        one_hot = _one_hot(table, list(record.categories), drop=False)
        X = pd.concat([table[numbers].astype(float), one_hot], axis=1)
        X = _zafar(table, numbers) if encoding == "zafar" else X
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


def _fetcher(name: str) -> Callable[..., Any]:
    """Make the function that fetches a dataset; its documentation is the record's."""
    record = DATASETS[name]

    def fetch(
        *,
        sensitive: str | None = None,
        sensitive_as_input: bool = False,
        data_home: Any = None,
        download_if_missing: bool = True,
        source: Literal["index", "openml"] = "index",
        as_frame: bool = True,
        return_X_y_z: bool = False,
    ) -> Any:
        record = DATASETS[name]
        record.attribute(sensitive)  # a misspelt one is found before the network is asked
        table = fetch_table(record, data_home, download_if_missing, source)
        return _from_record(
            record,
            table,
            sensitive=sensitive,
            sensitive_as_input=sensitive_as_input,
            as_frame=as_frame,
            return_X_y_z=return_X_y_z,
        )

    attributes = " or ".join(f'``"{s.name}"`` ({", ".join(s.groups)})' for s in record.sensitive)
    fetch.__name__ = fetch.__qualname__ = record.loader
    fetch.__doc__ = f"""{record.title}: {record.rows:,} rows, fetched once.

    {record.what}

    Parameters
    ----------
    sensitive : str, optional
        The sensitive attribute: {attributes}; the first by default.
    sensitive_as_input : bool, default=False
        Whether it is also an input.
    data_home, download_if_missing, source, as_frame, return_X_y_z

    Returns
    -------
    Bunch
        As :func:`load_german`'s; ``target`` is 1 for this outcome: {record.outcome}.
    """
    return documented(SHARED)(fetch)


fetch_arrests = _fetcher("arrests")
fetch_bank = _fetcher("bank")
fetch_communities = _fetcher("communities")
fetch_compas = _fetcher("compas")
fetch_credit_default = _fetcher("credit_default")
fetch_law_school = _fetcher("law_school")
fetch_mortgages = _fetcher("mortgages")
