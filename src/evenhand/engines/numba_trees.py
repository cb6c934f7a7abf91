"""Sums over decision trees in one loop over the rows, compiled by numba."""

from typing import Any

from numba import njit


@njit(cache=True, nogil=True)
def add_leaves(
    X: Any, out: Any, roots: Any, output: Any, feature: Any, threshold: Any, left: Any, right: Any,
    missing_left: Any, category: Any, sets: Any, values: Any,
) -> None:  # fmt: skip
    """Add to each row's outputs, tree by tree, the value of the leaf that it falls into."""
    for i in range(X.shape[0]):
        for t in range(len(roots)):
            node = roots[t]
            while node >= 0:
                x, s = X[i, feature[node]], category[node]
                if s >= 0 and 0 <= x < sets.shape[1]:
                    goes_left = sets[s, int(x)]
                elif s >= 0 or x != x:
                    goes_left = missing_left[node]
                else:
                    goes_left = x <= threshold[node]
                node = left[node] if goes_left else right[node]
            out[i, output[t]] += values[-1 - node]
