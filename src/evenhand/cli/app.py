"""The command line: every command, registered."""

from evenhand.cli import model_commands, paper_commands, table_commands, train
from evenhand.cli.shell import app

__all__ = ["app", "model_commands", "paper_commands", "table_commands", "train"]
