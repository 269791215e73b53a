"""The client: sends requests over kept connections, many at once, in a thread of its own."""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import http
import itertools
import math
import os
import random
import re
import ssl
import threading
import time
from collections import deque
from collections.abc import Callable, Coroutine
from concurrent.futures import wait
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from themis.errors import RequestError, SubjectError, count_of
from themis.subjects.base import WAKE_SECONDS, heed
from themis.subjects.decisions import NOT_SENT, TIMEOUT, TRANSPORT, Failure
from themis.subjects.http.requests import Requests

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

CLOSE_SECONDS = 1.0

REFUSALS = frozenset({401, 403, 407})  # of whoever asks, whatever is asked
# What passes; from 520 on as proxies say it, and services of language models.
RETRYABLE = frozenset({408, 429, 500, 502, 503, 504, *range(520, 531)})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
CREDENTIALS = "check the credentials that are sent: headers of [subject]"
_OUT_OF_QUOTA = re.compile(
    rb'"(insufficient_quota|billing_not_active)"|credit balance is too low to access'
)
_MAY_BE_UNPAID = frozenset({400, 403, 429})  # as services say it, beside 402

Work: TypeAlias = Callable[[], Coroutine[Any, Any, None]]
Count: TypeAlias = Callable[["Reply | Trouble"], float]  # of tokens
FIRST_WAIT_SECONDS = 0.25  # before the first retry; doubled for each further one
LONGEST_WAIT_SECONDS = 30.0
BURST_SECONDS = 0.05  # what was left unused this long ago may still be used


@dataclass(frozen=True)
class Limits:
    """What a client may do at once, and how patient it is."""

    concurrency: int
    rate_per_second: float | None
    retries: int
    timeout_seconds: float
    tokens_per_minute: float | None = None


@dataclass(frozen=True, slots=True)
class Reply:
    """What a service sent back."""

    status: int
    body: bytes
    whole: bool = True  # whether the body was read to its end
    location: str = ""  # where a redirect leads
    retry_after: str = ""  # when to come again, as the service says it
    times: str = ""  # how often it was asked, in words

    @property
    def good(self) -> bool:
        """Whether the service says that it has done what was asked."""
        return 200 <= self.status < 300

    @property
    def out_of_quota(self) -> bool:
        """Whether it was refused because all that was paid for is used up, and will be again."""
        return self.status in _MAY_BE_UNPAID and _OUT_OF_QUOTA.search(self.body) is not None

    @property
    def retryable(self) -> bool:
        """Whether the same request may get another answer after a while."""
        return self.status in RETRYABLE and not self.out_of_quota

    @property
    def headline(self) -> str:
        """The status in words."""
        try:
            return f"HTTP {self.status} {http.HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"HTTP {self.status}"


class Client:
    """Sends requests to one service, from a thread with an event loop that is started when needed.

    Thread and connections belong to the process that opened them: after a fork there are none.
    """

    def __init__(
        self, requests: Requests, limits: Limits, refusals: frozenset[int] = REFUSALS
    ) -> None:
        require_aiohttp()
        self._requests, self._limits = requests, limits
        self._host = requests.address.host
        self._connect_seconds = 0.9 * limits.timeout_seconds  # none that is made later ever will be
        self.pace = Pace(limits.rate_per_second, limits.tokens_per_minute)
        self.deadline = math.inf  # of the clock `time.monotonic`
        self._reached = False
        self._silent = 0  # requests in a row that came to nothing
        self._refusals = refusals
        self.given = self.requests_sent = 0  # inputs that reached the service, in so many requests
        self._owner: int | None = None  # the process that opened it

    def hear(self) -> None:
        """Note that a reply held outputs, whatever its status."""
        self._silent = 0

    def run(self, work: Work, workers: int) -> None:
        """Call `work` so many times at once, but no more than allowed, in the client's thread.

        The first exception ends all; so do the deadline and an interrupt of the calling thread.
        """
        if self._owner != os.getpid():
            self._open()
        self._silent = 0
        ended = threading.Event()

        async def watched() -> None:
            try:
                await _work_together(work, min(workers, self._limits.concurrency))
            finally:
                ended.set()

        future = asyncio.run_coroutine_threadsafe(watched(), self._loop)
        try:
            while not wait([future], min(WAKE_SECONDS, heed(self.deadline))).done:
                pass  # a signal that another thread was woken for is noticed here
            future.result()
        except BaseException:
            if not future.done():
                future.cancel()
                ended.wait(CLOSE_SECONDS)
            raise

    def close(self) -> None:
        """Close the connections and end the thread; a later request opens new ones."""
        owner, self._owner = self._owner, None
        if owner != os.getpid():
            return
        loop, thread = self._loop, self._thread
        if threading.current_thread() is thread:  # a collector's turn may come anywhere
            loop.create_task(self._session.close()).add_done_callback(lambda _: loop.stop())
            return
        closing = asyncio.run_coroutine_threadsafe(self._session.close(), loop)
        with contextlib.suppress(TimeoutError):
            closing.result(CLOSE_SECONDS)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(CLOSE_SECONDS)
        if not thread.is_alive():
            loop.close()

    def _open(self) -> None:
        self._loop = loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=loop.run_forever, name="themis-http", daemon=True)
        self._thread.start()
        self._session: aiohttp.ClientSession = asyncio.run_coroutine_threadsafe(
            self._open_session(), loop
        ).result()
        self._owner = os.getpid()

    async def send(
        self,
        url: URL,
        body: bytes | None,
        *,
        inputs: int,
        limit: int,
        tokens: float,
        count: Count,
        goes_on: Callable[[], bool],
        isolating: bool = False,
    ) -> Reply | Failure:
        """The reply to a request about so many inputs, or why there is none after all retries.

        Each time it is sent it will take about so many tokens, and then `count` says how many it
        took; it is sent again while `goes_on` allows it.

        Only within `run`. What fails because of the request itself (500, a timeout) is only
        retried if it is about a single input. So is all but 429 while `isolating` inputs that fail:
        then the service is known to answer others.
        """
        patient, retries = inputs == 1, self._limits.retries
        if self._silent >= max(2 * self._limits.concurrency, 16):
            message = f"the last {self._silent} requests to {self._host} all failed"
            return Failure(NOT_SENT, message, message, alone=False)
        for attempt in itertools.count():
            if self.pace.matters:
                await self.pace.turn(tokens)
            sent = time.monotonic()
            try:
                outcome = await self._request(url, body, limit)
            except asyncio.CancelledError:
                count(Trouble(TIMEOUT, "the run ended before there was an answer"))
                raise
            self.pace.correct(count(outcome) - tokens)
            too_many = isinstance(outcome, Reply) and outcome.status == 429
            if too_many:
                self.pace.slow_down(sent)
            if isinstance(outcome, Reply) or not outcome.unreachable:
                self.given, self.requests_sent = self.given + inputs, self.requests_sent + 1
            if isinstance(outcome, Reply):
                self._reached = True
                if not outcome.retryable:
                    self._silent = self._silent + 1 if outcome.status in self._refusals else 0
                    self.pace.answered()
                    return outcome
            worth = _worth_retrying(outcome, patient=patient, isolating=isolating)
            most = max(retries, 8) if too_many and retries else retries
            may_retry = attempt < most and worth and goes_on()
            in_time = self._is_in_time(outcome.retry_after)
            if may_retry and in_time:
                await self.pace.wait(attempt, outcome.retry_after)
                continue
            # Of a list, those that get a 500 alone are the culprits, of which there may be many.
            is_500 = isinstance(outcome, Reply) and outcome.status == 500
            self._silent += patient and not (self._requests.many and is_500)
            times = f" ({attempt + 1} attempts)" if attempt else ""
            if not in_time and may_retry:
                times = " (it asks for more patience than the time limit allows)"
            if isinstance(outcome, Reply):
                return replace(outcome, times=times)
            if outcome.unreachable and not self._reached:
                raise SubjectError(f"{outcome.message}{times}")
            plain = f"{outcome.plain or outcome.message}{times}"
            return Failure(outcome.kind, f"{outcome.message}{times}", plain)
        raise AssertionError("the last attempt returns or raises")

    def _is_in_time(self, retry_after: str) -> bool:
        """Whether the time limit allows to wait for as long as a service asks."""
        asked = retry_after_seconds(retry_after) or 0.0
        return time.monotonic() + asked < self.deadline

    async def _request(self, url: URL, body: bytes | None, limit: int) -> Reply | Trouble:
        method = self._requests.method
        try:
            response = await self._session.request(method, url, data=body, allow_redirects=False)
            try:
                return await _read(response, limit)
            except BaseException:
                response.close()
                raise
        except (OSError, _aiohttp().ClientError) as error:  # TimeoutError is an OSError
            return self._trouble(error)

    def _trouble(self, error: Exception) -> Trouble:
        """What happened, in words without secrets."""
        library, host = _aiohttp(), self._host
        if isinstance(error, library.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "") or "it is not trusted"
            message = f"{host} is not who it says it is: its certificate was refused ({why})"
            return Trouble(TRANSPORT, message, unreachable=True, final=True)
        if isinstance(error, library.ConnectionTimeoutError):
            message = f"no connection to {host} within {count_of(self._connect_seconds, 'second')}"
            return Trouble(TRANSPORT, message, unreachable=True)
        if isinstance(error, TimeoutError):
            message = f"no answer within {count_of(self._limits.timeout_seconds, 'second')}"
            return Trouble(TIMEOUT, message)
        if isinstance(error, library.ClientConnectorError):
            why = _reason(error.os_error)
            return Trouble(TRANSPORT, f"can't connect to {host}: {why}", unreachable=True)
        why = self._requests.credentials.redact(_reason(error))
        plain = f"the connection to {host} broke"
        return Trouble(TRANSPORT, f"{plain}: {why}", plain=plain)

    async def _open_session(self) -> aiohttp.ClientSession:
        library, limits = _aiohttp(), self._limits
        connector = library.TCPConnector(
            limit=limits.concurrency,
            ssl=ssl.create_default_context() if self._requests.address.secure else True,
        )
        session: aiohttp.ClientSession = library.ClientSession(
            connector=connector,
            headers=self._requests.headers,
            cookie_jar=library.DummyCookieJar(),  # an execution must not depend on earlier ones
            timeout=library.ClientTimeout(
                total=limits.timeout_seconds, sock_connect=self._connect_seconds
            ),
        )
        return session


async def _work_together(work: Work, workers: int) -> None:
    """Call `work` so many times at once; the first exception ends all of them."""
    tasks = [asyncio.create_task(work()) for _ in range(workers)]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


def require_aiohttp() -> None:
    """Say how to install what the client needs, where it is missing."""
    try:
        _aiohttp()
        return
    except ImportError:
        problem = "web services and language models need aiohttp, which is not installed"
    remedy = "run: pip install 'themis-fairness[http]'"
    raise RequestError.one("needs-aiohttp", "subject.kind", problem, remedy)


@dataclass(frozen=True)
class Trouble:
    """Why one attempt brought no reply."""

    kind: str
    message: str
    unreachable: bool = False  # there was not even a connection
    final: bool = False  # trying again can't help
    retry_after: str = ""
    plain: str = ""  # the message without what the other side said, where it says anything


async def _read(response: aiohttp.ClientResponse, limit: int) -> Reply:
    """The reply, with no more of its body than the limit."""
    headers, status = response.headers, response.status
    body, whole = bytearray(), True
    async for part in response.content.iter_any():
        body += part
        if len(body) > limit:
            response.close()
            del body[limit:]
            whole = False
            break
    if status < 300:
        return Reply(status, bytes(body), whole)
    location, retry_after = headers.get("Location", ""), headers.get("Retry-After", "")
    return Reply(status, bytes(body), whole, location=location, retry_after=retry_after)


def _worth_retrying(outcome: Reply | Trouble, *, patient: bool, isolating: bool) -> bool:
    if isinstance(outcome, Reply):
        return patient or outcome.status == 429 or (outcome.status != 500 and not isolating)
    return not outcome.final and (patient or (outcome.kind != TIMEOUT and not isolating))


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _aiohttp() -> Any:
    """The library, loaded when it is first needed."""
    import aiohttp

    return aiohttp


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
        if self.interval > self._least and now > self._too_many + 1.0:
            # After a second in which all were answered a quarter less.
            faster = self.interval * 0.75**self.interval
            self.interval = max(faster, self._least, 0.001)

    def slow_down(self, sent: float) -> None:
        """A request that was sent at this time was one too many: no more than were answered.

        Those that were sent before that is felt say nothing new.
        """
        self._too_many = now = time.monotonic()
        if sent < self._slowed + 1.0:
            return
        self._slowed = now
        answered = sum(now - when <= 1.0 for when in self._good)  # in the last second
        least = max(1 / answered, 1.25 * self.interval) if answered else 0.0
        self.interval = min(least or max(2 * self.interval, 0.001), LONGEST_WAIT_SECONDS)
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
    """What Retry-After asks for, in seconds or as a date; None where it is missing or wrong.

    More than a minute is not granted.
    """
    text = text.strip()
    if text.isascii() and text.isdigit():
        return min(float(text), 60.0)
    try:
        moment = email.utils.parsedate_to_datetime(text)
    except (TypeError, ValueError):
        return None
    moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    seconds = (moment - datetime.now(UTC)).total_seconds()
    return min(max(seconds, 0.0), 60.0)
