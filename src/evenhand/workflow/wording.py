"""What the library says of its parameters, in the words of the command line."""

from __future__ import annotations

import ast
import re
import shlex

__all__ = ["as_options"]

# Parameters of the library, and the options that they come from.
OPTIONS = {
    "bins": "--bins",
    "delta": "--delta",
    "encoding": "--encoding",
    "exclude": "--exclude",
    "favourable": "--favourable",
    "favourable_label": "--favourable-label",
    "privileged": "--privileged",
    "seed": "--seed",
    "test_size": "--test-size",
    "group_cuts": "--group-cuts",
    "keep_na": "--keep-na",
    "kinds": "--kind",
    "methods": "--method",
    "min_group_size": "--min-group-size",
    "missing_groups": "--missing-groups",
    "n_jobs": "--jobs",
    "n_splits": "--splits",
    "na": "--na",
    "notion": "--notion",
    "pos_label": "--favourable",
    "random_state": "--seed",
    "confidence": "--confidence",
    "selection": "--selection",
    "tau": "--tau",
    "taus": "--tau",
}
# What has another name for who has a table and no Python.
WORDS = {
    "sensitive_features": "the sensitive column",
    "which fit did not see": "which the training table has not",
    "; y has ": "; the label has ",
    "The classifier is kept with feasible_=False.": "The model is kept all the same.",
}

_NAME = "|".join(OPTIONS)
# What is in quotes is the table's, not ours.
_QUOTED = r"""'[^']*'|"[^"]*\""""
_GIVEN = re.compile(
    rf"(?<![\w'])({_NAME})="
    rf"({_QUOTED}|\[(?:{_QUOTED}|[^\]'\"])*\]|\{{(?:{_QUOTED}|[^}}'\"])*\}}|[^\s;,()]+)"
)
_CHECKED = re.compile(rf"The '({_NAME})' parameter of \w+")
_BARE = re.compile(rf"(?<![\w'-])({'|'.join(n for n in OPTIONS if '_' in n)})\b(?!=)")


def as_options(message: str) -> str:
    """Say a message of the library as one about options.

    Parameters
    ----------
    message : str
        What an error or a warning says, in which a parameter is ``name=value``, ``name=...`` or, if
        it has an underscore, ``name``; or what scikit-learn says of one.

    Returns
    -------
    str
        The same, with ``--name value`` and ``--name``.

    Examples
    --------
    >>> from evenhand.workflow.wording import as_options
    >>> as_options("say missing_groups='drop' to leave such rows out")
    'say --missing-groups drop to leave such rows out'
    """
    for theirs, ours in WORDS.items():
        message = re.sub(rf"(?<!'){re.escape(theirs)}(?!')", ours, message)
    message = _CHECKED.sub(lambda found: OPTIONS[found[1]], message)
    message = _GIVEN.sub(lambda found: _option(found[1], found[2]), message)
    return _BARE.sub(lambda found: OPTIONS[found[1]], message)


def _option(name: str, value: str) -> str:
    """Write a parameter as it would be typed; a list, or pairs, are the option several times."""
    if value in ("...", "True"):
        return OPTIONS[name]
    if name == "bins" and not value.startswith("{"):  # edges are one value
        return f"{OPTIONS[name]} {value.strip('[]').replace(' ', '')}"
    try:
        known = ast.literal_eval(value)
    except (SyntaxError, ValueError):
        known = value
    if isinstance(known, dict):
        known = [
            f"{column}={','.join(map(str, v)) if isinstance(v, list) else v}"
            for column, v in known.items()
        ]
    each = known if isinstance(known, list) else [known]
    return " ".join(f"{OPTIONS[name]} {shlex.quote(str(v))}" for v in each)
