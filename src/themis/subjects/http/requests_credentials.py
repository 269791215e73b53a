"""Credentials: what must reach a service and nobody else, and how it is kept out of all texts."""

from __future__ import annotations

import base64
import binascii
import html
import json
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from urllib.parse import quote, quote_plus

from themis.errors import Mistake
from themis.subjects.http.requests import Piece, Variable, split

SHORTEST = 4  # shorter texts are no secrets, and would be found everywhere

_SENSITIVE = re.compile(
    r"auth$|authori[sz]|token$|secret|session|signature$|^sig$|passw|pwd$|key$|cookie",
    re.IGNORECASE,
)
_NAME = re.compile(r"[A-Za-z_]\w*", re.ASCII)


class Credentials:
    """Secret values with the names that stand for them in everything that is said or stored."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None

    def __repr__(self) -> str:
        return f"Credentials({', '.join(sorted(set(self._shown.values())))})"

    def protect(self, value: str, name: str) -> None:
        """Never show this value, in none of the ways in which a service may repeat it."""
        for secret in (value, *_inner_secrets(value)):
            for form in _forms(secret):
                if len(form) >= SHORTEST:
                    self._shown.setdefault(form, f"${name}")
        longest_first = sorted(self._shown, key=len, reverse=True)
        if longest_first:
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """The text with the names of the secrets in their places."""
        if self._pattern is None:
            return text
        return self._pattern.sub(lambda found: self._shown[found[0]], text)

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


def _inner_secrets(value: str) -> Iterator[str]:
    """The token of `Bearer …`, and the user and password of `Basic …`."""
    scheme, _, token = value.strip().rpartition(" ")
    if not scheme:
        return
    yield token
    if scheme.lower() == "basic":
        try:
            pair = base64.b64decode(token, validate=True).decode()
        except (binascii.Error, UnicodeDecodeError):
            return
        yield pair
        yield from pair.split(":", 1)


def _forms(secret: str) -> Iterator[str]:
    """A secret as it is, and as JSON, addresses, HTML and base64 write it."""
    yield secret
    yield json.dumps(secret)[1:-1]
    yield json.dumps(secret, ensure_ascii=False)[1:-1]
    yield quote(secret, safe="")
    yield quote(secret)
    yield quote_plus(secret)
    yield html.escape(secret)
    yield base64.b64encode(secret.encode()).decode()
