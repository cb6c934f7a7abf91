"""How the command spells the library's parameters: as its options."""

from __future__ import annotations

import shlex
import warnings
from collections.abc import Iterable
from typing import Any

from evenhand.core.errors import Message, Parameter

__all__ = ["notes_of", "say", "spell"]

# Parameters of the library, and the options that they come from.
OPTIONS = {
    "bins": "--bins",
    "confidence": "--confidence",
    "delta": "--delta",
    "exclude": "--exclude",
    "favourable": "--favourable",
    "favourable_label": "--favourable-label",
    "group_cuts": "--group-cuts",
    "jobs": "--jobs",
    "keep_na": "--keep-na",
    "kinds": "--kind",
    "label": "--label",
    "methods": "--method",
    "min_group_size": "--min-group-size",
    "missing_groups": "--missing-groups",
    "n_jobs": "--jobs",
    "n_splits": "--splits",
    "na": "--na",
    "notion": "--notion",
    "pos_label": "--favourable",
    "prediction": "--prediction",
    "privileged": "--privileged",
    "random_state": "--seed",
    "seed": "--seed",
    "selection": "--selection",
    "sensitive": "--sensitive",
    "sensitive_features": "--sensitive",
    "sensitive_inputs": "--sensitive-inputs",
    "splits": "--splits",
    "tau": "--tau",
    "taus": "--tau",
    "test_size": "--test-size",
    "delimiter": "--delimiter",
    "encoding": "--encoding",
}
# Arguments that are columns of the table.
COLUMNS = {"sensitive_features": "the sensitive column", "y": "the label"}


def spell(parameter: Parameter) -> str:
    """Write a parameter as it would be typed, or the column that it is.

    Parameters
    ----------
    parameter : Parameter
        A list, or a dict of columns, is the option several times; True, or no value, is the bare
        option.

    Returns
    -------
    str
        What to type; what has no option is written as in Python.

    Examples
    --------
    >>> from evenhand.cli.wording import spell
    >>> from evenhand.core.errors import Parameter
    >>> spell(Parameter("tau", [0.8, 0.9])), spell(Parameter("kinds", {"job": "category"}))
    ('--tau 0.8 --tau 0.9', '--kind job=category')
    """
    name, value = parameter
    if value is ... and name in COLUMNS:
        return COLUMNS[name]
    if name not in OPTIONS:
        return str(parameter)
    if value is ... or value is True:
        return OPTIONS[name]
    return " ".join(f"{OPTIONS[name]} {shlex.quote(text)}" for text in _texts(name, value))


def _texts(name: str, value: Any) -> list[str]:
    """Write a parameter's value as the texts that its option is given, one after the other."""
    if isinstance(value, dict):
        return [f"{column}={text}" for column, v in value.items() for text in _texts(name, v)]
    if isinstance(value, Iterable) and not isinstance(value, str):
        texts = [str(v) for v in value]
        return [",".join(texts)] if name == "bins" else texts  # edges are one text
    return [str(value)]


def say(message: BaseException) -> str:
    """Give an error's or a warning's sentence, spelled for the command."""
    return message.sentence(spell) if isinstance(message, Message) else str(message)


def notes_of(caught: Iterable[warnings.WarningMessage]) -> list[str]:
    """Give warnings that are meant for users, each once."""
    meant = [w.message for w in caught if issubclass(w.category, UserWarning)]
    return list(dict.fromkeys(say(w) for w in meant if isinstance(w, Warning)))
