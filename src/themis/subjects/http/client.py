"""The client: sends requests over kept connections, many at once, in a thread of its own.

Pacing: when the next request may be sent, and how long to wait before one is sent again.

An event loop in a thread of its own: how synchronous code runs many requests at once.
"""

from __future__ import annotations

import asyncio
import contextlib
import email.utils
import http
import os
import random
import ssl
import threading
import time
import weakref
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, TypeAlias

from themis.errors import Mistake, RequestError, SubjectError
from themis.subjects.decisions import TIMEOUT, TRANSPORT, Failure

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

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


RETRYABLE = frozenset({429, 500, 502, 503, 504})
REDIRECTS = frozenset({301, 302, 303, 307, 308})
REDIRECT_LIMIT = 5
CONNECT_SHARE = 0.9  # of the timeout: a connection that is not made by then never will be


@dataclass(frozen=True)
class Limits:
    """What a client may do at once, and how patient it is."""

    concurrency: int
    rate_per_second: float | None
    retries: int
    timeout_seconds: float
    follow_redirects: bool


@dataclass(frozen=True)
class Target:
    """Where requests go; its representation holds no secrets."""

    method: str
    host: str
    secure: bool


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
    def headline(self) -> str:
        """The status in words."""
        try:
            return f"HTTP {self.status} {http.HTTPStatus(self.status).phrase}"
        except ValueError:
            return f"HTTP {self.status}"


class Client:
    """Sends requests to one service. Safe to fork and to forget: threads and sockets are its own.

    `redact` cleans the messages of the library, which may repeat addresses.
    """

    def __init__(
        self,
        target: Target,
        headers: Mapping[str, str],
        limits: Limits,
        redact: Callable[[str], str],
    ) -> None:
        require_aiohttp()
        self._target, self._limits = target, limits
        self._headers, self._redact = dict(headers), redact
        self._pace = Pace(limits.rate_per_second)
        self._reached = False
        self._silent = 0  # requests in a row that came to nothing
        self._thread: LoopThread | None = None

    def run(self, work: Work, count: int) -> None:
        """Call `work(0)` to `work(count - 1)` in the client's thread, as many at once as allowed.

        The first exception ends all; so does an interrupt of the calling thread.
        """
        if self._thread is None or self._thread.owner != os.getpid():
            self._thread = LoopThread(self._open_session)
            self._finalizer = weakref.finalize(self, self._thread.close)
        self._silent = 0
        self._thread.run(work, count, workers=min(self._limits.concurrency, count))

    def close(self) -> None:
        """Close the connections; a later request opens new ones."""
        if self._thread is not None:
            self._finalizer()
            self._thread = None

    async def send(
        self, url: URL, body: bytes | None, *, limit: int, patient: bool = True
    ) -> Reply | Failure:
        """The reply to a request, or why there is none after all retries; only within `run`.

        Without patience what fails because of the request itself (500, a timeout) is not retried.
        """
        if self._silent >= max(2 * self._limits.concurrency, 16):
            host, count = self._target.host, self._silent
            return Failure(TRANSPORT, f"not sent: the last {count} requests to {host} all failed")
        for attempt in range(self._limits.retries + 1):
            if self._pace.matters:
                await self._pace.turn()
            outcome = await self._request(url, body, limit)
            if isinstance(outcome, Reply) and outcome.status in REDIRECTS:
                outcome = await self._follow(url, outcome, body, limit)
            if isinstance(outcome, Reply):
                self._reached = True
                if outcome.status not in RETRYABLE:
                    self._silent = 0
                    return outcome
            if attempt < self._limits.retries and _worth_retrying(outcome, patient=patient):
                await self._pace.wait(attempt, outcome.retry_after)
                continue
            self._silent += patient
            times = f" ({attempt + 1} attempts)" if attempt else ""
            if isinstance(outcome, Reply):
                return replace(outcome, times=times)
            if outcome.unreachable and not self._reached:
                raise SubjectError(f"{outcome.message}{times}")
            return Failure(outcome.kind, f"{outcome.message}{times}")
        raise AssertionError("the last attempt returns or raises")

    async def _follow(
        self, url: URL, reply: Reply, body: bytes | None, limit: int
    ) -> Reply | _Trouble:
        """Where redirects lead, as far as they are followed."""
        for _ in range(REDIRECT_LIMIT):
            following = _following(url, reply.location) if self._limits.follow_redirects else None
            if following is None or (reply.status < 307 and self._target.method != "GET"):
                return reply
            url = following
            outcome = await self._request(url, body, limit)
            if isinstance(outcome, _Trouble) or outcome.status not in REDIRECTS:
                return outcome
            reply = outcome
        return reply

    async def _request(self, url: URL, body: bytes | None, limit: int) -> Reply | _Trouble:
        assert self._thread is not None
        session, method = self._thread.session, self._target.method
        try:
            response = await session.request(method, url, data=body, allow_redirects=False)
            try:
                return await _read(response, limit)
            except BaseException:
                response.close()
                raise
        except (OSError, _aiohttp().ClientError) as error:  # TimeoutError is an OSError
            return self._trouble(error)

    def _trouble(self, error: Exception) -> _Trouble:
        """What happened, in words without secrets."""
        library, host = _aiohttp(), self._target.host
        if isinstance(error, library.ClientConnectorCertificateError):
            why = getattr(error.certificate_error, "verify_message", "") or "it is not trusted"
            message = f"{host} is not who it says it is: its certificate was refused ({why})"
            return _Trouble(TRANSPORT, message, unreachable=True, final=True)
        if isinstance(error, library.ConnectionTimeoutError):
            seconds = CONNECT_SHARE * self._limits.timeout_seconds
            message = f"no connection to {host} within {seconds:g} seconds"
            return _Trouble(TRANSPORT, message, unreachable=True)
        if isinstance(error, TimeoutError):
            message = f"no answer within {self._limits.timeout_seconds:g} seconds"
            return _Trouble(TIMEOUT, message)
        if isinstance(error, library.ClientConnectorError):
            why = _reason(error.os_error)
            return _Trouble(TRANSPORT, f"can't connect to {host}: {why}", unreachable=True)
        why = self._redact(_reason(error))
        return _Trouble(TRANSPORT, f"the connection to {host} broke: {why}")

    async def _open_session(self) -> aiohttp.ClientSession:
        library, limits = _aiohttp(), self._limits
        connector = library.TCPConnector(
            limit=limits.concurrency,
            ssl=ssl.create_default_context() if self._target.secure else True,
        )
        session: aiohttp.ClientSession = library.ClientSession(
            connector=connector,
            headers=self._headers,
            cookie_jar=library.DummyCookieJar(),  # an execution must not depend on earlier ones
            timeout=library.ClientTimeout(
                total=limits.timeout_seconds,
                sock_connect=CONNECT_SHARE * limits.timeout_seconds,
            ),
        )
        return session


def require_aiohttp() -> None:
    """Say how to install what the client needs, where it is missing."""
    try:
        _aiohttp()
        return
    except ImportError:
        problem = "a subject of kind 'http' needs aiohttp, which is not installed"
    remedy = "run: pip install 'themis-fairness[http]'"
    raise RequestError([Mistake("needs-aiohttp", "subject.kind", problem, remedy)])


@dataclass(frozen=True)
class _Trouble:
    """Why one attempt brought no reply."""

    kind: str
    message: str
    unreachable: bool = False  # there was not even a connection
    final: bool = False  # trying again can't help
    retry_after: str = ""


async def _read(response: aiohttp.ClientResponse, limit: int) -> Reply:
    """The reply, with no more of its body than the limit."""
    headers, status = response.headers, response.status
    length = headers.get("Content-Length", "")
    if length.isdecimal() and int(length) <= limit and "Content-Encoding" not in headers:
        body, whole = await response.read(), True
    else:
        body, whole = await _read_bounded(response, limit)
    if status < 300:
        return Reply(status, body, whole)
    location, retry_after = headers.get("Location", ""), headers.get("Retry-After", "")
    return Reply(status, body, whole, location=location, retry_after=retry_after)


async def _read_bounded(response: aiohttp.ClientResponse, limit: int) -> tuple[bytes, bool]:
    """A body of unknown length up to the limit, and whether that is all of it."""
    body = bytearray()
    async for part in response.content.iter_any():
        body += part
        if len(body) > limit:
            response.close()
            return bytes(body[:limit]), False
    return bytes(body), True


def _worth_retrying(outcome: Reply | _Trouble, *, patient: bool) -> bool:
    if isinstance(outcome, Reply):
        return patient or outcome.status != 500
    return not outcome.final and (patient or outcome.kind != TIMEOUT)


def _following(url: URL, location: str) -> URL | None:
    """Where a redirect leads, if it stays with the same service: others must see no secrets."""
    try:
        following = url.join(type(url)(location, encoded=True))
        return following if location and following.origin() == url.origin() else None
    except ValueError:
        return None


def _reason(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


def _aiohttp() -> Any:
    """The library, loaded when it is first needed."""
    import aiohttp

    return aiohttp
