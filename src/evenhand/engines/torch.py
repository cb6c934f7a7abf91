"""Rows in PyTorch tensors, on any device."""

import warnings
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from scipy.sparse import issparse

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.row_sums import Game, Recode, Sums, row_sums, sees_powers
from evenhand.core.rows import Block, Rows, Share, make_block
from evenhand.engines.chunks import Facts, check_columns, check_length, check_shape, weight_facts
from evenhand.engines.coding import Coding, count_levels
from evenhand.engines.kernels import faster_version, find_faster, has_triton

T = TypeVar("T")

# Rows in a block: of a CPU what stays in its cache, of another device what keeps it busy.
CPU_ROWS, DEVICE_ROWS = 1 << 14, 1 << 22


def as_plain(values: Any) -> Any:
    """Give a tensor as NumPy could have it: dense, without a graph, no narrower than float32."""
    values = values.detach()
    if values.layout != torch.strided:
        values = values.to_dense()
    return values.float() if values.is_floating_point() and values.itemsize < 4 else values


def check_tensor(X: Any) -> Any:
    """Give a table as a contiguous tensor of float32 or float64; refuse one that cannot be."""
    check_shape(X)
    if X.is_complex():
        raise InputError("complex_inputs")
    X = as_plain(X)
    if not X.is_floating_point():
        X = X.double()
    check_columns(_column_sizes(X), _numpy_dtype(X))
    return X.contiguous()


def _numpy_dtype(X: Any) -> np.dtype[Any]:
    return np.dtype(str(X.dtype).removeprefix("torch."))


def _column_sizes(X: Any) -> FloatArray:
    """As :func:`evenhand.engines.chunks.column_sizes`, where the tensor is."""
    sizes = [torch.maximum(-rows.amin(0), rows.amax(0)) for rows in X.split(DEVICE_ROWS)]
    return torch.stack(sizes).amax(0).double().cpu().numpy()


def _shared(values: Any) -> Any:
    """Give an array as a tensor that shares its memory; nothing here writes to it."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The given NumPy array is not writ")
        return torch.as_tensor(values)


def _check_device(device: Any) -> None:
    """Refuse a device on which nothing can be computed."""
    try:
        torch.zeros(1, device=device).item()
    # In this order: PyTorch was built without the device; a device such as "meta" holds no values;
    # there is no device of this name; the name is not text.
    except (AssertionError, NotImplementedError, RuntimeError, TypeError):
        raise InputError(
            "unusable_device",
            device=Parameter("device", str(device)),
            usable="'cuda' or 'cpu'" if torch.cuda.is_available() else "'cpu'",
        ) from None


def _codes(values: Any, device: Any) -> tuple[pd.Series, Any]:
    """Count distinct values, and number each row's among them, on the device."""
    if isinstance(values, torch.Tensor):
        levels, codes, counts = as_plain(values).unique(return_inverse=True, return_counts=True)
        return pd.Series(counts.cpu().numpy(), index=levels.cpu().numpy()), codes.to(device)
    counts, codes = count_levels(values, "sensitive_features")
    return counts, torch.as_tensor(codes).to(device)


def tensor_facts(X: Any, y: Any, sensitive: Any, weight: Any) -> tuple[Facts, Any, Any]:
    """Find the facts of a table, and number its labels and groups.

    X is from :func:`check_tensor`; labels and groups are tensors of one dimension, or have been
    checked for missing values.
    """
    kind = getattr(y.dtype, "kind", "")
    labels, y = _codes(y, X.device)
    groups, z = _codes(sensitive, X.device)
    for name, column in (("y", y), ("sensitive_features", z), ("sample_weight", weight)):
        if column is not None:
            check_length(len(column), len(X), name)
    facts = Facts(
        (len(X),),
        labels,
        groups,
        _column_sizes(X),
        frozenset([_numpy_dtype(X).name]),
        frozenset([kind]),
        *weight_facts(weight),
    )
    return facts, y, z


def tensor_columns(
    facts: Facts, coding: Coding, y: Any, z: Any, weight: FloatArray | None
) -> tuple[Any, ...]:
    """Make the columns of :func:`evenhand.core.rows.as_columns` on the device."""

    def numbers(values: pd.Series, table: dict[Any, int]) -> Any:
        return torch.tensor([table[v] for v in values.index.tolist()], device=y.device)

    y, z = numbers(facts.labels, coding.labels)[y], numbers(facts.groups, coding.groups)[z]
    cell = z * coding.n_labels + y
    if weight is not None:
        weight = weight * coding.per_weight
    return torch.ones_like(y, dtype=torch.float64), y.double(), z.double(), cell, weight


class TorchRows(Rows):
    """Rows of a tensor, in blocks that share its memory.

    Parameters
    ----------
    X : Tensor, ndarray or CSR matrix of shape (n_samples, n_features)
        Inputs. Copied to the device if they are elsewhere; a CSR matrix becomes dense.
    columns : sequence of ndarray or Tensor
        The other columns of a block, from :func:`evenhand.core.rows.as_columns`.
    device : str or torch.device, optional
        Where to compute; by default where X is, or a GPU if there is one.
    """

    def __init__(self, X: Any, columns: Sequence[Any], device: Any = None) -> None:
        if device is not None:
            _check_device(device)
        elif not isinstance(X, torch.Tensor):
            device = "cuda" if torch.cuda.is_available() else "cpu"
        X = _shared(X.toarray() if issparse(X) else X)
        X = X if device is None else X.to(device)
        self.n_samples, self.n_features = X.shape
        self.dtype = _numpy_dtype(X)
        extra, y, z, cell, weight = (
            None if c is None else _shared(c).to(X.device) for c in columns
        )
        self.weighted = weight is not None
        step = DEVICE_ROWS if X.is_cuda else CPU_ROWS
        self.blocks: list[Block] = [
            make_block(X, i, i + step, extra, y, z, cell, weight)
            for i in range(0, self.n_samples, step)
        ]
        self.X = X
        self.columns: tuple[Any, ...] = (extra, y, z, cell, weight)
        self._loop: tuple[Any, Any] = (None, None)

    def reduce(self, join: Callable[[T, T], T], statistic: Callable[..., T], *args: Any) -> T:
        """Join the results on the device; only the result leaves it."""
        faster = find_faster(statistic, "torch", self, *args)
        if faster is not None:
            result: T = faster(join)
            return result
        joined: Any = join if join is not np.maximum else torch.maximum
        return _to_numpy(reduce(joined, (statistic(block, *args) for block in self.blocks)))

    def apply(self, statistic: Callable[..., FloatArray], *args: Any) -> Sequence[FloatArray]:
        """Give one result for each block, in memory."""
        return [_to_numpy(statistic(block, *args)) for block in self.blocks]

    def take(self, share: Share) -> "TorchRows":
        """Copy the rows of a share, on the device."""
        rows = torch.as_tensor(share.of(0, self.n_samples)).to(self.X.device)
        columns = [None if c is None else c[rows] for c in self.columns]
        return TorchRows(self.X[rows], columns)

    def fused_sums(self, w: FloatArray, u: FloatArray, scale: float, game: Game) -> Sums:
        """Sum by the kernel; what it needs of the rows is made once for a game."""
        from evenhand.engines.triton_kernels import fused_sums

        if self._loop[0] is not game:
            cells, extra, weight, totals = self._narrow()
            self._loop = game, fused_sums(self.X, cells, extra, weight, totals, game)
        sums: Sums = self._loop[1](w, u, scale)
        return sums

    def _narrow(self) -> tuple[Any, ...]:
        """Columns as the kernel reads them: a byte for the cell, and ones left out."""
        extra, _, _, cell, weight = self.columns
        totals = torch.bincount(cell, weights=weight, minlength=6).double()
        return (
            cell.to(torch.uint8),
            None if bool((extra == 1).all()) else extra.to(self.X),
            None if weight is None else weight.to(self.X),
            totals.cpu().numpy(),
        )


@faster_version(row_sums, "torch")
def _fused_version(
    rows: TorchRows,
    w: FloatArray,
    u: FloatArray,
    scale: float,
    game: Game,
    recode: Recode | None = None,
) -> Callable[..., Sums] | None:
    many = game.guess.n_outputs > 1
    if recode is not None or many or not sees_powers(game) or not has_triton(rows.X):
        return None
    from evenhand.engines.triton_kernels import is_fusible

    if not is_fusible(game, rows.n_features):
        return None
    return lambda join: rows.fused_sums(w, u, scale, game)


def _to_numpy(value: Any) -> Any:
    """NumPy's arrays of a tensor, or of a record of tensors, in one copy."""
    if not is_dataclass(value):
        return value.cpu().numpy()
    tensors = [torch.as_tensor(getattr(value, f.name)) for f in fields(value)]
    flat = torch.cat([tensor.reshape(-1).double() for tensor in tensors]).cpu().numpy()
    ends = np.cumsum([tensor.numel() for tensor in tensors])[:-1]
    pairs = zip(np.split(flat, ends), tensors, strict=True)
    record: Any = type(value)
    return record(*(array.reshape(tuple(tensor.shape)) for array, tensor in pairs))
