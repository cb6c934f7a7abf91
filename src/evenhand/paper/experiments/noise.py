"""How much weight the noise column gets, over the correlation."""

from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import (
    UNDECIDED,
    Finding,
    Rows,
    experiment,
)
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.paper.experiments._spread import against_spread, with_spread

RATIOS = {"w_η / max w": "printed_ratio", "w_η / max |w|": "absolute_ratio"}


def run(rho: float, seed: int) -> Rows:
    """Weight of the noise column against the largest of the others, at τ = 0.8."""
    data = lab.split(rho, seed)
    uniform = np.random.default_rng(seed).uniform(size=len(data.y_train))
    rows = []
    for setting in lab.settings("noise"):
        noise = uniform - (0.5 if setting["noise"] == "0" else 0.0)
        part = lab.part_of(data, extra=noise)
        W = lab.iterates(lab.problem(part, setting), setting, "AGD modified")
        measured = lab.measure_iterates(W, part)
        i = lab.choose(measured, 0.8)
        others, weight = W[i, :-1], float(W[i, -1])
        rows.append(
            {
                **setting,
                "name": "AGD modified, τ = 0.8",
                "printed_ratio": weight / float(others.max()),
                "absolute_ratio": weight / float(np.abs(others).max()),
                "train_rate": float(measured["rate"][i]),
            }
        )
    return rows


def _grows(table: pd.DataFrame, *, column: str, size: bool = False) -> Finding:
    ratio = table[column].abs() if size else table[column]
    by_seed = ratio.groupby([table["rho"], table["seed"]]).mean().unstack()
    if len(by_seed) < 4 or by_seed.isna().any(axis=None):
        return Finding("too few correlations", None)
    orders = by_seed.apply(lambda each: spearmanr(by_seed.index, each).statistic).to_frame().T
    by_rho = by_seed.mean(axis=1)
    ends = f"{by_rho.iloc[0]:.2f} at ρ = {by_rho.index[0]:g}, {by_rho.iloc[-1]:.2f} at the last"
    text = f"rank correlation {with_spread(orders)}; {ends}"
    return Finding(text, against_spread(orders - 0.8), UNDECIDED)


def _larger(table: pd.DataFrame) -> Finding:
    ratio = float(table["absolute_ratio"][table["rho"] == table["rho"].max()].abs().mean())
    return Finding(f"{ratio:.2f}", ratio > 1)


NOISE = experiment(
    "noise",
    cells=lab.grid_of,
    run=run,
    draw=partial(draw_over_rho, rows=RATIOS, zero=True),
    tests={
        "grows": partial(_grows, column="printed_ratio"),
        "grows_in_size": partial(_grows, column="absolute_ratio", size=True),
        "larger": _larger,
    },
)
