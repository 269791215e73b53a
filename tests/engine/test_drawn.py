"""Inputs that are described are those that would be sent, and are all that a task carries."""

from __future__ import annotations

import pickle
from collections.abc import Iterator
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import loky
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from tests.engine.test_executors import SCHEMA, audit, everything, table
from tests.engine.test_variants import CONDITIONS, schema_of
from tests.joint_worlds import plain_world
from themis.engine import memory, tables
from themis.engine.executors import spread, travel
from themis.engine.executors.travel import Missing, Packed, pack, run_task
from themis.engine.variants import Drawn, Variants, base_rows
from themis.errors import RequestError
from themis.inputs.assignments import Assignments
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.streams import FIRST_CHUNK, BaseInputs
from themis.subjects.functions import BatchFunction

Numbers = np.ndarray[Any, Any]


@st.composite
def schemas(draw: Any) -> Schema:
    if draw(st.booleans()):
        return schema_of(draw(st.lists(st.sampled_from(CONDITIONS[:-1]), unique=True, max_size=3)))
    seed = draw(st.integers(0, 30))
    return plain_world(seed, binned=draw(st.booleans())).schema


@st.composite
def populations(draw: Any) -> Population:
    """Listed and found by trying, weighted, of those who have a value, or people with weights."""
    schema = draw(schemas())
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    if draw(st.integers(0, 3)) == 0:
        people = Population.of(schema)
        codes = np.unique(BaseInputs(people, 1).rows(0, 50), axis=0)
        return Population.of_people(schema, codes, rng.random(len(codes)))
    with pytest.MonkeyPatch.context() as patched:
        if draw(st.booleans()):
            patched.setattr("themis.inputs.population.ENUMERATION_LIMIT", 1)
        population = Population.of(schema)
    return population.with_values(range(len(schema))) or population


@st.composite
def tables_of_sets(draw: Any) -> tuple[BaseInputs, int, Numbers, Variants, Numbers]:
    population = draw(populations())
    base = BaseInputs(
        population, draw(st.integers(0, 99)), branch=draw(st.sampled_from([(), (7,)]))
    )
    columns = draw(st.sets(st.integers(0, len(population.schema) - 1), min_size=1))
    assignments = Assignments(population.schema, tuple(sorted(columns)))
    variants = Variants.of(assignments, limit=draw(st.sampled_from([4, 10**6])), base=base)
    start = draw(st.sampled_from([0, 5, FIRST_CHUNK - 3]))
    rows = np.arange(draw(st.integers(1, 12)))
    if draw(st.booleans()):
        rows = np.array(sorted(draw(st.sets(st.integers(0, 20), min_size=1))))
    chosen = draw(st.lists(st.integers(0, variants.width - 1), min_size=1, max_size=5, unique=True))
    return base, start, rows, variants, np.array(chosen)


@given(tables_of_sets(), st.data())
def test_what_a_process_draws_is_what_would_be_sent(asked: Any, data: st.DataObject) -> None:
    base, start, rows, variants, places = asked
    row, column = np.tile(rows, len(places)), np.repeat(places, len(rows))
    every = base_rows(base, variants.assignments, start, start + int(rows[-1]) + 1)
    sent = every.inputs(variants, row, column)
    assert_travels(Drawn.of(base, start, rows, variants, places), sent, (base,), data)


def assert_travels(drawn: Drawn, sent: Numbers, streams: Any, data: st.DataObject) -> None:
    for _ in range(2):  # parts of parts are parts
        first = data.draw(st.integers(0, len(drawn) - 1))
        last = data.draw(st.integers(first + 1, len(drawn)))
        sent, drawn = sent[first:last], drawn[first:last]
        task = pickle.loads(pickle.dumps(drawn))
        assert task.streams is None
        there = replace(task, streams=pickle.loads(pickle.dumps(streams))).codes()
        assert there.dtype == sent.dtype
        assert len(task) == len(sent)
        assert there.tolist() == sent.tolist()
    some = np.array(data.draw(st.lists(st.integers(0, len(sent) - 1), min_size=1)))
    assert drawn[some].tolist() == sent[some].tolist()
    assert drawn[int(some[0])].tolist() == sent[int(some[0])].tolist()


class Noting(Executor):
    """Runs tasks in a thread, and keeps what they were given, as it would travel."""

    def __init__(self) -> None:
        self._threads = ThreadPoolExecutor(1)
        self.tasks: list[tuple[int, bool, bool, int]] = []  # bytes, subject, codes, and inputs

    def submit(self, function: Any, /, *args: Any, **_: Any) -> Future[Any]:
        _, packed, inputs = args
        codes = not isinstance(inputs, Drawn) or inputs.with_streams
        self.tasks.append((len(pickle.dumps(args)), packed is not None, codes, len(inputs)))
        return self._threads.submit(function, *args)

    def shutdown(self, *given: Any, **options: Any) -> None:
        self._threads.shutdown(*given, **options)


@pytest.fixture(autouse=True)
def _at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing is run here first, and nothing is remembered."""
    monkeypatch.setattr(spread, "HERE_SECONDS", 0.0)
    monkeypatch.setattr(memory, "WHOLE_LIMIT", 0)


@pytest.fixture(scope="module")
def processes() -> Iterator[Executor]:
    with loky.ProcessPoolExecutor(2) as executor:
        yield executor


@pytest.mark.parametrize("error", [0.01, pytest.param(0.004, marks=pytest.mark.slow)])
@pytest.mark.parametrize("measure", ["causal", "group"])
def test_a_task_is_a_few_hundred_bytes_however_many_rows_it_has(
    monkeypatch: pytest.MonkeyPatch, measure: str, error: float
) -> None:
    monkeypatch.setattr(spread, "TASK_SECONDS", 600.0)  # on a machine of any speed
    with Noting() as noting:
        asked = audit(themis.batch(table), noting, error=error)
        for against in ("race", "sex"):
            getattr(asked, measure)(against)
    drawn = [(size, inputs) for size, _, codes, inputs in noting.tasks if not codes]
    assert max(size for size, _ in drawn) < 1_000
    assert max(inputs for _, inputs in drawn) > 10_000
    assert sum(packed for _, packed, *_ in noting.tasks) <= spread.IN_FLIGHT, "to one process"


@pytest.mark.parametrize("fails", [pytest.param(False, marks=pytest.mark.slow), True])
def test_groups_with_own_inputs_are_the_same_there(fails: bool, processes: Executor) -> None:
    """The group score of a set that a constraint links with another characteristic."""

    def decide(people: themis.InputTable) -> Any:
        if fails and (people["income"] == 17).any():
            raise ValueError("no rule")
        return table(people)

    schema = SCHEMA.where("race != 'green' or sex != 'f'")
    options: dict[str, Any] = {"favourable": ["yes"], "max_failures": 0.5, "error": 0.02}
    results = []
    for place in (None, processes):
        subject = themis.batch(decide)
        with themis.Audit(subject, schema, seed=1, executor=place, **options) as asked:
            result = asked.score([("race",)], measures=["group"])
            results.append(replace(result, timing={}).to_dict())
    assert results[0] == results[1]
    assert not fails or results[0]["failures"]["crash"]["input"]["income"] == 17


@pytest.mark.parametrize("where", ["processes", pytest.param("dask", marks=pytest.mark.long)])
def test_results_are_the_same_whether_inputs_are_drawn_or_sent(
    where: str, processes: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tables have whole columns from few rows on, and batches several tasks."""
    monkeypatch.setattr(tables, "COLUMN_ROWS", 64)
    monkeypatch.setattr(spread, "MOST", 100)
    made, of = list[Drawn](), Drawn.of
    monkeypatch.setattr(Drawn, "of", lambda *given: made.append(of(*given)) or made[-1])
    if where == "dask":
        pytest.importorskip("distributed", reason="Dask is not installed")
    place = "dask://local" if where == "dask" else processes
    here = everything(audit(themis.batch(table), error=0.1))
    assert not made
    assert everything(audit(themis.batch(table), place, error=0.1)) == here
    count = len(made)
    assert count > 1
    monkeypatch.setattr(BaseInputs, "is_quick", False)
    assert everything(audit(themis.batch(table), place, error=0.1)) == here
    assert len(made) == count


def test_a_process_asks_for_what_it_lacks_and_refuses_another_numpy() -> None:
    schema = Schema(race=["green", "purple"], income=range(10**6))
    base = BaseInputs(Population.of(schema), 1)
    variants = Variants.of(Assignments(schema, (0,)), limit=10, base=base)
    drawn = Drawn.of(base, 0, np.arange(50), variants, np.arange(2))
    subject = BatchFunction(lambda people: people["income"], schema)
    expected = drawn.codes()[:, 1].tolist()
    sent = replace(drawn, with_streams=True)

    def answers(packed: Packed | None, inputs: Drawn) -> Any:
        done = run_task("draws", packed, pickle.loads(pickle.dumps(inputs)))
        return done if isinstance(done, Missing) else list(done.answers.outputs)

    try:
        assert answers(None, drawn) is Missing.SUBJECT
        with pytest.raises(RequestError, match=r"NumPy is 1\.0 here"):
            answers(replace(pack(subject), numpy="1.0"), drawn)
        assert answers(pack(subject), drawn) is Missing.STREAM
        assert answers(None, sent) == expected
        assert answers(None, drawn) == expected
        for number in range(travel.MOST_STREAMS):
            answers(None, replace(sent, name=str(number)))
        assert answers(None, drawn) is Missing.STREAM, "few are kept"
    finally:
        travel._known.clear()
