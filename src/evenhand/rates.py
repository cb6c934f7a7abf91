"""Counts per group, the rates they give, and how far the groups are apart.

Everything here is a function of one array of counts with shape ``(..., n_groups, 2, 2)``: group ×
true label × predicted label. A rate is a ratio of two sums of its cells, so one row of a table
defines it; leading dimensions are free, which is how the frontier evaluates thousands of cuts at
once.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike, NDArray
from scipy.sparse import issparse
from sklearn.utils.validation import check_consistent_length, column_or_1d

__all__ = [
    "RATES",
    "Rate",
    "accuracy_difference",
    "accuracy_ratio",
    "equalized_odds_difference",
    "equalized_odds_ratio",
    "false_discovery_rate_difference",
    "false_discovery_rate_ratio",
    "false_negative_rate_difference",
    "false_negative_rate_ratio",
    "false_omission_rate_difference",
    "false_omission_rate_ratio",
    "false_positive_rate_difference",
    "false_positive_rate_ratio",
    "group_codes",
    "group_counts",
    "group_rates",
    "negative_predictive_value_difference",
    "negative_predictive_value_ratio",
    "positive_predictive_value_difference",
    "positive_predictive_value_ratio",
    "statistical_parity_difference",
    "statistical_rate",
    "true_negative_rate_difference",
    "true_negative_rate_ratio",
    "true_positive_rate_difference",
    "true_positive_rate_ratio",
]

FloatArray = NDArray[np.floating[Any]]


@dataclass(frozen=True)
class Rate:
    r"""A rate per group, :math:`r_j = \sum_{(y, \hat y) \in A} c_{j y \hat y} \big/ \sum_{(y, \hat y) \in B} c_{j y \hat y}`.

    Parameters
    ----------
    name : str
        The rate's name in tables.
    numerator, denominator : tuple of (int, int)
        The cells (true label, predicted label) of A and of B.
    is_error : bool
        Whether 0 is the best value. When every group's rate is 0, the ratio of an error rate is 1 (all
        are perfect) and that of any other rate is undefined (nobody gets anything).
    """  # noqa: E501

    name: str
    numerator: tuple[tuple[int, int], ...]
    denominator: tuple[tuple[int, int], ...]
    is_error: bool = False

    @property
    def parts(self) -> tuple[Rate, ...]:
        """The rate itself, as :class:`WorstRate` has several."""
        return (self,)

    @property
    def ratio_name(self) -> str:
        """The ratio's name in words."""
        if self.name == "selection_rate":
            return "statistical rate"
        return f"{self.name.replace('_', ' ')} ratio"

    @property
    def fixed_denominator(self) -> bool:
        """Whether predictions do not change the denominator: the rate is linear in them then."""
        n_labels = 1 + max(max(cell) for cell in self.denominator)
        return len(self.denominator) == n_labels * len({y for y, _ in self.denominator})

    def of_label(self, label: int, n_labels: int) -> Rate:
        """Give the same rate of one label among many against all the others together.

        Counts then have shape ``(..., n_groups, n_labels, n_labels)``.
        """
        if (label, n_labels) == (1, 2):
            return self

        def cells(of_two: tuple[tuple[int, int], ...]) -> tuple[tuple[int, int], ...]:
            every = product(range(n_labels), repeat=2)
            return tuple((y, p) for y, p in every if (y == label, p == label) in of_two)

        return replace(self, numerator=cells(self.numerator), denominator=cells(self.denominator))

    def _fractions(self, counts: ArrayLike) -> tuple[FloatArray, FloatArray]:
        """Numerator and denominator of each group's rate."""
        c = np.asarray(counts, dtype=np.float64)
        top = sum(c[..., y, p] for y, p in self.numerator)
        bottom = sum(c[..., y, p] for y, p in self.denominator)
        return np.asarray(top), np.asarray(bottom)

    def per_group(self, counts: ArrayLike) -> FloatArray:
        """Rate of each group, shape ``(..., n_groups)``; NaN where the denominator is empty."""
        top, bottom = self._fractions(counts)
        # full_like keeps the memory order of the counts, which is what makes long sweeps fast
        return np.divide(top, bottom, out=np.full_like(bottom, np.nan), where=bottom > 0)

    def ratio(self, counts: ArrayLike) -> FloatArray:
        r"""Smallest over largest group rate, :math:`\min_j r_j / \max_j r_j`.

        NaN if a group's rate is undefined or there is one group only. All rates 0: 1 for an error
        rate, NaN otherwise.
        """
        # Fractions are compared and divided by cross-multiplication: 36/100 to 45/100 is 0.8, while
        # the quotient of the two quotients would be a hair less.
        top, bottom = (np.moveaxis(v, -1, 0) for v in self._fractions(counts))
        (low, low_b), (high, high_b) = (top[0], bottom[0]), (top[0], bottom[0])
        for t, b in zip(top[1:], bottom[1:], strict=True):
            less, more = t * low_b < low * b, t * high_b > high * b
            low, low_b = np.where(less, t, low), np.where(less, b, low_b)
            high, high_b = np.where(more, t, high), np.where(more, b, high_b)
        defined = (bottom > 0).all(axis=0) & (len(top) > 1)
        out = np.where(defined & self.is_error, 1.0, np.nan)
        return np.divide(low * high_b, low_b * high, out=out, where=defined & (high > 0))

    def log_ratio_error(self, counts: ArrayLike) -> FloatArray:
        r"""Give the standard error of the logarithm of the ratio.

        .. math:: \sigma^2 = \sum_j \frac{1}{a_j + 1/2} - \frac{1}{b_j + 1/2},

        with :math:`r_j = a_j / b_j` in counts of rows, the sum over the two groups whose terms are
        largest.
        """
        top, bottom = (np.moveaxis(v, -1, 0) for v in self._fractions(counts))
        variance = 1 / (top + 0.5) - 1 / (bottom + 0.5)
        if len(variance) > 2:
            variance = np.partition(variance, -2, axis=0)[-2:]
        return np.sqrt(np.maximum(variance.sum(axis=0), 0.0))

    def difference(self, counts: ArrayLike) -> FloatArray:
        r"""Largest less smallest group rate, :math:`\max_j r_j - \min_j r_j`.

        NaN if a group's rate is undefined or there is one group only.
        """
        r = self.per_group(counts)
        return r.max(axis=-1) - r.min(axis=-1) if r.shape[-1] > 1 else r[..., 0] * np.nan


@dataclass(frozen=True)
class WorstRate:
    r"""Several rates of which all must be alike between groups: the worst of their ratios counts.

    .. math:: \min\Big(1, \min_k \frac{1}{c_k} \frac{\min_j r_{kj}}{\max_j r_{kj}}\Big)

    Parameters
    ----------
    name : str
        Its name in tables.
    parts : tuple of Rate
        The rates.
    shares : tuple of float, optional
        :math:`c_k` in (0, 1]: the share of the target that rate k must reach; 1 each by default.
    """

    name: str
    parts: tuple[Rate, ...]
    shares: tuple[float, ...] = ()

    @property
    def ratio_name(self) -> str:
        """The ratio's name in words."""
        return f"{self.name.replace('_', ' ')} ratio"

    def of_label(self, label: int, n_labels: int) -> WorstRate:
        """Give the same rates of one label among many against all the others together."""
        return replace(self, parts=tuple(part.of_label(label, n_labels) for part in self.parts))

    def _ratios(self, counts: ArrayLike) -> FloatArray:
        ratios = np.stack([part.ratio(counts) for part in self.parts])
        if self.shares:
            ratios /= np.reshape(self.shares, (-1,) + (1,) * (ratios.ndim - 1))
        return np.minimum(ratios, 1.0)

    def ratio(self, counts: ArrayLike) -> FloatArray:
        """Smallest of the ratios, each over its share; NaN if one is undefined."""
        return np.asarray(self._ratios(counts).min(axis=0))

    def log_ratio_error(self, counts: ArrayLike) -> FloatArray:
        """Give the standard error of the logarithm of the ratio that is the worst."""
        worst = np.argmin(self._ratios(counts), axis=0)
        errors = np.stack([part.log_ratio_error(counts) for part in self.parts])
        return np.asarray(np.take_along_axis(errors, worst[None], axis=0)[0])

    def difference(self, counts: ArrayLike) -> FloatArray:
        """Largest of the differences."""
        return np.asarray(np.stack([part.difference(counts) for part in self.parts]).max(axis=0))


AnyRate = Rate | WorstRate

_TN, _FP, _FN, _TP = (0, 0), (0, 1), (1, 0), (1, 1)

RATES: dict[str, Rate] = {
    rate.name: rate
    for rate in (
        Rate("selection_rate", (_FP, _TP), (_TN, _FP, _FN, _TP)),
        Rate("accuracy", (_TN, _TP), (_TN, _FP, _FN, _TP)),
        Rate("true_positive_rate", (_TP,), (_FN, _TP)),
        Rate("false_positive_rate", (_FP,), (_TN, _FP), is_error=True),
        Rate("true_negative_rate", (_TN,), (_TN, _FP)),
        Rate("false_negative_rate", (_FN,), (_FN, _TP), is_error=True),
        Rate("false_discovery_rate", (_FP,), (_FP, _TP), is_error=True),
        Rate("false_omission_rate", (_FN,), (_TN, _FN), is_error=True),
        Rate("positive_predictive_value", (_TP,), (_FP, _TP)),
        Rate("negative_predictive_value", (_TN,), (_TN, _FN)),
    )
}
"""Every rate by name."""


def overall_accuracy(counts: ArrayLike) -> FloatArray:
    """Share of right predictions in all groups together, for any number of labels."""
    c = np.asarray(counts, dtype=np.float64)
    right, every = np.trace(c, axis1=-2, axis2=-1).sum(axis=-1), c.sum(axis=(-3, -2, -1))
    return np.divide(right, every, out=np.full_like(every, np.nan), where=every > 0)


# The normal quantile of two-sided 95% intervals.
Z95 = 1.959963984540054


def wilson_interval(hits: ArrayLike, trials: ArrayLike) -> tuple[FloatArray, FloatArray]:
    """Wilson's 95% interval of a share: the one method of every interval that is shown.

    Certificates do not use it: they promise, and take exact bounds
    (:func:`evenhand.selection.clopper_pearson`).

    Parameters
    ----------
    hits, trials : array-like
        How many rows count, of how many.

    Returns
    -------
    tuple of (ndarray, ndarray)
        Lower and upper ends; NaN where there are no trials.

    Examples
    --------
    >>> from evenhand.rates import wilson_interval
    >>> [round(float(end), 3) for end in wilson_interval(36, 100)]
    [0.273, 0.458]
    """
    n = np.asarray(trials, dtype=np.float64)
    n = np.where(n > 0, n, np.nan)
    p, z2 = np.asarray(hits, dtype=np.float64) / n, Z95 * Z95
    middle = (p + z2 / (2 * n)) / (1 + z2 / n)
    half = Z95 / (1 + z2 / n) * np.sqrt(p * (1 - p) / n + z2 / (4 * n * n))
    # Rounding must not put the share itself outside.
    return np.clip(middle - half, 0.0, p), np.clip(middle + half, p, 1.0)


def rate_text(rate: float, tau: float) -> str:
    """Write a rate with three digits, or with as many as show on which side of τ it is.

    Parameters
    ----------
    rate, tau : float
        The rate and what it is held against.

    Examples
    --------
    >>> from evenhand.rates import rate_text
    >>> rate_text(0.79996, 0.8)
    '0.79996'
    """
    for digits in range(3, 16):
        text = f"{rate:.{digits}f}"
        if (float(text) >= tau) == (rate >= tau):
            return text
    return repr(float(rate))


EQUALIZED_ODDS = WorstRate(
    "equalized_odds", (RATES["true_positive_rate"], RATES["false_positive_rate"])
)
"""True and false positive rates, both."""


def group_codes(sensitive_features: Any, *, name: str = "sensitive_features") -> tuple[Any, Any]:
    """Distinct groups in sorted order and the group index of each row.

    Groups may be strings, booleans, numbers or categories. Several columns are crossed: a group is
    then a combination of values, named like ``"Female, Black"``. A missing value is an error: which
    group a person belongs to is never guessed.
    """
    values = crossed(sensitive_features, name)
    check_missing(
        values, name, "drop those rows or give them a group of their own, such as 'unknown'"
    )
    try:
        codes, groups = pd.factorize(values)
    except TypeError:
        raise ValueError(f"{name} holds values that cannot be groups, such as lists.") from None
    groups = np.asarray(groups)
    order = rising(groups, name)
    rank = np.empty(len(order), dtype=np.int64)
    rank[order] = np.arange(len(order))
    return groups[order], rank[codes]


def rising(values: NDArray[Any], name: str) -> NDArray[np.intp]:
    """Numbers that sort distinct values; refuse those that have no order."""
    try:
        return np.argsort(values, kind="stable")
    except TypeError:
        raise ValueError(
            f"{name} mixes types that cannot be ordered "
            f"({', '.join(sorted({type(v).__name__ for v in values}))}); use one type."
        ) from None


def crossed(values: Any, name: str) -> pd.Series:
    """One group per row: the column itself, or the combination of several columns' values."""
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] > 1:
        values = pd.DataFrame(values).infer_objects()
    if hasattr(values, "columns") and not isinstance(values, pd.DataFrame):
        values = pd.DataFrame({column: np.asarray(values[column]) for column in values.columns})
    if not isinstance(values, pd.DataFrame) or values.shape[1] < 2:
        return as_series(values, name)
    for column in values.columns:
        check_missing(
            values[column],
            f"{name}, column {column!r},",
            "drop those rows or give them a group of their own, such as 'unknown'",
        )
    text = [_plain(values.iloc[:, j].astype(str)) for j in range(values.shape[1])]
    joined = text[0].str.cat(text[1:], sep=", ")
    return joined.rename(", ".join(map(str, values.columns)))


def _plain(text: pd.Series) -> pd.Series:
    """Quote what has a comma, or "x, y" with "z" would be "x" with "y, z".

    Each value by itself: a group is called the same whatever other rows there are.
    """
    doubtful = text.str.contains(", ", regex=False) | text.str.startswith('"')
    return text.where(~doubtful, text.map(json.dumps)) if doubtful.any() else text


def as_series(values: Any, name: str) -> pd.Series:
    """One value per row; a list is not made an array first, where a missing text becomes 'nan'."""
    if isinstance(values, pd.Series):
        return values
    if isinstance(values, pd.DataFrame):
        if values.shape[1] != 1:
            raise ValueError(
                f"{name} has {values.shape[1]} columns; give one (several attributes can be joined "
                "into one, for example 'female, 40+')."
            )
        return values.iloc[:, 0]
    if issparse(values) or isinstance(values, str | dict) or not hasattr(values, "__len__"):
        raise ValueError(f"{name} is a {type(values).__name__}; give one value per row, as a list.")
    values = list(values) if isinstance(values, list | tuple) else np.asarray(values)
    if isinstance(values, np.ndarray) and values.ndim == 2 and values.shape[1] == 1:
        values = values[:, 0]
    nested = isinstance(values, list) and any(isinstance(v, list | tuple) for v in values)
    if nested or np.ndim(values) != 1:
        raise ValueError(f"{name} has several dimensions; give one value per row.")
    return pd.Series(values)


def check_missing(values: pd.Series, name: str, advice: str) -> None:
    """Refuse missing values."""
    missing = int(values.isna().sum())
    if missing:
        raise ValueError(f"{name} has {missing} missing value{'s' * (missing > 1)}; {advice}.")


def as_binary(y_true: Any, y_pred: Any, pos_label: Any) -> tuple[Any, Any]:
    """Say of labels and predictions which are the favourable one."""
    true, pred = as_series(y_true, "y_true"), as_series(y_pred, "y_pred")
    check_missing(true, "y_true", "drop those rows")
    check_missing(pred, "y_pred", "a prediction must say something")
    labels = pd.unique(np.concatenate([true.astype(object), pred.astype(object)]))
    if pos_label is None:
        if not set(labels) <= {0, 1} and not set(labels) <= {-1, 1}:
            shown = ", ".join(repr(v) for v in labels[:5])
            raise ValueError(
                f"labels are {shown}; say which one is favourable with pos_label=... "
                "(only 0/1, -1/1 and booleans have a default)."
            )
        pos_label = 1
    if len({*labels, pos_label}) > 2:
        shown = ", ".join(repr(v) for v in labels[:5])
        raise ValueError(
            f"y_true and y_pred hold {shown} with pos_label={pos_label!r}: these rates need two "
            "labels, one of them pos_label."
        )
    return (true == pos_label).to_numpy(dtype=bool), (pred == pos_label).to_numpy(dtype=bool)


def group_counts(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> tuple[Any, FloatArray]:
    """Weighted counts per group × true label × predicted label.

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Two-valued labels and predictions.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row, of any type and number.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights; 1 each by default.
    pos_label : label, optional
        The favourable label. Needed unless labels are 0/1, -1/1 or booleans.

    Returns
    -------
    groups : ndarray of shape (n_groups,)
        The groups in sorted order.
    counts : ndarray of shape (n_groups, 2, 2)
        ``counts[j, y, p]``: weight of group j's rows with label y and prediction p.

    Examples
    --------
    >>> from evenhand.rates import group_counts
    >>> groups, counts = group_counts([1, 0, 1, 0], [1, 1, 0, 0], sensitive_features=list("aabb"))
    >>> counts.tolist()
    [[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    """
    groups, codes = group_codes(sensitive_features)
    true, pred = as_binary(y_true, y_pred, pos_label)
    check_consistent_length(true, pred, codes)
    if len(codes) == 0:
        raise ValueError("y_true, y_pred and sensitive_features are empty; rates need rows.")
    weight = None
    if sample_weight is not None:
        weight = np.asarray(column_or_1d(sample_weight), dtype=np.float64)
        check_consistent_length(true, weight)
        if not np.isfinite(weight).all() or (weight < 0).any():
            raise ValueError("sample_weight has negative, missing or infinite values.")
    cell = (codes * 2 + true) * 2 + pred
    counts = np.bincount(cell, weights=weight, minlength=4 * len(groups))
    return groups, counts.reshape(len(groups), 2, 2).astype(np.float64)


def group_rates(
    y_true: ArrayLike,
    y_pred: ArrayLike,
    *,
    sensitive_features: ArrayLike,
    sample_weight: ArrayLike | None = None,
    pos_label: Any = None,
) -> pd.DataFrame:
    """Every rate of every group, one row a group, with the group's weight as ``count``.

    Parameters are those of :func:`group_counts`.

    Examples
    --------
    >>> from evenhand import group_rates
    >>> table = group_rates([1, 0, 1, 0], [1, 1, 0, 0], sensitive_features=list("aabb"))
    >>> table[["count", "selection_rate", "accuracy"]]
                        count  selection_rate  accuracy
    sensitive_features
    a                     2.0             1.0       0.5
    b                     2.0             0.0       0.5
    """
    groups, counts = group_counts(
        y_true,
        y_pred,
        sensitive_features=sensitive_features,
        sample_weight=sample_weight,
        pos_label=pos_label,
    )
    name = getattr(sensitive_features, "name", None)
    name = "sensitive_features" if name is None else name
    columns = {"count": counts.sum(axis=(1, 2))}
    columns |= {key: rate.per_group(counts) for key, rate in RATES.items()}
    return pd.DataFrame(columns, index=pd.Index(groups, name=name))


_METRIC_DOC = """{summary}

    Parameters
    ----------
    y_true, y_pred : array-like of shape (n_samples,)
        Two-valued labels and predictions.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row, of any type and number.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights; 1 each by default.
    pos_label : label, optional
        The favourable label. Needed unless labels are 0/1, -1/1 or booleans.

    Returns
    -------
    float
        {returns}
    """


def _metric(rate_name: str, kind: str, public_name: str) -> Callable[..., float]:
    """Make the public metric ``kind`` ('ratio' or 'difference') of a rate."""
    rate: AnyRate = EQUALIZED_ODDS if rate_name == "equalized_odds" else RATES[rate_name]
    words = rate_name.replace("_", " ")

    def metric(
        y_true: ArrayLike,
        y_pred: ArrayLike,
        *,
        sensitive_features: ArrayLike,
        sample_weight: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> float:
        _, counts = group_counts(
            y_true,
            y_pred,
            sensitive_features=sensitive_features,
            sample_weight=sample_weight,
            pos_label=pos_label,
        )
        return float(getattr(rate, kind)(counts))

    if kind == "ratio":
        no_error = isinstance(rate, Rate) and rate.is_error
        zero = "1 (no group has errors)" if no_error else "NaN (nobody has any)"
        summary = f"Smallest over largest {words} among the groups; 1 is parity."
        returns = f"In [0, 1]. NaN if a group's {words} is undefined; if all are 0: {zero}."
        if isinstance(rate, WorstRate):
            summary = "The worse of the true and the false positive rate ratio; 1 is parity."
            returns = "In [0, 1]. NaN if one of the two is undefined."
    elif isinstance(rate, WorstRate):
        summary = "The larger of the true and the false positive rate difference; 0 is parity."
        returns = "In [0, 1]. NaN if one of the two is undefined."
    else:
        summary = f"Largest less smallest {words} among the groups; 0 is parity."
        returns = f"In [0, 1]. NaN if a group's {words} is undefined."
    metric.__name__ = metric.__qualname__ = public_name
    metric.__doc__ = _METRIC_DOC.format(summary=summary, returns=returns)
    return metric


equalized_odds_ratio = _metric("equalized_odds", "ratio", "equalized_odds_ratio")
equalized_odds_difference = _metric("equalized_odds", "difference", "equalized_odds_difference")
statistical_rate = _metric("selection_rate", "ratio", "statistical_rate")
statistical_parity_difference = _metric(
    "selection_rate", "difference", "statistical_parity_difference"
)
accuracy_ratio = _metric("accuracy", "ratio", "accuracy_ratio")
accuracy_difference = _metric("accuracy", "difference", "accuracy_difference")
true_positive_rate_ratio = _metric("true_positive_rate", "ratio", "true_positive_rate_ratio")
true_positive_rate_difference = _metric(
    "true_positive_rate", "difference", "true_positive_rate_difference"
)
false_positive_rate_ratio = _metric("false_positive_rate", "ratio", "false_positive_rate_ratio")
false_positive_rate_difference = _metric(
    "false_positive_rate", "difference", "false_positive_rate_difference"
)
true_negative_rate_ratio = _metric("true_negative_rate", "ratio", "true_negative_rate_ratio")
true_negative_rate_difference = _metric(
    "true_negative_rate", "difference", "true_negative_rate_difference"
)
false_negative_rate_ratio = _metric("false_negative_rate", "ratio", "false_negative_rate_ratio")
false_negative_rate_difference = _metric(
    "false_negative_rate", "difference", "false_negative_rate_difference"
)
false_discovery_rate_ratio = _metric("false_discovery_rate", "ratio", "false_discovery_rate_ratio")
false_discovery_rate_difference = _metric(
    "false_discovery_rate", "difference", "false_discovery_rate_difference"
)
false_omission_rate_ratio = _metric("false_omission_rate", "ratio", "false_omission_rate_ratio")
false_omission_rate_difference = _metric(
    "false_omission_rate", "difference", "false_omission_rate_difference"
)
positive_predictive_value_ratio = _metric(
    "positive_predictive_value", "ratio", "positive_predictive_value_ratio"
)
positive_predictive_value_difference = _metric(
    "positive_predictive_value", "difference", "positive_predictive_value_difference"
)
negative_predictive_value_ratio = _metric(
    "negative_predictive_value", "ratio", "negative_predictive_value_ratio"
)
negative_predictive_value_difference = _metric(
    "negative_predictive_value", "difference", "negative_predictive_value_difference"
)
