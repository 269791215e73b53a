"""Tables: whatever is shared between sets, every cell holds what its own input gives."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

import themis
from tests.oracle import World
from tests.worlds import Case, cases
from themis.engine import memory as memory_module
from themis.engine import tables as tables_module
from themis.engine.runner import Runner
from themis.engine.tables import Tables
from themis.engine.variants import Variants, all_variants
from themis.inputs import streams
from themis.inputs.assignments import Assignments
from themis.inputs.population import Population
from themis.inputs.streams import BaseInputs
from themis.subjects.decisions import FAILED, NO_COUNTERFACTUAL, NOT_RUN
from themis.subjects.labels import Labels
from themis.subjects.loading import subject_from

Row = dict[str, Any]

# What a cell may hold instead of a decision: tables number their labels as these appear, so they
# are compared by what the numbers mean.
MARKS = {FAILED: "failed", NO_COUNTERFACTUAL: "impossible", NOT_RUN: "not run"}


@dataclass(frozen=True)
class Question:
    """Some rows of the table of one set: all its cells, or those in some columns, or some cells."""

    columns: tuple[int, ...]
    start: int
    stop: int
    until_flip: bool = False
    active: tuple[bool, ...] | None = None  # over and over, as far as the table is wide


@dataclass(frozen=True)
class Setting:
    """A world and how its subject behaves."""

    case: Case
    failing: int = 0  # one input in so many has no decision; 0: none
    distinct: bool = True  # whether different inputs get different decisions, as far as they go
    vectorised: bool = False
    column_rows: int = 4_096  # from so many rows on, columns are batches of their own


class Desk:
    """The tables of one run, which answer questions, and all that was executed for them."""

    def __init__(self, setting: Setting) -> None:
        self.case, self.setting = setting.case, setting
        self.schema = setting.case.schema
        self.executed: list[tuple[Any, ...]] = []
        subject: Any = themis.batch(self._decide_all) if setting.vectorised else self._decide
        self.runner = Runner(subject_from(subject, self.schema), Labels(), max_failures=1.0)
        self.base = BaseInputs(Population.of(self.schema), 3)
        self.tables = Tables(self.base, self.runner)

    def _decide(self, row: Row) -> Any:
        self.executed.append(tuple(row.values()))
        return self.truth(row)

    def _decide_all(self, table: Any) -> Any:
        names = self.schema.names
        rows = zip(*(np.asarray(table[name]).tolist() for name in names), strict=True)
        return [self._decide(dict(zip(names, row, strict=True))) for row in rows]

    def truth(self, row: Row) -> Any:
        """What is decided; None, which is no decision, for some."""
        codes = [each.encode(row[each.name]) for each in self.schema]
        number = int(np.ravel_multi_index(codes, [each.size for each in self.schema]))
        if self.setting.failing and number % self.setting.failing == 0:
            return None
        if self.setting.distinct:
            return number % 97  # within what labels there may be
        return self.case.world.output(tuple(row.values()))

    def ask(self, question: Question) -> NDArray[Any]:
        """The cells of the answer, as decisions and marks."""
        variants = self.variants(question.columns)
        active = None
        if question.active is not None:
            active = np.resize(np.array(question.active), variants.width)
        rows, until_flip = (question.start, question.stop), question.until_flip
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(tables_module, "COLUMN_ROWS", self.setting.column_rows)
            _, cells = self.tables.fill(variants, *rows, active=active, until_flip=until_flip)
        return self.decoded(cells)

    def variants(self, columns: tuple[int, ...]) -> Variants:
        return all_variants(Assignments(self.schema, columns))

    def decoded(self, cells: Any) -> NDArray[Any]:
        labels = self.runner.labels.labels
        decoded = np.empty(cells.shape, dtype=object)
        for place, cell in np.ndenumerate(cells):
            decoded[place] = MARKS[cell] if cell < 0 else labels[cell]
        return decoded

    def inputs(self, question: Question) -> list[list[Row]]:
        """The input of each cell, put together by hand."""
        columns, rows = question.columns, range(question.start, question.stop)
        assignments = Assignments(self.schema, columns)
        levels = assignments.levels(np.arange(assignments.count)).tolist()
        return [[self._input(number, columns, each) for each in levels] for number in rows]

    def _input(self, number: int, columns: tuple[int, ...], levels: list[int]) -> Row:
        codes = self.base.rows(number, number + 1)[0].copy()
        for column, level in zip(columns, levels, strict=True):
            codes[column] = level
            if self.schema.characteristics[column].bin_starts is not None:
                codes[column] = self.base.members(column, number, number + 1)[0, level]
        return self.schema.decode_row(codes)

    def expected(self, question: Question) -> NDArray[Any]:
        """The cells by brute force: the decision on the input of each."""
        inputs = self.inputs(question)
        cells = np.empty((len(inputs), len(inputs[0])), dtype=object)
        for (row, column), _ in np.ndenumerate(cells):
            cells[row, column] = self._expected(inputs[row][column])
        return cells

    def _expected(self, row: Row) -> Any:
        if not self.case.world.valid(row):
            return MARKS[NO_COUNTERFACTUAL]
        decision = self.truth(row)
        return MARKS[FAILED] if decision is None else decision


@pytest.fixture(autouse=True)
def _forgetful(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tiny domains are treated like large ones, of which only tables know what was run."""
    monkeypatch.setattr(memory_module, "WHOLE_LIMIT", 0)
    monkeypatch.setattr(streams, "CHUNK", 8)  # base inputs are drawn in so many at a time


@st.composite
def any_questions(draw: Any) -> tuple[Setting, list[Question]]:
    """With few or many decisions, and with tables of which not all is wanted."""
    setting = draw(
        st.builds(
            Setting,
            case=cases(),
            failing=st.sampled_from([0, 2, 5]),
            distinct=st.booleans(),
            vectorised=st.booleans(),
            column_rows=st.sampled_from([1, 4, 4_096]),
        )
    )
    columns = st.sets(st.integers(0, len(setting.case.schema) - 1), min_size=1, max_size=3)
    active = st.none() | st.lists(st.booleans(), min_size=1, max_size=5).map(tuple)
    questions = []
    for _ in range(draw(st.integers(2, 6))):
        chosen, start, until_flip = draw(columns), draw(st.integers(0, 6)), draw(st.booleans())
        stop = start + draw(st.integers(1, 8))
        wanted = None if until_flip else draw(active)
        questions.append(Question(tuple(sorted(chosen)), start, stop, until_flip, wanted))
    return setting, questions


# Sharing ----------------------------------------------------------------------------------


@given(any_questions())
def test_cells_are_true_or_not_wanted_whatever_was_asked_before(
    asked: tuple[Setting, list[Question]],
) -> None:
    setting, questions = asked
    shared = Desk(setting)
    for question in questions:
        found, truth = shared.ask(question), shared.expected(question)
        unknown = found == MARKS[NOT_RUN]
        assert found[~unknown].tolist() == truth[~unknown].tolist()
        if question.until_flip:
            for row in found[unknown.any(axis=1)].tolist():
                assert len(set(row) - set(MARKS.values())) > 1  # it was left because it flips
        else:
            wanted = (True,) if question.active is None else question.active
            assert not unknown[:, np.resize(np.array(wanted), found.shape[1])].any()


@pytest.fixture(scope="module")
def ask_all() -> Iterator[None]:
    """Tables of other sets are asked however little they may know."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables_module, "FEWEST_RECALLED", 0)
        yield


@pytest.mark.usefixtures("ask_all")
@given(any_questions())
def test_no_variant_of_a_row_is_executed_twice(asked: tuple[Setting, list[Question]]) -> None:
    """From the first row on: what comes after a gap is not kept."""
    setting, questions = asked
    shared = Desk(setting)
    known: set[tuple[Any, ...]] = set()
    cells = 0
    for question in questions:
        question = replace(question, start=0)
        found, inputs = shared.ask(question), shared.inputs(question)
        run = ~np.isin(found, [MARKS[NOT_RUN], MARKS[NO_COUNTERFACTUAL]])
        told = [(row, *inputs[row][column].values()) for row, column in np.argwhere(run).tolist()]
        known.update(told)
        cells += len(told)
        assert len(shared.executed) == shared.runner.executions == len(known)
        assert shared.runner.cache_hits == cells - len(known)


def plain(*sizes: int, **behaviour: Any) -> Setting:
    """A world without bins, weights or constraints, in which every input decides differently."""
    schema = themis.Schema({f"c{place}": range(size) for place, size in enumerate(sizes)})
    world = World((), lambda row: True, lambda row: None)
    return Setting(Case(schema, None, world, ()), **behaviour)


def test_a_superset_and_a_neighbour_take_over_what_they_have_in_common() -> None:
    desk = Desk(plain(3, 2, 4))
    counts = []
    for columns in [(0, 1), (1, 2), (0,), (0, 1, 2), (0, 1, 2)]:
        before = len(desk.executed)
        question = Question(columns, 0, 10)
        assert desk.ask(question).tolist() == desk.expected(question).tolist()
        counts.append((len(desk.executed) - before) // 10)
    # (1, 2): 8 less the 2 values of c1; all three: 24 less the 6 of (0, 1) and 6 more of (1, 2)
    assert counts == [6, 6, 0, 12, 0]


def test_what_explains_a_score_is_no_part_of_the_tables() -> None:
    desk = Desk(plain(3, 2, 4, failing=2))
    with desk.runner.apart():
        desk.ask(Question((0,), 0, 10))
    assert desk.runner.failures.total == 0
    desk.ask(Question((0,), 0, 10))
    assert (desk.runner.cache_hits, len(desk.executed)) == (0, 60)


# Base inputs ------------------------------------------------------------------------------
@settings(max_examples=50)
@given(any_questions(), st.integers(0, 4), st.integers(0, 4))
def test_known_outputs_of_base_inputs_are_true(
    asked: tuple[Setting, list[Question]], start: int, kept: int
) -> None:
    setting, questions = asked
    desk = Desk(setting)
    codes = desk.base.rows(0, 12)
    desk.tables.memory.keep_base(0, desk.runner.run(codes[:kept]))
    for question in questions:
        desk.ask(question)
    found = desk.decoded(desk.tables.known_outputs(codes[start:], start)).tolist()
    truth = [desk._expected(desk.schema.decode_row(row)) for row in codes[start:]]
    for number, (cell, wanted) in enumerate(zip(found, truth, strict=True), start=start):
        assert cell == wanted or (cell == MARKS[NOT_RUN] and number >= kept)


def test_outputs_of_base_inputs_after_a_gap_are_not_kept() -> None:
    desk = Desk(plain(9, 9))
    codes = desk.base.rows(0, 9)
    cells = desk.runner.run(codes)
    for start, stop, known in [(0, 3, 3), (4, 6, 3), (2, 5, 5), (3, 4, 5), (6, 9, 5)]:
        desk.tables.memory.keep_base(start, cells[start:stop])
        found = desk.tables.known_outputs(codes, 0).tolist()
        assert found == [*cells[:known].tolist(), *[NOT_RUN] * (9 - known)]


@pytest.mark.parametrize("rows", [1, 7, 64])
def test_what_is_run_does_not_depend_on_how_rows_are_cut(rows: int) -> None:
    """Blocks of functions that run row by row are as large as their speed allows."""
    schema = themis.Schema(a=list(range(9)), b=themis.Integers(0, 10**9))

    def measure(block_rows: int) -> tuple[Any, ...]:
        audit = themis.Audit(lambda row: row["b"] % 9 > row["a"], schema, seed=3, probe=0)
        audit.sampler.block_rows = block_rows
        cells = [
            audit.sampler.tables.fill(
                all_variants(Assignments(schema, (0,))), start, stop, until_flip=True
            )[1]
            for start, stop in audit.sampler.blocks(0, 200, 9)
        ]
        return audit.runner.executions, (np.concatenate(cells) == NOT_RUN).tolist()

    assert measure(rows) == measure(200)
