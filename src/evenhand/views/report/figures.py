"""What a report shows of each model on each part of the data, measured once.

The page's script picks among these figures and writes them as text; it computes none of them.
"""

from __future__ import annotations

from math import floor
from typing import Any

import numpy as np

from evenhand.core.arrays import FloatArray
from evenhand.core.objectives import ACCURACY, Objective
from evenhand.core.rates import Rate, overall_accuracy
from evenhand.core.targets import Target
from evenhand.statistics.proportions import clopper_pearson
from evenhand.views.formats import VISIBLE_RATE, grouped, optimum_name, plain_name
from evenhand.views.objectives import objective_words
from evenhand.views.report.drawings import chart_limits, nice_top, ratio_and_value
from evenhand.views.report.phrases import PHRASES, part_words
from evenhand.views.report.words import how_chosen, sure_words
from evenhand.views.targets import TARGET_WORDS, words_of
from evenhand.views.verdicts import bounds_sentence
from evenhand.workflow.summary import objective_of, target_of, verdict_of, worth_of

SMALL_ROWS = "rows of groups too small to compare"
# Which rows plain logistic regression is drawn of, where the line is of others.
ON_TEST, ON_TRAINING = ", on test rows", ", on training rows, where it looks better than it is"
# Of a part that was not counted.
UNKNOWN: dict[str, Any] = {
    "accuracy": None,
    "value": None,
    "ratio": None,
    "reached": False,
    "worst": None,
    "population": "",
    "cost": None,
    "rates": [],
    "right": [],
}


def measure(
    counts: Any, target: Target, n_groups: int, weighted: bool, objective: Objective = ACCURACY
) -> dict[str, Any]:
    """Rates, their comparison between groups and accuracies of one classifier on some rows.

    Parameters
    ----------
    counts : array-like of shape (n_rows, n_labels, n_labels)
        Per group × label × prediction.
    target : Target
        What is compared, and the value that will do.
    n_groups : int
        How many rows of the counts, from the first, are groups that are compared.
    weighted : bool
        Whether counts are weights, of which there are no intervals.
    objective : Objective
        What was maximised.

    Returns
    -------
    dict
        ``accuracy``; ``value``, that of the objective; ``ratio``, the target's value, whether that
        is ``reached``, and the rate that decides it (``worst``); ``right``, the accuracy of each
        group; ``rates``, a list with ``ratio``, ``reached``, ``low`` and ``high`` (the groups),
        ``floor``
        (:class:`~evenhand.views.targets.TargetWords`), and of each group ``rate``,
        ``interval``, ``top`` and ``bottom``. None, or an empty list of intervals and counts, where
        something is not known.
    """
    c = np.asarray(counts, dtype=np.float64)
    rates = [_measure_rate(part, c, n_groups, weighted) for part in target.components]
    value = worst = None
    if rates and all(one["ratio"] is not None for one in rates):
        alone = target.scaled(target.values(c[:n_groups])).tolist()
        value = min(alone)
        worst = alone.index(value)
    right, n = np.trace(c, axis1=-2, axis2=-1), c.sum(axis=(-2, -1))
    return {
        "accuracy": plain_values(overall_accuracy(c)),
        "value": plain_values(objective.value(c)),
        "ratio": value,
        "reached": target.reached(value),
        "worst": worst,
        "rates": rates,
        "right": _shares(right, n),
    }


def _measure_rate(
    target: Target, counts: FloatArray, n_groups: int, weighted: bool
) -> dict[str, Any]:
    """Give one rate of each group, and how the groups compare."""
    (rate,) = target.rate.components
    top, bottom = rate.fractions(counts)
    low = high = 0
    for j in range(1, len(rate.groups(range(n_groups)))):
        # 36/100 to 45/100 is 0.8; quotients of quotients would be a little less.
        low = j if top[j] * bottom[low] < top[low] * bottom[j] else low
        high = j if top[j] * bottom[high] > top[high] * bottom[j] else high
    value = plain_values(target.value(counts[:n_groups])) if n_groups else None
    shares = _shares(top, bottom)
    highest = shares[high] if n_groups else None
    floor = None if highest is None else TARGET_WORDS[target.comparison].floor(highest)
    return {
        "ratio": value,
        "reached": target.reached(value),
        "low": low,
        "high": high,
        "floor": floor,
        "rate": shares,
        "interval": []
        if weighted
        else plain_values(np.transpose(clopper_pearson(top, bottom, 0.025))),
        "top": [] if weighted else plain_values(top, 6),
        "bottom": [] if weighted else plain_values(bottom, 6),
    }


def _shares(top: FloatArray, bottom: FloatArray) -> Any:
    return plain_values(np.divide(top, bottom, out=np.full_like(bottom, np.nan), where=bottom > 0))


def plain_values(values: Any, digits: int | None = None) -> Any:
    """Give numbers as JSON has them: None for NaN, whole ones as int, rounded if asked to be."""
    if isinstance(values, np.ndarray):
        values = values.tolist()
    if isinstance(values, list):
        return [plain_values(v, digits) for v in values]
    if values is None or not np.isfinite(values):
        return None
    value = float(values) if digits is None else round(float(values), digits)
    return int(value) if value.is_integer() else value


def page_data(summary: dict[str, Any]) -> dict[str, Any]:
    """Give the data of the page's script: every figure of every model on every part."""
    target, groups = target_of(summary), summary["groups"]
    rate, objective = target.rate, objective_of(summary)
    parts = [part | {"weighted": bool(part["weighted"])} for part in summary["parts"]]

    def figures(counts: dict[str, Any] | None) -> dict[str, dict[str, Any]]:
        return {
            part["key"]: _rounded(measure(rows, target, len(groups), part["weighted"], objective))
            for part in parts
            if (rows := (counts or {}).get(part["key"]))
        }

    records, chosen = _thinned(summary)
    n_points = len(records)
    if not n_points or chosen is None:
        # A saved model that is off the frontier comes behind its points.
        off = summary.get("saved")
        chosen = n_points if off else None
        records += [off] if off else []
    points = [
        {name: plain_values(point[name]) for name in ("rate", "reach", "accuracy")}
        | {"value": plain_values(worth_of(point))}
        | {"usual": _is_usual(point, objective), "figures": figures(point["counts"])}
        for point in records
    ]
    plain = figures((summary["plain"] or {}).get("counts"))
    best_cut = figures(((summary["plain"] or {}).get("best_cut") or {}).get("counts"))
    measured = [*(point["figures"] for point in points), plain]
    drawn = [plain, *(p["figures"] for i, p in enumerate(points) if i == chosen or p["usual"])]
    scales = [
        # A little room for the intervals.
        nice_top(1.05 * _highest(drawn, k, len(part.groups(groups))))
        for k, part in enumerate(rate.components)
    ]
    n_rows = max([len(groups), *(len(f["right"]) for of in measured for f in of.values())])
    rows = [*groups, *[SMALL_ROWS] * (n_rows - len(groups))]
    model = {
        "tau": target.level,
        "comparison": target.comparison,
        "words": TARGET_WORDS[target.comparison].plain()
        | objective_words(objective)
        | {"plain": plain_name(summary), "optimum": optimum_name(summary)},
        "chosen": chosen,
        "feasible": bool(summary["reached"]["target_reached"]),
        "where": summary["reached"]["where"],
        "sure": sure_words(summary),
        # Whether points answer for less than their ratio among these rows.
        "relied": how_chosen(summary) in ("confident", "unsure"),
        "points": points,
        "n_points": n_points,
        "plain": plain,
        "best_cut": best_cut,
        "parts": [
            {name: part[name] for name in ("key", "title", "n", "weighted")}
            | {"words": part_words(part)}
            for part in parts
            if any(part["key"] in of for of in measured)
        ],
        "fitted": "train",
        "groups": [f"\u2068{name}\u2069" for name in groups],
        "rows": [f"\u2068{name}\u2069" for name in rows],
        "n_rows": n_rows,
        "spec": [
            {"share": share, "scale": scale, "offset": offset, "words": own_words(target, kind)}
            | _rows_of(part, groups, rows)
            for part, share, scale, offset, kind in zip(
                rate.components, rate.shares, scales, target.offsets, target.kinds, strict=True
            )
        ],
        "phrases": PHRASES,
    }
    before, model["before_words"] = _drawn_before(summary, plain)
    model["before"] = ratio_and_value(before)
    verdict, words = verdict_of(summary), words_of(model)
    for i, point in enumerate(points):
        for key, figure in point["figures"].items():
            # Of a model that was picked by its figures on these rows nothing is known.
            own = i == chosen and key == "test"
            figure["population"] = bounds_sentence(verdict, words) if own else ""
            _put_beside(figure, plain.get(key, UNKNOWN), best_cut.get(key, UNKNOWN), model)
    return model | {"box": chart_limits(model)}


def _drawn_before(
    summary: dict[str, Any], plain: dict[str, dict[str, Any]]
) -> tuple[dict[str, Any] | None, str]:
    """Give the figures of plain logistic regression that are drawn beside the line, and of what.

    A line out of sample begins below those of the rows fitted to, as if fairness cost that.
    """
    counts = (summary["plain"] or {}).get("judged")
    if counts:
        about = target_of(summary), len(summary["groups"]), True, objective_of(summary)
        return measure(counts, *about), f", {summary['reached']['where']}"
    # The columns of boosted models are out of fold already.
    if summary["asked"].get("place", "train") == "train" or summary.get("boosted"):
        return plain.get("train"), ""
    return (plain["test"], ON_TEST) if "test" in plain else (plain.get("train"), ON_TRAINING)


def _rows_of(rate: Rate, groups: list[str], rows: list[str]) -> dict[str, Any]:
    """Name the rows of a rate's tables: the groups compared, and behind them small ones."""
    compared = rate.groups(groups)
    shown = rows if rate.by is None else compared
    return {"rows": [f"\u2068{name}\u2069" for name in shown], "n_groups": len(compared)}


def _thinned(summary: dict[str, Any]) -> tuple[list[dict[str, Any]], int | None]:
    """Give the points that answer a target of three digits, and the number of the chosen one."""
    points, chosen = summary["points"], summary["chosen"]
    reach = [-1.0 if p["reach"] is None else p["reach"] for p in points]
    # The least target of three digits that a point answers must be above that of the one before.
    kept = [
        i
        for i in range(len(points))
        if i in (0, chosen, len(points) - 1) or floor(1000 * reach[i]) > floor(1000 * reach[i - 1])
    ]
    return [points[i] for i in kept], None if chosen is None else kept.index(chosen)


def _is_usual(point: dict[str, Any], objective: Objective) -> bool:
    """Whether axes are made for a point: it is worth more than one answer to everybody."""
    counts, worth = next(iter(point["counts"].values()), None), worth_of(point)
    if counts is None or worth is None:
        return point["reach"] is None or point["reach"] <= VISIBLE_RATE
    return bool(worth > objective.best_for_everybody(counts)[2])


def own_words(target: Target, kind: str) -> dict[str, Any] | None:
    """Give the words of a rate whose comparison is not that of the whole target, else None."""
    return TARGET_WORDS[kind].plain() if target.comparison == "mixed" else None


def _rounded(figure: dict[str, Any]) -> dict[str, Any]:
    """Shorten the ends of intervals, whose digits would be a third of the page."""
    for one in figure["rates"]:
        one["interval"] = one["interval"] and plain_values(list(one["interval"]), 9)
    return figure


def _highest(figures: list[dict[str, dict[str, Any]]], k: int, n_groups: int) -> float:
    """Give the highest rate of any group."""
    rates = [r for of in figures for f in of.values() for r in f["rates"][k]["rate"][:n_groups]]
    return max((r for r in rates if r is not None), default=0.0)


def _put_beside(
    now: dict[str, Any], was: dict[str, Any], best: dict[str, Any], model: dict[str, Any]
) -> None:
    """Add what a model costs against plain logistic regression, and the scales of its drawings."""
    now["cost"], per, digits = None, model["words"]["per"], model["words"]["digits"]
    if now["value"] is not None and was["value"] is not None:
        lost, gained, least = was["value"] - now["value"], 0.0, 0.5 / 10**digits / per
        name = "cost.none" if abs(lost) < least else "cost.less" if lost > 0 else "cost.unknown"
        if name == "cost.unknown" and best["value"] is not None:
            gained = now["value"] - best["value"]
            name = "cost.more" if gained >= least else "cost.cut"
        now["cost"] = [name, grouped(per * abs(lost), digits), grouped(per * gained, digits)]
    for rate, spec in zip(now["rates"], model["spec"], strict=True):
        shown = rate["rate"][: spec["n_groups"]]
        fits = all(r is None or r <= spec["scale"] for r in shown)
        rate["scale"] = spec["scale"] if fits else 1
