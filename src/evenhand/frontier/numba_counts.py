"""The loop over rows of histograms, compiled by numba."""

from typing import Any

import numpy as np
from numba import njit

__all__ = ["count_bins"]


@njit(cache=True, nogil=True, error_model="numpy")
def count_bins(
    scores: Any, extra: Any, last_weights: Any, cell: Any, weight: Any, middles: Any,
    per_units: Any, below: Any, counts: Any,
) -> None:  # fmt: skip
    """Add rows to histograms: for each column of scores, per cell and number of cuts below.

    Scores lack the extra column's term. ``below`` says for each bin of
    :func:`evenhand.frontier.histograms.bin_of`, a row for each column, how many cuts are below it.
    """
    last, half = below.shape[1] - 1, below.shape[1] / 2
    for q in range(scores.shape[1]):
        for i in range(scores.shape[0]):
            t = (scores[i, q] + extra[i] * last_weights[q] - middles[q]) * per_units[q]
            position = (t / (1 + abs(t)) + 1) * half
            # Comparisons with NaN are false.
            at = np.uintp(min(position, last)) if position > 0 else np.uintp(0)
            w = weight[i] if len(weight) else 1.0
            counts[q, np.uintp(cell[i]), np.uintp(below[q, at])] += w
