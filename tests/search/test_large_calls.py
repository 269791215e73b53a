"""Sets that are decided together in a few large calls: the same answers as one after another."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import themis
from themis.results.parts import TestedSet
from themis.search import flips
from themis.search.betting import GroupDecider
from themis.search.deciding import SearchRequest
from themis.search.flips import FlipBook

A_B_C = tuple(range(3))

PARTS: dict[str, Any] = {"a": [0, 1, 2], "b": range(6), "c": [0, 1], "d": range(40)}
WORLDS = {
    "plain": themis.Schema(PARTS),
    "constraints": themis.Schema(PARTS, constraints=["a != 2 or b > 1", "c == 0 or d < 30"]),
    "missing": themis.Schema(
        PARTS
        | {
            "a": themis.Values([0, 1, 2], missing=0.2),
            "b": themis.Integers(0, 5, missing=0.1, missing_as_counterfactual=True),
        }
    ),
    "bins": themis.Schema(PARTS | {"b": themis.Integers(0, 59, bins=[10, 25, 40])}),
}


def number(column: Any) -> NDArray[np.float64]:
    return np.array([-1.0 if each is None else each for each in column], dtype=float)


def rule(table: themis.InputTable) -> list[str | None]:
    a, b, c, d = (number(table[name]) for name in "abcd")
    good = (a * b + 7 * c + d) % 11 > 3
    return ["no answer" if x == 13 else "yes" if y else "no" for x, y in zip(d, good, strict=True)]


def book(world: str) -> FlipBook:
    audit = themis.Audit(themis.batch(rule), WORLDS[world], seed=4, favourable="yes")
    return FlipBook(audit.sampler, A_B_C, cap=50_000)


@pytest.mark.parametrize("at_once", [7, 2**17])
@pytest.mark.parametrize("world", WORLDS)
def test_inputs_are_settled_together_as_they_are_one_set_after_another(
    monkeypatch: pytest.MonkeyPatch, world: str, at_once: int
) -> None:
    monkeypatch.setattr(flips, "CELLS_AT_ONCE", at_once)
    together, apart = book(world), book(world)
    together.exhaust([0b001, 0b110], 30)  # first a part of it
    together.exhaust(range(1, 8), 60)
    for mask in range(1, 8):
        known = together.known(mask, 60)
        assert (known == apart.states(mask, 0, 60)).all()
        assert len(set(known.tolist())) > 1, "it shows something"


def searched(calls: bool, **options: Any) -> tuple[themis.SearchResult, int]:
    sizes = {"a": 6, "b": 5, "c": 4, "d": 8, "e": 3, "rest": 10**6}
    schema = themis.Schema({name: range(size) for name, size in sizes.items()})

    def points(table: themis.InputTable) -> Any:
        weights = {"a": 4, "b": 9, "c": 1, "d": 6, "e": 2}
        return sum(w * table[n] for n, w in weights.items()) + table["rest"] % 97 > 90

    budget = {} if calls else {"max_executions": 10**7 - 1}
    audit = themis.Audit(themis.batch(points), schema, seed=1, **budget)
    result = audit.search(among=list("abcde"), max_size=3, **options)
    return result, audit.runner.account.calls


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("threshold", [0.2, 0.35])
@pytest.mark.parametrize(("measure", "calls", "each", "share"), [
    ("causal", 36, 0, 8),  # however many are found; each took six more
    ("group", 20, 5, 5),  # each has a score of its own
])  # fmt: skip
def test_a_search_takes_few_calls_and_finds_the_same(
    measure: str, calls: int, each: int, share: int, threshold: float
) -> None:
    together, few = searched(True, threshold=threshold, measure=measure)
    apart, many = searched(False, threshold=threshold, measure=measure)
    assert together.found == apart.found
    assert len(together.found) > (measure == "causal")
    assert few <= calls + each * len(together.found)
    assert few < many / share


@pytest.mark.parametrize("world", WORLDS)
def test_sets_are_decided_by_groups_together_as_they_are_alone(world: str) -> None:
    def points(table: themis.InputTable) -> Any:
        a, b, c, d = (number(table[name]) for name in "abcd")
        return (a + b / 4 + 4 * c + d / 4) > 8

    def decided(together: bool) -> list[TestedSet]:
        audit = themis.Audit(themis.batch(points), WORLDS[world], seed=4)
        request = SearchRequest(audit.sampler, audit.settings, "group", 0.2, A_B_C, 3)
        decider = GroupDecider(request)
        if together:
            decider.prepare([(mask, 0.01) for mask in range(1, 8)])
        return [decider.decide(mask, 0.01) for mask in range(1, 8)]

    assert decided(True) == decided(False)
    assert len({each.decision for each in decided(True)}) > 1, "it shows something"


def any_of_six(table: themis.InputTable) -> Any:
    """Whether two of seven things are true, of which six are to be found."""
    return sum((table[name] == 0).astype(int) for name in "abcdef") + table["rest"] % 2 > 1


def test_an_interrupt_within_a_check_ends_its_search() -> None:
    schema = themis.Schema({name: range(4) for name in "abcdef"} | {"rest": range(10**6)})

    def checked(last: int) -> tuple[themis.SearchResult, int]:
        """A search that is interrupted at its last call, and how many there were."""
        calls = 0

        def decide(table: themis.InputTable) -> Any:
            nonlocal calls
            calls += 1
            if calls == last:
                raise KeyboardInterrupt
            return any_of_six(table)

        audit = themis.Audit(themis.batch(decide), schema, seed=1)
        audit.sampler.keep_on_interrupt = True
        limits: Any = {"max_size": 1, "accepted": lambda _: None}
        return audit.search_all(0.1, ["group"], list("abcdef"), **limits).searches[0], calls

    whole, total = checked(0)
    assert len(whole.found) == 6
    for last in range(4, total - 8):
        result, calls = checked(last)
        assert (result.stopped, calls) == ("interrupted", last)


def test_pairs_of_found_sets_are_their_own() -> None:
    result, _ = searched(True, threshold=0.2)
    assert len(result.minimal_sets) > 2
    for score in result.minimal_sets:
        assert isinstance(score, themis.CausalScore)
        assert score.witnesses
        assert score.direction
        assert score.account is not None
        assert 0 < score.account.explanations < 2_000
        for first, second in (each.inputs for each in score.witnesses):
            assert first != second
            assert {name for name in first if first[name] != second[name]} <= set(score.against)
    parts = sum(score.account.explanations for score in result.minimal_sets if score.account)
    assert result.account is not None
    assert parts <= result.account.explanations


def noting(decide: Callable[[themis.InputTable], Any]) -> tuple[Any, list[int]]:
    """A function of a table, and the sizes of its calls."""
    sizes: list[int] = []
    return themis.batch(lambda table: sizes.append(len(table)) or decide(table)), sizes


def test_sets_too_wide_to_be_settled_at_once_take_few_calls_too() -> None:
    subject, sizes = noting(lambda t: t["income"] >= 30 + 10 * ((t["sex"] == 0) & (t["age"] < 40)))
    schema = themis.Schema(
        sex=range(2), race=range(3), age=range(18, 81), income=range(101), zip=range(300)
    )
    assert themis.Audit(subject, schema, seed=1).search(0.3, max_size=2).found == (("income",),)
    assert len(sizes) <= 45  # 82 when tries began with one variant
    assert sum(size < 100 for size in sizes) <= 10  # which were 41


def test_sets_with_too_many_assignments_are_sampled_together() -> None:
    subject, sizes = noting(lambda t: (t["a"] < 150) & (t["b"] < 150))
    wide = themis.Schema(a=range(300), b=range(300), c=range(300), d=range(10**6))
    result = themis.Audit(subject, wide, seed=1).search(0.75, among=["a", "b", "c"], max_size=2)
    assert result.found == (("a", "b"),)
    pairs = {each.against: each.decision for each in result.tested if len(each.against) == 2}
    assert pairs == {("a", "b"): "above", ("a", "c"): "undecided", ("b", "c"): "undecided"}
    assert len(sizes) <= 25  # 79 when each was tried by itself
