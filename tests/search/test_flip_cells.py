"""The waves in which the variants of a cell are run."""

from __future__ import annotations

import pytest

from themis.search.flips import waves


@pytest.mark.parametrize("most", [None, 1, 3, 16])
@pytest.mark.parametrize("end", [0, 1, 7, 100])
def test_waves_cover_every_variant_once(end: int, most: int | None) -> None:
    covered: list[int] = []
    for start, size in waves(end, most):
        assert 1 <= size <= (most or end)
        covered += range(start, start + size)
    assert covered == list(range(end))
