"""Decisions on causal scores with proofs of a part: right as often as stated, and cheaper."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import themis
from tests.simulated_flips import SimulatedBook, constant_first
from themis.search import causal_decider as causal_decider
from themis.search.causal_decider import CausalDecider
from themis.search.cells import UNTRIED
from themis.search.deciding import SearchRequest
from themis.search.lattice import subsets
from themis.settings import Settings
from themis.statistics.thresholds import ThresholdRule


def decide(book: SimulatedBook, delta: float, threshold: float = 0.75, error: float = 0.05) -> Any:
    settings: Any = Settings(error=error)
    request = SearchRequest(None, settings, "causal", threshold, (0,), 1)  # type: ignore[arg-type]
    decider = CausalDecider(book, request)  # type: ignore[arg-type]
    return decider.decide(1, delta).decision


@pytest.mark.parametrize(
    "found", [0.9, *(pytest.param(each, marks=pytest.mark.slow) for each in (0.5, 1.0))]
)
@pytest.mark.slow
def test_each_error_is_at_most_as_frequent_as_stated(found: float) -> None:
    """At both edges of the zone, where errors are most frequent."""
    runs, delta = 80, 0.3
    for share, wrong in ((0.5, "above"), (0.7, "below")):
        books = [SimulatedBook(seed, share, found, 500) for seed in range(runs)]
        said = [decide(book, delta, 0.6, 0.1) for book in books]
        assert said.count(wrong) / runs <= delta
        assert "undecided" not in said


@pytest.mark.slow
def test_a_sample_of_the_easy_ones_would_be_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Settling those first that do not flip must break the guarantee, or this file is blind."""
    monkeypatch.setattr(SimulatedBook, "shuffled", constant_first)
    wrong = [decide(SimulatedBook(s, 0.7, 0.5, 500), 0.05, 0.6, 0.1) for s in range(60)]
    assert wrong.count("below") > 12


def test_what_is_above_needs_no_proofs() -> None:
    book = SimulatedBook(1, 0.95, 1.0, 500)
    assert decide(book, 1e-3) == "above"
    assert not book.proofs


def test_what_lies_in_the_middle_of_the_zone_is_listed_rather_than_proved() -> None:
    """Either answer is right there, and only "below" takes proofs."""
    books = [SimulatedBook(seed, 0.75, 1.0, 500) for seed in range(8)]
    assert [decide(book, 1e-2) for book in books].count("above") >= 7
    fixed = ThresholdRule(0.75, 0.05, 1e-2).max_samples
    assert sum(book.proofs for book in books) < 0.1 * len(books) * 0.25 * fixed


SPACE = themis.Schema(a=range(6), b=range(5), c=range(4), d=range(30), e=range(50))


def rule(table: themis.InputTable) -> Any:
    return table["a"] * table["b"] + 3 * (table["c"] == 2) + table["d"] // 3 + table["e"] // 9 > 14


@pytest.mark.parametrize("constrained", [False, True], ids=["free", "constrained"])
def test_states_are_those_of_running_everything_and_nothing_runs_twice(constrained: bool) -> None:
    space = SPACE.where("a < 4 or c != 1") if constrained else SPACE
    seen: list[tuple[int, ...]] = []

    def recorded(table: themis.InputTable) -> Any:
        seen.extend(map(tuple, table.to_numpy().tolist()))
        return rule(table)

    audit = themis.Audit(themis.batch(recorded), space, seed=4)
    book = audit.apparatus.views.of(None).searcher.book
    states = {}
    for mask in sorted(subsets(0b111), key=int.bit_count):
        again = book.probe_again(mask, book.probe(mask, 0, 40), 100.0)
        states[mask] = book.settle(mask, again, 0, np.flatnonzero(again == UNTRIED))
    assert len(set(seen)) == len(seen)
    inputs = audit.sampler.base.rows(0, 40)
    for mask, found in states.items():
        assert found.tolist() == [flips(space, each, mask) for each in inputs]


def flips(space: themis.Schema, one: Any, mask: int) -> bool:
    """Whether any valid variant of an input has another output, by running all of them."""
    grids = [range(space.characteristics[c].size) if mask >> c & 1 else [one[c]] for c in range(5)]
    codes = np.array(np.meshgrid(*grids, indexing="ij")).reshape(5, -1).T
    codes = codes[space.valid(codes)]
    outputs = rule({name: codes[:, c] for c, name in enumerate(space.names)})  # type: ignore[arg-type]
    own = rule({name: one[None, c] for c, name in enumerate(space.names)})  # type: ignore[arg-type]
    return bool((outputs != own[0]).any())


def test_batches_may_change_their_size_while_a_search_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    def searched() -> dict[str, Any]:
        audit = themis.Audit(themis.batch(rule), SPACE, seed=3)
        return audit.search(0.4, among=["a", "b", "c"]).to_dict()

    expected = searched()
    sizes = iter(range(1, 10**9))
    runner = type(themis.Audit(themis.batch(rule), SPACE).runner)
    monkeypatch.setattr(runner, "batch_size", property(lambda _: 5 + next(sizes) % 50))
    assert searched() == expected
