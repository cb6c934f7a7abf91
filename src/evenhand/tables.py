"""Tables as they come: every column looked at, every decision written down.

:class:`TableEncoder` turns a pandas or polars frame into the numbers a classifier needs, with
scikit-learn's own transformers: numbers are filled and standardised, categories one-hot encoded,
dates become days, months and weekdays. What it decided for a column is a :class:`ColumnPlan`, plain
values that can be shown, saved and restored. :func:`fair_pipeline` puts it before a
:class:`~evenhand.FairClassifier`.
"""

from __future__ import annotations

import re
import warnings
from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from evenhand.classifier import FairClassifier
from evenhand.notebook import ShowsSummary

__all__ = [
    "ColumnPlan",
    "FairPipeline",
    "TableEncoder",
    "fair_pipeline",
    "group_values",
    "take_table_rows",
]

# What stands for a value that is not there, besides what the frame itself says is missing.
NO_VALUE = frozenset({"", "?", "NA", "N/A", "NaN", "nan", "null", "NULL", "None"})
MISSING, OTHER = "(missing)", "(other)"
# A number written as people write it: 1,234.5 or 12 %.
NUMBER = re.compile(r"[+-]?((\d{1,3}(,\d{3})+|\d+)?(\.\d*)?([eE][+-]?\d+)?\s*%?|inf|Inf)")
ISO_DATE = re.compile(r"\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}.*)?")
# A column of text is read as numbers, or as dates, if so many of its values are, and it has so many
# rows at least; the other values then count as missing.
MOSTLY, FEWEST_MOSTLY = 0.98, 50
ODD_NUMBERS = "numbers written as text"
LARGEST = 1e100
# A column in which every row is different tells rows apart, and nothing else.
FEWEST_ROWS_OF_AN_IDENTIFIER = 20


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


# ---- reading columns -------------------------------------------------------------------------


def _frame(X: Any) -> Any:
    """See a pandas, polars or pyarrow table as a narwhals frame with a name for every column."""
    if isinstance(X, np.ndarray):
        X = pd.DataFrame(X, columns=[f"x{j}" for j in range(X.shape[1])] if X.ndim == 2 else None)
    if isinstance(X, pd.DataFrame) and not all(isinstance(name, str) for name in X.columns):
        X = X.rename(columns=str)
    names = pd.Index(getattr(X, "column_names", getattr(X, "columns", [])))
    if names.has_duplicates:
        twice = names[names.duplicated()][0]
        raise ValueError(f"the table has two columns called {twice!r}; rename one of them.")
    try:
        return nw.from_native(X, eager_only=True)
    except TypeError:
        raise ValueError(
            f"the table is a {type(X).__name__}; give a pandas or polars frame with named columns."
        ) from None


def _missing(value: Any) -> bool:
    return (
        value is None
        or value is pd.NA
        or value is pd.NaT
        or (isinstance(value, float) and value != value)
        or (isinstance(value, str) and value.strip() in NO_VALUE)
    )


def _texts(series: Any) -> NDArray[np.object_]:
    """Values as text, None where missing; 3.0 is written as 3."""
    values = pd.Series(series.to_list(), dtype=object)
    try:
        codes, levels = pd.factorize(values, use_na_sentinel=True)
    except TypeError:
        raise ValueError(
            f"column {series.name!r} holds lists or records; give one value per cell, or drop it."
        ) from None

    def text(value: Any) -> str | None:
        if _missing(value):
            return None
        if isinstance(value, float) and value.is_integer():
            return str(int(value))
        return str(value).strip()

    words = np.array([*(text(level) for level in levels), None], dtype=object)
    return words[codes]


def _known(texts: NDArray[np.object_]) -> list[str]:
    """Return the distinct values that are not missing, sorted."""
    return sorted({t for t in pd.unique(texts) if t is not None})


def _as_number(text: str) -> float:
    """Read a number as people write it."""
    plain = text.replace(",", "")
    return float(plain[:-1]) / 100 if plain.endswith("%") else float(plain)


def _is_number(text: str) -> bool:
    return bool(NUMBER.fullmatch(text)) and (any(c.isdigit() for c in text) or "nf" in text)


def _quoted(text: str) -> str:
    return repr(text if len(text) <= 40 else f"{text[:40]}…")


def _numbers(series: Any, column: str, *, tolerant: bool = False) -> NDArray[np.float64]:
    """Values as numbers, NaN where missing; if ``tolerant``, also where there is no number."""
    if series.dtype.is_numeric() or series.dtype == nw.Boolean:
        if series.dtype == nw.Boolean:
            return np.array([np.nan if _missing(v) else float(v) for v in series.to_list()])
        return np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)
    texts = _texts(series)
    codes, known = pd.factorize(pd.Series(texts, dtype=object), use_na_sentinel=True)
    values = np.full(len(known) + 1, np.nan)
    for i, text in enumerate(known):
        if _is_number(text):
            values[i] = _as_number(text)
        elif not tolerant:
            row = int(np.flatnonzero(texts == text)[0])
            raise ValueError(
                f"column {column!r} held numbers when the model was trained, and now "
                f"{_quoted(text)} in row {row + 1}; correct that value or leave it empty."
            )
    return values[codes]


def _days(series: Any, column: str, *, tolerant: bool = False) -> NDArray[np.float64]:
    """Dates as days since 1970, NaN where missing; if ``tolerant``, also where there is no date."""
    if series.dtype in (nw.Datetime, nw.Date):
        values = pd.Series(series.to_list(), dtype=object)
        try:
            stamps = pd.to_datetime(values, utc=True)
        except (ValueError, OverflowError):
            raise ValueError(
                f"column {column!r} has dates too far away to count days to; correct them."
            ) from None
    else:
        texts = pd.Series(_texts(series), dtype=object)
        stamps = pd.to_datetime(texts, format="ISO8601", errors="coerce", utc=True)
        bad = stamps.isna() & texts.notna()
        if bad.any() and not tolerant:
            row = int(np.flatnonzero(bad)[0])
            raise ValueError(
                f"column {column!r} held dates when the model was trained, and now "
                f"{_quoted(texts.iloc[row])} in row {row + 1}; write it as 2024-12-31 or leave it "
                "empty."
            )
    day = (stamps - pd.Timestamp(0, tz="UTC")) / pd.Timedelta(days=1)
    return day.to_numpy(dtype=np.float64, na_value=np.nan)


def _date_parts(days: NDArray[np.float64]) -> tuple[NDArray[np.object_], NDArray[np.object_]]:
    """Month and weekday of each day."""
    stamps = pd.to_datetime(pd.Series(np.floor(days)), unit="D")
    parts = []
    for part in (stamps.dt.month_name(), stamps.dt.day_name()):
        parts.append(np.array([None if _missing(v) else v for v in part], dtype=object))
    return parts[0], parts[1]


MONTHS = tuple(pd.to_datetime(f"2024-{m:02d}-01").month_name() for m in range(1, 13))
WEEKDAYS = tuple(pd.to_datetime(f"2024-01-0{d}").day_name() for d in range(1, 8))


def _levels(texts: NDArray[np.object_], categories: Sequence[str]) -> NDArray[np.object_]:
    """Each value's category: itself, or what stands for missing and for other values."""
    own = set(categories) - {MISSING, OTHER}
    named = {c: c for c in own}
    other = OTHER if OTHER in categories else None
    missing = MISSING if MISSING in categories else other
    return np.array([missing if t is None else named.get(t, other) for t in texts], dtype=object)


# ---- the encoder -----------------------------------------------------------------------------


class TableEncoder(TransformerMixin, BaseEstimator):
    """Make inputs of a table's columns, and say what was done with each.

    - *Numbers*, also those written ``1,234`` or ``12%``: missing ones become the median, with an
      input that says so; then mean 0 and deviation 1.
    - *Categories* (text, booleans, categorical columns): an input for each value. Missing is a
      value. Values that fewer than ``min_count`` rows have, and all but the ``max_categories`` most
      frequent, share one input, which later also takes values never seen.
    - *Dates*: days as a number, month and weekday as categories.
    - *Dropped*: columns without a value, with one value, with the same values as an earlier one,
      with another value in every row (identifiers), and those that ``exclude`` names.

    Parameters
    ----------
    exclude : str or sequence of str, default=()
        Columns that are no inputs.
    sensitive : str or sequence of str, default=()
        Columns that are no inputs because they are sensitive; nor are columns that tell one of them
        without fail, and are told by it: the same under another name.
    kinds : mapping of str to str, optional
        How to read columns of text, ``"number"``, ``"date"`` or ``"category"``; values that are no
        number, or no date, then count as missing. Found out by default.
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
    n_features_in_ : int
        Columns of the table.
    feature_names_in_ : ndarray of str
        Their names.

    Examples
    --------
    >>> import pandas as pd
    >>> from evenhand.tables import TableEncoder
    >>> table = pd.DataFrame({"age": ["31", "1,040", None], "job": ["a", "b", "a"], "x": 1})
    >>> encoder = TableEncoder(min_count=1).fit(table)
    >>> encoder.get_feature_names_out().tolist()
    ['age', 'age is missing', 'job = a', 'job = b']
    >>> print(encoder.decisions().to_string(index=False))
    column     kind                                                            action
       age   number numbers written as text; 1 missing value set to the median, 535.5
       job category                                                          2 values
         x  dropped                                       the same value in every row
    """

    def __init__(
        self,
        *,
        exclude: str | Sequence[str] = (),
        sensitive: str | Sequence[str] = (),
        kinds: Mapping[str, str] | None = None,
        max_categories: int = 50,
        min_count: int = 10,
        sparse_threshold: float = 0.25,
    ) -> None:
        self.exclude = exclude
        self.sensitive = sensitive
        self.kinds = kinds
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
            The label; a column that tells it exactly is warned of.

        Returns
        -------
        TableEncoder
            Itself.
        """
        self.fit_transform(X, y)
        return self

    def fit_transform(self, X: Any, y: Any = None, **params: Any) -> Any:
        """Fit, and give the inputs made of the table.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        y : array-like, optional
            The label.
        **params
            Ignored.

        Returns
        -------
        ndarray or CSR matrix of shape (n_rows, n_inputs)
            The inputs.
        """
        frame = _frame(X)
        if not len(frame):
            raise ValueError("the table has no rows.")
        exclude = [self.exclude] if isinstance(self.exclude, str) else list(self.exclude)
        sensitive = [self.sensitive] if isinstance(self.sensitive, str) else list(self.sensitive)
        for name in (*exclude, *sensitive):
            if name not in frame.columns:
                raise ValueError(
                    f"the table has no column {name!r}; it has {_listed(frame.columns)}."
                )
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        plans: list[ColumnPlan] = []
        seen: dict[Any, str] = {}
        secret = {_mark(_texts(frame[name])): name for name in sensitive}
        for name in frame.columns:
            if name in sensitive:
                plans.append(ColumnPlan(name, "dropped", "sensitive, so not an input"))
                continue
            if name in exclude:
                plans.append(ColumnPlan(name, "dropped", "not an input, as asked"))
                continue
            twin = secret.get(_mark(_texts(frame[name])))
            if twin is not None:
                action = f"the same as {twin!r}, which is sensitive, so not an input"
                plans.append(ColumnPlan(name, "dropped", action))
                continue
            plan, mark = self._decide(frame[name], name)
            if plan.kind != "dropped":
                twin = seen.setdefault(mark, name)
                if twin != name:
                    plan = ColumnPlan(name, "dropped", f"the same values as {twin!r}")
            plans.append(plan)
        if all(plan.kind == "dropped" for plan in plans):
            why = "; ".join(f"{p.column!r}: {p.action}" for p in plans[:5])
            raise ValueError(f"no column is left as an input ({why}).")
        self._warn_of_leaks(frame, plans, y)
        self.n_features_in_ = len(frame.columns)
        self.plans_ = plans
        clean = self._clean(frame)
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
        frame = _frame(X)
        missing = [
            p.column for p in self.plans_ if p.kind != "dropped" and p.column not in frame.columns
        ]
        if missing:
            raise ValueError(
                f"the table has no column {missing[0]!r}, which the model was trained with; it has "
                f"{_listed(frame.columns)}."
            )
        return self.transformer_.transform(self._clean(frame))

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
                known = [encoder._number(column) for column in columns]
                imputer, scaler = transformer.steps[0][1], transformer.steps[1][1]
                imputer.statistics_ = np.array([p.fill for p in known])
                scaler.mean_ = np.array([p.mean for p in known])
                scaler.scale_ = np.array([p.scale for p in known])
                scaler.var_ = scaler.scale_**2
        return encoder

    # ---- inside --------------------------------------------------------------------------

    def _derived(self, column: str, what: str) -> str:
        """Name an input made of a column, by a name that no column has."""
        name = f"{column}{what}"
        taken = set(self.feature_names_in_.tolist())
        while name in taken:
            name += "'"
        return name

    def _decide(self, series: Any, name: str) -> tuple[ColumnPlan, Any]:
        """Plan a column, with a mark that columns of the same values share."""
        texts = None
        kind, how = "category", ""
        if series.dtype.is_numeric():
            kind, values = "number", _numbers(series, name)
        elif series.dtype in (nw.Datetime, nw.Date):
            kind, values = "date", _days(series, name)
        elif series.dtype.is_nested():
            raise ValueError(
                f"column {name!r} holds lists or records; give one value per cell, or drop it."
            )
        else:
            texts = _texts(series)
            if series.dtype not in (nw.Boolean, nw.Categorical, nw.Enum):
                kind, how = _kind_of_text(texts)
                if name in (self.kinds or {}):
                    kind = (self.kinds or {})[name]
                    if "count as missing" not in how:
                        how = (
                            ""
                            if kind == "category"
                            else f"values that are no {kind} count as missing"
                        )
            tolerant = "count as missing" in how
            if kind != "category":
                read = _numbers if kind == "number" else _days
                values = read(series, name, tolerant=tolerant)
        if kind == "category":
            assert texts is not None  # noqa: S101
            return self._decide_category(texts, name), _mark(texts)
        return self._decide_number(values, name, kind, how)

    def _decide_number(
        self, values: NDArray[np.float64], name: str, kind: str, how: str
    ) -> tuple[ColumnPlan, Any]:
        infinite = int(np.isinf(values).sum())
        if infinite:
            raise ValueError(
                f"column {name!r} has {infinite} infinite value{'s' * (infinite > 1)}; correct "
                "them or leave them empty."
            )
        here = values[~np.isnan(values)]
        mark = _mark(values)
        if len(here) and np.abs(here).max() > LARGEST:
            raise ValueError(
                f"column {name!r} has values up to {np.abs(here).max():.3g}, too large to work "
                "with; correct them or give them in another unit."
            )
        if not len(here):
            return ColumnPlan(name, "dropped", "no value in any row"), mark
        n_missing = len(values) - len(here)
        if here.min() == here.max() and not n_missing:
            return ColumnPlan(name, "dropped", "the same value in every row"), mark
        whole = (
            kind == "number"
            and bool((here % 1 == 0).all())
            and len(values) >= FEWEST_ROWS_OF_AN_IDENTIFIER
        )
        distinct = whole and len(np.unique(here)) == len(values)
        if distinct and here.max() - here.min() + 1 == len(values):
            return ColumnPlan(name, "dropped", "numbers the rows: an identifier"), mark
        words = [how] if how else []
        if distinct:
            words.append("another whole number in every row: is it an identifier?")
        if n_missing:
            fill = f"{np.median(here):.4g}"
            words.append(
                f"{n_missing:,} missing value{'s' * (n_missing > 1)} set to the median, {fill}"
            )
        names: tuple[str, ...] = (name,)
        names += (self._derived(name, " is missing"),) if n_missing else ()
        if kind == "date":
            words.append("as days, month and weekday")
            names += tuple(_input_name(self._derived(name, ": month"), m) for m in MONTHS)
            names += tuple(_input_name(self._derived(name, ": weekday"), d) for d in WEEKDAYS)
        plan = ColumnPlan(
            name,
            kind,
            "; ".join(words) or "as it is",
            names,
            indicator=bool(n_missing),
            tolerant="count as missing" in how,
        )
        return plan, mark

    def _decide_category(self, texts: NDArray[np.object_], name: str) -> ColumnPlan:
        counts = pd.Series(texts).value_counts()  # the most frequent first, without missing ones
        n_missing = int(sum(t is None for t in texts))
        if not len(counts):
            return ColumnPlan(name, "dropped", "no value in any row")
        if len(counts) == 1 and not n_missing:
            return ColumnPlan(name, "dropped", "the same value in every row")
        if len(counts) == len(texts) - n_missing and len(counts) >= FEWEST_ROWS_OF_AN_IDENTIFIER:
            return ColumnPlan(name, "dropped", "another value in every row: an identifier")
        order = sorted(counts.index, key=lambda value: (-counts[value], value))
        # Of two values one is enough, however rare the other is.
        least = self.min_count if len(order) > 2 else 1
        kept = [value for value in order[: self.max_categories] if counts[value] >= least]
        clash = {MISSING, OTHER} & set(kept)
        kept = [value for value in kept if value not in clash]
        rare = len(order) - len(kept)
        words = [f"{len(order):,} value{'s' * (len(order) > 1)}"]
        categories = sorted(kept)
        if rare:
            words.append(f"{rare:,} rare one{'s' * (rare > 1)} taken together")
            categories.append(OTHER)
        if n_missing:
            words.append(f"{n_missing:,} missing, a value of their own")
            categories.append(MISSING)
        names = tuple(_input_name(name, value) for value in categories)
        return ColumnPlan(name, "category", "; ".join(words), names, categories=tuple(categories))

    def _warn_of_leaks(self, frame: Any, plans: list[ColumnPlan], y: Any) -> None:
        """Warn of a column from which the label can be told without fail."""
        if y is None:
            return
        label = pd.factorize(pd.Series(np.asarray(y, dtype=object)))[0]
        if len(np.unique(label)) < 2 or len(label) != len(frame):
            return
        for i, plan in enumerate(plans):
            if plan.kind not in ("category", "number"):
                continue
            code = pd.factorize(pd.Series(_texts(frame[plan.column]), dtype=object))[0]
            n_values = len(np.unique(code))
            if not 2 <= n_values <= max(2, len(label) // 10):
                continue
            pairs = len(np.unique(code * (label.max() + 1) + label))
            if pairs == n_values:
                plans[i] = replace(plan, action=f"{plan.action}; tells the label without fail")
                warnings.warn(
                    f"column {plan.column!r} tells the label without fail; if it is known only "
                    "after the outcome, leave it out.",
                    UserWarning,
                    stacklevel=4,
                )

    def _number(self, column: str) -> ColumnPlan:
        return next(p for p in self.plans_ if p.column == column)

    def _clean(self, frame: Any) -> pd.DataFrame:
        """Give the columns in their plans' kinds: numbers, and categories that are known."""
        columns: dict[str, Any] = {}
        for plan in self.plans_:
            if plan.kind == "dropped":
                continue
            series = frame[plan.column]
            if plan.kind == "category":
                columns[plan.column] = _levels(_texts(series), plan.categories)
                continue
            read = _days if plan.kind == "date" else _numbers
            values = read(series, plan.column, tolerant=plan.tolerant)
            if np.isinf(values).any():
                raise ValueError(f"column {plan.column!r} has infinite values; correct them.")
            columns[plan.column] = values
            if plan.indicator:
                columns[self._derived(plan.column, " is missing")] = np.isnan(values).astype(
                    np.float64
                )
            if plan.kind == "date":
                month, weekday = _date_parts(values)
                columns[self._derived(plan.column, ": month")] = month
                columns[self._derived(plan.column, ": weekday")] = weekday
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
                    columns[self._derived(plan.column, " is missing")] = np.array([0.0, 1.0])
                if plan.kind == "date":
                    columns[self._derived(plan.column, ": month")] = np.array(
                        [MONTHS[0]] * 2, dtype=object
                    )
                    columns[self._derived(plan.column, ": weekday")] = np.array(
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
        indicators = [self._derived(p.column, " is missing") for p in used if p.indicator]
        text = [(p.column, list(p.categories)) for p in used if p.kind == "category"]
        for p in used:
            if p.kind == "date":
                text += [(self._derived(p.column, ": month"), list(MONTHS))]
                text += [(self._derived(p.column, ": weekday"), list(WEEKDAYS))]
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


def _kind_of_text(texts: NDArray[np.object_]) -> tuple[str, str]:
    """Say how a column of text is best read, and in words what is odd about it."""
    counts = pd.Series(texts, dtype=object).value_counts()
    total = int(counts.sum())
    for kind, fits, plural in (
        ("number", _is_number, "numbers"),
        ("date", lambda text: bool(ISO_DATE.fullmatch(text)), "dates"),
    ):
        good = np.array([fits(text) for text in counts.index], dtype=bool)
        n_bad = total - int(counts[good].sum())
        if not total or not good.any():
            continue
        if not n_bad:
            odd = kind == "number" and any("," in t or "%" in t for t in counts.index)
            return kind, "dates written as text" if kind == "date" else ODD_NUMBERS if odd else ""
        if total >= FEWEST_MOSTLY and n_bad <= (1 - MOSTLY) * total:
            bad = ", ".join(_quoted(t) for t in counts.index[~good][:3])
            what = f"a value that is no {kind}" if n_bad == 1 else f"{n_bad:,} that are no {plural}"
            return kind, f"{what} ({bad}), count as missing"
    return "category", ""


def _mark(values: NDArray[Any]) -> Any:
    """Give a mark that columns of the same values share."""
    if values.dtype.kind == "f":
        return ("number", values.tobytes())
    codes = pd.factorize(pd.Series(values, dtype=object))[0]
    return ("category", codes.tobytes())


def _listed(names: Sequence[Any], most: int = 10) -> str:
    return ", ".join(map(repr, names[:most])) + (", ..." if len(names) > most else "")


# ---- the pipeline ----------------------------------------------------------------------------


def group_values(X: Any, sensitive: Sequence[str], *, numbers: bool = False) -> pd.DataFrame:
    """Give a table's sensitive columns, None where a value is missing.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    sensitive : sequence of str
        Names of columns.
    numbers : bool, default=False
        Whether numbers written as text are numbers, because bins are to be made of them.

    Returns
    -------
    DataFrame
        Numbers stay numbers; all else is text.
    """
    frame = _frame(X)
    columns = {}
    for name in sensitive:
        if name not in frame.columns:
            raise ValueError(
                f"the table has no column {name!r}, which is the sensitive one; it has "
                f"{_listed(frame.columns)}."
            )
        number = frame[name].dtype.is_numeric()
        if numbers and not number:
            number = all(map(_is_number, _known(_texts(frame[name]))))
        values: Any = _numbers(frame[name], name) if number else _texts(frame[name])
        if number and not np.isnan(values).any() and (values % 1 == 0).all():
            values = values.astype(np.int64)
        columns[name] = pd.Series(values, dtype=None if number else object)
    return pd.DataFrame(columns)


def take_table_rows(X: Any, rows: NDArray[np.bool_]) -> Any:
    """Take some rows of a pandas, polars or pyarrow table, by a mask."""
    return nw.from_native(X, eager_only=True).filter(rows.tolist()).to_native()


class FairPipeline(ShowsSummary, Pipeline):
    """A :class:`TableEncoder` before a :class:`~evenhand.FairClassifier`: from tables to answers.

    The groups are columns of the table itself, which are no inputs. Made by :func:`fair_pipeline`.

    Parameters
    ----------
    steps : list of (str, estimator)
        The encoder and the classifier.
    sensitive : sequence of str
        The sensitive columns; several are crossed.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group: refuse them, leave them out of the fit, or make them a
        group of their own, ``"(missing)"``. It is never guessed.
    transform_input, memory, verbose
        As of scikit-learn's Pipeline.

    Attributes
    ----------
    n_dropped_ : int
        Rows that were left out because they have no group.
    """

    def __init__(
        self,
        steps: Any,
        *,
        sensitive: Sequence[str] = (),
        missing_groups: str = "error",
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.sensitive = sensitive
        self.missing_groups = missing_groups

    def groups(self, X: Any) -> tuple[pd.DataFrame, NDArray[np.bool_]]:
        """Find each row's group, and which rows have one.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.

        Returns
        -------
        tuple of (DataFrame, ndarray of bool)
            The sensitive columns of the rows that are kept, and which rows those are.
        """
        if self.missing_groups not in ("error", "drop", "group"):
            raise ValueError(
                f"missing_groups={self.missing_groups!r}; use 'error', 'drop' or 'group'."
            )
        bins = getattr(self.steps[-1][1], "bins", None) if self.steps else None
        values = group_values(X, list(self.sensitive), numbers=bins is not None)
        missing = values.isna()
        known = ~missing.any(axis=1).to_numpy()
        if known.all():
            return values, known
        if self.missing_groups == "error":
            column = missing.columns[missing.any()][0]
            n = int(missing[column].sum())
            raise ValueError(
                f"column {column!r} has {n:,} row{'s' * (n > 1)} without a value, and a group is "
                "never guessed; say missing_groups='drop' to leave such rows out, or 'group' to "
                "make them a group of their own."
            )
        if self.missing_groups == "drop":
            return values[known].reset_index(drop=True), known
        return values.astype(object).where(~missing, MISSING), np.ones(len(values), dtype=bool)

    def fit(self, X: Any, y: Any = None, **params: Any) -> FairPipeline:
        """Fit the encoder and the classifier.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table, with the sensitive columns in it.
        y : array-like of shape (n_rows,)
            The label.
        **params
            ``sample_weight``, or parameters for the steps as scikit-learn's Pipeline takes them.

        Returns
        -------
        FairPipeline
            Itself.
        """
        groups, kept = self.groups(X)
        y, weight = np.asarray(y), params.pop("sample_weight", None)
        if len(y) != len(kept):
            raise ValueError(f"the table has {len(kept)} rows, y has {len(y)}.")
        if not kept.all():
            X, y = take_table_rows(X, kept), y[kept]
        self.n_dropped_ = int((~kept).sum())
        if weight is not None:
            params["classifier__sample_weight"] = np.asarray(weight)[kept]
        sensitive = groups if groups.shape[1] > 1 else groups.iloc[:, 0]
        super().fit(X, y, classifier__sensitive_features=sensitive, **params)
        return self

    def predict(self, X: Any, **params: Any) -> Any:
        """Predicted label of each row; with ``group_cuts`` the group is taken from the table.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        **params
            For the classifier.
        """
        return self.named_steps["classifier"].predict(self._inputs(X), **self._known(X), **params)

    def predict_proba(self, X: Any, **params: Any) -> Any:
        """Scores between 0 and 1 of each label, as the classifier's ``predict_proba`` gives them.

        Parameters
        ----------
        X : pandas, polars or pyarrow table
            The table.
        **params
            For the classifier.
        """
        model = self.named_steps["classifier"]
        return model.predict_proba(self._inputs(X), **self._known(X), **params)

    def _inputs(self, X: Any) -> Any:
        return self[:-1].transform(X)

    def _known(self, X: Any) -> dict[str, Any]:
        if not getattr(self.named_steps["classifier"], "needs_group", False):
            return {}
        groups, kept = self.groups(X)
        if not kept.all():
            n = int((~kept).sum())
            raise ValueError(
                f"{n:,} row{'s' * (n > 1)} to predict have no group, and each group has its cut."
            )
        return {"sensitive_features": groups if groups.shape[1] > 1 else groups.iloc[:, 0]}

    def at(self, tau: float) -> FairPipeline:
        """Give the same fit at another target, without training and without data.

        Parameters
        ----------
        tau : float
            The new target.

        Returns
        -------
        FairPipeline
            A fitted pipeline; this one stays as it is.
        """
        other = copy(self)
        other.steps = [*self.steps[:-1], ("classifier", self.named_steps["classifier"].at(tau))]
        return other


def fair_pipeline(
    sensitive: str | Sequence[str],
    *,
    missing_groups: str = "error",
    sensitive_inputs: bool = False,
    encoder: TableEncoder | None = None,
    classifier: Any = None,
    **params: Any,
) -> FairPipeline:
    """Make a classifier for tables whose sensitive attributes are among their columns.

    Parameters
    ----------
    sensitive : str or sequence of str
        The sensitive column, or several, whose values are crossed.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group: refuse, leave out, or make them one.
    sensitive_inputs : bool, default=False
        Whether the sensitive columns are inputs as well.
    encoder : TableEncoder, optional
        An encoder with other settings; its ``sensitive`` is set.
    classifier : FairClassifier, optional
        A classifier; otherwise one is made of ``params``.
    **params
        Parameters of :class:`~evenhand.FairClassifier`, such as ``tau`` and ``notion``.

    Returns
    -------
    FairPipeline
        Not fitted.

    Examples
    --------
    >>> from evenhand.datasets import load_adult
    >>> from evenhand.tables import fair_pipeline
    >>> adult = load_adult()
    >>> model = fair_pipeline("sex", tau=0.9).fit(adult.frame.drop(columns="income"), adult.target)
    >>> bool(model[-1].rate_ >= 0.9)
    True
    """
    names = [sensitive] if isinstance(sensitive, str) else list(sensitive)
    if not names:
        raise ValueError("sensitive is empty; name at least one column.")
    encoder = TableEncoder() if encoder is None else clone(encoder)
    if not sensitive_inputs:
        encoder.set_params(sensitive=names)
    if classifier is not None and params:
        raise ValueError(f"give a classifier or its parameters, not both: {_listed(list(params))}.")
    classifier = FairClassifier(**params) if classifier is None else classifier
    steps = [("encoder", encoder), ("classifier", classifier)]
    return FairPipeline(steps, sensitive=names, missing_groups=missing_groups)
