"""Is a score within its limit, or does the test fail? Assertions about what was measured."""

from __future__ import annotations

from typing import Any

from themis.config.reader import Check
from themis.errors import DiscriminationError, InconclusiveError, Mistake, RequestError
from themis.results.model import CheckResult, Measure, Score, SearchResult
from themis.results.verdicts import judge_score, judge_search
from themis.results.verdicts_search_facts import how_it_ended
from themis.show.terminal.checks_display_limits import limit_text


def assert_below(score: Score, limit: float) -> None:
    """Raise DiscriminationError if the score is certainly above, InconclusiveError if it may be."""
    __tracebackhide__ = True
    check = limit_on(score.measure, score.against, limit, score.output)
    answer = judge_score(check, score, score.confidence)
    raise_unless_it_holds(answer, score)


def assert_nothing_found(search: SearchResult) -> None:
    """Raise DiscriminationError if some set is above, InconclusiveError if one may be."""
    __tracebackhide__ = True
    answer = judge_search(limit_on(search.measure, None, search.threshold), search,
                          search.confidence)  # fmt: skip
    raise_unless_it_holds(answer, search)


def assert_conclusive(score: Score) -> None:
    """Raise InconclusiveError if the run was cut off."""
    __tracebackhide__ = True
    if not score.conclusive:
        raise InconclusiveError(f"{score}\n{how_it_ended(score.stopped)}", outcome=score)


def limit_on(
    measure: Measure, against: tuple[str, ...] | None, limit: Any, output: str | None = None
) -> Check:
    """A limit on the score of one set, or of all; raises RequestError where it makes no sense."""
    number = isinstance(limit, int | float) and not isinstance(limit, bool)
    if not number or not 0 <= limit < 1 or (against is None and limit == 0):
        problem = f"must be at least 0 and below 1, got {limit!r}"
        raise RequestError([Mistake("limit", "limit", problem, "write 0.05 for 5 %")])
    sets = "search" if against is None else ",".join(against)
    of = "" if output is None else f" of {output}"
    return Check(
        against=against,
        search=against is None,
        measure=measure,
        max_score=limit,
        name=f"{measure} {sets}{of} at most {limit:g}",
        line=None,
        output=output,
    )


def raise_unless_it_holds(answer: CheckResult, outcome: Score | SearchResult | None) -> None:
    """Raise the error that fits the verdict."""
    __tracebackhide__ = True
    if answer.verdict == "holds":
        return
    kind = DiscriminationError if answer.verdict == "violated" else InconclusiveError
    raise kind(limit_text(answer, outcome), outcome=outcome)
