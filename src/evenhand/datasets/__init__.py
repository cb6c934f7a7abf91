"""Data to try evenhand on, and labels of a chosen correlation with the sensitive attribute."""

from evenhand.datasets._adult import load_adult
from evenhand.datasets._correlation import with_correlation
from evenhand.datasets._split import Split, encoded_split

__all__ = ["Split", "encoded_split", "load_adult", "with_correlation"]
