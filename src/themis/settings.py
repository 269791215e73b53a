"""Settings of a run: confidence, precision and cost."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from enum import StrEnum
from typing import Any

from themis.errors import Mistake, RequestError, suggest
from themis.keys import (
    FRACTION,
    PERCENT,
    POSITIVE,
    SHARE,
    TRUTH,
    Rule,
    at_least,
    broken_rules,
    optional,
)

NOISE_LIMIT = 0.01
_NONE = "leave it out for no limit"


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

    confidence: float = optional(
        0.99, "Confidence level of the intervals", rule=FRACTION, remedy=PERCENT
    )
    family: bool = optional(
        False,
        "One confidence for all results of a command together",
        True,
        rule=TRUTH,
        remedy="write true to divide 1 − confidence among them, beforehand",
    )
    error: float = optional(
        0.05, "Half-width of the intervals", rule=FRACTION, remedy="write 0.05 for ± 0.05"
    )
    seed: int = optional(
        0, "The same seed gives the same result", rule=at_least(0), remedy="write for example 42"
    )
    stopping: Stopping = optional(
        Stopping.CERTIFIED,
        "The stopping rule; paper is that of the 2017 paper",
        rule=Rule("there is no rule {}", {"enum": [*Stopping]}, lambda value: value in [*Stopping]),
        remedy='write "certified" or "paper"',
    )
    exact: bool = optional(
        False,
        "Run every input, however many, for exact scores",
        True,
        rule=TRUTH,
        remedy="write true to run the whole domain, piece by piece",
    )
    max_executions: int | None = optional(
        None, "Maximum number of executions", 1_000_000, rule=at_least(1), remedy=_NONE
    )
    max_seconds: float | None = optional(
        None, "Time limit in seconds", 600, rule=POSITIVE, remedy=_NONE
    )
    max_total_tokens: int | None = optional(
        None,
        "Maximum tokens that a language model reads and writes",
        2_000_000,
        rule=at_least(1),
        remedy=_NONE,
    )
    max_spend: float | None = optional(
        None,
        "Maximum spend, in the currency of [subject.prices]",
        20,
        rule=POSITIVE,
        remedy=_NONE,
    )
    ahead: bool = optional(
        True,
        "Idle slots run inputs that will probably be needed, unless a budget limits them",
        False,
        rule=TRUTH,
        remedy="write false to run nothing that may turn out not to be needed",
    )
    max_assignments: int = optional(
        1_000,
        "Sets with more assignments give a lower bound",
        rule=at_least(2),
        remedy="leave it out for 1,000",
    )
    probe: int | None = optional(  # None: as befits the run
        None,
        "Inputs to repeat, to check consistency; 0: none",
        300,
        rule=at_least(0),
        remedy="write 300 to run 300 inputs again, 0 for none",
    )
    max_noise: float | None = optional(  # None: NOISE_LIMIT, or error
        None,
        "Scores that noise may explain by more are inconclusive",
        0.02,
        rule=SHARE,
        remedy="write 0.02 for 2 points of a score",
    )

    @property
    def is_limited(self) -> bool:
        """Whether a budget may end it early."""
        limits = (self.max_executions, self.max_seconds, self.max_total_tokens, self.max_spend)
        return any(each is not None for each in limits)

    @property
    def looks_for_noise(self) -> bool:
        """Whether noise is looked for: the paper's procedures are left as printed."""
        return self.probe != 0 and self.stopping is not Stopping.PAPER

    @property
    def noise_limit(self) -> float:
        """A score that noise alone may explain by more than this is inconclusive."""
        return min(NOISE_LIMIT, self.error) if self.max_noise is None else self.max_noise

    def divided(self, parts: float) -> Settings:
        """Of a family, the settings of one of its parts: 1 − confidence is divided equally.

        If each of so many statements holds with the confidence of a part, all of them together hold
        with the asked one, however they depend on each other (Bonferroni's inequality).
        """
        if not self.family or parts <= 1:
            return self
        return replace(self, confidence=1.0 - (1.0 - self.confidence) / parts)

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
        RequestError.refuse(mistakes)
        return replace(self, **changes)

    def __post_init__(self) -> None:
        mistakes = [Mistake("setting", *broken) for broken in broken_rules(self)]
        if self.exact is True and self.stopping == Stopping.PAPER:
            problem = 'contradicts stopping = "paper", whose procedures sample'
            mistakes.append(Mistake("setting", "exact", problem, "leave one of them out"))
        RequestError.refuse(mistakes)
        object.__setattr__(self, "stopping", Stopping(self.stopping))  # it may be given as text


COSTS = ("calls", "executions")


def check_cost(cost: Any) -> None:
    """Raise RequestError unless it is a thing to save, or left to the kind of subject."""
    if cost is not None and cost not in COSTS:
        problem = f"the time of a subject goes into calls or executions, not {cost!r}"
        remedy = 'write "calls" or "executions", or leave it out'
        raise RequestError([Mistake("setting", "cost", problem, remedy)])


def check_repeats(repeats: Any) -> None:
    """Raise RequestError unless it is a number of runs."""
    if problem := at_least(1).problem(repeats):
        remedy = "write 5 for the majority of five runs"
        raise RequestError([Mistake("setting", "repeats", problem, remedy)])
