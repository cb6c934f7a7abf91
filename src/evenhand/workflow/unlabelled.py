"""Rows without a label: how many each group has, and what the model predicts for them."""

from collections.abc import Mapping
from contextlib import suppress
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.groups import group_codes
from evenhand.core.rates import Rate
from evenhand.core.targets import Target
from evenhand.models.classifier import FairClassifier
from evenhand.workflow.counting import group_numbers
from evenhand.workflow.labels import UNEVEN, depends, plain_number


def numbers_or_none(model: FairClassifier, groups: pd.DataFrame) -> NDArray[np.intp]:
    """Group of each row as the classifier numbers them; -1 of one that it does not know."""
    try:
        return group_numbers(model, groups)
    except ValueError:
        names, codes = group_codes(groups)
        numbers = np.full(len(names), -1, dtype=np.intp)
        for i in range(len(names)):
            with suppress(ValueError):
                numbers[i] = group_numbers(model, groups[codes == i][:1])[0]
        return numbers[codes]


def count_unlabelled(
    model: FairClassifier, groups: pd.DataFrame, n: NDArray[Any] | None = None
) -> dict[str, Any]:
    """Count rows without a label by group; ``n`` says how many rows each of ``groups`` stands for.

    ``uncompared`` are groups that have rows enough, but too few labels to be compared.
    """
    n = np.ones(len(groups), dtype=int) if n is None else n
    z = numbers_or_none(model, groups)
    rows = np.bincount(z[z >= 0], weights=n[z >= 0], minlength=model.fitted_.n_groups_all)
    uncompared = {}
    other = (z < 0) | (z >= len(model.groups_))
    if model.fitted_.edges is None and other.any():
        names, codes = group_codes(groups[other])
        sizes = np.bincount(codes, weights=n[other]).astype(int)
        uncompared = {
            str(group): size
            for group, size in zip(names.tolist(), sizes.tolist(), strict=True)
            if size + model.small_groups_.get(group, 0) >= model.min_group_size
        }
    return {
        "rows": rows.astype(int).tolist(),
        "other_groups": int(n[z < 0].sum()),
        "uncompared": uncompared,
    }


def unlabelled_by_group(summary: Mapping[str, Any], facts: Mapping[str, Any]) -> dict[str, Any]:
    """Say how many rows of each group have no label, and whether that goes with the group.

    It does if shares differ by more than 1 in 100 between groups, or by what chance seldom does:
    Fisher's exact test of two groups, the chi-squared test of more.
    """
    about = facts["unlabelled"]
    missing = np.array(about["rows"])
    counts = [summary["saved"]["counts"][part] for part in about["parts"]]
    rows = missing + np.sum(counts, axis=(0, 2, 3)).astype(int)
    names = [*summary["groups"], "groups with too few labels to compare"][: len(rows)]
    n = len(summary["groups"])
    shares = missing[:n] / rows[:n]
    p, related = depends(np.column_stack([missing, rows - missing])[:n])
    return {
        "n": int(missing.sum()) + about["other_groups"],
        "groups": {
            name: {"rows": int(r), "missing": int(m)}
            for name, r, m in zip(names, rows, missing, strict=True)
        },
        # Groups of which no row has a label.
        "other_groups": about["other_groups"],
        "p_value": p,
        # Groups that have rows enough, and too few labels to be compared.
        "uncompared": about.get("uncompared", {}),
        "related": bool(
            related or np.ptp(shares) > UNEVEN or about["other_groups"] or about.get("uncompared")
        ),
    }


def over_all_rows(
    summary: Mapping[str, Any], facts: Mapping[str, Any], point: int, target: Target
) -> dict[str, Any] | None:
    """Give the rates that need no label over all rows of the table, with a label or without.

    None if no rate is such a one, or if rows without a label were not counted.
    """
    about = facts["unlabelled"]
    if "unlabelled_counts" in facts:
        extra = np.array(facts["unlabelled_counts"][point])
    elif any(about["rows"]):
        return None
    else:
        extra = np.zeros(np.shape(facts["train_counts"][point]))
    counts = extra + sum(np.array(summary["saved"]["counts"][part]) for part in about["parts"])
    compared = counts[: len(summary["groups"])]
    rates = [
        _over_all(part, answers, compared, summary)
        for part in target.components
        if (answers := _answers_alone(part.rate.components[0], len(summary["labels"])))
    ]
    if not rates:
        return None
    spare = [np.inf if one["ratio"] is None else one["ratio"] - one["tau"] for one in rates]
    worst = rates[int(np.argmin(spare))]
    uncompared = about.get("uncompared", {})
    # Another group, or a rate that is unknown, cannot make up for a ratio below its target.
    missed = any(one["ratio"] is not None and not one["reached"] for one in rates)
    unknown = bool(uncompared) or any(one["ratio"] is None for one in rates)
    return {
        "n": int(compared.sum()),
        "ratio": worst["ratio"],
        "rates": rates,
        "uncompared": uncompared,
        "judged": missed or not unknown,
        "reached": not missed and not unknown,
    }


def _answers_alone(rate: Rate, n_labels: int) -> list[int]:
    """Give the answers that a rate counts if it needs no label: whatever the label, of all rows."""
    answers = {p for _, p in rate.numerator}
    every_label = set(product(range(n_labels), answers)) == set(rate.numerator)
    return sorted(answers) if every_label and len(rate.denominator) == n_labels**2 else []


def _over_all(
    target: Target, answers: list[int], counts: NDArray[np.float64], summary: Mapping[str, Any]
) -> dict[str, Any]:
    """Give a rate's value of each group, how they compare, and whether that reaches the target."""
    (rate,), value = target.rate.components, target.value(counts)
    values = map(plain_number, rate.per_group(counts))
    return {
        "name": rate.name,
        "answer": [summary["labels"][p] for p in answers],
        "groups": dict(zip(summary["groups"], values, strict=True)),
        "ratio": plain_number(value),
        "tau": target.level,
        "comparison": target.comparison,
        "reached": target.reached(value),
    }
