"""The lattice: every set once, subsets first, and only sound implications."""

from __future__ import annotations

from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from themis.search.lattice import Border, Lattice, minimal, subsets

LEVELS = st.lists(st.integers(1, 9), min_size=1, max_size=6).map(tuple)


def all_masks(width: int, max_size: int) -> set[int]:
    return {
        sum(1 << place for place in places)
        for size in range(1, max_size + 1)
        for places in combinations(range(width), size)
    }


@given(LEVELS, st.data())
def test_every_set_comes_once_after_its_subsets_and_those_of_first_characteristics_first(
    levels: tuple[int, ...], data: st.DataObject
) -> None:
    max_size = data.draw(st.integers(1, len(levels)))
    first = data.draw(st.integers(0, 2 ** len(levels) - 1))
    lattice = Lattice(levels, max_size, cap=20, first=first)
    order = list(lattice.by_cost(lambda mask: False))
    assert len(order) == len(set(order)) == lattice.total
    assert set(order) == set(lattice.by_size()) == all_masks(len(levels), max_size)
    place = {mask: number for number, mask in enumerate(order)}
    assert all(place[part] <= place[mask] for mask in order for part in subsets(mask))
    is_behind = [mask & ~first != 0 for mask in order]
    assert is_behind == sorted(is_behind)


def without_supersets(lattice: Lattice, found: set[int]) -> set[int]:
    """All sets but those that contain a found one."""
    return {
        mask
        for mask in lattice.by_size()
        if not any(mask & each == each and mask != each for each in found)
    }


@given(LEVELS, st.integers(1, 5), st.data())
def test_supersets_of_a_pruned_set_are_left_out_and_no_others_also_by_levels(
    levels: tuple[int, ...], most: int, data: st.DataObject
) -> None:
    max_size = data.draw(st.integers(1, len(levels)))
    lattice = Lattice(levels, max_size, cap=50)
    found = data.draw(st.sets(st.sampled_from(sorted(all_masks(len(levels), max_size)))))
    border, seen = Border(), []
    for mask in lattice.by_cost(lambda each: border.pruned_by(each) is not None):
        seen.append(mask)
        if mask in found:
            border.add_above(mask)
    assert set(seen) == without_supersets(lattice, found)
    assert sorted(border.above) == sorted(minimal(found))
    assert lattice.count_supersets(border.above) == lattice.total - len(seen)
    border, seen = Border(), []
    for masks in lattice.by_level(lambda each: border.pruned_by(each) is not None, most):
        assert 1 <= len(masks) <= most
        assert len({mask.bit_count() for mask in masks}) == 1
        seen += masks
        for mask in found.intersection(masks):
            border.add_above(mask)
    assert [mask.bit_count() for mask in seen] == sorted(mask.bit_count() for mask in seen)
    assert sorted(seen) == sorted(without_supersets(lattice, found))


@given(LEVELS, st.data())
def test_the_error_of_the_whole_search_is_divided_and_never_exceeded(
    levels: tuple[int, ...], data: st.DataObject
) -> None:
    max_size = data.draw(st.integers(1, len(levels)))
    whole, capped = (Lattice(levels, max_size, cap) for cap in (10**6, 10))
    assert sum(map(whole.share, whole.by_size())) == pytest.approx(1.0)
    assert sum(map(capped.share, capped.by_size())) <= 1.0 + 1e-9


def test_huge_characteristics_leave_every_set_a_share_that_can_be_used() -> None:
    lattice = Lattice((2, 3, 4, *[10**9] * 5), max_size=8, cap=1_000)
    assert min(map(lattice.share, lattice.by_size())) > 1e-7


@given(st.sets(st.integers(1, 63), max_size=12))
def test_implications_are_exactly_those_of_monotonicity(masks: set[int]) -> None:
    border = Border()
    for mask in masks:
        border.add_below(mask)
    for mask in range(1, 64):
        expected = any(mask & each == mask for each in masks)
        assert (border.implied_by(mask) is not None) == expected
