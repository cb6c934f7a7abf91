"""The saddle-point methods and the paths side by side, all with their defaults: the docs' table.

    python benchmarks/methods.py [adult compas german rho] [--notion NAME] [--max-iter 60]

Splits are 70/30, stratified on label and group; points are selected on training data, for many τ;
figures are on test data. A method's curve goes through its mean test rates and accuracies over the
splits, τ by τ, and is read at a rate by a local line (``read``), alike for all. Printed are the
reading with its standard deviation over the splits and, in units of 0.0001, its difference to the
default's on the same splits with the standard error. The mixture's figures are expectations,
nothing is drawn. A pass evaluates all rows once; passes and seconds are medians.

Every method but the default has its own iterates alone (``candidates="solver"``).

A method wins on a table if it is better than the default by more than two standard errors at one
rate at least, and at no rate worse by as much. ``--validation`` splits the training parts once more
and never looks at test rows. Writes ``methods.md`` and every run as a csv, by default where the
documentation finds it; runs that the csv holds already are not done again. COMPAS is fetched once.
"""

import argparse
import time
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
from inner import inner_split
from joblib import Parallel, delayed

from evenhand import FairClassifier, Method
from evenhand.core.groups import group_codes
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import RATES
from evenhand.datasets import (
    encoded_split,
    fetch_compas,
    load_adult,
    load_german,
    with_correlation,
)
from evenhand.models.progress import job_bar

DEFAULT, MIXED = "AGD modified, pooled (default)", "EG averaging"
METHODS = {
    DEFAULT: {},
    "AGD modified": {},
    "GD modified": {"solver": "gd"},
    "AGD normal": {"update": "normal"},
    "extragradient": {"solver": "extragradient"},
    "optimistic": {"solver": "optimistic"},
    "conflict-only projection": {"update": "conflict"},
    "soft-rate path": {"solver": "soft_rate"},
    "cost-sensitive path": {"solver": "cost_sensitive"},
    MIXED: None,  # of the default's points
}
TITLES = {
    "adult": "Adult (`full`)",
    "compas": "COMPAS",
    "german": "German credit",
    "rho": "Adult, ρ = 0.5",
}
RATES_READ = (0.80, 0.90, 0.95)
WINDOW = 0.04
TAUS = (*np.arange(30, 70, 5) / 100, *np.arange(70, 99, 1) / 100, 0.99, 0.995, 0.999)
COLUMNS = ["split", "method", "tau", "accuracy", "rate", "eligible", "passes", "seconds"]


def load(name, seed, validation):
    """One split of a table, or of its training part."""
    data = {"compas": fetch_compas, "german": load_german}.get(name, load_adult)()
    target = None
    if name == "rho":
        target = with_correlation(data.target, data.sensitive_features, 0.5, random_state=seed)
    part = encoded_split(data, target=target, random_state=seed)
    return inner_split(part, seed) if validation else part


def expected_counts(model, part):
    """Group × label × prediction on the test part; a mixture's in expectation."""
    if not hasattr(model, "weights_"):
        prediction = model.predict(part.X_test)
        return group_counts(part.y_test, prediction, sensitive_features=part.z_test)[1]
    groups, codes = group_codes(part.z_test)
    cell = codes * 2 + np.asarray(part.y_test)
    p = model.predict_proba(part.X_test)
    sums = [np.bincount(cell, weights=q, minlength=2 * len(groups)) for q in p.T]
    return np.stack(sums, axis=-1).reshape(len(groups), 2, 2)


def run(name, seed, notion, validation, max_iter):
    """Rows of the csv for one split: every method, every τ."""
    part, measured, rows = load(name, seed, validation), NOTIONS[notion](2), []
    models = {}
    for method, params in METHODS.items():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            if method == MIXED:
                model = models[DEFAULT]
                answers = [model.averaged(tau) for tau in TAUS]
                # One fit, and one mixture.
                extra = (time.perf_counter() - start) / len(TAUS)
                seconds = extra + rows[0]["seconds"]
            else:
                candidates = "pooled" if method == DEFAULT else "solver"
                record = Method(max_iter=max_iter, candidates=candidates, **params)
                model = models[method] = FairClassifier(notion, method=record, confidence=None)
                model.fit(part.X_train, part.y_train, sensitive_features=part.z_train)
                seconds = time.perf_counter() - start
                answers = [model.at(tau) for tau in TAUS]
        passes = int(model.trajectory_.to_frame()["evaluations"].iloc[-1])
        for tau, answer in zip(TAUS, answers, strict=True):
            counts = expected_counts(answer, part)
            rows.append(
                {
                    "split": seed,
                    "method": method,
                    "tau": tau,
                    "accuracy": float(RATES["accuracy"].per_group(counts.sum(axis=0))),
                    "rate": float(measured.rate.ratio(counts)),
                    "eligible": bool(measured.eligible(counts, Method().min_share)),
                    "passes": passes,
                    "seconds": seconds,
                }
            )
    return rows


def variant(args):
    """Name of other than the default settings, for files."""
    budget = f"-{args.max_iter}" * (args.max_iter != Method().max_iter)
    return budget + "-validation" * args.validation


def study(name, n_splits, args):
    """Do the splits that are not in the csv yet; give those asked for."""
    path = args.out / f"{name}-{args.notion}{variant(args)}.csv"
    known = pd.read_csv(path) if path.exists() else pd.DataFrame(columns=COLUMNS)
    seeds = [seed for seed in range(n_splits) if seed not in set(known["split"])]
    if seeds:
        pool = Parallel(n_jobs=args.jobs, return_as="generator_unordered")
        options = (args.notion, args.validation, args.max_iter)
        calls = (delayed(run)(name, seed, *options) for seed in seeds)
        with job_bar(1, len(seeds)) as advance:
            for rows in pool(calls):
                frame = pd.DataFrame(rows)[COLUMNS]
                frame.to_csv(path, mode="a", header=not path.exists(), index=False)
                advance(f"{name}, split {rows[0]['split']}")
        known = pd.read_csv(path)
    return known[known["split"] < n_splits]


def read(part, at):
    """Accuracy of a method at a rate on each split, by its curve through the means over the splits.

    With R and A the mean rate and accuracy of each τ, the curve at a rate is the local line through
    the points within WINDOW of it, and one on either side: the sum of l_k A_k, of slope b, with
    weights l that make the sum of l_k R_k the rate. A split's share in it is the sum of
    l_k (A_ik - b (R_ik - R_k)): what its accuracy would be at the rate itself. No point is picked
    for being good on test data. Where the least τ is as fair already, nothing is given up, and its
    accuracy counts; NaN where the curve does not reach.
    """
    part = part.assign(eligible=part["eligible"].astype(float))
    accuracy, rate, eligible = (
        part.pivot_table(index="split", columns="tau", values=v, dropna=False).to_numpy()
        for v in ("accuracy", "rate", "eligible")
    )
    kept = (eligible.mean(axis=0) >= 0.5) & np.isfinite(rate).all(axis=0)
    accuracy, rate = accuracy[:, kept], rate[:, kept]
    R = rate.mean(axis=0)
    if not len(R) or R.max() < at:
        return np.full(len(accuracy), np.nan)
    if R[0] >= at:
        return accuracy[:, 0]
    # A curve that jumps over the rate has no point so near: then the neighbours on either side.
    off = R - at
    gap = max(-off[off <= 0].max(), off[off >= 0].min())
    near = np.maximum(1 - np.abs(off) / max(WINDOW, 1.01 * gap), 0.0)
    centre = near @ R / near.sum()
    spread = near @ (R - centre) ** 2
    line = near / near.sum()
    if spread > 1e-8:
        line = line + (at - centre) * near * (R - centre) / spread
        slope = near * (R - centre) @ accuracy.mean(axis=0) / spread
    else:
        slope = 0.0
    return (accuracy - slope * (rate - R)) @ line


def mark(difference, error):
    """Say whether a difference is beyond two standard errors, and large enough to be printed."""
    if abs(difference) < 0.5e-4:
        return ""
    return "▲" if difference > 2 * error else "▼" if difference < -2 * error else ""


def markdown(name, table, lines, wins):
    """Add a table's rows to the lines, and the methods that win on it to ``wins``."""
    found = {
        method: [read(part, rate) for rate in RATES_READ]
        for method, part in table.groupby("method")
    }
    n = table["split"].nunique()
    cost = table.groupby("method")[["passes", "seconds"]].median()
    for method in METHODS:
        marks, cells = [], []
        for values, default in zip(found[method], found[DEFAULT], strict=True):
            if np.isnan(values).any():
                cells.append("–")
                continue
            text = f"{values.mean():.4f} ± {values.std(ddof=1):.4f}"
            paired = values - default
            if method != DEFAULT and not np.isnan(paired).any():
                difference, error = paired.mean(), paired.std(ddof=1) / np.sqrt(n)
                marks.append(mark(difference, error))
                text += f" ({1e4 * difference:+.0f} ± {1e4 * error:.0f}){marks[-1]}"
            cells.append(text)
        cells += [f"{cost.loc[method, 'passes']:.0f}", f"{cost.loc[method, 'seconds']:.2f}"]
        lines.append(f"| {TITLES[name]} | {method} | {' | '.join(cells)} |")
        if "▲" in marks and "▼" not in marks:
            wins.setdefault(method, []).append(name)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=list(TITLES), help="which tables")
    parser.add_argument("--splits", type=int, default=10, help="of Adult")
    parser.add_argument("--small-splits", type=int, default=20, help="of COMPAS and German")
    parser.add_argument("--notion", default="statistical_parity")
    parser.add_argument("--max-iter", type=int, default=Method().max_iter)
    parser.add_argument("--validation", action="store_true")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "notes/methods")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    rates = " | ".join(f"at {rate:.2f}" for rate in RATES_READ)
    lines, wins = (
        [f"| data | method | {rates} | passes | seconds |", "|---|---|---|---|---|---|---|"],
        {},
    )
    for name in args.datasets:
        n_splits = args.small_splits if name in ("compas", "german") else args.splits
        markdown(name, study(name, n_splits, args), lines, wins)
    everywhere = [m for m, names in wins.items() if set(names) == set(args.datasets)]
    lines += ["", "Wins by method: "]
    lines[-1] += (
        "; ".join(f"{m}: {', '.join(TITLES[name] for name in names)}" for m, names in wins.items())
        or "none"
    )
    answer = ", ".join(everywhere) or "no method"
    lines[-1] += f". On all {len(args.datasets)} tables: **{answer}**."
    text = "\n".join(lines) + "\n"
    suffix = "" if args.notion == "statistical_parity" else f"-{args.notion}"
    (args.out / f"methods{suffix}{variant(args)}.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
