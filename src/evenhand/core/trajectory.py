"""The record of a run: a row per iteration, and the iterates that are kept."""

from collections.abc import Sequence
from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.rates import AnyRate, overall_accuracy
from evenhand.core.solvers import Iteration
from evenhand.core.targets import READ, Target


class Kept(NamedTuple):
    """An iterate that is kept, after the step of a row, and what found it."""

    row: int
    iterate: NDArray[Any]
    source: str


class Trajectory:
    """What happened in a fit, leg by leg.

    Parameters
    ----------
    rate : Rate or WorstRate
        The rate whose ratio between the groups is recorded.
    n_groups : int, default=2
        How many groups, from the first, are compared.
    kept : sequence of (int, ndarray, str), default=()
        Iterates that are kept already: after which step, the weights, the source.

    Attributes
    ----------
    steps : list of dict
        Leg, losses, norms and counts of each iteration.
    iterates : ndarray of shape (n_iterates, n_weights)
        The kept iterates, oldest first; the last weight is the extra column's.
    iterate_rows : ndarray of shape (n_iterates,)
        The row of :meth:`to_frame` after which each of them is kept; −1 for a start before any.
    sources : tuple of str
        What found each of them: ``"optimum"``, ``"solver"``, a source of candidates
        (:mod:`evenhand.core.directions`), or ``"rules"`` of boosted estimates.
    """

    def __init__(
        self, rate: AnyRate, n_groups: int = 2, kept: Sequence[tuple[int, NDArray[Any], str]] = ()
    ) -> None:
        self._rate, self._n_groups = rate, n_groups
        self.steps: list[dict[str, Any]] = []
        self._kept = [Kept(*one) for one in kept]
        self._last: NDArray[np.float64] | None = None
        self._start = perf_counter()

    def add(self, leg: str, iteration: Iteration, *, keep: bool) -> None:
        """Record an iteration, and its iterate if ``keep``."""
        m = iteration.moments
        with np.errstate(over="ignore"):
            norms = [float(np.linalg.norm(v)) for v in (m.grad_c, m.grad_f, iteration.direction)]
        self.steps.append(
            {
                "leg": leg,
                "iteration": iteration.t,
                "alpha": iteration.alpha,
                "loss_c": m.loss_c,
                "loss_w": m.loss_w,
                "loss_u": m.loss_u,
                "gap": m.gap,
                "norm_c": norms[0],
                "norm_f": norms[1],
                "norm_step": norms[2],
                "counts": m.counts,
                "evaluations": iteration.evaluations,
                "seconds": perf_counter() - self._start,
            }
        )
        self._last = iteration.q
        if keep:
            self.keep()

    def keep(self, iterate: NDArray[np.float64] | None = None, source: str = "solver") -> None:
        """Keep an iterate, by default the latest iteration's if it is not kept yet."""
        row = len(self.steps) - 1
        if iterate is None and self._kept and self._kept[-1].row == row:
            return
        iterate = self._last if iterate is None else iterate
        if iterate is not None:
            self._kept.append(Kept(row, iterate, source))

    @property
    def iterates(self) -> NDArray[np.float64]:
        """The kept iterates, oldest first."""
        return np.array([one.iterate for one in self._kept])

    def iterate(self, i: int) -> NDArray[np.float64]:
        """One of the kept iterates, without a copy of all."""
        return self._kept[i].iterate

    @property
    def iterate_rows(self) -> NDArray[np.intp]:
        """Row of :meth:`to_frame` for each kept iterate."""
        return np.array([one.row for one in self._kept], dtype=np.intp)

    @property
    def sources(self) -> tuple[str, ...]:
        """What found each kept iterate."""
        return tuple(one.source for one in self._kept)

    def __len__(self) -> int:
        return len(self.steps)

    def latest(self) -> tuple[float, float, float]:
        """Classification loss, accuracy and rate at the latest evaluated point."""
        row = self.steps[-1]
        counts = row["counts"]
        accuracy = overall_accuracy(counts)
        rate = self._rate.ratio(counts[: self._n_groups])
        return row["loss_c"], float(accuracy), float(rate)

    def values(self, target: Target) -> NDArray[np.float64]:
        """Measure each iteration by a target, as people read it: a difference as it is."""
        if not self.steps:
            return np.empty(0)
        counts = np.stack([row["counts"] for row in self.steps])
        return READ[target.comparison][1] * target.value(counts[:, : self._n_groups])

    def to_frame(self) -> pd.DataFrame:
        """One row per iteration.

        Losses, gap, norms, accuracy and rate are those at the point where the iteration evaluated
        (p of AGD+), which is not quite the iterate it ended with (q). The rate is the ratio between
        the groups whatever the target (:meth:`values` goes by that). ``evaluations`` counts passes
        over the data so far; counts of group j, label y and prediction p are in ``n_<j><y><p>``,
        rows in no compared group last.
        """
        frame = pd.DataFrame(self.steps)
        if frame.empty:
            return frame
        counts = np.stack(frame.pop("counts").to_list())
        evaluations, seconds = frame.pop("evaluations"), frame.pop("seconds")
        frame["accuracy"] = overall_accuracy(counts)
        frame["rate"] = self._rate.ratio(counts[:, : self._n_groups])
        cells = {f"n_{j}{y}{p}": counts[:, j, y, p] for j, y, p in np.ndindex(counts.shape[1:])}
        more = {**cells, "evaluations": evaluations.cumsum(), "seconds": seconds}
        return pd.concat([frame, pd.DataFrame(more, index=frame.index)], axis=1)
