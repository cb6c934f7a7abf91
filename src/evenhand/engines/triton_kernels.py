"""Kernels for a GPU: the sums of :mod:`evenhand.core.row_sums` in one pass, and histograms.

The sums are for two labels, two groups, and one adversary that sees powers of the score up to the
square; the histograms for two labels and rows without weights.
"""

# mypy: disable-error-code="no-untyped-def, untyped-decorator"
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
import triton
import triton.language as tl

from evenhand.core.arrays import FloatArray
from evenhand.core.row_sums import Game, Sums
from evenhand.core.torch_numpy import like

# Inputs in a tile, least and most rows in it, and rows of a program; found by trial on an H200. A
# program is one warp, whose threads have a column's rows to themselves: no one waits for another.
TILE, LEAST_ROWS, MOST_ROWS, PROGRAM_ROWS = 512, 4, 32, 1024
SMALL_ROWS, SMALL_TILES = 256, 32
COUNT_ROWS = 1024
MOST_COLUMNS = 1024
# What a program of the second kernel stores.
N_SMALL = 24


@triton.jit
def _asked(on, y, cell, only: tl.constexpr, others: tl.constexpr):
    """Weights of the rows whose group is guessed."""
    asked = on
    if only >= 0:
        asked = tl.where(y == only, asked, 0.0)
    if others:
        asked = tl.where(cell < 4, asked, 0.0)
    return asked


@triton.jit
def _sigmoid(s):
    return 1.0 / (1.0 + tl.exp(-s))


@triton.jit
def _products(
    X, cells, extra, weight, W, U, scores, out, n_rows, n_columns: tl.constexpr,
    only: tl.constexpr, others: tl.constexpr, has_extra: tl.constexpr, weighted: tl.constexpr,
    rows: tl.constexpr, columns: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    """Read X once: leave each row's score, and each program's sum of residuals times inputs."""
    program = tl.program_id(0)
    column = tl.arange(0, columns)
    live = column < n_columns
    w = tl.load(W + column, mask=live, other=0.0)
    first = tl.zeros((columns,), dtype=w.dtype)
    second = tl.zeros((columns,), dtype=w.dtype)
    u0 = tl.load(U)
    u1 = tl.load(U + 1)
    u2 = tl.load(U + 2)
    w_last = tl.load(U + 3)
    per_scale = tl.load(U + 4)
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
            s += w_last * tl.load(extra + row, mask=there, other=0.0)
        else:
            s += w_last
        tl.store(scores + row, s, mask=there)
        v = s * per_scale
        asked = _asked(on, y, cell, only, others)
        guess = u0 + v * (u1 + v * u2)
        slope = (u1 + 2.0 * u2 * v) * per_scale
        r = on * (_sigmoid(s) - y)
        rs = asked * (_sigmoid(guess) - z) * slope
        first += tl.sum(r[:, None] * x, axis=0)
        second += tl.sum(rs[:, None] * x, axis=0)
    at = out + program * 2 * columns
    tl.store(at + column, first)
    tl.store(at + columns + column, second)


@triton.jit
def _rest(
    scores, cells, extra, weight, U, out, n_rows, only: tl.constexpr, others: tl.constexpr,
    has_extra: tl.constexpr, weighted: tl.constexpr, rows: tl.constexpr, tiles: tl.constexpr,
):  # fmt: skip
    """Everything else, from the scores: next to nothing to read beside X."""
    program = tl.program_id(0)
    u0 = tl.load(U)
    u1 = tl.load(U + 1)
    u2 = tl.load(U + 2)
    per_scale = tl.load(U + 4)
    zero = tl.zeros((rows,), dtype=u0.dtype)
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
        s = tl.load(scores + row, mask=there, other=0.0)
        cell = tl.load(cells + row, mask=there, other=0).to(tl.int32)
        y = (cell & 1).to(s.dtype)
        z = ((cell >> 1) & 1).to(s.dtype)
        on = there.to(s.dtype)
        if weighted:
            on = tl.load(weight + row, mask=there, other=0.0)
        more = on * 0.0 + 1.0
        if has_extra:
            more = tl.load(extra + row, mask=there, other=0.0)
        v = s * per_scale
        asked = _asked(on, y, cell, only, others)
        guess = u0 + v * (u1 + v * u2)
        slope = (u1 + 2.0 * u2 * v) * per_scale
        e = tl.exp(-tl.abs(s))
        loss += on * (tl.maximum(-s, 0.0) + (1.0 - y) * s + tl.log(1.0 + e))
        s1 += on * s
        s2 += on * s * s
        e = tl.exp(-tl.abs(guess))
        loss_a += asked * (tl.maximum(-guess, 0.0) + (1.0 - z) * guess + tl.log(1.0 + e))
        square += asked * slope * slope
        ra = asked * (_sigmoid(guess) - z)
        last += on * (_sigmoid(s) - y) * more
        last_a += ra * slope * more
        v2 = v * v
        r0 += ra
        r1 += ra * v
        r2 += ra * v2
        m0 += asked
        m1 += asked * v
        m2 += asked * v2
        m3 += asked * v2 * v
        m4 += asked * v2 * v2
        yes = tl.where(s > 0, on, 0.0)
        p0 += tl.where(cell == 0, yes, 0.0)
        p1 += tl.where(cell == 1, yes, 0.0)
        p2 += tl.where(cell == 2, yes, 0.0)
        p3 += tl.where(cell == 3, yes, 0.0)
        if others:
            p4 += tl.where(cell == 4, yes, 0.0)
            p5 += tl.where(cell == 5, yes, 0.0)
    at = out + program * 24
    tl.store(at, tl.sum(loss))
    tl.store(at + 1, tl.sum(loss_a))
    tl.store(at + 2, tl.sum(s1))
    tl.store(at + 3, tl.sum(s2))
    tl.store(at + 4, tl.sum(square))
    tl.store(at + 5, tl.sum(last))
    tl.store(at + 6, tl.sum(last_a))
    tl.store(at + 7, tl.sum(r0))
    tl.store(at + 8, tl.sum(r1))
    tl.store(at + 9, tl.sum(r2))
    tl.store(at + 10, tl.sum(m0))
    tl.store(at + 11, tl.sum(m1))
    tl.store(at + 12, tl.sum(m2))
    tl.store(at + 13, tl.sum(m3))
    tl.store(at + 14, tl.sum(m4))
    tl.store(at + 15, tl.sum(p0))
    tl.store(at + 16, tl.sum(p1))
    tl.store(at + 17, tl.sum(p2))
    tl.store(at + 18, tl.sum(p3))
    tl.store(at + 19, tl.sum(p4))
    tl.store(at + 20, tl.sum(p5))


@triton.jit
def _count(
    scores, extra, w_last, cells, middles, per_units, below, counts, n_rows, n_cells: tl.constexpr,
    n_counts: tl.constexpr, n_bins: tl.constexpr, rows: tl.constexpr,
):  # fmt: skip
    """Add some rows to the histogram of one quantity."""
    q = tl.program_id(1)
    row = tl.program_id(0) * rows + tl.arange(0, rows)
    there = row < n_rows
    s = tl.load(scores + q * n_rows.to(tl.int64) + row, mask=there, other=0.0).to(tl.float64)
    s += tl.load(extra + row, mask=there, other=0.0) * tl.load(w_last + q)
    t = (s - tl.load(middles + q)) * tl.load(per_units + q)
    position = (t / (1.0 + tl.abs(t)) + 1.0) * (n_bins / 2)
    # Comparisons with NaN are false.
    position = tl.where(position > 0, tl.where(position < n_bins - 1, position, n_bins - 1.0), 0.0)
    bin = tl.load(below + q * n_bins + position.to(tl.int32), mask=there, other=0).to(tl.int32)
    cell = tl.load(cells + row, mask=there, other=0).to(tl.int32)
    tl.atomic_add(counts + (q * n_cells + cell) * n_counts + bin, 1, mask=there, sem="relaxed")


def fused_counts(
    X: Any,
    extra: Any,
    cell: Any,
    W: FloatArray,
    tables: tuple[FloatArray, ...],
    shape: tuple[int, ...],
) -> Any:
    """Count rows per quantity × cell × number of cuts below, as a tensor of the shape.

    A column of W has the weights of a quantity, the extra column's last. The tables have the middle
    of each quantity, units of its spread, and for each bin how many cuts are below it.
    """
    scores = like(np.ascontiguousarray(W[:-1].T), X) @ X.T
    w_last, middles, per_units = (like(v, extra) for v in (W[-1], *tables[:2]))
    below = torch.as_tensor(tables[2]).to(X.device)
    counts = torch.zeros(shape, dtype=torch.int32, device=X.device)
    grid = (triton.cdiv(len(X), COUNT_ROWS), shape[0])
    with torch.cuda.device(X.device):
        _count[grid](
            scores, extra, w_last, cell, middles, per_units, below, counts, len(X), shape[1],
            shape[2], below.shape[1], rows=COUNT_ROWS,
        )  # fmt: skip
    return counts.double()


def is_fusible(game: Game, n_columns: int) -> bool:
    """Whether the kernel knows these sums."""
    (degree,) = {notion.degree for notion in game.notions}
    return len(game.notions) == 1 and degree in (1, 2) and n_columns <= MOST_COLUMNS


def fused_sums(
    X: Any, cells: Any, extra: Any, weight: Any, totals: FloatArray, game: Game
) -> Callable[[FloatArray, FloatArray, float], Sums]:
    """Make the function that sums all rows at (w, u) with a scale.

    X is contiguous, cells are bytes; the extra column, if it is not ones, and weights have the
    precision of X. ``totals`` has the weight of each cell.
    """
    (n_rows, n), notion = X.shape, game.notions[0]
    m, columns = int(notion.degree or 0) + 1, triton.next_power_of_2(n)
    facts = {
        "only": notion.labels[0] if len(notion.labels) == 1 else -1,
        "others": game.n_groups_all > 2,
        "has_extra": extra is not None,
        "weighted": weight is not None,
    }
    optional = [X if v is None else v for v in (extra, weight)]  # not read if None
    tile_rows = min(max(TILE // columns, LEAST_ROWS), MOST_ROWS)
    programs = triton.cdiv(n_rows, PROGRAM_ROWS)
    few = triton.cdiv(n_rows, SMALL_ROWS * SMALL_TILES)
    # Made once: the device waits for nobody at a point but for its numbers to arrive.
    scores, products, small, point = (
        torch.empty(shape, dtype=X.dtype, device=X.device)
        for shape in ((n_rows,), (programs, 2 * columns), (few, N_SMALL), (n + 5,))
    )
    device_sums = torch.empty(2 * columns + N_SMALL, dtype=torch.float64, device=X.device)
    at_home = torch.empty(n + 5, dtype=X.dtype, pin_memory=True)
    hankel = np.add.outer(np.arange(m), np.arange(m))

    def sums(w: FloatArray, u: FloatArray, scale: float) -> Sums:
        # Numbers go in an array, because those given by themselves would be float32.
        numbers = at_home.numpy()
        numbers[:n], numbers[n:] = w[:-1], 0.0
        numbers[n : n + m], numbers[n + 3], numbers[n + 4] = u, w[-1], 1.0 / scale
        with torch.cuda.device(X.device):
            point.copy_(at_home, non_blocking=True)
            _products[(programs,)](
                X, cells, *optional, point, point[n:], scores, products, n_rows, n, **facts,
                rows=tile_rows, columns=columns, tiles=PROGRAM_ROWS // tile_rows, num_warps=1,
            )  # fmt: skip
            _rest[(few,)](
                scores, cells, *optional, point[n:], small, n_rows, **facts, rows=SMALL_ROWS,
                tiles=SMALL_TILES, num_warps=4,
            )  # fmt: skip
        torch.sum(products, dim=0, dtype=torch.float64, out=device_sums[: 2 * columns])
        torch.sum(small, dim=0, dtype=torch.float64, out=device_sums[2 * columns :])
        host_sums = device_sums.cpu().numpy()
        x, rest = host_sums[: 2 * columns].reshape(2, columns)[:, :n], host_sums[2 * columns :]
        positive = rest[15 : 15 + 2 * game.n_groups_all]
        return Sums(
            loss_c=rest[0],
            loss_a=rest[1:2],
            x_r=np.column_stack([x, rest[5:7]]),
            phi_r=rest[7 : 7 + m],
            phi_phi=rest[10:15][hankel].ravel(),
            score=rest[2:5],
            counts=np.stack([totals[: 2 * game.n_groups_all] - positive, positive], axis=1).ravel(),
            soft=np.zeros(0),
        )

    return sums
