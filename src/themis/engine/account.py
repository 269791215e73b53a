"""The account: what executions may cost, what they were for, what was known, how long they take.

What is run together ends together: whether the subject fails too often is asked once all of it is
done. So a run ends at the same input wherever and however fast it runs.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Literal

from themis.errors import Mistake, RequestError
from themis.settings import Settings
from themis.subjects.base import Answers, Subject, Traits

LIMITS = ("max_executions", "max_total_tokens", "max_spend")

Purpose = Literal["sampling", "noise", "explanations"]


@dataclass(frozen=True)
class Budget:
    """What a run may cost.

    An input whose decision a cache file holds counts like an execution: so a run ends at the same
    place whatever the file knew before.
    """

    max_executions: int | None = None
    max_seconds: float | None = None
    max_total_tokens: int | None = None  # answers that a cache file holds use none
    max_spend: float | None = None
    ahead: bool = True  # whether idle slots may run what will probably be asked for

    @classmethod
    def of(cls, settings: Settings, subject: Subject) -> Budget:
        """That of these settings; RequestError where this subject has no tokens or no prices."""
        mistakes = []
        if settings.max_total_tokens is not None and subject.tokens is None:
            problem, remedy = "this program uses no tokens", "remove it, or write max_executions"
            mistakes.append(Mistake("setting", "max_total_tokens", problem, remedy))
        if settings.max_spend is not None and subject.prices is None:
            problem = "what is spent is only known with prices"
            remedy = "write [subject.prices] of a chat subject, or max_executions"
            mistakes.append(Mistake("setting", "max_spend", problem, remedy))
        if mistakes:
            raise RequestError(mistakes)
        return cls(**{each.name: getattr(settings, each.name) for each in fields(cls)})

    @cached_property
    def limits(self) -> dict[str, float]:
        """The limits that do not depend on time, by the settings that they come from."""
        given = {name: getattr(self, name) for name in LIMITS}
        return {name: limit for name, limit in given.items() if limit is not None}


@dataclass(frozen=True)
class Spent:
    """How often a subject was run, and for what; the first four sum up to all that it saw."""

    sampling: int = 0
    noise: int = 0  # run again, or to have something to run again
    explanations: int = 0  # to make witnesses plain, to look for regions, to see who loses
    isolating: int = 0  # inputs run again to find those that fail, or because no answer came
    calls: int = 0  # of a function, requests to a service, programs started, exchanges
    from_memory: int = 0  # answers that this process knew, of all but those for noise
    from_cache: int = 0  # answers that a cache file held, of all but those for noise
    ahead: int = 0  # inputs that were run and not asked for so far; they are no executions yet
    tokens_in: int = 0  # of a language model: what it read, what it wrote
    tokens_out: int = 0
    tokens_estimated: int = 0  # of both, those that the service did not count

    @property
    def executions(self) -> int:
        """All inputs that the subject was given, each time that it was given one."""
        return self.sampling + self.noise + self.explanations + self.isolating

    @property
    def cache_hits(self) -> int:
        """Answers that were known before."""
        return self.from_memory + self.from_cache

    def __sub__(self, before: Spent) -> Spent:
        names = [each.name for each in fields(self)]
        return Spent(**{name: getattr(self, name) - getattr(before, name) for name in names})


class Ledger:
    """The one place that counts: every answer is written down here by whoever got it."""

    def __init__(self) -> None:
        self.asked = 0  # executions, and decisions that a cache file held instead; not for noise
        self.asked_again = 0  # the same for noise
        self.purpose: Purpose = "sampling"  # of what is run now
        self.latest: Purpose = "sampling"  # of what is run now, or was run last
        self.planned: int | None = None  # executions that its plan has left, where there is one
        self._spent = dict.fromkeys((each.name for each in fields(Spent)), 0)

    @property
    def spent(self) -> Spent:
        """All that was counted so far."""
        return Spent(**self._spent)

    @contextmanager
    def counting_as(self, purpose: Purpose) -> Iterator[None]:
        """Within, executions are counted as made for this purpose."""
        before, self.purpose = self.purpose, purpose
        self.begin()
        try:
            yield
        finally:
            self.purpose = before

    def begin(self) -> None:
        """Something is run now: what was planned for another purpose is done with."""
        if self.latest != self.purpose:
            self.latest, self.planned = self.purpose, None

    def ask(self, count: int) -> None:
        """So many answers were asked for that no memory held: what counts for budgets."""
        if self.purpose == "noise":
            self.asked_again += count
        else:
            self.asked += count

    def execute(self, count: int, *, isolating: int = 0, calls: int = 0) -> None:
        """The subject was run on so many inputs."""
        self._spent[self.purpose] += count
        if self.planned is not None:
            self.planned = max(self.planned - count, 0)
        self._spent["isolating"] += isolating
        self._spent["calls"] += calls

    def run_ahead(self, count: int) -> None:
        """The subject was run on so many inputs that nobody has asked for yet."""
        self._spent["ahead"] += count

    def take_ahead(self, count: int) -> None:
        """So many inputs that were run ahead were asked for: they count as executed now."""
        self._spent["ahead"] -= count
        self._spent[self.purpose] += count

    def remember(self, count: int) -> None:
        """So many answers were known to this process."""
        self._know("from_memory", count)

    def find(self, count: int) -> None:
        """So many answers were in a cache file."""
        self._know("from_cache", count)

    def _know(self, source: str, count: int) -> None:
        if self.purpose != "noise":  # nothing is planned from what is run again
            self._spent[source] += count


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
        # A call may take half as long again as another one for no reason.
        is_flat = (many == 1 or is_larger) and slow <= min(1.5 * quick, left / MOST_GROWTH)
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
    runs: int = 1  # of each input
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

    def batch_size(self, spent: int, left: float) -> int:
        """How many inputs to run together, after so many executions and with so many seconds left.

        Only a limit of time lets it depend on the speed.
        """
        traits = self.traits
        if traits.external:
            return max(traits.batch_size, 2 * (traits.jobs or 1))  # two for each job, at the least
        if math.isinf(left) and traits.vectorised:
            return TOGETHER
        if math.isinf(left):
            return min(max(spent // self.runs // GROWTH_SHARE, FIRST_BATCH), TOGETHER)
        if traits.is_one_call:
            return max(int(min(self.longest_call(left), TOGETHER)) // self.runs, 1)
        return self._timely_size(left)

    def call_size(self, width: int, left: float) -> int:
        """How many inputs of so many values are one call here.

        Also of a subject that runs elsewhere unless it fails. Of functions that get their inputs
        one by one it has no consequences, and goes by their speed.
        """
        if self.traits.vectorised:
            most = max(min(CALL, CALL_VALUES // width), 1)
        else:
            most = self._timely_size(math.inf) if self.executions else FIRST_BATCH
        return int(min(most, self.longest_call(left)))

    def _timely_size(self, left: float) -> int:
        """How many to run together so that a limit of time is met."""
        if self.for_each is None:
            return 1
        spread = self.traits.executor
        most, longest = (TOGETHER, SPREAD_SECONDS) if spread else (ROW_CALL, CALL_SECONDS)
        # What is cut off at the deadline is lost: of single calls only half of the rest is planned.
        left = left if self.traits.vectorised else left / 2
        seconds = max(self.runs * self.for_each, 1e-9)
        return min(most, max(int(min(longest, max(left, 0.0)) / seconds), 1))
