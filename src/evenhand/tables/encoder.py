"""Tables as they come: every column looked at, every decision written down.

:class:`TableEncoder` turns a pandas or polars frame into the numbers a classifier needs: numbers
are filled and standardised, categories one-hot encoded, dates become days, months and weekdays.
What it decided for a column is a :class:`ColumnPlan`. :func:`fair_pipeline` puts it before a
:class:`~evenhand.FairClassifier`.
"""

import hashlib
import warnings
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.preprocessing import StandardScaler
from sklearn.utils.validation import check_is_fitted

from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.tables.columns import (
    Column,
    MissingWords,
    Table,
    as_table,
    check_width,
    check_words,
    listed,
    no_column,
)
from evenhand.tables.dates import MONTHS, WEEKDAYS, date_parts, level_days, read_days
from evenhand.tables.formats import ColumnFormat, find_format, most_frequent, parse_kind
from evenhand.tables.groups import group_values
from evenhand.tables.identifiers import siblings
from evenhand.tables.inputs import Categories, InputColumns
from evenhand.tables.leaks import draw_rows, events_of, find_stand_ins
from evenhand.tables.numbers import read_numbers
from evenhand.tables.plans import (
    ColumnPlan,
    category_places,
    check_scores,
    check_sizes,
    drop,
    lost_zeros,
    plan_category,
    plan_number,
    plan_score,
)

# This many inputs are looked at for whether they tell the label or a sensitive column.
MOST_LOOKED_AT = 5_000


def as_names(names: str | Sequence[str]) -> list[str]:
    """Give names of columns as a list, also a single one."""
    return [names] if isinstance(names, str) else list(names)


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
      of text whose every value is in fewer than ``min_count`` rows, identifiers, and those that
      ``exclude`` names. An identifier has another text in every row, or another whole number that
      looks like the number of a row; or it has the name of one, such as ``patient_nbr``, and a
      value has 10 rows at most on average (:func:`evenhand.tables.identifiers.identifier`).

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
        missing. A column named here is no identifier. Found out by default. ``"score"`` is a number
        in every row, taken as it stands, and the first input: :class:`~evenhand.FairAdjusted`'s.
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
    formats_ : dict of str to ColumnFormat
        How each column is read.
    sparse_ : bool
        Whether the inputs are a sparse matrix.
    stand_ins_ : list of dict
        The inputs, five at most, that tell most of the sensitive columns, each with its AUC; of
        several groups the AUC of the group it tells best. Empty after a fit with ``formats``.
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

    def fit(self, X: Any, y: Any = None) -> "TableEncoder":
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
        self._fit(as_table(X), y, None)
        return self

    def fit_transform(
        self,
        X: Any,
        y: Any = None,
        *,
        formats: Mapping[str, ColumnFormat] | None = None,
        **params: Any,
    ) -> Any:
        """Fit, and give the inputs made of the table.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        y : array-like, optional
            The label.
        formats : mapping of str to ColumnFormat, optional
            ``formats_`` of an encoder that saw more rows of the same table, to read it alike.
        **params
            Ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_inputs)
            The inputs.
        """
        columns = self._fit(as_table(X), y, formats)
        return columns.sparse() if self.sparse_ else columns.dense()

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
        table = as_table(X)
        present = set(table.columns)
        for plan in self._used():
            if plan.column not in present:
                raise InputError(
                    "missing_input_column", column=plan.column, columns=listed(table.columns)
                )
        columns = self._input_columns(table)
        return columns.sparse() if self.sparse_ else columns.dense()

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
        numbers = [p for p in self._used() if p.kind != "category"]
        names = [p.names[0] for p in numbers]
        names += [p.names[1] for p in numbers if p.indicator]
        names += [name for p in self._used() if p.kind == "category" for name in p.names]
        names += [name for p in numbers for part in p.date_names() for name in part]
        return np.array(names, dtype=object)

    def decisions(self) -> pd.DataFrame:
        """Give a table of what was decided: a row for each column, in words."""
        check_is_fitted(self)
        return pd.DataFrame(
            [{"column": p.column, "kind": p.kind, "action": p.action} for p in self.plans_]
        )

    @classmethod
    def from_plans(
        cls, plans: Sequence[ColumnPlan], *, sparse: bool, **params: Any
    ) -> "TableEncoder":
        """Make an encoder of the plans of a fitted one, as a saved model does.

        Given the parameters of that, and whether its inputs were ``sparse``, it transforms as that
        did, bit for bit.
        """
        encoder = cls(**params)
        encoder.plans_, encoder.sparse_ = list(plans), sparse
        encoder.n_features_in_ = len(plans)
        encoder.feature_names_in_ = np.array([p.column for p in plans], dtype=object)
        return encoder

    @property
    def missing_words(self) -> MissingWords:
        """Words that stand for no value."""
        return MissingWords.chosen(self.na, self.keep_na)

    def derived_name(self, column: str, what: str) -> str:
        """Name an input made of a column, by a name that no column has."""
        name = f"{column}{what}"
        taken = set(self.feature_names_in_.tolist())
        while name in taken:
            name += "'"
        return name

    def clean(self, X: Any) -> dict[str, NDArray[Any]]:
        """Give the columns as they are planned: numbers, NaN where missing, and category names.

        Of dates also the months and the weekdays; None where a value is unknown.
        """
        table = as_table(X)
        values: dict[str, NDArray[Any]] = {}
        for plan in self._used():
            if plan.kind != "category":
                values[plan.column] = self._numbers(table, plan)
            for name, (places, names) in self._categories(table, plan).items():
                values[name] = np.array([*names, None], dtype=object)[places]
        return values

    def _used(self) -> list[ColumnPlan]:
        return [plan for plan in self.plans_ if plan.kind != "dropped"]

    def _fit(
        self, table: Table, y: Any, formats: Mapping[str, ColumnFormat] | None
    ) -> InputColumns:
        """Decide on every column, and give what the inputs are made of."""
        if not len(table):
            raise InputError("no_rows")
        check_width(table)
        exclude, sensitive = as_names(self.exclude), as_names(self.sensitive_features)
        check_words(table, sensitive, self.missing_words)
        present = set(table.columns)
        for name in (*exclude, *sensitive, *(self.kinds or {})):
            if name not in present:
                raise no_column(name, table.columns)
        self.feature_names_in_ = np.array(table.columns, dtype=object)
        self.n_features_in_ = len(table.columns)
        self.stand_ins_: list[dict[str, Any]] = []
        outside = self._outside(table, exclude, sensitive)
        first = formats is None
        by_column = dict(formats or {})
        for name in table.columns:
            if name not in outside and name not in by_column:
                by_column[name] = self._format(table[name])
        if first:
            self._join_siblings(table, by_column)
        plans = self._decide(table, outside, by_column, first=first)
        if all(plan.kind == "dropped" for plan in plans):
            raise InputError(
                "no_inputs", why="; ".join(f"{p.column!r}: {p.action}" for p in plans[:5])
            )
        if first:
            self._look_for_stand_ins(table, plans, by_column, y)
        self.plans_ = [
            replace(plan, action=f"{plan.action}; {by_column[plan.column].remark}")
            if plan.kind != "dropped" and by_column[plan.column].remark
            else plan
            for plan in plans
        ]
        self.formats_ = {name: by_column[name] for name in table.columns if name not in outside}
        columns = self._input_columns(table, learn=True)
        self.sparse_ = bool(columns.categories) and columns.share_filled() < self.sparse_threshold
        return columns

    def _outside(
        self, table: Table, exclude: Sequence[str], sensitive: Sequence[str]
    ) -> dict[str, ColumnPlan]:
        """Plan the columns that are no inputs, whatever they hold."""
        plans = {name: drop(name, "not an input, as asked") for name in exclude}
        for name in sensitive:
            plans[name] = drop(name, "sensitive, so not an input")
        secret = {name: table[name].as_text(self.missing_words).codes for name in sensitive}
        for name in table.columns if secret else ():
            if name in plans:
                continue
            codes = table[name].as_text(self.missing_words).codes
            twin = next((other for other, theirs in secret.items() if _alike(codes, theirs)), None)
            if twin is not None:
                action = f"the same as {twin!r}, which is sensitive, so not an input"
                plans[name] = drop(name, action)
        return plans

    def _format(self, column: Column) -> ColumnFormat:
        """Say how a column is read, as its type, ``kinds`` or its values have it."""
        name, dtype = column.name, column.dtype
        kind, written = None, None
        if name in (self.kinds or {}):
            kind, written = parse_kind((self.kinds or {})[name], name)
        own = None
        if dtype.is_numeric():
            own = "number"
        elif dtype in (nw.Datetime, nw.Date):
            own = "date"
        elif dtype in (nw.Boolean, nw.Categorical, nw.Enum):
            own = "category"
        if own is None:
            return find_format(column.as_text(self.missing_words), kind=kind, written=written)
        if kind == "score":
            if own != "number":
                texts, scores = column.as_text(self.missing_words), Parameter("scores")
                values = most_frequent(texts, texts.counts())
                raise InputError("text_as_scores", column=name, values=values, scores=scores)
            return ColumnFormat("score")
        if kind not in (None, own, "category"):
            holds = {"number": "numbers", "date": "dates", "category": "categories"}[own]
            about = {"type": holds, "kind": kind, "kinds": Parameter("kinds")}
            raise InputError("kind_of_other_type", column=name, **about)
        return ColumnFormat(kind or own)

    def _join_siblings(self, table: Table, formats: dict[str, ColumnFormat]) -> None:
        """Read numbers as categories where a column with nearly the same name holds text codes."""
        free = [name for name in formats if name not in (self.kinds or {})]
        for family in siblings(free):
            coded = next((n for n in family if self._text_codes(table[n], formats[n])), None)
            for name in family if coded is not None else ():
                if formats[name].kind != "number":
                    continue
                if 2 * len(table[name].as_text(self.missing_words).levels) > len(table):
                    continue  # a quantity, or nothing to learn from
                advice = Parameter("kinds", {name: "number"})
                formats[name] = ColumnFormat(note=f"codes as in {coded!r} ({advice} reads numbers)")

    def _text_codes(self, column: Column, format_: ColumnFormat) -> bool:
        """Say whether a column is a category of text, and most of its texts have digits."""
        if format_.kind != "category" or column.dtype not in (nw.String, nw.Object):
            return False
        texts = column.as_text(self.missing_words)
        with_digits = np.array([any(c.isdigit() for c in t) for t in texts.levels], dtype=bool)
        counts = texts.counts()
        return bool(2 * counts[with_digits].sum() > counts.sum())

    def _decide(
        self,
        table: Table,
        outside: Mapping[str, ColumnPlan],
        formats: dict[str, ColumnFormat],
        *,
        first: bool,
    ) -> list[ColumnPlan]:
        """Plan every column; formats of those that are dropped say so."""
        plans: list[ColumnPlan] = []
        seen: dict[Any, str] = {}
        # Scores are the first inputs, where an adjusted classifier looks for them.
        scores = [name for name in formats if formats[name].kind == "score"]
        for name in [*scores, *(name for name in table.columns if name not in scores)]:
            if name in outside:
                plans.append(outside[name])
                continue
            # Who says how a column is read wants it read.
            sure = not first or name in (self.kinds or {})
            plan, values = self._plan(table[name], formats[name], sure=sure)
            if plan.kind != "dropped":
                twin = seen.setdefault(_digest(values), name)
                if twin != name:
                    plan = drop(name, f"the same values as {twin!r}")
            if plan.kind == "dropped":
                formats[name] = ColumnFormat("dropped", note=plan.action)
            plans.append(plan)
        return plans

    def _plan(
        self, column: Column, format_: ColumnFormat, *, sure: bool
    ) -> tuple[ColumnPlan, NDArray[Any]]:
        """Plan a column, and give its values: numbers, or codes of a category."""
        if format_.kind == "dropped":
            return drop(column.name, format_.note), np.empty(0)
        values = self._values(column, format_)
        if format_.kind == "category":
            texts = column.as_text(self.missing_words)
            limits = {"min_count": self.min_count, "max_categories": self.max_categories}
            return plan_category(texts, format_, **limits, sure=sure), values
        if format_.kind == "score":
            check_scores(values, column)
            return plan_score(values, column.name, format_), values
        return plan_number(values, column.name, format_, self.derived_name, sure=sure), values

    def _values(self, column: Column, format_: ColumnFormat | ColumnPlan) -> NDArray[Any]:
        """Give the numbers of a column, NaN where missing, or the codes of a category."""
        if format_.kind == "category":
            return column.as_text(self.missing_words).codes
        read = read_days if format_.kind == "date" else read_numbers
        return read(
            column, written=format_.written, tolerant=format_.tolerant, missing=self.missing_words
        )

    def _look_for_stand_ins(
        self, table: Table, plans: Sequence[ColumnPlan], formats: dict[str, ColumnFormat], y: Any
    ) -> None:
        """Write into the formats which inputs tell the label or a sensitive column, and warn."""
        rows = draw_rows(len(table))
        label = np.empty(0) if y is None else np.asarray(y, dtype=object)
        label = label[rows] if len(label) == len(table) else label[:0]
        groups = {}
        for name in as_names(self.sensitive_features):
            words = self.missing_words
            values = group_values(table, [name], numbers=True, missing=words)[name].iloc[rows]
            number = pd.api.types.is_numeric_dtype(values)
            groups[name] = events_of(values.to_numpy(dtype=np.float64 if number else object))
        used = [plan.column for plan in plans if plan.kind != "dropped"][:MOST_LOOKED_AT]
        inputs = ((name, self._values(table[name], formats[name])[rows]) for name in used)
        free = {name for name in used if formats[name].kind == "number"} - set(self.kinds or ())
        remarks, self.stand_ins_ = find_stand_ins(inputs, events_of(label), groups, free)
        for name, remark in remarks.items():
            formats[name] = replace(formats[name], remark=remark)

    def _numbers(self, table: Table, plan: ColumnPlan) -> NDArray[np.float64]:
        values = self._values(table[plan.column], plan)
        check_sizes(values, plan.column)
        if plan.kind == "score":
            check_scores(values, table[plan.column])
        return values

    def _categories(self, table: Table, plan: ColumnPlan) -> dict[str, Categories]:
        """Give the categories made of a column: its own, or the months and weekdays of a date."""
        column = table[plan.column]
        if plan.kind == "category":
            texts = column.as_text(self.missing_words)
            places, lost = category_places(texts, plan), lost_zeros(texts, plan)
            if lost is not None:
                about = {"value": lost[0], "category": lost[1]}
                warnings.warn(InputWarning("lost_zeros", column=plan.column, **about), stacklevel=2)
            return {plan.column: Categories(places, plan.categories)}
        if plan.kind != "date":
            return {}
        column, days = level_days(
            column, written=plan.written, tolerant=plan.tolerant, missing=self.missing_words
        )
        month, weekday = (column.spread(part, -1) for part in date_parts(days))
        return {
            self.derived_name(plan.column, ": month"): Categories(month, MONTHS),
            self.derived_name(plan.column, ": weekday"): Categories(weekday, WEEKDAYS),
        }

    def _input_columns(self, table: Table, *, learn: bool = False) -> InputColumns:
        """Give what inputs are made of; ``learn`` writes fill, mean and scale into the plans."""
        numbers, flags = [], []
        own: list[Categories] = []
        of_dates: list[Categories] = []
        for i, plan in enumerate(self.plans_):
            if plan.kind == "dropped":
                continue
            (own if plan.kind == "category" else of_dates).extend(
                self._categories(table, plan).values()
            )
            if plan.kind == "category":
                continue
            values = self._numbers(table, plan)
            missing = np.isnan(values)
            if learn and plan.kind != "score":
                plan = self.plans_[i] = _with_scale(plan, values, missing)
            values[missing] = plan.fill
            values -= plan.mean
            values /= plan.scale
            numbers.append(values)
            if plan.indicator:
                flags.append(missing.astype(np.float64))
        return InputColumns([*numbers, *flags], [*own, *of_dates], len(table))


def _with_scale(
    plan: ColumnPlan, values: NDArray[np.float64], missing: NDArray[np.bool_]
) -> ColumnPlan:
    """Learn what stands for missing values, and the mean and the deviation of all."""
    fill = float(np.median(values[~missing]))
    scaler = StandardScaler().fit(np.where(missing, fill, values)[:, None])
    return replace(plan, fill=fill, mean=float(scaler.mean_[0]), scale=float(scaler.scale_[0]))


def _alike(codes: NDArray[np.int32], others: NDArray[np.int32]) -> bool:
    """Say whether two columns have their values in the same rows, by whatever name."""
    return codes[0] == others[0] and codes[-1] == others[-1] and np.array_equal(codes, others)


def _digest(values: NDArray[Any]) -> Any:
    """Give a mark that columns of the same values share."""
    return values.dtype.kind, hashlib.blake2b(values.data).digest()
