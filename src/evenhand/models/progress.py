"""Progress bars: of a fit, and of many jobs."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager

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
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn

    columns = (
        TextColumn("{task.description:<18}"),
        BarColumn(bar_width=30),
        MofNCompleteColumn(),
        TextColumn("{task.fields[state]}"),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
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
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeElapsedColumn as Elapsed

    columns = (BarColumn(30), MofNCompleteColumn(), Elapsed(), TextColumn("{task.description}"))
    with Progress(*columns, console=Console(stderr=True)) as bar:
        task = bar.add_task("starting", total=total)
        yield lambda what: bar.update(task, advance=1, description=f"last done: {what}")
