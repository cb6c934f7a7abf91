r"""Exact intervals of how far groups are apart, for any number of groups and rates.

Of groups :math:`1 \dots K` with rates :math:`p_j` let :math:`\theta_{jk} = p_j / p_k`, and let
:math:`L_{jk}(\epsilon)` be the bound of an exact test (:mod:`evenhand.statistics.exact`): it is
above :math:`\theta_{jk}` with probability ε at most. The value, smallest over largest rate, is
:math:`v = \min_{j \ne k} \theta_{jk}`, that of one pair :math:`(j^*, k^*)`, which nobody knows.

*Lower end*, :math:`\min_{j \ne k} L_{jk}(\epsilon)`: it is above v only if
:math:`L_{j^* k^*} > \theta_{j^* k^*}`, probability ε (intersection-union: every ordered pair must
reject, and none costs more).

*Upper end*, :math:`\min(1, \min_{j \ne k} 1 / L_{kj}(\epsilon'))`: it is below v only if
:math:`1 / L_{kj} < v \le \theta_{jk}` for some pair, so that :math:`L_{kj} > \theta_{kj}`. Of
these :math:`m = K (K - 1)` events one suffices: :math:`\epsilon' = \epsilon / m`
(union-intersection, Bonferroni).

*Both together* with error α: :math:`\epsilon = \alpha / 2` and
:math:`\epsilon' = \alpha / (2 m)`. Of two groups and one rate :math:`\epsilon' = \alpha / 2` does,
the usual interval of a ratio, folded at 1: one of the two events, that of :math:`(j^*, k^*)`, is
then the lower end's own. (With another ε′ it is no part of it, since the order of outcomes depends
on the error.) Where rates are equal no pair rejects with probability :math:`1 - \alpha` at least,
and the interval ends at 1.

Of R rates that must all hold v is the smallest over its share, and m is R K (K - 1). Of differences
:math:`v = \min_{j \ne k} p_j - p_k`; 0 takes the place of 1, and :math:`-L_{kj}` that of
:math:`1 / L_{kj}`. Of mixed targets each rate has its own, brought to the target's scale.
"""

from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from evenhand.core.errors import InputError, Parameter
from evenhand.core.metrics import group_counts
from evenhand.core.rates import EQUALIZED_ODDS, RATES
from evenhand.core.targets import Target
from evenhand.statistics.bounds import exact_bound
from evenhand.statistics.exact import lower_bound, score_limit

__all__ = ["check_confidence", "difference_interval", "population_ends", "ratio_interval"]

# Of each comparison, as a target measures it, the value of equal rates, which is the largest.
PARITY = {"ratio": 1.0, "difference": 0.0}


def lower_end(target: Target, counts: ArrayLike, error: float) -> float:
    """Give what the target's value is at least, wrong with a probability of ``error``.

    NaN where a group's rate is undefined or there is one group only.
    """
    return float(exact_bound(counts, target, error))


def upper_end(target: Target, counts: ArrayLike, error: float, *, less: int = 0) -> float:
    """Give what the target's value is at most; as :func:`lower_end`.

    ``less`` is by how many the number of pairs, by which the error is divided, is lowered if there
    are two of them.
    """
    sizes = [len(rate.fractions(counts)[1]) for rate in target.rate.components]
    if min(sizes) < 2:
        return float("nan")
    error /= (n := sum(size * (size - 1) for size in sizes)) - less * (n == 2)
    found, parity, quantile = [], target.worst + 1, -float(ndtri(error))
    scales = zip(target.kinds, target.offsets, target.rate.shares, strict=True)
    for rate, (kind, offset, share) in zip(target.rate.components, scales, strict=True):
        top, bottom = rate.fractions(counts)
        if not bottom.all():
            return float("nan")
        j, k = np.nonzero(~np.eye(len(bottom), dtype=bool))
        seen, difference = [(of[j], of[k]) for of in (top, bottom)], kind == "difference"
        limits = score_limit(*seen, difference=difference, quantile=quantile)
        with np.errstate(divide="ignore"):
            ends = ((0.0 - limits if difference else 1 / limits) + offset) / share
        i = int(np.argmin(ends))
        pair = [(int(a[i]), int(b[i])) for a, b in seen]
        found.append((float(ends[i]), pair, kind, offset, share))
    # Only the pair that stands out the most is looked at: leaving others out keeps the end valid.
    _, (hits, trials), kind, offset, share = min(found)
    bound = lower_bound(hits, trials, error, kind)
    if bound <= 0:
        return parity
    return min(((-bound if kind == "difference" else 1 / bound) + offset) / share, parity)


def population_ends(
    target: Target, counts: ArrayLike, confidence: float
) -> tuple[float | None, float | None]:
    """Give what the target's value in the population is at least and at most, each so surely.

    Parameters
    ----------
    target : Target
        The rate or rates, and how groups are compared.
    counts : array-like of shape (n_groups, n_labels, n_labels)
        Rows per group × label × prediction, without weights.
    confidence : float
        That of each end by itself.

    Returns
    -------
    tuple of (float, float)
        None each, of a value that is not defined among the rows.
    """
    if not np.isfinite(target.value(counts)):
        return None, None
    error = round(1 - confidence, 12)
    return lower_end(target, counts, error), upper_end(target, counts, error)


def check_confidence(confidence: float) -> None:
    """Refuse what is no confidence."""
    if not (isinstance(confidence, Real) and 0.5 <= confidence < 1):
        given = Parameter("confidence", confidence)
        raise InputError("confidence_out_of_range", confidence=given)


_DOC = """Exact interval of the {what} in the population; {parity} is parity.

    For independent rows without weights, and any number of groups
    (:mod:`evenhand.statistics.intervals` has the argument). Among rows that a model was fitted to,
    or chosen by, it is not valid: they suit the model better than others do.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Two-valued labels and predictions.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row, of any type and number.
    rate : str or Rate or WorstRate, default="selection_rate"
        A name in :data:`evenhand.RATES`, or ``"equalized_odds"``: the worse of two rates.
    confidence : float, default=0.95
        The probability with which the interval, or each of its ends, is right.
    sides : {{2, 1}}, default=2
        2: both ends are right together with this confidence. 1: each end by itself, for whoever
        asks only for what the {what} is at least, or only for what it is at most.
    sample_weight : None
        Weighted rows stand for an unknown number of others, so there is no exact interval of them:
        anything but None is refused.
    pos_label : label, optional
        The favourable label. Needed unless labels are 0/1, -1/1, booleans or true/false.

    Returns
    -------
    tuple of (float, float)
        Lower and upper end, in [0, 1]; NaN if a group has no row that the rate is of, or if it is
        the only one.

    Examples
    --------
    >>> from evenhand import {name}
    >>> y = [1] * 10 + [0] * 10 + [1] * 9 + [0] * 11
    >>> low, high = {name}(y, y, sensitive_features=["a"] * 20 + ["b"] * 20)
    >>> print(f"{{low:.2f}} to {{high:.2f}}")
    {shown}
    """


def _interval(comparison: str, what: str, shown: str) -> Any:
    """Make the public function of a comparison."""

    def interval(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        rate: Any = "selection_rate",
        confidence: float = 0.95,
        sides: int = 2,
        sample_weight: None = None,
        pos_label: Any = None,
    ) -> tuple[float, float]:
        rates = RATES | {EQUALIZED_ODDS.name: EQUALIZED_ODDS}
        if isinstance(rate, str) and rate not in rates:
            names = ", ".join(map(repr, rates))
            raise InputError("unknown_rate", rate=Parameter("rate", rate), names=names)
        if sample_weight is not None:
            raise InputError("interval_with_weights", weights=Parameter("sample_weight"))
        check_confidence(confidence)
        if sides not in (1, 2):
            raise InputError("bad_sides", sides=Parameter("sides", sides))
        given = {"sensitive_features": sensitive_features, "pos_label": pos_label}
        _, counts = group_counts(y_true, y_pred, **given)
        target = Target(rates[rate] if isinstance(rate, str) else rate, np.nan, comparison)
        error = round(1 - confidence, 12) / sides
        low = lower_end(target, counts, error)
        high = upper_end(target, counts, error, less=sides - 1)
        return (0.0 - high, 0.0 - low) if comparison == "difference" else (low, high)

    interval.__name__ = interval.__qualname__ = f"{comparison}_interval"
    words = {"what": what, "parity": f"{PARITY[comparison]:g}", "shown": shown}
    interval.__doc__ = _DOC.format(name=interval.__name__, **words)
    return interval


ratio_interval = _interval("ratio", "smallest over the largest rate", "0.32 to 1.00")
difference_interval = _interval("difference", "largest less the smallest rate", "0.00 to 0.37")
