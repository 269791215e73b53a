"""Conversion of the XML settings of Themis 1.0 and 2.0 to a commented `themis.toml`.

Those programs gave a shell one line, the command and the values. Their measurements had no limits:
they become `[run] against`; searches become `[[checks]]`. Elements that are not known here are kept
as comments; what can't be converted is reported, all of it at once. A document type is refused as
soon as it begins: without one there are no entities to expand and no files to fetch.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from themis.config.from_shell import read_shell_line
from themis.config.toml import spell_key, spell_remark, spell_value
from themis.errors import ConfigError, Mistake, SchemaError, suggest
from themis.inputs.schema import Schema, characteristic_from

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
            raise self._refusal(problem, "fix it at this place", error.lineno) from None
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


FUNCTIONS = {
    "group_discrimination": "group",
    "causal_discrimination": "causal",
    "discrimination_search": "search",
}
METHODS = {  # what 1.0 called them in Python
    "groupDiscrimination": "group",
    "causalDiscrimination": "causal",
    "discriminationSearch": "search",
}
MEASURES = ("causal", "group")
TYPES = ("categorical", "continuousInt")
DEFAULT_LIMIT = 0.2  # the threshold of searches in the 2017 paper
LIMITS = {0.0: 0.001, 1.0: 0.999}  # searches need a limit in between

_HEAD = """\
# Converted from {source}, settings of Themis 1.0 or 2.0. `themis validate` checks this file.
version = 1

[subject]
kind = "command"
{command}
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


@dataclass(frozen=True)
class _Test:
    """A `<test>`: a measurement of a set, or a search for the measures that it wants."""

    element: Element
    kind: str  # group, causal, search; empty where it is not known
    names: tuple[str, ...]

    @property
    def wanted(self) -> list[str]:
        return [each for each in MEASURES if self.element.child(each) is not None]


class _Settings:
    """The parts of the file, one after the other, and what is wrong so far."""

    def __init__(self, root: Element, source: str) -> None:
        self._root = root
        self._source = source
        self._names: list[str] = []  # of all inputs
        self._described: set[str] = set()  # of those that were read so far
        self._tests: list[_Test] = []
        self.mistakes: list[Mistake] = []

    def _add(self, element: Element, problem: str, remedy: str) -> None:
        place = (self._source, element.line)
        self.mistakes.append(Mistake("settings", element.path, problem, remedy, *place))

    def lines(self) -> Iterator[str]:
        if self._root.name != "settings":
            problem = f"the outermost element is <{self._root.name}>"
            self._add(self._root, problem, "it must be <settings>")
            return
        inputs = self._root.inner("inputs").named("input")
        self._names = [each.inner("name").text for each in inputs]
        self._tests = [self._test(each) for each in self._root.inner("tests").named("test")]
        for part in (self._subject, self._inputs, self._run, self._checks):
            yield from part()

    def _subject(self) -> Iterator[str]:
        line = read_shell_line(self._text(self._root, "command", "name the program"))
        if line.problem:
            self._add(self._root.inner("command"), line.problem, line.remedy)
        keys = [f"{key} = {spell_value(value)}" for key, value in line.options()]
        yield _HEAD.format(source=json.dumps(self._source), command="\n".join(keys))
        yield from _comments(self._root, {"command", "seed", "inputs", "tests"})

    def _inputs(self) -> Iterator[str]:
        yield from spell_remark(
            "The characteristics, in the order of the arguments. Both ends of a range are "
            "included, as in Themis 2.0; 1.0 left out the upper one. Those that the tests name are "
            "marked as protected; look over which ones the law or you protect."
        )
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
        if name in self._described:
            self._add(element, f"the input {name!r} appears twice", "rename or remove one")
        self._described.add(name)
        spec = self._spec(element)
        if name and spec is not None:
            self._check_schema(element, name, spec)
            if any(name in test.names for test in self._tests):
                spec["protected"] = True
            plain = list(spec) == ["values"]
            yield f"{spell_key(name)} = {spell_value(spec['values'] if plain else spec)}"
        yield from _comments(element, {"name", "type", "values", "bounds"})

    def _spec(self, element: Element) -> dict[str, Any] | None:
        """The characteristic as [inputs] describes one."""
        kind = self._text(element, "type", f"write one of: {', '.join(TYPES)}")
        if kind == "categorical":
            values = [each.text for each in element.inner("values").named("value")]
            if not values:
                self._add(element, "there is no <value>", "list them: <values><value>…</value>")
            return {"values": values} if values else None
        if kind == "continuousInt":
            ends = [self._bound(element, end) for end in ("lowerbound", "upperbound")]
            return None if None in ends else {"min": ends[0], "max": ends[1]}
        if kind:
            self._add(element, f"there is no type {kind!r}", suggest(kind, TYPES))
        return None

    def _bound(self, element: Element, end: str) -> int | None:
        bounds = element.child("bounds") or element
        text = self._text(bounds, end, f"write <bounds> with a whole number in <{end}>")
        number = _whole(text)
        if text and number is None:
            problem = f"{text!r} is no whole number of at most 64 bits"
            self._add(bounds.inner(end), problem, "write one, such as 18")
        return number

    def _check_schema(self, element: Element, name: str, spec: dict[str, Any]) -> None:
        """Report what `themis validate` would refuse, at its place in the settings."""
        try:
            Schema({name: characteristic_from(spec)})
        except SchemaError as error:
            for each in error.mistakes:
                self._add(element, f"{name!r}: {each.problem}", each.remedy)

    def _test(self, element: Element) -> _Test:
        function = self._text(element, "function", f"write one of: {', '.join(FUNCTIONS)}")
        kind = {**FUNCTIONS, **METHODS}.get(function, "")
        if function and not kind:
            remedy = suggest(function, tuple(FUNCTIONS))
            self._add(element.inner("function"), f"there is no function {function!r}", remedy)
        for stray in element.named("input_name"):
            self._add(stray, "<input_name> is outside of <i_fields>", "put it inside")
        fields = [name for each in element.named("i_fields") for name in each.named("input_name")]
        if kind in MEASURES and not fields:
            problem = f"{function} has no <input_name> in <i_fields>"
            self._add(element, problem, "name the characteristics to measure")
        for each in fields:
            if each.text not in self._names:
                remedy = suggest(each.text, self._names) if self._names else "describe it"
                self._add(each, f"there is no input {each.text!r}", remedy)
        for each in (child for name in MEASURES for child in element.named(name) if child.text):
            problem = f"<{each.name}> has the text {each.text!r}, but its presence means wanted"
            self._add(each, problem, f"write <{each.name}/>, or remove it")
        return _Test(element, kind, tuple(dict.fromkeys(each.text for each in fields)))

    def _run(self) -> Iterator[str]:
        """The settings of the whole run: the strictest that any test asks for."""
        yield "\n[run]"
        yield from self._against()
        seed = self._root.child("seed")
        if seed is not None:
            number = _whole(seed.text)
            if number is None or number < 0:
                problem = f"{seed.text!r} is no seed"
                self._add(seed, problem, "write a whole number such as 42, or remove it")
            yield f"seed = {number}"
        for name, key, choose in (("conf", "confidence", max), ("margin", "error", min)):
            given = [self._share(test.element, name) for test in self._tests]
            known = [value for value in given if value is not None]
            if known:
                several = "  # the strictest of several" if len(set(known)) > 1 else ""
                yield f"{key} = {choose(known)!r}{several}"

    def _against(self) -> Iterator[str]:
        measured = [test for test in self._tests if test.kind in MEASURES and test.names]
        if not measured:
            return
        asked = "; ".join(f"{test.kind} of {', '.join(test.names)}" for test in measured)
        yield from spell_remark(
            f"What `themis score` measures, both scores of each set. The tests asked for: {asked}."
        )
        sets = {frozenset(test.names): test.names for test in measured}
        yield f"against = {spell_value(list(sets.values()))}"

    def _checks(self) -> Iterator[str]:
        yield ""
        for test in self._tests:
            known = {"function", "conf", "margin", "i_fields", "input_name"}
            if test.kind == "search":
                known |= {"threshold", *MEASURES}
                yield from self._search(test)
            yield from _comments(test.element, known)

    def _search(self, test: _Test) -> Iterator[str]:
        given = self._share(test.element, "threshold", ends=True)
        limit = DEFAULT_LIMIT if given is None else LIMITS.get(given, given)
        remark = ""
        if given is None:
            remark = "  # no threshold was given: choose your own"
        elif limit != given:
            remark = f"  # the threshold was {given:g}; a search needs one between 0 and 1"
        if not test.wanted:
            yield "# A search asked for neither <group/> nor <causal/>: there is nothing to check."
        for measure in test.wanted:
            yield "# `themis check` enforces this, and lists the sets that are above."
            yield f'[[checks]]\nsearch = true\nmeasure = "{measure}"'
            yield f"max_score = {limit!r}{remark}\n"

    def _text(self, element: Element, name: str, remedy: str) -> str:
        """The text of a child that must be there."""
        child = element.child(name)
        if child is None or not child.text:
            self._add(child or element, f"there is no <{name}>", remedy)
            return ""
        return child.text

    def _share(self, element: Element, name: str, *, ends: bool = False) -> float | None:
        """A number between 0 and 1, if it is given; `ends` are allowed where that is said."""
        child = element.child(name)
        if child is None or not child.text:
            return None
        try:
            number = float(child.text)
        except ValueError:
            number = math.nan
        if 0 < number < 1 or (ends and number in (0, 1)):
            return number
        example = "0.2" if ends else "0.99" if name == "conf" else "0.05"
        remedy = f"write a fraction between 0 and 1, such as {example}"
        self._add(child, f"<{name}> is {child.text!r}", remedy)
        return None


def _whole(text: str) -> int | None:
    """The whole number that a text is, unless it has more than 64 bits."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if abs(number) < 2**63 else None


def _comments(element: Element, known: set[str]) -> Iterator[str]:
    """The elements that mean nothing here, so that nothing is lost."""
    for child in element.children:
        if child.name not in known:
            for line in child.source().splitlines():
                yield f"# {''.join(each for each in line if each.isprintable())}"
