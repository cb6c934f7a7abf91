r"""Method: how the frontier is found, everything that the paper varies, in one record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.base import BaseEstimator

from evenhand._sklearn import ChecksParameters, Interval, Options, StrOptions
from evenhand.core.gaps import READINGS
from evenhand.core.metric import METRICS
from evenhand.core.solvers import SOLVERS
from evenhand.core.updates import RULES

__all__ = ["LEGS", "Method"]

# Where the legs of a fit start, by the name of ``init``.
LEGS = {"zero": ("zero",), "optimum": ("optimum",), "both": ("optimum", "zero")}


@dataclass(kw_only=True, repr=False)
class Method(ChecksParameters, BaseEstimator):
    r"""How :class:`~evenhand.FairClassifier` finds its frontier: solver, adversary, steps, cuts.

    The defaults are the same for every table. A classifier's own parameters, such as ``tau`` and
    ``confidence``, say what is wanted; these say how it is sought, and are what the paper varies.
    ``FairClassifier(method=Method(mu=0.3))`` changes one; a grid search names it ``method__mu``.

    Parameters
    ----------
    reading : {"corrected", "printed"}, default="corrected"
        The paper's formulas with their slips corrected, or to the letter. :meth:`paper` has its
        own settings.
    degree : int, default=2
        Degree of the adversary's polynomial of the score (statistical parity).
    solver : str, default="agd"
        ``"agd"`` is accelerated (AGD+), ``"gd"`` plain, ``"agd_printed"`` the paper's Algorithm 2
        to the letter; ``"extragradient"`` and ``"optimistic"`` are other saddle-point methods.
        ``"soft_rate"`` and ``"cost_sensitive"`` do without an adversary: they walk over multipliers
        of the groups' rates (:class:`evenhand.core.multipliers.SoftRatePath`,
        :class:`evenhand.core.multipliers.CostSensitivePath`), and ``update``, ``adversary_sign``,
        ``alpha``, ``alpha_power``, ``mu`` and ``degree`` are ignored. These two are for two labels.
    update : {"modified", "normal", "conflict"}, default="modified"
        With the projection, without it, or with it only where the gradients disagree.
    adversary_sign : {1, -1}, optional
        1: w makes the adversary's task harder; −1: easier, as printed. Follows ``reading``.
    alpha, alpha_power : float, default=0.1, 0.25
        :math:`\alpha_t = \alpha\,t^{-p}`, the weight of the fairness gradient. The paper's runs
        have 0.1 and 0.5.
    mu : float, default=0.15
        Strength of the regulariser, in units of the classification loss's curvature.
    l2 : float, default=1e-4
        Ridge :math:`\lambda` beside the mean log-loss; the intercept is free of it.
    max_iter : int, default=60
        Iterations of a leg.
    init : {"optimum", "zero", "both"}, default="optimum"
        Where a leg starts: at the unconstrained optimum, which is always on the frontier then, at
        zero, or one leg from each.
    step : float, optional
        Fixed step η for weights and adversary. By default steps come from the smoothness of the
        losses.
    extra_column : {"ones", "noise"}, default="ones"
        An intercept, or a column of uniform noise as in the paper's experiment on it.
    n_iterates : int, default=100
        Iterates of a leg that are kept for the frontier, evenly spaced.
    cut : bool, default=True
        Choose the decision cut together with the iterate; otherwise the cut is 0.
    metric : {"whitened", "scaled", "none"}, default="whitened"
        The coordinates that the solver works in. With ``"scaled"`` a fit does not depend on the
        units of the columns, with ``"whitened"`` (up to 400 columns; more are scaled) hardly on how
        they are correlated either; the ridge term is then on the weights of inputs of deviation 1.
        ``"none"`` takes the columns as they are, as the paper does, and as the printed reading and
        a column of noise always do.
    candidates : {"pooled", "solver"}, default="pooled"
        Where the frontier's points come from: ``"solver"`` has the solver's iterates alone, the
        paper's method; ``"pooled"`` adds other directions found on the same rows
        (:mod:`evenhand.core.directions`), of two labels and where ``init`` seeks the optimum. Where
        each group has a cut of its own and one rate is asked for, that optimum is the only score
        then, and no solver runs; of several rates the solver's iterates join it.
        ``point_.source`` says where a point came from.
    min_share : float, default=0.01
        A point counts only if every group has between this share and 1 − this share of predicted
        positives.

    Examples
    --------
    >>> from evenhand import FairClassifier, Method
    >>> FairClassifier(method=Method(mu=0.3)).set_params(method__max_iter=50).method
    Method(max_iter=50, mu=0.3)
    >>> Method.paper().reading
    'printed'
    """

    reading: str = "corrected"
    degree: int = 2
    solver: str = "agd"
    update: str = "modified"
    adversary_sign: int | None = None
    alpha: float = 0.1
    alpha_power: float = 0.25
    mu: float = 0.15
    l2: float = 1e-4
    max_iter: int = 60
    init: str = "optimum"
    step: float | None = None
    extra_column: str = "ones"
    n_iterates: int = 100
    cut: bool = True
    min_share: float = 0.01
    metric: str = "whitened"
    candidates: str = "pooled"

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "reading": [StrOptions(set(READINGS))],
        "degree": [Interval(Integral, 1, 10, closed="both")],
        "solver": [StrOptions(set(SOLVERS))],
        "update": [StrOptions(set(RULES))],
        "adversary_sign": [Options(Integral, {-1, 1}), None],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "alpha_power": [Interval(Real, 0, None, closed="left")],
        "mu": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "init": [StrOptions(set(LEGS))],
        "step": [Interval(Real, 0, None, closed="neither"), None],
        "extra_column": [StrOptions({"ones", "noise"})],
        "n_iterates": [Interval(Integral, 1, None, closed="left")],
        "cut": ["boolean"],
        "metric": [StrOptions(set(METRICS))],
        "candidates": [StrOptions({"pooled", "solver"})],
        "min_share": [Interval(Real, 0, 0.5, closed="left")],
    }

    @classmethod
    def paper(cls) -> Method:
        """Give the settings of the paper's own runs; it has no ``confidence`` (None)."""
        return cls(
            reading="printed",
            l2=1.0,
            mu=10.0,
            alpha=0.1,
            alpha_power=0.5,
            step=0.1,
            max_iter=100,
            init="zero",
            cut=False,
        )

    def __call__(self, **changes: Any) -> Method:
        """Give a copy with some parameters changed; this one stays as it is."""
        return replace(self, **changes)

    @property
    def plain(self) -> bool:
        """Whether X is taken as it is, and no candidates join: the paper's formulas, and noise."""
        return self.noise or self.reading == "printed"

    @property
    def noise(self) -> bool:
        """Whether the extra column is noise."""
        return self.extra_column == "noise"

    def check(self) -> None:
        """Refuse parameters out of range."""
        self._validate_params()
