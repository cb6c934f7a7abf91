"""Baselines."""

import numpy as np
import pytest
from helpers import make_problem, raises, warns
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression

from evenhand.core.errors import Parameter
from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES
from evenhand.core.targets import Target
from evenhand.peers import _base, _baselines
from evenhand.peers._baselines import (
    AccuracyOnly,
    ConstantClassifier,
    Curve,
    FairnessOnly,
    GroupThresholds,
    Reweighing,
    best_pair,
    group_curve,
)

ALL = [AccuracyOnly, FairnessOnly, ConstantClassifier, GroupThresholds, Reweighing]


def with_groups(model, z):
    return {"sensitive_features": z} if model.needs_group else {}


@pytest.mark.parametrize("Model", ALL)
def test_all_follow_one_interface(Model):
    X, y, z = make_problem()
    words, groups = np.array(["bad", "good"])[y], np.array(["f", "m"])[z]
    model = Model()
    with pytest.raises(NotFittedError):
        model.predict_proba(X, **with_groups(model, groups))
    assert model.fit(X, words, sensitive_features=groups) is model
    pred = model.predict(X, **with_groups(model, groups))
    proba = model.predict_proba(X, **with_groups(model, groups))
    assert set(pred) <= {"bad", "good"}
    assert proba.shape == (len(y), 2)
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    np.testing.assert_array_equal(pred == "good", proba[:, 1] > 0.5)
    coded = clone(model).fit(X, y, sensitive_features=z).predict(X, **with_groups(model, z))
    np.testing.assert_array_equal(coded == 1, pred == "good")
    with raises("missing_groups"):
        model.fit(X, y)


@pytest.mark.parametrize("Model", ALL)
def test_a_weight_of_two_is_the_row_twice_and_of_none_is_no_row(Model):
    X, y, z = make_problem(200)
    weight = np.random.default_rng(0).integers(0, 3, 200)
    weighted = Model().fit(X, y, sensitive_features=z, sample_weight=weight)
    again = np.repeat(np.arange(200), weight)
    repeated = Model().fit(X[again], y[again], sensitive_features=z[again])
    np.testing.assert_allclose(
        weighted.predict_proba(X, **with_groups(weighted, z)),
        repeated.predict_proba(X, **with_groups(weighted, z)),
        atol=1e-4,
    )


@pytest.mark.parametrize("n_columns", [_base.NEWTON_COLUMNS, 1])
def test_accuracy_only_is_logistic_regression(n_columns, monkeypatch):
    monkeypatch.setattr(_base, "NEWTON_COLUMNS", n_columns)  # 1: the solver for many columns
    X, y, z = make_problem()
    model = AccuracyOnly(l2=0.01).fit(X, y, sensitive_features=z)
    exact = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-3)
    np.testing.assert_allclose(model.intercept_, exact.intercept_, atol=1e-3)


@pytest.mark.parametrize("solver", ["agd", "gd"])
def test_fairness_only_follows_fairness_only(solver):
    X, y, z = make_problem(2000)
    plain = AccuracyOnly().fit(X, y, sensitive_features=z)
    fair = FairnessOnly(solver=solver).fit(X, y, sensitive_features=z)

    def gap(model):
        s = model.decision_function(X)
        return abs(s[z == 0].mean() - s[z == 1].mean()) / s.std()

    assert gap(plain) > 0.5
    assert gap(fair) < 0.1
    assert fair.score(X, y) < plain.score(X, y)
    assert fair.n_iter_ == 500


def test_fairness_only_knows_false_discovery():
    X, y, z = make_problem(2000)
    fair = FairnessOnly("false_discovery").fit(X, y, sensitive_features=z)
    f = fair.predict_proba(X)[:, 1]
    soft = [f[(z == j) & (y == 0)].sum() / f[z == j].sum() for j in (0, 1)]
    assert abs(soft[0] - soft[1]) < 0.01


def test_constant_gives_the_majority():
    X, y, z = make_problem()
    model = ConstantClassifier().fit(X, y, sensitive_features=z)
    assert model.share_ == pytest.approx(y.mean())
    assert set(model.predict(X)) == {int(y.mean() > 0.5)}
    weight = np.where(y == 1, 1000.0, 1.0)
    model.fit(X, y, sensitive_features=z, sample_weight=weight)
    assert set(model.predict(X)) == {1}


def test_reweighing_has_the_weights_worked_by_hand():
    # 10 rows: group a has 4 of 6 positive, group b 1 of 4.
    z = np.array(["a"] * 6 + ["b"] * 4)
    y = np.array([1, 1, 1, 1, 0, 0, 1, 0, 0, 0])
    X = np.random.default_rng(0).normal(size=(10, 2))
    model = Reweighing(l2=0.1).fit(X, y, sensitive_features=z)
    expected = [[0.6 * 0.5 / 0.2, 0.6 * 0.5 / 0.4], [0.4 * 0.5 / 0.3, 0.4 * 0.5 / 0.1]]
    np.testing.assert_allclose(model.weights_, expected)
    weight = model.weights_[(z == "b").astype(int), y]
    assert weight.sum() == pytest.approx(10)
    exact = LogisticRegression(C=1, tol=1e-8).fit(X, y, sample_weight=weight)
    np.testing.assert_allclose(model.coef_, exact.coef_, atol=1e-4)


def test_reweighing_bears_an_empty_cell():
    X, y, z = make_problem(100)
    y[z == 0] = 0
    model = Reweighing().fit(X, y, sensitive_features=z)
    assert np.isnan(model.weights_[0, 1])
    assert np.isfinite(model.coef_).all()


def all_pairs(a, b, rate, tau):
    """Best number of right answers among all pairs that reach tau, and the highest ratio."""
    best, highest = -1.0, -1.0
    for m in a.counts:
        for k in b.counts:
            ratio = float(rate.ratio(np.stack([m, k])))
            if np.isnan(ratio):
                continue
            highest = max(highest, ratio)
            if ratio >= tau:
                best = max(best, m[0, 0] + m[1, 1] + k[0, 0] + k[1, 1])
    return best, highest


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("tau", [0.5, 0.8, 0.97, 1.0])
def test_best_pair_is_that_of_all_pairs(name, tau):
    rate, rng = RATES[name], np.random.default_rng(0)
    for _ in range(5):
        curves = []
        for n in (25, 40):
            score = rng.normal(size=n).round(1)  # with ties
            y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
            weight = rng.integers(1, 3, n).astype(float)
            curves.append(_baselines._eligible(group_curve(score, y, weight), rate, 0.05))
        a, b = curves
        i, j, feasible = best_pair(a, b, Target(rate, tau))
        counts = np.stack([a.counts[i], b.counts[j]])
        best, highest = all_pairs(a, b, rate, tau)
        assert feasible == (best >= 0)
        if feasible:
            assert rate.ratio(counts) >= tau
            assert counts[:, 0, 0].sum() + counts[:, 1, 1].sum() == best
        else:
            assert rate.ratio(counts) == pytest.approx(highest)


def test_a_ratio_of_exactly_tau_reaches_it():
    rate = RATES["selection_rate"]
    a, b = (
        Curve(np.zeros(1), np.array([[[100.0 - k, 0.0], [0.0, k]]])) for k in (36, 45)
    )  # 0.36 to 0.45 is 0.8, while 0.8 × 0.45 exceeds 0.36 in floats
    assert best_pair(a, b, Target(rate, 0.8)) == (0, 0, True)
    assert best_pair(a, b, Target(rate, 0.81)) == (0, 0, False)


@pytest.mark.parametrize("notion", ["statistical_parity", "false_discovery", "true_positive_rate"])
def test_group_thresholds_say_what_they_do(notion):
    X, y, z = make_problem(1000)
    model = GroupThresholds(notion, tau=0.7).fit(X, y, sensitive_features=z)
    rate = _base.SINGLE_RATES[notion]
    accuracy = []
    for tau in (0.7, 0.9, 0.98):
        other = model.at(tau)
        pred = other.predict(X, sensitive_features=z)
        counts = group_counts(y, pred, sensitive_features=z)[1]
        assert other.feasible_
        assert other.rate_ == pytest.approx(float(rate.ratio(counts)))
        assert other.rate_ >= tau
        assert other.accuracy_ == pytest.approx(np.mean(pred == y))
        accuracy.append(other.accuracy_)
        again = clone(model).set_params(tau=tau).fit(X, y, sensitive_features=z)
        np.testing.assert_array_equal(again.cuts_, other.cuts_)
    assert accuracy == sorted(accuracy, reverse=True)
    assert model.tau == 0.7


def test_group_thresholds_tell_what_cannot_be_reached():
    X, y, z = make_problem(101)
    with warns("target_not_reached", tau=Parameter("tau", 1.0)):
        model = GroupThresholds(tau=1.0).fit(X, y, sensitive_features=z)
    assert not model.feasible_
    assert model.rate_ > 0.9


def test_group_thresholds_need_known_groups():
    X, y, z = make_problem(100)
    model = GroupThresholds().fit(X, y, sensitive_features=z)
    assert model.needs_group
    for call in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError, match="needs the group of each row"):
            call(X)
    with pytest.raises(ValueError, match=r"the group 7, which .*; they had 0, 1"):
        model.predict(X, sensitive_features=np.where(z == 1, 7, 0))
    with pytest.raises(ValueError, match="has 3 rows, X has 100"):
        model.predict(X, sensitive_features=[0, 1, 0])
    with pytest.raises(ValueError, match="1 missing value"):
        model.predict(X, sensitive_features=[None, *z[1:].astype(object)])


def test_group_thresholds_name_what_is_wrong():
    X, y, z = make_problem(100)
    wrong = {"notion": "calibration", "tau": 1.2, "min_share": 0.5, "l2": -1}
    for name, value in wrong.items():
        with raises("invalid_parameter", parameter=Parameter(name), value=value):
            GroupThresholds(**{name: value}).fit(X, y, sensitive_features=z)
    with raises("no_group_cut", group=0, rate="selection rate"):
        GroupThresholds().fit(np.zeros_like(X), y, sensitive_features=z)
    model = GroupThresholds()
    with pytest.raises(NotFittedError):
        model.at(0.9)
    with raises("invalid_parameter", parameter=Parameter("tau"), value=0):
        model.fit(X, y, sensitive_features=z).at(0)


def test_fairness_only_names_what_is_wrong():
    X, y, z = make_problem(100)
    with raises("invalid_parameter", parameter=Parameter("notion"), value="accuracy"):
        FairnessOnly("accuracy").fit(X, y, sensitive_features=z)
    with raises("invalid_parameter", parameter=Parameter("solver"), value="newton"):
        FairnessOnly(solver="newton").fit(X, y, sensitive_features=z)
