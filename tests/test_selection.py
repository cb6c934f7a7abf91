import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from conftest import NOTION_NAMES, as_layout, make_problem
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binomtest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV

from evenhand import FairClassifier, FairnessWarning
from evenhand.frontier import Frontier, Point
from evenhand.rates import RATES, group_counts
from evenhand.selection import (
    HeldOut,
    choose,
    clopper_pearson,
    order_of_tests,
    ratio_bound,
    rows_factor,
    split_folds,
    split_rows,
)

UNSEEN = ("holdout", "crossfit", "certified")
RATE = RATES["selection_rate"]


def fit(X, y, z, sample_weight=None, **params):
    params = {"random_state": 0, "tau": 0.6} | params
    return FairClassifier(**params).fit(X, y, sensitive_features=z, sample_weight=sample_weight)


def counts_strategy():
    shape = st.tuples(st.just(1), st.integers(2, 5), st.just(2), st.just(2))
    return shape.flatmap(lambda s: arrays(np.int64, s, elements=st.integers(0, 60)))


rates = st.sampled_from(list(RATES.values()))
deltas = st.sampled_from([0.01, 0.05, 0.2])


class TestBounds:
    @given(st.integers(0, 80), st.integers(1, 80), st.sampled_from([0.005, 0.025, 0.1]))
    def test_clopper_pearson_against_scipy(self, hits, trials, error):
        assume(hits <= trials)
        expected = binomtest(hits, trials).proportion_ci(1 - 2 * error, method="exact")
        found = clopper_pearson(hits, trials, error)
        np.testing.assert_allclose(found, (expected.low, expected.high), rtol=1e-9)

    def test_no_trials_no_bounds(self):
        assert np.isnan(clopper_pearson([0, 0], [0, 0], 0.05)).all()

    @given(counts_strategy(), rates, deltas)
    def test_bound_is_below_the_ratio(self, counts, rate, delta):
        ratio, bound = rate.ratio(counts)[0], ratio_bound(counts, rate, delta)[0]
        bottom = sum(counts[0, :, y, p] for y, p in rate.denominator)
        assert np.isnan(bound) == (bottom == 0).any()
        if not np.isnan(ratio) and not np.isnan(bound):
            assert 0 <= bound <= ratio

    @given(counts_strategy(), rates, deltas, st.randoms(use_true_random=False))
    def test_groups_have_no_order(self, counts, rate, delta, random):
        order = list(range(counts.shape[1]))
        random.shuffle(order)
        found = ratio_bound(counts[:, order], rate, delta)
        np.testing.assert_array_equal(found, ratio_bound(counts, rate, delta))

    @given(counts_strategy(), rates)
    def test_more_confidence_or_fewer_rows_say_less(self, counts, rate):
        sure, less = ratio_bound(counts, rate, 0.01)[0], ratio_bound(counts, rate, 0.1)[0]
        more = ratio_bound(4 * counts, rate, 0.01)[0]
        assert np.isnan(sure) or sure <= less
        assert np.isnan(sure) or sure <= more

    def test_by_hand(self):
        # 36 of 100 and 45 of 100 and nobody's business in between
        counts = np.array([[[64, 36], [0, 0]], [[55, 45], [0, 0]], [[60, 40], [0, 0]]])
        low = binomtest(36, 100).proportion_ci(0.95).low
        high = binomtest(45, 100).proportion_ci(0.95).high
        assert float(ratio_bound(counts, RATE, 0.05)) == pytest.approx(low / high)
        assert np.isnan(ratio_bound(counts[:1], RATE, 0.05))

    def test_no_errors_are_no_proof(self):
        rate, none = RATES["false_positive_rate"], np.array([[[50, 0], [9, 9]]] * 2)
        assert rate.ratio(none) == 1
        assert ratio_bound(none, rate, 0.05) == 0
        assert rows_factor(none, rate, 0.8, 0.05) == np.inf

    @pytest.mark.parametrize("n_groups", [2, 4])
    def test_the_error_is_at_most_delta(self, n_groups):
        # Rates with a ratio of exactly 0.8: a bound above it is wrong.
        rng = np.random.default_rng(0)
        p = np.linspace(0.4, 0.5, n_groups)
        hits = rng.binomial(300, p, size=(20_000, n_groups))
        counts = np.zeros((20_000, n_groups, 2, 2))
        counts[..., 0, 1], counts[..., 0, 0] = hits, 300 - hits
        delta = 0.2
        wrong = (ratio_bound(counts, RATE, delta) > 0.8).mean()
        assert wrong <= delta
        if n_groups == 2:  # the test can fail: bounds of less confidence are wrong too often
            assert (ratio_bound(counts, RATE, 0.8) > 0.8).mean() > delta

    @given(counts_strategy(), rates, st.sampled_from([0.5, 0.8, 0.95]))
    def test_rows_factor(self, counts, rate, tau):
        factor = rows_factor(counts[0], rate, tau, 0.05)
        ratio = rate.ratio(counts[0])
        if np.isinf(factor):
            top = sum(counts[0][:, y, p] for y, p in rate.numerator)
            near = ratio_bound(1e8 * counts[0], rate, 0.05)
            assert not (ratio > tau and top.any()) or near < tau
        else:
            assert ratio_bound(factor * counts[0], rate, 0.05) >= tau
            if factor > 1:
                assert ratio_bound(0.99 * factor * counts[0], rate, 0.05) < tau


def frontier_of(counts, rate=RATE):
    """A frontier whose points are those of the counts on the fitting part, and no fit behind it."""
    n = len(counts)
    ratio = rate.ratio(counts)
    order = np.argsort(ratio)
    counts, ratio = counts[order], ratio[order]
    accuracy = RATES["accuracy"].per_group(counts.sum(axis=1))
    last = Point(0, 0.0, 0.5, np.nan, counts[0], False)
    return Frontier(np.arange(n), np.zeros(n), accuracy, ratio, counts, [*"abcdef"], last)


def some_counts(rng, n_points, n_groups, size):
    """Points from fair and inaccurate to unfair and accurate, as rows would have them."""
    t = np.linspace(0, 1, n_points)[:, None, None]
    base = rng.uniform(0.3, 0.5, n_groups)[:, None]
    lean = np.linspace(-0.5, 0.5, n_groups)[:, None] * base
    share = base.mean() + t * lean + (np.array([-1, 1]) * (0.1 + 0.2 * t))
    positive = rng.binomial(size, share.clip(0, 1))
    return np.stack([size - positive, positive], axis=-1).astype(float)


def held_of(frontier, counts, rate=RATE, delta=0.05):
    n_rows, n_fitted = (int(c[0].sum()) if len(c) else 0 for c in (counts, frontier.counts))
    with_last = np.concatenate([counts, np.zeros((1, *counts.shape[1:]))])
    return HeldOut.from_counts(
        frontier, with_last, rate, delta=delta, n_rows=n_rows, n_fitted=n_fitted
    )


class TestChoice:
    @given(st.integers(0, 40), st.integers(2, 4), st.sampled_from([60, 300, 2000]))
    def test_stops_at_the_first_failure(self, seed, n_groups, size):
        rng = np.random.default_rng(seed)
        frontier = frontier_of(some_counts(rng, 30, n_groups, 2 * size))
        held = held_of(frontier, some_counts(rng, 30, n_groups, size)[::-1])
        order = order_of_tests(held, RATE, 0.05)
        assert len(order)
        assert (np.diff(frontier.accuracy[order]) > 0).all()
        before = None
        for tau in np.linspace(0.05, 1, 30):
            choice = choose(frontier, held, RATE, tau, certify=0.05)
            guarantee = choice.guarantee
            n = 0
            while n < len(order) and held.bound[order[n]] >= tau:
                n += 1
            i = order[max(n - 1, 0)]
            assert choice.point.iterate == frontier.iterate[i]
            assert choice.point.feasible == guarantee.certified == (n > 0)
            assert guarantee.tested == min(n + 1, len(order))
            assert (guarantee.bound >= tau) == guarantee.certified
            assert guarantee.candidates == len(order)
            # A stricter target never has more passes, nor more accuracy.
            accuracy = frontier.accuracy[i]
            assert before is None or accuracy <= before
            before = accuracy
            if n:
                assert guarantee.rows_needed is None
                assert "certified: with confidence 0.95" in str(guarantee)
            elif guarantee.rows_needed is None:
                assert held.rate[i] <= tau
                assert "no number of rows" in str(guarantee)
            else:
                assert guarantee.rows_needed >= held.n_rows + held.n_fitted
                said = int(str(guarantee).split("about ")[1].split(" rows")[0].replace(",", ""))
                assert guarantee.rows_needed <= said <= 1.1 * guarantee.rows_needed + 1

    def test_a_confident_number_of_rows_is_enough(self):
        rng = np.random.default_rng(1)
        frontier = frontier_of(some_counts(rng, 20, 2, 400))
        held = held_of(frontier, frontier.counts / 4)
        before = choose(frontier, held, RATE, 0.9, certify=0.05).guarantee
        assert not before.certified
        more = before.rows_needed / (held.n_rows + held.n_fitted)
        frontier = frontier_of(frontier.counts * more)
        held = held_of(frontier, frontier.counts / 4)
        assert choose(frontier, held, RATE, 0.9, certify=0.05).guarantee.certified

    def test_points_no_better_than_one_answer_to_all_are_not_tested(self):
        rng = np.random.default_rng(0)
        counts = some_counts(rng, 20, 2, 500)
        trivial = np.array([[[10.0, 990.0], [10.0, 990.0]]] * 2)[None]
        trivial *= counts[0].sum() / trivial.sum()
        frontier = frontier_of(np.concatenate([counts, trivial]))
        held = held_of(frontier, frontier.counts)
        label = counts[0].sum(axis=(0, 2)).max() / counts[0].sum()
        order = order_of_tests(held, RATE, 0.05)
        assert (frontier.accuracy[order] > label).all()
        alone = frontier_of(trivial)
        assert len(order_of_tests(held_of(alone, trivial), RATE, 0.05)) == 1

    @given(st.integers(0, 40))
    def test_of_those_that_reach_it_the_most_accurate(self, seed):
        rng = np.random.default_rng(seed)
        frontier = frontier_of(some_counts(rng, 30, 3, 400))
        held = held_of(frontier, some_counts(rng, 30, 3, 200)[::-1])
        for tau in np.linspace(0.05, 1, 30):
            choice = choose(frontier, held, RATE, tau)
            reached = held.rate >= tau
            assert choice.point.feasible == reached.any()
            if reached.any():
                assert choice.rate >= tau
                assert choice.point.accuracy == frontier.accuracy[reached].max()
            else:
                assert choice.rate == held.rate.max()

    def test_undefined_rates_are_never_chosen(self):
        counts = some_counts(np.random.default_rng(0), 10, 2, 100)
        frontier, empty = frontier_of(counts), np.zeros_like(counts)
        for certify in (None, 0.05):
            choice = choose(frontier, held_of(frontier, empty), RATE, 1e-9, certify=certify)
            assert not choice.point.feasible
            assert np.isnan(choice.rate)
        assert choice.guarantee.rows_needed is None

    def test_without_points(self):
        frontier = frontier_of(np.ones((1, 2, 2, 2)))
        empty = Frontier(
            *(v[:0] for v in (frontier.iterate, *_columns(frontier))), [0, 1], frontier.last
        )
        for certify in (None, 0.05):
            held = held_of(empty, np.zeros((0, 2, 2, 2)))
            choice = choose(empty, held, RATE, 0.8, certify=certify)
            assert choice.point is frontier.last
        assert "none to test" in str(choice.guarantee)

    @pytest.mark.parametrize("n_groups", [2, 3])
    def test_a_certificate_is_wrong_at_most_delta(self, n_groups):
        # Points of known rates, the truth of each a little below or above 0.8.
        rng = np.random.default_rng(2)
        ratio, delta, n, runs = np.linspace(0.99, 0.7, 40), 0.2, 600, 1500
        high = np.full(40, 0.5)
        p = np.linspace(ratio * high, high, n_groups, axis=1)
        fitted = np.zeros((40, n_groups, 2, 2))
        fitted[:, :, 0, 1], fitted[:, :, 0, 0] = p * n, (1 - p) * n
        # Fixed beforehand: accuracy rises along the line.
        fitted[:, :, 1, 1] = np.linspace(1.8 * n, 2 * n, 40)[:, None]
        fitted[:, :, 1, 0] = 2 * n - fitted[:, :, 1, 1]
        rate = RATES["false_positive_rate"]
        frontier = frontier_of(fitted, rate)
        truth = np.sort(ratio)
        p = p[np.argsort(ratio)]
        wrong = certified = naive = 0
        for _ in range(runs):
            counts = frontier.counts.copy()
            # One draw of people for all points, so that neighbours err together.
            u = rng.random((n, n_groups))
            hits = (u < p[:, None]).sum(axis=1)
            counts[:, :, 0, 1], counts[:, :, 0, 0] = hits, n - hits
            held = held_of(frontier, counts, rate, delta)
            choice = choose(frontier, held, rate, 0.8, certify=delta)
            certified += choice.point.feasible
            wrong += choice.point.feasible and truth[choice.point.iterate] < 0.8
            naive += truth[choose(frontier, held, rate, 0.8).point.iterate] < 0.8
        assert certified > 0.8 * runs
        assert wrong <= delta * runs
        assert naive > delta * runs  # what is asked for is not easy


def _columns(frontier):
    return frontier.cut, frontier.accuracy, frontier.rate, frontier.counts


class TestRows:
    @given(st.integers(0, 50), st.sampled_from([0.1, 0.3, 0.5, 0.99]))
    def test_split(self, seed, share):
        random = np.random.RandomState(seed)
        strata = np.sort(random.randint(0, 4, 200))
        kept, held = split_rows(strata, share, random)
        assert sorted([*kept, *held]) == list(range(200))
        for s in range(4):
            size, n = (strata == s).sum(), (strata[held] == s).sum()
            assert n == np.clip(round(share * size), 1, size - 1)

    def test_every_row_is_as_likely_to_be_held_out(self):
        random, strata = np.random.RandomState(0), np.repeat([0, 1], [10, 30])
        hits = np.bincount(
            np.concatenate([split_rows(strata, 0.3, random)[1] for _ in range(2000)]), minlength=40
        )
        assert abs(hits / 2000 - 0.3).max() < 0.05

    @given(st.integers(0, 50), st.integers(2, 7))
    def test_folds(self, seed, n_folds):
        random = np.random.RandomState(seed)
        strata = random.randint(0, 4, 200)
        parts = split_folds(strata, n_folds, random)
        assert len(parts) == n_folds
        np.testing.assert_array_equal(np.sort(np.concatenate([b for _, b in parts])), range(200))
        for a, b in parts:
            assert sorted([*a, *b]) == list(range(200))
        assert np.ptp([len(b) for _, b in parts]) <= 1
        for s in range(4):
            assert np.ptp([(strata[b] == s).sum() for _, b in parts]) <= 1


@pytest.fixture(scope="module")
def data():
    return make_problem(n=1500)


@pytest.fixture(scope="module")
def models(data):
    return {name: fit(*data, selection=name) for name in ("train", *UNSEEN)}


class TestClassifier:
    def test_train_is_what_it_was(self, data, models):
        model = models["train"]
        assert (model.held_out_, model.guarantee_) == (None, None)
        assert model.point_[:4] == model.frontier_.select(0.6)[:4]
        assert (model.rate_, model.accuracy_) == (model.point_.rate, model.point_.accuracy)
        again = FairClassifier(tau=0.6).fit(data[0], data[1], sensitive_features=data[2])
        np.testing.assert_array_equal(again.coef_, model.coef_)
        np.testing.assert_array_equal(again.intercept_, model.intercept_)

    @pytest.mark.parametrize("name", ["holdout", "certified"])
    @pytest.mark.parametrize("notion", NOTION_NAMES)
    @pytest.mark.parametrize("layout", ["dense", "csr"])
    def test_held_out_counts_are_those_of_predictions(self, data, name, notion, layout):
        X, y, z = data
        X = as_layout(X, layout)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            model = fit(X, y, z, selection=name, notion=notion, max_iter=40)
        held = model.held_out_
        points = held.points
        strata = z * 2 + y if name == "holdout" else z
        kept, out = split_rows(strata, model.holdout, np.random.RandomState(0))
        assert (held.n_rows, held.n_fitted) == (len(out), len(kept))
        reference = FairClassifier(notion=notion, tau=1e-6, max_iter=40).fit(
            X[kept], y[kept], sensitive_features=z[kept]
        )
        np.testing.assert_array_equal(model.frontier_.counts, reference.frontier_.counts)
        for i in range(0, len(points), 40):
            w = model.trajectory_.iterates[points.iterate[i]]
            predicted = X[out] @ w[:-1] + w[-1] > points.cut[i]
            _, counts = group_counts(y[out], predicted, sensitive_features=z[out])
            np.testing.assert_array_equal(counts, held.counts[i])
        _, counts = group_counts(y[out], model.predict(X[out]), sensitive_features=z[out])
        assert model.rate_ == pytest.approx(float(model._rate.ratio(counts)))
        assert model.accuracy_ == pytest.approx(np.mean(model.predict(X[out]) == y[out]))
        assert len(held.to_frame()) == len(points) == len(held.bound)
        assert (points is model.frontier_) == (name == "holdout")

    def test_out_of_fold_counts(self, data):
        X, y, z = data
        model = fit(X, y, z, selection="crossfit", cv=3)
        splits = split_folds(z * 2 + y, 3, np.random.RandomState(0))
        by_hand = fit(X, y, z, selection="crossfit", cv=splits)
        np.testing.assert_array_equal(by_hand.held_out_.counts, model.held_out_.counts)
        everything = FairClassifier(tau=0.6).fit(X, y, sensitive_features=z)
        np.testing.assert_array_equal(model.frontier_.counts, everything.frontier_.counts)
        parts = [
            FairClassifier().fit(X[kept], y[kept], sensitive_features=z[kept]) for kept, _ in splits
        ]
        for i in range(0, len(model.frontier_), 60):
            pooled = 0
            for (_, out), part in zip(splits, parts, strict=True):
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", FairnessWarning)
                    there = part.at(model.frontier_.rate[i])
                predicted = there.predict(X[out])
                pooled = pooled + group_counts(y[out], predicted, sensitive_features=z[out])[1]
            np.testing.assert_array_equal(pooled, model.held_out_.counts[i])
        assert model.held_out_.n_rows == len(y)
        assert np.isnan(model.held_out_.bound).all()

    @pytest.mark.parametrize("name", UNSEEN)
    @pytest.mark.parametrize("tau", [0.3, 0.6, 0.75, 0.9, 0.999])
    def test_at_is_a_fit_with_the_same_seed(self, data, models, name, tau):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            moved, fresh = models[name].at(tau), fit(*data, selection=name, tau=tau)
        np.testing.assert_array_equal(moved.coef_, fresh.coef_)
        np.testing.assert_array_equal(moved.intercept_, fresh.intercept_)
        assert (moved.rate_, moved.accuracy_) == (fresh.rate_, fresh.accuracy_)
        assert moved.guarantee_ == fresh.guarantee_
        assert moved.feasible_ == fresh.feasible_
        assert models[name].tau == 0.6
        assert moved.held_out_ is models[name].held_out_

    def test_feasible_means_what_it_says(self, models):
        for name in ("holdout", "crossfit"):
            assert models[name].feasible_ == (models[name].rate_ >= 0.6)
        certified = models["certified"]
        assert certified.feasible_
        assert certified.guarantee_.bound >= 0.6
        assert certified.rate_ > certified.guarantee_.bound

    def test_random_state(self, data):
        a, b = (fit(*data, selection="holdout", random_state=s) for s in (1, 1))
        np.testing.assert_array_equal(a.coef_, b.coef_)
        other = fit(*data, selection="holdout", random_state=2)
        assert not np.array_equal(a.coef_, other.coef_)
        assert other.held_out_.n_rows == a.held_out_.n_rows

    @pytest.mark.parametrize("name", UNSEEN)
    def test_noise_column(self, data, name):
        X, y, z = data
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            model = fit(X, y, z, selection=name, extra_column="noise", tau=0.4)
        assert np.isfinite(model.noise_coef_)
        if name == "holdout":
            random = np.random.RandomState(0)
            noise = random.uniform(size=len(y))
            _, out = split_rows(z * 2 + y, 0.5, random)
            scores = X @ model.coef_[0] + model.intercept_[0] + model.noise_coef_ * noise
            _, counts = group_counts(y[out], scores[out] > 0, sensitive_features=z[out])
            assert float(RATE.ratio(counts)) == model.rate_

    @pytest.mark.parametrize("name", UNSEEN)
    def test_groups_from_anywhere(self, data, models, name):
        X, y, z = data
        frame = pd.DataFrame(X, columns=[*"abcde"]).assign(sex=np.array(["f", "m"])[z])
        params = {"selection": name, "tau": 0.6, "random_state": 0}
        by_name = FairClassifier(sensitive_feature="sex", **params).fit(frame, y)
        np.testing.assert_allclose(by_name.coef_[0, :-1], models[name].coef_[0], rtol=1e-6)
        table = np.column_stack([X, z])
        by_function = FairClassifier(sensitive_feature=lambda X: X[:, 5], **params)
        assert by_function.fit(table, y).held_out_.n_rows == models[name].held_out_.n_rows

    def test_search(self, data):
        X, y, z = data
        table = np.column_stack([X[:600], z[:600]])
        model = FairClassifier(sensitive_feature=5, selection="holdout", tau=0.3, random_state=0)
        search = GridSearchCV(model, {"holdout": [0.2, 0.4]}, cv=2).fit(table, y[:600])
        assert np.isfinite(search.best_score_)

    def test_clone_and_pickle(self, data, models):
        model = models["certified"]
        copy = clone(model)
        assert copy.get_params() == model.get_params()
        assert not hasattr(copy, "guarantee_")
        loaded = pickle.loads(pickle.dumps(model))
        assert loaded.guarantee_ == model.guarantee_
        np.testing.assert_array_equal(loaded.at(0.7).coef_, model.at(0.7).coef_)
        assert "selection='certified'" in repr(model)

    def test_at_goes_by_the_fit_not_by_later_parameters(self, data, models):
        model = clone(models["holdout"]).fit(data[0], data[1], sensitive_features=data[2])
        expected = model.at(0.7)
        model.set_params(selection="certified", delta=0.5)
        assert model.at(0.7).guarantee_ is None
        assert model.at(0.7).rate_ == expected.rate_

    def test_refit_with_another_selection_forgets(self, data):
        model = fit(*data, selection="certified")
        model.set_params(selection="train").fit(data[0], data[1], sensitive_features=data[2])
        assert (model.held_out_, model.guarantee_) == (None, None)
        assert model.rate_ == model.point_.rate

    def test_rows_that_are_alike(self):
        X, y, z = make_problem(n=2000, n_features=3)
        X = np.round(X).clip(-1, 2)
        model = fit(X, y, z, selection="holdout", tau=0.5)
        assert model.held_out_.counts[0].sum() == model.held_out_.n_rows
        assert abs(model.held_out_.n_rows - 1000) <= 2


class TestWeights:
    @pytest.mark.parametrize("name", ["holdout", "crossfit"])
    def test_counts_are_weighted(self, data, name):
        X, y, z = data
        weight = np.random.default_rng(0).uniform(0.5, 2.5, len(y))
        model = fit(X, y, z, sample_weight=weight, selection=name, tau=0.4)
        total = weight.sum()
        if name == "holdout":
            _, out = split_rows(z * 2 + y, 0.5, np.random.RandomState(0))
            total = weight[out].sum()
        np.testing.assert_allclose(model.held_out_.counts.sum(axis=(1, 2, 3)), total)
        assert np.isnan(model.held_out_.bound).all()

    def test_certificates_are_for_unweighted_rows(self, data):
        weight = np.random.default_rng(0).uniform(0.5, 2.5, len(data[1]))
        with pytest.raises(ValueError, match=r"unweighted rows.*selection='holdout'"):
            fit(*data, sample_weight=weight, selection="certified")

    @pytest.mark.parametrize("weight", [0.1, 1.0, 3.0])
    def test_weights_that_are_all_alike_are_none(self, data, models, weight):
        model = fit(*data, sample_weight=np.full(len(data[1]), weight), selection="certified")
        expected = models["certified"].guarantee_
        assert model.guarantee_.n_rows == expected.n_rows
        counts = model.held_out_.counts
        np.testing.assert_array_equal(counts, counts.round())
        assert counts[0].sum() == expected.n_rows

    def test_rows_of_zero_weight_are_not_there(self, data):
        X, y, z = data
        weight = (np.arange(len(y)) % 3 > 0).astype(float)
        model = fit(X, y, z, sample_weight=weight, selection="certified", tau=0.4)
        kept = weight > 0
        expected = fit(X[kept], y[kept], z[kept], selection="certified", tau=0.4)
        assert model.guarantee_ == expected.guarantee_
        np.testing.assert_array_equal(model.coef_, expected.coef_)


class TestWhenThingsGoWrong:
    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"selection": "validation"}, "certified"),
            ({"holdout": 0.0}, "holdout"),
            ({"holdout": 1.0}, "holdout"),
            ({"cv": 1}, "cv"),
            ({"delta": 0}, "delta"),
            ({"delta": 1.0}, "delta"),
        ],
        ids=str,
    )
    def test_parameters(self, data, params, message):
        with pytest.raises(ValueError, match=message):
            fit(*data, **params)

    @pytest.mark.parametrize("name", UNSEEN)
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_a_single_row_of_a_kind(self, name):
        X, y, z = make_problem(n=60)
        y = np.where(z == 0, 0, y)
        y[np.flatnonzero(z == 0)[0]] = 1
        model = FairClassifier(selection=name, random_state=0).fit(X, y, sensitive_features=z)
        if name == "holdout":
            assert model.held_out_.counts[:, 0, 1].sum() == 0  # it was fitted to

    def test_a_group_without_the_label_that_a_rate_is_about(self):
        X, y, z = make_problem(n=200)
        y = np.where(z == 0, 0, y)
        with pytest.warns(
            FairnessWarning, match=r"group 0 has no row with the label 1, so its true"
        ):
            FairClassifier("equal_opportunity").fit(X, y, sensitive_features=z)

    def test_targets_of_their_own_are_named(self, data):
        model = fit(
            *data, notion=["statistical_parity", "equal_opportunity"], tau=[0.3, 0.6],
            selection="certified", random_state=0,
        )  # fmt: skip
        text = str(model.guarantee_)
        assert "0.3 for the statistical rate, 0.6 for the true positive rate ratio" in text
        assert model.guarantee_.targets == (
            ("statistical rate", 0.3),
            ("true positive rate ratio", 0.6),
        )

    def test_no_label_left_to_fit_to(self):
        X, _, z = make_problem(n=60)
        y = np.zeros(60, dtype=int)
        y[np.flatnonzero(z == 0)[:2]] = y[np.flatnonzero(z == 1)[:2]] = 1
        with pytest.raises(ValueError, match=r"no row with label 1 is left to fit to"):
            fit(X, y, z, selection="certified", holdout=0.97)
        women, men = (np.flatnonzero(z == k) for k in (0, 1))
        with pytest.raises(ValueError, match=r"no row of group 0 is left to fit to"):
            fit(X, y, z, selection="crossfit", cv=[(men, women), (women, men)])
        with pytest.raises(ValueError, match=r"not among the 60 of positive weight"):
            fit(X, y, z, selection="crossfit", cv=[(women, [60]), (men, [1])])

    @pytest.mark.parametrize("name", UNSEEN)
    def test_an_error_leaves_an_earlier_fit_alone(self, data, name):
        X, y, z = data
        model = fit(X, y, z, selection=name)
        before = {k: v for k, v in vars(model).items() if k.endswith("_")}
        with pytest.raises(ValueError, match="y has one class"):
            model.fit(X, np.zeros(len(y)), sensitive_features=z)
        after = {k: v for k, v in vars(model).items() if k.endswith("_")}
        assert before.keys() == after.keys()
        assert all(after[k] is before[k] or after[k] == before[k] for k in before)

    def test_no_certificate_is_said_plainly(self):
        X, y, z = make_problem(n=200)
        with pytest.warns(
            FairnessWarning,
            match=r"no point can be certified for τ = 0.9 .* rows .*feasible_=False",
        ):
            model = fit(X, y, z, selection="certified", tau=0.9)
        assert not model.feasible_
        assert not model.guarantee_.certified
        order = order_of_tests(model.held_out_, model._rate, model.delta)
        assert model.point_.rate == model.held_out_.points.rate[order[0]]
        assert np.isfinite(model.predict_proba(X)).all()

    @pytest.mark.parametrize(
        ("name", "where"), [("holdout", "on the held-out rows"), ("crossfit", "out of fold")]
    )
    def test_what_is_not_reached_is_said(self, name, where):
        rng = np.random.default_rng(0)
        z = rng.integers(0, 2, 300)
        X = z[:, None] + 0.3 * rng.standard_normal((300, 1))
        y = np.where(rng.random(300) < 0.1, 1 - z, z)
        with pytest.warns(FairnessWarning, match=f"tau=1.0 was not reached {where}"):
            model = fit(X, y, z, selection=name, tau=1.0)
        assert not model.feasible_
        assert model.rate_ == np.nanmax(model.held_out_.rate)

    @pytest.mark.parametrize("name", UNSEEN)
    def test_nothing_eligible(self, name):
        X, y, z = np.zeros((40, 2)), np.arange(40) % 2, np.arange(40) // 20
        with pytest.warns(FairnessWarning, match="no point"):
            model = fit(X, y, z, selection=name)
        assert not model.feasible_
        # The last iterate says the same to everybody: yes, or no.
        assert np.isnan(model.rate_) or model.rate_ == 1
        assert 0 <= model.accuracy_ <= 1

    @pytest.mark.parametrize("name", ["holdout", "certified"])
    def test_interrupt_of_the_run(self, data, name, monkeypatch):
        interrupt_at(monkeypatch, 40)
        with pytest.warns(ConvergenceWarning, match="interrupted after"):
            model = fit(*data, selection=name, tau=0.2)
        assert not model.converged_
        assert model.feasible_
        assert model.rate_ >= 0.2

    def test_interrupt_of_a_fold(self, data, monkeypatch):
        # The fit to all rows and one fold get through.
        interrupt_at(monkeypatch, 520)
        with pytest.warns(ConvergenceWarning, match="interrupted after [12] of 5 folds"):
            model = fit(*data, selection="crossfit", tau=0.4)
        assert not model.converged_
        assert 0 < model.held_out_.n_rows < len(data[1])
        assert model.feasible_

    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_interrupt_before_any_fold(self, data, monkeypatch):
        interrupt_at(monkeypatch, 40)
        with pytest.warns(ConvergenceWarning, match="interrupted after"):
            model = fit(*data, selection="crossfit", tau=0.4)
        # What was not seen out of fold is not claimed.
        assert not model.feasible_
        assert model.held_out_.n_rows == 0
        assert np.isfinite(model.coef_).all()


def interrupt_at(monkeypatch, call):
    """Interrupt the fit at some evaluation of the oracle."""
    from evenhand.oracle import Oracle

    calls, original = [], Oracle.evaluate

    def evaluate(self, *args, **kwargs):
        calls.append(1)
        if len(calls) == call:
            raise KeyboardInterrupt
        return original(self, *args, **kwargs)

    monkeypatch.setattr(Oracle, "evaluate", evaluate)


def test_several_rates_cost_no_more_confidence():
    from evenhand.rates import EQUALIZED_ODDS

    counts = np.random.default_rng(0).integers(50, 100, (5, 3, 2, 2)).astype(float)
    each = [ratio_bound(counts, part, 0.05) for part in EQUALIZED_ODDS.parts]
    np.testing.assert_array_equal(ratio_bound(counts, EQUALIZED_ODDS, 0.05), np.minimum(*each))


@pytest.mark.parametrize("selection", ["holdout", "crossfit", "certified"])
def test_three_groups_and_a_small_one(selection):
    rng = np.random.default_rng(0)
    n = 3000
    z = rng.integers(0, 3, n)
    X = rng.standard_normal((n, 3)) + 0.5 * z[:, None] * [1, 0, 0]
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=n) > 0.5).astype(int)
    names = np.array(["a", "b", "c"], dtype=object)[z]
    names[:9] = "few"
    model = FairClassifier(tau=0.6, selection=selection, random_state=0)
    model.fit(X, y, sensitive_features=names)
    assert model.small_groups_ == {"few": 9}
    assert model.feasible_
    assert model.held_out_.counts.shape[1:] == (4, 2, 2)
    known = names != "few"
    _, counts = group_counts(y[known], model.predict(X)[known], sensitive_features=names[known])
    assert RATES["selection_rate"].ratio(counts) > 0.5
    assert model.at(0.5).accuracy_ >= model.accuracy_ - 0.02
