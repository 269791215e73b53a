"""A Dask cluster as a pool: one that runs already, or one on this machine.

Dask itself closes no cluster that is still being started. So one of our own is a process with all
that belongs to it: a session, whose processes are killed together at any time.
"""

from __future__ import annotations

import asyncio
import logging
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from contextlib import suppress
from importlib import import_module
from importlib.util import find_spec
from multiprocessing import resource_tracker
from typing import Any
from urllib.parse import urlsplit

from themis.engine.executors.pools import Pool, deaf_to_interrupts, interrupts_wait, settle_in
from themis.errors import RequestError, SubjectError, ThemisError, count_of
from themis.subjects.loading import processors

# Semaphores of processes that were killed are removed by one that would complain about it.
QUIET = ("-W", "ignore:resource_tracker")


class OwnCluster:
    """A scheduler and a process for each core; `address` waits for them."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="themis-dask-")
        said, theirs = os.pipe()
        self._said = os.fdopen(said, "rb")
        lines = (
            f"import sys; sys.path[:] = {list(map(str, sys.path))}; sys.argv[:] = {sys.argv}",
            f"from {__name__} import serve",
            f"serve({theirs}, {os.getpid()}, {self._folder!r})",
        )
        flags = (*subprocess._args_from_interpreter_flags(), *QUIET)  # type: ignore[attr-defined]
        try:
            self._process = subprocess.Popen(
                [sys.executable, *flags, "-c", "\n".join(lines)],
                stdin=subprocess.DEVNULL,
                pass_fds=[theirs],
            )
        finally:
            os.close(theirs)

    async def address(self) -> str:
        """Wait for its address; raises OSError where it ends before it has one."""
        said = asyncio.StreamReader()
        loop = asyncio.get_running_loop()
        pipe, _ = await loop.connect_read_pipe(
            lambda: asyncio.StreamReaderProtocol(said), self._said
        )
        try:
            address = await said.read()
        finally:
            pipe.close()
        if not address:
            raise OSError("its processes ended while they were started")
        return address.decode()

    def end(self) -> None:
        """Kill what was started."""
        self._said.close()
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it was about to begin
            self._process.kill()
        self._process.wait()
        shutil.rmtree(self._folder, ignore_errors=True)


def serve(pipe: int, driver: int, folder: str) -> None:
    """Be the cluster, and say its address: one thread for each core, and no limit of memory.

    What Dask logs is not shown: that processes come and go, and take their time.
    """

    def end() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        os.killpg(0, signal.SIGKILL)

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    resource_tracker.ensure_running()  # outside of the session, after which it cleans up
    os.setsid()
    settle_in(driver, end)
    # Else Dask gives up a worker that is just being replaced 15 s after one of its deaths.
    import_module("dask").config.set({"distributed.deploy.lost-worker-timeout": "1000 days"})
    cluster = import_module("distributed").LocalCluster(
        n_workers=processors(),
        threads_per_worker=1,
        memory_limit=0,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # else a second one meets the first
        local_directory=folder,
        silence_logs=logging.CRITICAL,
    )
    with os.fdopen(pipe, "w") as said:
        said.write(cluster.scheduler_address)
    while True:
        signal.pause()


LOCAL, TLS = "dask://local", "dask+tls://"
# Seconds until a scheduler that does not answer counts as lost. Half of it is short for one that is
# busy; twice as long somebody waits for a wrong address.
PATIENCE = 10
CLOSE_SECONDS = 2.0  # for Dask to leave; half or twice is hardly seen
# Without any worker, after which none is expected any more: one takes some seconds to start. With
# half of it a machine that boots comes too late.
ALONE_SECONDS = 30
# What Dask raises where a scheduler is gone; the last where its client has given up by itself.
LOST = (OSError, TimeoutError, RuntimeError, AttributeError)
# A subject is sent to each process once, however large it is: Dask would warn of that.
UNMARKED = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
THREAD = "themis-dask"


class DaskPool(Pool):
    """The workers of a Dask scheduler; as many as there are now, whoever comes or goes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.shares_files = name == LOCAL
        self._address = _address_of(name)
        self.lost: tuple[type[BaseException], ...] = (CancelledError,)
        self._link: _Link | None = None
        self._end: Callable[[], object] = lambda: None
        self._alone_since: float | None = None  # when it was first seen that there is no worker

    def open(self, seconds: float | None) -> bool:
        """Whether it is there, or is within these seconds; raises what keeps it from that."""
        if self._link is None:
            if find_spec("distributed") is None:
                remedy = "install it: pip install 'themis-fairness[distributed]'"
                raise RequestError.one("executor", "executor", "Dask is not installed", remedy)
            self._link = _Link(self._address)
            self._end = weakref.finalize(self, self._link.end)  # at the latest
            self._link.start()
        if not wait([self._link.client], seconds).done:
            return False
        try:
            self._link.client.result()
        except Exception as error:
            self.stop()
            raise self._problem(error) from error
        dask = import_module("distributed")
        self.lost = (CancelledError, dask.KilledWorker, dask.comm.CommClosedError)
        return True

    @property
    def workers(self) -> int:  # type: ignore[override]
        """How many threads all workers have together; raises SubjectError if nobody says so."""
        try:
            return max(self._threads(), 1)
        except LOST as error:
            raise self._gone(error) from None

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begin a task; its process may die and Dask begins it again in another one, thrice."""
        client = self._client
        if client.status == "closed":  # by itself, without a scheduler
            raise CancelledError
        with import_module("dask").config.set(UNMARKED):
            task = client.submit(function, *args, pure=False)

        async def outcome() -> Any:  # Dask's own executor mistakes one that is lost afterwards
            return await task

        return asyncio.run_coroutine_threadsafe(outcome(), client.loop.asyncio_loop)

    def check(self) -> None:
        """Raise SubjectError once there has been no worker for a while; tasks would wait for ever.

        Not where the scheduler does not answer either: that ends the tasks.
        """
        try:
            if self._threads():
                return
        except LOST:
            return
        if self._alone_since is not None and time.monotonic() - self._alone_since >= ALONE_SECONDS:
            raise SubjectError(
                f"the Dask scheduler at {self.name} has no worker, and none came within "
                f"{count_of(ALONE_SECONDS, 'second')}; start one and give the command again, or "
                "run it here without an executor"
            )

    def renew(self) -> None:
        """Nothing, as long as there is a scheduler; Dask starts its own processes again."""
        _ = self.workers  # raises SubjectError otherwise

    def stop(self) -> None:
        """Leave the cluster, even while it is reached; one of our own ends."""
        self._link = self._alone_since = None
        self._end()

    def _threads(self) -> int:
        count = int(sum(self._client.nthreads(callback_timeout=PATIENCE).values()))
        if count:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        return count

    @property
    def _client(self) -> Any:
        self.open(None)
        assert self._link is not None
        return self._link.client.result()

    def _problem(self, error: Exception) -> Exception:
        """What kept it from being reached, as it is said."""
        if isinstance(error, ThemisError):
            return error
        if isinstance(error, TimeoutError):
            return self._unreachable(f"it said nothing for {count_of(PATIENCE, 'second')}")
        if isinstance(error, OSError | ImportError):  # the latter of another version
            return self._unreachable(error)
        if isinstance(error, TypeError) and self.name.startswith(TLS):
            problem = f"{self.name} needs certificates, and Dask's settings name none"
            remedy = "set distributed.comm.tls, for example by the variables of deploy/tls.env"
            return RequestError.one("executor", "executor", problem, remedy)
        return self._unreachable("something else does, which is no scheduler")  # not its protocol

    def _gone(self, error: Exception) -> SubjectError:
        """That it was there and is not any more; what Dask says then is about its own parts."""
        if isinstance(error, TimeoutError):
            return self._unreachable(f"it named no worker for {count_of(PATIENCE, 'second')}")
        return self._unreachable("the connection to it was lost")

    def _unreachable(self, error: object) -> SubjectError:
        error = str(error) or type(error).__name__
        remedy = "" if self.name == LOCAL else "start it and give the command again, or "
        return SubjectError(
            f"the Dask scheduler at {self.name} does not answer ({error}); {remedy}"
            "run it here without an executor"
        )


def _address_of(name: str) -> str | None:
    """As Dask writes it, None for one of our own; certificates are those of its settings."""
    if name == LOCAL:
        return None
    scheme, _, place = name.partition("://")
    address = f"{'tls' if scheme == 'dask+tls' else 'tcp'}://{place}"
    try:
        _ = urlsplit(address).port
    except ValueError as error:
        problem, remedy = f"{name} is no address: {error}", "write dask://host:8786"
        raise RequestError.one("executor", "executor", problem, remedy) from None
    return address


class _Link:
    """A client, and a cluster if it is our own, in a thread which ends at any time."""

    def __init__(self, address: str | None) -> None:
        self.client: Future[Any] = Future()
        self._address = address  # None: of a cluster of our own
        self._leaving: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)

    def start(self) -> None:
        """Begin, and wait for nothing."""
        with deaf_to_interrupts():  # nor do the workers hear any
            self._thread.start()

    def end(self) -> None:
        """Give up what was begun, and end what was started."""
        with interrupts_wait():
            self._leaving.set_result(None)
            if threading.current_thread() is not self._thread:
                self._thread.join(3 * CLOSE_SECONDS)

    def _run(self) -> None:
        try:
            asyncio.run(self._live())
        except BaseException as error:
            if not self.client.done():
                self.client.set_exception(error)

    async def _live(self) -> None:
        """Connect, and stay until it is told to leave."""
        task = asyncio.current_task()
        assert task is not None
        asyncio.wrap_future(self._leaving).add_done_callback(lambda _: task.cancel())
        cluster = None if self._address else OwnCluster()
        client: Any = None
        try:
            dask = import_module("distributed")
            for handler in logging.getLogger("distributed").handlers:
                handler.addFilter(_is_of_others)
            place = await cluster.address() if cluster else self._address
            client = dask.Client(place, asynchronous=True, set_as_default=False, timeout=PATIENCE)
            async with asyncio.timeout(PATIENCE + 1):  # a first word is waited for endlessly
                await client
            self.client.set_result(client)
            await asyncio.Event().wait()
        finally:
            if client is not None:
                with suppress(Exception):
                    await asyncio.wait_for(client.close(), CLOSE_SECONDS)
            if cluster is not None:
                cluster.end()


def _is_of_others(record: logging.LogRecord) -> bool:
    """Whether Dask logs for somebody else: of ours, all that matters is raised."""
    return record.threadName != THREAD
