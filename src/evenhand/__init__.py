"""evenhand: fair classification with the whole accuracy–fairness frontier of one fit."""

from evenhand._versions import show_versions
from evenhand.averaging import AveragedClassifier
from evenhand.boosted import FairBoostedClassifier
from evenhand.classifier import FairClassifier, FairnessWarning
from evenhand.displays import ComparisonDisplay, FrontierDisplay
from evenhand.frontier import Frontier
from evenhand.rates import *  # noqa: F403
from evenhand.rates import __all__ as _rates
from evenhand.selection import Guarantee, HeldOut
from evenhand.trajectory import Trajectory

__version__ = "0.1.0"

__all__ = [
    "AveragedClassifier",
    "ComparisonDisplay",
    "FairBoostedClassifier",
    "FairClassifier",
    "FairnessWarning",
    "Frontier",
    "FrontierDisplay",
    "Guarantee",
    "HeldOut",
    "Trajectory",
    "show_versions",
    *_rates,
]
