"""The key of an input: no two inputs share one, however large the domain."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from themis.inputs.assignments import context_keys
from themis.inputs.keys import WORD, InputKeys, first_places, numbered

Codes = tuple[int, ...]

# Of few codes, of many, and of so many that one column fills a number of 64 bits.
counts = st.lists(st.sampled_from([1, 2, 3, 10, 2**31, 2**33, 2**61, WORD]), min_size=1, max_size=5)


@st.composite
def domains(draw: Any) -> tuple[list[int], list[Codes]]:
    """How many codes each column has, and some inputs: codes at both ends, and next to them."""
    sizes = draw(counts)
    ends = [sorted({0, min(1, n - 1), n // 2, max(n - 2, 0), n - 1}) for n in sizes]
    inputs = st.tuples(*map(st.sampled_from, ends))
    return sizes, draw(st.lists(inputs, max_size=12))


def array(inputs: list[Codes], width: int) -> Any:
    return np.array(inputs, dtype=np.int64).reshape(-1, width)


@given(domains())
def test_keys_are_equal_and_sorted_as_the_inputs_are(domain: tuple[list[int], list[Codes]]) -> None:
    sizes, inputs = domain
    keys = InputKeys(sizes).of(array(inputs, len(sizes)))
    for one, key in zip(inputs, keys, strict=True):
        assert (keys == key).tolist() == [one == other for other in inputs]
    order = np.argsort(keys, kind="stable").tolist()
    assert [inputs[place] for place in order] == sorted(inputs)
    assert first_places(keys).tolist() == sorted({inputs.index(each) for each in inputs})
    among = InputKeys.among(array(inputs, len(sizes))).of(array(inputs, len(sizes)))
    assert len(np.unique(among)) == len(set(inputs))


def test_keys_are_numbers_as_long_as_they_fit() -> None:
    largest = np.array([[2**62 - 1, 1]])
    assert InputKeys([2**62, 2]).of(largest).tolist() == [2**63 - 1]
    assert InputKeys([2**62, 3]).of(largest).dtype.kind == "S"
    assert InputKeys([2**62, 3]).count == 3 * 2**62


@given(domains(), st.sets(st.integers(0, 4)))
def test_keys_without_some_columns_are_those_of_the_context(
    domain: tuple[list[int], list[Codes]], without: set[int]
) -> None:
    sizes, inputs = domain
    codes = array(inputs, len(sizes))
    contexts = [[c for place, c in enumerate(each) if place not in without] for each in inputs]
    keys = InputKeys(sizes).of(codes, without=without)
    numbers = context_keys(codes, tuple(without))
    distinct = sorted({tuple(each) for each in contexts})
    assert numbers.tolist() == [distinct.index(tuple(each)) for each in contexts]
    for one, key in zip(contexts, keys, strict=True):
        assert (keys == key).tolist() == [one == other for other in contexts]


@given(domains(), st.data())
def test_changing_a_column_gives_the_keys_of_the_changed_inputs(
    domain: tuple[list[int], list[Codes]], data: st.DataObject
) -> None:
    sizes, inputs = domain
    codes, keys = array(inputs, len(sizes)), InputKeys(sizes)
    column = data.draw(st.integers(0, len(sizes) - 1))
    last = sizes[column] - 1
    changed = codes.copy()
    changed[:, column] = last
    both = {column: np.stack([codes[:, column], changed[:, column]], axis=1)}
    table = keys.of_table(codes, both)
    assert table[:, 0].tolist() == keys.of(codes).tolist()
    assert table[:, 1].tolist() == keys.of(changed).tolist()
    own = keys.of(codes)
    if own.dtype.kind == "i":
        keys.overwrite(own, column, codes[:, column], changed[:, column])
        assert own.tolist() == keys.of(changed).tolist()


numbers = st.lists(st.integers(0, 12), max_size=30)  # now counted, now sorted


@given(numbers, st.sampled_from([1, 7, 1000]), st.booleans())
def test_equal_keys_have_one_number_and_one_first_place(
    keys: list[int], apart: int, as_bytes: bool
) -> None:
    given = np.array(keys, dtype=np.int64) * apart
    if as_bytes:
        given = np.array([b"%08d" % each for each in given.tolist()], dtype="S8")
    first, number = numbered(given)
    distinct = sorted(set(given.tolist()))
    assert first.tolist() == [given.tolist().index(each) for each in distinct]
    assert number.tolist() == [distinct.index(each) for each in given.tolist()]
    assert first_places(given).tolist() == sorted(first.tolist())
