"""From a file to its annex in a real browser, as docs/the-page.md tells it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.browser import Browser, opened
from tests.pictures import measured, press
from tests.web.serving import example, serving


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
