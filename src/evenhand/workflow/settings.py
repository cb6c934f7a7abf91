"""What a user asks of a training, wherever the rows are: one record of settings."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from evenhand.core.errors import InputError
from evenhand.tables.columns import MissingWords
from evenhand.tables.encoder import TableEncoder
from evenhand.tables.groups import Columns
from evenhand.tables.pipeline import FairPipeline, fair_pipeline
from evenhand.workflow.labels import (
    check_roles,
    favourable_label,
    warn_of_alike,
    warn_of_other_labels,
)

__all__ = ["TrainSettings"]


@dataclass(frozen=True)
class TrainSettings:
    """What is asked of a training.

    Parameters
    ----------
    label : str
        The label's column.
    sensitive : sequence of str
        Sensitive columns; several are crossed.
    test_size : float, default=0.3
        Share of the rows that is held back as a test; 0 for none. In memory it is drawn within each
        label of each group, for a certificate within each group; with Dask each row is drawn by
        itself.
    favourable : str, optional
        The favourable label; by default the larger of 0/1, -1/1 or false/true, and each of more
        than two. Of another pair it is never guessed.
    missing_groups : {"error", "drop", "group"}, default="error"
        What to do with rows without a group.
    sensitive_inputs : bool, default=False
        Whether the sensitive columns are inputs as well.
    exclude : sequence of str
        Further columns that are no inputs.
    kinds : mapping of str to str, optional
        How to read columns, as of :class:`~evenhand.TableEncoder`; found out by default.
    na, keep_na : sequence of str
        Words that stand for a missing value, and columns in which they are values, as of
        :class:`~evenhand.TableEncoder`.
    bins : int, sequence of float, or mapping of str to these, optional
        Bins of sensitive numbers, as of :func:`evenhand.fair_pipeline`.
    person : str, optional
        Column that says whose row each is, which is no input: rows are then held back and held out
        by person.
    weight : str, optional
        Column of row weights, which is no input; what they mean says the classifier's
        ``survey_weights``.
    boosted : bool, default=False
        Whether to train a :class:`~evenhand.FairBoostedClassifier`.
    scores : str, optional
        Column of the scores of a model there is already, which is adjusted by a
        :class:`~evenhand.FairAdjusted`.
    title, command : str
        What to call the table, and how the training can be repeated.
    seed : int, default=0
        Seed of the split and of the selection.
    params : mapping of str to object
        Parameters of :class:`~evenhand.FairClassifier`.
    """

    label: str
    sensitive: Sequence[str]
    test_size: float = 0.3
    favourable: str | None = None
    missing_groups: str = "error"
    sensitive_inputs: bool = False
    exclude: Sequence[str] = ()
    kinds: Mapping[str, str] | None = None
    na: Sequence[str] | None = None
    keep_na: Sequence[str] = ()
    bins: Any = None
    person: str | None = None
    weight: str | None = None
    boosted: bool = False
    scores: str | None = None
    title: str = "table"
    command: str = ""
    seed: int = 0
    params: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, **given: Any) -> "TrainSettings":
        """Make the record of fields and of the classifier's parameters, side by side."""
        own = {f.name for f in fields(cls)} - {"params"}
        params = {name: value for name, value in given.items() if name not in own}
        return cls(**{name: given[name] for name in own & set(given)}, params=params)

    @property
    def columns(self) -> Columns:
        """Which columns hold labels and groups, and how these are read."""
        missing = MissingWords.chosen(self.na, self.keep_na)
        given = self.label, self.sensitive, self.missing_groups, self.bins
        return Columns(*given, missing, self.weight)

    def check(self) -> None:
        """Refuse columns that cannot be what they are said to be."""
        kinds = self.kinds or {}
        own: dict[str, Any] = {"sensitive_inputs": self.sensitive_inputs, "weight": self.weight}
        check_roles(self.label, self.sensitive, kinds, **own)
        roles: dict[str, Any] = {"the label": [self.label], "sensitive": self.sensitive}
        roles |= {"left out": self.exclude, "the person's": [self.person]}
        roles["the weight"] = [self.weight]
        for role, names in roles.items() if self.scores is not None else ():
            if self.scores in names:
                raise InputError("score_of_other_role", column=self.scores, role=role)

    def pipeline(self) -> FairPipeline:
        """Make the pipeline that is fitted."""
        roles = [name for name in (self.person, self.weight) if name is not None]
        encoder = TableEncoder(
            exclude=[self.label, *self.exclude, *roles],
            kinds=self.kinds,
            na=self.na,
            keep_na=self.keep_na,
        )
        return fair_pipeline(
            self.sensitive,
            missing_groups=self.missing_groups,
            sensitive_inputs=self.sensitive_inputs,
            encoder=encoder,
            bins=self.bins,
            boosted=self.boosted,
            scores=self.scores,
            random_state=self.seed,
            **self.params,
        )

    def name_favourable(self, pipeline: FairPipeline, labels: Mapping[Any, int]) -> None:
        """Say to the classifier which label is favourable, by the rows that each has."""
        warn_of_alike(labels, self.label)
        if "pos_label" not in self.params:
            good = favourable_label(labels, self.label, self.favourable, each=True)
            pipeline[-1].set_params(pos_label=good)
            warn_of_other_labels(labels, good, self.label, self.columns.missing)

    def facts(self) -> dict[str, Any]:
        """Give what a model file keeps of the settings beside the model's own."""
        names = "title", "label", "seed", "command", "person", "weight"
        return {name: getattr(self, name) for name in names}
