"""What is known of each dataset, as records: facts of ``catalogue.toml``, and rules for groups."""

import tomllib
from collections.abc import Callable
from importlib.resources import files
from typing import Any

import pandas as pd

from evenhand.datasets._records import Archive, Dataset, Sensitive

# Which values belong to the second group, where a column does not hold the groups' names.
_SECOND_GROUP: dict[tuple[str, str], Callable[[pd.Series], pd.Series]] = {
    ("german", "age"): lambda age: age > 25,
    ("bank", "age"): lambda age: (age < 25) | (age > 60),
    ("bank", "marital"): lambda status: status != "married",
    ("credit_default", "marriage"): lambda status: status != "married",
    ("law_school", "race"): lambda race: race == "White",
    ("communities", "race"): lambda share: share > 0.06,
}


def _tuples(facts: dict[str, Any]) -> dict[str, Any]:
    return {key: tuple(v) if isinstance(v, list) else v for key, v in facts.items()}


def _record(name: str, facts: dict[str, Any]) -> Dataset:
    sensitive = tuple(
        Sensitive(**_tuples(attribute), second=_SECOND_GROUP.get((name, attribute["name"])))
        for attribute in facts["sensitive"]
    )
    archive = Archive(**_tuples(facts["archive"]))
    return Dataset(name=name, **_tuples(facts) | {"sensitive": sensitive, "archive": archive})


_FACTS = tomllib.loads((files(__package__) / "catalogue.toml").read_text(encoding="utf-8"))

DATASETS: dict[str, Dataset] = {name: _record(name, facts) for name, facts in _FACTS.items()}
"""Every dataset's record by name."""
