"""Training accuracy and rate over the iterations, and at iteration 50 over all correlations."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.paper.experiments._claims import (
    CORRECTED,
    Finding,
    Rows,
    dagger,
    experiment,
    means,
)
from evenhand.paper.experiments._draw import draw_over_rho, grid, legend, lines
from evenhand.paper.experiments._fits import (
    ADULT,
    READINGS,
    VARIANTS,
    fit,
    grid_of,
    measure_iterates,
    measure_last,
    measure_model,
    split,
)
from evenhand.peers import AccuracyOnly

DATA = {ADULT: "Adult", 0.5: "ρ = 0.5"}
FIXED = "corrected, η = 0.1"
COLUMNS = (*READINGS, FIXED)


def run(rho: float, seed: int) -> Rows:
    """Accuracy and rate on the training data, iteration by iteration.

    A run that diverges has rows up to there. ``majority`` and ``plain`` are the accuracies of the
    constant answer and of plain logistic regression.
    """
    data = split(rho, seed)
    plain = AccuracyOnly().fit(data.X_train, data.y_train, sensitive_features=data.z_train)
    ends = {
        "majority": float(max(np.mean(data.y_train), 1 - np.mean(data.y_train))),
        "plain": measure_model(plain, data, "train")["accuracy"],
    }
    rows = []
    for reading in COLUMNS:
        for name in VARIANTS:
            method, update = name.split()
            fixed = {"step": 0.1} if reading == FIXED else {}
            reads = CORRECTED if reading == FIXED else reading
            model = fit(data, reads, method, update=update, **fixed)
            by_iteration = measure_iterates(model, data, "train")
            for t, measured in enumerate(by_iteration, 1):
                rows.append({"reading": reading, "name": name, "iteration": t} | measured | ends)
    return rows


def run_50(rho: float, seed: int) -> Rows:
    """Accuracy and rate on the training data at iteration 50, or where a run diverged."""
    data = split(rho, seed)
    rows = []
    for reading in READINGS:
        for name in VARIANTS:
            method, update = name.split()
            model = fit(data, reading, method, update=update, max_iter=50, n_iterates=1)
            measured = measure_last(model, data, "train")
            rows.append({"reading": reading, "name": name, "iteration": model.n_iter_} | measured)
    return rows


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate on each dataset."""
    rhos = [rho for rho in DATA if rho in set(table["rho"])]
    rows = [f"{DATA[rho]}\ntraining {what}" for rho in rhos for what in ("accuracy", "rate")]
    figure, axes = grid(rows, COLUMNS, width=3.0)
    for i, rho in enumerate(rhos):
        for j, reading in enumerate(COLUMNS):
            part = table[(table["rho"] == rho) & (table["reading"] == reading)]
            for k, what in enumerate(("accuracy", "rate")):
                lines(axes[2 * i + k][j], part, "iteration", what, "name", every=20)
            if reading == FIXED:
                _mark_ends(axes[2 * i][j], part)
            axes[2 * i + 1][j].set_ylim(0, 1.02)
    for ax in axes[-1]:
        ax.set_xlabel("iteration")
        ax.set_xlim(0, 101)
    legend(figure, axes)
    return figure


def _mark_ends(ax: Any, part: pd.DataFrame) -> None:
    """Say where runs diverged."""
    last = part.groupby("name")["iteration"].max()
    if (last < 100).any():
        ends = ", ".join(f"{name} {t}" for name, t in last.items() if t < 100)
        text = "diverged, last iteration:\n" + ends.replace(", ", "\n")
        ax.text(0.97, 0.95, text, transform=ax.transAxes, ha="right", va="top", fontsize="x-small")


def _curve(table: pd.DataFrame, reading: str, rho: float, name: str) -> pd.DataFrame:
    return means(table, "iteration", reading=reading, rho=rho, name=name)


def _ends(table: pd.DataFrame, rho: float) -> tuple[float, float]:
    rows = table[table["rho"] == rho]
    return float(rows["majority"].mean()), float(rows["plain"].mean())


def _modified_above(table: pd.DataFrame, reading: str) -> Finding:
    gaps, last = {}, []
    for rho, data in DATA.items():
        for method in ("AGD", "NGD"):
            last = [
                _curve(table, reading, rho, f"{method} {update}").iloc[-1:]
                for update in ("modified", "normal")
            ]
            gap = last[0]["rate"].iloc[0] - last[1]["rate"].iloc[0]
            gaps[f"{method} {data}"] = (gap, dagger(*last))
    text = ", ".join(f"{name} {gap:+.2f}{mark}" for name, (gap, mark) in gaps.items())
    return Finding(text, min(gap for gap, _ in gaps.values()) >= 0.1)


def _reaches(
    table: pd.DataFrame, reading: str, *, rho: float, name: str, least_rate: float | None
) -> Finding:
    majority, plain = _ends(table, rho)
    accuracy, rate = _curve(table, reading, rho, name).iloc[-1][["accuracy", "rate"]]
    high = (majority + plain) / 2
    text = f"accuracy {accuracy:.3f} (high: {high:.3f})"
    good = bool(accuracy >= high)
    if least_rate is not None:
        text, good = f"{text}, rate {rate:.2f}", good and bool(rate >= least_rate)
    return Finding(text, good)


def _first_time(curve: pd.DataFrame, accuracy: float, rate: float) -> int:
    """First iteration at which both are reached within a margin; 101 if none is."""
    good = (curve["accuracy"] >= accuracy - 0.005) & (curve["rate"] >= rate - 0.02)
    return int(good.idxmax()) if good.any() else 101


def _faster(table: pd.DataFrame, reading: str, *, rho: float) -> Finding:
    slow = _curve(table, reading, rho, "NGD modified")
    fast = _curve(table, reading, rho, "AGD modified")
    goal = slow.iloc[-1]
    times = [_first_time(c, goal["accuracy"], goal["rate"]) for c in (fast, slow)]
    words = ["never" if t > 100 else str(t) for t in times]
    return Finding(f"AGD {words[0]}, NGD {words[1]}", times[0] < times[1])


def _final(table: pd.DataFrame, reading: str, *, what: str, holds: Any) -> Finding:
    agd, ngd = (
        _curve(table, reading, ADULT, f"{method} modified")[what].iloc[-1]
        for method in ("AGD", "NGD")
    )
    return Finding(f"AGD {agd:.3f}, NGD {ngd:.3f}", bool(holds(agd, ngd)))


def _never_high(table: pd.DataFrame, reading: str) -> Finding:
    tops = {rho: _curve(table, reading, rho, "AGD normal")["rate"].max() for rho in DATA}
    text = ", ".join(f"{DATA[rho]} {top:.2f}" for rho, top in tops.items())
    return Finding(f"highest: {text}", max(tops.values()) < 0.8)


def _high_then_drops(table: pd.DataFrame, reading: str) -> Finding:
    texts, good = [], True
    for rho, data in DATA.items():
        curve = _curve(table, reading, rho, "NGD normal")
        majority, plain = _ends(table, rho)
        first, last = curve["rate"].iloc[:10].max(), curve["rate"].iloc[-1]
        both = ((curve["rate"] >= 0.8) & (curve["accuracy"] >= (majority + plain) / 2)).any()
        texts.append(f"{data} {first:.2f} → {last:.2f}")
        good &= bool(first >= 0.8 and last < 0.8 and not both)
    return Finding(", ".join(texts), good)


def _at_50(table: pd.DataFrame, reading: str, name: str) -> pd.DataFrame:
    return means(table, "rho", reading=reading, name=name)


def _every_rho(table: pd.DataFrame, reading: str, *, method: str) -> Finding:
    modified, normal = (
        _at_50(table, reading, f"{method} {update}") for update in ("modified", "normal")
    )
    gap = modified["rate"] - normal["rate"]
    text = f"least {gap.min():+.3f} at ρ = {gap.idxmin():g}{dagger(modified, normal)}"
    return Finding(text, bool(gap.min() >= 0))


def _never_at_50(table: pd.DataFrame, reading: str) -> Finding:
    curves = {name: _at_50(table, reading, name) for name in ("AGD normal", "NGD normal")}
    tops = {name: curve["rate"] for name, curve in curves.items()}
    text = ", ".join(
        f"{name[:3]} {rates.max():.2f} (ρ = {rates.idxmax():g}){dagger(curves[name])}"
        for name, rates in tops.items()
    )
    return Finding(f"highest: {text}", bool(max(rates.max() for rates in tops.values()) < 0.8))


CURVES = experiment(
    "curves",
    cells=lambda quick: grid_of(quick, tuple(DATA)),
    run=run,
    draw=draw,
    tests={
        "modified_above": _modified_above,
        "ngd_adult": partial(_reaches, rho=ADULT, name="NGD modified", least_rate=0.8),
        "agd_adult": partial(_reaches, rho=ADULT, name="AGD modified", least_rate=0.8),
        "ngd_half": partial(_reaches, rho=0.5, name="NGD modified", least_rate=None),
        "agd_half": partial(_reaches, rho=0.5, name="AGD modified", least_rate=None),
        "faster_adult": partial(_faster, rho=ADULT),
        "faster_half": partial(_faster, rho=0.5),
        "similar_accuracy": partial(
            _final, what="accuracy", holds=lambda agd, ngd: abs(agd - ngd) <= 0.02
        ),
        "higher_rate": partial(_final, what="rate", holds=lambda agd, ngd: agd > ngd),
        "agd_normal_never_high": _never_high,
        "ngd_normal_drops": _high_then_drops,
    },
)
ITERATION_50 = experiment(
    "iteration50",
    cells=grid_of,
    run=run_50,
    draw=partial(draw_over_rho, rows=["training accuracy", "training rate"]),
    tests={
        "agd_every_rho": partial(_every_rho, method="AGD"),
        "ngd_every_rho": partial(_every_rho, method="NGD"),
        "never_high": _never_at_50,
    },
)
