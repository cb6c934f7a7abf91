"""Exact bounds of targets: all pairs, all rates, by simulation where the truth is at the level."""

import numpy as np
import pytest

from evenhand.core.rates import EQUALIZED_ODDS, RATES, WorstRate
from evenhand.core.targets import Target
from evenhand.statistics.bounds import exact_bound
from evenhand.statistics.exact import lower_bound

RATE = RATES["selection_rate"]


def drawn(rng, runs, sizes, p, rate=RATE):
    """Counts of tables whose groups have these numbers of rows in a rate's denominator."""
    counts = np.zeros((runs, len(sizes), 2, 2))
    hits = rng.binomial(sizes, p, size=(runs, len(sizes)))
    counts[(..., *rate.numerator[0])] = hits
    (other,) = [c for c in rate.denominator if c not in rate.numerator][:1]
    counts[(..., *other)] += np.asarray(sizes) - hits
    return counts


def fails(bounds, level, delta):
    """Whether bounds exceed the truth more often than δ beyond three standard errors."""
    wrong = np.mean(bounds > level + 1e-12)
    return wrong > delta + 3 * np.sqrt(delta * (1 - delta) / len(bounds))


def test_it_is_the_least_of_all_pairs_and_rates():
    rng = np.random.default_rng(0)
    for counts in rng.integers(1, 60, (8, 3, 2, 2)):
        for comparison in ("ratio", "difference"):
            shares = (1.0, 0.9 if comparison == "ratio" else 2.5)
            rates = WorstRate("two", (RATE, RATES["true_positive_rate"]), shares)
            each = []
            for rate, share in zip(rates.components, rates.shares, strict=True):
                top, bottom = (v.astype(int) for v in rate.fractions(counts))
                for j, k in ((j, k) for j in range(3) for k in range(3) if j != k):
                    pair = (top[j], top[k]), (bottom[j], bottom[k])
                    least = lower_bound(*pair, 0.05, comparison)
                    each.append(least / share)
            target = Target(rates, 0.8, comparison)
            most = float(target.value(counts))
            found = float(exact_bound(counts, target, 0.05))
            assert found == pytest.approx(min(*each, most), abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.05, 0.2])
@pytest.mark.parametrize(
    ("sizes", "p"),
    [
        ((150, 1000), (0.0016, 0.002)),
        ((1500, 40_000), (0.16, 0.2)),
        ((40_000, 1500), (0.16, 0.2)),
        ((100,) * 10, (0.4, *[0.5] * 9)),
    ],
)
def test_never_wrong_more_often_than_asked(sizes, p, delta):
    rng = np.random.default_rng(1)
    runs = 1000 if len(sizes) == 2 else 200
    bounds = exact_bound(drawn(rng, runs, sizes, p), Target(RATE, 0.8), delta)
    assert not fails(bounds, 0.8, delta)
    if sizes == (40_000, 1500):  # the test can fail
        assert fails(exact_bound(drawn(rng, runs, sizes, p), Target(RATE, 0.8), 0.4), 0.8, delta)


@pytest.mark.slow
def test_never_wrong_for_several_rates_and_error_rates():
    rng, runs, sizes, p = np.random.default_rng(2), 1500, (300, 400), (0.24, 0.3)
    fdr = RATES["false_discovery_rate"]
    bounds = exact_bound(drawn(rng, runs, sizes, p, fdr), Target(fdr, 0.8), 0.05)
    assert not fails(bounds, 0.8, 0.05)
    # Both rates of equalised odds are just at the level.
    both = sum(drawn(rng, runs, sizes, p, rate) for rate in EQUALIZED_ODDS.components)
    assert not fails(exact_bound(both, Target(EQUALIZED_ODDS, 0.8), 0.05), 0.8, 0.05)
