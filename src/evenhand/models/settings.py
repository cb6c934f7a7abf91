"""Settings: the parameters of a classifier, checked, as the record that training takes."""

import multiprocessing
import os
import sys
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Integral
from types import FrameType
from typing import Any

import sklearn
from numpy.typing import NDArray
from sklearn.exceptions import ConvergenceWarning

import evenhand
from evenhand.core.errors import InputError, InputWarning, Parameter
from evenhand.core.groups import plain_labels
from evenhand.core.notions import AnyNotion, by_attribute, find_notion, of_labels
from evenhand.core.objectives import Objective, find_objective
from evenhand.core.rates import Partition
from evenhand.core.solvers import SOLVERS
from evenhand.core.targets import Target, find_target
from evenhand.engines.coding import listed
from evenhand.models.method import LEGS, Method
from evenhand.statistics.bounds import margin_of

__all__ = [
    "PLACES",
    "FairnessWarning",
    "FavourableLabelWarning",
    "FitWarning",
    "Settings",
    "warn",
]

# Where a selection looks at rates: on the training data, of many columns each row as if left out.
PLACES = {
    "train": "on the training data",
    "left_out": "on the training data (each row as if left out)",
    "holdout": "on the held-out rows",
    "crossfit": "out of fold",
}
# Where the code is that stands between a user's line and a fit.
LIBRARIES = tuple(
    os.path.join(os.path.dirname(str(package.__file__)), "") for package in (evenhand, sklearn)
)
# A mark among the variables of the call that was warned of; it is gone when the call returns.
TOLD = "__evenhand_told_favourable_label__"


class FairnessWarning(InputWarning):
    """The classifier does not meet the target it was asked for."""


class FitWarning(InputWarning, ConvergenceWarning):
    """The fit diverged, was interrupted, or did not get as far as it should."""


# Labels that were warned of in this process, if it works for another one.
_TOLD_HERE: set[tuple[str, str]] = set()


class FavourableLabelWarning(InputWarning):
    """Which of two labels is favourable was guessed, because nobody said it.

    It is given once a call by the user, however many folds and clones that fits. A process that
    works for another one (scikit-learn's ``n_jobs``) cannot know whose call it is: there it is
    given once for a pair of labels as long as the process lives, so at most once for each of
    ``n_jobs``, besides the fit of ``refit=True``, which is the user's own process.
    """


def _users_call() -> tuple[FrameType, int]:
    """Give the outermost call into evenhand or scikit-learn, and its level above the caller."""
    outermost = frame = sys._getframe(1)
    level, stacklevel = 2, 2
    while frame.f_back is not None:
        frame, level = frame.f_back, level + 1
        if frame.f_code.co_filename.startswith(LIBRARIES):
            outermost, stacklevel = frame, level
    return outermost, stacklevel


def warn(message: InputWarning) -> None:
    """Warn at the line of the user's own code that called evenhand or scikit-learn."""
    warnings.warn(message, stacklevel=_users_call()[1])


def _warn_of_guess(classes: NDArray[Any]) -> None:
    """Warn that the larger label is taken for the favourable one, once a call by the user."""
    other, taken = classes.tolist()
    message = FavourableLabelWarning(
        "guessed_favourable_label",
        other=other,
        taken=taken,
        either=Parameter("pos_label", other),
        or_else=Parameter("pos_label", taken),
    )
    if multiprocessing.parent_process() is not None:
        if (pair := (repr(other), repr(taken))) not in _TOLD_HERE:
            # The user's line is in another process; a library's would be blamed instead.
            warnings.warn(message, stacklevel=1)
            _TOLD_HERE.add(pair)
        return
    call = _users_call()[0]
    if TOLD in call.f_locals:
        return
    call.f_locals[TOLD] = True
    warn(message)


@dataclass(frozen=True)
class Settings:
    """What is wanted of a fit and how it is sought: the parameters of FairClassifier, checked."""

    notion: str | Sequence[str]
    tau: float | Sequence[float | None] | None
    epsilon: float | Sequence[float | None] | None
    method: Method
    confidence: float | str | None
    selection: str
    holdout: float
    cv: Any
    delta: float
    sensitive_features: int | str | Callable[[Any], Any] | None
    random_state: Any
    verbose: int
    min_group_size: int
    pos_label: Any
    survey_weights: bool
    group_cuts: bool
    bins: Any
    attributes: str
    objective: str | Mapping[str, float]
    engine: str
    device: Any

    def __post_init__(self) -> None:
        self.target_of(2)  # so that its errors come before the errors of the data
        self.objective_of(2)
        if self.group_cuts and self.attributes != "crossed":
            about = {"attributes": Parameter("attributes", self.attributes)}
            raise InputError("cuts_of_crossed", group_cuts=Parameter("group_cuts"), **about)
        if self.certifies and self.selection == "crossfit":
            raise InputError(
                "certified_crossfit",
                confidence=Parameter("confidence", self.confidence),
                selection=Parameter("selection", self.selection),
                option=Parameter("selection"),
            )

    @property
    def certifies(self) -> bool:
        """Whether a certificate is sought."""
        return isinstance(self.confidence, str)

    @property
    def none_held_out(self) -> Parameter:
        """What to ask for instead, so that no rows are held out."""
        certified = self.certifies
        return Parameter("confidence", 0.9) if certified else Parameter("selection", "train")

    @property
    def pools(self) -> bool:
        """Whether other candidates than the solver's iterates may be what the frontier is of."""
        method = self.method
        return method.candidates == "pooled" and not method.plain and "optimum" in LEGS[method.init]

    @property
    def delta_asked(self) -> float | None:
        """The probability with which a certificate may be wrong; None if none is sought."""
        return self.delta if self.certifies else None

    @property
    def margin(self) -> float:
        """Standard errors by which a value must be above its target."""
        return 0.0 if isinstance(self.confidence, str) else margin_of(self.confidence)

    @property
    def place(self) -> str:
        """The rows the point is chosen on; a certificate needs rows of its own."""
        return "holdout" if self.certifies else self.selection

    @property
    def coding(self) -> dict[str, Any]:
        """Options of :func:`evenhand.models.inputs.code_rows`."""
        return {
            "survey": self.survey_weights,
            "bins": self.bins,
            "min_group_size": self.min_group_size,
            "attributes": self.attributes,
            "label_order": self.label_order,
        }

    def notion_of(
        self,
        n_labels: int,
        favourable: Sequence[int] = (),
        partitions: Sequence[Partition] = (),
    ) -> AnyNotion:
        """Give the notion, for each of the favourable labels if there are more than two.

        It is demanded between the groups of the ``partitions``, if there are any.
        """
        notion = find_notion(self.notion, self.method.degree)
        if n_labels > 2:
            notion = of_labels(notion, list(favourable), n_labels)
        return by_attribute(notion, partitions)

    def target_of(
        self,
        n_labels: int,
        favourable: Sequence[int] = (),
        partitions: Sequence[Partition] = (),
    ) -> Target:
        """Give the target, of each of the favourable labels if there are more than two."""
        labels: dict[str, Any] = {"n_labels": n_labels, "favourable": favourable}
        return find_target(self.notion, self.tau, self.epsilon, **labels).by(partitions)

    def objective_of(self, n_labels: int) -> Objective:
        """Give what is maximised."""
        return find_objective(self.objective, n_labels)

    def label_order(self, classes: NDArray[Any]) -> NDArray[Any]:
        """Put the labels in the order of their numbers: of two the favourable one is second."""
        first = len(classes) == 2 and self.pos_label == classes.tolist()[0]
        return classes[::-1] if first else classes

    def favourable(self, classes: NDArray[Any]) -> list[int]:
        """Numbers of the labels that count as favourable."""
        if len(classes) == 2:
            return [1]
        names = classes.tolist()
        return list(range(len(names))) if self.pos_label is None else [names.index(self.pos_label)]

    def check_classes(self, classes: NDArray[Any], *, guess: bool = True) -> None:
        """Check ``pos_label``, and refuse options for two labels where there are more.

        Warn of a ``guess`` of the favourable one of two.
        """
        names = classes.tolist()
        self.objective_of(len(names))
        if guess and self.pos_label is None and len(names) == 2 and not plain_labels(names):
            _warn_of_guess(classes)
        if self.pos_label is not None and self.pos_label not in names:
            raise InputError(
                "unknown_favourable_label",
                pos_label=Parameter("pos_label", self.pos_label),
                labels=listed(names, 10),
            )
        method = self.method
        only_two = [
            (Parameter("solver", method.solver), SOLVERS[method.solver].two_labels_only),
            (Parameter("group_cuts", True), self.group_cuts),
            (Parameter("extra_column", "noise"), method.noise),
        ]
        refused = [parameter for parameter, chosen in only_two if chosen]
        if len(names) > 2 and refused:
            raise InputError(
                "two_labels_only",
                parameter=refused[0],
                y=Parameter("y"),
                n=len(names),
                labels=listed(names, 10),
            )

    def needs_table(self) -> dict[str, Any]:
        """Parameters that need the whole table at hand, with their values."""
        needs = {
            "bins": (self.bins, self.bins is not None),
            "attributes": (self.attributes, self.attributes != "crossed"),
            "sensitive_features": (self.sensitive_features, self.sensitive_features is not None),
            "extra_column": (self.method.extra_column, self.method.noise),
            "cv": (self.cv, self.place == "crossfit" and not isinstance(self.cv, Integral)),
        }
        return {name: value for name, (value, needed) in needs.items() if needed}

    def check_chunks(self, engine: str, table: str) -> None:
        """Refuse what is not for a table in chunks, and engines other than the one that has it."""
        refused = self.needs_table() | ({} if self.device is None else {"device": self.device})
        for name, value in refused.items():
            raise InputError("for_tables_in_memory", parameter=Parameter(name, value))
        if self.engine not in ("auto", engine):
            raise InputError(
                "other_engine",
                engine=Parameter("engine", self.engine),
                table=table,
                auto=Parameter("engine", "auto"),
            )
