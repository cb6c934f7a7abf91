"""How accurate a linear rule of COMPAS can be at a rate: a search on the rows it is judged on.

    python benchmarks/ceiling.py [--rounds 60]

Nobody can promise as much on new rows: it is what no linear rule that was fitted elsewhere is
likely to exceed. Directions are drawn at random and the best are moved a little, ever less; every
cut on each is tried. COMPAS is fetched once.
"""

import argparse

import numpy as np

from evenhand.core.groups import group_codes
from evenhand.datasets import encoded_split, fetch_compas

RATES = (0.80, 0.90, 0.95)
KEPT, CHILDREN, FIRST = 8, 8, 1500


def best_at(scores, y, z, rates):
    """Best accuracy of a cut on the scores at each rate, at least 1% positives in each group."""
    order = np.argsort(-scores)
    s, y, z = scores[order], y[order], z[order]
    ends = np.flatnonzero(np.diff(s) < 0)
    accuracy = (np.cumsum(2 * y - 1) + np.sum(y == 0))[ends] / len(y)
    shares = np.stack([np.cumsum(z == g)[ends] / np.sum(z == g) for g in (0, 1)])
    ratio = shares.min(axis=0) / np.maximum(shares.max(axis=0), 1e-12)
    fits = (shares.min(axis=0) >= 0.01) & (shares.max(axis=0) <= 0.99)
    return [accuracy[fits & (ratio >= r)].max(initial=0.0) for r in rates]


def ceiling(X, y, z, rounds, rng):
    """Best accuracies at RATES of all directions that were tried."""
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    W = rng.standard_normal((FIRST, X.shape[1]))
    found = np.array([best_at(X @ w, y, z, RATES) for w in W])
    for i in range(rounds):
        top = np.unique(np.argsort(-found, axis=0)[:KEPT])
        parents = W[top] / np.linalg.norm(W[top], axis=1)[:, None]
        step = 0.5 * 0.93**i / np.sqrt(X.shape[1])
        near = np.repeat(parents, CHILDREN // 2, axis=0)
        near = near + step * rng.standard_normal(near.shape)
        W = np.concatenate([parents, near])
        found = np.array([best_at(X @ w, y, z, RATES) for w in W])
    return found.max(axis=0)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=60)
    parser.add_argument("--splits", type=int, default=3)
    args = parser.parse_args()
    rows = []
    for seed in range(args.splits):
        split = encoded_split(fetch_compas(), random_state=seed)
        X, y = np.asarray(split.X_test, dtype=np.float64), np.asarray(split.y_test)
        z = group_codes(split.z_test)[1]
        y = (y == np.unique(y)[-1]).astype(int)
        rows.append(ceiling(X, y, z, args.rounds, np.random.default_rng(seed)))
        print(f"split {seed}:", " ".join(f"{v:.4f}" for v in rows[-1]), flush=True)
    print("rates  ", " ".join(f"{r:.2f}  " for r in RATES))
    print("ceiling", " ".join(f"{v:.4f}" for v in np.mean(rows, axis=0)))


if __name__ == "__main__":
    main()
