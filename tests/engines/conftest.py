"""Fixtures of the engines' tests."""

import numpy as np
import pytest


@pytest.fixture
def point():
    rng = np.random.default_rng(3)

    def point(oracle):
        w = rng.standard_normal(oracle.n_weights) * 0.5
        return w, rng.standard_normal(oracle.n_adversary) * 0.3

    return point
