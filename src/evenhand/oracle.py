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
formula. All means are weighted by ``sample_weight``; the adversary's are over the rows it is asked
about. Of more than two groups the adversary guesses by a softmax, the first group's score being 0;
of a quantity such as age it guesses the value, by least squares. Several notions have an adversary
and a gap each.

Of more than two labels the classifier is a softmax with weights :math:`w_k` for each label, all in
one vector. A notion then looks at one label c against the others: s is the log-odds
:math:`\log\big(f_c / (1 - f_c)\big)`, f is :math:`f_c`, and y whether the label is c.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from functools import reduce
from operator import add
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import block_diag
from scipy.sparse import csr_matrix, issparse
from scipy.sparse.linalg import LinearOperator, eigsh

from evenhand.notions import AnyNotion, CellSums, Notion

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
    loss_a: FloatArray
    """The adversary's loss for each notion."""
    x_r: FloatArray
    """Products of the inputs with the residual columns, shape (columns, n_features + 1)."""
    phi_r: FloatArray
    """Products of the adversary's features with its residuals, as u is laid out."""
    phi_phi: FloatArray
    """Gram matrix of the features; of several notions a block each."""
    score: FloatArray
    """Sums of the score, of its square, and of the squared slope of each guess in it."""
    counts: FloatArray
    """Weight per group × label × prediction, flat."""
    soft: FloatArray
    """Sum of f per group × label, flat; empty where the notion does not need it."""

    def __add__(self, other: Sums) -> Sums:
        return Sums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Sums)))


class Moments(NamedTuple):
    """The problem at a point (w, u). Losses of several notions are added up."""

    loss_c: float
    loss_w: float
    loss_u: float
    grad_c: FloatArray
    grad_f: FloatArray
    """Gradient of what w ascends; of several notions a row each."""
    grad_u: FloatArray
    counts: FloatArray
    """Weight per group × label × prediction at the cut 0, shape (groups, labels, labels)."""
    gap: float
    """Size of the regulariser's D(w); of several notions the largest."""
    smoothness_u: float
    """Smoothness of the adversary's loss in u."""
    scale: float
    """Standard deviation of the scores, for the adversary's features at the next point."""
    steepness: float
    """Mean squared slope of the adversary's guess in the score, for the next step's smoothness."""


class Block(NamedTuple):
    """Some rows: inputs, the extra column, label, what is guessed, group × label cell, weight.

    ``z`` is the group's number, or the quantity that the adversary regresses.
    """

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


class Guess(NamedTuple):
    """How an adversary guesses: its loss and residuals, how many outputs it has, how curved it is.

    ``loss(guess, z, weight)`` takes the outputs, shape (n_outputs, rows), and gives the summed loss
    and its derivatives in the outputs, of the same shape. ``curvature`` bounds the second
    derivative of a row's loss.
    """

    loss: Callable[[FloatArray, FloatArray, FloatArray | None], tuple[float, FloatArray]]
    n_outputs: int
    curvature: float


def _guess_one_of_two(
    guess: FloatArray, z: FloatArray, weight: FloatArray | None
) -> tuple[float, FloatArray]:
    """Logistic loss of the second of two groups."""
    s = guess[0]
    loss, g = _log_loss(np.maximum(s, LEAST_SCORE), z, weight)
    if s.min(initial=0.0) < LEAST_SCORE:  # where the loss is -z s
        beyond = z * np.minimum(s - LEAST_SCORE, 0.0)
        loss -= float(beyond.sum() if weight is None else weight @ beyond)
    g -= z
    if weight is not None:
        g *= weight
    return loss, g[None]


def _guess_one_of_many(
    guess: FloatArray, z: FloatArray, weight: FloatArray | None
) -> tuple[float, FloatArray]:
    """Softmax loss; the first group's output is 0."""
    top = np.maximum(guess.max(axis=0), 0.0)
    p = np.exp(guess - top)
    total = p.sum(axis=0) + np.exp(-top)
    member = z == np.arange(1, len(guess) + 1)[:, None]
    row_loss = top + np.log(total) - np.sum(guess * member, axis=0)
    residual = p / total - member
    if weight is None:
        return float(row_loss.sum()), residual
    return float(weight @ row_loss), residual * weight


def _guess_value(
    guess: FloatArray, z: FloatArray, weight: FloatArray | None
) -> tuple[float, FloatArray]:
    """Half the squared error of a quantity."""
    residual = guess - z
    weighted = residual if weight is None else residual * weight
    return 0.5 * float(weighted[0] @ residual[0]), weighted


class Game(NamedTuple):
    """What is played on the rows: notions, how groups are guessed, how many of everything.

    ``soft`` are the favourable labels of the notions whose gaps need soft sums; ``kinds`` is one
    more than ``groups`` if there are rows that belong to no compared group.
    """

    notions: Sequence[Notion]
    guess: Guess
    soft: tuple[int, ...]
    groups: int
    kinds: int
    labels: int = 2

    @property
    def outputs(self) -> int:
        """How many scores a row has: one of two labels, else one for each."""
        return 1 if self.labels == 2 else self.labels


class View(NamedTuple):
    """One label against the others: its log-odds and probability, and who has it.

    ``slope`` has the derivatives of the log-odds in the scores, None if the score is the log-odds;
    ``cell`` is twice the group's number plus y.
    """

    s: FloatArray
    f: FloatArray
    y: FloatArray
    slope: FloatArray | None
    cell: FloatArray


def _two_labels(block: Block, w: FloatArray) -> tuple[float, FloatArray, FloatArray, list[View]]:
    """Loss, its residual, predictions, and the view of the second label."""
    s = _scores(block.X, block.extra, w)
    np.maximum(s, LEAST_SCORE, out=s)
    loss, f = _log_loss(s, block.y, block.weight)
    residual = f - block.y
    if block.weight is not None:
        residual *= block.weight
    return loss, residual[None], s > 0, [View(s, f, block.y, None, block.cell)]


def _many_labels(
    block: Block, w: FloatArray, labels: int, favourable: Sequence[int]
) -> tuple[float, FloatArray, FloatArray, list[View]]:
    """Softmax loss, its residuals, predictions, and a view of each label that is asked for."""
    S = np.ascontiguousarray(_scores(block.X, block.extra, w.reshape(labels, -1).T).T)
    S -= S.max(axis=0)
    E = np.exp(S)
    total = E.sum(axis=0)
    P = E / total
    member = block.y == np.arange(labels)[:, None]
    row_loss = np.log(total) - np.sum(S, axis=0, where=member)
    residual = P - member
    if block.weight is not None:
        residual *= block.weight
    loss = row_loss.sum() if block.weight is None else block.weight @ row_loss
    views = []
    for c in favourable:
        others = np.delete(S, c, axis=0)
        top = others.max(axis=0)
        log_others = top + np.log(np.exp(others - top).sum(axis=0))
        slope = -np.exp(S - log_others)
        slope[c] = 1.0
        y = member[c].astype(np.float64)
        group = block.cell // labels
        views.append(View(S[c] - log_others, P[c], y, slope, 2 * group + member[c]))
    return float(loss), residual, S.argmax(axis=0), views


def row_sums(block: Block, w: FloatArray, u: FloatArray, scale: float, game: Game) -> Sums:
    """Sum one block of rows at (w, u): two products with X and some arithmetic per row."""
    notions, guess, _, groups, kinds, labels = game
    X_t, extra, z, weight, L = block.X_t, block.extra, block.z, block.weight, game.outputs
    favourable = sorted({notion.favourable for notion in notions})
    if labels == 2:
        loss_c, residual_c, predicted, found = _two_labels(block, w)
    else:
        loss_c, residual_c, predicted, found = _many_labels(block, w, labels, favourable)
    views = dict(zip(favourable, found, strict=True))

    first, n_cells = L * (1 + len(notions)), 2 * groups
    R = np.empty((first + L * n_cells * len(game.soft), len(z)))
    R[:L] = residual_c
    loss_a, slopes, phi_r, grams, start = [], [], [], [], 0
    for k, notion in enumerate(notions, start=1):
        view = views[notion.favourable]
        phi, d_phi = notion.features(view.s, view.f, view.y, scale)
        stop = start + guess.n_outputs * len(phi)
        U = u[start:stop].reshape(guess.n_outputs, len(phi))
        start = stop
        asked = _asked(notion.labels, view, weight, game)
        loss, residual = guess.loss(U @ phi, z, asked)
        slope = U @ d_phi
        r = R[k * L]
        np.einsum("or,or->r", residual, slope, out=r)
        if view.slope is not None:
            R[k * L : (k + 1) * L] = r * view.slope
        phi_a = phi if asked is None else phi * asked
        slope_2 = np.einsum("or,or->r", slope, slope)
        slopes.append(slope_2.sum() if asked is None else asked @ slope_2)
        loss_a.append(loss)
        phi_r.append((residual @ phi.T).ravel())
        grams.append(np.array([[a @ b for b in phi] for a in phi_a]))  # faster than gemm here
    soft, row = [], first
    for c in game.soft:
        view = views[c]
        f_w = view.f if weight is None else view.f * weight
        d_f = f_w * (1 - view.f)
        d_f = d_f[None] if view.slope is None else d_f * view.slope
        for j in range(n_cells):
            np.multiply(d_f, view.cell == j, out=R[row : row + L])
            row += L
        soft.append(np.bincount(view.cell, weights=f_w, minlength=n_cells)[:n_cells])
    score = np.zeros(2)
    for view in found:
        s_w = view.s if weight is None else view.s * weight
        score += s_w.sum() / len(found), s_w @ view.s / len(found)
    counts = np.bincount(
        block.cell * labels + predicted, weights=weight, minlength=kinds * labels**2
    )
    return Sums(
        loss_c=loss_c,
        loss_a=np.array(loss_a),
        x_r=np.column_stack([_row_product(R, X_t), R @ extra]),
        phi_r=np.concatenate(phi_r),
        phi_phi=grams[0] if len(grams) == 1 else block_diag(*grams),
        score=np.array([*score, *slopes]),
        counts=counts.astype(float),
        soft=np.concatenate(soft) if soft else np.zeros(0),
    )


def _asked(
    labels: tuple[int, ...], view: View, weight: FloatArray | None, game: Game
) -> FloatArray | None:
    """Weights of the rows whose group is guessed; None if all rows count alike."""
    asked = None
    if len(labels) == 1:
        asked = view.y == labels[0]
    if game.kinds > game.groups:
        known = view.cell < 2 * game.groups
        asked = known if asked is None else asked & known
    if asked is None:
        return weight
    return asked.astype(np.float64) if weight is None else asked * weight


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
    y : ndarray of shape (n_samples,)
        Number of the label, from 0.
    z : ndarray of shape (n_samples,)
        Number of the group, from 0.
    notion : Notion or Joint
        What is to be equal between the groups.
    n_labels : int, default=2
        How many labels there are.
    n_groups : int, optional
        How many groups are compared; rows with a higher number are fitted, but belong to no group.
        All groups by default.
    quantity : ndarray of shape (n_samples,), optional
        What the adversary guesses in place of the group: a number, of which the groups are bins.
    reading : {"corrected", "printed"}, default="corrected"
        Which of the notion's gaps is regularised. In the printed reading the adversary sees raw
        scores and the ridge term holds every weight.
    adversary_sign : {+1, -1}, optional
        +1: w makes the adversary's task harder; −1: easier, as printed. Follows ``reading``.
    mu, l2 : float
        Strength :math:`\mu` of the regulariser, in units of the classification loss's curvature
        and for each independent difference of groups, and ridge :math:`\lambda`.
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
        :math:`L_1 = \sigma_{\max}(\hat X)^2/(4N) + \lambda`, by Lanczos with 2% to spare. Of more
        than two labels 4 becomes 2.
    n_weights : int
        Length of w: ``n_features + 1``, of more than two labels that many for each.
    column_size : ndarray of shape (n_features + 1,)
        Largest absolute value of each input.
    column_scale : ndarray of shape (n_features,)
        Standard deviation of each input; 1/2 for a column of zeros and ones.
    kappas : list of float
        Factor of each notion's regulariser, :math:`\mu (k - 1) L_1 / \text{scale}` of k groups.
    n_groups : int
        How many groups are compared.
    asked : ndarray
        Weight of the rows about which each notion's adversary is asked.
    """

    def __init__(
        self,
        X: Any,
        y: Any,
        z: Any,
        *,
        notion: AnyNotion,
        n_labels: int = 2,
        n_groups: int | None = None,
        quantity: Any = None,
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
        self.notion = notion
        self.gaps = [part.gaps[reading] for part in notion.parts]
        self.adversary_sign = adversary_sign or (-1 if printed else 1)
        self.scaled = not printed
        y, z = np.asarray(y, dtype=np.float64), np.asarray(z)
        k = self.n_groups = int(z.max()) + 1 if n_groups is None else n_groups
        z = np.minimum(z, k)
        # Of k groups, k - 1 differences are independent, and each shall count as that of two does.
        mu *= k - 1
        self.mu = mu * len(notion.parts)
        if quantity is not None:
            guess = Guess(_guess_value, 1, 1.0)
        elif k == 2:
            guess = Guess(_guess_one_of_two, 1, 0.25)
        else:
            guess = Guess(_guess_one_of_many, k - 1, 0.5)
        parts = zip(notion.parts, self.gaps, strict=True)
        soft = tuple(sorted({part.favourable for part, gap in parts if gap.soft}))
        self.game = Game(notion.parts, guess, soft, k, k + bool((z == k).any()), n_labels)
        self.n_columns = n_features + 1
        self.n_weights = self.game.outputs * self.n_columns
        self.n_adversary = guess.n_outputs * sum(part.n_features for part in notion.parts)
        ridge = np.full(self.n_columns, float(l2))
        if not (printed or penalize_extra):
            ridge[-1] = 0.0
        self.ridge = np.tile(ridge, self.game.outputs)

        extra = np.ones(n_samples) if extra is None else np.asarray(extra, dtype=np.float64)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        self.total = float(n_samples if weight is None else weight.sum())
        guessed = np.asarray(z if quantity is None else quantity, dtype=np.float64)
        cell = (z * n_labels + y).astype(np.intp)
        rows = (extra, y, guessed, cell, weight)
        if block_rows is None:
            row_bytes = X.nnz * 12 / n_samples if issparse(X) else X.itemsize * n_features
            block_rows = int(min(max(BLOCK_BYTES / max(row_bytes, 1), 256), BLOCK_ROWS))
        self.blocks = [_block(X, i, i + block_rows, *rows) for i in range(0, n_samples, block_rows)]

        every = self._sum(self._cell_sums)
        # What never changes: the cells of each notion's view, with the inputs times the derivatives
        # of its label's score, less the mean of all labels' scores, in the scores.
        self._cells = [self._one_label(every[:k], part.favourable) for part in notion.parts]
        self.asked = np.array(
            [
                cells.weight[:, list(part.labels)].sum()
                for cells, part in zip(self._cells, notion.parts, strict=True)
            ]
        )
        self.column_size = np.append(
            reduce(np.maximum, map(_column_size, self.blocks)), np.abs(extra).max()
        )
        self.column_scale = self._column_scale(every[..., 1:-1].sum(axis=(0, 1)) / self.total)
        self.smoothness = 1.02 * self._curvature() + l2
        scales = [
            gap.scale(self._at_zero(cells) if gap.soft else cells)
            for gap, cells in zip(self.gaps, self._cells, strict=True)
        ]
        # Groups that do not differ leave nothing to regularise.
        self.kappas = [mu * self.smoothness / scale if scale > 0 else 0.0 for scale in scales]

    def _one_label(self, sums: FloatArray, c: int) -> CellSums:
        """Make sums over the cells group × label those of one label against the others."""
        labels, sign = self.game.labels, np.ones(1)
        if labels > 2:
            both = np.stack([np.delete(sums, c, axis=1).sum(axis=1), sums[:, c]], axis=1)
            sums, sign = both, (np.arange(labels) == c) - 1 / labels
        vector = np.kron(sign, sums[..., 1:])
        return CellSums(sums[..., 0], sums[..., 0], vector)

    def _at_zero(self, cells: CellSums) -> CellSums:
        """Soft sums at w = 0, where f = 1/K and f' = 1/K of the fixed derivatives, 1/4 of one."""
        f = 1 / self.game.labels
        slope = f if self.game.labels > 2 else f * (1 - f)
        return CellSums(cells.weight, cells.weight * f, cells.vector * slope)

    def _sum(self, part: Callable[[Block], T]) -> T:
        return reduce(add, map(part, self.blocks))

    def _cell_sums(self, block: Block) -> FloatArray:
        """Weight and inputs summed over each cell, shape (kinds, labels, 1 + n_columns)."""
        kinds, labels = self.game.kinds, self.game.labels
        member = (block.cell == np.arange(kinds * labels)[:, None]).astype(np.float64)
        if block.weight is not None:
            member *= block.weight
        parts = [member.sum(axis=1), _row_product(member, block.X_t), member @ block.extra]
        return np.column_stack(parts).reshape(kinds, labels, -1)

    def _column_scale(self, mean: FloatArray) -> FloatArray:
        """Find each input's standard deviation; 1/2 for zeros and ones, 0 for a constant."""

        def square(block: Block) -> FloatArray:
            one = np.ones(block.X.shape[0]) if block.weight is None else block.weight
            X = block.X.multiply(block.X) if issparse(block.X) else block.X**2
            return _row_product(one[None], X.T)[0]

        mean_square = self._sum(square) / self.total
        scale = np.sqrt(np.maximum(mean_square - mean**2, 0.0))
        size = self.column_size[:-1]
        # However rare its ones are, an indicator is on the scale of the others.
        scale[np.isclose(mean_square, mean, rtol=1e-9) & (size == 1)] = 0.5
        scale[scale <= 1e-6 * size] = 0.0
        return scale

    def _curvature(self) -> float:
        r""":math:`\lambda_{\max}(\hat X^\top \Omega \hat X) / 4N`, of many labels over 2N."""
        hessian = 4 if self.game.labels == 2 else 2

        def product(V: FloatArray) -> FloatArray:
            def part(block: Block) -> FloatArray:
                S = _scores(block.X, block.extra, V)
                if block.weight is not None:
                    S = block.weight[:, None] * S
                return np.vstack([_row_product(S.T, block.X_t).T, block.extra @ S])

            return self._sum(part) / (hessian * self.total)

        n = self.n_columns
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
        return self._sum(lambda block: row_sums(block, w, u, scale, self.game))

    def evaluate(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Moments:
        """Losses, gradients and counts at (w, u).

        Parameters
        ----------
        w : ndarray of shape (n_weights,)
            Weights, of many labels one label after the other; the last is that of the extra column.
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
        sums, N, game = self.sums(w, u, scale), self.total, self.game
        notions, guess = game.notions, game.guess
        K, n = len(notions), self.n_weights
        x_r = sums.x_r[: game.outputs * (1 + K)].reshape(1 + K, n)
        soft_vector = sums.x_r[game.outputs * (1 + K) :].reshape(-1, game.groups, 2, n)
        soft_value = sums.soft.reshape(-1, game.groups, 2)
        found = []
        for notion, gap, cells in zip(notions, self.gaps, self._cells, strict=True):
            if gap.soft:
                i = game.soft.index(notion.favourable)
                cells = CellSums(cells.weight, soft_value[i], soft_vector[i])
            found.append(gap(w, cells))
        penalty, kappa = np.array([p for p, _ in found]), np.array(self.kappas)
        adversary = sums.loss_a / self.asked
        grad_f = (self.adversary_sign / self.asked)[:, None] * x_r[1:]
        grad_f -= kappa[:, None] * np.array([g for _, g in found])
        sizes = [notion.n_features for notion in notions]
        mean, square = sums.score[:2] / N
        return Moments(
            loss_c=sums.loss_c / N + 0.5 * float(self.ridge @ w**2),
            loss_w=float(self.adversary_sign * adversary.sum() - kappa @ penalty),
            loss_u=-float(adversary.sum()),
            grad_c=x_r[0] / N + self.ridge * w,
            grad_f=grad_f[0] if K == 1 else grad_f,
            grad_u=-sums.phi_r / np.repeat(self.asked, np.multiply(sizes, guess.n_outputs)),
            counts=sums.counts.reshape(game.kinds, game.labels, game.labels),
            gap=float(np.sqrt(2 * penalty.max())),
            smoothness_u=guess.curvature * self._largest_gram(sums.phi_phi, sizes),
            scale=max(float(np.sqrt(max(square - mean**2, 0.0))), 1e-3),
            # In units of the classification loss's curvature, which the smoothness is. Of many
            # labels that is twice as large, as is the square of the log-odds' slope.
            steepness=float((sums.score[2:] / self.asked).sum()) * 4 * guess.curvature,
        )

    def _largest_gram(self, gram: FloatArray, sizes: Sequence[int]) -> float:
        """Largest eigenvalue of any notion's block of the Gram matrix, per row asked about."""
        ends = np.cumsum(sizes)
        return max(
            _largest_eigenvalue(gram[end - n : end, end - n : end]) / asked
            for end, n, asked in zip(ends, sizes, self.asked, strict=True)
        )
