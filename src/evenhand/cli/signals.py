"""What ends a program from outside; imported before anything else, so it imports little."""

import signal
from contextlib import suppress
from typing import Any

# Not every system has all of them.
NAMES = ("SIGINT", "SIGTERM", "SIGHUP")


def on_end(handlers: Any) -> dict[str, Any]:
    """Handle the signals that end a program, those that whoever started it did not turn off.

    ``handlers`` is the handler, or one for each signal's name, as this function gives those that
    there were before: none outside the main thread, where nothing is changed.
    """
    before = {}
    for name in handlers if isinstance(handlers, dict) else NAMES:
        number = getattr(signal, name, None)
        if number is None or signal.getsignal(number) is signal.SIG_IGN:
            continue
        with suppress(ValueError):  # not the main thread
            handler = handlers[name] if isinstance(handlers, dict) else handlers
            before[name] = signal.signal(number, handler)
    return before
