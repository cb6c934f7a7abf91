"""evenhand: fair classification with the whole accuracy–fairness frontier of one fit."""

from importlib import import_module
from typing import Any

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
from evenhand.rates import *  # noqa: F403
from evenhand.rates import __all__ as _rates
from evenhand.selection import Guarantee, HeldOut
from evenhand.trajectory import Trajectory

__version__ = "0.1.0"

# What only some need, from modules that import half of scikit-learn.
_LATER = {
    "TableEncoder": "evenhand.tables",
    "fair_pipeline": "evenhand.tables",
    "load_model": "evenhand.persist",
    "save_model": "evenhand.persist",
}

__all__ = [
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
    "Trajectory",
    "TrajectoryDisplay",
    "show_versions",
    *_LATER,
    *_rates,
]


def __getattr__(name: str) -> Any:
    if name not in _LATER:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_LATER[name]), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER})
