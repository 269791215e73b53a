"""What a command may replace: an earlier file of the same kind, known by its content."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

MOST_BYTES = 2**28  # of JSON that is read to find out what it is

_PAGE = re.compile(
    r'<!doctype html>\s*<html lang="[^"]*" dir="[^"]*"><head><meta charset="utf-8"/>'
    r'<meta http-equiv="Content-Security-Policy" content="default-src'
)
_MARKS = {
    "html": _PAGE,
    "annex": _PAGE,
    "md": re.compile(r"## Themis(:|\n|$)"),
    "junit": re.compile(r'<\?xml [^>]*>\s*<testsuites name="themis"'),
    "sarif": re.compile(r'\{[^}]*"driver":\s*\{\s*"name":\s*"Themis"'),
    "github": re.compile(r"(::(error|warning|notice) [^\n]*(\n|$))+\Z"),
    "csv": re.compile(r"measure,against,score,"),
}
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


def _is_result(path: Path, text: str, _: str) -> bool:
    """A result or a replay; where others sorted its keys, all of it is read."""
    from themis.inputs.row_files import encoding_of

    if re.match(r'\{\s*"themis"\s*:', text):
        return True
    try:
        if not text.startswith("{") or path.stat().st_size > MOST_BYTES:
            return False
        data = json.loads(path.read_bytes().decode(encoding_of(path)))
    except (OSError, ValueError, RecursionError):
        return False
    return isinstance(data, dict) and "themis" in data


def _is_score_table(path: Path, _: str, __: str) -> bool:
    from themis.engine.replacing import parquet_footer

    footer = parquet_footer(path)
    return all(name in footer for name in _SCORE_COLUMNS)


_CONTENTS: dict[str, Callable[[Path, str, str], bool]] = {
    "result": _is_result,
    "parquet": _is_score_table,
}
