"""FairAdjusted on the default booster's scores, beside what else adjusts a model's scores.

    python benchmarks/adjusted.py --cache FOLDER [--tables adult compas bank credit_default]

Splits, readings and the cache are those of ``benchmarks/contest_quality.py``, and so are
``--data-home`` and ``--error-parity``. Asked for: in no cell of a table and a test rate of .80, .90
and .95 is FairAdjusted below a rival by two standard errors of the paired difference, without the
group LinearPost and OxonFair, with it error-parity and fairlearn's ThresholdOptimizer. A cell that
only the rival reaches is a loss; readings that one answer to everybody beats by .001 do not count.
Needs ``pip install '.[fast,boost,peers]'``.
"""

import argparse
import os
import sys
from pathlib import Path

import numpy as np
from contest_field import METHODS, PARITY, RATES, TABLES
from contest_page import ask_for_worth, cell, difference
from contest_quality import load, run_all

CONTESTS = {
    "evenhand_adjusted": ("linear_post", "oxonfair_boosted"),
    "evenhand_adjusted_aware": ("error_parity", "threshold_optimizer_boosted"),
}


def state(ours, other, rate):
    """Say how ours stands beside a rival at a rate; whether that is a loss."""
    here, there = (curves.worth(rate) for curves in (ours, other))
    if not np.isfinite(there):
        return "alone there" if np.isfinite(here) else "nobody there", False
    if not np.isfinite(here):
        return "not there", True
    d, se = difference(ours, other, rate)
    return f"{d:+.4f} ± {se:.4f}", bool(d < -2 * se)


def options():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cache", type=Path, required=True, help="a file for each fit")
    parser.add_argument("--data-home", type=Path, help="folder of the fetched tables")
    parser.add_argument(
        "--tables", nargs="*", choices=TABLES, default=["adult", "compas", "bank", "credit_default"]
    )
    parser.add_argument("--seeds", type=int, default=10, help="how many")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--error-parity", metavar="PYTHON", help="of its own environment")
    return parser.parse_args()


def main():
    args = options()
    keys = [key for ours, others in CONTESTS.items() for key in (ours, *others)]
    keys = [key for key in keys if key != "error_parity" or args.error_parity]
    every = [(n, k) for n in args.tables for k in (*keys, "constant")]
    jobs = [(n, k, PARITY, seed) for seed in range(args.seeds) for n, k in every]
    run_all(args, jobs)
    results, losses = load(args, jobs), []
    ask_for_worth(results)
    print(f"\n| table | method | {' | '.join(map(str, RATES))} |\n|---|---|---|---|---|")
    for name in args.tables:
        for key, others in CONTESTS.items():
            ours = results[name, PARITY, key]
            if not ours.splits:
                sys.exit(f"{name}, {METHODS[key].name}: {ours.errors[0]}")
            cells = " | ".join(cell(ours, rate) for rate in RATES)
            print(f"| {name} | **{METHODS[key].name}** | {cells} |")
            for other in (o for o in others if o in keys):
                curves = results[name, PARITY, other]
                told = [state(ours, curves, rate) for rate in RATES] if curves.splits else []
                shown = (
                    " | ".join(text for text, _ in told) or f"failed: {curves.errors[0][:80]} | |"
                )
                print(f"| | less {METHODS[other].name} | {shown} |")
                losses += [
                    f"{name} at {rate:g} by {METHODS[other].name}"
                    for rate, (_, lost) in zip(RATES, told, strict=False)
                    if lost
                ]
    print(
        f"\n{args.seeds} splits: {'MISSED, ' + '; '.join(losses) if losses else 'below in no cell'}"
    )
    if not args.error_parity:
        print("error-parity was not run: --error-parity")
    sys.exit(bool(losses))


if __name__ == "__main__":
    main()
