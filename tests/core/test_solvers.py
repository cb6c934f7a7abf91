from functools import partial

import numpy as np
import pytest
from helpers import make_problem
from scipy.optimize import minimize

from evenhand.core.notions import statistical_parity
from evenhand.core.oracle import Moments
from evenhand.core.solvers import (
    SOLVERS,
    AGDPlus,
    AGDPrinted,
    Divergence,
    Extragradient,
    GradientDescent,
    Optimistic,
    SolverRecord,
    minimize_loss,
    solve,
)
from evenhand.core.updates import modified, normal, power_schedule
from evenhand.engines.memory import make_oracle


class Quadratic:
    """f(w) = ½ (w − w*)ᵀ diag(h) (w − w*), no adversary."""

    n_weights, n_adversary, mu = 50, 1, 0.0

    def __init__(self, condition=1e3):
        self.h = np.geomspace(1 / condition, 1, self.n_weights)
        self.best = np.ones(self.n_weights)
        self.smoothness = 1.0

    def smoothness_at(self, alpha, steepness):
        return self.smoothness

    def loss(self, w):
        return 0.5 * float(self.h @ (w - self.best) ** 2)

    def evaluate(self, w, u, scale=1.0):
        zero = np.zeros(self.n_weights)
        return Moments(
            loss_c=self.loss(w),
            loss_w=0.0,
            loss_u=0.0,
            grad_c=self.h * (w - self.best),
            grad_f=zero,
            grad_u=np.zeros(1),
            counts=np.ones((2, 2, 2)),
            gap=0.0,
            smoothness_u=1.0,
            scale=1.0,
            steepness=0.0,
        )


def run(problem, solver, max_iter=300, w=None, rule=normal, schedule=None, **options):
    """Iterations of a solver, or of a record on its own problem."""
    w = np.zeros(problem.n_weights) if w is None else w
    start = solver.run if isinstance(solver, SolverRecord) else partial(solve, solver=solver)
    return list(
        start(
            problem,
            w,
            rule=rule,
            schedule=schedule or power_schedule(0.1, 0.5),
            max_iter=max_iter,
            **options,
        )
    )


def test_agd_plus_is_under_its_bound_and_far_ahead_of_descent():
    problem = Quadratic(condition=1e3)
    fast, slow = run(problem, AGDPlus()), run(problem, GradientDescent())
    total, distance = 0.0, 0.5 * np.sum((0 - problem.best) ** 2)
    for iteration in fast:
        total += (1 + np.sqrt(1 + 4 * total)) / 2
        assert problem.loss(iteration.q) <= distance / total
    assert problem.loss(fast[-1].q) * 100 <= problem.loss(slow[-1].q)


def test_agd_plus_weights_meet_their_condition_when_smoothness_changes():
    from evenhand.core.solvers import Pace

    solver, state = AGDPlus(), AGDPlus().init(np.zeros(2))
    for t, L in enumerate([5.0, 4.0, 1.0, 3.0, 0.5], start=1):
        pace = Pace(t, 0.1, L, 1.0)
        state = solver.query(state, pace)
        assert state.a**2 / (state.total + state.a) == pytest.approx(1 / L)
        state = solver.step(state, np.ones(2), pace)


def test_descent_matches_its_formula():
    problem = Quadratic()
    w = np.zeros(50)
    for iteration in run(problem, GradientDescent(), max_iter=5, step=0.3):
        w = w - 0.3 * problem.h * (w - problem.best)
        np.testing.assert_allclose(iteration.q, w)


def test_printed_acceleration_is_an_average_of_descent():
    problem = Quadratic()
    problem.mu = 2.0  # L_1 L_2 = 2
    w, points, weights = np.zeros(50), [], []
    for iteration in run(problem, AGDPrinted(), max_iter=6, schedule=power_schedule(0.5, 0.25)):
        t = iteration.t
        a = 1 / (0.5 * t**-0.25 * 2.0 * np.sqrt(t))
        w = w - a * problem.h * (w - problem.best)
        points.append(w)
        weights.append(a)
        assert (iteration.weight, iteration.total) == pytest.approx((a, sum(weights)))
        np.testing.assert_allclose(iteration.q, np.average(points, axis=0, weights=weights))


def test_printed_acceleration_with_a_fixed_step():
    problem, step = Quadratic(), 0.25
    (first,) = run(problem, AGDPrinted(), max_iter=1, schedule=power_schedule(0.5, 0), step=step)
    # L_1 L_2 is 1 / step then: a_1 = step / alpha.
    np.testing.assert_allclose(first.q, step / 0.5 * problem.h * problem.best)


def test_weights_that_reach_the_limit_have_diverged():
    problem = Quadratic()
    (first,) = run(problem, GradientDescent(), max_iter=1)
    largest = max(np.abs(first.q).max(), np.abs(first.u).max())
    for weight, n_iterations in ((np.nextafter(largest, np.inf), 1), (largest, 0)):
        limit = Divergence(weight=weight)
        iterations = run(problem, GradientDescent(), max_iter=1, divergence=limit)
        assert len(iterations) == n_iterations


def test_unconstrained_optimum_against_an_independent_solver():
    X, y, z = make_problem()
    oracle = make_oracle(X, y, z, notion=statistical_parity(), l2=0.01)
    seen = []
    start = np.zeros(6)
    found, reached = minimize_loss(oracle, start, max_iter=200, callback=seen.append, tol=1e-8)
    assert reached
    assert not minimize_loss(oracle, start, max_iter=1, callback=print, tol=1e-8)[1]

    def loss(w):
        s = X @ w[:-1] + w[-1]
        return np.mean(np.logaddexp(0, s) - y * s) + 0.005 * np.sum(w[:-1] ** 2)

    exact = minimize(loss, start, method="BFGS", options={"gtol": 1e-9})
    np.testing.assert_allclose(found, exact.x, atol=1e-4)
    assert [i.t for i in seen] == list(range(1, len(seen) + 1))
    np.testing.assert_array_equal(seen[-1].q, found)
    assert all(i.evaluations >= 1 for i in seen)
    # The moments reported are those of the iterate they come with.
    np.testing.assert_array_equal(
        seen[-1].moments.grad_c, oracle.evaluate(found, np.zeros(3)).grad_c
    )


def test_the_fair_saddle_point_against_an_exact_solution():
    # A huge regulariser and no adversary's say: the answer is the optimum on the plane δᵀw = 0.
    X, y, z = make_problem()
    oracle = make_oracle(X, y, z, notion=statistical_parity(1), l2=0.01, mu=50.0)
    delta = X[z == 0].mean(axis=0) - X[z == 1].mean(axis=0)
    schedule = power_schedule(1.0, 0.0)
    found = run(oracle, AGDPlus(), max_iter=3000, rule=modified, schedule=schedule)[-1].q

    def loss(w):
        s = X @ w[:-1] + w[-1]
        return np.mean(np.logaddexp(0, s) - y * s) + 0.005 * np.sum(w[:-1] ** 2)

    plane = {"type": "eq", "fun": lambda w: delta @ w[:-1]}
    exact = minimize(loss, np.zeros(6), constraints=[plane], method="SLSQP", tol=1e-12)
    assert abs(delta @ found[:-1]) < 1e-2
    assert loss(found) == pytest.approx(exact.fun, abs=1e-3)


@pytest.mark.parametrize("name", SOLVERS)
def test_divergence_ends_the_run_before_anything_is_infinite(name):
    X, y, z = make_problem()
    oracle = make_oracle(X, y, z, notion=statistical_parity())
    for step in (1e3, 1e30, 1e300):
        with np.errstate(over="raise", invalid="raise", divide="raise"):
            iterations = run(oracle, SOLVERS[name], step=step, rule=modified)
        assert all(np.isfinite(i.q).all() and np.isfinite(i.u).all() for i in iterations)


@pytest.mark.parametrize("rule", [normal, modified])
@pytest.mark.parametrize("name", SOLVERS)
def test_solvers_are_deterministic(name, rule):
    X, y, z = make_problem()
    a, b = (
        run(make_oracle(X, y, z, notion=statistical_parity()), SOLVERS[name], 20, rule=rule)
        for _ in range(2)
    )
    np.testing.assert_array_equal(a[-1].q, b[-1].q)
    assert len(a) == 20


class Rotation(Quadratic):
    """A field that turns about 0, as the bilinear game xy has: descent spirals away from it."""

    n_weights = 2

    def __init__(self):
        self.h, self.best, self.smoothness = np.ones(2), np.zeros(2), 2.0

    def evaluate(self, w, u, scale=1.0):
        turned = np.array([w[1], -w[0]])
        return super().evaluate(w, u, scale)._replace(grad_c=turned)


@pytest.mark.parametrize("solver", [Extragradient(), Optimistic()])
def test_methods_for_games_come_to_rest_where_descent_does_not(solver):
    start = np.array([1.0, 0.0])
    away = run(Rotation(), GradientDescent(), 40, w=start)[-1].q
    home = run(Rotation(), solver, 120, w=start)[-1].q
    assert np.linalg.norm(away) > 10
    assert np.linalg.norm(home) < 0.05


class Bilinear(Quadratic):
    """The game min over w, max over u of w u, whose saddle is (0, 0)."""

    n_weights = 1

    def __init__(self):
        self.h, self.best, self.smoothness = np.ones(1), np.zeros(1), 3.0

    def evaluate(self, w, u, scale=1.0):
        m = super().evaluate(w, u, scale)
        return m._replace(grad_c=u.copy(), grad_u=w.copy(), smoothness_u=3.0)


@pytest.mark.parametrize("solver", [Extragradient(), Optimistic()])
def test_methods_for_games_find_the_saddle_in_w_and_u(solver):
    def distance(solver):
        last = run(Bilinear(), solver, 400, w=np.ones(1))[-1]
        return float(np.hypot(last.q[0], last.u[0]))

    assert distance(GradientDescent()) > 100
    assert distance(solver) < 1e-3


@pytest.mark.parametrize("solver", [Extragradient(), Optimistic()])
def test_methods_for_games_minimise_too(solver):
    problem = Quadratic(condition=20)
    problem.smoothness = 2.0
    assert problem.loss(run(problem, solver, 1000)[-1].q) < 1e-8


def test_extragradient_by_hand():
    problem = Quadratic(condition=1)
    problem.smoothness = 2.0
    first, second = run(problem, Extragradient(), 2)
    np.testing.assert_allclose(first.q, 0.0)  # only a look
    # from 0: look at 1/2, where the gradient is -1/2; step 1/4
    np.testing.assert_allclose(second.q, 0.25)
