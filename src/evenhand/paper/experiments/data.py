"""The data of the experiments: Adult, and its labels at each correlation."""

from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES
from evenhand.datasets import load_adult, make_counterexample
from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import Finding, Rows, experiment
from evenhand.paper.experiments._draw import grid, legend, lines

STYLES = {
    "women": {"color": "#D55E00", "linestyle": "--", "marker": "^"},
    "men": {"color": "#0072B2", "linestyle": "-", "marker": "o"},
}


def run(rho: float, seed: int) -> Rows:
    """Count rows, correlation and label rates of Adult's labels at a correlation.

    For Adult itself also the ranks of the inputs with a column of ones, on Adult and on the
    counter-example's synthetic data.
    """
    data, male = load_adult("full"), lab.groups() == 1
    y = np.asarray(lab.labels(rho, seed))
    facts: dict[str, Any] = {
        "rows": len(y),
        "correlation": float(np.corrcoef(y, male)[0, 1]),
        "label_rate_women": float(y[~male].mean()),
        "label_rate_men": float(y[male].mean()),
    }
    if rho == lab.ADULT:
        every = np.asarray(lab.labels(rho, seed, "coarse"))
        facts["correlation_all_rows"] = float(np.corrcoef(every, lab.groups("coarse"))[0, 1])
        made = make_counterexample(random_state=seed).data
        for name, table in (("adult", data.data), ("made", made)):
            X = np.column_stack([table.to_numpy(dtype=float), np.ones(len(table))])
            rank = np.linalg.matrix_rank(X.T @ X, hermitian=True)
            facts |= {f"columns_{name}": X.shape[1], f"rank_{name}": int(rank)}
        wise = np.asarray(data.data["education-num"] >= 13)
        one, all_ = (group_counts(y, f, sensitive_features=male)[1] for f in (wise, wise | True))
        for name in ("selection_rate", "false_discovery_rate"):
            apart, rate = [RATES[name].per_group(c) for c in (one, all_)], RATES[name]
            off = np.abs(rate.per_group((one + all_) / 2) - np.mean(apart, axis=0)).max()
            facts[f"mixed_{name}"] = float(off)
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
    return table[table["rho"] == lab.ADULT].iloc[0]


def _size(table: pd.DataFrame) -> Finding:
    rows = int(_adult(table)["rows"])
    return Finding(f"{rows:,}", 44_500 <= rows < 45_500)


def _correlation(table: pd.DataFrame) -> Finding:
    row = _adult(table)
    correlations = [float(row["correlation"]), float(row["correlation_all_rows"])]
    text = f"{correlations[0]:.4f}, all rows {correlations[1]:.4f}"
    return Finding(text, any(round(r, 2) == 0.21 for r in correlations))


def _reached(table: pd.DataFrame) -> Finding:
    rows = table[table["rho"] != lab.ADULT]
    off = (rows["correlation"] - rows["rho"]).abs().max()
    return Finding(f"largest difference {off:.0e}", bool(off <= 1e-3))


def _rank(table: pd.DataFrame) -> Finding:
    row = _adult(table)
    ranks = [(int(row[f"rank_{name}"]), int(row[f"columns_{name}"])) for name in ("adult", "made")]
    text = ", made data ".join(f"rank {rank} of {columns}" for rank, columns in ranks)
    return Finding(f"Adult {text}", all(rank < columns for rank, columns in ranks))


def _not_linear(table: pd.DataFrame) -> Finding:
    row = _adult(table)
    parity, discovery = row["mixed_selection_rate"], row["mixed_false_discovery_rate"]
    text = f"selection rate off by {parity:.0e}, false discovery rate by {discovery:.3f}"
    return Finding(text, bool(parity < 1e-9 and discovery > 1e-3))


DATA = experiment(
    "data",
    cells=lab.grid_of,
    run=run,
    draw=draw,
    tests={
        "size": _size,
        "correlation": _correlation,
        "reached": _reached,
        "rank": _rank,
        "not_linear": _not_linear,
    },
)
