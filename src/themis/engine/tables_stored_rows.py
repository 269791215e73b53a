"""The outputs of one set's table that are kept for other sets and later questions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import Any

import numpy as np

from themis.inputs.assignments import Assignments
from themis.subjects.decisions import Cells


class StoredRows:
    """The first rows of one set's table, in the blocks in which they came."""

    def __init__(self, assignments: Assignments, dtype: np.dtype[Any]) -> None:
        self.assignments = assignments
        self.count = 0
        self.bytes = 0
        self._starts: list[int] = []
        self._blocks: list[Cells] = []
        self._none: Cells = np.empty((0, assignments.count), dtype=dtype)

    def rows(self, start: int, stop: int) -> Cells:
        """Those of the rows start..stop that are kept: from `start` on, without a gap."""
        return np.concatenate([self._none, *self._between(start, stop)])

    def put(self, start: int, cells: Cells) -> None:
        """Keep rows from `start` on, which is at most `count`; known ones are replaced."""
        known = min(self.count - start, len(cells))
        place = 0
        for part in self._between(start, start + known):
            part[:] = cells[place : place + len(part)]
            place += len(part)
        if known < len(cells):
            self._starts.append(self.count)
            self._blocks.append(cells[known:].copy(order="F"))
            self.count += len(cells) - known
            self.bytes += self._blocks[-1].nbytes

    def _between(self, start: int, stop: int) -> Iterator[Cells]:
        """The blocks' parts that hold these rows, as views."""
        place = bisect_right(self._starts, start) - 1
        while 0 <= place < len(self._starts) and self._starts[place] < stop:
            offset = self._starts[place]
            part = self._blocks[place][max(start - offset, 0) : stop - offset]
            if len(part):
                yield part
            place += 1
