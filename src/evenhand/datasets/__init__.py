"""Data to try evenhand on: tables with their records, made data, labels of a chosen correlation.

What belongs here loads, fetches or makes a table whose columns and favourable label are known. What
does not: reading anybody's own table (:mod:`evenhand.tables`).
"""

from evenhand.datasets._catalogue import DATASETS
from evenhand.datasets._correlation import with_correlation
from evenhand.datasets._loaders import (
    fetch_arrests,
    fetch_bank,
    fetch_communities,
    fetch_compas,
    fetch_credit_default,
    fetch_law_school,
    fetch_mortgages,
    load_adult,
    load_german,
)
from evenhand.datasets._records import Archive, Dataset, Sensitive
from evenhand.datasets._split import Split, encoded_split, stratified_rows
from evenhand.datasets._synthetic import census_chunks, make_census, make_counterexample

__all__ = [
    "DATASETS",
    "Archive",
    "Dataset",
    "Sensitive",
    "Split",
    "census_chunks",
    "encoded_split",
    "fetch_arrests",
    "fetch_bank",
    "fetch_communities",
    "fetch_compas",
    "fetch_credit_default",
    "fetch_law_school",
    "fetch_mortgages",
    "load_adult",
    "load_german",
    "make_census",
    "make_counterexample",
    "stratified_rows",
    "with_correlation",
]
