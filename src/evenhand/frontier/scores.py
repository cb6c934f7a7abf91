"""The frontier of the cuts on any classifier's scores."""

from typing import Any

import numpy as np
from sklearn.utils.validation import check_consistent_length

from evenhand.core.errors import InputError
from evenhand.core.groups import as_binary, group_codes
from evenhand.core.notions import find_notion
from evenhand.engines.memory import make_oracle
from evenhand.frontier.points import Frontier
from evenhand.frontier.sweep import sweep

__all__ = ["score_frontier"]


def score_frontier(
    y_true: Any,
    y_score: Any,
    *,
    sensitive_features: Any,
    sample_weight: Any = None,
    pos_label: Any = None,
    notion: str = "statistical_parity",
    min_share: float = 0.01,
) -> Frontier:
    """Frontier of the cuts on any classifier's scores.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        Labels of two values.
    y_score : array-like of shape (n_samples,)
        Scores; higher is more favourable.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights.
    pos_label : label, optional
        The favourable label. Needed unless labels are 0/1, -1/1 or booleans.
    notion : str, default="statistical_parity"
        Which rate is compared.
    min_share : float, default=0.01
        Least share of predicted positives, and of negatives, in every group.

    Returns
    -------
    Frontier
        Its points are cuts of one iterate, the scores themselves.
    """
    score = np.asarray(y_score, dtype=np.float64)
    if score.ndim != 1 or not np.isfinite(score).all():
        raise InputError("bad_scores")
    groups, codes = group_codes(sensitive_features)
    # As a classifier's predictions the labels are checked and coded.
    y, _ = as_binary(y_true, y_true, pos_label)
    check_consistent_length(y, score, codes)
    oracle = make_oracle(
        score[:, None], y, codes, notion=find_notion(notion), sample_weight=sample_weight
    )
    return sweep(oracle, np.array([[1.0, 0.0]]), min_share=min_share, groups=groups.tolist())
