"""A pool: what runs tasks somewhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from concurrent.futures import BrokenExecutor, Future
from typing import Any


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
