"""The pace: how long executions and calls of the subject take, as measured so far."""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from themis.subjects.base import Answers

FEW_INPUTS = 16  # a call with so many tells little of what one input more takes
UNEVEN = 1.5  # times as long may a call take as another one for no reason


@dataclass
class CallTimes:
    """How long the smallest, the largest and the quickest batch took that were one call each."""

    smallest: tuple[int, float] = (0, 0.0)  # inputs, seconds
    largest: tuple[int, float] = (0, 0.0)
    quickest: tuple[int, float] = (0, 0.0)  # for each input: a model may be slow at first
    seconds: float = 0.0  # of all of them

    def add(self, inputs: int, seconds: float) -> None:
        """Take note of a call; of two of the same size the quicker one counts."""
        self.seconds += seconds
        if not self.largest[0]:
            self.smallest = self.largest = self.quickest = inputs, seconds
        self.smallest = min(self.smallest, (inputs, seconds))
        if (inputs, -seconds) > (self.largest[0], -self.largest[1]):
            self.largest = inputs, seconds
        if seconds * self.quickest[0] < self.quickest[1] * inputs:
            self.quickest = inputs, seconds

    @property
    def seconds_alone(self) -> float:
        """How long a call takes beside its inputs, as far as can be seen."""
        few, quick = self.smallest
        return max(quick - few * self.seconds_each, 0.0)

    @property
    def seconds_of_inputs(self) -> float:
        """How much of the largest call its inputs took, at most: not what the smallest took too."""
        (few, quick), (inputs, seconds) = self.smallest, self.largest
        return max(seconds - quick, seconds / 4) if inputs >= 2 * few else seconds

    @property
    def seconds_each(self) -> float:
        """How long one input more takes, as far as can be seen, without what each call takes."""
        (few, quick), (many, slow) = self.smallest, self.largest
        each = self.quickest[1] / max(self.quickest[0], 1)
        return min(each, (slow - quick) / (many - few)) if self._tells_more else each

    @property
    def _tells_more(self) -> bool:
        """Whether it is seen what one input more takes: the larger call took longer."""
        (few, quick), (many, slow) = self.smallest, self.largest
        return many >= 2 * few > 0 and slow >= quick

    def grown(self, longest: float, most: float) -> int:
        """How many inputs a call may have although it is not known what one input more takes.

        Even if it takes as much longer as it is larger, it ends in time. It may take longer only
        where calls are about as long with one input. As long as those with a few cost no more for
        each input they stay as they are: once it may have been the machine.
        """
        (few, quick), (inputs, seconds) = self.smallest, self.largest
        pays = seconds * few <= UNEVEN * quick * inputs
        worth = pays and seconds <= min(max(longest, 2 * UNEVEN * quick), most)
        flat = inputs >= 2 * few > 0 and seconds <= quick * math.sqrt(inputs / few)
        if self._tells_more and not flat:
            return inputs if worth and inputs <= FEW_INPUTS else 1
        factors = [each for each in (4, 2) if each * seconds <= longest]
        if not factors and (flat or inputs == 1) and seconds <= min(2 * quick, most / 2):
            factors = [2]
        return max(factors, default=int(flat and worth)) * inputs or 1


@dataclass
class Pace:
    """How long the subject takes: for each execution, and for its calls."""

    is_one_call: bool  # what is run together is one call here
    calls: CallTimes = field(default_factory=CallTimes)
    seconds: float = 0.0  # of executions that are not for noise
    executions: int = 0
    finding: float = 0.0  # seconds with what a cache file held, and nothing was run

    def add(self, answers: Answers, seconds: float) -> None:
        """Take note of a batch that was run."""
        count = len(answers.outputs)
        self.seconds += seconds
        self.executions += count
        inputs, took = (count, seconds) if answers.calls == 1 else answers.largest
        if inputs:
            self.calls.add(inputs, took)

    @property
    def knows_more_than_one(self) -> bool:
        """Whether it tells what many inputs take: calls with one alone do not."""
        return not self.is_one_call or self.calls.largest[0] != 1

    def for_each(self, asked: int) -> float | None:
        """How long one execution takes, of so many that were asked for.

        Where a cache file held all of them: how long it takes to find one there.
        """
        if self.executions:
            return self.seconds / self.executions
        return self.finding / max(asked, 1) if self.finding else None

    def for_more(self, asked: int) -> float | None:
        """How long one execution more takes; a call that is larger may take hardly longer."""
        if self.is_one_call and self.calls.largest[0] > 1:
            return self.calls.seconds_each
        return self.for_each(asked)

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within, what is run tells nothing of executions; calls are calls."""
        before = self.seconds, self.executions, self.finding
        try:
            yield
        finally:
            self.seconds, self.executions, self.finding = before
