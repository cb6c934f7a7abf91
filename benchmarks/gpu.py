"""Time of one fit with its whole frontier on a GPU, as ratios to reading the table once.

    python benchmarks/gpu.py [--rows 20000000] [--columns 100]

A table of float32 is made on the device. Printed: the time to read it once (the shorter of two
sums over it), one evaluation of all moments by the fused kernel and by plain products, and a whole
fit with its frontier. ``tests/engines/test_torch.py`` on the same machine compares the kernel's
moments with NumPy's.
"""

import argparse
import time
from functools import partial
from unittest.mock import patch

import numpy as np
import torch

from evenhand import FairClassifier
from evenhand.core.notions import find_notion
from evenhand.core.oracle import Oracle
from evenhand.core.rows import as_columns
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


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", type=int, default=20_000_000)
    parser.add_argument("--columns", type=int, default=100)
    options = parser.parse_args()
    print(f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}", flush=True)
    X, y, z = make_table(options.rows, options.columns)
    read = min(seconds(lambda: X.sum()), seconds(lambda: X.sum(dim=0)))
    print(f"{options.rows} x {options.columns} float32; one read {1e3 * read:.2f} ms", flush=True)
    codes = [column.cpu().numpy().astype(int) for column in (y, z)]
    rows = TorchRows(X, as_columns(len(y), *codes, n_labels=2))
    oracle = Oracle(rows, notion=find_notion("statistical_parity"), n_groups=2)
    w, u = np.full(oracle.n_weights, 0.1), np.array([0.1, 0.3, -0.05])
    for name, fused in (("fused kernel", True), ("plain products", False)):
        with patch("evenhand.engines.torch.has_triton", return_value=fused):
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
