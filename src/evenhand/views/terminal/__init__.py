"""What the command line shows: tables for a terminal, made of plain values."""

from evenhand.views.terminal.models import *  # noqa: F403
