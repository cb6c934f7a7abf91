r"""The coordinates a solver works in: inputs centred, and scaled or whitened, without touching X.

A solver's weights v are those of the inputs :math:`\tilde x = T^\top(x - m)`. Only vectors change,
never rows, so that every engine has it alike:

.. math::
    w = T v, \quad b = v_0 - m^\top w, \qquad
    \nabla_v = T^\top(\nabla_w - m\, \nabla_b), \quad \nabla_{v_0} = \nabla_b .

In these coordinates a descent does not depend on the units of X, and whitened it does not depend on
how the columns are mixed. The ridge term is on v: on weights of inputs of mean 0 and deviation 1.
"""

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from evenhand.core.arrays import FloatArray

METRICS = ("none", "scaled", "whitened")
# Whitening takes a matrix of columns × columns and its eigenvectors; more columns are scaled.
MOST_WHITENED = 400
# Added to the eigenvalues of the correlation matrix, whose mean is 1, so that directions in which
# the inputs hardly vary are not blown up; and how much more for each column per row, since
# eigenvalues are known only to about that.
LEAST_EIGENVALUE, NOISE = 1e-3, 1.0
# A column whose deviation is a smaller share of its size is constant but for rounding.
CONSTANT = 1e-7


class Metric(NamedTuple):
    """Means m of the inputs, and T: a matrix, or a factor of each input."""

    mean: FloatArray
    transform: FloatArray

    @classmethod
    def of(cls, moments: FloatArray, mean: FloatArray, size: FloatArray, n_rows: float) -> "Metric":
        r"""Make the metric of inputs with these second moments, means and largest values.

        .. math:: T = D^{-1} (C + \varepsilon I)^{-1/2}, \qquad \varepsilon = 10^{-3} + d / n

        with the deviations D and the correlation matrix C of d columns in n rows; T is
        :math:`D^{-1}` where ``moments`` has the mean squares only. The weight of a constant column
        is 0.
        """
        square = moments.diagonal() if moments.ndim == 2 else moments
        scale = np.sqrt(np.maximum(square - mean**2, 0.0))
        inverse = np.divide(1.0, scale, out=np.zeros_like(scale), where=scale > CONSTANT * size)
        if moments.ndim == 1:
            return cls(mean, inverse)
        correlation = (moments - np.outer(mean, mean)) * np.outer(inverse, inverse)
        values, vectors = np.linalg.eigh(correlation)
        epsilon = LEAST_EIGENVALUE + NOISE * len(mean) / n_rows
        root = np.sqrt(np.maximum(values, 0.0) + epsilon)
        return cls(mean, inverse[:, None] * ((vectors / root) @ vectors.T))

    @property
    def unused(self) -> NDArray[np.bool_]:
        """Inputs that have no weight, since they are constant or as good as that."""
        return np.asarray(~self.transform.reshape(len(self.mean), -1).any(axis=1))

    @property
    def whitened(self) -> bool:
        """Whether the inputs are uncorrelated in these coordinates, and vary by 1 at most."""
        return self.transform.ndim == 2

    def weights(self, v: FloatArray) -> FloatArray:
        """Give (w, b) of each (v, v₀); a vector may hold those of several labels."""
        V = v.reshape(-1, len(self.mean) + 1)
        W = V[:, :-1] @ self.transform.T if self.whitened else V[:, :-1] * self.transform
        return np.column_stack([W, V[:, -1] - W @ self.mean]).reshape(v.shape)

    def gradient(self, g: FloatArray) -> FloatArray:
        """Give gradients in (v, v₀) from those in (w, b); leading dimensions are free."""
        G = g.reshape(-1, len(self.mean) + 1)
        centred = G[:, :-1] - np.outer(G[:, -1], self.mean)
        V = centred @ self.transform if self.whitened else centred * self.transform
        return np.column_stack([V, G[:, -1]]).reshape(g.shape)
