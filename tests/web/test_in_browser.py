"""What Chromium makes of results: hostile names are inert, very large ones stay small pages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.browser import Browser, Page, opened
from tests.web.serving import Server, serving
from themis.config.reader import load_config

EVIL = "<script>alert(1)</script><img src=x onerror=alert(2)>"
LARGEST_PAGE, MOST_ELEMENTS = 400_000, 8_000  # whatever a result has
FILE = f"""\
version = 1
[subject]
kind = "python"
function = "decide:decide"
favourable = ['{EVIL}']
[inputs]
'{EVIL}' = {{ values = ['{EVIL}', "plain"], protected = true }}
age = {{ min = 0, max = 9 }}
[[accepted]]
against = ['{EVIL}']
reason = '{EVIL}'
until = 2099-12-31
[[checks]]
against = ['{EVIL}']
max_score = 0.1
"""
PROGRAM = f"""
EVIL = {EVIL!r}
def decide(person):
    return EVIL if person[EVIL] == EVIL or person["age"] > 6 else "no"
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    folder = tmp_path_factory.mktemp("evil")
    (folder / "themis.toml").write_text(FILE)
    (folder / "decide.py").write_text(PROGRAM)
    with serving(folder) as found:
        found.post("/confirm")
        yield found


@pytest.fixture(scope="module")
def browser(server: Server) -> Iterator[Browser]:
    with Browser() as started:
        started.open(server.entry).close()  # the cookie
        yield started


def measured(folder: Path) -> dict[str, Any]:
    """A result in which names, values, outputs and messages are hostile; with a search."""

    with themis.Audit.from_config(load_config(folder), cache=False) as audit:
        data: dict[str, Any] = audit.score([[EVIL], ["age"]]).to_dict()
        found = audit.search(0.1, decide_only=True).to_dict()
    return {**data, "search": found, "report": {"name": EVIL, "purpose": EVIL, "people": "people"}}


def test_a_script_in_a_name_a_value_or_an_output_is_inert_in_every_page(
    server: Server, browser: Browser
) -> None:
    place = server.open_result(measured(server.folder))
    name = place.rpartition("/")[2]
    key = server.get(f"{place}/pairs").text.partition('name="pair" value="')[2].partition('"')[0]
    server.post(f"{place}/exhibits", {"pair": key, "note": EVIL})
    pages = ["", "/pairs", "/combinations", f"/combinations?has={EVIL}", "/decide"]
    others = ["/", "/try", f"/try?result={name}&pair={key}", "/describe"]
    others += [f"/compare?before={name}&after={name}", f"/results/{EVIL}"]
    for address in [*(f"{place}{each}" for each in pages), *others]:
        with opened(browser, server.base + address) as page:
            assert page.messages == [] or "404" in page.messages[0], (address, page.messages)
            assert page.evaluate("document.querySelectorAll('script:not([src]), img').length") == 0
            assert all(each.startswith((server.base, "data:")) for each in page.requests)
    with opened(browser, f"{server.base}{place}") as page:
        assert EVIL in page.evaluate("document.body.textContent")


def is_small(page: Page) -> bool:
    size = page.evaluate("[document.documentElement.outerHTML.length, document.all.length]")
    return bool(size[0] < LARGEST_PAGE and size[1] < MOST_ELEMENTS)


def test_pages_of_very_large_results_are_small(server: Server, browser: Browser) -> None:
    data = large(2_000, 32)
    assert len(json.dumps(data)) > 1_500_000
    place = server.open_result(data)
    for address, shown, things in (
        ("", None, 0),
        ("/pairs", "1 to 100 of 2,000 pairs", 100),
        ("/pairs?page=20", "1,901 to 2,000 of 2,000 pairs", 100),
        ("/combinations", "1 to 100 of 5,488 combinations", 100),
    ):
        with opened(browser, f"{server.base}{place}{address}") as page:
            assert is_small(page), address
            assert shown is None or shown in page.evaluate("document.body.innerText")
            listed = "document.querySelectorAll('.many > .one, #list ~ table tbody tr').length"
            assert page.evaluate(listed) == things


def large(pairs: int, names: int) -> dict[str, Any]:
    """A result with this many pairs, and a search that looked at all sets of up to three."""

    def decide(person: dict[str, Any]) -> bool:
        return bool(person["c0"] == 1)

    inputs = {f"c{number}": themis.Values([0, 1], protected=True) for number in range(names)}
    with themis.Audit(decide, themis.Schema(inputs), seed=1) as audit:
        data: dict[str, Any] = audit.score([["c0"]]).to_dict()
        found = audit.search(0.9, max_size=1, decide_only=True).to_dict()
    score, below = data["scores"][0], found["sets"][-1]
    own = score["witnesses"]
    score["witnesses"] = (own * (pairs // len(own) + 1))[:pairs]
    sets = [each for size in (1, 2, 3) for each in combinations(inputs, size)]
    found["sets"] = [{**below, "against": list(each)} for each in sets]
    found |= {"sets_total": len(sets), "sets_tested": len(sets), "sets_pruned": 0, "max_size": 3}
    return {**data, "search": {**found, "minimal_sets": []}}
