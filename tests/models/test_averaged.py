import warnings

import numpy as np
import pytest
from helpers import REGIMES, fair, make_problem, raises, warns
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog
from sklearn.exceptions import NotFittedError

from evenhand import FairClassifier, FairnessWarning
from evenhand.core.metrics import group_counts
from evenhand.core.rates import EQUALIZED_ODDS, RATES, WorstRate
from evenhand.core.targets import Target
from evenhand.frontier.held_out import candidates
from evenhand.frontier.mixtures import _answers, best_mixture, mix, to_spare
from evenhand.models.averaged import AveragedClassifier


def fit(n=2000, seed=0, groups=2, **params):
    X, y, z = make_problem(n, seed=seed)
    if groups == 3:
        z = z + (np.random.default_rng(5).random(n) < 0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        params = {"confidence": None} | params
        return fair(**params).fit(X, y, sensitive_features=z), X, y, z


def exact(accuracy, spare):
    """The linear program over all points."""
    return linprog(
        -accuracy,
        A_ub=-spare.T,
        b_ub=np.zeros(spare.shape[1]),
        A_eq=np.ones((1, len(accuracy))),
        b_eq=[1.0],
    )


def test_what_is_to_spare():
    counts = np.array([[[6.0, 4.0], [0.0, 10.0]], [[8.0, 2.0], [5.0, 5.0]]])
    rate = RATES["selection_rate"]  # 0.7 and 0.35
    np.testing.assert_allclose(to_spare(counts, Target(rate, 0.8)), [0.7 - 0.28, 0.35 - 0.56])
    both = to_spare(counts, Target(EQUALIZED_ODDS, 0.5))  # true 1 and 0.5, false 0.4 and 0.2
    np.testing.assert_allclose(both, [0.75, 0.0, 0.3, 0.0], atol=1e-15)
    shared = WorstRate("two", EQUALIZED_ODDS.components, (1.0, 0.5))
    np.testing.assert_allclose(to_spare(counts, Target(shared, 0.5))[2:], [0.35, 0.1])
    assert to_spare(np.ones((7, 3, 2, 2)), Target(rate, 0.8)).shape == (7, 6)


@given(st.integers(0, 10**6), st.integers(2, 60), st.integers(1, 12))
def test_mixtures_against_the_linear_program(seed, n_points, m):
    rng = np.random.default_rng(seed)
    accuracy = rng.random(n_points)
    spare = rng.standard_normal((n_points, m)) + rng.normal(scale=0.5)
    q, best = mix(accuracy, spare), exact(accuracy, spare)
    assert (q is None) == (best.status == 2)
    if q is not None:
        assert accuracy @ q == pytest.approx(-best.fun, abs=1e-7)
        assert (q @ spare >= -1e-7).all()
        assert np.count_nonzero(q) <= m + 1
        assert q.sum() == pytest.approx(1)
        assert (q >= 0).all()


def test_exponentiated_gradient_alone_comes_close():
    model, *_ = fit()
    points = candidates(model.frontier_)
    for tau in (0.8, 0.9, 0.95):
        spare = to_spare(points.counts, Target(RATES["selection_rate"], tau))
        found = _answers(points.accuracy, spare)
        assert len(found) < len(points) / 4
        gap = exact(points.accuracy[found], spare[found]).fun - exact(points.accuracy, spare).fun
        assert gap < 1e-5


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds", ["equal_opportunity"]])
def test_averaged_is_the_best_mixture_of_a_frontier(notion, groups):
    model, X, y, z = fit(notion=notion, groups=groups)
    points, m = (
        candidates(model.frontier_),
        len(model.fitted_.rate.components) * groups * (groups - 1),
    )
    for tau in (0.7, 0.8, 0.9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            mixed, one = model.averaged(tau), model.at(tau)
        best = exact(points.accuracy, to_spare(points.counts, Target(model.fitted_.rate, tau)))
        assert mixed.feasible_ == (best.status == 0)
        if not mixed.feasible_:
            assert mixed.points_ == [one.point_]
            continue
        assert mixed.accuracy_ == pytest.approx(-best.fun, abs=1e-9)
        assert mixed.rate_ >= tau - 1e-9
        assert len(mixed.points_) == len(mixed.weights_) <= m + 1
        if one.feasible_:
            assert mixed.accuracy_ >= one.accuracy_ - 1e-12
        # The figures are those of the probabilities that it gives the training rows.
        p = mixed.predict_proba(X)
        assert np.mean(p[np.arange(len(y)), y]) == pytest.approx(mixed.accuracy_)
        counts = [
            [[p[(z == j) & (y == v), k].sum() for k in (0, 1)] for v in (0, 1)]
            for j in range(groups)
        ]
        assert model.fitted_.rate.ratio(np.array(counts)) == pytest.approx(mixed.rate_)


def test_predictions_are_drawn_with_the_probabilities_given():
    model, X, *_ = fit(tau=0.9, random_state=3)
    mixed = model.averaged()
    assert isinstance(mixed, AveragedClassifier)
    assert mixed.rate_ == pytest.approx(0.9)
    assert mixed.tau == 0.9
    np.testing.assert_array_equal(mixed.predict(X), mixed.predict(X))
    proba = mixed.predict_proba(X)
    torn = (proba[:, 1] > 0) & (proba[:, 1] < 1)
    assert torn.any()
    mixed.random_state = np.random.RandomState(0)
    often = np.mean([mixed.predict(X) for _ in range(400)], axis=0)
    np.testing.assert_allclose(often[~torn], proba[~torn, 1])
    assert np.abs(often[torn] - proba[torn, 1]).max() < 0.15
    # Equal rows get different answers.
    again = mixed.predict(np.repeat(X[torn][:1], 200, axis=0))
    assert set(again) == {0, 1}
    assert "weights_=[" in repr(mixed)


def test_the_held_out_rows_decide_where_the_fit_says_so():
    for selection in ("holdout", "crossfit"):
        model, *_ = fit(tau=0.8, **REGIMES[selection], random_state=0)
        mixed = model.averaged()
        held = model.held_out_
        best = exact(held.accuracy, to_spare(held.counts, Target(RATES["selection_rate"], 0.8)))
        assert mixed.accuracy_ == pytest.approx(-best.fun, abs=1e-9)
        for one in mixed.estimators_:
            i = np.flatnonzero(
                (held.points.iterate == one.point_.iterate) & (held.points.cut == one.point_.cut)
            )
            assert one.rate_ in held.rate[i]


def test_weights_labels_and_noise():
    X, y, z = make_problem(1000)
    y = np.where(y == 1, "yes", "no")
    weight = np.random.default_rng(0).integers(1, 4, 1000)
    params = {"tau": 0.9, "pos_label": "yes"}
    model = fair(**params, extra_column="noise", random_state=1)
    model.fit(X, y, sensitive_features=z, sample_weight=weight)
    mixed = model.averaged()
    assert set(mixed.predict(X)) == {"no", "yes"}
    assert mixed.accuracy_ >= model.accuracy_
    plain = fair(**params).fit(X, y, sensitive_features=z, sample_weight=weight)
    mixed = plain.averaged()
    p = mixed.predict_proba(X)[:, 1]
    rates = [np.average(p[z == j], weights=weight[z == j]) for j in (0, 1)]
    assert min(rates) / max(rates) == pytest.approx(mixed.rate_)


def test_many_labels_and_cuts_by_group():
    X, y, z = make_problem(1000)
    many = y + (X[:, 2] > 0.8)
    model = FairClassifier(tau=0.7).fit(X, many, sensitive_features=z)
    p = model.averaged().predict_proba(X)
    assert p.shape == (1000, 3)
    np.testing.assert_allclose(p.sum(axis=1), 1)
    assert np.mean(p[np.arange(1000), many]) == pytest.approx(model.averaged().accuracy_)
    cuts = FairClassifier(tau=0.9, group_cuts=True, pos_label=0)
    mixed = cuts.fit(X, y, sensitive_features=z).averaged()
    p = mixed.predict_proba(X, sensitive_features=z)
    assert np.mean(p[np.arange(1000), y]) == pytest.approx(mixed.accuracy_)
    rates = [p[z == j, 0].mean() for j in (0, 1)]
    assert min(rates) / max(rates) == pytest.approx(mixed.rate_)
    assert set(mixed.predict(X, sensitive_features=z)) == {0, 1}


def test_refusals():
    with pytest.raises(NotFittedError):
        FairClassifier().averaged()
    model, *_ = fit(notion="false_discovery")
    with pytest.raises(ValueError, match=r"averaged for the false discovery rate.*use at\(tau\)"):
        model.averaged()
    model, *_ = fit(confidence="certified", random_state=0)
    with raises("certified_mixture"):
        model.averaged()
    model, *_ = fit()
    with raises("invalid_parameter", parameter=("tau", ...), value=1.5):
        model.averaged(1.5)


def test_a_target_out_of_reach_gives_the_fairest_point():
    model, X, y, z = fit(400, max_iter=1, n_iterates=1, cut=False, candidates="solver")
    with warns("target_missed", tau=("tau", 0.99)):
        mixed = model.averaged(0.99)
    assert not mixed.feasible_
    assert len(mixed.points_) == 1
    counts = group_counts(y, mixed.predict(X), sensitive_features=z)[1]
    assert RATES["selection_rate"].ratio(counts) == pytest.approx(mixed.rate_)
    assert best_mixture(np.zeros((0, 2, 2, 2)), 2, Target(RATES["selection_rate"], 0.8)) is None


def test_a_target_that_cannot_be_relied_on_is_not_feasible():
    rng = np.random.default_rng(0)
    z = rng.choice(["north", "south", "west"], 3000, p=[0.5, 0.3, 0.2])
    X = rng.normal(size=(3000, 4))
    X[:, 0] -= 0.8 * (z == "south")
    y = X @ [1, 0.5, -0.5, 0.2] + rng.normal(size=3000) > 0
    model = fair(max_iter=40, random_state=0, candidates="solver", metric="none", alpha=0.03)
    model.fit(X, y, sensitive_features=z)
    with warns("target_missed", nearest="nearest_rate"):
        mixed = model.averaged(0.99)
    assert mixed.rate_ >= 0.99
    assert not mixed.feasible_
