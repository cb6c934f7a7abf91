import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import make_problem, raises, warns
from scipy.linalg import null_space
from scipy.optimize import minimize
from scipy.special import expit
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from evenhand.core.errors import Parameter
from evenhand.core.metrics import group_counts, statistical_rate
from evenhand.core.rates import RATES
from evenhand.datasets import encoded_split, load_adult
from evenhand.peers import ZafarClassifier, ZafarMistreatmentClassifier

pytest.importorskip("cvxpy")

L2 = 1e-3
BOTH = pytest.mark.parametrize("Peer", [ZafarClassifier, ZafarMistreatmentClassifier])


def loss(w, X, y, l2=L2, weight=None):
    """Mean log-loss with ridge and its gradient, written without the code under test."""
    A = np.column_stack([X, np.ones(len(X))])
    sign = 2 * np.asarray(y) - 1
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    margin = sign * (A @ w)
    ridge = np.append(w[:-1], 0)
    value = share @ np.logaddexp(0, -margin) + l2 / 2 * ridge @ ridge
    return value, -A.T @ (share * sign * expit(-margin)) + l2 * ridge


def covariance(X, z):
    return np.append(np.mean((z - z.mean())[:, None] * X, axis=0), 0.0)


def weights(model):
    return np.append(model.coef_[0], model.intercept_)


def reference(X, y, z, bound, l2=L2):
    """The same optimum by SLSQP."""
    d = covariance(X, z)
    found = minimize(
        loss,
        np.zeros(len(d)),
        args=(X, y, l2),
        jac=True,
        method="SLSQP",
        constraints=[
            {"type": "ineq", "fun": lambda w: bound - d @ w, "jac": lambda w: -d},
            {"type": "ineq", "fun": lambda w: bound + d @ w, "jac": lambda w: d},
        ],
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert found.success
    return found


@pytest.mark.parametrize("bound", [0.01, 0.1, 10.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_optimum_is_that_of_another_solver(bound, seed):
    X, y, z = make_problem(seed=seed)
    model = ZafarClassifier(covariance_bound=bound, l2=L2).fit(X, y, sensitive_features=z)
    expected = reference(X, y, z, bound)
    assert model.loss_ == pytest.approx(expected.fun, abs=1e-5)
    assert model.loss_ == pytest.approx(loss(weights(model), X, y)[0], abs=1e-9)
    np.testing.assert_allclose(weights(model), expected.x, atol=2e-3)
    assert abs(covariance(X, z) @ weights(model)) <= bound + 1e-6


def test_zero_covariance_is_plain_regression_within_the_hyperplane():
    X, y, z = make_problem()
    d = covariance(X, z)
    basis = null_space(d[None])

    def reduced(v):
        value, gradient = loss(basis @ v, X, y)
        return value, basis.T @ gradient

    found = minimize(reduced, np.zeros(basis.shape[1]), jac=True, method="L-BFGS-B", tol=1e-12)
    model = ZafarClassifier(l2=L2).fit(X, y, sensitive_features=z)
    assert model.loss_ == pytest.approx(found.fun, abs=1e-5)
    assert abs(model.covariance_) < 1e-6
    assert model.covariance_ == pytest.approx(d @ weights(model), abs=1e-12)


def test_accuracy_mode_spends_the_allowed_loss():
    X, y, z = make_problem()
    least = loss(reference(X, y, z, 100.0).x, X, y)[0]
    model = ZafarClassifier("accuracy", gamma=0.01, l2=L2).fit(X, y, sensitive_features=z)
    assert model.loss_ == pytest.approx(1.01 * least, rel=1e-5)
    # The two modes are one frontier: the same loss bought with the covariance found.
    assert reference(X, y, z, abs(model.covariance_)).fun == pytest.approx(model.loss_, abs=1e-5)


def test_accuracy_mode_at_its_ends():
    X, y, z = make_problem()
    free = ZafarClassifier("accuracy", gamma=0.0, l2=L2).fit(X, y, sensitive_features=z)
    assert free.loss_ == pytest.approx(reference(X, y, z, 100.0).fun, abs=1e-6)
    loose = ZafarClassifier("accuracy", gamma=5.0, l2=L2).fit(X, y, sensitive_features=z)
    zero = ZafarClassifier(l2=L2).fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(loose.coef_, zero.coef_, atol=1e-5)


def test_relative_bound_and_path():
    X, y, z = make_problem()
    free = ZafarClassifier(covariance_bound=100.0, l2=L2).fit(X, y, sensitive_features=z)
    path = ZafarClassifier(relative=True, l2=L2).fit_path(
        X, y, sensitive_features=z, bounds=[0.5, 0.0, 2.0]
    )
    assert [m.covariance_bound for m in path] == [0.5, 0.0, 2.0]
    assert path[0].covariance_ == pytest.approx(0.5 * free.covariance_, abs=1e-5)
    assert path[1].covariance_ == pytest.approx(0, abs=1e-5)
    assert path[2].loss_ == pytest.approx(free.loss_, abs=1e-6)
    single = ZafarClassifier(covariance_bound=0.5, relative=True, l2=L2)
    single.fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(path[0].coef_, single.coef_, atol=1e-5)
    by_loss = ZafarClassifier("accuracy", l2=L2).fit_path(
        X, y, sensitive_features=z, bounds=[0.0, 0.02]
    )
    assert by_loss[0].loss_ < by_loss[1].loss_


def row_losses(w, X, y):
    return np.logaddexp(0, -(2 * y - 1) * (np.column_stack([X, np.ones(len(X))]) @ w))


@pytest.mark.parametrize("kept_group", [None, 1, 0])
@pytest.mark.parametrize("gamma", [0.1, 2.0])
def test_nobody_pays_more_than_allowed(gamma, kept_group):
    X, y, z = make_problem(150)
    model = ZafarClassifier("persons", gamma=gamma, kept_group=kept_group, l2=L2)
    model.fit(X, y, sensitive_features=z)
    free = reference(X, y, z, 100.0).x
    A, d = np.column_stack([X, np.ones(len(X))]), covariance(X, z)
    stays = (z == kept_group) & (A @ free > 0)
    most = (1 + gamma) * row_losses(free, X, y)
    assert (row_losses(weights(model), X, y)[~stays] <= most[~stays] * (1 + 1e-3)).all()
    assert (model.predict(X)[stays] == 1).all()
    # The authors' program, with the losses themselves as constraints, by another solver.
    found = minimize(
        lambda w: (d @ w) ** 2,
        free,
        jac=lambda w: 2 * (d @ w) * d,
        method="SLSQP",
        constraints={
            "type": "ineq",
            "fun": lambda w: np.where(stays, A @ w, most - row_losses(w, X, y)),
        },
        options={"ftol": 1e-14, "maxiter": 1000},
    )
    assert abs(model.covariance_) == pytest.approx(abs(d @ found.x), abs=1e-3)
    assert abs(model.covariance_) < abs(d @ free)
    assert model.bound_ == 1 + gamma


def test_a_group_keeps_its_favourable_answers_at_a_price():
    X, y, z = make_problem()
    free = ZafarClassifier(covariance_bound=100.0, l2=L2).fit(X, y, sensitive_features=z)
    had = free.predict(X) == 1
    options = {"mode": "persons", "gamma": 1000.0, "l2": L2}
    anybody = ZafarClassifier(**options).fit(X, y, sensitive_features=z)
    nobody = ZafarClassifier(**options, kept_group=1).fit(X, y, sensitive_features=z)
    assert (anybody.predict(X)[had & (z == 1)] == 0).any()
    assert (nobody.predict(X)[had & (z == 1)] == 1).all()
    # Others are free, so parity is reached: at 0 the weights of least loss are taken.
    zero = ZafarClassifier(l2=L2).fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(weights(anybody), weights(zero), atol=1e-2)
    assert zero.loss_ - 1e-6 <= nobody.loss_
    path = ZafarClassifier("persons", kept_group=1, l2=L2).fit_path(
        X, y, sensitive_features=z, bounds=[0.0, 1000.0]
    )
    assert path[0].loss_ == pytest.approx(free.loss_, abs=1e-5)
    np.testing.assert_allclose(weights(path[1]), weights(nobody), atol=1e-5)
    with raises("kept_group_of_mode", kept_group=Parameter("kept_group", 1)):
        ZafarClassifier(kept_group=1).fit(X, y, sensitive_features=z)


def test_several_attributes_each_have_their_bound():
    X, y, z = make_problem()
    age = np.where(X[:, 2] > 0.5, "old", np.where(X[:, 3] > 0, "mid", "young"))
    sex = np.where(z == 1, "m", "f")
    columns = pd.DataFrame({"sex": sex, "age": age})
    bounds = np.array([0.1, 0.02, 0.03, 0.04])
    holds = [sex == "m", age == "mid", age == "old", age == "young"]
    D = np.array([covariance(X, z.astype(int)) for z in holds])
    model = ZafarClassifier(covariance_bound=bounds, l2=L2)
    model.fit(X, y, sensitive_features=columns)
    assert model.attributes_ == ["sex=m", "age=mid", "age=old", "age=young"]
    assert set(model.groups_) == {f"{a} & {b}" for a in "fm" for b in ("mid", "old", "young")}
    found = minimize(
        loss,
        np.zeros(6),
        args=(X, y, L2),
        jac=True,
        method="SLSQP",
        constraints={"type": "ineq", "fun": lambda w: np.append(bounds - D @ w, bounds + D @ w)},
        options={"ftol": 1e-12, "maxiter": 1000},
    )
    assert model.loss_ == pytest.approx(found.fun, abs=1e-5)
    np.testing.assert_allclose(weights(model), found.x, atol=2e-3)
    np.testing.assert_allclose(model.covariance_, D @ weights(model), atol=1e-9)
    np.testing.assert_array_equal(model.bound_, bounds)
    # One number is for all; a share is of each covariance without a bound.
    free = np.abs(D @ reference(X, y, z, 100.0).x)
    half = ZafarClassifier(covariance_bound=0.5, relative=True, l2=L2)
    half.fit(X, y, sensitive_features=columns.to_numpy())
    np.testing.assert_allclose(half.bound_, free / 2, atol=1e-3)
    assert (np.abs(half.covariance_) <= half.bound_ + 1e-6).all()
    assert half.attributes_ == ["0=m", "1=mid", "1=old", "1=young"]
    with raises("bounds_of_attributes", attributes="'sex=m', 'age=mid', 'age=old', 'age=young'"):
        ZafarClassifier(covariance_bound=[0.1, 0.2]).fit(X, y, sensitive_features=columns)
    wrong = ([0, 0, 0, -1], [0, 0, 0, np.nan], [0, 0, 0, np.inf], ["a", "b", "c", "d"], [[0.1]])
    for bounds in (*wrong, {"sex=m": 0.1}, []):
        model = ZafarClassifier(covariance_bound=bounds)
        with raises("bounds_of_attributes", bound=Parameter("covariance_bound", bounds)):
            model.fit(X, y, sensitive_features=columns)


def test_columns_of_one_name_are_refused():
    X, y, z = make_problem()
    columns = pd.DataFrame(np.column_stack([z, X[:, 1] > 0]), columns=["a", "a"])
    with raises("sensitive_twice", column="a"):
        ZafarClassifier(covariance_bound=[0.05, 0.1], l2=L2).fit(X, y, sensitive_features=columns)


def test_two_binary_attributes_are_two_columns_in_any_order():
    X, y, z = make_problem()
    other = (X[:, 1] > 0).astype(int)
    both = ZafarClassifier(covariance_bound=[0.05, 0.1], l2=L2)
    both.fit(X, y, sensitive_features=np.column_stack([z, other]))
    turned = ZafarClassifier(covariance_bound=[0.1, 0.05], l2=L2)
    turned.fit(X, y, sensitive_features=np.column_stack([other, z]))
    np.testing.assert_allclose(weights(both), weights(turned), atol=1e-5)
    assert both.attributes_ == ["0=1", "1=1"]
    least = ZafarClassifier("accuracy", gamma=0.01, l2=L2)
    least.fit(X, y, sensitive_features=np.column_stack([z, other]))
    assert least.loss_ == pytest.approx(least.bound_, rel=1e-5)
    single = ZafarClassifier("accuracy", gamma=0.01, l2=L2).fit(X, y, sensitive_features=z)
    sums = [np.abs(covariance(X, a) @ weights(m)) for m in (least, single) for a in (z, other)]
    assert sum(sums[:2]) <= sum(sums[2:]) + 1e-6


def test_three_groups_are_three_indicators():
    X, y, _ = make_problem()
    z = np.arange(len(y)) % 3
    model = ZafarClassifier(l2=L2).fit(X, y, sensitive_features=z)
    assert model.attributes_ == [0, 1, 2]
    means = [model.decision_function(X[z == k]).mean() for k in range(3)]
    assert np.ptp(means) < 1e-5
    with raises("unknown_group", shown="'x'", known="0, 1, 2"):
        ZafarClassifier("persons", kept_group="x").fit(X, y, sensitive_features=z)


def test_columns_of_any_scale():
    X, y, z = make_problem()
    # Without a ridge, units change nothing.
    plain = ZafarClassifier(l2=0).fit(X, y, sensitive_features=z)
    scaled = ZafarClassifier(l2=0).fit(X * [1e5, 1, 1e-4, 1, 1], y, sensitive_features=z)
    assert scaled.loss_ == pytest.approx(plain.loss_, abs=1e-5)
    with pytest.raises(ValueError, match="too large"):
        ZafarClassifier().fit(X * 1e90, y, sensitive_features=z)


@pytest.mark.parametrize("constraint", ["overall", "fpr", "fnr", "both"])
def test_mistreatment_constraint_holds_and_helps(constraint):
    X, y, z = make_problem(400)
    A = np.column_stack([X, np.ones(len(X))])

    def violation(w, rows):
        g = np.minimum(0, (2 * y - 1) * (A @ w))[rows]
        return np.mean((z[rows] - z[rows].mean()) * g)

    kinds = {
        "overall": [y >= 0],
        "fpr": [y == 0],
        "fnr": [y == 1],
        "both": [y == 0, y == 1],
    }[constraint]
    model = ZafarMistreatmentClassifier(constraint, l2=L2).fit(X, y, sensitive_features=z)
    free = ZafarClassifier(covariance_bound=100.0, l2=L2).fit(X, y, sensitive_features=z)
    assert model.feasible_
    for found, rows in zip(model.covariance_, kinds, strict=True):
        assert found == pytest.approx(violation(weights(model), rows), abs=1e-10)
        assert abs(found) <= 1e-4 * abs(violation(weights(free), rows)) + 1e-8
    assert model.losses_[0] == pytest.approx(free.loss_, abs=1e-6)
    assert model.loss_ >= free.loss_ - 1e-7
    assert model.n_iter_ == len(model.losses_) - 1 == len(model.violations_) - 1
    if constraint in ("fpr", "fnr"):
        rate = RATES["false_positive_rate" if constraint == "fpr" else "false_negative_rate"]
        apart = [
            rate.difference(group_counts(y, m.predict(X), sensitive_features=z)[1])
            for m in (model, free)
        ]
        assert apart[0] < apart[1]


def test_mistreatment_is_no_worse_than_a_general_solver():
    X, y, z = make_problem(200, 3)
    model = ZafarMistreatmentClassifier("fpr", 0.3, relative=True, l2=L2)
    model.fit(X, y, sensitive_features=z)
    rows = y == 0
    A = np.column_stack([X, np.ones(len(X))])[rows]
    zc = z[rows] - z[rows].mean()
    bound = float(model.bound_[0])

    def cov(w):
        return float(np.mean(zc * np.minimum(0, -(A @ w))))

    start = ZafarClassifier(covariance_bound=100.0, l2=L2).fit(X, y, sensitive_features=z)
    found = minimize(
        loss,
        weights(start),
        args=(X, y, L2),
        jac=True,
        method="SLSQP",
        constraints=[{"type": "ineq", "fun": lambda w: [bound - cov(w), bound + cov(w)]}],
    )
    assert abs(cov(found.x)) <= bound + 1e-6
    assert model.loss_ <= found.fun + 1e-4


def test_mistreatment_without_need_is_plain_regression():
    X, y, z = make_problem()
    model = ZafarMistreatmentClassifier("both", 100.0, l2=L2).fit(X, y, sensitive_features=z)
    assert model.n_iter_ == 0
    assert model.loss_ == pytest.approx(reference(X, y, z, 100.0).fun, abs=1e-6)


def test_mistreatment_says_when_it_failed():
    X, y, z = make_problem()
    model = ZafarMistreatmentClassifier("both", 0.0, max_iter=1)
    with warns("covariance_not_reached", trouble="1 iterations were not enough"):
        model.fit(X, y, sensitive_features=z)
    assert not model.feasible_
    assert np.isfinite(model.coef_).all()


def test_mistreatment_needs_errors_of_each_group():
    X, y, z = make_problem()
    y = np.where(z == 1, 1, y)
    with raises("label_missing_in_group", group=1, label=0):
        ZafarMistreatmentClassifier("fpr").fit(X, y, sensitive_features=z)
    ZafarMistreatmentClassifier("fnr").fit(X, y, sensitive_features=z)


@BOTH
def test_weights_are_repetitions(Peer):
    X, y, z = make_problem(150)
    times = np.random.default_rng(0).integers(0, 3, len(y))
    weighted = Peer(l2=L2).fit(X, y, sensitive_features=z, sample_weight=times)
    repeated = Peer(l2=L2).fit(
        np.repeat(X, times, axis=0), np.repeat(y, times), sensitive_features=np.repeat(z, times)
    )
    np.testing.assert_allclose(weights(weighted), weights(repeated), atol=1e-3)
    assert weighted.loss_ == pytest.approx(repeated.loss_, abs=1e-5)


@BOTH
def test_same_call_same_answer(Peer):
    X, y, z = make_problem()
    first, second = (Peer().fit(X, y, sensitive_features=z) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


@BOTH
def test_labels_and_groups_of_any_type(Peer):
    X, y, z = make_problem()
    plain = Peer(covariance_bound=0.01).fit(X, y, sensitive_features=z)
    named = Peer(covariance_bound=0.01).fit(
        X, np.where(y, "yes", "no"), sensitive_features=np.where(z, "b", "a")
    )
    assert named.classes_.tolist() == ["no", "yes"]
    np.testing.assert_array_equal(named.predict(X) == "yes", plain.predict(X) == 1)
    np.testing.assert_allclose(named.predict_proba(X).sum(axis=1), 1)
    assert pickle.loads(pickle.dumps(named)).predict(X).tolist() == named.predict(X).tolist()


@BOTH
def test_parameters_and_errors(Peer):
    X, y, z = make_problem(100)
    model = Peer(covariance_bound=0.3, l2=0.5)
    assert clone(model).get_params() == model.get_params()
    with pytest.raises(NotFittedError):
        model.predict(X)
    with raises("missing_groups"):
        model.fit(X, y)
    if Peer is ZafarMistreatmentClassifier:
        with pytest.raises(ValueError, match="3 groups"):
            model.fit(X, y, sensitive_features=np.arange(100) % 3)
    with raises("invalid_parameter", parameter=Parameter("covariance_bound"), value=-1):
        Peer(covariance_bound=-1).fit(X, y, sensitive_features=z)
    with raises("unknown_solver", solver=Parameter("solver", "abacus")):
        Peer(solver="abacus").fit(X, y, sensitive_features=z)


def test_a_failing_solver_is_one_sentence(monkeypatch):
    import cvxpy

    X, y, z = make_problem(100)
    # OSQP knows no exponential cones.
    with pytest.raises(RuntimeError, match="OSQP failed to solve the convex program"):
        ZafarClassifier(solver="OSQP").fit(X, y, sensitive_features=z)
    with monkeypatch.context() as patch:
        patch.setattr(cvxpy.Problem, "status", "infeasible")
        patch.setattr(cvxpy.Variable, "value", None)
        with pytest.raises(RuntimeError, match="it says 'infeasible'"):
            ZafarClassifier().fit(X, y, sensitive_features=z)
    monkeypatch.setattr(cvxpy.Problem, "status", "optimal_inaccurate")
    with warns("reduced_accuracy", solver="CLARABEL"):
        ZafarClassifier().fit(X, y, sensitive_features=z)


def test_missing_cvxpy_names_the_extra(monkeypatch):
    import sys

    X, y, z = make_problem(100)
    monkeypatch.setitem(sys.modules, "cvxpy", None)
    with pytest.raises(ImportError, match=r"\.\[peers\]"):
        ZafarClassifier().fit(X, y, sensitive_features=z)


@pytest.mark.parametrize("seed", range(5))
def test_no_warning_on_easy_problems(seed):
    X, y, z = make_problem(seed=seed)
    path = ZafarClassifier().fit_path(X, y, sensitive_features=z, bounds=[0, 0.01, 0.1])
    path += ZafarClassifier("accuracy").fit_path(X, y, sensitive_features=z, bounds=[0.01, 0.1])
    assert all(np.isfinite(m.coef_).all() for m in path)


def test_separable_rows_give_finite_weights():
    X = np.array([[-2.0, 0], [-1, 1], [1, 0], [2, 1]] * 5)
    y, z = (X[:, 0] > 0).astype(int), X[:, 1].astype(int)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = ZafarClassifier(l2=0).fit(X, y, sensitive_features=z)
    assert np.isfinite(model.coef_).all()
    assert (model.predict(X) == y).all()


@pytest.mark.slow
def test_adult_as_published():
    split = encoded_split(load_adult(), random_state=0)
    model = ZafarClassifier().fit(split.X_train, split.y_train, sensitive_features=split.z_train)
    predicted = model.predict(split.X_test)
    assert np.mean(predicted == split.y_test) > 0.832
    rate = statistical_rate(split.y_test, predicted, sensitive_features=split.z_test)
    assert 0.72 < rate < 0.78
