"""An event loop in a thread of its own: how synchronous code runs many requests at once."""

from __future__ import annotations

import asyncio
import contextlib
import os
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from typing import Any, TypeAlias

CLOSE_SECONDS = 1.0

Work: TypeAlias = Callable[[int], Awaitable[None]]


class LoopThread:
    """A thread with an event loop, and the session of a client library that lives in it.

    It belongs to the process that made it: after a fork there is no such thread.
    """

    def __init__(self, open_session: Callable[[], Coroutine[Any, Any, Any]]) -> None:
        self.owner = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="themis-http", daemon=True
        )
        self._thread.start()
        self.session = asyncio.run_coroutine_threadsafe(open_session(), self._loop).result()

    def run(self, work: Work, count: int, *, workers: int) -> None:
        """Call `work(0)` to `work(count - 1)`, in order, by so many workers.

        The first exception ends all; so does an interrupt of the calling thread.
        """
        ended = threading.Event()

        async def watched() -> None:
            try:
                await _work_together(work, iter(range(count)), workers)
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(watched(), self._loop)
        try:
            future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait(CLOSE_SECONDS)
            raise

    def close(self) -> None:
        """Close the session and end the thread, unless they are those of a parent process."""
        if self.owner != os.getpid() or self._loop.is_closed():
            return
        if threading.current_thread() is self._thread:  # a collector's turn may come anywhere
            task = self._loop.create_task(self.session.close())
            task.add_done_callback(lambda _: self._loop.stop())
            return
        closing = asyncio.run_coroutine_threadsafe(self.session.close(), self._loop)
        with contextlib.suppress(TimeoutError):
            closing.result(CLOSE_SECONDS)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_SECONDS)
        if not self._thread.is_alive():
            self._loop.close()


async def _work_together(work: Work, numbers: Iterator[int], workers: int) -> None:
    """Let the workers take numbers in turn; the first exception ends all of them."""

    async def drain() -> None:
        for number in numbers:
            await work(number)

    tasks = [asyncio.create_task(drain()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
