"""The covariance constraints of Zafar, Valera, Gomez Rodriguez and Gummadi."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from copy import copy
from functools import cached_property
from numbers import Integral, Real
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from evenhand._extras import import_extra
from evenhand._sklearn import Interval, StrOptions
from evenhand.models.classifier import FairnessWarning
from evenhand.models.inputs import CodedRows, merge_alike
from evenhand.peers._base import FloatArray, LinearPeer

__all__ = ["ZafarClassifier", "ZafarMistreatmentClassifier"]

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
# The penalty of the convex-concave procedure: its start, growth and end.
PENALTY, PENALTY_GROWTH, MAX_PENALTY = 1.0, 2.0, 1e5


class _Logistic:
    """Ridge-penalised logistic regression of one table as a convex program.

    Programs are made once and solved for any bound: a bound is a parameter of the program. The
    unknowns are weights of columns brought to a largest value of 1, the last is the intercept;
    what goes in and out of the methods are weights of the columns as they are.
    """

    def __init__(self, rows: CodedRows, l2: float, solver: str) -> None:
        self.cp = import_extra("cvxpy", "peers")
        if solver.upper() not in self.cp.installed_solvers():
            raise ValueError(
                f"solver={solver!r} is none of cvxpy's: "
                f"{', '.join(map(repr, self.cp.installed_solvers()))}."
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

    def solve(self, problem: Any, stacklevel: int = 5) -> FloatArray:
        """Solve a program for the weights; never anything but finite ones.

        Between this and the user's line are a function that has the program, ``_fit`` and ``fit``.
        """
        status, w = "", None
        for settings in ATTEMPTS[: len(ATTEMPTS) if self.solver == "CLARABEL" else 1]:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")  # cvxpy's words for what the status says
                    problem.solve(solver=self.solver, **settings)
            except self.cp.error.SolverError:
                continue
            found = self.v.value
            if found is None or not np.isfinite(found).all():
                status = status or f": it says {problem.status!r}"
            elif problem.status == "optimal":
                return np.asarray(found, dtype=np.float64) / self.size
            elif problem.status == "optimal_inaccurate":
                w = np.asarray(found, dtype=np.float64) / self.size
        if w is None:
            raise RuntimeError(f"{self.solver} failed to solve the convex program{status}.")
        warnings.warn(
            f"{self.solver} solved the convex program to reduced accuracy only.",
            ConvergenceWarning,
            stacklevel=stacklevel,
        )
        return w

    @cached_property
    def optimum(self) -> FloatArray:
        """Weights of least loss."""
        objective = self.cp.Minimize(self.factor * self.expression)
        # A cached property is one more call.
        return self.solve(self.cp.Problem(objective, self.link), stacklevel=6)

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
        """Weights of least loss among those of a covariance within the bound."""
        self.bound.value = bound
        return self.solve(self._fair)

    def accurate(self, bound: float) -> FloatArray:
        """Weights of least covariance among those of a loss within the bound."""
        self.bound.value = self.factor * bound
        return self.solve(self._accurate)


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

    Needs cvxpy: ``pip install 'evenhand[peers]'``.

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
    l2 : float, default=1e-4
        Ridge :math:`\lambda`.
    solver : str, default="CLARABEL"
        Name of a solver of cvxpy that knows exponential cones.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the favourable one.
    groups_ : ndarray of shape (2,)
        The groups; the second is z = 1.
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Intercept.
    covariance_ : float
        Covariance of group and score on the training data.
    loss_ : float
        L at the weights.
    bound_ : float
        The bound on the absolute covariance (``mode="fairness"``) or on the loss.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

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

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "mode": [StrOptions({"fairness", "accuracy"})],
        "covariance_bound": [Interval(Real, 0, None, closed="left")],
        "relative": ["boolean"],
        "gamma": [Interval(Real, 0, None, closed="left")],
        "l2": [Interval(Real, 0, None, closed="left")],
        "solver": [str],
    }

    def __init__(
        self,
        mode: str = "fairness",
        covariance_bound: float = 0.0,
        *,
        relative: bool = False,
        gamma: float = 0.1,
        l2: float = 1e-4,
        solver: str = "CLARABEL",
    ) -> None:
        self.mode = mode
        self.covariance_bound = covariance_bound
        self.relative = relative
        self.gamma = gamma
        self.l2 = l2
        self.solver = solver

    def _check_parameters(self) -> None:
        self._validate_params()

    def _fit(self, rows: CodedRows, problem: _Logistic | None = None) -> None:
        problem = problem or _Logistic(rows, self.l2, self.solver)
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
    ) -> list[ZafarClassifier]:
        """Fit one classifier for each bound, with the convex program made once.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,)
            Two-valued labels of any type.
        sensitive_features : array-like of shape (n_samples,)
            Group of each row, two values of any type.
        bounds : iterable of float
            Values of ``covariance_bound``, or of ``gamma`` in ``mode="accuracy"``.
        sample_weight : array-like of shape (n_samples,), optional
            Row weights.

        Returns
        -------
        list of ZafarClassifier
            Fitted estimators in the order of ``bounds``; this one stays as it is.
        """
        name = "covariance_bound" if self.mode == "fairness" else "gamma"
        models = [copy(self).set_params(**{name: bound}) for bound in bounds]
        problem = None
        for model in models:
            model._check_parameters()
            rows = model._code(X, y, sensitive_features, sample_weight)
            problem = problem or _Logistic(rows, self.l2, self.solver)
            model._fit(rows, problem)
        return models


class _Errors(NamedTuple):
    r"""Sums over the rows of one kind of how far wrong they are, :math:`\max(0, -y w^\top x)`.

    ``first`` and ``second`` are row weights such that the covariance of the group with
    :math:`\min(0, y w^\top x)` among these rows is the second sum less the first.
    """

    first: FloatArray
    second: FloatArray

    def covariance(self, margin: FloatArray) -> float:
        return float((self.second - self.first) @ np.maximum(0, -margin))


_KINDS = {"overall": ("all",), "fpr": (0,), "fnr": (1,), "both": (0, 1)}


class ZafarMistreatmentClassifier(LinearPeer):
    r"""Logistic regression whose errors have a bounded covariance with the group.

    With :math:`L` and :math:`y_i = \pm1` as in :class:`ZafarClassifier` and
    :math:`g_i(w) = \min(0, y_i w^\top x_i)`, which is how far wrong a row is,

    .. math:: \min_w L(w) \ \text{ s.t. } \Big|\frac{1}{|R|} \sum_{i \in R}
        (z_i - \bar z_R)\, g_i(w)\Big| \le c,

    where R is all rows (overall error), those with the unfavourable label (false positives) or
    those with the favourable one (false negatives), and :math:`\bar z_R` the mean of z among them.
    The covariance is a difference of two convex functions, P and Q. The convex–concave procedure
    linearises at the present weights whichever of the two makes a constraint nonconvex,

    .. math:: \min_{w,\, s \ge 0} L(w) + \tau (s_1 + s_2) \ \text{ s.t. }
        Q(w) - \nabla P(w_k)^\top w \le c + s_1, \ P(w) - \nabla Q(w_k)^\top w \le c + s_2,

    and starts at the unconstrained optimum; τ doubles from one iteration to the next. P and Q are
    homogeneous, so nothing else is in their linearisation. The result is a local optimum. The group
    is not needed to predict.

    Needs cvxpy: ``pip install 'evenhand[peers]'``.

    Parameters
    ----------
    constraint : {"fpr", "fnr", "both", "overall"}, default="both"
        Which errors: false positives, false negatives, each of these, or all together.
    covariance_bound : float, default=0.0
        c.
    relative : bool, default=False
        Whether c is given as a multiple of the unconstrained classifier's covariance, for each
        kind of errors.
    l2 : float, default=1e-4
        Ridge :math:`\lambda`.
    max_iter : int, default=30
        Most convex programs to solve.
    tol : float, default=1e-4
        Stop when the loss changes by less than this share of it and no covariance is beyond its
        bound by more than this share of the unconstrained one.
    solver : str, default="CLARABEL"
        Name of a solver of cvxpy that knows exponential cones.

    Attributes
    ----------
    classes_ : ndarray of shape (2,)
        The labels; the second is the favourable one.
    groups_ : ndarray of shape (2,)
        The groups; the second is z = 1.
    coef_ : ndarray of shape (1, n_features)
        Weights.
    intercept_ : ndarray of shape (1,)
        Intercept.
    covariance_ : ndarray of shape (1,) or (2,)
        Covariance of the group with each kind of errors on the training data; false positives come
        before false negatives.
    bound_ : ndarray of the same shape
        Their bounds.
    loss_ : float
        L at the weights.
    feasible_ : bool
        Whether every covariance is within its bound, up to ``tol``.
    losses_ : ndarray of shape (n_iterations + 1,)
        L at the start and after each iteration.
    violations_ : ndarray of shape (n_iterations + 1,)
        How far the covariances were beyond their bounds, summed.
    n_iter_ : int
        Convex programs solved after the unconstrained one.
    n_features_in_ : int
        Columns of X.
    feature_names_in_ : ndarray of str
        Their names, if X had any.

    References
    ----------
    M. B. Zafar, I. Valera, M. Gomez Rodriguez, K. P. Gummadi, "Fairness Beyond Disparate Treatment
    & Disparate Impact: Learning Classification without Disparate Mistreatment", WWW 2017.

    T. Lipp, S. Boyd, "Variations and extension of the convex–concave procedure", Optimization and
    Engineering, 2016.
    """

    _parameter_constraints: dict[str, list[Any]] = {  # noqa: RUF012
        "constraint": [StrOptions(set(_KINDS))],
        "covariance_bound": [Interval(Real, 0, None, closed="left")],
        "relative": ["boolean"],
        "l2": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "solver": [str],
    }

    def __init__(
        self,
        constraint: str = "both",
        covariance_bound: float = 0.0,
        *,
        relative: bool = False,
        l2: float = 1e-4,
        max_iter: int = 30,
        tol: float = 1e-4,
        solver: str = "CLARABEL",
    ) -> None:
        self.constraint = constraint
        self.covariance_bound = covariance_bound
        self.relative = relative
        self.l2 = l2
        self.max_iter = max_iter
        self.tol = tol
        self.solver = solver

    def _check_parameters(self) -> None:
        self._validate_params()

    def _fit(self, rows: CodedRows) -> None:
        problem = _Logistic(rows, self.l2, self.solver)
        errors = [self._errors(problem, kind) for kind in _KINDS[self.constraint]]

        def covariances(w: FloatArray) -> FloatArray:
            margin = problem.signed @ (w * problem.size)
            return np.array([e.covariance(margin) for e in errors])

        start = np.abs(covariances(problem.optimum))
        self.bound_ = np.full(len(errors), float(self.covariance_bound))
        if self.relative:
            self.bound_ *= start
        allowed = self.bound_ + self.tol * np.maximum(start, self.tol)

        points = [problem.optimum]
        beyond = [np.maximum(0, start - self.bound_).sum()]
        losses = [problem.loss(problem.optimum)]
        feasible = [bool(np.all(start <= allowed))]
        converged, step = feasible[0], _Convexified(problem, errors, self.bound_)
        penalty, trouble = PENALTY, f"max_iter={self.max_iter} iterations were not enough"
        while not converged and len(points) <= self.max_iter:
            try:
                w = step(points[-1], penalty)
            except RuntimeError as error:
                trouble = str(error).rstrip(".")
                break
            penalty = min(penalty * PENALTY_GROWTH, MAX_PENALTY)
            found = np.abs(covariances(w))
            points.append(w)
            beyond.append(np.maximum(0, found - self.bound_).sum())
            losses.append(problem.loss(w))
            feasible.append(bool(np.all(found <= allowed)))
            still = abs(losses[-1] - losses[-2]) <= self.tol * losses[-1]
            converged = still and (feasible[-1] or penalty == MAX_PENALTY)
            if converged and not feasible[-1]:
                trouble = "the procedure settled outside"
        # The least loss among feasible points; without any, the nearest to being so.
        self.feasible_ = any(feasible)
        order = np.where(feasible, losses, np.inf) if self.feasible_ else beyond
        w = points[int(np.argmin(order))]
        self._set_weights(w)
        self.covariance_, self.loss_ = covariances(w), problem.loss(w)
        self.losses_, self.violations_ = np.array(losses), np.array(beyond)
        self.n_iter_ = len(points) - 1
        if not self.feasible_:
            warnings.warn(
                f"no weights within the bounds were found ({trouble}): the covariances are "
                f"{', '.join(f'{c:.3g}' for c in self.covariance_)}. The classifier is kept with "
                "feasible_=False.",
                FairnessWarning,
                stacklevel=3,
            )
        elif not converged:
            warnings.warn(
                f"the procedure did not settle ({trouble}); the best weights so far are used.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _errors(self, problem: _Logistic, kind: Any) -> _Errors:
        """Row weights of one constraint."""
        used = problem.share * (True if kind == "all" else problem.y == kind)
        groups = np.array([used @ (problem.z == 0), used @ (problem.z == 1)])
        if not groups.all():
            raise ValueError(
                f"group {self.groups_[groups == 0][0]!s} has no row with the label "
                f"{self.classes_[kind]!s}; constraint={self.constraint!r} needs some in each group."
            )
        mean = groups[1] / groups.sum()
        used = used / groups.sum()
        return _Errors((1 - mean) * used * (problem.z == 1), mean * used * (problem.z == 0))


class _Convexified:
    """The convex program of one iteration of the convex–concave procedure."""

    def __init__(self, problem: _Logistic, errors: list[_Errors], bounds: FloatArray) -> None:
        cp, factor = problem.cp, problem.factor
        self.problem, self.errors = problem, errors
        self.penalty = cp.Parameter(nonneg=True)
        self.slopes = [
            [cp.Parameter(len(problem.size)), cp.Parameter(len(problem.size))] for _ in errors
        ]
        slack = cp.Variable((len(errors), 2), nonneg=True)
        constraints = list(problem.link)
        for i, (e, (d_first, d_second)) in enumerate(zip(errors, self.slopes, strict=True)):
            used = [np.flatnonzero(weight) for weight in e]
            first, second = (
                (factor * weight[rows]) @ cp.pos(-problem.margin[rows])
                for weight, rows in zip(e, used, strict=True)
            )
            bound = factor * bounds[i]
            constraints.append(second - d_first @ problem.v <= bound + slack[i, 0])
            constraints.append(first - d_second @ problem.v <= bound + slack[i, 1])
        objective = factor * problem.expression + self.penalty * cp.sum(slack)
        self.program = cp.Problem(cp.Minimize(objective), constraints)

    def __call__(self, w: FloatArray, penalty: float) -> FloatArray:
        wrong = self.problem.signed @ (w * self.problem.size) < 0
        for e, slopes in zip(self.errors, self.slopes, strict=True):
            for weight, slope in zip(e, slopes, strict=True):
                slope.value = -self.problem.factor * ((weight * wrong) @ self.problem.signed)
        self.penalty.value = penalty
        return self.problem.solve(self.program)
