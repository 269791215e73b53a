"""Verdicts on limits of scores and searches, with the findings that are let pass; nothing is run.

Also what is certain about a search as a whole, and the assertions that tests make.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import date
from typing import Any, Literal, TypeAlias

from themis.errors import DiscriminationError, InconclusiveError, Mistake, RequestError
from themis.keys import key, optional
from themis.results.finding import (
    by_construction,
    largest_missed,
    nobody_favoured,
    nothing_compared,
)
from themis.results.hooks import hook
from themis.results.model import (
    CausalScore,
    CheckResult,
    GroupScore,
    Measure,
    Score,
    SearchResult,
    Verdict,
)
from themis.results.notes import Ending, Note
from themis.results.parts import Accepted, exceeds
from themis.results.withheld import withheld, withheld_check

Cover = Literal["yes", "no", "unclear"]


@dataclass(frozen=True, kw_only=True)
class Check:
    """A limit on a score: of the set `against`, or of every set where `search` is true."""

    against: tuple[str, ...] | None = optional(  # in schema order
        None, "The set of characteristics", ["race"], min_length=1
    )
    search: bool = optional(False, "Search all sets", True)
    measure: Measure = optional("causal", "Which score", "causal")
    max_score: float = field(metadata=key("The largest score allowed", 0.05, ge=0, le=1))
    output: str | None = optional(None, "Which of the declared outputs", "limit")
    name: str = ""  # in words, unless another is given
    line: int | None = None

    def __post_init__(self) -> None:
        if not self.name:
            sets = "search" if self.against is None else ",".join(self.against)
            of = "" if self.output is None else f" of {self.output}"
            name = f"{self.measure} {sets}{of} at most {self.max_score:g}"
            object.__setattr__(self, "name", name)

    def about(self, first: str | None) -> Check:
        """The same with the name of its output: the first one of several, unless it names one."""
        if first is None or self.output is not None:
            return self
        in_words = replace(self, name="").name == self.name
        return replace(self, output=first, name="" if in_words else self.name)


@dataclass(frozen=True, kw_only=True)
class Acceptance:
    """A finding that counts as accepted up to a day, and maybe only up to a score."""

    against: tuple[str, ...] = field(  # in schema order
        metadata=key("The set of characteristics, exactly", ["race"], min_length=1)
    )
    measure: Measure = optional("causal", "Which score", "causal")
    max_score: float | None = optional(
        None, "Accepted only up to here. Default: any score", 0.12, ge=0, le=1
    )
    reason: str = field(
        metadata=key("Why it is accepted", "ticket 4711, fixed in the next release", min_length=1)
    )
    until: date = field(metadata=key("The last day on which this counts", date(2027, 3, 31)))
    output: str | None = optional(None, "Which of the declared outputs", "limit")  # None: the first
    line: int | None = None

    def covers(self, low: float | None, high: float | None) -> Cover:
        """Whether a score within these ends is accepted."""
        if self.max_score is None:
            return "yes"
        if high is not None and not exceeds(high, self.max_score):
            return "yes"
        return "no" if low is not None and exceeds(low, self.max_score) else "unclear"

    def told(self) -> Accepted:
        """The acceptance as it stands in a result."""
        return Accepted(self.against, self.reason, self.until.isoformat(), self.max_score)


Part: TypeAlias = Score | SearchResult | Check | CheckResult  # what has a measure of an output


@dataclass(frozen=True)
class Acceptances:
    """All acceptances of a file, seen on one day."""

    all: tuple[Acceptance, ...] = ()
    today: date = date.min
    first_output: str | None = None  # the one that is meant where none is named

    def counting(self, part: Part, against: tuple[str, ...]) -> Acceptance | None:
        """The acceptance of exactly this set, as a score or a search sees it, if it counts."""
        found = self._of(part, against)
        return found if found is not None and found.until >= self.today else None

    def ended(self, scores: Iterable[Score]) -> Iterator[Acceptance]:
        """The acceptances of these findings that counted once."""
        for score in scores:
            found = self._of(score, score.against)
            if found is not None and found.until < self.today:
                yield found

    def matches(self, acceptance: Acceptance, part: Part) -> bool:
        """Whether both are about the same measure of the same output."""
        outputs = {each or self.first_output for each in (acceptance.output, part.output)}
        return acceptance.measure == part.measure and len(outputs) == 1

    def _of(self, part: Part, against: tuple[str, ...]) -> Acceptance | None:
        matching = (e for e in self.all if e.against == against and self.matches(e, part))
        return next(matching, None)


def acceptance_notes(checks: Iterable[CheckResult], accepted: Acceptances) -> Iterator[Note]:
    """What to say about acceptances that do nothing, or nothing any more."""
    answers = tuple(checks)
    for each in accepted.all:
        names = ("measure", "against", "output", "max_score", "line")
        which = {name: getattr(each, name) for name in names}
        about = [
            answer
            for answer in answers
            if accepted.matches(each, answer) and (answer.search or answer.against == each.against)
        ]
        found = [answer for answer in about if not _surely_not_found(answer, each.against)]
        if not about:
            yield Note.of("acceptance-idle", why="unmatched", **which)
        elif not found:
            yield Note.of("acceptance-idle", why="not-needed", **which)
        elif each.until < accepted.today:
            yield Note.of("acceptance-idle", why="ended", **which, until=each.until.isoformat())


def _surely_not_found(answer: CheckResult, against: tuple[str, ...]) -> bool:
    if not answer.search:
        return answer.verdict == "holds"
    return against not in answer.sets and answer.verdict != "not enough evidence"


NOTHING_ACCEPTED = Acceptances()
SHARES = (1 / 2, 1 / 4, 1 / 8, 1 / 8)  # of the error probability, for the first and later rounds


@dataclass(frozen=True)
class Precision:
    """What one round asks for."""

    error: float
    confidence: float


def precisions(error: float, confidence: float) -> Iterator[Precision]:
    """The rounds of one check: the asked error, then half of it, three times at most.

    The rounds share the error probability, so that a verdict that any of them gives is right with
    the asked confidence.
    """
    for place, share in enumerate(SHARES):
        yield Precision(error / 2**place, 1.0 - (1.0 - confidence) * share)


def judge_score(
    check: Check, score: Score, confidence: float, accepted: Acceptances = NOTHING_ACCEPTED
) -> CheckResult:
    """The verdict on a limit for one set: certain only when the whole interval is on one side.

    What is not surely below the limit, but surely below what is accepted, is accepted.
    """
    verdict: Verdict = "not enough evidence"
    certain = score.samples > 0 and (score.conclusive or score.stopped.is_early)
    certain = certain and not _says_nothing(score)
    if certain and exceeds(score.floor, check.max_score):
        verdict = "violated"
    elif certain and not exceeds(score.high, check.max_score):
        verdict = "holds"
    acceptance = accepted.counting(score, score.against) if certain else None
    ends = (score.floor, score.high)
    cover = acceptance.covers(*ends) if acceptance and verdict != "holds" else None
    if cover is not None and cover != "no":
        verdict = "accepted" if cover == "yes" else "not enough evidence"
    reasons: tuple[Note, ...] = ()
    if verdict == "not enough evidence":
        reasons = (_why_open(score, check.max_score),)
    elif verdict == "violated":
        reasons = tuple(_why_not_accepted(accepted, [score]))
    return replace(
        not_judged(check, reasons, confidence),
        output=score.output,
        statistic=score.statistic if isinstance(score, GroupScore) else "rate",
        scale=score.scale,
        verdict=verdict,
        score=score.score if score.samples else None,
        low=score.low if score.samples else None,
        high=score.high if score.samples else None,
        accepted=(acceptance.told(),) if acceptance and verdict == "accepted" else (),
    )


def judge_search(
    check: Check, search: SearchResult, confidence: float, accepted: Acceptances = NOTHING_ACCEPTED
) -> CheckResult:
    """The verdict on a limit for every set.

    It is violated when the whole interval of some found set is above the limit. It holds when all
    sets were decided and none was found: then none is above limit + error. Found sets that are
    accepted do not count; when there are no others, neither does the search hold nor fail. What is
    accepted up to a score counts for supersets, too: they are held against that score.
    """
    scores = {each.against: each for each in search.minimal_sets if each.samples}
    covers = {names: _cover(accepted, search, names, scores) for names in search.found}
    left = [names for names in search.found if covers[names] != "yes"]
    counting = {
        names: each
        for names, cover in covers.items()
        if cover == "yes"
        if (each := accepted.counting(search, names)) is not None
    }

    def limit(names: tuple[str, ...]) -> float:
        parts = (each.max_score for part, each in counting.items() if set(part) < set(names))
        return max([check.max_score, *(bound for bound in parts if bound is not None)])

    above = [
        scores[names]
        for names in left
        if names in scores and exceeds(scores[names].floor, limit(names))
        if covers[names] != "unclear"
    ]
    measured = above or [scores[each] for each in left or search.found if each in scores]
    worst = max(measured, key=lambda each: (each.floor, each.score), default=None)
    verdict: Verdict = "not enough evidence"
    reasons: tuple[Note, ...] = ()
    if above and (search.stopped is Ending.DONE or search.stopped.is_early):
        verdict = "violated"
        reasons = tuple(_why_not_accepted(accepted, above))
    elif not left and search.conclusive:
        verdict = "accepted" if search.found else "holds"
    else:
        reasons = (_why_search_open(search, worst, left),)
    missed = largest_missed(search) if verdict == "holds" else None
    return replace(
        not_judged(check, reasons, confidence),
        output=search.output,
        statistic=search.statistic,
        scale=search.scale,
        verdict=verdict,
        score=None if worst is None else worst.score,
        low=None if worst is None else worst.low,
        high=missed if worst is None else worst.high,
        sets=search.found,
        accepted=tuple(each.told() for each in counting.values()),
    )


def not_judged(check: Check, reasons: tuple[Note, ...], confidence: float) -> CheckResult:
    """The verdict on a check that nothing was run for."""
    return CheckResult(
        name=check.name,
        measure=check.measure,
        output=check.output,
        against=check.against,
        search=check.search,
        max_score=check.max_score,
        confidence=confidence,
        verdict="not enough evidence",
        reasons=reasons,
    )


def can_be_narrowed(outcome: Score | SearchResult) -> bool:
    """Whether a smaller error may bring a decision that this one did not."""
    if isinstance(outcome, SearchResult):
        return outcome.stopped is Ending.DONE and bool(outcome.found or not outcome.undecided)
    settled = outcome.method == "sampled" and not outcome.lower_bound and not outcome.unknown
    return outcome.conclusive and settled and not _says_nothing(outcome)


def _says_nothing(score: Score) -> bool:
    return nobody_favoured(score) or nothing_compared(score) is not None


def _cover(
    accepted: Acceptances,
    search: SearchResult,
    names: tuple[str, ...],
    scores: Mapping[tuple[str, ...], Score],
) -> Cover | None:
    """Whether a found set is accepted; None without an acceptance that counts."""
    acceptance, score = accepted.counting(search, names), scores.get(names)
    if acceptance is None:
        return None
    return acceptance.covers(*((None, None) if score is None else (score.floor, score.high)))


def _why_not_accepted(accepted: Acceptances, above: Sequence[Score]) -> Iterator[Note]:
    """Why findings with an acceptance count all the same."""
    for score in above:
        found = accepted.counting(score, score.against)
        if found is not None and found.max_score is not None:
            yield Note.of("accepted-up-to", against=found.against, max_score=found.max_score)
    for found in accepted.ended(above):
        yield Note.of("accepted-until", against=found.against, until=found.until.isoformat())


def _why_open(score: Score, limit: float) -> Note:
    if (note := by_construction(score)) is not None:
        return note
    if score.samples and nobody_favoured(score):
        return Note.of("never-favourable")
    if (note := nothing_compared(score)) is not None:
        return note
    if exceeds(score.low, limit) and not score.is_checked:
        return Note.of("not-checked-for-noise")
    if exceeds(score.low, limit) and score.conclusive and score.reruns is not None:
        return Note.of("noise-in-finding", explains=score.reruns.explains, floor=score.floor)
    if not score.conclusive:
        return _noise(score) or Note.of("run-ended", ended=score.stopped)
    if score.lower_bound:
        return Note.of("only-lower-bound")
    if score.unknown:
        return Note.of("executions-failed")
    return Note.of("score-near-limit", error=score.error)


def _why_search_open(
    search: SearchResult, worst: Score | None, left: Sequence[tuple[str, ...]]
) -> Note:
    if search.stopped is Ending.NOISE:
        return _noise(worst) or Note.of("run-ended", ended=search.stopped)
    if search.stopped is not Ending.DONE:
        return Note.of("search-ended", ended=search.stopped, sets_open=search.sets_open)
    if not left:
        return undecided_note(search)
    if worst is not None and not worst.conclusive:
        return Note.of("run-ended", ended=worst.stopped)
    if set(left) <= set(search.ties):
        return Note.of("sets-at-limit")
    return Note.of("sets-near-limit", error=search.error)


def undecided_note(search: SearchResult, when: str | None = None) -> Note:
    """How many sets a search could not decide."""
    undecided, sets = len(search.undecided), search.sets_total
    return Note.of("sets-undecided", undecided=undecided, sets=sets, when=when)


def _noise(score: Score | None) -> Note | None:
    """What noise alone gives, where that leaves a score open."""
    placebo = score.placebo if isinstance(score, CausalScore) else None
    if score is None or placebo is None or score.stopped is not Ending.NOISE:
        return None
    return Note.of("noise-alone", score=placebo.score, high=placebo.high)


def assert_below(score: Score, limit: float) -> None:
    """Raise DiscriminationError if the score is shown above, InconclusiveError if it may be."""
    __tracebackhide__ = True
    check = limit_on(score.measure, score.against, limit, score.output)
    answer = judge_score(check, score, score.confidence)
    raise_unless_it_holds(answer, score)


def assert_nothing_found(search: SearchResult) -> None:
    """Raise DiscriminationError if some set is above, InconclusiveError if one may be."""
    __tracebackhide__ = True
    check = Check(search=True, measure=search.measure, max_score=search.threshold)
    raise_unless_it_holds(judge_search(check, search, search.confidence), search)


def assert_conclusive(score: Score) -> None:
    """Raise InconclusiveError if the run was cut off."""
    __tracebackhide__ = True
    if not score.conclusive:
        why = Note.of("run-ended", ended=score.stopped)
        raise InconclusiveError(f"{score}\n{why}", outcome=score)


def limit_on(
    measure: Measure, against: tuple[str, ...] | None, limit: Any, output: str | None = None
) -> Check:
    """A limit on the score of one set, or of all; raises RequestError where it makes no sense."""
    number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if not number or not 0 <= limit < 1 or (against is None and limit == 0):
        problem = f"must be at least 0 and below 1, got {limit!r}"
        raise RequestError([Mistake("limit", "limit", problem, "write 0.05 for 5 %")])
    return Check(
        against=against, search=against is None, measure=measure, max_score=limit, output=output
    )


def raise_unless_it_holds(
    answer: CheckResult, outcome: Score | SearchResult | None, *, rows: bool = False
) -> None:
    """Raise the error that fits the verdict; only with `rows` its text shows rows of people."""
    __tracebackhide__ = True
    if answer.verdict == "holds":
        return
    kind = DiscriminationError if answer.verdict == "violated" else InconclusiveError
    shown = outcome if rows else withheld(outcome)
    scores = outcome.minimal_sets if isinstance(outcome, SearchResult) else (outcome,)
    said = answer if rows else withheld_check(answer, [each for each in scores if each])
    raise kind(hook("limit")(said, shown), outcome=outcome)
