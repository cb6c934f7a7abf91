"""The adversary with and without its regulariser."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import Split
from evenhand.experiments._claims import Claim, Finding, means
from evenhand.experiments._draw import draw_over_rho
from evenhand.experiments._fits import READINGS, fit, grid_of, iterate_scores, measure, split
from evenhand.experiments._runner import Cell, Experiment, Rows

__all__ = ["ALONE"]

RARE = 0.02
BOTH, ALONE_ = "adversary and regulariser", "adversary alone"


def cells(quick: bool) -> list[Cell]:
    """Give all correlations, and correlation 0.5 with few women."""
    few = [{"rho": 0.5, "seed": cell["seed"], "women": RARE} for cell in grid_of(quick, (0.5,))]
    return [*(cell | {"women": 0.0} for cell in grid_of(quick)), *few]


def _thin(part: Split, share: float, seed: int) -> Split:
    """Keep so many of the training part's women that they are a share of its rows."""
    women = np.flatnonzero(part.z_train == "Female")
    men = np.flatnonzero(part.z_train != "Female")
    n = round(share / (1 - share) * len(men))
    kept = np.sort(np.append(men, np.random.default_rng(seed).permutation(women)[:n]))
    train = (value.iloc[kept] for value in (part.X_train, part.y_train, part.z_train))
    return part._replace(**dict(zip(("X_train", "y_train", "z_train"), train, strict=True)))


def run(rho: float, seed: int, women: float) -> Rows:
    """Test accuracy and rate of AGD modified's last iterate, with μ = 10 and with μ = 0."""
    part = split(rho, seed)
    if women:
        part = _thin(part, women, seed)
    rows = []
    for reading in READINGS:
        for name, mu in ((BOTH, 10.0), (ALONE_, 0.0)):
            model = fit(part, reading, "AGD", mu=mu, n_iterates=1)
            last = iterate_scores(model, part.X_test)[-1] > 0
            found = measure(part.y_test, last.astype(int), part.z_test)
            rows.append({"reading": reading, "name": name} | found)
    return rows


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate, over the correlation."""
    usual, few = table[table["women"] == 0], table[table["women"] > 0]
    figure = draw_over_rho(usual, ["test accuracy", "test statistical rate"])
    for j, reading in enumerate(READINGS):
        for name, color in ((BOTH, "black"), (ALONE_, "#D55E00")):
            point = means(few, "rho", reading=reading, name=name)
            for i, what in enumerate(("accuracy", "rate")):
                ax = figure.axes[3 * i + j]
                ax.plot(
                    point.index,
                    point[what],
                    linestyle="",
                    marker="s" if name == BOTH else "D",
                    markersize=7,
                    fillstyle="none",
                    color=color,
                )
    return figure


def _pair(table: pd.DataFrame, reading: str) -> tuple[pd.Series, pd.Series]:
    alone, both = (
        means(table, "rho", reading=reading, name=name)["rate"] for name in (ALONE_, BOTH)
    )
    return alone, both


def _fails_high(table: pd.DataFrame, reading: str) -> Finding:
    high = table[(table["women"] == 0) & (table["rho"] >= 0.65)]
    alone, both = _pair(high, reading)
    text = f"alone at most {alone.max():.2f}, with it at least {both.min():.2f}"
    return Finding(text, bool(alone.max() < 0.8 <= both.min()))


def _fails_rare(table: pd.DataFrame, reading: str) -> Finding:
    alone, both = _pair(table[table["women"] > 0], reading)
    text = f"alone {alone.iloc[0]:.2f}, with it {both.iloc[0]:.2f}"
    return Finding(text, bool(alone.iloc[0] < 0.8 <= both.iloc[0]))


ALONE = Experiment(
    name="alone",
    title="The adversary with and without its regulariser",
    cells=cells,
    run=run,
    draw=draw,
    caption=(
        "Test data, last of 100 iterates of AGD modified. Alone: μ = 0. Hollow marks: trained with "
        "few women, 2% of the rows, at correlation 0.5 (square: with the regulariser; diamond: "
        "alone)."
    ),
    claims=(
        Claim(
            "An adversary alone, without the regulariser, fails at a high correlation",
            "Remark 3.2",
            "at ρ ≥ 0.65 the mean test rate is below 0.8 with μ = 0 everywhere and at least 0.8 "
            "with μ = 10 everywhere",
            _fails_high,
        ),
        Claim(
            "An adversary alone fails where one group has few rows",
            "Remark 3.2",
            "ρ = 0.5, women 2% of the training rows: mean test rate below 0.8 with μ = 0, at least "
            "0.8 with μ = 10",
            _fails_rare,
        ),
    ),
)
