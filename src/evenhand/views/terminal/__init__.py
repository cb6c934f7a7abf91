"""What the command line shows: tables for a terminal, made of plain values."""

from evenhand.views.terminal.audit import show_audit
from evenhand.views.terminal.lists import show_comparison, show_datasets
from evenhand.views.terminal.models import (
    show_frontier,
    show_point,
    show_proportion,
    show_training,
)
from evenhand.views.terminal.screen import Screen, say_notes, say_written, show_use

__all__ = [
    "Screen",
    "say_notes",
    "say_written",
    "show_audit",
    "show_comparison",
    "show_datasets",
    "show_frontier",
    "show_point",
    "show_proportion",
    "show_training",
    "show_use",
]
