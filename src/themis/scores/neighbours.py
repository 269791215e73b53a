"""Neighbours: whether the answer to an input depends on the other inputs of its call."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.subjects.decisions import Cells
from themis.subjects.readings import Reading

CALLS = (*(1,) * 24, *(8,) * 6)  # sizes of calls that show whether answers depend on the others
FEW_ALIKE = 8  # inputs that get a call together, if all have the same answer
SINGLES = 3  # inputs that get a call of their own where calls are to be few
FEWEST_NEIGHBOURS = 3  # answers that changed with the call, and not when it was made again


@dataclass(frozen=True)
class Example:
    """One input that got two different answers."""

    codes: NDArray[Any]
    answers: tuple[int, int]  # their numbers
    reading: Reading  # the output that they are about

    @classmethod
    def first(
        cls, codes: NDArray[Any], before: Cells, after: Cells, reading: Reading
    ) -> Example | None:
        """The first input with two different answers, neither of which is a failure."""
        both = np.flatnonzero((before != after) & (before >= 0) & (after >= 0))
        if not len(both):
            return None
        place = int(both[0])
        return cls(codes[place].copy(), (int(before[place]), int(after[place])), reading)


class Neighbours:
    """What is known of the calls of a subject that takes whole batches."""

    def __init__(self, runner: Runner, readings: Sequence[Reading]) -> None:
        self._runner, self._readings = runner, readings
        self.differing = 0  # inputs whose answers changed with the others of their call alone
        self.example: Example | None = None

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
        others = np.where(first >= 0, first, whole)
        others[: len(few)] = np.where(apart != whole[: len(few)], apart, others[: len(few)])
        repeat = partial(runner.repeat, codes)
        self._judge(codes, whole, others, repeat)

    def run_again(self, codes: NDArray[Any], first: Cells) -> Cells:
        """Run inputs again in a few calls, each among others than before, and see what changed.

        Some are alone, and those with the usual answer are apart from the rest: whatever a call is
        compared with, its mean, its median or its size, is different there.
        """
        parts = _alike(first)

        def repeat(*, again: int = 1) -> Cells:
            cells = np.empty_like(first)
            for part in parts:
                cells[part] = self._runner.repeat(codes[part], again=again)
            return cells

        cells = repeat()
        self._judge(codes, cells, np.where(first >= 0, first, cells), repeat)
        return cells

    def _judge(
        self, codes: NDArray[Any], cells: Cells, others: Cells, repeat: Callable[..., Cells]
    ) -> None:
        """Keep an example where these calls changed answers; `repeat` makes the same ones again."""
        if self._is_to_blame(cells, others != cells, repeat):
            for reading in self._readings:
                self._keep(codes, reading.cells(cells), reading.cells(others), reading)

    def doubt(self, codes: NDArray[Any], cells: Cells, before: Cells, reading: Reading) -> None:
        """See whether a call, now answered so, changed answers that one output had elsewhere."""
        now = reading.cells(cells)
        changed = (now != before) & (before >= 0)
        if self._is_to_blame(cells, changed, partial(self._runner.repeat, codes)):
            self._keep(codes, now, before, reading)

    def _is_to_blame(
        self, cells: Cells, changed: NDArray[np.bool_], repeat: Callable[..., Cells]
    ) -> bool:
        """Whether the calls changed these answers, and not noise; `repeat` makes them again.

        A subject that gives the same call the same answers each time, and other calls others,
        depends on the other inputs of a call; else it is noise.
        """
        count = int(changed.sum())
        if count < FEWEST_NEIGHBOURS or not self._runner.traits.vectorised:
            return False
        if any((repeat(again=n) != cells).any() for n in (4, 5)):
            return False
        self.differing += count
        return True

    def _keep(self, codes: NDArray[Any], cells: Cells, others: Cells, reading: Reading) -> None:
        self.example = self.example or Example.first(codes, cells, others, reading)


def _alike(answers: Cells) -> list[NDArray[np.int64]]:
    """The places of all answers: a few alone, those with the usual answer, and the others."""
    places = np.arange(len(answers))
    rest = places[SINGLES:]
    numbers, counts = np.unique(answers[rest], return_counts=True)
    usual = answers[rest] == numbers[counts.argmax()] if len(rest) else rest == 0
    if usual.all():  # all are alike: then a few are apart
        usual = np.arange(len(rest)) >= FEW_ALIKE
    parts = [*places[:SINGLES, None], rest[usual], rest[~usual]]
    return [part for part in parts if len(part)]
