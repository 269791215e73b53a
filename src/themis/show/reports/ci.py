"""What in a result deserves somebody's attention, and where does it stand in the file?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

from themis.results.model import Accepted, CheckResult, Measure, Result, Score, SearchResult
from themis.show.words.scores_display_result_words import failure_text, inconclusive
from themis.show.words.searches import amount, example, harms, search_headline
from themis.show.words.searches_display_check_words import acceptance_words, check_interval
from themis.show.words.values import headline, percent, set_phrase, visible

Kind = Literal["violation", "accepted", "found", "measured", "open", "failure"]


@dataclass(frozen=True)
class Place:
    """Lines of the configuration file; without a file only names are known."""

    file: str | None
    line: int | None = None


@dataclass(frozen=True)
class Finding:
    """One thing to look at.

    A `violation` is above a limit, `accepted` is one that is let pass, `found` is a set above the
    threshold of a search, `measured` a score without any limit, `open` what could not be
    decided, `failure` an execution without a decision.
    """

    kind: Kind
    title: str
    text: str
    measure: Measure | None = None
    against: tuple[str, ...] = ()
    score: Score | None = None
    check: CheckResult | None = None
    line: int | None = None  # of the check in the file
    accepted: Accepted | None = None

    @property
    def is_known(self) -> bool:
        """Whether a baseline knows it already."""
        return self.check is not None and self.check.baseline == "known"


def findings(result: Result) -> Iterator[Finding]:
    """All of a result, the worst first within each check."""
    for kind, failure in result.failures.items():
        yield Finding(
            "failure", f"the subject failed: {visible(kind)}", failure_text(kind, failure)
        )
    if result.checks:
        for number, check in enumerate(result.checks):
            yield from _of_check(check, result, _check_line(result, number))
        return
    for search in result.searches:
        scores = narrowest(result, search)
        for names in search.found:
            score = scores.get(names)
            above = f"above {amount(search.threshold, search.measure)}"
            title = f"{search.measure} score of {set_phrase(names)} is {above}"
            yield Finding("found", title, _text(score, title), search.measure, names, score)
        if not search.conclusive:
            yield Finding("open", "the search is not finished", search_headline(search))
    if not result.searches:
        yield from _of_scores(result)


def narrowest(result: Result, part: SearchResult | CheckResult) -> dict[tuple[str, ...], Score]:
    """The scores that a search or a check is about, by their sets; of several, the most precise."""
    own = (part.measure, part.output)
    about = [s for s in result.scores if s.samples and (s.measure, s.output) == own]
    return {score.against: score for score in sorted(about, key=lambda s: s.low - s.high)}


def place(result: Result, finding: Finding) -> Place:
    """Where a finding stands: at its first characteristic, else at its check."""
    source = result.source or {}
    lines = source.get("lines") or {}
    known = [lines[name] for name in finding.against if name in lines]
    return Place(source.get("file"), known[0] if known else finding.line)


def _check_line(result: Result, number: int) -> int | None:
    lines: Sequence[int | None] = (result.source or {}).get("checks") or ()
    return lines[number] if number < len(lines) else None


def _of_check(check: CheckResult, result: Result, line: int | None) -> Iterator[Finding]:
    scores = narrowest(result, check)
    accepted = {each.against: each for each in check.accepted}
    name = visible(check.name)
    if check.verdict == "violated":
        for names in _above(check, scores):
            score = scores.get(names)
            limit = f"The limit is {amount(check.max_score, check.measure)}."
            text = f"{_text(score, f'{name}: {check_interval(check)}')} {limit} {_why(check)}"
            yield Finding(
                "violation",
                f"{name}: violated",
                text.strip(),
                check.measure,
                names,
                score,
                check,
                line,
            )
    for sentence, (names, one) in zip(acceptance_words(check), accepted.items(), strict=True):
        score = scores.get(names)
        text = f"{sentence} {_text(score, '')}".strip()
        yield Finding(
            "accepted", f"{name}: accepted", text, check.measure, names, score, check, line, one
        )
    if check.verdict == "not enough evidence":
        title = f"{name}: not enough evidence"
        text = f"{title}: {visible(check.reason)}" if check.reason else title
        against = check.against or ()
        yield Finding("open", title, text, check.measure, against, None, check, line)


def _above(check: CheckResult, scores: dict[tuple[str, ...], Score]) -> list[tuple[str, ...]]:
    """The sets that violate a limit: surely above it, and not accepted."""
    if check.against is not None:
        return [check.against]
    passed = {each.against for each in check.accepted}
    known = [
        (scores[names].low, names)
        for names in check.sets
        if names not in passed and names in scores
    ]
    return [names for low, names in sorted(known, reverse=True) if low > check.max_score]


def _of_scores(result: Result) -> Iterator[Finding]:
    for score in result.scores:
        if score.low > 0:
            title = f"{score.measure} score of {set_phrase(score.against)}: {percent(score.score)}"
            yield Finding(
                "measured", title, _text(score, title), score.measure, score.against, score
            )
    for text in inconclusive(result.scores):
        yield Finding("open", "not every score is as precise as asked", text)


def _text(score: Score | None, otherwise: str) -> str:
    """What was measured, who loses, and one pair of people, in sentences."""
    if score is None:
        return otherwise
    parts = [headline(score), *harms(score, most=1)]
    pair = example(score)
    parts += [] if pair is None else [f"e.g. {pair}"]
    return " ".join(f"{each}." for each in parts)


def _why(check: CheckResult) -> str:
    return f"{visible(check.reason)}." if check.reason else ""
