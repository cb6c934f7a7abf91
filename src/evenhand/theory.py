r"""The paper's theory on a given problem: constants, bounds, and what a fit measures.

Three kinds of things, kept apart:

- **measured**: :func:`constants` of a run, :func:`measured_regrets` over its iterations and the
  :func:`certificate` of a fitted classifier;
- **theorems**, once their slips are mended and their assumptions hold: :func:`fairness_bound`,
  :func:`fairness_iterations`, :func:`agd_classification_bound`, :func:`agd_fairness_bound`;
- **the paper's expression** for the price of fairness, :func:`price_of_fairness`, which is no
  theorem: a lower bound is claimed from recursions that bound from above.

``reading="printed"`` gives a formula as it stands in the paper, ``"corrected"`` (the default) as
the mathematics needs it; each docstring names what was mended. All of them take
:math:`\nabla f(u) - \nabla f(v)` in the definition of smoothness, where
:math:`\nabla f(u) - \nabla f(u)` is printed, and :math:`\nabla_w` where the proof on fairness has
one :math:`\nabla_u` too many.

The theorems on fairness assume an :math:`L_F` that is concave in u and w together. The model's is
not, so on data their bounds are things to compare with, not to rely on.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import minimize
from scipy.sparse.linalg import LinearOperator, eigsh
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from evenhand.classifier import FairClassifier
from evenhand.notions import READINGS
from evenhand.oracle import Moments, Oracle, float64_scores
from evenhand.solvers import Iteration, Problem
from evenhand.updates import modified, power_schedule

__all__ = [
    "Certificate",
    "Constants",
    "FairOptimum",
    "Minimum",
    "agd_classification_bound",
    "agd_fairness_bound",
    "best_response",
    "bregman",
    "certificate",
    "constants",
    "descend",
    "fair_optimum",
    "fairness_bound",
    "fairness_iterations",
    "measured_regrets",
    "minimum_loss",
    "price_contraction",
    "price_expression",
    "price_of_fairness",
    "step_totals",
]

FloatArray = NDArray[Any]


class Game(Problem, Protocol):
    """A solver's problem that also says which way w pulls on the adversary's loss."""

    adversary_sign: int


# Constants ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Constants:
    r"""The constants of the paper's theorems, on one problem and one run.

    Parameters
    ----------
    L1 : float
        Smoothness of :math:`L_C`; holds everywhere.
    L2 : float
        Smoothness of :math:`L_F` in w and u together, the largest found along the run.
    G : float
        Least number with :math:`\|g_F\|/G \le \|g_C\| \le G\|g_F\|` at every point of the run.
    G_C, G_F : float
        Largest norms of :math:`\nabla_w L_C` and :math:`\nabla_w L_F` found in the run's ball.
    D : float
        Radius of the ball about the optimum of :math:`L_F`, in w and u, that holds the run.
    R : float
        Radius of the ball about the optimum of :math:`L_C`, in w, that holds the run.
    """

    L1: float
    L2: float
    G: float
    G_C: float
    G_F: float
    D: float
    R: float

    @property
    def L(self) -> float:  # noqa: N802
        r""":math:`\max(L_1, L_2)`: the paper has one L for both losses."""
        return max(self.L1, self.L2)


def constants(
    problem: Game,
    run: Sequence[Iteration],
    *,
    w_optimum: FloatArray,
    fair: tuple[FloatArray, FloatArray],
    start: FloatArray | None = None,
    totals: FloatArray | None = None,
    n_points: int = 8,
    n_draws: int = 8,
) -> Constants:
    r"""Constants of a problem along a run.

    How each is obtained:

    - :math:`L_1` is ``problem.smoothness``, for an oracle
      :math:`\sigma_{\max}(\hat X)^2/4N + \lambda` by Lanczos with 2% to spare.
    - :math:`L_2` is the largest :math:`\|\nabla^2 L_F\|` at ``n_points`` iterates, each by Lanczos
      on central differences of the gradient. :math:`L_F` has products of u and w in it and is not
      smooth on the whole space, so this belongs to the run.
    - G is the largest ratio of the two gradient norms, either way, over the points of the run where
      neither is 0. It cannot be had over a ball: at the optimum of :math:`L_C` one norm is 0, so
      the paper's assumption fails near it, and a run that starts there has a very large G. At
      w = 0, u = 0, the other usual start, :math:`\nabla L_F` is 0 and it fails too.
    - :math:`G_C` and :math:`G_F` are maxima over the run and over ``n_draws`` points drawn from the
      ball of radius R about the optimum of :math:`L_C` (u as at iterates of the run).
    - D and R are radii of the balls about the two optima that hold the run. In the paper they are
      maxima over all w and u, which on :math:`\mathbb R^n` are infinite; and it has one
      :math:`w^*`, which would have to be the optimum of both losses.

    Parameters
    ----------
    problem : Oracle
        The problem (or anything else with its interface).
    run : sequence of Iteration
        What :func:`evenhand.solvers.solve` or :func:`descend` yielded.
    w_optimum : ndarray of shape (n_weights,)
        Where :math:`L_C` is least: :func:`minimum_loss`.
    fair : tuple of (ndarray, ndarray)
        Weights and adversary where :math:`L_F` is largest: :func:`fair_optimum`.
    start : ndarray of shape (n_weights,), optional
        Where the run started, zero by default; its u was 0.
    totals : ndarray, optional
        :func:`step_totals` of a run of AGD+: its mirror points are then in the ball too.
    n_points, n_draws : int, default=8
        At how many iterates :math:`L_2` is measured, and how many points are drawn.

    Returns
    -------
    Constants
        The constants.
    """
    if not run:
        raise ValueError("the run has no iterations.")
    start = np.zeros(problem.n_weights) if start is None else np.asarray(start, dtype=np.float64)
    q = np.array([start, *(it.q for it in run)])
    u = np.array([np.zeros(problem.n_adversary), *(it.u for it in run)])
    points = q
    if totals is not None:
        a = np.diff(totals, prepend=0.0)
        before = totals - a
        points = np.vstack([q, q[1:] + (before / a)[:, None] * np.diff(q, axis=0)])
    R = float(np.linalg.norm(points - w_optimum, axis=1).max())
    away = np.linalg.norm(points - fair[0], axis=1).max(), np.linalg.norm(u - fair[1], axis=1).max()

    norms = np.array(
        [[np.linalg.norm(g) for g in (it.moments.grad_c, it.moments.grad_f)] for it in run]
    )
    high, low = norms.max(axis=1), norms.min(axis=1)
    G = float(np.divide(high, low, out=np.ones_like(high), where=low > 0).max())
    chosen = np.unique(np.linspace(0, len(run) - 1, min(n_points, len(run))).astype(int))
    rng = np.random.default_rng(0)
    drawn = []
    for i in range(n_draws):
        direction = rng.standard_normal(problem.n_weights)
        length = R * rng.random() ** (1 / problem.n_weights)
        w = w_optimum + length * direction / np.linalg.norm(direction)
        u_run = run[chosen[i % len(chosen)]].u
        m = problem.evaluate(w, u_run, problem.evaluate(w, u_run).scale)
        drawn.append([np.linalg.norm(m.grad_c), np.linalg.norm(m.grad_f)])
    largest = np.vstack([norms, *drawn]).max(axis=0)
    L2 = max(_smoothness_f(problem, run[i].q, run[i].u) for i in chosen)
    return Constants(
        L1=problem.smoothness,
        L2=L2,
        G=G,
        G_C=float(largest[0]),
        G_F=float(largest[1]),
        D=float(np.hypot(*away)),
        R=R,
    )


def _smoothness_f(problem: Game, w: FloatArray, u: FloatArray) -> float:
    """Norm of the Hessian, in w and u together, of what w ascends."""
    n, x, scale = problem.n_weights, np.concatenate([w, u]), problem.evaluate(w, u).scale
    h = 1e-5 * max(1.0, float(np.linalg.norm(x)))

    def gradient(x: FloatArray) -> FloatArray:
        m = problem.evaluate(x[:n], x[n:], scale)
        # u ascends the negative log-loss whichever way w goes.
        return np.concatenate([m.grad_f, -problem.adversary_sign * m.grad_u])

    def product(v: FloatArray) -> FloatArray:
        d = h * v.ravel() / np.linalg.norm(v)
        return (gradient(x + d) - gradient(x - d)) * (np.linalg.norm(v) / (2 * h))

    operator = LinearOperator((len(x), len(x)), matvec=product, dtype=np.float64)
    v0 = np.random.default_rng(0).standard_normal(len(x))
    values = eigsh(operator, k=1, which="LM", tol=1e-3, v0=v0, return_eigenvectors=False)
    return float(np.abs(values[0]))


# Optima ------------------------------------------------------------------------------------------


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
        total = oracle.total * oracle.ridge * v
        for block in oracle.blocks:
            s = float64_scores(block, w)
            r = expit(s) * expit(-s) * float64_scores(block, v)
            r = r if block.weight is None else r * block.weight
            total = total + np.append(block.X_t @ r, block.extra @ r)
        return total / oracle.total

    # A tenth of it: close to the optimum another Newton step costs little.
    found = minimize(
        loss,
        np.zeros(oracle.n_weights),
        jac=True,
        hessp=product,
        method="trust-ncg",
        options={"gtol": tol / 10, "maxiter": 500},
    )
    return Minimum(found.x, float(found.fun), float(np.linalg.norm(found.jac)))


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
        As in :meth:`evenhand.oracle.Oracle.evaluate`. The loss reached does not depend on it.

    Returns
    -------
    ndarray of shape (n_adversary,)
        The adversary's weights.
    """  # noqa: E501
    gram = oracle.sums(w, np.zeros(oracle.n_adversary), scale if oracle.scaled else 1.0).phi_phi
    size = np.sqrt(np.maximum(np.diag(gram), np.finfo(np.float64).tiny))
    values, vectors = np.linalg.eigh(gram / np.outer(size, size))
    kept = values > 1e-13 * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept]) / size[:, None] * np.sqrt(oracle.total)

    def loss(v: FloatArray) -> tuple[float, FloatArray]:
        m = oracle.evaluate(w, basis @ v, scale)
        return -m.loss_u, -(basis.T @ m.grad_u)

    found = minimize(loss, np.zeros(basis.shape[1]), jac=True, options={"gtol": 1e-9})
    return np.asarray(basis @ found.x)


def _value(oracle: Oracle, w: FloatArray) -> tuple[Moments, FloatArray]:
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
    m, u = _value(oracle, zero)
    bound = -m.loss_u if oracle.adversary_sign > 0 else 0.0
    best = FairOptimum(bound, m.loss_w, zero, u)

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        nonlocal best
        m, u = _value(oracle, w)
        if m.loss_w > best.value:
            best = FairOptimum(bound, m.loss_w, w.copy(), u)
        return -m.loss_w, -m.grad_f

    for start in [zero, *starts]:
        if best.value >= bound - 1e-9:
            break
        minimize(loss, start, jac=True, method="L-BFGS-B", options={"maxiter": max_iter})
    return best


# The paper's expressions -------------------------------------------------------------------------


def _check(c: float, alpha: float, reading: str) -> None:
    if not 0 <= c < 0.5:
        raise ValueError(
            f"c={c}; the bounds need 0 <= c < 1/2. At c = 1/2 the exponent 1/(1 - 2c) is infinite: "
            "the paper's own alpha = 1/sqrt(t) is just outside its theorem."
        )
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha={alpha}; the proofs use 0 < alpha <= 1.")
    _check_reading(reading)


def _check_reading(reading: str) -> None:
    if reading not in READINGS:
        raise ValueError(f"reading={reading!r}; use one of {', '.join(map(repr, READINGS))}.")


def fairness_bound(
    t: Any, k: Constants, *, c: float, alpha: float = 1.0, reading: str = "corrected"
) -> FloatArray:
    r"""Bound on :math:`R_F(t) = \max L_F - L_F(w_t, u_t)` for Algorithm 1 (theorem on fairness).

    With :math:`\alpha_t = \alpha t^{-c}`, steps :math:`\eta_1 = 1/2L` and
    :math:`\eta_2 = \alpha_t / 2L(1 + G^2)`, and :math:`\beta = 4LD^2(1 + G^2)`,

    .. math::
        \frac{1}{R_F(t)} \ge \frac{1}{LD^2}
            + \frac{\alpha^2}{\beta}\,\frac{(t+1)^{1-2c} - 1}{1-2c} .

    A theorem if :math:`L_F` is concave in (w, u) together and the constants hold along the run.
    Mended: the paper solves the differential equation from 0, which gives
    :math:`t^{1-2c}` in place of :math:`(t+1)^{1-2c} - 1`; the recursion gives
    :math:`\sum_{i \le t} i^{-2c}`, which is less than the former and at least the latter.

    Parameters
    ----------
    t : array-like
        Iterations done.
    k : Constants
        The constants.
    c : float
        Exponent of the schedule, 0 ≤ c < ½.
    alpha : float, default=1.0
        Its factor, at most 1. The paper has 1.
    reading : {"corrected", "printed"}, default="corrected"
        Which form.

    Returns
    -------
    ndarray
        The bound at each t; :math:`LD^2` at t = 0.

    Examples
    --------
    >>> from evenhand.theory import Constants, fairness_bound
    >>> k = Constants(L1=1, L2=1, G=1, G_C=1, G_F=1, D=1, R=1)
    >>> fairness_bound([0, 8, 80], k, c=0.0).round(3).tolist()
    [1.0, 0.5, 0.091]
    """
    _check(c, alpha, reading)
    t, p = np.asarray(t, dtype=np.float64), 1 - 2 * c
    power = t**p if reading == "printed" else (t + 1) ** p - 1
    beta = 4 * k.L * k.D**2 * (1 + k.G**2)
    return np.asarray(1 / (1 / (k.L * k.D**2) + alpha**2 * power / (p * beta)))


def fairness_iterations(
    epsilon: Any, k: Constants, *, c: float, alpha: float = 1.0, reading: str = "corrected"
) -> FloatArray:
    r"""Count the iterations T to :math:`R_F(T) \le \varepsilon` (theorem on fairness), for c < ½.

    :func:`fairness_bound` solved for t:

    .. math::
        T = \Big(1 + (1-2c)\,\frac{4LD^2(1+G^2)}{\alpha^2}
            \Big(\frac1\varepsilon - \frac{1}{LD^2}\Big)\Big)^{\frac{1}{1-2c}} - 1 .

    Printed: :math:`T = O\big((LD^2(1+G^2)(1-2c)/\varepsilon)^{1/(1-2c)}\big)`, here with the
    constant 1. :math:`c = \tfrac12` is the excluded boundary.

    Parameters
    ----------
    epsilon : array-like
        Targets, positive.
    k, c, alpha, reading
        As in :func:`fairness_bound`.

    Returns
    -------
    ndarray
        T, not rounded up; 0 where the target holds from the start.
    """
    _check(c, alpha, reading)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    if not (epsilon > 0).all():
        raise ValueError("epsilon must be positive.")
    p, start, spread = 1 - 2 * c, k.L * k.D**2, 1 + k.G**2
    with np.errstate(over="ignore"):
        if reading == "printed":
            return np.asarray((start * spread * p / epsilon) ** (1 / p))
        inverse = np.maximum(1 / epsilon - 1 / start, 0.0)
        return np.asarray((1 + p * 4 * start * spread / alpha**2 * inverse) ** (1 / p) - 1)


def price_contraction(delta: Any, k: Constants, *, reading: str = "corrected") -> FloatArray:
    r"""Bracket of the recursion behind the price of fairness: the loss falls only if positive.

    The proof has, while :math:`R_C(t) = L_C(w_t) - \min L_C \ge \delta`,

    .. math::
        R_C(t+1) - R_C(t) \le -\frac{R_C(t)^2}{4L(1+G^2)t^c}
            \Big(\frac{1}{R^2} - \frac{2 G\, G_C^2}{\delta^2}\Big) .

    Mended: :math:`\langle\nabla L_C, \nabla L_F\rangle \le G\,G_C^2`, printed :math:`G_C G`; R
    about the optimum of :math:`L_C`, printed D. (The proof also drops
    :math:`\|\Pi_{g_F} g_C\|^2`, which would make the bracket smaller still.) By convexity
    :math:`R_C \le R\,G_C`, and since :math:`G \ge 1` the mended bracket is negative for every δ up
    to that: the recursion never says that the loss falls.

    Parameters
    ----------
    delta : array-like
        Least regret assumed, positive.
    k : Constants
        The constants.
    reading : {"corrected", "printed"}, default="corrected"
        Which form.

    Returns
    -------
    ndarray
        The bracket.
    """
    _check_reading(reading)
    square = np.asarray(delta, dtype=np.float64) ** 2
    if reading == "printed":
        return np.asarray(1 / k.D**2 - 2 * k.G_C * k.G / square)
    return np.asarray(1 / k.R**2 - 2 * k.G * k.G_C**2 / square)


def price_expression(t: Any, k: Constants, *, c: float, reading: str = "corrected") -> FloatArray:
    r"""Give the paper's expression for :math:`R_C(t) = L_C(w_t) - \min L_C` in Algorithm 1.

    .. math:: \frac{1}{\delta'(t)} = \frac{1}{LR^2} + \frac{t^{1-c}}{8LR^2(1+G^2)(1-c)}

    The paper says :math:`R_C(t) \ge \delta'(t)`. That does not follow: the recursion it comes from
    bounds :math:`R_C` from above (see :func:`price_contraction`), and :math:`1/R^2` less something
    is then replaced by :math:`1/2R^2`. Nor is it true: where :math:`L_C = \tfrac12\|w\|^2` and
    :math:`L_F = -L_C`, all assumptions hold and fairness has no price. It is kept as the paper's
    expression, to be set beside the measured price. R is about the optimum of :math:`L_C`; printed
    D.

    Parameters
    ----------
    t : array-like
        Iterations done.
    k : Constants
        The constants.
    c : float
        Exponent of the schedule, 0 ≤ c < ½.
    reading : {"corrected", "printed"}, default="corrected"
        Which radius.

    Returns
    -------
    ndarray
        :math:`\delta'` at each t.
    """
    _check(c, 1.0, reading)
    start = k.L * (k.D if reading == "printed" else k.R) ** 2
    power = np.asarray(t, dtype=np.float64) ** (1 - c)
    return np.asarray(1 / (1 / start + power / (8 * start * (1 + k.G**2) * (1 - c))))


def price_of_fairness(
    epsilon: Any, k: Constants, *, c: float, delta: float = 0.0, reading: str = "corrected"
) -> FloatArray:
    r"""Give the paper's expression for the price of a fairness loss within ε of its optimum.

    :math:`\max\{\delta, \delta'(T(\varepsilon))\}`, from :func:`price_expression` and
    :func:`fairness_iterations`; no theorem, for the reason given there. Printed:

    .. math::
        \frac{1}{\delta'} = \frac{1}{LD^2} + \frac{1}{8(1-c)^2\varepsilon}
            \Big(\frac{LD^2(1+G^2)(1-2c)}{\varepsilon}\Big)^{\frac{c}{1-2c}},

    which has put :math:`1/(1-c)` for the :math:`1-2c` that T leaves there.

    Parameters
    ----------
    epsilon : array-like
        How near the optimum of :math:`L_F`.
    k, c, reading
        As in :func:`price_expression`.
    delta : float, default=0.0
        How near the minimum of :math:`L_C` plain gradient descent is after as many iterations; at
        most :math:`2R\,G_C\sqrt{G}` (printed :math:`2D\sqrt{G_C G}`).

    Returns
    -------
    ndarray
        The expression at each ε.
    """
    _check(c, 1.0, reading)
    printed = reading == "printed"
    most = 2 * (k.D * np.sqrt(k.G_C * k.G) if printed else k.R * k.G_C * np.sqrt(k.G))
    if not 0 <= delta <= most:
        raise ValueError(f"delta={delta}; the paper's expression needs 0 <= delta <= {most:.4g}.")
    if printed:
        epsilon, start = np.asarray(epsilon, dtype=np.float64), k.L * k.D**2
        power = (start * (1 + k.G**2) * (1 - 2 * c) / epsilon) ** (c / (1 - 2 * c))
        price = 1 / (1 / start + power / (8 * (1 - c) ** 2 * epsilon))
    else:
        price = price_expression(fairness_iterations(epsilon, k, c=c), k, c=c)
    return np.maximum(delta, price)


def bregman(a: FloatArray, b: FloatArray, *, reading: str = "corrected") -> float:
    r"""Bregman divergence of :math:`\psi = \tfrac12\|\cdot\|^2`: :math:`\tfrac12\|a - b\|^2`.

    Printed: :math:`\tfrac12\|a\|^2 + \tfrac12\|b\|^2 - 2\langle a, b\rangle`, which can be
    negative.
    """
    _check_reading(reading)
    factor = 2.0 if reading == "printed" else 1.0
    return float(0.5 * (a @ a) + 0.5 * (b @ b) - factor * (a @ b))


def step_totals(
    problem: Problem, run: Sequence[Iteration], *, step: float | None = None
) -> FloatArray:
    r"""Sum the weights of a run of AGD+, :math:`A_t = \sum_{i \le t} a_i`.

    The solver's own :math:`a_t = (1 + \sqrt{1 + 4L_tA_{t-1}})/2L_t`, with the :math:`L_t` of the
    run; :math:`A_t \ge t^2/4L` if :math:`L_t \le L`.

    Parameters
    ----------
    problem : Oracle
        The problem.
    run : sequence of Iteration
        What :func:`evenhand.solvers.solve` yielded.
    step : float, optional
        The fixed step it was given, if any.

    Returns
    -------
    ndarray of shape (len(run),)
        :math:`A_1, A_2, \dots`.
    """
    totals, total, steepness = [], 0.0, 0.0
    for it in run:
        L = problem.smoothness_at(it.alpha, steepness) if step is None else 1 / step
        total += (1 + np.sqrt(1 + 4 * L * total)) / (2 * L)
        steepness = it.moments.steepness
        totals.append(total)
    return np.array(totals)


def agd_classification_bound(
    total: Any,
    k: Constants,
    *,
    alpha: float,
    distance: float | None = None,
    reading: str = "corrected",
) -> FloatArray:
    r"""Bound on :math:`L_C(q_t) - \min L_C` for AGD+ with the modified direction.

    What is not :math:`\nabla L_C` in the direction is noise to AGD+,
    :math:`\lambda_t = -(\alpha g_F + \Pi_{g_F} g_C)`, so that

    .. math:: L_C(q_t) - \min L_C \le \frac{\tfrac12\|w_0 - w^*\|^2}{A_t} + R\,(\alpha G_F + G_C) .

    A theorem. Mended: the noise is at most :math:`\alpha G_F + G_C`, printed :math:`2G_F`; the
    divergence (:func:`bregman`); R over the run's ball, as it is infinite on :math:`\mathbb R^n`.
    But it never says anything: :math:`R\,G_C` alone is what convexity gives for any point of the
    ball.

    Parameters
    ----------
    total : array-like
        :math:`A_t`: :func:`step_totals`.
    k : Constants
        The constants.
    alpha : float
        The constant α; of a falling schedule the first.
    distance : float, optional
        :func:`bregman` of :math:`w_0` and :math:`w^*`; by default :math:`\tfrac12R^2`.
    reading : {"corrected", "printed"}, default="corrected"
        Which noise.

    Returns
    -------
    ndarray
        The bound at each :math:`A_t`.
    """
    _check_reading(reading)
    noise = 2 * k.G_F if reading == "printed" else alpha * k.G_F + k.G_C
    distance = 0.5 * k.R**2 if distance is None else distance
    return np.asarray(distance / np.asarray(total, dtype=np.float64) + k.R * noise)


def agd_fairness_bound(
    total: Any,
    k: Constants,
    *,
    alpha: float,
    distance: float | None = None,
    reading: str = "corrected",
) -> FloatArray:
    r"""Bound on :math:`\max L_F - L_F(u_t, q_t)` for AGD+ with the modified direction.

    The direction is :math:`-\alpha(g_F + \lambda'_t)` with the noise
    :math:`\lambda'_t = -(g_C - \Pi_{g_F} g_C)/\alpha`, so for :math:`L_F` it is AGD+ with the
    weights :math:`\alpha a_t`, and

    .. math:: \max L_F - L_F(u_t, q_t) \le \frac{\tfrac12\|x_0 - x^*\|^2}{\alpha A_t}
        + \frac{D\,G_C}{\alpha}, \qquad x = (w, u) .

    A theorem for an :math:`L_F` that is concave in w, without u (u does not move by AGD+), and
    :math:`L_t \ge \alpha L_2`. Mended: :math:`\lambda'_t` has :math:`\nabla L_C`, printed
    :math:`\nabla L_F`; the sum of the weights is :math:`\alpha A_t`, where the paper takes α into
    ψ as well and so loses it; the 2 before :math:`D\,G_C/\alpha` has no source; the divergence; D
    over the run's ball. The printed weights also need :math:`L_1 \ge 1`, which is not said.

    Parameters
    ----------
    total : array-like
        :math:`A_t`: :func:`step_totals`.
    k : Constants
        The constants.
    alpha : float
        The constant α; of a falling schedule the last.
    distance : float, optional
        :func:`bregman` of start and optimum, w and u together; by default :math:`\tfrac12D^2`.
    reading : {"corrected", "printed"}, default="corrected"
        Which form.

    Returns
    -------
    ndarray
        The bound at each :math:`A_t`.
    """
    _check_reading(reading)
    total = np.asarray(total, dtype=np.float64)
    distance = 0.5 * k.D**2 if distance is None else distance
    if reading == "printed":
        return np.asarray(distance / total + 2 * k.D * k.G_C / alpha)
    return np.asarray(distance / (alpha * total) + k.D * k.G_C / alpha)


# Measurements ------------------------------------------------------------------------------------


def descend(
    problem: Problem,
    w: FloatArray,
    *,
    smoothness: float,
    G: float,
    c: float,
    alpha: float = 1.0,
    max_iter: int,
) -> Iterator[Iteration]:
    r"""Run Algorithm 1 with the learning rates of its theorem.

    :math:`\alpha_t = \alpha t^{-c}`, :math:`\eta_1 = 1/2L` for u and
    :math:`\eta_2 = \alpha_t/2L(1+G^2)` for w. The theorem needs L and G to hold along the run, so
    guess, run, and compare with what :func:`constants` measures.

    Parameters
    ----------
    problem : Oracle
        The problem.
    w : ndarray of shape (n_weights,)
        The start; u starts at 0.
    smoothness, G : float
        L and G.
    c, alpha : float
        The schedule.
    max_iter : int
        Iterations.

    Yields
    ------
    Iteration
        As :func:`evenhand.solvers.solve` does.
    """
    _check(c, alpha, "corrected")
    u, scale, schedule = np.zeros(problem.n_adversary), 1.0, power_schedule(alpha, c)
    for t in range(1, max_iter + 1):
        alpha_t = schedule(t)
        m = problem.evaluate(w, u, scale)
        direction = modified(m.grad_c, m.grad_f, alpha_t)
        w = w - alpha_t / (2 * smoothness * (1 + G**2)) * direction
        u = u + m.grad_u / (2 * smoothness)
        scale = m.scale
        yield Iteration(t, alpha_t, m, direction, w, u)


def measured_regrets(
    problem: Game,
    run: Sequence[Iteration],
    *,
    min_loss_c: float,
    max_loss_f: float,
    bounds: Mapping[str, Callable[[FloatArray], Any]] | None = None,
    n_points: int = 50,
) -> pd.DataFrame:
    r"""Measure :math:`R_F(t)` and :math:`R_C(t)` over the iterations of a run, beside the bounds.

    :math:`R_C(t) = L_C(q_t) - \min L_C`. As printed, where u and w ascend one function,
    :math:`R_F(t) = \max L_F - L_F(w_t, u_t)`. In the game a slow adversary would flatter w, so
    there u is the best response to :math:`q_t`.

    Parameters
    ----------
    problem : Oracle
        The problem (in the game an oracle; as printed anything with its interface will do).
    run : sequence of Iteration
        What :func:`evenhand.solvers.solve` or :func:`descend` yielded.
    min_loss_c, max_loss_f : float
        The optima: ``minimum_loss(...).loss`` and ``fair_optimum(...).bound``.
    bounds : mapping of {"F", "C"} to callable, optional
        What to put beside them: functions of t.
    n_points : int, default=50
        At how many iterations, evenly spaced.

    Returns
    -------
    DataFrame
        Columns ``loss`` (``"F"`` or ``"C"``), ``t``, ``measured``, ``bound`` (NaN where none was
        given).
    """
    chosen = np.unique(np.linspace(0, len(run) - 1, min(n_points, len(run))).astype(int))
    t = np.array([run[i].t for i in chosen])
    regret_f, regret_c = [], []
    for i in chosen:
        it = run[i]
        if problem.adversary_sign > 0:
            m, _ = _value(problem, it.q)  # type: ignore[arg-type]
        else:
            m = problem.evaluate(it.q, it.u, it.moments.scale)
        regret_f.append(max_loss_f - m.loss_w)
        regret_c.append(m.loss_c - min_loss_c)
    frames = []
    for name, measured in (("F", regret_f), ("C", regret_c)):
        bound = (bounds or {}).get(name)
        values = np.full(len(t), np.nan) if bound is None else np.asarray(bound(t), dtype=float)
        frames.append(pd.DataFrame({"loss": name, "t": t, "measured": measured, "bound": values}))
    return pd.concat(frames, ignore_index=True)


@dataclass(frozen=True)
class Certificate:
    r"""What a fitted classifier measures against the paper's notion of a solution.

    :math:`(\hat w, \hat u)` is an (ε, δ)-solution if :math:`L_C(\hat w) \le \min L_C + \delta` and
    :math:`L_F(\hat u, \hat w) \ge \max L_F - \varepsilon`. The classifier is one for these ε and δ.
    """

    epsilon: float
    """How far the fairness objective is from what it cannot exceed."""
    epsilon_found: float
    """How far it is from the best point found; the least ε is between the two."""
    delta: float
    r"""Price of fairness :math:`L_C(\hat w) - \min L_C`."""
    delta_uncut: float
    """The same without the chosen cut: the price of the iterate itself."""
    loss_c: float
    r""":math:`L_C(\hat w)`."""
    min_loss_c: float
    r""":math:`\min L_C`."""
    gradient_norm: float
    r"""Norm of :math:`\nabla L_C` where that was found."""
    loss_f: float
    r""":math:`L_F(\hat u, \hat w)`."""
    max_loss_f: float
    r"""What :math:`L_F` cannot exceed."""
    gap: float
    r"""The regulariser's :math:`D(\hat w)`."""
    cut: float
    """The chosen decision cut."""

    @property
    def price(self) -> float:
        """The measured price of fairness, another name of ``delta``."""
        return self.delta

    def to_frame(self) -> pd.DataFrame:
        """One row with a column for each number."""
        return pd.DataFrame([asdict(self)])

    def __str__(self) -> str:
        return (
            f"({self.epsilon:.4g}, {self.delta:.4g})-solution\n"
            f"  epsilon  {self.epsilon:.4g}: fairness objective {self.loss_f:.6f}, at most "
            f"{self.max_loss_f:.6f} (against the best point found: {self.epsilon_found:.4g})\n"
            f"  delta    {self.delta:.4g}: classification loss {self.loss_c:.6f}, at least "
            f"{self.min_loss_c:.6f} (without the cut: {self.delta_uncut:.4g})"
        )


def certificate(
    model: FairClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
) -> Certificate:
    r"""Measure ε, δ and the price of fairness of a fitted classifier.

    :math:`\hat w` is what the classifier predicts with: ``coef_`` and ``intercept_``, and the
    latter is the iterate's less the chosen cut. (With a noise column there is no intercept to take
    the cut into, so :math:`\hat w` is the iterate itself.) :math:`\hat u` is the adversary's best
    response to it. :math:`\min L_C` is found by :func:`minimum_loss` to a gradient norm of 1e-8
    and :math:`\max L_F` is bounded by :func:`fair_optimum`. All is in float64, with the losses,
    ``l2`` and ``mu`` of the classifier.

    Parameters
    ----------
    model : FairClassifier
        A fitted classifier, or what its ``at`` gave.
    X, y, sensitive_features, sample_weight
        Data as for ``fit``: the training data, or others, on which the losses are then those.

    Returns
    -------
    Certificate
        The numbers.
    """
    check_is_fitted(model)
    oracle, inputs = _oracle_of(model, X, y, sensitive_features, sample_weight)
    point = model.frontier_.select(model.tau)
    uncut = model.trajectory_.iterates[point.iterate]
    last = uncut[-1] if model.extra_column == "noise" else model.intercept_[0]
    w = np.append(model.coef_[0, inputs], last)

    least = minimum_loss(oracle)
    here, _ = _value(oracle, w)
    fair = fair_optimum(oracle, [w, least.w])
    loss_uncut = oracle.evaluate(uncut, np.zeros(oracle.n_adversary)).loss_c
    return Certificate(
        epsilon=fair.bound - here.loss_w,
        epsilon_found=max(fair.value, here.loss_w) - here.loss_w,
        delta=here.loss_c - least.loss,
        delta_uncut=loss_uncut - least.loss,
        loss_c=here.loss_c,
        min_loss_c=least.loss,
        gradient_norm=least.gradient_norm,
        loss_f=here.loss_w,
        max_loss_f=fair.bound,
        gap=here.gap,
        cut=point.cut,
    )


def _oracle_of(
    model: FairClassifier, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> tuple[Oracle, NDArray[np.intp]]:
    """Make the oracle a fit of the model on these data would have, in float64."""
    oracle, rows = model._problem(
        X, y, sensitive_features, sample_weight, reset=False, dtype=(np.float64,)
    )
    for name, ours, theirs in (
        ("labels", rows.classes, model.classes_),
        ("groups", rows.groups, model.groups_),
    ):
        if list(ours) != list(theirs):
            raise ValueError(
                f"the {name} are {list(ours)}; the classifier was fitted with {list(theirs)}."
            )
    return oracle, rows.inputs
