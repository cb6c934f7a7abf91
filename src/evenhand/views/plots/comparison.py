"""The frontiers of several methods."""

from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.targets import READ
from evenhand.views.plots.shared import COLOURS, MARKERS, Display, new_axes, style_axes
from evenhand.views.targets import TARGET_WORDS


class ComparisonDisplay(Display):
    """The frontiers of several methods on test data, as :func:`evenhand.peers.compare` found them.

    A method is a line through its mean points, one for each τ, with a bar of one standard error
    each way. Filled markers are methods that predict without the group; hollow ones on dashed lines
    need it. A method whose rate is undefined is a dotted level of accuracy; one that failed
    everywhere, or lies far below all others, is named in the legend only.

    Parameters
    ----------
    table : DataFrame
        What :func:`evenhand.peers.compare` returned.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from evenhand.views.plots import ComparisonDisplay
    >>> ComparisonDisplay(table).plot()  # doctest: +SKIP
    """

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def plot(self, *, ax: Any = None) -> "ComparisonDisplay":
        """Draw on ``ax``, by default on a new figure."""
        from evenhand.peers import summarize  # import evenhand does without all that this brings

        ax = new_axes((8.6, 4.8)) if ax is None else ax
        means = summarize(self.table)
        comparison = "difference" if "epsilon" in means else "ratio"
        words, measured = TARGET_WORDS[comparison], READ[comparison][0]
        lowest = _view_from(means["accuracy"].dropna().to_numpy())
        for i, (name, part) in enumerate(means.groupby("method", sort=False)):
            self._draw(ax, i, _plain_text(name), part.sort_values(measured), measured, lowest)
        ax.set_ylim(bottom=lowest)
        rate = self.table.attrs.get("rate_name", measured)
        ax.set_xlabel(f"{rate} on test data ({words.parity:g} is parity)")
        if words.sign < 0 and not ax.xaxis_inverted():
            ax.invert_xaxis()  # to the right is fairer, whatever is compared
        ax.set_ylabel("accuracy on test data")
        style_axes(ax)
        splits = self.table["split"].nunique()
        title = f"means of {splits} splits, ± 1 standard error" if splits > 1 else "one split"
        ax.legend(
            frameon=False,
            loc="center left",
            bbox_to_anchor=(1.0, 0.5),
            fontsize="small",
            title=title,
            title_fontsize="small",
            alignment="left",
        )
        self.ax_, self.figure_ = ax, ax.figure
        return self

    @staticmethod
    def _draw(ax: Any, i: int, name: str, part: pd.DataFrame, measured: str, lowest: float) -> None:
        """Draw one method, or name it where it cannot be drawn above ``lowest``."""
        ours, aware = part["key"].iloc[0] == "evenhand", bool(part["needs_group"].iloc[0])
        colour = "black" if ours else COLOURS[i % len(COLOURS)]
        known = part.dropna(subset=[measured, "accuracy"])
        if part["accuracy"].isna().all():
            ax.plot([], [], " ", label=f"{name}: failed")
            return
        best = part["accuracy"].max()
        if best < lowest:
            ax.plot([], [], " ", label=f"{name}: {best:.3f}, below the picture")
            return
        if known.empty:
            ax.axhline(best, color=colour, linestyle=":", label=f"{name} (no rate)")
            return
        ax.errorbar(
            known[measured],
            known["accuracy"],
            xerr=known[f"{measured}_se"].fillna(0.0),
            yerr=known["accuracy_se"].fillna(0.0),
            marker="o" if ours else MARKERS[i % len(MARKERS)],
            markersize=6 if ours else 5,
            markerfacecolor="white" if aware else colour,
            color=colour,
            linestyle="--" if aware else "-",
            linewidth=2.2 if ours else 1.1,
            elinewidth=0.8,
            capsize=0,
            zorder=3 if ours else 2,
            label=name + " (needs the group)" * aware,
        )


def _view_from(accuracies: Any) -> float:
    """Where a picture begins so that one bad answer does not flatten all the others."""
    if not len(accuracies):
        return 0.0
    low, high = np.quantile(accuracies, [0.25, 0.75])
    span = max(high - low, 0.01)
    return float(max(accuracies.min() - 0.25 * span, low - 3 * span))


def _plain_text(name: Any) -> str:
    """Keep matplotlib from reading a name as mathematics or as private."""
    text = str(name).replace("$", r"\$")
    return f" {text}" if text.startswith("_") else text  # matplotlib hides labels that begin so
