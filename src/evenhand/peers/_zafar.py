"""The covariance constraint of Zafar, Valera, Gomez Rodriguez and Gummadi on scores."""

import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
import pandas as pd
from scipy.sparse import csr_array

from evenhand._extras import import_extra
from evenhand._sklearn import Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.core.groups import crossed
from evenhand.engines.coding import listed
from evenhand.models.inputs import CodedRows, as_table, merge_alike
from evenhand.models.settings import FitWarning, warn
from evenhand.peers._base import CONSTRAINTS, FloatArray, LinearPeer
from evenhand.peers._docs import peer_docs

# Above this share of nonzero inputs a dense matrix is the smaller one.
DENSE_SHARE = 0.3
# A covariance below this share of the unconstrained one is zero to a solver.
ZERO_COVARIANCE = 1e-5
# The least score of those whose favourable answer is kept; a margin that no row falls short of.
POSITIVE, FAR = 1e-4, 1e3
# Clarabel stalls on a few programs in a hundred; shorter steps take it to the end.
ATTEMPTS: tuple[dict[str, float], ...] = (
    {},
    {"max_step_fraction": 0.9},
    {"max_step_fraction": 0.8},
)


class LogisticProgram:
    """Ridge-penalised logistic regression of one table as a convex program.

    Programs are made once and solved for any bound: a bound is a parameter of the program. The
    unknowns are weights of columns brought to a largest value of 1, the last is the intercept;
    what goes in and out of the methods are weights of the columns as they are.
    """

    def __init__(
        self, rows: CodedRows, l2: float, solver: str, member: FloatArray | None = None
    ) -> None:
        self.cp = import_extra("cvxpy", "peers")
        if solver.upper() not in self.cp.installed_solvers():
            raise InputError(
                "unknown_solver",
                solver=Parameter("solver", solver),
                installed=", ".join(map(repr, self.cp.installed_solvers())),
            )
        rows = merge_alike(rows)
        self.solver, self.l2, self.y, self.z = solver.upper(), l2, rows.y, rows.z
        n = len(rows.y)
        weight = np.ones(n) if rows.weight is None else rows.weight
        self.share = weight / weight.sum()
        size = np.append(np.abs(rows.X).max(axis=0), 1.0)
        self.size = np.where(size > 0, size, 1.0)
        A = np.column_stack([rows.X, np.ones(n)]) / self.size
        z = self.z[:, None] if member is None else member[self.z]
        self.covariance_gradient = ((z - self.share @ z) * self.share[:, None]).T @ A
        self.covariance_gradient[:, -1] = 0.0
        A *= (2 * self.y - 1)[:, None]
        self.signed = csr_array(A) if np.count_nonzero(A) < DENSE_SHARE * A.size else A
        # N times the mean loss: solvers stop at absolute tolerances.
        self.factor = float(n)
        self.v = self.cp.Variable(A.shape[1])
        # The margins are unknowns of their own, so that the table is in the program once.
        self.margin = self.cp.Variable(n)
        self.link = [self.margin == self.signed @ self.v]
        ridge = np.sqrt(l2 / 2) / self.size[:-1]
        self.expression = self.share @ self.cp.logistic(-self.margin)
        if l2 > 0:
            self.expression += self.cp.sum_squares(self.cp.multiply(ridge, self.v[:-1]))
        self.cost = self.factor * self.expression
        self.score = self.covariance_gradient @ self.v
        self.bound = self.cp.Parameter(nonneg=True)
        self.bounds = self.cp.Parameter(z.shape[1], nonneg=True)

    def loss(self, w: FloatArray) -> float:
        """Mean log-loss and ridge at the weights."""
        margin = self.signed @ (w * self.size)
        return float(self.share @ np.logaddexp(0, -margin) + self.l2 / 2 * w[:-1] @ w[:-1])

    def covariance(self, w: FloatArray) -> FloatArray:
        """Covariance of each attribute and the score at the weights."""
        return np.asarray(self.covariance_gradient @ (w * self.size))

    def at_zero(self, w: FloatArray) -> bool:
        """Whether the covariances are 0 to a solver: there are many such weights then."""
        sizes = [np.abs(self.covariance(v)).sum() for v in (w, self.optimum)]
        return bool(sizes[0] <= ZERO_COVARIANCE * sizes[1])

    def solve(self, problem: Any, solver: str = "") -> FloatArray:
        """Solve a program for the weights; never anything but finite ones."""
        status, w, solver = "", None, solver or self.solver
        for settings in ATTEMPTS[: len(ATTEMPTS) if solver == "CLARABEL" else 1]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # cvxpy's words for what the status says
                    problem.solve(solver=solver, **settings)
            except self.cp.error.SolverError:
                continue
            value = self.v.value
            if value is None or not np.isfinite(value).all():
                status = status or f": it says {problem.status!r}"
            elif problem.status == "optimal":
                return np.asarray(value, dtype=np.float64) / self.size
            elif problem.status == "optimal_inaccurate":
                w = np.asarray(value, dtype=np.float64) / self.size
        if w is None:
            raise RuntimeError(f"{solver} failed to solve the convex program{status}.")
        warn(FitWarning("reduced_accuracy", solver=solver))
        return w

    def program(self, objective: Any, *limits: Any) -> Any:
        """Give the program of weights and margins with an objective and limits."""
        return self.cp.Problem(self.cp.Minimize(objective), [*self.link, *limits])

    @cached_property
    def optimum(self) -> FloatArray:
        """Weights of least loss."""
        return self.solve(self.program(self.cost))

    @cached_property
    def _fair(self) -> Any:
        return self.program(self.cost, self.cp.abs(self.score) <= self.bounds)

    @cached_property
    def _accurate(self) -> Any:
        return self.program(self.cp.norm1(self.score), self.cost <= self.bound)

    def fair(self, bounds: Any) -> FloatArray:
        """Weights of least loss whose covariances are within the bounds."""
        self.bounds.value = np.broadcast_to(bounds, self.bounds.shape)
        return self.solve(self._fair)

    def accurate(self, bound: float) -> FloatArray:
        """Weights of least covariance whose loss is within the bound."""
        self.bound.value = self.factor * bound
        return self.solve(self._accurate)

    def personal(self, gamma: float, kept: Any) -> FloatArray:
        """Weights of least covariance that no row pays for; at 0, of many, those of least loss.

        A loss is at most x where its margin is at least -log(eˣ - 1), so each bound is linear.
        ``kept`` says who may not lose a favourable answer; all others' losses are bounded.
        """
        sign, before = 2 * self.y - 1, self.signed @ (self.optimum * self.size)
        stays = kept & (sign * before > 0)
        most = (1 + gamma) * np.logaddexp(0, -before)
        least = np.maximum(-most - np.log(-np.expm1(-most)), -FAR)
        least[stays] = np.minimum(sign * before, POSITIVE)[stays]
        way, multiply = np.where(stays, sign, 1), self.cp.multiply
        # A linear program, perhaps without an interior, which a conic solver needs.
        limit, size = multiply(way, self.signed @ self.v) >= least, self.cp.norm1(self.score)
        w = self.solve(self.cp.Problem(self.cp.Minimize(size), [limit]), "SCIPY")
        if not self.at_zero(w):
            return w
        return self.solve(self.program(self.cost, multiply(way, self.margin) >= least, size <= 0))


def _attributes(sensitive_features: Any, groups: Any) -> tuple[list[Any], FloatArray]:
    """Say what is indicated, and give each group's indicators."""
    values = as_table(sensitive_features)
    columns = [pd.DataFrame(np.eye(len(groups)), columns=groups.tolist())]
    if np.ndim(values) > 1 and np.shape(values)[1] > 1:
        group = pd.Index(crossed(values, "sensitive_features"))
        table = pd.DataFrame(values).astype(str).set_axis(group)
        table = table[~group.duplicated()].loc[groups.tolist()]
        columns = [
            pd.get_dummies(column, prefix=str(name), prefix_sep="=")
            for name, column in table.items()
        ]
    shown = pd.concat([c.iloc[:, int(c.shape[1] == 2) :] for c in columns], axis=1)
    return shown.columns.tolist(), shown.to_numpy(np.float64)


def _plain(values: FloatArray) -> Any:
    return float(values[0]) if len(values) == 1 else values


@dataclass(eq=False, repr=False)
@peer_docs
class ZafarClassifier(LinearPeer):
    r"""Logistic regression whose score has a bounded covariance with the group.

    With :math:`L(w) = \frac1N \sum_i \log(1 + e^{-y_i w^\top x_i}) + \frac{\lambda}{2}\|w\|^2`
    (:math:`y_i = \pm 1`, the intercept free of the ridge) and

    .. math:: \mathrm{cov}(w) = \frac1N \sum_i (z_i - \bar z)\, w^\top x_i,

    either the loss is minimised under a bound on unfairness, or unfairness under a bound on the
    loss, or on the loss :math:`\ell_i` of each row beside that at the optimum :math:`w^*` of L:

    .. math::
        \texttt{mode="fairness"}:&\quad \min_w L(w) \ \text{ s.t. } |\mathrm{cov}(w)| \le c, \\
        \texttt{mode="accuracy"}:&\quad \min_w |\mathrm{cov}(w)| \ \text{ s.t. }
            L(w) \le (1 + \gamma) \min L, \\
        \texttt{mode="persons"}:&\quad \min_w |\mathrm{cov}(w)| \ \text{ s.t. }
            \ell_i(w) \le (1 + \gamma)\, \ell_i(w^*) \ \text{ for all } i,

    the last with :math:`w^\top x_i > 0` in place of its bound for those of ``kept_group`` to whom
    :math:`w^*` gives the favourable answer: none of them may lose it.

    All are convex. The covariance stands for the difference of the groups' selection rates: at 0
    the groups have the same mean score, not the same share of positive ones. Of several sensitive
    columns or values z is the indicator of each value (of the second, where a column has two); each
    covariance has its bound, and the sum of their sizes is minimised. The group is not needed to
    predict.

    Needs cvxpy: ``pip install '.[peers]'``.

    Parameters
    ----------
    mode : {"fairness", "accuracy", "persons"}, default="fairness"
        What is bounded: the covariance, the loss, or each row's loss.
    covariance_bound : float or array-like, default=0.0
        c, in ``mode="fairness"``; one for all of ``attributes_``, or one for each.
    relative : bool, default=False
        Whether c is given as a multiple of the unconstrained classifier's covariance, as in the
        paper's experiments: 1 is then no constraint. Costs one more solve.
    gamma : float, default=0.1
        How much more loss is allowed, relative to the least, in ``mode="accuracy"``, or for each
        row, in ``mode="persons"``. Where a covariance of 0 is within that, the weights of least
        loss that have it are taken.
    kept_group : optional
        In ``mode="persons"``, a value of ``groups_``; None: nobody's answer is kept.
    l2, solver

    Attributes
    ----------
    classes_, coef_, intercept_
    groups_ : ndarray
        The groups, of several columns the combinations of their values.
    attributes_ : list
        What z indicates: values, or ``"column=value"`` of several columns.
    covariance_ : float or ndarray
        Covariance of z and score on the training data; of several attributes, of each.
    loss_ : float
        L at the weights.
    bound_ : float or ndarray
        The bound on the absolute covariance (``mode="fairness"``), on the loss, or on each row's
        loss as a multiple of that at the optimum.
    n_features_in_, feature_names_in_

    References
    ----------
    M. B. Zafar, I. Valera, M. Gomez Rodriguez, K. P. Gummadi, "Fairness Constraints: Mechanisms for
    Fair Classification", AISTATS 2017.

    Examples
    --------
    >>> from evenhand.datasets import encoded_split, load_adult
    >>> from evenhand.peers import ZafarClassifier
    >>> split = encoded_split(load_adult("coarse"), random_state=0)
    >>> model = ZafarClassifier(covariance_bound=0.01)
    >>> model.fit(split.X_train, split.y_train, sensitive_features=split.z_train)  # doctest: +SKIP
    ZafarClassifier(covariance_bound=0.01)
    """

    many_groups = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "mode": [StrOptions({"fairness", "accuracy", "persons"})],
        "covariance_bound": [*CONSTRAINTS["covariance_bound"], "array-like"],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "solver": [str],
    }

    mode: str = "fairness"
    covariance_bound: Any = 0.0
    _: KW_ONLY
    relative: bool = False
    gamma: float = 0.1
    kept_group: Any = None
    l2: float = 1e-4
    solver: str = "CLARABEL"

    def _code(
        self, X: Any, y: Any, sensitive_features: Any, sample_weight: Any = None
    ) -> CodedRows:
        rows = super()._code(X, y, sensitive_features, sample_weight)
        self.attributes_, self._member = _attributes(sensitive_features, self.groups_)
        return rows

    def _bounds(self) -> FloatArray:
        """Give one bound, or one for each attribute."""
        try:
            bounds = np.atleast_1d(np.asarray(self.covariance_bound, dtype=np.float64))
        except (TypeError, ValueError):
            bounds = np.array([np.nan])
        proper = bounds.ndim == 1 and len(bounds) in (1, len(self.attributes_))
        if not (proper and ((bounds >= 0) & (bounds < np.inf)).all()):
            raise InputError(
                "bounds_of_attributes",
                bound=Parameter("covariance_bound", self.covariance_bound),
                attributes=listed(self.attributes_),
            )
        return bounds

    def _fit(self, rows: CodedRows, problem: LogisticProgram | None = None) -> None:
        if self.kept_group is not None and self.mode != "persons":
            given = {name: Parameter(name, getattr(self, name)) for name in ("kept_group", "mode")}
            raise InputError("kept_group_of_mode", **given)
        problem = problem or LogisticProgram(rows, self.l2, self.solver, self._member)
        if self.mode == "fairness":
            bounds = self._bounds()
            if self.relative and bounds.any():
                bounds = bounds * np.abs(problem.covariance(problem.optimum))
            w, self.bound_ = problem.fair(bounds), _plain(bounds)
        elif self.mode == "persons":
            kept = np.array([group == self.kept_group for group in self.groups_.tolist()])
            if self.kept_group is not None and not kept.any():
                about = {"shown": repr(self.kept_group), "known": listed(self.groups_.tolist())}
                raise InputError("unknown_group", groups=Parameter("kept_group"), **about)
            self.bound_ = 1 + float(self.gamma)
            w = problem.personal(float(self.gamma), kept[problem.z])
        else:
            w = problem.optimum
            self.bound_ = (1 + float(self.gamma)) * problem.loss(w)
            if self.gamma > 0:
                w = problem.accurate(self.bound_)
                w = problem.fair(0.0) if problem.at_zero(w) else w
        self._set_weights(w)
        self.covariance_, self.loss_ = _plain(problem.covariance(w)), problem.loss(w)

    def fit_path(
        self,
        X: Any,
        y: Any,
        *,
        sensitive_features: Any = None,
        bounds: Iterable[float],
        sample_weight: Any = None,
    ) -> list[Self]:
        """Fit one classifier for each bound, with the convex program made once.

        Parameters
        ----------
        X, y, sensitive_features
        bounds : iterable of float
            Values of ``covariance_bound``, or of ``gamma`` in the other modes.
        sample_weight

        Returns
        -------
        list of ZafarClassifier
            Fitted estimators in the order of ``bounds``; this one stays as it is.
        """
        name = "covariance_bound" if self.mode == "fairness" else "gamma"
        models = [copy(self).set_params(**{name: bound}) for bound in bounds]
        problem = None
        for model in models:
            model._validate_params()
            rows = model._code(X, y, sensitive_features, sample_weight)
            problem = problem or LogisticProgram(rows, self.l2, self.solver, model._member)
            model._fit(rows, problem)
        return models
