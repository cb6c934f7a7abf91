"""Data to try evenhand on: tables with their records, made data, labels of a chosen correlation."""

from evenhand.datasets._correlation import with_correlation
from evenhand.datasets._records import DATASETS, Archive, Dataset, Sensitive
from evenhand.datasets._split import Split, encoded_split, stratified_rows
from evenhand.datasets._synthetic import census_chunks, make_census, make_counterexample
from evenhand.datasets._tables import (
    fetch_bank,
    fetch_compas,
    fetch_credit_default,
    fetch_law_school,
    load_adult,
    load_german,
)

__all__ = [
    "DATASETS",
    "Archive",
    "Dataset",
    "Sensitive",
    "Split",
    "census_chunks",
    "encoded_split",
    "fetch_bank",
    "fetch_compas",
    "fetch_credit_default",
    "fetch_law_school",
    "load_adult",
    "load_german",
    "make_census",
    "make_counterexample",
    "stratified_rows",
    "with_correlation",
]
