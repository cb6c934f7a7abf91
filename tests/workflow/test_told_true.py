"""Small tables on which audit, train and compare once said what was not so."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import run, words

from evenhand.workflow.audit import audit as audit_table

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
        assert "those marked ? cannot be told" in text

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
        assert "asses" not in text
        assert "Selection rate: within the four-fifths rule (0." in text
        assert "Of the rates that need lab, those marked ? cannot be told." in text
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
        with pytest.raises(ValueError, match="--favourable and --favourable-label"):
            audit_table(frame, **asked, favourable="1")
        found = audit_table(frame, **asked, favourable="yes", favourable_label="0")
        assert found["accuracy"] > 0.75
        with pytest.raises(ValueError, match="--favourable-label '2' is no value of column"):
            audit_table(frame, **asked, favourable="yes", favourable_label="2")
        with pytest.raises(ValueError, match="use --favourable"):
            audit_table(frame, label="default", sensitive=["g"], favourable_label="0")

    def test_nothing_is_said_of_good_predictions(self, tmp_path):
        text = shown(tmp_path, answers(A=(100, 100), B=(100, 100)), *AUDIT)
        assert "opposite" not in text
