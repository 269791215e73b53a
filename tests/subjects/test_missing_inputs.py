"""A missing value reaches every kind of subject as what that kind has for it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import themis
from tests.services import Reply, Request, serve
from themis.subjects.base import Subject
from themis.subjects.http.subject import HttpSubject
from themis.subjects.loading import subject_from
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


def answers(subject: Subject) -> list[Any]:
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


class Recorder:
    """A model that keeps what it was given."""

    def __init__(self) -> None:
        self.seen: list[Any] = []

    def predict(self, rows: Any) -> Any:
        self.seen.append(rows)
        return np.ones(len(rows))


def test_a_model_gets_nan_in_a_frame_whatever_the_kind_of_value() -> None:
    model = Recorder()
    answers(subject_from(model, SCHEMA))
    (frame,) = model.seen
    assert frame.isna().to_numpy().tolist() == [[False] * 4, [True] * 4, [False, False, True, True]]
    assert all(isinstance(value, float) for value in frame.iloc[1])
    assert frame["age"].dtype == np.float64


def test_a_model_gets_nan_in_an_array() -> None:
    schema = themis.Schema({each.name: each for each in SCHEMA if each.name != "race"})
    model = Recorder()
    subject_from(model, schema).load(CODES[:, 1:]).run()
    np.testing.assert_array_equal(
        model.seen[0], [[19, 0.5, 1], [np.nan, np.nan, np.nan], [18, np.nan, np.nan]]
    )


@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        (
            "positional",
            ['["green", "19", "0.5", "true"]', '["", "", "", ""]', '["", "18", "", ""]'],
        ),
        (
            "json",
            [
                '[]{"race": "green", "age": 19, "rate": 0.5, "member": true}',
                '[]{"race": null, "age": null, "rate": null, "member": null}',
                '[]{"race": "", "age": 18, "rate": null, "member": null}',
            ],
        ),
        ("csv", ["green,19,0.5,true", ",,,", '"",18,,']),
    ],
)
def test_a_command_gets_an_empty_argument_a_null_or_an_empty_field(
    mode: str, expected: list[str]
) -> None:
    command = [sys.executable, "-c", ECHO]
    with closing(CommandSubject(SCHEMA, command, arguments=mode)) as subject:
        assert answers(subject) == expected


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


@pytest.mark.parametrize(
    ("form", "expected"),
    [
        ("jsonl", [*map(json.dumps, PEOPLE)]),
        ("csv", ["green;19;0.5;true", ";;;", "'';18;;"]),
    ],
)
def test_a_worker_gets_null_or_an_empty_field(form: str, expected: list[str]) -> None:
    command = [sys.executable, "-c", WORKER]
    with closing(WorkerSubject(SCHEMA, command, format=form)) as subject:
        assert answers(subject) == expected


@pytest.mark.parametrize(
    ("options", "sent"),
    [
        ({}, lambda r: r.json == PEOPLE[1]),
        (
            {"body": {"who": "{race}", "text": "aged {age}", "rate": "{rate}", "m": "{member}"}},
            lambda r: r.json == {"who": None, "text": "aged ", "rate": None, "m": None},
        ),
        (
            {"method": "GET", "path": "/{race}?age={age}&rate={rate}&member={member}"},
            lambda r: r.path == "/?age=&rate=&member=",
        ),
    ],
)
def test_a_service_gets_null_and_in_texts_nothing(
    options: dict[str, Any], sent: Callable[[Request], bool]
) -> None:
    with serve() as service:
        service.answer = lambda request: Reply(b"1")
        url = service.url + options.pop("path", "/")
        with closing(HttpSubject(SCHEMA, url=url, **options)) as subject:
            subject.load(CODES[1:2]).run()
        (request,) = service.requests
        assert sent(request)


def test_an_onnx_model_of_whole_numbers_takes_no_missing_value() -> None:
    from themis.subjects.models import _type_mistakes

    (mistake,) = _type_mistakes(SCHEMA.characteristics[1], "tensor(int64)")
    assert "may be missing" in mistake.problem
    assert not list(_type_mistakes(SCHEMA.characteristics[1], "tensor(float)"))
