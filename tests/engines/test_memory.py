"""Rows in memory: blocks, compiled loops, threads, and what is left without numba."""

import itertools
import os
import pickle
import subprocess
import sys
from contextlib import nullcontext
from threading import Lock
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import as_layout, assert_same_moments, fair, make_rows, warns
from scipy.sparse import csr_matrix

from evenhand.core.notions import NOTIONS, find_notion
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import penalized_sums, row_sums
from evenhand.core.rows import Share, as_columns
from evenhand.core.targets import find_target
from evenhand.engines.kernels import Limits, has_numba
from evenhand.engines.memory import MemoryRows, make_oracle
from evenhand.engines.threads import cores
from evenhand.frontier import sweep as sweeping
from evenhand.frontier.sweep import sweep

numba = pytest.mark.skipif(not has_numba(), reason="needs numba")
NEVER, ALWAYS = Limits(compiled_rows=10**9), Limits(compiled_rows=1)


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

    @pytest.mark.parametrize("layout", ["dense", "csr"])
    @pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds"])
    def test_sums_of_many_groups(self, layout, notion, point):
        X, y, z = make_rows(1037, groups=6)
        X[np.abs(X) < 0.3] = 0
        rng = np.random.default_rng(0)
        recode = (rng.integers(0, 2, 12).astype(float), rng.random(12))
        tables = (None, rng.random(len(y)) + 0.1), (None, rng.random(len(y))), (None, recode)
        for weight, extra, cells, degree in itertools.product(*tables, (1, 2)):
            about = {"notion": find_notion(notion, degree), "n_groups": 5, "extra": extra}
            plain, compiled = (
                make_oracle(
                    as_layout(X, layout), y, z, sample_weight=weight, limits=limits, **about
                )
                for limits in (NEVER, ALWAYS)
            )
            plain.recode = compiled.recode = cells
            for w, u in (point(plain), (point(plain)[0], np.zeros(plain.n_adversary))):
                expected, found = (one.evaluate(w, u, 1.3) for one in (plain, compiled))
                assert_same_moments(found, expected, 1e-12)
            prices = rng.normal(size=12)
            expected, found = (
                one.rows.sum(penalized_sums, one.weights(w), prices, 12)
                for one in (plain, compiled)
            )
            np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)

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
    @pytest.mark.parametrize(
        ("one", "both"),
        [
            ({"tau": 0.8}, {"tau": [0.9, 0.6]}),
            ({"epsilon": 0.1}, {"epsilon": [0.03, 0.1]}),
            ({"tau": 0.7, "epsilon": 0.1}, {"tau": [0.8, None], "epsilon": [None, 0.05]}),
        ],
        ids=["ratio", "difference", "mixed"],
    )
    def test_frontiers(self, notion, groups, min_share, one, both, monkeypatch):
        monkeypatch.setattr(sweeping, "APART", 1.0)  # compiled or not, caution is the same
        X, y, z = make_rows(700, groups=groups)
        X = np.round(X, 1)  # equal scores as well
        several = isinstance(notion, list)
        target = find_target(notion, **(both if several else one))
        rng = np.random.default_rng(0)
        for weight in (None, rng.random(len(y)) + 0.5, rng.integers(1, 5, len(y)) / 3):
            oracle = make_oracle(X, y, z, notion=find_notion(notion), sample_weight=weight)
            W = np.random.default_rng(1).standard_normal((12, 7))
            expected = sweep(oracle, W, target, min_share=min_share, limits=NEVER)
            found = sweep(oracle, W, target, min_share=min_share, limits=ALWAYS)
            for one, other in ((found, expected), (found.conservative, expected.conservative)):
                for name in ("iterate", "rate", "accuracy", "counts", "cut"):
                    np.testing.assert_allclose(
                        getattr(one, name), getattr(other, name), rtol=1e-12, atol=1e-12
                    )


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
    model = fair(max_iter=10, tau=0.1)
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
    advice = "set NUMBA_CACHE_DIR to a folder that can be written"
    with warns("numba_unusable", advice=advice) if error is RuntimeError else nullcontext():
        assert not kernels.has_numba()
    X, y, z = make_rows(9000)
    model = fair(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
    monkeypatch.undo()
    kernels.has_numba.cache_clear()
    again = fair(max_iter=5, tau=0.1).fit(X, y, sensitive_features=z)
    np.testing.assert_allclose(model.coef_, again.coef_, atol=1e-9)


FORK = """
import os, signal, sys, threading, time
import numpy as np
from evenhand import FairClassifier, Method
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
    FairClassifier(tau=0.1, method=Method(max_iter=5)).fit(X, y, sensitive_features=z)
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
    type(cores)(known)._renew()
    assert lock._lock.acquire(blocking=False)


@pytest.mark.parametrize("error", [AttributeError, OSError, SystemError, ValueError, RuntimeError])
def test_numba_that_fails_in_any_way_is_left_out(monkeypatch, error):
    def fail(name):
        raise error("LLVM is not what it was")

    monkeypatch.setattr("evenhand.engines.kernels.import_module", fail)
    named = {
        "error": f"{error.__name__}: LLVM is not what it was",
        "advice": "install it again, or remove it",
    }
    with warns("numba_unusable", **named) as caught:
        assert has_numba.__wrapped__() is False
    assert len(caught) == 1
