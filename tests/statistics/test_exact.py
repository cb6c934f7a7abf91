"""Exact tests and bounds of two proportions, against enumeration and against plain sums."""

from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binom, norm

from evenhand.statistics import exact
from evenhand.statistics.exact import Pair, lower_bound, p_value, score, score_limit

SIZES = [
    (2, 3), (5, 5), (5, 9), (9, 5), (12, 7), (7, 20), (20, 7), (15, 15),
    (10, 30), (30, 10), (25, 40), (40, 60),
]  # fmt: skip


def outcomes(sizes):
    """All outcomes of two groups, as columns."""
    return [a.ravel() for a in np.meshgrid(*(np.arange(n + 1) for n in sizes), indexing="ij")]


def errors(sizes, bounds, delta, level, comparison):
    """Greatest probability, over a fine grid, that a bound exceeds what it bounds."""
    p_k = np.sin(np.linspace(0, np.pi / 2, 301)) ** 2
    p_j = p_k * level if comparison == "ratio" else p_k + level
    good = (p_j >= 0) & (p_j <= 1)
    p_j, p_k = p_j[good, None], p_k[good, None]
    wrong = (bounds > level + 1e-12).reshape(sizes[0] + 1, -1)
    a_j, a_k = (np.arange(n + 1) for n in sizes)
    chance = (binom.pmf(a_j, sizes[0], p_j) @ wrong) * binom.pmf(a_k, sizes[1], p_k)
    return chance.sum(axis=1).max()


@pytest.mark.parametrize("delta", [0.001, 0.05, 0.2])
@pytest.mark.parametrize(
    "sizes", [pytest.param(s, marks=[pytest.mark.slow] if sum(s) > 25 else []) for s in SIZES]
)
def test_size_by_enumeration(sizes, delta):
    a_j, a_k = outcomes(sizes)
    for comparison, levels in (("ratio", (0.5, 0.8, 0.9, 1.0)), ("difference", (0.0, -0.1, -0.2))):
        found = zip(a_j, a_k, strict=True)
        bounds = np.array([lower_bound(pair, sizes, delta, comparison) for pair in found])
        for level in levels:
            assert errors(sizes, bounds, delta, level, comparison) <= delta


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_both_versions_agree(data):
    pytest.importorskip("numba")
    from evenhand.statistics import numba_exact

    trials = tuple(data.draw(st.integers(1, 3000)) for _ in range(2))
    hits = tuple(data.draw(st.integers(0, n)) for n in trials)
    difference = data.draw(st.booleans())
    order = data.draw(st.sampled_from([exact.ORDER, 3.0]))
    limit = float(score_limit(hits, trials, difference=difference, quantile=order))
    ends = (0, trials[1])
    least = exact.region(trials, limit, difference, ends, order)
    np.testing.assert_array_equal(numba_exact.region(trials, limit, difference, ends, order), least)
    shares = st.integers(0, 10**6).map(lambda n: n / 10**6)
    pairs = st.lists(st.tuples(shares, shares), min_size=1, max_size=5)
    p_j, p_k = np.array(data.draw(pairs)).T
    plain = exact.chances(p_j, p_k, trials, least, 0)
    found = numba_exact.chances(p_j, p_k, trials, least, 0)
    np.testing.assert_allclose(found, plain, rtol=1e-7, atol=1e-8)
    # What is said is an upper bound of the plain sum, and hardly above it.
    a_k = np.arange(trials[1] + 1)
    sums = [(binom.sf(least - 1, trials[0], p) * binom.pmf(a_k, trials[1], q)).sum()
            for p, q in zip(p_j, p_k, strict=True)]  # fmt: skip
    assert (plain >= np.array(sums) - 1e-12).all()
    np.testing.assert_allclose(plain, sums, atol=1e-8, rtol=1e-7)


@pytest.mark.parametrize("sizes", SIZES[:9])
def test_statistic_is_monotone(sizes):
    a_j, a_k = outcomes(sizes)
    shape = tuple(n + 1 for n in sizes)
    for difference, levels in (
        (False, (0.2, 0.5, 0.8, 0.9, 1.0)),
        (True, (-0.9, -0.3, -0.05, 0.0)),
    ):
        tables = np.array([score(a_j, a_k, *sizes, t, difference).reshape(shape) for t in levels])
        high = [(q, tables[1:] >= q) for q in (exact.ORDER, 2.5, 3.5)]
        tables = np.clip(tables, -1e6, 1e6)
        assert (np.diff(tables, axis=1) >= -1e-9).all()
        assert (np.diff(tables, axis=2) <= 1e-9).all()
        # In the level: what reaches the quantile at one does so at lower ones.
        for quantile, reached in high:
            assert (tables[:-1][reached] >= quantile).all()


@pytest.mark.parametrize(("sizes", "difference"), product([(5, 9), (30, 12)], [False, True]))
def test_second_derivative_is_bounded(sizes, difference):
    """Of the probability of any event; here of the worst one at each angle, by differences."""
    h, a = 1e-3, [np.arange(n + 1) for n in sizes]

    def pmf(angle, level):
        base = np.sin(angle) ** 2
        if not difference:
            p_j, p_k = base * level, base
        elif angle < np.arcsin(np.sqrt((1 + level) / 2)):
            p_j, p_k = base, base - level
        else:
            p_j, p_k = base + level, base
        return binom.pmf(a[0], sizes[0], p_j)[:, None] * binom.pmf(a[1], sizes[1], p_k)

    greatest = 0.0
    for level in (-0.4, -0.1, 0.0) if difference else (0.3, 0.8, 1.0):
        b_j, b_k = sizes
        bound = (4 + 2 * abs(level)) * (b_j + b_k) if difference else 4 * (b_k + level * b_j)
        middle = np.arcsin(np.sqrt((1 + level) / 2)) if difference else np.inf
        end = np.arcsin(np.sqrt(-level)) if difference else 0.0
        for angle in np.linspace(h, np.pi / 2 - h, 60):
            # The chart of the difference goes from 0 to the middle, and on from its mirror image.
            if difference and (abs(angle - middle) < 2 * h or middle < angle < end):
                continue
            if difference and angle > middle and np.sin(angle) ** 2 < (1 - level) / 2:
                continue
            bend = (pmf(angle + h, level) - 2 * pmf(angle, level) + pmf(angle - h, level)) / h**2
            worst = max(bend[bend > 0].sum(), -bend[bend < 0].sum())
            assert worst <= bound * (1 + 1e-3)
            greatest = max(greatest, worst / bound)
    assert greatest > 0.1  # the bound is not idle


@given(st.data())
@settings(max_examples=40, deadline=None)
def test_bound_and_test_are_one(data):
    trials = tuple(data.draw(st.integers(1, 60)) for _ in range(2))
    hits = tuple(data.draw(st.integers(0, n)) for n in trials)
    delta = data.draw(st.sampled_from([0.01, 0.05, 0.2]))
    for comparison in ("ratio", "difference"):
        bound = lower_bound(hits, trials, delta, comparison)
        sign = -1 if comparison == "difference" else 1
        if comparison == "ratio" and not hits[0]:
            assert bound == 0
            assert p_value(hits, trials, 0.5) == 1
            continue
        seen = hits[0] / trials[0]
        other = hits[1] / trials[1]
        value = seen - other if sign < 0 else seen / other if other else np.inf
        assert bound <= value
        gamma, error = exact.error_of(delta)
        pair = Pair.of(hits, trials, sign < 0, gamma, order=exact.order_of(delta))
        assert bound < 1e-4 or pair.rejects(bound - 1e-4, error)
        if bound < value - 0.05:
            assert not pair.rejects(bound * 1.02 + 0.02, error)
        if delta >= 0.05:  # with the order of p-values
            below = p_value(hits, trials, sign * (bound - 1e-4), comparison)
            above = p_value(hits, trials, sign * (bound * 1.02 + 0.02), comparison)
            assert below <= delta * 1.02
            if bound < value - 0.05:
                assert above > delta * 0.95
            # More confidence says less.
            assert bound <= lower_bound(hits, trials, 2 * delta, comparison) + 1e-9


def test_supremum_is_one():
    """The bounded supremum is above a fine grid of plain sums, by its allowance at the most."""
    for hits, trials in (((30, 45), (60, 80)), ((3, 5), (9, 11)), ((150, 40), (200, 50))):
        for difference, level in ((False, 0.7), (False, 1.2), (True, -0.1), (True, 0.1)):
            pair = Pair.of(hits, trials, difference, 1e-4)
            p_k = np.linspace(pair.low, pair.high, 4001)
            p_j = p_k + level if difference else p_k * level
            good = (p_j >= 0) & (p_j <= 1)
            most = pair.chance(p_j[good], p_k[good]).max()
            found = pair.supremum(level)[0]
            assert most - 1e-12 <= found <= most * 1.011 + 2e-6


def test_known_tables():
    """At 5,150 and 10,670 rows and rates about .17 a ratio of .959 shows .9."""
    assert lower_bound((839, 1814), (5150, 10670), 0.05) == pytest.approx(0.8995, abs=1e-4)
    assert lower_bound((745, 1805), (5150, 10670), 0.05) == pytest.approx(0.80, abs=2e-3)
    # Nobody among the second group: any ratio is possible that its trials allow.
    assert 1 < lower_bound((3, 0), (5, 9), 0.05) < 3
    assert lower_bound((0, 3), (5, 9), 0.05) == 0
    assert np.isnan(lower_bound((0, 3), (0, 9), 0.05))
    # With small errors the order of outcomes is another.
    assert lower_bound((80, 20), (200, 200), 0.05 / 90) == pytest.approx(1.997, abs=1e-3)
    assert lower_bound((9, 10), (20, 20), 1e-4) == pytest.approx(0.1515, abs=1e-3)


@pytest.mark.slow
def test_a_fixed_critical_value_is_not_valid():
    """Of few rows with a rare hit the score limit alone errs twice as often as it says."""
    sizes, p_k, level, delta = (150, 1000), 0.002, 0.8, 0.05
    a_j, a_k = np.arange(30), np.arange(40)
    limits = score_limit(
        [a_j[:, None], a_k], sizes, quantile=norm.isf(delta)
    )  # fmt: skip
    chance = binom.pmf(a_j, sizes[0], level * p_k)[:, None] * binom.pmf(a_k, sizes[1], p_k)
    assert chance[limits > level].sum() > 1.5 * delta
    bounds = np.array([[lower_bound((i, k), sizes, delta) for k in a_k[:15]] for i in a_j[:8]])
    left_out = 1 - chance[:8, :15].sum()
    assert chance[:8, :15][bounds > level].sum() + left_out <= delta
