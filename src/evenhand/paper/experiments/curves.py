"""Training accuracy and rate over the iterations, and at iteration 50 over all correlations."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.paper.experiments._claims import (
    CORRECTED,
    Claim,
    Experiment,
    Finding,
    Rows,
    dagger,
    means,
)
from evenhand.paper.experiments._draw import draw_over_rho, grid, legend, lines
from evenhand.paper.experiments._fits import (
    ADULT,
    READINGS,
    VARIANTS,
    fit,
    grid_of,
    measure,
    measure_iterates,
    measure_last,
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
    part = split(rho, seed)
    plain = AccuracyOnly().fit(part.X_train, part.y_train, sensitive_features=part.z_train)
    ends = {
        "majority": float(max(np.mean(part.y_train), 1 - np.mean(part.y_train))),
        "plain": measure(part.y_train, plain.predict(part.X_train), part.z_train)["accuracy"],
    }
    rows = []
    for reading in COLUMNS:
        for name in VARIANTS:
            method, update = name.split()
            fixed = {"step": 0.1} if reading == FIXED else {}
            reads = CORRECTED if reading == FIXED else reading
            model = fit(part, reads, method, update=update, **fixed)
            found_at = measure_iterates(model, part.X_train, part.y_train, part.z_train)
            for t, found in enumerate(found_at, 1):
                rows.append({"reading": reading, "name": name, "iteration": t} | found | ends)
    return rows


def run_50(rho: float, seed: int) -> Rows:
    """Accuracy and rate on the training data at iteration 50, or where a run diverged."""
    part = split(rho, seed)
    rows = []
    for reading in READINGS:
        for name in VARIANTS:
            method, update = name.split()
            model = fit(part, reading, method, update=update, max_iter=50, n_iterates=1)
            found = measure_last(model, part.X_train, part.y_train, part.z_train)
            rows.append({"reading": reading, "name": name, "iteration": model.n_iter_} | found)
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
    part = table[table["rho"] == rho]
    return float(part["majority"].mean()), float(part["plain"].mean())


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


def draw_50(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate, over the correlation."""
    return draw_over_rho(table, ["training accuracy", "training rate"])


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


HIGH = "high is halfway from the constant answer to plain logistic regression"
ENDS_HIGH = f"at iteration 100 a high accuracy and a training rate of at least 0.8; {HIGH}"
ENDS_ACCURATE = f"at iteration 100 a high accuracy, whatever the rate; {HIGH}"
FIRST = (
    "first iteration of the mean curve within 0.005 of NGD's final accuracy and 0.02 of its final "
    "rate, or above: AGD's is smaller"
)
AT_50 = "training rate at iteration 50, modified less normal, is not negative at any ρ"

CURVES = Experiment(
    name="curves",
    title="Training accuracy and statistical rate over the iterations",
    cells=lambda quick: grid_of(quick, tuple(DATA)),
    run=run,
    draw=draw,
    caption=(
        "Means over the seeds, bands of one standard deviation. In the last column the corrected "
        "reading with η = 0.1 for w and u: for u that is far too long a step while scores are "
        "nearly the same for everybody, so runs diverge or stay with one answer. (w alone would "
        "bear it.)"
    ),
    claims=(
        Claim(
            "With the modified update both methods become much fairer than with the normal one, on "
            "Adult and at ρ = 0.5",
            "Section 5.3, Figure 2 a, b",
            "final training rate, modified less normal, at least 0.1 in all four cases",
            _modified_above,
        ),
        Claim(
            "NGD modified ends at a high accuracy and a high rate on Adult",
            "Section 5.2.1, Figure 2 a",
            ENDS_HIGH,
            partial(_reaches, rho=ADULT, name="NGD modified", least_rate=0.8),
        ),
        Claim(
            "AGD modified ends at a high accuracy and a high rate on Adult",
            "Section 5.2.1, Figure 2 a",
            ENDS_HIGH,
            partial(_reaches, rho=ADULT, name="AGD modified", least_rate=0.8),
        ),
        Claim(
            "NGD modified ends at a high accuracy at ρ = 0.5",
            "Section 5.2.2, Figure 2 b",
            ENDS_ACCURATE,
            partial(_reaches, rho=0.5, name="NGD modified", least_rate=None),
        ),
        Claim(
            "AGD modified ends at a high accuracy at ρ = 0.5",
            "Section 5.2.2, Figure 2 b",
            ENDS_ACCURATE,
            partial(_reaches, rho=0.5, name="AGD modified", least_rate=None),
        ),
        Claim(
            "AGD modified gets there in fewer iterations than NGD modified on Adult",
            "Section 5.2.1, Figure 2 a",
            FIRST,
            partial(_faster, rho=ADULT),
        ),
        Claim(
            "AGD modified gets there in fewer iterations than NGD modified at ρ = 0.5",
            "Section 5.2.2, Figure 2 b",
            FIRST,
            partial(_faster, rho=0.5),
        ),
        Claim(
            "AGD's accuracy is similar to NGD's on Adult",
            "Section 5.2.1",
            "training accuracies at iteration 100, modified update, within 0.02 of each other "
            "(test added after the first full run)",
            partial(_final, what="accuracy", holds=lambda agd, ngd: abs(agd - ngd) <= 0.02),
        ),
        Claim(
            "AGD's final rate is the higher one on Adult",
            "Section 5.2.1",
            "training rate at iteration 100, modified update: AGD's above NGD's",
            partial(_final, what="rate", holds=lambda agd, ngd: agd > ngd),
        ),
        Claim(
            "With AGD and the normal update the rate is never high",
            "Section 5.3",
            "largest mean training rate over the iterations below 0.8, Adult and ρ = 0.5",
            _never_high,
        ),
        Claim(
            "With NGD and the normal update the rate is high at first and drops, and is never high "
            "together with the accuracy",
            "Section 5.3",
            "training rate at least 0.8 within 10 iterations, below 0.8 at iteration 100, and no "
            f"iteration with rate 0.8 and a high accuracy; {HIGH}",
            _high_then_drops,
        ),
    ),
)
ITERATION_50 = Experiment(
    name="iteration50",
    title="Training accuracy and statistical rate at iteration 50 over the correlation",
    cells=grid_of,
    run=run_50,
    draw=draw_50,
    caption="As the curves, at iteration 50; the leftmost points are Adult itself.",
    claims=(
        Claim(
            "AGD: the modified update is fairer than the normal one for every ρ",
            "Figure 2 c, caption",
            AT_50,
            partial(_every_rho, method="AGD"),
        ),
        Claim(
            "NGD: the modified update is fairer than the normal one for every ρ",
            "Figure 2 c, caption",
            AT_50,
            partial(_every_rho, method="NGD"),
        ),
        Claim(
            "At iteration 50 the rate is never high with normal updates, for any ρ",
            "Section 5.3, Figure 2 c",
            "mean training rate at iteration 50 below 0.8 at every ρ, AGD and NGD",
            _never_at_50,
        ),
    ),
)
