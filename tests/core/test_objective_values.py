"""Objectives: values by hand, utilities that order alike, and what cannot be one."""

import numpy as np
import pytest
from helpers import raises
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import balanced_accuracy_score

from evenhand.core.objectives import ACCURACY, Objective, find_objective
from evenhand.core.rates import overall_accuracy
from evenhand.statistics.bounds import lower_gain

# TN FP FN TP of two groups: 100 rows, 40 of them positive.
COUNTS = np.array([[[30.0, 10], [4, 16]], [[18, 2], [6, 14]]])
LOANS = {"cost_fp": 5, "cost_fn": 1, "profit_tp": 2, "profit_tn": 0.5}


def test_values_by_hand():
    assert ACCURACY.value(COUNTS) == 0.78
    balanced = find_objective("balanced_accuracy", 2)
    assert balanced.value(COUNTS) == pytest.approx((48 / 60 + 30 / 40) / 2)
    loans = find_objective(LOANS, 2)
    assert loans.value(COUNTS) == pytest.approx((-5 * 12 - 10 + 2 * 30 + 0.5 * 48) / 100)
    # c is 5.5 of the other label and 3 of the positive one; of all right it would be all.
    assert loans.utility(COUNTS) == pytest.approx((5.5 * 48 + 3 * 30) / (5.5 * 60 + 3 * 40))
    # All that a positive answer costs is one of these (Corbett-Davies et al., 2017).
    priced = find_objective({"cost_fp": 0.3, "profit_tp": 0.7}, 2)
    assert priced.value(COUNTS) == pytest.approx((30 - 0.3 * 42) / 100)


def test_halves_are_written_as_on_screens():
    costs = find_objective({"cost_fp": 1, "cost_fn": 5}, 2)
    assert costs.text(-0.98625) == "costs 986.3 per 1,000 decisions"


@given(st.integers(0, 10**6), st.integers(2, 4))
@settings(max_examples=40, deadline=None)
def test_utilities_order_points_as_values_do(seed, labels):
    rng = np.random.default_rng(seed)
    y = np.concatenate([np.arange(labels), rng.integers(0, labels, 50)])
    points = rng.integers(0, labels, (30, len(y)))
    counts = np.zeros((30, 1, labels, labels))
    for i, answer in enumerate(points):
        np.add.at(counts[i, 0], (y, answer), 1)
    every = ["accuracy", "balanced_accuracy"]
    if labels == 2:
        every.append(dict(zip(LOANS, rng.uniform(0.1, 9, 4), strict=True)))
    for given_ in every:
        objective = find_objective(given_, labels)
        value, utility = objective.value(counts), objective.utility(counts)
        assert ((utility >= 0) & (utility <= 1)).all()
        slope = np.polyfit(utility, value, 1)
        np.testing.assert_allclose(np.polyval(slope, utility), value, atol=1e-9)
        assert slope[0] > 0
        worths = objective.worths(counts[0].sum(axis=(0, 2)))
        assert worths @ np.bincount(y) == pytest.approx(len(y))
        right = np.array([(answer == y) @ worths[y] for answer in points]) / len(y)
        np.testing.assert_allclose(right, utility, atol=1e-12)
    expected = [balanced_accuracy_score(y, answer) for answer in points]
    balanced = find_objective("balanced_accuracy", labels)
    np.testing.assert_allclose(balanced.value(counts), expected, atol=1e-12)


def test_a_label_that_no_row_has_is_not_counted():
    counts = np.array([[[3.0, 1], [0, 0]]])
    assert find_objective("balanced_accuracy", 2).value(counts) == 0.75
    for objective in (ACCURACY, find_objective("balanced_accuracy", 2), find_objective(LOANS, 2)):
        assert np.isnan(objective.value(np.zeros((1, 2, 2))))


def test_the_accuracy_is_to_the_last_bit_what_it_was():
    counts = np.random.default_rng(0).random((200, 3, 3, 3))
    np.testing.assert_array_equal(ACCURACY.utility(counts), overall_accuracy(counts))
    np.testing.assert_array_equal(ACCURACY.worths([0.3, 4.7]), [1, 1])


@pytest.mark.parametrize(
    "given_", ["accuracy", "balanced_accuracy", LOANS, {"cost_fn": 9, "cost_fp": 1}]
)
def test_the_best_answer_to_everybody(given_):
    objective = find_objective(given_, 2)
    n = COUNTS.sum(axis=(0, 2))
    values = [
        objective.value(np.array([[[n[0] * (1 - a), n[0] * a], [n[1] * (1 - a), n[1] * a]]]))
        for a in (0, 1)
    ]
    label, utility, value = objective.best_for_everybody(COUNTS)
    assert value == pytest.approx(max(values))
    if abs(values[0] - values[1]) > 1e-9:
        assert label == int(np.argmax(values))
    assert 0 <= utility <= 1


def test_more_than_one_answer_to_everybody_beyond_chance():
    # What is earned besides "no" to everybody: 16 + 14 right of the positives, each worth 3, less
    # 12 wrong of the others, each worth 5.5; the sum's variance is that of its rows.
    loans = find_objective(LOANS, 2)
    scale = 100 / (5.5 * 60 + 3 * 40)
    gain, spread = 3 * 30 - 5.5 * 12, np.sqrt(9 * 30 + 5.5**2 * 12)
    assert lower_gain(COUNTS, 2.0, loans) == pytest.approx(scale * (gain - 2 * spread))
    # Either answer to everybody has a balanced accuracy of a half: the harder to beat counts.
    balanced = find_objective("balanced_accuracy", 2)
    c0, c1 = 100 / 120, 100 / 80
    no = c1 * 30 - c0 * 12 - 2 * np.sqrt(c1**2 * 30 + c0**2 * 12)
    yes = c0 * 48 - c1 * 10 - 2 * np.sqrt(c0**2 * 48 + c1**2 * 10)
    assert lower_gain(COUNTS, 2.0, balanced) == pytest.approx(min(no, yes))


def test_words():
    loans = find_objective(LOANS, 2)
    assert loans.text(-0.5) == "costs 500.0 per 1,000 decisions"
    assert loans.text(1234.5) == "earns 1,234,500.0 per 1,000 decisions"
    assert (
        find_objective({"cost_fp": 400, "cost_fn": 1}, 2).text(-3)
        == "costs 3,000 per 1,000 decisions"
    )
    assert find_objective("balanced_accuracy", 2).text(0.5) == "has a balanced accuracy of 50.0%"
    assert (loans.than(1, 2), loans.than(2, 1)) == ("worse", "not clearly better")
    assert (ACCURACY.than(0.1, 0.2), ACCURACY.than(0.2, 0.1)) == ("less", "not clearly more")


@pytest.mark.parametrize(
    ("given_", "labels", "code", "said"),
    [
        ("f1", 2, "unknown_objective", "objective='f1'; it is accuracy, balanced_accuracy, or"),
        (7, 2, "unknown_objective", "objective=7"),
        ({"cost_of_fp": 1}, 2, "unknown_outcome", "outcomes are cost_fp, cost_fn, profit_tp, pr"),
        ({"cost_fp": float("nan")}, 2, "bad_outcome", "{'cost_fp': nan}; a finite number"),
        ({"cost_fp": float("inf")}, 2, "bad_outcome", "finite"),
        ({"cost_fp": "1"}, 2, "bad_outcome", "finite"),
        ({"cost_fp": True}, 2, "bad_outcome", "finite"),
        (LOANS, 3, "outcomes_of_two_labels", "has 3; objective='balanced_accuracy' is for any"),
        ({}, 2, "equal_answers", "nothing to maximise"),
        ({"cost_fp": 0, "cost_fn": 0}, 2, "equal_answers", "nothing to maximise"),
        ({"cost_fp": -1, "cost_fn": -2}, 2, "equal_answers", "worth more than the wrong one"),
        ({"cost_fp": 1}, 2, "best_for_everybody", "the other answer to everybody would always"),
        ({"profit_tp": 1}, 2, "best_for_everybody", "the favourable answer to everybody would"),
        ({"cost_fp": -1, "profit_tp": 2}, 2, "best_for_everybody", "the favourable answer to"),
    ],
)  # fmt: skip
def test_what_cannot_be_maximised(given_, labels, code, said):
    with raises(code) as caught:
        find_objective(given_, labels)
    assert said in str(caught.value), str(caught.value)


def test_it_is_a_value():
    assert find_objective("accuracy", 2) == ACCURACY == Objective()
    assert find_objective(LOANS, 2) != ACCURACY
