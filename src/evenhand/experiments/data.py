"""The data of the experiments: Adult, and its labels at each correlation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import load_adult, with_correlation
from evenhand.experiments._claims import Claim, Finding
from evenhand.experiments._draw import grid, legend, lines
from evenhand.experiments._fits import ADULT, grid_of
from evenhand.experiments._runner import Experiment, Rows

__all__ = ["DATA"]

STYLES = {
    "women": {"color": "#D55E00", "linestyle": "--", "marker": "^"},
    "men": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
}


def run(rho: float, seed: int) -> Rows:
    """Rows, correlation and label rates, and the rank of the inputs with a column of ones."""
    data = load_adult("full")
    y, male = data.target, (data.sensitive_features == "Male").to_numpy()
    if rho != ADULT:
        y = with_correlation(y, data.sensitive_features, rho, random_state=seed)
    y = np.asarray(y)
    facts: dict[str, Any] = {
        "rows": len(y),
        "correlation": float(np.corrcoef(y, male)[0, 1]),
        "women": float(y[~male].mean()),
        "men": float(y[male].mean()),
    }
    if rho == ADULT:
        X = np.column_stack([data.data.to_numpy(dtype=float), np.ones(len(y))])
        facts |= {
            "columns": X.shape[1],
            "rank": int(np.linalg.matrix_rank(X.T @ X, hermitian=True)),
        }
    return [facts]


def draw(table: pd.DataFrame) -> Any:
    """Share of favourable labels in each group, and the correlation reached."""
    figure, axes = grid(["share of label 1"], ["labels of each group"], width=5.4)
    long = table.melt(["rho", "seed"], ["women", "men"], "name", "share")
    lines(axes[0][0], long, "rho", "share", "name", styles=STYLES)
    axes[0][0].set_ylim(0, 1)
    axes[0][0].set_xlabel("correlation of label and group")
    legend(figure, axes)
    return figure


def _adult(table: pd.DataFrame) -> pd.Series:
    return table[table["rho"] == ADULT].iloc[0]


def _size(table: pd.DataFrame, reading: str) -> Finding:
    rows = int(_adult(table)["rows"])
    return Finding(f"{rows:,}", 44_500 <= rows < 45_500)


def _correlation(table: pd.DataFrame, reading: str) -> Finding:
    found = float(_adult(table)["correlation"])
    return Finding(f"{found:.4f}", 0.205 <= found < 0.22)


def _reached(table: pd.DataFrame, reading: str) -> Finding:
    part = table[table["rho"] != ADULT]
    off = (part["correlation"] - part["rho"]).abs().max()
    return Finding(f"largest difference {off:.0e}", bool(off <= 1e-3))


def _rank(table: pd.DataFrame, reading: str) -> Finding:
    row = _adult(table)
    rank, columns = int(row["rank"]), int(row["columns"])
    return Finding(f"rank {rank} of {columns} columns", rank < columns)


DATA = Experiment(
    name="data",
    title="Labels of a given correlation with the group",
    cells=grid_of,
    run=run,
    draw=draw,
    caption=(
        "Adult's inputs (`full`), each label replaced by the group with a probability that gives "
        "the correlation. The leftmost points are Adult itself. The more the label follows the "
        "group, the more the base rates of the groups differ."
    ),
    claims=(
        Claim(
            "Adult has approximately 45,000 individuals",
            "Section 5.1",
            "complete rows, to the nearest thousand 45,000",
            _size,
            one_reading=True,
        ),
        Claim(
            "The correlation of label and sex in Adult is 0.21",
            "Figures 1, 2, 3, 5",
            "from 0.205 to 0.22 (0.21 rounded or cut off)",
            _correlation,
            one_reading=True,
        ),
        Claim(
            "Labels can be changed so that the correlation is a given one",
            "Section 5.1",
            "correlation of the sample within 0.001 of ρ, at every ρ",
            _reached,
            one_reading=True,
        ),
        Claim(
            "Without a ridge the losses have several optima",
            "Section 3",
            "the inputs with the column of ones do not have full column rank on Adult",
            _rank,
            one_reading=True,
        ),
    ),
)
