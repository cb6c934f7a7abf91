r"""Update rules and schedules: pure functions of gradients and of the iteration.

A rule gives the direction d of the step :math:`w \leftarrow w - \eta d`, which goes down the
classification loss (gradient :math:`g_C`) and up the fairness objective (gradient :math:`g_F`).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["RULES", "modified", "normal", "power_schedule"]

FloatArray = NDArray[np.float64]
Rule = Callable[[FloatArray, FloatArray, float], FloatArray]
Schedule = Callable[[int], float]


def normal(grad_c: FloatArray, grad_f: FloatArray, alpha: float) -> FloatArray:
    r""":math:`d = g_C - \alpha g_F`."""
    return grad_c - alpha * grad_f


def modified(grad_c: FloatArray, grad_f: FloatArray, alpha: float) -> FloatArray:
    r""":math:`d = g_C - \alpha g_F - \Pi_{g_F} g_C`, with :math:`\Pi_v u = \frac{\langle u, v\rangle}{\langle v, v\rangle} v`.

    The step can no longer undo fairness for the sake of accuracy:
    :math:`\langle g_F, d\rangle = -\alpha\|g_F\|^2` whatever :math:`g_C` is. Where :math:`g_F` is 0
    nothing is projected.
    """  # noqa: E501
    size = np.abs(grad_f).max(initial=0.0)
    if not size > 0:
        return normal(grad_c, grad_f, alpha)
    unit = grad_f / size  # so that the squares below neither vanish nor overflow
    along = (grad_c @ unit) / (unit @ unit)
    return grad_c - (along + alpha * size) * unit


RULES: dict[str, Rule] = {"normal": normal, "modified": modified}
"""Update rules by name."""


def power_schedule(alpha: float, power: float) -> Schedule:
    r""":math:`\alpha_t = \alpha\, t^{-p}`.

    The paper's Algorithm 1 prints α = 1, p = ½; its experiments use α = 0.1, p = ½; its theorems
    need p < ½.

    Examples
    --------
    >>> from evenhand.updates import power_schedule
    >>> power_schedule(0.1, 0.5)(4)
    0.05
    """

    def schedule(t: int) -> Any:
        return alpha * t**-power

    return schedule
