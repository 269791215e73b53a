"""The same answers on a real Dask cluster, whose workers get killed, and which ends at any time."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.engine.test_executors import audit, everything, row
from tests.external import PATIENCE, interrupting, start, wait_until
from tests.projects import write_project
from themis.engine.executors import dask_pool, spread
from themis.engine.executors.dask_pool import LOCAL, DaskPool
from themis.errors import RequestError, SubjectError

dask = pytest.importorskip("dask", reason="Dask is not installed")
distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = [
    # A worker that is killed leaves sockets of the driver's own cluster behind.
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::UserWarning:distributed"),
]


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    monkeypatch.setattr(spread, "MOST", 128)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    patient = {"distributed.deploy.lost-worker-timeout": 10 * PATIENCE}  # while one is replaced
    with dask.config.set(patient), a_cluster(n_workers=2, threads_per_worker=1) as cluster:
        yield cluster


def a_cluster(**options: Any) -> Any:
    """One that takes any port, for other tests run beside."""
    anywhere = {"dashboard_address": "127.0.0.1:0"}
    return distributed.LocalCluster(dashboard_address=None, scheduler_kwargs=anywhere, **options)


def address(cluster: Any) -> str:
    return str(cluster.scheduler_address).replace("tcp://", "dask://")


def worker_pids(cluster: Any) -> list[int]:
    with distributed.Client(cluster) as client:
        return list(client.run(os.getpid).values())


def slow(person: dict[str, Any]) -> str:
    time.sleep(0.002)
    limit = 300 if person["race"] == "green" else 500
    return "yes" if person["income"] > limit else "no"


@pytest.mark.slow
def test_workers_that_are_killed_lose_nothing(
    cluster: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dask_pool, "ALONE_SECONDS", 10 * PATIENCE)  # both may be gone at once
    killed, pids = list[int](), worker_pids(cluster)
    done = threading.Event()

    def kill() -> None:
        while pids and not done.wait(1.0):
            killed.append(pids.pop())
            os.kill(killed[-1], signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        there = everything(audit(slow, address(cluster)))
    finally:
        done.set()
        thread.join(PATIENCE)
    assert killed
    assert there == everything(audit(slow))


@pytest.mark.slow
def test_a_lost_scheduler_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_pool, "PATIENCE", 2)
    cluster = a_cluster(n_workers=1, threads_per_worker=1)
    timer = threading.Timer(1.0, cluster.close)

    def forever(person: dict[str, Any]) -> str:
        time.sleep(0.05)
        return "yes"

    timer.start()
    with pytest.raises(SubjectError, match="does not answer"):
        audit(forever, address(cluster), error=0.001).causal("race")
    timer.join()


@pytest.mark.slow
def test_a_scheduler_without_workers_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dask_pool, "ALONE_SECONDS", 1)
    with a_cluster(n_workers=0) as empty:
        name = address(empty)
        with pytest.raises(SubjectError, match=f"{name} has no worker"):
            audit(slow, name).causal("race")


class Started:
    """The processes that were started in a test, by a mark in their environment."""

    def __init__(self) -> None:
        self.mark = f"TEST_OF_A_CLUSTER={uuid4().hex}"

    def commands(self) -> dict[int, str]:
        found = {}
        for place in Path("/proc").glob("[0-9]*"):
            try:
                if self.mark.encode() in (place / "environ").read_bytes():
                    words = (place / "cmdline").read_bytes().split(b"\0")
                    found[int(place.name)] = b" ".join(words).decode()
            except OSError:  # it has ended
                continue
        return found

    def wait_for(self, text: str) -> int:
        """The number of a process, once there is one with this text in its command."""

        def found() -> list[int]:
            return [pid for pid, each in self.commands().items() if text in each]

        wait_until(found)
        return found()[0]

    def have_ended(self) -> bool:
        wait_until(lambda: not self.commands())
        return True


CLUSTER, WORKER = "import serve", "spawn_main"  # in the commands of their processes


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[Started]:
    """Whose processes and folders are all gone at the end of the test."""
    started, folder = Started(), tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setenv(*started.mark.split("="))
    monkeypatch.setenv("TMPDIR", str(folder))
    monkeypatch.setattr(tempfile, "tempdir", None)
    yield started
    assert started.have_ended()
    wait_until(lambda: not list(folder.glob("themis-dask-*")))
    wait_until(lambda: dask_pool.THREAD not in {each.name for each in threading.enumerate()})


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Workers never come to an end of their start."""
    (tmp_path / "hang.py").write_text(f"import time\ntime.sleep({10 * PATIENCE})\n")
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__PRELOAD", json.dumps([str(tmp_path / "hang.py")]))


@pytest.mark.slow
@pytest.mark.usefixtures("hanging", "started")
def test_a_limit_of_time_holds_while_a_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)  # all of it is to be run there
    with audit(row, LOCAL, max_seconds=1.0) as asked:
        (score, *_) = asked.score([("race",)]).scores
    assert score.stopped == "budget"


@pytest.mark.slow
@pytest.mark.usefixtures("hanging")
@pytest.mark.parametrize("moment", [CLUSTER, WORKER])
def test_an_interrupt_ends_a_cluster_that_is_being_started(started: Started, moment: str) -> None:
    with interrupting(lambda: started.wait_for(moment)):
        audit(row, LOCAL).causal("race")


@pytest.mark.slow
def test_a_cluster_that_cannot_be_started_is_said(
    capfd: pytest.CaptureFixture[str], started: Started
) -> None:
    pool = DaskPool(LOCAL)
    assert not pool.open(0)
    os.kill(started.wait_for(CLUSTER), signal.SIGKILL)
    with pytest.raises(SubjectError, match=r"dask://local does not answer \(its processes ended"):
        pool.open(None)
    assert "Traceback" not in capfd.readouterr().err


SUBJECT = """\
import logging, pathlib, warnings
mark = pathlib.Path(f"{os.getpid()}.pid")
if not mark.exists():
    print(f"printed by {os.getpid()}", file=sys.stderr)
    warnings.warn(f"warned by {os.getpid()}")
    logging.getLogger("mine").warning("logged by %d", os.getpid())
    mark.touch()  # an interrupt may come before that
started = time.perf_counter()
while time.perf_counter() - started < 0.005:
    pass
return 1
"""


@contextmanager
def command(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    write_project(folder, SUBJECT)
    words = ["score", "--executor", LOCAL, "--json", *options]
    with start(*words, cwd=folder, start_new_session=True) as driver:
        try:
            yield driver
        finally:
            driver.kill()


@pytest.mark.slow
def test_ctrl_c_while_a_cluster_works_says_nothing_of_dask(
    tmp_path: Path, started: Started
) -> None:
    with command(tmp_path, "--error", "0.0002") as driver:  # it must not end before
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) > len(os.sched_getaffinity(0)))
        os.kill(started.wait_for(WORKER), signal.SIGKILL)  # Dask starts another one
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) > len(os.sched_getaffinity(0)) + 1)
        os.killpg(driver.pid, signal.SIGINT)
        _, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 130, said
    assert foreign(said) == []
    pids = {each.stem for each in tmp_path.glob("*.pid")}
    for what in ("printed", "warned", "logged"):
        assert pids <= set(re.findall(rf"{what} by (\d+)", said))


def foreign(said: str) -> list[str]:
    """Lines on stderr that are neither the subject's nor the command's."""
    own = r".*(printed|warned|logged) by|  warnings\.warn|interrupted; the same|\s*themis score"
    return [line for line in said.splitlines() if line.strip() and not re.match(own, line)]


@pytest.mark.slow
def test_a_cluster_ends_with_a_driver_that_is_killed(tmp_path: Path, started: Started) -> None:
    with command(tmp_path, "--error", "0.005") as driver:
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) > 1)
        driver.kill()
    assert started.have_ended()


@contextmanager
def saying(first: bytes | None) -> Iterator[str]:
    """The address of a server that says this to everybody, or None: listens to everybody."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken: list[socket.socket] = []

        def serve() -> None:
            while True:
                try:
                    taken.append(server.accept()[0])
                except OSError:
                    return
                if first is not None:
                    taken[-1].sendall(first)

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"dask://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for each in taken:
                each.close()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (lambda: saying(None), "said nothing for 1 second"),
        (lambda: saying(b"SSH-2.0-OpenSSH_9.2p1\r\n"), "is no scheduler"),
        (lambda: saying((5).to_bytes(8, "little") + bytes(5)), "is no scheduler"),
    ],
)
def test_what_is_no_scheduler_is_said(
    monkeypatch: pytest.MonkeyPatch, started: Started, server: Any, reason: str
) -> None:
    monkeypatch.setattr(dask_pool, "PATIENCE", 1)
    with server() as name, pytest.raises(SubjectError, match=rf"{name} does .*{reason}\)"):
        audit(row, name).causal("race")


@pytest.mark.slow
@pytest.mark.usefixtures("started")
def test_missing_certificates_are_said() -> None:
    with pytest.raises(RequestError, match="needs certificates"):
        DaskPool("dask+tls://127.0.0.1:9").open(None)
