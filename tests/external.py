"""Projects whose subject is a program: it notes every execution in a file beside it."""

from __future__ import annotations

import math
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.services import Reply, Request, Service, serve
from themis.engine.cache import CachedSubject, default_path, read_contents

INPUTS = """\
race = { values = ["green", "purple"], protected = true }
sex = { values = ["f", "m"] }
income = { min = 0, max = 99 }
savings = { min = 0, max = 999999 }
"""
DECIDE = (
    'if [ "$3" -ge 30 ] && [ "$1$4" != "purple$4" -o "$3" -ge 60 ]; then echo 1; else echo 0; fi'
)
RACE = ("--against", "race")
PATIENCE = 120.0  # seconds after which something hangs, however busy the machine is


def write_command(
    folder: Path, *, before: str = "", options: str = "", run: str = "", decide: str = DECIDE
) -> Path:
    """A shell script as subject; `before` runs first, with the values in $1, $2, …"""
    script = f'#!/bin/sh\n{before}\necho "$*" >> "$0.log"\n{decide}\n'
    (folder / "loan.sh").write_text(script)
    head = f'kind = "command"\ncommand = ["sh", "{folder}/loan.sh"]\n'
    return _write_config(folder, head + options, run)


WORKER = """\
import os, sys, time
from themis.worker import serve

def decide(person):
    {before}
    with open(sys.argv[0] + ".log", "a") as file:
        file.write(" ".join(map(str, person.values())) + "\\n")
    return int(person["income"] >= (30 if person["race"] == "green" else 60))

serve(decide)
"""


def write_worker(folder: Path, *, before: str = "pass", options: str = "", run: str = "") -> Path:
    """A Python worker as subject; `before` is a statement that runs first, about a `person`."""
    (folder / "loan.py").write_text(WORKER.replace("{before}", before))
    head = f'kind = "worker"\ncommand = ["{sys.executable}", "{folder}/loan.py"]\n'
    return _write_config(folder, head + options, run)


SH_WORKER = """\
#!/bin/sh
read -r header
while IFS=, read -r id race sex income savings; do
set -- "$race" "$sex" "$income" "$savings"
{before}
echo "$*" >> "$0.log"
printf "%s," "$id"
{decide}
done
"""


def write_sh_worker(folder: Path, *, before: str = "", options: str = "", run: str = "") -> Path:
    """A shell script as worker, which starts at once; `before` is as for a command."""
    script = SH_WORKER.replace("{before}", before).replace("{decide}", DECIDE)
    (folder / "loan.sh").write_text(script)
    head = f'kind = "worker"\nformat = "csv"\ncommand = ["sh", "{folder}/loan.sh"]\n'
    return _write_config(folder, head + options, run)


@dataclass
class LoanService:
    """A web service as subject, within this process; it notes executions like the programs."""

    folder: Path
    service: Service
    callers: int = 0  # runs that were killed: what they asked for is not wanted any more
    asked: int = 0  # requests that wait, or are being answered
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def write(self, *, options: str = "", run: str = "") -> Path:
        """The file that describes it."""
        head = f'kind = "http"\nurl = "{self.service.url}"\nretries = 0\n'
        return _write_config(self.folder, head + options, run)

    def answer(self, request: Request) -> Reply | None:
        """The decision, once the gate lets it pass."""
        person, caller = request.json, self.callers
        with self._lock:
            self.asked += 1
        passed = self._passes(" ".join(map(str, person.values())), caller)
        while passed is None:
            time.sleep(0.005)
            passed = self._passes(" ".join(map(str, person.values())), caller)
        with self._lock:
            self.asked -= 1
        favoured = person["income"] >= (30 if person["race"] == "green" else 60)
        return Reply(str(int(favoured))) if passed else None

    def hang_up(self) -> None:
        """Forget what waits at the gate, and what still arrives, as who asked for it is gone."""
        quiet = 0

        def is_quiet() -> bool:
            nonlocal quiet
            self.callers += 1
            quiet = 0 if self.asked else quiet + 1
            return quiet > 10

        wait_until(is_quiet)

    def _passes(self, line: str, caller: int) -> bool | None:
        """Whether a request is executed: None while it has to wait."""
        with self._lock:
            if caller != self.callers or self.service.stopped.is_set():
                return False
            gate = self.folder / "gate"
            most = int(gate.read_text()) if gate.exists() else math.inf
            if len(ran(self.folder)) >= most:
                return None
            with (self.folder / "loan.http.log").open("a") as log:
                log.write(line + "\n")
            return True


@contextmanager
def serving_loans(folder: Path) -> Iterator[LoanService]:
    """Within, a service on this machine decides on loans."""
    with serve() as service:
        loans = LoanService(folder, service)
        service.answer = loans.answer
        yield loans


def _write_config(folder: Path, subject: str, run: str) -> Path:
    path = folder / "themis.toml"
    if "timeout_seconds" not in subject:  # those that wait at a gate are not late
        subject += f"\ntimeout_seconds = {PATIENCE}"
    path.write_text(
        f'version = 1\n[subject]\n{subject}\nfavourable = ["1", 1]\n[inputs]\n{INPUTS}\n'
        f"[run]\nseed = 5\n{run}\n"
    )
    return path


def ran(folder: Path) -> list[str]:
    """The inputs of all executions so far."""
    logs = list(folder.glob("loan.*.log"))
    return logs[0].read_text().splitlines() if logs else []


def stored(folder: Path) -> int:
    """How many decisions the cache holds."""
    return sum(each.decisions for each in subjects(folder))


def subjects(folder: Path) -> tuple[CachedSubject, ...]:
    """What the cache holds."""
    return read_contents(default_path(folder)).subjects


def start(*arguments: str, **options: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    return subprocess.Popen(
        [sys.executable, "-m", "themis", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        **options,
    )


def finish(process: subprocess.Popen[str], *, expect: int = 0) -> tuple[str, str]:
    """What the command printed, once it has ended as expected."""
    stdout, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == expect, stderr
    assert "Traceback" not in stderr
    return stdout, stderr


def wait_until(condition: Callable[[], Any], seconds: float = PATIENCE) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.005)


@contextmanager
def interrupting(condition: Callable[[], Any]) -> Iterator[None]:
    """Ctrl-C, as soon as the condition holds, for what is done within."""

    def interrupt() -> None:
        wait_until(condition)
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    thread.start()
    with pytest.raises(KeyboardInterrupt):
        yield
    thread.join()


# A gate at which the subject waits once it was executed so often, so that what is done to a run
# in the middle is done in the middle of it, however fast or slow the machine is.
GATE = """\
while [ -e "$0.log" ] && [ -e "${0%/*}/gate" ] && read gate < "${0%/*}/gate" &&
    [ "$(wc -l < "$0.log")" -ge "$gate" ]; do sleep 0.01; done"""
PYTHON_GATE = """
    from pathlib import Path
    gate, log = Path(sys.argv[0]).with_name("gate"), Path(sys.argv[0] + ".log")
    while gate.exists() and log.exists() and log.read_bytes().count(10) >= int(gate.read_text()):
        time.sleep(0.01)"""


def close_gate(folder: Path, executions: int) -> None:
    """Let the subject wait after so many executions; each job may make one more."""
    (folder / "gate.new").write_text(f"{executions}\n")
    (folder / "gate.new").replace(folder / "gate")


def open_gate(folder: Path) -> None:
    (folder / "gate").unlink()


def is_alive(pid: int) -> bool:
    """Whether a process runs: one that has ended, and that nobody has reaped yet, does not."""
    try:
        os.kill(pid, 0)
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except ProcessLookupError:
        return False
    except FileNotFoundError:
        return sys.platform != "linux"


def processes_in(folder: Path) -> list[int]:
    """The processes that were started with a path in this folder; only known on Linux."""
    found = []
    for each in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if os.fsencode(folder) in each.read_bytes():
                found.append(int(each.parent.name))
    return found


def lasting(result: Any) -> Any:
    """A result without what may differ from run to run."""
    if isinstance(result, dict):
        passing = ("timing", "executions", "account", "cache_hits")
        return {name: lasting(each) for name, each in result.items() if name not in passing}
    return [lasting(each) for each in result] if isinstance(result, list) else result
