"""Versions for a bug report, the error for a missing extra, and documentation that is said once."""

import platform
import sys
from collections.abc import Callable, Mapping
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from inspect import cleandoc, isclass, isfunction
from typing import Any, TypeVar

_T = TypeVar("_T")

_PACKAGES = (
    *("evenhand", "numpy", "scipy", "scikit-learn", "pandas", "joblib", "threadpoolctl", "typer"),
    *("rich", "matplotlib", "numba", "torch", "dask", "lightgbm", "xgboost", "cvxpy", "fairlearn"),
    "oxonfair",
)


def package_version(package: str) -> str:
    """Version of an installed package, or that it is not installed."""
    for name in (package, f"{package}-cpu"):  # as XGBoost's smaller package is called
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return "not installed"


def show_versions() -> None:
    """Print the versions of Python, the platform, evenhand and what it uses."""
    print(f"{'python':>14}: {sys.version.split()[0]}")
    print(f"{'platform':>14}: {platform.platform()}")
    for package in _PACKAGES:
        print(f"{package:>14}: {package_version(package)}")


def how_to_install(extra: str) -> str:
    """Say how to install an extra; evenhand is on no package index, so it is done in its clone."""
    return f"in a clone of evenhand: pip install '.[{extra}]'"


def import_extra(module: str, extra: str) -> Any:
    """Import a module that an optional extra brings, or say which extra is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"this needs {package}, which is not installed; {how_to_install(extra)}"
        ) from error


def documented(shared: str | None) -> Callable[[_T], _T]:
    """Write out, in the docstring of a function or a class, what many share and is said once.

    Parameters
    ----------
    shared : str or None
        Entries of a list of parameters, attributes or errors, as they are in a docstring, or a
        docstring that has them. Elsewhere, a line of their names with commas between them and
        nothing indented below stands for them.

    Returns
    -------
    callable
        The decorator; of a class it completes the methods' docstrings, too.
    """
    entries: dict[str, list[str]] = {}
    for line in cleandoc(shared or "").splitlines():
        if line and not line.startswith(" "):
            entry = entries[line.partition(" : ")[0]] = []
        entry.append(line)

    def complete(thing: _T) -> _T:
        for part in (thing, *filter(isfunction, vars(thing).values() if isclass(thing) else ())):
            if part.__doc__:  # there is none under python -OO
                part.__doc__ = _write_out(cleandoc(part.__doc__), entries)
        return thing

    return complete


def _write_out(doc: str, entries: Mapping[str, list[str]]) -> str:
    """Replace lines of names by the names' entries."""
    lines = [*doc.splitlines(), ""]
    for i in reversed(range(len(lines) - 1)):
        names = lines[i].split(", ")
        if entries.keys() >= set(names) and not lines[i + 1].startswith(" "):
            lines[i : i + 1] = ["\n".join(entries[name]).rstrip() for name in names]
    return "\n".join(lines[:-1])
