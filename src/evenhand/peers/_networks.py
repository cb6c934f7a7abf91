"""A small network trained against an adversary: scores, losses, gradients, steps."""

import itertools
import math
from typing import NamedTuple

import numpy as np
from scipy.special import expit

from evenhand.peers._base import FloatArray


class Network(NamedTuple):
    """The predictor's shape; its parameters are one flat vector.

    ``hidden`` is the number of rectified units between inputs and score; 0 for none.
    """

    n_features: int
    hidden: int = 0

    @property
    def n_parameters(self) -> int:
        """Length of the flat vector."""
        if not self.hidden:
            return self.n_features + 1
        return (self.n_features + 2) * self.hidden + 1

    @property
    def parts(self) -> list[slice]:
        """Where each layer's weights and offsets are in the flat vector."""
        first = self.n_features * self.hidden
        ends = [0, first, first + self.hidden] if self.hidden else [0]
        ends += [self.n_parameters - 1, self.n_parameters]
        return [slice(a, b) for a, b in itertools.pairwise(ends)]

    def start(self, rng: np.random.Generator, scheme: str = "he") -> FloatArray:
        """Parameters to start from: hidden units must differ.

        With ``"he"`` all else is zero; with ``"glorot"`` only the offsets are, and weights are
        uniform up to the root of six over the number of a layer's inputs and outputs.
        """
        theta = np.zeros(self.n_parameters)
        if scheme == "glorot":
            layers = [(0, self.n_features, self.hidden)] if self.hidden else []
            layers.append((2 if self.hidden else 0, self.hidden or self.n_features, 1))
            for i, n_in, n_out in layers:
                part, most = self.parts[i], math.sqrt(6 / (n_in + n_out))
                theta[part] = rng.uniform(-most, most, part.stop - part.start)
        elif self.hidden:
            first = self.n_features * self.hidden
            theta[:first] = rng.normal(0.0, math.sqrt(2 / self.n_features), first)
            last = slice(first + self.hidden, first + 2 * self.hidden)
            theta[last] = rng.normal(0.0, math.sqrt(1 / self.hidden), self.hidden)
        return theta

    def _layers(self, theta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, float]:
        d, h = self.n_features, self.hidden
        return theta[: d * h].reshape(d, h), theta[d * h :][:h], theta[-h - 1 : -1], theta[-1]

    def score(
        self, theta: FloatArray, X: FloatArray, kept: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """Score of each row and the last layer's inputs; ``kept`` are factors of hidden units."""
        if not self.hidden:
            return X @ theta[:-1] + theta[-1], X
        W, b, v, c = self._layers(theta)
        H = X @ W
        H += b
        np.maximum(H, 0.0, out=H)
        if kept is not None:
            H *= kept
        return H @ v + c, H

    def gradients(
        self,
        theta: FloatArray,
        X: FloatArray,
        H: FloatArray,
        d_scores: FloatArray,
        kept: FloatArray | None = None,
    ) -> FloatArray:
        """Gradients in all parameters, a row for each loss, from its derivatives in the scores."""
        last = np.column_stack([d_scores @ H, d_scores.sum(axis=1)])
        if not self.hidden:
            return last
        slope = (H > 0) * self._layers(theta)[2]
        if kept is not None:
            slope *= kept
        spread = (d_scores[:, None, :] * X.T).reshape(-1, len(X))
        first = (spread @ slope).reshape(len(d_scores), -1)
        return np.column_stack([first, d_scores @ slope, last])


def log_loss(score: FloatArray, label: FloatArray, weight: FloatArray) -> float:
    """Weighted mean of the log-loss of scores."""
    return float(weight @ (np.logaddexp(0.0, score) - label * score)) / len(score)


class Guess(NamedTuple):
    """The adversary at a point: its loss, the derivative in each score, the gradient in itself."""

    loss: float
    d_score: FloatArray
    gradient: FloatArray


def guess_group(
    adversary: FloatArray,
    score: FloatArray,
    sees: FloatArray,
    knows: FloatArray,
    z: FloatArray,
    weight: FloatArray,
) -> Guess:
    r"""Evaluate the adversary.

    It sees :math:`\varphi = [s\,m_1, \dots, s\,m_k]` with :math:`s = \sigma((1 + |c|)\,\text{score})`
    and guesses :math:`\hat z = \sigma(u^\top\varphi + b^\top\kappa)`.

    Parameters
    ----------
    adversary : ndarray of shape (k + l + 1,)
        u, b and c.
    score, z, weight : ndarray of shape (n_samples,)
        Scores, groups as 0 and 1, and row weights of mean 1.
    sees : ndarray of shape (k, n_samples)
        The factors m: ones, and for equalized odds also y and 1 − y.
    knows : ndarray of shape (l, n_samples)
        What it knows without the score, :math:`\kappa`: ones, and for equalized odds y.
    """  # noqa: E501
    u, b, c = adversary[: len(sees)], adversary[len(sees) : -1], adversary[-1]
    steepness = 1 + abs(c)
    s = expit(steepness * score)
    slope = u @ sees
    guess = slope * s + b @ knows
    error = weight * (expit(guess) - z) / len(z)
    d_inner = error * slope * s * (1 - s)
    gradient = np.concatenate([sees @ (error * s), knows @ error, [np.sign(c) * (d_inner @ score)]])
    return Guess(log_loss(guess, z, weight), steepness * d_inner, gradient)


class Momentum:
    """Descent with momentum 0.9."""

    def __init__(self, size: int) -> None:
        self.mean = np.zeros(size)

    def step(self, gradient: FloatArray) -> FloatArray:
        """Give what to move by, in units of the learning rate."""
        self.mean = 0.9 * self.mean + gradient
        return self.mean


class Adam:
    """Adam with its usual constants (Kingma and Ba, ICLR 2015)."""

    def __init__(self, size: int) -> None:
        self.mean, self.square, self.t = np.zeros(size), np.zeros(size), 0

    def step(self, gradient: FloatArray) -> FloatArray:
        """Give what to move by, in units of the learning rate."""
        self.t += 1
        self.mean += 0.1 * (gradient - self.mean)
        self.square += 0.001 * (gradient**2 - self.square)
        size = np.sqrt(self.square / (1 - 0.999**self.t)) + 1e-8
        return self.mean / (1 - 0.9**self.t) / size
