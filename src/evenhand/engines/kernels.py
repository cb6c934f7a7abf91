"""One registry: which functions have a faster version, for whose arrays, and from which size on."""

import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from evenhand.core.errors import InputWarning


@dataclass(frozen=True)
class Limits:
    """Sizes at which the way to compute something changes.

    Parameters
    ----------
    compiled_rows : int
        From this many rows on, loops are compiled if numba is there: it takes a moment to load.
    exact_rows : int
        Up to this many rows every cut is tried; with more rows, the cuts of a histogram.
    sweep_scores : int
        Scores held at once while sweeping; never rows × iterates.
    """

    compiled_rows: int = 8192
    exact_rows: int = 1 << 16
    sweep_scores: int = 1 << 22


LIMITS = Limits()
"""The sizes that are used unless others are passed, as tests do."""

Finder = Callable[..., Callable[..., Any] | None]
_finders: dict[tuple[Callable[..., Any], str], Finder] = {}


def faster_version(function: Callable[..., Any], arrays: str) -> Callable[[Finder], Finder]:
    """Register what finds a faster version of a function for arrays of ``"numpy"`` or ``"torch"``.

    It takes the arguments of :func:`find_faster` and returns the version, or None if these
    arguments have none. The version of a statistic that rows are reduced by takes the function that
    joins two results.
    """

    def register(finder: Finder) -> Finder:
        _finders[function, arrays] = finder
        return finder

    return register


def find_faster(function: Callable[..., Any], arrays: str, *args: Any) -> Callable[..., Any] | None:
    """Find the faster version of a function for these arguments, if there is one here."""
    finder = _finders.get((function, arrays))
    return None if finder is None else finder(*args)


def can_compile(n_rows: int, limits: Limits) -> bool:
    """Whether there are compiled loops, and enough rows to be worth their loading."""
    return n_rows >= limits.compiled_rows and has_numba()


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
        message = InputWarning(
            "numba_unusable", error=f"{type(error).__name__}: {error}", advice=advice
        )
        warnings.warn(message, stacklevel=2)
        return False
    return not import_module("numba").config.DISABLE_JIT


def has_triton(array: Any) -> bool:
    """Whether there are kernels for what an array of PyTorch is computed with: a GPU and Triton."""
    return bool(array.is_cuda) and find_spec("triton") is not None
