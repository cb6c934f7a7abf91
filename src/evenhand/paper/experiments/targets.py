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
    measure,
    measure_iterates,
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
    part = split(rho, seed)
    share = float(np.mean(part.y_test))
    majority = max(share, 1 - share)
    rows: Rows = []
    for reading in READINGS:
        model = fit(part, reading, "AGD", tau=TAUS[0])
        other = fit(part, reading, "NGD")
        best = dict(zip(("best", "best_eligible"), _highest(part, (model, other)), strict=True))
        for tau in TAUS:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", FairnessWarning)
                chosen = model.at(tau)
            found = measure(part.y_test, chosen.predict(part.X_test), part.z_test)
            reached = {"reading": reading, "tau": tau, "feasible": bool(chosen.feasible_)}
            iterate = {"iterate": int(chosen.frontier_.select(tau).iterate), "majority": majority}
            rows.append({**reached, **iterate, **found, **best})
    return rows


def _highest(part: Split, models: tuple[FairClassifier, ...]) -> tuple[float, float]:
    """Highest training rate of any iterate, and of those with between 1% and 99% positives."""
    rates, eligible = [0.0], [0.0]
    for model in models:
        for found in measure_iterates(model, part.X_train, part.y_train, part.z_train):
            if found["rate"] >= 0:
                rates.append(found["rate"])
                if not found["constant"]:
                    eligible.append(found["rate"])
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
    part = table[table["reading"] == reading]
    curves = {rho: means(part, "tau", rho=rho)["rate"] for rho in sorted(set(part["rho"]))}
    drops = {rho: float(curve.diff().min()) for rho, curve in curves.items()}
    rises = {rho: float(curve.iloc[-1] - curve.iloc[0]) for rho, curve in curves.items()}
    worst, least = min(drops, key=drops.__getitem__), min(rises, key=rises.__getitem__)
    text = (
        f"largest drop {max(0.0, -drops[worst]):.3f} (ρ = {worst:g}), "
        f"least rise {rises[least]:+.2f} (ρ = {least:g})"
    )
    return Finding(text, drops[worst] >= -0.01 and rises[least] > 0)


def _perfect(table: pd.DataFrame, reading: str) -> Finding:
    part = table[table["reading"] == reading].groupby("rho")[["best", "best_eligible"]].min()
    low = part["best_eligible"]
    text = f"least {low.min():.3f} (ρ = {low.idxmin():g}); of any iterate {part['best'].min():.3f}"
    return Finding(text, bool(low.min() >= 0.99))


def _random_or_constant(table: pd.DataFrame, reading: str) -> Finding:
    here = (table["reading"] == reading) & (table["tau"] == 0.9)
    part = table[here & (table["rho"] == table["rho"].max())]
    gain = float((part["accuracy"] - part["majority"]).mean())
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
