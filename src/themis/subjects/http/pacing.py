"""Pacing: when one more request may be sent, and how long to wait after one that failed."""

from __future__ import annotations

import asyncio
import email.utils
import random
import time
from collections import deque
from datetime import UTC, datetime

FIRST_WAIT_SECONDS = 0.25  # before the first retry; doubled for each further one
LONGEST_WAIT_SECONDS = 30.0
RETRY_AFTER_LIMIT_SECONDS = 60.0  # what a service asks for beyond this is not granted
COUNTED_SECONDS = 1.0  # what is answered within them is what a service allows
LEAST_INTERVAL = 0.001  # seconds between two requests of a service that asked for fewer
BURST_SECONDS = 0.05  # what was left unused this long ago may still be used


class Pace:
    """Spaces the requests of all tasks of one event loop; waits at random, from a seed."""

    def __init__(
        self, rate_per_second: float | None, tokens_per_minute: float | None = None, seed: int = 0
    ) -> None:
        self._seconds_per_token = 60 / tokens_per_minute if tokens_per_minute else 0.0
        # seconds between two requests, at least as asked for
        self._least = self.interval = 1 / rate_per_second if rate_per_second else 0.0
        self._next = 0.0
        self._resume = 0.0
        self._random = random.Random(seed)
        self._good = deque[float](maxlen=10_000)  # when requests were answered last
        self._slowed = self._too_many = 0.0  # when it was slowed down last, and asked to

    @property
    def matters(self) -> bool:
        """Whether a request may have to wait at all."""
        return self.interval > 0 or self._resume > 0 or self._seconds_per_token > 0

    async def turn(self, tokens: float = 0) -> None:
        """Wait until one more request may be sent, which takes about so many tokens."""
        space = max(self.interval, tokens * self._seconds_per_token)
        while True:
            while (pause := self._resume - time.monotonic()) > 0:
                await asyncio.sleep(pause)
            if not space:
                return
            now = time.monotonic()
            slot = max(self._next, now - BURST_SECONDS)
            self._next = slot + space
            if slot > now:
                await asyncio.sleep(slot - now)
            if self._resume <= time.monotonic():
                return

    def correct(self, tokens: float) -> None:
        """A request took so many tokens more than was reserved for it, or fewer."""
        self._next += tokens * self._seconds_per_token

    def answered(self) -> None:
        """A request was answered: if others were too many for the service, a little faster."""
        now = time.monotonic()
        self._good.append(now)
        if self.interval > self._least and now > self._too_many + COUNTED_SECONDS:
            # After a second in which all were answered a quarter less.
            faster = self.interval * 0.75**self.interval
            self.interval = max(faster, self._least, LEAST_INTERVAL)

    def slow_down(self, sent: float) -> None:
        """A request that was sent at this time was one too many: no more than were answered.

        Those that were sent before that is felt say nothing new.
        """
        self._too_many = now = time.monotonic()
        if sent < self._slowed + COUNTED_SECONDS:
            return
        self._slowed = now
        answered = sum(now - when <= COUNTED_SECONDS for when in self._good)
        least = max(COUNTED_SECONDS / answered, 1.25 * self.interval) if answered else 0.0
        self.interval = min(least or max(2 * self.interval, LEAST_INTERVAL), LONGEST_WAIT_SECONDS)
        self._next = now + self.interval

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
