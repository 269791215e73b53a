"""Every command, however it ends, has the same result wherever the subject runs."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any

import loky
import pandas as pd
import pytest

from tests.clocks import Clock
from tests.projects import NUMBERS, enter, run
from themis.engine import account, runner, tables
from themis.engine.executors import pools, spread
from themis.scores import domain, scorer
from themis.subjects import base

MODULE = """
import numpy as np

def fails(p):
    return (p["income"] * 7 + p["savings"]) % 1000 < {failing}

def row(p):
    if fails(p):
        raise ValueError("no rule")
    return p["income"] + p["savings"] / 10 > {{"green": 300, "purple": 500, "blue": 400}}[p["race"]]

def table(p):
    limit = np.select([p["race"] == "green", p["race"] == "purple"], [300, 500], 400)
    answers = (p["income"] + p["savings"] / 10 > limit).astype(object)
    answers[fails(p)] = None
    return answers

def raising(p):
    if fails(p).any():
        raise ValueError("no rule")
    return table(p)
"""
FILE = """\
version = 1
[subject]
kind = "python"
function = "{module}:{function}"
call = "{call}"
favourable = [true]
max_failures = {allowed}
[inputs]
race = {{ values = ["green", "purple", "blue"], protected = true }}
sex = {{ values = ["f", "m"], protected = true }}
income = {{ min = 0, max = 999, step = {step} }}
savings = {{ min = 0, max = 999, step = {step} }}
[run]
error = 0.1
[[checks]]
measure = "causal"
against = ["race"]
max_score = 0.05
[[checks]]
measure = "group"
against = ["sex"]
max_score = 0.9
"""
COMMANDS = {
    "score": ["score"],
    "search": ["search", "--threshold", "0.1", "--among", "race", "--among", "sex"],
    "apparent": ["apparent", "--data", "people.csv"],
    "check": ["check"],
    "audit": ["audit", "--output", "audit"],
    "exact": ["score", "--exact"],
}


@dataclass(frozen=True)
class Case:
    """How often the subject fails among 1,000, and what is allowed."""

    failing: int = 0
    allowed: float = 0.0
    options: tuple[str, ...] = ()
    exits: tuple[int, ...] = (0, 1, 4)
    stopped: str = "done"


ENDINGS = {
    "done": Case(),
    "failing at once": Case(300, 0.05, exits=(3,), stopped="failed"),
    "failing later": Case(120, 0.05, exits=(3,), stopped="failed"),
    "out of budget": Case(100, 0.9, ("--max-executions", "400"), stopped="budget"),
}
FUNCTIONS = ("row", "table", "raising")
TURNS = [
    (command, ending, FUNCTIONS[(place + place // len(ENDINGS)) % len(FUNCTIONS)])
    for place, (command, ending) in enumerate(product(COMMANDS, ENDINGS))
]


@pytest.fixture(autouse=True)
def _many_parts(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Nothing is run here first; batches have several tasks and calls, tables whole columns.

    No call takes time: slow calls of a function of a table are made shorter, so that an interrupt
    is heard, and of a call that fails other inputs are run alone than of a shorter one.
    """
    Clock.put_into(monkeypatch, runner, base)
    for module, name, value in (
        (spread, "HERE_SECONDS", 0.0),
        (spread, "MOST", 64),
        (account, "CALL", 150),
        (tables, "COLUMN_ROWS", 64),
        (scorer, "EXACT_LIMIT", 0),
        (domain, "PIECE", 500),
    ):
        monkeypatch.setattr(module, name, value)
    enter(tmp_path, monkeypatch)
    people = pd.DataFrame(
        {
            "race": ["green", "purple", "blue", "green"] * 50,
            "sex": ["f", "f", "m", "m", "m"] * 40,
            "income": [each * 391 % 1000 for each in range(200)],
            "savings": [each * 777 % 1000 for each in range(200)],
        }
    )
    people.to_csv("people.csv", index=False)


def workers(kind: Callable[..., Executor], count: int) -> Any:
    """A fixture: an executor with so many of them."""

    @pytest.fixture(scope="module")
    def started() -> Iterator[Executor]:
        with kind(count) as executor:
            yield executor

    return started


threads = workers(ThreadPoolExecutor, 4)
two = workers(loky.ProcessPoolExecutor, 2)
four = workers(loky.ProcessPoolExecutor, 4)


def write(command: str, case: Case, function: str) -> None:
    """The subject and its file; modules are imported once in a process."""
    module = f"everywhere_{next(NUMBERS)}"
    Path(f"{module}.py").write_text(MODULE.format(failing=case.failing))
    call, step = "row" if function == "row" else "batch", 37 if command == "exact" else 1
    Path("themis.toml").write_text(
        FILE.format(module=module, function=function, call=call, step=step, allowed=case.allowed)
    )


def result_of(command: str, case: Case, executor: Executor | str | None) -> tuple[int, str]:
    """The exit code and the JSON without its timing, for an executor that runs already."""
    with pytest.MonkeyPatch.context() as patch:
        options = [*COMMANDS[command], *case.options, "--no-progress"]
        if executor is not None:
            if not isinstance(executor, str):
                patch.setattr(spread, "pool_of", lambda _: pools.GivenPool(executor))
            options += ["--executor", executor if isinstance(executor, str) else "processes:2"]
        found = run(*options, *(() if command == "audit" else ("--json",)))
    text = Path("audit/result.json").read_text() if command == "audit" else found.stdout
    assert text, found.output
    document = json.loads(text)
    del document["timing"]
    assert document["stopped"] == case.stopped, found.output
    return found.exit_code, json.dumps(document)


def results_of(turn: tuple[str, str, str], *executors: Executor | str) -> list[tuple[int, str]]:
    """The results here, and of each executor."""
    command, ending, function = turn
    case = ENDINGS[ending]
    write(command, case, function)
    here, *there = (result_of(command, case, each) for each in (None, *executors))
    assert here[0] in case.exits
    return [here, *there]


@pytest.mark.some_slow(core=24, full=3)
@pytest.mark.parametrize("turn", TURNS, ids=" ".join)
def test_results_are_the_same_however_a_command_ends(
    turn: tuple[str, str, str], two: Executor, threads: Executor
) -> None:
    here, *there = results_of(turn, two, threads)
    assert there == [here, here]


def test_they_are_the_same_where_each_task_is_one_input(
    threads: Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spread, "MOST", 1)  # as slow subjects have
    here, there = results_of(("search", "out of budget", "raising"), threads)
    assert there == here


@pytest.fixture(scope="module")
def cluster() -> Iterator[str]:
    from tests.engine.test_dask import a_cluster, address

    with a_cluster(n_workers=2, threads_per_worker=1) as cluster:
        yield address(cluster)


@pytest.mark.slow
@pytest.mark.some_slow(core=1, full=3)
@pytest.mark.parametrize("turn", TURNS[::5], ids=" ".join)
def test_they_are_the_same_in_four_processes_and_on_a_cluster(
    turn: tuple[str, str, str], four: Executor, cluster: str
) -> None:
    here, *there = results_of(turn, four, cluster)
    assert there == [here, here]
