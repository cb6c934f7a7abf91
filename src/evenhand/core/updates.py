r"""Update rules and schedules: pure functions of gradients and of the iteration.

A rule gives the direction d of the step :math:`w \leftarrow w - \eta d`, which goes down the
classification loss (gradient :math:`g_C`) and up the fairness objective (gradient :math:`g_F`).
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from evenhand.core.arrays import FloatArray

Rule = Callable[[FloatArray, FloatArray, float], FloatArray]
Schedule = Callable[[int], float]


def normal(grad_c: FloatArray, grad_f: FloatArray, alpha: float) -> FloatArray:
    r""":math:`d = g_C - \alpha g_F`; of several notions, with a row each, all are added."""
    return grad_c - alpha * (grad_f.sum(axis=0) if grad_f.ndim == 2 else grad_f)


def modified(grad_c: FloatArray, grad_f: FloatArray, alpha: float) -> FloatArray:
    r""":math:`d = g_C - \alpha g_F - \Pi_{g_F} g_C`, with :math:`\Pi_v u = \frac{\langle u, v\rangle}{\langle v, v\rangle} v`.

    The step can no longer undo fairness for the sake of accuracy:
    :math:`\langle g_F, d\rangle = -\alpha\|g_F\|^2` whatever :math:`g_C` is. Where :math:`g_F` is 0
    nothing is projected.

    Of several notions, with a gradient :math:`g_k` in each row,

    .. math:: d = g_C - P g_C - v, \qquad
        \langle g_k, v\rangle = \alpha\|g_k\|^2 \ \text{for all } k,

    P being the projection on the span of the :math:`g_k`, and v in it: no notion is made worse by
    another. Where the :math:`g_k` nearly depend on one another such a v is long or does not exist;
    the Gram matrix's pseudo-inverse gives the nearest, and :math:`\|v\|` is at most
    :math:`\alpha\sum_k\|g_k\|`.
    """  # noqa: E501
    if grad_f.ndim == 2:
        return _jointly(grad_c, grad_f, alpha)
    size = np.abs(grad_f).max(initial=0.0)
    if not size > 0:
        return normal(grad_c, grad_f, alpha)
    unit = grad_f / size  # so that the squares below neither vanish nor overflow
    along = (grad_c @ unit) / (unit @ unit)
    return grad_c - (along + alpha * size) * unit


def conflict(grad_c: FloatArray, grad_f: FloatArray, alpha: float) -> FloatArray:
    r"""Modify only where the gradients disagree, :math:`d = g_C - \alpha g_F - [\langle g_C, g_F\rangle > 0]\,\Pi_{g_F} g_C`.

    Going down :math:`g_C` lowers the fairness objective where the inner product is positive;
    elsewhere it raises it, and nothing need be removed. Of several notions those with a positive
    one are taken together.
    """  # noqa: E501
    rows = np.atleast_2d(grad_f)
    against = rows @ grad_c > 0
    if not against.any():
        return normal(grad_c, grad_f, alpha)
    if grad_f.ndim == 1:
        return modified(grad_c, grad_f, alpha)
    others = rows[~against].sum(axis=0)
    return modified(grad_c, rows[against], alpha) - alpha * others


def _jointly(grad_c: FloatArray, grad_f: FloatArray, alpha: float) -> FloatArray:
    """Apply the modified rule to several fairness gradients."""
    size = np.linalg.norm(grad_f, axis=1)
    kept = size > 0
    if not kept.any():
        return grad_c
    # Unit vectors: notions differ in scale, and a pseudo-inverse must not take that for dependence.
    units, size = grad_f[kept] / size[kept, None], size[kept]
    inverse = np.linalg.pinv(units @ units.T, rcond=1e-8, hermitian=True)
    v = (alpha * size) @ inverse @ units
    most, length = alpha * size.sum(), np.linalg.norm(v)
    if length > most:
        v *= most / length
    return grad_c - (units @ grad_c) @ inverse @ units - v


RULES: dict[str, Rule] = {"normal": normal, "modified": modified, "conflict": conflict}
"""Update rules by name."""


def power_schedule(alpha: float, power: float) -> Schedule:
    r""":math:`\alpha_t = \alpha\, t^{-p}`.

    The paper's Algorithm 1 prints α = 1, p = ½; its experiments use α = 0.1, p = ½; its theorems
    need p < ½.

    Examples
    --------
    >>> from evenhand.core.updates import power_schedule
    >>> power_schedule(0.1, 0.5)(4)
    0.05
    """

    def schedule(t: int) -> Any:
        return alpha * t**-power

    return schedule
