"""Every test of the configuration works in an empty folder of its own."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.projects import enter


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    enter(tmp_path, monkeypatch)
    return tmp_path
