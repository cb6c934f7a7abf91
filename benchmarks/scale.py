"""Time and memory of whole fits from 10^4 to 10^7 rows, out of memory, and on a Dask cluster.

    python benchmarks/scale.py [fits] [streams] [dask] [--rows 10000 ... ] [--columns 20]

``fits``: each size in a process of its own: seconds, share of the frontier, peak memory, and the
exponent of time in rows. ``streams``: one size from Parquet files and from a memory map, against
the same fit in memory. ``dask``: seconds of one evaluation on a local cluster of two processes for
several numbers of rows and partitions, a model of them, and what it predicts for 10^9 rows. Needs
``pip install '.[fast,parquet,dask]'``; about seven minutes on two cores.
"""

import argparse
import json
import logging
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from operator import add
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

import evenhand.models.training
from evenhand import FairClassifier, FairnessWarning, Method
from evenhand.models.fit_rows import read_rows
from evenhand.models.training import make_oracle

KINDS = ("memory", "memmap", "parquet")
GROUP_ROWS = 1 << 17  # rows of a Parquet row group


def fill(X, y, z, seed=0):
    """Fill a table chunk by chunk, so that making it takes no memory beside it."""
    rng = np.random.default_rng(seed)
    for i in range(0, len(X), 1 << 16):
        part = X[i : i + (1 << 16)]
        rng.standard_normal(out=part, dtype=np.float32)
        z[i : i + len(part)] = rng.random(len(part)) < 0.4
        part[:, 0] += 0.8 * z[i : i + len(part)]
        score = part[:, :10].sum(axis=1) / 2 + rng.logistic(size=len(part))
        y[i : i + len(part)] = score > 1
    return X, y, z


def make_table(n_rows, n_columns):
    X = np.empty((n_rows, n_columns), dtype=np.float32)
    return fill(X, np.empty(n_rows, dtype=np.int8), np.empty(n_rows, dtype=np.int8))


def write_table(folder, n_rows, n_columns):
    import pandas as pd

    X, y, z = make_table(n_rows, n_columns)
    np.save(folder / "X.npy", X)
    np.save(folder / "y.npy", y)
    np.save(folder / "z.npy", z)
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(n_columns)]).assign(y=y, z=z)
    frame.to_parquet(folder / "table.parquet", row_group_size=GROUP_ROWS)


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


def child(kind, n_rows, n_columns, max_iter, repeats, folder):
    """Fit in this process and print what it took."""
    warnings.simplefilter("ignore", FairnessWarning)
    swept, sweep = [], evenhand.models.training.sweep

    def timed_sweep(*args, **options):
        start = time.perf_counter()
        found = sweep(*args, **options)
        swept.append(time.perf_counter() - start)
        return found

    evenhand.models.training.sweep = timed_sweep
    # What is compiled or loaded once is not what is measured here. Maps can only be read, for
    # which numba has other loops.
    few, y, z = make_table(20_000, 4)
    few.flags.writeable = kind != "memmap"
    FairClassifier(method=Method(max_iter=5)).fit(few, y, sensitive_features=z)
    model = FairClassifier(method=Method(max_iter=max_iter))
    if kind == "memory":
        X, y, z = make_table(n_rows, n_columns)
    elif kind == "memmap":
        X = np.load(Path(folder) / "X.npy", mmap_mode="r")
        y, z = (np.load(Path(folder) / f"{name}.npy") for name in "yz")

    def fit():
        if kind == "parquet":
            path = Path(folder) / "table.parquet"
            return model.fit_parquet(path, label="y", sensitive_features="z")
        return model.fit(X, y, sensitive_features=z)

    swept.clear()
    before, times = resident(), []
    for _ in range(repeats):
        start = time.perf_counter()
        fit()
        times.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    found = {
        "seconds": statistics.median(times),
        "frontier": statistics.median(s / t for s, t in zip(swept, times, strict=True)),
        "evaluations": int(model.trajectory_.to_frame()["evaluations"].iloc[-1]),
        "peak": peak,
        "above": peak - before,
        "accuracy": model.accuracy_,
        "rate": model.rate_,
        "coef": model.coef_[0].tolist(),
    }
    print(json.dumps(found))


def in_child(kind, n_rows, n_columns, max_iter, repeats, folder="."):
    arguments = map(str, (kind, n_rows, n_columns, max_iter, repeats, folder))
    command = [sys.executable, __file__, "--child", *arguments]
    done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)  # noqa: S603
    return json.loads(done.stdout)


def exponent(rows, seconds):
    return float(np.polyfit(np.log(rows), np.log(seconds), 1)[0])


def fits(options):
    k, found = options.columns, []
    print(f"whole fits with their frontier, {k} float32 columns, max_iter={options.max_iter}")
    print(
        f"{'rows':>10} {'seconds':>8} {'evaluations':>12} {'frontier':>9} {'accuracy':>9}", end=""
    )
    print(f" {'rate':>6} {'peak MiB':>9} {'over X':>7} {'fit over X':>11}")
    for n in options.rows:
        repeats = 3 if n < 5_000_000 else 1
        one = in_child("memory", n, k, options.max_iter, repeats)
        found.append(one)
        size = 4 * n * k
        print(
            f"{n:>10} {one['seconds']:>8.2f} {one['evaluations']:>12} {one['frontier']:>9.0%}"
            f" {one['accuracy']:>9.4f} {one['rate']:>6.3f} {one['peak'] / 2**20:>9.0f}"
            f" {one['peak'] / size:>7.1f} {one['above'] / size:>11.2f}",
            flush=True,
        )
    seconds, worst = [one["seconds"] for one in found], max(one["frontier"] for one in found)
    ok = worst < 1 / 3
    print(f"largest share of the frontier: {worst:.0%}, must be below 33%: {verdict(ok)}")
    if len(found) > 1:
        all_sizes = exponent(options.rows, seconds)
        ok &= all_sizes <= 1.05
        last = exponent(options.rows[-2:], seconds[-2:])
        ok &= last <= 1.05
        print(
            f"exponent of time in rows: {all_sizes:.2f} over all, {last:.2f} over the last step, "
            f"at most 1.05: {verdict(max(all_sizes, last) <= 1.05)}"
        )
    print("over X: whole process to the table; fit over X: what the fit added to it.\n")
    return ok


def verdict(ok):
    return "ok" if ok else "MISSED"


def streams(options):
    n, k = options.stream_rows, options.columns
    print(f"{n} rows, {k} float32 columns, max_iter={options.max_iter}, {GROUP_ROWS} rows a group")
    print(
        f"{'':<10} {'seconds':>8} {'ratio':>6} {'frontier':>9} {'peak MiB':>9} {'fit over X':>11}"
    )
    with tempfile.TemporaryDirectory() as folder:
        write_table(Path(folder), n, k)
        found = {kind: in_child(kind, n, k, options.max_iter, 1, folder) for kind in KINDS}
    base, same = found["memory"], True
    for kind, one in found.items():
        print(
            f"{kind:<10} {one['seconds']:>8.2f} {one['seconds'] / base['seconds']:>6.2f}"
            f" {one['frontier']:>9.0%} {one['peak'] / 2**20:>9.0f}"
            f" {one['above'] / (4 * n * k):>11.2f}"
        )
        apart = np.abs(np.subtract(one["coef"], base["coef"])).max()
        figures = abs(one["accuracy"] - base["accuracy"]), abs(one["rate"] - base["rate"])
        same &= max(apart / np.abs(base["coef"]).max(), *figures) < 1e-4
        print(f"{'':<10} coefficients within {apart:.1e}, accuracy {figures[0]:.1e}", end="")
        print(f", rate {figures[1]:.1e} of those in memory")
    print(f"same result: {verdict(same)}\n")
    return bool(same)


def dask_oracle(n_rows, n_partitions, n_columns):
    import dask.array as da

    rng = da.random.default_rng(0)
    chunk = -(-n_rows // n_partitions)
    X = rng.standard_normal((n_rows, n_columns), chunks=(chunk, n_columns)).astype(np.float32)
    X = X.persist()
    noise = rng.logistic(size=n_rows, chunks=chunk)
    z = (rng.random(n_rows, chunks=chunk) < 0.4).astype(np.int8)
    y = (X[:, :10].sum(axis=1) / 2 + 0.8 * z + noise > 1).astype(np.int8)
    model = FairClassifier()
    settings = model.settings()
    rows, _ = read_rows(model, settings, X, y, z, None)
    return make_oracle(rows, settings)


def on_dask(options):
    from distributed import Client, LocalCluster

    rows, partitions = (200_000, 1_000_000, 4_000_000), (2, 8, 32, 128)
    k, workers = options.columns, 2
    with (
        LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            dashboard_address=None,
            memory_limit=0,
            silence_logs=logging.ERROR,
        ) as cluster,
        Client(cluster) as client,
    ):
        print(f"one evaluation on {workers} worker processes, {k} float32 columns: milliseconds")
        print(f"{'rows':>10} " + " ".join(f"{p:>5} parts" for p in partitions))
        found = []
        for n in rows:
            print(f"{n:>10}", end="", flush=True)
            for p in partitions:
                oracle = dask_oracle(n, p, k)
                w, u = np.full(oracle.n_weights, 0.1), np.array([0.1, 0.3, -0.05])
                one = partial_seconds(oracle, w, u)
                found.append((p, n / workers, one))
                print(f" {1e3 * one:>11.1f}", end="", flush=True)
            print()
        P, R, T = np.array(found).T
        model = predict_by(P, R, T)
        a, b, c = model
        print(
            f"seconds = {a:.4f} + {b:.6f} partitions + {c:.3e} rows per worker; typical error "
            f"{np.median(np.abs(predicted(model, P, R) / T - 1)):.0%}"
        )
        kept = np.arange(len(T)) < len(T) - 1  # the largest was the last
        blind = predicted(predict_by(P[kept], R[kept], T[kept]), P[-1], R[-1])
        print(
            f"the largest, predicted from the others: {1e3 * blind:.0f} ms, measured "
            f"{1e3 * T[-1]:.0f} ms"
        )
        killed(client, options)
        arguments, sums, sweep_arguments, histograms = sizes(oracle, w, u)
    print(f"moved per evaluation: {arguments} bytes of arguments to a worker, {sums} bytes of sums")
    print("from each partition, less those that are joined where they are. Per 16 iterates of the")
    print(f"frontier, 16 times in a fit: {sweep_arguments} bytes, and {histograms} of histograms.")
    print("\npredicted for one evaluation of 10^9 rows, one thread a worker:")
    print(f"{'workers':>8} {'a partition each':>17} {'overhead':>9} {'MB moved':>9}", end="")
    print(f" {'1000 partitions':>16} {'overhead':>9}")
    for n in (10, 30, 100, 300, 1000):
        few, many = predicted(model, n, 1e9 / n), predicted(model, 1000, 1e9 / n)
        moved = n * (arguments + sums) / 1e6
        print(f"{n:>8} {few:>15.2f} s {(a + n * b) / few:>9.0%} {moved:>9.2f}", end="")
        print(f" {many:>14.2f} s {(a + 1000 * b) / many:>9.0%}")
    best = (c * 1e9 / b) ** 0.5
    least = predicted(model, best, 1e9 / best)
    print(f"least with a partition each: {least:.2f} s at {best:.0f} workers; more make it slower.")
    return True


def partial_seconds(oracle, w, u):
    for _ in range(2):  # workers load the compiled loops
        oracle.evaluate(w, u, 1.2)
    times, start = [], time.perf_counter()
    while len(times) < 15 and (len(times) < 5 or time.perf_counter() - start < 8):
        now = time.perf_counter()
        oracle.evaluate(w, u, 1.2)
        times.append(time.perf_counter() - now)
    return statistics.median(times)


def predict_by(P, R, T):
    """Fit a + b partitions + c rows per worker, none negative, to the least relative errors."""
    A = np.stack([np.ones_like(P), P, R], axis=1) / T[:, None]
    scale = np.abs(A).max(axis=0)
    return nnls(A / scale, np.ones_like(T))[0] / scale


def predicted(model, P, R):
    a, b, c = model
    return a + b * P + c * R


def sizes(oracle, w, u):
    """Bytes of arguments and results: of an evaluation, and of 16 iterates of the frontier."""
    from distributed.protocol.pickle import dumps

    from evenhand.core.row_sums import row_sums
    from evenhand.frontier.histograms import Shape, cut_histograms, make_grids

    sums = oracle.sums(w, u, 1.2)
    arguments = (add, row_sums, (w, u, 1.2, oracle.game, oracle.recode))
    W, shape = np.random.default_rng(0).standard_normal((len(w), 16)), Shape(2, 2, (1,))
    grids = make_grids(oracle.rows, W, shape)
    histograms = oracle.rows.sum(cut_histograms, W, grids, shape)
    sweep_arguments = (add, cut_histograms, (W, grids, shape))
    return [len(dumps(what)) for what in (arguments, sums, sweep_arguments, histograms)]


def killed(client, options):
    """Kill a worker and time the evaluation that finds its partitions gone."""
    n = 1_000_000
    oracle = dask_oracle(n, 8, options.columns)
    w, u = np.full(oracle.n_weights, 0.1), np.array([0.1, 0.3, -0.05])
    usual, before = partial_seconds(oracle, w, u), oracle.evaluate(w, u, 1.2)
    # A process of the cluster above, which its nanny starts again.
    os.kill(next(iter(client.run(os.getpid).values())), signal.SIGKILL)
    start = time.perf_counter()
    after = oracle.evaluate(w, u, 1.2)
    first = time.perf_counter() - start
    same = all(np.allclose(p, q, rtol=1e-6) for p, q in zip(before, after, strict=True))
    print(
        f"one of two workers killed, {n} rows: that evaluation {first:.2f} s instead of "
        f"{usual:.3f} s, same result: {same}; then {partial_seconds(oracle, w, u):.3f} s"
    )


def main():
    if sys.argv[1:2] == ["--child"]:
        kind, *numbers, folder = sys.argv[2:]
        child(kind, *map(int, numbers), folder)
        return
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", nargs="*", default=["fits", "streams", "dask"])
    parser.add_argument("--rows", type=int, nargs="*", default=[10**4, 10**5, 10**6, 10**7])
    parser.add_argument("--columns", type=int, default=20)
    parser.add_argument("--max-iter", type=int, default=200)
    parser.add_argument("--stream-rows", type=int, default=10**6)
    options = parser.parse_args()
    parts = {"fits": fits, "streams": streams, "dask": on_dask}
    met = [parts[name](options) for name in options.what]
    sys.exit(0 if all(met) else 1)


if __name__ == "__main__":
    main()
