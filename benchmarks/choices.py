"""Rules of choice for the linear default, on validation parts: test rows are never looked at.

    python benchmarks/choices.py [--splits 30] [--tables mortgages german ...] [--data-home FOLDER]
    python benchmarks/choices.py --boosted [--first 0]
    python benchmarks/choices.py --aware [--first 0]

A training part of each split is split once more; fits have ``confidence=None``. Rules: points
judged on the rows fitted to as they are; with each row left out (``evenhand.core.left_out``), of
the frontier's points and with ``confidence=0.5``, which leaves a margin of .3 standard errors; and
"plain": the unconstrained optimum at cut 0 where its rate reaches τ, unless the point that would
be chosen is right more often by 1.58 or 2.5 standard errors of the paired difference. Accuracy at
a rate is read from the mean curve as the contest does; differences to the first rule are in units
of 0.0001 with their jackknife errors. Then the rate of τ = .8 and .9, how many τ are called
feasible, and on what share of those the constant answer is right more often.

``--boosted``: rules for FairBoostedClassifier, and two rivals with the same booster. "plain": the
label's mean probability cut at one half, where its rate reaches τ, unless the chosen point is right
more often out of fold by 1 or 2 standard errors of the paired difference; "rules": points of the
rules that are optimal for the estimates alone (``point_.source``), with every cut; "p, q for rules"
and "p and q, pool": Menon and Williamson's p - λq on our own columns, of 101 λ, in place of those
rules and beside them; "halves": directions and cuts found on some of the folds and judged on the
others. The last figure is the accuracy out of fold less that of new rows at τ = .8, in units of
0.0001 with its standard error.

``--aware``: a cut per group; the peer that has plain logistic regression's score, FairClassifier's
``group_cuts``, and the same with the solver's directions as well (``candidates="solver"``).
"""

import argparse
import warnings
from dataclasses import replace
from unittest.mock import patch

import numpy as np
from contest_field import RATES, TABLES, TAUS, table
from contest_page import jackknife, read
from inner import inner_split

from evenhand import FairBoostedClassifier, FairClassifier, Method
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import RATES as BY_NAME
from evenhand.core.rates import overall_accuracy
from evenhand.datasets import encoded_split
from evenhand.engines.memory import make_oracle
from evenhand.frontier.choice import answer
from evenhand.frontier.held_out import HeldOut, count_points, pool_folds
from evenhand.frontier.sweep import sweep
from evenhand.peers import PEERS
from evenhand.peers._fit import Aim, fit_all

RATIO, MIN_SHARE = BY_NAME["selection_rate"], 0.01
# Name to: from how many columns on rows are left out, and the confidence.
WAYS = {
    "as they are": (np.inf, None),
    "left out": (0.0, None),
    "left out, .5": (0.0, 0.5),
    "default": (1.0, None),
}
CLEARLY = (1.58, 2.5)
RIVALS = ("linear_post", "menon_williamson_boosted")


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


def sides(name, seed, data_home):
    """Give inputs, labels and groups of the part to fit to and of the validation part."""
    part = inner_split(encoded_split(table(name, seed, data_home), random_state=seed), seed)
    X = (part.X_train, part.y_train, part.z_train), (part.X_test, part.y_test, part.z_test)
    return [tuple(np.asarray(v) for v in side) for side in X]


def figures(y, z, said, feasible):
    """Rate, accuracy, eligible, feasible, below."""
    counts = group_counts(y, said, sensitive_features=z)[1]
    shares = counts.sum(axis=1) / counts.sum(axis=(1, 2))[:, None]
    accuracy, eligible = overall_accuracy(counts), shares.min() >= MIN_SHARE
    below = accuracy < max(np.mean(y), 1 - np.mean(y))
    return np.nan_to_num(RATIO.ratio(counts)), accuracy, eligible, feasible, below


def run(name, seed, data_home):
    """Curves of one split: for each rule rows of rate, accuracy, eligible, feasible, below."""
    X = sides(name, seed, data_home)
    found = {}
    for way, (many, confidence) in WAYS.items():
        with warnings.catch_warnings(), patch("evenhand.models.training.MANY_COLUMNS", many):
            warnings.simplefilter("ignore")
            model = FairClassifier(confidence=confidence, random_state=seed)
            model.fit(*X[0][:2], sensitive_features=X[0][2])
            optimum = model.trajectory_.iterate(model.trajectory_.sources.index("optimum"))
            plain = CLEARLY if way == "as they are" else ()
            for clearly in (None, *plain):
                given = answers(model, X, optimum, clearly)
                rows = [figures(*X[1][1:], said, feasible) for said, feasible in given]
                found[way if clearly is None else f"plain, {clearly}"] = np.array(rows, float).T
    return found


def run_aware(name, seed, data_home):
    """As :func:`run`, where the group is known."""
    X = sides(name, seed, data_home)
    groups = [np.unique(X[0][2]).searchsorted(side[2]) for side in X]
    (rows, y, _), (new, new_y, _) = X
    records = {"a cut per group": PEERS["group_thresholds"]}
    for way in ("pooled", "solver"):
        model = FairClassifier(
            group_cuts=True, confidence=None, method=Method(candidates=way), random_state=seed
        )
        records[way] = replace(PEERS["evenhand_aware"], make=lambda n, s, model=model: model)
    found = {}
    for way, record in records.items():
        choose = fit_all(record, Aim("statistical_parity"), TAUS, seed, rows, y, groups[0])
        own = []
        for tau in TAUS:
            at_tau = choose(tau)
            said = at_tau.predict(new, sensitive_features=groups[1])
            own.append(figures(new_y, groups[1], said, at_tau.feasible_))
        found[way] = np.array(own, float).T
    return found


def run_boosted(name, seed, data_home, rivals):
    """As :func:`run`, of FairBoostedClassifier, and a sixth row: the accuracy out of fold."""
    X = sides(name, seed, data_home)
    (_, y, group), (new, new_y, new_group) = X
    z = np.unique(group, return_inverse=True)[1]
    model = FairBoostedClassifier(confidence=None, random_state=seed)
    model.fit(*X[0][:2], sensitive_features=group)
    fit, raw, new_raw = model.fitted_, model.columns_, model.maker_(new)
    columns, new_columns = model.maker_.scale(raw), model.maker_.scale(new_raw)
    iterates, sources = fit.trajectory.iterates, np.array(fit.trajectory.sources)
    notion = NOTIONS["statistical_parity"](2)

    def swept(weights, rows=slice(None)):
        return sweep(make_oracle(columns[rows], y[rows], z[rows], notion=notion), weights)

    def chosen(choices, weights, clearly=None):
        rate = RATIO.ratio(group_counts(y, raw[:, 1] > 0.5, sensitive_features=z)[1])
        for tau in TAUS:
            point = choices.choose(tau).point
            w = weights[point.iterate]
            said, new_said = (c @ w[:-1] + w[-1] > point.cut for c in (columns, new_columns))
            feasible = point.feasible
            if clearly is not None and rate >= tau:
                plain = raw[:, 1] > 0.5
                better, worse = (
                    np.sum((said == y) & (plain != y)),
                    np.sum((said != y) & (plain == y)),
                )
                if better - worse <= clearly * np.sqrt(better + worse):
                    said, new_said, feasible = plain, new_raw[:, 1] > 0.5, True
            yield (*figures(new_y, new_group, new_said.astype(int), feasible), np.mean(said == y))

    def halves():
        pairs = []
        for half in (model.folds_ % 2 == 0, model.folds_ % 2 == 1):
            own, other = swept(iterates, half), np.flatnonzero(~half)
            cell = 2 * z[other] + y[other]
            counts = count_points(own, iterates, columns[other], None, cell, None, 2)
            pairs.append((own, counts))
        pooled, n = pool_folds(fit.frontier, pairs), len(y)
        about = {"delta": None, "n_rows": n, "n_fitted": n}
        held_out = HeldOut.from_counts(fit.frontier, pooled, fit.target, **about)
        return answer(fit.frontier, held_out, fit.target)

    rules = iterates[sources == "rules"]
    few = answer(swept(rules), None, fit.target)
    # Evenly spaced angles: λ of both signs and any size, in units of the columns as they are.
    angle = np.linspace(-np.pi / 2, np.pi / 2, 103)[1:-1]
    plane = np.zeros((len(angle), columns.shape[1] + 1))
    plane[:, 1], plane[:, 2] = np.cos(angle), -np.sin(angle)
    plane[:, :-1] *= model.scaler_.scale_
    more = np.concatenate([iterates, plane])
    instead = np.concatenate([iterates[sources != "rules"], plane])
    ways = {
        "as they are": (fit.answers, iterates),
        "p, q for rules": (answer(swept(instead), None, fit.target), instead),
        "p and q, pool": (answer(swept(more), None, fit.target), more),
        "plain, 1": (fit.answers, iterates, 1.0),
        "plain, 2": (fit.answers, iterates, 2.0),
        "rules": (few, rules),
        "rules, plain, 1": (few, rules, 1.0),
        "halves": (halves(), iterates),
    }
    found = {way: np.array([*chosen(*given)], float).T for way, given in ways.items()}
    for key in RIVALS if rivals else ():
        given = X[0][0], y, z
        choose = fit_all(PEERS[key], Aim("statistical_parity"), TAUS, seed, *given)
        rows = []
        for tau in TAUS:
            at_tau = choose(tau)
            said = at_tau.predict(new)
            rows.append((*figures(new_y, new_group, said, at_tau.feasible_), at_tau.accuracy_))
        found[PEERS[key].name[:15]] = np.array(rows, float).T
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
        more = ""
        if own.shape[1] > 5:
            less = 1e4 * (own[:, 5] - own[:, 1])[:, TAUS.index(0.8)]
            more = f"  {less.mean():+.0f}±{less.std(ddof=1) / np.sqrt(len(less)):.0f}"
        print(
            f"  {rule:<16}{' '.join(cells)} {rates}  {said.mean():.2f} {below:.3f}{more}",
            flush=True,
        )


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=30)
    parser.add_argument("--tables", nargs="*", default=TABLES, choices=TABLES)
    parser.add_argument("--data-home")
    parser.add_argument("--boosted", action="store_true", help="rules for boosted columns")
    parser.add_argument("--aware", action="store_true", help="a cut for each group")
    parser.add_argument("--no-rivals", action="store_true", help="with --boosted, rules alone")
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    for name in args.tables:
        seeds = range(args.first, args.first + args.splits)
        if args.aware:
            show(name, [run_aware(name, s, args.data_home) for s in seeds])
        elif args.boosted:
            rivals = not args.no_rivals
            show(name, [run_boosted(name, s, args.data_home, rivals) for s in seeds])
        else:
            show(name, [run(name, s, args.data_home) for s in seeds])


if __name__ == "__main__":
    main()
