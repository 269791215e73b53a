"""Is a file that was there left whole until its successor is, and what it is besides kept?"""

from __future__ import annotations

import os
import resource
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

import themis
from tests.projects import SMALL, enter, run, write_project

OLD = "what was there before"
SUITE = "score --suite suite.csv"
OLDS = {  # what a file is like that a command may replace
    "result.json": '{"themis": "0", "command": "score", "executions": 0, '
    '"stopped": "what was there before"}',
    "page.html": '<!doctype html>\n<html lang="en" dir="ltr"><head><meta charset="utf-8"/>'
    '<meta http-equiv="Content-Security-Policy" content="default-src what was there before',
    "reports/saved.md": "## Themis\n\n**What was there before.**\n\n<sub>seed 1</sub>\n",
    "other.toml": OLD,
    "suite.csv": "test,against,base,what was there before",
}
COMMANDS = {
    "score -o result.json": "result.json",
    "report saved.json -o page.html": "page.html",
    "report saved.json --format md,csv -o reports": "reports/saved.md",
    "init --force -o other.toml": "other.toml",
    SUITE: "suite.csv",
}


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project with a saved result, and an old file wherever a command may write."""
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, "return int(person['race'] == 'green')", inputs=SMALL)
    assert run("score", "-o", "saved.json").exit_code == 0
    (tmp_path / "reports").mkdir()
    for name in COMMANDS.values():
        (tmp_path / name).write_text(OLDS[name])
    return tmp_path


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Within, no file can be larger than this."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def files(folder: Path) -> set[str]:
    return {str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "name"), COMMANDS.items())
def test_a_full_disk_leaves_the_old_file(folder: Path, command: str, name: str) -> None:
    before = files(folder)
    with full_disk(400):
        done = run(*command.split())
    assert done.exit_code == 2, done.output
    assert all(each in done.stderr for each in (name, "written", "File too large"))
    assert (folder / name).read_text() == OLDS[name]
    assert files(folder) == before
    assert run(*command.split()).exit_code == 0
    assert (folder / name).read_text() != OLDS[name]
    assert files(folder) - before <= {"reports/saved.csv", "loan.py"}


def test_a_failed_run_leaves_the_old_files(folder: Path) -> None:
    write_project(folder, "raise ValueError", inputs=SMALL)
    done = run("score", "-o", "result.json", "--suite", "suite.csv")
    assert done.exit_code == 3
    for name in ("result.json", "suite.csv"):
        assert f"{name} is left as it was: the run failed\n" in done.stderr
        assert (folder / name).read_text() == OLDS[name]
    assert run("score", "-o", "new.json", "--suite", "new.csv").exit_code == 3
    assert (folder / "new.json").read_text().startswith("{")
    assert (folder / "new.csv").read_text().startswith("test,")


def test_links_and_permissions_stay(folder: Path) -> None:
    (folder / "link.json").symlink_to("result.json")
    (folder / "result.json").chmod(0o640)
    assert run("score", "-o", "link.json").exit_code == 0
    assert (folder / "link.json").is_symlink()
    assert (folder / "result.json").read_text().startswith("{")
    assert stat.S_IMODE((folder / "result.json").stat().st_mode) == 0o640
    umask = os.umask(0o027)
    try:
        assert run("score", "-o", "new.json").exit_code == 0
    finally:
        os.umask(umask)
    assert stat.S_IMODE((folder / "new.json").stat().st_mode) == 0o640


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
def test_what_stdout_leads_to_keeps_what_it_holds(folder: Path, name: str) -> None:
    log, source = folder / "log", str(Path(themis.__file__).parents[1])
    for mode in ("w", "a"):
        with log.open(mode) as file:
            file.write("before\n")
            file.flush()
            command = [sys.executable, "-m", "themis", "report", "saved.json", "--format", "md"]
            own = {**os.environ, "PYTHONPATH": source}
            subprocess.run([*command, "-o", name], stdout=file, env=own, check=True)
    lines = log.read_text().splitlines()
    assert lines.count("before") == lines.count(f"wrote {name}") == 2
    assert sum(line.startswith("## Themis") for line in lines) == 2
