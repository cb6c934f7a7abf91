import warnings

import numpy as np
import pytest
from helpers import as_layout, fair, make_problem, raises
from scipy.optimize import approx_fprime
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

from evenhand import FairnessWarning, Method
from evenhand.core.errors import Parameter
from evenhand.core.multipliers import CostSensitivePath, SoftRatePath, Walk
from evenhand.core.notions import NOTIONS, find_notion
from evenhand.core.rates import RATES
from evenhand.core.solvers import SOLVERS, AGDPlus, minimize_loss, solve
from evenhand.core.updates import RULES, normal
from evenhand.engines.memory import make_oracle

PATHS = {name: record.path for name, record in SOLVERS.items() if record.path is not None}
LINEAR = [
    name for name in NOTIONS if all(r.fixed_denominator for r in NOTIONS[name](2).rate.components)
]
OTHERS = [name for name in NOTIONS if name not in LINEAR]


def three_groups(n=600):
    X, y, z = make_problem(n)
    z = z + (np.random.default_rng(5).random(n) < 0.3)
    return X, y, z


def problem_oracle(notion="statistical_parity", data=None, **kwargs):
    X, y, z = make_problem() if data is None else data
    return make_oracle(X, y, z, notion=find_notion(notion), **kwargs)


def multipliers(oracle, seed=3, size=0.6):
    shape = (len(oracle.notion.rate.components), oracle.n_groups)
    return size * np.random.default_rng(seed).standard_normal(shape)


def fit(X, y, z, **params):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        weight = params.pop("sample_weight", None)
        model = fair(**params)
        return model.fit(X, y, sensitive_features=z, sample_weight=weight)


def test_which_rates_have_a_fixed_denominator():
    changing = {"false_discovery_rate", "false_omission_rate"}
    changing |= {"positive_predictive_value", "negative_predictive_value"}
    assert {name for name, rate in RATES.items() if not rate.fixed_denominator} == changing
    assert len(LINEAR) == 7


@pytest.mark.parametrize("notion", [*NOTIONS, ["statistical_parity", "false_discovery"]])
def test_soft_rate_gradient_is_that_of_its_loss(notion):
    weight = np.random.default_rng(1).random(600) + 0.1
    oracle = problem_oracle(notion, three_groups(), l2=0.1, sample_weight=weight)
    kappa, path = multipliers(oracle), SoftRatePath()
    w = 0.5 * np.random.default_rng(0).standard_normal(oracle.n_weights)

    def loss(w):
        m = path.evaluate(oracle, w, kappa)
        return m.loss_c - m.loss_w

    m = path.evaluate(oracle, w, kappa)
    np.testing.assert_allclose(m.grad_c - m.grad_f, approx_fprime(w, loss, 1e-7), atol=1e-5)


@pytest.mark.parametrize("notion", [*LINEAR, ["statistical_parity", "equal_opportunity"]])
def test_cost_sensitive_gradient_is_that_of_its_loss(notion):
    weight = np.random.default_rng(1).random(600) + 0.1
    oracle = problem_oracle(notion, three_groups(), l2=0.1, sample_weight=weight)
    kappa, path = multipliers(oracle), CostSensitivePath()
    w = 0.5 * np.random.default_rng(0).standard_normal(oracle.n_weights)
    m = path.evaluate(oracle, w, kappa)
    expected = approx_fprime(w, lambda w: path.evaluate(oracle, w, kappa).loss_c, 1e-7)
    np.testing.assert_allclose(m.grad_c, expected, atol=1e-5)
    assert not m.grad_f.any()
    # Labels and weights are others, the rows that are counted are not.
    np.testing.assert_allclose(m.counts, oracle.evaluate(w, np.zeros(oracle.n_adversary)).counts)


def test_soft_rate_loss_by_its_definition():
    X, y, z = three_groups()
    oracle = problem_oracle("equal_opportunity", (X, y, z), l2=0.0)
    kappa = multipliers(oracle)
    w = 0.5 * np.random.default_rng(0).standard_normal(oracle.n_weights)
    f = expit(X @ w[:-1] + w[-1])
    soft = sum(kappa[0, j] * f[(y == 1) & (z == j)].sum() for j in range(3)) / len(y)
    m = SoftRatePath().evaluate(oracle, w, kappa)
    assert -m.loss_w == pytest.approx(2 * soft)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("notion", LINEAR)
def test_cost_sensitive_against_logistic_regression(notion, weighted):
    X, y, z = three_groups()
    weight = np.random.default_rng(1).random(600) + 0.5 if weighted else np.ones(600)
    oracle = problem_oracle(notion, (X, y, z), l2=0.01, sample_weight=weight if weighted else None)
    kappa, path = multipliers(oracle), CostSensitivePath()
    view, _ = path.view(oracle, kappa)
    start = np.zeros(oracle.n_weights)
    found, _ = minimize_loss(view, start, max_iter=500, callback=lambda i: None, tol=1e-9)
    worth = 2.0 * y - 1
    for rate, k in zip(oracle.notion.rate.components, kappa, strict=True):
        hit = {p: np.array([(label, p) in rate.numerator for label in y]) for p in (0, 1)}
        worth = worth - k[z] * (hit[1].astype(float) - hit[0])
    exact = LogisticRegression(C=1 / (0.01 * weight.sum()), tol=1e-10, max_iter=10_000)
    exact.fit(X, worth > 0, sample_weight=weight * np.abs(worth))
    np.testing.assert_allclose(found[:-1], exact.coef_[0], atol=2e-5)
    np.testing.assert_allclose(found[-1], exact.intercept_[0], atol=2e-5)


@pytest.mark.parametrize("path", PATHS.values(), ids=list(PATHS))
def test_without_multipliers_it_is_plain_logistic_regression(path):
    oracle = problem_oracle(["equalized_odds", "statistical_parity"], three_groups())
    w = 0.3 * np.random.default_rng(0).standard_normal(oracle.n_weights)
    plain = oracle.evaluate(w, np.zeros(oracle.n_adversary))
    m = path.evaluate(oracle, w, np.zeros((3, 3)))
    assert m.loss_c - m.loss_w == pytest.approx(plain.loss_c)
    np.testing.assert_allclose(m.grad_c - m.grad_f, plain.grad_c, atol=1e-12)
    assert path.smoothness(oracle, np.zeros((3, 3))) == oracle.smoothness


def test_a_cell_that_costs_nothing_is_counted_all_the_same():
    oracle = problem_oracle()
    w = np.linspace(-1, 1, oracle.n_weights)
    m = CostSensitivePath().evaluate(oracle, w, np.array([[1.0, -1.0]]))
    counts = oracle.evaluate(w, np.zeros(oracle.n_adversary)).counts
    np.testing.assert_allclose(m.counts, counts, rtol=1e-9)


@pytest.mark.parametrize("name", PATHS)
def test_the_walk_goes_to_parity_and_stays_about_there(name):
    X, y, z = make_problem(2000)
    oracle = problem_oracle(data=(X, y, z))
    start, _ = minimize_loss(oracle, np.zeros(6), max_iter=200, callback=lambda i: None)
    walk = Walk(oracle, PATHS[name], 300)
    run = solve(walk, start, solver=AGDPlus(), rule=normal, schedule=lambda t: 1.0, max_iter=300)
    rate = [RATES["selection_rate"].ratio(i.moments.counts) for i in run]
    assert rate[0] < 0.6
    assert np.mean(rate[-60:]) > 0.9
    # The group with the higher rate pays: its positive answers are worth less.
    assert walk.kappa[0, 1] > 0 > walk.kappa[0, 0]


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("name", PATHS)
def test_dense_and_sparse_agree(name, layout):
    X, y, z = make_problem()
    a, b = fit(X, y, z, solver=name), fit(as_layout(X, layout), y, z, solver=name)
    np.testing.assert_allclose(a.frontier_.rate, b.frontier_.rate, atol=1e-9)
    np.testing.assert_allclose(a.coef_, b.coef_, atol=1e-6)


@pytest.mark.parametrize("name", PATHS)
def test_a_weight_is_a_number_of_rows(name):
    X, y, z = make_problem(200)
    times = np.random.default_rng(2).integers(1, 4, 200)
    weighted = fit(X, y, z, solver=name, sample_weight=times)
    again = np.repeat(np.arange(200), times)
    repeated = fit(X[again], y[again], z[again], solver=name)
    np.testing.assert_allclose(weighted.frontier_.rate, repeated.frontier_.rate, atol=1e-9)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("name", PATHS)
def test_every_notion_fits_or_is_refused_in_a_sentence(name, groups):
    X, y, z = make_problem(600) if groups == 2 else three_groups()
    for notion in [*NOTIONS, ["statistical_parity", "equal_opportunity"]]:
        if name == "cost_sensitive" and notion in OTHERS:
            with raises("solver_cannot_serve", notion=Parameter("notion", notion)):
                fit(X, y, z, solver=name, notion=notion)
            continue
        model = fit(X, y, z, solver=name, notion=notion, max_iter=40)
        assert model.converged_
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.trajectory_.to_frame().drop(columns="leg").to_numpy(float)).all()


@pytest.mark.parametrize("name", PATHS)
def test_favourable_labels_group_cuts_and_many_labels(name):
    X, y, z = make_problem(600)
    a = fit(X, y, z, solver=name, max_iter=40)
    b = fit(X, 1 - y, z, solver=name, max_iter=40, pos_label=0)
    np.testing.assert_allclose(a.frontier_.rate, b.frontier_.rate)
    assert fit(X, y, z, solver=name, max_iter=40, group_cuts=True).feasible_
    with pytest.raises(ValueError, match=f"solver='{name}' is for two labels"):
        fit(X, y + (X[:, 2] > 1), z, solver=name)


def test_a_refusal_names_the_part_that_is_refused():
    X, y, z = make_problem(60)
    with raises("solver_cannot_serve", notion=Parameter("notion", "predictive_parity")):
        fit(X, y, z, solver="cost_sensitive", notion=["statistical_parity", "predictive_parity"])


@pytest.mark.parametrize("name", PATHS)
def test_more_groups_come_closer_on_a_path(name):
    X, y, z = three_groups(3000)
    model = fit(X, y, z, solver=name, tau=0.9)
    assert model.feasible_
    assert model.frontier_.rate[0] < 0.6
    assert model.n_iter_ == Method().max_iter
    # rows of small groups are fitted, but not compared
    small = np.where(np.arange(3000) < 20, "few", z.astype(str))
    assert fit(X, y, small, solver=name, tau=0.9).small_groups_ == {"few": 20}


@pytest.mark.parametrize("name", PATHS)
def test_divergence_and_interruption_leave_the_best_point_so_far(name, monkeypatch):
    X, y, z = make_problem()
    for step in (1e10, 1e30, 1e300):
        with pytest.warns(ConvergenceWarning, match="diverged"):
            model = fit(X, y, z, solver=name, step=step)
        assert not model.converged_
        assert np.isfinite(model.coef_).all()
    calls, evaluate = [], Walk.evaluate

    def interrupted(self, *args):
        calls.append(1)
        if len(calls) > 10:
            raise KeyboardInterrupt
        return evaluate(self, *args)

    monkeypatch.setattr(Walk, "evaluate", interrupted)
    with pytest.warns(ConvergenceWarning, match="interrupted"):
        model = fit(X, y, z, solver=name)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("name", PATHS)
def test_walks_where_nothing_can_be_compared(name):
    # One group only has a label: its true positive rate is 0/0, the deviation nothing.
    X, y, z = make_problem()
    y = np.where(z == 0, 0, y)
    for init in ("optimum", "zero", "both"):
        model = fit(X, y, z, solver=name, notion="equal_opportunity", init=init, max_iter=20)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.decision_function(X)).all()


@pytest.mark.parametrize("name", ["soft_rate", "cost_sensitive"])
def test_a_walk_ends_nearer_to_parity_than_it_began(name):
    X, y, z = make_problem()
    oracle = make_oracle(X, y, z, notion=NOTIONS["statistical_parity"](2), l2=1e-4)
    start, _ = minimize_loss(
        oracle, np.zeros(oracle.n_weights), max_iter=100, callback=lambda i: None
    )
    run = SOLVERS[name].run(
        oracle, start, rule=RULES["modified"], schedule=lambda t: 0.1, max_iter=40, step=None
    )
    rates = [float(RATES["selection_rate"].ratio(i.moments.counts[:2])) for i in run]
    assert rates[0] < 0.6
    assert rates[-1] > rates[0] + 0.2
