"""Are failures kept as data: counted, shown, reproducible, never stored, never a decision?"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.external import (
    RACE,
    processes_in,
    stored,
    wait_until,
    write_command,
    write_worker,
)
from tests.projects import run

RARE = 'case "$4" in *3) echo "no threes" >&2; exit 7;; esac'  # a tenth of the inputs
TRUSTED = "max_failures = 1\ndeterministic = true"  # nothing is run again


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def score(*arguments: str) -> Any:
    return run("score", *RACE, *arguments)


# What is said -----------------------------------------------------------------------------


def test_failures_have_count_example_message_and_a_command_that_shows_them(folder: Path) -> None:
    write_command(folder, before=RARE, options="max_failures = 0.5")
    failure = json.loads(score("--json", "--max-executions", "200").stdout)["failures"]["crash"]
    assert 5 < failure["count"] < 50
    assert failure["message"] == "exit code 7: no threes"
    assert str(failure["input"]["savings"]).endswith("3")
    again = in_a_shell(failure["reproduce"])
    assert (again.returncode, again.stderr) == (7, "no threes\n")


def test_above_the_limit_what_was_learned_is_printed_before_the_error(folder: Path) -> None:
    write_command(folder, before=RARE.replace("*3", "*[12]3"), options="max_failures = 0.001")
    done = score("--measure", "causal", "--max-executions", "400")
    assert done.exit_code == 3
    assert "■ decision changes" in done.stdout
    assert "failed: crash" in done.stdout
    assert f"$ cd {folder} && sh {folder}/loan.sh" in done.stdout
    assert "error: the subject failed: crash in" in done.stderr


def test_pairs_of_people_come_with_two_commands(folder: Path) -> None:
    write_command(folder)
    options = ("--measure", "causal", "--error", "0.2")
    first, *others = json.loads(score("--json", *options).stdout)["scores"][0]["witnesses"]
    assert [in_a_shell(each).stdout.strip() for each in first["reproduce"]] == first["outputs"]
    assert not any(each["reproduce"] for each in others)
    shown = score(*options, "-v").stdout
    assert all(f"$ {line}" in shown for line in first["reproduce"])
    assert "in a shell" not in score(*options).stdout


READING = """\
import csv, json, sys
for line in {rows}:
    if {row}["race"] == "purple":
        {refuse}
    print({answer}, flush=True)
"""
WAYS = {  # the keys of [subject], and how the program reads rows and writes answers
    "json": ('kind = "command"\narguments = "json"', "sys.stdin", "json.loads(line)", "'yes'"),
    "csv": ('kind = "command"\narguments = "csv"', "csv.DictReader(sys.stdin)", "line", "'yes'"),
    "worker-jsonl": (
        'kind = "worker"',
        "sys.stdin",
        'json.loads(line)["input"]',
        'json.dumps({"id": json.loads(line)["id"], "output": "yes"})',
    ),
    "worker-csv": (
        'kind = "worker"\nformat = "csv"',
        "csv.DictReader(sys.stdin)",
        "line",
        "f\"{line['id']},yes\"",
    ),
}


def shown_lines(folder: Path, way: str, refuse: str) -> list[str]:
    """The lines for a shell that are offered about a program that reads standard input."""
    keys, rows, row, answer = WAYS[way]
    code = READING.replace("{rows}", rows).replace("{row}", row)
    (folder / "reads.py").write_text(code.replace("{refuse}", refuse).replace("{answer}", answer))
    command, towns = [sys.executable, "reads.py"], ["a\nb", "it's \\n 5 % \u202e"]
    (folder / "themis.toml").write_text(
        f"version = 1\n[subject]\n{keys}\ncommand = {json.dumps(command)}\nmax_failures = 1\n"
        'favourable = ["yes"]\n[inputs]\nrace = ["green", "purple"]\n'
        f"town = {json.dumps(towns)}\n"
    )
    shown = score("--measure", "causal", "-v").stdout.splitlines()
    return [line.removeprefix("  $ ") for line in shown if line.startswith("  $ ")]


def in_a_shell(line: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["bash", "-c", line], capture_output=True, text=True)


@pytest.mark.parametrize("way", ["json", "csv"])
@pytest.mark.slow
def test_the_shown_lines_about_a_pair_give_its_outputs(folder: Path, way: str) -> None:
    lines = shown_lines(folder, way, "print('no'); continue")
    assert len(lines) == 2
    for line in lines:
        assert in_a_shell(line).stdout == ("no\n" if "purple" in line else "yes\n")


@pytest.mark.parametrize("way", WAYS)
def test_the_shown_line_about_a_failure_fails_in_the_same_way(folder: Path, way: str) -> None:
    (line,) = shown_lines(folder, way, "sys.exit('no purple')")
    said = in_a_shell(line)
    assert (said.returncode, said.stderr) == (1, "no purple\n")
    said = in_a_shell(line.replace("purple", "green"))
    assert (said.returncode, said.stderr) == (0, "")
    assert "yes" in said.stdout


# What is stored ---------------------------------------------------------------------------
@pytest.mark.slow
def test_timeouts_and_empty_answers_are_not_stored(folder: Path) -> None:
    before = 'case "$4" in *1) sleep 300;; *5) exit 0;; esac'
    write_command(folder, before=before, options=f"{TRUSTED}\ntimeout_seconds = 3")
    data = json.loads(score("--json", "--max-executions", "30").stdout)
    assert set(data["failures"]) == {"timeout", "invalid output"}
    failed = sum(each["count"] for each in data["failures"].values())
    assert stored(folder) == data["executions"] - failed


# Closing ----------------------------------------------------------------------------------
def test_audit_ends_the_processes_of_its_subject(folder: Path) -> None:
    config = write_worker(folder)
    with themis.Audit.from_file(config) as audit:
        audit.causal("race", error=0.2)
        assert processes_in(folder)
    assert not processes_in(folder)
    assert audit.causal("race", error=0.15).executions > 0  # may be used again
    assert processes_in(folder)
    del audit
    wait_until(lambda: not processes_in(folder))


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (lambda rows: [row["x"] > 1 for row in rows], 'call = "batch"'),
        (lambda table: table.x > 1, 'call = "batch"'),
        (lambda row: row["y"] > 1, "fix the subject"),
    ],
)
def test_a_function_of_tables_is_told_how_it_is_called(function: Any, said: str) -> None:
    audit = themis.Audit(function, themis.Schema(x=range(4), z=["a", "b"]))
    with pytest.raises(themis.SubjectError, match="no input was answered") as caught:
        audit.causal("z")
    assert said in str(caught.value)
