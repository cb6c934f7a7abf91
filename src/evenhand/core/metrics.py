"""Metrics in the manner of scikit-learn: counts and rates per group, ratios and differences."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_consistent_length, column_or_1d

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError
from evenhand.core.groups import as_binary, check_weights, group_codes
from evenhand.core.rates import EQUALIZED_ODDS, RATES, AnyRate, Rate, WorstRate

__all__ = [
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
        The favourable label. Needed unless labels are 0/1, -1/1, booleans or true/false.

    Returns
    -------
    groups : ndarray of shape (n_groups,)
        The groups in sorted order.
    counts : ndarray of shape (n_groups, 2, 2)
        ``counts[j, y, p]``: weight of group j's rows with label y and prediction p.

    Examples
    --------
    >>> from evenhand.core.metrics import group_counts
    >>> groups, counts = group_counts([1, 0, 1, 0], [1, 1, 0, 0], sensitive_features=list("aabb"))
    >>> counts.tolist()
    [[[0.0, 1.0], [0.0, 1.0]], [[1.0, 0.0], [1.0, 0.0]]]
    """
    groups, codes = group_codes(sensitive_features)
    true, pred = as_binary(y_true, y_pred, pos_label)
    check_consistent_length(true, pred, codes)
    if len(codes) == 0:
        raise InputError("no_rows_to_rate")
    weight = None
    if sample_weight is not None:
        weight = np.asarray(column_or_1d(sample_weight), dtype=np.float64)
        check_consistent_length(true, weight)
        check_weights(weight)
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

    Counts are whole numbers unless weights are not.

    Parameters are as in :func:`group_counts`.

    Examples
    --------
    >>> from evenhand import group_rates
    >>> table = group_rates([1, 0, 1, 0], [1, 1, 0, 0], sensitive_features=list("aabb"))
    >>> table[["count", "selection_rate", "accuracy"]]
                        count  selection_rate  accuracy
    sensitive_features
    a                       2             1.0       0.5
    b                       2             0.0       0.5
    """
    given = {"sample_weight": sample_weight, "pos_label": pos_label}
    groups, counts = group_counts(y_true, y_pred, sensitive_features=sensitive_features, **given)
    name = getattr(sensitive_features, "name", None)
    name = "sensitive_features" if name is None else name
    count = counts.sum(axis=(1, 2))
    whole = (count % 1 == 0).all() and count.sum() < 2**53
    columns = {"count": count.astype(np.int64) if whole else count}
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
        The favourable label. Needed unless labels are 0/1, -1/1, booleans or true/false.

    Returns
    -------
    float
        {returns}
    """


def _metric(rate_name: str, comparison: str, name: str | None = None) -> Callable[..., float]:
    """Make the public metric that compares a rate by its ``"ratio"`` or ``"difference"``."""
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
        return float(getattr(rate, comparison)(counts))

    if comparison == "ratio":
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
    metric.__name__ = metric.__qualname__ = name or f"{rate_name}_{comparison}"
    metric.__doc__ = _METRIC_DOC.format(summary=summary, returns=returns)
    return metric


equalized_odds_ratio = _metric("equalized_odds", "ratio")
equalized_odds_difference = _metric("equalized_odds", "difference")
statistical_rate = _metric("selection_rate", "ratio", "statistical_rate")
statistical_parity_difference = _metric(
    "selection_rate", "difference", "statistical_parity_difference"
)
accuracy_ratio = _metric("accuracy", "ratio")
accuracy_difference = _metric("accuracy", "difference")
true_positive_rate_ratio = _metric("true_positive_rate", "ratio")
true_positive_rate_difference = _metric("true_positive_rate", "difference")
false_positive_rate_ratio = _metric("false_positive_rate", "ratio")
false_positive_rate_difference = _metric("false_positive_rate", "difference")
true_negative_rate_ratio = _metric("true_negative_rate", "ratio")
true_negative_rate_difference = _metric("true_negative_rate", "difference")
false_negative_rate_ratio = _metric("false_negative_rate", "ratio")
false_negative_rate_difference = _metric("false_negative_rate", "difference")
false_discovery_rate_ratio = _metric("false_discovery_rate", "ratio")
false_discovery_rate_difference = _metric("false_discovery_rate", "difference")
false_omission_rate_ratio = _metric("false_omission_rate", "ratio")
false_omission_rate_difference = _metric("false_omission_rate", "difference")
positive_predictive_value_ratio = _metric("positive_predictive_value", "ratio")
positive_predictive_value_difference = _metric("positive_predictive_value", "difference")
negative_predictive_value_ratio = _metric("negative_predictive_value", "ratio")
negative_predictive_value_difference = _metric("negative_predictive_value", "difference")
