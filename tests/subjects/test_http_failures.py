"""Web services as subjects: busy, silent, broken, redirecting, unreachable and false services."""

from __future__ import annotations

import email.utils
import socket
import ssl
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.clocks import Clock
from tests.services import SCHEMA, Reply, Request, Service, failure_of, many, run, serve
from themis import Audit, SubjectError
from themis.show.words.scores import failure_text
from themis.subjects.decisions import CRASH, NOT_SENT, TRANSPORT, Failure
from themis.subjects.http import client
from themis.subjects.http.client import Pace
from themis.subjects.http.subject import HttpSubject

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.usefixtures("quick_retries")

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


def test_the_pace_is_that_of_what_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock.put_into(monkeypatch, client)
    pace = Pace(None)
    for _ in range(20):
        pace.answered()
    assert not pace.matters
    pace.slow_down(clock.now)
    assert pace.interval == pytest.approx(1 / 20)
    pace.slow_down(clock.now + 0.5)  # of the same burst
    assert pace.interval == pytest.approx(1 / 20)
    clock.now += 5.0
    pace.slow_down(clock.now)  # and nothing was answered meanwhile
    assert pace.interval == pytest.approx(2 / 20)
    pace.answered()
    assert pace.interval == pytest.approx(2 / 20)  # not yet faster
    clock.now += 2.0
    for _ in range(1_000):
        pace.answered()
    assert pace.interval < 1 / 200


class TestRetries:
    @pytest.mark.parametrize("status", [429, 500, 502, 503, 504, None])
    def test_busy_service_or_broken_connection_is_asked_again(
        self, service: Service, status: int | None
    ) -> None:
        busy = status and Reply(status=status)
        service.answer = lambda _: Reply("0") if len(service.requests) > 2 else busy
        assert run(service.subject()).outputs == [0]
        assert len(service.requests) == 3

    def test_failure_after_the_retries_is_no_decision(self, service: Service) -> None:
        service.answer = lambda request: Reply("out of \n order", status=503)
        failure = failure_of(service.subject(retries=2))
        message = "HTTP 503 Service Unavailable (3 attempts): out of order"
        assert failure == Failure(TRANSPORT, message)
        assert len(service.requests) == 3

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
        assert service.requests[1].time < until[0] + 30

    def test_a_service_that_allows_few_requests_is_asked_no_faster(self, service: Service) -> None:
        """It has room for twenty at once, and for one more every 5 ms."""
        lock, room, last = threading.Lock(), 20.0, time.monotonic()

        def answer(request: Request) -> Reply:
            nonlocal room, last
            with lock:
                now = time.monotonic()
                room, last = min(room + (now - last) / 0.005, 20.0), now
                if room < 1:
                    return Reply(status=429)
                room -= 1
            return Reply()

        service.answer = answer
        answers = run(service.subject(concurrency=16), many(200))
        assert answers.outputs == [1] * 200
        assert len(service.requests) < 500

    @pytest.mark.parametrize("where", ["/other", "http://ann:pw@localhost:1/other", "http://[::1"])
    def test_redirect_is_refused(self, service: Service, where: str) -> None:
        service.answer = lambda request: Reply(status=307, headers={"Location": where})
        failure = failure_of(service.subject(headers={"Authorization": "Bearer of-a-token"}))
        assert failure.kind == CRASH
        assert f"HTTP 307 Temporary Redirect: a redirect to {where!r} is not" in failure.message
        assert "as url of [subject]" in failure.remedy
        assert len(service.requests) == 1

    def test_patience_ends_with_the_time_limit(self, service: Service) -> None:
        year = {"Retry-After": str(365 * 86_400)}
        service.answer = lambda request: Reply(status=429, headers=year)
        subject = service.subject()
        subject.deadline = time.monotonic() + 30
        failure = failure_of(subject)
        assert failure.kind == TRANSPORT
        assert "it asks for more patience than the time limit allows" in failure.message
        assert len(service.requests) == 1


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

    @pytest.mark.parametrize("status", [401, 403, 407])
    def test_a_service_that_refuses_everybody_is_soon_left_in_peace(
        self, service: Service, status: int
    ) -> None:
        service.answer = lambda request: Reply(status=status)
        audit = Audit(service.subject(concurrency=4), SCHEMA, seed=1)
        with pytest.raises(SubjectError, match=rf"HTTP {status}.*not sent, since the last"):
            audit.causal("race")
        assert len(service.requests) < 16 + 4

    def test_service_that_dies_fails_the_rest_at_once(self) -> None:
        with serve() as service:
            subject = service.subject(concurrency=2)
            assert subject.load(many(3)).run().outputs == [1] * 3
            service.answer = lambda request: None  # kept connections outlive the server
        answers = run(subject, many(500))
        assert len(answers.failures) == 500
        assert {each.kind for each in answers.failures.values()} == {TRANSPORT, NOT_SENT}
        assert "all failed" in answers.failures[499].message
        sent = [each for each in answers.failures.values() if each.kind != NOT_SENT]
        assert len(sent) < 25  # those before it was clear, and what was under way

    def test_inputs_that_were_not_sent_are_no_executions(self, service: Service) -> None:
        service.answer = lambda request: Reply("down", status=503)
        audit = Audit(service.subject(retries=0), SCHEMA, seed=1)
        with pytest.raises(SubjectError) as told:
            audit.causal("race")
        sent = len(service.requests)
        unsent = f"{206 - sent} further inputs not sent, since the last "
        assert f"transport in {sent} of {sent} executions, e.g. HTTP 503" in str(told.value)
        assert unsent in str(told.value)
        assert f"requests to 127.0.0.1:{service.port} all failed. no input" in str(told.value)
        runner = audit.runner
        example = runner.failures.to_dict(runner.subject)[NOT_SENT]
        assert failure_text(NOT_SENT, example).startswith(unsent.replace(" further", ""))
        assert "reproduce" not in example

    @pytest.fixture
    def secure(self, tmp_path: Path) -> Iterator[Service]:
        (tmp_path / "key.pem").write_text(TEST_KEY)
        (tmp_path / "certificate.pem").write_text(TEST_CERTIFICATE)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
        with serve(context) as service:
            yield service

    def test_a_certificate_must_be_known(
        self, secure: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        url = f"https://localhost:{secure.port}/"
        with pytest.raises(SubjectError, match="its certificate was refused"):
            run(HttpSubject(SCHEMA, url))
        assert not secure.requests
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "certificate.pem"))
        assert run(HttpSubject(SCHEMA, url)).outputs == [1]
