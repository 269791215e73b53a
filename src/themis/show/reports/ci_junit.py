"""How does a result look to whatever reads JUnit? Every check is a test, in one suite."""

from __future__ import annotations

import re
from collections.abc import Iterator
from xml.etree import ElementTree

from themis.results.model import CheckResult, Result, Score, SearchResult
from themis.results.verdicts_search_facts import how_it_ended
from themis.show.reports.ci import Finding, findings
from themis.show.words.scores_display_result_words import cut_off, failure_text
from themis.show.words.searches import search_headline, set_text
from themis.show.words.searches_display_check_words import (
    acceptance_words,
    check_interval,
    verdict_words,
)
from themis.show.words.values import headline, visible

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
        ("executions", result.executions),
        ("subject", result.subject.get("kind", "")),
        ("fingerprint", result.subject.get("fingerprint", "")),
        ("stopped", result.stopped),
        *(("note", note) for note in result.notes),
    ):
        attributes = {"name": name, "value": _xml(visible(value))}
        ElementTree.SubElement(properties, "property", attributes)
    return properties


def _cases(result: Result) -> Iterator[ElementTree.Element]:
    ending = cut_off(result)
    if ending is not None:  # what is not in the result must not look as if nobody had asked
        case = _case("the run", f"themis.{_xml(result.command)}")
        _outcome(case, "error", ending, result.stopped)
        yield case
    if result.checks:
        found = list(findings(result))
        for check in result.checks:
            yield _check_case(check, [each.text for each in found if each.check is check])
        return
    for search in result.searches:
        yield from _search_cases(search, list(findings(result)))
    if not result.searches:
        for score in result.scores:
            yield _score_case(score)


def _check_case(check: CheckResult, details: list[str]) -> ElementTree.Element:
    case = _case(visible(check.name), f"themis.{check.measure}")
    verdict, interval = verdict_words(check), check_interval(check)
    message = f"{verdict}: {interval}" if interval else verdict
    if check.verdict == "accepted" or check.baseline == "known":
        reasons = [*acceptance_words(check), *([visible(check.reason)] if check.reason else [])]
        _outcome(case, "skipped", "; ".join([verdict, *reasons]), verdict)
    elif check.verdict == "violated":
        _outcome(case, "failure", message, verdict, "\n".join(details))
    elif check.verdict == "not enough evidence":
        reason = visible(check.reason) if check.reason else message
        _outcome(case, "error", reason, verdict, "\n".join(details))
    else:
        _say(case, message)
    return case


def _search_cases(search: SearchResult, found: list[Finding]) -> Iterator[ElementTree.Element]:
    group = f"themis.search.{search.measure}"
    own = [each for each in found if each.kind == "found" and each.measure == search.measure]
    for each in own:
        case = _case(set_text(each.against), group)
        _outcome(case, "failure", each.title, "above the threshold", each.text)
        yield case
    for names in search.undecided:
        case = _case(set_text(names), group)
        _outcome(case, "error", "it could not be decided", "undecided")
        yield case
    whole = _case("every set is decided", group)
    if search.stopped != "done":
        reason = f"{how_it_ended(search.stopped)} with {search.sets_open:,} sets open"
        _outcome(whole, "error", reason, search.stopped)
    else:
        _say(whole, search_headline(search))
    yield whole


def _score_case(score: Score) -> ElementTree.Element:
    case = _case(set_text(score.against), f"themis.{score.measure}")
    if not score.conclusive:
        reason = how_it_ended(score.stopped) if score.samples else headline(score)
        _outcome(case, "error", reason, score.stopped)
    _say(case, headline(score))
    return case


def _case(name: str, group: str) -> ElementTree.Element:
    return ElementTree.Element("testcase", {"name": _xml(name), "classname": group})


def _outcome(
    case: ElementTree.Element, tag: str, message: str, kind: str, details: str = ""
) -> None:
    outcome = ElementTree.SubElement(case, tag, {"message": _xml(message), "type": _xml(kind)})
    outcome.text = _xml(details) or None


def _say(case: ElementTree.Element, text: str) -> None:
    ElementTree.SubElement(case, "system-out").text = _xml(text)


def _xml(text: str) -> str:
    """The text with characters that XML can't hold, not even escaped, spelled out."""
    return _NOT_IN_XML.sub(
        lambda found: found[0].encode("unicode_escape", "surrogatepass").decode("ascii"), text
    )
