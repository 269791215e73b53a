"""A Dask cluster that is being started or reached: work goes on, and all of it can be ended."""

from __future__ import annotations

import gc
import http.server
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from tests.engine.test_executors import audit, everything, row
from tests.external import PATIENCE, interrupting, wait_until
from themis.engine.executors import dask_pool, spread
from themis.engine.executors.dask_pool import LOCAL, DaskPool
from themis.errors import RequestError, SubjectError

distributed = pytest.importorskip("distributed", reason="Dask is not installed")
pytestmark = pytest.mark.slow


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
    assert not list(folder.glob("themis-dask-*"))
    assert not [each for each in threading.enumerate() if each.name == dask_pool.THREAD]


@pytest.fixture
def hanging(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Workers never come to an end of their start."""
    (tmp_path / "hang.py").write_text(f"import time\ntime.sleep({10 * PATIENCE})\n")
    monkeypatch.setenv("DASK_DISTRIBUTED__WORKER__PRELOAD", json.dumps([str(tmp_path / "hang.py")]))


@pytest.mark.usefixtures("hanging", "started")
def test_work_goes_on_while_a_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 1e-9)
    assert everything(audit(row, LOCAL)) == everything(audit(row))


@pytest.mark.usefixtures("hanging", "started")
def test_a_limit_of_time_holds_while_a_cluster_starts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)  # all of it is to be run there
    with audit(row, LOCAL, max_seconds=1.0) as asked:
        (score, *_) = asked.score([("race",)]).scores
    assert score.stopped == "budget"


@pytest.mark.usefixtures("hanging")
@pytest.mark.parametrize("moment", [CLUSTER, WORKER])
def test_an_interrupt_ends_a_cluster_that_is_being_started(
    monkeypatch: pytest.MonkeyPatch, started: Started, moment: str
) -> None:
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    with interrupting(lambda: started.wait_for(moment)):
        audit(row, LOCAL).causal("race")
    assert started.have_ended()


def test_a_pool_that_nobody_has_any_more_ends_its_cluster(started: Started) -> None:
    pool = DaskPool(LOCAL)
    assert pool.submit(pow, 2, 3).result() == 8
    del pool
    assert started.have_ended()


@pytest.mark.usefixtures("started")
def test_a_cluster_has_a_thread_for_each_core_and_no_limit_of_memory() -> None:
    """As processes have none: an input must not fail because Dask would end its process."""
    pool = DaskPool(LOCAL)
    try:
        pool.open(None)
        assert pool.workers == len(os.sched_getaffinity(0))
        workers = pool._client.scheduler_info(n_workers=-1)["workers"].values()
        assert {(each["nthreads"], each["memory_limit"]) for each in workers} == {(1, 0)}
    finally:
        pool.stop()


@pytest.mark.usefixtures("started")
def test_workers_that_are_not_back_soon_are_still_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    """Dask looks once, a while after a death, and gives up a worker that is not there just then."""
    monkeypatch.setenv("DASK_DISTRIBUTED__DEPLOY__LOST_WORKER_TIMEOUT", "1ms")
    pool = DaskPool(LOCAL)
    try:
        for _ in range(2 * pool.workers):
            pool.renew()
            os.kill(pool.submit(os.getpid).result(PATIENCE), signal.SIGKILL)
        assert pool.submit(os.getpid).result(PATIENCE)
    finally:
        pool.stop()


def test_a_cluster_that_ends_leaves_no_semaphores(started: Started) -> None:
    pool = DaskPool(LOCAL)
    pool.open(None)
    maps = Path(f"/proc/{started.wait_for(CLUSTER)}/maps").read_text()
    semaphores = set(re.findall(r"/dev/shm/sem\.\S+", maps))
    pool.stop()
    assert semaphores
    wait_until(lambda: not any(Path(each).exists() for each in semaphores))


def test_a_cluster_that_cannot_be_started_is_said(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], started: Started
) -> None:
    pool = DaskPool(LOCAL)
    assert not pool.open(0)
    os.kill(started.wait_for(CLUSTER), signal.SIGKILL)
    with pytest.raises(SubjectError, match=r"dask://local does not answer \(its processes ended"):
        pool.open(None)
    assert "Traceback" not in capfd.readouterr().err


SUBJECT = """
import logging, os, sys, time, warnings
from pathlib import Path

def decide(person):
    mark = Path(f"{os.getpid()}.pid")
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
FILE = """
version = 1
[subject]
kind = "python"
function = "slow:decide"
[inputs]
race = { values = ["green", "purple"], protected = true }
income = { min = 0, max = 1_000_000 }
"""


@contextmanager
def command(folder: Path, *options: str) -> Iterator[subprocess.Popen[str]]:
    (folder / "slow.py").write_text(SUBJECT)
    (folder / "themis.toml").write_text(FILE)
    words = [sys.executable, "-m", "themis", "score", "--executor", LOCAL, "--json", *options]
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    with subprocess.Popen(words, cwd=folder, text=True, start_new_session=True, **pipes) as driver:
        try:
            yield driver
        finally:
            driver.kill()


@pytest.mark.usefixtures("hanging")
@pytest.mark.parametrize("moment", [CLUSTER, WORKER])
def test_ctrl_c_while_a_cluster_starts_keeps_what_was_learned(
    tmp_path: Path, started: Started, moment: str
) -> None:
    with command(tmp_path, "--error", "0.005") as driver:
        started.wait_for(moment)
        os.killpg(driver.pid, signal.SIGINT)
        out, said = driver.communicate(timeout=PATIENCE)
    assert driver.returncode == 130, said
    assert json.loads(out)["scores"][0]["stopped"] == "interrupted"
    assert foreign(said) == []
    assert started.have_ended()


def test_ctrl_c_while_a_cluster_works_says_nothing_of_dask(
    tmp_path: Path, started: Started
) -> None:
    with command(tmp_path, "--error", "0.005") as driver:
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


@pytest.mark.parametrize("moment", [CLUSTER, WORKER])
@pytest.mark.usefixtures("hanging")
def test_a_cluster_that_is_being_started_ends_with_a_driver_that_is_killed(
    tmp_path: Path, started: Started, moment: str
) -> None:
    with command(tmp_path, "--error", "0.005") as driver:
        started.wait_for(moment)
        driver.kill()
    assert started.have_ended()


def test_a_cluster_ends_with_a_driver_that_is_killed(tmp_path: Path, started: Started) -> None:
    with command(tmp_path, "--error", "0.005") as driver:
        wait_until(lambda: len(list(tmp_path.glob("*.pid"))) > 1)
        driver.kill()
    assert started.have_ended()


@contextmanager
def saying(first: bytes | None, reached: threading.Event | None = None) -> Iterator[str]:
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
                if reached is not None and len(taken) > 1:  # the first only looks
                    reached.set()

        threading.Thread(target=serve, daemon=True).start()
        try:
            yield f"dask://127.0.0.1:{server.getsockname()[1]}"
        finally:
            server.shutdown(socket.SHUT_RDWR)
            for each in taken:
                each.close()


@contextmanager
def web_service() -> Iterator[str]:
    class Handler(http.server.SimpleHTTPRequestHandler):
        def log_message(self, *_: Any) -> None: ...

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"dask://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize(
    ("server", "reason"),
    [
        (lambda: saying(None), "said nothing for 1 second"),
        (web_service, "said nothing for 1 second"),
        (lambda: saying(b"HTTP/1.0 400 Bad request\r\n\r\n"), "is no scheduler"),
        (lambda: saying(b"SSH-2.0-OpenSSH_9.2p1\r\n"), "is no scheduler"),
        (lambda: saying(bytes(64)), "is no scheduler"),
        (lambda: saying((5).to_bytes(8, "little") + bytes(5)), "is no scheduler"),
    ],
)
def test_what_is_no_scheduler_is_said(
    monkeypatch: pytest.MonkeyPatch, started: Started, server: Any, reason: str
) -> None:
    monkeypatch.setattr(dask_pool, "PATIENCE", 1)
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    with server() as name, pytest.raises(SubjectError, match=rf"{name} does .*{reason}\)"):
        audit(row, name).causal("race")


def test_an_interrupt_is_heard_while_a_scheduler_says_nothing(
    monkeypatch: pytest.MonkeyPatch, started: Started
) -> None:
    reached, given_up, problem = threading.Event(), list[Exception](), DaskPool._problem

    def give_up(pool: DaskPool, error: Exception) -> Exception:
        given_up.append(error)
        return problem(pool, error)

    monkeypatch.setattr(DaskPool, "_problem", give_up)
    monkeypatch.setattr(dask_pool, "PATIENCE", 10 * PATIENCE)
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    with saying(None, reached) as name, interrupting(reached.is_set):
        audit(row, name).causal("race")
    assert reached.is_set()
    assert not given_up, "it was heard only once nobody waited for the scheduler any more"


@pytest.mark.usefixtures("started")
def test_a_client_that_could_not_connect_is_closed_before_another_starts() -> None:
    """Left to the collector, the first could end within the start of the second, and hang."""
    for _ in range(2):
        with pytest.raises(RequestError, match="needs certificates"):
            DaskPool("dask+tls://127.0.0.1:9").open(None)
        clients = [each for each in gc.get_objects() if type(each) is distributed.Client]
        assert all(each.status == "closed" for each in clients)
