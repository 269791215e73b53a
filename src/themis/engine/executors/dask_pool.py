"""A Dask cluster as a pool: one that runs already, or one on this machine."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
import time
import weakref
from collections.abc import Callable
from concurrent.futures import CancelledError, Future, wait
from importlib import import_module
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

from themis.engine.executors.interrupts import interrupts_wait
from themis.engine.executors.own_cluster import OwnCluster
from themis.errors import RequestError, SubjectError, ThemisError, count_of

LOCAL, TLS = "dask://local", "dask+tls://"
DEFAULT_PORT = 8786  # of a scheduler
KNOCK_SECONDS = 2.0
PATIENCE = 10  # seconds until a scheduler that does not answer counts as lost
# What Dask raises where a scheduler is gone; the last where its client has given up by itself.
LOST = (OSError, TimeoutError, RuntimeError, AttributeError)
# A subject is sent to each process once, however large it is: Dask would warn of that.
UNMARKED = {"distributed.admin.large-graph-warning-threshold": "1 TiB"}
THREAD = "themis-dask"
ALONE_SECONDS = 30  # without any worker, after which none is expected any more


class DaskPool:
    """The workers of a Dask scheduler; as many as there are now, whoever comes or goes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost: tuple[type[BaseException], ...] = (CancelledError,)
        self._link: _Link | None = None
        self._end: Callable[[], object] = lambda: None
        self._client: Any = None
        self._alone_since: float | None = None  # when it was first seen that there is no worker

    def knock(self) -> None:
        """Raise SubjectError where its port is closed, or its host unknown: long before it is used.

        One that is slow to answer has until then.
        """
        if (address := self._address) is None:
            return
        place = urlsplit(address)
        try:
            port = place.port or DEFAULT_PORT
            socket.create_connection((place.hostname or "", port), KNOCK_SECONDS).close()
        except TimeoutError:
            return
        except OSError as error:
            raise self._unreachable(error.strerror or error) from None

    def open(self, seconds: float | None) -> bool:
        """Whether it is there, or is within these seconds; raises what keeps it from that."""
        if self._client is None:
            try:
                self._client = self._reach(seconds)
            except ThemisError:
                raise
            except Exception as error:
                self.stop()
                raise self._problem(error) from error
        return self._client is not None

    def _reach(self, seconds: float | None) -> Any:
        """The client; None while it is not yet there."""
        if self._link is None:
            _require_dask()
            with interrupts_wait():
                self._link = _Link(self._address)
                self._end = weakref.finalize(self, self._link.end)  # at the latest
                self._link.start()
        if not wait([self._link.client], seconds).done:
            return None
        client, dask = self._link.client.result(), import_module("distributed")
        self.lost = (CancelledError, dask.KilledWorker, dask.comm.CommClosedError)
        return client

    @property
    def workers(self) -> int:
        """How many threads all workers have together; raises SubjectError if nobody says so."""
        try:
            return max(self._threads(), 1)
        except LOST as error:
            raise self._gone(error) from None

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begin a task; its process may die and Dask begins it again in another one, thrice."""
        client = self._connected()
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
            if self._client is None or self._threads():
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
        try:
            self._connected().scheduler_info()
            self._connected().wait_for_workers(1, timeout=PATIENCE)
        except LOST as error:
            raise self._gone(error) from None

    def stop(self) -> None:
        """Leave the cluster, even while it is reached; one of our own ends."""
        self._link = self._client = self._alone_since = None
        self._end()

    def _threads(self) -> int:
        count = int(sum(self._connected().nthreads(callback_timeout=PATIENCE).values()))
        if count:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        return count

    @property
    def _address(self) -> str | None:
        """As Dask writes it, None for one of our own; certificates are those of its settings."""
        if self.name == LOCAL:
            return None
        scheme, _, place = self.name.partition("://")
        address = f"{'tls' if scheme == 'dask+tls' else 'tcp'}://{place}"
        try:
            _ = urlsplit(address).port
        except ValueError as error:
            problem, remedy = f"{self.name} is no address: {error}", "write dask://host:8786"
            raise RequestError.one("executor", "executor", problem, remedy) from None
        return address

    def _connected(self) -> Any:
        self.open(None)
        return self._client

    def _problem(self, error: Exception) -> Exception:
        """What kept it from being reached, as it is said."""
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


class _Link:
    """A client in a thread of its own, which starts beside other work and ends at any time."""

    def __init__(self, address: str | None) -> None:
        self.client: Future[Any] = Future()
        self._address = address  # None: of a cluster of our own
        self._cluster = OwnCluster() if address is None else None
        self._leaving: Future[None] = Future()
        self._thread = threading.Thread(target=self._run, name=THREAD, daemon=True)

    def start(self) -> None:
        """Begin, and wait for nothing."""
        if self._cluster is not None:
            self._cluster.start()
        self._thread.start()

    def end(self) -> None:
        """Give up what was begun, and end what was started."""
        with interrupts_wait():
            if self.client.done() and self.client.exception() is None:
                self.client.result().close()
            self._leaving.set_result(None)
            if self._cluster is not None:
                self._cluster.end()
            if self._thread.is_alive() and threading.current_thread() is not self._thread:
                self._thread.join()

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
        dask = import_module("distributed")
        for handler in logging.getLogger("distributed").handlers:
            handler.addFilter(_is_of_others)
        address = self._address if self._cluster is None else self._cluster.address()
        client = dask.Client(address, asynchronous=True, set_as_default=False, timeout=PATIENCE)
        try:
            async with asyncio.timeout(PATIENCE + 1):  # Dask would wait for a first word for ever
                await client
            self.client.set_result(client)
            await asyncio.Event().wait()
        finally:
            await client.close()


def _require_dask() -> None:
    if find_spec("distributed") is None:
        problem, remedy = "Dask is not installed", "pip install 'themis-fairness[distributed]'"
        raise RequestError.one("executor", "executor", problem, f"install it: {remedy}")


def _is_of_others(record: logging.LogRecord) -> bool:
    """Whether Dask logs for somebody else: of ours, all that matters is raised."""
    return record.threadName != THREAD
