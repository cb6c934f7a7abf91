"""From a summary to a page."""

from __future__ import annotations

import json
import unicodedata
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from itertools import groupby
from math import floor
from typing import Any

import numpy as np
from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from evenhand.views.report._figures import (
    fill_in,
    fixed,
    live,
    measure,
    nice_top,
    number,
    percent,
    point_at,
    rate_of,
    ratio_text,
    scaled,
    sums_of,
    tau_text,
    thousands,
    ticks,
)
from evenhand.views.report._words import (
    PART_WORDS,
    PHRASES,
    PROMISES,
    SELECTION_WORDS,
    SLIDER_PROMISES,
    again_sentence,
    answer,
    asked_sentence,
    date_words,
    how_chosen,
    limits,
    listed,
    quoted,
    rate_titles,
    reached_sentences,
    sure_words,
    unlabelled_sentences,
    useless_sentence,
)

# Characters of a name that are shown; of a longer one the beginning and the end.
LONGEST_NAME = 160
# Targets in the table of answers.
ROUND_TARGETS = (0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0)
TILE_NOTES = {
    "ok": "reaches the target, {}, on these rows",
    "below": "below the target, {}, on these rows",
    "none": "cannot be computed",
}
SMALL_ROWS = "rows of groups too small to compare"
_BIDI = set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069\u200e\u200f\u061c")


def render(summary: dict[str, Any]) -> str:
    """Render a summary as one HTML file that needs nothing else.

    The file has no link to anything outside itself and a policy that forbids the browser to fetch
    any. Figures of the chosen point, tables and drawings are in the HTML; the script makes them
    follow the slider. Whatever text the summary holds is shown as text.

    Parameters
    ----------
    summary : dict
        What was asked and reached, the points of the frontier with their counts, plain logistic
        regression, training curves, weights, the data and versions: plain lists, dicts, strings and
        numbers. Numbers that are not finite count as missing.

    Returns
    -------
    str
        The page; write it as UTF-8.
    """
    summary = clean(summary)
    model, titles = _model(summary)
    start = _start(model)
    texts, marks = live(model, model["tau"], start)
    how = how_chosen(summary)
    values = {
        "tau": tau_text(model["tau"]),
        "sure": _sure(summary),
        "bound": ratio_text(summary["reached"].get("bound"), model["tau"]),
    }
    page, css, js = _assets()
    return page.render(
        summary=summary,
        model=model,
        titles=titles,
        start=start,
        texts=texts,
        T=lambda name, tag="span", cls="": _text(texts, name, tag, cls),
        M=lambda name: _attributes(marks, name),
        head=_headline(summary, model, titles),
        frontier=_frontier(model),
        answers=_answers(model, start),
        slider=_slider(model),
        weights=[_weights(table) for table in summary["weights"]],
        curves=_curves(summary["curves"]),
        limits=limits(summary, titles),
        useless=useless_sentence(summary),
        unlabelled=unlabelled_sentences(summary),
        # Of the table that was trained on: rows of a test table are not among its rows.
        used=summary["data"]["rows"]
        - sum(d["n"] for d in summary["data"]["rows_dropped"] if d.get("part") != "test"),
        again=again_sentence(summary),
        promise=fill_in(PROMISES[how], values) if model["n_points"] else "",
        selection=SELECTION_WORDS[summary["asked"]["selection"]],
        slider_promise=fill_in(SLIDER_PROMISES[how], values),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
        policy=_policy(css, js),
        data=script_json(model),
        tau_text=tau_text,
        thousands=thousands,
        percent=percent,
        fixed=fixed,
        by=listed([quoted(name) for name in summary["asked"]["sensitive"]]) or "the group",
        answer=answer,
        date_words=date_words,
    )


# ---- what goes in ----------------------------------------------------------------------------


def clean(value: Any, key: str = "") -> Any:
    """Copy a summary with text that can be written and shown, and None for numbers that are none.

    Control characters, halves of surrogate pairs and marks that turn the direction of writing
    become U+FFFD.
    """
    if isinstance(value, dict):
        return {clean(str(k)): clean(v, str(k)) for k, v in value.items()}
    if isinstance(value, list | tuple):
        return [clean(v, key) for v in value]
    if isinstance(value, str):
        kept = "\n" if key == "command" else ""
        value = "".join(c if c in kept else _shown(c) for c in value)
        if len(value) > LONGEST_NAME and key not in ("command", "guarantee", "group_use"):
            value = f"{value[: LONGEST_NAME - 40]} … {value[-37:]}"
        return value
    if isinstance(value, float):
        return number(value)
    return value


def _shown(character: str) -> str:
    if character in "\n\r\t\u2028\u2029":
        return " "
    category = unicodedata.category(character)
    return "\ufffd" if category in ("Cc", "Cs") or character in _BIDI else character


def script_json(value: Any) -> Markup:
    """Write data as JSON that no HTML parser takes for anything but text."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    for character in "<>&\u2028\u2029":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return Markup(text)  # noqa: S704 - escaped just above


@cache
def _assets() -> tuple[Template, str, str]:
    """Template, style and script."""
    here = files("evenhand.views.report")
    page, css, js = (
        here.joinpath(f"page.{kind}").read_text("utf-8") for kind in ("html", "css", "js")
    )
    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    return environment.from_string(page), css, js


def _policy(css: str, js: str) -> str:
    """Give a policy that lets the page run its own style and script, and fetch nothing."""
    style, script = (
        f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'" for text in (css, js)
    )
    return (
        f"default-src 'none'; style-src {style}; script-src {script}; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _text(texts: dict[str, str], name: str, tag: str, cls: str) -> Markup:
    look = Markup(' class="{}"').format(cls) if cls else ""
    return Markup('<{0}{1} data-t="{2}">{3}</{0}>').format(tag, look, name, texts[name])


def _attributes(marks: dict[str, dict[str, str]], name: str) -> Markup:
    found = [Markup('data-m="{}"').format(name)]
    found += [Markup('{}="{}"').format(key, value) for key, value in marks[name].items()]
    return Markup(" ").join(found)


def _model(summary: dict[str, Any]) -> tuple[dict[str, Any], list[Any]]:
    """Give the data of the page's script, and the rates' titles."""
    rate = rate_of(summary)
    groups, labels = summary["groups"], summary["labels"]
    titles = rate_titles(summary["rate"]["parts"], labels, summary["asked"]["label"])
    keys = [part["key"] for part in summary["parts"]]

    def sums(counts: dict[str, Any] | None) -> dict[str, Any]:
        return {k: sums_of(counts[k], rate) for k in keys if counts and counts.get(k)}

    listed_points, chosen = _thinned(summary)
    n_points = len(listed_points)
    if not n_points or chosen is None:
        # A saved model that is off the frontier comes behind its points.
        off = summary.get("saved")
        chosen = n_points if off else None
        listed_points += [off] if off else []
    points: list[dict[str, Any]] = [
        {
            "rate": number(point["rate"]),
            "reach": number(point["reach"]),
            "accuracy": number(point["accuracy"]),
            "usual": _usual(point),
            "sums": sums(point["counts"]),
        }
        for point in listed_points
    ]
    plain = sums(summary["plain"]["counts"]) if summary["plain"] else {}
    best_cut = (summary["plain"] or {}).get("best_cut") or {"counts": None}
    every = [s for of in [*(p["sums"] for p in points), plain] for s in of.values()]
    known = {k for of in [*(p["sums"] for p in points), plain] for k in of}
    n_rows = max([len(groups), *(len(s["n"]) for s in every)])
    spec = []
    usual = [p["sums"] for i, p in enumerate(points) if i == chosen or p["usual"]]
    drawn = [s for of in [*usual, plain] for s in of.values()]
    for k, (part, share) in enumerate(zip(rate.parts, rate.shares, strict=True)):
        tops = [
            t / b
            for s in drawn
            for t, b in zip(s["top"][k][: len(groups)], s["bottom"][k][: len(groups)], strict=True)
            if b > 0
        ]
        scale = nice_top(1.05 * max(tops, default=0.0))  # a little room for the intervals
        spec.append({"share": share, "error": part.is_error, "scale": scale})
    model = {
        "tau": float(summary["tau"]),
        "chosen": None if chosen is None else int(chosen),
        "feasible": bool(summary["reached"]["feasible"]),
        "where": summary["reached"]["where"],
        "sure": sure_words(summary),
        # Whether points answer for less than their ratio among these rows.
        "relied": how_chosen(summary) in ("confident", "unsure"),
        "points": points,
        "n_points": n_points,  # of the frontier
        "plain": plain,
        "best_cut": sums(best_cut["counts"]),
        "parts": [
            {
                "key": part["key"],
                "title": part["title"],
                "words": PART_WORDS.get(part["key"], part["title"]),
                "n": part["n"],
                "weighted": bool(part["weighted"]),
            }
            for part in summary["parts"]
            if part["key"] in known
        ],
        "fitted": "train",
        "groups": [f"\u2068{name}\u2069" for name in groups],
        "rows": [
            f"\u2068{name}\u2069" for name in [*groups, *[SMALL_ROWS] * (n_rows - len(groups))]
        ],
        "n_rows": n_rows,
        "spec": spec,
        "box": None,
        "phrases": PHRASES,
    }
    model["box"] = _box(model)
    return model, titles


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


def _sure(summary: dict[str, Any]) -> str:
    sure = summary["asked"]["confidence"]
    return percent(sure) if isinstance(sure, float) else ""


def _usual(point: dict[str, Any]) -> bool:
    """Whether axes are made for a point: one answer to everybody is less often right.

    The last hair of ratio may cost all accuracy.
    """
    counts = next(iter(point["counts"].values()), None)
    if counts is None or point["accuracy"] is None:
        return point["reach"] is None or point["reach"] <= 0.995
    labels = np.sum(counts, axis=(0, 2))
    return bool(point["accuracy"] > labels.max() / labels.sum())


def _start(model: dict[str, Any]) -> str | None:
    """Give the part shown first: the one furthest from the fit."""
    keys = [part["key"] for part in model["parts"]]
    return next((k for k in ("test", "held_out", "train") if k in keys), keys[0] if keys else None)


# ---- the first screen ------------------------------------------------------------------------


def _headline(summary: dict[str, Any], model: dict[str, Any], titles: list[Any]) -> dict[str, Any]:
    """Say what was asked and what was reached."""
    tau, spec, n_groups = model["tau"], model["spec"], len(model["groups"])
    chosen = model["points"][model["chosen"]] if model["chosen"] is not None else None

    def on(key: str | None, sums: dict[str, Any]) -> dict[str, Any] | None:
        part = next((p for p in model["parts"] if p["key"] == key), None)
        if part is None or key not in sums:
            return None
        found = measure(sums[key], spec, n_groups, part["weighted"])
        return found | {"rows": thousands(part["n"])}

    test = on("test", chosen["sums"]) if chosen else None
    plain, best = (on("test", model[key]) for key in ("plain", "best_cut"))
    head = reached_sentences(summary, test, plain, best)
    start = _start(model)
    part = next((p for p in model["parts"] if p["key"] == start), None)
    now = on(start, chosen["sums"]) if chosen else None
    was = on(start, model["plain"])
    tiles = []
    if now and part:
        state = "none" if now["ratio"] is None else "ok" if now["ratio"] >= tau else "below"
        tiles = [
            {
                "label": "Ratio, lowest to highest group"
                if all(part["share"] == 1 for part in spec)
                else "Ratio, on the scale of the strictest target",
                "value": ratio_text(now["ratio"], tau),
                "before": ratio_text(was["ratio"], tau) if was else "",
                "note": TILE_NOTES[state].format(tau_text(tau)),
                "state": state,
                "share": scaled(now["ratio"], 0, 1) if now["ratio"] is not None else None,
                "goal": scaled(tau, 0, 1),
            },
            {
                "label": "Accuracy: answers that match the table",
                "value": percent(now["accuracy"]),
                "before": percent(was["accuracy"]) if was else "",
                "note": "",
                "state": "",
                "share": None,
            },
        ]
        worst = now["worst"]
        if worst is not None:
            rates, title = now["rates"][worst], titles[worst]["title"]
            for end, word in (("low", "lowest"), ("high", "highest")):
                j = rates[end]
                past = was["rates"][worst]["groups"][j]["rate"] if was else None
                tiles.append(
                    {
                        "label": f"{title}, {word} group",
                        "value": percent(rates["groups"][j]["rate"]),
                        "before": percent(past) if was else "",
                        "note": summary["groups"][j],
                        "state": "",
                        "share": None,
                    }
                )
    return head | {
        "asked": asked_sentence(summary, titles),
        "tiles": tiles,
        "part": fill_in(PHRASES["rows"], {"n": thousands(part["n"]), "part": part["words"]})
        if part
        else "",
    }


def _slider(model: dict[str, Any]) -> dict[str, str]:
    """Give the slider's range and step."""
    tau = model["tau"]
    least = min([tau, *(p["reach"] for p in model["points"] if p["reach"] is not None)])
    fine = abs(100 * tau - floor(100 * tau + 0.5)) > 1e-9
    exact = abs(1000 * tau - floor(1000 * tau + 0.5)) < 1e-9
    return {
        "min": f"{max(floor(20 * least + 1e-9) / 20, 0.0):g}",
        "max": "1",
        "step": ("0.001" if exact else "any") if fine else "0.01",
        "value": f"{tau:.10g}",
    }


def _answers(model: dict[str, Any], part: str | None) -> list[dict[str, str | bool]]:
    """Give the answer to each of some round targets, and to the one that was asked."""
    if not model["n_points"]:
        return []
    low = float(_slider(model)["min"])
    targets = sorted({t for t in ROUND_TARGETS if t > low} | {model["tau"]})
    out: list[dict[str, str | bool]] = []
    for tau in targets:
        texts, _ = live(model, tau, part)
        _, reached, _ = point_at(model, tau)
        out.append(
            {
                "tau": tau_text(tau),
                "saved": tau == model["tau"],
                "reached": reached,
                "fitted_rate": texts["fitted.rate"],
                "fitted_accuracy": texts["fitted.accuracy"],
                "rate": texts["ratio"],
                "accuracy": texts["accuracy"],
                "state": texts["verdict.sign"],
                "verdict": texts["verdict"],
            }
        )
    return out


# ---- drawings --------------------------------------------------------------------------------


def _known(model: dict[str, Any]) -> list[tuple[float, float]]:
    """Target and accuracy of the points that have both, without the last hair of ratio."""
    found = [p for p in model["points"] if p["reach"] is not None and p["accuracy"] is not None]
    chosen = model["points"][model["chosen"]] if model["chosen"] is not None else None
    shown = [p for p in found if p["usual"] or p is chosen]
    shown = shown if any(p["usual"] for p in shown) else found
    return [(p["reach"], p["accuracy"]) for p in shown]


def _seen(model: dict[str, Any], sums: dict[str, Any], key: str) -> tuple[float, float] | None:
    """Ratio and accuracy on a part."""
    if key not in sums:
        return None
    found = measure(sums[key], model["spec"], len(model["groups"]), True)
    return None if found["ratio"] is None else (found["ratio"], found["accuracy"])


def _clouds(model: dict[str, Any]) -> dict[str, list[tuple[float, float]]]:
    """Give the points' figures on the parts that were not fitted to."""
    out = {}
    for part in model["parts"]:
        if part["key"] != model["fitted"]:
            usual = [p for p in model["points"][: model["n_points"]] if p["usual"]]
            found = [_seen(model, point["sums"], part["key"]) for point in usual]
            out[part["key"]] = [xy for xy in found if xy is not None]
    return out


def _box(model: dict[str, Any]) -> list[float] | None:
    """Give the ends of the frontier's axes."""
    known = _known(model)
    if not known:
        return None
    before = [_seen(model, model["plain"], model["fitted"])]
    every = known + [xy for cloud in _clouds(model).values() for xy in cloud]
    every += [xy for xy in before if xy is not None]
    x0 = max(0.0, floor(20 * min([model["tau"], *(x for x, _ in every)]) + 1e-9) / 20 - 0.05)
    low, high = min(y for _, y in every), max(y for _, y in every)
    room = max(0.08 * (high - low), 0.002)
    return [x0, 1.0, max(low - room, 0.0), min(high + room, 1.0)]


def _frontier(model: dict[str, Any]) -> dict[str, Any] | None:
    """Give the still parts of the frontier's drawing."""
    if model["box"] is None:
        return None
    x0, x1, y0, y1 = model["box"]

    def place(x: float, y: float) -> tuple[float, float]:
        return 1000 * (x - x0) / (x1 - x0), 1000 * (y1 - y) / (y1 - y0)

    # A point answers every target down to that of the one before it.
    line: list[str] = []
    for point in model["points"][: model["n_points"]]:
        if point["reach"] is None or point["accuracy"] is None:
            continue
        x, y = place(point["reach"], point["accuracy"])
        line.append(f"V{y:.1f}" if line else f"M0.0,{y:.1f}")
        line.append(f"H{x:.1f}")
    levels = ticks(y0, y1, 5)
    found = ticks(x0, x1, 7)
    across = 1 if all(abs(10 * v - round(10 * v)) < 1e-9 for v in found) else 2
    digits = max(len(f"{100 * v:.6g}".partition(".")[2]) for v in levels)
    before = _seen(model, model["plain"], model["fitted"])
    return {
        "line": "".join(line),
        "x": [(scaled(v, x0, x1), fixed(v, across)) for v in found],
        "y": [(scaled(-v, -y1, -y0), f"{fixed(100 * v, digits)}%") for v in levels],
        "clouds": {
            key: [(scaled(x, x0, x1), scaled(-y, -y1, -y0)) for x, y in found]
            for key, found in _clouds(model).items()
        },
        "before": (scaled(before[0], x0, x1), scaled(-before[1], -y1, -y0)) if before else None,
        "saved": _place_of_saved(model),
    }


def _place_of_saved(model: dict[str, Any]) -> tuple[str, str] | None:
    x0, x1, y0, y1 = model["box"]
    point = model["points"][model["chosen"]] if model["chosen"] is not None else None
    if point is None or point["reach"] is None or point["accuracy"] is None:
        return None
    return scaled(point["reach"], x0, x1), scaled(-point["accuracy"], -y1, -y0)


def _weights(table: dict[str, Any]) -> dict[str, Any]:
    """Place the weights of one label's score on an axis around 0."""
    known = [
        w | {"fair": float(w["fair"]), "plain": float(w["plain"])}
        for w in table["inputs"]
        if w["fair"] is not None and w["plain"] is not None
    ]
    # What looks the same in print did not change for a reader.
    known = [w for w in known if fixed(w["fair"], 2) != fixed(w["plain"], 2)]
    values = [0.0, *(v for w in known for v in (w["fair"], w["plain"]))]
    room = 0.04 * (max(values) - min(values)) or 1.0
    low, high = min(values) - room, max(values) + room
    found = ticks(low, high, 5)
    digits = min(max(len(f"{v:g}".partition(".")[2]) for v in found), 4)
    return {
        "label": table["label"],
        "zero": scaled(0, low, high),
        "ticks": [(scaled(v, low, high), fixed(v, digits)) for v in found],
        "rows": [
            {
                "name": w["name"],
                "fair": fixed(w["fair"], 2),
                "plain": fixed(w["plain"], 2),
                "x_fair": scaled(w["fair"], low, high),
                "x_plain": scaled(w["plain"], low, high),
                "way": _way(w["plain"], w["fair"]),
            }
            for w in known
        ],
    }


def _way(plain: float, fair: float) -> str:
    """Say how a weight changed."""
    if plain * fair < 0:
        return "turned round"
    if abs(fair) < 0.5 * abs(plain):
        return "much weaker"
    return "weaker" if abs(fair) < abs(plain) else "stronger"


CURVES = (
    ("rate", "Ratio between groups", "1 is parity", 1),
    ("accuracy", "Accuracy", "share of right answers", 1),
    ("loss_c", "Prediction loss", "log-loss: lower fits the table better", 1),
    ("loss_u", "Adversary's loss", "falls while it learns to guess the group; level is a draw", -1),
)


LEG_WORDS = {
    "optimum": "to plain logistic regression",
    "from optimum": "from there against the adversary",
    "from zero": "from zero against the adversary",
}


def _curves(curves: dict[str, Any] | None) -> dict[str, Any] | None:
    """Draw what the training went through, leg after leg."""
    if not curves or not curves.get("iteration"):
        return None
    n = len(curves["iteration"])
    legs, begin = [], 0
    for name, rows in groupby(curves["leg"]):
        size = len(list(rows))
        name = LEG_WORDS.get(name, name)
        legs.append({"name": name, "n": size, "x": scaled(begin, 0, max(n - 1, 1)), "first": begin})
        begin += size
    charts = []
    for key, title, words, sign in CURVES:
        column = list(curves.get(key) or [])[:n]
        values = [None if v is None else sign * float(v) for v in column]
        known = [v for v in values if v is not None]
        if not known:
            continue
        low, high = min(known), max(known)
        room = 0.06 * (high - low) or 0.01
        low, high = low - room, high + room
        path, pen = [], "M"
        for i, v in enumerate(values):
            if v is None:
                pen = "M"
                continue
            x, y = 1000 * i / max(n - 1, 1), 1000 * (high - v) / (high - low)
            path.append(f"{pen}{x:.1f},{y:.1f}")
            pen = "L"
        found = ticks(low, high, 3)
        digits = max(len(f"{v:g}".partition(".")[2]) for v in found)
        share = key == "accuracy"
        charts.append(
            {
                "title": title,
                "words": words,
                "path": "".join(path),
                "ticks": [
                    (
                        scaled(-v, -high, -low),
                        f"{fixed(100 * v, max(digits - 2, 0))}%" if share else fixed(v, digits),
                    )
                    for v in found
                ],
                "begin": percent(known[0]) if share else fixed(known[0], 3),
                "end": percent(known[-1]) if share else fixed(known[-1], 3),
            }
        )
    return {"legs": legs, "n": n, "charts": charts} if charts else None
