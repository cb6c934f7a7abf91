"""Pictures in the manner of scikit-learn's Display objects (extra ``plot``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand._versions import import_extra
from evenhand.frontier import Frontier
from evenhand.notions import NOTIONS

__all__ = ["FrontierDisplay"]


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
    rate_name : str, default="rate"
        What the rate is called on the axis.

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

    def __init__(
        self,
        frontier: Frontier,
        *,
        tau: float | None = None,
        chosen: tuple[float, float] | None = None,
        rate_name: str = "rate",
    ) -> None:
        self.frontier = frontier
        self.tau = tau
        self.chosen = chosen
        self.rate_name = rate_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> FrontierDisplay:
        """Draw the frontier of a fitted :class:`~evenhand.FairClassifier`.

        Parameters
        ----------
        estimator : FairClassifier
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
        check_is_fitted(estimator)
        display = cls(
            estimator.frontier_,
            tau=estimator.tau,
            chosen=(estimator.rate_, estimator.accuracy_),
            rate_name=NOTIONS[estimator.notion](estimator.degree).rate.ratio_name,
        )
        return display.plot(ax=ax, **kwargs)

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
        if ax is None:
            _, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
        front = self.frontier
        style = {"color": "#1b4b72", "linewidth": 2.0, "label": "frontier of this fit"} | kwargs
        # A point answers every target down to the rate of the point before it.
        (self.line_,) = ax.plot(front.rate, front.accuracy, drawstyle="steps-pre", **style)
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
            label = f"chosen: accuracy {accuracy:.3f}, rate {rate:.3f}"
            ax.plot(rate, accuracy, "o", markersize=8, color="#c8501e", label=label, zorder=3)
        self._limit_view(ax)
        ax.set_xlabel(f"{self.rate_name} on training data (1 is parity)")
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
