"""Training accuracy and rate over the iterations, and at iteration 50 over all correlations."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import CHOICES as ALL_CHOICES
from evenhand.paper.experiments._claims import (
    PRINTED,
    UNDECIDED,
    Cell,
    Finding,
    Rows,
    dagger,
    experiment,
    means,
)
from evenhand.paper.experiments._draw import draw_each, draw_over_rho
from evenhand.paper.experiments._spread import against_spread, with_spread
from evenhand.peers import AccuracyOnly

DATA = {lab.ADULT: "Adult", 0.5: "ρ = 0.5"}
CHOICES = ("start", "alpha", "step")
OWN_STEP = ALL_CHOICES["step"].values[0]
EQUAL = "AGD modified, step η"
"""As printed, with the descent's step: AGD's own is ten times as large."""


def cells(quick: bool) -> list[Cell]:
    """Give Adult and correlation 0.5 with the seeds; Adult in each encoding."""
    usual = [cell | {"encoding": "full"} for cell in lab.grid_of(quick, tuple(DATA))]
    return [*usual, *(cell | {"encoding": "Zafar's"} for cell in lab.grid_of(quick, (lab.ADULT,)))]


def run(rho: float, seed: int, encoding: str) -> Rows:
    """Accuracy and rate on the training data, iteration by iteration.

    ``majority`` and ``plain`` are the accuracies of the constant answer and of plain logistic
    regression. In another encoding only the centre is run. :data:`EQUAL` is run wherever AGD has
    its own step.
    """
    data = lab.split(rho, seed, lab.ENCODINGS[encoding])
    part = lab.part_of(data)
    plain = AccuracyOnly().fit(data.X_train, data.y_train, sensitive_features=data.z_train)
    ends = {
        "majority": float(max(np.mean(part.y), 1 - np.mean(part.y))),
        "plain": lab.measure_model(plain, data, "train")["accuracy"],
    }
    rows: Rows = []
    choices = CHOICES if encoding == "full" else ()
    found = list(lab.runs(part, lab.METHODS, *choices, seed=seed))
    for setting in lab.settings(*choices):
        own = setting.get("step", OWN_STEP) == OWN_STEP
        if own and setting["reading"] == PRINTED:
            W = lab.iterates(
                lab.problem(part, setting), setting | {"step": "η"}, "AGD modified", seed=seed
            )
            found.append(({**setting, "name": EQUAL}, W))
    for row, W in found:
        for t, measured in enumerate(lab.measure_iterates(W, part).to_dict("records"), 1):
            rows.append({**row, "iteration": t, **measured, **ends})
    return rows


def run_50(rho: float, seed: int, encoding: str) -> Rows:
    """Accuracy and rate on the training data at iteration 50, or where a run diverged."""
    part = lab.part_of(lab.split(rho, seed, lab.ENCODINGS[encoding]))
    found = lab.runs(part, lab.METHODS, max_iter=50)
    return [{**row, "iteration": len(W), **lab.measure_last(W, part)} for row, W in found]


def _curve(table: pd.DataFrame, rho: float, name: str) -> pd.DataFrame:
    return means(table, "iteration", rho=rho, name=name)


def _ends(table: pd.DataFrame, rho: float) -> tuple[float, float]:
    rows = table[table["rho"] == rho]
    return float(rows["majority"].mean()), float(rows["plain"].mean())


def _modified_above(table: pd.DataFrame) -> Finding:
    gaps = {}
    for rho, data in DATA.items():
        for method in ("AGD", "NGD"):
            last = [
                _curve(table, rho, f"{method} {update}").iloc[-1:]
                for update in ("modified", "normal")
            ]
            gap = last[0]["rate"].iloc[0] - last[1]["rate"].iloc[0]
            gaps[f"{method} {data}"] = (gap, dagger(*last))
    text = ", ".join(f"{name} {gap:+.2f}{mark}" for name, (gap, mark) in gaps.items())
    return Finding(text, min(gap for gap, _ in gaps.values()) >= 0.1)


def _reaches(table: pd.DataFrame, *, rho: float, name: str, least_rate: float | None) -> Finding:
    majority, plain = _ends(table, rho)
    accuracy, rate = _curve(table, rho, name).iloc[-1][["accuracy", "rate"]]
    high = (majority + plain) / 2
    text = f"accuracy {accuracy:.3f} (high: {high:.3f})"
    good = bool(accuracy >= high)
    if least_rate is not None:
        text, good = f"{text}, rate {rate:.2f}", good and bool(rate >= least_rate)
    return Finding(text, good)


def _first_time(curve: pd.DataFrame, accuracy: float, rate: float) -> int:
    """First iteration at which both are reached within a margin; one too many if none is."""
    good = (curve["accuracy"] >= accuracy - 0.005) & (curve["rate"] >= rate - 0.02)
    return int(good.idxmax()) if good.any() else lab.ITERATIONS + 1


def _faster(table: pd.DataFrame, *, rho: float) -> Finding:
    names = ["AGD modified", "NGD modified", *({EQUAL} & set(table["name"]))]
    curves = [_curve(table, rho, name) for name in names]
    goal = curves[1].iloc[-1]
    times = [_first_time(c, goal["accuracy"], goal["rate"]) for c in curves]
    words = ["never" if t > lab.ITERATIONS else str(t) for t in times]
    text = f"AGD {words[-1] if EQUAL in names else words[0]}, NGD {words[1]}"
    if EQUAL not in names:
        return Finding(text, times[0] < times[1])
    return Finding(f"{text} (with its own step AGD {words[0]})", times[2] < times[1])


def _finals(table: pd.DataFrame, what: str) -> pd.DataFrame:
    """Give what the last iterates on Adult have: a row for AGD and NGD, a column for each seed."""
    here = table[(table["rho"] == lab.ADULT) & table["name"].isin(["AGD modified", "NGD modified"])]
    last = here[here["iteration"] == here.groupby(["name", "seed"])["iteration"].transform("max")]
    return last.fillna({what: 0.0}).pivot_table(index="name", columns="seed", values=what)


def _similar(table: pd.DataFrame) -> Finding:
    agd, ngd = _finals(table, "accuracy").mean(axis=1)
    return Finding(f"AGD {agd:.3f}, NGD {ngd:.3f}", bool(abs(agd - ngd) <= 0.02))


def _higher(table: pd.DataFrame) -> Finding:
    rates = _finals(table, "rate")
    gap = rates.iloc[:1] - rates.iloc[1]
    agd, ngd = rates.mean(axis=1)
    text = f"AGD {agd:.3f}, NGD {ngd:.3f}: {with_spread(gap)}"
    return Finding(text, against_spread(gap), UNDECIDED)


def _never_high(table: pd.DataFrame) -> Finding:
    tops = {r: _curve(table, r, "AGD normal")["rate"].max() for r in sorted(set(table["rho"]))}
    text = ", ".join(f"{DATA[rho]} {top:.2f}" for rho, top in tops.items())
    return Finding(f"highest: {text}", max(tops.values()) < 0.8)


def _high_then_drops(table: pd.DataFrame) -> Finding:
    texts, good = [], True
    for rho in sorted(set(table["rho"])):
        curve = _curve(table, rho, "NGD normal")
        majority, plain = _ends(table, rho)
        first, last = curve["rate"].iloc[:10].max(), curve["rate"].iloc[-1]
        both = ((curve["rate"] >= 0.8) & (curve["accuracy"] >= (majority + plain) / 2)).any()
        texts.append(f"{DATA[rho]} {first:.2f} → {last:.2f}")
        good &= bool(first >= 0.8 and last < 0.8 and not both)
    return Finding(", ".join(texts), good)


def _not_converged(table: pd.DataFrame) -> Finding:
    short = []
    for rho in sorted(set(table["rho"])):
        plain = _ends(table, rho)[1]
        finals = (_curve(table, rho, f"{m} modified").iloc[-1] for m in ("AGD", "NGD"))
        short += [min(plain - end["accuracy"], 1 - end["rate"]) for end in finals]
    least, most = min(short), max(short)
    return Finding(f"short of the nearer end by {least:.3f} to {most:.3f}", bool(least > 0.005))


def _every_rho(table: pd.DataFrame, *, method: str) -> Finding:
    modified, normal = (
        means(table, "rho", name=f"{method} {update}") for update in ("modified", "normal")
    )
    gap = modified["rate"] - normal["rate"]
    text = f"least {gap.min():+.3f} at ρ = {gap.idxmin():g}{dagger(modified, normal)}"
    return Finding(text, bool(gap.min() >= 0))


def _never_at_50(table: pd.DataFrame) -> Finding:
    curves = {name: means(table, "rho", name=name) for name in ("AGD normal", "NGD normal")}
    tops = {name: curve["rate"] for name, curve in curves.items()}
    text = ", ".join(
        f"{name[:3]} {rates.max():.2f} (ρ = {rates.idxmax():g}){dagger(curves[name])}"
        for name, rates in tops.items()
    )
    return Finding(f"highest: {text}", bool(max(rates.max() for rates in tops.values()) < 0.8))


def _draw(table: pd.DataFrame) -> Any:
    usual = table[table["name"] != EQUAL]
    return draw_each(usual, DATA, "training", x="iteration", label="iteration", every=20)


CURVES = experiment(
    "curves",
    cells=cells,
    run=run,
    draw=_draw,
    tests={
        "modified_above": _modified_above,
        "ngd_adult": partial(_reaches, rho=lab.ADULT, name="NGD modified", least_rate=0.8),
        "agd_adult": partial(_reaches, rho=lab.ADULT, name="AGD modified", least_rate=0.8),
        "ngd_half": partial(_reaches, rho=0.5, name="NGD modified", least_rate=None),
        "agd_half": partial(_reaches, rho=0.5, name="AGD modified", least_rate=None),
        "faster_adult": partial(_faster, rho=lab.ADULT),
        "faster_half": partial(_faster, rho=0.5),
        "similar_accuracy": _similar,
        "higher_rate": _higher,
        "agd_normal_never_high": _never_high,
        "ngd_normal_drops": _high_then_drops,
        "not_converged": _not_converged,
    },
)
ITERATION_50 = experiment(
    "iteration50",
    cells=lambda quick: [c | {"encoding": e} for e in lab.ENCODINGS for c in lab.grid_of(quick)],
    run=run_50,
    draw=partial(draw_over_rho, rows={"training accuracy": "accuracy", "training rate": "rate"}),
    tests={
        "agd_every_rho": partial(_every_rho, method="AGD"),
        "ngd_every_rho": partial(_every_rho, method="NGD"),
        "never_high": _never_at_50,
    },
)
