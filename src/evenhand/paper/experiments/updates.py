"""Modified against normal updates over the correlation, on test data."""

from functools import partial
from typing import Any

import pandas as pd

from evenhand.paper.experiments._claims import Finding, Rows, dagger, experiment, means
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.paper.experiments._fits import (
    READINGS,
    fit,
    grid_of,
    measure_last,
    measure_model,
    split,
)
from evenhand.peers import AccuracyOnly, FairnessOnly


def run(rho: float, seed: int) -> Rows:
    """Test accuracy and rate of AGD with either update, with and without τ, and the two ends."""
    data = split(rho, seed)
    rows = []

    def add(reading: str, name: str, found: dict[str, float], **more: Any) -> None:
        rows.append({"reading": reading, "name": name} | found | more)

    def test(model: Any) -> dict[str, float]:
        return measure_model(model, data, "test")

    plain, fair = (
        peer.fit(data.X_train, data.y_train, sensitive_features=data.z_train)
        for peer in (AccuracyOnly(), FairnessOnly(solver="gd"))
    )
    for reading in READINGS:
        for update in ("modified", "normal"):
            model = fit(data, reading, "AGD", update=update, tau=0.8)
            last = measure_last(model, data, "test")
            add(reading, f"AGD {update}", last)
            if update == "modified":
                add(reading, "AGD modified, τ = 0.8", test(model), feasible=bool(model.feasible_))
        add(reading, "accuracy only", test(plain))
        add(reading, "fairness only", test(fair))
    return rows


def _curve(table: pd.DataFrame, reading: str, name: str) -> pd.DataFrame:
    return means(table, "rho", reading=reading, name=name)


def _always_higher(table: pd.DataFrame, reading: str) -> Finding:
    modified, normal = (_curve(table, reading, f"AGD {u}") for u in ("modified", "normal"))
    gap = modified["rate"] - normal["rate"]
    text = f"least {gap.min():+.3f} at ρ = {gap.idxmin():g}{dagger(modified, normal)}"
    return Finding(text, bool(gap.min() > 0))


def _much_higher(table: pd.DataFrame, reading: str) -> Finding:
    normal = _curve(table, reading, "AGD normal")
    curves = [_curve(table, reading, n) for n in ("AGD modified", "AGD modified, τ = 0.8")]
    gaps = [float((curve["rate"] - normal["rate"]).mean()) for curve in curves]
    text = f"{gaps[0]:+.2f}, with τ {gaps[1]:+.2f}{dagger(*curves, normal)}"
    return Finding(text, min(gaps) >= 0.1)


def _threshold(table: pd.DataFrame, reading: str) -> Finding:
    curve = _curve(table, reading, "AGD modified, τ = 0.8")
    rates = curve["rate"]
    text = f"least {rates.min():.2f} at ρ = {rates.idxmin():g}{dagger(curve)}"
    return Finding(text, bool(rates.min() >= 0.75))


def _lowers(table: pd.DataFrame, reading: str) -> Finding:
    fair, plain = (_curve(table, reading, f"{name} only") for name in ("fairness", "accuracy"))
    gap = plain["rate"] - fair["rate"]
    text = f"lower by {gap.min():+.2f} at ρ = {gap.idxmin():g}{dagger(fair)}"
    return Finding(text, bool(gap.min() > 0))


UPDATES = experiment(
    "updates",
    cells=grid_of,
    run=run,
    draw=partial(draw_over_rho, rows=["test accuracy", "test statistical rate"]),
    tests={
        "always_higher": _always_higher,
        "much_higher": _much_higher,
        "adversary_lowers": _lowers,
        "threshold": _threshold,
    },
)
