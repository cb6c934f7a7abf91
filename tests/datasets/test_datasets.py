import hashlib
import subprocess
import sys
import tarfile
from importlib import import_module
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from helpers import fair, raises
from hypothesis import given
from hypothesis import strategies as st

from evenhand.core.errors import Parameter
from evenhand.datasets import (
    DATASETS,
    census_chunks,
    encoded_split,
    load_adult,
    load_german,
    make_census,
    make_counterexample,
    with_correlation,
)

ROOT = Path(__file__).parents[2]


def correlation(y, z):
    return np.corrcoef(y, z)[0, 1]


def test_adult_facts():
    coarse, full = load_adult("coarse"), load_adult("full")
    assert len(coarse.data) == len(coarse.frame) == 48842
    assert len(full.data) == 45222
    assert not (full.frame == "?").any(axis=None)
    for data, expected in [(coarse, 0.2146), (full, 0.2158)]:
        assert correlation(data.target, data.sensitive_features == "Male") == pytest.approx(
            expected, abs=5e-5
        )
    # Spot checks against UCI's files: the first row of each part.
    first = coarse.frame.iloc[0]
    assert (first["age"], first["workclass"], first["fnlwgt"]) == (39, "State-gov", 77516)
    assert tuple(coarse.frame.iloc[32561][["age", "fnlwgt"]]) == (25, 226802)
    assert coarse.frame["fnlwgt"].sum() == 9263575662


def test_full_encoding():
    data = load_adult("full")
    X = data.data
    assert X.shape == (45222, 85)
    assert not any("fnlwgt" in c or c.startswith(("education=", "sex")) for c in X)
    one_hot = X.iloc[:, 5:]
    assert set(np.unique(one_hot)) == {0.0, 1.0}
    assert (one_hot.sum(axis=1) == 6).all()
    assert "sex=Male" in load_adult("full", sensitive_as_input=True).data


def test_zafar_encoding():
    full, data = load_adult("full"), load_adult("zafar")
    X = data.data
    assert X.shape == (45_222, 50)
    assert (data.target == full.target).all()
    assert not [name for name in X if name.startswith(("race", "sex"))]
    country = data.frame["native-country"] == "United-States"
    assert (X["native-country=United-States"] == country).all()
    school = X.filter(like="education=")
    assert school.shape[1] == 10
    assert (school.sum(axis=1) == 1).all()
    low = data.frame["education"].isin(["9th", "10th", "11th", "12th"])
    assert (X["education=high-school"] == low).all()


def test_coarse_encoding():
    X = load_adult("coarse").data
    assert X.shape == (48842, 18)
    assert set(np.unique(X)) == {0.0, 1.0}
    assert (X.filter(like="age").sum(axis=1) == 1).all()
    assert X.filter(like="age").shape[1] == 7
    assert (X.filter(like="education").sum(axis=1) == 1).all()
    assert X.filter(like="education").shape[1] == 9
    assert X["sex=Male"].sum() == 32650
    assert "sex=Male" not in load_adult("coarse", sensitive_as_input=False).data


def test_adult_interface():
    X, y, z = load_adult(return_X_y_z=True)
    assert sorted(z.unique()) == ["Female", "Male"]
    assert sorted(y.unique()) == [0, 1]
    X.iloc[0, 0] = -1  # a caller's change must not reach the next caller
    assert load_adult().data.iloc[0, 0] == 39
    assert "10.24432/C5XW20" in load_adult().DESCR
    assert "CC BY 4.0" in load_adult().DESCR
    with raises("unknown_table_encoding", encoding=Parameter("encoding", "fine")):
        load_adult("fine")


def test_german_facts():
    data = load_german()
    assert data.data.shape == (1000, 55)
    assert data.target.sum() == 700
    # Figures that studies of this table give: 310 women, 190 people of 25 or less.
    by_sex = data.target.groupby(data.sensitive_features).agg(["size", "sum"])
    assert by_sex.loc["female"].tolist() == [310, 201]
    assert by_sex.loc["male"].tolist() == [690, 499]
    by_age = load_german(sensitive="age")
    rows = by_age.target.groupby(by_age.sensitive_features).agg(["size", "sum"])
    assert rows.loc["25 or under"].tolist() == [190, 110]
    # The first row of UCI's file: A11 6 A34 A43 1169 A65 A75 4 A93 A101 4 A121 67 A143 A152 2 A173
    # 1 A192 A201 1.
    assert data.frame.iloc[0].to_dict() == {
        "checking_account": "below 0 DM",
        "duration_months": 6,
        "credit_history": "critical or credits elsewhere",
        "purpose": "radio or television",
        "amount": 1169,
        "savings": "unknown or none",
        "employment_since": "7 years or more",
        "installment_rate": 4,
        "personal_status": "male: single",
        "other_debtors": "none",
        "residence_since": 4,
        "property": "real estate",
        "age": 67,
        "other_installment_plans": "none",
        "housing": "own",
        "existing_credits": 2,
        "job": "skilled",
        "dependants": 1,
        "telephone": "yes",
        "foreign_worker": "yes",
        "credit": "good",
        "sex": "male",
    }


def test_german_inputs():
    data = load_german()
    assert not [c for c in data.feature_names if c.startswith(("personal", "sex", "credit="))]
    assert "age" in data.data
    assert "age" not in load_german(sensitive="age").data
    assert "age" in load_german(sensitive="age", sensitive_as_input=True).data
    assert load_german(sensitive_as_input=True).data["sex=male"].sum() == 690
    X, y, z = load_german(return_X_y_z=True, as_frame=False)
    assert type(X) is type(y) is type(z) is np.ndarray
    assert X.shape == (1000, 55)
    split = encoded_split(load_german(as_frame=False), random_state=0)
    np.testing.assert_allclose(split.X_train[:, :7].mean(axis=0), 0, atol=1e-9)
    about = {"sensitive": Parameter("sensitive", "race"), "names": "'sex' or 'age'"}
    with raises("unknown_sensitive", title="German credit", **about):
        load_german(sensitive="race")


@pytest.mark.parametrize("name", DATASETS)
def test_records_and_datasheets_agree(name, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "tools")
    record = DATASETS[name]
    facts = import_module("build_data").facts(record)  # which writes the first part
    assert record.datasheet.startswith(facts + "\n## Notes\n")
    assert "## Limits" in record.datasheet
    assert record.sensitive
    assert set(record.columns) >= {s.column for s in record.sensitive} | {record.label}
    assert not set(record.left_out) & {*record.numbers, *record.categories}
    assert all(s.groups == tuple(sorted(s.groups)) for s in record.sensitive)
    assert (record.table_sha256 is None) == record.loader.startswith("load_")
    row = next(
        line
        for line in (ROOT / "docs/datasets.md").read_text(encoding="utf-8").splitlines()
        if line.startswith(f"| `{record.loader}` |")
    )
    attributes = ", ".join(s.name for s in record.sensitive)
    assert f"| {record.rows:,} | {record.outcome} | {attributes} |" in row
    assert ("CC BY 4.0" in row) == ("CC BY 4.0" in record.licence)
    assert f"../src/evenhand/datasets/{name}.md" in (ROOT / "docs/datasets.md").read_text()


def test_what_is_embedded_has_its_licence_in_the_package():
    listed = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    for record in DATASETS.values():
        embedded = (files("evenhand.datasets") / f"{record.name}.csv.xz").is_file()
        assert embedded == (f"datasets/{record.name}.md" in listed)
        assert embedded == (record.table_sha256 is None)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["adult", "german"])
def test_embedded_file_is_small_and_rebuildable(name, tmp_path):
    embedded = files("evenhand.datasets") / f"{name}.csv.xz"
    assert len(embedded.read_bytes()) < 500_000
    wrong = tmp_path / DATASETS[name].archive.file
    with tarfile.open(wrong, "w:gz"):
        pass
    done = subprocess.run(
        [sys.executable, ROOT / "tools/build_data.py", name, wrong, tmp_path / "out"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    assert hashlib.sha256(wrong.read_bytes()).hexdigest() in done.stderr
    assert not (tmp_path / "out").exists()


def test_encoding_is_fitted_on_the_training_part():
    split = encoded_split(load_adult(), random_state=0)
    numbers = ["age", "education-num", "capital-gain", "capital-loss", "hours-per-week"]
    np.testing.assert_allclose(split.X_train[numbers].mean(), 0, atol=1e-9)
    np.testing.assert_allclose(split.X_train[numbers].std(ddof=0), 1, atol=1e-9)
    assert (split.X_test[numbers].mean().abs() > 1e-4).any()
    assert set(np.unique(split.X_test.drop(columns=numbers))) == {0.0, 1.0}


def test_split_is_stratified_on_label_and_group():
    data = load_adult("coarse")
    split = encoded_split(data, random_state=1)
    cells = pd.crosstab(split.z_train, split.y_train) / len(split.y_train)
    other = pd.crosstab(split.z_test, split.y_test) / len(split.y_test)
    np.testing.assert_allclose(cells, other, atol=1e-3)
    assert len(split.y_test) == pytest.approx(0.3 * 48842, abs=1)
    assert set(split.X_train.index).isdisjoint(split.X_test.index)


def test_split_takes_any_target():
    data = load_adult("coarse")
    three = (np.arange(len(data.target)) % 3).tolist()
    split = encoded_split(data, target=three, random_state=0)
    cells = pd.crosstab(split.z_train, split.y_train) / len(split.y_train)
    other = pd.crosstab(split.z_test, split.y_test) / len(split.y_test)
    np.testing.assert_allclose(cells, other, atol=1e-3)
    with raises("unequal_targets", n=3, rows=48842):
        encoded_split(data, target=[0, 1, 0])


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.65, 0.8, 1.0])
def test_correlation_on_adult(rho):
    _, y, z = load_adult(return_X_y_z=True)
    male = (z == "Male").astype(int)
    new = with_correlation(y, z, rho, random_state=0)
    assert correlation(new, male) == pytest.approx(rho, abs=1e-3)
    changed = new != y
    assert (new[changed] == male[changed]).all()
    if rho in (0.5, 0.65, 0.8):  # share of rows that took their z, from the reading notes
        q = {0.5: 0.41, 0.65: 0.62, 0.8: 0.80}[rho]
        assert changed.mean() / (y != male).mean() == pytest.approx(q, abs=0.02)


@given(st.integers(0, 10), st.floats(0, 1))
def test_correlation_is_the_nearest_reachable(seed, share):
    rng = np.random.default_rng(seed)
    z = (rng.random(60) < 0.6).astype(int)
    y = np.where(rng.random(60) < 0.3, z, rng.integers(0, 2, 60))
    z[:2], y[:2] = [0, 1], [0, 1]
    low = correlation(y, z)
    rho = min(low + share * (1 - low), 1.0)
    found = correlation(with_correlation(y, z, rho, random_state=seed), z)
    order = np.argsort(np.random.RandomState(seed).uniform(size=60), kind="stable")
    reachable = []
    for k in range(61):
        new = y.copy()
        new[order[:k]] = z[order[:k]]
        reachable.append(correlation(new, z))
    assert abs(found - rho) <= np.abs(np.array(reachable) - rho).min() + 1e-12


def test_correlation_keeps_types_and_seeds():
    y, z = np.array(["n", "p"] * 50), np.array([False, True, True, True] * 25)
    a, b = (with_correlation(y, z, 0.9, random_state=3) for _ in range(2))
    assert a.dtype == y.dtype
    np.testing.assert_array_equal(a, b)
    series = with_correlation(pd.Series(y, name="label"), z, 0.9, random_state=3)
    assert series.name == "label"
    assert series.tolist() == a.tolist()


def test_unreachable_correlation_says_what_is_reachable():
    y, z = np.array([0, 1, 0, 1] * 10), np.array([0, 1, 1, 1] * 10)
    low = correlation(y, z)
    for rho in (low - 0.01, 1.01, np.nan, -1):
        with raises("correlation_out_of_reach") as caught:
            with_correlation(y, z, rho)
        assert caught.value.data["least"] == pytest.approx(low)
    assert with_correlation([0, 1], [1, 0], 1, random_state=0).tolist() == [1, 0]
    with raises("not_two_values", name="z", n=1):
        with_correlation(y, np.zeros(40), 0.5)


def test_sparse_census_and_arrays_of_adult_can_be_split():
    census = make_census(2000, random_state=0, sparse=True)
    split = encoded_split(census, random_state=0)
    assert split.X_train.shape == (1400, 85)
    arrays = load_adult("coarse", as_frame=False)
    assert arrays.frame is None
    np.testing.assert_array_equal(arrays.data, load_adult("coarse").data)
    with raises("bad_count", parameter=Parameter("n_rows", 1e3), least=1):
        make_census(1e3)


def test_counterexample_is_skewed():
    X, y, z = make_counterexample(20_000, skew=0.9, random_state=0, return_X_y_z=True)
    assert (z == 0).sum() == 10_000
    assert y[z == 0].mean() == pytest.approx(0.1, abs=0.01)  # 3 standard errors
    assert y[z == 1].mean() == pytest.approx(0.5, abs=0.015)
    assert correlation(X["group_proxy"], z) == pytest.approx(1 / np.sqrt(2), abs=0.02)
    again = make_counterexample(20_000, random_state=0, as_frame=False)
    np.testing.assert_array_equal(again.data, X)
    assert again.sensitive_features.dtype == z.dtype
    encoded_split(again, random_state=0)
    for skew in (0.4, np.nan):
        with raises("bad_skew", skew=Parameter("skew", skew)):
            make_counterexample(skew=skew)
    with raises("bad_count", parameter=Parameter("n_samples", 3), least=4):
        make_counterexample(3)


def highest_rates(seed, **settings):
    """Highest rate of a run with either update: the paper's schedule, length, start, fixed cut."""
    data = make_counterexample(random_state=seed)
    X = data.encoder.fit_transform(data.data)
    for update in ("normal", "modified"):
        model = fair(
            update=update,
            alpha=0.1,
            alpha_power=0.5,
            max_iter=100,
            init="zero",
            cut=False,
            tau=0.01,  # no warning: the rates are looked at by the caller
            **settings,
        ).fit(X, data.target, sensitive_features=data.sensitive_features)
        eligible = model.frontier_.to_frame()["rate"].max()
        every = model.trajectory_.to_frame()["rate"].max()
        yield eligible if update == "modified" else max(eligible, every)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("settings", [{}, {"mu": 10.0}], ids=["default", "mu=10"])
def test_counterexample_needs_the_projection(settings, seed):
    normal, modified = highest_rates(seed, **settings)
    assert normal < 0.5
    assert modified >= 0.8


def test_counterexample_in_the_printed_reading():
    """There most seeds reach 0.8 with the projection, not all; none comes near without it."""
    printed = {"reading": "printed", "l2": 1.0, "mu": 10.0, "step": 0.1}
    normal, modified = np.transpose([[*highest_rates(seed, **printed)] for seed in range(9)])
    assert normal.max() < 0.5
    assert np.median(modified) >= 0.8


@pytest.mark.slow
def test_census_is_adult():
    """Marginals, pairs and the label's correlation, each within five standard errors."""
    n = 200_000
    adult = load_adult()
    data = make_census(n, random_state=0)
    X, y, z = data.data, data.target, data.sensitive_features
    assert X.dtype == np.float32
    assert data.feature_names == adult.feature_names
    male = (z == "Male").to_numpy()
    expected, spread = adult.data.mean().to_numpy(), adult.data.std().to_numpy()
    error = np.abs(X.mean(axis=0, dtype=np.float64) - expected)
    assert (error <= 5 * (spread + 0.3) / np.sqrt(n)).all()
    assert correlation(y, male) == pytest.approx(0.2158, abs=5 / np.sqrt(n))
    assert y.mean() == pytest.approx(adult.target.mean(), abs=5 * 0.432 / np.sqrt(n))
    inputs = adult.data.assign(y=adult.target, male=adult.sensitive_features == "Male").corr()
    both = np.column_stack([X, y, male])
    varied = both.std(axis=0) > 0.05  # a correlation with a rare category is noise
    gap = np.corrcoef(both[:, varied], rowvar=False) - inputs.to_numpy()[np.ix_(varied, varied)]
    assert np.abs(gap).max() < 0.04
    # rounded, the jittered columns are Adult's values; the others are as they were
    assert set(np.rint(X[:, 0])) <= set(adult.data["age"])
    plain = make_census(n, random_state=0, jitter=False, return_X_y_z=True)[0]
    assert np.abs(X - plain).max() <= 0.5
    np.testing.assert_array_equal(np.delete(X, [0, 4], axis=1), np.delete(plain, [0, 4], axis=1))
    # jitter makes nearly all rows distinct, a bootstrap alone would not
    assert len(np.unique(X[:20_000], axis=0)) > 19_900
    split = encoded_split(data, random_state=0)
    np.testing.assert_allclose(split.X_train[:, :5].mean(axis=0), 0, atol=1e-2)


@pytest.mark.parametrize("rho", [0.3, 0.5, 0.8])
def test_census_of_a_given_correlation(rho):
    n = 200_000
    X, y, z = make_census(n, rho=rho, random_state=1, return_X_y_z=True)
    assert correlation(y, z == "Male") == pytest.approx(rho, abs=5 / np.sqrt(n))
    X0, y0, z0 = make_census(n, random_state=1, return_X_y_z=True)
    np.testing.assert_array_equal(X, X0)  # only labels move
    assert (z == z0).all()
    moved = y != y0
    np.testing.assert_array_equal(y[moved], (z == "Male")[moved].astype(int))


def test_census_rows_depend_on_seed_and_number_only():
    X, y, z = make_census(150_000, random_state=3, return_X_y_z=True)
    for chunk_rows, start in [(40_000, 0), (65_536, 0), (100_001, 0), (7_000, 60_001)]:
        n = min(len(y) - start, 90_000)
        parts = list(census_chunks(n, chunk_rows=chunk_rows, start=start, random_state=3))
        assert max(len(part[1]) for part in parts) <= chunk_rows
        rows = slice(start, start + n)
        np.testing.assert_array_equal(np.concatenate([p[0] for p in parts]), X[rows])
        np.testing.assert_array_equal(np.concatenate([p[1] for p in parts]), y[rows])
        assert pd.concat([p[2] for p in parts]).tolist() == z[rows].tolist()
    np.testing.assert_array_equal(make_census(10, random_state=3).data, X[:10])
    assert (make_census(10, random_state=4).data != X[:10]).any()
    assert (X[65_536:65_546] != X[:10]).any()  # blocks differ


def test_census_other_forms():
    dense = make_census(70_000, random_state=0)
    sparse = make_census(70_000, random_state=0, sparse=True)
    assert sparse.data.nnz == 70_000 * 11
    assert sparse.data.dtype == np.float32
    np.testing.assert_array_equal(sparse.data[65_000:].toarray(), dense.data[65_000:])
    framed = make_census(1000, random_state=0, as_frame=True)
    np.testing.assert_array_equal(framed.data.to_numpy(), dense.data[:1000])
    assert list(framed.data.columns) == load_adult().feature_names
    encoded_split(framed, random_state=0)
    model = fair(tau=0.8, max_iter=20)
    split = encoded_split(make_census(5000, random_state=0, as_frame=True), random_state=0)
    model.fit(split.X_train, split.y_train, sensitive_features=split.z_train)
    assert model.groups_.tolist() == ["Female", "Male"]
    with raises("correlation_out_of_reach", rho=Parameter("rho", 0.1)) as caught:
        make_census(5, rho=0.1)
    assert caught.value.data["least"] == pytest.approx(0.2158, abs=5e-5)
    with raises("sparse_frame"):
        make_census(5, sparse=True, as_frame=True)
    for call, name, value in [
        (lambda: make_census(0), "n_rows", 0),
        (lambda: census_chunks(5, chunk_rows=0), "chunk_rows", 0),
        (lambda: census_chunks(5, start=-1), "start", -1),
    ]:
        with raises("bad_count", parameter=Parameter(name, value)):
            call()
