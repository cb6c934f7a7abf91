"""What is written down after a fit: facts, and counts of plain logistic regression and of answers.

Counts are sums over :class:`~evenhand.core.rows.Rows`, in memory or with Dask's workers.
"""

import platform
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from evenhand._extras import package_version
from evenhand.core.errors import InputError
from evenhand.core.row_sums import float64_scores
from evenhand.core.rows import Block, Rows, as_columns
from evenhand.engines.memory import MemoryRows
from evenhand.frontier.held_out import count_cuts, count_rows
from evenhand.models.adjusted import FairAdjusted
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.classifier import FairClassifier
from evenhand.models.inputs import code_known_groups
from evenhand.models.training import Fit
from evenhand.persist.model_file import SavedModel
from evenhand.tables.encoder import as_names
from evenhand.tables.pipeline import FairPipeline

FloatArray = NDArray[np.float64]

# What has made the trees of a booster, whose figures vary with its version.
BOOSTERS = {"LGBMClassifier": "lightgbm", "XGBClassifier": "xgboost"}
# Cuts among which the best of plain logistic regression is sought if rows are elsewhere, in
# log-odds.
CUTS = np.arange(-1000, 1001) / 100


def with_counts(
    pipeline: FairPipeline, facts: Mapping[str, Any], parts: Mapping[str, Rows | None], *more: str
) -> SavedModel:
    """Give a fitted pipeline with what a report needs: facts, and counts on the rows of each part.

    ``parts`` are "train" and "test", which may be None; ``more`` are packages whose versions are
    written down beside those that every training uses.
    """
    model: FairClassifier = pipeline[-1]
    present = {part: rows for part, rows in parts.items() if rows is not None}
    booster = getattr(model, "booster_", "").partition("(")[0]  # FairClassifier has none
    more += (BOOSTERS[booster],) if booster in BOOSTERS else ()
    used = ("evenhand", "numpy", "scipy", "scikit-learn", "pandas", *more)
    written: dict[str, Any] = {
        **facts,
        "sensitive": as_names(pipeline.sensitive_features),
        **{f"n_{part}": 0 if rows is None else rows.n_samples for part, rows in parts.items()},
        "favourable": model.fitted_.favourable,
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "versions": {"python": platform.python_version()} | {p: package_version(p) for p in used},
        "plain": _plain(model, present),
    }
    for part, rows in present.items():
        add_answers(written, part, model, rows)
    return SavedModel(pipeline, written)


def group_numbers(model: FairClassifier, groups: pd.DataFrame) -> NDArray[np.intp]:
    """Group of each row as the classifier numbers them; an unknown one is an error."""
    small, edges = model.small_groups_, model.fitted_.edges
    return code_known_groups(
        "the model", model.groups_, groups, len(groups), small=small, edges=edges
    )


def rows_in_memory(
    pipeline: FairPipeline, X: Any, y: NDArray[Any], weight: Any = None, *, fitted: bool = False
) -> MemoryRows:
    """Encode a table, and number its groups and labels as the classifier does.

    Of the rows ``fitted`` to, a boosted model has the columns of models that have not seen them.
    """
    model = pipeline[-1]
    number = {label: i for i, label in enumerate(model.fitted_.labels.tolist())}
    codes = [number[label] for label in y.tolist()]
    z = group_numbers(model, pipeline.groups(X)[0])
    columns = as_columns(len(y), codes, z, n_labels=len(number), sample_weight=weight)
    if not isinstance(model, FairBoostedClassifier):
        return MemoryRows(pipeline[:-1].transform(X), columns)
    if not fitted:
        return MemoryRows(pipeline.boosted_columns(X), columns)
    if len(model.columns_) != len(y):
        raise InputError("not_the_fitted_rows")
    return MemoryRows(model.scaler_.transform(model.columns_), columns)


def add_answers(facts: dict[str, Any], part: str, model: FairClassifier, rows: Rows) -> None:
    """Write down what every point that answers some target predicts for the rows of a part.

    ``other`` has the same of the points for the other comparison, if the fit has them.
    """
    fit = model.fitted_
    sides = [(facts, fit.answers)]
    if fit.other is not None:
        sides.append((facts.setdefault("other", {}), fit.facing(fit.other.target).answers))
    for written, answers in sides:
        written["answers"] = len(answers)
        points = answers.points.take(answers.index)
        counts = count_rows(points, fit.trajectory.iterates, rows, fit.n_groups_all)
        written[f"{part}_counts"] = counts.tolist()


def facing_facts(facts: Mapping[str, Any], before: Fit, now: Fit) -> dict[str, Any]:
    """Give the facts of a model that was moved, to the other comparison or not."""
    other = facts.get("other")
    if other is None or now.target.comparison == before.target.comparison:
        return dict(facts)
    return {**facts, **other, "other": {name: facts[name] for name in other}}


def _plain(model: FairClassifier, parts: Mapping[str, Rows]) -> dict[str, Any]:
    """Count what plain logistic regression, where the fit began, predicts: at 0 and its best cut.

    Of an adjusted model it is the score that was brought instead.

    The best cut is that of the training rows; many labels have none.
    """
    w, n_labels = model.trajectory_.iterates[:1], len(model.classes_)
    if isinstance(model, FairAdjusted):
        w = model.before()[None]
    plain: dict[str, Any] = {"weights": w[0].tolist(), "counts": {}}
    cuts = np.zeros((1, n_labels))
    if n_labels == 2:
        fit = model.fitted_
        worths = fit.objective.worths(fit.frontier.last.counts.sum(axis=(0, 2)))
        cuts = np.array([0.0, _best_cut_on(parts["train"], w[0], worths)])
        plain["best_cut"] = {"cut": float(cuts[1]), "counts": {}}
    column = np.zeros(len(cuts), dtype=np.intp)
    for part, rows in parts.items():
        counted = count_cuts(rows, w, column, cuts, model.fitted_.n_groups_all, n_labels)
        counts = (counted if rows.weighted else counted.astype(int)).tolist()
        plain["counts"][part] = counts[0]
        if n_labels == 2:
            plain["best_cut"]["counts"][part] = counts[1]
    return plain


def _best_cut_on(rows: Rows, w: FloatArray, worths: FloatArray) -> float:
    """Find the most accurate cut: of rows in memory among all, else among ``CUTS``.

    Or the best one by another objective, with what a right answer of each label is worth.
    """
    if not isinstance(rows, MemoryRows):
        return best_cut(CUTS, rows.sum(_block_gains, w, CUTS, worths))
    scores, cell, weight = rows.collect(_scores_and_cells, w)
    s = np.unique(scores)
    cuts = np.unique([0.0, s[0] - 1, *(s[:-1] + np.diff(s) / 2), s[-1]])
    return best_cut(cuts, _cut_gains(scores, cell, cuts, worths, weight))


def _scores_and_cells(block: Block, w: FloatArray) -> FloatArray:
    weight = np.ones(len(block.cell)) if block.weight is None else block.weight
    return np.stack([float64_scores(block, w), block.cell, weight])


def _block_gains(block: Block, w: FloatArray, cuts: FloatArray, worths: FloatArray) -> FloatArray:
    return _cut_gains(float64_scores(block, w), block.cell, cuts, worths)


def _cut_gains(
    scores: FloatArray,
    cell: NDArray[Any],
    cuts: FloatArray,
    worths: FloatArray,
    weight: Any = 1.0,
) -> FloatArray:
    """Give how many more rows are right when the cut rises to each of ``cuts`` from the one before.

    Rows count by their weight and what their label is worth. The last number is of the rows above
    all cuts. Odd cells are those of the favourable label.
    """
    gain = np.where(cell % 2 == 1, -worths[1], worths[0]) * weight
    gains = np.bincount(np.searchsorted(cuts, scores), weights=gain, minlength=len(cuts) + 1)
    return gains.astype(np.float64)


def best_cut(cuts: FloatArray, gains: FloatArray) -> float:
    """Find the most accurate of rising cuts; 0, which is among them, if no other is better."""
    right = np.cumsum(gains)[:-1]
    i = int(np.argmax(right))
    return float(cuts[i]) if right[i] > right[np.searchsorted(cuts, 0.0)] else 0.0
