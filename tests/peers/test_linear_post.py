"""LinearPost, against enumeration and against its linear program."""

from itertools import product

import numpy as np
import pytest
from helpers import make_problem, raises
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS
from evenhand.peers import LinearPost, compare
from evenhand.peers._linear_post import one_multiplier, solve_program


def drawn(seed, n, n_rates, n_groups):
    """Gains, shares of weighted mean 1, and weights."""
    rng = np.random.default_rng(seed)
    member = rng.dirichlet(np.ones(n_groups), size=(n, n_rates))
    weight = rng.uniform(0.5, 2, size=n)
    mean = np.einsum("i,irj->rj", weight, member) / weight.sum()
    # Yes is worth more where the last group is likely, so that rates differ.
    return rng.normal(size=n) + member[:, 0, -1] - 0.5, member / mean, weight


def rule(gain, share, psi):
    return gain + np.einsum("irj,rj->i", share, psi) > 0


def rates_of(answer, share, weight):
    return np.einsum("i,irj->rj", weight * answer, share) / weight.sum()


@given(st.integers(0, 10**6), st.sampled_from([0.5, 0.8, 0.95, 1.0]))
def test_no_other_answers_are_as_fair_and_worth_more(seed, tau):
    gain, share, weight = drawn(seed, 9, 1, 2)
    psi = one_multiplier(gain, share, weight, tau)
    ours = rule(gain, share, psi)
    low = int(np.argmin(rates_of(gain > 0, share, weight)[0]))

    def slack(answer):
        rates = rates_of(answer, share, weight)[0]
        return rates[low] - tau * rates[1 - low]

    for other in product([False, True], repeat=9):
        other = np.array(other)
        if slack(other) >= slack(ours) - 1e-12:
            assert weight @ (gain * other) <= weight @ (gain * ours) + 1e-9
    if not psi.any():
        np.testing.assert_array_equal(ours, gain > 0)
    assert slack(ours) >= -1e-12


@given(st.integers(0, 10**6), st.sampled_from([0.6, 0.9]))
def test_the_sort_and_the_program_agree(seed, tau):
    gain, share, weight = drawn(seed, 200, 1, 2)
    sort, program = (f(gain, share, weight, tau) for f in (one_multiplier, solve_program))
    # A program may answer one row in part, and its multiplier is at that row's change.
    assert np.sum(rule(gain, share, sort) != rule(gain, share, program)) <= 1


@pytest.mark.parametrize(("n_rates", "n_groups"), [(1, 3), (2, 2), (2, 3)])
def test_the_multipliers_are_of_the_best_of_all_answers(n_rates, n_groups):
    """Weak duality bounds every fair answer, and the bound is met."""
    gain, share, weight = drawn(n_rates, 400, n_rates, n_groups)
    tau = 0.9
    psi = solve_program(gain, share, weight, tau)
    score = gain + np.einsum("irj,rj->i", share, psi)
    bound = weight @ np.maximum(score, 0) / weight.sum()
    # The same program in other variables and by another algorithm: all pairs of groups.
    flat = np.einsum("i,irj->rji", weight / weight.sum(), share)
    pairs = [
        tau * flat[r, k] - flat[r, j]
        for r in range(n_rates)
        for j in range(n_groups)
        for k in range(n_groups)
        if j != k
    ]
    best = linprog(
        -weight * gain / weight.sum(),
        A_ub=np.array(pairs),
        b_ub=np.zeros(len(pairs)),
        bounds=(0, 1),
        method="highs-ipm",
    )
    assert bound == pytest.approx(-best.fun, abs=1e-7)
    rates = rates_of(score > 0, share, weight)
    assert (rates.min(axis=1) >= (tau - 0.03) * rates.max(axis=1)).all()
    assert not (rates_of(gain > 0, share, weight).min(axis=1) >= 0.87).all()


@pytest.mark.parametrize("notion", ["statistical_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize("aware", [False, True])
def test_reaches_its_target(notion, aware):
    X, y, z = make_problem(3000)
    post = LinearPost(notion, estimator=LogisticRegression(), aware=aware, random_state=0)
    post.fit(X, y, sensitive_features=z)
    plain, strict = post.at(1e-6), post.at(0.85)
    assert plain.rate_ < 0.8 < 0.85 <= strict.rate_
    assert strict.feasible_
    assert plain.accuracy_ > strict.accuracy_
    groups = {"sensitive_features": z} if aware else {}
    assert post.needs_group == aware
    counts = group_counts(y, strict.predict(X, **groups), sensitive_features=z)[1]
    assert NOTIONS[notion](2).rate.ratio(counts) == pytest.approx(strict.rate_, abs=0.05)
    if aware:
        with raises("group_needed", name="LinearPost"):
            strict.predict(X)


def test_several_groups_and_labels_by_name():
    rng = np.random.default_rng(0)
    z = rng.choice(["a", "b", "c"], p=[0.5, 0.3, 0.2], size=4000)
    X = rng.normal(size=(4000, 3)) + np.outer((z == "a") - 1.0 * (z == "c"), [1, 0.5, 0])
    y = np.where(X.sum(axis=1) + rng.normal(size=4000) > 0, "yes", "no")
    post = LinearPost(estimator=LogisticRegression(), random_state=0, tau=0.9)
    post.fit(X, y, sensitive_features=z)
    answers = post.predict(X) == "yes"
    rates = [answers[z == group].mean() for group in "abc"]
    assert min(rates) / max(rates) > 0.85
    assert post.rate_ >= 0.9
    assert post.multipliers_.shape == (1, 3)
    assert post.at(1e-6).rate_ < 0.5


def test_weights_are_repetitions():
    X, y, z = make_problem(400)
    weight = np.random.default_rng(0).integers(1, 4, size=400)
    post = LinearPost(n_folds=None, noise=0, estimator=LogisticRegression(tol=1e-10))
    a = clone(post).fit(X, y, sensitive_features=z, sample_weight=weight)
    X, y, z = (np.repeat(v, weight, axis=0) for v in (X, y, z))
    b = clone(post).fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(a.multipliers_, b.multipliers_, rtol=1e-3)
    assert (a.rate_, a.accuracy_) == pytest.approx((b.rate_, b.accuracy_), abs=2e-3)


def test_more_folds_than_rows():
    X, y, z = make_problem(40)
    with raises("more_folds_than_rows", n=40):
        LinearPost(n_folds=50).fit(X, y, sensitive_features=z)


def test_compare_knows_it():
    X, y, z = make_problem(400)
    post = LinearPost(estimator=LogisticRegression(), random_state=0)
    methods = {"blind": post, "aware": clone(post).set_params(aware=True)}
    table = compare(X, y, z, methods=methods, taus=[0.8], n_splits=1, verbose=0)
    assert (table["error"] == "").all()
    assert table["needs_group"].tolist() == [False, True]
