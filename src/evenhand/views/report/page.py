"""From a summary to a page."""

from __future__ import annotations

import json
import unicodedata
from base64 import b64encode
from functools import cache
from hashlib import sha256
from importlib.resources import files
from math import floor, isfinite
from typing import Any

from jinja2 import Environment, StrictUndefined, Template
from markupsafe import Markup

from evenhand.core.objectives import ACCURACY
from evenhand.views.formats import (
    fill_in,
    fixed,
    listed,
    percent,
    plain_name,
    quoted,
    thousands,
)
from evenhand.views.objectives import objective_sentence, value_text
from evenhand.views.report.drawings import (
    SOURCE_WORDS,
    curves_drawing,
    frontier_drawing,
    scaled,
    weights_drawing,
)
from evenhand.views.report.figures import UNKNOWN, page_data
from evenhand.views.report.left_out import unlabelled_sentences
from evenhand.views.report.live import live, point_at, state_of
from evenhand.views.report.phrases import (
    PHRASES,
    PROMISES,
    SELECTION_WORDS,
    SLIDER_PROMISES,
    TOO_SURE,
    WEIGHTS_OF_MANY,
    WEIGHTS_OF_TWO,
)
from evenhand.views.report.words import (
    again_sentence,
    answer,
    asked_sentence,
    attribute_sentence,
    constant_sentence,
    date_words,
    dear_sentence,
    how_chosen,
    limits,
    not_reached,
    rate_titles,
    reached_sentences,
    small_groups_sentence,
    training_sentence,
    useless_sentence,
    weight_of,
)
from evenhand.views.targets import words_of
from evenhand.views.verdicts import weight_sentence
from evenhand.workflow.summary import objective_of

# Characters of a name that are shown; of a longer one the beginning and the end.
LONGEST_NAME = 160
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
    model = page_data(summary)
    titles = rate_titles(summary["rate"]["parts"], summary["labels"], summary["asked"]["label"])
    start, slider = _start(model), _slider(model)
    texts, marks = live(model, model["tau"], start)
    how = how_chosen(summary)
    less = TOO_SURE.get(summary.get("too_sure") or "", "")
    words, confidence = words_of(model), summary["asked"]["confidence"]
    values = model["words"] | {
        "tau": words.level(model["tau"]),
        "sure": f"{100 * confidence:g}%" if isinstance(confidence, float) else "",
        "bound": words.text(summary["reached"].get("bound"), model["tau"]),
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
        head=_headline(summary, model, titles, start),
        frontier=frontier_drawing(model),
        answers=_answers(model, start),
        not_reached=not_reached(summary),
        constant=constant_sentence(summary, start) if start else "",
        slider=slider,
        plain=plain_name(summary),
        sources={
            name: text.format(
                cut="a cut for each group" if summary["needs_group"] else "a cut of its own"
            )
            for name, text in SOURCE_WORDS.items()
        },
        weight_words=WEIGHTS_OF_MANY if len(summary["labels"]) > 2 else WEIGHTS_OF_TWO,
        weights=[weights_drawing(table) for table in summary["weights"]],
        curves=curves_drawing(summary["curves"], model["words"]),
        limits=limits(summary, titles),
        useless=useless_sentence(summary),
        dear=dear_sentence(summary),
        training=training_sentence(summary),
        unlabelled=unlabelled_sentences(summary),
        small=small_groups_sentence(summary),
        weight=weight_sentence(*weight_of(summary)),
        attributes=attribute_sentence(summary),
        objective=objective_sentence(objective_of(summary)),
        # Of the table that was trained on: rows of a test table are not among its rows.
        used=summary["data"]["rows"]
        - sum(d["n"] for d in summary["data"]["rows_dropped"] if d.get("part") != "test"),
        again=again_sentence(summary),
        promise=fill_in(PROMISES[how], values) + less if model["n_points"] else "",
        selection=SELECTION_WORDS[summary["asked"]["place"]],
        slider_promise=fill_in(SLIDER_PROMISES[how], values),
        css=Markup(css),  # noqa: S704 - ours
        js=Markup(js),  # noqa: S704 - ours
        policy=_policy(css, js),
        data=script_json(_script_data(model, slider["step"])),
        words=words,
        thousands=thousands,
        percent=percent,
        fixed=fixed,
        by=listed([quoted(name) for name in summary["asked"]["sensitive"]]) or "the group",
        answer=answer,
        date_words=date_words,
    )


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
        ours = ("command", "guarantee", "group_use", "sentence")
        if len(value) > LONGEST_NAME and key not in ours:
            value = f"{value[: LONGEST_NAME - 40]} … {value[-37:]}"
        return value
    if isinstance(value, float):
        return value if isfinite(value) else None
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
    attributes = [Markup('data-m="{}"').format(name)]
    attributes += [Markup('{}="{}"').format(key, value) for key, value in marks[name].items()]
    return Markup(" ").join(attributes)


def _start(model: dict[str, Any]) -> str | None:
    """Give the part shown first: the one furthest from the fit."""
    keys = [part["key"] for part in model["parts"]]
    return next((k for k in ("test", "held_out", "train") if k in keys), keys[0] if keys else None)


def _headline(
    summary: dict[str, Any], model: dict[str, Any], titles: list[Any], start: str | None
) -> dict[str, Any]:
    """Say what was asked and what was reached."""
    parts = {part["key"]: part for part in model["parts"]}
    chosen = model["points"][model["chosen"]] if model["chosen"] is not None else None
    saved = chosen["figures"] if chosen else {}
    rows = thousands(parts["test"]["n"]) if "test" in parts else ""
    of_test = (of.get("test") for of in (saved, model["plain"], model["best_cut"]))
    return reached_sentences(summary, rows, *of_test) | {
        "asked": asked_sentence(summary, titles),
        "tiles": _tiles(summary, model, titles, saved.get(start), model["plain"].get(start)),
        "part": fill_in(
            PHRASES["rows"], {"n": thousands(parts[start]["n"]), "part": parts[start]["words"]}
        )
        if start
        else "",
    }


def _tiles(
    summary: dict[str, Any],
    model: dict[str, Any],
    titles: list[Any],
    now: dict[str, Any] | None,
    was: dict[str, Any] | None,
) -> list[dict[str, Any]]:
    """Give the large figures of the first screen, each with what it was before."""
    if not now:
        return []

    def tile(label: str, value: str, before: str, **more: Any) -> dict[str, Any]:
        look = {"note": "", "state": "", "share": None, "when": "before"}
        return {"label": label, "value": value, "before": before if was else ""} | look | more

    tau, ratio, worst, words = model["tau"], now["ratio"], now["worst"], words_of(model)
    state, old, parity = state_of(now), was or UNKNOWN, words.parity
    alike = all(part["share"] == 1 and not part["words"] for part in model["spec"])
    scale = "between lowest and highest group" if alike else "on the scale of the strictest target"
    note = {"target": words.level(tau)} | model["words"]
    tiles = [
        tile(
            f"{words.name.capitalize()} {scale}",
            words.text(ratio, tau),
            words.text(old["ratio"], tau),
            note=fill_in(PHRASES[f"verdict.{state}"], note),
            state=state,
            share=None if ratio is None else scaled(ratio, parity - 1, parity),
            goal=scaled(tau, parity - 1, parity),
        ),
        tile(
            "Accuracy: answers that match the table",
            percent(now["accuracy"]),
            percent(old["accuracy"]),
        ),
    ]
    objective = objective_of(summary)
    if objective != ACCURACY:
        shown = (value_text(model["words"], of["value"]) for of in (now, old))
        tiles.insert(1, tile(objective.words.capitalize(), *shown))
    for end, word in (("low", "lowest"), ("high", "highest")) if worst is not None else ():
        j = now["rates"][worst][end]
        before, after = (of["rates"][worst]["rate"][j] if of else None for of in (was, now))
        label = f"{titles[worst]['title']}, {word} group"
        # Another group may have been the lowest or the highest before.
        names = (summary["rate"]["parts"][worst].get("by") or summary)["groups"]
        same = {"note": names[j], "when": "this group before"}
        tiles.append(tile(label, percent(after), percent(before), **same))
    return tiles


def _slider(model: dict[str, Any]) -> dict[str, str]:
    """Give the slider's range and step."""
    tau, parity = model["tau"], words_of(model).parity
    least = min([tau, *(p["reach"] for p in model["points"] if p["reach"] is not None)])
    fine = abs(100 * tau - floor(100 * tau + 0.5)) > 1e-9
    exact = abs(1000 * tau - floor(1000 * tau + 0.5)) < 1e-9
    return {
        "min": f"{max(floor(20 * least + 1e-9) / 20, parity - 1):g}",
        "max": f"{parity:g}",
        "step": ("0.001" if exact else "any") if fine else "0.01",
        "value": f"{tau:.10g}",
    }


def _script_data(model: dict[str, Any], step: str) -> dict[str, Any]:
    """Leave out the points that answer no target of the slider, most of a long frontier."""
    per_unit, points, n = {"0.01": 100, "0.001": 1000}.get(step), model["points"], model["n_points"]
    if per_unit is None or not n:
        return model
    first = round(per_unit * (words_of(model).parity - 1))
    targets = (i / per_unit for i in range(first, first + per_unit + 1))
    kept = {model["chosen"], *(point_at(model, tau)[0] for tau in targets)} - {None}
    order = [i for i in range(len(points)) if i in kept]
    return model | {
        "points": [points[i] for i in order],
        "n_points": sum(i < n for i in order),
        "chosen": None if model["chosen"] is None else order.index(model["chosen"]),
    }


def _answers(model: dict[str, Any], part: str | None) -> list[dict[str, Any]]:
    """Give the answer to each of some round targets, and to the one that was asked."""
    if not model["n_points"]:
        return []
    lowest = min((p["reach"] for p in model["points"] if p["reach"] is not None), default=0.0)
    return [
        {
            "saved": tau == model["tau"],
            "reached": point_at(model, tau)[1],
            "texts": live(model, tau, part)[0],
        }
        for tau in words_of(model).table_levels(lowest, model["tau"])
    ]
