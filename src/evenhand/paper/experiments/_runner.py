"""Experiments as records, and the runner: each cell is run once, and what came out is kept."""

import hashlib
import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from pathlib import Path
from time import process_time
from typing import Any

import pandas as pd
from joblib import Parallel, delayed

import evenhand
from evenhand._atomic import write_atomically
from evenhand._extras import package_version
from evenhand.paper.experiments._claims import Cell, Experiment, Rows

# Packages whose files are part of a cell's content: what shows a result cannot change it.
_CODE = ("core", "datasets", "engines", "frontier", "models", "peers", "paper")
_PACKAGES = ("numpy", "scipy", "scikit-learn", "pandas", "cvxpy")
MADE = "versions"
"""The column of a table that says what its rows were made with."""
SECONDS = "seconds"
"""The attribute of a table that says how much processor time its cells took."""


def package_hash(folder: Path) -> str:
    """Hash of all files of a package, by name and content, but for compiled ones."""
    digest = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        if path.parent.name != "__pycache__":
            digest.update(f"{path.relative_to(folder).as_posix()}\0".encode())
            digest.update(hashlib.sha256(path.read_bytes()).digest())
    return digest.hexdigest()


@cache
def code_hashes() -> dict[str, str]:
    """Hash of each package that results depend on: of contents, so the same on every computer."""
    root = Path(evenhand.__file__).parent
    return {package: package_hash(root / package) for package in _CODE}


def _cells(experiment: Experiment, out: Path, quick: bool) -> Iterator[tuple[Cell, Path]]:
    """Each cell and its file, named by its values and the code that runs it.

    What it was run with is in the file: cells of another computer are results as good as ours.
    """
    for cell in experiment.cells(quick):
        content = {"cell": cell, "code": code_hashes()}
        key = hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
        yield cell, out / "cells" / f"{experiment.name}-{key[:24]}.json"


@cache
def versions() -> str:
    """Versions that results are made with."""
    others = [f"{package} {package_version(package)}" for package in _PACKAGES]
    return ", ".join([f"evenhand {evenhand.__version__}", *others])


def _run_cell(experiment: Experiment, cell: Cell, path: Path) -> str:
    start = process_time()
    rows = [{**cell, **row} for row in experiment.run(**cell)]
    text = json.dumps({MADE: versions(), SECONDS: process_time() - start, "rows": rows})
    write_atomically(path, lambda file: file.write(text.encode()))
    return experiment.name


def _read_cell(cell: Cell, path: Path) -> tuple[Rows, float] | None:
    """Read what a cell gave and the processor time it took, if it is there and whole."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
        rows: Rows = [row | {MADE: found[MADE]} for row in found["rows"]]
        whole = bool(rows) and all(cell.items() <= row.items() for row in rows)
        seconds = float(found[SECONDS])
    except (FileNotFoundError, ValueError, TypeError, AttributeError, KeyError):
        return None
    return (rows, seconds) if whole else None


def finished(experiment: Experiment, out: Path, *, quick: bool) -> pd.DataFrame | None:
    """Table of an experiment all of whose cells have been run already."""
    rows: Rows = []
    seconds = 0.0
    for cell, path in _cells(experiment, out, quick):
        measured = _read_cell(cell, path)
        if measured is None:
            return None
        rows += measured[0]
        seconds += measured[1]
    table = experiment.complete(pd.DataFrame(rows))
    table.attrs[SECONDS] = seconds
    return table


def run_experiments(
    experiments: Sequence[Experiment],
    out: Path,
    *,
    quick: bool = False,
    n_jobs: int | None = None,
    advance: Callable[[str], None] = lambda what: None,
    cells_only: bool = False,
) -> Iterator[tuple[Experiment, pd.DataFrame]]:
    """Run the cells that have not been run yet; write table and pictures of what is complete.

    Parameters
    ----------
    experiments : sequence of Experiment
        What to run; the cells of all of them share the workers.
    out : Path
        Folder of the results: ``<name>.csv``, ``<name>.png``, ``<name>.svg``, and a folder
        ``cells`` with a file for each cell, which an interrupted run finds again.
    quick : bool, default=False
        The small grid.
    n_jobs : int, optional
        Cells at a time.
    advance : callable, optional
        Told of each cell that is done.
    cells_only : bool, default=False
        Whether to write no tables and draw nothing, which needs matplotlib.

    Yields
    ------
    tuple of (Experiment, DataFrame)
        An experiment that is complete, and its table: a row for each cell and measurement.
    """
    (out / "cells").mkdir(parents=True, exist_ok=True)
    jobs, left = [], {}
    for experiment in experiments:
        name, cells = experiment.name, list(_cells(experiment, out, quick))
        todo = [(experiment, cell, path) for cell, path in cells if _read_cell(cell, path) is None]
        jobs += todo
        left[name] = len(todo)
        for _ in range(len(cells) - len(todo)):
            advance(name)
    complete = iter(experiments)
    waiting = next(complete, None)
    pool = Parallel(n_jobs=n_jobs, return_as="generator_unordered")
    for done in itertools.chain([None], pool(delayed(_run_cell)(*job) for job in jobs)):
        if done is not None:
            left[done] -= 1
            advance(done)
        while waiting is not None and not left[waiting.name]:
            table = finished(waiting, out, quick=quick)
            if table is None:
                raise OSError(0, "results of finished runs are gone", str(out / "cells"))
            if not cells_only:
                _write(waiting, table, out)
            yield waiting, table
            waiting = next(complete, None)


def _write(experiment: Experiment, table: pd.DataFrame, out: Path) -> None:
    """Write an experiment's table and its picture, as PNG and as SVG."""
    # Imported where it is drawn: the library itself does not need matplotlib.
    import matplotlib as mpl
    from matplotlib import pyplot as plt

    write_atomically(out / f"{experiment.name}.csv", lambda file: table.to_csv(file, index=False))
    # Text stays text in the SVG, and the same table gives the same bytes.
    style: Any = {"svg.hashsalt": "evenhand", "svg.fonttype": "none", "font.size": 9.5}
    with mpl.rc_context(style):
        figure = experiment.draw(table)
        made = f"evenhand {evenhand.__version__}"
        figure.text(0.995, 0.005, made, ha="right", fontsize="xx-small", color="0.5")
        for kind, options in (("png", {"dpi": 130}), ("svg", {"metadata": {"Date": None}})):
            save = partial(figure.savefig, format=kind, **options)
            write_atomically(out / f"{experiment.name}.{kind}", save)
        plt.close(figure)
