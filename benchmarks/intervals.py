"""How often intervals are right, and how wide they are, beside fairlearn's bootstrap.

    python benchmarks/intervals.py [--tables 1000] [--fairlearn 20] [--fits 500] [--seed 0]

Tables are drawn from groups of known rates; a 95% interval of the smallest over the largest rate,
or of the largest difference, is right if the truth lies inside. fairlearn's are of its
``MetricFrame`` with 200 resamples, on the first tables, because each takes about a second. Needs
``pip install '.[peers]'`` for these. The first lines are of test rows as ``evenhand train`` holds
them back, within each label of each group, of generated tables whose truth is known.
"""

import argparse
import warnings

import numpy as np
from scipy.special import ndtr

from evenhand import FairClassifier
from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES
from evenhand.core.targets import Target
from evenhand.datasets import stratified_rows
from evenhand.statistics.intervals import lower_end, population_ends, upper_end
from evenhand.views.formats import percent

RATE = RATES["selection_rate"]
CASES = {
    "2 groups, equal": ([0.3, 0.3], [500, 300]),
    "2 groups, 0.8": ([0.3, 0.24], [500, 300]),
    "3 groups, equal": ([0.5, 0.5, 0.5], [200, 200, 200]),
    "3 groups, 0.8": ([0.5, 0.45, 0.4], [400, 200, 100]),
    "10 groups, equal": ([0.4] * 10, [100] * 10),
    "10 groups, 0.6": (np.linspace(0.3, 0.5, 10).tolist(), [100] * 10),
}


def ours(counts: np.ndarray, comparison: str) -> tuple[float, float]:
    """Both ends together of 95%, as ``ratio_interval`` and ``difference_interval`` have them."""
    target = Target(RATE, 0.8, comparison)
    low = lower_end(target, counts, 0.025)
    high = upper_end(target, counts, 0.025, less=1)
    return (low, high) if comparison == "ratio" else (-high, -low)


def fairlearns(hits: np.ndarray, sizes: list[int], seed: int) -> dict[str, tuple[float, float]]:
    """Give the bootstrap intervals of the same table."""
    from fairlearn.metrics import MetricFrame, selection_rate

    y = np.concatenate([np.repeat([1, 0], [a, n - a]) for a, n in zip(hits, sizes, strict=True)])
    frame = MetricFrame(
        metrics=selection_rate,
        y_true=y,
        y_pred=y,
        sensitive_features=np.repeat(np.arange(len(sizes)), sizes),
        n_boot=200,
        ci_quantiles=[0.025, 0.975],
        random_state=seed,
    )
    return {"ratio": frame.ratio_ci(), "difference": frame.difference_ci()}


def line(name: str, who: str, ends: list[tuple[float, float]], truth: float) -> None:
    """Print how many intervals hold the truth, and their mean width."""
    low, high = np.array(ends, dtype=float).T
    held = np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high))
    print(
        f"{name:<28} {who:<10} {len(ends):>6} {percent(held):>7} {np.mean(high - low):>7.3f}",
        flush=True,
    )


def known_rates(n_tables: int, n_fairlearn: int, seed: int) -> None:
    """Print the table of groups of known rates."""
    print(f"{'':<28} {'':<10} {'tables':>6} {'right':>7} {'width':>7}")
    for case, (rates, sizes) in CASES.items():
        p, rng = np.array(rates), np.random.default_rng(seed)
        hits = rng.binomial(sizes, p, size=(n_tables, len(p)))
        tables = np.zeros((*hits.shape, 2, 2))
        tables[..., 0, 0], tables[..., 0, 1] = np.array(sizes) - hits, hits
        theirs = [fairlearns(hits[i], sizes, i) for i in range(n_fairlearn)]
        truths = {"ratio": p.min() / p.max(), "difference": p.max() - p.min()}
        for comparison, truth in truths.items():
            name = f"{case}, {comparison}"
            line(name, "evenhand", [ours(table, comparison) for table in tables], truth)
            if theirs:
                line(name, "fairlearn", [of[comparison] for of in theirs], truth)


def held_back(n_tables: int, seed: int) -> None:
    """Print how often each 95% bound on test rows, split within labels, is wrong by itself."""
    target, wrong = Target(RATE, 0.8), np.zeros(2)
    for i in range(n_tables):
        rng = np.random.default_rng(seed + i)
        z = rng.integers(0, 2, 2_000)
        X = rng.normal(size=(len(z), 2)) + 0.5 * np.outer(z == 0, [1, 0])
        y = (X.sum(axis=1) + rng.normal(size=len(z)) > 0.3).astype(int)
        train, test = stratified_rows(y, z, test_size=0.3, random_state=i)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = FairClassifier(tau=0.8, confidence=None)
            model.fit(X[train], y[train], sensitive_features=z[train])
        _, counts = group_counts(y[test], model.predict(X[test]), sensitive_features=z[test])
        w = model.coef_[0]
        rates = ndtr((model.intercept_[0] + 0.5 * w[0] * np.array([1, 0])) / np.hypot(*w))
        truth = rates.min() / rates.max()
        low, high = population_ends(target, counts, 0.95)
        wrong += low > truth, high < truth
    lower, upper = (percent(share) for share in wrong / n_tables)
    print(f"test rows of {n_tables} fits: lower bound wrong in {lower}, upper in {upper}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tables", type=int, default=1000)
    parser.add_argument("--fairlearn", type=int, default=20)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fits", type=int, default=500)
    args = parser.parse_args()
    held_back(args.fits, args.seed)
    known_rates(args.tables, args.fairlearn, args.seed)
