"""Pictures in the manner of scikit-learn's Display objects (extra ``plot``)."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand._versions import import_extra
from evenhand.classifier import FairClassifier
from evenhand.frontier import Frontier

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
        if not isinstance(estimator, FairClassifier):
            raise TypeError(
                "FrontierDisplay needs a FairClassifier or a Pipeline that ends in one, not a "
                f"{type(estimator).__name__}; of a search, take best_estimator_."
            )
        check_is_fitted(estimator)
        display = cls(
            estimator.frontier_,
            tau=estimator.tau,
            chosen=(estimator.rate_, estimator.accuracy_),
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
        (self.line_,) = ax.plot(front.rate, front.accuracy, **style)
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
