"""One evaluation of all moments, as ratios to reading the table once.

    python benchmarks/oracle.py [--rows 45000 1000000 10000000] [--repeats 9]

Dense tables of 100 float32 columns are held against ``X.sum()``, sparse ones (Adult, and a million
rows of 100 columns with 11 nonzeros each) against SciPy's ``X @ w`` and ``X.T @ r``. Each is
evaluated by the compiled loops, in turns with the yardstick, and then without them; medians are
compared. At the end, what the first call costs in a fresh process. 10,000,000 rows take 5 GB of
memory.
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from scipy.sparse import csr_matrix

from evenhand import FairClassifier, FairnessWarning
from evenhand.core.notions import find_notion
from evenhand.datasets import encoded_split, load_adult
from evenhand.engines.kernels import LIMITS, Limits
from evenhand.engines.memory import make_oracle
from evenhand.engines.threads import cores
from evenhand.models.inputs import code_rows, merge_alike

N_COLUMNS = 100
NEVER = Limits(compiled_rows=sys.maxsize)


def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def labels(score, rng):
    z = (rng.random(len(score)) < 0.4).astype(int)
    y = (score + 0.8 * z + rng.logistic(size=len(score)) > 1).astype(int)
    return y, z


def dense_table(n_rows, n_columns=N_COLUMNS, seed=0):
    rng = np.random.default_rng(seed)
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    for i in range(0, n_rows, 1 << 18):
        rng.standard_normal(out=X[i : i + (1 << 18)], dtype=np.float32)
    return X, *labels(X[:, :10].sum(axis=1) / 2, rng)


def sparse_table(n_rows, seed=0):
    """Make eleven one-hot blocks of nine columns, and one column of zeros."""
    rng = np.random.default_rng(seed)
    indices = rng.integers(9, size=(n_rows, 11), dtype=np.int32) + 9 * np.arange(11, dtype=np.int32)
    indptr = np.arange(n_rows + 1, dtype=np.int32) * 11
    data = np.ones(11 * n_rows, dtype=np.float32)
    X = csr_matrix((data, indices.ravel(), indptr), shape=(n_rows, N_COLUMNS))
    return X, *labels(X @ rng.standard_normal(N_COLUMNS), rng)


def adult():
    s = encoded_split(load_adult(), random_state=0)
    z = (s.z_train == "Male").to_numpy().astype(int)
    rows = merge_alike(code_rows(s.X_train.to_numpy(), s.y_train, z))
    return csr_matrix(rows.X), rows.y, rows.z, rows.weight


def all_cores_sum(X, pool, n):
    edges = np.linspace(0, X.shape[0], n + 1).astype(int)
    return sum(pool.map(lambda i: X[edges[i] : edges[i + 1]].sum(), range(n)))


def measure(name, X, y, z, weight=None, *, repeats):
    notion = find_notion("statistical_parity")
    oracles = {
        compiled: make_oracle(X, y, z, notion=notion, sample_weight=weight, limits=limits)
        for compiled, limits in ((True, LIMITS), (False, NEVER))
    }
    rng = np.random.default_rng(1)
    w, u = rng.standard_normal(X.shape[1] + 1) * 0.1, np.array([0.1, 0.3, -0.05])
    v, r = w[:-1].astype(X.dtype), rng.standard_normal(X.shape[0]).astype(X.dtype)
    dense = isinstance(X, np.ndarray)

    def yardstick():
        return X.sum() if dense else (X @ v, X.T @ r)

    def evaluate(compiled):
        return oracles[compiled].evaluate(w, u, 1.2)

    times = {"yardstick": [], "all cores": [], True: [], False: []}
    with cores(), ThreadPoolExecutor(cores.count) as pool:
        a, b = evaluate(True), evaluate(False)  # warm
        apart = max(np.abs(np.subtract(p, q)).max() for p, q in zip(a, b, strict=True))
        if not apart < 1e-3 * max(np.abs(p).max() for p in b[:6]):
            raise SystemExit(f"{name}: compiled and plain moments differ by {apart}")
        # Plain ones by themselves: BLAS's threads stay awake for a while and would be in the way.
        time.sleep(0.2)
        for _ in range(repeats):
            times["yardstick"].append(seconds(yardstick))
            if dense:
                times["all cores"].append(seconds(lambda: all_cores_sum(X, pool, cores.count)))
            times[True].append(seconds(lambda: evaluate(True)))
        for _ in range(repeats):
            times[False].append(seconds(lambda: evaluate(False)))
    read, fast, plain = (statistics.median(times[k]) for k in ("yardstick", True, False))
    everywhere = f"{fast / statistics.median(times['all cores']):>10.2f}" if dense else f"{'':>10}"
    gain, ok = plain / fast, "ok" if fast <= 2 * read and plain >= 1.5 * fast else "MISSED"
    print(
        f"{name:<24} {1e3 * read:>9.2f} {1e3 * fast:>9.2f} {fast / read:>6.2f} {everywhere}"
        f" {1e3 * plain:>9.2f} {plain / read:>6.2f} {gain:>6.2f}  {ok}",
        flush=True,
    )
    return fast <= 2 * read and gain >= 1.5


def first_calls():
    """Time first calls; run in a fresh process."""
    warnings.simplefilter("ignore", FairnessWarning)
    X, y, z = dense_table(45_000)
    oracle = make_oracle(X, y, z, notion=find_notion("statistical_parity"))
    w, u = np.zeros(oracle.n_weights), np.zeros(oracle.n_adversary)
    with cores():
        once = [seconds(lambda: oracle.evaluate(w, u)) for _ in range(2)]
    X, y, z = dense_table(20_000, 20)
    fits = [seconds(lambda: FairClassifier().fit(X, y, sensitive_features=z)) for _ in range(2)]
    print(*once, *fits)


def print_first_calls():
    print("\nseconds in a fresh process, dense float32; the fit has 20,000 x 20")
    print(f"{'':<24} {'evaluation':>10} {'again':>8} {'fit':>8} {'again':>8}")
    with tempfile.TemporaryDirectory() as folder:
        for name in ("first ever: compiling", "loaded from the cache"):
            found = subprocess.run(  # noqa: S603
                [sys.executable, __file__, "--first"],
                env={**os.environ, "NUMBA_CACHE_DIR": folder},
                stdout=subprocess.PIPE,
                check=True,
                text=True,
            )
            a, b, c, d = map(float, found.stdout.split())
            print(f"{name:<24} {a:>10.3f} {b:>8.4f} {c:>8.2f} {d:>8.2f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, nargs="*", default=[45_000, 1_000_000, 10_000_000])
    parser.add_argument("--repeats", type=int, default=9)
    parser.add_argument("--first", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.first:
        first_calls()
        return
    print(f"milliseconds; yardstick: dense X.sum(), sparse X @ w and X.T @ r; {cores_text()}")
    print(f"{'':<24} {'yardstick':>9} {'compiled':>9} {'ratio':>6} {'all cores':>10}", end="")
    print(f" {'plain':>9} {'ratio':>6} {'gain':>6}")
    few = options.repeats
    ok = [
        measure("sparse, Adult", *adult(), repeats=20 * few),
        measure("sparse, 1000000 x 100", *sparse_table(1_000_000), repeats=2 * few),
    ]
    for n in options.rows:
        repeats = few * (20 if n < 200_000 else 2 if n < 5_000_000 else 1)
        ok.append(measure(f"dense, {n} x {N_COLUMNS}", *dense_table(n), repeats=repeats))
    print("ratio: to the yardstick, at most 2. all cores: to X.sum() shared among as many threads.")
    print("gain: plain to compiled, at least 1.5.")
    print_first_calls()
    sys.exit(0 if all(ok) else 1)


def cores_text():
    with cores():
        return f"{cores.count} threads"


if __name__ == "__main__":
    main()
