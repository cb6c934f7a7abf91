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
from evenhand.core.row_sums import Game, Recode, Sums
from evenhand.engines.numba_rows import fast, residuals

# Rows whose scores are found before their products with X: few enough that X stays in cache.
FEW, CACHED_BYTES = 256, 1 << 18


@fast
def _dot(X: Any, i: int, w: Any) -> Any:
    s = X[i, 0] * w[0]
    for j in range(1, len(w)):
        s += X[i, j] * w[j]
    return s


@fast
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
        residuals(
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
        residuals(
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
