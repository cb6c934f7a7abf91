"""A rate of each group."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.core.errors import InputError, Parameter
from evenhand.core.metrics import group_counts
from evenhand.core.rates import RATES
from evenhand.core.targets import Target
from evenhand.statistics.intervals import population_ends
from evenhand.statistics.proportions import clopper_pearson
from evenhand.statistics.verdicts import CONFIDENCE
from evenhand.views.plots.shared import (
    COLOURS,
    MARKERS,
    Display,
    check_one_kind,
    new_axes,
    style_axes,
)
from evenhand.views.targets import TARGET_WORDS
from evenhand.views.verdicts import bounds_text


class GroupRatesDisplay(Display):
    """A rate of each group with its exact 95% interval, of one classifier or of several.

    The legend has their ratio, or difference, and what that is at least and at most in the
    population, each with 95% confidence: of rows that no classifier was fitted to. Where counts are
    weights there are no intervals.

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
    epsilon : float, optional
        The largest difference that is allowed, in place of ``tau``; the legend has differences.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.

    Examples
    --------
    >>> from evenhand import GroupRatesDisplay
    >>> GroupRatesDisplay.from_estimator(model, X, y, sensitive_features=z)  # doctest: +SKIP
    """

    def __init__(
        self,
        counts: dict[str, Any],
        groups: Sequence[Any],
        *,
        rate: str = "selection_rate",
        tau: float | None = None,
        epsilon: float | None = None,
    ) -> None:
        check_one_kind(tau, epsilon)
        if rate not in RATES:
            raise InputError(
                "unknown_rate", rate=Parameter("rate", rate), names=", ".join(map(repr, RATES))
            )
        self.counts = counts
        self.groups = groups
        self.rate = rate
        self.tau = tau
        self.epsilon = epsilon

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
        epsilon: float | None = None,
        pos_label: Any = None,
        ax: Any = None,
    ) -> "GroupRatesDisplay":
        """Draw the group rates of any fitted classifier's predictions.

        Parameters
        ----------
        estimator : classifier
            Fitted.
        X, y : array-like
            Inputs and labels of two values.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row.
        pos_label : label, optional
            The favourable label; by default the classifier's own ``pos_label``, or the last of its
            two ``classes_``.
        rate, tau, epsilon
            As of the class.
        ax : matplotlib Axes, optional
            Where to draw; a new figure by default.
        """
        from evenhand.tables.pipeline import FairPipeline  # brings rich

        last = estimator[-1] if hasattr(estimator, "steps") else estimator
        # A pipeline for tables finds the groups in the table.
        needs = getattr(last, "needs_group", False) and not isinstance(estimator, FairPipeline)
        group = {"sensitive_features": sensitive_features} if needs else {}
        pos_label = _favourable_label(last) if pos_label is None else pos_label
        return cls.from_predictions(
            y,
            estimator.predict(X, **group),
            sensitive_features=sensitive_features,
            rate=rate,
            tau=tau,
            epsilon=epsilon,
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
        epsilon: float | None = None,
        pos_label: Any = None,
        ax: Any = None,
    ) -> "GroupRatesDisplay":
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
        rate, tau, epsilon, ax
            As of :meth:`from_estimator`.
        """
        several = y_pred if isinstance(y_pred, dict) else {"": y_pred}
        group, counts, groups = {"sensitive_features": sensitive_features}, {}, []
        for name, predicted in several.items():
            names, counts[name] = group_counts(y_true, predicted, pos_label=pos_label, **group)
            groups = names.tolist()
        return cls(counts, groups, rate=rate, tau=tau, epsilon=epsilon).plot(ax=ax)

    def plot(self, *, ax: Any = None) -> "GroupRatesDisplay":
        """Draw on ``ax``, by default on a new figure."""
        n, m = len(self.groups), len(self.counts)
        ax = new_axes((6.4, 1.4 + 0.34 * n * max(m, 1))) if ax is None else ax
        rate = RATES[self.rate]
        level = self.tau if self.epsilon is None else -self.epsilon
        kind = "ratio" if self.epsilon is None else "difference"
        target = Target(rate, -np.inf if level is None else level, kind)
        words = TARGET_WORDS[target.comparison]
        for k, (name, counts) in enumerate(self.counts.items()):
            top, bottom = rate.fractions(counts)
            value, whole = rate.per_group(counts), bool((np.mod(counts, 1) == 0).all())
            ends = clopper_pearson(top, bottom, 0.025) if whole else None
            place = np.arange(n) + (k - (m - 1) / 2) * 0.26
            compared = float(target.value(counts))
            text = words.text(compared, target.level)
            bounds = population_ends(target, counts, CONFIDENCE) if whole else None
            between = bounds_text(bounds, words, target.level)
            text += f" (population: {between})" * bool(between)
            label = f"{name + ': ' if name else ''}{words.name} {text}"
            if level is not None and m > 1:
                side = "reaches" if target.reached(compared) else words.missed
                label += f", {side} {words.goal(level)}"
            ax.errorbar(
                100 * value,
                place,
                xerr=None if ends is None else 100 * np.abs(np.array(ends) - value),
                fmt=MARKERS[k % len(MARKERS)],
                color=COLOURS[k % len(COLOURS)],
                capsize=3,
                label=label,
            )
            if level is not None and m == 1 and np.isfinite(value).all():
                most = float(value.max())
                start, slope = words.floor(most)
                least = start + slope * level
                ax.axvspan(100 * least, 100 * most, color="0.5", alpha=0.15, linewidth=0)
                title = f"grey: rates that reach {words.goal(level)} beside the largest"
                ax.set_title(title, fontsize="small", loc="left")
        ax.set_yticks(np.arange(n), [str(g) for g in self.groups])
        ax.set_ylim(n - 0.4, -0.6)
        ax.set_xlabel(f"{self.rate.replace('_', ' ')} in percent, with 95% intervals")
        style_axes(ax, "x")
        ax.legend(frameon=False, fontsize="small")
        self.ax_, self.figure_ = ax, ax.figure
        return self


def _favourable_label(estimator: Any) -> Any:
    """Give the label that a fitted classifier takes for the favourable one, if it has one."""
    own = getattr(estimator, "pos_label", None)
    classes: Any = getattr(estimator, "classes_", ())
    return classes[1] if own is None and len(classes) == 2 else own
