r"""What each row adds to its own score, so that it can be judged as if it had been left out.

Weights are fitted to the labels and groups of the very rows they are judged by, and with many
columns for few rows they undo differences between the groups that are there on these rows alone.
The remedy is to fit again without each row. Of a logistic regression one step of Newton's method
does that,

.. math::
    s_i - s_i^{(-i)} \approx
        \frac{q_i\, \omega_i\, (t_i - p_i)}{1 - q_i\, \omega_i\, p_i (1 - p_i)},
    \qquad q_i = \hat x_i^\top H^{-1} \hat x_i ,

with the Hessian H of the whole loss, the weight ω that is left out, the row's target t and its
probability p.
The iterates of a fair fit are no logistic regressions, but nearly combinations of a few: of the
label, and of the groups among the rows that a rate is about, which is what they trade
(:mod:`evenhand.core.directions`). What a row adds to their scores is the same combination.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from evenhand.core.arrays import FloatArray, like, namespace
from evenhand.core.directions import group_cells, group_discriminant, label_sets
from evenhand.core.oracle import Oracle
from evenhand.core.row_sums import LEAST_SCORE, extended_products, float64_scores, leverages
from evenhand.core.rows import Block

# What a row adds is enlarged twentyfold at the most, however much it decides its own score.
LEAST_REST = 0.05


class LeftOut(NamedTuple):
    """Logistic regressions, and what it takes to take a row out of each.

    Parameters
    ----------
    weights : ndarray of shape (n_features + 1, k)
        Their weights, of the inputs as they are.
    inverses : ndarray of shape (k, n_features + 1, n_features + 1)
        Inverses of the Hessians of their losses, summed over the rows.
    target, asked : ndarray of shape (k, n_cells)
        Of each cell group × label the target, and whether its rows are fitted.
    shares : ndarray of shape (k, n_iterates)
        How much of each is in each iterate.
    whole : bool, default=False
        Whether a row is left out with all its weight. Otherwise a row of weight k is k rows, of
        which one is left out.
    """

    weights: FloatArray
    inverses: FloatArray
    target: FloatArray
    asked: FloatArray
    shares: FloatArray
    whole: bool = False

    @classmethod
    def of(
        cls, oracle: Oracle, optimum: FloatArray, iterates: FloatArray, *, whole: bool = False
    ) -> "LeftOut":
        """Fit the regressions, and find them in iterates.

        The oracle has two labels; the ``optimum`` is the label's regression, as the iterates in
        weights of the inputs as they are. The shares are by least squares: of the scores on the
        rows, whatever the intercepts.
        """
        shape = oracle.game.n_groups_all, 2
        label = np.broadcast_to([0.0, 1.0], shape).ravel()
        found = [(optimum, label, np.ones(label.size))]
        for labels in label_sets(oracle):
            for group in range(oracle.n_groups) if oracle.n_groups > 2 else [1]:
                weights = oracle.weights(group_discriminant(oracle, labels, group))
                found.append((weights, *group_cells(oracle, labels, group)))
        W, target, asked = map(np.stack, zip(*found, strict=True))
        inverses = []
        for w, rows in zip(W, asked, strict=True):
            hessian = oracle.rows.sum(hessian_sums, w, rows)
            own = _both_sides(hessian, oracle.gradient) + np.diag(oracle.ridge * oracle.total)
            inverse = np.linalg.pinv(own, hermitian=True)
            inverses.append(_both_sides(inverse, oracle.weights))
        moments = oracle.rows.sum(extended_products) / oracle.total
        covariance = moments[:-1, :-1] - np.outer(moments[-1, :-1], moments[-1, :-1])
        product = W[:, :-1] @ covariance
        shares = np.linalg.pinv(product @ W[:, :-1].T, hermitian=True) @ (product @ iterates.T[:-1])
        return cls(W.T, np.stack(inverses), target, asked, shares, whole)

    def effect(self, block: Block) -> FloatArray:
        """Find what each row of a block adds to its score by each iterate, (rows, n_iterates)."""
        xp, own = namespace(block.extra), []
        for k, inverse in enumerate(self.inverses):
            target = like(self.target[k], block.extra)[block.cell]
            weight = _weight(block if self.whole else block._replace(weight=None), self.asked[k])
            size = leverages(block, inverse) * weight
            p = _probability(block, self.weights[:, k])
            own.append(size * (target - p) / xp.maximum(1.0 - size * p * (1.0 - p), LEAST_REST))
        return xp.stack(own).T @ like(self.shares, block.extra)


def hessian_sums(block: Block, w: FloatArray, asked: FloatArray) -> FloatArray:
    """Hessian of the log-loss of some cells' rows, summed, the inputs with a 1 behind them."""
    p = _probability(block, w)
    return extended_products(block._replace(weight=_weight(block, asked) * p * (1.0 - p)))


def _both_sides(matrix: FloatArray, turn: Callable[[FloatArray], FloatArray]) -> FloatArray:
    """Turn the rows and the columns of a symmetric matrix into other coordinates."""
    return turn(turn(matrix.ravel()).reshape(matrix.shape).T.ravel()).reshape(matrix.shape)


def _probability(block: Block, w: FloatArray) -> FloatArray:
    xp = namespace(block.extra)
    return 1.0 / (1.0 + xp.exp(-xp.maximum(float64_scores(block, w), LEAST_SCORE)))


def _weight(block: Block, asked: FloatArray) -> FloatArray:
    weight = like(asked, block.extra)[block.cell]
    return weight if block.weight is None else weight * block.weight
