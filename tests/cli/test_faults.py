"""Odd circumstances: closed streams, outputs beyond all measure, narrow terminals, slow loading."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path
from threading import Event

import pytest

import themis
from tests.external import finish, start
from tests.projects import SMALL, enter, run, write_project
from tests.show.test_display import Terminal
from themis.cli.options import Options
from themis.cli.printing import say
from themis.cli.session import Session


def close_streams() -> None:
    for number in (0, 1):
        os.close(number)


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    return tmp_path


def test_a_closed_standard_output_is_quiet(folder: Path) -> None:
    write_project(folder, "print('x'); return int(person['race'] == 'green')", inputs=SMALL)
    process = start("score", "-o", "result.json", preexec_fn=close_streams)
    finish(process)
    assert (folder / "result.json").read_text().startswith("{")  # and nothing was printed into it
    assert themis.read_result(folder / "result.json").scores


@pytest.mark.parametrize(
    ("body", "code", "said"),
    [
        ("return person['race'][0] * 10**5", 0, "… (100,000 characters)"),
        ("raise ValueError('x' * 10**5)", 3, "… (100,000 characters)"),
        ("return {'a': 'x' * 10**5}", 3, "… (100,009 characters)"),
        ("return [0.5] * 10**4", 3, "… (50,000 characters)"),
    ],
)
def test_huge_outputs_are_cut_in_messages(folder: Path, body: str, code: int, said: str) -> None:
    write_project(folder, body, inputs=SMALL)
    done = run("score", "-o", "result.json")
    assert done.exit_code == code
    words = " ".join((done.stdout + done.stderr).split())
    assert said in words
    assert len(words) < 5_000
    for form in ("md", "html", "sarif", "github", "junit") if code == 0 else ():
        assert run("report", "result.json", "--format", form, "-o", f"a.{form}").exit_code == 0
        assert (folder / f"a.{form}").stat().st_size < 50_000, form


def test_a_range_beyond_all_floats_is_refused() -> None:
    with pytest.raises(themis.ThemisError, match=r"1.0e\+310 values are too many"):
        themis.Reals(0.0, 1e300, step=1e-10)


INTERRUPTED = """
import runpy, sys
class Finder:
    def find_spec(self, name, *_):
        if name == "themis.cli":
            raise KeyboardInterrupt
sys.meta_path.insert(0, Finder())
runpy.run_module("themis", run_name="__main__")
"""


def test_ctrl_c_while_themis_starts_is_quiet() -> None:
    command = [sys.executable, "-c", INTERRUPTED]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize(
    ("option", "expected"), [("--quiet", ["loading"]), ("--no-progress", []), ("--json", [])]
)
def test_what_takes_long_says_so_even_if_it_is_to_be_quiet(
    option: str, expected: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    said: list[str] = []
    heard = Event()

    def hear(line: str) -> None:
        said.append(line.partition(" ")[0])
        heard.set()

    monkeypatch.setattr("themis.cli.session.say", hear)
    monkeypatch.setattr("themis.show.terminal.progress.LOG_SECONDS", 0.001)
    options = Options(**{option[2:].replace("-", "_").replace("json", "as_json"): True})
    with Session(options, themis.Audit)._watch().line:
        if expected:
            heard.wait(60)
    assert said[:1] == expected


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
    told = LONG.replace("error:", "error[min-max]:")
    assert said(monkeypatch, Terminal(), told).splitlines()[1].startswith("       inputs.age")
    path = f"/{'long/' * 20}name.toml"
    assert path in said(monkeypatch, Terminal(), f"error: {path}: there is no such file")


def test_a_command_to_be_copied_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    command = "themis score --against race --against sex --no-cache"
    for stream, between in ((Terminal(), "\n  $ "), (io.StringIO(), ": ")):
        shown = said(monkeypatch, stream, "interrupted; run it again", command=command)
        assert shown == f"interrupted; run it again{between}{command}\n"


def test_the_time_of_loading_is_told_apart(folder: Path) -> None:
    write_project(folder, inputs=SMALL, head="time.sleep(0.2)")
    timing = json.loads(run("score", "--against", "race", "--json").stdout)["timing"]
    assert timing["loading"] >= 0.2
    assert timing["seconds"] >= 0
