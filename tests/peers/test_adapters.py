"""Adapters for fairlearn and OxonFair."""

from importlib.metadata import version

import numpy as np
import pytest
from helpers import make_problem, raises, warns
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.tree import DecisionTreeClassifier

from evenhand import statistical_rate
from evenhand.core.errors import Parameter
from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES
from evenhand.datasets import encoded_split, load_adult
from evenhand.peers import (
    FairlearnExponentiatedGradient,
    FairlearnGridSearch,
    FairlearnThresholdOptimizer,
    OxonFairClassifier,
)
from evenhand.peers._adapter import quiet
from evenhand.peers._oxonfair import _InferredGroups

ALL = {
    "gradient": (FairlearnExponentiatedGradient(random_state=0), "fairlearn"),
    "grid": (FairlearnGridSearch(grid_size=21), "fairlearn"),
    "thresholds": (FairlearnThresholdOptimizer(random_state=0), "fairlearn"),
    "oxonfair": (OxonFairClassifier(), "oxonfair"),
    "oxonfair with groups": (OxonFairClassifier(infer_groups=False), "oxonfair"),
}


@pytest.fixture(params=ALL)
def adapter(request):
    model, package = ALL[request.param]
    pytest.importorskip(package)
    return clone(model), package


def with_groups(model, z):
    return {"sensitive_features": z} if model.needs_group else {}


def rate_of(model, X, y, z, name="selection_rate"):
    pred = model.predict(X, **with_groups(model, z))
    return float(RATES[name].ratio(group_counts(y, pred, sensitive_features=z)[1]))


def test_all_follow_one_interface(adapter):
    model, package = adapter
    X, y, z = make_problem(1000)
    words, groups = np.array(["bad", "good"])[y], np.array(["f", "m"])[z]
    with raises("missing_groups"):
        model.fit(X, words)
    with pytest.raises(NotFittedError):
        model.predict(X, **with_groups(model, groups))
    assert model.fit(X, words, sensitive_features=groups) is model
    proba = model.predict_proba(X, **with_groups(model, groups))
    pred = model.predict(X, **with_groups(model, groups))
    assert set(pred) == {"bad", "good"}
    assert proba.shape == (1000, 2)
    assert proba.min() >= 0
    np.testing.assert_allclose(proba.sum(axis=1), 1)
    assert model.versions_[package] == version(package)
    assert model.versions_["scikit-learn"] == version("scikit-learn")

    plain = LogisticRegression().fit(X, y)
    before = statistical_rate(y, plain.predict(X), sensitive_features=z)
    after = rate_of(clone(model).fit(X, y, sensitive_features=z), X, y, z)
    assert before < 0.6 < 0.75 < after
    again = clone(model).fit(X, words, sensitive_features=groups)
    np.testing.assert_array_equal(again.predict(X, **with_groups(model, groups)), pred)


def test_what_needs_the_group_says_so(adapter):
    model, _ = adapter
    X, y, z = make_problem(300)
    model.fit(X, y, sensitive_features=z)
    if model.needs_group:
        with pytest.raises(ValueError, match="needs the group of each row"):
            model.predict(X)
        with pytest.raises(ValueError, match="which the training data did not"):
            model.predict(X, sensitive_features=z + 1)
    else:
        model.predict(X)


def test_unknown_notions_are_answered_with_the_known(adapter):
    model, _ = adapter
    X, y, z = make_problem(50)
    with raises("invalid_parameter", parameter=Parameter("notion"), value="calibration") as caught:
        model.set_params(notion="calibration").fit(X, y, sensitive_features=z)
    assert "'statistical_parity'" in caught.value.data["requirement"]


def test_a_missing_package_is_named(adapter, monkeypatch):
    model, package = adapter
    X, y, z = make_problem(50)

    def fail(module):
        raise ImportError(module)

    monkeypatch.setattr("evenhand._extras.import_module", fail)
    with pytest.raises(ImportError, match=rf"needs {package}.*\.\[peers\]"):
        model.fit(X, y, sensitive_features=z)


def test_the_lottery_is_drawn_by_seed():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(1000)
    model = FairlearnExponentiatedGradient(random_state=3).fit(X, y, sensitive_features=z)
    p = model.predict_proba(X)[:, 1]
    assert ((p > 0.01) & (p < 0.99)).any()
    first = model.predict(X)
    np.testing.assert_array_equal(first, model.predict(X))
    draws = [model.set_params(random_state=seed).predict(X) for seed in range(200)]
    assert any((d != first).any() for d in draws)
    assert np.abs(np.mean(draws, axis=0) - p).max() < 0.2
    model.set_params(random_state=None).predict(X)


def test_the_bound_of_the_gradient_is_kept():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(1000)
    for parameters in ({"bound": 0.02}, {"bound": 0.01, "ratio": 0.9}):
        model = FairlearnExponentiatedGradient(**parameters).fit(X, y, sensitive_features=z)
        p = model.predict_proba(X)[:, 1]
        mean = np.array([p[z == j].mean() for j in (0, 1)])
        slack = model.model_.best_gap_ + 1e-3
        if "ratio" in parameters:
            assert (0.9 * mean <= p.mean() + 0.01 + slack).all()
            assert (mean >= 0.9 * p.mean() - 0.01 - slack).all()
        else:
            assert np.abs(mean - p.mean()).max() <= 0.02 + slack


@pytest.mark.parametrize("notion", ["true_positive_rate", "equalized_odds", "false_positive_rate"])
def test_other_notions_of_fairlearn(notion):
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(1000)
    plain = LogisticRegression().fit(X, y).predict(X)
    counts = group_counts(y, plain, sensitive_features=z)[1]
    names = {"equalized_odds": ["true_positive_rate", "false_positive_rate"]}.get(notion, [notion])
    models = [
        FairlearnExponentiatedGradient(notion, random_state=0),
        FairlearnThresholdOptimizer(notion, random_state=0),
    ]
    for model in models:
        model.fit(X, y, sensitive_features=z)
        p = model.predict_proba(X, **with_groups(model, z))[:, 1]
        for name in names:
            rows = y == (name == "true_positive_rate")
            gap = p[rows & (z == 0)].mean() - p[rows & (z == 1)].mean()
            assert abs(gap) < 0.04 < RATES[name].difference(counts)


def test_the_grid_is_chosen_from_by_tau():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(1000)
    model = FairlearnGridSearch(tau=0.5, grid_size=21).fit(X, y, sensitive_features=z)
    assert len(model.predictors_) == len(model.counts_) == 21
    ratio = RATES["selection_rate"].ratio(model.counts_)
    right = model.counts_[:, :, [0, 1], [0, 1]].sum(axis=(1, 2)) / 1000
    for tau in (0.5, 0.8, 0.9):
        other = model.at(tau)
        assert other.feasible_
        assert other.rate_ == pytest.approx(rate_of(other, X, y, z))
        assert other.accuracy_ == pytest.approx(other.score(X, y)) == right[ratio >= tau].max()
        np.testing.assert_array_equal(other.predict(X) == 1, other.predict_proba(X)[:, 1] > 0.5)
    assert model.tau == 0.5
    with warns("target_not_reached", tau=Parameter("tau", 1.0)):
        last = model.at(1.0)
    assert last.rate_ == np.nanmax(ratio)
    with raises("invalid_parameter", parameter=Parameter("tau"), value=0):
        model.at(0)


def test_the_grid_bears_constant_answers():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(200)
    model = FairlearnGridSearch(tau=0.1, grid_size=9, grid_limit=50).fit(X, y, sensitive_features=z)
    for i, predictor in enumerate(model.predictors_):
        model.best_ = i
        np.testing.assert_array_equal(model.predict(X), predictor.predict(X))
        np.testing.assert_array_equal(model.predict(X) == 1, model.predict_proba(X)[:, 1] > 0.5)


def test_equalized_odds_are_no_single_rate_to_choose_by():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(50)
    with raises("invalid_parameter", parameter=Parameter("notion"), value="equalized_odds"):
        FairlearnGridSearch("equalized_odds").fit(X, y, sensitive_features=z)


def test_thresholds_within_a_bound():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(1000)
    model = FairlearnThresholdOptimizer(bound=0.1).fit(X, y, sensitive_features=z)
    p = model.predict_proba(X, sensitive_features=z)[:, 1]
    assert 0.05 < abs(p[z == 0].mean() - p[z == 1].mean()) <= 0.101


@pytest.mark.parametrize("infer_groups", [True, False])
@pytest.mark.parametrize("notion", ["statistical_parity", "false_discovery", "true_positive_rate"])
def test_oxonfair_honours_tau(notion, infer_groups):
    pytest.importorskip("oxonfair")
    X, y, z = make_problem(2000)
    model = OxonFairClassifier(notion, tau=0.7, infer_groups=infer_groups)
    model.fit(X, y, sensitive_features=z)
    name = {"statistical_parity": "selection_rate", "false_discovery": "false_discovery_rate"}
    for tau in (0.7, 0.8, 0.9):
        other = model.at(tau)
        assert other.feasible_
        assert other.rate_ >= tau
        assert other.rate_ == pytest.approx(
            rate_of(other, X, y, z, name.get(notion, notion)), abs=5e-3
        )
        pred = other.predict(X, **with_groups(other, z))
        assert other.accuracy_ == pytest.approx(np.mean(pred == y), abs=5e-3)
    assert model.tau == 0.7


def test_oxonfair_tells_what_cannot_be_reached():
    pytest.importorskip("oxonfair")
    _, y, z = make_problem(200)
    X = (z ^ (np.arange(200) % 5 == 0))[:, None]  # two kinds of rows, few ways to answer
    with warns("target_not_reached", tau=Parameter("tau", 0.9)):
        model = OxonFairClassifier(tau=0.9).fit(X, y, sensitive_features=z)
    assert not model.feasible_
    assert model.rate_ == pytest.approx(rate_of(model, X, y, z))
    with raises("no_oxonfair_cut", least=0.01):
        OxonFairClassifier().fit(np.zeros_like(X), y, sensitive_features=z)


def test_oxonfair_may_find_cuts_on_rows_kept_aside():
    pytest.importorskip("oxonfair")
    X, y, z = make_problem(1000)
    tree = DecisionTreeClassifier(min_samples_leaf=5, random_state=0)
    model = OxonFairClassifier(estimator=tree, validation_size=0.5, random_state=0)
    model.fit(X, y, sensitive_features=z)
    assert len(model.model_.y_true) == 500
    assert 0.6 < model.score(X, y) < 0.95


@pytest.mark.parametrize("doubt", [0.0, 0.5, 0.7, 1.0])
def test_oxonfair_bears_groups_that_are_never_or_always_guessed(doubt):
    pytest.importorskip("oxonfair")
    X, y, z = make_problem(400)
    model = OxonFairClassifier(tau=0.6, doubt=doubt).fit(X, y, sensitive_features=z)
    assert rate_of(model, X, y, z) > 0.58
    assert len(model.model_.offset) == {0.0: 2, 0.5: 2, 0.7: 3, 1.0: 1}[doubt]
    model.predict(np.full((1, X.shape[1]), 50.0))


def test_a_kind_of_guess_that_training_had_not_goes_to_the_most_frequent():
    class Guess:
        def predict_proba(self, X):
            return np.column_stack([1 - X[:, 0], X[:, 0]])

    infer = _InferredGroups(Guess(), 0.7, np.array([[0.1], [0.5], [0.55]]))
    np.testing.assert_array_equal(infer(np.array([[0.5], [0.2], [0.9]])), [[1, 0], [0, 1], [1, 0]])


def test_the_base_estimator_is_the_users():
    pytest.importorskip("fairlearn")
    X, y, z = make_problem(300)
    tree = DecisionTreeClassifier(max_depth=2, random_state=0)
    model = FairlearnGridSearch(estimator=tree, grid_size=5, tau=0.1)
    model.fit(X, y, sensitive_features=z)
    assert any(isinstance(p, DecisionTreeClassifier) for p in model.predictors_)
    assert not hasattr(tree, "tree_")


def test_a_librarys_failure_is_not_hidden():
    with pytest.raises(RuntimeError), quiet("fairlearn"):
        raise RuntimeError


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "accuracy", "rate"),
    [
        (FairlearnExponentiatedGradient(bound=0.005, random_state=0), 0.827, 0.90),
        (FairlearnGridSearch(tau=0.95), 0.827, 0.93),
        (FairlearnThresholdOptimizer(random_state=0), 0.827, 0.95),
        (OxonFairClassifier(tau=0.9), 0.827, 0.87),
        (OxonFairClassifier(tau=0.9, infer_groups=False), 0.829, 0.88),
    ],
)
def test_on_adult_they_reach_what_they_are_known_to(model, accuracy, rate):
    pytest.importorskip("fairlearn")
    pytest.importorskip("oxonfair")
    split = encoded_split(load_adult(), random_state=0)
    model.fit(split.X_train, split.y_train, sensitive_features=split.z_train)
    pred = model.predict(split.X_test, **with_groups(model, split.z_test))
    assert np.mean(pred == split.y_test) > accuracy
    found = statistical_rate(
        split.y_test, pred, sensitive_features=split.z_test, pos_label=model.classes_[1]
    )
    assert found > rate
