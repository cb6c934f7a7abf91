"""``python -m evenhand`` is the command line."""

from evenhand.cli import app

app(prog_name="evenhand")
