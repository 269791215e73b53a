"""Neighbours: whether the answer to an input depends on the other inputs of its call."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from themis.engine.runner import Runner
from themis.subjects.decisions import Cells
from themis.subjects.readings import Reading

CALLS = (*(1,) * 24, *(8,) * 6)  # sizes of calls that show whether answers depend on the others
SOME = 8  # one of so many inputs that are alike is enough to see what depends on that
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


class Beside(NamedTuple):
    """Inputs that are run again beside others, and the answers that they got, once they are."""

    drawn: int  # base inputs from which they were chosen
    codes: NDArray[Any]
    cells: Cells


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

    def run_again(
        self,
        codes: NDArray[Any],
        first: Cells,
        alike: NDArray[np.bool_],
        beside: Beside | None = None,
    ) -> Cells:
        """Run inputs again in a few calls, each among others than before; look where that shows.

        One is alone, and those that are `alike` are by themselves, with another mixture of answers:
        whatever a call is compared with, its mean, its median, its size or the values that occur in
        it, is different there. The others may have been run `beside` something else.
        """
        cells = np.empty_like(first)
        for part in parts_of(first, alike):
            ran = (
                beside is not None
                and len(beside.cells)
                and np.array_equal(beside.codes, codes[part])
            )
            cells[part] = beside.cells if beside and ran else self._runner.repeat(codes[part])
        changed = (cells != first) & (first >= 0)
        if not changed.any():
            return cells
        others = np.where(changed, cells, first)
        for part in parts_of(first, alike, all_alike=True):
            again = self._runner.repeat(codes[part], again=6)
            others[part] = np.where(changed[part] | (first[part] < 0), others[part], again)
        whole = self._runner.repeat(codes, again=2)
        self.look(codes, others, whole)
        return whole if self.found else cells

    def doubt(self, codes: NDArray[Any], cells: Cells, before: Cells, reading: Reading) -> None:
        """See whether a call, now answered so, changed answers that one output had elsewhere."""
        now = reading.cells(cells)
        if self._is_to_blame(codes, cells, (now != before) & (before >= 0)):
            self._keep(codes, now, before, reading)

    def _is_to_blame(self, codes: NDArray[Any], cells: Cells, changed: NDArray[np.bool_]) -> bool:
        """Whether the call changed these answers, and not noise.

        A subject that gives the same call the same answers each time, and other calls others,
        depends on the other inputs of a call; else it is noise.
        """
        count = int(changed.sum())
        if count < FEWEST_NEIGHBOURS or not self._runner.traits.vectorised:
            return False
        if self._runner.executions_left < 2 * len(codes):
            return False
        if any((self._runner.repeat(codes, again=n) != cells).any() for n in (4, 5)):
            return False
        self.differing += count
        return True

    def _keep(self, codes: NDArray[Any], cells: Cells, others: Cells, reading: Reading) -> None:
        self.example = self.example or Example.first(codes, cells, others, reading)


def parts_of(
    answers: Cells, alike: NDArray[np.bool_], *, all_alike: bool = False
) -> list[NDArray[np.int64]]:
    """The places of inputs, by call: one, those that are alike, maybe the usual, and the others.

    Of those that are alike, with the usual answer a few are taken, so that answers are another
    mixture than in the others. Where they are too few for that, or all are wanted, the usual
    answers among the others have a call of their own.
    """
    rest = np.arange(1, len(answers))
    numbers, counts = np.unique(answers, return_counts=True)
    usual = (answers == (numbers[counts.argmax()] if len(answers) else 0))[1:]
    first = alike = alike[1:]
    if not all_alike and SOME * alike.sum() >= len(alike):
        rare = alike & ~usual
        few = np.flatnonzero(alike & usual)[:: SOME // 2 if rare.any() else 1]
        first, usual = rare, np.zeros_like(usual)
        first[few] = True
    chosen = (first, ~first & usual, ~(first | usual))
    parts = [np.arange(min(len(answers), 1)), *(rest[each] for each in chosen)]
    return [part for part in parts if len(part)]
