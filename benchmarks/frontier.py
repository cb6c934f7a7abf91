"""The README's picture: the frontier on test data, with other tools beside it.

    python benchmarks/frontier.py [--splits 10] [--jobs 2] [--out docs/_static/frontier.png]

Adult, sex as the sensitive attribute and not among the inputs. Every method is fitted on the same
random 70/30 splits, chosen for a target on the training part and measured on the test part; the
line ends at the largest target of the others. Needs ``pip install '.[fast,peers,plot]'``;
about two minutes on two cores, most of it fairlearn's.
"""

import argparse
import warnings
from pathlib import Path

import matplotlib as mpl
import numpy as np
import pandas as pd

from evenhand.datasets import load_adult
from evenhand.peers import compare

TAUS = [0.01, *np.arange(0.32, 0.96, 0.02).round(2).tolist(), 0.95, 1.0]
PEER_TAUS = [0.8, 0.9, 0.95]
MARKS = {
    "exponentiated_gradient": ("fairlearn ExponentiatedGradient", "s", "#b5541c"),
    "grid_search": ("fairlearn GridSearch", "D", "#d9a441"),
    "oxonfair": ("OxonFair, groups inferred", "^", "#3f7d3f"),
}


def measure(methods, taus, args):
    """Give the test figures of methods on the splits, a row for each split and target."""
    adult = load_adult()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a target that is not reached is a row of the table
        table = compare(
            adult.data,
            adult.target,
            adult.sensitive_features,
            methods=methods,
            taus=taus,
            n_splits=args.splits,
            transformer=adult.encoder,
            n_jobs=args.jobs,
        )
    failed = table[table["error"] != ""]
    if len(failed):
        raise SystemExit(f"{failed['method'].iloc[0]}: {failed['error'].iloc[0]}")
    return table


def over_splits(table):
    """Give mean and standard deviation over the splits of the test figures of each target."""
    return (
        table.groupby("tau")[["rate", "accuracy"]]
        .agg(["mean", "std"])
        .sort_values(("rate", "mean"))
    )


def draw(ours, others, out):
    """Draw the picture."""
    import matplotlib.pyplot as plt

    plt.rcParams.update({"font.size": 10, "axes.spines.top": False, "axes.spines.right": False})
    figure, ax = plt.subplots(figsize=(8, 4.4), layout="constrained")
    at = over_splits(ours)
    blue, mean, spread = "#1f5f99", at["accuracy", "mean"], at["accuracy", "std"]
    ax.fill_between(at["rate", "mean"], mean - spread, mean + spread, color=blue, alpha=0.2, lw=0)
    ax.plot(at["rate", "mean"], mean, color=blue, lw=2, label="evenhand, one fit for every τ")
    bars = {"capsize": 0, "elinewidth": 0.8, "alpha": 0.9, "ls": "none"}
    marks = {"accuracy_only": ("plain logistic regression", "o", "#333333"), **MARKS}
    for key, (name, mark, color) in marks.items():
        at = over_splits(others[others["key"] == key])
        asked = "" if key == "accuracy_only" else f", τ = {', '.join(f'{t:g}' for t in at.index)}"
        ax.errorbar(
            at["rate", "mean"],
            at["accuracy", "mean"],
            xerr=at["rate", "std"],
            yerr=at["accuracy", "std"],
            marker=mark,
            ms=6,
            color=color,
            label=name + asked,
            **bars,
        )
    ax.axvline(0.8, color="#999999", lw=0.8, ls=":")
    ax.annotate("four-fifths rule", (0.8, 0.985), (4, 0), xycoords=("data", "axes fraction"),
                textcoords="offset points", va="top", color="#666666", fontsize=9)  # fmt: skip
    ax.set(xlabel="statistical rate on test data (1 is parity)", ylabel="accuracy on test data")
    ax.legend(frameon=False, loc="lower left", fontsize=9)
    ax.set_xlim(0.27, 1.0)
    figure.savefig(out, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--table", type=Path, help="CSV of every split, read if it is there")
    default = Path(__file__).parents[1] / "docs/_static/frontier.png"
    parser.add_argument("--out", type=Path, default=default)
    args = parser.parse_args()
    mpl.use("Agg")
    if args.table is not None and args.table.exists():
        table = pd.read_csv(args.table)
    else:
        lines = measure(["evenhand"], TAUS, args), measure(["accuracy_only"], [0.8], args)
        table = pd.concat([*lines, measure(list(MARKS), PEER_TAUS, args)])
        if args.table is not None:
            table.to_csv(args.table, index=False)
    ours = table["key"] == "evenhand"
    draw(table[ours & (table["tau"] <= max(PEER_TAUS))], table[~ours], args.out)
    n = table["split"].nunique()
    print(
        f"Adult, {n} random 70/30 splits; test figures, mean ± standard deviation over the splits"
    )
    for name, part in table.groupby("method", sort=False):
        for tau, at in over_splits(part).iterrows():
            if name != "evenhand" or tau in (0.01, 0.4, 0.6, *PEER_TAUS, 1.0):
                rate, accuracy = at["rate"], at["accuracy"]
                asked = "" if name.startswith("plain") else f"τ = {tau:g}"
                print(
                    f"{name:26} {asked:9} rate {rate['mean']:.3f} ± {rate['std']:.3f}  "
                    f"accuracy {accuracy['mean']:.4f} ± {accuracy['std']:.4f}"
                )


if __name__ == "__main__":
    main()
