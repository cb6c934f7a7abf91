"""Progress bars: of a fit, and of many jobs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from evenhand._extras import import_extra
from evenhand.core.trajectory import Trajectory

__all__ = ["job_bar", "progress_bar"]


@contextmanager
def progress_bar(
    verbose: int, trajectory: Trajectory, total: int
) -> Iterator[Callable[[str, int], None]]:
    """Give a function ``show(what, advance)`` that moves a bar, or nothing."""
    if not verbose:
        yield lambda what, advance: None
        return
    rich = import_extra("rich.progress", "cli")
    columns = (
        rich.TextColumn("{task.description:<18}"),
        rich.BarColumn(bar_width=30),
        rich.MofNCompleteColumn(),
        rich.TextColumn("{task.fields[state]}"),
    )
    with rich.Progress(*columns, console=rich.Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, state="")

        def show(what: str, advance: int) -> None:
            loss, accuracy, rate = trajectory.latest()
            state = f"loss {loss:.4f}  accuracy {accuracy:.4f}  rate {rate:.3f}"
            bar.update(task, description=what, advance=advance, state=state)

        yield show


@contextmanager
def job_bar(verbose: int, total: int) -> Iterator[Callable[[str], None]]:
    """Give a function that moves a bar one job on."""
    if not verbose:
        yield lambda what: None
        return
    rich = import_extra("rich.progress", "cli")
    columns = (
        rich.BarColumn(30),
        rich.MofNCompleteColumn(),
        rich.TimeElapsedColumn(),
        rich.TextColumn("{task.description}"),
    )
    with rich.Progress(*columns, console=rich.Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda what: bar.update(task, advance=1, description=f"last done: {what}")
