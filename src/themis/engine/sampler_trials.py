"""Trials: inputs that are run to explain a score, each at most once, and counted apart."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.subjects.decisions import NOT_RUN, Cells

# Executions that explanations may take: a share of all so far, and for each at least a few.
DEAR_SHARE, DEAR_LEAST = 20, 30  # of subjects outside of this process
SHARE, LEAST = 10, 100  # of functions that are called input by input
MOST = 1_000  # of subjects that take whole batches
LEFT_SHARE = 10  # at most this part of what the budget has left


class Trials:
    """Runs inputs for explanations and remembers them, also of a domain too large for that."""

    def __init__(self, runner: Runner) -> None:
        self._runner = runner
        self._outputs: dict[bytes, int] = {}
        self._spent = 0  # executions, and decisions that a cache file held instead

    @property
    def allowance(self) -> int:
        """How many executions the next explanation may take; it depends on nothing measured."""
        runner = self._runner
        if runner.subject.vectorised and not runner.is_external:
            own = MOST
        elif runner.is_external:
            own = max(DEAR_LEAST, runner.asked // DEAR_SHARE - self._spent)
        else:
            own = max(LEAST, runner.asked // SHARE - self._spent)
        return int(max(0, min(own, MOST, runner.executions_left // LEFT_SHARE)))

    @property
    def out_of_time(self) -> bool:
        """Whether the budget's time is over."""
        return self._runner.out_of_time

    def run(self, codes: NDArray[Any], most: int) -> tuple[Cells, int]:
        """The numbers of these inputs' answers, and how many executions they took.

        No more than `most` of those that are not known are run, the first ones; the others are
        NOT_RUN.
        """
        rows = [row.tobytes() for row in np.ascontiguousarray(codes)]
        cells = self._runner.known(codes)
        for place in np.flatnonzero(cells == NOT_RUN).tolist():
            cells[place] = self._outputs.get(rows[place], NOT_RUN)
        missing = np.flatnonzero(cells == NOT_RUN).tolist()
        new = {rows[place]: place for place in reversed(missing)}  # the first place of each
        chosen = sorted(new.values())[:most]
        self._spent += len(chosen)
        if chosen:
            with self._runner.apart():
                outputs = self._runner.run(codes[chosen])
            self._outputs.update(zip((rows[p] for p in chosen), outputs.tolist(), strict=True))
            for place in missing:
                cells[place] = self._outputs.get(rows[place], NOT_RUN)
        return cells, len(chosen)
