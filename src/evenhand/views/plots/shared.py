"""What the pictures share."""

from typing import Any

from sklearn.utils.validation import check_is_fitted

from evenhand._extras import import_extra
from evenhand.core.errors import InputError, Parameter
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.classifier import FairClassifier

# Okabe and Ito's colours, told apart by all eyes; the markers do without colour.
COLOURS = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#7F7F7F")
MARKERS = "sD^v<>Phdp*X"
TAU_LINE = {"color": "0.45", "linestyle": "--", "linewidth": 1}


class Display:
    """A picture: its matplotlib Axes ``ax_`` and Figure ``figure_``, once it is drawn."""

    ax_: Any
    figure_: Any


def fitted_classifier(estimator: Any, display: str) -> Any:
    """Give the fitted classifier, or the one that a pipeline ends in."""
    estimator = estimator[-1] if hasattr(estimator, "steps") else estimator
    if not isinstance(estimator, FairClassifier | FairBoostedClassifier):
        raise TypeError(
            f"{display} needs a FairClassifier or a Pipeline that ends in one, not a "
            f"{type(estimator).__name__}; of a search, take best_estimator_."
        )
    check_is_fitted(estimator)
    return estimator


def check_one_kind(tau: float | None, epsilon: float | None) -> None:
    """Refuse a ratio and a difference to mark in one picture."""
    if tau is not None and epsilon is not None:
        about = {"tau": Parameter("tau", tau), "epsilon": Parameter("epsilon", epsilon)}
        raise InputError("one_comparison", **about)


def new_axes(size: tuple[float, float], rows: int = 1) -> Any:
    """Give axes to draw on in a new figure; several stand above each other."""
    plt = import_extra("matplotlib.pyplot", "plot")
    return plt.subplots(rows, 1, sharex=True, figsize=size, layout="constrained")[1]


def style_axes(ax: Any, grid: str = "both") -> None:
    """Draw a faint grid, and no frame at the top and on the right."""
    ax.grid(alpha=0.25, axis=grid)
    ax.spines[["top", "right"]].set_visible(False)
