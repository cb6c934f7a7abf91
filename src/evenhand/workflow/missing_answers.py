"""What answers and labels that are not there could change in an audit."""

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.rates import Rate
from evenhand.core.targets import Target
from evenhand.engines.coding import compared_groups
from evenhand.workflow.labels import UNRELATED, depends

Counts = NDArray[np.float64]
# Rows of each group that are in one of two cells (true label, answer) of the counts, in which one
# is not known because the label or the answer is missing.
Unknown = Sequence[tuple[NDArray[Any], tuple[tuple[int, int], tuple[int, int]]]]


def binary_counts(z: Any, truth: Any, answer: Any, n_groups: int, weight: Any = None) -> Counts:
    """Count rows, or add up their weights, by group, truth and answer, shape (n_groups, 2, 2)."""
    cells = np.asarray((z * 2 + truth) * 2 + answer, dtype=np.intp)
    return np.bincount(cells, weight, minlength=4 * n_groups).reshape(-1, 2, 2).astype(float)


def unanswered(
    rows: tuple[NDArray[Any], ...], counts: Counts, target: Target, least: int
) -> dict[str, Any] | None:
    """Say how many rows of each group have no answer, and whether that goes with the group.

    The answer is the prediction, or the label where that is audited alone. It does if a test says
    so (Fisher's exact one of two groups, chi-squared of more), or if a group has no answer at all.
    The rate is then judged only if no answers of the other rows could put its value on the other
    side of the target.

    ``rows`` are the names of the groups, and of all rows the group, whether it has an answer, and
    the weight; ``counts`` are of those that have one. Groups of fewer than ``least`` rows are left
    out. Tests are of rows, and what could be of their weights.
    """
    names, groups, known, weight = rows
    table = np.bincount(groups * 2 + known, minlength=2 * len(names)).reshape(-1, 2)
    # Groups that would be compared if all their rows had a label.
    compared, number, _ = compared_groups(names, table.sum(axis=1), least)
    large = number < len(compared)
    table, missing = table[large], table[large, 0]
    if not missing.any():
        return None
    p, related = depends(table)
    open_ = np.bincount(groups[~known], weight[~known], minlength=len(names))[large]
    ends = rate_ends(target.rate.components[0], counts[large], [(open_, ((0, 0), (1, 1)))])
    return {
        "n": int(missing.sum()),
        "by_group": [
            {"group": str(name), "rows": sum(row), "missing": row[0]}
            for name, row in zip(compared.tolist(), table.tolist(), strict=True)
        ],
        "p_value": p,
        "related": related,
        "not_judged": ["selection_rate"] if related and not is_firm(target, *ends) else [],
    }


def missing_labels(
    rows: pd.DataFrame,
    counts: Mapping[str, Counts],
    targets: Mapping[str, Target],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Say how many rows with an answer have no label, and whether that goes with the answer.

    It does if Fisher's exact test says so of all rows, or of those of a group (with Bonferroni's
    correction), or if no row with one of the answers has a label: then rates that need a label are
    of rows that were chosen by the answer itself. Such a rate is judged only if no labels of the
    other rows could put its value on the other side of the target; and so is every rate if a group
    has too few labels, or none for this rate.
    """
    if rows["labelled"].all():
        return None
    groups = report["groups"]
    tables = binary_counts(rows["z"], rows["answer"], rows["labelled"], len(groups)).astype(int)
    p, pooled = depends(tables.sum(axis=0))
    by_group = []
    for name, table in zip(groups, tables, strict=True):
        p_group, related = depends(table, UNRELATED / len(groups))
        part = {"group": name, "rows": int(table.sum()), "missing": int(table[:, 0].sum())}
        part |= {"by_prediction": _by_answer(table), "p_value": p_group}
        # Where no row has a label, that is so with either answer.
        by_group.append(part | {"related": related and bool(table[:, 1].any())})
    related = pooled or any(part["related"] for part in by_group)
    missing, not_judged = tables[:, :, 0], []
    about = rows["z"], rows["answer"], rows["labelled"], len(groups), rows["weight"]
    open_ = binary_counts(*about)[:, :, 0]
    for name, target in targets.items():
        if name == "selection_rate":
            continue
        rate = target.rate.components[0]
        without = (rate.fractions(counts[name])[1] == 0) & missing.any(axis=1)
        no_value = report["ratios"][name] is None and without.any()
        ends = rate_ends(rate, counts[name], unknown_labels(name, open_))
        if (related or report["few_labels"] or no_value) and not is_firm(target, *ends):
            not_judged.append(name)
    return {
        "n": int(missing.sum()),
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
        name: {"rows": sum(row), "missing": row[0]}
        for name, row in zip(("others", "favourable"), table.tolist(), strict=True)
    }


def unknown_labels(name: str, missing: NDArray[Any]) -> Unknown:
    """Say where rows without a label may be in the counts of a rate; columns are the answers."""
    if name == "accuracy":  # whose counts have right and wrong answers in the second column
        return [(missing.sum(axis=1), ((0, 1), (1, 1)))]
    return [(missing[:, p], ((0, p), (1, p))) for p in (0, 1)]


def rate_ends(rate: Rate, counts: Counts, unknown: Unknown) -> tuple[Counts, Counts]:
    """Complete the counts so that each group's rate is least, and so that it is largest.

    A rate rises or falls with each row that is filled in, so it is least and largest where all
    unknown rows of one kind are alike.
    """
    completed = []
    for cells in product(*(either for _, either in unknown)):
        filled = counts.copy()
        for (n, _), (y, p) in zip(unknown, cells, strict=True):
            filled[:, y, p] += n
        completed.append(filled)
    every, group = np.stack(completed), np.arange(len(counts))
    rates = rate.per_group(every)
    return every[rates.argmin(axis=0), group], every[rates.argmax(axis=0), group]


def is_firm(target: Target, low: Counts, high: Counts) -> bool:
    """Say whether the value is on one side of the target wherever between its ends each rate is.

    The groups are furthest apart where some pair is; they are as near as they can be where the
    group whose largest rate is least meets the one whose least rate is largest, if these differ.
    """
    one, other = np.nonzero(~np.eye(len(low), dtype=bool))
    if target.reached(target.value(np.stack([low[one], high[other]], axis=1)).min()):
        return True
    rate = target.rate.components[0]
    most, least = rate.per_group(high), rate.per_group(low)
    i, j = most.argmin(), least.argmax()
    nearest = target.value(np.stack([high[i], low[j]]))
    return bool(most[i] < least[j]) and not target.reached(nearest)
