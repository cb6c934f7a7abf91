"""Intervals of ratios and differences: right as often as they say, by enumeration."""

import itertools

import numpy as np
import pytest
from helpers import raises
from scipy.stats import binom

from evenhand import difference_interval, ratio_interval
from evenhand.core.metrics import equalized_odds_ratio, statistical_rate
from evenhand.core.rates import EQUALIZED_ODDS, RATES, WorstRate
from evenhand.core.targets import Target
from evenhand.statistics.intervals import population_ends


def counts_of(*groups):
    """Counts of groups with so many hits among so many rows."""
    return np.array([[[0, 0], [n - a, a]] for a, n in groups], dtype=float)


def rows_of(*groups):
    """Predictions and groups with so many hits among so many rows."""
    y = np.concatenate([np.repeat([1, 0], [a, n - a]) for a, n in groups])
    return y, np.repeat(np.arange(len(groups)), [n for _, n in groups])


def outcomes(sizes):
    return list(itertools.product(*(range(n + 1) for n in sizes)))


def probability(found, sizes, rates):
    return np.prod([binom.pmf(a, n, p) for a, n, p in zip(found, sizes, rates, strict=True)])


GRID = {2: np.linspace(0.02, 0.98, 13), 3: np.array([0.05, 0.3, 0.5, 0.8, 0.98])}


@pytest.mark.parametrize(
    "sizes", [(9, 6), *(pytest.param(n, marks=pytest.mark.slow) for n in ((5, 12), (4, 3, 4)))]
)
@pytest.mark.parametrize("function", [ratio_interval, difference_interval])
@pytest.mark.parametrize("sides", [1, 2])
def test_coverage_by_enumeration(sizes, function, sides):
    """Every outcome of small groups: an interval of 80% misses the truth in 20% at the most."""
    tables = []
    for found in outcomes(sizes):
        y, z = rows_of(*zip(found, sizes, strict=True))
        tables.append(function(y, y, sensitive_features=z, confidence=0.8, sides=sides))
    low, high = np.array(tables).T
    for rates in itertools.product(GRID[len(sizes)], repeat=len(sizes)):
        p = np.array([probability(found, sizes, rates) for found in outcomes(sizes)])
        truth = min(rates) / max(rates)
        if function is difference_interval:
            truth = max(rates) - min(rates)
        below, above = p[high < truth - 1e-12].sum(), p[low > truth + 1e-12].sum()
        if sides == 1:
            assert max(below, above) <= 0.2 + 1e-9, rates
        else:
            assert below + above <= 0.2 + 1e-9, rates


@pytest.mark.slow
def test_coverage_of_ten_groups():
    """Ten groups, alike and not: drawn, as there are too many outcomes."""
    rng = np.random.default_rng(0)
    for rates in (np.full(10, 0.4), np.linspace(0.3, 0.6, 10)):
        held = []
        for _ in range(60):
            y, z = rows_of(*((a, 120) for a in rng.binomial(120, rates).tolist()))
            low, high = ratio_interval(y, y, sensitive_features=z)
            held.append(low <= rates.min() / rates.max() <= high)
        assert np.mean(held) >= 0.95


def test_an_interval_holds_what_is_seen_and_parity_where_rates_are_equal():
    for groups in ([(10, 20), (9, 20)], [(5, 50), (50, 500), (1, 10)], [(0, 9), (0, 30)]):
        y, z = rows_of(*groups)
        low, high = ratio_interval(y, y, sensitive_features=z)
        p = np.array([a / n for a, n in groups])
        assert low <= (p.min() / p.max() if p.any() else 0.5) <= high
        least, most = difference_interval(y, y, sensitive_features=z)
        assert least <= p.max() - p.min() <= most
        if p.max() == p.min():
            assert (high, least) == (1, 0)


def test_the_ends_are_those_of_the_pairs():
    """Three groups: the least pair gives the lower end, six pairs share the upper end's error."""
    from evenhand.statistics.exact import lower_bound

    groups = [(30, 100), (50, 100), (55, 90)]
    target, counts = Target(RATES["selection_rate"], 0.8), counts_of(*groups)
    pairs = list(itertools.permutations(groups, 2))
    low = min(lower_bound((a, c), (b, d), 0.05) for (a, b), (c, d) in pairs)
    high = min(1 / lower_bound((a, c), (b, d), 0.05 / 6) for (a, b), (c, d) in pairs)
    assert population_ends(target, counts, 0.95) == pytest.approx((low, min(high, 1)), rel=1e-6)
    # Both ends together: the lower one has half, the upper one shares its half among six.
    y, z = rows_of(*groups)
    low = min(lower_bound((a, c), (b, d), 0.025) for (a, b), (c, d) in pairs)
    high = min(1 / lower_bound((a, c), (b, d), 0.025 / 6) for (a, b), (c, d) in pairs)
    assert ratio_interval(y, y, sensitive_features=z) == pytest.approx((low, high), rel=1e-6)


def test_many_groups_far_apart_are_told_apart():
    """Each of 90 pairs is tested at a small error, and the order of outcomes suits that."""
    groups = [(80, 200), (20, 200), *[(50, 200)] * 8]
    target, counts = Target(RATES["selection_rate"], 0.8), counts_of(*groups)
    assert population_ends(target, counts, 0.95)[1] == pytest.approx(1 / 1.997, abs=1e-3)


def test_any_rate_and_several():
    rng = np.random.default_rng(1)
    y, z = rng.integers(0, 2, 300), np.arange(300) % 3
    p = np.where(rng.random(300) < 0.7, y, 1 - y)
    for name in RATES:
        low, high = ratio_interval(y, p, sensitive_features=z, rate=name)
        assert 0 <= low <= high <= 1
    both = ratio_interval(y, p, sensitive_features=z, rate="equalized_odds")
    assert both[0] <= equalized_odds_ratio(y, p, sensitive_features=z) <= both[1]
    alone = [
        ratio_interval(y, p, sensitive_features=z, rate=part.name)
        for part in EQUALIZED_ODDS.components
    ]
    # The lower end costs nothing more, the upper end does.
    assert both[0] == pytest.approx(min(low for low, _ in alone))
    assert both[1] >= min(high for _, high in alone)
    share = WorstRate("half", (RATES["selection_rate"],), (0.5,))
    assert ratio_interval(y, p, sensitive_features=z, rate=share)[1] == 1
    assert statistical_rate(y, p, sensitive_features=z) > 0.5


def test_what_has_no_interval():
    y, z = rows_of((3, 6), (2, 5))
    given = {"sensitive_features": z}
    with raises("interval_with_weights"):
        ratio_interval(y, y, sample_weight=np.ones(11), **given)
    with raises("unknown_rate"):
        ratio_interval(y, y, rate="calibration", **given)
    with raises("confidence_out_of_range"):
        difference_interval(y, y, confidence=95, **given)
    with raises("confidence_out_of_range"):
        ratio_interval(y, y, confidence="0.95", **given)
    with raises("bad_sides"):
        ratio_interval(y, y, sides=3, **given)
    # A group without a negative has no false positive rate.
    nothing = {"sensitive_features": [0, 0, 1], "rate": "false_positive_rate"}
    for function in (ratio_interval, difference_interval):
        assert np.isnan(function([1, 0, 1], [1, 1, 1], **nothing)).all()
        # One group is not compared with any.
        assert np.isnan(function(y, y, sensitive_features=np.zeros(11))).all()
