"""What screens and reports say of a saved model is what the model does."""

import re
import warnings

import numpy as np
import pandas as pd
import pytest

from evenhand import FairnessWarning, _screens, workflow
from evenhand.persist import SavedModel, load_model, save_model
from evenhand.report import render

ASKED = {"label": "paid", "sensitive": ["sex"]}


def table(n=3000, seed=0):
    rng = np.random.default_rng(seed)
    sex = rng.choice(["F", "M"], n)
    skill, luck = rng.normal(size=(2, n))
    wage = skill + 0.8 * (sex == "M") + 0.5 * rng.normal(size=n)
    paid = np.where(skill + 0.7 * (sex == "M") + luck > 0.9, "yes", "no")
    return pd.DataFrame({"wage": wage, "luck": luck, "sex": sex, "paid": paid})


def trained(frame, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return workflow.train(frame, **(ASKED | options))


def moved(saved, tau):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return SavedModel(saved.model.at(tau), saved.facts)


def predicted(saved, frame):
    """Counts of group × label × prediction, as the summary has them."""
    answer = saved.model.predict(frame)
    names = ["no", "yes"]
    return [
        [
            [int(((frame.sex == g) & (frame.paid == y) & (answer == p)).sum()) for p in names]
            for y in names
        ]
        for g in ["F", "M"]
    ]


def words(html):
    return " ".join(re.sub(r"<[^>]*>", " ", html).split())


@pytest.fixture(scope="module")
def certified():
    return trained(table(), test=table(seed=1), selection="certified", tau=0.6)


@pytest.mark.parametrize("tau", [None, 0.7, 0.8, 0.99])
def test_summary_has_the_certified_point(certified, tau, tmp_path, capsys):
    """Also after a move along the frontier, and after the file was read again."""
    save_model(certified.model, tmp_path / "a.model", facts=certified.facts)
    saved = load_model(tmp_path / "a.model")
    saved = saved if tau is None else moved(saved, tau)
    summary = workflow.summarise(saved)
    assert summary["saved"]["counts"]["train"] == predicted(saved, table())
    test = summary["saved"]["counts"]["test"]
    assert test == predicted(saved, table(seed=1))
    shares = [100 * (g[0][1] + g[1][1]) / np.sum(g) for g in test]
    page = words(render(summary))
    assert all(f"{share:.1f}%" in page for share in shares)
    _screens.show_point(summary, [])
    row = capsys.readouterr().out.split("test rows")[1].split("evenhand, τ")[1].splitlines()[0]
    assert [f"{share:.1f}%" for share in shares] == row.split()[-2:]


def test_a_certified_point_may_be_off_the_frontier(certified):
    """Or the test above would show nothing."""
    found = [workflow.summarise(moved(certified, t))["chosen"] for t in (0.6, 0.7, 0.8, 0.99)]
    assert None in found


@pytest.mark.parametrize("selection", ["train", "holdout", "crossfit", "certified"])
@pytest.mark.parametrize("tau", [0.7, 1.0])
def test_frontier_marks_the_saved_figures(selection, tau, capsys):
    saved = trained(table(1200), selection=selection, tau=tau, max_iter=40, cv=3)
    summary = workflow.summarise(saved)
    _screens.show_frontier(summary)
    (row,) = [line for line in capsys.readouterr().out.splitlines() if "◀ saved" in line]
    counts = np.array(summary["saved"]["counts"]["test"])
    assert row.split()[1] == f"{np.trace(counts.sum(axis=0)) / counts.sum():.4f}"


def test_the_saved_model_is_shown_when_no_point_is_eligible(capsys):
    frame = table()
    frame = frame[["sex", "paid"]].assign(copy=(frame.sex == "M") * 1.0)
    frame.loc[:4, "copy"] = 0.0  # equal columns would be left out
    frame["paid"] = np.where((frame.sex == "M") ^ (table().luck > 1), "yes", "no")
    saved = trained(frame, kinds={"copy": "number"})
    summary = workflow.summarise(saved)
    assert not summary["points"]
    shares = np.array(summary["saved"]["counts"]["test"]).sum(axis=1)
    shares = 100 * shares[:, 1] / shares.sum(axis=1)
    for show in (
        lambda: _screens.show_training(summary, []),
        lambda: print(words(render(summary))),
    ):
        show()
        text = capsys.readouterr().out
        assert all(f"{share:.1f}%" in text for share in shares)
    _screens.show_frontier(summary)
    assert "◀ saved" in capsys.readouterr().out


def test_a_file_of_an_earlier_version_says_what_it_lacks(certified, capsys):
    facts = {k: v for k, v in certified.facts.items() if k != "candidate_counts"}
    for tau in (0.6, 0.7, 0.8, 0.99):
        summary = workflow.summarise(SavedModel(moved(certified, tau).model, facts))
        if summary["chosen"] is None:
            break
    assert summary["saved"]["counts"] == {}
    _screens.show_point(summary, [])
    assert "did not count its answers" in capsys.readouterr().out
    _screens.show_frontier(summary)
    assert "◀ saved" not in capsys.readouterr().out
    assert "None" not in words(render(summary))


def test_a_useless_model_is_named_on_the_screen(certified, capsys):
    summary = workflow.summarise(certified)
    _screens.show_point(summary, [])
    assert "the same answer to everybody" not in capsys.readouterr().out
    counts = np.array(summary["saved"]["counts"]["test"])
    summary["saved"]["counts"]["test"] = counts[:, :, ::-1].tolist()
    _screens.show_point(summary, [])
    text = " ".join(capsys.readouterr().out.split())
    assert "less than the same answer to everybody: “no” is right for" in text


@pytest.mark.parametrize("several", [False, True])
def test_many_groups_fit_in_80_columns(several, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    frame = table()
    names = ["Amer-Indian-Eskimo", "Asian-Pac-Islander", "Native-Hawaiian", "White"]
    frame["sex"] = np.random.default_rng(2).choice(names, len(frame))
    notions = ["statistical_parity", "equal_opportunity"]
    saved = trained(frame, max_iter=20, notion=notions if several else notions[0])
    _screens.show_training(workflow.summarise(saved), [])
    frame["answer"] = saved.model.predict(frame)
    _screens.show_audit(workflow.audit(frame, **ASKED, prediction="answer"))
    text = capsys.readouterr().out
    for word in [*names, "plain logistic regression", "accuracy", "selection rate"]:
        assert text.count(word) >= 2, word
    # No piece of a name stands alone at the beginning or end of a cell.
    assert not re.search(r"\b(Amer-Indian|Asian-Pac|Native)-?\s", text)


def test_counts_of_another_fit_are_refused(certified, tmp_path):
    counts = {key: found[1:] for key, found in certified.facts["candidate_counts"].items()}
    facts = certified.facts | {"candidate_counts": counts}
    save_model(certified.model, tmp_path / "a.model", facts=facts)
    with pytest.raises(ValueError, match=r"candidate_counts\.train"):
        load_model(tmp_path / "a.model")
