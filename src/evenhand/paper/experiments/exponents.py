"""Whether the exponent p of α = 0.1 / t^p matters."""

from functools import partial

import pandas as pd

from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import (
    UNDECIDED,
    Cell,
    Finding,
    Rows,
    experiment,
)
from evenhand.paper.experiments._draw import draw_each
from evenhand.paper.experiments._spread import against_spread, with_spread

DATA = {lab.ADULT: "Adult", 0.8: "ρ = 0.8"}
MOST = {"accuracy": 0.02, "rate": 0.05}
POWERS = tuple(round(0.1 * k, 1) for k in range(1, 11))


def cells(quick: bool) -> list[Cell]:
    """Give datasets, seeds and exponents."""
    powers = (0.1, 0.5, 1.0) if quick else POWERS
    return [cell | {"power": p} for cell in lab.grid_of(quick, tuple(DATA)) for p in powers]


def run(rho: float, seed: int, power: float) -> Rows:
    """Test accuracy and rate of the last iterate for an exponent, by AGD and NGD."""
    data = lab.split(rho, seed)
    methods = ("AGD modified", "NGD modified")
    found = lab.runs(lab.part_of(data), methods, "alpha", "step", power=power)
    return [{**row, **lab.measure_last(W, lab.part_of(data, "test"))} for row, W in found]


def _flat(table: pd.DataFrame, *, rho: float) -> Finding:
    here, ranges = table[table["rho"] == rho].fillna({"rate": 0.0}), {}
    for method in ("AGD", "NGD"):
        rows = here[here["name"] == f"{method} modified"]
        for what in MOST:
            by_power = rows.pivot_table(index="power", columns="seed", values=what)
            mean = by_power.mean(axis=1)
            ranges[method, what] = by_power.loc[mean.idxmax()] - by_power.loc[mean.idxmin()]
    found = pd.DataFrame(ranges).T
    texts = [f"{method} {what} {with_spread(found, (method, what))}" for method, what in ranges]
    margins = pd.DataFrame({case: MOST[case[1]] - ranges[case] for case in ranges}).T
    return Finding("; ".join(texts), against_spread(margins), UNDECIDED)


EXPONENTS = experiment(
    "exponents",
    cells=cells,
    run=run,
    draw=partial(draw_each, data=DATA, part="test", x="power", label="exponent p of α = 0.1 / t^p"),
    tests={"adult": partial(_flat, rho=lab.ADULT), "high_correlation": partial(_flat, rho=0.8)},
)
