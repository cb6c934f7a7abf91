"""Figures of a report: what the page shows for a target and a part of the data.

``page.js`` repeats :func:`measure`, :func:`point_at`, :func:`live` and the formats in the reader's
browser, number for number; ``tests/test_report_browser.py`` compares the two.
"""

from __future__ import annotations

import re
from math import floor, inf, isfinite, log10, sqrt
from typing import Any

import numpy as np

from evenhand.core.rates import Rate, WorstRate, overall_accuracy, wilson_interval

NONE = "–"


# ---- formats ---------------------------------------------------------------------------------


def fixed(x: float, digits: int) -> str:
    """Write a number with so many digits, halves upwards, as ``page.js`` does."""
    scale = 10**digits
    n = floor(abs(x) * scale + 0.5)
    sign = "−" if x < 0 and n else ""
    return f"{sign}{n // scale}" + (f".{n % scale:0{digits}d}" if digits else "")


def percent(x: float | None) -> str:
    """Write a share as a percentage."""
    return NONE if x is None else f"{fixed(100 * x, 1)}%"


def points(x: float | None) -> str:
    """Write a difference of shares in percentage points, with its sign."""
    return NONE if x is None else f"{'+' if x >= 0 else ''}{fixed(100 * x, 1)}"


def ratio_text(x: float | None, tau: float) -> str:
    """Write a ratio with three digits, or with as many as show on which side of τ it is."""
    if x is None:
        return NONE
    for digits in range(3, 7):
        text = fixed(x, digits)
        if (float(text) >= tau) == (x >= tau):
            return text
    return f"just below {tau_text(tau)}" if x < tau else text


def tau_text(tau: float) -> str:
    """Write a target with two digits, or three if it has them."""
    return fixed(tau, 2 if abs(100 * tau - floor(100 * tau + 0.5)) < 1e-9 else 3)


def thousands(n: float) -> str:
    """Write a count."""
    return f"{floor(n + 0.5):,}"


def fill_in(sentence: str, values: dict[str, str]) -> str:
    """Put values in the place of their names in braces; what they hold is not looked at again."""
    return re.sub(r"\{(\w+)\}", lambda found: values[found[1]], sentence)


def number(value: Any) -> float | None:
    """Give a finite number, or None."""
    return float(value) if value is not None and isfinite(value) else None


# ---- rates -----------------------------------------------------------------------------------


def rate_of(summary: dict[str, Any]) -> WorstRate:
    """Make the library's rate from the summary's cells.

    A rate all of whose counted cells are wrong predictions is an error rate: 0 is its best value.
    """
    parts = summary["rate"]["parts"]

    def one(part: dict[str, Any]) -> Rate:
        top = tuple((int(y), int(p)) for y, p in part["numerator"])
        bottom = tuple((int(y), int(p)) for y, p in part["denominator"])
        return Rate(part["name"], top, bottom, is_error=all(y != p for y, p in top))

    shares = tuple(float(part["share"]) for part in parts)
    return WorstRate(summary["rate"]["name"], tuple(map(one, parts)), shares)


def sums_of(counts: Any, rate: WorstRate) -> dict[str, Any]:
    """Give all that figures are made of: tops and bottoms of each rate, right answers, rows."""
    c = np.asarray(counts, dtype=np.float64)
    fractions = [part.fractions(c) for part in rate.parts]
    return {
        "top": [plain_list(top) for top, _ in fractions],
        "bottom": [plain_list(bottom) for _, bottom in fractions],
        "right": plain_list(np.trace(c, axis1=-2, axis2=-1)),
        "n": plain_list(c.sum(axis=(-2, -1))),
        "accuracy": number(overall_accuracy(c)),
    }


def plain_list(values: Any) -> list[float | int]:
    """Give the numbers, whole ones as int: shorter in the page."""
    return [int(v) if float(v).is_integer() else round(float(v), 6) for v in np.asarray(values)]


def wilson(top: float, bottom: float) -> tuple[float, float] | None:
    """Wilson's 95% interval of a share; None if there are no rows."""
    if bottom <= 0:
        return None
    low, high = wilson_interval(top, bottom)
    return float(low), float(high)


def ratio_limits(
    one: tuple[float, tuple[float, float]], other: tuple[float, tuple[float, float]]
) -> tuple[float, float]:
    r"""95% limits of the ratio of two independent rates, from the limits of each.

    Donner and Zou's method of variance estimates recovery. With rates :math:`p, q`, Wilson's
    limits :math:`(l, u)` and :math:`(L, U)` of them, and :math:`a = pq`, the limits of
    :math:`p / q` are

    .. math:: \frac{l(2p - l)}{a + \sqrt{a^2 - l(2p - l) U(2q - U)}}
        \quad\text{and}\quad
        \frac{a + \sqrt{a^2 - u(2p - u) L(2q - L)}}{L(2q - L)},

    which stay apart where rates are 0 or 1. Without any hit in the second rate all is possible.

    Parameters
    ----------
    one, other : tuple of (float, (float, float))
        A rate and its limits.
    """
    (p, (low, high)), (q, (least, most)) = one, other
    if q <= 0:
        return 0.0, inf
    a = p * q
    top, bottom = low * (2 * p - low), most * (2 * q - most)
    first = top / (a + sqrt(max(a * a - top * bottom, 0.0))) if top > 0 else 0.0
    top, bottom = high * (2 * p - high), least * (2 * q - least)
    return first, (a + sqrt(max(a * a - top * bottom, 0.0))) / bottom


def measure(
    sums: dict[str, Any] | None, spec: list[dict[str, Any]], n_groups: int, weighted: bool
) -> dict[str, Any]:
    """Rates, ratios and accuracies of one classifier on one part of the data.

    Parameters
    ----------
    sums : dict or None
        :func:`sums_of` its counts.
    spec : list of dict
        ``share`` and ``error`` of each rate.
    n_groups : int
        How many rows of the counts, from the first, are groups that are compared.
    weighted : bool
        Whether counts are weights, of which there are no intervals.

    Returns
    -------
    dict
        ``accuracy``; ``ratio``, the worst over its share, which is that of rate ``worst``, with an
        approximate ``interval`` (:func:`ratio_limits`); ``rates``, a list with ``ratio``, ``low``
        and ``high`` (the groups) and ``groups``, each with ``rate``, ``interval``, ``top``,
        ``bottom``; ``right``, the accuracy of each group.
    """
    if sums is None:
        return {"accuracy": None, "ratio": None, "worst": None, "interval": None, "rates": []}
    rates: list[dict[str, Any]] = []
    for k, part in enumerate(spec):
        top, bottom = sums["top"][k], sums["bottom"][k]
        groups = [
            {
                "rate": t / b if b > 0 else None,
                "interval": None if weighted else wilson(t, b),
                "top": t,
                "bottom": b,
            }
            for t, b in zip(top, bottom, strict=True)
        ]
        low = high = 0
        for j in range(1, n_groups):
            # 36/100 to 45/100 is 0.8; quotients of quotients would be a hair less.
            low = j if top[j] * bottom[low] < top[low] * bottom[j] else low
            high = j if top[j] * bottom[high] > top[high] * bottom[j] else high
        ratio = None
        if n_groups > 1 and all(b > 0 for b in bottom[:n_groups]):
            if top[high] > 0:
                ratio = (top[low] * bottom[high]) / (bottom[low] * top[high])
            elif part["error"]:
                ratio = 1.0
        rates.append({"ratio": ratio, "low": low, "high": high, "groups": groups})
    worst, least = None, None
    for k, part in enumerate(spec):
        ratio = rates[k]["ratio"]
        if ratio is None:
            worst, least = None, None
            break
        scaled = min(ratio / part["share"], 1.0)
        if least is None or scaled < least:
            worst, least = k, scaled
    interval = None
    if worst is not None and least is not None and not weighted:
        interval = _ratio_interval(rates, spec, n_groups, worst)
    right = [r / n if n > 0 else None for r, n in zip(sums["right"], sums["n"], strict=True)]
    return {
        "accuracy": sums["accuracy"],
        "ratio": least,
        "worst": worst,
        "interval": interval,
        "rates": rates,
        "right": right,
    }


def _ratio_interval(
    rates: list[dict[str, Any]], spec: list[dict[str, Any]], n_groups: int, worst: int
) -> tuple[float, float]:
    """95% interval of the worst ratio over its share.

    Its upper end is that of the smallest rate over the largest. Its lower end is the least of any
    two groups, in either order: a small group may be the lowest of all in the population, wherever
    its rate is among these rows.
    """
    low = 1.0
    for part, rate in zip(spec, rates, strict=True):
        known = [(g["rate"], g["interval"]) for g in rate["groups"][:n_groups]]
        for i, one in enumerate(known):
            for j, other in enumerate(known):
                if i != j:
                    low = min(low, ratio_limits(one, other)[0] / part["share"])
    groups, share = rates[worst]["groups"], spec[worst]["share"]
    ends = [groups[rates[worst][end]] for end in ("low", "high")]
    one, other = ((g["rate"], g["interval"]) for g in ends)
    return low, min(ratio_limits(one, other)[1] / share, 1.0)


# ---- the chosen point ------------------------------------------------------------------------


def point_at(model: dict[str, Any], tau: float) -> tuple[int | None, bool, bool]:
    """Find the point for a target: its index, whether it reaches τ, whether it is the saved one.

    The first that reaches τ, else the last, as ``FairClassifier.at`` chooses.
    """
    if abs(tau - model["tau"]) < 1e-9 and model["chosen"] is not None:
        return model["chosen"], model["feasible"], True
    n = model["n_points"]
    for i, point in enumerate(model["points"][:n]):
        if point["reach"] is not None and point["reach"] >= tau:
            return i, True, i == model["chosen"]
    return (n - 1 if n else None), False, n - 1 == model["chosen"]


def scaled(value: float, low: float, high: float) -> str:
    """Give a coordinate in percent of a plot's width."""
    share = (value - low) / (high - low) if high > low else 0.5
    return f"{fixed(100 * min(max(share, 0.0), 1.0), 2)}%"


def live(
    model: dict[str, Any], tau: float, part: str | None
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Give everything that moves: texts by name, and attributes of drawn marks by name.

    Parameters
    ----------
    model : dict
        The page's data.
    tau : float
        The target asked for.
    part : str or None
        Key of the part of the data whose figures are shown.

    Returns
    -------
    tuple of (dict, dict)
        ``data-t`` names to texts, ``data-m`` names to attributes.
    """
    say = model["phrases"]
    text: dict[str, str] = {}
    mark: dict[str, dict[str, str]] = {}
    i, reached, saved = point_at(model, tau)
    point = None if i is None else model["points"][i]
    at = next((p for p in model["parts"] if p["key"] == part), None)
    n_groups, spec = len(model["groups"]), model["spec"]
    weighted = bool(at and at["weighted"])
    sums = point["sums"].get(part) if point else None
    plain = model["plain"].get(part) if model["plain"] else None
    now = measure(sums, spec, n_groups, weighted)
    was = measure(plain, spec, n_groups, weighted)
    best = measure(model["best_cut"].get(part), spec, n_groups, weighted)

    def fill(name: str, **values: str) -> str:
        return fill_in(say[name], values)

    def span(interval: tuple[float, float] | None) -> str:
        if interval is None:
            return ""
        return fill("span", low=fixed(100 * interval[0], 1), high=fixed(100 * interval[1], 1))

    target = tau_text(tau)
    text["tau"] = target
    text["part"] = at["words"] if at else ""
    text["part.n"] = fill("rows", n=thousands(at["n"]), part=at["words"]) if at else ""
    text["status"] = fill(
        "saved" if saved else "moved", saved=tau_text(model["tau"]), target=target
    )
    mark["status"] = {"data-state": "saved" if saved else "moved"}
    text["fitted.rate"] = ratio_text(point["rate"] if point else None, tau)
    text["fitted.accuracy"] = percent(point["accuracy"] if point else None)
    own = abs(tau - model["tau"]) < 1e-9 and model["chosen"] is not None
    name = ("own." if own else "") + ("reached" if reached else "missed")
    text["fitted.verdict"] = fill(name, target=target, where=model["where"], sure=model["sure"])
    if not reached and model["relied"] and point and point["reach"] is not None:
        text["fitted.verdict"] += fill("relied", reach=ratio_text(point["reach"], tau))
    mark["fitted.verdict"] = {"data-state": "ok" if reached else "below"}

    def verdict(name: str, ratio: float | None, goal: float) -> None:
        state = "none" if ratio is None else "ok" if ratio >= goal else "below"
        text[name] = fill(f"verdict.{state}", target=tau_text(goal))
        text[f"{name}.sign"] = {"ok": "✓", "below": "✕", "none": "–"}[state]
        mark[name] = {"data-state": state}

    text["ratio"] = ratio_text(now["ratio"], tau)
    text["accuracy"] = percent(now["accuracy"])
    text["plain.ratio"] = ratio_text(was["ratio"], tau)
    text["plain.accuracy"] = percent(was["accuracy"])
    text["best.ratio"] = ratio_text(best["ratio"], tau)
    text["best.accuracy"] = percent(best["accuracy"])
    text["ratio.interval"] = ""
    if now["interval"]:
        low, high = now["interval"]
        text["ratio.interval"] = fill("between", low=fixed(low, 2), high=fixed(high, 2))
    verdict("verdict", now["ratio"], tau)
    text["cost"] = ""
    if now["accuracy"] is not None and was["accuracy"] is not None:
        lost = was["accuracy"] - now["accuracy"]
        name = "cost.none" if abs(lost) < 0.0005 else "cost.less" if lost > 0 else "cost.unknown"
        gained = 0.0
        if name == "cost.unknown" and best["accuracy"] is not None:
            gained = now["accuracy"] - best["accuracy"]
            name = "cost.more" if gained >= 0.0005 else "cost.cut"
        text["cost"] = fill(name, points=fixed(100 * abs(lost), 1), best=fixed(100 * gained, 1))

    for k, part_spec in enumerate(spec):
        goal, scale = part_spec["share"] * tau, part_spec["scale"]
        here = now["rates"][k] if now["rates"] else None
        there = was["rates"][k] if was["rates"] else None
        for found in (there, here):
            shown = [g["rate"] for g in found["groups"][:n_groups]] if found else []
            scale = 1.0 if any(r is not None and r > scale for r in shown) else scale
        for i in range(5):
            text[f"{k}.tick.{i}"] = f"{fixed(25 * scale * i, 0 if scale > 0.2 else 1)}%"
        text[f"{k}.ratio"] = ratio_text(here["ratio"] if here else None, goal)
        text[f"{k}.plain"] = ratio_text(there["ratio"] if there else None, goal)
        verdict(f"{k}.verdict", here["ratio"] if here else None, goal)
        mark[f"{k}.decides"] = {"data-state": "on" if now["worst"] == k else "off"}
        # Left of this line a group's rate is less than the target's share of the highest.
        top = here["groups"][here["high"]]["rate"] if here and n_groups else None
        line = 0.0 if top is None else goal * top
        end, seen = scaled(line, 0, scale), "visible" if line > 0 else "hidden"
        mark[f"{k}.floor"] = {"x1": end, "x2": end, "width": end, "visibility": seen}
        text[f"{k}.floor"] = ""
        if top is not None and here and here["ratio"] is not None:
            text[f"{k}.floor"] = fill("floor", share=fixed(100 * goal, 0), rate=percent(line))
        text[f"{k}.extremes"] = ""
        if here and here["ratio"] is not None:
            low, high = here["low"], here["high"]
            text[f"{k}.extremes"] = fill(
                "extremes",
                low=model["groups"][low],
                lowest=percent(here["groups"][low]["rate"]),
                high=model["groups"][high],
                highest=percent(here["groups"][high]["rate"]),
            )
        for j in range(model["n_rows"]):
            spoken = []
            for when, found in (("before", there), ("after", here)):
                name = f"{k}.{j}.{when}"
                group = found["groups"][j] if found else None
                share = group["rate"] if group else None
                text[name] = percent(share)
                text[f"{name}.span"] = span(group["interval"]) if group else ""
                text[f"{name}.of"] = ""
                if group and not weighted:
                    n, out_of = thousands(group["top"]), thousands(group["bottom"])
                    text[f"{name}.of"] = fill("of", top=n, bottom=out_of)
                spoken.append(percent(share))
                seen = "hidden" if share is None else "visible"
                mark[name] = {"visibility": seen}
                if share is not None:
                    mark[name] |= {"x": scaled(share, 0, scale), "cx": scaled(share, 0, scale)}
                bar = group["interval"] if group else None
                mark[f"{name}.bar"] = {"visibility": "visible" if bar else "hidden"}
                if bar:
                    mark[f"{name}.bar"] |= {
                        "x1": scaled(bar[0], 0, scale),
                        "x2": scaled(bar[1], 0, scale),
                    }
            text[f"{k}.{j}.alt"] = fill(
                "alt", group=model["rows"][j], before=spoken[0], after=spoken[1]
            )
    for j in range(model["n_rows"]):
        a = was["right"][j] if was["rates"] else None
        b = now["right"][j] if now["rates"] else None
        text[f"right.{j}.before"], text[f"right.{j}.after"] = percent(a), percent(b)
        text[f"right.{j}.change"] = points(None if a is None or b is None else b - a)

    box = model["box"]
    text["off"] = ""
    if box:
        x0, x1, y0, y1 = box
        mark["tau"] = {"x1": scaled(tau, x0, x1), "x2": scaled(tau, x0, x1)}
        # Above the chart, on the side where there is room for it.
        left = tau < x0 + 0.5 * (x1 - x0)
        mark["tau.label"] = {
            "x": scaled(tau, x0, x1),
            "text-anchor": "start" if left else "end",
            "dx": "14" if left else "-6",
        }
        mark["chosen"] = {"visibility": "hidden"}
        mark["seen"], mark["link"] = {"visibility": "hidden"}, {"visibility": "hidden"}
        drawn = point and point["reach"] is not None and point["accuracy"] is not None
        if point and drawn and point["accuracy"] < y0:
            text["off"] = fill("off", accuracy=percent(point["accuracy"]))
        elif point and drawn:
            cx, cy = scaled(point["reach"], x0, x1), scaled(-point["accuracy"], -y1, -y0)
            mark["chosen"] = {
                "visibility": "visible",
                "cx": cx,
                "cy": cy,
                "data-state": "ok" if reached else "below",
            }
            if part != model["fitted"] and now["ratio"] is not None:
                x, y = scaled(now["ratio"], x0, x1), scaled(-now["accuracy"], -y1, -y0)
                mark["seen"] = {"visibility": "visible", "cx": x, "cy": y}
                mark["link"] = {"visibility": "visible", "x1": cx, "y1": cy, "x2": x, "y2": y}
        for other in model["parts"]:
            seen = "visible" if other["key"] == part else "hidden"
            mark[f"cloud.{other['key']}"] = {"visibility": seen}
    if point:
        text["spoken"] = fill(
            "spoken",
            target=target,
            verdict=text["fitted.verdict"],
            ratio=text["ratio"],
            part=text["part"],
            accuracy=text["accuracy"],
        )
        # Where nothing but the fitted rows is known, the figures are those.
        if at is None:
            text["spoken"] = fill(
                "spoken.fitted",
                target=target,
                verdict=text["fitted.verdict"],
                ratio=text["fitted.rate"],
                accuracy=text["fitted.accuracy"],
            )
    else:
        text["spoken"] = say["empty"]
    return text, mark


# ---- axes ------------------------------------------------------------------------------------


def ticks(low: float, high: float, most: int = 5) -> list[float]:
    """Round numbers from ``low`` to ``high``, at most about so many."""
    if not high > low:
        return [low]
    rough = (high - low) / most
    base = 10 ** floor(log10(rough))
    step = next(m * base for m in (1, 2, 2.5, 5, 10) if m * base >= rough * (1 - 1e-9))
    first = np.ceil(low / step - 1e-9)
    count = int(np.floor(high / step + 1e-9) - first) + 1
    return [round(float((first + i) * step), 12) for i in range(max(count, 1))]


def nice_top(value: float) -> float:
    """Give the end of an axis from 0 for shares: not below the value, its quarters round."""
    return next((top for top in (0.02, 0.04, 0.1, 0.2, 0.4, 0.6, 0.8) if top >= value), 1.0)
