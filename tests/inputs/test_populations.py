"""Inputs are drawn uniformly over the valid ones, or by weight, and don't depend on batches."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import themis
from tests.worlds import Case, cases
from themis.audit.notes import sparse
from themis.inputs import population as populations
from themis.inputs.blocks import RejectionBlock, TableBlock, uniform_numbers
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs


def frequencies(case: Case, rows: np.ndarray) -> dict[tuple[object, ...], float]:
    decoded = [tuple(case.schema.decode_row(row).values()) for row in rows]
    return {key: decoded.count(key) / len(decoded) for key in set(decoded)}


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases(), st.booleans())
def test_inputs_are_drawn_as_the_definition_weighs_them(case: Case, reject: bool) -> None:
    limit = populations.ENUMERATION_LIMIT
    populations.ENUMERATION_LIMIT = 0 if reject else limit
    try:
        population = Population.of(case.schema)
    finally:
        populations.ENUMERATION_LIMIT = limit
    if reject and any(len(each.variables) > 1 for each in case.schema.constraints):
        assert any(isinstance(block, RejectionBlock) for block in population.blocks)
    count = 4_000
    seen = frequencies(case, BaseInputs(population, 1).rows(0, count))
    expected = dict(case.world.inputs())
    assert set(seen) <= set(expected)
    for row, weight in expected.items():
        assert seen.get(row, 0.0) == pytest.approx(weight, abs=5 * (weight / count) ** 0.5 + 0.002)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(cases())
def test_the_number_of_inputs_that_occur_is_exact(case: Case) -> None:
    population = Population.of(case.schema)
    inputs = case.world.inputs()
    assert population.size == len(inputs)
    indices = np.arange(population.size)
    rows = [tuple(case.schema.decode_row(r).values()) for r in population.combinations(indices)]
    weights = dict(zip(rows, population.probabilities(indices), strict=True))
    assert weights == pytest.approx(dict(inputs))


@settings(max_examples=20, deadline=None, derandomize=True)
@given(cases(), st.lists(st.integers(0, 20_000), min_size=2, max_size=5, unique=True))
def test_a_row_is_the_same_however_it_is_asked_for(case: Case, cuts: list[int]) -> None:
    stream = BaseInputs(Population.of(case.schema), 9)
    cuts = sorted(cuts)
    whole = stream.rows(cuts[0], cuts[-1])
    parts = [stream.rows(first, last) for first, last in pairwise(cuts)]
    assert np.array_equal(whole, np.concatenate(parts))
    for column, characteristic in enumerate(case.schema):
        if characteristic.bin_starts is not None:
            members = stream.members(column, cuts[0], cuts[-1])
            pieces = [stream.members(column, a, b) for a, b in pairwise(cuts)]
            assert np.array_equal(members, np.concatenate(pieces))


def test_the_member_of_its_own_bin_is_the_inputs_own_value() -> None:
    schema = themis.Schema(age=themis.Integers(0, 99, bins=[30, 60]), race=["a", "b"])
    stream = BaseInputs(Population.of(schema), 2)
    rows, members = stream.rows(0, 500), stream.members(0, 0, 500)
    own = schema.characteristics[0].level_of(rows[:, 0])
    assert np.array_equal(members[np.arange(500), own], rows[:, 0])
    assert ((members[:, 0] < 30) & (members[:, 1] >= 30) & (members[:, 2] >= 60)).all()
    assert len(np.unique(members[:, 2])) == 40  # every member of a bin stands for it at times


@given(st.lists(st.integers(1, 5), min_size=1, max_size=4), st.data())
def test_inputs_that_follow_one_another_are_those_with_their_numbers(
    sizes: list[int], data: st.DataObject
) -> None:
    """Ranges are made by strides, all others digit by digit: both are the same inputs."""
    schema = themis.Schema({f"c{n}": range(size) for n, size in enumerate(sizes)})
    population = Population.of(schema)
    first = data.draw(st.integers(0, schema.size))
    numbers = np.arange(first, data.draw(st.integers(first, schema.size)))
    backwards = population.combinations(numbers[::-1])
    assert np.array_equal(population.combinations(numbers), backwards[::-1])
    digits = np.array(np.unravel_index(numbers, tuple(sizes))).T
    assert np.array_equal(population.combinations(numbers), digits)


def test_only_linked_characteristics_are_enumerated() -> None:
    schema = themis.Schema(a=range(100), b=range(100), c=range(10**9), d=range(10**9), e=range(100))
    population = Population.of(schema.where("a + b < 20", "b == e"))
    assert population.size == 210 * 10**18
    assert [block.columns for block in population.blocks] == [(0, 1, 4), (2,), (3,)]
    assert population.is_independent((2,))
    assert population.is_independent((0, 1, 4))
    assert not population.is_independent((0, 1))


def test_constraints_over_a_domain_too_large_to_list_are_met_by_rejection() -> None:
    schema = themis.Schema(a=range(10**6), b=range(10**6)).where("a < b", "a % 2 == 0")
    population = Population.of(schema)
    assert population.size is None
    rows = BaseInputs(population, 0).rows(0, 1_000)
    assert (rows[:, 0] < rows[:, 1]).all()
    assert (rows[:, 0] % 2 == 0).all()
    rare = themis.Schema(a=range(2_000_000), b=range(2_000_000)).where("a < 1", "a <= b")
    assert (BaseInputs(Population.of(rare), 0).rows(0, 10)[:, 0] == 0).all()


def test_a_constraint_that_leaves_nothing_is_named() -> None:
    schema = themis.Schema(a=range(10), b=range(10)).where(never="a > 5 and a < 3")
    with pytest.raises(themis.SchemaError, match=r"constraint 'never'.*holds for no input"):
        Population.of(schema)
    pair = themis.Schema(a=range(10), b=range(10)).where(one="a > b", other="b > a")
    with pytest.raises(themis.SchemaError, match="'one', 'other' contradict"):
        Population.of(pair)
    large = themis.Schema(a=range(10**6), b=range(10**6)).where("a > b", "b > a")
    with pytest.raises(themis.SchemaError, match="none of 2,000,000 random inputs meets '1', '2'"):
        Population.of(large)


def test_constraints_that_leave_almost_nothing_are_said() -> None:
    schema = themis.Schema(a=range(1000), b=range(1000)).where("a == 0 and b < 3")
    (few,) = Population.of(schema).few_valid
    assert (few.names, few.share) == (("a", "b"), pytest.approx(3e-06))
    (note,) = sparse(Population.of(schema))
    assert "leave only 3e-06 of all combinations of a, b" in str(note)
    assert not Population.of(themis.Schema(a=range(10))).few_valid


def test_the_population_of_a_group_holds_only_its_members() -> None:
    schema = themis.Schema(
        race=["x", "y"], age=themis.Integers(0, 9, bins=[5]), job=["none", "nurse"]
    ).where("age > 3 or job == 'none'")
    population = Population.of(schema)
    young = population.restricted({1: (0, 5)})
    assert young is not None
    rows = BaseInputs(young, 0, branch=(7,)).rows(0, 300)
    assert rows[:, 1].max() == 4
    assert schema.valid(rows).all()
    assert population.restricted({1: (0, 3), 2: (1, 2)}) is None
    assert isinstance(next(b for b in young.blocks if len(b.columns) == 2), TableBlock)


class Counted(np.random.PCG64):
    """A generator whose words hold every pattern of 16 bits once, in order, again and again."""

    served = 0

    def random_raw(self, size: int | None = None, lock: bool = True) -> NDArray[np.uint64]:
        assert size is not None
        patterns = np.arange(self.served, self.served + 4 * size) % 2**16
        self.served += 4 * size
        return patterns.astype("<u2").view("<u8")


@pytest.mark.parametrize("size", [1, 2, 3, 7, 10, 100, 256, 1_000, 4_095, 4_096])
def test_whole_numbers_are_equally_likely_to_the_last_bit(size: int) -> None:
    generator = Counted()
    numbers = uniform_numbers(np.random.Generator(generator), size, 2**16)
    share, left = divmod(2**16, size)
    counts = np.bincount(numbers, minlength=size)
    assert len(counts) == size
    assert (counts >= share).all(), "of all patterns each number has its share, and no more"
    assert counts.sum() - size * share == left  # drawn again
    assert generator.served >= 2**16 + left


@pytest.mark.parametrize("size", [5_000, 2**20 + 1, 2**28, 2**28 + 1, 2**40])
def test_large_numbers_cover_their_range(size: int) -> None:
    numbers = uniform_numbers(np.random.default_rng(0), size, 20_000).astype(float)
    shares = np.histogram(numbers, bins=10, range=(0, size))[0] / 20_000
    assert abs(shares - 0.1).max() < 0.01
    assert numbers.max() < size
    assert (numbers % 2).mean() == pytest.approx(0.5, abs=0.02)
