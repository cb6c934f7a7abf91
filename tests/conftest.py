"""Settings and fixtures of all tests."""

import pytest
from helpers import make_problem
from hypothesis import HealthCheck, settings

settings.register_profile(
    "evenhand", deadline=None, derandomize=True, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("evenhand")


@pytest.fixture
def problem():
    return make_problem()
