"""The client: sends requests over kept connections, many at once, in a thread of its own."""

from __future__ import annotations

import os
import ssl
import weakref
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from themis.errors import Mistake, RequestError, SubjectError
from themis.subjects.decisions import TIMEOUT, TRANSPORT, Failure
from themis.subjects.http.client_loop_thread import LoopThread, Work
from themis.subjects.http.client_pacing import Pace
from themis.subjects.http.subject_http_answers import Reply

if TYPE_CHECKING:
    import aiohttp
    from yarl import URL

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
