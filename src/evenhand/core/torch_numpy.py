"""PyTorch's functions under NumPy's names."""

from typing import Any

import torch

argmax, asarray, bincount, stack = torch.argmax, torch.asarray, torch.bincount, torch.stack
concatenate, cumsum, einsum = torch.concatenate, torch.cumsum, torch.einsum
exp, log, ones_like, zeros_like = torch.exp, torch.log, torch.ones_like, torch.zeros_like


def like(values: Any, other: Any) -> Any:
    """Values of the precision of another tensor, on its device."""
    return torch.as_tensor(values).to(other)


def max(x: Any, axis: int | None = None) -> Any:
    """Largest value, along an axis or of all."""
    return x.max() if axis is None else x.amax(axis)


def min(x: Any, axis: int | None = None) -> Any:
    """Smallest value, along an axis or of all."""
    return x.min() if axis is None else x.amin(axis)


def maximum(x: Any, other: Any) -> Any:
    """Larger of two values; the second may be a number."""
    return x.maximum(other) if isinstance(other, torch.Tensor) else x.clamp(min=other)


def searchsorted(edges: Any, values: Any) -> Any:
    """Find how many of the sorted edges are below each value."""
    return torch.searchsorted(edges, values.contiguous())


def minimum(x: Any, other: Any) -> Any:
    """Smaller of two values; the second may be a number."""
    return x.minimum(other) if isinstance(other, torch.Tensor) else x.clamp(max=other)
