"""What each row adds to its own score, against fits without the row."""

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from scipy.special import expit

from evenhand.core.left_out import LeftOut
from evenhand.core.notions import find_notion
from evenhand.core.solvers import minimize_loss
from evenhand.engines.memory import make_oracle

N, D, L2 = 120, 8, 1e-2


def rows(seed=0):
    rng = np.random.default_rng(seed)
    z = (rng.uniform(size=N) < 0.4).astype(int)
    X = rng.normal(size=(N, D)) + 0.8 * z[:, None] * (np.arange(D) < 2)
    X = X @ (np.eye(D) + 0.4) * np.geomspace(10, 1e6, D) + np.r_[1990.0, np.zeros(D - 1)]
    y = (rng.uniform(size=N) < expit(X[:, 1] / X[:, 1].std())).astype(int)
    return X, y, z


def oracle_of(X, y, z, weight=None, notion="statistical_parity", **more):
    return make_oracle(
        X, y, z, notion=find_notion(notion), metric="whitened", l2=L2, sample_weight=weight, **more
    )


def optimum_of(oracle, start=None):
    start = np.zeros(oracle.n_weights) if start is None else start
    done = {"max_iter": 500, "tol": 1e-9, "callback": lambda iteration: None}
    return minimize_loss(oracle, start, **done)[0]


def effects(oracle, left_out):
    return np.concatenate(oracle.rows.apply(lambda block: left_out.effect(block).T), axis=1)


def without(i, oracle, X, y, z, weight):
    """Weights of the label's regression, in the same metric, without a row."""
    kept = np.arange(N) != i
    other = oracle_of(X[kept], y[kept], z[kept], None if weight is None else weight[kept])
    other.metric, other.cells = oracle.metric, oracle.cells
    other.ridge = oracle.ridge * oracle.total / other.total  # the same in sums over rows
    return other.weights(optimum_of(other))


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
def test_a_row_s_own_part_is_what_a_fit_without_it_loses(weighted, layout):
    X, y, z = rows()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, N) if weighted else None
    oracle = oracle_of(layout(X), y, z, weight)
    w = oracle.weights(optimum_of(oracle))
    found = effects(oracle, LeftOut.of(oracle, w, w[None], whole=True))[0]
    assert np.abs(found).max() > 0.2
    for i in range(0, N, 10):
        other = without(i, oracle, X, y, z, weight)
        lost = (X[i] @ w[:-1] + w[-1]) - (X[i] @ other[:-1] + other[-1])
        assert found[i] == pytest.approx(lost, rel=0.03, abs=1e-4)


@pytest.mark.parametrize("layout", [np.asarray, csr_matrix])
def test_a_row_of_weight_two_is_two_rows(layout):
    X, y, z = rows()
    twice, weight = np.r_[np.arange(N), np.arange(10)], np.r_[np.full(10, 2.0), np.ones(N - 10)]
    found = []
    for oracle in (
        oracle_of(layout(X), y, z, weight),
        oracle_of(layout(X[twice]), y[twice], z[twice]),
    ):
        w = oracle.weights(optimum_of(oracle))
        found.append(effects(oracle, LeftOut.of(oracle, w, np.stack([w, -w])))[:, :N])
    np.testing.assert_allclose(*found, rtol=1e-4, atol=1e-6)


def test_a_group_s_regression_counts_among_the_rows_that_it_is_about():
    """With the groups as labels the group's regression is the label's."""
    X, y, z = rows()
    odds, swapped = oracle_of(X, y, z, notion="equal_opportunity"), oracle_of(X, z, y)
    w = odds.weights(optimum_of(odds))
    left_out = LeftOut.of(odds, w, w[None])
    alone = left_out._replace(shares=np.array([[0.0], [1.0]]))
    found = effects(odds, alone)[0]
    assert (found[y == 0] == 0).all()
    parity = oracle_of(X, y, z)
    of_group = LeftOut.of(parity, w, w[None])._replace(shares=np.array([[0.0], [1.0]]))
    v = swapped.weights(optimum_of(swapped))
    same = effects(swapped, LeftOut.of(swapped, v, v[None])._replace(shares=np.eye(2)[:, :1]))
    np.testing.assert_allclose(effects(parity, of_group)[0], same[0], rtol=0.02, atol=1e-3)


def test_iterates_are_taken_apart_into_their_regressions():
    X, y, z = rows()
    oracle = oracle_of(X, y, z)
    w = oracle.weights(optimum_of(oracle))
    plain = LeftOut.of(oracle, w, w[None])
    mixed = plain.weights @ np.array([[1.0, 2.0, 0.0], [0.0, -3.0, 0.5]])
    mixed[-1] += 7.0  # a score is cut anywhere
    np.testing.assert_allclose(
        LeftOut.of(oracle, w, mixed.T).shares, [[1, 2, 0], [0, -3, 0.5]], atol=1e-6
    )


def test_tensors_give_the_same():
    torch = pytest.importorskip("torch")
    from evenhand.core.rows import as_columns
    from evenhand.engines.torch import TorchRows

    X, y, z = rows()
    oracle = oracle_of(X, y, z)
    w = oracle.weights(optimum_of(oracle))
    left_out = LeftOut.of(oracle, w, np.stack([w, 2 * w]))
    tensors = TorchRows(torch.tensor(X), as_columns(N, y, z, n_labels=2), "cpu")
    found = np.concatenate(
        [np.asarray(v) for v in tensors.apply(lambda block: left_out.effect(block).T)], axis=1
    )
    np.testing.assert_allclose(found, effects(oracle, left_out), rtol=1e-6, atol=1e-9)
    oracle.rows = tensors
    again = LeftOut.of(oracle, w, np.stack([w, 2 * w]))
    np.testing.assert_allclose(again.shares, left_out.shares, atol=1e-8)


def test_it_is_the_same_in_other_coordinates():
    X, y, z = rows()
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = []
    for metric in ("whitened", "none"):
        oracle = make_oracle(X, y, z, notion=find_notion("statistical_parity"), metric=metric, l2=0)
        w = found[0][0] if found else oracle.weights(optimum_of(oracle))
        found.append((w, effects(oracle, LeftOut.of(oracle, w, w[None]))))
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-6, atol=1e-8)
