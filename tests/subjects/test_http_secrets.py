"""Web services as subjects: secrets reach the service, and nobody else."""

from __future__ import annotations

import base64
import json
import pickle
import traceback
from typing import Any

import numpy as np
import pytest

from tests.services import SCHEMA, Reply, Request, Service, complaint, failure_of, many, run
from themis import RequestError, SubjectError
from themis.subjects.decisions import INVALID, Failure
from themis.subjects.http.subject import HttpSubject

pytest.importorskip("aiohttp")
pytestmark = pytest.mark.usefixtures("quick_retries")


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
        said += [repr(vars(subject)["requests"]), repr(subject.requests.credentials)]
        said += [subject.fingerprint(), *subject.requests.described()]
        self._assert_clean("\n".join(said), secret)
        assert answers.failures

    def test_no_exception_repeats_a_secret(
        self, service: Service, secret: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        dead = Service(port=1)
        url = "http://127.0.0.1:1/?token=${SERVICE_TOKEN}"
        for make in (
            lambda: run(self.subject(dead)),
            lambda: run(HttpSubject(SCHEMA, url, retries=0)),
            lambda: HttpSubject(SCHEMA, f"http://bob:{self.PASSWORD}@127.0.0.1:1/"),
            lambda: self.subject(service, body={"x": "{rase}"}),
            lambda: HttpSubject(SCHEMA, "https://${SERVICE_TOKEN}:x/"),
            lambda: HttpSubject(SCHEMA, f"gopher://bob:{self.PASSWORD}@x/${{SERVICE_TOKEN}}"),
            lambda: HttpSubject(SCHEMA, url, headers={"X-Token": "literal-key-123\n"}),
        ):
            with pytest.raises((SubjectError, RequestError)) as caught:
                make()
            chain = "".join(traceback.format_exception(caught.value, limit=0))
            self._assert_clean(chain, secret)

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
