r"""Candidates beside a solver's iterates: other directions in which a score may look at X.

A solver's path is one line through the space of weights, and need not pass where a rate is bought
at the least accuracy. What belongs here finds more points of that space for the same frontier, on
the same rows and by their moments alone; every cut on each is then tried like the solver's own. A
source is a function of the oracle and the unconstrained optimum, in the solver's coordinates, with
two labels.

``"discriminants"``: with two groups whose rates are compared among some labels, the most accurate
answers of a given rate say yes where

.. math:: 2 P(y = 1 \mid x) - 1 > \lambda P(z = 1 \mid x) + c

(Menon and Williamson, 2018), z being the group of the rows with these labels. With a logistic
regression for either probability its linear form is :math:`w_y - \lambda w_z`: all directions of
the plane that the two span, evenly.

``"rates"``: where several differences must vanish (several groups, or several rates) a plane is not
enough; the multipliers of :class:`evenhand.core.multipliers.SoftRatePath` walk through their space,
of more than two groups once more with steps that do not forget the small ones
(:class:`~evenhand.core.multipliers.Walk`).
"""

from collections.abc import Callable, Iterator
from copy import copy
from typing import Any

import numpy as np

from evenhand.core.arrays import FloatArray
from evenhand.core.multipliers import Walk
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import Recode
from evenhand.core.solvers import SOLVERS, minimize_loss, solve
from evenhand.core.updates import normal, power_schedule

# Directions of a plane, and steps of the walk.
N_DIRECTIONS, N_STEPS = 80, 60
# So many times the directions where something else than accuracy is maximised: its best cuts are
# off the middle of the scores, where a rate changes faster with the direction
# (benchmarks/objectives.py).
FINER = 4
# The steps of a second walk if there are more groups, and how far its multipliers may go: a group
# of 1 in 100 rows matters to a score that does not know the group only if its multiplier is in the
# hundreds.
MANY_STEPS, MANY_REACH = 100, 100.0
# A direction needs no more precision than this, nor more iterations.
TOLERANCE, ITERATIONS = 1e-3, 50

Source = Callable[[Oracle, FloatArray, bool], Iterator[FloatArray]]


def label_sets(oracle: Oracle) -> list[tuple[int, ...]]:
    """Labels among which the group matters to the rates: both together, or each by itself.

    A rate that a positive answer changes in the same way whatever the label is, as the selection
    rate, is about all rows.
    """
    sets: set[tuple[int, ...]] = set()
    for rate in oracle.notion.rate.components:
        effect = [
            [((y, 1) in cells) - ((y, 0) in cells) for cells in (rate.numerator, rate.denominator)]
            for y in (0, 1)
        ]
        matter = tuple(y for y in (0, 1) if any(effect[y]))
        sets |= {matter} if effect[0] == effect[1] else {(y,) for y in matter}
    return sorted(sets)


def group_cells(oracle: Oracle, labels: tuple[int, ...], group: int = 1) -> Recode:
    """Say of which cells the rows are of a group, and which are among those of some labels."""
    shape = oracle.game.n_groups_all, oracle.game.labels
    member, asked = np.zeros(shape), np.zeros(shape)
    member[group] = 1.0
    asked[: oracle.n_groups, list(labels)] = 1.0
    return member.ravel(), asked.ravel()


def group_discriminant(oracle: Oracle, labels: tuple[int, ...], group: int = 1) -> FloatArray:
    """Weights of a logistic regression of a group against the others, among rows of some labels."""
    view = copy(oracle)
    view.recode = group_cells(oracle, labels, group)
    start = np.zeros(oracle.n_weights)
    return minimize_loss(
        view, start, max_iter=ITERATIONS, tol=TOLERANCE, callback=lambda iteration: None
    )[0]


def discriminants(oracle: Oracle, optimum: FloatArray, finer: bool = False) -> Iterator[FloatArray]:
    """Directions around the plane of the label's and the group's logistic regressions."""
    first, second = optimum, group_discriminant(oracle, label_sets(oracle)[0])
    size = np.linalg.norm(first[:-1])
    if not size > 0:
        return
    first = first / size
    second = second - (first[:-1] @ second[:-1]) * first
    size = np.linalg.norm(second[:-1])
    if size > 0:
        n = N_DIRECTIONS * (FINER if finer else 1)
        for angle in np.linspace(0, 2 * np.pi, n, endpoint=False):
            yield np.cos(angle) * first + np.sin(angle) * second / size


def rates(oracle: Oracle, optimum: FloatArray, _: bool = False) -> Iterator[FloatArray]:
    """Walk the soft-rate path."""
    record = SOLVERS["soft_rate"]
    schedule = power_schedule(0.0, 0.0)
    for iteration in record.run(oracle, optimum, rule=normal, schedule=schedule, max_iter=N_STEPS):
        yield iteration.q
    if oracle.n_groups > 2 and record.path is not None:
        walk: Any = Walk(oracle, record.path, MANY_STEPS, MANY_REACH, many=True)
        for iteration in solve(
            walk,
            optimum,
            solver=record.solver,
            rule=normal,
            schedule=lambda t: 1.0,
            max_iter=MANY_STEPS,
        ):
            yield iteration.q


SOURCES: dict[str, Source] = {"discriminants": discriminants, "rates": rates}
"""Sources of candidates by name."""


def find_candidates(
    oracle: Oracle, optimum: FloatArray, *, finer: bool = False
) -> Iterator[tuple[str, FloatArray]]:
    """Weights that join a solver's iterates, with the name of what found each; two labels only.

    ``finer`` is for objectives other than the accuracy.
    """
    if oracle.game.labels > 2:
        return
    plane = oracle.n_groups == 2 and len(label_sets(oracle)) == 1
    source = "discriminants" if plane else "rates"
    for weights in SOURCES[source](oracle, optimum, finer):
        yield source, weights
