"""Scores right at a limit: subjects a little above it that must not be said to be below.

That a limit holds, or that a finding is accepted up to a score, is a promise as well: it clears
somebody. And what is exactly as large as was accepted must not be convicted.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Any, Literal

import themis
from tests.simulations.counting import Run
from tests.simulations.fake_time import fake_time
from tests.simulations.noisy import checked, judged
from themis.results.finding import largest_missed
from themis.results.model import Result, Score
from themis.results.verdicts import Acceptance, Acceptances

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
