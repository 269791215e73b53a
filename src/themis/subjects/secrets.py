"""Secrets: values that subjects know, and that are never shown in what they say."""

from __future__ import annotations

import base64
import binascii
import json
import math
import os
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, quote_plus

CUT = "…"  # where a long text was cut
SHORTEST = 4  # shorter texts are no secrets, and would be found everywhere
SHORTEST_VARIABLE = 6  # of an environment variable: many hold a word such as "true"

ADDRESS_SIGNS = "%/:=&?~#+!$,;'@()*[]|"  # what stays as it is in an address that is sent
_ESCAPE = re.compile("%[0-9A-F]{2}")
_SECRET_NAME = re.compile("KEY|TOKEN|SECRET|PASS", re.IGNORECASE)


class Secrets:
    """Secret values with the names that stand for them in everything that is said or stored."""

    def __init__(self) -> None:
        self._shown: dict[str, str] = {}
        self._pattern: re.Pattern[str] | None = None  # of what is redacted
        self._refused: re.Pattern[str] | None = None  # of what makes an answer no decision

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(sorted(set(self._shown.values())))})"

    def protect(self, value: str, name: str) -> None:
        """Never show this value, in none of the ways in which a subject may repeat it."""
        self._redact(value, name)
        self._refused = self._pattern

    def protect_variables(self, variables: Mapping[str, str]) -> None:
        """Never show the values of these environment variables, unless they are short.

        Only those whose names promise a secret can't be in a decision: a subject may well be told
        by a variable what to answer.
        """
        secret = {name for name in variables if _SECRET_NAME.search(name)}
        for name in sorted(variables, key=secret.__contains__, reverse=True):
            if len(variables[name]) >= SHORTEST_VARIABLE:
                (self.protect if name in secret else self._redact)(variables[name], name)

    def _redact(self, value: str, name: str) -> None:
        for secret in (value, *_inner_secrets(value)):
            for form in _forms(secret):
                if len(form) >= SHORTEST:
                    self._shown.setdefault(form, f"${name}")
        longest_first = sorted(self._shown, key=len, reverse=True)
        if longest_first:
            self._pattern = re.compile("|".join(map(re.escape, longest_first)))

    def redact(self, text: str) -> str:
        """The text with the names of the secrets in their places, also where it was cut (…)."""
        if self._pattern is None:
            return text
        text = self._pattern.sub(lambda found: self._shown[found[0]], text)
        if CUT in text:
            first, *others = text.split(CUT)
            text = self._without_end(first) + "".join(
                CUT + self._without_end(self._without_start(each)) for each in others
            )
        return text

    def _without_end(self, text: str) -> str:
        """The text without a secret's beginning at its end, which was cut there."""
        kept = text.rstrip()
        for form, name in self._shown.items():
            for length in range(len(form) - 1, SHORTEST - 1, -1):
                if kept.endswith(form[:length]):
                    return kept[:-length] + name
        return text

    def _without_start(self, text: str) -> str:
        """The text without a secret's end at its beginning."""
        kept = text.lstrip()
        for form, name in self._shown.items():
            for length in range(len(form) - 1, SHORTEST - 1, -1):
                if kept.startswith(form[-length:]):
                    return name + kept[length:]
        return text

    def are_in(self, output: Any) -> bool:
        """Whether an output repeats one of them, in a text or in a part that is one."""
        if self._refused is None or isinstance(output, int | float):
            return False
        text = output if isinstance(output, str) else repr(output)
        return self._refused.search(text) is not None


def redact_inherited(text: str) -> str:
    """The text without the secrets of the environment, where no subject is at hand yet."""
    secrets = Secrets()
    secrets.protect_variables(inherited_secrets())
    return secrets.redact(text)


def inherited_secrets() -> dict[str, str]:
    """The variables of the environment whose names promise a secret; subjects inherit them."""
    return {name: value for name, value in os.environ.items() if _SECRET_NAME.search(name)}


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
    from html import escape

    yield secret
    for written in (json.dumps(secret)[1:-1], json.dumps(secret, ensure_ascii=False)[1:-1]):
        yield written
        yield written.replace("/", "\\/")
    for safe in ("", "/", "!'()*", "!'()*/", ADDRESS_SIGNS):
        for written in (quote(secret, safe=safe), quote_plus(secret, safe=safe)):
            yield written
            yield _ESCAPE.sub(lambda found: found[0].lower(), written)
    yield escape(secret)
    data = secret.encode("utf-8", "surrogateescape")
    yield base64.b64encode(data).decode()
    for before in range(3):  # inside of a longer text it may begin at each place of three
        padded = base64.b64encode(bytes(before) + data)
        inner = padded[math.ceil(8 * before / 6) : 8 * (before + len(data)) // 6].decode()
        if len(inner) >= SHORTEST_VARIABLE:
            yield inner
            yield inner.translate(str.maketrans("+/", "-_"))
