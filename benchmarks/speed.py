"""Time of one fit with its whole frontier, as ratios in one run.

    python benchmarks/speed.py [--repeats 7]

Against scikit-learn's ``LogisticRegression(max_iter=1000)`` on the same matrix, and against reading
that matrix once (a plain sum over it). Runs alternate and medians are compared, because a machine's
pace drifts; the ratio is the figure, the seconds are only to give an idea.
"""

import argparse
import statistics
import time
import warnings

import numpy as np
from sklearn.linear_model import LogisticRegression

from evenhand import FairClassifier, FairnessWarning
from evenhand.core.notions import NOTIONS
from evenhand.datasets import encoded_split, load_adult, with_correlation
from evenhand.engines.memory import make_oracle
from evenhand.engines.threads import cores
from evenhand.frontier.sweep import sweep
from evenhand.models.inputs import code_rows, merge_alike


def seconds(f):
    start = time.perf_counter()
    f()
    return time.perf_counter() - start


def dense_table(n_rows=30_000, n_columns=85, seed=0):
    """Make a table without zeros, to show what a pass costs when none can be skipped."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n_rows, n_columns))
    z = (rng.random(n_rows) < 0.6).astype(int)
    X[:, :5] += 0.3 * z[:, None]
    y = (X @ rng.standard_normal(n_columns) / 5 + rng.logistic(size=n_rows) > 1).astype(int)
    return X, y, z


def adult(encoding, rho=None):
    data = load_adult(encoding)
    y, z = data.target, data.sensitive_features
    target = None if rho is None else with_correlation(y, z, rho, random_state=0)
    s = encoded_split(data, target=target, random_state=0)
    return (
        np.ascontiguousarray(s.X_train.to_numpy()),
        np.asarray(s.y_train),
        (s.z_train == "Male").to_numpy().astype(int),
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=7)
    repeats = parser.parse_args().repeats
    warnings.simplefilter("ignore", FairnessWarning)
    tables = {
        "Adult full": adult("full"),
        "Adult coarse": adult("coarse"),
        "synthetic rho=0.5": adult("full", 0.5),
        "dense, no zeros": dense_table(),
        "dense, float32": tuple(v.astype(np.float32) if v.ndim == 2 else v for v in dense_table()),
    }
    print(f"{'':<18} {'rows x columns':>15} {'evenhand':>9} {'plain LR':>9} {'ratio':>6}", end="")
    print(f" {'pass':>8} {'passes':>7} {'pass/read':>9} {'frontier':>9}")
    for name, (X, y, z) in tables.items():
        model = FairClassifier()
        plain = LogisticRegression(max_iter=1000)
        model.fit(X, y, sensitive_features=z)  # warm
        ours, theirs = [], []
        for _ in range(repeats):
            ours.append(seconds(lambda m=model, X=X, y=y, z=z: m.fit(X, y, sensitive_features=z)))
            theirs.append(seconds(lambda m=plain, X=X, y=y: m.fit(X, y)))
        rows = merge_alike(code_rows(X, y, z))
        notion = NOTIONS["statistical_parity"](2)
        oracle = make_oracle(rows.X, rows.y, rows.z, notion=notion, sample_weight=rows.weight)
        w, u = np.zeros(oracle.n_weights), np.zeros(oracle.n_adversary)
        read, one_pass = [], []
        with cores():  # as a fit has them: started once
            for _ in range(50):
                read.append(seconds(lambda X=X: X.sum()))
                one_pass.append(seconds(lambda o=oracle, w=w, u=u: o.evaluate(w, u)))
        iterates = model.trajectory_.iterates
        passes = model.trajectory_.to_frame()["evaluations"].iloc[-1]
        front = [seconds(lambda o=oracle, q=iterates: sweep(o, q)) for _ in range(3)]
        a, b, c, d, e = map(statistics.median, (ours, theirs, read, one_pass, front))
        shape = f"{X.shape[0]} x {X.shape[1]}"
        print(f"{name:<18} {shape:>15} {a:>8.2f}s {b:>8.2f}s {a / b:>6.2f}", end="")
        print(f" {1e3 * d:>6.2f}ms {passes:>7} {d / c:>9.1f} {e / a:>8.0%}")
    print("ratio: one fit with its whole frontier to LogisticRegression(max_iter=1000); at most 2.")
    print("pass/read: one evaluation of all moments to one sum over X. frontier: share of the fit.")
    print("Adult coarse has few kinds of rows; rows that are alike are merged, so a pass is short.")


if __name__ == "__main__":
    main()
