"""Cuts for each group: the attribute-aware mode."""

from itertools import product

import numpy as np
import pandas as pd
import pytest
from helpers import REGIMES, fair, raises
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from evenhand import group_rates
from evenhand.core.errors import Parameter
from evenhand.core.metrics import group_counts
from evenhand.core.rates import EQUALIZED_ODDS, RATES
from evenhand.core.targets import Target, find_target
from evenhand.frontier.cuts import decide, one_cut
from evenhand.frontier.group_cuts import (
    DIFFERENCE_STEP,
    RATE_STEP,
    group_cuts,
    score_curves,
)
from evenhand.frontier.splits import split_rows


def make(n, seed, groups=2):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, n)
    X = rng.standard_normal((n, 3))
    X[:, 0] += 0.9 * z / (groups - 1)
    y = (X @ [1.0, 0.5, 0.2] + rng.logistic(size=n) > 0.8).astype(int)
    return X, y, np.array(["a", "b", "c", "d"])[z]


def fit(data, **params):
    X, y, z = data
    params = {"confidence": None} | params
    return fair(group_cuts=True, **params).fit(X, y, sensitive_features=z)


@pytest.fixture(scope="module")
def data():
    return make(1500, 0)


@pytest.fixture(scope="module")
def fitted(data):
    return fit(data)


def curves_of(scores, cell, groups):
    """Every cut of every group with its counts, without cleverness."""
    out = []
    for j in range(groups):
        s, y = scores[cell // 2 == j], cell[cell // 2 == j] % 2
        cuts = np.unique(s)
        cuts = (cuts[1:] + cuts[:-1]) / 2
        counts = [
            [[np.sum((y == a) & ((s > c) == b)) for b in (0, 1)] for a in (0, 1)] for c in cuts
        ]
        out.append(np.array(counts, dtype=float))
    return out


def best_cuts(scores, gap, cell, weight, *, rate, groups, n_groups_all, eligible):
    target = rate if isinstance(rate, Target) else Target(rate, 1.0)
    curves = score_curves(scores, gap, cell, weight, groups, n_groups_all)
    return group_cuts(*curves, target=target, eligible=eligible)


class TestGroupCuts:
    @given(
        st.integers(0, 10**6),
        st.sampled_from(sorted(RATES)),
        st.integers(2, 3),
        st.sampled_from(["ratio", "difference"]),
    )
    @settings(max_examples=60, deadline=None)
    def test_none_is_better_for_its_target(self, seed, name, groups, comparison):
        rng = np.random.default_rng(seed)
        n = 12 * groups
        scores, cell = rng.standard_normal(n), rng.integers(0, 2 * groups, n)
        cell[: 2 * groups] = np.arange(2 * groups)
        rate = RATES[name]

        def eligible(counts):
            return np.isfinite(rate.per_group(counts)).all(axis=-1)

        _, counts = best_cuts(
            scores,
            0.0,
            cell,
            None,
            rate=Target(rate, 0.5, comparison),
            groups=groups,
            n_groups_all=groups,
            eligible=eligible,
        )
        counts = np.moveaxis(counts, -1, 0)
        right = counts[:, :, 0, 0].sum(axis=1) + counts[:, :, 1, 1].sum(axis=1)

        def scale(values):
            return np.log(np.maximum(values, 1e-5)) if comparison == "ratio" else values

        step = RATE_STEP if comparison == "ratio" else DIFFERENCE_STEP
        spread = scale(rate.per_group(counts))
        spread = spread.max(axis=1) - spread.min(axis=1)
        curves = [
            [(rate.per_group(c[None])[0], c[0, 0] + c[1, 1]) for c in each if eligible(c[None])]
            for each in curves_of(scores, cell, groups)
        ]
        for combination in product(*curves):
            value = scale(np.array([v for v, _ in combination]))
            wide = value.max() - value.min()
            # Rates are told apart, and widths tried, in steps; 1.03 is more than from one width to
            # the next, which are 300 from 1 to 3,219 steps, of differences to 2,000.
            allowed = spread <= 1.03 * wide + 3 * step
            if wide < (1.5 if comparison == "ratio" else 0.45):
                assert right[allowed].max(initial=-1) >= sum(r for _, r in combination)

    def test_counts_are_those_of_the_cuts(self):
        rng = np.random.default_rng(0)
        n = 300
        scores, cell = rng.standard_normal(n), rng.integers(0, 6, n)  # the third group is the rest
        weight = rng.uniform(0.5, 2, n)
        for rate in (RATES["selection_rate"], EQUALIZED_ODDS):
            cuts, counts = best_cuts(
                scores,
                1e-12,
                cell,
                weight,
                rate=rate,
                groups=2,
                n_groups_all=3,
                eligible=lambda c: np.ones(len(c), dtype=bool),
            )
            assert cuts.shape == (counts.shape[-1], 3)
            for i in (0, len(cuts) // 2, len(cuts) - 1):
                answer = decide(scores, cuts[i], cell // 2)
                found = np.bincount(cell * 2 + answer, weights=weight, minlength=12)
                np.testing.assert_allclose(counts[..., i], found.reshape(3, 2, 2))

    @pytest.mark.parametrize(
        ("demand", "levels", "step"),
        [
            ({"tau": [1.0, 0.8]}, (0.5, 0.7, 0.8, 0.9), 0.01),
            ({"epsilon": [0.05, 0.1]}, (-0.2, -0.1, -0.05, -0.02), 0.0025),
            ({"tau": [None, 0.8], "epsilon": [0.05, None]}, (-0.2, -0.1, -0.05, -0.02), 0.0025),
        ],
    )
    def test_several_rates_against_every_pair(self, demand, levels, step):
        rng = np.random.default_rng(1)
        n = 160
        z, s = rng.integers(0, 2, n), rng.standard_normal(n)
        y = (s + 0.5 * z + rng.standard_normal(n) > 0).astype(int)
        target = find_target(["equalized_odds", "predictive_parity"], **demand)
        _, counts = best_cuts(
            s,
            0.0,
            z * 2 + y,
            None,
            rate=target,
            groups=2,
            n_groups_all=2,
            eligible=lambda c: np.ones(len(c), dtype=bool),
        )
        counts = np.moveaxis(counts, -1, 0)
        right = counts[:, :, 0, 0].sum(axis=1) + counts[:, :, 1, 1].sum(axis=1)
        value = target.value(counts)
        first, second = curves_of(s, z * 2 + y, 2)
        every = np.array([[a, b] for a in first for b in second])
        best = every[:, :, 0, 0].sum(axis=1) + every[:, :, 1, 1].sum(axis=1)
        every_value = target.value(every)
        for level in levels:
            # Values are told apart in steps.
            assert right[value >= level - step].max() >= best[every_value >= level].max()

    def test_a_group_without_an_eligible_cut(self):
        cuts, counts = best_cuts(
            np.arange(4.0),
            0.0,
            np.array([0, 1, 2, 3]),
            None,
            rate=RATES["selection_rate"],
            groups=2,
            n_groups_all=2,
            eligible=lambda c: np.zeros(len(c), dtype=bool),
        )
        assert cuts.shape == (0, 2)
        assert counts.shape == (2, 2, 2, 0)

    def test_one_cut_counts(self):
        cuts, weights = one_cut(np.array([1.0, 3.0, 2.0]), 0.0, np.array([0, 1, 1]), None, 2)
        assert cuts.tolist() == [2.5, 1.5]
        assert weights[:, 1].tolist() == [[0, 0], [1, 2]]


class TestClassifier:
    @pytest.mark.parametrize("tau", [0.6, 0.8, 0.95])
    def test_figures_are_those_of_the_predictions(self, fitted, data, tau):
        X, y, z = data
        model = fitted.at(tau)
        pred = model.predict(X, sensitive_features=z)
        counts = group_counts(y, pred, sensitive_features=z)[1]
        assert model.rate_ == pytest.approx(float(RATES["selection_rate"].ratio(counts)))
        assert model.rate_ >= tau
        assert model.accuracy_ == pytest.approx(np.mean(pred == y))
        assert model.intercept_.shape == (2,)
        proba = model.predict_proba(X, sensitive_features=z)
        assert ((proba[:, 1] > 0.5) == pred).all()

    @pytest.mark.parametrize(
        "notion",
        ["statistical_parity", "equalized_odds", "false_discovery", "accuracy_parity"],
    )
    def test_knowing_the_group_does_not_hurt(self, data, notion):
        X, y, z = data
        aware = fit(data, notion=notion, max_iter=60)
        blind = fair(notion, max_iter=60, confidence=None).fit(X, y, sensitive_features=z)
        for tau in (0.8, 0.9):
            assert aware.at(tau).accuracy_ >= blind.at(tau).accuracy_ - 0.002
        assert aware.at(0.9).accuracy_ > blind.at(0.9).accuracy_ - 1e-9

    @pytest.mark.parametrize(
        ("params", "sources"),
        [
            ({}, {"optimum"}),
            ({"epsilon": 0.05}, {"optimum"}),
            ({"notion": "equalized_odds"}, {"optimum", "solver"}),
            ({"candidates": "solver"}, {"optimum", "solver"}),
            ({"cut": False, "tau": 0.4}, {"optimum", "solver"}),
        ],
    )
    def test_for_one_rate_the_optimum_is_the_only_score(self, data, params, sources):
        model = fit(data, max_iter=5, **params)
        assert set(model.trajectory_.sources) == sources
        assert model.converged_

    def test_a_surer_rate_is_found(self, data):
        # Of all pairs of cuts, one of a lower accuracy has a rate that is sure enough.
        X, y, z = (v[:400] for v in data)
        strict = fit((X, y, z), confidence=0.9, tau=0.85)
        assert strict.rate_bound_ >= 0.85
        loose = strict.at(0.5)
        assert strict.accuracy_ < loose.accuracy_
        favoured = [m.point_.counts[:, :, 1].sum() for m in (loose, strict)]
        assert favoured[1] > favoured[0]

    def test_three_groups_and_a_small_one(self):
        X, y, z = make(1500, 1, groups=3)
        z[:10] = "f"
        model = fit((X, y, z), tau=0.9)
        assert model.small_groups_ == {"f": 10}
        assert model.intercept_.shape == (4,)
        pred = model.predict(X, sensitive_features=z)
        rates = group_rates(y[10:], pred[10:], sensitive_features=z[10:])["selection_rate"]
        assert rates.min() / rates.max() >= 0.9
        frame = model.frontier_.to_frame()
        assert {"cut[a]", "cut[b]", "cut[c]", "cut[others]"} <= set(frame)

    def test_crossed_columns(self, data):
        X, y, z = data
        groups = pd.DataFrame({"z": z, "old": X[:, 2] > 0})
        model = fair(group_cuts=True, max_iter=60).fit(X, y, sensitive_features=groups)
        assert model.groups_.tolist() == ["a & False", "a & True", "b & False", "b & True"]
        assert model.predict(X, sensitive_features=groups).shape == y.shape

    def test_bins(self, data):
        X, y, _ = data
        age = 40 + 10 * X[:, 0]
        model = fair(group_cuts=True, bins=[30, 50], max_iter=60)
        model.fit(X, y, sensitive_features=age)
        pred = model.predict(X, sensitive_features=age)
        assert model.accuracy_ == pytest.approx(np.mean(pred == y))
        one = model.predict(X[:1], sensitive_features=[29.0])
        assert one[0] == (X[:1] @ model.coef_[0] + model.intercept_[0] > 0)[0]

    def test_bins_that_are_alike_in_six_digits(self, data):
        X, y, _ = data
        born = 19800101 + np.arange(len(y)) % 59
        model = fair(
            group_cuts=True, bins=[19800110, 19800125, 19800140], max_iter=60, tau=0.5
        ).fit(X, y, sensitive_features=born)
        assert len(set(model.groups_.tolist())) == 4
        predicted = model.predict(X, sensitive_features=born)
        assert model.accuracy_ == pytest.approx(np.mean(predicted == y))
        assert model.score(X, y, sensitive_features=born) == pytest.approx(model.accuracy_)

    @pytest.mark.parametrize("selection", ["holdout", "crossfit", "certified"])
    def test_selections(self, data, selection):
        model = fit(data, **REGIMES[selection], tau=0.6, cv=2, random_state=0)
        assert model.feasible_
        assert model.held_out_.counts.shape[1:] == (2, 2, 2)
        if selection == "holdout":
            at = model.held_out_.points.cut.tolist().index(model.point_.cut.tolist())
            total = model.held_out_.counts[at].sum()
            assert total == model.held_out_.n_rows

    @pytest.mark.parametrize("groups", [2, 3])
    def test_cuts_belong_to_their_groups(self, groups):
        X, y, z = make(900, 3, groups=groups)
        z[:5] = "f"  # too small to be compared, with a cut of its own
        params = {"tau": 0.7, "selection": "holdout", "random_state": 0, "max_iter": 30}
        model = fit((X, y, z), **params)
        names = [*model.groups_.tolist(), "f"]
        assert len(set(model.point_.cut.tolist())) > 1
        code = np.array([names.index(group) for group in z])
        held = split_rows(np.minimum(code, groups) * 2 + y, 0.5, np.random.RandomState(0))[1]
        # What was counted on the held-out rows is what each of the points predicts for them.
        points, counts = model.held_out_.points, model.held_out_.counts
        for i in range(0, len(points), 7):
            w = model.trajectory_.iterates[points.iterate[i]]
            answer = X[held] @ w[:-1] + w[-1] > points.cut[i][code[held]]
            found = np.zeros((groups + 1, 2, 2))
            np.add.at(found, (code[held], y[held], answer.astype(int)), 1)
            np.testing.assert_array_equal(counts[i], found)
        # So does the classifier, and the frontier's table names the cuts.
        w = model.trajectory_.iterates[model.point_.iterate]
        scores = X @ w[:-1] + w[-1] - model.point_.cut[code]
        np.testing.assert_allclose(model.decision_function(X, sensitive_features=z), scores)
        frame = model.frontier_.to_frame()
        shown = np.column_stack([frame[f"cut[{name}]"] for name in [*names[:-1], "others"]])
        np.testing.assert_array_equal(shown, model.frontier_.cut)

    def test_sparse_and_weights(self, data):
        X, y, z = (v[:400] for v in data)
        weight = np.random.default_rng(0).integers(1, 3, 400)
        weighted = fair(group_cuts=True, max_iter=60, confidence=None).fit(
            csr_matrix(X), y, sensitive_features=z, sample_weight=weight
        )
        repeated = fit(tuple(np.repeat(v, weight, axis=0) for v in (X, y, z)), max_iter=60)
        np.testing.assert_allclose(weighted.intercept_, repeated.intercept_, atol=1e-6)

    def test_the_favourable_label_may_be_the_smaller(self, data):
        X, y, z = data
        ours = fit(data, pos_label=0, max_iter=60)
        other = fit((X, 1 - y, z), max_iter=60)
        np.testing.assert_allclose(ours.intercept_, -other.intercept_)

    def test_groups_from_a_column(self, data):
        X, y, z = data
        frame = pd.DataFrame(X, columns=list("uvw")).assign(z=z)
        model = fair(group_cuts=True, sensitive_features="z", max_iter=60).fit(frame, y)
        assert model.accuracy_ == pytest.approx(np.mean(model.predict(frame) == y))
        assert model.score(frame, y) == pytest.approx(model.accuracy_)

    @pytest.mark.parametrize(
        ("groups", "message"),
        [
            (None, r"group_cuts=True needs the group of each row to predict: pass sensitive_feat"),
            (["a", "x"], r"has the group 'x', which .* not have; they had 'a', 'b'"),
            (["a"], r"sensitive_features has 1 rows, X has 2"),
        ],
    )
    def test_bad_groups(self, fitted, data, groups, message):
        with pytest.raises(ValueError, match=message):
            fitted.predict(data[0][:2], sensitive_features=groups)

    def test_missing_groups(self, fitted, data):
        with raises("missing_values", argument=Parameter("sensitive_features"), n=1):
            fitted.predict(data[0][:2], sensitive_features=["a", None])
