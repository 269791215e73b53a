"""Expressions: the text of a constraint is read without running any of it, and computed on columns.

Text to tree: the text is cut into tokens here, and Python's parser only sees a skeleton of it, in
which a placeholder stands for each name and literal. So the parser never meets an escape, a huge
number or a surrogate, and a characteristic may have any name.

Nodes to columns: what the tree means (`constraints` decides that) is a node, which is computed with
numpy for all inputs at once. A condition is a truth: FALSE, UNSURE where it depends on a value that
is missing, or TRUE. So "and" is the least of them, "or" the greatest.
"""

from __future__ import annotations

import ast
import math
import re
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import Mistake, suggest
from themis.inputs.characteristics import Characteristic

MAX_CHARACTERS = 10_000
MAX_NESTING = 100  # far below the depth at which Python's parser or a recursive walk gives up
MAX_SUGGESTIONS = 25  # finding near names is slow; the mistakes after these come without one

_TOKEN = re.compile(
    r"""(?P<space>\s+)
    | (?P<prefix>[fFrRbBuU]{0,2}) (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<number>(?:[0-9][0-9_]*\.?[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?)
    | `(?P<quoted>[^`]*)`
    | (?P<word>[^\W\d]\w*)
    | (?P<operator>[!=]==|[=!<>]=|<>|=[<>]|&&|\|\||//|\*\*|:=|<<|>>|[\[\]\-+*/%(){},<>=!&|^~@.:≤≥≠])
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_GRAMMAR = frozenset({"and", "or", "not", "in", "is", "if", "else", "lambda", "for", "None"})
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}
_REPAIRS = {
    **{"=": "==", "===": "==", "!==": "!=", "<>": "!=", "≠": "!="},
    **{"=<": "<=", "≤": "<=", "=>": ">=", "≥": ">="},
    **{"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not", "~": "not"},
}
_SHOUTED = {"AND": "and", "OR": "or", "NOT": "not", "IN": "in"}
_FLAT = frozenset({"<", "<=", ">", ">=", "==", "!=", "in", "is", ":", "None"})
_ESCAPE = re.compile(r"\\(x[0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", "'": "'", '"': '"'}


@dataclass
class Findings:
    """The mistakes of one expression, each said once, in the order in which they were found."""

    where: str
    mistakes: dict[Mistake, None] = field(default_factory=dict)

    def add(self, code: str, problem: str, remedy: str = "") -> None:
        self.mistakes.setdefault(Mistake(code, self.where, problem, remedy))

    def has(self, code: str) -> bool:
        return any(mistake.code == code for mistake in self.mistakes)

    def suggest(self, name: str, valid: Sequence[str]) -> str:
        return suggest(name, valid[:1000]) if len(self.mistakes) < MAX_SUGGESTIONS else ""


@dataclass(frozen=True)
class Token:
    """A piece of the text; `value` is a name, a literal, or the grammar that it stands for."""

    kind: str  # name, literal or grammar
    value: str | float | bool | None  # None for a literal that can't be read
    start: int
    end: int


@dataclass(frozen=True)
class Reading:
    """The tree of an expression, in which `ast.Name` stands for a token that is not grammar."""

    text: str
    tree: ast.expr
    tokens: tuple[Token, ...]
    offsets: tuple[int, ...]  # where each token starts in the skeleton that was parsed

    def token(self, placeholder: ast.Name) -> Token:
        return self.tokens[_token_at(self.offsets, placeholder.col_offset)]

    def source(self, tree: ast.expr) -> str:
        """What the user wrote for this part of the tree, quoted and shortened."""
        first = _token_at(self.offsets, tree.col_offset)
        last = _token_at(self.offsets, (tree.end_col_offset or tree.col_offset + 1) - 1)
        return quote(self.text[self.tokens[first].start : self.tokens[last].end])


def quote(text: str) -> str:
    """The text in quotes, safe to print and at most 60 characters of it."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def read_expression(
    text: object, is_name: Callable[[str], bool], found: Findings
) -> Reading | None:
    """The tree of the text, or None where it can't be read; what is wrong goes to `found`.

    A wrong spelling such as `&&` is reported and read as what was meant, so that the mistakes
    in the rest of the text are found as well.
    """
    if not isinstance(text, str):
        found.add("not-text", f"a constraint is written as text, not {type(text).__name__}")
    elif len(text) > MAX_CHARACTERS:
        problem = f"has {len(text)} characters, at most {MAX_CHARACTERS} are read"
        found.add("too-long", problem, "split it into several constraints")
    elif not text.strip():
        found.add("empty-constraint", "is empty", 'write a condition, such as "age >= 18"')
    else:
        tokens = tuple(_cut_tokens(text, is_name, found))
        whole = bool(tokens) and not found.has("unclosed-quote")
        if whole and _check_nesting(tokens, found):
            return _parse_skeleton(text, tokens, found)
    return None


def _cut_tokens(text: str, is_name: Callable[[str], bool], found: Findings) -> Iterator[Token]:
    for match in _TOKEN.finditer(text):
        start, end = match.span()
        kind = match.lastgroup
        content = match[kind] if kind else ""
        if kind == "text":
            if match["prefix"]:
                problem = f"text has no prefix, received {match['prefix']!r} at column {start + 1}"
                found.add("unsupported-syntax", problem, "write it in plain quotes")
            value = None if match["prefix"] else _unescape(content[1:-1])
            yield Token("literal", value, start, end)
        elif kind == "number":
            yield Token("literal", _read_number(content, found), start, end)
        elif kind == "quoted" or (
            kind == "word" and is_name(content) and not _is_reserved(content)
        ):
            yield Token("name", content, start, end)
        elif kind == "word":
            yield _read_word(content, start, end, found)
        elif kind == "operator":
            yield Token("grammar", _repair(content, _REPAIRS, found), start, end)
        elif kind == "other":
            _report_character(content, start, found)
            if content in "\"'`":
                return


def _is_reserved(word: str) -> bool:
    return word in _GRAMMAR or word in _TRUTHS


def _read_word(word: str, start: int, end: int, found: Findings) -> Token:
    if word in _TRUTHS:
        return Token("literal", _TRUTHS[word], start, end)
    if word in _GRAMMAR or word in _SHOUTED:
        return Token("grammar", _repair(word, _SHOUTED, found), start, end)
    return Token("name", word, start, end)


def _repair(operator: str, repairs: dict[str, str], found: Findings) -> str:
    meant = repairs.get(operator, operator)
    if meant != operator:
        problem = f"{operator!r} is not an operator of constraints"
        found.add("wrong-operator", problem, f"write {meant!r} instead")
    return meant


def _read_number(digits: str, found: Findings) -> float | None:
    try:
        number = float(digits)
    except ValueError:
        found.add(
            "invalid-number", f"{quote(digits)} is not a number", "write it like 1_000 or 2.5"
        )
        return None
    if math.isinf(number):
        found.add("invalid-number", f"the number {quote(digits)} is too large", "stay below 1e308")
        return None
    return number


def _unescape(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        escape = match[1]
        return chr(int(escape[1:], 16)) if len(escape) > 1 else _ESCAPED.get(escape, match[0])

    return _ESCAPE.sub(replace, text)


def _report_character(character: str, start: int, found: Findings) -> None:
    if character in "\"'`":
        problem = f"the quote {character} opened at column {start + 1} is never closed"
        found.add("unclosed-quote", problem, "close it, or write \\ before a quote inside text")
    else:
        problem = f"the character {character!r} at column {start + 1} has no meaning here"
        straight = "use straight quotes for text" if character in "“”‘’„«»" else "remove it"
        found.add("unexpected-character", problem, straight)


def _check_nesting(tokens: Sequence[Token], found: Findings) -> bool:
    """Whether an upper bound on the depth of the tree stays within the limit.

    Each operator may add a level, until a comma, `and` or `or` starts a new branch beside it.
    """
    levels = [0]
    lasting = 0
    for token in tokens:
        if token.kind != "grammar" or token.value in _FLAT:
            continue
        if token.value in {"(", "[", "{"}:
            levels.append(0)
        elif token.value in {")", "]", "}"} and len(levels) > 1:
            levels.pop()
            levels[-1] += 1
        elif token.value in {",", "and", "or"}:
            levels[-1] = 0
        elif token.value in {"lambda", "if", "else"}:
            lasting += 1
        else:
            levels[-1] += 1
        if sum(levels) + len(levels) + lasting > MAX_NESTING:
            _report_depth(found)
            return False
    return True


def _report_depth(found: Findings) -> None:
    problem = f"is nested more than {MAX_NESTING} levels deep"
    found.add("too-deep", problem, "split it into several constraints")


def _parse_skeleton(text: str, tokens: tuple[Token, ...], found: Findings) -> Reading | None:
    words = [str(token.value) if token.kind == "grammar" else "t" for token in tokens]
    offsets = tuple(accumulate((len(word) + 1 for word in words[:-1]), initial=0))
    try:
        tree = ast.parse(" ".join(words), mode="eval").body
    except SyntaxError as error:
        if not found.has("unexpected-character"):  # that one was left out of the skeleton
            at_end = not error.offset or error.offset > offsets[-1] + len(words[-1])
            token = None if at_end else tokens[_token_at(offsets, (error.offset or 1) - 1)]
            _report_syntax(text, token, error.msg, found)
        return None
    except (RecursionError, MemoryError):  # the caller's own stack was almost used up
        _report_depth(found)
        return None
    return Reading(text, tree, tokens, offsets)


def _report_syntax(text: str, token: Token | None, message: str, found: Findings) -> None:
    if token is None:
        problem = f"ends too early, at column {len(text.rstrip()) + 1}"
    else:
        near = quote(text[token.start : token.start + 20])
        reason = "" if message.startswith("invalid syntax") else f": {message}"
        problem = f"can't be read at column {token.start + 1}, near {near}{reason}"
    found.add("syntax", problem, "look for a missing operator, value, bracket or quote")


def _token_at(offsets: Sequence[int], offset: int) -> int:
    return max(bisect_right(offsets, offset) - 1, 0)


MAX_TABLE_SIZE = 65_536  # a characteristic with more values is decoded instead of looked up

Array = NDArray[Any]


class Kind(Enum):
    """What a node is computed to; the value is how a message calls it."""

    NUMBER = "a number"
    TEXT = "text"
    BOOLEAN = "true or false"
    UNKNOWN = "a mistake"  # reported already: it must not lead to further ones


@dataclass(frozen=True, eq=False)
class Literal:
    """A value that the text states."""

    kind: Kind
    value: Any
    reads: Mapping[str, Characteristic] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Read:
    """The values of one characteristic."""

    kind: Kind
    variable: Characteristic

    @property
    def reads(self) -> Mapping[str, Characteristic]:
        return {self.variable.name: self.variable}


@dataclass(frozen=True, eq=False)
class Absent:
    """Whether the value of one characteristic is missing."""

    variable: Characteristic
    kind: Kind = Kind.BOOLEAN

    @property
    def reads(self) -> Mapping[str, Characteristic]:
        return {self.variable.name: self.variable}


@dataclass(frozen=True, eq=False)
class Apply:
    """A function of whole columns, applied to the results of the parts."""

    kind: Kind
    function: Callable[..., Array]
    parts: tuple[Node, ...]

    @property
    def reads(self) -> Mapping[str, Characteristic]:
        return {name: read for part in self.parts for name, read in part.reads.items()}


@dataclass(frozen=True, eq=False)
class Table:
    """Anything that a single characteristic decides: the result for each of its codes."""

    kind: Kind
    reads: Mapping[str, Characteristic]
    results: Array


Node = Literal | Read | Absent | Apply | Table
UNKNOWN = Literal(Kind.UNKNOWN, None)


def evaluate(node: Node, columns: Mapping[str, Array]) -> Any:
    """The result for each input, from columns of codes; without any column, that of a constant.

    Each column that is needed is decoded once; those that have tables are never decoded.
    """
    with np.errstate(all="ignore"):  # an undefined number is a result here, not an accident
        return _compute(node, columns, {})


def _compute(node: Node, columns: Mapping[str, Array], decoded: dict[str, Array]) -> Any:
    match node:
        case Literal(value=value):
            return value
        case Table(reads=reads, results=results):
            return results[columns[next(iter(reads))]]
        case Read(kind=kind, variable=variable):
            if variable.name not in decoded:
                dtype = {Kind.NUMBER: np.float64, Kind.BOOLEAN: np.bool_}.get(kind, np.object_)
                values: Array = np.asarray(variable.column(columns[variable.name]), dtype=dtype)
                decoded[variable.name] = truths(values) if kind is Kind.BOOLEAN else values
            return decoded[variable.name]
        case Absent(variable=variable):
            return truths(np.asarray(columns[variable.name]) == variable.missing_code)
        case Apply(function=function, parts=parts):
            return function(*(_compute(part, columns, decoded) for part in parts))


def tabulate(node: Node) -> Node:
    """The same node, with a table for each largest part that one small characteristic decides."""
    reads = node.reads
    if len(reads) == 1:
        ((name, variable),) = reads.items()
        if variable.size <= MAX_TABLE_SIZE:
            return Table(node.kind, reads, evaluate(node, {name: np.arange(variable.code_count)}))
    if isinstance(node, Apply):
        return Apply(node.kind, node.function, tuple(tabulate(part) for part in node.parts))
    return node


def unless_zero(function: Callable[..., Array], left: Any, right: Any) -> Array:
    """The quotient or remainder, undefined where the divisor is zero."""
    return np.where(np.equal(right, 0), np.nan, function(left, right))


def differ(left: Any, right: Any) -> Array:
    """Whether two numbers differ; unlike !=, false where one is undefined."""
    return np.asarray((left < right) | (left > right))


FALSE, UNSURE, TRUE = np.int8(0), np.int8(1), np.int8(2)


def truths(holds: Any) -> Array:
    """The truths of what holds or not."""
    return np.asarray(holds, dtype=np.bool_) * TRUE


def unless_missing(truth: Any, *absent: Array) -> Array:
    """The truth, UNSURE where one of the values that it depends on is missing."""
    return np.where(reduce(np.maximum, absent) == TRUE, UNSURE, truth)


def negated(truth: Any) -> Array:
    return np.asarray(TRUE - truth)


def compared(left: Any, right: Any, *, comparison: Callable[..., Array]) -> Array:
    """The truth of a comparison of numbers or texts."""
    return truths(comparison(left, right))


def same_truth(left: Any, right: Any) -> Array:
    """Whether two conditions are both true or both false; UNSURE where one of them is."""
    unsure = (np.asarray(left) == UNSURE) | (np.asarray(right) == UNSURE)
    return np.where(unsure, UNSURE, truths(left == right))


def other_truth(left: Any, right: Any) -> Array:
    """Whether one of two conditions is true and one false; UNSURE where one of them is."""
    return negated(same_truth(left, right))


@dataclass(frozen=True)
class Link:
    """One comparison of a chain such as `a < b <= c`, and the values that it depends on."""

    compare: Callable[..., Array]  # gives a truth
    absent: tuple[int, ...]  # which parts behind the operands say that one is missing


def compare_chain(*parts: Array, links: Sequence[Link]) -> Array:
    """Whether each comparison holds between one operand and the next."""
    result: Array = np.asarray(TRUE)
    for link, left, right in zip(links, parts, parts[1:], strict=False):
        truth = link.compare(left, right)
        if link.absent:
            truth = unless_missing(truth, *(parts[place] for place in link.absent))
        result = np.minimum(result, truth)
    return result


def is_in(column: Array, *, members: frozenset[Any]) -> Array:
    if column.dtype == np.object_:
        found = np.fromiter(map(members.__contains__, column), np.bool_, len(column))
        return truths(found)
    return truths(np.isin(column, list(members)))


def is_not_in(column: Array, *, members: frozenset[Any]) -> Array:
    """Whether none of the members is equal; false where a number is undefined."""
    outside = is_in(column, members=members) == FALSE
    return truths(outside & ~np.isnan(column) if column.dtype == np.float64 else outside)


def all_hold(*conditions: Array) -> Array:
    return reduce(np.minimum, conditions)


def any_holds(*conditions: Array) -> Array:
    return reduce(np.maximum, conditions)
