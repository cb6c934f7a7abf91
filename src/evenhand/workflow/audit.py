"""Compare groups in a table of answers, or of labels alone, and say what can be judged."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2_contingency

from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import group_codes
from evenhand.core.rates import RATES, overall_accuracy
from evenhand.core.targets import Target
from evenhand.engines.coding import compared_groups
from evenhand.statistics.intervals import check_confidence, population_ends
from evenhand.statistics.proportions import clopper_pearson
from evenhand.statistics.verdicts import CONFIDENCE, judge
from evenhand.tables.columns import MissingWords, as_table, check_words, listed
from evenhand.tables.groups import Columns
from evenhand.workflow import labels as lb
from evenhand.workflow.missing_answers import Counts, binary_counts, missing_labels, unanswered

__all__ = ["audit"]


def audit(
    X: Any,
    *,
    label: str | None = None,
    prediction: str | None = None,
    sensitive: Sequence[str],
    favourable: str | None = None,
    favourable_label: str | None = None,
    privileged: str | None = None,
    missing_groups: str = "error",
    bins: Any = None,
    weight: str | None = None,
    na: Sequence[str] | None = None,
    keep_na: Sequence[str] = (),
    tau: float = 0.8,
    min_group_size: int = 30,
    comparison: str = "ratio",
    confidence: float = CONFIDENCE,
) -> dict[str, Any]:
    """Compare groups in a table of answers, or of labels alone.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    label, prediction : str, optional
        Columns of true labels and of predictions; at least one. With both, all rates are given;
        with one, how often each group has the favourable value of it. Rows with a prediction and
        no label count in the selection rate, which needs none. If who has no label depends on the
        prediction (of labels alone: on the group), ratios that the missing labels could put on the
        other side of ``tau`` are not judged.
    sensitive : sequence of str
        Sensitive columns; several are crossed.
    favourable : str, optional
        The favourable value; by default the larger of 0/1, -1/1 or false/true. Others are never
        guessed. All other values count as not favourable, and are listed.
    favourable_label : str, optional
        The favourable value of the label, where the prediction is another: of approved and default
        these are 1 and 0. A prediction then counts as right if both or neither are favourable.
    privileged : str, optional
        A group: the ratio of each group's rate to that of this one is given as well. The verdict is
        about the smallest rate over the largest all the same.
    missing_groups, bins, weight, na, keep_na
        As of :class:`~evenhand.workflow.settings.TrainSettings`.
    tau : float, default=0.8
        What the ratio is held against; 0.8 is the four-fifths rule. Of differences, minus the
        largest that will do.
    min_group_size : int, default=30
        Of more than two groups those of fewer rows of the table that have an answer are listed and
        not compared; nor, in rates that need a label, those of fewer rows that have one.
    comparison : str, default="ratio"
        How the groups are compared, a key of :data:`~evenhand.core.targets.COMPARISONS`.
    confidence : float, default=0.95
        Of what is said of the population that the rows are independent draws from.

    Returns
    -------
    dict
        Plain values: groups with their sizes and rates, ratios, ``bounds`` of the ratios in the
        population, and the ``verdict`` on the selection rate
        (:class:`~evenhand.statistics.verdicts.Verdict`). ``passed`` is whether its rule is met; it
        is False also if that cannot be judged, and ``judged`` then as well. ``not_judged`` names
        the rates whose ratio cannot be judged.
    """
    check_confidence(confidence)
    missing = MissingWords.chosen(na, keep_na)
    columns = Columns(label, sensitive, missing_groups, bins, missing, weight)
    table = _read(X, columns, prediction, (favourable, favourable_label))
    names, answered = table.names, table.rows
    sizes = np.bincount(answered["z"], minlength=len(names))
    large, number, small = compared_groups(names, sizes, min_group_size)
    about = answered["z"], answered["answer"], answered["answer"], len(names)
    every, number_of = binary_counts(*about, answered["weight"]), binary_counts(*about)
    rows = answered.assign(z=number[answered["z"]])
    rows = rows[rows["z"] < len(large)]
    report = table.facts() | {
        "n_rows_compared": len(rows),
        "privileged": privileged,
        "tau": tau,
        "comparison": comparison,
        "min_group_size": min_group_size,
        "groups": [str(n) for n in large.tolist()],
        "sizes": sizes[number < len(large)].tolist(),
        "small_groups": [
            {
                "group": str(names[j]),
                "rows": int(sizes[j]),
                "favourable": int(number_of[j, :, 1].sum()),
            }
            for j in np.flatnonzero(number == len(large))
        ],
        "confidence": confidence,
        **{"rows": {}, "rates": {}, "ratios": {}, "bounds": {}, "reached": {}},
        "association": _association(rows),
    }
    place = _privileged_place(report, names, large, small)
    if favourable is not None or table.n_labels > 2:
        report |= _other_labels(rows["label"].dropna(), table)
    counts = _counts(rows, table, len(large))
    of_rows = _counts(rows.assign(weight=1.0), table, len(large))
    # Where no group has an error there is 0/0, which is no sign of anything.
    targets = {
        name: Target(replace(RATES[name], is_error=False), tau, comparison) for name in counts
    }
    compared = np.ones(len(large), dtype=bool)
    enough = _add_labelled(report, table, rows, counts) if table.both else compared
    which = {name: compared if name == "selection_rate" else enough for name in targets}
    for name, target in targets.items():
        _add_rate(report, name, target, (counts[name], of_rows[name]), which[name], place)
    target = targets["selection_rate"]
    all_rows = names, table.group, table.known, table.weight
    answers = unanswered(all_rows, every, target, min_group_size)
    labels = missing_labels(rows, counts, targets, report) if table.both else None
    report["missing_labels" if prediction is None else "missing_predictions"] = answers
    report |= {"missing_labels": labels} if table.both else {}
    compared_counts = {name: counts[name][which[name]] for name in targets}
    _add_verdicts(report, targets, compared_counts, (answers, labels))
    if small:
        value = target.value(every[sizes > 0])
        passed = report["judged"] and target.reached(value)
        report["with_small_groups"] = {"ratio": lb.plain_number(value), "passed": bool(passed)}
    return report


class _Table(NamedTuple):
    """What is audited: the rows that have a group, which ``kept`` says of all.

    ``alike`` are values of sensitive columns that may be one (:func:`~.labels.alike_groups`).
    ``names`` are the groups, ``group`` and ``weight`` each row's, and ``known`` says whether it has
    an answer.
    ``rows`` are those with one: their group ``z``, whether the ``answer`` is ``good``, whether they
    are ``labelled``, and if so the ``label``, of which ``good_label`` is favourable, and whether
    the answer is ``right``. Of one column alone its values are both answers and labels.
    """

    columns: Columns
    prediction: str | None
    weightless: NDArray[np.bool_]
    kept: NDArray[np.bool_]
    alike: dict[str, list[dict[str, int]]]
    names: NDArray[Any]
    group: NDArray[np.intp]
    known: NDArray[np.bool_]
    weight: NDArray[np.float64]
    good: Any
    good_label: Any
    n_labels: int
    rows: pd.DataFrame

    @property
    def both(self) -> bool:
        """Whether there are labels beside predictions."""
        return None not in (self.columns.label, self.prediction)

    def facts(self) -> dict[str, Any]:
        """Give what a report says of the table."""
        label, what = self.columns.label, str(self.prediction or self.columns.label)
        of_label = f"; of the label: {label} = {self.good_label}" if self.both else ""
        dropped = {
            f"with a weight of 0 in {self.columns.weight!r}": self.weightless,
            "without a group": ~self.kept,
            f"without a value in {what!r}": ~self.known,
        }
        return {
            "favourable_answer": lb.favourable_answer(what, [str(self.good)]) + of_label,
            "n_rows": len(self.weightless),
            "n_rows_compared": 0,
            "dropped": [{"reason": r, "n": int(d.sum())} for r, d in dropped.items() if d.any()],
            "label": label,
            "prediction": self.prediction,
            "weight": self.columns.weight,
            "sensitive": list(self.columns.sensitive),
            "alike_groups": self.alike,
            "favourable": str(self.good),
            "favourable_label": str(self.good_label) if self.both else None,
        }


def _read(
    X: Any, columns: Columns, prediction: str | None, favourable: tuple[str | None, str | None]
) -> _Table:
    """Read the answers that are audited and the labels beside them.

    ``favourable`` has what the user said of the answer and of the label.
    """
    label, sensitive, missing = columns.label, columns.sensitive, columns.missing
    named, named_label = favourable
    if label is None and prediction is None:
        raise InputError(
            "nothing_to_audit", label=Parameter("label"), prediction=Parameter("prediction")
        )
    both, what = None not in (label, prediction), str(prediction or label)
    if named_label is not None and not both:
        raise InputError(
            "favourable_label_alone",
            favourable_label=Parameter("favourable_label"),
            favourable=Parameter("favourable"),
        )
    lb.check_roles(label, sensitive, weight=columns.weight)
    X = as_table(X)
    given = columns.weights(X)
    weights = np.ones(len(X)) if given is None else given
    X, weights, weightless = X.take(weights > 0), weights[weights > 0], weights == 0
    check_words(X, [*sensitive, *filter(None, (label, prediction))], missing)
    groups, kept = columns.groups(X)
    X, weights = X.take(kept), weights[kept]
    # A classifier that says the same to everybody may well be audited, beside labels.
    answers, known = lb.label_values(X, what, least=1 if both else 2, missing=missing)
    labels, labelled = answers, known[known]
    if both:
        X = X.take(known)
        labels, labelled = lb.label_values(X, str(label), missing=missing)
        answers = _same_numbers(answers, labels)
    strange = sorted(set(map(str, answers)) - set(map(str, labels)))
    if strange and named_label is None:
        raise InputError(
            "answer_is_no_label",
            column=what,
            value=strange[0],
            label=label,
            labels=listed(np.unique(labels).tolist()),
            favourable=Parameter("favourable"),
            favourable_label=Parameter("favourable_label"),
        )
    # Values that the predictions happen not to have may be favourable as well.
    values, known_labels = lb.label_counts(answers if strange else labels), lb.label_counts(labels)
    good = lb.favourable_label(values, what if strange else str(label or what), named)
    good_label = good
    if named_label is not None:
        good_label = lb.as_label(named_label, list(known_labels), str(label), "favourable_label")
    names, group = group_codes(groups)
    if len(names) < 2:
        raise InputError("one_group", columns=lb.joined(sensitive), group=names[0])
    rows = pd.DataFrame({"z": group[known], "answer": answers.astype(str) == str(good)})
    rows["weight"] = weights[known]
    rows = rows.assign(labelled=labelled, label=None, right=False)
    rows.loc[labelled, "label"] = labels.astype(str)
    same = answers.astype(str) == rows["label"]
    if named_label is not None:
        same = rows["answer"] == (rows["label"] == str(good_label))
    rows["right"] = labelled & same
    alike = lb.alike_groups(X, columns)
    facts = (alike, names, group, known, weights, good, good_label, len(known_labels), rows)
    return _Table(columns, prediction, weightless, kept, *facts)


def _counts(rows: pd.DataFrame, table: _Table, n_groups: int) -> dict[str, Counts]:
    """Give the counts of each rate; those that need a label are of the rows that have one."""

    def count(rows: pd.DataFrame, truth: Any, answer: Any) -> Counts:
        return binary_counts(rows["z"], truth, answer, n_groups, rows["weight"])

    counts = {"selection_rate": count(rows, rows["answer"], rows["answer"])}
    if not table.both:
        return counts
    rows = rows[rows["labelled"]]
    truth = rows["label"] == str(table.good_label)
    # An answer is right if it is the label, which of many labels is more than being favourable
    # or not as the label is: right answers are counted as (1, 1), wrong ones as (0, 1).
    needs_label = dict.fromkeys(RATES, count(rows, truth, rows["answer"]))
    return needs_label | {"accuracy": count(rows, rows["right"], 1)} | counts


def _privileged_place(
    report: Mapping[str, Any], names: NDArray[Any], large: NDArray[Any], small: Mapping[Any, int]
) -> int | None:
    """Find the privileged group among those that are compared."""
    privileged, least = report["privileged"], report["min_group_size"]
    if privileged is None:
        return None
    columns = lb.joined(report["sensitive"])
    group = lb.as_label(privileged, names.tolist(), columns, "privileged")
    if group in small:
        raise InputError(
            "small_privileged_group",
            privileged=Parameter("privileged", privileged),
            n=small[group],
            min_group_size=Parameter("min_group_size", least),
        )
    return int(large.tolist().index(group))


def _add_labelled(
    report: dict[str, Any], table: _Table, rows: pd.DataFrame, counts: Mapping[str, Counts]
) -> NDArray[np.bool_]:
    """Add what is known of rows that have a label, and say which groups have enough of them.

    Those that have too few are not compared in a rate that needs a label, unless the table has two
    groups only. ``opposite`` is the label to call favourable if label and prediction seem to count
    opposite answers.
    """
    accuracy = lb.plain_number(overall_accuracy(counts["accuracy"]))
    others = set(table.rows["label"].dropna()) - {str(table.good_label)}
    opposite = accuracy is not None and accuracy < 0.5 and len(others) == 1
    labelled = np.bincount(rows.loc[rows["labelled"], "z"], minlength=len(report["groups"]))
    sizes, least = np.array(report["sizes"]), report["min_group_size"]
    few = (sizes >= least) & (labelled < least)
    report |= {
        "accuracy": accuracy,
        "opposite": others.pop() if opposite else None,
        "labelled": labelled.tolist(),
        "few_labels": [
            {"group": report["groups"][j], "rows": int(sizes[j]), "labelled": int(labelled[j])}
            for j in np.flatnonzero(few)
        ],
    }
    return ~few if len(table.names) > 2 else np.ones_like(few)


def _add_rate(
    report: dict[str, Any],
    name: str,
    target: Target,
    both: tuple[Counts, Counts],
    compared: NDArray[np.bool_],
    place: int | None,
) -> None:
    """Add a rate of each group with its 95% interval, and how the groups compare.

    ``both`` are counts by weight, and of rows: weights that differ have no exact interval.
    ``place`` is that of the privileged group, with which each is compared as well.
    """
    (rate,), (counts, of_rows) = target.rate.components, both
    values, (top, bottom) = rate.per_group(counts), rate.fractions(of_rows)
    report["rows"][name] = int(of_rows[compared].sum())
    ends = clopper_pearson(top, bottom, 0.025)
    if report["weight"] is not None:
        ends = (np.full(len(values), np.nan),) * 2
    report["rates"][name] = [
        {
            **dict(zip(("value", "low", "high"), map(lb.plain_number, shown), strict=True)),
            "rows": int(n),
            "compared": bool(yes),
        }
        for *shown, n, yes in zip(values, *ends, bottom, compared, strict=True)
    ]
    value = target.value(counts[compared])
    report["ratios"][name], report["reached"][name] = lb.plain_number(value), target.reached(value)
    if place is not None:
        with np.errstate(invalid="ignore", divide="ignore"):
            to = np.where(compared & compared[place], values / values[place], np.nan)
        ratios = report.setdefault("ratios_to_privileged", {})
        ratios[name] = list(map(lb.plain_number, to))


def _add_verdicts(
    report: dict[str, Any],
    targets: Mapping[str, Target],
    counts: Mapping[str, Counts],
    missing: Sequence[Mapping[str, Any] | None],
) -> None:
    """Add what can be judged, what the ratios in the population are, and the verdict.

    ``missing`` are the answers and the labels. Where they are missing for a reason nothing exact
    follows for the population.
    """
    unsure = {name for about in missing if about is not None for name in about["not_judged"]}
    chosen = [about is not None and about["related"] for about in missing]
    weighted = report["weight"] is not None
    sure, first = report["confidence"], "selection_rate"
    proof = {
        name: name not in unsure and not (weighted or chosen[0] or (chosen[1] and name != first))
        for name in targets
    }
    verdict = judge(
        targets[first], counts[first], sure, judged=first not in unsure, drawn=proof[first]
    )
    about = {"groups": "compared" if report["small_groups"] else "all", "weighted": weighted}
    report["bounds"] = {first: (verdict.at_least, verdict.at_most)} | {
        name: population_ends(target, counts[name], sure) if proof[name] else (None, None)
        for name, target in targets.items()
        if name != first
    }
    report |= {
        "not_judged": [name for name in report["ratios"] if name in unsure],
        "judged": verdict.met is not None,
        "passed_rate": first,
        "passed": bool(verdict.met),
        "verdict": verdict.plain() | about,
    }


def _other_labels(labels: Any, table: _Table) -> dict[str, Any]:
    """Count the labels that are not favourable, and name those that may be mistakes."""
    rows = lb.label_counts(labels.to_numpy(dtype=str))
    others = {label: n for label, n in rows.items() if label != str(table.good_label)}
    column, missing = str(table.columns.label or table.prediction), table.columns.missing
    return {
        "not_favourable": others,
        "perhaps_missing": lb.perhaps_missing(others, column, missing),
        "alike_labels": lb.alike_labels(rows),
    }


def _same_numbers(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Write numbers as the labels are written, so that 1 is 1.0; if some are none, change none."""
    try:
        known = {float(label): label for label in np.unique(labels)}
        written = {value: known.get(float(value), value) for value in np.unique(values)}
    except ValueError:
        return values
    return np.array([written[value] for value in values])


def _association(rows: pd.DataFrame) -> float | None:
    r"""Cramér's V of group and answer, from 0 to 1; of two groups the size of the correlation."""
    table = pd.crosstab(rows["z"], rows["answer"], rows["weight"], aggfunc="sum").fillna(0.0)
    least = min(table.shape) - 1
    if least < 1:
        return None
    squared = chi2_contingency(table, correction=False)[0] / table.to_numpy().sum()
    return float(np.sqrt(squared / least))
