"""evenhand: fair classification with the whole accuracy–fairness frontier of one fit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand._versions import show_versions
    from evenhand.averaging import AveragedClassifier
    from evenhand.boosted import FairBoostedClassifier
    from evenhand.classifier import FairClassifier, FairnessWarning
    from evenhand.displays import (
        ComparisonDisplay,
        FrontierDisplay,
        GroupRatesDisplay,
        TrajectoryDisplay,
    )
    from evenhand.frontier import Frontier
    from evenhand.persist import load_model, save_model
    from evenhand.rates import *
    from evenhand.selection import Guarantee, HeldOut
    from evenhand.tables import TableEncoder, fair_pipeline
    from evenhand.trajectory import Trajectory

__version__ = "0.1.0"

# Where names live; the others are in rates. Each is imported when it is first asked for: the
# command line can say its version, or that it was interrupted, without half of scikit-learn.
_HOME = {
    "AveragedClassifier": "averaging",
    "ComparisonDisplay": "displays",
    "FairBoostedClassifier": "boosted",
    "FairClassifier": "classifier",
    "FairnessWarning": "classifier",
    "Frontier": "frontier",
    "FrontierDisplay": "displays",
    "GroupRatesDisplay": "displays",
    "Guarantee": "selection",
    "HeldOut": "selection",
    "TableEncoder": "tables",
    "Trajectory": "trajectory",
    "TrajectoryDisplay": "displays",
    "fair_pipeline": "tables",
    "load_model": "persist",
    "save_model": "persist",
    "show_versions": "_versions",
}

__all__ = [
    "RATES",
    "AveragedClassifier",
    "ComparisonDisplay",
    "FairBoostedClassifier",
    "FairClassifier",
    "FairnessWarning",
    "Frontier",
    "FrontierDisplay",
    "GroupRatesDisplay",
    "Guarantee",
    "HeldOut",
    "Rate",
    "TableEncoder",
    "Trajectory",
    "TrajectoryDisplay",
    "accuracy_difference",
    "accuracy_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "fair_pipeline",
    "false_discovery_rate_difference",
    "false_discovery_rate_ratio",
    "false_negative_rate_difference",
    "false_negative_rate_ratio",
    "false_omission_rate_difference",
    "false_omission_rate_ratio",
    "false_positive_rate_difference",
    "false_positive_rate_ratio",
    "group_codes",
    "group_counts",
    "group_rates",
    "load_model",
    "negative_predictive_value_difference",
    "negative_predictive_value_ratio",
    "positive_predictive_value_difference",
    "positive_predictive_value_ratio",
    "save_model",
    "show_versions",
    "statistical_parity_difference",
    "statistical_rate",
    "true_negative_rate_difference",
    "true_negative_rate_ratio",
    "true_positive_rate_difference",
    "true_positive_rate_ratio",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        return getattr(import_module(f"{__name__}.{_HOME.get(name, 'rates')}"), name)
    if not name.startswith("_"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
