import itertools

import numpy as np
import pytest
from helpers import NOTION_NAMES, PAPER_NOTIONS, READING_NAMES, as_layout, make_problem
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import expit, xlogy

from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS
from evenhand.engines.memory import make_oracle

CASES = list(itertools.product(NOTION_NAMES, READING_NAMES))


def problem_oracle(notion="statistical_parity", degree=2, data=None, **kwargs):
    X, y, z = make_problem() if data is None else data
    return make_oracle(X, y, z, notion=NOTIONS[notion](degree), **kwargs)


def point(oracle, seed=0, size=0.5):
    rng = np.random.default_rng(seed)
    return (
        size * rng.standard_normal(oracle.n_weights),
        size * rng.standard_normal(oracle.n_adversary),
    )


def central(f, x, h=1e-6):
    steps = h * np.eye(len(x))
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in steps])


def whole(grad_f):
    """The gradient of the summed loss; equalised odds has a row for each of its two."""
    return np.atleast_2d(grad_f).sum(axis=0)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("notion", "reading"), CASES)
def test_gradients_are_those_of_their_own_losses(notion, reading, weighted):
    weight = np.random.default_rng(1).random(400) + 0.1 if weighted else None
    # Printed sums are of the order of N^2: mu is in units that keep the loss of order one.
    oracle = problem_oracle(notion, reading=reading, l2=0.1, mu=3.0, sample_weight=weight)
    w, u = point(oracle)
    m = oracle.evaluate(w, u, 1.7)
    for name, gradient, f, x in [
        ("loss_c", m.grad_c, lambda w: oracle.evaluate(w, u, 1.7).loss_c, w),
        ("loss_w", whole(m.grad_f), lambda w: oracle.evaluate(w, u, 1.7).loss_w, w),
        ("loss_u", m.grad_u, lambda u: oracle.evaluate(w, u, 1.7).loss_u, u),
    ]:
        expected = central(f, x)
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(gradient / scale, expected / scale, atol=1e-6, err_msg=name)


@given(st.integers(0, 50), st.sampled_from(CASES), st.sampled_from([1, -1, None]))
def test_gradients_anywhere(seed, case, sign):
    notion, reading = case
    oracle = problem_oracle(
        notion,
        degree=1 + seed % 3,
        data=make_problem(n=60, n_features=3, seed=seed),
        reading=reading,
        adversary_sign=sign,
    )
    w, u = point(oracle, seed, size=1.0)
    m = oracle.evaluate(w, u, 0.8)
    expected = approx_fprime(w, lambda w: oracle.evaluate(w, u, 0.8).loss_w, 1e-7)
    scale = max(1.0, np.abs(expected).max())
    np.testing.assert_allclose(whole(m.grad_f) / scale, expected / scale, atol=2e-5)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("notion", PAPER_NOTIONS)
def test_losses_and_counts_by_their_definitions(notion, weighted):
    X, y, z = make_problem()
    weight = np.random.default_rng(1).random(400) + 0.1 if weighted else np.ones(400)
    oracle = problem_oracle(notion, l2=0.3, mu=2.0, sample_weight=weight if weighted else None)
    w, u = point(oracle)
    m = oracle.evaluate(w, u, 1.3)
    s = X @ w[:-1] + w[-1]
    f = expit(s)
    phi = [np.ones(400), s / 1.3, (s / 1.3) ** 2]
    if notion == "false_discovery":
        phi = [np.ones(400), f, y]
    g = expit(u @ np.array(phi))

    def log_loss(p, label):
        return -np.average(xlogy(label, p) + xlogy(1 - label, 1 - p), weights=weight)

    def soft_fdr(j):
        return np.sum((weight * f * (1 - y))[z == j]) / np.sum((weight * f)[z == j])

    def mean_score(j):
        return np.average(s[z == j], weights=weight[z == j])

    measure = soft_fdr if notion == "false_discovery" else mean_score
    gap = measure(0) - measure(1)
    assert m.loss_c == pytest.approx(log_loss(f, y) + 0.15 * np.sum(w[:-1] ** 2))
    assert m.gap == pytest.approx(abs(gap))
    assert m.loss_u == pytest.approx(-log_loss(g, z))
    assert m.loss_w == pytest.approx(log_loss(g, z) - oracle.kappas[0] / 2 * gap**2)
    _, counts = group_counts(y, s > 0, sensitive_features=z, sample_weight=weight)
    np.testing.assert_allclose(m.counts, counts)
    slope = u[1] / 1.3 + 2 * u[2] * s / 1.3**2
    if notion == "false_discovery":
        slope = u[1] * f * (1 - f)
    assert m.steepness == pytest.approx(np.average(slope**2, weights=weight))
    assert m.scale == pytest.approx(np.sqrt(np.cov(s, aweights=weight, ddof=0)))


def test_the_readings_differ_where_the_notes_say():
    corrected, printed = (problem_oracle(reading=r, l2=1.0) for r in READING_NAMES)
    w, u = point(corrected)
    a, b = corrected.evaluate(w, u, 2.0), printed.evaluate(w, u, 2.0)
    # Printed: intercept penalised, adversary helped rather than hindered, raw scores, N times gap.
    assert b.loss_c - a.loss_c == pytest.approx(w[-1] ** 2 / 2)
    raw = corrected.evaluate(w, u, 1.0)
    assert b.loss_u == pytest.approx(raw.loss_u)
    assert b.gap == pytest.approx(400 * a.gap)
    regulariser = corrected.kappas[0] / 2 * a.gap**2
    assert printed.kappas[0] / 2 * b.gap**2 == pytest.approx(regulariser)
    assert a.loss_w == pytest.approx(-a.loss_u - regulariser)
    assert b.loss_w == pytest.approx(b.loss_u - regulariser)
    flipped = problem_oracle(reading="corrected", l2=1.0, adversary_sign=-1).evaluate(w, u, 2.0)
    assert flipped.loss_w == pytest.approx(a.loss_u - regulariser)


def test_printed_discovery_gap_by_its_formula():
    X, y, z = make_problem()
    oracle = problem_oracle("false_discovery", reading="printed")
    w, u = point(oracle)
    s = X @ w[:-1] + w[-1]
    a, b = ([s[(z == j) & (y == 0)].sum() for j in (0, 1)], [s[z == j].sum() for j in (0, 1)])
    assert oracle.evaluate(w, u).gap == pytest.approx(abs(a[1] * b[0] - a[0] * b[1]))
    X1 = np.column_stack([X, np.ones(400)])
    false = [X1[(z == j) & (y == 0)].sum(axis=0) for j in (0, 1)]
    every = [X1[z == j].sum(axis=0) for j in (0, 1)]
    M = np.outer(false[1], every[0]) - np.outer(false[0], every[1])
    scale = np.linalg.norm((M + M.T) / 2) ** 2
    assert oracle.kappas[0] == pytest.approx(oracle.mu * oracle.smoothness / scale)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(("notion", "reading"), CASES)
def test_dense_sparse_and_blocks_agree(notion, reading, dtype):
    X, y, z = make_problem(dtype=dtype)
    weight = np.random.default_rng(1).random(400) + 0.1
    tolerance = 1e-12 if dtype == np.float64 else 2e-5
    exact = problem_oracle(
        notion, reading=reading, data=(X.astype(float), y, z), sample_weight=weight
    )
    w, u = point(exact)
    expected = exact.evaluate(w, u, 1.5)
    for layout, rows in itertools.product(["dense", "csr"], [7, 64, 1000]):
        data = as_layout(X, layout), y, z
        oracle = problem_oracle(
            notion, reading=reading, data=data, sample_weight=weight, block_rows=rows
        )
        found = oracle.evaluate(w, u, 1.5)
        assert oracle.smoothness == pytest.approx(exact.smoothness, rel=1e-5)
        for name, a, b in zip(found._fields, found, expected, strict=True):
            scale = max(1.0, np.abs(b).max())
            np.testing.assert_allclose(a / scale, b / scale, atol=tolerance, err_msg=name)
        assert oracle.sums(w, u).x_r.dtype == np.float64


def test_mostly_zero_tables_become_sparse_and_agree():
    _, y, z = make_problem()
    X = np.zeros((400, 8))
    X[np.arange(400), np.random.default_rng(0).integers(0, 8, 400)] = 1.0
    oracle = problem_oracle(data=(X, y, z))
    assert oracle.rows.blocks[0].X.nnz == 400
    w, u = point(oracle)
    s = X @ w[:-1] + w[-1]
    np.testing.assert_allclose(
        oracle.evaluate(w, u).grad_c[:-1], X.T @ (expit(s) - y) / 400 + 1e-4 * w[:-1], atol=1e-12
    )


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("n_features", [3, 30])
def test_weights_are_repetitions(layout, n_features):
    X, y, z = make_problem(n=200, n_features=n_features)
    times = np.random.default_rng(2).integers(1, 4, 200)
    repeated = problem_oracle(data=tuple(np.repeat(v, times, axis=0) for v in (X, y, z)))
    weighted = problem_oracle(data=(as_layout(X, layout), y, z), sample_weight=times)
    assert weighted.smoothness == pytest.approx(repeated.smoothness, rel=0.01)
    w, u = point(weighted)
    weighted.kappas = repeated.kappas  # Lanczos stops at 1%
    for a, b in zip(weighted.evaluate(w, u), repeated.evaluate(w, u), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("n_features", [2, 40])
def test_smoothness_bounds_the_hessian(n_features):
    X, y, z = make_problem(n_features=n_features)
    oracle = problem_oracle(data=(X, y, z), l2=0.5)
    X1 = np.column_stack([X, np.ones(400)])
    exact = np.linalg.eigvalsh(X1.T @ X1)[-1] / 1600
    assert exact + 0.5 <= oracle.smoothness <= 1.03 * exact + 0.5
    assert oracle.smoothness_at(0.1) == pytest.approx(oracle.smoothness * 2)
    assert oracle.smoothness_at(0.1, 3.0) == pytest.approx(oracle.smoothness * 2.3)


def test_adversary_smoothness_is_a_quarter_of_the_largest_eigenvalue():
    X, _, _ = make_problem()
    oracle = problem_oracle()
    w, u = point(oracle)
    s = (X @ w[:-1] + w[-1]) / 1.2
    phi = np.stack([np.ones(400), s, s**2])
    expected = np.linalg.eigvalsh(phi @ phi.T)[-1] / 1600
    assert oracle.evaluate(w, u, 1.2).smoothness_u == pytest.approx(expected)


@pytest.mark.parametrize(("notion", "reading"), CASES)
def test_extreme_scores_stay_finite(notion, reading):
    oracle = problem_oracle(notion, reading=reading)
    for size in (1e2, 1e5):
        m = oracle.evaluate(np.full(6, size), np.full(oracle.n_adversary, size), 1.0)
        assert all(np.isfinite(v).all() for v in m)
    # A certain and right prediction costs nothing, however certain.
    X = np.array([[1e4], [-1e4], [1.0], [-1.0]])
    sure = problem_oracle(data=(X, np.array([1, 0, 1, 0]), np.array([0, 1, 1, 0])), l2=0.0)
    loss = sure.evaluate(np.array([1.0, 0.0]), np.zeros(3)).loss_c
    assert loss == pytest.approx(np.log1p(np.exp(-1)) / 2)


def test_groups_that_do_not_differ_leave_nothing_to_regularise():
    X = np.repeat(np.random.default_rng(0).standard_normal((50, 2)), 2, axis=0)
    y, z = np.repeat([0, 1] * 25, 2), np.tile([0, 1], 50)
    oracle = problem_oracle(data=(X, y, z))
    assert oracle.kappas[0] == 0
    assert np.isfinite(oracle.evaluate(*point(oracle)).grad_f).all()
