"""The sums of :func:`evenhand.rowmath.row_sums` in one kernel that reads a table on a GPU once.

For two labels, two groups, and one adversary that sees powers of the score up to the square.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl
from numpy.typing import NDArray

from evenhand.rowmath import Game, Sums

__all__ = ["fused_sums", "is_fusible"]

FloatArray = NDArray[Any]

# Rows in a tile and tiles of a program; found by trial on an H200.
ROWS, TILES, WARPS, STAGES = 64, 32, 2, 4
MOST_COLUMNS = 1024
# What a program stores beside the products with X.
N_SMALL = 24


@triton.jit
def _kernel(
    X, cells, extra, weight, W, U, products, small, n_rows, w_last, per_scale,
    n_columns: tl.constexpr, only: tl.constexpr, others: tl.constexpr, has_extra: tl.constexpr,
    weighted: tl.constexpr, rows: tl.constexpr, columns: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    program = tl.program_id(0)
    column = tl.arange(0, columns)
    live = column < n_columns
    w = tl.load(W + column, mask=live, other=0.0)
    first = w * 0.0
    second = w * 0.0
    u0 = tl.load(U)
    u1 = tl.load(U + 1)
    u2 = tl.load(U + 2)
    zero = u0 * 0.0
    loss = zero
    loss_a = zero
    s1 = zero
    s2 = zero
    square = zero
    last = zero
    last_a = zero
    r0 = zero
    r1 = zero
    r2 = zero
    m0 = zero
    m1 = zero
    m2 = zero
    m3 = zero
    m4 = zero
    p0 = zero
    p1 = zero
    p2 = zero
    p3 = zero
    p4 = zero
    p5 = zero
    start = program * tiles * rows
    for t in range(tiles):
        row = start + t * rows + tl.arange(0, rows)
        there = row < n_rows
        x = tl.load(
            X + row.to(tl.int64)[:, None] * n_columns + column[None, :],
            mask=there[:, None] & live[None, :],
            other=0.0,
        )
        cell = tl.load(cells + row, mask=there, other=0).to(tl.int32)
        y = (cell & 1).to(x.dtype)
        z = ((cell >> 1) & 1).to(x.dtype)
        on = there.to(x.dtype)
        if weighted:
            on = tl.load(weight + row, mask=there, other=0.0)
        s = tl.sum(x * w[None, :], axis=1)
        if has_extra:
            more = tl.load(extra + row, mask=there, other=0.0)
            s += w_last * more
        else:
            s += w_last
        e = tl.exp(-tl.abs(s))
        f = tl.where(s >= 0, 1.0 / (1.0 + e), e / (1.0 + e))
        loss += tl.sum(on * (tl.maximum(-s, 0.0) + (1.0 - y) * s + tl.log(1.0 + e)))
        s1 += tl.sum(on * s)
        s2 += tl.sum(on * s * s)
        asked = on
        if only >= 0:
            asked = tl.where(y == only, asked, 0.0)
        if others:
            asked = tl.where(cell < 4, asked, 0.0)
        v = s * per_scale
        guess = u0 + v * (u1 + v * u2)
        slope = (u1 + 2.0 * u2 * v) * per_scale
        e = tl.exp(-tl.abs(guess))
        g = tl.where(guess >= 0, 1.0 / (1.0 + e), e / (1.0 + e))
        loss_a += tl.sum(asked * (tl.maximum(-guess, 0.0) + (1.0 - z) * guess + tl.log(1.0 + e)))
        square += tl.sum(asked * slope * slope)
        r = on * (f - y)
        ra = asked * (g - z)
        rs = ra * slope
        first += tl.sum(r[:, None] * x, axis=0)
        second += tl.sum(rs[:, None] * x, axis=0)
        if has_extra:
            last += tl.sum(r * more)
            last_a += tl.sum(rs * more)
        else:
            last += tl.sum(r)
            last_a += tl.sum(rs)
        r0 += tl.sum(ra)
        r1 += tl.sum(ra * v)
        v2 = v * v
        r2 += tl.sum(ra * v2)
        m0 += tl.sum(asked)
        m1 += tl.sum(asked * v)
        m2 += tl.sum(asked * v2)
        m3 += tl.sum(asked * v2 * v)
        m4 += tl.sum(asked * v2 * v2)
        yes = tl.where(s > 0, on, 0.0)
        p0 += tl.sum(tl.where(cell == 0, yes, 0.0))
        p1 += tl.sum(tl.where(cell == 1, yes, 0.0))
        p2 += tl.sum(tl.where(cell == 2, yes, 0.0))
        p3 += tl.sum(tl.where(cell == 3, yes, 0.0))
        if others:
            p4 += tl.sum(tl.where(cell == 4, yes, 0.0))
            p5 += tl.sum(tl.where(cell == 5, yes, 0.0))
    at = products + program * 2 * columns
    tl.store(at + column, first)
    tl.store(at + columns + column, second)
    at = small + program * 24
    tl.store(at, loss)
    tl.store(at + 1, loss_a)
    tl.store(at + 2, s1)
    tl.store(at + 3, s2)
    tl.store(at + 4, square)
    tl.store(at + 5, last)
    tl.store(at + 6, last_a)
    tl.store(at + 7, r0)
    tl.store(at + 8, r1)
    tl.store(at + 9, r2)
    tl.store(at + 10, m0)
    tl.store(at + 11, m1)
    tl.store(at + 12, m2)
    tl.store(at + 13, m3)
    tl.store(at + 14, m4)
    tl.store(at + 15, p0)
    tl.store(at + 16, p1)
    tl.store(at + 17, p2)
    tl.store(at + 18, p3)
    tl.store(at + 19, p4)
    tl.store(at + 20, p5)


def is_fusible(game: Game, n_columns: int) -> bool:
    """Whether the kernel knows these sums."""
    (degree,) = {notion.degree for notion in game.notions}
    return len(game.notions) == 1 and degree in (1, 2) and n_columns <= MOST_COLUMNS


def fused_sums(
    X: Any,
    cells: Any,
    extra: Any,
    weight: Any,
    totals: FloatArray,
    w: FloatArray,
    u: FloatArray,
    scale: float,
    game: Game,
) -> Sums:
    """Sums of all rows.

    Parameters
    ----------
    X : Tensor of shape (n_rows, n_columns)
        Inputs, contiguous.
    cells : Tensor of uint8
        Group × label of each row.
    extra, weight : Tensor or None
        The extra column if it is not ones, and the weights, in the precision of X.
    totals : ndarray of shape (kinds · 2,)
        Weight of each cell.
    w, u, scale, game
        As in :func:`evenhand.rowmath.row_sums`.
    """
    n_rows, n = X.shape
    m, columns = len(u), triton.next_power_of_2(n)
    notion = game.notions[0]
    padded = np.zeros(3)
    padded[:m] = u
    point = torch.as_tensor(np.concatenate([w[:-1], padded])).to(X)
    programs = triton.cdiv(n_rows, ROWS * TILES)
    products = torch.empty((programs, 2, columns), dtype=X.dtype, device=X.device)
    small = torch.empty((programs, N_SMALL), dtype=X.dtype, device=X.device)
    with torch.cuda.device(X.device):
        _kernel[(programs,)](
            X,
            cells,
            extra if extra is not None else X,
            weight if weight is not None else X,
            point,
            point[n:],
            products,
            small,
            n_rows,
            float(w[-1]),
            1.0 / scale,
            n,
            notion.labels[0] if len(notion.labels) == 1 else -1,
            game.kinds > 2,
            extra is not None,
            weight is not None,
            ROWS,
            columns,
            TILES,
            num_warps=WARPS,
            num_stages=STAGES,
        )
    sums = [part.sum(dim=0, dtype=torch.float64).reshape(-1) for part in (products, small)]
    found = torch.cat(sums).cpu().numpy()
    x, rest = found[: 2 * columns].reshape(2, columns)[:, :n], found[2 * columns :]
    positive = rest[15 : 15 + 2 * game.kinds]
    hankel = np.add.outer(np.arange(m), np.arange(m))
    return Sums(
        loss_c=rest[0],
        loss_a=rest[1:2],
        x_r=np.column_stack([x, rest[5:7]]),
        phi_r=rest[7 : 7 + m],
        phi_phi=rest[10:15][hankel].ravel(),
        score=rest[2:5],
        counts=np.stack([totals[: 2 * game.kinds] - positive, positive], axis=1).ravel(),
        soft=np.zeros(0),
    )
