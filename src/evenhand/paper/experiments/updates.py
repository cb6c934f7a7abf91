"""Modified against normal updates over the correlation, on test data."""

import pandas as pd

from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import (
    ALL,
    Cell,
    Finding,
    Rows,
    dagger,
    experiment,
    means,
)
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.peers import AccuracyOnly, FairnessOnly


def cells(quick: bool) -> list[Cell]:
    """Give correlations and seeds, in each encoding of Adult."""
    return [cell | {"encoding": e} for e in lab.ENCODINGS for cell in lab.grid_of(quick)]


def run(rho: float, seed: int, encoding: str) -> Rows:
    """Test accuracy and rate of AGD with either update, with and without τ, and the two ends.

    In another encoding only the start at zero is run.
    """
    data = lab.split(rho, seed, lab.ENCODINGS[encoding])
    train, test = lab.part_of(data), lab.part_of(data, "test")
    rows: Rows = []
    for name, peer in (("accuracy", AccuracyOnly()), ("fairness", FairnessOnly(solver="gd"))):
        peer.fit(data.X_train, data.y_train, sensitive_features=data.z_train)
        measured = lab.measure_model(peer, data, "test")
        rows.append({"reading": ALL, "ridge": ALL, "name": f"{name} only"} | measured)
    choices = ("start",) if encoding == "full" else ()
    for row, W in lab.runs(train, ("AGD modified", "AGD normal"), *choices, seed=seed):
        rows.append({**row, **lab.measure_last(W, test)})
        if row["name"] == "AGD modified":
            _, tested = lab.measure_chosen(W, data, 0.8)
            rows.append(row | {"name": "AGD modified, τ = 0.8"} | tested)
    return rows


def _curve(table: pd.DataFrame, name: str) -> pd.DataFrame:
    return means(table, "rho", name=name)


def _always_higher(table: pd.DataFrame) -> Finding:
    modified, normal = (_curve(table, f"AGD {u}") for u in ("modified", "normal"))
    gap = modified["rate"] - normal["rate"]
    text = f"least {gap.min():+.3f} at ρ = {gap.idxmin():g}{dagger(modified, normal)}"
    return Finding(text, bool(gap.min() > 0))


def _much_higher(table: pd.DataFrame) -> Finding:
    normal = _curve(table, "AGD normal")
    curves = [_curve(table, n) for n in ("AGD modified", "AGD modified, τ = 0.8")]
    gaps = [float((curve["rate"] - normal["rate"]).mean()) for curve in curves]
    text = f"{gaps[0]:+.2f}, with τ {gaps[1]:+.2f}{dagger(*curves, normal)}"
    return Finding(text, min(gaps) >= 0.1)


def _threshold(table: pd.DataFrame) -> Finding:
    curve = _curve(table, "AGD modified, τ = 0.8")
    rates = curve["rate"]
    text = f"least {rates.min():.2f} at ρ = {rates.idxmin():g}{dagger(curve)}"
    return Finding(text, bool(rates.min() >= 0.75))


UPDATES = experiment(
    "updates",
    cells=cells,
    run=run,
    draw=draw_over_rho,
    tests={
        "always_higher": _always_higher,
        "much_higher": _much_higher,
        "threshold": _threshold,
    },
)
