"""Peers: other methods for fair classification as scikit-learn estimators, and their comparison.

What belongs here is somebody else's method, or runs several peers on the same splits. What does
not: evenhand's own ways to fit (:mod:`evenhand.core`, :mod:`evenhand.models`).
"""

from evenhand.peers._baselines import (
    AccuracyOnly,
    ConstantClassifier,
    FairnessOnly,
    GroupThresholds,
    Reweighing,
)
from evenhand.peers._celis import CelisClassifier
from evenhand.peers._compare import compare
from evenhand.peers._fairlearn import (
    FairlearnExponentiatedGradient,
    FairlearnGridSearch,
    FairlearnThresholdOptimizer,
)
from evenhand.peers._linear_post import LinearPost
from evenhand.peers._menon_williamson import MenonWilliamsonClassifier
from evenhand.peers._mistreatment import ZafarMistreatmentClassifier
from evenhand.peers._oxonfair import OxonFairClassifier
from evenhand.peers._registry import PEERS, PeerRecord
from evenhand.peers._summary import accuracy_at_rate, summarize
from evenhand.peers._zafar import ZafarClassifier
from evenhand.peers._zhang import ZhangClassifier

__all__ = [
    "PEERS",
    "AccuracyOnly",
    "CelisClassifier",
    "ConstantClassifier",
    "FairlearnExponentiatedGradient",
    "FairlearnGridSearch",
    "FairlearnThresholdOptimizer",
    "FairnessOnly",
    "GroupThresholds",
    "LinearPost",
    "MenonWilliamsonClassifier",
    "OxonFairClassifier",
    "PeerRecord",
    "Reweighing",
    "ZafarClassifier",
    "ZafarMistreatmentClassifier",
    "ZhangClassifier",
    "accuracy_at_rate",
    "compare",
    "summarize",
]
