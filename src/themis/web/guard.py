"""Who may ask, and what a page may do: hosts, origins, the cookie, sizes, and the headers."""

from __future__ import annotations

import hmac
import secrets
from dataclasses import dataclass, field
from http.cookies import CookieError, SimpleCookie

from starlette.datastructures import Headers, MutableHeaders
from starlette.exceptions import HTTPException
from starlette.responses import PlainTextResponse, RedirectResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LARGEST_UPLOAD = 200_000_000  # bytes of one file; a table of a million rows has half of that
LARGEST_FORM = 2_000_000
FORM = "application/x-www-form-urlencoded"
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
CLOSED = "This page belongs to somebody else's session. Open the address that themis ui printed.\n"


def _secret() -> str:
    return secrets.token_urlsafe(24)


@dataclass(frozen=True)
class Keys:
    """What one server knows that others don't: who holds these may ask."""

    port: int
    entry: str = field(default_factory=_secret)  # of the address that the terminal shows
    once: str = field(default_factory=_secret)  # of the one that a browser is started with
    session: str = field(default_factory=_secret)  # of the cookie
    form: str = field(default_factory=_secret)  # of whatever changes

    @property
    def cookie(self) -> str:
        """Its name: cookies don't tell ports apart, and there may be several servers."""
        return f"themis-{self.port}"

    @property
    def hosts(self) -> tuple[str, ...]:
        """By what names a browser may call this server."""
        return f"127.0.0.1:{self.port}", f"localhost:{self.port}"


class Guard:
    """Lets through what the browser of this user asks, and gives every answer its headers."""

    def __init__(self, app: ASGIApp, keys: Keys) -> None:
        self._app, self._keys = app, keys
        self._is_opened = False  # by the browser that was started: others may see its address

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        is_form = headers.get("content-type", "").startswith(FORM)
        largest = LARGEST_FORM if is_form else LARGEST_UPLOAD
        refused = self._refusal(scope, headers, largest)

        async def send_safely(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        app = self._app if refused is None else refused
        await app(scope, _bounded(receive, largest), send_safely)

    def _refusal(self, scope: Scope, headers: Headers, largest: int) -> ASGIApp | None:
        """What is answered instead; None where the request may pass."""
        if headers.get("host") not in self._keys.hosts:
            return PlainTextResponse("This server answers to 127.0.0.1 only.\n", 421)
        from_elsewhere = headers.get("sec-fetch-site") in ("same-site", "cross-site")
        if from_elsewhere and scope["path"] != "/":  # other ports are the same site
            return PlainTextResponse("The request comes from another page.\n", 403)
        changes = scope["method"] not in ("GET", "HEAD")
        if (changes or "origin" in headers) and not self._is_own(headers):
            return PlainTextResponse("The request comes from another page.\n", 403)
        if int(headers.get("content-length") or 0) > largest:
            return PlainTextResponse(f"{_too_large(largest)}\n", 413)
        query = scope["query_string"].decode("latin-1")
        if scope["path"] == "/" and query.startswith("token="):
            return self._enter(query.removeprefix("token="))
        if not _same(_cookie(headers, self._keys.cookie), self._keys.session):
            return PlainTextResponse(CLOSED, 403)
        return None

    def _is_own(self, headers: Headers) -> bool:
        """Whether a page of this server asks; without referrers browsers call its origin null."""
        origin = headers.get("origin", "null")
        if origin == "null":
            return headers.get("sec-fetch-site") == "same-origin"
        return origin == f"http://{headers['host']}"

    def _enter(self, token: str) -> ASGIApp:
        """The token leaves the address bar and becomes a cookie that no script can read."""
        is_first = not self._is_opened and _same(token, self._keys.once)
        if not is_first and not _same(token, self._keys.entry):
            return PlainTextResponse(CLOSED, 403)
        self._is_opened = self._is_opened or is_first
        answer = RedirectResponse("/", 303)
        answer.set_cookie(
            self._keys.cookie, self._keys.session, httponly=True, samesite="strict", path="/"
        )
        return answer


def _bounded(receive: Receive, largest: int) -> Receive:
    """The same, which refuses a request that sends more than it may, whatever it announced."""
    taken = 0

    async def bounded() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        if taken > largest:
            raise HTTPException(413, _too_large(largest))
        return message

    return bounded


def _too_large(largest: int) -> str:
    return f"At most {largest:,} bytes are taken."


def _cookie(headers: Headers, name: str) -> str:
    try:
        found = SimpleCookie(headers.get("cookie", "")).get(name)
    except CookieError:
        return ""
    return "" if found is None else found.value


def _same(given: str, kept: str) -> bool:
    return hmac.compare_digest(given.encode(), kept.encode())
