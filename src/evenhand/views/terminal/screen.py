"""What every screen of the command line is made of."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from rich import box
from rich.cells import cell_len
from rich.console import Console, ConsoleOptions, RenderResult
from rich.measure import Measurement
from rich.table import Table
from rich.text import Text

from evenhand.core.errors import Parameter
from evenhand.workflow.labels import favourable_answer


class Screen(Console):
    """A terminal that never reads markup: what a table says is text, whatever brackets it has.

    ``spell`` writes a parameter that a screen advises, in Python's spelling unless a command sets
    its own.
    """

    spell: Callable[[Parameter], str] = str

    def __init__(self, *, stderr: bool = False) -> None:
        super().__init__(markup=False, highlight=False, emoji=False, stderr=stderr)

    def say(self, text: str | Text, style: str = "", *, wrap: bool = True) -> None:
        """Print text; not wrapped here, the terminal breaks its lines and copies them whole."""
        self.print(text, style=style, soft_wrap=not wrap)

    def say_favourable(
        self, label: str, values: Sequence[str], of_label: tuple[str, str] | None = None
    ) -> None:
        """Begin a screen: a label such as "default" may well count as favourable by mistake.

        ``of_label`` are column and favourable value of the label beside a prediction.
        """
        answer = favourable_answer(short(label), [short(v, 30) for v in values])
        if of_label is not None:
            answer += f"; of the label: {short(of_label[0])} = {short(of_label[1], 30)}"
        self.say(f"favourable answer: {answer}", "bold")

    def say_left_out(self, dropped: Sequence[dict[str, Any]]) -> None:
        """Say which rows were dropped."""
        for one in dropped:
            self.say(f"left out: {one['n']:,} rows {short(one['reason'])}", "dim")


class Grid(Table):
    """A table of text, the first column and those named ``left`` on the left, others right."""

    def __init__(self, *columns: str, title: str | None = None, left: Sequence[str] = ()) -> None:
        bold = None if title is None else Text(title, style="bold")
        super().__init__(box=box.SIMPLE_HEAD, pad_edge=False, title=bold, title_justify="left")
        for i, name in enumerate(columns):
            on_left = i == 0 or name in left
            self.add_column(Text(name), justify="left" if on_left else "right", overflow="fold")

    def row(self, *values: Any, style: str = "") -> None:
        """Add a row of values as text."""
        self.add_row(*(v if isinstance(v, Text) else Text(str(v), style=style) for v in values))

    def fits(self) -> bool:
        """Whether it can be shown as wide as it wants to be."""
        screen = Screen()
        wanted = Measurement.get(screen, screen.options.update(width=10_000), self)
        return wanted.maximum <= screen.width


# An option with its value, which is to be pasted whole; else a word.
_PIECE = re.compile(r"""\(?--[\w-]+ (?:'[^']*'|[^\s'"]+)+\S*|\S+""")


class Folded:
    """Text that is folded between words and never inside an option and its value."""

    def __init__(self, text: str, style: str = "") -> None:
        self.pieces, self.style = _PIECE.findall(text), style
        options = (cell_len(piece) for piece in self.pieces if "--" in piece)
        self.longest_option = max(options, default=1)

    def __rich_measure__(self, console: Console, options: ConsoleOptions) -> Measurement:
        return Measurement(self.longest_option, cell_len(" ".join(self.pieces)) or 1)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        lines = [""]
        for piece in self.pieces:
            longer = f"{lines[-1]} {piece}".lstrip()
            if lines[-1] and cell_len(longer) > options.max_width:
                lines.append(piece)
            else:
                lines[-1] = longer
        yield Text("\n".join(lines), style=self.style, overflow="fold")


def short(text: str, most: int = 60) -> str:
    """Give text of a table in one line that a screen can show."""
    text = "".join(c if c.isprintable() else "�" for c in text)
    return text if len(text) <= most else f"{text[: most - 1]}…"


def crossed(names: Sequence[str]) -> str:
    """Name the sensitive columns, whose values are crossed."""
    return " × ".join(short(name, 30) for name in names)


def show_use(answer: str, group_use: str) -> None:
    """Say which answer a saved model takes for favourable, and whether the group decides."""
    screen = Screen()
    screen.say(f"favourable answer: {short(answer, 100)}", "bold", wrap=False)
    if group_use:
        screen.say(short(group_use, 400), "bold yellow")


def say_notes(notes: Sequence[str]) -> None:
    """Say on standard error what a user should know before the work is done."""
    for note in notes:
        Screen(stderr=True).say(f"note: {short(note, 400)}", "yellow", wrap=False)


def say_written(paths: Sequence[Path]) -> None:
    """Name the files that were written."""
    for path in paths:
        Screen().say(f"written: {path}", wrap=False)
