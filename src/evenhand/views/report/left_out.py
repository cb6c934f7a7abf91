"""The sentences about whom a verdict leaves out: rows without a label, and small groups."""

from __future__ import annotations

from typing import Any

from evenhand.views.formats import listed, percent, quoted, ratio_text, tau_text, thousands


def missed_over_all(summary: dict[str, Any]) -> bool:
    """Whether a rate that needs no label misses its target over all rows of the table."""
    every = summary.get("all_rows")
    return every is not None and every["judged"] and not every["reached"]


def unknown_over_all(summary: dict[str, Any]) -> bool:
    """Whether it cannot be judged if such a rate reaches its target over all rows."""
    every = summary.get("all_rows")
    return every is not None and not every["judged"]


def unlabelled_sentences(summary: dict[str, Any]) -> dict[str, str]:
    """Say whom the figures leave out, if some rows have no label; empty if all have one.

    ``rows`` counts them, ``warning`` is said if it goes with the group, ``every`` has the ratio
    over all rows.
    """
    found = summary.get("unlabelled")
    test = " ".join(
        f"The test figures leave out {thousands(d['n'])} rows of the test table that have no label "
        f"({d['whom']}): they are of a selected part."
        for d in summary["data"]["rows_dropped"]
        if d.get("part") == "test" and d.get("whom")
    )
    if not found:
        return {"rows": "", "warning": test, "every": ""}
    label = quoted(summary["asked"]["label"])
    groups = {name: g for name, g in found["groups"].items() if g["rows"]}
    shares = [
        f"{thousands(g['missing'])} of {thousands(g['rows'])} rows of {quoted(name)} "
        f"({percent(g['missing'] / g['rows'])})"
        for name, g in groups.items()
    ]
    if found["other_groups"]:
        shares.append(f"all {thousands(found['other_groups'])} rows of other groups")
    rows = (
        f"The figures are of rows that have a {label}, a selected part of the table: it is missing "
        f"in {listed(shares)}."
    )
    warning = ""
    if found["related"]:
        warning = (
            f"Who has a {label} depends on the group. What is said of the population is about "
            f"people whose {label} is known, not about all."
        )
    warning = " ".join(filter(None, [warning, test]))
    return {"rows": rows, "warning": warning, "every": _every_sentence(summary, label)}


def _every_sentence(summary: dict[str, Any], label: str) -> str:
    """Say what the ratio is over all rows, with a label or without."""
    every = summary["all_rows"]
    if every is None:
        if "statistical_parity" not in summary["asked"]["notions"]:
            return ""
        return (
            "The ratio over all rows was not measured: evenhand predict, and evenhand audit of its "
            "answers, give it."
        )
    several, out = len(every["rates"]) > 1, []
    for rate in every["rates"]:
        known = {group: r for group, r in rate["groups"].items() if r is not None}
        if len(known) > 4:
            known = {f(known, key=known.__getitem__): f(known.values()) for f in (min, max)}
        each = ", ".join(f"{quoted(group)} {percent(r)}" for group, r in known.items())
        of = f" for {listed([quoted(a) for a in rate['answer']], 'or')}" if several else ""
        goal = f"the target of {tau_text(rate['tau'])}"
        verdict = f"which reaches {goal}" if rate["reached"] else f"below {goal}"
        ratio = ratio_text(rate["ratio"], rate["tau"])
        out.append(
            f"unknown{of} ({each})" if rate["ratio"] is None else f"{ratio}{of} ({each}), {verdict}"
        )
    rows = f"Over all {thousands(every['n'])} rows, with or without a {label}"
    if every["uncompared"]:
        left = [f"{thousands(n)} rows of {quoted(g)}" for g, n in every["uncompared"].items()]
        lacking = (
            f"{listed(left)} have no {label}, and too few have one for that group to be compared"
        )
        others = f"{rows}, of the other groups the ratio is {'; '.join(out)}."
        if every["judged"]:
            return f"{others} Besides, {lacking}."
        return f"Over all rows the target cannot be judged: {lacking}. {others}"
    return f"{rows}, the ratio is {'; '.join(out)}."


def small_groups_sentence(summary: dict[str, Any]) -> str:
    """Say which groups are not compared, what the saved model does to them, and what that hides."""
    small = summary.get("not_compared")
    if not small:
        return ""
    n = len(small["groups"])
    names = [f"{quoted(group)} ({thousands(rows)})" for group, rows in small["groups"].items()]
    shown = names if n <= 8 else [*names[:7], f"{n - 7} more"]
    start = "1 group is" if n == 1 else f"{n} groups are"
    least = small["min_group_size"]
    text = [f"{start} not compared, for fewer than {least} training rows: {listed(shown)}."]
    whose, who = ("its rows", "it") if n == 1 else ("their rows together", "them together")
    names = small["parts"][0]["rates"] if small["parts"] else []
    rate = names[0].replace("_", " ") if len(names) == 1 else "rates"
    rates = [
        f"{percent(value)} of {thousands(rows)} {part['title']}"
        + (f" ({name.replace('_', ' ')})" if len(names) > 1 else "")
        for part in small["parts"]
        for name, value, rows in zip(names, part["values"], part["rows"], strict=True)
        if value is not None
    ]
    if rates:
        text.append(f"The saved model's {rate} among {whose}: {listed(rates)}.")
    for part in small["parts"]:
        if part["changes"]:
            ratio = ratio_text(part["ratio"], summary["tau"])
            other = "missed" if part["ratio"] < summary["tau"] else "reached"
            text.append(
                f"With {who} as one more group the ratio on the {part['title']} would be {ratio}, "
                f"and the target {other} there."
            )
    return " ".join(text)
