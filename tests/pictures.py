"""The pictures of the documentation: `python -m tests.pictures` makes them of real runs."""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from tests import diagrams
from tests.browser import Browser, Page, opened
from tests.web.serving import Server, example, serving, until

DOCS = Path(__file__).parents[1] / "docs"
PICTURES = DOCS / "pictures"
SIZE = {"width": 1000, "height": 760}


def press(page: Page, label: str) -> None:
    """Press a button, and wait for the page that it leads to."""
    page.evaluate(
        "window.isOld = true; [...document.querySelectorAll('main button, main a')]"
        f".find(each => each.textContent.trim() === {json.dumps(label)}).click()"
    )
    until(lambda: page.evaluate("!window.isOld && document.readyState === 'complete'"))
    page.settle()


def go(page: Page, address: str) -> None:
    """Open another page in the same window."""
    page.evaluate(f"window.isOld = true; location.href = {json.dumps(address)}")
    until(lambda: page.evaluate("!window.isOld && document.readyState === 'complete'"))
    page.settle()


def measured(page: Page, server: Server) -> None:
    """Measure everything, as a user does."""
    go(page, f"{server.base}/run")
    press(page, "Yes, run this")
    press(page, "Start")
    until(lambda: page.evaluate("location.pathname").startswith("/results/"))
    page.settle()


def report(browser: Browser, folder: Path) -> None:
    """The beginning of the demo's report, light and dark."""
    written = folder / "demo.html"
    command = [sys.executable, "-m", "themis", "demo", "--quiet", "-o", str(written)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    for dark in (False, True):
        with opened(browser, written.as_uri(), **SIZE, dark=dark) as page:
            page.screenshot(named("report", dark=dark), whole=False)
            page.evaluate(diagrams.marks())
            page.screenshot(named("annotated", dark=dark), whole=False)


def drawings(browser: Browser, folder: Path) -> None:
    """Those of `tests.diagrams`, light and dark."""
    for drawing in diagrams.write(folder):
        for dark in (False, True):
            with opened(browser, drawing.as_uri(), width=860, height=10, dark=dark) as page:
                page.screenshot(named(drawing.stem, dark=dark))


def gallery(browser: Browser) -> None:
    """The beginnings of the gallery's reports."""
    for written in sorted((DOCS / "gallery").glob("*.html")):
        for dark in (False, True):
            with opened(browser, written.as_uri(), width=1000, height=560, dark=dark) as page:
                page.screenshot(named(f"gallery-{written.stem}", dark=dark), whole=False)


def both(page: Page, name: str) -> None:
    """The window, light and dark."""
    for scheme in ("dark", "light"):
        feature = {"name": "prefers-color-scheme", "value": scheme}
        page.call("Emulation.setEmulatedMedia", {"media": "", "features": [feature]})
        page.settle()
        page.screenshot(named(name, dark=scheme == "dark"), whole=False)


def named(name: str, *, dark: bool) -> Path:
    return PICTURES / f"{name}-{'dark' if dark else 'light'}.png"


def main() -> None:
    """Write all of them."""
    PICTURES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, Browser() as browser:
        report(browser, Path(folder))
        drawings(browser, Path(folder))
        gallery(browser)
    with (
        tempfile.TemporaryDirectory() as folder,
        serving(example(Path(folder))) as server,
        Browser() as browser,
        opened(browser, server.entry, **SIZE) as page,
    ):
        measured(page, server)
        both(page, "result")
        press(page, "Try the first")
        both(page, "what-if")
        go(page, f"{server.base}/describe?section=inputs&name=age")
        both(page, "describe")


if __name__ == "__main__":
    main()
