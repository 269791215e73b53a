"""What tests of web services share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.services import Service, serve
from themis.subjects.http import client


@pytest.fixture
def service() -> Iterator[Service]:
    with serve() as service:
        yield service


@pytest.fixture
def quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.02)
