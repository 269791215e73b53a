"""Web services for tests: real servers of which a test says how they answer."""

from __future__ import annotations

import contextlib
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import numpy as np
import pytest

from themis import Integers, RequestError, Schema
from themis.subjects.base import Answers
from themis.subjects.decisions import Failure
from themis.subjects.http.subject import HttpSubject

SCHEMA = Schema(race=["green", "purple"], age=Integers(18, 120))


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
def serve(context: ssl.SSLContext | None = None) -> Iterator[Service]:
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
