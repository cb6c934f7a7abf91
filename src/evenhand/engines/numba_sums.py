r"""The sums of :mod:`evenhand.core.row_sums` in one loop over the rows, compiled by numba.

For two labels and adversaries that see powers of the score; anything else is NumPy's.
A row is read once: its score, what follows from it, and its addend to :math:`X^\top R` while it is
in cache. Logarithms are of products of many rows' :math:`1 + e^{-|s|}`, so that a row costs one
exponential for the classifier and one for each adversary.
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba import njit
from scipy.sparse import issparse

from evenhand.core.arrays import FloatArray
from evenhand.core.row_sums import LEAST_SCORE, Game, Recode, Sums

# Rows whose scores are found before their products with X: few enough that X stays in cache.
FEW, CACHED_BYTES = 256, 1 << 18
# Without a check for a division by zero, which would keep rows from being computed side by side.
_fast = njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract", "nsz"})


# exp(-a) = 2^k exp(r) with |r| <= ln(2) / 2, by a polynomial: unlike the library's exponential it
# can be computed for several rows at once. The relative error is below 3e-16.
_LOG2_E, _LN2_HIGH, _LN2_LOW = (
    1.4426950408889634,
    6.93147180369123816490e-01,
    1.90821492927058770002e-10,
)
_MOST = 708.0


@_fast
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


@_fast
def _dot(X: Any, i: int, w: Any) -> Any:
    s = X[i, 0] * w[0]
    for j in range(1, len(w)):
        s += X[i, j] * w[j]
    return s


@_fast
def _classify(
    n: int, s: Any, extra: Any, y: Any, cell: Any, weight: Any, on: Any, e: Any, r: Any, x_r: Any,
    small: Any, counts: Any, bits: Any, power: Any,
) -> None:  # fmt: skip
    """Add a few rows to the classifier's sums, and leave its residuals in r.

    ``small`` gets the loss and the sums of s and s². ``on`` becomes the rows' weights.
    """
    # Short loops over few arrays: of longer ones a compiler cannot see that rows are independent.
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


@_fast
def _ask(n: int, y: Any, cell: Any, on: Any, only: float, n_cells: int, asked: Any) -> None:
    """Set the weights of the rows whose group is guessed."""
    for i in range(n):
        asked[i] = on[i] if cell[i] < n_cells else 0.0
    if only >= 0:
        for i in range(n):
            asked[i] = asked[i] if y[i] == only else 0.0


@_fast
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


@_fast
def _guess_many(
    n: int, s: Any, extra: Any, y: Any, z: Any, cell: Any, on: Any, u: Any, only: float,
    n_cells: int, per_scale: float, top: Any, total: Any, e: Any, asked: Any, r: Any, x_r: Any,
    small: Any, bits: Any, power: Any, wide: Any,
) -> None:  # fmt: skip
    """As :func:`_guess`, of a softmax over many groups; ``wide`` has room for an output each."""
    outputs, m = u.shape
    _ask(n, y, cell, on, only, n_cells, asked)
    if not np.any(u):
        # Before it has moved every group is as likely.
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


@_fast
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
def _residuals(
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


@_fast
def _add_products(X: Any, i: int, R: Any, n_rows: int, acc: Any) -> None:
    """Add R X of a few rows to acc in the precision of X: four rows, two residuals at a time.

    R has zeros behind the last row, up to a multiple of four; there its own last row is read.
    """
    last = i + n_rows - 1
    for k in range(0, acc.shape[0] - 1, 2):
        p, t = acc[k], acc[k + 1]
        for row in range(0, n_rows, 4):
            x0, x1 = X[i + row], X[min(i + row + 1, last)]
            x2, x3 = X[min(i + row + 2, last)], X[min(i + row + 3, last)]
            a0, a1, a2, a3 = R[k, row], R[k, row + 1], R[k, row + 2], R[k, row + 3]
            b0, b1, b2, b3 = (
                R[k + 1, row], R[k + 1, row + 1], R[k + 1, row + 2], R[k + 1, row + 3],
            )  # fmt: skip
            for q in range(len(p)):
                p[q] += a0 * x0[q] + a1 * x1[q] + a2 * x2[q] + a3 * x3[q]
                t[q] += b0 * x0[q] + b1 * x1[q] + b2 * x2[q] + b3 * x3[q]
    if acc.shape[0] % 2:
        k = acc.shape[0] - 1
        p = acc[k]
        for row in range(0, n_rows, 4):
            x0, x1 = X[i + row], X[min(i + row + 1, last)]
            x2, x3 = X[min(i + row + 2, last)], X[min(i + row + 3, last)]
            a0, a1, a2, a3 = R[k, row], R[k, row + 1], R[k, row + 2], R[k, row + 3]
            for q in range(len(p)):
                p[q] += a0 * x0[q] + a1 * x1[q] + a2 * x2[q] + a3 * x3[q]


@njit(cache=True, nogil=True)
def _dense(
    X: Any, start: int, stop: int, extra: Any, y: Any, z: Any, cell: Any, weight: Any, w: Any,
    w_last: float, u: Any, only: Any, prices: Any, n_cells: int, per_scale: float, x_r: Any,
    small: Any, counts: Any, s: Any, r: Any, work: Any, bits: Any, wide: Any, R: Any, acc: Any,
) -> None:  # fmt: skip
    """Add up rows ``start`` to ``stop`` of a dense table.

    What comes behind ``counts`` is room to work in: made here it would take as long to compile as
    the sums themselves.
    """
    K, n = u.shape[0], len(w)
    few = max(min(CACHED_BYTES // (n * X.itemsize + 1), FEW), 32)
    for i in range(start, stop, few):
        j = min(i + few, stop)
        size = j - i
        for row in range(i, j):
            s[row - i] = _dot(X, row, w) + w_last * extra[row]
        _residuals(
            i, j, s, extra, y, z, cell, weight, u, only, prices, n_cells, per_scale, x_r, small,
            counts, r, work, bits, wide,
        )  # fmt: skip
        for k in range(1 + K):
            for row in range(FEW):
                R[k, row] = r[k, row] if row < size else 0
            for q in range(n):
                acc[k, q] = 0
        _add_products(X, i, R, size, acc)
        for k in range(1 + K):
            for q in range(n):
                x_r[k, q] += acc[k, q]


@njit(cache=True, nogil=True)
def _sparse(
    data: Any, indices: Any, indptr: Any, start: int, stop: int, extra: Any, y: Any, z: Any,
    cell: Any, weight: Any, w: Any, w_last: float, u: Any, only: Any, prices: Any, n_cells: int,
    per_scale: float, x_r: Any, small: Any, counts: Any, s: Any, r: Any, work: Any, bits: Any,
    wide: Any, acc: Any,
) -> None:  # fmt: skip
    """Add up rows ``start`` to ``stop`` of a CSR matrix."""
    K, n = u.shape[0], len(w)
    for j in range(n):
        for k in range(1 + K):
            acc[j, k] = 0.0
    # Indices without a sign: numba need not ask whether they count from the end.
    for i in range(start, stop, FEW):
        j = min(i + FEW, stop)
        for row in range(i, j):
            total = 0.0
            for p in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
                total += data[p] * w[np.uintp(indices[p])]
            s[row - i] = total + w_last * extra[row]
        _residuals(
            i, j, s, extra, y, z, cell, weight, u, only, prices, n_cells, per_scale, x_r, small,
            counts, r, work, bits, wide,
        )  # fmt: skip
        for row in range(i, j):
            first, second = r[0, row - i], r[1, row - i]
            for p in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
                q, value = np.uintp(indices[p]), data[p]
                acc[q, 0] += first * value
                acc[q, 1] += second * value
        for k in range(2, 1 + K):
            for row in range(i, j):
                for p in range(np.uintp(indptr[row]), np.uintp(indptr[row + 1])):
                    acc[np.uintp(indices[p]), k] += r[k, row - i] * data[p]
    for k in range(1 + K):
        for j in range(n):
            x_r[k, j] += acc[j, k]


Share = Callable[..., Any]
"""Calls a function with each of a sequence, on whatever cores."""


class Loops:
    """The loops over a table's rows, with room to work in.

    Parameters
    ----------
    X : array or CSR matrix
        The inputs.
    columns : sequence
        A block's columns beside X, for all rows.
    sides : int
        How many residuals there are beside the classifier's.
    outputs, features : int
        Outputs and features of each adversary.
    n_cells : int
        Cells of group × label.
    """

    def __init__(
        self, X: Any, columns: Sequence[Any], sides: int, outputs: int, features: int, n_cells: int
    ) -> None:
        extra, y, z, cell, weight = columns
        self.columns = extra, y, z, cell, np.zeros(0) if weight is None else weight
        self.dtype, n, K = X.dtype, X.shape[1], 1 + sides
        self.loop: Any = _sparse if issparse(X) else _dense
        self.inputs = (X.data, X.indices, X.indptr) if issparse(X) else (np.asarray(X),)
        shapes: list[Any] = [(FEW, float), ((K, FEW), float), ((5, FEW), float), (FEW, np.int64)]
        shapes += [((outputs, FEW), float)]
        shapes += [((n, K), float)] if issparse(X) else [((K, FEW), X.dtype), ((K, n), X.dtype)]
        self.shapes = shapes
        self.totals = (K, n + 1), (K, 1 + (outputs + 2) * features), (2 * n_cells,)
        self.rooms: dict[int, list[FloatArray]] = {}  # made once for each range of rows

    def __call__(
        self, share: Share, edges: Sequence[int], w: FloatArray, settings: tuple[Any, ...]
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Add up the rows between ``edges``: residuals times X, small sums, and counts."""
        ranges = range(len(edges) - 1)
        totals = [np.zeros((len(ranges), *shape)) for shape in self.totals]
        weights = np.ascontiguousarray(w[:-1], dtype=self.dtype)

        def task(i: int) -> None:
            if i not in self.rooms:
                self.rooms[i] = [np.zeros(shape, dtype) for shape, dtype in self.shapes]
            where = edges[i], edges[i + 1], *self.columns, weights, float(w[-1])
            self.loop(*self.inputs, *where, *settings, *(t[i] for t in totals), *self.rooms[i])

        share(task, ranges)
        x_r, small, counts = (v.sum(axis=0) for v in totals)
        return x_r, small, counts


def compiled_sums(
    X: Any, columns: Sequence[Any], game: Game, recode: Recode | None
) -> Callable[[Share, Sequence[int], FloatArray, FloatArray, float], Sums]:
    """Make the function that sums the rows between ``edges`` at (w, u) with a scale."""
    K, degree, outputs = len(game.notions), game.notions[0].degree, game.guess.n_outputs
    m = int(degree or 0) + 1
    only = np.array([p.labels[0] if len(p.labels) == 1 else -1 for p in game.notions], np.float64)
    extra, y, z, cell, weight = columns
    if recode is not None:
        y, size = (table[cell] for table in recode)
        weight = size if weight is None else size * weight
    loops = Loops(X, (extra, y, z, cell, weight), K, outputs, m, 2 * game.n_groups_all)
    hankel, end = np.add.outer(np.arange(m), np.arange(m)), 2 + outputs * m

    def sums(
        share: Share, edges: Sequence[int], w: FloatArray, u: FloatArray, scale: float
    ) -> Sums:
        settings = u.reshape(K, outputs, m), only, np.zeros(0), 2 * game.groups, 1.0 / scale
        x_r, small, counts = loops(share, edges, w, settings)
        return Sums(
            loss_c=small[0, 0],
            loss_a=small[1:, 0].copy(),
            x_r=x_r,
            phi_r=small[1:, 2:end].ravel(),
            phi_phi=small[1:, end:][:, hankel].ravel(),
            score=np.concatenate([small[0, 1:3], small[1:, 1]]),
            counts=counts,
            soft=np.zeros(0),
        )

    return sums


def compiled_prices(
    X: Any, columns: Sequence[Any], n_cells: int
) -> Callable[[Share, Sequence[int], FloatArray, FloatArray], FloatArray]:
    """Make the function that sums the rows as :func:`~evenhand.core.row_sums.penalized_sums`."""
    loops = Loops(X, columns, 1, 1, 1, n_cells)
    nobody = np.zeros((1, 1, 1)), np.zeros(1)

    def sums(share: Share, edges: Sequence[int], w: FloatArray, prices: FloatArray) -> FloatArray:
        settings = *nobody, np.ascontiguousarray(prices), 0, 1.0
        x_r, small, counts = loops(share, edges, w, settings)
        return np.concatenate([small[:, 0], counts, x_r.ravel()])

    return sums
