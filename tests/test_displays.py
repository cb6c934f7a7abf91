import matplotlib as mpl
import numpy as np
import pytest
from conftest import make_problem
from sklearn.exceptions import NotFittedError
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

mpl.use("Agg")
import matplotlib.pyplot as plt

from evenhand import FairClassifier, FairnessWarning, FrontierDisplay


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
    np.testing.assert_array_equal(display.line_.get_xdata(), model.frontier_.rate)
    np.testing.assert_array_equal(display.line_.get_ydata(), model.frontier_.accuracy)
    text = display.ax_.get_legend().get_texts()[1].get_text()
    assert f"{model.accuracy_:.3f}" in text
    assert "statistical rate" in display.ax_.get_xlabel()
    assert any("0.7" in t.get_text() for t in display.ax_.texts)


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
