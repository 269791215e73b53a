"""What a command may replace: an earlier file of the same kind, known by its content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

MOST_BYTES = 2**28  # of a file that is read to find out what it is

_PAGE = re.compile(
    r'<!doctype html>\s*<html lang="[^"]*" dir="[^"]*"><head><meta charset="utf-8"/>'
    r'<meta http-equiv="Content-Security-Policy" content="default-src'
)
_MARKS = {  # of the beginning
    "html": _PAGE,
    "annex": _PAGE,
    "junit": re.compile(r'<\?xml [^>]*>\s*<testsuites name="themis"'),
    "csv": re.compile(r"measure,against,score,low,high,confidence,error,"),
}
_TITLE = r"## Themis(: [^\n]+)?\n\n\*\*[^\n]+\.\*\*\n\n"
_WHOLE = {  # of all of it: whatever somebody wrote below is not ours
    "md": re.compile(
        rf"{_TITLE}(?:(?s:.*\n\n)?<sub>[^\n]*\bseed [^\n]*</sub>"  # a result
        r"|(?s:.*\n)?- (Each reported change|All |Nothing |No change )[^\n]+"  # a difference
        r"|(?s:.*\n)?- [^\n]*\binputs?\b[^\n]* · [^\n]*)\s*\Z"  # a replay
    ),
    "github": re.compile(r"(::(error|warning|notice) [^\n]*(\n|\Z))+\Z"),
}
_RESULT_KEYS = {"themis", "command", "executions", "stopped"}
_SCORE_COLUMNS = (b"measure", b"against", b"fingerprint")


def is_no_loss(path: Path, kind: str) -> bool:
    """Whether a file of this kind, a result or the format of a report, may take this place.

    It may where nothing is there, a device or a pipe, an empty file, or one of the same kind.
    """
    from themis.engine.replacing import text_at_risk

    text = text_at_risk(path)
    return not text or _CONTENTS.get(kind, _is_marked)(path, text, kind)


def loss(path: Path, what: str) -> tuple[str, str]:
    """The problem and the remedy where another file would be lost."""
    problem = f"{str(path)!r} is there already and is no {what}: it would be lost"
    return problem, "name another file, or remove it"


def _is_marked(_: Path, text: str, kind: str) -> bool:
    return _MARKS[kind].match(text) is not None


def _is_wholly_marked(path: Path, text: str, kind: str) -> bool:
    """Whether all of a text is as Themis writes it."""
    starts = ("## Themis", "::")
    return text.startswith(starts) and _WHOLE[kind].match(_all_of(path).strip()) is not None


def _is_result(path: Path, text: str, _: str) -> bool:
    """A result or a replay, also where others sorted its keys."""
    data = _json_of(path, text)
    return isinstance(data.get("themis"), str) and data.keys() >= _RESULT_KEYS


def _is_sarif(path: Path, text: str, _: str) -> bool:
    """Findings of Themis, and of nobody else."""
    runs = _json_of(path, text).get("runs") or []
    try:
        return {each["tool"]["driver"]["name"] for each in runs} == {"Themis"}
    except (TypeError, LookupError):
        return False


def _json_of(path: Path, text: str) -> dict[str, Any]:
    """The JSON object in a file; empty where there is none."""
    try:
        data = json.loads(_all_of(path)) if text.startswith("{") else None
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _all_of(path: Path) -> str:
    """What a file holds; nothing where it is too large to be one of ours."""
    from themis.inputs.row_files import encoding_of

    try:
        if path.stat().st_size > MOST_BYTES:
            return ""
        return path.read_bytes().decode(encoding_of(path))
    except (OSError, ValueError):
        return ""


def _is_score_table(path: Path, _: str, __: str) -> bool:
    from themis.engine.replacing import parquet_footer

    footer = parquet_footer(path)
    return all(name in footer for name in _SCORE_COLUMNS)


_CONTENTS: dict[str, Callable[[Path, str, str], bool]] = {
    "result": _is_result,
    "sarif": _is_sarif,
    "md": _is_wholly_marked,
    "github": _is_wholly_marked,
    "parquet": _is_score_table,
}
