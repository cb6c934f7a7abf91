"""Lines with bands, which differ in dashes and markers as well as in colour."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from evenhand._extras import import_extra
from evenhand.paper.experiments.lab import PANELS

STYLES: dict[str, dict[str, Any]] = {
    "AGD modified": {"color": "black", "linestyle": "-", "marker": "o"},
    "AGD modified, τ = 0.8": {"color": "#56B4E9", "linestyle": "-", "marker": "D"},
    "AGD modified, τ = 0.9": {"color": "black", "linestyle": "-", "marker": "o"},
    "NGD modified": {"color": "#0072B2", "linestyle": "--", "marker": "s"},
    "AGD normal": {"color": "#D55E00", "linestyle": "-.", "marker": "^"},
    "NGD normal": {"color": "#7F7F7F", "linestyle": ":", "marker": "v"},
    "accuracy only": {"color": "#009E73", "linestyle": "--", "marker": "P"},
    "fairness only": {"color": "#CC79A7", "linestyle": ":", "marker": "X"},
    "evenhand's defaults, τ = 0.9": {"color": "#56B4E9", "linestyle": "-", "marker": "*"},
    "Zafar": {"color": "#009E73", "linestyle": "--", "marker": "s"},
    "Zhang": {"color": "#E69F00", "linestyle": "-.", "marker": "^"},
    "Zhang, equalised odds": {"color": "#CC79A7", "linestyle": ":", "marker": "v"},
    "Zhang, as shipped": {"color": "#D55E00", "linestyle": "-.", "marker": "x"},
    "Celis": {"color": "#0072B2", "linestyle": "--", "marker": "D"},
    "Celis, as shipped": {"color": "#7F7F7F", "linestyle": "--", "marker": "P"},
    "adversary and regulariser": {"color": "black", "linestyle": "-", "marker": "o"},
    "adversary alone": {"color": "#D55E00", "linestyle": "--", "marker": "^"},
    "normal": {"color": "#D55E00", "linestyle": "-.", "marker": "^"},
    "modified": {"color": "black", "linestyle": "-", "marker": "o"},
}
"""How each line is drawn: colour, dashes and marker differ."""

# Bands end where values do.
LIMITS = {"rate": (0.0, 1.0), "accuracy": (0.0, 1.0), "cosine": (-1.0, 1.0)}


def grid(rows: Sequence[str], columns: Sequence[str], *, width: float = 3.6) -> tuple[Any, Any]:
    """Axes with a y label for each row and a title for each column."""
    plt = import_extra("matplotlib.pyplot", "plot")
    figure, axes = plt.subplots(
        len(rows),
        len(columns),
        figsize=(width * len(columns) + 0.6, 2.5 * len(rows) + 0.9),
        sharex=True,
        sharey="row",
        squeeze=False,
        layout="constrained",
    )
    for ax, name in zip(axes[0], columns, strict=True):
        ax.set_title(name, fontsize="medium")
    for line, name in zip(axes, rows, strict=True):
        line[0].set_ylabel(name)
        for ax in line:
            ax.grid(alpha=0.25)
            ax.spines[["top", "right"]].set_visible(False)
    return figure, axes


def lines(
    ax: Any,
    table: pd.DataFrame,
    x: str,
    y: str,
    by: str,
    *,
    styles: Mapping[str, Mapping[str, Any]] = STYLES,
    every: int = 1,
) -> None:
    """Mean of ``y`` over the seeds against ``x``, a line for each value of ``by``, ± one sd.

    A mean is over the seeds at which the value is defined; where it never is, the line has a gap.
    """
    for name, part in table.groupby(by, sort=False):
        groups = part.groupby(x)[y]
        mean, spread = groups.mean(), groups.std(ddof=0).fillna(0.0)
        style = dict(styles.get(str(name), {}))
        ax.plot(
            mean.index,
            mean,
            label=str(name),
            linewidth=1.5,
            markersize=4.5,
            markevery=every,
            **style,
        )
        low, high = LIMITS.get(y, (-np.inf, np.inf))
        ax.fill_between(
            np.asarray(mean.index, dtype=float),
            (mean - spread).clip(low, high),
            (mean + spread).clip(low, high),
            color=style.get("color"),
            alpha=0.15,
            linewidth=0,
        )


def legend(figure: Any, axes: Any, ncols: int = 5) -> None:
    """One legend below all axes."""
    handles: dict[str, Any] = {}
    for ax in np.ravel(axes):
        for handle, label in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(label, handle)
    figure.legend(
        handles.values(),
        handles.keys(),
        loc="outside lower center",
        ncols=min(len(handles), ncols),
        frameon=False,
        fontsize="small",
    )


def _mark_missing(ax: Any, table: pd.DataFrame) -> None:
    """Name the runs without a rate: a cross at the foot for each method and correlation."""
    names = list(dict.fromkeys(table["name"]))
    width = 0.004
    for i, name in enumerate(names):
        rows = table[table["name"] == name]
        share = rows["rate"].isna().groupby(rows["rho"]).mean()
        share = share[share > 0]
        if not share.empty:
            ax.plot(
                share.index + width * (i - (len(names) - 1) / 2),
                np.full(len(share), 0.03),
                linestyle="",
                marker="x",
                markersize=6,
                markeredgewidth=1.6,
                color=STYLES[name]["color"],
                label=f"{name}: runs without a rate",
                zorder=4,
            )


def draw_panels(
    table: pd.DataFrame,
    rows: Mapping[str, tuple[str, Mapping[str, Any]]],
    x: str,
    label: str,
    *,
    ncols: int = 5,
    **style: Any,
) -> tuple[Any, Any]:
    """Draw a column of axes for each reading; ``rows`` are a column and where, by their labels."""
    figure, axes = grid(list(rows), list(PANELS))
    for line, (what, where) in zip(axes, rows.values(), strict=True):
        part = table
        for column, value in where.items():
            part = part[part[column] == value]
        for ax, variant in zip(line, PANELS.values(), strict=True):
            lines(ax, variant.rows(part), x, what, "name", **style)
            if what == "rate":
                ax.set_ylim(0, 1.02)
    for ax in axes[-1]:
        ax.set_xlabel(label)
    legend(figure, axes, ncols)
    return figure, axes


def draw_each(
    table: pd.DataFrame, data: Mapping[float, str], part: str, x: str, label: str, **style: Any
) -> Any:
    """Draw accuracy and rate on the training or the test part of each dataset."""
    rows = {
        f"{name}\n{part} {what}": (what, {"rho": rho})
        for rho, name in data.items()
        for what in ("accuracy", "rate")
    }
    return draw_panels(table, rows, x, label, **style)[0]


TESTED = {"test accuracy": "accuracy", "test statistical rate": "rate"}


def draw_over_rho(
    table: pd.DataFrame,
    rows: Mapping[str, str] = TESTED,
    *,
    zero: bool = False,
    missing: bool = False,
) -> Any:
    """Draw columns of the table, by their labels, over the correlation.

    ``zero``: with a line at 0. ``missing``: runs without a rate are marked in the second row.
    """
    over: Any = {label: (what, {}) for label, what in rows.items()}
    figure, axes = draw_panels(table, over, "rho", "correlation of label and group", ncols=4)
    for j, variant in enumerate(PANELS.values()):
        for ax in axes[:, j] if zero else ():
            ax.axhline(0, color="0.5", linewidth=0.8)
        if missing:
            _mark_missing(axes[1][j], variant.rows(table))
    if missing:
        figure.legends[0].remove()
        legend(figure, axes, 4)
    return figure
