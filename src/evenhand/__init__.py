"""evenhand: fair classification with the whole accuracy–fairness frontier of one fit."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand._extras import show_versions
    from evenhand.core.errors import InputError, InputWarning
    from evenhand.core.groups import group_codes
    from evenhand.core.metrics import *
    from evenhand.core.rates import RATES
    from evenhand.models.adjusted import FairAdjusted
    from evenhand.models.boosted import FairBoostedClassifier
    from evenhand.models.classifier import FairClassifier, FairnessWarning, FavourableLabelWarning
    from evenhand.models.method import Method
    from evenhand.persist.model_file import load_model, save_model
    from evenhand.statistics.intervals import difference_interval, ratio_interval
    from evenhand.tables.encoder import TableEncoder
    from evenhand.tables.pipeline import fair_pipeline
    from evenhand.views.plots import FrontierDisplay, GroupRatesDisplay
    from evenhand.views.report import save_report

__version__ = "0.1.0"

# Where names live; the others are in metrics. Each is imported when it is first asked for: the
# command line can say its version, or that it was interrupted, without half of scikit-learn.
_HOME = {
    "RATES": "core.rates",
    "FairAdjusted": "models.adjusted",
    "FairBoostedClassifier": "models.boosted",
    "FairClassifier": "models.classifier",
    "FairnessWarning": "models.classifier",
    "FavourableLabelWarning": "models.classifier",
    "FrontierDisplay": "views.plots",
    "GroupRatesDisplay": "views.plots",
    "InputError": "core.errors",
    "InputWarning": "core.errors",
    "Method": "models.method",
    "TableEncoder": "tables.encoder",
    "fair_pipeline": "tables.pipeline",
    "group_codes": "core.groups",
    "difference_interval": "statistics.intervals",
    "load_model": "persist.model_file",
    "ratio_interval": "statistics.intervals",
    "save_model": "persist.model_file",
    "save_report": "views.report",
    "show_versions": "_extras",
}

__all__ = [
    "RATES",
    "FairAdjusted",
    "FairBoostedClassifier",
    "FairClassifier",
    "FairnessWarning",
    "FavourableLabelWarning",
    "FrontierDisplay",
    "GroupRatesDisplay",
    "InputError",
    "InputWarning",
    "Method",
    "TableEncoder",
    "accuracy_difference",
    "accuracy_ratio",
    "difference_interval",
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
    "ratio_interval",
    "save_model",
    "save_report",
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
        return getattr(import_module(f"{__name__}.{_HOME.get(name, 'core.metrics')}"), name)
    if not name.startswith("_"):
        try:
            return import_module(f"{__name__}.{name}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{name}":
                raise
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
