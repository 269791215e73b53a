"""Does noise convict? A fast part of benchmarks/verdicts.py, and whether it would notice.

Runs are seeded, so that these tests give the same counts each time.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest

import themis
from tests.simulations.counting import Clock, Tally, cover, fake_time, randomness, simulate
from tests.simulations.noisy import FACTORS, Cell, NoisySubject
from themis.engine import runner

VOUCHED = {"deterministic": True}  # somebody is wrong about that, and nothing is run again
RUNS = 20
CELLS = [
    Cell("fair", 0.01, 70, "time", "check", "causal", "sampled", "everywhere"),
    Cell("fair", 0.01, 70, "executions", "score", "causal", "sampled", "in a quarter"),
    Cell("below", 0.1, 5, "none", "check", "group", "whole", "everywhere"),
    Cell("fair", 0.1, 2, "none", "search", "group", "whole", "everywhere"),
    Cell("fair", 0.1, 5, "time", "search check", "causal", "sampled", "everywhere"),
]


@pytest.mark.some_slow(core=5)
@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
def test_noise_does_not_convict(cell: Cell) -> None:
    tally = simulate(cell, RUNS)
    assert not tally.surely_above(1 - cell.confidence, cells=len(CELLS))


@pytest.mark.parametrize("cell", CELLS, ids=lambda cell: cell.name)
@pytest.mark.slow
def test_these_runs_would_show_it_if_nothing_were_run_again(cell: Cell) -> None:
    tally = simulate(replace(cell, options=VOUCHED), 2 * RUNS)
    assert tally.surely_above(1 - cell.confidence, cells=len(CELLS))


@pytest.mark.parametrize("measure", ["causal", "group"])
@pytest.mark.parametrize("task", ["check", "search"])
@pytest.mark.slow
def test_subjects_at_twice_the_limit_are_convicted(task: str, measure: str) -> None:
    cell = Cell("fair", 0.01, 5, "none", task, measure, "sampled", "everywhere", guilty=True)
    assert simulate(cell, 5).convicted == 5


@pytest.mark.slow
def test_noise_does_not_convict_in_any_pair_of_circumstances() -> None:
    cells = [Cell(**factors) for factors in cover(FACTORS, 2)]
    tallies = {cell.name: simulate(cell, 12) for cell in cells}
    failing = [
        name for name, each in tallies.items() if each.surely_above(1 - 0.9, cells=len(cells))
    ]
    assert not failing


# What is simulated -------------------------------------------------------------------------


@pytest.mark.parametrize("strength", [2, 3])
def test_covers_hold_every_combination(strength: int) -> None:
    cells = cover(FACTORS, strength)
    seen = Counter(pair for cell in cells for pair in combinations(cell.items(), strength))
    for names in combinations(FACTORS, strength):
        for values in product(*(FACTORS[name] for name in names)):
            assert seen[tuple(zip(names, values, strict=True))]
    assert len(cells) < 20 * (strength - 1) ** 2


@pytest.mark.parametrize("factors", cover(FACTORS, 2), ids=lambda factors: Cell(**factors).name)
def test_true_scores_are_what_the_cells_say(factors: dict[str, object]) -> None:
    cell = Cell(**factors)  # type: ignore[arg-type]
    truth = true_score(cell)
    if cell.truth == "fair":
        assert truth == 0
    else:
        assert 0.5 * cell.limit < truth <= 0.8 * cell.limit + 1e-9
        assert truth < cell.limit - cell.error  # so that no search may list it
    assert 2 * cell.limit - 1e-9 <= true_score(replace(cell, guilty=True)) <= 1


def true_score(cell: Cell) -> float:
    """By the definitions, from the answers of the subject and how often they are wrong."""
    subject = NoisySubject(cell, np.random.default_rng(0), Clock())
    wrong, subject._noise = subject._noise, np.zeros(cell.contexts)
    contexts = np.arange(cell.contexts)
    answers = np.array(
        [
            subject(
                themis.InputTable(
                    {"group": np.full(len(contexts), g), "context": contexts}, len(contexts)
                )
            )
            for g in range(cell.values)
        ]
    )
    if cell.measure == "causal":
        return float((answers != answers[0]).any(axis=0).mean())
    rates = (answers * (1 - wrong) + ~answers * wrong).mean(axis=1)
    return float(rates.max() - rates.min())


def test_noise_is_as_frequent_as_the_cells_say() -> None:
    cell = Cell("fair", 0.1, 2, "none", "score", "causal", "sampled", "in a quarter")
    subject = NoisySubject(cell, np.random.default_rng(0), Clock())
    contexts = np.arange(100_000)
    table = themis.InputTable({"group": contexts % 2, "context": contexts}, len(contexts))
    changed = subject(table) != subject(table)
    assert np.mean(changed) == pytest.approx(0.25 * 2 * 0.4 * 0.6, abs=0.005)


def test_runs_do_not_depend_on_the_machine() -> None:
    cell = CELLS[0]
    assert cell.run(3) == cell.run(3)
    assert randomness("a", 1).random() == pytest.approx(0.61388415, abs=1e-8)
    with fake_time() as clock:
        before = runner.time.monotonic()
        clock.pass_by(2.0)
        assert runner.time.monotonic() == before + 2.0


def test_a_cell_fails_only_beyond_chance() -> None:
    assert not Tally(100, convicted=18).surely_above(0.1, cells=10)
    assert Tally(100, convicted=30).surely_above(0.1, cells=10)
    assert Tally(100).lowest(cells=10) == 0
