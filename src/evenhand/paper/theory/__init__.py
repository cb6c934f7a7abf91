r"""The paper's theory on a given problem: constants, bounds, and what a fit measures.

Three groups of functions, kept apart:

- **measured**: :func:`constants` of a run, :func:`measured_regrets` over its iterations and the
  :func:`certificate` of a fitted classifier;
- **theorems**, with their slips corrected and where their assumptions hold: :func:`fairness_bound`,
  :func:`fairness_iterations`, :func:`agd_classification_bound`, :func:`agd_fairness_bound`;
- **the paper's expression** for the price of fairness, :func:`price_of_fairness`, which is not a
  theorem: a lower bound is claimed from recursions that bound from above.

``reading="printed"`` gives a formula as it stands in the paper, ``"corrected"`` (the default) as
the mathematics needs it; each docstring names the slips that are corrected. All of them take
:math:`\nabla f(u) - \nabla f(v)` in the definition of smoothness, where
:math:`\nabla f(u) - \nabla f(u)` is printed, and :math:`\nabla_w` where the proof on fairness has
one :math:`\nabla_u` too many.

The theorems on fairness assume an :math:`L_F` that is concave in u and w together. The model's is
not, so on data their bounds are things to compare with, not to rely on.
"""

from evenhand.paper.theory._bounds import (
    Constants,
    agd_classification_bound,
    agd_fairness_bound,
    bregman,
    fairness_bound,
    fairness_iterations,
    price_contraction,
    price_expression,
    price_of_fairness,
)
from evenhand.paper.theory._certificate import Certificate, certificate
from evenhand.paper.theory._optima import (
    FairOptimum,
    Minimum,
    best_response,
    fair_optimum,
    minimum_loss,
)
from evenhand.paper.theory._runs import constants, descend, measured_regrets

__all__ = [
    "Certificate",
    "Constants",
    "FairOptimum",
    "Minimum",
    "agd_classification_bound",
    "agd_fairness_bound",
    "best_response",
    "bregman",
    "certificate",
    "constants",
    "descend",
    "fair_optimum",
    "fairness_bound",
    "fairness_iterations",
    "measured_regrets",
    "minimum_loss",
    "price_contraction",
    "price_expression",
    "price_of_fairness",
]
