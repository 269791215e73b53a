"""Is what a result reports exactly what the subject was given, whatever it was run for?"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from tests.external import lasting, ran, write_command, write_worker
from tests.services import Reply, Request, serve
from themis.audit.checker import run_checks
from themis.results.model import Result, Score, SearchResult
from themis.results.parts import Account
from themis.results.verdicts import Check

SMALL = themis.Schema(race=["green", "purple"], sex=["f", "m"], savings=range(100))
LARGE = themis.Schema(
    race=["green", "purple"], sex=["f", "m"], savings=range(1_000), income=range(10**6)
)


@dataclass
class Counted:
    """What a subject of some kind was given so far."""

    inputs: int = 0
    calls: int = 0

    def count(self, inputs: int) -> None:
        self.inputs, self.calls = self.inputs + inputs, self.calls + 1


def fair(table: Any, green: int = 50, others: int = 60) -> Any:
    return table["savings"] % 100 > np.where(table["race"] == "green", green, others)


def row_function(seen: Counted) -> Any:
    def loan(person: dict[str, Any]) -> bool:
        seen.count(1)
        return bool(person["savings"] % 100 > (50 if person["race"] == "green" else 60))

    return loan


def keywords(seen: Counted) -> Any:
    return themis.keywords(lambda **person: row_function(seen)(person))


def batch_function(seen: Counted, answer: Callable[[Any], Any] = fair) -> Any:
    def loan(table: themis.InputTable) -> Any:
        seen.count(len(table))
        return answer(table)

    return themis.batch(loan)


def crashing(seen: Counted) -> Any:
    def answer(table: themis.InputTable) -> Any:
        if (table["savings"] == 7).any():
            raise ValueError("not with these savings")
        return fair(table)

    return batch_function(seen, answer)


def model(seen: Counted) -> Any:
    class Model:
        def predict(self, frame: Any) -> Any:
            seen.count(len(frame))
            return fair(frame).to_numpy()

    return Model()


def noisy(seen: Counted) -> Any:
    rng = np.random.default_rng(1)
    return batch_function(seen, lambda table: fair(table, 30, 70) ^ (rng.random(len(table)) < 0.02))


def among_neighbours(seen: Counted) -> Any:
    return batch_function(seen, lambda table: table["savings"] > table["savings"].mean())


INNER = [row_function, keywords, batch_function, crashing, model, noisy, among_neighbours]
AMONG = ["race", "sex"]
ROWS = {"race": ["green", "purple"] * 20, "sex": ["f"] * 40, "savings": list(range(40, 80))}


def checked(audit: themis.Audit) -> Result:
    limits = [
        Check(against=("race",), max_score=0.5, name="race"),
        Check(max_score=0.5, search=True, name="any", measure="causal"),
    ]
    return run_checks(audit, limits, among=AMONG)


def rows_of(audit: themis.Audit) -> dict[str, list[Any]]:
    return {name: list(ROWS.get(name, range(40))) for name in audit.schema.names}


Ask = Callable[[themis.Audit], Result | Score | SearchResult]
QUESTIONS: dict[str, Ask] = {
    "causal": lambda audit: audit.causal("race"),
    "group": lambda audit: audit.group("race"),
    "score": lambda audit: audit.score([["race"], ["race", "sex"]]),
    "paper": lambda audit: audit.causal("race", stopping="paper"),
    "search": lambda audit: audit.search(0.05, among=AMONG),
    "group search": lambda audit: audit.search(0.05, "group", among=AMONG),
    "searches": lambda audit: audit.search_all(0.05, ["causal", "group"], AMONG),
    "checks": checked,
    "apparent": lambda audit: audit.apparent(rows_of(audit), "race"),
    "drawn": lambda audit: audit.apparent(rows_of(audit), "race", draw=True),
}


def parts(answer: Result | Score | SearchResult) -> Iterator[Score | SearchResult]:
    if isinstance(answer, Result):
        yield from (*answer.scores, *answer.searches)
    elif isinstance(answer, SearchResult):
        yield from answer.minimal_sets


def assert_accounted(answer: Result | Score | SearchResult, received: int) -> None:
    """The account sums up to what was received, and so do those of its parts to theirs."""
    assert answer.account is not None
    assert answer.executions == answer.account.total == received
    for part in parts(answer):
        assert part.account is not None
        assert part.executions == part.account.total <= received


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.parametrize("make", INNER, ids=lambda each: each.__name__)
def test_reported_is_received_and_asking_again_executes_nothing(
    make: Callable[[Counted], Any], question: str
) -> None:
    """Of a domain that is run whole and of one that is sampled, in turn."""
    place = INNER.index(make) + list(QUESTIONS).index(question)
    seen, schema = Counted(), (SMALL, LARGE)[place % 2]
    audit = themis.Audit(make(seen), schema, seed=4, error=0.2, confidence=0.9, max_failures=0.5)
    ask = QUESTIONS[question]
    answer = ask(audit)
    assert_accounted(answer, seen.inputs)
    assert seen.inputs > 0
    if isinstance(answer, Result):
        assert answer.timing["calls"] == seen.calls
    first = seen.inputs
    again = ask(audit)
    assert_accounted(again, seen.inputs - first)
    if question != "checks":  # a check asks ever more precisely, and may go on where it ended
        assert seen.inputs == first
        assert numbers(again) == numbers(answer)


def numbers(answer: Any) -> Any:
    """What was measured, without what it cost."""
    return lasting(answer.to_dict())


@pytest.mark.some_slow(core=2)
@pytest.mark.parametrize(
    ("make", "question", "budget"),
    [
        (make, question, (40, 150, 700, 3_000)[(3 * row + column) % 4])
        for row, make in enumerate([row_function, batch_function, noisy])
        for column, question in enumerate(["score", "searches", "checks", "apparent"])
    ],
)
def test_a_budget_bounds_the_sum_of_all_executions(
    make: Callable[[Counted], Any], question: str, budget: int
) -> None:
    seen = Counted()
    audit = themis.Audit(make(seen), LARGE, seed=4, error=0.1, max_executions=budget)
    answer = QUESTIONS[question](audit)
    assert_accounted(answer, seen.inputs)
    assert seen.inputs <= budget


def test_each_purpose_is_told_apart() -> None:
    def spent(make: Callable[[Counted], Any], schema: themis.Schema, **options: Any) -> Account:
        audit = themis.Audit(make(Counted()), schema, error=0.1, **options)
        account = audit.score([["race"]], ["causal"]).account
        assert account is not None
        return account

    account = spent(batch_function, LARGE)
    assert min(account.sampling, account.noise, account.explanations) > 0 == account.isolating
    trusted = spent(batch_function, LARGE, deterministic=True)
    assert trusted == Account(account.sampling, 0, account.explanations)
    assert spent(crashing, SMALL, max_failures=0.5).isolating > 0


# Outside of this process -------------------------------------------------------------------
@contextmanager
def command(folder: Path, run: str) -> Iterator[tuple[Path, Callable[[], int]]]:
    yield write_command(folder, run=run, options="timeout_seconds = 60"), lambda: len(ran(folder))


@contextmanager
def worker(folder: Path, run: str) -> Iterator[tuple[Path, Callable[[], int]]]:
    yield write_worker(folder, run=run), lambda: len(ran(folder))


@contextmanager
def http_lists(folder: Path, run: str) -> Iterator[tuple[Path, Callable[[], int]]]:
    pytest.importorskip("aiohttp")
    lock, counts = threading.Lock(), [0, 0]

    def answer(request: Request) -> Reply:
        with lock:
            counts[0] += len(request.json)
            counts[1] += 1
            if counts[1] % 50 == 7:
                return Reply("come again", 503)
        limits = [30 if each["race"] == "green" else 60 for each in request.json]
        pairs = zip(request.json, limits, strict=True)
        return Reply(json.dumps({"decision": [int(each["income"] >= at) for each, at in pairs]}))

    with serve() as service:
        service.answer = answer
        config = write_command(folder, run=run)
        head = f'kind = "http"\nurl = "{service.url}"\nretries = 3\nanswer = "/decision"\n'
        text = config.read_text()
        start, stop = text.index("kind ="), text.index("favourable")
        config.write_text(f'{text[:start]}{head}body = "{{inputs}}"\n{text[stop:]}')
        yield config, lambda: counts[0]


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("question", ["score", "search"])
@pytest.mark.parametrize("kind", [command, worker, http_lists], ids=lambda k: k.__name__)
def test_what_runs_elsewhere_is_accounted_for_and_kept_in_the_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: Any, question: str
) -> None:
    if kind is http_lists:
        from themis.subjects.http import client

        monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.01)

    def ask(audit: themis.Audit) -> Result:
        if question == "search":
            return audit.search_all(0.1, ["causal"], ["race", "sex"])
        return audit.score([["race"]])

    with kind(tmp_path, "error = 0.25\nconfidence = 0.9") as (config, received):
        with themis.Audit.from_file(config) as audit:
            answer = ask(audit)
            assert_accounted(answer, received() - answer.timing.get("ahead", 0))
            assert_accounted(ask(audit), 0)
        first = received()
        assert first > 50
        with themis.Audit.from_file(config) as audit:
            again = ask(audit)
        assert_accounted(again, 0)
        assert received() == first
        assert numbers(again) == numbers(answer)
