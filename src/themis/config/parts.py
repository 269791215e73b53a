"""A themis.toml that is edited part by part: a table of it, or a named one of several."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

from themis.config.edits import BOM, with_value, without
from themis.config.fields import Key, changed, keys_of, kind_of, kinds_of
from themis.config.reader import Config, config_of, prefix_of
from themis.config.told import mark_of
from themis.config.toml import parse_toml
from themis.errors import ConfigError

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

    def without(self, part: Part) -> Self:
        """The file without a part."""
        return replace(self, text=without(self.text, part.path, prefix=prefix_of(self.path)))

    def rewritten(self, text: str) -> Self:
        """The file with another text of plain lines, which will end as they did."""
        lines = text.replace("\n", "\r\n") if "\r\n" in self.text else text
        return replace(self, text=BOM * self.text.startswith(BOM) + lines)
