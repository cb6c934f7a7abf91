"""Every rate, any number of groups, quantities, several notions at once."""

import inspect
import itertools

import numpy as np
import pandas as pd
import pytest
from helpers import NOTION_NAMES, fair, make_problem, raises
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.special import expit, log_softmax

import evenhand
from evenhand import FairClassifier
from evenhand.core.errors import Parameter
from evenhand.core.gaps import CellSums, LinearGap, SoftRateGap
from evenhand.core.groups import group_codes
from evenhand.core.metrics import group_counts
from evenhand.core.notions import (
    NOTIONS,
    Joint,
    equal_opportunity,
    equalized_odds,
    find_notion,
    of_labels,
    predictive_equality,
    statistical_parity,
)
from evenhand.core.rates import EQUALIZED_ODDS, RATES, WorstRate
from evenhand.core.row_sums import Guess, guess_one_of_many, guess_one_of_two
from evenhand.core.targets import Target, find_target
from evenhand.core.updates import modified, normal
from evenhand.engines.memory import make_oracle
from evenhand.models.method import Method

METRICS = {
    "statistical_parity": "statistical_rate",
    "equal_opportunity": "true_positive_rate_ratio",
    "predictive_equality": "false_positive_rate_ratio",
    "equalized_odds": "equalized_odds_ratio",
    "true_negative_parity": "true_negative_rate_ratio",
    "false_negative_parity": "false_negative_rate_ratio",
    "accuracy_parity": "accuracy_ratio",
    "predictive_parity": "positive_predictive_value_ratio",
    "false_discovery": "false_discovery_rate_ratio",
    "false_omission": "false_omission_rate_ratio",
    "negative_predictive_parity": "negative_predictive_value_ratio",
}


def make_groups(k=3, n=900, seed=0):
    """A biased problem of k groups."""
    rng = np.random.default_rng(seed)
    z = rng.integers(0, k, n)
    X = rng.standard_normal((n, 4))
    X[:, 0] += z / (k - 1)
    y = (X @ [1.0, 0.8, -0.5, 0.2] + 0.4 * z - 0.6 + rng.logistic(size=n) > 0).astype(int)
    return X, y, z


def point(oracle, seed=0):
    rng = np.random.default_rng(seed)
    return 0.5 * rng.standard_normal(oracle.n_weights), 0.5 * rng.standard_normal(
        oracle.n_adversary
    )


def central(f, x, h=1e-6):
    return np.array([(f(x + e) - f(x - e)) / (2 * h) for e in h * np.eye(len(x))])


def check_gradients(oracle, seed=0):
    w, u = point(oracle, seed)
    m = oracle.evaluate(w, u, 1.3)
    grad_f = m.grad_f.sum(axis=0) if m.grad_f.ndim == 2 else m.grad_f
    for gradient, f, x in (
        (m.grad_c, lambda w: oracle.evaluate(w, u, 1.3).loss_c, w),
        (grad_f, lambda w: oracle.evaluate(w, u, 1.3).loss_w, w),
        (m.grad_u, lambda u: oracle.evaluate(w, u, 1.3).loss_u, u),
    ):
        expected = central(f, x)
        np.testing.assert_allclose(gradient, expected, atol=1e-6 * max(1, np.abs(expected).max()))


# Gradients by finite differences -----------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("k", [2, 3, 5])
@pytest.mark.parametrize("name", NOTION_NAMES)
def test_gradients_of_any_number_of_groups(name, k, weighted):
    X, y, z = make_groups(k, n=300)
    weight = np.random.default_rng(1).random(300) + 0.1 if weighted else None
    check_gradients(make_oracle(X, y, z, notion=NOTIONS[name](2), mu=3.0, sample_weight=weight))


@pytest.mark.parametrize("name", NOTION_NAMES)
def test_gradients_of_a_quantity_and_of_rows_in_no_group(name):
    X, y, z = make_groups(4, n=300)
    age = np.random.default_rng(2).standard_normal(300) + z
    check_gradients(make_oracle(X, y, z, notion=NOTIONS[name](2), mu=3.0, n_groups=3, quantity=age))


SINGLE = [name for name in NOTION_NAMES if len(NOTIONS[name](2).components) == 1]


def test_equalized_odds_is_two_notions():
    assert set(NOTION_NAMES) - set(SINGLE) == {"equalized_odds"}
    notion = NOTIONS["equalized_odds"](2)
    assert [part.name for part in notion.components] == ["equal_opportunity", "predictive_equality"]
    assert notion.name == notion.rate.name == "equalized_odds"
    assert notion.rate.components == EQUALIZED_ODDS.components


@pytest.mark.parametrize(("a", "b"), itertools.combinations(SINGLE, 2))
def test_notions_together_are_each_alone(a, b):
    X, y, z = make_groups(3, n=300)
    alone = [make_oracle(X, y, z, notion=NOTIONS[name](2), mu=3.0) for name in (a, b)]
    both = make_oracle(X, y, z, notion=find_notion([a, b]), mu=3.0)
    w, u = point(both)
    size = alone[0].n_adversary
    m = both.evaluate(w, u, 1.3)
    each = [o.evaluate(w, v, 1.3) for o, v in zip(alone, (u[:size], u[size:]), strict=True)]
    np.testing.assert_allclose(m.grad_f, [e.grad_f for e in each], rtol=1e-10, atol=1e-13)
    np.testing.assert_allclose(m.grad_u, np.concatenate([e.grad_u for e in each]), rtol=1e-10)
    assert m.loss_w == pytest.approx(sum(e.loss_w for e in each))
    assert m.smoothness_u == pytest.approx(max(e.smoothness_u for e in each))
    assert m.gap == pytest.approx(max(e.gap for e in each))


# By definition -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", SINGLE)
def test_the_adversary_is_asked_about_its_rows_only(name):
    X, y, z = make_groups(3, n=300)
    notion = NOTIONS[name](2)
    oracle = make_oracle(X, y, z, notion=notion)
    w, u = point(oracle)
    s = X @ w[:-1] + w[-1]
    phi, _ = notion.features(s, expit(s), y.astype(float), 1.3)
    guess = np.vstack([np.zeros(300), u.reshape(2, -1) @ phi])
    asked = np.isin(y, notion.labels)
    loss = -log_softmax(guess, axis=0)[z, np.arange(300)][asked].mean()
    assert oracle.evaluate(w, u, 1.3).loss_u == pytest.approx(-loss)


def test_softmax_of_two_groups_is_the_logistic_adversary():
    guess = np.random.default_rng(0).standard_normal((1, 50)) * 5
    z = np.random.default_rng(1).integers(0, 2, 50).astype(float)
    for weight in (None, np.random.default_rng(2).random(50)):
        a, b = (f(guess, z, weight) for f in (guess_one_of_two, guess_one_of_many))
        assert a[0] == pytest.approx(b[0], rel=1e-12)
        np.testing.assert_allclose(a[1], b[1], rtol=1e-10, atol=1e-14)


def test_two_groups_by_way_of_the_softmax_give_the_same_fit():
    X, y, z = make_problem()
    first, second = (make_oracle(X, y, z, notion=statistical_parity()) for _ in range(2))
    second.game = second.game._replace(guess=Guess(guess_one_of_many, 1, 0.25))
    w, u = point(first)
    for a, b in zip(first.evaluate(w, u), second.evaluate(w, u), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def pairs(values, share):
    k = range(len(values))
    weight = {(i, j): share[i] * share[j] for i, j in itertools.combinations(k, 2)}
    total = sum(weight.values())
    return [(w / total, i, j) for (i, j), w in weight.items()]


@given(arrays(np.float64, (4, 3), elements=st.floats(-3, 3)), st.integers(0, 99))
def test_the_penalty_is_the_sum_over_pairs(means, seed):
    rng = np.random.default_rng(seed)
    weight = rng.random((4, 2)) + 0.1
    w = rng.standard_normal(3)
    cells = CellSums(weight, weight, weight[..., None] * means[:, None, :])
    share = weight.sum(axis=1) / weight.sum()
    expected = sum(o * ((means[i] - means[j]) @ w) ** 2 for o, i, j in pairs(means, share)) / 2
    penalty, gradient = LinearGap()(w, cells)
    assert penalty == pytest.approx(expected, rel=1e-9, abs=1e-12)
    np.testing.assert_allclose(
        gradient, central(lambda w: LinearGap()(w, cells)[0], w), rtol=1e-5, atol=1e-6
    )
    scale = sum(o * np.sum((means[i] - means[j]) ** 2) for o, i, j in pairs(means, share))
    assert LinearGap().scale(cells) == pytest.approx(scale, rel=1e-9, abs=1e-12)


def test_soft_rates_of_three_groups():
    rng = np.random.default_rng(0)
    weight = rng.random((3, 2)) + 1
    f = weight * rng.random((3, 2))
    cells = CellSums(weight, f, rng.standard_normal((3, 2, 2)))
    fdr = f[:, 0] / f.sum(axis=1)
    share = weight.sum(axis=1) / weight.sum()
    expected = sum(o * (fdr[i] - fdr[j]) ** 2 for o, i, j in pairs(fdr, share)) / 2
    gap = SoftRateGap(RATES["false_discovery_rate"])
    assert gap(np.zeros(2), cells)[0] == pytest.approx(expected)


def test_a_quantity_is_guessed_by_least_squares():
    X, y, z = make_groups(3, n=200)
    age = np.random.default_rng(0).standard_normal(200)
    oracle = make_oracle(X, y, z, notion=statistical_parity(), quantity=age)
    w, u = point(oracle)
    s = (X @ w[:-1] + w[-1]) / 1.3
    guess = u @ [np.ones(200), s, s**2]
    assert oracle.evaluate(w, u, 1.3).loss_u == pytest.approx(-np.mean((age - guess) ** 2) / 2)


def test_rows_in_no_group_are_fitted_and_not_compared():
    X, y, z = make_groups(3, n=300)
    known = z < 2
    whole = make_oracle(X, y, z, notion=equalized_odds(), n_groups=2)
    part = make_oracle(X[known], y[known], z[known], notion=equalized_odds())
    w, u = point(whole)
    a, b = whole.evaluate(w, u, 1.3), part.evaluate(w, u, 1.3)
    assert a.loss_u == pytest.approx(b.loss_u)
    assert a.gap == pytest.approx(b.gap)
    np.testing.assert_array_equal(a.counts[:2], b.counts)
    assert a.counts[2].sum() == (~known).sum()
    assert a.loss_c != pytest.approx(b.loss_c)


# Several notions at once -------------------------------------------------------------------------

gradients = arrays(np.float64, (3, 8), elements=st.floats(-10, 10, allow_subnormal=False))


@given(arrays(np.float64, 8, elements=st.floats(-10, 10)), gradients, st.floats(0.01, 2))
def test_no_notion_is_made_worse_by_another(g_c, g_f, alpha):
    size = np.linalg.norm(g_f, axis=1)
    assume(size.min() > 1e-2)
    units = g_f / size[:, None]
    inverse = np.linalg.pinv(units @ units.T, rcond=1e-8, hermitian=True)
    assume(np.linalg.cond(units @ units.T) < 1e4)
    d = modified(g_c, g_f, alpha)
    v = (alpha * size) @ inverse @ units
    cap = alpha * size.sum()
    share = min(1.0, cap / np.linalg.norm(v))
    expected = -share * alpha * size**2
    np.testing.assert_allclose(g_f @ d, expected, atol=1e-7 * size.max() * (10 + cap))


def test_one_row_is_the_rule_for_one_notion():
    rng = np.random.default_rng(0)
    g_c, g_f = rng.standard_normal((2, 6))
    np.testing.assert_allclose(modified(g_c, g_f[None], 0.3), modified(g_c, g_f, 0.3))
    np.testing.assert_allclose(normal(g_c, g_f[None], 0.3), normal(g_c, g_f, 0.3))


@pytest.mark.parametrize("factor", [1.0, 2.0, -1.0])
def test_dependent_gradients_leave_a_finite_step(factor):
    g_c, g_f = np.array([1.0, 2.0]), np.array([[1.0, 0.0], [factor, 0.0]])
    d = modified(g_c, g_f, 0.5)
    assert np.isfinite(d).all()
    assert np.linalg.norm(d - [0.0, 2.0]) <= 0.5 * (1 + abs(factor)) + 1e-12
    np.testing.assert_array_equal(modified(g_c, np.zeros((2, 2)), 0.5), g_c)


# Rates -------------------------------------------------------------------------------------------


def test_equalized_odds_is_fairlearns():
    from fairlearn.metrics import equalized_odds_difference, equalized_odds_ratio

    rng = np.random.default_rng(0)
    y, p, z = rng.integers(0, 2, 200), rng.integers(0, 2, 200), rng.integers(0, 3, 200)
    for ours, theirs in (
        (evenhand.equalized_odds_ratio, equalized_odds_ratio),
        (evenhand.equalized_odds_difference, equalized_odds_difference),
    ):
        expected = theirs(y, p, sensitive_features=z)
        assert ours(y, p, sensitive_features=z) == pytest.approx(expected)


def test_the_worst_rate_by_hand():
    # true positive rates 3/4 and 2/4, false positive rates 1/4 and 2/4
    counts = np.array([[[3.0, 1], [1, 3]], [[2, 2], [2, 2]]])
    assert EQUALIZED_ODDS.ratio(counts) == pytest.approx(0.5)
    tpr, fpr = EQUALIZED_ODDS.components
    sure = 0.5 * np.exp(-2 * fpr.log_ratio_error(counts))
    assert Target(EQUALIZED_ODDS, 0.8).cautious(counts, 2.0) == pytest.approx(sure)
    halved = WorstRate("x", (tpr, fpr), (1.0, 0.5))
    assert halved.ratio(counts) == pytest.approx(2 / 3)
    assert WorstRate("x", (tpr,), (0.5,)).ratio(counts) == 1.0
    assert np.isnan(EQUALIZED_ODDS.ratio(np.zeros((2, 2, 2))))


def test_crossed_attributes():
    frame = pd.DataFrame({"sex": ["f", "m", "f"], "race": ["b", "b", "w"]})
    groups, codes = group_codes(frame)
    assert groups.tolist() == ["f & b", "f & w", "m & b"]
    assert codes.tolist() == [0, 2, 1]
    again, _ = group_codes(frame.to_numpy())
    assert again.tolist() == groups.tolist()
    with raises("missing_values_in_column", column="race", n=1):
        group_codes(frame.assign(race=["b", None, "w"]))
    with raises("sensitive_twice", column="group"):
        group_codes(frame.set_axis(["group", "group"], axis=1))


# The classifier ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NOTION_NAMES)
def test_every_notion_reaches_its_target(name):
    X, y, z = make_problem(n=1500)
    tau = 0.65 if name == "false_omission" else 0.9  # base rates differ: errors of a "no" do, too
    model = FairClassifier(name, tau=tau, confidence=None).fit(X, y, sensitive_features=z)
    ratio = getattr(evenhand, METRICS[name])(y, model.predict(X), sensitive_features=z)
    assert model.feasible_
    assert model.rate_ == pytest.approx(ratio)
    assert ratio >= tau
    assert model.at(0.5).accuracy_ >= model.accuracy_


def test_three_groups():
    X, y, z = make_groups(3, n=3000)
    plain = FairClassifier(tau=0.01).fit(X, y, sensitive_features=z)
    model = plain.at(0.9)
    assert plain.rate_ < 0.7
    assert model.rate_ >= 0.9
    counts = group_counts(y, model.predict(X), sensitive_features=z)[1]
    assert RATES["selection_rate"].ratio(counts) == pytest.approx(model.rate_)
    assert model.groups_.tolist() == [0, 1, 2]
    assert model.frontier_.counts.shape[1:] == (3, 2, 2)


def test_small_groups_are_reported_and_not_compared():
    X, y, z = make_groups(3, n=1500)
    names = np.array(["a", "b", "c"])[z].astype(object)
    names[:7] = "tiny"
    model = FairClassifier(tau=0.9).fit(X, y, sensitive_features=names)
    assert model.small_groups_ == {"tiny": 7}
    assert model.groups_.tolist() == ["a", "b", "c"]
    known = names != "tiny"
    ratio = evenhand.statistical_rate(
        y[known], model.predict(X)[known], sensitive_features=names[known]
    )
    assert model.rate_ == pytest.approx(ratio)
    accuracy = np.mean(model.predict(X) == y)
    assert model.accuracy_ == pytest.approx(accuracy)
    everybody = FairClassifier(tau=0.3, min_group_size=1).fit(X, y, sensitive_features=names)
    assert len(everybody.groups_) == 4


def test_a_quantity_and_its_bins():
    X, y, _ = make_groups(3, n=2000)
    age = 40 + 10 * X[:, 0] + np.random.default_rng(0).normal(0, 5, 2000)
    model = FairClassifier(tau=0.8, bins=[30, 45]).fit(X, y, sensitive_features=age)
    assert model.groups_.tolist() == ["below 30", "30 to 45", "from 45"]
    assert model.rate_ >= 0.8
    z = np.digitize(age, [30, 45])
    ratio = evenhand.statistical_rate(y, model.predict(X), sensitive_features=z)
    assert model.rate_ == pytest.approx(ratio)
    four = FairClassifier(tau=0.5, bins=4).fit(X, y, sensitive_features=age)
    assert np.ptp(four.frontier_.counts[0].sum(axis=(1, 2))) <= 2
    with pytest.raises(ValueError, match="is for a number such as age"):
        FairClassifier(bins=3).fit(X, y, sensitive_features=np.where(age > 40, "old", "young"))


def test_several_notions_each_with_its_target():
    X, y, z = make_problem(n=2000)
    names, targets = ["statistical_parity", "equal_opportunity"], [0.7, 0.9]
    model = FairClassifier(names, tau=targets).fit(X, y, sensitive_features=z)
    assert model.feasible_
    predicted = model.predict(X)
    assert evenhand.statistical_rate(y, predicted, sensitive_features=z) >= 0.7
    assert evenhand.true_positive_rate_ratio(y, predicted, sensitive_features=z) >= 0.9
    looser = model.at(0.45)
    assert looser.tau == pytest.approx([0.35, 0.45])
    assert looser.accuracy_ >= model.accuracy_
    both = FairClassifier(names, tau=0.95).fit(X, y, sensitive_features=z)
    predicted = both.predict(X)
    if both.feasible_:
        for metric in (evenhand.statistical_rate, evenhand.true_positive_rate_ratio):
            assert metric(y, predicted, sensitive_features=z) >= 0.95 - 1e-12


@pytest.mark.parametrize(
    ("params", "code", "named"),
    [
        ({"notion": "nonsense"}, "unknown_notion", ["notion"]),
        ({"notion": []}, "no_notion", []),
        ({"notion": ["equalized_odds"] * 2}, "repeated_notion", ["notion"]),
        ({"tau": [0.8, 0.9]}, "targets_of_notions", ["tau"]),
        ({"notion": ["equalized_odds"], "tau": [0.8, 0.9]}, "targets_of_notions", ["tau"]),
        ({"notion": ["equalized_odds"], "tau": [1.2]}, "target_out_of_range", ["tau"]),
    ],
)
def test_what_cannot_be_asked(params, code, named):
    X, y, z = make_groups(3, n=300)
    with raises(code, **{name: Parameter(name, params[name]) for name in named}):
        fair(**params).fit(X, y, sensitive_features=z)


def test_the_printed_formula_for_false_discovery_is_for_two_groups():
    X, y, z = make_groups(3, n=300)
    with raises("formula_for_two_groups", n=3, reading=Parameter("reading", "corrected")):
        fair(notion="false_discovery", reading="printed").fit(X, y, sensitive_features=z)


def test_at_of_several_notions_takes_one_number():
    X, y, z = make_problem()
    model = FairClassifier(["statistical_parity", "equal_opportunity"]).fit(
        X, y, sensitive_features=z
    )
    with pytest.raises(ValueError, match="give one number"):
        model.at([0.8, 0.9])


@pytest.mark.parametrize(
    ("word", "name"),
    [
        ("demographic_parity", "statistical_parity"),
        ("disparate_impact", "statistical_parity"),
        ("adverse_impact_ratio", "statistical_parity"),
        ("equalised_odds", "equalized_odds"),
    ],
)
def test_the_fields_other_words_name_the_same_notion(word, name):
    assert find_notion(word).name == name
    assert find_notion([word, "accuracy_parity"]).name == f"{name} and accuracy_parity"
    with raises("repeated_notion", notion=Parameter("notion", [name, name])):
        find_notion([word, name])
    X, y, z = make_problem()
    ours, theirs = (FairClassifier(n).fit(X, y, sensitive_features=z) for n in (name, word))
    assert theirs.notion == word
    np.testing.assert_array_equal(theirs.coef_, ours.coef_)


def test_words_that_are_no_notion_say_what_to_use():
    with raises("notion_of_scores", notion=Parameter("notion", "calibration")):
        find_notion("calibration")
    parity = Parameter("notion", "statistical_parity")
    with raises("notion_with_target", parity=parity, tau=Parameter("tau", 0.8)):
        find_notion("four_fifths_rule")


def test_joint_notion_by_its_parts():
    target = find_target(["equal_opportunity", "equalized_odds"], tau=[0.4, 0.8])
    # Equal opportunity is in both, and the stricter target counts.
    assert [rate.name for rate in target.rate.components] == [
        "true_positive_rate",
        "false_positive_rate",
    ]
    assert target.rate.shares == (1.0, 1.0)
    target = find_target(["statistical_parity", "equalized_odds"], tau=[0.4, 0.8])
    assert target.rate.shares == (0.5, 1.0, 1.0)
    assert Joint((equal_opportunity(), predictive_equality())).rate.shares == (1.0, 1.0)


@pytest.mark.parametrize("name", NOTION_NAMES)
def test_the_adversary_sees_the_rows_that_the_rate_is_of(name):
    for notion in NOTIONS[name](2).components:
        if notion.rate.fixed_denominator:
            assert {label for label, _ in notion.rate.denominator} == set(notion.labels)


def test_a_rare_label_among_many_may_be_given_rarely():
    notion = NOTIONS["statistical_parity"](2).of_label(2, 3)
    counts = np.full((2, 3, 3), 100.0)
    counts[:, :, 2] = 0.0
    counts[:, 2] = [4.0, 3.0, 1.0]  # 8 of 408 rows have the label, 1 of 408 gets it
    assert not notion.eligible(counts, 0.01)
    counts[:, 0, 2] = 5.0
    assert notion.eligible(counts, 0.05)


def test_a_gap_that_overflows_is_infinite():
    cells = CellSums(np.ones((2, 2)), np.zeros((2, 2)), 1e200 * np.eye(4).reshape(2, 2, 4))
    with np.errstate(over="ignore"):
        penalty, _ = LinearGap((0, 1))(np.array([1.0, 1.0, -1.0, -1.0]), cells)
    assert penalty == np.inf


def test_each_label_must_reach_the_whole_target():
    notion = of_labels(statistical_parity(), [0, 2], 3)
    assert notion.rate.shares == (1.0, 1.0)


@pytest.mark.parametrize("name", ["false_discovery", "predictive_parity"])
def test_chance_is_not_better_than_chance(name):
    # Of each group half have the label, whatever is predicted.
    counts = np.full((2, 2, 2), 25.0)
    assert not NOTIONS[name](2).eligible(counts, 0.01)
    counts[:, 1, 1] += 1
    assert NOTIONS[name](2).eligible(counts, 0.01)


@pytest.mark.parametrize("name", NOTION_NAMES)
def test_the_usual_degree_is_that_of_the_method(name):
    (degree,) = inspect.signature(NOTIONS[name]).parameters.values()
    assert degree.default == Method().degree == 2
