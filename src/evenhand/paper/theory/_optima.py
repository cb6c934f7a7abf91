"""The optima of the losses: the least classification loss, the largest fairness objective."""

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np
from scipy.linalg import block_diag
from scipy.optimize import minimize

from evenhand.core.arrays import FloatArray, namespace
from evenhand.core.oracle import Moments, Oracle
from evenhand.core.row_sums import float64_scores, row_product
from evenhand.core.rows import Block


class Minimum(NamedTuple):
    """Where the classification loss is least."""

    w: FloatArray
    loss: float
    gradient_norm: float


def minimum_loss(oracle: Oracle, *, tol: float = 1e-8) -> Minimum:
    r"""Minimise :math:`L_C` by a trust-region Newton method with exact Hessian products.

    .. math:: \nabla^2 L_C\, v = \tfrac1N \hat X^\top \Omega\, \mathrm{diag}(f(1-f))\, \hat X v + \lambda v

    Parameters
    ----------
    oracle : Oracle
        The problem; in float64, or the gradient cannot become as small as ``tol``.
    tol : float, default=1e-8
        Gradient norm to stop at.

    Returns
    -------
    Minimum
        Weights, loss, and the norm of the gradient there.
    """  # noqa: E501
    u = np.zeros(oracle.n_adversary)

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        m = oracle.evaluate(w, u)
        return m.loss_c, m.grad_c

    def product(w: FloatArray, v: FloatArray) -> FloatArray:
        image = oracle.rows.sum(_hessian_product, *map(oracle.weights, (w, v))) / oracle.total
        image = image if oracle.metric is None else oracle.metric.gradient(image)
        return image + oracle.ridge * v

    # A tenth of it: close to the optimum another Newton step costs little.
    optimum = minimize(
        loss,
        np.zeros(oracle.n_weights),
        jac=True,
        hessp=product,
        method="trust-ncg",
        options={"gtol": tol / 10, "maxiter": 500},
    )
    return Minimum(optimum.x, float(optimum.fun), float(np.linalg.norm(optimum.jac)))


def _hessian_product(block: Block, w: FloatArray, v: FloatArray) -> FloatArray:
    """Hessian of the summed log-loss at w, times v."""
    xp, s = namespace(block.y), float64_scores(block, w)
    f = 1 / (1 + xp.exp(-s))
    r = f * (1 - f) * float64_scores(block, v)
    r = r if block.weight is None else r * block.weight
    return xp.concatenate([row_product(r[None], block.X_t)[0], (block.extra @ r)[None]])


def best_response(oracle: Oracle, w: FloatArray, *, scale: float = 1.0) -> FloatArray:
    r"""Find the adversary that guesses groups best at w, :math:`\arg\max_u L_u(w, u)`.

    BFGS in coordinates that make the adversary's features uncorrelated, to a gradient of 1e-9.
    Features that say the same everywhere, such as powers of equal scores, get what little they need.

    Parameters
    ----------
    oracle : Oracle
        The problem.
    w : ndarray of shape (n_weights,)
        Weights.
    scale : float, default=1.0
        As in :meth:`evenhand.core.oracle.Oracle.evaluate`. The loss reached does not depend on it.

    Returns
    -------
    ndarray of shape (n_adversary,)
        The adversary's weights.
    """  # noqa: E501
    sums = oracle.sums(w, np.zeros(oracle.n_adversary), scale if oracle.scaled else 1.0)
    grams = zip(oracle.grams(sums), oracle.asked, strict=True)
    gram = block_diag(*(gram * asked for gram, asked in grams))
    size = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    kept = values > 1e-13 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None] * np.sqrt(oracle.total)
    basis = np.kron(np.eye(oracle.game.guess.n_outputs), basis)

    def loss(v: FloatArray) -> tuple[float, FloatArray]:
        m = oracle.evaluate(w, basis @ v, scale)
        return -m.loss_u, -(basis.T @ m.grad_u)

    optimum = minimize(loss, np.zeros(basis.shape[1]), jac=True, options={"gtol": 1e-9})
    return np.asarray(basis @ optimum.x)


def at_best_response(oracle: Oracle, w: FloatArray) -> tuple[Moments, FloatArray]:
    """Moments at w and the adversary's best response to it."""
    scale = oracle.evaluate(w, np.zeros(oracle.n_adversary)).scale
    u = best_response(oracle, w, scale=scale)
    return oracle.evaluate(w, u, scale), u


class FairOptimum(NamedTuple):
    r"""The largest fairness objective: what it cannot exceed, and the best point found.

    ``bound`` is at least :math:`\max L_F`; ``value`` is attained at (w, u), so at most that.
    """

    bound: float
    value: float
    w: FloatArray
    u: FloatArray


def fair_optimum(
    oracle: Oracle, starts: Iterable[FloatArray] = (), *, max_iter: int = 30
) -> FairOptimum:
    r"""Largest value of the fairness objective when the adversary answers as well as it can.

    .. math:: V(w) = \pm \min_u \text{log-loss}(g, z) - \tfrac\kappa2 D(w)^2

    with + in the game (corrected reading) and − as printed. In the game the adversary knows at any
    w what it knows at w = 0, where all scores are equal: the shares of the groups for statistical
    parity, those for either label for false discovery. V is therefore at most the entropy
    :math:`H(z)`, or :math:`H(z \mid y)`; for statistical parity w = 0 attains it. As printed, V is
    at most 0, and it has no maximum: shrinking w while u grows leaves the log-loss of statistical
    parity as it is and takes the regulariser away, so the supremum is at infinity.

    From w = 0 and from ``starts``, V is raised by L-BFGS, with the gradient in w at the best
    response (Danskin). V is not concave, so the best point found may be short of the maximum; as
    printed w = 0 is a stationary point, and other starts are needed.

    Parameters
    ----------
    oracle : Oracle
        The problem.
    starts : iterable of ndarray, optional
        More points to start from.
    max_iter : int, default=30
        Iterations from each start.

    Returns
    -------
    FairOptimum
        Bound, best value found, and where.
    """
    zero = np.zeros(oracle.n_weights)
    m, u = at_best_response(oracle, zero)
    bound = -m.loss_u if oracle.adversary_sign > 0 else 0.0
    best = FairOptimum(bound, m.loss_w, zero, u)

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        m, u = at_best_response(oracle, w)
        if m.loss_w > best.value:
            best = FairOptimum(bound, m.loss_w, w.copy(), u)
        return -m.loss_w, -m.grad_f

    for start in [zero, *starts]:
        if best.value >= bound - 1e-9:
            break
        minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return best
