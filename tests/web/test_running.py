"""The page in a real browser: a run is watched, a form is sent once, a file becomes an annex."""

from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

import pytest

from tests.browser import Browser, Page, opened
from tests.external import GATE, close_gate, open_gate, ran, write_sh_worker
from tests.pictures import measured, press
from tests.web.serving import Server, example, serving, until

SHIFTS = """new Promise(done => new PerformanceObserver(list => done(list.getEntries()
.filter(each => !each.hadRecentInput).reduce((sum, each) => sum + each.value, 0)))
.observe({type: 'layout-shift', buffered: true}) || setTimeout(done, 300, 0))"""
LEARNED = 60


def waits_for(page: Page, expression: str) -> None:
    """Look at the page until an expression of JavaScript is true; pages between two have none."""

    def holds() -> bool:
        page.settle()
        with suppress(AssertionError):
            return bool(page.evaluate(f"document.readyState === 'complete' && !!({expression})"))
        return False

    until(holds)


def text(page: Page, selector: str) -> str:
    return str(page.evaluate(f"document.querySelector('{selector}')?.textContent ?? ''"))


def is_watched(page: Page) -> None:
    """Whether the page shows the run at its gate: the numbers, and an interval that is known."""
    waits_for(page, "+(document.querySelector('#executions')?.textContent) > 0")
    waits_for(page, "document.querySelector('.bar:not(.unknown) .ends')")
    assert text(page, ".bar .name") == "causal · race"
    assert text(page, ".state .chip") == "running"
    assert float(page.evaluate("document.querySelector('.bar rect').getAttribute('width')")) < 100


@pytest.mark.slow
def test_a_run_is_asked_for_watched_reloaded_stopped_and_gone_on_with(tmp_path: Path) -> None:
    write_sh_worker(tmp_path, before=GATE, options="timeout_seconds = 600", run="probe = 0")
    close_gate(tmp_path, LEARNED)
    with serving(tmp_path) as server, Browser() as browser:
        browser.open(server.entry).close()
        with opened(browser, f"{server.base}/run", width=360) as page:
            page.click("main button")  # confirmed
            waits_for(page, "document.querySelector('#command-score')")
            page.click("#command-score")
            assert not page.evaluate("document.querySelector('#threshold').offsetParent")
            page.click("[name=against][value=race]")
            page.evaluate("document.querySelector('details').open = true")
            page.evaluate("document.querySelector('#error').value = '0.05'")
            page.click(".buttons button:last-child")
            watch_and_stop(browser, page, server)
            open_gate(tmp_path)
            before = len(ran(tmp_path))
            page.click(".afterwards button")
            waits_for(page, "document.querySelector('.afterwards:not(:has(.chip))')")
            assert page.evaluate("location.pathname").startswith("/results/")
            assert len(ran(tmp_path)) > before
            assert page.messages == []


def watch_and_stop(browser: Browser, page: Page, server: Server) -> None:
    """Two tabs on one run, one of them loaded anew, show the same until it is stopped."""
    is_watched(page)
    run = page.evaluate("location.href")
    with opened(browser, run) as other:
        is_watched(other)
        page.call("Page.bringToFront")
        page.call("Page.reload")
        is_watched(page)
        assert page.evaluate(SHIFTS) < 0.02
        assert page.evaluate("document.documentElement.scrollWidth") <= 360
        page.click("main form button")
        waits_for(page, "document.querySelector('.afterwards button')")
        assert text(page, ".afterwards .chip") == "stopped"
        other.call("Page.bringToFront")
        waits_for(other, "location.pathname.startsWith('/results/')")
        assert other.messages == []
    page.call("Page.bringToFront")
    assert text(page, ".afterwards button") == "Go on"


def test_a_form_says_that_it_is_worked_on_and_is_sent_once(loan: Server) -> None:
    loan.post("/confirm")
    with Browser() as browser, opened(browser, loan.entry) as page:
        page.evaluate(f"location.href = '{loan.base}/run'")
        until(lambda: page.evaluate("!!document.querySelector('[formaction=\"/forecast\"]')"))
        page.evaluate(
            "window.isOld = true; for (const _ of [1, 2])"
            " document.querySelector('[formaction=\"/forecast\"]').click()"
        )
        said = "document.querySelector('[aria-busy]')?.textContent ?? !window.isOld"
        assert until(lambda: page.evaluate(said)) in ("Working …", True)  # True: it was quicker
        until(lambda: page.evaluate("!!document.querySelector('#costs')"))
        assert sum(each.endswith("/forecast") for each in page.requests) == 1


@pytest.mark.slow
def test_everything_is_measured_read_tried_and_exported(tmp_path: Path) -> None:
    with (
        serving(example(tmp_path)) as server,
        Browser() as browser,
        opened(browser, server.entry, width=360) as page,
    ):
        measured(page, server)
        result = page.evaluate("location.pathname")
        shown = page.evaluate("document.body.innerText")
        assert "The decision changes with race" in shown
        exports = re.findall(rf'href="({result}/export/[^"]+)"', server.get(result).text)
        for each in exports:
            answer = server.get(each)
            assert answer.status_code == 200, each
            assert answer.headers["content-disposition"].startswith("attachment"), each
        annex = next(each for each in exports if each.endswith("annex"))
        assert "Signature" in server.get(annex).text
        press(page, "Try the first")
        assert "single changes were run" in page.evaluate("document.body.innerText")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert page.messages == []
