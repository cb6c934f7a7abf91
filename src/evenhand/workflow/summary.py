"""What a report needs to know of a saved model, as plain values."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from evenhand.core.errors import Parameter, Spelling
from evenhand.core.notions import notion_name
from evenhand.core.objectives import Objective
from evenhand.core.rates import Partition, Rate, WorstRate
from evenhand.core.targets import READ, Target
from evenhand.models.adjusted import FairAdjusted
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.card import group_use, kind_in
from evenhand.models.classifier import FairClassifier
from evenhand.models.training import many_columns
from evenhand.persist.model_file import SavedModel
from evenhand.statistics.verdicts import judge
from evenhand.tables.pipeline import FairPipeline
from evenhand.workflow.attributes import worst_attributes
from evenhand.workflow.labels import favourable_answer, plain_number
from evenhand.workflow.unlabelled import over_all_rows, unlabelled_by_group

__all__ = ["summarise"]


def summarise(saved: SavedModel, spell: Spelling = str) -> dict[str, Any]:
    """Give what a report needs to know of a saved model, as plain values.

    Parameters
    ----------
    saved : SavedModel
        What :func:`train` gave or :func:`evenhand.persist.model_file.load_model` loaded.
    spell : callable, default=str
        How advice on a column writes a :class:`~evenhand.core.errors.Parameter`.

    Returns
    -------
    dict
        Plain values; the keys are those of :func:`evenhand.views.report.render`.
    """
    pipeline, facts = saved.model, saved.facts
    model: Any = pipeline[-1]
    parts = [part for part in ("train", "test") if facts.get(f"{part}_counts") is not None]
    points, chosen = _points(model, facts, parts), model.answers_.find(model.target_.level)
    # Behind the answers stand the counts of the last iterate, which is kept if there are none.
    place = -1 if chosen is None else chosen
    use = group_use(pipeline)
    boosted = isinstance(model, FairBoostedClassifier)
    weight = facts.get("weight")
    weighted = "weighted " * (weight is not None)
    titles = {"train": f"{weighted}training rows", "test": f"{weighted}test rows"}
    strictest = model.answers_.strictest()
    summary: dict[str, Any] = {
        "favourable_answer": favourable_answer(facts["label"], facts["favourable"]),
        "title": facts["title"],
        "needs_group": bool(use),
        "group_use": use,
        "asked": _asked(model, facts),
        "too_sure": _too_sure(model, facts),
        "reached": {
            "feasible": bool(model.feasible_),
            "target_reached": bool(model.point_.feasible),
            "beats_constant": bool(model.beats_constant_),
            "rate": plain_number(model.rate_),
            "bound": plain_number(model.rate_bound_),
            "accuracy": plain_number(model.accuracy_),
            "worth": plain_number(model.value_),
            "constant": dict(
                zip(("label", "accuracy", "worth"), model.fitted_.constant, strict=True)
            ),
            "strictest": strictest and {"level": strictest[0], "worth": strictest[1].value},
            "where": model.fitted_.where,
            "n_rows": _rows_chosen_on(model, facts),
            "guarantee": None if model.guarantee_ is None else str(model.guarantee_),
        },
        "rate": _rate(model.target_),
        "objective": asdict(model.fitted_.objective),
        "groups": [str(g) for g in model.groups_.tolist()],
        "labels": [str(v) for v in model.fitted_.labels.tolist()],
        "parts": [
            {"key": part, "title": titles[part], "n": int(facts[f"n_{part}"])}
            | {"weighted": weight is not None}
            for part in parts
        ],
        "points": points,
        "chosen": chosen,
        "saved": {
            "accuracy": plain_number(model.accuracy_),
            "worth": plain_number(model.value_),
            "rate": plain_number(model.rate_),
            "reach": plain_number(model.rate_bound_),
            "source": model.point_.source,
            "counts": _counts(facts, parts, place),
        },
        "tau": model.target_.level,
        "comparison": model.target_.comparison,
        "plain": {
            "counts": facts["plain"]["counts"],
            "best_cut": facts["plain"].get("best_cut"),  # models of earlier versions have none
            **_plain_judged(model),
        },
        "curves": _curves(model),
        "weights": [] if boosted else _changed_weights(pipeline, facts["plain"]["weights"]),
        "boosted": _boosted(model, facts, titles) if boosted else None,
        **({"adjusted": _adjusted(pipeline)} if isinstance(model, FairAdjusted) else {}),
        "data": _data(pipeline, facts, spell),
        "about": {name: facts[name] for name in ("versions", "seed", "command", "created")},
    }
    saved_counts = summary["saved"]["counts"]
    summary["worst"] = worst_attributes(target_of(summary), len(summary["groups"]), saved_counts)
    if model.small_groups_:
        summary["not_compared"] = _not_compared(summary, model.min_group_size)
    if "unlabelled" in facts:
        summary["unlabelled"] = unlabelled_by_group(summary, facts)
        summary["all_rows"] = over_all_rows(summary, facts, place, target_of(summary))
    summary["verdict"] = verdict_of(summary)
    return summary


def verdict_of(summary: Mapping[str, Any]) -> dict[str, Any] | None:
    """Judge the saved model by the test rows, the only ones that it was not made or chosen for.

    Several rows of a person are no independent draws, and prove nothing exact; where persons were
    named, there may be several. Nor do rows with weights, which stand for an unknown number. A
    whole summary has its verdict already: with many groups judging takes seconds.
    """
    if "verdict" in summary:
        return summary["verdict"]
    part = next((part for part in summary["parts"] if part["key"] == "test"), None)
    saved = summary.get("saved")
    if saved is None and summary["chosen"] is not None:
        saved = summary["points"][summary["chosen"]]
    counts = saved and saved["counts"].get("test")
    if part is None or not counts:
        return None
    drawn = not (summary["asked"].get("person") or part["weighted"])
    verdict = judge(target_of(summary), counts[: len(summary["groups"])], drawn=drawn)
    small = summary.get("data", {}).get("small_groups")
    rows = "weighted test rows" if part["weighted"] else "test rows"
    about = {"rows": rows, "groups": "compared" if small else "all", "weighted": part["weighted"]}
    # Who the population is, where rows without a label were left out.
    known = f"people whose {summary['asked']['label']} is known"
    about["population_of"] = known if summary.get("unlabelled") else "all"
    return verdict.plain() | about


def _not_compared(summary: Mapping[str, Any], least: int) -> dict[str, Any]:
    """Give the groups that are too small to compare, and what the saved model does to them.

    Counts have all small groups together, behind the others. ``changes`` says of a part whether
    the ratio reaches the target and would not with them as one more group.
    """
    target, n, parts = target_of(summary), len(summary["groups"]), []
    rate = target.rate
    for part in summary["parts"]:
        counts = np.asarray(summary["saved"]["counts"][part["key"]], dtype=float)
        small, without, ratio = counts[n:], target.value(counts[:n]), target.value(counts)
        known = bool(np.isfinite(without) and np.isfinite(ratio))
        parts.append(
            {
                "key": part["key"],
                "title": part["title"],
                "rates": [one.name for one in rate.components],
                "values": [plain_number(one.per_group(small)[0]) for one in rate.components],
                "weighted": part["weighted"],
                "rows": [int(one.fractions(small)[1][0]) for one in rate.components],
                "ratio": plain_number(ratio),
                "changes": known and target.reached(without) and not target.reached(ratio),
            }
        )
    feasible = summary["reached"]["target_reached"]
    return {
        "groups": summary["data"]["small_groups"],
        "rows_are": "training rows",
        "min_group_size": least,
        "parts": parts,
        "changes_verdict": feasible and any(part["changes"] for part in parts),
    }


def rate_of(summary: Mapping[str, Any]) -> WorstRate:
    """Make the library's rate from the summary's cells.

    A rate all of whose counted cells are wrong predictions is an error rate: 0 is its best value.
    """
    rates = []
    for part in summary["rate"]["parts"]:
        top, bottom = (tuple((y, p) for y, p in part[of]) for of in ("numerator", "denominator"))
        rate = Rate(part["name"], top, bottom, is_error=all(y != p for y, p in top))
        rates.append(replace(rate, by=_partition_of(part.get("by"))))
    shares = tuple(float(part["share"]) for part in summary["rate"]["parts"])
    return WorstRate(summary["rate"]["name"], tuple(rates), shares)


def _partition_of(by: Mapping[str, Any] | None) -> Partition | None:
    """Make the groups of an attribute from the summary."""
    if by is None:
        return None
    members = tuple(tuple(one) for one in by["members"])
    return Partition(by["name"], tuple(by["groups"]), members, tuple(map(tuple, by["small"])))


def target_of(summary: Mapping[str, Any]) -> Target:
    """Make the library's target from the summary: what every screen and page judges by."""
    comparison = summary.get("comparison", "ratio")
    kinds = tuple(part.get("comparison", comparison) for part in summary["rate"]["parts"])
    return Target(rate_of(summary), summary["tau"], comparison, kinds)


def objective_of(summary: Mapping[str, Any]) -> Objective:
    """Make the library's objective from the summary; reports of old are of the accuracy."""
    written = dict(summary.get("objective", {}))
    if "gains" in written:  # a file has lists, and an objective equals only one of tuples
        written["gains"] = tuple(map(tuple, written["gains"]))
    return Objective(**written)


def worth_of(record: Mapping[str, Any]) -> float | None:
    """Give what the objective is of a point, or of what was reached."""
    worth: float | None = record.get("worth", record["accuracy"])
    return worth


# Of a target that is no ratio: values and levels, which are negative so that larger is fairer.
VALUES = ("tau", "rate", "ratio", "value", "level", "reach", "bound", "at_least", "at_most")
ENDS = {"at_least": "at_most", "at_most": "at_least"}


def as_read(report: Any, comparison: str | None = None) -> Any:
    """Copy a report, for JSON, with every value of a difference as the difference itself.

    ``tau`` is called ``epsilon`` then, and ``rate`` and ``ratio`` ``difference``; of mixed targets
    ``allowed`` and ``shortfall``.
    """
    if isinstance(report, Mapping):
        comparison = report.get("comparison", comparison)
        name = {"difference": "difference", "mixed": "shortfall"}.get(str(comparison))
        if name is None:
            return report
        goal = "epsilon" if name == "difference" else "allowed"
        called = {"tau": goal, "taus": f"{goal}s", "rate": name, "ratio": name} | ENDS
        called |= {"ratios": f"{name}s", "earlier_taus": f"earlier_{goal}s"}
        # Mixed targets are as they were asked for, each of its kind.
        called |= {"taus": "targets"} if name == "shortfall" else {}
        out: dict[Any, Any] = {}
        for key, value in report.items():
            number = isinstance(value, int | float) and not isinstance(value, bool)
            of_values = key in ("ratios", "bounds")
            if key == "rates" and isinstance(value, Mapping):  # of each group: no comparison
                out[key] = value
            elif key in ("taus", "earlier_taus"):
                out[called[str(key)]] = [abs(one) for one in value]
            elif of_values or (key in VALUES and (number or value is None)):
                out[called.get(key, key)] = _turned(value)
            else:
                out[key] = as_read(value, comparison)
        return out
    if isinstance(report, list | tuple):
        return [as_read(value, comparison) for value in report]
    return report


def _turned(value: Any) -> Any:
    """Give a value, or several by name or as ends of an interval, with the other sign."""
    if isinstance(value, Mapping):
        return {key: _turned(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [_turned(one) for one in reversed(value)]
    return value if value is None else 0.0 - value


def _asked(model: FairClassifier, facts: Mapping[str, Any]) -> dict[str, Any]:
    """Give what the user asked for."""
    return {
        "label": facts["label"],
        "favourable": facts["favourable"],
        "sensitive": facts["sensitive"],
        **_goals(model),
        "confidence": model.fitted_.confidence,
        "selection": model.selection,
        "place": model.fitted_.place,
        "delta": model.fitted_.delta,
        "attributes": model.attributes,
        "person": facts.get("person"),
        "weight": facts.get("weight"),
        "survey_weights": bool(model.survey_weights),
        "earlier_taus": facts.get("earlier_taus", []),
    }


def _rows_chosen_on(model: Any, facts: Mapping[str, Any]) -> int:
    """Count the rows that the point was chosen on: those set aside, or else all training rows."""
    if model.fitted_.place == "holdout" and model.held_out_ is not None:
        return int(model.held_out_.n_rows)
    return int(facts["n_train"])


def _too_sure(model: Any, facts: Mapping[str, Any]) -> str | None:
    """Say what the margin of a confidence leaves out: a key of the page's sentences."""
    if not model.fitted_.margin or model.fitted_.place != "train":
        return None
    if isinstance(model, FairBoostedClassifier):
        # Cuts of a score that is given are applied to new rows as to these: no mean of models.
        maker: Any = model.maker_
        return None if maker.alone and maker.brought.fixed else "boosted"
    n_columns = int(np.count_nonzero(np.any(model.coef_ != 0, axis=0)))
    rows = model.frontier_.last.counts[: len(model.groups_)].sum(axis=(1, 2))
    return "columns" if many_columns(n_columns, rows) else None


def _plain_judged(model: Any) -> dict[str, Any]:
    """Give the counts of plain logistic regression where the point was chosen, if they are known.

    There the last iterate is counted, which is plain logistic regression where no other was made.
    """
    known = model.held_out_ is not None and len(model.trajectory_.iterates) == 1
    if not known or isinstance(model, FairAdjusted):
        return {}
    return {"judged": model.held_out_.last.tolist()}


def _goals(model: FairClassifier) -> dict[str, list[Any]]:
    """Give each demanded level beside its notion, and its comparison where these are mixed."""
    notions = [notion_name(name) for name in np.atleast_1d(model.notion).tolist()]
    kinds, target = dict.fromkeys(model.target_.kinds), model.target_
    given: dict[str, Any] = {"ratio": model.tau, "difference": model.epsilon}
    if model.tau is None and model.epsilon is None:
        given["ratio"] = target.level
    n, goals = len(notions), []
    for kind in ("ratio", "difference"):
        levels = given[kind] if np.ndim(given[kind]) else [given[kind]] * n
        for notion, level in zip(notions, levels, strict=True):
            if kind in kinds and level is not None:
                goals.append((notion, READ[kind][1] * float(level), kind))
    if len({level for _, level, _ in goals}) == 1 and len(kinds) == 1:
        return {"notions": notions, "taus": [goals[0][1]]}
    names, levels, kinds_of = (list(of) for of in zip(*goals, strict=True))
    about = {"notions": names, "taus": levels}
    return about | ({"kinds": kinds_of} if len(kinds) > 1 else {})


def _rate(target: Target) -> dict[str, Any]:
    """Give a rate as plain values: of each part its cells, its share and its comparison."""
    parts = [
        asdict(part) | {"share": float(share), "comparison": kind}
        for part, share, kind in zip(
            target.rate.components, target.rate.shares, target.kinds, strict=True
        )
    ]
    return {"name": target.name, "parts": parts}


def _points(
    model: FairClassifier, facts: Mapping[str, Any], parts: Sequence[str]
) -> list[dict[str, Any]]:
    """Give figures and counts of every point that answers some target."""
    answers = model.answers_
    worth = answers.points.objective.value(answers.counts)
    return [
        {
            "worth": plain_number(worth[i]),
            **{n: plain_number(getattr(answers, n)[i]) for n in ("accuracy", "rate", "reach")},
            "counts": _counts(facts, parts, i),
        }
        for i in range(len(answers))
    ]


def _counts(facts: Mapping[str, Any], parts: Sequence[str], i: int) -> dict[str, Any]:
    """Give the counts of one point on the rows of each part."""
    return {part: facts[f"{part}_counts"][i] for part in parts}


def _curves(model: FairClassifier) -> dict[str, list[Any]]:
    """Give what the figures of the iterates were during the fit, ratios whatever the target."""
    curves = model.trajectory_.to_frame().rename(columns={"rate": "ratio"})
    names = ["leg", "iteration", "loss_c", "loss_u", "accuracy", "ratio"]
    if model.target_.comparison != "ratio":
        names.append(READ[model.target_.comparison][0])
        curves[names[-1]] = model.trajectory_.values(model.target_)
    return {
        name: [v if isinstance(v, str) else plain_number(v) for v in curves[name].tolist()]
        for name in names
    }


def _data(pipeline: FairPipeline, facts: Mapping[str, Any], spell: Spelling) -> dict[str, Any]:
    """Give what became of rows and columns."""
    return {
        "rows": int(facts["n_rows"]),
        "rows_dropped": facts["rows_dropped"],
        "decisions": _decisions(pipeline, facts, spell),
        "small_groups": {str(g): int(n) for g, n in pipeline[-1].small_groups_.items()},
        # Which models of earlier versions have not.
        "stand_ins": facts.get("stand_ins", []),
        "fingerprint": facts["fingerprint"],
    }


def earlier_taus(saved: SavedModel, target: Target) -> list[float]:
    """Give the levels of this comparison that the fit was asked for before this one."""
    before = saved.model[-1].target_
    levels = {*saved.facts.get("earlier_taus", []), before.level}
    worst = target.worst
    return sorted(one for one in levels - {target.level} if worst < one <= worst + 1)


def _decisions(
    pipeline: FairPipeline, facts: Mapping[str, Any], spell: Spelling
) -> list[dict[str, Any]]:
    """Give what became of each column: the label by its name, and groups that have own cuts."""
    label, sensitive, weight = facts["label"], facts["sensitive"], facts.get("weight")
    decisions = pipeline.named_steps["encoder"].decisions().to_dict("records")
    for d in decisions:
        if d["column"] == label:
            d |= {"kind": "label", "action": "what is predicted"}
            continue
        if d["column"] == weight:
            d |= {"kind": "weight", "action": "how much each row counts"}
            continue
        # The one parameter that a decision names, in a model file as text, is how else to read the
        # column.
        for kind in ("number", "category", "date"):
            otherwise = Parameter("kinds", {d["column"]: kind})
            d["action"] = d["action"].replace(str(otherwise), spell(otherwise))
        if d["column"] in sensitive and pipeline[-1].needs_group:
            own = "each group has its own cut: needed to predict"
            dropped = d["kind"] == "dropped"
            d |= (
                {"kind": "group", "action": own} if dropped else {"action": f"{d['action']}; {own}"}
            )
    return decisions


def _boosted(
    model: FairBoostedClassifier, facts: Mapping[str, Any], titles: Mapping[str, str]
) -> dict[str, Any]:
    """Say which booster was used, and how much each column moves the model's estimates."""
    order = sorted(facts["matters"], key=lambda m: -m["label"] - m["group"])
    return {
        "booster": kind_in(model.booster_),
        "guessed": not model.maker_.aware,  # whether there are models of the group
        "part": titles[facts["matters_part"]],
        "rows": facts["matters_rows"],
        "matters": order[:20],
        "left_out": len(order[20:]),
    }


def _adjusted(pipeline: FairPipeline) -> dict[str, Any]:
    """Say which model was adjusted, where it is cut by itself, and what of it cannot be known."""
    model: Any = pipeline[-1]
    used = [plan for plan in pipeline.named_steps["encoder"].plans_ if plan.kind != "dropped"]
    column = next((plan.column for plan in used if plan.kind == "score"), None)
    # The estimator without its parameters, and whether the rows were new to it.
    words, n = re.sub(r"\(.*\)", "", model.scores_), len(used) - (column is not None)
    if column is not None:
        words = f"the scores in column {column!r}, taken as they are"
    said = f"An existing model was adjusted: {words}. “Before” is that model, cut {model.before_}."
    if not words.endswith("fitted out of fold"):
        said += " If it had seen these rows when it was made, every figure here is too good."
    if not model.needs_group:
        beside = f"{n} {'other ' * (column is not None)}column{'s' * (n != 1)}"
        alone = ["the score"] * (column is not None) + [beside] * (n > 0)
        if n:
            said += f" The group is estimated from {' and '.join(alone)}."
        else:
            said += (
                " The score alone says too little of the group, so that only its cut is chosen: "
                "give the columns that the model was made from as well."
            )
    return {"words": words, "before": model.before_, "sentence": said}


def _changed_weights(
    pipeline: FairPipeline, plain: Sequence[float], most: int = 20
) -> list[dict[str, Any]]:
    """Weights of each favourable label's score that differ most from plain logistic regression's.

    Of two labels the iterates are weights of the favourable one's score already.
    """
    model = pipeline[-1]
    names = [str(n) for n in pipeline.named_steps["encoder"].get_feature_names_out()]
    before = np.reshape(plain, (-1, len(names) + 1))[:, :-1]
    after, favourable = model.fitted_.sign * model.coef_, model.frontier_.favourable
    most = max(most // len(favourable), 5)
    tables = []
    for c in favourable:
        fair, unfair = (w[c if len(w) > 1 else 0] for w in (after, before))
        order = np.argsort(-np.abs(fair - unfair), kind="stable")[:most]
        inputs = [
            {"name": names[i], "fair": float(fair[i]), "plain": float(unfair[i])} for i in order
        ]
        tables.append({"label": str(model.fitted_.labels[c]), "inputs": inputs})
    return tables
