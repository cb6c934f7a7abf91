import numpy as np
import pytest
from helpers import NOTION_NAMES, PAPER_NOTIONS, as_layout, make_problem
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS, find_notion
from evenhand.core.targets import find_target
from evenhand.engines.kernels import Limits
from evenhand.engines.memory import make_oracle
from evenhand.frontier import sweep as sweeping
from evenhand.frontier.points import Points
from evenhand.frontier.scores import score_frontier
from evenhand.frontier.sweep import sweep, sweep_targets


def make(notion="statistical_parity", n=300, seed=0, n_iterates=6, coarse=False, **kwargs):
    X, y, z = make_problem(n=n, n_features=3, seed=seed)
    if coarse:
        X = np.round(X)
    layout = kwargs.pop("layout", "dense")
    oracle = make_oracle(as_layout(X, layout), y, z, notion=NOTIONS[notion](2), **kwargs)
    return oracle, (X, y, z), np.random.default_rng(seed).standard_normal((n_iterates, 4))


def brute_force(notion, data, iterates, weight=None, cut=True, min_share=0.01):
    """Every eligible (accuracy, rate, iterate, cut), by counting one classifier at a time.

    Also, with cuts, those of them that no other is as accurate and as surely fair as.
    """
    X, y, z = data
    weight = np.ones(len(y)) if weight is None else weight
    out, sure, n_points = [], [], 0
    for i, w in enumerate(iterates):
        s = X @ w[:-1] + w[-1]
        values = np.unique(np.round(s, 9))
        cuts = (values[:-1] + values[1:]) / 2 if cut else [0.0]
        n_points = n_points or len(cuts) * len(iterates)
        for c in cuts:
            _, counts = group_counts(y, s > c, sensitive_features=z, sample_weight=weight)
            rate = float(notion.rate.ratio(counts))
            if np.isnan(rate) or not notion.eligible(counts, min_share):
                continue
            accuracy = (counts[:, 0, 0] + counts[:, 1, 1]).sum() / counts.sum()
            out.append((round(accuracy, 12), round(rate, 12), i, c))
            part = min(notion.rate.components, key=lambda part: float(part.ratio(counts)))
            top = sum(counts[:, a, b] for a, b in part.numerator)
            bottom = sum(counts[:, a, b] for a, b in part.denominator)
            se = np.sqrt(np.sum(1 / (top + 0.5) - 1 / (bottom + 0.5)))
            sure.append(round(rate * np.exp(-np.sqrt(2 * np.log(n_points)) * se), 12))
    if not cut:
        return out, out
    return out, [
        p
        for p, s in zip(out, sure, strict=True)
        if not any(
            (q[0], t) != (p[0], s) and q[0] >= p[0] and t >= s
            for q, t in zip(out, sure, strict=True)
        )
    ]


def best(points, tau):
    """The rule of selection, in so many words."""
    feasible = [p for p in points if p[1] >= tau]
    return max(feasible, key=lambda p: (p[0], p[1], -p[2], p[3])) if feasible else None


@pytest.mark.parametrize("coarse", [False, True])
@pytest.mark.parametrize("cut", [True, False])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", [*PAPER_NOTIONS, "equalized_odds"])
def test_against_brute_force(name, weighted, cut, coarse):
    weight = np.random.default_rng(3).random(100) + 0.1 if weighted else None
    oracle, data, iterates = make(name, n=100, coarse=coarse, sample_weight=weight)
    frontier = sweep(oracle, iterates, cut=cut)
    points, sure = brute_force(NOTIONS[name](2), data, iterates, weight, cut)
    assert points or not cut, "the example must have eligible points"
    highest = max((p[1] for p in sure), default=-1.0)
    kept = [*sure, *(p for p in points if p[1] > highest)]
    for tau in np.linspace(0.02, 1, 50):
        expected, found = best(kept, tau), frontier.select(tau)
        assert found.feasible == (expected is not None)
        if expected is None:
            assert not points or found.rate == pytest.approx(max(p[1] for p in points))
        else:
            assert found.accuracy == pytest.approx(expected[0], abs=1e-11)
            assert found.rate == pytest.approx(expected[1], abs=1e-11)
            if not weighted:  # sums of weights may tie but for rounding
                assert found.iterate == expected[2]
                assert found.cut == pytest.approx(expected[3], abs=1e-7)


@pytest.mark.parametrize("layout", ["dense", "csr"])
@pytest.mark.parametrize("rows", [17, 1000])
def test_layout_and_blocks_do_not_matter(layout, rows):
    oracle, _, iterates = make(n_iterates=40)
    expected = sweep(oracle, iterates)
    other, _, _ = make(layout=layout, block_rows=rows)
    found = sweep(other, iterates)
    np.testing.assert_array_equal(found.counts, expected.counts)
    np.testing.assert_array_equal(found.iterate, expected.iterate)
    np.testing.assert_allclose(found.cut, expected.cut, rtol=1e-9)


@settings(max_examples=50)
@given(st.integers(0, 30), st.sampled_from(NOTION_NAMES), st.booleans())
def test_properties(seed, name, coarse):
    oracle, data, iterates = make(name, n=80, seed=seed, coarse=coarse)
    frontier = sweep(oracle, iterates, min_share=0.05)
    assert (np.diff(frontier.accuracy) < 0).all()
    assert (np.diff(frontier.rate) > 0).all()
    X, y, z = data
    for i in range(len(frontier)):
        w = iterates[frontier.iterate[i]]
        predicted = X @ w[:-1] + (w[-1] - frontier.cut[i]) > 0
        _, counts = group_counts(y, predicted, sensitive_features=z)
        np.testing.assert_array_equal(counts, frontier.counts[i])
        share = predicted[z == 0].mean(), predicted[z == 1].mean()
        assert min(share) >= 0.05 - 1e-9
        assert max(share) <= 0.95 + 1e-9
    # A stricter target never loses rate, nor gains accuracy.
    if len(frontier):
        chosen = [frontier.select(tau) for tau in np.linspace(0.01, 1, 30)]
        assert (np.diff([p.rate for p in chosen]) >= 0).all()
        assert (np.diff([p.accuracy for p in chosen]) <= 0).all()


def test_nearly_equal_scores_are_never_separated():
    X = np.repeat([[0.0], [1.0], [2.0], [3.0]], 25, axis=0)
    X += 1e-15 * np.random.default_rng(0).standard_normal(X.shape)
    y, z = np.tile([0, 1, 1, 0, 1], 20), np.tile([0, 1], 50)
    oracle = make_oracle(X, y, z, notion=NOTIONS["statistical_parity"](2))
    frontier = sweep(oracle, np.array([[1.0, 0.0]]), min_share=0.0)
    assert set(np.round(frontier.cut, 6)) <= {0.5, 1.5, 2.5}
    single = make_oracle(X.astype(np.float32), y, z, notion=NOTIONS["statistical_parity"](2))
    assert set(np.round(sweep(single, np.array([[1.0, 0.0]])).cut, 6)) <= {0.5, 1.5, 2.5}


def test_an_anticlassifier_is_not_an_answer():
    # Nearly everybody selected is a false discovery, alike in both groups: ratio near 1.
    rng = np.random.default_rng(0)
    y, z = rng.integers(0, 2, 400), rng.integers(0, 2, 400)
    X = (1 - 2.0 * y)[:, None] + 0.1 * rng.standard_normal((400, 1))
    oracle = make_oracle(X, y, z, notion=NOTIONS["false_discovery"](2))
    assert len(sweep(oracle, np.array([[1.0, 0.0]]))) == 0
    assert len(sweep(oracle, np.array([[-1.0, 0.0]]))) > 0


def test_nothing_eligible_gives_the_last_iterate():
    oracle, _, iterates = make()
    frontier = sweep(oracle, 0 * iterates)
    point = frontier.select(0.8)
    assert (len(frontier), point.iterate, point.cut, point.feasible) == (0, 5, 0.0, False)
    assert np.isnan(point.rate)
    assert frontier.to_frame().empty


def test_frame_has_groups_by_name():
    oracle, _, iterates = make()
    frame = sweep(oracle, iterates, groups=["a", "b"]).to_frame()
    assert list(frame) == [
        "iterate",
        "cut",
        "accuracy",
        "rate",
        "below_constant",
        "selection_rate[a]",
        "selection_rate[b]",
    ]
    low = frame[["selection_rate[a]", "selection_rate[b]"]].min(axis=1)
    high = frame[["selection_rate[a]", "selection_rate[b]"]].max(axis=1)
    np.testing.assert_allclose(low / high, frame["rate"])


def test_cuts_of_scores_are_on_their_scale():
    y, z = np.tile([0, 0, 1, 1], 20), np.tile([0, 1], 40)
    score = np.tile([0.1, 0.2, 0.7, 0.9], 20)
    frontier = score_frontier(y, score, sensitive_features=z)
    assert frontier.select(0.9).accuracy == 1
    assert 0.2 < frontier.select(0.9).cut < 0.7


def test_some_points_of_a_frontier_are_none_of_its_sure_ones():
    y, z = np.tile([0, 0, 1, 1], 20), np.tile([0, 1], 40)
    frontier = score_frontier(y, np.random.default_rng(0).random(80), sensitive_features=z)
    few = frontier.take(np.array([0]))
    assert (len(few), few.n_sure, few.conservative) == (1, 0, None)


def test_of_points_as_accurate_and_as_sure_the_higher_rate_is_kept():
    points = Points(
        iterate=np.array([0, 1]),
        cut=np.zeros((2, 1)),
        utility=np.array([0.7, 0.7]),
        rate=np.array([0.8, 0.9]),
        sure=np.array([0.5, 0.5]),
        counts=np.zeros((2, 2, 2, 2)),
    )
    assert points.pareto("sure").rate.tolist() == [0.9]


@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds", "false_discovery"])
@pytest.mark.parametrize("asked", [{"tau": 0.8}, {"epsilon": 0.05}, {"tau": 0.9, "epsilon": 0.1}])
def test_cuts_are_left_out_early_only_if_they_cannot_count(notion, asked, monkeypatch):
    rng = np.random.default_rng(0)
    z = rng.choice(6, 3000, p=[0.4, 0.3, 0.1, 0.1, 0.06, 0.04])
    X = rng.normal(size=(3000, 4))
    X[:, 0] += 0.3 * z
    y = (X[:, 0] + X[:, 1] + rng.logistic(size=3000) > 0).astype(int)
    oracle = make_oracle(X, y, z, notion=find_notion(notion), n_groups=5)
    iterates = rng.normal(size=(60, 5))
    targets = [target := find_target(notion, **asked), *target.others]
    found = []
    for few in (1, 100):
        monkeypatch.setattr(sweeping, "MANY_GROUPS", few)
        about = {"groups": list(range(5)), "limits": Limits(exact_rows=1)}
        found.append(sweep_targets(oracle, iterates, targets, **about))
    for early, late in zip(*found, strict=True):
        assert len(early)
        for name in ("iterate", "cut", "accuracy", "rate", "counts"):
            np.testing.assert_array_equal(getattr(early, name), getattr(late, name))
        for name in ("cut", "rate"):
            pair = (getattr(one.conservative, name) for one in (early, late))
            np.testing.assert_array_equal(*pair)
