"""What an archive's file, or OpenML, holds of each dataset, to the table that evenhand knows."""

from collections.abc import Callable
from io import BytesIO
from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets._catalogue import DATASETS

FromArchive = Callable[[bytes], pd.DataFrame]
FromOpenML = Callable[[pd.DataFrame], pd.DataFrame]


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


def _read_arrests(content: bytes) -> pd.DataFrame:
    # The member is itself a zip with one file.
    return pd.read_csv(BytesIO(content), compression="zip", keep_default_na=False)


def _read_communities(content: bytes) -> pd.DataFrame:
    return pd.read_csv(BytesIO(content), keep_default_na=False)


def _read_mortgages(content: bytes) -> pd.DataFrame:
    table = pd.read_csv(BytesIO(content), compression="bz2")
    table["race"] = table["white"].map({0: "Black or Hispanic", 1: "White"})
    table = table[DATASETS["mortgages"].columns].dropna()
    numbers = table.select_dtypes("number").columns
    table[numbers] = table[numbers].astype(float).round(6)
    return table


READERS: dict[str, tuple[FromArchive, FromOpenML | None]] = {
    "compas": (_read_compas, _compas_from_openml),
    "bank": (_read_bank, _bank_from_openml),
    "credit_default": (_read_credit_default, _credit_default_from_openml),
    "law_school": (_read_law_school, None),
    "arrests": (_read_arrests, None),
    "communities": (_read_communities, None),
    "mortgages": (_read_mortgages, None),
}
"""Readers by a dataset's name; OpenML does not have every table."""
