"""NumPy's functions, or PyTorch's under the same names, for the arrays at hand."""

from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[Any]
"""Numbers of any precision, in an array of NumPy or a tensor of PyTorch."""


def namespace(array: Any) -> Any:
    """Find the module with the functions for this array: NumPy, or PyTorch under NumPy's names."""
    if isinstance(array, np.ndarray | np.generic):
        return np
    return import_module("evenhand.core.torch_numpy")


def like(values: Any, other: Any) -> Any:
    """Values of the precision of another array, and where it is."""
    if isinstance(values, np.ndarray) and (
        isinstance(other, np.ndarray) or not hasattr(other, "device")
    ):
        return values.astype(other.dtype, copy=False)
    return import_module("evenhand.core.torch_numpy").like(values, other)
