"""The theorems' bounds beside what runs measure."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.solvers import SOLVERS, Iteration
from evenhand.core.updates import modified, normal, power_schedule
from evenhand.paper import theory
from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import VACUOUS, Cell, Finding, Rows, experiment
from evenhand.paper.experiments._draw import draw_panels

C = 0.25
MAX_ITER = 200
NGD, AGD, ALONE = "Algorithm 1", "Algorithm 2", "AGD+ alone"


def cells(quick: bool) -> list[Cell]:
    """Give the settings and seeds: a cell takes seconds."""
    return [
        {**setting, "seed": seed}
        for seed in range(1 if quick else lab.SEEDS)
        for setting in lab.settings()
    ]


def run(reading: str, ridge: str, seed: int) -> Rows:
    """Regrets of both algorithms as their theorems set them, on Adult (`coarse`), with the bounds.

    A first run of Algorithm 1 gives the L and G that its learning rates need, and the L₂ of
    Algorithm 2's α. What is known of the assumptions is in every row.
    """
    setting = {"reading": reading, "ridge": ridge}
    oracle = lab.problem(lab.part_of(lab.split(lab.ADULT, seed, "coarse")), setting)
    least, fair = theory.minimum_loss(oracle), theory.fair_optimum(oracle)
    optima: dict[str, Any] = {"w_optimum": least.w, "fair": (fair.w, fair.u)}
    zero, rows = np.zeros(oracle.n_weights), []

    def add(method: str, run: list[Iteration], **bounds: Any) -> theory.Constants:
        """Add measured regrets of a run beside the bounds, which are functions of t, A_t and k."""
        k = theory.constants(oracle, run, **optima)
        total = np.array([it.total for it in run])

        def bound_at(bound: Any, t: Any) -> Any:
            return bound(t, total[t - 1], k)

        table = theory.measured_regrets(
            oracle,
            run,
            min_loss_c=least.loss,
            max_loss_f=fair.bound,
            bounds={loss: partial(bound_at, bound) for loss, bound in bounds.items()},
            n_points=25,
        )
        constants = {f"k_{name}": float(value) for name, value in vars(k).items()}
        for row in table[table["loss"].isin(list(bounds))].to_dict("records"):
            rows.append({"method": method} | row | constants)
        return k

    guess = theory.constants(oracle, list(lab.descend(oracle, setting, "NGD modified")), **optima)
    k = add(
        NGD,
        list(theory.descend(oracle, zero, smoothness=guess.L, G=guess.G, c=C, max_iter=MAX_ITER)),
        F=lambda t, total, k: theory.fairness_bound(t, k, c=C, reading=reading),
        C=lambda t, total, k: theory.price_expression(t, k, c=C, reading=reading),
    )
    alpha = max(1 / guess.L1, 1 / guess.L2)
    agd = SOLVERS["agd_printed" if reading == "printed" else "agd"]
    run = agd.run(
        oracle, zero, rule=modified, schedule=power_schedule(alpha, 0.0), max_iter=MAX_ITER
    )
    options: dict[str, Any] = {"alpha": alpha, "reading": reading}
    add(
        AGD,
        list(run),
        F=lambda t, total, k: theory.agd_fairness_bound(total, k, **options),
        C=lambda t, total, k: theory.agd_classification_bound(total, k, **options),
    )
    run = SOLVERS["agd"].run(
        oracle, zero, rule=normal, schedule=power_schedule(0.0, 0.0), max_iter=MAX_ITER
    )
    distance = theory.bregman(zero, least.w)
    add(ALONE, list(run), C=lambda t, total, k: distance / total)
    start = oracle.evaluate(zero, np.zeros(oracle.n_adversary))
    facts = {
        "k_alpha": alpha,
        "norm_c_start": float(np.linalg.norm(start.grad_c)),
        "norm_f_start": float(np.linalg.norm(start.grad_f)),
        "iterations": float(theory.fairness_iterations(0.01, k, c=C, reading=reading)),
        "excess": _excess(oracle),
    }
    return [row | facts for row in rows]


def _excess(oracle: Any) -> float:
    """Mean of L_F at two points ±x less its value in the middle: above 0 if it is not concave.

    x has a little of u's linear weight and of the w that it pulls at; the middle is w = 0, u = 0.
    """
    zero, u = np.zeros(oracle.n_weights), np.zeros(oracle.n_adversary)
    u[1] = 0.1
    pull = oracle.evaluate(zero, u, 1.0).grad_f

    def value(sign: float, length: float) -> float:
        # one scale throughout: it is a constant in differentiation
        return float(oracle.evaluate(sign * length * pull, sign * u, 1.0).loss_w)

    return max(
        (value(1, length) + value(-1, length)) / 2 - value(0, length)
        for length in np.geomspace(1e-3, 1e2, 16)
    )


_TITLES = {
    (NGD, "F"): "Algorithm 1: fairness\nregret R_F",
    (NGD, "C"): "Algorithm 1: loss\nregret R_C",
    (AGD, "F"): "Algorithm 2: fairness\nregret R_F",
    (AGD, "C"): "Algorithm 2: loss\nregret R_C",
    (ALONE, "C"): "AGD+ on the loss alone:\nregret R_C",
}
STYLES = {
    "measured": {"color": "black", "linestyle": "-", "marker": "o"},
    "upper bound": {"color": "#D55E00", "linestyle": "--", "marker": "^"},
    "the paper's expression (said to be a lower bound)": {
        "color": "#0072B2",
        "linestyle": "-.",
        "marker": "v",
    },
}


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows the regrets of both algorithms, on a logarithmic scale."""
    bound, lower = list(STYLES)[1:]
    named = table["loss"].eq("C") & table["method"].eq(NGD)
    long = pd.concat(
        [
            table.assign(regret=table["measured"], name="measured"),
            table.assign(regret=table["bound"], name=np.where(named, lower, bound)),
        ]
    )
    rows = {
        title: ("regret", {"method": method, "loss": loss})
        for (method, loss), title in _TITLES.items()
    }
    figure, axes = draw_panels(long, rows, "t", "iteration", styles=STYLES, every=6)
    for ax in axes.ravel():
        ax.set_yscale("log")
    return figure


def _series(table: pd.DataFrame, method: str, loss: str) -> pd.DataFrame:
    return table[(table["method"] == method) & (table["loss"] == loss)]


def _facts(table: pd.DataFrame, method: str = NGD) -> pd.DataFrame:
    """One row for each seed, with the constants of a method's run."""
    return table[table["method"] == method].drop_duplicates("seed")


def _under(table: pd.DataFrame, *, method: str, loss: str) -> Finding:
    rows = _series(table, method, loss)
    last = rows[rows["t"] == rows["t"].max()]
    text = f"{last['measured'].mean():.2g} under {last['bound'].mean():.2g}"
    empty = last["bound"].min() >= rows[rows["t"] == rows["t"].min()]["measured"].max()
    if (method, loss) == (NGD, "F"):
        text += f"; ε = 0.01 promised after {_facts(table)['iterations'].mean():.0e}"
    holds = bool((rows["measured"] <= rows["bound"]).all())
    return Finding(text, holds, VACUOUS if empty else "")


def _price(table: pd.DataFrame) -> Finding:
    rows = _series(table, NGD, "C")
    last = rows[rows["t"] == rows["t"].max()]
    text = f"measured {last['measured'].mean():.2g}, said to be at least {last['bound'].mean():.2g}"
    return Finding(text, bool((last["measured"] >= last["bound"]).all()))


def _concave(table: pd.DataFrame) -> Finding:
    least = float(_facts(table)["excess"].min())
    # No excess there would prove nothing of other points.
    return Finding(f"mean above by {least:.1e}", False if least > 1e-12 else None)


def _bounded(table: pd.DataFrame) -> Finding:
    facts = _facts(table)
    c, f = facts["norm_c_start"].mean(), facts["norm_f_start"].mean()
    return Finding(f"at w = 0, u = 0: ‖g_C‖ = {c:.2f}, ‖g_F‖ = {f:.2g}", bool(f > 1e-12))


def _steps(table: pd.DataFrame) -> Finding:
    facts = _facts(table, AGD)
    low = facts[["k_L1", "k_L2"]].min()
    text = f"L₁ = {low['k_L1']:.2f}, L₂ = {low['k_L2']:.2g}"
    # a = 1/(αL₁L₂√t) ≤ 1/L₁ needs αL₂ ≥ 1; αa ≤ 1/L₂ needs L₁ ≥ 1
    first = (facts["k_alpha"] * facts["k_L2"]).min() >= 1
    return Finding(text, bool(first and low["k_L1"] >= 1))


BOUNDS = experiment(
    "theory",
    cells=cells,
    run=run,
    draw=draw,
    tests={
        "fairness_regret": partial(_under, method=NGD, loss="F"),
        "concave": _concave,
        "bounded": _bounded,
        "price": _price,
        "agd_plus": partial(_under, method=ALONE, loss="C"),
        "steps": _steps,
        "agd_classification": partial(_under, method=AGD, loss="C"),
        "agd_fairness": partial(_under, method=AGD, loss="F"),
    },
)
