"""Variants of rows: which a constraint forbids, where an input is among them, what they take."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.engine.blocks import Block
from themis.engine.variants import TRIED, Rows, Variants, all_variants
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.streams import BaseInputs
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN
from themis.subjects.labels import Labels
from themis.subjects.readings import Reading

READING = Reading(Labels())
CONDITIONS = (
    "a < 3",
    "a != 1 or b != 1",
    "a + c < 5",
    "c is missing or c > d",
    "d < 3 or e == 'x'",
    "e in ['x', 'z'] or f > 8",
    "b == 1 and d == 2",
)


def schema_of(conditions: list[str]) -> Schema:
    return Schema(
        a=range(4),
        b=range(2),
        c=themis.Integers(0, 3, missing=0.3),
        d=range(4),
        e=["x", "y", "z"],
        f=themis.Integers(0, 11, bins=[4, 8]),
    ).where(*conditions)


@given(
    st.lists(st.sampled_from(CONDITIONS), unique=True, max_size=5),
    st.sets(st.integers(0, 5), min_size=1, max_size=3),
    st.integers(0, 2**32),
    st.booleans(),
)
def test_a_table_admits_what_its_inputs_one_by_one_do(
    conditions: list[str], chosen: set[int], seed: int, whole: bool
) -> None:
    schema, rng = schema_of(conditions), np.random.default_rng(seed)
    counts = np.array(schema.code_counts)
    base = (rng.random((20, 6)) * counts).astype(np.int64)
    variants = all_variants(Assignments(schema, tuple(sorted(chosen))))
    if not whole:  # as where there are too many: the inputs themselves, and some others
        own = np.full((1, len(chosen)), OWN)
        variants = Variants(variants.assignments, np.r_[own, variants.levels[::2]], complete=False)
    members = {5: rng.integers(0, 12, (20, 3))}
    rows = Rows(base, members if 5 in chosen else {})
    found = schema.admits_table(base, rows.all_changes(variants))
    for place in range(variants.width):
        every = np.arange(20)
        codes = rows.inputs(variants, every, np.full(20, place))
        assert found[:, place].tolist() == schema.admits(base, codes).tolist()
    valid = rows.take(np.flatnonzero(schema.valid(base)))
    valid.valid = True
    kept = found[schema.valid(base)]
    cells = np.full(kept.shape, NOT_RUN, order="F")
    Block(variants, valid, cells, READING).mark_impossible()
    assert ((cells == NO_COUNTERFACTUAL) == ~kept).all()


def test_rows_that_break_another_constraint_are_not_taken_for_valid() -> None:
    schema = schema_of(["a < 3", "d < 3"])
    base = np.array([[0, 0, 0, 3, 0, 0], [0, 0, 0, 0, 0, 0]])  # the first breaks d < 3
    cells = np.full((2, 4), NOT_RUN, order="F")
    Block(all_variants(Assignments(schema, (0,))), Rows(base, {}), cells, READING).mark_impossible()
    assert (cells == NO_COUNTERFACTUAL).tolist() == [[True] * 4, [False, False, False, True]]


def test_inputs_of_many_cells_take_no_memory_for_the_bins_of_their_rows() -> None:
    schema = themis.Schema(a=themis.Integers(0, 9_999, bins=[*range(10, 10_000, 10)]), b=range(50))
    variants = all_variants(Assignments(schema, (0,)))
    codes = np.zeros((50, 2), dtype=schema.dtype, order="F")
    rows = Rows(codes, {0: np.tile(np.arange(1_000) * 10, (50, 1))})
    row, column = np.repeat(np.arange(50), 1_000), np.tile(np.arange(1_000), 50)
    tracemalloc.start()
    inputs = rows.inputs(variants, row, column)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert inputs[:, 0].tolist() == [10 * each for each in range(1_000)] * 50
    assert peak < 5 * 2**20


def test_of_too_many_assignments_as_many_are_tried_as_may_be() -> None:
    schema = themis.Schema(a=range(40), b=range(40), c=range(5))
    base = BaseInputs(Population.of(schema), seed=1)
    for limit, width in ((50, 50), (1_000, TRIED)):
        variants = Variants.of(Assignments(schema, (0, 1)), limit=limit, base=base)
        assert not variants.complete
        assert variants.width == len({*map(tuple, variants.levels.tolist())}) == width
        assert variants.levels[0].tolist() == [OWN, OWN]
