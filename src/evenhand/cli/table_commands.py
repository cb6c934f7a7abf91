"""Commands on a table: ``audit``, ``compare``; and ``datasets``."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Annotated

import typer
import typer.core

from evenhand.cli.files import check_writable, read_file, write_table
from evenhand.cli.options import (
    AsJson,
    Bins,
    Delimiter,
    Encoding,
    FavourableOne,
    File,
    KeepNa,
    Label,
    MinGroupSize,
    Missing,
    MissingGroups,
    Na,
    Sensitive,
    parse_bins,
    parse_target,
)
from evenhand.cli.shell import app, examples, finish, plain_errors, printed


@app.command(
    help=(
        "Compare groups in a table of answers: sizes, rates with 95% intervals, ratios, the "
        "four-fifths verdict.\n\nWith --label and --prediction all rates are given. With --label "
        "alone the data themselves are audited: how often each group has the favourable label, and "
        "how strongly group and label go together. The verdict is about the smallest rate over the "
        "largest. Exit code 2 if that ratio is below --tau, or cannot be judged."
    ),
    epilog=examples(
        "evenhand audit new.csv --label repaid --prediction approved --sensitive sex",
        "evenhand audit loans.csv --label repaid --sensitive sex --sensitive race",
        "evenhand audit cases.csv --label decision --favourable granted --sensitive sex",
    ),
)
def audit(
    file: File,
    sensitive: Sensitive,
    label: Annotated[str | None, typer.Option(help="Column of the true labels.")] = None,
    prediction: Annotated[str | None, typer.Option(help="Column of the predictions.")] = None,
    favourable: FavourableOne = None,
    privileged: Annotated[
        str | None,
        typer.Option(
            help="Group: how the rates of the others compare with its rate is shown as well."
        ),
    ] = None,
    tau: Annotated[float, typer.Option(help="Least ratio; 0.8 is the four-fifths rule.")] = 0.8,
    bins: Bins = None,
    missing_groups: MissingGroups = Missing.error,
    min_group_size: MinGroupSize = 30,
    na: Na = None,
    keep_na: KeepNa = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Compare groups in a table; ``help`` above is what a user sees."""
    with plain_errors("Nothing was written."):
        from evenhand.workflow.audit import audit as audit_table

        found = audit_table(
            read_file(file, delimiter, encoding),
            label=label,
            prediction=prediction,
            sensitive=sensitive,
            favourable=favourable,
            privileged=privileged,
            missing_groups=missing_groups.value,
            bins=parse_bins(bins),
            na=na,
            keep_na=keep_na or [],
            tau=parse_target(tau),
            min_group_size=min_group_size,
        )
    with printed():
        if as_json:
            typer.echo(json.dumps(found))
        else:
            from evenhand.views import terminal as _screens

            _screens.show_audit(found)
    finish(found["passed"])


@app.command(
    help=(
        "Compare evenhand with other methods on a table: the same splits, every method chosen for "
        "τ on the training part, figures on test data.\n\nMethods of other packages need "
        "pip install 'evenhand\\[peers]'; what is not installed is reported and left out."
    ),
    epilog=examples(
        "evenhand compare loans.csv --label repaid --sensitive sex",
        "evenhand compare loans.csv --label repaid --sensitive sex --method zafar",
    ),
)
def compare(
    file: File,
    label: Label,
    sensitive: Sensitive,
    method: Annotated[
        list[str] | None,
        typer.Option(
            help="Method to compare; may be repeated.", show_default="those that are quick"
        ),
    ] = None,
    tau: Annotated[
        list[float] | None, typer.Option(help="Target; may be repeated.", show_default="0.8 0.9")
    ] = None,
    notion: Annotated[
        str, typer.Option(help="Which rate the groups shall share.")
    ] = "statistical_parity",
    favourable: FavourableOne = None,
    splits: Annotated[int, typer.Option(min=1, help="Random splits.")] = 3,
    jobs: Annotated[int, typer.Option(help="Splits at a time; -1: one for each core.")] = 1,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="CSV of every split.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the splits.")] = 0,
    bins: Bins = None,
    missing_groups: MissingGroups = Missing.error,
    min_group_size: MinGroupSize = 30,
    na: Na = None,
    keep_na: KeepNa = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods on a table; ``help`` above is what a user sees."""
    with plain_errors("No file was written or changed."):
        from evenhand.workflow.compare import compare_methods

        if out is not None:
            check_writable(out, file)
        if jobs == 0:
            raise ValueError("--jobs 0; give a number of splits at a time, or -1.")
        table = compare_methods(
            read_file(file, delimiter, encoding),
            label=label,
            sensitive=sensitive,
            methods=method,
            taus=[parse_target(t) for t in tau or [0.8, 0.9]],
            notion=notion,
            favourable=favourable,
            splits=splits,
            jobs=jobs,
            seed=seed,
            missing_groups=missing_groups.value,
            bins=parse_bins(bins),
            min_group_size=min_group_size,
            na=na,
            keep_na=keep_na or [],
            verbose=0 if as_json or not sys.stderr.isatty() else 1,
        )
        if out is not None:
            write_table(out, table)
    with printed():
        if as_json:
            typer.echo(table.to_json(orient="records"))
        else:
            from evenhand.views import terminal as _screens

            _screens.show_comparison(table)
            if out is not None:
                _screens.say_written([out])


@app.command(
    help=(
        "List the datasets that come with evenhand or that it can fetch, or write one as a CSV to "
        "try things on."
    ),
    epilog=examples(
        "evenhand datasets",
        "evenhand datasets german -o loans.csv",
    ),
)
def datasets(
    name: Annotated[str | None, typer.Argument(help="A dataset to write as a CSV.")] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="CSV to write; - is standard output.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """List the datasets or write one; ``help`` above is what a user sees."""
    with plain_errors("No file was written or changed."):
        from evenhand.tables.write import write_chunks
        from evenhand.workflow.compare import dataset_frame, dataset_list

        if name is not None:
            if name not in (known := [d["name"] for d in dataset_list()]):
                raise ValueError(f"there is no dataset {name!r}; there are {', '.join(known)}.")
            if out is None:
                raise ValueError(f"say where to write {name} to: -o {name}.csv.")
            if str(out) == "-":
                frame = dataset_frame(name)
                with printed():
                    write_chunks([frame], sys.stdout.buffer, "-")
                return
            check_writable(out)
            frame = dataset_frame(name)
            write_table(out, frame)
    if name is not None:
        about = {"out": str(out), "rows": len(frame)}
        with printed():
            typer.echo(json.dumps(about) if as_json else f"{len(frame):,} rows: {out}")
        return
    listed = dataset_list()
    with printed():
        if as_json:
            typer.echo(json.dumps(listed))
        else:
            from evenhand.views import terminal as _screens

            _screens.show_datasets(listed)
