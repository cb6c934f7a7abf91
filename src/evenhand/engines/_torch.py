"""Rows in PyTorch tensors, on any device."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from functools import reduce
from importlib.util import find_spec
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import issparse

from evenhand.engines._rows import Rows
from evenhand.rowmath import Block, Game, make_block, row_sums, sees_powers

__all__ = ["TorchRows", "check_tensor"]

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


class TorchRows(Rows):
    """Rows of a tensor, in blocks that share its memory.

    Parameters
    ----------
    X : Tensor, ndarray or CSR matrix of shape (n_samples, n_features)
        Inputs. Copied to the device if they are elsewhere; a CSR matrix becomes dense.
    columns : sequence of ndarray
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
        self._X, self._columns = X, columns
        self._compact: tuple[Any, ...] | None = None

    def reduce(self, join: Callable[[T, T], T], part: Callable[..., T], *args: Any) -> T:
        """Join the parts on the device; only the result leaves it."""
        if part is row_sums and self._fusible(*args[3:]):
            from evenhand.engines._triton import fused_sums

            return fused_sums(self._X, *self._narrow(), *args[:4])  # type: ignore[return-value]
        joined = join if join is not np.maximum else torch.maximum
        return _to_numpy(reduce(joined, (part(block, *args) for block in self.blocks)))

    def collect(self, part: Callable[..., FloatArray], *args: Any) -> FloatArray:
        """``part(block, *args)`` of the blocks, one behind the other in the order of the rows."""
        return np.concatenate([_to_numpy(part(block, *args)) for block in self.blocks])

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
            ones = bool((extra == 1).all())
            totals = np.bincount(cell, weights=weight, minlength=6).astype(np.float64)
            self._compact = (
                torch.as_tensor(cell.astype(np.uint8)).to(self._X.device),
                None if ones else torch.as_tensor(extra).to(self._X),
                None if weight is None else torch.as_tensor(weight).to(self._X),
                totals,
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
    return type(value)(*(a.reshape(tuple(part.shape)) for a, part in arrays))
