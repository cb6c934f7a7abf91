"""How sure a target is: where the margin of ``confidence`` comes from, and how often τ holds.

    python benchmarks/confidence.py calibrate [--tables 480] [--jobs 2]
    python benchmarks/confidence.py wide [--tables 12] [--jobs 2]
    python benchmarks/confidence.py boosted [--tables 24] [--selections train crossfit] [--jobs 2]
    python benchmarks/confidence.py report [--splits 20] [--jobs 2] [--out FILE]

``calibrate`` draws tables from many generators (300 to 30,000 rows, 3 to 60 columns, two or three
groups, numbers and codes, clear and noisy labels), fits each once and measures every point that may
be chosen on 60,000 new rows of the same generator. It prints, for the points that are chosen at
some margins, how often their true ratio reaches τ and by how many standard errors the ratio on the
fitted rows is better than the true one: what choosing adds
(``evenhand.statistics.bounds.CHOSEN``). Then it compares rules without a margin: the frontier's
(the most accurate point of all that reaches τ), the one before it (points whose rates are surely
fair first), and points whose rate may be due to chance.

``wide`` draws tables with many columns, of eight factors or independent ones, and compares points
that are chosen on the rows fitted to as they are and as if each had been left out, on 30,000 new
rows: how often τ of .7, .8 and .9 holds, and how far the accuracy and the rate that the fit names
are off.

``boosted`` draws tables of two and three labels and fits ``FairBoostedClassifier`` to them: how
often τ of .5, .7 and .8 holds on 30,000 new rows. By default points are chosen out of fold on the
rows fitted to; ``--selections train crossfit`` compares that with ``selection="crossfit"``, which
takes six times as long.

``report`` is on other tables: 70/30 splits of Adult, COMPAS, German, bank marketing, credit default
and law school, and new draws of ``make_census``, whose truth is measured on a million other rows.
The four that are not in the package are fetched once. A bar that is missed is said.
"""

import argparse
import sys
import warnings
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from sklearn.base import clone

from evenhand import FairBoostedClassifier, FairClassifier, datasets
from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES, Rate, overall_accuracy
from evenhand.frontier.held_out import candidates, count_points
from evenhand.statistics.bounds import margin_of

RATE = RATES["selection_rate"]
NEW_ROWS, TAUS = 60_000, (0.7, 0.8, 0.9)
COLUMNS = ("accuracy", "rate", "error", "true_accuracy", "true_rate")


# ---- generated tables ------------------------------------------------------------------------


def generator(seed):
    """Give the facts of a generator and a function that draws rows of it."""
    rng = np.random.default_rng(seed)
    n = int(rng.choice([400, 1000, 3000, 10_000, 30_000]))
    p = min(int(rng.choice([3, 8, 20, 60])), n // 10)
    k, share = int(rng.choice([2, 2, 2, 3])), float(rng.choice([0.1, 0.3, 0.5]))
    base, gap = float(rng.choice([0.15, 0.3, 0.5])), float(rng.choice([0.3, 0.7, 1.2]))
    noise, codes = float(rng.choice([0.7, 1.5, 3.0])), rng.random(p) < rng.choice([0.3, 1.0])
    mixed = np.linalg.cholesky(np.full((p, p), 0.5) + 0.5 * np.eye(p))
    mixed = mixed if rng.random() < 0.5 else np.eye(p)
    w = 1.5 * rng.normal(size=p) / np.sqrt(p)
    shift = rng.normal(size=(k - 1, p))
    shift *= gap * rng.uniform(0.5, 2) / np.linalg.norm(shift, axis=1, keepdims=True)
    shift = np.vstack([np.zeros(p), shift])

    def scores(rows, rng):
        z = rng.choice(k, size=rows, p=[1 - share, *[share / (k - 1)] * (k - 1)])
        X = rng.normal(size=(rows, p)) @ mixed.T + shift[z]
        s = X @ w - 0.6 * gap * (z > 0)
        X[:, codes] = np.round(X[:, codes])
        return X, s, z

    cut = np.quantile(scores(20_000, np.random.default_rng([seed, 1]))[1], 1 - base)

    def draw(rows, part):
        rng = np.random.default_rng([seed, part])
        X, s, z = scores(rows, rng)
        return X, (s + noise * rng.logistic(size=rows) > cut).astype(int), z

    return {"n": n, "p": p, "groups": k}, draw


def figures(frontier, iterates, X, cell, n_groups):
    """Figures of a frontier's points on the rows fitted to and on new ones."""
    new = count_points(frontier, iterates, X, None, cell, None, n_groups)[:-1]
    counts = frontier.counts
    return pd.DataFrame(
        np.transpose(
            [
                overall_accuracy(counts),
                RATE.ratio(counts),
                RATE.log_ratio_error(counts),
                overall_accuracy(new),
                RATE.ratio(new),
            ]
        ),
        columns=COLUMNS,
    )


def measured(seed):
    """Points of one generated table: candidates, the old order, the frontier at face value."""
    facts, draw = generator(seed)
    X, y, z = draw(facts["n"], 2)
    X_new, y_new, z_new = draw(NEW_ROWS, 3)
    where = (X_new, 2 * z_new + y_new, facts["groups"])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = FairClassifier(min_group_size=1).fit(X, y, sensitive_features=z)
        with (
            patch.object(Rate, "log_ratio_error", lambda _, counts: np.zeros(counts.shape[:-3])),
            patch("evenhand.engines.kernels.has_numba", lambda: False),
        ):
            at_face_value = FairClassifier(min_group_size=1, confidence=None)
            at_face_value.fit(X, y, sensitive_features=z)
    front, iterates = model.frontier_, model.trajectory_.iterates
    points = figures(candidates(front), iterates, *where)
    return facts, {
        "candidates": points,
        "sure first": points.iloc[: len(front.conservative)],
        "face value": figures(at_face_value.frontier_, at_face_value.trajectory_.iterates, *where),
    }


def chosen(points, tau, margin=0.0):
    """Give the most accurate point that reaches τ by the margin; None without one."""
    found = points[points["rate"] * np.exp(-margin * points["error"]) >= tau]
    return None if found.empty else found.loc[found["accuracy"].idxmax()]


def calibrate(args):
    jobs = (delayed(measured)(seed) for seed in range(args.tables))
    tables = Parallel(n_jobs=args.jobs)(jobs)
    rows = []
    for facts, sets in tables:
        points = sets["candidates"]
        for tau in TAUS:
            for margin in (0.0, 1.0, margin_of(0.8), margin_of(0.9), margin_of(0.95)):
                best = chosen(points, tau, margin)
                # Where the most accurate of all reaches τ there is nothing to choose.
                if best is None or best["accuracy"] >= points["accuracy"].max() - 1e-9:
                    continue
                excess = np.log(best["rate"] / best["true_rate"]) / best["error"]
                holds = best["true_rate"] >= tau
                rows.append({**facts, "tau": tau, "margin": margin, "excess": excess, "ok": holds})
    found = pd.DataFrame(rows)
    print(f"{len(tables)} generated tables, τ of {TAUS}; choices where τ costs accuracy\n")
    for by in ("margin", ["margin", "n"], ["margin", "p"], ["margin", "groups"]):
        table = found.groupby(by).agg(
            choices=("ok", "size"), holds=("ok", "mean"), excess=("excess", "mean"),
            spread=("excess", "std"),
        )  # fmt: skip
        print(table.round(2).to_string(), "\n")
    rules(tables)


def rules(tables):
    """Compare rules without a margin where they differ, on new rows."""
    rows = []
    for _, sets in tables:
        for tau in (0.5, 0.6, *TAUS, 0.95):
            now = chosen(sets["candidates"], tau)
            before = chosen(sets["sure first"], tau)
            before = now if before is None else before
            face_value = chosen(sets["face value"], tau)
            for rule, best in (("all", now), ("sure first", before), ("face value", face_value)):
                if best is not None:
                    differs = now is not None and now["accuracy"] != before["accuracy"]
                    rows.append({"tau": tau, "rule": rule, "differs": differs, **best})
    found = pd.DataFrame(rows)
    found["holds"] = found["true_rate"] >= found["tau"]
    print("Rules without a margin, on new rows")
    shown = ["true_accuracy", "true_rate", "holds"]
    print(found.groupby(["tau", "rule"])[shown].mean().round(4).to_string(), "\n")
    print("Only where the rule before and the one now differ")
    part = found[found["differs"]]
    print(part.groupby("rule")[shown].agg(["mean"]).round(4).to_string(), len(part) // 3, "choices")


# ---- many columns ----------------------------------------------------------------------------

# Kind of columns, rows, columns, notion, groups.
WIDE = [
    ("8 factors", 2100, 200, "statistical_parity", 2),
    ("8 factors", 5000, 200, "statistical_parity", 2),
    ("8 factors", 2100, 100, "statistical_parity", 2),
    ("8 factors", 10_000, 100, "statistical_parity", 2),
    ("independent", 2100, 200, "statistical_parity", 2),
    ("independent", 1000, 60, "statistical_parity", 2),
    ("independent", 700, 20, "statistical_parity", 2),
    ("8 factors", 4000, 100, "equalized_odds", 2),
    ("8 factors", 4000, 100, "statistical_parity", 3),
    ("8 factors", 5000, 40, "statistical_parity", 2),
    ("8 factors", 20_000, 100, "statistical_parity", 2),
]


def wide_rows(case, rows, columns, n_groups, rng):
    """Rows of a wide table; what does not change between draws comes with ``columns``."""
    mixing, weights = columns
    z = rng.choice(n_groups, size=rows, p=[0.6, 0.4] if n_groups == 2 else [0.5, 0.3, 0.2])
    n = len(mixing) if case == "8 factors" else len(weights)
    inputs = rng.normal(size=(rows, n))
    for group in range(1, n_groups):
        inputs[z == group, 3 * group - 3 : 3 * group] += 0.7 if case == "8 factors" else 0.9
    if case == "8 factors":
        score = inputs @ np.linspace(1.2, -0.6, n) - 0.8
        inputs = inputs @ mixing + 0.5 * rng.normal(size=(rows, mixing.shape[1]))
    else:
        score = inputs @ weights - 0.3
    return inputs, (score + rng.logistic(size=rows) > 0).astype(int), z


def wide_run(case, seed):
    """Fit one table both ways; a row for each τ."""
    kind, n, d, notion, n_groups = case
    rng = np.random.default_rng([seed, n, d])
    weights = rng.normal(size=d)
    weights[:6] = np.abs(weights[:6]) + 0.5
    columns = rng.normal(size=(8, d)), 1.5 * weights / np.linalg.norm(weights)
    X, y, z = wide_rows(kind, n, columns, n_groups, rng)
    X_new, y_new, z_new = wide_rows(kind, 30_000, columns, n_groups, rng)
    rows = []
    for name, least in (("as they are", np.inf), ("left out", 0.0)):
        with warnings.catch_warnings(), patch("evenhand.models.training.MANY_COLUMNS", least):
            warnings.simplefilter("ignore")
            model = FairClassifier(notion, min_group_size=1).fit(X, y, sensitive_features=z)
            for tau in (0.7, 0.8, 0.9):
                at = model.at(tau)
                _, counts = group_counts(y_new, at.predict(X_new), sensitive_features=z_new)
                rate, accuracy = float(at.target_.value(counts)), overall_accuracy(counts)
                about = {"case": " ".join(map(str, case)), "judged": name, "holds": rate >= tau}
                about |= {"accuracy": accuracy, "too good": at.accuracy_ - accuracy}
                about |= {"rate too good": at.rate_ - rate, "reached": at.point_.feasible}
                rows.append(about)
    return rows


def wide(args):
    jobs = (delayed(wide_run)(case, seed) for case in WIDE for seed in range(min(args.tables, 99)))
    table = pd.DataFrame([row for rows in Parallel(n_jobs=args.jobs)(jobs) for row in rows])
    reached = table.groupby(["case", "judged"], sort=False)["reached"].mean()
    means = table[table["reached"]].groupby(["case", "judged"], sort=False)
    means = means[["holds", "accuracy", "too good", "rate too good"]].mean()
    print(f"{min(args.tables, 99)} tables of each kind, confidence 0.9")
    print(means.assign(reached=reached).round(3).to_string())


# ---- boosted ---------------------------------------------------------------------------------

# Rows, groups, shares of the labels.
BOOSTED = [
    (3500, 5, (0.3, 0.4, 0.3)),
    (3500, 2, (0.6, 0.3, 0.1)),
    (3500, 5, (0.5, 0.5)),
    (3500, 2, (0.5, 0.5)),
]


def boosted_rows(rows, n_groups, shares, kind, rng):
    """Rows of a table with bends and products; ``kind`` is the seed of what all its rows share."""
    of = np.random.default_rng([kind, n_groups])
    weights, shift = of.normal(size=8), 0.5 * of.normal(size=(n_groups, 8))
    z = rng.choice(n_groups, size=rows, p=[0.5, *[0.5 / (n_groups - 1)] * (n_groups - 1)])
    inputs = rng.normal(size=(rows, 8)) + shift[z]
    score = 0.5 * inputs @ weights + 0.7 * np.abs(inputs[:, 0]) - 0.6 * inputs[:, 1] * inputs[:, 2]
    score += rng.logistic(size=rows) - 0.4 * (z > 0)
    return inputs, score, z


def boosted_run(case, seed, selections):
    """Fit one table with each selection; a row for each τ."""
    n, n_groups, shares = case
    draws = (boosted_rows(m, n_groups, shares, seed, np.random.default_rng([seed, m]))
             for m in (n, 30_000))  # fmt: skip
    (X, score, z), (X_new, score_new, z_new) = draws
    edges = np.quantile(score_new, np.cumsum(shares)[:-1])
    y, y_new = np.digitize(score, edges), np.digitize(score_new, edges)
    rows, k = [], len(shares)
    for selection in selections:
        model = FairBoostedClassifier(selection=selection, random_state=seed, n_jobs=1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            columns = model.fit(X, y, sensitive_features=z).columns(X_new)
            for tau in (0.5, 0.7, 0.8):
                at = model.at(tau)
                cell = (z_new * k + y_new) * k + at.classifier_.predict(columns)
                counts = np.bincount(cell, minlength=n_groups * k * k).reshape(n_groups, k, k)
                rate, accuracy = float(at.target_.value(counts)), overall_accuracy(counts)
                about = {"case": f"{n} rows, {n_groups} groups, labels {shares}"}
                about |= {"selection": selection, "holds": rate >= tau, "accuracy": accuracy}
                about |= {"rate too good": at.rate_ - rate, "reached": at.point_.feasible}
                rows.append(about)
    return rows


def boosted(args):
    tables = min(args.tables, 24)
    for case in BOOSTED:
        jobs = (delayed(boosted_run)(case, seed, args.selections) for seed in range(tables))
        table = pd.DataFrame([row for rows in Parallel(n_jobs=args.jobs)(jobs) for row in rows])
        groups = ["case", "selection"]
        means = table[table["reached"]].groupby(groups)[["holds", "accuracy", "rate too good"]]
        reached = table.groupby(groups)["reached"].agg(["mean", "sum"])
        print(means.mean().join(reached).round(3).to_string(header=case is BOOSTED[0]), flush=True)


# ---- the report ------------------------------------------------------------------------------

TABLES = {
    "census": None,
    "adult": datasets.load_adult,
    "compas": datasets.fetch_compas,
    "german": datasets.load_german,
    "bank": datasets.fetch_bank,
    "credit default": datasets.fetch_credit_default,
    "law school": datasets.fetch_law_school,
}
# Seeds that no calibration has seen; the truth has one of its own.
FIRST_SEED, TRUTH_SEED, CENSUS_ROWS = 5000, 10**6, 30_000


def split(name, seed, args):
    """Rows to fit to and rows to judge on."""
    if name != "census":
        return datasets.encoded_split(TABLES[name](), random_state=seed)
    fitted, new = (
        datasets.make_census(n, random_state=s)
        for n, s in ((CENSUS_ROWS, FIRST_SEED + seed), (args.truth, TRUTH_SEED))
    )
    other = datasets.make_census(CENSUS_ROWS, random_state=TRUTH_SEED + 1)
    encoder = clone(other.encoder).fit(other.data)
    X, X_new = (encoder.transform(part.data) for part in (fitted, new))
    z, z_new = (np.asarray(part.sensitive_features) for part in (fitted, new))
    return X, X_new, fitted.target, new.target, z, z_new


def run(name, seed, args):
    X, X_new, y, y_new, z, z_new = split(name, seed, args)
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for confidence in (None, 0.9):
            model = FairClassifier(confidence=confidence, random_state=seed)
            model.fit(X, y, sensitive_features=z)
            for tau in (0.8, 0.9):
                at = model.at(tau)
                _, counts = group_counts(y_new, at.predict(X_new), sensitive_features=z_new)
                about = {"table": name, "tau": tau, "confidence": confidence or "none"}
                ratio = float(RATE.ratio(counts))
                rows.append(
                    about
                    | {"holds": ratio >= tau, "rate": ratio, "feasible": at.feasible_}
                    | {"accuracy": float(overall_accuracy(counts))}
                )
    return rows


def report(args):
    jobs = [(name, seed) for name in args.only or TABLES for seed in range(args.splits)]
    found = Parallel(n_jobs=args.jobs)(delayed(run)(*job, args) for job in jobs)
    table = pd.DataFrame([row for rows in found for row in rows])
    lines = [
        f"{args.splits} runs of each table. In brackets: the standard deviation over the runs.",
        "",
        "| table | τ | `confidence` | rate ≥ τ | rate | accuracy | feasible |",
        "|---|---|---|---|---|---|---|",
    ]
    for (name, tau, sure), part in table.groupby(["table", "tau", "confidence"], sort=False):
        rate, accuracy = part["rate"], part["accuracy"]
        lines.append(
            f"| {name} | {tau:g} | {sure} | {part['holds'].mean():.0%} | "
            f"{rate.mean():.3f} ({rate.std(ddof=0):.3f}) | "
            f"{accuracy.mean():.4f} ({accuracy.std(ddof=0):.4f}) | {part['feasible'].mean():.0%} |"
        )
    lines.append("")
    good = True
    for name, part in table[table["confidence"] == 0.9].groupby("table", sort=False):
        holds, (low, high) = part["holds"].mean(), (0.85, 0.97) if name == "census" else (0.65, 1)
        good &= low <= holds <= high
        lines.append(
            f"- {name}: τ holds in {holds:.0%} of the runs, {low:.0%} to {high:.0%} is asked for: "
            f"{'ok' if low <= holds <= high else 'MISSED'}."
        )
        if name == "adult":
            means = table[table["table"] == name].groupby("confidence")["accuracy"].mean()
            loss = means["none"] - means[0.9]
            good &= loss <= 0.002
            lines[-1] += (
                f" {loss:.4f} less accuracy than the paper's rule, at most 0.002: "
                f"{'ok' if loss <= 0.002 else 'MISSED'}."
            )
    text = "\n".join(lines) + "\n"
    print(text)
    if args.out is not None:
        args.out.write_text(text, encoding="utf-8")
    sys.exit(int(not good))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["calibrate", "wide", "boosted", "report"])
    parser.add_argument("--tables", type=int, default=480, help="generated")
    parser.add_argument("--selections", nargs="*", default=["train"], help="of boosted fits")
    parser.add_argument("--splits", type=int, default=20, help="of each table")
    parser.add_argument("--truth", type=int, default=10**6, help="rows that the truth is from")
    parser.add_argument("--only", nargs="*", choices=list(TABLES), help="tables of the report")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="file for the table of the report")
    args = parser.parse_args()
    {"calibrate": calibrate, "wide": wide, "boosted": boosted, "report": report}[args.what](args)


if __name__ == "__main__":
    main()
