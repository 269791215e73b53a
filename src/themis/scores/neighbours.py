"""Neighbours: whether the answer to an input depends on the other inputs of its call."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.subjects.decisions import Cells

CALLS = (*(1,) * 24, *(8,) * 6)  # sizes of calls that show whether answers depend on the others
FEWEST_NEIGHBOURS = 3  # answers that changed with the call, and not when it was made again


class Neighbours:
    """What is known of the calls of a subject that takes whole batches."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self.differing = 0  # inputs whose answers changed with the others of their call alone

    @property
    def found(self) -> bool:
        """Whether answers depend on the other inputs of a call, and not on chance."""
        return self.differing >= FEWEST_NEIGHBOURS

    def look(self, codes: NDArray[Any], first: Cells, whole: Cells) -> None:
        """See whether inputs that were run in one call get other answers among few others."""
        few = codes[: sum(CALLS)]
        runner = self._runner
        if runner.executions_left < 2 * len(codes) + len(few) or runner.out_of_time:
            return
        ends = np.minimum(np.cumsum((0, *CALLS)), len(few))
        parts = [few[start:end] for start, end in itertools.pairwise(ends) if end > start]
        apart = np.concatenate([runner.repeat(part, again=3) for part in parts])
        changed = (first != whole) & (first >= 0)
        changed[: len(few)] |= apart != whole[: len(few)]
        self.doubt(codes, whole, int(changed.sum()))

    def doubt(self, codes: NDArray[Any], cells: Cells, changed: int) -> None:
        """Take note that so many of the answers to a call differ from what they were elsewhere.

        A subject that gives the same call the same answers each time, and other calls others,
        depends on the other inputs of a call; else it is noise.
        """
        if changed < FEWEST_NEIGHBOURS or not self._runner.traits.vectorised:
            return
        if any((self._runner.repeat(codes, again=n) != cells).any() for n in (4, 5)):
            return
        self.differing += changed
