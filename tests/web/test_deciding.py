"""Limits and accepted findings are written into the file of the project, and nothing else of it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from html import unescape
from pathlib import Path
from typing import Any

import httpx
import pytest

from tests.web.serving import Server, example, serving

CHECKS = """
# Limits of policy 7
[[checks]]
against = ["sex"]
max_score = 0.05   # agreed in May
"""


def loan_result(folder: Path) -> Any:
    """A result of the loan example."""
    out = folder / "result.json"
    command = [sys.executable, "-m", "themis", "score", str(folder), "--no-cache", "-q"]
    subprocess.run([*command, "--error", "0.05", "-o", str(out)], check=True, capture_output=True)
    return json.loads(out.read_text())


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return loan_result(example(tmp_path_factory.mktemp("deciding")))


def page_of(server: Server, result: Any) -> str:
    with (server.folder / "themis.toml").open("a") as file:
        file.write(CHECKS)
    return f"{server.open_result(result)}/decide"


def options(page: str, name: str) -> dict[str, str]:
    """The places of what may be chosen."""
    own = re.findall(rf'<select name="{name}".*?</select>', page, re.DOTALL)[0]
    return {unescape(text): at for at, text in re.findall(r'value="(\d+)"[^>]*>([^<]*)<', own)}


def place(page: str, name: str, start: str) -> str:
    return next(at for text, at in options(page, name).items() if text.startswith(start))


def decide(server: Server, here: str, **fields: str) -> httpx.Response:
    """Send a form of the page as it is now."""
    mark = re.findall(r'name="mark" value="([^"]+)"', server.get(here).text)[0]
    return server.post(here, {"mark": mark, **fields})


def test_a_limit_and_an_acceptance_are_written_into_the_file(loan: Server, result: Any) -> None:
    file, here = loan.folder / "themis.toml", page_of(loan, result)
    before, page = file.read_text(), loan.get(here).text
    loan.post("/confirm")
    own = {name: place(page, "finding", name) for name in ("causal sex", "every set")}
    changed = decide(loan, here, finding=own["causal sex"], max_score="0.1").text
    assert file.read_text() == before.replace("0.05   # agreed", "0.1   # agreed")
    assert "<del>-max_score = 0.05   # agreed in May</del>" in changed
    assert "<ins>+max_score = 0.1   # agreed in May</ins>" in changed
    decide(loan, here, finding=own["every set"], max_score="0.9")
    fields = {"reason": "ticket <b>9</b>", "until": "2099-12-31"}
    race = place(page, "accepted", "causal race")
    decide(loan, here, accepted=race, up_to="", **fields)
    accepted = decide(loan, here, accepted=race, up_to="0.2", **fields).text  # instead of that
    assert "accepted until 2099-12-31: ticket &lt;b&gt;9" in accepted
    assert "limit: causal search at most 0.9" in accepted
    assert file.read_text().count("[[accepted]]") == 1
    assert file.read_text().count("[[checks]]") == 2
    assert loan.get("/try").status_code == 200  # it names the program that was confirmed


def test_what_the_file_may_not_say_is_refused_with_its_line(tmp_path: Path, result: Any) -> None:
    folder = example(tmp_path)
    with serving(folder) as server:
        here = page_of(server, result)
        before = (folder / "themis.toml").read_text()
        line = before.count("\n")
        sex = place(server.get(here).text, "finding", "causal sex")
        said = unescape(decide(server, here, finding=sex, max_score="2").text)
        assert f"themis.toml:{line}: checks[1].max_score: must be at most 1" in said
        said = unescape(decide(server, here, accepted="0", reason="", until="soon", up_to="").text)
        assert "accepted[1].reason: is empty" in said
        assert "accepted[1].until: must be a date, got 'soon'" in said
        stale = server.post(here, {"mark": "of another", "finding": "0", "max_score": "0.1"})
        assert (stale.status_code, "was changed after" in stale.text) == (409, True)
        assert decide(server, here, finding="99", max_score="0.1").status_code == 400
        assert (folder / "themis.toml").read_text() == before
    with serving(folder, "--read-only") as server:
        page = server.get(here).text
        assert "limit: causal sex at most 0.05" in page
        assert "<button" not in page
        assert server.post(here, {"finding": "0", "max_score": "0.1"}).status_code == 403
