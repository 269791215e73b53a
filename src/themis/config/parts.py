"""A themis.toml that is edited part by part: a table, a named one of several, a decision."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from themis.config.edits import BOM, with_value, without
from themis.config.fields import Key, changed, keys_of, kind_of, kinds_of
from themis.config.reader import Config, config_of, prefix_of
from themis.config.told import mark_of
from themis.config.toml import KeyPath, parse_toml
from themis.errors import ConfigError
from themis.results.model import Measure
from themis.results.verdicts import Acceptance, Check

EMPTY = "version = 1\n"
NAMED = ("inputs", "constraints", "outputs")  # sections that hold several parts


@dataclass(frozen=True)
class Part:
    """What is edited at once."""

    section: str
    name: str  # empty where the section is one table
    kind: str
    spec: Mapping[str, Any]  # what the file says of it
    is_new: bool
    is_table: bool  # not a list of values alone, nor a condition

    @property
    def path(self) -> tuple[str, ...]:
        """Where it is in the file."""
        return (self.section, self.name) if self.section in NAMED else (self.section,)

    @property
    def keys(self) -> dict[str, Key]:
        """What may be said of it."""
        return keys_of(self.section, self.kind)

    def filled_in(self, texts: Mapping[str, str]) -> Any:
        """What the file is to say of it."""
        spec = changed(self.keys, self.spec, texts)
        if self.kind != kind_of(self.section, self.spec):
            spec = {key: each for key, each in spec.items() if key in self.keys}
        if self.section == "subject":
            return {"kind": self.kind} | spec | {"kind": self.kind}
        if self.section == "constraints":
            return spec.get("condition", "")
        is_plain = self.section == "inputs" and not self.is_table and spec.keys() == {"values"}
        return spec["values"] if is_plain else spec


@dataclass(frozen=True)
class Source:
    """A themis.toml as it is, or would be; where there is none, what it begins with.

    What edits it returns another one, and raises ConfigError where its lines can't be told.
    """

    path: Path
    text: str
    mark: str = ""  # of the bytes that it was read from: what edits another one is out of date

    @classmethod
    def of(cls, path: Path) -> Self:
        """The file that is there now."""
        read = path.read_bytes() if path.exists() else b""
        try:
            return cls(path, read.decode() or EMPTY, mark_of(read))
        except UnicodeDecodeError:
            problem, remedy = "it is not UTF-8 text", "save it as UTF-8 in an editor"
            raise ConfigError.one("not-utf8", path.name, problem, remedy) from None

    @property
    def plain(self) -> str:
        """The text without the mark of its encoding."""
        return self.text.removeprefix(BOM)

    @cached_property
    def data(self) -> Mapping[str, Any]:
        """What the text says; raises ConfigError where it is no TOML."""
        data: Any = parse_toml(self.plain)
        for key in prefix_of(self.path):
            data = data.get(key, {}) if isinstance(data, Mapping) else {}
        return data if isinstance(data, Mapping) else {}

    def config(self) -> Config:
        """What the text describes; raises ConfigError with all of its mistakes."""
        return config_of(self.plain, self.path)

    def table(self, section: str) -> Mapping[str, Any]:
        """What a section says; empty where it is none."""
        found = self.data.get(section, {})
        return found if isinstance(found, Mapping) else {}

    def part(self, section: str, name: str = "", kind: str = "", *, is_new: bool = False) -> Part:
        """A part of the file, of the kind that it has or is to have."""
        spec: Any = self.table(section)
        if section in NAMED:
            spec = {} if is_new else spec.get(name)
        is_table = isinstance(spec, Mapping) and not is_new
        if section == "inputs" and isinstance(spec, list):
            spec = {"values": spec}
        elif section == "constraints" and isinstance(spec, str):
            spec = {"condition": spec}
        elif not isinstance(spec, Mapping):
            spec = {}
        kind = kind if kind in kinds_of(section) else kind_of(section, spec)
        return Part(section, name, kind, spec, is_new, is_table)

    def filled_in(self, part: Part, texts: Mapping[str, str]) -> Self:
        """The file after some keys of a part were written anew."""
        if part.is_new and part.name in self.table(part.section):
            problem, remedy = "there is one of this name already", "choose another name"
            raise ConfigError.one("duplicate-name", ".".join(part.path), problem, remedy)
        value, prefix = part.filled_in(texts), prefix_of(self.path)
        if not part.is_new and repr(value) == repr(part.spec):  # 1 is not true
            return self
        return replace(self, text=with_value(self.text, part.path, value, prefix=prefix))

    def with_value(self, path: KeyPath, value: Any) -> Self:
        """The file with a value at a path; raises ConfigError where it has mistakes then."""
        text = with_value(self.text, path, value, prefix=prefix_of(self.path))
        new = replace(self, text=text)
        new.config()
        return new

    def without(self, part: Part) -> Self:
        """The file without a part."""
        return replace(self, text=without(self.text, part.path, prefix=prefix_of(self.path)))

    def rewritten(self, text: str) -> Self:
        """The file with another text of plain lines, which will end as they did."""
        lines = text.replace("\n", "\r\n") if "\r\n" in self.text else text
        return replace(self, text=BOM * self.text.startswith(BOM) + lines)


# What is decided about findings: limits, and what is accepted for a while


@dataclass(frozen=True)
class Finding:
    """What a decision is about: a set, or every set where it is None."""

    against: tuple[str, ...] | None
    measure: Measure = "causal"
    output: str | None = None  # where a subject has several

    @property
    def keys(self) -> dict[str, Any]:
        """How the file names it."""
        which = {"search": True} if self.against is None else {"against": list(self.against)}
        of = {} if self.output is None else {"output": self.output}
        return {**which, "measure": self.measure, **of}

    def is_of(self, decision: Check | Acceptance, first_output: str | None) -> bool:
        """Whether the file has decided this one; without a name its first output is meant."""
        outputs = {each or first_output for each in (decision.output, self.output)}
        about = (decision.against, decision.measure)
        return about == (self.against, self.measure) and len(outputs) == 1


def with_limit(source: Source, finding: Finding, max_score: str) -> Source:
    """The file with a limit on a finding, anew or instead of the one that it has."""
    return _decided(source, "checks", finding, {"max_score": _number(max_score)})


def with_acceptance(
    source: Source, finding: Finding, *, reason: str, until: str, max_score: str = ""
) -> Source:
    """The file with a finding accepted, anew or instead of how it is accepted now."""
    up_to = {"max_score": _number(max_score)} if max_score else {}
    given = {**up_to, "reason": reason, "until": _parsed(date.fromisoformat, until)}
    return _decided(source, "accepted", finding, given)


def _decided(source: Source, section: str, finding: Finding, given: Mapping[str, Any]) -> Source:
    config = source.config()
    first = config.outputs[0].name if config.outputs else None
    own: Iterable[Check | Acceptance] = getattr(config, section)
    places = [place for place, each in enumerate(own) if finding.is_of(each, first)]
    if section == "checks" and places:
        return source.with_value((section, places[0], "max_score"), given["max_score"])
    keys = dict(source.data[section][places[0]]) if places else finding.keys
    keys = {name: each for name, each in keys.items() if name != "max_score"}
    number = places[0] if places else len([*own])
    return source.with_value((section, number), {**keys, **given})


def _number(text: str) -> Any:
    return _parsed(float, text)


def _parsed(parse: Callable[[str], Any], text: str) -> Any:
    """The value of a text; the file says what is wrong with one that is none."""
    with suppress(ValueError):
        return parse(text)
    return text
