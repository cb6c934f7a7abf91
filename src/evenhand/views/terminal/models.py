"""The screens of a saved model: ``evenhand train``, ``pick`` and ``frontier``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.cells import cell_len
from rich.text import Text

from evenhand.core.errors import Parameter
from evenhand.core.targets import Target
from evenhand.views.formats import percent, plain_name
from evenhand.views.objectives import (
    cell_text,
    heading,
    objective_sentence,
    objective_words,
)
from evenhand.views.report.left_out import (
    missed_over_all,
    unknown_over_all,
    unlabelled_sentences,
)
from evenhand.views.report.phrases import TOO_SURE
from evenhand.views.report.words import (
    again_sentence,
    attribute_sentence,
    constant_sentence,
    dear_sentence,
    not_reached,
    rate_titles,
    small_groups_sentence,
    test_population,
    training_sentence,
    useless_sentence,
    weight_of,
)
from evenhand.views.targets import TARGET_WORDS, words_of
from evenhand.views.terminal.screen import Folded, Grid, Screen, crossed, short
from evenhand.views.verdicts import STYLES, weight_sentence
from evenhand.workflow.summary import objective_of, target_of

# What plain logistic regression is called at the cut that is best on the training rows.
BEST_CUT = "plain, best cut"
# Marks of the direction of writing, which the report's words have around names.
NO_MARKS = dict.fromkeys(map(ord, "\u2068\u2069"))


def figures_of(
    summary: dict[str, Any], counts: Any
) -> tuple[float, list[float], list[NDArray[Any]]]:
    """Give the objective's value of counts, and of each rate the comparison and the values."""
    c = np.asarray(counts, dtype=float)
    compared = c[: len(summary["groups"])]
    targets = target_of(summary).components
    values = [float(target.value(compared)) for target in targets]
    rates = [target.rate.components[0].per_group(compared) for target in targets]
    return float(objective_of(summary).value(c)), values, rates


def _notion_taus(summary: dict[str, Any]) -> list[tuple[str, float]]:
    """Each notion in words with its target; of mixed targets with the comparison."""
    asked = summary["asked"]
    taus = np.broadcast_to(asked["taus"], (len(asked["notions"]),)).tolist()
    kinds = [f", {kind}" for kind in asked.get("kinds", [])] or [""] * len(taus)
    names = [n.replace("_", " ") + kind for n, kind in zip(asked["notions"], kinds, strict=True)]
    return list(zip(names, taus, strict=True))


def _goals(summary: dict[str, Any]) -> list[str]:
    """Each notion's target with its letter."""
    asked = summary["asked"]
    kinds = asked.get("kinds") or [summary.get("comparison", "ratio")] * len(asked["notions"])
    taus = [tau for _, tau in _notion_taus(summary)]
    return [TARGET_WORDS[kind].goal(tau) for kind, tau in zip(kinds, taus, strict=True)]


def _rate_names(summary: dict[str, Any]) -> list[str]:
    titles = rate_titles(summary["rate"]["parts"], summary["labels"], "")
    names = [t["title"][:1].lower() + t["title"][1:] for t in titles]
    return [short(name.translate(NO_MARKS)) for name in names]


def _points_table(summary: dict[str, Any], rows: list[tuple[str, Any]], where: str) -> Grid:
    """Tell what classifiers are worth, ratios and rates: a row for each if there is room."""
    objective = objective_of(summary)
    figures = [(name, *figures_of(summary, counts)) for name, counts in rows]
    targets, names, words = target_of(summary).components, _rate_names(summary), words_of(summary)
    of_rates = [target.rate.components[0].groups(summary["groups"]) for target in targets]
    wide = max(map(len, of_rates)) > 4

    def shown(values: NDArray[Any]) -> list[str]:
        ends = [values.min(), values.max()] if wide else values.tolist()
        return [percent(v if v == v else None) for v in ends]

    if len(targets) == 1:
        groups = ["lowest", "highest"] if wide else [short(g, 20) for g in of_rates[0]]
        title = f"{where} ({names[0]} of each group, and their {words.name})"
        table = Grid("", heading(objective), words.name, *groups, title=title)
        for name, worth, ratios, values in figures:
            ratio = words.text(ratios[0], targets[0].level)
            table.row(name, cell_text(objective, worth), ratio, *shown(values[0]))
        if table.fits():
            return table
    # A row for each group: there is room for any number of them.
    symbol = "target" if words.name == "shortfall" else words.symbol
    table = Grid("", symbol, *(name for name, *_ in figures), title=where)
    table.row(heading(objective), "", *(cell_text(objective, worth) for _, worth, *_ in figures))
    for k, (name, target) in enumerate(zip(names, targets, strict=True)):
        words = TARGET_WORDS[target.comparison]
        cells = [
            Text(words.text(r[k], target.level), style="" if target.reached(r[k]) else "red")
            for _, _, r, _ in figures
        ]
        table.row(f"{name}, {words.name}", words.level(target.level), *cells)
        groups = ["lowest", "highest"] if wide else [short(g, 20) for g in of_rates[k]]
        columns = [shown(values[k]) for *_, values in figures]
        for group, *rates in zip(groups, *columns, strict=True):
            table.row(f"  {group}", "", *rates, style="dim")
    return table


def _classifiers(summary: dict[str, Any], key: str) -> list[tuple[str, Any]]:
    """Give the counts on a part of plain logistic regression and of the saved model, by name."""
    rows = []
    if summary["plain"] is not None and key in summary["plain"]["counts"]:
        plain, best = summary["plain"], summary["plain"].get("best_cut")
        rows.append((plain_name(summary), plain["counts"][key]))
        if best is not None and best["cut"] != 0:
            rows.append((_best_name(summary), best["counts"][key]))
    if key in summary["saved"]["counts"]:
        several = len(summary["rate"]["parts"]) > 1  # each has its τ beside it
        name = "evenhand" if several else f"evenhand, {words_of(summary).goal(summary['tau'])}"
        rows.append((name, summary["saved"]["counts"][key]))
    return rows


def _best_name(summary: dict[str, Any]) -> str:
    return "as it was, best cut" if summary.get("adjusted") else BEST_CUT


def _sentence(summary: dict[str, Any]) -> Text:
    """Say whether the targets are reached."""
    reached, goals, words = summary["reached"], _notion_taus(summary), words_of(summary)
    label = short(summary["asked"]["label"], 30)
    chosen = f", among rows that have a {label}" if summary.get("unlabelled") else ""
    chosen += ", but NOT over all rows" if missed_over_all(summary) else ""
    chosen += "; over all rows it cannot be judged" if unknown_over_all(summary) else ""
    unsure = missed_over_all(summary) or unknown_over_all(summary)
    unsure = (
        unsure or (summary.get("not_compared") or {"changes_verdict": False})["changes_verdict"]
    )
    good = "bold yellow" if unsure else "green"
    if reached["guarantee"] is not None:
        done = reached["target_reached"]
        text = reached["guarantee"] + (chosen if done else "")
        return Text(text[0].upper() + text[1:] + ".", style=good if done else "red")
    alike = len(set(_goals(summary))) == 1
    if alike:
        what = f"{words.goal(summary['tau'])} for {' and '.join(name for name, _ in goals)} is"
        rate = f": the {words.name} is {words.text(reached['rate'], summary['tau'])}"
    else:
        pairs = zip(_goals(summary), goals, strict=True)
        what = " and ".join(f"{goal} for {name.partition(',')[0]}" for goal, (name, _) in pairs)
        what += " are"
        # Of several targets the rate is on the scale of the strictest.
        share = None if reached["rate"] is None else reached["rate"] / summary["tau"]
        least = "of what its target allows" if words.sign < 0 else "of its target"
        rate = f": one {words.name} is at {percent(share)} {least}"
        if words.name == "shortfall":
            rate = "; what each has come to is shown below"
    sure = _sure(summary)
    who = f"among people whose {label} is known" if chosen else "in the population"
    if sure and alike:
        rate += f", and {words.text(reached['bound'], summary['tau'])} or {words.better} {who}"
    elif sure and reached["bound"] is not None and words.name != "shortfall":
        rate += f", and {percent(reached['bound'] / summary['tau'])} or {words.better} {who}"
    if reached["target_reached"]:
        text = f"{what} reached {reached['where']}{sure}{chosen}{rate if alike else ''}."
        return Text(text, style=good)
    if reached["rate"] is None:
        rate = f": no model has a {words.name}"
    elif alike:
        rate = rate.replace(": the", ": the nearest", 1)
    return Text(f"{what} NOT reached {reached['where']}{sure}{rate}.", style="bold red")


def _sure(summary: dict[str, Any]) -> str:
    """Say with which confidence a point was chosen."""
    asked = summary["asked"]
    if asked["confidence"] == "certified":
        return f", each with a certificate of confidence {1 - asked['delta']:g}"
    return f" with a confidence of about {asked['confidence']:g}" if asked["confidence"] else ""


def _say_first(screen: Screen, summary: dict[str, Any]) -> None:
    """Say which answer counts as favourable, and whether the group decides."""
    screen.say_favourable(summary["asked"]["label"], summary["asked"]["favourable"])
    if summary.get("adjusted"):
        screen.say(short(summary["adjusted"]["sentence"], 600))
    if summary["group_use"]:
        screen.say(short(summary["group_use"], 400), "bold yellow")
    if objective_sentence(objective_of(summary)):
        screen.say(f"maximised: {objective_sentence(objective_of(summary))}")
    for sentence in (weight_sentence(*weight_of(summary)), attribute_sentence(summary)):
        if sentence:
            screen.say(short(sentence.translate(NO_MARKS), 400), "yellow")


def _say_unlabelled(screen: Screen, summary: dict[str, Any]) -> None:
    """Say whom the figures leave out, if some rows have no label."""
    below = missed_over_all(summary)
    styles = {"rows": "yellow", "warning": "bold yellow", "every": "bold red" if below else ""}
    for name, sentence in unlabelled_sentences(summary).items():
        if sentence:
            screen.say(short(sentence.translate(NO_MARKS), 1000), styles[name])


def show_point(summary: dict[str, Any], notes: Sequence[str]) -> None:
    """Show the chosen point beside plain logistic regression."""
    screen = Screen()
    _say_first(screen, summary)
    _show_outcome(screen, summary, notes)


def show_training(summary: dict[str, Any], notes: Sequence[str]) -> None:
    """Show what was found in the table and the chosen point."""
    screen, data = Screen(), summary["data"]
    _say_first(screen, summary)
    by = crossed(summary["asked"]["sensitive"])
    screen.say(f"{short(summary['title'])}: {data['rows']:,} rows by {by}", "bold")
    screen.say_left_out(data["rows_dropped"])
    shown = data["decisions"][:30]
    _show_decisions(screen, shown)
    if len(data["decisions"]) > len(shown):
        more = len(data["decisions"]) - len(shown)
        screen.say(f"… and {more:,} more columns; the report has them all.", "dim")
    _show_outcome(screen, summary, notes)


def _show_outcome(screen: Screen, summary: dict[str, Any], notes: Sequence[str]) -> None:
    screen.say(_sentence(summary))
    less = TOO_SURE.get(summary.get("too_sure") or "", "").strip()
    if less and summary["reached"]["target_reached"]:
        screen.say(less, "yellow")
    small = small_groups_sentence(summary).translate(NO_MARKS)
    if small:
        changes = summary["not_compared"]["changes_verdict"]
        screen.say(short(small, 1000), "bold red" if changes else "yellow")
    _say_unlabelled(screen, summary)
    if again_sentence(summary):
        screen.say(again_sentence(summary), "yellow")
    if training_sentence(summary):
        screen.say(training_sentence(summary), "dim")
    for part in summary["parts"]:
        rows, where = _classifiers(summary, part["key"]), f"On {part['n']:,} {part['title']}"
        if not rows:
            continue
        table = _points_table(summary, rows, where)
        best = next((row for row in rows if row[0] == _best_name(summary)), None)
        if best is None or table.fits():
            screen.print(table)
            continue
        rows.remove(best)
        screen.print(_points_table(summary, rows, where))
        worth, ratios, _ = figures_of(summary, best[1])
        objective = objective_of(summary)
        words, targets = words_of(summary), target_of(summary).components
        shown = ", ".join(
            TARGET_WORDS[t.comparison].text(r, t.level)
            for r, t in zip(ratios, targets, strict=True)
        )
        name = "ratio and difference" if words.name == "shortfall" else words.name
        text = f"{heading(objective)} {cell_text(objective, worth)}"
        screen.say(f"{best[0]}: {text}, {name} {shown}", "dim")
    best = (summary["plain"] or {}).get("best_cut")
    if best is not None and best["cut"] != 0:
        top = objective_words(objective_of(summary))["top"]
        screen.say(f"Best cut: the score threshold that is {top} on training rows.", "dim")
    say_test(screen, summary)
    useless = useless_sentence(summary).translate(NO_MARKS)
    if useless:
        screen.say(short(useless, 400), "bold red")
    dear = dear_sentence(summary).translate(NO_MARKS)
    if dear:
        screen.say(short(dear, 400), "yellow")
    for note in notes:
        screen.say(f"note: {short(note, 400)}", "yellow")


def show_proportion(summary: dict[str, Any]) -> None:
    """Say what became of the targets of several notions when one was given."""
    if len({tau for _, tau in _notion_taus(summary)}) > 1:
        screen, sign = Screen(), words_of(summary).sign
        name = "tau" if sign > 0 else "epsilon"
        tau = screen.spell(Parameter(name, sign * summary["tau"]))
        screen.say(f"{tau} is the strictest target; the others stay in proportion to it.", "dim")


def say_test(screen: Screen, summary: dict[str, Any]) -> None:
    """Say whether the target is met on the test rows, and what they prove of the population."""
    counts = summary["saved"]["counts"].get("test")
    if counts is None:
        return
    ratios, words = figures_of(summary, counts)[1], words_of(summary)
    targets = target_of(summary).components
    names = [f"{name} " for name in _rate_names(summary)] if len(targets) > 1 else [""]
    own = [TARGET_WORDS[target.comparison] for target in targets]
    named = [f"the {name}{w.name}" for name, w in zip(names, own, strict=True)]
    unknown = [what for what, ratio in zip(named, ratios, strict=True) if ratio != ratio]
    if unknown:
        screen.say(f"On the test rows {' and '.join(unknown)} cannot be computed.", "yellow")
    below = [
        f"{what} is {w.text(ratio, target.level)}, {w.missed} {w.goal(target.level)}"
        for what, ratio, target, w in zip(named, ratios, targets, own, strict=True)
        if ratio == ratio and not target.reached(ratio)
    ]
    if below:
        advice = (
            ""
            if not summary["reached"]["target_reached"]
            else " The certificate is for the population that the rows were drawn from; a sample "
            "of it may be on the other side."
            if summary["asked"]["confidence"] == "certified"
            else " Test rows are a sample themselves: what holds in the population is sometimes "
            "missed among them."
            if words.name == "shortfall"
            else f" Test rows are a sample themselves: a {words.name} that holds in the population "
            f"is sometimes {words.missed} {words.symbol} among them."
            if summary["asked"]["confidence"]
            else f" {screen.spell(Parameter('confidence', 0.9))}, or certified, asks for "
            f"{'an' if words.symbol == 'ε' else 'a'} {words.symbol} that holds on new rows."
        )
        screen.say(f"On the test rows {', and '.join(below)}.{advice}", "yellow")
    elif not unknown:
        pairs = zip(own, targets, strict=True)
        met = " and ".join(dict.fromkeys(w.goal(target.level) for w, target in pairs))
        screen.say(f"On the test rows {met} {'are' if ' and ' in met else 'is'} met.", "green")
    population, found = test_population(summary)
    if population:
        screen.say(short(population.translate(NO_MARKS), 400), STYLES[found])


def _show_decisions(screen: Screen, decisions: Sequence[dict[str, Any]]) -> None:
    """Show what became of columns, every option to paste in one piece."""
    rows = [
        (
            short(d["column"], 30),
            d["kind"],
            Folded(short(d["action"], 400), "dim" if d["kind"] == "dropped" else ""),
        )
        for d in decisions
    ]
    longest = max((text.longest_option for *_, text in rows), default=1)
    # What is left for the names beside kinds, options and what is between columns.
    room = screen.width - longest - max((cell_len(kind) for _, kind, _ in rows), default=0) - 8
    if room < 10:
        # The terminal itself breaks such a line, and copies it whole.
        for name, kind, text in rows:
            screen.say(f"{name} ({kind}): {' '.join(text.pieces)}", text.style, wrap=False)
        return
    columns = ("column", "kind", "what was done")
    table = Grid(*columns, left=columns)
    table.columns[1].no_wrap = True
    table.columns[0].max_width, table.columns[2].min_width = room, longest
    for name, kind, text in rows:
        table.add_row(Text(name, style=text.style), Text(kind, style=text.style), text)
    screen.print(table)


def show_frontier(summary: dict[str, Any]) -> None:
    """Show the frontier at some targets, and as bars."""
    screen, points, part = Screen(), summary["points"], summary["parts"][-1]
    _say_first(screen, summary)
    where = f"figures on {part['n']:,} {part['title']}"
    words, names = words_of(summary), _rate_names(summary)
    compared = f" ({names[0]})" if len(names) == 1 else ""
    screen.say(f"{short(summary['title'])}: {len(points):,} models; {where}", "bold")
    _say_unlabelled(screen, summary)
    if not points:
        screen.say("No model is eligible: each gives some group nearly the same answer everywhere.")
    goals = _notion_taus(summary)
    alike = len(set(_goals(summary))) == 1
    screen.print(_frontier_table(summary, str(part["key"]), alike))
    useless = constant_sentence(summary, str(part["key"])).translate(NO_MARKS)
    if useless:
        screen.say(short(useless, 400), "bold yellow")
    if not alike:
        order = " / ".join(name for name, _ in goals)
        what = "The target" if words.name == "shortfall" else words.symbol
        screen.say(f"{what} is given for {order}, always in this proportion.", "dim")
    if points:
        scale = "" if alike else ", on the scale of the strictest target"
        highest = words.sign * max(point["reach"] for point in points)
        screen.say(f"{words.name.capitalize()}: {words.meaning}{compared}.", "dim")
        screen.say(
            f"The models were chosen {summary['reached']['where']}{_sure(summary)}. The "
            f"{'highest' if words.sign > 0 else 'smallest'} target that one reaches is "
            f"{highest:.3f}{scale}. Bars do not start at 0.",
            "dim",
        )


def _frontier_table(summary: dict[str, Any], key: str, alike: bool) -> Grid:
    """Show what answers each target, with bars of what it is worth."""
    points, several = summary["points"], len(summary["rate"]["parts"]) > 1
    words, target = words_of(summary), target_of(summary)
    objective = objective_of(summary)
    names, bars = [words.name], f"{objective.name.replace('_', ' ')} as a bar"
    own = [TARGET_WORDS[part.comparison] for part in target.components]
    if several:
        names = [f"{n}, {w.name}" for n, w in zip(_rate_names(summary), own, strict=True)]
    symbol = "" if words.name == "shortfall" else f" {words.symbol}"
    table = Grid(f"target{symbol}", heading(objective), *names, bars, left=[bars])
    reach, rows = np.array([p["reach"] for p in points]), []
    for tau in words.table_levels(reach.min(initial=words.parity), target.level):
        if words.name == "shortfall" and not all(0 < t < 1 for t in _moved(summary, target, tau)):
            continue  # It would ask one of the rates for nothing.
        i = int(np.searchsorted(reach, tau))
        if tau == summary["tau"]:
            rows.append((tau, True, *figures_of(summary, summary["saved"]["counts"][key])[:2]))
        elif i < len(points):
            rows.append((tau, False, *figures_of(summary, points[i]["counts"][key])[:2]))
    worths = [worth for _, _, worth, _ in rows]
    least, best = min(worths), max(worths)
    for tau, is_saved, worth, ratios in rows:
        mark = " ◀ saved" if is_saved else ""
        reached = summary["reached"]["target_reached"]
        mark += f", {not_reached(summary)}" * (is_saved and not reached)
        share = (worth - least) / (best - least) if best > least else 1.0
        bar = Text("█" * (6 + round((5 if several else 24) * share)) + mark, style="cyan")
        goals = [part.level for part in target.at(tau).components]
        shown = [w.text(ratio, goal) for w, ratio, goal in zip(own, ratios, goals, strict=True)]
        taus = [words.sign * tau] if alike else _moved(summary, target, tau)
        table.row(" / ".join(f"{t:.3g}" for t in taus), cell_text(objective, worth), *shown, bar)
    return table


def _moved(summary: dict[str, Any], target: Target, level: float) -> list[float]:
    """Give each notion's target, as people read it, where the strictest has a level."""
    factor = level / target.level if target.level else 1.0
    if target.comparison != "mixed":
        return [abs(t * factor) for _, t in _notion_taus(summary)]
    # Shortfalls stay in proportion: 1 less a ratio, or a difference.
    return [1 - (1 - t) * factor if t > 0 else -t * factor for _, t in _notion_taus(summary)]
