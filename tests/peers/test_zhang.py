"""Adversarial debiasing."""

import numpy as np
import pytest
from helpers import raises, warns
from scipy.special import expit
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression

from evenhand import statistical_rate
from evenhand.core.errors import Parameter
from evenhand.core.metrics import true_positive_rate_ratio
from evenhand.datasets import encoded_split, load_adult
from evenhand.peers import _zhang
from evenhand.peers._networks import Network, guess_group, log_loss
from evenhand.peers._zhang import ZhangClassifier


def numeric_gradient(loss, at, step=1e-6):
    unit = np.eye(len(at)) * step
    return np.array([(loss(at + e) - loss(at - e)) / (2 * step) for e in unit])


def batch(n=30, n_features=4, seed=0):
    rng = np.random.default_rng(seed)
    y, z = rng.integers(2, size=(2, n)).astype(float)
    return rng.normal(size=(n, n_features)), y, z, rng.uniform(0.2, 2.0, n), rng


def proxy_data(n=4000, seed=0):
    """The first input gives the group away, the second is a signal apart from it."""
    rng = np.random.default_rng(seed)
    z = rng.integers(2, size=n)
    X = np.column_stack([2 * z - 1 + 0.3 * rng.normal(size=n), rng.normal(size=n)])
    y = (1.5 * X[:, 1] + 1.5 * (2 * z - 1) + rng.logistic(size=n) > 0).astype(int)
    return X, y, z


def odds_data(n=4000, seed=0):
    """The first input gives the group away; the second depends on the label alone."""
    rng = np.random.default_rng(seed)
    y = rng.integers(2, size=n)
    z = (rng.random(n) < np.where(y == 1, 0.8, 0.2)).astype(int)
    X = np.column_stack([2 * z - 1 + 0.3 * rng.normal(size=n), 2 * y - 1 + rng.normal(size=n)])
    return X, y, z


def reliance(model):
    """Size of the proxy's weight relative to the signal's."""
    return abs(model.coef_[0, 0] / model.coef_[0, 1])


@pytest.mark.parametrize("hidden", [0, 5])
@pytest.mark.parametrize(("odds", "intercepts"), [(False, 1), (True, 2), (True, 1)])
def test_gradients_of_all_layers_are_those_of_the_losses(hidden, odds, intercepts):
    X, y, z, weight, rng = batch()
    network = Network(X.shape[1], hidden)
    theta = network.start(rng) + rng.normal(0, 0.3, network.n_parameters)
    sees = np.stack([np.ones_like(y), y, 1 - y]) if odds else np.ones((1, len(y)))
    knows = np.stack([np.ones_like(y), y])[:intercepts]
    adversary = rng.normal(size=len(sees) + len(knows) + 1)

    def guess(theta, adversary):
        return guess_group(adversary, network.score(theta, X)[0], sees, knows, z, weight)

    def plain(theta):
        return log_loss(network.score(theta, X)[0], y, weight)

    score, H = network.score(theta, X)
    here = guess(theta, adversary)
    slopes = np.stack([weight * (expit(score) - y) / len(y), here.d_score])
    grad_p, grad_a = network.gradients(theta, X, H, slopes)
    np.testing.assert_allclose(grad_p, numeric_gradient(plain, theta), atol=1e-8)
    np.testing.assert_allclose(
        grad_a, numeric_gradient(lambda t: guess(t, adversary).loss, theta), atol=1e-8
    )
    np.testing.assert_allclose(
        here.gradient, numeric_gradient(lambda a: guess(theta, a).loss, adversary), atol=1e-8
    )


@pytest.mark.parametrize("hidden", [None, 7])
@pytest.mark.parametrize("notion", ["demographic_parity", "equalized_odds", "equal_opportunity"])
def test_every_step_projects_over_the_whole_vector(hidden, notion, monkeypatch):
    X, y, z = proxy_data(300)
    steps = []

    def spy(grad_p, grad_a, alpha):
        steps.append((grad_p, grad_a, alpha, modified(grad_p, grad_a, alpha)))
        return steps[-1][-1]

    modified = _zhang.RULES["modified"]
    monkeypatch.setitem(_zhang.RULES, "modified", spy)
    model = ZhangClassifier(
        notion,
        alpha=0.7,
        hidden=hidden,
        epochs=5,
        min_steps=0,
        batch_size=64,
        alpha_schedule="sqrt",
        random_state=0,
    ).fit(X, y, sensitive_features=z)
    assert len(steps) == model.n_iter_ == 25
    for t, (_, grad_a, alpha, direction) in enumerate(steps, 1):
        assert len(direction) == len(model.theta_) == (3 if hidden is None else 4 * hidden + 1)
        assert alpha == pytest.approx(0.7 * np.sqrt(t))
        np.testing.assert_allclose(direction @ grad_a, -alpha * (grad_a @ grad_a), atol=1e-12)
    first, last = steps[0], steps[-1]
    assert not first[1].any()  # the adversary knows nothing yet
    assert abs(last[0] @ last[1]) > 1e-6  # there was something to project


def test_without_projection_the_direction_is_the_plain_one():
    X, y, z = proxy_data(1000)
    plain = ZhangClassifier(projection=False, alpha=0, l2=0.01, random_state=0, epochs=100)
    plain.fit(X, y, sensitive_features=z)
    exact = LogisticRegression(C=1 / (0.01 * len(y)), tol=1e-8).fit(X, y)
    np.testing.assert_allclose(plain.coef_, exact.coef_, rtol=0.02)


def test_demographic_parity_ignores_a_pure_proxy():
    X, y, z = proxy_data()
    plain = ZhangClassifier(projection=False, alpha=0, random_state=0)
    fair = ZhangClassifier(alpha=1, random_state=0)
    assert reliance(plain.fit(X, y, sensitive_features=z)) > 0.5
    assert reliance(fair.fit(X, y, sensitive_features=z)) < 0.05
    assert statistical_rate(y, plain.predict(X), sensitive_features=z) < 0.5
    assert statistical_rate(y, fair.predict(X), sensitive_features=z) > 0.9


@pytest.mark.parametrize("notion", ["equalized_odds", "equal_opportunity"])
def test_equal_odds_ignore_a_proxy_that_is_redundant_given_the_label(notion):
    X, y, z = odds_data()
    plain = ZhangClassifier(notion, projection=False, alpha=0, random_state=0)
    fair = ZhangClassifier(notion, alpha=1, random_state=0)
    assert reliance(plain.fit(X, y, sensitive_features=z)) > 0.5
    assert reliance(fair.fit(X, y, sensitive_features=z)) < 0.1
    assert true_positive_rate_ratio(y, fair.predict(X), sensitive_features=z) > 0.93
    # Labels differ between the groups, and so may predictions.
    assert statistical_rate(y, fair.predict(X), sensitive_features=z) < 0.6


def test_a_hidden_layer_learns_what_no_line_can_and_hides_the_group():
    rng = np.random.default_rng(0)
    X = rng.uniform(-1, 1, (2000, 3))
    z = (X[:, 2] > 0).astype(int)
    y = ((X[:, 0] * X[:, 1] > 0) ^ ((rng.random(2000) < 0.3) & (z == 1))).astype(int)
    y[(z == 0) & (rng.random(2000) < 0.3)] = 0
    model = ZhangClassifier(hidden=32, random_state=0).fit(X, y, sensitive_features=z)
    assert model.score(X, y) > 0.72  # a line: 0.56
    assert statistical_rate(y, model.predict(X), sensitive_features=z) > 0.8
    assert not hasattr(model, "coef_")


def test_alpha_trades_accuracy_for_parity():
    X, y, z = proxy_data(2000)
    rates, accuracy = [], []
    for alpha in (0.0, 0.1, 1.0):
        model = ZhangClassifier(alpha=alpha, random_state=0).fit(X, y, sensitive_features=z)
        rates.append(statistical_rate(y, model.predict(X), sensitive_features=z))
        accuracy.append(model.score(X, y))
    assert rates == sorted(rates)
    assert accuracy == sorted(accuracy, reverse=True)


@pytest.mark.parametrize("hidden", [None, 4])
def test_the_seed_decides_and_a_second_fit_starts_afresh(hidden):
    X, y, z = proxy_data(300)

    def fit(model):
        return model.fit(X, y, sensitive_features=z).predict_proba(X)

    model = ZhangClassifier(hidden=hidden, epochs=3, min_steps=0, random_state=1)
    first = fit(model)
    np.testing.assert_array_equal(first, fit(model))
    np.testing.assert_array_equal(first, fit(clone(model)))
    assert np.abs(first - fit(clone(model).set_params(random_state=2))).max() > 1e-6
    for seed in (np.random.default_rng(0), np.random.RandomState(0), None):
        fit(model.set_params(random_state=seed))
    np.testing.assert_allclose(first.sum(axis=1), 1)


def test_labels_and_groups_may_be_text():
    X, y, z = proxy_data(300)
    short = ZhangClassifier(epochs=3, min_steps=0, random_state=0)
    coded = clone(short).fit(X, y, sensitive_features=z)
    words = short.fit(X, np.array(["no", "yes"])[y], sensitive_features=np.array(["f", "m"])[z])
    assert set(words.predict(X)) == {"no", "yes"}
    np.testing.assert_array_equal(words.predict(X) == "yes", coded.predict(X) == 1)
    np.testing.assert_array_equal(words.decision_function(X) > 0, words.predict(X) == "yes")


def test_weights_count():
    X, y, z = proxy_data(400)
    model = ZhangClassifier(epochs=5, min_steps=0, random_state=0)
    weight = np.random.default_rng(0).uniform(0.5, 2, 400)

    def coef(X, y, z, weight):
        return model.fit(X, y, sensitive_features=z, sample_weight=weight).coef_.copy()

    base = coef(X, y, z, weight)
    np.testing.assert_allclose(coef(X, y, z, 4 * weight), base)
    assert np.abs(coef(X, y, z, None) - base).max() > 1e-4
    half = np.where(np.arange(400) < 200, weight, 0)
    np.testing.assert_allclose(coef(X, y, z, half), coef(X[:200], y[:200], z[:200], weight[:200]))


def test_small_tables_get_enough_steps():
    X, y, z = proxy_data(100)
    model = ZhangClassifier(epochs=1, min_steps=50, batch_size=40).fit(X, y, sensitive_features=z)
    assert model.n_iter_ == 51  # whole epochs of 3


def test_divergence_is_told_and_leaves_finite_numbers():
    X, y, z = proxy_data(300)
    model = ZhangClassifier(optimizer="sgd", learning_rate=1e40, min_steps=0, random_state=0)
    with warns("training_diverged"):
        model.fit(X, y, sensitive_features=z)
    assert np.isfinite(model.theta_).all()
    assert np.isfinite(model.predict_proba(X)).all()


def test_the_schedule_of_the_paper_runs():
    X, y, z = proxy_data(1000)
    model = ZhangClassifier(
        alpha=0.1,
        alpha_schedule="sqrt",
        rate_schedule="inverse",
        optimizer="sgd",
        learning_rate=0.5,
        adversary_learning_rate=2.0,
        random_state=0,
    ).fit(X, y, sensitive_features=z)
    assert reliance(model) < 0.4


@pytest.mark.parametrize(
    ("name", "value", "requirement"),
    [
        ("notion", "calibration", "'equalized_odds'"),
        ("optimizer", "lbfgs", "'adam'"),
        ("alpha", -1, "a float in the range [0.0, inf)"),
        ("alpha", "x", "a float in the range [0.0, inf)"),
        ("epochs", 1.5, "an int in the range [1, inf)"),
        ("hidden", 2.5, "an int in the range [0, inf)"),
        ("alpha", np.nan, "a float in the range [0.0, inf)"),
        ("batch_size", 0, "an int in the range [1, inf)"),
        ("learning_rate", 0, "a float in the range (0.0, inf)"),
        ("learning_rate", np.inf, "a float in the range (0.0, inf)"),
        ("hidden", -3, "an int in the range [0, inf)"),
    ],
)
def test_wrong_parameters_are_named(name, value, requirement):
    X, y, z = proxy_data(50)
    with raises("invalid_parameter", parameter=Parameter(name), value=value) as caught:
        ZhangClassifier(**{name: value}).fit(X, y, sensitive_features=z)
    assert requirement in caught.value.data["requirement"]


def test_missing_groups_are_named():
    X, y, _ = proxy_data(50)
    with raises("missing_groups"):
        ZhangClassifier().fit(X, y)


@pytest.mark.slow
def test_on_adult_it_reaches_what_its_counterparts_reach():
    split = encoded_split(load_adult(), random_state=0)
    found = []
    for seed in (0, 1):
        model = ZhangClassifier(alpha=0.5, random_state=seed)
        model.fit(split.X_train, split.y_train, sensitive_features=split.z_train)
        pred = model.predict(split.X_test)
        rate = statistical_rate(
            split.y_test, pred, sensitive_features=split.z_test, pos_label=model.classes_[1]
        )
        found.append([np.mean(pred == split.y_test), rate])
    accuracy, rate = np.mean(found, axis=0)
    assert accuracy > 0.825
    assert rate > 0.95


# As shipped in AIF360 ----------------------------------------------------------------------------


def test_dropout_has_the_gradient_of_what_is_kept():
    X, y, _, weight, rng = batch()
    network = Network(X.shape[1], 6)
    theta = network.start(rng, "glorot")
    kept = (rng.random((len(X), 6)) < 0.5) * 2.0

    def loss(theta):
        return log_loss(network.score(theta, X, kept)[0], y, weight)

    score, H = network.score(theta, X, kept)
    slopes = (weight * (expit(score) - y) / len(y))[None]
    (found,) = network.gradients(theta, X, H, slopes, kept)
    np.testing.assert_allclose(found, numeric_gradient(loss, theta), atol=1e-8)


@pytest.mark.parametrize("hidden", [0, 200])
def test_glorot_starts_with_offsets_at_zero_and_weights_within_its_bounds(hidden):
    network = Network(10, hidden)
    theta = network.start(np.random.default_rng(0), "glorot")
    parts = network.parts
    assert sum(part.stop - part.start for part in parts) == len(theta) == network.n_parameters
    sizes = [(10, 200), None, (200, 1), None] if hidden else [(10, 1), None]
    for part, size in zip(parts, sizes, strict=True):
        if size is None:
            assert not theta[part].any()
        else:
            most = np.sqrt(6 / sum(size))
            assert 0.7 * most < np.abs(theta[part]).max() <= most


def test_layers_are_projected_by_themselves(monkeypatch):
    X, y, z = proxy_data(300)
    steps = []

    def spy(grad_p, grad_a, alpha):
        steps.append((len(grad_p), modified(grad_p, grad_a, alpha) @ grad_a, grad_a @ grad_a))
        return modified(grad_p, grad_a, alpha)

    modified = _zhang.RULES["modified"]
    monkeypatch.setitem(_zhang.RULES, "modified", spy)
    model = ZhangClassifier.shipped(epochs=2, hidden=7, random_state=0)
    model.fit(X, y, sensitive_features=z)
    assert model.n_iter_ == 6
    assert [n for n, _, _ in steps] == [14, 7, 7, 1] * 6
    for _, inner, size in steps:
        assert inner == pytest.approx(-0.1 * size, abs=1e-12)
    assert len(model.adversary_) == 3 + 1 + 1  # one intercept, and the steepness


def test_shipped_settings_are_the_published_ones():
    model = ZhangClassifier.shipped(random_state=3)
    found = model.get_params()
    published = {"hidden": 200, "dropout": 0.2, "batch_size": 128, "alpha": 0.1, "epochs": 50}
    assert {name: found[name] for name in published} == published
    assert found["random_state"] == 3
    rate = _zhang.RATE_SCHEDULES["stairs"]
    assert [rate(t, 9999) for t in (1, 1000, 1001, 3000)] == [1, 1, 0.96, 0.96**2]
    X, y, z = odds_data(1500)
    z = np.random.default_rng(0).permutation(z)  # a group that has nothing to do with the label
    fair = model.fit(X, y, sensitive_features=z)
    assert (fair.predict(X) == y).mean() > 0.7
    assert clone(model).get_params() == found


def test_the_printed_adversary_knows_the_label_through_the_score_alone():
    X, y, z = odds_data(2000)
    ratios, past = [], []
    for own in (True, False):
        models = [
            ZhangClassifier("equalized_odds", alpha=alpha, label_intercept=own, random_state=0)
            .fit(X, y, sensitive_features=z)
            for alpha in (0.3, 1.0)
        ]  # fmt: skip
        assert {len(m.adversary_) for m in models} == {6 if own else 5}
        past += [m.coef_[0, 0] / m.coef_[0, 1] for m in models]
        answers = [m.predict(X) for m in models]
        ratios += [true_positive_rate_ratio(y, a, sensitive_features=z) for a in answers]
    # With an intercept for each label the proxy is left unused; with one it is turned round, the
    # more so the larger alpha is, because y alone tells the group.
    assert np.abs(past[:2]).max() < 0.05
    assert past[3] < past[2] < -0.05
    assert ratios[3] < ratios[2] - 0.05
    assert min(ratios[:2]) > ratios[3] + 0.1
