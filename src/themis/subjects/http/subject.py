"""Web services as subjects: requests over kept connections, one input or many in each."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, RequestError
from themis.inputs.characteristics import Codes, Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch
from themis.subjects.http.client import Client, Limits, Target
from themis.subjects.http.requests_http_requests import Requests
from themis.subjects.http.subject_http_answers import AnswerReader
from themis.subjects.http.subject_http_exchange import Exchange
from themis.subjects.processes.programs import check_limits

INPUTS_PER_REQUEST = 1_000  # at most, where a request carries a list
REQUESTS_EACH = 16  # requests of a batch for each connection, where one carries one input


class HttpSubject:
    """A web service that decides: one request for each input, or for a list of inputs.

    `body` is JSON, as text or as data, with places: `{race}` within a string inserts text, a
    string that is nothing but `{age}` becomes the value itself, `{input}` a JSON object with all
    values, `{inputs}` a list of such objects (then the answer is a list, too). Places may stand in
    the `url`, too, where values are percent-encoded; `{{` and `}}` stand for braces. Without a
    body and without places the input is sent as a JSON object.

    `answer` says where the output is: a JSON pointer ("" is the whole document; for lists
    "/outputs" or "/outputs/*/decision"), "text" for the whole answer, or "status". Outputs are JSON
    values. `${NAME}` in the url and the headers stands for an environment variable, whose value is
    a secret: it is sent, and neither shown nor hashed.

    What fails for the time being (429, 5xx, no connection, no answer in time) is tried again
    `retries` times, as late as the service asks for. Redirects are refused, unless
    `follow_redirects` allows them within the same service.
    """

    structured = False  # whether an output may have parts
    kind = "http"
    vectorised = False

    def __init__(
        self,
        schema: Schema,
        url: str,
        *,
        method: str = "POST",
        headers: Mapping[str, str] | None = None,
        body: Any = None,
        answer: str = "",
        concurrency: int = 16,
        rate_per_second: float | None = None,
        retries: int = 3,
        timeout_seconds: float = 10.0,
        follow_redirects: bool = False,
        version: str = "",
    ) -> None:
        self.schema = schema
        check_limits(concurrency=concurrency, timeout_seconds=timeout_seconds)
        check_limits(rate_per_second=1 if rate_per_second is None else rate_per_second)
        if retries < 0:
            mistake = Mistake("subject", "subject.retries", f"is {retries}", "use 0 or more")
            raise RequestError([mistake])
        self._limits = Limits(
            concurrency, rate_per_second, retries, timeout_seconds, follow_redirects
        )
        self._given: dict[str, Any] = {
            "url": url,
            "method": method,
            "headers": dict(headers or {}),
            "body": body,
        }
        self._answer, self._version = answer, version
        self._inputs_per_request = INPUTS_PER_REQUEST
        self._open()

    @property
    def batch_size(self) -> int:
        """How many inputs to run together: enough to keep all connections busy."""
        inputs = INPUTS_PER_REQUEST if self._requests.many else REQUESTS_EACH
        return self._limits.concurrency * inputs

    def load(self, codes: NDArray[Any]) -> Batch:
        return _HttpBatch(self, codes)

    def fingerprint(self) -> str:
        """A hash of what is sent and read, secrets by their names; the service itself is unknown.

        A service that changes behind its address is told apart by `version` only.
        """
        parts = [self.kind, *self._requests.described(), self._answer, self._version]
        digest = hashlib.sha256()
        for part in parts:
            digest.update(part.encode() + b"\0")
        return digest.hexdigest()[:16]

    def reproduce(self, row: Mapping[str, Value]) -> str:
        """A line that a person can paste into a shell to ask the service about this input."""
        return self._requests.curl(row)

    def close(self) -> None:
        """Close the connections; a later batch opens new ones."""
        self._client.close()

    def run(self, codes: NDArray[Any]) -> Answers:
        """The answers of the service to these inputs, in order."""
        self._reader.structured = self.structured
        exchange = Exchange(self._client, self._requests, self._reader, codes)
        if self._requests.many:
            size = self._inputs_per_request
            parts = [
                range(len(codes))[start : start + size] for start in range(0, len(codes), size)
            ]
            self._client.run(lambda number: exchange.settle(parts[number]), len(parts))
            self._inputs_per_request = min(size, exchange.inputs_per_request)
        else:
            self._client.run(exchange.ask, len(codes))
        return Answers(exchange.outputs, dict(sorted(exchange.failures.items())))

    def _open(self) -> None:
        requests = Requests(self.schema, **self._given)
        self._requests: Requests = requests
        self._reader: AnswerReader = AnswerReader(
            self._answer, requests.credentials, many=requests.many
        )
        target = Target(requests.method, requests.address.host, requests.address.secure)
        redact = requests.credentials.redact
        self._client: Client = Client(target, requests.headers, self._limits, redact)

    def __getstate__(self) -> dict[str, Any]:
        live = ("_requests", "_reader", "_client")  # secrets of the environment stay here, too
        return {key: value for key, value in self.__dict__.items() if key not in live}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._open()


class _HttpBatch:
    def __init__(self, subject: HttpSubject, codes: NDArray[Any]) -> None:
        self._subject = subject
        self._codes = codes.copy()

    def take(self, places: NDArray[np.int64]) -> Batch:
        return _HttpBatch(self._subject, self._codes[places])

    def overwrite(self, column: int, codes: Codes | int) -> None:
        self._codes[:, column] = codes

    def run(self) -> Answers:
        return self._subject.run(self._codes)
