import pickle
from itertools import permutations, product

import numpy as np
import pandas as pd
import pytest
from helpers import raises
from hypothesis import assume, given
from hypothesis import strategies as st
from sklearn import set_config
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import make_scorer
from sklearn.model_selection import cross_val_score

import evenhand
from evenhand.core import metrics
from evenhand.core.errors import Parameter
from evenhand.core.groups import group_codes
from evenhand.core.metrics import group_counts, group_rates
from evenhand.core.rates import RATES, WorstRate
from evenhand.core.targets import Target
from evenhand.statistics.proportions import wilson_interval

# Group a: 4 TN, 1 FP, 2 FN, 3 TP.  Group b: 3 TN, 3 FP, 2 FN, 2 TP.
TABLE = np.array([[[4, 1], [2, 3]], [[3, 3], [2, 2]]])
BY_HAND = {
    "selection_rate": (4 / 10, 5 / 10),
    "accuracy": (7 / 10, 5 / 10),
    "true_positive_rate": (3 / 5, 2 / 4),
    "false_positive_rate": (1 / 5, 3 / 6),
    "true_negative_rate": (4 / 5, 3 / 6),
    "false_negative_rate": (2 / 5, 2 / 4),
    "false_discovery_rate": (1 / 4, 3 / 5),
    "false_omission_rate": (2 / 6, 2 / 5),
    "positive_predictive_value": (3 / 4, 2 / 5),
    "negative_predictive_value": (4 / 6, 3 / 5),
}


def rows_of(table):
    """Rows with exactly these counts."""
    z, y, p = (np.repeat(v, table.ravel()) for v in np.indices(table.shape).reshape(3, -1))
    return y, p, np.array(["a", "b", "c"])[z]


def public(rate_name, kind):
    if rate_name == "selection_rate":
        return (
            metrics.statistical_rate if kind == "ratio" else metrics.statistical_parity_difference
        )
    return getattr(metrics, f"{rate_name}_{kind}")


@pytest.mark.parametrize("name", RATES)
def test_hand_worked_table(name):
    y, p, z = rows_of(TABLE)
    a, b = BY_HAND[name]
    assert group_rates(y, p, sensitive_features=z)[name].tolist() == pytest.approx([a, b])
    ratio, difference = public(name, "ratio"), public(name, "difference")
    assert ratio(y, p, sensitive_features=z) == pytest.approx(min(a, b) / max(a, b))
    assert difference(y, p, sensitive_features=z) == pytest.approx(abs(a - b))


def test_every_rate_is_public():
    for name in RATES:
        for kind in ("ratio", "difference"):
            f = public(name, kind)
            assert getattr(evenhand, f.__name__) is f
            assert f.__name__ in metrics.__all__


FAIRLEARN = (
    "selection_rate",
    "true_positive_rate",
    "false_positive_rate",
    "true_negative_rate",
    "false_negative_rate",
)


@pytest.fixture
def fl():
    return pytest.importorskip("fairlearn.metrics")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("n_groups", [2, 3])
@pytest.mark.parametrize("name", FAIRLEARN)
def test_agrees_with_fairlearn(name, n_groups, weighted, fl):
    rng = np.random.default_rng(n_groups)
    y, p = rng.integers(0, 2, (2, 300))
    z = rng.choice(list("abc")[:n_groups], 300)
    w = rng.random(300) + 0.1 if weighted else None
    frame = fl.MetricFrame(
        metrics=getattr(fl, name),
        y_true=y,
        y_pred=p,
        sensitive_features=z,
        sample_params={"sample_weight": w} if weighted else None,
    )
    args = {"sensitive_features": z, "sample_weight": w}
    assert group_rates(y, p, **args)[name].to_numpy() == pytest.approx(frame.by_group.to_numpy())
    assert public(name, "ratio")(y, p, **args) == pytest.approx(frame.ratio())
    assert public(name, "difference")(y, p, **args) == pytest.approx(frame.difference())


def test_agrees_with_fairlearns_demographic_parity(fl):
    rng = np.random.default_rng(5)
    y, p = rng.integers(0, 2, (2, 100))
    z = rng.integers(0, 4, 100)
    assert metrics.statistical_rate(y, p, sensitive_features=z) == pytest.approx(
        fl.demographic_parity_ratio(y, p, sensitive_features=z)
    )


def ratio(name, table):
    return float(RATES[name].ratio(np.array(table)))


def test_four_fifths_is_four_fifths():
    # (36/100) / (45/100) is 0.7999999999999999 in floating point.
    for n in range(10, 200, 7):
        for k in range(1, n // 5):
            table = np.array([[[0, 0], [n - 4 * k, 4 * k]], [[0, 0], [n - 5 * k, 5 * k]]])
            assert ratio("selection_rate", table) == 0.8


def test_error_of_a_ratio_is_that_of_its_two_least_known_groups():
    # Selected of all: 30 of 100, 40 of 1000 and 10 of 50; the second group is the best known.
    table = np.array([[[70, 30], [0, 0]], [[0, 0], [960, 40]], [[40, 0], [0, 10]]])
    term = [1 / (a + 0.5) - 1 / (b + 0.5) for a, b in ((30, 100), (40, 1000), (10, 50))]
    assert sorted(term)[0] == term[0]
    rate = RATES["selection_rate"]
    assert float(rate.log_ratio_error(table)) == pytest.approx((term[1] + term[2]) ** 0.5)
    for order in permutations(range(3)):
        assert rate.log_ratio_error(table[[*order]]) == rate.log_ratio_error(table)
    assert float(rate.log_ratio_error(table[:2])) == pytest.approx((term[0] + term[1]) ** 0.5)
    # Many tables at once are each by itself.
    many = np.stack([table, table[::-1], 4 * table])
    alone = [float(rate.log_ratio_error(each)) for each in many]
    assert rate.log_ratio_error(many).tolist() == alone


def test_one_group_is_not_fair():
    assert np.isnan(metrics.statistical_rate([0, 1], [1, 1], sensitive_features=["a", "a"]))
    assert np.isnan(metrics.accuracy_difference([0, 1], [1, 1], sensitive_features=["a", "a"]))


def test_undefined_rates():
    nobody = [[[5, 0], [5, 0]], [[5, 0], [5, 0]]]
    one_group = [[[5, 0], [5, 0]], [[3, 2], [3, 2]]]
    no_errors = [[[5, 0], [0, 5]], [[5, 0], [0, 5]]]
    assert np.isnan(ratio("selection_rate", nobody))
    assert np.isnan(ratio("true_positive_rate", nobody))
    assert np.isnan(ratio("false_discovery_rate", nobody))
    assert ratio("selection_rate", one_group) == 0
    assert np.isnan(ratio("false_discovery_rate", one_group))
    assert ratio("false_discovery_rate", no_errors) == 1
    assert ratio("false_positive_rate", no_errors) == 1
    assert np.isnan(float(RATES["false_discovery_rate"].difference(np.array(one_group))))


counts = st.lists(st.integers(0, 50), min_size=4, max_size=4)
tables = st.lists(counts, min_size=2, max_size=5).map(lambda t: np.array(t).reshape(-1, 2, 2))


@given(tables, st.sampled_from(sorted(RATES)), st.randoms())
def test_ratio_properties(table, name, random):
    rate = RATES[name]
    value = float(rate.ratio(table))
    assert np.isnan(value) or 0 <= value <= 1
    assert np.isnan(value) or (value == 1) == np.isclose(float(rate.difference(table)), 0, atol=0)
    order = list(range(len(table)))
    random.shuffle(order)
    np.testing.assert_equal(float(rate.ratio(table[order])), value)
    np.testing.assert_allclose(float(rate.ratio(3 * table)), value, rtol=1e-12)
    # Leading dimensions are independent tables.
    stacked = rate.ratio(np.stack([table, 2 * table, table]))
    np.testing.assert_allclose(stacked, [value] * 3, rtol=1e-12)


@given(tables.filter(lambda t: t.sum() > 0))
def test_counts_come_back_from_rows(table):
    z, y, p = (np.repeat(v, table.ravel()) for v in np.indices(table.shape).reshape(3, -1))
    groups, found = group_counts(y, p, sensitive_features=z)
    np.testing.assert_array_equal(found, table[groups])
    weight = np.linspace(0.5, 2, len(y))
    _, doubled = group_counts(y, p, sensitive_features=z, sample_weight=2 * weight)
    _, single = group_counts(y, p, sensitive_features=z, sample_weight=weight)
    np.testing.assert_allclose(doubled, 2 * single)
    assert single.sum() == pytest.approx(weight.sum())


@pytest.mark.parametrize(
    ("labels", "pos_label"),
    [((0, 1), None), ((-1, 1), None), ((False, True), None), (("no", "yes"), "yes"), ((2, 5), 5)],
)
@pytest.mark.parametrize("groups", [("f", "m"), (0, 1), (False, True), (1.5, 2.5)])
def test_labels_and_groups_of_any_type(labels, pos_label, groups):
    y, p, z = rows_of(TABLE)
    y, p = np.array(labels)[y], np.array(labels)[p]
    z = pd.Series(np.array(groups)[(z == "b").astype(int)]).astype("category")
    value = metrics.statistical_rate(y, p, sensitive_features=z, pos_label=pos_label)
    assert value == pytest.approx(0.8)


def test_usable_as_scorer():
    rng = np.random.default_rng(0)
    X, y, z = rng.standard_normal((200, 3)), rng.integers(0, 2, 200), rng.choice(["a", "b"], 200)
    model = LogisticRegression().fit(X, y)
    scorer = make_scorer(metrics.statistical_rate, sensitive_features=z)
    expected = metrics.statistical_rate(y, model.predict(X), sensitive_features=z)
    assert scorer(model, X, y) == expected
    assert pickle.loads(pickle.dumps(metrics.statistical_rate)) is metrics.statistical_rate
    set_config(enable_metadata_routing=True)
    try:
        routed = make_scorer(metrics.statistical_rate).set_score_request(sensitive_features=True)
        scores = cross_val_score(model, X, y, scoring=routed, params={"sensitive_features": z})
        assert len(scores) == 5
        assert np.isfinite(scores).all()
    finally:
        set_config(enable_metadata_routing=False)


@pytest.mark.parametrize(
    ("change", "code", "data"),
    [
        ({"sensitive_features": ["a", None, "b", "b"]}, "missing_values", {"n": 1}),
        ({"sensitive_features": [1.0, np.nan, np.nan, 2.0]}, "missing_values", {"n": 2}),
        ({"sensitive_features": ["a", float("nan"), "b", "b"]}, "missing_values", {"n": 1}),
        ({"sensitive_features": np.zeros((4, 2, 2))}, "not_one_dimension", {"n": 3}),
        ({"sensitive_features": [[1], [1, 2], [3], [4]]}, "not_one_dimension", {"n": 2}),
        ({"sensitive_features": pd.Series([[1], [2], [1], [2]])}, "not_groups", {}),
        ({"sensitive_features": (v for v in "aabb")}, "not_a_column", {"type": "generator"}),
        ({"sensitive_features": "aabb"}, "not_a_column", {"type": "str"}),
        ({"sensitive_features": 3}, "not_a_column", {"type": "int"}),
        ({"y_pred": [1, np.nan, 1, np.nan], "pos_label": 1}, "missing_values", {"n": 2}),
        (
            {"y_true": ["a", None, "a", "a"], "y_pred": ["a"] * 4, "pos_label": "a"},
            "missing_values",
            {"argument": Parameter("y_true"), "n": 1},
        ),
        ({"y_true": pd.Series(["a", pd.NA, "a", "a"], dtype="string")}, "missing_values", {"n": 1}),
        (
            {"sensitive_features": pd.Series(["a", 1, "b", "b"], dtype=object)},
            "mixed_types",
            {"types": "int, str"},
        ),
        ({"y_true": pd.DataFrame({"a": [1] * 4, "b": [0] * 4})}, "several_columns", {"n": 2}),
        (
            {"y_true": ["no", "yes", "no", "yes"]},
            "no_favourable_label",
            {"labels": "'no', 'yes', 0, 1", "pos_label": Parameter("pos_label")},
        ),
        (
            {"y_true": ["no", "yes", "no", "yes"], "y_pred": ["no"] * 4, "pos_label": "Yes"},
            "not_two_labels",
            {"pos_label": Parameter("pos_label", "Yes")},
        ),
        ({"y_true": [0, 1, 2, 1], "pos_label": 1}, "not_two_labels", {"labels": "0, 1, 2"}),
        ({"sample_weight": [1, 1, -1, 1]}, "bad_weights", {}),
        ({"sample_weight": [1, 1, np.nan, 1]}, "bad_weights", {}),
        ({"y_true": [], "y_pred": [], "sensitive_features": []}, "no_rows_to_rate", {}),
    ],
)
def test_bad_input_is_named(change, code, data):
    if code in ("missing_values", "not_one_dimension", "not_groups", "not_a_column"):
        data = {"argument": Parameter(next(iter(change)))} | data
    args = {"y_true": [0, 1, 0, 1], "y_pred": [0, 1, 1, 1], "sensitive_features": list("aabb")}
    args |= change
    with raises(code, **data):
        group_counts(args.pop("y_true"), args.pop("y_pred"), **args)


def test_columns_of_different_lengths():
    with pytest.raises(ValueError, match="inconsistent numbers of samples"):  # scikit-learn's
        group_counts([0, 1, 0, 1], [0, 1, 1, 1], sensitive_features=list("abb"))


def test_group_codes_are_sorted():
    groups, codes = group_codes(pd.Series(["m", "f", "m"], dtype="category"))
    assert groups.tolist() == ["f", "m"]
    assert codes.tolist() == [1, 0, 1]


def test_crossed_values_with_the_separator_stay_apart():
    from evenhand.core.groups import group_codes

    pairs = pd.DataFrame({"a": ["x", "x & y", "x"], "b": ["y & z", "z", "z"]})
    groups, codes = group_codes(pairs)
    assert len(groups) == 3
    assert len(set(codes.tolist())) == 3
    towns = pd.DataFrame({"town": ["Köln & Umland", "Aachen"], "sex": ["f", "f"]})
    assert group_codes(towns)[0].tolist() == ['"Köln & Umland" & f', "Aachen & f"]
    # No two combinations of what can be written with these have one name.
    words = ["".join(signs) for n in range(4) for signs in product('a& "', repeat=n)]
    every = pd.DataFrame(product(words, words), columns=["a", "b"])
    assert len(group_codes(every)[0]) == len(every)


def test_wilson_interval_holds_the_share():
    top, bottom = np.array([0, 9, 3, 0]), np.array([9, 9, 11, 0])
    low, high = wilson_interval(top, bottom, 1.96)
    assert (low[:3] <= top[:3] / bottom[:3]).all()
    assert (high[:3] >= top[:3] / bottom[:3]).all()
    assert low[0] == 0
    assert high[1] == 1
    assert np.isnan([low[3], high[3]]).all()


@pytest.mark.parametrize(
    ("rate", "tau", "text"),
    [
        (0.7996, 0.8, "0.7996"),
        (0.79999996, 0.8, "0.79999996"),
        (0.8, 0.8, "0.800"),
        (0.85004, 0.85004, "0.85004"),
        (0.3, 0.8, "0.300"),
        (np.nextafter(0.8, 0), 0.8, "0.7999999999999999"),
    ],
)
def test_a_value_shows_its_side(rate, tau, text):
    assert Target(RATES["selection_rate"], tau).text(rate) == text


@given(st.integers(0, 300), st.integers(1, 300))
def test_wilson_against_scipy(hits, trials):
    from scipy.stats import binomtest, norm

    assume(hits <= trials)
    expected = binomtest(hits, trials).proportion_ci(0.95, method="wilson")
    found = wilson_interval(hits, trials, norm.ppf(0.975))
    np.testing.assert_allclose(found, (expected.low, expected.high), atol=1e-12)


def test_a_ratio_beyond_its_share_of_the_target_counts_as_parity():
    # 36 of 100 against 45 of 100 is 0.8, and half of the target is asked of it
    counts = np.array([[[64.0, 36.0], [0, 0]], [[55.0, 45.0], [0, 0]]])
    assert WorstRate("one", (RATES["selection_rate"],), (0.5,)).ratio(counts) == 1.0


@pytest.mark.parametrize("levels", [(0.85, 0.6), (0.6, 0.85), (0.95, 0.55), (0.7, 0.9)])
def test_a_ratio_of_its_share_of_the_target_is_at_the_target(levels):
    """The selection rates, or the true positive rates, are just at their own level."""
    most = max(levels)
    rates = (RATES["selection_rate"], RATES["true_positive_rate"])
    target = Target(WorstRate("w", rates, tuple(level / most for level in levels)), most)
    for n in range(20, 401, 20):
        selected = round(levels[0] * n / 2), round(levels[1] * n / 2)
        for counts in (
            [[[n / 2, 0], [0, n / 2]], [[n - selected[0], 0], [0, selected[0]]]],
            [[[n, n], [n / 2, n / 2]], [[n, n], [n - selected[1], selected[1]]]],
        ):
            value = target.value(counts)
            each = [part.reached(part.value(counts)) for part in target.components]
            assert target.reached(value) == all(each), (n, value)


def test_metrics_say_what_is_parity():
    assert "1 is parity" in evenhand.statistical_rate.__doc__
    assert "0 is parity" in evenhand.statistical_parity_difference.__doc__


def test_error_of_a_ratio_of_many_groups():
    rng = np.random.default_rng(0)
    for _ in range(20):
        hits, rows = rng.integers(1, 50, 40), rng.integers(60, 900, 40)
        counts = np.zeros((40, 2, 2))
        counts[:, 0] = np.column_stack([rows - hits, hits])
        term = np.sort(1 / (hits + 0.5) - 1 / (rows + 0.5))
        found = RATES["selection_rate"].log_ratio_error(counts)
        assert float(found) == pytest.approx(term[-2:].sum() ** 0.5)


@pytest.mark.parametrize("name", RATES)
@pytest.mark.parametrize("label", [0, 1, 2])
def test_a_rate_of_one_label_among_many_is_that_of_two(name, label):
    """The label against all the others together, counted by hand."""
    counts = np.random.default_rng(label).integers(1, 40, size=(4, 3, 3))
    is_it = np.arange(3) == label
    of_two = np.empty((4, 2, 2))
    for y, p in np.ndindex(2, 2):
        of_two[:, y, p] = counts[:, is_it == y][:, :, is_it == p].sum(axis=(1, 2))
    found = RATES[name].of_label(label, 3).per_group(counts)
    np.testing.assert_allclose(found, RATES[name].per_group(of_two))
