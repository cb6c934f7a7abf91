"""FairAdjusted: against every cut there is, against boosting, and what it refuses."""

import itertools
import warnings
from math import log, sqrt

import numpy as np
import pandas as pd
import pytest
from helpers import fair, make_problem, make_rows, raises
from sklearn.base import clone
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LinearRegression, LogisticRegression, Perceptron, RidgeClassifier
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks
from threadpoolctl import threadpool_limits

from evenhand import FairAdjusted, FairBoostedClassifier, fair_pipeline, save_report
from evenhand.core.metrics import group_counts
from evenhand.core.notions import find_notion
from evenhand.core.targets import Target
from evenhand.models import brought
from evenhand.models.brought import Curve

QUICK = HistGradientBoostingClassifier(max_iter=5, learning_rate=0.3, max_leaf_nodes=6, max_bins=31)
PLAIN = {"booster": QUICK, "classifier": fair(max_iter=40), "random_state": 0, "pos_label": 1}
AWARE = {"group_cuts": True, "confidence": None}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def adjusted(*args, **params):
    return FairAdjusted(*args, **PLAIN | params)


@pytest.fixture(scope="module")
def data():
    return make_problem(n=600)


class FirstIsHigh:
    """Groups for scikit-learn's checks, which know of none."""

    def __call__(self, X):
        column = np.asarray(X, dtype=float)[:, 0]
        return column > np.nanmedian(np.unique(column))

    def __repr__(self):
        return "first_is_high"


@pytest.mark.slow  # the default run has them for the boosted classifier, which this one is
@parametrize_with_checks(
    [
        FairAdjusted(
            LogisticRegression(),
            tau=0.2,
            sensitive_features=FirstIsHigh(),
            booster=QUICK,
            n_folds=2,
            classifier=fair(),
        )
    ],
    expected_failed_checks=lambda estimator: {
        "check_sample_weight_equivalence_on_dense_data": (
            "a row given twice is in two folds, each of which has seen its label in the other"
        )
    },
)
@pytest.mark.filterwarnings("ignore::evenhand.FavourableLabelWarning")
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.SkipTestWarning")
def test_scikit_learn_checks(estimator, check):
    check(estimator)


def few_scores(seed, groups, n=500):
    """Scores of a few values, whose groups differ."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, n)
    score = rng.integers(1, 7, n) + z
    y = (rng.random(n) < 1 / (1 + np.exp(4 - score))).astype(int)
    return score.astype(float), y, z


def every_rule(score, y, z, notion):
    """Accuracy, ratio and counts of every choice of a cut for each group."""
    levels = np.unique(score)
    cuts = [levels[0] - 1, *(levels[:-1] + levels[1:]) / 2, levels[-1] + 1]
    rules = []
    for chosen in itertools.product(cuts, repeat=len(np.unique(z))):
        answer = (score > np.array(chosen)[z]).astype(int)
        counts = group_counts(y, answer, sensitive_features=z)[1]
        if notion.eligible(counts, 0.01):
            rules.append(((answer == y).mean(), float(notion.rate.ratio(counts)), counts))
    return rules


@pytest.mark.parametrize("name", ["statistical_parity", "equal_opportunity", "equalized_odds"])
@pytest.mark.parametrize(("seed", "groups"), [(0, 2), (1, 2), (2, 2), (3, 3), (4, 3)])
@pytest.mark.parametrize("falling", [False, True])
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_the_best_cuts_of_all(name, seed, groups, falling):
    score, y, z = few_scores(seed, groups)
    column = (10 - score if falling else score)[:, None]
    notion = find_notion(name)
    rules = every_rule(score, y, z, notion)
    model = adjusted(0, name, tau=0.8, **AWARE).fit(column, y, sensitive_features=z)
    # A rule counts unless another is as accurate and as surely fair: evenhand.frontier.sweep.
    n_cuts = len(np.unique(score)) - 1
    caution = sqrt(2 * log(n_cuts * len(model.trajectory_.iterates)))
    target = Target(notion.rate, 0.8)
    sure = [float(target.cautious(c[None], caution)[0]) for _, _, c in rules]
    for tau in (0.6, 0.8, 0.9):
        kept = [
            (accuracy, ratio)
            for (accuracy, ratio, _), s in zip(rules, sure, strict=True)
            if not any(
                (a >= accuracy and t > s + 1e-12) or (a > accuracy and t >= s - 1e-12)
                for (a, _, _), t in zip(rules, sure, strict=True)
            )
        ]
        # Rates that none of these reaches are reached by others, chance or not.
        highest = max(ratio for _, ratio in kept)
        kept += [(accuracy, ratio) for accuracy, ratio, _ in rules if ratio > highest + 1e-12]
        there = [accuracy for accuracy, ratio in kept if ratio >= tau - 1e-12]
        moved = model.at(tau)
        if there:
            assert moved.accuracy_ == pytest.approx(max(there))
        answers = moved.predict(column, sensitive_features=z)
        counts = group_counts(y, answers, sensitive_features=z)[1]
        assert (answers == y).mean() == pytest.approx(moved.accuracy_)
        assert notion.rate.ratio(counts) == pytest.approx(moved.rate_)


def test_without_the_curve_it_is_boosting(data, monkeypatch):
    X, y, z = data
    boosted = FairBoostedClassifier(tau=0.8, **PLAIN).fit(X, y, sensitive_features=z)
    monkeypatch.setattr(brought, "fit_curve", lambda *args, **kw: Curve(1.0, 0.0, True))
    model = adjusted(QUICK, tau=0.8).fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(model.columns_, boosted.columns_, atol=1e-9)
    for tau in (0.6, 0.8, 0.95):
        np.testing.assert_array_equal(model.at(tau).predict(X), boosted.at(tau).predict(X))
        assert model.at(tau).accuracy_ == boosted.at(tau).accuracy_


@pytest.mark.parametrize("aware", [False, True])
@pytest.mark.parametrize("kind", [LogisticRegression, LinearSVC, GaussianNB])
def test_a_column_is_what_an_estimator_says(data, kind, aware):
    X, y, z = data
    theirs = kind().fit(*make_problem(n=400, seed=7)[:2])
    has = hasattr(theirs, "predict_proba")
    score = theirs.predict_proba(X)[:, 1] if has else theirs.decision_function(X)
    params = {"tau": 0.8} | (AWARE if aware else {})
    groups = {"sensitive_features": z} if aware else {}
    given = adjusted(theirs, prefit=True, **params).fit(X, y, sensitive_features=z)
    frame = pd.DataFrame(X).rename(columns=str).assign(score=score)
    named = adjusted("score", **params).fit(frame, y, sensitive_features=z)
    last = adjusted(-1, **params).fit(frame.to_numpy(), y, sensitive_features=z)
    np.testing.assert_array_equal(
        named.predict(frame, **groups), last.predict(frame.to_numpy(), **groups)
    )
    if aware:  # else the score is one more input of the group's models
        np.testing.assert_array_equal(named.predict(frame, **groups), given.predict(X, **groups))
    np.testing.assert_allclose(named.columns_[:, 0], given.columns_[:, 0])
    assert "taken as they are" in named.scores_
    assert "as it was fitted" in given.scores_


def test_each_row_is_scored_by_a_model_that_has_not_seen_it(data):
    X, y, z = data
    model = adjusted(KNeighborsClassifier(1), tau=0.3, **AWARE)
    model.fit(X, y, sensitive_features=z)
    # One neighbour knows its own label; out of fold it is hardly better than a coin.
    assert KNeighborsClassifier(1).fit(X, y).score(X, y) == 1
    assert model.accuracy_ < 0.8


@pytest.mark.parametrize("scale", [lambda s: s, lambda s: 3 * s - 100, lambda s: -s])
def test_only_the_order_of_scores_counts_for_cuts(scale):
    score, y, z = few_scores(5, 2)
    one, two = (
        adjusted(0, **AWARE).fit(s[:, None], y, sensitive_features=z) for s in (score, scale(score))
    )
    assert (one.accuracy_, one.rate_) == pytest.approx((two.accuracy_, two.rate_))


def test_where_the_score_was_cut_before(data):
    X, y, z = data
    theirs = LogisticRegression().fit(*make_problem(n=400, seed=7)[:2])
    score = theirs.predict_proba(X)[:, 1]
    frame = pd.DataFrame(X).rename(columns=str).assign(score=score, risk=1 - score)
    for model, table in (
        (adjusted(theirs, prefit=True), X),
        (adjusted("score"), frame.drop(columns="risk")),
        (adjusted("risk"), frame.drop(columns="score")),
        (adjusted("score", **AWARE), frame),
    ):
        model.fit(table, y, sensitive_features=z)
        groups = {"sensitive_features": z} if model.needs_group else {}
        weights = model.before()
        answers = model.columns(table, **groups) @ weights[:-1] + weights[-1] > 0
        np.testing.assert_array_equal(answers, theirs.predict(X) == 1)
        assert model.before_ == "at 0.5"
    margins = LinearSVC().fit(*make_problem(n=400, seed=7)[:2])
    model = adjusted(margins, prefit=True).fit(X, y, sensitive_features=z)
    weights = model.before()
    answers = model.columns(X) @ weights[:-1] + weights[-1] > 0
    np.testing.assert_array_equal(answers, margins.predict(X) == 1)
    assert model.before_ == "at 0"


def test_words_gaps_text_and_three_groups():
    X, y, z = make_rows(n=500, groups=3)
    frame = pd.DataFrame(X[:, :3].copy(), columns=list("abc"))
    frame["town"] = np.where(z == 1, "north", np.where(frame["a"] > 0, "south", None))
    frame.loc[::9, "b"] = np.nan
    frame["sex"] = np.array(["f", "m", "other"])[z]
    frame["score"] = X @ np.linspace(1, -1, 6)
    answer = np.where(y, "granted", "denied")
    about = {"sensitive_features": "sex", "pos_label": "granted", "tau": 0.6}
    model = adjusted("score", **about).fit(frame, answer)
    assert model.column_names_[2:4] == ["group probability[m]", "group probability[other]"]
    assert set(model.predict(frame)) <= {"granted", "denied"}
    theirs = make_pipeline(OneHotEncoder(handle_unknown="ignore"), LogisticRegression())
    model = adjusted(theirs, **about | AWARE).fit(frame[["town", "sex", "a"]], answer)
    assert model.feasible_
    model.predict(frame[["town", "sex", "a"]], sensitive_features=frame["sex"])


def test_many_labels_by_probabilities():
    X, y, z = make_rows(n=500, labels=3)
    names = np.array(["low", "mid", "high"])[y]
    model = FairAdjusted(LogisticRegression(), tau=0.5, booster=QUICK, random_state=0)
    model.fit(X, names, sensitive_features=z)
    assert set(model.predict(X)) <= set(names)
    theirs = LogisticRegression().fit(X, names)
    given = FairAdjusted(theirs, tau=0.5, booster=QUICK, random_state=0, prefit=True)
    given.fit(X, names, sensitive_features=z)
    weights = given.before().reshape(3, -1)
    scores = given.columns(X) @ weights[:, :-1].T + weights[:, -1]
    np.testing.assert_array_equal(given.fitted_.labels[scores.argmax(axis=1)], theirs.predict(X))


def test_labels_reach_the_estimator_by_name(data):
    X, y, z = data
    names = np.where(y == 1, "yes", "no")
    heavy = LogisticRegression(class_weight={"yes": 5, "no": 1})
    model = adjusted(heavy, pos_label="no").fit(X, names, sensitive_features=z)
    assert model.models_[0].label.source.model.classes_.tolist() == ["no", "yes"]


def test_weights_reach_the_last_step_of_a_pipeline(data):
    X, y, z = data
    weight = np.where(np.arange(len(y)) < 300, 1.0, 0.0)
    theirs = make_pipeline(StandardScaler(), LogisticRegression())
    half = adjusted(theirs, **AWARE).fit(X[:300], y[:300], sensitive_features=z[:300])
    weighted = adjusted(theirs, **AWARE)
    weighted.fit(X, y, sensitive_features=z, sample_weight=weight)
    assert weighted.accuracy_ > 0.5
    assert len(weighted.columns_) == len(half.columns_) == 300


def test_a_clone_keeps_what_is_fitted_elsewhere(data):
    X, y, _ = data
    theirs = LogisticRegression().fit(X, y)
    assert clone(adjusted(theirs, prefit=True)).estimator is theirs
    assert not hasattr(clone(adjusted(theirs)).estimator, "coef_")


@pytest.mark.parametrize(
    "regime", [{"confidence": "certified"}, {"selection": "crossfit", "cv": 2}]
)
@pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
def test_rows_held_out_are_never_fitted_to(data, regime):
    X, y, z = data
    model = adjusted(LogisticRegression(), tau=0.3, n_folds=2, **regime)
    model.fit(X, y, sensitive_features=z)
    held = model.folds_ == -1
    assert held.any() == ("confidence" in regime)
    assert model.held_out_ is not None


class Silent:
    def fit(self, X, y):
        return self

    def predict(self, X):
        return np.zeros(len(X))


@pytest.mark.parametrize(
    ("estimator", "params", "code"),
    [
        (None, {}, "nothing_brought"),
        (LogisticRegression, {}, "estimator_is_a_class"),
        (Silent(), {}, "no_scores"),
        (LinearRegression(), {}, "no_scores"),
        ("fitted", {}, "already_fitted"),
        ("frozen", {}, "already_fitted"),
        (LogisticRegression(), {"prefit": True}, "prefit_not_fitted"),
        ("score", {}, "unknown_score_column"),
        (7, {}, "unknown_score_column"),
        (DummyClassifier().fit([[0]] * 2, [0, 1]), {"prefit": True}, "constant_scores"),
        (LogisticRegression(), {"group_cuts": True}, "boosted_group_cuts"),
        (LogisticRegression(), {"classifier": fair(tau=0.5)}, "parameter_of_engine"),
    ],
)
def test_what_cannot_be_adjusted(data, estimator, params, code):
    X, y, z = data
    given = {
        "fitted": LogisticRegression().fit(X, y),
        "frozen": FrozenEstimator(LogisticRegression().fit(X, y)),
    }
    estimator = given.get(estimator, estimator) if isinstance(estimator, str) else estimator
    with raises(code):
        adjusted(estimator, **params).fit(X, y, sensitive_features=z)


def test_weights_that_an_estimator_does_not_take(data):
    X, y, z = data
    with raises("estimator_without_weights", name="KNeighborsClassifier"):
        adjusted(KNeighborsClassifier()).fit(
            X, y, sensitive_features=z, sample_weight=np.ones(len(y))
        )


@pytest.mark.parametrize(
    ("values", "code"),
    [(np.nan, "no_score"), (np.inf, "no_score"), ("high", "no_score"), (None, "no_score")],
)
def test_scores_that_are_no_numbers(data, values, code):
    X, y, z = data
    frame = pd.DataFrame(X).rename(columns=str).assign(score=X[:, 0].astype(object))
    frame.loc[4, "score"] = values
    with raises(code, column="score", row=5, n=1):
        adjusted("score").fit(frame, y, sensitive_features=z)


def test_constant_scores_and_many_labels(data):
    X, y, z = data
    frame = pd.DataFrame(X).rename(columns=str).assign(score=0.5)
    with raises("constant_scores", where="in column 'score'"):
        adjusted("score").fit(frame, y, sensitive_features=z)
    X, y, z = make_rows(n=300, labels=3)
    for estimator in (0, RidgeClassifier(), Perceptron().fit(X, y)):
        with raises("score_of_many_labels", n=3), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            FairAdjusted(estimator, prefit=isinstance(estimator, Perceptron), booster=QUICK).fit(
                X, y, sensitive_features=z
            )


def test_new_scores_are_made_as_the_old_ones():
    score, y, z = few_scores(6, 2)
    model = adjusted(0, **AWARE).fit(score[:, None] / 10, y, sensitive_features=z)
    with raises("score_not_between", score=7.0):
        model.predict(np.full((3, 1), 7.0), sensitive_features=z[:3])


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_other_boosters_with_words_and_weights(data, library):
    module = pytest.importorskip(library)
    kind = module.LGBMClassifier if library == "lightgbm" else module.XGBClassifier
    quiet = {"verbosity": -1} if library == "lightgbm" else {}
    X, y, z = data
    names = np.where(y == 1, "good", "bad")
    one, two = (
        adjusted(kind(n_estimators=5, **quiet), pos_label=label, tau=0.5)
        for label in ("good", "bad")
    )
    one.fit(X, names, sensitive_features=z, sample_weight=np.ones(len(y)))
    two.fit(X, names, sensitive_features=z)
    # The favourable label is the second number, whatever its place among the sorted labels.
    assert np.corrcoef(one.columns_[:, 0], -two.columns_[:, 0])[0, 1] > 0.8
    assert np.corrcoef(one.columns_[:, 0], y)[0, 1] > 0.3


def test_pipelines_of_tables_and_their_page(data, tmp_path):
    X, y, z = data
    theirs = LogisticRegression().fit(*make_problem(n=400, seed=7)[:2])
    frame = pd.DataFrame(X).rename(columns=str).assign(sex=np.array(["f", "m"])[z])
    frame["score"] = theirs.predict_proba(X)[:, 1]
    quick = {"booster": QUICK, "random_state": 0, "pos_label": 1}
    scored = fair_pipeline("sex", scores="score", tau=0.6, **quick).fit(frame, y)
    own = FairAdjusted(LogisticRegression(), tau=0.6, **quick)
    encoded = fair_pipeline("sex", classifier=own).fit(frame.drop(columns="score"), y)
    for model in (scored, encoded):
        save_report(model, tmp_path / "page.html", frame, y)
        page = (tmp_path / "page.html").read_text(encoding="utf-8")
        assert "An existing model was adjusted: the scores " in page
        assert "The group is estimated from" in page
    np.testing.assert_array_equal(scored[0].transform(frame)[:, 0], frame["score"])
    assert scored[0].get_feature_names_out()[0] == "score"
