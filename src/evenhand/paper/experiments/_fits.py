"""Data, readings and fits that several experiments share."""

import warnings
from collections.abc import Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from evenhand.core.metrics import group_counts
from evenhand.core.oracle import Oracle
from evenhand.core.rates import RATES, overall_accuracy
from evenhand.core.solvers import SOLVERS, Iteration
from evenhand.core.updates import RULES, power_schedule
from evenhand.datasets import Split, encoded_split, load_adult, with_correlation
from evenhand.models.classifier import FairClassifier, FairnessWarning
from evenhand.models.fit_rows import read_rows
from evenhand.models.method import Method
from evenhand.models.training import make_oracle
from evenhand.paper.experiments._claims import CORRECTED, PRINTED, RIDGE

ADULT = 0.21
"""How the paper writes the correlation of Adult itself."""
RHOS = (ADULT, 0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.8)
QUICK_RHOS = (ADULT, 0.5, 0.8)
SEEDS = 5
VARIANTS = ("AGD modified", "NGD modified", "AGD normal", "NGD normal")

# The paper's runs: α = 0.1/√t, 100 iterations from zero, no cut but 0.
_PAPER: dict[str, Any] = {
    "alpha": 0.1,
    "alpha_power": 0.5,
    "max_iter": 100,
    "n_iterates": 100,
    "init": "zero",
    "cut": False,
    "mu": 10.0,
}
READINGS: dict[str, dict[str, Any]] = {
    PRINTED: {**_PAPER, "reading": "printed", "l2": 1.0, "step": 0.1},
    RIDGE: {**_PAPER, "reading": "printed", "l2": 1e-4, "step": 0.1},
    CORRECTED: {**_PAPER, "reading": "corrected"},
}
"""Settings of each reading. In the corrected one steps come from smoothness: 0.1 diverges there."""
SETTINGS = (
    "All runs have μ = 10, α = 0.1/√t and 100 iterations from w = 0, u = 0, and predict with the "
    "cut 0, unless a figure says otherwise. Printed: η = 0.1 for w and u, ridge 1 (or 10⁻⁴), the "
    "paper's sign and sums, its Algorithm 2 as AGD. Corrected: steps from smoothness, ridge 10⁻⁴ "
    "without the intercept, the minimax sign, group means, AGD+."
)
"""The same in words."""
_DISCOVERY: dict[str, Any] = {"notion": "false_discovery"}
DISCOVERY: dict[str, dict[str, Any]] = {
    PRINTED: _DISCOVERY,
    RIDGE: _DISCOVERY,
    # from zero the run never finds the other side of the ratio
    CORRECTED: {**_DISCOVERY, "init": "optimum", "mu": 1.0},
}
"""What false discovery changes in each reading."""


def grid_of(quick: bool, rhos: tuple[float, ...] = RHOS) -> list[dict[str, Any]]:
    """Cells of correlations and seeds; few of both if ``quick``."""
    if quick:
        rhos = tuple(rho for rho in rhos if rho in QUICK_RHOS)
    return [{"rho": rho, "seed": seed} for seed in range(1 if quick else SEEDS) for rho in rhos]


@lru_cache(maxsize=1)
def _adult(encoding: str) -> Any:
    return load_adult(encoding)  # type: ignore[arg-type]


@lru_cache(maxsize=2)
def split(rho: float, seed: int, encoding: str = "full") -> Split:
    """Split Adult, or the synthetic data of a correlation, 70/30."""
    data, target = _adult(encoding), None
    if rho != ADULT:
        target = with_correlation(data.target, data.sensitive_features, rho, random_state=seed)
    return encoded_split(data, target=target, random_state=seed)


def _settings(reading: str, method: str, params: dict[str, Any]) -> dict[str, Any]:
    accelerated = "agd" if reading == CORRECTED else "agd_printed"
    solver = accelerated if method == "AGD" else "gd"
    # The paper chooses by the rate itself.
    return {"confidence": None} | READINGS[reading] | {"solver": solver} | params


def _classifier(settings: dict[str, Any]) -> FairClassifier:
    own = Method().get_params()
    method = Method(**{name: value for name, value in settings.items() if name in own})
    wanted = {name: value for name, value in settings.items() if name not in own}
    return FairClassifier(method=method, **wanted)


def fit(data: Split, reading: str, method: str, **params: Any) -> FairClassifier:
    """Fit in a reading by NGD or AGD; what is not reached is for the caller to see."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FairnessWarning)
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = _classifier(_settings(reading, method, params))
        return model.fit(data.X_train, data.y_train, sensitive_features=data.z_train)


def problem(X: Any, y: Any, z: Any, reading: str, **params: Any) -> Oracle:
    """Make the oracle of a fit in a reading, in float64."""
    model = _classifier(_settings(reading, "NGD", params))
    settings = model.settings()
    rows, _ = read_rows(model, settings, X, y, z, None, dtype=(np.float64,))
    return make_oracle(rows, settings)


def iterations(oracle: Oracle, reading: str, method: str, update: str) -> Iterator[Iteration]:
    """Run a method of a reading on an oracle, with all of its gradients to be seen."""
    settings = _settings(reading, method, {})
    return SOLVERS[settings["solver"]].run(
        oracle,
        np.zeros(oracle.n_weights),
        rule=RULES[update],
        schedule=power_schedule(settings["alpha"], settings["alpha_power"]),
        max_iter=settings["max_iter"],
        step=settings.get("step"),
    )


def rows_of(data: Split, where: str) -> tuple[Any, Any, Any]:
    """Give inputs, labels and groups of the training or the test rows ("train" or "test")."""
    if where == "train":
        return data.X_train, data.y_train, data.z_train
    return data.X_test, data.y_test, data.z_test


def measure_model(
    model: Any, data: Split, where: str, rate: str = "selection_rate"
) -> dict[str, float]:
    """:func:`measure` what a fitted classifier predicts for the training or test rows."""
    X, y, z = rows_of(data, where)
    return measure(y, model.predict(X), z, rate)


def measure(y: Any, predicted: Any, z: Any, rate: str = "selection_rate") -> dict[str, float]:
    """Accuracy, rate and share of positives; the rate is NaN where it is undefined.

    ``constant`` says whether a group has fewer than 1% or more than 99% of predicted positives.
    """
    counts = group_counts(y, predicted, sensitive_features=z)[1]
    share = RATES["selection_rate"].per_group(counts)
    return {
        "accuracy": float(overall_accuracy(counts)),
        "rate": float(RATES[rate].ratio(counts)),
        "positives": float(counts[..., 1].sum() / counts.sum()),
        "constant": float(share.min() < 0.01 or share.max() > 0.99),
    }


def measure_iterates(
    model: FairClassifier, data: Split, where: str, iterates: slice = slice(None)
) -> list[dict[str, float]]:
    """:func:`measure` what kept iterates predict with the cut 0."""
    X, y, z = rows_of(data, where)
    W = model.trajectory_.iterates[iterates]
    scores = W[:, :-1] @ np.asarray(X, dtype=np.float64).T + W[:, -1:]
    return [measure(y, (row > 0).astype(int), z) for row in scores]


def measure_last(model: FairClassifier, data: Split, where: str) -> dict[str, float]:
    """:func:`measure` what the last kept iterate predicts with the cut 0."""
    return measure_iterates(model, data, where, slice(-1, None))[0]
