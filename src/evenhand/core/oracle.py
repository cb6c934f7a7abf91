r"""Everything a solver needs from the data at a point (w, u), in one pass over the rows.

:func:`evenhand.core.row_sums.row_sums` does the mathematics of one block of rows and an engine adds
up the blocks; :class:`Oracle` turns the total into :class:`Moments`: losses, gradients and counts.
A solver sees moments, never rows.
"""

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from scipy.sparse.linalg import LinearOperator, eigsh

from evenhand.core.arrays import FloatArray
from evenhand.core.gaps import CellSums
from evenhand.core.metric import MOST_WHITENED, Metric
from evenhand.core.notions import AnyNotion
from evenhand.core.row_sums import (
    Game,
    Guess,
    Recode,
    Sums,
    cell_sums,
    column_size,
    curvature_product,
    guess_one_of_many,
    guess_one_of_two,
    guess_value,
    product_sums,
    row_sums,
    square_sums,
)
from evenhand.core.rows import Rows


class Moments(NamedTuple):
    """The problem at a point (w, u). Losses of several notions are added up."""

    loss_c: float
    loss_w: float
    loss_u: float
    grad_c: FloatArray
    grad_f: FloatArray
    """Gradient of what w ascends; of several notions a row each."""
    grad_u: FloatArray
    counts: FloatArray
    """Weight per group × label × prediction at the cut 0, shape (groups, labels, labels)."""
    gap: float
    """Size of the regulariser's D(w); of several notions the largest."""
    smoothness_u: float
    """Smoothness of the adversary's loss in u."""
    scale: float
    """Standard deviation of the scores, for the adversary's features at the next point."""
    steepness: float
    """Mean squared slope of the adversary's guess in the score, for the next step's smoothness."""


def _largest_eigenvalue(matrix: FloatArray) -> float:
    """Largest eigenvalue of a Gram matrix: infinite if it overflowed, else at most the trace."""
    if not np.isfinite(matrix).all():
        return np.inf
    try:
        return float(np.linalg.eigvalsh(matrix)[-1])
    except np.linalg.LinAlgError:
        return float(np.trace(matrix))


class Oracle:
    r"""The moments of one problem: data, notion, reading and their constants.

    Parameters
    ----------
    rows : Rows
        The rows, wherever an engine has them. Groups and labels are numbers from 0.
    notion : Notion or Joint
        What is to be equal between the groups.
    n_groups : int
        How many groups are compared; rows whose group has this number are fitted, but belong to no
        group.
    n_labels : int, default=2
        How many labels there are.
    quantity : bool, default=False
        Whether the adversary guesses a number, whose bins are the groups, instead of the group.
    reading : {"corrected", "printed"}, default="corrected"
        Which of the notion's gaps is regularised. In the printed reading the adversary sees raw
        scores and the ridge term holds every weight.
    adversary_sign : {+1, -1}, optional
        +1: w makes the adversary's task harder; −1: easier, as printed. Follows ``reading``.
    mu, l2 : float
        Strength :math:`\mu` of the regulariser, in units of the classification loss's curvature
        and for each independent difference of groups, and ridge :math:`\lambda`.
    penalize_extra : bool, default=False
        Whether the weight of η is in the ridge term.
    metric : {"none", "scaled", "whitened"}, default="none"
        The coordinates of w: :class:`evenhand.core.metric.Metric`. :meth:`weights` gives the
        weights of the inputs as they are. Needs an extra column of ones.

    Attributes
    ----------
    rows : Rows
        The rows.
    smoothness : float
        :math:`L_1 = \sigma_{\max}(\hat X)^2/(4N) + \lambda`, by Lanczos with 2% to spare. Of more
        than two labels 4 becomes 2.
    n_weights : int
        Length of w: ``n_features + 1``, of more than two labels that many for each.
    column_size : ndarray of shape (n_features + 1,)
        Largest absolute value of each input.
    column_scale : ndarray of shape (n_features,)
        Standard deviation of each input; 1/2 for a column of zeros and ones.
    kappas : list of float
        Factor of each notion's regulariser, :math:`\mu (k - 1) L_1 / \text{scale}` of k groups.
    n_groups : int
        How many groups are compared.
    asked : ndarray
        Weight of the rows about which each notion's adversary is asked.
    """

    def __init__(
        self,
        rows: Rows,
        *,
        notion: AnyNotion,
        n_groups: int,
        n_labels: int = 2,
        quantity: bool = False,
        reading: str = "corrected",
        adversary_sign: int | None = None,
        mu: float = 10.0,
        l2: float = 1e-4,
        penalize_extra: bool = False,
        metric: str = "none",
    ) -> None:
        printed, components = reading == "printed", notion.components
        self.notion = notion
        self.gaps = [component.gaps[reading] for component in components]
        self.adversary_sign = adversary_sign or (-1 if printed else 1)
        self.scaled = not printed
        self.rows = rows
        self.n_groups = k = n_groups
        # Of k groups, k - 1 differences are independent; each counts as the one of two groups does.
        mu *= k - 1
        self.mu = mu * len(components)
        if quantity:
            guess = Guess(guess_value, 1, 1.0)
        elif k == 2:
            guess = Guess(guess_one_of_two, 1, 0.25)
        else:
            guess = Guess(guess_one_of_many, k - 1, 0.5)
        pairs = zip(components, self.gaps, strict=True)
        soft = tuple(sorted({component.favourable for component, gap in pairs if gap.soft}))
        cell_totals = self.rows.sum(cell_sums, k + 1, n_labels)
        self.total = float(cell_totals[..., 0].sum())
        self.game = Game(components, guess, soft, k, k + bool(cell_totals[k, :, 0].any()), n_labels)
        self.recode: Recode | None = None
        self.n_columns = self.rows.n_features + 1
        self.n_weights = self.game.outputs * self.n_columns
        self.n_adversary = guess.n_outputs * sum(component.n_features for component in components)
        ridge = np.full(self.n_columns, float(l2))
        if not (printed or penalize_extra):
            ridge[-1] = 0.0
        self.ridge = np.tile(ridge, self.game.outputs)

        # What never changes: the cells of each notion's view, with the inputs times the derivatives
        # of its label's score, less the mean of all labels' scores, in the scores.
        self.cells = [
            self._one_label(cell_totals[:k], component.favourable) for component in components
        ]
        self.asked = np.array(
            [
                cells.weight[:, list(component.labels)].sum()
                for cells, component in zip(self.cells, components, strict=True)
            ]
        )
        self.column_size = self.rows.reduce(np.maximum, column_size)
        mean = cell_totals[..., 1:-1].sum(axis=(0, 1)) / self.total
        self.column_scale = self._column_scale(mean)
        self.metric = self._make_metric(metric, mean)
        if self.metric is not None:
            self.cells = [c._replace(vector=self.metric.gradient(c.vector)) for c in self.cells]
        self.smoothness = 1.02 * self._curvature() + l2
        scales = [
            gap.scale(self._at_zero(cells) if gap.soft else cells)
            for gap, cells in zip(self.gaps, self.cells, strict=True)
        ]
        # Groups that do not differ leave nothing to regularise.
        self.kappas = [mu * self.smoothness / scale if scale > 0 else 0.0 for scale in scales]

    def _make_metric(self, name: str, mean: FloatArray) -> Metric | None:
        """Make the solver's coordinates; whitening is for some hundreds of columns."""
        if name == "none":
            return None
        whiten = name == "whitened" and len(mean) <= MOST_WHITENED
        moments = self.rows.sum(product_sums if whiten else square_sums) / self.total
        return Metric.of(moments, mean, self.column_size[:-1], self.total)

    def weights(self, v: FloatArray) -> FloatArray:
        """Weights of the inputs as they are from a solver's."""
        return v if self.metric is None else self.metric.weights(v)

    def gradient(self, g: FloatArray) -> FloatArray:
        """Gradients in a solver's weights from those in weights of the inputs as they are."""
        return g if self.metric is None else self.metric.gradient(g)

    def _one_label(self, sums: FloatArray, c: int) -> CellSums:
        """Give the sums over cells group × label for one label against all the others."""
        labels, sign = self.game.labels, np.ones(1)
        if labels > 2:
            both = np.stack([np.delete(sums, c, axis=1).sum(axis=1), sums[:, c]], axis=1)
            sums, sign = both, (np.arange(labels) == c) - 1 / labels
        vector = np.kron(sign, sums[..., 1:])
        return CellSums(sums[..., 0], sums[..., 0], vector)

    def _at_zero(self, cells: CellSums) -> CellSums:
        """Soft sums at w = 0, where f = 1/K and f' = 1/K of the fixed derivatives, 1/4 of one."""
        f = 1 / self.game.labels
        slope = f if self.game.labels > 2 else f * (1 - f)
        return CellSums(cells.weight, cells.weight * f, cells.vector * slope)

    def _column_scale(self, mean: FloatArray) -> FloatArray:
        """Find each input's standard deviation; 1/2 for zeros and ones, 0 for a constant."""
        mean_square = self.rows.sum(square_sums) / self.total
        scale = np.sqrt(np.maximum(mean_square - mean**2, 0.0))
        size = self.column_size[:-1]
        # However rare its ones are, an indicator is on the scale of the others.
        scale[np.isclose(mean_square, mean, rtol=1e-9) & (size == 1)] = 0.5
        scale[scale <= 1e-6 * size] = 0.0
        return scale

    def _curvature(self) -> float:
        r""":math:`\lambda_{\max}(\hat X^\top \Omega \hat X) / 4N`, of many labels over 2N."""
        hessian = 4 if self.game.labels == 2 else 2
        if self.metric is not None and self.metric.whitened:
            return 1 / hessian

        def product(V: FloatArray) -> FloatArray:
            W = V if self.metric is None else self.metric.weights(V.T).T
            image = self.rows.sum(curvature_product, W) / (hessian * self.total)
            return image if self.metric is None else self.metric.gradient(image.T).T

        n = self.n_columns
        if n <= 8:
            return float(np.linalg.eigvalsh(product(np.eye(n)))[-1])
        operator = LinearOperator(
            (n, n), matvec=lambda v: product(v.reshape(n, 1))[:, 0], dtype=np.float64
        )
        # A fixed start keeps a fit deterministic; 1% is enough for a step size.
        start = np.random.default_rng(0).standard_normal(n)
        return float(eigsh(operator, k=1, ncv=8, tol=1e-2, v0=start, return_eigenvectors=False)[0])

    def smoothness_at(self, alpha: float, steepness: float = 0.0) -> float:
        r"""Smoothness of the combined direction, :math:`L_t = L_1 (1 + \alpha_t (\mu + \beta))`.

        :math:`\beta`, the steepness, is the mean of :math:`(u^\top \varphi')^2`: the adversary's
        log-loss has a curvature of about :math:`\beta L_1` in w. It is small except where scores
        have nearly become the same for everybody, and there steps without it diverge.
        """
        return self.smoothness * (1 + alpha * (self.mu + steepness))

    def sums(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Sums:
        """One pass over the rows at (w, u)."""
        sums = self.rows.sum(row_sums, self.weights(w), u, scale, self.game, self.recode)
        if self.metric is None:
            return sums
        return replace(sums, x_r=self.metric.gradient(sums.x_r))

    def evaluate(self, w: FloatArray, u: FloatArray, scale: float = 1.0) -> Moments:
        """Losses, gradients and counts at (w, u).

        Parameters
        ----------
        w : ndarray of shape (n_weights,)
            Weights, of many labels one label after the other; the extra column's is the last.
        u : ndarray of shape (n_adversary,)
            The adversary's weights.
        scale : float, default=1.0
            Size of the scores, a constant in differentiation: ``Moments.scale`` of the previous
            point. The printed reading takes 1.
        """
        # A diverging run may overflow; whoever asked sees it in the moments.
        with np.errstate(over="ignore", invalid="ignore"):
            return self._evaluate(w, u, scale if self.scaled else 1.0)

    def _evaluate(self, w: FloatArray, u: FloatArray, scale: float) -> Moments:
        sums, N, game = self.sums(w, u, scale), self.total, self.game
        notions, guess = game.notions, game.guess
        K, n = len(notions), self.n_weights
        x_r = sums.x_r[: game.outputs * (1 + K)].reshape(1 + K, n)
        soft_vector = sums.x_r[game.outputs * (1 + K) :].reshape(-1, game.groups, 2, n)
        soft_value = sums.soft.reshape(-1, game.groups, 2)
        penalties = []
        for notion, gap, cells in zip(notions, self.gaps, self.cells, strict=True):
            if gap.soft:
                i = game.soft.index(notion.favourable)
                cells = CellSums(cells.weight, soft_value[i], soft_vector[i])
            penalties.append(gap(w, cells))
        penalty, kappa = np.array([p for p, _ in penalties]), np.array(self.kappas)
        adversary = sums.loss_a / self.asked
        grad_f = (self.adversary_sign / self.asked)[:, None] * x_r[1:]
        grad_f -= kappa[:, None] * np.array([g for _, g in penalties])
        sizes = [notion.n_features for notion in notions]
        mean, square = sums.score[:2] / N
        return Moments(
            loss_c=float(sums.loss_c / N + 0.5 * (self.ridge @ w**2)),
            loss_w=float(self.adversary_sign * adversary.sum() - kappa @ penalty),
            loss_u=-float(adversary.sum()),
            grad_c=x_r[0] / N + self.ridge * w,
            grad_f=grad_f[0] if K == 1 else grad_f,
            grad_u=-sums.phi_r / np.repeat(self.asked, np.multiply(sizes, guess.n_outputs)),
            counts=sums.counts.reshape(game.n_groups_all, game.labels, game.labels),
            gap=float(np.sqrt(2 * penalty.max())),
            smoothness_u=guess.curvature * max(map(_largest_eigenvalue, self.grams(sums))),
            scale=max(float(np.sqrt(max(square - mean**2, 0.0))), 1e-3),
            # In units of the classification loss's curvature, which the smoothness is. Of many
            # labels that is twice as large, as is the square of the log-odds' slope.
            steepness=float((sums.score[2:] / self.asked).sum()) * 4 * guess.curvature,
        )

    def grams(self, sums: Sums) -> list[FloatArray]:
        """Gram matrix of each notion's features, per row asked about."""
        sizes, flat = [notion.n_features for notion in self.game.notions], sums.phi_phi
        ends = np.cumsum(np.square(sizes)).tolist()
        return [
            flat[end - n * n : end].reshape(n, n) / asked
            for end, n, asked in zip(ends, sizes, self.asked, strict=True)
        ]
