"""Conversion of the XML settings of Themis 1.0 and 2.0 to a commented `themis.toml`.

Those programs gave a shell one line, the command and the values. Their measurements had no limits:
they become `[run] against`; searches become `[[checks]]`. What can't be converted is reported, all
of it at once. A document type is refused as soon as it begins: without one there are no entities to
expand and no files to fetch.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any
from xml.parsers import expat

from themis.config.toml import spell_key, spell_remark, spell_value
from themis.errors import ConfigError, Mistake, suggest

FUNCTIONS = {
    "group_discrimination": "group",
    "causal_discrimination": "causal",
    "discrimination_search": "search",
}
MEASURES = ("causal", "group")
TYPES = ("categorical", "continuousInt")
DEFAULT_LIMIT = 0.2  # the threshold of searches in the 2017 paper
LIMITS = {0.0: 0.001, 1.0: 0.999}  # searches need a limit in between
KNOWN = {
    *("settings", "command", "seed", "inputs", "input", "name", "type", "values", "value"),
    *("bounds", "lowerbound", "upperbound", "tests", "test", "function", "i_fields", "input_name"),
    *("conf", "margin", "threshold", *MEASURES),
}
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


@dataclass
class _Element:
    """An element, its own text without the space around, and its children."""

    name: str
    line: int = 0
    path: str = ""  # the names from the outermost element to this one
    text: str = ""
    children: list[_Element] = field(default_factory=list)

    def named(self, *path: str) -> list[_Element]:
        """All elements inside of this one that a path of names leads to."""
        found = [self]
        for name in path:
            found = [each for outer in found for each in outer.children if each.name == name]
        return found

    def child(self, name: str) -> _Element | None:
        """The first child of this name."""
        return next(iter(self.named(name)), None)


def convert_settings(data: bytes, *, source: str) -> str:
    """The text of a `themis.toml`; raises ConfigError with all that can't be converted.

    Document types and entities are refused, not expanded.
    """
    elements = _read(data, source)
    converter = _Converter(elements, source)
    text = "\n".join(converter.lines()) + "\n"
    if converter.mistakes:
        raise ConfigError(sorted(converter.mistakes, key=lambda each: each.line or 0))
    return text


def _read(data: bytes, source: str) -> list[_Element]:
    """All elements, the outermost first; ConfigError for what is not XML, or not harmless."""
    found: list[_Element] = []
    opened = [_Element("")]  # around the outermost element
    parser = expat.ParserCreate()

    def refusal(problem: str, remedy: str, line: int) -> ConfigError:
        return ConfigError([Mistake("xml", "", problem, remedy, source, line)])

    def start(name: str, _: Any) -> None:
        path = f"{opened[-1].path}.{name}".removeprefix(".")
        found.append(_Element(name, parser.CurrentLineNumber, path))
        opened[-1].children.append(found[-1])
        opened.append(found[-1])

    def end(_: str) -> None:
        element = opened.pop()
        element.text = element.text.strip()

    def add_text(text: str) -> None:
        opened[-1].text += text

    def refuse_doctype(*_: Any) -> None:
        problem = "has a document type (<!DOCTYPE …>), which may define entities"
        raise refusal(problem, "remove it: settings need none", parser.CurrentLineNumber)

    parser.buffer_text = True
    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.CharacterDataHandler, parser.StartDoctypeDeclHandler = add_text, refuse_doctype
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        problem = f"is not XML: {expat.ErrorString(error.code)}"
        raise refusal(problem, "fix it at this place", error.lineno) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        raise refusal(f"can't be decoded: {error}", "save it as UTF-8", 1) from None
    return found


class _Converter:
    """The parts of the file, one after the other, and what is wrong so far."""

    def __init__(self, elements: list[_Element], source: str) -> None:
        self._root = elements[0]
        self._unknown = dict.fromkeys(f"<{e.name}>" for e in elements if e.name not in KNOWN)
        self._source = source
        self._tests = self._root.named("tests", "test")
        self._protected = {each.text for test in self._tests for each in _fields(test)}
        self.mistakes: list[Mistake] = []

    def _add(self, element: _Element, problem: str, remedy: str) -> None:
        place = (self._source, element.line)
        self.mistakes.append(Mistake("settings", element.path, problem, remedy, *place))

    def lines(self) -> Iterator[str]:
        if self._root.name != "settings":
            problem = f"the outermost element is <{self._root.name}>"
            self._add(self._root, problem, "it must be <settings>")
            return
        yield from self._subject()
        yield from self._inputs()
        kinds = [self._kind(test) for test in self._tests]
        yield from self._run(kinds)
        for test, kind in zip(self._tests, kinds, strict=True):
            if kind == "search":
                yield from self._search(test)

    def _subject(self) -> Iterator[str]:
        line = self._text(self._root, "command", "name the program")
        keys: dict[str, Any] = {}
        try:
            keys = _without_shell(line)
        except _ShellError as error:
            self._add(self._root.named("command")[0], *error.args)
        written = "\n".join(f"{key} = {spell_value(value)}" for key, value in keys.items())
        yield _HEAD.format(source=json.dumps(self._source), command=written)
        for name in self._root.named("name"):
            yield from spell_remark(f"The settings were called {name.text}.")
        if self._unknown:
            yield from spell_remark(f"Not converted: {', '.join(self._unknown)}.")

    def _inputs(self) -> Iterator[str]:
        yield from spell_remark(
            "The characteristics, in the order of the arguments. Both ends of a range are "
            "included, as in Themis 2.0; 1.0 left out the upper one. Those that the tests name are "
            "marked as protected; look over which ones the law or you protect."
        )
        yield "[inputs]"
        elements = self._root.named("inputs", "input")
        if not elements:
            self._add(self._root, "there is no <input>", "describe at least one")
        described: set[str] = set()
        for element in elements:
            name = self._text(element, "name", "give it a name")
            if name in described:
                self._add(element, f"the input {name!r} appears twice", "rename or remove one")
            described.add(name)
            spec = self._spec(element)
            if name and spec is not None:
                if name in self._protected:
                    spec["protected"] = True
                plain = list(spec) == ["values"]
                yield f"{spell_key(name)} = {spell_value(spec['values'] if plain else spec)}"

    def _spec(self, element: _Element) -> dict[str, Any] | None:
        """The characteristic as [inputs] describes one."""
        kind = self._text(element, "type", f"write one of: {', '.join(TYPES)}")
        if kind == "categorical":
            values = [each.text for each in element.named("values", "value")]
            if not values:
                self._add(element, "there is no <value>", "list them: <values><value>…</value>")
            return {"values": values} if values else None
        if kind == "continuousInt":
            ends = [self._bound(element, end) for end in ("lowerbound", "upperbound")]
            return None if None in ends else {"min": ends[0], "max": ends[1]}
        if kind:
            self._add(element, f"there is no type {kind!r}", suggest(kind, TYPES))
        return None

    def _bound(self, element: _Element, end: str) -> int | None:
        bounds = element.child("bounds") or element
        text = self._text(bounds, end, f"write <bounds> with a whole number in <{end}>")
        number = _whole(text)
        if text and number is None:
            problem = f"{text!r} is no whole number of at most 64 bits"
            self._add(bounds.named(end)[0], problem, "write one, such as 18")
        return number

    def _kind(self, test: _Element) -> str:
        """What a test measures, or that it searches; empty where that is not known."""
        function = self._text(test, "function", f"write one of: {', '.join(FUNCTIONS)}")
        snake = re.sub("[DS]", lambda each: f"_{each[0].lower()}", function)  # 1.0's own in Python
        kind = FUNCTIONS.get(snake, "")
        if function and not kind:
            remedy = suggest(function, tuple(FUNCTIONS))
            self._add(test.named("function")[0], f"there is no function {function!r}", remedy)
        if kind in MEASURES and not _fields(test):
            problem = f"{function} has no <input_name> in <i_fields>"
            self._add(test, problem, "name the characteristics to measure")
        return kind

    def _run(self, kinds: list[str]) -> Iterator[str]:
        """The settings of the whole run: the strictest that any test asks for."""
        yield "\n[run]"
        measured = [
            (kind, tuple(dict.fromkeys(each.text for each in _fields(test))))
            for kind, test in zip(kinds, self._tests, strict=True)
            if kind in MEASURES and _fields(test)
        ]
        if measured:
            asked = "; ".join(f"{kind} of {', '.join(names)}" for kind, names in measured)
            yield from spell_remark(
                "What `themis score` measures, both scores of each set. The tests asked for: "
                f"{asked}."
            )
            sets = {frozenset(names): names for _, names in measured}
            yield f"against = {spell_value(list(sets.values()))}"
        for seed in self._root.named("seed"):
            number = _whole(seed.text)
            if number is None or number < 0:
                problem = f"{seed.text!r} is no seed"
                self._add(seed, problem, "write a whole number such as 42, or remove it")
            yield f"seed = {number}"
        for name, key, choose in (("conf", "confidence", max), ("margin", "error", min)):
            given = [self._share(test, name) for test in self._tests]
            known = [value for value in given if value is not None]
            if known:
                several = "  # the strictest of several" if len(set(known)) > 1 else ""
                yield f"{key} = {choose(known)!r}{several}"
        yield ""

    def _search(self, test: _Element) -> Iterator[str]:
        given = self._share(test, "threshold", ends=True)
        limit = DEFAULT_LIMIT if given is None else LIMITS.get(given, given)
        remark = ""
        if given is None:
            remark = "  # no threshold was given: choose your own"
        elif limit != given:
            remark = f"  # the threshold was {given:g}; a search needs one between 0 and 1"
        wanted = [each for measure in MEASURES for each in test.named(measure)[:1]]
        if not wanted:
            yield "# A search asked for neither <group/> nor <causal/>: there is nothing to check."
        for each in wanted:
            if each.text:
                problem = f"<{each.name}> has the text {each.text!r}, but its presence means wanted"
                self._add(each, problem, f"write <{each.name}/>, or remove it")
            yield "# `themis check` enforces this, and lists the sets that are above."
            yield f'[[checks]]\nsearch = true\nmeasure = "{each.name}"'
            yield f"max_score = {limit!r}{remark}\n"

    def _text(self, element: _Element, name: str, remedy: str) -> str:
        """The text of a child that must be there."""
        child = element.child(name)
        if child is None or not child.text:
            self._add(child or element, f"there is no <{name}>", remedy)
            return ""
        return child.text

    def _share(self, test: _Element, name: str, *, ends: bool = False) -> float | None:
        """A number between 0 and 1, if it is given; `ends` are allowed where that is said."""
        child = test.child(name)
        if child is None or not child.text:
            return None
        try:
            number = float(child.text)
        except ValueError:
            number = -1.0
        if 0 < number < 1 or (ends and number in (0, 1)):
            return number
        example = "0.2" if ends else "0.99" if name == "conf" else "0.05"
        remedy = f"write a fraction between 0 and 1, such as {example}"
        self._add(child, f"<{name}> is {child.text!r}", remedy)
        return None


def _fields(test: _Element) -> list[_Element]:
    return test.named("i_fields", "input_name")


def _whole(text: str) -> int | None:
    """The whole number that a text is, unless it has more than 64 bits."""
    try:
        number = int(text)
    except ValueError:
        return None
    return number if abs(number) < 2**63 else None


class _ShellError(Exception):
    """A line that takes a shell, or can't be read: the problem and the remedy."""


_FOLDER = re.compile(r"\s*cd\s+([^\s'\"\\;&|<>$`*?()~#]+)\s*(?:&&|;)\s*(?=\S)")
_SIGN = re.compile(r"&&|\|\||[|;&<>$`*?()\n~#\\]|^cd(?!\S)|^\w+=")


def _without_shell(text: str) -> dict[str, Any]:
    """The keys of [subject]: `cd x && python y` has a folder and two words."""
    found = _FOLDER.match(text)
    rest = (text[found.end() :] if found else text).strip()
    if sign := _SIGN.search(rest):
        problem = f"{text!r} needs a shell for {sign[0]!r}, and no shell is started"
        remedy = 'write the line into a script, with "$@" for the values, and name that: sh run.sh'
        raise _ShellError(problem, remedy)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        problem = f"{text!r} can't be split into words: {str(error).lower()}"
        raise _ShellError(problem, "close the quotes") from None
    # Braces of the line are not places of values.
    command = [each.replace("{", "{{").replace("}", "}}") for each in words]
    return {"command": command, **({"cwd": found[1]} if found else {})}
