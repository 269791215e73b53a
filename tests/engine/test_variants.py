"""Variants: where an input itself stands among them, and which are none of an input."""

from __future__ import annotations

import tracemalloc

import numpy as np

import themis
from themis.engine.variants import TRIED, Rows, Variants, all_variants, mark_impossible, own_columns
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs
from themis.subjects.decisions import NO_COUNTERFACTUAL, NOT_RUN

SCHEMA = themis.Schema(a=range(3), b=range(4), c=range(5))
CODES = np.array([[a, b, (a + b) % 5] for a in range(3) for b in range(4)])
ROWS = Rows(CODES, {})
SET = Assignments(SCHEMA, (0, 1))


def test_each_input_stands_at_its_own_assignment() -> None:
    variants = all_variants(SET)
    assert variants.levels[own_columns(variants, ROWS)].tolist() == CODES[:, :2].tolist()


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


def test_where_not_all_are_tried_one_column_is_the_input_itself() -> None:
    variants = Variants(SET, np.array([[1, 2], [OWN, OWN], [OWN, 3]]), complete=False)
    assert own_columns(variants, ROWS).tolist() == [1] * len(CODES)


def marked(schema: themis.Schema, codes: list[list[int]], variants: Variants) -> list[list[bool]]:
    cells = np.full((len(codes), variants.width), NOT_RUN)
    mark_impossible(schema, variants, Rows(np.array(codes), {}), cells)
    return (cells == NO_COUNTERFACTUAL).tolist()


def test_a_value_of_no_level_is_tried_for_nobody_who_has_another() -> None:
    schema = themis.Schema(a=range(3), b=range(2)).with_extra({"a": [7, 8]})
    assignments = Assignments(schema, (0,))
    everything = all_variants(assignments)
    assert everything.levels.ravel().tolist() == [0, 1, 2, OWN]
    codes = [[0, 0], [3, 0], [4, 1]]  # 0, and the values 7 and 8 of the rows
    assert marked(schema, codes, everything) == [[False] * 3 + [True], [False] * 4, [False] * 4]
    some = Variants(assignments, np.array([[OWN], [1]]), complete=False)
    assert marked(schema, codes, some) == [[False, False]] * 3


def test_of_too_many_assignments_as_many_are_tried_as_may_be() -> None:
    schema = themis.Schema(a=range(40), b=range(40), c=range(5))
    base = BaseInputs(Population.of(schema), seed=1)
    for limit, width in ((50, 50), (1_000, TRIED)):
        variants = Variants.of(Assignments(schema, (0, 1)), limit=limit, base=base)
        assert not variants.complete
        assert variants.width == len({*map(tuple, variants.levels.tolist())}) == width
        assert variants.levels[0].tolist() == [OWN, OWN]
