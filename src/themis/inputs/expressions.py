"""Expressions: the text of a constraint is read without running any of it, and computed on columns.

Text to tree: a placeholder stands for each name, so that a characteristic may have any, and
Python's parser reads the rest.

Nodes to columns: what the tree means (`constraints` decides that) is a node, which is computed with
numpy for all inputs at once. A condition is a truth: FALSE, UNSURE where it depends on a value that
is missing, or TRUE. So "and" is the least of them, "or" the greatest.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.inputs.characteristics import TABLE_LIMIT, Characteristic

MAX_CHARACTERS = 10_000
MAX_NESTING = 100  # far below the depth at which a recursive walk gives up

_PIECE = re.compile(
    r"""(?P<space>\s)
    | (?P<text>"(?:[^"\\]|\\.)*" | '(?:[^'\\]|\\.)*')
    | (?P<number>\.?[0-9][\w.]*)
    | (?P<quoted>`[^`]*`)
    | (?P<word>[^\W\d]\w*)
    | (?P<operator>[!=]==|[=!<>]=|<>|=[<>]|&&|\|\||:=|[\[\]\-+*/%(){},<>=!&|^~@.:≤≥≠])
    | (?P<other>.)""",
    re.VERBOSE | re.DOTALL,
)
_GRAMMAR = frozenset({"and", "or", "not", "in", "is", "if", "else", "lambda", "for", "None"})
_REPAIRS = {
    **{"=": "==", "===": "==", "!==": "!=", "<>": "!=", "≠": "!="},
    **{"=<": "<=", "≤": "<=", "=>": ">=", "≥": ">="},
    **{"&&": "and", "&": "and", "||": "or", "|": "or", "!": "not", "~": "not"},
    **{"AND": "and", "OR": "or", "NOT": "not", "IN": "in"},
}
_UNREADABLE = re.compile("[\0\ud800-\udfff]")  # NUL, or half of a character


class ExpressionError(Exception):
    """What is wrong with an expression: a code, the problem and the remedy."""

    def __init__(self, code: str, problem: str, remedy: str = "") -> None:
        super().__init__(code, problem, remedy)
        self.mistake = code, problem, remedy


@dataclass(frozen=True)
class Reading:
    """The tree of an expression, in which `ast.Name` is a placeholder for a name."""

    text: str
    tree: ast.expr
    code: str  # what was parsed
    names: Sequence[str]  # as they are written

    def name(self, placeholder: ast.Name) -> str:
        """A name as it is written, in backquotes or not."""
        return _restored(placeholder.id, self.names)

    def source(self, tree: ast.expr) -> str:
        """What the user wrote for this part of the tree, quoted and shortened."""
        return quote(_restored(ast.get_source_segment(self.code, tree) or "", self.names))


def _restored(code: str, names: Sequence[str]) -> str:
    return re.sub(r"\b_(\d+)_", lambda match: names[int(match[1])], code)


def quote(text: str) -> str:
    """The text in quotes, safe to print and at most 60 characters of it."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def read_expression(text: object, is_name: Callable[[str], bool]) -> Reading:
    """The tree of the text; raises ExpressionError where it can't be read."""
    if not isinstance(text, str):
        problem = f"a constraint is written as text, not {type(text).__name__}"
        raise ExpressionError("not-text", problem)
    if len(text) > MAX_CHARACTERS:
        problem = f"has {len(text)} characters, at most {MAX_CHARACTERS} are read"
        raise ExpressionError("too-long", problem, "split it into several constraints")
    if not text.strip():
        raise ExpressionError(
            "empty-constraint", "is empty", 'write a condition, such as "age >= 18"'
        )
    names: list[str] = []
    code = _PIECE.sub(lambda match: _parsed_as(match, is_name, names), text.strip())
    return _parse(text, code, names)


def _parsed_as(match: re.Match[str], is_name: Callable[[str], bool], names: list[str]) -> str:
    """What Python's parser gets for a piece of the text."""
    kind, piece = match.lastgroup, match[0]
    if kind == "space":
        return " "
    if kind == "word" and piece in _GRAMMAR:
        return piece
    if kind == "quoted" or (kind == "word" and (is_name(piece) or piece not in _REPAIRS)):
        names.append(piece)
        return f"_{len(names) - 1}_"
    if kind in ("word", "operator") and piece in _REPAIRS:
        problem = f"{piece!r} is not an operator of constraints"
        raise ExpressionError("wrong-operator", problem, f"write {_REPAIRS[piece]!r} instead")
    if kind == "other" or (odd := _UNREADABLE.search(piece)):
        raise _odd_character(odd[0] if kind == "text" and odd else piece, match.start() + 1)
    return piece


def _odd_character(character: str, column: int) -> ExpressionError:
    if character in "\"'`":
        problem = f"the quote {character} opened at column {column} is never closed"
        remedy = "close it, or write \\ before a quote inside text"
        return ExpressionError("unclosed-quote", problem, remedy)
    problem = f"the character {character!r} at column {column} has no meaning here"
    remedy = "use straight quotes for text" if character in "“”‘’„«»" else "remove it"
    return ExpressionError("unexpected-character", problem, remedy)


def _parse(text: str, code: str, names: Sequence[str]) -> Reading:
    deep = f"is nested more than {MAX_NESTING} levels deep"
    too_deep = ExpressionError("too-deep", deep, "split it into several constraints")
    try:
        with warnings.catch_warnings():  # of escapes in texts that Python does not know
            warnings.simplefilter("ignore")
            tree = ast.parse(code, mode="eval").body
    except SyntaxError as error:
        is_deep = "too many nested" in error.msg
        raise too_deep if is_deep else _syntax_error(text, code, names, error) from None
    except (RecursionError, MemoryError):
        raise too_deep from None
    if _is_deep(tree):
        raise too_deep
    return Reading(text, tree, code, names)


def _is_deep(tree: ast.expr) -> bool:
    level: list[ast.AST] = [tree]
    for _ in range(MAX_NESTING):
        level = [child for node in level for child in ast.iter_child_nodes(node)]
    return any(isinstance(node, ast.expr) for node in level)


def _syntax_error(
    text: str, code: str, names: Sequence[str], error: SyntaxError
) -> ExpressionError:
    if "integer string conversion" in error.msg:
        problem = "a number has too many digits"
        return ExpressionError("invalid-number", problem, "stay below 1e308")
    before = len(text) - len(text.lstrip()) + len(_restored(code[: (error.offset or 1) - 1], names))
    if not error.offset or error.offset > len(code):
        problem = f"ends too early, at column {len(text.rstrip()) + 1}"
    else:
        reason = "" if error.msg.startswith("invalid syntax") else f": {error.msg}"
        near = quote(text[before : before + 20])
        problem = f"can't be read at column {before + 1}, near {near}{reason}"
    remedy = "look for a missing operator, value, bracket or quote"
    return ExpressionError("syntax", problem, remedy)


Array = NDArray[Any]


class Kind(Enum):
    """What a node is computed to; the value is how a message calls it."""

    NUMBER = "a number"
    TEXT = "text"
    BOOLEAN = "true or false"


@dataclass(frozen=True, eq=False)
class Node:
    """A function of the results of its parts; without parts, of the codes of what it reads."""

    kind: Kind
    function: Callable[..., Any]
    parts: tuple[Node, ...] = ()
    reads: Mapping[str, Characteristic] = field(default_factory=dict)
    variable: Characteristic | None = None  # whose value it is, if it is nothing else


def literal(kind: Kind, value: Any) -> Node:
    """A value that the text states."""
    return Node(kind, partial(_same, value))


def value_of(variable: Characteristic) -> Node:
    """The values of one characteristic."""
    kind = Kind.BOOLEAN if variable.boolean else Kind.NUMBER if variable.numeric else Kind.TEXT
    function = partial(_decoded, variable, kind)
    return Node(kind, function, reads={variable.name: variable}, variable=variable)


def absence_of(variable: Characteristic) -> Node:
    """Whether the value of one characteristic is missing."""
    return Node(Kind.BOOLEAN, partial(_absent, variable), reads={variable.name: variable})


def apply(kind: Kind, function: Callable[..., Any], parts: Sequence[Node]) -> Node:
    """A function of whole columns, applied to the results of the parts."""
    reads = {name: read for part in parts for name, read in part.reads.items()}
    return Node(kind, function, tuple(parts), reads)


def _same(value: Any) -> Any:
    return value


def _decoded(variable: Characteristic, kind: Kind, codes: Array) -> Array:
    dtype = {Kind.NUMBER: np.float64, Kind.BOOLEAN: np.bool_}.get(kind, np.object_)
    values: Array = np.asarray(variable.column(codes), dtype=dtype)
    return truths(values) if kind is Kind.BOOLEAN else values


def _absent(variable: Characteristic, codes: Array) -> Array:
    return truths(np.asarray(codes) == variable.missing_code)


def evaluate(node: Node, columns: Mapping[str, Array]) -> Any:
    """The result for each input, from columns of codes; without any column, that of a constant.

    Each node is computed once; columns that have tables are never decoded.
    """
    with np.errstate(all="ignore"):  # an undefined number is a result here, not an accident
        return _compute(node, columns, {})


def _compute(node: Node, columns: Mapping[str, Array], known: dict[int, Any]) -> Any:
    if id(node) not in known:
        parts = [_compute(part, columns, known) for part in node.parts]
        own = parts if node.parts else [columns[name] for name in node.reads]
        known[id(node)] = node.function(*own)
    return known[id(node)]


def tabulate(node: Node, known: dict[int, Node] | None = None) -> Node:
    """The same node, with a table for each largest part that one small characteristic decides."""
    known = {} if known is None else known
    if id(node) not in known:
        result = node
        variables = [*node.reads.values()]
        if len(variables) == 1 and variables[0].size <= TABLE_LIMIT:
            codes = np.arange(variables[0].code_count)
            table = evaluate(node, {variables[0].name: codes})
            result = Node(node.kind, partial(np.take, table), reads=node.reads)
        elif node.parts:
            parts = tuple(tabulate(part, known) for part in node.parts)
            result = Node(node.kind, node.function, parts, node.reads)
        known[id(node)] = result
    return known[id(node)]


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
