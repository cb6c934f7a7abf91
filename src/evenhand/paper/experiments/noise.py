"""How much weight the noise column gets, over the correlation."""

from functools import partial

import numpy as np
import pandas as pd
from scipy.stats import spearmanr

from evenhand.paper.experiments._claims import Finding, Rows, experiment
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.paper.experiments._fits import READINGS, fit, grid_of, split

RATIOS = {"printed_ratio": "w_η / max w", "absolute_ratio": "w_η / max |w|"}


def run(rho: float, seed: int) -> Rows:
    """Weight of the noise column against the largest of the others, at τ = 0.8."""
    data = split(rho, seed)
    rows = []
    for reading in READINGS:
        model = fit(data, reading, "AGD", tau=0.8, extra_column="noise", random_state=seed)
        others = model.coef_[0]
        rows.append(
            {
                "reading": reading,
                "name": "AGD modified, τ = 0.8",
                "printed_ratio": float(model.noise_coef_ / others.max()),
                "absolute_ratio": float(model.noise_coef_ / np.abs(others).max()),
                "feasible": bool(model.feasible_),
                "train_rate": float(model.rate_),
            }
        )
    return rows


def _grows(table: pd.DataFrame, reading: str, *, column: str, size: bool = False) -> Finding:
    ratio = table[column].abs() if size else table[column]
    here = table["reading"] == reading
    by_rho = ratio[here].groupby(table["rho"][here]).mean()
    if len(by_rho) < 4 or by_rho.isna().any():
        return Finding("too few correlations", None)
    order = float(spearmanr(by_rho.index, by_rho).statistic)
    ends = f"{by_rho.iloc[0]:.2f} at ρ = {by_rho.index[0]:g}, {by_rho.iloc[-1]:.2f} at the last"
    return Finding(f"rank correlation {order:+.2f}; {ends}", order >= 0.8)


def _larger(table: pd.DataFrame, reading: str) -> Finding:
    here = (table["reading"] == reading) & (table["rho"] == table["rho"].max())
    ratio = float(table["absolute_ratio"][here].abs().mean())
    return Finding(f"{ratio:.2f}", ratio > 1)


NOISE = experiment(
    "noise",
    cells=grid_of,
    run=run,
    draw=partial(draw_over_rho, rows=list(RATIOS.values()), columns=tuple(RATIOS), rates=False),
    tests={
        "grows": partial(_grows, column="printed_ratio"),
        "grows_in_size": partial(_grows, column="absolute_ratio", size=True),
        "larger": _larger,
    },
)
