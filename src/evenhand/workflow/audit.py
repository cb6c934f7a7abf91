"""Compare groups in a table of answers, or of labels alone, and say what can be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand.core.groups import group_codes
from evenhand.core.rates import RATES, Rate, overall_accuracy, wilson_interval
from evenhand.engines.coding import compared_groups
from evenhand.tables.groups import take_table_rows
from evenhand.tables.parse import NO_VALUE, MissingWords, as_frame, check_words, listed
from evenhand.workflow.labels import (
    Columns,
    alike_labels,
    as_label,
    check_roles,
    favourable_answer,
    joined,
    label_counts,
    label_values,
    plain_number,
)
from evenhand.workflow.labels import (
    favourable_label as find_favourable,
)
from evenhand.workflow.missing_answers import (
    binary_counts,
    few_labels,
    missing_labels,
    unanswered,
)

__all__ = ["audit"]


# Labels that may well say that there is no outcome, in lower case. Unlike NO_VALUE they are values
# unless a user says otherwise; a user is told of them.
NO_OUTCOME = frozenset(word.casefold() for word in NO_VALUE) | {
    *("-", "--", "–", "—", ".", "..", "#n/a", "#null!", "<na>", "n.a.", "nil", "tbd", "unk"),
    *("blank", "empty", "missing", "open", "pending", "undecided", "undetermined", "unknown"),
    *("(blank)", "(missing)", "no outcome", "not available", "not known", "not yet known"),
}


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
    na: Sequence[str] | None = None,
    keep_na: Sequence[str] = (),
    tau: float = 0.8,
    min_group_size: int = 30,
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
    missing_groups, bins, na, keep_na
        As of :class:`~evenhand.workflow.settings.TrainSettings`.
    tau : float, default=0.8
        What the ratio is held against; 0.8 is the four-fifths rule.
    min_group_size : int, default=30
        Of more than two groups those of fewer rows of the table that have an answer are listed and
        not compared; nor, in rates that need a label, those of fewer rows that have one.

    Returns
    -------
    dict
        Plain values: groups with their sizes and rates, ratios, the verdict. ``passed`` is about
        the selection rate alone; it is False also if that cannot be judged, and ``judged`` then as
        well. ``not_judged`` names the rates whose ratio cannot be judged.
    """
    _check_columns(label, prediction, sensitive, favourable_label)
    missing = MissingWords.chosen(na, keep_na)
    named = [c for c in (label, prediction) if c is not None]
    check_words(as_frame(X), [*sensitive, *named], missing)
    groups, kept = Columns(label, sensitive, missing_groups, bins, missing).groups(X)
    X = X if kept.all() else take_table_rows(X, kept)
    rows = _read(X, groups, label, prediction, (favourable, favourable_label), missing)
    if len(rows.names) < 2:
        raise ValueError(
            f"{joined(sensitive)} has one group only, {rows.names[0]!r}; at least two are compared."
        )
    sizes = np.bincount(rows.z, minlength=len(rows.names))
    large, number, small = compared_groups(rows.names, sizes, min_group_size)
    every = binary_counts(rows.z, rows.answer, rows.answer, len(rows.names))
    here = rows.of_groups(number, len(large))
    what = str(prediction or label)
    dropped = {"without a group": ~kept, f"without a value in {what!r}": ~rows.known}
    report: dict[str, Any] = {
        "favourable_answer": favourable_answer(what, [str(rows.good)])
        + (f"; of the label: {label} = {rows.good_label}" if len(named) == 2 else ""),
        "n_rows": len(kept),
        "n_rows_compared": len(here.z),
        "dropped": [{"reason": r, "n": int(d.sum())} for r, d in dropped.items() if d.any()],
        "label": label,
        "prediction": prediction,
        "sensitive": list(sensitive),
        "favourable": str(rows.good),
        "favourable_label": str(rows.good_label) if len(named) == 2 else None,
        "privileged": privileged,
        "tau": tau,
        "min_group_size": min_group_size,
        "groups": [str(n) for n in large.tolist()],
        "sizes": np.bincount(here.z, minlength=len(large)).tolist(),
        "small_groups": [
            {"group": str(rows.names[j]), "rows": int(sizes[j]), "favourable": int(c[:, 1].sum())}
            for j, c in enumerate(every)
            if number[j] == len(large)
        ],
        "rows": {},
        "rates": {},
        "ratios": {},
        "association": plain_number(_cramers_v(here.z, here.answer)),
    }
    place = _privileged_place(privileged, rows.names, large, small, sensitive, min_group_size)
    if favourable is not None or len(label_counts(rows.labels)) > 2:
        unclear = str(label or what) not in missing.kept
        report |= _other_labels(here.labels, rows.good_label, unclear=unclear)
    counts = here.counts(len(large), with_labels=len(named) == 2)
    compared = np.ones(len(large), dtype=bool)
    if len(named) == 2:
        report["accuracy"] = plain_number(overall_accuracy(counts["accuracy"]))
        report["opposite"] = _opposite(report["accuracy"], rows)
        labelled = np.bincount(here.z[here.labelled], minlength=len(large))
        report["labelled"] = labelled.tolist()
        compared, report["few_labels"] = few_labels(report, labelled, len(rows.names))
    _add_rates(report, counts, place, compared)
    without = unanswered(rows.names, rows.group, rows.known, every, report)
    report["missing_labels" if prediction is None else "missing_predictions"] = without
    if len(named) == 2:
        report["missing_labels"] = missing_labels(
            here.z, here.answer, here.labelled, counts, report
        )
    _add_verdict(report, every[sizes > 0] if small else None)
    return report


def _check_columns(
    label: str | None,
    prediction: str | None,
    sensitive: Sequence[str],
    favourable_label: str | None,
) -> None:
    """Refuse columns that leave nothing to compare, or have two roles."""
    if label is None and prediction is None:
        raise ValueError("name a column of labels or of predictions, or both.")
    if favourable_label is not None and (label is None or prediction is None):
        raise ValueError("--favourable-label is for a label beside a prediction; use --favourable.")
    check_roles(label, sensitive)


class _Rows(NamedTuple):
    """Rows that have a group, of those the ones with an answer, and of these the ones with a label.

    ``names`` are the groups, ``group`` each row's, and ``known`` says whether it has an answer.
    Rows with one have their group in ``z``; ``answer`` says whether the answer is ``good``, and
    ``labelled`` whether the row has a label. ``labels`` are those, of which ``good_label`` is
    favourable, and ``right`` says whether the answer is the label. Of one column alone its values
    are both answers and labels.
    """

    names: NDArray[Any]
    group: NDArray[np.intp]
    known: NDArray[np.bool_]
    good: Any
    good_label: Any
    z: NDArray[np.intp]
    answer: NDArray[np.bool_]
    labelled: NDArray[np.bool_]
    labels: NDArray[Any]
    right: NDArray[np.bool_]

    def of_groups(self, number: NDArray[np.intp], n_groups: int) -> _Rows:
        """Give the rows of groups whose new number is below ``n_groups``, by that number."""
        z = number[self.z]
        rows = z < n_groups
        labelled = rows[self.labelled]
        return self._replace(
            z=z[rows],
            answer=self.answer[rows],
            labelled=self.labelled[rows],
            labels=self.labels[labelled],
            right=self.right[labelled],
        )

    def counts(self, n_groups: int, *, with_labels: bool) -> dict[str, NDArray[np.float64]]:
        """Give the counts of each rate; those that need a label are of the rows that have one."""
        counts = {"selection_rate": binary_counts(self.z, self.answer, self.answer, n_groups)}
        if not with_labels:
            return counts
        z, answer = self.z[self.labelled], self.answer[self.labelled]
        certain = binary_counts(
            z, self.labels.astype(str) == str(self.good_label), answer, n_groups
        )
        # An answer is right if it is the label, which of many labels is more than being favourable
        # or not as the label is: right answers are counted as (1, 1), wrong ones as (0, 1).
        accuracy = binary_counts(z, self.right, np.ones_like(self.right), n_groups)
        names = [name for name in RATES if name != "selection_rate"]
        return counts | {name: accuracy if name == "accuracy" else certain for name in names}


def _read(
    X: Any,
    groups: pd.DataFrame,
    label: str | None,
    prediction: str | None,
    favourable: tuple[str | None, str | None],
    missing: MissingWords,
) -> _Rows:
    """Read the answers that are audited and the labels beside them.

    ``favourable`` has what the user said of the answer and of the label.
    """
    both = label is not None and prediction is not None
    what, (named, named_label) = str(prediction or label), favourable
    # A classifier that says the same to everybody may well be audited, beside labels.
    answers, known = label_values(X, what, least=1 if both else 2, missing=missing)
    labels, labelled = answers, known[known]
    if both:
        X = X if known.all() else take_table_rows(X, known)
        labels, labelled = label_values(X, str(label), missing=missing)
        answers = _same_numbers(answers, labels)
    strange = sorted(set(map(str, answers)) - set(map(str, labels)))
    if strange and named_label is None:
        raise ValueError(
            f"column {what!r} has the value {strange[0]!r}, which column {label!r} has not "
            f"({listed(np.unique(labels).tolist())}); if they say the same in other words, name "
            "the favourable one of each with --favourable and --favourable-label."
        )
    # Values that the predictions happen not to have may be favourable as well.
    values = label_counts(answers if strange else labels)
    good = find_favourable(values, what if strange else str(label or what), named)
    good_label = good
    if named_label is not None:
        known_labels = label_counts(labels)
        good_label = as_label(named_label, list(known_labels), str(label), "--favourable-label")
    names, group = group_codes(groups)
    answer = answers.astype(str) == str(good)
    right = answers[labelled].astype(str) == labels.astype(str)
    if named_label is not None:
        right = answer[labelled] == (labels.astype(str) == str(good_label))
    return _Rows(
        names, group, known, good, good_label, group[known], answer, labelled, labels, right
    )


def _opposite(accuracy: float | None, rows: _Rows) -> str | None:
    """Name the label to call favourable if label and prediction seem to count opposite answers."""
    others = [v for v in label_counts(rows.labels) if str(v) != str(rows.good_label)]
    if accuracy is None or accuracy >= 0.5 or len(others) != 1:
        return None
    return str(others[0])


def _privileged_place(
    privileged: str | None,
    names: NDArray[Any],
    large: NDArray[Any],
    small: Mapping[Any, int],
    sensitive: Sequence[str],
    min_group_size: int,
) -> int | None:
    """Find the privileged group among those that are compared."""
    if privileged is None:
        return None
    group = as_label(privileged, names.tolist(), joined(sensitive), "--privileged")
    if group in small:
        raise ValueError(
            f"--privileged {privileged!r} has {small[group]} rows, fewer than "
            f"min_group_size={min_group_size}; name a larger group, or lower min_group_size."
        )
    return int(large.tolist().index(group))


def _interval(rate: Rate, counts: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Rate of each group with its 95% interval and the rows that it is of."""
    top, bottom = rate.fractions(counts)
    low, high = wilson_interval(top, bottom)
    return [
        {
            "value": plain_number(a / b if b else np.nan),
            "low": plain_number(x),
            "high": plain_number(y),
            "rows": int(b),
        }
        for a, b, x, y in zip(top, bottom, low, high, strict=True)
    ]


def _add_rates(
    report: dict[str, Any],
    counts: Mapping[str, NDArray[np.float64]],
    place: int | None,
    with_labels: NDArray[np.bool_],
) -> None:
    """Add rows, rates and ratios, also those to the privileged group, which is at ``place``.

    ``with_labels`` says which groups have labels enough to be compared in a rate that needs one.
    """
    if place is not None:
        report["ratios_to_privileged"] = {}
    for name, c in counts.items():
        rate = RATES[name]
        compared = np.ones(len(c), dtype=bool) if name == "selection_rate" else with_labels
        report["rows"][name] = int(c[compared].sum())
        report["rates"][name] = [
            of_group | {"compared": bool(yes)}
            for of_group, yes in zip(_interval(rate, c), compared, strict=True)
        ]
        # Where no group has an error there is 0/0, which is no sign of anything.
        none = compared.sum() < 2 or not rate.fractions(c[compared])[0].any()
        report["ratios"][name] = None if none else plain_number(rate.ratio(c[compared]))
        if place is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                to = rate.per_group(c) / rate.per_group(c)[place]
            known = compared & compared[place]
            report["ratios_to_privileged"][name] = [
                plain_number(r) if yes else None for r, yes in zip(to, known, strict=True)
            ]


def _add_verdict(report: dict[str, Any], with_small: NDArray[np.float64] | None) -> None:
    """Add whether the selection rate can be judged, whether it passes, and what is not judged."""
    ratio, tau = report["ratios"]["selection_rate"], report["tau"]
    missing = [report.get(key) for key in ("missing_labels", "missing_predictions")]
    unsure = {name for about in missing if about is not None for name in about["not_judged"]}
    report["not_judged"] = [name for name in report["ratios"] if name in unsure]
    report["judged"] = ratio is not None and "selection_rate" not in unsure
    report["passed_rate"] = "selection_rate"
    report["passed"] = bool(report["judged"] and ratio >= tau)
    if with_small is not None:
        ratio = plain_number(RATES["selection_rate"].ratio(with_small))
        passed = bool(report["judged"] and ratio is not None and ratio >= tau)
        report["with_small_groups"] = {"ratio": ratio, "passed": passed}


def _other_labels(labels: NDArray[Any], good: Any, *, unclear: bool) -> dict[str, Any]:
    """Count the labels that are not favourable, and name those that may be mistakes.

    ``unclear`` says whether a word such as "unknown" may stand for no label; not if a user has said
    that such words are values.
    """
    rows = {str(label): n for label, n in label_counts(labels).items()}
    others = {label: n for label, n in rows.items() if label != str(good)}
    return {
        "not_favourable": others,
        "perhaps_missing": [w for w in others if unclear and w.casefold() in NO_OUTCOME],
        "alike_labels": alike_labels(rows),
    }


def _same_numbers(values: NDArray[Any], labels: NDArray[Any]) -> NDArray[Any]:
    """Write numbers as the labels are written, so that 1 is 1.0; if some are none, change none."""
    try:
        known = {float(label): label for label in np.unique(labels)}
        written = {value: known.get(float(value), value) for value in np.unique(values)}
    except ValueError:
        return values
    return np.array([written[value] for value in values])


def _cramers_v(z: NDArray[Any], answer: NDArray[np.bool_]) -> float:
    r"""Association of group and answer, from 0 to 1; of two groups the size of the correlation."""
    table = np.bincount(z * 2 + answer, minlength=2 * (int(z.max()) + 1)).reshape(-1, 2)
    expected = np.outer(table.sum(axis=1), table.sum(axis=0)) / table.sum()
    if len(table) < 2 or not (expected > 0).all():
        return float("nan")
    return float(np.sqrt(((table - expected) ** 2 / expected).sum() / table.sum()))
