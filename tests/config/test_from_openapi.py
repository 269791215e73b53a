"""Does an OpenAPI description become a service that can be measured at once?"""

from __future__ import annotations

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.projects import run
from tests.services import Reply, Request, Service, serve
from themis.config.from_json_schema import draft_from_json_schema
from themis.config.reader import read_config
from themis.errors import RequestError

APPLICANT: dict[str, Any] = {
    "type": "object",
    "required": ["sex", "income", "name"],
    "properties": {
        "sex": {"enum": ["female", "male"]},
        "income": {"type": "integer", "minimum": 0, "maximum": 99_999},
        "name": {"type": "string", "minLength": 2},
        "note": {"type": "string"},
    },
}
ANSWER: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "result": {"$ref": "#/components/schemas/Verdict"},
        "points": {"type": "number"},
    },
}
VERDICT = {"properties": {"decision": {"enum": ["denied", "granted"]}}}


def description(**changes: Any) -> dict[str, Any]:
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Applicant"}}}}
    answer = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Answer"}}}}
    operation = {"requestBody": body, "responses": {"200": answer, "422": {}}}
    schemas = {"Applicant": APPLICANT, "Answer": ANSWER, "Verdict": VERDICT}
    whole = {"openapi": "3.1.0", "paths": {"/v1/decide": {"post": operation}}}
    return {**whole, "components": {"schemas": schemas}, **changes}


def text_of(document: Any, **options: Any) -> str:
    return draft_from_json_schema(document, source="openapi.json", **options).text()


def subject_of(document: Any, **options: Any) -> dict[str, Any]:
    table: dict[str, Any] = tomllib.loads(text_of(document, **options))["subject"]
    return table


@pytest.fixture
def service() -> Iterator[Service]:
    def answer(request: Request) -> Reply:
        person = request.json
        if request.path != "/v1/decide" or len(person.get("name", "")) < 2:
            return Reply("{}", 422)
        good = person["income"] >= (30_000 if person["sex"] == "male" else 45_000)
        decision = {"decision": "granted" if good else "denied"}
        return Reply(json.dumps({"id": "7", "result": decision, "points": 0.5}))

    with serve() as served:
        served.answer = answer
        yield served


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("name", ["openapi.json", "openapi.yaml"])
def test_a_description_and_two_commands_measure_a_service(name: str, service: Service) -> None:
    document = description(servers=[{"url": service.url}])
    spell = json.dumps if name.endswith("json") else yaml.safe_dump
    Path(name).write_text(spell(document))
    done = run("init", "--from", name, "--protected", "sex")
    assert done.exit_code == 0, done.output
    assert "look over what was guessed" in done.output
    done = run("score", "--measure", "causal", "--error", "0.1", "--json")
    assert done.exit_code == 0, done.output
    (score,) = json.loads(done.stdout)["scores"]
    assert score["low"] <= 0.15 <= score["high"]


def test_what_is_known_is_written_and_what_is_not_has_its_reason() -> None:
    servers = [{"url": "https://loans.example/api/"}]
    text = text_of(description(servers=servers, security=[{"key": []}]))
    Path("themis.toml").write_text(text)
    assert read_config(Path("themis.toml")).subject.kind == "http"
    assert "# headers = { Authorization" in text
    assert "# headers" not in text_of(description())
    assert tomllib.loads(text)["subject"] == {
        "kind": "http",
        "url": "https://loans.example/api/v1/decide",
        "method": "POST",
        "body": {"sex": "{sex}", "income": "{income}", "name": "xx"},
        "answer": "/result/decision",
        "favourable": ["granted"],
    }
    assert "# body: the service needs name as well" in text
    assert "# answer: a guess; the answer also has /id, /points" in text
    document = description()
    document["components"]["schemas"]["Applicant"] = {**APPLICANT, "required": ["sex"]}
    assert subject_of(document)["body"] == "{input}", "where all is known"


NO_SERVER = "# url: the description names no server"


@pytest.mark.parametrize(
    ("servers", "path", "url", "remark"),
    [
        ([], "/v1", "http://localhost:8000/v1", NO_SERVER),
        ([{"url": "/api"}], "/v1", "http://localhost:8000/api/v1", NO_SERVER),
        ([{"url": "https://{zone}.x"}], "/{bank}", "https://{zone}.x/{bank}", "stands in braces"),
    ],
)
def test_what_is_not_known_of_an_address_is_a_guess_or_left_to_write(
    servers: list[Any], path: str, url: str, remark: str
) -> None:
    document = description(servers=servers)
    document["paths"] = {path: document["paths"]["/v1/decide"]}
    text = text_of(document)
    assert tomllib.loads(text)["subject"]["url"] == url
    assert remark in text


@pytest.mark.parametrize(
    ("properties", "pointer", "favourable"),
    [
        ({"ok": {"type": "boolean"}}, "/ok", [True]),
        ({"a": {"type": "number"}, "b": {"type": "boolean"}}, "/b", [True]),
        ({"p": {"type": "number"}}, "/p", None),
        ({"prediction": {"type": "string"}, "ok": {"type": "boolean"}}, "/prediction", None),
        ({}, None, None),
        (None, "text", [True]),
    ],
)
def test_the_decision_is_looked_for_in_the_answer(
    properties: Any, pointer: str | None, favourable: Any
) -> None:
    answer = {"type": "boolean"} if properties is None else {"properties": properties}
    document = description()
    document["components"]["schemas"]["Answer"] = answer
    subject, text = subject_of(document), text_of(document)
    assert subject.get("answer") == pointer
    assert subject.get("favourable") == favourable
    unknown = "# answer: the description does not say what the service answers"
    assert (unknown in text) == (pointer is None)


def test_of_several_bodies_one_has_to_be_chosen_and_is_called() -> None:
    document = description()
    document["components"]["schemas"]["Other"] = {"properties": {"flag": {"type": "boolean"}}}
    body = {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Other"}}}}
    document["paths"]["/other"] = {"put": {"requestBody": body}}
    subject = subject_of(document, pointer="#/components/schemas/Other")
    assert (subject["method"], subject["url"]) == ("PUT", "http://localhost:8000/other")
    with pytest.raises(RequestError, match="describes 2 objects: #/components/schemas/Applicant"):
        text_of(document)
    del document["paths"]
    with pytest.raises(RequestError, match="describes no object; name one: --from FILE#/comp"):
        text_of(document)
