"""Properties are tested with the same examples, whatever else runs on the machine."""

from __future__ import annotations

import importlib
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


@pytest.mark.skipif(os.environ.get("HYPOTHESIS_PROFILE", "steady") != "steady", reason="explores")
def test_examples_do_not_depend_on_the_modules_that_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw() -> list[tuple[str, int]]:
        seen: list[tuple[str, int]] = []

        @settings(max_examples=300, database=None)
        @given(st.tuples(st.text(), st.integers()))
        def collect(pair: tuple[str, int]) -> None:
            seen.append(pair)

        collect()
        return seen

    first = draw()
    (tmp_path / "fresh_constants.py").write_text(
        "\n".join(f"x{n} = ('constant {n}', {10**6 + 7 * n})" for n in range(50))
    )
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("fresh_constants")
    try:
        assert draw() == first
    finally:
        del sys.modules["fresh_constants"]
