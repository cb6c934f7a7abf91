"""Audits of several attributes: each by itself, and crossed, one beside the other."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.core.errors import InputError, Parameter
from evenhand.core.targets import Target
from evenhand.statistics.intervals import check_confidence
from evenhand.statistics.verdicts import CONFIDENCE, FAILS, HOLDS, UNTOLD
from evenhand.tables.columns import as_table
from evenhand.tables.groups import bins_by_column
from evenhand.workflow.audit import audit
from evenhand.workflow.labels import check_roles, joined

__all__ = ["audit_attributes", "worst_attributes"]


def audit_attributes(
    X: Any, *, sensitive: Sequence[str], attributes: str = "crossed", **options: Any
) -> dict[str, Any]:
    """Compare groups of a table, of each attribute by itself and crossed.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    sensitive : sequence of str
        Sensitive columns.
    attributes : {"crossed", "each", "both"}, default="crossed"
        Whether their combinations are compared, each by itself, or both.
    **options
        Of :func:`evenhand.workflow.audit.audit`.

    Returns
    -------
    dict
        The report of crossed attributes, or of the only one. Of others ``audits`` has a report for
        each attribute, and for the crossed ones last if they are compared; ``worst`` names the one
        whose verdict's value is the least, ``passed`` says whether all are met, and ``verdict``
        whether the target holds in the population for all of them. So that this is right with the
        ``confidence``, m reports have 1 − (1 − confidence) / m each.
    """
    check_roles(options.get("label"), sensitive)
    if attributes == "crossed" or len(sensitive) < 2:
        return audit(X, sensitive=sensitive, **options)
    if (group := options.get("privileged")) is not None:
        about = {"attributes": Parameter("attributes", attributes)}
        raise InputError("privileged_of_one", privileged=Parameter("privileged", group), **about)
    columns = [[name] for name in sensitive]
    columns += [list(sensitive)] if attributes == "both" else []
    X, audits = as_table(X), []
    bins = bins_by_column(options.pop("bins", None), sensitive)
    sure = options.pop("confidence", CONFIDENCE)
    check_confidence(sure)
    options["confidence"] = round(1 - (1 - sure) / len(columns), 12)
    for names in columns:
        own = {name: bins[name] for name in names if name in bins}
        audits.append(audit(X, sensitive=names, bins=own or None, **options))
    known = [report for report in audits if report["verdict"]["value"] is not None]
    worst = min(known, key=lambda report: report["verdict"]["value"], default=None)
    found = [report["verdict"]["population"] for report in audits]
    every = HOLDS if set(found) == {HOLDS} else FAILS if FAILS in found else UNTOLD
    kept = "favourable_answer", "n_rows", "label", "prediction", "weight", "favourable", "tau"
    return {name: audits[0][name] for name in (*kept, "comparison")} | {
        "confidence": sure,
        "sensitive": list(sensitive),
        "attributes": attributes,
        "audits": audits,
        "worst": None if worst is None else joined(worst["sensitive"]),
        "judged": all(report["judged"] for report in audits),
        "passed": all(report["passed"] for report in audits),
        "verdict": {"population": every},
    }


def worst_attributes(
    target: Target, n_groups: int, counts: Mapping[str, Any]
) -> list[dict[str, Any]]:
    """Say of each part of the rows which attribute's groups are furthest from their target.

    Empty where the groups are not by attribute. ``counts`` are the saved model's, by part.
    """
    found = []
    for key, rows in counts.items():
        values = target.values(np.asarray(rows, dtype=float)[:n_groups])
        scaled = target.scaled(values)
        if np.isnan(scaled).all():
            continue
        i = int(np.nanargmin(scaled))
        (rate,) = target.components[i].rate.components
        if rate.by is not None:
            about = {"attribute": rate.by.name, "rate": rate.name, "comparison": target.kinds[i]}
            level = target.components[i].level
            found.append({"key": key, **about, "value": float(values[i]), "level": level})
    return found
