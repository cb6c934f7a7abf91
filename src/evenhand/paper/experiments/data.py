"""The data of the experiments: Adult, and its labels at each correlation."""

from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import load_adult, make_counterexample, with_correlation
from evenhand.paper.experiments._claims import Finding, Rows, experiment
from evenhand.paper.experiments._draw import grid, legend, lines
from evenhand.paper.experiments._fits import ADULT, grid_of

STYLES = {
    "women": {"color": "#D55E00", "linestyle": "--", "marker": "^"},
    "men": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
}


def run(rho: float, seed: int) -> Rows:
    """Count rows, correlation and label rates of Adult's labels at a correlation.

    For Adult itself also the ranks of the inputs with a column of ones, on Adult and on the
    counter-example's synthetic data.
    """
    data = load_adult("full")
    y, male = data.target, (data.sensitive_features == "Male").to_numpy()
    if rho != ADULT:
        y = with_correlation(y, data.sensitive_features, rho, random_state=seed)
    y = np.asarray(y)
    facts: dict[str, Any] = {
        "rows": len(y),
        "correlation": float(np.corrcoef(y, male)[0, 1]),
        "label_rate_women": float(y[~male].mean()),
        "label_rate_men": float(y[male].mean()),
    }
    if rho == ADULT:
        whole = load_adult("coarse")
        is_male = (whole.sensitive_features == "Male").to_numpy()
        facts["correlation_all_rows"] = float(np.corrcoef(whole.target, is_male)[0, 1])
        made = make_counterexample(random_state=seed).data
        for name, table in (("adult", data.data), ("made", made)):
            X = np.column_stack([table.to_numpy(dtype=float), np.ones(len(table))])
            rank = np.linalg.matrix_rank(X.T @ X, hermitian=True)
            facts |= {f"columns_{name}": X.shape[1], f"rank_{name}": int(rank)}
    return [facts]


def draw(table: pd.DataFrame) -> Any:
    """Share of favourable labels in each group, and the correlation reached."""
    figure, axes = grid(["share of label 1"], ["labels of each group"], width=5.4)
    named = table.rename(columns={"label_rate_women": "women", "label_rate_men": "men"})
    long = named.melt(["rho", "seed"], ["women", "men"], "name", "share")
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
    row = _adult(table)
    correlations = [float(row["correlation"]), float(row["correlation_all_rows"])]
    text = f"{correlations[0]:.4f}, all rows {correlations[1]:.4f}"
    return Finding(text, any(round(r, 2) == 0.21 for r in correlations))


def _reached(table: pd.DataFrame, reading: str) -> Finding:
    rows = table[table["rho"] != ADULT]
    off = (rows["correlation"] - rows["rho"]).abs().max()
    return Finding(f"largest difference {off:.0e}", bool(off <= 1e-3))


def _rank(table: pd.DataFrame, reading: str) -> Finding:
    row = _adult(table)
    ranks = [(int(row[f"rank_{name}"]), int(row[f"columns_{name}"])) for name in ("adult", "made")]
    text = ", made data ".join(f"rank {rank} of {columns}" for rank, columns in ranks)
    return Finding(f"Adult {text}", all(rank < columns for rank, columns in ranks))


DATA = experiment(
    "data",
    cells=grid_of,
    run=run,
    draw=draw,
    tests={"size": _size, "correlation": _correlation, "reached": _reached, "rank": _rank},
)
