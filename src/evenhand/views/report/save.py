"""The report of a pipeline that was fitted in Python."""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from evenhand._atomic import write_atomically
from evenhand.core.errors import InputError, Parameter
from evenhand.models.adjusted import FairAdjusted
from evenhand.models.boosted import FairBoostedClassifier
from evenhand.models.classifier import FairClassifier
from evenhand.models.inputs import check_weights
from evenhand.tables.columns import as_table
from evenhand.tables.pipeline import FairPipeline
from evenhand.views.report.page import render
from evenhand.workflow.labels import check_new_rows, fingerprint
from evenhand.workflow.summary import summarise
from evenhand.workflow.train import with_facts

__all__ = ["save_report"]


def save_report(
    model: FairPipeline,
    path: str | os.PathLike[str],
    X: Any,
    y: Any,
    *,
    X_test: Any = None,
    y_test: Any = None,
    title: str = "table",
    label: str | None = None,
    sample_weight: Any = None,
    sample_weight_test: Any = None,
) -> None:
    """Write the page that ``evenhand train`` writes, for the person who signs.

    A fit keeps no rows, so the page is given them again to count on.

    Parameters
    ----------
    model : FairPipeline
        Fitted, from :func:`evenhand.fair_pipeline`.
    path : path-like
        The HTML file.
    X, y : table and array-like of shape (n_rows,)
        What the pipeline was fitted to.
    X_test, y_test : table and array-like of shape (n_rows,), optional
        Rows to test on, none of which the pipeline was fitted to. Of a pipeline fitted with
        ``persons`` nothing exact is said of the population, because several may be of one person.
    title : str, default="table"
        What to call the table.
    label : str, optional
        What to call the label; the name of ``y`` by default, if it has one.
    sample_weight, sample_weight_test : array-like of shape (n_rows,), optional
        Weights of the rows, if the pipeline was fitted with weights.
    """
    classifier = model[-1] if isinstance(model, FairPipeline) else None
    if type(classifier) not in (FairClassifier, FairBoostedClassifier, FairAdjusted):
        raise TypeError(
            "a report is of a FairClassifier in a fair_pipeline, or a FairBoostedClassifier or "
            f"FairAdjusted, which knows the table's columns; this is a {type(model).__name__}."
        )
    check_is_fitted(model)
    method = getattr(classifier, "classifier_", classifier).method
    if method.init == "zero" or method.noise:
        raise InputError(
            "report_without_plain_model",
            init=Parameter("init", method.init),
            extra_column=Parameter("extra_column", method.extra_column),
        )
    if (X_test is None) != (y_test is None):
        raise InputError("half_a_test", given=Parameter("X_test"), other=Parameter("y_test"))
    survey = classifier.survey_weights
    parts: list[tuple[Any, Any, Any]] = []
    for table, labels, given in ((X, y, sample_weight), (X_test, y_test, sample_weight_test)):
        if labels is None:
            parts.append((None, None, None))
        else:
            table, labels = as_table(table), np.asarray(labels)
            kept = model.groups(table)[1]
            if len(labels) != len(kept):
                raise InputError("labels_of_other_rows", n=len(kept), n_labels=len(labels))
            unknown = set(labels.tolist()) - set(model.classes_.tolist())
            if unknown:
                raise InputError("unknown_label", label=min(unknown, key=str))
            given = None if given is None else np.asarray(given)[kept]
            table, labels = table.take(kept), labels[kept]
            weight, used = check_weights(table, given, survey=survey)
            if used is not None:
                counted = np.isin(np.arange(len(labels)), used)
                table, labels, weight = table.take(counted), labels[counted], weight[used]
            parts.append((table, labels, weight))
    dropped = [{"reason": "without a group", "n": len(y) - len(parts[0][1])}]
    if y_test is not None:
        n = len(y_test) - len(parts[1][1])
        dropped.append({"reason": "of the test table without a group", "n": n, "part": "test"})
        check_new_rows(parts[0][0], parts[1][0], "X_test")
    seed = classifier.random_state
    facts = {
        "title": title,
        "label": label or str(getattr(y, "name", None) or "label"),
        "n_rows": len(y),
        "rows_dropped": [d for d in dropped if d["n"]],
        "test_title": "the test table",
        "fingerprint": fingerprint(X),
        "person": "persons" if getattr(model, "by_person_", False) else None,
        "seed": seed if isinstance(seed, int) else 0,
        "command": "",
        "weight": None if sample_weight is None else "sample_weight",
    }
    saved = with_facts(model, facts, train=parts[0], test=parts[1])
    counts, fitted = np.array(saved.facts["train_counts"][-1]), classifier.frontier_.last.counts
    # Of rows that were held out the frontier does not know.
    slack = 0.0 if sample_weight is None else 1e-9 * counts.sum()
    more, less = fitted > counts + slack, fitted < counts - slack
    if more.any() or (classifier.held_out_ is None and less.any()):
        raise InputError("not_the_fitted_rows")
    page = render(summarise(saved)).encode()
    write_atomically(path, lambda file: file.write(page))
