"""Pools of processes that run tasks: on this machine, on a Dask cluster, or the user's own.

Ctrl-C is for the driver alone, who ends what it has started; without it that ends itself.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from concurrent.futures import BrokenExecutor, Executor, Future
from contextlib import contextmanager
from multiprocessing import resource_tracker
from typing import Any

from themis.errors import RequestError


@contextmanager
def deaf_to_interrupts() -> Iterator[None]:
    """Within, processes are started that do not hear Ctrl-C: it is for the driver, who ends them.

    They and threads that start others inherit that it is blocked. The driver hears it at the end,
    also where another thread of it, which does not block it, gets it meanwhile.
    """
    with interrupts_wait():
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            yield
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)


@contextmanager
def interrupts_wait(*numbers: signal.Signals) -> Iterator[None]:
    """Within, Ctrl-C, or these signals, are kept until the end: the work must be completed."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    heard: list[Any] = []
    before = {
        number: signal.signal(number, lambda *signalled: heard.append(signalled))
        for number in numbers or (signal.SIGINT,)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        for signalled in heard[:1]:
            if callable(handler := before[signalled[0]]):
                handler(*signalled)


def settle_in(driver: int, end: Callable[[], object] = lambda: os._exit(1)) -> None:
    """Make this a process of a pool: it ends with its driver, and may start processes as usual."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    multiprocessing.set_start_method("spawn", force=True)

    def end_with_driver() -> None:
        while os.getppid() == driver:
            time.sleep(1.0)
        end()

    threading.Thread(target=end_with_driver, daemon=True).start()


class Pool(ABC):
    """Runs tasks somewhere; started when it is first needed."""

    name: str  # as it is recorded
    lost: tuple[type[BaseException], ...] = (BrokenExecutor,)  # what tasks end with if theirs died
    shares_files = True  # whether modules are found there by their files
    workers: int  # how many tasks it runs at the same time

    def open(self, seconds: float | None) -> bool:
        """Whether it takes tasks, or does so within these seconds; begins what that needs."""
        return True

    @abstractmethod
    def submit(self, function: Callable[..., Any], *args: Any) -> Future[Any]:
        """Begin a task."""

    def check(self) -> None:
        """Raise where nobody would run the tasks that were begun; asked while none of them ends."""
        return

    @abstractmethod
    def renew(self) -> None:
        """Make it work again after processes died."""

    def stop(self) -> None:
        """End what it runs, and its processes; a later task starts it again."""
        return


PROCESSES = "processes:"


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
