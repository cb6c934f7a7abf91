"""Made data: the example on which the plain update stays unfair, and tables of any size."""

from collections.abc import Iterator
from functools import cache
from numbers import Integral
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.sparse import csr_array
from sklearn.utils import Bunch, check_random_state

from evenhand._extras import documented
from evenhand.core.errors import InputError, Parameter
from evenhand.datasets._bunch import SHARED, number_scaler, pack
from evenhand.datasets._correlation import unreachable
from evenhand.datasets._loaders import load_adult

# Rows come in blocks of this many, each from a generator of its own. Part of what a seed means.
_BLOCK = 65536
_SEXES = ("Female", "Male")


def _check_count(name: str, value: Any, least: int) -> None:
    """Refuse a number of rows that is not whole or too small."""
    if not isinstance(value, Integral) or value < least:
        raise InputError("bad_count", parameter=Parameter(name, value), least=least)


@documented(SHARED)
def make_counterexample(
    n_samples: int = 1000,
    *,
    skew: float = 0.9,
    random_state: Any = None,
    as_frame: bool = True,
    return_X_y_z: bool = False,
) -> Any:
    r"""Make data on which the update without the projection stays unfair.

    Half of the rows are of group 0, and most of those, a share ``skew``, have label 0; group 1 has
    both labels equally often. One input follows the group, :math:`x_1 = z + \tfrac12\varepsilon_1`,
    the other the label, :math:`x_2 = y + \varepsilon_2`, with standard normal noise. An accurate
    classifier gives group 0 few favourable outcomes, so the gradients of the loss and of the
    unfairness point against each other: without the projection the loss wins. (Where steps are
    small and fixed and the start is zero, early iterates that answer the same to everybody may
    still pass for fair.)

    Parameters
    ----------
    n_samples : int, default=1000
        Rows.
    skew : float, default=0.9
        Share of label 0 in group 0, from 0.5 (no difference between the groups) to 1.
    random_state, as_frame, return_X_y_z

    Returns
    -------
    Bunch
        ``data`` (columns ``group_proxy`` and ``label_proxy``), ``target``, ``sensitive_features``
        (0, 1), ``encoder``, ``frame``, ``feature_names``, ``DESCR``, as the loaders give them.

    Examples
    --------
    >>> from evenhand.datasets import make_counterexample
    >>> X, y, z = make_counterexample(random_state=0, return_X_y_z=True)
    >>> X.shape, bool(y[z == 0].mean() < 0.2 < y[z == 1].mean())
    ((1000, 2), True)
    """
    if not 0.5 <= skew <= 1:
        raise InputError("bad_skew", skew=Parameter("skew", skew))
    _check_count("n_samples", n_samples, 4)  # both labels in both groups
    random = check_random_state(random_state)
    z = random.permutation(np.arange(n_samples) % 2)
    y = (random.uniform(size=n_samples) < np.where(z == 0, 1 - skew, 0.5)).astype(int)
    noise = random.normal(size=(n_samples, 2))
    X = pd.DataFrame({"group_proxy": z + noise[:, 0] / 2, "label_proxy": y + noise[:, 1]})
    frame = X.assign(y=y, z=z)
    return pack(
        X,
        frame["y"],
        frame["z"],
        numbers=list(X.columns),
        frame=frame,
        descr=f"Made by evenhand.datasets.make_counterexample: {n_samples} rows, skew {skew}.",
        as_frame=as_frame,
        return_X_y_z=return_X_y_z,
    )


class _Population(NamedTuple):
    """Adult's complete rows, ready to be drawn from."""

    X: NDArray[np.float32]
    y: NDArray[np.int8]
    male: NDArray[np.int8]
    names: list[str]
    smooth: list[int]
    columns: NDArray[np.int32]  # the 11 columns of each row that a sparse matrix holds
    values: NDArray[np.float32]


@cache
def _population() -> _Population:
    X, y, z = load_adult("full", return_X_y_z=True)
    names = list(X.columns)
    dense = X.to_numpy(dtype=np.float32)
    # numbers are stored even where they are 0, so that every row has as many entries
    stored = dense != 0
    stored[:, :5] = True
    columns = np.nonzero(stored)[1].reshape(len(dense), -1).astype(np.int32)
    return _Population(
        dense,
        y.to_numpy(dtype=np.int8),
        (z == "Male").to_numpy(dtype=np.int8),
        names,
        [names.index("age"), names.index("hours-per-week")],
        columns,
        np.take_along_axis(dense, columns, axis=1),
    )


def _replaced_share(rho: float | None) -> float:
    """Probability of taking z as label that gives the population the correlation rho."""
    adult = _population()
    p_y, p_z = float(adult.y.mean()), float(adult.male.mean())
    p_11 = float((adult.y * adult.male).mean())

    def correlation(q: float) -> float:
        base = p_y + q * (p_z - p_y)
        joint = p_11 + q * (p_z - p_11)
        return float((joint - base * p_z) / np.sqrt(base * (1 - base) * p_z * (1 - p_z)))

    low = correlation(0)
    if rho is None:
        return 0.0
    if not low - 1e-12 <= rho <= 1:
        raise unreachable(rho, low)
    return float(brentq(lambda q: correlation(q) - rho, 0, 1)) if low < rho < 1 else float(rho == 1)


class _Draw(NamedTuple):
    row: NDArray[np.int64]
    y: NDArray[np.int8]
    male: NDArray[np.int8]
    shift: NDArray[np.float32]


def _draw(seed: int, block: int, share: float) -> _Draw:
    """Draw every random number of a block, so that no option changes what another one draws."""
    adult = _population()
    random = np.random.default_rng([seed, block])
    row = random.integers(0, len(adult.y), size=_BLOCK)
    takes_z = random.random(_BLOCK, dtype=np.float32) < share
    shift = random.random((_BLOCK, 2), dtype=np.float32) - np.float32(0.5)
    male = adult.male[row]
    return _Draw(row, np.where(takes_z, male, adult.y[row]), male, shift)


def _fill(
    seed: int, start: int, stop: int, *, share: float, jitter: bool, sparse: bool
) -> tuple[Any, NDArray[np.int8], pd.Series]:
    """Rows start to stop: X, y, z."""
    adult = _population()
    n = stop - start
    source = adult.values if sparse else adult.X
    X = np.empty((n, source.shape[1]), dtype=np.float32)
    columns = np.empty((n, source.shape[1]), dtype=np.int32) if sparse else None
    y, male = np.empty(n, dtype=np.int8), np.empty(n, dtype=np.int8)
    for block in range(start // _BLOCK, -(-stop // _BLOCK)):
        offset = block * _BLOCK
        first, last = max(start, offset), min(stop, offset + _BLOCK)
        here, rows = slice(first - start, last - start), slice(first - offset, last - offset)
        draw = _draw(seed, block, share)
        row = draw.row[rows]
        np.take(source, row, axis=0, out=X[here], mode="clip")  # clip: no buffer, rows are in range
        if jitter:
            X[here, adult.smooth] += draw.shift[rows]
        if columns is not None:
            np.take(adult.columns, row, axis=0, out=columns[here], mode="clip")
        y[here], male[here] = draw.y[rows], draw.male[rows]
    z = pd.Series(pd.Categorical.from_codes(male, categories=list(_SEXES)), name="sex")
    if columns is None:
        return X, y, z
    pointers = np.arange(n + 1, dtype=np.int64) * source.shape[1]
    if pointers[-1] <= np.iinfo(np.int32).max:
        pointers = pointers.astype(np.int32)
    matrix = csr_array((X.ravel(), columns.ravel(), pointers), shape=(n, len(adult.names)))
    return matrix, y, z


def _seed(random_state: Any) -> int:
    return int(check_random_state(random_state).randint(np.iinfo(np.int32).max))


@documented(SHARED)
def make_census(
    n_rows: int,
    *,
    rho: float | None = None,
    jitter: bool = True,
    sparse: bool = False,
    random_state: Any = None,
    as_frame: bool = False,
    return_X_y_z: bool = False,
) -> Any:
    r"""Make an Adult-like table of any size, for work on scale and on populations.

    Rows are drawn with replacement from Adult's 45,222 complete rows: a fixed distribution that can
    be sampled without limit, whose marginals and correlations are Adult's, among them 0.2158
    between label and sex. It knows nothing of people beyond those rows. With ``jitter``, age and
    hours per week are spread evenly over ±½ around their whole numbers, so that rows are not alike;
    rounded, they are Adult's again.

    With ``rho``, each label is replaced by the row's sex (1 for Male) with a probability q that
    makes the population's correlation equal to ``rho``; inputs and sex are untouched.

    A row is a function of the seed and of its number alone: the first rows of a larger table are
    the smaller table, and :func:`census_chunks` gives the same rows chunk by chunk.

    Parameters
    ----------
    n_rows : int
        Rows.
    rho : float, optional
        Correlation of label and sex in the population, from Adult's 0.2158 to 1.
    jitter : bool, default=True
        Whether to spread age and hours per week.
    sparse : bool, default=False
        Whether X is a CSR matrix, of 11 entries a row.
    random_state
    as_frame : bool, default=False
        Whether a dense X is a DataFrame (without a copy) and the labels are a Series.
    return_X_y_z

    Returns
    -------
    Bunch
        ``data`` (float32, the 85 columns of ``load_adult("full")``; 10⁷ rows take 3.4 GB),
        ``target`` (int8), ``sensitive_features`` (categories ``"Female"``, ``"Male"``),
        ``encoder``, ``feature_names``, ``DESCR``. There is no ``frame``.

    Examples
    --------
    >>> from evenhand.datasets import make_census
    >>> X, y, z = make_census(100_000, random_state=0, return_X_y_z=True)
    >>> X.shape, X.dtype.name, round(float(y.mean()), 2)
    ((100000, 85), 'float32', 0.25)
    """
    _check_count("n_rows", n_rows, 1)
    if sparse and as_frame:
        raise InputError(
            "sparse_frame", sparse=Parameter("sparse", True), as_frame=Parameter("as_frame", True)
        )
    share = _replaced_share(rho)
    X, y, z = _fill(_seed(random_state), 0, n_rows, share=share, jitter=jitter, sparse=sparse)
    names = _population().names
    if as_frame:
        X, y = pd.DataFrame(X, columns=names, copy=False), pd.Series(y, name="income")
    if return_X_y_z:
        return X, y, z
    numbers: list[Any] = names[:5] if as_frame else list(range(5))
    return Bunch(
        data=X,
        target=y,
        sensitive_features=z,
        encoder=number_scaler(numbers, as_frame, center=not sparse),
        feature_names=names,
        DESCR=f"Made by evenhand.datasets.make_census from Adult's rows: {n_rows} rows, rho {rho}.",
    )


def census_chunks(
    n_rows: int,
    *,
    chunk_rows: int = 262144,
    start: int = 0,
    rho: float | None = None,
    jitter: bool = True,
    sparse: bool = False,
    random_state: Any = None,
) -> Iterator[tuple[Any, NDArray[np.int8], pd.Series]]:
    """Rows of :func:`make_census` chunk by chunk, with one chunk in memory at a time.

    Parameters
    ----------
    n_rows : int
        Rows in all.
    chunk_rows : int, default=262144
        Rows of a chunk; the rows themselves do not depend on it.
    start : int, default=0
        Number of the first row: several processes can make chunks of one table, and a table can
        be continued.
    rho, jitter, sparse, random_state
        As in :func:`make_census`.

    Yields
    ------
    X, y, z
        As ``make_census(..., return_X_y_z=True)`` gives them.

    Examples
    --------
    >>> from evenhand.datasets import census_chunks
    >>> [len(y) for X, y, z in census_chunks(1000, chunk_rows=400, random_state=0)]
    [400, 400, 200]
    """
    _check_count("n_rows", n_rows, 1)
    _check_count("chunk_rows", chunk_rows, 1)
    _check_count("start", start, 0)
    share, seed = _replaced_share(rho), _seed(random_state)
    stop = start + n_rows
    return (
        _fill(seed, a, min(a + chunk_rows, stop), share=share, jitter=jitter, sparse=sparse)
        for a in range(start, stop, chunk_rows)
    )
