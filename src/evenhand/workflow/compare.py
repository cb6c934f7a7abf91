"""Compare evenhand with other methods on a table, and the datasets to try it on."""

import os
import warnings
from collections.abc import Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.base import clone

from evenhand.core.errors import InputError, InputWarning, Parameter, Spelling, sentences
from evenhand.core.groups import group_codes
from evenhand.core.notions import notion_name
from evenhand.engines.coding import compared_groups
from evenhand.persist.model_file import SavedModel, load_model
from evenhand.tables.columns import MissingWords
from evenhand.tables.encoder import TableEncoder
from evenhand.tables.groups import Columns
from evenhand.workflow.labels import (
    check_roles,
    favourable_answer,
    favourable_label,
    fingerprint,
    label_counts,
    labelled_rows,
    warn_of_alike,
)

__all__ = ["check_dataset", "compare_methods", "dataset_frame", "dataset_list"]


# The targets if none are given.
TAUS = (0.8, 0.9)
# Share of the rows that methods are compared on.
TEST_SIZE = 0.3

# Methods of evenhand itself that are quick, for a first look.
QUICK = ("evenhand", "accuracy_only", "reweighing", "zhang", "celis", "group_thresholds")


def compare_methods(
    X: Any,
    *,
    label: str,
    sensitive: Sequence[str],
    methods: Sequence[str] | None = None,
    models: Sequence[str | os.PathLike[str]] = (),
    taus: Sequence[float] | None = None,
    epsilons: Sequence[float] | None = None,
    attributes: str = "crossed",
    notion: str = "statistical_parity",
    favourable: str | None = None,
    splits: int = 3,
    jobs: int = 1,
    seed: int = 0,
    missing_groups: str = "error",
    bins: Any = None,
    weight: str | None = None,
    exclude: Sequence[str] = (),
    min_group_size: int = 30,
    na: Sequence[str] | None = None,
    keep_na: Sequence[str] = (),
    verbose: int = 0,
    spell: Spelling = str,
) -> pd.DataFrame:
    """Compare evenhand with other methods on a table's rows.

    Parameters
    ----------
    X : pandas, polars or pyarrow table
        The table.
    label, sensitive, missing_groups, bins, weight, exclude, na, keep_na
        As of :class:`~evenhand.workflow.settings.TrainSettings`.
    favourable : str, optional
        As of :func:`audit`; the other labels are taken together.
    min_group_size : int, default=30
        Of more than two groups those of which fewer rows are tested on are left out: no method is
        fitted to them or judged by them.
    methods : sequence of str, optional
        Names in :data:`evenhand.peers.PEERS`; those that are quick by default.
    models : sequence of path-like, default=()
        Saved models, which are not fitted; notes say what is known of the rows they were fitted to.
    taus, epsilons, attributes, notion, splits, jobs, seed, verbose
        As of :func:`evenhand.peers.compare`; the taus are 0.8 and 0.9 if no targets are given.
    spell : callable, default=str
        How notes and errors write a :class:`~evenhand.core.errors.Parameter`.

    Returns
    -------
    DataFrame
        What :func:`evenhand.peers.compare` gives, behind columns that say which answer is
        favourable, which ``notion`` all are judged by, how groups are compared (``comparison``) and
        which (``attributes``), and before four: the rows and the groups left out, the column of the
        weights, and ``notes``, what :func:`train` would warn of, such as columns that give the
        label away.
    """
    from evenhand.peers import PEERS, compare

    _check_names(methods or (), PEERS)
    check_roles(label, sensitive, weight=weight)
    missing = MissingWords.chosen(na, keep_na)
    columns = Columns(label, sensitive, missing_groups, bins, missing, weight)
    X, y, dropped, _ = labelled_rows(X, columns)
    good = favourable_label(label_counts(y), label, favourable)
    groups = columns.groups(X)[0]
    attributes = attributes if len(sensitive) > 1 else "crossed"
    rows, small, few = _large_groups(groups, attributes, min_group_size)
    X, y, groups = X.take(rows), y[rows], groups[rows]
    notion = notion_name(notion)
    saved = {Path(path).name: load_model(path) for path in models}
    table = X.frame.to_pandas()
    # What a column holds is seen on all rows, so that every split reads it alike.
    outside = [label, *exclude, *([] if weight is None else [weight])]
    encoder = TableEncoder(exclude=outside, na=na, keep_na=keep_na)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warn_of_alike(label_counts(y), label)
        if few:
            warnings.warn(InputWarning("small_combinations", groups=_sizes(few)), stacklevel=2)
        _check_saved(saved, str(good), fingerprint(X), list(sensitive), attributes)
        plans = clone(encoder).set_params(sensitive_features=[*sensitive]).fit(X, y).plans_
    outside, kinds = _as_read(plans)
    with warnings.catch_warnings(record=True) as more:
        warnings.simplefilter("always")
        splits_table = compare(
            table,
            (y == good).astype(int),
            groups,
            methods={key: PEERS[key] for key in methods or _quick(notion)} | saved,
            notion=notion,
            taus=TAUS if taus is None and epsilons is None else taus,
            epsilons=epsilons,
            attributes=attributes,
            min_group_size=ceil(min_group_size / TEST_SIZE),
            n_splits=splits,
            test_size=TEST_SIZE,
            sample_weight=columns.weights(X),
            transformer=encoder.set_params(exclude=outside, kinds=kinds),
            random_state=seed,
            n_jobs=jobs,
            verbose=verbose,
        )
    splits_table["error"] = splits_table["error"].map(_without_type)
    comparison = splits_table.attrs["comparison"]
    about = favourable_answer(label, [str(good)]), notion, comparison, attributes
    for place, name in enumerate(("favourable_answer", "notion", "comparison", "attributes")):
        splits_table.insert(place, name, about[place])
    return splits_table.assign(
        rows_dropped="; ".join(map(_dropped_words, dropped)),
        small_groups=_sizes(small),
        weight=weight,
        notes=" ".join(sentences([*caught, *more], spell)),
    )


def _quick(notion: str) -> list[str]:
    """Names of the quick methods that are made for a notion."""
    from evenhand.peers import PEERS

    return [key for key in QUICK if notion in (PEERS[key].notions or (notion,))]


def _as_read(plans: Sequence[Any]) -> tuple[list[str], dict[str, str]]:
    """Say of the plans of columns which are left out, and how the others are read."""
    outside = [p.column for p in plans if p.kind == "dropped"]
    kinds = {p.column: ", ".join(filter(None, [p.kind, p.written])) for p in plans}
    return outside, {column: kind for column, kind in kinds.items() if column not in outside}


def _large_groups(
    groups: pd.DataFrame, attributes: str, least: int
) -> tuple[NDArray[np.bool_], dict[str, int], dict[str, int]]:
    """Find the rows of groups that enough rows are tested on, and the sizes of the others.

    Last are the sizes of small combinations whose rows count within each of their columns.
    """
    every = list(groups.columns)
    sides = [every] if attributes == "crossed" else [[column] for column in every]
    rows, small = np.ones(len(groups), dtype=bool), dict[str, int]()
    for side in sides:
        large, few = _large(groups[side], least)
        rows &= large
        small |= few
    return rows, small, _large(groups[rows], least)[1] if attributes == "both" else {}


def _large(groups: pd.DataFrame, least: int) -> tuple[NDArray[np.bool_], dict[str, int]]:
    names, z = group_codes(groups)
    sizes = np.bincount(z)
    judged = (sizes * TEST_SIZE).astype(int)
    large, number, few = compared_groups(names, judged, least, " to test on")
    few_sizes = {str(name): int(sizes[names.tolist().index(name)]) for name in few}
    return number[z] < len(large), few_sizes


def _sizes(groups: Mapping[str, int]) -> str:
    return ", ".join(f"{name} ({n})" for name, n in groups.items())


def _dropped_words(dropped: Mapping[str, Any]) -> str:
    """Say how many rows were left out, and why."""
    whom = dropped.get("whom")
    of_whom = f" ({whom}; figures are of a selected part)" if whom else ""
    return f"{dropped['n']:,} rows {dropped['reason']}{of_whom}"


def _check_names(methods: Sequence[str], peers: Mapping[str, Any]) -> None:
    """Refuse names of methods that nobody knows."""
    unknown = [method for method in methods if method not in peers]
    if unknown:
        about = {"methods": Parameter("methods", unknown[:1])}
        raise InputError("unknown_method", names=", ".join(map(repr, peers)), **about)


def _check_saved(
    models: Mapping[str, SavedModel],
    favourable: str,
    table: str,
    sensitive: Sequence[str],
    attributes: str,
) -> None:
    """Refuse saved models of another answer; warn that they may have been fitted to test rows.

    Warn as well of models that compare the groups of other columns.
    """
    origins: dict[bool, list[str]] = {}
    for name, saved in models.items():
        piped = hasattr(saved.model, "steps")
        model = saved.model[-1] if piped else saved.model
        own = " or ".join(model.fitted_.favourable)
        if own != favourable:
            raise InputError("model_of_other_answer", model=name, own=own, favourable=favourable)
        here = saved.facts.get("fingerprint") == table
        origins.setdefault(here, []).append(name)
        columns = saved.model.sensitive_features if piped else sensitive
        columns = [columns] if isinstance(columns, str) else list(columns)
        mode = model.attributes if len(columns) > 1 else "crossed"
        if (columns, mode) != (list(sensitive), attributes):
            own = " × ".join(columns) if mode == "crossed" else f"each of {', '.join(columns)}"
            own += " and their combinations" * (mode == "both")
            warnings.warn(InputWarning("model_of_other_groups", model=name, own=own), stacklevel=2)
    for here, names in origins.items():
        several = len(names) > 1
        about = {"models": ", ".join(names), "they": "they were" if several else "it was"}
        warning = InputWarning("model_of_unknown_rows", are="are" if several else "is", **about)
        if here:
            warning = InputWarning("model_of_this_table", **about)
        warnings.warn(warning, stacklevel=2)


def _without_type(text: str) -> str:
    """Say why a method was left out without the name of an error's type."""
    name, _, reason = text.partition(": ")
    return reason if name.isidentifier() else text


# Datasets inside the package.
INSIDE = ("adult", "german")


def dataset_list() -> list[dict[str, Any]]:
    """List the datasets, as plain values."""
    from evenhand.datasets import DATASETS

    return [
        {
            "name": d.name,
            "title": d.title,
            "rows": d.rows,
            "what": d.what,
            "label": d.label,
            "favourable": str(d.favourable),
            "sensitive": [s.name for s in d.sensitive],
            "loader": f"evenhand.datasets.{d.loader}",
            "inside": d.name in INSIDE,
            "licence": d.licence,
        }
        for d in DATASETS.values()
    ]


def check_dataset(name: str) -> None:
    """Refuse the name of a dataset that does not exist."""
    from evenhand.datasets import DATASETS

    if name not in DATASETS:
        raise InputError("unknown_dataset", name=name, names=", ".join(DATASETS))


def dataset_frame(name: str) -> pd.DataFrame:
    """Give a dataset's table with its label and sensitive columns in it.

    Parameters
    ----------
    name : str
        Its name in :data:`evenhand.datasets.DATASETS`.
    """
    from evenhand import datasets

    check_dataset(name)
    record = datasets.DATASETS[name]
    data = getattr(datasets, record.loader)()
    missing = {} if record.label in data.frame else {record.label: data.target}
    return pd.DataFrame(data.frame.assign(**missing))
