"""Small tables on which audit, train and compare once said what was not so."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import Page, raises, run, words
from sklearn.linear_model import LogisticRegression

from evenhand.core.errors import Parameter
from evenhand.persist.model_file import load_model
from evenhand.views.report import render
from evenhand.views.report.drawings import frontier_drawing, place
from evenhand.views.report.figures import page_data
from evenhand.views.terminal.models import say_test
from evenhand.views.terminal.screen import Screen
from evenhand.workflow.audit import audit as audit_table
from evenhand.workflow.labels import label_values
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train as train_table

AUDIT = ["--label", "lab", "--prediction", "pred", "--sensitive", "g"]


def answers(seed=0, **groups):
    """Rows of groups, each with how many have a label; four in five predictions are right."""
    rng, parts = np.random.default_rng(seed), []
    for g, (n, labelled) in groups.items():
        pred = rng.random(n) < 0.5
        lab = np.where(rng.random(n) < 0.8, pred, ~pred).astype(int).astype(object)
        lab[labelled:] = None
        parts.append(pd.DataFrame({"g": g, "pred": pred.astype(int), "lab": lab}))
    return pd.concat(parts, ignore_index=True)


def audit(frame, **options):
    return audit_table(frame, label="lab", prediction="pred", sensitive=["g"], **options)


def shown(tmp_path, frame, *args, command="audit", code=None):
    frame.to_csv(tmp_path / "t.csv", index=False)
    result = run(command, str(tmp_path / "t.csv"), *args)
    assert code in (None, result.exit_code), result.output
    return words(result.stdout)


class TestGroupsWithoutLabels:
    """A ratio that is undefined, or of few rows, for lack of labels is not judged."""

    def test_one_of_two(self, tmp_path):
        frame = answers(A=(500, 500), B=(500, 0))
        found = audit(frame)
        needy = [name for name in found["rates"] if name != "selection_rate"]
        assert found["not_judged"] == needy
        assert all(found["ratios"][name] is None for name in needy)
        text = shown(tmp_path, frame, *AUDIT)
        assert "stays on its side" not in text
        assert "asses" not in text
        assert "No rate that needs lab can be judged" in text
        assert "fewer than 30 rows have lab: B (0 of 500 rows)" in text
        assert text.count(" – ? ") == len(needy)

    def test_one_of_three(self, tmp_path):
        text = shown(tmp_path, answers(A=(500, 500), B=(500, 500), C=(500, 0)), *AUDIT)
        assert "Among C" not in text
        assert "100.0% of the 500 rows of C" in text
        assert "those marked ? cannot be judged" in text

    def test_five_rows_do_not_decide(self, tmp_path):
        frame = answers(A=(2000, 2000), B=(2000, 2000), C=(2031, 5))
        frame.loc[frame.g.eq("C") & frame.lab.notna(), ["pred", "lab"]] = [0, 1]
        found = audit(frame)
        known = frame[frame.lab.notna() & frame.g.ne("C")].astype({"lab": int})
        true = known[known.lab.eq(1)].groupby("g").pred.mean()
        assert found["ratios"]["true_positive_rate"] == pytest.approx(true.min() / true.max())
        assert found["few_labels"] == [{"group": "C", "rows": 2031, "labelled": 5}]
        assert found["rates"]["true_positive_rate"][2]["rows"] == 5
        assert not found["rates"]["true_positive_rate"][2]["compared"]
        assert found["rates"]["selection_rate"][2]["rows"] == 2031
        assert found["rows"]["accuracy"] == 4000
        assert "true_positive_rate" in found["not_judged"]
        text = shown(tmp_path, frame, *AUDIT)
        assert "not compared by rates that need lab, fewer than 30 rows have lab: C (5 of" in text
        assert text.count("C 2,031 ") == 1  # beside the selection rate alone
        assert text.count("C 5 – –") == 4
        assert "Who has no lab depends on g: it is missing in 0.0% of the 2,000 rows of A" in text

    def test_what_no_label_can_change_is_judged(self):
        """B is far behind A, whatever the labels of C are."""
        frame = answers(A=(500, 500), B=(500, 500), C=(500, 5))
        b = frame.g.eq("B")
        frame.loc[b, "lab"] = 1 - frame.pred[b]
        found = audit(frame)
        assert "accuracy" not in found["not_judged"]
        assert found["ratios"]["accuracy"] < 0.8
        assert "false_positive_rate" not in found["not_judged"]

    def test_the_privileged_group_may_lack_labels(self):
        frame = answers(A=(500, 500), B=(500, 500), C=(500, 5))
        found = audit(frame, privileged="C")["ratios_to_privileged"]
        assert found["accuracy"] == [None] * 3
        assert found["selection_rate"][2] == 1

    def test_the_verdict_names_its_rate(self, tmp_path):
        """Labels of accepted people alone."""
        frame = answers(A=(500, 500), B=(500, 500)).astype({"lab": "Int64"})
        frame.loc[frame.pred.eq(0), "lab"] = None
        text = shown(tmp_path, frame, *AUDIT, code=0)
        assert (
            "The four-fifths rule is met: the ratio of the smallest to the largest selection"
            in text
        )
        assert "Of the rates that need lab, those marked ? cannot be judged." in text
        told = json.loads(run("audit", str(tmp_path / "t.csv"), *AUDIT, "--json").stdout)
        assert (told["passed"], told["passed_rate"]) == (True, "selection_rate")
        assert "true_positive_rate" in told["not_judged"]

    def test_brackets_are_intervals_alone(self, tmp_path):
        text = shown(tmp_path, answers(A=(500, 500), B=(500, 0)), *AUDIT)
        assert text.count("In brackets") == 1
        assert "in brackets" not in text


class TestOppositeAnswers:
    """A label such as "default" says the opposite of approved."""

    def frame(self):
        frame = answers(A=(500, 500), B=(500, 500)).rename(columns={"pred": "approved"})
        return frame.assign(default=1 - frame.pop("lab").astype(int))

    def test_both_are_named_and_the_option_is_shown(self, tmp_path):
        args = ["--label", "default", "--prediction", "approved", "--sensitive", "g"]
        text = shown(tmp_path, self.frame(), *args)
        assert text.startswith("favourable answer: approved = 1; of the label: default = 1 ")
        assert "may count opposite answers as favourable" in text
        assert "say --favourable-label 0." in text
        told = json.loads(
            run("audit", str(tmp_path / "t.csv"), *args, "--favourable-label", "0", "--json").stdout
        )
        assert told["favourable_answer"] == "approved = 1; of the label: default = 0"
        assert told["accuracy"] == pytest.approx(
            (self.frame().approved != self.frame().default).mean()
        )
        good = self.frame().query("default == 0").groupby("g").approved.mean()
        rates = told["rates"]["true_positive_rate"]
        assert [g["value"] for g in rates] == pytest.approx(good.tolist())
        assert told["opposite"] is None

    def test_other_words_than_the_label(self):
        frame = self.frame().replace({"approved": {1: "yes", 0: "no"}})
        asked = {"label": "default", "prediction": "approved", "sensitive": ["g"]}
        with raises("answer_is_no_label", column="approved", label="default", value="no"):
            audit_table(frame, **asked, favourable="1")
        found = audit_table(frame, **asked, favourable="yes", favourable_label="0")
        assert found["accuracy"] > 0.75
        with raises("unknown_value", given=Parameter("favourable_label", "2"), column="default"):
            audit_table(frame, **asked, favourable="yes", favourable_label="2")
        with raises("favourable_label_alone"):
            audit_table(frame, label="default", sensitive=["g"], favourable_label="0")

    def test_nothing_is_said_of_good_predictions(self, tmp_path):
        text = shown(tmp_path, answers(A=(100, 100), B=(100, 100)), *AUDIT)
        assert "opposite" not in text


TRAIN = ["--label", "y", "--sensitive", "g", "--tau", "0.5"]


def people(seed=0, **groups):
    """Rows of groups, each with a shift of its scores."""
    rng = np.random.default_rng(seed)
    sizes, shifts = zip(*groups.values(), strict=True)
    g = np.repeat(list(groups), sizes)
    x = rng.normal(size=len(g)) + np.repeat(shifts, sizes)
    y = (x + rng.normal(size=len(g)) > 0).astype(int).astype(object)
    return pd.DataFrame({"g": g, "x": x, "other": rng.normal(size=len(g)), "y": y})


class TestSmallGroups:
    """A group that is too small to compare is told beside the verdict."""

    def train(self, tmp_path, frame):
        args = [*TRAIN, "-o", str(tmp_path / "m.model")]
        text = shown(tmp_path, frame, *args, command="train").replace("“", "").replace("”", "")
        page = Page((tmp_path / "m.html").read_text(encoding="utf-8")).text
        told = json.loads(run("train", str(tmp_path / "t.csv"), *args, "--json").stdout)
        return text, page.replace("“", "").replace("”", ""), told

    def test_that_they_would_change_the_verdict_is_said(self, tmp_path):
        frame = people(a=(1500, 0.3), b=(1500, 0), tiny=(37, -9))
        text, page, told = self.train(tmp_path, frame)
        assert told["reached"]["feasible"]
        small = told["not_compared"]
        saved = load_model(tmp_path / "m.model")
        answer = saved.model.predict(frame[frame.g == "tiny"])
        assert (answer == 0).all()
        assert small["groups"] == {"tiny": 26}
        assert small["rows_are"] == "training rows"
        assert small["changes_verdict"]
        assert [part["values"] for part in small["parts"]] == [[0], [0]]
        assert [part["rows"] for part in small["parts"]] == [[26], [11]]
        for told_ in (text, page):
            assert "1 group has fewer than 30 training rows and is not compared: tiny" in told_
            assert "selection rate among its rows: 0.0% of 26 training rows and 0.0% of 11" in told_
            assert "the ratio would be 0.000 on the training rows and 0.000 on the test" in told_
        assert "! Target reached, 1 small group not compared" in page
        verdict = text.index("is reached on the training data")
        assert verdict < text.index("1 group has fewer") < text.index("On 2,")

    def test_several_are_told_together(self, tmp_path):
        frame = people(a=(1500, 0.3), b=(1500, 0), few=(30, 0.2), tiny=(20, 0.2))
        text, page, told = self.train(tmp_path, frame)
        assert not told["not_compared"]["changes_verdict"]
        assert "2 groups have fewer than" in text
        assert "among their rows together" in text
        assert "would be" not in text
        assert "✓ Target reached, 2 small groups not compared" in page

    def test_none_is_small(self, tmp_path):
        text, page, told = self.train(tmp_path, people(a=(500, 0.3), b=(500, 0), c=(500, 0)))
        assert "not_compared" not in told
        assert "not compared" not in text + page

    @pytest.mark.parametrize(
        ("command", "rows"),
        [("train", "training rows"), ("audit", "rows of the file"), ("compare", "test rows")],
    )
    def test_each_command_says_which_rows_it_counts(self, command, rows, monkeypatch):
        monkeypatch.setenv("COLUMNS", "200")
        assert f"Groups of fewer {rows}" in words(run(command, "--help").stdout)


class TestLabelsOfSomeGroups:
    """What cannot be judged is not called missed."""

    def test_a_group_with_few_labels(self, tmp_path):
        frame = people(a=(1000, 0), b=(1000, 0), c=(1000, 0))
        frame.loc[frame.index[frame.g == "c"][20:], "y"] = None
        args = [*TRAIN, "-o", str(tmp_path / "m.model")]
        text = shown(tmp_path, frame, *args, command="train", code=2)
        page = Page((tmp_path / "m.html").read_text(encoding="utf-8")).text
        assert "Over all rows the target cannot be judged" in text
        assert "among rows that have a y; over all rows it cannot be judged" in text
        assert "NOT" not in text
        assert "! Reached among rows with a label, cannot be judged over all rows" in page
        assert "missed" not in page.split("What to expect")[0]
        every = summarise(load_model(tmp_path / "m.model"))["all_rows"]
        assert (every["judged"], every["reached"]) == (False, False)

    def test_missed_by_the_others_is_missed(self, tmp_path):
        """Of a and b, rows without a label pull b far down; c changes nothing in that."""
        frame = people(a=(1000, 1), b=(1000, 1), c=(500, 0))
        frame.loc[frame.index[frame.g == "c"][20:], "y"] = None
        lost = people(seed=1, b=(3000, -5)).assign(y=None)
        args = [*TRAIN, "-o", str(tmp_path / "m.model")]
        text = shown(tmp_path, pd.concat([frame, lost]), *args, command="train", code=2)
        assert "but NOT over all rows" in text
        assert "cannot be" not in text.split("The figures")[0]
        assert "cannot be judged" not in text
        assert "Besides, 480 rows of “c” have no “y”" in text

    @pytest.mark.parametrize("command", ["train", "compare"])
    def test_labels_of_one_group_alone(self, tmp_path, command):
        frame = people(a=(100, 0), b=(100, 0))
        frame.loc[frame.g == "b", "y"] = None
        frame.to_csv(tmp_path / "t.csv", index=False)
        args = ["--label", "y", "--sensitive", "g"]
        refused = words(run(command, str(tmp_path / "t.csv"), *args).stderr)
        assert (
            "only rows of 'a' have a value in 'y'; 'b' has rows, but none with a label" in refused
        )


class TestLabelsAsTheyAreWritten:
    """Labels that differ by case are named; codes with leading zeros keep them."""

    @pytest.mark.parametrize("command", ["train", "audit"])
    def test_case(self, tmp_path, command):
        frame = people(a=(150, 0), b=(150, 0)).replace({"y": {1: "yes", 0: "no"}})
        frame.loc[::7, "y"] = frame.y[::7].replace("yes", "Yes")
        n, m = (frame.y == "Yes").sum(), (frame.y == "yes").sum()
        frame.to_csv(tmp_path / "t.csv", index=False)
        call = [command, str(tmp_path / "t.csv"), "--label", "y", "--sensitive", "g"]
        more = ["--favourable", "yes"] if command == "audit" else ["-o", str(tmp_path / "m")]
        result = run(*call, *more)
        said = f"'Yes' ({n} rows) and 'yes' ({m} rows) in y are counted as different answers"
        assert said in words(result.stdout + result.stderr)
        if command == "train":
            assert said in json.loads(run(*call, *more, "--json").stdout)["notes"][0]

    def test_leading_zeros(self, tmp_path):
        frame = people(a=(150, 0), b=(150, 0)).replace({"y": {1: "02", 0: "01"}})
        call = ["--label", "y", "--sensitive", "g", "--favourable", "02"]
        text = shown(tmp_path, frame, *call, "-o", str(tmp_path / "m"), command="train")
        assert text.startswith("favourable answer: y = 02 ")
        out = tmp_path / "out.csv"
        run("predict", str(tmp_path / "m"), str(tmp_path / "t.csv"), "-o", str(out))
        assert set(pd.read_csv(out, dtype=str)["prediction"]) <= {"01", "02"}
        assert label_values(frame, "y")[0].tolist() == frame.y.tolist()
        assert label_values(frame.replace({"01": "1", "02": "2"}), "y")[0].dtype.kind == "i"


class TestWeightsOfManyLabels:
    """A weight raises the score of its label; that the label is given more often is not said."""

    def test_what_the_caption_says_is_so(self):
        rng = np.random.default_rng(0)
        x = rng.normal(size=3000)
        score = x + 0.5 * rng.normal(size=3000)
        frame = pd.DataFrame({"x": x, "g": rng.choice(["a", "b"], 3000)})
        frame["y"] = np.select([score < -1, score < 0], ["low", "mid"], "high")
        saved = train_table(frame, label="y", sensitive=["g"], tau=0.5, test_size=0)
        text = Page(render(summarise(saved))).text
        assert "raises the score of the answer in the heading, before it is compared" in text
        assert "makes this answer rarer all the same" in text
        assert "speaks for the answer" not in text
        tables = {t["label"]: t["inputs"] for t in summarise(saved)["weights"]}
        weight = {label: inputs[0]["fair"] for label, inputs in tables.items()}
        labels, higher = saved.model.classes_.tolist(), frame.assign(x=x + 1)
        before, after = map(saved.model.decision_function, (frame, higher))
        for label, w in weight.items():
            moved = (after - before)[:, labels.index(label)]
            assert (np.sign(moved) == np.sign(w)).all()
        rarer = [
            label
            for label, w in weight.items()
            if w > 0
            and np.mean(saved.model.predict(higher) == label)
            < np.mean(saved.model.predict(frame) == label)
        ]
        assert rarer == ["mid"]

    def test_two_labels(self):
        saved = train_table(people(a=(300, 0), b=(300, 0)), label="y", sensitive=["g"], tau=0.1)
        text = Page(render(summarise(saved))).text
        assert "speaks for the answer in the heading" in text
        assert "rarer" not in text


class TestCompare:
    """Compare names leaks as train does, and says plainly why a method is left out."""

    QUICK = ("--label", "y", "--sensitive", "g", "--splits", "1", "--tau", "0.3")

    def frame(self, *groups):
        frame = people(**dict.fromkeys(groups, (300, 0)))
        rng = np.random.default_rng(1)
        noise = 0.01 * rng.normal(size=(2, len(frame)))
        return frame.assign(leak=frame.y.astype(int) + noise[0], proxy=(frame.g == "a") + noise[1])

    def test_leaks_are_named_and_can_be_left_out(self, tmp_path):
        args = [*self.QUICK, "--method", "evenhand"]
        text = shown(tmp_path, self.frame("a", "b"), *args, command="compare", code=0)
        assert "column 'leak' tells the label without fail" in text
        assert "--exclude leak" in text
        assert "--exclude proxy" in text
        args += ["--exclude", "leak", "--exclude", "proxy"]
        text = shown(tmp_path, self.frame("a", "b"), *args, command="compare", code=0)
        assert "note:" not in text
        (row,) = json.loads(run("compare", str(tmp_path / "t.csv"), *args, "--json").stdout)
        assert row["accuracy"] < 0.9
        assert row["notes"] == ""

    def test_labels_that_differ_by_case(self, tmp_path):
        frame = self.frame("a", "b").replace({"y": {1: "yes", 0: "no"}})
        frame.loc[::7, "y"] = frame.y[::7].replace("yes", "Yes")
        args = [*self.QUICK, "--method", "accuracy_only", "--favourable", "yes"]
        text = shown(tmp_path, frame, *args, command="compare")
        assert "in y are counted as different answers" in text

    def test_methods_for_two_groups(self, tmp_path):
        methods = ["--method", "evenhand", "--method", "celis"]
        text = shown(tmp_path, self.frame(*"abc"), *self.QUICK, *methods, command="compare")
        assert "left out: Celis: sensitive_features has 3 groups" in text
        assert "Error" not in text


def test_the_page_says_no_frequency_that_was_not_measured():
    saved = train_table(people(a=(400, 0), b=(400, 0)), label="y", sensitive=["g"], tau=0.5)
    text = Page(render(summarise(saved))).text
    assert "more often below" not in text
    assert "among them the ratio can be below the target" in text


@pytest.mark.parametrize("alone", [True, False])
def test_the_page_tells_of_an_adversary_where_one_played(alone):
    frame = people(a=(400, 0.5), b=(400, 0))
    about = {"label": "y", "sensitive": ["g"], "tau": 0.8, "group_cuts": alone}
    saved = train_table(frame, **about, test_size=0)
    assert (set(summarise(saved)["curves"]["leg"]) == {"optimum"}) == alone
    text = Page(render(summarise(saved))).text
    assert ("dversary" in text) != alone
    assert ("Many of the steps left models behind" in text) != alone
    told = "the models that the target picks among are its score with other cuts, one for each gro"
    assert (told in text) == alone


@pytest.mark.parametrize("selection", ["crossfit", "holdout"])
def test_figures_of_rows_fitted_to_are_told_before_them(tmp_path, selection):
    frame = people(a=(400, 0.3), b=(400, 0))
    args = [*TRAIN, "-o", str(tmp_path / "m.model"), "--test-size", "0"]
    told = "the model looks fairer and more accurate than it is"
    text = shown(tmp_path, frame, *args, command="train")
    assert told not in text
    text = shown(tmp_path, frame, *args, "--selection", selection, command="train")
    assert 0 < text.index(told) < text.index("On 800 training rows")
    assert told in Page((tmp_path / "m.html").read_text(encoding="utf-8")).text


@pytest.mark.parametrize(
    ("selection", "told"),
    [
        ("train", ""),
        ("crossfit", "figures out of fold are"),
        ("holdout", "the held-out rows alone"),
    ],
)
def test_scores_had_not_seen_the_rows_and_the_cuts_had(selection, told):
    frame = people(a=(200, 0.3), b=(200, 0))
    about = {"label": "y", "sensitive": ["g"], "tau": 0.5, "boosted": True, "n_folds": 2}
    about |= {"booster": LogisticRegression(), "group_cuts": True, "confidence": None}
    text = Page(
        render(summarise(train_table(frame, **about, selection=selection, test_size=0)))
    ).text
    assert "by models that had not seen them" in text
    assert ("But the cuts were" in text) == (selection != "train")
    assert told in text


@pytest.mark.parametrize(
    ("options", "where"),
    [
        ({"group_cuts": True}, ", out of fold"),
        ({}, ", on test rows"),
        ({"test_size": 0}, ", on training rows, where it looks better than it is"),
    ],
)
def test_plain_regression_is_drawn_as_the_line_is_or_says_of_which_rows(options, where):
    frame = people(a=(200, 0.5), b=(200, 0))
    frame = frame.join(
        pd.DataFrame(np.random.default_rng(1).normal(size=(400, 40))).add_prefix("n")
    )
    about = {"label": "y", "sensitive": ["g"], "tau": 0.5, "selection": "crossfit"}
    summary = summarise(train_table(frame, **about | options))
    model, counts = page_data(summary), summary["plain"]["counts"]
    drawn, test = model["before"], counts.get("test")
    assert f"plain logistic regression{where}" in Page(render(summary)).text
    worth = {key: np.trace(np.sum(c, axis=0)) / np.sum(c) for key, c in counts.items()}
    if "group_cuts" in options:
        # Other models judge each fold: far from the figure of the rows fitted to.
        assert drawn[1] < worth["train"] - 0.02
        judged = np.array(summary["plain"]["judged"])
        assert judged.sum() == np.sum(counts["train"])
        assert drawn[1] == pytest.approx(np.trace(judged.sum(axis=0)) / judged.sum())
    else:
        assert drawn[1] == pytest.approx(worth["test" if test else "train"])
    x, y = frontier_drawing(model)["before"]
    assert (x, y) == place(model["box"], *drawn)


@pytest.mark.parametrize(("goal", "asks"), [("tau", "asks for a τ"), ("epsilon", "asks for an ε")])
def test_the_article_of_a_greek_letter(goal, asks, capsys):
    about = {"label": "y", "sensitive": ["g"], goal: 0.5, "confidence": None}
    summary = summarise(train_table(people(a=(200, 0.5), b=(200, 0)), **about))
    summary["saved"]["counts"]["test"] = [[[0, 9], [0, 9]], [[9, 0], [9, 0]]]
    say_test(Screen(), summary)
    assert asks in words(capsys.readouterr().out)
