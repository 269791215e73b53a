"""Messages on stderr: lines that fit a terminal, and one line each where nobody watches."""

from __future__ import annotations

import io
import sys

import pytest

from tests.show.test_display import Terminal
from themis.cli import app
from themis.cli.printing import print_line, say

LONG = "error: themis.toml:4: inputs.age: minimum 90 exceeds maximum 18 by 72.0 %; swap them"


def said(monkeypatch: pytest.MonkeyPatch, stream: io.StringIO, message: str, **more: str) -> str:
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    say(message, **more)
    return stream.getvalue()


def test_a_message_on_a_terminal_is_wrapped_and_indented(monkeypatch: pytest.MonkeyPatch) -> None:
    first, *others = said(monkeypatch, Terminal(), LONG).splitlines()
    assert first == "error: themis.toml:4: inputs.age:"
    assert others
    assert all(len(line) <= 40 and line[:8].strip() == line[7] for line in others)
    assert " ".join([first, *map(str.strip, others)]) == LONG
    assert not any(line.strip().startswith("%") for line in others)


def test_a_message_elsewhere_is_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    assert said(monkeypatch, io.StringIO(), LONG) == f"{LONG}\n"


def test_no_path_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/{'long/' * 20}name.toml"
    assert path in said(monkeypatch, Terminal(), f"error: {path}: there is no such file")


def test_a_command_to_be_copied_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "themis score --against race --against sex --no-cache"
    shown = said(monkeypatch, Terminal(), "interrupted; run it again", command=command)
    assert shown == f"interrupted; run it again\n  $ {command}\n"
    shown = said(monkeypatch, io.StringIO(), "interrupted; run it again", command=command)
    assert shown == f"interrupted; run it again: {command}\n"


def test_a_wrong_call_is_wrapped_as_well(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = Terminal()
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setenv("COLUMNS", "40")
    with pytest.raises(SystemExit) as ended:
        app(["score", "--stopping", "certifid"], prog_name="themis")
    assert ended.value.code == 2
    lines = stream.getvalue().splitlines()
    assert len(lines) > 1
    assert all(len(line) <= 40 for line in lines)


def test_what_was_written_is_wrapped_on_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "wrote report.html, annex.html, summary.md, README.md, result.json in out"
    for stream, fits in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setenv("COLUMNS", "40")
        print_line(text)
        lines = stream.getvalue().splitlines()
        assert (max(map(len, lines)) <= 40) == fits
        assert " ".join(lines) == text


def test_a_message_has_plain_signs_where_others_can_not_be_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for encoding, shown in (
        ("ascii", b"10 <= x, 5 - 7 \\xb5s"),
        ("utf-8", "10 ≤ x, 5 – 7 µs".encode()),
    ):
        raw = io.BytesIO()
        stream = io.TextIOWrapper(raw, encoding=encoding, errors="backslashreplace")
        monkeypatch.setattr(sys, "stderr", stream)
        say("10 ≤ x, 5 – 7 µs")
        assert raw.getvalue().strip() == shown
