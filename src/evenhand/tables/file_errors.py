"""What is wrong with a file of a table, said in one sentence that names it."""

from evenhand.core.errors import InputError


class TableFileError(InputError):
    """A file is no table that can be read."""


def no_rows(file: str, what: str) -> TableFileError:
    """Say that a file has columns, or a header, and nothing else."""
    return TableFileError("file_without_rows", file=file, what=what)


def check_header(header: list[str], name: str) -> None:
    """Refuse columns without a name, and two of one name."""
    seen = set()
    for place, raw in enumerate(header, 1):
        column = raw.strip()
        if not column:
            raise TableFileError("unnamed_column", file=name, place=place)
        if column in seen:
            raise TableFileError("column_twice_in_file", file=name, column=column)
        seen.add(column)


def first_line(error: Exception) -> str:
    """Give the first sentence of another library's error."""
    text = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return text.removeprefix("Error tokenizing data. ").rstrip(".") + "."
