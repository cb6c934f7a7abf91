"""Problems and registries shared by the tests."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from scipy.sparse import csr_matrix

from evenhand.core.notions import NOTIONS

settings.register_profile(
    "evenhand", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("evenhand")

PAPER_NOTIONS = ("statistical_parity", "false_discovery")
NOTION_NAMES = tuple(NOTIONS)
READING_NAMES = ("corrected", "printed")


def make_problem(n=400, n_features=5, seed=0, dtype=np.float64):
    """A biased problem: the first two inputs lean on the group, and so do labels."""
    rng = np.random.default_rng(seed)
    z = (rng.random(n) < 0.6).astype(int)
    X = rng.standard_normal((n, n_features))
    X[:, 0] += 1.0 * z
    X[:, 1] += 0.5 * z
    score = X @ np.linspace(1.2, -0.4, n_features) - 0.8 + 0.5 * z
    y = (rng.random(n) < 1 / (1 + np.exp(-score))).astype(int)
    return X.astype(dtype), y, z


def as_layout(X, layout):
    return csr_matrix(X) if layout == "csr" else X


@pytest.fixture
def problem():
    return make_problem()
