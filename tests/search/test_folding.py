"""Whole domains: a set is folded from one with a characteristic less, and the limits hold."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import themis
from themis.search.walk import Search
from themis.search.whole_domain import Folding
from themis.subjects.decisions import NO_COUNTERFACTUAL

SHAPE = (2, 3, 4, 2, 3)


def domain(rng: np.random.Generator) -> tuple[Any, Any]:
    """Outputs, some of which there are none of, and their weights."""
    cells = rng.integers(0, 3, SHAPE).astype(np.int16)
    weights = rng.integers(0, 5, SHAPE)
    cells[rng.random(SHAPE) < 0.2] = NO_COUNTERFACTUAL
    return cells, weights


def by_definition(cells: Any, weights: Any, columns: tuple[int, ...]) -> int:
    """The weight of contexts with two different outputs, context by context."""
    others = [axis for axis in range(cells.ndim) if axis not in columns]
    flips = 0
    for context in itertools.product(*(range(cells.shape[axis]) for axis in others)):
        place: list[Any] = [slice(None)] * cells.ndim
        for axis, value in zip(others, context, strict=True):
            place[axis] = value
        seen = {int(each) for each in np.ravel(cells[tuple(place)]) if each >= 0}
        flips += int(weights[tuple(place)].sum()) if len(seen) > 1 else 0
    return flips


@pytest.mark.parametrize("kept", [0, 100, 2**22])
@pytest.mark.parametrize("seed", range(4))
def test_sets_fold_to_their_contexts_in_any_order(seed: int, kept: int) -> None:
    rng = np.random.default_rng(seed)
    cells, weights = domain(rng)
    sets = [each for size in range(1, 5) for each in itertools.combinations(range(5), size)]
    own = Folding(cells, weights, kept)
    for number in rng.permutation(len(sets)).tolist():
        found = own.of(sets[number])
        assert int(found.weights[found.flips].sum()) == by_definition(cells, weights, sets[number])
        assert int(found.weights.sum()) == int(weights.sum())


NAMES = [f"c{number}" for number in range(6)]
SCHEMA = themis.Schema(dict.fromkeys(NAMES, range(3)))


def decide(table: Any) -> Any:
    """Each two neighbours matter together."""
    return sum(table[a] * table[b] for a, b in itertools.pairwise(NAMES)) % 5 > 2


def test_ctrl_c_while_found_sets_are_measured_keeps_what_was_found(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, audit = (themis.Audit(themis.batch(decide), SCHEMA, seed=1) for _ in range(2))
    expected = whole.search(0.3)
    assert expected.method == "exact"
    assert len(expected.minimal_sets) > 3
    own, measured = Search._score_of, []

    def interrupted(self: Any, *given: Any) -> Any:
        measured.append(given)
        if len(measured) > 2:
            raise KeyboardInterrupt
        return own(self, *given)

    monkeypatch.setattr(Search, "_score_of", interrupted)
    audit.sampler.keep_on_interrupt = True
    found = audit.search(0.3)
    assert (found.stopped, found.found) == ("interrupted", expected.found)
    assert [each.against for each in found.minimal_sets] == list(expected.found[:2])
