"""Evenhand and its peers as records: what a comparison runs, by name."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from sklearn import get_config

from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.notions import NOTIONS, notion_name
from evenhand.core.rates import Rate
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.classifier import FairClassifier
from evenhand.models.settings import warn
from evenhand.peers._baselines import (
    AccuracyOnly,
    ConstantClassifier,
    FairnessOnly,
    GroupThresholds,
    Reweighing,
)
from evenhand.peers._booster import StoppedBooster
from evenhand.peers._celis import CelisClassifier
from evenhand.peers._fairlearn import (
    FairlearnExponentiatedGradient,
    FairlearnGridSearch,
    FairlearnThresholdOptimizer,
)
from evenhand.peers._linear_post import RATE_LABELS, LinearPost
from evenhand.peers._menon_williamson import MenonWilliamsonClassifier
from evenhand.peers._oxonfair import OxonFairClassifier
from evenhand.peers._zafar import ZafarClassifier
from evenhand.peers._zhang import ZhangClassifier
from evenhand.persist.model_file import SavedModel, load_model


@dataclass(frozen=True)
class PeerRecord:
    """A peer, or evenhand itself, as :func:`compare` runs it.

    How it meets a target τ follows from what it is. With a ``path``, it is fitted once for each
    value of that parameter, and τ gets the most accurate of these on the training data among those
    whose training rate reaches τ. Otherwise, an estimator with ``at(tau)`` is fitted once; one
    with a parameter ``tau`` once for each τ; any other is fitted once and gives one answer.

    Parameters
    ----------
    name : str
        Its name in tables and pictures.
    make : callable ``(notion, random_state) -> estimator``
        An unfitted estimator with ``fit(X, y, *, sensitive_features)`` for a notion.
    path : mapping of str to sequence, default={}
        At most one parameter of the estimator and the values to try.
    notions : tuple of str, optional
        The notions it can be fitted for; all by default.
    packages : tuple of str, default=()
        Packages beside evenhand's own requirements whose versions matter.
    form : {"linear", "scores", "lottery", "trees"}, default="linear"
        What answers: one linear score and its cut (or one cut for each group), several linear
        scores, a lottery over some, or boosted trees.
    saved : bool, default=False
        Whether ``make`` gives a model that is fitted already, and takes the table as it comes.
    """

    name: str
    make: Callable[[str, int], Any]
    path: Mapping[str, Sequence[Any]] = field(default_factory=dict)
    notions: tuple[str, ...] | None = None
    packages: tuple[str, ...] = ()
    form: str = "linear"
    saved: bool = False


_PARITY = ("statistical_parity",)
# These take one rate, not several at once.
_ONE_RATE = tuple(name for name, make in NOTIONS.items() if isinstance(make(2).rate, Rate))
_ZHANG = {"statistical_parity": "demographic_parity"}

# All are chosen by the rate on the training part itself: with a margin for evenhand alone, rules of
# choice would be compared, not peers.
_ALIKE: dict[str, Any] = {"confidence": None}

PEERS: dict[str, PeerRecord] = {
    "evenhand": PeerRecord("evenhand", lambda n, s: FairClassifier(n, random_state=s, **_ALIKE)),
    "evenhand_aware": PeerRecord(
        "evenhand, a cut per group",
        lambda n, s: FairClassifier(n, group_cuts=True, random_state=s, **_ALIKE),
    ),
    "evenhand_boosted": PeerRecord(
        "evenhand, boosted",
        lambda n, s: FairBoostedClassifier(n, random_state=s, **_ALIKE),
        form="trees",
    ),
    "accuracy_only": PeerRecord("plain logistic regression", lambda n, s: AccuracyOnly()),
    "fairness_only": PeerRecord("fairness only", lambda n, s: FairnessOnly(notion=n)),
    "constant": PeerRecord("constant answer", lambda n, s: ConstantClassifier()),
    "reweighing": PeerRecord("reweighing", lambda n, s: Reweighing(), notions=_PARITY),
    "group_thresholds": PeerRecord(
        "a cut per group", lambda n, s: GroupThresholds(notion=n), notions=_ONE_RATE
    ),
    "zafar": PeerRecord(
        "Zafar",
        lambda n, s: ZafarClassifier(relative=True),
        path={"covariance_bound": (0.0, 0.1, 0.2, 0.4, 0.7)},
        packages=("cvxpy",),
    ),
    "zhang": PeerRecord(
        "Zhang",
        lambda n, s: ZhangClassifier(notion=_ZHANG.get(n, "equalized_odds"), random_state=s),
        path={"alpha": (0.0, 0.03, 0.1, 0.2, 0.3, 0.5, 1.0)},
    ),
    "celis": PeerRecord(
        "Celis",
        lambda n, s: CelisClassifier(notion=n, random_state=s),
        notions=_ONE_RATE,
        form="scores",
    ),
    "menon_williamson": PeerRecord(
        "Menon, Williamson",
        lambda n, s: MenonWilliamsonClassifier(notion=n, random_state=s),
        notions=_ONE_RATE,
        form="scores",
    ),
    "linear_post": PeerRecord(
        "LinearPost, boosted",
        lambda n, s: LinearPost(notion=n, random_state=s),
        notions=tuple(RATE_LABELS),
        form="trees",
    ),
    "linear_post_aware": PeerRecord(
        "LinearPost, boosted, groups given",
        lambda n, s: LinearPost(notion=n, aware=True, random_state=s),
        notions=tuple(RATE_LABELS),
        form="trees",
    ),
    "exponentiated_gradient": PeerRecord(
        "ExponentiatedGradient",
        lambda n, s: FairlearnExponentiatedGradient(notion=n, random_state=s),
        path={"bound": (0.08, 0.04, 0.02, 0.01, 0.005, 0.0)},
        notions=_PARITY,
        packages=("fairlearn",),
        form="lottery",
    ),
    "grid_search": PeerRecord(
        "GridSearch",
        lambda n, s: FairlearnGridSearch(notion=n),
        notions=_PARITY,
        packages=("fairlearn",),
    ),
    "threshold_optimizer": PeerRecord(
        "ThresholdOptimizer",
        lambda n, s: FairlearnThresholdOptimizer(notion=n, random_state=s),
        notions=_PARITY,
        packages=("fairlearn",),
        form="lottery",
    ),
    "oxonfair": PeerRecord(
        "OxonFair, groups inferred",
        lambda n, s: OxonFairClassifier(notion=n, random_state=s),
        notions=_ONE_RATE,
        packages=("oxonfair",),
        form="scores",
    ),
    "oxonfair_aware": PeerRecord(
        "OxonFair, groups given",
        lambda n, s: OxonFairClassifier(notion=n, infer_groups=False, random_state=s),
        notions=_ONE_RATE,
        packages=("oxonfair",),
        form="scores",
    ),
}
"""What :func:`compare` knows by name: evenhand and its peers."""

# What a booster needs beside being given; what cuts or counts the rows it has seen is misled.
_WITH_BOOSTER: dict[str, dict[str, Any]] = {
    "menon_williamson": {"n_folds": 5},
    "grid_search": {"grid_size": 21},
    "threshold_optimizer": {},
    "oxonfair": {"validation_size": 0.2},
    "oxonfair_aware": {"validation_size": 0.2},
}


def _boosted(peer: PeerRecord, options: dict[str, Any]) -> PeerRecord:
    """Give the same method with the default booster."""

    def make(notion: str, seed: int) -> Any:
        return peer.make(notion, seed).set_params(estimator=StoppedBooster(seed), **options)

    return replace(peer, name=f"{peer.name}, boosted", make=make, form="trees")


PEERS |= {f"{k}_boosted": _boosted(PEERS[k], options) for k, options in _WITH_BOOSTER.items()}


def groups_to_fit(estimator: Any, z: Any) -> dict[str, Any]:
    """Give ``fit``'s keyword for the groups, by the name that a step has it; none if it has none.

    Keywords that are not named are for steps and estimators inside, if it is scikit-learn's.
    """
    taken = signature(estimator.fit).parameters
    if "sensitive_features" in taken:
        return {"sensitive_features": z}
    if not any(p.kind is p.VAR_KEYWORD for p in taken.values()):
        return {}
    if not type(estimator).__module__.startswith("sklearn."):
        return {"sensitive_features": z}
    name, inner = getattr(estimator, "steps", [("", getattr(estimator, "estimator", None))])[-1]
    found = groups_to_fit(inner, z) if hasattr(inner, "fit") else {}
    if found and get_config()["enable_metadata_routing"]:
        return {"sensitive_features": z}
    return {f"{name}__{key}" if name else key: groups for key, groups in found.items()}


class Loaded:
    """A saved model as a comparison asks it: 1 where its answer is favourable."""

    def __init__(self, model: Any) -> None:
        self.model = model
        self.last = model[-1] if hasattr(model, "steps") else model
        self.needs_group = bool(self.last.needs_group)

    @property
    def demand(self) -> set[str]:
        """What it was made for: the names of its notions."""
        names = self.last.notion
        return {notion_name(name) for name in ([names] if isinstance(names, str) else names)}

    def at(self, tau: float | None = None, *, epsilon: float | None = None) -> "Loaded":
        """Give the same model at another target."""
        return Loaded(self.model.at(tau, epsilon=epsilon))

    def predict(self, X: Any, sensitive_features: Any = None) -> Any:
        """Whether the favourable answer is given; a pipeline finds the groups in the table."""
        own = self.needs_group and self.last is self.model
        answers = self.model.predict(X, **{"sensitive_features": sensitive_features} if own else {})
        favourable = set(self.last.fitted_.favourable)
        return np.array([str(answer) in favourable for answer in answers.tolist()], dtype=np.intp)


def _as_record(name: str, peer: Any) -> PeerRecord:
    """Take a record as it is; a saved model or an estimator answers to any notion and seed."""
    if isinstance(peer, PeerRecord):
        return peer
    if isinstance(peer, str | PathLike):
        peer = load_model(peer)
    if isinstance(peer, SavedModel):
        return PeerRecord(name, lambda notion, seed: Loaded(peer.model), saved=True)
    return PeerRecord(name, lambda notion, seed: peer)


def named_peers(methods: Any, notion: str) -> dict[str, PeerRecord]:
    """Give the records by key: from names, records, or estimators by name."""
    if isinstance(methods, str):
        covered = [key for key, record in PEERS.items() if notion in (record.notions or NOTIONS)]
        methods = covered if methods == "all" else [methods]
    if isinstance(methods, Mapping):
        chosen = {str(name): _as_record(str(name), peer) for name, peer in methods.items()}
    else:
        chosen = {}
        for peer in methods if isinstance(methods, Iterable) else [methods]:
            if isinstance(peer, PeerRecord):
                chosen[peer.name] = peer
            elif isinstance(peer, str) and peer in PEERS:
                chosen[peer] = PEERS[peer]
            elif isinstance(peer, PathLike) or (isinstance(peer, str) and Path(peer).is_file()):
                chosen[str(peer)] = _as_record(Path(peer).name, peer)
            else:
                raise InputError(
                    "unknown_peer",
                    methods=Parameter("methods"),
                    peer=peer,
                    names=", ".join(map(repr, PEERS)),
                )
    if not chosen:
        raise InputError("no_peers", methods=Parameter("methods"))
    for key, record in chosen.items():
        _check_record(key, record, notion)
    return chosen


def _check_record(key: str, record: PeerRecord, notion: str) -> None:
    """Refuse a record that :func:`compare` cannot run for the notion."""
    if record.notions is not None and notion not in record.notions:
        raise InputError(
            "peer_without_notion",
            peer=key,
            notion=Parameter("notion", notion),
            notions=", ".join(map(repr, record.notions)),
        )
    estimator = record.make(notion, 0)
    if isinstance(estimator, type):
        raise InputError("peer_is_a_class", peer=key)
    if record.saved:
        own = estimator.demand
        if own != {notion}:
            asked = Parameter("notion", notion)
            made = " and ".join(sorted(own))
            warn(InputWarning("model_of_other_notion", model=key, own=made, asked=asked))
        return
    if not (hasattr(estimator, "fit") and hasattr(estimator, "predict")):
        raise InputError("peer_without_fit", peer=key)
    if len(record.path) > 1 or not record.path.keys() <= estimator.get_params().keys():
        raise InputError("bad_path", peer=key, path=", ".join(map(repr, record.path)))
