"""The codes of mistakes and notes: what each means, and what helps; codes.toml has the words."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Literal

from themis.results.notes import CODES

Kind = Literal["mistake", "note"]


@dataclass(frozen=True)
class Code:
    """What is known of a code, whatever it was raised or said about."""

    code: str
    kind: Kind
    about: str  # "in the file"
    means: str
    helps: str  # empty where nothing is to be done
    page: str  # of the documentation
    values: tuple[str, ...] = ()  # of a note

    @property
    def group(self) -> str:
        """What it is, as a title: "Mistakes in the file"."""
        return f"{self.kind.capitalize()}s {self.about}"


@cache
def known_codes() -> tuple[Code, ...]:
    """Every code, group by group; a few are both a mistake and a note."""
    text = Path(__file__).with_name("codes.toml").read_text(encoding="utf-8")
    kinds: dict[Kind, dict[str, dict[str, list[str]]]] = tomllib.loads(text)  # type: ignore[assignment]
    return tuple(
        _code(kind, about, code, words, str(group["page"]))
        for kind, groups in kinds.items()
        for about, group in groups.items()
        for code, words in group.items()
        if code != "page"
    )


def _code(kind: Kind, about: str, code: str, words: list[str], page: str) -> Code:
    means, helps, page = [*words, page][:3]
    if kind == "mistake":
        return Code(code, kind, about, means, helps, page)
    return Code(code, kind, about, means, helps, page, CODES[code])
