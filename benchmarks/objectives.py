"""What a fit for another objective gains, and whether training should weigh rows for it.

    python benchmarks/objectives.py [DATASET ...] [--splits 5]

Prints a row for each dataset, objective, notion and target, of means over splits of training parts:
the value on validation rows, balanced accuracy in percent or profit of 1,000 decisions, of the fit
for accuracy and of the fit for the objective; and less the latter, each with the standard error of
the paired mean,

- ``coarse``: with as few directions between predicting label and group as for accuracy
  (``evenhand.core.directions.FINER`` = 1);
- ``optimum``: with the optimum of the loss in which rows weigh what a right answer of their label
  is worth, and the directions around it, beside the other candidates;
- ``weighed``: with every step against that loss, in place of the one in which rows weigh the same.
"""

import argparse
import warnings
from copy import copy
from dataclasses import replace

import numpy as np
from inner import inner_split

from evenhand import FairClassifier, datasets
from evenhand.core import directions
from evenhand.core.metrics import group_counts
from evenhand.core.objectives import find_objective
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import curvature_product, row_sums
from evenhand.core.solvers import minimize_loss
from evenhand.models import training

OBJECTIVES = {
    "balanced": "balanced_accuracy",
    "fn costs 5": {"cost_fp": 1, "cost_fn": 5},
    "fp costs 5": {"cost_fp": 5, "cost_fn": 1},
}
GOALS = [("statistical_parity", 0.8), ("statistical_parity", 0.9), ("equalized_odds", 0.8)]
TABLES = {
    "german": datasets.load_german,
    "compas": datasets.fetch_compas,
    "adult": datasets.load_adult,
    "bank": datasets.fetch_bank,
}
find_candidates = training.find_candidates


def weighed_product(block, V, worths):
    """As ``curvature_product``, of rows that weigh what their label is worth."""
    return curvature_product(block._replace(weight=worths[block.cell % len(worths)]), V)


class Weighed(Oracle):
    """Rows weigh in the classification loss what a right answer of their label is worth."""

    objective = None  # set before a fit

    def __init__(self, *args, **settings):
        super().__init__(*args, **settings)
        worths = self.objective.worths(self.cells[0].weight.sum(axis=0))
        n = self.game.n_groups_all
        self.priced = np.tile([0.0, 1.0], n), np.tile(worths, n)
        image = self.rows.sum(
            weighed_product, self.metric.weights(np.eye(self.n_columns)).T, worths
        )
        image = self.metric.gradient(image.T) / (4 * self.total)
        self.smoothness = 1.02 * float(np.linalg.eigvalsh((image + image.T) / 2)[-1])

    def sums(self, w, u, scale=1.0):
        """Sum as usual, but for the classification loss and its gradient."""
        usual = super().sums(w, u, scale)
        if self.recode is not None:
            return usual
        priced = self.rows.sum(row_sums, self.weights(w), u, scale, self.game, self.priced)
        first = self.metric.gradient(priced.x_r)[:1]
        return replace(usual, loss_c=priced.loss_c, x_r=np.concatenate([first, usual.x_r[1:]]))


def with_optimum(oracle, optimum, *, finer=False):
    """Give the usual candidates, and those around the optimum of the weighed loss."""
    yield from find_candidates(oracle, optimum, finer=finer)
    n = oracle.game.n_groups_all
    worths = Weighed.objective.worths(oracle.cells[0].weight.sum(axis=0))
    view = copy(oracle)
    view.recode = np.tile([0.0, 1.0], n), np.tile(worths, n)
    weights = minimize_loss(view, optimum, max_iter=200, callback=lambda iteration: None)[0]
    yield "optimum", weights
    if len(directions.label_sets(oracle)) == 1:
        for other in directions.discriminants(oracle, weights, finer):
            yield "discriminants", other


def fit(split, notion, tau, objective, how=""):
    """Fit; give the value of the objective that is asked about on validation rows."""
    X, X_test, y, y_test, z, z_test = split
    training.Oracle = Weighed if how == "weighed" else Oracle
    training.find_candidates = with_optimum if how == "optimum" else find_candidates
    directions.FINER = 1 if how == "coarse" else 4
    model = FairClassifier(notion=notion, tau=tau, objective=objective, random_state=0)
    answers = model.fit(X, y, sensitive_features=z).predict(X_test)
    counts = group_counts(y_test, answers, sensitive_features=z_test)[1]
    return Weighed.objective.per * float(Weighed.objective.value(counts))


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("datasets", nargs="*", default=["german", "compas", "adult"])
    parser.add_argument("--splits", type=int, default=5)
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    hows = ("coarse", "optimum", "weighed")
    start = f"{'dataset':8}{'objective':12}{'notion':20}{'τ':>5}{'accuracy':>10}{'fit':>9}"
    print(start + "".join(f"{how:>17}" for how in hows))
    for name in args.datasets:
        splits = [
            inner_split(datasets.encoded_split(TABLES[name](), random_state=s), s)
            for s in range(args.splits)
        ]
        for words, objective in OBJECTIVES.items():
            Weighed.objective = find_objective(objective, 2)
            scale = 100 if Weighed.objective.per == 1 else 1
            for notion, tau in GOALS:
                goal = notion, tau
                plain, own = (
                    scale * np.array([fit(split, *goal, o) for split in splits])
                    for o in ("accuracy", objective)
                )
                row = f"{name:8}{words:12}{notion:20}{tau:5g}{plain.mean():10.2f}{own.mean():9.2f}"
                for how in hows:
                    other = scale * np.array(
                        [fit(split, *goal, objective, how) for split in splits]
                    )
                    off = other - own
                    error = off.std(ddof=1) / len(off) ** 0.5
                    row += f"{off.mean():+10.2f} ± {error:4.2f}"
                print(row, flush=True)


if __name__ == "__main__":
    main()
