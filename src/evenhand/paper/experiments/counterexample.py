"""Where the normal update cannot become fair, and the identity that the projection rests on."""

from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.rates import RATES
from evenhand.datasets import make_counterexample
from evenhand.paper.experiments._claims import Cell, Finding, Rows, experiment
from evenhand.paper.experiments._draw import grid, legend, lines
from evenhand.paper.experiments._fits import ADULT, READINGS, iterations, problem, split

EXAMPLE = "counter-example"
_ROWS = {
    "rate": "training rate\n(counter-example)",
    "cosine": "cosine of the gradients\n(counter-example)",
    "identity": "relative error of the\nidentity (both data)",
}


def cells(quick: bool) -> list[Cell]:
    """Twenty draws of the example, and Adult."""
    example = [{"data": EXAMPLE, "seed": seed} for seed in range(3 if quick else 20)]
    return [*example, {"data": "Adult", "seed": 0}]


def run(data: str, seed: int) -> Rows:
    r"""Rate, and how the gradients lie, at every iteration of NGD with either update.

    ``cosine`` is the cosine of the angle between :math:`g_C` and :math:`g_F`; ``away`` says
    whether the direction d goes down in the fairness objective, :math:`\langle g_F, d\rangle > 0`;
    ``identity`` is the relative error of :math:`\langle g_F, d\rangle = -\alpha\|g_F\|^2`.
    """
    if data == EXAMPLE:
        X, y, z = make_counterexample(random_state=seed, return_X_y_z=True)
    else:
        adult = split(ADULT, seed)
        X, y, z = adult.X_train, adult.y_train, adult.z_train
    rate = RATES["selection_rate"]
    rows = []
    for reading in READINGS:
        oracle = problem(X, y, z, reading)
        for update in ("modified", "normal"):
            for it in iterations(oracle, reading, "NGD", update):
                m, alpha = it.moments, it.alpha
                norm_c, norm_f = np.linalg.norm(m.grad_c), np.linalg.norm(m.grad_f)
                inner, along = m.grad_f @ it.direction, alpha * norm_f**2
                size = norm_f * (norm_c + alpha * norm_f)
                share = rate.per_group(m.counts)
                rows.append(
                    {
                        "reading": reading,
                        "name": update,
                        "iteration": it.t,
                        "rate": float(rate.ratio(m.counts)),
                        "eligible": bool(share.min() >= 0.01 and share.max() <= 0.99),
                        "cosine": float(m.grad_c @ m.grad_f / (norm_c * norm_f)) if size else None,
                        "away": bool(inner > 0) if size else None,
                        "identity": float(abs(inner + along) / size) if size else None,
                    }
                )
    return rows


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings; rate, cosine and identity over the iterations."""
    figure, axes = grid(list(_ROWS.values()), list(READINGS))
    example = table[table["data"] == EXAMPLE]
    for j, reading in enumerate(READINGS):
        rows = example[example["reading"] == reading]
        for k, what in enumerate(("rate", "cosine")):
            lines(axes[k][j], rows, "iteration", what, "name", every=20)
        axes[0][j].set_ylim(0, 1.02)
        axes[0][j].axhline(0.8, color="0.4", linewidth=0.8)
        axes[1][j].axhline(0, color="0.4", linewidth=0.8)
        modified = table[(table["reading"] == reading) & (table["name"] == "modified")]
        worst = modified.groupby("iteration")["identity"].max().clip(lower=1e-17)
        axes[2][j].semilogy(worst.index, worst, color="black", linewidth=1.5)
        axes[2][j].set_ylim(1e-17, 1)
        axes[2][j].set_xlabel("iteration")
    legend(figure, axes)
    return figure


def _part(table: pd.DataFrame, reading: str, update: str) -> pd.DataFrame:
    here = (table["reading"] == reading) & (table["name"] == update) & (table["data"] == EXAMPLE)
    return table[here]


def _highest(table: pd.DataFrame, reading: str, update: str) -> pd.Series:
    """Highest rate of each draw; with the modified update an answer of one kind does not count."""
    rows = _part(table, reading, update)
    rate = rows["rate"].where(rows["eligible"] | (update == "normal"))
    return rate.groupby(rows["seed"]).max().fillna(0.0)


def _exists(table: pd.DataFrame, reading: str) -> Finding:
    normal, modified = (_highest(table, reading, name) for name in ("normal", "modified"))
    both = (normal < 0.8) & (modified >= 0.8)
    return Finding(f"{both.sum()} of {len(both)} draws", bool(both.any()))


def _stays_unfair(table: pd.DataFrame, reading: str) -> Finding:
    top = _highest(table, reading, "normal")
    text = f"{(top < 0.8).sum()} of {len(top)} draws, highest rate {top.max():.2f}"
    return Finding(text, bool((top < 0.8).all()))


def _becomes_fair(table: pd.DataFrame, reading: str) -> Finding:
    top = _highest(table, reading, "modified")
    text = f"{(top >= 0.8).sum()} of {len(top)} draws, least of the highest {top.min():.2f}"
    return Finding(text, bool((top >= 0.8).all()))


def _leads_away(table: pd.DataFrame, reading: str) -> Finding:
    share = float(_part(table, reading, "normal")["away"].dropna().astype(float).mean())
    return Finding(f"{share:.0%} of iterations", share == 1.0)


def _identity(table: pd.DataFrame, reading: str) -> Finding:
    rows = table[(table["reading"] == reading) & (table["name"] == "modified")]
    worst = float(rows["identity"].max())
    return Finding(f"largest {worst:.0e} in {rows['identity'].count()} iterations", worst <= 1e-10)


COUNTEREXAMPLE = experiment(
    "counterexample",
    cells=cells,
    run=run,
    draw=draw,
    tests={
        "exists": _exists,
        "stays_unfair": _stays_unfair,
        "leads_away": _leads_away,
        "becomes_fair": _becomes_fair,
        "identity": _identity,
    },
)
