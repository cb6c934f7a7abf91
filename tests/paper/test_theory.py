"""Constants, the paper's expressions and the certificate: by hand, by theorem, by scikit-learn."""

from dataclasses import asdict, replace

import numpy as np
import pytest
from helpers import fair, make_problem, raises
from scipy.linalg import fractional_matrix_power
from scipy.sparse import csr_matrix
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from evenhand import FairClassifier
from evenhand.core.errors import Parameter
from evenhand.core.metric import LEAST_EIGENVALUE, METRICS, NOISE
from evenhand.core.notions import NOTIONS
from evenhand.core.oracle import Moments
from evenhand.core.solvers import AGDPlus, GradientDescent, Pace, solve
from evenhand.core.updates import RULES
from evenhand.engines.memory import make_oracle
from evenhand.paper.theory import (
    Constants,
    agd_classification_bound,
    agd_fairness_bound,
    best_response,
    bregman,
    certificate,
    constants,
    descend,
    fair_optimum,
    fairness_bound,
    fairness_iterations,
    measured_regrets,
    minimum_loss,
    price_contraction,
    price_expression,
    price_of_fairness,
)
from evenhand.paper.theory._runs import _smoothness_f

ONE = Constants(L1=1.0, L2=1.0, G=1.0, G_C=1.0, G_F=1.0, D=1.0, R=1.0)
TWO = Constants(L1=0.5, L2=2.0, G=3.0, G_C=0.25, G_F=5.0, D=2.0, R=4.0)


class Quadratics:
    """L_C = ½(w − a)ᵀA(w − a), and L_F = −½(w − b)ᵀB(w − b) − ½ν‖u − e‖², concave in (w, u)."""

    adversary_sign, mu = -1, 1.0

    def __init__(self, seed=0, n=6, n_adversary=2, nu=0.3):
        rng = np.random.default_rng(seed)

        def curvature(largest):
            basis = np.linalg.qr(rng.standard_normal((n, n)))[0]
            return basis * np.linspace(0.1, largest, n) @ basis.T

        self.A, self.B, self.nu = curvature(1.5), curvature(2.0), nu
        self.a, self.b = rng.standard_normal((2, n))
        self.e = rng.standard_normal(n_adversary)
        self.n_weights, self.n_adversary = n, n_adversary
        self.smoothness, self.L2 = 1.5, 2.0

    def smoothness_at(self, alpha, steepness=0.0):
        return self.smoothness + alpha * self.L2

    def evaluate(self, w, u, scale=1.0):
        c, f, v = w - self.a, w - self.b, u - self.e
        loss_f = -0.5 * f @ self.B @ f - 0.5 * self.nu * v @ v
        return Moments(
            loss_c=0.5 * c @ self.A @ c,
            loss_w=loss_f,
            loss_u=loss_f,
            grad_c=self.A @ c,
            grad_f=-self.B @ f,
            grad_u=-self.nu * v,
            counts=np.zeros((2, 2, 2)),
            gap=0.0,
            smoothness_u=self.nu,
            scale=1.0,
            steepness=0.0,
        )


def oracle(reading="corrected", notion="statistical_parity", seed=0, **options):
    X, y, z = make_problem(seed=seed)
    return make_oracle(X, y, z, notion=NOTIONS[notion](2), reading=reading, **options)


# The expressions ---------------------------------------------------------------------------------


def test_fairness_bound_by_hand():
    # 1/(LD²) = 1/8, beta = 4·2·4·10 = 320, c = 1/4: ((8+1)^½ − 1)/½ = 4.
    assert fairness_bound(8, TWO, c=0.25) == pytest.approx(1 / (1 / 8 + 4 / 320))
    assert fairness_bound(8, TWO, c=0.25, alpha=0.5) == pytest.approx(1 / (1 / 8 + 1 / 320))
    # printed: 9^½/½ = 6
    assert fairness_bound(9, TWO, c=0.25, reading="printed") == pytest.approx(1 / (1 / 8 + 6 / 320))
    assert fairness_bound([0, 1], TWO, c=0.25)[0] == pytest.approx(8.0)  # LD²


def test_fairness_iterations_by_hand():
    # c = 0: T = 4·8·10·(1/4 − 1/8) = 40.
    assert fairness_iterations(4.0, TWO, c=0.0) == pytest.approx(40.0)
    # c = 1/4: (1 + ½·40)² − 1
    assert fairness_iterations(4.0, TWO, c=0.25) == pytest.approx(21.0**2 - 1)
    # printed: (2·4·10·½/4)²
    assert fairness_iterations(4.0, TWO, c=0.25, reading="printed") == pytest.approx(100.0)
    assert fairness_iterations([8.0, 100.0], TWO, c=0.25).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("c", [0.0, 0.1, 0.25, 0.4])
@pytest.mark.parametrize("k", [ONE, TWO])
def test_iterations_invert_the_bound(c, k):
    epsilon = np.array([0.5, 0.1, 0.01])
    T = fairness_iterations(epsilon, k, c=c, alpha=0.5)
    np.testing.assert_allclose(fairness_bound(T, k, c=c, alpha=0.5), epsilon, rtol=1e-6)
    assert (np.diff(T) > 0).all()


def test_bounds_fall_to_zero_and_a_larger_c_is_slower():
    t = np.arange(0, 1000)
    for c in (0.0, 0.2, 0.45):
        for bound in (fairness_bound(t, TWO, c=c), price_expression(t, TWO, c=c)):
            assert bound.shape == t.shape
            assert (np.diff(bound) < 0).all()
    assert fairness_bound(1e30, TWO, c=0.25) < 1e-10
    assert (fairness_bound(t[2:], TWO, c=0.4) > fairness_bound(t[2:], TWO, c=0.1)).all()
    # The printed form promises a little more than the recursion gives.
    printed = fairness_bound(t[1:], TWO, c=0.25, reading="printed")
    assert (printed < fairness_bound(t[1:], TWO, c=0.25)).all()


@pytest.mark.parametrize("c", [0.0, 0.25, 0.45])
def test_corrected_bound_is_safe_where_the_differential_equation_is_not(c):
    """Steps that the recursion allows and no more: the printed solution is below them."""
    beta = 4 * TWO.L * TWO.D**2 * (1 + TWO.G**2)
    inverse = 1 / (TWO.L * TWO.D**2) + np.cumsum(np.arange(1, 500) ** (-2 * c)) / beta
    t = np.arange(1, 500)
    assert (1 / inverse <= fairness_bound(t, TWO, c=c) * (1 + 1e-12)).all()
    if c > 0:
        assert (1 / inverse > fairness_bound(t, TWO, c=c, reading="printed")).all()


@pytest.mark.parametrize("c", [0.5, 0.7, -0.1, np.nan])
def test_the_boundary_is_excluded(c):
    for call in (
        lambda: fairness_bound(1, ONE, c=c),
        lambda: fairness_iterations(0.1, ONE, c=c),
        lambda: price_expression(1, ONE, c=c),
        lambda: price_of_fairness(0.1, ONE, c=c),
        lambda: next(descend(Quadratics(), np.zeros(6), smoothness=1, G=1, c=c, max_iter=1)),
    ):
        with raises("exponent_out_of_range", c=Parameter("c", c)):
            call()


def test_other_arguments_are_checked():
    with raises("alpha_out_of_range", alpha=Parameter("alpha", 2.0)):
        fairness_bound(1, ONE, c=0.1, alpha=2.0)
    with raises("unknown_reading", reading=Parameter("reading", "wrong")):
        fairness_bound(1, ONE, c=0.1, reading="wrong")
    with raises("epsilon_not_positive"):
        fairness_iterations(0.0, ONE, c=0.1)
    with raises("delta_out_of_range", delta=Parameter("delta", 3.0)):
        price_of_fairness(0.1, ONE, c=0.1, delta=3.0)
    with raises("empty_run"):
        constants(Quadratics(), [], w_optimum=np.zeros(6), fair=(np.zeros(6), np.zeros(2)))


def test_price_by_hand():
    # LR² = 32, c = 0: 1/32 + t/(8·32·10)
    assert price_expression(80, TWO, c=0.0) == pytest.approx(1 / (1 / 32 + 80 / 2560))
    assert price_expression(80, TWO, c=0.0, reading="printed") == pytest.approx(
        1 / (1 / 8 + 80 / 640)
    )
    # T(4) = 40 at c = 0
    assert price_of_fairness(4.0, TWO, c=0.0) == pytest.approx(1 / (1 / 32 + 40 / 2560))
    assert price_of_fairness(4.0, TWO, c=0.0, reading="printed") == pytest.approx(
        1 / (1 / 8 + 1 / 32)
    )
    # printed, c = 1/4: 1/8 + 1/(8·(9/16)·4)·(8·10·½/4)^½
    assert price_of_fairness(4.0, TWO, c=0.25, reading="printed") == pytest.approx(
        1 / (1 / 8 + 10**0.5 / 18)
    )
    assert price_of_fairness([4.0, 1e-9], TWO, c=0.1, delta=0.5)[1] == 0.5


def test_the_recursion_of_the_price_never_contracts():
    assert price_contraction(2.0, TWO) == pytest.approx(1 / 16 - 2 * 3 / 16 / 4)
    assert price_contraction(2.0, TWO, reading="printed") == pytest.approx(1 / 4 - 2 * 0.75 / 4)
    rng = np.random.default_rng(0)
    for _ in range(50):
        k = Constants(*np.exp(2 * rng.standard_normal(7)))
        k = replace(k, G=max(k.G, 1 / k.G))
        assert price_contraction(k.R * k.G_C, k) < 0


def test_agd_bounds_by_hand():
    assert agd_classification_bound(2.0, TWO, alpha=0.1, distance=3.0) == pytest.approx(
        1.5 + 4 * (0.5 + 0.25)
    )
    assert agd_classification_bound(2.0, TWO, alpha=0.1, reading="printed") == pytest.approx(
        4.0 + 4 * 10
    )
    assert agd_fairness_bound(2.0, TWO, alpha=0.1, distance=3.0) == pytest.approx(15 + 5.0)
    assert agd_fairness_bound(2.0, TWO, alpha=0.1, reading="printed") == pytest.approx(1 + 10.0)
    # What remains when A_t is large is no less than what convexity gives for any point.
    assert agd_classification_bound(np.inf, TWO, alpha=0.1) >= TWO.R * TWO.G_C


def test_bregman():
    a, b = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    assert bregman(a, b) == pytest.approx(0.5 * (4 + 9))
    assert bregman(a, a, reading="printed") == pytest.approx(-5.0)
    assert bregman(a, a) == 0


# Theorems where their assumptions hold -----------------------------------------------------------


@pytest.mark.parametrize("c", [0.0, 0.25, 0.45])
@pytest.mark.parametrize("seed", range(3))
def test_fairness_theorem_on_concave_quadratics(c, seed):
    problem, G = Quadratics(seed), 6.0
    start = problem.b + 1.0
    options = {"smoothness": problem.L2, "G": G, "c": c, "max_iter": 300}
    run = list(descend(problem, start, **options))
    k = constants(
        problem, run, w_optimum=problem.a, fair=(problem.b, problem.e), start=start, n_points=2
    )
    assert k.G <= G  # the assumption held
    assert pytest.approx(problem.L2, rel=1e-3) == k.L2
    k = replace(k, G=G, L1=problem.L2)
    frame = measured_regrets(
        problem,
        run,
        min_loss_c=0.0,
        max_loss_f=0.0,
        bounds={"F": lambda t: fairness_bound(t, k, c=c)},
    )
    fair = frame[frame["loss"] == "F"]
    assert (fair["measured"] <= fair["bound"]).all()
    assert fair["measured"].iloc[-1] < 0.9 * fair["measured"].iloc[0]
    assert frame[frame["loss"] == "C"]["bound"].isna().all()
    assert list(frame.columns) == ["loss", "t", "measured", "bound"]


@pytest.mark.parametrize("alpha", [0.05, 0.5])
@pytest.mark.parametrize("seed", range(3))
def test_agd_theorems_on_quadratics(alpha, seed):
    problem = Quadratics(seed, nu=0.0)
    start, fair = np.zeros(6), (problem.b, np.zeros(2))
    run = list(
        solve(
            problem,
            start,
            solver=AGDPlus(),
            rule=RULES["modified"],
            schedule=lambda t: alpha,
            max_iter=200,
        )
    )
    totals = np.array([it.total for it in run])
    k = constants(problem, run, w_optimum=problem.a, fair=fair)
    frame = measured_regrets(
        problem,
        run,
        min_loss_c=0.0,
        max_loss_f=0.0,
        n_points=200,
        bounds={
            "F": lambda t: agd_fairness_bound(
                totals[t - 1], k, alpha=alpha, distance=bregman(start, problem.b)
            ),
            "C": lambda t: agd_classification_bound(
                totals[t - 1], k, alpha=alpha, distance=bregman(start, problem.a)
            ),
        },
    )
    assert len(frame) == 400
    assert (frame["measured"] <= frame["bound"]).all()
    # Vacuous all the same: any point of the ball is as good.
    c = frame[frame["loss"] == "C"]
    assert (c["bound"] >= k.R * k.G_C).all()
    assert (c["measured"] <= k.R * k.G_C).all()


def test_plain_accelerated_descent_obeys_its_bound_without_noise():
    """α = 0 and no projection: what is left is ½‖w₀ − w*‖²/A_t."""
    problem, start = Quadratics(nu=0.0), np.zeros(6)
    run = list(
        solve(
            problem,
            start,
            solver=AGDPlus(),
            rule=RULES["normal"],
            schedule=lambda t: 0.0,
            max_iter=100,
        )
    )
    totals = np.array([it.total for it in run])
    k = replace(TWO, R=0.0)
    bound = agd_classification_bound(totals, k, alpha=0.0, distance=bregman(start, problem.a))
    loss = [problem.evaluate(it.q, it.u).loss_c for it in run]
    assert (loss <= bound * (1 + 1e-12)).all()
    t = np.arange(1, 101)
    assert (totals >= t**2 / (4 * problem.smoothness)).all()


@pytest.mark.parametrize("reading", ["corrected", "printed"])
def test_the_price_is_no_lower_bound(reading):
    """L_F = −L_C: every assumption holds, and the regret falls below the paper's expression."""
    problem = Quadratics(nu=0.0)
    problem.A = problem.B = np.eye(6)
    problem.a = problem.b = np.zeros(6)
    start, epsilon = np.eye(6)[0], 0.01
    k = ONE  # smoothness, ratio, gradients and radius are all 1
    T = int(np.ceil(fairness_iterations(epsilon, k, c=0.0, reading=reading)))
    *_, last = descend(problem, start, smoothness=1.0, G=1.0, c=0.0, max_iter=T)
    regret = problem.evaluate(last.q, last.u).loss_c
    assert regret < 1e-6 < price_of_fairness(epsilon, k, c=0.0, reading=reading)


def test_the_weights_of_the_steps_are_those_of_the_solver():
    problem = oracle()
    alpha = 0.1
    options = {"rule": RULES["modified"], "schedule": lambda t: alpha / t, "max_iter": 20}
    run = list(solve(problem, np.zeros(problem.n_weights), solver=AGDPlus(), **options))
    solver, steepness, seen = AGDPlus(), 0.0, []
    state = solver.init(np.zeros(problem.n_weights))
    for it in run:
        pace = Pace(it.t, it.alpha, problem.smoothness_at(it.alpha, steepness), 0.0)
        state = solver.step(solver.query(state, pace), it.direction, pace)
        np.testing.assert_allclose(state.q, it.q, atol=1e-12)
        steepness = it.moments.steepness
        seen.append(state.total)
    np.testing.assert_allclose([it.total for it in run], seen)
    np.testing.assert_allclose(np.cumsum([it.weight for it in run]), seen)
    first = next(solve(problem, np.zeros(problem.n_weights), solver=solver, step=0.5, **options))
    assert first.total == 0.5


def test_constants_by_hand():
    problem = Quadratics()
    options = {"rule": RULES["modified"], "schedule": lambda t: 0.1, "max_iter": 30, "step": 0.1}
    run = list(solve(problem, np.zeros(6), solver=GradientDescent(), **options))
    k = constants(
        problem, run, w_optimum=problem.a, fair=(problem.b, problem.e), n_points=3, n_draws=0
    )
    w, u = np.array([np.zeros(6), *(it.q for it in run)]), np.array([it.u for it in run])
    norm = np.linalg.norm
    g_c = norm((w[:-1] - problem.a) @ problem.A, axis=1)
    g_f = norm((w[:-1] - problem.b) @ problem.B, axis=1)
    assert (k.L1, k.L) == (1.5, k.L2)
    assert pytest.approx(2.0, rel=1e-3) == k.L2
    assert pytest.approx(max((g_c / g_f).max(), (g_f / g_c).max())) == k.G
    assert pytest.approx(g_c.max()) == k.G_C
    assert pytest.approx(g_f.max()) == k.G_F
    assert pytest.approx(norm(w - problem.a, axis=1).max()) == k.R
    away_u = max(norm(problem.e), norm(u - problem.e, axis=1).max())
    assert pytest.approx(np.hypot(norm(w - problem.b, axis=1).max(), away_u)) == k.D
    more = constants(problem, run, w_optimum=problem.a, fair=(problem.b, problem.e), n_points=1)
    assert more.G_C >= k.G_C
    assert more.G_C <= 1.5 * k.R  # the ball's largest: L_1 R


@pytest.mark.parametrize("reading", ["corrected", "printed"])
def test_smoothness_of_the_fairness_loss(reading):
    """The Hessian's norm is that of the Jacobian of the field (∇_w, ∇_u), in either reading."""
    problem = oracle(reading, mu=1.0)
    rng = np.random.default_rng(0)
    n = problem.n_weights
    x = rng.standard_normal(n + problem.n_adversary)
    scale = problem.evaluate(x[:n], x[n:]).scale

    def field(x):
        m = problem.evaluate(x[:n], x[n:], scale)
        return np.concatenate([m.grad_f, m.grad_u])

    J = np.array([(field(x + d) - field(x - d)) / 2e-5 for d in 1e-5 * np.eye(len(x))])
    assert _smoothness_f(problem, x[:n], x[n:]) == pytest.approx(np.linalg.norm(J, 2), rel=1e-3)


# Optima ------------------------------------------------------------------------------------------


def plain(X, y, l2, sample_weight=None):
    """scikit-learn's minimum of the same loss."""
    total = len(y) if sample_weight is None else np.sum(sample_weight)
    model = LogisticRegression(C=1 / (l2 * total), tol=1e-13, solver="newton-cholesky")
    model.fit(X, y, sample_weight=sample_weight)
    p = model.predict_proba(X)
    loss = log_loss(y, p, sample_weight=sample_weight) + l2 / 2 * np.sum(model.coef_**2)
    return loss, np.append(model.coef_[0], model.intercept_)


@pytest.mark.parametrize("l2", [1e-4, 1.0])
def test_minimum_loss_is_that_of_scikit_learn(problem, l2):
    X, y, z = problem
    found = minimum_loss(make_oracle(X, y, z, notion=NOTIONS["statistical_parity"](2), l2=l2))
    loss, w = plain(X, y, l2)
    assert found.gradient_norm <= 1e-8
    assert abs(found.loss - loss) <= 1e-8
    np.testing.assert_allclose(found.w, w, atol=1e-5)


def test_best_response_is_that_of_scikit_learn(problem):
    X, _, z = problem
    o = oracle()
    # Scores that hardly differ are no excuse.
    for w in (np.append(np.ones(5), 0.3), np.append(1e-5 * np.ones(5), 1e-2)):
        for scale in (1.0, 0.5):
            m = o.evaluate(w, best_response(o, w, scale=scale), scale)
            s = X @ w[:-1]
            s = (s - s.mean()) / s.std()
            P = np.column_stack([s, s**2])
            model = LogisticRegression(C=1e12, tol=1e-12, solver="newton-cholesky").fit(P, z)
            assert -m.loss_u == pytest.approx(log_loss(z, model.predict_proba(P)), abs=1e-9)


def test_fair_optimum():
    _, y, z = make_problem()
    share = z.mean()
    entropy = -(share * np.log(share) + (1 - share) * np.log(1 - share))
    found = fair_optimum(oracle())
    assert found.bound == pytest.approx(entropy)
    assert found.value == pytest.approx(entropy)
    assert not found.w.any()

    cells = np.array([[np.mean((z == j) & (y == k)) for j in (0, 1)] for k in (0, 1)])
    conditional = -np.sum(cells * np.log(cells / cells.sum(axis=1, keepdims=True)))
    discovery = oracle(notion="false_discovery", mu=0.5)
    found = fair_optimum(discovery)
    assert found.bound == pytest.approx(conditional)
    at_zero = discovery.evaluate(np.zeros(6), best_response(discovery, np.zeros(6))).loss_w
    assert at_zero < found.value <= found.bound + 1e-9

    o = oracle("printed")
    printed = fair_optimum(o, [minimum_loss(o).w])
    assert printed.bound == 0
    assert -entropy < printed.value < 0


def test_printed_fairness_loss_has_no_maximum():
    """w shrinks, u grows: the adversary guesses as well and the regulariser goes."""
    o = oracle("printed", mu=10.0)
    w = minimum_loss(o).w
    u = best_response(o, w)
    values = [o.evaluate(w / k, u * [1, k, k**2]).loss_w for k in (1, 10, 100)]
    assert values[0] < values[1] < values[2]


@pytest.mark.parametrize("reading", ["corrected", "printed"])
def test_measured_regrets_on_data(reading):
    o = oracle(reading, mu=1.0, l2=1e-2)
    least, fair = minimum_loss(o), fair_optimum(o)
    options = {"rule": RULES["modified"], "schedule": lambda t: 0.1, "max_iter": 30}
    run = list(solve(o, np.zeros(o.n_weights), solver=GradientDescent(), **options))
    k = constants(o, run, w_optimum=least.w, fair=(fair.w, fair.u))
    assert all(np.isfinite(v) and v > 0 for v in asdict(k).values())
    assert k.G >= 1
    frame = measured_regrets(o, run, min_loss_c=least.loss, max_loss_f=fair.bound, n_points=10)
    assert len(frame) == 20
    assert (frame["measured"] >= -1e-9).all()
    assert frame["t"].min() == 1
    assert frame["t"].max() == 30


# The certificate ---------------------------------------------------------------------------------

CASES = {
    "default": {},
    "strict": {"tau": 0.95},
    "false discovery": {"notion": "false_discovery", "tau": 0.5},
    "printed": {"reading": "printed", "l2": 1.0, "mu": 10.0, "init": "zero", "tau": 0.1},
    "noise": {"extra_column": "noise", "random_state": 0, "tau": 0.3},
    "no cut": {"cut": False, "tau": 0.1},
    "zero": {"init": "zero", "tau": 0.5},
}


@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
@pytest.mark.parametrize("case", CASES)
def test_certificate_is_sound(problem, case):
    X, y, z = problem
    model = fair(max_iter=60, **CASES[case]).fit(X, y, sensitive_features=z)
    found = certificate(model, X, y, sensitive_features=z)
    assert all(np.isfinite(v) for v in asdict(found).values())
    assert found.delta >= -1e-10
    assert found.delta_uncut >= -1e-10
    assert found.epsilon >= found.epsilon_found - 1e-9
    assert found.epsilon_found >= 0
    assert found.gradient_norm <= 1e-8
    assert found.loss_c == pytest.approx(found.min_loss_c + found.delta)
    assert found.loss_f == pytest.approx(found.max_loss_f - found.epsilon)
    assert f"{found.delta:.4g})-solution" in str(found)
    assert found.to_frame().shape == (1, 11)


def in_coordinates(X, metric):
    """Inputs as the ridge sees them, and the matrix T that they were multiplied by."""
    n, d = X.shape
    if metric == "none":
        return X, np.eye(d)
    scale = np.diag(1 / X.std(axis=0))
    if metric == "whitened":
        correlation = np.corrcoef(X.T) + (LEAST_EIGENVALUE + NOISE * d / n) * np.eye(d)
        scale = scale @ fractional_matrix_power(correlation, -0.5)
    return (X - X.mean(axis=0)) @ scale, scale


@pytest.mark.parametrize("metric", METRICS)
def test_certificate_against_scikit_learn(problem, metric):
    X, y, z = problem
    X = X * [1, 1e4, 1e-3, 1, 1] if metric != "none" else X
    model = fair(l2=1e-2, metric=metric).fit(X, y, sensitive_features=z)
    found = certificate(model, X, y, sensitive_features=z)
    inputs, T = in_coordinates(X, metric)
    assert abs(found.min_loss_c - plain(inputs, y, 1e-2)[0]) <= 1e-8
    s = X @ model.coef_[0] + model.intercept_[0]
    v = np.linalg.solve(T, model.coef_[0])
    loss = np.mean(np.logaddexp(0, s) - y * s) + 1e-2 / 2 * np.sum(v**2)
    assert found.loss_c == pytest.approx(loss, abs=1e-12)
    assert found.cut != 0
    assert found.delta != found.delta_uncut


def test_fairness_has_its_price():
    X, y, z = make_problem(n=10_000)
    model = FairClassifier().fit(X, y, sensitive_features=z)
    plain_, fair = (certificate(model.at(tau), X, y, sensitive_features=z) for tau in (1e-6, 0.95))
    assert plain_.delta < 0.1 * fair.delta
    assert fair.epsilon < 0.1 * plain_.epsilon


def test_no_price_without_fairness(problem):
    X, y, z = problem
    options = {"alpha": 0.0, "mu": 0.0, "update": "normal", "cut": False, "max_iter": 300}
    options["candidates"] = "solver"  # another direction may be more accurate at a greater loss
    model = fair(tau=1e-6, **options).fit(X, y, sensitive_features=z)
    assert abs(certificate(model, X, y, sensitive_features=z).delta) < 1e-7


def test_certificate_takes_what_fit_takes(problem):
    X, y, z = problem
    model = fair(max_iter=40).fit(X, y, sensitive_features=z)
    expected = certificate(model, X, y, sensitive_features=z)

    def same(found, rel=1e-6):
        for name in ("epsilon", "delta", "min_loss_c", "loss_c"):
            assert getattr(found, name) == pytest.approx(getattr(expected, name), rel=rel)

    same(certificate(model, csr_matrix(X), y, sensitive_features=z))
    same(certificate(model, X.astype(np.float32), y, sensitive_features=z), rel=1e-3)
    weight = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = certificate(model, X, y, sensitive_features=z, sample_weight=weight)
    rows = np.repeat(np.arange(len(y)), weight)
    expected = weighted
    same(certificate(model, X[rows], y[rows], sensitive_features=z[rows]))

    with_column = np.column_stack([X, z])
    model = fair(max_iter=40, sensitive_features=5).fit(with_column, y)
    expected = certificate(model, with_column, y)
    assert model.coef_[0, 5] == 0
    assert expected.delta > 0


def test_certificate_on_other_rows(problem):
    X, y, z = problem
    model = fair(max_iter=40).fit(X[:300], y[:300], sensitive_features=z[:300])
    found = certificate(model, X[300:], y[300:], sensitive_features=z[300:])
    inputs, _ = in_coordinates(X[300:], "whitened")
    assert abs(found.min_loss_c - plain(inputs, y[300:], 1e-4)[0]) <= 1e-8
    assert found.delta > 0


@pytest.mark.parametrize("metric", METRICS[1:])
def test_certificate_with_columns_that_say_nothing_new(problem, metric):
    """A constant column, and one that is another's double in other units."""
    X, y, z = problem
    more = np.column_stack([X, np.full(len(y), 7.0), 1e-3 * X[:, 0]])
    model = fair(max_iter=20, metric=metric, l2=1e-2).fit(more, y, sensitive_features=z)
    found = certificate(model, more, y, sensitive_features=z)
    s = more @ model.coef_[0] + model.intercept_[0]
    log_losses = np.mean(np.logaddexp(0, s) - y * s)
    assert found.loss_c >= log_losses
    assert found.loss_c == pytest.approx(log_losses, abs=0.1)
    assert found.delta_uncut >= -1e-10


def test_certificate_refuses_what_it_cannot_judge(problem):
    X, y, z = problem
    with pytest.raises(NotFittedError):
        certificate(FairClassifier(), X, y, sensitive_features=z)
    model = fair(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
    with raises("other_values_than_fitted", name="labels", given=[1, 2], fitted=[0, 1]):
        certificate(model, X, y + 1, sensitive_features=z)
    with raises("other_values_than_fitted", name="groups", given=[1, 2], fitted=[0, 1]):
        certificate(model, X, y, sensitive_features=z + 1)
    with pytest.raises(ValueError, match="groups are missing"):
        certificate(model, X, y)
    with pytest.raises(ValueError, match="features"):
        certificate(model, X[:, :3], y, sensitive_features=z)


def test_certificate_names_what_it_cannot_judge():
    with pytest.raises(TypeError, match="needs a FairClassifier, not a LogisticRegression"):
        certificate(LogisticRegression(), None, None)


@pytest.mark.parametrize(
    ("params", "y", "what"),
    [
        (
            {"notion": ["statistical_parity", "equal_opportunity"]},
            2,
            "several notions, as equalized_odds is",
        ),
        ({}, 3, "more than two labels"),
        ({"group_cuts": True}, 2, Parameter("group_cuts", True)),
    ],
)
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_certificate_says_what_it_is_for(params, y, what):
    rng = np.random.default_rng(0)
    X, y, z = rng.standard_normal((90, 2)), rng.integers(0, y, 90), rng.integers(0, 2, 90)
    model = fair(max_iter=5, **params).fit(X, y, sensitive_features=z)
    with raises("no_certificate_for", what=what):
        certificate(model, X, y, sensitive_features=z)


def test_certificate_of_the_smaller_label_as_favourable():
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((300, 2)), rng.integers(0, 2, 300)
    y = (X[:, 0] + 0.5 * z + rng.standard_normal(300) > 0).astype(int)
    ours = FairClassifier(pos_label=0).fit(X, y, sensitive_features=z)
    other = FairClassifier().fit(X, 1 - y, sensitive_features=z)
    one = certificate(ours, X, y, sensitive_features=z)
    two = certificate(other, X, 1 - y, sensitive_features=z)
    assert one.delta == pytest.approx(two.delta)
    assert one.epsilon == pytest.approx(two.epsilon)
