"""A boosted model from a table with words and gaps to its page."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingClassifier
from threadpoolctl import threadpool_limits

from evenhand import load_model, save_model
from evenhand.models.card import summary_html
from evenhand.views.report import render
from evenhand.views.report.drawings import SOURCE_WORDS
from evenhand.views.terminal.models import show_point
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train


@pytest.fixture(scope="module")
def saved():
    rng = np.random.default_rng(1)
    n = 500
    region = rng.choice(["North", "South", "Hills"], n)
    pay = np.exp(rng.normal(7, 0.5, n) + 0.3 * (region == "North")).round(2)
    town = np.where((region == "Hills") & (rng.random(n) < 0.9), "Upper <i>", "Lower")
    score = 2 * (np.log(pay) - 7) + rng.logistic(size=n)
    table = pd.DataFrame(
        {
            "region": region,
            "pay": np.where(rng.random(n) < 0.1, None, np.char.mod("%.2f", pay)),
            "town": town,
            "noise": rng.choice(["a", "b", "c"], n),
            "answer": np.where(score > 0, "yes", "no"),
        }
    )
    booster = HistGradientBoostingClassifier(max_iter=8, max_leaf_nodes=5)
    about = {"label": "answer", "sensitive": ["region"], "favourable": "yes", "boosted": True}
    with threadpool_limits(1):
        return train(table, **about, booster=booster, n_folds=2, tau=0.5)


def test_what_matters_is_what_made_the_table(saved):
    matters = {m["column"]: m for m in saved.facts["matters"]}
    assert set(matters) == {"pay", "town", "noise"}
    assert max(matters, key=lambda name: matters[name]["label"]) == "pay"
    assert max(matters, key=lambda name: matters[name]["group"]) == "town"
    assert matters["noise"]["label"] < matters["pay"]["label"] / 3


def test_file_page_and_card(saved, tmp_path):
    save_model(saved.model, tmp_path / "m", facts=saved.facts)
    again = load_model(tmp_path / "m")
    assert again.facts == saved.facts
    page = render(summarise(again))
    assert "HistGradientBoostingClassifier" in page
    assert "Which columns matter" in page
    assert "the probability can be lower: a new row is answered by the mean" in page
    summary = summarise(again)
    assert f"The saved model came from {SOURCE_WORDS[summary['saved']['source']]}." in page
    assert "the most accurate score of the same estimates" in page
    assert "plain logistic regression" not in page
    assert "HistGradientBoostingClassifier" in summary_html(again.model)
    moved = summarise(type(again)(again.model.at(0.7), again.facts))
    assert moved["boosted"] == summarise(saved)["boosted"]


def test_counts_on_the_training_rows_are_out_of_fold(saved):
    answers, counts = saved.model[-1].answers_, np.array(saved.facts["train_counts"])
    np.testing.assert_array_equal(counts[:-1], answers.counts)


def test_the_screen_says_what_the_probability_leaves_out(saved, capsys):
    summary = summarise(saved)
    show_point(summary, [])
    text = " ".join(capsys.readouterr().out.split())
    assert "Here the probability can be lower: a new row is answered by the mean" in text
    for told in (text, render(summary)):
        assert "Figures of training rows are by models that had not seen them." in told
    missed = {**summary["reached"], "target_reached": False}
    show_point({**summary, "reached": missed}, [])
    assert "the probability can be lower" not in " ".join(capsys.readouterr().out.split())


@pytest.mark.parametrize("library", ["lightgbm", "xgboost"])
def test_the_version_of_the_booster_is_written_down(library):
    there = pytest.importorskip(library)
    name = {"lightgbm": "LGBMClassifier", "xgboost": "XGBClassifier"}[library]
    booster = getattr(there, name)(n_estimators=3)
    rng = np.random.default_rng(0)
    table = pd.DataFrame({"x": rng.normal(size=200), "group": rng.choice(["a", "b"], 200)})
    table["answer"] = np.where(table["x"] + rng.normal(size=200) > 0, "yes", "no")
    about = {"label": "answer", "sensitive": ["group"], "favourable": "yes", "boosted": True}
    with threadpool_limits(1):
        found = train(table, **about, booster=booster, n_folds=2, tau=0.5)
    assert found.facts["versions"][library] == there.__version__
