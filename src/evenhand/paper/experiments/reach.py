"""What ratio of false discovery rates can be reached: bounds, and rules that are searched."""

import numpy as np
import pandas as pd
from sklearn.linear_model import LogisticRegression

from evenhand.core.notions import AnyNotion
from evenhand.datasets import Split
from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import CHOICES, Rows

TAU = 0.9
"""What is asked for."""


def searched(data: Split, inputs: str, notion: AnyNotion) -> Rows:
    """Search rules that are linear in the inputs and see nothing else; ``tested``: the test ratio.

    A row for each direction, every 5 degrees, between the score of :func:`lab.likely` and a
    logistic model's log-odds of the group, given the inputs, with the cut that τ chooses.
    """
    train, test = lab.part_of(data), lab.part_of(data, "test")
    guess = LogisticRegression(max_iter=1000).fit(train.X, train.z)
    score = pd.Series(lab.likely(inputs), lab.labels(lab.ADULT, 0, inputs).index)
    scores, tested = (
        np.stack([score[y.index], guess.decision_function(part.X)])
        for y, part in ((data.y_train, train), (data.y_test, test))
    )
    rows: Rows = []
    for angle in np.deg2rad(np.arange(0, 360, 5)):
        direction = np.array([np.cos(angle), np.sin(angle)]) / scores.std(axis=1)
        cuts = lab.measure_cuts(train, direction @ scores, notion)
        row = cuts.iloc[lab.choose(cuts, TAU)].to_dict()
        measured = lab.measure(test, (direction @ tested > row["cut"])[None], notion)
        rows.append(row | {"tested": float(measured["rate"].iloc[0])})
    return rows


def _bound(rho: float, seed: int, inputs: str) -> float:
    """Give the largest false discovery ratio of a rule that is better than chance for men.

    Labels that were replaced by the group, whatever the row, cannot be foreseen: a share q of the
    women who would have label 1 have 0, and no rule has fewer false discoveries among women. Among
    men it has no more than chance, the share of label 0.
    """
    before, now = (np.asarray(lab.labels(r, seed, inputs)) for r in (lab.ADULT, rho))
    z = lab.groups(inputs)
    lost = float(1 - now[(z == 0) & (before == 1)].mean())
    chance = float(1 - now[z == 1].mean())
    return min(1.0, chance / lost) if lost else 1.0


def _with_group(rho: float, seed: int, inputs: str) -> float:
    """Give a false discovery ratio that a rule reaches by the model that moved the labels.

    It calls positive the likeliest women, 1% of them or more, with the fewest false discoveries
    there are, and of the likeliest men so many that theirs are as many, or, if need be, all men.
    """
    now, z = np.asarray(lab.moved_labels(rho, seed, inputs)), lab.groups(inputs)
    women = np.flatnonzero(z == 0)
    false = 1 - now[women[np.argsort(-lab.likely(inputs)[women], kind="stable")]]
    shares = (np.cumsum(false) / np.arange(1, len(false) + 1))[len(false) // 100 :]
    chance = float(1 - now[z == 1].mean())
    return min(1.0, chance / float(shares.min())) if shares.min() else 1.0


BOUNDS = {lab.REPLACED: _bound, lab.MOVED: _with_group}


def with_reached(table: pd.DataFrame) -> pd.DataFrame:
    """Raise ``reached`` to the highest mean over the seeds that any method has in any setting.

    One counts where it is, in the mean, more accurate than the constant answer.
    """
    runs = table.astype({"rate": float, "accuracy": float}).fillna({"rate": 0.0})
    kinds = ["rho", *(c for c in dict.fromkeys(("name", "reading", *CHOICES)) if c in table)]
    means = runs.groupby(kinds, dropna=False)[["rate", "accuracy", "majority", "reached"]].mean()
    useful = means["rate"].where(means["accuracy"] > means["majority"])
    best = useful.fillna(means["reached"]).clip(lower=means["reached"])
    return table.assign(reached=table["rho"].map(best.groupby("rho").max()))
