"""Candidates beside the solver's iterates."""

import numpy as np
import pytest
from helpers import fair, make_problem, make_rows
from sklearn.linear_model import LogisticRegression

from evenhand.core.directions import (
    N_DIRECTIONS,
    SOURCES,
    find_candidates,
    group_discriminant,
    label_sets,
)
from evenhand.core.notions import NOTIONS, find_notion
from evenhand.core.solvers import minimize_loss
from evenhand.engines.memory import make_oracle
from evenhand.frontier.held_out import count_points
from evenhand.persist.model_file import load_model, save_model

SETS = {
    "statistical_parity": [(0, 1)],
    "equal_opportunity": [(1,)],
    "true_negative_parity": [(0,)],
    "equalized_odds": [(0,), (1,)],
    "accuracy_parity": [(0,), (1,)],
    "false_discovery": [(0,), (1,)],
}


def oracle_of(X, y, z, notion="statistical_parity", **settings):
    return make_oracle(X, y, z, notion=find_notion(notion), metric="whitened", **settings)


def optimum_of(oracle):
    return minimize_loss(
        oracle, np.zeros(oracle.n_weights), max_iter=100, callback=lambda iteration: None
    )[0]


@pytest.mark.parametrize("notion", SETS)
def test_labels_among_which_the_group_matters(notion):
    assert label_sets(oracle_of(*make_problem(), notion)) == SETS[notion]


@pytest.mark.parametrize("layout", ["dense", "weighted"])
@pytest.mark.parametrize("labels", [(0, 1), (1,), (0,)])
def test_a_group_discriminant_is_the_logistic_regression_of_the_group(labels, layout):
    X, y, z = make_problem(3000)
    weight = None if layout == "dense" else np.random.default_rng(0).uniform(1, 3, len(y))
    oracle = oracle_of(X, y, z, sample_weight=weight, l2=0.0)
    found = oracle.weights(group_discriminant(oracle, labels))
    kept = np.isin(y, labels)
    plain = LogisticRegression(C=np.inf, tol=1e-8).fit(
        X[kept], z[kept], None if weight is None else weight[kept]
    )
    scores = X @ found[:-1] + found[-1]
    assert np.corrcoef(scores, plain.decision_function(X))[0, 1] > 0.9999


def test_discriminants_go_around_the_plane_of_both():
    oracle = oracle_of(*make_problem(2000))
    first, second = optimum_of(oracle), group_discriminant(oracle, (0, 1))
    found = np.array([w for source, w in find_candidates(oracle, first)])
    assert len(found) == N_DIRECTIONS
    np.testing.assert_allclose(np.linalg.norm(found[:, :-1], axis=1), 1)
    basis = np.stack([first, second])[:, :-1]
    assert np.linalg.matrix_rank(np.concatenate([basis, found[:, :-1]]), tol=1e-8) == 2
    np.testing.assert_allclose(found[0, :-1], first[:-1] / np.linalg.norm(first[:-1]))
    turns = np.sum(found[:, :-1] * np.roll(found[:, :-1], 1, axis=0), axis=1)
    np.testing.assert_allclose(turns, np.cos(2 * np.pi / N_DIRECTIONS))


@pytest.mark.parametrize("notion", NOTIONS)
def test_a_source_fits_the_notion_and_the_groups(notion):
    source = {s for s, _ in _candidates(oracle_of(*make_problem(300), notion))}
    assert source == ({"discriminants"} if len(label_sets_of(notion)) == 1 else {"rates"})
    assert source <= set(SOURCES)
    three = oracle_of(*make_rows(300, groups=3), notion)
    assert {s for s, _ in _candidates(three)} == {"rates"}
    many = make_rows(300, labels=3)
    assert not _candidates(make_oracle(*many, notion=find_notion("accuracy_parity"), n_labels=3))


def label_sets_of(notion):
    return label_sets(oracle_of(*make_problem(), notion))


def _candidates(oracle):
    return list(find_candidates(oracle, np.ones(oracle.n_weights)))


def test_labels_that_the_inputs_do_not_tell_have_no_directions():
    X, y, z = make_problem(200)
    assert not list(find_candidates(oracle_of(0 * X, y, z), np.zeros(X.shape[1] + 1)))


@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds"])
def test_points_say_what_found_them_and_are_counted_on_the_same_rows(notion, tmp_path):
    X, y, z = make_problem(1500)
    model = fair(notion, tau=0.3, confidence=None).fit(X, y, sensitive_features=z)
    frontier, trajectory = model.frontier_, model.trajectory_
    assert set(frontier.to_frame()["source"]) > {"solver"}
    for point in (model.point_, model.at(0.9).point_, frontier.last):
        assert point.source == trajectory.sources[point.iterate]
    counts = count_points(frontier, trajectory.iterates, X, None, 2 * z + y, None, n_groups=2)
    np.testing.assert_array_equal(counts[:-1], frontier.counts)
    save_model(model, tmp_path / "a.model")
    again = load_model(tmp_path / "a.model").model
    assert again.trajectory_.sources == trajectory.sources
    assert again.at(0.9).point_.source == model.at(0.9).point_.source


def test_the_solver_alone_is_one_word_away():
    X, y, z = make_problem(1500)
    alone = fair(candidates="solver", tau=0.3).fit(X, y, sensitive_features=z)
    assert set(alone.trajectory_.sources) == {"optimum", "solver"}
    pooled = fair(tau=0.3).fit(X, y, sensitive_features=z)
    n = len(alone.trajectory_.sources)
    np.testing.assert_array_equal(pooled.trajectory_.iterates[:n], alone.trajectory_.iterates)
    assert set(pooled.trajectory_.sources[n:]) == {"discriminants"}


def test_points_below_the_constant_answer_are_named():
    X, y, z = make_problem(3000)
    y = y * (np.arange(len(y)) % 2 == 0)  # few positives: no to everybody is nearly right
    frontier = fair(tau=0.3).fit(X, y, sensitive_features=z).frontier_
    assert frontier.constant == max(y.mean(), 1 - y.mean())
    frame = frontier.to_frame()
    named = frame["below_constant"]
    np.testing.assert_array_equal(named, frame["accuracy"] < max(y.mean(), 1 - y.mean()))
    assert named.any()
    assert not named.all()


@pytest.mark.parametrize("params", [{"init": "zero"}, {"group_cuts": True}, {"reading": "printed"}])
def test_nothing_joins_where_it_cannot_or_need_not(params):
    X, y, z = make_problem(300)
    model = fair(tau=0.01, confidence=None, max_iter=5, **params).fit(X, y, sensitive_features=z)
    assert set(model.trajectory_.sources) <= {"optimum", "solver"}
