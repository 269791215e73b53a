"""What a cell remembers: variants that were run out of order, and the waves they are run in."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from themis.search import flips as flip_cells
from themis.search.flips import KeySet, waves

batches = st.lists(st.lists(st.integers(0, 60), max_size=12), max_size=12)


@pytest.mark.parametrize("last", [0, 5, 10_000], ids=["sorted", "mixed", "unsorted"])
@given(batches, st.lists(st.integers(0, 60), min_size=1, max_size=20))
@settings(max_examples=40)
def test_a_key_set_holds_what_was_put_into_it(
    last: int, added: list[list[int]], asked: list[int]
) -> None:
    keys, expected = KeySet(), set[int]()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(flip_cells, "LAST_KEYS", last)
        for batch in added:
            keys.add(np.array(batch, dtype=np.int64))
            expected.update(batch)
            found = keys.holds(np.array(asked, dtype=np.int64))
            assert found.tolist() == [each in expected for each in asked]


@pytest.mark.parametrize("most", [None, 1, 3, 16])
@pytest.mark.parametrize("end", [0, 1, 7, 100])
def test_waves_cover_every_variant_once(end: int, most: int | None) -> None:
    covered: list[int] = []
    for start, size in waves(end, most):
        assert 1 <= size <= (most or end)
        covered += range(start, start + size)
    assert covered == list(range(end))
