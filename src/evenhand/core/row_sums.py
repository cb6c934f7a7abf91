r"""The row-wise mathematics: what a block of rows contributes to the sums at a point (w, u).

Every function here is a *statistic*: it takes a :class:`Block` of rows, and its results for two
blocks are joined by their sum or maximum. Where the rows are and how results are joined is an
engine's affair
(:mod:`evenhand.engines`); a block's columns may be NumPy's or another library's arrays.

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

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import issparse

from evenhand.core.arrays import FloatArray, like, namespace
from evenhand.core.notions import Notion
from evenhand.core.rows import Block

# exp(700) is finite; a score below -700 is as certain as one can be.
LEAST_SCORE = -700.0
# Rows that are scored at a time for many weights: few enough to stay in cache in float64.
STEP_ROWS = 1024


@dataclass(frozen=True)
class Sums:
    """Additive sums over rows. Add two to join their rows."""

    loss_c: Any
    loss_a: FloatArray
    """The adversary's loss for each notion."""
    x_r: FloatArray
    """Products of the inputs with the residual columns, shape (columns, n_features + 1)."""
    phi_r: FloatArray
    """Products of the adversary's features with its residuals, as u is laid out."""
    phi_phi: FloatArray
    """Gram matrices of the features, flat, one notion's after the other."""
    score: FloatArray
    """Sums of the score, of its square, and of the squared slope of each guess in it."""
    counts: FloatArray
    """Weight per group × label × prediction, flat."""
    soft: FloatArray
    """Sum of f per group × label, flat; empty where the notion does not need it."""

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*(getattr(self, f.name) + getattr(other, f.name) for f in fields(Sums)))


def scores_of(X: Any, extra: FloatArray, w: FloatArray) -> FloatArray:
    """Scores of a weight vector, or of each column of a matrix of them: X in its own precision."""
    xp = namespace(extra)
    s = xp.asarray(X @ like(w[:-1], X), dtype=extra.dtype)
    if w.ndim == 1:
        s += extra * float(w[-1])
    else:
        s += extra[:, None] * like(w[-1], extra)
    return s


def _in_float64(X: Any) -> Any:
    """Give inputs as float64, where they are."""
    return X.astype(np.float64, copy=False) if hasattr(X, "astype") else X.double()


def float64_scores(block: Block, w: FloatArray) -> FloatArray:
    """Scores in float64 whatever the precision of X, as ``decision_function`` gives them."""
    X = block.X
    if w.ndim == 1 or not isinstance(X, np.ndarray):
        return scores_of(_in_float64(X), block.extra, w)
    scores, weights = np.empty((w.shape[1], len(X))), np.ascontiguousarray(w[:-1].T)
    for i in range(0, len(X), STEP_ROWS):
        step = slice(i, i + STEP_ROWS)
        np.matmul(weights, X[step].astype(np.float64).T, out=scores[:, step])
        scores[:, step] += w[-1][:, None] * block.extra[step]
    return scores.T


def row_product(R: FloatArray, X_t: Any) -> FloatArray:
    """R X, in the precision of X, as float64, from the transpose of X."""
    if issparse(X_t):
        R = R.astype(X_t.dtype, copy=False)
        return np.array([X_t @ r for r in R], dtype=np.float64)
    xp = namespace(R)
    return xp.asarray(like(R, X_t) @ X_t.T, dtype=R.dtype)


def _log_loss(
    score: FloatArray, label: FloatArray, weight: FloatArray | None
) -> tuple[Any, FloatArray]:
    r"""Sum the log-loss :math:`\log(1 + e^{-s}) + (1 - y) s` and give each row's probability."""
    xp = namespace(score)
    denominator = xp.exp(-score)
    denominator += 1.0
    log = xp.log(denominator)
    if weight is None:
        loss = log.sum() + score.sum() - label @ score
    else:
        loss = weight @ (log + score - label * score)
    return loss, 1.0 / denominator


class Guess(NamedTuple):
    """How an adversary guesses: its loss and residuals, how many outputs it has, how curved it is.

    ``loss(guess, z, weight)`` takes the outputs, shape (n_outputs, rows), and gives the summed loss
    and its derivatives in the outputs, of the same shape. ``curvature`` bounds the second
    derivative of a row's loss.
    """

    loss: Callable[[FloatArray, FloatArray, FloatArray | None], tuple[Any, FloatArray]]
    n_outputs: int
    curvature: float


def guess_one_of_two(
    guess: FloatArray, z: FloatArray, weight: FloatArray | None
) -> tuple[Any, FloatArray]:
    """Logistic loss of the second of two groups."""
    xp, s = namespace(guess), guess[0]
    loss, g = _log_loss(xp.maximum(s, LEAST_SCORE), z, weight)
    # Where the loss is -z s. To look first would make a device wait.
    if xp is not np or s.min(initial=0.0) < LEAST_SCORE:
        beyond = z * xp.minimum(s - LEAST_SCORE, 0.0)
        loss = loss - (beyond.sum() if weight is None else weight @ beyond)
    g -= z
    if weight is not None:
        g *= weight
    return loss, g[None]


def guess_one_of_many(
    guess: FloatArray, z: FloatArray, weight: FloatArray | None
) -> tuple[Any, FloatArray]:
    """Softmax loss; the first group's output is 0."""
    xp = namespace(guess)
    top = xp.maximum(xp.max(guess, axis=0), 0.0)
    p = xp.exp(guess - top)
    total = p.sum(axis=0) + xp.exp(-top)
    if xp is np:  # without a matrix of who is in which group
        rows = np.flatnonzero((z >= 1) & (z <= len(guess)))
        own = z[rows].astype(np.intp) - 1, rows
        row_loss = top + np.log(total)
        row_loss[rows] -= guess[own]
        p /= total
        p[own] -= 1.0
        if weight is None:
            return row_loss.sum(), p
        p *= weight
        return weight @ row_loss, p
    member = _members(z, range(1, len(guess) + 1), guess.dtype)
    row_loss = top + xp.log(total) - (guess * member).sum(axis=0)
    residual = p / total - member
    if weight is None:
        return row_loss.sum(), residual
    return weight @ row_loss, residual * weight


def guess_value(
    guess: FloatArray, z: FloatArray, weight: FloatArray | None
) -> tuple[Any, FloatArray]:
    """Half the squared error of a quantity."""
    residual = guess - z
    weighted = residual if weight is None else residual * weight
    return 0.5 * (weighted[0] @ residual[0]), weighted


def _members(codes: FloatArray, values: Sequence[int], dtype: Any) -> FloatArray:
    """1 where a row has the value, 0 elsewhere; a row for each value."""
    xp = namespace(codes)
    return xp.asarray(xp.stack([codes == value for value in values]), dtype=dtype)


class Game(NamedTuple):
    """What is played on the rows: notions, how groups are guessed, how many of everything.

    ``soft`` are the favourable labels of the notions whose gaps need soft sums. ``groups`` are
    compared; ``n_groups_all`` is one more if there are rows that belong to none of them.
    """

    notions: Sequence[Notion]
    guess: Guess
    soft: tuple[int, ...]
    groups: int
    n_groups_all: int
    labels: int = 2

    @property
    def outputs(self) -> int:
        """How many scores a row has: one of two labels, else one for each."""
        return 1 if self.labels == 2 else self.labels


def sees_powers(game: Game) -> bool:
    """Whether the sums are those that engines may have a fused way for.

    Two labels, groups that are no quantity, adversaries that see powers of the score, and no soft
    sums.
    """
    degrees = {notion.degree for notion in game.notions}
    return (
        game.labels == 2
        and game.guess.loss in (guess_one_of_two, guess_one_of_many)
        and not game.soft
        and len(degrees) == 1
        and None not in degrees
    )


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


def _two_labels(block: Block, w: FloatArray) -> tuple[Any, FloatArray, FloatArray, list[View]]:
    """Loss, its residual, predictions, and the view of the second label."""
    xp = namespace(block.y)
    s = xp.maximum(scores_of(block.X, block.extra, w), LEAST_SCORE)
    loss, f = _log_loss(s, block.y, block.weight)
    residual = f - block.y
    if block.weight is not None:
        residual *= block.weight
    return loss, residual[None], s > 0, [View(s, f, block.y, None, block.cell)]


def _many_labels(
    block: Block, w: FloatArray, labels: int, favourable: Sequence[int]
) -> tuple[Any, FloatArray, FloatArray, list[View]]:
    """Softmax loss, its residuals, predictions, and a view of each label that is asked for."""
    xp = namespace(block.y)
    S = scores_of(block.X, block.extra, w.reshape(labels, -1).T).T
    S = S - xp.max(S, axis=0)
    E = xp.exp(S)
    total = E.sum(axis=0)
    P = E / total
    member = _members(block.y, range(labels), S.dtype)
    row_loss = xp.log(total) - (S * member).sum(axis=0)
    residual = P - member
    if block.weight is not None:
        residual *= block.weight
    loss = row_loss.sum() if block.weight is None else block.weight @ row_loss
    views = []
    for c in favourable:
        others = S[[j for j in range(labels) if j != c]]
        top = xp.max(others, axis=0)
        log_others = top + xp.log(xp.exp(others - top).sum(axis=0))
        slope = -xp.exp(S - log_others)
        slope[c] = 1.0
        cell = 2 * (block.cell // labels) + (block.y == c)
        views.append(View(S[c] - log_others, P[c], member[c], slope, cell))
    return loss, residual, xp.argmax(S, axis=0), views


Recode = tuple[FloatArray, FloatArray]
"""Labels and weights for the cells group × label: other ones than the rows' own."""


def row_sums(
    block: Block,
    w: FloatArray,
    u: FloatArray,
    scale: float,
    game: Game,
    recode: Recode | None = None,
) -> Sums:
    """Sum one block of rows at (w, u): two products with X and some arithmetic per row."""
    xp = namespace(block.y)
    if recode is not None:
        label, size = (like(table, block.y)[block.cell] for table in recode)
        block = block._replace(
            y=label, weight=size if block.weight is None else size * block.weight
        )
    notions, guess, _, groups, n_groups_all, labels = game
    z, weight, u = block.z, block.weight, like(u, block.y)
    favourable = sorted({notion.favourable for notion in notions})
    if labels == 2:
        loss_c, residual_c, predicted, view_list = _two_labels(block, w)
    else:
        loss_c, residual_c, predicted, view_list = _many_labels(block, w, labels, favourable)
    views = dict(zip(favourable, view_list, strict=True))

    R, n_cells = [residual_c], 2 * groups
    loss_a, slopes, phi_r, grams, start = [], [], [], [], 0
    for notion in notions:
        view = views[notion.favourable]
        phi, d_phi = notion.features(view.s, view.f, view.y, scale)
        stop = start + guess.n_outputs * len(phi)
        U = u[start:stop].reshape(guess.n_outputs, len(phi))
        start = stop
        asked = _asked(notion.labels, view, weight, game)
        loss, residual = guess.loss(U @ phi, z, asked)
        if guess.n_outputs > len(phi):  # as below, through the few features
            r = ((U.T @ residual) * d_phi).sum(axis=0)
            slope_2 = ((U.T @ U @ d_phi) * d_phi).sum(axis=0)
        else:
            slope = U @ d_phi
            r = xp.einsum("or,or->r", residual, slope)
            slope_2 = xp.einsum("or,or->r", slope, slope)
        R.append(r[None] if view.slope is None else r * view.slope)
        slopes.append(slope_2.sum() if asked is None else asked @ slope_2)
        loss_a.append(loss)
        phi_r.append((residual @ phi.T).reshape(-1))
        grams += _gram(phi, asked)
    soft = []
    for c in game.soft:
        view = views[c]
        f_w = view.f if weight is None else view.f * weight
        d_f = f_w * (1 - view.f)
        d_f = d_f[None] if view.slope is None else d_f * view.slope
        R += [d_f * (view.cell == j) for j in range(n_cells)]
        soft.append(xp.bincount(view.cell, weights=f_w, minlength=n_cells)[:n_cells])
    residuals = xp.concatenate(R)
    mean: Any = 0.0
    square: Any = 0.0
    for view in view_list:
        s_w = view.s if weight is None else view.s * weight
        mean, square = mean + s_w.sum() / len(views), square + s_w @ view.s / len(views)
    counts = xp.bincount(
        block.cell * labels + predicted, weights=weight, minlength=n_groups_all * labels**2
    )
    return Sums(
        loss_c=loss_c,
        loss_a=xp.stack(loss_a),
        x_r=xp.concatenate(
            [row_product(residuals, block.X_t), (residuals @ block.extra)[:, None]], axis=1
        ),
        phi_r=xp.concatenate(phi_r),
        phi_phi=xp.stack(grams),
        score=xp.stack([mean, square, *slopes]),
        counts=xp.asarray(counts, dtype=block.y.dtype),
        soft=xp.concatenate(soft) if soft else block.y[:0],
    )


def penalized_sums(block: Block, w: FloatArray, slope: FloatArray, n_cells: int) -> FloatArray:
    r"""Sum up the log-loss with a price per cell of the probabilities, for two labels.

    Of :math:`\sum \ell(s, y)` and :math:`\sum_c \alpha_c \sum_{i \in c} f_i`, f the probability:
    both values, the counts of cell × prediction at the cut 0, and both gradients.
    """
    xp = namespace(block.y)
    loss, residual, predicted, (view,) = _two_labels(block, w)
    priced = like(slope, block.y)[block.cell] * view.f
    priced = priced if block.weight is None else priced * block.weight
    residuals = xp.stack([residual[0], priced * (1 - view.f)])
    counts = xp.bincount(block.cell * 2 + predicted, weights=block.weight, minlength=2 * n_cells)
    counts = xp.asarray(counts, dtype=block.y.dtype)
    products = row_product(residuals, block.X_t), (residuals @ block.extra)[:, None]
    gradients = xp.concatenate(products, axis=1).reshape(-1)
    return xp.concatenate([xp.stack([loss, priced.sum()]), counts, gradients])


def _gram(phi: FloatArray, asked: FloatArray | None) -> list[Any]:
    """Gram matrix of the features, flat; dot products are faster than a matrix product here."""
    weighted, n = phi if asked is None else phi * asked, len(phi)
    half = {(i, j): weighted[i] @ phi[j] for i in range(n) for j in range(i, n)}
    return [half[min(i, j), max(i, j)] for i in range(n) for j in range(n)]


def _asked(
    labels: tuple[int, ...], view: View, weight: FloatArray | None, game: Game
) -> FloatArray | None:
    """Weights of the rows whose group is guessed; None if all rows count alike."""
    asked = None
    if len(labels) == 1:
        asked = view.y == labels[0]
    if game.n_groups_all > game.groups:
        compared = view.cell < 2 * game.groups
        asked = compared if asked is None else asked & compared
    if asked is None:
        return weight
    if weight is None:
        return namespace(view.y).asarray(asked, dtype=view.y.dtype)
    return asked * weight


def cell_sums(block: Block, n_groups_all: int, labels: int) -> FloatArray:
    """Weight and inputs summed over each cell, shape (n_groups_all, labels, 1 + n_columns).

    In float64, as all sums a mean or a deviation is made of: those of float32 leave nothing of a
    deviation that is a thousandth of the mean.
    """
    xp = namespace(block.y)
    member = _members(block.cell, range(n_groups_all * labels), block.y.dtype)
    if block.weight is not None:
        member *= block.weight
    weight, extra = member.sum(axis=1)[:, None], (member @ block.extra)[:, None]
    inputs = row_product(member, _in_float64(block.X).T)
    sums = xp.concatenate([weight, inputs, extra], axis=1)
    return sums.reshape(n_groups_all, labels, -1)


def column_size(block: Block) -> FloatArray:
    """Largest absolute value of each input, and of the extra column."""
    if not len(block.extra):
        return np.zeros(block.X.shape[1] + 1)
    if issparse(block.X):
        size = abs(block.X).max(axis=0).toarray().ravel()
    else:
        xp = namespace(block.X)
        size = xp.maximum(xp.max(block.X, axis=0), -xp.min(block.X, axis=0))
    xp = namespace(block.extra)
    last = xp.max(abs(block.extra))
    return xp.concatenate([xp.asarray(size, dtype=block.extra.dtype), last[None]])


def column_ends(block: Block) -> FloatArray:
    """Largest value of each input, and of its negative, shape (2, n_features)."""
    if issparse(block.X):
        ends = [v.max(axis=0).toarray().ravel() for v in (block.X, -block.X)]
        return np.stack(ends).astype(np.float64)
    xp = namespace(block.X)
    ends = xp.stack([xp.max(block.X, axis=0), -xp.min(block.X, axis=0)])
    return namespace(block.y).asarray(ends, dtype=block.y.dtype)


def square_sums(block: Block) -> FloatArray:
    """Weighted sum of the squares of each input."""
    xp = namespace(block.y)
    one = block.weight if block.weight is not None else xp.ones_like(block.y)
    X = _in_float64(block.X)
    X = X.multiply(X) if issparse(X) else X**2
    return row_product(one[None], X.T)[0]


def product_sums(block: Block) -> FloatArray:
    r"""Products of every two inputs, summed: :math:`X^\top \Omega X`."""
    X, weight = _in_float64(block.X), block.weight
    if issparse(X):
        weighted = X if weight is None else X.multiply(weight[:, None]).tocsr()
        return (X.T @ weighted).toarray()
    weighted = X if weight is None else X * like(weight, X)[:, None]
    return namespace(block.y).asarray(X.T @ weighted, dtype=block.y.dtype)


def extended_products(block: Block) -> FloatArray:
    r"""As :func:`product_sums`, with a column of ones behind the inputs."""
    xp = namespace(block.y)
    ones = xp.ones_like(block.y) if block.weight is None else block.weight
    edge = row_product(ones[None], _in_float64(block.X).T)
    top = xp.concatenate([product_sums(block), edge])
    return xp.concatenate([top, xp.concatenate([edge, ones.sum()[None, None]], 1).T], 1)


def leverages(block: Block, A: FloatArray) -> FloatArray:
    r""":math:`\hat x^\top A \hat x` of each row, its inputs with a 1 behind them; A symmetric."""
    xp, X = namespace(block.y), _in_float64(block.X)
    inner, edge = like(A[:-1, :-1], block.y), like(A[-1], block.y)
    product = X @ inner + 2.0 * edge[:-1]
    if issparse(X):
        square = np.asarray(X.multiply(product).sum(axis=1)).ravel()
    else:
        square = xp.einsum("ij,ij->i", X, product)
    return square + edge[-1]


def curvature_product(block: Block, V: FloatArray) -> FloatArray:
    r""":math:`\hat X^\top \Omega \hat X V` with the rows' weights in Ω."""
    xp = namespace(block.y)
    S = scores_of(block.X, block.extra, V)
    if block.weight is not None:
        S = block.weight[:, None] * S
    return xp.concatenate([row_product(S.T, block.X_t).T, (block.extra @ S)[None]])
