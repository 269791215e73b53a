"""Settings of a run: how sure, how precise, how expensive."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from themis.errors import Mistake, RequestError, suggest

NOISE_LIMIT = 0.01


class Stopping(StrEnum):
    """When sampling stops: so that the interval holds, or as the 2017 paper has it."""

    CERTIFIED = "certified"
    PAPER = "paper"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """How a score is measured. Raises RequestError with all mistakes at once.

    `stopping` is "certified" (the interval holds at the stated confidence although the number of
    tests is chosen while looking) or "paper" (the rule of the 2017 paper, for comparison).
    """

    confidence: float = 0.99
    error: float = 0.05
    seed: int = 0
    stopping: Stopping = Stopping.CERTIFIED
    max_executions: int | None = None
    max_seconds: float | None = None
    max_assignments: int = 1_000  # assignments tried per context before it counts as unknown
    probe: int | None = None  # inputs run again to look for noise; None: as befits the run
    max_noise: float | None = None  # of a score that noise may explain; None: NOISE_LIMIT, or error

    @property
    def noise_limit(self) -> float:
        """A score that noise alone may explain by more than this is inconclusive."""
        return min(NOISE_LIMIT, self.error) if self.max_noise is None else self.max_noise

    @classmethod
    def names(cls) -> tuple[str, ...]:
        """What can be set."""
        return tuple(each.name for each in fields(cls))

    def changed(self, **changes: Any) -> Settings:
        """The settings of one measurement; RequestError for changes that make no sense."""
        names = [name for name in self.names() if name != "seed"]
        mistakes = [
            Mistake("unknown-setting", name, "there is no such setting", suggest(name, names))
            for name in changes
            if name not in self.names()
        ]
        if "seed" in changes:
            problem, remedy = "the seed belongs to the whole audit", "give it to Audit(…, seed=…)"
            mistakes.append(Mistake("seed", "seed", problem, remedy))
        if mistakes:
            raise RequestError(mistakes)
        return replace(self, **changes)

    def __post_init__(self) -> None:
        mistakes = list(self._mistakes())
        if mistakes:
            raise RequestError(mistakes)
        object.__setattr__(self, "stopping", Stopping(self.stopping))  # it may be given as text

    def _mistakes(self) -> Iterator[Mistake]:
        for name in ("confidence", "error"):
            value = getattr(self, name)
            if not _is_number(value) or not 0 < value < 1:
                yield _mistake(
                    name,
                    f"must lie between 0 and 1, got {value!r}",
                    "write 0.99 for 99 %" if name == "confidence" else "write 0.05 for ± 0.05",
                )
        if not _is_whole(self.seed) or self.seed < 0:
            yield _mistake(
                "seed",
                f"must be a whole number of at least 0, got {self.seed!r}",
                "write for example 42",
            )
        if self.stopping not in tuple(Stopping):
            yield _mistake(
                "stopping", f"there is no rule {self.stopping!r}", 'write "certified" or "paper"'
            )
        if self.max_executions is not None and (
            not _is_whole(self.max_executions) or self.max_executions < 1
        ):
            yield _mistake(
                "max_executions",
                f"must be a whole number of at least 1, got {self.max_executions!r}",
                "leave it out for no limit",
            )
        if self.max_seconds is not None and (
            not _is_number(self.max_seconds) or self.max_seconds <= 0
        ):
            yield _mistake(
                "max_seconds",
                f"must be a positive number, got {self.max_seconds!r}",
                "leave it out for no limit",
            )
        if not _is_whole(self.max_assignments) or self.max_assignments < 2:
            yield _mistake(
                "max_assignments",
                f"must be a whole number of at least 2, got {self.max_assignments!r}",
                "leave it out for 1,000",
            )
        if self.probe is not None and (not _is_whole(self.probe) or self.probe < 0):
            yield _mistake(
                "probe",
                f"must be a whole number of at least 0, got {self.probe!r}",
                "write 300 to run 300 inputs again, 0 for none",
            )
        if self.max_noise is not None and (
            not _is_number(self.max_noise) or not 0 <= self.max_noise <= 1
        ):
            yield _mistake(
                "max_noise",
                f"must lie between 0 and 1, got {self.max_noise!r}",
                "write 0.02 for 2 points of a score",
            )


def check_repeats(repeats: Any) -> None:
    """Raise RequestError unless it is a number of runs."""
    if not _is_whole(repeats) or repeats < 1:
        problem = f"must be a whole number of at least 1, got {repeats!r}"
        raise RequestError([_mistake("repeats", problem, "write 5 for the majority of five runs")])


def _mistake(name: str, problem: str, remedy: str) -> Mistake:
    return Mistake("setting", name, problem, remedy)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
