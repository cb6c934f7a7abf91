"""Train on Adult and show what a target rate costs: ``make demo``."""

import os
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("MPLBACKEND", "Agg")

import numpy as np
from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression
from threadpoolctl import threadpool_limits

from evenhand import FairClassifier, FrontierDisplay, Method, group_rates, statistical_rate
from evenhand.datasets import encoded_split, load_adult

SPLITS, TAUS = 10, (0.80, 0.90, 0.95)

console = Console()
data = load_adult()
X_train, X_test, y_train, y_test, z_train, z_test = encoded_split(data, random_state=0)
console.print(
    f"\nAdult census income: {len(y_train):,} people to train on, {len(y_test):,} to test on, "
    f"{X_train.shape[1]} inputs, sex not among them."
)
console.print("Positive means predicted to earn over 50,000 dollars a year.\n")

# The first fit on a machine compiles; numba keeps the result for the next process.
console.print("Compiling, once on a machine: some seconds ...")
FairClassifier(tau=0.1, method=Method(max_iter=2)).fit(X_train, y_train, sensitive_features=z_train)

rows: dict[str, list[tuple[float, ...]]] = {}


def note(name: str, model: Any, seconds: float) -> None:
    """Note a model's figures on the test data of a split."""
    predicted = model.predict(X_test)
    by_sex = group_rates(y_test, predicted, sensitive_features=z_test)["selection_rate"]
    rate = statistical_rate(y_test, predicted, sensitive_features=z_test)
    accuracy = (predicted == y_test).mean()
    rows.setdefault(name, []).append((accuracy, rate, by_sex["Female"], by_sex["Male"], seconds))


def seconds_since(start: float) -> float:
    """Give the seconds since a moment."""
    return time.perf_counter() - start


console.print(f"{SPLITS} random splits into people to train on and people to test on ...\n")
for seed in range(SPLITS):
    X_train, X_test, y_train, y_test, z_train, z_test = encoded_split(data, random_state=seed)
    # On one thread each: with more, how long a fit takes depends on what else the machine does.
    with threadpool_limits(1):
        start = time.perf_counter()
        plain = LogisticRegression(max_iter=1000).fit(X_train, y_train)
        note("logistic\nregression", plain, seconds_since(start))
        start = time.perf_counter()
        fair = FairClassifier(tau=TAUS[0]).fit(X_train, y_train, sensitive_features=z_train)
        note(f"evenhand\nτ = {TAUS[0]:.2f}", fair, seconds_since(start))
    for tau in TAUS[1:]:
        start = time.perf_counter()
        note(f"τ = {tau:.2f}", fair.at(tau), seconds_since(start))

table = Table(box=box.SIMPLE_HEAD, title="On the test data", title_justify="left")
titles = ("accuracy", "statistical\nrate", "target\nmet", "women", "men", "seconds,\n1 thread")
for name in ("", *titles):
    table.add_column(name, justify="right" if name else "left", no_wrap=True)
for name, figures in rows.items():
    accuracy, rate, women, men, seconds = np.mean(figures, axis=0)
    spread = np.std(figures, axis=0)
    tau = float(name.rpartition("= ")[2]) if "τ" in name else None
    met = sum(row[1] >= tau for row in figures) if tau else None
    table.add_row(
        name,
        f"{accuracy:.3f} ±{spread[0]:.3f}",
        f"{rate:.2f} ±{spread[1]:.2f}",
        "" if met is None else f"{met} of {SPLITS}",
        f"{women:.1%}",
        f"{men:.1%}",
        f"{seconds:.2f}" if seconds > 0.05 else f"+{seconds:.3f}",
    )
console.print()
console.print(table)
console.print(
    f"Means over the {SPLITS} splits ± their standard deviation. Women, men: share of positives.\n"
    "The statistical rate is the smaller share over the larger; 1 is parity.\n"
    "The three targets are one fit: moving along its frontier takes no training.\n\n"
    "A point is chosen so that its rate among all such people reaches τ with a\n"
    "probability of about 90%. Test people are a sample themselves, so among them\n"
    "the rate is below τ more often than that.\n"
)

picture = Path("frontier.png")
FrontierDisplay.from_estimator(fair).figure_.savefig(picture, dpi=150)
console.print(f"The whole frontier of the last fit, {len(fair.frontier_)} points: {picture}")
