"""Does a command leave alone what the user has? It never writes where it reads."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tests.projects import SMALL, enter, run, write_project

PEOPLE = "race,sex,income\n" + "green,f,10\npurple,m,40\n" * 20


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with people, a suite, and a saved result; its subject notes that it ran."""
    enter(tmp_path, monkeypatch)
    (tmp_path / "people.csv").write_text(PEOPLE)
    (tmp_path / "others.csv").write_text(PEOPLE)
    write_project(
        tmp_path,
        "open('ran', 'w').close()\nreturn int(person['race'] == 'green')",
        inputs=SMALL,
        extra='[profile]\ndata = "people.csv"\n[report]\nrows = true\n'
        '[[checks]]\nagainst = ["race"]\nmax_score = 0.5\n',
    )
    assert run("score", "-o", "result.json", "--suite", "suite.csv").exit_code == 0
    (tmp_path / "ran").unlink()
    os.link("result.json", "linked.json")
    (tmp_path / "pointer.csv").symlink_to("people.csv")
    return tmp_path


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("score -o themis.toml", "--output: 'themis.toml' is the configuration"),
        ("score . -o ./themis.toml", "--output: 'themis.toml' is the configuration"),
        ("score -o people.csv", "--output: 'people.csv' is the data of [profile]"),
        ("score --suite pointer.csv", "--suite: 'pointer.csv' is the data of [profile]"),
        ("score --suite x.csv -o ./x.csv", "--suite: 'x.csv' is also where --output writes"),
        ("score -o SUBJECT", "is a file of the subject"),
        ("search --threshold 0.1 -o themis.toml", "is the configuration"),
        ("search --threshold 0.1 --suite x.csv -o x.csv", "is also where --output writes"),
        ("apparent --data others.csv -o others.csv", "--output: 'others.csv' is the data"),
        ("apparent -o people.csv", "is the data of [profile]"),
        ("check --baseline result.json -o linked.json", "'linked.json' is the baseline"),
        ("check -o themis.toml", "is the configuration"),
        ("replay suite.csv -o suite.csv", "'suite.csv' is the file that is replayed"),
        ("replay result.json -o linked.json", "'linked.json' is the file that is replayed"),
        ("replay suite.csv -o themis.toml", "is the configuration"),
        ("init --from people.csv --force -o people.csv", "'people.csv' is the file to convert"),
    ],
)
def test_what_is_read_is_never_overwritten(folder: Path, command: str, words: str) -> None:
    (subject,) = folder.glob("project_*.py")
    before = {path: path.read_bytes() for path in folder.iterdir() if path.is_file()}
    done = run(*command.replace("SUBJECT", subject.name).split())
    assert done.exit_code == 2, done.output
    assert words in done.stderr
    assert "; name another file" in done.stderr or "; name two files" in done.stderr
    assert {path: path.read_bytes() for path in folder.iterdir() if path.is_file()} == before


def test_an_earlier_result_or_suite_is_replaced(folder: Path) -> None:
    (folder / "result.json").write_text("old")
    (folder / "suite.csv").write_text("old")
    assert run("score", "-o", "result.json", "--suite", "suite.csv").exit_code == 0
    assert (folder / "result.json").read_text().startswith("{")
    assert (folder / "suite.csv").read_text().startswith("test,")


def test_all_that_would_be_lost_is_said_at_once(folder: Path) -> None:
    done = run("score", "-o", "themis.toml", "--suite", "people.csv")
    assert done.stderr.splitlines()[-1] == "2 mistakes"
