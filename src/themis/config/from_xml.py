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
from typing import Any
from xml.etree.ElementTree import Element, TreeBuilder
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


def convert_settings(data: bytes, *, source: str) -> str:
    """The text of a `themis.toml`; raises ConfigError with all that can't be converted.

    Document types and entities are refused, not expanded.
    """
    converter = _Converter(_read(data, source), source)
    text = "\n".join(converter.lines()) + "\n"
    if converter.mistakes:
        raise ConfigError(sorted(converter.mistakes, key=lambda each: each.line or 0))
    return text


def _read(data: bytes, source: str) -> Element:
    """The outermost element, each with its line; ConfigError for what is not harmless XML."""
    builder, parser = TreeBuilder(), expat.ParserCreate()

    def refusal(problem: str, remedy: str, line: int) -> ConfigError:
        return ConfigError([Mistake("xml", "", problem, remedy, source, line)])

    def refuse_doctype(*_: Any) -> None:
        problem = "has a document type (<!DOCTYPE …>), which may define entities"
        raise refusal(problem, "remove it: settings need none", parser.CurrentLineNumber)

    def start(name: str, _: Any) -> None:
        builder.start(name, {"line": str(parser.CurrentLineNumber)})

    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        problem = f"is not XML: {expat.ErrorString(error.code)}"
        raise refusal(problem, "fix it at this place", error.lineno) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        raise refusal(f"can't be decoded: {error}", "save it as UTF-8", 1) from None
    return builder.close()


def _said(element: Element | None) -> str:
    """The text of an element without the space around; of none it is empty."""
    return "" if element is None else (element.text or "").strip()


def _fields(test: Element) -> list[str]:
    return [_said(each) for each in test.iterfind("i_fields/input_name")]


class _Converter:
    """The parts of the file, one after the other, and what is wrong so far."""

    def __init__(self, root: Element, source: str) -> None:
        self._root, self._source = root, source
        self._tests = root.findall("tests/test")
        self._protected = {name for test in self._tests for name in _fields(test)}
        self.mistakes: list[Mistake] = []

    def _add(self, element: Element, problem: str, remedy: str) -> None:
        place = (self._source, int(element.get("line", 1)))
        self.mistakes.append(Mistake("settings", element.tag, problem, remedy, *place))

    def lines(self) -> Iterator[str]:
        if self._root.tag != "settings":
            problem = f"the outermost element is <{self._root.tag}>"
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
            self._add(self._root.findall("command")[0], *error.args)
        written = "\n".join(f"{key} = {spell_value(value)}" for key, value in keys.items())
        yield _HEAD.format(source=json.dumps(self._source), command=written)
        for name in self._root.iterfind("name"):
            yield from spell_remark(f"The settings were called {_said(name)}.")
        unknown = dict.fromkeys(f"<{e.tag}>" for e in self._root.iter() if e.tag not in KNOWN)
        if unknown:
            yield from spell_remark(f"Not converted: {', '.join(unknown)}.")

    def _inputs(self) -> Iterator[str]:
        yield from spell_remark(
            "The characteristics, in the order of the arguments. Both ends of a range are "
            "included, as in Themis 2.0; 1.0 left out the upper one. Those that the tests name are "
            "marked as protected; look over which ones the law or you protect."
        )
        yield "[inputs]"
        elements = self._root.findall("inputs/input")
        if not elements:
            self._add(self._root, "there is no <input>", "describe at least one")
        described: set[str] = set()
        for element in elements:
            name = self._text(element, "name", "give it a name")
            if name in described:
                self._add(element, f"the input {name!r} appears twice", "rename or remove one")
            described.add(name)
            spec = self._spec(element)
            if name in self._protected:
                spec["protected"] = True
            plain = list(spec) == ["values"]
            yield f"{spell_key(name)} = {spell_value(spec['values'] if plain else spec)}"

    def _spec(self, element: Element) -> dict[str, Any]:
        """The characteristic as [inputs] describes one."""
        kind = self._text(element, "type", f"write one of: {', '.join(TYPES)}")
        if kind == "categorical":
            values = [_said(each) for each in element.iterfind("values/value")]
            if not values:
                self._add(element, "there is no <value>", "list them: <values><value>…</value>")
            return {"values": values}
        if kind == "continuousInt":
            bounds = element.find("bounds")
            bounds = element if bounds is None else bounds
            return {
                "min": self._bound(bounds, "lowerbound"),
                "max": self._bound(bounds, "upperbound"),
            }
        if kind:
            self._add(element, f"there is no type {kind!r}", suggest(kind, TYPES))
        return {}

    def _bound(self, bounds: Element, end: str) -> int:
        text = self._text(bounds, end, f"write <bounds> with a whole number in <{end}>")
        return self._whole(bounds.find(end), "18") if text else 0

    def _whole(self, element: Element | None, example: str) -> int:
        """The whole number that an element has."""
        assert element is not None
        try:
            return int(_said(element))
        except ValueError:
            problem = f"{_said(element)!r} is no whole number"
            self._add(element, problem, f"write one, such as {example}")
            return 0

    def _kind(self, test: Element) -> str:
        """What a test measures, or that it searches; empty where that is not known."""
        function = self._text(test, "function", f"write one of: {', '.join(FUNCTIONS)}")
        snake = re.sub("[DS]", lambda each: f"_{each[0].lower()}", function)  # 1.0's own in Python
        kind = FUNCTIONS.get(snake, "")
        if function and not kind:
            remedy = suggest(function, tuple(FUNCTIONS))
            self._add(test, f"there is no function {function!r}", remedy)
        if kind in MEASURES and not _fields(test):
            problem = f"{function} has no <input_name> in <i_fields>"
            self._add(test, problem, "name the characteristics to measure")
        return kind

    def _run(self, kinds: list[str]) -> Iterator[str]:
        """The settings of the whole run: the strictest that any test asks for."""
        yield "\n[run]"
        measured = [
            (kind, tuple(dict.fromkeys(_fields(test))))
            for kind, test in zip(kinds, self._tests, strict=True)
            if kind in MEASURES
        ]
        if measured:
            asked = "; ".join(f"{kind} of {', '.join(names)}" for kind, names in measured)
            yield from spell_remark(
                "What `themis score` measures, both scores of each set. The tests asked for: "
                f"{asked}."
            )
            sets = {frozenset(names): names for _, names in measured}
            yield f"against = {spell_value(list(sets.values()))}"
        for seed in self._root.iterfind("seed"):
            yield f"seed = {self._whole(seed, '42')}"
        for name, key, choose in (("conf", "confidence", max), ("margin", "error", min)):
            given = [self._share(test, name) for test in self._tests]
            known = [value for value in given if value is not None]
            if known:
                several = "  # the strictest of several" if len(set(known)) > 1 else ""
                yield f"{key} = {choose(known)!r}{several}"
        yield ""

    def _search(self, test: Element) -> Iterator[str]:
        given = self._share(test, "threshold", ends=True)
        # The threshold of searches in the 2017 paper.
        limit = 0.2 if given is None else LIMITS.get(given, given)
        remark = ""
        if given is None:
            remark = "  # no threshold was given: choose your own"
        elif limit != given:
            remark = f"  # the threshold was {given:g}; a search needs one between 0 and 1"
        wanted = [each for measure in MEASURES for each in test.findall(measure)[:1]]
        if not wanted:
            yield "# A search asked for neither <group/> nor <causal/>: there is nothing to check."
        for each in wanted:
            if _said(each):
                problem = (
                    f"<{each.tag}> has the text {_said(each)!r}, but its presence means wanted"
                )
                self._add(each, problem, f"write <{each.tag}/>, or remove it")
            yield "# `themis check` enforces this, and lists the sets that are above."
            yield f'[[checks]]\nsearch = true\nmeasure = "{each.tag}"'
            yield f"max_score = {limit!r}{remark}\n"

    def _text(self, element: Element, name: str, remedy: str) -> str:
        """The text of a child that must be there."""
        text = _said(element.find(name))
        if not text:
            self._add(element, f"there is no <{name}>", remedy)
        return text

    def _share(self, test: Element, name: str, *, ends: bool = False) -> float | None:
        """A number between 0 and 1, if it is given; `ends` are allowed where that is said."""
        child = test.find(name)
        if child is None or not _said(child):
            return None
        try:
            number = float(_said(child))
        except ValueError:
            number = -1.0
        if 0 < number < 1 or (ends and number in (0, 1)):
            return number
        example = "0.99" if name == "conf" else "0.05"
        remedy = f"write a fraction between 0 and 1, such as {example}"
        self._add(child, f"<{name}> is {_said(child)!r}", remedy)
        return None


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
