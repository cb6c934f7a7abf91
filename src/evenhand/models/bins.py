"""Bins of a sensitive number, such as age: their edges, their names, and each row's."""

from itertools import pairwise
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import as_series, check_missing

__all__ = ["bin_edges", "bin_names", "in_bins", "numbers_for_bins"]


def in_bins(
    values: Any, bins: Any, weight: Any
) -> tuple[pd.Series, NDArray[np.float64], NDArray[np.float64]]:
    """Name of each row's bin, the attribute with mean 0 and deviation 1, and the edges."""
    series = as_series(values, "sensitive_features")
    check_missing(series, "sensitive_features", "drop those rows")
    value = numbers_for_bins(series)
    edges = bin_edges(value, bins, weight)
    mean = np.average(value, weights=weight)
    deviation = np.sqrt(np.average((value - mean) ** 2, weights=weight))
    names = bin_names(edges)[np.searchsorted(edges, value, side="right")]
    return pd.Series(names), (value - mean) / (deviation or 1.0), edges


def bin_edges(value: NDArray[np.float64], bins: Any, weight: Any = None) -> NDArray[np.float64]:
    """Edges of bins: as given, or, for a number of bins, between bins of equal weight."""
    if np.ndim(bins) == 0:
        shares = np.arange(1, int(bins)) / int(bins)
        order = np.argsort(value)
        mass = np.cumsum(np.ones(len(value)) if weight is None else weight[order])
        # Slightly less, so that rounding of the sum does not move an edge.
        at = np.searchsorted(mass, shares * mass[-1] * (1 - 1e-12))
        edges = np.unique(value[order][np.minimum(at, len(value) - 1)])
        return edges[edges > value.min()]
    edges = np.unique(np.asarray(bins, dtype=np.float64))
    if not np.isfinite(edges).all():
        raise InputError("infinite_edges", bins=Parameter("bins", np.asarray(bins).tolist()))
    return edges


def numbers_for_bins(series: pd.Series) -> NDArray[np.float64]:
    """Values of an attribute that has bins."""
    if not pd.api.types.is_numeric_dtype(series) or pd.api.types.is_bool_dtype(series):
        raise InputError(
            "bins_of_text", bins=Parameter("bins"), groups=Parameter("sensitive_features")
        )
    value = series.to_numpy(dtype=np.float64)
    if not np.isfinite(value).all():
        raise InputError("infinite_group_values", groups=Parameter("sensitive_features"))
    return value


def bin_names(edges: NDArray[np.float64]) -> NDArray[Any]:
    """Names of the bins between edges, such as "below 30" and "30 to 45"."""
    # All digits, because values find their bin by its name when predicting.
    names = [f"below {edges[0]:.15g}"] if len(edges) else ["all"]
    names += [f"{low:.15g} to {high:.15g}" for low, high in pairwise(edges)]
    names += [f"from {edges[-1]:.15g}"] if len(edges) else []
    return np.array(names)
