"""No peer is crippled: on Adult each reaches what is known of it, or of its counterpart.

Known figures are means over splits of the 30,162 rows of the original training file; here it is one
split of the 45,222 complete rows, so accuracy may be 0.005 less and the rate 0.06.
"""

import numpy as np
import pytest

from evenhand import statistical_rate
from evenhand.datasets import encoded_split, load_adult
from evenhand.peers import (
    CelisClassifier,
    FairlearnExponentiatedGradient,
    FairlearnGridSearch,
    FairlearnThresholdOptimizer,
    GroupThresholds,
    OxonFairClassifier,
    Reweighing,
    ZafarClassifier,
    ZhangClassifier,
)

pytestmark = pytest.mark.slow

KNOWN = {
    "reweighing": (Reweighing(), 0.843, 0.562, None),
    "zafar": (ZafarClassifier(covariance_bound=0.0), 0.836, 0.749, "cvxpy"),
    # fairlearn's and AIF360's adversarial debiasing: .822 at .959 and at .877
    "zhang": (ZhangClassifier(alpha=0.3, random_state=0), 0.822, 0.959, None),
    # AIF360's meta-classifier: .773 at .915
    "celis": (CelisClassifier(tau=0.95), 0.773, 0.915, None),
    "exponentiated_gradient": (
        FairlearnExponentiatedGradient(bound=0.005, random_state=0),
        0.829,
        0.936,
        "fairlearn",
    ),
    "grid_search": (FairlearnGridSearch(tau=0.95), 0.831, 0.964, "fairlearn"),
    "threshold_optimizer": (
        FairlearnThresholdOptimizer(random_state=0),
        0.829,
        0.962,
        "fairlearn",
    ),
    "oxonfair": (OxonFairClassifier(tau=0.8), 0.835, 0.782, "oxonfair"),
    "oxonfair, strict": (OxonFairClassifier(tau=0.95), 0.828, 0.940, "oxonfair"),
    "oxonfair, given": (OxonFairClassifier(tau=0.9, infer_groups=False), 0.833, 0.904, "oxonfair"),
    "group_thresholds": (GroupThresholds(tau=0.9), 0.833, 0.904, None),  # as OxonFair's, given
}


@pytest.fixture(scope="module")
def split():
    return encoded_split(load_adult(), random_state=0)


def reached(estimator, part):
    estimator.fit(part.X_train, part.y_train, sensitive_features=part.z_train)
    group = {"sensitive_features": part.z_test} if estimator.needs_group else {}
    predicted = estimator.predict(part.X_test, **group)
    rate = statistical_rate(part.y_test, predicted, sensitive_features=part.z_test)
    return np.mean(predicted == part.y_test), rate


@pytest.mark.parametrize("name", KNOWN)
def test_reaches_what_is_known(split, name):
    estimator, accuracy, rate, package = KNOWN[name]
    if package:
        pytest.importorskip(package)
    found = reached(estimator, split)
    assert found[0] >= accuracy - 0.005
    assert found[1] >= rate - 0.06


def test_reductions_with_sex_an_input():
    """At difference 0.01 fairlearn's reductions are known to give .838 at .84."""
    pytest.importorskip("fairlearn")
    part = encoded_split(load_adult(sensitive_as_input=True), random_state=0)
    accuracy, rate = reached(FairlearnExponentiatedGradient(bound=0.01, random_state=0), part)
    assert accuracy >= 0.838 - 0.005
    assert rate >= 0.84 - 0.06
