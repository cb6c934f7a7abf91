"""From coded rows to a frontier and the point for every target: functions on plain records.

:func:`learn` takes :class:`~evenhand.models.settings.Settings` and rows, and gives a :class:`Fit`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from itertools import pairwise
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand._extras import import_extra
from evenhand.core.directions import find_candidates
from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.left_out import LeftOut
from evenhand.core.objectives import Objective
from evenhand.core.oracle import Oracle
from evenhand.core.rates import AnyRate, Partition
from evenhand.core.rows import Rows, Share, as_columns, share_cells
from evenhand.core.solvers import SOLVERS, Iteration, minimize_loss
from evenhand.core.targets import Target
from evenhand.core.trajectory import Trajectory
from evenhand.core.updates import RULES, power_schedule
from evenhand.engines.memory import MemoryRows
from evenhand.engines.threads import cores
from evenhand.frontier.choice import Answers, Choice, answer, guaranteed_choice
from evenhand.frontier.held_out import HeldOut, candidates, count_rows, pool_folds
from evenhand.frontier.points import Frontier
from evenhand.frontier.splits import (
    check_fitted,
    check_held_out,
    check_unweighted,
    one_of_each,
    rows_of,
    split_folds,
    split_rows,
)
from evenhand.frontier.sweep import sweep_targets
from evenhand.models.inputs import (
    CodedRows,
    check_digits,
    check_scales,
    is_tensor,
    merge_alike,
)
from evenhand.models.method import LEGS
from evenhand.models.progress import progress_bar
from evenhand.models.settings import PLACES, Settings, warn

__all__ = ["Fit", "View", "learn", "make_oracle", "many_columns"]

NO_ROWS = np.empty(0, dtype=np.intp)
# The most that the search for the unconstrained optimum may take.
OPTIMUM_ITERATIONS = 200
# Of more columns than this many times the root of the smallest group's rows, these look more alike
# than they are by half a standard error and more.
MANY_COLUMNS = 1.0
# Each group has a regression, of which every row is left out; of more groups it would take long.
MOST_GROUPS = 10
# What helps against unlike scales of the columns besides scaling them.
OTHER_METRIC = ", or keep the default coordinates, Method(metric='whitened')"
# Gives the rows of these numbers to fit to and to hold out (None: all, and no others), with the
# inputs that a fit to the former makes of them.
View = Callable[[Any, Any], tuple[CodedRows, CodedRows]]


class Other(NamedTuple):
    """Points that are best for another target, and their figures on rows not fitted to."""

    target: Target
    frontier: Frontier
    held_out: HeldOut | None


@dataclass(frozen=True)
class Fit:
    """All that a fit found, whichever target it was for; a model file keeps it.

    Parameters
    ----------
    labels : ndarray of shape (n_classes,)
        The labels in the order of their numbers: of two, the favourable one is the second.
    classes, groups : ndarray
        The labels and the compared groups in sorted order.
    small_groups : dict
        Rows of each group that is too small to be compared.
    inputs : ndarray of int
        Columns of the user's X that are inputs.
    edges : ndarray or None
        Edges of the bins that are the groups, if they are.
    target : Target
        What was asked of the groups' rates, and how strictly. Its level is its worst value if it
        was not asked for, but is the other comparison of what was.
    other : Other or None
        What is best for the other comparison; None of a target of both.
    frontier, trajectory, held_out, answers
        As :class:`~evenhand.FairClassifier` has them with an underscore behind.
    n_iter : int
        Iterations done.
    trouble : InputWarning or None
        What went wrong, if anything did.
    place : str
        The rows the points were chosen on: a key of ``PLACES``.
    confidence : float, "certified" or None
        What was asked for.
    delta : float or None
        The probability with which a certificate may be wrong; None if none is sought.
    margin : float
        Standard errors by which a ratio must be above its target.
    group_cuts, noise : bool
        Whether each group has its own cut; whether the extra column is noise.
    requirement : str
        What every point must have, in words.
    partitions : tuple of Partition
        The groups of each attribute, if these are what is compared.
    """

    labels: NDArray[Any]
    classes: NDArray[Any]
    groups: NDArray[Any]
    small_groups: dict[Any, int]
    inputs: NDArray[np.intp]
    edges: NDArray[np.float64] | None
    target: Target
    frontier: Frontier
    trajectory: Trajectory
    held_out: HeldOut | None
    answers: Answers
    n_iter: int
    trouble: InputWarning | None
    place: str
    confidence: float | str | None
    delta: float | None
    margin: float
    group_cuts: bool
    noise: bool
    requirement: str
    partitions: tuple[Partition, ...] = ()
    other: Other | None = None

    @property
    def sign(self) -> int:
        """1 if the favourable label of two is ``classes[1]``, else −1."""
        return 1 if self.labels[-1] == self.classes[-1] else -1

    @property
    def where(self) -> str:
        """The rows the points were chosen on, in words."""
        return PLACES[self.place]

    @property
    def n_groups_all(self) -> int:
        """Groups that are compared, and one more if there are small ones."""
        return len(self.groups) + bool(self.small_groups)

    @property
    def favourable(self) -> list[str]:
        """The labels that count as favourable, as text."""
        return [str(self.labels[c]) for c in self.frontier.favourable]

    @property
    def rate(self) -> AnyRate:
        """What the groups shall share."""
        return self.target.rate

    @property
    def objective(self) -> Objective:
        """What was maximised."""
        return self.frontier.objective

    @property
    def constant(self) -> tuple[Any, float, float]:
        """The label that is best as everybody's answer, its accuracy and the objective's value."""
        counts = self.frontier.last.counts if self.held_out is None else self.held_out.last
        label, _, value = self.objective.best_for_everybody(counts)
        rows = counts.sum(axis=(0, 2))
        return self.labels.tolist()[label], float(rows[label] / rows.sum()), value

    def facing(self, target: Target) -> Fit:
        """Give the fit with the frontier that was found for a target, at whatever level."""
        other = self.other
        if target.like(self.target):
            return self
        if other is None or not target.like(other.target):
            given = {"tau": Parameter("tau"), "epsilon": Parameter("epsilon")}
            kept = other is not None and target.comparison == other.target.comparison
            found = str(other.target if other is not None and kept else self.target)
            raise InputError("other_proportions", **given, target=found)
        held_out, delta = other.held_out, self.delta
        if held_out is not None and delta is not None:
            held_out = replace(held_out, bound=held_out.bounds(other.target, delta))
        chosen = answer(other.frontier, held_out, other.target, margin=self.margin, certify=delta)
        turned = Other(self.target, self.frontier, self.held_out)
        return replace(
            self,
            target=other.target,
            frontier=other.frontier,
            held_out=held_out,
            answers=chosen,
            other=turned,
        )

    def choose(self, level: float) -> Choice:
        """Choose the point for a level of the target, by a certificate if one was asked for."""
        if self.delta is None or self.held_out is None:
            return self.answers.choose(level)
        moved, target = level != self.target.level, self.target.at(level)
        return guaranteed_choice(self.answers, self.held_out, target, self.delta, moved=moved)

    def undefined(self) -> InputWarning | None:
        """Name a group whose rate is undefined whatever the classifier, if there is one."""
        counts = self.frontier.last.counts[: len(self.groups)]
        for component in self.rate.components:
            labels = sorted({y for y, _ in component.denominator})
            rows = component.fractions(counts)[1]
            whole = {(y, p) for y in labels for p in range(counts.shape[-1])}
            if set(component.denominator) == whole and not rows.all():
                group = component.groups(self.groups.tolist())[int(np.argmin(rows))]
                names = " or ".join(repr(self.labels.tolist()[y]) for y in labels)
                return InputWarning(
                    "undefined_rate",
                    group=group,
                    label=names,
                    rate=component.name.replace("_", " "),
                )
        return None


class Run(NamedTuple):
    """The legs that were run, the frontiers swept from them, and what went wrong, if anything."""

    trajectory: Trajectory
    frontiers: list[Frontier]
    n_iter: int
    trouble: InputWarning | None
    interrupted: bool


def learn(
    rows: CodedRows,
    settings: Settings,
    random: np.random.RandomState,
    view: View,
    names: Any = None,
) -> Fit:
    """Find the frontier, measured as the selection asks, and the point for every target.

    With ``names`` of the columns their scales, or their digits, are checked.
    """
    parts = _parts(rows, settings, random)
    split = settings.place == "holdout"
    fitted, held = view(*(parts[0] if split else (None, NO_ROWS)))
    oracle = make_oracle(fitted, settings)
    if names is not None and oracle.metric is None:
        check_scales(oracle.column_scale, names, "" if settings.method.plain else OTHER_METRIC)
    elif names is not None and oracle.metric is not None:
        check_digits(oracle.rows, oracle.metric.unused, names)
    target = settings.target_of(
        len(rows.classes), settings.favourable(rows.classes), rows.partitions
    )
    targets = target, *target.others
    run = _explore(oracle, settings, fitted, targets)
    trouble = run.trouble
    place = settings.place
    held_out: list[HeldOut | None] = [None] * len(targets)
    # Columns without names are made out of fold, and few.
    n_columns = 0 if names is None else int(np.count_nonzero(oracle.column_scale))
    group_rows = run.frontiers[0].last.counts[: len(rows.groups)].sum(axis=(1, 2))
    # Without a margin the rate on the rows fitted to is what is asked for.
    if place == "train" and settings.margin and many_columns(n_columns, group_rows):
        if _can_leave_out(oracle, settings, run):
            place = "left_out"
            held_out = _leave_out(run, oracle, fitted, settings, targets)
        else:
            confidence = Parameter("confidence", settings.confidence)
            crossfit = Parameter("selection", "crossfit")
            about = {"n_columns": n_columns, "n_rows": fitted.n_rows, "crossfit": crossfit}
            warn(InputWarning("many_columns", confidence=confidence, **about))
    if split:
        held_out = _measure(run, held, fitted.n_rows, settings, targets)
    elif parts:
        held_out, later = _cross_fit(run, rows, parts, view, settings, targets)
        trouble = trouble or later
    sides = [Other(*side) for side in zip(targets, run.frontiers, held_out, strict=True)]
    delta, margin = settings.delta_asked, settings.margin
    return Fit(
        labels=settings.label_order(rows.classes),
        classes=rows.classes,
        groups=rows.groups,
        small_groups=rows.small,
        inputs=fitted.inputs,
        edges=rows.edges,
        target=target,
        frontier=sides[0].frontier,
        trajectory=run.trajectory,
        held_out=sides[0].held_out,
        answers=answer(sides[0].frontier, sides[0].held_out, target, margin=margin, certify=delta),
        n_iter=run.n_iter,
        trouble=trouble,
        place=place,
        confidence=settings.confidence,
        delta=delta,
        margin=margin,
        group_cuts=bool(settings.group_cuts),
        noise=settings.method.noise,
        requirement=_requirement(settings, rows, oracle.notion.better_than_chance),
        partitions=rows.partitions,
        other=sides[1] if len(sides) > 1 else None,
    )


def many_columns(n_columns: int, rows: NDArray[Any]) -> bool:
    r"""Whether there are many columns for the smallest of groups of so many rows.

    Fitted weights undo differences of the groups' means, and of what they seem to undo about
    :math:`d (1/n_1 + 1/n_2) / D^2` is chance: of d columns, and of groups of n rows whose means are
    D standard deviations apart. In standard errors of the rates that grows as
    :math:`d / \sqrt n`.
    """
    return bool(n_columns > MANY_COLUMNS * np.sqrt(np.min(rows)))


def _can_leave_out(oracle: Oracle, settings: Settings, run: Run) -> bool:
    """Whether the fit is one that rows can be left out of (:mod:`evenhand.core.left_out`)."""
    whitened = oracle.metric is not None and oracle.metric.whitened
    known = oracle.game.labels == 2 and "optimum" in LEGS[settings.method.init]
    chosen = settings.method.cut and settings.bins is None and oracle.n_groups <= MOST_GROUPS
    return whitened and known and chosen and not run.interrupted


def _leave_out(
    run: Run, oracle: Oracle, rows: CodedRows, settings: Settings, targets: Sequence[Target]
) -> list[HeldOut | None]:
    """Measure the points for each target on the rows fitted to, each as if left out."""
    iterates, optimum = run.trajectory.iterates, run.trajectory.sources.index("optimum")
    whole = settings.survey_weights
    left_out = LeftOut.of(oracle, iterates[optimum], iterates, whole=whole)
    return _measure(run, rows, rows.n_rows, settings, targets, left_out)


def _requirement(settings: Settings, rows: CodedRows, better_than_chance: bool) -> str:
    share = settings.method.min_share
    several = len(settings.favourable(rows.classes)) > 1
    predicted = "rows of each label" if several else "positives"
    chance = " and a rate better than chance" * better_than_chance
    return f"between {share:.0%} and {1 - share:.0%} predicted {predicted} in every group{chance}"


def _engine(rows: CodedRows, settings: Settings) -> str:
    """Name of the engine for rows that are at hand."""
    return "torch" if settings.engine == "torch" or is_tensor(rows.X) else "numpy"


def _source(rows: CodedRows, settings: Settings) -> Rows:
    """Rows where an engine has them."""
    if rows.source is not None:
        return rows.source
    columns = as_columns(
        len(rows.y),
        rows.y,
        rows.z,
        n_labels=len(rows.classes),
        quantity=rows.quantity,
        extra=rows.extra,
        sample_weight=rows.weight,
    )
    if _engine(rows, settings) == "numpy":
        return MemoryRows(rows.X, columns)
    import_extra("torch", "torch")
    from evenhand.engines.torch import TorchRows

    return TorchRows(rows.X, columns, settings.device)


def make_oracle(rows: CodedRows, settings: Settings) -> Oracle:
    """Make the oracle of a fit to the rows."""
    method, noise = settings.method, rows.extra is not None
    if _engine(rows, settings) == "numpy" and rows.source is None and not noise:
        rows = merge_alike(rows)
    n_labels = len(rows.classes)
    notion = settings.notion_of(n_labels, settings.favourable(rows.classes), rows.partitions)
    SOLVERS[method.solver].check(notion)
    return Oracle(
        _source(rows, settings),
        notion=notion,
        n_labels=n_labels,
        n_groups=len(rows.groups),
        quantity=rows.quantity is not None,
        reading=method.reading,
        adversary_sign=method.adversary_sign,
        mu=method.mu,
        l2=method.l2,
        penalize_extra=noise,
        metric="none" if method.plain else method.metric,
    )


def _explore(oracle: Oracle, settings: Settings, rows: CodedRows, targets: Sequence[Target]) -> Run:
    """Run the legs and sweep their frontiers."""
    with cores():
        run = _run(oracle, settings)
        for direction in () if rows.directions is None else rows.directions:
            run.trajectory.keep(direction, "rules")
        frontiers = sweep_targets(
            oracle,
            run.trajectory.iterates,
            targets,
            cut=settings.method.cut,
            by_group=settings.group_cuts,
            min_share=settings.method.min_share,
            groups=rows.groups.tolist(),
            labels=settings.label_order(rows.classes).tolist(),
            sources=run.trajectory.sources,
            objective=settings.objective_of(len(rows.classes)),
        )
    run = run._replace(frontiers=frontiers)
    if not frontiers[0].complete:
        return run._replace(trouble=InputWarning("interrupted_sweep"), interrupted=True)
    return run


def _run(oracle: Oracle, settings: Settings) -> Run:
    """Run the legs; their frontier is still to be swept."""
    method, trajectory = settings.method, Trajectory(oracle.notion.rate, oracle.n_groups)
    starts, n_iter, interrupted = {"zero": np.zeros(oracle.n_weights)}, 0, False
    trouble: InputWarning | None = None
    # Where the group is known, what an answer is worth and what it does to a rate both follow from
    # P(label | x): for one rate, cuts of the optimum are enough, and of more directions chance
    # would choose. Several rates at once may need answers that no cut of one score gives.
    one_rate = len(oracle.notion.rate.components) == 1
    enough = settings.pools and settings.group_cuts and method.cut and one_rate
    legs = () if enough else LEGS[method.init]
    n_kept = min(method.n_iterates, method.max_iter)
    kept = set(np.linspace(1, method.max_iter, n_kept).round().astype(int).tolist())
    try:
        with progress_bar(settings.verbose, trajectory, len(legs) * method.max_iter) as show:

            def record(iteration: Iteration) -> None:
                iteration = iteration._replace(q=oracle.weights(iteration.q))
                trajectory.add("optimum", iteration, keep=False)
                show("plain optimum", 0)

            if "optimum" in LEGS[method.init]:
                # BLAS would wake its threads for L-BFGS's small matrices, to no one's use.
                memory = isinstance(oracle.rows, MemoryRows)
                with cores.without_blas() if memory else nullcontext():
                    starts["optimum"], reached = minimize_loss(
                        oracle, starts["zero"], max_iter=OPTIMUM_ITERATIONS, callback=record
                    )
                if not reached:
                    trouble = InputWarning("optimum_not_reached", n=OPTIMUM_ITERATIONS)
                trajectory.keep(oracle.weights(starts["optimum"]), "optimum")
            for leg in legs:
                t = 0
                for iteration in SOLVERS[method.solver].run(
                    oracle,
                    starts[leg],
                    rule=RULES[method.update],
                    schedule=power_schedule(method.alpha, method.alpha_power),
                    max_iter=method.max_iter,
                    step=method.step,
                ):
                    t = iteration.t
                    n_iter += 1
                    iteration = iteration._replace(q=oracle.weights(iteration.q))
                    trajectory.add(f"from {leg}", iteration, keep=t in kept)
                    show(f"fair, from {leg}", 1)
                trajectory.keep()
                if t < method.max_iter:
                    trouble = InputWarning("diverged", leg=leg, iteration=t + 1)
            if settings.pools and not settings.group_cuts:
                finer = settings.objective != "accuracy"
                for source, weights in find_candidates(oracle, starts["optimum"], finer=finer):
                    trajectory.keep(oracle.weights(weights), source)
    except KeyboardInterrupt:
        if not len(trajectory):
            raise
        trouble = InputWarning("interrupted_run", n=len(trajectory))
        interrupted = True
        trajectory.keep()
    if not len(trajectory.iterates):
        trajectory.keep(starts["zero"])
    return Run(trajectory, [], max(n_iter, 1), trouble, interrupted)


def _parts(
    rows: CodedRows, settings: Settings, random: np.random.RandomState
) -> list[tuple[Any, Any]]:
    """Rows to fit to and rows to hold out, as often as the selection needs them."""
    place = settings.place
    if place == "train":
        return []
    if rows.source is not None:
        return _shares(rows, rows.source, settings, random)
    if settings.certifies:
        check_unweighted(rows.weight)
    names, n = _names(rows, settings), len(rows.y)
    strata = rows.z * len(rows.classes) + rows.y
    # Bounds are exact only if the held-out labels do not depend on those fitted to.
    strata = rows.z if settings.certifies else strata
    first, person = np.arange(n), np.arange(n)
    if rows.person is not None:
        # Persons are split, each in the group of a first row; of those held out one row is drawn.
        _, first, person = np.unique(rows.person, return_index=True, return_inverse=True)
    if place != "crossfit":
        parts = [split_rows(strata[first], settings.holdout, random)]
    elif isinstance(settings.cv, Integral):
        parts = split_folds(strata[first], int(settings.cv), random)
    else:
        if rows.person is not None:
            raise InputError(
                "own_folds_of_persons", cv=Parameter("cv"), persons=Parameter("persons")
            )
        from sklearn.model_selection import check_cv  # imports half of scikit-learn

        splits = check_cv(settings.cv, rows.y, classifier=True).split(np.zeros(n), rows.y)
        parts = [(rows_of(a, n), rows_of(b, n)) for a, b in splits]
    if rows.person is not None:
        parts = [
            (np.flatnonzero(np.isin(person, a)), np.flatnonzero(np.isin(person, b)))
            for a, b in parts
        ]
        parts = [(a, one_of_each(b, person, random)) for a, b in parts]
    for fitted, held in parts:
        if place == "crossfit" and not len(held):
            raise InputError("empty_fold", cv=Parameter("cv", settings.cv), n=n)
        for z, groups in _compared(rows, names[0]):
            check_fitted(z[fitted], rows.y[fitted], (groups, names[1]))
            if place != "crossfit":
                check_held_out(z[held], groups[: len(rows.groups)], settings.none_held_out)
    return parts


def _compared(rows: CodedRows, names: list[Any]) -> list[tuple[NDArray[np.intp], list[Any]]]:
    """Give each row's number among the groups that must not be missing, and their names."""
    if not rows.partitions:
        return [(rows.z, names)]
    places = [(by.place(len(rows.groups))[rows.z], by) for by in rows.partitions]
    # Rows of a value that is too small are behind the others.
    return [(np.where(place < 0, len(by.groups), place), list(by.groups)) for place, by in places]


def _names(rows: CodedRows, settings: Settings) -> tuple[list[Any], list[Any]]:
    """Names of the groups, small ones together, and of the labels, in the order of the numbers."""
    groups = [*rows.groups.tolist(), *(["small groups"] if rows.small else [])]
    return groups, settings.label_order(rows.classes).tolist()


def _shares(
    rows: CodedRows, source: Rows, settings: Settings, random: np.random.RandomState
) -> list[tuple[Any, Any]]:
    """As :func:`_parts`, of rows that are elsewhere: each is drawn by itself."""
    seed = int(random.randint(2**31 - 1))
    n = int(settings.cv) if settings.place == "crossfit" else 1
    edges = np.linspace(0, 1, n + 1) if n > 1 else [0.0, settings.holdout]
    parts = [
        (Share(seed, low, high, False), Share(seed, low, high, True))
        for low, high in pairwise(edges)
    ]
    names = _names(rows, settings)
    for part in parts:
        for share, what in zip(part, ("to fit to", "to hold out"), strict=True):
            size = source.sum(share_cells, share, len(names[0]) * len(rows.classes))
            if not size.any():
                raise InputError("no_rows_left", what=what)
            z, y = np.divmod(np.flatnonzero(size), len(names[1]))
            if what == "to fit to":
                check_fitted(z, y, names)
            elif n == 1:
                check_held_out(z, rows.groups.tolist(), settings.none_held_out)
    return parts


def _count(
    points: Frontier,
    trajectory: Trajectory,
    rows: CodedRows,
    settings: Settings,
    left_out: LeftOut | None = None,
) -> NDArray[np.float64]:
    """Count what the points, and behind them the last iterate, predict for other rows."""
    n_groups_all = len(rows.groups) + bool(rows.small)
    source = _source(rows, settings)
    return count_rows(points, trajectory.iterates, source, n_groups_all, left_out)


def _measure(
    run: Run,
    rows: CodedRows,
    n_fitted: int,
    settings: Settings,
    targets: Sequence[Target],
    left_out: LeftOut | None = None,
) -> list[HeldOut | None]:
    """Measure the points for each target on held-out rows, or on those fitted to, ``left_out``."""
    certified, measured = settings.certifies, list[HeldOut | None]()
    for k, (target, frontier) in enumerate(zip(targets, run.frontiers, strict=True)):
        points = candidates(frontier) if certified or settings.margin else frontier
        counts = _count(points, run.trajectory, rows, settings, left_out)
        if certified:
            # Weights, if there are any, are all alike; the bounds count rows.
            counts = np.rint(counts * (rows.n_rows / counts[-1].sum()))
        about = {"n_rows": rows.n_rows, "n_fitted": n_fitted}
        # Bounds for the other comparison take their time, and are made when it is asked for.
        delta = None if k else settings.delta_asked
        measured.append(HeldOut.from_counts(points, counts, target, delta=delta, **about))
    return measured


def _cross_fit(
    run: Run,
    rows: CodedRows,
    parts: list[Any],
    view: View,
    settings: Settings,
    targets: Sequence[Target],
) -> tuple[list[HeldOut | None], InputWarning | None]:
    """Measure the points for each target out of fold; say as well what went wrong in the folds."""
    done: list[list[tuple[Frontier, NDArray[np.float64]]]] = []
    trouble: InputWarning | None = None
    n_rows = 0
    try:
        for part in [] if run.interrupted else parts:
            pairs, n_held, later = _fold(*view(*part), settings, targets)
            done.append(pairs)
            trouble, n_rows = later or trouble, n_rows + n_held
    except KeyboardInterrupt:
        trouble = InputWarning("interrupted_folds", n=len(done), n_folds=len(parts))
    about: dict[str, Any] = {"delta": None, "n_rows": n_rows, "n_fitted": rows.n_rows}
    return [
        HeldOut.from_counts(frontier, pool_folds(frontier, [p[k] for p in done]), target, **about)
        for k, (target, frontier) in enumerate(zip(targets, run.frontiers, strict=True))
    ], trouble


def _fold(
    fitted: CodedRows, held: CodedRows, settings: Settings, targets: Sequence[Target]
) -> tuple[list[tuple[Frontier, NDArray[np.float64]]], int, InputWarning | None]:
    """Fit to some rows and count on the others, copies that are gone before the next fold."""
    run = _explore(make_oracle(fitted, settings), settings, fitted, targets)
    if run.interrupted:
        raise KeyboardInterrupt
    pairs = [(f, _count(f, run.trajectory, held, settings)) for f in run.frontiers]
    return pairs, held.n_rows, run.trouble
