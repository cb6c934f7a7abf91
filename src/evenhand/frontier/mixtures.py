r"""Mixtures of a few points of a frontier: the most accurate one that is as fair as it must be.

With the probabilities q of the points, accuracy and rates of the mixture are means of the points'
own, if predictions do not change a rate's denominator. The best mixture for τ is the linear program

.. math:: \max_q\; \sum_i q_i\, a_i \quad\text{with}\quad
    \sum_i q_i\,(p_{ij} - \tau\, p_{il}) \ge 0 \ \text{for all groups } j \ne l,

with :math:`a_i` the accuracy of point i and :math:`p_{ij}` its rate in group j, of a difference
:math:`p_{ij} - p_{il} + \epsilon \ge 0`; of several rates all have these constraints, m in all.
:func:`mix` finds it as Agarwal et al. (2018) do, with the frontier's points for classifiers:
exponentiated-gradient multipliers

.. math:: \lambda_c = B\, \frac{e^{\theta_c}}{1 + \sum_{c'} e^{\theta_{c'}}}, \qquad
    i_t = \arg\max_i\; a_i + \sum_c \lambda_c\, g_{ic}, \qquad
    \theta_c \leftarrow \theta_c - \frac{\eta}{\sqrt t}\, g_{i_t c},

with :math:`g_{ic}` what point i has to spare in constraint c. Of the points that answered, a basic
solution needs m + 1 at most; points that its own multipliers call for are added until there are
none, which makes it exact.
"""

from math import sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError
from evenhand.core.objectives import ACCURACY, Objective
from evenhand.core.rates import AnyRate, overall_accuracy
from evenhand.core.targets import Target

__all__ = ["Mixture", "best_mixture", "check_linear", "mix", "to_spare"]

# Multipliers are in units of accuracy for a rate: a whole one costs less than this.
BOUND, ROUNDS, SPEED = 10.0, 200, 20.0

# Probabilities below this, and misses of a constraint, are rounding.
ROUNDING = 1e-9


def check_linear(rate: AnyRate) -> None:
    """Refuse a rate that a mixture does not have as the mean of its points' rates."""
    for component in rate.components:
        if not component.fixed_denominator:
            raise InputError("rate_not_averaged", rate=component.name.replace("_", " "))


def to_spare(counts: FloatArray, target: Target) -> FloatArray:
    r"""Give what each point has to spare in each constraint.

    .. math:: p_j - \tau\, p_l \text{ of a ratio,} \qquad p_j - p_l + \epsilon
        \text{ of a difference.}

    A row for each point, a column for each of several rates, each with its own target, and two
    groups. Negative where the constraint is missed; NaN where a rate is undefined.
    """
    out = []
    for part in target.components:
        (rate,) = part.rate.components
        p = rate.per_group(counts)
        low, high = np.nonzero(~np.eye(p.shape[-1], dtype=bool))
        factor, least = (part.level, 0.0) if part.comparison == "ratio" else (1.0, part.level)
        out.append(p[..., low] - factor * p[..., high] - least)
    return np.concatenate(out, axis=-1)


def _answers(accuracy: FloatArray, spare: FloatArray) -> NDArray[np.intp]:
    """Points that are the best response to exponentiated-gradient multipliers at some time."""
    theta, responses = np.zeros(spare.shape[1]), set()
    for t in range(1, ROUNDS + 1):
        top = max(float(theta.max()), 0.0)
        power = np.exp(theta - top)
        multipliers = BOUND * power / (np.exp(-top) + power.sum())
        i = int(np.argmax(accuracy + spare @ multipliers))
        responses.add(i)
        theta = theta - SPEED / sqrt(t) * spare[i]
    return np.array(sorted(responses))


def mix(accuracy: FloatArray, spare: FloatArray) -> FloatArray | None:
    """Find the probabilities of the most accurate mixture that meets every constraint.

    Parameters
    ----------
    accuracy : ndarray of shape (n_points,)
        Accuracy of each point.
    spare : ndarray of shape (n_points, n_constraints)
        What each has to spare in each constraint.

    Returns
    -------
    ndarray of shape (n_points,) or None
        Probabilities, at most ``n_constraints + 1`` of them positive; None if no mixture does.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.frontier.mixtures import mix
    >>> mix(np.array([0.9, 0.7, 0.6]), np.array([[-0.1], [0.1], [0.2]])).round(3).tolist()
    [0.667, 0.0, 0.333]
    """
    offered = _answers(accuracy, spare)
    while True:
        solution = linprog(
            -accuracy[offered],
            A_ub=-spare[offered].T,
            b_ub=np.zeros(spare.shape[1]),
            A_eq=np.ones((1, len(offered))),
            b_eq=[1.0],
            method="highs-ds",  # a simplex method: its solutions are basic
        )
        if solution.status == 0:
            # A point that is worth more at these multipliers than the mixture would improve it.
            worth = accuracy - spare @ solution.ineqlin.marginals + solution.eqlin.marginals[0]
            more = np.setdiff1d(np.flatnonzero(worth > ROUNDING), offered)
            more = more[np.argsort(-worth[more])[:1]]
        elif len(offered) == len(accuracy):
            return None
        else:
            more = np.setdiff1d(np.arange(len(accuracy)), offered)
        if not len(more):
            break
        offered = np.append(offered, more)
    q = np.zeros(len(accuracy))
    q[offered] = np.where(solution.x > ROUNDING, solution.x, 0.0)
    return q / q.sum()


class Mixture(NamedTuple):
    """Points by number, their probabilities, and the mixture's expected figures."""

    points: NDArray[np.intp]
    weights: FloatArray
    rate: float
    accuracy: float


def best_mixture(
    counts: FloatArray, n_groups: int, target: Target, objective: Objective = ACCURACY
) -> Mixture | None:
    """Mix points for τ by their counts; the first ``n_groups`` groups are compared.

    With another objective its utility takes the place of accuracy. None if no mixture reaches τ.
    Points without a rate are left out.
    """
    spare = to_spare(counts[:, :n_groups], target)
    usable = np.flatnonzero(np.isfinite(spare).all(axis=1))
    if not len(usable):
        return None
    right = objective.utility(counts)
    q = mix(right[usable], spare[usable])
    if q is None:
        return None
    index, weights = usable[q > 0], q[q > 0]
    mean = np.tensordot(weights, counts[index], axes=1)
    figures = target.value(mean[:n_groups]), overall_accuracy(mean)
    return Mixture(index, weights, *map(float, figures))
