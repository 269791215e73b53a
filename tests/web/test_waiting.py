"""Forms that take a while, in a real browser: they say so, and are sent once."""

from __future__ import annotations

from tests.browser import Browser, opened
from tests.web.serving import Server, until


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
