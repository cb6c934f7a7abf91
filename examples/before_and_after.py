"""The groups' rates of plain logistic regression and of evenhand, with 95% intervals."""

import sys

from sklearn.linear_model import LogisticRegression

from evenhand import FairClassifier, GroupRatesDisplay
from evenhand.datasets import encoded_split, load_adult

X, X_test, y, y_test, z, z_test = encoded_split(load_adult(), random_state=0)
answers = {
    "logistic regression": LogisticRegression(max_iter=1000).fit(X, y).predict(X_test),
    "evenhand": FairClassifier(tau=0.8).fit(X, y, sensitive_features=z).predict(X_test),
}

display = GroupRatesDisplay.from_predictions(y_test, answers, sensitive_features=z_test, tau=0.8)
display.figure_.savefig(sys.argv[1] if len(sys.argv) > 1 else "before_and_after.png", dpi=110)
