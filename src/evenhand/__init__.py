"""evenhand: fair classification with the whole accuracy–fairness frontier of one fit."""

from evenhand._versions import show_versions
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
from evenhand.rates import *  # noqa: F403
from evenhand.rates import __all__ as _rates
from evenhand.selection import Guarantee, HeldOut
from evenhand.tables import TableEncoder, fair_pipeline
from evenhand.trajectory import Trajectory

__version__ = "0.1.0"

__all__ = [
    "ComparisonDisplay",
    "FairBoostedClassifier",
    "FairClassifier",
    "FairnessWarning",
    "Frontier",
    "FrontierDisplay",
    "GroupRatesDisplay",
    "Guarantee",
    "HeldOut",
    "TableEncoder",
    "Trajectory",
    "TrajectoryDisplay",
    "fair_pipeline",
    "load_model",
    "save_model",
    "show_versions",
    *_rates,
]
