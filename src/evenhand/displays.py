"""Pictures in the manner of scikit-learn's Display objects (extra ``plot``)."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from sklearn.utils.validation import check_is_fitted

from evenhand._versions import import_extra
from evenhand.boosted import FairBoostedClassifier
from evenhand.classifier import FairClassifier
from evenhand.frontier import Frontier

__all__ = ["ComparisonDisplay", "FrontierDisplay"]


class FrontierDisplay:
    """The accuracy–fairness frontier of a fit.

    Parameters
    ----------
    frontier : Frontier
        The points.
    tau : float, optional
        Target to mark.
    chosen : tuple of (float, float), optional
        Rate and accuracy of the chosen point.
    feasible : bool, default=True
        Whether the chosen point reaches the target.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    line_ : matplotlib Line2D
        The frontier.

    Examples
    --------
    >>> from evenhand import FrontierDisplay
    >>> FrontierDisplay.from_estimator(model).plot()  # doctest: +SKIP
    """

    _own_figure = False
    figure_: Any

    def __init__(
        self,
        frontier: Frontier,
        *,
        tau: float | None = None,
        chosen: tuple[float, float] | None = None,
        feasible: bool = True,
    ) -> None:
        self.frontier = frontier
        self.tau = tau
        self.chosen = chosen
        self.feasible = feasible

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> FrontierDisplay:
        """Draw the frontier of a fitted :class:`~evenhand.FairClassifier`.

        Parameters
        ----------
        estimator : FairClassifier or FairBoostedClassifier
            A fitted classifier, or a Pipeline that ends in one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the line.

        Returns
        -------
        FrontierDisplay
            The display, drawn.
        """
        estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
        if not isinstance(estimator, FairClassifier | FairBoostedClassifier):
            raise TypeError(
                "FrontierDisplay needs a FairClassifier or a Pipeline that ends in one, not a "
                f"{type(estimator).__name__}; of a search, take best_estimator_."
            )
        check_is_fitted(estimator)
        display = cls(
            estimator.frontier_,
            tau=float(np.max(estimator.tau)),
            chosen=(estimator.point_.rate, estimator.point_.accuracy),
            feasible=estimator.feasible_,
        ).plot(ax=ax, **kwargs)
        display._own_figure = ax is None
        return display

    def plot(self, *, ax: Any = None, **kwargs: Any) -> FrontierDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the line.

        Returns
        -------
        FrontierDisplay
            Itself.
        """
        plt = import_extra("matplotlib.pyplot", "plot")
        if self._own_figure:  # from_estimator drew already; this drawing is instead of that one
            plt.close(self.figure_)
            self._own_figure = False
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
        front = self.frontier
        # A point answers every target down to the rate of the point before it.
        style = {"drawstyle": "steps-pre", "color": "#1b4b72", "linewidth": 2.0}
        style |= {"label": "frontier of this fit"}
        style |= import_extra("matplotlib.cbook", "plot").normalize_kwargs(kwargs, plt.Line2D)
        n = front.n_sure
        (self.line_,) = ax.plot(front.rate[:n], front.accuracy[:n], **style)
        if n < len(front):
            loose = style | {"linestyle": ":", "label": "rates that may be luck"}
            ax.plot(front.rate[n:], front.accuracy[n:], **loose)
        if not len(front):
            self.line_.set_label("no point is eligible")
        if self.tau is not None:
            ax.axvline(self.tau, color="0.45", linestyle="--", linewidth=1)
            ax.annotate(
                f"τ = {self.tau:g}",
                (self.tau, 0.02),
                xycoords=("data", "axes fraction"),
                xytext=(-5, 0),
                textcoords="offset points",
                color="0.35",
                ha="right",
            )
        if self.chosen is not None and np.isfinite(self.chosen).all():
            rate, accuracy = self.chosen
            what = "chosen" if self.feasible else "target not reached"
            label = f"{what}: accuracy {accuracy:.3f}, rate {rate:.3f}"
            fill = "full" if self.feasible else "none"
            look = {"markersize": 8, "color": "#c8501e", "fillstyle": fill, "zorder": 3}
            ax.plot(rate, accuracy, "o", label=label, **look)
        self._limit_view(ax)
        ax.set_xlabel(f"{front.rate_name} on training data (1 is parity)")
        ax.set_ylabel("accuracy on training data")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, loc="lower left")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _limit_view(self, ax: Any) -> None:
        """Leave out the last hair of rate, which may cost all accuracy, unless it was chosen."""
        front = self.frontier
        shown = front.accuracy[front.rate <= 0.995]
        if not len(shown):
            return
        low, high = shown.min(), shown.max()
        if self.chosen is not None:
            low = np.nanmin([low, self.chosen[1]])
        # Room for the legend, and a scale on which a percent of accuracy is seen as such.
        span = max(high - low, 0.02)
        ax.set_ylim(max(low - 0.45 * span, 0.0), min(high + 0.1 * span, 1.0))


# Okabe and Ito's colours, told apart by all eyes; the markers do without colour.
_COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F")
_MARKERS = "sD^v<>Phdp*X"


class ComparisonDisplay:
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
    >>> from evenhand import ComparisonDisplay
    >>> ComparisonDisplay(table).plot()  # doctest: +SKIP
    """

    figure_: Any

    def __init__(self, table: pd.DataFrame) -> None:
        self.table = table

    def plot(self, *, ax: Any = None) -> ComparisonDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        ComparisonDisplay
            Itself.
        """
        from evenhand.peers import summarize  # import evenhand does without all that this brings

        plt = import_extra("matplotlib.pyplot", "plot")
        if ax is None:
            _, ax = plt.subplots(figsize=(8.6, 4.8), layout="constrained")
        means = summarize(self.table)
        lowest = _view_from(means["accuracy"].dropna().to_numpy())
        for i, (name, part) in enumerate(means.groupby("method", sort=False)):
            self._draw(ax, i, _plain_text(name), part.sort_values("rate"), lowest)
        ax.set_ylim(bottom=lowest)
        ax.set_xlabel(f"{self.table.attrs.get('rate_name', 'rate')} on test data (1 is parity)")
        ax.set_ylabel("accuracy on test data")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
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
    def _draw(ax: Any, i: int, name: str, part: pd.DataFrame, lowest: float) -> None:
        """Draw one method, or name it where it cannot be drawn above ``lowest``."""
        ours, aware = part["key"].iloc[0] == "evenhand", bool(part["needs_group"].iloc[0])
        colour = "black" if ours else _COLOURS[i % len(_COLOURS)]
        known = part.dropna(subset=["rate", "accuracy"])
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
            known["rate"],
            known["accuracy"],
            xerr=known["rate_se"].fillna(0.0),
            yerr=known["accuracy_se"].fillna(0.0),
            marker="o" if ours else _MARKERS[i % len(_MARKERS)],
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
