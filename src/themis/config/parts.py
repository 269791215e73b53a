"""A themis.toml as a page shows and edits it: part by part, each a form, and what it runs."""

from __future__ import annotations

import os
import re
import shutil
import tomllib
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import date
from functools import cache, cached_property
from math import isfinite
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

from themis.config.format import INPUTS, TABLES
from themis.config.reader import Config, config_of, prefix_of
from themis.config.tables import Subject
from themis.config.told import mark_of
from themis.config.toml import BOM, KeyPath, parse_toml, spell_value, with_value, without
from themis.errors import ConfigError
from themis.inputs.documents import Documents
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


# Forms: the keys of a part as fields, what a value is as text, and what text means. Reading a text
# never fails: what was to be a number and is none stays text, so that the reader of files says what
# is wrong. A key whose text was not touched keeps its value.
Key: TypeAlias = Mapping[str, Any]  # what the JSON Schema says of one
Shape: TypeAlias = Literal["choice", "text", "value", "texts", "values", "numbers", "table"]
MAIN = (  # keys that most files need, in the order of a form
    *("function", "file", "object", "command", "url", "values", "min", "max", "step", "bins"),
    *("protected", "condition", "favourable", "at", "data", "people", "decision", "confidence"),
    *("error", "name", "owner", "purpose"),
)
CONDITION = {"type": "string", "description": "What every input meets", "examples": ["age >= 18"]}
SCALAR = re.compile(r'"(?:[^"\\]|\\.)*"|\'[^\']*\'|true|false|[+-]?[0-9][0-9_.eE+-]*')


def kinds_of(section: str) -> dict[str, str]:
    """The kinds of tables in a section and what they are; none where there is only one."""
    tables = TABLES.get(section, {})
    known = tables.items() if isinstance(tables, Mapping) else ()
    return {kind: (model.__doc__ or "").partition("\n")[0] for kind, model in known}


def kind_of(section: str, spec: Mapping[str, Any]) -> str:
    """Of which kind a table is, or what it is most likely to become."""
    if section == "inputs":
        is_range = not spec.keys().isdisjoint(("min", "max", "step", "bins"))
        own = next((kind for kind in INPUTS if kind in spec), "values")
        return "range" if is_range else "open" if spec == {"role": "context"} else own
    kinds = kinds_of(section)
    kind = str(spec.get("kind"))
    return kind if kind in kinds else next(iter(kinds), "")


@cache
def keys_of(section: str, kind: str) -> dict[str, Key]:
    """The keys of a table but its kind, those of MAIN first; a constraint has its condition."""
    if section == "constraints":
        return {"condition": CONDITION}
    tables = TABLES[section]
    model = tables[kind] if isinstance(tables, Mapping) else tables
    known = model.model_json_schema()["properties"]
    first = [name for name in MAIN if name in known]
    rest = sorted(known, key=Subject.model_fields.__contains__)  # what all subjects have is last
    return {name: known[name] for name in dict.fromkeys([*first, *rest]) if name != "kind"}


def changed(
    keys: Mapping[str, Key], spec: Mapping[str, Any], texts: Mapping[str, str]
) -> dict[str, Any]:
    """A table after some of its keys were written anew; an empty text removes a key."""
    result = dict(spec)
    for name, text in texts.items():
        if name not in keys or text == shown(keys[name], spec.get(name)):
            continue
        result[name] = read(keys[name], text)
    return {name: value for name, value in result.items() if value is not None}


def shape_of(key: Key) -> Shape:
    """How values of a key are written: chosen, on lines, as a list of numbers, in TOML."""
    kind = key.get("type")
    if "enum" in key or "const" in key or kind == "boolean":
        return "choice"
    if kind == "array":
        inner = key["items"].get("type")
        return (
            "numbers"
            if inner == "number"
            else "texts"
            if inner == "string"
            else ("table" if inner == "array" else "values")
        )
    if kind == "string":
        return "text"
    is_table = "object" in (kind or "") or "$ref" in key
    return "values" if "anyOf" in key else "table" if is_table else "value"


def shown(key: Key, value: Any) -> str:
    """A value as text; empty for none."""
    shape = shape_of(key)
    if value is None:
        return ""
    if isinstance(value, list) and shape in ("values", "texts", "numbers"):
        return (", " if shape == "numbers" else "\n").join(map(_line, value))
    if shape == "table":
        return _spelled(value)
    return value if shape == "choice" and isinstance(value, str) else _line(value)


def read(key: Key, text: str) -> Any:
    """The value that a text means; None for none."""
    shape = shape_of(key)
    if not text.strip():
        return None
    if shape == "table" or (shape == "values" and text.lstrip().startswith("{")):
        return _toml(text)
    if shape in ("values", "texts"):
        return [_value(line, shape) for line in text.split("\n") if line.strip()]
    if shape == "numbers":
        return [_value(each, shape) for each in re.split(r"[,\s]+", text.strip(" ,\n\t"))]
    return _value(text, shape)


def _line(value: Any) -> str:
    """A value on one line: a text is in quotes where it would be read as something else."""
    if not isinstance(value, str):
        return _spelled(value)
    plain = value.isprintable() and value[:1] not in ("", "{") and _value(value, "values") == value
    return value if plain else spell_value(value)


def _value(line: str, shape: Shape) -> Any:
    """What a line means: a number, a truth value, a text in quotes, or itself."""
    text = line.strip()
    value = _toml(text) if SCALAR.fullmatch(text) else text
    if isinstance(value, float) and not isfinite(value):
        return text
    wanted = (str,) if shape in ("text", "texts") else (str, int, float)
    return value if isinstance(value, wanted) else text


def _toml(text: str) -> Any:
    try:
        found = tomllib.loads(f"k = {text}")
    except (ValueError, RecursionError):
        return text
    return found["k"] if found.keys() == {"k"} else text


def _spelled(value: Any) -> str:
    try:
        return spell_value(value)
    except TypeError:  # a time of day
        return str(value)


# What a file names that is run or read, for somebody who is asked whether it may be -----------


# Keys of a subject of which something is run, and how.
RUN = {
    "function": "Python function: its module is imported, and it is called",
    "object": "Python object: its module is imported, and it is called",
    "file": "model file: it is loaded and asked",
    "command": "program: it is started",
    "url": "service: test inputs are sent there",
    "prompt": "sent to the service, with the files that it names",
}
STEERING = re.compile(r"(PYTHON|LD_|DYLD_|RUBY|PERL|NODE_|JAVA_|BASH_)\w*|PATH|ENV")
SECRET = ("env", "headers")  # keys whose values are not shown
NAMING = ("file", "command", "prompt")  # keys that name files
PICKLES = (".pkl", ".pickle", ".joblib")
PICKLE = "a pickle, which may run any code it likes"


@dataclass(frozen=True)
class Named:
    """One key, what it says, what is done with that, and the files that it leads to."""

    key: str
    words: tuple[str, ...]
    use: str
    files: tuple[Path, ...] = ()


def programs(config: Config) -> Iterator[Named]:
    """All that a file says of its subject, and the tables that are read."""
    for key, each in config.subject.options.items():
        words = [*_words(each)]
        use = RUN.get(key, "names only; values are not shown" if key in SECRET else "setting")
        files = tuple(_files(config.folder, key, words))
        if any(place.suffix in PICKLES for place in files):
            use = f"{use}; {PICKLE}"
        yield Named(key, tuple(words), use, files)
    for pattern in config.subject.depends:
        yield Named("depends", (pattern,), "read by the program")
    for each in config.schema:
        if isinstance(each, Documents) and each.source:
            shown = each.source.removeprefix(f"{config.folder}{os.sep}")
            key, use = f"inputs.{each.name}", "documents: sent to the service"
            yield Named(key, (shown,), use, (Path(each.source),))
    if config.profile is not None:
        yield Named("profile", (config.profile.data,), "table of people: it is read")


def _words(said: Any) -> Iterator[str]:
    """What is shown of it: of a mapping the names, with values that say what is loaded."""
    if isinstance(said, Mapping):
        for name, value in said.items():
            yield f"{name}={value}" if STEERING.match(str(name)) else str(name)
            several = value if isinstance(value, list) else [value]
            yield from (e["file"] for e in several if isinstance(e, Mapping) and "file" in e)
    else:
        yield from map(str, said if isinstance(said, list) else [said])


def _files(folder: Path, key: str, words: list[str]) -> Iterator[Path]:
    found: list[Any] = [folder / word for word in words] if key in NAMING else []
    if key == "command":
        found.insert(0, shutil.which(words[0]))
    if key in ("function", "object"):
        module = folder / words[0].partition(":")[0].replace(".", "/")
        found = [module.with_suffix(".py"), module / "__init__.py"]
    yield from (Path(each) for each in found if each and Path(each).is_file())
