"""What in a result deserves attention and where it stands, for JUnit, GitHub and code scanning."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal
from xml.etree import ElementTree

from themis.results.finding import finding, nobody_favoured
from themis.results.model import CausalScore, CheckResult, Measure, Result, Score, SearchResult
from themis.results.notes import Ending
from themis.results.parts import Accepted
from themis.results.withheld import whole_of
from themis.show.words.explanations import example, harms
from themis.show.words.headlines import capital, headline, score_text
from themis.show.words.naming import amount, kind_words, score_words
from themis.show.words.notes import how_it_ended
from themis.show.words.scores import cut_off, failure_text, inconclusive
from themis.show.words.searches import (
    acceptance_words,
    check_interval,
    check_point,
    left_open,
    listed_words,
    scores_about,
    search_headline,
    verdict_words,
)
from themis.show.words.values import set_phrase, set_text, spelled_out, visible
from themis.show.words.wording import PLAIN, Wording, wording

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
    output: str | None = None


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
    words = wording(result)
    for search in result.searches:
        scores = scores_about(result, search)
        for names in search.found:
            score = scores.get(names)
            above = listed_words(search, names)
            of = "" if search.output is None else f" for {set_phrase([search.output])}"
            title = f"{search.measure} score of {set_phrase(names)}{of} is {above}"
            text = _text(score, title, words)
            yield Finding("found", title, text, search.measure, names, score, output=search.output)
        if not search.conclusive:
            text = search_headline(search, words)
            yield Finding("open", "the search is not finished", text)
    if _has_own_scores(result):
        yield from _of_scores(result)


def _has_own_scores(result: Result) -> bool:
    """Whether scores were asked for by themselves; those of a search are of the sets it found."""
    return not result.checks and (result.command == "audit" or not result.searches)


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
    scores, words = scores_about(result, check), wording(result)
    name = visible(check.name)
    about = partial(Finding, measure=check.measure, check=check, line=line, output=check.output)
    reason = visible(check.reason) if check.reason else ""
    if check.verdict == "violated":
        limit = f"The limit is {amount(check.max_score, check)}."
        for names in _above(check, scores_about(whole_of(result), check)):
            score = scores.get(names)
            interval = f"{name}: {check_interval(check)}"
            text = f"{_text(score, interval, words)} {limit}"
            text += f" {capital(reason, result.schema.get('inputs', ()))}." if reason else ""
            yield about("violation", f"{name}: violated", text, against=names, score=score)
    for accepted, one in zip(acceptance_words(check), check.accepted, strict=True):
        score = scores.get(one.against)
        text = f"{accepted} {_text(score, '', words)}".strip()
        yield about("accepted", f"{name}: accepted", text, against=one.against, score=score,
                    accepted=one)  # fmt: skip
    if check.verdict == "not enough evidence":
        title = f"{name}: undecided"
        text = f"{title}: {reason}" if reason else title
        yield about("open", title, text, against=check.against or ())


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
    words = wording(result)
    for score in result.scores:
        if finding(score).state == "grave":
            title = f"{score_words(score)}: {score_text(score)}"
            text = _text(score, title, words)
            yield Finding(
                "measured", title, text, score.measure, score.against, score, output=score.output
            )
    ending = cut_off(result)
    if ending is not None and result.stopped is Ending.INTERRUPTED:
        yield Finding("open", "not everything was measured", ending)
    for text in inconclusive(result.scores):
        yield Finding("open", "not every score is as precise as asked", text)


def _text(score: Score | None, otherwise: str, words: Wording = PLAIN) -> str:
    """What was measured, who loses, and one pair of people, in sentences."""
    if score is None:
        return otherwise
    changes = score.direction if isinstance(score, CausalScore) else ()
    plain = all(words.begins_with_word(each.change_from) for each in changes[:1])
    parts = [headline(score, words)]
    parts += [capital(each) if plain else each for each in harms(score, most=1, words=words)]
    pair = example(score, words)
    parts += [] if pair is None else [f"E.g. {pair}"]
    return " ".join(f"{each}." for each in parts)


_NOT_IN_XML = re.compile("[^\t\n\r\u0020-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def render_junit(result: Result) -> str:
    """A JUnit XML file: a violation is a failure, missing evidence an error.

    What is accepted, or known from a baseline, is skipped with its reason. Scores without a limit
    are tests that pass and say their interval. A run that failed or was interrupted is an error.
    """
    cases = list(_cases(result))
    tags = [child.tag for case in cases for child in case]
    seconds = f"{result.timing.get('seconds', 0.0):.3f}"
    counts = {
        "tests": str(len(cases)),
        "failures": str(tags.count("failure")),
        "errors": str(tags.count("error")),
    }
    suites = ElementTree.Element("testsuites", {"name": "themis", "time": seconds, **counts})
    suite = ElementTree.SubElement(
        suites,
        "testsuite",
        {
            "name": f"themis {_xml(result.command)}",
            **counts,
            "skipped": str(tags.count("skipped")),
            "time": seconds,
            "timestamp": _xml(str(result.timing.get("started", ""))),
        },
    )
    suite.append(_properties(result))
    suite.extend(cases)
    if result.failures:
        failed = ElementTree.SubElement(suite, "system-err")
        lines = [failure_text(kind, failure) for kind, failure in result.failures.items()]
        failed.text = _xml("\n".join(lines))
    ElementTree.indent(suites)
    text = ElementTree.tostring(suites, encoding="unicode")
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{text}\n'


def _properties(result: Result) -> ElementTree.Element:
    properties = ElementTree.Element("properties")
    for name, value in (
        ("seed", result.seed),
        ("executions", result.spent.total),
        ("subject", result.subject.get("kind", "")),
        ("fingerprint", result.subject.get("fingerprint", "")),
        ("stopped", result.stopped),
        *(("note", str(note)) for note in result.notes),
    ):
        attributes = {"name": name, "value": _xml(visible(value))}
        ElementTree.SubElement(properties, "property", attributes)
    return properties


def _cases(result: Result) -> Iterator[ElementTree.Element]:
    ending = cut_off(result)
    if ending is not None:  # what is not in the result must not look as if nobody had asked
        group = f"themis.{_xml(result.command)}"
        yield _case("the run", group, "error", ending, result.stopped)
    found, words = list(findings(result)), wording(result)
    for check in result.checks:
        yield _check_case(check, [each.text for each in found if each.check is check])
    if not result.checks:
        for search in result.searches:
            yield from _search_cases(search, found, words)
    if _has_own_scores(result):
        yield from (_score_case(each, words) for each in result.scores)


def _check_case(check: CheckResult, details: list[str]) -> ElementTree.Element:
    verdict, interval = verdict_words(check), check_interval(check)
    numbers = interval if check.score is None else f"{check_point(check)} ({interval})"
    message = f"{verdict}: {numbers}" if numbers else verdict
    reason = visible(check.reason) if check.reason else ""
    case = partial(_case, visible(check.name), f"themis.{check.measure}")
    if check.verdict == "accepted" or check.baseline == "known":
        reasons = [verdict, *acceptance_words(check), *filter(None, [reason])]
        return case("skipped", "; ".join(reasons), verdict)
    if check.verdict == "violated":
        return case("failure", message, verdict, "\n".join(details))
    if check.verdict == "not enough evidence":
        return case("error", reason or message, verdict, "\n".join(details))
    return case(said=message)


def _search_cases(
    search: SearchResult, found: list[Finding], words: Wording
) -> Iterator[ElementTree.Element]:
    group = f"themis.search.{search.measure}"
    for each in found:
        if each.kind == "found" and (each.measure, each.output) == (search.measure, search.output):
            name = set_text(each.against)
            where = "at" if each.against in search.ties else "above"
            yield _case(name, group, "failure", each.title, f"{where} the threshold", each.text)
    for names in search.undecided:
        yield _case(set_text(names), group, "error", "undecided", "undecided")
    whole = partial(_case, "every combination is decided", group)
    if search.stopped is not Ending.DONE:
        left = left_open(search)
        reason = f"{how_it_ended(search.stopped)}{f' with {left}' if left else ''}"
        yield whole("error", reason, search.stopped)
    else:
        yield whole(said=search_headline(search, words))


def _score_case(score: Score, words: Wording) -> ElementTree.Element:
    said = headline(score, words)
    kind = kind_words(score).removeprefix(score.measure)  # tells scores of one set apart
    name = set_text(score.against) + kind.replace(" of ", ": ", 1)
    case = partial(_case, name, f"themis.{score.measure}", said=said)
    if score.samples and nobody_favoured(score):
        return case("error", said, "undecided")
    if finding(score).kind == "unread":  # a test that passes would look like an answer
        return case("skipped", said, "not an input")
    if score.conclusive:
        return case()
    reason = how_it_ended(score.stopped) if score.samples else said
    return case("error", reason, score.stopped)


def _case(
    name: str,
    group: str,
    outcome: str = "",
    message: str = "",
    kind: str = "",
    details: str = "",
    *,
    said: str = "",
) -> ElementTree.Element:
    """A test with its outcome, if it has one besides passing, and what it says."""
    case = ElementTree.Element("testcase", {"name": _xml(name), "classname": group})
    if outcome:
        words = {"message": _xml(message), "type": _xml(kind)}
        ElementTree.SubElement(case, outcome, words).text = _xml(details) or None
    if said:
        ElementTree.SubElement(case, "system-out").text = _xml(said)
    return case


def _xml(text: str) -> str:
    """The text with characters that XML can't hold, not even escaped, spelled out."""
    return _NOT_IN_XML.sub(lambda found: spelled_out(found[0]), text)


ANNOTATIONS = {
    "failure": "error",
    "violation": "error",
    "found": "warning",
    "open": "warning",
    "accepted": "notice",
    "measured": "notice",
}
_ORDER = ("error", "warning", "notice")  # GitHub shows the first ten of a step


def render_annotations(result: Result) -> str:
    """Workflow commands that GitHub reads from the output of a step, the worst first."""
    ranked = sorted(findings(result), key=lambda each: _ORDER.index(_level(each)))
    return "".join(f"{_command(each, result)}\n" for each in ranked)


def _level(finding: Finding) -> str:
    known = finding.check is not None and finding.check.baseline == "known"
    return "notice" if known else ANNOTATIONS[finding.kind]


def _command(finding: Finding, result: Result) -> str:
    where = place(result, finding)
    known = {"file": where.file, "line": where.line if where.file else None, "title": finding.title}
    properties = ",".join(
        f"{name}={_property(str(value))}" for name, value in known.items() if value is not None
    )
    return f"::{_level(finding)} {properties}::{_data(visible(finding.text))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
