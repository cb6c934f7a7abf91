"""How long make_census takes, and how much memory: ``python benchmarks/census.py [ROWS]``."""

import resource
import sys
import time

import numpy as np

from evenhand.datasets import census_chunks, make_census


def main(n_rows: int = 10**7) -> None:
    make_census(1)  # Adult is read once
    kinds = {
        "in chunks": lambda: list(map(summary, census_chunks(n_rows, random_state=0))),
        "sparse": lambda: [summary(make_census(n_rows, sparse=True, return_X_y_z=True))],
        "dense": lambda: [summary(make_census(n_rows, return_X_y_z=True))],
    }
    print(f"{n_rows:,} rows")
    for kind, make in kinds.items():
        start = time.perf_counter()
        positive, male, both, n = np.sum(make(), axis=0)
        seconds = time.perf_counter() - start
        y, z = positive / n, male / n
        rho = (both / n - y * z) / np.sqrt(y * (1 - y) * z * (1 - z))
        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(f"{kind:10} {seconds:6.1f} s   peak so far {peak:5.2f} GB   correlation {rho:.4f}")


def summary(table: tuple) -> tuple[int, ...]:
    _, y, z = table
    male = (z == "Male").to_numpy()
    return int(y.sum()), int(male.sum()), int(y[male].sum()), len(y)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
