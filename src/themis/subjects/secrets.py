"""Secrets: values that subjects know, and that are never shown in what they say."""

from __future__ import annotations

import base64
import binascii
import math
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cache, cached_property
from operator import itemgetter
from typing import Any, TypeAlias

CUT = "…"  # where a long text was cut
SHORTEST = 4  # shorter texts are no secrets, and would be found everywhere

_SECRET_NAME = re.compile(  # at the end of a word: PASSENGER and TOKENIZERS are none
    r"(?i:KEY|TOKEN|SECRET|PASS|PASSWORD|PASSWD|PASSPHRASE)[Ss]?(?![a-z]|(?<=[A-Z])[A-Z])"
)
Ways: TypeAlias = tuple[str, ...]  # expressions, each of which begins with a sign
_CUT_ESCAPE = re.compile(r"""(?:[%\\&'][\w#;\\'"]{0,15})?\s*""")
_END_OF_ESCAPE = re.compile(r"""[\w#;'"]{0,15}""")


class Secrets:
    """Secret values with the names that stand for them in everything that is said or stored."""

    def __init__(self) -> None:
        self._forms: dict[str, _Form] = {}
        self._redacted = _Finder(())
        self._refused = _Finder(())  # what makes an answer no decision

    def __repr__(self) -> str:
        names = sorted({form.name for form in self._forms.values()})
        return f"{type(self).__name__}({', '.join(names)})"

    def protect(self, value: str, name: str) -> None:
        """Never show this value, in none of the ways in which a subject may repeat it."""
        self._redact(value, name)
        self._refused = self._redacted

    def protect_variables(self, variables: Mapping[str, str]) -> None:
        """Never show the values of these environment variables, unless they are short.

        Only those whose names promise a secret can't be in a decision: a subject may well be told
        by a variable what to answer.
        """
        secret = {name for name in variables if _SECRET_NAME.search(name)}
        for name in sorted(variables, key=secret.__contains__, reverse=True):
            if len(variables[name]) >= 6:  # many hold a word such as "true"
                (self.protect if name in secret else self._redact)(variables[name], name)

    def _redact(self, value: str, name: str) -> None:
        for secret in (value, *_inner_secrets(value)):
            for form in _forms(secret):
                if len(form) >= SHORTEST:
                    encoded = form != secret
                    self._forms.setdefault(form, _Form(form, f"${name}", encoded=encoded))
        self._redacted = _Finder(tuple(self._forms.values()))

    def redact(self, text: str) -> str:
        """The text with the names of the secrets in their places, also where it was cut (…)."""
        text = self._redacted.replaced(text)
        if CUT in text:
            first, *others = text.split(CUT)
            parts = [first, *map(self._redacted.without_start, others)]
            text = CUT.join(self._redacted.replaced(each, cut=True) for each in parts)
        return text

    def are_in(self, output: Any) -> bool:
        """Whether an output repeats one of them, in a text or in a part that is one."""
        if isinstance(output, int | float):
            return False
        text = output if isinstance(output, str) else repr(output)
        finder = self._refused
        return finder.starts.search(text) is not None and any(finder.places(text))


class _Form:
    """A secret as it is or encoded: the ways in which each of its characters may be written.

    Letters and digits of an encoded one are not escaped again.
    """

    def __init__(self, text: str, name: str, *, encoded: bool) -> None:
        self.name = name
        self.signs = [
            _ways(each)[:1] if encoded and each.isalnum() else _ways(each) for each in text
        ]

    def end(self, text: str, start: int, *, skipped: int = 0, cut: bool = False) -> int:
        """Where it ends in a text, but for skipped signs from `start` on; -1 if it is not there.

        Where the text may be cut, its beginning is enough at the end of it.
        """
        places, visited = {start}, [start]
        for sign in self.signs[skipped:]:
            tried = [way.match(text, place) for way in _patterns(sign) for place in places]
            found = {each.end() for each in tried if each is not None}
            if not found:
                is_cut = cut and any(_CUT_ESCAPE.fullmatch(text, place) for place in visited)
                return len(text) if is_cut else -1
            places = found
            visited += found
        return max(places)


class _Finder:
    """Finds secrets in texts."""

    def __init__(self, forms: tuple[_Form, ...]) -> None:
        self._forms = forms

    @cached_property
    def starts(self) -> re.Pattern[str]:
        """Finds where secrets may begin."""
        return _any_of(form.signs[:SHORTEST] for form in self._forms)

    @cached_property
    def _ends(self) -> re.Pattern[str]:
        return _any_of(form.signs[-SHORTEST:] for form in self._forms)

    def places(self, text: str, *, cut: bool = False) -> Iterator[tuple[int, int, str]]:
        """Where secrets begin and end, the longest ones, with their names."""
        at = 0
        while (found := self.starts.search(text, at)) is not None:
            start = found.start()
            ends = [(form.end(text, start, cut=cut), form.name) for form in self._forms]
            end, name = max(ends, key=itemgetter(0))
            if end >= 0:
                yield start, end, name
            at = max(end, start + 1)

    def replaced(self, text: str, *, cut: bool = False) -> str:
        """The text with names instead of secrets, also of one that its end may cut."""
        parts, done = [], 0
        for start, end, name in self.places(text, cut=cut):
            parts += [text[done:start], name]
            done = end
        return "".join([*parts, text[done:]])

    def without_start(self, text: str) -> str:
        """The text without a secret's end at its beginning, which was cut there."""
        kept = text.lstrip()
        if self._ends.search(kept) is None:
            return text
        rest = _END_OF_ESCAPE.match(kept)
        assert rest is not None, "it matches nothing as well"
        for form in self._forms:
            for skipped in range(1, len(form.signs) - SHORTEST + 1):
                for start in range(rest.end() + 1):
                    if (end := form.end(kept, start, skipped=skipped)) >= 0:
                        return form.name + kept[end:]
        return text


def _any_of(texts: Iterable[list[Ways]]) -> re.Pattern[str]:
    """Finds each of these; all alternatives begin with a sign, which makes it quick."""
    alternatives = {
        first + "".join(f"(?:{'|'.join(other)})" for other in others)
        for firsts, *others in texts
        for first in firsts
    }
    return re.compile("|".join(sorted(alternatives)) or "(?!)")


@cache
def _patterns(ways: Ways) -> tuple[re.Pattern[str], ...]:
    return tuple(map(re.compile, ways))


@cache
def _ways(sign: str) -> Ways:
    """How texts write a character: as it is, or as addresses, JSON, Python, shells or HTML do.

    What was escaped may have been escaped again.
    """
    ways, escape = [re.escape(sign)], r"\\\\{0,15}"  # backslashes
    data, number = sign.encode("utf-8", "surrogateescape"), f"{ord(sign):x}"
    ways.append("".join(rf"%(?:25)*(?i:{byte:02x})" for byte in data))
    ways.append(rf"{escape}(?i:[ux]0*{number})")
    names = [rf"(?i:#0*{ord(sign)}|#x0*{number})"]
    if not (sign.isascii() and sign.isalnum()):
        from html.entities import html5

        ways.append(escape + re.escape(sign))
        names += sorted({name.rstrip(";") for name, meant in html5.items() if meant == sign})
    if not sign.isascii():
        pairs = re.findall("....", sign.encode("utf-16-be", "surrogatepass").hex())
        ways.append("".join(rf"{escape}(?i:x{byte:02x})" for byte in data))
        ways.append("".join(rf"{escape}(?i:u{pair})" for pair in pairs))
    ways += _OWN_WAYS.get(sign, ())
    return (*ways, rf"&(?:amp;)*(?:{'|'.join(names)});?")


_OWN_WAYS = {
    "'": ["'\"'\"'", r"'\\''"],  # in a word for a shell
    " ": [r"\+"],
    "\n": [r"\\\\{0,15}n"],
    "\r": [r"\\\\{0,15}r"],
    "\t": [r"\\\\{0,15}t"],
    "%": ["%25", "%2525", "%252525"],  # %25 may follow it in the secret
    "&": ["&amp;", "&amp;amp;"],
}


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
    """A secret as it is, in hexadecimal digits, and in base64."""
    data = secret.encode("utf-8", "surrogateescape")
    yield from (secret, data.hex(), data.hex().upper(), base64.b64encode(data).decode())
    for before in range(3):  # inside of a longer text it may begin at each place of three
        padded = base64.b64encode(bytes(before) + data)
        inner = padded[math.ceil(8 * before / 6) : 8 * (before + len(data)) // 6].decode()
        if len(inner) >= 6:
            yield inner
            yield inner.translate(str.maketrans("+/", "-_"))
