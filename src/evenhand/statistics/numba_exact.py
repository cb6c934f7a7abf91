"""The loops of :mod:`evenhand.statistics.exact`, compiled by numba."""

from typing import Any

import numpy as np
from numba import njit
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray
from evenhand.statistics import exact

__all__ = ["chances", "region"]

_fast = njit(cache=True, nogil=True, error_model="numpy")
_score = _fast(exact.score)
TAIL, TINY = exact.TAIL, exact.TINY
_DEPTH = -np.log(TAIL)


@_fast
def region(
    trials: Any, limit: float, difference: bool, ends: Any, order: float
) -> NDArray[np.intp]:
    """As :func:`evenhand.statistics.exact.region`."""
    b_j, b_k = trials
    least = np.empty(ends[1] - ends[0] + 1, dtype=np.intp)
    low, high = -1, b_j + 1
    while high - low > 1:
        middle = (low + high) // 2
        if _score(float(middle), float(ends[1]), b_j, b_k, limit, difference) >= order:
            high = middle
        else:
            low = middle
    for i in range(len(least) - 1, -1, -1):
        a_k = float(ends[0] + i)
        while high > 0 and _score(high - 1.0, a_k, b_j, b_k, limit, difference) >= order:
            high -= 1
        least[i] = high
    return least


@_fast
def _bulk(p: float, trials: int) -> tuple[int, int]:
    away = _DEPTH / 3 + np.sqrt(_DEPTH * _DEPTH / 9 + 2 * _DEPTH * trials * p * (1 - p))
    return max(int(trials * p - away), 0), min(int(trials * p + away) + 1, trials)


@_fast
def chances(p_j: Any, p_k: Any, trials: Any, least: Any, start: int) -> FloatArray:
    """As :func:`evenhand.statistics.exact.chances`; weights follow from each other, downwards."""
    b_j, b_k = trials
    out = np.empty(len(p_j))
    for i in range(len(p_j)):
        p, q = min(max(p_j[i], TINY), 1 - TINY), min(max(p_k[i], TINY), 1 - TINY)
        low_j, x = _bulk(p, b_j)
        low_k, high_k = _bulk(q, b_k)
        down_j, down_k = (1 - p) / p, (1 - q) / q
        # So small that what they grow to, where a probability is next to 0, does not overflow.
        weight_j, weight_k = 1e-150, 1e-150
        above, total, hit = 0.0, 0.0, 0.0
        for y in range(high_k, low_k - 1, -1):
            # Above the window of the table nothing is known but that it is less than TAIL.
            if y - start < len(least):
                stop = max(least[max(y - start, 0)], low_j)
                while x >= stop:
                    above += weight_j
                    weight_j *= x / (b_j - x + 1.0) * down_j
                    x -= 1
            total += weight_k
            hit += weight_k * above
            weight_k *= y / (b_k - y + 1.0) * down_k
        while x >= low_j:
            above += weight_j
            weight_j *= x / (b_j - x + 1.0) * down_j
            x -= 1
        out[i] = hit / total / above + 4 * TAIL
    return out
