"""Conversion of the XML settings of Themis 1.0 and 2.0 to a commented `themis.toml`.

Those programs gave a shell one line, the command and the values. Their measurements had no limits:
they become `[run] against`; searches become `[[checks]]`. What can't be converted is refused with
its line; what makes no sense once it is converted is told by whoever reads the file. A document
type is refused as soon as it begins: without one there are no entities to expand and no files to
fetch.
"""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, TypeVar
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
Number = TypeVar("Number", int, float)
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
    """The text of a `themis.toml`; raises ConfigError for the first that can't be converted.

    Document types and entities are refused, not expanded.
    """
    try:
        return "\n".join(_lines(_read(data), source)) + "\n"
    except ConfigError as error:
        raise ConfigError(replace(each, file=source) for each in error.mistakes) from None


def _refused(code: str, where: str, problem: str, remedy: str, line: int) -> ConfigError:
    return ConfigError([Mistake(code, where, problem, remedy, line=line)])


def _unfit(element: Element, problem: str, remedy: str) -> ConfigError:
    return _refused("settings", element.tag, problem, remedy, int(element.get("line", 1)))


def _read(data: bytes) -> Element:
    """The outermost element, each with its line; refuses what is not harmless XML."""
    builder, parser = TreeBuilder(), expat.ParserCreate()

    def refuse_doctype(*_: Any) -> None:
        problem = "has a document type (<!DOCTYPE …>), which may define entities"
        remedy = "remove it: settings need none"
        raise _refused("xml", "", problem, remedy, parser.CurrentLineNumber)

    def start(name: str, _: Any) -> None:
        builder.start(name, {"line": str(parser.CurrentLineNumber)})

    parser.StartDoctypeDeclHandler = refuse_doctype
    parser.StartElementHandler, parser.EndElementHandler = start, builder.end
    parser.CharacterDataHandler = builder.data
    try:
        parser.Parse(data, True)
    except expat.ExpatError as error:
        problem = f"is not XML: {expat.ErrorString(error.code)}"
        raise _refused("xml", "", problem, "fix it at this place", error.lineno) from None
    except (LookupError, ValueError) as error:  # an encoding that Python does not know
        problem = f"can't be decoded: {error}"
        raise _refused("xml", "", problem, "save it as UTF-8", 1) from None
    return builder.close()


def _said(element: Element | None) -> str:
    """The text of an element without the space around; of none it is empty."""
    return "" if element is None else (element.text or "").strip()


def _child(element: Element, name: str) -> Element:
    """A child that must be there with a text."""
    found = element.find(name)
    if found is None or not _said(found):
        raise _unfit(element, f"there is no <{name}>", f"write <{name}>…</{name}> in it")
    return found


def _fields(test: Element) -> list[str]:
    return list(dict.fromkeys(map(_said, test.iterfind("i_fields/input_name"))))


def _lines(root: Element, source: str) -> Iterator[str]:
    if root.tag != "settings":
        problem = f"the outermost element is <{root.tag}>"
        raise _unfit(root, problem, "it must be <settings>")
    tests = [(_kind(test), test) for test in root.findall("tests/test")]
    yield from _subject(root, source)
    yield from _inputs(root, {name for _, test in tests for name in _fields(test)})
    yield from _run(root, tests)
    for kind, test in tests:
        if kind == "search":
            yield from _search(test)


def _subject(root: Element, source: str) -> Iterator[str]:
    command = _child(root, "command")
    written = "\n".join(f"{k} = {spell_value(v)}" for k, v in _without_shell(command).items())
    yield _HEAD.format(source=json.dumps(source), command=written)
    for name in root.iterfind("name"):
        yield from spell_remark(f"The settings were called {_said(name)}.")
    unknown = dict.fromkeys(f"<{each.tag}>" for each in root.iter() if each.tag not in KNOWN)
    if unknown:
        yield from spell_remark(f"Not converted: {', '.join(unknown)}.")


def _inputs(root: Element, protected: set[str]) -> Iterator[str]:
    yield from spell_remark(
        "The characteristics, in the order of the arguments. Both ends of a range are "
        "included, as in Themis 2.0; 1.0 left out the upper one. Those that the tests name are "
        "marked as protected; look over which ones the law or you protect."
    )
    yield "[inputs]"
    for element in root.iterfind("inputs/input"):
        name, spec = _said(_child(element, "name")), _spec(element)
        if name in protected:
            spec["protected"] = True
        plain = list(spec) == ["values"]
        yield f"{spell_key(name)} = {spell_value(spec['values'] if plain else spec)}"


def _spec(element: Element) -> dict[str, Any]:
    """The characteristic as [inputs] describes one."""
    kind = _said(_child(element, "type"))
    if kind == "categorical":
        return {"values": [_said(each) for each in element.iterfind("values/value")]}
    if kind == "continuousInt":
        bounds = element.find("bounds")
        around = element if bounds is None else bounds
        low, high = (_child(around, end) for end in ("lowerbound", "upperbound"))
        return {"min": _number(low, int), "max": _number(high, int)}
    raise _unfit(element, f"there is no type {kind!r}", suggest(kind, TYPES))


def _number(element: Element, kind: type[Number]) -> Number:
    """The number that an element has."""
    try:
        return kind(_said(element))
    except ValueError:
        what = "whole number" if kind is int else "number"
        problem = f"{_said(element)!r} is no {what}"
        raise _unfit(element, problem, "write one, such as 42") from None


def _kind(test: Element) -> str:
    """What a test measures, or that it searches."""
    function = _said(_child(test, "function"))
    snake = re.sub("[DS]", lambda each: f"_{each[0].lower()}", function)  # 1.0's own in Python
    if snake not in FUNCTIONS:
        remedy = suggest(function, tuple(FUNCTIONS))
        raise _unfit(test, f"there is no function {function!r}", remedy)
    return FUNCTIONS[snake]


def _run(root: Element, tests: list[tuple[str, Element]]) -> Iterator[str]:
    """The settings of the whole run: the strictest that any test asks for."""
    yield "\n[run]"
    measured = [(kind, _fields(test)) for kind, test in tests if kind in MEASURES]
    if measured:
        asked = "; ".join(f"{kind} of {', '.join(names)}" for kind, names in measured)
        yield from spell_remark(
            f"What `themis score` measures, both scores of each set. The tests asked for: {asked}."
        )
        sets = {frozenset(names): names for _, names in measured}
        yield f"against = {spell_value(list(sets.values()))}"
    for seed in root.iterfind("seed"):
        yield f"seed = {_number(seed, int)}"
    for name, key, choose in (("conf", "confidence", max), ("margin", "error", min)):
        given = (each for _, test in tests for each in test.iterfind(name) if _said(each))
        known = [_number(each, float) for each in given]
        if known:
            several = "  # the strictest of several" if len(set(known)) > 1 else ""
            yield f"{key} = {choose(known)!r}{several}"
    yield ""


def _search(test: Element) -> Iterator[str]:
    own = filter(_said, test.iterfind("threshold"))
    given = next((_number(each, float) for each in own), None)
    # The threshold of searches in the 2017 paper.
    limit = 0.2 if given is None else LIMITS.get(given, given)
    remark = "" if limit == given else "  # it must lie between 0 and 1: choose your own"
    wanted = [each for measure in MEASURES for each in test.findall(measure)[:1]]
    if not wanted:
        yield "# A search asked for neither <group/> nor <causal/>: there is nothing to check."
    for each in wanted:
        if _said(each):
            problem = f"<{each.tag}> has the text {_said(each)!r}, but its presence means wanted"
            raise _unfit(each, problem, f"write <{each.tag}/>, or remove it")
        yield "# `themis check` enforces this, and lists the sets that are above."
        yield f'[[checks]]\nsearch = true\nmeasure = "{each.tag}"'
        yield f"max_score = {limit!r}{remark}\n"


_FOLDER = re.compile(r"\s*cd\s+([^\s'\"\\;&|<>$`*?()~#]+)\s*(?:&&|;)\s*(?=\S)")
_SIGN = re.compile(r"&&|\|\||[|;&<>$`*?()\n~#\\]|^cd(?!\S)|^\w+=")


def _without_shell(element: Element) -> dict[str, Any]:
    """The keys of [subject]: `cd x && python y` has a folder and two words."""
    text = _said(element)
    found = _FOLDER.match(text)
    rest = (text[found.end() :] if found else text).strip()
    if sign := _SIGN.search(rest):
        problem = f"{text!r} needs a shell for {sign[0]!r}, and no shell is started"
        remedy = 'write the line into a script, with "$@" for the values, and name that: sh run.sh'
        raise _unfit(element, problem, remedy)
    try:
        words = shlex.split(rest)
    except ValueError as error:
        problem = f"{text!r} can't be split into words: {str(error).lower()}"
        raise _unfit(element, problem, "close the quotes") from None
    # Braces of the line are not places of values.
    command = [each.replace("{", "{{").replace("}", "}}") for each in words]
    return {"command": command, **({"cwd": found[1]} if found else {})}
