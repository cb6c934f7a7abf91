"""What moves with the page's slider: texts and places of marks, for a target and a part.

``page.js`` writes the same in the reader's browser, from the same figures;
``tests/views/test_report_browser.py`` compares the two.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from evenhand.core.targets import reaches
from evenhand.views.formats import fill_in, fixed, percent, points, thousands
from evenhand.views.objectives import value_text
from evenhand.views.report.drawings import place, scaled
from evenhand.views.report.figures import UNKNOWN
from evenhand.views.targets import TARGET_WORDS, TargetWords, words_of

SIGNS = {"ok": "✓", "below": "✕", "none": "–"}
HIDDEN, VISIBLE = {"visibility": "hidden"}, {"visibility": "visible"}


def point_at(model: dict[str, Any], tau: float) -> tuple[int | None, bool, bool]:
    """Find the point for a target: its index, whether it reaches it, whether it is the saved one.

    The first that reaches it, else the last, as ``FairClassifier.at`` chooses.
    """
    if _is_own(model, tau) and model["chosen"] is not None:
        return model["chosen"], model["feasible"], True
    n = model["n_points"]
    for i, point in enumerate(model["points"][:n]):
        if reaches(point["reach"], tau):
            return i, True, i == model["chosen"]
    return (n - 1 if n else None), False, n - 1 == model["chosen"]


def _is_own(model: dict[str, Any], tau: float) -> bool:
    """Whether a target is the one that was asked for, of which Python said what is reached."""
    return abs(tau - model["tau"]) < 1e-9


def state_of(figure: dict[str, Any] | None, goal: float | None = None) -> str:
    """Say whether the value of a figure reaches a goal, by default the one that was asked for."""
    if figure is None or figure["ratio"] is None:
        return "none"
    reached = figure["reached"] if goal is None else reaches(figure["ratio"], goal)
    return "ok" if reached else "below"


@dataclass
class _Screen:
    """A target, a part and what is known there; with the texts and marks written so far."""

    model: dict[str, Any]
    tau: float
    part: dict[str, Any] | None
    point: dict[str, Any] | None
    reached: bool
    now: dict[str, Any]
    was: dict[str, Any]
    text: dict[str, str] = field(default_factory=dict)
    mark: dict[str, dict[str, str]] = field(default_factory=dict)

    @property
    def words(self) -> TargetWords:
        return words_of(self.model)

    def fill(self, name: str, **values: str) -> str:
        return fill_in(self.model["phrases"][name], self.model["words"] | values)

    def value(self, value: float | None) -> str:
        return value_text(self.model["words"], value)

    def own_words(self, k: int) -> TargetWords:
        own = self.model["spec"][k]["words"]
        return TARGET_WORDS[own["name"]] if own else self.words

    def verdict(
        self, name: str, figure: dict[str, Any] | None, goal: float, words: TargetWords
    ) -> None:
        state = state_of(figure, None if _is_own(self.model, self.tau) else goal)
        about = {"target": words.level(goal), "missed": words.missed}
        self.text[name] = self.fill(f"verdict.{state}", **about)
        self.text[f"{name}.sign"] = SIGNS[state]
        self.mark[name] = {"data-state": state}


def live(
    model: dict[str, Any], tau: float, part: str | None
) -> tuple[dict[str, str], dict[str, dict[str, str]]]:
    """Give everything that moves: texts by name, and attributes of drawn marks by name.

    Parameters
    ----------
    model : dict
        The page's data (:func:`evenhand.views.report.figures.page_data`).
    tau : float
        The target asked for.
    part : str or None
        Key of the part of the data whose figures are shown.

    Returns
    -------
    tuple of (dict, dict)
        ``data-t`` names to texts, ``data-m`` names to attributes.
    """
    i, reached, saved = point_at(model, tau)
    point = None if i is None else model["points"][i]
    at = next((p for p in model["parts"] if p["key"] == part), None)
    now = point["figures"].get(part, UNKNOWN) if point else UNKNOWN
    screen = _Screen(model, tau, at, point, reached, now, model["plain"].get(part, UNKNOWN))
    _say_target(screen, saved)
    _say_figures(screen, model["best_cut"].get(part, UNKNOWN))
    for k in range(len(model["spec"])):
        _show_rate(screen, k)
    for j in range(model["n_rows"]):
        a, b = (of["right"][j] if of["right"] else None for of in (screen.was, now))
        screen.text[f"right.{j}.before"], screen.text[f"right.{j}.after"] = percent(a), percent(b)
        screen.text[f"right.{j}.change"] = points(None if a is None or b is None else b - a)
    _place_marks(screen)
    _say_aloud(screen)
    return screen.text, screen.mark


def _say_target(screen: _Screen, saved: bool) -> None:
    """Say what is asked for and what was reached where the model was chosen."""
    model, tau, point, part, text = (
        screen.model, screen.tau, screen.point, screen.part, screen.text,
    )  # fmt: skip
    own, words = _is_own(model, tau) and model["chosen"] is not None, screen.words
    state, target = "saved" if saved else "moved", words.level(tau)
    text["tau"] = target
    text["part"] = part["words"] if part else ""
    text["part.n"] = screen.fill("rows", n=thousands(part["n"]), part=part["words"]) if part else ""
    text["status"] = screen.fill(state, saved=words.level(model["tau"]), target=target)
    screen.mark["status"] = {"data-state": state}
    text["fitted.rate"] = words.text(point["rate"] if point else None, tau)
    text["fitted.value"] = screen.value(point["value"] if point else None)
    name = ("own." if own else "") + ("reached" if screen.reached else "missed")
    said = screen.fill(name, target=target, where=model["where"], sure=model["sure"])
    if not screen.reached and model["relied"] and point and point["reach"] is not None:
        said += screen.fill("relied", reach=words.text(point["reach"], tau))
    text["fitted.verdict"] = said
    screen.mark["fitted.verdict"] = {"data-state": "ok" if screen.reached else "below"}


def _say_figures(screen: _Screen, best: dict[str, Any]) -> None:
    """Write ratios and accuracies on the part, beside those of plain logistic regression."""
    now, text = screen.now, screen.text
    for name, figure in (("", now), ("plain.", screen.was), ("best.", best)):
        text[f"{name}ratio"] = screen.words.text(figure["ratio"], screen.tau)
        text[f"{name}value"] = screen.value(figure["value"])
        text[f"{name}accuracy"] = percent(figure["accuracy"])
    text["population"], text["cost"] = now["population"], ""
    screen.verdict("verdict", now, screen.tau, screen.words)
    if now["cost"]:
        name, lost, gained = now["cost"]
        text["cost"] = screen.fill(name, points=lost, best=gained)


def _show_rate(screen: _Screen, k: int) -> None:
    """Write and place one rate of all groups, before and after."""
    model, text, mark = screen.model, screen.text, screen.mark
    spec = model["spec"][k]
    here = screen.now["rates"][k] if screen.now["rates"] else None
    there = screen.was["rates"][k] if screen.was["rates"] else None
    goal, scale = spec["share"] * screen.tau - spec["offset"], (here or spec)["scale"]
    words = screen.own_words(k)
    for i in range(5):
        text[f"{k}.tick.{i}"] = f"{fixed(25 * scale * i, 0 if scale > 0.2 else 1)}%"
    text[f"{k}.ratio"] = words.text(here and here["ratio"], goal)
    text[f"{k}.plain"] = words.text(there and there["ratio"], goal)
    screen.verdict(f"{k}.verdict", here, goal, words)
    mark[f"{k}.decides"] = {"data-state": "on" if screen.now["worst"] == k else "off"}
    # Left of this line a group's rate is too far below the highest.
    start, slope = (here and here["floor"]) or (0.0, 0.0)
    line = start + slope * goal
    end = scaled(line, 0, scale)
    mark[f"{k}.floor"] = {"x1": end, "x2": end, "width": end} | (VISIBLE if line > 0 else HIDDEN)
    text[f"{k}.floor"] = text[f"{k}.extremes"] = ""
    if here and here["ratio"] is not None:
        low, high = here["low"], here["high"]
        if line > 0:
            text[f"{k}.floor"] = screen.fill("floor", rate=percent(line))
        text[f"{k}.extremes"] = screen.fill(
            "extremes",
            low=spec["rows"][low],
            lowest=percent(here["rate"][low]),
            high=spec["rows"][high],
            highest=percent(here["rate"][high]),
        )
    for j, group in enumerate(spec["rows"]):
        before = _show_group(screen, f"{k}.{j}.before", there, j, scale)
        after = _show_group(screen, f"{k}.{j}.after", here, j, scale)
        text[f"{k}.{j}.alt"] = screen.fill("alt", group=group, before=before, after=after)


def _show_group(
    screen: _Screen, name: str, rate: dict[str, Any] | None, j: int, scale: float
) -> str:
    """Write and place the rate of one group, and give it as text."""
    text, mark = screen.text, screen.mark
    share = rate["rate"][j] if rate else None
    interval = rate["interval"][j] if rate and rate["interval"] else None
    text[name] = percent(share)
    text[f"{name}.span"] = text[f"{name}.of"] = ""
    mark[name] = mark[f"{name}.bar"] = HIDDEN
    if rate and rate["top"]:
        top, bottom = (thousands(rate[of][j]) for of in ("top", "bottom"))
        text[f"{name}.of"] = screen.fill("of", top=top, bottom=bottom)
    if share is not None:
        x = scaled(share, 0, scale)
        mark[name] = VISIBLE | {"x": x, "cx": x}
    if interval and interval[0] is not None:
        low, high = (fixed(100 * end, 1) for end in interval)
        text[f"{name}.span"] = screen.fill("span", low=low, high=high)
        x1, x2 = (scaled(end, 0, scale) for end in interval)
        mark[f"{name}.bar"] = VISIBLE | {"x1": x1, "x2": x2}
    return text[name]


def _place_marks(screen: _Screen) -> None:
    """Place the target and the shown model in the frontier's drawing."""
    model, mark, point, now = screen.model, screen.mark, screen.point, screen.now
    screen.text["off"] = ""
    if not model["box"]:
        return
    x0, x1, y0, _ = model["box"]
    x, key = scaled(screen.tau, x0, x1), screen.part and screen.part["key"]
    mark["tau"] = {"x1": x, "x2": x}
    # Above the chart, on the side where there is room for it.
    left = screen.tau < x0 + 0.5 * (x1 - x0)
    anchor, dx = ("start", "14") if left else ("end", "-6")
    mark["tau.label"] = {"x": x, "text-anchor": anchor, "dx": dx}
    mark["chosen"] = mark["seen"] = mark["link"] = HIDDEN
    for part in model["parts"]:
        mark[f"cloud.{part['key']}"] = VISIBLE if part["key"] == key else HIDDEN
    if not point or point["reach"] is None or point["value"] is None:
        return
    if point["value"] < y0:
        screen.text["off"] = screen.fill("off", value=screen.value(point["value"]))
        return
    cx, cy = place(model["box"], point["reach"], point["value"])
    state = {"data-state": "ok" if screen.reached else "below"}
    mark["chosen"] = VISIBLE | {"cx": cx, "cy": cy} | state
    if key != model["fitted"] and now["ratio"] is not None:
        x, y = place(model["box"], now["ratio"], now["value"])
        mark["seen"] = VISIBLE | {"cx": x, "cy": y}
        mark["link"] = VISIBLE | {"x1": cx, "y1": cy, "x2": x, "y2": y}


def _say_aloud(screen: _Screen) -> None:
    """Say in one sentence what is shown; without parts, of the rows where the model was chosen."""
    text = screen.text
    if screen.point is None:
        text["spoken"] = screen.model["phrases"]["empty"]
        return
    text["spoken"] = screen.fill(
        "spoken" if screen.part else "spoken.fitted",
        target=text["tau"],
        verdict=text["fitted.verdict"],
        part=text["part"],
        ratio=text["ratio" if screen.part else "fitted.rate"],
        value=text["value" if screen.part else "fitted.value"],
    )
