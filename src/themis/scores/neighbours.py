"""Neighbours: whether the answer to an input depends on the other inputs of its call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.inputs.keys import InputKeys, first_places
from themis.statistics.intervals import Flags
from themis.subjects.decisions import NOT_RUN, Cells
from themis.subjects.readings import Reading

CALLS = (*(1,) * 24, *(8,) * 6)  # sizes of calls that show whether answers depend on the others
FEWEST_NEIGHBOURS = 3  # inputs whose answers changed with the call, and not when it was made again
AGAIN = 12  # divided by those inputs: how often the call must come out the same; at least twice
AMONG = 4_096  # others at most, of a call like the first ones


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
        if self._is_to_blame(codes, whole, others != whole):
            for reading in self._readings:
                self._keep(codes, reading.cells(whole), reading.cells(others), reading)

    def run_again(self, codes: NDArray[Any], first: Cells, alike: Flags, opened: Cells) -> Cells:
        """Run inputs again in a few calls, each among others than before; look where that shows.

        One is alone, those that are `alike` are by themselves, and of the others those with the
        usual answer: whatever a call is compared with, its mean, its median, its size or the values
        that occur in it, is different there. Those `opened` have been run so already.
        """
        cells = opened.copy()
        for part in _apart(first, alike):
            left = part[cells[part] == NOT_RUN]
            if len(left):
                cells[left] = self._runner.repeat(codes[left])
        changed = (cells != first) & (first >= 0)
        if not changed.any():
            return cells
        whole = self._runner.repeat(codes, again=2)
        self.look(codes, np.where(changed, cells, first), whole)
        return whole if self.found else cells

    def doubt(
        self,
        codes: NDArray[Any],
        cells: Cells,
        before: Cells,
        reading: Reading,
        others: NDArray[Any],
    ) -> None:
        """See whether a call, now answered so, changed answers that one output had elsewhere.

        Those may have been noise, and the inputs chosen for it: so they are asked for once more,
        among `others`, which are as mixed as those of the first calls.
        """
        now = reading.cells(cells)
        changed = np.flatnonzero((now != before) & (before >= 0))
        changed = changed[first_places(InputKeys.among(codes).of(codes[changed]))]
        wanted = len(changed) + len(others) + 2 * len(codes)
        if len(changed) < FEWEST_NEIGHBOURS or self._runner.executions_left < wanted:
            return
        mixed = self._runner.repeat(np.concatenate([codes[changed], others]), again=3)
        elsewhere = cells.copy()
        again = mixed[: len(changed)]
        elsewhere[changed] = np.where(again >= 0, again, cells[changed])
        if self._is_to_blame(codes, cells, reading.cells(elsewhere) != now):
            self._keep(codes, now, before, reading)

    def _is_to_blame(self, codes: NDArray[Any], cells: Cells, changed: Flags) -> bool:
        """Whether the call changed these answers, and not noise.

        A subject that gives the same call the same answers each time, and other calls others,
        depends on the other inputs of a call; else it is noise.
        """
        count = int(changed.sum())
        if count < FEWEST_NEIGHBOURS or not self._runner.traits.vectorised:
            return False
        again = range(4, 4 + max(2, AGAIN // count))
        if self._runner.executions_left < len(again) * len(codes):
            return False
        if any((self._runner.repeat(codes, again=n) != cells).any() for n in again):
            return False
        self.differing += count
        return True

    def _keep(self, codes: NDArray[Any], cells: Cells, others: Cells, reading: Reading) -> None:
        self.example = self.example or Example.first(codes, cells, others, reading)


def _apart(answers: Cells, alike: Flags) -> list[NDArray[np.int64]]:
    """The places of all answers: one, those of inputs that are alike, the usual, and the others."""
    places = np.arange(len(answers))
    rest = places[1:][~alike[1:]]
    numbers, counts = np.unique(answers[rest], return_counts=True)
    usual = answers[rest] == (numbers[counts.argmax()] if len(rest) else 0)
    if (~usual).sum() < FEWEST_NEIGHBOURS:  # too few to say anything
        usual[:] = True
    parts = [places[:1], places[1:][alike[1:]], rest[usual], rest[~usual]]
    return [part for part in parts if len(part)]
