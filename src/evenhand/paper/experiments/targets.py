"""What raising τ does, and how fair the run gets on the way."""

from typing import Any

import numpy as np
import pandas as pd

from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import (
    OPEN,
    UNDECIDED,
    Finding,
    Rows,
    experiment,
    means,
)
from evenhand.paper.experiments._draw import draw_panels
from evenhand.paper.experiments._spread import against_spread, deciding, with_spread

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

    ``training`` is the training rate of what τ chose. ``best`` is over the iterates that call
    between 1% and 99% of each group positive; ``majority`` is the constant answer's accuracy.
    """
    data = lab.split(rho, seed)
    train, test = lab.part_of(data), lab.part_of(data, "test")
    majority = float(max(np.mean(test.y), 1 - np.mean(test.y)))
    rows: Rows = []
    for setting in lab.settings("start"):
        losses = lab.problem(train, setting)
        W, other = (
            lab.iterates(losses, setting, f"{method} modified", seed=seed)
            for method in ("AGD", "NGD")
        )
        training, tested = lab.measure_iterates(W, train), lab.measure_iterates(W, test)
        both = pd.concat([training, lab.measure_iterates(other, train)])
        best = {
            "best": float(both["rate"].where(both["eligible"], 0.0).fillna(0.0).max()),
            "majority": majority,
        }
        for tau in TAUS:
            i = lab.choose(training, tau)
            measured = tested.iloc[i].to_dict() | {"training": training["rate"].iloc[i]}
            rows.append({**setting, "tau": tau, "iterate": i + 1, **measured, **best})
    return rows


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate; a line for each correlation."""
    table = table.assign(name=table["rho"].map("{:g}".format))
    rows: Any = {"test accuracy": ("accuracy", {}), "test statistical rate": ("rate", {})}
    figure, axes = draw_panels(table, rows, "tau", "τ", styles=STYLES, ncols=9)
    for ax in axes[1]:
        ax.plot(TAUS, TAUS, color="0.4", linewidth=0.8)
    figure.legends[0].set_title("correlation of label and group", {"size": "small"})
    return figure


def _rises(table: pd.DataFrame) -> Finding:
    curves = {rho: means(table, "tau", rho=rho)["rate"] for rho in sorted(set(table["rho"]))}
    drops = {rho: float(curve.diff().min()) for rho, curve in curves.items()}
    worst, top = min(drops, key=drops.__getitem__), TAUS[-1]
    rows = table.fillna({"rate": 0.0, "training": 0.0})
    rates, training = (
        rows.pivot_table(index=["rho", "tau"], columns="seed", values=what)
        for what in ("rate", "training")
    )
    last = rates.xs(top, level="tau").reindex(rates.index, level="rho")
    rises = (last - rates).drop(top, level="tau")
    # a run that has the highest τ already is not asked for more; no rise at all is none
    asked = rises.mask(training >= top).dropna(how="all") - 1e-9
    text = (
        f"largest drop {max(0.0, -drops[worst]):.3f} (ρ = {worst:g}), "
        f"{rises.size - asked.count().sum()} of {rises.size} runs fair already"
    )
    falls = drops[worst] < -0.01
    if asked.empty:
        return Finding(text, False if falls else None, OPEN)
    rho, tau = case = deciding(asked)
    least = with_spread(asked + 1e-9, case)
    text += f", least rise of the others {least} (ρ = {rho:g}, from τ = {tau:g})"
    return Finding(text, False if falls else against_spread(asked), UNDECIDED)


def _perfect(table: pd.DataFrame) -> Finding:
    made = table[(table["rho"] != lab.ADULT) & (table["tau"] == TAUS[-1])]
    best = made.pivot_table(index="rho", columns="seed", values="best")
    text = f"highest rate less 0.99: {with_spread(best - 0.99)} (ρ = {deciding(best - 0.99):g})"
    return Finding(text, against_spread(best - 0.99), UNDECIDED)


def _random_or_constant(table: pd.DataFrame) -> Finding:
    rows = table[(table["tau"] == 0.9) & (table["rho"] == table["rho"].max())]
    gain = (rows["accuracy"] - rows["majority"]).groupby(rows["seed"]).mean().to_frame().T
    return Finding(with_spread(gain), against_spread(0.01 - gain), UNDECIDED)


TARGETS = experiment(
    "targets",
    cells=lab.grid_of,
    run=run,
    draw=draw,
    tests={
        "rises": _rises,
        "perfect": _perfect,
        "random_or_constant": _random_or_constant,
    },
)
