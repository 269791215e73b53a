"""Which findings are let pass for a while? Acceptances, whether they count, what they cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from themis.results.model import Accepted, CheckResult, Measure, Score, SearchResult

Cover = Literal["yes", "no", "unclear"]


@dataclass(frozen=True)
class Acceptance:
    """A finding that counts as accepted up to a day, and maybe only up to a score."""

    against: tuple[str, ...]  # in schema order
    measure: Measure
    reason: str
    until: date
    max_score: float | None = None  # None: whatever the score
    line: int | None = None
    output: str | None = None  # which of several; None: the first

    @property
    def name(self) -> str:
        """The acceptance in words."""
        limit = "" if self.max_score is None else f" up to {self.max_score:g}"
        of = "" if self.output is None else f" of {self.output}"
        return f"{self.measure} {','.join(self.against)}{of}{limit}"

    def covers(self, low: float | None, high: float | None) -> Cover:
        """Whether a score within these ends is accepted."""
        if self.max_score is None:
            return "yes"
        if high is not None and high <= self.max_score:
            return "yes"
        return "no" if low is not None and low > self.max_score else "unclear"

    def told(self) -> Accepted:
        """The acceptance as it stands in a result."""
        return Accepted(self.against, self.reason, self.until.isoformat(), self.max_score)


@dataclass(frozen=True)
class Acceptances:
    """All acceptances of a file, seen on one day."""

    all: tuple[Acceptance, ...] = ()
    today: date = date.min
    first_output: str | None = None  # the one that is meant where none is named

    def counting(self, part: Score | SearchResult, against: tuple[str, ...]) -> Acceptance | None:
        """The acceptance of exactly this set, as a score or a search sees it, if it counts."""
        found = self._of(part, against)
        return found if found is not None and found.until >= self.today else None

    def ended(self, scores: Iterable[Score]) -> Iterator[Acceptance]:
        """The acceptances of these findings that counted once."""
        for score in scores:
            found = self._of(score, score.against)
            if found is not None and found.until < self.today:
                yield found

    def matches(self, acceptance: Acceptance, part: Score | SearchResult | CheckResult) -> bool:
        """Whether both are about the same measure of the same output."""
        outputs = {each or self.first_output for each in (acceptance.output, part.output)}
        return acceptance.measure == part.measure and len(outputs) == 1

    def _of(self, part: Score | SearchResult, against: tuple[str, ...]) -> Acceptance | None:
        matching = (e for e in self.all if e.against == against and self.matches(e, part))
        return next(matching, None)


def acceptance_remarks(checks: Iterable[CheckResult], accepted: Acceptances) -> Iterator[str]:
    """What to say about acceptances that do nothing, or nothing any more."""
    answers = tuple(checks)
    for each in accepted.all:
        line = "" if each.line is None else f" (line {each.line})"
        what = f"the acceptance of {each.name}{line}"
        about = [
            answer
            for answer in answers
            if accepted.matches(each, answer) and (answer.search or answer.against == each.against)
        ]
        found = [answer for answer in about if not _surely_not_found(answer, each.against)]
        if not about:
            yield f"{what} matches no check: nothing was tested that it could accept"
        elif not found:
            yield f"{what} is not needed: no such finding was made"
        elif each.until < accepted.today:
            yield f"{what} ended on {each.until.isoformat()} and counts no longer"


def _surely_not_found(answer: CheckResult, against: tuple[str, ...]) -> bool:
    if not answer.search:
        return answer.verdict == "holds"
    return against not in answer.sets and answer.verdict != "not enough evidence"
