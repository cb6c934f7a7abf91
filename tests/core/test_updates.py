import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from evenhand.core.updates import RULES, conflict, modified, normal, power_schedule

vectors = arrays(np.float64, 6, elements=st.floats(-1e3, 1e3, allow_subnormal=False))
alphas = st.floats(0, 10)


@given(vectors, vectors, alphas)
def test_modified_step_cannot_undo_fairness(g_c, g_f, alpha):
    size = np.linalg.norm(g_f)
    assume(size > 1e-6)
    d = modified(g_c, g_f, alpha)
    tolerance = 1e-9 * size * (np.linalg.norm(g_c) + alpha * size + 1)
    assert g_f @ d == pytest.approx(-alpha * size**2, abs=tolerance)


@given(vectors, vectors, alphas)
def test_modified_is_normal_less_the_projection(g_c, g_f, alpha):
    assume(np.linalg.norm(g_f) > 1e-3)
    projection = (g_c @ g_f) / (g_f @ g_f) * g_f
    expected = normal(g_c, g_f, alpha) - projection
    np.testing.assert_allclose(modified(g_c, g_f, alpha), expected, rtol=1e-9, atol=1e-6)


def test_modified_leaves_the_orthogonal_part_alone():
    d = modified(np.array([3.0, 4.0]), np.array([0.0, 2.0]), 0.5)
    np.testing.assert_allclose(d, [3.0, -1.0])


@pytest.mark.parametrize("size", [0.0, 1e-320, 1e-200, 1e200])
def test_modified_is_finite_for_any_fairness_gradient(size):
    g_c = np.array([1.0, -2.0])
    d = modified(g_c, size * np.array([1.0, 0.0]), 0.1)
    assert np.isfinite(d).all()
    if size == 0:
        np.testing.assert_array_equal(d, g_c)
    else:
        assert d[0] == pytest.approx(-0.1 * size)


@given(vectors, vectors, alphas)
def test_conflict_projects_only_where_gradients_disagree(g_c, g_f, alpha):
    expected = modified if g_c @ g_f > 0 else normal
    np.testing.assert_array_equal(conflict(g_c, g_f, alpha), expected(g_c, g_f, alpha))


def test_conflict_of_several_notions():
    g_c, g_f = np.array([1.0, 1.0, 0.0]), np.array([[1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])
    # the first is in conflict and is projected out; the second agrees and stays
    np.testing.assert_allclose(conflict(g_c, g_f, 0.5), [-0.5, 1.5, 0.0])
    np.testing.assert_allclose(conflict(-g_c, -g_f * 0, 0.5), -g_c)


def test_a_notion_without_a_gradient_does_not_stop_the_others():
    g_c, g_f = np.array([3.0, 4.0]), np.array([0.0, 2.0])
    both = modified(g_c, np.array([g_f, [0.0, 0.0]]), 0.5)
    np.testing.assert_allclose(both, modified(g_c, g_f, 0.5))
    np.testing.assert_array_equal(modified(g_c, np.zeros((2, 2)), 0.5), g_c)


def test_schedules():
    assert [power_schedule(0.1, 0.5)(t) for t in (1, 4, 100)] == pytest.approx([0.1, 0.05, 0.01])
    assert power_schedule(1.0, 0.0)(7) == 1.0
    assert set(RULES) == {"normal", "modified", "conflict"}
