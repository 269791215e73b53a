"""Pools of processes that run tasks: on this machine, on a Dask cluster, or the user's own."""

from __future__ import annotations

import signal
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from typing import Any, Protocol

from themis.errors import RequestError, suggest

PROCESSES, DASK = "processes:", ("dask://", "dask+tls://")
Lost = tuple[type[BaseException], ...]


class Pool(Protocol):
    """Runs tasks somewhere; started when it is first needed."""

    name: str  # as it is recorded
    lost: Lost  # what a task ends with whose process died

    @property
    def workers(self) -> int:
        """How many tasks it runs at the same time."""

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begin a task."""

    def renew(self) -> None:
        """Make it work again after processes died."""

    def stop(self) -> None:
        """End what it runs, and its processes; a later task starts it again."""


def pool_of(executor: str | Executor) -> Pool:
    """The pool that a text names, or that is given."""
    if isinstance(executor, Executor):
        return GivenPool(executor)
    if executor.startswith(PROCESSES) and executor.removeprefix(PROCESSES).isdecimal():
        count = int(executor.removeprefix(PROCESSES))
        if count:
            return ProcessPool(count)
    if executor.startswith(DASK) and not executor.endswith("://"):
        from themis.engine.executors.dask_pool import DaskPool

        return DaskPool(executor)
    kinds = ("processes:4", "dask://local", "dask://host:8786", "dask+tls://host:8786")
    problem = f"{executor!r} is no executor"
    raise RequestError.one("executor", "executor", problem, suggest(executor, kinds))


class ProcessPool:
    """Processes on this machine."""

    lost: Lost = (BrokenExecutor,)

    def __init__(self, workers: int) -> None:
        self.name = f"{PROCESSES}{workers}"
        self.workers = workers
        self._executor: Executor | None = None

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._executor is None:
            from loky import ProcessPoolExecutor

            self._executor = ProcessPoolExecutor(self.workers, initializer=_leave_interrupts)
        return self._executor.submit(function, *args)

    def renew(self) -> None:
        self.stop()

    def stop(self) -> None:
        if self._executor is not None:
            self._executor.shutdown(kill_workers=True)  # type: ignore[call-arg]  # loky's own
            self._executor = None


def _leave_interrupts() -> None:
    """Ctrl-C is for the driver, which ends its processes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)


class GivenPool:
    """An executor of the user's own, who starts and ends it."""

    lost: Lost = (BrokenExecutor,)

    def __init__(self, executor: Executor) -> None:
        self.name = type(executor).__name__
        self._executor = executor
        self.workers = getattr(executor, "_max_workers", None) or 1

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        return self._executor.submit(function, *args)

    def renew(self) -> None:
        raise RequestError.one(
            "executor",
            "executor",
            f"a process of the {self.name} that was given has died, and it runs nothing any more",
            "give a new one, or let Themis start the processes: executor='processes:4'",
        )

    def stop(self) -> None:
        return
