"""Data, runs in each reading, and measures that several experiments share."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from scipy.special import expit, logit
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

from evenhand.core.arrays import FloatArray
from evenhand.core.notions import AnyNotion, find_notion
from evenhand.core.oracle import Oracle
from evenhand.core.rates import overall_accuracy
from evenhand.core.solvers import (
    AGDPlus,
    AGDPrinted,
    GradientDescent,
    Iteration,
    Pace,
    State,
    minimize_loss,
    solve,
)
from evenhand.core.updates import RULES, power_schedule
from evenhand.datasets import Split, encoded_split, load_adult, with_correlation
from evenhand.engines.memory import make_oracle
from evenhand.paper.experiments._claims import ALL, CHOICES, CORRECTED, PRINTED, Variant

ADULT = 0.21
"""How the paper writes the correlation of Adult itself."""
RHOS = (ADULT, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8)
QUICK_RHOS = (ADULT, 0.5, 0.8)
SEEDS = 5
REPLACED, MOVED = "labels replaced", "labels moved"
"""How labels get a correlation: :func:`labels`, :func:`moved_labels`."""
ENCODINGS = {"full": "full", "Zafar's": "zafar"}
"""What the choice of an encoding is to :func:`load_adult`."""
METHODS = ("AGD modified", "NGD modified", "AGD normal", "NGD normal")
ITERATIONS = 100

Setting = dict[str, str]
"""A reading and choices, by the names of their columns."""
# A group is answered alike if it has fewer positives than this share, or more than all but it.
CONSTANT_SHARE = 0.01
CORRECTED_RIDGE = 1e-4

PANELS = {
    "printed": Variant(PRINTED),
    "printed, ridge 1": Variant(PRINTED, "ridge", "1"),
    "corrected": Variant(CORRECTED),
}
"""What pictures have beside each other."""


def settings(*choices: str) -> list[Setting]:
    """Give the centre of each reading, and each of the choices and the ridge varied by itself."""
    found = []
    for reading in (PRINTED, CORRECTED):
        own = {name: CHOICES[name] for name in ("ridge", *choices)}
        own = {name: choice for name, choice in own.items() if reading in choice.readings}
        centre = {"reading": reading} | dict.fromkeys(("ridge", *choices), ALL)
        centre |= {name: choice.values[0] for name, choice in own.items()}
        found.append(centre)
        found += [centre | {name: v} for name, choice in own.items() for v in choice.values[1:]]
    return found


def grid_of(quick: bool, rhos: tuple[float, ...] = RHOS) -> list[dict[str, Any]]:
    """Cells of correlations and seeds; few of both if ``quick``."""
    if quick:
        rhos = tuple(rho for rho in rhos if rho in QUICK_RHOS)
    return [{"rho": rho, "seed": seed} for seed in range(1 if quick else SEEDS) for rho in rhos]


# Data --------------------------------------------------------------------------------------------


@lru_cache(maxsize=2)
def _adult(encoding: str) -> Any:
    return load_adult(encoding)  # type: ignore[arg-type]


@lru_cache(maxsize=2)
def split(rho: float, seed: int, encoding: str = "full", scheme: str = REPLACED) -> Split:
    """Split Adult, or the synthetic data of a correlation, 70/30."""
    target = (moved_labels if scheme == MOVED else labels)(rho, seed, encoding)
    return encoded_split(_adult(encoding), target=target, random_state=seed)


def labels(rho: float, seed: int, encoding: str = "full") -> Any:
    """Adult's labels, or those of a correlation."""
    data = _adult(encoding)
    if rho == ADULT:
        return data.target
    return with_correlation(data.target, data.sensitive_features, rho, random_state=seed)


@lru_cache(maxsize=2)
def likely(encoding: str) -> FloatArray:
    """Score each row by a logistic model of Adult's labels in the inputs."""
    data = _adult(encoding)
    X = StandardScaler().fit_transform(data.data)
    model = LogisticRegression(max_iter=1000).fit(X, codes(data.target))
    return np.asarray(model.decision_function(X))


def moved_labels(rho: float, seed: int, encoding: str = "full") -> Any:
    r"""Adult's labels, or others with the correlation of :func:`labels` that follow the inputs.

    Each group has as many rows of label 1 as there. They are those in which
    :math:`m(x_i) + \varepsilon_i` is the largest, with the score m of :func:`likely` and logistic
    noise drawn anew, given Adult's own label: that is 1 where the sum is positive. Within a group
    the labels are thus Adult's with another intercept; those of correlation 0.21 are Adult's own.
    """
    data, random = _adult(encoding), np.random.default_rng(seed)
    y, z, score = codes(data.target), groups(encoding), likely(encoding)
    wanted, chance = codes(labels(rho, seed, encoding)), expit(score)
    drawn = random.uniform(size=len(y))
    # logistic noise is -logit(U): U is below the chance of label 1 where the label is 1
    latent = score - logit(np.where(y == 1, chance * drawn, chance + (1 - chance) * drawn))
    new = np.zeros(len(y), dtype=int)
    for j in range(2):
        rows = np.flatnonzero(z == j)
        new[rows[np.argsort(-latent[rows], kind="stable")[: wanted[rows].sum()]]] = 1
    return pd.Series(new, index=data.target.index, name=data.target.name)


def groups(encoding: str = "full") -> Any:
    """Adult's groups as 0 and 1, in the order of :func:`labels`."""
    return codes(_adult(encoding).sensitive_features)


class Part(NamedTuple):
    """Rows as arrays: inputs, labels, groups as 0 and 1, and the extra column if it is no 1."""

    X: FloatArray
    y: Any
    z: Any
    extra: FloatArray | None = None


def part_of(data: Any, where: str = "train", extra: FloatArray | None = None) -> Part:
    """Give the training or the test rows of a split."""
    X, y, z = (getattr(data, f"{name}_{where}") for name in "Xyz")
    return Part(np.asarray(X, dtype=np.float64), np.asarray(y), codes(z), extra)


def codes(values: Any) -> Any:
    """Two values as 0 and 1."""
    return np.unique(np.asarray(values), return_inverse=True)[1]


# Runs --------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _OtherSteps(AGDPrinted):
    """Algorithm 2 with another α than the direction's in its :math:`a_t`."""

    alpha: Callable[[int], float] = float

    def step(self, state: State, direction: FloatArray, pace: Pace) -> State:
        """Step as printed, with that α."""
        return super().step(state, direction, pace._replace(alpha=self.alpha(pace.t)))


# What each value of a choice stands for.
_RIDGES: dict[str, Callable[[int], float]] = {"1/N": lambda n: 1 / n, "1": lambda n: 1.0}
_ALPHAS = {"0.1/√t": 0.1, "1/√t": 1.0}
_STARTS: dict[str, Callable[[Oracle, np.random.Generator], FloatArray]] = {
    "zero": lambda problem, random: np.zeros(problem.n_weights),
    "N(0, 0.1²)": lambda problem, random: random.normal(0, 0.1, problem.n_weights),
    "N(0, 1)": lambda problem, random: random.normal(0, 1, problem.n_weights),
    "optimum": lambda problem, random: minimize_loss(
        problem, np.zeros(problem.n_weights), max_iter=200, callback=lambda it: None
    )[0],
}
# With a step η, L₁L₂ is 1/η: a_t = 1/(α L₁L₂√t) is η where α√t is 1.
_STEPS = {
    "1/(α_t L₁L₂√t)": AGDPrinted(),
    "1/(α L₁L₂√t)": _OtherSteps(lambda t: 0.1),
    "η": _OtherSteps(lambda t: t**-0.5),
}


def problem(
    part: Part, setting: Setting, *, mu: float = 10.0, notion: AnyNotion | None = None
) -> Oracle:
    """Make the losses of a reading on some rows, in float64."""
    printed = setting["reading"] == PRINTED
    return make_oracle(
        part.X,
        part.y,
        part.z,
        extra=part.extra,
        notion=notion or find_notion("statistical_parity"),
        reading=setting["reading"],
        mu=mu,
        l2=_RIDGES[setting["ridge"]](len(part.y)) if printed else CORRECTED_RIDGE,
        penalize_extra=part.extra is not None,
        metric="none",
    )


def descend(
    losses: Oracle,
    setting: Setting,
    method: str,
    *,
    power: float = 0.5,
    max_iter: int = ITERATIONS,
    seed: int = 0,
) -> Iterator[Iteration]:
    """Run one of :data:`METHODS` from a start that the setting names, zero if it names none.

    In the corrected reading steps come from smoothness: a fixed 0.1 diverges there.
    """
    name, update = method.split()
    printed = setting["reading"] == PRINTED
    start, alpha, step = (setting.get(key, ALL) for key in ("start", "alpha", "step"))
    if name == "NGD":
        solver: Any = GradientDescent()
    else:
        solver = _STEPS.get(step, AGDPrinted()) if printed else AGDPlus()
    return solve(
        losses,
        _STARTS.get(start, _STARTS["zero"])(losses, np.random.default_rng(seed)),
        solver=solver,
        rule=RULES[update],
        schedule=power_schedule(_ALPHAS.get(alpha, 0.1), power),
        max_iter=max_iter,
        step=0.1 if printed else None,
    )


def iterates(losses: Oracle, setting: Setting, method: str, **options: Any) -> FloatArray:
    """Give the answers of :func:`descend`, a row for each iteration; the start if it diverges."""
    found = [it.q for it in descend(losses, setting, method, **options)]
    return np.array(found or [np.zeros(losses.n_weights)])


def runs(
    part: Part, methods: Sequence[str], *choices: str, **options: Any
) -> Iterator[tuple[dict[str, Any], FloatArray]]:
    """Give setting and name, as a row begins, and iterates of methods in all settings."""
    for setting in settings(*choices):
        losses = problem(part, setting)
        for name in methods:
            yield {**setting, "name": name}, iterates(losses, setting, name, **options)


# Measures ----------------------------------------------------------------------------------------


def measure(part: Part, positive: Any, notion: AnyNotion | None = None) -> pd.DataFrame:
    """Measure predictions, a row for each classifier.

    The ratio is NaN where it is undefined. ``constant`` says whether a group has fewer than 1% or
    more than 99% of predicted positives.
    """
    cell = _cells(part)
    return _measured(cell, np.asarray(positive, dtype=float) @ cell, notion)


def measure_cuts(part: Part, scores: FloatArray, notion: AnyNotion | None = None) -> pd.DataFrame:
    """:func:`measure` every cut between two scores; ``cut`` is in the middle of them."""
    order, cell = np.argsort(-scores, kind="stable"), _cells(part)
    ordered = scores[order]
    gaps = np.flatnonzero(np.diff(ordered) < -1e-9)
    hits = cell[order].cumsum(axis=0)[gaps]
    return _measured(cell, hits, notion).assign(cut=(ordered[gaps] + ordered[gaps + 1]) / 2)


def _cells(part: Part) -> FloatArray:
    """Group and label of each row, as one of four columns."""
    return np.eye(4)[part.z * 2 + np.asarray(part.y)]


def _measured(cell: FloatArray, hits: FloatArray, notion: AnyNotion | None) -> pd.DataFrame:
    """Measure classifiers by how many of each column they call positive."""
    parity = find_notion("statistical_parity")
    notion = notion or parity
    counts = np.stack([cell.sum(axis=0) - hits, hits], axis=-1).reshape(-1, 2, 2, 2)
    return pd.DataFrame(
        {
            "accuracy": overall_accuracy(counts),
            "rate": notion.rate.ratio(counts),
            "positives": counts[..., 1].sum(axis=(1, 2)) / len(cell),
            "constant": 1.0 - parity.eligible(counts, CONSTANT_SHARE),
            "eligible": notion.eligible(counts, CONSTANT_SHARE),
        }
    )


def measure_iterates(W: FloatArray, part: Part, notion: AnyNotion | None = None) -> pd.DataFrame:
    """:func:`measure` what weights predict with the cut 0."""
    scores = W[:, :-1] @ part.X.T
    scores += W[:, -1:] * (1.0 if part.extra is None else part.extra)
    return measure(part, scores > 0, notion)


def choose(measured: pd.DataFrame, tau: float) -> int:
    """Choose as the paper does: the most accurate whose rate reaches τ, else the highest rate."""
    rate = measured["rate"].where(measured["eligible"], np.nan).fillna(-1.0).to_numpy()
    accuracy = measured["accuracy"].to_numpy()
    if (rate >= tau).any():
        return int(np.argmax(np.where(rate >= tau, accuracy, -1.0)))
    return int(np.argmax(rate)) if (rate >= 0).any() else len(rate) - 1


def measure_chosen(
    W: FloatArray, data: Split, tau: float, notion: AnyNotion | None = None
) -> tuple[dict[str, float], dict[str, float]]:
    """Measure on the training and the test rows what τ chooses on the former."""
    training = measure_iterates(W, part_of(data), notion)
    i = choose(training, tau)
    tested = measure_last(W[: i + 1], part_of(data, "test"), notion)
    return training.astype(float).iloc[i].to_dict(), tested


def measure_last(W: FloatArray, part: Part, notion: AnyNotion | None = None) -> dict[str, float]:
    """:func:`measure` what the last weights predict with the cut 0."""
    return measure_iterates(W[-1:], part, notion).astype(float).iloc[0].to_dict()


def measure_model(
    model: Any, data: Split, where: str, notion: AnyNotion | None = None
) -> dict[str, float]:
    """:func:`measure` what a fitted classifier predicts for the training or test rows."""
    X, part = getattr(data, f"X_{where}"), part_of(data, where)
    return measure(part, model.predict(X)[None] == 1, notion).astype(float).iloc[0].to_dict()
