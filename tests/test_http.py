"""Web services as subjects: real servers, and all that can go wrong between them and us."""

from __future__ import annotations

import base64
import contextlib
import email.utils
import json
import multiprocessing
import os
import pickle
import shlex
import signal
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import tomllib
import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import themis
from themis import Integers, Reals, RequestError, Schema, SubjectError
from themis.outcomes import CRASH, INVALID, TIMEOUT, TRANSPORT, Failure
from themis.subjects import http_exchange, pacing
from themis.subjects.base import Answers
from themis.subjects.http import INPUTS_PER_REQUEST, HttpSubject
from themis.subjects.http_client import Client
from themis.subjects.pacing import retry_after_seconds

pytest.importorskip("aiohttp")

SCHEMA = Schema(race=["green", "purple"], age=Integers(18, 120))
EXAMPLE = Path(__file__).parent.parent / "examples" / "chat"

# Made once for these tests, self-signed, for localhost; it protects nothing.
TEST_KEY = """\
-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgHgXyKGYb2vGgXQmI
wPRQj1AahpibjHC+Gltk4x/x2KahRANCAAS/fzTfdvdfckSz7kYKa31B3GpHAonb
pRSmzaJWdQeBpdftcjMuJek2PlH42F4dKHoc0+xHjtZjcxIEeAKIIA/7
-----END PRIVATE KEY-----
"""
TEST_CERTIFICATE = """\
-----BEGIN CERTIFICATE-----
MIIBZzCCAQ2gAwIBAgIBATAKBggqhkjOPQQDAjAUMRIwEAYDVQQDDAlsb2NhbGhv
c3QwIBcNMjAwMTAxMDAwMDAwWhgPMjEyMDAxMDEwMDAwMDBaMBQxEjAQBgNVBAMM
CWxvY2FsaG9zdDBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABL9/NN92919yRLPu
RgprfUHcakcCidulFKbNolZ1B4Gl1+1yMy4l6TY+UfjYXh0oehzT7EeO1mNzEgR4
AoggD/ujTjBMMBoGA1UdEQQTMBGCCWxvY2FsaG9zdIcEfwAAATAPBgNVHRMBAf8E
BTADAQH/MB0GA1UdDgQWBBQcczR8dmpEGRKYYfvs8IyUdsFWMDAKBggqhkjOPQQD
AgNIADBFAiBP+5iMFa7bG6Z7WBHQUnr8jjPfrqZ+AsudRbbbcgcLKwIhAJ0Lu+qt
jqAFxkyuMn8aeFfkixPWh2mYvFrH58g4t1CJ
-----END CERTIFICATE-----
"""


@dataclass(frozen=True)
class Request:
    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    time: float
    connection: int

    @property
    def json(self) -> Any:
        return json.loads(self.body)


@dataclass(frozen=True)
class Reply:
    body: bytes | str = b"1"
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass
class Service:
    """A server of which a test says how it answers."""

    port: int = 0
    answer: Callable[[Request], Reply | None] = lambda request: Reply()
    requests: list[Request] = field(default_factory=list)
    stopped: threading.Event = field(default_factory=threading.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def subject(self, path: str = "/decide", **options: Any) -> HttpSubject:
        schema = options.pop("schema", SCHEMA)
        return HttpSubject(schema, self.url + path, **options)


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True
    service: Service

    def handle_any(self) -> None:
        service = self.service
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        request = Request(
            self.command, self.path, dict(self.headers), body, time.monotonic(), id(self)
        )
        service.requests.append(request)
        reply = service.answer(request)
        if reply is None:  # break the connection
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.close_connection = True
            return
        data = reply.body.encode() if isinstance(reply.body, str) else reply.body
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            self.send_response(reply.status)
            for name, value in {"Content-Length": str(len(data)), **reply.headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(data)

    do_GET = do_POST = do_PUT = do_PATCH = handle_any  # noqa: N815 - named by the base class

    def log_message(self, *_: Any) -> None:
        pass


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, *_: Any) -> None:
        pass


@contextlib.contextmanager
def _serve(context: ssl.SSLContext | None = None) -> Iterator[Service]:
    service = Service()
    handler = type("Handler", (_Handler,), {"service": service})
    server = _Server(("127.0.0.1", 0), handler)
    if context:
        server.socket = context.wrap_socket(server.socket, server_side=True)
    service.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        yield service
    finally:
        service.stopped.set()
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture
def service() -> Iterator[Service]:
    with _serve() as service:
        yield service


@pytest.fixture(autouse=True)
def _quick_retries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pacing, "FIRST_WAIT_SECONDS", 0.02)


def run(subject: HttpSubject, codes: Any = ((0, 0),)) -> Answers:
    try:
        return subject.load(np.array(codes)).run()
    finally:
        subject.close()


def failure_of(subject: HttpSubject) -> Failure:
    answers = run(subject)
    assert list(answers.failures) == [0], answers
    return answers.failures[0]


def complaint(url: str = "http://localhost/", schema: Schema = SCHEMA, **options: Any) -> str:
    with pytest.raises(RequestError) as caught:
        HttpSubject(schema, url, **options)
    assert caught.value.exit_code == 2
    return str(caught.value)


def decide(row: dict[str, Any]) -> int:
    return int(row["race"] == "green" or row["age"] > 60)


def many(count: int) -> np.ndarray:
    generator = np.random.default_rng(5)
    return np.column_stack([generator.integers(0, each.size, count) for each in SCHEMA])


def expected(codes: np.ndarray) -> list[int]:
    return [decide(SCHEMA.decode_row(row)) for row in codes]


class TestRequests:
    def test_input_is_sent_as_json_object_by_default(self, service: Service) -> None:
        assert run(service.subject(), [[1, 2]]).outputs == [1]
        (request,) = service.requests
        assert (request.method, request.path) == ("POST", "/decide")
        assert request.json == {"race": "purple", "age": 20}
        assert request.headers["Content-Type"] == "application/json"

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

    def test_body_may_be_json_text_with_bare_places(self, service: Service) -> None:
        run(service.subject(body='{"a": {age}, "b": ["{race}", {}], "c": {input}}'), [[0, 0]])
        row = {"race": "green", "age": 18}
        assert service.requests[0].json == {"a": 18, "b": ["green", {}], "c": row}

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

    def test_connections_are_kept(self, service: Service) -> None:
        subject = service.subject(concurrency=4)
        for _ in range(3):
            subject.load(many(50)).run()
        subject.close()
        assert len({each.connection for each in service.requests}) <= 4

    def test_cookies_are_not_kept(self, service: Service) -> None:
        service.answer = lambda request: Reply(headers={"Set-Cookie": "session=1"})
        run(service.subject(concurrency=1), many(3))
        assert not any("Cookie" in each.headers for each in service.requests)

    def test_overwritten_and_taken_batches_ask_about_those_inputs(self, service: Service) -> None:
        service.answer = lambda request: Reply(str(decide(request.json)))
        subject, codes = service.subject(), many(20)
        batch = subject.load(codes).take(np.array([5, 2, 2]))
        changed = codes[[5, 2, 2]]
        for column, new in ((0, 1), (1, np.array([50, 10, 0]))):
            batch.overwrite(column, new)
            changed[:, column] = new
        assert batch.run().outputs == expected(changed)
        subject.close()

    def test_mistakes_are_refused_with_a_remedy(self) -> None:
        assert "did you mean 'race'?" in complaint(body={"x": "{rase}", "y": "{age}"})
        assert "no place for 'age'" in complaint(body={"x": "{race}"})
        assert "no place for 'race'" in complaint("http://localhost/{age}", method="GET")
        assert "no place for 'race'" in complaint(method="GET")
        assert "is not JSON" in complaint(body="race is {race}")
        assert "is not a JSON value" in complaint(body=["{input}", float("nan")])
        assert "a GET request has no body" in complaint(method="GET", body="{input}")
        assert "did you mean 'POST'?" in complaint(method="POS")
        assert "did you mean 'text'?" in complaint(answer="txt")
        assert "stands there twice" in complaint(body=["{inputs}", "{inputs}"])
        assert "no room for single values" in complaint(body=["{inputs}", "{age}"])
        assert "in the url" in complaint("http://localhost/{age}", body="{inputs}")
        assert "holds one decision" in complaint(body="{inputs}", answer="status")
        assert "can't be part of the host" in complaint("http://{race}.org/")
        assert "is not an address" in complaint("ftp://localhost/")
        assert "is not an address" in complaint("http://localhost:99999/")
        assert "# is never sent" in complaint("http://localhost/#{race}{age}")
        assert "can't be the name of a header" in complaint(headers={"a b": "1"})
        assert "must be positive" in complaint(concurrency=0)
        assert "must be positive" in complaint(rate_per_second=0)
        assert "use 0 or more" in complaint(retries=-1)
        assert "surrogate" in complaint(schema=Schema(a=["\ud800"]))

    def test_all_mistakes_are_told_at_once(self) -> None:
        text = complaint("ftp://x/", method="GIT", body={"x": "{rase}"}, headers={"a b": "1"})
        assert len(text.splitlines()) == 4

    def test_missing_library_is_named_with_the_remedy(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setitem(sys.modules, "aiohttp", None)
        assert "pip install 'themis-fairness[http]'" in complaint()

    def test_scores_are_those_of_the_function(self, service: Service) -> None:
        service.answer = lambda request: Reply(json.dumps(decide(request.json)))
        subject = service.subject()
        measured = themis.Audit(subject, SCHEMA, seed=1).causal("race")
        subject.close()
        assert measured.score == themis.Audit(decide, SCHEMA, seed=1).causal("race").score > 0

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
        (found,) = run(service.subject(answer=answer)).outputs
        assert found == output
        assert type(found) is type(output)

    def test_refusal_is_an_output_where_the_status_decides(self, service: Service) -> None:
        service.answer = lambda request: Reply(status=200 if decide(request.json) else 403)
        codes = many(10)
        outputs = run(service.subject(answer="status"), codes).outputs
        assert outputs == [200 if each else 403 for each in expected(codes)]

    @pytest.mark.parametrize(
        ("answer", "body", "words"),
        [
            ("/d", "<html>Oops</html>", "is not JSON: '<html>Oops</html>'"),
            ("/d", "", "the answer is empty"),
            ("/d", '{"e": 1}', 'there is no /d in {"e": 1}'),
            ("/d", '{"d": null}', "/d is null, not a decision"),
            ("", '{"d": 1}', "point to what is inside, such as 'd'"),
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

    def test_endless_answer_is_cut_off(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(http_exchange, "ANSWER_LIMIT", 10_000)
        service.answer = lambda request: Reply("1" * 20_000)
        failure = failure_of(service.subject(answer="text"))
        assert (failure.kind, "more than 10,000 bytes" in failure.message) == (INVALID, True)


class TestLists:
    @staticmethod
    def decide_list(request: Request) -> Reply:
        return Reply(json.dumps({"outputs": [{"d": decide(each)} for each in request.json["in"]]}))

    def subject(self, service: Service, **options: Any) -> HttpSubject:
        return service.subject(body={"in": "{inputs}"}, answer="/outputs/*/d", **options)

    def test_one_request_carries_many_inputs(self, service: Service) -> None:
        service.answer = self.decide_list
        codes = many(2 * INPUTS_PER_REQUEST + 5)
        assert run(self.subject(service), codes).outputs == expected(codes)
        sizes = sorted(len(each.json["in"]) for each in service.requests)
        assert sizes == [5, INPUTS_PER_REQUEST, INPUTS_PER_REQUEST]

    def test_list_may_be_the_whole_body_and_the_whole_answer(self, service: Service) -> None:
        service.answer = lambda request: Reply(json.dumps([decide(each) for each in request.json]))
        codes = many(30)
        assert run(service.subject(body="{inputs}"), codes).outputs == expected(codes)

    def test_input_that_breaks_a_list_is_isolated(self, service: Service) -> None:
        def answer(request: Request) -> Reply:
            if any(row["age"] == 118 for row in request.json["in"]):
                return Reply("no such age", status=422)
            return self.decide_list(request)

        service.answer = answer
        codes = many(100)
        codes[codes[:, 1] == 100] = 0
        codes[[17, 60], 1] = 100
        answers = run(self.subject(service), codes)
        assert list(answers.failures) == [17, 60]
        assert answers.failures[17].kind == CRASH
        assert "HTTP 422" in answers.failures[17].message
        assert "no such age" in answers.failures[17].message
        right = expected(codes)
        assert all(answers.outputs[n] == right[n] for n in range(100) if n not in (17, 60))

    def test_list_of_wrong_length_is_never_assigned(self, service: Service) -> None:
        service.answer = lambda request: Reply(
            json.dumps({"outputs": [{"d": 1}] * (len(request.json["in"]) - 1)})
        )
        answers = run(self.subject(service), many(40))
        assert sorted(answers.failures) == list(range(40))
        assert {each.kind for each in answers.failures.values()} == {INVALID}
        assert len(service.requests) < 80

    def test_one_bad_item_fails_alone(self, service: Service) -> None:
        service.answer = lambda request: Reply('{"outputs": [{"d": 1}, {"d": null}, {}]}')
        answers = run(self.subject(service), many(3))
        assert answers.outputs[0] == 1
        assert list(answers.failures) == [1, 2]

    def test_too_large_a_list_is_shorter_next_time(self, service: Service) -> None:
        def answer(request: Request) -> Reply:
            return Reply(status=413) if len(request.json["in"]) > 300 else self.decide_list(request)

        service.answer = answer
        subject, codes = self.subject(service), many(1000)
        assert subject.load(codes).run().outputs == expected(codes)
        before = len(service.requests)
        subject.load(codes).run()
        subject.close()
        assert {len(each.json["in"]) for each in service.requests[before:]} == {250}

    def test_wrong_password_is_not_tried_for_every_input(self, service: Service) -> None:
        service.answer = lambda request: Reply(status=401)
        answers = run(self.subject(service), many(50))
        assert len(answers.failures) == 50
        assert len(service.requests) == 1


class TestRetries:
    def test_busy_service_is_asked_again(self, service: Service) -> None:
        for status in (429, 500, 502, 503, 504):
            service.requests.clear()
            service.answer = lambda request, status=status: (  # type: ignore[misc]
                Reply("0") if len(service.requests) > 2 else Reply(status=status)
            )
            assert run(service.subject()).outputs == [0]
            assert len(service.requests) == 3

    def test_failure_after_the_retries_is_no_decision(self, service: Service) -> None:
        service.answer = lambda request: Reply("out of \n order", status=503)
        failure = failure_of(service.subject(retries=2))
        message = "HTTP 503 Service Unavailable (3 attempts): out of order"
        assert failure == Failure(TRANSPORT, message)
        assert len(service.requests) == 3

    def test_other_refusals_are_not_retried(self, service: Service) -> None:
        service.answer = lambda request: Reply("x" * 10_000, status=400)
        failure = failure_of(service.subject())
        assert failure.kind == CRASH
        assert failure.message.startswith("HTTP 400 Bad Request: xxx")
        assert len(failure.message) < 300
        assert len(service.requests) == 1

    @pytest.mark.parametrize("as_date", [False, True])
    def test_retry_after_is_honoured_by_all_requests(self, service: Service, as_date: bool) -> None:
        lock = threading.Lock()
        until: list[float] = []

        def answer(request: Request) -> Reply:
            with lock:
                if not until:
                    until.append(request.time + 1.0)
                    when = email.utils.formatdate(time.time() + 2.0, usegmt=True)
                    return Reply(status=429, headers={"Retry-After": when if as_date else "1"})
            return Reply()

        service.answer = answer
        answers = run(service.subject(concurrency=1), many(5))
        assert answers.outputs == [1] * 5
        assert all(each.time >= until[0] - 0.01 for each in service.requests[1:])
        assert service.requests[1].time < until[0] + 1.5

    def test_retry_after_is_bounded_and_nonsense_ignored(self) -> None:
        assert retry_after_seconds("86400") == pacing.RETRY_AFTER_LIMIT_SECONDS
        assert retry_after_seconds("Wed, 21 Oct 2015 07:28:00 GMT") == 0
        assert retry_after_seconds("Wed, 21 Oct 2099 07:28:00 GMT") == 60
        for text in ("", "soon", "-1", "1.5", "²"):
            assert retry_after_seconds(text) is None

    def test_broken_connection_is_tried_again(self, service: Service) -> None:
        service.answer = lambda request: None if len(service.requests) < 3 else Reply()
        assert run(service.subject()).outputs == [1]

    def test_connection_that_always_breaks_is_a_failure(self, service: Service) -> None:
        service.answer = lambda request: None
        failure = failure_of(service.subject(retries=1))
        assert failure.kind == TRANSPORT
        assert f"the connection to 127.0.0.1:{service.port} broke" in failure.message
        assert "2 attempts" in failure.message

    def test_silence_is_a_timeout(self, service: Service) -> None:
        def answer(request: Request) -> Reply:
            service.stopped.wait(3)
            return Reply()

        service.answer = answer
        started = time.monotonic()
        failure = failure_of(service.subject(timeout_seconds=0.2, retries=1))
        assert time.monotonic() - started < 1.5
        assert failure == Failure(TIMEOUT, "no answer within 0.2 seconds (2 attempts)")

    def test_one_hanging_input_does_not_cost_the_others(self, service: Service) -> None:
        def answer(request: Request) -> Reply:
            if request.json["age"] == 18:
                service.stopped.wait(3)
            return Reply()

        service.answer = answer
        codes = [[0, age] for age in range(50)]
        answers = run(service.subject(timeout_seconds=0.3, retries=0), codes)
        assert list(answers.failures) == [0]
        assert answers.outputs[1:] == [1] * 49

    def test_redirect_is_refused(self, service: Service) -> None:
        service.answer = lambda request: Reply(status=307, headers={"Location": "/other"})
        failure = failure_of(service.subject())
        assert failure.kind == CRASH
        assert "HTTP 307" in failure.message
        assert "redirect to '/other' is not followed" in failure.message
        assert len(service.requests) == 1

    def test_allowed_redirect_stays_with_the_service(self, service: Service) -> None:
        def answer(request: Request) -> Reply:
            if request.path == "/other":
                return Reply(str(request.json["age"]))
            where = "http://localhost:1/steal" if "foreign" in request.path else "/other"
            return Reply(status=307, headers={"Location": where})

        service.answer = answer
        assert run(service.subject(follow_redirects=True)).outputs == [18]
        foreign = service.subject("/foreign", follow_redirects=True)
        assert "'http://localhost:1/steal' is not followed" in failure_of(foreign).message

    def test_endless_redirects_end(self, service: Service) -> None:
        service.answer = lambda request: Reply(status=307, headers={"Location": "/again"})
        assert failure_of(service.subject(follow_redirects=True)).kind == CRASH
        assert len(service.requests) < 10

    def test_rate_is_kept_by_all_requests_together(self, service: Service) -> None:
        run(service.subject(rate_per_second=50, concurrency=8), many(31))
        times = sorted(each.time for each in service.requests)
        burst = 50 * pacing.BURST_SECONDS
        assert times[-1] - times[0] >= (30 - burst) / 50 - 0.02
        assert times[-1] - times[0] < 3

    def test_no_more_requests_at_once_than_allowed(self, service: Service) -> None:
        lock, now, most = threading.Lock(), [0], [0]

        def answer(request: Request) -> Reply:
            with lock:
                now[0] += 1
                most[0] = max(most[0], now[0])
            time.sleep(0.02)
            with lock:
                now[0] -= 1
            return Reply()

        service.answer = answer
        run(service.subject(concurrency=3), many(20))
        assert most[0] == 3


class TestUnreachable:
    def test_refused_connection_names_the_host(self) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        subject = HttpSubject(SCHEMA, f"http://127.0.0.1:{port}/x?key=sesame-4711")
        with pytest.raises(SubjectError, match=f"can't connect to 127.0.0.1:{port}") as caught:
            run(subject, many(1000))
        assert caught.value.exit_code == 3
        assert "4 attempts" in str(caught.value)

    def test_unknown_host_is_named(self) -> None:
        with pytest.raises(SubjectError, match=r"can't connect to themis\.invalid"):
            run(HttpSubject(SCHEMA, "http://themis.invalid/", retries=0))

    def test_service_that_dies_fails_the_rest_at_once(self) -> None:
        with _serve() as service:
            subject = service.subject(concurrency=2)
            assert subject.load(many(3)).run().outputs == [1] * 3
            service.answer = lambda request: None  # kept connections outlive the server
        codes, started = many(500), time.monotonic()
        answers = run(subject, codes)
        assert len(answers.failures) == 500
        assert {each.kind for each in answers.failures.values()} == {TRANSPORT}
        assert "all failed" in answers.failures[499].message
        assert time.monotonic() - started < 5

    @pytest.fixture
    def secure(self, tmp_path: Path) -> Iterator[Service]:
        (tmp_path / "key.pem").write_text(TEST_KEY)
        (tmp_path / "certificate.pem").write_text(TEST_CERTIFICATE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
        with _serve(context) as service:
            yield service

    def test_unknown_certificate_is_refused(self, secure: Service) -> None:
        subject = HttpSubject(SCHEMA, f"https://localhost:{secure.port}/")
        with pytest.raises(SubjectError, match="its certificate was refused"):
            run(subject)
        assert not secure.requests

    def test_known_certificate_is_accepted(
        self, secure: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert run(HttpSubject(SCHEMA, f"https://localhost:{secure.port}/")).outputs == [1]


class TestSecrets:
    SECRET = 'tok-"ü&%+ 9f8e7d'
    PASSWORD = "hunter2-pass"

    @pytest.fixture
    def secret(self, monkeypatch: pytest.MonkeyPatch) -> str:
        monkeypatch.setenv("SERVICE_TOKEN", self.SECRET)
        return self.SECRET

    def subject(self, service: Service, **options: Any) -> HttpSubject:
        url = f"http://127.0.0.1:{service.port}/a?sig=abc-sig-456&x=%24"
        headers = {
            "Authorization": "Bearer ${SERVICE_TOKEN}",
            "X-Api-Key": "literal-key-123",
            "X-Plain": "plain-value",
        }
        return HttpSubject(SCHEMA, url, headers=headers, **{"retries": 0, **options})

    def test_secrets_reach_the_service(self, service: Service, secret: str) -> None:
        run(self.subject(service))
        (request,) = service.requests
        value = request.headers["Authorization"].encode("latin-1").decode()
        assert value == f"Bearer {secret}"
        assert request.headers["X-Api-Key"] == "literal-key-123"
        assert request.path == "/a?sig=abc-sig-456&x=%24"

    def test_user_and_password_reach_the_service(self, service: Service) -> None:
        run(HttpSubject(SCHEMA, f"http://bob%40x:{self.PASSWORD}@127.0.0.1:{service.port}/"))
        value = service.requests[0].headers["Authorization"]
        pair = base64.b64decode(value.removeprefix("Basic ")).decode()
        assert pair == f"bob@x:{self.PASSWORD}"

    @pytest.mark.parametrize("status", [200, 302, 400, 503])
    @pytest.mark.parametrize("answer", ["", "text", "/d"])
    def test_no_text_repeats_a_secret(
        self, service: Service, secret: str, status: int, answer: str
    ) -> None:
        forms = [secret, json.dumps(secret), "literal-key-123", "abc-sig-456"]
        forms.append(base64.b64encode(secret.encode()).decode())
        echo = json.dumps({"x": "y" * 85 + " ".join(forms), "d": [forms]})

        def reply(request: Request) -> Reply:
            seen = request.headers["Authorization"].encode("latin-1").decode()
            where = {"Location": "/b?sig=abc-sig-456"}
            return Reply(echo + seen, status, where) if answer else Reply(echo, status, where)

        service.answer = reply
        subject = self.subject(service, answer=answer)
        answers = run(subject, many(2))
        row = SCHEMA.decode_row(np.array([0, 0]))
        said = [repr(answers), repr(subject), str(subject), subject.reproduce(row)]
        said += [repr(vars(subject)["_requests"]), repr(subject._requests.credentials)]
        said += [subject.fingerprint(), *subject._requests.described()]
        self._assert_clean("\n".join(said), secret)
        assert answers.failures

    def test_no_exception_repeats_a_secret(
        self, service: Service, secret: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dead = Service(port=1)
        user = f"http://bob:{self.PASSWORD}@127.0.0.1:1/?token=${{SERVICE_TOKEN}}"
        for make in (
            lambda: run(self.subject(dead)),
            lambda: run(HttpSubject(SCHEMA, user, retries=0)),
            lambda: self.subject(service, body={"x": "{rase}"}),
            lambda: HttpSubject(SCHEMA, "https://${SERVICE_TOKEN}:x/"),
            lambda: HttpSubject(SCHEMA, f"gopher://bob:{self.PASSWORD}@x/${{SERVICE_TOKEN}}"),
            lambda: HttpSubject(SCHEMA, user, headers={"Authorization": "literal-key-123"}),
            lambda: HttpSubject(SCHEMA, user, headers={"X-Token": "literal-key-123\n"}),
        ):
            with pytest.raises((SubjectError, RequestError)) as caught:
                make()
            chain = "".join(traceback.format_exception(caught.value, limit=0))
            self._assert_clean(chain, secret)

    def test_user_and_password_are_in_no_text(self, service: Service) -> None:
        service.answer = lambda request: Reply(
            f"{request.headers['Authorization']} bob-the-user:{self.PASSWORD}", status=400
        )
        url = f"http://bob-the-user:{self.PASSWORD}@127.0.0.1:{service.port}/"
        subject = HttpSubject(SCHEMA, url)
        line = subject.reproduce(SCHEMA.decode_row(np.array([0, 0])))
        text = f"{run(subject)} {line} {subject._requests.described()}"
        assert '-u "$URL_USER":"$URL_PASSWORD"' in line
        assert self.PASSWORD not in text
        assert "bob-the-user" not in text
        assert base64.b64encode(f"bob-the-user:{self.PASSWORD}".encode()).decode() not in text

    def test_curl_line_names_the_variables(self, service: Service, secret: str) -> None:
        line = self.subject(service).reproduce(SCHEMA.decode_row(np.array([0, 0])))
        assert """-H 'Authorization: Bearer '"$SERVICE_TOKEN" """ in line
        assert """-H 'X-Api-Key: '"$X_API_KEY" """ in line
        assert """'/a?sig='"$SIG"'&x=%24'""" in line
        assert "X-Plain: plain-value" in line

    def test_fingerprint_depends_on_the_template_not_on_the_value(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        prints = []
        for value in ("first-value", "second-value"):
            monkeypatch.setenv("SERVICE_TOKEN", value)
            prints.append(self.subject(service).fingerprint())
        assert prints[0] == prints[1]
        assert self.subject(service, version="2").fingerprint() != prints[0]
        assert self.subject(service, body={"a": "{input}"}).fingerprint() != prints[0]
        assert self.subject(service, answer="/d").fingerprint() != prints[0]
        assert self.subject(service, concurrency=1).fingerprint() == prints[0]

    def test_missing_variable_is_named(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.delenv("NO_SUCH_TOKEN", raising=False)
        text = complaint("http://localhost/${ALSO_MISSING}", headers={"A": "x ${NO_SUCH_TOKEN}"})
        assert "subject.headers.A: NO_SUCH_TOKEN is not set in the environment" in text
        assert "subject.url: ALSO_MISSING is not set in the environment" in text

    def test_variable_can_not_add_headers(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("SERVICE_TOKEN", "abcd\r\nX-Evil: 1")
        text = complaint(headers={"Authorization": "Bearer ${SERVICE_TOKEN}"})
        assert "SERVICE_TOKEN holds a line end" in text
        assert "Evil" not in text

    def test_pickled_subject_holds_no_variable(self, service: Service, secret: str) -> None:
        data = pickle.dumps(self.subject(service))
        assert secret.encode() not in data
        assert run(pickle.loads(data)).outputs == [1]

    def test_value_of_a_variable_that_is_an_output_is_a_failure(
        self, service: Service, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("MODE", "approve")
        service.answer = lambda request: Reply('"approve"')
        failure = failure_of(service.subject("/${MODE}"))
        assert failure == Failure(INVALID, "the answer repeats a secret")

    def _assert_clean(self, text: str, secret: str) -> None:
        encoded = base64.b64encode(secret.encode()).decode()
        forms = (secret, json.dumps(secret)[1:-1], "9f8e7d", encoded, encoded[:-4])
        for form in (*forms, self.PASSWORD, "literal-key-123", "abc-sig-456"):
            assert form not in text, form


class TestLife:
    def test_interrupt_cancels_what_is_in_flight(self, service: Service) -> None:
        asked = threading.Event()

        def answer(request: Request) -> Reply:
            asked.set()
            service.stopped.wait(20)
            return Reply()

        def interrupt() -> None:
            asked.wait(10)
            time.sleep(0.1)
            times.append(time.monotonic())
            os.kill(os.getpid(), signal.SIGINT)

        times: list[float] = []
        service.answer = answer
        subject = service.subject(timeout_seconds=30)
        thread = threading.Thread(target=interrupt)
        thread.start()
        with pytest.raises(KeyboardInterrupt):
            subject.load(many(100)).run()
        assert time.monotonic() - times[0] < 1
        thread.join()
        count = len(service.requests)
        time.sleep(0.1)
        assert len(service.requests) == count
        service.answer = lambda request: Reply()
        assert run(subject).outputs == [1]

    def test_closed_subject_can_be_used_again(self, service: Service) -> None:
        subject = service.subject()
        before = threading.active_count()
        assert run(subject).outputs == run(subject).outputs == [1]
        subject.close()
        assert not any(each.name == "themis-http" for each in threading.enumerate()), before

    def test_forgotten_subject_ends_its_thread(self, service: Service) -> None:
        subject = service.subject()
        subject.load(many(2)).run()
        del subject
        deadline = time.monotonic() + 2
        while any(each.name == "themis-http" for each in threading.enumerate()):
            assert time.monotonic() < deadline
            time.sleep(0.01)

    def test_program_that_forgets_to_close_ends_without_a_word(self, service: Service) -> None:
        code = (
            "import numpy as np; from themis import Schema; "
            "from themis.subjects.http import HttpSubject; "
            f"s = HttpSubject(Schema(a=[1, 2]), {service.url!r}); "
            "print(s.load(np.array([[0], [1]])).run().outputs)"
        )
        done = subprocess.run(
            [sys.executable, "-W", "error", "-X", "dev", "-c", code],
            capture_output=True, text=True, timeout=20, check=False,
        )  # fmt: skip
        assert (done.returncode, done.stdout, done.stderr) == (0, "[1, 1]\n", "")

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

    def test_client_is_not_shown_with_its_headers(self, service: Service) -> None:
        subject = service.subject(headers={"Authorization": "Bearer abcdefgh"})
        client: Client = subject._client
        assert "abcdefgh" not in repr(client)


class TestExample:
    def test_chat_example_finds_what_its_server_does(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("CHAT_API_KEY", "example-key")
        with (EXAMPLE / "themis.toml").open("rb") as file:
            config = tomllib.load(file)
        options = config["subject"]
        assert options.pop("kind") == "http"
        favourable = options.pop("favourable")
        command = [sys.executable, str(EXAMPLE / "server.py"), "--port", "0"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                assert server.stdout is not None
                options["url"] = server.stdout.readline().split()[-1]
                schema = Schema.from_dict(config)
                subject = HttpSubject(schema, **options)
                audit = themis.Audit(subject, schema, seed=1, favourable=favourable)
                assert audit.causal("sex").low > 0
                assert audit.causal("city").high < 0.1
                subject.close()
            finally:
                server.kill()
