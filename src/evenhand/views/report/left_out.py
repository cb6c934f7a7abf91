"""The sentences about rows without a label, which a verdict leaves out."""

from __future__ import annotations

from typing import Any

from evenhand.views.formats import listed, percent, quoted, thousands
from evenhand.views.targets import words_of


def missed_over_all(summary: dict[str, Any]) -> bool:
    """Whether a rate that needs no label misses its target over all rows of the table."""
    all_rows = summary.get("all_rows")
    return all_rows is not None and all_rows["judged"] and not all_rows["reached"]


def unknown_over_all(summary: dict[str, Any]) -> bool:
    """Whether it cannot be judged if such a rate reaches its target over all rows."""
    all_rows = summary.get("all_rows")
    return all_rows is not None and not all_rows["judged"]


def unlabelled_sentences(summary: dict[str, Any]) -> dict[str, str]:
    """Say whom the figures leave out, if some rows have no label; empty if all have one.

    ``rows`` counts them, ``warning`` is said if it goes with the group, ``every`` has the
    comparison over all rows.
    """
    unlabelled = summary.get("unlabelled")
    test = " ".join(
        f"The test figures leave out {thousands(d['n'])} rows of the test table that have no label "
        f"({d['whom']}): they are of a selected part."
        for d in summary["data"]["rows_dropped"]
        if d.get("part") == "test" and d.get("whom")
    )
    if not unlabelled:
        return {"rows": "", "warning": test, "every": ""}
    label = quoted(summary["asked"]["label"])
    groups = {name: g for name, g in unlabelled["groups"].items() if g["rows"]}
    shares = [
        f"{thousands(g['missing'])} of {thousands(g['rows'])} rows of "
        f"{quoted(name) if name in summary['groups'] else name} "
        f"({percent(g['missing'] / g['rows'])})"
        for name, g in groups.items()
    ]
    if unlabelled["other_groups"]:
        shares.append(f"all {thousands(unlabelled['other_groups'])} rows of other groups")
    rows = (
        f"The figures are of rows that have a {label}, a selected part of the table: it is missing "
        f"in {listed(shares)}."
    )
    warning = ""
    if unlabelled["related"]:
        warning = (
            f"Who has a {label} depends on the group. What is said of the population is about "
            f"people whose {label} is known, not about all."
        )
    warning = " ".join(filter(None, [warning, test]))
    return {"rows": rows, "warning": warning, "every": _every_sentence(summary, label)}


def _every_sentence(summary: dict[str, Any], label: str) -> str:
    """Say how the groups compare over all rows, with a label or without."""
    all_rows, words = summary["all_rows"], words_of(summary)
    if all_rows is None:
        if "statistical_parity" not in summary["asked"]["notions"]:
            return ""
        return (
            f"The {words.name} over all rows was not measured: evenhand predict and then evenhand "
            "audit on its answers measure it."
        )
    several, out = len(all_rows["rates"]) > 1, []
    for rate in all_rows["rates"]:
        words = words_of(rate) if "comparison" in rate else words
        rates = {group: r for group, r in rate["groups"].items() if r is not None}
        if len(rates) > 4:
            rates = {f(rates, key=rates.__getitem__): f(rates.values()) for f in (min, max)}
        by_group = ", ".join(f"{quoted(group)} {percent(r)}" for group, r in rates.items())
        of = f" for {listed([quoted(a) for a in rate['answer']], 'or')}" if several else ""
        goal = f"the target of {words.level(rate['tau'])}"
        verdict = f"which reaches {goal}" if rate["reached"] else f"{words.missed} {goal}"
        value = words.text(rate["ratio"], rate["tau"])
        out.append(
            f"unknown{of} ({by_group})"
            if rate["ratio"] is None
            else f"{value}{of} ({by_group}), {verdict}"
        )
    rows = f"Over all {thousands(all_rows['n'])} rows, with or without a {label}"
    if all_rows["uncompared"]:
        left = [f"{thousands(n)} rows of {quoted(g)}" for g, n in all_rows["uncompared"].items()]
        lacking = (
            f"{listed(left)} have no {label}, and too few have one for that group to be compared"
        )
        others = f"{rows}, of the other groups the {words.name} is {'; '.join(out)}."
        if all_rows["judged"]:
            return f"{others} Besides, {lacking}."
        return f"Over all rows the target cannot be judged: {lacking}. {others}"
    return f"{rows}, the {words.name} is {'; '.join(out)}."
