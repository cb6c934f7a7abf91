r"""Saddle-point solvers: vectors in, vectors out; they never see the data.

A solver is a small frozen dataclass with ``init(w)``, which makes its state,
``query(state, pace)``, which says where the next moments are wanted, and
``step(state, direction, pace)``, which moves on. :func:`solve` is the one loop around them. u
ascends at the queried point with the step :math:`1/L_u`, or as ``ascend(state, u, rise)`` says.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from math import sqrt
from typing import Any, NamedTuple, Protocol

import numpy as np
from scipy.optimize import minimize

from evenhand.core.arrays import FloatArray
from evenhand.core.multipliers import CostSensitivePath, Path, SoftRatePath, Walk
from evenhand.core.notions import AnyNotion
from evenhand.core.oracle import Moments, Oracle
from evenhand.core.updates import Rule, Schedule, normal


class Problem(Protocol):
    """What a solver asks of an oracle."""

    n_weights: int
    n_adversary: int
    smoothness: float
    mu: float

    def evaluate(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Moments:
        """Moments at (w, u)."""

    def smoothness_at(self, alpha: float, steepness: float) -> float:
        """Smoothness of the combined direction."""


class Pace(NamedTuple):
    r"""What step sizes come from at iteration t.

    ``smoothness`` is :math:`L_t`; ``product`` is the :math:`L_1 L_2` of the printed algorithm. With
    a fixed step η both are 1/η.
    """

    t: int
    alpha: float
    smoothness: float
    product: float


@dataclass(frozen=True)
class State:
    """Where a solver stands.

    ``q`` is the answer so far, ``p`` the queried point, ``w`` the mirror point, ``a`` the weight of
    the step and ``total`` the sum of the weights of the steps taken; ``last`` is what a solver
    remembers of the iteration before.
    """

    w: FloatArray
    q: FloatArray
    p: FloatArray
    a: float = 0.0
    total: float = 0.0
    last: FloatArray | None = None
    last_u: FloatArray | None = None


class Solver(Protocol):
    """A saddle-point method: where to evaluate, and how w and u move."""

    def init(self, w: FloatArray) -> State:
        """State before the first iteration."""

    def query(self, state: State, pace: Pace) -> State:
        """Set the point ``p`` at which moments are wanted."""

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Move along the direction found at ``p``."""

    def ascend(self, state: State, u: FloatArray, rise: FloatArray) -> tuple[State, FloatArray]:
        """Move the adversary, whose gradient step would be ``rise``."""


class _Descent:
    """What most solvers do: start at w, ask at the mirror point, and u takes its gradient step."""

    def init(self, w: FloatArray) -> State:
        """State before the first iteration."""
        return State(w, w, w)

    def query(self, state: State, pace: Pace) -> State:
        """Ask at the mirror point, which is also the answer for plain descent."""
        return replace(state, p=state.w)

    def ascend(self, state: State, u: FloatArray, rise: FloatArray) -> tuple[State, FloatArray]:
        """Move the adversary by its gradient step."""
        return state, u + rise


@dataclass(frozen=True)
class GradientDescent(_Descent):
    r""":math:`w_t = w_{t-1} - d(w_{t-1}) / L_t` (the paper's Algorithm 1)."""

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Step by 1/L against the direction."""
        w = state.w - direction / pace.smoothness
        return replace(state, w=w, q=w)


@dataclass(frozen=True)
class AGDPlus(_Descent):
    r"""AGD+ of Cohen, Diakonikolas and Orecchia, with :math:`\psi = \tfrac12\|\cdot\|^2`.

    .. math::
        p_t &= \tfrac{A_{t-1}}{A_t} q_{t-1} + \tfrac{a_t}{A_t} w_{t-1}, \\
        w_t &= w_{t-1} - a_t\, d(p_t), \\
        q_t &= \tfrac{A_{t-1}}{A_t} q_{t-1} + \tfrac{a_t}{A_t} w_t,

    with :math:`a_t = (1 + \sqrt{1 + 4 L_t A_{t-1}}) / 2L_t`, which makes
    :math:`a_t^2 / A_t = 1/L_t` for any sequence :math:`L_t`. The guarantee
    :math:`f(q_t) - f(w^*) \le \tfrac12\|w_0 - w^*\|^2 / A_t` is about q.
    """

    def query(self, state: State, pace: Pace) -> State:
        """Ask between the answer and the mirror point."""
        L = pace.smoothness
        a = (1 + sqrt(1 + 4 * L * state.total)) / (2 * L)
        share = a / (state.total + a)
        return replace(state, a=a, p=(1 - share) * state.q + share * state.w)

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Move the mirror point and average it into the answer."""
        return _average(state, state.w - state.a * direction, state.a)


@dataclass(frozen=True)
class AGDPrinted(_Descent):
    r"""The paper's Algorithm 2 to the letter.

    The gradient is taken at :math:`w_{t-1}`, not at :math:`p_t`, and
    :math:`a_t = 1/(\alpha_t L_1 L_2 \sqrt t)`, so q is a plain average of descent iterates and
    nothing is accelerated. Kept so that the paper's claims can be tested as printed.
    """

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Move the mirror point and average it into the answer."""
        a = 1 / max(pace.alpha * pace.product * sqrt(pace.t), 1e-300)
        return _average(state, state.w - a * direction, a)


@dataclass(frozen=True)
class Extragradient(_Descent):
    r"""Korpelevich's method: a step to look, and a step from where one was.

    .. math:: \bar w_t = w_t - d(w_t)/L_t, \qquad w_{t+1} = w_t - d(\bar w_t)/L_t .

    and the adversary likewise, upwards. Each evaluation is an iteration, so every second one moves
    the answer.
    """

    def query(self, state: State, pace: Pace) -> State:
        """Ask at the weights, then at the point looked at."""
        return replace(state, p=state.w if state.last is None else state.last)

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Look ahead, or move along what was found there."""
        w = state.w - direction / pace.smoothness
        if state.last is None:
            return replace(state, last=w)
        return replace(state, w=w, q=w, last=None)

    def ascend(self, state: State, u: FloatArray, rise: FloatArray) -> tuple[State, FloatArray]:
        """Look ahead, or rise from where u was by what was found there."""
        if state.last_u is None:
            return replace(state, last_u=u), u + rise
        return replace(state, last_u=None), state.last_u + rise


@dataclass(frozen=True)
class Optimistic(_Descent):
    r"""Optimistic descent: the last direction stands for the look ahead.

    .. math:: w_{t+1} = w_t - (2 d(w_t) - d(w_{t-1}))/L_t ,

    and the adversary likewise, upwards.
    """

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Move along the direction, extrapolated."""
        before = direction if state.last is None else state.last
        w = state.w - (2 * direction - before) / pace.smoothness
        return replace(state, w=w, q=w, last=direction)

    def ascend(self, state: State, u: FloatArray, rise: FloatArray) -> tuple[State, FloatArray]:
        """Rise along the gradient, extrapolated."""
        before = rise if state.last_u is None else state.last_u
        return replace(state, last_u=rise), u + 2 * rise - before


def _average(state: State, w: FloatArray, a: float) -> State:
    total = state.total + a
    share = a / total
    return replace(state, w=w, q=(1 - share) * state.q + share * w, a=a, total=total)


class Iteration(NamedTuple):
    r"""One iteration: the moments at the queried point and the answer after the step.

    ``evaluations`` is how many passes over the data it took. ``weight`` is :math:`a_t`, the step's
    weight in the answer of a solver that averages, and ``total`` is
    :math:`A_t = \sum_{i \le t} a_i`; both are 0 for a solver that does not.
    """

    t: int
    alpha: float
    moments: Moments
    direction: FloatArray
    q: FloatArray
    u: FloatArray
    evaluations: int = 1
    weight: float = 0.0
    total: float = 0.0


class Divergence(NamedTuple):
    """When a run has diverged.

    The classification loss is ``loss`` times the first one, or a weight as large as ``weight``.
    """

    loss: float = 1e6
    weight: float = 1e50


DIVERGENCE = Divergence()
"""The limits that are used unless others are passed, as tests do."""


def solve(
    problem: Problem,
    w: FloatArray,
    *,
    solver: Solver,
    rule: Rule,
    schedule: Schedule,
    max_iter: int,
    step: float | None = None,
    divergence: Divergence = DIVERGENCE,
) -> Iterator[Iteration]:
    """Run a solver from (w, u = 0), yielding each iteration.

    The generator ends after ``max_iter`` iterations, or earlier if the run diverges: before the
    first iteration with a number that is not finite or beyond all bounds.

    Parameters
    ----------
    problem : Problem
        Gives moments at a point.
    w : ndarray of shape (n_weights,)
        The start.
    solver : Solver
        How to move.
    rule : callable
        Direction from the two gradients and α.
    schedule : callable
        α from the iteration.
    max_iter : int
        Number of iterations.
    step : float, optional
        A fixed step η for w and u in place of those from smoothness.
    divergence : Divergence
        When to give up.
    """
    state, u = solver.init(w), np.zeros(problem.n_adversary)
    scale, steepness, product, limit = 1.0, 0.0, 0.0, np.inf
    for t in range(1, max_iter + 1):
        alpha = schedule(t)
        L = problem.smoothness_at(alpha, steepness) if step is None else 1 / step
        pace = Pace(t, alpha, L, product)
        state = solver.query(state, pace)
        with np.errstate(over="ignore", invalid="ignore"):
            moments = problem.evaluate(state.p, u, scale)
            if t == 1:
                limit = divergence.loss * max(moments.loss_c, 1.0)
                smoothness_2 = max(problem.mu * problem.smoothness, moments.smoothness_u)
                product = problem.smoothness * smoothness_2 if step is None else 1 / step
                pace = pace._replace(product=product)
            direction = rule(moments.grad_c, moments.grad_f, alpha)
            state = solver.step(state, direction, pace)
            rise = moments.grad_u * (step or 1 / max(moments.smoothness_u, 1e-12))
            state, u = solver.ascend(state, u, rise)
        scale, steepness = moments.scale, moments.steepness
        # Comparisons with NaN are false.
        if not (
            moments.loss_c < limit
            and np.abs(state.q).max() < divergence.weight
            and np.abs(u).max() < divergence.weight
        ):
            return
        yield Iteration(t, alpha, moments, direction, state.q, u, weight=state.a, total=state.total)


@dataclass(frozen=True)
class SolverRecord:
    """What a name of :data:`SOLVERS` stands for: how to move, and on which problem.

    That is the oracle, a game with the adversary, or the walk along a multiplier path.
    """

    solver: Solver
    path: Path | None = None

    @property
    def two_labels_only(self) -> bool:
        """Whether it is for two labels only, as paths are."""
        return self.path is not None

    def check(self, notion: AnyNotion) -> None:
        """Refuse a notion that it cannot serve."""
        if self.path is not None:
            self.path.check(notion)

    def run(
        self, oracle: Oracle, w: FloatArray, *, max_iter: int, **options: Any
    ) -> Iterator[Iteration]:
        """Run :func:`solve`, with its options, on the problem."""
        problem: Problem = oracle
        if self.path is not None:  # its multipliers are in the loss: the gradients are added up
            problem = Walk(oracle, self.path, max_iter)
            options |= {"rule": normal, "schedule": lambda t: 1.0}
        return solve(problem, w, solver=self.solver, max_iter=max_iter, **options)


SOLVERS: dict[str, SolverRecord] = {
    "gd": SolverRecord(GradientDescent()),
    "agd": SolverRecord(AGDPlus()),
    "agd_printed": SolverRecord(AGDPrinted()),
    "extragradient": SolverRecord(Extragradient()),
    "optimistic": SolverRecord(Optimistic()),
    "soft_rate": SolverRecord(AGDPlus(), SoftRatePath()),
    "cost_sensitive": SolverRecord(AGDPlus(), CostSensitivePath()),
}
"""Solvers by the name of ``Method(solver=...)``."""


def minimize_loss(
    problem: Problem,
    w: FloatArray,
    *,
    max_iter: int,
    callback: Callable[[Iteration], None],
    tol: float = 1e-4,
) -> tuple[FloatArray, bool]:
    """Minimise the classification loss alone by L-BFGS, reporting each iteration to ``callback``.

    This is plain logistic regression, α = 0, with u = 0; L-BFGS needs about half the passes AGD+
    would. Returns the optimum, to a largest gradient component of ``tol``, and whether that was
    reached to within a factor of ten.
    """
    u, t = np.zeros(problem.n_adversary), count(1)
    fresh: list[Moments] = []  # evaluated since the last iteration

    def loss(w: FloatArray) -> tuple[float, FloatArray]:
        fresh.append(problem.evaluate(w, u))
        return fresh[-1].loss_c, fresh[-1].grad_c

    def report(w: FloatArray) -> None:
        m = fresh[-1]
        callback(Iteration(next(t), 0.0, m, m.grad_c, w.copy(), u, len(fresh)))
        fresh.clear()

    options = {"maxiter": max_iter, "gtol": tol, "ftol": 0.0}
    optimum = minimize(loss, w, jac=True, method="L-BFGS-B", callback=report, options=options)
    # The line search may give up at the rounding of float32, which is near enough.
    return np.asarray(optimum.x), bool(np.abs(optimum.jac).max() <= 10 * tol)
