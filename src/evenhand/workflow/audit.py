"""Compare groups in a table of answers, or of labels alone, and say what can be judged."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.groups import group_codes
from evenhand.core.rates import RATES, Rate, overall_accuracy, wilson_interval
from evenhand.models.inputs import compared_groups
from evenhand.tables.groups import take_table_rows
from evenhand.tables.parse import (
    NO_VALUE,
    MissingWords,
    as_frame,
    check_words,
    listed,
)
from evenhand.workflow.labels import (
    UNRELATED,
    Columns,
    as_label,
    as_number,
    check_roles,
    depends,
    favourable_answer,
    favourable_label,
    joined,
    label_counts,
    label_values,
    plain_number,
)

__all__ = ["audit"]


# Labels that may well say that there is no outcome, in lower case. Unlike NO_VALUE they are values
# unless a user says otherwise; a user is told of them.
NO_OUTCOME = frozenset(word.casefold() for word in NO_VALUE) | {
    *("-", "--", "–", "—", ".", "..", "#n/a", "#null!", "<na>", "n.a.", "nil", "tbd", "unk"),
    *("blank", "empty", "missing", "open", "pending", "undecided", "undetermined", "unknown"),
    *("(blank)", "(missing)", "no outcome", "not available", "not known", "not yet known"),
}


def _interval(rate: Rate, counts: NDArray[np.float64]) -> list[dict[str, Any]]:
    """Rate of each group with its 95% interval."""
    top, bottom = rate.fractions(counts)
    low, high = wilson_interval(top, bottom)
    return [
        {
            "value": plain_number(a / b if b else np.nan),
            "low": plain_number(x),
            "high": plain_number(y),
        }
        for a, b, x, y in zip(top, bottom, low, high, strict=True)
    ]


def audit(
    X: Any,
    *,
    label: str | None = None,
    prediction: str | None = None,
    sensitive: Sequence[str],
    favourable: str | None = None,
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
    privileged : str, optional
        A group: the ratio of each group's rate to that of this one is given as well. The verdict is
        about the smallest rate over the largest all the same.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group.
    bins : int, sequence of float, or mapping of str to these, optional
        Bins of sensitive numbers, as of :func:`evenhand.fair_pipeline`.
    na, keep_na : sequence of str
        Words that stand for a missing value, and columns in which they are values, as of
        :class:`~evenhand.TableEncoder`.
    tau : float, default=0.8
        What the ratio is held against; 0.8 is the four-fifths rule.
    min_group_size : int, default=30
        Of more than two groups those of fewer rows are listed and not compared.

    Returns
    -------
    dict
        Plain values: groups with their sizes and rates, ratios, the verdict. ``passed`` is False
        also if the selection rate cannot be judged, and ``judged`` then as well.
    """
    if label is None and prediction is None:
        raise ValueError("name a column of labels or of predictions, or both.")
    check_roles(label, sensitive)
    n_rows = len(as_frame(X))
    missing = MissingWords.chosen(na, keep_na)
    columns = [c for c in (label, prediction) if c is not None]
    check_words(as_frame(X), [*sensitive, *columns], missing)
    groups, kept = Columns(label, sensitive, missing_groups, bins, missing).groups(X)
    X = X if kept.all() else take_table_rows(X, kept)
    what = str(prediction or label)
    answers, known, labels, labelled = _answers_and_labels(X, label, prediction, missing)
    classes = label_counts(labels)
    good = favourable_label(classes, str(label or what), favourable)
    names, group = group_codes(groups)
    if len(names) < 2:
        raise ValueError(
            f"{joined(sensitive)} has one group only, {names[0]!r}; at least two are compared."
        )
    z = group[known]
    sizes = np.bincount(z, minlength=len(names))
    large, number, small = compared_groups(names, sizes, min_group_size)
    compared = number < len(large)
    answer = answers.astype(str) == str(good)
    every = _counts(z, answer, answer, len(names))
    dropped = {"without a group": ~kept, f"without a value in {what!r}": ~known}
    report: dict[str, Any] = {
        "favourable_answer": favourable_answer(what, [str(good)]),
        "n_rows": n_rows,
        "n_rows_compared": int(sizes[compared].sum()),
        "dropped": [{"reason": r, "n": int(d.sum())} for r, d in dropped.items() if d.any()],
        "label": label,
        "prediction": prediction,
        "sensitive": list(sensitive),
        "favourable": str(good),
        "privileged": privileged,
        "tau": tau,
        "min_group_size": min_group_size,
        "groups": [str(n) for n in large.tolist()],
        "sizes": sizes[compared].tolist(),
        "small_groups": [
            {"group": str(name), "rows": int(n), "favourable": int(every[j, :, 1].sum())}
            for j, (name, n) in enumerate(zip(names.tolist(), sizes, strict=True))
            if not compared[j]
        ],
        "rows": {},
        "rates": {},
        "ratios": {},
        "association": plain_number(_cramers_v(number[z][compared[z]], answer[compared[z]])),
    }
    place = _privileged_place(privileged, names, large, small, sensitive, min_group_size)
    counts = {"selection_rate": every[compared]}
    rows = compared[z]
    if favourable is not None or len(classes) > 2:
        here = labels[rows[labelled]]
        report |= _other_labels(here, good, unclear=str(label or what) not in missing.kept)
    if label is not None and prediction is not None:
        right = answers[labelled].astype(str) == labels.astype(str)
        truth = labels.astype(str) == str(good)
        counts |= _label_rates(number[z], answer, labelled, truth, right, len(large))
        report["accuracy"] = plain_number(overall_accuracy(counts["accuracy"]))
    _add_rates(report, counts, place)
    unanswered = _unlabelled_groups(names, group, known, every, report)
    if prediction is None:
        report["missing_labels"] = unanswered
    else:
        report["missing_predictions"] = unanswered
        if label is not None:
            report["missing_labels"] = _missing_labels(
                number[z][rows], answer[rows], labelled[rows], counts, report
            )
    _add_verdict(report, every[sizes > 0] if small else None)
    return report


def _answers_and_labels(
    X: Any, label: str | None, prediction: str | None, missing: MissingWords
) -> tuple[NDArray[Any], NDArray[np.bool_], NDArray[Any], NDArray[np.bool_]]:
    """Read the answers that are audited and the labels beside them.

    Returns
    -------
    tuple of ndarray
        Answers of the rows that have one, and which rows those are; labels of those among them that
        have one, and which of them those are. Of one column alone its values are both.
    """
    both = label is not None and prediction is not None
    what = str(prediction or label)
    # A classifier that says the same to everybody may well be audited, beside labels.
    answers, known = label_values(X, what, least=1 if both else 2, missing=missing)
    if not both:
        return answers, known, answers, known[known]
    X = X if known.all() else take_table_rows(X, known)
    labels, labelled = label_values(X, str(label), missing=missing)
    answers = _same_numbers(answers, labels)
    strange = sorted(set(map(str, answers)) - set(map(str, labels)))
    if strange:
        raise ValueError(
            f"column {what!r} has the value {strange[0]!r}, which column {label!r} has not "
            f"({listed(np.unique(labels).tolist())})."
        )
    return answers, known, labels, labelled


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


def _counts(
    z: NDArray[Any], truth: NDArray[np.bool_], answer: NDArray[np.bool_], n_groups: int
) -> NDArray[np.float64]:
    """Count rows by group, truth and answer; those of groups beyond the last are left out."""
    cells = np.bincount((z * 2 + truth) * 2 + answer, minlength=4 * n_groups)[: 4 * n_groups]
    return cells.reshape(-1, 2, 2).astype(float)


def _label_rates(
    z: NDArray[Any],
    answer: NDArray[np.bool_],
    labelled: NDArray[np.bool_],
    truth: NDArray[np.bool_],
    right: NDArray[np.bool_],
    n_groups: int,
) -> dict[str, NDArray[np.float64]]:
    """Give the counts of each rate that needs a label, of the rows that have one."""
    z, answer = z[labelled], answer[labelled]
    certain = _counts(z, truth, answer, n_groups)
    # An answer is right if it is the label, which of many labels is more than being favourable or
    # not as the label is: right answers are counted as (1, 1), wrong ones as (0, 1).
    accuracy = _counts(z, right, np.ones_like(right), n_groups)
    names = [name for name in RATES if name != "selection_rate"]
    return {name: accuracy if name == "accuracy" else certain for name in names}


def _add_rates(
    report: dict[str, Any], counts: Mapping[str, NDArray[np.float64]], place: int | None
) -> None:
    """Add rows, rates and ratios, also those to the privileged group, which is at ``place``."""
    if place is not None:
        report["ratios_to_privileged"] = {}
    for name, c in counts.items():
        rate = RATES[name]
        report["rows"][name] = int(c.sum())
        report["rates"][name] = _interval(rate, c)
        # Where no group has an error there is 0/0, which is no sign of anything.
        none = not rate.fractions(c)[0].any()
        report["ratios"][name] = None if none else plain_number(rate.ratio(c))
        if place is not None:
            with np.errstate(invalid="ignore", divide="ignore"):
                to = rate.per_group(c) / rate.per_group(c)[place]
            report["ratios_to_privileged"][name] = [plain_number(r) for r in to]


def _add_verdict(report: dict[str, Any], with_small: NDArray[np.float64] | None) -> None:
    """Add whether the selection rate can be judged, and whether it passes."""
    ratio, tau = report["ratios"]["selection_rate"], report["tau"]
    missing = [report.get(key) for key in ("missing_labels", "missing_predictions")]
    unsure = {name for about in missing if about is not None for name in about["not_judged"]}
    report["judged"] = ratio is not None and "selection_rate" not in unsure
    report["passed"] = bool(report["judged"] and ratio >= tau)
    if with_small is not None:
        ratio = plain_number(RATES["selection_rate"].ratio(with_small))
        passed = bool(report["judged"] and ratio is not None and ratio >= tau)
        report["with_small_groups"] = {"ratio": ratio, "passed": passed}


def _other_labels(labels: NDArray[Any], good: Any, *, unclear: bool) -> dict[str, Any]:
    """Count the labels that are not favourable, and name those that may be mistakes.

    Parameters
    ----------
    labels : ndarray
        The labels.
    good : label
        The favourable one.
    unclear : bool
        Whether a word such as "unknown" may stand for no label; not if a user has said that such
        words are values.
    """
    rows = {str(label): n for label, n in label_counts(labels).items()}
    others = {label: n for label, n in rows.items() if label != str(good)}
    alike: dict[Any, dict[str, int]] = {}
    for label, n in rows.items():
        number = as_number(label)
        key = "".join(label.split()).casefold() if number is None else number
        alike.setdefault(key, {})[label] = n
    return {
        "not_favourable": others,
        "perhaps_missing": [w for w in others if unclear and w.casefold() in NO_OUTCOME],
        "alike_labels": [same for same in alike.values() if len(same) > 1],
    }


def _unlabelled_groups(
    names: NDArray[Any],
    z: NDArray[Any],
    known: NDArray[np.bool_],
    counts: NDArray[np.float64],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Say how many rows of each group have no answer, and whether that goes with the group.

    The answer is the prediction, or the label where that is audited alone. It does if a test says
    so (Fisher's exact one of two groups, chi-squared of more), or if a group has no answer at all.
    The rate is then judged only if no answers of the other rows could put its ratio on the other
    side of τ.

    Parameters
    ----------
    names : ndarray
        The groups.
    z : ndarray
        Group of each row, with a label or without.
    known : ndarray of bool
        Which rows have a label.
    counts : ndarray of shape (n_groups, 2, 2)
        Counts of those that have.
    report : mapping
        What is known of the audit.
    """
    sizes = np.bincount(z, minlength=len(names))
    # Groups that would be compared if all their rows had a label.
    compared, number, _ = compared_groups(names, sizes, report["min_group_size"])
    large = np.flatnonzero(number < len(compared))
    table = np.bincount(z * 2 + known, minlength=2 * len(names)).reshape(-1, 2)[large]
    rows, missing = table.sum(axis=1), table[:, 0]
    if not missing.any():
        return None
    p, related = depends(table)
    hits = counts[large, :, 1].sum(axis=1)
    firm = _firm(hits / rows, (hits + missing) / rows, report["tau"])
    return {
        "n": int(missing.sum()),
        "by_group": [
            {"group": str(names[j]), "rows": int(n), "missing": int(m)}
            for j, n, m in zip(large, rows, missing, strict=True)
        ],
        "p_value": p,
        "related": related,
        "not_judged": ["selection_rate"] if related and not firm else [],
    }


def _missing_labels(
    z: NDArray[Any],
    answer: NDArray[np.bool_],
    labelled: NDArray[np.bool_],
    counts: Mapping[str, NDArray[np.float64]],
    report: Mapping[str, Any],
) -> dict[str, Any] | None:
    """Say how many rows with an answer have no label, and whether that goes with the answer.

    It does if Fisher's exact test says so of all rows, or of those of a group (with Bonferroni's
    correction), or if no row with one of the answers has a label: then rates that need a label are
    of rows that were chosen by the answer itself. Such a rate is judged only if no labels of the
    other rows could put its ratio on the other side of τ.

    Parameters
    ----------
    z : ndarray
        Group of each row.
    answer, labelled : ndarray of bool
        Whether its answer is favourable, and whether it has a label.
    counts : mapping of str to ndarray
        Counts of each rate.
    report : mapping
        What is known of the audit.
    """
    if labelled.all():
        return None
    groups = report["groups"]
    tables = _counts(z, answer, labelled, len(groups)).astype(int)
    p, pooled = depends(tables.sum(axis=0))
    by_group = []
    for name, table in zip(groups, tables, strict=True):
        p_group, related = depends(table, UNRELATED / len(groups))
        part = {"group": name, "rows": int(table.sum()), "missing": int(table[:, 0].sum())}
        by_group.append(
            part | {"by_prediction": _by_answer(table), "p_value": p_group, "related": related}
        )
    related = pooled or any(part["related"] for part in by_group)
    return {
        "n": int((~labelled).sum()),
        "by_prediction": _by_answer(tables.sum(axis=0)),
        "p_value": p,
        "related": related,
        "related_pooled": pooled,
        "by_group": by_group,
        "not_judged": [
            name
            for name, ratio in report["ratios"].items()
            if related and name != "selection_rate" and ratio is not None
            if not _firm(*_ends(RATES[name], counts[name], tables[:, :, 0]), report["tau"])
        ],
    }


def _by_answer(table: NDArray[Any]) -> dict[str, dict[str, int]]:
    """Give rows, and those without a label, of each answer."""
    return {
        name: {"rows": int(row.sum()), "missing": int(row[0])}
        for name, row in zip(("others", "favourable"), table, strict=True)
    }


def _ends(
    rate: Rate, counts: NDArray[np.float64], missing: NDArray[Any]
) -> tuple[NDArray[np.floating[Any]], NDArray[np.floating[Any]]]:
    """Give the least and the largest that each group's rate could be with all labels.

    A rate rises or falls with each label that is filled in, so it is least and largest where the
    labels missing with one answer are all alike.

    Parameters
    ----------
    rate : Rate
        The rate.
    counts : ndarray of shape (n_groups, 2, 2)
        Its counts of rows with a label.
    missing : ndarray of shape (n_groups, 2)
        Rows without one, by whether the answer is favourable.
    """
    if rate.name == "accuracy":  # whose counts have right and wrong ones in the second column
        missing = np.column_stack([np.zeros(len(missing)), missing.sum(axis=1)])
    found = []
    for first, second in product((0, 1), repeat=2):
        filled = counts.copy()
        filled[:, first, 0] += missing[:, 0]
        filled[:, second, 1] += missing[:, 1]
        found.append(rate.per_group(filled))
    return np.min(found, axis=0), np.max(found, axis=0)


def _firm(low: NDArray[Any], high: NDArray[Any], tau: float) -> bool:
    """Say whether the ratio is on one side of τ wherever between its ends each rate is."""
    with np.errstate(invalid="ignore", divide="ignore"):
        each = low[:, None] / high[None, :]
        least = np.min(each[~np.eye(len(low), dtype=bool)])
        most = high.min() / low.max()
    tau -= 1e-12  # a quotient of quotients may be a hair less than what it stands for
    return bool(least >= tau or most < tau)


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
