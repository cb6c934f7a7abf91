"""How AIF360's ``MetaFairClassifier`` estimates and searches, for comparisons with it."""

from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from evenhand.core.rates import Rate
from evenhand.models.inputs import CodedRows
from evenhand.peers._base import FloatArray

# Label and group of the cells in the order of their numbers, and what their probabilities add up to
_CELLS = np.array([[-1.0, 0.0], [1.0, 0.0], [-1.0, 1.0], [1.0, 1.0]])
_Y = np.array([0.0, 1.0, 0.0, 1.0])  # P[Y = 1 | x]
_Z = np.array([[1.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 1.0]])  # P[Z = j | x]
_FALSE = _Z * (1 - _Y)  # P[Y = 0, Z = j | x]
_STEP, _WIDTH, _POINTS, _STARTS, _ITERATIONS, _SMOOTH = 0.1, 0.01, 20, 9, 49, 0.01
SLACK = 0.2
"""A rule is kept if its measured ratio reaches τ less this."""


class JointGaussian(NamedTuple):
    """One Gaussian for inputs, label and group; it gives the cells' probabilities at an input."""

    mean: FloatArray
    covariance: FloatArray
    precision: FloatArray

    @classmethod
    def of(cls, rows: CodedRows) -> "JointGaussian":
        """Take the rows' means and covariances."""
        V = np.column_stack([rows.X, 2 * rows.y - 1, rows.z])
        covariance = np.cov(V, rowvar=False, aweights=rows.weight)
        mean = np.average(V, axis=0, weights=rows.weight)
        return cls(mean, covariance, np.linalg.pinv(covariance, hermitian=True))

    def posterior(self, X: FloatArray) -> FloatArray:
        """Probability of each cell: densities at its label and group, over their sum."""
        n, cell = X.shape[1], _CELLS - self.mean[-2:]
        linear = (X - self.mean[:n]) @ self.precision[:n, n:] @ cell.T
        own = np.einsum("ci,ij,cj->c", cell, self.precision[n:, n:], cell)
        return np.asarray(softmax(-linear - own / 2, axis=1))

    def draw(self, random: np.random.RandomState) -> FloatArray:
        """Draw inputs."""
        mean, covariance = self.mean[:-2], self.covariance[:-2, :-2]
        return random.multivariate_normal(mean, covariance, _POINTS, check_valid="ignore")


def combinations(
    gaussian: JointGaussian, rate: Rate, share: float, tau: float, random: Any
) -> list[FloatArray]:
    r"""Give the combination of each interval :math:`[a, (a + 0.01) / \tau]`, a = 0, 0.1 and so on.

    A row is positive where the combination of its cells' probabilities is above one half. ``rate``
    is the selection or the false discovery rate, ``share`` that of group 1 among the rows.
    """
    found = []
    for a in np.arange(0, tau - 1e-9, _STEP):
        b, parity = min((a + _WIDTH) / tau, 1.0), rate.name == "selection_rate"
        slopes = np.vstack([_FALSE - a * _Z, b * _Z - _FALSE])
        if parity:
            slopes = _Z / np.array([[1 - share], [share]])
        points = gaussian.posterior(gaussian.draw(random))
        m = _descend(points @ _Y - 0.5, points @ slopes.T, (a, b) if parity else None)
        found.append(_Y + m @ slopes)
    return found


def _descend(
    base: FloatArray, features: FloatArray, ends: tuple[float, float] | None
) -> FloatArray:
    """Minimise the mean of |t| with steps 1/k; parity adds a term in the multipliers m.

    The answer is the last iterate from the start on whose way the least value was met.
    """
    least, answer, (a, b) = np.inf, np.zeros(features.shape[1]), ends or (0.0, 0.0)
    for i in range(1, _STARTS + 1):
        m, met = np.full(features.shape[1], float(i - 5 if ends else i)), False
        for k in range(1, _ITERATIONS + 1):
            t = base + features @ m
            gradient = (t / np.hypot(t, _SMOOTH)) @ features / len(t)
            m = m - (gradient + (b - a) / 2 * (1 + m / np.hypot(m, _SMOOTH)) - b) / k
            value = np.abs(base + features @ m).mean() + (b - a) * np.maximum(m, 0).sum()
            if value - b * m.sum() < least:
                least, met = value - b * m.sum(), True
        answer = m if met else answer
    return answer
