"""The account of executions: what they may cost, what they were for, and what was known before."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Literal

from themis.errors import Mistake, RequestError
from themis.settings import Settings
from themis.subjects.base import Subject

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
