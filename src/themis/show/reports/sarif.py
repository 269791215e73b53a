"""A result for code scanning: SARIF 2.1.0, with findings at lines of the file."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any
from urllib.parse import quote

from themis._version import __version__
from themis.results.model import Measure, Result, Score
from themis.results.notes import Ending
from themis.results.withheld import is_told
from themis.show.reports.ci import Finding, findings, place
from themis.show.words.values import set_phrase

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
LEVELS = {"violation": "error", "accepted": "error", "found": "warning", "measured": "note"}
BASELINE_STATES = {"new": "new", "known": "unchanged"}  # of what is undecided there is none
_RULES: dict[Measure, tuple[str, str]] = {
    "causal": (
        "Changing only these characteristics changes the output",
        "The causal score is the share of test inputs whose output changes when nothing but the "
        "named characteristics is changed, or by which share of its scale a number then changes.",
    ),
    "excess": (
        "Changing only these characteristics alters the output beyond chance",
        "The excess is how often the output differs when nothing but the named characteristics is "
        "changed, minus how often it differs when the same input is asked again.",
    ),
    "group": (
        "Groups differ in rates of favourable outputs, or in means",
        "The group score is the largest difference between the groups' rates of favourable "
        "outputs, or between the means of a number as a share of its scale.",
    ),
}


def render_sarif(result: Result) -> str:
    """A SARIF log of one run; what could not be decided is a notification, no result."""
    found = list(findings(result))
    command = {} if result.source is None else {"commandLine": result.source.get("command", "")}
    invocation = {
        "executionSuccessful": result.stopped is Ending.DONE and not result.failures,
        **{name: value for name, value in command.items() if value},
        "toolExecutionNotifications": [
            _notification(each, result) for each in found if each.kind not in LEVELS
        ],
    }
    log = {
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": _driver()},
                "automationDetails": {"id": f"themis/{result.command}/"},
                "invocations": [invocation],
                "results": [_result(each, result) for each in found if each.kind in LEVELS],
                "columnKind": "unicodeCodePoints",
                "properties": {
                    "seed": result.seed,
                    "executions": result.spent.total,
                    "fingerprint": result.subject.get("fingerprint", ""),
                    "notes": list(map(str, result.notes)),
                },
            }
        ],
    }
    return json.dumps(log, indent=2) + "\n"


def _driver() -> dict[str, Any]:
    return {
        "name": "Themis",
        "version": __version__,
        "semanticVersion": __version__,
        "rules": [
            {
                "id": _rule(measure),
                "name": f"{measure.capitalize()}Discrimination",
                "shortDescription": {"text": short},
                "fullDescription": {"text": full},
                "help": {"text": full},
                "defaultConfiguration": {"level": "error"},
            }
            for measure, (short, full) in _RULES.items()
        ],
    }


def _result(finding: Finding, result: Result) -> dict[str, Any]:
    measure: Measure = finding.measure or "causal"
    text = f"{finding.title}. {finding.text}"
    key = json.dumps([measure, sorted(finding.against), *_told_apart_by(finding)])
    data: dict[str, Any] = {
        "ruleId": _rule(measure),
        "ruleIndex": list(_RULES).index(measure),
        "level": LEVELS[finding.kind],
        "message": {"text": _message(text)},
        "locations": [_location(finding, result)],
        "partialFingerprints": {"themisSet/v1": hashlib.sha256(key.encode()).hexdigest()},
        "properties": dict(_numbers(finding)),
    }
    related = list(_related(finding, result))
    if related:
        data["relatedLocations"] = related
    if finding.check is not None and finding.check.baseline in BASELINE_STATES:
        data["baselineState"] = BASELINE_STATES[finding.check.baseline]
    if finding.accepted is not None:
        reason = f"{finding.accepted.reason} (until {finding.accepted.until})"
        data["suppressions"] = [{"kind": "external", "status": "accepted", "justification": reason}]
    return data


def _told_apart_by(finding: Finding) -> Iterator[str]:
    """What tells findings about one set apart, as far as it is not the usual one."""
    if finding.output is not None:
        yield finding.output
    usual = {"statistic": "rate", "population": "inputs", "counterfactuals": "generated"}
    known = ((getattr(finding.score, name, each), each) for name, each in usual.items())
    yield from (own for own, each in known if own != each)
    if finding.kind == "found":  # beside the set's own score
        yield "search"


def _notification(finding: Finding, result: Result) -> dict[str, Any]:
    failed = finding.kind == "failure"
    data: dict[str, Any] = {
        "level": "error" if failed else "warning",
        "message": {"text": _message(f"{finding.title}. {finding.text}")},
    }
    where = place(result, finding)
    if where.file is not None:
        data["locations"] = [_location(finding, result)]
    return data


def _location(finding: Finding, result: Result) -> dict[str, Any]:
    """In the file where there is one; the characteristics' names in any case."""
    where = place(result, finding)
    data: dict[str, Any] = {}
    if where.file is not None:
        data["physicalLocation"] = _physical(where.file, where.line)
    if finding.against:
        data["logicalLocations"] = [
            {"name": name, "fullyQualifiedName": f"inputs.{name}", "kind": "parameter"}
            for name in finding.against
        ]
    return data


def _related(finding: Finding, result: Result) -> Iterator[dict[str, Any]]:
    """The other characteristics of a set, each at its line."""
    source: Mapping[str, Any] = result.source or {}
    lines = source.get("lines") or {}
    if source.get("file") is None:
        return
    for name in finding.against[1:]:
        if name in lines:
            message = _message(set_phrase([name]))
            yield {
                "physicalLocation": _physical(source["file"], lines[name]),
                "message": {"text": message},
            }


def _physical(file: str, line: int | None) -> dict[str, Any]:
    path = PurePosixPath(file)
    artifact = {"uri": path.as_uri()} if path.is_absolute() else {"uri": quote(file)}
    if not path.is_absolute():
        artifact["uriBaseId"] = "%SRCROOT%"
    return {
        "artifactLocation": artifact,
        **({} if line is None else {"region": {"startLine": line}}),
    }


def _numbers(finding: Finding) -> Iterator[tuple[str, Any]]:
    part = finding.score or finding.check
    if part is not None and (not isinstance(part, Score) or is_told(part)):
        for name in ("score", "low", "high", "confidence"):
            yield name, getattr(part, name)
    if finding.check is not None:
        yield "maxScore", finding.check.max_score


def _rule(measure: Measure) -> str:
    return f"{measure}-discrimination"


def _message(text: str) -> str:
    """Plain text of a SARIF message, in which { } would be places and [ ]( ) a link."""
    text = text.replace("{", "{{").replace("}", "}}")
    if "](" in text:
        text = text.replace("\\", "\\\\").replace("[", "\\[").replace("]", "\\]")
    return text
