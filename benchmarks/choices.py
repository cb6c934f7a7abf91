"""Rules of choice for the linear default, on validation parts: test rows are never looked at.

    python benchmarks/choices.py [--splits 30] [--tables mortgages german ...] [--data-home FOLDER]

A training part of each split is split once more; fits have ``confidence=None``. Rules: points
judged on the rows fitted to as they are; with each row left out (``evenhand.core.left_out``), of
the frontier's points and with ``confidence=0.5``, which leaves a margin of .3 standard errors; and
"plain": the unconstrained optimum at cut 0 where its rate reaches τ, unless the point that would
be chosen is right more often by 1.58 or 2.5 standard errors of the paired difference. Accuracy at
a rate is read from the mean curve as the contest does; differences to the first rule are in units
of 0.0001 with their jackknife errors. Then the rate of τ = .8 and .9, how many τ are called
feasible, and on what share of those the constant answer is right more often.
"""

import argparse
import warnings
from unittest.mock import patch

import numpy as np
from contest_field import RATES, TABLES, TAUS, table
from contest_page import jackknife, read
from inner import inner_split

from evenhand import FairClassifier
from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES as BY_NAME
from evenhand.core.rates import overall_accuracy
from evenhand.datasets import encoded_split

RATIO, MIN_SHARE = BY_NAME["selection_rate"], 0.01
# Name to: from how many columns on rows are left out, and the confidence.
WAYS = {
    "as they are": (np.inf, None),
    "left out": (0.0, None),
    "left out, .5": (0.0, 0.5),
    "default": (1.0, None),
}
CLEARLY = (1.58, 2.5)


def answers(model, X, optimum, clearly):
    """Answers for each τ to some rows; with ``clearly``, the optimum's unless it is beaten."""
    rows, y, z = X[0]
    plain = (rows @ optimum[:-1] + optimum[-1] > 0).astype(int)
    rate = RATIO.ratio(group_counts(y, plain, sensitive_features=z)[1])
    for tau in TAUS:
        at = model.at(tau)
        said, feasible = at.predict(rows), at.feasible_
        if clearly is not None and rate >= tau:
            better, worse = np.sum((said == y) & (plain != y)), np.sum((said != y) & (plain == y))
            if better - worse <= clearly * np.sqrt(better + worse):
                yield (X[1][0] @ optimum[:-1] + optimum[-1] > 0).astype(int), feasible
                continue
        yield at.predict(X[1][0]), feasible


def run(name, seed, data_home):
    """Curves of one split: for each rule rows of rate, accuracy, eligible, feasible, below."""
    part = inner_split(encoded_split(table(name, seed, data_home), random_state=seed), seed)
    X = (part.X_train, part.y_train, part.z_train), (part.X_test, part.y_test, part.z_test)
    X = [tuple(np.asarray(v) for v in side) for side in X]
    y, z = X[1][1:]
    found = {}
    for way, (many, confidence) in WAYS.items():
        with warnings.catch_warnings(), patch("evenhand.models.training.MANY_COLUMNS", many):
            warnings.simplefilter("ignore")
            model = FairClassifier(confidence=confidence, random_state=seed)
            model.fit(*X[0][:2], sensitive_features=X[0][2])
            optimum = model.trajectory_.iterate(model.trajectory_.sources.index("optimum"))
            plain = CLEARLY if way == "as they are" else ()
            for clearly in (None, *plain):
                rows = []
                for said, feasible in answers(model, X, optimum, clearly):
                    counts = group_counts(y, said, sensitive_features=z)[1]
                    shares = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
                    accuracy = overall_accuracy(counts)
                    below = accuracy < max(np.mean(y), 1 - np.mean(y))
                    eligible = shares.min() >= MIN_SHARE
                    rate = np.nan_to_num(RATIO.ratio(counts))
                    rows.append((rate, accuracy, eligible, feasible, below))
                found[way if clearly is None else f"plain, {clearly}"] = np.array(rows, float).T
    return found


def at(curves, rate):
    mean = curves.mean(axis=0)
    good = mean[2] >= 0.5
    return read(mean[:2, good].T, rate) if good.any() else np.nan


def show(name, found):
    curves = {rule: np.array([split[rule] for split in found]) for rule in found[0]}
    first = next(iter(curves.values()))
    print(f"{name}, {len(found)} splits")
    for rule, own in curves.items():
        cells = []
        for rate in RATES:
            less = [
                at(np.delete(own, i, 0), rate) - at(np.delete(first, i, 0), rate)
                for i in range(len(own))
            ]
            value, gain = at(own, rate), at(own, rate) - at(first, rate)
            shown = f"{1e4 * gain:+.0f}±{1e4 * jackknife(np.array(less)):.0f}"
            cells.append(f"{value:.4f} {shown if np.isfinite(gain) else '':<9}")
        rates = " ".join(f"{own[:, 0, TAUS.index(tau)].mean():.3f}" for tau in (0.8, 0.9))
        said = own[:, 3] == 1
        below = own[:, 4][said].mean() if said.any() else np.nan
        print(f"  {rule:<13}{' '.join(cells)} {rates}  {said.mean():.2f} {below:.3f}", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--tables", nargs="*", default=TABLES, choices=TABLES)
    parser.add_argument("--data-home")
    args = parser.parse_args()
    for name in args.tables:
        show(name, [run(name, seed, args.data_home) for seed in range(args.splits)])


if __name__ == "__main__":
    main()
