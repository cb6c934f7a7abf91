"""Which columns of a table move a boosted model's estimates of the label and of the group."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.tables.pipeline import FairPipeline

__all__ = ["what_matters"]

# Rows that are looked at: enough for tenths of a percentage point.
MOST_ROWS = 2000


def what_matters(pipeline: FairPipeline, X: Any, part: str) -> dict[str, Any]:
    r"""Write down by how much the estimates move when a column's values are dealt out anew.

    It is the mean over rows of :math:`\tfrac12 \sum_k |\hat p_k - \hat p'_k|`, of two labels or
    groups :math:`|\hat p - \hat p'|`, with the column's values permuted at random in
    :math:`\hat p'`. ``part`` names the rows.
    """
    rng, encoder, model = np.random.default_rng(0), pipeline[0], pipeline[-1]
    chosen = np.zeros(len(X), dtype=bool)
    chosen[rng.permutation(len(X))[:MOST_ROWS]] = True
    inputs, groups = pipeline.boosted_inputs(X.take(chosen))
    place = {name: i for i, name in enumerate(encoder.get_feature_names_out().tolist())}
    before, matters = model.estimates(inputs, **groups), []
    for plan in encoder.plans_:
        if plan.kind == "dropped":
            continue
        own = [place[name] for name in plan.names]
        shuffled = inputs.copy()
        shuffled[:, own] = inputs[rng.permutation(len(inputs))][:, own]
        label, group = map(_moved, before, model.estimates(shuffled, **groups))
        matters.append({"column": plan.column, "label": label, "group": group})
    return {"matters": matters, "matters_part": part, "matters_rows": len(inputs)}


def _moved(before: NDArray[np.float64], after: NDArray[np.float64]) -> float:
    return float(np.abs(before - after).sum(axis=1).mean() / 2)
