"""How a peer is asked for a target: fitted for it, moved to it, or chosen for it."""

from collections.abc import Callable, Iterable, Sequence
from inspect import signature
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import has_fit_parameter

from evenhand.core.errors import InputError
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS, AnyNotion, by_attribute
from evenhand.core.rates import Partition, overall_accuracy
from evenhand.core.targets import Target, find_target
from evenhand.models.method import Method
from evenhand.peers._registry import PeerRecord, groups_to_fit

# Ratios that a method is tried at if it can be asked for ratios between crossed groups alone, and
# is judged by something else.
LADDER = (0.2, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)


class Aim(NamedTuple):
    """What all methods are judged by, at whatever level.

    Of ``attributes`` that are not crossed alone ``groups`` are all combinations, which methods know
    that take one column, and ``partitions`` what is compared.
    """

    notion: str
    comparison: str = "ratio"
    attributes: str = "crossed"
    groups: tuple[Any, ...] = ()
    partitions: tuple[Partition, ...] = ()

    @property
    def parameter(self) -> str:
        """The parameter that asks for a level: ``"tau"`` or ``"epsilon"``."""
        return "tau" if self.comparison == "ratio" else "epsilon"

    def target(self, level: float) -> Target:
        """Give what is demanded with a level of ``taus`` or of ``epsilons``."""
        tau, epsilon = (level, None) if self.comparison == "ratio" else (None, level)
        return find_target(self.notion, tau, epsilon).by(self.partitions)

    @property
    def record(self) -> AnyNotion:
        """The notion, between the groups that are compared."""
        return by_attribute(NOTIONS[self.notion](2), self.partitions)

    def counts(self, y: Any, predicted: Any, z: Any, weight: Any) -> tuple[Any, Any]:
        """Count groups × labels × predictions, of attributes for all combinations."""
        given = {"sensitive_features": z, "sample_weight": weight}
        levels, counts = group_counts(y, predicted, **given)
        if not self.partitions:
            return levels, counts
        every = np.zeros((len(self.groups), 2, 2))
        every[[self.groups.index(level) for level in levels.tolist()]] = counts
        return self.groups, every


class Answer(NamedTuple):
    """A fitted classifier with its counts on the training data."""

    estimator: Any
    counts: Any


# Least share of positives, and of negatives, in each group; a classifier below it does not count.
MIN_SHARE = Method().min_share


def predicted_by(estimator: Any, X: Any, z: Any) -> Any:
    if getattr(estimator, "needs_group", False):
        return estimator.predict(X, sensitive_features=z)
    return estimator.predict(X)


def accuracy_of(counts: Any) -> float:
    return float(overall_accuracy(counts))


def pick(answers: Sequence[Answer], target: Target, notion: AnyNotion, min_share: float) -> Answer:
    """Choose as the frontier does: the most accurate that reaches the target, else the fairest."""

    def merit(answer: Answer) -> tuple[bool, float, float]:
        value = float(target.value(answer.counts))
        defined = notion.eligible(answer.counts, min_share) and value >= target.worst
        value, accuracy = value if defined else target.worst - 1.0, accuracy_of(answer.counts)
        return (True, accuracy, value) if target.reached(value) else (False, value, accuracy)

    return max(answers, key=merit)


def fit_all(
    peer: PeerRecord,
    aim: Aim,
    levels: Sequence[float],
    seed: int,
    X: Any,
    y: Any,
    z: Any,
    weight: Any = None,
    columns: Any = None,
) -> Callable[[float], Any]:
    """Fit what the peer needs for all levels; return the choice of a fitted classifier for one."""
    weights = {} if weight is None else {"sample_weight": weight}
    estimator = peer.make(aim.notion, seed)
    if weights and not (peer.saved or has_fit_parameter(estimator, "sample_weight")):
        raise InputError("peer_without_weights")
    if peer.saved:
        return lambda level: estimator.at(**{aim.parameter: level})
    params, moves = estimator.get_params(), hasattr(estimator, "at")
    by_attribute = "attributes" in params and not getattr(estimator, "needs_group", False)
    # Whether it can be asked for the aim itself; if not it is tried at several ratios.
    # A parameter epsilon may be something else; who can be moved to a difference means one.
    takes = set(signature(estimator.at).parameters) if moves else {*params} & {"tau"}
    own = aim.parameter in takes and (by_attribute or not aim.partitions)
    name = aim.parameter if own else "tau"
    others = {"tau", "epsilon"} & takes - {name}
    changes: dict[str, Any] = {other: None for other in others if other in params}
    groups = z
    if own and aim.partitions:
        changes["attributes"], groups = aim.attributes, columns

    def fitted(**more: Any) -> Any:
        model = clone(peer.make(aim.notion, seed)).set_params(**more)
        return model.fit(X, y, **weights, **groups_to_fit(model, groups))

    def picked(models: Iterable[Any]) -> Callable[[float], Any]:
        found = [Answer(m, aim.counts(y, predicted_by(m, X, z), z, weight)[1]) for m in models]
        return lambda level: pick(found, aim.target(level), aim.record, MIN_SHARE).estimator

    if peer.path:
        ((knob, values),) = peer.path.items()
        if hasattr(estimator, "fit_path"):
            given = {"sensitive_features": z, **weights}
            return picked(clone(estimator).fit_path(X, y, bounds=values, **given))
        return picked([fitted(**{knob: value}) for value in values])
    tried = levels if own else sorted({*LADDER, *(levels if aim.parameter == "tau" else ())})
    if moves:
        first = max(tried) if name == "epsilon" else min(tried)
        model = fitted(**changes, **({name: first} if name in params else {}))
        if own:
            return lambda level: model.at(**{name: level})
        return picked([model.at(tau) for tau in tried])
    if name in params:
        models = {level: fitted(**changes, **{name: level}) for level in tried}
        return models.__getitem__ if own else picked(list(models.values()))
    model = fitted()
    return lambda level: model
