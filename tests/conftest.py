"""Settings and fixtures of all tests."""

import gc
import os

# Workers that run beside each other take turns on the cores: threads within each only wait for one
# another. Set before NumPy is loaded; the processes that tests start inherit it.
if "PYTEST_XDIST_WORKER" in os.environ:
    os.environ.setdefault("OMP_NUM_THREADS", "1")

import pytest
from helpers import make_problem
from hypothesis import HealthCheck, settings

settings.register_profile(
    "evenhand", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("evenhand")


@pytest.fixture(scope="module", autouse=True)
def little_garbage():
    """Look for garbage among what the tests of a file make, not in all modules each time."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def problem():
    return make_problem()
