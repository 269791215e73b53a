"""The waves in which the variants of a cell are run."""

from __future__ import annotations

import itertools
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import themis
from tests.slotted import Slotted
from themis.audit.run import start_budget
from themis.search import cells
from themis.search.cells import UNTRIED
from themis.search.flips import FlipBook
from themis.search.lattice import members
from themis.subjects.base import BudgetEndedError
from themis.subjects.readings import CONSTANT, FLIP


@pytest.mark.parametrize("mask", [0b001, 0b011, 0b111])
def test_no_large_batch_holds_one_assignment_only(mask: int) -> None:
    schema = themis.Schema(a=[0, 1], b=[0, 1, 2], c=[0, 1], d=themis.Integers(0, 10**8))
    subject = Slotted(64, lambda p: int(p["a"] == p["b"] == p["c"] == 1 and p["d"] % 3 > 0), schema)
    sampler = themis.Audit(subject, schema, seed=2).sampler
    FlipBook(sampler, (0, 1, 2), cap=50_000).states(mask, 0, 200)
    large = [codes[:, members(mask)] for codes in subject.batches if len(codes) >= 50]
    assert len(large) > 1
    assert all(len(np.unique(codes, axis=0)) > 1 for codes in large)


def test_inputs_that_a_budget_left_in_the_middle_go_on_where_they_were() -> None:
    schema = themis.Schema(a=range(60), x=range(10**6))

    def decide(table: themis.InputTable) -> Any:
        return (table["a"] == 50 + table["x"] % 10) & (table["x"] % 3 > 0)

    audit = themis.Audit(themis.batch(decide), schema, seed=1, cost="executions")
    book = FlipBook(audit.sampler, (0,), cap=50_000)
    start_budget(audit.runner, audit.settings.changed(max_executions=600))
    with pytest.raises(BudgetEndedError):
        book.states(0b1, 0, 60)
    start_budget(audit.runner, audit.settings)
    book.states(0b1, 60, 300)  # teaches which variants are worth a try, first of all
    x = audit.sampler.tables.base.rows(0, 60)[:, 1]
    np.testing.assert_array_equal(book.states(0b1, 0, 60), np.where(x % 3 > 0, FLIP, CONSTANT))


@pytest.mark.parametrize("stop", range(1, 30, 7))
def test_an_interrupt_while_cells_grow_spoils_nothing(
    monkeypatch: pytest.MonkeyPatch, stop: int
) -> None:
    """The same question again, as in a notebook, gives the answer of a run without interrupts."""
    schema = themis.Schema(a=range(4), b=range(4), rest=range(10**5))
    subject = themis.batch(lambda t: t["rest"] % 100 > 50 + 3 * t["a"] * t["b"])
    expected = themis.Audit(subject, schema, seed=1).search(0.2, among=["a", "b"])
    audit, calls = themis.Audit(subject, schema, seed=1), itertools.count(1)

    def concatenate(parts: Any) -> Any:
        if next(calls) == stop:
            raise KeyboardInterrupt
        return np.concatenate(parts)

    with monkeypatch.context() as patch:
        patch.setattr(cells, "np", SimpleNamespace(**{**vars(np), "concatenate": concatenate}))
        with pytest.raises(KeyboardInterrupt):
            audit.search(0.2, among=["a", "b"])
    assert audit.search(0.2, among=["a", "b"]).found == expected.found


def test_inputs_that_are_settled_teach_what_flips_the_others() -> None:
    """Searches of trees took two to four times as many executions where they did not."""
    schema = themis.Schema(a=range(200), b=range(20), x=range(10**6))
    subject = themis.batch(lambda t: (t["a"] == 150) ^ (t["x"] % 2 > 0))
    audit = themis.Audit(subject, schema, seed=1, cost="executions")
    book = FlipBook(audit.sampler, (0, 1), cap=50_000)
    states = book.probe(0b11, 0, 200)
    open_places = np.flatnonzero(states == UNTRIED)
    states = book.settle(0b11, states, 0, open_places[:10])
    taught = book.probe_again(0b11, states, 10 * len(open_places))
    assert (taught == FLIP).mean() > 0.9
