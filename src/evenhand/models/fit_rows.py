"""The rows of a fit: what ``fit`` is given, checked, coded, and left where it is."""

from collections.abc import Sequence
from functools import reduce
from operator import add
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.sparse import issparse
from sklearn.utils import (
    assert_all_finite,
    check_consistent_length,
    check_random_state,
    column_or_1d,
)
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import validate_data

from evenhand._extras import import_extra
from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import check_missing
from evenhand.engines.chunks import coding_of
from evenhand.engines.memory import canonical
from evenhand.frontier.splits import check_unweighted
from evenhand.models.inputs import (
    CodedRows,
    as_table,
    blank_groups,
    check_labels,
    check_not_alone,
    check_sizes,
    check_weights,
    code_rows,
    find_groups,
    find_no_numbers,
    group_column,
    is_dask,
    is_tensor,
    on_host,
)
from evenhand.models.settings import Settings

FLOATS = (np.float64, np.float32)


def read_rows(
    estimator: Any,
    settings: Settings,
    X: Any,
    y: Any,
    sensitive_features: Any,
    sample_weight: Any,
    *,
    reset: bool = True,
    dtype: Any = FLOATS,
) -> tuple[CodedRows, np.random.RandomState]:
    """Check and code the data; the generator has drawn their noise column, if there is one.

    The estimator learns the columns of X; with ``reset=False`` it knows them already.
    """
    check_labels(y)
    if is_dask(X):
        rows = _dask_rows(estimator, settings, X, y, sensitive_features, sample_weight)
        return rows, check_random_state(settings.random_state)
    if settings.engine == "dask":
        raise InputError("no_dask_collection", engine=Parameter("engine", "dask"))
    X = on_host(X) if settings.engine == "numpy" else X
    where = settings.sensitive_features
    table = as_table(X) if isinstance(where, int | str) else X
    if is_tensor(X) and not settings.needs_table():
        X, y = _check_tensor(estimator, X, y, sensitive_features, reset=reset)
        rows = _tensor_rows(settings, X, y, sensitive_features, sample_weight)
        return rows, check_random_state(settings.random_state)
    y, sensitive_features, sample_weight = map(on_host, (y, sensitive_features, sample_weight))
    column = group_column(table, where, sensitive_features)
    if is_tensor(X):
        X, y = _check_tensor(estimator, X, y, reset=reset)
    else:
        inputs = blank_groups(as_table(table), column)
        X, y = _check_arrays(estimator, settings, inputs, y, sensitive_features, reset, dtype)
    random = check_random_state(settings.random_state)
    rows = code_rows(
        X,
        y,
        sensitive_features,
        sample_weight,
        table=table,
        column=column,
        where=where,
        extra=random.uniform(size=X.shape[0]) if settings.method.noise else None,
        **settings.coding,
    )
    if column is not None:
        check_not_alone(rows.X)
        inputs = np.delete(rows.inputs, column)
        rows = rows._replace(X=rows.X[:, inputs], inputs=inputs)
    settings.check_classes(rows.classes, guess=reset)
    return rows, random


def code_persons(
    persons: Any, settings: Settings, rows: CodedRows, sample_weight: Any
) -> NDArray[np.intp]:
    """Give the number of the person whose row each is, of the rows that count."""
    if settings.place == "train":
        raise InputError(
            "persons_without_held_out",
            persons=Parameter("persons"),
            certified=Parameter("confidence", "certified"),
            holdout=Parameter("selection", "holdout"),
        )
    if rows.source is not None:
        raise InputError("for_tables_in_memory", parameter=Parameter("persons", "..."))
    values = pd.Series(np.asarray(on_host(persons)))
    check_missing(values, "persons", "give each of them a person of its own")
    if sample_weight is not None and len(values) > len(rows.y):
        values = values[np.asarray(on_host(sample_weight)) > 0]
    if len(values) != len(rows.y):
        raise InputError(
            "persons_of_other_rows",
            persons=Parameter("persons"),
            n=len(values),
            n_rows=len(rows.y),
        )
    return pd.factorize(values)[0].astype(np.intp)


def _check_arrays(
    estimator: Any,
    settings: Settings,
    X: Any,
    y: Any,
    sensitive_features: Any,
    reset: bool,
    dtype: Any,
) -> tuple[Any, Any]:
    """Check arrays as scikit-learn does, and refuse text by column and values out of range."""
    try:
        checked, y = validate_data(
            estimator, X, y, reset=reset, accept_sparse="csr", dtype=list(dtype), order="C"
        )
    except (ValueError, TypeError) as error:
        if isinstance(error, ValueError) or hasattr(X, "iloc"):
            _refuse_text(estimator, settings, X, sensitive_features)
        raise
    checked = canonical(checked)
    check_sizes(checked, getattr(estimator, "feature_names_in_", None))
    return checked, y


def _refuse_text(estimator: Any, settings: Settings, X: Any, sensitive_features: Any) -> None:
    """Refuse text, dates and missing values among the inputs, with the line that takes them."""
    groups = settings.sensitive_features if sensitive_features is None else None
    if not isinstance(groups, str):
        groups = str(getattr(sensitive_features, "name", None) or "group")
    table = "X" if hasattr(X, "columns") else "pd.DataFrame(X).rename(columns=str)"
    if groups not in getattr(X, "columns", ()):
        table += f".assign(**{{{groups!r}: sensitive_features}})"
    own, usual = (e.get_params(deep=False) for e in (estimator, type(estimator)()))
    changed = [k for k in own if repr(own[k]) != repr(usual[k])]
    params = [f"{k}={own[k]!r}" for k in changed if k != "sensitive_features"]
    refuse_text(
        X,
        "FairClassifier takes numbers; for a table as it comes, with text, dates and missing "
        f"values, use fair_pipeline({', '.join([repr(groups), *params])}).fit({table}, y).",
    )


def refuse_text(X: Any, advice: str) -> None:
    """Refuse text, dates and missing values among the inputs."""
    not_numbers = None if issparse(X) else find_no_numbers(X)
    if not_numbers is not None:
        column, content = not_numbers
        raise InputError("not_numbers", column=column, content=content, advice=advice) from None


def _check_tensor(
    estimator: Any, X: Any, y: Any, sensitive_features: Any = (), *, reset: bool
) -> tuple[Any, Any]:
    """Check a tensor of inputs, and the labels, as scikit-learn does arrays."""
    from evenhand.engines.torch import check_tensor

    if sensitive_features is None:
        group_column(X, None, None)  # says so
    X = check_tensor(X)
    validate_data(estimator, X, y, reset=reset, skip_check_array=True)
    coded = is_tensor(y) and y.ndim == 1 and not (y.is_floating_point() or y.is_complex())
    if not coded:
        y = column_or_1d(on_host(y), warn=True)
        assert_all_finite(y, input_name="y")
        check_consistent_length(X, y)
        check_classification_targets(y)
    return X, y


def _tensor_rows(
    settings: Settings, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> CodedRows:
    """Rows of a tensor, coded on its device."""
    from evenhand.engines.torch import TorchRows, tensor_columns, tensor_facts

    if not (is_tensor(sensitive_features) and sensitive_features.ndim == 1):
        sensitive_features = on_host(sensitive_features)
        sensitive_features = find_groups(X, None, None, sensitive_features, None)
        check_missing(sensitive_features, "sensitive_features", "a group is never guessed")
    weight, used = check_weights(X, on_host(sample_weight))
    if used is not None:
        kept = used.tolist()
        X, weight = X[kept], weight[used]
        y = y[kept] if is_tensor(y) else y[used]
        many = is_tensor(sensitive_features)
        sensitive_features = sensitive_features[kept] if many else sensitive_features.iloc[used]
    facts, y, z = tensor_facts(X, y, sensitive_features, weight)
    coding, rows = code_chunks(settings, facts, weighted=weight is not None)
    columns = tensor_columns(facts, coding, y, z, weight)
    return rows._replace(source=TorchRows(X, columns, settings.device))


def code_chunks(
    settings: Settings, facts: Any, *, weighted: bool, names: NDArray[Any] | None = None
) -> tuple[Any, CodedRows]:
    """Codes of a table in chunks, and its rows but for their source."""
    coding = coding_of(
        facts,
        names=names,
        weighted=weighted,
        survey=settings.survey_weights,
        min_group_size=settings.min_group_size,
        label_order=settings.label_order,
    )
    if settings.certifies and weighted:
        check_unweighted(np.array(facts.extremes))
    settings.check_classes(coding.classes)
    nothing: Any = None
    inputs = np.arange(len(facts.largest))
    rows = CodedRows(
        nothing, nothing, nothing, None, inputs, coding.classes, coding.compared, coding.small
    )
    return coding, rows


def _dask_rows(
    estimator: Any, settings: Settings, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> CodedRows:
    """Rows of Dask collections, coded where they are."""
    from evenhand.engines.chunks import check_shape
    from evenhand.engines.dask import DaskRows, dask_chunks, dask_facts

    settings.check_chunks("dask", "a Dask collection")
    if sensitive_features is None:
        group_column(X, None, None)  # says so
    check_shape(X)
    # Dask keeps an empty pandas frame with the columns of its own.
    table = X._meta if hasattr(X, "columns") else X
    validate_data(estimator, table, y, skip_check_array=True)
    parts = dask_chunks(X, y, sensitive_features, sample_weight)
    facts, names = dask_facts(parts), getattr(estimator, "feature_names_in_", None)
    coding, rows = code_chunks(settings, facts, weighted=sample_weight is not None, names=names)
    return rows._replace(source=DaskRows(parts, facts, coding, int(X.shape[1])))


def parquet_rows(
    settings: Settings,
    path: Any,
    label: str,
    sensitive_features: str | Sequence[str],
    columns: Sequence[str] | None,
    sample_weight: str | None,
) -> tuple[CodedRows, NDArray[Any]]:
    """Rows of Parquet files, which are read again at every pass, and the names of the inputs."""
    import_extra("pyarrow", "parquet")
    from evenhand.engines.chunks import StreamRows, chunk_facts
    from evenhand.engines.parquet import find_files, parquet_chunks

    settings.check_chunks("numpy", "a table in files")
    sensitive = (
        [sensitive_features] if isinstance(sensitive_features, str) else [*sensitive_features]
    )
    files = find_files(path)
    parts, inputs = parquet_chunks(files, label, sensitive, columns, sample_weight)
    facts, names = reduce(add, (chunk_facts(p.read()) for p in parts)), np.array(inputs, object)
    coding, rows = code_chunks(settings, facts, weighted=sample_weight is not None, names=names)
    return rows._replace(source=StreamRows(parts, facts, coding, len(inputs))), names
