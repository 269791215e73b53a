"""Which inputs does a constraint allow?

A constraint is a condition over the characteristics of an input, for example
`not (age < 30 and income > 150000)`, `race in ["green", "purple"]` or `18 <= age < 65`.
A name that is not an identifier goes in backquotes: `` `marital-status` != "married" ``.

Numbers are computed as float64: whole numbers are exact up to 2^53. Dividing by zero (or
taking the remainder) leaves a number undefined, and a comparison with an undefined number is
false, whatever its operator: of `a / 0 == 1`, `a / 0 != 1` and `a / 0 not in [1]` none holds,
while `not (a / 0 == 1)` does.
"""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial, reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from themis._expressions import Findings, Reading, quote, read_expression
from themis.errors import SchemaError

MAX_TABLE_SIZE = 65_536  # a characteristic with more values is decoded instead of looked up
MAX_LISTED_VALUES = 100_000  # with more, a literal is only compared to the first and last value

Array = NDArray[Any]


class Variable(Protocol):
    """What a constraint needs of a characteristic; the codes of its values are 0 … size - 1."""

    @property
    def name(self) -> str: ...
    @property
    def size(self) -> int: ...
    @property
    def numeric(self) -> bool: ...
    @property
    def boolean(self) -> bool: ...
    def decode(self, codes: Array) -> Array: ...


@dataclass(frozen=True)
class Constraint:
    """A condition that inputs satisfy or not; `variables` are those it reads, in schema order."""

    name: str
    text: str
    variables: tuple[str, ...]
    _root: _Node = field(repr=False, compare=False)

    def holds(self, columns: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Whether it holds, input by input, from one column of codes per variable that it reads."""
        return np.asarray(_evaluate(self._root, columns), dtype=np.bool_)


def parse_constraint(text: str, variables: Sequence[Variable], *, name: str) -> Constraint:
    """The constraint that the text describes; raises SchemaError with all of its mistakes.

    Nothing of the text is run. Each part that reads a single characteristic of at most
    MAX_TABLE_SIZE values is computed here for all of them, and only looked up later.
    """
    found = Findings(f"constraint {name!r}")
    known = {variable.name: variable for variable in variables}
    reading = read_expression(text, known.__contains__, found)
    root = _Checker(reading, known, found).condition(reading.tree) if reading else _UNKNOWN
    if found.mistakes:
        raise SchemaError(found.mistakes)
    reads = tuple(variable for variable in known if variable in root.reads)
    return Constraint(name, text, reads, _tabulate(root))


class _Kind(Enum):
    NUMBER = "a number"
    TEXT = "text"
    BOOLEAN = "a condition"
    UNKNOWN = "a mistake"  # reported already: it must not lead to further ones


@dataclass(frozen=True, eq=False)
class _Literal:
    kind: _Kind
    value: Any
    reads: Mapping[str, Variable] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class _Read:
    """The values of one characteristic."""

    kind: _Kind
    variable: Variable

    @property
    def reads(self) -> Mapping[str, Variable]:
        return {self.variable.name: self.variable}


@dataclass(frozen=True, eq=False)
class _Apply:
    """A function of whole columns, applied to the results of the parts."""

    kind: _Kind
    function: Callable[..., Array]
    parts: tuple[_Node, ...]

    @property
    def reads(self) -> Mapping[str, Variable]:
        return {name: read for part in self.parts for name, read in part.reads.items()}


@dataclass(frozen=True, eq=False)
class _Table:
    """Anything that a single characteristic decides: the result for each of its codes."""

    kind: _Kind
    reads: Mapping[str, Variable]
    results: Array


_Node = _Literal | _Read | _Apply | _Table
_UNKNOWN = _Literal(_Kind.UNKNOWN, None)


def _evaluate(node: _Node, columns: Mapping[str, Array]) -> Any:
    with np.errstate(all="ignore"):  # an undefined number is a result here, not an accident
        return _compute(node, columns, {})


def _compute(node: _Node, columns: Mapping[str, Array], decoded: dict[str, Array]) -> Any:
    match node:
        case _Literal(value=value):
            return value
        case _Table(reads=reads, results=results):
            return results[columns[next(iter(reads))]]
        case _Read(kind=kind, variable=variable):
            if variable.name not in decoded:
                dtype = {_Kind.NUMBER: np.float64, _Kind.BOOLEAN: np.bool_}.get(kind, np.object_)
                values = variable.decode(columns[variable.name])
                decoded[variable.name] = np.asarray(values, dtype=dtype)
            return decoded[variable.name]
        case _Apply(function=function, parts=parts):
            return function(*(_compute(part, columns, decoded) for part in parts))


def _tabulate(node: _Node) -> _Node:
    """The same node, with a table for each largest part that one small characteristic decides."""
    reads = node.reads
    if len(reads) == 1:
        ((name, variable),) = reads.items()
        if variable.size <= MAX_TABLE_SIZE:
            return _Table(node.kind, reads, _evaluate(node, {name: np.arange(variable.size)}))
    if isinstance(node, _Apply):
        return _Apply(node.kind, node.function, tuple(_tabulate(part) for part in node.parts))
    return node


def _unless_zero(function: Callable[..., Array], left: Any, right: Any) -> Array:
    return np.where(np.equal(right, 0), np.nan, function(left, right))


def _differ(left: Any, right: Any) -> Array:
    return np.asarray((left < right) | (left > right))  # unlike !=, false if one is undefined


def _is_in(column: Array, *, members: frozenset[Any]) -> Array:
    if column.dtype == np.object_:
        return np.fromiter(map(members.__contains__, column), np.bool_, len(column))
    return np.isin(column, list(members))


def _is_not_in(column: Array, *, members: frozenset[Any]) -> Array:
    outside = ~_is_in(column, members=members)
    return outside & ~np.isnan(column) if column.dtype == np.float64 else outside


def _all(*conditions: Array) -> Array:
    return reduce(np.logical_and, conditions)


def _any(*conditions: Array) -> Array:
    return reduce(np.logical_or, conditions)


_ARITHMETIC: Mapping[type[ast.operator], Callable[..., Array]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: partial(_unless_zero, np.divide),
    ast.FloorDiv: partial(_unless_zero, np.floor_divide),
    ast.Mod: partial(_unless_zero, np.remainder),
}
_ORDER: Mapping[type[ast.cmpop], Callable[..., Array]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_UNSUPPORTED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Call: ("a function call", "write what it computes with + - * / // %"),
    ast.Attribute: ("a dot", "put a name with a dot in it in backquotes"),
    ast.Subscript: ("an index", "put a name with brackets in it in backquotes"),
    ast.IfExp: ("if … else", "write it with and, or, not"),
    ast.Tuple: ("a comma", "lists follow in; write 150000, not 150,000; join conditions by and"),
    ast.List: ("a list", "lists are only allowed right after in or not in"),
    ast.Set: ("a set", "sets are only allowed right after in or not in"),
    ast.Constant: ("None", "compare with one of the values of the characteristic"),
    ast.Pow: ("the power **", "multiply instead"),
}
_ALLOWED = "use comparisons, and, or, not, in [...], + - * / // % and parentheses"


class _Checker:
    """Turns the tree of an expression into nodes and reports whatever has no sensible meaning."""

    def __init__(self, reading: Reading, known: Mapping[str, Variable], found: Findings) -> None:
        self._reading = reading
        self._known = known
        self._found = found
        self._values: dict[str, _Values] = {}

    def condition(self, tree: ast.expr) -> _Node:
        """The node of an expression that has to be true or false."""
        node = self._expression(tree)
        source = self._reading.source(tree)
        if node.kind in {_Kind.NUMBER, _Kind.TEXT}:
            remedy = "compare it with something"
            if not node.reads:
                remedy = "repeat the comparison on each side of and, or; or use in [...]"
            return self._mistake(
                "not-a-condition", f"a condition is needed, {source} is {node.kind.value}", remedy
            )
        if node.kind is _Kind.BOOLEAN and not node.reads:
            problem = f"{source} reads no characteristic, so it is the same for every input"
            return self._mistake(
                "constant-condition", problem, "remove it or name a characteristic"
            )
        return node

    def _expression(self, tree: ast.expr) -> _Node:
        match tree:
            case ast.Name():
                return self._atom(tree)
            case ast.BoolOp(op=op, values=values):
                function = _all if isinstance(op, ast.And) else _any
                return _apply(_Kind.BOOLEAN, function, [self.condition(value) for value in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return _apply(_Kind.BOOLEAN, np.logical_not, [self.condition(operand)])
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                function = np.negative if isinstance(sign, ast.USub) else np.positive
                return _apply(_Kind.NUMBER, function, [self._number(operand)])
            case ast.BinOp():
                return self._arithmetic(tree)
            case ast.Compare():
                return self._comparison(tree)
        return self._unsupported(tree, self._reading.source(tree))

    def _atom(self, tree: ast.Name) -> _Node:
        token = self._reading.token(tree)
        if token.kind == "literal":
            return (
                _Literal(_kind_of(token.value), token.value)
                if token.value is not None
                else _UNKNOWN
            )
        name = str(token.value)
        if name in self._known:
            variable = self._known[name]
            number = _Kind.NUMBER if variable.numeric else _Kind.TEXT
            return _Read(_Kind.BOOLEAN if variable.boolean else number, variable)
        remedy = self._explain_unknown(name)
        return self._mistake("unknown-name", f"there is no characteristic {quote(name)}", remedy)

    def _explain_unknown(self, name: str) -> str:
        for variable in self._known.values():
            if not variable.numeric and (_Kind.TEXT, name) in self._list(variable).listed:
                return f'put text in quotes: "{name}"'
        for known in self._known:
            if not known.isidentifier() and known in self._reading.text and name in known:
                return f"put a name that is not an identifier in backquotes: `{known}`"
        return self._found.suggest(name, list(self._known))

    def _number(self, tree: ast.expr) -> _Node:
        node = self._expression(tree)
        if node.kind in {_Kind.NUMBER, _Kind.UNKNOWN}:
            return node
        problem = f"arithmetic needs numbers, {self._reading.source(tree)} is {node.kind.value}"
        return self._mistake("not-a-number", problem, "use it in a comparison instead")

    def _arithmetic(self, tree: ast.BinOp) -> _Node:
        parts = [self._number(tree.left), self._number(tree.right)]
        function = _ARITHMETIC.get(type(tree.op))
        source = self._reading.source(tree)
        if function is None:
            return self._unsupported(tree.op, source)
        divisor = parts[1]
        if isinstance(function, partial) and _is_constant(divisor) and _constant(divisor) == 0:
            return self._mistake(
                "division-by-zero", f"{source} divides by zero", "divide by another number"
            )
        return _apply(_Kind.NUMBER, function, parts)

    def _comparison(self, tree: ast.Compare) -> _Node:
        pairs: list[_Node] = []
        left_tree = tree.left
        for op, right_tree in zip(tree.ops, tree.comparators, strict=True):
            left = self._expression(left_tree)
            if isinstance(op, ast.In | ast.NotIn):
                pairs.append(self._membership(left, op, right_tree))
            else:
                pairs.append(self._pair(left, op, self._expression(right_tree), tree))
            left_tree = right_tree
        return _apply(_Kind.BOOLEAN, _all, pairs)

    def _pair(self, left: _Node, op: ast.cmpop, right: _Node, tree: ast.Compare) -> _Node:
        source = self._reading.source(tree)
        if isinstance(op, ast.Is | ast.IsNot):
            meant = "==" if isinstance(op, ast.Is) else "!="
            self._mistake("wrong-operator", f"'is' in {source} has no meaning", f"write {meant!r}")
        if _Kind.UNKNOWN in {left.kind, right.kind}:
            return _UNKNOWN
        if type(op) in _ORDER:
            return self._ordered(left, op, right, source)
        if not self._comparable(left, right, source):
            return _UNKNOWN
        unequal = _differ if left.kind is right.kind is _Kind.NUMBER else operator.ne
        function = operator.eq if isinstance(op, ast.Eq | ast.Is) else unequal
        return _apply(_Kind.BOOLEAN, function, [left, right])

    def _ordered(self, left: _Node, op: ast.cmpop, right: _Node, source: str) -> _Node:
        for node in (left, right):
            if node.kind is not _Kind.NUMBER:
                problem = f"only numbers have an order, {source} orders {node.kind.value}"
                return self._mistake("not-ordered", problem, "use ==, != or in")
        return _apply(_Kind.BOOLEAN, _ORDER[type(op)], [left, right])

    def _comparable(self, left: _Node, right: _Node, source: str) -> bool:
        """Whether == can be true; the reason is reported otherwise."""
        for node, other in ((left, right), (right, left)):
            if isinstance(node, _Read) and _is_constant(other):
                return self._check_value(node, _constant(other), source)
        return left.kind is right.kind or self._report_kinds(left.kind, right.kind, source)

    def _membership(self, left: _Node, op: ast.cmpop, tree: ast.expr) -> _Node:
        source = self._reading.source(tree)
        if not isinstance(tree, ast.List | ast.Tuple | ast.Set) or not tree.elts:
            problem = f"in needs a list of values, received {source}"
            return self._mistake("not-a-list", problem, 'write it like ["green", "purple"]')
        members = [self._member(left, element) for element in tree.elts]
        if _Kind.UNKNOWN in {left.kind, *(member.kind for member in members)}:
            return _UNKNOWN
        values = frozenset(_constant(member) for member in members)
        function = _is_in if isinstance(op, ast.In) else _is_not_in
        return _apply(_Kind.BOOLEAN, partial(function, members=values), [left])

    def _member(self, left: _Node, tree: ast.expr) -> _Node:
        node = self._expression(tree)
        source = self._reading.source(tree)
        if node.reads:
            problem = f"a list holds literal values, {source} names a characteristic"
            return self._mistake("not-a-literal", problem, "compare with == and join by or")
        if _Kind.UNKNOWN in {left.kind, node.kind} or self._comparable(left, node, source):
            return node
        return _UNKNOWN

    def _check_value(self, read: _Read, value: Any, source: str) -> bool:
        values = self._list(read.variable)
        if values.include(value):
            return True
        if _kind_of(value) is not read.kind:
            return self._report_kinds(read.kind, _kind_of(value), source)
        problem = f"{read.variable.name!r} has no value {_show(value)}, received {source}"
        same = values.of_kind(read.kind)
        if isinstance(value, str):
            remedy = self._found.suggest(value, same)
        else:
            remedy = f"its nearest value is {_show(min(same, key=lambda each: abs(each - value)))}"
        self._mistake("not-a-value", problem, remedy)
        return False

    def _list(self, variable: Variable) -> _Values:
        if variable.name not in self._values:
            self._values[variable.name] = _Values(variable)
        return self._values[variable.name]

    def _report_kinds(self, left: _Kind, right: _Kind, source: str) -> bool:
        problem = f"{source} compares {left.value} with {right.value}"
        remedy = "write numbers without quotes and text in quotes"
        if _Kind.BOOLEAN in {left, right}:
            remedy = "compare it with true or false, written without quotes"
        self._mistake("different-kinds", problem, remedy)
        return False

    def _unsupported(self, tree: ast.AST, source: str) -> _Node:
        what, remedy = _UNSUPPORTED.get(type(tree), (f"{type(tree).__name__}", _ALLOWED))
        problem = f"{what} is not part of a constraint, received {source}"
        return self._mistake("unsupported-syntax", problem, remedy)

    def _mistake(self, code: str, problem: str, remedy: str) -> _Node:
        self._found.add(code, problem, remedy)
        return _UNKNOWN


class _Values:
    """The values of a characteristic; of a very large one only the first and the last."""

    def __init__(self, variable: Variable) -> None:
        self._complete = variable.size <= MAX_LISTED_VALUES
        codes = np.arange(variable.size) if self._complete else np.array([0, variable.size - 1])
        self.listed = {(_kind_of(value), value) for value in variable.decode(codes).tolist()}

    def of_kind(self, kind: _Kind) -> list[Any]:
        return [value for each, value in self.listed if each is kind]

    def include(self, value: Any) -> bool:
        """Whether this is one of the values, or may be if they aren't all listed."""
        kind = _kind_of(value)
        if self._complete or not (same := self.of_kind(kind)):
            return (kind, value) in self.listed
        return kind is not _Kind.NUMBER or min(same) <= value <= max(same)


def _apply(kind: _Kind, function: Callable[..., Any], parts: Sequence[_Node]) -> _Node:
    wrong = any(part.kind is _Kind.UNKNOWN for part in parts)
    return _UNKNOWN if wrong else _Apply(kind, function, tuple(parts))


def _is_constant(node: _Node) -> bool:
    return node.kind is not _Kind.UNKNOWN and not node.reads


def _constant(node: _Node) -> Any:
    return np.asarray(_evaluate(node, {}), dtype=np.object_).item()


def _kind_of(value: object) -> _Kind:
    if isinstance(value, bool):
        return _Kind.BOOLEAN
    return _Kind.NUMBER if isinstance(value, int | float) else _Kind.TEXT


def _show(value: Any) -> str:
    if isinstance(value, str):
        return quote(value)
    return str(value).lower().removesuffix(".0")
