"""One fit gives a classifier for every target τ; a test part shows what each one keeps."""

import sys

import numpy as np

from evenhand import FairClassifier, FrontierDisplay, statistical_rate
from evenhand.datasets import encoded_split, load_adult

X, X_test, y, y_test, z, z_test = encoded_split(load_adult(), random_state=0)
model = FairClassifier(tau=0.8).fit(X, y, sensitive_features=z)

targets = np.arange(0.40, 1.0, 0.05)
answers = [model.at(tau).predict(X_test) for tau in targets]
rates = [statistical_rate(y_test, answer, sensitive_features=z_test) for answer in answers]

display = FrontierDisplay.from_estimator(model)
display.ax_.plot(rates, [(answer == y_test).mean() for answer in answers], "x", label="test data")
display.ax_.set(xlabel="statistical rate (1 is parity)", ylabel="accuracy", ylim=(0.82, 0.852))
display.ax_.legend(loc="lower left")
display.figure_.savefig(sys.argv[1] if len(sys.argv) > 1 else "one_fit_every_target.png", dpi=110)
