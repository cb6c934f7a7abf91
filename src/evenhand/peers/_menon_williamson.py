"""Menon and Williamson's plug-in rule: the label's probability less a multiple of the group's."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np

from evenhand._sklearn import HasMethods, Interval, StrOptions
from evenhand.core.notions import NOTIONS
from evenhand.engines.memory import make_oracle
from evenhand.frontier.sweep import sweep
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import CONSTRAINTS, SINGLE_RATES, FloatArray, ScorePeer, TargetPeer
from evenhand.peers._docs import adapter_docs
from evenhand.peers._out_of_fold import fold_models, mean_proba


@dataclass(eq=False, repr=False)
@adapter_docs
class MenonWilliamsonClassifier(TargetPeer, ScorePeer):
    r"""Menon and Williamson's plug-in rule of two estimators, of the label and of the group.

    .. math:: \hat y = [\,p(x) - \lambda\, q(x) > c\,], \qquad
        p \approx P(y{=}1 \mid x),\quad q \approx P(z{=}1 \mid x).

    Rules of this form are optimal if p and q are right. The paper leaves λ and c to whoever
    weighs accuracy against fairness; here every c for each of a grid of λ is counted on the
    training rows, and the most accurate that reaches τ answers.

    Parameters
    ----------
    notion, tau
    n_multipliers : int, default=101
        How many λ are tried: tangents of evenly spaced angles, of both signs and any size.
    estimator : estimator, optional
        With ``predict_proba``, of the label; logistic regression by default, boosting with
        ``n_folds``.
    group_estimator : estimator, optional
        Of the group; like ``estimator`` by default.
    n_folds : int or None, default=None
        Fit as many models, each without one fold, and count rows by the models that have not seen
        them, as estimators that overfit need it; a new row's probabilities are then means over the
        models. Otherwise one of each, fitted to the rows that are counted.
    min_share
    random_state : int, RandomState or None, default=None
        Seed of the folds.

    Attributes
    ----------
    models_ : tuple of (list, list)
        The fitted estimators of the label and of the group.
    frontier_ : evenhand.frontier.points.Frontier
        What accuracy and rate the rules can have.
    multiplier_, cut_ : float
        λ and c.
    rate_, accuracy_, feasible_

    References
    ----------
    A. K. Menon, R. C. Williamson, "The Cost of Fairness in Binary Classification", FAT* 2018.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "notion": [StrOptions(set(SINGLE_RATES) & set(NOTIONS))],
        "n_multipliers": [Interval(Integral, 1, None, closed="left")],
        "group_estimator": [HasMethods(["fit", "predict_proba"]), None],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
    }

    notion: str = "statistical_parity"
    _: KW_ONLY
    tau: float = 0.8
    n_multipliers: int = 101
    estimator: Any = None
    group_estimator: Any = None
    n_folds: int | None = None
    min_share: float = 0.01
    random_state: Any = None

    def _train(self, rows: CodedRows) -> None:
        group = self.estimator if self.group_estimator is None else self.group_estimator
        folds, seed = self.n_folds, self.random_state
        label_models, p = fold_models(self.estimator, rows, rows.y, folds, seed)
        group_models, q = fold_models(group, rows, rows.z, folds, seed)
        self.models_ = label_models, group_models
        # Open at both ends: there λ is infinite and the label does not count.
        angle = np.linspace(-np.pi / 2, np.pi / 2, self.n_multipliers + 2)[1:-1]
        self._weights = np.column_stack([np.cos(angle), -np.sin(angle), 0 * angle])
        notion = NOTIONS[self.notion](2)
        columns = np.column_stack([p[:, 1], q[:, 1]])
        oracle = make_oracle(columns, rows.y, rows.z, notion=notion, sample_weight=rows.weight)
        self.frontier_ = sweep(oracle, self._weights, min_share=self.min_share)

    def _choose(self) -> None:
        point = self.frontier_.select(self.tau)
        self.rate_, self.accuracy_ = point.rate, point.accuracy
        self.feasible_ = point.feasible
        label, group, _ = self._weights[point.iterate]
        self.multiplier_, self.cut_ = float(-group / label), float(point.cut / label)

    def _score(self, X: FloatArray) -> FloatArray:
        p, q = (mean_proba(models, X, 2)[:, 1] for models in self.models_)
        return np.asarray(p - self.multiplier_ * q - self.cut_)
