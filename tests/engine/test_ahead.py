"""Are idle slots filled with what comes next, and does that change nothing but the time?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.services import Reply, serve
from tests.slotted import SCHEMA, Slotted, audit, busy, decide
from themis import Audit, Integers, Result, Schema
from themis.engine.account import Spent

Question = Callable[[Audit], Result]


def ask(audit: Audit, *sets: str, measure: Any = "causal") -> Result:
    return audit.score([tuple(each.split()) for each in sets], [measure])


QUESTIONS: dict[str, Question] = {
    "causal": lambda audit: ask(audit, "race", "region"),
    "group": lambda audit: ask(audit, "race", "sex region", measure="group"),
    "search": lambda audit: audit.search_all(0.1, ["causal"], ["sex", "race", "region"]),
    "group search": lambda audit: audit.search_all(0.3, ["group"], ["sex", "race"]),
}


def measured(result: Result) -> dict[str, Any]:
    """All that must not depend on slots."""
    document = result.to_dict()
    del document["timing"]
    return document


@pytest.mark.some_slow(core=4)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_slots_and_running_ahead_change_nothing_that_is_measured(question: Question) -> None:
    results = [
        measured(question(audit(Slotted(slots), ahead=ahead, error=0.1)))
        for slots, ahead in ((1, True), (16, True), (64, True), (64, False))
    ]
    assert all(each == results[0] for each in results[1:])


@pytest.mark.some_slow(core=4)
@pytest.mark.parametrize("question", QUESTIONS.values(), ids=QUESTIONS)
def test_no_more_is_run_ahead_than_slots_and_a_tenth_of_the_executions(question: Question) -> None:
    subject = Slotted(16)
    run = audit(subject, error=0.1)
    seen: list[Spent] = []
    subject.watch = lambda: seen.append(run.runner.account)
    result = question(run)
    last = run.runner.account
    assert all(each.ahead <= 16 + each.executions / 10 for each in (*seen, last))
    assert max(each.ahead for each in seen) > 8  # it could be more
    assert result.timing.get("ahead", 0) == last.ahead
    assert len(subject.answered) == result.executions + last.ahead


def test_most_of_64_slots_are_busy_in_a_short_search_and_in_a_score() -> None:
    """Of less than 200 executions for each slot, among four characteristics."""
    among = {name: SCHEMA[name] for name in ("sex", "race", "region")}
    numbers = {name: SCHEMA[name] for name in ("income", "savings")}

    def limited(person: dict[str, Any]) -> int:
        limit = 60_000 + 8_000 * (person["race"] == "a")
        limit += 60_000 * (person["race"] == "b" and person["region"] == "n")
        limit += 30_000 * (person["sex"] == "f" and person["married"] == "yes")
        return int(person["income"] > limit)

    subject = Slotted(64, limited, Schema(among, married=["no", "yes"], **numbers))
    names = [*among, "married"]
    result = audit(subject, error=0.1).search_all(0.1, ["causal"], names)
    assert 50 * 64 <= result.executions <= 200 * 64
    assert busy(subject, result.executions) >= 0.75
    subject = Slotted(64)
    score = ask(audit(subject, error=0.1), "race region")
    assert busy(subject, score.executions) >= 0.85


def test_idle_slots_run_the_step_that_may_follow_while_pairs_are_made_plain() -> None:
    def rounds_to_explain(*, ahead: bool) -> int:
        subject = Slotted(64)
        run = audit(subject, ahead=ahead, error=0.1)
        explains: list[bool] = []
        subject.watch = lambda: explains.append(run.runner.is_aside)
        ask(run, "race region")
        return sum(explains)

    assert 0 < 3 * rounds_to_explain(ahead=True) <= 2 * rounds_to_explain(ahead=False)


def test_batches_are_mixed_in_an_order_that_the_seed_decides() -> None:
    def batches(seed: int) -> list[Any]:
        subject = Slotted(16)
        audit(subject, seed=seed).causal("race")
        return [batch.tolist() for batch in subject.batches]

    first = batches(1)
    assert first == batches(1) != batches(2)
    column = SCHEMA.names.index("race")
    full = [np.array(batch) for batch in first if len(batch) >= 16]
    assert all(len(np.unique(batch[:, column])) > 1 for batch in full)


def test_what_was_run_ahead_is_taken_later_and_counts_as_executed_then() -> None:
    subject = Slotted(64)
    trusted = {"deterministic": True}  # so that nothing is run again on purpose
    filled, bare = audit(subject, **trusted), audit(Slotted(64), ahead=False, **trusted)
    before = held = 0
    for error in (filled.settings.error, 0.03):
        for each in (filled, bare):
            each.settings = each.settings.changed(error=error)
        result = ask(filled, "race")
        assert measured(result) == measured(ask(bare, "race"))
        later = filled.runner.account.ahead
        assert len(subject.answered) - before == result.executions + later - held
        assert result.timing.get("ahead", 0) == max(later - held, 0)
        before, held = len(subject.answered), later
        assert held > 0 or error == 0.03
    assert len(set(subject.answered)) == len(subject.answered)


@pytest.mark.parametrize("limit", [40, 333, 2_000])
def test_a_limit_of_executions_is_never_exceeded(limit: int) -> None:
    subject = Slotted(64)
    result = ask(audit(subject, max_executions=limit), "race region", "sex")
    assert len(subject.answered) == result.executions <= limit
    assert "ahead" not in result.timing
    plain = ask(audit(Slotted(4), max_executions=limit, ahead=False), "race region", "sex")
    assert measured(result) == measured(plain)


def test_a_cache_file_keeps_what_was_run_ahead(tmp_path: Path) -> None:
    def asked(subject: Slotted, **options: Any) -> tuple[Result, Spent]:
        path = tmp_path / "cache.sqlite"
        with audit(subject, cache=path, deterministic=True, **options) as run:
            return ask(run, "race"), run.runner.account

    first, second = Slotted(64), Slotted(64)
    done, spent = asked(first)
    assert spent.ahead > 0 == done.cache_hits
    asked(second, error=0.03, ahead=False)
    assert not {*first.answered} & {*second.answered}
    again, spent = asked(Slotted(64))
    assert again.scores[0].score == done.scores[0].score
    assert spent.executions == spent.ahead == 0


@pytest.mark.some_slow(core=4)
@pytest.mark.parametrize("stop_at", [20, 100, 333, 700])
def test_an_interrupt_keeps_what_was_run_ahead(tmp_path: Path, stop_at: int) -> None:
    cache = tmp_path / "cache.sqlite"
    cut = Slotted(64, stop_at=stop_at)
    with audit(cut, cache=cache, deterministic=True) as run, pytest.raises(KeyboardInterrupt):
        ask(run, "race")
    account = run.runner.account
    assert account.executions + account.ahead == len(cut.answered) == stop_at
    second = Slotted(64)
    with audit(second, cache=cache, deterministic=True) as run:
        result = ask(run, "race")
    assert not {*cut.answered} & {*second.answered}
    whole = ask(audit(Slotted(64), ahead=False, deterministic=True), "race")
    assert result.scores[0].score == whole.scores[0].score
    assert result.executions + result.cache_hits == whole.executions


@pytest.mark.parametrize("repeats", [1, 3])
def test_what_is_asked_for_in_several_batches_is_not_run_ahead_in_a_later_one(repeats: int) -> None:
    """Of three runs that fail the third is not made; it must not be made ahead either."""

    def fragile(person: dict[str, Any]) -> int:
        if (person["age"] + len(person["race"] + person["region"])) % 9 == 0:
            raise ValueError("no age")
        return int(person["age"] > 25 + 3 * (person["race"] == "a"))

    def asked(*, ahead: bool) -> tuple[Result, Slotted]:
        small = Schema(race=["a", "b", "c"], region=["n", "s", "e", "w"], age=Integers(18, 90))
        subject = Slotted(5, fragile, small)
        subject.traits = replace(subject.traits, batch_size=8)
        options = {"max_failures": 0.5, "error": 0.1, "repeats": repeats, "deterministic": True}
        run = audit(subject, ahead=ahead, **options)
        return run.search_all(0.1, ["causal"], ["race", "region"]), subject

    (filled, subject), (plain, bare) = asked(ahead=True), asked(ahead=False)
    assert measured(filled) == measured(plain)
    often = Counter(subject.answered) - Counter(bare.answered)
    assert set(often.values()) <= {1}
    assert not often.keys() & {*bare.answered}


def test_nothing_is_run_ahead_that_constraints_exclude() -> None:
    parts = {"sex": ["f", "m"], "region": ["n", "s", "e", "w"], "age": range(18, 61)}
    schema = Schema(parts, income=range(21)).where("not (sex == 'f' and region == 's')")

    def odd(person: dict[str, Any]) -> int:
        return int((person["sex"] == "m") != (person["region"] in "se"))

    subject = Slotted(64, odd, schema)
    result = audit(subject, error=0.1).score([("sex",), ("sex", "region")])
    assert result.timing["ahead"] > 0
    assert schema.valid(np.array(subject.answered)).all()


def test_a_service_gets_what_was_executed_and_what_was_run_ahead() -> None:
    with serve() as service:
        service.answer = lambda request: Reply(str(decide(request.json)))
        subject = service.subject(schema=SCHEMA, concurrency=24)
        with Audit(subject, SCHEMA, seed=3, error=0.1) as run:
            result = ask(run, "race")
        assert len(service.requests) == result.executions + result.timing["ahead"]
        assert result.timing["ahead"] <= 24 + result.executions / 10
        asked = len(service.requests)
        with Audit(subject, SCHEMA, seed=3, error=0.1, ahead=False) as run:
            plain = ask(run, "race")
        assert measured(plain) == measured(result)
        assert len(service.requests) - asked == plain.executions
