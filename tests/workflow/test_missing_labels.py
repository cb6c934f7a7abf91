"""Rows without a label: figures are of the others, and every screen and document says so."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import Page, run, words

from evenhand.persist.model_file import load_model, save_model
from evenhand.views.report import render
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train as train_table

ROLES = ["--label", "repaid", "--sensitive", "sex"]
ASKED = {"label": "repaid", "sensitive": ["sex"]}


def loans(n=3000, seed=0):
    """Who had little chance got no loan, so that nobody knows: more often a woman."""
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    income = rng.normal(size=n) + 1.0 * (sex == "M")
    repaid = np.where(income + rng.normal(size=n) > 0, "1", "0").astype(object)
    repaid[income < rng.normal(0, 0.3, n)] = None
    return pd.DataFrame(
        {"income": income, "debt": rng.normal(size=n), "sex": sex, "repaid": repaid}
    )


def evenly(n=3000):
    """A label in fifty is missing, whoever it is of."""
    frame = loans(n)
    frame["repaid"] = np.where(frame.income > 0, "1", "0").astype(object)
    for sex in ("F", "M"):
        frame.loc[frame.index[frame.sex == sex][::50], "repaid"] = None
    return frame


def trained(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return train_table(frame, **(ASKED | options))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("loans")
    loans().to_csv(folder / "loans.csv", index=False)
    call = ["train", str(folder / "loans.csv"), *ROLES, "-o", str(folder / "m.model"), "--json"]
    (folder / "told.json").write_text(run(*call).stdout)
    return folder


def over_all(saved, frame):
    """Share of each group that is predicted 1, of all rows."""
    return pd.Series(saved.model.predict(frame) == 1).groupby(frame.sex.to_numpy()).mean()


def test_the_ratio_over_all_rows_is_that_of_the_predictions(folder):
    told = json.loads((folder / "told.json").read_text())
    frame = loans()
    assert told["unlabelled"]["n"] == frame.repaid.isna().sum()
    for group, rows in frame.groupby("sex"):
        found = {"rows": len(rows), "missing": int(rows.repaid.isna().sum())}
        assert told["unlabelled"]["groups"][group] == found
    assert told["unlabelled"]["related"]
    rates = over_all(load_model(folder / "m.model"), frame)
    assert told["all_rows"]["n"] == len(frame)
    assert told["all_rows"]["rates"][0]["groups"] == pytest.approx(rates.to_dict())
    assert told["all_rows"]["ratio"] == pytest.approx(rates["F"] / rates["M"])
    assert told["reached"]["target_reached"]
    assert not told["all_rows"]["reached"]


def test_screen_and_page_say_so_next_to_the_verdict(folder, tmp_path):
    told = json.loads((folder / "told.json").read_text())
    missing = told["unlabelled"]["groups"]["F"]
    call = ["train", str(folder / "loans.csv"), *ROLES, "-o", str(tmp_path / "m.model")]
    shown = words(run(*call).stdout).replace("“", "").replace("”", "")
    page = Page((tmp_path / "m.html").read_text(encoding="utf-8")).text
    said = page.replace("“", "").replace("”", "")
    assert "among rows that have a repaid, but NOT over all rows: the ratio is 0." in shown
    assert "or more among people whose repaid is known" in shown
    assert "in the population." not in shown
    assert "! Reached among rows with a label, missed over all rows Favourable" in page
    assert "Reached among rows that have a repaid: a ratio of" in said
    assert "Here the population is the people whose answer is known." in page
    for text in (shown, said):
        assert f"{missing['missing']:,} of {missing['rows']:,} rows of F (" in text
        assert "Who has a repaid depends on the group. What is said of the population is" in text
        assert "Over all 3,000 rows, with or without a repaid, the ratio is " in text
        assert f"the ratio is {told['all_rows']['ratio']:.3f} (F " in text
        assert "below the target of 0.80." in text
    verdict = shown.index("is reached on the training data")
    assert verdict < shown.index("Over all 3,000 rows") < shown.index("training rows (")


def test_after_saving_and_at_another_target(folder, tmp_path):
    saved = load_model(folder / "m.model")
    assert summarise(saved)["all_rows"]["ratio"] == pytest.approx(
        json.loads((folder / "told.json").read_text())["all_rows"]["ratio"]
    )
    call = ["pick", str(folder / "m.model"), "--tau", "0.6", "-o", str(tmp_path / "p.model")]
    told = json.loads(run(*call, "--json").stdout)
    rates = over_all(load_model(tmp_path / "p.model"), loans())
    assert told["all_rows"]["ratio"] == pytest.approx(rates["F"] / rates["M"])
    told = json.loads(run("frontier", str(folder / "m.model"), "--json").stdout)
    assert told["unlabelled"]["n"] == loans().repaid.isna().sum()
    assert "Who has a “repaid” depends" in run("frontier", str(folder / "m.model")).stdout


def test_a_certificate_is_about_those_whose_label_is_known(folder, tmp_path):
    call = ["train", str(folder / "loans.csv"), *ROLES, "--tau", "0.6", "--confidence", "certified"]
    shown = run(*call, "-o", str(tmp_path / "m.model"), "--no-report").stdout
    assert "Certified: " in shown
    assert "among rows that have a repaid" in words(shown)


def test_nothing_is_said_if_no_label_is_missing():
    frame = loans()
    saved = trained(frame[frame.repaid.notna()])
    assert not {"unlabelled", "unlabelled_counts"} & set(saved.facts)
    summary = summarise(saved)
    assert not {"unlabelled", "all_rows"} & set(summary)
    assert "rows with a label" not in Page(render(summary)).text


def test_labels_missing_evenly_are_counted_without_a_warning():
    summary = summarise(trained(evenly()))
    assert not summary["unlabelled"]["related"]
    text = Page(render(summary)).text
    assert "a selected part of the table" in text
    assert "depends on the group" not in text


def test_rates_that_need_a_label_have_no_ratio_over_all_rows():
    summary = summarise(trained(loans(), notion="equal_opportunity"))
    assert summary["all_rows"] is None
    assert summary["unlabelled"]["related"]
    assert "Over all" not in Page(render(summary)).text
    both = ["equal_opportunity", "statistical_parity"]
    summary = summarise(trained(loans(), notion=both, tau=[0.5, 0.9]))
    (rate,) = summary["all_rows"]["rates"]
    assert (rate["name"], rate["tau"]) == ("selection_rate", pytest.approx(0.9))


def test_many_groups_and_answers():
    frame = loans()
    rng = np.random.default_rng(1)
    frame["sex"] = np.where(rng.random(3000) < 0.4, "X", frame.sex)
    frame.loc[:9, "sex"] = "few"
    frame.loc[frame.debt > 1, "repaid"] = frame.repaid.where(frame.repaid.isna(), "2")
    summary = summarise(trained(frame, tau=0.5))
    found = summary["unlabelled"]["groups"]
    assert list(found) == ["F", "M", "X", "groups with too few labels to compare"]
    assert sum(g["rows"] for g in found.values()) == 3000
    assert [r["answer"] for r in summary["all_rows"]["rates"]] == [["0"], ["1"], ["2"]]
    assert "Over all 2,990 rows" in Page(render(summary)).text


def test_a_group_of_which_no_label_is_known(tmp_path):
    frame = loans()
    frame.loc[frame.repaid.isna().to_numpy() & (np.arange(3000) % 5 == 0), "sex"] = "new"
    n = int((frame.sex == "new").sum())
    saved = trained(frame)
    save_model(saved.model, tmp_path / "m", facts=saved.facts)
    summary = summarise(load_model(tmp_path / "m"))
    assert summary["unlabelled"]["other_groups"] == n
    assert summary["all_rows"]["n"] == 3000 - n
    assert f"all {n} rows of other groups" in Page(render(summary)).text
    assert summary["all_rows"]["uncompared"] == {"new": n}


def test_a_group_with_too_few_labels_is_not_passed_over(tmp_path):
    """X has rows enough; that 9 in 10 of them have no label makes it no small group."""
    rng = np.random.default_rng(0)
    frame = evenly()
    frame["sex"] = np.where(rng.random(3000) < 0.2, "X", frame.sex)
    frame.loc[frame.sex == "X", "income"] -= 3
    frame.loc[(frame.sex == "X") & (rng.random(3000) < 0.96), "repaid"] = None
    n = int((frame.repaid.isna() & (frame.sex == "X")).sum())
    frame.to_csv(tmp_path / "t.csv", index=False)
    call = ["train", str(tmp_path / "t.csv"), *ROLES, "--tau", "0.2", "-o", str(tmp_path / "m")]
    result = run(*call)
    assert result.exit_code == 2
    shown = words(result.stdout)
    assert f"cannot be judged: {n} rows of “X” have no “repaid”, and too few have one" in shown
    assert "depends on the group" in shown
    summary = summarise(load_model(tmp_path / "m"))
    assert summary["all_rows"]["uncompared"] == {"X": n}
    assert not summary["all_rows"]["reached"]


def test_a_test_table_whose_labels_are_missing_by_group_is_told(tmp_path):
    known = loans()[loans().repaid.notna()]
    known.to_csv(tmp_path / "train.csv", index=False)
    loans(seed=1).to_csv(tmp_path / "test.csv", index=False)
    call = ["train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "test.csv"), *ROLES]
    shown = words(run(*call, "-o", str(tmp_path / "m.model")).stdout)
    said = "rows of the test table that have no label"
    assert said in shown
    assert "who has a label depends on the group): they are of a selected part" in shown
    assert said in Page((tmp_path / "m.html").read_text(encoding="utf-8")).text


def test_rows_that_cannot_be_read_are_told(folder, tmp_path):
    frame = loans().astype({"income": object})
    frame.loc[frame.repaid.isna(), "income"] = "much"
    frame.to_csv(tmp_path / "t.csv", index=False)
    call = ["train", str(tmp_path / "t.csv"), *ROLES, "-o", str(tmp_path / "m.model")]
    shown = words(run(*call).stdout)
    assert "note: rows without a label cannot be read" in shown
    assert "The ratio over all rows was not measured" in shown
    assert summarise(load_model(tmp_path / "m.model"))["all_rows"] is None


def test_rows_of_a_test_table_that_are_left_out_are_told(tmp_path):
    frame = loans()
    known = frame[frame.repaid.notna()]
    known.to_csv(tmp_path / "train.csv", index=False)
    loans(seed=1).to_csv(tmp_path / "test.csv", index=False)
    n = int(loans(seed=1).repaid.isna().sum())
    call = ["train", str(tmp_path / "train.csv"), "--test", str(tmp_path / "test.csv"), *ROLES]
    call += ["-o", str(tmp_path / "m.model")]
    reason = "of the test table without a value in 'repaid'"
    assert f"left out: {n:,} rows {reason}" in run(*call).stdout
    page = Page((tmp_path / "m.html").read_text(encoding="utf-8")).text
    assert f"{reason} {n:,}" in page
    assert "No rows were dropped." not in page
    assert f"Rows used {len(known):,} " in page
    told = json.loads(run(*call, "--json").stdout)
    (dropped,) = told["data"]["rows_dropped"]
    assert "who has a label depends on the group" in dropped.pop("whom")
    assert dropped == {"reason": reason, "n": n, "part": "test"}
    assert told["data"]["rows"] == len(known)
    assert "unlabelled" not in told


@pytest.mark.parametrize(
    "change",
    [
        {"rows": [1, 2, 3]},
        {"rows": [-1, 2]},
        {"other_groups": -1},
        {"parts": ["test"]},
        {"rows": [1, 2]},
    ],
)
def test_counts_of_another_table_are_refused(folder, tmp_path, change):
    saved = load_model(folder / "m.model")
    facts = saved.facts | {"unlabelled": saved.facts["unlabelled"] | change}
    with pytest.raises(ValueError, match="unlabelled"):
        save_model(saved.model, tmp_path / "m", facts=facts)
