"""All experiments, and one function that runs and judges them."""

import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from evenhand._atomic import write_atomically
from evenhand._extras import import_extra
from evenhand.core.errors import InputError, Parameter
from evenhand.models.progress import job_bar
from evenhand.paper.experiments._claims import (
    Experiment,
    Verdict,
    claims_markdown,
    claims_texts,
    judge_all,
)
from evenhand.paper.experiments._runner import MADE, SECONDS, finished, run_experiments
from evenhand.paper.experiments.alone import ALONE
from evenhand.paper.experiments.bounds import BOUNDS
from evenhand.paper.experiments.counterexample import COUNTEREXAMPLE
from evenhand.paper.experiments.curves import CURVES, ITERATION_50
from evenhand.paper.experiments.data import DATA
from evenhand.paper.experiments.exponents import EXPONENTS
from evenhand.paper.experiments.lab import SEEDS
from evenhand.paper.experiments.noise import NOISE
from evenhand.paper.experiments.rivals import (
    DISCOVERY_COARSE,
    DISCOVERY_FULL,
    DISCOVERY_MOVED,
    RIVALS,
)
from evenhand.paper.experiments.targets import TARGETS
from evenhand.paper.experiments.updates import UPDATES

EXPERIMENTS: dict[str, Experiment] = {
    experiment.name: experiment
    for experiment in (
        DATA,
        CURVES,
        ITERATION_50,
        UPDATES,
        RIVALS,
        TARGETS,
        NOISE,
        EXPONENTS,
        DISCOVERY_FULL,
        DISCOVERY_COARSE,
        DISCOVERY_MOVED,
        ALONE,
        COUNTEREXAMPLE,
        BOUNDS,
    )
}
"""The experiments by name, in the order of the paper."""


def _chosen(names: Iterable[str] | None, *, drawn: bool) -> list[Experiment]:
    wanted = list(names or EXPERIMENTS)
    for name in wanted:
        if name not in EXPERIMENTS:
            raise InputError("unknown_experiment", name=name, names=", ".join(EXPERIMENTS))
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in wanted]
    if drawn:
        import_extra("matplotlib", "paper")
    for package in dict.fromkeys(package for e in chosen for package in e.needs):
        if find_spec(package) is None:
            needing = ", ".join(e.name for e in chosen if package in e.needs)
            raise ImportError(
                f"{package} is needed by {needing}: pip install '.[paper]', or name the "
                "experiments to run."
            )
    return chosen


def _check_kind(folder: Path, quick: bool) -> None:
    """Refuse to put a quick run where a full one is, or the other way round."""
    note, kind = folder / "cells" / "kind.txt", "quick" if quick else "full"
    earlier = note.read_text(encoding="utf-8").strip() if note.exists() else kind
    if earlier != kind:
        raise InputError(
            "other_kind_of_run",
            folder=str(folder),
            earlier=earlier,
            kind=kind,
            out=Parameter("out"),
        )
    write_atomically(note, lambda file: file.write(kind.encode()))


def reproduce(
    names: Iterable[str] | None = None,
    *,
    out: str | PathLike[str] = "reproduction",
    quick: bool = False,
    n_jobs: int | None = -1,
    verbose: int = 0,
    cells_only: bool = False,
) -> list[Verdict]:
    """Run experiments of the paper and judge its claims.

    Parameters
    ----------
    names : iterable of str, optional
        Which of :data:`EXPERIMENTS`; all by default.
    out : path, default="reproduction"
        Folder for ``<name>.csv``, ``<name>.png``, ``<name>.svg`` and ``claims.md``. Results of
        single runs are kept in ``cells`` there: what is interrupted goes on where it stopped. Until
        all experiments have been run there, the claims of those that have are in
        ``claims-partial.md``.
    quick : bool, default=False
        One seed, few correlations: a look, in two minutes on two idle cores, not a result.
    n_jobs : int, optional
        Runs at a time; −1, the default, is one for each core.
    verbose : int, default=0
        1 shows a progress bar.
    cells_only : bool, default=False
        Whether to fill ``cells`` and stop, as where there is no matplotlib. They are named by what
        was run and by the code, not by the computer: a call with the same code elsewhere, with
        ``cells`` copied there, draws and judges without running anything.

    Returns
    -------
    list of Verdict
        The claims of these experiments, judged; none if ``cells_only``.

    Examples
    --------
    >>> from evenhand.paper.experiments import reproduce
    >>> verdicts = reproduce(["data"], out="/tmp/data", quick=True)  # doctest: +SKIP
    """
    chosen, folder = _chosen(names, drawn=not cells_only), Path(out)
    (folder / "cells").mkdir(parents=True, exist_ok=True)
    _check_kind(folder, quick)
    total = sum(len(experiment.cells(quick)) for experiment in chosen)
    with job_bar(verbose, total) as advance, warnings.catch_warnings():
        # joblib's word for a worker that it replaces, as it does when one's memory has grown
        warnings.filterwarnings("ignore", "A worker stopped", UserWarning)
        run = run_experiments(
            chosen, folder, quick=quick, n_jobs=n_jobs, advance=advance, cells_only=cells_only
        )
        tables = {experiment.name: table for experiment, table in run}
    if cells_only:
        return []
    for name, experiment in EXPERIMENTS.items():
        earlier = None if name in tables else finished(experiment, folder, quick=quick)
        if earlier is not None:
            tables[name] = earlier
    finished_ones = [experiment for name, experiment in EXPERIMENTS.items() if name in tables]
    verdicts = judge_all((experiment, tables[experiment.name]) for experiment in finished_ones)
    made = {found for table in tables.values() for found in table[MADE].unique()}
    minutes = sum(table.attrs[SECONDS] for table in tables.values()) / 60
    command, page = "evenhand reproduce" + " --quick" * quick, claims_texts()["page"]
    notes = [
        f"Splits are 70/30, stratified on label and group; seeds: {1 if quick else SEEDS}. "
        + page["centre"],
        f"Made by `{command}` with {'; and with '.join(sorted(made))}; "
        f"the runs took {minutes:.0f} minutes of processor time.",
    ]
    if quick:
        notes.insert(
            0,
            "**A quick run: one seed, so no spread, and few correlations. A look, not a result.**",
        )
    text = claims_markdown(verdicts, finished_ones, notes)
    # The claims of some experiments never overwrite the claims of all.
    file = "claims.md" if len(finished_ones) == len(EXPERIMENTS) else "claims-partial.md"
    write_atomically(folder / file, lambda handle: handle.write(text.encode()))
    names = {experiment.name for experiment in chosen}
    return [verdict for verdict in verdicts if verdict.experiment in names]
