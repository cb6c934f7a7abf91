"""What screens and reports say of a saved model is what the model does."""

import html
import re
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import REGIMES, raises, with_method
from typer.testing import CliRunner

from evenhand import FairnessWarning
from evenhand.cli.app import app
from evenhand.persist.model_file import SavedModel, load_model, save_model
from evenhand.views import terminal as _screens
from evenhand.views.report import render
from evenhand.views.report.figures import page_data
from evenhand.views.report.live import point_at
from evenhand.views.report.page import clean
from evenhand.workflow.audit import audit as audit_table
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train as train_table

ASKED = {"label": "paid", "sensitive": ["sex"], "favourable": "yes"}


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
        return train_table(frame, **(ASKED | with_method(options)))


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


def words(page):
    return " ".join(re.sub(r"<[^>]*>", " ", page).split())


@pytest.fixture(scope="module")
def certified():
    return trained(table(seed=3), test=table(seed=1), confidence="certified", tau=0.57)


@pytest.mark.parametrize("tau", [None, 0.64, 0.7, 0.8, 0.99])
def test_summary_has_the_certified_point(certified, tau, tmp_path, capsys):
    """Also after a move along the frontier, and after the file was read again."""
    save_model(certified.model, tmp_path / "a.model", facts=certified.facts)
    saved = load_model(tmp_path / "a.model")
    saved = saved if tau is None else moved(saved, tau)
    summary = summarise(saved)
    assert summary["saved"]["counts"]["train"] == predicted(saved, table(seed=3))
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
    model = certified.model[-1]
    points = [moved(certified, t).model[-1].point_ for t in (0.57, 0.58, 0.63, 0.64)]
    on = set(zip(model.frontier_.iterate, model.frontier_.cut, strict=True))
    assert any((p.iterate, p.cut) not in on for p in points)


@pytest.mark.parametrize("regime", REGIMES)
def test_frontier_pick_page_and_at_give_the_same_figures(regime, capsys):
    saved = trained(table(1200), **REGIMES[regime], tau=0.7, max_iter=40, cv=3)
    summary = summarise(saved)
    page = page_data(clean(summary))
    _screens.show_frontier(summary)
    shown = capsys.readouterr().out
    for tau in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
        at, there = moved(saved, tau), page["points"][point_at(page, tau)[0]]
        model, picked = at.model[-1], summarise(at)
        assert (there["rate"], there["accuracy"]) == (model.rate_, model.accuracy_)
        assert point_at(page, tau)[1] == model.point_.feasible
        assert picked["saved"]["counts"] == picked["points"][picked["chosen"]]["counts"]
        counts = np.array(picked["saved"]["counts"]["test"])
        on_test = there["figures"]["test"]
        np.testing.assert_array_equal(on_test["rates"][0]["bottom"], counts.sum(axis=(1, 2)))
        figure = f"{np.trace(counts.sum(axis=0)) / counts.sum():.4f}"
        assert on_test["accuracy"] == pytest.approx(float(figure), abs=1e-4)
        rows = [line.split() for line in shown.splitlines() if line.split()[:1] == [f"{tau:g}"]]
        # Below the lowest value one round target is enough: the others have the same answer.
        repeated = tau < page["points"][0]["reach"]
        if tau == 0.7 or (model.point_.feasible and not repeated):
            assert rows[0][1] == figure
        elif not model.point_.feasible:
            assert not rows


@pytest.mark.parametrize("selection", ["train", "holdout", "crossfit", "certified"])
@pytest.mark.parametrize("tau", [0.7, 1.0])
def test_frontier_marks_the_saved_figures(selection, tau, capsys):
    saved = trained(table(1200), **REGIMES[selection], tau=tau, max_iter=40, cv=3)
    summary = summarise(saved)
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
    summary = summarise(saved)
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


def test_a_file_of_an_earlier_version_predicts_and_has_no_report(certified, tmp_path):
    facts = {k: v for k, v in certified.facts.items() if k != "answers"}
    save_model(certified.model, tmp_path / "a.model", facts=facts)
    frame = table(50)
    old = load_model(tmp_path / "a.model")
    np.testing.assert_array_equal(old.predict(frame), certified.model.predict(frame))
    refused = CliRunner().invoke(app, ["frontier", str(tmp_path / "a.model")])
    assert refused.exit_code == 1
    assert "train it anew" in refused.output


def test_a_useless_model_is_named_on_the_screen(certified, capsys):
    summary = summarise(certified)
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
    _screens.show_training(summarise(saved), [])
    frame["answer"] = saved.model.predict(frame)
    _screens.show_audit(audit_table(frame, **ASKED, prediction="answer"))
    text = capsys.readouterr().out
    for word in [*names, "plain logistic regression", "accuracy", "selection rate"]:
        assert text.count(word) >= 2, word
    # No piece of a name stands alone at the beginning or end of a cell.
    assert not re.search(r"\b(Amer-Indian|Asian-Pac|Native)-?\s", text)


def test_counts_of_another_fit_are_refused(certified, tmp_path):
    facts = certified.facts | {"train_counts": certified.facts["train_counts"][1:]}
    with raises("unsavable_model", reason="unreadable_model") as error:
        save_model(certified.model, tmp_path / "a.model", facts=facts)
    assert error.value.data["reason"].data["cause"].data["name"] == "train_counts"


# ---- words -----------------------------------------------------------------------------------


def test_both_verdicts_on_test_rows_are_shown_also_of_a_target_that_is_not_reached(
    certified, capsys
):
    """What the rows show, and what they prove, of the test rows by name."""
    summary = summarise(moved(certified, 0.99))
    assert not summary["reached"]["feasible"]
    # 36 of 40 against 38 of 40: less than 0.99, and no proof of anything.
    summary["saved"]["counts"]["test"] = [[[4, 36], [0, 0]], [[2, 38], [0, 0]]]
    del summary["verdict"]  # of the counts before
    _screens.show_point(summary, [])
    shown = " ".join(capsys.readouterr().out.split())
    assert "On the test rows the ratio is 0.947, below τ = 0.99. Whether τ = 0.99" in shown
    assert "cannot be told from the test rows: " in shown
    assert re.search(r" About [\d,]+ test rows at the same rates would tell\.", shown)


def test_a_ratio_that_is_unknown_is_not_below_the_target(capsys):
    summary = summarise(trained(table(900), max_iter=20, tau=0.5))
    nobody = np.array(summary["saved"]["counts"]["test"])
    nobody[:, :, 0], nobody[:, :, 1] = nobody.sum(axis=2), 0
    summary["saved"]["counts"]["test"] = nobody.tolist()
    summary["plain"]["counts"]["test"] = nobody.tolist()
    _screens.show_point(summary, [])
    shown = " ".join(capsys.readouterr().out.split())
    assert "On the test rows the ratio cannot be computed." in shown
    assert "–, below" not in shown
    assert "ratio of –" not in words(render(summary))
    summary["reached"] |= {"target_reached": False, "rate": None}
    _screens.show_point(summary, [])
    assert "the best is –" not in " ".join(capsys.readouterr().out.split())


def test_a_second_target_has_not_the_full_promise(tmp_path, capsys):
    frame = table(2400)
    saved = trained(frame, confidence="certified", tau=0.4, max_iter=40)
    save_model(saved.model, tmp_path / "a.model", facts=saved.facts)
    for before, tau, after in (("a", 0.3, "b"), ("b", 0.4, "c"), ("b", 0.5, "d")):
        names = (str(tmp_path / f"{name}.model") for name in (before, after))
        CliRunner().invoke(app, ["pick", next(names), "--tau", str(tau), "-o", next(names)])
    capsys.readouterr()
    for name, says in (
        ("a", None),
        (
            "b",
            "The same rows were tested for τ = 0.40 before: the probability that one of these "
            "promises is wrong is up to 10.0%, not 5.0%.",
        ),
        ("c", "tested for τ = 0.30 before: the probability"),
        (
            "d",
            "tested for τ = 0.30 and 0.40 before: the probability that one of these promises "
            "is wrong is up to 15.0%, not 5.0%.",
        ),
    ):
        summary = summarise(load_model(tmp_path / f"{name}.model"))
        assert summary["reached"]["feasible"]
        _screens.show_point(summary, [])
        for text in (" ".join(capsys.readouterr().out.split()), words(render(summary))):
            assert (says in text) if says else ("The same rows" not in text)


def test_earlier_targets_of_a_file_are_checked(certified, tmp_path):
    facts = certified.facts | {"earlier_taus": ["<b>"]}
    with raises("unsavable_model", reason="unreadable_model") as error:
        save_model(certified.model, tmp_path / "a.model", facts=facts)
    assert error.value.data["reason"].data["cause"].data["name"] == "earlier_taus"


# ---- whether the group decides ---------------------------------------------------------------


OWN_CUT = (
    "The group decides: each group has its own cut, the score above which the favourable answer is "
    "given."
)
AN_INPUT = "The group decides: the sensitive column 'sex' is an input."


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({}, ""),
        ({"group_cuts": True}, OWN_CUT),
        ({"sensitive_inputs": True}, AN_INPUT),
        (
            {"group_cuts": True, "sensitive_inputs": True},
            f"{OWN_CUT[:-1]}, and the sensitive column 'sex' is an input.",
        ),
    ],
)
def test_a_model_that_needs_the_group_says_so_everywhere(options, says, capsys):
    saved = trained(table(900), max_iter=20, **options)
    summary = summarise(saved)
    first = ["favourable_answer", "title", "needs_group", "group_use"]
    assert list(summary)[:4] == first
    assert summary["needs_group"] == bool(says)
    page = re.sub(r"<script.*", "", render(summary), flags=re.DOTALL)
    shown = {"page": words(page.split("<footer")[0]), "card": saved.model._repr_html_()}
    for show in (
        lambda: _screens.show_training(summary, []),
        lambda: _screens.show_point(summary, []),
        lambda: _screens.show_frontier(summary),
    ):
        show()
        shown[show] = capsys.readouterr().out
    for text in shown.values():
        text = " ".join(html.unescape(text).split())
        assert (says in text) if says else ("The group decides" not in text)
        assert ("Where the law forbids that, do not use this model." in text) == bool(says)
    (decision,) = [d for d in summary["data"]["decisions"] if d["column"] == "sex"]
    assert ("not an input" in decision["action"]) == (not says)
    assert ("needed to predict" in decision["action"]) == ("group_cuts" in options)


def test_screens_begin_with_the_favourable_answer(capsys):
    frame = table(900).assign(paid=lambda t: (t.paid == "yes").astype(int))
    summary = summarise(trained(frame, favourable="0", max_iter=20))
    for show in (
        _screens.show_training,
        _screens.show_point,
        lambda s, _: _screens.show_frontier(s),
    ):
        show(summary, [])
        assert "favourable answer: paid = 0" in capsys.readouterr().out.splitlines()[:2]


# ---- weights ---------------------------------------------------------------------------------


def three_answers(n=900, seed=0):
    """Each answer has an input that speaks for it."""
    rng = np.random.default_rng(seed)
    sex, inputs = rng.choice(["F", "M"], n), rng.normal(size=(n, 3))
    push = 0.6 * np.outer(sex == "M", [1, 0, -1])
    answer = (inputs + push + rng.gumbel(size=(n, 3))).argmax(axis=1)
    named = dict(zip(["for_low", "for_mid", "for_top"], inputs.T, strict=True))
    return pd.DataFrame(named | {"sex": sex, "paid": np.array(["low", "mid", "top"])[answer]})


@pytest.mark.parametrize("favourable", ["no", "yes"])
def test_a_positive_weight_speaks_for_the_favourable_answer(favourable):
    frame = table(900)
    saved = trained(frame, favourable=favourable, max_iter=30)
    (found,) = summarise(saved)["weights"]
    assert found["label"] == favourable
    column = saved.model.classes_.tolist().index(favourable)
    score = saved.model.predict_proba(frame)[:, column]
    weights = {w["name"]: w for w in found["inputs"]}
    for name in ("wage", "luck"):
        raised = saved.model.predict_proba(frame.assign(**{name: frame[name] + 1}))[:, column]
        assert np.all(np.sign(raised - score) == np.sign(weights[name]["fair"]))
    assert {np.sign(w["plain"]) for w in weights.values()} == {1 if favourable == "yes" else -1}
    text = words(render(summarise(saved)))
    assert f"Towards “\u2068paid\u2069” = “\u2068{favourable}\u2069”" in text


@pytest.mark.parametrize("favourable", [None, "low", "mid"])
def test_of_many_answers_each_favourable_one_has_its_weights(favourable):
    frame = three_answers()
    saved = trained(frame, favourable=favourable, max_iter=30)
    summary = summarise(saved)
    labels = ["low", "mid", "top"] if favourable is None else [favourable]
    assert [table["label"] for table in summary["weights"]] == labels
    score = saved.model.decision_function(frame)
    for found in summary["weights"]:
        column = saved.model.classes_.tolist().index(found["label"])
        for w in found["inputs"]:
            raised = saved.model.decision_function(
                frame.assign(**{w["name"]: frame[w["name"]] + 1})
            )
            change = (raised - score)[:, column]
            assert np.all(np.sign(change) == np.sign(w["fair"]))
        speaks = {w["name"] for w in found["inputs"] if w["fair"] > 0 and w["plain"] > 0}
        assert speaks == {f"for_{found['label']}"}
    text = words(render(summary))
    assert all(f"Towards “\u2068paid\u2069” = “\u2068{label}\u2069”" in text for label in labels)
