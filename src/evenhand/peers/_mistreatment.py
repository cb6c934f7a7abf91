"""The covariance constraints of Zafar, Valera, Gomez Rodriguez and Gummadi on errors."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, NamedTuple

import numpy as np

from evenhand._sklearn import Interval, StrOptions
from evenhand.core.errors import InputError, Parameter
from evenhand.models.inputs import CodedRows
from evenhand.models.settings import FairnessWarning, FitWarning, warn
from evenhand.peers._base import CONSTRAINTS, FloatArray, LinearPeer
from evenhand.peers._docs import peer_docs
from evenhand.peers._zafar import LogisticProgram

# The penalty of the convex-concave procedure: its start, growth and end.
PENALTY, PENALTY_GROWTH, MAX_PENALTY = 1.0, 2.0, 1e5


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


@dataclass(eq=False, repr=False)
@peer_docs
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

    Needs cvxpy: ``pip install '.[peers]'``.

    Parameters
    ----------
    constraint : {"fpr", "fnr", "both", "overall"}, default="both"
        Which errors: false positives, false negatives, each of these, or all together.
    covariance_bound : float, default=0.0
        c.
    relative : bool, default=False
        Whether c is given as a multiple of the unconstrained classifier's covariance, for each
        kind of errors.
    l2
    max_iter : int, default=30
        Most convex programs to solve.
    tol : float, default=1e-4
        Stop when the loss changes by less than this share of it and no covariance is beyond its
        bound by more than this share of the unconstrained one.
    solver

    Attributes
    ----------
    classes_, groups_, coef_, intercept_
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
    n_features_in_, feature_names_in_

    References
    ----------
    M. B. Zafar, I. Valera, M. Gomez Rodriguez, K. P. Gummadi, "Fairness Beyond Disparate Treatment
    & Disparate Impact: Learning Classification without Disparate Mistreatment", WWW 2017.

    T. Lipp, S. Boyd, "Variations and extension of the convex–concave procedure", Optimization and
    Engineering, 2016.
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "constraint": [StrOptions(set(_KINDS))],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "solver": [str],
    }

    constraint: str = "both"
    covariance_bound: float = 0.0
    _: KW_ONLY
    relative: bool = False
    l2: float = 1e-4
    max_iter: int = 30
    tol: float = 1e-4
    solver: str = "CLARABEL"

    def _fit(self, rows: CodedRows) -> None:
        problem = LogisticProgram(rows, self.l2, self.solver)
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
        penalty, trouble = PENALTY, f"{self.max_iter} iterations were not enough"
        while not converged and len(points) <= self.max_iter:
            try:
                w = step(points[-1], penalty)
            except RuntimeError as error:
                trouble = str(error).rstrip(".")
                break
            penalty = min(penalty * PENALTY_GROWTH, MAX_PENALTY)
            sizes = np.abs(covariances(w))
            points.append(w)
            beyond.append(np.maximum(0, sizes - self.bound_).sum())
            losses.append(problem.loss(w))
            feasible.append(bool(np.all(sizes <= allowed)))
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
            warn(
                FairnessWarning(
                    "covariance_not_reached",
                    trouble=trouble,
                    covariances=", ".join(f"{c:.3g}" for c in self.covariance_),
                )
            )
        elif not converged:
            warn(FitWarning("procedure_not_settled", trouble=trouble))

    def _errors(self, problem: LogisticProgram, kind: Any) -> _Errors:
        """Row weights of one constraint."""
        used = problem.share * (True if kind == "all" else problem.y == kind)
        groups = np.array([used @ (problem.z == 0), used @ (problem.z == 1)])
        if not groups.all():
            raise InputError(
                "label_missing_in_group",
                group=self.groups_.tolist()[int(np.argmin(groups))],
                label=self.classes_.tolist()[kind],
                constraint=Parameter("constraint", self.constraint),
            )
        mean = groups[1] / groups.sum()
        used = used / groups.sum()
        return _Errors((1 - mean) * used * (problem.z == 1), mean * used * (problem.z == 0))


class _Convexified:
    """The convex program of one iteration of the convex–concave procedure."""

    def __init__(self, problem: LogisticProgram, errors: list[_Errors], bounds: FloatArray) -> None:
        cp, factor = problem.cp, problem.factor
        self.problem, self.errors = problem, errors
        self.penalty = cp.Parameter(nonneg=True)
        self.slopes = [
            [cp.Parameter(len(problem.size)), cp.Parameter(len(problem.size))] for _ in errors
        ]
        slack = cp.Variable((len(errors), 2), nonneg=True)
        constraints = []
        for i, (e, (d_first, d_second)) in enumerate(zip(errors, self.slopes, strict=True)):
            used = [np.flatnonzero(weight) for weight in e]
            first, second = (
                (factor * weight[rows]) @ cp.pos(-problem.margin[rows])
                for weight, rows in zip(e, used, strict=True)
            )
            bound = factor * bounds[i]
            constraints.append(second - d_first @ problem.v <= bound + slack[i, 0])
            constraints.append(first - d_second @ problem.v <= bound + slack[i, 1])
        self.program = problem.program(problem.cost + self.penalty * cp.sum(slack), *constraints)

    def __call__(self, w: FloatArray, penalty: float) -> FloatArray:
        wrong = self.problem.signed @ (w * self.problem.size) < 0
        for e, slopes in zip(self.errors, self.slopes, strict=True):
            for weight, slope in zip(e, slopes, strict=True):
                slope.value = -self.problem.factor * ((weight * wrong) @ self.problem.signed)
        self.penalty.value = penalty
        return self.problem.solve(self.program)
