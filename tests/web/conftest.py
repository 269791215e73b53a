"""Servers that the tests of one module share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.serving import Server, example, serving


@pytest.fixture(scope="module")
def loan(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server for a copy of the loan example; nothing was measured."""
    with serving(example(tmp_path_factory.mktemp("web"))) as server:
        yield server
