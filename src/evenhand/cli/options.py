"""Options that several commands share, and how their text is read."""

from collections.abc import Callable
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any

import typer

from evenhand.core.errors import InputError, Parameter

_FILE = typer.Argument(
    metavar="FILE", help="CSV or Parquet, also compressed; - reads standard input."
)
File = Annotated[str, _FILE]
FileOrNone = Annotated[str | None, _FILE]
ModelFile = Annotated[Path, typer.Argument(metavar="MODEL", help="A model that train has written.")]
_LABEL = typer.Option(help="Column of the true labels.")
Label = Annotated[str, _LABEL]
LabelOrNone = Annotated[str | None, _LABEL]
_SENSITIVE = typer.Option(help="Sensitive column; may be repeated (see --attributes).")
Sensitive = Annotated[list[str], _SENSITIVE]
SensitiveOrNone = Annotated[list[str] | None, _SENSITIVE]
Favourable = Annotated[
    str | None,
    typer.Option(
        help="The favourable label; two labels other than 0/1, -1/1 or true/false need it.",
        show_default="the larger of 0/1, -1/1, true/false; of more than two each counts",
    ),
]
FavourableOne = Annotated[
    str | None,
    typer.Option(
        help="The favourable label; labels other than 0/1, -1/1 or true/false need it.",
        show_default="the larger of 0/1, -1/1, true/false",
    ),
]
Delimiter = Annotated[
    str | None, typer.Option(help="What separates fields.", show_default="found out")
]
Encoding = Annotated[str | None, typer.Option(help="Encoding of the text.", show_default="utf-8")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON, for scripts.")]
Out = Annotated[Path, typer.Option("--out", "-o", help="File to write.")]
Bins = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "For a sensitive number such as age: how many bins, or edges as 30,45,60. With several "
            "--sensitive columns as age=30,45,60; may be repeated."
        )
    ),
]


def _min_group_size(rows: str) -> Any:
    """Make the option of a command that counts these rows."""
    return typer.Option(
        min=1, help=f"Groups of fewer {rows} are not compared, unless there are only two."
    )


MinTrainingRows = Annotated[int, _min_group_size("training rows (without those held back)")]
MinTestRows = Annotated[int, _min_group_size("test rows (three in ten of the file's)")]
MinAnsweredRows = Annotated[
    int,
    _min_group_size("rows of the file with an answer (for rates that need a label: with a label)"),
]


class Attributes(StrEnum):
    """Which groups of several sensitive columns are compared."""

    crossed = "crossed"
    each = "each"
    both = "both"


AttributesMode = Annotated[
    Attributes,
    typer.Option(
        "--attributes",
        help=(
            "Of several --sensitive columns: compare every combination of values, each column by "
            "itself (the worst counts), or both."
        ),
    ),
]


class Missing(StrEnum):
    """What to do with rows that have no group."""

    error = "error"
    drop = "drop"
    group = "group"


MissingGroups = Annotated[
    Missing,
    typer.Option(help="Rows without a group: refuse them, drop them, or make them a group."),
]
Na = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "Word that stands for a missing value, besides the empty cell; may be repeated. It "
            "replaces the list of such words; '' leaves none."
        ),
        show_default="? - -- NA N/A n/a #N/A <NA> NaN nan null NULL None",
    ),
]
KeepNa = Annotated[
    list[str] | None, typer.Option(help="Column in which such words are values; may be repeated.")
]


# Those of train alone.
def _numbers(texts: list[str] | None) -> list[str]:
    """Refuse what is neither a number nor none."""
    for text in texts or []:
        try:
            float("nan" if text == "none" else text)
        except ValueError:
            raise typer.BadParameter(f"{text!r} is neither a number nor none.") from None
    return texts or []  # whose length old versions of Typer take


Taus = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FLOAT",
        callback=_numbers,
        help="Least ratio of the groups' rates; one, or one for each --notion, none for a notion "
        "that has no ratio to reach.",
        show_default="0.8, unless --epsilon is given",
    ),
]
Epsilons = Annotated[
    list[str] | None,
    typer.Option(
        metavar="FLOAT",
        callback=_numbers,
        help="Largest difference between the groups' rates, as --tau; with both, both must hold.",
    ),
]
Epsilon = Annotated[
    float | None,
    typer.Option(help="Largest difference between the groups' rates, in place of --tau."),
]
Notions = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "Which rate the groups shall share: statistical_parity, equal_opportunity, "
            "predictive_equality, equalized_odds, ... Several: all must hold."
        ),
        show_default="statistical_parity",
    ),
]
Objective = Annotated[
    str | None,
    typer.Option(
        help="What is maximised: accuracy, or balanced_accuracy, the mean of the labels' shares of "
        "right answers.",
        show_default="accuracy",
    ),
]


def _outcome(what: str) -> Any:
    """Make the option of what one of the four outcomes costs or earns."""
    return Annotated[float | None, typer.Option(help=f"{what}; then the profit is maximised.")]


CostFp = _outcome("Cost of a wrong favourable answer, in any unit")
CostFn = _outcome("Cost of a favourable answer that is wrongly not given")
ProfitTp = _outcome("Profit of a right favourable answer")
ProfitTn = _outcome("Profit of a favourable answer that is rightly not given")
TestFile = Annotated[str | None, typer.Option(help="A file to test on.")]
TestSize = Annotated[
    float | None, typer.Option(help="Share of FILE held back as a test.", show_default="0.3")
]
Confidence = Annotated[
    str,
    typer.Option(
        help="How sure --tau shall be in the population: about this probability (0.5 to below "
        "1); certified: 1 − delta, exactly, by a test on rows held out; none: only on the rows "
        "looked at."
    ),
]


class Selection(StrEnum):
    """On which rows the point is chosen."""

    train = "train"
    holdout = "holdout"
    crossfit = "crossfit"


SelectionRows = Annotated[
    Selection, typer.Option(help="On which rows the point is chosen for --tau.")
]
Delta = Annotated[
    float | None,
    typer.Option(help="Probability with which a certificate may be wrong.", show_default="0.05"),
]
GroupCuts = Annotated[
    bool, typer.Option("--group-cuts", help="A cut for each group; predict then needs the groups.")
]
Boosted = Annotated[
    bool,
    typer.Option("--boosted", help="Boosted trees instead of a linear model: stronger and slower."),
]
_SCORES = "Column of the model's scores, a number in every row; higher or lower may be favourable."
Scores = Annotated[str, typer.Option(help=_SCORES)]
HiddenScores = Annotated[str | None, typer.Option(help=_SCORES, hidden=True)]
SensitiveInputs = Annotated[
    bool, typer.Option("--sensitive-inputs", help="Sensitive columns are inputs as well.")
]
Exclude = Annotated[
    list[str] | None, typer.Option(help="Column that is no input; may be repeated.")
]
Person = Annotated[
    str | None,
    typer.Option(help="Column that says whose row each is, where a person may have several."),
]
Weight = Annotated[
    str | None,
    typer.Option(help="Column of row weights, 0 or more: how many equal rows each row stands for."),
]
SurveyWeights = Annotated[
    bool,
    typer.Option(
        "--survey-weights",
        help="--weight says how many people a row of a survey speaks for: it is no number of rows.",
    ),
]
Kinds = Annotated[
    list[str] | None,
    typer.Option(
        help=(
            "How to read a column, as id=number, zip=category or 'born=date, month first'; it "
            "is then no identifier. May be repeated."
        ),
        show_default="found out",
    ),
]
Demo = Annotated[
    str | None, typer.Option(help="Train on a dataset inside the package: adult or german.")
]
Dask = Annotated[
    str | None,
    typer.Option(
        metavar="[ADDRESS]",
        help=(
            "Train where Dask's workers are: with the scheduler at an address such as "
            "tcp://10.0.0.1:8786, or without one on this machine, a worker for each core."
        ),
    ),
]
Report = Annotated[
    Path | None, typer.Option(help="Report to write.", show_default="the model's name with .html")
]
NoReport = Annotated[bool, typer.Option("--no-report", help="Write no report.")]
Seed = Annotated[int, typer.Option(min=0, help="Seed of everything random.")]


def parse_confidence(text: str) -> float | str | None:
    """Tell how sure a target shall be from a number, none or certified."""
    if text in ("certified", "none"):
        return None if text == "none" else text
    with suppress(ValueError):
        if 0.5 <= float(text) < 1:
            return float(text)
    raise InputError("bad_confidence", value=text)


def one_character(delimiter: str | None) -> str | None:
    """Read a delimiter, which may be written ``tab``."""
    delimiter = {"tab": "\t", "\\t": "\t"}.get(delimiter or "", delimiter)
    if delimiter is not None and len(delimiter) != 1:
        raise InputError("bad_delimiter", value=delimiter)
    return delimiter


def check_jobs(jobs: int) -> None:
    """Refuse a number of jobs that would never start."""
    if jobs == 0:
        raise InputError("no_jobs")


def parse_target(tau: float) -> float:
    """Refuse a target that is no ratio."""
    if not 0 < tau <= 1:
        raise InputError("bad_target", value=tau)
    return tau


def parse_difference(epsilon: float) -> float:
    """Refuse a target that is no difference."""
    if not 0 <= epsilon < 1:
        raise InputError("bad_difference", value=epsilon)
    return epsilon


def parse_targets(texts: list[str] | None, parse: Callable[[float], float]) -> Any:
    """Read one target, or one for each notion, from numbers or none."""
    found = [None if text == "none" else parse(float(text)) for text in texts or []]
    return found[0] if len(found) == 1 else found or None


def parse_objective(objective: str | None, **outcomes: float | None) -> Any:
    """Read what is maximised: a name, or what the outcomes cost and earn."""
    given = {name: amount for name, amount in outcomes.items() if amount is not None}
    if objective is not None and given:
        raise InputError(
            "two_objectives",
            objective=Parameter("objective", objective),
            outcomes=Parameter("objective", given),
        )
    return given or objective or "accuracy"


def parse_bins(texts: list[str] | None) -> Any:
    """Read bins from texts such as 30,45,60, or the bins of each column from age=30,45,60."""
    by_column = {}
    for text in texts or []:
        column, named, bins = text.rpartition("=")
        if column in by_column or (texts and len(texts) > 1 and not named):
            raise InputError("repeated_bins", value=text)
        try:
            # A comma alone makes one edge of a number.
            values = [float(part) for part in bins.removesuffix(",").split(",")]
        except ValueError:
            raise InputError("bad_bins", value=text) from None
        by_column[column] = int(values[0]) if len(values) == 1 and "," not in bins else values
    return by_column.get("", by_column or None)


def parse_kinds(texts: list[str]) -> dict[str, str]:
    """Tell columns and how to read them from texts such as zip=category."""
    kinds = {}
    for text in texts:
        column, equals, kind = text.rpartition("=")
        if not equals:
            raise InputError("bad_kind", value=text)
        if column in kinds:
            raise InputError("repeated_kind", column=column)
        kinds[column] = kind
    return kinds
