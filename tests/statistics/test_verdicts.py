"""Verdicts: the rule is about the rows, the other one about the population."""

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.core.rates import RATES
from evenhand.core.targets import Target
from evenhand.statistics.bounds import exact_bound
from evenhand.statistics.verdicts import FAILS, HOLDS, UNTOLD, Verdict, judge

TARGET = Target(RATES["selection_rate"], 0.8)


def counts_of(*groups):
    return np.array([[[0, 0], [n - a, a]] for a, n in groups], dtype=float)


@pytest.mark.parametrize(
    ("groups", "met", "population"),
    [
        ([(10, 20), (9, 20)], True, UNTOLD),
        ([(500, 1000), (490, 1000)], True, HOLDS),
        ([(500, 1000), (300, 1000)], False, FAILS),
        ([(500, 1000), (399, 1000)], False, UNTOLD),
        ([(500, 1000), (401, 1000)], True, UNTOLD),
        # Of the compared groups one is tiny: nothing follows.
        ([(500, 1000), (500, 1000), (2, 4)], True, UNTOLD),
    ],
)
def test_rule_and_population(groups, met, population):
    verdict = judge(TARGET, counts_of(*groups))
    assert (verdict.met, verdict.population) == (met, population)
    told = verdict.plain()
    assert (told["rule"], told["population"]) == ("met" if met else "not met", population)
    assert (verdict.rows_needed is None) or population == UNTOLD


@pytest.mark.parametrize(
    ("groups", "told"), [([(10, 20), (9, 20)], HOLDS), ([(10, 20), (7, 20)], FAILS)]
)
def test_the_rows_needed_would_tell(groups, told):
    verdict = judge(TARGET, counts_of(*groups))
    assert verdict.population == UNTOLD
    times = verdict.rows_needed / sum(n for _, n in groups)
    found = {}
    for factor in (0.7 * times, 1.1 * times):
        more = [(round(a * factor), round(n * factor)) for a, n in groups]
        found[factor] = judge(TARGET, counts_of(*more)).population
    assert list(found.values()) == [UNTOLD, told]


def test_at_the_level_itself_no_number_of_rows_would_tell():
    verdict = judge(TARGET, counts_of((100, 200), (80, 200)))
    assert (verdict.value, verdict.met, verdict.rows_needed) == (0.8, True, None)


def test_what_holds_is_what_a_certificate_says():
    """The verdict at the confidence 1 - δ and the test of a certificate are one."""
    for a in range(300, 500, 10):
        counts = counts_of((500, 1000), (a, 1000))
        certified = TARGET.reached(exact_bound(counts, TARGET, 0.05))
        assert (judge(TARGET, counts).population == HOLDS) == certified


@pytest.mark.slow
def test_neither_word_is_wrong_more_often_than_said():
    """By enumeration of 9 and 7 rows, at 80%: with the truth on each side of the level."""
    sizes = (9, 7)
    table = {
        (a, b): judge(TARGET, counts_of((a, 9), (b, 7)), 0.8).population
        for a in range(10)
        for b in range(8)
        if a or b
    }
    for p in np.linspace(0.05, 1, 12):
        for ratio in (0.3, 0.7, 0.799, 0.8, 0.9, 1.0):
            wrong = HOLDS if ratio < 0.8 else FAILS
            of = [
                binom.pmf(np.arange(n + 1), n, q)
                for n, q in zip(sizes, (p, p * ratio), strict=True)
            ]
            error = sum(of[0][a] * of[1][b] for (a, b), word in table.items() if word == wrong)
            assert error <= 0.2 + 1e-9


def test_what_is_not_judged():
    unsure = judge(TARGET, counts_of((500, 1000), (490, 1000)), judged=False)
    assert (unsure.met, unsure.population, unsure.at_least) == (None, UNTOLD, None)
    assert unsure.plain()["rule"] == "cannot be judged"
    nobody = judge(TARGET, counts_of((0, 10), (0, 10)))
    assert (nobody.value, nobody.met, nobody.population) == (None, None, UNTOLD)
    weighted = Verdict(0.9, 0.8)
    assert (weighted.met, weighted.population) == (True, UNTOLD)


def test_rows_that_are_no_draws_prove_nothing():
    """The rule is judged all the same."""
    found = judge(TARGET, counts_of((500, 1000), (490, 1000)), drawn=False)
    assert (found.met, found.population, found.at_least) == (True, UNTOLD, None)
