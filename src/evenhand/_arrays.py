"""NumPy's functions and those of a library whose arrays live elsewhere, by the same names."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

import numpy as np

__all__ = ["has_numba", "has_triton", "like", "namespace"]


@cache
def has_numba() -> bool:
    """Whether loops can be compiled; if not, NumPy does their work."""
    try:
        import_module("evenhand.engines._compiled")
        import_module("evenhand._cut_loops")
    except ImportError:  # not there, or too old for this NumPy
        return False
    except RuntimeError:
        warnings.warn(
            "numba finds no folder to keep compiled loops in, so NumPy does their work, more "
            "slowly; set NUMBA_CACHE_DIR to one that can be written.",
            stacklevel=2,
        )
        return False
    return not import_module("numba").config.DISABLE_JIT


def has_triton(array: Any) -> bool:
    """Whether there are kernels for what an array of PyTorch is computed with: a GPU and Triton."""
    return bool(array.is_cuda) and find_spec("triton") is not None


def namespace(array: Any) -> Any:
    """Find the module with the functions for this array: NumPy, or PyTorch under NumPy's names."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    return import_module("evenhand.engines._torch_names")


def like(values: Any, other: Any) -> Any:
    """Values of the precision of another array, and where it is."""
    if isinstance(values, np.ndarray) and (
        isinstance(other, np.ndarray) or not hasattr(other, "device")
    ):
        return values.astype(other.dtype, copy=False)
    return import_module("evenhand.engines._torch_names").like(values, other)
