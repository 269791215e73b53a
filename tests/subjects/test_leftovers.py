"""Nothing that a subject started outlives its run, however that ends; nothing else is ended."""

from __future__ import annotations

import fcntl
import json
import os
import pickle
import signal
import subprocess
import sys
import termios
from pathlib import Path

import pytest

import themis
from tests.external import PATIENCE, RACE, is_alive, wait_until, write_command, write_worker
from themis.subjects.processes.programs import find_program
from themis.subjects.processes.sweep import sweep

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")

DAEMON = 'setsid sleep 1000 > /dev/null 2>&1 & echo $! >> "$0.left"\n'  # leaves group and session
SLOW = DAEMON + 'echo $$ >> "$0.left"; sleep 1000'


def hearing(hangup: str) -> list[str]:
    """Python that ignores SIGHUP ("SIG_IGN") or not ("SIG_DFL"), however these tests run."""
    code = f"import os, signal, sys; signal.signal(signal.SIGHUP, signal.{hangup}); "
    return [sys.executable, "-c", f"{code}os.execv(sys.executable, sys.argv[1:])"]


def left_by(folder: Path) -> list[int]:
    """The processes that the subject started and named."""
    return [int(pid) for path in folder.glob("loan.*.left") for pid in path.read_text().split()]


def start(folder: Path, hangup: str = "SIG_DFL") -> subprocess.Popen[str]:
    """A run whose subject hangs, with a process in a session of its own beside it."""
    command = [sys.executable, "-m", "themis", "score", *RACE, "-o", "result.json"]
    pipe = subprocess.PIPE
    child = subprocess.Popen(
        [*hearing(hangup), *command], cwd=folder, stdout=pipe, stderr=pipe, text=True
    )
    wait_until(lambda: len(left_by(folder)) >= 2)
    assert all(map(is_alive, left_by(folder)[:2]))
    return child


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize("kind", ["command", "worker"])
def test_a_run_that_is_killed_leaves_no_process_behind(tmp_path: Path, kind: str) -> None:
    if kind == "command":
        write_command(tmp_path, before=SLOW, options="timeout_seconds = 900\n")
    else:
        script = SLOW.replace("$0", f"{tmp_path}/loan.py")
        write_worker(tmp_path, before=f"import subprocess; subprocess.run({script!r}, shell=True)")
    child = start(tmp_path)
    child.kill()
    child.communicate(timeout=PATIENCE)
    assert child.returncode == -signal.SIGKILL
    wait_until(lambda: not any(map(is_alive, left_by(tmp_path))))


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.slow
def test_signals_that_end_jobs_keep_what_was_learned(
    tmp_path: Path, number: signal.Signals
) -> None:
    slow_later = f'if [ $(wc -l < "$0.log" || echo 0) -ge 40 ]; then {SLOW}\nfi'
    write_command(tmp_path, before=slow_later, options="timeout_seconds = 900\n")
    (tmp_path / "loan.sh.log").touch()
    child = start(tmp_path)
    for _ in range(3):  # as a shell and a job's runner pass it on, each for itself
        child.send_signal(number)
    _, stderr = child.communicate(timeout=PATIENCE)
    assert child.returncode == 128 + number, stderr
    assert "what was run is stored: run the same command again" in stderr
    assert "Traceback" not in stderr
    assert json.loads((tmp_path / "result.json").read_text())["stopped"] == "interrupted"
    assert not any(map(is_alive, left_by(tmp_path)))  # at once, not after a while


def test_a_run_under_nohup_survives_its_terminal(tmp_path: Path) -> None:
    write_command(tmp_path, before=SLOW, options="timeout_seconds = 900\n")
    child = start(tmp_path, "SIG_IGN")
    child.send_signal(signal.SIGHUP)
    child.terminate()
    child.communicate(timeout=PATIENCE)
    assert child.returncode == 128 + signal.SIGTERM  # it was not SIGHUP that ended it


def test_what_commands_leave_running_ends_with_the_audit_and_handlers_stay(tmp_path: Path) -> None:
    handlers = [signal.getsignal(number) for number in sorted(signal.valid_signals())]
    with themis.Audit.from_file(
        write_command(tmp_path, before=DAEMON), max_executions=20, probe=0
    ) as audit:
        audit.causal("race")
    assert len(left_by(tmp_path)) == 20
    assert not any(map(is_alive, left_by(tmp_path)))
    assert handlers == [signal.getsignal(number) for number in sorted(signal.valid_signals())]


def test_only_descendants_of_the_subject_are_ended(tmp_path: Path) -> None:
    bystander = subprocess.Popen(["sleep", "1000"])
    first, second = (find_program(["sleep"], cwd=None, env=None) for _ in range(2))
    processes = [each.start([b"1000"], feeds=False) for each in (first, second)]
    try:
        first.end_descendants()
        assert processes[0].wait(PATIENCE) == -signal.SIGKILL
        assert processes[1].poll() is None
        assert bystander.poll() is None
        second.end_descendants()
        assert processes[1].wait(PATIENCE) == -signal.SIGKILL
    finally:
        for each in (bystander, *processes):
            each.kill()
            each.communicate()


def test_a_subject_that_uses_themis_itself_is_ended_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("THEMIS_SUBJECT", "<outer.1>")
    inner = find_program(["sleep"], cwd=None, env=None).start([b"1000"], feeds=False)
    sweep("<outer.1>")
    assert inner.wait(PATIENCE) == -signal.SIGKILL
    inner.communicate()


def test_a_mark_does_not_travel_to_another_process() -> None:
    program = find_program(["sleep"], cwd=None, env={"TOKEN": "x"})
    program.start([b"0"], feeds=False).communicate()
    copied = pickle.loads(pickle.dumps(program))
    assert copied == program
    assert copied._mark != program._mark


FORKS = """
import os, signal
from themis.subjects.processes.programs import find_program

program = find_program(["sleep"], cwd=None, env=None)
child = program.start([b"1000"], feeds=False)
forked = os.fork()
if not forked:
    program.start([b"0"], feeds=False).wait()
    raise SystemExit  # an orderly end, with all that is registered for it
os.waitpid(forked, 0)
assert child.poll() is None, "it was ended by the forked process"
program.end_descendants()
assert child.wait(60) == -signal.SIGKILL
"""


def test_a_forked_process_ends_nothing_of_its_parent() -> None:
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.mark.slow
def test_a_signal_while_the_result_is_saved_loses_nothing(tmp_path: Path) -> None:
    write_command(tmp_path)
    os.mkfifo(tmp_path / "pipe")
    both = os.open(tmp_path / "pipe", os.O_RDWR)
    fcntl.fcntl(both, fcntl.F_SETPIPE_SZ, 4096)  # less than a result takes
    command = [sys.executable, "-m", "themis", "score", *RACE, "-o", "pipe", "--error", "0.2", "-q"]
    child = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    wait_until(lambda: int.from_bytes(fcntl.ioctl(both, termios.FIONREAD, bytes(4)), "little"))
    child.send_signal(signal.SIGTERM)
    with (tmp_path / "pipe").open() as pipe:
        os.close(both)
        saved = pipe.read()
    shown, said = child.communicate(timeout=PATIENCE)
    assert child.returncode == 0, said
    assert json.loads(saved)["stopped"] == "done"
    assert "race" in shown
