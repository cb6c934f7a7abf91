"""Runs of a solver: the one of the theorem, and what is measured along any."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Protocol

import numpy as np
import pandas as pd
from scipy.sparse.linalg import LinearOperator, eigsh

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError
from evenhand.core.solvers import Iteration, Problem
from evenhand.core.updates import modified, power_schedule
from evenhand.paper.theory._bounds import Constants, check_schedule
from evenhand.paper.theory._optima import at_best_response


class Game(Problem, Protocol):
    """A solver's problem that also says which way w pulls on the adversary's loss."""

    adversary_sign: int


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
        As :func:`evenhand.core.solvers.solve` does.
    """
    check_schedule(c, alpha, "corrected")
    u, scale, schedule = np.zeros(problem.n_adversary), 1.0, power_schedule(alpha, c)
    for t in range(1, max_iter + 1):
        alpha_t = schedule(t)
        m = problem.evaluate(w, u, scale)
        direction = modified(m.grad_c, m.grad_f, alpha_t)
        w = w - alpha_t / (2 * smoothness * (1 + G**2)) * direction
        u = u + m.grad_u / (2 * smoothness)
        scale = m.scale
        yield Iteration(t, alpha_t, m, direction, w, u)


def constants(
    problem: Game,
    run: Sequence[Iteration],
    *,
    w_optimum: FloatArray,
    fair: tuple[FloatArray, FloatArray],
    start: FloatArray | None = None,
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
    - D and R are radii of the balls about the two optima that hold the run, the mirror points of
      a solver that averages among it. In the paper they are
      maxima over all w and u, which on :math:`\mathbb R^n` are infinite; and it has one
      :math:`w^*`, which would have to be the optimum of both losses.

    Parameters
    ----------
    problem : Oracle
        The problem (or anything else with its interface).
    run : sequence of Iteration
        What :func:`evenhand.core.solvers.solve` or :func:`descend` yielded.
    w_optimum : ndarray of shape (n_weights,)
        Where :math:`L_C` is least: :func:`minimum_loss`.
    fair : tuple of (ndarray, ndarray)
        Weights and adversary where :math:`L_F` is largest: :func:`fair_optimum`.
    start : ndarray of shape (n_weights,), optional
        Where the run started, zero by default; its u was 0.
    n_points, n_draws : int, default=8
        At how many iterates :math:`L_2` is measured, and how many points are drawn.

    Returns
    -------
    Constants
        The constants.
    """
    if not run:
        raise InputError("empty_run")
    start = np.zeros(problem.n_weights) if start is None else np.asarray(start, dtype=np.float64)
    q = np.array([start, *(it.q for it in run)])
    u = np.array([np.zeros(problem.n_adversary), *(it.u for it in run)])
    points = q
    weight, total = np.array([(it.weight, it.total) for it in run]).T
    if weight.all():
        before = total - weight
        points = np.vstack([q, q[1:] + (before / weight)[:, None] * np.diff(q, axis=0)])
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
        What :func:`evenhand.core.solvers.solve` or :func:`descend` yielded.
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
            m, _ = at_best_response(problem, it.q)  # type: ignore[arg-type]
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
