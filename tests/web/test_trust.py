"""A project's folder is not trusted: what of it runs, and when; what is shown of it, and kept."""

from __future__ import annotations

import re
from pathlib import Path

from tests.web.serving import Server, example, serving, until

LOUD = """\
import os, sys
def decide(person):
    print("error: of Ada, born 1815", person)
    print("error: of Ada, born 1815", person, file=sys.stderr, flush=True)
    {then}
"""
SCORE = {"command": "score", "error": "0.2"}


def followed(server: Server, path: str) -> str:
    """What an address leads to."""
    return server.client.get(path, follow_redirects=True).text


def test_a_file_of_the_folder_stands_in_for_no_module(tmp_path: Path) -> None:
    for name in ("numpy", "json", "csv", "themis"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w').close()")
    (tmp_path / "people.csv").write_text("sex,age,hired\n" + "f,30,yes\nm,40,no\n" * 20)
    with serving(tmp_path) as server:
        answer = server.post("/describe/draft", {"from": "people.csv", "target": "hired"})
        assert answer.status_code == 303, answer.text
        assert (tmp_path / "themis.toml").exists()
        again = server.post("/describe/draft", {"from": "people.csv", "target": "hired"})
        assert again.status_code == 400
        assert not (tmp_path / "ran").exists()


def test_what_changed_since_it_was_confirmed_is_not_run(tmp_path: Path) -> None:
    folder = example(tmp_path)
    file, module = folder / "themis.toml", folder / "loan.py"
    with serving(folder) as server:
        server.post("/confirm")
        asked = server.post("/trial")
        assert "each got a decision" in asked.text
        module.write_text(module.read_text() + "\n")
        assert server.post("/trial").headers["location"].startswith("/run")
        server.post("/confirm")
        run = server.post("/run", SCORE).headers["location"]
        file.write_text(file.read_text().replace("loan:decide", "evil:decide"))
        (folder / "evil.py").write_text("open('ran', 'w').close()\ndef decide(person): return 1")
        until(lambda: re.search("class=.chip|Measure again", server.get(run).text))
        until(lambda: "running" not in server.get("/").text)
        assert not (folder / "ran").exists()


def test_what_a_subject_prints_is_neither_shown_nor_kept(tmp_path: Path) -> None:
    folder = example(tmp_path)
    for then in ("return 1", "os._exit(1)"):
        (folder / "loan.py").write_text(LOUD.format(then=then))
        with serving(folder) as server:
            server.post("/confirm")
            assert "1815" not in server.post("/trial").text
            assert "1815" not in server.post("/forecast", SCORE).text
            run = server.post("/run", SCORE).headers["location"]
            until(lambda run=run: "Measure again" in followed(server, run))
            assert "1815" not in followed(server, run)
        kept = [place for place in (folder / ".themis").rglob("*") if place.is_file()]
        assert not [place for place in kept if b"1815" in place.read_bytes()]


def test_a_run_that_can_not_be_written_down_stops_no_other(tmp_path: Path) -> None:
    with serving(example(tmp_path)) as server:
        server.post("/confirm")
        runs = [
            server.post("/run", {**SCORE, **more}).headers["location"]
            for more in (
                {"seed": "1" + "0" * 30},
                {"seed": "1\0"},
                {"seed": "7", "expected": "9" * 99},
            )
        ]
        until(lambda: "/results/" in str(server.client.get(runs[2], follow_redirects=True).url))
        page = server.get("/").text
        assert "1" + "0" * 30 in page
        assert server.get("/compare").status_code == 200
    with serving(tmp_path / "loan") as server:
        assert server.get("/").status_code == 200


def test_another_port_of_this_machine_is_another_page(loan: Server) -> None:
    for site in ("same-site", "cross-site"):
        headers = {"Sec-Fetch-Site": site}
        assert loan.client.get("/try", headers=headers).status_code == 403
        assert loan.client.get("/", headers=headers).status_code == 200  # the address it was given
