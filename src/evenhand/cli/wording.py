"""How the command spells the library's parameters: as its options."""

import shlex
from collections.abc import Iterable
from typing import Any

from evenhand.core.errors import Message, Parameter

# Parameters of the library that are options of the same name, and those that have another one.
NAMES = (
    *("cost_fn", "cost_fp", "profit_tn", "profit_tp"),
    *("attributes", "bins", "confidence", "delimiter", "delta", "demo", "encoding", "epsilon"),
    *("exclude", "favourable", "favourable_label", "group_cuts", "jobs", "keep_na", "label"),
    *(
        "min_group_size",
        "missing_groups",
        "na",
        "notion",
        "objective",
        "out",
        "person",
        "prediction",
    ),
    *("privileged", "scores", "seed", "selection", "sensitive", "sensitive_inputs", "splits"),
    *("survey_weights", "tau", "test_size", "weight"),
)
OPTIONS = {name: f"--{name.replace('_', '-')}" for name in NAMES} | {
    "epsilons": "--epsilon",
    "kinds": "--kind",
    "methods": "--method",
    "n_jobs": "--jobs",
    "n_splits": "--splits",
    "persons": "--person",
    "pos_label": "--favourable",
    "random_state": "--seed",
    "sample_weight": "--weight",
    "sensitive_features": "--sensitive",
    "taus": "--tau",
    "test": "--test",
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
    if name == "objective" and isinstance(value, dict):  # an option for each outcome
        return " ".join(f"--{one.replace('_', '-')} {amount:g}" for one, amount in value.items())
    return " ".join(f"{OPTIONS[name]} {shlex.quote(text)}" for text in _texts(name, value))


def _texts(name: str, value: Any) -> list[str]:
    """Write a parameter's value as the texts that its option is given, one after the other."""
    if isinstance(value, dict):
        return [f"{column}={text}" for column, v in value.items() for text in _texts(name, v)]
    if isinstance(value, Iterable) and not isinstance(value, str):
        texts = [str("none" if v is None else v) for v in value]
        return [",".join(texts)] if name == "bins" else texts  # edges are one text
    return [str("none" if value is None else value)]


def say(message: BaseException) -> str:
    """Give an error's or a warning's sentence, spelled for the command."""
    return message.sentence(spell) if isinstance(message, Message) else str(message)
