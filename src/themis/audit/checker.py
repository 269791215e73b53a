"""Runs the checks of a file, one after the other, in one audit and within one budget."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any, TypeVar

from themis.audit.audit import Audit
from themis.audit.notes import timing_of
from themis.audit.precision import Family
from themis.errors import SubjectError
from themis.results.model import CheckResult, GroupScore, Result, Score, SearchResult
from themis.results.notes import Ending, Note
from themis.results.verdicts import (
    NOTHING_ACCEPTED,
    Acceptances,
    Check,
    Precision,
    acceptance_notes,
    can_be_narrowed,
    judge_score,
    judge_search,
    not_judged,
    precisions,
)
from themis.scores.question import account_of
from themis.search.searcher import weigh_search
from themis.search.walk import SEARCH_ASSIGNMENTS
from themis.settings import Settings

Outcome = TypeVar("Outcome", Score, SearchResult, "Score | SearchResult | None")
OUT_OF_BUDGET = Note.of("run-ended", ended=Ending.BUDGET)


def run_checks(
    audit: Audit,
    checks: Sequence[Check],
    *,
    accepted: Acceptances = NOTHING_ACCEPTED,
    among: Sequence[str] | None = None,
    max_size: int | None = None,
    family: Family | None = None,
) -> Result:
    """The verdicts on all checks, with the scores and searches that they rest on.

    `among` and `max_size` restrict the sets that searches look at.

    Each verdict by itself is right with the audit's confidence. Where its settings ask for a family
    all of them together are, or all of the given `family` of which they are a part. Raises
    SubjectError, with what was
    learned, when the subject fails too often.
    """
    scope = {"among": among, "max_size": max_size}
    checks = [check.about(audit.first_output) for check in checks]
    family = family or Family.of(audit.settings, [check.measure for check in checks])
    settings = replace(family.settings, family=False)  # it is divided: no round divides it again
    run = _Run(audit, settings, family, accepted, scope)
    for check in checks:
        run.decide(check)
    run.reconsider(checks)
    if run.problem is not None:
        raise SubjectError(str(run.problem), result=run.result())
    return run.result()


@dataclass
class _Round:
    """What one round learned."""

    answer: CheckResult
    outcome: Score | SearchResult | None = None
    scores: tuple[Score, ...] = ()
    confidence: float | None = None  # that it was measured with: its part of the check's

    @property
    def is_decided(self) -> bool:
        return self.answer.verdict != "not enough evidence"

    @property
    def is_final(self) -> bool:
        """Whether a further round would bring nothing."""
        return self.is_decided or self.outcome is None or not can_be_narrowed(self.outcome)

    @property
    def width(self) -> float:
        """Of the interval; what is unknown is as wide as can be."""
        low, high = self.answer.low, self.answer.high
        return 1.0 if low is None or high is None else high - low


@dataclass
class _Run:
    audit: Audit
    settings: Settings
    family: Family
    accepted: Acceptances
    scope: dict[str, Any]  # which sets a search looks at
    results: list[Result] = field(default_factory=list)
    kept: list[_Round] = field(default_factory=list)
    ended: Note | None = None  # why the remaining checks are not run
    problem: SubjectError | None = None
    out_of_budget: bool = False

    def __post_init__(self) -> None:
        runner = self.audit.runner
        self._used_before, self._before = runner.used, runner.account
        self._started, self._clock = datetime.now(UTC), time.monotonic()

    def decide(self, check: Check) -> None:
        """Ask ever more precisely until the check is decided, and keep the best answer."""
        confidence = self.settings.confidence
        best = latest = _Round(not_judged(check, (self.ended or OUT_OF_BUDGET,), confidence))
        for precision in precisions(self.settings.error, confidence):
            left = self._left()
            if self.ended or left is None:
                latest = _Round(not_judged(check, (self.ended or OUT_OF_BUDGET,), confidence))
                break
            latest = self._ask(check, precision, left)
            if latest.is_decided or latest.width <= best.width:
                best = latest
            if latest.is_final:
                break
        if not best.is_decided:  # the narrowest interval, and why there is no narrower one
            best.answer = replace(best.answer, reasons=latest.answer.reasons)
        self.kept.append(best)

    def reconsider(self, checks: Sequence[Check]) -> None:
        """Judge again what was judged before noise was found."""
        probe = self.audit.probe
        for place, (check, each) in enumerate(zip(checks, self.kept, strict=True)):
            if not each.is_decided or not self._is_noisy(each):
                continue
            own = each.confidence or self.settings.confidence
            settings = replace(self.settings, confidence=own)
            most, outcome = None, each.outcome
            if isinstance(outcome, SearchResult):
                outcome = weigh_search(outcome, probe, settings, may_run=False)
                most = SEARCH_ASSIGNMENTS
            scores = tuple(
                probe.weigh(score, settings, most=most, may_run=False) for score in each.scores
            )
            if outcome is not None:
                found = outcome if isinstance(outcome, SearchResult) else scores[0]
                self.kept[place] = self._judged(check, found, scores)

    def _is_noisy(self, each: _Round) -> bool:
        """Whether noise was found that may change an answer."""
        of_groups = isinstance(each.outcome, GroupScore) or (
            isinstance(each.outcome, SearchResult) and each.outcome.measure == "group"
        )
        probe, answer = self.audit.probe, each.answer
        return probe.found or (of_groups and probe.finds_in(answer.output, answer.statistic))

    def _left(self) -> dict[str, Any] | None:
        """What is left of the budget, as settings; None when nothing is."""
        left: dict[str, Any] = {
            name: limit - (used - self._used_before[name])
            for name, used in self.audit.runner.used.items()
            if (limit := getattr(self.settings, name)) is not None
        }
        if self.settings.max_seconds is not None:
            left["max_seconds"] = self.settings.max_seconds - (time.monotonic() - self._clock)
        if all(value > 0 for value in left.values()):
            return left
        self.out_of_budget = True
        return None

    def _ask(self, check: Check, precision: Precision, left: dict[str, Any]) -> _Round:
        try:
            with self._settings(error=precision.error, confidence=precision.confidence, **left):
                result = self._measure(check)
        except SubjectError as error:
            if not isinstance(error.result, Result):
                raise
            self.problem, result = error, error.result
            self.ended = Note.of("subject-failed")
        if result.stopped is Ending.INTERRUPTED:
            self.ended = Note.of("run-ended", ended=result.stopped)
        self.out_of_budget = self.out_of_budget or result.stopped is Ending.BUDGET
        self.results.append(result)
        return replace(self._judge(check, result), confidence=precision.confidence)

    def _judge(self, check: Check, result: Result) -> _Round:
        found = result.searches if check.against is None else result.scores
        if found:
            return self._judged(check, found[0], result.scores)
        reasons = (self.ended or OUT_OF_BUDGET,)
        return _Round(not_judged(check, reasons, self.settings.confidence))

    def _judged(
        self, check: Check, outcome: Score | SearchResult, scores: tuple[Score, ...]
    ) -> _Round:
        """The verdict on what was measured.

        No search finds groups apart where no output was favourable at all; of a single score its
        groups' rates tell.
        """
        confidence = self.settings.confidence
        if not isinstance(outcome, SearchResult):
            return _Round(judge_score(check, outcome, confidence, self.accepted), outcome, scores)
        answer = judge_search(check, outcome, confidence, self.accepted)
        view = self.audit.apparatus.views.of(check.output)
        if check.measure == "group" and view.lacks_favourable and answer.verdict == "holds":
            reasons = (Note.of("never-favourable"),)
            answer = replace(answer, verdict="not enough evidence", reasons=reasons)
        return _Round(answer, outcome, scores)

    @contextmanager
    def _settings(self, **changes: Any) -> Iterator[None]:
        """Within, the audit measures with these settings."""
        try:
            self.audit.settings = replace(self.settings, **changes)
            yield
        finally:
            self.audit.settings = self.family.asked

    def _measure(self, check: Check) -> Result:
        if check.against is not None:
            accepted = self.accepted.counting(check, check.against)
            bound = accepted.max_score if accepted is not None else None
            return self.audit.score(
                [check.against],
                [check.measure],
                output=check.output,
                limit=max(check.max_score, bound or 0.0),  # what the score is held against
                command="check",
            )
        return self.audit.search_all(
            check.max_score,
            [check.measure],
            output=check.output,
            accepted=lambda score: self.accepted.counting(score, score.against),
            **self.scope,
        )

    def result(self) -> Result:
        """Everything as one result that can be saved."""
        last = self.results[-1]
        outcomes = [self._as_asked(each.outcome) for each in self.kept]
        runner = self.audit.runner
        spent, seconds = runner.account - self._before, time.monotonic() - self._clock
        notes = last.timing.get("notes", ())
        stopped = Ending.BUDGET if self.out_of_budget else Ending.DONE
        if last.stopped in (Ending.INTERRUPTED, Ending.FAILED):
            stopped = last.stopped
        checks = tuple(each.answer for each in self.kept)
        whole = replace(
            last,
            command="check",
            notes=(*last.notes, *acceptance_notes(checks, self.accepted)),
            scores=tuple(self._as_asked(score) for each in self.kept for score in each.scores),
            searches=tuple(each for each in outcomes if isinstance(each, SearchResult)),
            checks=checks,
            stopped=stopped,
            executions=spent.executions,
            account=account_of(spent),
            cache_hits=spent.cache_hits,
            timing=timing_of(spent, runner.subject, self._started, seconds, notes),
        )
        return self.family.whole(whole)

    def _as_asked(self, outcome: Outcome) -> Outcome:
        """The same with the check's confidence: ends of a round hold with that and more."""
        if outcome is None:
            return outcome
        if isinstance(outcome, SearchResult):
            found = tuple(self._as_asked(each) for each in outcome.minimal_sets)
            outcome = replace(outcome, minimal_sets=found)
        return replace(outcome, confidence=self.settings.confidence)
