"""Differences, and several targets at once: values by hand, frontiers against every cut, moves."""

import json
import re
import warnings
from itertools import combinations

import numpy as np
import pytest
from helpers import fair, make_rows, raises, run, words

from evenhand import load_model, save_model
from evenhand.core.errors import Parameter
from evenhand.core.notions import find_notion
from evenhand.core.rates import RATES
from evenhand.core.targets import Target, find_target, moved
from evenhand.engines.kernels import Limits
from evenhand.engines.memory import make_oracle
from evenhand.frontier import sweep as sweeping
from evenhand.statistics.bounds import exact_bound, expected_bound, lower_value
from evenhand.statistics.exact import lower_bound
from evenhand.statistics.intervals import population_ends
from evenhand.statistics.proportions import wilson_interval
from evenhand.workflow.summary import as_read

PARITY, OPPORTUNITY = "statistical_parity", "equal_opportunity"
BOTH = [PARITY, OPPORTUNITY]
# TN FP FN TP: selected 40, 50, 45 of 100; right of the good 30/40, 36/45, 20/40.
COUNTS = np.array(
    [[[50.0, 10], [10, 30]], [[41, 14], [9, 36]], [[35, 25], [20, 20]]],
)
PLAIN, COMPILED = Limits(compiled_rows=10**9), Limits(compiled_rows=1)
DEMANDS = {
    "difference": ("equalized_odds", {"epsilon": 0.1}),
    "differences": (BOTH, {"epsilon": [0.1, 0.04]}),
    "mixed": (BOTH, {"tau": [0.8, None], "epsilon": [None, 0.05]}),
    "both of one": (PARITY, {"tau": 0.7, "epsilon": 0.1}),
}


class TestValues:
    def test_a_difference_by_hand(self):
        target = find_target(PARITY, epsilon=0.1)
        assert target.value(COUNTS) == pytest.approx(-0.1)
        # 50 and 40 of 100 are exactly 0.1 apart, which the quotients are not.
        assert target.reached(target.value(COUNTS))
        assert not target.at(-0.0999).reached(target.value(COUNTS))
        assert str(target) == "ε = 0.1"
        assert target.text(target.value(COUNTS)) == "0.100"
        assert target.text(-0.1000004) == "0.1000004"

    def test_several_differences_in_units_of_the_strictest(self):
        target = find_target(BOTH, epsilon=[0.1, 0.4])
        assert (target.level, target.rate.shares) == (-0.1, (1.0, 4.0))
        assert target.value(COUNTS) == pytest.approx(-max(0.1, 0.3 / 4))
        assert [part.level for part in target.components] == [-0.1, -0.4]

    @pytest.mark.parametrize("asked", [{"tau": 1.0}, {"epsilon": 0.0}])
    def test_equal_rates_have_no_proportion_to_anything(self, asked):
        now = find_target("statistical_parity", 0.8, 0.05)
        with raises("equal_beside_others"):
            moved(now, 0.8, 0.05, asked.get("tau"), asked.get("epsilon"))

    def test_a_mixed_target_in_units_of_the_strictest_shortfall(self):
        target = find_target(BOTH, [0.8, None], [None, 0.3])
        # 0.2 and 0.3 are allowed; 1 - 40/50 and 36/45 - 20/40 are what is missing.
        assert target.value(COUNTS) == pytest.approx(-max(0.2, 0.3 / 1.5))
        assert target.reached(target.value(COUNTS))
        half = target.at(target.level / 2)
        assert [part.level for part in half.components] == pytest.approx([0.9, -0.15])
        assert (
            str(half) == "0.9 for the statistical rate, 0.15 for the true positive rate difference"
        )

    @pytest.mark.parametrize("name", DEMANDS)
    def test_it_is_reached_exactly_if_every_rate_is(self, name):
        notion, demand = DEMANDS[name]
        target = find_target(notion, **demand)
        counts = np.random.default_rng(0).integers(0, 40, (3000, 3, 2, 2)).astype(float)
        value = target.value(counts)
        each = [part.value(counts) >= part.level for part in target.components]
        np.testing.assert_array_equal(value >= target.level, np.all(each, axis=0))
        assert ((value >= target.worst) & (value <= target.worst + 1))[~np.isnan(value)].all()

    def test_groups_that_nobody_is_selected_of_are_alike_and_an_empty_one_is_unknown(self):
        counts = np.array([[[5.0, 0], [5, 0]], [[7, 0], [3, 0]]])
        assert find_target(PARITY, epsilon=0.1).value(counts) == 0
        counts[1] = 0
        assert np.isnan(find_target(PARITY, epsilon=0.1).value(counts))

    @pytest.mark.parametrize(
        ("notion", "demand", "code"),
        [
            (PARITY, {"epsilon": 1.0}, "difference_out_of_range"),
            (PARITY, {"epsilon": -0.1}, "difference_out_of_range"),
            (PARITY, {"epsilon": float("nan")}, "difference_out_of_range"),
            (PARITY, {"tau": 0.0}, "target_out_of_range"),
            (PARITY, {"epsilon": [0.1]}, "targets_of_notions"),
            (BOTH, {"epsilon": [0.1, 0.1, 0.1]}, "targets_of_notions"),
            (BOTH, {"tau": [0.8, None]}, "no_target"),
            (BOTH, {"epsilon": [0.0, 0.1]}, "equal_beside_others"),
            (BOTH, {"tau": [1.0, None], "epsilon": [None, 0.1]}, "equal_beside_others"),
        ],
    )
    def test_what_cannot_be_demanded(self, notion, demand, code):
        with raises(code):
            find_target(notion, **demand)


class TestFrontier:
    @pytest.mark.parametrize("name", DEMANDS)
    @pytest.mark.parametrize("groups", [2, 3])
    @pytest.mark.parametrize("limits", [PLAIN, COMPILED], ids=["plain", "compiled"])
    def test_none_of_all_cuts_is_better(self, name, groups, limits, monkeypatch):
        notion, demand = DEMANDS[name]
        target = find_target(notion, **demand)
        if target.comparison == "ratio":  # others are compared as they are
            monkeypatch.setattr(sweeping.ManyCuts, "caution", 0.0)
        X, y, z = make_rows(180, groups=groups)
        X = np.round(X, 1)
        oracle = make_oracle(X, y, z, notion=find_notion(notion))
        W = np.random.default_rng(2).standard_normal((3, X.shape[1] + 1))
        found = sweeping.sweep(oracle, W, target, min_share=0.05, limits=limits)
        values, right = [], []
        for w in W:
            score = X @ w[:-1] + w[-1]
            for cut in np.convolve(np.unique(score), [0.5, 0.5], "valid"):
                counts = np.zeros((groups, 2, 2))
                np.add.at(counts, (z, y, (score > cut).astype(int)), 1)
                share = counts[:, :, 1].sum(axis=1) / counts.sum(axis=(1, 2))
                if ((share >= 0.05) & (share <= 0.95)).all():
                    values.append(float(target.value(counts)))
                    right.append(np.trace(counts.sum(axis=0)) / 180)
        values, right = np.array(values), np.array(right)
        for level in (-0.4, -0.2, -0.1, target.level, -0.03):
            best = right[values >= level].max(initial=-1)
            point = found.select(level)
            assert point.feasible == (best >= 0)
            if point.feasible:
                assert point.accuracy == pytest.approx(best)

    def test_a_frame_has_the_difference_itself(self):
        X, y, z = make_rows(300)
        model = fair(epsilon=0.1, confidence=None, max_iter=5).fit(X, y, sensitive_features=z)
        frame = model.frontier_.to_frame()
        np.testing.assert_array_equal(frame["difference"], -model.frontier_.rate)
        assert "rate" not in frame
        answers = model.answers_.to_frame()
        assert (answers["epsilon"] >= answers["difference"] - 1e-12).all()
        assert model.rate_ == -0.0 or model.rate_ < 0


class TestBounds:
    def test_the_margin_of_a_difference_by_hand(self):
        # Newcombe: 40 and 50 of 100, two standard errors away.
        counts = COUNTS[:2]
        low, high = wilson_interval(np.array([40, 50]), np.array([100, 100]), 2.0)
        expected = -0.1 - np.hypot(0.4 - low[0], high[1] - 0.5)
        target = find_target(PARITY, epsilon=0.1)
        assert lower_value(counts, target, 2.0) == pytest.approx(expected)

    @pytest.mark.parametrize("margin", [0.5, 2.0])
    @pytest.mark.parametrize("name", DEMANDS)
    def test_a_margin_only_lowers(self, name, margin):
        notion, demand = DEMANDS[name]
        target = find_target(notion, **demand)
        counts = np.random.default_rng(0).integers(1, 60, (200, 3, 2, 2)).astype(float)
        value, lower = target.value(counts), lower_value(counts, target, margin)
        assert (lower < value).all()
        assert (target.cautious(counts, margin) < value).all()

    def test_a_mixed_bound_is_the_least_of_all_pairs_on_its_scale(self):
        target = find_target(BOTH, [0.8, None], [None, 0.1])
        for counts in np.random.default_rng(0).integers(5, 60, (5, 3, 2, 2)):
            each = []
            for part, offset, share in zip(
                target.components, target.offsets, target.rate.shares, strict=True
            ):
                top, bottom = (v.astype(int) for v in part.rate.fractions(counts))
                for j, k in (pair for a in combinations(range(3), 2) for pair in (a, a[::-1])):
                    pair = (top[j], top[k]), (bottom[j], bottom[k])
                    least = lower_bound(*pair, 0.05, part.comparison)
                    each.append((least + offset) / share)
            found = float(exact_bound(counts, target, 0.05))
            assert found == pytest.approx(min(*each, float(target.value(counts))), abs=1e-6)
            assert float(expected_bound(counts, target, 0.05)) == pytest.approx(found, abs=0.03)

    @pytest.mark.parametrize("delta", [0.1])
    def test_a_certificate_is_wrong_no_more_often_than_asked(self, delta):
        # Differences of 0.1 in the population, the limit; 400 tables of 3 groups.
        rng, target = np.random.default_rng(0), find_target(PARITY, epsilon=0.1)
        hits = rng.binomial([150, 200, 300], [0.5, 0.4, 0.45], (400, 3))
        counts = np.zeros((400, 3, 2, 2))
        counts[:, :, 0, 1], counts[:, :, 0, 0] = hits, np.array([150, 200, 300]) - hits
        wrong = (exact_bound(counts, target, delta) >= target.level).mean()
        assert wrong <= delta + 3 * np.sqrt(delta * (1 - delta) / 400)
        sure = exact_bound(counts, target, 0.45)
        assert (sure >= target.level).mean() > delta  # the test can fail

    def test_both_ends_of_a_mixed_target(self):
        target = find_target(BOTH, [0.8, None], [None, 0.3])
        low, high = population_ends(target, COUNTS, 0.95)
        assert target.worst <= low < float(target.value(COUNTS)) < high <= 0
        many = population_ends(target, 1000 * COUNTS, 0.95)
        np.testing.assert_allclose(many, float(target.value(COUNTS)), atol=0.01)


class TestMoves:
    @pytest.mark.parametrize(
        "how",
        [
            {},
            {"confidence": None},
            {"selection": "crossfit", "cv": 3},
            {"selection": "holdout"},
            {"confidence": "certified", "delta": 0.2},
        ],
        ids=str,
    )
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_a_fit_for_ratios_answers_differences_as_one_for_them(self, how):
        X, y, z = make_rows(900)
        options = {"notion": "equalized_odds", "max_iter": 8, "random_state": 0} | how
        one = fair(tau=0.6, **options).fit(X, y, sensitive_features=z)
        other = fair(epsilon=0.2, **options).fit(X, y, sensitive_features=z)
        for epsilon in (0.3, 0.2, 0.1):
            moved, own = one.at(epsilon=epsilon), other.at(epsilon=epsilon)
            assert (moved.tau, moved.epsilon) == (None, epsilon)
            for name in ("rate_", "rate_bound_", "accuracy_", "feasible_"):
                assert getattr(moved, name) == getattr(own, name), name
            np.testing.assert_array_equal(moved.coef_, own.coef_)
            assert moved.feasible_ == (moved.rate_bound_ >= -epsilon)
        for tau in (0.6, 0.8):
            back = one.at(epsilon=0.1).at(tau)
            np.testing.assert_array_equal(back.intercept_, one.at(tau).intercept_)
            np.testing.assert_array_equal(other.at(tau).coef_, back.coef_)

    def test_mixed_targets_move_together(self):
        X, y, z = make_rows(600)
        model = fair(BOTH, tau=[0.8, None], epsilon=[None, 0.05], max_iter=5)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model.fit(X, y, sensitive_features=z)
            for moved in (model.at(0.9), model.at(epsilon=0.025), model.at(0.9, epsilon=0.025)):
                assert moved.tau == [0.9, None]
                assert moved.epsilon == pytest.approx([None, 0.025])
        with raises("other_proportions"):
            model.at(0.9, epsilon=0.05)
        with raises("moved_too_far", target=Parameter("epsilon", 0.3)):
            model.at(epsilon=0.3)  # a ratio of -0.2
        with raises("nothing_to_move"):
            model.at()
        with raises("several_targets", tau=Parameter("epsilon", [None, 0.1])):
            model.at(epsilon=[None, 0.1])

    @pytest.mark.parametrize(
        "demand", [{"tau": 0.6}, {"epsilon": 0.2}, {"confidence": "certified"}]
    )
    @pytest.mark.filterwarnings("ignore::evenhand.FairnessWarning")
    def test_a_file_keeps_both(self, demand, tmp_path):
        X, y, z = make_rows(900)
        model = fair(max_iter=5, random_state=0, **demand).fit(X, y, sensitive_features=z)
        for saved in (model, model.at(epsilon=0.15), model.at(0.7)):
            save_model(saved, tmp_path / "x.model")
            again = load_model(tmp_path / "x.model").model
            for move in ({"epsilon": 0.1}, {"tau": 0.9}):
                ours, theirs = saved.at(**move), again.at(**move)
                assert ours.rate_bound_ == theirs.rate_bound_
                np.testing.assert_array_equal(ours.coef_, theirs.coef_)
                assert str(ours.guarantee_) == str(theirs.guarantee_)


def test_groups_with_own_cuts_reach_a_difference():
    X, y, z = make_rows(900)
    aware = {"group_cuts": True, "confidence": None, "max_iter": 5}
    model = fair(epsilon=0.02, **aware).fit(X, y, sensitive_features=z)
    assert model.feasible_
    predicted = model.predict(X, sensitive_features=z)
    shares = [predicted[z == g].mean() for g in np.unique(z)]
    assert np.ptp(shares) <= 0.02 == model.epsilon
    assert -model.rate_ == pytest.approx(np.ptp(shares))


def test_averaging_reaches_a_difference():
    X, y, z = make_rows(900)
    model = fair(epsilon=0.05, confidence=None, max_iter=5).fit(X, y, sensitive_features=z)
    mixed = model.averaged(epsilon=0.04)
    assert mixed.feasible_
    assert mixed.rate_ >= -0.04 - 1e-9
    assert mixed.accuracy_ >= model.at(epsilon=0.04).accuracy_ - 1e-12


def test_json_has_the_difference_itself():
    report = {
        "tau": -0.1,
        "comparison": "difference",
        "rate": {"parts": [{"share": 1.0}]},
        "points": [{"rate": -0.05, "reach": -0.08, "accuracy": 0.9}],
        "bounds": {"selection_rate": [-0.2, -0.01]},
        "verdict": {"at_least": -0.2, "at_most": -0.01, "value": None},
    }
    assert as_read(report) == {
        "epsilon": 0.1,
        "comparison": "difference",
        "rate": {"parts": [{"share": 1.0}]},
        "points": [{"difference": 0.05, "reach": 0.08, "accuracy": 0.9}],
        "bounds": {"selection_rate": [0.01, 0.2]},
        "verdict": {"at_most": 0.2, "at_least": 0.01, "value": None},
    }
    assert as_read({"tau": 0.8, "rate": 0.7}) == {"tau": 0.8, "rate": 0.7}
    asked = {"taus": [0.8, 0.05], "kinds": ["ratio", "difference"]}
    assert as_read({"comparison": "mixed", "tau": -0.05, "asked": asked}) == {
        **{"comparison": "mixed", "allowed": 0.05},
        "asked": {"targets": [0.8, 0.05], "kinds": ["ratio", "difference"]},
    }


@pytest.mark.slow
def test_the_command_takes_differences(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run("datasets", "german", "-o", "loans.csv").exit_code == 0
    roles = ["loans.csv", "--label", "credit", "--sensitive", "sex", "--favourable", "good"]
    result = run("train", *roles, "--epsilon", "0.1", "-o", "d.model")
    assert "ε = 0.1 for statistical parity is reached" in words(result.stdout)
    assert " ratio" not in words(result.stdout)
    page = (tmp_path / "d.html").read_text(encoding="utf-8")
    assert "at most 0.1 apart" in page
    about = json.loads(
        run("pick", "d.model", "--epsilon", "0.08", "-o", "e.model", "--json").stdout
    )
    assert about["epsilon"] == 0.08 >= about["reached"]["bound"] >= about["reached"]["difference"]
    assert about["asked"]["earlier_epsilons"] == [0.1]
    result = run("pick", "e.model", "--tau", "0.8", "-o", "t.model")
    assert "τ = 0.8 for statistical parity is reached" in words(result.stdout)
    assert "ε" in words(run("frontier", "d.model").stdout)
    audit = run("audit", *roles, "--epsilon", "0.02", "--json")
    assert audit.exit_code == 2
    found = json.loads(audit.stdout)
    assert found["epsilon"] == 0.02 < found["differences"]["selection_rate"]
    assert run("audit", *roles, "--epsilon", "0.2").exit_code == 0
    both = ["--notion", PARITY, "--notion", OPPORTUNITY]
    mixed = [*both, "--tau", "0.8", "--tau", "none", "--epsilon", "none", "--epsilon", "0.05"]
    shown = words(run("train", *roles, *mixed, "-o", "m.model").stdout)
    assert "τ = 0.8 for statistical parity and ε = 0.05 for equal opportunity are" in shown
    # A picture has room for the names of several notions.
    widths = []
    for name in ("d", "m"):
        assert run("frontier", f"{name}.model", "--picture", f"{name}.svg").exit_code == 0
        drawn = (tmp_path / f"{name}.svg").read_text(encoding="utf-8")
        widths.append(float(re.search(r'width="([\d.]+)pt"', drawn)[1]))
    assert widths[1] > widths[0]
    # Each target of the frontier can be picked, and what is not reached is said to be beyond it.
    two = ["--tau", "0.5", "--epsilon", "0.05", "--no-report", "-o", "two.model"]
    run("train", *roles, *two)
    levels = re.findall(r"([-\d.]+) / ([-\d.]+)", run("frontier", "two.model").stdout)
    assert levels
    for tau, epsilon in levels:
        assert 0 < float(tau) == pytest.approx(1 - 10 * float(epsilon))
    shown = words(run("pick", "two.model", "--epsilon", "0.001", "-o", "p.model").stdout)
    assert re.search(r"are NOT reached .* 0\.9; what each has come to is shown below\.", shown)
    for wrong, said in (
        (["--epsilon", "1.5"], "--epsilon 1.5; give a difference"),
        (["--epsilon", "abc"], "'abc' is neither a number nor none"),
        (
            [*both, "--epsilon", "0", "--epsilon", "0.1"],
            "--tau none and --epsilon 0.0 --epsilon 0.1: beside other targets none can ask",
        ),
        ([*both, "--tau", "0.8", "--tau", "none"], "equal_opportunity has no target"),
    ):
        refused = run("train", *roles, *wrong)
        assert refused.exit_code in (1, 2)
        assert said in words(refused.stderr)


def test_a_plain_rate_has_one_value():
    rate = RATES["selection_rate"]
    assert Target(rate, -0.1, "difference").value(COUNTS) == -rate.difference(COUNTS)


def test_equal_rates_are_a_difference_of_nought():
    assert str(find_target("statistical_parity", epsilon=0.0)) == "ε = 0"
