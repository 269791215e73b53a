"""Which findings are let pass for a while? Acceptances, whether they count, what they cover."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import date
from typing import Literal

from themis.results import Accepted, CheckResult, Measure

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

    @property
    def name(self) -> str:
        """The acceptance in words."""
        limit = "" if self.max_score is None else f" up to {self.max_score:g}"
        return f"{self.measure} {','.join(self.against)}{limit}"

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

    def counting(self, measure: Measure, against: tuple[str, ...] | None) -> Acceptance | None:
        """The acceptance of exactly this set, if it still counts."""
        found = self._of(measure, against)
        return found if found is not None and found.until >= self.today else None

    def ended(self, measure: Measure, sets: Iterable[tuple[str, ...]]) -> Iterator[Acceptance]:
        """The acceptances of these sets that counted once."""
        for against in sets:
            found = self._of(measure, against)
            if found is not None and found.until < self.today:
                yield found

    def _of(self, measure: Measure, against: tuple[str, ...] | None) -> Acceptance | None:
        matching = (e for e in self.all if e.measure == measure and e.against == against)
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
            if answer.measure == each.measure and (answer.search or answer.against == each.against)
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
