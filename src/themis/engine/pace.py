"""The pace: how long the subject takes, and how many inputs are therefore run together, or called.

What is run together ends together: whether the subject fails too often is asked once all of it is
done. So a run ends at the same input wherever and however fast it runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from themis.subjects.base import Answers, Traits

TOGETHER = 2**19  # inputs at most; those who run them at several places wait between two batches
FIRST_BATCH = 16  # of a subject that gets its inputs one by one
GROWTH_SHARE = 8  # after that, at most this part of all that was run before
CALL = 65_536  # inputs of one call at most
CALL_VALUES = 2**22  # and so many values: a table of numbers is then of 32 MB
ROW_CALL = 16_384  # of a row function: each is a dictionary
CALL_SECONDS = 0.5  # calls of one input each are counted about this often
SPREAD_SECONDS = 2.0  # of a batch that others run, where time is limited
LONGEST_CALL = 2.0  # seconds of a call here, if inputs are several: it may not be interruptible
# Where time is limited, a call has at most this many times the inputs of the largest so far, and
# should end within one such part of the time left. It does even if seconds grow like the cube of
# the inputs; with 8 it might not, with 2 there are more calls.
MOST_GROWTH = 4
UNEVEN = 1.5  # times as long may a call take as another one for no reason


@dataclass
class CallTimes:
    """How long the smallest, the largest and the quickest batch took that were one call each."""

    smallest: tuple[int, float] = (0, 0.0)  # inputs, seconds
    largest: tuple[int, float] = (0, 0.0)
    quickest: tuple[int, float] = (0, 0.0)  # for each input: a model may be slow at first

    def add(self, inputs: int, seconds: float) -> None:
        """Take note of a call; of two of the same size the quicker one counts."""
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
    def seconds_each(self) -> float:
        """How long one input more takes, as far as can be seen, without what each call takes."""
        (few, quick), (many, slow) = self.smallest, self.largest
        each = self.quickest[1] / max(self.quickest[0], 1)
        seen = many >= 2 * few > 0 and slow >= quick
        return min(each, (slow - quick) / (many - few)) if seen else each

    def longest(self, left: float) -> float:
        """How many inputs a call may have so that an interrupt, and the limit, is met in time.

        As long as calls with more inputs hardly take longer there may be twice as many as before.
        Without a limit it is a power of two, or without end: how calls are cut shall not depend on
        every breath of the machine. With one, each input may take longer the more there are.
        """
        (few, quick), (many, slow) = self.smallest, self.largest
        is_larger, longest = many >= 2 * few > 0, min(LONGEST_CALL, max(left, 0.0) / MOST_GROWTH)
        is_flat = (many == 1 or is_larger) and slow <= min(UNEVEN * quick, left / MOST_GROWTH)
        least = 2.0 * many if is_flat else 1.0
        if math.isinf(left):
            size = max(longest / max(self.seconds_each, 1e-9), least)
            return math.inf if size >= CALL else 2.0 ** math.floor(math.log2(size))
        # Of the largest call, what its inputs took: not what the smallest one took as well.
        own = max(slow - quick, slow / MOST_GROWTH**2) if is_larger else slow
        return max(min(math.sqrt(longest / max(own, 1e-9)), MOST_GROWTH) * many, least)


@dataclass
class Pace:
    """How long the subject takes: for each execution, and for its calls."""

    traits: Traits
    calls: CallTimes = field(default_factory=CallTimes)
    seconds: float = 0.0  # of executions that are not for noise
    executions: int = 0

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
        return not self.traits.is_one_call or self.calls.largest[0] != 1

    @property
    def for_each(self) -> float | None:
        """How long one execution takes."""
        return self.seconds / self.executions if self.executions else None

    @property
    def for_more(self) -> float | None:
        """How long one execution more takes; a call that is larger may take hardly longer."""
        if self.traits.is_one_call and self.calls.largest[0] > 1:
            return self.calls.seconds_each
        return self.for_each

    @contextmanager
    def apart(self) -> Iterator[None]:
        """Within, what is run tells nothing of executions; calls are calls."""
        before = self.seconds, self.executions
        try:
            yield
        finally:
            self.seconds, self.executions = before

    def longest_call(self, left: float) -> float:
        """How many inputs a call in this process may have, with so many seconds left."""
        return self.calls.longest(left) if self.traits.is_one_call else math.inf


def steady_size(traits: Traits, spent: int) -> int:
    """How many inputs to run together where time is no limit: it depends on counts alone."""
    if traits.vectorised:
        return TOGETHER
    return min(max(spent // GROWTH_SHARE, FIRST_BATCH), TOGETHER)


def timely_size(traits: Traits, seconds: float | None, left: float) -> int:
    """How many to run together so that a limit of time is met; `seconds` is what one takes."""
    if seconds is None:
        return 1
    most, longest = (TOGETHER, SPREAD_SECONDS) if traits.executor else (ROW_CALL, CALL_SECONDS)
    # What is cut off at the deadline is lost: of single calls only half of the rest is planned.
    left = left if traits.vectorised else left / 2
    return min(most, max(int(min(longest, max(left, 0.0)) / max(seconds, 1e-9)), 1))


def call_size(traits: Traits, width: int, seconds: float | None) -> int:
    """How many of them are one call here, also of a subject that runs elsewhere unless it fails.

    An input has `width` values. Of functions that get their inputs one by one it has no
    consequences, and goes by their speed.
    """
    if traits.vectorised:
        return max(min(CALL, CALL_VALUES // width), 1)
    return FIRST_BATCH if seconds is None else timely_size(traits, seconds, math.inf)
