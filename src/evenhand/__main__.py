"""The command line's way in; it imports late, so that a signal is a sentence from the start."""

import os
import sys
from importlib.util import find_spec
from typing import Any

from evenhand._extras import how_to_install
from evenhand.cli.signals import on_end

__all__ = ["main"]

# What the command needs beside the library: the extra "cli".
NEEDS = ("typer", "rich", "jinja2", "pyarrow")


def _stop(*_: Any) -> None:
    # Raising would not do: amid an import a KeyboardInterrupt may be lost or only half heard.
    os.write(2, b"evenhand: interrupted.\n")
    os._exit(130)


def main() -> None:
    """Run the command line.

    Where no command is at work, a signal to end is obeyed at once; commands clean up first.
    """
    on_end(_stop)
    absent = [name for name in NEEDS if find_spec(name) is None]
    if absent:
        sys.exit(f"evenhand: the command needs {', '.join(absent)}; {how_to_install('cli')}")
    from evenhand.cli.app import app

    try:
        try:
            app(prog_name="evenhand")
        finally:
            sys.stdout.flush()
    except OSError as error:
        # A help text; what commands print, they see to themselves.
        os.write(2, f"evenhand: the output cannot be written: {error.strerror}.\n".encode())
        os._exit(1)


if __name__ == "__main__":
    main()
