"""Addresses: where requests go, with places for values and with secrets that stay secret.

Credentials: what must reach a service and nobody else, and how it is kept out of all texts.
"""

from __future__ import annotations

import base64
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import groupby
from urllib.parse import quote, unquote, urlsplit

from themis.errors import Mistake
from themis.inputs.schema import Schema
from themis.subjects.processes.programs import mistake_in
from themis.subjects.secrets import Secrets
from themis.subjects.templates import Piece, Place, Template, TemplateWriter, Variable, split

_SENSITIVE = re.compile(
    r"auth$|authori[sz]|token$|secret|session|signature$|^sig$|passw|pwd$|key$|cookie",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


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


def basic_authorization(user: str) -> str:
    """The Authorization header for `user:password`."""
    return f"Basic {base64.b64encode(user.encode()).decode()}"


WHERE = "subject.url"

_AUTHORITY = re.compile(r"([a-z][a-z\d+.-]*://)(?:([^/?#]*)@)?([^/?#]*)", re.IGNORECASE)
_PARAMETER = re.compile(r"(?<=[?&])([^=&#{}]+)=([^&#{}]+)(?=[&#]|$)")
_HOST = re.compile(r"(?:.*@)?(?:\[[^\[\]]+\]|[^\[\]:]+)(?::\d*)?")
_MARKS = "%/:=&?~#+!$,;'@()*[]|"  # what has a meaning in an address, and stays as it is


@dataclass(frozen=True)
class Address:
    """An address as it is sent, and as it may be shown."""

    template: Template = field(repr=False)
    covered: frozenset[int]  # the columns that have a place in it
    user: str = field(repr=False)  # user:password, or nothing
    host: str  # with the port
    secure: bool
    shown: str  # without user and password
    shell: Template  # the same as a word for a shell
    shell_user: str


def parse_address(
    url: str, schema: Schema, credentials: Credentials, mistakes: list[Mistake]
) -> Address:
    """The address that a text describes; what is wrong with it is added to the mistakes."""
    authority = _AUTHORITY.match(url)
    scheme, user, host = authority.groups(default="") if authority else ("", "", "")
    if any(isinstance(piece, Place) for piece in split(f"{user}@{host}", variables=True)):
        remedy = "put it behind the host"
        mistakes.append(mistake_in("url", "a place can't be part of the host", remedy))
    rest = url[authority.end() :] if authority else url
    user_pieces = list(_split_user(user))
    pieces = [*split(scheme + host, variables=True), *_split_rest(rest)]
    known = len(mistakes)
    sent_user = credentials.expand(user_pieces, where=WHERE, mistakes=mistakes)
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
        user=unquote("".join(map(_text, sent_user))),
        host=credentials.redact(plain.partition("://")[2].partition("/")[0].partition("?")[0]),
        secure=plain.lower().startswith("https:"),
        shown=shown([*user_pieces, *pieces]),
        shell=shell.template(),
        shell_user=shell_word(user_pieces),
    )


def _split_user(text: str) -> Iterator[Piece]:
    """User and password in pieces: variables, or secrets that were written out."""
    if not text:
        return
    user, _, password = text.partition(":")
    for part, name in ((user, "URL_USER"), (password, "URL_PASSWORD")):
        pieces = split(part, places=False, variables=True)
        written_out = not any(isinstance(piece, Variable) for piece in pieces)
        if written_out and part:
            pieces = [Variable(name, part)]
        yield from pieces
        if name == "URL_USER":
            yield ":"


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
        is_ascii = host.isascii() and bool(host.encode("idna"))  # as it is looked up
    except ValueError:
        yield mistake_in("url", f"{described!r} is not an address", "write https://host:port/path")
        return
    if parts.scheme not in ("http", "https") or not _HOST.fullmatch(parts.netloc):
        yield mistake_in(
            "url", f"{described!r} is not an address of the web", "write https://host/path"
        )
    elif not is_ascii:
        yield mistake_in(
            "url", f"{described!r}: the host has letters beyond ASCII", "write it as xn--…"
        )
    elif parts.username is not None:
        remedy = "write https://${USER}:${PASSWORD}@host"
        yield mistake_in("url", f"{described!r}: a variable holds user and password", remedy)
    elif parts.fragment:
        yield mistake_in("url", f"{described!r}: what follows # is never sent", "remove it")


def _quote(piece: Piece) -> Piece:
    return quote(piece, safe=_MARKS) if isinstance(piece, str) else piece


def _text(piece: Piece) -> str:
    """A piece that has been expanded; places hold something harmless."""
    return piece if isinstance(piece, str) else "x"
