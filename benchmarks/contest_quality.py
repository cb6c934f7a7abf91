"""The contest: evenhand and its rivals on many tables, level, above or below, with their errors.

    python benchmarks/contest_quality.py --cache FOLDER [--tables ...] [--methods ...] [--seeds 10]

Splits are 70/30, stratified on label and group; methods get the columns as the table's encoder
gives them, fitted on the training part; the sensitive attribute is no input. Every method has its
defaults and is chosen for τ on the training part; figures are on the test part. Accuracy at a rate
is read from the mean test curve over τ (without τ = 1): by linear interpolation, or at a fairer
point that is more accurate; points that on half of the splits leave a group less than 1% yes or no
are left out. Differences between two methods are paired, their standard errors by the jackknife
over splits. *Below* is below by two standard errors and by 0.001.

Each fit is a process of its own with one thread and leaves one file in the cache; what is there is
not run again, so that a run can be stopped, continued and shared between machines (``--run-only``
there; copy the caches together). Start a new cache when the code has changed. ``--methods`` takes
names of ``evenhand.peers.PEERS`` or of a league; ``--data-home`` a folder of tables fetched before
(``--fetch`` fills it); ``--error-parity`` the Python of the environment that
``benchmarks/contest_error_parity.py`` makes. ``--page`` writes the figures into a page between its
two marks, ``--pictures`` draws each table. Needs ``pip install '.[fast,peers,plot]'``.
"""

import argparse
import json
import multiprocessing
import os
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pandas as pd
from contest_field import (
    AWARE,
    FOR_ODDS,
    LEAGUES,
    METHODS,
    ODDS,
    PARITY,
    RATES,
    TABLES,
    TAUS,
    TOLERANCES,
    table,
)
from contest_page import Curves, fill, judge, page
from threadpoolctl import threadpool_limits

from evenhand import FairBoostedClassifier
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import overall_accuracy
from evenhand.datasets import encoded_split
from evenhand.peers._baselines import group_curve
from evenhand.peers._fit import MIN_SHARE, Aim, fit_all
from evenhand.peers._out_of_fold import fold_models, mean_proba


def figures(counts, record):
    rate, accuracy = record.rate.ratio(counts), overall_accuracy(counts)
    return float(accuracy), float(rate), bool(record.eligible(counts, MIN_SHARE))


def unprocessed(model, X, y, z, aware):
    """Test accuracy of the model's own score with the group cuts best for accuracy in training.

    Cruz and Hardt (2024): what a method's score is worth with its fairness undone.
    """
    ends = [{"sensitive_features": g} if aware else {} for g in z]
    if hasattr(model, "decision_function"):
        scores = [model.decision_function(part, **end) for part, end in zip(X, ends, strict=True)]
    elif hasattr(model, "predict_proba"):
        scores = [model.predict_proba(part, **end)[:, 1] for part, end in zip(X, ends, strict=True)]
    else:
        return np.nan
    right = 0
    for group in np.unique(z[0]):
        train, test = (v == group for v in z)
        curve = group_curve(scores[0][train], y[0][train], np.ones(train.sum()))
        best = curve.cut[np.argmax(curve.counts[:, 0, 0] + curve.counts[:, 1, 1])]
        right += int(np.sum((scores[1][test] > best) == (y[1][test] == 1)))
    return right / len(y[1])


def error_parity(python, seed, X, y, z):
    """Answers of error-parity on out-of-fold scores of the default booster, by tolerance."""
    rows = SimpleNamespace(X=X[0], y=y[0], z=z[0], weight=None)
    models, train = fold_models(None, rows, y[0], 5, seed)
    with tempfile.TemporaryDirectory() as folder:
        scores, results = Path(folder) / "scores.npz", Path(folder) / "results.json"
        np.savez(
            scores,
            train=train[:, 1],
            test=mean_proba(models, X[1], 2)[:, 1],
            tolerances=np.array(TOLERANCES),
            **{
                f"{n}_{p}": v[i]
                for n, v in zip("yz", (y, z), strict=True)
                for i, p in ((0, "train"), (1, "test"))
            },
        )
        script = Path(__file__).with_name("contest_error_parity.py")
        subprocess.run([python, script, scores, results], check=True, capture_output=True)  # noqa: S603
        found = json.loads(results.read_text(encoding="utf-8"))
    return {float(key): [np.array(a["train"]), np.array(a["test"])] for key, a in found.items()}


class Remembered:
    """Makes the columns of boosted models once for each part, whatever τ they answer for."""

    def __init__(self, maker):
        self.maker, self.made = maker, {}

    def __getattr__(self, name):
        return getattr(self.maker, name)

    def __call__(self, X, z):
        """Give the columns of a part, which is told by its size."""
        if len(X) not in self.made:
            self.made[len(X)] = self.maker(X, z)
        return self.made[len(X)]


def fit_and_measure(key, notion, seed, X, y, z, python):
    """Rows of one method on one split, a row for each τ."""
    record = NOTIONS[notion](2)
    memory, start, cpu = resident(), time.perf_counter(), time.process_time()
    if key == "error_parity":
        children = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        answers = error_parity(python, seed, X, y, z)
        cpu -= resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - children
        models = dict.fromkeys(answers)
    else:
        choose = fit_all(METHODS[key], Aim(notion), TAUS, seed, X[0], y[0], z[0])
        models = {tau: choose(tau) for tau in TAUS}
    took = {
        "seconds": time.perf_counter() - start,
        "cpu": time.process_time() - cpu,
        "memory_mib": max(0.0, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - memory),
    }
    boosted = [m for m in models.values() if isinstance(m, FairBoostedClassifier)]
    makers = [Remembered(m.maker_) for m in boosted[:1]]
    for model in boosted:
        model.maker_ = makers[0]
    rows = []
    for tau, model in models.items():
        aware = key in AWARE
        row = {"tau": tau, **took}
        for i, where in enumerate(("train_", "")):
            group = {"sensitive_features": z[i]} if aware else {}
            given = answers[tau][i] if model is None else model.predict(X[i], **group)
            counts = group_counts(y[i], given, sensitive_features=z[i])[1]
            row[f"{where}accuracy"], row[f"{where}rate"], row["eligible"] = figures(counts, record)
        row["feasible"] = getattr(model, "feasible_", np.nan)
        if tau == RATES[0] and model is not None:
            row["unprocessed"] = unprocessed(model, X, y, z, aware)
        rows.append(row)
    return rows


def resident():
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def cached(args, job):
    return args.cache / f"{'-'.join(map(str, job))}.csv"


def run(work):
    """Run one job in this process and keep its rows."""
    args, job = work
    name, key, notion, seed = job
    warnings.simplefilter("ignore")
    os.environ["OMP_NUM_THREADS"] = "1"  # for libraries that are loaded later
    threadpool_limits(1)
    start = time.perf_counter()
    try:
        part = encoded_split(table(name, seed, args.data_home), random_state=seed)
        X = [np.ascontiguousarray(p, dtype=np.float64) for p in (part.X_train, part.X_test)]
        y = [np.asarray(p) for p in (part.y_train, part.y_test)]
        codes = {group: i for i, group in enumerate(sorted(set(part.z_train)))}
        z = [np.array([codes[g] for g in p]) for p in (part.z_train, part.z_test)]
        rows, error = fit_and_measure(key, notion, seed, X, y, z, args.error_parity), ""
    except (Exception, SystemExit) as failure:  # one failure must not cost the others' results
        text = " ".join(str(failure).split())[:300]
        rows, error = [{"tau": tau} for tau in TAUS], f"{type(failure).__name__}: {text}"
    about = dict(zip(("table", "key", "notion", "split"), job, strict=True))
    path = cached(args, job)
    path.parent.mkdir(parents=True, exist_ok=True)
    columns = ["accuracy", "rate", "train_accuracy", "train_rate", "eligible", "feasible"]
    columns += ["unprocessed", "seconds", "cpu", "memory_mib"]
    frame = pd.DataFrame([{**about, **row, "error": error} for row in rows])
    frame = frame.reindex(columns=[*about, "tau", *columns, "error"])
    frame.to_csv(path.with_suffix(".part"), index=False)
    path.with_suffix(".part").replace(path)
    return job, time.perf_counter() - start, error


def run_all(args, jobs):
    wanted = [job for job in jobs if not cached(args, job).exists()]
    print(f"{len(jobs)} fits, {len(jobs) - len(wanted)} of them in {args.cache}", file=sys.stderr)
    # A process for each fit: its peak of memory is its own. Forked, it need not import anything.
    context = multiprocessing.get_context("fork")
    with context.Pool(args.jobs, maxtasksperchild=1) as pool:
        for job, seconds, error in pool.imap_unordered(run, [(args, job) for job in wanted]):
            print(f"  {' '.join(map(str, job))}: {seconds:.1f} s {error}", file=sys.stderr)


def draw(names, results, folder):
    import matplotlib as mpl

    mpl.use("Agg")
    from evenhand.views.plots import ComparisonDisplay

    for name in names:
        frames = [
            r.frame.assign(method=METHODS[k].name, needs_group=k in AWARE, ineligible="")
            for (n, notion, k), r in results.items()
            if n == name and notion == PARITY
        ]
        rows = pd.concat(frames, ignore_index=True)
        rows.attrs["rate_name"] = "statistical rate"
        display = ComparisonDisplay(rows).plot()
        display.ax_.set_title(name, loc="left")
        display.figure_.savefig(folder / f"{name}.png", dpi=130)


def read_points(path):
    return pd.read_csv(path, dtype={"error": str}).fillna({"error": ""})


def load(args, jobs):
    frames = [read_points(p) for job in jobs if (p := cached(args, job)).exists()]
    if not frames:
        sys.exit("the cache has nothing of these jobs; run them first.")
    frame = pd.concat(frames, ignore_index=True)
    results = {}
    for place, rows in frame.groupby(["table", "notion", "key"], sort=False):
        results[place] = Curves(rows)
        results[place].frame = rows
    return results


def chosen_methods(words, error_parity):
    keys = []
    for word in words:
        if word in LEAGUES:
            keys += [*LEAGUES[word][0], *LEAGUES[word][1]]
        elif word in METHODS:
            keys.append(word)
        else:
            sys.exit(f"--methods {word}: choose from {', '.join([*LEAGUES, *METHODS])}.")
    return [k for k in dict.fromkeys([*keys, "constant"]) if k != "error_parity" or error_parity]


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="a file for each fit")
    parser.add_argument("--data-home", type=Path, help="folder of the fetched tables")
    parser.add_argument("--tables", nargs="*", choices=TABLES, default=TABLES)
    parser.add_argument("--methods", nargs="*", default=list(LEAGUES), help="leagues or methods")
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument(
        "--quick", action="store_true", help="two splits of three small tables, linear"
    )
    parser.add_argument("--fetch", action="store_true", help="only fetch the tables")
    parser.add_argument("--run-only", action="store_true", help="only fill the cache")
    parser.add_argument("--print-only", action="store_true", help="only read the cache")
    parser.add_argument("--error-parity", metavar="PYTHON", help="of its own environment")
    parser.add_argument("--page", type=Path, help="page to write the figures into")
    parser.add_argument("--pictures", type=Path, metavar="FOLDER")
    return parser.parse_args()


def main():
    args = options()
    if args.quick:
        args.tables, args.seeds, args.methods = ["compas", "german", "tiny"], 2, ["linear"]
    if args.fetch:
        for name in args.tables:
            print(name, table(name, 0, args.data_home).data.shape)
        return
    keys = chosen_methods(args.methods, args.error_parity)
    jobs = [(n, k, PARITY, seed) for seed in range(args.seeds) for n in args.tables for k in keys]
    if "adult" in args.tables:
        jobs += [
            ("adult", k, ODDS, seed) for seed in range(args.seeds) for k in FOR_ODDS if k in keys
        ]
    if not args.print_only:
        run_all(args, jobs)
    if args.run_only:
        return
    results = load(args, jobs)
    names = [n for n in args.tables if any(place[0] == n for place in results)]
    verdicts, judged, ok = judge(names, results)
    text = page(names, keys, results, verdicts, judged)
    print(text)
    if args.page:
        fill(args.page, text)
    if args.pictures:
        draw(names, results, args.pictures)
    sys.exit(0 if ok else 1)


if __name__ == "__main__":
    main()
