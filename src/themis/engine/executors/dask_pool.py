"""A Dask cluster as a pool: one that runs already, or one on this machine."""

from __future__ import annotations

import gc
import logging
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError, Executor, Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from themis.engine.executors.interrupts import deaf_to_interrupts, interrupts_wait
from themis.errors import RequestError, SubjectError, count_of

LOCAL, TLS = "dask://local", "dask+tls://"
PATIENCE = 10  # seconds until a scheduler that does not answer counts as lost
LOST = (OSError, TimeoutError, RuntimeError)  # what Dask raises where a scheduler is gone
ALONE_SECONDS = 30  # without any worker, after which none is expected any more


class DaskPool:
    """The workers of a Dask scheduler; as many as there are now, whoever comes or goes."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.lost: tuple[type[BaseException], ...] = (CancelledError,)
        self._client: Any = None
        self._executor: Executor | None = None
        self._alone_since: float | None = None  # when it was first seen that there is no worker

    @property
    def workers(self) -> int:
        """How many threads all workers have together; raises SubjectError if nobody says so."""
        try:
            return max(self._threads(), 1)
        except LOST as error:
            raise self._unreachable(error) from None

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begin a task; its process may die and Dask begins it again in another one, thrice."""
        if self._executor is None:
            self._executor = self._connected().get_executor(pure=False)
        return self._executor.submit(function, *args)

    def check(self) -> None:
        """Raise SubjectError once there has been no worker for a while; tasks would wait for ever.

        Not where the scheduler does not answer either: that ends the tasks.
        """
        try:
            if self._threads(callback_timeout=PATIENCE):
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
            raise self._unreachable(error) from None

    def stop(self) -> None:
        """Leave the cluster; one of our own ends."""
        client, self._client, self._executor = self._client, None, None
        self._alone_since = None
        if client is not None:
            with interrupts_wait(), _quiet():
                if client.cluster is not None:
                    client.cluster.close()
                client.close()

    def _threads(self, **options: Any) -> int:
        count = int(sum(self._connected().nthreads(**options).values()))
        if count:
            self._alone_since = None
        elif self._alone_since is None:
            self._alone_since = time.monotonic()
        return count

    @property
    def _address(self) -> str:
        """As Dask writes it; certificates are those of Dask's own settings."""
        if self.name.startswith(TLS):
            return "tls://" + self.name.removeprefix(TLS)
        return "tcp://" + self.name.removeprefix("dask://")

    def _connected(self) -> Any:
        if self._client is None:
            problem = self._connect(_distributed())
            if problem is not None:
                # What Dask left half-made ends now. Later, amid the start of another client, its
                # end would wait for a lock that this very thread holds.
                gc.collect()
                raise problem
        return self._client

    def _connect(self, distributed: Any) -> Exception | None:
        """Become a client; gives what went wrong."""
        self.lost = (CancelledError, distributed.KilledWorker, distributed.comm.CommClosedError)
        try:
            if self.name == LOCAL:
                resource_tracker.ensure_running()  # whose start would unblock what is blocked then
                with deaf_to_interrupts():
                    self._client = distributed.Client(_cluster(distributed))
            else:
                self._client = distributed.Client(self._address, timeout=PATIENCE)
        except (OSError, TimeoutError) as error:
            return self._unreachable(error)
        except MemoryError:  # text of another protocol, taken for a length
            return self._unreachable("something else does, which is no scheduler")
        except ValueError as error:
            remedy = "write dask://host:8786"
            problem = f"{self.name} is no address: {error}"
            return RequestError.one("executor", "executor", problem, remedy)
        except TypeError:  # what Dask raises where it has none
            problem = f"{self.name} needs certificates, and Dask's settings name none"
            remedy = "set distributed.comm.tls, for example by the variables of deploy/tls.env"
            return RequestError.one("executor", "executor", problem, remedy)
        return None

    def _unreachable(self, error: object) -> SubjectError:
        return SubjectError(
            f"the Dask scheduler at {self.name} does not answer ({error}); start it and give the "
            "command again, or run it here without an executor"
        )


def _cluster(distributed: Any) -> Any:
    """A cluster of this machine's cores, one thread in each process."""
    count = len(os.sched_getaffinity(0))
    return distributed.LocalCluster(
        n_workers=count,
        threads_per_worker=1,
        dashboard_address=None,
        scheduler_kwargs={"dashboard_address": "127.0.0.1:0"},  # else a second one meets the first
    )


def _distributed() -> Any:
    try:
        import distributed
    except ImportError:
        raise RequestError.one(
            "executor",
            "executor",
            "Dask is not installed",
            "install it: pip install 'themis-fairness[distributed]'",
        ) from None
    return distributed


@contextmanager
def _quiet() -> Iterator[None]:
    """Within, Dask does not log that connections end which we end."""
    logger = logging.getLogger("distributed")
    level = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(level)
