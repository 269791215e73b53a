"""A real Chromium for tests: opens a page and tells what it showed, logged and asked for.

It is driven by the DevTools protocol over a pipe, so that no further package is needed:

    with Browser() as browser:
        page = browser.open("file:///…/report.html", width=390)
        page.evaluate("document.title"), page.messages, page.requests
"""

from __future__ import annotations

import base64
import fcntl
import itertools
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest

NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
SECONDS = 30.0  # that an answer may take on a busy machine
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-extensions",
    "--hide-scrollbars",
    "--no-first-run",
    "--remote-debugging-pipe",
)
QUIET = 0.15  # seconds without news after which a page is taken to have settled


class Browser:
    """A Chromium of its own, with an empty profile; a context manager.

    Where none is installed, the test that wants one is skipped.
    """

    def __init__(self) -> None:
        program = next(filter(None, map(shutil.which, NAMES)), None)
        if program is None:  # .ci/run makes sure that there is one
            pytest.skip("no Chromium is installed: apt-get install chromium")
        self._folder = tempfile.TemporaryDirectory(prefix="themis-browser-")
        ours_in, theirs_out = os.pipe()
        theirs_in, ours_out = os.pipe()
        self._in, self._out = ours_in, ours_out
        given = [_high(theirs_in), _high(theirs_out)]
        # The protocol wants the descriptors 3 and 4; a shell puts them there.
        line = f'exec "$0" "$@" 3<&{given[0]} 4>&{given[1]} {given[0]}<&- {given[1]}>&-'
        self._process = subprocess.Popen(
            ["bash", "-c", line, program, *FLAGS, f"--user-data-dir={self._folder.name}"],
            pass_fds=given,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for descriptor in (theirs_in, theirs_out, *given):
            os.close(descriptor)
        self._numbers = itertools.count(1)
        self._rest = b""
        self._pages: dict[str, Page] = {}

    def __enter__(self) -> Browser:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the browser and remove its profile."""
        for descriptor in (self._in, self._out):
            os.close(descriptor)
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self._folder.name, ignore_errors=True)
        self._folder.cleanup()

    def open(
        self,
        address: str | Path,
        *,
        width: int = 1100,
        height: int = 900,
        dark: bool = False,
        media: str = "",
    ) -> Page:
        """A page that has loaded, in a window of this size."""
        url = address.as_uri() if isinstance(address, Path) else address
        target = self.call("Target.createTarget", {"url": "about:blank"})["targetId"]
        attached = self.call("Target.attachToTarget", {"targetId": target, "flatten": True})
        page = Page(self, attached["sessionId"], target)
        self._pages[page.session] = page
        for domain in ("Page", "Runtime", "Log", "Network"):
            page.call(f"{domain}.enable")
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        page.call("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", {"media": media, "features": [scheme]})
        page.call("Page.navigate", {"url": url})
        self.listen(lambda: page.loaded)
        page.settle()
        return page

    def call(self, method: str, parameters: Any = None, session: str | None = None) -> Any:
        """The answer to a command of the protocol."""
        number = next(self._numbers)
        message = {"id": number, "method": method, "params": parameters or {}}
        if session is not None:
            message["sessionId"] = session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        for answer in self._messages(time.monotonic() + SECONDS):
            if answer.get("id") == number:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._tell(answer)
        raise TimeoutError(f"{method} was not answered within {SECONDS:.0f} s")

    def listen(self, done: Any, seconds: float = SECONDS) -> bool:
        """Take in what the pages tell until `done`; whether that came in time."""
        if done():
            return True
        for message in self._messages(time.monotonic() + seconds):
            self._tell(message)
            if done():
                return True
        return False

    def _tell(self, message: Any) -> None:
        page = self._pages.get(message.get("sessionId", ""))
        if page is not None and "method" in message:
            page.hear(message["method"], message["params"])

    def _messages(self, until: float) -> Iterator[Any]:
        """What comes in before this time."""
        while True:
            while b"\0" in self._rest:
                first, _, self._rest = self._rest.partition(b"\0")
                yield json.loads(first)
            left = until - time.monotonic()
            if left <= 0 or not select.select([self._in], [], [], left)[0]:
                return
            read = os.read(self._in, 1 << 20)
            assert read, f"the browser has ended with {self._process.poll()}"
            self._rest += read


class Page:
    """One page: what it logged and asked for, and ways to look at it."""

    def __init__(self, browser: Browser, session: str, target: str) -> None:
        self.browser, self.session, self.target = browser, session, target
        self.messages: list[str] = []  # console, exceptions, violations of the policy, dialogs
        self.requests: list[str] = []
        self.loaded = False

    def hear(self, method: str, told: Any) -> None:
        """Note an event of the protocol."""
        if method == "Page.loadEventFired":
            self.loaded = True
        elif method == "Network.requestWillBeSent":
            self.requests.append(told["request"]["url"])
        elif method == "Runtime.consoleAPICalled":
            values = [str(each.get("value", each)) for each in told["args"]]
            self.messages.append(f"console.{told['type']}: {' '.join(values)}")
        elif method == "Runtime.exceptionThrown":
            self.messages.append(f"exception: {told['exceptionDetails']}")
        elif method == "Log.entryAdded":
            self.messages.append(f"{told['entry']['level']}: {told['entry']['text']}")
        elif method == "Page.javascriptDialogOpening":
            self.messages.append(f"dialog: {told['message']}")

    def call(self, method: str, parameters: Any = None) -> Any:
        """The answer to a command of the protocol, for this page."""
        return self.browser.call(method, parameters, self.session)

    def settle(self) -> None:
        """Wait until the page has nothing more to tell."""
        while self.browser.listen(_once(), QUIET):
            pass

    def evaluate(self, expression: str) -> Any:
        """The value of an expression of JavaScript within the page."""
        asked = {"expression": expression, "returnByValue": True, "awaitPromise": True}
        answer = self.call("Runtime.evaluate", asked)
        assert "exceptionDetails" not in answer, answer["exceptionDetails"]
        return answer["result"].get("value")

    def click(self, selector: str) -> None:
        """Click in the middle of the first element that matches, as a mouse does."""
        place = self.evaluate(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', behavior: 'instant'});"
            "const r = e.getBoundingClientRect();"
            "return [r.left + r.width / 2, r.top + r.height / 2]; })()"
        )
        for kind in ("mousePressed", "mouseReleased"):
            event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
            self.call("Input.dispatchMouseEvent", event)
        self.settle()

    def screenshot(self, path: Path, *, whole: bool = True) -> None:
        """The page as a PNG, from top to bottom unless only the window is wanted."""
        shot = self.call(
            "Page.captureScreenshot", {"captureBeyondViewport": whole, **self._clip(whole)}
        )
        path.write_bytes(base64.b64decode(shot["data"]))

    def _clip(self, whole: bool) -> dict[str, Any]:
        if not whole:
            return {}
        size = self.call("Page.getLayoutMetrics")["cssContentSize"]
        return {
            "clip": {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        }

    def pdf(self) -> bytes:
        """The page as it is printed on A4."""
        paper = {"paperWidth": 8.27, "paperHeight": 11.69, "printBackground": True,
                 "preferCSSPageSize": True}  # fmt: skip
        return base64.b64decode(self.call("Page.printToPDF", paper)["data"])

    def close(self) -> None:
        """Close it."""
        self.browser.call("Target.closeTarget", {"targetId": self.target})


@contextmanager
def opened(browser: Browser, address: str | Path, **options: Any) -> Iterator[Page]:
    """A page that is closed at the end."""
    page = browser.open(address, **options)
    try:
        yield page
    finally:
        page.close()


def _once() -> Any:
    """A condition that is met by the second look: after one message."""
    looks = itertools.count()
    return lambda: next(looks) > 0


def _high(descriptor: int) -> int:
    """A copy of a descriptor that is out of the way of 3 and 4."""
    return fcntl.fcntl(descriptor, fcntl.F_DUPFD, 10)
