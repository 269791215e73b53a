"""What is said of codes: of every one that the source can raise or write, and of no other."""

from __future__ import annotations

import ast
import importlib
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

import themis
from themis.config.complaints import _OTHER_WORDS, _WORDS
from themis.results.notes import CODES
from themis.show.words.notes import known_codes

SOURCE = Path(themis.__file__).parent
MAKER = re.compile(r"Mistake|\w+Error\.one|ExpressionError")  # of mistakes, given the code first
# Where codes come from a table, or from an exception that has one.
FROM_TABLES = {
    "config.complaints": {"unknown-key", *(e[0] for e in (*_WORDS.values(), _OTHER_WORDS))},
    "inputs.constraints": set[str](),
}
Function = ast.FunctionDef | ast.AsyncFunctionDef
Calls = list[tuple[Function, str, ast.Call]]  # in which function, and the name of what is called


def calls_in(text: str) -> Calls:
    """All calls: of `Mistake`, `RequestError.one`, `_add` …"""
    tree = ast.parse(text)
    made = [(each, call) for each in ast.walk(tree) if isinstance(each, Function)
            for call in ast.walk(each) if isinstance(call, ast.Call)]  # fmt: skip
    return [(each, ast.unparse(call.func).removeprefix("self."), call) for each, call in made]


@cache
def modules() -> dict[str, Calls]:
    """The calls of every module that may make mistakes, by its name without `themis.`."""
    texts = {path: path.read_text("utf-8") for path in SOURCE.rglob("*.py")}
    return {
        ".".join(path.relative_to(SOURCE).with_suffix("").parts): calls_in(text)
        for path, text in texts.items()
        if re.search("[Mm]istake|Error.one|ExpressionError", text) and path.stem != "errors"
    }


def helpers(calls: Calls) -> dict[str, int]:
    """Functions that make a mistake of the code that they are given, and which argument it is."""
    found = {}
    for function, name, call in calls:
        given = code_argument(call, 0) if MAKER.fullmatch(name) else None
        names = [argument.arg for argument in arguments_of(function) if argument.arg != "self"]
        if isinstance(given, ast.Name) and given.id == "code" and "code" in names:
            found[function.name] = names.index("code")
    return found


def arguments_of(function: Function) -> list[ast.arg]:
    return [*function.args.args, *function.args.kwonlyargs]


def code_argument(call: ast.Call, place: int) -> ast.expr | None:
    """What a call gives as the code; None where that is the default, a literal elsewhere."""
    named = [each.value for each in call.keywords if each.arg == "code"]
    return (named or [*call.args[place : place + 1], None])[0]


def assigned(name: str, function: Function) -> Iterator[ast.expr]:
    """What a local variable becomes, alone or as one of several."""
    for each in ast.walk(function):
        if isinstance(each, ast.Assign):
            target, value = each.targets[0], each.value
            if isinstance(target, ast.Tuple) and name in map(ast.unparse, target.elts):
                place = [*map(ast.unparse, target.elts)].index(name)
                yield value.elts[place] if isinstance(value, ast.Tuple) else value
            elif ast.unparse(target) == name:
                yield value


def literal(module: str, function: Function, given: ast.expr) -> set[str]:
    """The codes that an expression may be; raises AssertionError where that is not to be seen."""
    if isinstance(given, ast.Constant):
        return {given.value}
    name = ast.unparse(given)
    constants = vars(importlib.import_module(f"themis.{module}"))
    if name in constants:
        return {constants[name]}
    if name in {each.arg for each in arguments_of(function)}:
        return set()  # whoever calls it says which
    values = [*assigned(name, function)]
    if values and all(isinstance(each, ast.Constant) for each in values):
        return {each.value for each in values if isinstance(each, ast.Constant)}
    assert module in FROM_TABLES, f"{module}:{given.lineno}: write the code as a literal"
    return FROM_TABLES[module]


def codes_in(module: str, calls: Calls, shared: dict[str, int]) -> Iterator[str]:
    own = shared | helpers(calls)
    for function, name, call in calls:
        is_maker = MAKER.fullmatch(name) is not None
        place = own.get(name, own.get(name.rpartition(".")[2]))
        given = code_argument(call, place or 0) if is_maker or place is not None else None
        if given is not None:
            yield from literal(module, function, given)
        if is_maker:  # and what is meant where a helper is given no code
            keywords = zip(function.args.kwonlyargs, function.args.kw_defaults, strict=True)
            yield from (e.value for key, e in keywords if key.arg == "code" and e is not None)


@cache
def raised() -> set[str]:
    """The codes of all mistakes that the source can make."""
    found = [helpers(calls) for calls in modules().values()]
    shared = {name: place for each in found for name, place in each.items() if name[0] != "_"}
    return {code for name, calls in modules().items() for code in codes_in(name, calls, shared)}


def told(kind: str) -> list[str]:
    return [each.code for each in known_codes() if each.kind == kind]


def test_every_code_that_can_be_raised_is_explained_and_no_other() -> None:
    assert sorted(told("mistake")) == sorted(raised())


def test_every_code_of_a_note_is_explained_and_no_other() -> None:
    assert sorted(told("note")) == sorted(CODES)


@pytest.mark.parametrize(
    "line",
    [
        'raise RequestError.one("later-code", "where", problem)',
        'code, problem = "later-code", ""\n    raise ConfigError([Mistake(code, "", problem)])',
        '_mistake("", "later-code")',
    ],
)
def test_a_code_that_is_raised_anew_is_seen(line: str) -> None:
    helper = "def _mistake(problem: str, code: str):\n    return Mistake(code, '', problem)\n"
    calls = calls_in(f"{helper}def new():\n    {line}\n")
    assert set(codes_in("errors", calls, {})) == {"later-code"}


def test_codes_are_explained_in_a_few_plain_sentences() -> None:
    for each in known_codes():
        for text in filter(None, (each.means, each.helps)):
            assert len(text.split()) <= 30, each.code
            assert text[0].isupper(), each.code
            assert text.endswith("."), each.code
        assert each.helps or each.kind == "note", each.code
