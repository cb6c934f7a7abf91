r"""Everything a solver needs from the data at a point (w, u), in one pass over the rows.

:func:`row_sums` does the row-wise mathematics of one block of rows and returns additive
:class:`Sums`; :class:`Oracle` adds them over the blocks and turns the total into
:class:`Moments`: losses, gradients and counts. A solver sees moments, never rows.

The losses, for weights w, adversary u, scores :math:`s = w^\top\hat x` and probabilities
:math:`f = \sigma(s)`, :math:`g = \sigma(u^\top\varphi)`:

.. math::
    L_C &= \text{log-loss}(f, y) + \tfrac{\lambda}{2}\|w\|^2, \\
    L_w &= \pm\,\text{log-loss}(g, z) - \tfrac{\kappa}{2} D(w)^2 \quad\text{(w ascends)}, \\
    L_u &= -\,\text{log-loss}(g, z) \quad\text{(u ascends)},

with + for the minimax game (w hides the group, the corrected reading) and − for the paper's
formula. All means are weighted by ``sample_weight``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix, issparse
from scipy.sparse.linalg import LinearOperator, eigsh

from evenhand.notions import CellSums, Notion

__all__ = ["Block", "Moments", "Oracle", "Sums", "row_sums"]

FloatArray = NDArray[Any]
T = TypeVar("T")

# Small enough to stay in cache between the two products, large enough that BLAS shares the work
# among its threads and the calls into NumPy cost little beside it.
BLOCK_BYTES, BLOCK_ROWS = 6 << 20, 8192
# Share of nonzero inputs below which a dense table is held as CSR.
MOSTLY_ZEROS = 0.25


@dataclass(frozen=True)
class Sums:
    """Additive sums over rows. Add two to join their rows."""

    loss_c: float
    loss_a: float
    x_r: FloatArray
    """Products of the inputs with the residual columns, shape (columns, n_weights)."""
    phi_r: FloatArray
    phi_phi: FloatArray
    score: FloatArray
    """Sums of the score, of its square, and of the squared slope of the adversary's guess in it."""
    counts: FloatArray
    """Weight per group × label × prediction, flat."""
    soft: FloatArray
    """Sum of f per group × label, flat; empty where the notion does not need it."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Sums)))


class Moments(NamedTuple):
    """The problem at a point (w, u)."""

    loss_c: float
    loss_w: float
    loss_u: float
    grad_c: FloatArray
    grad_f: FloatArray
    grad_u: FloatArray
    counts: FloatArray
    """Weight per group × label × prediction at the cut 0, shape (groups, 2, 2)."""
    gap: float
    """D(w) of the regulariser."""
    smoothness_u: float
    """Smoothness of the adversary's loss in u."""
    scale: float
    """Standard deviation of the scores, for the adversary's features at the next point."""
    steepness: float
    """Mean squared slope of the adversary's guess in the score, for the next step's smoothness."""


class Block(NamedTuple):
    """Some rows: inputs, the extra column, label, group, group × label cell, weight."""

    X: Any
    X_t: Any
    extra: FloatArray
    y: FloatArray
    z: FloatArray
    cell: FloatArray
    weight: FloatArray | None


def _scores(X: Any, extra: FloatArray, w: FloatArray) -> FloatArray:
    """Scores of a weight vector, or of each column of a matrix of them: X in its own precision."""
    s = np.asarray(X @ w[:-1].astype(X.dtype, copy=False), dtype=np.float64)
    s += extra * w[-1] if w.ndim == 1 else np.outer(extra, w[-1])
    return s


def float64_scores(block: Block, w: FloatArray) -> FloatArray:
    """Scores in float64 whatever the precision of X, as ``decision_function`` gives them."""
    return _scores(block.X.astype(np.float64, copy=False), block.extra, w)


def _row_product(R: FloatArray, X_t: Any) -> FloatArray:
    """R X, in the precision of X, as float64, from the transpose of X."""
    R = R.astype(X_t.dtype, copy=False)
    if issparse(X_t):
        return np.array([X_t @ r for r in R], dtype=np.float64)
    return np.asarray(R @ X_t.T, dtype=np.float64)


# exp(700) is finite; a score below -700 is as certain as one can be.
LEAST_SCORE = -700.0


def _log_loss(
    score: FloatArray, label: FloatArray, weight: FloatArray | None
) -> tuple[float, FloatArray]:
    r"""Sum the log-loss :math:`\log(1 + e^{-s}) + (1 - y) s` and give each row's probability."""
    denominator = np.exp(-score)
    denominator += 1.0
    log = np.log(denominator)
    if weight is None:
        loss = log.sum() + score.sum() - label @ score
    else:
        loss = weight @ (log + score - label * score)
    return float(loss), np.divide(1.0, denominator, out=denominator)


def row_sums(
    block: Block,
    w: FloatArray,
    u: FloatArray,
    scale: float,
    notion: Notion,
    soft: bool,
    groups: int,
) -> Sums:
    """Sum one block of rows at (w, u): two products with X and some arithmetic per row."""
    X, X_t, extra, y, z, cell, weight = block
    s = _scores(X, extra, w)
    np.maximum(s, LEAST_SCORE, out=s)
    loss_c, f = _log_loss(s, y, weight)
    phi, d_phi = notion.features(s, f, y, scale)
    guess = np.maximum(u @ phi, LEAST_SCORE)
    loss_a, g = _log_loss(guess, z, weight)

    R = np.empty((2 + 2 * groups * soft, len(s)))
    np.subtract(f, y, out=R[0])
    np.subtract(g, z, out=R[1])
    slope = u @ d_phi
    phi_w, s_w, f_w, slope_w = phi, s, f, slope
    if weight is not None:
        R[:2] *= weight
        phi_w, s_w, f_w, slope_w = (v * weight for v in (phi, s, f, slope))
    phi_r = phi @ R[1]
    R[1] *= slope
    f_sums: FloatArray = np.zeros(0)
    if soft:
        d_f = f_w * (1 - f)
        for j in range(2 * groups):
            np.multiply(d_f, cell == j, out=R[2 + j])
        f_sums = np.bincount(cell, weights=f_w, minlength=2 * groups)
    return Sums(
        loss_c=loss_c,
        loss_a=loss_a,
        x_r=np.column_stack([_row_product(R, X_t), R @ extra]),
        phi_r=phi_r,
        phi_phi=np.array([[a @ b for b in phi] for a in phi_w]),  # faster than gemm for so few
        score=np.array([s_w.sum(), s_w @ s, slope_w @ slope]),
        counts=np.bincount(cell * 2 + (s > 0), weights=weight, minlength=4 * groups).astype(float),
        soft=f_sums,
    )


def _column_size(block: Block) -> FloatArray:
    """Largest absolute value of each input."""
    size = abs(block.X).max(axis=0)
    size = size.toarray().ravel() if issparse(size) else size
    return np.asarray(size, dtype=np.float64)


def _largest_eigenvalue(matrix: FloatArray) -> float:
    """Largest eigenvalue of a Gram matrix: infinite if it overflowed, else at most the trace."""
    if not np.isfinite(matrix).all():
        return np.inf
    try:
        return float(np.linalg.eigvalsh(matrix)[-1])
    except np.linalg.LinAlgError:
        return float(np.trace(matrix))


def _compact(X: Any) -> Any:
    """CSR if X is dense but mostly zeros, as one-hot tables are: the products cost a fraction."""
    if issparse(X) or np.count_nonzero(X) > MOSTLY_ZEROS * X.size:
        return X
    return csr_matrix(X)


def _block(X: Any, i: int, j: int, *columns: Any) -> Block:
    """Rows i to j of X and of the columns, sharing their memory."""
    j = min(j, X.shape[0])
    if issparse(X):
        a, b = X.indptr[i], X.indptr[j]
        parts = (X.data[a:b], X.indices[a:b], X.indptr[i : j + 1] - a)
        part = csr_matrix(parts, shape=(j - i, X.shape[1]))
    else:
        part = X[i:j]
    return Block._make([part, part.T, *(None if c is None else c[i:j] for c in columns)])


class Oracle:
    r"""The moments of one problem: data, notion, reading and their constants.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (n_samples, n_features)
        Inputs, float32 or float64. Copied only if dense and mostly zeros.
    y, z : ndarray of shape (n_samples,)
        Label and group, 0 or 1.
    notion : Notion
        What is to be equal between the groups.
    reading : {"corrected", "printed"}, default="corrected"
        Which of the notion's gaps is regularised. In the printed reading the adversary sees raw
        scores and the ridge term holds every weight.
    adversary_sign : {+1, -1}, optional
        +1: w makes the adversary's task harder; −1: easier, as printed. Follows ``reading``.
    mu, l2 : float
        Strength :math:`\mu` of the regulariser, in units of the classification loss's curvature,
        and ridge :math:`\lambda`.
    extra : ndarray of shape (n_samples,), optional
        The column η; ones by default.
    penalize_extra : bool, default=False
        Whether the weight of η is in the ridge term.
    sample_weight : ndarray of shape (n_samples,), optional
        Positive row weights.
    block_rows : int, optional
        Rows in a block; by default what fits in cache.

    Attributes
    ----------
    smoothness : float
        :math:`L_1 = \sigma_{\max}(\hat X)^2/(4N) + \lambda`, by Lanczos with 2% to spare.
    column_size : ndarray of shape (n_features + 1,)
        Largest absolute value of each input.
    column_scale : ndarray of shape (n_features,)
        Standard deviation of each input; 1/2 for a column of zeros and ones.
    kappa : float
        Factor of the regulariser, :math:`\mu L_1 / \text{scale}`.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        z: Any,
        *,
        notion: Notion,
        reading: str = "corrected",
        adversary_sign: int | None = None,
        mu: float = 10.0,
        l2: float = 1e-4,
        extra: Any = None,
        penalize_extra: bool = False,
        sample_weight: Any = None,
        block_rows: int | None = None,
    ) -> None:
        X = _compact(X)
        n_samples, n_features = X.shape
        printed = reading == "printed"
        self.notion, self.mu = notion, mu
        self.gap = notion.gaps[reading]
        self.adversary_sign = adversary_sign or (-1 if printed else 1)
        self.scaled = not printed
        self.n_groups = 2
        self.n_weights, self.n_adversary = n_features + 1, notion.n_features
        self.ridge = np.full(self.n_weights, float(l2))
        if not (printed or penalize_extra):
            self.ridge[-1] = 0.0

        y, z = (np.asarray(v, dtype=np.float64) for v in (y, z))
        extra = np.ones(n_samples) if extra is None else np.asarray(extra, dtype=np.float64)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.total = float(n_samples if weight is None else weight.sum())
        rows = (extra, y, z, (z * 2 + y).astype(np.intp), weight)
        if block_rows is None:
            row_bytes = X.nnz * 12 / n_samples if issparse(X) else X.itemsize * n_features
            block_rows = int(min(max(BLOCK_BYTES / max(row_bytes, 1), 256), BLOCK_ROWS))
        self.blocks = [_block(X, i, i + block_rows, *rows) for i in range(0, n_samples, block_rows)]

        cells = self._sum(self._cell_sums)
        self._cells = CellSums(cells[..., 0], cells[..., 0], cells[..., 1:])
        self.column_size = np.append(
            reduce(np.maximum, map(_column_size, self.blocks)), np.abs(extra).max()
        )
        self.column_scale = self._column_scale()
        self.smoothness = 1.02 * self._curvature() + l2
        at_zero = self._cells
        if self.gap.soft:  # f = 1/2 and f' = 1/4 everywhere
            at_zero = CellSums(at_zero.weight, at_zero.weight / 2, at_zero.vector / 4)
        scale = self.gap.scale(at_zero)
        # Groups that do not differ leave nothing to regularise.
        self.kappa = mu * self.smoothness / scale if scale > 0 else 0.0

    def _sum(self, part: Callable[[Block], T]) -> T:
        return reduce(add, map(part, self.blocks))

    def _cell_sums(self, block: Block) -> FloatArray:
        """Weight and inputs summed over each cell, shape (groups, 2, 1 + n_weights)."""
        member = (block.cell == np.arange(2 * self.n_groups)[:, None]).astype(np.float64)
        if block.weight is not None:
            member *= block.weight
        parts = [member.sum(axis=1), _row_product(member, block.X_t), member @ block.extra]
        return np.column_stack(parts).reshape(self.n_groups, 2, -1)

    def _column_scale(self) -> FloatArray:
        """Find each input's standard deviation; 1/2 for zeros and ones, 0 for a constant."""

        def square(block: Block) -> FloatArray:
            one = np.ones(block.X.shape[0]) if block.weight is None else block.weight
            X = block.X.multiply(block.X) if issparse(block.X) else block.X**2
            return _row_product(one[None], X.T)[0]

        mean = self._cells.vector.sum(axis=(0, 1))[:-1] / self.total
        mean_square = self._sum(square) / self.total
        scale = np.sqrt(np.maximum(mean_square - mean**2, 0.0))
        size = self.column_size[:-1]
        # However rare its ones are, an indicator is on the scale of the others.
        scale[np.isclose(mean_square, mean, rtol=1e-9) & (size == 1)] = 0.5
        scale[scale <= 1e-6 * size] = 0.0
        return scale

    def _curvature(self) -> float:
        r""":math:`\lambda_{\max}(\hat X^\top \Omega \hat X) / 4N`."""

        def product(V: FloatArray) -> FloatArray:
            def part(block: Block) -> FloatArray:
                S = _scores(block.X, block.extra, V)
                if block.weight is not None:
                    S = block.weight[:, None] * S
                return np.vstack([_row_product(S.T, block.X_t).T, block.extra @ S])

            return self._sum(part) / (4 * self.total)

        n = self.n_weights
        if n <= 8:
            return float(np.linalg.eigvalsh(product(np.eye(n)))[-1])
        operator = LinearOperator(
            (n, n), matvec=lambda v: product(v.reshape(n, 1))[:, 0], dtype=np.float64
        )
        # A fixed start keeps a fit deterministic; 1% is enough for a step size.
        start = np.random.default_rng(0).standard_normal(n)
        return float(eigsh(operator, k=1, ncv=8, tol=1e-2, v0=start, return_eigenvectors=False)[0])

    def smoothness_at(self, alpha: float, steepness: float = 0.0) -> float:
        r"""Smoothness of the combined direction, :math:`L_t = L_1 (1 + \alpha_t (\mu + \beta))`.

        :math:`\beta`, the steepness, is the mean of :math:`(u^\top \varphi')^2`: the adversary's
        log-loss has a curvature of about :math:`\beta L_1` in w. It is small except where scores
        have nearly become the same for everybody, and there steps without it diverge.
        """
        return self.smoothness * (1 + alpha * (self.mu + steepness))

    def sums(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Sums:
        """One pass over the rows at (w, u)."""
        return self._sum(
            lambda block: row_sums(block, w, u, scale, self.notion, self.gap.soft, self.n_groups)
        )

    def evaluate(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Moments:
        """Losses, gradients and counts at (w, u).

        Parameters
        ----------
        w : ndarray of shape (n_features + 1,)
            Weights; the last is that of the extra column.
        u : ndarray of shape (n_adversary,)
            The adversary's weights.
        scale : float, default=1.0
            Size of the scores, a constant in differentiation: ``Moments.scale`` of the previous
            point. The printed reading takes 1.
        """
        # A diverging run may overflow; whoever asked sees it in the moments.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._evaluate(w, u, scale if self.scaled else 1.0)

    def _evaluate(self, w: FloatArray, u: FloatArray, scale: float) -> Moments:
        sums, N = self.sums(w, u, scale), self.total
        cells = self._cells
        if self.gap.soft:
            shape = (self.n_groups, 2)
            cells = CellSums(
                cells.weight, sums.soft.reshape(shape), sums.x_r[2:].reshape(*shape, -1)
            )
        gap, d_gap = self.gap(w, cells)
        adversary = sums.loss_a / N
        mean, square, steepness = sums.score / N
        return Moments(
            loss_c=sums.loss_c / N + 0.5 * float(self.ridge @ w**2),
            loss_w=self.adversary_sign * adversary - 0.5 * self.kappa * gap**2,
            loss_u=-adversary,
            grad_c=sums.x_r[0] / N + self.ridge * w,
            grad_f=self.adversary_sign * sums.x_r[1] / N - self.kappa * gap * d_gap,
            grad_u=-sums.phi_r / N,
            counts=sums.counts.reshape(self.n_groups, 2, 2),
            gap=gap,
            smoothness_u=0.25 * _largest_eigenvalue(sums.phi_phi) / N,
            scale=max(float(np.sqrt(max(square - mean**2, 0.0))), 1e-3),
            steepness=float(steepness),
        )
