"""The accuracy–fairness frontier."""

from typing import Any

import numpy as np

from evenhand._extras import import_extra
from evenhand.frontier.points import Frontier
from evenhand.frontier.scores import score_frontier
from evenhand.views.formats import VISIBLE_RATE
from evenhand.views.plots.shared import (
    TAU_LINE,
    Display,
    fitted_classifier,
    new_axes,
    style_axes,
)
from evenhand.views.targets import TARGET_WORDS


class FrontierDisplay(Display):
    """The accuracy–fairness frontier of a fit.

    Parameters
    ----------
    frontier : Frontier
        The points.
    tau : float, optional
        Target to mark, as the level that values reach: of a difference its negative.
    chosen : tuple of (float, float), optional
        Rate, as the frontier has it, and accuracy of the chosen point, or its value by another
        objective that was maximised.
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
        self.data = "training data"

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **kwargs: Any) -> "FrontierDisplay":
        """Draw the frontier of a fitted :class:`~evenhand.FairClassifier`.

        Parameters
        ----------
        estimator : FairClassifier or FairBoostedClassifier
            A fitted classifier, or a Pipeline that ends in one.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the line.
        """
        estimator = fitted_classifier(estimator, cls.__name__)
        objective = estimator.frontier_.objective
        display = cls(
            estimator.frontier_,
            tau=estimator.target_.level,
            chosen=(estimator.point_.rate, float(objective.value(estimator.point_.counts))),
            feasible=estimator.point_.feasible,
        )
        if estimator.held_out_ is not None:  # whose figures the points were chosen by
            display.data = "the rows fitted to"
        display.plot(ax=ax, **kwargs)
        display._own_figure = ax is None
        return display

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_score: Any,
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        pos_label: Any = None,
        notion: str = "statistical_parity",
        tau: float | None = None,
        ax: Any = None,
        **kwargs: Any,
    ) -> "FrontierDisplay":
        """Draw what cuts on any classifier's scores reach, one cut for everybody.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of two values.
        y_score : array-like of shape (n_samples,)
            Scores; higher is more favourable.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.
        pos_label : label, optional
            The favourable label. Needed unless labels are 0/1, -1/1 or booleans.
        notion : str, default="statistical_parity"
            Which rate is compared, a name in :data:`evenhand.core.notions.NOTIONS`.
        tau : float, optional
            Target to mark.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        **kwargs
            For the line.
        """
        frontier = score_frontier(
            y_true,
            y_score,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
            notion=notion,
        )
        display = cls(frontier, tau=tau)
        display.data = "these rows"
        display.plot(ax=ax, label="cuts on these scores", **kwargs)
        display._own_figure = ax is None
        return display

    def plot(self, *, ax: Any = None, **kwargs: Any) -> "FrontierDisplay":
        """Draw on ``ax``, by default on a new figure; ``kwargs`` are for the line."""
        plt = import_extra("matplotlib.pyplot", "plot")
        if self._own_figure:  # from_estimator drew already; this drawing is instead of that one
            plt.close(self.figure_)
            self._own_figure = False
        ax = new_axes((6.4, 4.4)) if ax is None else ax
        cbook = import_extra("matplotlib.cbook", "plot")
        self._draw_points(ax, cbook.normalize_kwargs(kwargs, plt.Line2D))
        words = TARGET_WORDS[self.frontier.comparison]
        if self.tau is not None:
            at = words.sign * self.tau
            ax.axvline(at, **TAU_LINE)
            ax.annotate(
                words.goal(self.tau),
                (at, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                color="0.35",
                ha="center",
            )
        objective = self.frontier.objective
        if self.chosen is not None and np.isfinite(self.chosen).all():
            rate, value = self.chosen
            value *= objective.per
            shown = f"{value:.3f}" if objective.per == 1 else f"{value:,.{objective.digits}f}"
            what = "chosen" if self.feasible else "target not reached"
            rate *= words.sign
            label = f"{what}: {objective.words} {shown}, {self.frontier.rate_name} {rate:.3f}"
            fill = "full" if self.feasible else "none"
            look = {"markersize": 8, "color": "#c8501e", "fillstyle": fill, "zorder": 3}
            ax.plot(rate, value, "o", label=label, **look)
        self._limit_view(ax)
        ax.set_xlabel(f"{self.frontier.rate_name} on {self.data} ({words.parity:g} is parity)")
        if words.sign < 0 and not ax.xaxis_inverted():
            ax.invert_xaxis()  # to the right is fairer, whatever is compared
        ax.set_ylabel(f"{objective.words} on {self.data}")
        style_axes(ax)
        # Opaque, so that the line of τ does not run through its words.
        ax.legend(loc="lower left", framealpha=1, edgecolor="none")
        self.ax_, self.figure_ = ax, ax.figure
        return self

    def _draw_points(self, ax: Any, own_style: dict[str, Any]) -> None:
        """Draw the points as steps, dotted where rates may be chance."""
        front, n, value = self.frontier, self.frontier.n_sure, self._value()
        rate = TARGET_WORDS[front.comparison].sign * front.rate
        # A point answers every target down to the rate of the point before it.
        style = {"drawstyle": "steps-pre", "color": "#1b4b72", "linewidth": 2.0}
        style |= {"label": "frontier of this fit"} | own_style
        (self.line_,) = ax.plot(rate[:n], value[:n], **style)
        if n < len(front):
            loose = style | {"linestyle": ":", "label": "fairer, which may be chance"}
            ax.plot(rate[n:], value[n:], **loose)
        if not len(front):
            self.line_.set_label("no point is eligible")

    def _value(self) -> Any:
        """Give what is drawn of each point: the accuracy, or what else was maximised."""
        return self.frontier.objective.per * self.frontier.value

    def _limit_view(self, ax: Any) -> None:
        """Leave out the last points before parity, unless one was chosen."""
        front = self.frontier
        parity = TARGET_WORDS[front.comparison].parity
        shown = self._value()[front.rate <= parity - 1 + VISIBLE_RATE]
        if not len(shown):
            return
        low, high = shown.min(), shown.max()
        if self.chosen is not None:
            low = np.nanmin([low, front.objective.per * self.chosen[1]])
        # Room for the legend, and a scale on which a percent of accuracy is seen as such.
        shares = front.objective.per == 1
        span = max(high - low, 0.02 if shares else 0.02 * abs(high), 1e-9)
        ends = low - 0.45 * span, high + 0.1 * span
        ax.set_ylim(*(np.clip(ends, 0.0, 1.0) if shares else ends))
