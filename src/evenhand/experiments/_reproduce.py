"""All experiments, and one function that runs and judges them."""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec
from os import PathLike
from pathlib import Path

from evenhand._versions import import_extra
from evenhand.experiments._claims import Verdict, claims_markdown, judge_all
from evenhand.experiments._runner import (
    Experiment,
    is_complete,
    run_experiments,
    versions,
    write_file,
)
from evenhand.experiments.alone import ALONE
from evenhand.experiments.bounds import BOUNDS
from evenhand.experiments.counterexample import COUNTEREXAMPLE
from evenhand.experiments.curves import CURVES, ITERATION_50
from evenhand.experiments.data import DATA
from evenhand.experiments.exponents import EXPONENTS
from evenhand.experiments.noise import NOISE
from evenhand.experiments.rivals import DISCOVERY_COARSE, DISCOVERY_FULL, RIVALS
from evenhand.experiments.targets import TARGETS
from evenhand.experiments.updates import UPDATES
from evenhand.progress import job_bar

__all__ = ["EXPERIMENTS", "reproduce"]

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
        ALONE,
        COUNTEREXAMPLE,
        BOUNDS,
    )
}
"""The experiments by name, in the order of the paper."""


def _chosen(names: Iterable[str] | None) -> list[Experiment]:
    wanted = list(names or EXPERIMENTS)
    for name in wanted:
        if name not in EXPERIMENTS:
            known = ", ".join(EXPERIMENTS)
            raise ValueError(f"there is no experiment {name!r}; there are: {known}.")
    chosen = [experiment for name, experiment in EXPERIMENTS.items() if name in wanted]
    import_extra("matplotlib", "plot")
    for package in dict.fromkeys(package for e in chosen for package in e.needs):
        if find_spec(package) is None:
            needing = ", ".join(e.name for e in chosen if package in e.needs)
            raise ImportError(
                f"{package} is needed by {needing}: pip install 'evenhand[peers]', or name the "
                "experiments to run."
            )
    return chosen


def reproduce(
    names: Iterable[str] | None = None,
    *,
    out: str | PathLike[str] = "reproduction",
    quick: bool = False,
    n_jobs: int | None = -1,
    verbose: int = 0,
) -> list[Verdict]:
    """Run experiments of the paper and judge its claims.

    Parameters
    ----------
    names : iterable of str, optional
        Which of :data:`EXPERIMENTS`; all by default.
    out : path, default="reproduction"
        Folder for ``<name>.csv``, ``<name>.png``, ``<name>.svg`` and ``claims.md``. Results of
        single runs are kept in ``cells`` there: what is interrupted goes on where it stopped, and
        ``claims.md`` has all experiments that are complete.
    quick : bool, default=False
        One seed, three correlations: a look, in about a minute, not a result.
    n_jobs : int, optional
        Runs at a time; −1, the default, is one for each core.
    verbose : int, default=0
        1 shows a progress bar.

    Returns
    -------
    list of Verdict
        The claims of these experiments, judged.

    Examples
    --------
    >>> from evenhand.experiments import reproduce
    >>> verdicts = reproduce(["data"], out="/tmp/data", quick=True)  # doctest: +SKIP
    """
    chosen, folder = _chosen(names), Path(out)
    folder.mkdir(parents=True, exist_ok=True)
    # What was complete before stays in claims.md.
    every = [e for e in EXPERIMENTS.values() if e in chosen or is_complete(e, folder, quick=quick)]
    total = sum(len(experiment.cells(quick)) for experiment in every)
    with job_bar(verbose, total) as advance:
        tables = list(run_experiments(every, folder, quick=quick, n_jobs=n_jobs, advance=advance))
    verdicts = judge_all(tables)
    command = "evenhand reproduce" + " --quick" * quick
    notes = [f"Made by `{command}` with {versions()}."]
    if quick:
        notes.insert(0, "**A quick run: one seed, three correlations. A look, not a result.**")
    text = claims_markdown(verdicts, every, notes)
    write_file(folder / "claims.md", lambda part: part.write_text(text, encoding="utf-8"))
    ran = {experiment.name for experiment in chosen}
    return [verdict for verdict in verdicts if verdict.experiment in ran]
