"""Do the lines of `--events` tell what a terminal shows, and only ends that hold?"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.projects import Project, run

SLOW = "time.sleep(0.001)\nreturn 1 if person['race'] == 'green' or person['income'] > 60 else 0"


def lines(path: Path, kind: str | None = None) -> list[dict[str, Any]]:
    found = [json.loads(line) for line in path.read_text().splitlines()]
    return [each for each in found if kind in (None, each["event"])]


def test_ends_of_a_run_hold_the_score_at_every_time(project: Project, tmp_path: Path) -> None:
    project(SLOW)
    done = run("score", "--against", "race", "--error", "0.03", "--events", "e", "-o", "r.json")
    assert done.exit_code == 0
    told = lines(tmp_path / "e", "Progress")
    scores = {each["measure"]: each["score"] for each in json.loads(
        (tmp_path / "r.json").read_text())["scores"]}  # fmt: skip
    assert {each["measure"] for each in told} == {"causal", "group"}
    assert all(each["low"] <= scores[each["measure"]] <= each["high"] for each in told)
    assert all(each["against"] == ["race"] for each in told)
    assert any("sampling" in each["line"] for each in told)


def test_the_rule_of_the_paper_tells_no_ends_and_failures_are_told_as_they_come(
    project: Project, tmp_path: Path
) -> None:
    """The ends of the paper's rule hold for one number of tests alone."""
    body = f"if person['income'] == 7: raise ValueError('seven')\n{SLOW}"
    project(body, subject="max_failures = 0.5")
    run("score", "--against", "race", "--stopping", "paper", "--error", "0.1", "--events", "e")
    assert {(each["low"], each["high"]) for each in lines(tmp_path / "e", "Progress")} == {(0, 1)}
    told = [each["failures"] for each in lines(tmp_path / "e", "Activity")]
    assert any(sum(each.values()) > 0 for each in told)


def test_a_search_tells_how_many_sets_are_decided(project: Project, tmp_path: Path) -> None:
    project()
    run("search", "--threshold", "0.1", "--events", "e")
    last = lines(tmp_path / "e", "SearchProgress")[-1]
    assert last["total"] == 15
    assert 0 < last["decided"] <= 15


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no disk that is always full")
def test_a_full_disk_behind_the_events_does_not_end_the_run(project: Project) -> None:
    project(SLOW)
    done = run(
        "score", "--against", "race", "--error", "0.1", "--events", "/dev/full", "-o", "r.json"
    )
    assert done.exit_code == 0
    assert Path("r.json").is_file()
