"""Versions of everything that can matter in a bug report, and the error for a missing extra."""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from typing import Any

__all__ = ["import_extra", "package_version", "show_versions"]

_PACKAGES = (
    "evenhand",
    "numpy",
    "scipy",
    "scikit-learn",
    "pandas",
    "joblib",
    "threadpoolctl",
    "psutil",
    "typer",
    "rich",
    "matplotlib",
    "numba",
    "torch",
    "dask",
    "cvxpy",
    "fairlearn",
    "oxonfair",
)


def package_version(package: str) -> str:
    """Version of an installed package, or that it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return "not installed"


def show_versions() -> None:
    """Print the versions of Python, the platform, evenhand and what it uses."""
    print(f"{'python':>14}: {sys.version.split()[0]}")
    print(f"{'platform':>14}: {platform.platform()}")
    for package in _PACKAGES:
        print(f"{package:>14}: {package_version(package)}")


def import_extra(module: str, extra: str) -> Any:
    """Import a module that an optional extra brings, or say which extra is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs {package}, which is not installed: pip install 'evenhand[{extra}]'."
        ) from error
