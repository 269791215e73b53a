"""Messages on stderr: lines that fit a terminal, and one line each where nobody watches."""

from __future__ import annotations

import io
import sys

import pytest

from tests.show.test_display import Terminal
from themis.cli.printing import say

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


def test_a_code_does_not_indent_what_follows(monkeypatch: pytest.MonkeyPatch) -> None:
    told = LONG.replace("error:", "error[min-max]:")
    assert said(monkeypatch, Terminal(), told).splitlines()[1].startswith("       inputs.age")


def test_no_path_is_broken(monkeypatch: pytest.MonkeyPatch) -> None:
    path = f"/{'long/' * 20}name.toml"
    assert path in said(monkeypatch, Terminal(), f"error: {path}: there is no such file")


def test_a_command_to_be_copied_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "themis score --against race --against sex --no-cache"
    shown = said(monkeypatch, Terminal(), "interrupted; run it again", command=command)
    assert shown == f"interrupted; run it again\n  $ {command}\n"
    shown = said(monkeypatch, io.StringIO(), "interrupted; run it again", command=command)
    assert shown == f"interrupted; run it again: {command}\n"
