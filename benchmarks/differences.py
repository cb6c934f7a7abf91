"""Accuracy at a test difference: the boosted classifier and LinearPost on Adult, equalized odds.

    python benchmarks/differences.py [--splits 5]

Neither sees the group. Both are fitted once on each split, and moved along the same ε, chosen on
the training part; the mean test curve of accuracy over the largest difference of true and false
positive rates is read at a difference, as ``contest_page.read`` reads rates. Differences of the
readings are paired over the splits, with jackknife errors. Two hours of one core for five splits.
"""

import argparse
import time
import warnings
from copy import copy

import numpy as np
from contest_page import jackknife, read

from evenhand import FairBoostedClassifier, equalized_odds_difference
from evenhand.datasets import encoded_split, load_adult
from evenhand.peers import PEERS

EPSILONS = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.06, 0.08, 0.1)
READ_AT = (0.04, 0.02)
ODDS = "equalized_odds"


def ours(part):
    """Give the classifier of each ε, from one fit."""
    model = FairBoostedClassifier(ODDS, epsilon=0.02, confidence=None, random_state=0)
    model.fit(part.X_train, part.y_train, sensitive_features=part.z_train)
    return [model.at(epsilon=epsilon) for epsilon in EPSILONS]


def rival(part):
    """Give LinearPost for each ε, from one fit of its models."""
    model = PEERS["linear_post"].make(ODDS, 0).set_params(epsilon=EPSILONS[0])
    model.fit(part.X_train, part.y_train, sensitive_features=part.z_train)
    moved = []
    for epsilon in EPSILONS:
        other = copy(model)
        other.epsilon = epsilon
        other._choose()
        moved.append(other)
    return moved


def curve(models, part):
    """Minus the test difference, and the test accuracy, of each model."""
    rows = []
    for model in models:
        predicted = model.predict(part.X_test)
        groups = {"sensitive_features": part.z_test}
        apart = equalized_odds_difference(part.y_test, predicted, **groups)
        rows.append((-apart, np.mean(predicted == part.y_test)))
    return np.array(rows)


def readings(curves, level):
    """Read the mean curve, and the mean without each of the splits."""
    at = read(np.mean(curves, axis=0), -level)
    without = [np.delete(curves, k, axis=0) for k in range(len(curves))]
    return at, np.array([read(c.mean(axis=0), -level) for c in without if len(c)])


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    data = load_adult()
    curves = {"evenhand, boosted": [], "LinearPost": []}
    for seed in range(args.splits):
        part = encoded_split(data, random_state=seed)
        for (name, found), fit in zip(curves.items(), (ours, rival), strict=True):
            start = time.process_time()
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found.append(curve(fit(part), part))
            print(f"split {seed}, {name}: {time.process_time() - start:.0f} s", flush=True)
    for level in READ_AT:
        (a, without_a), (b, without_b) = (readings(np.array(c), level) for c in curves.values())
        error = jackknife(without_a - without_b)
        print(f"\naccuracy at a test difference of {level}:")
        for name, value in zip(curves, (a, b), strict=True):
            print(f"  {name:20} {value:.4f}")
        beaten = "cannot be told" if np.isnan(error) else a - b < -2 * error
        print(f"  difference {a - b:+.4f} ± {error:.4f}; below by two errors: {beaten}")


if __name__ == "__main__":
    main()
