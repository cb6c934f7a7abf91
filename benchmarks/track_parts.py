"""Times of single parts, for tracking over commits with pytest-benchmark.

    make track                                   # times, and saves them
    make track TRACK_ARGS=--benchmark-compare    # beside those saved last

Each part is one test; all tables come from one seed.
"""

import numpy as np
import pytest
from scipy.sparse import random as random_sparse

from evenhand import FairClassifier, Method
from evenhand.core.notions import find_notion
from evenhand.engines.memory import make_oracle
from evenhand.engines.threads import cores
from evenhand.frontier.sweep import sweep


def make_table(n_rows, layout="dense", n_columns=50, seed=0):
    rng = np.random.default_rng(seed)
    if layout == "csr":
        X = random_sparse(n_rows, n_columns, 0.12, "csr", random_state=rng)
    else:
        X = rng.standard_normal((n_rows, n_columns), dtype=np.float32)
    z = (rng.random(n_rows) < 0.4).astype(int)
    y = (X @ np.linspace(-1, 1, n_columns) + 0.5 * z + rng.logistic(size=n_rows) > 0.5).astype(int)
    return X, y, z


@pytest.mark.parametrize("notion", ["statistical_parity", "equalized_odds", "false_discovery"])
@pytest.mark.parametrize("layout", ["dense", "csr"])
def test_evaluation(benchmark, layout, notion):
    oracle = make_oracle(*make_table(100_000, layout), notion=find_notion(notion))
    w, u = np.full(oracle.n_weights, 0.1), np.full(oracle.n_adversary, 0.1)
    with cores():
        benchmark(oracle.evaluate, w, u, 1.2)


@pytest.mark.parametrize("n_rows", [30_000, 100_000], ids=["every cut", "histograms"])
def test_frontier(benchmark, n_rows):
    oracle = make_oracle(*make_table(n_rows), notion=find_notion("statistical_parity"))
    iterates = np.random.default_rng(1).standard_normal((50, oracle.n_weights)) * 0.2
    benchmark(sweep, oracle, iterates)


def test_preparation(benchmark):
    X, y, z = make_table(100_000)
    benchmark(lambda: make_oracle(X, y, z, notion=find_notion("statistical_parity")))


def test_fit(benchmark):
    X, y, z = make_table(30_000)
    benchmark(lambda: FairClassifier(tau=0.7).fit(X, y, sensitive_features=z))


def test_prediction(benchmark):
    X, y, z = make_table(100_000)
    model = FairClassifier(tau=0.7, method=Method(max_iter=20)).fit(
        X[:10_000], y[:10_000], sensitive_features=z[:10_000]
    )
    benchmark(model.predict, X)
