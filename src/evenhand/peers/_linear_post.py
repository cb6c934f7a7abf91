"""LinearPost: the fair classifier that is optimal for estimated probabilities."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from scipy.optimize import linprog
from scipy.special import expit
from sklearn.utils import check_random_state

from evenhand._sklearn import Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.core.notions import NOTIONS
from evenhand.core.rates import overall_accuracy
from evenhand.core.targets import Target
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import CONSTRAINTS, BoolArray, FloatArray, GroupPeer, TargetPeer
from evenhand.peers._docs import adapter_docs
from evenhand.peers._out_of_fold import fold_models, mean_proba

# Labels of the rows that the rates of a notion are shares of.
RATE_LABELS: dict[str, list[list[int]]] = {
    "statistical_parity": [[0, 1]],
    "equal_opportunity": [[1]],
    "predictive_equality": [[0]],
    "equalized_odds": [[1], [0]],
}


# Levels of the program that are tried for one τ.
LEVELS = 11


@dataclass(eq=False, repr=False)
@adapter_docs
class LinearPost(TargetPeer, GroupPeer):
    r"""Xian and Zhao's LinearPost: one rule, linear in estimated probabilities, for all groups.

    Let :math:`p_{jy}(x)` estimate :math:`P(z{=}j, y \mid x)`. By these estimates a rule that
    answers yes with probability h(x) has the accuracy
    :math:`\mathbb{E}[(2p_{\cdot 1} - 1)\,h] + \text{const}` and, for each rate of the notion, which
    is a share of the rows with a label in a set S, the group's rate
    :math:`r_j(h) = \mathbb{E}[a_j h] / \mathbb{E}[a_j]` with :math:`a_j = \sum_{y \in S} p_{jy}`.
    All are linear in h, and

    .. math:: \max_h \mathbb{E}[(2 p_{\cdot 1} - 1)\, h] \quad\text{such that}\quad
        \tau\,q \le r_j(h) \le q \text{ for all } j

    is a linear program, whose multipliers :math:`\psi` give the rule

    .. math:: \hat y = \Big[\,2 p_{\cdot 1}(x) - 1 + \sum_j \psi_j\, a_j(x) > 0\,\Big].

    For one rate of two groups the one multiplier is found by a sort. Where the paper bounds
    differences of rates, ratios are bounded here, as by all peers. A little noise is added to
    :math:`2p - 1`, in the program and in predictions, so that alike rows need not be answered
    alike.

    Probabilities of training rows are out of fold; for new rows they are means over the folds'
    models. Since estimates are not exact, the program is solved for levels from τ to 1 until the
    rates of the training rows, counted by their true labels and groups, reach τ.

    Parameters
    ----------
    notion : str, default="statistical_parity"
        Also ``"equal_opportunity"``, ``"predictive_equality"`` or ``"equalized_odds"``.
    tau : float or None, default=0.8
        Least ratio of the smallest to the largest group rate; not used with ``epsilon``.
    epsilon : float, optional
        Largest difference between the groups' rates, in place of ``tau``.
    aware : bool, default=False
        Whether the group is an input, and needed to predict.
    estimator : estimator, optional
        With ``predict_proba``: of label and group jointly, or, with ``aware``, of the label alone.
        By default the booster of ``FairBoostedClassifier``.
    n_folds : int or None, default=5
        Models, each fitted without one fold. With None one model, of all rows; its default is
        logistic regression.
    noise : float, default=1e-4
        Largest size of the noise.
    random_state : int, RandomState or None, default=None
        Seed of folds and noise; with an int the same rows get the same labels each time.

    Attributes
    ----------
    multipliers_ : ndarray of shape (n_rates, n_groups)
        :math:`\psi`.
    models_ : list
        The fitted estimators.
    rate_, accuracy_, feasible_

    References
    ----------
    R. Xian, H. Zhao, "A Unified Post-Processing Framework for Group Fairness in Classification",
    arXiv:2405.04025, 2024.
    """

    many_groups = True

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "notion": [StrOptions(set(RATE_LABELS))],
        "tau": [*CONSTRAINTS["tau"], None],
        "epsilon": [Interval(Real, 0, 1, closed="left"), None],
        "aware": ["boolean"],
        "n_folds": [Interval(Integral, 2, None, closed="left"), None],
        "noise": [Interval(Real, 0, None, closed="left")],
    }

    notion: str = "statistical_parity"
    _: KW_ONLY
    tau: float | None = 0.8  # type: ignore[assignment]
    epsilon: float | None = None
    aware: bool = False
    estimator: Any = None
    n_folds: int | None = 5
    noise: float = 1e-4
    random_state: Any = None

    @property
    def needs_group(self) -> bool:  # type: ignore[override]
        """Whether ``predict`` needs the group of each row."""
        return self.aware

    @property
    def _target(self) -> Target:
        rate = NOTIONS[self.notion](2).rate
        if self.epsilon is not None:
            return Target(rate, 0.0 - self.epsilon, "difference")
        if self.tau is None:
            raise InputError("nothing_to_move", tau=Parameter("tau"), epsilon=Parameter("epsilon"))
        return Target(rate, float(self.tau))

    def at(self, tau: float | None = None, *, epsilon: float | None = None) -> "LinearPost":
        """Give the same fit at another target, without training.

        Parameters
        ----------
        tau, epsilon : float, optional
            The new target: a least ratio or a largest difference.

        Returns
        -------
        LinearPost
            A fitted classifier; this one stays as it is.
        """
        return self._aimed(tau=tau, epsilon=epsilon)

    def _train(self, rows: CodedRows) -> None:
        if self.aware:
            rows, target = rows._replace(X=self._with_groups(rows.X, rows.z)), rows.y
        else:
            target = rows.z * 2 + rows.y
        estimator, seed = self.estimator, self.random_state
        self.models_, proba = fold_models(estimator, rows, target, self.n_folds, seed)
        self._joint = self._as_joint(proba, rows.z)
        self._rows = rows._replace(X=None)

    def _with_groups(self, X: FloatArray, z: Any) -> FloatArray:
        return np.column_stack([X, np.eye(len(self.groups_))[z, 1:]])

    def _as_joint(self, proba: FloatArray, z: Any) -> FloatArray:
        """Probability of group × label for each row."""
        if self.aware:
            return np.asarray(np.eye(len(self.groups_))[z][:, :, None] * proba[:, None, :])
        full = np.zeros((len(proba), 2 * len(self.groups_)))
        full[:, : proba.shape[1]] = proba
        return full.reshape(len(proba), -1, 2)

    def _gain(self, joint: FloatArray) -> FloatArray:
        """Give what a yes adds to the expected accuracy, with noise."""
        noise = check_random_state(self.random_state).uniform(-self.noise, self.noise, len(joint))
        return np.asarray(2 * joint[:, :, 1].sum(axis=1) - 1 + noise)

    def _members(self, joint: FloatArray) -> FloatArray:
        """Give :math:`a_j` of each rate of the notion, shape (n_samples, n_rates, n_groups)."""
        return np.stack([joint[:, :, S].sum(axis=2) for S in RATE_LABELS[self.notion]], axis=1)

    def _choose(self) -> None:
        rows, gain, a = self._rows, self._gain(self._joint), self._members(self._joint)
        weight = np.ones(len(gain)) if rows.weight is None else rows.weight
        means = np.einsum("i,irj->rj", weight, a).clip(1e-300) / weight.sum()
        target = self._target
        solve: Any = one_multiplier if a.shape[1:] == (1, 2) else solve_program
        solve = solve if target.comparison == "ratio" else solve_differences
        k, self.rate_, self.feasible_ = len(self.groups_), np.nan, False
        for level in np.linspace(target.level, target.worst + 1, LEVELS):
            psi = solve(gain, a / means, weight, float(level))
            answer = gain + np.einsum("irj,rj->i", a / means, psi) > 0
            cell = (rows.z * 2 + rows.y) * 2 + answer
            counts = np.bincount(cell, weights=weight, minlength=4 * k).reshape(k, 2, 2)
            rate = float(target.value(counts))
            if np.isnan(self.rate_) or rate > self.rate_:
                # In units of the members themselves, so that rows to come need no means.
                self.rate_, self.multipliers_ = rate, psi / means
                self.accuracy_ = float(overall_accuracy(counts))
            if target.reached(rate):
                self.feasible_ = True
                break

    def _score(self, X: FloatArray, z: Any) -> FloatArray:
        X = self._with_groups(X, z) if self.aware else X
        n_classes = 2 if self.aware else 2 * len(self.groups_)
        joint = self._as_joint(mean_proba(self.models_, X, n_classes), z)
        tilt = np.einsum("irj,rj->i", self._members(joint), self.multipliers_)
        return np.asarray(self._gain(joint) + tilt)

    def _positive(self, X: FloatArray, z: Any = None) -> FloatArray:
        return expit(self._score(X, z))

    def _answer(self, X: FloatArray, z: Any = None) -> BoolArray:
        return self._score(X, z) > 0


def one_multiplier(
    gain: FloatArray, share: FloatArray, weight: FloatArray, tau: float
) -> FloatArray:
    r"""Multipliers of one rate of two groups, by one sort.

    Only the constraint on the group that has the lower rate without any can bind. As its multiplier
    grows from 0, rows change their answer one after another, and each change raises
    :math:`r_{low} - \tau r_{high}`: the least multiplier at which that is not negative is taken.

    Gains are what a yes is worth, shares (n_samples, 1, 2) what it adds to each group's rate, of
    weighted mean 1; the result is what to add to the gain for a unit of each share.
    """
    weight = weight / weight.sum()
    yes = gain > 0
    low = int(np.argmin((weight * yes) @ share[:, 0]))
    push = np.where(np.arange(2) == low, 1.0, -tau)
    effect = share[:, 0] @ push
    slack = float((weight * yes) @ effect)
    changes = np.flatnonzero(np.where(yes, effect < 0, effect > 0))
    at = -gain[changes] / effect[changes]
    order = np.argsort(at)
    at = np.append(at[order], 2 * at.max(initial=0.0))
    reached = slack + np.cumsum(np.abs(weight * effect)[changes][order])
    if slack >= 0 or not len(changes):
        return np.zeros((1, 2))
    last = min(int(np.searchsorted(reached, 0.0)), len(changes) - 1)
    after = at[np.searchsorted(at[:-1], at[last] * (1 + 1e-9), side="right")]
    return np.asarray((at[last] + after) / 2 * push[None])


def solve_program(
    gain: FloatArray, share: FloatArray, weight: FloatArray, tau: float
) -> FloatArray:
    """Multipliers of any rates of any groups, as :func:`one_multiplier` gives them."""
    return _solve(gain, share, weight, tau, 0.0)


def solve_differences(
    gain: FloatArray, share: FloatArray, weight: FloatArray, level: float
) -> FloatArray:
    """Multipliers of any rates of any groups that may be as far apart as minus the level."""
    return _solve(gain, share, weight, 1.0, -level)


def _solve(
    gain: FloatArray, share: FloatArray, weight: FloatArray, tau: float, apart: float
) -> FloatArray:
    n, n_rates, n_groups = share.shape
    weight = weight / weight.sum()
    rates = (share.reshape(n, -1) * weight[:, None]).T
    most = np.repeat(np.eye(n_rates), n_groups, axis=0)
    program = linprog(
        -np.append(weight * gain, np.zeros(n_rates)),
        A_ub=np.block([[-rates, tau * most], [rates, -most]]),
        b_ub=np.repeat([apart, 0.0], len(rates)),
        bounds=(0, 1),
        method="highs",
    )
    lower, upper = -program.ineqlin.marginals.reshape(2, n_rates, n_groups)
    return np.asarray(lower - upper)
