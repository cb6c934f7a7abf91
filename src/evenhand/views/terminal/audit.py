"""The screen of ``evenhand audit``."""

from __future__ import annotations

import shlex
from typing import Any

from rich.text import Text

from evenhand.core.rates import RATES
from evenhand.views.formats import NONE, percent
from evenhand.views.terminal.screen import Grid, Screen, crossed, ratio_cell, short
from evenhand.workflow.labels import alike_warning


def show_audit(found: dict[str, Any]) -> None:
    """Show an audit: sizes, rates with intervals, ratios, the verdict."""
    screen = Screen()
    names = [short(g, 30) for g in found["groups"]]
    what = found["prediction"] or found["label"]
    also = (found["label"], found["favourable_label"]) if "accuracy" in found else None
    screen.say_favourable(what, [found["favourable"]], also)
    screen.say(f"by {crossed(found['sensitive'])}, {found['n_rows_compared']:,} rows", "bold")
    screen.say_left_out(found["dropped"])
    _say_other_labels(screen, found)
    if found["small_groups"]:
        small = ", ".join(
            f"{short(g['group'], 30)} ({g['favourable']} of {g['rows']} favourable)"
            for g in found["small_groups"]
        )
        screen.say(f"not compared, fewer than {found['min_group_size']} rows: {small}", "yellow")
    _say_few_labels(screen, found)
    _show_rates(screen, found, names)
    screen.say("In brackets: 95% intervals (Wilson's).", "dim")
    perfect = [
        name.replace("_", " ")
        for name, groups in found["rates"].items()
        if RATES[name].is_error and found["ratios"][name] is None
        if all(g["value"] == 0 for g in groups if g["compared"])
    ]
    if perfect:
        screen.say(f"No ratio, because no group has such an error: {', '.join(perfect)}.", "dim")
    if found["association"] is not None:
        screen.say(
            f"Group and {short(what)} go together with {found['association']:.3f} (Cramér's V: 0 "
            "not at all, 1 completely).",
            "dim",
        )
    _say_missing_labels(screen, found)
    _say_opposite(screen, found)
    _say_verdict(screen, found, names)


def _show_rates(screen: Screen, found: dict[str, Any], names: list[str]) -> None:
    """Show a column for each group, or if there is no room a row for each."""
    table = _rates_table(found, names, wide=False)
    if len(names) <= 4 and table.fits():
        screen.print(table)
        return
    screen.print(_rates_table(found, names, wide=True))
    rates = list(found["rates"].items())
    # Rates that are of other rows do not stand beside the same number.
    first = 1 if _some_unlabelled(found) else 2
    for pair in [rates[:first], *(rates[i : i + 2] for i in range(first, len(rates), 2))]:
        title, sizes = "rows", found["sizes"]
        if first == 1 and pair[0][0] != "selection_rate":
            title, sizes = f"rows with {short(found['label'], 20)}", found["labelled"]
        block = Grid("group", title, *(name.replace("_", " ") for name, _ in pair))
        for k, (name, n) in enumerate(zip(names, sizes, strict=True)):
            block.row(name, f"{n:,}", *(_with_interval(groups[k]) for _, groups in pair))
        screen.print(block)


def _rates_table(found: dict[str, Any], names: list[str], *, wide: bool) -> Grid:
    """Rates of all groups, or if these are ``wide`` the smallest and the largest."""
    table = Grid("", *(["smallest", "largest"] if wide else names), "ratio")
    if not wide:
        table.row("rows", *(f"{n:,}" for n in found["sizes"]), "")
    for name, groups in found["rates"].items():
        ratio = found["ratios"][name]
        text, style = ratio_cell(ratio, found["tau"]), ""
        if name in found["not_judged"]:
            text, style = "?" if ratio is None else f"{text} ?", "dim"
        elif ratio is not None and ratio < found["tau"]:
            style = "red"
        shown = [_with_interval(g) for g in groups]
        if wide:
            values = [g["value"] if g["compared"] else None for g in groups]
            known = [(v, i) for i, v in enumerate(values) if v is not None]
            ends = [min(known), max(known)] if known else []
            shown = [f"{percent(v)} {names[i]}" for v, i in ends] or [NONE, NONE]
        table.row(name.replace("_", " "), *shown, Text(text, style=style))
        if name == "selection_rate" and not wide and _some_unlabelled(found):
            title = f"rows with {short(found['label'], 20)}"
            table.row(title, *(f"{n:,}" for n in found["labelled"]), "")
    return table


def _some_unlabelled(found: dict[str, Any]) -> bool:
    """Whether rates that need a label are of fewer rows than the selection rate."""
    return found["prediction"] is not None and found.get("missing_labels") is not None


def _with_interval(group: dict[str, Any]) -> str:
    if group["value"] is None or not group["compared"]:
        return NONE
    low, high = (percent(group[end])[:-1] for end in ("low", "high"))
    return f"{percent(group['value'])} ({low}–{high})"


def _rows_of(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _say_other_labels(screen: Screen, found: dict[str, Any]) -> None:
    """Say which answers count as not favourable, and which of them may be mistakes."""
    others = found.get("not_favourable")
    if not others:
        return
    column = short(found["label"] or found["prediction"])
    counts = [f"{short(w, 30)} ({_rows_of(n)})" for w, n in others.items()]
    where = f" in {column}" if found["label"] and found["prediction"] else ""
    screen.say(f"counted as not favourable{where}: {', '.join(counts)}")
    words = found["perhaps_missing"]
    if words:
        named = " and ".join(repr(short(w, 30)) for w in words)
        options = " ".join(f"--na {shlex.quote(w)}" for w in words)
        screen.say(
            f"If {named} in {column} means that there is no outcome, {options} leaves these rows "
            "out.",
            "bold yellow",
        )
    for same in found["alike_labels"]:
        written = {short(word, 30): n for word, n in same.items()}
        screen.say(str(alike_warning(written, column)), "bold yellow")


def _say_missing_labels(screen: Screen, found: dict[str, Any]) -> None:
    """Say which rows the rates are of, if some rows have no answer or no label."""
    alone = found["prediction"] is None
    what = short(found["label"] if alone else found["prediction"])
    unanswered = found["missing_labels" if alone else "missing_predictions"]
    if unanswered is not None:
        known, every = found["n_rows_compared"], sum(p["rows"] for p in unanswered["by_group"])
        screen.say(
            f"The rate is of {known:,} of {every:,} rows, those that have {what}: a selected part.",
            "yellow",
        )
        if unanswered["related"]:
            why = _which_groups(found, unanswered, what)
            screen.say(f"{why} {_what_follows(found, unanswered)}", "bold yellow")
    missing = found.get("missing_labels")
    if alone or missing is None:
        return
    every, known = found["rows"]["selection_rate"], sum(found["labelled"])
    label = short(found["label"])
    screen.say(
        f"The selection rate is of all {every:,} rows that have {what}. All other rates need "
        f"{label} and are of the {known:,} rows that have one: a selected part.",
        "yellow",
    )
    warning = [_which_groups(found, missing, label)] if missing["related_to_group"] else []
    warning += [_which_answers(found)] if missing["related"] else []
    if missing["not_judged"] or missing["related"]:
        warning.append(_what_follows(found, missing))
    if warning:
        screen.say(" ".join(warning), "bold yellow")


def _say_few_labels(screen: Screen, found: dict[str, Any]) -> None:
    """List groups that have rows enough and too few labels."""
    if not found.get("few_labels"):
        return
    label, least = short(found["label"]), found["min_group_size"]
    few = ", ".join(
        f"{short(g['group'], 30)} ({g['labelled']:,} of {_rows_of(g['rows'])})"
        for g in found["few_labels"]
    )
    left_out = not all(g["compared"] for g in found["rates"]["accuracy"])
    start = f"not compared by rates that need {label}, " if left_out else ""
    screen.say(f"{start}fewer than {least} rows have {label}: {few}", "yellow")


def _say_opposite(screen: Screen, found: dict[str, Any]) -> None:
    """Say that label and prediction may be the wrong way round."""
    other = found.get("opposite")
    if other is None:
        return
    label, prediction = short(found["label"]), short(found["prediction"])
    screen.say(
        f"Fewer than half of the predictions are right ({percent(found['accuracy'])}). {label} and "
        f"{prediction} may count opposite answers as favourable: if {label} = {short(other, 30)} "
        f"is what {prediction} = {short(found['favourable'], 30)} hopes for, say "
        f"--favourable-label {shlex.quote(other)}.",
        "bold yellow",
    )


def _which_groups(found: dict[str, Any], missing: dict[str, Any], what: str) -> str:
    """Say in which groups answers are missing."""
    parts = missing["by_group"]
    if len(parts) > 4:
        parts = sorted(parts, key=lambda part: part["missing"] / part["rows"])
        parts = [parts[0], parts[-1]]
    shares = " and ".join(
        f"{percent(part['missing'] / part['rows'])} of the {_rows_of(part['rows'])} of "
        f"{short(part['group'], 30)}"
        for part in parts
    )
    return f"Who has no {what} depends on {crossed(found['sensitive'])}: it is missing in {shares}."


def _which_answers(found: dict[str, Any]) -> str:
    """Say with which answers labels are missing, in all rows or within groups."""
    missing = found["missing_labels"]
    related = [part for part in missing["by_group"] if part["related"]][:4]
    where = [(f"Among {short(part['group'], 30)}, who", part) for part in related]
    if missing["related_pooled"]:
        where = [("Who", missing)]
    sentences = []
    for who, part in where:
        answers = zip(
            ("with another", "with the favourable"), part["by_prediction"].values(), strict=True
        )
        shares = " and ".join(
            f"{percent(by['missing'] / by['rows'])} of the {by['rows']:,} rows {name}"
            for name, by in answers
            if by["rows"]
        )
        sentences.append(
            f"{who} has no {short(found['label'])} depends on {short(found['prediction'])}: it is "
            f"missing in {shares} answer."
        )
    return " ".join(sentences)


def _what_follows(found: dict[str, Any], missing: dict[str, Any]) -> str:
    """Say which rates cannot be judged because answers, or labels, are missing."""
    unsure, tau = missing["not_judged"], f"{found['tau']:g}"
    if "related_pooled" not in missing:
        which = "labels" if found["prediction"] is None else "answers"
        if unsure:
            return f"The missing {which} could put the ratio on the other side of {tau}."
        return f"But whatever the missing {which} are, the ratio stays on its side of {tau}."
    if not unsure:
        return f"But whatever the missing labels are, every ratio stays on its side of {tau}."
    if len(unsure) == len(found["ratios"]) - 1:
        return f"No rate that needs {short(found['label'])} can be judged (ratios marked ?)."
    return (
        f"Ratios marked ? cannot be judged: the missing labels could put them on the other side of "
        f"{tau}."
    )


def _cannot_be_told(found: dict[str, Any]) -> str:
    """Go on after a verdict on the selection rate: what labels that are missing leave open."""
    missing = found.get("missing_labels")
    if found["prediction"] is None or missing is None:
        return ""
    label, unsure = short(found["label"]), missing["not_judged"]
    if len(unsure) == len(found["ratios"]) - 1:
        return f" The rates that need {label}: cannot be told."
    if unsure:
        return f" Of the rates that need {label}, those marked ? cannot be told."
    return f" The rates that need {label} are of a selected part." * bool(missing["related"])


def _say_verdict(screen: Screen, found: dict[str, Any], names: list[str]) -> None:
    ratio, tau = found["ratios"]["selection_rate"], found["tau"]
    rule = "the four-fifths rule" if tau == 0.8 else f"a ratio of {tau:g}"
    both = found["prediction"] is not None
    whose = "selection rate" if both and found["label"] is not None else "rate"
    unknown = _cannot_be_told(found)
    what = short(found["prediction"] or found["label"])
    verdict, style = f"{rule} cannot be judged: ", "yellow"
    if 0 in found["sizes"]:
        verdict += f"no row of {names[found['sizes'].index(0)]} has {what}"
    elif ratio is None:
        verdict += "nobody has the favourable value"
    elif not found["judged"]:
        verdict += (
            f"too many rows have no {what}, and who has none depends on the group; of the other "
            f"rows the ratio is {ratio_cell(ratio, tau)}"
        )
    elif found["passed"] and unknown:
        verdict = f"selection rate: within {rule} ({ratio_cell(ratio, tau)})"
    else:
        word, style = ("passes", "green") if found["passed"] else ("fails", "red")
        verdict = f"{word} {rule}: the ratio of the smallest to the largest {whose} is "
        verdict += ratio_cell(ratio, tau)
    screen.say(f"{verdict[0].upper()}{verdict[1:]}.{unknown}", f"bold {style}")
    if found["privileged"] is not None:
        ratios = found["ratios_to_privileged"]["selection_rate"]
        shown = [
            f"{name} {ratio_cell(r, tau)}"
            for name, group, r in zip(names, found["groups"], ratios, strict=True)
            if group != found["privileged"]
        ]
        screen.say(f"Over the rate of {short(found['privileged'])}: {', '.join(shown)}.")
    other = found.get("with_small_groups")
    if other is not None and found["judged"] and other["passed"] != found["passed"]:
        screen.say(
            "The groups that were not compared change the verdict: with them the ratio is "
            f"{ratio_cell(other['ratio'], tau)}, which {'passes' if other['passed'] else 'fails'}.",
            "bold yellow",
        )
