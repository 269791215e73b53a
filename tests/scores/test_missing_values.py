"""Scores with missing values equal the definitions by brute force."""

from __future__ import annotations

import random
from typing import Any

import pytest

import themis
from tests.missing_worlds import Row, World, sets_of, world
from themis.engine.runner import Runner
from themis.engine.sampler import Sampler
from themis.engine.variants import all_variants
from themis.inputs.assignments import Assignments
from themis.inputs.population import Population
from themis.scores import scorer
from themis.search.flips import FlipBook
from themis.subjects.decisions import Labels
from themis.subjects.loading import subject_from
from themis.subjects.readings import FLIP

SEEDS = [0, 1, *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(2, 30))]


def audit(of: World, **options: Any) -> themis.Audit:
    return themis.Audit(of.decide, of.schema, seed=1, deterministic=True, **options)


@pytest.mark.parametrize("seed", SEEDS)
def test_exact_scores_equal_the_definitions(seed: int) -> None:
    here = world(seed)
    run = audit(here)
    for names in sets_of(here):
        causal, group = run.causal(*names), run.group(*names)
        assert causal.method == group.method == "exact"
        assert causal.score == pytest.approx(here.causal(set(names)), abs=1e-9)
        assert group.score == pytest.approx(here.group(set(names)), abs=1e-9)
        for witness in causal.witnesses:
            first, second = (tuple(each.values()) for each in witness.inputs)
            assert here.is_valid(first)
            assert here.is_valid(second)
            for column, one, two in zip(here.columns, first, second, strict=True):
                assert column.counterfactual or (one is None) == (two is None)


@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_search_finds_the_minimal_sets_of_the_definitions(seed: int, measure: str) -> None:
    here = world(seed, bins=False)
    truth = {names: getattr(here, measure)(set(names)) for names in sets_of(here)}
    threshold = 0.2
    above = [set(names) for names, score in truth.items() if score >= threshold - 1e-12]
    minimal = [each for each in above if not any(other < each for other in above)]
    found = audit(here).search(threshold, measure=measure)
    assert found.method == "exact"
    assert sorted(map(sorted, minimal)) == sorted(sorted(each) for each in found.found)


def sampler(of: World) -> Sampler:
    runner = Runner(subject_from(of.decide, of.schema), Labels(favourable=(1,)))
    return Sampler(Population.of(of.schema), runner, seed=3)


@pytest.mark.parametrize("seed", SEEDS)
def test_rows_of_a_table_flip_as_the_definitions_say(seed: int) -> None:
    here = world(seed, bins=False)
    run, schema = sampler(here), here.schema
    for names in sets_of(here):
        variants = all_variants(Assignments(schema, schema.columns_of(names)))
        rows, cells = run.tables.fill(variants, 0, 40, until_flip=True)
        flips = run.reading.plain_states(cells) == FLIP
        for codes, flipped in zip(rows.codes, flips.tolist(), strict=True):
            row = tuple(schema.decode_row(codes).values())
            assert flipped == (here.flip_chance(row, set(names)) == 1.0)


@pytest.mark.parametrize("seed", SEEDS)
def test_base_inputs_of_a_search_flip_as_the_definitions_say(seed: int) -> None:
    here = world(seed, bins=False)
    run, schema = sampler(here), here.schema
    book = FlipBook(run, tuple(range(len(schema))), cap=1_000)
    for names in sets_of(here):
        mask = sum(1 << column for column in schema.columns_of(names))
        flips = book.states(mask, 0, 40) == FLIP
        for codes, flipped in zip(run.base.rows(0, 40), flips.tolist(), strict=True):
            row = tuple(schema.decode_row(codes).values())
            assert flipped == (here.flip_chance(row, set(names)) == 1.0)


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("seed", [2, 5, 11])
def test_sampled_scores_are_near_the_definitions(seed: int, monkeypatch: Any) -> None:
    monkeypatch.setattr(scorer, "can_be_exact", lambda *_: False)
    here = world(seed)
    for names in sets_of(here)[:3]:
        causal = audit(here, error=0.05, confidence=0.9999).causal(*names)
        group = audit(here, error=0.05, confidence=0.9999).group(*names)
        assert causal.method == group.method == "sampled"
        assert causal.low - 1e-9 <= here.causal(set(names)) <= causal.high + 1e-9
        assert group.low - 1e-9 <= here.group(set(names)) <= group.high + 1e-9


def given_rows(of: World, seed: int) -> list[tuple[Row, float]]:
    chance = random.Random(seed)
    inputs = [row for row, _ in of.inputs()]
    return [(row, float(chance.randint(1, 3))) for row in chance.choices(inputs, k=25)]


@pytest.mark.parametrize("seed", SEEDS)
def test_apparent_scores_equal_the_definitions(seed: int) -> None:
    here = world(seed, bins=False)
    rows = given_rows(here, seed)
    people, weights = [here.named(row) for row, _ in rows], [weight for _, weight in rows]
    run = audit(here)
    for names in sets_of(here):
        scores = run.apparent(
            people, against=[names], counterfactuals="both", weights=weights, only_data=True
        )
        found = {(each.measure, each.counterfactuals): each.score for each in scores.scores}
        chosen = set(names)
        group = next(score for (measure, _), score in found.items() if measure == "group")
        assert group == pytest.approx(here.group(chosen, rows), abs=1e-9)
        causal = {how: score for (measure, how), score in found.items() if measure == "causal"}
        assert causal["within"] == pytest.approx(here.within(chosen, rows), abs=1e-9)
        assert causal["generated"] == pytest.approx(here.causal(chosen, rows), abs=1e-9)
