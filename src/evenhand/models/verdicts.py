"""What is said of the chosen point: that it misses its target, or is not worth it."""

from typing import Any

import numpy as np

from evenhand.core.errors import InputWarning, Parameter
from evenhand.core.targets import READ
from evenhand.models.settings import FairnessWarning

__all__ = ["verdict_of"]


def verdict_of(model: Any) -> FairnessWarning | None:
    """Give the warning that a fitted classifier's chosen point needs; None if it is feasible."""
    fit = model.fitted_
    if not model.point_.feasible and model.guarantee_:
        return FairnessWarning("not_certified", guarantee=str(model.guarantee_))
    if not model.point_.feasible:
        return FairnessWarning(
            "target_missed",
            tau=_demanded(model),
            where=fit.where,
            notion=model.notion,
            sure=f" with confidence {fit.confidence:g}" if fit.margin else "",
            nearest=_nearest(model),
        )
    if model.beats_constant_:
        return None
    label, _, constant = fit.constant
    return FairnessWarning(
        "worse_than_constant",
        tau=_demanded(model),
        value=fit.objective.text(model.value_),
        where=fit.where,
        than=fit.objective.than(model.value_, constant),
        label=label,
        constant=fit.objective.text(constant),
        strictest=_strictest(model),
    )


def _strictest(model: Any) -> InputWarning:
    """Say up to which target a model is better than one answer to everybody."""
    strictest, comparison = model.answers_.strictest(), model.target_.comparison
    if strictest is None:
        return InputWarning("no_target_worth")
    level, choice = strictest
    target: Any = str(model.target_.at(level))
    if comparison != "mixed":
        name = "tau" if comparison == "ratio" else "epsilon"
        target = Parameter(name, READ[comparison][1] * level + 0.0)
    value = model.fitted_.objective.text(choice.value)
    return InputWarning("strictest_worth", target=target, value=value)


def _demanded(model: Any) -> Parameter | InputWarning:
    """Write what was demanded as the parameters that demand it."""
    tau, epsilon = Parameter("tau", model.tau), Parameter("epsilon", model.epsilon)
    if model.epsilon is None:
        return tau if model.tau is not None else Parameter("tau", model.target_.level)
    return epsilon if model.tau is None else InputWarning("both", one=tau, other=epsilon)


def _nearest(model: Any) -> InputWarning:
    """Say how near to the target the fit came."""
    fit, target = model.fitted_, model.target_
    if not len(model.frontier_):
        return fit.undefined() or InputWarning("no_point", requirement=fit.requirement)
    if not np.isfinite(model.rate_):
        return InputWarning("rate_unknown", where=fit.where)
    what, sign = READ[target.comparison]
    if not fit.margin:
        best = "highest" if sign > 0 else "smallest"
        return InputWarning("highest_rate", best=best, what=what, rate=target.text(model.rate_))
    rate, bound = target.text(model.rate_), target.text(model.rate_bound_)
    return InputWarning("nearest_rate", what=what, rate=rate, bound=bound)
