"""The matrix of inputs, made column by column: numbers, flags, and one input for each category."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_matrix


class Categories(NamedTuple):
    """The place of each row's category, −1 where a row has none, and the categories."""

    places: NDArray[np.int32]
    names: Sequence[str]


class InputColumns(NamedTuple):
    """What inputs are made of, in their order: numbers and flags have one input each."""

    numbers: list[NDArray[np.float64]]
    categories: list[Categories]
    n_rows: int

    @property
    def n_inputs(self) -> int:
        """How many inputs there are."""
        return len(self.numbers) + sum(len(c.names) for c in self.categories)

    def share_filled(self) -> float:
        """Give the share of the inputs that are numbers, or that are 1 in a row."""
        present = sum(int((c.places >= 0).sum()) for c in self.categories)
        return (len(self.numbers) * self.n_rows + present) / (self.n_rows * self.n_inputs)

    def _starts(self) -> Iterator[tuple[int, Categories]]:
        start = len(self.numbers)
        for categories in self.categories:
            yield start, categories
            start += len(categories.names)

    def dense(self) -> NDArray[np.float64]:
        """Make an array."""
        inputs = np.zeros((self.n_rows, self.n_inputs))
        for j, values in enumerate(self.numbers):
            inputs[:, j] = values
        for start, categories in self._starts():
            rows = np.flatnonzero(categories.places >= 0)
            inputs[rows, start + categories.places[rows]] = 1.0
        return inputs

    def sparse(self) -> Any:
        """Make a CSR matrix, in which no zero is written."""
        present = [values != 0 for values in self.numbers]
        present += [c.places >= 0 for c in self.categories]
        indptr = np.zeros(self.n_rows + 1, dtype=np.int64)
        for rows in present:
            indptr[1:] += rows
        np.cumsum(indptr, out=indptr)
        small = max(int(indptr[-1]), self.n_inputs) <= np.iinfo(np.int32).max
        indices = np.empty(indptr[-1], dtype=np.int32 if small else np.int64)
        data = np.ones(indptr[-1])
        place = indptr[:-1].copy()
        for j, values in enumerate(self.numbers):
            rows = present[j]
            indices[place[rows]] = j
            data[place[rows]] = values[rows]
            place += rows
        for rows, (start, categories) in zip(
            present[len(self.numbers) :], self._starts(), strict=True
        ):
            indices[place[rows]] = start + categories.places[rows]
            place += rows
        shape = self.n_rows, self.n_inputs
        return csr_matrix((data, indices, indptr.astype(indices.dtype)), shape=shape)
