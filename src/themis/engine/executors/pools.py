"""Pools of processes that run tasks: on this machine, on a Dask cluster, or the user's own."""

from __future__ import annotations

import os
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Executor, Future
from multiprocessing import resource_tracker
from typing import Any

from themis.engine.executors.interrupts import deaf_to_interrupts, interrupts_wait, settle_in
from themis.engine.executors.pool import Pool
from themis.errors import RequestError, suggest

PROCESSES, DASK = "processes:", ("dask://", "dask+tls://")


def pool_of(executor: str | Executor) -> Pool:
    """The pool that a text names, or that is given."""
    if isinstance(executor, Executor):
        return GivenPool(executor)
    if executor.startswith(PROCESSES):
        return ProcessPool(_processes(executor))
    if executor.startswith(DASK) and not executor.endswith("://"):
        from themis.engine.executors.dask_pool import DaskPool

        return DaskPool(executor)
    kinds = ("processes:4", "dask://local", "dask://host:8786", "dask+tls://host:8786")
    problem = f"{executor!r} is no executor"
    raise RequestError.one("executor", "executor", problem, suggest(executor, kinds))


def _processes(executor: str) -> int:
    """How many processes a text asks for."""
    number = executor.removeprefix(PROCESSES)
    if number.isdecimal() and int(number):
        return int(number)
    problem = f"{executor!r} names no number of processes above 0"
    raise RequestError.one("executor", "executor", problem, "write for example processes:2")


class ProcessPool(Pool):
    """Processes on this machine."""

    def __init__(self, workers: int) -> None:
        self.name = f"{PROCESSES}{workers}"
        self.workers = workers
        self._executor: Executor | None = None

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        if self._executor is None:
            from loky import ProcessPoolExecutor

            self._executor = ProcessPoolExecutor(
                self.workers, initializer=settle_in, initargs=(os.getpid(),)
            )
        resource_tracker.ensure_running()  # whose start would unblock what is blocked then
        with deaf_to_interrupts():
            return self._executor.submit(function, *args)

    def renew(self) -> None:
        self.stop()

    def stop(self) -> None:
        executor, self._executor = self._executor, None
        if executor is not None:
            with interrupts_wait():
                executor.shutdown(kill_workers=True)  # type: ignore[call-arg]  # loky's own


class GivenPool(Pool):
    """An executor of the user's own, who starts and ends it."""

    def __init__(self, executor: Executor) -> None:
        self.name = type(executor).__name__
        self._executor = executor
        self.workers = getattr(executor, "_max_workers", None) or 1

    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        try:
            return self._executor.submit(function, *args)
        except BrokenExecutor:
            raise
        except RuntimeError as error:  # it was shut down
            raise self._unusable(f"takes no tasks: {error}") from None

    def renew(self) -> None:
        raise self._unusable("has lost a process, and runs nothing any more")

    def _unusable(self, problem: str) -> RequestError:
        remedy = "give a new one, or let Themis start the processes: executor='processes:4'"
        given = f"the {self.name} that was given {problem}"
        return RequestError.one("executor", "executor", given, remedy)
