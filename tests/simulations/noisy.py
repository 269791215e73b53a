"""Noisy subjects: fair ones, and ones below the limit that noise seems to lift above it.

What is true of a noisy subject: its group score is the spread of the expected rates, its causal
score the share of inputs with two assignments whose most frequent outputs differ. Noise is below
one half everywhere, so the most frequent output is the one without noise.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

import themis
from tests.simulations.counting import Clock, Run, fake_time, randomness
from themis.audit.checker import run_checks
from themis.results.verdicts import Check

WHOLE, SAMPLED = 60, 1_000  # contexts that differ, in a domain that is run whole and in a large one
SPREADS = {2: 1.0, 5: 1.6, 70: 3.3}  # expected spread of so many groups, in sd of a difference
PLAIN = 0.5  # limits are so small a part of what noise seems to lift scores to
MOST = 0.4  # of a limit, so that twice the limit is a score as well
SECONDS = 0.001  # that an input takes on the fake clock
ROUNDING = 1e-9
CALL_SECONDS = 0.005  # that every call takes besides


@dataclass(frozen=True)
class Cell:
    """One combination of all factors."""

    truth: Literal["fair", "below"]  # below: 0.8 × the limit
    noise: float  # of all answers that are wrong
    values: int  # of the characteristic that is measured
    budget: Literal["none", "executions", "time"]
    task: Literal["score", "search", "check", "search check"]
    measure: Literal["causal", "group"]
    domain: Literal["sampled", "whole"]
    place: Literal["everywhere", "in a quarter"]  # of the inputs
    confidence: float = 0.9
    guilty: bool = False  # instead: 2 × the limit, without noise
    options: dict[str, Any] = field(default_factory=dict, hash=False)  # of the audit, for tests

    @property
    def name(self) -> str:
        """All factors in one line."""
        truth = "guilty" if self.guilty else self.truth
        return (
            f"{truth}, noise {self.noise:g} {self.place}, {self.values} values, "
            f"budget {self.budget}, {self.task}, {self.measure}, {self.domain}, "
            f"{self.confidence:.0%}"
        )

    @property
    def contexts(self) -> int:
        """How many contexts have decisions of their own."""
        return WHOLE if self.domain == "whole" else SAMPLED

    @property
    def lift(self) -> float:
        """By how much noise seems to lift the score of a fair subject, roughly."""
        rate, share = (self.noise, 1.0) if self.place == "everywhere" else (4 * self.noise, 0.25)
        if self.measure == "causal":
            return share * (1 - (1 - rate) ** self.values - rate**self.values)
        tests = 2 * WHOLE if self.domain == "whole" else SAMPLED
        return SPREADS[self.values] * math.sqrt(2 * share * rate * (1 - rate) / tests)

    @property
    def limit(self) -> float:
        """A limit above the truth and, where noise suffices, below what is seen."""
        least = 0.05 if self.domain == "whole" or self.measure == "group" else 0.02
        apparent = self.lift if self.truth == "fair" else self.lift / (0.2 + 0.8 * self.lift)
        return round(min(max(PLAIN * apparent, least), MOST), 3)

    @property
    def error(self) -> float:
        """So small that a search may not list what is at 0.8 × the limit."""
        return self.limit * (0.15 if self.truth == "below" else 0.5)

    @property
    def noise_of_contexts(self) -> NDArray[np.float64]:
        """How often the answer is wrong, by context."""
        contexts = np.arange(self.contexts)
        if self.guilty:
            return np.zeros(len(contexts))
        where = np.ones(len(contexts))
        return self.noise * (where if self.place == "everywhere" else 4.0 * (contexts % 4 == 1))

    @property
    def deciding(self) -> int:
        """In how many contexts, the first ones, the characteristic decides."""
        wanted = (2.0 if self.guilty else {"fair": 0.0, "below": 0.8}[self.truth]) * self.limit
        each = np.ones(self.contexts)
        if self.measure == "group":
            each -= 2 * self.noise_of_contexts  # noise draws expected rates together
        scores = np.concatenate([[0.0], np.cumsum(each)]) / self.contexts
        if self.guilty:
            return int(np.searchsorted(scores, wanted - ROUNDING))
        return int(np.searchsorted(scores, wanted + ROUNDING, side="right")) - 1

    def run(self, number: int) -> Run:
        """One run, with random numbers of its own."""
        with fake_time() as clock:
            subject = NoisySubject(self, randomness(self.name, number), clock)
            audit = themis.Audit(
                themis.batch(subject),
                self.schema,
                seed=number,
                confidence=self.confidence,
                error=self.error,
                **self._budget(number),
                **self.options,
            )
            convicted, undecided = self._ask(audit)
        return Run(convicted, undecided, subject.executions)

    @property
    def schema(self) -> themis.Schema:
        """The characteristic `group`, another one that matters nowhere, and the context."""
        context = range(WHOLE) if self.domain == "whole" else themis.Integers(0, 10**9 - 1)
        return themis.Schema(group=range(self.values), other=range(2), context=context)

    def _budget(self, number: int) -> dict[str, Any]:
        """A tight one: too small for the answer, or for the answer and its reruns."""
        if self.budget == "none":
            return {}
        draw = randomness(self.name, number, 1).random()
        if self.domain == "whole":
            executions = 2 * self.values * WHOLE * (0.9 + 0.4 * draw)
        else:
            executions = self.values * 15 * 20**draw  # 15 to 300 contexts
            executions *= 3 if "search" in self.task else 1
        if self.budget == "executions":
            return {"max_executions": int(executions)}
        return {"max_seconds": 1.2 * SECONDS * executions}

    def _ask(self, audit: themis.Audit) -> tuple[bool, bool]:
        """Whether it convicts, and whether it leaves the question open."""
        among = ["group", "other"]
        if self.task == "score":
            (score,) = audit.score([["group"]], [self.measure]).scores
            return judged(score, self.limit)
        if self.task == "search":
            (search,) = audit.search_all(self.limit, [self.measure], among=among).searches
            return bool(search.found), not search.conclusive
        result = checked(audit, self.task, ["group"], among, [self.measure], self.limit)
        (answer,) = result.checks
        return (
            answer.verdict == "violated" or bool(answer.sets),
            answer.verdict == "not enough evidence",
        )


def checked(
    audit: themis.Audit, task: str, against: Sequence[str], among: Sequence[str],
    measures: Iterable[Literal["causal", "group"]], limit: float, **options: Any,
) -> themis.Result:  # fmt: skip
    """The answers to checks of a set, or in a "search check" of what is found among some."""
    searches = "search" in task
    checks = [
        Check(
            against=None if searches else tuple(against),
            search=searches,
            measure=measure,
            max_score=limit,
        )
        for measure in measures
    ]
    return run_checks(audit, checks, among=among if searches else None, **options)


FACTORS: dict[str, tuple[Any, ...]] = {
    "truth": ("fair", "below"),
    "noise": (0.001, 0.01, 0.1),
    "values": (2, 5, 70),
    "budget": ("none", "executions", "time"),
    "task": ("score", "search", "check", "search check"),
    "measure": ("causal", "group"),
    "domain": ("sampled", "whole"),
    "place": ("everywhere", "in a quarter"),
}


def judged(score: themis.CausalScore | themis.GroupScore | Any, limit: float) -> tuple[bool, bool]:
    """Whether a score convicts, and whether it leaves the question open."""
    try:
        score.assert_below(limit)
    except themis.DiscriminationError:
        return True, False
    except themis.InconclusiveError:
        return False, True
    return False, False


class NoisySubject:
    """A function of a table: some contexts depend on the group, and some answers are wrong."""

    def __init__(self, cell: Cell, rng: np.random.Generator, clock: Clock) -> None:
        contexts = np.arange(cell.contexts)
        self._rng, self._clock, self.executions = rng, clock, 0
        self._count = cell.contexts
        self._decides = contexts < cell.deciding
        self._usual = contexts % 2 == 0
        self._noise = cell.noise_of_contexts

    def __call__(self, table: themis.InputTable) -> Any:
        self.executions += len(table)
        self._clock.pass_by(CALL_SECONDS + SECONDS * len(table))
        place = table["context"] % self._count
        favoured = np.where(self._decides[place], table["group"] == 0, self._usual[place])
        return favoured ^ (self._rng.random(len(table)) < self._noise[place])
