"""Evenhand and its peers on the same splits of one table, and what each reaches."""

import gc
import math
import mmap
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
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

from evenhand._extras import package_version
from evenhand._sklearn import check_sample_weight, safe_indexing
from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import crossed, group_codes
from evenhand.core.notions import NOTIONS, notion_name
from evenhand.core.rates import RATES
from evenhand.core.targets import READ
from evenhand.datasets import stratified_rows
from evenhand.engines.coding import attribute_columns, make_partitions
from evenhand.models.inputs import check_labels
from evenhand.models.progress import job_bar
from evenhand.peers._fit import MIN_SHARE, Aim, accuracy_of, fit_all, predicted_by
from evenhand.peers._registry import PeerRecord, named_peers

_OWN = ("evenhand", "scikit-learn")
# The targets if none are given.
TAUS = (0.7, 0.8, 0.9, 0.95)


class _Data(NamedTuple):
    """The table, its labels, groups and weights, and the transformer to fit on training parts.

    ``columns`` are the attributes by themselves, of which ``z`` are the combinations.
    """

    X: Any
    y: Any
    z: Any
    columns: Any
    weight: Any
    transformer: Any


def _takes_sparse(estimator: Any) -> bool:
    return hasattr(estimator, "__sklearn_tags__") and bool(get_tags(estimator).input_tags.sparse)


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


def _why_ineligible(aim: Aim, groups: Any, counts: Any, z: Any) -> str:
    """Name the group that makes a classifier ineligible, the smallest of several; else nothing."""
    notion, wrong = NOTIONS[aim.notion](2), []
    codes = np.searchsorted(groups, z) if aim.partitions else group_codes(z)[1]
    rows = np.bincount(codes, minlength=len(counts))
    sides: list[Any] = [(groups, counts, rows)]
    if aim.partitions:
        sides = [(by.groups, by.merge(counts, -3), by.merge(rows)) for by in aim.partitions]
    for names, of_groups, sizes in sides:
        for name, one, n in zip(names, of_groups, sizes.tolist(), strict=True):
            if not notion.eligible(one[None], MIN_SHARE):
                wrong.append((float(one.sum()), name, one, n))
    if not wrong:
        return ""
    _, name, one, n = min(wrong, key=lambda found: found[0])
    share = float(RATES["selection_rate"].per_group(one))
    inside = MIN_SHARE <= share <= 1 - MIN_SHARE
    what = "its rate is no better than chance" if inside else f"{share:.1%} get the favourable one"
    return f"of the group {name} ({n} test row{'s' * (n != 1)}) {what}"


def _run(
    key: str,
    peer: PeerRecord,
    data: _Data,
    aim: Aim,
    levels: Sequence[float],
    split: int,
    parts: tuple[Any, Any],
    seed: int,
) -> list[dict[str, Any]]:
    """Rows of the table for one peer on one split."""
    record, (measured, sign) = aim.record, READ[aim.comparison]
    X, y, z = ([safe_indexing(v, part) for part in parts] for v in data[:3])
    columns = None if data.columns is None else safe_indexing(data.columns, parts[0])
    weight = [None if data.weight is None else data.weight[part] for part in parts]
    if data.transformer is not None and not peer.saved:
        encoder = clone(data.transformer)
        X = [encoder.fit_transform(X[0]), encoder.transform(X[1])]
    if issparse(X[0]) and not peer.saved and not _takes_sparse(peer.make(aim.notion, seed)):
        X = [inputs.toarray() for inputs in X]
    about = {
        "method": peer.name,
        "key": key,
        "split": split,
        "needs_group": bool(getattr(peer.make(aim.notion, seed), "needs_group", False)),
        "versions": ", ".join(f"{p} {package_version(p)}" for p in (*_OWN, *peer.packages)),
        "error": "",
    }
    try:
        # A peer's warnings are not the caller's; what it reached is in the table.
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            start = time.perf_counter()
            with _memory() as rise:
                fit = peer, aim, levels, seed, X[0], y[0], z[0], weight[0], columns
                choose = fit_all(*fit)
                chosen = {level: choose(level) for level in levels}
            about |= {"seconds": time.perf_counter() - start, "memory_mib": rise[0]}
            rows = []
            for level, estimator in chosen.items():
                row, target = {**about, aim.parameter: level}, aim.target(level)
                rows.append(row)
                for where, i in (("train_", 0), ("", 1)):
                    predicted = predicted_by(estimator, X[i], z[i])
                    names, counts = aim.counts(y[i], predicted, z[i], weight[i])
                    row[f"{where}accuracy"] = accuracy_of(counts)
                    row[f"{where}{measured}"] = sign * float(target.value(counts)) + 0.0
                own = np.array(target.values(counts))
                row["judged_by"] = target.name
                if len(own) > 1 and not np.isnan(own).any():
                    row["judged_by"] = target.components[int(np.argmin(own))].name
                row["eligible"] = bool(record.eligible(counts, MIN_SHARE))
                row["ineligible"] = _why_ineligible(aim, names, counts, z[1])
                for component in record.rate.components:
                    by = "" if component.by is None else f"{component.by.name}: "
                    rates = component.per_group(counts)
                    for group, rate in zip(component.groups(names), rates, strict=True):
                        row[f"{component.name}[{by}{group}]"] = float(rate)
            return rows
    except (Exception, SystemExit) as error:  # one failure must not cost the others' results
        text = " ".join(str(error).split()) or "no message"
        about["error"] = f"{type(error).__name__}: {text}"
        return [{**about, aim.parameter: level} for level in levels]


def compare(
    X: Any,
    y: Any,
    sensitive_features: Any,
    *,
    methods: Any = ("evenhand", "accuracy_only", "reweighing", "group_thresholds", "celis"),
    notion: str = "statistical_parity",
    taus: Sequence[float] | None = None,
    epsilons: Sequence[float] | None = None,
    attributes: str = "crossed",
    min_group_size: int = 1,
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
    sensitive_features : array-like of shape (n_samples,) or (n_samples, n_attributes)
        Group of each row, two or more; several columns are crossed. Methods that take two groups
        only are left out, and ``error`` says so.
    methods : "all", sequence or mapping
        Names of :data:`PEERS`, :class:`PeerRecord` objects, paths of saved models, or a mapping of
        names to estimators or saved models. Any scikit-learn estimator will do; one whose ``fit``
        takes ``sensitive_features`` is given them. A saved model is not fitted: it gets the rows
        without ``transformer``, and if it was fitted to some of the test rows its figures are too
        good. ``"all"`` is every method made for the notion; some need ``pip install '.[peers]'``.
    notion : str, default="statistical_parity"
        The rate the groups shall share.
    taus : sequence of float, optional
        The targets, on training data: least ratios; (0.7, 0.8, 0.9, 0.95) unless ``epsilons`` are
        given.
    epsilons : sequence of float, optional
        Largest differences, in place of ``taus``.
    attributes : {"crossed", "each", "both"}, default="crossed"
        Which groups of several columns all methods are judged by, as of
        :class:`~evenhand.FairClassifier`; the worst counts. A method that cannot be asked for that,
        or not for differences, is asked for several ratios between the crossed groups, and gets the
        most accurate of these on the training data that reaches the target.
    min_group_size : int, default=1
        Of ``attributes`` that are not crossed alone: groups with fewer rows are not compared. The
        rows of a small combination count within each of its columns.
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

        - ``method``, ``key``, ``split``, ``tau`` (or ``epsilon``);
        - ``accuracy``, ``rate`` (smallest to largest group rate) on test data,
          ``train_accuracy``, ``train_rate``, and a column for each group's rate; for ``epsilons``
          ``difference`` (largest less smallest) takes the place of ``rate``;
        - ``judged_by``: the comparison that is in it, of several the worst on the test part;
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
    comparison, levels = _levels(taus, epsilons)
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
    aim, columns = Aim(notion, comparison), None
    if attributes != "crossed":
        columns = attribute_columns(z)
        names, codes = group_codes(z)
        if columns is not None:
            both = attributes == "both"
            parts = make_partitions(columns, codes, names, min_group_size, crossed_too=both)
            aim = Aim(notion, comparison, attributes, tuple(names.tolist()), parts)
            columns = columns.reset_index(drop=True)
    z = crossed(z, "sensitive_features").reset_index(drop=True)
    strata = z if columns is None else _strata(y, codes)
    seeds = check_random_state(random_state).randint(2**31 - 1, size=n_splits)
    parts = [stratified_rows(y, strata, test_size=test_size, random_state=int(s)) for s in seeds]
    weight = None if sample_weight is None else check_sample_weight(sample_weight, z)
    data = _Data(X, y, z, columns, weight, transformer)
    jobs = [(key, peer, i) for i in range(n_splits) for key, peer in chosen.items()]
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    results: list[dict[str, Any]] = []
    with job_bar(verbose, len(jobs)) as advance:
        for rows in pool(
            delayed(_run)(key, peer, data, aim, levels, i, parts[i], int(seeds[i]))
            for key, peer, i in jobs
        ):
            results += rows
            advance(f"{rows[0]['method']}, split {rows[0]['split']}")
    frame = pd.DataFrame(results)
    if (frame["error"] != "").all():
        raise InputError("no_peer_fitted", reason=frame["error"].iloc[0])
    name, measured = aim.parameter, READ[comparison][0]
    ordered = ["method", "key", "split", name]
    ordered += ["accuracy", measured, "train_accuracy", f"train_{measured}", "judged_by"]
    names = tuple(f"{component.name}[" for component in aim.record.rate.components)
    ordered += [c for c in frame if c.startswith(names)]
    ordered += ["eligible", "ineligible", "needs_group"]
    ordered += ["seconds", "memory_mib", "versions", "error"]
    frame = frame.reindex(columns=ordered)
    place = {key: i for i, key in enumerate(chosen)}
    frame = frame.sort_values(
        ["key", "split", name], key=lambda c: c.map(place) if c.name == "key" else c
    ).reset_index(drop=True)
    frame.attrs |= {"rate_name": aim.target(levels[0]).name, "comparison": comparison}
    return frame


def _levels(taus: Any, epsilons: Any) -> tuple[str, list[float]]:
    """Check the targets; say how groups are compared."""
    if taus is not None and epsilons is not None:
        given = {"tau": Parameter("taus"), "epsilon": Parameter("epsilons")}
        raise InputError("one_comparison", **given)
    if epsilons is not None:
        levels = [float(epsilon) for epsilon in np.atleast_1d(epsilons)]
        if not levels or not all(0 <= epsilon < 1 for epsilon in levels):
            raise InputError("bad_epsilons", epsilons=Parameter("epsilons", levels))
        return "difference", levels
    levels = [float(tau) for tau in np.atleast_1d(TAUS if taus is None else taus)]
    if not levels or not all(0 < tau <= 1 for tau in levels):
        raise InputError("bad_targets", taus=Parameter("taus", levels))
    return "ratio", levels


def _strata(y: Any, z: Any) -> Any:
    """Give each row's combination of attributes, those too rare to be split with the commonest."""
    cells = np.bincount(2 * z + y, minlength=2 * (z.max() + 1)).reshape(-1, 2)
    return np.where((cells == 1).any(axis=1)[z], cells.sum(axis=1).argmax(), z)
