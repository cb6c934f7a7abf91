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
from copy import copy
from dataclasses import dataclass, field, replace
from numbers import Integral
from typing import Any

import narwhals as nw
import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from evenhand.classifier import FairClassifier
from evenhand.columns import (
    FEWEST_ROWS_OF_NAMES,
    MONTHS,
    WEEKDAYS,
    CellError,
    Reading,
    as_frame,
    date_parts,
    find_reading,
    identifier,
    is_number,
    known_values,
    listed,
    parse_kind,
    read_days,
    read_numbers,
    read_texts,
)
from evenhand.inputs import bin_edges, bin_names
from evenhand.notebook import ShowsSummary

__all__ = [
    "ColumnPlan",
    "FairPipeline",
    "TableEncoder",
    "fair_pipeline",
    "group_values",
    "take_table_rows",
]

MISSING, OTHER = "(missing)", "(other)"
LARGEST = 1e100


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

    - *Numbers*, also those written ``1,234``, ``1 234``, ``3,14``, ``$12`` or ``12%``: missing ones
      become the median, with an input that says so; then mean 0 and deviation 1.
    - *Categories* (text, booleans, categorical columns): an input for each value. Missing is a
      value. Values that fewer than ``min_count`` rows have, and all but the ``max_categories`` most
      frequent, share one input, which later also takes values never seen.
    - *Codes* with leading zeros, such as ``00501``, are categories, though they look like numbers.
    - *Dates*, also those written ``31.12.2020`` or ``12/31/2020``: days as a number, month and
      weekday as categories. Where every row could be either, the day is first.
    - *Dropped*: columns without a value, with one value, with the same values as an earlier one,
      of text no value of which ``min_count`` rows have, identifiers, and those that ``exclude``
      names. An identifier has another text in every row, or another whole number that looks like
      the number of a row (:func:`evenhand.columns.identifier`).

    Parameters
    ----------
    exclude : str or sequence of str, default=()
        Columns that are no inputs.
    sensitive : str or sequence of str, default=()
        Columns that are no inputs because they are sensitive; nor are columns that tell one of them
        without fail, and are told by it: the same under another name.
    kinds : mapping of str to str, optional
        How to read columns: ``"category"``, ``"number"``, ``"date"``, or more exactly ``"number,
        decimal comma"``, ``"number, decimal point"``, ``"date, day first"``, ``"date, month
        first"``, ``"date, year first"``; text that is no number, or no date, then counts as
        missing. A column named here is no identifier. Found out by default.
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
    column     kind                                               action
       age   number numbers written as text, commas between thousands...
       job category                                             2 values
         x  dropped                          the same value in every row
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
        exclude = [self.exclude] if isinstance(self.exclude, str) else list(self.exclude)
        sensitive = [self.sensitive] if isinstance(self.sensitive, str) else list(self.sensitive)
        for name in (*exclude, *sensitive, *(self.kinds or {})):
            if name not in frame.columns:
                raise ValueError(
                    f"the table has no column {name!r}; it has {listed(frame.columns)}."
                )
        self.feature_names_in_ = np.array(frame.columns, dtype=object)
        plans: list[ColumnPlan] = []
        found: dict[str, Reading] = {}
        seen: dict[Any, str] = {}
        secret = {_mark(read_texts(frame[name])): name for name in sensitive}
        for name in frame.columns:
            if name in sensitive:
                plans.append(ColumnPlan(name, "dropped", "sensitive, so not an input"))
                continue
            if name in exclude:
                plans.append(ColumnPlan(name, "dropped", "not an input, as asked"))
                continue
            twin = secret.get(_mark(read_texts(frame[name])))
            if twin is not None:
                action = f"the same as {twin!r}, which is sensitive, so not an input"
                plans.append(ColumnPlan(name, "dropped", action))
                continue
            known = (readings or {}).get(name)
            reading = self._read(frame[name], name) if known is None else known
            # Who says how a column is read wants it read.
            sure = known is not None or name in (self.kinds or {})
            plan, mark = self._decide(frame[name], name, reading, sure=sure)
            if plan.kind != "dropped":
                twin = seen.setdefault(mark, name)
                if twin != name:
                    plan = ColumnPlan(name, "dropped", f"the same values as {twin!r}")
            if plan.kind == "dropped":
                reading = Reading("dropped", note=plan.action)
            found[name] = reading
            plans.append(plan)
        if all(plan.kind == "dropped" for plan in plans):
            why = "; ".join(f"{p.column!r}: {p.action}" for p in plans[:5])
            raise ValueError(f"no column is left as an input ({why}).")
        if y is not None:
            self._warn_of_leaks(
                frame,
                plans,
                np.asarray(y, dtype=object),
                "tells the label without fail",
                "if it is known only after the outcome, leave it out",
            )
        for name in sensitive:
            self._warn_of_leaks(
                frame,
                plans,
                read_texts(frame[name]),
                f"says {name!r}, which is sensitive, of every row",
                "leave it out unless that is meant",
            )
        self.n_features_in_ = len(frame.columns)
        self.plans_ = plans
        self.readings_ = found
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
        frame = as_frame(X)
        missing = [
            p.column for p in self.plans_ if p.kind != "dropped" and p.column not in frame.columns
        ]
        if missing:
            raise ValueError(
                f"the table has no column {missing[0]!r}, which the model was trained with; it has "
                f"{listed(frame.columns)}."
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

    def _decide(
        self, series: Any, name: str, reading: Reading, *, sure: bool
    ) -> tuple[ColumnPlan, Any]:
        """Plan a column, with a mark that columns of the same values share."""
        if reading.kind == "dropped":
            return ColumnPlan(name, "dropped", reading.note), None
        if reading.kind == "category":
            texts = read_texts(series)
            return self._decide_category(texts, name, reading, sure=sure), _mark(texts)
        read = read_numbers if reading.kind == "number" else read_days
        values = read(series, name, written=reading.written, tolerant=reading.tolerant)
        return self._decide_number(values, name, reading, sure=sure), _mark(values)

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
            return find_reading(read_texts(series), name, kind=kind, written=written)
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
            return ColumnPlan(name, "dropped", why)
        words = [reading.note] if reading.note else []
        if n_missing:
            fill = f"{np.median(here):.4g}"
            words.append(
                f"{n_missing:,} missing value{'s' * (n_missing > 1)} set to the median, {fill}"
            )
        names: tuple[str, ...] = (name,)
        names += (self._derived(name, " is missing"),) if n_missing else ()
        if reading.kind == "date":
            words.append("as days, month and weekday")
            names += tuple(_input_name(self._derived(name, ": month"), m) for m in MONTHS)
            names += tuple(_input_name(self._derived(name, ": weekday"), d) for d in WEEKDAYS)
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
        alone = len(counts) == len(texts) - n_missing and len(counts) >= FEWEST_ROWS_OF_NAMES
        if alone and not sure:
            return ColumnPlan(name, "dropped", "another value in every row: an identifier")
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

    def _warn_of_leaks(
        self, frame: Any, plans: list[ColumnPlan], secret: NDArray[Any], what: str, advice: str
    ) -> None:
        """Warn of a column each value of which goes with one value of another that is no input."""
        label = pd.factorize(pd.Series(secret, dtype=object), use_na_sentinel=False)[0]
        if len(np.unique(label)) < 2 or len(label) != len(frame):
            return
        for i, plan in enumerate(plans):
            if plan.kind not in ("category", "number"):
                continue
            code = pd.factorize(pd.Series(read_texts(frame[plan.column]), dtype=object))[0]
            n_values = len(np.unique(code))
            if not 2 <= n_values <= max(2, len(label) // 10):
                continue
            pairs = len(np.unique(code * (label.max() + 1) + label))
            if pairs == n_values:
                plan = plans[i] = replace(plan, action=f"{plan.action}; {what}")
                warnings.warn(
                    f"column {plan.column!r} {what}; {advice}.", UserWarning, stacklevel=4
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
                columns[plan.column] = _levels(read_texts(series), plan.categories)
                continue
            read = read_days if plan.kind == "date" else read_numbers
            values = read(series, plan.column, written=plan.written, tolerant=plan.tolerant)
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
                columns[self._derived(plan.column, " is missing")] = np.isnan(values).astype(
                    np.float64
                )
            if plan.kind == "date":
                month, weekday = date_parts(values)
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


def _mark(values: NDArray[Any]) -> Any:
    """Give a mark that columns of the same values share."""
    if values.dtype.kind == "f":
        return ("number", values.tobytes())
    codes = pd.factorize(pd.Series(values, dtype=object))[0]
    return ("category", codes.tobytes())


# ---- the pipeline ----------------------------------------------------------------------------


def group_values(
    X: Any, sensitive: Sequence[str], *, numbers: bool | Collection[str] = False
) -> pd.DataFrame:
    """Give a table's sensitive columns, None where a value is missing.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    sensitive : sequence of str
        Names of columns.
    numbers : bool or collection of str, default=False
        Whether numbers written as text are numbers, because bins are to be made of them; or the
        columns of which they are.

    Returns
    -------
    DataFrame
        Numbers stay numbers; all else is text.
    """
    frame = as_frame(X)
    columns = {}
    for name in sensitive:
        if name not in frame.columns:
            raise ValueError(
                f"the table has no column {name!r}, which is the sensitive one; it has "
                f"{listed(frame.columns)}."
            )
        number = frame[name].dtype.is_numeric()
        if not number and (numbers if isinstance(numbers, bool) else name in numbers):
            number = all(map(is_number, known_values(read_texts(frame[name]))))
        values: Any = read_numbers(frame[name], name) if number else read_texts(frame[name])
        if number and np.isfinite(values).all() and (values % 1 == 0).all():
            values = values.astype(np.int64)
        columns[name] = pd.Series(values, dtype=None if number else object)
    return pd.DataFrame(columns)


def find_edges(values: pd.DataFrame, bins: Mapping[str, Any]) -> dict[str, NDArray[np.float64]]:
    """Find the edges of the bins of each column that has some, on the rows that have a value."""
    edges = {}
    for name, wanted in bins_by_column(bins, list(values.columns)).items():
        if np.ndim(wanted) == 0 and not (isinstance(wanted, Integral) and int(wanted) >= 2):
            raise ValueError(
                f"column {name!r} has bins={wanted!r}; give two bins or more, or their edges."
            )
        known = _numbers_for_bins(values, name).dropna()
        edges[name] = bin_edges(known.to_numpy(dtype=np.float64), wanted)
    return edges


def _numbers_for_bins(values: pd.DataFrame, name: str) -> pd.Series:
    """Give a column of which bins are made; refuse what is no number."""
    column = values[name]
    if not pd.api.types.is_numeric_dtype(column):
        words = [str(v) for v in column.dropna() if not is_number(str(v))]
        if words:
            raise ValueError(
                f"column {name!r} has bins, and the value {words[0]!r}, which is no number; "
                "correct it, or ask for no bins."
            )
    return column


def _in_bins(values: pd.Series, edges: NDArray[np.float64]) -> pd.Series:
    """Give the name of each value's bin, None where it is missing."""
    numbers = values.to_numpy(dtype=np.float64)
    names = bin_names(edges)[np.searchsorted(edges, numbers, side="right")]
    return pd.Series(names, index=values.index, dtype=object).where(~np.isnan(numbers), None)


def without_group(column: str, n: int) -> str:
    """Say that rows have no group."""
    return (
        f"column {column!r} has {n:,} row{'s' * (n > 1)} without a value, and a group is never "
        "guessed; say missing_groups='drop' to leave such rows out, or 'group' to make them a "
        "group of their own."
    )


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
    bins : mapping of str to (int or sequence of float), optional
        Sensitive columns that are numbers, such as age: how many bins of equal size, or the edges
        between them. The bins are then values like any other, and may be crossed.
    transform_input, memory, verbose
        As of scikit-learn's Pipeline.

    Attributes
    ----------
    n_dropped_ : int
        Rows that were left out because they have no group.
    edges_ : dict of str to ndarray
        Edges of the bins of each column in ``bins``.
    """

    def __init__(
        self,
        steps: Any,
        *,
        sensitive: Sequence[str] = (),
        missing_groups: str = "error",
        bins: Mapping[str, Any] | None = None,
        transform_input: Any = None,
        memory: Any = None,
        verbose: bool = False,
    ) -> None:
        super().__init__(steps, transform_input=transform_input, memory=memory, verbose=verbose)
        self.sensitive = sensitive
        self.missing_groups = missing_groups
        self.bins = bins

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
        values = self._group_columns(X)
        missing = values.isna()
        known = ~missing.any(axis=1).to_numpy()
        taken = values.columns[(values == MISSING).any()]
        if self.missing_groups == "group" and len(taken):
            raise ValueError(
                f"column {taken[0]!r} has the value {MISSING!r}, which is the name of the group of "
                "rows without a value; rename it."
            )
        if known.all():
            return values, known
        if self.missing_groups == "error":
            column = missing.columns[missing.any()][0]
            raise ValueError(without_group(column, int(missing[column].sum())))
        if self.missing_groups == "drop":
            return values[known].reset_index(drop=True), known
        return values.astype(object).where(~missing, MISSING), np.ones(len(values), dtype=bool)

    def _group_columns(self, X: Any) -> pd.DataFrame:
        """Give the sensitive columns, of those with bins the bins, missing where a value is."""
        values = self._group_values(X)
        fitted = hasattr(self, "edges_")
        edges = self.edges_ if fitted else find_edges(values, self.bins or {})
        for name in edges:
            values[name] = _in_bins(_numbers_for_bins(values, name), edges[name])
        return values

    def _group_values(self, X: Any) -> pd.DataFrame:
        """Give the sensitive columns, those with bins as numbers."""
        own = getattr(self.steps[-1][1], "bins", None) if self.steps else None
        numbers = list(self.bins or {}) if own is None else True
        return group_values(X, list(self.sensitive), numbers=numbers)

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
        self.edges_ = find_edges(self._group_values(X), self.bins or {})
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
        if self.missing_groups != "group":
            for name, missing in self._group_columns(X).isna().items():
                n = int(missing.sum())
                if n:
                    what = "no value" if n == 1 else f"no value in {n:,} rows, the first"
                    raise CellError(
                        f"column {name!r} has {what}",
                        int(np.flatnonzero(missing)[0]),
                        ", and the model has a cut for each group; fill in the group of every row.",
                    )
        groups, _ = self.groups(X)
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
    bins: Any = None,
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
    bins : int, sequence of float, or mapping of str to these, optional
        For a sensitive number such as age: how many bins, or edges. Of several columns a mapping
        says which, as ``{"age": [25, 45]}``. With one column the adversary guesses the number
        itself, as of :class:`~evenhand.FairClassifier`; with several, the crossed groups.
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
        raise ValueError(f"give a classifier or its parameters, not both: {listed(list(params))}.")
    by_column = bins_by_column(bins, names)
    if classifier is None:
        own = by_column.pop(names[0], None) if len(names) == 1 else None
        classifier = FairClassifier(bins=own, **params)
    steps = [("encoder", encoder), ("classifier", classifier)]
    return FairPipeline(
        steps, sensitive=names, missing_groups=missing_groups, bins=by_column or None
    )


def bins_by_column(bins: Any, sensitive: Sequence[str]) -> dict[str, Any]:
    """Say which sensitive column has which bins; bins without a name are those of the only one."""
    if bins is None:
        return {}
    if not isinstance(bins, Mapping):
        if len(sensitive) > 1:
            raise ValueError(
                f"bins are given, and {len(sensitive)} sensitive columns; say which has them, as "
                f"in {sensitive[0]}=30,45,60."
            )
        return {sensitive[0]: bins}
    for name in bins:
        if name not in sensitive:
            raise ValueError(
                f"bins are given for column {name!r}, which is not sensitive; sensitive are "
                f"{listed(list(sensitive))}."
            )
    return dict(bins)
