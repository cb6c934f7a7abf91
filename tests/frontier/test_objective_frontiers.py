"""Frontiers of other objectives than accuracy, against every cut there is."""

from itertools import product

import numpy as np
import pytest
from helpers import make_rows

from evenhand.core.notions import find_notion, of_labels
from evenhand.core.objectives import find_objective
from evenhand.core.targets import Target, find_target
from evenhand.engines.kernels import Limits
from evenhand.engines.memory import make_oracle
from evenhand.frontier import sweep as sweeping
from evenhand.frontier.choice import answer
from evenhand.frontier.group_cuts import group_cuts, score_curves
from evenhand.frontier.held_out import HeldOut
from evenhand.frontier.mixtures import best_mixture, to_spare

PLAIN, COMPILED = Limits(compiled_rows=10**9), Limits(compiled_rows=1)
OBJECTIVES = {
    "balanced": "balanced_accuracy",
    "costs": {"cost_fp": 1, "cost_fn": 5},
    "profit": {"cost_fp": 4.5, "profit_tp": 0.3, "profit_tn": 0.1},
}
TARGETS = {
    "ratio": ("statistical_parity", {"tau": 0.8}),
    "difference": ("equalized_odds", {"epsilon": 0.1}),
    "mixed": (
        ["statistical_parity", "equal_opportunity"],
        {"tau": [0.7, None], "epsilon": [None, 0.1]},
    ),
}


def every_cut(X, y, z, W, weight, groups):
    """Counts of every cut of every direction, without cleverness."""
    out = []
    for w in W:
        score = X @ w[:-1] + w[-1]
        for cut in np.convolve(np.unique(score), [0.5, 0.5], "valid"):
            counts = np.zeros((groups, 2, 2))
            np.add.at(counts, (z, y, (score > cut).astype(int)), weight)
            share = counts[:, :, 1].sum(axis=1) / counts.sum(axis=(1, 2))
            if ((share >= 0.05) & (share <= 0.95)).all():
                out.append(counts)
    return np.array(out)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("name", TARGETS)
@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("limits", [PLAIN, COMPILED], ids=["plain", "compiled"])
def test_no_cut_is_worth_more(objective, name, groups, limits, monkeypatch):
    notion, demand = TARGETS[name]
    target = find_target(notion, **demand)
    monkeypatch.setattr(sweeping.ManyCuts, "caution", 0.0)
    goal = find_objective(OBJECTIVES[objective], 2)
    X, y, z = make_rows(180, groups=groups)
    X = np.round(X, 1)
    y = (y & (np.random.default_rng(5).random(180) < 0.5)).astype(int)  # a quarter is positive
    for weight in (None, np.random.default_rng(1).integers(1, 5, 180) / 3):
        oracle = make_oracle(X, y, z, notion=find_notion(notion), sample_weight=weight)
        W = np.random.default_rng(2).standard_normal((3, X.shape[1] + 1))
        how = {"min_share": 0.05, "limits": limits, "objective": goal}
        found = sweeping.sweep(oracle, W, target, **how)
        counts = every_cut(X, y, z, W, 1.0 if weight is None else weight, groups)
        values, worth = target.value(counts), goal.value(counts)
        for level in (-0.4, -0.2, -0.1, 0.2, 0.5, target.level, -0.03, 0.9):
            best = worth[values >= level - 1e-12].max(initial=-np.inf)
            point = found.select(level)
            assert point.feasible == np.isfinite(best)
            if point.feasible:
                assert goal.value(point.counts) == pytest.approx(best, abs=1e-9)
                right = np.trace(point.counts.sum(axis=0)) / point.counts.sum()
                assert point.accuracy == pytest.approx(right)
        assert (np.diff(found.value) <= 1e-12).all()
        constant = max(goal.worths(counts[0].sum(axis=(0, 2))) * counts[0].sum(axis=(0, 2)))
        constant /= counts[0].sum()
        assert found.constant == pytest.approx(constant)
        frame = found.to_frame()
        np.testing.assert_array_equal(frame[goal.name], found.value)
        np.testing.assert_array_equal(frame["below_constant"], found.utility < constant - 1e-9)


@pytest.mark.parametrize("objective", OBJECTIVES)
@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds"])
@pytest.mark.parametrize("groups", [2, 4])
def test_compiled_or_not(objective, notion, groups):
    X, y, z = make_rows(700, groups=groups)
    X = np.round(X, 1)
    for weight in (None, np.random.default_rng(0).random(len(y)) + 0.5):
        oracle = make_oracle(X, y, z, notion=find_notion(notion), sample_weight=weight)
        W = np.random.default_rng(1).standard_normal((12, 7))
        goal = find_objective(OBJECTIVES[objective], 2)
        one, other = (
            sweeping.sweep(oracle, W, limits=limits, objective=goal) for limits in (PLAIN, COMPILED)
        )
        pairs = (one, other), (one.conservative, other.conservative)
        for (a, b), column in product(pairs, ("iterate", "rate", "accuracy", "counts", "cut")):
            np.testing.assert_allclose(getattr(a, column), getattr(b, column), atol=1e-12)


def test_many_labels_are_balanced():
    X, y, z = make_rows(300, labels=3)
    y = np.where(
        y == 2, np.random.default_rng(0).integers(0, 3, len(y)), y
    )  # labels of unlike size
    oracle = make_oracle(
        X, y, z, n_labels=3, notion=of_labels(find_notion("statistical_parity"), [0, 1, 2], 3)
    )
    W = np.random.default_rng(1).standard_normal((4, 21))
    goal = find_objective("balanced_accuracy", 3)
    plain, found = (sweeping.sweep(oracle, W, **o) for o in ({}, {"objective": goal}))
    assert goal.value(found.select(0.0).counts) >= goal.value(plain.counts).max() - 1e-12
    assert found.select(0.0).accuracy < plain.select(0.0).accuracy


@pytest.mark.parametrize("kind", ["ratio", "difference"])
def test_the_cuts_of_groups_are_the_best_for_the_objective(kind):
    rng = np.random.default_rng(0)
    scores, cell = rng.standard_normal(30), rng.integers(0, 4, 30)
    cell[:4] = np.arange(4)
    target = Target(find_notion("statistical_parity").rate, 0.5, kind)
    curves = score_curves(scores, 0.0, cell, None, 2, 2)
    goal = find_objective(OBJECTIVES["costs"], 2)
    worths = goal.worths(np.bincount(cell % 2))
    _cuts, counts = group_cuts(
        *curves, target=target, eligible=lambda c: np.ones(len(c), bool), worths=worths
    )
    found = np.moveaxis(counts, -1, 0)
    one, two = (each[1] for each in curves[0])
    pairs = np.array(
        [np.stack([a, b]) for a, b in product(*(np.moveaxis(c, -1, 0) for c in (one, two)))]
    )
    # What any pair of cuts reaches, a pair that was found reaches at about the same value.
    for level in (0.3, 0.5, 0.7) if kind == "ratio" else (-0.4, -0.2, -0.1):
        best = goal.utility(pairs[target.value(pairs) >= level]).max()
        near = level - (0.03 * level if kind == "ratio" else 0.03)
        assert goal.utility(found[target.value(found) >= near]).max() >= best - 1e-12


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_answers_and_mixtures_go_by_the_objective(objective):
    X, y, z = make_rows(400)
    goal, target = find_objective(OBJECTIVES[objective], 2), find_target("statistical_parity", 0.8)
    oracle = make_oracle(X, y, z, notion=find_notion("statistical_parity"))
    W = np.random.default_rng(1).standard_normal((20, 7))
    front = sweeping.sweep(oracle, W, target, objective=goal)
    # Other rows: their counts are those of the points of another direction.
    counts = front.counts[::-1].copy()
    about = {"delta": None, "n_rows": 400, "n_fitted": 400}
    held = HeldOut.from_counts(front, np.concatenate([counts, counts[:1]]), target, **about)
    chosen = answer(front, held, target).choose(0.8)
    reached = target.value(counts) >= 0.8
    assert chosen.value == pytest.approx(goal.value(counts)[reached].max())
    mixture = best_mixture(front.counts, 2, target, goal)
    mean = np.tensordot(mixture.weights, front.counts[mixture.points], axes=1)
    best = max(goal.value(front.counts)[target.value(front.counts) >= 0.8])
    assert goal.value(mean) >= best - 1e-9
    assert (to_spare(mean, target) >= -1e-9).all()
