"""Several methods on the same splits of one table."""

import sys

from evenhand.datasets import load_adult
from evenhand.peers import compare
from evenhand.views.plots import ComparisonDisplay

adult = load_adult()
table = compare(
    adult.data,
    adult.target,
    adult.sensitive_features,
    methods=["evenhand", "accuracy_only", "reweighing", "group_thresholds"],
    taus=[0.6, 0.8, 0.9, 0.95],
    n_splits=2,
    transformer=adult.encoder,
    verbose=0,
)
display = ComparisonDisplay(table).plot()
display.figure_.savefig(sys.argv[1] if len(sys.argv) > 1 else "compare_methods.png", dpi=110)
