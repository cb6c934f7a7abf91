"""What happened in a fit, iteration by iteration."""

from collections.abc import Iterable
from typing import Any

import numpy as np
import pandas as pd

from evenhand.core.errors import InputError
from evenhand.core.metrics import group_counts
from evenhand.core.notions import find_notion
from evenhand.core.rates import overall_accuracy
from evenhand.core.targets import READ, Target
from evenhand.views.plots.shared import (
    COLOURS,
    TAU_LINE,
    Display,
    check_one_kind,
    fitted_classifier,
    new_axes,
    style_axes,
)


class TrajectoryDisplay(Display):
    """What happened in a fit: losses, accuracy and rate, iteration by iteration.

    The groups' rates are compared as the target compares them: by their ratio, the largest
    difference between them, or, where targets of both kinds are demanded, the largest shortfall.

    Parameters
    ----------
    frame : DataFrame
        What ``trajectory_.to_frame()`` gave, or any table with a column ``accuracy`` and one of
        ``difference``, ``shortfall`` and ``rate``, the first of which is drawn.
    tau, epsilon : float, optional
        Target to mark, of a ratio or of a difference; not both.
    rate_name : str, default="rate"
        What is compared, in words.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of two
        Accuracy and rate; with two, the losses above them.
    figure_ : matplotlib Figure
        Where it was drawn.

    Examples
    --------
    >>> from evenhand.views.plots import TrajectoryDisplay
    >>> TrajectoryDisplay.from_estimator(model)  # doctest: +SKIP
    """

    def __init__(
        self,
        frame: pd.DataFrame,
        *,
        tau: float | None = None,
        epsilon: float | None = None,
        rate_name: str = "rate",
    ) -> None:
        check_one_kind(tau, epsilon)
        self.frame = frame
        self.tau = tau
        self.epsilon = epsilon
        self.rate_name = rate_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> "TrajectoryDisplay":
        """Draw the run of a fitted :class:`~evenhand.FairClassifier`.

        Parameters
        ----------
        estimator : FairClassifier
            A fitted classifier, or a Pipeline that ends in one.
        ax : matplotlib Axes, or two of them, optional
            As of :meth:`plot`.
        """
        model = fitted_classifier(estimator, cls.__name__)
        target, frame = model.target_, model.trajectory_.to_frame()
        name, sign = READ[target.comparison]
        frame[name] = model.trajectory_.values(target)
        goal = {"rate": "tau", "difference": "epsilon"}.get(name)  # a mixed target is not one level
        level = {} if goal is None else {goal: sign * target.level}
        return cls(frame, rate_name=target.name, **level).plot(ax=ax)

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_preds: Iterable[Any],
        *,
        sensitive_features: Any,
        sample_weight: Any = None,
        pos_label: Any = None,
        notion: str = "statistical_parity",
        tau: float | None = None,
        epsilon: float | None = None,
        ax: Any = None,
    ) -> "TrajectoryDisplay":
        """Draw accuracy and rate of any classifier's predictions, stage by stage.

        Parameters
        ----------
        y_preds : iterable of array-like of shape (n_samples,)
            Predictions of each stage, such as ``staged_predict`` gives.
        epsilon : float, optional
            Target to mark; differences are drawn then, in place of ratios.
        y_true, sensitive_features, sample_weight, pos_label, notion, tau, ax
            As of :meth:`evenhand.FrontierDisplay.from_predictions`.
        """
        rate = find_notion(notion).rate
        target = Target(rate, 0.0, "ratio" if epsilon is None else "difference")
        facts = {"sensitive_features": sensitive_features, "sample_weight": sample_weight}
        counts = [
            group_counts(y_true, predicted, pos_label=pos_label, **facts)[1]
            for predicted in y_preds
        ]
        if not counts:
            raise InputError("no_stages")
        stacked = np.stack(counts)
        name, sign = READ[target.comparison]
        measured = {"accuracy": overall_accuracy(stacked), name: sign * target.value(stacked)}
        goals = {"tau": tau, "epsilon": epsilon}
        return cls(pd.DataFrame(measured), rate_name=target.name, **goals).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "TrajectoryDisplay":
        """Draw accuracy and rate on one ``ax``; on two, the losses above them.

        By default it is a new figure, with two if losses are known.
        """
        losses = "loss_c" in self.frame
        # Beside the curves, which are everywhere; a stranger's figure may have no room there.
        legend: dict[str, Any] = {"loc": "best", "edgecolor": "none"}
        if ax is None:
            legend = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
            ax = new_axes((8.0, 5.0), 2) if losses else new_axes((8.0, 3.2))
        axes = list(np.atleast_1d(ax))
        if len(axes) > 1 + losses:
            most = "two" if losses else "one: without a fit no losses are known"
            raise InputError("too_many_axes", n=len(axes), most=most)
        if len(axes) == 2:
            self._draw(axes[0], self.frame["loss_c"], 0, "classification loss")
            if "leg" not in self.frame or self.frame["leg"].ne("optimum").any():
                self._draw(axes[0], -self.frame["loss_u"], 1, "adversary's loss")
            axes[0].set_ylabel("loss")
        self._draw_rates(axes[-1])
        for ax in axes:
            style_axes(ax)
            ax.legend(**legend)
        self._mark_legs(axes)
        self.ax_ = np.array(axes) if len(axes) == 2 else axes[0]
        self.figure_ = axes[0].figure
        return self

    def _draw(self, ax: Any, column: pd.Series, colour: int, label: str) -> None:
        steps = np.arange(1, len(column) + 1)
        marker = "o" if len(steps) == 1 else None
        ax.plot(steps, column, color=COLOURS[colour], label=label, marker=marker)

    def _draw_rates(self, ax: Any) -> None:
        self._draw(ax, self.frame["accuracy"], 0, "accuracy")
        compared = next(c for c in ("difference", "shortfall", "rate") if c in self.frame)
        self._draw(ax, self.frame[compared], 5, self.rate_name)
        for symbol, level in (("τ", self.tau), ("ε", self.epsilon)):
            if level is not None:
                ax.axhline(level, label=f"{symbol} = {level:g}", **TAU_LINE)
        ax.set_ylim(0, 1.02)
        ax.set_xlabel("iteration")

    def _mark_legs(self, axes: list[Any]) -> None:
        """Say where each part of the run began, a line higher each so that no two overlap."""
        if "leg" not in self.frame:
            return
        leg = self.frame["leg"]
        starts = np.flatnonzero(leg.ne(leg.shift())) + 1
        for k, start in enumerate(starts):
            for ax in axes if k else ():
                ax.axvline(start, color="0.8", linewidth=1, zorder=0)
            name = leg.iloc[start - 1]
            axes[0].annotate(
                "plain optimum" if name == "optimum" else f"fair, {name}",
                (start, 1.0), xycoords=("data", "axes fraction"), fontsize="small",
                xytext=(0, 3 + 11 * (len(starts) - 1 - k)), textcoords="offset points",
                color="0.35",
            )  # fmt: skip
