"""The theorems' bounds beside what runs measure."""

from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.solvers import SOLVERS, Iteration
from evenhand.core.updates import modified, normal, power_schedule
from evenhand.paper import theory
from evenhand.paper.experiments._claims import Cell, Finding, Rows, experiment
from evenhand.paper.experiments._draw import grid, legend, lines
from evenhand.paper.experiments._fits import ADULT, READINGS, iterations, problem, split

C = 0.25
MAX_ITER = 200
NGD, AGD, ALONE = "Algorithm 1", "Algorithm 2", "AGD+ alone"


def cells(quick: bool) -> list[Cell]:
    """Give readings and seeds: a cell takes seconds."""
    return [
        {"reading": reading, "seed": seed}
        for seed in range(1 if quick else 5)
        for reading in READINGS
    ]


def run(reading: str, seed: int) -> Rows:
    """Regrets of both algorithms as their theorems set them, on Adult (`coarse`), with the bounds.

    A first run of Algorithm 1 gives the L and G that its learning rates need, and the L₂ of
    Algorithm 2's α. What is known of the assumptions is in every row.
    """
    data = split(ADULT, seed, "coarse")
    oracle = problem(data.X_train, data.y_train, data.z_train, reading)
    reads = READINGS[reading]["reading"]
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

    guess = theory.constants(oracle, list(iterations(oracle, reading, "NGD", "modified")), **optima)
    k = add(
        NGD,
        list(theory.descend(oracle, zero, smoothness=guess.L, G=guess.G, c=C, max_iter=MAX_ITER)),
        F=lambda t, total, k: theory.fairness_bound(t, k, c=C, reading=reads),
        C=lambda t, total, k: theory.price_expression(t, k, c=C, reading=reads),
    )
    alpha = max(1 / guess.L1, 1 / guess.L2)
    agd = SOLVERS["agd_printed" if reads == "printed" else "agd"]
    run = agd.run(
        oracle, zero, rule=modified, schedule=power_schedule(alpha, 0.0), max_iter=MAX_ITER
    )
    options: dict[str, Any] = {"alpha": alpha, "reading": reads}
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
        "alpha": alpha,
        "norm_c_start": float(np.linalg.norm(start.grad_c)),
        "norm_f_start": float(np.linalg.norm(start.grad_f)),
        "iterations": float(theory.fairness_iterations(0.01, k, c=C, reading=reads)),
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
    readings = [reading for reading in READINGS if reading in set(table["reading"])]
    figure, axes = grid(list(_TITLES.values()), readings)
    for i, (method, loss) in enumerate(_TITLES):
        name = list(STYLES)[2 if (method, loss) == (NGD, "C") else 1]
        part = table[(table["method"] == method) & (table["loss"] == loss)]
        long = part.rename(columns={"bound": name}).melt(
            ["reading", "seed", "t"], ["measured", name], "name", "regret"
        )
        for j, reading in enumerate(readings):
            here = long[long["reading"] == reading]
            lines(axes[i][j], here, "t", "regret", "name", styles=STYLES, every=6)
            axes[i][j].set_yscale("log")
    for ax in axes[-1]:
        ax.set_xlabel("iteration")
    legend(figure, axes)
    return figure


def _series(table: pd.DataFrame, reading: str, method: str, loss: str) -> pd.DataFrame:
    rows = table[(table["reading"] == reading) & (table["method"] == method)]
    return rows[rows["loss"] == loss]


def _facts(table: pd.DataFrame, reading: str, method: str = NGD) -> pd.DataFrame:
    """One row for each seed, with the constants of a method's run."""
    rows = table[(table["reading"] == reading) & (table["method"] == method)]
    return rows.drop_duplicates("seed")


def _under(table: pd.DataFrame, reading: str, *, method: str, loss: str) -> Finding:
    rows = _series(table, reading, method, loss)
    last = rows[rows["t"] == rows["t"].max()]
    text = f"{last['measured'].mean():.2g} under {last['bound'].mean():.2g}"
    if last["bound"].min() >= rows[rows["t"] == rows["t"].min()]["measured"].max():
        text += ", vacuous"
    if (method, loss) == (NGD, "F"):
        text += f"; ε = 0.01 promised after {_facts(table, reading)['iterations'].mean():.0e}"
    return Finding(text, bool((rows["measured"] <= rows["bound"]).all()))


def _price(table: pd.DataFrame, reading: str) -> Finding:
    rows = _series(table, reading, NGD, "C")
    last = rows[rows["t"] == rows["t"].max()]
    text = f"measured {last['measured'].mean():.2g}, said to be at least {last['bound'].mean():.2g}"
    return Finding(text, bool((last["measured"] >= last["bound"]).all()))


def _concave(table: pd.DataFrame, reading: str) -> Finding:
    least = float(_facts(table, reading)["excess"].min())
    # No excess there would prove nothing of other points.
    return Finding(f"mean above by {least:.1e}", False if least > 1e-12 else None)


def _bounded(table: pd.DataFrame, reading: str) -> Finding:
    facts = _facts(table, reading)
    c, f = facts["norm_c_start"].mean(), facts["norm_f_start"].mean()
    return Finding(f"at w = 0, u = 0: ‖g_C‖ = {c:.2f}, ‖g_F‖ = {f:.2g}", bool(f > 1e-12))


def _steps(table: pd.DataFrame, reading: str) -> Finding:
    facts = _facts(table, reading, AGD)
    low = facts[["k_L1", "k_L2"]].min()
    text = f"L₁ = {low['k_L1']:.2f}, L₂ = {low['k_L2']:.2g}"
    # a = 1/(αL₁L₂√t) ≤ 1/L₁ needs αL₂ ≥ 1; αa ≤ 1/L₂ needs L₁ ≥ 1
    first = (facts["alpha"] * facts["k_L2"]).min() >= 1
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
