"""Several sensitive columns: crossed, each by itself, or both."""

import itertools
import json
import warnings

import numpy as np
import pandas as pd
import pytest
from helpers import run, words

from evenhand import FairBoostedClassifier, FairClassifier, fair_pipeline, load_model, save_model
from evenhand.core.errors import InputError
from evenhand.core.multipliers import SoftRatePath
from evenhand.core.notions import NOTIONS, by_attribute, find_notion
from evenhand.core.rates import RATES, Partition, by_partition
from evenhand.core.targets import Target
from evenhand.engines.coding import make_partitions
from evenhand.engines.memory import make_oracle
from evenhand.frontier.sweep import sweep
from evenhand.models.settings import FairnessWarning
from evenhand.statistics.bounds import exact_bound
from evenhand.views.report.words import attribute_sentence
from evenhand.workflow.attributes import audit_attributes
from evenhand.workflow.audit import audit
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import train

SEX = Partition("sex", ("f", "m"), ((0, 1), (2, 3)))
RACE = Partition("race", ("x", "y"), ((0, 2), (1, 3)))
# f & x, f & y, m & x, m & y: 1/4, 3/4, 3/4 and 1/4 are accepted.
CROSS = [[[3, 1], [3, 1]], [[1, 3], [1, 3]], [[1, 3], [1, 3]], [[3, 1], [3, 1]]]


def table(n=900, seed=0, races="xyz"):
    rng = np.random.default_rng(seed)
    sex, race = (
        rng.choice(["f", "m"], n),
        rng.choice(list(races), n, p={2: [0.7, 0.3], 3: [0.6, 0.3, 0.1]}[len(races)]),
    )
    a = rng.normal(size=n) + 0.8 * (sex == "m")
    b = rng.normal(size=n) + 0.8 * (race == "x")
    good = a + b + rng.normal(size=n) > 0.8
    return pd.DataFrame({"a": a, "b": b, "sex": sex, "race": race, "good": good.astype(int)})


def fitted(data, **params):
    params = {"tau": 0.8, "confidence": None} | params
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        return FairClassifier(**params).fit(
            data[["a", "b"]].to_numpy(), data["good"], sensitive_features=data[["sex", "race"]]
        )


def by_hand(data, answers, columns):
    """Smallest over largest share of yes by each column, from the rows themselves."""
    shares = pd.Series(answers).groupby([data[c].to_numpy() for c in columns]).mean()
    return shares.min() / shares.max()


def test_crossed_groups_may_differ_where_no_attribute_does():
    """Kearns's checkerboard, by hand: both attributes are even, their combinations are not."""
    rate = RATES["selection_rate"]
    each = by_partition(rate, [SEX, RACE])
    assert [part.per_group(CROSS).tolist() for part in each.components] == [[0.5, 0.5]] * 2
    assert float(each.ratio(CROSS)) == 1
    assert float(rate.ratio(CROSS)) == pytest.approx(1 / 3)
    assert [part.name_of("ratio") for part in each.components] == [
        "statistical rate by sex",
        "statistical rate by race",
    ]
    assert rate.difference(CROSS) == 0.5
    assert each.difference(CROSS) == 0


@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds", "predictive_parity"])
@pytest.mark.parametrize("partitions", [[SEX, RACE], [SEX], [SEX, RACE, None]])
def test_a_merged_rate_is_that_of_merged_rows(notion, partitions):
    counts = np.random.default_rng(0).integers(1, 30, size=(5, 4, 2, 2)).astype(float)
    alone = Partition("both", ("1", "2", "3", "4"), ((0,), (1,), (2,), (3,)))
    partitions = [by or alone for by in partitions]
    plain = find_notion(notion)
    target = Target(plain.rate, 0.8)
    values, bounds = [], []
    for by in partitions:
        merged = np.stack([counts[:, list(m)].sum(axis=1) for m in by.members], axis=1)
        values.append(target.value(merged))
        bounds.append(exact_bound(merged, target, 0.05))
    found = target.by(partitions)
    np.testing.assert_allclose(found.value(counts), np.min(values, axis=0))
    np.testing.assert_allclose(exact_bound(counts, found, 0.05), np.min(bounds, axis=0))
    assert len(found.demands) == len(partitions) * len(target.demands)


def test_partitions_of_a_table():
    """A value that is too small is not compared, and a small combination counts in its columns."""
    columns = pd.DataFrame({"sex": list("ffffmmmmfm"), "race": list("xxxyxxyyyz")})
    names = np.array(["f & x", "f & y", "m & x", "m & y", "m & z"])
    z = np.array([0, 0, 0, 1, 2, 2, 3, 3, 1, 4])
    sex, race, crossed = make_partitions(columns, z, names, 2, crossed_too=True)
    assert sex == Partition("sex", ("f", "m"), ((0, 1), (2, 3, 4)))
    assert race == Partition("race", ("x", "y"), ((0, 2), (1, 3)), (("z", 1),))
    assert crossed.members == ((0,), (1,), (2,), (3,))
    assert crossed.small == (("m & z", 1),)


@pytest.mark.parametrize("groups", [2, 3])
@pytest.mark.parametrize("notion", ["statistical_parity", "equal_opportunity", "equalized_odds"])
def test_frontier_by_brute_force(notion, groups):
    """All cuts of one score: no cut reaches a ratio with more accuracy than the frontier says."""
    rng = np.random.default_rng(groups)
    n = 120
    one, other = rng.integers(groups, size=n), rng.integers(2, size=n)
    y = rng.integers(2, size=n)
    score = np.round(rng.normal(size=n) + y + 0.3 * one, 1)
    cells = one * 2 + other
    partitions = [
        Partition("one", tuple("abc"[:groups]), tuple((2 * j, 2 * j + 1) for j in range(groups))),
        Partition("other", ("0", "1"), tuple(tuple(range(j, 2 * groups, 2)) for j in (0, 1))),
    ]
    judged = by_attribute(find_notion(notion), partitions)
    oracle = make_oracle(score[:, None], y, cells, notion=judged)
    frontier = sweep(oracle, np.array([[1.0, 0.0]]), groups=list(range(2 * groups)), min_share=0.05)
    plain, found = find_notion(notion).rate, []
    for cut in np.unique(score)[:-1] + 0.05:
        answer, shares, ratios = score > cut, [], []
        for part, k in ((one, groups), (other, 2)):
            counts = np.zeros((k, 2, 2))
            np.add.at(counts, (part, y, answer.astype(int)), 1)
            ratios.append(float(plain.ratio(counts)))
            shares += (counts[:, :, 1].sum(axis=1) / counts.sum(axis=(1, 2))).tolist()
        if min(shares) >= 0.05 and max(shares) <= 0.95 and not np.isnan(ratios).any():
            found.append((min(ratios), np.mean(answer == y)))
    for tau in (0.3, 0.5, 0.6, 0.7, 0.8, 0.9):
        best = max((a for r, a in found if r >= tau), default=None)
        point = frontier.select(tau)
        assert point.feasible == (best is not None)
        # A point may be left out only for one that is as accurate and more surely fair.
        if best is not None:
            assert point.rate >= tau
            assert point.accuracy <= best + 1e-12
            assert (point.rate, point.accuracy) in [pytest.approx(pair) for pair in found]
    assert max(r for r, _ in found) == pytest.approx(frontier.rate.max())


def test_one_fit_for_each_attribute():
    data = table()
    model = fitted(data, attributes="each")
    answers = model.predict(data[["a", "b"]].to_numpy())
    by = [by_hand(data, answers, [c]) for c in ("sex", "race")]
    assert model.rate_ == pytest.approx(min(by))
    assert model.rate_ >= 0.8
    assert [p.name for p in model.fitted_.partitions] == ["sex", "race"]
    assert "sex; race: each by itself" in model._repr_html_inner()
    assert ".at(τ) moves along it" in model._repr_html_inner()
    assert ".at(epsilon=…) moves along it" in model.at(epsilon=0.3)._repr_html_inner()
    both = fitted(data, attributes="both")
    answers = both.predict(data[["a", "b"]].to_numpy())
    by = [by_hand(data, answers, c) for c in (["sex"], ["race"], ["sex", "race"])]
    assert both.rate_ == pytest.approx(min(by))
    crossed = fitted(data)
    answers = crossed.predict(data[["a", "b"]].to_numpy())
    assert crossed.rate_ == pytest.approx(by_hand(data, answers, ["sex", "race"]))
    # Whoever is even between all combinations is so by each attribute.
    assert by_hand(data, answers, ["sex"]) >= crossed.rate_


def test_small_combinations_count_within_their_attributes():
    data = table(races="xy")
    data.loc[data.index[:5], ["sex", "race"]] = ["f", "z"]
    data.loc[data.index[5:45], ["sex", "race"]] = ["m", "z"]
    model = fitted(data, attributes="both", tau=0.5)
    assert model.small_groups_ == {}
    _, race, crossed = model.fitted_.partitions
    assert race.groups == ("x", "y", "z")
    assert crossed.small == (("f & z", 5),)
    answers = model.predict(data[["a", "b"]].to_numpy())
    known = ~((data["sex"] == "f") & (data["race"] == "z")).to_numpy()
    by = [by_hand(data, answers, [c]) for c in ("sex", "race")]
    by.append(by_hand(data[known], answers[known], ["sex", "race"]))
    assert model.rate_ == pytest.approx(min(by))


@pytest.mark.parametrize(
    "options", [{}, {"notion": "equalized_odds", "tau": 0.5}, {"epsilon": 0.1, "tau": None}]
)
@pytest.mark.parametrize("attributes", ["each", "both"])
def test_saved_and_moved(tmp_path, options, attributes):
    data = table()
    model = fitted(data, attributes=attributes, **options)
    save_model(model, tmp_path / "m.model")
    other = load_model(tmp_path / "m.model").model
    assert other.fitted_.partitions == model.fitted_.partitions
    assert (other.rate_, other.accuracy_) == (model.rate_, model.accuracy_)
    if "epsilon" not in options:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            moved = [one.at(0.6) for one in (model, other)]
        assert moved[0].rate_ == moved[1].rate_


@pytest.mark.parametrize(
    "options", [{"confidence": "certified", "tau": 0.4}, {"selection": "crossfit"}]
)
def test_selections_with_rare_combinations(options):
    data = table(races="xy")
    data.loc[data.index[:1], ["sex", "race"]] = ["f", "z"]
    data.loc[data.index[1:60], ["sex", "race"]] = ["m", "z"]
    model = fitted(data, attributes="each", random_state=0, **options)
    held = model.held_out_
    target = Target(RATES["selection_rate"], 0.8).by(model.fitted_.partitions)
    np.testing.assert_allclose(held.rate, target.value(held.counts))


def test_one_column_is_the_same_in_all():
    data = table()
    rates = set()
    for attributes in ("crossed", "each", "both"):
        model = FairClassifier(attributes=attributes, confidence=None)
        model.fit(data[["a", "b"]].to_numpy(), data["good"], sensitive_features=data["sex"])
        assert model.fitted_.partitions == ()
        rates.add((model.rate_, model.accuracy_))
    assert len(rates) == 1


def test_boosted_and_pipeline_with_bins():
    data = table(400)
    data["age"] = np.random.default_rng(1).integers(20, 70, len(data))
    X, y = data.drop(columns="good"), data["good"]
    model = fair_pipeline(["sex", "age"], bins={"age": [40]}, attributes="each", tau=0.5).fit(X, y)
    assert [p.groups for p in model[-1].fitted_.partitions] == [("f", "m"), ("below 40", "from 40")]
    boosted = FairBoostedClassifier(attributes="each", tau=0.5, random_state=0, confidence=None)
    boosted.fit(X[["a", "b"]], y, sensitive_features=X[["sex", "race"]])
    assert len(boosted.fitted_.partitions) == 2


def test_refused():
    data = table()
    with pytest.raises(InputError, match="each crossed group has its own"):
        fitted(data, attributes="each", group_cuts=True)
    twice = data[["sex", "sex"]]
    with pytest.raises(InputError, match="two sensitive columns are called 'sex'"):
        FairClassifier(attributes="each").fit(
            data[["a", "b"]].to_numpy(), data["good"], sensitive_features=twice
        )
    with pytest.raises(InputError, match="is a group of one attribute"):
        audit_attributes(
            data, label="good", sensitive=["sex", "race"], attributes="each", privileged="m"
        )
    data["race"] = "x"
    with pytest.raises(InputError, match="of 'race'"):
        fitted(data, attributes="each")


def test_prices_for_many_groups_are_the_soft_rates():
    """The way for rates with fixed denominators against the general one."""
    rng = np.random.default_rng(0)
    X, y, z = rng.normal(size=(200, 3)), rng.integers(2, size=200), rng.integers(4, size=200)
    notion = by_attribute(NOTIONS["equalized_odds"](2), [SEX, RACE])
    oracle = make_oracle(X, y, z, notion=notion)
    kappa = rng.normal(size=(4, 4))
    w = rng.normal(size=4)
    m, path = SoftRatePath().evaluate(oracle, w, kappa), SoftRatePath()
    loss = 0.0
    f = 1 / (1 + np.exp(-(X @ w[:-1] + w[-1])))
    for k, by in enumerate(2 * [1, 0]):  # rates are those of sex, then of race: tpr, fpr
        for j in range(4):
            loss += 2 * kappa[k, j] * f[(y == by) & (z == j)].sum() / len(y)
    assert -m.loss_w == pytest.approx(loss)
    step = 1e-6 * rng.normal(size=4)
    value = [path.evaluate(oracle, w + s * step, kappa) for s in (1, -1)]
    change = sum(s * (v.loss_c - v.loss_w) for s, v in zip((1, -1), value, strict=True)) / 2
    assert change == pytest.approx((m.grad_c - m.grad_f) @ step, rel=1e-5)


def test_audit_side_by_side(tmp_path):
    data = table()
    data.to_csv(tmp_path / "t.csv", index=False)
    args = [str(tmp_path / "t.csv"), "--label", "good", "--sensitive", "sex", "--sensitive", "race"]
    report = audit_attributes(data, label="good", sensitive=["sex", "race"], attributes="both")
    values = []
    for one, names in zip(report["audits"], (["sex"], ["race"], ["sex", "race"]), strict=True):
        assert one["sensitive"] == names
        assert one["ratios"] == audit(data, label="good", sensitive=names)["ratios"]
        assert one["confidence"] == pytest.approx(1 - 0.05 / 3)
        values.append(one["verdict"]["value"])
    assert report["worst"] == ["sex", "race", "sex × race"][int(np.argmin(values))]
    assert not report["passed"]
    done = run("audit", *args, "--attributes", "both")
    assert done.exit_code == 2
    assert f"the worst groups are by {report['worst']}" in words(done.stdout)
    assert "groups by sex × race" in words(done.stdout)
    found = json.loads(run("audit", *args, "--attributes", "each", "--json").stdout)
    assert [one["sensitive"] for one in found["audits"]] == [["sex"], ["race"]]
    alone = run("audit", *args[:-2], "--attributes", "each", "--json")
    assert "audits" not in json.loads(alone.stdout)


@pytest.mark.parametrize(("selection", "where"), [("train", None), ("holdout", "on the held-out")])
def test_two_measurements_of_training_rows_are_told_apart(selection, where):
    options = {"attributes": "each", "confidence": None, "selection": selection, "tau": 0.5}
    saved = train(table(1500), label="good", sensitive=["sex", "race"], test_size=0, **options)
    said = attribute_sentence(summarise(saved))
    assert "on the training rows (ratio" in said
    assert ("There the saved model itself answers" in said) == (where is not None)
    assert f"what is reached was measured {where}" in said or where is None


def test_training_says_which_attribute_is_the_worst(tmp_path):
    data = table(1500)
    data.to_csv(tmp_path / "t.csv", index=False)
    args = [str(tmp_path / "t.csv"), "--label", "good", "--sensitive", "sex", "--sensitive", "race"]
    args += ["--attributes", "each", "--confidence", "none", "-o", str(tmp_path / "m.model")]
    done = run("train", *args)
    assert done.exit_code == 0, done.output
    said = words(done.stdout)
    assert "Compared are the groups by “sex” and “race”, each by itself: the worst counts." in said
    saved = train(data, label="good", sensitive=["sex", "race"], attributes="each", confidence=None)
    summary = summarise(saved)
    parts = summary["rate"]["parts"]
    assert [part["by"]["groups"] for part in parts] == [("f", "m"), ("x", "y", "z")]
    counts = np.array(summary["saved"]["counts"]["test"])
    merged = {
        "sex": counts.reshape(2, 3, 2, 2).sum(axis=1),
        "race": counts.reshape(2, 3, 2, 2).sum(axis=0),
    }
    ratios = {name: float(RATES["selection_rate"].ratio(c)) for name, c in merged.items()}
    test = next(one for one in summary["worst"] if one["key"] == "test")
    assert test["attribute"] == min(ratios, key=ratios.__getitem__)
    assert test["value"] == pytest.approx(min(ratios.values()))
    page = (tmp_path / "m.html").read_text(encoding="utf-8")
    assert "each by itself: the worst counts" in page
    for names in itertools.chain(*(part["by"]["groups"] for part in parts)):
        assert f"<bdi>\u2068{names}\u2069</bdi>" in page
