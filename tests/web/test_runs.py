"""Runs of the page: what is asked, stopped, lost and gone on with, whoever is killed meanwhile."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from html import unescape
from pathlib import Path

import pytest

from tests.external import (
    GATE,
    close_gate,
    is_alive,
    open_gate,
    processes_in,
    ran,
    write_sh_worker,
)
from tests.web.serving import Server, serving, until

SCORE = {"command": "score", "against": "race", "error": "0.2", "seed": "3"}
LEARNED = 60  # executions until the gate, enough for a first interval


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project whose program waits at its gate."""
    place = tmp_path / "project"
    place.mkdir()
    write_sh_worker(place, before=GATE, options="timeout_seconds = 600", run="probe = 0")
    close_gate(place, LEARNED)
    return place


@pytest.fixture
def server(folder: Path) -> Iterator[Server]:
    with serving(folder) as found:
        found.post("/confirm")
        yield found


def started(server: Server, **fields: str) -> str:
    """The address of a run that was asked for by the form."""
    answer = server.post("/run", {**SCORE, **fields})
    assert answer.status_code == 303, answer.text
    return str(answer.headers["location"])


def text(server: Server, path: str) -> str:
    """What a page says, in one line."""
    page = server.client.get(path, follow_redirects=True).text
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", page.partition("<body>")[2])).split())


def told(server: Server, run: str) -> str:
    """The events that a run has written so far."""
    place = server.folder / ".themis" / "ui" / run.rpartition("/")[2] / "events.jsonl"
    return place.read_text() if place.exists() else ""


def reaches_gate(server: Server, run: str) -> None:
    """Wait until something is known of the score, and the program waits."""
    until(lambda: re.search(r'"event": "Progress".*"samples": [1-9]', told(server, run)))
    until(lambda: len(ran(server.folder)) >= LEARNED)


def child_of(server: Server) -> int:
    """The process of the run that goes on."""
    children = Path(f"/proc/{server.process.pid}/task").glob("*/children")
    (child,) = [int(each) for place in children for each in place.read_text().split()]
    return child


def test_the_form_asks_for_what_its_command_takes_and_no_more(server: Server) -> None:
    run = started(server, threshold="0.3", sets="sex, income\n\n-x<b>", max_seconds="60")
    page = text(server, run)
    assert "Scores: race; sex, income; -x<b> themis score --against=race" in page
    assert "--against=-x<b> --error=0.2 --max-seconds=60 --seed=3 ·" in page
    assert "threshold" not in page
    failed = until(lambda: "Nothing was learned" in text(server, run) and text(server, run))
    assert "there is no characteristic '-x<b>'" in failed
    again = server.get(f"/run?from={run.rpartition('/')[2]}").text
    assert 'value="race" checked' in again
    assert "sex, income\n-x&lt;b&gt;</textarea>" in again
    assert "x<b>" not in again + server.get(run).text + server.get("/").text
    assert server.post("/run", {"command": "ui"}).status_code == 400


def test_a_forecast_says_what_a_run_will_cost_and_runs_nothing_more(server: Server) -> None:
    open_gate(server.folder)
    page = server.post("/forecast", SCORE).text
    assert re.search(r"All together about [\d,]+ executions", page)
    expected = re.search(r'name="expected" value="(\d+)"', page)
    assert expected is not None
    assert int(expected[1]) > 0
    assert 'value="race" checked' in page
    assert "must lie between 0 and 1" in server.post("/forecast", {**SCORE, "error": "7"}).text
    assert "Nothing was measured" in text(server, "/")


def test_what_is_confirmed_is_the_file_that_was_shown(folder: Path) -> None:
    file = folder / "themis.toml"
    file.write_text(
        file.read_text().replace(
            "favourable", 'env = { PYTHONPATH = "lib", KEY = "hush" }\nfavourable'
        )
    )
    with serving(folder) as server:
        page = text(server, "/run")
        assert f"sh {folder}/loan.sh Program: it is started" in page
        assert "PYTHONPATH=lib" in page  # it says what is loaded
        assert "KEY" in page
        assert "hush" not in page
        shown = server.mark()
        file.write_text(file.read_text().replace("loan.sh", "evil.sh"))
        assert server.post("/confirm", {"mark": shown}).status_code == 409
        assert server.post("/run", SCORE).headers["location"] == "/run"
        assert "evil.sh" in text(server, "/run")


def test_stopped_it_keeps_what_it_learned_and_goes_on_from_there(server: Server) -> None:
    run = started(server)
    reaches_gate(server, run)
    page = text(server, run)
    assert "running" in page
    assert "causal race · sampling" in page  # without any script
    server.post(f"{run}/stop")
    stopped = until(lambda: "Go on" in text(server, run) and text(server, run))
    assert "it was interrupted" in stopped
    assert "stopped" in stopped
    assert "stopped" in text(server, "/")
    before = ran(server.folder)
    open_gate(server.folder)
    again = server.post(f"{run}/again").headers["location"]
    done = until(lambda: "Measure again" in text(server, again) and text(server, again))
    assert "it was interrupted" not in done
    assert len(set(ran(server.folder))) > len(set(before))
    assert not {*before[:LEARNED]} & {*ran(server.folder)[len(before) :]}
    assert server.post(f"/results/{run.rpartition('/')[2]}/forget").status_code == 303
    assert text(server, "/").count("Forget") == 1


def test_runs_wait_in_a_queue_and_can_be_taken_out(server: Server) -> None:
    first, second, third = started(server), started(server), started(server)
    assert "starts after 1 other" in text(server, second)
    assert "starts after 2 others" in text(server, third)
    assert server.post(f"/results/{first.rpartition('/')[2]}/forget").status_code == 409
    server.post(f"{second}/stop")
    assert "Nothing was learned. stopped" in text(server, second)
    assert "starts after 1 other" in text(server, third)
    reaches_gate(server, first)
    (server.folder / "themis.toml").write_text((server.folder / "themis.toml").read_text() + "#")
    os.kill(child_of(server), signal.SIGKILL)
    assert until(lambda: "ended by signal 9" in text(server, first))
    assert until(lambda: "The file changed while the run waited" in text(server, third))


def test_a_server_that_is_killed_loses_nothing_and_another_takes_over(server: Server) -> None:
    run = started(server)
    waiting = started(server)
    reaches_gate(server, run)
    child = child_of(server)
    with serving(server.folder) as other:
        assert "running" in text(other, run)
        assert "another server" in text(other, run)
        other.post(f"{run}/stop")
        assert text(other, "/").count("Forget") == 0
        assert is_alive(child)
        server.process.kill()
        server.process.wait()
        page = until(lambda: "it was interrupted" in text(other, run) and text(other, run))
        assert "no longer" not in page
        assert "Go on" in page
        assert "Nothing was learned" in text(other, waiting)
    assert not is_alive(child)
    assert not processes_in(server.folder / "loan.sh")


def test_a_server_that_ends_ends_its_runs_which_keep_what_they_learned(server: Server) -> None:
    run = started(server)
    reaches_gate(server, run)
    child = child_of(server)
    server.end()
    assert not is_alive(child)
    with serving(server.folder) as other:
        assert "it was interrupted" in text(other, run)


def test_a_page_that_comes_late_hears_what_it_missed(server: Server) -> None:
    run = started(server)
    reaches_gate(server, run)
    for last in ("", "0"):
        headers = {"Last-Event-ID": last} if last else {}
        with server.client.stream("GET", f"{run}/events", headers=headers) as stream:
            lines = stream.iter_lines()
            heard = [next(each for each in lines if each.startswith("data:")) for _ in range(2)]
        assert any('"event": "Progress"' in each for each in heard)
    server.post(f"{run}/stop")
    hasty = started(server)
    server.post(f"{hasty}/stop")  # whether it began already or not
    until(lambda: "Nothing was learned" in text(server, hasty))


def test_only_so_many_streams_are_held_open(server: Server) -> None:
    run = started(server)

    def status() -> int:
        with server.client.stream("GET", f"{run}/events") as stream:
            return stream.status_code

    with ExitStack() as stack:
        held = [
            stack.enter_context(server.client.stream("GET", f"{run}/events")) for _ in range(32)
        ]
        lines = [each.iter_lines() for each in held]
        assert all(map(next, lines))
        assert status() == 429
        assert server.get(run).status_code == 200
    until(lambda: status() == 200)


PEOPLE = "name,race,income\n" + "".join(
    f"Person-{n:04},{('green', 'purple')[n % 3 == 0]},{n % 90}\n" for n in range(400)
)
FILE = """\
version = 1
[subject]
kind = "python"
function = "decide:decide"
favourable = [1]
max_failures = 0.5
[inputs]
name = { role = "context" }
race = { values = ["green", "purple"], protected = true }
income = { min = 0, max = 99 }
[profile]
data = "people.csv"
"""
PROGRAM = """\
def decide(person):
    print("decides on", person["name"])
    if person["income"] == 7:
        raise ValueError("no decision on " + person["name"])
    return int(person["income"] >= (30 if person["race"] == "green" else 60))
"""


@pytest.mark.parametrize("command", ["audit", "apparent"])
def test_without_rows_no_row_is_kept(tmp_path: Path, command: str) -> None:
    """Nor what the program prints of them, nor what it says where it fails."""
    for name, each in {"themis.toml": FILE, "decide.py": PROGRAM, "people.csv": PEOPLE}.items():
        (tmp_path / name).write_text(each)
    with serving(tmp_path) as server:
        server.post("/confirm")
        run = started(server, command=command, error="0.2")
        until(lambda: "Measure again" in text(server, run))
        assert "/results/" in str(server.client.get(run, follow_redirects=True).url)
    kept = [each for each in (tmp_path / ".themis").rglob("*") if each.is_file()]
    assert any(each.name == "result.json" for each in kept)
    assert not [each for each in kept if b"Person-0" in each.read_bytes()]
