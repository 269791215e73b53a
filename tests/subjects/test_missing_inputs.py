"""A missing value reaches every kind of subject as what that kind has for it."""

from __future__ import annotations

import json
import sys
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import themis
from tests.services import Service, run
from themis.subjects.base import Subject
from themis.subjects.loading import subject_from
from themis.subjects.models import _type_mistakes
from themis.subjects.processes.command import CommandSubject
from themis.subjects.processes.worker import WorkerSubject

SCHEMA = themis.Schema(
    race=themis.Values(["green", ""], missing=0.1),
    age=themis.Integers(18, 20, missing=0.2),
    rate=themis.Reals(0.0, 1.0, step=0.5, missing=0.3),
    member=themis.Values([False, True], missing=0.4),
)
CODES = np.array([[0, 1, 1, 1], [2, 3, 3, 2], [1, 0, 3, 2]])  # all values, no value, some
PEOPLE = [
    {"race": "green", "age": 19, "rate": 0.5, "member": True},
    {"race": None, "age": None, "rate": None, "member": None},
    {"race": "", "age": 18, "rate": None, "member": None},
]

# A program that writes down what it was given and answers with it.
ECHO = "import sys, json\nprint(json.dumps(sys.argv[1:]) + sys.stdin.read())"
WORKER = """
import json, sys
for line in sys.stdin:
    if line.startswith("{"):
        request = json.loads(line)
        answer = json.dumps({"id": request["id"], "output": json.dumps(request["input"])})
    else:
        number, _, fields = line.strip().partition(",")
        fields = fields.replace(",", ";").replace('"', "'")
        answer = "id,output" if number == "id" else number + "," + fields
    print(answer, flush=True)
"""


def answers(subject: Subject) -> list[Any]:
    with closing(subject):
        batch = subject.load(CODES)
        for place in range(CODES.shape[1]):  # overwriting a column is another way to the same value
            batch.overwrite(place, CODES[:, place])
        found = batch.run()
    assert not found.failures
    return list(found.outputs)


def test_a_row_function_gets_none() -> None:
    seen: list[dict[str, Any]] = []
    answers(subject_from(lambda row: seen.append(row) or 1, SCHEMA))
    assert seen == PEOPLE
    assert [type(value) for value in seen[0].values()] == [str, int, float, bool]


def test_a_table_function_gets_nan_for_numbers_and_none_for_others() -> None:
    seen: list[Any] = []
    answers(subject_from(themis.batch(lambda table: seen.append(table) or np.ones(3)), SCHEMA))
    (table,) = seen
    assert table["race"].tolist() == ["green", None, ""]
    assert table["member"].tolist() == [True, None, None]
    assert table["age"].dtype == table["rate"].dtype == np.float64
    np.testing.assert_array_equal(table["age"], [19, np.nan, 18])
    np.testing.assert_array_equal(table["rate"], [0.5, np.nan, np.nan])


@pytest.mark.parametrize("names", [SCHEMA.names, SCHEMA.names[1:]], ids=["frame", "array"])
def test_a_model_gets_nan_whatever_the_kind_of_value(names: tuple[str, ...]) -> None:
    seen: list[Any] = []

    class Recorder:
        def predict(self, rows: Any) -> Any:
            seen.append(rows)
            return np.ones(len(rows))

    schema = themis.Schema({name: SCHEMA[name] for name in names})
    subject_from(Recorder(), schema).load(CODES[:, -len(names) :]).run()
    rows = np.asarray(seen[0])
    assert rows[0].tolist() == list(PEOPLE[0].values())[-len(names) :]
    assert all(isinstance(value, float) and np.isnan(value) for value in rows[1])
    assert [value != value for value in rows[2, -3:]] == [False, True, True]


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("positional", [*map(json.dumps, (["green", "19", "0.5", "true"], [""] * 4))]),
        ("json", ["[]" + json.dumps(person) for person in PEOPLE]),
        ("csv", ["green,19,0.5,true", ",,,", '"",18,,']),
    ],
)
def test_a_command_gets_an_empty_argument_a_null_or_an_empty_field(
    mode: str, expected: list[str]
) -> None:
    subject = CommandSubject(SCHEMA, [sys.executable, "-c", ECHO], arguments=mode)
    assert answers(subject)[: len(expected)] == expected


@pytest.mark.parametrize(
    ("form", "expected"),
    [("jsonl", [*map(json.dumps, PEOPLE)]), ("csv", ["green;19;0.5;true", ";;;", "'';18;;"])],
)
def test_a_worker_gets_null_or_an_empty_field(form: str, expected: list[str]) -> None:
    subject = WorkerSubject(SCHEMA, [sys.executable, "-c", WORKER], format=form)
    assert answers(subject) == expected


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, PEOPLE[1]),
        (
            {"body": {"who": "{race}", "text": "aged {age}", "rate": "{rate}", "m": "{member}"}},
            {"who": None, "text": "aged ", "rate": None, "m": None},
        ),
        (
            {"method": "GET", "path": "/{race}?age={age}&rate={rate}&member={member}"},
            "/?age=&rate=&member=",
        ),
    ],
)
def test_a_service_gets_null_and_in_texts_nothing(
    service: Service, options: dict[str, Any], sent: Any
) -> None:
    run(service.subject(schema=SCHEMA, **options), CODES[1:2])
    (request,) = service.requests
    assert sent == (request.json if request.body else request.path)


@pytest.mark.parametrize(("numbers", "mistakes"), [("int64", 1), ("float", 0)])
def test_an_onnx_model_of_whole_numbers_takes_no_missing_value(numbers: str, mistakes: int) -> None:
    found = [*_type_mistakes(SCHEMA["age"], f"tensor({numbers})")]
    assert ["may be missing" in each.problem for each in found] == [True] * mistakes
