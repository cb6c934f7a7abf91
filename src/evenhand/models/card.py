"""A fitted classifier at a glance, for notebooks: a few figures and a small frontier."""

from __future__ import annotations

import re
from html import escape
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from evenhand.core.objectives import ACCURACY, Objective
from evenhand.core.targets import READ

__all__ = ["ShowsSummary", "summary_html"]

WIDTH, HEIGHT, MARGIN = 280, 120, 14
STYLE = (
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;display:inline-flex;gap:20px;"
    "align-items:center;flex-wrap:wrap;border:1px solid #8886;border-radius:8px;padding:12px 16px"
)


def kind_in(words: str) -> str:
    """Give the class of a booster in the words of its ``repr``, of a pipeline that of its end.

    >>> kind_in("Pipeline(steps=[('a', StandardScaler()), ('b', LogisticRegression(C=2))])")
    'LogisticRegression'
    """
    name = words.partition("(")[0]
    return re.findall(r"([A-Z]\w*)\(", words)[-1] if name == "Pipeline" else name


def group_use(estimator: Any) -> str:
    """Say how a fitted classifier, or a pipeline that ends in one, goes by the group to predict.

    Empty if it does not: if two people who differ in nothing but the group get the same answer.
    """
    steps = dict(getattr(estimator, "steps", ()))
    model = next(reversed(steps.values())) if steps else estimator
    cuts = "each group has its own cut, the score above which the favourable answer is given"
    ways = [cuts] if getattr(model, "needs_group", False) else []
    sensitive = getattr(estimator, "sensitive_features", getattr(estimator, "sensitive", ()))
    sensitive = [sensitive] if isinstance(sensitive, str) else sensitive
    for plan in getattr(steps.get("encoder"), "plans_", ()):
        if plan.column in sensitive and plan.kind != "dropped":
            ways.append(f"the sensitive column {plan.column!r} is an input")
    if not ways:
        return ""
    return (
        f"The group decides: {', and '.join(ways)}. Where the law forbids that, do not use this "
        "model."
    )


def _picture(model: Any) -> str:
    """Draw the frontier: accuracy against rate, the target, the chosen point."""
    front, point = model.frontier_, model.point_
    if not len(front):
        return ""
    own = float(front.objective.value(point.counts))
    rate, value = np.append(front.rate, point.rate), np.append(front.value, own)
    parity, level = model.target_.worst + 1, model.target_.level
    # The last improvement of the rate may cost all accuracy; it is left out unless it was chosen.
    shown = value[(rate <= parity - 0.005) | (np.arange(len(rate)) == len(rate) - 1)]
    low, high = float(shown.min()), float(value.max())
    left = min(float(np.nanmin(rate)), level)

    def place(r: float, a: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * (r - left) / max(parity - left, 1e-9)
        share = max(a - low, 0.0) / max(high - low, 1e-9)
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share
        return round(x, 1), round(y, 1)

    steps = [place(r, a) for r, a in zip(front.rate, front.value, strict=True)]
    # A point answers every target down to the rate of the point before it.
    line = f"M{MARGIN},{steps[0][1]}" + "".join(f"V{y}H{x}" for x, y in steps)
    target = place(level, low)[0]
    x, y = place(point.rate if point.rate == point.rate else left, own)
    worth = front.objective
    fill, name = "#c8501e" if point.feasible else "none", READ[model.target_.comparison][0]
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="frontier: {worth.words} from {worth.per * high:.3f} to '
        f"{worth.per * low:.3f} as the {name} goes to "
        f'{parity:g}">'
        f'<line x1="{target}" x2="{target}" y1="{MARGIN / 2}" y2="{HEIGHT - MARGIN}" '
        'stroke="currentColor" stroke-dasharray="3 3" opacity=".5"/>'
        f'<path d="{line}" fill="none" stroke="#2f7fb8" stroke-width="2"/>'
        f'<circle cx="{x}" cy="{y}" r="4.5" fill="{fill}" stroke="#c8501e" stroke-width="2"/>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 1}" font-size="10" text-anchor="end" '
        f'fill="currentColor" opacity=".7">{name} → {parity:g}</text>'
        f'<text x="{MARGIN}" y="10" font-size="10" fill="currentColor" opacity=".7">'
        f"{worth.words} ↑</text></svg>"
    )


def _targets(model: Any) -> list[str]:
    """Each rate's comparison with its target, in words; those of one target together."""
    target, notions = model.target_, np.atleast_1d(model.notion).tolist()
    words = " and ".join(notion.replace("_", " ") for notion in notions)
    if target.comparison != "mixed" and len({level for _, level in target.demands}) == 1:
        return [f"{target}, {words}"]
    signs = {"ratio": "τ", "difference": "ε"}
    goals = zip(target.demands, target.kinds, strict=True)
    return [f"{signs[kind]} = {level:.4g}, {name}" for (name, level), kind in goals]


def _sure(fitted: Any, model: Any) -> str:
    """Say how sure the target is and, if it is missed, which part can be relied on."""
    if fitted.guarantee_ is not None:
        sure = f"confidence {1 - fitted.fitted_.delta:g}"
        return f", and in the population with {sure} by an exact test" * model.point_.feasible
    if not isinstance(fitted.fitted_.confidence, float):
        return ""
    sure = f" with a confidence of about {fitted.fitted_.confidence:g}"
    if model.point_.feasible or not np.isfinite(fitted.rate_bound_):
        return sure
    target = fitted.target_
    more = "more" if target.comparison == "ratio" else "less"
    return f"{sure}: {target.text(fitted.rate_bound_)} or {more} can be relied on"


def _worth(fitted: Any, model: Any) -> str:
    """Say so if one answer to everybody is as often right, or worth as much."""
    if model.beats_constant_:
        return ""
    label, _, constant = fitted.fitted_.constant
    objective = fitted.fitted_.objective
    than = objective.than(model.value_, constant)
    return f", ✗ {than} than {label} for everybody: {_shown(objective, constant)}"


def _shown(objective: Objective, value: float) -> str:
    """Write the value of an objective."""
    if objective.per == 1:
        return f"{value:.4f}"
    return f"{objective.per * value:,.{objective.digits}f}"


def summary_html(estimator: Any) -> str:
    """Write a short summary of a fitted classifier, with a small frontier.

    Parameters
    ----------
    estimator : FairClassifier, FairBoostedClassifier or Pipeline that ends in one
        Fitted.

    Returns
    -------
    str
        HTML; everything that came from data is escaped.
    """
    steps = [step for _, step in getattr(estimator, "steps", [])]
    model = steps[-1] if steps else estimator
    groups = model.groups_.tolist()
    named = "; ".join(map(str, groups[:4])) + ("; …" if len(groups) > 4 else "")
    inner = getattr(model, "classifier_", model)
    missed = "NOT reached" if inner.guarantee_ is None else "NOT certified"
    mark, words = ("✓", "reached") if model.point_.feasible else ("✗", missed)
    if inner.fitted_.partitions:
        named = f"{'; '.join(by.name for by in inner.fitted_.partitions)}: each by itself"
    targets = _targets(model)
    target = inner.target_
    name = READ[target.comparison][0]
    worst = "worst ratio" if target.comparison == "ratio" else f"largest {name}"
    rate = model.frontier_.rate_name if isinstance(model.notion, str) else worst
    known = model.rate_ == model.rate_
    shown = target.text(model.rate_) if known else "unknown"
    scale = " on the scale of the strictest target" if len(targets) > 1 else ""
    labels, objective = inner.fitted_.favourable, inner.fitted_.objective
    made = ("estimates by", kind_in(getattr(model, "booster_", "")))
    if hasattr(model, "scores_"):
        made = ("adjusted", model.scores_)
    # A number that is not named is a ratio.
    move = ".at(epsilon=…)" if target.comparison == "difference" else ".at(τ)"
    rows = [
        ("favourable answer", " or ".join(labels) + ", each" * (len(labels) > 1)),
        *zip(["target", *[""] * (len(targets) - 1)], targets, strict=True),
        ("", f"{mark} {words} {inner.fitted_.where}{_sure(inner, model)}"),
        (rate, f"{shown} {inner.fitted_.where}{scale}" if known else shown),
        *([("accuracy", f"{model.accuracy_:.4f}")] if objective != ACCURACY else []),
        (objective.words, f"{_shown(objective, model.value_)}{_worth(inner, model)}"),
        ("groups", named),
        *([made] if inner is not model else []),
        ("frontier", f"{len(model.frontier_)} points; {move} moves along it"),
    ]
    if steps:
        rows.insert(0, ("steps", " → ".join(type(step).__name__ for step in steps)))
    cells = "".join(
        f'<tr><td style="opacity:.7;padding:0 12px 0 0;text-align:left">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    use = group_use(estimator)
    note = f'<p style="margin:4px 0;max-width:30em"><strong>{escape(use)}</strong></p>' * bool(use)
    title = escape(type(estimator).__name__)
    return (
        f'<div style="{STYLE}"><div><strong>{title}</strong>{note}'
        f'<table style="border:0;border-collapse:collapse;margin-top:4px">{cells}</table></div>'
        f"{_picture(model)}</div>"
    )


class ShowsSummary:
    """What a notebook shows of an estimator: once it is fitted, figures and a small frontier.

    A mixin, before scikit-learn's classes. Until the fit, and where a pipeline ends in something
    else, it is scikit-learn's box.
    """

    def _has_summary(self: Any) -> bool:
        try:
            check_is_fitted(self)
        except NotFittedError:
            return False
        return hasattr(self[-1] if hasattr(self, "steps") else self, "frontier_")

    def _repr_html_inner(self: Any) -> str:
        return summary_html(self) if self._has_summary() else super()._repr_html_inner()  # type: ignore[misc]

    def _repr_mimebundle_(self: Any, **kwargs: Any) -> dict[str, str]:
        shown: dict[str, str] = super()._repr_mimebundle_(**kwargs)  # type: ignore[misc]
        if "text/html" in shown and self._has_summary():
            shown["text/html"] = summary_html(self)
        return shown
