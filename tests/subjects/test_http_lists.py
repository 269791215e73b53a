"""Web services that are asked about lists: which inputs are blamed where a list fails."""

from __future__ import annotations

import json
import time
from collections.abc import Callable

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.external import interrupting
from tests.services import Reply, Request, Service, many, run
from themis.engine.runner import Runner
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import TRANSPORT
from themis.subjects.http import client
from themis.subjects.http.subject import HttpSubject
from themis.subjects.labels import Labels

pytest.importorskip("aiohttp")


@pytest.fixture(autouse=True)
def _quick_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 0.001)


def picky(service: Service, bad: Callable[[int], bool], status: int | None = 500) -> HttpSubject:
    """A service that refuses lists with a bad age in them, or closes the connection (None)."""

    def answer(request: Request) -> Reply | None:
        ages = asked(request)
        if any(map(bad, ages)):
            return None if status is None else Reply(status=status)
        return Reply(json.dumps(ages))

    service.answer = answer
    return service.subject(body="{inputs}", retries=0)


def asked(request: Request) -> list[int]:
    """The ages in a list."""
    return [each["age"] for each in request.json]


def aged(*ages: int) -> NDArray[np.int64]:
    """Inputs of these ages."""
    return np.array([[0, age - 18] for age in ages])


DOWN = (502, 503, 504, None)


@pytest.mark.parametrize("status", [422, 500, *DOWN])
def test_many_that_fail_are_told_from_the_others(service: Service, status: int | None) -> None:
    codes = many(1_500)
    codes[:40, 1] = 0  # more in a row than a service that is down would be asked
    bad = codes[:, 1] % 10 == 0
    answers = run(picky(service, lambda age: (age - 18) % 10 == 0, status), codes)
    assert list(answers.failures) == np.flatnonzero(bad).tolist()
    assert all(each.alone for each in answers.failures.values())
    ages = (codes[:, 1] + 18).tolist()
    assert answers.outputs == [None if bad[at] else ages[at] for at in range(len(ages))]
    assert answers.calls == len(service.requests) < 1_500
    assert answers.given == sum(len(each.json) for each in service.requests)


def test_a_service_that_always_fails_is_asked_a_few_times_for_each_list(service: Service) -> None:
    answers = run(picky(service, lambda age: True), many(2_000))
    assert len(answers.failures) == 2_000
    assert len(service.requests) < 2 * 60


def test_a_search_that_is_interrupted_counts_all_that_was_sent(service: Service) -> None:
    subject = picky(service, lambda age: age % 2 == 0)
    answer = service.answer

    def wait(request: Request) -> Reply | None:
        if len(service.requests) > 20:
            service.stopped.wait(300)
        return answer(request)

    service.answer = wait
    runner = Runner(subject, Labels())
    with interrupting(lambda: len(service.requests) == 21):
        runner.run(many(300))
    assert runner.executions == sum(len(each.json) for each in service.requests[:20])
    assert runner.account.calls == 20
    unfinished = subject.unfinished
    assert unfinished is not None
    assert len(unfinished.failures) < 20  # only those of which it is known
    subject.close()


@pytest.mark.parametrize("status", DOWN)
@pytest.mark.parametrize("place", range(5))
def test_one_that_brings_a_service_down_is_found_wherever_it_is(
    service: Service, status: int | None, place: int
) -> None:
    ages = list(range(20, 25))
    answers = run(picky(service, lambda age: age == ages[place], status), aged(*ages))
    assert [*answers.failures] == [place]
    assert answers.failures[place].alone
    assert answers.failures[place].kind == TRANSPORT


@pytest.mark.parametrize("status", [*DOWN, 429])
def test_a_service_that_is_down_is_asked_about_two_single_inputs_of_each_list(
    service: Service, status: int | None
) -> None:
    subject = picky(service, lambda age: True, status)
    subject.inputs_per_request = 50
    answers = run(subject, many(200))
    assert len(answers.failures) == 200
    assert not any(each.alone for each in answers.failures.values())
    sizes = sorted(len(each.json) for each in service.requests)
    assert sizes == [1] * (0 if status == 429 else 8) + [50] * 4
    assert answers.given == sum(sizes)


def test_a_service_that_goes_down_while_inputs_are_looked_for_is_left_in_peace(
    service: Service,
) -> None:
    subject = picky(service, lambda age: age == 20 or len(service.requests) > 10, 502)
    answers = run(subject, aged(*[30] * 200, 20, *[30] * 99))
    assert 200 in answers.failures
    assert 1 < len(answers.failures) < 300
    assert (
        len(service.requests) <= 10 + 2 * 32
    )  # no more than of a service that is asked one by one


def test_a_pause_ends_with_the_time_that_is_allowed_or_is_interrupted(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client, "FIRST_WAIT_SECONDS", 600.0)
    picky(service, lambda age: True, 502)
    subject = service.subject(body="{inputs}", retries=1)
    subject.deadline = time.monotonic() + 0.5
    with pytest.raises(BudgetEndedError):
        run(subject, many(50))
    assert len(service.requests) <= 1

    subject = service.subject(body="{inputs}", retries=1)
    runner = Runner(subject, Labels())
    with interrupting(lambda: subject.client.requests_sent == 1):
        runner.run(many(50))
    assert runner.executions == len(service.requests[-1].json)
    assert runner.account.calls == 1
    subject.close()


@pytest.mark.parametrize(
    ("answer", "body", "hint"),
    [
        ("", [{"d": 1}] * 3, 'answer = "/*/d"'),
        ("/o", {"o": [{"d": 1}] * 3}, 'answer = "/o/*/d"'),
        ("/o/*/d", {"o": [{"d": {"e": 1}}] * 3}, 'answer = "/o/*/d/e"'),
    ],
)
def test_the_place_of_an_output_in_each_item_is_told_as_it_is_written(
    service: Service, answer: str, body: object, hint: str
) -> None:
    service.answer = lambda request: Reply(json.dumps(body))
    answers = run(service.subject(body="{inputs}", answer=answer), many(3))
    assert answers.failures[0].message.endswith(f"point to what is inside, such as {hint}")
    pointed = hint.removeprefix('answer = "').removesuffix('"')
    assert run(service.subject(body="{inputs}", answer=pointed), many(3)).outputs == [1] * 3
