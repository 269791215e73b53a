"""Folding a domain along the characteristics of sets, each set from one that has one less.

What is left of a domain after that are the contexts of a set: the largest and the smallest output
in each, and its weight.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.subjects.decisions import Cells

KEPT = 2**22  # contexts of folded domains that are kept, at most


class Folded(NamedTuple):
    """The contexts of a set; along its own characteristics there is one place left."""

    largest: NDArray[Any]  # output
    smallest: NDArray[Any]  # output that there is: as an unsigned number, what is none is largest
    weights: NDArray[Any]

    @property
    def flips(self) -> NDArray[np.bool_]:
        """In which contexts two outputs differ."""
        differ = self.smallest != self.largest.view(self.smallest.dtype)
        return np.asarray((self.largest >= 0) & differ)

    def along(self, axis: int) -> Folded:
        """Folded along one more characteristic."""
        return Folded(
            self.largest.max(axis=axis, keepdims=True),
            self.smallest.min(axis=axis, keepdims=True),
            self.weights.sum(axis=axis, keepdims=True),
        )


@dataclass
class Folding:
    """Folds a domain, with one axis per characteristic, and keeps what it has folded last."""

    cells: Cells
    weights: NDArray[Any]
    _kept: dict[tuple[int, ...], Folded] = field(default_factory=dict)
    _size: int = 0  # contexts of all that is kept

    def of(self, columns: tuple[int, ...]) -> Folded:
        """The contexts of the set of these columns."""
        if not columns:
            unsigned = np.dtype(f"u{self.cells.itemsize}")
            return Folded(self.cells, self.cells.view(unsigned), self.weights)
        if (found := self._kept.get(columns)) is None:
            found = self._fold(columns)
            self._keep(columns, found)
        return found

    def _fold(self, columns: tuple[int, ...]) -> Folded:
        """From the smallest domain that is kept and lacks one of the columns, if one is."""
        by_size = sorted(columns, key=lambda column: self.cells.shape[column])
        smaller = [tuple(each for each in columns if each != column) for column in by_size]
        place = next((n for n, others in enumerate(smaller) if others in self._kept), 0)
        return self.of(smaller[place]).along(by_size[place])

    def _keep(self, columns: tuple[int, ...], found: Folded) -> None:
        self._kept[columns] = found
        self._size += found.largest.size
        while self._size > KEPT and len(self._kept) > 1:
            oldest = next(iter(self._kept))
            self._size -= self._kept.pop(oldest).largest.size
