"""The command line. Each command parses, calls the library, prints.

Exit codes: 0 all is well, 1 bad input, 2 the target is not met.
"""

from __future__ import annotations

import io
import json
import os
import re
import shlex
import sys
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
import typer.core

import evenhand
from evenhand._options import as_options
from evenhand._signals import on_end
from evenhand._versions import import_extra

if TYPE_CHECKING:
    from evenhand.experiments import Verdict

# An option that does not exist, or has no such value, is bad input; 2 is for targets not met.
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")
UsageError.exit_code = 1


class _Commands(typer.core.TyperGroup):
    """Commands that say what is wrong with their options as they say all else: in a sentence."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        try:
            return super().invoke(ctx)
        except UsageError as error:
            what = error.format_message().rstrip(".")
            # Some versions of typer do not say which value was wrong, but know it.
            wrong: list[Any] = getattr(error.__cause__, "errors", list)()
            if wrong and repr(wrong[0]["input"]) not in what:
                what += f" ({wrong[0]['input']!r})"
            command = error.ctx.command_path if error.ctx else "evenhand"
            typer.echo(f"evenhand: {what}; see {command} --help.", err=True)
            raise typer.Exit(1) from None


app = typer.Typer(
    name="evenhand",
    cls=_Commands,
    help="Fair classification: one fit, the whole accuracy-fairness frontier.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
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
    # A terminal or file that cannot show τ gets a question mark, not a traceback.
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")


def _examples(*commands: str) -> str:
    """Write examples as the end of a help text, each a line to copy."""
    return "\n\n".join([f"Example{'s' * (len(commands) > 1)}:", *commands])


class _Ended(BaseException):
    """A command was told to end.

    No KeyboardInterrupt, after which a fit gives the best model so far: whoever interrupts a
    command wants none of it.
    """


def _end(*_: Any) -> None:
    raise _Ended


@contextmanager
def _signals_raise() -> Iterator[None]:
    """Let a command that is told to end clean up before."""
    before = on_end(_end)
    try:
        yield
    finally:
        on_end(before)


@contextmanager
def _plain_errors(interrupted: str) -> Iterator[None]:
    """Turn what a user can mend into a sentence and exit code 1, and an interrupt into 130."""
    try:
        with _signals_raise():
            yield
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        pattern = isinstance(error, FileNotFoundError) and "*" in str(error.filename)
        advice = "; a pattern of several files is for train --dask" if pattern else ""
        typer.echo(f"evenhand: {where}{error.strerror or error}{advice}.", err=True)
        raise typer.Exit(1) from None
    except (ImportError, ValueError) as error:
        typer.echo(f"evenhand: {as_options(str(error))}", err=True)
        raise typer.Exit(1) from None
    except (KeyboardInterrupt, _Ended):
        typer.echo(f"evenhand: interrupted. {interrupted}", err=True)
        raise typer.Exit(130) from None
    except typer.Exit:
        raise
    except Exception as error:  # the last resort: what nobody thought of is said, not thrown
        if os.environ.get("EVENHAND_TRACEBACK"):
            raise
        what = str(error).splitlines()[0] if str(error) else ""
        typer.echo(
            f"evenhand: an error that should not happen, {type(error).__name__}: {what}. Please "
            "report it; EVENHAND_TRACEBACK=1 shows where.",
            err=True,
        )
        raise typer.Exit(1) from None


@contextmanager
def _printed() -> Iterator[None]:
    """Print; say in a sentence that it cannot be, and nothing if its reader has seen enough."""
    try:
        yield
        sys.stdout.flush()
    except BrokenPipeError:
        _print_nothing_more()
    except OSError as error:
        if error.filename is not None:  # a file's, not the output's
            raise
        _print_nothing_more()
        typer.echo(f"evenhand: the output cannot be written: {error.strerror or error}.", err=True)
        raise typer.Exit(1) from None
    except SystemExit as error:
        # So rich ends a program whose output has no reader; the command's own exit code counts.
        if not isinstance(error.__context__, BrokenPipeError):
            raise
        _print_nothing_more()


def _print_nothing_more() -> None:
    """Drop what is not printed yet, which Python would try again to print when it ends."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


NOT_MET = 2

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


File = Annotated[
    str,
    typer.Argument(metavar="FILE", help="CSV or Parquet, also compressed; - reads standard input."),
]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that train has written.")]
Label = Annotated[str, typer.Option(help="Column of the true labels.")]
Sensitive = Annotated[
    list[str], typer.Option(help="Sensitive column; given several times, values are crossed.")
]
Favourable = Annotated[
    str | None,
    typer.Option(
        help="The favourable label.", show_default="the larger of two; of more, each counts"
    ),
]
FavourableOne = Annotated[
    str | None,
    typer.Option(
        help="The favourable label; of more than two it must be named.",
        show_default="the larger of two",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates fields.", show_default="found out")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the text.", show_default="utf-8")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]


Bins = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "For a sensitive number such as age: how many bins, or edges as 30,45,60. With several "
            "--sensitive columns as age=30,45,60; may be repeated."
        )
    ),
]


class Missing(StrEnum):
    """What to do with rows that have no group."""

    error = "error"
    drop = "drop"
    group = "group"


MissingGroups = Annotated[
    Missing,
    typer.Option(help="Rows without a group: refuse them, drop them, or make them a group."),
]


class Selection(StrEnum):
    """On which rows the point is chosen."""

    train = "train"
    holdout = "holdout"
    crossfit = "crossfit"
    certified = "certified"


def _read(path: str, delimiter: str | None, encoding: str | None) -> Any:
    from evenhand.files import read_table

    return read_table(path, delimiter=_one_character(delimiter), encoding=encoding)


def _one_character(delimiter: str | None) -> str | None:
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise ValueError(f"--delimiter {delimiter!r}; give one character, or tab.")
    return delimiter


def _writable(path: Path, *inputs: str | Path | None) -> None:
    """Refuse a place that cannot be written to, before the work is done, and one that is read."""
    if str(path) == "-":
        raise ValueError("-o -: this command writes files only; name one.")
    for other in inputs:
        if other is not None and str(other) != "-" and _same(path, Path(other)):
            raise ValueError(f"{path} is an input; it would be replaced by the output.")
    if path.exists() and not path.is_dir() and not path.is_file():
        raise ValueError(f"{path} is no regular file; name one.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder; name a file.")
    if not path.parent.exists():
        raise ValueError(f"there is no folder {path.parent}; make it first.")
    if not os.access(path.parent, os.W_OK):
        raise ValueError(f"{path.parent} cannot be written to.")


def _same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _load(path: Path, *, whole: bool = False) -> Any:
    """Load a model that has its table encoder and, if ``whole``, the facts of its training."""
    from evenhand import persist
    from evenhand.tables import FairPipeline

    saved = persist.load_model(path)
    if not isinstance(saved.model, FairPipeline):
        raise ValueError(
            f"{path} holds a classifier without the encoder of its table; use it in Python, with "
            "evenhand.load_model."
        )
    if whole and "train_counts" not in saved.facts:
        raise ValueError(
            f"{path} was saved in Python, without the facts that evenhand train keeps; it can "
            "predict and be exported."
        )
    return saved


def _finish(met: bool) -> None:
    if not met:
        raise typer.Exit(NOT_MET)


@app.command(
    help=(
        "Compare groups in a table of answers: sizes, rates with 95% intervals, ratios, the "
        "four-fifths verdict.\n\nWith --label and --prediction all rates are given. With --label "
        "alone the data themselves are audited: how often each group has the favourable label, and "
        "how strongly group and label go together. Exit code 2 if the ratio is below --tau."
    ),
    epilog=_examples(
        "evenhand audit new.csv --label repaid --prediction approved --sensitive sex",
        "evenhand audit loans.csv --label repaid --sensitive sex --sensitive race",
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
            help="Group that the others are compared with.", show_default="the best-off one"
        ),
    ] = None,
    tau: Annotated[float, typer.Option(help="Least ratio; 0.8 is the four-fifths rule.")] = 0.8,
    bins: Bins = None,
    missing_groups: MissingGroups = Missing.error,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Compare groups in a table; ``help`` above is what a user sees."""
    with _plain_errors("Nothing was written."):
        from evenhand import workflow

        found = workflow.audit(
            _read(file, delimiter, encoding),
            label=label,
            prediction=prediction,
            sensitive=sensitive,
            favourable=favourable,
            privileged=privileged,
            missing_groups=missing_groups.value,
            bins=_bins(bins),
            tau=_target(tau),
        )
    with _printed():
        if as_json:
            typer.echo(json.dumps(found))
        else:
            from evenhand import _screens

            _screens.show_audit(found)
    _finish(found["passed"])


def _target(tau: float) -> float:
    if not 0 < tau <= 1:
        raise ValueError(f"--tau {tau:g}; give a ratio above 0 and at most 1.")
    return tau


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
    epilog=_examples(
        "evenhand train loans.csv --label repaid --sensitive sex -o loans.model",
        "evenhand train --demo adult -o adult.model",
        "evenhand train loans.csv --label repaid --sensitive sex --selection certified",
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
    min_group_size: Annotated[
        int, typer.Option(min=1, help="Groups of fewer rows are not compared, unless two are all.")
    ] = 30,
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
    with _plain_errors("No file was written or changed."):
        from evenhand import persist, workflow
        from evenhand import report as reports

        _writable(out, file, test)
        page = report or out.with_name(f"{out.stem}.html")
        if not no_report:
            _writable(page, file, test)
        if not no_report and page.resolve() == out.resolve():
            raise ValueError(f"model and report would both be {out}; name one with --report.")
        if test is not None and test_size is not None:
            raise ValueError("--test and --test-size: give a file to test on, or a share of FILE.")
        test_size = 0.3 if test_size is None else test_size
        if not 0 <= test_size < 1:
            raise ValueError(f"--test-size {test_size:g}; give a share from 0 to below 1.")
        if dask is None:
            table, label, sensitive, title = _table(
                file, demo, label, sensitive, delimiter, encoding
            )
        else:
            label, sensitive = _named(label, sensitive)
            table, title = _pieces(file, demo, test, delimiter, encoding), _title(file)
            for piece in table:
                _writable(out, piece.path)
        taus = [_target(t) for t in tau or [0.8]]
        notions = notion or ["statistical_parity"]
        caught: list[warnings.WarningMessage]
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
                "kinds": _kinds(kind or []),
                "command": _command(),
                "seed": seed,
                "tau": taus[0] if len(taus) == 1 else taus,
                "notion": notions[0] if len(notions) == 1 else notions,
                "selection": selection.value,
                "delta": delta,
                "group_cuts": group_cuts,
                "bins": _bins(bins),
                "min_group_size": min_group_size,
                "verbose": 0 if as_json or not sys.stderr.isatty() else 1,
            }
            if dask is not None:
                saved = _train_on_dask(dask, table, settings)
            else:
                rows = None if test is None else _read(test, delimiter, encoding)
                saved = workflow.train(table, test=rows, **settings)
        summary = workflow.summarise(saved)
        text = reports.render(summary).encode()
        files = [] if no_report else [(page, lambda handle: handle.write(text))]
        model_file = persist.model_writer(saved.model, facts=saved.facts)
        persist.write_atomically(out, model_file, *files)
    notes = _notes(caught)
    with _printed():
        if as_json:
            about = {"model": str(out), "report": None if no_report else str(page), "notes": notes}
            typer.echo(json.dumps(about | summary))
        else:
            from evenhand import _screens

            _screens.show_training(summary, notes)
            _screens.say_written([out, *([] if no_report else [page])])
    _finish(summary["reached"]["feasible"])


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
    from evenhand._dask_training import find_pieces

    return find_pieces(file)


def _train_on_dask(address: str, pieces: list[Any], settings: dict[str, Any]) -> Any:
    from evenhand._dask_training import dask_client, train_pieces

    with dask_client(None if address == HERE else address, most=len(pieces)):
        return train_pieces(pieces, **settings)


def _command() -> str:
    return shlex.join(["evenhand", *sys.argv[1:]])


def _bins(texts: list[str] | None) -> Any:
    """Tell bins from texts such as 30,45,60, or those of each column from age=30,45,60."""
    found = {}
    for text in texts or []:
        column, named, bins = text.rpartition("=")
        if column in found or (texts and len(texts) > 1 and not named):
            raise ValueError(
                f"--bins {text!r}; say once for each column which it has, as in age=30,45,60."
            )
        try:
            # A comma alone makes one edge of a number.
            values = [float(part) for part in bins.removesuffix(",").split(",")]
        except ValueError:
            raise ValueError(
                f"--bins {text!r}; give a number of bins or edges such as 30,45,60, after a column "
                "and = if there are several."
            ) from None
        found[column] = int(values[0]) if len(values) == 1 and "," not in bins else values
    return found.get("", found or None)


def _kinds(texts: list[str]) -> dict[str, str]:
    """Tell column and kind from texts such as zip=category."""
    kinds = {}
    for text in texts:
        column, found, kind = text.rpartition("=")
        if not found:
            raise ValueError(f"--kind {text!r}; name a column and its kind, as in zip=category.")
        if column in kinds:
            raise ValueError(f"--kind is given twice for column {column!r}; give it once.")
        kinds[column] = kind
    return kinds


def _notes(caught: list[warnings.WarningMessage]) -> list[str]:
    """Give warnings that are meant for users, each once."""
    meant = [as_options(str(w.message)) for w in caught if issubclass(w.category, UserWarning)]
    return list(dict.fromkeys(meant))


def _write_text(path: Path, text: str) -> None:
    from evenhand.persist import write_atomically

    write_atomically(path, lambda file: file.write(text.encode()))


def _write_table(path: Path, frame: Any) -> None:
    from evenhand.files import write_chunks
    from evenhand.persist import write_atomically

    write_atomically(path, lambda file: write_chunks([frame], file, str(path)))


def _table(
    file: str | None,
    demo: str | None,
    label: str | None,
    sensitive: list[str] | None,
    delimiter: str | None,
    encoding: str | None,
) -> tuple[Any, str, list[str], str]:
    """Read the table that train works on, or one of the package's."""
    if (file is None) == (demo is None):
        raise ValueError("give a FILE, or --demo adult; one of the two.")
    if demo is not None:
        from evenhand import datasets

        if demo not in ("adult", "german"):
            raise ValueError(f"--demo {demo!r}; use adult or german.")
        data = datasets.load_adult() if demo == "adult" else datasets.load_german()
        own_label, own_sensitive = "income" if demo == "adult" else "credit", "sex"
        frame = (
            data.frame if own_label in data.frame else data.frame.assign(**{own_label: data.target})
        )
        return frame, label or own_label, sensitive or [own_sensitive], demo
    label, sensitive = _named(label, sensitive)
    return _read(str(file), delimiter, encoding), label, sensitive, _title(file)


def _named(label: str | None, sensitive: list[str] | None) -> tuple[str, list[str]]:
    if label is None or not sensitive:
        raise ValueError("name the columns: --label repaid --sensitive sex.")
    return label, sensitive


def _title(file: str | None) -> str:
    return "standard input" if file == "-" else Path(str(file)).name


@app.command(
    help=(
        "Print the frontier of a saved model: what accuracy each target costs.\n\n"
        "With --picture the frontier is drawn to a PNG, SVG or PDF file (needs matplotlib)."
    ),
    epilog=_examples(
        "evenhand frontier loans.model",
        "evenhand frontier loans.model --picture frontier.png",
    ),
)
def frontier(
    model: ModelFile,
    picture: Annotated[
        Path | None, typer.Option(help="Picture to draw: .png, .svg or .pdf.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Print and draw a saved model's frontier; ``help`` above is what a user sees."""
    with _plain_errors("No file was written or changed."):
        from evenhand import workflow

        saved = _load(model, whole=True)
        summary = workflow.summarise(saved)
        if picture is not None:
            _writable(picture, model)
            _draw(saved.model[-1], picture)
    with _printed():
        if as_json:
            kept = (
                "title",
                "tau",
                "rate",
                "groups",
                "labels",
                "parts",
                "points",
                "chosen",
                "saved",
            )
            typer.echo(json.dumps({key: summary[key] for key in kept}))
        else:
            from evenhand import _screens

            _screens.show_frontier(summary)
            if picture is not None:
                _screens.say_written([picture])


def _draw(model: Any, path: Path) -> None:
    from evenhand._versions import import_extra
    from evenhand.persist import write_atomically

    kind = path.suffix.lower().lstrip(".")
    if kind not in ("png", "svg", "pdf"):
        raise ValueError(f"--picture {path}; the name must end in .png, .svg or .pdf.")
    import_extra("matplotlib", "plot").use("Agg")
    from evenhand.displays import FrontierDisplay

    figure = FrontierDisplay.from_estimator(model).figure_
    write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=150))


@app.command(
    help=(
        "Move a saved model to another target along its frontier, without training and without "
        "data.\n\nExit code 2 if no point reaches --tau; the fairest is written then."
    ),
    epilog=_examples(
        "evenhand pick loans.model --tau 0.9 -o loans-90.model",
    ),
)
def pick(
    model: ModelFile,
    tau: Annotated[
        list[float],
        typer.Option(
            help="The new target; of several notions the strictest gets it, and the targets of the "
            "others stay in proportion."
        ),
    ],
    out: Out,
    as_json: AsJson = False,
) -> None:
    """Move along the frontier; ``help`` above is what a user sees."""
    with _plain_errors("No file was written or changed."):
        from evenhand import persist, workflow

        _writable(out)
        if len(tau) > 1:
            raise ValueError(
                f"--tau was given {len(tau)} times; give one, the target of the strictest notion, "
                "and those of the others stay in proportion."
            )
        saved = _load(model, whole=True)
        command = f"{saved.facts['command']}\n{_command()}".strip()
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            moved = persist.SavedModel(
                saved.model.at(_target(tau[0])), {**saved.facts, "command": command}
            )
        summary = workflow.summarise(moved)
        persist.save_model(moved.model, out, facts=moved.facts)
    with _printed():
        if as_json:
            typer.echo(json.dumps({"model": str(out), "notes": _notes(caught)} | summary))
        else:
            from evenhand import _screens

            _screens.show_point(summary, _notes(caught))
            _screens.show_proportion(summary)
            _screens.say_written([out])
    _finish(summary["reached"]["feasible"])


@app.command(
    help=(
        "Predict labels and scores for the rows of a table.\n\nThe output has a row for each row "
        "of FILE, in its order: the predicted label and a score for each label. FILE is read in "
        "parts, so it may be larger than memory."
    ),
    epilog=_examples(
        "evenhand predict loans.model new.csv -o answers.csv",
        "zcat new.csv.gz | evenhand predict loans.model - -o - | head",
    ),
)
def predict(
    model: ModelFile,
    file: File,
    out: Annotated[
        str,
        typer.Option(
            "--out",
            "-o",
            help=(
                "File to write: CSV, compressed if the name ends in .gz, .bz2, .xz, .zip or .zst; "
                "Parquet if it ends in .parquet; - is CSV on standard output."
            ),
        ),
    ],
    keep: Annotated[
        list[str] | None,
        typer.Option(help="Column of FILE to copy to the output; may be repeated."),
    ] = None,
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Predict in a stream; ``help`` above is what a user sees."""
    with _plain_errors("No file was written or changed."):
        from evenhand import persist
        from evenhand.files import write_chunks

        saved = _load(model)
        _check_kept(keep or [], saved.model[-1].classes_.tolist())
        answers = _predict(saved.model, file, keep or [], _one_character(delimiter), encoding)
        if out == "-":
            with _printed():
                write_chunks(answers, sys.stdout.buffer, out)
            return
        _writable(Path(out), file, model)
        written: list[int] = []

        def write(handle: Any) -> None:
            written.append(write_chunks(answers, handle, out))

        persist.write_atomically(out, write)
        n = written[0]
    with _printed():
        if as_json:
            typer.echo(json.dumps({"rows": n, "out": out}))
        else:
            typer.echo(f"{n:,} row{'s' * (n != 1)} predicted: {out}")


def _check_kept(keep: list[str], labels: list[Any]) -> None:
    """Refuse columns that the output would have twice."""
    own = {"prediction", *(f"score[{label}]" for label in labels)}
    for i, name in enumerate(keep):
        if name in keep[:i]:
            raise ValueError(f"--keep {name} is given twice; give it once.")
        if name in own:
            raise ValueError(
                f"--keep {name}: the output has a column {name!r} of its own; rename that of FILE."
            )


def _predict(
    model: Any, file: str, keep: list[str], delimiter: str | None, encoding: str | None
) -> Iterator[Any]:
    """Give the answers for one part of a file after the other."""
    import pandas as pd

    from evenhand.columns import CellError
    from evenhand.files import read_chunks

    n = 0
    with closing(read_chunks(file, delimiter=delimiter, encoding=encoding)) as chunks:
        for chunk in chunks:
            for name in keep:
                if name not in chunk.columns:
                    raise ValueError(f"{file} has no column {name!r} to keep.")
            table = chunk[keep].reset_index(drop=True)
            try:
                proba = model.predict_proba(chunk)
                answer = {"prediction": model.predict(chunk)}
            except CellError as error:
                raise error.moved(n) from None
            labels = model[-1].classes_.tolist()
            answer |= {f"score[{label}]": proba[:, k] for k, label in enumerate(labels)}
            yield pd.concat([table, pd.DataFrame(answer)], axis=1)
            n += len(chunk)


@app.command(
    help=(
        "Compare evenhand with other methods on a table: the same splits, every method chosen for "
        "τ on the training part, figures on test data.\n\nMethods of other packages need "
        "pip install 'evenhand\\[peers]'; what is not installed is reported and left out."
    ),
    epilog=_examples(
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
    delimiter: Delimiter = None,
    encoding: Encoding = None,
    as_json: AsJson = False,
) -> None:
    """Compare methods on a table; ``help`` above is what a user sees."""
    with _plain_errors("No file was written or changed."):
        from evenhand import workflow
        from evenhand.peers import summarize

        if out is not None:
            _writable(out, file)
        if jobs == 0:
            raise ValueError("--jobs 0; give a number of splits at a time, or -1.")
        table = workflow.compare_methods(
            _read(file, delimiter, encoding),
            label=label,
            sensitive=sensitive,
            methods=method,
            taus=[_target(t) for t in tau or [0.8, 0.9]],
            notion=notion,
            favourable=favourable,
            splits=splits,
            jobs=jobs,
            seed=seed,
            missing_groups=missing_groups.value,
            bins=_bins(bins),
            verbose=0 if as_json or not sys.stderr.isatty() else 1,
        )
        if out is not None:
            _write_table(out, table)
    with _printed():
        if as_json:
            typer.echo(table.to_json(orient="records"))
        else:
            from evenhand import _screens

            _screens.show_comparison(summarize(table))
            if out is not None:
                _screens.say_written([out])


@app.command(
    help=(
        "List the datasets that come with evenhand or that it can fetch, or write one as a CSV to "
        "try things on."
    ),
    epilog=_examples(
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
    with _plain_errors("No file was written or changed."):
        from evenhand.files import write_chunks
        from evenhand.workflow import dataset_frame, dataset_list

        if name is not None:
            if name not in (known := [d["name"] for d in dataset_list()]):
                raise ValueError(f"there is no dataset {name!r}; there are {', '.join(known)}.")
            if out is None:
                raise ValueError(f"say where to write {name} to: -o {name}.csv.")
            if str(out) == "-":
                frame = dataset_frame(name)
                with _printed():
                    write_chunks([frame], sys.stdout.buffer, "-")
                return
            _writable(out)
            frame = dataset_frame(name)
            _write_table(out, frame)
    if name is not None:
        about = {"out": str(out), "rows": len(frame)}
        with _printed():
            typer.echo(json.dumps(about) if as_json else f"{len(frame):,} rows: {out}")
        return
    listed = dataset_list()
    with _printed():
        if as_json:
            typer.echo(json.dumps(listed))
        else:
            from evenhand import _screens

            _screens.show_datasets(listed)


@app.command(
    help=(
        "Write the report of a saved model: one HTML file that opens anywhere, offline, for the "
        "person who decides."
    ),
    epilog=_examples(
        "evenhand report loans.model -o loans.html",
    ),
)
def report(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="HTML file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write a saved model's report; ``help`` above is what a user sees."""
    with _plain_errors("No file was written or changed."):
        from evenhand import report as reports
        from evenhand import workflow

        _writable(out, model)
        _write_text(out, reports.render(workflow.summarise(_load(model, whole=True))))
    with _printed():
        if as_json:
            typer.echo(json.dumps({"report": str(out)}))
        else:
            typer.echo(f"written: {out}")


@app.command(
    help=(
        "Write a saved model as ONNX, for places without Python (needs pip install "
        "'evenhand\\[onnx]').\n\nThe graph takes a table's columns, numbers and dates as numbers, "
        "and gives the number of the label and the score."
    ),
    epilog=_examples(
        "evenhand export loans.model -o loans.onnx",
    ),
)
def export(
    model: ModelFile,
    out: Annotated[Path, typer.Option("--out", "-o", help="ONNX file to write.")],
    as_json: AsJson = False,
) -> None:
    """Write a saved model as ONNX; ``help`` above is what a user sees."""
    with _plain_errors("No file was written or changed."):
        from evenhand import persist
        from evenhand.onnx_export import to_onnx

        _writable(out, model)
        data = to_onnx(_load(model).model)
        persist.write_atomically(out, lambda file: file.write(data))
    with _printed():
        typer.echo(json.dumps({"onnx": str(out)}) if as_json else f"written: {out}")


@app.command(
    help=(
        "Run the paper's experiments again and judge its claims.\n\n"
        "Writes for each experiment a table (CSV) and a picture (PNG, SVG), and claims.md with "
        "every statement of the paper, the test that decides it and the verdict. All of it takes "
        "about a quarter of an hour on two idle cores. What is interrupted goes on where it "
        "stopped."
    ),
    epilog=_examples(
        "evenhand reproduce --quick",
        "evenhand reproduce rivals noise --out results",
    ),
)
def reproduce(
    names: Annotated[
        list[str] | None,
        typer.Argument(help="Experiments to run; all by default.", show_default=False),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="One seed, few correlations: a minute or two.")
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
    """Run the paper's experiments and judge its claims; ``help`` above is what a user sees."""
    folder = out or Path("reproduction-quick" if quick else "reproduction")
    with _plain_errors(f"What is done is kept in {folder / 'cells'}: run it again to go on."):
        from evenhand import experiments

        if listed:
            titles = {name: e.title for name, e in experiments.EXPERIMENTS.items()}
            lines = [f"{name:<18}{title}" for name, title in titles.items()]
            with _printed():
                typer.echo(json.dumps(titles) if as_json else "\n".join(lines))
            return
        if jobs == 0:
            raise ValueError("--jobs 0; give a number of runs at a time, or -1.")
        verdicts = experiments.reproduce(names, out=folder, quick=quick, n_jobs=jobs, verbose=1)
    with _printed():
        if as_json:
            typer.echo(json.dumps([verdict.to_dict() for verdict in verdicts]))
        else:
            _show_verdicts(verdicts, folder, quick)


_COLORS = {"holds": "green", "does not hold": "red", "cannot be decided": "yellow"}


def _show_verdicts(verdicts: list[Verdict], folder: Path, quick: bool) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    from evenhand.experiments import tally
    from evenhand.experiments._claims import CORRECTED, PRINTED

    table = Table(box=box.SIMPLE, pad_edge=False, show_lines=True, expand=True)
    table.add_column("", justify="right")
    table.add_column("claim, and what was measured", ratio=1)
    table.add_column("verdict", max_width=20)
    table.add_column("figure", no_wrap=True)
    for number, verdict in enumerate(verdicts, 1):
        text = Text(f"{verdict.claim.statement} ({verdict.claim.place})")
        single = len(verdict.findings) == 1
        for reading in (CORRECTED,) if single else (PRINTED, CORRECTED):
            what = "" if single else f"{reading}: "
            text.append(f"\n{what}{verdict.findings[reading].value}", style="dim")
        color = _COLORS.get(verdict.verdict, "cyan")
        found = Text(verdict.verdict, style=color)
        table.add_row(str(number), text, found, verdict.experiment)
    console = Console()
    console.print(table)
    console.print(f"{tally(verdicts)}.", markup=False)
    if quick:
        console.print("A quick run: one seed, few correlations. A look, not a result.")
    claims = "claims.md" if (folder / "claims.md").exists() else "claims-partial.md"
    where = f"Tables and pictures are in {folder}, the tests in {folder / claims}."
    console.print(where, markup=False)
