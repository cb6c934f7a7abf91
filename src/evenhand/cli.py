"""The command line. Each command parses, calls the library, prints."""

from __future__ import annotations

from typing import Annotated

import typer

import evenhand

app = typer.Typer(
    name="evenhand",
    help="Fair classification: one fit, the whole accuracy-fairness frontier.",
    no_args_is_help=True,
    add_completion=False,
)


def _print_version(value: bool) -> None:
    if value:
        typer.echo(f"evenhand {evenhand.__version__}")
        raise typer.Exit


@app.callback()
def main(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Version.")
    ] = False,
) -> None:
    """Fair classification: one fit, the whole accuracy-fairness frontier."""
