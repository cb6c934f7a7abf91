"""The report as text: what it says, what it lets through, what it does without."""

import copy
import json
import re
from dataclasses import asdict
from importlib.resources import files

import numpy as np
import pytest
from helpers import REGIMES, Page
from report_summaries import adult_fit, by_difference, by_objective, made_up, of_fit
from scipy.stats import binomtest

import evenhand
from evenhand.core.objectives import ACCURACY
from evenhand.core.targets import Target
from evenhand.views.formats import fixed
from evenhand.views.report import render
from evenhand.views.report.drawings import frontier_drawing, nice_top, ticks
from evenhand.views.report.figures import measure, page_data
from evenhand.views.report.live import live, point_at
from evenhand.views.report.page import clean
from evenhand.views.report.words import date_words, dear_sentence, describe
from evenhand.views.targets import TARGET_WORDS
from evenhand.views.terminal import show_frontier, show_point
from evenhand.workflow.summary import rate_of, verdict_of

RATIO = TARGET_WORDS["ratio"]
HOSTILE = "</script><script>alert('x')</script><img src=x onerror=alert(1)>&amp;\"'{{7*7}}`"


def everything_hostile(value, text=HOSTILE):
    """The summary with each text that may come from a table replaced."""
    if isinstance(value, dict):
        fixed_keys = ("key", "selection", "place")
        return {k: v if k in fixed_keys else everything_hostile(v, text) for k, v in value.items()}
    if isinstance(value, list):
        return [everything_hostile(v, text) for v in value]
    return text if isinstance(value, str) else value


@pytest.fixture(scope="module")
def summary():
    return made_up(small=True)


def test_hostile_names_are_text(summary):
    summary = copy.deepcopy(summary)
    summary["data"]["rows_dropped"] = [{"reason": "why", "n": 3}]
    summary["data"]["decisions"] = [{"column": "c", "kind": "k", "action": "a"}]
    summary["reached"]["guarantee"] = summary["about"]["command"] = "text"
    summary["group_use"] = "text"
    summary["about"]["created"] = "text"
    plain = Page(render(summary))
    hostile = everything_hostile(summary)
    hostile["data"]["small_groups"] = {HOSTILE: 7}
    hostile["curves"]["leg"] = [HOSTILE] * 10 + [HOSTILE + "2"] * 30
    hostile["about"]["versions"] = {HOSTILE: HOSTILE}
    page = Page(render(hostile))
    # The same elements, the script unchanged, and no attribute that runs.
    assert page.tags == plain.tags
    assert page.scripts[1] == plain.scripts[1]
    assert "<" not in page.scripts[0]
    assert not [a for a in page.attributes if a[1].startswith("on")]
    assert page.text.count(HOSTILE) > 20


@pytest.mark.parametrize(
    "where",
    [
        ("title",),
        ("group_use",),
        ("asked", "label"),
        ("asked", "favourable", 0),
        ("asked", "sensitive", 0),
        ("reached", "where"),
        ("reached", "guarantee"),
        ("rate", "parts", 0, "name"),
        ("groups", 1),
        ("labels", 1),
        ("parts", 1, "title"),
        ("weights", 0, "label"),
        ("weights", 0, "inputs", 0, "name"),
        ("curves", "leg", 39),
        ("about", "command"),
        ("about", "created"),
        ("data", "fingerprint"),
    ],
)
def test_each_hostile_field_is_shown_as_text(summary, where):
    summary = copy.deepcopy(summary)
    at = summary
    for step in where[:-1]:
        at = at[step]
    at[where[-1]] = HOSTILE
    page = Page(render(summary))
    assert HOSTILE in page.text.replace("</ script>", "</script>")
    assert page.tags.count("script") == 2
    assert "img" not in page.tags


def test_characters_that_cannot_be_shown(summary):
    summary = copy.deepcopy(summary)
    summary["groups"][0] = "a\x00b\ud800c\u202ed\u2028e\nf"
    summary["title"] = "x" * 5000
    text = render(summary)
    text.encode("utf-8")
    assert "a\ufffdb\ufffdc\ufffdd e f" in text
    assert "x" * 200 not in text
    assert clean({"command": "a\nb", "n": float("nan"), "m": (1, None)}) == {
        "command": "a\nb",
        "n": None,
        "m": [1, None],
    }


def test_nothing_is_fetched(summary):
    text = render(summary)
    page = Page(text)
    assert not re.search(r"https?:|//[a-z]|url\(|@import|javascript:", text)
    links = [value for _, name, value in page.attributes if name in ("src", "href", "action")]
    assert all(value.startswith("#") or value == "data:," for value in links)
    assert not {"img", "iframe", "object", "embed", "base"} & set(page.tags)
    targets = {value for _, name, value in page.attributes if name == "id"}
    assert {value[1:] for value in links if value.startswith("#")} <= targets


def test_policy_allows_the_pages_own_script_and_nothing_else(summary):
    text = render(summary)
    policy = next(v for _, n, v in Page(text).attributes if n == "content" and "default-src" in v)
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert "unsafe" not in policy
    # A policy by hash lets no style attribute through: there must be none.
    assert not [a for a in Page(text).attributes if a[1] == "style"]
    assert "innerHTML" not in text
    assert "eval(" not in text


def test_ids_are_unique(summary):
    ids = [value for _, name, value in Page(render(summary)).attributes if name == "id"]
    assert len(ids) == len(set(ids))


def test_sentences():
    summary = made_up()
    text = Page(render(summary)).text
    assert (
        "selection rates of the groups by “where”, the lowest at least four fifths of the highest "
        "(target τ = 0.80)." in text
    )
    rate = summary["reached"]["rate"]
    assert f"Reached: a ratio of {RATIO.text(rate, 0.8)} on the training data" in text
    assert "the saved model is the one at τ = 0.80" in text
    assert "Of all rows of the group, the share predicted “label 1”" in text


@pytest.mark.parametrize(
    ("favourable", "says"),
    [
        (["0"], "Favourable answer: “default” = “0”. Asked:"),
        (["0", "1", "2"], "Favourable answer: “default” = “0”, “1” or “2”, each of which counts."),
    ],
)
def test_first_lines_say_which_answer_is_favourable(favourable, says):
    summary = made_up()
    summary["asked"] |= {"label": "default", "favourable": favourable}
    assert says in Page(render(summary)).text


@pytest.mark.parametrize(
    ("feasible", "counts", "says", "badge"),
    [
        (
            True,
            [(100, 50), (100, 49)],
            "0.980 on 400 test rows, where the target is met",
            "reached",
        ),
        (True, [(100, 50), (100, 30)], "0.600 on 400 test rows – below the target", "missed on"),
        (False, [(100, 50), (100, 30)], "0.600 on 400 test rows – below", "Target not reached"),
        (
            False,
            [(100, 50), (100, 49)],
            "In the population τ = 0.8 holds",
            "Target not reached on the training",
        ),
        (True, [(100, 0), (100, 0)], "the ratio cannot be computed", "Target reached on the"),
    ],
)
def test_verdict_on_test_rows(feasible, counts, says, badge):
    summary = made_up(n_points=3)
    summary["parts"][1]["n"] = 400
    summary["chosen"] = 0
    summary["reached"] |= {"target_reached": feasible, "rate": 0.81 if feasible else 0.7}
    table = [[[n, 0], [n - p, p]] for n, p in counts]
    for j, (n, p) in enumerate(counts):
        table[j] = [[n, 0], [n - 2 * p, 2 * p]] if p else [[n, 0], [n, 0]]
    summary["points"][0]["counts"]["test"] = table
    text = Page(render(summary)).text
    assert says in text
    assert badge in text


def test_a_ratio_next_to_the_target_is_shown_on_its_side_of_it():
    assert RATIO.text(0.79996, 0.8) == "0.79996"
    assert RATIO.text(0.80004, 0.8) == "0.800"
    assert RATIO.text(0.9999999, 1.0) == "just below 1.00"
    assert RATIO.text(None, 0.8) == "–"
    assert [fixed(v, 1) for v in (6.25, -0.04, -1.25, 99.96)] == ["6.3", "0.0", "−1.3", "100.0"]
    assert [RATIO.level(v) for v in (0.8, 0.805, 1)] == ["0.80", "0.805", "1.00"]


@pytest.mark.parametrize("name", list(evenhand.core.rates.RATES))
def test_every_rate_has_words(name):
    rate = evenhand.core.rates.RATES[name]
    for label, labels in ((1, ["no", "yes"]), (1, ["a", "b", "c"])):
        one = rate.of_label(label, len(labels))
        part = {"numerator": one.numerator, "denominator": one.denominator}
        words, _ = describe(part, labels, "answer")
        assert words.startswith("Of "), name
    expected = {
        "false_discovery_rate": "Of the group's rows predicted “b”, the share whose true “answer” "
        "is not “b”",
        "true_positive_rate": "Of the group's rows whose true “answer” is “b”, the share predicted "
        "“b”",
    }
    words = words.replace("\u2068", "").replace("\u2069", "")
    assert words == expected.get(name, words)
    assert describe({"numerator": [[0, 1]], "denominator": [[0, 1], [1, 0]]}, ["a", "b"], "") == (
        "",
        None,
    )


@pytest.mark.parametrize("selection", REGIMES)
def test_promise_is_for_the_chosen_target(selection):
    summary = made_up()
    summary["asked"] |= {**REGIMES[selection], "delta": 0.05}
    summary["reached"]["guarantee"] = "certified: words of the library"
    text = Page(render(summary)).text
    assert ("for 0.80 only" in text) == (selection == "certified")
    assert ("with a probability of about 90%" in text) == ("confident" in selection)
    assert "certified: words of the library" in text
    assert ("probability of at most 5.0%" in text) == (selection == "certified")


def test_the_accuracy_is_shown_once_and_in_its_own_words(summary):
    summary = summary | {"objective": asdict(ACCURACY)}
    page = render(json.loads(json.dumps(summary)))
    assert page == render(summary)
    assert page.count("<dt>Accuracy: answers that match the table") == 1
    assert '<dt>Accuracy</dt>\n      <dd class="value"' not in page
    assert "% of the test rows. Plain logistic regression" in Page(page).text


@pytest.mark.parametrize(
    ("needs_group", "cut"), [(False, "a cut of its own"), (True, "a cut for each group")]
)
def test_where_the_saved_model_came_from(needs_group, cut):
    summary = made_up()
    summary |= {"needs_group": needs_group, "saved": {"source": "optimum", "counts": {}}}
    told = f"The saved model came from the fit that looks at accuracy alone, with {cut}."
    assert told in render(summary)


def test_rows_fitted_to_are_told_from_rows_as_if_left_out():
    words, summary = "where the model looks fairer and more accurate than it is", made_up()
    assert words not in render(summary)
    for place in ("left_out", "crossfit", "holdout"):
        asked = {**summary["asked"], "place": place}
        page = render(summary | {"asked": asked})
        assert words in page
        assert page.index(words) < page.index("Selection rate</b>: Of all rows")


@pytest.mark.parametrize(
    ("too_sure", "words"),
    [
        (None, ""),
        (
            "columns",
            "the probability can be lower: there are so many inputs for so few training rows",
        ),
        ("boosted", "the probability can be lower: a new row is answered by the mean of several"),
    ],
)
def test_what_a_margin_leaves_out_is_said(too_sure, words):
    summary = made_up() | {"too_sure": too_sure}
    summary["asked"] |= {"confidence": 0.9, "selection": "train", "place": "train"}
    text = Page(render(summary)).text
    assert words in text
    assert ("Here the probability" in text) == bool(words)


def test_without_a_certificate_nothing_is_promised():
    summary = made_up()
    summary["asked"] |= {"confidence": "certified", "delta": 0.05}
    summary["reached"] |= {"target_reached": False, "guarantee": "no point can be certified"}
    text = Page(render(summary)).text
    assert "no point can be certified" in text
    # The rate may well be above the target on these rows, which proves too little.
    assert "Not certified: a ratio of" in text
    assert "Target not certified" in text
    assert "ot reached" not in text
    assert "could not show that a model of this fit reaches the target" in text
    assert "can be promised" not in text
    assert "The promise is" not in text


def test_a_missed_target_says_how_near_it_came():
    summary = made_up(n_points=3)
    summary["asked"] |= {"confidence": 0.9, "taus": [0.9]}
    summary |= {"tau": 0.9, "chosen": 2}
    summary["parts"][1]["n"] = 400
    summary["points"][2]["counts"]["test"] = [[[100, 0], [0, 100]], [[100, 0], [1, 99]]]
    summary["points"][2] |= {"rate": 0.989, "reach": 0.862}
    summary["reached"] |= {"target_reached": False, "rate": 0.989, "bound": 0.862}
    text = Page(render(summary)).text
    assert (
        "Not reached with a confidence of about 90%: the ratio is 0.989 on the training data, and "
        "can be relied on to be 0.862 or more; the target is 0.90; on 400 test rows the ratio is "
        "0.990, where the target is met." in text
    )
    assert "! Target not reached with a confidence of about 90%" in text
    assert "its ratio in the population is 0.862 or more, which misses the target" in text
    assert "which it does not reach on the training data" in text
    assert "with a confidence of about 90%; 0.862 or more can be relied on" in text
    assert "may or may not" not in text
    # What the bare ratio does is said of these rows, not of the target.
    said = text.count("✓ reaches the target of 0.90 on these rows")
    said += text.count("✓ reaches the target, 0.90, on these rows")
    assert said == text.count("✓ reaches") > 2
    assert "Met on these rows?" in text


def test_rows_used_are_without_those_dropped(summary):
    summary = copy.deepcopy(summary)
    summary["data"] |= {"rows": 4000, "rows_dropped": [{"reason": "no sex", "n": 49}]}
    assert "Rows used 3,951" in Page(render(summary)).text


def test_only_weights_that_changed_are_shown(summary):
    same = {"name": "stays", "fair": -0.061, "plain": -0.059}
    inputs = [{"name": "falls", "fair": 0.2, "plain": 0.9}, same]
    weights = [{"label": "label 1", "inputs": inputs}]
    text = Page(render(without(summary, weights=weights))).text
    assert "0.90 → 0.20" in text
    assert "stays" not in text
    text = Page(render(without(summary, weights=[{"label": "label 1", "inputs": [same]}]))).text
    assert "No weight differs by as much as 0.01" in text
    assert "→" not in text.split("What the saved model weighs")[1].split("How the training")[0]


def right_answers(share, n=1000):
    """Counts of two groups, of which so large a share is right."""
    right = round(share * n)
    return [[[right, n - right], [n - right, right]]] * 2


@pytest.mark.parametrize(
    ("best", "says"),
    [
        (
            0.70,
            "3.0 points more accurate than plain logistic regression, 5.0 more than at its most",
        ),
        (0.76, "3.0 points more accurate than plain logistic regression at its usual cut, but not"),
        (None, "at its usual cut, which need not be its most accurate one"),
    ],
)
def test_more_accurate_is_said_beside_the_best_cut(best, says):
    summary = made_up()
    summary["points"][summary["chosen"]]["counts"]["test"] = right_answers(0.75)
    summary["plain"] = {"counts": {"test": right_answers(0.72)}}
    if best is not None:
        summary["plain"]["best_cut"] = {"cut": 0.1, "counts": {"test": right_answers(best)}}
    text = Page(render(summary)).text
    assert says in text
    accuracy = f"{fixed(100 * (best or 0), 1)}%"
    beside = f"(score threshold) on training rows ratio 1.000 , accuracy {accuracy}"
    assert (beside in text) == (best is not None)
    head = f"most accurate on the training rows it is right for {accuracy} and has a ratio"
    assert (head in text) == (best is not None)


@pytest.mark.parametrize(
    ("small", "says"),
    [
        ({"tiny": 7}, "7 rows are in a group that is too small"),
        ({"tiny": 1}, "1 row is in a group that is too small"),
        ({"tiny": 7, "rare": 4}, "11 rows are in 2 groups that are too small"),
    ],
)
def test_small_groups_are_counted_in_words(summary, small, says):
    summary = copy.deepcopy(summary)
    summary["data"]["small_groups"] = small
    assert says in Page(render(summary)).text


def test_a_name_with_a_comma_is_one_name():
    summary = made_up() | {"groups": ["F, N", "F, Y"]}
    text = Page(render(summary)).text
    assert "Lowest: “F, N” with" in text
    assert "Highest: “F, Y” with" in text


def test_inputs_that_say_most_of_the_group(summary):
    assert "Inputs that say most" not in Page(render(summary)).text
    summary = copy.deepcopy(summary)
    found = [{"column": "wife", "auc": 0.9987}, {"column": "<b>", "auc": 0.5}]
    summary["data"]["stand_ins"] = found
    text = Page(render(summary)).text
    assert "Inputs that say most of “where” The figure is the chance" in text
    assert "Input AUC wife 0.999 <b> 0.500" in text


def test_a_model_worse_than_one_answer_to_everybody_is_named():
    said = "less than the same answer to everybody: “label 0” is right for 75.0%"
    for found, worse in (([[70, 5], [25, 0]], True), ([[75, 0], [24, 1]], False)):
        counts = [found, found]
        saved = {"accuracy": 0.7, "rate": 1.0, "reach": 1.0, "counts": {"test": counts}}
        text = Page(render(made_up() | {"chosen": None, "saved": saved})).text
        assert (said in text) == worse


def test_a_page_speaks_of_what_is_maximised():
    summary = by_objective()
    counts = np.array(summary["saved"]["counts"]["test"]).sum(axis=0)
    page = Page(render(summary))
    cost = 1000 * (counts[0, 1] + 5 * counts[1, 0]) / counts.sum()
    plain = np.array(summary["plain"]["counts"]["test"]).sum(axis=0)
    before = 1000 * (plain[0, 1] + 5 * plain[1, 0]) / plain.sum()
    assert f"The model costs {cost:,.1f} per 1,000 decisions on the test rows." in page.text
    assert f"Profit per 1,000 decisions {fixed(-cost, 1)} before: {fixed(-before, 1)}" in page.text
    assert "Maximised: the profit; a false positive costs 1" in page.text
    assert "accuracy against" not in page.text.lower()
    # Of 100 rows 75 are negative: a yes to all costs 750 of a thousand, a no to all 1,250.
    said = (
        "decisions on the test rows, worse than the same answer to everybody: “label 1” costs 750.0"
    )
    for found, worse in (([[70, 5], [15, 10]], True), ([[20, 55], [3, 22]], False)):
        saved = summary["saved"] | {"counts": {"test": [found, found]}}
        text = Page(render(summary | {"chosen": None, "saved": saved})).text
        assert (said in text) == worse


def test_accuracy_that_a_summary_names_is_the_accuracy():
    summary = json.loads(json.dumps(made_up() | {"objective": asdict(ACCURACY)}))
    page = Page(render(summary))
    assert page.text.count("Accuracy") == Page(render(made_up())).text.count("Accuracy")
    assert "from the most accurate, on the left" in page.text


@pytest.mark.parametrize("name", [*evenhand.core.rates.RATES, "equalized_odds"])
@pytest.mark.parametrize("n_labels", [2, 3])
def test_figures_are_those_of_the_library(name, n_labels):
    rate = {**evenhand.core.rates.RATES, "equalized_odds": evenhand.core.rates.EQUALIZED_ODDS}[name]
    rate = rate.of_label(n_labels - 1, n_labels)
    parts = [
        {"name": p.name, "numerator": p.numerator, "denominator": p.denominator, "share": share}
        for p, share in zip(rate.components, (1.0, 0.9), strict=False)
    ]
    worst = evenhand.core.rates.WorstRate("w", rate.components, tuple(p["share"] for p in parts))
    made = rate_of({"rate": {"name": "w", "parts": parts}})
    assert [p.is_error for p in made.components] == [p.is_error for p in rate.components]
    rng = np.random.default_rng(0)
    tables = rng.integers(0, 40, size=(30, 4, n_labels, n_labels))
    tables[0] = 0
    tables[1, 0] = 0
    for counts in tables:
        found = measure(counts, Target(made, 0.8), 3, False)
        ratio = worst.ratio(counts[:3])
        assert found["ratio"] == (pytest.approx(float(ratio)) if np.isfinite(ratio) else None)
        accuracy = evenhand.core.rates.overall_accuracy(counts)
        assert found["accuracy"] == (
            pytest.approx(float(accuracy)) if np.isfinite(accuracy) else None
        )
        for k, part in enumerate(rate.components):
            shares = found["rates"][k]["rate"]
            wanted = part.per_group(counts)
            assert np.allclose(np.array(shares, dtype=float), wanted, equal_nan=True)


def of_rates(*groups, rate="selection_rate", weighted=False):
    """Figures of groups of so many rows with the label 0, of which so many are predicted 1."""
    counts = [[[bottom - top, top], [0, 0]] for top, bottom in groups]
    worst = evenhand.core.rates.WorstRate("w", (evenhand.core.rates.RATES[rate],))
    return measure(counts, Target(worst, 0.8), len(groups), weighted)


@pytest.mark.parametrize("groups", [((4, 4), (4, 4)), ((8, 8), (16, 16)), ((4, 4), (990, 1000))])
def test_few_rows_that_are_all_alike_promise_nothing(groups):
    """Also where the small group is the highest: in the population it may be the lowest."""
    summary = made_up(n_points=3)
    summary["chosen"] = 0
    summary["points"][0]["counts"]["test"] = [[[0, 0], [n - p, p]] for p, n in groups]
    verdict = verdict_of(summary)
    assert verdict["value"] >= 0.99
    assert verdict["at_least"] < 0.8
    assert verdict["at_most"] == 1
    assert (verdict["rows"], verdict["confidence"]) == ("test rows", 0.95)
    text = Page(render(summary)).text
    assert "Whether τ = 0.8 holds in the population cannot be told from the test rows" in text


def test_the_population_is_shown_of_the_saved_model_on_test_rows_only():
    summary = made_up(n_points=5)
    model = page_data(summary)
    chosen = model["chosen"]
    shown = [
        (i, key)
        for i, point in enumerate(model["points"])
        for key, figure in point["figures"].items()
        if figure["population"]
    ]
    assert shown == [(chosen, "test")]
    assert live(model, 0.8, "test")[0]["population"].endswith("each end with 95% confidence")
    assert live(model, 0.8, "train")[0]["population"] == ""
    assert page_data(made_up(parts=("train",)))["chosen"] is not None
    assert verdict_of(made_up(parts=("train",))) is None


@pytest.mark.parametrize(("top", "bottom"), [(0, 7), (7, 7), (3, 11), (250, 1000)])
def test_intervals_of_groups(top, bottom):
    wanted = binomtest(top, bottom).proportion_ci(0.95)
    interval, nothing = of_rates((top, bottom), (0, 0))["rates"][0]["interval"]
    assert interval == pytest.approx((wanted.low, wanted.high), abs=1e-12)
    assert nothing == [None, None]
    assert of_rates((top, bottom), weighted=True)["rates"][0]["interval"] == []


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("2026-01-31T09:17:22+00:00", "31 January 2026, 09:17 UTC"),
        ("2026-01-31 12:00", "31 January 2026, 12:00"),
        ("no date", "no date"),
        ("", ""),
    ],
)
def test_dates_in_words(text, shown):
    assert date_words(text) == shown
    summary = made_up()
    summary["about"]["created"] = text
    assert f"Made {shown or '–'}" in " ".join(Page(render(summary)).text.split())


def test_a_wide_margin_is_said_of_differences_and_of_other_objectives():
    summary = by_difference()
    summary["reached"] |= {"rate": -0.02, "bound": -0.18}
    said = dear_sentence(summary)
    assert "is wide: 0.020 here, and 0.180 or less can be relied on." in said
    assert said.endswith("the same target would cost less accuracy.")
    summary = by_objective()
    summary["reached"] |= {"rate": 0.9, "bound": 0.7}
    said = dear_sentence(summary)
    assert "is wide: 0.900 here, and 0.700 or more can be relied on." in said
    assert said.endswith("the same target would cost less.")


def test_the_slider_chooses_as_the_frontier_does():
    model = page_data(made_up(n_points=12))
    rates = [p["rate"] for p in model["points"]]
    for tau in np.linspace(0.3, 1, 50):
        i, reached, _ = point_at(model, tau)
        wanted = next((j for j, r in enumerate(rates) if r >= tau), None)
        assert reached == (wanted is not None)
        assert i == (len(rates) - 1 if wanted is None else wanted)
    model["chosen"], model["feasible"] = 3, False  # as a choice on held-out rows may be
    assert point_at(model, 0.8) == (3, False, True)


def test_a_fit_to_adult():
    """The page's figures are those of the classifier's own predictions."""
    fitted, split, names = adult_fit(variant="coarse")
    test = (split.X_test, split.y_test, split.z_test)
    summary = of_fit(
        fitted, test, title="adult", label="income", sensitive=["sex"], names=names, most=40
    )
    predicted = fitted.predict(split.X_test)
    rates = evenhand.group_rates(split.y_test, predicted, sensitive_features=split.z_test)
    ratio = evenhand.statistical_rate(split.y_test, predicted, sensitive_features=split.z_test)
    texts, _ = live(page_data(clean(summary)), 0.8, "test")
    for j, group in enumerate(fitted.groups_):
        share = rates.loc[group, "selection_rate"]
        assert texts[f"0.{j}.after"] == f"{fixed(100 * share, 1)}%"
    assert texts["ratio"] == RATIO.text(ratio, 0.8)
    assert texts["accuracy"] == f"{fixed(100 * np.mean(predicted == split.y_test), 1)}%"
    text = Page(render(summary)).text
    assert f"Reached: a ratio of {RATIO.text(fitted.rate_, 0.8)} on the training data" in text
    assert f"{RATIO.text(ratio, 0.8)} on {len(predicted):,} test rows" in text


def test_the_script_measures_nothing():
    """It picks among figures: those of every answer to a step of the slider, on every part."""
    script = files("evenhand.views.report").joinpath("page.js").read_text("utf-8")
    assert not re.search(r"sqrt|1\.9599|top \* |/ bottom", script)
    summary = made_up(n_points=400)
    full, page = page_data(clean(summary)), Page(render(summary)).model
    assert page["n_points"] < 101 < full["n_points"]
    for tau in [i / 100 for i in range(101)]:
        i, *wanted = point_at(full, tau)
        j, *found = point_at(page, tau)
        assert found == wanted
        assert page["points"][j]["figures"] == json.loads(json.dumps(full["points"][i]["figures"]))


def test_axes():
    assert ticks(0.22, 1.0, 5) == [0.4, 0.6, 0.8, 1.0]
    assert ticks(0.5, 0.5) == [0.5]
    assert [nice_top(v) for v in (0, 0.03, 0.26, 0.97)] == [0.02, 0.04, 0.4, 1.0]


def test_marks_of_the_frontier_stand_where_they_say():
    point = {"reach": 0.9, "value": 0.8}
    model = {"box": (0.85, 1.0, 0.6, 0.8), "words": {"sign": 1, "per": 100.0, "unit": "%"}}
    model |= {"parts": []} | {
        "points": [point],
        "n_points": 0,
        "plain": {},
        "fitted": "",
        "before": None,
        "chosen": None,
    }
    drawn = frontier_drawing(model)
    marks = [float(mark) for _, mark in drawn["x"]]
    places = [float(place.rstrip("%")) / 100 for place, _ in drawn["x"]]
    assert [0.85 + 0.15 * place for place in places] == pytest.approx(marks, abs=1e-4)


def without(summary, **changes):
    return copy.deepcopy(summary) | changes


def test_little_is_enough(summary):
    bare = without(
        summary,
        points=[],
        chosen=None,
        plain=None,
        curves={},
        weights=[],
        parts=[],
        reached={
            "target_reached": False,
            "rate": None,
            "accuracy": None,
            "where": "on the training data",
            "guarantee": None,
        },
    )
    text = Page(render(bare)).text
    assert "Not reached: no model with a ratio was found on the training data" in text
    assert "No model of this fit could be compared" in text
    assert "None" not in text
    assert "nan" not in text.lower().split()


@pytest.mark.parametrize(
    "changes",
    [
        {"plain": None},
        {"curves": None},
        {"weights": []},
        {"chosen": None},
        {"points": [], "chosen": None},
        {"parts": []},
        {"tau": 1.0},
        {"tau": 0.333},
        {"tau": 1 / 3},
    ],
)
def test_missing_parts(summary, changes):
    page = Page(render(without(summary, **changes)))
    assert "None" not in page.text
    assert len(page.text) > 2000
    assert page.model["tau"] == changes.get("tau", 0.8)


def test_missing_numbers(summary):
    holes = copy.deepcopy(summary)
    holes["points"][2] |= {"rate": None, "accuracy": float("nan")}
    holes["curves"]["ratio"] = [None] * 20 + [0.5] * 20
    holes["curves"]["loss_u"] = [None] * 40
    holes["reached"] |= {"rate": None, "accuracy": None}
    text = Page(render(holes)).text
    assert "None" not in text
    assert "Adversary's loss" not in text


def test_training_is_followed_as_the_target_compares(summary):
    other = copy.deepcopy(summary)
    assert "Ratio between groups" in Page(render(other)).text
    other["curves"]["difference"] = [0.4 - 0.005 * t for t in other["curves"]["iteration"]]
    text = Page(render(other)).text
    assert "Difference between groups" in text
    assert "Ratio between groups" not in text


@pytest.mark.parametrize(
    ("n_groups", "n_labels"),
    [(2, 2), (2, 3), (2, 6), (20, 2), (20, 3), pytest.param(20, 6, marks=pytest.mark.slow)],
)
@pytest.mark.parametrize("small", [False, True])
def test_any_number_of_groups_and_labels(n_groups, n_labels, small):
    summary = made_up(n_groups, n_labels, 4, small=small)
    page = Page(render(summary))
    assert page.model["n_rows"] == n_groups + small
    assert ("too small to compare" in page.text) == small
    assert page.text.count(f"group {n_groups - 1}") >= 2 * (1 if n_labels == 2 else n_labels)


def test_weighted_rows_have_no_intervals():
    summary = made_up()
    for part in summary["parts"]:
        part["weighted"] = True
    model = page_data(clean(summary))
    texts, marks = live(model, 0.8, "test")
    assert texts["0.0.after"] != "–"
    assert texts["0.0.after.span"] == texts["0.0.after.of"] == texts["population"] == ""
    assert marks["0.0.after.bar"] == {"visibility": "hidden"}
    assert "no intervals are shown" in Page(render(summary)).text


def test_contrast():
    """Text on each of its backgrounds has WCAG's 4.5 to 1, marks have 3 to 1, light and dark."""
    css = files("evenhand.views.report").joinpath("page.css").read_text("utf-8")
    schemes = [dict(re.findall(r"--(\S+): (#\w{6});", block)) for block in css.split(":root")[1:3]]

    def luminance(colour):
        rgb = np.array([int(colour[i : i + 2], 16) for i in (1, 3, 5)]) / 255
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        return float(linear @ [0.2126, 0.7152, 0.0722])

    def contrast(a, b):
        low, high = sorted([luminance(a), luminance(b)])
        return (high + 0.05) / (low + 0.05)

    text = ["ink", "soft", "accent", "after", "ok", "bad", "warn"]
    pairs = [(one, page, 4.5) for one in text for page in ("page", "card")]
    pairs += [(s, f"{s}-page", 4.5) for s in ("ok", "warn", "bad")] + [("ink", "warn-page", 4.5)]
    pairs += [(m, page, 3) for m in ("after", "before", "accent") for page in ("page", "floor")]
    assert len(schemes) == 2
    for scheme in schemes:
        for one, other, least in pairs:
            assert contrast(scheme[one], scheme[other]) >= least, (one, other)


class TestAnotherComparison:
    """A page and a screen of a difference need its words and nothing else."""

    def test_the_page_judges_and_writes_it(self, monkeypatch):
        summary = by_difference(-0.1)
        model = page_data(clean(summary))
        counts = np.array(summary["saved"]["counts"]["test"])
        rates = counts[:, :, 1].sum(axis=1) / counts.sum(axis=(1, 2))
        figure = model["points"][model["chosen"]]["figures"]["test"]
        assert figure["ratio"] == pytest.approx(-np.ptp(rates))
        assert figure["reached"] == (np.ptp(rates) <= 0.1)
        texts, _ = live(model, -0.1, "test")
        assert texts["ratio"] == fixed(np.ptp(rates), 3)
        assert texts["0.floor"].endswith(f"{100 * (rates.max() - 0.1):.1f}%.")
        # No rate is below 0, so that so loose a target asks for nothing.
        assert live(model, -0.95, "test")[0]["0.floor"] == ""
        assert model["box"][1] == 0
        for level in (-0.2, -0.1, -0.02):
            i, reached, _ = point_at(model, level)
            apart = [-point["rate"] for point in model["points"]]
            assert i == next((k for k, d in enumerate(apart) if d <= -level), len(apart) - 1)
            assert reached == (apart[i] <= -level)
        text = Page(render(summary)).text
        for said in (
            "at most 0.1 apart (target ε = 0.10)",
            f"Reached: a difference of {-summary['saved']['rate']:.3f} on the training data",
            "difference between groups (0 = all alike)",
        ):
            assert said in text.replace("\u00a0", " ")
        text = " ".join(text.split())
        # The run of the solver is followed by ratios, whatever the target.
        assert "Ratio between groups 1 means that all groups have the same rate" in text
        assert "ratio" not in text.replace("Ratio between groups", "").lower()
        assert "τ" not in text
        assert "the strictest target that each reaches" in text

    def test_the_terminal_judges_and_writes_it(self, monkeypatch, capsys):
        summary = by_difference(-0.1)
        # 20 points apart on the test rows.
        summary["saved"]["counts"]["test"] = [[[50, 50], [0, 0]], [[70, 30], [0, 0]]]
        show_point(summary, [])
        shown = " ".join(capsys.readouterr().out.split())
        assert "ε = 0.1 for statistical parity is reached on the training data" in shown
        assert "On the test rows the difference is 0.200, above ε = 0.1." in shown
        show_frontier(summary)
        shown = capsys.readouterr().out
        assert re.search(r"^ 0\.1 .*saved", shown, re.M)
        assert not re.search("ratio|τ|-0", shown)
