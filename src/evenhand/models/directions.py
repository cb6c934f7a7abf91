r"""Directions that are optimal for estimated probabilities of group and label.

If the estimates :math:`P(y, z{=}j \mid x)` are right, answering yes to x adds :math:`2p(x) - 1` to
the accuracy and :math:`a_{rj}(x) / b_{rj}` to group j's rate r, with

.. math:: a_{rj}(x) = \sum_y P(y, j \mid x)\,\big(n_r(y) - v_{rj}\, d_r(y)\big),

where n and d say whether the rate's numerator and denominator count a yes for the label y rather
than a no, v is the group's rate and b its denominator. So the most accurate rule for given rates is
a cut of :math:`2p - 1 + \sum_{rj} \psi_{rj} a_{rj} / b_{rj}`, linear in the probabilities, and the
multipliers ψ are found by walking: each grows while its group's rate is below that of all. By an
objective for which right answers are worth :math:`c_y`, :math:`c_1 p - c_0 (1 - p)` is in the place
of :math:`2p - 1`.
"""

import numpy as np
from numpy.typing import NDArray

from evenhand.core.rates import AnyRate

__all__ = ["walk_to_parity"]

FloatArray = NDArray[np.float64]

# Chosen on validation parts of Adult's training data, where more of each changes nothing. A yes is
# worth so much more than it is: rules that say it more often have rates that vary less.
WORTHS = (0.0, 0.2)
STEPS, FIRST_STEP, FASTER, SLOWER = 60, 0.01, 1.05, 0.7
EQUAL = np.ones(2)
# A smaller denominator would make a group's multiplier everything.
LEAST = 1e-9


def walk_to_parity(
    joint: FloatArray,
    y: NDArray[np.intp],
    z: NDArray[np.intp],
    weight: FloatArray | None,
    rate: AnyRate,
    worths: FloatArray = EQUAL,
) -> FloatArray:
    """Give rules from the most accurate one to equal rates, as weights of the probabilities.

    Parameters
    ----------
    joint : ndarray of shape (n_samples, 2, n_groups)
        Estimate of P(label, group | x), out of fold.
    y, z : ndarray of int of shape (n_samples,)
        True labels and groups; from ``n_groups`` on, groups that are not compared.
    weight : ndarray of shape (n_samples,) or None
        Row weights.
    rate : Rate or WorstRate
        What the groups shall share.
    worths : ndarray of shape (2,)
        What a right answer is worth for each label.

    Returns
    -------
    ndarray of shape (n_rules, 2, n_groups)
        A rule says yes where the sum of these times ``joint`` is positive.
    """
    rules = [_walk(joint, y, z, weight, rate, worth, worths) for worth in WORTHS]
    return np.concatenate(rules)


def _walk(
    joint: FloatArray, y: NDArray[np.intp], z: NDArray[np.intp], weight: FloatArray | None,
    rate: AnyRate, worth: float, worths: FloatArray,
) -> FloatArray:  # fmt: skip
    parts, n_groups = rate.components, joint.shape[2]
    effect = np.array(
        [
            [
                [((c, 1) in cells) - ((c, 0) in cells) for c in (0, 1)]
                for cells in (part.numerator, part.denominator)
            ]
            for part in parts
        ],
        dtype=np.float64,
    )  # of shape (n_rates, 2, 2): numerator or denominator, by label
    gain = np.repeat([[worth - worths[0]], [worth + worths[1]]], n_groups, axis=1)
    rules, coefficients = [], gain
    psi, step, before = np.zeros((len(parts), n_groups)), FIRST_STEP, -1.0
    cell = (z * 2 + y) * 2
    total = float(len(y) if weight is None else weight.sum())
    for _ in range(STEPS):
        rules.append(coefficients)
        yes = np.einsum("iyj,yj->i", joint, coefficients) > 0
        counts = np.bincount(cell + yes, weights=weight, minlength=4 * n_groups)
        counts = counts[: 4 * n_groups].reshape(n_groups, 2, 2).astype(np.float64)
        top, bottom = (np.stack(side) for side in zip(*(p.fractions(counts) for p in parts)))  # noqa: B905
        value = top / np.maximum(bottom, LEAST)
        whole = top.sum(axis=1) / np.maximum(bottom.sum(axis=1), LEAST)
        short = 1 - value / np.maximum(whole, LEAST)[:, None]
        most = np.abs(short).max()
        if not most > 0:
            break
        worst = float(np.min(value.min(axis=1) / np.maximum(value.max(axis=1), LEAST)))
        step *= SLOWER if worst < before else FASTER
        before = worst
        psi = psi + step * short / most
        share = psi * total / np.maximum(bottom, LEAST)
        tilt = effect[:, 0, :, None] - effect[:, 1, :, None] * value[:, None, :]
        coefficients = gain + np.einsum("rj,ryj->yj", share, tilt)
    return np.array(rules)
