"""Cuts from histograms, of tables with more rows than every cut is tried for."""

import numpy as np
import pytest
from helpers import MANY, fair, make_rows

from evenhand.core.notions import NOTIONS, of_labels
from evenhand.engines.kernels import LIMITS, Limits
from evenhand.engines.memory import make_oracle
from evenhand.frontier.sweep import sweep


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
        model = fair(tau=0.8, max_iter=20).fit(X, y, sensitive_features=z)
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
        expected = fair(max_iter=10).fit(X, y, sensitive_features=z)
        assert expected.feasible_
        if engine == "memory":
            X = X + 1e-9 * rng.random(X.shape)  # so that none are merged
        elif engine == "torch":
            X = pytest.importorskip("torch").as_tensor(X)
        else:
            X = pytest.importorskip("dask.array").from_array(X, chunks=(20_000, -1))
        model = fair(max_iter=10).fit(X, y, sensitive_features=z)
        assert model.feasible_
        assert model.accuracy_ == pytest.approx(expected.accuracy_, abs=1e-6)
