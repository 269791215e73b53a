"""Does a run that was killed, interrupted or disturbed end in the very same result?"""

from __future__ import annotations

import json
import resource
import shutil
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.external import (
    GATE,
    PYTHON_GATE,
    RACE,
    close_gate,
    finish,
    lasting,
    open_gate,
    processes_in,
    ran,
    start,
    stored,
    subjects,
    wait_until,
    write_command,
    write_worker,
)

Writer = Callable[..., Path]
Expect = Callable[[str], "Undisturbed"]

# Nothing is run ahead, so that what a killed run stored is what its result needs.
NARROW = "error = 0.06\nconfidence = 0.95\nahead = false"
WIDE = "error = 0.1\nconfidence = 0.95\nahead = false"


@dataclass(frozen=True)
class Undisturbed:
    """What a run without disturbance gives, and how often it executes the subject."""

    folder: Path
    result: dict[str, Any]

    def equals(self, printed: str, folder: Path) -> bool:
        """Whether a result is the same, but for the place of the program and what may differ."""
        first, second = lasting(json.loads(printed)), lasting(self.result)
        for each in (first, second):
            del each["subject"]["fingerprint"]
            each["source"].pop("sha256", None)
        return json.dumps(first).replace(str(folder), str(self.folder)) == json.dumps(second)

    def is_ended_by(self, config: Path) -> None:
        """Assert that one more run has this result, and runs only what is not stored yet."""
        known = stored(config.parent)
        printed = finish(start("score", str(config), "--json"))[0]
        assert self.equals(printed, config.parent)
        assert runs(json.loads(printed)) == runs(self.result) - known


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory: pytest.TempPathFactory) -> Expect:
    @cache
    def measure(run: str) -> Undisturbed:
        folder = tmp_path_factory.mktemp("undisturbed")
        config = write_command(folder, run=run)
        result = json.loads(finish(start("score", str(config), "--json"))[0])
        assert runs(result) == len(ran(folder)) == stored(folder)
        assert result["account"]["noise"] > 0
        return Undisturbed(folder, result)

    return measure


def runs(result: Any) -> int:
    """All executions of a run."""
    count: int = result["executions"]
    return count


def children_of(process: int) -> list[str]:
    """The processes that a process has started."""
    threads = Path(f"/proc/{process}/task").glob("*/children")
    return [child for each in threads for child in each.read_text().split()]


@pytest.mark.slow
def test_kill_while_nothing_is_stored_yet_loses_nothing(
    tmp_path: Path, undisturbed: Expect
) -> None:
    expected, config = undisturbed(WIDE), write_command(tmp_path, run=WIDE)
    folder = tmp_path / ".themis"
    for delay in (0.0, 0.002, 0.01):  # while the file is being created
        shutil.rmtree(folder, ignore_errors=True)
        process = start("score", str(config), "--json")
        wait_until(folder.exists)
        time.sleep(delay)
        process.kill()
        process.communicate()
    expected.is_ended_by(config)


# Answers by line, as they are made: one that prints without buffering.
WORKER_BY_LINE = """\
import json, sys, time
from pathlib import Path

for line in sys.stdin:
    asked = json.loads(line)
    person = asked["input"]
    {gate}
    with open(sys.argv[0] + ".log", "a") as file:
        file.write(" ".join(map(str, person.values())) + "\\n")
    print(json.dumps({{"id": asked["id"], "output": int(person["income"] >= 30)}}), flush=True)
"""


def write_worker_by_line(folder: Path) -> Path:
    config = write_worker(folder, options="deterministic = true")
    (folder / "loan.py").write_text(WORKER_BY_LINE.format(gate=PYTHON_GATE.strip()))
    return config


def write_gated_command(folder: Path) -> Path:
    return write_command(folder, before=GATE, options="deterministic = true")


def write_gated_worker(folder: Path) -> Path:
    return write_worker(folder, before=PYTHON_GATE, options="deterministic = true")


@pytest.mark.parametrize(
    ("write", "least"),
    # The last ones may be about to answer; `serve` writes 1, 2, 4, … answers, or fewer at once.
    [(write_gated_command, 16), (write_worker_by_line, 16), (write_gated_worker, 5)],
)
@pytest.mark.slow
def test_what_was_answered_of_an_interrupted_batch_is_not_run_again(
    tmp_path: Path, write: Callable[[Path], Path], least: int
) -> None:
    config = write(tmp_path)
    close_gate(tmp_path, 20)  # within the first batch
    arguments = ("score", str(config), *RACE, "--max-executions", "64", "--json")
    process = start(*arguments)
    wait_until(lambda: len(ran(tmp_path)) >= 20)
    process.send_signal(signal.SIGINT)
    stdout, stderr = finish(process, expect=130)
    open_gate(tmp_path)
    assert "what was run is stored" in stderr
    known = stored(tmp_path)
    wait_until(lambda: not processes_in(tmp_path))  # some outlive the run
    lines = len(ran(tmp_path))
    assert least <= known <= lines < 32
    partial = json.loads(stdout)
    assert (partial["executions"], partial["stopped"]) == (known, "interrupted")
    again = json.loads(finish(start(*arguments), expect=4)[0])
    assert (again["executions"], again["cache_hits"]) == (64 - known, known)
    assert len(ran(tmp_path)) == lines + 64 - known


# Disk full --------------------------------------------------------------------------------
@pytest.mark.parametrize("kilobytes", [pytest.param(36, marks=pytest.mark.long), 40])
@pytest.mark.slow
def test_full_disk_is_said_and_what_was_stored_is_kept(
    tmp_path: Path, undisturbed: Expect, kilobytes: int
) -> None:
    expected, config = undisturbed(NARROW), write_command(tmp_path, run=NARROW)

    def limit_files() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (kilobytes * 1024, kilobytes * 1024))

    process = start("score", str(config), "--json", preexec_fn=limit_files)
    stdout, stderr = finish(process, expect=2)
    assert not stdout or expected.equals(stdout, tmp_path)  # the last commit may be the one
    place = f"{tmp_path}/.themis/cache.sqlite"
    assert stderr.startswith(f"error[cache]: cache: {place} can't be written: ")
    assert "what was stored before is kept: make room and run the same command again" in stderr
    assert stored(tmp_path) > 0 or kilobytes == 36
    expected.is_ended_by(config)


# Two at once ------------------------------------------------------------------------------
@pytest.mark.slow
def test_two_runs_at_once_share_what_they_store(tmp_path: Path, undisturbed: Expect) -> None:
    expected, config = undisturbed(WIDE), write_command(tmp_path, run=WIDE, before=GATE)
    total = runs(expected.result)
    close_gate(tmp_path, total // 2)
    first = start("score", str(config), "--json")
    wait_until(lambda: len(ran(tmp_path)) >= total // 2)
    second = start("score", str(config), "--json")
    wait_until(lambda: children_of(second.pid))
    open_gate(tmp_path)
    texts = [finish(process) for process in (first, second)]
    assert all(expected.equals(stdout, tmp_path) for stdout, _ in texts)
    assert texts[0][1] == ""
    counts = [runs(json.loads(stdout)) for stdout, _ in texts]
    assert stored(tmp_path) == total
    assert total < sum(counts) == len(ran(tmp_path)) < 2 * total


# Another subject --------------------------------------------------------------------------


@pytest.mark.parametrize("write", [write_command, write_worker], ids=["command", "worker"])
def test_results_of_an_edited_subject_are_not_used(tmp_path: Path, write: Writer) -> None:
    config = write(tmp_path, options="deterministic = true")
    (script,) = (each for each in tmp_path.glob("loan.*") if each.suffix in (".sh", ".py"))
    scores = []
    for _ in range(2):
        with themis.Audit.from_file(config, max_executions=200) as audit:
            scores.append(audit.causal("race"))
        script.write_text(script.read_text().replace("30", "60"))
    assert [score.executions for score in scores] == [200, 200]
    assert scores[0].score > 0 == scores[1].score
    assert len(subjects(tmp_path)) == 2
