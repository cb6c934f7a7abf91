"""The command ``adjust``, from a column of scores to a model, its page and its answers."""

import json
import re

import numpy as np
import pandas as pd
import pytest
from helpers import in_place, raises, run, words
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from evenhand import FairAdjusted, fair_pipeline, load_model, save_report
from evenhand.models.card import summary_html


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    with threadpool_limits(1):
        yield


def table(n=500, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["f", "m", None], n, p=[0.45, 0.5, 0.05])
    pay = rng.normal(0, 1, n) + 0.8 * (sex == "m")
    score = 1 / (1 + np.exp(-pay))
    return pd.DataFrame(
        {
            "sex": sex,
            "pay": pay.round(2),
            "town": np.where(rng.random(n) < 0.7, np.where(sex == "m", "up", "down"), "mid"),
            "score": np.char.mod("%.4f", score),
            "repaid": np.where(rng.random(n) < score, "yes", "no"),
        }
    )


ABOUT = ("--label", "repaid", "--sensitive", "sex", "--favourable", "yes")
ABOUT += ("--missing-groups", "drop", "--scores", "score", "--tau", "0.6")


@pytest.fixture
def loans(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    table().to_csv("loans.csv", index=False)
    return tmp_path


@pytest.mark.parametrize("name", ["town", "late"])
def test_text_is_no_score(loans, name):
    rows = table().assign(late=lambda t: t["town"] == "up")
    rows.to_csv("loans.csv", index=False)
    done = run("adjust", "loans.csv", *in_place(ABOUT, ["--scores", name]), "-o", "m.model")
    values = {"town": "'up', 'mid', 'down'", "late": "'False', 'True'"}[name]
    said = f"column '{name}' cannot be the scores: none of its values is a number ({values}); "
    said += "give in --scores the column that has the model's score, a number in every row."
    assert (done.exit_code, words(done.stderr).strip()) == (1, f"evenhand: {said}")
    with raises("text_as_scores", column=name, values=values):
        fair_pipeline("sex", scores=name).fit(rows.dropna(), rows.dropna()["repaid"])


@pytest.mark.parametrize("aware", [False, True])
def test_from_scores_to_answers(loans, aware):
    known = ("--group-cuts",) if aware else ()
    done = run("adjust", "loans.csv", *ABOUT, *known, "-o", "m.model")
    text = words(done.output)
    assert done.exit_code in (0, 2), text
    assert "An existing model was adjusted: the scores in column 'score'" in text
    assert "“Before” is that model, cut at 0.5." in text
    assert "If it had seen these rows when it was made, every figure here is too good." in text
    assert ("The group is estimated from the score and 2 other columns." in text) != aware
    assert "the model as it was" in text
    page = (loans / "m.html").read_text(encoding="utf-8")
    assert "An existing model was adjusted" in page
    assert "plain logistic regression" not in page
    saved = load_model(loans / "m.model")
    model = saved.model[-1]
    rows = table().dropna(subset="sex")
    answered = (rows["score"].astype(float) > 0.5).sum()
    counts = [np.array(saved.facts["plain"]["counts"][part]) for part in ("train", "test")]
    assert sum(c[:, :, 1].sum() for c in counts) == answered
    assert "FairPipeline" in summary_html(saved.model)
    needed = ["score", "sex"] if aware else ["score", "pay", "town"]
    rows[needed].to_csv("new.csv", index=False)
    assert run("predict", "m.model", "new.csv", "-o", "out.csv").exit_code == 0
    answers = pd.read_csv("out.csv")["prediction"]
    np.testing.assert_array_equal(answers, saved.model.predict(rows))
    assert model.needs_group == aware
    moved = run("pick", "m.model", "--tau", "0.5", "-o", "n.model")
    assert "An existing model was adjusted" in words(moved.output)
    assert run("frontier", "m.model").exit_code == 0
    assert run("report", "m.model", "-o", "again.html").exit_code == 0


def test_the_score_alone_and_json(loans):
    table()[["sex", "score", "repaid"]].to_csv("alone.csv", index=False)
    done = run("adjust", "alone.csv", *ABOUT, "--json", "--no-report")
    found = json.loads(done.output)
    assert found["adjusted"]["words"] == "the scores in column 'score', taken as they are"
    sentence = found["adjusted"]["sentence"]
    assert "only its cut is chosen: give the columns" in sentence
    assert found["adjusted"]["before"] == "at 0.5"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"score": "0.5"}, "every score in column 'score' is 0.5"),
        ({"score": "high"}, "column 'score'"),
        ({"first": "high"}, "column 'score' has the value 'high' in row 3 (1 such row)"),
        ({"first": ""}, "column 'score' has no value in row 3 (1 such row)"),
    ],
)
def test_scores_that_cannot_be_adjusted(loans, change, said):
    frame = table()
    if "score" in change:
        frame["score"] = change["score"]
    else:
        frame.loc[2, "score"] = change["first"]
    frame = frame.dropna(subset="sex") if "score" in change else frame.fillna({"sex": "f"})
    frame.to_csv("bad.csv", index=False)
    done = run("adjust", "bad.csv", *ABOUT)
    assert done.exit_code == 1
    assert said in words(done.output)
    assert not (loans / "evenhand.model").exists()


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--scores", "repaid"), "column 'repaid' cannot be both the scores and the label"),
        (("--scores", "sex"), "column 'sex' cannot be both the scores and sensitive"),
        (("--exclude", "score"), "column 'score' cannot be both the scores and left out"),
        (("--scores", "none"), "the table has no column 'none'"),
    ],
)
def test_columns_that_are_no_scores(loans, options, said):
    done = run("adjust", "loans.csv", *in_place(ABOUT, options))
    assert done.exit_code == 1
    assert said in words(done.output)


def test_a_new_row_needs_a_score(loans):
    run("adjust", "loans.csv", *ABOUT, "-o", "m.model")
    frame = table()
    frame.loc[7, "score"] = "?"
    frame.to_csv("new.csv", index=False)
    done = run("predict", "m.model", "new.csv", "-o", "out.csv")
    assert done.exit_code == 1
    assert "column 'score' has no value in row 8" in words(done.output)


def test_a_saved_model_in_a_comparison(loans):
    run("adjust", "loans.csv", *ABOUT, "-o", "m.model")
    about = (*ABOUT[:8], "--method", "accuracy_only", "--splits", "1", "--tau", "0.6")
    done = run("compare", "loans.csv", *about, "--model", "m.model")
    text = words(done.output)
    assert done.exit_code == 0, text
    assert "m.model: trained on this very table" in text
    table(seed=1).to_csv("other.csv", index=False)
    text = words(run("compare", "other.csv", *about, "--model", "m.model").output)
    assert "if test rows are among those that it was fitted to, which cannot be told" in text
    assert "Every method that is fitted here is chosen by its ratio on the training part" in text
    flipped = (*about[:5], "no", *about[6:])
    done = run("compare", "other.csv", *flipped, "--model", "m.model")
    assert done.exit_code == 1
    assert "m.model is about the favourable answer yes" in words(done.output)


def test_a_comparison_by_differences(loans):
    run("adjust", "loans.csv", *ABOUT, "-o", "m.model")
    run("adjust", "loans.csv", *ABOUT, "--notion", "equal_opportunity", "-o", "n.model")
    about = (*ABOUT[:8], "--method", "accuracy_only", "--splits", "1", "--epsilon", "0.4")
    about += ("--model", "m.model", "--model", "n.model")
    text = words(run("compare", "loans.csv", *about).output)
    assert "selection rate difference, ε = 0.4, test data" in text
    assert text.count("trained on this very table") == 1
    assert "n.model was made for equal_opportunity and is judged by" in text
    assert "is asked for several ratios, and gets the most accurate that reaches ε" in text
    rows = json.loads(run("compare", "loans.csv", *about, "--json").stdout)
    for row in rows:
        told = row["notion"], row["comparison"], row["judged_by"], row["epsilon"]
        assert told == ("statistical_parity", "difference", "selection rate difference", 0.4)
        shares = [row["selection_rate[f]"], row["selection_rate[m]"]]
        assert row["difference"] == pytest.approx(max(shares) - min(shares))
    refused = run("compare", "loans.csv", *about, "--tau", "0.8")
    assert refused.exit_code == 1
    assert "--tau and --epsilon: groups are compared in one way" in words(refused.output)


def test_a_cut_of_a_score_estimates_no_group_and_means_no_models(loans):
    about = [*ABOUT, "--json", "-o", "m.model"]
    table()[["sex", "score", "repaid"]].to_csv("alone.csv", index=False)
    for options in (("alone.csv", *about), ("loans.csv", *about, "--group-cuts")):
        found = json.loads(run("adjust", *options).output)
        assert (found["too_sure"], found["boosted"]["guessed"]) == (None, False)
        page = words((loans / "m.html").read_text(encoding="utf-8"))
        assert not re.search("estimate the group|Estimate of the group|by both estimates", page)
    found = json.loads(run("adjust", "loans.csv", *about).output)
    assert (found["too_sure"], found["boosted"]["guessed"]) == ("boosted", True)
    assert "Estimate of the group" in words((loans / "m.html").read_text(encoding="utf-8"))


@pytest.mark.parametrize("prefit", [False, True])
def test_a_page_says_whether_rows_were_new_to_the_estimator(tmp_path, prefit):
    rows = table().dropna(subset="sex")[["sex", "pay", "repaid"]].fillna({"pay": 0})
    X, y = rows[["sex", "pay"]], rows["repaid"]
    mine = LogisticRegression()
    if prefit:
        mine.fit(X[["pay"]].to_numpy(), y)
    adjusted = FairAdjusted(mine, prefit=prefit, tau=0.5, pos_label="yes", random_state=0)
    model = fair_pipeline("sex", classifier=adjusted).fit(X, y)
    save_report(model, tmp_path / "a.html", X, y)
    page = (tmp_path / "a.html").read_text(encoding="utf-8")
    how = "as it was fitted, to other rows" if prefit else "fitted out of fold"
    assert f"the scores of LogisticRegression, {how}" in page
    assert ("If it had seen these rows when it was made" in page) == prefit
