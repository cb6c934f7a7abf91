"""Train on Adult and show what a target rate costs: ``make demo``."""

import os
import sys
import time
from pathlib import Path

os.environ.setdefault("MPLBACKEND", "Agg")

from rich import box
from rich.console import Console
from rich.table import Table
from sklearn.linear_model import LogisticRegression

from evenhand import FairClassifier, FrontierDisplay, group_rates, statistical_rate
from evenhand.datasets import encoded_split, load_adult

console = Console()
split = encoded_split(load_adult(), random_state=0)
X_train, X_test, y_train, y_test, z_train, z_test = split
console.print(
    f"\nAdult census income: {len(y_train):,} people to train on, {len(y_test):,} to test on, "
    f"{X_train.shape[1]} inputs, sex not among them."
)
console.print("Positive means predicted to earn over 50,000 dollars a year.\n")

start = time.perf_counter()
plain = LogisticRegression(max_iter=1000).fit(X_train, y_train)
plain_seconds = time.perf_counter() - start

start = time.perf_counter()
fair = FairClassifier(tau=0.8).fit(X_train, y_train, sensitive_features=z_train)
fair_seconds = time.perf_counter() - start

table = Table(box=box.SIMPLE_HEAD, title="On the test data", title_justify="left")
for name in ("", "accuracy", "statistical\nrate", "positive\nwomen", "positive\nmen", "seconds"):
    table.add_column(name, justify="right" if name else "left", no_wrap=True)


def add(name: str, model: object, seconds: str) -> None:
    """Add a model's row."""
    predicted = model.predict(X_test)
    by_sex = group_rates(y_test, predicted, sensitive_features=z_test)["selection_rate"]
    rate = statistical_rate(y_test, predicted, sensitive_features=z_test)
    table.add_row(
        name,
        f"{(predicted == y_test).mean():.4f}",
        f"{rate:.3f}",
        f"{by_sex['Female']:.1%}",
        f"{by_sex['Male']:.1%}",
        seconds,
    )


add("logistic regression", plain, f"{plain_seconds:.2f}")
add("evenhand, τ = 0.80", fair, f"{fair_seconds:.2f}")
for tau in (0.90, 0.95):
    start = time.perf_counter()
    moved = fair.at(tau)
    add(f"evenhand, τ = {tau:.2f}", moved, f"+{time.perf_counter() - start:.4f}")
console.print(table)
console.print(
    "The statistical rate is the smaller share of positives over the larger; 1 is parity.\n"
    "The three targets are one fit: moving along its frontier takes no training.\n"
    "The first fit on a machine compiles its loops: run this again to see a fit's time.\n"
    "τ is met on the training data; on new data the rate varies around it.\n"
)

picture = Path(sys.argv[1] if len(sys.argv) > 1 else "frontier.png")
FrontierDisplay.from_estimator(fair).figure_.savefig(picture, dpi=150)
console.print(f"The whole frontier of the fit, {len(fair.frontier_)} points: {picture}")
