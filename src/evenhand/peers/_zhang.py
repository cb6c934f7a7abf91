r"""Adversarial debiasing of Zhang, Lemoine and Mitchell.

A predictor with parameters W is trained against an adversary that guesses a row's group from the
predictor's score. One step moves the predictor by

.. math::
    W \leftarrow W - \eta\,\big(\nabla L_P - \Pi_{\nabla L_A}\nabla L_P - \alpha \nabla L_A\big),

:math:`L_P` being the predictor's loss, :math:`L_A` the adversary's, both gradients those in W.
"""

import math
from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit

from evenhand._sklearn import Interval, StrOptions
from evenhand.core.errors import Parameter
from evenhand.core.updates import RULES
from evenhand.models.inputs import CodedRows, check_scales
from evenhand.models.settings import FitWarning, warn
from evenhand.peers._base import CONSTRAINTS, FloatArray, ScorePeer
from evenhand.peers._docs import peer_docs
from evenhand.peers._networks import Adam, Momentum, Network, guess_group

# A weight this large is going nowhere, and its products with inputs may overflow.
DIVERGED_WEIGHT = 1e50


OPTIMIZERS: dict[str, type[Adam] | type[Momentum]] = {"adam": Adam, "sgd": Momentum}
ALPHA_SCHEDULES: dict[str, Callable[[int], float]] = {"constant": lambda t: 1.0, "sqrt": math.sqrt}
# Factor of the learning rate at step t of n.
RATE_SCHEDULES: dict[str, Callable[[int, int], float]] = {
    "constant": lambda t, n: 1.0,
    "cosine": lambda t, n: 0.5 * (1 + math.cos(math.pi * (t - 1) / n)),
    "inverse": lambda t, n: 1 / t,
    "stairs": lambda t, n: 0.96 ** ((t - 1) // 1000),
}
NOTIONS = {
    "demographic_parity": "demographic_parity",
    "statistical_parity": "demographic_parity",
    "equalized_odds": "equalized_odds",
    "equal_opportunity": "equal_opportunity",
    "true_positive_rate": "equal_opportunity",
}


def _batches(n: int, size: int, n_steps: int, rng: np.random.Generator) -> Iterator[Any]:
    """Index sets of nearly equal size, a new order of the rows each epoch."""
    per_epoch = math.ceil(n / size)
    bounds = np.linspace(0, n, per_epoch + 1).astype(int)
    for t in range(n_steps):
        i = t % per_epoch
        if i == 0:
            order = rng.permutation(n)
        yield order[bounds[i] : bounds[i + 1]]


def _column_scale(X: FloatArray) -> FloatArray:
    """Give each column's standard deviation; 1/2 for an indicator, however rare its ones are."""
    scale = X.std(axis=0)
    indicator = ((X == 0) | (X == 1)).all(axis=0) & (scale > 0)
    return np.where(indicator, 0.5, scale)


@dataclass(eq=False, repr=False)
@peer_docs
class ZhangClassifier(ScorePeer):
    r"""Adversarial debiasing with the projected update.

    The predictor, linear or with one hidden layer, learns y; the adversary
    :math:`\hat z = \sigma(u^\top\varphi + b)` learns the group from
    :math:`s = \sigma((1 + |c|)\,\text{score})`:

    - ``"demographic_parity"``: :math:`\varphi = [s]`;
    - ``"equalized_odds"``: :math:`\varphi = [s,\ s y,\ s (1 - y)]`, and b is
      :math:`b_0 + b_1 y`;
    - ``"equal_opportunity"``: :math:`\varphi = [s]`, on rows with y = 1 only.

    Each step is on a batch of rows: the adversary descends :math:`L_A` and the predictor goes along

    .. math:: d = \nabla L_P - \Pi_{\nabla L_A}\nabla L_P - \alpha\nabla L_A, \qquad
        \langle d, \nabla L_A\rangle = -\alpha\|\nabla L_A\|^2,

    the projection being over the vector of all parameters of all layers. The adversary compares
    mean probabilities, not answers, so that a large α need not give the highest rate. The columns
    of X shall have similar scales. Each ``fit`` trains afresh.

    The paper prints the adversary for equalized odds with one b. What y alone tells about the group
    then passes through the score's features, and the predictor is pushed past equal odds to hide it
    (on Adult the ratio of true positive rates falls as α grows). With :math:`b_1` it does not.

    Parameters
    ----------
    notion : {"demographic_parity", "equalized_odds", "equal_opportunity"}
        What is to be equal between the groups. ``"statistical_parity"`` is the first and
        ``"true_positive_rate"`` the last by another name.
    alpha : float, default=0.3
        Weight of the adversary.
    alpha_schedule : {"constant", "sqrt"}, default="constant"
        ``"sqrt"``: :math:`\alpha\sqrt t` at step t, which the paper pairs with the learning rate
        :math:`\eta/t` (``rate_schedule="inverse"``).
    projection : {True, False, "layers"}, default=True
        Without it :math:`d = \nabla L_P - \alpha\nabla L_A`; with ``"layers"`` each layer's weights
        and offsets are projected by themselves.
    label_intercept : bool, default=True
        For equalized odds, whether b has :math:`b_1`; the paper prints it without.
    hidden : int, optional
        Units of the hidden layer, rectified; None or 0 for a linear predictor.
    dropout : float, default=0.0
        Share of hidden units that each step leaves out, drawn anew for each row.
    init : {"he", "glorot"}, default="he"
        How hidden units start; with ``"glorot"`` the last layer and the adversary do not start at
        zero.
    epochs : int, default=40
        Passes over the rows.
    min_steps : int, default=2000
        Steps to take at least, so that small tables are trained as well: more epochs then.
    batch_size : int, default=256
        Rows in a batch, at most.
    learning_rate, adversary_learning_rate : float, default=0.01, 0.1
        Steps of the predictor and of the adversary, which must be quick enough to follow.
    rate_schedule : {"cosine", "constant", "inverse", "stairs"}, default="cosine"
        How both learning rates go down: to 0 along half a cosine, not at all, as 1/t, or by 4%
        every 1,000 steps.
    optimizer : {"adam", "sgd"}, default="adam"
        What turns directions into steps; ``"sgd"`` has momentum 0.9.
    l2 : float, default=1e-4
        Ridge in :math:`L_P` on all parameters but the score's intercept.
    random_state : int, Generator or None, default=None
        Seed of the order of rows and of the hidden layer's start.

    Attributes
    ----------
    theta_ : ndarray
        All parameters of the predictor, flat.
    adversary_ : ndarray
        u, b and c.
    coef_, intercept_ : ndarray
        Of a linear predictor.
    n_iter_ : int
        Steps taken.

    References
    ----------
    B. H. Zhang, B. Lemoine, M. Mitchell, "Mitigating Unwanted Biases with Adversarial Learning",
    AIES 2018.

    Examples
    --------
    >>> import numpy as np
    >>> from evenhand.peers import ZhangClassifier
    >>> rng = np.random.default_rng(0)
    >>> z = rng.integers(2, size=500)
    >>> X = rng.normal(size=(500, 2)) + np.outer(z, [1, 0])
    >>> y = X.sum(axis=1) + rng.normal(size=500) > 0.5
    >>> fair = ZhangClassifier(random_state=0).fit(X, y, sensitive_features=z)
    >>> bool(abs(fair.coef_[0, 0]) < abs(fair.coef_[0, 1]) / 2)
    True
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **CONSTRAINTS,
        "notion": [StrOptions(set(NOTIONS))],
        "alpha": [Interval(Real, 0, None, closed="left")],
        "alpha_schedule": [StrOptions(set(ALPHA_SCHEDULES))],
        "projection": ["boolean", StrOptions({"layers"})],
        "label_intercept": ["boolean"],
        "dropout": [Interval(Real, 0, 1, closed="left")],
        "init": [StrOptions({"he", "glorot"})],
        "hidden": [Interval(Integral, 0, None, closed="left"), None],
        "epochs": [Interval(Integral, 1, None, closed="left")],
        "min_steps": [Interval(Integral, 0, None, closed="left")],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
        "learning_rate": [Interval(Real, 0, None, closed="neither")],
        "adversary_learning_rate": [Interval(Real, 0, None, closed="neither")],
        "rate_schedule": [StrOptions(set(RATE_SCHEDULES))],
        "optimizer": [StrOptions(set(OPTIMIZERS))],
        "random_state": ["random_state", np.random.Generator],
    }

    notion: str = "demographic_parity"
    _: KW_ONLY
    alpha: float = 0.3
    alpha_schedule: str = "constant"
    projection: bool | str = True
    label_intercept: bool = True
    hidden: int | None = None
    dropout: float = 0.0
    init: str = "he"
    epochs: int = 40
    min_steps: int = 2000
    batch_size: int = 256
    learning_rate: float = 0.01
    adversary_learning_rate: float = 0.1
    rate_schedule: str = "cosine"
    optimizer: str = "adam"
    l2: float = 1e-4
    random_state: Any = None

    @classmethod
    def shipped(cls, **changes: Any) -> Self:
        """Give the settings of the authors' comparison: AIF360's ``AdversarialDebiasing``.

        It has the adversary for equalized odds with one intercept, whatever is to be equal.
        ``random_state`` and other parameters may be given.
        """
        settings: dict[str, Any] = {
            "notion": "equalized_odds", "label_intercept": False, "projection": "layers",
            "alpha": 0.1, "hidden": 200, "dropout": 0.2, "init": "glorot", "l2": 0.0,
            "epochs": 50, "min_steps": 0, "batch_size": 128, "rate_schedule": "stairs",
            "learning_rate": 0.001, "adversary_learning_rate": 0.001,
        }  # fmt: skip
        return cls(**settings | changes)

    def _fit(self, rows: CodedRows) -> None:
        names = getattr(self, "feature_names_in_", np.arange(self.n_features_in_))
        check_scales(_column_scale(rows.X), names)
        network = self._network = Network(rows.X.shape[1], self.hidden or 0)
        # Iterates that overflow are dropped below.
        with np.errstate(over="ignore", invalid="ignore"):
            converged = self._train(network, rows)
        if not network.hidden:
            self.coef_, self.intercept_ = self.theta_[None, :-1], self.theta_[-1:]
        else:  # of an earlier, linear fit
            self.__dict__.pop("coef_", None)
            self.__dict__.pop("intercept_", None)
        if not converged:
            warn(
                FitWarning(
                    "training_diverged",
                    step=self.n_iter_ + 1,
                    rate=Parameter("learning_rate"),
                    alpha=Parameter("alpha"),
                )
            )

    def _train(self, network: Network, rows: CodedRows) -> bool:
        """Set the parameters of predictor and adversary; return whether they stayed finite."""
        seed = self.random_state
        if isinstance(seed, np.random.RandomState):
            seed = seed.randint(2**31)
        rng = np.random.default_rng(seed)
        X, n = rows.X, len(rows.y)
        y, z = rows.y.astype(np.float64), rows.z.astype(np.float64)
        weight = np.ones(n) if rows.weight is None else rows.weight / rows.weight.mean()
        notion, seen = NOTIONS[self.notion], weight
        sees = knows = np.ones((1, n))
        if notion == "equalized_odds":
            sees = np.stack([np.ones(n), y, 1 - y])
            knows = sees[: 2 if self.label_intercept else 1]
        elif notion == "equal_opportunity":
            # Mean 1 over all rows, so that a batch's mean is one over its rows with y = 1.
            seen = weight * y / (weight * y).mean()

        theta = network.start(rng, self.init)
        adversary = np.zeros(len(sees) + len(knows) + 1)
        if self.init == "glorot":
            most = math.sqrt(6 / (len(sees) + 1))
            adversary[: len(sees)] = rng.uniform(-most, most, len(sees))
        adversary[-1] = 1.0
        ridge = np.full(len(theta), float(self.l2))
        ridge[-1] = 0.0
        optimizer = OPTIMIZERS[self.optimizer]
        move, move_adversary = optimizer(len(theta)), optimizer(len(adversary))
        rule = RULES["modified" if self.projection else "normal"]
        parts = network.parts if self.projection == "layers" else [slice(None)]
        alpha_at = ALPHA_SCHEDULES[self.alpha_schedule]
        rate_at = RATE_SCHEDULES[self.rate_schedule]
        per_epoch = math.ceil(n / self.batch_size)
        n_steps = per_epoch * max(self.epochs, math.ceil(self.min_steps / per_epoch))
        self.theta_, self.adversary_, self.n_iter_ = theta, adversary, 0
        for t, batch in enumerate(_batches(n, self.batch_size, n_steps, rng), 1):
            x, w = X[batch], weight[batch]
            kept: FloatArray | None = None
            if self.dropout and network.hidden:
                drawn = rng.random((len(batch), network.hidden), dtype=np.float32)
                kept = (drawn >= self.dropout) / (1 - self.dropout)
            score, H = network.score(theta, x, kept)
            guess = guess_group(
                adversary, score, sees[:, batch], knows[:, batch], z[batch], seen[batch]
            )
            d_score = w * (expit(score) - y[batch]) / len(batch)
            slopes = np.stack([d_score, guess.d_score])
            grad_p, grad_a = network.gradients(theta, x, H, slopes, kept)
            grad_p += ridge * theta
            alpha = self.alpha * alpha_at(t)
            direction = np.concatenate([rule(grad_p[i], grad_a[i], alpha) for i in parts])
            rate = rate_at(t, n_steps)
            theta = theta - rate * self.learning_rate * move.step(direction)
            adversary = adversary - (
                rate * self.adversary_learning_rate * move_adversary.step(guess.gradient)
            )
            # Comparisons with NaN are false.
            if not (
                np.abs(theta).max() < DIVERGED_WEIGHT and np.abs(adversary).max() < DIVERGED_WEIGHT
            ):
                return False
            self.theta_, self.adversary_, self.n_iter_ = theta, adversary, t
        return True

    def _score(self, X: FloatArray) -> FloatArray:
        return self._network.score(self.theta_, X)[0]
