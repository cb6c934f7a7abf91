"""Accuracy at a test difference: the boosted classifier and LinearPost on Adult, equalized odds.

    python benchmarks/differences.py [--splits 5]
    python benchmarks/differences.py --inner [--tables adult compas] [--data-home FOLDER]

Neither sees the group. Both are fitted once on each split, and moved along the same ε, chosen on
the training part; the mean test curve of accuracy over the largest difference of true and false
positive rates is read at a difference, as ``contest_page.read`` reads rates. Differences of the
readings are paired over the splits, with jackknife errors. Three minutes of one core.

``--inner`` is how ``APART`` of :mod:`evenhand.frontier.sweep` is chosen: accuracy at validation
differences for each caution, and what that adds to none, on validation parts inside training
parts. Of a generated table as many rows are fitted to as in the contest's validation parts, and
12,600 others validate. No row of a test part is looked at.
"""

import argparse
import time
import warnings
from copy import copy
from pathlib import Path
from unittest.mock import patch

import numpy as np
from contest_field import MADE, ODDS, PARITY, table
from contest_page import jackknife, read
from inner import inner_split

from evenhand import (
    FairBoostedClassifier,
    FairClassifier,
    equalized_odds_difference,
    statistical_parity_difference,
)
from evenhand.datasets import encoded_split, load_adult
from evenhand.frontier import sweep
from evenhand.peers import PEERS

EPSILONS = (0.005, 0.01, 0.015, 0.02, 0.025, 0.03, 0.035, 0.04, 0.05, 0.06, 0.08, 0.1)
READ_AT = (0.04, 0.02)
INNER_READ_AT = (0.02, 0.04, 0.08)
DIFFERENCES = {ODDS: equalized_odds_difference, PARITY: statistical_parity_difference}
# Standard errors that are tried, the last as many as for ratios.
CAUTIONS = (0.0, 0.5, 1.0, 2.0, np.inf)
# Inner splits for each estimator, and of generated tables the rows to fit to, of how many.
INNER = {
    "adult": ({FairClassifier: 3, FairBoostedClassifier: 2}, None),
    "compas": ({FairClassifier: 12}, None),
    "german": ({FairClassifier: 12}, None),
    "correlated": ({FairClassifier: 6, FairBoostedClassifier: 6}, 1470),
    "proxy": ({FairClassifier: 6, FairBoostedClassifier: 6}, 2940),
    "tiny": ({FairClassifier: 6, FairBoostedClassifier: 6}, 5880),
}
MADE_ROWS = 60000


def ours(part, make=FairBoostedClassifier, notion=ODDS):
    """Give the classifier of each ε, from one fit."""
    model = make(notion, epsilon=0.02, confidence=None, random_state=0)
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


def curve(models, part, notion=ODDS):
    """Minus the test difference, and the test accuracy, of each model."""
    rows = []
    for model in models:
        predicted = model.predict(part.X_test)
        groups = {"sensitive_features": part.z_test}
        apart = DIFFERENCES[notion](part.y_test, predicted, **groups)
        rows.append((-apart, np.mean(predicted == part.y_test)))
    return np.array(rows)


def readings(curves, level):
    """Read the mean curve, and the mean without each of the splits."""
    at = read(np.mean(curves, axis=0), -level)
    without = [np.delete(curves, k, axis=0) for k in range(len(curves))]
    return at, np.array([read(c.mean(axis=0), -level) for c in without if len(c)])


def inner_part(name, seed, n_rows, data_home):
    """Give a part to fit to and a validation part, both of a training part."""
    if n_rows is None:
        return inner_split(encoded_split(table(name, seed, data_home), random_state=seed), seed)
    random = np.random.default_rng([list(MADE).index(name), seed])
    part = inner_split(encoded_split(MADE[name](random, n=MADE_ROWS), random_state=seed), seed)
    return part._replace(**{k: getattr(part, k)[:n_rows] for k in part._fields if "train" in k})


def inner(names, data_home):
    """Print the readings of each caution."""
    print("accuracy at a validation difference, without caution; what caution adds, in 0.0001\n")
    heads = "".join(f"{c:>18g}" for c in CAUTIONS[1:-1]) + "     as for ratios"
    print(f"{'':38}at  {0:<13}{heads}")
    cases = [(n, make, notion) for n in names for make in INNER[n][0] for notion in DIFFERENCES]
    for name, make, notion in cases:
        (splits, n_rows), curves = INNER[name], {caution: [] for caution in CAUTIONS}
        for seed in range(splits[make]):
            part = inner_part(name, seed, n_rows, data_home)
            for caution, found in curves.items():
                with patch.object(sweep, "APART", caution), warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    found.append(curve(ours(part, make, notion), part, notion))
        kind = "boosted" if make is FairBoostedClassifier else "linear"
        for level in INNER_READ_AT:
            (base, leave), *others = (readings(np.array(c), level) for c in curves.values())
            line = f"{name:11}{kind:8}{notion:19}{level:.2f}  {cell(base, leave, 1, '.4f'):13}"
            for at, without in others:
                gain = cell(at - base, without - leave, 1e4, "+.0f")
                line += f"{at:9.4f} {gain:>8}"
            print(line.replace("nan", "  –"), flush=True)


def cell(value, without, unit, digits):
    """Write a statistic with its jackknife error, a dash where it is not defined."""
    if np.isnan(value):
        return "–"
    return f"{unit * value:{digits}}±{unit * jackknife(without):{digits.strip('+')}}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--inner", action="store_true", help="compare cautions instead")
    parser.add_argument("--tables", nargs="+", choices=INNER, default=[*INNER])
    parser.add_argument("--data-home", type=Path, help="folder of the fetched tables")
    args = parser.parse_args()
    if args.inner:
        return inner(args.tables, args.data_home)
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
