"""The certificate of a fitted classifier."""

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.metric import Metric
from evenhand.core.oracle import Oracle
from evenhand.models.classifier import FairClassifier
from evenhand.models.fit_rows import read_rows
from evenhand.models.training import make_oracle
from evenhand.paper.theory._optima import at_best_response, fair_optimum, minimum_loss


@dataclass(frozen=True)
class Certificate:
    r"""What a fitted classifier measures against the paper's notion of a solution.

    :math:`(\hat w, \hat u)` is an (ε, δ)-solution if :math:`L_C(\hat w) \le \min L_C + \delta` and
    :math:`L_F(\hat u, \hat w) \ge \max L_F - \varepsilon`. The classifier is one for these ε and δ.
    """

    epsilon: float
    """How far the fairness objective is from what it cannot exceed."""
    epsilon_found: float
    """How far it is from the best point found; the least ε is between the two."""
    delta: float
    r"""Price of fairness :math:`L_C(\hat w) - \min L_C`."""
    delta_uncut: float
    """The same without the chosen cut: the price of the iterate itself."""
    loss_c: float
    r""":math:`L_C(\hat w)`."""
    min_loss_c: float
    r""":math:`\min L_C`."""
    gradient_norm: float
    r"""Norm of :math:`\nabla L_C` where that was found."""
    loss_f: float
    r""":math:`L_F(\hat u, \hat w)`."""
    max_loss_f: float
    r"""What :math:`L_F` cannot exceed."""
    gap: float
    r"""The regulariser's :math:`D(\hat w)`."""
    cut: float
    """The chosen decision cut."""

    def to_frame(self) -> pd.DataFrame:
        """One row with a column for each number."""
        return pd.DataFrame([asdict(self)])

    def __str__(self) -> str:
        return (
            f"({self.epsilon:.4g}, {self.delta:.4g})-solution\n"
            f"  epsilon  {self.epsilon:.4g}: fairness objective {self.loss_f:.6f}, at most "
            f"{self.max_loss_f:.6f} (against the best point found: {self.epsilon_found:.4g})\n"
            f"  delta    {self.delta:.4g}: classification loss {self.loss_c:.6f}, at least "
            f"{self.min_loss_c:.6f} (without the cut: {self.delta_uncut:.4g})"
        )


def certificate(
    model: FairClassifier,
    X: Any,
    y: Any,
    *,
    sensitive_features: Any = None,
    sample_weight: Any = None,
) -> Certificate:
    r"""Measure ε, δ and the price of fairness of a fitted classifier.

    :math:`\hat w` is what the classifier predicts with: ``coef_`` and ``intercept_``, and the
    latter is the iterate's less the chosen cut. (With a noise column there is no intercept to take
    the cut into, so :math:`\hat w` is the iterate itself.) :math:`\hat u` is the adversary's best
    response to it. :math:`\min L_C` is found by :func:`minimum_loss` to a gradient norm of 1e-8
    and :math:`\max L_F` is bounded by :func:`fair_optimum`. All is in float64, with the losses
    that a fit of the classifier to these data minimises: its ``l2``, which holds the weights in its
    ``metric``'s coordinates, and its ``mu``.

    Parameters
    ----------
    model : FairClassifier
        A fitted classifier, or what its ``at`` gave.
    X, y, sensitive_features, sample_weight
        Data as for ``fit``: the training data, or others, on which the losses are then those.

    Returns
    -------
    Certificate
        The numbers.
    """
    if not isinstance(model, FairClassifier):
        raise TypeError(f"certificate needs a FairClassifier, not a {type(model).__name__}.")
    check_is_fitted(model)
    for what, unserved in (
        ("more than two labels", len(model.classes_) > 2),
        ("several notions, as equalized_odds is", len(model.fitted_.rate.components) > 1),
        (Parameter("group_cuts", True), len(np.shape(model.point_.cut)) > 0),
    ):
        if unserved:
            raise InputError("no_certificate_for", what=what)
    oracle, inputs = _oracle_of(model, X, y, sensitive_features, sample_weight)
    point, fit = model.point_, model.fitted_
    uncut = model.trajectory_.iterates[point.iterate]
    last = uncut[-1] if fit.noise else fit.sign * model.intercept_[0]
    w = np.append(fit.sign * model.coef_[0, inputs], last)
    if oracle.metric is not None:
        w, uncut = (_coordinates(oracle.metric, given) for given in (w, uncut))

    least = minimum_loss(oracle)
    here, _ = at_best_response(oracle, w)
    fair = fair_optimum(oracle, [w, least.w])
    loss_uncut = oracle.evaluate(uncut, np.zeros(oracle.n_adversary)).loss_c
    return Certificate(
        epsilon=fair.bound - here.loss_w,
        epsilon_found=max(fair.value, here.loss_w) - here.loss_w,
        delta=here.loss_c - least.loss,
        delta_uncut=loss_uncut - least.loss,
        loss_c=here.loss_c,
        min_loss_c=least.loss,
        gradient_norm=least.gradient_norm,
        loss_f=here.loss_w,
        max_loss_f=fair.bound,
        gap=here.gap,
        cut=point.cut,
    )


def _oracle_of(
    model: FairClassifier, X: Any, y: Any, sensitive_features: Any, sample_weight: Any
) -> tuple[Oracle, NDArray[np.intp]]:
    """Make the oracle a fit of the model on these data would have, in float64."""
    settings = model.settings()
    rows, _ = read_rows(
        model, settings, X, y, sensitive_features, sample_weight, reset=False, dtype=(np.float64,)
    )
    for name, given, fitted in (
        ("labels", rows.classes, model.classes_),
        ("groups", rows.groups, model.groups_),
    ):
        if list(given) != list(fitted):
            raise InputError(
                "other_values_than_fitted", name=name, given=list(given), fitted=list(fitted)
            )
    return make_oracle(rows, settings), rows.inputs


def _coordinates(metric: Metric, w: FloatArray) -> FloatArray:
    """Give the (v, v₀) that scores the metric's rows as (w, b) does; 0 for a constant column."""
    # T = D⁻¹R: divided by their diagonal, rows of columns in any units are alike in size.
    T = metric.transform
    size = T.diagonal() if metric.whitened else T
    v = np.divide(w[:-1], size, out=np.zeros_like(size), where=size > 0)
    if metric.whitened:
        rows = np.divide(T, size[:, None], out=np.zeros_like(T), where=size[:, None] > 0)
        v = np.linalg.lstsq(rows, v, rcond=None)[0]
    return np.append(v, w[-1] + metric.mean @ w[:-1])
