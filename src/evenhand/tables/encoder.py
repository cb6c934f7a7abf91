"""Tables as they come: every column looked at, every decision written down.

:class:`TableEncoder` turns a pandas or polars frame into the numbers a classifier needs, with
scikit-learn's own transformers: numbers are filled and standardised, categories one-hot encoded,
dates become days, months and weekdays. What it decided for a column is a :class:`ColumnPlan`, plain
values that can be shown, saved and restored. :func:`fair_pipeline` puts it before a
:class:`~evenhand.FairClassifier`.
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from evenhand.tables.groups import MISSING, group_values
from evenhand.tables.parse import (
    FEWEST_ROWS_OF_NAMES,
    MONTHS,
    WEEKDAYS,
    CellError,
    MissingWords,
    Reading,
    as_frame,
    check_width,
    check_words,
    date_parts,
    find_reading,
    identifier,
    is_identifier_name,
    known_values,
    listed,
    numbered,
    parse_kind,
    read_days,
    read_numbers,
    read_texts,
    repeated_identifier,
    siblings,
)
from evenhand.tables.telling import Told, draw_rows, look_like_codes, targets, telling

__all__ = ["ColumnPlan", "TableEncoder"]


OTHER = "(other)"

LARGEST = 1e100

# An input whose AUC is so large gives the label away, or a sensitive column.
LEAK, STAND_IN = 0.995, 0.95

# So many inputs are looked at for that, and so many named.
MOST_LOOKED_AT, MOST_STAND_INS = 5_000, 5


@dataclass(frozen=True)
class ColumnPlan:
    """What becomes of a column.

    Parameters
    ----------
    column : str
        Its name.
    kind : {"number", "category", "date", "dropped"}
        How it is read.
    action : str
        What was decided, in words.
    names : tuple of str
        Names of the inputs made of it.
    fill, mean, scale : float
        Of a number, and of the days of a date: what stands for missing values, and the mean and
        standard deviation it is brought to 0 and 1 with.
    indicator : bool
        Whether a further input says that the value was missing.
    tolerant : bool
        Whether values that are no numbers, or no dates, count as missing, because the table it was
        learned from had a few.
    categories : tuple of str
        Of a category, the values that have an input each. ``"(missing)"`` and ``"(other)"``, if
        there, stand for missing and for all other values; without the latter an unseen value has
        zeros everywhere.
    written : str
        How numbers or dates are written, if they are text: such as ``"decimal comma"``, ``"in $"``
        or ``"day first"``; empty for ``1,234.5`` and ``2024-12-31``.
    """

    column: str
    kind: str
    action: str
    names: tuple[str, ...] = ()
    fill: float = 0.0
    mean: float = 0.0
    scale: float = 1.0
    indicator: bool = False
    tolerant: bool = False
    categories: tuple[str, ...] = field(default=())
    written: str = ""


def as_names(names: str | Sequence[str]) -> list[str]:
    """Give names of columns as a list, also a single one."""
    return [names] if isinstance(names, str) else list(names)


def _levels(texts: NDArray[np.object_], categories: Sequence[str]) -> NDArray[np.object_]:
    """Each value's category: itself, or what stands for missing and for other values."""
    own = set(categories) - {MISSING, OTHER}
    named = {c: c for c in own}
    other = OTHER if OTHER in categories else None
    missing = MISSING if MISSING in categories else other
    return np.array([missing if t is None else named.get(t, other) for t in texts], dtype=object)


class TableEncoder(TransformerMixin, BaseEstimator):
    """Make inputs of a table's columns, and say what was done with each.

    - *Numbers*, also those written ``1,234``, ``1 234``, ``3,14``, ``$12`` or ``12%``: missing ones
      become the median, with an input that says so; then mean 0 and deviation 1.
    - *Categories* (text, booleans, categorical columns): an input for each value. Missing is a
      value. Values that fewer than ``min_count`` rows have, and all but the ``max_categories`` most
      frequent, share one input, which later also takes values never seen.
    - *Codes* with leading zeros, such as ``00501``, are categories, though they look like numbers.
    - *Dates*, also those written ``31.12.2020`` or ``12/31/2020``: days as a number, month and
      weekday as categories. Where every row could be either, the day is first.
    - *Siblings*, columns whose names differ by a number, such as ``diag_1`` and ``diag_2``: if one
      holds text codes, numbers that repeat in the others are categories as well.
    - *Dropped*: columns without a value, with one value, with the same values as an earlier one,
      of text no value of which ``min_count`` rows have, identifiers, and those that ``exclude``
      names. An identifier has another text in every row, or another whole number that looks like
      the number of a row; or it has the name of one, such as ``patient_nbr``, and a value has 10
      rows at most on average (:func:`evenhand.tables.parse.identifier`).

    Whole numbers that look like codes stay numbers, and the decision says how to make them
    categories. An input that tells the label, or a sensitive column, almost always is warned of: by
    its AUC on rows that it was not found on. 20,000 rows and 5,000 inputs at most are looked at.

    Parameters
    ----------
    exclude : str or sequence of str, default=()
        Columns that are no inputs.
    sensitive_features : str or sequence of str, default=()
        Columns that are no inputs because they are sensitive; nor are columns that tell one of them
        without fail, and are told by it: the same under another name.
    kinds : mapping of str to str, optional
        How to read columns: ``"category"``, ``"number"``, ``"date"``, or more exactly ``"number,
        decimal comma"``, ``"number, decimal point"``, ``"date, day first"``, ``"date, month
        first"``, ``"date, year first"``; text that is no number, or no date, then counts as
        missing. A column named here is no identifier. Found out by default.
    na : str or collection of str, optional
        Words that stand for a missing value, besides an empty cell; by default ``?``, ``-``,
        ``--``, ``NA``, ``N/A``, ``n/a``, ``#N/A``, ``<NA>``, ``NaN``, ``nan``, ``null``, ``NULL``
        and ``None``.
    keep_na : str or collection of str, default=()
        Columns in which such words are values.
    max_categories : int, default=50
        The most categories of a column with an input of their own.
    min_count : int, default=10
        The fewest rows of a category with an input of its own.
    sparse_threshold : float, default=0.25
        Inputs are a sparse matrix if no more than this share of them is nonzero.

    Attributes
    ----------
    plans_ : list of ColumnPlan
        What becomes of each column, in the table's order.
    transformer_ : ColumnTransformer
        The scikit-learn transformers that do it.
    readings_ : dict of str to Reading
        How each column is read.
    stand_ins_ : list of dict
        The inputs, five at most, that tell most of the sensitive columns, each with its AUC; of
        several groups that of the group it tells best. Empty after a fit with ``readings``.
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from evenhand.tables.encoder import TableEncoder
    >>> table = pd.DataFrame({"age": ["31", "1,040", None], "job": ["a", "b", "a"], "x": 1})
    >>> encoder = TableEncoder(min_count=1).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'job = a', 'job = b']
    >>> print(encoder.decisions().to_string(index=False))
    column     kind                                               action
       age   number numbers written as text, commas between thousands...
       job category                                             2 values
         x  dropped                          the same value in every row
    """

    def __init__(
        self,
        *,
        exclude: str | Sequence[str] = (),
        sensitive_features: str | Sequence[str] = (),
        kinds: Mapping[str, str] | None = None,
        na: str | Collection[str] | None = None,
        keep_na: str | Collection[str] = (),
        max_categories: int = 50,
        min_count: int = 10,
        sparse_threshold: float = 0.25,
    ) -> None:
        self.exclude = exclude
        self.sensitive_features = sensitive_features
        self.kinds = kinds
        self.na = na
        self.keep_na = keep_na
        self.max_categories = max_categories
        self.min_count = min_count
        self.sparse_threshold = sparse_threshold

    def fit(self, X: Any, y: Any = None) -> TableEncoder:
        """Look at every column and decide.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        y : array-like, optional
            The label; a column that tells it almost always is warned of.

        Returns
        -------
        TableEncoder
            Itself.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(
        self, X: Any, y: Any = None, *, readings: Mapping[str, Reading] | None = None, **params: Any
    ) -> Any:
        """Fit, and give the inputs made of the table.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        y : array-like, optional
            The label.
        readings : mapping of str to Reading, optional
            ``readings_`` of an encoder that saw more rows of the same table, to read it alike.
        **params
            Ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_inputs)
            The inputs.
        """
        frame = as_frame(X)
        if not len(frame):
            raise ValueError("the table has no rows.")
        check_width(frame)
        exclude, sensitive = as_names(self.exclude), as_names(self.sensitive_features)
        check_words(frame, sensitive, self.missing_words)
        for name in (*exclude, *sensitive, *(self.kinds or {})):
            if name not in frame.columns:
                raise ValueError(
                    f"the table has no column {name!r}; it has {listed(frame.columns)}."
                )
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        outside = self._outside(frame, exclude, sensitive)
        first = readings is None
        found = dict(readings or {})
        for name in frame.columns:
            if name not in outside and name not in found:
                found[name] = self._read(frame[name], name)
        if first:
            self._join_siblings(frame, found)
        plans: list[ColumnPlan] = []
        seen: dict[Any, str] = {}
        held: dict[str, NDArray[Any]] = {}
        rows = draw_rows(len(frame))
        for name in frame.columns:
            if name in outside:
                plans.append(outside[name])
                continue
            # Who says how a column is read wants it read.
            sure = not first or name in (self.kinds or {})
            plan, values = self._decide(frame[name], name, found[name], sure=sure)
            if plan.kind != "dropped":
                twin = seen.setdefault(_mark(values), name)
                if twin != name:
                    plan = ColumnPlan(name, "dropped", f"the same values as {twin!r}")
            if plan.kind == "dropped":
                found[name] = Reading("dropped", note=plan.action)
            elif first and len(held) < MOST_LOOKED_AT:
                held[name] = values[rows]
            plans.append(plan)
        if all(plan.kind == "dropped" for plan in plans):
            why = "; ".join(f"{p.column!r}: {p.action}" for p in plans[:5])
            raise ValueError(f"no column is left as an input ({why}).")
        self.stand_ins_: list[dict[str, Any]] = []
        if first:
            label = np.empty(0) if y is None else np.asarray(y, dtype=object)
            label = label[rows] if len(label) == len(frame) else label[:0]
            words = self.missing_words
            groups = {
                name: group_values(frame, [name], numbers=True, missing=words)[name].iloc[rows]
                for name in sensitive
            }
            self._look_for_stand_ins(found, held, targets(label), groups)
        remarks = {name: found[name].remark for name in found}
        plans = [
            replace(plan, action=f"{plan.action}; {remarks[plan.column]}")
            if plan.kind != "dropped" and remarks[plan.column]
            else plan
            for plan in plans
        ]
        self.n_features_in_ = len(frame.columns)
        self.plans_ = plans
        self.readings_ = {name: found[name] for name in frame.columns if name not in outside}
        clean = self.clean(frame)
        self.transformer_ = self._make_transformer()
        inputs = self.transformer_.fit_transform(clean)
        self._keep_state()
        return inputs

    def transform(self, X: Any) -> Any:
        """Give the inputs made of a table with the same columns.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table; columns may be in any order, and others may be there.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_inputs)
            The inputs.
        """
        check_is_fitted(self)
        frame = as_frame(X)
        here = set(frame.columns)
        missing = [p.column for p in self.plans_ if p.kind != "dropped" and p.column not in here]
        if missing:
            raise ValueError(
                f"the table has no column {missing[0]!r}, which the model was trained with; it has "
                f"{listed(frame.columns)}."
            )
        return self.transformer_.transform(self.clean(frame))

    def get_feature_names_out(self, input_features: Any = None) -> NDArray[np.object_]:
        """Names of the inputs.

        Parameters
        ----------
        input_features : ignored
            For scikit-learn's sake.

        Returns
        -------
        ndarray of str
            Names such as ``"age"``, ``"age is missing"`` and ``"job = clerk"``.
        """
        check_is_fitted(self)
        return np.array(self.transformer_.get_feature_names_out(), dtype=object)

    def decisions(self) -> pd.DataFrame:
        """Give a table of what was decided: a row for each column, in words."""
        check_is_fitted(self)
        return pd.DataFrame(
            [{"column": p.column, "kind": p.kind, "action": p.action} for p in self.plans_]
        )

    @classmethod
    def from_plans(
        cls, plans: Sequence[ColumnPlan], *, sparse: bool, **params: Any
    ) -> TableEncoder:
        """Make a fitted encoder of its plans, as a saved model does.

        Parameters
        ----------
        plans : sequence of ColumnPlan
            ``plans_`` of a fitted encoder.
        sparse : bool
            Whether its inputs were a sparse matrix.
        **params
            The encoder's parameters.

        Returns
        -------
        TableEncoder
            It transforms as the fitted one did, bit for bit.
        """
        encoder = cls(**params)
        encoder.plans_ = list(plans)
        encoder.n_features_in_ = len(plans)
        encoder.feature_names_in_ = np.array([p.column for p in plans], dtype=object)
        encoder.transformer_ = encoder._make_transformer()
        encoder.transformer_.fit(encoder._template())
        encoder.transformer_.sparse_output_ = sparse
        for name, transformer, columns in encoder.transformer_.transformers_:
            if name == "numbers":
                by_column = {plan.column: plan for plan in plans}
                known = [by_column[column] for column in columns]
                imputer, scaler = transformer.steps[0][1], transformer.steps[1][1]
                imputer.statistics_ = np.array([p.fill for p in known])
                scaler.mean_ = np.array([p.mean for p in known])
                scaler.scale_ = np.array([p.scale for p in known])
                scaler.var_ = scaler.scale_**2
        return encoder

    @property
    def missing_words(self) -> MissingWords:
        """Words that stand for no value."""
        return MissingWords.chosen(self.na, self.keep_na)

    # ---- inside --------------------------------------------------------------------------

    def _texts(self, series: Any) -> NDArray[np.object_]:
        return read_texts(series, self.missing_words)

    def derived_name(self, column: str, what: str) -> str:
        """Name an input made of a column, by a name that no column has."""
        name = f"{column}{what}"
        taken = set(self.feature_names_in_.tolist())
        while name in taken:
            name += "'"
        return name

    def _decide(
        self, series: Any, name: str, reading: Reading, *, sure: bool
    ) -> tuple[ColumnPlan, NDArray[Any]]:
        """Plan a column, and give its values: numbers, or codes of a category."""
        if reading.kind == "dropped":
            return ColumnPlan(name, "dropped", reading.note), np.empty(0)
        if reading.kind == "category":
            texts = self._texts(series)
            return self._decide_category(texts, name, reading, sure=sure), _codes(texts)
        read = read_numbers if reading.kind == "number" else read_days
        values = read(
            series,
            name,
            written=reading.written,
            tolerant=reading.tolerant,
            missing=self.missing_words,
        )
        return self._decide_number(values, name, reading, sure=sure), values

    def _read(self, series: Any, name: str) -> Reading:
        """Say how a column is read, as its type, ``kinds`` or its values have it."""
        if series.dtype.is_nested():
            raise ValueError(
                f"column {name!r} holds lists or records; give one value per cell, or drop it."
            )
        kind, written = None, None
        if name in (self.kinds or {}):
            kind, written = parse_kind((self.kinds or {})[name], name)
        own = None
        if series.dtype.is_numeric():
            own = "number"
        elif series.dtype in (nw.Datetime, nw.Date):
            own = "date"
        elif series.dtype in (nw.Boolean, nw.Categorical, nw.Enum):
            own = "category"
        if own is None:
            return find_reading(self._texts(series), name, kind=kind, written=written)
        if kind not in (None, own, "category"):
            raise ValueError(
                f"column {name!r} holds {own.replace('ry', 'rie')}s, so it cannot be read as "
                f"{kind}s; leave it out of kinds, or make it text."
            )
        return Reading(kind or own)

    def _decide_number(
        self, values: NDArray[np.float64], name: str, reading: Reading, *, sure: bool
    ) -> ColumnPlan:
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise ValueError(
                f"column {name!r} has {infinite} infinite value{'s' * (infinite > 1)}; correct "
                "them or leave them empty."
            )
        here = values[~np.isnan(values)]
        if len(here) and np.abs(here).max() > LARGEST:
            raise ValueError(
                f"column {name!r} has values up to {np.abs(here).max():.3g}, too large to work "
                "with; correct them or give them in another unit."
            )
        if not len(here):
            return ColumnPlan(name, "dropped", "no value in any row")
        n_missing = len(values) - len(here)
        if here.min() == here.max() and not n_missing:
            return ColumnPlan(name, "dropped", "the same value in every row")
        why = identifier(values, name) if reading.kind == "number" and not sure else ""
        if why:
            return ColumnPlan(name, "dropped", f"{why}; kinds={{{name!r}: 'number'}} keeps it")
        words = [reading.note] if reading.note else []
        if n_missing:
            fill = f"{np.median(here):.4g}"
            words.append(
                f"{n_missing:,} missing value{'s' * (n_missing > 1)} set to the median, {fill}"
            )
        names: tuple[str, ...] = (name,)
        names += (self.derived_name(name, " is missing"),) if n_missing else ()
        if reading.kind == "date":
            words.append("as days, month and weekday")
            names += tuple(_input_name(self.derived_name(name, ": month"), m) for m in MONTHS)
            names += tuple(_input_name(self.derived_name(name, ": weekday"), d) for d in WEEKDAYS)
        return ColumnPlan(
            name,
            reading.kind,
            "; ".join(words) or "as it is",
            names,
            indicator=bool(n_missing),
            tolerant=reading.tolerant,
            written=reading.written,
        )

    def _decide_category(
        self, texts: NDArray[np.object_], name: str, reading: Reading, *, sure: bool
    ) -> ColumnPlan:
        counts = pd.Series(texts).value_counts()  # the most frequent first, without missing ones
        n_missing = int(sum(t is None for t in texts))
        if not len(counts):
            return ColumnPlan(name, "dropped", "no value in any row")
        if len(counts) == 1 and not n_missing:
            return ColumnPlan(name, "dropped", "the same value in every row")
        n_known, why = len(texts) - n_missing, ""
        if len(counts) == n_known and n_known >= FEWEST_ROWS_OF_NAMES:
            why = "another value in every row: an identifier"
        elif is_identifier_name(name):
            why = repeated_identifier(len(counts), n_known, "values")
        if why and not sure:
            return ColumnPlan(name, "dropped", f"{why}; kinds={{{name!r}: 'category'}} keeps it")
        order = sorted(counts.index, key=lambda value: (-counts[value], value))
        # Of two values one is enough, however rare the other is.
        least = self.min_count if len(order) > 2 else 1
        kept = [value for value in order[: self.max_categories] if counts[value] >= least]
        clash = {MISSING, OTHER} & set(kept)
        kept = [value for value in kept if value not in clash]
        rare = len(order) - len(kept)
        words = [reading.note] if reading.note else []
        if not kept and not n_missing:
            words.append(f"{len(order):,} values, none of them in {least} rows")
            return ColumnPlan(name, "dropped", f"{'; '.join(words)}: nothing to learn from")
        words.append(f"{len(order):,} value{'s' * (len(order) > 1)}")
        categories = sorted(kept)
        if rare:
            words.append(f"{rare:,} rare one{'s' * (rare > 1)} taken together")
            categories.append(OTHER)
        if n_missing:
            words.append(f"{n_missing:,} missing, a value of their own")
            categories.append(MISSING)
        names = tuple(_input_name(name, value) for value in categories)
        return ColumnPlan(name, "category", "; ".join(words), names, categories=tuple(categories))

    def _outside(
        self, frame: Any, exclude: Sequence[str], sensitive: Sequence[str]
    ) -> dict[str, ColumnPlan]:
        """Plan the columns that are no inputs, whatever they hold."""
        plans = {name: ColumnPlan(name, "dropped", "not an input, as asked") for name in exclude}
        for name in sensitive:
            plans[name] = ColumnPlan(name, "dropped", "sensitive, so not an input")
        secret = {_mark(_codes(self._texts(frame[name]))): name for name in sensitive}
        for name in frame.columns if secret else ():
            if name in plans:
                continue
            twin = secret.get(_mark(_codes(self._texts(frame[name]))))
            if twin is not None:
                action = f"the same as {twin!r}, which is sensitive, so not an input"
                plans[name] = ColumnPlan(name, "dropped", action)
        return plans

    def _join_siblings(self, frame: Any, readings: dict[str, Reading]) -> None:
        """Read numbers as categories where a column with nearly the same name holds text codes."""
        free = [name for name in readings if name not in (self.kinds or {})]
        for family in siblings(free):
            coded = next((name for name in family if self._text_codes(frame, readings, name)), None)
            for name in family if coded is not None else ():
                if readings[name].kind != "number":
                    continue
                texts = self._texts(frame[name])
                if 2 * len(known_values(texts)) > len(texts):
                    continue  # a quantity, or nothing to learn from
                readings[name] = Reading(
                    note=f"codes as in {coded!r} (kinds={{{name!r}: 'number'}} reads numbers)"
                )

    def _text_codes(self, frame: Any, readings: Mapping[str, Reading], name: str) -> bool:
        """Say whether a column is a category of text most of which has digits."""
        dtype = frame[name].dtype
        if readings[name].kind != "category" or dtype not in (nw.String, nw.Object):
            return False
        texts = [text for text in self._texts(frame[name]) if text is not None]
        return 2 * sum(any(c.isdigit() for c in text) for text in texts) > len(texts)

    def _look_for_stand_ins(
        self,
        readings: dict[str, Reading],
        held: Mapping[str, NDArray[Any]],
        label: Sequence[Told],
        groups: Mapping[str, pd.Series],
    ) -> None:
        """Find inputs that tell the label or a sensitive column, and numbers that may be codes.

        ``held`` has the inputs' values, ``label`` and ``groups`` what they may tell, of the same
        rows.
        """
        secret = {}
        for name, values in groups.items():
            number = pd.api.types.is_numeric_dtype(values)
            secret[name] = targets(values.to_numpy(dtype=np.float64 if number else object))
        best: dict[str, float] = {}
        for name, values in held.items():
            remarks = []
            number = readings[name].kind == "number" and name not in (self.kinds or {})
            if number and (look_like_codes(values, label) or _named_codes(values, name)):
                remarks.append(
                    "whole numbers that look like codes; if they are: "
                    f"kinds={{{name!r}: 'category'}}"
                )
            told = telling(values, label)
            if told is not None and told[0] >= LEAK:
                which = "" if told[1].value is None else f" {told[1].value!r}"
                remarks.append(_tells(f"the label{which}", told[0]))
                advice = f"if it is known only after the outcome, leave it out: exclude={[name]!r}"
                _warn(f"column {name!r} {remarks[-1]}; {advice}.")
            for column, values_of in secret.items():
                told = telling(values, values_of)
                if told is None:
                    continue
                best[name] = max(best.get(name, 0.0), told[0])
                if told[0] >= STAND_IN:
                    which = "" if told[1].value is None else f"{told[1].value!r} of "
                    remarks.append(_tells(f"{which}{column!r}, which is sensitive,", told[0]))
                    advice = f"leave it out, exclude={[name]!r}, unless that is meant"
                    _warn(f"column {name!r} {remarks[-1]}; {advice}.")
            readings[name] = replace(readings[name], remark="; ".join(remarks))
        most = sorted(best, key=lambda name: (-best[name], name))[:MOST_STAND_INS]
        self.stand_ins_ = [{"column": name, "auc": round(best[name], 4)} for name in most]

    def clean(self, frame: Any) -> pd.DataFrame:
        """Give the columns in their plans' kinds: numbers, and categories that are known."""
        columns: dict[str, Any] = {}
        missing = self.missing_words
        for plan in self.plans_:
            if plan.kind == "dropped":
                continue
            series = frame[plan.column]
            if plan.kind == "category":
                columns[plan.column] = _levels(read_texts(series, missing), plan.categories)
                continue
            read = read_days if plan.kind == "date" else read_numbers
            values = read(
                series,
                plan.column,
                written=plan.written,
                tolerant=plan.tolerant,
                missing=missing,
            )
            infinite = np.flatnonzero(np.isinf(values))
            if len(infinite):
                raise CellError(
                    f"column {plan.column!r} has infinite values, the first",
                    int(infinite[0]),
                    "; correct them.",
                )
            large = np.flatnonzero(np.abs(values) > LARGEST)
            if len(large):
                raise CellError(
                    f"column {plan.column!r} has the value {values[large[0]]:.3g}, too large to "
                    "work with,",
                    int(large[0]),
                    "; correct it or leave it empty.",
                )
            columns[plan.column] = values
            if plan.indicator:
                columns[self.derived_name(plan.column, " is missing")] = np.isnan(values).astype(
                    np.float64
                )
            if plan.kind == "date":
                month, weekday = date_parts(values)
                columns[self.derived_name(plan.column, ": month")] = month
                columns[self.derived_name(plan.column, ": weekday")] = weekday
        return pd.DataFrame(columns)

    def _template(self) -> pd.DataFrame:
        """Two rows that the transformers may be fitted to before they get their state."""
        columns: dict[str, Any] = {}
        for plan in self.plans_:
            if plan.kind == "category":
                columns[plan.column] = np.array([plan.categories[0]] * 2, dtype=object)
            elif plan.kind != "dropped":
                columns[plan.column] = np.array([0.0, 1.0])
                if plan.indicator:
                    columns[self.derived_name(plan.column, " is missing")] = np.array([0.0, 1.0])
                if plan.kind == "date":
                    columns[self.derived_name(plan.column, ": month")] = np.array(
                        [MONTHS[0]] * 2, dtype=object
                    )
                    columns[self.derived_name(plan.column, ": weekday")] = np.array(
                        [WEEKDAYS[0]] * 2, dtype=object
                    )
        return pd.DataFrame(columns)

    def _make_transformer(self) -> Any:
        """Build scikit-learn's transformers for the plans, not fitted."""
        from sklearn.compose import ColumnTransformer
        from sklearn.impute import SimpleImputer
        from sklearn.preprocessing import OneHotEncoder, StandardScaler

        used = [p for p in self.plans_ if p.kind != "dropped"]
        numbers = [p.column for p in used if p.kind in ("number", "date")]
        indicators = [self.derived_name(p.column, " is missing") for p in used if p.indicator]
        text = [(p.column, list(p.categories)) for p in used if p.kind == "category"]
        for p in used:
            if p.kind == "date":
                text += [(self.derived_name(p.column, ": month"), list(MONTHS))]
                text += [(self.derived_name(p.column, ": weekday"), list(WEEKDAYS))]
        scale = Pipeline([("fill", SimpleImputer(strategy="median")), ("scale", StandardScaler())])
        one_hot = OneHotEncoder(
            categories=[values for _, values in text],
            handle_unknown="ignore",
            feature_name_combiner=_input_name,
        )
        parts = [
            ("numbers", scale, numbers),
            ("missing", "passthrough", indicators),
            ("categories", one_hot, [column for column, _ in text]),
        ]
        return ColumnTransformer(
            [part for part in parts if part[2]],
            sparse_threshold=self.sparse_threshold,
            verbose_feature_names_out=False,
        )

    def _keep_state(self) -> None:
        """Write what the transformers learned into the plans."""
        for name, transformer, columns in self.transformer_.transformers_:
            if name != "numbers":
                continue
            fill = transformer.steps[0][1].statistics_
            scaler = transformer.steps[1][1]
            known = zip(columns, fill, scaler.mean_, scaler.scale_, strict=True)
            learned = {column: (float(f), float(m), float(s)) for column, f, m, s in known}
            for i, plan in enumerate(self.plans_):
                if plan.column in learned:
                    f, m, s = learned[plan.column]
                    self.plans_[i] = replace(plan, fill=f, mean=m, scale=s)


def _input_name(column: str, value: str) -> str:
    return f"{column} = {value}"


def _codes(texts: NDArray[np.object_]) -> NDArray[np.intp]:
    """Give each value a number, in the order in which they come, -1 where missing."""
    return numbered(texts)[0]


def _mark(values: NDArray[Any]) -> Any:
    """Give a mark that columns of the same values share."""
    return (values.dtype.kind, values.tobytes())


def _tells(what: str, auc: float) -> str:
    if auc == 1:
        return f"tells {what} without fail"
    # No more than is so: 0.9996 is not 1.
    return f"tells {what} almost always (AUC {int(1000 * auc) / 1000:.3f} on rows not learned from)"


def _warn(message: str) -> None:
    warnings.warn(message, UserWarning, stacklevel=6)


def _named_codes(values: NDArray[np.float64], column: str) -> bool:
    """Say whether whole numbers that repeat have the name of an identifier, such as store_id."""
    known = values[~np.isnan(values)]
    return is_identifier_name(column) and bool((known % 1 == 0).all()) and len(np.unique(known)) > 2
