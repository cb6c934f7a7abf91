"""What a few rows add to the sums of :mod:`evenhand.core.row_sums`, compiled by numba.

Short loops over few arrays: of longer ones a compiler cannot see that rows are independent.
"""

from typing import Any

import numpy as np
from numba import njit

from evenhand.core.row_sums import LEAST_SCORE

__all__ = ["fast", "residuals"]

# Without a check for a division by zero, which would keep rows from being computed side by side.
fast = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})

# exp(-a) = 2^k exp(r) with |r| <= ln(2) / 2, by a polynomial: unlike the library's exponential it
# can be computed for several rows at once. The relative error is below 3e-16.
_LOG2_E, _LN2_HIGH, _LN2_LOW = (
    1.4426950408889634,
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)
_MOST = 708.0


@fast
def _exp_minus_abs(s: Any, n: int, e: Any, bits: Any, power: Any) -> None:
    """Set e to exp(-abs(s)); ``power`` is ``bits`` seen as floats, to be 2^k."""
    for i in range(n):
        x = -min(abs(s[i]), _MOST)
        k = np.floor(x * _LOG2_E + 0.5)
        r = x - k * _LN2_HIGH - k * _LN2_LOW
        p = 1.0 / 479001600
        p = p * r + 1.0 / 39916800
        p = p * r + 1.0 / 3628800
        p = p * r + 1.0 / 362880
        p = p * r + 1.0 / 40320
        p = p * r + 1.0 / 5040
        p = p * r + 1.0 / 720
        p = p * r + 1.0 / 120
        p = p * r + 1.0 / 24
        p = p * r + 1.0 / 6
        p = p * r + 0.5
        p = p * r + 1.0
        e[i] = p * r + 1.0
        bits[i] = (np.int64(k) + 1023) << 52
    for i in range(n):
        e[i] *= power[i]


@fast
def _classify(
    n: int, s: Any, extra: Any, y: Any, cell: Any, weight: Any, on: Any, e: Any, r: Any, x_r: Any,
    small: Any, counts: Any, bits: Any, power: Any,
) -> None:  # fmt: skip
    """Add a few rows to the classifier's sums, and leave its residuals in r.

    ``small`` gets the loss and the sums of s and s². ``on`` becomes the rows' weights.
    """
    weighted = len(weight) > 0
    for i in range(n):
        s[i] = max(s[i], LEAST_SCORE)
    for i in range(n):
        on[i] = weight[i] if weighted else 1.0
    _exp_minus_abs(s, n, e, bits, power)
    for i in range(n):
        f = (1.0 if s[i] >= 0 else e[i]) / (1.0 + e[i])
        r[i] = on[i] * (f - y[i])
    loss, product, first, second, last = 0.0, 1.0, 0.0, 0.0, 0.0
    for i in range(n):
        last += r[i] * extra[i]
        loss += on[i] * (max(-s[i], 0.0) + (1.0 - y[i]) * s[i])
        first += on[i] * s[i]
        second += on[i] * s[i] * s[i]
    if weighted:
        for i in range(n):
            loss += on[i] * np.log(1.0 + e[i])
    else:
        for i in range(n):
            product *= 1.0 + e[i]
        loss += np.log(product)
    for i in range(n):
        counts[np.uintp(2 * cell[i] + (1 if s[i] > 0 else 0))] += on[i]
    small[0] += loss
    small[1] += first
    small[2] += second
    x_r[-1] += last


@fast
def _ask(n: int, y: Any, cell: Any, on: Any, only: float, n_cells: int, asked: Any) -> None:
    """Set the weights of the rows whose group is guessed."""
    for i in range(n):
        asked[i] = on[i] if cell[i] < n_cells else 0.0
    if only >= 0:
        for i in range(n):
            asked[i] = asked[i] if y[i] == only else 0.0


@fast
def _guess(
    n: int, s: Any, extra: Any, y: Any, z: Any, cell: Any, on: Any, weighted: bool, u: Any,
    only: float, n_cells: int, per_scale: float, guess: Any, slope: Any, e: Any, asked: Any, r: Any,
    x_r: Any, small: Any, bits: Any, power: Any,
) -> None:  # fmt: skip
    """Add a few rows to one adversary's sums, and leave its residuals in r.

    ``small`` gets the loss, the squared slope, the sums of residuals times powers of s / scale, and
    the sums of the powers. The first ``n_cells`` cells are of compared groups.
    """
    m = len(u)
    _ask(n, y, cell, on, only, n_cells, asked)
    for i in range(n):
        guess[i], slope[i] = u[m - 1], 0.0
    for a in range(m - 2, -1, -1):
        constant = u[a]
        for i in range(n):
            v = s[i] * per_scale
            slope[i] = slope[i] * v + guess[i]
            guess[i] = guess[i] * v + constant
    _exp_minus_abs(guess, n, e, bits, power)
    loss, product, square, last = 0.0, 1.0, 0.0, 0.0
    for i in range(n):
        loss += asked[i] * (max(-guess[i], 0.0) + (1.0 - z[i]) * guess[i])
    if weighted:
        for i in range(n):
            loss += asked[i] * np.log(1.0 + e[i])
    else:
        for i in range(n):
            product *= 1.0 + asked[i] * e[i]
        loss += np.log(product)
    for i in range(n):
        g = (1.0 if guess[i] >= 0 else e[i]) / (1.0 + e[i])
        guess[i] = asked[i] * (g - z[i])
    for i in range(n):
        r[i] = guess[i] * slope[i] * per_scale
    for i in range(n):
        steep = slope[i] * per_scale
        square += asked[i] * steep * steep
        last += r[i] * extra[i]
    small[0] += loss
    small[1] += square
    for i in range(n):
        e[i] = 1.0
    for a in range(2 * m - 1):
        moment, inner = 0.0, 0.0
        for i in range(n):
            moment += asked[i] * e[i]
            inner += guess[i] * e[i]
            e[i] *= s[i] * per_scale
        small[2 + m + a] += moment
        if a < m:
            small[2 + a] += inner
    x_r[-1] += last


@fast
def _guess_alike(
    n: int, s: Any, z: Any, per_scale: float, outputs: int, m: int, e: Any, asked: Any, r: Any,
    small: Any,
) -> None:  # fmt: skip
    """As :func:`_guess_many` before the adversary has moved: every group is as likely."""
    for i in range(n):
        e[i], r[i] = 1.0, 0.0
        small[0] += asked[i] * np.log(1.0 + outputs)
    for a in range(2 * m - 1):
        moment = 0.0
        for i in range(n):
            moment += asked[i] * e[i]
            own = int(z[i])
            if a < m and 0 < own <= outputs:
                small[2 + (own - 1) * m + a] -= asked[i] * e[i]
            e[i] *= s[i] * per_scale
        small[2 + outputs * m + a] += moment
        for g in range(outputs if a < m else 0):
            small[2 + g * m + a] += moment / (1.0 + outputs)


@fast
def _guess_many(
    n: int, s: Any, extra: Any, y: Any, z: Any, cell: Any, on: Any, u: Any, only: float,
    n_cells: int, per_scale: float, top: Any, total: Any, e: Any, asked: Any, r: Any, x_r: Any,
    small: Any, bits: Any, power: Any, wide: Any,
) -> None:  # fmt: skip
    """As :func:`_guess`, of a softmax over many groups; ``wide`` has room for an output each."""
    outputs, m = u.shape
    _ask(n, y, cell, on, only, n_cells, asked)
    if not np.any(u):
        _guess_alike(n, s, z, per_scale, outputs, m, e, asked, r, small)
        return
    for i in range(n):
        top[i], total[i] = 0.0, 0.0
    for g in range(outputs):
        for i in range(n):
            wide[g, i] = u[g, m - 1]
        for a in range(m - 2, -1, -1):
            constant = u[g, a]
            for i in range(n):
                wide[g, i] = wide[g, i] * (s[i] * per_scale) + constant
        for i in range(n):
            top[i] = max(top[i], wide[g, i])
    loss, square, last = 0.0, 0.0, 0.0
    for i in range(n):
        own = int(z[i])
        loss += asked[i] * (top[i] - (wide[own - 1, i] if 0 < own <= outputs else 0.0))
    for g in range(outputs):
        for i in range(n):
            r[i] = top[i] - wide[g, i]
        _exp_minus_abs(r, n, e, bits, power)
        for i in range(n):
            total[i] += e[i]
            wide[g, i] = e[i]
    _exp_minus_abs(top, n, e, bits, power)
    for i in range(n):
        total[i] += e[i]
        loss += asked[i] * np.log(total[i])
        total[i] = asked[i] / total[i]
        r[i] = 0.0
    for g in range(outputs):
        for i in range(n):
            wide[g, i] *= total[i]
    for i in range(n):
        own = int(z[i])
        if 0 < own <= outputs:
            wide[own - 1, i] -= asked[i]
    for i in range(n):
        e[i] = 1.0
    for a in range(2 * m - 1):
        if a < m:
            for g in range(outputs):
                inner = 0.0
                for i in range(n):
                    inner += wide[g, i] * e[i]
                small[2 + g * m + a] += inner
        if a + 1 < m:
            for g in range(outputs):
                rise = (a + 1) * u[g, a + 1] * per_scale
                for i in range(n):
                    r[i] += wide[g, i] * rise * e[i]
        moment = 0.0
        for i in range(n):
            moment += asked[i] * e[i]
            e[i] *= s[i] * per_scale
        small[2 + outputs * m + a] += moment
    for i in range(n):
        last += r[i] * extra[i]
    # The squared slopes of all outputs, by the products of two features' weights.
    for a in range(1, m):
        for b in range(1, m):
            both = 0.0
            for g in range(outputs):
                both += u[g, a] * u[g, b]
            both *= a * b * per_scale * per_scale
            for i in range(n):
                square += both * asked[i] * (s[i] * per_scale) ** (a + b - 2)
    small[0] += loss
    small[1] += square
    x_r[-1] += last


@fast
def _price(
    n: int, s: Any, extra: Any, cell: Any, on: Any, prices: Any, e: Any, r: Any, x_r: Any,
    small: Any,
) -> None:  # fmt: skip
    """Add a price per cell times the probabilities; r gets its derivatives in the scores."""
    value, last = 0.0, 0.0
    for i in range(n):
        f = (1.0 if s[i] >= 0 else e[i]) / (1.0 + e[i])
        priced = on[i] * prices[np.uintp(cell[i])] * f
        value += priced
        r[i] = priced * (1.0 - f)
        last += r[i] * extra[i]
    small[0] += value
    x_r[-1] += last


@njit(cache=True, nogil=True)
def residuals(
    i: int, j: int, s: Any, extra: Any, y: Any, z: Any, cell: Any, weight: Any, u: Any, only: Any,
    prices: Any, n_cells: int, per_scale: float, x_r: Any, small: Any, counts: Any, r: Any,
    work: Any, bits: Any, wide: Any,
) -> None:  # fmt: skip
    """Add rows i to j to all sums, from their scores, and leave their residuals in r."""
    on, e, guess, slope, asked = work[0], work[1], work[2], work[3], work[4]
    power, weighted = bits.view(np.float64), len(weight) > 0
    _classify(
        j - i, s, extra[i:j], y[i:j], cell[i:j], weight[i:j], on, e, r[0], x_r[0], small[0], counts,
        bits, power,
    )  # fmt: skip
    if len(prices):
        _price(j - i, s, extra[i:j], cell[i:j], on, prices, e, r[1], x_r[1], small[1])
        return
    for k in range(u.shape[0]):
        if u.shape[1] > 1:
            _guess_many(
                j - i, s, extra[i:j], y[i:j], z[i:j], cell[i:j], on, u[k], only[k], n_cells,
                per_scale, guess, slope, e, asked, r[1 + k], x_r[1 + k], small[1 + k], bits, power,
                wide,
            )  # fmt: skip
            continue
        _guess(
            j - i, s, extra[i:j], y[i:j], z[i:j], cell[i:j], on, weighted, u[k, 0], only[k],
            n_cells, per_scale, guess, slope, e, asked, r[1 + k], x_r[1 + k], small[1 + k], bits,
            power,
        )  # fmt: skip
