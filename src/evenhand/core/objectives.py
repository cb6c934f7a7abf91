r"""Objectives: what a fit maximises, a linear function of the counts.

With :math:`n_{ya}` the weight of the rows of label y that are answered a, n all rows, and
:math:`g_{ya}` what such an answer earns, a decision is worth

.. math:: v = \frac{1}{n} \sum_{ya} g_{ya}\, n_{ya}.

Of two labels only :math:`c_y = g_{yy} - g_{y\bar y}`, what the right answer earns more than the
wrong one, tells classifiers apart: v is a constant and :math:`\sum_y c_y n_{yy} / n`. So an
objective is an accuracy for which rows of label y weigh :math:`c_y`, and whoever chooses among
classifiers has the *utility*, from 0, all wrong, to 1, all right:

.. math:: u = \frac{\sum_y c_y\, n_{yy}}{\sum_y c_y\, n_y}.

It is the accuracy for :math:`c_y = 1`, and the balanced accuracy for :math:`c_y = 1 / n_y`.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import floor, isfinite, log10
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.rates import overall_accuracy

__all__ = ["ACCURACY", "OUTCOMES", "Objective", "find_objective"]

# What outcomes of a decision between two labels cost or earn: label, answer, the sign of a profit.
OUTCOMES = {
    "cost_fp": (0, 1, -1.0, "a false positive"),
    "cost_fn": (1, 0, -1.0, "a false negative"),
    "profit_tp": (1, 1, 1.0, "a true positive"),
    "profit_tn": (0, 0, 1.0, "a true negative"),
}


@dataclass(frozen=True)
class Objective:
    r"""What is maximised.

    Parameters
    ----------
    name : {"accuracy", "balanced_accuracy", "profit"}
        What the value is.
    gains : tuple of tuple of float, optional
        Of a profit :math:`g_{ya}`, label × answer, of two labels.

    Examples
    --------
    >>> from evenhand.core.objectives import find_objective
    >>> loans = find_objective({"cost_fp": 5, "profit_tp": 1}, 2)
    >>> counts = [[[60, 4], [10, 26]]]  # 26 good loans and 4 bad ones in 100 decisions
    >>> float(loans.value(counts)), round(float(loans.utility(counts)), 4)
    (0.06, 0.9157)
    """

    name: str = "accuracy"
    gains: tuple[tuple[float, float], tuple[float, float]] = ((1.0, 0.0), (0.0, 1.0))

    def worths(self, totals: ArrayLike) -> FloatArray:
        r"""Give :math:`c_y` for each label, 1 for the mean row.

        Parameters
        ----------
        totals : array-like of shape (..., n_labels)
            Weight of the rows of each label. A label that no row has is worth nothing in a balanced
            accuracy, which is the mean over the others.
        """
        n = np.asarray(totals, dtype=np.float64)
        if self.name == "accuracy":
            return np.ones_like(n)
        if self.name == "profit":
            gains = np.asarray(self.gains)
            worth = np.broadcast_to(np.diag(gains) - np.diag(gains[:, ::-1]), n.shape)
        else:
            worth = np.divide(1.0, n, out=np.zeros_like(n), where=n > 0)
        weight = (worth * n).sum(axis=-1, keepdims=True)
        mean = np.divide(weight, n.sum(axis=-1, keepdims=True), out=weight + 1, where=weight > 0)
        return np.asarray(worth / mean)

    def utility(self, counts: ArrayLike) -> FloatArray:
        """Give the utility of counts, shape (..., n_groups, n_labels, n_labels)."""
        if self.name == "accuracy":
            return overall_accuracy(counts)
        c = np.asarray(counts, dtype=np.float64).sum(axis=-3)
        n, right = c.sum(axis=-1), np.diagonal(c, axis1=-2, axis2=-1)
        worth, total = self.worths(n), n.sum(axis=-1)
        earned = (worth * right).sum(axis=-1)
        return np.divide(earned, total, out=np.full_like(total, np.nan), where=total > 0)

    def value(self, counts: ArrayLike) -> FloatArray:
        """Give what people read: the utility, or the profit of a decision in their own units."""
        if self.name != "profit":
            return self.utility(counts)
        c = np.asarray(counts, dtype=np.float64).sum(axis=-3)
        total = c.sum(axis=(-2, -1))
        earned = (c * np.asarray(self.gains)).sum(axis=(-2, -1))
        return np.divide(earned, total, out=np.full_like(total, np.nan), where=total > 0)

    @property
    def per(self) -> float:
        """How much a shown value is of: a profit is shown of a thousand decisions."""
        return 1000.0 if self.name == "profit" else 1.0

    @property
    def words(self) -> str:
        """Name the value, as it is shown."""
        return self.name.replace("_", " ") + " per 1,000 decisions" * (self.per != 1)

    @property
    def digits(self) -> int:
        """Decimals of a thousand decisions' profit that show a ten-thousandth of an outcome's."""
        return min(max(1 - floor(log10(np.abs(self.gains).max())), 0), 6)

    def text(self, value: float, percent: Callable[[float], str] = "{:.1%}".format) -> str:
        """Say what a value is, behind whoever has it; ``percent`` writes a share.

        Examples
        --------
        >>> from evenhand.core.objectives import ACCURACY, find_objective
        >>> ACCURACY.text(0.8), find_objective({"cost_fp": 1, "cost_fn": 5}, 2).text(-0.25)
        ('is right for 80.0%', 'costs 250.0 per 1,000 decisions')
        """
        if self.name == "profit":
            scale = 10**self.digits  # halves upwards, as screens and pages write numbers
            rounded = floor(self.per * abs(value) * scale + 0.5) / scale
            amount = f"{rounded:,.{self.digits}f}"
            return f"{'costs' if value < 0 else 'earns'} {amount} per 1,000 decisions"
        how = "is right for" if self.name == "accuracy" else f"has a {self.words} of"
        return f"{how} {percent(value)}"

    def than(self, value: float, constant: float) -> str:
        """Say how a value that is not clearly better compares with one answer to everybody's."""
        worse, better = ("worse", "better") if self.name == "profit" else ("less", "more")
        return f"not clearly {better}" if value >= constant else worse

    def best_for_everybody(self, counts: ArrayLike) -> tuple[int, float, float]:
        """Give the label that is the best as everybody's answer, its utility and its value.

        Counts are of shape (n_groups, n_labels, n_labels). Of labels that are equally good it is
        the commonest.
        """
        n = np.asarray(counts, dtype=np.float64).sum(axis=(0, 2))
        one = np.eye(len(n))[:, None, None, :] * n[:, None]  # answer × group × label × answer
        utility = self.utility(one)
        best = int(np.lexsort((n, utility.round(12)))[-1])
        return best, float(utility[best]), float(self.value(one)[best])


ACCURACY = Objective()
"""The share of right answers."""


def find_objective(objective: Any, n_labels: int) -> Objective:
    """Find what is maximised: a name, or the costs and profits of outcomes by name.

    Parameters
    ----------
    objective : str or mapping of str to float
        ``"accuracy"``, ``"balanced_accuracy"``, or some of ``OUTCOMES``; others are 0.
    n_labels : int
        How many labels there are.
    """
    told = Parameter("objective", objective)
    outcomes = {name: Parameter(name) for name in OUTCOMES}
    if not isinstance(objective, Mapping):
        if objective not in ("accuracy", "balanced_accuracy"):
            raise InputError("unknown_objective", objective=told, **outcomes)
        return Objective(objective)
    gains = np.zeros((2, 2))
    for name, amount in objective.items():
        if name not in OUTCOMES:
            raise InputError("unknown_outcome", name=name, known=", ".join(OUTCOMES))
        number = isinstance(amount, Real) and not isinstance(amount, bool)
        if not number or not isfinite(float(amount)):
            raise InputError("bad_outcome", outcome=Parameter("objective", {name: amount}))
        y, answer, sign, _ = OUTCOMES[name]
        gains[y, answer] = sign * float(amount)
    if n_labels > 2:
        balanced = Parameter("objective", "balanced_accuracy")
        raise InputError("outcomes_of_two_labels", objective=told, n=n_labels, balanced=balanced)
    # What the right answer is worth over the wrong one, of the other label and the favourable one.
    other, good = gains[0, 0] - gains[0, 1], gains[1, 1] - gains[1, 0]
    if max(other, good) <= 0:
        raise InputError("equal_answers", objective=told, **outcomes)
    if min(other, good) <= 0:
        best = "the favourable answer" if good > 0 else "the other answer"
        raise InputError("best_for_everybody", objective=told, best=best)
    (tn, fp), (fn, tp) = gains.tolist()
    return Objective("profit", ((tn, fp), (fn, tp)))
