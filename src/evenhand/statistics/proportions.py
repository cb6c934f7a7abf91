"""Intervals of one probability, from hits among trials."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import betaincinv

from evenhand.core.arrays import FloatArray

__all__ = ["clopper_pearson", "wilson_interval"]


def clopper_pearson(
    hits: ArrayLike, trials: ArrayLike, error: float
) -> tuple[FloatArray, FloatArray]:
    """One-sided lower and upper confidence bounds of a probability, each wrong at most ``error``.

    Parameters
    ----------
    hits, trials : array-like
        Successes and trials. NaN where there are no trials.
    error : float
        Probability with which a bound may be on the wrong side.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Lower and upper bounds.

    Examples
    --------
    >>> from evenhand.statistics.proportions import clopper_pearson
    >>> [round(float(bound), 3) for bound in clopper_pearson(36, 100, 0.025)]
    [0.266, 0.462]
    """
    k, n = np.broadcast_arrays(np.asarray(hits, dtype=float), np.asarray(trials, dtype=float))
    some = n > 0
    lower, upper = (np.where(some, bound, np.nan) for bound in (0.0, 1.0))
    inside = some & (k > 0)
    lower[inside] = betaincinv(k[inside], n[inside] - k[inside] + 1, error)
    inside = some & (k < n)
    upper[inside] = 1 - betaincinv(n[inside] - k[inside], k[inside] + 1, error)
    return lower, upper


def wilson_interval(hits: ArrayLike, trials: ArrayLike, z: float) -> tuple[FloatArray, FloatArray]:
    """Wilson's interval of a share, z standard errors to either side; NaN without trials.

    Approximate, for choosing among many points at once; what is shown is exact.
    """
    n = np.asarray(trials, dtype=np.float64)
    n = np.where(n > 0, n, np.nan)
    p, z2 = np.asarray(hits, dtype=np.float64) / n, z * z
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = z / (1 + z2 / n) * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # Rounding must not put the share itself outside.
    return np.clip(middle - half, 0.0, p), np.clip(middle + half, p, 1.0)
