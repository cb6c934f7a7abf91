"""Evenhand and its peers on the same splits of one table, and what each reaches."""

import gc
import math
import mmap
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from numbers import Integral
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from joblib import Parallel, delayed
from scipy.sparse import issparse
from sklearn.base import clone
from sklearn.utils import check_consistent_length, check_random_state, get_tags
from sklearn.utils.validation import has_fit_parameter

from evenhand._extras import package_version
from evenhand._sklearn import check_sample_weight, safe_indexing
from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import group_codes
from evenhand.core.metrics import group_counts
from evenhand.core.notions import NOTIONS, AnyNotion, notion_name
from evenhand.core.rates import RATES, overall_accuracy
from evenhand.core.targets import Target
from evenhand.datasets import stratified_rows
from evenhand.models.inputs import check_labels
from evenhand.models.method import Method
from evenhand.models.progress import job_bar
from evenhand.peers._registry import PeerRecord, groups_to_fit, named_peers

_OWN = ("evenhand", "scikit-learn")


class _Data(NamedTuple):
    """The table, its labels, groups and weights, and the transformer to fit on training parts."""

    X: Any
    y: Any
    z: Any
    weight: Any
    transformer: Any


class Answer(NamedTuple):
    """A fitted classifier with its counts on the training data."""

    estimator: Any
    counts: Any


# Least share of positives, and of negatives, in each group; a classifier below it does not count.
MIN_SHARE = Method().min_share


def _takes_sparse(estimator: Any) -> bool:
    return hasattr(estimator, "__sklearn_tags__") and bool(get_tags(estimator).input_tags.sparse)


def _predict(estimator: Any, X: Any, z: Any) -> Any:
    if getattr(estimator, "needs_group", False):
        return estimator.predict(X, sensitive_features=z)
    return estimator.predict(X)


def _accuracy(counts: Any) -> float:
    return float(overall_accuracy(counts))


def pick(answers: Sequence[Answer], tau: float, notion: AnyNotion, min_share: float) -> Answer:
    """Choose for τ as the frontier does: the most accurate that reaches it, else the fairest."""
    target = Target(notion.rate, tau)

    def merit(answer: Answer) -> tuple[bool, float, float]:
        rate = float(target.value(answer.counts))
        rate = rate if notion.eligible(answer.counts, min_share) and rate >= 0 else -1.0
        accuracy = _accuracy(answer.counts)
        return (True, accuracy, rate) if target.reached(rate) else (False, rate, accuracy)

    return max(answers, key=merit)


def _resident_mib() -> float:
    """Resident memory of this process, as Linux gives it; NaN on other systems."""
    try:
        pages = Path("/proc/self/statm").read_text(encoding="ascii").split()[1]
    except OSError:
        return math.nan
    return int(pages) * mmap.PAGESIZE / 2**20


@contextmanager
def _memory() -> Iterator[list[float]]:
    """Yield a list that holds, afterwards, the rise of resident memory in MiB; NaN if unknown."""
    gc.collect()
    before, done = _resident_mib(), threading.Event()
    rise = [before - before]  # 0, or NaN, which no comparison below replaces

    def watch() -> None:
        while not done.wait(0.01):
            rise[0] = max(rise[0], _resident_mib() - before)

    thread = threading.Thread(target=watch, daemon=True)
    thread.start()
    try:
        yield rise
    finally:
        rise[0] = max(rise[0], _resident_mib() - before)
        done.set()
        thread.join()


def fit_all(
    peer: PeerRecord,
    notion: str,
    taus: Sequence[float],
    seed: int,
    X: Any,
    y: Any,
    z: Any,
    weight: Any = None,
) -> Callable[[float], Any]:
    """Fit what the peer needs for all τ; return the choice of a fitted classifier for one."""
    weights = {} if weight is None else {"sample_weight": weight}
    takes = peer.saved or has_fit_parameter(peer.make(notion, seed), "sample_weight")
    if weights and not takes:
        raise InputError("peer_without_weights")
    given = {"sensitive_features": z, **weights}

    def fitted(**params: Any) -> Any:
        estimator = clone(peer.make(notion, seed)).set_params(**params)
        return estimator.fit(X, y, **weights, **groups_to_fit(estimator, z))

    def counts(estimator: Any) -> Any:
        return group_counts(y, _predict(estimator, X, z), **given)[1]

    if peer.path:
        ((name, values),) = peer.path.items()
        estimator = clone(peer.make(notion, seed))
        if hasattr(estimator, "fit_path"):
            models = estimator.fit_path(X, y, bounds=values, **given)
        else:
            models = [fitted(**{name: value}) for value in values]
        answers = [Answer(model, counts(model)) for model in models]
        record = NOTIONS[notion](2)
        return lambda tau: pick(answers, tau, record, MIN_SHARE).estimator
    if peer.saved:
        return peer.make(notion, seed).at
    estimator = clone(peer.make(notion, seed))
    if hasattr(estimator, "at"):
        estimator = fitted(tau=min(taus)) if "tau" in estimator.get_params() else fitted()
        return lambda tau: estimator.at(tau)
    if "tau" in estimator.get_params():
        by_tau = {tau: fitted(tau=tau) for tau in taus}
        return by_tau.__getitem__
    estimator = fitted()
    return lambda tau: estimator


def _why_ineligible(notion: AnyNotion, groups: Any, counts: Any, z: Any) -> str:
    """Name the group that makes a classifier ineligible, the smallest of several; else nothing."""
    wrong = [j for j in range(len(counts)) if not notion.eligible(counts[j : j + 1], MIN_SHARE)]
    if not wrong:
        return ""
    j = min(wrong, key=lambda j: float(counts[j].sum()))
    share = float(RATES["selection_rate"].per_group(counts)[j])
    n = int(np.bincount(group_codes(z)[1])[j])
    inside = MIN_SHARE <= share <= 1 - MIN_SHARE
    what = "its rate is no better than chance" if inside else f"{share:.1%} get the favourable one"
    return f"of the group {groups[j]} ({n} test row{'s' * (n != 1)}) {what}"


def _run(
    key: str,
    peer: PeerRecord,
    data: _Data,
    notion: str,
    taus: Sequence[float],
    split: int,
    parts: tuple[Any, Any],
    seed: int,
) -> list[dict[str, Any]]:
    """Rows of the table for one peer on one split."""
    record = NOTIONS[notion](2)
    X, y, z = ([safe_indexing(v, part) for part in parts] for v in data[:3])
    weight = [None if data.weight is None else data.weight[part] for part in parts]
    if data.transformer is not None and not peer.saved:
        encoder = clone(data.transformer)
        X = [encoder.fit_transform(X[0]), encoder.transform(X[1])]
    if issparse(X[0]) and not peer.saved and not _takes_sparse(peer.make(notion, seed)):
        X = [inputs.toarray() for inputs in X]
    about = {
        "method": peer.name,
        "key": key,
        "split": split,
        "needs_group": bool(getattr(peer.make(notion, seed), "needs_group", False)),
        "versions": ", ".join(f"{p} {package_version(p)}" for p in (*_OWN, *peer.packages)),
        "error": "",
    }
    try:
        # A peer's warnings are not the caller's; what it reached is in the table.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            with _memory() as rise:
                choose = fit_all(peer, notion, taus, seed, X[0], y[0], z[0], weight[0])
                chosen = {tau: choose(tau) for tau in taus}
            about |= {"seconds": time.perf_counter() - start, "memory_mib": rise[0]}
            rows = []
            for tau, estimator in chosen.items():
                row = {**about, "tau": tau}
                rows.append(row)
                for where, i in (("train_", 0), ("", 1)):
                    levels, counts = group_counts(
                        y[i],
                        _predict(estimator, X[i], z[i]),
                        sensitive_features=z[i],
                        sample_weight=weight[i],
                    )
                    row[f"{where}accuracy"] = _accuracy(counts)
                    row[f"{where}rate"] = float(record.rate.ratio(counts))
                row["eligible"] = bool(record.eligible(counts, MIN_SHARE))
                row["ineligible"] = _why_ineligible(record, levels, counts, z[1])
                for component in record.rate.components:
                    for group, rate in zip(levels, component.per_group(counts), strict=True):
                        row[f"{component.name}[{group}]"] = float(rate)
            return rows
    except (Exception, SystemExit) as error:  # one failure must not cost the others' results
        text = " ".join(str(error).split()) or "no message"
        about["error"] = f"{type(error).__name__}: {text}"
        return [{**about, "tau": tau} for tau in taus]


def compare(
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    methods: Any = ("evenhand", "accuracy_only", "reweighing", "group_thresholds", "celis"),
    notion: str = "statistical_parity",
    taus: Sequence[float] = (0.7, 0.8, 0.9, 0.95),
    n_splits: int = 5,
    test_size: float = 0.3,
    sample_weight: Any = None,
    transformer: Any = None,
    random_state: Any = 0,
    n_jobs: int | None = None,
    verbose: int = 1,
) -> pd.DataFrame:
    """Fit evenhand and its peers on the same splits of a table and measure them on the test parts.

    Parameters
    ----------
    X : array-like, sparse matrix or DataFrame of shape (n_samples, n_features)
        Inputs; numbers, or whatever ``transformer`` makes numbers of. Peers that do not take
        sparse inputs get them dense.
    y : array-like of shape (n_samples,)
        Two-valued labels; the larger one is the favourable outcome.
    sensitive_features : array-like of shape (n_samples,)
        Group of each row, two or more; methods that take two only are left out, and ``error``
        says so.
    methods : "all", sequence or mapping
        Names of :data:`PEERS`, :class:`PeerRecord` objects, paths of saved models, or a mapping of
        names to estimators or saved models. Any scikit-learn estimator will do; one whose ``fit``
        takes ``sensitive_features`` is given them. A saved model is not fitted: it gets the rows
        without ``transformer``, and if it was fitted to some of the test rows its figures are too
        good. ``"all"`` is every method made for the notion; some need ``pip install '.[peers]'``.
    notion : str, default="statistical_parity"
        The rate the groups shall share.
    taus : sequence of float, default=(0.7, 0.8, 0.9, 0.95)
        The targets, on training data.
    n_splits : int, default=5
        Random splits, stratified on label and group.
    test_size : float, default=0.3
        Share of the test part.
    sample_weight : array-like of shape (n_samples,), optional
        Row weights, in fits and in figures; methods that take none are left out.
    transformer : transformer, optional
        Fitted on each training part and applied to both, for instance ``StandardScaler()`` or the
        ``encoder`` of a dataset.
    random_state : int, RandomState or None, default=0
        Seed of the splits and the peers.
    n_jobs : int, optional
        Fits at a time, as in joblib. Times are best compared with one.
    verbose : int, default=1
        1 shows a progress bar.

    Returns
    -------
    DataFrame
        A row for each peer, split and τ:

        - ``method``, ``key``, ``split``, ``tau``;
        - ``accuracy``, ``rate`` (smallest to largest group rate) on test data,
          ``train_accuracy``, ``train_rate``, and a column for each group's rate;
        - ``eligible``: whether every group of the test part has between 1% and 99% predicted
          positives (and, for false discovery, does better than chance): a classifier that answers
          the same to everybody has a ratio of 1 and is of no use; ``ineligible``: the group that
          makes it ineligible, with its rows, else empty;
        - ``needs_group``: whether it needs each row's group to predict;
        - ``seconds`` and ``memory_mib``: time, and rise of the process's resident memory, of the
          peer's fits on the split for all τ together; the memory is NaN on systems other than
          Linux, which do not give it;
        - ``versions`` of what it ran; ``error``: why it failed, else empty.

    See Also
    --------
    summarize : Means over the splits with their standard errors.
    accuracy_at_rate : Accuracy of each peer's mean curve at given rates.
    evenhand.views.plots.ComparisonDisplay : The picture.

    Examples
    --------
    >>> from evenhand.datasets import load_german
    >>> from evenhand.peers import compare, summarize
    >>> german = load_german()
    >>> table = compare(
    ...     german.data, german.target, german.sensitive_features, transformer=german.encoder,
    ...     methods=["evenhand", "accuracy_only"], taus=[0.9], n_splits=2, verbose=0)
    >>> table[["method", "split", "needs_group"]]
                          method  split  needs_group
    0                   evenhand      0        False
    1                   evenhand      1        False
    2  plain logistic regression      0        False
    3  plain logistic regression      1        False
    """
    notion = notion_name(notion)
    taus = [float(tau) for tau in np.atleast_1d(taus)]
    wrong = [tau for tau in taus if not 0 < tau <= 1]
    if wrong or not taus:
        raise InputError("bad_targets", taus=Parameter("taus", taus))
    if not isinstance(n_splits, Integral) or n_splits < 1:
        raise InputError("bad_splits", n_splits=Parameter("n_splits", n_splits))
    chosen = named_peers(methods, notion)
    y, z = (np.asarray(v) if isinstance(v, list | tuple) else v for v in (y, sensitive_features))
    check_consistent_length(X, y, z)
    check_labels(y)
    labels, y = np.unique(np.asarray(y), return_inverse=True)
    if len(labels) != 2:
        raise InputError(
            "compare_needs_two_labels",
            n=len(labels),
            labels=", ".join(map(repr, labels.tolist()[:5])),
        )
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_splits)
    parts = [stratified_rows(y, z, test_size=test_size, random_state=int(s)) for s in seeds]
    weight = None if sample_weight is None else check_sample_weight(sample_weight, z)
    data = _Data(X, y, z, weight, transformer)
    jobs = [(key, peer, i) for i in range(n_splits) for key, peer in chosen.items()]
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results: list[dict[str, Any]] = []
    with job_bar(verbose, len(jobs)) as advance:
        for rows in pool(
            delayed(_run)(key, peer, data, notion, taus, i, parts[i], int(seeds[i]))
            for key, peer, i in jobs
        ):
            results += rows
            advance(f"{rows[0]['method']}, split {rows[0]['split']}")
    frame = pd.DataFrame(results)
    if (frame["error"] != "").all():
        raise InputError("no_peer_fitted", reason=frame["error"].iloc[0])
    ordered = ["method", "key", "split", "tau", "accuracy", "rate", "train_accuracy", "train_rate"]
    names = tuple(f"{component.name}[" for component in NOTIONS[notion](2).rate.components)
    ordered += [c for c in frame if c.startswith(names)]
    ordered += ["eligible", "ineligible", "needs_group"]
    ordered += ["seconds", "memory_mib", "versions", "error"]
    frame = frame.reindex(columns=ordered)
    place = {key: i for i, key in enumerate(chosen)}
    frame = frame.sort_values(
        ["key", "split", "tau"], key=lambda c: c.map(place) if c.name == "key" else c
    ).reset_index(drop=True)
    frame.attrs["rate_name"] = NOTIONS[notion](2).rate.ratio_name
    return frame
