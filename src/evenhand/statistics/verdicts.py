r"""Verdicts on a target, defined once: what the rows show, and what they prove of the population.

Two questions, two answers, and never one word for both:

- the *rule*: does the value of these rows reach the level? It is **met** or **not met**. The
  four-fifths rule is of this kind.
- the *population*: does the value reach the level among all people whom the rows were drawn from?
  It **holds** or **fails**, each with the confidence :math:`1 - \delta` that was asked for, or
  **cannot be told** from these rows:

  .. math:: L \ge \ell: \text{holds}, \qquad U < \ell: \text{fails},

  with L and U the exact ends of :mod:`evenhand.statistics.intervals`, each of error δ. Only one of
  the two can be wrong, whatever the truth is, so a verdict is wrong with probability δ at most. A
  certificate of δ says of held-out rows what a verdict that holds says of these.
"""

from dataclasses import asdict, dataclass, replace
from math import ceil, floor, log10
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.arrays import FloatArray
from evenhand.core.targets import Target, reaches
from evenhand.statistics.bounds import rows_factor
from evenhand.statistics.intervals import population_ends, upper_end

__all__ = ["CONFIDENCE", "FAILS", "HOLDS", "UNTOLD", "Verdict", "judge"]

CONFIDENCE = 0.95
HOLDS, FAILS, UNTOLD = "holds", "fails", "cannot be told"
# No larger number of rows in all is said to be needed.
MOST_ROWS = 1e7


@dataclass(frozen=True)
class Verdict:
    """What rows show of a target, and what they prove.

    Parameters
    ----------
    value, level : float or None, float
        The target's value among the rows, None if it is not defined, and the least that will do.
    judged : bool
        Whether no missing labels could put the value on the other side of the level.
    confidence : float
        Of what is said of the population.
    at_least, at_most : float or None
        What the value in the population is at least, and at most, each with this confidence. None
        where nothing exact is known: of weighted rows, or where labels are missing for a reason.
    rows_needed : int or None
        If it cannot be told: about how many rows like these, at the same rates, would tell. None if
        no number would, because the value is at the level, or if only far too many would.
    """

    value: float | None
    level: float
    judged: bool = True
    confidence: float = CONFIDENCE
    at_least: float | None = None
    at_most: float | None = None
    rows_needed: int | None = None

    @property
    def met(self) -> bool | None:
        """Whether the rule is met, which is about the rows themselves; None: not judged."""
        known = self.judged and self.value is not None
        return reaches(self.value, self.level) if known else None

    @property
    def population(self) -> str:
        """Whether the target holds or fails in the population, or cannot be told."""
        if reaches(self.at_least, self.level):
            return HOLDS
        failed = self.at_most is not None and not reaches(self.at_most, self.level)
        return FAILS if failed else UNTOLD

    def plain(self) -> dict[str, Any]:
        """Give the verdict as plain values, with both answers in words."""
        rule = {True: "met", False: "not met", None: "cannot be judged"}[self.met]
        return {"rule": rule, "population": self.population} | asdict(self)


def judge(
    target: Target,
    counts: ArrayLike,
    confidence: float = CONFIDENCE,
    *,
    judged: bool = True,
    drawn: bool = True,
) -> Verdict:
    """Judge a target by counts of rows that no model was fitted to or chosen by.

    Parameters
    ----------
    target : Target
        The rate or rates, the comparison and its level.
    counts, confidence
        As of :func:`~evenhand.statistics.intervals.population_ends`.
    judged : bool
        As of :class:`Verdict`.
    drawn : bool
        Whether the rows are independent draws from the population.

    Examples
    --------
    >>> from evenhand.core.rates import RATES
    >>> from evenhand.core.targets import Target
    >>> from evenhand.statistics.verdicts import judge
    >>> counts = [[[0, 0], [10, 10]], [[0, 0], [11, 9]]]
    >>> verdict = judge(Target(RATES["selection_rate"], 0.8), counts)
    >>> verdict.value, verdict.met, verdict.population, verdict.rows_needed
    (0.9, True, 'cannot be told', 920)
    """
    value = float(target.value(counts))
    proof = judged and drawn
    ends = population_ends(target, counts, confidence) if proof else (None, None)
    known = value if value == value else None
    verdict = Verdict(known, target.level, judged, confidence, *ends)
    if verdict.at_least is None or verdict.population != UNTOLD:
        return verdict
    needed = _rows_needed(target, np.asarray(counts, dtype=float), value, confidence)
    return replace(verdict, rows_needed=needed)


def _rows_needed(target: Target, counts: FloatArray, value: float, sure: float) -> int | None:
    """Find about how many rows at the same rates would tell, on the side where the value is."""
    rows, error = counts.sum(), round(1 - sure, 12)

    def fails(factor: float) -> bool:
        scaled = np.rint(factor * counts)  # the tests take whole rows
        return not reaches(upper_end(target, scaled, error), target.level)

    low = high = rows_factor(counts, target, error) if value > target.level else 1.0
    while value < target.level and high * rows <= MOST_ROWS and not fails(high):
        low, high = high, 2 * high
    while high > 1.03 * low:
        middle = (low * high) ** 0.5
        low, high = (low, middle) if fails(middle) else (middle, high)
    if value == target.level or high * rows > MOST_ROWS:
        return None
    unit = 10 ** max(floor(log10(high * rows)) - 1, 0)
    return ceil(high * rows / unit) * unit
