"""Does the report hold up in a real browser? Nothing runs, nothing leaves, all is readable."""

from __future__ import annotations

import http.server
import itertools
import re
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import report_results as samples
from tests.browser import Browser, Page, opened
from themis.show.reports.annex import render_annex
from themis.show.reports.page import render_page

pytestmark = pytest.mark.slow

FITS = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
SHOWN = "(e => e !== null && e.checkVisibility() && e.getBoundingClientRect().height > 0)"
# The lowest contrast of any text to what is behind it, and that text. Colours are painted on a
# canvas, which turns every way of writing them into numbers.
CONTRAST = """
(() => {
  const pen = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = colour => {
    pen.clearRect(0, 0, 1, 1); pen.fillStyle = colour; pen.fillRect(0, 0, 1, 1);
    return [...pen.getImageData(0, 0, 1, 1).data];
  };
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map(v => v / 255)
      .map(v => v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = element => {
    for (let e = element; e; e = e.parentElement) {
      const colour = rgba(getComputedStyle(e).backgroundColor);
      if (colour[3] === 255) return colour;
    }
    return [255, 255, 255];
  };
  let least = [99, ""];
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const words = walker.currentNode.data.trim(), e = walker.currentNode.parentElement;
    if (!words || !e.checkVisibility() || e.closest("title")) continue;
    const style = getComputedStyle(e), drawn = e instanceof SVGElement;
    const [a, b] = [rgba(drawn ? style.fill : style.color), behind(e)].map(light);
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < least[0]) least = [ratio, words];
  }
  return least;
})()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with Browser() as started:
        yield started


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page and the annex of every sample."""
    place = tmp_path_factory.mktemp("reports")
    for name, make in samples.SAMPLES.items():
        (place / f"{name} page.html").write_text(render_page(make()), encoding="utf-8")
        (place / f"{name} annex.html").write_text(render_annex(make()), encoding="utf-8")
    return place


FILES = [f"{name} {kind}.html" for name in samples.SAMPLES for kind in ("page", "annex")]


@pytest.mark.parametrize("file", FILES)
@pytest.mark.some_slow(core=1, full=2)
def test_on_a_phone_nothing_is_logged_fetched_run_or_too_wide(
    file: str, browser: Browser, folder: Path
) -> None:
    with opened(browser, folder / file, width=360, height=700) as page:
        assert page.messages == []
        assert page.requests == [(folder / file).as_uri()]
        assert page.evaluate("window.pwned") is None
        assert page.evaluate("document.scripts.length + document.images.length") == 0
        assert page.evaluate(FITS), _too_wide(page)


def _too_wide(page: Page) -> Any:
    return page.evaluate(
        "[...document.querySelectorAll('body *')].filter(e => e.getBoundingClientRect().right > "
        "innerWidth + 1).slice(0, 5).map(e => e.outerHTML.slice(0, 200))"
    )


@pytest.mark.parametrize("file", ["everything page.html", "small search page.html",
                                  "check page.html", "everything annex.html",
                                  "audit page.html", "audit annex.html"])  # fmt: skip
@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
def test_all_text_stands_out_from_what_is_behind_it(
    file: str, dark: bool, browser: Browser, folder: Path
) -> None:
    with opened(browser, folder / file, dark=dark) as page:
        page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        ratio, words = page.evaluate(CONTRAST)
        assert 4.5 <= ratio < 99, words
        white = page.evaluate("getComputedStyle(document.body).backgroundColor")
        assert (white == "rgb(255, 255, 255)") is not dark


def test_hostile_names_are_text(browser: Browser, folder: Path) -> None:
    with opened(browser, folder / "hostile page.html") as page:
        text = page.evaluate("document.body.textContent")
        for each in samples.HOSTILE[:4]:
            assert each in text
        assert "\\u202e" in text
        assert page.evaluate("document.querySelectorAll('main script, main style').length") == 0


def test_the_policy_keeps_a_script_from_running(browser: Browser, tmp_path: Path) -> None:
    broken = render_page(samples.demo()).replace(
        "</main>", "<script>window.pwned = 1</script><p id='x' style='color:red'>x</p></main>"
    )
    (tmp_path / "broken.html").write_text(broken)
    with opened(browser, tmp_path / "broken.html") as page:
        assert page.evaluate("window.pwned") is None
        assert (
            page.evaluate("getComputedStyle(document.getElementById('x')).color")
            != "rgb(255, 0, 0)"
        )
        assert any("Content Security Policy" in each for each in page.messages)


class Server(http.server.ThreadingHTTPServer):
    """Serves one page and notes what it was asked for."""

    daemon_threads = True

    def __init__(self, text: str) -> None:
        self.text, self.asked = text.encode(), []  # type: tuple[bytes, list[str]]
        super().__init__(("127.0.0.1", 0), Handler)


class Handler(http.server.BaseHTTPRequestHandler):
    server: Server

    def do_GET(self) -> None:
        self.server.asked.append(self.path)
        self.send_response(200)
        self.send_header("Content-Type", "text/html")
        self.end_headers()
        self.wfile.write(self.server.text)

    def log_message(self, *_: Any) -> None:
        pass


def test_a_server_is_asked_for_the_page_and_for_nothing_else(browser: Browser) -> None:
    with Server(render_page(samples.hostile())) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        with opened(browser, f"http://127.0.0.1:{server.server_port}/report.html") as page:
            assert page.messages == []
        assert server.asked == ["/report.html"]
        server.shutdown()


@pytest.mark.parametrize(
    "name",
    ["demo", "small search", "everything", "outputs", "check", "audit", "apparent", "wide search"],
)
def test_before_anything_is_unfolded_a_report_is_short(
    browser: Browser, folder: Path, name: str
) -> None:
    with opened(browser, folder / f"{name} page.html", width=1200) as page:
        assert page.evaluate("document.documentElement.scrollHeight") < 4_800
        assert page.evaluate(
            "document.querySelector('.verdict').getBoundingClientRect().bottom < 600"
        )


@pytest.mark.parametrize(("name", "most"), [("demo", 4), ("wide search", 6), ("apparent", 8)])
def test_a_report_prints_on_a_handful_of_pages(
    browser: Browser, folder: Path, name: str, most: int
) -> None:
    with opened(browser, folder / f"{name} page.html") as page:
        printed = page.pdf()
    assert printed.startswith(b"%PDF")
    assert 2 <= len(re.findall(rb"/Type\s*/Page\b", printed)) <= most


def test_readers_that_hear_the_page_find_headings_tables_and_names(
    browser: Browser, folder: Path
) -> None:
    with opened(browser, folder / "everything page.html", width=390) as page:
        page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        nodes = page.call("Accessibility.getFullAXTree")["nodes"]
        roles: dict[str, list[str]] = {}
        for node in nodes:
            if not node.get("ignored"):
                name = node.get("name", {}).get("value", "")
                roles.setdefault(node["role"]["value"], []).append(name)
        assert all(roles["image"])
        assert "11.3 %, 6.3 – 16.3 %" in roles["image"]
        assert "Scores with their intervals" in roles["table"]
        assert len(roles["row"]) > 10
        assert all(each for each in roles["link"])
        levels = page.evaluate(
            "[...document.querySelectorAll('h1,h2,h3,h4')].map(e => +e.tagName[1])"
        )
        assert levels[0] == 1
        assert all(after <= before + 1 for before, after in itertools.pairwise(levels))


OVERLAPS = """
[...document.querySelectorAll('.chart tbody td.number, .pictures b')].filter(e => {
  const range = document.createRange(); range.selectNodeContents(e);
  const text = range.getBoundingClientRect(), cell = e.getBoundingClientRect();
  return e.checkVisibility() && text.right > cell.right + 1;
}).map(e => e.textContent)
"""


@pytest.mark.parametrize(("width", "media"), [(390, "screen"), (1100, "screen"), (688, "print")])
@pytest.mark.parametrize("name", ["demo page", "audit page", "apparent page", "audit annex"])
def test_no_number_runs_into_the_next_one(
    browser: Browser, folder: Path, name: str, width: int, media: str
) -> None:
    with opened(browser, folder / f"{name}.html", width=width, media=media) as page:
        page.evaluate("document.querySelectorAll('details').forEach(e => e.open = true)")
        assert page.evaluate(OVERLAPS) == []


# Words of up to twenty letters, outside of code, that stand on more than one line.
BROKEN = """
(() => {
  const broken = [], walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walker.nextNode()) {
    const node = walker.currentNode, e = node.parentElement;
    if (!e.checkVisibility() || e.closest("code, pre, svg, .unseen")) continue;
    for (const word of node.data.matchAll(/[A-Za-z]{2,20}/g)) {
      const range = document.createRange();
      range.setStart(node, word.index); range.setEnd(node, word.index + word[0].length);
      const tops = new Set([...range.getClientRects()].map(r => Math.round(r.top)));
      if (tops.size > 1) broken.push(word[0]);
    }
  }
  return broken;
})()
"""


@pytest.mark.parametrize("file", ["everything page.html", "audit page.html", "audit annex.html"])
def test_on_paper_no_word_is_broken_and_no_card_is_cut(
    file: str, browser: Browser, folder: Path
) -> None:
    with opened(browser, folder / file, width=688, media="print") as page:
        assert page.evaluate(BROKEN) == []
        cards = "[...document.querySelectorAll('.finding')].slice(1)"
        kept = f"{cards}.every(e => getComputedStyle(e).breakInside === 'avoid')"
        assert page.evaluate(kept)
