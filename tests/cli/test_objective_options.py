"""What is maximised, from the command's options to its screens, pages and JSON."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
from helpers import run, words

from evenhand import load_model
from evenhand.cli.options import parse_objective
from evenhand.cli.wording import spell
from evenhand.core.errors import InputError, Parameter

ASKED = ("--label", "repaid", "--sensitive", "sex", "--favourable", "yes", "--confidence", "none")
COSTS = ("--cost-fp", "1", "--cost-fn", "5")


@pytest.fixture(scope="module")
def loans(tmp_path_factory):
    rng = np.random.default_rng(0)
    sex = rng.choice(["f", "m"], 1200)
    pay = rng.normal(0, 1, 1200) + 0.8 * (sex == "m")
    repaid = np.where(pay + 0.7 * rng.normal(0, 1, 1200) > 1.6, "yes", "no")
    folder = tmp_path_factory.mktemp("loans")
    table = pd.DataFrame({"sex": sex, "pay": pay.round(2), "score": pay.round(3), "repaid": repaid})
    table.to_csv(folder / "loans.csv", index=False)
    return folder


@pytest.mark.parametrize("command", ["train", "adjust"])
def test_costs_from_the_option_to_the_page(loans, command, monkeypatch):
    monkeypatch.chdir(loans)
    own = ("--exclude", "score")
    if command == "adjust":
        own = ("--scores", "score", "--exclude", "pay")
    done = run(command, "loans.csv", *ASKED, *COSTS, *own, "-o", f"{command}.model")
    text = words(done.output)
    assert done.exit_code in (0, 2), text
    sentence = "the profit; a false positive costs 1 and a false negative costs 5"
    assert sentence in text
    assert "profit per 1,000" in text
    model = load_model(f"{command}.model").model
    assert model[-1].objective == {"cost_fp": 1.0, "cost_fn": 5.0}
    page = (loans / f"{command}.html").read_text(encoding="utf-8")
    assert sentence in page
    assert "profit per 1,000 decisions" in page
    pick = run("pick", f"{command}.model", "--tau", "0.5", "-o", "p.model", "--json")
    found = json.loads(pick.stdout)
    assert found["objective"] == {"name": "profit", "gains": [[0.0, -1.0], [-5.0, 0.0]]}
    worth = found["reached"]["worth"]
    moved = load_model("p.model").model[-1]
    assert worth == moved.value_ < 0
    counts = np.array(found["saved"]["counts"]["train"], dtype=float).sum(axis=0)
    if command == "train":
        assert worth == pytest.approx((-counts[0, 1] - 5 * counts[1, 0]) / counts.sum())
    shown = words(run("frontier", "p.model").output)
    assert "profit as a bar" in shown
    assert sentence in shown
    points = json.loads(run("frontier", "p.model", "--json").stdout)["points"]
    assert all(a["worth"] >= b["worth"] - 1e-12 for a, b in itertools.pairwise(points))
    again = run("report", "p.model", "-o", "again.html")
    assert again.exit_code == 0
    assert sentence in (loans / "again.html").read_text(encoding="utf-8")


def test_balanced_accuracy_and_the_plain_model_at_its_best_cut(loans, monkeypatch):
    monkeypatch.chdir(loans)
    options = ("--objective", "balanced_accuracy", "--exclude", "score", "-o", "b.model")
    text = words(run("train", "loans.csv", *ASKED, *options).output)
    assert "maximised: the balanced accuracy: of the rows of each label" in text
    assert "Best cut: the score threshold that is best on training rows." in text
    found = json.loads(run("frontier", "b.model", "--json").stdout)
    assert "epsilon" not in found["saved"]
    saved = load_model("b.model")
    plain, best = saved.facts["plain"]["counts"], saved.facts["plain"]["best_cut"]["counts"]
    objective = saved.model[-1].fitted_.objective
    assert objective.value(best["train"]) > objective.value(plain["train"])
    moved = json.loads(run("pick", "b.model", "--epsilon", "0.1", "-o", "e.model", "--json").stdout)
    assert moved["reached"]["worth"] == load_model("e.model").model.value_ > 0.5  # keeps its sign


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--objective", "f1"), "--objective f1; it is accuracy, balanced_accuracy, or"),
        (
            ("--objective", "accuracy", *COSTS),
            "--objective accuracy and --cost-fp 1 --cost-fn 5",
        ),
        (("--cost-fp", "1"), "--cost-fp 1: the other answer to everybody would always be the"),
        (
            ("--profit-tp", "1", "--cost-fp", "-2"),
            "the favourable answer to everybody would",
        ),
        (("--cost-fp", "0"), "--cost-fp 0: no right answer would be worth more than the wrong"),
        (("--cost-fn", "nan", "--cost-fp", "1"), "--cost-fn nan; a finite number is needed"),
    ],
)
def test_what_is_refused(loans, options, said, monkeypatch):
    monkeypatch.chdir(loans)
    done = run("train", "loans.csv", *ASKED, *options)
    assert done.exit_code == 1, done.output
    assert said in words(done.output), words(done.output)


def test_spelling():
    told = Parameter("objective", {"cost_fp": 1.0, "profit_tn": 0.5})
    assert spell(told) == "--cost-fp 1 --profit-tn 0.5"
    assert spell(Parameter("objective", "balanced_accuracy")) == "--objective balanced_accuracy"
    assert parse_objective(None, cost_fp=None) == "accuracy"
    assert parse_objective(None, cost_fp=0.0, cost_fn=2.0) == {"cost_fp": 0.0, "cost_fn": 2.0}
    with pytest.raises(InputError):
        parse_objective("accuracy", cost_fp=1.0)
