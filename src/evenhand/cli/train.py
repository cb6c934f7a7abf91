"""The command ``train``."""

from __future__ import annotations

import json
import re
import shlex
import sys
import warnings
from pathlib import Path
from typing import Annotated, Any

import typer
import typer.core

from evenhand._atomic import write_atomically
from evenhand._extras import import_extra
from evenhand.cli.files import check_writable, named_roles, notes_of, read_file, title_of
from evenhand.cli.options import (
    AsJson,
    Bins,
    Delimiter,
    Encoding,
    Favourable,
    KeepNa,
    MinGroupSize,
    Missing,
    MissingGroups,
    Na,
    Out,
    Selection,
    parse_bins,
    parse_confidence,
    parse_kinds,
    parse_target,
)
from evenhand.cli.shell import app, examples, finish, plain_errors, printed

# What --dask means without an address.
HERE = "here"

_ADDRESS = re.compile(r"[\w+.-]+://\S+|[\w.-]+:\d+")


class _DaskCommand(typer.core.TyperCommand):
    """A command whose --dask may have an address behind it, or none."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Write the value that a bare --dask stands for."""
        filled = []
        for word, after in zip(args, [*args[1:], ""], strict=True):
            bare = word == "--dask" and not _ADDRESS.fullmatch(after) and after != HERE
            filled += [word, HERE] if bare else [word]
        return super().parse_args(ctx, filled)


@app.command(
    help=(
        "Train a fair classifier on a table and write it, with a report, to files.\n\n"
        "A part of the table is held back as a test. The screen shows what was found in the "
        "columns and the chosen point beside plain logistic regression. Exit code 2 if --tau was "
        "not reached where the point was chosen; the model is written all the same.\n\n"
        "With --dask FILE is a Parquet file, a folder of them or a quoted pattern, and the rows "
        "stay with Dask's workers."
    ),
    cls=_DaskCommand,
    epilog=examples(
        "evenhand train loans.csv --label repaid --sensitive sex -o loans.model",
        "evenhand train --demo adult -o adult.model",
        "evenhand train loans.csv --label repaid --sensitive sex --confidence certified",
        "evenhand train 'data/*.parquet' --label repaid --sensitive sex --dask",
    ),
)
def train(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="CSV or Parquet, also compressed; - reads standard input."
        ),
    ] = None,
    label: Annotated[str | None, typer.Option(help="Column of the true labels.")] = None,
    sensitive: Annotated[
        list[str] | None,
        typer.Option(help="Sensitive column; given several times, values are crossed."),
    ] = None,
    tau: Annotated[
        list[float] | None,
        typer.Option(
            help="Least ratio of the groups' rates; one, or one for each --notion.",
            show_default="0.8",
        ),
    ] = None,
    notion: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "Which rate the groups shall share: statistical_parity, equal_opportunity, "
                "predictive_equality, equalized_odds, ... Several: all must hold."
            ),
            show_default="statistical_parity",
        ),
    ] = None,
    favourable: Favourable = None,
    test: Annotated[str | None, typer.Option(help="A file to test on.")] = None,
    test_size: Annotated[
        float | None,
        typer.Option(help="Share of FILE held back as a test.", show_default="0.3"),
    ] = None,
    confidence: Annotated[
        str,
        typer.Option(
            help="How sure --tau shall be in the population: about this probability (0.5 to below "
            "1); certified: 1 − delta, exactly, by a test on rows held out; none: only on the rows "
            "looked at."
        ),
    ] = "0.9",
    selection: Annotated[
        Selection, typer.Option(help="On which rows the point is chosen for --tau.")
    ] = Selection.train,
    delta: Annotated[
        float, typer.Option(help="Probability with which a certificate may be wrong.")
    ] = 0.05,
    group_cuts: Annotated[
        bool,
        typer.Option("--group-cuts", help="A cut for each group; predict then needs the groups."),
    ] = False,
    sensitive_inputs: Annotated[
        bool, typer.Option("--sensitive-inputs", help="Sensitive columns are inputs as well.")
    ] = False,
    exclude: Annotated[
        list[str] | None, typer.Option(help="Column that is no input; may be repeated.")
    ] = None,
    kind: Annotated[
        list[str] | None,
        typer.Option(
            help=(
                "How to read a column, as id=number, zip=category or 'born=date, month first'; it "
                "is then no identifier. May be repeated."
            ),
            show_default="found out",
        ),
    ] = None,
    bins: Bins = None,
    missing_groups: MissingGroups = Missing.error,
    min_group_size: MinGroupSize = 30,
    na: Na = None,
    keep_na: KeepNa = None,
    demo: Annotated[
        str | None, typer.Option(help="Train on a dataset inside the package: adult or german.")
    ] = None,
    dask: Annotated[
        str | None,
        typer.Option(
            metavar="[ADDRESS]",
            help=(
                "Train where Dask's workers are: those of the scheduler at an address such as "
                "tcp://10.0.0.1:8786, or without one as many as this machine has cores."
            ),
        ),
    ] = None,
    out: Out = Path("evenhand.model"),
    report: Annotated[
        Path | None,
        typer.Option(help="Report to write.", show_default="the model's name with .html"),
    ] = None,
    no_report: Annotated[bool, typer.Option("--no-report", help="Write no report.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of everything random.")] = 0,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Train on a table; ``help`` above is what a user sees."""
    with plain_errors("No file was written or changed."):
        from evenhand.persist import model_file as persist
        from evenhand.views import report as reports
        from evenhand.workflow.compare import dataset_frame
        from evenhand.workflow.summary import summarise
        from evenhand.workflow.train import train as train_table

        check_writable(out, file, test)
        page = report or out.with_name(f"{out.stem}.html")
        if not no_report:
            check_writable(page, file, test)
        if not no_report and page.resolve() == out.resolve():
            raise ValueError(f"model and report would both be {out}; name one with --report.")
        if test is not None and test_size is not None:
            raise ValueError("--test and --test-size: give a file to test on, or a share of FILE.")
        test_size = 0.3 if test_size is None else test_size
        if not 0 <= test_size < 1:
            raise ValueError(f"--test-size {test_size:g}; give a share from 0 to below 1.")
        if dask is None:
            if (file is None) == (demo is None):
                raise ValueError("give a FILE, or --demo adult; one of the two.")
            if demo is not None:
                label, sensitive, favourable = demo_table(demo, label, sensitive, favourable)
                table, title = dataset_frame(demo), demo
            else:
                label, sensitive = named_roles(label, sensitive)
                table, title = read_file(str(file), delimiter, encoding), title_of(file)
        else:
            label, sensitive = named_roles(label, sensitive)
            table, title = _pieces(file, demo, test, delimiter, encoding), title_of(file)
            for piece in table:
                check_writable(out, piece.path)
        taus = [parse_target(t) for t in tau or [0.8]]
        notions = notion or ["statistical_parity"]
        caught: list[warnings.WarningMessage]
        told: list[str] = []

        def tell() -> None:
            """Say what was seen in the columns while the user can still do otherwise."""
            from evenhand.views import terminal as _screens

            told.extend(notes_of(caught))
            _screens.say_notes(told)

        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            settings: dict[str, Any] = {
                "label": label,
                "sensitive": sensitive,
                "title": title,
                "test_size": test_size,
                "favourable": favourable,
                "missing_groups": missing_groups.value,
                "sensitive_inputs": sensitive_inputs,
                "exclude": exclude or [],
                "kinds": parse_kinds(kind or []),
                "na": na,
                "keep_na": keep_na or [],
                "command": _command(),
                "seed": seed,
                "tau": taus[0] if len(taus) == 1 else taus,
                "notion": notions[0] if len(notions) == 1 else notions,
                "confidence": parse_confidence(confidence),
                "selection": selection.value,
                "delta": delta,
                "group_cuts": group_cuts,
                "bins": parse_bins(bins),
                "min_group_size": min_group_size,
                "verbose": 0 if as_json or not sys.stderr.isatty() else 1,
                "before_fit": None if as_json else tell,
            }
            if dask is not None:
                saved = _train_on_dask(dask, table, settings)
            else:
                rows = None if test is None else read_file(test, delimiter, encoding)
                saved = train_table(table, test=rows, **settings)
        summary = summarise(saved)
        text = reports.render(summary).encode()
        files = [] if no_report else [(page, lambda handle: handle.write(text))]
        model_file = persist.model_writer(saved.model, facts=saved.facts)
        write_atomically(out, model_file, *files)
    notes = notes_of(caught)
    with printed():
        if as_json:
            about = {"favourable_answer": summary["favourable_answer"], "model": str(out)}
            about |= {"report": None if no_report else str(page), "notes": notes}
            typer.echo(json.dumps(about | summary))
        else:
            from evenhand.views import terminal as _screens

            _screens.show_training(summary, [note for note in notes if note not in told])
            _screens.say_written([out, *([] if no_report else [page])])
    over_all = summary.get("all_rows") or {"reached": True}
    finish(summary["reached"]["feasible"] and over_all["reached"])


def _pieces(
    file: str | None,
    demo: str | None,
    test: str | None,
    delimiter: str | None,
    encoding: str | None,
) -> list[Any]:
    """Find the pieces of the table that train works on with Dask; refuse what is for others."""
    others = {"--demo": demo, "--test": test, "--delimiter": delimiter, "--encoding": encoding}
    for option, value in others.items():
        if value is not None:
            instead = "; --test-size holds back a share of FILE" if option == "--test" else ""
            raise ValueError(
                f"{option} cannot be had with --dask, which reads Parquet files alone{instead}."
            )
    if file is None or file == "-":
        raise ValueError(
            "--dask needs a FILE: a Parquet file, a folder of them, or a pattern such as "
            "'data/*.parquet'."
        )
    for module in ("pyarrow", "dask", "distributed"):
        import_extra(module, "dask")
    from evenhand.workflow.dask_pieces import find_pieces

    return find_pieces(file)


def _train_on_dask(address: str, pieces: list[Any], settings: dict[str, Any]) -> Any:
    from evenhand.workflow.dask_pieces import dask_client
    from evenhand.workflow.settings import TrainSettings
    from evenhand.workflow.train_dask import train_pieces

    before_fit = settings.pop("before_fit")
    with dask_client(None if address == HERE else address, most=len(pieces)):
        return train_pieces(pieces, TrainSettings.of(**settings), before_fit)


def _command() -> str:
    return shlex.join(["evenhand", *sys.argv[1:]])


def demo_table(
    demo: str, label: str | None, sensitive: list[str] | None, favourable: str | None
) -> tuple[str, list[str], str | None]:
    """Fill in what is known of a dataset inside the package."""
    from evenhand.datasets import DATASETS
    from evenhand.workflow.compare import INSIDE

    if demo not in INSIDE:
        raise ValueError(f"--demo {demo!r}; use {' or '.join(INSIDE)}.")
    record = DATASETS[demo]
    label = label or record.label
    known = str(record.favourable) if label == record.label else None
    return label, sensitive or [record.sensitive[0].name], favourable or known
