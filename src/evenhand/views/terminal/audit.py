"""The screen of ``evenhand audit``."""

from __future__ import annotations

from typing import Any

from rich.text import Text

from evenhand.core.errors import Parameter
from evenhand.core.rates import RATES
from evenhand.views.formats import NONE, listed, percent
from evenhand.views.targets import TARGET_WORDS, words_of
from evenhand.views.terminal.screen import Grid, Screen, crossed, short
from evenhand.views.verdicts import (
    ASSUMED,
    STYLES,
    bounds_text,
    population_sentence,
    weight_sentence,
)
from evenhand.workflow.labels import alike_warning, no_outcome_warning


def show_audit(report: dict[str, Any]) -> None:
    """Show an audit: sizes, rates with intervals, ratios, the verdict.

    Of several attributes they are shown side by side, and then each by itself.
    """
    if "audits" in report:
        _show_side_by_side(report)
        for one in report["audits"]:
            show_audit(one)
        return
    screen, words = Screen(), words_of(report)
    names = [short(g, 30) for g in report["groups"]]
    what = report["prediction"] or report["label"]
    also = (report["label"], report["favourable_label"]) if "accuracy" in report else None
    screen.say_favourable(what, [report["favourable"]], also)
    screen.say(
        f"{_rows_of(report['n_rows_compared'])}, groups by {crossed(report['sensitive'])}", "bold"
    )
    weight = report.get("weight")
    if weight is not None:
        screen.say(weight_sentence(short(weight)), "yellow")
    screen.say_left_out(report["dropped"])
    _say_other_labels(screen, report)
    for name, found in report["alike_groups"].items():
        _say_alike(screen, found, name, "different groups")
    if report["small_groups"]:
        small = ", ".join(
            f"{short(g['group'], 30)} ({g['favourable']} of {g['rows']} favourable)"
            for g in report["small_groups"]
        )
        screen.say(f"not compared, fewer than {report['min_group_size']} rows: {small}", "yellow")
    _say_few_labels(screen, report)
    bounds = _show_rates(screen, report, names)
    if weight is None:
        screen.say(f"In brackets: exact 95% intervals (Clopper and Pearson's).{bounds}", "dim")
    perfect = [
        name.replace("_", " ")
        for name, groups in report["rates"].items()
        if RATES[name].is_error and report["ratios"][name] is None
        if all(g["value"] == 0 for g in groups if g["compared"])
    ]
    if perfect:
        screen.say(
            f"No {words.name}, because no group has such an error: {', '.join(perfect)}.", "dim"
        )
    if report["association"] is not None:
        screen.say(
            f"Association of group and {short(what)}: {report['association']:.3f} (Cramér's V, "
            "from 0 for none to 1 for complete).",
            "dim",
        )
    _say_missing_labels(screen, report)
    _say_opposite(screen, report)
    _say_verdict(screen, report, names)


def _show_side_by_side(report: dict[str, Any]) -> None:
    """Show each attribute's comparison in one table, and which is the worst."""
    screen, words = Screen(), words_of(report)
    table = Grid("groups by", "how many", words.name, "rule", "in the population")
    for one in report["audits"]:
        ratio = words.text(one["ratios"]["selection_rate"], report["tau"])
        verdict = one["verdict"]
        named = crossed(one["sensitive"])
        table.row(named, len(one["groups"]), ratio, verdict["rule"], verdict["population"])
    screen.print(table)
    if report["worst"] is not None:
        met = "met by every attribute" if report["passed"] else "not met by every attribute"
        rule = words.rule(report["tau"])
        style = "green" if report["passed"] else "red"
        worst = short(report["worst"])
        screen.say(
            f"{rule} is {met}; the worst groups are by {worst}.".capitalize(), f"bold {style}"
        )


def _show_rates(screen: Screen, report: dict[str, Any], names: list[str]) -> str:
    """Show a column for each group, or if there is no room a row for each; explain the last one."""
    words, sure = words_of(report), f"{100 * report['confidence']:g}% confidence"
    what = f" In the population: what a {words.name} is at least and at most, each with {sure}."
    for bounds in (report.get("weight") is None, False):
        table = _rates_table(report, names, wide=False, bounds=bounds)
        if len(names) <= 4 and table.fits():
            screen.print(table)
            return what * bounds
    screen.print(_rates_table(report, names, wide=True, bounds=report.get("weight") is None))
    rates = list(report["rates"].items())
    # Rates that are of other rows do not stand beside the same number.
    first = 1 if _some_unlabelled(report) else 2
    for pair in [rates[:first], *(rates[i : i + 2] for i in range(first, len(rates), 2))]:
        title, sizes = "rows", report["sizes"]
        if first == 1 and pair[0][0] != "selection_rate":
            title, sizes = f"rows with {short(report['label'], 20)}", report["labelled"]
        block = Grid("group", title, *(name.replace("_", " ") for name, _ in pair))
        for k, (name, n) in enumerate(zip(names, sizes, strict=True)):
            block.row(name, f"{n:,}", *(_with_interval(groups[k]) for _, groups in pair))
        screen.print(block)
    return what


def _rates_table(report: dict[str, Any], names: list[str], *, wide: bool, bounds: bool) -> Grid:
    """Rates of all groups, or if these are ``wide`` the smallest and the largest."""
    words = words_of(report)
    last = ["in the population"] * bounds
    table = Grid("", *(["smallest", "largest"] if wide else names), words.name, *last)
    if not wide:
        table.row("rows", *(f"{n:,}" for n in report["sizes"]), "")
    for name, groups in report["rates"].items():
        ratio = report["ratios"][name]
        text, style = words.text(ratio, report["tau"]), ""
        if name in report["not_judged"]:
            text, style = "?" if ratio is None else f"{text} ?", "dim"
        elif ratio is not None and not report["reached"][name]:
            style = "red"
        shown = [_with_interval(g) for g in groups]
        if wide:
            values = [g["value"] if g["compared"] else None for g in groups]
            known = [(v, i) for i, v in enumerate(values) if v is not None]
            ends = [min(known), max(known)] if known else []
            shown = [f"{percent(v)} {names[i]}" for v, i in ends] or [NONE, NONE]
        last = [bounds_text(report["bounds"][name], words, report["tau"])] * bounds
        table.row(name.replace("_", " "), *shown, Text(text, style=style), *last)
        if name == "selection_rate" and not wide and _some_unlabelled(report):
            title = f"rows with {short(report['label'], 20)}"
            table.row(title, *(f"{n:,}" for n in report["labelled"]), "")
    return table


def _some_unlabelled(report: dict[str, Any]) -> bool:
    """Whether rates that need a label are of fewer rows than the selection rate."""
    return report["prediction"] is not None and report.get("missing_labels") is not None


def _with_interval(group: dict[str, Any]) -> str:
    if group["value"] is None or not group["compared"]:
        return NONE
    if group["low"] is None:
        return percent(group["value"])
    low, high = (percent(group[end])[:-1] for end in ("low", "high"))
    return f"{percent(group['value'])} ({low}–{high})"


def _rows_of(n: int) -> str:
    return f"{n:,} row{'s' * (n != 1)}"


def _say_other_labels(screen: Screen, report: dict[str, Any]) -> None:
    """Say which answers count as not favourable, and which of them may be mistakes."""
    others = report.get("not_favourable")
    if not others:
        return
    column = short(report["label"] or report["prediction"])
    counts = [f"{short(w, 30)} ({_rows_of(n)})" for w, n in others.items()]
    where = f" in {column}" if report["label"] and report["prediction"] else ""
    screen.say(f"counted as not favourable{where}: {', '.join(counts)}")
    words = report["perhaps_missing"]
    if words:
        screen.say(no_outcome_warning(words, column).sentence(screen.spell), "bold yellow")
    _say_alike(screen, report["alike_labels"], column)


def _say_alike(screen: Screen, found: Any, column: str, *what: str) -> None:
    """Say which values differ only in how they are written."""
    for same in found:
        written = {short(word, 30): n for word, n in same.items()}
        screen.say(str(alike_warning(written, short(column), *what)), "bold yellow")


def _say_missing_labels(screen: Screen, report: dict[str, Any]) -> None:
    """Say which rows the rates are of, if some rows have no answer or no label."""
    alone = report["prediction"] is None
    what = short(report["label"] if alone else report["prediction"])
    unanswered = report["missing_labels" if alone else "missing_predictions"]
    if unanswered is not None:
        known, every = report["n_rows_compared"], sum(p["rows"] for p in unanswered["by_group"])
        screen.say(
            f"The rate is measured on {known:,} of {every:,} rows, which have a value in {what}: a "
            "selected part.",
            "yellow",
        )
        if unanswered["related"]:
            why = _which_groups(report, unanswered, what)
            screen.say(f"{why} {_what_follows(report, unanswered)}", "bold yellow")
    missing = report.get("missing_labels")
    if alone or missing is None:
        return
    every, known = report["rows"]["selection_rate"], sum(report["labelled"])
    label = short(report["label"])
    screen.say(
        f"The selection rate is measured on all {every:,} rows that have a value in {what}. All "
        f"other rates need {label} and are measured on the {known:,} rows that have one: a "
        "selected part.",
        "yellow",
    )
    warning = [_which_groups(report, missing, label)] if missing["related_to_group"] else []
    warning += [_which_answers(report)] if missing["related"] else []
    if missing["not_judged"] or missing["related"]:
        warning.append(_what_follows(report, missing))
    if warning:
        screen.say(" ".join(warning), "bold yellow")


def _say_few_labels(screen: Screen, report: dict[str, Any]) -> None:
    """List groups that have rows enough and too few labels."""
    if not report.get("few_labels"):
        return
    label, least = short(report["label"]), report["min_group_size"]
    few = ", ".join(
        f"{short(g['group'], 30)} ({g['labelled']:,} of {_rows_of(g['rows'])})"
        for g in report["few_labels"]
    )
    left_out = not all(g["compared"] for g in report["rates"]["accuracy"])
    start = f"not compared by rates that need {label}, " if left_out else ""
    screen.say(f"{start}fewer than {least} rows have {label}: {few}", "yellow")


def _say_opposite(screen: Screen, report: dict[str, Any]) -> None:
    """Say that label and prediction may be the wrong way round."""
    other = report.get("opposite")
    if other is None:
        return
    label, prediction = short(report["label"]), short(report["prediction"])
    good, option = short(report["favourable"], 30), Parameter("favourable_label", other)
    screen.say(
        f"Fewer than half of the predictions are right ({percent(report['accuracy'])}). {label} "
        f"and {prediction} may count opposite answers as favourable: if {label} = "
        f"{short(other, 30)} is the outcome that {prediction} = {good} predicts, say "
        f"{screen.spell(option)}.",
        "bold yellow",
    )


def _which_groups(report: dict[str, Any], missing: dict[str, Any], what: str) -> str:
    """Say in which groups answers are missing."""
    parts = missing["by_group"]
    if len(parts) > 4:
        parts = sorted(parts, key=lambda part: part["missing"] / part["rows"])
        parts = [parts[0], parts[-1]]
    shares = [
        f"{percent(part['missing'] / part['rows'])} of the {_rows_of(part['rows'])} of "
        f"{short(part['group'], 30)}"
        for part in parts
    ]
    by = crossed(report["sensitive"])
    return f"Who has no {what} depends on {by}: it is missing in {listed(shares)}."


def _which_answers(report: dict[str, Any]) -> str:
    """Say with which answers labels are missing, in all rows or within groups."""
    missing = report["missing_labels"]
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
            f"{who} has no {short(report['label'])} depends on {short(report['prediction'])}: it "
            f"is missing in {shares} answer."
        )
    return " ".join(sentences)


def _what_follows(report: dict[str, Any], missing: dict[str, Any]) -> str:
    """Say which rates cannot be judged because answers, or labels, are missing."""
    unsure, words = missing["not_judged"], words_of(report)
    name, target = words.name, f"the target of {words.level(report['tau'])}"
    if "related_pooled" not in missing:
        which = "labels" if report["prediction"] is None else "answers"
        if unsure:
            return f"The missing {which} could put the {name} on the other side of {target}."
        return f"But whatever the missing {which} are, the {name} stays on its side of {target}."
    if not unsure:
        return f"But whatever the missing labels are, every {name} stays on its side of {target}."
    if len(unsure) == len(report["ratios"]) - 1:
        return f"No rate that needs {short(report['label'])} can be judged ({name}s marked ?)."
    return (
        f"{words.name.capitalize()}s marked ? cannot be judged: the missing labels could put them "
        f"on the other side of {target}."
    )


def _left_open(report: dict[str, Any]) -> str:
    """Go on after a verdict on the selection rate: what the missing labels leave open."""
    missing = report.get("missing_labels")
    if report["prediction"] is None or missing is None:
        return ""
    label, unsure = short(report["label"]), missing["not_judged"]
    if len(unsure) == len(report["ratios"]) - 1:
        return f" The rates that need {label} cannot be judged."
    if unsure:
        return f" Of the rates that need {label}, those marked ? cannot be judged."
    return f" The rates that need {label} are measured on a selected part." * bool(
        missing["related"]
    )


def _say_verdict(screen: Screen, report: dict[str, Any], names: list[str]) -> None:
    words, tau = words_of(report), report["tau"]
    ratio, rule = report["ratios"]["selection_rate"], words.rule(tau)
    both = report["prediction"] is not None
    whose = "selection rate" if both and report["label"] is not None else "rate"
    unknown = _left_open(report)
    what = short(report["prediction"] or report["label"])
    verdict, style = f"{rule} cannot be judged: ", "yellow"
    if 0 in report["sizes"]:
        verdict += f"no row of {names[report['sizes'].index(0)]} has {what}"
    elif ratio is None:
        verdict += "nobody has the favourable value"
    elif not report["judged"]:
        verdict += (
            f"too many rows have no {what}, and who has none depends on the group; of the other "
            f"rows the {words.name} is {words.text(ratio, tau)}"
        )
    else:
        word, style = ("met", "green") if report["passed"] else ("not met", "red")
        style = "yellow" if report["passed"] and unknown else style
        verdict = f"{rule} is {word}: the {words.name} {words.between} {whose} is "
        verdict += words.text(ratio, tau)
    screen.say(f"{verdict[0].upper()}{verdict[1:]}.{unknown}", f"bold {style}")
    population = population_sentence(report["verdict"], words)
    if population:
        screen.say(population, f"bold {STYLES[report['verdict']['population']]}")
    if population and report.get("weight") is None:
        screen.say(f"{ASSUMED}.", "dim")
    if report["privileged"] is not None:
        ratios = report["ratios_to_privileged"]["selection_rate"]
        shown = [
            f"{name} {TARGET_WORDS['ratio'].text(r, tau)}"
            for name, group, r in zip(names, report["groups"], ratios, strict=True)
            if group != report["privileged"]
        ]
        screen.say(f"Divided by the rate of {short(report['privileged'])}: {', '.join(shown)}.")
    other = report.get("with_small_groups")
    if other is not None and report["judged"] and other["passed"] != report["passed"]:
        met = "met" if other["passed"] else "not met"
        screen.say(
            f"The groups that were not compared change the verdict: with them the {words.name} is "
            f"{words.text(other['ratio'], tau)}, and the rule is {met}.",
            "bold yellow",
        )
