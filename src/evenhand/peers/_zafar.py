"""The covariance constraint of Zafar, Valera, Gomez Rodriguez and Gummadi on scores."""

import warnings
from collections.abc import Iterable
from copy import copy
from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from numbers import Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.sparse import csr_array

from evenhand._extras import import_extra
from evenhand._sklearn import Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.models.inputs import CodedRows, merge_alike
from evenhand.models.settings import FitWarning, warn
from evenhand.peers._base import CONSTRAINTS, FloatArray, LinearPeer
from evenhand.peers._docs import peer_docs

# Above this share of nonzero inputs a dense matrix is the smaller one.
DENSE_SHARE = 0.3
# A covariance below this share of the unconstrained one is zero to a solver.
ZERO_COVARIANCE = 1e-5
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

    def __init__(self, rows: CodedRows, l2: float, solver: str) -> None:
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
        self.covariance_gradient = ((self.z - self.share @ self.z) * self.share) @ A
        self.covariance_gradient[-1] = 0.0
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
        self.bound = self.cp.Parameter(nonneg=True)

    def loss(self, w: FloatArray) -> float:
        """Mean log-loss and ridge at the weights."""
        margin = self.signed @ (w * self.size)
        return float(self.share @ np.logaddexp(0, -margin) + self.l2 / 2 * w[:-1] @ w[:-1])

    def covariance(self, w: FloatArray) -> float:
        """Covariance of group and score at the weights."""
        return float(self.covariance_gradient @ (w * self.size))

    def solve(self, problem: Any) -> FloatArray:
        """Solve a program for the weights; never anything but finite ones."""
        status, w = "", None
        for settings in ATTEMPTS[: len(ATTEMPTS) if self.solver == "CLARABEL" else 1]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # cvxpy's words for what the status says
                    problem.solve(solver=self.solver, **settings)
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
            raise RuntimeError(f"{self.solver} failed to solve the convex program{status}.")
        warn(FitWarning("reduced_accuracy", solver=self.solver))
        return w

    @cached_property
    def optimum(self) -> FloatArray:
        """Weights of least loss."""
        objective = self.cp.Minimize(self.factor * self.expression)
        return self.solve(self.cp.Problem(objective, self.link))

    @cached_property
    def _fair(self) -> Any:
        score = self.covariance_gradient @ self.v
        return self.cp.Problem(
            self.cp.Minimize(self.factor * self.expression),
            [*self.link, self.cp.abs(score) <= self.bound],
        )

    @cached_property
    def _accurate(self) -> Any:
        score = self.covariance_gradient @ self.v
        return self.cp.Problem(
            self.cp.Minimize(self.cp.abs(score)),
            [*self.link, self.factor * self.expression <= self.bound],
        )

    def fair(self, bound: float) -> FloatArray:
        """Weights of least loss whose covariance is within the bound."""
        self.bound.value = bound
        return self.solve(self._fair)

    def accurate(self, bound: float) -> FloatArray:
        """Weights of least covariance whose loss is within the bound."""
        self.bound.value = self.factor * bound
        return self.solve(self._accurate)


@dataclass(eq=False, repr=False)
@peer_docs
class ZafarClassifier(LinearPeer):
    r"""Logistic regression whose score has a bounded covariance with the group.

    With :math:`L(w) = \frac1N \sum_i \log(1 + e^{-y_i w^\top x_i}) + \frac{\lambda}{2}\|w\|^2`
    (:math:`y_i = \pm 1`, the intercept free of the ridge) and

    .. math:: \mathrm{cov}(w) = \frac1N \sum_i (z_i - \bar z)\, w^\top x_i,

    either the loss is minimised under a bound on unfairness, or unfairness under a bound on the
    loss:

    .. math::
        \texttt{mode="fairness"}:&\quad \min_w L(w) \ \text{ s.t. } |\mathrm{cov}(w)| \le c, \\
        \texttt{mode="accuracy"}:&\quad \min_w |\mathrm{cov}(w)| \ \text{ s.t. }
            L(w) \le (1 + \gamma) \min L.

    Both are convex. The covariance stands for the difference of the groups' selection rates: at 0
    the groups have the same mean score, not the same share of positive ones. The group is not
    needed to predict.

    Needs cvxpy: ``pip install '.[peers]'``.

    Parameters
    ----------
    mode : {"fairness", "accuracy"}, default="fairness"
        What is bounded.
    covariance_bound : float, default=0.0
        c, in ``mode="fairness"``.
    relative : bool, default=False
        Whether c is given as a multiple of the unconstrained classifier's covariance, as in the
        paper's experiments: 1 is then no constraint. Costs one more solve.
    gamma : float, default=0.1
        How much more loss is allowed, relative to the least, in ``mode="accuracy"``. If a
        covariance of 0 is within it, the weights of least loss at 0 are taken.
    l2, solver

    Attributes
    ----------
    classes_, groups_, coef_, intercept_
    covariance_ : float
        Covariance of group and score on the training data.
    loss_ : float
        L at the weights.
    bound_ : float
        The bound on the absolute covariance (``mode="fairness"``) or on the loss.
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "mode": [StrOptions({"fairness", "accuracy"})],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "solver": [str],
    }

    mode: str = "fairness"
    covariance_bound: float = 0.0
    _: KW_ONLY
    relative: bool = False
    gamma: float = 0.1
    l2: float = 1e-4
    solver: str = "CLARABEL"

    def _fit(self, rows: CodedRows, problem: LogisticProgram | None = None) -> None:
        problem = problem or LogisticProgram(rows, self.l2, self.solver)
        if self.mode == "fairness":
            self.bound_ = float(self.covariance_bound)
            if self.relative and self.bound_ > 0:
                self.bound_ *= abs(problem.covariance(problem.optimum))
            w = problem.fair(self.bound_)
        else:
            w = problem.optimum
            least = abs(problem.covariance(w))
            self.bound_ = (1 + float(self.gamma)) * problem.loss(w)
            if self.gamma > 0:
                w = problem.accurate(self.bound_)
                # At zero there are many such weights, and a solver returns any of them.
                if abs(problem.covariance(w)) <= ZERO_COVARIANCE * least:
                    w = problem.fair(0.0)
        self._set_weights(w)
        self.covariance_, self.loss_ = problem.covariance(w), problem.loss(w)

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
            Values of ``covariance_bound``, or of ``gamma`` in ``mode="accuracy"``.
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
            problem = problem or LogisticProgram(rows, self.l2, self.solver)
            model._fit(rows, problem)
        return models
