"""Coordinates of the solver: gradients, units, correlation, engines."""

from functools import partial

import numpy as np
import pytest
from helpers import NOTION_NAMES, as_layout, fair, make_problem, make_rows, warns
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.preprocessing import StandardScaler

from evenhand.core.metric import LEAST_EIGENVALUE, MOST_WHITENED, NOISE, Metric
from evenhand.core.notions import NOTIONS, find_notion
from evenhand.datasets import encoded_split, load_adult, load_german
from evenhand.engines.memory import make_oracle
from evenhand.models.training import OTHER_METRIC

METRICS = ("scaled", "whitened")
TAUS = (0.3, 0.5, 0.6)


def mixed(n=1500, seed=0):
    """Correlated columns in different units, one of them constant."""
    X, y, z = make_problem(n, n_features=5, seed=seed)
    X[:, 4] = X[:, 3] + 0.1 * X[:, 4]
    return np.column_stack([X * [1, 50, 1e-3, 1, 1] + [0, 1990, 0, -3, 0], np.full(n, 7.0)]), y, z


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("notion", NOTION_NAMES)
def test_gradients_are_those_of_the_losses_in_the_coordinates(notion, metric):
    X, y, z = mixed(200)
    oracle = make_oracle(X, y, z, notion=NOTIONS[notion](2), metric=metric, mu=3.0, l2=0.1)
    rng = np.random.default_rng(0)
    v, u = rng.standard_normal(oracle.n_weights), rng.standard_normal(oracle.n_adversary)
    m = oracle.evaluate(v, u, 1.3)
    for gradient, loss in [(m.grad_c, "loss_c"), (np.atleast_2d(m.grad_f).sum(axis=0), "loss_w")]:
        expected = approx_fprime(
            v, lambda v, at=loss: getattr(oracle.evaluate(v, u, 1.3), at), 1e-7
        )
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(gradient / scale, expected / scale, atol=1e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_inputs_are_white_and_the_curvature_is_that_of_the_hessian(layout, weighted):
    X, y, z = mixed()
    weight = np.random.default_rng(1).random(len(y)) + 0.5 if weighted else None
    notion = find_notion("statistical_parity")
    oracle = make_oracle(
        as_layout(X, layout), y, z, notion=notion, metric="whitened", sample_weight=weight, l2=0.0
    )
    metric = oracle.metric
    white = (X - metric.mean) @ metric.transform
    share = np.full(len(y), 1 / len(y)) if weight is None else weight / weight.sum()
    np.testing.assert_allclose(share @ white, 0, atol=1e-9)
    values = np.linalg.eigvalsh((white * share[:, None]).T @ white)
    assert values[0] == pytest.approx(0, abs=1e-12)  # the constant column
    assert values[1] > 0.5  # two columns are correlated by .995
    epsilon = LEAST_EIGENVALUE + NOISE * X.shape[1] / oracle.total
    C = np.cov(X[:, :5].T, aweights=share)  # without the constant column
    largest = np.linalg.eigvalsh(C / np.sqrt(np.outer(np.diag(C), np.diag(C))))[-1]
    assert values[-1] == pytest.approx(largest / (largest + epsilon), rel=1e-9)
    assert oracle.smoothness == pytest.approx(1.02 / 4)
    scaled = make_oracle(X, y, z, notion=notion, metric="scaled", sample_weight=weight, l2=0.0)
    C = (X - metric.mean) * scaled.metric.transform * np.sqrt(share)[:, None]
    assert scaled.smoothness == pytest.approx(1.02 * np.linalg.eigvalsh(C.T @ C)[-1] / 4, rel=0.02)


@pytest.mark.parametrize("metric", METRICS)
def test_weights_and_gradients_are_each_others_transposes(metric):
    X, y, z = mixed(300)
    m = make_oracle(X, y, z, notion=find_notion("accuracy_parity"), metric=metric).metric
    rng = np.random.default_rng(2)
    v, g = rng.standard_normal((2, 3, X.shape[1] + 1))
    assert np.sum(m.weights(v) * g) == pytest.approx(np.sum(v * m.gradient(g)))
    np.testing.assert_allclose(m.weights(v.ravel()), m.weights(v).ravel())
    # The score is that of the transformed inputs, and a constant column has no weight.
    inputs = (X - m.mean) @ (m.transform if m.whitened else np.diag(m.transform))
    w = m.weights(v[0])
    np.testing.assert_allclose(X @ w[:-1] + w[-1], inputs @ v[0, :-1] + v[0, -1], atol=1e-8)
    assert w[-2] == 0


def answers(model):
    points = [model.at(tau) for tau in TAUS]
    return np.array([(p.accuracy_, p.rate_) for p in points])


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds", "false_discovery"])
def test_units_do_not_matter(notion, metric):
    X, y, z = mixed()
    model = fair(notion, metric=metric, max_iter=60, tau=0.3, confidence=None)
    expected = answers(model.fit(X, y, sensitive_features=z))
    scores = model.decision_function(X)
    for other in (
        X * 10.0 ** np.array([-6, 6, 3, -3, 0, 1]),
        X + np.array([1990, -20, 0, 1e3, 5, 0]),
        StandardScaler().fit_transform(X),
    ):
        found = fair(notion, metric=metric, max_iter=60, tau=0.3, confidence=None).fit(
            other, y, sensitive_features=z
        )
        np.testing.assert_allclose(answers(found), expected, atol=1e-3)
        np.testing.assert_allclose(found.decision_function(other), scores, atol=0.02)


def test_whitened_a_mixture_of_columns_hardly_matters():
    X, y, z = make_problem(1500, n_features=4)
    X = StandardScaler().fit_transform(X)
    turn = np.linalg.qr(np.random.default_rng(3).standard_normal((4, 4)))[0]
    mixing = turn @ np.diag([1, 2, 3, 1]) @ turn.T
    found, expected = (
        answers(fair(metric="whitened", max_iter=60).fit(x, y, sensitive_features=z))
        for x in (X @ mixing, X)
    )
    np.testing.assert_allclose(found, expected, atol=1e-2)


@settings(max_examples=8, deadline=None)
@given(
    st.integers(0, 10**6),
    st.integers(100, 400),
    st.integers(2, 5),
    st.data(),
)
def test_by_default_units_and_shifts_change_nothing(seed, n, d, data):
    X, y, z = make_problem(n, n_features=d, seed=seed)
    powers = data.draw(st.lists(st.integers(-6, 6), min_size=d, max_size=d))
    shifts = data.draw(st.lists(st.sampled_from([0.0, 1990.0, -20.0, 0.5]), min_size=d, max_size=d))
    expected, *found = (
        fair(confidence=None, tau=0.01).fit(x, y, sensitive_features=z)
        for x in (
            X,
            X * 10.0 ** np.array(powers),
            X + np.array(shifts),
            StandardScaler().fit_transform(X),
        )
    )
    for model in found:
        np.testing.assert_allclose(answers(model), answers(expected), atol=1e-9)


@pytest.mark.parametrize("load", [load_german, partial(load_adult, "coarse")])
def test_raw_tables_are_fitted_as_standardised_ones(load):
    split = encoded_split(load(), random_state=0)
    X, y, z = (np.asarray(v) for v in (split.X_train, split.y_train, split.z_train))
    X = X.astype(np.float64)
    expected = answers(fair().fit(X, y, sensitive_features=z))
    powers = np.random.default_rng(0).integers(-6, 7, X.shape[1])
    for other in (X * 10.0**powers, X + 1990.0 * (powers > 0), StandardScaler().fit_transform(X)):
        found = answers(fair().fit(other, y, sensitive_features=z))
        np.testing.assert_allclose(found, expected, atol=1e-3)


def test_float32_columns_of_too_few_digits_are_named():
    X, y, z = make_problem(2000)
    X[:, 1] = 1.6e9 + 1e5 * X[:, 1]
    X[:, 2] = 7.0  # a constant is no loss
    X[:, 3] = 1990 + 10 * X[:, 3]
    with warns("coarse_float32", columns=[1]):
        fair(tau=0.1).fit(X.astype(np.float32), y, sensitive_features=z)


@pytest.mark.parametrize("metric", ["whitened", "scaled"])
def test_columns_taken_for_constants_are_named(metric):
    X, y, z = make_problem(2000)
    X[:, 1] = 1e9 + X[:, 1]
    X[:, 2] = 0.3
    X[::2, 2] = 0.1 + 0.2  # the same but for rounding
    X[:, 3] = 1e5 + X[:, 3]
    with warns("taken_for_constant", columns=[1]):
        model = fair(tau=0.1, metric=metric).fit(X, y, sensitive_features=z)
    np.testing.assert_array_equal(model.coef_[0, :4] == 0, [False, True, True, False])


@pytest.mark.parametrize("metric", ["whitened", "scaled"])
@pytest.mark.parametrize("engine", ["numpy", "csr", "torch"])
def test_years_in_float32_are_not_lost(engine, metric):
    """The sums of squares of float32 have no digit of a deviation of 1 beside a mean of 2020."""
    random = np.random.default_rng(1)
    X, _, z = make_problem(2000)
    year = np.round(random.normal(2020, 1, len(X)))
    y = (X[:, 0] + year - 2020 + random.logistic(size=len(X)) > 0).astype(int)
    X = np.column_stack([X, year])
    model = fair(tau=0.5, metric=metric, confidence=None)
    expected = model.fit(X, y, sensitive_features=z).at(0.01)
    x = X.astype(np.float32)
    if engine == "torch":
        x = pytest.importorskip("torch").as_tensor(x)
    elif engine == "csr":
        x = as_layout(x, "csr")
    found = model.fit(x, y, sensitive_features=z).at(0.01)
    assert expected.coef_[0, -1] > 0.5
    np.testing.assert_allclose(found.coef_, expected.coef_, atol=0.05)
    assert found.accuracy_ == pytest.approx(expected.accuracy_, abs=0.005)


def test_raw_columns_are_not_warned_of_and_not_lost(recwarn):
    """One column in thousands hides the others from a descent without a metric."""
    X, y, z = make_problem(2000)
    X = X * [1, 1, 1, 1, 3e4]
    raw = fair(metric="whitened", confidence=None).fit(X, y, sensitive_features=z)
    assert not recwarn.list
    with warns("unlike_scales", otherwise=OTHER_METRIC):
        plain = fair(metric="none", candidates="solver", confidence=None)
        plain.fit(X, y, sensitive_features=z)
    assert raw.at(0.8).accuracy_ > plain.at(0.8).accuracy_ + 0.01


def test_no_other_coordinates_are_advised_where_the_formulas_have_none():
    X, y, z = make_problem(300)
    with warns("unlike_scales", otherwise=""):
        fair(reading="printed", max_iter=2).fit(X * [1, 1, 1, 1, 3e4], y, sensitive_features=z)


@pytest.mark.parametrize("labels", [2, 3])
@pytest.mark.parametrize("engine", ["csr", "dask", "torch"])
def test_engines_agree(engine, labels):
    X, y, z = make_rows(900, labels=labels)
    model = fair(metric="whitened", max_iter=20, tau=0.3, pos_label=1)
    expected = model.fit(X, y, sensitive_features=z).coef_
    if engine == "dask":
        X = pytest.importorskip("dask.array").from_array(X, chunks=(300, -1))
    elif engine == "torch":
        X = pytest.importorskip("torch").as_tensor(X)
    else:
        X = as_layout(X, "csr")
    found = fair(metric="whitened", max_iter=20, tau=0.3, pos_label=1)
    np.testing.assert_allclose(found.fit(X, y, sensitive_features=z).coef_, expected, atol=1e-8)


def test_many_columns_are_scaled():
    rng = np.random.default_rng(0)
    X, y, z = rng.standard_normal((50, MOST_WHITENED + 1)), np.arange(50) % 2, np.arange(50) // 25
    oracle = make_oracle(X, y, z, notion=find_notion("statistical_parity"), metric="whitened")
    assert not oracle.metric.whitened


def test_printed_and_noise_have_none():
    X, y, z = make_problem(300)
    for plain in ({"reading": "printed"}, {"extra_column": "noise"}):
        plain |= {"max_iter": 5, "tau": 0.1}
        models = [fair(metric=m, random_state=0, **plain) for m in ("none", "whitened")]
        a, b = (model.fit(X, y, sensitive_features=z).coef_ for model in models)
        np.testing.assert_array_equal(a, b)


def test_a_metric_of_mean_squares_is_the_deviation():
    m = Metric.of(np.array([5.0, 4.0]), np.array([1.0, 2.0]), np.array([3.0, 2.0]), 10.0)
    np.testing.assert_array_equal(m.transform, [0.5, 0.0])
