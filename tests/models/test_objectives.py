"""Estimators with an objective: what they choose, their files, engines, and what they say."""

import json
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import MANY, fair, make_rows, raises
from sklearn.base import clone

from evenhand import (
    FairAdjusted,
    FairBoostedClassifier,
    FairClassifier,
    FairnessWarning,
    fair_pipeline,
    load_model,
    save_model,
)
from evenhand.core.metrics import group_counts
from evenhand.core.notions import find_notion
from evenhand.core.objectives import find_objective
from evenhand.models.card import summary_html
from evenhand.models.directions import walk_to_parity

pytestmark = pytest.mark.filterwarnings("ignore::evenhand.models.settings.FairnessWarning")
COSTS = {"cost_fp": 1, "cost_fn": 5}
OBJECTIVES = ["balanced_accuracy", COSTS, {"cost_fp": 0.4, "profit_tp": 0.6}]


def rows(n=1500, seed=0):
    """About one in nine rows is positive."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, 2, n)
    X = rng.standard_normal((n, 4))
    X[:, 0] += 0.8 * z
    y = (X @ [1.0, 1.5, 0, 0] + 0.6 * rng.logistic(size=n) > 3.2).astype(int)
    return X, y, z


def counted(y, z, answer):
    counts = np.zeros((2, 2, 2))
    np.add.at(counts, (z, y, np.asarray(answer)), 1)
    return counts


@pytest.fixture(scope="module")
def data():
    return rows()


@pytest.mark.parametrize("objective", OBJECTIVES, ids=str)
@pytest.mark.parametrize("how", [{}, {"selection": "holdout"}, {"selection": "crossfit", "cv": 3}])
def test_it_is_what_is_chosen_by(data, objective, how):
    X, y, z = data
    goal = find_objective(objective, 2)
    how = {"tau": 0.7, "confidence": None, "max_iter": 20, "random_state": 0, **how}
    plain, model = (
        fair(**how, **o).fit(X, y, sensitive_features=z) for o in ({}, {"objective": objective})
    )
    assert model.fitted_.objective == goal
    assert model.answers_.points.objective == goal
    if "selection" not in how:
        own = goal.value(counted(y, z, model.predict(X)))
        assert model.value_ == pytest.approx(own)
        least = goal.value(counted(y, z, plain.predict(X)))
        assert own > least or objective == OBJECTIVES[2]  # which is nearly the accuracy
        assert own >= least - 1e-12
        assert (np.diff(model.frontier_.value) <= 1e-12).all()
    # Of the answers that reach a target none is worth more than the one that is given.
    for tau in (0.5, 0.8, 0.95):
        at = model.at(tau)
        worth = goal.value(model.answers_.counts)[model.answers_.reach >= tau]
        assert not at.point_.feasible or at.value_ == pytest.approx(worth.max())
    assert plain.value_ == plain.accuracy_


def test_one_answer_to_everybody_is_judged_by_the_objective(data):
    X, y, z = data
    # Nine in ten are negative: for accuracy at equal rates nothing is better than a no to all.
    how = {"tau": 0.99, "confidence": None, "max_iter": 20}
    with pytest.warns(
        FairnessWarning, match="is right for .* than the same answer to everybody: 0"
    ):
        assert not fair(**how).fit(X, y, sensitive_features=z).beats_constant_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = fair(**how, objective="balanced_accuracy").fit(X, y, sensitive_features=z)
    assert model.beats_constant_
    assert model.feasible_
    assert model.fitted_.constant == (0, pytest.approx(1 - y.mean()), pytest.approx(0.5))
    # A right negative is worth ever more: again a no to all is the best.
    shown = r"earns [\d,.]+ per 1,000 decisions on the training data, .* everybody: 0 earns"
    model = fair(**how, objective={"cost_fp": 30, "profit_tp": 1, "profit_tn": 2})
    with pytest.warns(FairnessWarning, match=shown) as caught:
        model.fit(X, y, sensitive_features=z)
    assert not model.feasible_
    assert model.point_.feasible
    assert {w.message.code for w in caught} == {"worse_than_constant"}
    assert "everybody" in summary_html(model)
    assert "profit per 1,000 decisions" in summary_html(model)


def test_more_than_two_labels():
    X, y, z = make_rows(900, labels=3)
    model = fair(objective="balanced_accuracy", tau=0.5, confidence=None, max_iter=10)
    model.fit(X, y, sensitive_features=z)
    goal = find_objective("balanced_accuracy", 3)
    assert model.value_ == pytest.approx(float(goal.value(model.point_.counts)))
    with raises("outcomes_of_two_labels", n=3):
        fair(objective=COSTS).fit(X, y, sensitive_features=z)


@pytest.mark.parametrize("groups", [2, 3])
def test_group_cuts(groups):
    X, y, z = make_rows(900, groups=groups)
    own = fair(tau=0.8, confidence=None, objective=COSTS, group_cuts=True)
    own.fit(X, y, sensitive_features=z)
    scores, goal = X @ own.coef_[0], find_objective(COSTS, 2)
    shared = np.array(
        [group_counts(y, (scores > cut).astype(int), sensitive_features=z)[1] for cut in scores]
    )
    fair_enough = own.target_.value(shared) >= 0.8
    assert own.value_ >= goal.value(shared)[fair_enough].max() - 1e-12
    assert own.feasible_


def test_weights_count_as_rows(data):
    X, y, z = data
    X, y, z = X[:400], y[:400], z[:400]
    w = np.random.default_rng(0).integers(1, 4, len(y))
    how = {"tau": 0.7, "confidence": None, "max_iter": 10, "objective": "balanced_accuracy"}
    weighted = fair(**how).fit(X, y, sensitive_features=z, sample_weight=w)
    many = fair(**how).fit(
        *(np.repeat(v, w, axis=0) for v in (X, y)), sensitive_features=np.repeat(z, w)
    )
    assert weighted.value_ == pytest.approx(many.value_, abs=1e-9)
    assert weighted.rate_ == pytest.approx(many.rate_, abs=1e-9)


@pytest.mark.slow
def test_a_histogram_finds_about_the_same():
    X, y, z = make_rows(MANY)
    y = (y & (np.random.default_rng(0).random(MANY) < 0.4)).astype(int)
    how = {"tau": 0.8, "confidence": None, "max_iter": 5, "objective": COSTS}
    model = fair(**how, candidates="solver").fit(X, y, sensitive_features=z)
    own = find_objective(COSTS, 2).value(counted(y, z, model.predict(X)))
    assert model.value_ == pytest.approx(own)
    few = fair(**how, candidates="solver").fit(X[:20000], y[:20000], sensitive_features=z[:20000])
    assert model.value_ == pytest.approx(few.value_, abs=0.05)


def test_engines_agree(data):
    torch = pytest.importorskip("torch")
    X, y, z = data
    how = {"tau": 0.7, "confidence": None, "max_iter": 10, "objective": COSTS}
    expected = fair(**how).fit(X, y, sensitive_features=z)
    found = fair(**how).fit(torch.tensor(X), y, sensitive_features=z)
    assert found.value_ == pytest.approx(expected.value_, abs=2e-3)
    np.testing.assert_allclose(
        found.value_, float(find_objective(COSTS, 2).value(found.point_.counts))
    )


def test_parquet_and_memory_agree(data, tmp_path):
    pytest.importorskip("pyarrow")
    X, y, z = data
    frame = pd.DataFrame(X, columns=list("abcd")).assign(y=y, z=z)
    frame.to_parquet(tmp_path / "t.parquet", row_group_size=400)
    how = {"tau": 0.7, "confidence": None, "max_iter": 10, "objective": "balanced_accuracy"}
    expected = fair(**how).fit(X, y, sensitive_features=z)
    found = fair(**how).fit_parquet(tmp_path / "t.parquet", label="y", sensitive_features="z")
    assert found.value_ == pytest.approx(expected.value_, abs=2e-3)


def test_the_rules_of_boosted_columns_are_best_if_the_estimates_are_right():
    # The first rule is the best without a target.
    rng = np.random.default_rng(0)
    joint = rng.dirichlet(np.ones(4) * 0.7, 300).reshape(300, 2, 2)
    rate = find_notion("statistical_parity").rate
    worths = np.array([0.6, 2.8])
    y, z = rng.integers(0, 2, (2, 300))
    rule = walk_to_parity(joint, y, z, None, rate, worths)[0]
    yes = np.einsum("iyj,yj->i", joint, rule) > 0
    p = joint[:, 1].sum(axis=1)
    np.testing.assert_array_equal(yes, worths[1] * p > worths[0] * (1 - p))
    plain = walk_to_parity(joint, y, z, None, rate)
    np.testing.assert_array_equal(plain, walk_to_parity(joint, y, z, None, rate, np.ones(2)))


@pytest.mark.parametrize("kind", ["boosted", "adjusted", "adjusted with groups"])
def test_boosted_and_adjusted(data, kind, tmp_path):
    hist = pytest.importorskip("sklearn.ensemble").HistGradientBoostingClassifier
    X, y, z = data
    booster = hist(max_iter=10)
    how = {"tau": 0.6, "random_state": 0, "confidence": None, "booster": booster}
    if kind == "boosted":
        make = FairBoostedClassifier
    else:

        def make(**params):
            return FairAdjusted(0, group_cuts=kind.endswith("groups"), **params)

    plain, model = (
        make(**how, **o).fit(X, y, sensitive_features=z) for o in ({}, {"objective": COSTS})
    )
    goal = find_objective(COSTS, 2)
    assert model.value_ > goal.value(plain.point_.counts)
    assert model.value_ == pytest.approx(float(goal.value(model.point_.counts)))
    assert model.fitted_.objective == goal
    save_model(model, tmp_path / "m")
    again = load_model(tmp_path / "m").model
    assert again.objective == COSTS
    assert again.value_ == model.value_
    assert type(again) is type(model)


class TestFiles:
    @pytest.mark.parametrize("objective", ["accuracy", *OBJECTIVES], ids=str)
    def test_a_file_keeps_it(self, data, objective, tmp_path):
        X, y, z = data
        model = fair(tau=0.7, objective=objective, max_iter=10).fit(X, y, sensitive_features=z)
        save_model(model, tmp_path / "m")
        again = load_model(tmp_path / "m").model
        assert again.objective == objective
        assert again.fitted_.objective == model.fitted_.objective
        for name in ("value_", "accuracy_", "rate_", "beats_constant_"):
            assert getattr(again, name) == getattr(model, name)
        np.testing.assert_array_equal(again.frontier_.value, model.frontier_.value)
        assert again.at(0.9).value_ == model.at(0.9).value_
        assert again.at(epsilon=0.1).value_ == model.at(epsilon=0.1).value_
        assert pickle.loads(pickle.dumps(model)).value_ == model.value_
        assert clone(model).objective == objective

    def test_a_file_of_old_is_for_accuracy(self, data):
        from evenhand.persist import state

        X, y, z = data
        model = fair(tau=0.7, max_iter=10).fit(X, y, sensitive_features=z)
        values, arrays = state.to_state(model, {})
        del values["classifier"]["params"]["objective"]
        again, _ = state.from_state(json.loads(json.dumps(values)), arrays, 2, state.Limits())
        assert again.objective == "accuracy"
        assert again.value_ == model.value_

    def test_a_file_that_says_something_else_is_refused(self, data, tmp_path):
        from evenhand.persist import state

        X, y, z = data
        model = fair(tau=0.7, max_iter=10, objective=COSTS).fit(X, y, sensitive_features=z)
        values, arrays = state.to_state(model, {})
        for other in ("f1", {"cost_fp": float("nan")}, {"cost_of": 1}, 3, ["accuracy"]):
            values["classifier"]["params"]["objective"] = other
            with pytest.raises(ValueError, match=r"objective|outcome"):
                state.from_state(values, arrays, 2, state.Limits())
        # Its points are in order for what it was fitted for only.
        values["classifier"]["params"]["objective"] = {"cost_fp": 1, "cost_fn": 0.01}
        with pytest.raises(ValueError, match=r"order|sorted|rise|fall"):
            state.from_state(values, arrays, 2, state.Limits())


def test_pipelines_and_parameters():
    frame = pd.DataFrame({"a": rows()[0][:, 0], "z": rows()[2]})
    model = fair_pipeline("z", objective="balanced_accuracy", confidence=None, tau=0.6)
    model = model.fit(frame, rows()[1])
    assert model.value_ == model[-1].value_
    assert "balanced accuracy" in model._repr_html_inner()
    for wrong in ("f1", 3, None, ["accuracy"]):
        with pytest.raises(ValueError, match="objective"):
            FairClassifier(objective=wrong).fit(
                frame[["a"]], rows()[1], sensitive_features=frame["z"]
            )
    with raises("best_for_everybody"):
        FairBoostedClassifier(objective={"cost_fp": 1}).fit(
            *rows()[:2], sensitive_features=rows()[2]
        )
    mixed, alone = model.averaged(0.9)[-1], model.at(0.9)
    counts = [point.counts for point in mixed.points_]
    mean = np.tensordot(mixed.weights_, counts, axes=1)
    goal = find_objective("balanced_accuracy", 2)
    assert goal.value(mean) >= goal.value(alone.point_.counts) - 1e-9


def test_the_picture_has_its_value():
    pytest.importorskip("matplotlib").use("Agg")
    from evenhand import FrontierDisplay

    X, y, z = rows()
    for objective, name in (
        ("balanced_accuracy", "balanced accuracy"),
        (COSTS, "profit per 1,000"),
    ):
        model = fair(tau=0.7, objective=objective, max_iter=10).fit(X, y, sensitive_features=z)
        display = FrontierDisplay.from_estimator(model)
        assert display.ax_.get_ylabel().startswith(name)
        per = model.fitted_.objective.per
        low, high = display.ax_.get_ylim()
        assert low < per * model.value_ < high
        shown = display.line_.get_ydata()
        np.testing.assert_array_equal(shown, per * model.frontier_.value[: len(shown)])
