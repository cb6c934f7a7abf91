"""What answers and labels that are not there could change in an audit."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.rates import RATES, Rate
from evenhand.engines.coding import compared_groups
from evenhand.workflow.labels import UNRELATED, depends

__all__ = ["binary_counts", "few_labels", "is_firm", "missing_labels", "rate_ends", "unanswered"]


def binary_counts(
    z: NDArray[Any], truth: NDArray[np.bool_], answer: NDArray[np.bool_], n_groups: int
) -> NDArray[np.float64]:
    """Count rows by group, truth and answer, shape (n_groups, 2, 2)."""
    cells = np.bincount((z * 2 + truth) * 2 + answer, minlength=4 * n_groups)
    return cells.reshape(-1, 2, 2).astype(float)


def unanswered(
    names: NDArray[Any],
    z: NDArray[Any],
    known: NDArray[np.bool_],
    counts: NDArray[np.float64],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Say how many rows of each group have no answer, and whether that goes with the group.

    The answer is the prediction, or the label where that is audited alone. It does if a test says
    so (Fisher's exact one of two groups, chi-squared of more), or if a group has no answer at all.
    The rate is then judged only if no answers of the other rows could put its ratio on the other
    side of τ.

    ``z`` and ``known`` are of all rows; ``counts`` are of those that have an answer.
    """
    sizes = np.bincount(z, minlength=len(names))
    # Groups that would be compared if all their rows had a label.
    compared, number, _ = compared_groups(names, sizes, report["min_group_size"])
    large = np.flatnonzero(number < len(compared))
    table = np.bincount(z * 2 + known, minlength=2 * len(names)).reshape(-1, 2)[large]
    rows, missing = table.sum(axis=1), table[:, 0]
    if not missing.any():
        return None
    p, related = depends(table)
    hits = counts[large, :, 1].sum(axis=1)
    firm = is_firm(hits / rows, (hits + missing) / rows, report["tau"])
    return {
        "n": int(missing.sum()),
        "by_group": [
            {"group": str(names[j]), "rows": int(n), "missing": int(m)}
            for j, n, m in zip(large, rows, missing, strict=True)
        ],
        "p_value": p,
        "related": related,
        "not_judged": ["selection_rate"] if related and not firm else [],
    }


def few_labels(
    report: Mapping[str, Any], labelled: NDArray[Any], n_groups: int
) -> tuple[NDArray[np.bool_], list[dict[str, Any]]]:
    """Find groups that have rows enough, and too few labels for a rate that needs one.

    Returns
    -------
    tuple of (ndarray of bool, list of dict)
        Which groups are compared in such rates, all if the table has two; and the groups that have
        too few labels, with their rows.
    """
    least = report["min_group_size"]
    lacking = (np.array(report["sizes"]) >= least) & (labelled < least)
    found = [
        {"group": name, "rows": n, "labelled": k}
        for name, n, k, few in zip(
            report["groups"], report["sizes"], labelled.tolist(), lacking, strict=True
        )
        if few
    ]
    return ~lacking if n_groups > 2 else np.ones_like(lacking), found


def missing_labels(
    z: NDArray[Any],
    answer: NDArray[np.bool_],
    labelled: NDArray[np.bool_],
    counts: Mapping[str, NDArray[np.float64]],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Say how many rows with an answer have no label, and whether that goes with the answer.

    It does if Fisher's exact test says so of all rows, or of those of a group (with Bonferroni's
    correction), or if no row with one of the answers has a label: then rates that need a label are
    of rows that were chosen by the answer itself. Such a rate is judged only if no labels of the
    other rows could put its ratio on the other side of τ; and so is every rate if a group has too
    few labels, or none for this rate.
    """
    if labelled.all():
        return None
    groups = report["groups"]
    tables = binary_counts(z, answer, labelled, len(groups)).astype(int)
    p, pooled = depends(tables.sum(axis=0))
    by_group = []
    for name, table in zip(groups, tables, strict=True):
        p_group, related = depends(table, UNRELATED / len(groups))
        part = {"group": name, "rows": int(table.sum()), "missing": int(table[:, 0].sum())}
        part |= {"by_prediction": _by_answer(table), "p_value": p_group}
        # Where no row has a label, that is so with either answer.
        by_group.append(part | {"related": related and bool(table[:, 1].any())})
    related = pooled or any(part["related"] for part in by_group)
    missing = tables[:, :, 0]
    not_judged = []
    for name, ratio in report["ratios"].items():
        if name == "selection_rate":
            continue
        without = (RATES[name].fractions(counts[name])[1] == 0) & missing.any(axis=1)
        doubtful = related or report["few_labels"] or (ratio is None and without.any())
        ends = rate_ends(RATES[name], counts[name], missing)
        if doubtful and not is_firm(*ends, report["tau"]):
            not_judged.append(name)
    return {
        "n": int((~labelled).sum()),
        "by_prediction": _by_answer(tables.sum(axis=0)),
        "p_value": p,
        "related": related,
        "related_pooled": pooled,
        "related_to_group": depends(tables.sum(axis=1))[1],
        "by_group": by_group,
        "not_judged": not_judged,
    }


def _by_answer(table: NDArray[Any]) -> dict[str, dict[str, int]]:
    """Give rows, and those without a label, of each answer."""
    return {
        name: {"rows": int(row.sum()), "missing": int(row[0])}
        for name, row in zip(("others", "favourable"), table, strict=True)
    }


def rate_ends(
    rate: Rate, counts: NDArray[np.float64], missing: NDArray[Any]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Give the least and the largest that each group's rate could be with all labels.

    A rate rises or falls with each label that is filled in, so it is least and largest where the
    labels missing with one answer are all alike. ``missing`` are rows without one, by whether the
    answer is favourable.
    """
    if rate.name == "accuracy":  # whose counts have right and wrong ones in the second column
        missing = np.column_stack([np.zeros(len(missing)), missing.sum(axis=1)])
    found = []
    for first, second in product((0, 1), repeat=2):
        filled = counts.copy()
        filled[:, first, 0] += missing[:, 0]
        filled[:, second, 1] += missing[:, 1]
        found.append(rate.per_group(filled))
    return np.min(found, axis=0), np.max(found, axis=0)


def is_firm(low: NDArray[Any], high: NDArray[Any], tau: float) -> bool:
    """Say whether the ratio is on one side of τ wherever between its ends each rate is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        each = low[:, None] / high[None, :]
        least = np.min(each[~np.eye(len(low), dtype=bool)])
        most = high.min() / low.max()
    tau -= 1e-12  # a quotient of quotients may be a hair less than what it stands for
    return bool(least >= tau or most < tau)
