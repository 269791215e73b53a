"""Scores right at a limit, many of them at once, and two runs of what did not change.

A search check says one thing about many sets. If each of them were judged with the whole error
probability, one of fifty would often be convicted by chance. That a limit holds, or that a finding
is accepted up to a score, is a promise as well: it clears somebody. And what is exactly as large as
was accepted must not be convicted.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import date
from typing import Any, Literal

import numpy as np

import themis
from tests.simulations.counting import Run, fake_time
from tests.simulations.noisy import checked, judged
from themis.audit.checker import run_checks
from themis.results.comparison import beside_baseline, compare
from themis.results.finding import largest_missed
from themis.results.model import Result, Score
from themis.results.verdicts import Acceptance, Acceptances, Check

TENTHS = 3  # of the contexts depend on a characteristic, of those at the limit
MANY = 10**6
DIGITS = 9  # of contexts in one number


@dataclass(frozen=True)
class Family:
    """So many sets, each exactly at the limit of a check."""

    sets: int
    measure: Literal["causal", "group"]
    rule: Literal["search check", "estimates"] = "search check"  # estimates alone are no rule
    confidence: float = 0.9

    @property
    def name(self) -> str:
        """In one line."""
        return f"{self.sets} sets at the limit, {self.measure}, {self.rule}, {self.confidence:.0%}"

    @property
    def limit(self) -> float:
        """The true score of every set, a number of tenths or the share of each of many."""
        return TENTHS / 10 if self.measure == "causal" else 1 / self.sets

    def run(self, number: int) -> Run:
        """One run, with a seed of its own."""
        subject = AtTheLimit(self.sets, self.measure)
        options = {"confidence": self.confidence, "error": self.limit, "seed": number}
        with fake_time():
            audit = themis.Audit(themis.batch(subject), subject.schema, **options)
            convicted, undecided = self._ask(audit, subject.names)
        return Run(convicted, undecided, subject.executions)

    def _ask(self, audit: themis.Audit, names: list[str]) -> tuple[bool, bool]:
        """Whether one of the sets is convicted, and whether the question is left open."""
        if self.rule == "estimates":
            scores = audit.score([[name] for name in names], [self.measure]).scores
            return any(each.score > self.limit for each in scores), False
        check = Check(search=True, measure=self.measure, max_score=self.limit)
        (answer,) = run_checks(audit, [check], among=names, max_size=1).checks
        return answer.verdict == "violated", answer.verdict == "not enough evidence"


class AtTheLimit:
    """Independent characteristics, each with the same score.

    Causal: each counts where its own digit of the context is below 3, and the answer is whether
    an odd number of those that count is 1, so that a change of one always shows. Group: the context
    chooses whose value is the answer.
    """

    def __init__(self, sets: int, measure: str) -> None:
        self.sets, self.measure, self.executions = sets, measure, 0
        self.names = [f"c{place}" for place in range(sets)]

    @property
    def schema(self) -> themis.Schema:
        """The characteristics, and the contexts in which they count."""
        inputs: dict[str, Any] = {name: range(2) for name in self.names}
        if self.measure == "causal":
            for first in range(0, self.sets, DIGITS):
                inputs[f"x{first}"] = themis.Integers(0, 10**DIGITS - 1)
        else:
            inputs |= {"chosen": range(self.sets), "more": themis.Integers(0, MANY)}
        return themis.Schema(inputs)

    def __call__(self, table: themis.InputTable) -> Any:
        self.executions += len(table)
        if self.measure == "group":
            values = np.stack([table[name] for name in self.names])
            return values[table["chosen"], np.arange(len(table))] == 1
        odd = np.zeros(len(table), dtype=bool)
        for place, name in enumerate(self.names):
            first = place // DIGITS * DIGITS
            digit = table[f"x{first}"] // 10 ** (place - first) % 10
            odd ^= (table[name] == 1) & (digit < TENTHS)
        return odd


@dataclass(frozen=True)
class Unchanged:
    """Two runs of one subject, which is compared with itself."""

    how: Literal["diff", "baseline"]
    task: Literal["score", "search"]
    measure: Literal["causal", "group"]
    domain: Literal["sampled", "whole"]
    noise: float
    rule: Literal["new", "not known"] = "new"  # what a baseline left open is not new
    confidence: float = 0.95  # of each run, so that a difference holds with 90 %
    options: dict[str, Any] = field(default_factory=dict, hash=False)  # of the audits, for tests

    @property
    def name(self) -> str:
        """In one line."""
        return f"{self.how}, {self.task}, {self.measure}, {self.domain}, noise {self.noise:g}"

    def run(self, number: int) -> Run:
        """Whether the second run is said to be worse than the first."""
        executions = [0]
        before, after = (self._measure(number, half, executions) for half in (0, 1))
        if self.how == "diff":
            differences = compare(before, after)
            new = differences.verdict == "new discrimination"
            return Run(new, differences.verdict == "inconclusive", executions[0])
        checks = beside_baseline(after, before).checks
        new = any(each.baseline == "new" for each in checks)
        if self.rule == "not known":
            new = any(each.fails for each in checks)
        open_ = any(each.is_open or each.baseline == "undecided" for each in checks)
        return Run(new, open_, executions[0])

    def _measure(self, number: int, half: int, executions: list[int]) -> themis.Result:
        """One of both runs; the subject is above the limit of the checks by far."""
        rng = np.random.default_rng([number, half])

        def decide(table: themis.InputTable) -> Any:
            executions[0] += len(table)
            line = np.where(table["race"] == 0, 50, 70) + np.where(table["sex"] == 0, 0, 12)
            return (table["income"] < line) ^ (rng.random(len(table)) < self.noise)

        more = {} if self.domain == "whole" else {"savings": themis.Integers(0, MANY)}
        schema = themis.Schema(race=range(5), sex=range(2), income=range(100), **more)
        options = {"confidence": self.confidence, "seed": 2 * number + half, **self.options}
        with fake_time():
            audit = themis.Audit(themis.batch(decide), schema, **options)
            if self.how == "diff" and self.task == "score":
                return audit.score([["race"]], [self.measure])
            if self.how == "diff":
                return audit.search_all(0.1, [self.measure], among=["race", "sex"])
            return checked(audit, self.task, ["race"], ["race", "sex"], [self.measure], 0.05)


@dataclass(frozen=True)
class Together:
    """So many scores, or checks, of one command, each exactly at its limit.

    With `family` all that the command says is true with the confidence, without it each part is.
    """

    members: int
    measure: Literal["causal", "group"]
    task: Literal["score", "check"]
    family: bool = True
    confidence: float = 0.9
    error: float = 0.1

    @property
    def name(self) -> str:
        """In one line."""
        how = "together" if self.family else "each by itself"
        return f"{self.members} {self.measure} {self.task}s {how}, {self.confidence:.0%}"

    def run(self, number: int) -> Run:
        """Whether any interval misses the truth, or any verdict is false."""
        subject = AtTheLimit(self.members, self.measure)
        limit = TENTHS / 10 if self.measure == "causal" else 1 / self.members
        with fake_time():
            audit = themis.Audit(
                themis.batch(subject),
                subject.schema,
                confidence=self.confidence,
                family=self.family,
                error=self.error,
                seed=number,
            )
            false, undecided = self._ask(audit, subject.names, limit)
        return Run(false, undecided, subject.executions)

    def _ask(self, audit: themis.Audit, names: list[str], limit: float) -> tuple[bool, bool]:
        if self.task == "score":
            scores = audit.score([[name] for name in names], [self.measure]).scores
            return any(not each.low <= limit <= each.high for each in scores), False
        checks = [Check(against=(name,), measure=self.measure, max_score=limit) for name in names]
        verdicts = [each.verdict for each in run_checks(audit, checks).checks]
        return "violated" in verdicts, "not enough evidence" in verdicts


# Scores right at a limit: subjects a little above it that must not be said to be below --------


TRUTH = 0.3  # of the causal and of the group score
JUST_BELOW = TRUTH - 0.001
LOW = 0.1  # a limit that the subject is above by far
ERROR = 0.2  # of the first round
CONTEXTS = 1_000

Said = tuple[bool, bool]  # the false thing; that nothing is certain


@dataclass(frozen=True)
class AtALimit:
    """What is said of a subject with a score of TRUTH.

    "holds": that it is at most a limit just below; of a search, that no set is above what the
    search may miss, which is just below. "accepted": that it is accepted, up to a score just below.
    "not accepted": that it is more than what is accepted, which is exactly TRUTH.
    """

    claim: Literal["holds", "accepted", "not accepted"]
    task: Literal["score", "check", "search", "search check"]
    measure: Literal["causal", "group"]
    confidence: float = 0.9
    rule: Literal["intervals", "estimates"] = "intervals"  # estimates alone are no rule

    @property
    def name(self) -> str:
        """In one line."""
        how = "" if self.rule == "intervals" else ", by estimates"
        return f"falsely {self.claim}, {self.task}, {self.measure}, {self.confidence:.0%}{how}"

    def run(self, number: int) -> Run:
        """One run, with a seed of its own."""
        executions = [0]

        def decide(table: themis.InputTable) -> Any:
            executions[0] += len(table)
            place = table["context"] % CONTEXTS
            return (place < TRUTH * CONTEXTS) * (table["race"] == 1) + (place >= 0.9 * CONTEXTS) > 0

        schema = themis.Schema(race=range(2), context=themis.Integers(0, 10**9 - 1))
        options = {"confidence": self.confidence, "error": ERROR, "seed": number}
        with fake_time():
            audit = themis.Audit(themis.batch(decide), schema, **options)
            false, undecided = self._ask(audit)
        return Run(false, undecided, executions[0])

    def _ask(self, audit: themis.Audit) -> Said:
        if self.rule == "estimates":
            return self._by_estimate(audit.score([["race"]], [self.measure]).scores[0])
        if self.task == "score":
            convicted, undecided = judged(self._score(audit), JUST_BELOW)
            return not convicted and not undecided, undecided
        if self.task == "search":
            (search,) = audit.search_all(self._limit, [self.measure], among=["race"]).searches
            missed = search.conclusive and not search.found and largest_missed(search) < TRUTH
            return missed, not search.conclusive
        return self._verdict(self._checked(audit))

    def _score(self, audit: themis.Audit) -> Score:
        return audit.score([["race"]], [self.measure], limit=JUST_BELOW).scores[0]

    def _by_estimate(self, score: Score) -> Said:
        return (score.score > TRUTH if self.claim == "not accepted" else score.score < TRUTH), False

    @property
    def _limit(self) -> float:
        if self.claim != "holds":
            return LOW
        return JUST_BELOW - ERROR * ("search" in self.task)  # a search may miss so much more

    def _checked(self, audit: themis.Audit) -> Result:
        bound = TRUTH if self.claim == "not accepted" else JUST_BELOW
        passed = Acceptance(
            against=("race",), measure=self.measure, max_score=bound, reason="known", until=date.max
        )
        accepted = Acceptances(() if self.claim == "holds" else (passed,), date.min)
        race = ["race"]
        return checked(audit, self.task, race, race, [self.measure], self._limit, accepted=accepted)

    def _verdict(self, result: Result) -> Said:
        (answer,) = result.checks
        false = {"holds": "holds", "accepted": "accepted", "not accepted": "violated"}[self.claim]
        said = answer.verdict == false
        if self.claim == "holds" and answer.search:
            said = said and answer.high is not None and answer.high < TRUTH
        return said, answer.verdict == "not enough evidence"


def at_limits(confidence: float = 0.9) -> list[AtALimit]:
    """All of them."""
    tasks: dict[Any, tuple[Any, ...]] = {
        "holds": ("score", "check", "search", "search check"),
        "accepted": ("check", "search check"),
        "not accepted": ("check", "search check"),
    }
    return [
        AtALimit(claim, task, measure, confidence)  # type: ignore[arg-type]
        for claim, some in tasks.items()
        for task in some
        for measure in ("causal", "group")
    ]
