"""The adversary with and without its regulariser."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import Split
from evenhand.paper.experiments._claims import Cell, Finding, Rows, dagger, experiment, means
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.paper.experiments._fits import READINGS, fit, grid_of, measure_last, split

RARE = 0.02
BOTH, ALONE_ = "adversary and regulariser", "adversary alone"


def cells(quick: bool) -> list[Cell]:
    """Give all correlations, and correlation 0.5 with few women."""
    few = [cell | {"share_of_women": RARE} for cell in grid_of(quick, (0.5,))]
    return [*(cell | {"share_of_women": 0.0} for cell in grid_of(quick)), *few]


def _thin(data: Split, share: float, seed: int) -> Split:
    """Drop training rows of women until women are the given share of the training rows."""
    women = np.flatnonzero(data.z_train == "Female")
    men = np.flatnonzero(data.z_train != "Female")
    n = round(share / (1 - share) * len(men))
    kept = np.sort(np.append(men, np.random.default_rng(seed).permutation(women)[:n]))
    train = (value.iloc[kept] for value in (data.X_train, data.y_train, data.z_train))
    return data._replace(**dict(zip(("X_train", "y_train", "z_train"), train, strict=True)))


def run(rho: float, seed: int, share_of_women: float) -> Rows:
    """Test accuracy and rate of AGD modified's last iterate, with μ = 10 and with μ = 0.

    ``share_of_women`` is their share of the training rows; 0: as it is.
    """
    data = split(rho, seed)
    if share_of_women:
        data = _thin(data, share_of_women, seed)
    rows = []
    for reading in READINGS:
        for name, mu in ((BOTH, 10.0), (ALONE_, 0.0)):
            model = fit(data, reading, "AGD", mu=mu, n_iterates=1)
            measured = measure_last(model, data, "test")
            rows.append({"reading": reading, "name": name} | measured)
    return rows


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate, over the correlation."""
    usual, few = table[table["share_of_women"] == 0], _few(table)
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


def _high(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["share_of_women"] == 0) & (table["rho"] >= 0.65)]


def _few(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["share_of_women"] > 0]


def _fails(table: pd.DataFrame, reading: str, *, part: Any) -> Finding:
    curve = means(part(table), "rho", reading=reading, name=ALONE_)
    top = curve["rate"].max()
    return Finding(f"at most {top:.2f}{dagger(curve)}", bool(top < 0.8))


def _works(table: pd.DataFrame, reading: str, *, part: Any) -> Finding:
    curve = means(part(table), "rho", reading=reading, name=BOTH)
    low = curve["rate"].min()
    return Finding(f"at least {low:.2f}{dagger(curve)}", bool(low >= 0.8))


ALONE = experiment(
    "alone",
    cells=cells,
    run=run,
    draw=draw,
    tests={
        "fails_at_high_correlation": partial(_fails, part=_high),
        "works_at_high_correlation": partial(_works, part=_high),
        "fails_with_few_rows": partial(_fails, part=_few),
        "works_with_few_rows": partial(_works, part=_few),
    },
)
