"""Conversion of the XML settings of Themis 1.0 and 2.0 to a commented `themis.toml`.

Those programs ran a command with the values as arguments. Elements that are not known here are
kept as comments; what can't be converted is reported, all of it at once. A document type is refused
as soon as it begins: without one there are no entities to expand and no files to fetch.
"""

from __future__ import annotations

import json
import math
import shlex
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from themis.config.toml import spell_key, spell_value
from themis.errors import ConfigError, Mistake, suggest

SIZE_LIMIT = 2**20  # bytes of a document
DEPTH_LIMIT = 100


@dataclass
class Element:
    """An element, its own text without the space around, and its children."""

    name: str
    line: int = 0
    path: str = ""  # the names from the outermost element to this one
    attributes: dict[str, str] = field(default_factory=dict)
    text: str = ""
    children: list[Element] = field(default_factory=list)

    def named(self, name: str) -> list[Element]:
        """All children of this name."""
        return [each for each in self.children if each.name == name]

    def child(self, name: str) -> Element | None:
        """The first child of this name."""
        return next(iter(self.named(name)), None)

    def inner(self, name: str) -> Element:
        """The first child of this name, or an empty element."""
        return self.child(name) or Element(name)

    def source(self) -> str:
        """The element as it might have been written."""
        attributes = "".join(f' {name}="{value}"' for name, value in self.attributes.items())
        inner = self.text + "".join(each.source() for each in self.children)
        return f"<{self.name}{attributes}>{inner}</{self.name}>"


class _Builder:
    """Builds the tree of a document while expat reads it; refuses what is not harmless."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._top = Element("")  # around the outermost element
        self._open = [self._top]
        self._parser = parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._add_text
        parser.StartDoctypeDeclHandler = self._refuse_doctype

    def build(self, data: bytes) -> Element:
        """The outermost element; raises ConfigError for what is not XML, or not harmless."""
        if len(data) > SIZE_LIMIT:
            raise self._refusal(f"has {len(data):,} bytes", f"at most {SIZE_LIMIT:,} are read", 1)
        try:
            self._parser.Parse(data, True)
        except expat.ExpatError as error:
            problem = f"is not XML: {expat.ErrorString(error.code)}"
            raise self._refusal(problem, "mend it at this place", error.lineno) from None
        except (LookupError, ValueError) as error:  # an encoding that Python does not know
            raise self._refusal(f"can't be decoded: {error}", "save it as UTF-8", 1) from None
        return self._top.children[0]

    def _refusal(self, problem: str, remedy: str, line: int | None = None) -> ConfigError:
        line = line or self._parser.CurrentLineNumber
        return ConfigError([Mistake("xml", "", problem, remedy, self._source, line)])

    def _start(self, name: str, attributes: dict[str, str]) -> None:
        if len(self._open) > DEPTH_LIMIT:
            raise self._refusal(f"has more than {DEPTH_LIMIT} elements in one another", "")
        path = f"{self._open[-1].path}.{name}".removeprefix(".")
        element = Element(name, self._parser.CurrentLineNumber, path, attributes)
        self._open[-1].children.append(element)
        self._open.append(element)

    def _end(self, _: str) -> None:
        element = self._open.pop()
        element.text = element.text.strip()

    def _add_text(self, text: str) -> None:
        self._open[-1].text += text

    def _refuse_doctype(self, *_: Any) -> None:
        problem = "has a document type (<!DOCTYPE …>), which may define entities"
        raise self._refusal(problem, "remove it: settings need none")


MEASURES = {"causalDiscrimination": "causal", "groupDiscrimination": "group"}
SEARCH = "discriminationSearch"
TYPES = ("categorical", "continuousInt")
DEFAULT_LIMIT = 0.2  # the threshold of searches in the 2017 paper

_HEAD = """\
# Converted from {source}, settings of Themis 1.0 or 2.0. `themis validate` checks this file.
version = 1

[subject]
kind = "command"
command = {command}
# The values go behind the command in the order of [inputs]. A program that wants name value pairs
# has arguments = "named" instead.
arguments = "positional"
favourable = ["1"]          # the outputs that count as the favourable decision
"""


def convert_settings(data: bytes, *, source: str) -> str:
    """The text of a `themis.toml`; raises ConfigError with all that can't be converted.

    Document types and entities are refused, not expanded.
    """
    parts = _Settings(_Builder(source).build(data), source)
    text = "\n".join(parts.lines()) + "\n"
    if parts.mistakes:
        raise ConfigError(sorted(parts.mistakes, key=lambda each: each.line or 0))
    return text


class _Settings:
    """The parts of the file, one after the other, and what is wrong so far."""

    def __init__(self, root: Element, source: str) -> None:
        self._root = root
        self._source = source
        self._tests = root.inner("tests").named("test")
        self._names: list[str] = []
        self.mistakes: list[Mistake] = []

    def _add(self, element: Element, problem: str, remedy: str) -> None:
        place = (self._source, element.line)
        self.mistakes.append(Mistake("settings", element.path, problem, remedy, *place))

    def lines(self) -> Iterator[str]:
        if self._root.name != "settings":
            problem = f"the outermost element is <{self._root.name}>"
            self._add(self._root, problem, "it must be <settings>")
            return
        for part in (self._subject, self._inputs, self._run, self._checks):
            yield from part()

    def _subject(self) -> Iterator[str]:
        text = self._text(self._root, "command", "name the program")
        command: list[str] = []
        try:
            command = shlex.split(text)  # there is no shell any more
        except ValueError as error:
            problem = f"{text!r} can't be split into words: {error}"
            self._add(self._root.inner("command"), problem, "mend it")
        yield _HEAD.format(source=json.dumps(self._source), command=spell_value(command))
        yield from _comments(self._root, {"command", "seed", "inputs", "tests"})

    def _inputs(self) -> Iterator[str]:
        yield "# The characteristics, in the order of the arguments. Mark those that the law or you"
        yield "# protect with { values = […], protected = true }."
        yield "[inputs]"
        listed = self._root.child("inputs")
        elements = listed.named("input") if listed is not None else []
        if not elements:
            self._add(listed or self._root, "there is no <input>", "describe at least one")
        for element in elements:
            yield from self._input(element)
        if listed is not None:
            yield from _comments(listed, {"input"})

    def _input(self, element: Element) -> Iterator[str]:
        name = self._text(element, "name", "give it a name")
        if name in self._names:
            self._add(element, f"{name!r} stands there twice", "rename one")
        self._names.append(name)
        kind = self._text(element, "type", f"write one of: {', '.join(TYPES)}")
        if kind == "categorical":
            values = [each.text for each in element.inner("values").named("value")]
            if not values:
                self._add(element, f"{name!r} has no <value>", "list its values")
            for value in sorted({each for each in values if values.count(each) > 1}):
                self._add(element, f"{name!r} has {value!r} twice", "remove one")
            yield f"{spell_key(name)} = {spell_value(values)}"
        elif kind == "continuousInt":
            low, high = (self._bound(element, end) for end in ("lowerbound", "upperbound"))
            if low > high:
                self._add(element, f"{name!r} goes from {low} to {high}", "swap the bounds")
            yield f"{spell_key(name)} = {{ min = {low}, max = {high} }}"
        elif kind:
            self._add(element, f"there is no type {kind!r}", suggest(kind, TYPES))
        yield from _comments(element, {"name", "type", "values", "bounds"})

    def _bound(self, element: Element, end: str) -> int:
        bounds = element.child("bounds") or element
        text = self._text(bounds, end, "write a whole number")
        try:
            return int(text)
        except ValueError:
            if text:
                self._add(bounds, f"<{end}> is {text!r}", "write a whole number")
        return 0

    def _run(self) -> Iterator[str]:
        """The settings of the whole run: the strictest that any test asks for."""
        yield "\n[run]"
        seed = self._root.child("seed")
        if seed is not None:
            if not seed.text.isdecimal():
                self._add(seed, f"{seed.text!r} is no seed", "write a whole number")
            yield f"seed = {seed.text.lstrip('0') or '0'}"
        for name, key, choose in (("conf", "confidence", max), ("margin", "error", min)):
            given = [
                value for test in self._tests if (value := self._share(test, name)) is not None
            ]
            if given:
                several = "  # the strictest of several" if len(set(given)) > 1 else ""
                yield f"{key} = {choose(given)!r}{several}"

    def _checks(self) -> Iterator[str]:
        if self._tests:
            yield "\n# What `themis check` enforces; `themis score --against …` only measures."
        for test in self._tests:
            yield from self._check(test)

    def _check(self, test: Element) -> Iterator[str]:
        function = self._text(test, "function", f"write one of: {', '.join((*MEASURES, SEARCH))}")
        names = [each.text for each in test.named("input_name")]
        for name in names:
            if name not in self._names:
                remedy = suggest(name, self._names) if self._names else "describe it"
                self._add(test, f"there is no input {name!r}", remedy)
        limit = self._share(test, "threshold")
        if function in MEASURES:
            if not names:
                self._add(test, f"{function} has no <input_name>", "name a set")
            yield from _check_lines({"against": names, "measure": MEASURES[function]}, limit)
        elif function == SEARCH:
            for measure in _searched(test):
                yield from _check_lines({"search": True, "measure": measure}, limit)
        elif function:
            remedy = suggest(function, (*MEASURES, SEARCH))
            self._add(test, f"there is no function {function!r}", remedy)
        known = {"function", "conf", "margin", "threshold", "input_name", "group", "causal"}
        yield from _comments(test, known)

    def _text(self, element: Element, name: str, remedy: str) -> str:
        """The text of a child that must be there."""
        child = element.child(name)
        if child is None or not child.text:
            self._add(child or element, f"there is no <{name}>", remedy)
            return ""
        return child.text

    def _share(self, element: Element, name: str) -> float | None:
        """A number from 0 to 1, if it is given."""
        child = element.child(name)
        if child is None or not child.text:
            return None
        try:
            number = float(child.text)
        except ValueError:
            number = math.nan
        if 0 <= number <= 1 and (name == "threshold" or 0 < number < 1):
            return number
        self._add(child, f"<{name}> is {child.text!r}", "write a number between 0 and 1")
        return None


def _searched(test: Element) -> list[str]:
    """The measures that a search asks for; both where it does not say."""
    wanted = [
        name
        for name in ("causal", "group")
        if (child := test.child(name)) is None or child.text.lower() not in ("false", "0", "no")
    ]
    return wanted or ["causal"]


def _check_lines(keys: Mapping[str, Any], limit: float | None) -> Iterator[str]:
    yield "[[checks]]"
    for key, value in keys.items():
        yield f"{key} = {spell_value(value)}"
    why = "" if limit is not None else "  # no threshold was given: choose your own"
    yield f"max_score = {DEFAULT_LIMIT if limit is None else limit!r}{why}\n"


def _comments(element: Element, known: set[str]) -> Iterator[str]:
    """The elements that mean nothing here, so that nothing is lost."""
    for child in element.children:
        if child.name not in known:
            for line in child.source().splitlines():
                yield f"# {''.join(each for each in line if each.isprintable())}"
