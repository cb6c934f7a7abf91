"""Which faster versions of sums there are on this machine."""

from __future__ import annotations

import warnings
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

__all__ = ["has_numba", "has_triton"]


@cache
def has_numba() -> bool:
    """Whether loops can be compiled; if not, NumPy does their work."""
    try:
        import_module("evenhand.engines.numba_sums")
    except ImportError:  # not there, or too old for this NumPy
        return False
    except Exception as error:  # whatever an installation that is broken may raise
        advice = "install it again, or remove it"
        if isinstance(error, RuntimeError) and "cache" in str(error):
            advice = "set NUMBA_CACHE_DIR to a folder that can be written"
        warnings.warn(
            f"numba cannot be used ({type(error).__name__}: {error}), so NumPy does its work, more "
            f"slowly; {advice}.",
            stacklevel=2,
        )
        return False
    return not import_module("numba").config.DISABLE_JIT


def has_triton(array: Any) -> bool:
    """Whether there are kernels for what an array of PyTorch is computed with: a GPU and Triton."""
    return bool(array.is_cuda) and find_spec("triton") is not None
