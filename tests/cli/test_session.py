"""Is the file read once per command, and never overwritten?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.projects import SMALL, enter, run, write_project

PEOPLE = "race,sex,income\n" + "green,f,10\npurple,m,40\n" * 20
COUNTING = """
import sys
reads = []
sys.addaudithook(lambda event, details: event == "open" and reads.append(str(details[0])))
from themis.cli import main
try:
    main()
finally:
    print("READ", [each for each in reads if each.endswith("themis.toml")], file=sys.stderr)
"""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with people, a check, and a saved result."""
    enter(tmp_path, monkeypatch)
    (tmp_path / "people.csv").write_text(PEOPLE)
    write_project(
        tmp_path,
        inputs=SMALL,
        extra='[profile]\ndata = "people.csv"\n[[checks]]\nagainst = ["race"]\nmax_score = 1.0\n',
    )
    assert run("score", "-o", "result.json").exit_code == 0
    return tmp_path


def files_read(*arguments: str) -> str:
    """Which TOML files a command opens, in a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", COUNTING, *arguments], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr
    return done.stderr.splitlines()[-1]


def test_a_saved_result_is_reported_without_the_file(folder: Path) -> None:
    words = "report result.json --format html,md,csv -o new/"
    assert files_read(*words.split()) == "READ []"


@pytest.mark.parametrize(
    "command",
    [
        "validate",
        "score -o new.json --suite suite.csv --rows",
        "search --threshold 0.9 -o new.json",
        "apparent -o new.json",
        "check --baseline result.json -o new.json",
        "replay result.json --fail-on new -o new.json",
    ],
)
@pytest.mark.slow
def test_the_file_is_read_once(folder: Path, command: str) -> None:
    assert files_read(*command.split()) == "READ ['themis.toml']"


def test_the_time_of_loading_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, inputs=SMALL)
    with next(tmp_path.glob("project_*.py")).open("a") as module:
        module.write("time.sleep(0.2)\n")
    timing = json.loads(run("score", "--against", "race", "--json").stdout)["timing"]
    assert timing["loading"] >= 0.2
    assert timing["seconds"] >= 0
