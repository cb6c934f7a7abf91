"""The report's sentences."""

from __future__ import annotations

from datetime import datetime, timedelta
from itertools import product
from typing import Any

import numpy as np

from evenhand.core.objectives import ACCURACY
from evenhand.statistics.verdicts import HOLDS, UNTOLD
from evenhand.views.formats import (
    fill_in,
    listed,
    percent,
    plain_name,
    quoted,
    thousands,
)
from evenhand.views.objectives import objective_words, says
from evenhand.views.report.left_out import missed_over_all, unknown_over_all
from evenhand.views.report.phrases import (
    LIMITS,
    SMALL_GROUPS,
    TRAINING_FIGURES,
    WEIGHTED_ROWS,
    part_words,
)
from evenhand.views.targets import TARGET_WORDS, words_of
from evenhand.views.verdicts import population_sentence
from evenhand.workflow.summary import objective_of, target_of, verdict_of, worth_of

# A margin that is wider than this is explained by the group whose few rows make it so.
WIDE = 0.1


def how_chosen(summary: dict[str, Any]) -> str:
    """Give the key of what is promised."""
    asked, feasible = summary["asked"], summary["reached"]["target_reached"]
    if asked["confidence"] == "certified":
        return "certified" if feasible else "uncertified"
    if asked["confidence"] is not None:
        return "confident" if feasible else "unsure"
    return str(asked["place"])


def not_reached(summary: dict[str, Any]) -> str:
    """Say in two words that a target is missed, or that no test could show that it is not."""
    return "not certified" if summary["asked"]["confidence"] == "certified" else "not reached"


def sure_words(summary: dict[str, Any]) -> str:
    """Say how sure a target is, behind a verdict."""
    asked = summary["asked"]
    if asked["confidence"] == "certified":
        return " by a test"
    if asked["confidence"] is not None:
        return f" with a confidence of about {100 * asked['confidence']:g}%"
    return ""


# Utilities closer than this are the same but for rounding.
SAME = 1e-12
# Rates of small groups that a sentence has at most.
MOST_RATES = 6
# Not those of whoever's language the machine speaks.
MONTHS = (
    "January", "February", "March", "April", "May", "June",
    "July", "August", "September", "October", "November", "December",
)  # fmt: skip


def answer(target: str, labels: list[str]) -> str:
    """Name an answer, such as “income” = “>50K”; of several, each counts."""
    named = listed([quoted(label) for label in labels], "or")
    named += ", each of which counts" if len(labels) > 1 else ""
    return f"{quoted(target)} = {named}" if target else named


def date_words(text: str) -> str:
    """Write a date as people read it; what is no date stays as it is."""
    try:
        when = datetime.fromisoformat(text)
    except ValueError:
        return text
    zone = " UTC" if when.utcoffset() == timedelta(0) else ""
    return f"{when.day} {MONTHS[when.month - 1]} {when.year}, {when:%H:%M}{zone}"


def plural(name: str) -> str:
    """Give the plural of a rate's name."""
    return name[:-1] + "ies" if name.endswith("y") else name + "s"


def describe(part: dict[str, Any], labels: list[str], target: str) -> tuple[str, int | None]:
    """Say in words what a rate counts, and about which label it is, if about one."""
    cells_of_all = set(product(range(len(labels)), range(len(labels))))
    top = {(y, p) for y, p in part["numerator"]}
    bottom = {(y, p) for y, p in part["denominator"]}
    true = f"true {quoted(target)}" if target else "label"

    def sides(cells: set[tuple[int, int]], c: int) -> list[tuple[set[tuple[int, int]], str]]:
        """Give what may be asked of a label: the cells, and the words after "rows"."""
        name = quoted(labels[c])
        return [
            ({(y, p) for y, p in cells if p == c}, f"predicted {name}"),
            ({(y, p) for y, p in cells if y == c}, f"whose {true} is {name}"),
            ({(y, p) for y, p in cells if p != c}, f"not predicted {name}"),
            ({(y, p) for y, p in cells if y != c}, f"whose {true} is not {name}"),
            (
                {(y, p) for y, p in cells if (y == c) == (p == c)},
                f"rightly predicted {name} or not {name}",
            ),
        ]

    # The last label first: of two that is the favourable one.
    order = list(reversed(range(len(labels))))
    of = "Of all rows of the group" if bottom == cells_of_all else ""
    if not of:
        whose = [words for c in order for cells, words in sides(cells_of_all, c) if cells == bottom]
        of = f"Of the group's rows {whose[0]}" if whose else ""
    if not of:
        return "", None
    if top == {(y, p) for y, p in bottom if y == p} and bottom == cells_of_all:
        return f"{of}, the share predicted rightly", None
    shares = [(words, c) for c in order for cells, words in sides(bottom, c) if cells == top]
    return (f"{of}, the share {shares[0][0]}", shares[0][1]) if shares else ("", None)


def rate_titles(parts: list[dict[str, Any]], labels: list[str], target: str) -> list[Any]:
    """Title and explanation of each rate; the label is named where names alone do not tell."""
    described = [describe(part, labels, target) for part in parts]
    names = [part["name"].replace("_", " ") for part in parts]
    by = [f" by {quoted(part['by']['name'])}" if part.get("by") else "" for part in parts]
    out = []
    for name, whose, (words, about) in zip(names, by, described, strict=True):
        several = list(zip(names, by, strict=True)).count((name, whose)) > 1 and about is not None
        title = f"{name[:1].upper()}{name[1:]}" + (
            f" of {quoted(labels[about])}" if several and about is not None else ""
        )
        title += whose
        out.append({"name": name, "title": title, "words": words})
    return out


def asked_sentence(summary: dict[str, Any], titles: list[Any]) -> str:
    """Say what was asked."""
    asked, words, level = summary["asked"], words_of(summary), summary["tau"]
    rates = listed(list(dict.fromkeys(plural(t["name"]) for t in titles))) or "rates"
    by = listed([quoted(name) for name in asked["sensitive"]])
    groups = f"{rates} of the groups by {by}" if by else f"{rates} of the groups"
    named = [notion.replace("_", " ") for notion in asked["notions"]]
    pairs = list(zip(named, asked["taus"], strict=False))
    if "kinds" in asked:
        at = ("a difference of at most", "a ratio of at least")
        goals = [f"{at[t > 0]} {abs(t):g} for {n}" for n, t in pairs]
        return f"{groups}, with {listed(goals)}."
    if len(set(asked["taus"])) > 1:
        goals = [f"{words.level(t)} for {n}" for n, t in pairs]
        return f"{groups}, with the {words.name} to reach {listed(goals)}."
    goal = f"target {words.symbol}\u00a0=\u00a0{words.level(level)}"
    return f"{groups}, {words.demand(level)} ({goal})."


def _compared(summary: dict[str, Any]) -> str:
    """Name what is compared with the target: of several rates one figure, the worst of them."""
    words, levels = words_of(summary), {t.level for t in target_of(summary).components}
    if len(target_of(summary).components) == 1:
        return words.name
    scale = ", each counted on the scale of the strictest target," * (len(levels) > 1)
    return f"{'worst' if words.sign > 0 else 'largest'} {words.name}{scale}"


def reached_sentences(
    summary: dict[str, Any],
    rows: str,
    test: dict[str, Any] | None,
    before: dict[str, Any] | None,
    best: dict[str, Any] | None,
) -> dict[str, str]:
    """Say what was reached, where it was chosen and on test rows; with the verdict in short.

    ``test``, ``before`` and ``best`` are the figures of the saved model, of plain logistic
    regression and of that at its best cut, on the part that is neither fitted to nor chosen on,
    of so many ``rows``; None without one.
    """
    got, words, tau = summary["reached"], words_of(summary), summary["tau"]
    rate, where = got["rate"], got["where"]
    start = "Reached" if got["target_reached"] else not_reached(summary).capitalize()
    if got["target_reached"] and summary.get("unlabelled"):
        start += f" among rows that have a {quoted(summary['asked']['label'])}"
    unsure = how_chosen(summary) == "unsure" and rate is not None and got.get("bound") is not None
    if unsure:
        start += sure_words(summary)
        first = (
            f"the {_compared(summary)} is {words.text(rate, tau)} {where}, and can be relied on to "
            f"be {words.text(got['bound'], tau)} or {words.better}; the target is "
            f"{words.level(tau)}"
        )
    elif rate is None:
        first = f"no model with a {words.name} was found {where}"
    else:
        first = f"a {_compared(summary)} of {words.text(rate, tau)} {where}"
    state, badge = _verdict(summary, test, unsure)
    return {
        "start": start,
        "text": first + _on_test_rows(summary, rows, test, unsure),
        "state": state,
        "badge": badge,
        "population": test_population(summary)[0],
        "cost": _cost_sentence(summary, test, before, best),
    }


def _verdict(summary: dict[str, Any], test: dict[str, Any] | None, unsure: bool) -> tuple[str, str]:
    """Give the state and the words of the badge."""
    feasible, where = summary["reached"]["target_reached"], summary["reached"]["where"]
    if feasible and missed_over_all(summary):
        return "warn", "Reached among rows with a label, missed over all rows"
    if feasible and unknown_over_all(summary):
        return "warn", "Reached among rows with a label, cannot be judged over all rows"
    missed = f"Target {not_reached(summary)}"
    badge = "Target reached" if feasible else missed
    badge += ", with a certificate" * (feasible and summary["asked"]["confidence"] == "certified")
    badge += sure_words(summary) if unsure else ""
    state = "ok" if feasible else "bad"
    if test is None:
        badge += f" {where}" * feasible
    elif test["ratio"] is None:
        state, badge = ("warn", f"{badge} {where}") if feasible else (state, badge)
    elif test["reached"] and not feasible:
        state, badge = "warn", badge if unsure else f"{missed} {where}"
    elif feasible and not test["reached"]:
        state, badge = "warn", f"Reached {where}, missed on the test rows"
    if feasible and summary.get("unlabelled"):
        badge += ", among rows with a label"
    small = summary.get("not_compared")
    if small:
        n = len(small["groups"])
        badge += f", {n} small group{'s' * (n != 1)} not compared"
        state = "warn" if state == "ok" and small["changes_verdict"] else state
    if feasible and not summary["reached"]["beats_constant"]:
        badge += ", no better than one answer to everybody"
        state = "warn" if state == "ok" else state
    return state, badge


def _on_test_rows(
    summary: dict[str, Any], rows: str, test: dict[str, Any] | None, unsure: bool
) -> str:
    """Go on after the figure where the model was chosen: the one on the test rows."""
    words = words_of(summary)
    if test is None:
        tested = any(part["key"] == "test" for part in summary["parts"])
        return "." if tested else ". There were no test rows, so this is all that is known."
    if test["ratio"] is None:
        return f"; on the {rows} test rows the {_compared(summary)} cannot be computed."
    ratio = words.text(test["ratio"], summary["tau"])
    text = f"; on {rows} test rows the {_compared(summary)} is {ratio}" if unsure else ""
    text = text or f", {ratio} on {rows} test rows"
    if not test["reached"]:
        return f"{text} – {words.missed} the target there."
    return f"{text}, where the target is met."


def test_population(summary: dict[str, Any]) -> tuple[str, str]:
    """Say what the test rows prove of the population, if anything, and with which verdict."""
    verdict, label = verdict_of(summary), summary["asked"]["label"]
    who = f"among people whose {quoted(label)} is known" if summary.get("unlabelled") else ""
    text = population_sentence(
        verdict, words_of(summary), _compared(summary), who, target_of(summary)
    )
    if text and summary["asked"].get("person"):
        text += " Several test rows may be of one person, and are then no independent draws."
    found = verdict["population"] if verdict else UNTOLD
    if text and how_chosen(summary) == "certified" and found != HOLDS:
        text += " The certificate rests on other rows, those that were held out."
    return text, found


def _cost_sentence(
    summary: dict[str, Any],
    test: dict[str, Any] | None,
    before: dict[str, Any] | None,
    best: dict[str, Any] | None,
) -> str:
    """Say how often the model is right, or what it is worth, beside plain logistic regression."""
    got, objective = summary["reached"], objective_of(summary)
    share = objective == ACCURACY
    worth, top = worth_of(got), objective_words(objective)["top"]
    if not test or test["value"] is None:
        if worth is None:
            return ""
        rows = "of the rows " if share else ""
        return f"The model {says(objective, worth)} {rows}{got['where']}."
    rows = "of the test rows" if share else "on the test rows"
    cost = f"The model {says(objective, test['value'])} {rows}."
    if not before or before["value"] is None:
        return cost
    cost += (
        f" {plain_name(summary).capitalize()}, which does not look at fairness, "
        f"{says(objective, before['value'])} and {_has_value(summary, before)}"
    )
    if best and best["value"] is not None:
        cost += (
            f"; at the cut (score threshold) that is {top} on the training rows it "
            f"{says(objective, best['value'])} and {_has_value(summary, best)}"
        )
    return f"{cost}."


def _has_value(summary: dict[str, Any], figure: dict[str, Any]) -> str:
    words, value = words_of(summary), figure["ratio"]
    if value is None:
        return f"has no {words.name}"
    return f"has a {_compared(summary)} of {words.text(value, summary['tau'])}"


def small_groups_sentence(summary: dict[str, Any]) -> str:
    """Say which groups are not compared, what the saved model does to them, and what that hides."""
    small = summary.get("not_compared")
    if not small:
        return ""
    n, words = len(small["groups"]), words_of(summary)
    groups = [f"{quoted(group)} ({thousands(rows)})" for group, rows in small["groups"].items()]
    shown = groups if n <= 8 else [*groups[:7], f"{n - 7} more"]
    start = "1 group has" if n == 1 else f"{n} groups have"
    compared = "is not compared" if n == 1 else "are not compared"
    least = small["min_group_size"]
    text = [f"{start} fewer than {least} training rows and {compared}: {listed(shown)}."]
    whose, who = ("its rows", "it") if n == 1 else ("their rows together", "them together")
    titles = rate_titles(summary["rate"]["parts"], summary["labels"], "")
    names = [t["title"][:1].lower() + t["title"][1:] for t in titles]
    rate = names[0] if len(names) == 1 else "rates"
    rates = [
        f"{percent(value)} of "
        + (f"the {part['title']}" if part.get("weighted") else f"{thousands(rows)} {part['title']}")
        + (f" ({name})" if len(names) > 1 else "")
        for part in small["parts"]
        for name, value, rows in zip(names, part["values"], part["rows"], strict=True)
        if value is not None
    ]
    # Of many answers there are too many rates to be read in a sentence.
    if 0 < len(rates) <= MOST_RATES:
        text.append(f"The saved model's {rate} among {whose}: {listed(rates)}.")
    changed = [
        f"{words.text(part['ratio'], summary['tau'])} on the {part['title']}"
        for part in small["parts"]
        if part["changes"]
    ]
    if changed:
        text.append(
            f"With {who} as one more group the {words.name} would be {listed(changed)}: the target "
            "would be missed there."
        )
    return " ".join(text)


def weight_of(summary: dict[str, Any]) -> tuple[str | None, bool]:
    """Give the column of the weights as text names it, and whether they are a survey's."""
    column = summary["asked"].get("weight")
    survey = bool(summary["asked"].get("survey_weights"))
    return None if column is None else quoted(column), survey


def attribute_sentence(summary: dict[str, Any]) -> str:
    """Say which attributes' groups are compared, which is the worst, and what is left out."""
    parts = {part["by"]["name"]: part["by"] for part in summary["rate"]["parts"] if part.get("by")}
    if not parts:
        return ""
    text = f"Compared are the groups by {listed([quoted(name) for name in parts])}"
    text += ", each by itself: the worst counts."
    titles = {part["key"]: part_words(part) for part in summary["parts"]}
    worst = [
        f"by {quoted(one['attribute'])} on the {titles[one['key']]} "
        f"({TARGET_WORDS[one['comparison']].name} "
        f"{TARGET_WORDS[one['comparison']].text(one['value'], one['level'])})"
        for one in summary.get("worst", [])
    ]
    text += f" That is {listed(worst)}." if worst else ""
    if worst and summary["asked"].get("place") in ("left_out", "holdout", "crossfit"):
        where = summary["reached"]["where"]
        text += f" There the saved model itself answers; what is reached was measured {where}."
    small = [
        f"{quoted(group)} ({thousands(n)})" for by in parts.values() for group, n in by["small"]
    ]
    if small:
        text += f" Not compared, because they have too few training rows: {listed(small)}."
    return text


def again_sentence(summary: dict[str, Any]) -> str:
    """Say what is left of a promise if the same rows were tested for other targets before."""
    asked = summary["asked"]
    earlier, delta = asked.get("earlier_taus") or [], asked["delta"]
    if not earlier or delta is None or not summary["reached"]["target_reached"]:
        return ""
    words, wrong = words_of(summary), min((len(earlier) + 1) * delta, 1.0)
    return (
        f"The same rows were tested for {words.symbol} = "
        f"{listed([words.level(t) for t in earlier])} before: the probability that one of these "
        f"promises is wrong is up to {percent(wrong)}, not {percent(delta)}. The full promise is "
        "for a target named beforehand."
    )


def useless_sentence(summary: dict[str, Any]) -> str:
    """Say so if one answer to everybody is as often right as the saved model, or worth as much.

    On the last part that has counts it is worth less, or on the rows that the model was chosen on
    not more beyond chance.
    """
    counts_of = (summary.get("saved") or {"counts": {}})["counts"]
    counted = [part for part in summary["parts"] if counts_of.get(part["key"])]
    if not counted:
        return ""
    part, objective = counted[-1], objective_of(summary)
    counts = np.asarray(counts_of[part["key"]], dtype=float)
    best, utility, other = objective.best_for_everybody(counts)
    if objective.utility(counts) < utility - SAME:
        own = float(objective.value(counts))
        rows = f"{'of' if objective == ACCURACY else 'on'} the {part_words(part)}"
        return (
            f"The saved model {says(objective, own)} {rows}, {objective.than(own, other)} than the "
            f"same answer to everybody: {quoted(summary['labels'][best])} {says(objective, other)}."
            f"{_strictest_sentence(summary)}"
        )
    reached, constant = summary["reached"], summary["reached"]["constant"]
    own, other = worth_of(reached) or 0.0, worth_of(constant) or 0.0
    if reached["beats_constant"]:
        return ""
    return (
        f"The saved model {says(objective, own)} {reached['where']}, "
        f"{objective.than(own, other)} than the same answer to everybody: "
        f"{quoted(str(constant['label']))} {says(objective, other)}.{_strictest_sentence(summary)}"
    )


def training_sentence(summary: dict[str, Any]) -> str:
    """Say what figures of the training rows are, where that is not plain."""
    if all(part["key"] != "train" for part in summary["parts"]):
        return ""
    place = summary["asked"].get("place", "")
    if summary.get("boosted") and not summary.get("adjusted"):
        return TRAINING_FIGURES["boosted"] + TRAINING_FIGURES.get(f"cuts {place}", "")
    return TRAINING_FIGURES.get(place, "")


def dear_sentence(summary: dict[str, Any]) -> str:
    """Name the group whose few rows make the margin wide, where it is."""
    reached, counts = summary["reached"], (summary.get("saved") or {"counts": {}})["counts"]
    value, bound = reached["rate"], reached.get("bound")
    if None in (value, bound) or value - bound <= WIDE or "train" not in counts:
        return ""
    if summary.get("comparison") == "mixed":  # whose value is on no scale of its own
        return ""
    compared = np.asarray(counts["train"], dtype=float)[: len(summary["groups"])]
    found = []
    for part in target_of(summary).components:
        (rate,) = part.rate.components
        names = rate.groups(summary["groups"])
        top, bottom = rate.fractions(compared)
        relative = 1 / (top + 0.5) - 1 / (bottom + 0.5)
        error = relative if part.comparison == "ratio" else relative * (top / (bottom + 1e-9)) ** 2
        j = int(np.argmax(error))
        found.append((float(error[j]), names[j], bottom[j]))
    _, name, n = max(found, key=lambda one: one[0])
    (fitted,) = (part["n"] for part in summary["parts"] if part["key"] == "train")
    n *= reached.get("n_rows", fitted) / fitted  # of the rows set aside, where it was chosen there
    words, level = words_of(summary), summary["tau"]
    accuracy = " accuracy" if objective_of(summary) == ACCURACY else ""
    return (
        f"The margin for chance is wide: {words.text(value, level)} here, and "
        f"{words.text(bound, level)} or {words.better} can be relied on. Most of it is due to the "
        f"group {quoted(str(name))}, whose rate is one of about {thousands(round(n))} rows. More "
        f"rows of it would narrow the margin, and the same target would cost less{accuracy}."
    )


def _strictest_sentence(summary: dict[str, Any]) -> str:
    """Say up to which target a model is clearly better than one answer, if this one's is not."""
    reached = summary["reached"]
    if reached["beats_constant"] or "strictest" not in reached:
        return ""
    strictest = reached["strictest"]
    if strictest is None:
        return f" No other target has a model that is clearly better {reached['where']}."
    return (
        f" The strictest target with a model that is clearly better {reached['where']} is "
        f"{target_of(summary).at(strictest['level'])}: it "
        f"{says(objective_of(summary), strictest['worth'])}."
    )


def constant_sentence(summary: dict[str, Any], key: str) -> str:
    """Say from which target on one answer to everybody is worth more, if there is one."""
    points, words, objective = summary["points"], words_of(summary), objective_of(summary)
    if not points:
        return ""
    counts = np.array([point["counts"][key] for point in points], dtype=float)
    best, utility, value = objective.best_for_everybody(counts[0])
    worse = np.flatnonzero(objective.utility(counts) < utility - SAME)
    if not len(worse):
        return ""
    first, own = int(worse[0]), objective == ACCURACY
    rows = f"{'of' if own else 'on'} these rows"
    rows = f"{quoted(summary['labels'][best])} {says(objective, value)} {rows}"
    more = "right more often" if own else "worth more"
    if not first:
        return f"The same answer to everybody is {more} than any of these models: {rows}."
    target = words.text(points[first - 1]["reach"], summary["tau"])
    return (
        f"Beyond the target {target} the same answer to everybody is {more} than the model: {rows}."
    )


def limits(summary: dict[str, Any], titles: list[Any]) -> list[tuple[str, str]]:
    """Say what the comparison does not say: a heading and a sentence each."""
    rates = list(dict.fromkeys(t["name"] for t in titles)) or ["rate"]
    small = summary["data"]["small_groups"]
    n = sum(small.values())
    group = f"{len(small)} groups that are" if len(small) > 1 else "a group that is"
    values = {
        "rates": f"{listed(rates)} {'was' if len(rates) == 1 else 'were'}",
        "by": listed([quoted(name) for name in summary["asked"]["sensitive"]]) or "these groups",
        "small": f"{thousands(n)} {'row is' if n == 1 else 'rows are'} in {group}",
    }
    left_out = set() if small else {SMALL_GROUPS}
    left_out |= set() if any(part["weighted"] for part in summary["parts"]) else {WEIGHTED_ROWS}
    return [
        (title, fill_in(text, values)) for title, text in LIMITS.items() if title not in left_out
    ]
