"""Engines against each other: the same moments, the same fits, wherever the rows are."""

import itertools
import os
import pickle
import subprocess
import sys
import time
import warnings
from contextlib import nullcontext
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from helpers import NOTION_NAMES, REGIMES, as_layout
from scipy.sparse import coo_matrix, csc_matrix, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import DataConversionWarning, NotFittedError
from sklearn.model_selection import KFold

import evenhand.engines.threads as threads
from evenhand import FairClassifier, FairnessWarning
from evenhand.core.notions import NOTIONS, find_notion, of_labels
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import row_sums
from evenhand.core.rows import Share, as_columns
from evenhand.engines.kernels import LIMITS, Limits, find_faster, has_numba
from evenhand.engines.memory import MemoryRows, make_oracle
from evenhand.engines.threads import cores
from evenhand.frontier.sweep import sweep

numba = pytest.mark.skipif(not has_numba(), reason="needs numba")
NEVER, ALWAYS = Limits(compiled_rows=10**9), Limits(compiled_rows=1)
# Rows of a fit to a table so large that its cuts are those of a histogram.
MANY = LIMITS.exact_rows + 1


def make_rows(n=3001, groups=2, labels=2, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    z = rng.integers(0, groups, n)
    X = rng.standard_normal((n, 6)).astype(dtype)
    X[:, 0] += 0.8 * z
    score = X @ np.linspace(1, -1, 6) + rng.logistic(size=n)
    y = np.digitize(score, np.quantile(score, np.arange(1, labels) / labels))
    return X, y, z


def with_value(X, value, row=400, column=1):
    X = np.array(X)
    X[row, column] = value
    return X


def assert_same_moments(found, expected, tolerance):
    for name, a, b in zip(found._fields, found, expected, strict=True):
        scale = max(np.abs(b).max(), 1e-2)
        np.testing.assert_allclose(
            np.asarray(a) / scale, np.asarray(b) / scale, atol=tolerance, err_msg=name
        )


@pytest.fixture
def point():
    rng = np.random.default_rng(3)

    def point(oracle):
        w = rng.standard_normal(oracle.n_weights) * 0.5
        return w, rng.standard_normal(oracle.n_adversary) * 0.3

    return point


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        torch = pytest.importorskip("torch")
        torch.set_num_threads(1)  # its threads wait busily, and so do those of other tests
        return torch

    @pytest.fixture(params=["cpu", "cuda"])
    def device(self, torch, request):
        if request.param == "cuda" and not torch.cuda.is_available():
            pytest.skip("needs a GPU")
        return request.param

    @pytest.mark.parametrize("labels", [2, 3])
    @pytest.mark.parametrize("notion", NOTION_NAMES)
    def test_moments(self, torch, device, notion, labels, point):
        from evenhand.engines.torch import TorchRows

        X, y, z = make_rows(groups=3, labels=labels)
        rng = np.random.default_rng(1)
        wanted = find_notion(notion, 2)
        wanted = wanted if labels == 2 else of_labels(wanted, [0, 2], 3)
        for k, quantity, weight in itertools.product(
            (2, 3), (None, rng.standard_normal(len(y))), (None, rng.random(len(y)) + 0.1)
        ):
            settings = {"notion": wanted, "n_labels": labels, "n_groups": k}
            columns = as_columns(
                len(y),
                y,
                np.minimum(z, k),
                n_labels=labels,
                quantity=quantity,
                sample_weight=weight,
            )
            given = quantity is not None
            numpy = Oracle(MemoryRows(X, columns), quantity=given, **settings)
            w, u = point(numpy)
            expected = numpy.evaluate(w, u, 1.3)
            for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
                rows = TorchRows(torch.as_tensor(X).to(dtype), columns, device)
                found = Oracle(rows, quantity=given, **settings)
                assert found.smoothness == pytest.approx(numpy.smoothness, rel=1e-5)
                assert_same_moments(found.evaluate(w, u, 1.3), expected, tolerance)

    @pytest.mark.parametrize("notion", ["statistical_parity", "predictive_equality"])
    @pytest.mark.parametrize("degree", [1, 2, 3])
    def test_the_fused_kernel(self, torch, notion, degree, point):
        if not torch.cuda.is_available():
            pytest.skip("needs a GPU")
        from evenhand.engines.torch import TorchRows

        X, y, z = make_rows(200_003, groups=3)
        rng = np.random.default_rng(1)
        extras, weights = (None, rng.random(len(y))), (None, rng.random(len(y)) + 0.1)
        for extra, weight in itertools.product(extras, weights):
            columns = as_columns(len(y), y, z, n_labels=2, extra=extra, sample_weight=weight)
            expected = Oracle(MemoryRows(X, columns), notion=NOTIONS[notion](degree), n_groups=2)
            w, u = point(expected)
            for dtype, tolerance in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
                rows = TorchRows(torch.as_tensor(X).to(dtype), columns, "cuda")
                found = Oracle(rows, notion=NOTIONS[notion](degree), n_groups=2)
                kernel = find_faster(row_sums, "torch", rows, w, u, 1.3, found.game, None)
                assert (kernel is not None) == (degree < 3)
                assert_same_moments(
                    found.evaluate(w, u, 1.3), expected.evaluate(w, u, 1.3), tolerance
                )

    @pytest.mark.parametrize(
        "settings",
        [
            {},
            {"group_cuts": True},
            {"notion": "equalized_odds"},
            {"solver": "cost_sensitive"},
            {"cut": False},
        ],
    )
    @pytest.mark.parametrize("exact", [True, False])
    def test_fits(self, torch, device, settings, exact):
        X, y, z = make_rows(3000 if exact else MANY)
        settings = {"max_iter": 30, "tau": 0.7, **settings}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            expected = FairClassifier(**settings).fit(X, y, sensitive_features=z)
            tensors = [torch.as_tensor(v).to(device) for v in (X, y, z)]
            found = FairClassifier(**settings).fit(*tensors[:2], sensitive_features=tensors[2])
            copied = FairClassifier(**settings, engine="torch", device=device)
            copied.fit(X, y, sensitive_features=z)
        for model in (found, copied):
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
            np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
            assert model.rate_ == pytest.approx(expected.rate_)
            np.testing.assert_allclose(model.frontier_.rate, expected.frontier_.rate)
        groups = {"sensitive_features": tensors[2]} if settings.get("group_cuts") else {}
        predicted = found.predict(tensors[0], **groups)
        assert (predicted == expected.predict(X, sensitive_features=z)).mean() > 0.9999

    @pytest.mark.parametrize("exact", [True, False])
    def test_weights(self, torch, exact):
        # Rows of weight 0 do not count.
        X, y, z = make_rows(12_000 if exact else 2 * MANY)
        weight = np.random.default_rng(0).integers(0, 3, len(y))
        settings = {"max_iter": 20, "tau": 0.5}
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        model = FairClassifier(**settings).fit(
            *map(torch.as_tensor, (X, y)),
            sensitive_features=torch.as_tensor(z),
            sample_weight=torch.as_tensor(weight),
        )
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)

    def test_certificates(self, torch):
        from evenhand.paper.theory import certificate

        X, y, z = make_rows(600)
        found = [
            certificate(
                FairClassifier(max_iter=10, tau=0.5, engine=engine).fit(X, y, sensitive_features=z),
                X,
                y,
                sensitive_features=z,
            )
            for engine in ("numpy", "torch")
        ]
        assert found[1].epsilon == pytest.approx(found[0].epsilon, rel=1e-6)

    @pytest.mark.parametrize("selection", ["holdout", "certified", "crossfit"])
    def test_selections(self, torch, selection):
        X, y, z = make_rows(6000)
        model = FairClassifier(**REGIMES[selection], tau=0.5, max_iter=20, cv=3, random_state=0)
        model.fit(torch.as_tensor(X), torch.as_tensor(y), sensitive_features=z)
        assert model.feasible_
        assert model.held_out_.n_rows == pytest.approx(
            6000 if selection == "crossfit" else 3000, rel=0.1
        )

    def test_labels_and_groups_of_any_kind(self, torch):
        X, y, z = make_rows(500)
        words, names = np.array(["no", "yes"])[y], np.array(["a", "b"])[z]
        model = FairClassifier(max_iter=5, tau=0.1, pos_label="yes").fit(
            torch.as_tensor(X), words, sensitive_features=names
        )
        assert model.classes_.tolist() == ["no", "yes"]
        assert model.groups_.tolist() == ["a", "b"]
        assert set(model.predict(X)) <= {"no", "yes"}

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda X, y, z: (X[:, 0], y, z), "X has 1 dimensions"),
            (lambda X, y, z: (X[:0], y[:0], z[:0]), "X has no rows"),
            (lambda X, y, z: (X[:, :0], y, z), "X has no columns"),
            (lambda X, y, z: (X * np.nan, y, z), "column 0 of X contains NaN or infinite"),
            (lambda X, y, z: (X + 0j, y, z), "X holds complex numbers"),
            (lambda X, y, z: (X, None, z), "requires y to be passed"),
            (lambda X, y, z: (X, y[:-1], z), "y has 499 rows, X has 500"),
            (lambda X, y, z: (X, y, z[:-1]), "sensitive_features has 499 rows"),
            (lambda X, y, z: (X, y * 0, z), "y has one class"),
            (lambda X, y, z: (X, y, z * 0), "has 1 group"),
            (lambda X, y, z: (X, y, None), "the groups are missing"),
            (lambda X, y, z: (X * 1e100, y, z), "column 0 of X has values up to .* in float64"),
        ],
    )
    def test_bad_input(self, torch, change, message):
        X, y, z = change(*(torch.as_tensor(v) for v in make_rows(500)))
        with pytest.raises(ValueError, match=message):
            FairClassifier().fit(X, y, sensitive_features=z)

    def test_what_is_missing_in_rows_that_do_not_count(self, torch):
        X, y, z = make_rows(500)
        weight = np.arange(500) % 2
        with pytest.raises(ValueError, match="column 1 of X contains NaN"):
            FairClassifier().fit(
                torch.as_tensor(with_value(X, np.nan)),
                y,
                sensitive_features=z,
                sample_weight=weight,
            )

    @pytest.mark.parametrize("change", ["bfloat16", "half", "to_sparse", "to_sparse_csr"])
    @pytest.mark.filterwarnings("ignore:Sparse CSR tensor support")
    def test_tensors_that_numpy_does_not_have(self, torch, change):
        X, y, z = make_rows(500)
        X = np.round(X)  # so that all of them hold it
        settings = {"max_iter": 5, "tau": 0.1}
        given = getattr(torch.as_tensor(X), change)()
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z)
        model = FairClassifier(**settings).fit(given, torch.as_tensor(y), sensitive_features=z)
        np.testing.assert_allclose(model.coef_, expected.coef_, rtol=1e-4)
        np.testing.assert_array_equal(model.predict(given), model.predict(X))

    def test_narrow_labels_groups_and_weights(self, torch):
        X, y, z = map(torch.as_tensor, make_rows(500))
        model = FairClassifier(max_iter=5, tau=0.1).fit(
            X,
            y.bfloat16(),
            sensitive_features=z.bfloat16(),
            sample_weight=torch.ones(500, dtype=torch.bfloat16),
        )
        assert model.classes_.tolist() == model.groups_.tolist() == [0, 1]

    @pytest.mark.parametrize("device", ["cuda:99", "nonsense", "meta"])
    @pytest.mark.parametrize("tensor", [True, False])
    def test_devices_that_are_not_there(self, torch, device, tensor):
        X, y, z = make_rows(100)
        model = FairClassifier(engine="torch", device=device)
        with pytest.raises(ValueError, match=f"device='{device}' cannot be used"):
            model.fit(torch.as_tensor(X) if tensor else X, y, sensitive_features=z)

    def test_splitters(self, torch):
        X, y, z = make_rows(500)
        settings = {
            "confidence": None,
            "selection": "crossfit",
            "cv": KFold(3),
            "max_iter": 5,
            "tau": 0.1,
        }
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z)
        model = FairClassifier(**settings).fit(torch.as_tensor(X), y, sensitive_features=z)
        np.testing.assert_allclose(model.held_out_.rate, expected.held_out_.rate)

    def test_arrays_that_cannot_be_written_to(self, torch, monkeypatch):
        """PyTorch warns of them once in a process; here it does each time."""
        as_tensor = torch.as_tensor

        def warned(values, **kwargs):
            if isinstance(values, np.ndarray) and not values.flags.writeable:
                warnings.warn("The given NumPy array is not writable, and", stacklevel=2)
            return as_tensor(values, **kwargs)

        monkeypatch.setattr(torch, "as_tensor", warned)
        X, y, z = make_rows(500)
        X.setflags(write=False)
        FairClassifier(max_iter=5, tau=0.1, engine="torch").fit(X, y, sensitive_features=z)

    def test_numpy_takes_tensors(self, torch, monkeypatch):
        from evenhand.engines import torch as torch_rows

        monkeypatch.setattr(torch_rows, "TorchRows", None)
        X, y, z = make_rows(500)
        settings = {"max_iter": 5, "tau": 0.1}
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z)
        model = FairClassifier(engine="numpy", **settings)
        model.fit(*map(torch.as_tensor, (X, y)), sensitive_features=torch.as_tensor(z))
        np.testing.assert_array_equal(model.coef_, expected.coef_)

    def test_score(self, torch, device):
        X, y, z = make_rows(500)
        weight = np.random.default_rng(0).random(500)
        model = FairClassifier(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
        tensors = [torch.as_tensor(v, dtype=torch.float64, device=device) for v in (X, y, weight)]
        found = model.score(*(v.requires_grad_() for v in tensors))
        assert found == pytest.approx(model.score(X, y, weight))
        assert model.score(X, y[:, None]) == model.score(X, y)
        with pytest.raises(ValueError, match="inconsistent numbers"):
            model.score(X, y[:-1])

    def test_another_number_of_columns(self, torch):
        X, y, z = make_rows(500)
        model = FairClassifier(max_iter=5, tau=0.1).fit(torch.as_tensor(X), y, sensitive_features=z)
        with pytest.raises(ValueError, match="features"):
            model.predict(torch.as_tensor(X[:, :3]))


def test_without_torch(monkeypatch):
    monkeypatch.setitem(sys.modules, "torch", None)
    X, y, z = make_rows(100)
    with pytest.raises(ImportError, match=r"evenhand\[torch\]"):
        FairClassifier(engine="torch").fit(X, y, sensitive_features=z)


@numba
class TestCompiled:
    @pytest.mark.parametrize("layout", ["dense", "csr"])
    @pytest.mark.parametrize("dtype", [np.float64, np.float32])
    @pytest.mark.parametrize(
        "notion", ["statistical_parity", "equalized_odds", "equal_opportunity"]
    )
    def test_sums(self, layout, dtype, notion, point):
        X, y, z = make_rows(1037, groups=3, dtype=dtype)
        X[np.abs(X) < 0.3] = 0
        rng = np.random.default_rng(0)
        recodes = (None, (np.array([1.0, 0, 1, 0, 0, 1]), np.array([0.5, 1, 1e-6, 2, 1, 1])))
        tables = (None, rng.random(len(y)) + 0.1), (None, rng.random(len(y))), recodes, (1, 2, 3)
        for weight, extra, recode, degree in itertools.product(*tables):
            plain, compiled = (
                make_oracle(
                    as_layout(X, layout),
                    y,
                    z,
                    notion=find_notion(notion, degree),
                    n_groups=2,
                    sample_weight=weight,
                    extra=extra,
                    limits=limits,
                )
                for limits in (NEVER, ALWAYS)
            )
            plain.recode = compiled.recode = recode
            w, u = point(plain)
            expected = plain.evaluate(w, u, 1.3)
            found = compiled.evaluate(w, u, 1.3)
            assert_same_moments(found, expected, 1e-12 if dtype == np.float64 else 1e-5)
            with cores():
                shared = compiled.evaluate(w, u, 1.3)
            for a, b in zip(found, shared, strict=True):
                np.testing.assert_array_equal(a, b)

    def test_scores_without_bounds(self):
        """Certain answers, far beyond what an exponential can hold."""
        X, y, z = make_rows(500)
        w, u = np.ones(7), np.array([1.0, 900.0, -900.0])
        expected, found = (
            make_oracle(
                X * 1e4, y, z, notion=NOTIONS["statistical_parity"](2), limits=limits
            ).evaluate(w, u, 1.0)
            for limits in (NEVER, ALWAYS)
        )
        assert np.isfinite(expected.loss_c)
        assert_same_moments(found, expected, 1e-12)

    @pytest.mark.parametrize(
        "notion",
        [
            "statistical_parity",
            "equalized_odds",
            "false_discovery",
            "false_negative_parity",
            ["statistical_parity", "equal_opportunity"],
        ],
        ids=str,
    )
    @pytest.mark.parametrize("groups", [2, 4])
    @pytest.mark.parametrize("min_share", [0.01, 0.2])
    def test_frontiers(self, notion, groups, min_share):
        X, y, z = make_rows(700, groups=groups)
        X = np.round(X, 1)  # equal scores as well
        tau = [0.9, 0.6] if isinstance(notion, list) else 0.8
        rng = np.random.default_rng(0)
        for weight in (None, rng.random(len(y)) + 0.5, rng.integers(1, 5, len(y)) / 3):
            oracle = make_oracle(X, y, z, notion=find_notion(notion, 2, tau), sample_weight=weight)
            W = np.random.default_rng(1).standard_normal((12, 7))
            expected = sweep(oracle, W, min_share=min_share, limits=NEVER)
            found = sweep(oracle, W, min_share=min_share, limits=ALWAYS)
            for one, other in ((found, expected), (found.wary, expected.wary)):
                for name in ("iterate", "rate", "accuracy", "counts", "cut"):
                    np.testing.assert_allclose(
                        getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12
                    )


class TestHistograms:
    """Above ``Limits.exact_rows`` rows cuts are those of a histogram."""

    limits = Limits(exact_rows=1000)

    @pytest.mark.parametrize("labels", [2, 3])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_counts_are_those_of_the_cuts(self, labels, weighted):
        X, y, z = make_rows(20_000, groups=3, labels=labels)
        weight = np.random.default_rng(0).random(len(y)) if weighted else None
        notion = NOTIONS["statistical_parity"](2)
        notion = notion if labels == 2 else of_labels(notion, [0, 1], 3)
        oracle = make_oracle(
            X, y, z, notion=notion, n_labels=labels, n_groups=2, sample_weight=weight
        )
        W = np.random.default_rng(1).standard_normal((5, oracle.n_weights))
        front = sweep(oracle, W, labels=range(labels), limits=self.limits)
        assert len(front) > 10
        for i in range(0, len(front), 7):
            w = W[front.iterate[i]].reshape(-1, 7)
            scores = X @ w[:, :-1].T + w[:, -1]
            cut = front.cut[i]
            answer = scores[:, 0] > cut if labels == 2 else (scores - cut).argmax(axis=1)
            place = (z * labels + y) * labels + answer
            counts = np.bincount(place, weights=weight, minlength=3 * labels**2)
            np.testing.assert_allclose(front.counts[i].ravel(), counts)

    def test_scores_far_away(self):
        """A few rows a thousand times as far as the others leave these as many cuts."""
        X, y, z = make_rows(20_000)
        X[:20, 0] = 1e4
        accuracy = []
        w = np.array([[0.3, 0.6, 0.2, -0.2, -0.6, -1.0, 0.0]])
        for limits, dtype in ((LIMITS, float), (LIMITS, np.float32), (self.limits, float)):
            oracle = make_oracle(X.astype(dtype), y, z, notion=NOTIONS["statistical_parity"](2))
            front = sweep(oracle, w, limits=limits)
            accuracy.append(front.accuracy.max())
        np.testing.assert_allclose(accuracy, accuracy[0], atol=1e-3)

    def test_close_to_every_cut(self):
        X, y, z = make_rows(40_000)
        oracle = make_oracle(X, y, z, notion=NOTIONS["statistical_parity"](2))
        W = np.random.default_rng(1).standard_normal((5, 7)) * 0.3 + [1, -0.6, 0.2, 0, -0.5, -1, 0]
        exact, few = sweep(oracle, W), sweep(oracle, W, limits=self.limits)
        for tau in (0.5, 0.7, 0.8, 0.9):
            a, b = exact.select(tau), few.select(tau)
            assert b.feasible == a.feasible
            assert b.accuracy == pytest.approx(a.accuracy, abs=1e-3)

    def test_few_distinct_scores(self):
        X, y, z = make_rows(5000)
        X = (X > 0).astype(float)
        oracle = make_oracle(X, y, z, notion=NOTIONS["statistical_parity"](2))
        w = np.array([[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, -31.5]])
        front = sweep(oracle, w, min_share=0.0, limits=self.limits)
        scores = X @ w[0, :-1] + w[0, -1]
        for cut, counts in zip(front.cut, front.counts, strict=True):
            assert np.abs(scores - cut).min() > 1e-3  # between two scores, not at one
            np.testing.assert_array_equal(counts[..., 1].sum(), (scores > cut).sum())

    def test_a_fit(self):
        X, y, z = make_rows(MANY)
        model = FairClassifier(tau=0.8, max_iter=20).fit(X, y, sensitive_features=z)
        assert model.feasible_
        assert model.score(X, y) == pytest.approx(model.accuracy_, abs=1e-9)

    @pytest.mark.parametrize("engine", ["memory", "torch", "dask"])
    def test_few_kinds_of_rows(self, engine):
        """All cuts between scores that the sample has, however few."""
        rng = np.random.default_rng(0)
        n = 70_000
        z = rng.integers(2, size=n)
        X = np.column_stack([rng.random(n) < 0.4 + 0.1 * z, rng.random(n) < 0.5]).astype(float)
        y = (X.sum(axis=1) + rng.standard_normal(n) > 1).astype(int)
        expected = FairClassifier(max_iter=10).fit(X, y, sensitive_features=z)
        assert expected.feasible_
        if engine == "memory":
            X = X + 1e-9 * rng.random(X.shape)  # so that none are merged
        elif engine == "torch":
            X = pytest.importorskip("torch").as_tensor(X)
        else:
            X = pytest.importorskip("dask.array").from_array(X, chunks=(20_000, -1))
        model = FairClassifier(max_iter=10).fit(X, y, sensitive_features=z)
        assert model.feasible_
        assert model.accuracy_ == pytest.approx(expected.accuracy_, abs=1e-6)


class TestShares:
    def test_every_row_is_in_one_fold(self):
        folds = [Share(5, low, low + 0.25, True).of(0, 10_000) for low in (0, 0.25, 0.5, 0.75)]
        np.testing.assert_array_equal(np.sum(folds, axis=0), 1)
        assert all(abs(fold.mean() - 0.25) < 0.02 for fold in folds)

    def test_parts_agree_with_the_whole(self):
        share = Share(5, 0.1, 0.4, False)
        parts = [share.of(0, 600), share.of(600, 400)]
        np.testing.assert_array_equal(np.concatenate(parts), share.of(0, 1000))

    def test_seeds_differ(self):
        a, b = (Share(seed, 0, 0.5, True).of(0, 10_000) for seed in (1, 2))
        assert 0.4 < (a == b).mean() < 0.6

    def test_taken_rows(self):
        X, y, z = make_rows(5000)
        rows, share = MemoryRows(X, as_columns(5000, y, z, n_labels=2)), Share(1, 0, 0.3, True)
        mask = share.of(0, 5000)
        taken = rows.take(share)
        np.testing.assert_array_equal(taken.collect(lambda block: block.X.T), X[mask].T)
        np.testing.assert_array_equal(taken.collect(lambda block: block.y), y[mask])


def test_rows_travel_whole():
    X, y, z = make_rows(5000)
    rows = MemoryRows(csr_matrix(X), as_columns(5000, y, z, n_labels=2), 700, start=11)
    copied = pickle.loads(pickle.dumps(rows))  # as between workers
    assert [b.start for b in copied.blocks] == [b.start for b in rows.blocks]
    oracles = [
        Oracle(r, notion=NOTIONS["statistical_parity"](2), n_groups=2) for r in (rows, copied)
    ]
    w, u = np.ones(7), np.ones(3)
    for a, b in zip(*(o.evaluate(w, u) for o in oracles), strict=True):
        np.testing.assert_array_equal(a, b)


class TestFiles:
    @pytest.fixture
    def folder(self, tmp_path):
        pytest.importorskip("pyarrow")
        X, y, z = make_rows(9000, dtype=np.float32)
        table = pd.DataFrame(X, columns=list("abcdef"))
        table["label"] = np.where(y == 1, "true", "false")
        table["group"] = np.where(z == 1, "g1", "g0")
        table["weight"] = 1.0 + (np.arange(9000) % 3)
        table[:5000].to_parquet(tmp_path / "1.parquet", row_group_size=1700)
        table[5000:].to_parquet(tmp_path / "2.parquet")
        return tmp_path, table

    @pytest.mark.parametrize("weight", [None, "weight"])
    def test_same_as_in_memory(self, folder, weight):
        path, table = folder
        settings = {"max_iter": 40, "tau": 0.7}
        inputs = list("abcdef")
        expected = FairClassifier(**settings).fit(
            table[inputs],
            table["label"],
            sensitive_features=table["group"],
            sample_weight=None if weight is None else table[weight],
        )
        for where in (path, str(path / "*.parquet"), [path / "1.parquet", path / "2.parquet"]):
            model = FairClassifier(**settings).fit_parquet(
                where,
                label="label",
                sensitive_features="group",
                columns=inputs,
                sample_weight=weight,
            )
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-4)
            assert model.rate_ == pytest.approx(expected.rate_, abs=2e-3)
        assert model.feature_names_in_.tolist() == inputs
        assert (model.predict(table[inputs]) == expected.predict(table[inputs])).mean() > 0.999

    def test_inputs_are_read_once_a_pass(self, folder, monkeypatch):
        from evenhand.engines.parquet import RowGroup

        path, _ = folder
        reads = []
        read = RowGroup.inputs
        monkeypatch.setattr(RowGroup, "inputs", lambda self: reads.append(1) or read(self))
        model = FairClassifier(max_iter=10, tau=0.1).fit_parquet(
            path, label="label", sensitive_features="group", columns=list("abcdef")
        )
        passes = model.trajectory_.to_frame()["evaluations"].iloc[-1]
        assert len(reads) / 4 < passes + 60  # and some to prepare, and to sweep

    @pytest.mark.parametrize("selection", ["holdout", "certified", "crossfit"])
    def test_selections(self, folder, selection):
        path, table = folder
        model = FairClassifier(**REGIMES[selection], tau=0.4, max_iter=10, cv=2, random_state=0)
        model.fit_parquet(path, label="label", sensitive_features="group", columns=list("abc"))
        held = table.shape[0] if selection == "crossfit" else table.shape[0] / 2
        assert model.held_out_.n_rows == pytest.approx(held, rel=0.1)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"label": "lable"}, "1.parquet has no column 'lable'"),
            ({"columns": None, "label": "a"}, r"column 'label' of 1.parquet holds"),
            ({"path": "nowhere/*.parquet"}, "no Parquet file is at 'nowhere"),
        ],
    )
    def test_bad_input(self, folder, change, message):
        options = {"label": "label", "sensitive_features": "group", "columns": ["a", "b"]} | change
        with pytest.raises((ValueError, FileNotFoundError), match=message):
            FairClassifier().fit_parquet(options.pop("path", folder[0]), **options)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"columns": ["a", "label"]}, "column 'label' is the label, sensitive"),
            ({"columns": ["a", "a"]}, "names 'a' twice"),
            ({"columns": []}, "no column left"),
            ({"columns": "ab"}, "give a list of names"),
            ({"sensitive_features": []}, "sensitive_features is empty"),
            ({"sensitive_features": "label"}, "is the label and sensitive"),
        ],
    )
    def test_what_is_no_input(self, folder, change, message):
        options = {"label": "label", "sensitive_features": "group", "columns": ["a", "b"]} | change
        with pytest.raises(ValueError, match=message):
            FairClassifier().fit_parquet(folder[0], **options)

    def test_files_that_are_none(self, folder):
        path, table = folder
        options = {"label": "label", "sensitive_features": "group", "columns": ["a"]}
        (path / "2.parquet").write_bytes(b"PAR1")
        with pytest.raises(ValueError, match=r"2.parquet is no Parquet file"):
            FairClassifier().fit_parquet(path, **options)
        table[:0].to_parquet(path / "1.parquet")
        with pytest.raises(ValueError, match="no rows"):
            FairClassifier().fit_parquet(path / "1.parquet", **options)

    def test_an_index_is_no_input(self, folder):
        path, table = folder
        table = table.drop(columns="weight")
        table["label"] = table["label"] == "true"
        table[table["a"] > 0].to_parquet(path / "1.parquet")
        model = FairClassifier(max_iter=5, tau=0.1).fit_parquet(
            path / "1.parquet", label="label", sensitive_features="group"
        )
        assert model.feature_names_in_.tolist() == list("abcdef")

    def test_what_needs_the_table_is_refused(self, folder):
        for settings in (
            {"bins": 3},
            {"extra_column": "noise"},
            {"device": "cpu"},
            {"engine": "torch"},
            {"engine": "dask"},
        ):
            with pytest.raises(ValueError, match=r"in memory|not for a table in files"):
                FairClassifier(**settings).fit_parquet(
                    folder[0], label="label", sensitive_features="group", columns=["a"]
                )

    def test_missing_numbers(self, folder):
        path, table = folder
        table.loc[8000, "c"] = np.nan
        table[5000:].to_parquet(path / "2.parquet")
        with pytest.raises(ValueError, match="column 'c' of X contains NaN or infinite"):
            FairClassifier().fit_parquet(
                path, label="label", sensitive_features="group", columns=list("abc")
            )

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: t.assign(b="x"), r"column 'b' of 2.parquet holds .*string, not numbers"),
            (lambda t: t.assign(weight="1"), r"column 'weight' of 2.parquet holds .*string, not"),
            (lambda t: t.assign(label=1), r"'label' holds text in 1.parquet and numbers in 2"),
            (lambda t: t.assign(group=True), r"'group' holds text in 1.parquet and booleans in 2"),
            (lambda t: t.assign(weight=-1.0), "sample_weight must be finite and not negative"),
        ],
    )
    def test_files_that_differ(self, folder, change, message):
        path, table = folder
        change(table[5000:]).to_parquet(path / "2.parquet")
        with pytest.raises(ValueError, match=message):
            FairClassifier().fit_parquet(
                path,
                label="label",
                sensitive_features="group",
                columns=["a", "b"],
                sample_weight="weight",
            )

    def test_columns_of_one_name(self, folder):
        import pyarrow as pa
        import pyarrow.parquet as pq

        path, table = folder
        table = pa.Table.from_pandas(table[5000:], preserve_index=False)
        pq.write_table(table.append_column("a", table["a"]), path / "2.parquet")
        options = {"label": "label", "sensitive_features": "group"}
        with pytest.raises(ValueError, match=r"2.parquet has two columns called 'a'"):
            FairClassifier().fit_parquet(path, columns=["a", "b"], **options)

    def test_files_without_rows(self, folder):
        path, table = folder
        table[:0].assign(label=None).to_parquet(path / "0.parquet")
        model = FairClassifier(max_iter=5, tau=0.1).fit_parquet(
            path, label="label", sensitive_features="group", columns=["a", "b"]
        )
        assert model.classes_.tolist() == ["false", "true"]

    def test_folders_that_name_values(self, folder):
        path, table = folder
        table.to_parquet(path / "parted", partition_cols=["group"])
        with pytest.raises(FileNotFoundError, match=r"in folders such as 'group=g0'"):
            FairClassifier().fit_parquet(
                path / "parted", label="label", sensitive_features="group", columns=["a"]
            )

    def test_memory_maps(self, tmp_path):
        X, y, z = make_rows(9000, dtype=np.float32)
        X.tofile(tmp_path / "x.bin")
        mapped = np.memmap(tmp_path / "x.bin", dtype=np.float32, mode="r", shape=X.shape)
        a, b = (
            FairClassifier(max_iter=20, tau=0.5).fit(v, y, sensitive_features=z)
            for v in (X, mapped)
        )
        np.testing.assert_array_equal(a.coef_, b.coef_)


class TestDask:
    @pytest.fixture(autouse=True)
    def dask(self):
        dask = pytest.importorskip("dask")
        pytest.importorskip("distributed")
        with dask.config.set(scheduler="synchronous"):
            yield dask

    def test_names_do_not_depend_on_partitions(self):
        """A category that does not occur is no label; commas of one partition change no name."""
        import dask.dataframe as dd

        X, y, z = make_rows(300)
        frame = pd.DataFrame(X, columns=list("abcdef")).assign(
            y=pd.Categorical.from_codes(y, ["no", "yes", "maybe"]),
            sex=np.where(z, "m", "f"),
            town=np.where(np.arange(300) < 20, "York, UK", "Rome"),
        )
        lazy = dd.from_pandas(frame, npartitions=3)
        model = FairClassifier(max_iter=3, tau=0.1, pos_label="yes")
        for table in (frame, lazy):
            model.fit(table[list("abcdef")], table["y"], sensitive_features=table[["sex", "town"]])
            assert model.classes_.tolist() == ["no", "yes"]
            assert model.groups_.tolist() == ["f & Rome", "m & Rome"]
            assert set(model.small_groups_) == {"f & York, UK", "m & York, UK"}

    @pytest.mark.parametrize(
        "settings", [{}, {"group_cuts": True}, {"notion": "equalized_odds"}, {"cut": False}]
    )
    @pytest.mark.parametrize("exact", [True, False])
    def test_arrays(self, settings, exact):
        import dask.array as da

        n = 2000 if exact else MANY
        X, y, z = make_rows(n)
        settings = {"max_iter": 15, "tau": 0.5, **settings}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)
            expected = FairClassifier(**settings).fit(X, y, sensitive_features=z)
            lazy = [da.from_array(v, chunks=(n // 3, *v.shape[1:])) for v in (X, y, z)]
            model = FairClassifier(**settings).fit(*lazy[:2], sensitive_features=lazy[2])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
        np.testing.assert_allclose(model.frontier_.rate, expected.frontier_.rate)
        groups = {"sensitive_features": lazy[2]} if settings.get("group_cuts") else {}
        for method in ("predict", "predict_proba", "decision_function"):
            result = getattr(model, method)(lazy[0], **groups)
            assert isinstance(result, da.Array)
            known = {"sensitive_features": z} if groups else {}
            np.testing.assert_allclose(result.compute(), getattr(model, method)(X, **known))

    def test_frames(self, tmp_path):
        import dask.dataframe as dd

        X, y, z = make_rows(4000)
        table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, z=np.array(["f", "m"])[z])
        for i in range(3):
            table[i::3].to_parquet(tmp_path / f"{i}.parquet")
        frame = dd.read_parquet(tmp_path)
        inputs = list("abcdef")
        settings = {"max_iter": 20, "tau": 0.5}
        model = FairClassifier(**settings).fit(
            frame[inputs], frame["y"], sensitive_features=frame["z"]
        )
        table = pd.concat([table[i::3] for i in range(3)])
        expected = FairClassifier(**settings).fit(
            table[inputs], table["y"], sensitive_features=table["z"]
        )
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.feature_names_in_.tolist() == inputs
        assert (model.predict(frame[inputs]).compute() == expected.predict(table[inputs])).all()

    def test_other_columns_in_memory_and_other_chunks(self):
        import dask.array as da

        X, y, z = make_rows(3000)
        weight = np.random.default_rng(0).random(3000)
        settings = {"max_iter": 20, "tau": 0.5}
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        model = FairClassifier(**settings).fit(
            da.from_array(X, chunks=(700, 2)),
            da.from_array(y, chunks=1100),
            sensitive_features=np.array(["f", "m"])[z],
            sample_weight=weight,
        )
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.groups_.tolist() == ["f", "m"]

    @pytest.mark.parametrize("selection", ["holdout", "certified", "crossfit"])
    def test_selections_are_those_of_files(self, selection, tmp_path):
        """Rows are drawn by their numbers, whoever has them."""
        import dask.array as da

        X, y, z = make_rows(6000)
        settings = {**REGIMES[selection], "tau": 0.4, "max_iter": 10, "cv": 2, "random_state": 0}
        model = FairClassifier(**settings).fit(
            da.from_array(X, chunks=(1000, -1)), y, sensitive_features=z
        )
        table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, z=z)
        table.to_parquet(tmp_path / "t.parquet", row_group_size=2500)
        other = FairClassifier(**settings).fit_parquet(tmp_path, label="y", sensitive_features="z")
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-7)
        assert model.held_out_.n_rows == other.held_out_.n_rows

    def test_frames_are_paired_by_position(self, tmp_path):
        """Also if labels are in other files, and every file's index begins at 0."""
        import dask.dataframe as dd

        X, y, z = make_rows(4000)
        table = pd.DataFrame(X, columns=list("abcdef"))
        for name in ("x", "y"):
            (tmp_path / name).mkdir()
        for i in range(4):
            part = slice(1000 * i, 1000 * (i + 1))
            table[part].reset_index(drop=True).to_parquet(tmp_path / "x" / f"{i}.parquet")
            other = pd.DataFrame({"y": y[part], "z": z[part]})
            other.to_parquet(tmp_path / "y" / f"{i}.parquet")
        settings = {"max_iter": 10, "tau": 0.5}
        expected = FairClassifier(**settings).fit(table, y, sensitive_features=z)
        inputs, others = dd.read_parquet(tmp_path / "x"), dd.read_parquet(tmp_path / "y")
        model = FairClassifier(**settings).fit(inputs, others["y"], sensitive_features=others["z"])
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)

    def test_rows_of_weight_0_do_not_count(self):
        import dask.array as da

        X, y, z = make_rows(3000, groups=3)
        lazy = da.from_array(X, chunks=(1000, -1))
        weight = np.where(z == 2, 0.0, 1.0 + np.arange(3000) % 2)
        settings = {"max_iter": 10, "tau": 0.5}
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        model = FairClassifier(**settings).fit(lazy, y, sensitive_features=z, sample_weight=weight)
        assert model.groups_.tolist() == expected.groups_.tolist() == [0, 1]
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        np.testing.assert_allclose(model.intercept_, expected.intercept_, atol=1e-7)
        with pytest.raises(ValueError, match="one class"):
            FairClassifier().fit(lazy, y, sensitive_features=z, sample_weight=1.0 * (y == 0))

    @pytest.mark.parametrize(
        ("n", "settings", "message"),
        [
            (
                3000,
                {**REGIMES["holdout"]},
                "no row with label 1 is left to fit to",
            ),
            (
                20,
                {**REGIMES["holdout"], "holdout": 0.001},
                "no row is left to hold out",
            ),
            (
                60,
                {**REGIMES["crossfit"], "cv": 100},
                "no row is left to hold out",
            ),
        ],
    )
    def test_splits_that_leave_nothing(self, n, settings, message):
        import dask.array as da

        X, y, z = make_rows(n)
        if n == 3000:
            held = Share(int(np.random.RandomState(0).randint(2**31 - 1)), 0, 0.5, True)
            y = np.where(held.of(0, n), y, 0)
        with pytest.raises(ValueError, match=message):
            FairClassifier(random_state=0, **settings).fit(
                da.from_array(X, chunks=(10, -1) if n < 100 else (1000, -1)),
                y,
                sensitive_features=z,
            )

    @pytest.mark.parametrize(
        ("settings", "change", "message"),
        [
            ({}, lambda X, y, z: (X, y[:-1], z), "y has 2999 rows, X has 3000"),
            ({}, lambda X, y, z: (X, y, z[:-1]), "sensitive_features has 2999 rows"),
            ({}, lambda X, y, z: (X, y, None), "the groups are missing"),
            (
                {},
                lambda X, y, z: (X, y, ["f", "m", np.nan] * 1000),
                "sensitive_features has .* missing values",
            ),
            ({}, lambda X, y, z: (X, None, z), "requires y to be passed"),
            ({}, lambda X, y, z: (X, np.c_[y, y], z), "y has 2 dimensions"),
            ({}, lambda X, y, z: (X * np.nan, y, z), "column 0 of X contains NaN or infinite"),
            ({}, lambda X, y, z: (X * 1e100, y, z), "column 0 of X has values .* in float64"),
            ({}, lambda X, y, z: (X * 1j, y, z), "column 0 of X holds .* no real number"),
            ({}, lambda X, y, z: (X[:, 0], y, z), "X has 1 dimensions"),
            ({}, lambda X, y, z: (X[:, :, None], y, z), "X has 3 dimensions"),
            ({}, lambda X, y, z: (X[:, :0], y, z), "X has no columns"),
            ({}, lambda X, y, z: (X[:0], y[:0], z[:0]), "X has no rows"),
            ({}, lambda X, y, z: (X, y * 0, z), "y has one class"),
            (
                {},
                lambda X, y, z: (X, np.array([1, "1", 0] * 1000, object), z),
                "y mixes types .*int, str",
            ),
            ({"bins": 3}, lambda X, y, z: (X, y, z), "bins=3 is for tables in memory"),
            ({"device": "cpu"}, lambda X, y, z: (X, y, z), "device='cpu' is for tables in memory"),
            ({"engine": "numpy"}, lambda X, y, z: (X, y, z), "not for a Dask collection"),
        ],
    )
    def test_bad_input(self, settings, change, message):
        import dask.array as da

        X, y, z = make_rows(3000)
        X, y, z = change(da.from_array(X, chunks=(1000, -1)), y, z)
        with pytest.raises(ValueError, match=message):
            FairClassifier(**settings).fit(X, y, sensitive_features=z)

    @pytest.mark.parametrize(
        ("weight", "message"),
        [
            (np.ones((3000, 1)), "sample_weight has 2 dimensions"),
            (np.ones(2999), "sample_weight has 2999 rows, X has 3000"),
            (np.full(3000, "x"), "sample_weight holds 'x', which is no real number"),
            (np.full(3000, -1.0), "sample_weight must be finite and not negative"),
            (np.zeros(3000), "sample_weight is zero for every row"),
        ],
    )
    def test_bad_weights(self, weight, message):
        import dask.array as da

        X, y, z = make_rows(3000)
        X = da.from_array(X, chunks=(1000, -1))
        for given in (weight, da.from_array(weight, chunks=1000)):
            with pytest.raises(ValueError, match=message):
                FairClassifier().fit(X, y, sensitive_features=z, sample_weight=given)

    @pytest.mark.parametrize(
        ("change", "message"),
        [
            (lambda t: t.assign(b=np.nan), "column 'b' of X contains NaN"),
            (lambda t: t.assign(b=pd.array([1, pd.NA] * 250, "Int64")), "column 'b' .* NaN"),
            (lambda t: t.assign(b="x"), "column 'b' of X holds 'x', which is no real number"),
            (lambda t: t.assign(b=pd.Timestamp("2020")), "column 'b' of X holds '2020"),
            (lambda t: t["a"], "X has 1 dimensions"),
            (lambda t: t.rename(columns={"a": 0}), "all input features have string names"),
        ],
    )
    def test_bad_frames(self, change, message):
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        table = change(pd.DataFrame(X, columns=list("abcdef")))
        with pytest.raises((TypeError, ValueError), match=message):
            FairClassifier().fit(
                dd.from_pandas(table, npartitions=2, sort=False), y, sensitive_features=z
            )

    def test_columns_called_by_numbers(self):
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        table = pd.DataFrame(X, columns=list("abcdef"))
        model = FairClassifier(max_iter=5, tau=0.1)
        for names, known in ((list("abcdef"), True), (range(6), False)):
            frame = dd.from_pandas(table.set_axis(names, axis=1), npartitions=2)
            model.fit(frame, y, sensitive_features=z)
            assert hasattr(model, "feature_names_in_") == known

    def test_what_is_missing_in_rows_that_do_not_count(self):
        import dask.array as da

        X, y, z = make_rows(500)
        weight = np.arange(500) % 2
        lazy = da.from_array(with_value(X, np.nan), chunks=(250, -1))
        with pytest.raises(ValueError, match="column 1 of X contains NaN"):
            FairClassifier().fit(lazy, y, sensitive_features=z, sample_weight=weight)

    @pytest.mark.parametrize("make", [coo_matrix, csc_matrix, csr_matrix])
    def test_sparse_blocks(self, make):
        import dask.array as da

        X, y, z = make_rows(500)
        weight = np.arange(500) % 2
        settings = {"max_iter": 5, "tau": 0.1}
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z, sample_weight=weight)
        blocks = da.from_array(X, chunks=(250, -1)).map_blocks(make, dtype=float)
        model = FairClassifier(**settings)
        model.fit(blocks, y, sensitive_features=z, sample_weight=weight)
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert model.score(blocks, y) == expected.score(X, y)

    def test_a_column_of_labels_and_one_weight_for_all(self):
        import dask.array as da
        import dask.dataframe as dd

        X, y, z = make_rows(500)
        lazy = da.from_array(X, chunks=(250, -1))
        labels = dd.from_pandas(pd.DataFrame({"y": y}), npartitions=2)
        settings = {"max_iter": 5, "tau": 0.1}
        expected = FairClassifier(**settings).fit(X, y, sensitive_features=z, sample_weight=2)
        for given in (y[:, None], da.from_array(y[:, None], chunks=(250, 1)), labels):
            with pytest.warns(DataConversionWarning, match="column-vector"):
                model = FairClassifier(**settings).fit(
                    lazy, given, sensitive_features=z, sample_weight=2
                )
            np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)

    def test_score(self, monkeypatch):
        import dask.array as da
        import dask.dataframe as dd

        from evenhand.engines import dask as dask_rows

        X, y, z = make_rows(600)
        weight = np.random.default_rng(0).random(600)
        settings = {"max_iter": 5, "tau": 0.1, "group_cuts": True}
        model = FairClassifier(**settings).fit(X, y, sensitive_features=z)
        expected = model.score(X, y, weight, sensitive_features=z)
        frame = dd.from_pandas(pd.DataFrame(X).assign(y=y, z=z, w=weight), npartitions=3)
        frame = dd.concat([frame, frame[frame["y"] > 1]])  # and partitions without rows
        arrays = [da.from_array(v, chunks=(250, *v.shape[1:])) for v in (X, y, weight, z)]
        frames = [frame[list(range(6))], frame["y"], frame["w"], frame["z"]]
        compute, sizes = dask_rows.compute, []

        def spied(*args, **kwargs):
            found = compute(*args, **kwargs)
            sizes.extend(map(np.size, found))
            return found

        monkeypatch.setattr(dask_rows, "compute", spied)
        for table in (arrays, frames, [arrays[0], y, weight, z]):
            found = model.score(*table[:3], sensitive_features=table[3])
            assert found == pytest.approx(expected)
        assert max(sizes) == 2
        assert len(model.predict(frames[0], sensitive_features=frames[3]).compute()) == 600
        with pytest.raises(ValueError, match="y has 599 rows, X has 600"):
            model.score(arrays[0], y[:-1], sensitive_features=z)
        with pytest.raises(ValueError, match="zero for every row"):
            model.score(arrays[0], y, 0 * weight, sensitive_features=z)

    def test_groups_that_predictions_need(self):
        import dask.array as da
        import dask.dataframe as dd

        X, y, z = make_rows(600)
        lazy = da.from_array(X, chunks=(200, -1))
        model = FairClassifier(max_iter=5, tau=0.1, group_cuts=True)
        with pytest.raises(NotFittedError):
            model.predict(lazy)
        model.fit(X, y, sensitive_features=z)
        for method in ("predict", "predict_proba", "decision_function"):
            with pytest.raises(ValueError, match="needs the group of each row"):
                getattr(model, method)(lazy)
        with pytest.raises(ValueError, match="needs the group of each row"):
            model.score(lazy, y)
        other = dd.from_pandas(pd.Series(z), npartitions=2)
        with pytest.raises(ValueError, match="sensitive_features has 2 partitions, X has 3"):
            model.predict(lazy, sensitive_features=other)
        with pytest.raises(ValueError, match="sensitive_features has 599 rows, X has 600"):
            model.predict(lazy, sensitive_features=z[1:])

    def test_averages(self):
        """What is drawn depends on the rows, not on how they are parted."""
        import dask.array as da

        X, y, z = make_rows(3000)
        model = FairClassifier(max_iter=20, tau=0.9, random_state=0)
        mixed = model.fit(X, y, sensitive_features=z).averaged()
        assert len(mixed.weights_) > 1
        lazy = [da.from_array(X, chunks=(n, -1)) for n in (1000, 700)]
        for method in ("predict", "predict_proba"):
            a, b = (getattr(mixed, method)(v) for v in lazy)
            assert isinstance(a, da.Array)
            assert a.shape == getattr(mixed, method)(X).shape
            np.testing.assert_array_equal(a.compute(), b.compute())
        np.testing.assert_array_equal(a.compute(), mixed.predict_proba(X))
        share = mixed.predict_proba(X)[:, 1]
        found = mixed.predict(lazy[0]).compute()
        np.testing.assert_array_equal(found[share == 0], 0)
        np.testing.assert_array_equal(found[share == 1], 1)
        assert found.mean() == pytest.approx(share.mean(), abs=0.02)

    def test_arrays_in_memory_are_refused(self):
        X, y, z = make_rows(300)
        with pytest.raises(ValueError, match="X is none"):
            FairClassifier(engine="dask").fit(X, y, sensitive_features=z)


@pytest.mark.slow
class TestCluster:
    """A real scheduler with two worker processes on loopback."""

    @pytest.fixture(scope="class")
    def client(self):
        pytest.importorskip("dask")
        distributed = pytest.importorskip("distributed")
        cluster = distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None
        )
        with cluster, distributed.Client(cluster) as client:
            yield client

    @pytest.fixture
    def table(self, client):
        import dask.array as da

        X, y, z = make_rows(80_000)
        return [da.from_array(v, chunks=(10_000, *v.shape[1:])) for v in (X, y, z)], (X, y, z)

    def test_same_model_and_nothing_long_comes_home(self, client, table, monkeypatch):
        from evenhand.engines import dask as dask_rows

        (X, y, z), arrays = table
        sizes = []
        compute = dask_rows.compute

        def spied(*args, **kwargs):
            found = compute(*args, **kwargs)
            sizes.append(len(pickle.dumps(found)))
            return found

        monkeypatch.setattr(dask_rows, "compute", spied)
        model = FairClassifier(max_iter=10, tau=0.5).fit(X, y, sensitive_features=z)
        expected = FairClassifier(max_iter=10, tau=0.5).fit(
            *arrays[:2], sensitive_features=arrays[2]
        )
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)
        assert np.median(sizes) < 3000  # moments
        # The largest are histograms and the sample's scores, whatever the number of rows.
        assert max(sizes) < 8 * 16 * 8192 * 1.2

    def test_a_killed_worker_costs_time_not_the_result(self, client, table):
        import os
        import signal
        from threading import Thread

        (X, y, z), arrays = table
        expected = FairClassifier(max_iter=60, tau=0.5).fit(
            *arrays[:2], sensitive_features=arrays[2]
        )
        pid = next(iter(client.run(os.getpid).values()))
        killed = []

        def kill():
            time.sleep(1.0)
            os.kill(pid, signal.SIGKILL)
            killed.append(time.perf_counter())

        thread = Thread(target=kill)
        thread.start()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FairClassifier(max_iter=60, tau=0.5).fit(X, y, sensitive_features=z)
        done = time.perf_counter()
        thread.join()
        assert killed[0] < done
        np.testing.assert_allclose(model.coef_, expected.coef_, atol=1e-7)


class TestLikeMemory:
    """What in-memory tables give, the engines give as well."""

    @pytest.fixture(params=["torch", "dask", "parquet"])
    def fit(self, request, tmp_path):
        """Fit an engine to arrays in memory."""
        pytest.importorskip("pyarrow" if request.param == "parquet" else request.param)

        def fit(model, X, y, z, weight=None):
            if request.param == "parquet":
                table = pd.DataFrame(X, columns=list("abcdef")).assign(y=y, z=z)
                table.assign(w=weight).to_parquet(tmp_path / "t.parquet", row_group_size=700)
                return model.fit_parquet(
                    tmp_path,
                    label="y",
                    sensitive_features="z",
                    columns=list("abcdef"),
                    sample_weight=None if weight is None else "w",
                )
            if request.param == "torch":
                torch = pytest.importorskip("torch")
                torch.set_num_threads(1)
                X = torch.as_tensor(X)
            else:
                X = pytest.importorskip("dask.array").from_array(X, chunks=(700, -1))
            return model.fit(X, y, sensitive_features=z, sample_weight=weight)

        return fit

    def test_certificates_with_weights_that_are_alike(self, fit):
        X, y, z = make_rows(2000)
        settings = {"confidence": "certified", "max_iter": 5, "tau": 0.3, "random_state": 0}
        plain = fit(FairClassifier(**settings), X, y, z)
        for one in (1, 0.3):
            weighted = fit(FairClassifier(**settings), X, y, z, np.full(2000, one))
            assert weighted.guarantee_.certified
            assert weighted.guarantee_ == plain.guarantee_
        tripled = fit(FairClassifier(**settings), X, y, z, np.full(2000, 3.0)).held_out_
        np.testing.assert_array_equal(tripled.counts.sum(axis=(1, 2, 3)), tripled.n_rows)
        with pytest.raises(ValueError, match="differs from row to row"):
            fit(FairClassifier(**settings), X, y, z, 1.0 + np.arange(2000) % 2)

    def test_weighted_rows_have_no_bounds(self, fit):
        X, y, z = make_rows(2000)
        model = FairClassifier(**REGIMES["holdout"], max_iter=5, tau=0.1, random_state=0)
        assert np.isfinite(fit(model, X, y, z).held_out_.bound).any()
        assert np.isnan(fit(model, X, y, z, 1.0 + np.arange(2000) % 2).held_out_.bound).all()

    def test_types_of_labels_and_groups(self, fit, request):
        X, y, z = make_rows(2000)
        y, z = np.array(["no", "yes"])[y], np.array(["f", "m"])[z]
        model = FairClassifier(max_iter=5, tau=0.1, pos_label="yes")
        if "parquet" in request.node.name:
            y, z = pd.Series(y), pd.Series(z)  # as a file has them
        for labels in (y, y.astype(object)):
            expected = clone(model).fit(X, labels, sensitive_features=z)
            fit(model, X, labels, z)
            assert model.classes_.dtype == expected.classes_.dtype
            assert model.groups_.dtype == expected.groups_.dtype


def test_sums_are_those_of_one_block():
    """However rows are cut into blocks, and whoever adds them up."""
    X, y, z = make_rows(1000)
    columns = as_columns(1000, y, z, n_labels=2)
    notion = NOTIONS["statistical_parity"](2)
    game = make_oracle(X, y, z, notion=notion).game
    args = (np.ones(7), np.ones(3), 1.0, game, None)
    whole, parts = (MemoryRows(X, columns, n).sum(row_sums, *args) for n in (1000, 13))
    np.testing.assert_allclose(whole.x_r, parts.x_r, rtol=1e-9)
    np.testing.assert_array_equal(whole.counts, parts.counts)


@pytest.mark.parametrize("n", [500, 9000])
@pytest.mark.parametrize("read_only", [False, True])
def test_sparse_tables_stay_as_they_are(n, read_only):
    """Entries given twice are summed, out of order sorted, and neither in the user's arrays."""
    X, y, z = make_rows(n)
    X[np.abs(X) < 0.9] = 0
    once = csr_matrix(X)
    parts = np.repeat(once.data / 2, 2)[::-1], np.repeat(once.indices, 2)[::-1], once.indptr * 2
    twice = csr_matrix(tuple(v.copy() for v in parts), shape=X.shape)
    X = twice.toarray()
    before = [v.copy() for v in (twice.data, twice.indices, twice.indptr)]
    for values in (twice.data, twice.indices, twice.indptr):
        values.flags.writeable = not read_only
    model = FairClassifier(max_iter=10, tau=0.1)
    expected = model.fit(X, y, sensitive_features=z).coef_
    np.testing.assert_allclose(model.fit(twice, y, sensitive_features=z).coef_, expected, atol=1e-9)
    for values, kept in zip((twice.data, twice.indices, twice.indptr), before, strict=True):
        np.testing.assert_array_equal(values, kept)


@numba
def test_numba_that_does_not_compile(monkeypatch):
    """Its loops would be Python's."""
    from numba import config

    has_numba.cache_clear()
    monkeypatch.setattr(config, "DISABLE_JIT", 1)
    assert not has_numba()
    monkeypatch.undo()
    has_numba.cache_clear()
    assert has_numba()


@pytest.mark.parametrize("error", [ImportError, RuntimeError])
def test_without_numba(monkeypatch, error):
    """Also where it is there, but has no place for its cache or does not know this NumPy."""
    import evenhand.engines.kernels as kernels

    def fail(name):
        raise error(f"cannot cache function: no locator available for {name}")

    monkeypatch.setattr(kernels, "import_module", fail)
    kernels.has_numba.cache_clear()
    told = pytest.warns(UserWarning, match="set NUMBA_CACHE_DIR")
    with told if error is RuntimeError else nullcontext():
        assert not kernels.has_numba()
    X, y, z = make_rows(9000)
    model = FairClassifier(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
    monkeypatch.undo()
    kernels.has_numba.cache_clear()
    again = FairClassifier(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-9)


FORK = """
import os, signal, sys, threading, time
import numpy as np
from evenhand import FairClassifier
from evenhand.engines.threads import cores

rng = np.random.default_rng(0)
X, y, z = rng.standard_normal((200, 3)), rng.integers(0, 2, 200), rng.integers(0, 2, 200)
fitting, done = threading.Event(), threading.Event()

def fit():
    with cores.without_blas(), cores._lock:
        fitting.set()
        done.wait()

thread = threading.Thread(target=fit)
thread.start()
fitting.wait()
child = os.fork()
if child == 0:
    signal.alarm(60)  # ends a child that hangs
    FairClassifier(tau=0.1, max_iter=5).fit(X, y, sensitive_features=z)
    os._exit(0)
code = os.waitpid(child, 0)[1]
done.set()
thread.join()
sys.exit(code != 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there are no forks")
def test_a_fit_in_a_child_forked_while_another_thread_fits():
    command = [sys.executable, "-W", "ignore", "-c", FORK]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_locks_of_others_are_renewed_after_a_fork(monkeypatch):
    lock = SimpleNamespace(_lock=Lock())
    lock._lock.acquire()
    monkeypatch.setitem(sys.modules, "compiler", SimpleNamespace(lock=lock))
    known = (("compiler", "lock", "_lock"), ("compiler", "gone", "_lock"), ("gone", "a", "b"))
    monkeypatch.setattr(threads, "FORKED_LOCKS", known)
    type(cores)()._renew()
    assert lock._lock.acquire(blocking=False)


@pytest.mark.parametrize("error", [AttributeError, OSError, SystemError, ValueError, RuntimeError])
def test_numba_that_fails_in_any_way_is_left_out(monkeypatch, error):
    def fail(name):
        raise error("LLVM is not what it was")

    monkeypatch.setattr("evenhand.engines.kernels.import_module", fail)
    with pytest.warns(UserWarning, match="NumPy does") as told:
        assert has_numba.__wrapped__() is False
    assert len(told) == 1
    assert f"({error.__name__}: LLVM is not what it was)" in str(told[0].message)
    assert "install it again" in str(told[0].message)
