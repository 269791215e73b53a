"""How does GitHub show a result? Annotations at the lines of the file, one command per line."""

from __future__ import annotations

from themis.results.model import Result
from themis.show.reports.ci import Finding, findings, place
from themis.show.words.values import visible

LEVELS = {
    "failure": "error",
    "violation": "error",
    "found": "warning",
    "open": "warning",
    "accepted": "notice",
    "measured": "notice",
}
_ORDER = ("error", "warning", "notice")  # GitHub shows the first ten of a step


def render_annotations(result: Result) -> str:
    """Workflow commands that GitHub reads from the output of a step, the gravest first."""
    ranked = sorted(findings(result), key=lambda each: _ORDER.index(_level(each)))
    return "".join(f"{_command(each, result)}\n" for each in ranked)


def _level(finding: Finding) -> str:
    return "notice" if finding.is_known else LEVELS[finding.kind]


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
