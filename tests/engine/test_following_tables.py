"""Tables of sets that something follows: every cell is the output of the variant as it was run."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest

import themis
from tests.joint_worlds import FOLLOWER, LEADER, SETS, JointWorld, plain_world
from themis.engine import memory, tables
from themis.engine.variants import all_variants
from themis.inputs.assignments import Assignments
from themis.subjects.decisions import NO_COUNTERFACTUAL

ROWS = 40


def wrong_cells(world: JointWorld, audit: themis.Audit, names: tuple[str, ...]) -> list[Any]:
    """The variants that are not as the world says, or whose cell is not."""
    schema = world.schema
    assignments = Assignments(schema, schema.columns_of(names))
    variants = all_variants(assignments)
    rows, cells = audit.sampler.tables.fill(variants, 0, ROWS)
    labels, wrong = audit.runner.labels.labels, []
    for place in range(variants.width):
        values = rows.inputs(variants, np.arange(ROWS), np.full(ROWS, place))
        for row, variant, cell in zip(rows.codes, values, cells[:, place].tolist(), strict=True):
            base, other = schema.decode_row(row), schema.decode_row(variant)
            chosen = {name: other[name] for name in names}
            output = None if cell == NO_COUNTERFACTUAL else labels[cell]
            expected = world.decide(other) if world.valid(other) else None
            if (other, output) != (world.variant(base, chosen), expected):
                wrong.append((base, other, output))
    return wrong


@pytest.mark.parametrize("vectorised", [False, True])
@pytest.mark.parametrize("seed", [5, *(pytest.param(s, marks=pytest.mark.slow) for s in (2, 8))])
def test_what_one_set_ran_is_right_for_another(
    seed: int, vectorised: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Domains that are not remembered borrow from other sets' tables."""
    monkeypatch.setattr(tables, "COLUMN_ROWS", 8)  # columns are overwritten in a loaded batch
    world = plain_world(seed, binned=seed == 5)
    subject = themis.batch(world.decide_table) if vectorised else world.decide
    monkeypatch.setattr(memory, "WHOLE_LIMIT", 0)
    audit = themis.Audit(subject, world.schema, seed=1)
    sets = random.Random(seed).sample(SETS, len(SETS))
    for names in [(LEADER, FOLLOWER), (LEADER,), *sets]:
        assert wrong_cells(world, audit, names) == []


def test_sets_borrow_what_neither_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    world = plain_world(5)
    monkeypatch.setattr(memory, "WHOLE_LIMIT", 0)
    audit, counts = world.audit(), []
    for names in ((LEADER,), (LEADER,), (LEADER, FOLLOWER)):
        before = audit.runner.executions
        assert wrong_cells(world, audit, names) == []
        counts.append(audit.runner.executions - before)
    width = len(world.column[LEADER].values) * len(world.column[FOLLOWER].values)
    assert counts[1] == 0
    assert counts[2] <= ROWS * (width - 1)  # the inputs themselves are known
