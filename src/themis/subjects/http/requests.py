"""Requests: what is sent to a service for an input, from the keys of the configuration file.

Secrets are sent, and kept out of all texts.
"""

from __future__ import annotations

import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any
from urllib.parse import quote, urlsplit

from themis._version import __version__
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.processes.programs import mistake_in, shell_quoted
from themis.subjects.secrets import Secrets
from themis.subjects.templates import (
    Body,
    Piece,
    Place,
    Template,
    TemplateWriter,
    Variable,
    split,
    uncovered,
    unlike,
)
from themis.subjects.texts import check_texts, shorten

METHODS = ("GET", "POST", "PUT", "PATCH")
WHERE = "subject.url"

_HEADER_NAME = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+")
_SENSITIVE = re.compile(
    r"auth$|authori[sz]|token$|secret|session|signature$|^sig$|passw|pwd$|key$|cookie",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)
_AUTHORITY = re.compile(r"[a-z][a-z\d+.-]*://[^/?#]*", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<=[?&])([^=&#{}]+)=([^&#{}]+)(?=[&#]|$)")
_HOST = re.compile(r"(?:.*@)?(?:\[[^\[\]]+\]|[^\[\]:]+)(?::\d*)?")
_MARKS = "%/:=&?~#+!$,;'@()*[]|"  # what has a meaning in an address, and stays as it is


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
        covered = set(self.address.covered)
        self.body = self._parse_body(body, schema, covered, mistakes)
        if not mistakes:
            where = "subject.url" if self.body is None else where
            mistakes += uncovered(schema, covered, where)
        if not mistakes and self.body is not None:
            mistakes += dict.fromkeys(unlike(schema, self.body.row))
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
            writer.add_json(_as_json("{input}" if body is None else body))
        except ValueError as error:
            problem = f"{shorten(str(body))!r} is not JSON: {error}"
            remedy = 'write it as a table, or "{input}"; a place stands in quotes: "{age}"'
            mistakes.append(mistake_in("body", problem, remedy))
        result = writer.body()
        mistakes += writer.mistakes
        if result.many and covered:
            problem = "a list of inputs in the body, and places in the url, can't be filled at once"
            mistakes.append(mistake_in("body", problem, "use {input} instead of {inputs}"))
        covered |= writer.covered
        return result


def _as_json(body: Any) -> Any:
    """The body as a JSON template, be it a table, a place, or a text that holds JSON."""
    is_place = isinstance(body, str) and body.strip() in ("{input}", "{inputs}")
    return body.strip() if is_place else json.loads(body) if isinstance(body, str) else body


class Credentials(Secrets):
    """The secrets of a service, which are read from the environment or written out."""

    def expand(
        self, pieces: Iterable[Piece], *, where: str, mistakes: list[Mistake]
    ) -> list[Piece]:
        """The pieces with the values of their variables, which are secrets from now on."""
        return [
            self._value(piece, where, mistakes) if isinstance(piece, Variable) else piece
            for piece in pieces
        ]

    def _value(self, variable: Variable, where: str, mistakes: list[Mistake]) -> str:
        name = variable.name
        value = os.environ.get(name, "") if variable.value is None else variable.value
        if not _NAME.fullmatch(name):
            problem, remedy = (
                f"${{{name}}} is no environment variable",
                "write for example ${TOKEN}",
            )
        elif not value:
            problem, remedy = f"{name} is not set in the environment", f"run: export {name}=…"
        elif not value.isprintable():
            problem, remedy = f"{name} holds a line end or a control character", "remove it"
        else:
            self.protect(value, name)
            return value
        mistakes.append(Mistake("subject", where, problem, remedy))
        return ""


def header_pieces(name: str, value: str) -> list[Piece]:
    """A header's value in pieces, of which those that are secret are variables.

    A secret that is written out gets the name of its header: `$AUTHORIZATION`.
    """
    if is_sensitive(name) and "${" not in value:
        return [Variable(variable_name(name), value)]
    return split(value, places=False, variables=True)


def is_sensitive(name: str) -> bool:
    """Whether what a header or a parameter of this name holds is a secret."""
    return bool(_SENSITIVE.search(name))


def variable_name(name: str) -> str:
    """The name of the environment variable that a person would use for this header."""
    return re.sub(r"\W", "_", name.strip(), flags=re.ASCII).upper()


def shown(pieces: Iterable[Piece]) -> str:
    """The pieces as they may be shown: secrets by their names."""
    return "".join(
        piece
        if isinstance(piece, str)
        else f"${{{piece.name}}}"
        if isinstance(piece, Variable)
        else piece.text
        for piece in pieces
    )


def shell_word(pieces: Iterable[Piece]) -> str:
    """The same as a word for a shell that knows the variables; there are no places in it.

    >>> print(shell_word(["Authorization: ", "Bearer ", Variable("TOKEN")]))
    'Authorization: Bearer '"$TOKEN"
    """
    word = ""
    for secret, group in groupby(pieces, key=lambda piece: isinstance(piece, Variable)):
        texts = [piece if isinstance(piece, str) else piece.name for piece in group]
        word += "".join(f'"${name}"' for name in texts) if secret else shlex.quote("".join(texts))
    return word


@dataclass(frozen=True)
class Address:
    """An address as it is sent, and as it may be shown."""

    template: Template = field(repr=False)
    covered: frozenset[int]  # the columns that have a place in it
    host: str  # with the port
    secure: bool
    shown: str  # secrets by their names
    shell: Template  # the same as a word for a shell


def parse_address(
    url: str, schema: Schema, credentials: Credentials, mistakes: list[Mistake]
) -> Address:
    """The address that a text describes; what is wrong with it is added to the mistakes."""
    authority = _AUTHORITY.match(url)
    if authority is not None and "@" in authority[0]:  # which is not shown
        raise RequestError([_user_mistake("a user and a password")])
    start = authority.end() if authority is not None else 0
    if any(isinstance(piece, Place) for piece in split(url[:start], variables=True)):
        remedy = "put it behind the host"
        mistakes.append(mistake_in("url", "a place can't be part of the host", remedy))
    pieces = [*split(url[:start], variables=True), *_split_rest(url[start:])]
    known = len(mistakes)
    sent = credentials.expand(pieces, where=WHERE, mistakes=mistakes)
    plain = "".join(map(_text, sent))
    if len(mistakes) == known:
        mistakes += _form_mistakes(plain, shown(pieces))
    writer = TemplateWriter(schema, WHERE)
    writer.add_address([_quote(piece) for piece in sent])
    mistakes += writer.mistakes
    shell = TemplateWriter(schema, WHERE)
    shell.add_address(
        [each if isinstance(each, Place) else shell_word([_quote(each)]) for each in pieces]
    )
    return Address(
        template=writer.template(),
        covered=frozenset(writer.covered),
        host=credentials.redact(plain.partition("://")[2].partition("/")[0].partition("?")[0]),
        secure=plain.lower().startswith("https:"),
        shown=shown(pieces),
        shell=shell.template(),
    )


def _split_rest(text: str) -> Iterator[Piece]:
    """What stands behind the host; parameters such as `key=…` are secrets."""
    end = 0
    for found in _PARAMETER.finditer(text):
        if is_sensitive(found[1]):
            yield from split(text[end : found.start(2)], variables=True)
            yield Variable(variable_name(found[1]), found[2])
            end = found.end()
    yield from split(text[end:], variables=True)


def _form_mistakes(text: str, described: str) -> Iterator[Mistake]:
    """What is wrong with an address; `described` is how to show it."""
    try:
        parts = urlsplit(text)
        host, _ = parts.hostname or "", parts.port
        is_host = host.isascii() and bool(host.encode("idna"))  # as it is looked up
    except ValueError:
        is_host = False
    if not is_host or parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
        problem = f"{described!r} is not an address of the web"
        yield mistake_in("url", problem, "write https://host:port/path, in ASCII")
    elif parts.username is not None:
        yield _user_mistake("a variable that holds a user and a password")
    elif parts.fragment:
        yield mistake_in("url", f"{described!r}: what follows # is never sent", "remove it")


def _user_mistake(what: str) -> Mistake:
    remedy = 'write headers = { Authorization = "Basic ${LOGIN}" }, LOGIN being their base64'
    return mistake_in("url", f"{what} can't be part of it", remedy)


def _quote(piece: Piece) -> Piece:
    return quote(piece, safe=_MARKS) if isinstance(piece, str) else piece


def _text(piece: Piece) -> str:
    """A piece that has been expanded; places hold something harmless."""
    return piece if isinstance(piece, str) else "x"
