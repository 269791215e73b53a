"""Variants: where an input itself stands among them, and which are none of an input."""

from __future__ import annotations

import tracemalloc

import numpy as np

import themis
from themis.engine.variants import TRIED, Rows, Variants, all_variants
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs


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
