"""Pacing: when the next request may be sent, and how long to wait before one is sent again."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from datetime import UTC, datetime

FIRST_WAIT_SECONDS = 0.25  # before the first retry; doubled for each further one
LONGEST_WAIT_SECONDS = 30.0
RETRY_AFTER_LIMIT_SECONDS = 60.0  # what a service asks for beyond this is not granted
BURST_SECONDS = 0.05  # what was left unused this long ago may still be used


class Pace:
    """Spaces the requests of all tasks of one event loop; waits at random, from a seed."""

    def __init__(self, rate_per_second: float | None, *, seed: int = 0) -> None:
        self._interval = 1 / rate_per_second if rate_per_second else 0.0
        self._next = 0.0
        self._resume = 0.0
        self._random = random.Random(seed)

    @property
    def matters(self) -> bool:
        """Whether a request may have to wait at all."""
        return self._interval > 0 or self._resume > 0

    async def turn(self) -> None:
        """Wait until one more request may be sent."""
        while True:
            while (pause := self._resume - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            if not self._interval:
                return
            now = time.monotonic()
            slot = max(self._next, now - BURST_SECONDS)
            self._next = slot + self._interval
            if slot > now:
                await asyncio.sleep(slot - now)
            if self._resume <= time.monotonic():
                return

    async def wait(self, attempt: int, retry_after: str) -> None:
        """Wait after an attempt (the first is 0): as long as asked for, or longer each time.

        When the service asks for patience all requests wait, not only this one.
        """
        asked = retry_after_seconds(retry_after)
        if not asked:
            longest = min(FIRST_WAIT_SECONDS * 2**attempt, LONGEST_WAIT_SECONDS)
            await asyncio.sleep(longest * self._random.uniform(0.5, 1.0))
        else:
            self._resume = max(self._resume, time.monotonic() + asked)


def retry_after_seconds(text: str) -> float | None:
    """What Retry-After asks for, in seconds or as a date; None where it is missing or wrong."""
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), RETRY_AFTER_LIMIT_SECONDS)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), RETRY_AFTER_LIMIT_SECONDS)
