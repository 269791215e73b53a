"""Columns that tell who somebody is: by their names, and by what their values look like."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from themis.inputs.columns import Typed

MOST = 0.5  # of the values look so
LOOKED_AT = 1_000  # texts of a column, spread over all of them
WORDS = 5  # in a text that somebody wrote, on average
SHARED = 5  # people who have a value or are a group, so that naming it names nobody

# Each in linear time: cells may be as long as a file. Of an address that is looked for within a
# text, the one sign before its @ does; the digits of a phone number end at the first separator.
_EMAIL = re.compile(r"[^@\s]+@[^@\s]+\.\w+")
_EMAIL_WITHIN = re.compile(r"[^@\s]@[^@\s]+\.\w")
_PHONE = re.compile(r"(?=(?:\D*\d){7})\+?[\d.]*+[\s()/\-+][\d\s()/.\-]*+|\+\d{7,}")
_DATE = re.compile(
    r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}(?:[T ].*)?|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}(?:[T ].*)?"
)
_DECIMAL_COMMA = re.compile(r"[+-]?\d{1,3}(?:\.?\d{3})*,\d+")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")

_NAMES = {"name", "surname", "forename", "lastname", "firstname", "fullname", "username"}
_PLACES = {"address", "street", "email", "mail", "phone", "telephone", "mobile", "fax"}
_NUMBERS = {"ssn", "iban", "passport", "nhs", "msisdn"}
_BIRTH = {"birth", "dob", "birthday", "birthdate", "born"}
_ANOTHER_NAME = {"country", "product", "brand", "model", "city", "state", "job", "school", "file"}


def personal_reason(name: str, typed: Typed) -> str:
    """Why a column is about persons and not about what they are like; empty where it is not."""
    words = words_of(name)
    many = typed.kind in ("text", "mixed", "integer") and len(typed.values) > 2
    texts = [value for value in typed.values if isinstance(value, str)]
    texts = texts[:: len(texts) // LOOKED_AT + 1]
    if _share(_EMAIL, texts) > MOST:
        return "e-mail addresses name persons"
    if _share(_DATE, texts) > MOST and (not _BIRTH.isdisjoint(words) or _is_rare(typed)):
        return "dates: give the subject what it makes of them, such as an age in years"
    if (_is_rare(typed) and _share(_PHONE, texts) > MOST) or _is_long_number(typed):
        return "long numbers, such as of phones or accounts, name persons"
    if many and not words.isdisjoint(_PLACES | _NUMBERS):
        return "its name says that it names or reaches persons"
    if texts and not words.isdisjoint(_NAMES) and words.isdisjoint(_ANOTHER_NAME) and many:
        return "its name says that it names or reaches persons"
    if _share(_DECIMAL_COMMA, texts) > MOST and len(texts) > 2:
        return "numbers with a decimal comma are read as texts: write them with a point"
    if texts and _is_rare(typed) and _mean(len(text.split()) for text in texts) >= WORDS:
        return "texts that somebody wrote: no two need be the same"
    return ""


def are_dates(typed: Typed) -> bool:
    """Whether the values of a column are mostly dates."""
    return _share(_DATE, [each for each in typed.values if isinstance(each, str)]) > MOST


def reaches_person(value: Any, rows: int) -> bool:
    """Whether a value of so many rows has an e-mail address, or is a phone number that few have."""
    if not isinstance(value, str):
        return False
    text = value.strip()
    is_phone = rows < SHARED and _PHONE.fullmatch(text) is not None and not _DATE.fullmatch(text)
    return is_phone or _EMAIL_WITHIN.search(text) is not None


def words_of(name: str) -> set[str]:
    """The words in the name of a column, whatever joins them."""
    return {word.lower() for word in _PARTS.findall(name)} | {name.lower()}


def _is_rare(typed: Typed) -> bool:
    """Whether most rows have a value that hardly any other has."""
    return len(typed.values) > MOST * sum(typed.counts)


def _is_long_number(typed: Typed) -> bool:
    numbers = typed.kind in ("integer", "real")
    # Nearly all rows have a value of their own.
    if not numbers or len(typed.values) < 0.9 * sum(typed.counts):
        return False
    whole = all(value == int(value) for value in typed.values[:LOOKED_AT])
    # Phone and account numbers have nine digits or more.
    return bool(typed.values) and whole and typed.ends[0] >= 10**8


def _share(pattern: re.Pattern[str], texts: list[str]) -> float:
    return _mean(pattern.fullmatch(text.strip()) is not None for text in texts)


def _mean(values: Iterable[float]) -> float:
    listed = list(values)
    return sum(listed) / len(listed) if listed else 0.0
