"""Margins against their spread over the seeds."""

from typing import Any

import pandas as pd


def _spread(margins: pd.DataFrame) -> tuple[pd.Series, pd.Series]:
    return margins.mean(axis=1), margins.std(axis=1, ddof=1).fillna(0.0)


def _undecided(mean: pd.Series, spread: pd.Series) -> pd.Series:
    return mean.abs() < spread


def against_spread(margins: pd.DataFrame) -> bool | None:
    """Whether margins, a row for each case and a column for each seed, are all at least 0.

    A mean margin that is smaller, in size, than the standard deviation over the seeds decides
    nothing: None, unless another case fails for certain.
    """
    mean, spread = _spread(margins)
    unsure = _undecided(mean, spread)
    if ((mean < 0) & ~unsure).any():
        return False
    return None if unsure.any() else True


def deciding(margins: pd.DataFrame) -> Any:
    """Name the case that :func:`against_spread` rests on, the least one of its kind.

    It is one that fails for certain, else one that is undecided, else the one nearest to 0.
    """
    mean, spread = _spread(margins)
    unsure = _undecided(mean, spread)
    for cases in ((mean < 0) & ~unsure, unsure):
        if cases.any():
            return mean[cases].idxmin()
    return mean.idxmin()


def with_spread(values: pd.DataFrame, case: Any = None) -> str:
    """Write the mean of a case's values and their standard deviation over the seeds.

    By default the case is the one that decides whether they are at least 0.
    """
    mean, spread = _spread(values)
    case = deciding(values) if case is None else case
    return f"{mean[case]:+.3f} ± {spread[case]:.3f}"
