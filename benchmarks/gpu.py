"""Time of one fit with its whole frontier on a GPU, as ratios to reading the table once.

    python benchmarks/gpu.py [--rows 20000000] [--columns 100] [--check]

A table of float32 is made on the device. Printed: the time to read it once (the shorter of two
sums over it), one evaluation of all moments by the fused kernel and by plain products, and a whole
fit with its frontier. ``--check`` first compares the moments with NumPy's on 200,000 rows.
"""

import argparse
import time
from functools import partial

import numpy as np
import torch

from evenhand import FairClassifier
from evenhand.core.notions import find_notion
from evenhand.core.oracle import Oracle
from evenhand.core.rows import as_columns
from evenhand.engines.memory import MemoryRows
from evenhand.engines.torch import TorchRows


def seconds(f, repeats=20):
    f()
    torch.cuda.synchronize()
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        f()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - start)
    return float(np.median(times))


def make_table(n_rows, n_columns, seed=0):
    generator = torch.Generator(device="cuda").manual_seed(seed)
    X = torch.empty((n_rows, n_columns), device="cuda")
    for part in X.split(1_000_000):
        part.normal_(generator=generator)
    z = torch.rand(n_rows, generator=generator, device="cuda") < 0.4
    X[:, 0] += 0.8 * z
    noise = torch.rand(n_rows, generator=generator, device="cuda").logit()
    y = X[:, :10].sum(dim=1) / 2 + noise > 1
    return X, y, z


def check():
    """Compare the kernel, the plain products and NumPy."""
    X, *columns = make_table(200_003, 37)
    y, z = (column.cpu().numpy().astype(int) for column in columns)
    rng = np.random.default_rng(0)
    for dtype, limit in ((torch.float64, 1e-10), (torch.float32, 1e-4)):
        for name in ("statistical_parity", "equal_opportunity", "predictive_equality"):
            for degree in (1, 2, 3):
                for weight in (None, rng.random(len(y)) + 0.5):
                    for kinds in (z, np.where(rng.random(len(z)) < 0.1, 2, z)):
                        columns = as_columns(len(y), y, kinds, n_labels=2, sample_weight=weight)
                        notion = find_notion(name, degree)
                        on_device = TorchRows(X.to(dtype), columns)
                        at_home = MemoryRows(X.double().cpu().numpy(), columns)
                        a, b = (Oracle(r, notion=notion, n_groups=2) for r in (at_home, on_device))
                        w, u = rng.standard_normal(38) * 0.3, rng.standard_normal(degree + 1) * 0.3
                        error = max(
                            np.abs(np.subtract(p, q)).max() / max(np.abs(p).max(), 1e-3)
                            for p, q in zip(
                                a.evaluate(w, u, 1.3), b.evaluate(w, u, 1.3), strict=True
                            )
                        )
                        fused = on_device._fusible(b.game, None)
                        if not error < limit:
                            raise SystemExit(f"{dtype} {name} degree {degree}: {error}")
                        print(f"{dtype} {name} degree {degree} fused {fused}: error {error:.1e}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=100)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    if options.check:
        check()
    X, y, z = make_table(options.rows, options.columns)
    read = min(seconds(lambda: X.sum()), seconds(lambda: X.sum(dim=0)))
    print(f"{options.rows} x {options.columns} float32; one read {1e3 * read:.2f} ms", flush=True)
    codes = [column.cpu().numpy().astype(int) for column in (y, z)]
    rows = TorchRows(X, as_columns(len(y), *codes, n_labels=2))
    oracle = Oracle(rows, notion=find_notion("statistical_parity"), n_groups=2)
    w, u = np.full(oracle.n_weights, 0.1), np.array([0.1, 0.3, -0.05])
    for name, fused in (("fused kernel", True), ("plain products", False)):
        rows._fusible = (lambda game, recode: True) if fused else (lambda game, recode: False)
        one = seconds(partial(oracle.evaluate, w, u, 1.2), 20 if fused else 3)
        print(f"one evaluation, {name}: {1e3 * one:.2f} ms, {one / read:.2f} reads", flush=True)
    del rows, oracle
    for attempt in ("first", "second", "third"):
        torch.cuda.synchronize()
        start = time.perf_counter()
        model = FairClassifier(tau=0.8).fit(X, y, sensitive_features=z)
        whole = time.perf_counter() - start
        trained = model.trajectory_.to_frame()["seconds"].iloc[-1]
        passes = model.trajectory_.to_frame()["evaluations"].iloc[-1]
        print(
            f"{attempt} fit with its frontier: {whole:.2f} s; {passes} evaluations in "
            f"{trained:.2f} s; rate {model.rate_:.3f}, accuracy {model.accuracy_:.4f}, "
            f"{len(model.frontier_)} points",
            flush=True,
        )
    peak = torch.cuda.max_memory_allocated() / X.nbytes
    print(f"peak device memory: {peak:.2f} times the table")


if __name__ == "__main__":
    main()
