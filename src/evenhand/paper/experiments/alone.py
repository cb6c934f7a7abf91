"""The adversary with and without its regulariser."""

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.arrays import FloatArray, namespace
from evenhand.core.notions import Notion, statistical_parity
from evenhand.core.updates import modified
from evenhand.paper.experiments import lab
from evenhand.paper.experiments._claims import (
    UNDECIDED,
    Cell,
    Finding,
    Rows,
    dagger,
    experiment,
    means,
)
from evenhand.paper.experiments._draw import draw_over_rho
from evenhand.paper.experiments._spread import against_spread, deciding, with_spread
from evenhand.peers._networks import guess_group

RARE = 0.02
LAST = 10
BOTH, ALONE_ = "adversary and regulariser", "adversary alone"


def _sees_output(
    s: FloatArray, f: FloatArray, y: FloatArray, scale: float
) -> tuple[FloatArray, FloatArray]:
    xp = namespace(f)
    return xp.stack([xp.ones_like(f), f]), xp.stack([xp.zeros_like(f), f * (1 - f)])


# The small example of Section 3: the adversary sees f(x), as Zhang's does.
SEES: dict[str, Notion] = {
    "[1, s, s²]": statistical_parity(),
    "[1, f]": replace(statistical_parity(), n_features=2, features=_sees_output, degree=None),
}


def cells(quick: bool) -> list[Cell]:
    """Give all correlations, and correlation 0.5 with few women."""
    few = [cell | {"share_of_women": RARE} for cell in lab.grid_of(quick, (0.5,))]
    return [*(cell | {"share_of_women": 0.0} for cell in lab.grid_of(quick)), *few]


def _thin(part: lab.Part, share: float, seed: int) -> lab.Part:
    """Drop rows of women, group 0, until women are the given share of the rows."""
    women, men = np.flatnonzero(part.z == 0), np.flatnonzero(part.z == 1)
    n = round(share / (1 - share) * len(men))
    kept = np.sort(np.append(men, np.random.default_rng(seed).permutation(women)[:n]))
    return lab.Part(part.X[kept], part.y[kept], part.z[kept])


def run(rho: float, seed: int, share_of_women: float) -> Rows:
    """Test accuracy and rate at the end of AGD modified, with μ = 10 and with μ = 0.

    ``share_of_women`` is their share of the training rows; 0: as it is. ``low`` is the lowest rate
    of the last ten iterates, ``best`` that of the one whose training rate is the highest.
    """
    data = lab.split(rho, seed)
    train, test = lab.part_of(data), lab.part_of(data, "test")
    if share_of_women:
        train = _thin(train, share_of_women, seed)
    rows: Rows = []
    for setting in lab.settings("adversary"):
        notion = SEES[setting["adversary"]]
        for name, mu in ((BOTH, 10.0), (ALONE_, 0.0)):
            losses = lab.problem(train, setting, mu=mu, notion=notion)
            W = lab.iterates(losses, setting, "AGD modified")[-LAST:]
            tail, training = lab.measure_iterates(W, test), lab.measure_iterates(W, train)
            rates, i = tail["rate"].fillna(0.0), training["rate"].fillna(0.0).idxmax()
            band = {"low": float(rates.min()), "best": float(rates[i])}
            band["constant_best"] = float(tail["constant"][i])
            last = tail.astype(float).iloc[-1].to_dict()
            rows.append({**setting, "name": name, **last, **band, "zhang": None})
        rows[-1]["zhang"] = _off_zhang(train, setting)
    return rows


def _off_zhang(part: lab.Part, setting: dict[str, str]) -> float:
    r"""How far NGD modified's direction is from Zhang's, relative to it, at most, where μ = 0.

    Zhang's is :math:`g_C - \Pi_h g_C - \alpha h` with the gradient h of the peer's own adversary,
    which sees f(x).
    """
    losses = lab.problem(part, setting, mu=0.0, notion=SEES["[1, f]"])
    w, u, worst, one = np.zeros(losses.n_weights), np.zeros(2), 0.0, np.ones((1, len(part.y)))
    for it in lab.descend(losses, setting, "NGD modified", max_iter=20):
        score = part.X @ w[:-1] + w[-1]
        d_score = guess_group(np.array([u[1], u[0], 0]), score, one, one, part.z, one[0]).d_score
        h = np.append(d_score @ part.X, d_score.sum())
        zhang = modified(it.moments.grad_c, h, it.alpha)
        worst = max(worst, float(np.linalg.norm(it.direction - zhang) / np.linalg.norm(zhang)))
        w, u = it.q, it.u
    return worst


def draw(table: pd.DataFrame) -> Any:
    """Columns are readings, rows accuracy and rate, over the correlation."""
    usual, few = table[table["share_of_women"] == 0], _few(table)
    figure = draw_over_rho(usual)
    for j, variant in enumerate(lab.PANELS.values()):
        for name, color in ((BOTH, "black"), (ALONE_, "#D55E00")):
            point = means(variant.rows(few), "rho", name=name)
            for i, what in enumerate(("accuracy", "rate")):
                ax = figure.axes[3 * i + j]
                ax.plot(
                    point.index,
                    point[what],
                    linestyle="",
                    marker="s" if name == BOTH else "D",
                    markersize=7,
                    fillstyle="none",
                    color=color,
                )
    return figure


def _high(table: pd.DataFrame) -> pd.DataFrame:
    return table[(table["share_of_women"] == 0) & (table["rho"] >= 0.65)]


def _few(table: pd.DataFrame) -> pd.DataFrame:
    return table[table["share_of_women"] > 0]


def _fails(table: pd.DataFrame, *, part: Any) -> Finding:
    curve = means(part(table), "rho", name=ALONE_)
    top = curve["rate"].max()
    return Finding(f"at most {top:.2f}{dagger(curve)}", bool(top < 0.8))


def _works(table: pd.DataFrame, *, part: Any) -> Finding:
    rows = part(table)
    both = rows[rows["name"] == BOTH]
    margins = both.pivot_table(index="rho", columns="seed", values="best") - 0.8
    rho = deciding(margins)
    low = both.loc[both["rho"] == rho, "low"].mean()
    mark = " †" if (both["constant_best"] > 0).any() else ""
    case = f"{mark} (ρ = {rho:g}; the last ten from {low:.2f})"
    text = f"rate less 0.8: {with_spread(margins, rho)}{case}"
    return Finding(text, against_spread(margins), UNDECIDED)


def _is_zhang(table: pd.DataFrame) -> Finding:
    off = float(table["zhang"].dropna().max())
    return Finding(f"off by at most {off:.0e} of its size", off <= 1e-9)


ALONE = experiment(
    "alone",
    cells=cells,
    run=run,
    draw=draw,
    tests={
        "fails_at_high_correlation": partial(_fails, part=_high),
        "works_at_high_correlation": partial(_works, part=_high),
        "fails_with_few_rows": partial(_fails, part=_few),
        "works_with_few_rows": partial(_works, part=_few),
        "ngd_is_zhang": _is_zhang,
    },
)
