"""The command ``reproduce``."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from evenhand.paper.experiments import Verdict
from evenhand.cli import options as opt
from evenhand.cli.shell import command, plain_errors, show


@command("evenhand reproduce --quick", "evenhand reproduce rivals noise --out results")
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments to run; all by default.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, few correlations: a look, in two minutes.")
    ] = False,
    out: Annotated[
        Path | None,
        typer.Option(
            help="Folder for tables, pictures and claims.md.",
            show_default="reproduction, or reproduction-quick",
        ),
    ] = None,
    jobs: Annotated[int, typer.Option(help="Runs at a time; -1: one for each core.")] = -1,
    listed: Annotated[bool, typer.Option("--list", help="Name the experiments and stop.")] = False,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print the verdicts, or the list, as JSON.")
    ] = False,
) -> None:
    """Run the paper's experiments again and judge its claims.

    Writes for each experiment a table (CSV) and a picture (PNG, SVG), and claims.md with every
    statement of the paper, the test that decides it and the verdict. All of it takes less than
    three quarters of an hour on two idle cores. What is interrupted goes on where it stopped.
    """
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    with plain_errors(f"What is done is kept in {folder / 'cells'}: run it again to go on."):
        from evenhand.paper import experiments

        if listed:
            titles = {name: e.title for name, e in experiments.EXPERIMENTS.items()}
            lines = [f"{name:<18}{title}" for name, title in titles.items()]
            show(as_json, titles, lambda view: typer.echo("\n".join(lines)))
            return
        opt.check_jobs(jobs)
        verdicts = experiments.reproduce(names, out=folder, quick=quick, n_jobs=jobs, verbose=1)
    document = [verdict.to_dict() for verdict in verdicts]
    show(as_json, document, lambda view: _show_verdicts(verdicts, folder, quick))


_COLORS = {"holds": "green", "does not hold": "red", "cannot be decided here": "yellow"}


def _show_verdicts(verdicts: list[Verdict], folder: Path, quick: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenhand.paper.experiments import tally

    table = Table(box=box.SIMPLE, pad_edge=False, show_lines=True, expand=True)
    table.add_column("", justify="right")
    table.add_column("claim, and what was measured", ratio=1)
    table.add_column("verdict", max_width=20)
    table.add_column("figure", no_wrap=True)
    for number, verdict in enumerate(verdicts, 1):
        text = Text(f"{verdict.claim.statement} ({verdict.claim.place})")
        for variant, found in verdict.findings.items():
            if not variant.choice:
                text.append(f"\n{variant.reading}: {found.value}", style="dim")
        color = _COLORS.get(verdict.verdict, "cyan")
        judged = Text(verdict.verdict, style=color)
        table.add_row(str(number), text, judged, verdict.experiment)
    console = Console()
    console.print(table)
    console.print(f"{tally(verdicts)}.", markup=False)
    if quick:
        look = "A quick run: one seed, so no spread, and few correlations. A look, not a result."
        console.print(look)
    claims = "claims.md" if (folder / "claims.md").exists() else "claims-partial.md"
    where = f"Tables and pictures are in {folder}, the tests in {folder / claims}."
    console.print(where, markup=False)
