"""Labels of a given correlation with the sensitive attribute (the paper's synthetic data)."""

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils import check_consistent_length, check_random_state
from sklearn.utils.validation import column_or_1d

from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import group_codes


def _two_values(values: Any, name: str) -> tuple[Any, Any]:
    levels, codes = group_codes(values, name=name)
    if len(levels) != 2:
        raise InputError("not_two_values", name=name, n=len(levels))
    return levels, codes


def unreachable(rho: float, least: float) -> InputError:
    """Make the error for a correlation that replacing labels by groups cannot give."""
    return InputError("correlation_out_of_reach", rho=Parameter("rho", rho), least=least)


def with_correlation(y: Any, z: Any, rho: float, random_state: Any = None) -> Any:
    r"""Labels like ``y`` whose Pearson correlation with ``z`` is ``rho``.

    Each row draws a uniform :math:`U_i`; rows with :math:`U_i < q` take their z as label. q is the
    one whose sample correlation is nearest to ``rho``. The base rate moves, as it must: with it
    fixed, Adult could not pass a correlation of 0.40.

    Parameters
    ----------
    y, z : array-like of shape (n_samples,)
        Two-valued label and sensitive attribute; the larger value of each counts as 1.
    rho : float
        The correlation asked for, from the one that y and z have to 1.
    random_state : int, RandomState or None, default=None
        Seed of the uniforms.

    Returns
    -------
    ndarray, or Series if ``y`` is one
        New labels, of the values of y.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.datasets import load_adult, with_correlation
    >>> X, y, z = load_adult(return_X_y_z=True)
    >>> y_half = with_correlation(y, z, 0.5, random_state=0)
    >>> round(float(np.corrcoef(y_half, z == "Male")[0, 1]), 3)
    0.5
    """
    levels, y_code = _two_values(y, "y")
    _, z_code = _two_values(z, "z")
    check_consistent_length(y_code, z_code)
    n = len(y_code)
    order = np.argsort(check_random_state(random_state).uniform(size=n), kind="stable")

    # Correlation after the first k rows in the order of U took their z, for every k at once.
    y_ordered, z_ordered = y_code[order], z_code[order]
    change = np.concatenate([[0], np.cumsum(z_ordered - y_ordered)])
    change_11 = np.concatenate([[0], np.cumsum(z_ordered * (1 - y_ordered))])
    p_y = (y_code.sum() + change) / n
    p_z = z_code.mean()
    p_11 = ((y_code * z_code).sum() + change_11) / n
    with np.errstate(invalid="ignore", divide="ignore"):  # constant labels on the way
        correlation = (p_11 - p_y * p_z) / np.sqrt(p_y * (1 - p_y) * p_z * (1 - p_z))

    low = float(correlation[0])
    if not low - 1e-12 <= rho <= 1:
        raise unreachable(rho, low)
    k = int(np.nanargmin(np.abs(correlation - rho)))
    new = y_code.copy()
    new[order[:k]] = z_ordered[:k]
    labels = np.asarray(levels)[new]
    if isinstance(y, pd.Series):
        return pd.Series(labels, index=y.index, name=y.name).astype(y.dtype)
    return labels.astype(column_or_1d(y).dtype)
