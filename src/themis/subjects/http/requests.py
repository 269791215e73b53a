"""Requests: what is sent to a service for an input, from the keys of the configuration file."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from themis._version import __version__
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.http.addresses import (
    Credentials,
    basic_authorization,
    header_pieces,
    parse_address,
    shell_word,
    shown,
)
from themis.subjects.processes.programs import mistake_in, shell_quoted
from themis.subjects.processes.texts import check_texts, shorten
from themis.subjects.templates import (
    Body,
    Piece,
    TemplateWriter,
    parse_json_template,
    uncovered,
)

METHODS = ("GET", "POST", "PUT", "PATCH")

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")


class Requests:
    """How an input becomes a request; everything that can't work is refused here, all at once.

    Secrets are in `headers` and in the address that is sent, and nowhere else.
    """

    def __init__(
        self,
        schema: Schema,
        *,
        url: str,
        method: str,
        headers: Mapping[str, str],
        body: Any,
        where: str = "subject.body",
    ) -> None:
        self._where = where
        check_texts(schema, nul=True)
        self.credentials = Credentials()
        self.method = method
        self.headers: dict[str, str] = {}
        self._shown_headers: dict[str, list[Piece]] = {}
        mistakes: list[Mistake] = []
        if method not in METHODS:
            problem = f"{method!r} is not a method of requests"
            mistakes.append(mistake_in("method", problem, suggest(method, METHODS)))
        self._add_headers(headers, mistakes)
        self.address = parse_address(url, schema, self.credentials, mistakes)
        if self.address.user and "authorization" in map(str.lower, headers):
            problem = "there are a user in the url and an Authorization header"
            mistakes.append(mistake_in("headers", problem, "remove one of them"))
        covered = set(self.address.covered)
        self.body = self._parse_body(body, schema, covered, mistakes)
        if not mistakes:
            where = "subject.url" if self.body is None else where
            mistakes += uncovered(schema, covered, where)
        if mistakes:
            raise RequestError(mistakes)
        self._add_own_headers()

    @property
    def many(self) -> bool:
        """Whether one request carries a list of inputs."""
        return self.body is not None and self.body.many

    def described(self) -> list[str]:
        """All that makes the requests what they are; secrets by their names."""
        parts = [self.method, self.address.shown]
        for name, pieces in sorted(self._shown_headers.items()):
            parts.append(f"{name.lower()}: {shown(pieces)}")
        if self.body is not None:
            parts += [self.body.join([]).decode(), self.body.row.described()]
        return parts

    def curl(self, row: Mapping[str, Value]) -> str:
        """A line for a shell that sends this input; secrets as environment variables."""
        words = ["curl", "-sS", "-X", self.method, self.address.shell.render_row(row).decode()]
        if self.address.shell_user:
            words += ["-u", self.address.shell_user]
        for name, pieces in self._shown_headers.items():
            words += ["-H", shell_word([f"{name}: ", *pieces])]
        if self.body is not None:
            data = self.body.join([self.body.row.render_row(row)])
            words += ["--data-raw", shell_quoted(data)]
        return " ".join(words)

    def _add_headers(self, headers: Mapping[str, str], mistakes: list[Mistake]) -> None:
        for name, value in headers.items():
            if not _HEADER_NAME.fullmatch(name):
                problem = f"{name!r} can't be the name of a header"
                mistakes.append(mistake_in("headers", problem, "use letters, digits and hyphens"))
            elif not value.isprintable():
                problem = f"the value of {name} holds a line end or a control character"
                mistakes.append(mistake_in("headers", problem, "remove it"))
            else:
                pieces = header_pieces(name, value)
                where = f"subject.headers.{name}"
                found = self.credentials.expand(pieces, where=where, mistakes=mistakes)
                self.headers[name] = "".join(map(str, found))
                self._shown_headers[name] = pieces

    def _add_own_headers(self) -> None:
        """Those that every request has, unless the user gave them."""
        own: dict[str, str] = {"User-Agent": f"themis/{__version__}", "Accept-Encoding": "identity"}
        if self.body is not None:
            own["Content-Type"] = "application/json"
        given = {name.lower() for name in self.headers}
        for name, value in own.items():
            if name.lower() not in given:
                self.headers[name] = value
        if self.body is not None and "content-type" not in given:
            self._shown_headers["Content-Type"] = [own["Content-Type"]]
        if self.address.user:
            self.headers["Authorization"] = basic_authorization(self.address.user)
            self.credentials.protect(self.headers["Authorization"], "AUTHORIZATION")

    def _parse_body(
        self, body: Any, schema: Schema, covered: set[int], mistakes: list[Mistake]
    ) -> Body | None:
        if body is None and (self.method == "GET" or covered):
            return None
        if self.method == "GET":
            problem = "a GET request has no body"
            mistakes.append(mistake_in("body", problem, "put places in the url, or use POST"))
        writer = TemplateWriter(schema, self._where)
        try:
            writer.add_json(_as_json("{input}" if body is None else body, schema))
        except ValueError as error:
            problem = f"{shorten(str(body))!r} is not JSON: {error}"
            mistakes.append(mistake_in("body", problem, 'write it as a table, or "{input}"'))
        result = writer.body()
        mistakes += writer.mistakes
        if result.many and covered:
            problem = "a list of inputs in the body, and places in the url, can't be filled at once"
            mistakes.append(mistake_in("body", problem, "use {input} instead of {inputs}"))
        covered |= writer.covered
        return result


def _as_json(body: Any, schema: Schema) -> Any:
    """The body as a JSON template, be it a table, a place, or a text that holds JSON."""
    if not isinstance(body, str):
        return body
    return parse_json_template(body, schema)
