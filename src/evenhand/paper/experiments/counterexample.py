"""Where the normal update cannot become fair, and the identity that the projection rests on."""

from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.arrays import FloatArray, namespace
from evenhand.core.gaps import SoftRateGap
from evenhand.core.notions import Notion, statistical_parity
from evenhand.core.rates import RATES
from evenhand.core.solvers import Iteration
from evenhand.datasets import make_counterexample
from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import ALL, CHOICES, Cell, Finding, Rows, experiment
from evenhand.paper.experiments._draw import draw_panels

EXAMPLE = "counter-example"
_ROWS = {
    "rate": "training rate\n(counter-example)",
    "cosine": "cosine of the gradients\n(counter-example)",
    "identity": "relative error of the\nidentity (both data)",
}


def _no_adversary(
    s: FloatArray, f: FloatArray, y: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    nothing = namespace(f).zeros_like(f)[None]
    return nothing, nothing


_GAP = SoftRateGap(RATES["selection_rate"])
# A squared difference of mean probabilities, and nobody who guesses the group.
_SECTION_61 = replace(
    statistical_parity(),
    n_features=1,
    features=_no_adversary,
    degree=None,
    gaps={"printed": _GAP, "corrected": _GAP},
)
MODEL, OWN, OWN_LARGE = CHOICES["objective"].values
LOSSES: dict[str, Notion] = {MODEL: statistical_parity(), OWN: _SECTION_61, OWN_LARGE: _SECTION_61}


def cells(quick: bool) -> list[Cell]:
    """Twenty draws of the example, eight large ones, and Adult."""
    draws = {1000: 3 if quick else 20, 20_000: 1 if quick else 8}
    example = [
        {"data": EXAMPLE, "rows": rows, "seed": seed}
        for rows, n in draws.items()
        for seed in range(n)
    ]
    return [*example, {"data": "Adult", "rows": 0, "seed": 0}]


def run(data: str, rows: int, seed: int) -> Rows:
    r"""Rate, and how the gradients lie, at every iteration of NGD with either update.

    ``cosine`` is the cosine of the angle between :math:`g_C` and :math:`g_F`; ``away`` says
    whether the direction d goes down in the fairness objective, :math:`\langle g_F, d\rangle > 0`;
    ``identity`` is the relative error of :math:`\langle g_F, d\rangle = -\alpha\|g_F\|^2`.
    """
    if data == EXAMPLE:
        X, y, z = make_counterexample(rows, random_state=seed, return_X_y_z=True)
        part = lab.Part(X.to_numpy(), y.to_numpy(), z.to_numpy())
    else:
        part = lab.part_of(lab.split(lab.ADULT, seed))
    found: Rows = []
    for setting in lab.settings("objective"):
        objective = setting["objective"]
        if objective != MODEL and rows != (20_000 if objective == OWN_LARGE else 1000):
            continue
        # the size varies by itself; with the other loss it is part of that choice
        size = ALL if not rows or objective == OWN_LARGE else f"{rows:,}"
        losses = lab.problem(part, setting, notion=LOSSES[objective])
        for update in ("modified", "normal"):
            for it in lab.descend(losses, setting, f"NGD {update}"):
                found.append({**setting, "size": size, "name": update, **_facts(it)})
    return found


def _facts(it: Iteration) -> dict[str, Any]:
    rate, m, alpha = RATES["selection_rate"], it.moments, it.alpha
    norm_c, norm_f = np.linalg.norm(m.grad_c), np.linalg.norm(m.grad_f)
    inner, along = m.grad_f @ it.direction, alpha * norm_f**2
    size = norm_f * (norm_c + alpha * norm_f)
    share = rate.per_group(m.counts)
    return {
        "iteration": it.t,
        "rate": float(rate.ratio(m.counts)),
        "eligible": bool(share.min() >= 0.01 and share.max() <= 0.99),
        "cosine": float(m.grad_c @ m.grad_f / (norm_c * norm_f)) if size else None,
        "away": bool(inner > 0) if size else None,
        "identity": float(abs(inner + along) / size) if size else None,
    }


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings; rate, cosine and identity over the iterations."""
    made = {"data": EXAMPLE}
    rows = {label: (what, made if what != "identity" else {}) for what, label in _ROWS.items()}
    table = table.assign(identity=table["identity"].clip(lower=1e-17))
    figure, axes = draw_panels(table, rows, "iteration", "iteration", every=20)
    for line, level in zip(axes, (0.8, 0.0), strict=False):
        for ax in line:
            ax.axhline(level, color="0.4", linewidth=0.8)
    for ax in axes[2]:
        ax.set_yscale("log")
        ax.set_ylim(1e-17, 1)
    return figure


def _part(table: pd.DataFrame, update: str) -> pd.DataFrame:
    return table[(table["name"] == update) & (table["data"] == EXAMPLE)]


def _highest(table: pd.DataFrame, update: str) -> pd.Series:
    """Highest rate of each draw; with the modified update an answer of one kind does not count."""
    rows = _part(table, update)
    rate = rows["rate"].where(rows["eligible"] | (update == "normal"))
    return rate.groupby(rows["seed"]).max().fillna(0.0)


def _exists(table: pd.DataFrame) -> Finding:
    normal, modified = (_highest(table, name) for name in ("normal", "modified"))
    both = (normal < 0.8) & (modified >= 0.8)
    return Finding(f"{both.sum()} of {len(both)} draws", bool(both.any()))


def _stays_unfair(table: pd.DataFrame) -> Finding:
    top = _highest(table, "normal")
    text = f"{(top < 0.8).sum()} of {len(top)} draws, highest rate {top.max():.2f}"
    return Finding(text, bool((top < 0.8).all()))


def _becomes_fair(table: pd.DataFrame) -> Finding:
    top = _highest(table, "modified")
    text = f"{(top >= 0.8).sum()} of {len(top)} draws, least of the highest {top.min():.2f}"
    return Finding(text, bool((top >= 0.8).all()))


def _leads_away(table: pd.DataFrame) -> Finding:
    share = float(_part(table, "normal")["away"].dropna().astype(float).mean())
    return Finding(f"{share:.1%} of iterations", share == 1.0)


def _identity(table: pd.DataFrame) -> Finding:
    rows = table[table["name"] == "modified"]
    worst = float(rows["identity"].max())
    return Finding(f"largest {worst:.0e} in {rows['identity'].count()} iterations", worst <= 1e-10)


COUNTEREXAMPLE = experiment(
    "counterexample",
    cells=cells,
    run=run,
    draw=draw,
    tests={
        "exists": _exists,
        "stays_unfair": _stays_unfair,
        "leads_away": _leads_away,
        "becomes_fair": _becomes_fair,
        "identity": _identity,
    },
)
