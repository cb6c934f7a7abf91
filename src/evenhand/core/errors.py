"""Errors and warnings that carry data: a code, what they are about, and a sentence made of it.

All sentences stand in one file, ``messages.toml``; the code that raises says what is wrong and with
what.

A sentence may name a parameter of the library. Python shows it as ``tau=0.8``; a command line, to
which the same parameter is an option, has the sentence made anew with its own spelling
(:meth:`Message.sentence`). Nobody searches a sentence for names.
"""

import tomllib
import warnings
from collections.abc import Callable, Container, Iterable
from functools import cache
from importlib.resources import files
from typing import Any, NamedTuple

__all__ = ["InputError", "InputWarning", "Message", "Parameter", "Spelling", "sentences"]


class Parameter(NamedTuple):
    """A parameter as a sentence names it, with a value or without.

    Examples
    --------
    >>> from evenhand.core.errors import Parameter
    >>> str(Parameter("tau", 0.8)), str(Parameter("missing_groups"))
    ('tau=0.8', 'missing_groups')
    """

    name: str
    value: Any = ...

    def __str__(self) -> str:
        # A NumPy scalar is written as the number that it is.
        value = self.value.item() if getattr(self.value, "shape", None) == () else self.value
        return self.name if value is ... else f"{self.name}={value!r}"


# How a reader writes a parameter: ``str`` for Python, options for a command line.
Spelling = Callable[[Parameter], str]


@cache
def _templates() -> dict[str, str]:
    """Give the sentence of every code."""
    return tomllib.loads(files(__package__).joinpath("messages.toml").read_text(encoding="utf-8"))


class Message:
    """What an error or a warning says, as data.

    Parameters
    ----------
    code : str
        Its name, which stays when its sentence is rewritten: what tests and programs ask for.
        ``messages.toml`` beside this module has its sentence, with the names of ``data`` in braces.
    **data
        What it is about, by name: ``column``, ``group``, ``value``, and each :class:`Parameter`
        that it mentions. A message among them, such as the error that led to this one, is said in
        the same spelling.

    Examples
    --------
    >>> from evenhand.core.errors import InputError, Parameter
    >>> error = InputError("too_few_to_test", n=3, test_size=Parameter("test_size", 0))
    >>> str(error), error.code, error.data["n"]
    ('3 rows are too few to hold some back for a test; use test_size=0.', 'too_few_to_test', 3)
    >>> error.sentence(lambda parameter: f"--test-size {parameter.value}")
    '3 rows are too few to hold some back for a test; use --test-size 0.'
    """

    def __init__(self, code: str, /, **data: Any) -> None:
        self.code, self.data = code, data
        super().__init__(self.sentence())  # type: ignore[call-arg]  # mixed into an exception

    def sentence(self, spell: Spelling = str) -> str:
        """Make the sentence, with each parameter in the reader's spelling."""

        def written(value: Any) -> Any:
            if isinstance(value, Message):
                return value.sentence(spell)
            return spell(value) if isinstance(value, Parameter) else value

        return _templates()[self.code].format(**{name: written(v) for name, v in self.data.items()})

    def __reduce__(self) -> tuple[Any, ...]:
        # Workers of Dask and joblib send their errors home.
        return _remade, (type(self), self.code, self.data)


def sentences(
    caught: Iterable[warnings.WarningMessage], spell: Spelling = str, without: Container[str] = ()
) -> list[str]:
    """Give what warnings for users say, each once, as ``warnings.catch_warnings`` recorded them.

    Warnings whose code is in ``without`` are left out.
    """
    meant = [w.message for w in caught if issubclass(w.category, UserWarning)]
    texts = [
        w.sentence(spell) if isinstance(w, Message) else str(w)
        for w in meant
        if getattr(w, "code", None) not in without
    ]
    return list(dict.fromkeys(texts))


def _remade(cls: type[Message], code: str, data: dict[str, Any]) -> Message:
    return cls(code, **data)


class InputError(Message, ValueError):
    """What was given cannot be used; the sentence says what to do."""


class InputWarning(Message, UserWarning):
    """What was given can be used, and a reader should know something of it."""
