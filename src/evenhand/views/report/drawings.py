"""The drawings of a report: their axes, and everything in them that stays still."""

from __future__ import annotations

from itertools import groupby
from math import ceil, floor, log10
from typing import Any

from evenhand.views.formats import fixed, grouped, percent

CURVES = (
    ("difference", "Difference between groups", "0 means that all groups have the same rate", 1),
    (
        "shortfall",
        "Shortfall of the worst target",
        "0 means that all groups have the same rates",
        1,
    ),
    ("ratio", "Ratio between groups", "1 means that all groups have the same rate", 1),
    ("accuracy", "Accuracy", "share of right answers", 1),
    ("loss_c", "Prediction loss", "log-loss: lower fits the table better", 1),
    ("loss_u", "Adversary's loss", "falls while it learns to guess the group; level is a draw", -1),
)
LEG_WORDS = {
    "optimum": "to {optimum}",
    "from optimum": "from there against the adversary",
    "from zero": "from zero against the adversary",
}
# What found a model, as its point has it.
SOURCE_WORDS = {
    "optimum": "the fit that looks at accuracy alone, with {cut}",
    "solver": "the steps against the adversary",
    "discriminants": "the directions between predicting the label and predicting the group",
    "rules": "the rules that would be optimal if the estimates were right",
    "rates": "the directions that weigh the differences between the rates",
}


def scaled(value: float, low: float, high: float) -> str:
    """Give a coordinate in percent of a plot's width."""
    share = (value - low) / (high - low) if high > low else 0.5
    return f"{fixed(100 * min(max(share, 0.0), 1.0), 2)}%"


def place(box: list[float], x: float, y: float) -> tuple[str, str]:
    """Give the coordinates of a ratio and a value in the frontier's drawing."""
    x0, x1, y0, y1 = box
    return scaled(x, x0, x1), scaled(-y, -y1, -y0)


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``, at most about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    base = 10 ** floor(log10(rough))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= rough * (1 - 1e-9))
    first = ceil(low / step - 1e-9)
    count = floor(high / step + 1e-9) - first + 1
    return [round((first + i) * step, 12) for i in range(max(count, 1))]


def nice_top(value: float) -> float:
    """Give the end of an axis from 0 for shares: not below the value, its quarters round."""
    return next((top for top in (0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8) if top >= value), 1.0)


def _decimals(values: list[float], form: str = "g") -> int:
    """Count the decimals that round numbers have."""
    return max(len(f"{v:{form}}".partition(".")[2]) for v in values)


def ratio_and_value(figure: dict[str, Any] | None) -> tuple[float, float] | None:
    """Ratio and the objective's value, if there is a ratio."""
    if figure is None or figure["ratio"] is None:
        return None
    return figure["ratio"], figure["value"]


def _clouds(model: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Give the points' ratios and values on the parts that were not fitted to."""
    usual = [p["figures"] for p in model["points"][: model["n_points"]] if p["usual"]]
    return {
        key: [at for figures in usual if (at := ratio_and_value(figures.get(key)))]
        for key in (part["key"] for part in model["parts"])
        if key != model["fitted"]
    }


def chart_limits(model: dict[str, Any]) -> list[float] | None:
    """Give the ends of the frontier's axes, made for the usual points and the chosen one."""
    points = [point for point in model["points"] if _is_drawn(point)]
    if not points:
        return None
    if any(p["usual"] for p in points):
        chosen = model["points"][model["chosen"]] if model["chosen"] is not None else None
        points = [p for p in points if p["usual"] or p is chosen]
    before = model["before"]
    shown = [(p["reach"], p["value"]) for p in points] + ([before] if before else [])
    shown += [at for cloud in _clouds(model).values() for at in cloud]
    least = min([model["tau"], *(x for x, _ in shown)])
    x0, parity = floor(20 * least + 1e-9) / 20 - 0.05, model["words"]["parity"]
    low, high = min(y for _, y in shown), max(y for _, y in shown)
    shares = model["words"]["unit"] == "%"
    room = max(0.08 * (high - low), 0.002 if shares else 0.002 * max(abs(low), abs(high)), 1e-9)
    y0, y1 = (max(low - room, 0.0), min(high + room, 1.0)) if shares else (low - room, high + room)
    return [max(x0, parity - 1), parity, y0, y1]


def frontier_drawing(model: dict[str, Any]) -> dict[str, Any] | None:
    """Give the still parts of the frontier's drawing."""
    box = model["box"]
    if box is None:
        return None
    (x0, x1, y0, y1), sign = box, model["words"]["sign"]
    # A point answers every target down to that of the one before it.
    line: list[str] = []
    for point in model["points"][: model["n_points"]]:
        if _is_drawn(point):
            x = 1000 * (point["reach"] - x0) / (x1 - x0)
            y = 1000 * (y1 - point["value"]) / (y1 - y0)
            line += [f"V{y:.1f}" if line else f"M0.0,{y:.1f}", f"H{x:.1f}"]
    across, levels = ticks(x0, x1, 7), ticks(y0, y1, 5)
    digits = max(_decimals(across), 1)
    per, unit = model["words"]["per"], model["words"]["unit"]
    level_digits = _decimals([per * v for v in levels], ".6g" if unit else ".12g")
    before = model["before"]
    saved = model["points"][model["chosen"]] if model["chosen"] is not None else None
    return {
        "line": "".join(line),
        "x": [(scaled(v, x0, x1), fixed(sign * v, digits)) for v in across],
        "y": [(scaled(-v, -y1, -y0), grouped(per * v, level_digits) + unit) for v in levels],
        "clouds": {key: [place(box, *at) for at in of] for key, of in _clouds(model).items()},
        "before": place(box, *before) if before else None,
        "saved": place(box, saved["reach"], saved["value"]) if saved and _is_drawn(saved) else None,
    }


def _is_drawn(point: dict[str, Any]) -> bool:
    return point["reach"] is not None and point["value"] is not None


def weights_drawing(table: dict[str, Any]) -> dict[str, Any]:
    """Place the weights of one label's score on an axis around 0."""
    rows = [
        (w["name"], float(w["plain"]), float(w["fair"]))
        for w in table["inputs"]
        if w["fair"] is not None and w["plain"] is not None
    ]
    # What looks the same in print did not change for a reader.
    rows = [row for row in rows if fixed(row[1], 2) != fixed(row[2], 2)]
    values = [0.0, *(v for _, *both in rows for v in both)]
    room = 0.04 * (max(values) - min(values)) or 1.0
    low, high = min(values) - room, max(values) + room
    marks = ticks(low, high, 5)
    digits = min(_decimals(marks), 4)
    return {
        "label": table["label"],
        "zero": scaled(0, low, high),
        "ticks": [(scaled(v, low, high), fixed(v, digits)) for v in marks],
        "rows": [
            {
                "name": name,
                "fair": fixed(fair, 2),
                "plain": fixed(plain, 2),
                "x_fair": scaled(fair, low, high),
                "x_plain": scaled(plain, low, high),
                "way": _way(plain, fair),
            }
            for name, plain, fair in rows
        ],
    }


def _way(plain: float, fair: float) -> str:
    """Say how a weight changed."""
    if plain * fair < 0:
        return "turned round"
    if abs(fair) < 0.5 * abs(plain):
        return "much weaker"
    return "weaker" if abs(fair) < abs(plain) else "stronger"


def curves_drawing(curves: dict[str, Any] | None, words: dict[str, Any]) -> dict[str, Any] | None:
    """Draw what the training went through, leg after leg."""
    if not curves or not curves.get("iteration"):
        return None
    n = len(curves["iteration"])
    legs, begin = [], 0
    for name, rows in groupby(curves["leg"]):
        size = len(list(rows))
        x = scaled(begin, 0, max(n - 1, 1))
        legs.append(
            {
                "name": LEG_WORDS[name].format_map(words) if name in LEG_WORDS else name,
                "n": size,
                "x": x,
            }
        )
        begin += size
    charts, solved = [], set(curves["leg"]) != {"optimum"}
    # What the target compares; a ratio is there whatever that is.
    other = {"difference", "shortfall"} & set(curves)
    for key, title, about, sign in CURVES:
        if (key == "ratio" and other) or (key == "loss_u" and not solved):
            continue
        values = [None if v is None else sign * float(v) for v in (curves.get(key) or [])[:n]]
        if any(v is not None for v in values):
            charts.append(_curve(values, n, share=key == "accuracy"))
            charts[-1] |= {"title": title.format_map(words), "words": about.format_map(words)}
    return {"legs": legs, "n": n, "charts": charts, "solved": solved} if charts else None


def _curve(values: list[float | None], n: int, share: bool) -> dict[str, Any]:
    """Draw one column of the training, with gaps where it has no value."""
    finite = [v for v in values if v is not None]
    room = 0.06 * (max(finite) - min(finite)) or 0.01
    low, high = min(finite) - room, max(finite) + room
    path, pen = [], "M"
    for i, v in enumerate(values):
        if v is None:
            pen = "M"
            continue
        x, y = 1000 * i / max(n - 1, 1), 1000 * (high - v) / (high - low)
        path.append(f"{pen}{x:.1f},{y:.1f}")
        pen = "L"
    levels = ticks(low, high, 3)
    digits = _decimals(levels)
    begin, end = (percent(v) if share else fixed(v, 3) for v in (finite[0], finite[-1]))
    return {
        "path": "".join(path),
        "ticks": [
            (
                scaled(-v, -high, -low),
                f"{fixed(100 * v, max(digits - 2, 0))}%" if share else fixed(v, digits),
            )
            for v in levels
        ],
        "begin": begin,
        "end": end,
    }
