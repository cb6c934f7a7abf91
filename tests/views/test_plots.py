import re

import matplotlib as mpl
import numpy as np
import pandas as pd
import pytest
from helpers import make_problem, raises
from sklearn import config_context
from sklearn.ensemble import GradientBoostingClassifier
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

mpl.use("Agg")
import matplotlib.pyplot as plt

from evenhand import (
    FairBoostedClassifier,
    FairClassifier,
    FairnessWarning,
    FrontierDisplay,
    GroupRatesDisplay,
    Method,
    fair_pipeline,
    group_rates,
    statistical_rate,
)
from evenhand.core.errors import Parameter
from evenhand.views.plots import TrajectoryDisplay


@pytest.fixture
def model():
    X, y, z = make_problem()
    return FairClassifier(tau=0.7).fit(X, y, sensitive_features=z)


@pytest.fixture(autouse=True)
def close():
    yield
    plt.close("all")


def test_draws_the_frontier_and_the_chosen_point(model):
    display = FrontierDisplay.from_estimator(model)
    sure = slice(model.frontier_.n_sure)  # the others are dotted
    np.testing.assert_array_equal(display.line_.get_xdata(), model.frontier_.rate[sure])
    np.testing.assert_array_equal(display.line_.get_ydata(), model.frontier_.accuracy[sure])
    text = " ".join(t.get_text() for t in display.ax_.get_legend().get_texts())
    assert f"{model.accuracy_:.3f}" in text
    assert "statistical rate" in display.ax_.get_xlabel()
    assert any("0.7" in t.get_text() for t in display.ax_.texts)


def test_the_axes_say_that_rows_were_fitted_to_where_others_decided():
    X, y, z = make_problem()
    for selection, rows in (("train", "on training data"), ("crossfit", "on the rows fitted to")):
        fit = FairClassifier(tau=0.7, selection=selection).fit(X, y, sensitive_features=z)
        ax = FrontierDisplay.from_estimator(fit).ax_
        assert rows in ax.get_xlabel()
        assert ax.get_ylabel() == f"accuracy {rows}"


def test_draws_where_told(model, tmp_path):
    figure, ax = plt.subplots()
    display = FrontierDisplay.from_estimator(model, ax=ax, color="red")
    assert display.ax_ is ax
    assert display.line_.get_color() == "red"
    display = FrontierDisplay.from_estimator(model, ax=ax, lw=1, drawstyle="default")
    assert display.line_.get_linewidth() == 1
    assert display.plot().ax_ is not ax
    figure.savefig(tmp_path / "frontier.svg")
    assert FrontierDisplay(model.frontier_).plot(ax=ax).chosen is None


def test_plot_after_from_estimator_leaves_one_figure(model):
    display = FrontierDisplay.from_estimator(model).plot()
    assert len(plt.get_fignums()) == 1
    _, ax = plt.subplots()
    FrontierDisplay.from_estimator(model).plot(ax=ax)
    assert len(plt.get_fignums()) == 2
    assert display.ax_ is not ax


def test_an_infeasible_point_is_marked():
    X, y, z = make_problem()
    with pytest.warns(FairnessWarning):
        model = FairClassifier().fit(0 * X, y, sensitive_features=z)
    display = FrontierDisplay.from_estimator(model)
    texts = [t.get_text() for t in display.ax_.get_legend().get_texts()]
    assert texts[0] == "no point is eligible"
    assert not any("chosen" in t for t in texts)


def test_pipelines_and_unfitted():
    X, y, z = make_problem()
    pipe = make_pipeline(StandardScaler(), FairClassifier())
    pipe.fit(X, y, fairclassifier__sensitive_features=z)
    assert FrontierDisplay.from_estimator(pipe).ax_
    with pytest.raises(TypeError, match="not a StandardScaler"):
        FrontierDisplay.from_estimator(StandardScaler())
    with pytest.raises(NotFittedError):
        FrontierDisplay.from_estimator(FairClassifier())


class TestTrajectory:
    def test_draws_every_iteration(self, model):
        display = TrajectoryDisplay.from_estimator(make_pipeline(StandardScaler(), model))
        upper, lower = display.ax_
        n = len(model.trajectory_)
        assert [len(line.get_xdata()) for line in upper.lines[:2]] == [n, n]
        np.testing.assert_array_equal(
            lower.lines[1].get_ydata(), model.trajectory_.to_frame()["rate"]
        )
        assert "τ = 0.7" in [t.get_text() for t in lower.get_legend().texts]

    def test_no_adversary_is_drawn_where_none_played(self, model):
        X, y, z = make_problem()
        alone = FairClassifier(tau=0.7, group_cuts=True).fit(X, y, sensitive_features=z)
        assert set(alone.trajectory_.to_frame()["leg"]) == {"optimum"}
        for fit, shown in ((model, True), (alone, False)):
            upper = TrajectoryDisplay.from_estimator(fit).ax_[0]
            words = [t.get_text() for t in upper.get_legend().texts]
            assert ("adversary's loss" in words) == shown

    def test_differences_are_drawn_where_they_are_the_target(self):
        X, y, z = make_problem()
        model = FairClassifier(epsilon=0.1, confidence=None, method=Method(max_iter=20))
        display = TrajectoryDisplay.from_estimator(model.fit(X, y, sensitive_features=z))
        table = model.trajectory_.to_frame()
        rates = [
            (table[f"n_{j}01"] + table[f"n_{j}11"])
            / table[[f"n_{j}{y}{p}" for y in (0, 1) for p in (0, 1)]].sum(axis=1)
            for j in (0, 1)
        ]
        lower = display.ax_[1]
        np.testing.assert_allclose(lower.lines[1].get_ydata(), (rates[0] - rates[1]).abs())
        words = [t.get_text() for t in lower.get_legend().texts]
        assert "selection rate difference" in words
        assert "ε = 0.1" in words
        facts = {"sensitive_features": z, "epsilon": 0.2}
        stages = TrajectoryDisplay.from_predictions(y, [y], **facts)
        expected = abs(y[z == 0].mean() - y[z == 1].mean())
        np.testing.assert_allclose(stages.ax_.lines[1].get_ydata(), [expected])
        with raises("one_comparison"):
            TrajectoryDisplay.from_predictions(y, [y], tau=0.8, **facts)

    def test_draws_where_told(self, model):
        _, axes = plt.subplots(2, 1)
        assert TrajectoryDisplay.from_estimator(model, ax=axes).ax_[0] is axes[0]
        _, one = plt.subplots()
        display = TrajectoryDisplay.from_estimator(model, ax=one)
        assert display.ax_ is one
        np.testing.assert_array_equal(one.lines[1].get_ydata(), display.frame["rate"])
        display = display.plot()
        assert len(display.ax_) == 2
        with raises("too_many_axes", n=3, most="two"):
            TrajectoryDisplay.from_estimator(model, ax=plt.subplots(3)[1])
        with pytest.raises(NotFittedError):
            TrajectoryDisplay.from_estimator(FairClassifier())
        with pytest.raises(TypeError, match="TrajectoryDisplay needs a FairClassifier"):
            TrajectoryDisplay.from_estimator(StandardScaler())

    def test_stages_of_any_classifier(self, model, tmp_path):
        X, y, z = make_problem()
        y = np.where(y, "yes", "no")
        boosted = GradientBoostingClassifier(n_estimators=5).fit(X, y)
        stages = list(boosted.staged_predict(X))
        ask = {"sensitive_features": z, "pos_label": "yes"}
        display = TrajectoryDisplay.from_predictions(y, boosted.staged_predict(X), **ask, tau=0.8)
        assert len(display.frame) == 5
        rates = [statistical_rate(y, pred, **ask) for pred in stages]
        np.testing.assert_allclose(display.ax_.lines[1].get_ydata(), rates)
        np.testing.assert_allclose(
            display.ax_.lines[0].get_ydata(), [np.mean(pred == y) for pred in stages]
        )
        assert "statistical rate" in [t.get_text() for t in display.ax_.get_legend().texts]
        _, ax = plt.subplots()
        notion = {"notion": "equal_opportunity"}
        display = TrajectoryDisplay.from_predictions(y, stages[:1], **ask, **notion, ax=ax)
        assert display.ax_ is ax
        assert "true positive rate" in display.rate_name
        with raises("no_stages"):
            TrajectoryDisplay.from_predictions(y, [], **ask)
        with raises("too_many_axes", n=2):
            TrajectoryDisplay.from_predictions(y, stages, **ask, ax=plt.subplots(2)[1])

    def test_names_of_legs_do_not_overlap(self, model):
        display = TrajectoryDisplay.from_estimator(model)
        assert_apart(display.figure_, display.ax_[0].texts)


def assert_apart(figure, texts):
    """No text covers another."""
    figure.canvas.draw()
    boxes = [text.get_window_extent() for text in texts]
    for i, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[i + 1 :])


@pytest.mark.parametrize("tau", [0.3, 0.5, 0.7, 0.95])
def test_the_target_is_beside_the_legend(model, tau):
    display = FrontierDisplay(model.frontier_, tau=tau).plot()
    assert any(f"{tau:g}" in t.get_text() for t in display.ax_.texts)
    assert_apart(display.figure_, [*display.ax_.texts, *display.ax_.get_legend().get_texts()])


class TestGroupRates:
    def test_the_favourable_label_is_the_classifiers(self):
        X, y, z = make_problem()
        named = np.where(y, "yes", "no")
        for favourable in ("yes", "no"):
            model = FairClassifier(tau=0.5, pos_label=favourable)
            model.fit(X, named, sensitive_features=z)
            display = GroupRatesDisplay.from_estimator(model, X, named, sensitive_features=z)
            chosen = model.predict(X) == favourable
            wanted = [np.mean(chosen[z == group]) for group in (0, 1)]
            drawn = display.ax_.containers[0].lines[0].get_xdata()
            np.testing.assert_allclose(drawn, 100 * np.array(wanted))
        plain = make_pipeline(StandardScaler(), LogisticRegression()).fit(X, named)
        assert GroupRatesDisplay.from_estimator(plain, X, named, sensitive_features=z).counts

    def test_a_pipeline_with_a_cut_for_each_group(self):
        X, y, z = make_problem()
        pipe = make_pipeline(StandardScaler(), FairClassifier(group_cuts=True))
        pipe.fit(X, y, fairclassifier__sensitive_features=z)
        assert GroupRatesDisplay.from_estimator(pipe, X, y, sensitive_features=z).counts
        frame = pd.DataFrame(X, columns=list("abcde")).assign(z=z)
        table = fair_pipeline("z", group_cuts=True).fit(frame, y)
        assert GroupRatesDisplay.from_estimator(table, frame, y, sensitive_features=z).counts

    def test_groups_where_nobody_or_everybody_is_chosen(self):
        y = np.array([0, 1] * 20)
        z = np.repeat([0, 1], 20)
        display = GroupRatesDisplay.from_predictions(y, z, sensitive_features=z, tau=0.8)
        assert "ratio 0.000" in display.ax_.get_legend().texts[0].get_text()

    def test_rates_and_ratio(self, model):
        X, y, z = make_problem()
        display = GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=z, tau=0.7)
        rates = group_rates(y, model.predict(X), sensitive_features=z)["selection_rate"]
        drawn = display.ax_.containers[0].lines[0].get_xdata()
        np.testing.assert_allclose(drawn, 100 * rates)
        assert f"{rates.min() / rates.max():.3f}" in display.ax_.get_legend().texts[0].get_text()

    def test_rates_and_difference(self, model):
        X, y, z = make_problem()
        about = {"sensitive_features": z, "epsilon": 0.1}
        display = GroupRatesDisplay.from_estimator(model, X, y, **about)
        rates = group_rates(y, model.predict(X), sensitive_features=z)["selection_rate"]
        said = display.ax_.get_legend().texts[0].get_text()
        assert said.startswith(f"difference {rates.max() - rates.min():.3f} (population: ")
        band = display.ax_.patches[0].get_extents().transformed(display.ax_.transData.inverted())
        assert [band.x0, band.x1] == pytest.approx([100 * (rates.max() - 0.1), 100 * rates.max()])
        assert "ε = 0.1" in display.ax_.get_title(loc="left")
        two = {"a": y, "b": np.zeros_like(y)}
        display = GroupRatesDisplay.from_predictions(y, two, **about)
        assert "above ε = 0.1" in display.ax_.get_legend().texts[0].get_text()
        with raises("one_comparison", tau=Parameter("tau", 0.8), epsilon=Parameter("epsilon", 0.1)):
            GroupRatesDisplay.from_predictions(y, y, tau=0.8, **about)

    def test_several_classifiers(self, model):
        X, y, z = make_problem()
        both = {"plain": y, "fair": model.predict(X)}
        display = GroupRatesDisplay.from_predictions(
            y, both, sensitive_features=z, rate="accuracy", ax=plt.subplots()[1]
        )
        assert len(display.ax_.containers) == 2
        display = GroupRatesDisplay.from_predictions(y, both, sensitive_features=z, tau=0.99)
        assert "below τ = 0.99" in display.ax_.get_legend().texts[0].get_text()
        with raises("unknown_rate", rate=Parameter("rate", "luck")):
            GroupRatesDisplay.from_predictions(y, y, sensitive_features=z, rate="luck")

    def test_a_cut_for_each_group(self):
        X, y, z = make_problem()
        model = FairClassifier(group_cuts=True).fit(X, y, sensitive_features=z)
        assert GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=z).counts


class TestScores:
    def test_the_frontier_of_any_scores(self, model):
        X, y, z = make_problem()
        score = model.decision_function(X)
        display = FrontierDisplay.from_predictions(y, score, sensitive_features=z, tau=0.8)
        front = display.frontier
        i = len(front) // 2
        pred = score > front.cut[i]
        assert front.accuracy[i] == pytest.approx(np.mean(pred == y))
        assert front.rate[i] == pytest.approx(statistical_rate(y, pred, sensitive_features=z))
        assert "these rows" in display.ax_.get_xlabel()
        with pytest.raises(ValueError, match="one finite number"):
            FrontierDisplay.from_predictions(y, score * np.nan, sensitive_features=z)


class TestNotebook:
    def test_a_summary_with_a_small_frontier(self, model):
        shown = model._repr_mimebundle_()["text/html"]
        assert "<svg" in shown
        assert f"{model.accuracy_:.4f}" in shown
        assert "✓ reached on the training data" in shown
        assert "<svg" not in FairClassifier()._repr_mimebundle_()["text/html"][:200]

    def test_a_certificate_is_exact(self):
        X, y, z = make_problem()
        sure = FairClassifier(tau=0.3, confidence="certified", delta=0.2, random_state=0)
        sure.fit(X, y, sensitive_features=z)
        assert sure.guarantee_.certified
        assert "in the population with confidence 0.8 by an exact test" in sure._repr_html_()
        with pytest.warns(FairnessWarning):
            unsure = sure.at(0.999)
        assert "✗ NOT certified on the held-out rows<" in unsure._repr_html_()

    def test_pipelines_and_boosting_show_the_same(self):
        X, y, z = make_problem()
        frame = pd.DataFrame(X, columns=list("abcde")).assign(z=z)
        pipe = fair_pipeline("z", tau=0.7)
        assert "NOT" not in pipe._repr_html_()
        assert "<strong>FairPipeline" not in pipe._repr_mimebundle_()["text/html"]
        pipe.fit(frame, y)
        shown = pipe._repr_mimebundle_()["text/html"]
        assert shown == pipe._repr_html_()
        assert "TableEncoder → FairClassifier" in shown
        assert f"{pipe[-1].accuracy_:.4f}" in shown
        assert "<svg" in shown
        boosted = FairBoostedClassifier(tau=0.6, n_folds=2).fit(X, y, sensitive_features=z)
        shown = boosted._repr_html_()
        assert f"{boosted.accuracy_:.4f}" in shown
        with config_context(display="text"):
            assert "text/html" not in boosted._repr_mimebundle_()

    def test_the_favourable_answer_comes_first(self):
        X, y, z = make_problem()
        owed = np.where(y, "paid", "owed")
        asked = {"tau": 0.5, "pos_label": "owed"}
        many = np.where(X[:, 0] > 0.5, "late", owed)
        for model, labels, says in (
            (FairClassifier(tau=0.5), y, "1"),
            (FairClassifier(**asked), owed, "owed"),
            (FairBoostedClassifier(**asked, n_folds=2), owed, "owed"),
            (
                FairClassifier(tau=0.1, method=Method(max_iter=10)),
                many,
                "late or owed or paid, each",
            ),
        ):
            shown = model.fit(X, labels, sensitive_features=z)._repr_html_()
            first = re.sub(r"(<[^>]*>)+", "|", shown.partition("<table")[2]).split("|")[1:3]
            assert first == ["favourable answer", says]

    def test_a_rate_that_is_unknown_and_names_with_commas(self):
        X, y, z = make_problem()
        model = FairClassifier(tau=0.5).fit(X, y, sensitive_features=np.where(z, "F, N", "F, Y"))
        model.rate_ = np.nan
        assert "F, N; F, Y" in model._repr_html_()
        assert "nan" not in model._repr_html_()

    def test_a_missed_target_says_how_near_it_came(self):
        X, y, z = make_problem(n=60)
        model = FairClassifier(tau=0.98, confidence=0.9)
        with pytest.warns(FairnessWarning):
            model.fit(X, y, sensitive_features=z)
        assert model.rate_ >= 0.98 > model.rate_bound_
        shown = model._repr_html_()
        assert (
            "✗ NOT reached on the training data with a confidence of about 0.9: "
            f"{model.rate_bound_:.3f} or more can be relied on<" in shown
        )
        assert f"{model.rate_:.3f} on the training data<" in shown

    def test_several_targets(self):
        X, y, z = make_problem()
        notions = ["statistical_parity", "equal_opportunity"]
        model = FairClassifier(notion=notions, tau=[0.6, 0.5]).fit(X, y, sensitive_features=z)
        for words in ("τ = 0.6, statistical rate<", "τ = 0.5, true positive rate ratio<"):
            assert words in model._repr_html_()
        model = FairClassifier(notion=notions, tau=0.6).fit(X, y, sensitive_features=z)
        assert "τ = 0.6, statistical parity and equal opportunity" in model._repr_html_()

    def test_what_data_say_is_escaped(self):
        X, y, z = make_problem()
        z = np.where(z, "<script>alert(1)</script>", "b")
        model = FairClassifier(tau=0.7).fit(X, y, sensitive_features=z)
        shown = model._repr_mimebundle_()["text/html"]
        assert "<script" not in shown
        assert "&lt;script&gt;" in shown
