"""What a command may replace: an earlier file of the same kind, known by how it begins."""

from __future__ import annotations

import json
import re
from pathlib import Path

RESULT_KEYS = {"themis", "command", "executions", "stopped"}
_PAGE = r'<!doctype html>\s*<html [^>]*><head><meta charset="utf-8"/><meta http-equiv="Content-Sec'
SIGNATURES = {  # of each format of a report
    "html": _PAGE,
    "annex": _PAGE,
    "md": r"## Themis(: [^\n]+)?\n\n\*\*",
    "junit": r'<\?xml [^>]*>\s*<testsuites name="themis"',
    "sarif": r'\{[^{}]*"runs": \[\s*\{\s*"tool": \{\s*"driver": \{\s*"name": "Themis"',
    "github": r"::(error|warning|notice) ",
    "csv": r"measure,against,score,low,high,confidence,error,",
}


def is_no_loss(path: Path, kind: str) -> bool:
    """Whether a file of this kind, a result or the format of a report, may take this place.

    It may where nothing is there, a device or a pipe, an empty file, or one of the same kind.
    """
    from themis.engine.replacing import text_at_risk

    text = text_at_risk(path)
    if kind == "result" and text.startswith("{"):
        return _is_result(path)
    return not text or re.match(SIGNATURES.get(kind, r"\Z"), text) is not None


def loss(path: Path, what: str) -> tuple[str, str]:
    """The problem and the remedy where another file would be lost."""
    problem = f"{str(path)!r} is there already and is no {what}: it would be lost"
    return problem, "name another file, or remove it"


def _is_result(path: Path) -> bool:
    """A result or a replay, also where others sorted its keys."""
    from themis.inputs.row_files import encoding_of

    try:
        data = json.loads(path.read_bytes().decode(encoding_of(path)))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and data.keys() >= RESULT_KEYS
