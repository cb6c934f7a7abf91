"""The frame of every command: the app, its version, errors as sentences, exits, what is printed.

Exit codes: 0 all is well, 1 bad input, 2 the target is not met, 3 whether it is cannot be told.
"""

import io
import json
import os
import shlex
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from inspect import cleandoc
from typing import Annotated, Any

import typer
import typer.core

import evenhand
from evenhand.cli.signals import on_end
from evenhand.cli.wording import say, spell

# An option that does not exist, or has no such value, is bad input; 2 is for targets not met.
UsageError: Any = next(c for c in typer.BadParameter.__mro__ if c.__name__ == "UsageError")

UsageError.exit_code = 1


# In the order in which they are needed.
COMMANDS = (
    *("audit", "train", "adjust", "frontier", "pick", "predict", "compare", "datasets"),
    *("report", "export", "reproduce"),
)


class Command(typer.core.TyperCommand):
    """A command that refuses an option which takes one value and is given several."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Read the options; which of two values is meant is never guessed."""
        rest = super().parse_args(ctx, list(args))
        order = self.make_parser(ctx).parse_args(args=list(args))[2]
        for parameter, n in Counter(order).items():
            # Of an argument the first of two is another one.
            option: Any = parameter
            several = option.param_type_name == "argument" or option.multiple
            if n > 1 and not several and not option.is_flag:
                name = max(parameter.opts, key=len)
                raise UsageError(f"{name} is given {n} times and takes one value", ctx)
        return rest


class _Commands(typer.core.TyperGroup):
    """Commands that say what is wrong with their options as they say all else: in a sentence."""

    def list_commands(self, ctx: Any) -> list[str]:
        """List the commands in the order in which they are needed."""
        return list(COMMANDS)

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


def command(*examples: str, cls: Any = Command) -> Callable[[Callable[..., None]], Any]:
    """Register a command whose docstring is its help, with examples behind it, each a line."""
    title = f"Example{'s' * (len(examples) > 1)}:"

    def register(function: Callable[..., None]) -> Any:
        paragraphs = cleandoc(function.__doc__ or "").split("\n\n")
        text = "\n\n".join(paragraph.replace("\n", " ") for paragraph in paragraphs)
        return app.command(cls=cls, help=text, epilog="\n\n".join([title, *examples]))(function)

    return register


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
def plain_errors(interrupted: str = "No file was written or changed.") -> Iterator[None]:
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
        typer.echo(f"evenhand: {say(error)}", err=True)
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
def printed() -> Iterator[None]:
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


NOT_MET, NOT_TOLD = 2, 3


def command_line() -> str:
    """Give the command as it was typed."""
    return shlex.join(["evenhand", *sys.argv[1:]])


def show(as_json: bool, document: Any, screen: Callable[[Any], object]) -> None:
    """Print a document as JSON, or what ``screen`` prints with :mod:`evenhand.views.terminal`."""
    with printed():
        if as_json:
            from evenhand.workflow.summary import as_read

            read = document if isinstance(document, str) else json.dumps(as_read(document))
            typer.echo(read)
        else:
            from evenhand.views import terminal

            terminal.Screen.spell = staticmethod(spell)
            screen(terminal)


def reached(summary: Mapping[str, Any]) -> bool:
    """Say whether a model reaches its target, over rows without a label as well, and is worth it.

    One answer to everybody reaches every target without a model.
    """
    over_all = summary.get("all_rows") or {"reached": True}
    return bool(summary["reached"]["feasible"] and over_all["reached"])


def finish(met: bool | None) -> None:
    """End with the exit code that says whether the target is met; None: that cannot be told."""
    if not met:
        raise typer.Exit(NOT_TOLD if met is None else NOT_MET)
