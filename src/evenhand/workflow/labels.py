"""What the columns of a table are for: labels, the favourable one, groups; and marks of a table."""

import hashlib
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from decimal import Decimal, InvalidOperation
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.stats import chi2_contingency, fisher_exact

from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.groups import group_codes, zero_one
from evenhand.persist.model_file import SavedModel
from evenhand.tables.columns import (
    BUILT_IN,
    NO_VALUE,
    MissingWords,
    as_table,
    check_words,
    listed,
    no_column,
)
from evenhand.tables.groups import Columns, bins_by_column

# More labels than this are no labels but a quantity.
MOST_LABELS = 20

# Labels that are missing so unevenly between answers, or groups, would be so with at most this
# probability if which are missing had nothing to do with them.
UNRELATED = 0.05
# Shares of missing labels that differ by more than this between groups are told, whatever chance
# may have done.
UNEVEN = 0.01

# From which share of distinct rows on the rows of a table can be told apart, and beyond which share
# in common another table's are the same.
DISTINCT, COMMON = 0.9, 0.5
# Labels that may well say that there is no outcome, in lower case. Unlike NO_VALUE they are values
# unless a user says otherwise; a user is told of them.
NO_OUTCOME = frozenset(word.casefold() for word in NO_VALUE) | {
    *("-", "--", "–", "—", ".", "..", "#n/a", "#null!", "<na>", "n.a.", "nil", "tbd", "unk"),
    *("blank", "empty", "missing", "open", "pending", "undecided", "undetermined", "unknown"),
    *("(blank)", "(missing)", "no outcome", "not available", "not known", "not yet known"),
}

# How pandas hashes a missing value.
NO_MARK = np.iinfo(np.uint64).max


def label_values(
    X: Any, label: str, *, least: int = 2, missing: MissingWords = BUILT_IN
) -> tuple[NDArray[Any], NDArray[np.bool_]]:
    """Give the labels of the rows of a table that have one, and which rows those are.

    Labels are whole numbers where all are written as such, else text: 01 and 02 are codes. There
    must be ``least`` different ones.
    """
    table = as_table(X)
    if label not in table.columns:
        raise no_column(label, table.columns)
    texts = table[label].as_text(missing)
    known = texts.codes >= 0
    if not known.any():
        raise InputError("empty_label", column=label)
    levels = texts.levels.tolist()
    if len(levels) < least:
        raise InputError("one_label", column=label, value=levels[0])
    if len(levels) > MOST_LABELS:
        about = {"n": len(levels), "values": listed(sorted(levels), 3)}
        raise InputError("too_many_labels", column=label, most=MOST_LABELS, **about)
    values = np.array(levels)
    try:
        numbers = [int(text) for text in levels]
    except ValueError:
        numbers = []
    if [str(number) for number in numbers] == levels:
        values = np.array(numbers)
    return values[texts.codes[known]], known


def too_few_to_test(n: int) -> InputError:
    """Say that no rows can be held back."""
    return InputError("too_few_to_test", n=n, test_size=Parameter("test_size", 0))


def as_label(text: str, values: Sequence[Any], column: str, parameter: str) -> Any:
    """Find the label or group that a user wrote as text, or as an equal number: 1 is 1.0."""
    for value in values:
        if str(value) == text:
            return value
    number = as_number(text)
    equal = [value for value in values if number is not None and as_number(value) == number]
    if len(equal) == 1:
        return equal[0]
    raise InputError(
        "unknown_value", given=Parameter(parameter, text), column=column, values=listed(values)
    )


def as_number(value: Any) -> Decimal | None:
    """Read a label as the number that it is, exactly: 1 is 1.0, and no large one is another."""
    try:
        number = Decimal(str(value))
    except InvalidOperation:
        return None
    return number if number.is_finite() else None


def favourable_label(
    labels: Mapping[Any, int], column: str, named: str | None = None, *, each: bool = False
) -> Any:
    """Find the favourable label: the one named, or the larger of 0/1, -1/1 or false/true.

    ``labels`` are those of a column, with the rows that have each. Others are refused: which is
    favourable is never guessed. If ``each`` of more than two may count, None says that each does.
    """
    if named is not None:
        return as_label(named, list(labels), column, "favourable")
    if each and len(labels) > 2:
        return None
    numbers = zero_one(labels) if len(labels) == 2 else None
    if numbers is not None:
        return max(numbers, key=numbers.__getitem__)
    one, *others = map(str, labels)
    if not others:
        said = Parameter("favourable", one)
        raise InputError("one_value_not_said", column=column, value=one, favourable=said)
    n = sum(labels.values())
    shown = [f"{label!r} ({rows / n:.1%} of the rows)" for label, rows in labels.items()]
    options = {"one": Parameter("favourable", one), "other": Parameter("favourable", others[0])}
    more = ", or another of them" if len(labels) > 2 else ""
    about = {"column": column, "n": len(labels), "labels": ", ".join(shown)}
    raise InputError("favourable_not_said", more=more, **about, **options)


def label_counts(y: NDArray[Any]) -> dict[Any, int]:
    """Count the rows of each label."""
    classes, n = np.unique(y, return_counts=True)
    return dict(zip(classes.tolist(), n.tolist(), strict=True))


def alike_labels(labels: Mapping[Any, int]) -> list[dict[str, int]]:
    """Find labels that differ only in how they are written, with their rows."""
    alike: dict[Any, dict[str, int]] = {}
    for label, n in labels.items():
        number = as_number(label)
        key = "".join(str(label).split()).casefold() if number is None else number
        alike.setdefault(key, {})[str(label)] = n
    return [same for same in alike.values() if len(same) > 1]


def alike_groups(X: Any, columns: Columns) -> dict[str, list[dict[str, int]]]:
    """Find values of sensitive columns that differ only in how they are written, with their rows.

    By column; numbers that go into bins are not asked.
    """
    found, binned = {}, bins_by_column(columns.bins, columns.sensitive)
    for name in columns.sensitive:
        texts = X[name].as_text(columns.missing)
        counts = dict(zip(texts.levels.tolist(), texts.counts().tolist(), strict=True))
        same = [] if name in binned else alike_labels({w: n for w, n in counts.items() if n})
        if same:
            found[name] = same
    return found


def alike_warning(
    same: Mapping[str, int], column: str, what: str = "different answers"
) -> InputWarning:
    """Say that values are counted as different though they may mean the same."""
    return InputWarning("alike_labels", column=column, labels=_with_rows(same), what=what)


def warn_of_alike(labels: Mapping[Any, int], column: str) -> None:
    """Warn of labels that differ only in how they are written."""
    for same in alike_labels(labels):
        warnings.warn(alike_warning(same, column), stacklevel=3)


def warn_of_alike_groups(X: Any, columns: Columns) -> None:
    """Warn of groups that differ only in how they are written."""
    for name, found in alike_groups(X, columns).items():
        for same in found:
            warnings.warn(alike_warning(same, name, "different groups"), stacklevel=3)


def perhaps_missing(labels: Iterable[Any], column: str, missing: MissingWords) -> list[str]:
    """Find labels that may say that there is no outcome, unless a user says they are values."""
    unclear = column not in missing.kept
    return [str(label) for label in labels if unclear and str(label).casefold() in NO_OUTCOME]


def no_outcome_warning(words: Sequence[str], column: str) -> InputWarning:
    """Say how rows whose label may say that there is no outcome are left out."""
    about = {"na": Parameter("na", list(words)), "example": Parameter("na", "NA")}
    labels = " and ".join(repr(word) for word in words)
    return InputWarning("perhaps_no_outcome", column=column, labels=labels, **about)


def warn_of_other_labels(
    labels: Mapping[Any, int], favourable: Any, column: str, missing: MissingWords
) -> None:
    """Warn of more than one label that counts as not favourable, and of those that may be none.

    ``favourable`` is None where each label counts.
    """
    others = {str(label): n for label, n in labels.items() if label != favourable}
    if favourable is not None and len(others) > 1:
        warnings.warn(
            InputWarning("other_labels", column=column, labels=_with_rows(others)), stacklevel=3
        )
    words = perhaps_missing(others, column, missing)
    if words:
        warnings.warn(no_outcome_warning(words, column), stacklevel=3)


def _with_rows(labels: Mapping[str, int]) -> str:
    return " and ".join(f"{label!r} ({n:,} row{'s' * (n != 1)})" for label, n in labels.items())


def favourable_answer(label: str, values: Sequence[str]) -> str:
    """Say which answer counts as favourable, as every screen and JSON document begins.

    Examples
    --------
    >>> from evenhand.workflow.labels import favourable_answer
    >>> favourable_answer("income", [">50K"])
    'income = >50K'
    """
    each = "each of " * (len(values) > 1)
    return f"{label} = {each}{' | '.join(values)}"


def favourable_of(saved: SavedModel) -> str:
    """Say which answer a saved model takes for favourable; one saved in Python has no facts."""
    model = saved.model[-1]
    labels = model.fitted_.favourable
    return favourable_answer(saved.facts.get("label", "label"), labels)


def fingerprint(X: Any) -> str:
    """Give a short mark of a table's values, which another table hardly has."""
    table = as_table(X)
    digest = hashlib.sha256()
    for name in table.columns:
        digest.update(name.encode())
        digest.update(_marks(table, name).tobytes())
    return digest.hexdigest()[:16]


def _marks(table: Any, name: str) -> NDArray[np.uint64]:
    """Give a mark of each value of a column."""
    try:
        texts = table[name].as_text()
    except InputError:  # lists or records, which may be in columns that are no inputs
        values = pd.Series(list(map(str, table.frame[name].to_list())), dtype=object)
        return pd.util.hash_pandas_object(values, index=False).to_numpy()
    levels = texts.levels.to_numpy(dtype=object)
    marks: NDArray[np.uint64] = texts.spread(pd.util.hash_array(levels, categorize=False), NO_MARK)
    return marks


def check_new_rows(fitted: Any, test: Any, name: str) -> None:
    """Refuse a table to test on whose rows were fitted to, as far as rows can be told apart.

    Where few rows of a table are alike, most rows of another are among them only if they are the
    same. Where many are, only the very same table is known.
    """
    fitted, test = as_table(fitted), as_table(test)
    columns = sorted({*fitted.columns} & {*test.columns})
    known, new = (_row_marks(table, columns) for table in (fitted, test))
    seen = int(np.isin(new, known).sum())
    same = len(known) == len(new) and bool((known == new).all())
    if same or (len(np.unique(known)) > DISTINCT * len(known) and seen > COMMON * len(new)):
        about = {"n": seen, "n_test": len(new), "table": Parameter(name)}
        raise InputError("test_rows_fitted", **about)


def _row_marks(table: Any, columns: Sequence[str]) -> NDArray[np.uint64]:
    """Give a mark of each row, by the values of some columns."""
    marks = np.zeros(len(_marks(table, columns[0])) if columns else 0, dtype=np.uint64)
    for column in columns:
        marks = marks * np.uint64(31) + _marks(table, column)
    return marks


def plain_number(value: Any) -> float | None:
    """Give a number as JSON has it: no NaN."""
    return float(value) if np.isfinite(value) else None


def depends(table: NDArray[Any], level: float = UNRELATED) -> tuple[float, bool]:
    """Say whether who has no label, the first column, goes with the row of a table of counts.

    Gives the test's p-value, and whether it is below ``level`` or some row has no label at all.
    """
    table = table[table.sum(axis=1) > 0]
    if len(table) < 2 or not table.sum(axis=0).all():
        p = 1.0
    else:
        p = float((fisher_exact if len(table) == 2 else chi2_contingency)(table)[1])
    return p, bool(p < level or (table[:, 1] == 0).any())


def joined(names: Sequence[str]) -> str:
    """Name what several columns are together."""
    return " × ".join(names)


def check_roles(
    label: str | None,
    sensitive: Sequence[str],
    kinds: Collection[str] = (),
    *,
    sensitive_inputs: bool = False,
    weight: str | None = None,
) -> None:
    """Refuse a column with two roles, and a kind for a column that is no input."""
    if weight is not None and (weight == label or weight in sensitive):
        what = "the label" if weight == label else "sensitive"
        raise InputError("weight_of_other_role", column=weight, role=what)
    if label in sensitive:
        raise InputError("sensitive_label", column=label)
    twice = [name for i, name in enumerate(sensitive) if name in sensitive[:i]]
    if twice:
        raise InputError("sensitive_twice", column=twice[0])
    for name in kinds:
        roles = {label: "the label", weight: "the weight"}
        if name in roles or (name in sensitive and not sensitive_inputs):
            role = roles.get(name, "sensitive")
            raise InputError("kind_of_no_input", column=name, role=role)


def whom_left_out(
    groups: Any, known: NDArray[np.bool_], n: NDArray[Any] | None = None
) -> dict[str, str]:
    """Say of which groups rows have no label, under "whom", if that goes with the group.

    ``known`` says which rows have a label; ``n``, how many rows each stands for.
    """
    if known.all():
        return {}
    names, z = group_codes(groups)
    counts = np.bincount(z * 2 + known, weights=n, minlength=2 * len(names))
    table = counts.astype(int).reshape(-1, 2)
    shares = table[:, 0] / table.sum(axis=1)
    if not depends(table)[1] and np.ptp(shares) <= UNEVEN:
        return {}
    order = np.argsort(-shares, kind="stable")[:4]
    each = [f"{table[j, 0]:,} of {table[j].sum():,} rows of {names[j]}" for j in order]
    return {"whom": f"{', '.join(each)}: who has a label depends on the group"}


def check_labelled_groups(groups: Any, known: NDArray[np.bool_], columns: Columns) -> None:
    """Refuse labels of one group alone, where others have rows and no label."""
    names, z = group_codes(groups)
    labelled = np.unique(z[known])
    if len(names) > 1 and len(labelled) == 1:
        others = [str(name) for j, name in enumerate(names.tolist()) if j != labelled[0]]
        about = {"others": listed(others), "have": "has" if len(others) == 1 else "have"}
        group = str(names[labelled[0]])
        raise InputError("labels_of_one_group", group=group, column=columns.label, **about)


def labelled_rows(
    X: Any, columns: Columns, *, several_groups: bool = True
) -> tuple[Any, NDArray[Any], list[dict[str, Any]], Any]:
    """Rows that have a label and a group, their labels, what was left out, rows with no label.

    ``several_groups`` says whether labels of one group alone are refused.
    """
    label, sensitive = str(columns.label), columns.sensitive
    X, dropped = as_table(X), []
    check_words(X, [label, *sensitive], columns.missing)
    weights = columns.weights(X)
    if weights is not None:
        X = X.take(weights > 0)
        zero = f"with a weight of 0 in {columns.weight!r}"
        dropped = [{"reason": zero, "n": int((weights == 0).sum())}]
    groups, kept = columns.groups(X)
    X = X.take(kept)
    y, known = label_values(X, label, missing=columns.missing)
    if several_groups:
        check_labelled_groups(groups, known, columns)
    dropped += [
        {"reason": f"without a value in {joined(sensitive)!r}", "n": int((~kept).sum())},
        {"reason": f"without a value in {label!r}", "n": int((~known).sum())}
        | whom_left_out(groups, known),
    ]
    unlabelled = None if known.all() else X.take(~known)
    return X.take(known), y, [d for d in dropped if d["n"]], unlabelled
