"""Rows with weights: ``--weight`` of train, audit, compare and report."""

import json

import numpy as np
import pandas as pd
import pytest
from helpers import run, words

from evenhand import fair_pipeline, save_report
from evenhand.core.errors import InputError
from evenhand.workflow.audit import audit
from evenhand.workflow.train import train


def frame(n=600, seed=0):
    """Give a table of categories, so that no scale of a column depends on the number of rows."""
    rng = np.random.default_rng(seed)
    job, sex = rng.integers(4, size=n), np.where(rng.random(n) < 0.4, "f", "m")
    repaid = rng.random(n) < 0.25 + 0.1 * job + 0.15 * (sex == "m")
    said = np.where(rng.random(n) < 0.8, repaid, ~repaid).astype(int)
    w = rng.integers(4, size=n)
    columns = {"job": job.astype(str), "town": rng.choice(list("xyz"), n), "sex": sex}
    table = pd.DataFrame(columns | {"repaid": repaid.astype(int), "said": said, "w": w})
    table["job"] = "j" + table["job"]
    return table


def repeated(table):
    return table.loc[table.index.repeat(table["w"])].reset_index(drop=True)


def command(tmp_path, table, verb, *more):
    file = tmp_path / f"{verb}{len(table)}.csv"
    table.to_csv(file, index=False)
    args = [verb, str(file), "--label", "repaid", "--sensitive", "sex", *more, "--json"]
    done = run(*args)
    assert done.exit_code in (0, 2), done.output
    return json.loads(done.stdout)


def test_an_audit_by_weight_is_that_of_repeated_rows(tmp_path):
    table = frame()
    more = ["--prediction", "said"]
    one = command(tmp_path, table, "audit", *more, "--weight", "w")
    other = command(tmp_path, repeated(table), "audit", *more)
    for name, ratio in other["ratios"].items():
        assert one["ratios"][name] == pytest.approx(ratio)
        values = [g["value"] for g in one["rates"][name]]
        assert values == pytest.approx([g["value"] for g in other["rates"][name]])
        assert {g["low"] for g in one["rates"][name]} == {None}
        assert one["bounds"][name] == [None, None]
    assert one["accuracy"] == pytest.approx(other["accuracy"])
    assert one["association"] == pytest.approx(other["association"])
    assert (one["weight"], one["verdict"]["population"]) == ("w", "cannot be told")
    # Rows are counted as rows, and one of no weight is none.
    assert one["rows"]["accuracy"] == (table["w"] > 0).sum()
    assert one["dropped"] == [{"reason": "with a weight of 0 in 'w'", "n": (table["w"] == 0).sum()}]


def test_missing_answers_are_weighed_too():
    table = frame()
    table.loc[(table["sex"] == "f") & (table.index % 2 == 0), "said"] = np.nan
    given = {"label": "repaid", "prediction": "said", "sensitive": ["sex"], "tau": 0.3}
    one, other = audit(table, weight="w", **given), audit(repeated(table), **given)
    assert one["not_judged"] == other["not_judged"]
    assert one["ratios"] == pytest.approx(other["ratios"])


def test_training_by_weight_is_that_of_repeated_rows(tmp_path):
    table, test = frame(), frame(400, seed=1)
    found = []
    for rows, tests, more in (
        (table, test, ["--weight", "w"]),
        (repeated(table), repeated(test), ["--exclude", "w"]),
    ):
        tests.to_csv(tmp_path / "test.csv", index=False)
        out = ["--test", str(tmp_path / "test.csv"), "-o", str(tmp_path / "m.model")]
        more += ["--confidence", "none", "--tau", "0.9"]
        found.append(command(tmp_path, rows, "train", *out, *more))
    one, other = found
    for name in ("accuracy", "rate", "bound"):
        assert one["reached"][name] == pytest.approx(other["reached"][name], abs=1e-6)
    for key in ("plain", "saved"):
        for part in ("train", "test"):
            counts = one[key]["counts"][part]
            np.testing.assert_allclose(counts, other[key]["counts"][part], err_msg=key)
    assert [part["title"] for part in one["parts"]] == [
        "weighted training rows",
        "weighted test rows",
    ]
    assert one["parts"][1]["n"] == (test["w"] > 0).sum()
    assert one["verdict"]["population"] == "cannot be told"
    assert one["asked"]["weight"] == "w"
    kinds = {d["column"]: d["kind"] for d in one["data"]["decisions"]}
    assert kinds["w"] == "weight"


def test_screens_and_page_say_what_weights_mean(tmp_path):
    table = frame()
    table.to_csv(tmp_path / "loans.csv", index=False)
    args = [str(tmp_path / "loans.csv"), "--label", "repaid", "--sensitive", "sex", "--weight", "w"]
    out = ["-o", str(tmp_path / "m.model")]
    done = run("train", *args, "--survey-weights", *out)
    assert done.exit_code in (0, 2), done.output
    said = "All figures are weighted by “w”, the number of people that a row of a survey speaks for"
    assert said in words(done.stdout)
    unknown = "cannot be told: of weighted rows no exact interval is known"
    assert unknown in words(done.stdout)
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "weighted by “\u2068w\u2069”" in page
    assert unknown in page
    answers = tmp_path / "answers.csv"
    table.drop(columns=["w", "repaid"]).to_csv(tmp_path / "new.csv", index=False)
    done = run("predict", out[1], str(tmp_path / "new.csv"), "-o", str(answers))
    assert done.exit_code == 0, done.output
    done = run("audit", *args)
    assert "All figures are weighted by w; of weighted rows no exact interval" in words(done.stdout)
    assert "In brackets" not in done.stdout
    done = run("compare", *args, "--method", "evenhand", "--method", "reweighing", "--splits", "1")
    assert done.exit_code == 0, done.output
    assert "Fits and figures are weighted by w." in words(done.stdout)
    done = run("train", *args[:-2], "--survey-weights", *out)
    assert "name the column of the weights with --weight" in words(done.stderr)
    done = run("train", *args, "--confidence", "certified", *out)
    assert "is for unweighted rows" in words(done.stderr)


def test_comparison_by_weight_is_that_of_repeated_rows():
    from evenhand.peers._fit import Aim, fit_all
    from evenhand.peers._registry import named_peers

    table = frame()
    for key in ("evenhand", "accuracy_only"):
        peer = named_peers([key], "statistical_parity")[key]
        predictions = []
        for rows, weight in ((table[table["w"] > 0], "w"), (repeated(table), None)):
            X = pd.get_dummies(rows[["job", "town"]]).to_numpy(dtype=float)
            w = None if weight is None else rows[weight].to_numpy(dtype=float)
            groups = rows["sex"].to_numpy()
            aim = Aim("statistical_parity")
            model = fit_all(peer, aim, [0.8], 0, X, rows["repaid"], groups, w)(0.8)
            grid = pd.get_dummies(table[["job", "town"]]).to_numpy(dtype=float)
            predictions.append(model.predict(grid))
        np.testing.assert_array_equal(*predictions)


def test_report_of_weights_from_python(tmp_path):
    table = frame()
    X, y = table.drop(columns=["repaid", "said", "w"]), table["repaid"]
    model = fair_pipeline("sex").fit(X, y, sample_weight=table["w"])
    save_report(model, tmp_path / "page.html", X, y, sample_weight=table["w"])
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert "weighted by “\u2068sample_weight\u2069”" in page
    with pytest.raises(InputError, match="not the rows"):
        save_report(model, tmp_path / "page.html", X, y)


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ([-1.0, -2.0], "column 'w' is negative in 2 rows"),
        ([np.nan], "column 'w' has no value in 1 row,"),
        (["much", "1,5x"], "column 'w' holds no number in 2 rows, such as 'much'"),
        ([np.inf], "column 'w' is infinite in 1 row;"),
        ([0] * 600, "column 'w' is 0 in all 600 rows"),
    ],
)
def test_refused_weights(values, said):
    table = frame()
    table["w"] = pd.Series([*values, *[1] * (len(table) - len(values))], dtype=object)
    given = {"label": "repaid", "sensitive": ["sex"], "weight": "w"}
    for tool in (train, audit):
        with pytest.raises(InputError, match=said):
            tool(table, **given)


def test_refused_roles():
    table = frame()
    with pytest.raises(InputError, match="cannot be both the label and the weight"):
        train(table, label="repaid", sensitive=["sex"], weight="repaid")
    with pytest.raises(InputError, match="cannot be both sensitive and the weight"):
        audit(table, label="repaid", sensitive=["sex"], weight="sex")
    with pytest.raises(InputError, match="no column 'v'"):
        audit(table, label="repaid", sensitive=["sex"], weight="v")


def test_an_adjusted_model_by_weight_is_that_of_repeated_rows(tmp_path):
    found = []
    for table, more in ((frame(), ["--weight", "w"]), (repeated(frame()), [])):
        table["score"] = (table["job"].str[1].astype(float) + (table["sex"] == "m")) / 8
        more += ["--scores", "score", "--group-cuts", "--test-size", "0", "--no-report"]
        done = command(tmp_path, table, "adjust", *more, "-o", str(tmp_path / "m.model"))
        found.append([done["reached"][name] for name in ("rate", "bound", "accuracy")])
    assert found[0] == pytest.approx(found[1])


@pytest.mark.parametrize("mode", ["each", "both"])
def test_a_comparison_by_attributes(tmp_path, mode):
    table = frame(900)
    table.loc[:9, "town"] = "w"  # too few rows to test on
    more = ["--sensitive", "town", "--attributes", mode, "--method", "accuracy_only"]
    (row,) = command(tmp_path, table, "compare", *more, "--splits", "1", "--tau", "0.7")
    by = {"sex": ["f", "m"], "town": ["x", "y", "z"]}
    if mode == "both":
        by["sex × town"] = [f"{sex} & {town}" for sex in "fm" for town in "xyz"]
    rates = {k: [row[f"selection_rate[{k}: {g}]"] for g in groups] for k, groups in by.items()}
    ratios = {name: min(values) / max(values) for name, values in rates.items()}
    worst = min(ratios, key=ratios.get)
    assert row["rate"] == pytest.approx(ratios[worst])
    assert row["judged_by"] == f"statistical rate by {worst}"
    assert (row["attributes"], row["notion"]) == (mode, "statistical_parity")
    assert "w (10)" in row["small_groups"]
    assert not [name for name in row if name.endswith((": w]", "& w]"))]
