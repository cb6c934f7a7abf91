import itertools
import os
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pandas as pd
import pytest
from helpers import (
    NOTION_NAMES,
    PAPER_NOTIONS,
    READING_NAMES,
    ROOT,
    as_layout,
    fair,
    make_problem,
    raises,
    warns,
)
from scipy.sparse import csr_array, csr_matrix, issparse
from scipy.special import expit
from sklearn import config_context
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils._param_validation import InvalidParameterError
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_info

from evenhand import (
    FairBoostedClassifier,
    FairClassifier,
    FairnessWarning,
    Method,
    fair_pipeline,
    group_rates,
    statistical_rate,
)
from evenhand.core.metrics import group_counts
from evenhand.core.objectives import ACCURACY
from evenhand.core.rates import RATES
from evenhand.datasets import encoded_split, load_adult
from evenhand.frontier.choice import beats_constant
from evenhand.models.settings import FitWarning
from evenhand.models.training import many_columns


class LateDigits:
    """Groups for scikit-learn's checks, which know of none: late digits of the first column.

    They say nothing of the label, as the checks want accuracy. Above the median of the distinct
    values, because one of the checks repeats rows and expects the same result.
    """

    def __call__(self, X):
        column = X.tocsc()[:, [0]].toarray().ravel() if issparse(X) else np.asarray(X)[:, 0]
        digits = np.round(7.3 * column.astype(float), 6) % 1
        return digits > np.median(np.unique(digits))

    def __repr__(self):  # a function's has its address, and with it every test's name would vary
        return "late_digits"


@parametrize_with_checks([fair(sensitive_features=LateDigits())])
@pytest.mark.filterwarnings("ignore::evenhand.FavourableLabelWarning")
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
@pytest.mark.filterwarnings("ignore:standard deviations of the columns")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def adult():
    return encoded_split(load_adult(), random_state=0)


@pytest.fixture(scope="module")
def fitted(adult):
    return FairClassifier().fit(adult.X_train, adult.y_train, sensitive_features=adult.z_train)


def fit(X, y, z, **kwargs):
    """Fit by the paper's rule, on the rows fitted to, unless another is asked for."""
    params = {"confidence": None} | kwargs
    return fair(**params).fit(X, y, sensitive_features=z)


def frontier_counts(model, X, y, z):
    point = model.answers_.choose(model.target_.level).point
    _, counts = group_counts(y, model.predict(X), sensitive_features=z, pos_label=model.classes_[1])
    return point.counts, counts


class TestOnAdult:
    def test_meets_its_target_and_says_so(self, adult, fitted):
        predicted = fitted.predict(adult.X_train)
        rate = statistical_rate(adult.y_train, predicted, sensitive_features=adult.z_train)
        assert fitted.feasible_
        assert fitted.rate_ == rate >= 0.8
        assert fitted.accuracy_ == pytest.approx(np.mean(predicted == adult.y_train))
        assert fitted.score(adult.X_test, adult.y_test) > 0.82

    def test_frontier_begins_at_plain_logistic_regression(self, adult, fitted):
        plain = LogisticRegression(max_iter=1000).fit(adult.X_train, adult.y_train)
        found = fitted.at(1e-6).score(adult.X_train, adult.y_train)
        assert found >= plain.score(adult.X_train, adult.y_train) - 0.001
        rate = fitted.frontier_.rate
        assert rate[0] < 0.4
        below = np.append(rate[rate < 0.95], rate[rate >= 0.95][0])
        assert np.diff(below).max() <= 0.05

    @pytest.mark.parametrize("tau", [0.3, 0.6, 0.8, 0.9, 0.95, 0.99])
    def test_predict_reproduces_the_frontiers_counts(self, adult, fitted, tau):
        model = fitted.at(tau)
        expected, found = frontier_counts(model, adult.X_train, adult.y_train, adult.z_train)
        np.testing.assert_array_equal(found, expected)
        assert model.rate_ >= tau

    def test_at_leaves_the_original_alone(self, fitted):
        coef = fitted.coef_.copy()
        moved = fitted.at(0.95)
        assert (moved.target_.level, fitted.target_.level) == (0.95, 0.8)
        assert not np.array_equal(moved.coef_, coef) or moved.intercept_ != fitted.intercept_
        np.testing.assert_array_equal(fitted.coef_, coef)
        assert moved.frontier_ is fitted.frontier_
        back = moved.at(0.8)
        np.testing.assert_array_equal(back.coef_, coef)
        with raises("invalid_parameter", parameter=("tau", ...)):
            fitted.at(0.0)

    def test_same_result_bit_for_bit(self, adult, fitted):
        again = FairClassifier().fit(adult.X_train, adult.y_train, sensitive_features=adult.z_train)
        np.testing.assert_array_equal(again.coef_, fitted.coef_)
        np.testing.assert_array_equal(again.frontier_.cut, fitted.frontier_.cut)

    def test_trajectory(self, fitted):
        frame = fitted.trajectory_.to_frame()
        legs = frame["leg"].unique().tolist()
        assert legs == ["optimum", "from optimum"]
        assert (frame["leg"] == "from optimum").sum() == fitted.n_iter_ == fitted.method.max_iter
        assert np.isfinite(frame.drop(columns=["leg", "rate"])).all(axis=None)
        assert frame["loss_c"].iloc[0] > frame["loss_c"].iloc[-1]
        assert (frame["evaluations"].diff().dropna() > 0).all()
        assert (frame["seconds"].diff().dropna() > 0).all()
        assert frame.filter(regex="^n_").sum(axis=1).unique().tolist() == [31655]
        assert len(fitted.trajectory_.iterate_rows) == len(fitted.trajectory_.iterates)

    def test_stricter_targets_cost_accuracy_and_buy_rate_on_test(self, adult, fitted):
        rates, scores = [], []
        for tau in (0.4, 0.8, 0.95):
            model = fitted.at(tau)
            predicted = model.predict(adult.X_test)
            rates.append(statistical_rate(adult.y_test, predicted, sensitive_features=adult.z_test))
            scores.append(np.mean(predicted == adult.y_test))
        assert rates == sorted(rates)
        assert scores == sorted(scores, reverse=True)
        assert rates[-1] > 0.85
        assert scores[-1] > 0.82


def test_false_discovery_on_coarse_adult():
    split = encoded_split(load_adult("coarse"), random_state=0)
    model = fit(split.X_train, split.y_train, split.z_train, notion="false_discovery")
    predicted = model.predict(split.X_train)
    table = group_rates(split.y_train, predicted, sensitive_features=split.z_train)
    fdr = table["false_discovery_rate"]
    assert model.point_.feasible
    assert model.rate_ == pytest.approx(fdr.min() / fdr.max())
    assert model.rate_ >= 0.8
    assert (table["selection_rate"] >= 0.01).all()
    assert (fdr < 1 - split.y_train.groupby(split.z_train).mean()).all()
    plain = LogisticRegression(max_iter=1000).fit(split.X_train, split.y_train)
    plain_table = group_rates(
        split.y_train, plain.predict(split.X_train), sensitive_features=split.z_train
    )
    assert plain_table["selection_rate"].min() == 0  # why this data is not trivial


COMBINATIONS = list(itertools.product(PAPER_NOTIONS, READING_NAMES, ["gd", "agd", "agd_printed"]))


@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("update", ["normal", "modified"])
@pytest.mark.parametrize(("notion", "reading", "solver"), COMBINATIONS)
def test_every_combination_fits(notion, reading, solver, update):
    X, y, z = make_problem()
    model = fit(X, y, z, notion=notion, reading=reading, solver=solver, update=update, init="both")
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.intercept_).all()
    assert set(model.predict(X)) <= {0, 1}
    expected, found = frontier_counts(model, X, y, z)
    np.testing.assert_array_equal(found, expected)


@cache
def plain_fit(notion):
    return fit(*make_problem(n=1000), notion=notion, max_iter=50)


@pytest.mark.parametrize("notion", NOTION_NAMES)
@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_layout_and_precision(notion, layout, dtype):
    X, y, z = make_problem(n=1000)
    reference = plain_fit(notion)
    model = fit(as_layout(X.astype(dtype), layout), y, z, notion=notion, max_iter=50)
    tolerance = 1e-9 if dtype == np.float64 else 0.01
    assert model.accuracy_ == pytest.approx(reference.accuracy_, abs=tolerance)
    expected, found = frontier_counts(model, as_layout(X.astype(dtype), layout), y, z)
    np.testing.assert_array_equal(found, expected)


def test_float32_is_not_copied_to_float64(monkeypatch):
    seen = []
    from evenhand.models import training

    class Spy(training.Oracle):
        def __init__(self, X, *args, **kwargs):
            seen.append(X.dtype)
            super().__init__(X, *args, **kwargs)

    monkeypatch.setattr(training, "Oracle", Spy)
    X, y, z = make_problem(dtype=np.float32)
    fit(X, y, z, max_iter=5)
    fit(csr_array(X), y, z, max_iter=5)
    fit(X.astype(int), y, z, max_iter=5)
    assert seen == [np.float32, np.float32, np.float64]


@pytest.mark.parametrize(
    "labels", [("no", "yes"), (False, True), (-1, 1), (3, 7)], ids=lambda v: str(v)
)
@pytest.mark.parametrize("groups", [("f", "m"), (False, True), (0.5, 2.5)], ids=lambda v: str(v))
def test_labels_and_groups_of_any_type(labels, groups):
    X, y, z = make_problem()
    reference = fit(X, y, z)
    categories = pd.Series(np.array(groups)[z]).astype("category")
    model = fit(X, np.array(labels)[y], categories, pos_label=labels[1])
    np.testing.assert_array_equal(model.coef_, reference.coef_)
    assert model.classes_.tolist() == list(labels)
    assert model.groups_.tolist() == list(groups)
    assert set(model.predict(X)) == set(labels)


def test_decision_function_probabilities_and_intercept_agree(problem):
    X, y, z = problem
    model = fit(X, y, z)
    scores = model.decision_function(X)
    np.testing.assert_allclose(scores, X @ model.coef_[0] + model.intercept_[0])
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], expit(scores))
    np.testing.assert_allclose(model.predict_proba(X).sum(axis=1), 1)
    np.testing.assert_array_equal(model.predict(X), (scores > 0).astype(int))
    assert model.coef_.shape == (1, 5)
    assert model.intercept_.shape == (1,)


def test_cut_false_is_the_papers_thresholding(problem):
    X, y, z = problem
    model = fit(X, y, z, cut=False, tau=0.5)
    assert (model.frontier_.cut == 0).all()
    iterates = model.trajectory_.iterates
    candidates = []
    for w in iterates:
        predicted = X @ w[:-1] + w[-1] > 0
        candidates.append(
            (np.mean(predicted == y), statistical_rate(y, predicted, sensitive_features=z))
        )
    best = max(a for a, r in candidates if r >= 0.5)
    assert model.accuracy_ == pytest.approx(best)


@pytest.mark.parametrize("init", ["zero", "optimum", "both"])
def test_starts(problem, init):
    X, y, z = problem
    model = fit(X, y, z, init=init, max_iter=30, n_iterates=10, candidates="solver")
    legs = set(model.trajectory_.to_frame()["leg"])
    expected = {
        "optimum": {"optimum", "from optimum"},
        "zero": {"from zero"},
        "both": {"optimum", "from optimum", "from zero"},
    }
    assert legs == expected[init]
    assert len(model.trajectory_.iterates) == {"zero": 10, "both": 21}.get(init, 11)


def test_exactly_four_fifths_is_feasible():
    # 36 of 100 and 45 of 100
    X = np.repeat([1.0, -1.0, 1.0, -1.0], [45, 55, 36, 64])[:, None]
    model = fit(X, (X[:, 0] > 0).astype(int), np.repeat([0, 1], 100))
    assert (model.feasible_, model.rate_, model.accuracy_) == (True, 0.8, 1.0)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("notion", NOTION_NAMES)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_that_are_alike_are_merged(monkeypatch, notion, layout, weighted):
    from evenhand.models import training

    X, y, z = make_problem(n=2000, n_features=3)
    X = as_layout(np.round(X).clip(-1, 2), layout)
    weight = np.random.default_rng(0).integers(1, 4, 2000) / 2 if weighted else None
    seen = []

    class Spy(training.Oracle):
        def __init__(self, X, *args, **kwargs):
            seen.append(X.n_samples)
            super().__init__(X, *args, **kwargs)

    monkeypatch.setattr(training, "Oracle", Spy)

    def both():
        model = fair(notion=notion, tau=0.6, max_iter=40)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # where τ is out of reach
            return model.fit(X, y, sensitive_features=z, sample_weight=weight)

    merged = both()
    _, counts = group_counts(y, merged.predict(X), sensitive_features=z, sample_weight=weight)
    np.testing.assert_array_equal(counts, merged.answers_.choose(0.6).point.counts)
    monkeypatch.setattr(training, "merge_alike", lambda rows: rows)
    plain = both()
    assert seen[0] <= 4 * 4**3 < seen[1] == 2000
    # Rounding grows along a run; its beginning is the same.
    early, expected = (m.trajectory_.iterates[:15] for m in (merged, plain))
    np.testing.assert_allclose(early, expected, rtol=1e-5, atol=1e-6)


class TestNoise:
    def test_weight_is_apart_and_there_is_no_intercept(self, problem):
        X, y, z = problem
        model = fit(X, y, z, extra_column="noise", random_state=0)
        assert isinstance(model.noise_coef_, float)
        point = model.answers_.choose(0.8).point
        assert model.intercept_[0] == -point.cut
        assert model.noise_coef_ == model.trajectory_.iterates[point.iterate][-1]
        uncut = fit(X, y, z, extra_column="noise", random_state=0, cut=False, tau=0.3)
        assert uncut.intercept_[0] == 0

    def test_noise_is_drawn_from_random_state(self, problem):
        X, y, z = problem
        a, b = (fit(X, y, z, extra_column="noise", random_state=0) for _ in range(2))
        np.testing.assert_array_equal(a.decision_function(X), b.decision_function(X))
        noise = np.random.RandomState(0).uniform(size=len(X))
        expected = X @ a.coef_[0] + a.intercept_ + a.noise_coef_ * noise
        np.testing.assert_allclose(a.decision_function(X), expected)
        expected, found = frontier_counts(a, X, y, z)
        np.testing.assert_array_equal(found, expected)
        other = fit(X, y, z, extra_column="noise", random_state=1)
        assert other.noise_coef_ != a.noise_coef_

    def test_rows_of_zero_weight_have_their_noise_too(self, problem):
        X, y, z = problem
        weight = (np.arange(400) >= 200).astype(float)
        model = fair(extra_column="noise", random_state=0)
        model.fit(X, y, sensitive_features=z, sample_weight=weight)
        _, counts = group_counts(y, model.predict(X), sensitive_features=z, sample_weight=weight)
        np.testing.assert_array_equal(counts, model.answers_.choose(0.8).point.counts)
        model.set_params(method__extra_column="ones")
        assert np.isfinite(model.predict(X)).all()


class TestSensitiveFeature:
    frame_columns = ("a", "b", "c", "d", "e", "sex")

    def frame(self, values=("f", "m")):
        X, y, z = make_problem()
        frame = pd.DataFrame(X, columns=self.frame_columns[:-1])
        frame.insert(2, "sex", np.array(values)[z])
        return frame, y, z

    @pytest.mark.parametrize("values", [("f", "m"), (0, 1), (False, True)], ids=str)
    @pytest.mark.parametrize("where", ["sex", 2, -4])
    def test_column_is_group_and_not_input(self, values, where):
        frame, y, z = self.frame(values)
        reference = fit(frame.drop(columns="sex"), y, z)
        model = FairClassifier(sensitive_features=where, confidence=None).fit(frame, y)
        assert model.coef_[0, 2] == 0
        # X without the column has another memory layout, and so other rounding.
        np.testing.assert_allclose(np.delete(model.coef_[0], 2), reference.coef_[0], rtol=1e-9)
        np.testing.assert_array_equal(
            model.predict(frame), reference.predict(frame.drop(columns="sex"))
        )
        assert model.feature_names_in_.tolist() == list(frame)
        assert model.n_features_in_ == 6

    @pytest.mark.parametrize("kind", [np.array, csr_matrix, csr_array])
    def test_column_of_arrays_and_sparse(self, kind):
        X, y, z = make_problem()
        table = np.column_stack([z, X])
        model = FairClassifier(sensitive_features=0, confidence=None).fit(kind(table), y)
        reference = fit(X, y, z)
        np.testing.assert_allclose(model.coef_[0, 1:], reference.coef_[0], rtol=1e-6)
        assert model.coef_[0, 0] == 0
        np.testing.assert_array_equal(model.predict(kind(table)), reference.predict(X))

    def test_callable(self):
        X, y, _ = make_problem()
        model = FairClassifier(sensitive_features=lambda X: np.asarray(X)[:, 0] > 0.5).fit(X, y)
        reference = fit(X, y, X[:, 0] > 0.5, confidence=0.9)
        np.testing.assert_array_equal(model.coef_, reference.coef_)
        assert (model.coef_ != 0).all()

    def test_frames_of_other_libraries(self):
        frame, y, _ = self.frame()

        class Other:
            """What polars shows of itself: columns by name, rows by none."""

            columns, shape = list(frame), frame.shape

            def __getitem__(self, name):
                return frame[name].to_numpy()

            def __len__(self):
                return len(frame)

        reference = FairClassifier(sensitive_features="sex").fit(frame, y)
        model = FairClassifier(sensitive_features="sex").fit(Other(), y)
        np.testing.assert_array_equal(model.coef_, reference.coef_)
        np.testing.assert_array_equal(model.predict(Other()), reference.predict(frame))

    def test_the_users_table_is_left_alone(self):
        frame, y, _ = self.frame()
        before = frame.copy()
        FairClassifier(sensitive_features="sex").fit(frame, y).predict(frame)
        pd.testing.assert_frame_equal(frame, before)

    def test_pipeline_and_grid_search(self):
        frame, y, _ = self.frame((0, 1))
        scaler = StandardScaler().set_output(transform="pandas")
        pipe = make_pipeline(scaler, FairClassifier(sensitive_features="sex"))
        search = GridSearchCV(pipe, {"fairclassifier__method__mu": [0.1, 1.0]}, cv=3).fit(frame, y)
        assert 0.5 < search.best_score_ < 1
        dropped = make_pipeline(StandardScaler(), FairClassifier(sensitive_features="sex"))
        with raises("no_column_names", where=("sensitive_features", "sex")):
            dropped.fit(frame, y)
        by_index = make_pipeline(StandardScaler(), FairClassifier(sensitive_features=2))
        assert by_index.fit(frame, y).score(frame, y) > 0.5

    def test_metadata_routing(self):
        X, y, z = make_problem()
        with config_context(enable_metadata_routing=True):
            model = FairClassifier().set_fit_request(sensitive_features=True)
            pipe = make_pipeline(StandardScaler(), model)
            pipe.fit(X, y, sensitive_features=z)
            scores = cross_val_score(pipe, X, y, params={"sensitive_features": z}, cv=3)
        assert np.isfinite(scores).all()


class TestWeights:
    def test_zero_weight_rows_are_as_if_not_there(self):
        X, y, z = make_problem()
        weight = np.random.default_rng(0).integers(0, 3, 400).astype(float)
        kept = weight > 0
        a = FairClassifier().fit(X, y, sensitive_features=z, sample_weight=weight)
        b = FairClassifier().fit(
            X[kept], y[kept], sensitive_features=z[kept], sample_weight=weight[kept]
        )
        np.testing.assert_array_equal(a.coef_, b.coef_)
        np.testing.assert_array_equal(a.intercept_, b.intercept_)

    def test_groups_of_zero_weight_do_not_count(self):
        X, y, z = make_problem()
        groups = np.array(["a", "b"], dtype=object)[z]
        groups[:10] = "c"
        groups[10:20] = None
        weight = np.ones(400)
        weight[:20] = 0
        model = FairClassifier().fit(X, y, sensitive_features=groups, sample_weight=weight)
        assert model.groups_.tolist() == ["a", "b"]

    def test_a_constant_weight_changes_nothing(self):
        X, y, z = make_problem()
        plain = fit(X, y, z)
        third = FairClassifier().fit(X, y, sensitive_features=z, sample_weight=np.full(400, 1 / 3))
        assert len(third.frontier_) == len(plain.frontier_)
        np.testing.assert_allclose(third.frontier_.rate, plain.frontier_.rate, rtol=1e-9)
        np.testing.assert_array_equal(third.frontier_.iterate, plain.frontier_.iterate)

    def test_rates_are_weighted(self):
        X, y, z = make_problem()
        weight = np.where(z == 1, 3.0, 0.5) * np.random.default_rng(0).uniform(0.5, 1.5, 400)
        model = FairClassifier().fit(X, y, sensitive_features=z, sample_weight=weight)
        _, counts = group_counts(y, model.predict(X), sensitive_features=z, sample_weight=weight)
        assert model.rate_ == pytest.approx(float(RATES["selection_rate"].ratio(counts)))
        np.testing.assert_allclose(counts, model.answers_.choose(0.8).point.counts)


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"X": np.nan}, "NaN"),
            ({"X": np.inf}, "infinity"),
            ({"X": 1e200}, r"up to 1e\+200.*StandardScaler"),
            ({"y": np.zeros(400)}, r"y has one class, 0.0; a classifier needs two classes"),
            ({"y": np.linspace(0, 1, 400)}, "Unknown label type: continuous"),
            ({"z": np.zeros(400)}, r"sensitive_features has 1 group: 0.0; at least two are"),
            ({"z": np.arange(400) % 25}, r"number with 25 distinct values; say with bins"),
            ({"z": np.arange(400) % 19}, r"fewer than two groups have min_group_size=30"),
            ({"z": np.array([None] * 400)}, "400 missing values"),
            ({"z": ["a", float("nan")] * 200}, "200 missing values"),
            ({"y": ["a", float("nan")] * 200}, "y has 200 missing values"),
            ({"y": np.array(["a", None] * 200, dtype=object)}, "y has 200 missing values"),
            ({"y": pd.Series(["a", pd.NA] * 200, dtype="string")}, "y has 200 missing values"),
            ({"z": (v for v in range(400))}, "sensitive_features is a generator"),
            ({"z": "ab" * 200, "sample_weight": np.arange(400.0)}, "sensitive_features is a str"),
            ({"z": csr_matrix(np.ones((400, 1)))}, "sensitive_features is a csr_matrix"),
            ({"z": np.zeros((400, 2, 2))}, "sensitive_features has 3 dimensions"),
            ({"sample_weight": np.full(400, 1e307)}, "divide all weights"),
            ({"z": np.where(np.arange(400) == 3, np.nan, np.arange(400) % 2)}, "1 missing value"),
            ({"y": np.zeros(399)}, "inconsistent numbers of samples"),
            ({"sample_weight": -np.ones(400)}, "[Nn]egative"),
            ({"sample_weight": np.full(400, np.nan)}, "NaN"),
            ({"sample_weight": np.ones(399)}, "sample_weight.shape"),
            ({"sample_weight": "one_class"}, "among the rows of positive weight"),
            ({"sample_weight": "one_group"}, "1 group among the rows of positive weight"),
        ],
    )
    def test_data(self, change, message):
        X, y, z = make_problem()
        args = {"X": X, "y": y, "z": z, "sample_weight": None} | change
        if np.isscalar(args["X"]):
            args["X"] = X.copy()
            args["X"][3, 1] = change["X"]
        for name, column in [("one_class", y), ("one_group", z)]:
            if isinstance(args["sample_weight"], str) and args["sample_weight"] == name:
                args["sample_weight"] = (column == 1).astype(float)
        with pytest.raises(ValueError, match=message):
            FairClassifier().fit(
                args["X"],
                args["y"],
                sensitive_features=args["z"],
                sample_weight=args["sample_weight"],
            )

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("tau", 0.0),
            ("tau", 1.1),
            ("tau", "high"),
            ("reading", "loose"),
            ("solver", "newton"),
            ("update", "none"),
            ("adversary_sign", 0),
            ("init", "random"),
            ("max_iter", 0),
            ("step", -1.0),
            ("min_share", 0.5),
            ("degree", 0),
            ("extra_column", "twos"),
            ("selection", "lucky"),
        ],
    )
    def test_parameters(self, name, value):
        X, y, z = make_problem()
        with raises("invalid_parameter", parameter=(name, ...), value=value) as error:
            fit(X, y, z, **{name: value})
        assert isinstance(error.value, InvalidParameterError)
        assert str(error.value).startswith(f"The {name!r} parameter of ")

    def test_a_notion_that_does_not_exist(self, problem):
        with pytest.raises(ValueError, match="statistical_parity"):
            fit(*problem, notion="equal_vibes")

    @pytest.mark.parametrize("X", [np.zeros((0, 3)), pd.DataFrame({"a": []}), np.zeros((5, 0))])
    def test_empty_table(self, X):
        with pytest.raises(ValueError, match=r"0 (sample|feature)"):
            fit(X, np.zeros(len(X)), np.zeros(len(X)))

    @pytest.mark.parametrize(
        ("where", "message"),
        [
            ("a", "50 distinct values; say with bins"),
            (0, "50 distinct values; say with bins"),
        ],
    )
    def test_sensitive_features(self, where, message):
        rng = np.random.default_rng(0)
        frame = pd.DataFrame(rng.standard_normal((50, 3)), columns=list("abc"))
        with pytest.raises(ValueError, match=message):
            FairClassifier(sensitive_features=where).fit(frame, rng.integers(0, 2, 50))

    def test_other_mistakes(self):
        X, y, z = make_problem()
        with raises("no_column_names", where=("sensitive_features", "sex")):
            FairClassifier(sensitive_features="sex").fit(X, y)
        with raises("lost_sensitive_column", column="sex", columns="'a', 'b', 'c', 'd', 'e'"):
            FairClassifier(sensitive_features="sex").fit(pd.DataFrame(X, columns=[*"abcde"]), y)
        with raises("unknown_column_index", where=("sensitive_features", 7), n=5):
            FairClassifier(sensitive_features=7).fit(X, y)
        with raises("no_groups"):
            FairClassifier().fit(X, y)
        with raises("unequal_lengths", n=399, n_rows=400):
            fit(X, y, z[1:])
        with raises("zero_weights"):
            FairClassifier().fit(X, y, sensitive_features=z, sample_weight=np.zeros(400))
        with raises("only_sensitive_column"):
            FairClassifier(sensitive_features=0).fit(z[:, None], y)
        with pytest.raises(NotFittedError):
            FairClassifier().at(0.9)
        with pytest.raises(ValueError, match="features"):
            fit(X, y, z).predict(X[:, :3])

    def test_scales_are_named_not_changed(self):
        X, y, z = make_problem()
        frame = pd.DataFrame(X * [1, 1, 1, 1e4, 1], columns=["a", "b", "c", "income", "e"])
        with warns("unlike_scales", columns=["income"], size="large"):
            fit(frame, y, z, metric="none")
        with warns("unlike_scales", columns=[1], size="small"):
            fit(X * [1, 1e-4, 1, 1, 1], y, z, metric="none")
        with warnings.catch_warnings():  # in the default coordinates scales do not matter
            warnings.simplefilter("error")
            fit(frame, y, z)

    def test_rare_indicators_and_constants_are_no_reason_to_warn(self):
        X, y, z = make_problem()
        X[:, 3] = np.arange(400) == 5
        X[:, 4] = 3.0
        for layout in ("dense", "csr"):
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                fit(as_layout(X, layout), y, z)


class TestWhenThingsGoWrong:
    @pytest.mark.parametrize("step", [1e2, 1e10, 1e300])
    @pytest.mark.parametrize("init", ["zero", "optimum"])
    @pytest.mark.parametrize("solver", ["gd", "agd", "agd_printed"])
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    def test_never_nan(self, problem, solver, init, step):
        model = fit(*problem, step=step, init=init, solver=solver)
        assert np.isfinite(model.coef_).all()
        assert np.isfinite(model.decision_function(problem[0])).all()

    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_divergence_is_said(self, problem):
        with warns("not_converged", trouble="diverged") as caught:
            model = fit(*problem, step=1e300, solver="gd")
        assert {w.category for w in caught} == {FitWarning}
        assert issubclass(FitWarning, ConvergenceWarning)
        assert not model.converged_
        plain = fit(*problem).at(1e-6)  # the optimum is still on the frontier
        assert model.at(1e-6).accuracy_ == pytest.approx(plain.accuracy_, abs=0.02)

    def test_infeasible_is_said(self):
        rng = np.random.default_rng(0)
        z = rng.integers(0, 2, 300)
        X = z[:, None] + 0.3 * rng.standard_normal((300, 1))
        y = np.where(rng.random(300) < 0.1, 1 - z, z)
        with warns("target_missed", tau=("tau", 0.99), nearest="highest_rate"):
            model = fit(X, y, z, tau=0.99)
        assert not model.feasible_
        assert model.rate_ == model.frontier_.rate[-1]
        easier = model.at(model.rate_)
        assert easier.feasible_

    def test_nothing_eligible_is_said(self):
        X, y, z = np.zeros((40, 2)), np.arange(40) % 2, np.arange(40) // 20
        with warns("target_missed", nearest="no_point") as caught:
            model = fit(X, y, z)
        assert "no point has between 1% and 99%" in str(caught[0].message)
        assert not model.feasible_
        assert np.isnan(model.rate_)
        assert np.isfinite(model.predict_proba(X)).all()

    def test_interrupt_keeps_the_best_so_far(self, problem):
        X, y, z = (np.tile(v, (50, 1)) if v.ndim == 2 else np.tile(v, 50) for v in problem)
        # A parent that runs in the background may have told us to ignore interrupts.
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
        timer.start()
        try:
            with warns("not_converged", trouble="interrupted_run"):
                model = fit(X, y, z, max_iter=20_000, tau=0.5)
        finally:
            timer.join()
            signal.signal(signal.SIGINT, before)
        assert not model.converged_
        assert np.isfinite(model.coef_).all()
        assert model.score(X, y) > 0.5

    def test_interrupt_during_the_sweep(self, problem, monkeypatch):
        from evenhand.frontier import sweep as frontier

        calls = []

        def interrupted(*args):
            calls.append(args)
            if len(calls) == 20:
                raise KeyboardInterrupt
            return original(*args)

        original = frontier.one_cut
        monkeypatch.setattr(frontier, "one_cut", interrupted)
        with warns("not_converged", trouble="interrupted_sweep"):
            model = fit(*problem, tau=0.3)
        assert not model.converged_
        assert not model.frontier_.complete
        assert len(model.frontier_) > 0
        assert np.isfinite(model.coef_).all()

    def test_interrupt_before_anything_is_swept(self, problem, monkeypatch):
        from evenhand.frontier import sweep as frontier

        def interrupted(*args):
            raise KeyboardInterrupt

        monkeypatch.setattr(frontier, "one_cut", interrupted)
        with warns("not_converged", trouble="interrupted_sweep"):
            model = fit(*problem, tau=0.1)
        assert model.feasible_
        assert model.rate_ >= 0.1

    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    @pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
    @pytest.mark.parametrize("degree", [5, 10])
    @pytest.mark.parametrize("solver", ["gd", "agd", "agd_printed"])
    def test_overflowing_adversary(self, problem, solver, degree):
        X, y, z = problem
        for scale, step, init in [(1, 0.1, "zero"), (1, 0.1, "optimum"), (100, None, "optimum")]:
            model = fit(scale * X, y, z, degree=degree, step=step, init=init, solver=solver)
            assert np.isfinite(model.coef_).all()

    def test_extreme_parameters_are_quiet(self, problem):
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", UserWarning)
            for params in (
                {"alpha": 1e-300, "solver": "agd_printed"},
                {"alpha": 0.0},
                {"alpha": 100.0, "mu": 1e300},
                {"l2": 1e10},
            ):
                assert np.isfinite(fit(*problem, **params).coef_).all()

    def test_unreached_optimum_is_said(self):
        X, y, z = make_problem()
        with warns("not_converged", trouble="optimum_not_reached"):
            fit(X + 1e6, y, z, metric="none")

    def test_overlapping_fits_leave_blas_alone(self):
        X, y, z = make_problem(n=2000)

        def threads():
            return [pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"]

        before = threads()
        with ThreadPoolExecutor(3) as pool:
            jobs = [pool.submit(fit, X, y, z, max_iter=5 + k % 4) for k in range(12)]
            reference = fit(X, y, z, max_iter=5)
            np.testing.assert_array_equal(jobs[0].result().coef_, reference.coef_)
        assert threads() == before

    def test_progress_bar(self):
        code = (
            "from helpers import fair, make_problem\n"
            "X, y, z = make_problem()\n"
            "fair(verbose=1, max_iter=20).fit(X, y, sensitive_features=z)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code],
            capture_output=True,
            text=True,
            check=True,
            cwd=ROOT / "tests",
            env=os.environ | {"PYTHONIOENCODING": "utf-8"},
        )
        assert done.stdout == ""
        for word in ("20/20", "loss", "accuracy", "rate"):
            assert word in done.stderr


def test_clone_refit_pickle_and_html(problem):
    X, y, z = problem
    model = fit(X, y, z, tau=0.7)
    copy = clone(model)
    assert copy.tau == 0.7
    assert not hasattr(copy, "coef_")
    again = model.coef_.copy()
    np.testing.assert_array_equal(model.fit(X, y, sensitive_features=z).coef_, again)
    loaded = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
    np.testing.assert_array_equal(loaded.at(0.9).coef_, model.at(0.9).coef_)
    assert "FairClassifier" in model._repr_html_()
    assert repr(model) == "FairClassifier(confidence=None, tau=0.7)"


class TestSurveyWeights:
    def test_their_unit_does_not_matter(self, problem):
        X, y, z = problem
        weight = np.random.default_rng(0).uniform(0.5, 3, len(y))
        first, second = (
            fair(survey_weights=True, max_iter=60).fit(
                X, y, sensitive_features=z, sample_weight=weight * unit
            )
            for unit in (1.0, 1500.0)
        )
        np.testing.assert_allclose(first.frontier_.rate, second.frontier_.rate)
        np.testing.assert_allclose(first.coef_, second.coef_, atol=1e-8)

    def test_alike_they_are_none(self, problem):
        X, y, z = problem
        weighted = fair(survey_weights=True, max_iter=60).fit(
            X, y, sensitive_features=z, sample_weight=np.full(len(y), 1500.0)
        )
        plain = fit(X, y, z, max_iter=60)
        np.testing.assert_allclose(weighted.frontier_.accuracy, plain.frontier_.accuracy)
        assert weighted.frontier_.n_sure == plain.frontier_.n_sure
        repeated = fair(max_iter=60).fit(
            X, y, sensitive_features=z, sample_weight=np.full(len(y), 1500.0)
        )
        # As many rows as that leave nothing to luck.
        assert len(repeated.frontier_) > len(plain.frontier_)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (pd.Categorical(["a", 1] * 20), "y mixes types that cannot be ordered"),
        (["a", 1] * 20, "y mixes types that cannot be ordered"),
        (np.array([1, False] * 20, dtype=object), "y mixes types"),
        ([(1, 2), (3,)] * 20, "one label per row"),
        (["a", "\ud800"] * 20, "half a character"),
    ],
)
@pytest.mark.parametrize("door", ["classifier", "pipeline", "boosted"])
def test_labels_that_are_none(labels, said, door):
    table = pd.DataFrame({"x": np.arange(40.0), "g": ["a", "b", "b", "a"] * 10})
    model, params = fair_pipeline("g", pos_label="a"), {}
    if door != "pipeline":
        model = {"classifier": FairClassifier, "boosted": FairBoostedClassifier}[door](
            pos_label="a"
        )
        params, table = {"sensitive_features": table["g"]}, table[["x"]]
    with pytest.raises(ValueError, match=said):
        model.fit(table, labels, **params)


def test_fewer_rows_than_folds():
    X, y, z = np.arange(8.0).reshape(4, 2), [1, 1, 0, 0], [0, 0, 1, 1]
    with raises("empty_fold", cv=("cv", 5), n=4):
        FairClassifier(selection="crossfit").fit(X, y, sensitive_features=z)


def test_a_model_worse_than_one_answer_to_everybody_is_said_to_be(recwarn):
    X, y, z = make_problem(n=2000)
    y = np.where(X[:, 0] > 1.8, y, 0)  # positives are rare, and most of them in one group
    model = fair(confidence=None, tau=0.1).fit(X, y, sensitive_features=z)
    assert not recwarn.list
    with warns("worse_than_constant", label=0, constant=f"is right for {(y == 0).mean():.1%}"):
        strict = model.at(0.97)
    assert strict.accuracy_ < (y == 0).mean()
    assert strict.point_.feasible  # the rate is reached
    assert (strict.beats_constant_, strict.feasible_) == (False, False)
    assert (model.beats_constant_, model.feasible_) == (True, True)
    # By brute force: the strictest answer that is better, of all that there are.
    level, choice = model.answers_.strictest()
    answers = model.answers_
    better = [
        t for t, c in zip(answers.reach, answers.counts, strict=True) if beats_constant(c, ACCURACY)
    ]
    assert level == np.floor(1000 * max(better)) / 1000
    best = model.at(level)
    assert (best.feasible_, best.accuracy_) == (True, choice.accuracy)
    with warns("worse_than_constant", strictest="strictest_worth") as caught:
        strict.at(0.97)
    assert f"that is clearly better is tau={level}: it is right for" in str(caught[0].message)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert not model.at(level + 0.002).beats_constant_


def with_many_columns(d=200, n=22_000):
    """Columns whose weights undo on two thousand rows what does not differ on others."""
    rng = np.random.default_rng(0)
    z = rng.integers(0, 2, n)
    X = rng.standard_normal((n, d)) - 0.05 * z[:, None] * (np.arange(d) < 100)
    y = (X[:, :100].sum(axis=1) / 10 + rng.logistic(size=n) > 0).astype(int)
    return (X[:2000], y[:2000], z[:2000]), (X[2000:], y[2000:], z[2000:])


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
def test_of_many_columns_each_row_is_judged_as_if_it_had_been_left_out(layout):
    (X, y, z), (X_new, y_new, z_new) = with_many_columns()
    model = fair(tau=0.7).fit(layout(X), y, sensitive_features=z)
    assert model.fitted_.place == "left_out"
    assert model.held_out_.n_rows == 2000
    predicted = model.predict(X_new)
    rate = statistical_rate(y_new, predicted, sensitive_features=z_new)
    assert model.feasible_
    assert rate >= 0.7
    accuracy, seen = np.mean(predicted == y_new), np.mean(model.predict(layout(X)) == y)
    assert abs(model.accuracy_ - accuracy) < 0.02 < 0.05 < seen - accuracy
    assert abs(model.rate_ - rate) < 0.05
    at_face_value = fair(tau=0.9, method=Method(metric="scaled"))
    with warns("many_columns", n_columns=200, n_rows=2000, crossfit=("selection", "crossfit")):
        at_face_value.fit(layout(X), y, sensitive_features=z)
    rate = statistical_rate(y_new, at_face_value.predict(X_new), sensitive_features=z_new)
    assert at_face_value.held_out_ is None
    assert rate < 0.85


def test_which_columns_are_too_many():
    assert not many_columns(30, np.array([900.0, 5000.0]))
    assert many_columns(31, np.array([5000.0, 900.0]))
    (X, y, z), _ = with_many_columns()
    few = fair(tau=0.8, confidence=None).fit(X[:, :4], y, sensitive_features=z)
    assert few.held_out_ is None
    assert few.fitted_.place == "train"
    for params in ({"selection": "crossfit", "cv": 2}, {"method": Method(metric="scaled")}):
        with warnings.catch_warnings():
            warnings.filterwarnings("error", message=".* columns for ")
            warnings.filterwarnings("ignore", category=FairnessWarning)
            fair(tau=0.8, confidence=None, **params).fit(X, y, sensitive_features=z)


def test_a_gain_over_one_answer_to_everybody_that_may_be_chance_is_none():
    X, y, z = make_problem(n=300)
    y = np.random.default_rng(0).integers(0, 2, len(y))  # nothing can be learnt
    with warns("worse_than_constant", than="not clearly more"):
        model = fair(confidence=None, tau=0.8).fit(X[:, :2], y, sensitive_features=z)
    assert model.accuracy_ >= max(y.mean(), 1 - y.mean())
    assert model.point_.feasible
    assert not model.feasible_


def test_a_difference_has_a_name_of_its_own():
    X, y, z = make_problem(n=600)
    model = fair(tau=None, epsilon=0.2, confidence=None).fit(X, y, sensitive_features=z)
    shares = [model.predict(X)[z == j].mean() for j in (0, 1)]
    assert model.difference_ == pytest.approx(max(shares) - min(shares))
    assert model.difference_ == -model.rate_
    assert model.at(0.5).difference_ is None
