"""Is the time of loading told apart from that of measuring?"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.projects import SMALL, enter, run, write_project


def test_the_time_of_loading_is_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    enter(tmp_path, monkeypatch)
    write_project(tmp_path, inputs=SMALL)
    with next(tmp_path.glob("project_*.py")).open("a") as module:
        module.write("time.sleep(0.2)\n")
    timing = json.loads(run("score", "--against", "race", "--json").stdout)["timing"]
    assert timing["loading"] >= 0.2
    assert timing["seconds"] >= 0
