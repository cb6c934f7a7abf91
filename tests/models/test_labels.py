"""More than two labels, and which of them is the favourable one."""

import numpy as np
import pandas as pd
import pytest
from helpers import REGIMES, fair, raises, warns
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.optimize import approx_fprime
from scipy.sparse import csr_matrix
from scipy.special import softmax
from sklearn.linear_model import LogisticRegression

from evenhand import FairBoostedClassifier, FairClassifier
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS, of_labels
from evenhand.core.rates import EQUALIZED_ODDS, RATES, overall_accuracy
from evenhand.engines.memory import make_oracle

LABELS = np.array(["card", "deny", "loan"])


def make(n, seed):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 4))
    X[:, 0] += 0.8 * z
    X[:, 1] -= 0.4 * z
    scores = np.column_stack([X[:, 1], 0 * z, 1.2 * X[:, 0] + 0.3 * X[:, 2]])
    y = LABELS[(scores + rng.gumbel(size=(n, 3))).argmax(axis=1)]
    return X, y, np.array(["a", "b"])[z]


@pytest.fixture(scope="module")
def data():
    return make(1500, 0)


def fit(data, **params):
    X, y, z = data
    params = {"confidence": None} | params
    return fair(**params).fit(X, y, sensitive_features=z)


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data)


def one_against_others(label, y, pred, z):
    """Counts of one label, from scikit-learn-like inputs."""
    return group_counts(y == label, pred == label, sensitive_features=z)[1]


class TestOracle:
    @pytest.mark.parametrize("favourable", [[0], [0, 1, 2]])
    @pytest.mark.parametrize("name", NOTIONS)
    def test_gradients(self, name, favourable):
        rng = np.random.default_rng(1)
        X, y, z = rng.standard_normal((60, 3)), rng.integers(0, 3, 60), rng.integers(0, 3, 60)
        notion = of_labels(NOTIONS[name](2), favourable, 3)
        weight = rng.uniform(0.5, 2, 60)
        # Of three groups two are compared.
        oracle = make_oracle(
            X, y, z, notion=notion, n_labels=3, n_groups=2, sample_weight=weight, mu=1
        )
        w = 0.5 * rng.standard_normal(oracle.n_weights)
        u = 0.5 * rng.standard_normal(oracle.n_adversary)
        m = oracle.evaluate(w, u, 1.3)
        for gradient, slope in (
            (m.grad_c, approx_fprime(w, lambda v: oracle.evaluate(v, u, 1.3).loss_c, 1e-7)),
            (
                np.atleast_2d(m.grad_f).sum(axis=0),
                approx_fprime(w, lambda v: oracle.evaluate(v, u, 1.3).loss_w, 1e-7),
            ),
            (m.grad_u, approx_fprime(u, lambda v: oracle.evaluate(w, v, 1.3).loss_u, 1e-7)),
        ):
            np.testing.assert_allclose(gradient, slope, atol=2e-6)
        scores = X @ w.reshape(3, 4)[:, :3].T + w.reshape(3, 4)[:, 3]
        loss = -np.log(softmax(scores, axis=1)[np.arange(60), y])
        ridge = 0.5 * 1e-4 * np.sum(w.reshape(3, 4)[:, :3] ** 2)
        assert m.loss_c == pytest.approx(np.average(loss, weights=weight) + ridge)
        assert m.counts.sum() == pytest.approx(weight.sum())

    def test_scores_of_any_size(self):
        X, y, z = np.eye(3) * 1e3, np.arange(3), np.array([0, 1, 0])
        notion = of_labels(NOTIONS["statistical_parity"](2), [0, 1, 2], 3)
        oracle = make_oracle(X, y, z, notion=notion, n_labels=3)
        w = 10 * np.eye(3, 4).ravel()
        m = oracle.evaluate(w, np.zeros(oracle.n_adversary))
        assert np.isfinite(m.loss_c)
        assert np.isfinite(m.grad_c).all()
        assert np.isfinite(m.grad_f).all()

    def test_dense_is_sparse(self, data):
        X, y, z = data
        codes = np.searchsorted(LABELS, y), (z == "b").astype(int)
        notion = of_labels(NOTIONS["false_discovery"](2), [1, 2], 3)
        rng = np.random.default_rng(0)
        one, two = (make_oracle(x, *codes, notion=notion, n_labels=3) for x in (X, csr_matrix(X)))
        w, u = rng.standard_normal(one.n_weights), rng.standard_normal(one.n_adversary)
        for a, b in zip(one.evaluate(w, u), two.evaluate(w, u), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


class TestRates:
    @given(
        arrays(np.int64, (2, 4, 4), elements=st.integers(0, 20)),
        st.integers(0, 3),
        st.sampled_from([*RATES.values(), EQUALIZED_ODDS]),
    )
    @settings(max_examples=100, deadline=None)
    def test_one_label_is_the_rate_of_two(self, counts, label, rate):
        others = [k for k in range(4) if k != label]
        two = np.zeros((2, 2, 2))
        two[:, 1, 1] = counts[:, label, label]
        two[:, 1, 0] = counts[:, label, others].sum(axis=1)
        two[:, 0, 1] = counts[:, others, label].sum(axis=1)
        two[:, 0, 0] = counts[:, others][:, :, others].sum(axis=(1, 2))
        ours = rate.of_label(label, 4)
        np.testing.assert_allclose(ours.ratio(counts), rate.ratio(two))
        np.testing.assert_allclose(ours.difference(counts), rate.difference(two))

    def test_accuracy(self):
        counts = np.array([[[3, 1, 0], [0, 2, 0], [0, 0, 1]], np.eye(3)])
        assert overall_accuracy(counts) == 9 / 10
        assert np.isnan(overall_accuracy(np.zeros((2, 3, 3))))


class TestClassifier:
    def test_the_start_is_plain_multinomial_regression(self, data):
        X, y, _ = data
        model = fit(data, tau=1e-6, cut=False)
        plain = LogisticRegression(C=1 / (1e-4 * len(y)), tol=1e-8).fit(X, y)
        w = model.trajectory_.iterates[0].reshape(3, 5)
        np.testing.assert_allclose(
            softmax(X @ w[:, :4].T + w[:, 4], axis=1), plain.predict_proba(X), atol=2e-3
        )

    @pytest.mark.parametrize("tau", [0.6, 0.8, 0.95])
    def test_figures_are_those_of_the_predictions(self, fitted, data, tau):
        X, y, z = data
        model = fitted.at(tau)
        pred = model.predict(X)
        ratios = [
            float(RATES["selection_rate"].ratio(one_against_others(label, y, pred, z)))
            for label in LABELS
        ]
        assert model.feasible_
        assert model.rate_ == pytest.approx(min(ratios))
        assert model.rate_ >= tau
        assert model.accuracy_ == pytest.approx(np.mean(pred == y))
        assert model.classes_.tolist() == LABELS.tolist()
        proba = model.predict_proba(X)
        np.testing.assert_allclose(proba.sum(axis=1), 1)
        assert (LABELS[proba.argmax(axis=1)] == pred).all()

    @pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds"])
    def test_one_favourable_label(self, data, notion):
        X, y, z = data
        model = fit(data, notion=notion, pos_label="loan", tau=0.85)
        counts = one_against_others("loan", y, model.predict(X), z)
        assert model.rate_ == pytest.approx(float(NOTIONS[notion](2).rate.ratio(counts)))
        assert model.rate_ >= 0.85
        assert set(np.unique(model.predict(X))) == set(LABELS)

    def test_one_label_costs_less_than_all(self, data, fitted):
        assert fit(data, pos_label="card").at(0.9).accuracy_ > fitted.at(0.9).accuracy_

    def test_several_notions(self, data):
        X, y, z = data
        notions = ["statistical_parity", "equal_opportunity"]
        model = fit(data, notion=notions, tau=[0.6, 0.7], pos_label="card")
        counts = one_against_others("card", y, model.predict(X), z)
        assert model.feasible_
        assert RATES["selection_rate"].ratio(counts) >= 0.6
        assert RATES["true_positive_rate"].ratio(counts) >= 0.7

    @pytest.mark.parametrize("selection", ["holdout", "crossfit", "certified"])
    def test_selections(self, data, selection):
        model = fit(data, **REGIMES[selection], tau=0.5, cv=2, random_state=0)
        held = model.held_out_
        assert held.counts.shape[1:] == (2, 3, 3)
        assert model.feasible_ == (model.guarantee_.certified if model.guarantee_ else True)
        assert 0 < model.accuracy_ < 1
        frame = held.to_frame()
        assert {"cut[card]", "cut[deny]", "cut[loan]", "fitted_rate", "bound"} <= set(frame)

    def test_counts_on_other_rows(self, fitted):
        from evenhand.frontier.held_out import count_points

        X, y, z = make(700, 5)
        codes = (z == "b") * 3 + np.searchsorted(LABELS, y)
        counts = count_points(
            fitted.frontier_, fitted.trajectory_.iterates, X, None, codes, None, 2
        )
        for tau in (0.6, 0.9):
            i = int(np.searchsorted(fitted.frontier_.rate, tau))
            pred = np.searchsorted(LABELS, fitted.at(tau).predict(X))
            np.testing.assert_array_equal(
                counts[i], np.bincount(codes * 3 + pred, minlength=18).reshape(2, 3, 3)
            )

    def test_weights_are_repetitions(self, data):
        X, y, z = (v[:300] for v in data)
        weight = np.random.default_rng(0).integers(0, 3, 300)
        weighted = FairClassifier(confidence=None).fit(
            X, y, sensitive_features=z, sample_weight=weight
        )
        repeated = fit(tuple(np.repeat(v, weight, axis=0) for v in (X, y, z)))
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, atol=1e-6)
        assert weighted.rate_ == pytest.approx(repeated.rate_)

    def test_frame_names_labels_and_groups(self, fitted):
        frame = fitted.frontier_.to_frame()
        assert "selection_rate[a, loan]" in frame
        assert "cut[card]" in frame

    def test_a_label_that_one_group_never_gets(self, data):
        X, y, z = data
        keep = (y != "card") | (z == "a") & (X[:, 1] > 1)
        with warns("target_missed", tau=("tau", 1.0)):
            model = fit((X[keep], y[keep], z[keep]), tau=1.0)
        assert not model.feasible_

    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_five_labels_and_a_small_group(self):
        rng = np.random.default_rng(3)
        X, y = rng.standard_normal((600, 3)), rng.integers(0, 5, 600)
        z = np.where(np.arange(600) < 10, "few", np.where(X[:, 0] > 0.5, "a", "b"))
        model = fair(tau=0.5, max_iter=50, min_share=0.0).fit(X, y, sensitive_features=z)
        assert model.small_groups_ == {"few": 10}
        assert model.frontier_.last.counts.shape == (3, 5, 5)

    @pytest.mark.parametrize(
        "params", [{"group_cuts": True}, {"extra_column": "noise"}, {"solver": "soft_rate"}]
    )
    def test_what_is_for_two_labels(self, data, params):
        with raises("two_labels_only", parameter=(*params.items(),)[0], n=3):
            fit(data, **params)

    def test_a_label_that_is_not_there(self, data):
        with raises("unknown_favourable_label", pos_label=("pos_label", "house")) as error:
            fit(data, pos_label="house")
        assert error.value.data["labels"] == "'card', 'deny', 'loan'"


class TestFavourableOfTwo:
    def test_the_smaller_label_may_be_favourable(self, data):
        X, y, z = data
        y = np.where(y == "loan", "loan", "deny")
        ours = fit((X, y, z), pos_label="deny", tau=0.85)
        other = fit((X, y == "deny", z), tau=0.85)
        np.testing.assert_allclose(ours.coef_, -other.coef_)
        np.testing.assert_allclose(ours.intercept_, -other.intercept_)
        assert (ours.predict(X) == "deny").tolist() == other.predict(X).tolist()
        np.testing.assert_allclose(ours.predict_proba(X), other.predict_proba(X)[:, ::-1])
        assert ours.rate_ == other.rate_
        assert ours.classes_.tolist() == ["deny", "loan"]

    @pytest.mark.parametrize("pos_label", ["deny", "loan"])
    @pytest.mark.parametrize("group_cuts", [False, True])
    def test_a_score_of_exactly_0_is_not_the_favourable_label(self, data, pos_label, group_cuts):
        X, y, z = data
        y = np.where(y == "loan", "loan", "deny")
        model = fit((X, y, z), pos_label=pos_label, group_cuts=group_cuts, max_iter=5)
        model.intercept_ = np.zeros_like(model.intercept_)
        groups, zero = z[:3], np.zeros((3, X.shape[1]))
        assert not model.decision_function(zero, sensitive_features=groups).any()
        other = {"deny": "loan", "loan": "deny"}[pos_label]
        assert model.predict(zero, sensitive_features=groups).tolist() == [other] * 3
        # Either side of it is clear.
        step = np.sign(model.coef_) * 1e-9
        near = [model.predict(s * step, sensitive_features=groups[:1])[0] for s in (-1, 1)]
        assert near == ["deny", "loan"]

    def test_naming_the_larger_changes_nothing(self, data):
        X, y, z = data
        y = y == "loan"
        np.testing.assert_array_equal(fit((X, y, z), pos_label=True).coef_, fit((X, y, z)).coef_)

    def test_a_label_that_is_none(self, data):
        X, y, z = data
        with raises("unknown_favourable_label", labels="False, True"):
            fit((X, y == "loan", z), pos_label=7)


def test_a_rare_label_is_not_forced_on_people():
    rng = np.random.default_rng(0)
    X, z = rng.standard_normal((6000, 3)), rng.integers(0, 2, 6000)
    y = np.where(X[:, 0] + rng.standard_normal(6000) > 0, "yes", "no").astype(object)
    y[(X[:, 2] > 2.2) & (rng.random(6000) < 0.5)] = "fraud"
    model = FairClassifier(tau=0.3).fit(X, y.astype(str), sensitive_features=z)
    share = np.mean(model.predict(X) == "fraud")
    assert share < 0.01


@pytest.mark.parametrize("kind", [list, np.array, pd.Series])
@pytest.mark.parametrize(("values", "types"), [((1, "a"), "int, str"), ((True, "a"), "bool, str")])
def test_labels_of_mixed_types(kind, values, types):
    X, y, z = make(60, 0)
    mixed = [values[label == "loan"] for label in y]
    mixed = kind(mixed) if kind is list else kind(mixed, dtype=object)
    for model in (FairClassifier(), FairBoostedClassifier()):
        with pytest.raises(ValueError, match=rf"y mixes types .*\({types}\); use one type"):
            model.fit(X, mixed, sensitive_features=z)


def test_a_group_that_is_half_a_character():
    X, y, z = make(200, 0)
    half = np.where(z == "a", "a\ud800", z)
    for groups in (half, half.astype(object), half.tolist(), np.column_stack([half, z])):
        with pytest.raises(ValueError, match=r"the value 'a\\ud800.*' has half a character"):
            FairClassifier().fit(X, y, sensitive_features=groups)
    with pytest.raises(ValueError, match="half a character"):
        FairClassifier().fit(X, y, sensitive_features=pd.Series(half.astype(object), dtype=object))
