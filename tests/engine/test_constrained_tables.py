"""Constraints of a set's table: which are computed, how often, and that nothing else changes."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.engine.blocks import Block
from themis.engine.variants import Rows, Variants, all_variants
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.schema import Schema
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
    variants = all_variants(Assignments(schema, (0,)))
    cells = np.full((2, 4), NOT_RUN, order="F")
    Block(variants, Rows(base, {}), cells, READING).mark_impossible()
    assert (cells == NO_COUNTERFACTUAL).tolist() == [[True] * 4, [False, False, False, True]]
