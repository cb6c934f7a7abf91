"""A fitted classifier at a glance, for notebooks: a few figures and a small frontier."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from evenhand.rates import rate_text

__all__ = ["summary_html"]

WIDTH, HEIGHT, MARGIN = 280, 120, 14
STYLE = (
    "font-family:system-ui,sans-serif;font-size:13px;line-height:1.45;display:inline-flex;gap:20px;"
    "align-items:center;flex-wrap:wrap;border:1px solid #8886;border-radius:8px;padding:12px 16px"
)


def _picture(model: Any) -> str:
    """Draw the frontier: accuracy against rate, the target, the chosen point."""
    front, point = model.frontier_, model.point_
    if not len(front):
        return ""
    rate, accuracy = np.append(front.rate, point.rate), np.append(front.accuracy, point.accuracy)
    # The last hair of rate may cost all accuracy; it is left out unless it was chosen.
    shown = accuracy[(rate <= 0.995) | (np.arange(len(rate)) == len(rate) - 1)]
    low, high = float(shown.min()), float(accuracy.max())
    left = min(float(np.nanmin(rate)), float(np.max(model.tau)))

    def place(r: float, a: float) -> tuple[float, float]:
        x = MARGIN + (WIDTH - 2 * MARGIN) * (r - left) / max(1 - left, 1e-9)
        share = max(a - low, 0.0) / max(high - low, 1e-9)
        y = HEIGHT - MARGIN - (HEIGHT - 2 * MARGIN) * share
        return round(x, 1), round(y, 1)

    steps = [place(r, a) for r, a in zip(front.rate, front.accuracy, strict=True)]
    line = " ".join(f"{x},{y}" for x, y in steps)
    target = place(float(np.max(model.tau)), low)[0]
    x, y = place(point.rate if point.rate == point.rate else left, point.accuracy)
    fill = "#c8501e" if point.feasible else "none"
    return (
        f'<svg width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" '
        f'aria-label="frontier: accuracy from {high:.3f} to {low:.3f} as the rate rises to 1">'
        f'<line x1="{target}" x2="{target}" y1="{MARGIN / 2}" y2="{HEIGHT - MARGIN}" '
        'stroke="currentColor" stroke-dasharray="3 3" opacity=".5"/>'
        f'<polyline points="{line}" fill="none" stroke="#2f7fb8" stroke-width="2"/>'
        f'<circle cx="{x}" cy="{y}" r="4.5" fill="{fill}" stroke="#c8501e" stroke-width="2"/>'
        f'<text x="{WIDTH - MARGIN}" y="{HEIGHT - 1}" font-size="10" text-anchor="end" '
        'fill="currentColor" opacity=".7">rate → 1</text>'
        f'<text x="{MARGIN}" y="10" font-size="10" fill="currentColor" opacity=".7">accuracy ↑'
        "</text></svg>"
    )


def summary_html(model: Any) -> str:
    """Write a short summary of a fitted classifier, with a small frontier.

    Parameters
    ----------
    model : FairClassifier
        Fitted.

    Returns
    -------
    str
        HTML; everything that came from data is escaped.
    """
    notion = model.notion if isinstance(model.notion, str) else " and ".join(model.notion)
    groups = model.groups_.tolist()
    named = ", ".join(map(str, groups[:4])) + (", …" if len(groups) > 4 else "")
    mark, words = ("✓", "reached") if model.feasible_ else ("✗", "NOT reached")
    rows = [
        ("target", f"τ = {np.max(model.tau):g}, {notion.replace('_', ' ')}"),
        ("", f"{mark} {words} {model._where}"),
        (model.frontier_.rate_name, rate_text(model.rate_, float(np.max(model.tau)))),
        ("accuracy", f"{model.accuracy_:.4f}"),
        ("groups", named),
        ("frontier", f"{len(model.frontier_)} points; .at(τ) moves along it"),
    ]
    cells = "".join(
        f'<tr><td style="opacity:.7;padding:0 12px 0 0;text-align:left">{escape(name)}</td>'
        f'<td style="text-align:left">{escape(value)}</td></tr>'
        for name, value in rows
    )
    title = escape(type(model).__name__)
    return (
        f'<div style="{STYLE}"><div><strong>{title}</strong>'
        f'<table style="border:0;border-collapse:collapse;margin-top:4px">{cells}</table></div>'
        f"{_picture(model)}</div>"
    )
