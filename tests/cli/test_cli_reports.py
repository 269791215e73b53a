"""Do `diff` and `replay` write what they found as a page and as Markdown?"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.projects import BIASED, FAIR, Project, run
from tests.show.test_report_page import Document


def measured(project: Project, body: str, name: str) -> None:
    project(body)
    done = run("score", "--against", "race", "--measure", "causal", "-q", "-o", name)
    assert done.exit_code == 0


@pytest.fixture
def results(project: Project) -> None:
    measured(project, FAIR, "before.json")
    measured(project, BIASED, "after.json")


def shown(*arguments: str, code: int) -> Any:
    for name in ("out.html", "out.md"):
        assert run(*arguments, "--report", name, "-q").exit_code == code
    page = Document(Path("out.html").read_text())
    return page.text, Path("out.md").read_text()


@pytest.mark.usefixtures("results")
def test_what_changed_and_what_is_replayed_are_pages_and_markdown() -> None:
    page, markdown = shown("diff", "before.json", "after.json", code=1)
    for text in (page, markdown):
        assert "A difference has grown: 1 score has risen" in text
        assert "causal race" in text
        assert re.search(r"is false with a chance of at most \d\S*\s%", text)
    assert "| causal race | Risen" in markdown
    assert ":decide" in page  # what was tested
    for text in shown("replay", "after.json", code=1):
        assert re.search(r"tests differ: \d+ still", text)
        assert re.search("1 for race (green|purple)", text, re.IGNORECASE)


@pytest.mark.usefixtures("results")
def test_a_report_never_replaces_what_is_read() -> None:
    done = run("diff", "before.json", "after.json", "--report", "after.json")
    assert done.exit_code == 2
    assert "ends neither with .html nor with .md" in done.stderr
    Path("after.json").rename("after.html")
    done = run("diff", "before.json", "after.html", "--report", "after.html")
    assert "is the later result, which would be lost" in done.stderr


@pytest.mark.usefixtures("results")
def test_reports_on_a_plain_stdout_lose_no_sign() -> None:
    command = [sys.executable, "-m", "themis", "report", "after.json", "--format", "html"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run([*command, "-o", "-"], capture_output=True, env=environment, timeout=60)
    assert done.returncode == 0, done.stderr
    assert run("report", "after.json", "-o", "out.html").exit_code == 0
    assert done.stdout.decode() == Path("out.html").read_text()
