"""Rows in PyTorch tensors, on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse

from evenhand.engines._parts import Coding, Facts
from evenhand.engines._rows import Rows, Share
from evenhand.rowmath import Block, Game, make_block, row_sums, sees_powers

__all__ = ["TorchRows", "check_tensor", "tensor_columns", "tensor_facts"]

FloatArray = NDArray[Any]
T = TypeVar("T")

# Rows in a block: of a CPU what stays in its cache, of another device what keeps it busy.
CPU_ROWS, DEVICE_ROWS = 1 << 14, 1 << 22


def check_tensor(X: Any) -> Any:
    """Give a table as a contiguous tensor of float32 or float64; refuse what is none."""
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; it must have two: rows and columns.")
    if not X.shape[0] or not X.shape[1]:
        raise ValueError(f"X has {X.shape[0]} rows and {X.shape[1]} columns; it is empty.")
    if X.dtype not in (torch.float32, torch.float64):
        X = X.double()
    total = sum(part.sum() for part in X.detach().split(DEVICE_ROWS))
    if not bool(torch.isfinite(total)) and not bool(torch.isfinite(X).all()):
        raise ValueError("X contains NaN or infinite values; fill or drop them first.")
    return X.detach().contiguous()


def _codes(values: Any, device: Any) -> tuple[pd.Series, Any]:
    """Count distinct values, and number each row's among them, on the device."""
    if isinstance(values, torch.Tensor):
        found, codes, counts = values.unique(return_inverse=True, return_counts=True)
        return pd.Series(counts.cpu().numpy(), index=found.cpu().numpy()), codes.to(device)
    codes, found = pd.factorize(values)
    counts = np.bincount(codes, minlength=len(found))
    return pd.Series(counts, index=found), torch.as_tensor(codes).to(device)


def tensor_facts(X: Any, y: Any, sensitive: Any, weight: Any) -> tuple[Facts, Any, Any]:
    """Find what must be known of a table, and number its labels and groups.

    X is from :func:`check_tensor`; labels and groups are tensors of one dimension, or have been
    checked for missing values.
    """
    labels, y = _codes(y, X.device)
    groups, z = _codes(sensitive, X.device)
    for name, column in (("y", y), ("sensitive_features", z), ("sample_weight", weight)):
        if column is not None and len(column) != len(X):
            raise ValueError(
                f"{name} has {len(column)} rows, X has {len(X)}; they must be the same rows."
            )
    least, most = X.aminmax()
    w = np.ones(1) if weight is None else weight
    facts = Facts(
        (len(X),),
        labels,
        groups,
        max(abs(least.item()), abs(most.item())),
        frozenset([str(X.dtype).removeprefix("torch.")]),
        (float(w.sum()), float(w @ w), int((w > 0).sum())),
        (float(w[w > 0].min(initial=np.inf)), float(w.max())),
    )
    return facts, y, z


def tensor_columns(
    facts: Facts, coding: Coding, y: Any, z: Any, weight: FloatArray | None
) -> tuple[Any, ...]:
    """Make the columns of :func:`evenhand.engines.as_columns` on the device."""

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
        The other columns of a block, from :func:`evenhand.engines.as_columns`.
    device : str or torch.device, optional
        Where to compute; by default where X is, or a GPU if there is one.
    """

    def __init__(self, X: Any, columns: Sequence[Any], device: Any = None) -> None:
        if device is None and not isinstance(X, torch.Tensor):
            device = "cuda" if torch.cuda.is_available() else "cpu"
        X = torch.as_tensor(X.toarray() if issparse(X) else X)
        X = X if device is None else X.to(device)
        self.n_samples, self.n_features = X.shape
        self.dtype = np.dtype(str(X.dtype).removeprefix("torch."))
        extra, y, z, cell, weight = (
            None if c is None else torch.as_tensor(c).to(X.device) for c in columns
        )
        self.weighted = weight is not None
        step = DEVICE_ROWS if X.is_cuda else CPU_ROWS
        self.blocks: list[Block] = [
            make_block(X, i, i + step, extra, y, z, cell, weight)
            for i in range(0, self.n_samples, step)
        ]
        self._X = X
        self._columns: tuple[Any, ...] = (extra, y, z, cell, weight)
        self._compact: tuple[Any, ...] | None = None

    def reduce(self, join: Callable[[T, T], T], part: Callable[..., T], *args: Any) -> T:
        """Join the parts on the device; only the result leaves it."""
        if part is row_sums and self._fusible(*args[3:]):
            from evenhand.engines._triton import fused_sums

            return fused_sums(self._X, *self._narrow(), *args[:4])  # type: ignore[return-value]
        joined: Any = join if join is not np.maximum else torch.maximum
        return _to_numpy(reduce(joined, (part(block, *args) for block in self.blocks)))

    def collect(
        self, part: Callable[..., FloatArray], *args: Any, out: FloatArray | None = None
    ) -> FloatArray:
        """``part(block, *args)`` of the blocks, side by side in the order of the rows."""
        found = [_to_numpy(part(block, *args)) for block in self.blocks]
        return np.concatenate(found, axis=-1, out=out)

    def take(self, share: Share) -> TorchRows:
        """Copy the rows of a share, on the device."""
        rows = torch.as_tensor(share.of(0, self.n_samples)).to(self._X.device)
        columns = [None if c is None else c[rows] for c in self._columns]
        return TorchRows(self._X[rows], columns)

    def _fusible(self, game: Game, recode: Any) -> bool:
        """Whether the fused kernel can be used."""
        if not self._X.is_cuda or recode is not None or not sees_powers(game):
            return False
        if find_spec("triton") is None:
            return False
        from evenhand.engines._triton import is_fusible

        return is_fusible(game, self.n_features)

    def _narrow(self) -> tuple[Any, ...]:
        """Columns as the kernel reads them: a byte for the cell, and ones left out."""
        if self._compact is None:
            extra, _, _, cell, weight = self._columns
            totals = torch.bincount(cell, weights=weight, minlength=6).double()
            self._compact = (
                cell.to(torch.uint8),
                None if bool((extra == 1).all()) else extra.to(self._X),
                None if weight is None else weight.to(self._X),
                totals.cpu().numpy(),
            )
        return self._compact


def _to_numpy(value: Any) -> Any:
    """NumPy's arrays of a tensor, or of a record of tensors, in one copy."""
    if not is_dataclass(value):
        return value.cpu().numpy()
    parts = [torch.as_tensor(getattr(value, f.name)) for f in fields(value)]
    flat = torch.cat([part.reshape(-1).double() for part in parts]).cpu().numpy()
    ends = np.cumsum([part.numel() for part in parts])[:-1]
    arrays = zip(np.split(flat, ends), parts, strict=True)
    record: Any = type(value)
    return record(*(a.reshape(tuple(part.shape)) for a, part in arrays))
