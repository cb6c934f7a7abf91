"""What raising τ does, and how fair the run gets on the way."""

import warnings
from typing import Any

import numpy as np
import pandas as pd

from evenhand.datasets import Split
from evenhand.models.classifier import FairClassifier, FairnessWarning
from evenhand.paper.experiments._claims import Finding, Rows, experiment, means
from evenhand.paper.experiments._draw import grid, legend, lines
from evenhand.paper.experiments._fits import (
    READINGS,
    fit,
    grid_of,
    measure_iterates,
    measure_model,
    split,
)

TAUS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95)
STYLES = {
    f"{rho:g}": {"color": color, "linestyle": dashes, "marker": marker}
    for rho, color, dashes, marker in zip(
        (0.21, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8),
        ("#000000", "#0072B2", "#009E73", "#56B4E9", "#E69F00", "#D55E00", "#CC79A7", "#7F7F7F"),
        ("-", "--", "-.", ":", "-", "--", "-.", ":"),
        "osD^vPX*",
        strict=True,
    )
}


def run(rho: float, seed: int) -> Rows:
    """Test accuracy and rate at each τ by AGD, and the highest training rate of AGD and NGD.

    ``best`` is over all iterates, ``best_eligible`` over those that call between 1% and 99% of
    each group positive; ``majority`` is the constant answer's accuracy.
    """
    data = split(rho, seed)
    share = float(np.mean(data.y_test))
    majority = max(share, 1 - share)
    rows: Rows = []
    for reading in READINGS:
        model = fit(data, reading, "AGD", tau=TAUS[0])
        other = fit(data, reading, "NGD")
        best = dict(zip(("best", "best_eligible"), _highest(data, (model, other)), strict=True))
        for tau in TAUS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FairnessWarning)
                chosen = model.at(tau)
            measured = measure_model(chosen, data, "test")
            reached = {"reading": reading, "tau": tau, "feasible": bool(chosen.feasible_)}
            iterate = {"iterate": int(chosen.frontier_.select(tau).iterate), "majority": majority}
            rows.append({**reached, **iterate, **measured, **best})
    return rows


def _highest(data: Split, models: tuple[FairClassifier, ...]) -> tuple[float, float]:
    """Highest training rate of any iterate, and of those with between 1% and 99% positives."""
    rates, eligible = [0.0], [0.0]
    for model in models:
        for measured in measure_iterates(model, data, "train"):
            if measured["rate"] >= 0:
                rates.append(measured["rate"])
                if not measured["constant"]:
                    eligible.append(measured["rate"])
    return max(rates), max(eligible)


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate; a line for each correlation."""
    figure, axes = grid(["test accuracy", "test statistical rate"], list(READINGS))
    table = table.assign(name=table["rho"].map("{:g}".format))
    for j, reading in enumerate(READINGS):
        part = table[table["reading"] == reading]
        for k, what in enumerate(("accuracy", "rate")):
            lines(axes[k][j], part, "tau", what, "name", styles=STYLES)
        axes[1][j].plot(TAUS, TAUS, color="0.4", linewidth=0.8, label="rate = τ")
        axes[1][j].set_ylim(0, 1.02)
        axes[1][j].set_xlabel("τ")
    legend(figure, axes, ncols=9)
    figure.legends[0].set_title("correlation of label and group", {"size": "small"})
    return figure


def _rises(table: pd.DataFrame, reading: str) -> Finding:
    rows = table[table["reading"] == reading]
    curves = {rho: means(rows, "tau", rho=rho)["rate"] for rho in sorted(set(rows["rho"]))}
    drops = {rho: float(curve.diff().min()) for rho, curve in curves.items()}
    rises = {rho: float(curve.iloc[-1] - curve.iloc[0]) for rho, curve in curves.items()}
    worst, least = min(drops, key=drops.__getitem__), min(rises, key=rises.__getitem__)
    text = (
        f"largest drop {max(0.0, -drops[worst]):.3f} (ρ = {worst:g}), "
        f"least rise {rises[least]:+.2f} (ρ = {least:g})"
    )
    return Finding(text, drops[worst] >= -0.01 and rises[least] > 0)


def _perfect(table: pd.DataFrame, reading: str) -> Finding:
    least = table[table["reading"] == reading].groupby("rho")[["best", "best_eligible"]].min()
    low = least["best_eligible"]
    text = f"least {low.min():.3f} (ρ = {low.idxmin():g}); of any iterate {least['best'].min():.3f}"
    return Finding(text, bool(low.min() >= 0.99))


def _random_or_constant(table: pd.DataFrame, reading: str) -> Finding:
    here = (table["reading"] == reading) & (table["tau"] == 0.9)
    rows = table[here & (table["rho"] == table["rho"].max())]
    gain = float((rows["accuracy"] - rows["majority"]).mean())
    return Finding(f"{gain:+.3f}", gain <= 0.01)


TARGETS = experiment(
    "targets",
    cells=grid_of,
    run=run,
    draw=draw,
    tests={
        "rises": _rises,
        "perfect": _perfect,
        "random_or_constant": _random_or_constant,
    },
)
