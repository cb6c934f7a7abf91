"""Pictures in the manner of scikit-learn's Display objects (extra ``plot``)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evenhand._extras import import_extra
from evenhand.core.metrics import group_counts
from evenhand.core.notions import find_notion
from evenhand.core.rates import RATES, overall_accuracy, rate_text, wilson_interval
from evenhand.frontier.points import Frontier
from evenhand.frontier.sweep import score_frontier
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.classifier import FairClassifier

__all__ = ["ComparisonDisplay", "FrontierDisplay", "GroupRatesDisplay", "TrajectoryDisplay"]


def _classifier(estimator: Any, display: str) -> Any:
    """Give the fitted classifier, or the one that a pipeline ends in."""
    estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
    if not isinstance(estimator, FairClassifier | FairBoostedClassifier):
        raise TypeError(
            f"{display} needs a FairClassifier or a Pipeline that ends in one, not a "
            f"{type(estimator).__name__}; of a search, take best_estimator_."
        )
    check_is_fitted(estimator)
    return estimator


def _favourable(estimator: Any) -> Any:
    """Give the label that a fitted classifier takes for the favourable one, if it has one."""
    own = getattr(estimator, "pos_label", None)
    classes: Any = getattr(estimator, "classes_", ())
    return classes[1] if own is None and len(classes) == 2 else own


def _axes(ax: Any, size: tuple[float, float] = (6.4, 4.4)) -> Any:
    """Give axes to draw on, new ones if there are none."""
    if ax is not None:
        return ax
    plt = import_extra("matplotlib.pyplot", "plot")
    return plt.subplots(figsize=size, layout="constrained")[1]


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
        self.data = "training data"

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
        estimator = _classifier(estimator, cls.__name__)
        display = cls(
            estimator.frontier_,
            tau=float(np.max(estimator.tau)),
            chosen=(estimator.point_.rate, estimator.point_.accuracy),
            feasible=estimator.feasible_,
        ).plot(ax=ax, **kwargs)
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
    ) -> FrontierDisplay:
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

        Returns
        -------
        FrontierDisplay
            The display, drawn.
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
                (self.tau, 1.0),
                xycoords=("data", "axes fraction"),
                xytext=(0, 3),
                textcoords="offset points",
                color="0.35",
                ha="center",
            )
        if self.chosen is not None and np.isfinite(self.chosen).all():
            rate, accuracy = self.chosen
            what = "chosen" if self.feasible else "target not reached"
            label = f"{what}: accuracy {accuracy:.3f}, rate {rate:.3f}"
            fill = "full" if self.feasible else "none"
            look = {"markersize": 8, "color": "#c8501e", "fillstyle": fill, "zorder": 3}
            ax.plot(rate, accuracy, "o", label=label, **look)
        self._limit_view(ax)
        ax.set_xlabel(f"{front.rate_name} on {self.data} (1 is parity)")
        ax.set_ylabel(f"accuracy on {self.data}")
        ax.grid(alpha=0.25)
        ax.spines[["top", "right"]].set_visible(False)
        # Opaque, so that the line of τ does not run through its words.
        ax.legend(loc="lower left", framealpha=1, edgecolor="none")
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


class TrajectoryDisplay:
    """What happened in a fit: losses, accuracy and rate, iteration by iteration.

    Parameters
    ----------
    frame : DataFrame
        What ``trajectory_.to_frame()`` gave, or any table with columns ``accuracy`` and ``rate``.
    tau : float, optional
        Target to mark.
    rate_name : str, default="rate"
        What the rate is, in words.

    Attributes
    ----------
    ax_ : matplotlib Axes, or ndarray of two
        Accuracy and rate; with two, the losses above them.
    figure_ : matplotlib Figure
        Where it was drawn.

    Examples
    --------
    >>> from evenhand import TrajectoryDisplay
    >>> TrajectoryDisplay.from_estimator(model)  # doctest: +SKIP
    """

    figure_: Any

    def __init__(
        self, frame: pd.DataFrame, *, tau: float | None = None, rate_name: str = "rate"
    ) -> None:
        self.frame = frame
        self.tau = tau
        self.rate_name = rate_name

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None) -> TrajectoryDisplay:
        """Draw the run of a fitted :class:`~evenhand.FairClassifier`.

        Parameters
        ----------
        estimator : FairClassifier
            A fitted classifier, or a Pipeline that ends in one.
        ax : matplotlib Axes, or two of them, optional
            Where to draw: accuracy and rate on one, losses above them on two. By default a new
            figure with two.

        Returns
        -------
        TrajectoryDisplay
            The display, drawn.
        """
        model = _classifier(estimator, cls.__name__)
        frame = model.trajectory_.to_frame()
        tau = float(np.max(model.tau))
        return cls(frame, tau=tau, rate_name=model.frontier_.rate_name).plot(ax=ax)

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
        ax: Any = None,
    ) -> TrajectoryDisplay:
        """Draw accuracy and rate of any classifier's predictions, stage by stage.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of two values.
        y_preds : iterable of array-like of shape (n_samples,)
            Predictions of each stage, such as ``staged_predict`` gives.
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

        Returns
        -------
        TrajectoryDisplay
            The display, drawn.
        """
        rate = find_notion(notion).rate
        counts = [
            group_counts(
                y_true,
                predicted,
                sensitive_features=sensitive_features,
                sample_weight=sample_weight,
                pos_label=pos_label,
            )[1]
            for predicted in y_preds
        ]
        if not counts:
            raise ValueError("y_preds is empty; give the predictions of at least one stage.")
        stacked = np.stack(counts)
        measured = {"accuracy": overall_accuracy(stacked), "rate": rate.ratio(stacked)}
        return cls(pd.DataFrame(measured), tau=tau, rate_name=rate.ratio_name).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> TrajectoryDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, or two of them, optional
            Where to draw: accuracy and rate on one, losses above them on two. By default a new
            figure, with two if losses are known.

        Returns
        -------
        TrajectoryDisplay
            Itself.
        """
        losses = "loss_c" in self.frame
        # Beside the curves, which are everywhere; a stranger's figure may have no room there.
        legend: dict[str, Any] = {"loc": "best", "edgecolor": "none"}
        if ax is None:
            legend = {"loc": "center left", "bbox_to_anchor": (1.0, 0.5), "frameon": False}
            plt = import_extra("matplotlib.pyplot", "plot")
            n, size = (2, (8.0, 5.0)) if losses else (1, (8.0, 3.2))
            ax = plt.subplots(n, 1, sharex=True, figsize=size, layout="constrained")[1]
        axes = list(np.atleast_1d(ax))
        if len(axes) > 1 + losses:
            known = "two" if losses else "one: without a fit no losses are known"
            raise ValueError(f"ax has {len(axes)} Axes; give {known}.")
        if len(axes) == 2:
            self._draw_losses(axes[0])
        self._draw_rates(axes[-1])
        for each in axes:
            each.grid(alpha=0.25)
            each.spines[["top", "right"]].set_visible(False)
            each.legend(**legend)
        self._mark_legs(axes)
        self.ax_ = np.array(axes) if len(axes) == 2 else axes[0]
        self.figure_ = axes[0].figure
        return self

    def _steps(self) -> NDArray[np.intp]:
        return np.arange(1, len(self.frame) + 1)

    def _draw_losses(self, ax: Any) -> None:
        ax.plot(self._steps(), self.frame["loss_c"], color=_COLOURS[0], label="classification loss")
        ax.plot(self._steps(), -self.frame["loss_u"], color=_COLOURS[1], label="adversary's loss")
        ax.set_ylabel("loss")

    def _draw_rates(self, ax: Any) -> None:
        marker = "o" if len(self.frame) == 1 else None
        for name, colour, label in (
            ("accuracy", _COLOURS[0], "accuracy"),
            ("rate", _COLOURS[5], self.rate_name),
        ):
            ax.plot(self._steps(), self.frame[name], color=colour, label=label, marker=marker)
        if self.tau is not None:
            look = {"color": "0.45", "linestyle": "--", "linewidth": 1}
            ax.axhline(self.tau, label=f"τ = {self.tau:g}", **look)
        ax.set_ylim(0, 1.02)
        ax.set_xlabel("iteration")

    def _mark_legs(self, axes: list[Any]) -> None:
        """Say where each part of the run began, a line higher each so that no two overlap."""
        if "leg" not in self.frame:
            return
        leg = self.frame["leg"]
        starts = np.flatnonzero(leg.ne(leg.shift())) + 1
        for k, start in enumerate(starts):
            for each in axes if k else ():
                each.axvline(start, color="0.8", linewidth=1, zorder=0)
            name = leg.iloc[start - 1]
            axes[0].annotate(
                "plain optimum" if name == "optimum" else f"fair, {name}",
                (start, 1.0), xycoords=("data", "axes fraction"), fontsize="small",
                xytext=(0, 3 + 11 * (len(starts) - 1 - k)), textcoords="offset points",
                color="0.35",
            )  # fmt: skip


class GroupRatesDisplay:
    """A rate of each group with its 95% interval (Wilson's), of one classifier or of several.

    Parameters
    ----------
    counts : dict of str to ndarray
        For each classifier its counts per group × label × prediction.
    groups : sequence
        The groups' names.
    rate : str, default="selection_rate"
        A name in :data:`evenhand.core.rates.RATES`.
    tau : float, optional
        The least ratio that is allowed; a band shows which rates reach it.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from evenhand import GroupRatesDisplay
    >>> GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=z)  # doctest: +SKIP
    """

    figure_: Any

    def __init__(
        self,
        counts: dict[str, Any],
        groups: Sequence[Any],
        *,
        rate: str = "selection_rate",
        tau: float | None = None,
    ) -> None:
        if rate not in RATES:
            raise ValueError(f"rate={rate!r}; use one of {', '.join(map(repr, RATES))}.")
        self.counts = counts
        self.groups = groups
        self.rate = rate
        self.tau = tau

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any,
        rate: str = "selection_rate",
        tau: float | None = None,
        pos_label: Any = None,
        ax: Any = None,
    ) -> GroupRatesDisplay:
        """Draw the group rates of any fitted classifier's predictions.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X, y : array-like
            Inputs and labels of two values.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.
        rate : str, default="selection_rate"
            A name in :data:`evenhand.core.rates.RATES`.
        tau : float, optional
            The least ratio that is allowed.
        pos_label : label, optional
            The favourable label; by default the classifier's own ``pos_label``, or the last of its
            two ``classes_``.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        from evenhand.tables.pipeline import FairPipeline

        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        # A pipeline for tables finds the groups in the table.
        needs = getattr(last, "needs_group", False) and not isinstance(estimator, FairPipeline)
        known = {"sensitive_features": sensitive_features} if needs else {}
        pos_label = _favourable(last) if pos_label is None else pos_label
        return cls.from_predictions(
            y,
            estimator.predict(X, **known),
            sensitive_features=sensitive_features,
            rate=rate,
            tau=tau,
            pos_label=pos_label,
            ax=ax,
        )

    @classmethod
    def from_predictions(
        cls,
        y_true: Any,
        y_pred: Any,
        *,
        sensitive_features: Any,
        rate: str = "selection_rate",
        tau: float | None = None,
        pos_label: Any = None,
        ax: Any = None,
    ) -> GroupRatesDisplay:
        """Draw the group rates of predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            Labels of two values.
        y_pred : array-like of shape (n_samples,) or dict of str to array-like
            Predictions, or those of several classifiers by name.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.
        pos_label : label, optional
            The favourable label. Needed unless labels are 0/1, -1/1 or booleans.
        rate, tau, ax
            As of :meth:`from_estimator`.

        Returns
        -------
        GroupRatesDisplay
            The display, drawn.
        """
        several = y_pred if isinstance(y_pred, dict) else {"": y_pred}
        counts, groups = {}, []
        for name, predicted in several.items():
            found, counts[name] = group_counts(
                y_true, predicted, sensitive_features=sensitive_features, pos_label=pos_label
            )
            groups = found.tolist()
        return cls(counts, groups, rate=rate, tau=tau).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> GroupRatesDisplay:
        """Draw.

        Parameters
        ----------
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.

        Returns
        -------
        GroupRatesDisplay
            Itself.
        """
        n, m = len(self.groups), len(self.counts)
        ax = _axes(ax, (6.4, 1.4 + 0.34 * n * max(m, 1)))
        rate = RATES[self.rate]
        for k, (name, counts) in enumerate(self.counts.items()):
            top, bottom = rate.fractions(counts)
            low, high = wilson_interval(top, bottom)
            value = rate.per_group(counts)
            place = np.arange(n) + (k - (m - 1) / 2) * 0.26
            ratio = float(rate.ratio(counts))
            label = f"{name + ': ' if name else ''}ratio {rate_text(ratio, self.tau or 0.0)}"
            if self.tau is not None and m > 1:
                label += f", {'at least' if ratio >= self.tau else 'below'} τ = {self.tau:g}"
            ax.errorbar(
                100 * value,
                place,
                xerr=100 * np.array([value - low, high - value]),
                fmt=_MARKERS[k % len(_MARKERS)],
                color=_COLOURS[k % len(_COLOURS)],
                capsize=3,
                label=label,
            )
            if self.tau is not None and m == 1 and np.isfinite(value).all():
                most = 100 * float(value.max())
                ax.axvspan(self.tau * most, most, color="0.5", alpha=0.15, linewidth=0)
                ax.set_title(
                    f"grey: within τ = {self.tau:g} of the largest", fontsize="small", loc="left"
                )
        ax.set_yticks(np.arange(n), [str(g) for g in self.groups])
        ax.set_ylim(n - 0.4, -0.6)
        ax.set_xlabel(f"{self.rate.replace('_', ' ')} in percent, with 95% intervals")
        ax.grid(alpha=0.25, axis="x")
        ax.spines[["top", "right"]].set_visible(False)
        ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


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
