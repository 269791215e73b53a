"""Does a mistake come with what to write instead, and are results read as others save them?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.external import write_command
from tests.projects import SMALL, enter, run, write_project


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    extra = '[[checks]]\nagainst = ["race"]\nmax_score = 0.5\n'
    write_project(tmp_path, "return int(person['race'] == 'green')", inputs=SMALL, extra=extra)
    return tmp_path


@pytest.mark.parametrize("encoding", ["utf-16", "utf-8-sig", "utf-16-le"])
def test_results_are_read_in_the_encodings_of_consoles(folder: Path, encoding: str) -> None:
    assert run("score", "-o", "result.json").exit_code == 0
    text = (folder / "result.json").read_text()
    mark = "\ufeff" if encoding == "utf-16-le" else ""
    (folder / "result.json").write_bytes(f"{mark}{text}".encode(encoding))
    for command in (
        "report --format md -o -",
        "diff result.json result.json",
        "replay result.json",
    ):
        done = run(*command.split())
        assert done.exit_code in (0, 1), done.output
    sorted_keys = json.dumps(json.loads(text), sort_keys=True)
    (folder / "result.json").write_bytes(f"{mark}{sorted_keys}".encode(encoding))
    assert run("score", "-o", "result.json").exit_code == 0


@pytest.mark.parametrize(("given", "remedy"), [("99.9", "0.999 for 99.9 %"), ("-1", "0.99 for 99")])
def test_a_confidence_in_percent_is_written_as_a_share(
    folder: Path, given: str, remedy: str
) -> None:
    done = run("score", "--confidence", given)
    assert done.exit_code == 2
    assert f"; write {remedy}" in done.stderr
    file = folder / "themis.toml"
    file.write_text(f"{file.read_text()}\n[run]\nconfidence = {given}\n")
    assert f"; write {remedy}" in run("score").stderr


def test_a_cache_that_can_not_be_written_is_put_elsewhere_or_left_out(folder: Path) -> None:
    write_command(folder, run="error = 0.3")
    (folder / ".themis").write_text("in the way")
    done = run("score")
    assert done.exit_code == 2
    assert "; name another file (--cache FILE), or use --no-cache\n" in done.stderr
    assert run("score", "--no-cache").exit_code == 0
    assert run("score", "--cache", "other.sqlite").exit_code == 0
