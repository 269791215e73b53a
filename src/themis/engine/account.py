"""The account of executions: what a subject was run for, counted at its door."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Literal

Purpose = Literal["sampling", "noise", "explanations"]


@dataclass(frozen=True)
class Spent:
    """How often a subject was run, and for what; the first four sum up to all that it saw."""

    sampling: int = 0
    noise: int = 0  # run again, or to have something to run again
    explanations: int = 0  # to make witnesses plain, to look for regions, to see who loses
    isolating: int = 0  # inputs run again to find those that fail, or because no answer came
    calls: int = 0  # of a function, requests to a service, programs started, exchanges
    cache_hits: int = 0  # answers that were known before, of all but those for noise

    @property
    def executions(self) -> int:
        """All inputs that the subject was given, each time that it was given one."""
        return self.sampling + self.noise + self.explanations + self.isolating

    def __sub__(self, before: Spent) -> Spent:
        names = [each.name for each in fields(self)]
        return Spent(**{name: getattr(self, name) - getattr(before, name) for name in names})
