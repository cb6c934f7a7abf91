"""The command line's way in; it imports late, so that a signal is a sentence from the start."""

import os
from typing import Any

from evenhand._signals import on_end

__all__ = ["main"]


def _stop(*_: Any) -> None:
    # Raising would not do: amid an import a KeyboardInterrupt may be lost or only half heard.
    os.write(2, b"evenhand: interrupted.\n")
    os._exit(130)


def main() -> None:
    """Run the command line.

    Where no command is at work, a signal to end is obeyed at once; commands clean up first.
    """
    on_end(_stop)
    from evenhand.cli import app

    app(prog_name="evenhand")


if __name__ == "__main__":
    main()
