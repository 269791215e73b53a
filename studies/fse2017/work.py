"""How the study is divided: pieces of work for a few processes, with the time they took."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import Future, ProcessPoolExecutor
from typing import Any


class Work:
    """Pieces of work, done by a few processes; results come in the order of asking."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        self._pool = pool
        self._asked: dict[str, list[Future[Any]]] = {}

    def ask(self, title: str, function: Callable[..., Any], *calls: tuple[Any, ...]) -> None:
        self._asked[title] = [self._pool.submit(_timed, function, *call) for call in calls]

    def collect(self, said: Callable[[str], None]) -> tuple[dict[str, list[Any]], float]:
        results: dict[str, list[Any]] = {}
        seconds = 0.0
        for title, futures in self._asked.items():
            pieces = [future.result() for future in futures]
            results[title] = [piece for piece, _ in pieces]
            seconds += sum(own for _, own in pieces)
            said(f"{title}: {len(futures)} pieces, {sum(own for _, own in pieces):.0f} s of CPU")
        return results, seconds


def _timed(function: Callable[..., Any], *arguments: Any) -> tuple[Any, float]:
    started = time.process_time()
    return function(*arguments), time.process_time() - started
