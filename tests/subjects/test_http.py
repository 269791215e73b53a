"""Web services as subjects: what is sent, what is read, and how a subject lives and ends."""

from __future__ import annotations

import json
import multiprocessing
import re
import shlex
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.external import PATIENCE, interrupting, wait_until
from tests.services import (
    SCHEMA,
    Reply,
    Request,
    Service,
    complaint,
    decide,
    expected,
    failure_of,
    many,
    run,
)
from themis import Reals, Schema
from themis.engine.cache import Cache
from themis.engine.recall import Recall
from themis.engine.runner import Runner
from themis.subjects.decisions import INVALID
from themis.subjects.http.subject import INPUTS_PER_REQUEST, HttpSubject
from themis.subjects.labels import Labels

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.usefixtures("quick_retries")


class TestRequests:
    def test_places_hold_text_or_the_value_itself(self, service: Service) -> None:
        schema = Schema(name=['a "b"\n', "🦊 é"], rich=[True, False], sum=Reals(0, 1, step=0.5))
        body = {
            "prompt": "{name} owns ${sum}, rich: {rich}, {{sic}} 100%",
            "all": ["{name}", "{rich}", "{sum}", None, 1, "{input}"],
            "{rich}": "data: {input}",
        }
        run(service.subject(schema=schema, body=body), [[0, 0, 1], [1, 1, 2]])
        first, second = sorted((each.json for each in service.requests), key=lambda j: j["all"][2])
        row = {"name": 'a "b"\n', "rich": True, "sum": 0.5}
        assert first["prompt"] == 'a "b"\n owns $0.5, rich: true, {sic} 100%'
        assert first["all"] == ['a "b"\n', True, 0.5, None, 1, row]
        assert json.loads(first["true"].removeprefix("data: ")) == row
        assert second["prompt"] == "🦊 é owns $1.0, rich: false, {sic} 100%"

        run(service.subject(body='{"a": "{age}", "b": ["{race}", {}], "c": "{input}"}'), [[0, 0]])
        row = {"race": "green", "age": 18}
        assert service.requests[-1].json == {"a": 18, "b": ["green", {}], "c": row}

    def test_places_in_the_url_are_percent_encoded(self, service: Service) -> None:
        schema = Schema(race=["a b&c=d/é", "?#%"], age=[1])
        subject = service.subject("/x/{age}?race={race}&k=a+b%20", schema=schema, method="GET")
        run(subject, [[0, 0], [1, 0]])
        paths = {each.path for each in service.requests}
        assert paths == {
            "/x/1?race=a%20b%26c%3Dd%2F%C3%A9&k=a+b%20",
            "/x/1?race=%3F%23%25&k=a+b%20",
        }
        assert all(each.body == b"" and each.method == "GET" for each in service.requests)

    def test_answers_keep_the_order_of_the_inputs(self, service: Service) -> None:
        def answer(request: Request) -> Reply:
            row = request.json
            time.sleep(row["age"] % 7 / 500)
            return Reply(json.dumps({"a/b": [{"decision": decide(row)}]}))

        service.answer = answer
        codes = many(200)
        assert run(service.subject(answer="/a~1b/0/decision"), codes).outputs == expected(codes)

    def test_cookies_are_not_kept(self, service: Service) -> None:
        service.answer = lambda request: Reply(headers={"Set-Cookie": "session=1"})
        run(service.subject(concurrency=1), many(3))
        assert not any("Cookie" in each.headers for each in service.requests)

    def test_mistakes_are_refused_with_a_remedy(self) -> None:
        assert "did you mean 'race'?" in complaint(body={"x": "{rase}", "y": "{age}"})
        assert "no place for 'age'" in complaint(body={"x": "{race}"})
        assert "no place for 'race'" in complaint("http://localhost/{age}", method="GET")
        assert "no place for 'race'" in complaint(method="GET")
        assert "is not JSON" in complaint(body='{"a": {race}}')
        assert "is not a JSON value" in complaint(body=["{input}", float("nan")])
        assert "a GET request has no body" in complaint(method="GET", body="{input}")
        assert "did you mean 'POST'?" in complaint(method="POS")
        assert "did you mean 'text'?" in complaint(answer="txt")
        assert "appears twice" in complaint(body=["{inputs}", "{inputs}"])
        assert "no room for single values" in complaint(body=["{inputs}", "{age}"])
        assert "in the url" in complaint("http://localhost/{age}", body="{inputs}")
        assert "holds one decision" in complaint(body="{inputs}", answer="status")
        assert "can't be part of the host" in complaint("http://{race}.org/")
        for host in ("[::1:80", "[::1]x:80", "a[b]", "a..b", "localhost:99999", "a" * 64, "ä.org"):
            assert "is not an address" in complaint(f"http://{host}/")
        said = complaint("http://bob:hunter2@localhost/")
        assert "a user and a password can't be part of it" in said
        assert "hunter2" not in said
        assert "is not an address" in complaint("ftp://localhost/")
        assert "# is never sent" in complaint("http://localhost/#{race}{age}")
        assert "can't be the name of a header" in complaint(headers={"a b": "1"})
        assert "must be positive" in complaint(concurrency=0)
        assert "must be positive" in complaint(rate_per_second=0)
        assert "use 0 or more" in complaint(retries=-1)
        assert "surrogate" in complaint(schema=Schema(a=["\ud800"]))

    def test_missing_library_is_named_with_the_remedy(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        assert "pip install 'themis-fairness[http]'" in complaint()

    def test_curl_line_repeats_the_request(self, service: Service) -> None:
        schema = Schema(race=['it\'s "$HOME" `x` !y', "b"], age=[1])
        subject = service.subject(
            "/a/{race}?q=1", schema=schema, body={"x": "{race}\n{age}"}, headers={"X-A": "b c"}
        )
        run(subject)
        line = subject.reproduce(schema.decode_row(np.array([0, 0])))
        words = shlex.split(line)
        sent = service.requests[0]
        assert words[:4] == ["curl", "-sS", "-X", "POST"]
        assert words[4] == service.url + sent.path
        assert words[words.index("--data-raw") + 1].encode() == sent.body
        assert "X-A: b c" in words


class TestAnswers:
    @pytest.mark.parametrize(
        ("answer", "body", "output"),
        [
            ("", "true", True),
            ("", '"yes"', "yes"),
            ("/d", '{"d": 0}', 0),
            ("text", " Approved.\n", "Approved."),
            ("status", "", 200),
        ],
    )
    def test_output_is_read_where_the_answer_says(
        self, service: Service, answer: str, body: str, output: Any
    ) -> None:
        service.answer = lambda request: Reply(body)
        assert repr(run(service.subject(answer=answer)).outputs) == repr([output])

    @pytest.mark.parametrize(
        ("answer", "body", "words"),
        [
            ("/d", "<html>Oops</html>", "is not JSON: '<html>Oops</html>'"),
            ("/d", "", "the answer is empty"),
            ("/d", '{"e": 1}', 'there is no /d in {"e": 1}'),
            ("/d", '{"d": null}', "/d is null, not a decision"),
            ("", '{"d": 1}', 'point to what is inside, such as answer = "/d"'),
            ("/d", '{"d": {"a/b~": 1}}', 'such as answer = "/d/a~1b~0"'),
            ("", "NaN", "is not JSON"),
            ("", "[" * 100_000, "is not JSON"),
            ("text", " ", "not a decision"),
            ("text", b"\xff\xfe", "is not UTF-8"),
        ],
    )
    def test_garbage_is_never_a_decision(
        self, service: Service, answer: str, body: str | bytes, words: str
    ) -> None:
        service.answer = lambda request: Reply(body)
        failure = failure_of(service.subject(answer=answer))
        assert failure.kind == INVALID
        assert words in failure.message
        assert len(failure.message) < 500
        assert len(service.requests) == 1


class TestLists:
    @pytest.fixture
    def subject(self, service: Service) -> HttpSubject:
        service.answer = lambda request: Reply(
            json.dumps({"outputs": [{"d": decide(each)} for each in request.json["in"]]})
        )
        return service.subject(body={"in": "{inputs}"}, answer="/outputs/*/d")

    def test_one_request_carries_many_inputs(self, service: Service, subject: HttpSubject) -> None:
        codes = many(2 * INPUTS_PER_REQUEST + 5)
        assert run(subject, codes).outputs == expected(codes)
        sizes = sorted(len(each.json["in"]) for each in service.requests)
        assert sizes == [5, INPUTS_PER_REQUEST, INPUTS_PER_REQUEST]

    def test_list_of_wrong_length_is_never_assigned(
        self, service: Service, subject: HttpSubject
    ) -> None:
        service.answer = lambda request: Reply(
            json.dumps({"outputs": [{"d": 1}] * (len(request.json["in"]) - 1)})
        )
        answers = run(subject, many(40))
        assert sorted(answers.failures) == list(range(40))
        assert {each.kind for each in answers.failures.values()} == {INVALID}
        assert len(service.requests) < 80

    def test_too_large_a_list_is_shorter_next_time(
        self, service: Service, subject: HttpSubject
    ) -> None:
        answer, codes = service.answer, many(1000)
        service.answer = lambda request: (
            Reply(status=413) if len(request.json["in"]) > 300 else answer(request)
        )
        assert subject.load(codes).run().outputs == expected(codes)
        before = len(service.requests)
        run(subject, codes)
        assert {len(each.json["in"]) for each in service.requests[before:]} == {250}


def http_threads() -> set[threading.Thread]:
    return {each for each in threading.enumerate() if each.name == "themis-http"}


class TestLife:
    def test_what_was_answered_before_an_interrupt_is_not_asked_again(
        self, service: Service, tmp_path: Path
    ) -> None:
        def answer(request: Request) -> Reply:
            if len(service.requests) > 20:
                service.stopped.wait(300)
            return Reply()

        service.answer = answer
        subject = service.subject(timeout_seconds=300, concurrency=2)
        cache = Cache(tmp_path / "cache.sqlite")
        runner = Runner(subject, Labels(), recall=Recall(cache, subject))
        codes = np.array([[0, age] for age in range(30)], dtype=np.int32)
        with interrupting(lambda: len(service.requests) == 22):
            runner.run(codes)
        assert runner.executions == runner.asked == 20
        service.answer = lambda request: Reply()
        service.requests.clear()
        assert runner.run(codes).tolist() == [0] * 30
        assert len(service.requests) == 10
        cache.close()

    def test_forgotten_subject_ends_its_thread(self, service: Service) -> None:
        before = http_threads()
        subject = service.subject()
        subject.load(many(2)).run()
        own = http_threads() - before
        assert len(own) == 1
        del subject
        wait_until(lambda: not own & http_threads())

    def test_program_that_forgets_to_close_ends_without_a_word(self, service: Service) -> None:
        code = (
            "import numpy as np; from themis import Schema; "
            "from themis.subjects.http.subject import HttpSubject; "
            f"s = HttpSubject(Schema(a=[1, 2]), {service.url!r}); "
            "print(s.load(np.array([[0], [1]])).run().outputs)"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-X", "dev", "-c", code],
            capture_output=True, text=True, timeout=PATIENCE, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout) == (0, "[1, 1]\n")
        slow = re.compile(r"Executing <.*> took [0-9.]+ seconds")  # of a machine that is busy
        assert [line for line in done.stderr.splitlines() if not slow.fullmatch(line)] == []

    @pytest.mark.filterwarnings("ignore:.*multi-threaded.*fork:DeprecationWarning")
    def test_subject_works_in_a_forked_process(self, service: Service) -> None:
        subject = service.subject()
        subject.load(many(5)).run()
        context = multiprocessing.get_context("fork")
        queue = context.SimpleQueue()
        child = context.Process(target=lambda: queue.put(subject.load(many(5)).run().outputs))
        child.start()
        child.join(10)
        assert child.exitcode == 0
        assert queue.get() == [1] * 5
        assert run(subject, many(5)).outputs == [1] * 5

    def test_no_inputs_need_no_service(self) -> None:
        subject = HttpSubject(SCHEMA, "http://127.0.0.1:1/")
        assert run(subject, np.empty((0, 2), dtype=int)).outputs == []
