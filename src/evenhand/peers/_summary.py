"""Means of a comparison over its splits, and its curves read at given rates."""

from collections.abc import Sequence

import numpy as np
import pandas as pd

from evenhand.core.errors import InputError
from evenhand.core.targets import READ, reaches


def axes_of(table: pd.DataFrame) -> tuple[str, str, float]:
    """Name the columns of a comparison's levels and values, and the sign that makes more fairer."""
    comparison = "difference" if "epsilon" in table else "ratio"
    return ("epsilon" if comparison == "difference" else "tau", *READ[comparison])


def summarize(table: pd.DataFrame) -> pd.DataFrame:
    """Means over the splits of a comparison, with their standard errors.

    Parameters
    ----------
    table : DataFrame
        What :func:`~evenhand.peers.compare` returned.

    Returns
    -------
    DataFrame
        A row for each peer and τ: means of ``accuracy``, ``rate``, ``seconds`` and
        ``memory_mib``, standard errors of the first two (``accuracy_se``, ``rate_se``), ``met``
        (share of the splits whose test rate reaches τ with an eligible answer), ``eligible`` (share
        of the splits with one), ``ineligible`` (the reason on the first split without one),
        ``splits`` (how many succeeded) and ``error`` (of the first that failed). The mean rate is
        NaN if the rate is undefined on any split. Of a comparison by ``epsilon`` that and
        ``difference`` take the places of ``tau`` and ``rate``.
    """
    name, measured, sign = axes_of(table)
    missing = {"key", "method", "needs_group", name, measured, "eligible", "error"} - set(table)
    if missing:
        raise InputError("not_a_comparison", columns=", ".join(map(repr, sorted(missing))))
    # A table read back from a file has lost its empty texts.
    texts = {c: table[c].astype(object) for c in ("error", "ineligible") if c in table}
    table = table.assign(ineligible="").assign(**{c: t.fillna("") for c, t in texts.items()})
    done = table["error"] == ""
    table["eligible"] = table["eligible"].astype(float).where(done)
    pairs = zip(sign * table[measured], sign * table[name], strict=True)
    reached = np.array([reaches(value, level) for value, level in pairs], dtype=bool)
    table["met"] = (reached & (table["eligible"] == 1)).astype(float).where(done)
    groups = table.groupby(["key", "method", "needs_group", name], sort=False)
    out = groups[["accuracy", "seconds", "memory_mib", "met", "eligible"]].mean()
    out = out.join(groups[["accuracy", measured]].sem().add_suffix("_se"))
    out["splits"] = groups["accuracy"].count()
    # A mean of the splits that happen to have a rate would flatter a peer that often has none.
    defined = groups[measured].count() == out["splits"]
    out[measured] = groups[measured].mean().where(defined)
    out[f"{measured}_se"] = out[f"{measured}_se"].where(defined)
    for column in ("ineligible", "error"):
        out[column] = groups[column].agg(lambda texts: next((t for t in texts if t), ""))
    columns = ["accuracy", "accuracy_se", measured, f"{measured}_se", "met", "eligible"]
    out = out[[*columns, "ineligible", "seconds", "memory_mib", "splits", "error"]].reset_index()
    out.attrs = table.attrs
    return out


def accuracy_at_rate(table: pd.DataFrame, rates: Sequence[float] | None = None) -> pd.DataFrame:
    """Accuracy of each peer's mean test curve at given rates.

    The curve joins a peer's mean (rate, accuracy) points over τ. At a rate it is worth the best
    of the points at least that fair and of the line between neighbours there; nothing is assumed
    beyond the fairest point. Points that are eligible on fewer than half of the splits are left
    out.

    Parameters
    ----------
    table : DataFrame
        What :func:`~evenhand.peers.compare` returned.
    rates : sequence of float, optional
        Where to read the curves: (0.8, 0.9, 0.95), or of differences (0.1, 0.05, 0.02).

    Returns
    -------
    DataFrame
        A row for each peer, with columns ``needs_group`` and, for each rate r, ``r`` and
        ``r_se``; NaN where the curve does not reach.
    """
    means, (_, measured, sign) = summarize(table), axes_of(table)
    if rates is None:
        rates = (0.8, 0.9, 0.95) if sign > 0 else (0.1, 0.05, 0.02)
    # The larger the fairer, whatever is compared.
    means["rate"] = sign * means[measured]
    rows = []
    for (key, name, aware), part in means.groupby(["key", "method", "needs_group"], sort=False):
        part = part[part["eligible"] >= 0.5].dropna(subset=["rate", "accuracy"])
        part = part.sort_values("rate")
        row = {"key": key, "method": name, "needs_group": aware}
        for rate in np.atleast_1d(rates):
            value, error = _read_curve(part, sign * rate)
            row |= {f"{rate:g}": value, f"{rate:g}_se": error}
        rows.append(row)
    return pd.DataFrame(rows)


def _read_curve(points: pd.DataFrame, rate: float) -> tuple[float, float]:
    """Accuracy and standard error at a rate, of points in the order of their rates."""
    fair = points[points["rate"] >= rate]
    if fair.empty:
        return np.nan, np.nan
    columns = points[["accuracy", "accuracy_se"]].to_numpy()
    at = [np.interp(rate, points["rate"], column) for column in columns.T]
    at = at if rate >= points["rate"].iloc[0] else [-np.inf, 0.0]
    best = fair.loc[fair["accuracy"].idxmax()]
    if best["accuracy"] >= at[0]:
        return float(best["accuracy"]), float(best["accuracy_se"])
    return float(at[0]), float(at[1])
