"""The paper's expressions, as functions of the constants of its theorems."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand._extras import documented
from evenhand.core.arrays import FloatArray
from evenhand.core.errors import InputError, Parameter
from evenhand.core.gaps import READINGS


@dataclass(frozen=True)
class Constants:
    r"""The constants of the paper's theorems, on one problem and one run.

    Parameters
    ----------
    L1 : float
        Smoothness of :math:`L_C`; holds everywhere.
    L2 : float
        Smoothness of :math:`L_F` in w and u together, the largest found along the run.
    G : float
        Least number with :math:`\|g_F\|/G \le \|g_C\| \le G\|g_F\|` at every point of the run.
    G_C, G_F : float
        Largest norms of :math:`\nabla_w L_C` and :math:`\nabla_w L_F` found in the run's ball.
    D : float
        Radius of the ball about the optimum of :math:`L_F`, in w and u, that holds the run.
    R : float
        Radius of the ball about the optimum of :math:`L_C`, in w, that holds the run.
    """

    L1: float
    L2: float
    G: float
    G_C: float
    G_F: float
    D: float
    R: float

    @property
    def L(self) -> float:  # noqa: N802
        r""":math:`\max(L_1, L_2)`: the paper has one L for both losses."""
        return max(self.L1, self.L2)


def check_schedule(c: float, alpha: float, reading: str) -> None:
    if not 0 <= c < 0.5:
        raise InputError("exponent_out_of_range", c=Parameter("c", c))
    if not 0 < alpha <= 1:
        raise InputError("alpha_out_of_range", alpha=Parameter("alpha", alpha))
    _check_reading(reading)


def _check_reading(reading: str) -> None:
    if reading not in READINGS:
        raise InputError(
            "unknown_reading",
            reading=Parameter("reading", reading),
            readings=", ".join(map(repr, READINGS)),
        )


def fairness_bound(
    t: Any, k: Constants, *, c: float, alpha: float = 1.0, reading: str = "corrected"
) -> FloatArray:
    r"""Bound on :math:`R_F(t) = \max L_F - L_F(w_t, u_t)` for Algorithm 1 (theorem on fairness).

    With :math:`\alpha_t = \alpha t^{-c}`, steps :math:`\eta_1 = 1/2L` and
    :math:`\eta_2 = \alpha_t / 2L(1 + G^2)`, and :math:`\beta = 4LD^2(1 + G^2)`,

    .. math::
        \frac{1}{R_F(t)} \ge \frac{1}{LD^2}
            + \frac{\alpha^2}{\beta}\,\frac{(t+1)^{1-2c} - 1}{1-2c} .

    A theorem if :math:`L_F` is concave in (w, u) together and the constants hold along the run.
    Corrected: the paper solves the differential equation from 0, which gives
    :math:`t^{1-2c}` in place of :math:`(t+1)^{1-2c} - 1`; the recursion gives
    :math:`\sum_{i \le t} i^{-2c}`, which is less than the former and at least the latter.

    Parameters
    ----------
    t : array-like
        Iterations done.
    k : Constants
        The constants.
    c : float
        Exponent of the schedule, 0 ≤ c < ½.
    alpha : float, default=1.0
        Its factor, at most 1. The paper has 1.
    reading : {"corrected", "printed"}, default="corrected"
        Which form.

    Returns
    -------
    ndarray
        The bound at each t; :math:`LD^2` at t = 0.

    Examples
    --------
    >>> from evenhand.paper.theory import Constants, fairness_bound
    >>> k = Constants(L1=1, L2=1, G=1, G_C=1, G_F=1, D=1, R=1)
    >>> fairness_bound([0, 8, 80], k, c=0.0).round(3).tolist()
    [1.0, 0.5, 0.091]
    """
    check_schedule(c, alpha, reading)
    t, p = np.asarray(t, dtype=np.float64), 1 - 2 * c
    power = t**p if reading == "printed" else (t + 1) ** p - 1
    beta = 4 * k.L * k.D**2 * (1 + k.G**2)
    return np.asarray(1 / (1 / (k.L * k.D**2) + alpha**2 * power / (p * beta)))


@documented(fairness_bound.__doc__)
def fairness_iterations(
    epsilon: Any, k: Constants, *, c: float, alpha: float = 1.0, reading: str = "corrected"
) -> FloatArray:
    r"""Count the iterations T to :math:`R_F(T) \le \varepsilon` (theorem on fairness), for c < ½.

    :func:`fairness_bound` solved for t:

    .. math::
        T = \Big(1 + (1-2c)\,\frac{4LD^2(1+G^2)}{\alpha^2}
            \Big(\frac1\varepsilon - \frac{1}{LD^2}\Big)\Big)^{\frac{1}{1-2c}} - 1 .

    Printed: :math:`T = O\big((LD^2(1+G^2)(1-2c)/\varepsilon)^{1/(1-2c)}\big)`, here with the
    constant 1. :math:`c = \tfrac12` is the excluded boundary.

    Parameters
    ----------
    epsilon : array-like
        Targets, positive.
    k, c, alpha, reading

    Returns
    -------
    ndarray
        T, not rounded up; 0 where the target holds from the start.
    """
    check_schedule(c, alpha, reading)
    epsilon = np.asarray(epsilon, dtype=np.float64)
    if not (epsilon > 0).all():
        raise InputError("epsilon_not_positive", epsilon=Parameter("epsilon"))
    p, start, spread = 1 - 2 * c, k.L * k.D**2, 1 + k.G**2
    with np.errstate(over="ignore"):
        if reading == "printed":
            return np.asarray((start * spread * p / epsilon) ** (1 / p))
        inverse = np.maximum(1 / epsilon - 1 / start, 0.0)
        return np.asarray((1 + p * 4 * start * spread / alpha**2 * inverse) ** (1 / p) - 1)


@documented(fairness_bound.__doc__)
def price_contraction(delta: Any, k: Constants, *, reading: str = "corrected") -> FloatArray:
    r"""Bracket of the recursion behind the price of fairness: the loss falls only if positive.

    The proof has, while :math:`R_C(t) = L_C(w_t) - \min L_C \ge \delta`,

    .. math::
        R_C(t+1) - R_C(t) \le -\frac{R_C(t)^2}{4L(1+G^2)t^c}
            \Big(\frac{1}{R^2} - \frac{2 G\, G_C^2}{\delta^2}\Big) .

    Corrected: :math:`\langle\nabla L_C, \nabla L_F\rangle \le G\,G_C^2`, printed :math:`G_C G`; R
    about the optimum of :math:`L_C`, printed D. (The proof also drops
    :math:`\|\Pi_{g_F} g_C\|^2`, which would make the bracket smaller still.) By convexity
    :math:`R_C \le R\,G_C`, and since :math:`G \ge 1` the corrected bracket is negative for every δ
    up to that: the recursion never says that the loss falls.

    Parameters
    ----------
    delta : array-like
        Least regret assumed, positive.
    k, reading

    Returns
    -------
    ndarray
        The bracket.
    """
    _check_reading(reading)
    square = np.asarray(delta, dtype=np.float64) ** 2
    if reading == "printed":
        return np.asarray(1 / k.D**2 - 2 * k.G_C * k.G / square)
    return np.asarray(1 / k.R**2 - 2 * k.G * k.G_C**2 / square)


@documented(fairness_bound.__doc__)
def price_expression(t: Any, k: Constants, *, c: float, reading: str = "corrected") -> FloatArray:
    r"""Give the paper's expression for :math:`R_C(t) = L_C(w_t) - \min L_C` in Algorithm 1.

    .. math:: \frac{1}{\delta'(t)} = \frac{1}{LR^2} + \frac{t^{1-c}}{8LR^2(1+G^2)(1-c)}

    The paper says :math:`R_C(t) \ge \delta'(t)`. That does not follow: the recursion it comes from
    bounds :math:`R_C` from above (see :func:`price_contraction`), and :math:`1/R^2` less something
    is then replaced by :math:`1/2R^2`. Nor is it true: where :math:`L_C = \tfrac12\|w\|^2` and
    :math:`L_F = -L_C`, all assumptions hold and fairness has no price. It is kept as the paper's
    expression, to be set beside the measured price. R is about the optimum of :math:`L_C`; printed
    D.

    Parameters
    ----------
    t, k, c, reading

    Returns
    -------
    ndarray
        :math:`\delta'` at each t.
    """
    check_schedule(c, 1.0, reading)
    start = k.L * (k.D if reading == "printed" else k.R) ** 2
    power = np.asarray(t, dtype=np.float64) ** (1 - c)
    return np.asarray(1 / (1 / start + power / (8 * start * (1 + k.G**2) * (1 - c))))


@documented(fairness_bound.__doc__)
def price_of_fairness(
    epsilon: Any, k: Constants, *, c: float, delta: float = 0.0, reading: str = "corrected"
) -> FloatArray:
    r"""Give the paper's expression for the price of a fairness loss within ε of its optimum.

    :math:`\max\{\delta, \delta'(T(\varepsilon))\}`, from :func:`price_expression` and
    :func:`fairness_iterations`; not a theorem, for the reason given there. Printed:

    .. math::
        \frac{1}{\delta'} = \frac{1}{LD^2} + \frac{1}{8(1-c)^2\varepsilon}
            \Big(\frac{LD^2(1+G^2)(1-2c)}{\varepsilon}\Big)^{\frac{c}{1-2c}},

    which has put :math:`1/(1-c)` for the :math:`1-2c` that T leaves there.

    Parameters
    ----------
    epsilon : array-like
        How near the optimum of :math:`L_F`.
    k, c, reading
    delta : float, default=0.0
        How near the minimum of :math:`L_C` plain gradient descent is after as many iterations; at
        most :math:`2R\,G_C\sqrt{G}` (printed :math:`2D\sqrt{G_C G}`).

    Returns
    -------
    ndarray
        The expression at each ε.
    """
    check_schedule(c, 1.0, reading)
    printed = reading == "printed"
    most = 2 * (k.D * np.sqrt(k.G_C * k.G) if printed else k.R * k.G_C * np.sqrt(k.G))
    if not 0 <= delta <= most:
        raise InputError("delta_out_of_range", delta=Parameter("delta", delta), most=most)
    if printed:
        epsilon, start = np.asarray(epsilon, dtype=np.float64), k.L * k.D**2
        power = (start * (1 + k.G**2) * (1 - 2 * c) / epsilon) ** (c / (1 - 2 * c))
        price = 1 / (1 / start + power / (8 * (1 - c) ** 2 * epsilon))
    else:
        price = price_expression(fairness_iterations(epsilon, k, c=c), k, c=c)
    return np.maximum(delta, price)


def bregman(a: FloatArray, b: FloatArray, *, reading: str = "corrected") -> float:
    r"""Bregman divergence of :math:`\psi = \tfrac12\|\cdot\|^2`: :math:`\tfrac12\|a - b\|^2`.

    Printed: :math:`\tfrac12\|a\|^2 + \tfrac12\|b\|^2 - 2\langle a, b\rangle`, which can be
    negative.
    """
    _check_reading(reading)
    factor = 2.0 if reading == "printed" else 1.0
    return float(0.5 * (a @ a) + 0.5 * (b @ b) - factor * (a @ b))


@documented(fairness_bound.__doc__)
def agd_classification_bound(
    total: Any,
    k: Constants,
    *,
    alpha: float,
    distance: float | None = None,
    reading: str = "corrected",
) -> FloatArray:
    r"""Bound on :math:`L_C(q_t) - \min L_C` for AGD+ with the modified direction.

    What is not :math:`\nabla L_C` in the direction is noise to AGD+,
    :math:`\lambda_t = -(\alpha g_F + \Pi_{g_F} g_C)`, so that

    .. math:: L_C(q_t) - \min L_C \le \frac{\tfrac12\|w_0 - w^*\|^2}{A_t} + R\,(\alpha G_F + G_C) .

    A theorem. Corrected: the noise is at most :math:`\alpha G_F + G_C`, printed :math:`2G_F`; the
    divergence (:func:`bregman`); R over the run's ball, as it is infinite on :math:`\mathbb R^n`.
    But it never says anything: :math:`R\,G_C` alone is what convexity gives for any point of the
    ball.

    Parameters
    ----------
    total : array-like
        :math:`A_t`, the ``total`` of the run's iterations.
    k
    alpha : float
        The constant α; of a falling schedule the first.
    distance : float, optional
        :func:`bregman` of :math:`w_0` and :math:`w^*`; by default :math:`\tfrac12R^2`.
    reading

    Returns
    -------
    ndarray
        The bound at each :math:`A_t`.
    """
    _check_reading(reading)
    noise = 2 * k.G_F if reading == "printed" else alpha * k.G_F + k.G_C
    distance = 0.5 * k.R**2 if distance is None else distance
    return np.asarray(distance / np.asarray(total, dtype=np.float64) + k.R * noise)


@documented(agd_classification_bound.__doc__)
def agd_fairness_bound(
    total: Any,
    k: Constants,
    *,
    alpha: float,
    distance: float | None = None,
    reading: str = "corrected",
) -> FloatArray:
    r"""Bound on :math:`\max L_F - L_F(u_t, q_t)` for AGD+ with the modified direction.

    The direction is :math:`-\alpha(g_F + \lambda'_t)` with the noise
    :math:`\lambda'_t = -(g_C - \Pi_{g_F} g_C)/\alpha`, so for :math:`L_F` it is AGD+ with the
    weights :math:`\alpha a_t`, and

    .. math:: \max L_F - L_F(u_t, q_t) \le \frac{\tfrac12\|x_0 - x^*\|^2}{\alpha A_t}
        + \frac{D\,G_C}{\alpha}, \qquad x = (w, u) .

    A theorem for an :math:`L_F` that is concave in w, without u (u does not move by AGD+), and
    :math:`L_t \ge \alpha L_2`. Corrected: :math:`\lambda'_t` has :math:`\nabla L_C`, printed
    :math:`\nabla L_F`; the sum of the weights is :math:`\alpha A_t`, where the paper takes α into
    ψ as well and so loses it; the 2 before :math:`D\,G_C/\alpha` has no source; the divergence; D
    over the run's ball. The printed weights also need :math:`L_1 \ge 1`, which is not said.

    Parameters
    ----------
    total, k
    alpha : float
        The constant α; of a falling schedule the last.
    distance : float, optional
        :func:`bregman` of start and optimum, w and u together; by default :math:`\tfrac12D^2`.
    reading

    Returns
    -------
    ndarray
        The bound at each :math:`A_t`.
    """
    _check_reading(reading)
    total = np.asarray(total, dtype=np.float64)
    distance = 0.5 * k.D**2 if distance is None else distance
    if reading == "printed":
        return np.asarray(distance / total + 2 * k.D * k.G_C / alpha)
    return np.asarray(distance / (alpha * total) + k.D * k.G_C / alpha)
