"""Whether the exponent p of α = 0.1 / t^p matters."""

from functools import partial
from typing import Any

import pandas as pd

from evenhand.paper.experiments._claims import Cell, Finding, Rows, experiment, means
from evenhand.paper.experiments._draw import grid, legend, lines
from evenhand.paper.experiments._fits import ADULT, READINGS, fit, grid_of, measure_last, split

DATA = {ADULT: "Adult", 0.8: "ρ = 0.8"}
POWERS = tuple(round(0.1 * k, 1) for k in range(1, 11))


def cells(quick: bool) -> list[Cell]:
    """Give datasets, seeds and exponents."""
    powers = (0.1, 0.5, 1.0) if quick else POWERS
    return [cell | {"power": p} for cell in grid_of(quick, tuple(DATA)) for p in powers]


def run(rho: float, seed: int, power: float) -> Rows:
    """Test accuracy and rate of the last iterate for an exponent, by AGD and NGD."""
    data = split(rho, seed)
    rows = []
    for reading in READINGS:
        for method in ("AGD", "NGD"):
            model = fit(data, reading, method, alpha_power=power, n_iterates=1)
            measured = measure_last(model, data, "test")
            rows.append({"reading": reading, "name": f"{method} modified"} | measured)
    return rows


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate on each dataset."""
    rows = [f"{name}\ntest {what}" for name in DATA.values() for what in ("accuracy", "rate")]
    figure, axes = grid(rows, list(READINGS))
    for i, rho in enumerate(DATA):
        for j, reading in enumerate(READINGS):
            part = table[(table["rho"] == rho) & (table["reading"] == reading)]
            for k, what in enumerate(("accuracy", "rate")):
                lines(axes[2 * i + k][j], part, "power", what, "name")
            axes[2 * i + 1][j].set_ylim(0, 1.02)
    for ax in axes[-1]:
        ax.set_xlabel("exponent p of α = 0.1 / t^p")
    legend(figure, axes)
    return figure


def _flat(table: pd.DataFrame, reading: str, *, rho: float) -> Finding:
    texts, good = [], True
    for method in ("AGD", "NGD"):
        curve = means(table, "power", rho=rho, reading=reading, name=f"{method} modified")
        accuracy, rate = (curve.max() - curve.min())[["accuracy", "rate"]]
        texts.append(f"{method} {accuracy:.3f}, {rate:.2f}")
        good &= bool(accuracy <= 0.02 and rate <= 0.05)
    return Finding("; ".join(texts), good)


EXPONENTS = experiment(
    "exponents",
    cells=cells,
    run=run,
    draw=draw,
    tests={"adult": partial(_flat, rho=ADULT), "high_correlation": partial(_flat, rho=0.8)},
)
