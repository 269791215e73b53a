"""Searches where something follows: no set is skipped, and what monotonicity promises holds."""

from __future__ import annotations

import random

import numpy as np
import pytest

import themis
from tests.joint_worlds import FOLLOWER, FREE, LEADER, SETS, plain_world
from themis.engine import memory
from themis.search import whole_domain
from themis.search.flips import FlipBook
from themis.subjects.readings import FLIP

MANY = [5, *(pytest.param(seed, marks=pytest.mark.slow) for seed in (2, *range(8, 18)))]
ROWS = 30


@pytest.mark.parametrize("seed", MANY)
@pytest.mark.parametrize("remembers", [False, True])
def test_the_flips_of_every_set_are_those_of_its_variants(
    seed: int, remembers: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    missing = {LEADER: "counterfactual", FREE: "kept"} if seed % 2 else {}
    world = plain_world(seed, **missing)
    monkeypatch.setattr(memory, "WHOLE_LIMIT", memory.WHOLE_LIMIT if remembers else 0)
    audit, schema = world.audit(), world.schema
    book = FlipBook(audit.sampler, tuple(range(len(schema))), cap=50_000)
    base = [schema.decode_row(row) for row in audit.sampler.base.rows(0, ROWS)]
    for names in random.Random(seed).sample(SETS, len(SETS)):
        mask = sum(1 << column for column in schema.columns_of(names))
        states = book.states(mask, 0, ROWS)
        assert (states == FLIP).tolist() == [bool(world.flips(row, names)) for row in base]
        for first, second, _ in zip(*book.pairs(mask, ROWS), strict=True):
            one, two = schema.decode_row(first), schema.decode_row(second)
            assert world.variant(one, {name: two[name] for name in names}) == two
            assert world.decide(one) != world.decide(two)


COUPLES = themis.Schema(
    sex=["Female", "Male"],
    relationship=themis.Values(
        ["Husband", "Wife", "Unmarried"],
        follows="sex",
        as_={"Female": {"Husband": "Wife"}, "Male": {"Wife": "Husband"}},
    ),
    city=["A", "B"],
)


def test_a_follower_in_the_set_may_keep_its_value_where_the_leader_changes() -> None:
    """A wife who becomes a man is still a wife there; alone, the sex turns her into a husband."""
    audit = themis.Audit(
        lambda row: row["sex"] == "Male" and row["relationship"] == "Wife", COUPLES, seed=1
    )
    book = FlipBook(audit.sampler, (0, 1, 2), cap=50_000)
    assert not (book.states(0b001, 0, ROWS) == FLIP).any()
    assert (book.states(0b011, 0, ROWS) == FLIP).all()
    assert (book.states(0b010, 0, ROWS) == FLIP).any()


def test_a_flip_of_the_leader_is_known_for_the_set_with_its_follower(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """In a domain that is not remembered, too: nothing is tried for inputs that flip already."""
    world = plain_world(8)
    monkeypatch.setattr(memory, "WHOLE_LIMIT", 0)
    audit, schema = world.audit(), world.schema
    book = FlipBook(audit.sampler, tuple(range(len(schema))), cap=50_000)
    leader, follower = (1 << schema.column_by_name[name] for name in (LEADER, FOLLOWER))
    flips = book.states(leader, 0, ROWS) == FLIP
    assert flips.any()
    before = audit.runner.executions
    count = int(np.flatnonzero(flips)[0])
    assert book.probe(leader | follower, count, count + 1)[0] == FLIP
    assert audit.runner.executions == before


@pytest.mark.parametrize("seed", [5, 11])
def test_a_sampled_search_misses_no_set_far_above(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole_domain, "DENSE_LIMIT", 0)
    world = plain_world(seed)
    found = world.audit(error=0.05).search(0.3, measure="causal")
    assert found.method == "sampled"
    listed = [set(names) for names in (*found.found, *found.undecided)]
    far = [set(names) for names in SETS if world.causal(names) > 0.35]
    assert all(any(each <= names for each in listed) for names in far)
    assert all(world.causal(names) > 0.25 for names in found.found)


def test_a_group_is_found_whose_causal_score_is_zero() -> None:
    """Theorem 4.3 does not hold here, so a causal search that found nothing prunes no group."""
    audit = themis.Audit(lambda row: row["sex"] == "Male", COUPLES, seed=1)
    assert audit.causal("relationship").score == 0
    assert audit.group("relationship").score == 1  # husbands are men, wives are not
    causal, group = audit.search_all(0.5, ["causal", "group"]).searches
    assert causal.found == (("sex",),)
    assert group.found == (("relationship",), ("sex",))
