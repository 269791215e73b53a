"""Lines: how inputs with ids go out to a worker, and how answers with ids come back."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Sequence
from itertools import chain, repeat
from typing import Any, Protocol

from themis.inputs.schema import Schema
from themis.subjects.decisions import CRASH, INVALID, Failure
from themis.subjects.templates import Template, csv_parts, json_parts
from themis.subjects.texts import shorten, write_csv

EXCHANGE_LIMIT = 10_000  # inputs that are sent together; ids are a number, then four digits
DIGITS = [b"%04d" % offset for offset in range(EXCHANGE_LIMIT)]


class Format(Protocol):
    """A wire format: lines of requests, written by columns, and records of answers."""

    name: str
    header: bytes  # what a fresh process gets before the first request
    opening: bytes  # what stands before an id
    row: Template  # what stands behind it

    def read(self, lines: bytes) -> Iterator[tuple[Any, Any]]:
        """The ids and outputs, or Failures, one by one; ValueError at the first that is none."""


def write_requests(format_: Format, number: int, rows: Sequence[bytes]) -> bytes:
    """The requests of one exchange, about inputs as its template has them."""
    opening = format_.opening + b"%d" % number
    return b"".join(chain.from_iterable(zip(repeat(opening), DIGITS, rows)))


class JsonLines:
    """`{"id": 7, "input": {"race": "green"}}` → `{"id": 7, "output": "1"}` or `"error": "…"`."""

    name = "jsonl"
    header = b""
    opening = b'{"id": '

    def __init__(self, schema: Schema) -> None:
        self.row = Template.of([b', "input": ', *json_parts(schema), b"}\n"])

    def read(self, lines: bytes) -> Iterator[tuple[Any, Any]]:
        for line in filter(bytes.strip, lines.split(b"\n")):
            try:
                answer = json.loads(line.decode())
            except (ValueError, RecursionError):
                answer = None
            if not isinstance(answer, dict) or "id" not in answer:
                raise ValueError(_no_answer(line))
            yield answer["id"], _json_output(answer)


class CsvLines:
    """`7,green` → `7,1`, or `7,,message` for an error; the first line that is sent is a header."""

    name = "csv"
    opening = b""

    def __init__(self, schema: Schema) -> None:
        self.header = b",".join(map(write_csv, ("id", *schema.names))) + b"\n"
        self.row = Template.of([b",", *csv_parts(schema), b"\n"])

    def read(self, lines: bytes) -> Iterator[tuple[Any, Any]]:
        for line in filter(bytes.strip, lines.split(b"\n")):
            row = _csv_row(line)
            if row and row[0].strip() == "id":
                continue  # a header, as programs that print tables give one
            if len(row) not in (2, 3) or not row[0].strip().isdecimal():
                raise ValueError(_no_answer(line))
            failed = len(row) == 3 and row[2]
            yield int(row[0]), Failure(CRASH, shorten(row[2])) if failed else row[1].strip()


class Exchange:
    """Requests that are sent together to one process, and the answers that came back so far.

    `problem` says what is wrong with what came, and `suspect` the input that it came for.
    """

    fresh = False  # whether the process had answered nothing before
    rescued = False  # whether its input was closed because no answer came
    failure: Failure | None = None  # why it ended early
    errors = ""  # what it wrote to standard error then

    def __init__(self, format_: Format, number: int, count: int) -> None:
        self._format = format_
        self.number = number
        self._first_id = number * EXCHANGE_LIMIT
        self.outputs: list[Any] = [_MISSING] * count  # in the order of the requests
        self._left = count
        self.problem = ""
        self.suspect: int | None = None

    @property
    def complete(self) -> bool:
        """Whether every request has its answer, and nothing was wrong."""
        return not self._left and not self.problem

    @property
    def begun(self) -> bool:
        """Whether there is any answer."""
        return self._left < len(self.outputs)

    def answered(self) -> Iterator[tuple[int, Any]]:
        """The requests with an answer, and what was answered."""
        return ((o, output) for o, output in enumerate(self.outputs) if output is not _MISSING)

    def missing(self) -> list[int]:
        """The requests without an answer."""
        return [o for o, output in enumerate(self.outputs) if output is _MISSING]

    def take(self, lines: bytes) -> None:
        """Match complete lines with the requests; after a problem nothing more is believed."""
        if self.problem:
            return
        try:
            for identity, output in self._format.read(lines):
                self._take_one(identity, output)
                if self.problem:
                    return
        except ValueError as error:
            self.problem = str(error)

    def _take_one(self, identity: Any, output: Any) -> None:
        known = isinstance(identity, int | float) and not isinstance(identity, bool)
        offset = identity - self._first_id if known else -1
        if not (0 <= offset < len(self.outputs) and offset == int(offset)):
            shown = shorten(json.dumps(identity))
            self.problem = f"it answered with the id {shown}, which was not asked"
            return
        offset = int(offset)
        if self.outputs[offset] is not _MISSING:
            self.problem = "it answered twice with the same id"
            self.suspect = offset
            self.outputs[offset] = _MISSING
            self._left += 1
            return
        self.outputs[offset] = output
        self._left -= 1


_MISSING: Any = object()


def _json_output(answer: dict[str, Any]) -> Any:
    if answer.get("error") is not None:
        return Failure(CRASH, shorten(str(answer["error"])))
    if "output" not in answer:
        return Failure(INVALID, f"its answer has no output: {shorten(json.dumps(answer))}")
    return answer["output"]


def _csv_row(record: bytes) -> list[str]:
    try:
        return next(csv.reader(io.StringIO(record.decode(), newline=""), strict=True), [])
    except (ValueError, csv.Error):
        return []


def _no_answer(line: bytes) -> str:
    shown = shorten(line.decode("utf-8", "replace").strip())
    return f"it wrote a line that is not an answer (print to standard error instead): {shown!r}"
