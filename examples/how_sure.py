"""How much accuracy it costs to be sure of τ: by the rate alone, with a margin, certified."""

import sys
import warnings

import matplotlib.pyplot as plt

from evenhand import FairClassifier, FairnessWarning, statistical_rate
from evenhand.datasets import encoded_split, load_adult

X, X_test, y, y_test, z, z_test = encoded_split(load_adult(), random_state=0)
figure, ax = plt.subplots(figsize=(6.4, 4.0), layout="constrained")
for confidence, mark, color in (
    (None, "o", "tab:gray"),
    (0.9, "s", "tab:blue"),
    ("certified", "^", "tab:green"),
):
    model = FairClassifier(tau=0.8, confidence=confidence, random_state=0)
    model.fit(X, y, sensitive_features=z)
    for tau in (0.7, 0.8, 0.9):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FairnessWarning)  # shown as a hollow mark
            point = model.at(tau)
        predicted = point.predict(X_test)
        rate = statistical_rate(y_test, predicted, sensitive_features=z_test)
        accuracy = (predicted == y_test).mean()
        label = f"confidence={confidence!r}" if tau == 0.7 else None
        fill = color if point.feasible_ else "none"
        ax.plot(rate, accuracy, mark, color=color, markerfacecolor=fill, label=label)
        ax.annotate(f"τ = {tau:g}", (rate, accuracy), xytext=(6, 4), textcoords="offset points")
ax.margins(0.12, 0.1)
ax.set(xlabel="statistical rate on test data", ylabel="accuracy on test data")
ax.legend(title="hollow: not feasible")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "how_sure.png", dpi=110)
