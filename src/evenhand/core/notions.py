r"""Notions of fairness: what is measured, what the adversary sees, what is regularised.

A notion is a record of three things:

- the **rate** that is compared between groups (a row of :data:`evenhand.core.rates.RATES`, or
  several);
- the **features** :math:`\varphi(s, y)` from which the adversary guesses a row's group, their
  derivative in the score s, and the labels of the rows it is asked about;
- the **gap** of the regulariser :math:`\tfrac{\kappa}{2} D(w)^2`, once for each reading of the
  paper.

Nothing else in the package knows which notions exist.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray, namespace
from evenhand.core.errors import InputError, Parameter
from evenhand.core.gaps import READINGS, Gap, LinearGap, PrintedDiscoveryGap, SoftRateGap
from evenhand.core.rates import RATES, AnyRate, Partition, Rate, WorstRate, by_partition

Features = Callable[[FloatArray, FloatArray, FloatArray, float], tuple[FloatArray, FloatArray]]


@dataclass(frozen=True)
class Notion:
    r"""A notion of fairness.

    Parameters
    ----------
    name : str
        Its name in ``FairClassifier(notion=...)``.
    rate : Rate or WorstRate
        The rate per group whose smallest-to-largest ratio must reach τ; the ratios of several
        must all reach it.
    n_features : int
        Length of the adversary's u.
    features : callable ``(s, f, y, scale) -> (phi, d_phi)``
        The adversary's features and their derivatives in s, both of shape (n_features, rows), from
        the score s, the probability f and the label y. ``scale`` is a typical size of s, constant
        in differentiation: features that grow with s take s / scale.
    gaps : mapping of reading to Gap
        The regularised quantity in the ``"corrected"`` and the ``"printed"`` reading.
    labels : tuple of int, default=(0, 1)
        Labels of the rows about which the adversary is asked. A rate that conditions on the label
        is blind to the others, and so must the adversary be.
    favourable : int, default=1
        Number of the label that counts as positive; of two labels the second.
    degree : int, optional
        Degree of the polynomial, if the features are powers of the score: engines may then have a
        faster way.
    better_than_chance : bool, default=False
        Whether a classifier counts only if every group's rate is better than labels drawn at
        random would give; needed where the rate conditions on the prediction, because a classifier
        that is wrong about everybody alike has a perfect ratio.
    """

    name: str
    rate: AnyRate
    n_features: int
    features: Features
    gaps: Mapping[str, Gap]
    labels: tuple[int, ...] = (0, 1)
    favourable: int = 1
    better_than_chance: bool = False
    degree: int | None = None

    @property
    def components(self) -> tuple["Notion", ...]:
        """The notion itself, as :class:`Joint` has several."""
        return (self,)

    def of_label(self, label: int, n_labels: int) -> "Notion":
        """Give the same notion with one of many labels as the favourable one."""
        return replace(self, rate=self.rate.of_label(label, n_labels), favourable=label)

    def chance(self, counts: Any) -> FloatArray:
        """Each group's rate if predictions were drawn without looking at the row."""
        c = np.asarray(counts, dtype=np.float64)
        # Predictions that ignore the label: any shares of them will do, equal ones are such.
        ignorant = np.broadcast_to(c.mean(axis=-1, keepdims=True), c.shape)
        return _plain(self.rate).per_group(ignorant)

    def eligible(self, counts: Any, min_share: Any) -> NDArray[np.bool_]:
        """Whether a classifier with these counts counts as an answer at all.

        Every group must have between ``min_share`` and 1 − ``min_share`` predicted positives and,
        where the notion asks for it, a rate better than chance. Counts may have leading dimensions.
        """
        selected = RATES["selection_rate"].of_label(self.favourable, np.shape(counts)[-1])
        share = selected.per_group(counts)
        if np.shape(counts)[-1] > 2:
            # A rare label among many need not be given more often than half as often as it occurs.
            c = np.asarray(counts, dtype=np.float64)
            label = c.sum(axis=-1).sum(axis=-2)
            often = label[..., self.favourable] / label.sum(axis=-1)
            min_share = np.minimum(min_share, often / 2)[..., None]
        # The tolerance lets 1% of 100 rows be 1 row.
        ok = np.all((share >= min_share - 1e-12) & (share <= 1 - min_share + 1e-12), axis=-1)
        if self.better_than_chance:
            plain, chance = _plain(self.rate), self.chance(counts)
            rate = plain.per_group(counts)
            better = rate < chance if plain.is_error else rate > chance
            ok = ok & np.all(better, axis=-1)
        return ok


def _plain(rate: AnyRate) -> Rate:
    """Give the rate itself, whose value in each group is needed; refuse several rates."""
    if isinstance(rate, WorstRate):
        raise InputError("several_rates", rate=rate.name)
    return rate


@dataclass(frozen=True)
class Joint:
    r"""Several notions at once: all must hold.

    Parameters
    ----------
    components : tuple of Notion
        The notions.
    title : str, optional
        What to call them together; by default their names, joined.
    """

    components: tuple[Notion, ...]
    title: str = ""

    @property
    def name(self) -> str:
        """What they are called together."""
        return self.title or " and ".join(dict.fromkeys(notion.name for notion in self.components))

    @property
    def rate(self) -> WorstRate:
        """All their rates, of which the worst counts."""
        rates = (rate for notion in self.components for rate in notion.rate.components)
        return WorstRate(self.name, tuple(rates))

    @property
    def better_than_chance(self) -> bool:
        """Whether one of them asks for rates better than chance."""
        return any(notion.better_than_chance for notion in self.components)

    def eligible(self, counts: Any, min_share: float) -> NDArray[np.bool_]:
        """Whether a classifier with these counts counts as an answer for all of them."""
        return np.logical_and.reduce(
            [notion.eligible(counts, min_share) for notion in self.components]
        )


@dataclass(frozen=True)
class ByAttribute(Joint):
    """Notions that must hold between the groups of several partitions: the worst counts.

    A solver meets the notions as they are, between the groups that are counted; what is compared,
    and which answers count at all, goes by the partitions.

    Parameters
    ----------
    components, title
        As of :class:`Joint`.
    partitions : tuple of Partition
        The groups of each attribute, and the crossed ones if these count too.
    """

    partitions: tuple[Partition, ...] = ()

    @property
    def rate(self) -> WorstRate:
        """The rates of all partitions, of which the worst counts."""
        return by_partition(super().rate, self.partitions)

    def eligible(self, counts: Any, min_share: float) -> NDArray[np.bool_]:
        """Whether a classifier with these counts counts as an answer for every partition."""
        counts = np.asarray(counts, dtype=np.float64)
        merged = [by.merge(counts, -3) for by in self.partitions]
        return np.logical_and.reduce([Joint.eligible(self, one, min_share) for one in merged])


AnyNotion = Notion | Joint


def by_attribute(notion: AnyNotion, partitions: Sequence[Partition]) -> AnyNotion:
    """Demand a notion between the groups of some partitions; without any, of those counted."""
    if not partitions:
        return notion
    return ByAttribute(notion.components, notion.name, tuple(partitions))


def of_labels(notion: AnyNotion, favourable: Sequence[int], n_labels: int) -> AnyNotion:
    """Demand a notion of each of some favourable labels: all must hold."""
    components = tuple(
        component.of_label(label, n_labels)
        for label in favourable
        for component in notion.components
    )
    if len(components) == 1:
        return components[0]
    return Joint(components, notion.name)


def _powers(s: FloatArray, degree: int, scale: float) -> tuple[FloatArray, FloatArray]:
    r""":math:`[1, s/c, \dots, (s/c)^d]` and the derivatives in s."""
    xp, scaled = namespace(s), s / scale
    phi, d_phi = [xp.ones_like(s)], [xp.zeros_like(s)]
    for k in range(1, degree + 1):
        d_phi.append(phi[-1] * (k / scale))
        phi.append(phi[-1] * scaled)
    return xp.stack(phi), xp.stack(d_phi)


def statistical_parity(degree: int = 2) -> Notion:
    r"""Equal selection rates; the adversary sees :math:`[1, s, \dots, s^d]`."""
    return Notion(
        name="statistical_parity",
        rate=RATES["selection_rate"],
        n_features=degree + 1,
        features=lambda s, f, y, scale: _powers(s, degree, scale),
        degree=degree,
        gaps={"corrected": LinearGap(), "printed": LinearGap(printed=True)},
    )


def _given_label(name: str, rate: str, label: int, degree: int) -> Notion:
    """Give the notion of a rate among the rows of one label, as parity is among all."""
    return Notion(
        name=name,
        rate=RATES[rate],
        n_features=degree + 1,
        features=lambda s, f, y, scale: _powers(s, degree, scale),
        degree=degree,
        gaps=dict.fromkeys(READINGS, LinearGap(labels=(label,))),
        labels=(label,),
    )


def equal_opportunity(degree: int = 2) -> Notion:
    r"""Equal true positive rates; the adversary sees :math:`[1, s, \dots, s^d]` where y = 1."""
    return _given_label("equal_opportunity", "true_positive_rate", 1, degree)


def false_negative_parity(degree: int = 2) -> Notion:
    """Equal false negative rates; as equal opportunity, with the ratio of the errors."""
    return _given_label("false_negative_parity", "false_negative_rate", 1, degree)


def predictive_equality(degree: int = 2) -> Notion:
    r"""Equal false positive rates; the adversary sees :math:`[1, s, \dots, s^d]` where y = 0."""
    return _given_label("predictive_equality", "false_positive_rate", 0, degree)


def true_negative_parity(degree: int = 2) -> Notion:
    """Equal true negative rates; as predictive equality, with the ratio of the right answers."""
    return _given_label("true_negative_parity", "true_negative_rate", 0, degree)


def equalized_odds(degree: int = 2) -> Joint:
    r"""Equal true and false positive rates; the worse of the two ratios counts.

    Two adversaries, one asked where y = 1 and one where y = 0, both see
    :math:`[1, s, \dots, s^d]`: with two gradients neither rate is brought together at the other's
    cost.
    """
    components = (equal_opportunity(degree), predictive_equality(degree))
    return Joint(components, title="equalized_odds")


def accuracy_parity(degree: int = 2) -> Notion:
    r"""Equal accuracies; the adversary sees :math:`[1, m, \dots, m^d]` of the margin :math:`m = (2y - 1) s`."""  # noqa: E501

    def features(
        s: FloatArray, f: FloatArray, y: FloatArray, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        sign = 2 * y - 1
        phi, d_phi = _powers(sign * s, degree, scale)
        return phi, d_phi * sign

    rate = RATES["accuracy"]
    return Notion(
        name="accuracy_parity",
        rate=rate,
        n_features=degree + 1,
        features=features,
        gaps=dict.fromkeys(READINGS, SoftRateGap(rate)),
    )


def _given_prediction(name: str, rate: str, printed: Gap | None = None) -> Notion:
    """Give the notion of a rate among the rows of one prediction, which the adversary half sees."""

    def features(
        s: FloatArray, f: FloatArray, y: FloatArray, scale: float
    ) -> tuple[FloatArray, FloatArray]:
        xp, slope = namespace(f), f * (1 - f)
        zero = xp.zeros_like(f)
        return xp.stack([xp.ones_like(f), f, y]), xp.stack([zero, slope, zero])

    gap = SoftRateGap(RATES[rate])
    return Notion(
        name=name,
        rate=RATES[rate],
        n_features=3,
        features=features,
        gaps={"corrected": gap, "printed": printed or gap},
        better_than_chance=True,
    )


def false_discovery(degree: int = 2) -> Notion:
    r"""Equal false discovery rates; the adversary sees :math:`[1, f, y]`, whatever the degree."""
    return _given_prediction("false_discovery", "false_discovery_rate", PrintedDiscoveryGap())


def predictive_parity(degree: int = 2) -> Notion:
    """Equal positive predictive values; as false discovery, with the ratio of the right answers."""
    return _given_prediction("predictive_parity", "positive_predictive_value")


def false_omission(degree: int = 2) -> Notion:
    r"""Equal false omission rates; the adversary sees :math:`[1, f, y]`, whatever the degree."""
    return _given_prediction("false_omission", "false_omission_rate")


def negative_predictive_parity(degree: int = 2) -> Notion:
    """Equal negative predictive values; as false omission, with the ratio of the right answers."""
    return _given_prediction("negative_predictive_parity", "negative_predictive_value")


NOTIONS: dict[str, Callable[[int], AnyNotion]] = {
    "statistical_parity": statistical_parity,
    "equal_opportunity": equal_opportunity,
    "predictive_equality": predictive_equality,
    "equalized_odds": equalized_odds,
    "true_negative_parity": true_negative_parity,
    "false_negative_parity": false_negative_parity,
    "accuracy_parity": accuracy_parity,
    "predictive_parity": predictive_parity,
    "false_discovery": false_discovery,
    "false_omission": false_omission,
    "negative_predictive_parity": negative_predictive_parity,
}
"""Notions by name; each is made for a degree of the adversary."""

SYNONYMS = {
    "demographic_parity": "statistical_parity",
    "disparate_impact": "statistical_parity",
    "adverse_impact_ratio": "statistical_parity",
    "equalised_odds": "equalized_odds",
}
"""Other words of the field for some of the notions."""


def notion_name(word: str) -> str:
    """Give the name in :data:`NOTIONS` of a notion or of one of its :data:`SYNONYMS`."""
    notion = Parameter("notion", word)
    if word == "calibration":
        raise InputError("notion_of_scores", notion=notion)
    if word == "four_fifths_rule":
        raise InputError(
            "notion_with_target",
            notion=notion,
            parity=Parameter("notion", "statistical_parity"),
            tau=Parameter("tau", 0.8),
        )
    name = SYNONYMS.get(word, word)
    if name not in NOTIONS:
        raise InputError("unknown_notion", notion=notion, names=", ".join(map(repr, NOTIONS)))
    return name


def find_notion(names: str | Sequence[str], degree: int = 2) -> AnyNotion:
    """Make the notion of a name, or the one that several names are together.

    Parameters
    ----------
    names : str or sequence of str
        Names in :data:`NOTIONS`, or :data:`SYNONYMS` of them.
    degree : int, default=2
        Degree of the adversary's polynomial.
    """
    if isinstance(names, str):
        return NOTIONS[notion_name(names)](degree)
    listed = [notion_name(name) for name in names]
    if not listed:
        raise InputError("no_notion", notion=Parameter("notion"))
    if len(set(listed)) < len(listed):
        raise InputError("repeated_notion", notion=Parameter("notion", listed))
    # Two names may have a notion in common.
    components = {c.name: c for name in listed for c in NOTIONS[name](degree).components}
    return Joint(tuple(components.values()), " and ".join(listed))
