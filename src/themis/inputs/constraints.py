"""Constraints: conditions that decide which inputs are valid.

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
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.errors import SchemaError, suggest
from themis.inputs import expressions as ex
from themis.inputs.characteristics import Characteristic
from themis.inputs.expressions import FALSE, TRUE, Array, ExpressionError, Kind, Node, Reading

MOST_NEAR = 1_000  # names or values among which the nearest is looked for


@dataclass(frozen=True)
class Constraint:
    """A condition that inputs satisfy or not; `variables` are those it reads, in schema order."""

    name: str
    text: str
    variables: tuple[str, ...]
    _root: Node = field(repr=False, compare=False)

    def holds(self, columns: Mapping[str, Array]) -> NDArray[np.bool_]:
        """Whether it holds, input by input, from one column of codes per variable that it reads.

        Only what is false is forbidden: where a missing value leaves it unsure, it holds.
        """
        return np.asarray(ex.evaluate(self._root, columns) != FALSE)


def parse_constraint(text: str, variables: Sequence[Characteristic], *, name: str) -> Constraint:
    """The constraint that the text describes; raises SchemaError with its first mistake.

    Nothing of the text is run. Each part that reads a single characteristic of at most
    TABLE_LIMIT values is computed here for all of them, and only looked up later.
    """
    known = {variable.name: variable for variable in variables}
    try:
        reading = ex.read_expression(text, known.__contains__)
        root = _Checker(reading, known).condition(reading.tree)
    except ExpressionError as error:
        code, problem, remedy = error.mistake
        raise SchemaError.one(code, f"constraint {name!r}", problem, remedy) from None
    ordered = tuple(variable for variable in known if variable in root.reads)
    return Constraint(name, text, ordered, ex.tabulate(root))


_ARITHMETIC: Mapping[type[ast.operator], Callable[..., Array]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: partial(ex.unless_zero, np.divide),
    ast.FloorDiv: partial(ex.unless_zero, np.floor_divide),
    ast.Mod: partial(ex.unless_zero, np.remainder),
}
_DIVISIONS = (ast.Div, ast.FloorDiv, ast.Mod)
_ORDER: Mapping[type[ast.cmpop], Callable[..., Array]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
}
_TRUTHS = {"true": TRUE, "True": TRUE, "false": FALSE, "False": FALSE}
MISSING = "missing"  # after "is": the word for no value

_ALLOWED = "use comparisons, and, or, not, in [...], + - * / // % and parentheses"
_UNSUPPORTED: Mapping[type[ast.AST], tuple[str, str]] = {
    ast.Attribute: ("a dot", "put a name with a dot in it in backquotes"),
    ast.BitXor: ("the operator ^", "write a != b for conditions a and b"),
    ast.Call: ("a function call", _ALLOWED),
    ast.Constant: ("None", "compare with one of the values of the characteristic"),
    ast.IfExp: ("if … else", "write it with and, or, not"),
    ast.List: ("a list outside in", "write lists right after in or not in"),
    ast.Pow: ("the operator **", "multiply instead"),
    ast.Subscript: ("an index", "put a name with brackets in it in backquotes"),
    ast.Tuple: ("a comma outside in", "join conditions with and; write 150000, not 150,000"),
}


class _Checker:
    """Turns the tree of an expression into nodes; ExpressionError for what has no meaning."""

    def __init__(self, reading: Reading, known: Mapping[str, Characteristic]) -> None:
        self._reading = reading
        self._known = known
        self._nodes: dict[str, Node] = {}  # one for each characteristic: it is decoded once

    def condition(self, tree: ast.expr) -> Node:
        """The node of an expression that has to be true or false."""
        node = self._expression(tree)
        source = self._reading.source(tree)
        if node.kind in {Kind.NUMBER, Kind.TEXT}:
            remedy = "compare it with something"
            if not node.reads:
                remedy = "repeat the comparison on each side of and, or; or use in [...]"
            problem = f"a condition is needed, {source} is {node.kind.value}"
            raise ExpressionError("not-a-condition", problem, remedy)
        if node.kind is Kind.BOOLEAN and not node.reads:
            problem = f"{source} reads no characteristic, so it is the same for every input"
            raise ExpressionError("constant-condition", problem, "remove it or read one")
        return node

    def _expression(self, tree: ast.expr) -> Node:
        match tree:
            case ast.Name():
                return self._named(tree)
            case ast.Constant(value=int() | float() | str() as value):
                return self._literal(value, tree)
            case ast.BoolOp(op=op, values=values):
                join = ex.all_hold if isinstance(op, ast.And) else ex.any_holds
                return ex.apply(Kind.BOOLEAN, join, [self.condition(value) for value in values])
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                return ex.apply(Kind.BOOLEAN, ex.negated, [self.condition(operand)])
            case ast.UnaryOp(op=ast.USub() | ast.UAdd() as sign, operand=operand):
                function = np.negative if isinstance(sign, ast.USub) else np.positive
                return ex.apply(Kind.NUMBER, function, [self._number(operand)])
            case ast.BinOp():
                return self._arithmetic(tree)
            case ast.Compare():
                return self._comparison(tree)
        raise self._unsupported(tree, self._reading.source(tree))

    def _literal(self, value: float | str, tree: ast.expr) -> Node:
        if isinstance(value, str):
            return ex.literal(Kind.TEXT, value)
        if not abs(value) <= sys.float_info.max:
            problem = f"the number {self._reading.source(tree)} is too large"
            raise ExpressionError("invalid-number", problem, "stay below 1e308")
        return ex.literal(Kind.NUMBER, float(value))

    def _named(self, tree: ast.Name) -> Node:
        name = self._reading.name(tree)
        if name in _TRUTHS:
            return ex.literal(Kind.BOOLEAN, _TRUTHS[name])
        name = name.strip("`")
        if name not in self._known:
            problem = f"there is no characteristic {ex.quote(name)}"
            raise ExpressionError("unknown-name", problem, self._explain_unknown(name))
        if name not in self._nodes:
            node = ex.value_of(self._known[name])
            self._nodes[name] = _known(node) if node.kind is Kind.BOOLEAN else node
        return self._nodes[name]

    def _explain_unknown(self, name: str) -> str:
        for variable in self._known.values():
            if not variable.numeric and _has(variable, name):
                return f'put text in quotes: "{name}"'
        for known in self._known:
            if not known.isidentifier() and known in self._reading.text and name in known:
                return f"put a name that is not an identifier in backquotes: `{known}`"
        return suggest(name, list(self._known)[:MOST_NEAR])

    def _number(self, tree: ast.expr) -> Node:
        node = self._expression(tree)
        if node.kind is Kind.NUMBER:
            return node
        problem = f"arithmetic needs numbers, {self._reading.source(tree)} is {node.kind.value}"
        raise ExpressionError("not-a-number", problem, "use it in a comparison instead")

    def _arithmetic(self, tree: ast.BinOp) -> Node:
        parts = [self._number(tree.left), self._number(tree.right)]
        function = _ARITHMETIC.get(type(tree.op))
        source = self._reading.source(tree)
        if function is None:
            raise self._unsupported(tree.op, source)
        divisor = parts[1]
        if isinstance(tree.op, _DIVISIONS) and not divisor.reads and _constant(divisor) == 0:
            raise ExpressionError(
                "division-by-zero", f"{source} divides by zero", "divide by another number"
            )
        return ex.apply(Kind.NUMBER, function, parts)

    def _comparison(self, tree: ast.Compare) -> Node:
        if any(isinstance(op, ast.In | ast.NotIn) for op in tree.ops):
            return self._membership(tree)
        if isinstance(tree.ops[-1], ast.Is | ast.IsNot) and self._is_missing(tree.comparators[-1]):
            return self._absence(tree)
        operands = [self._expression(operand) for operand in (tree.left, *tree.comparators)]
        pairs = zip(tree.ops, operands, operands[1:], strict=False)
        source = self._reading.source(tree)
        links = [self._link(op, left, right, source) for op, left, right in pairs]
        return links[0] if len(links) == 1 else ex.apply(Kind.BOOLEAN, ex.all_hold, links)

    def _is_missing(self, tree: ast.expr) -> bool:
        return isinstance(tree, ast.Name) and self._reading.name(tree) == MISSING

    def _absence(self, tree: ast.Compare) -> Node:
        """`income is missing`, or `is not`."""
        node = self._expression(tree.left)
        source = self._reading.source(tree)
        if len(tree.ops) > 1 or not isinstance(tree.left, ast.Name) or not node.reads:
            problem = f"only the value of a characteristic can be missing, received {source}"
            raise ExpressionError("not-a-characteristic", problem, "write: income is missing")
        (variable,) = node.reads.values()
        if variable.missing is None:
            problem = f"{variable.name!r} is never missing"
            remedy = "remove the condition, or give the share of inputs without it: missing = 0.07"
            raise ExpressionError("never-missing", problem, remedy)
        absent, is_it = ex.absence_of(variable), isinstance(tree.ops[0], ast.Is)
        return absent if is_it else ex.apply(absent.kind, ex.negated, [absent])

    def _link(self, op: ast.cmpop, left: Node, right: Node, source: str) -> Node:
        """One comparison of a chain; of numbers and texts unsure where one of them is missing."""
        compare = self._comparator(op, left, right, source)
        truth = ex.apply(Kind.BOOLEAN, compare, [left, right])
        return truth if left.kind is Kind.BOOLEAN else _known(truth)

    def _comparator(
        self, op: ast.cmpop, left: Node, right: Node, source: str
    ) -> Callable[..., Array]:
        """The function that gives the truth."""
        if isinstance(op, ast.Is | ast.IsNot):
            meant = "==" if isinstance(op, ast.Is) else "!="
            problem, remedy = f"{source} uses 'is'", f"write {meant!r} instead"
            raise ExpressionError("wrong-operator", problem, remedy)
        if type(op) in _ORDER:
            for node in (left, right):
                if node.kind is not Kind.NUMBER:
                    problem = f"only numbers have an order, {source} orders {node.kind.value}"
                    raise ExpressionError("not-ordered", problem, "use ==, != or in")
            return partial(ex.compared, comparison=_ORDER[type(op)])
        self._check_comparable(left, right, source)
        equal = isinstance(op, ast.Eq)
        if left.kind is right.kind is Kind.BOOLEAN:
            return ex.same_truth if equal else ex.other_truth
        unequal = ex.differ if left.kind is right.kind is Kind.NUMBER else operator.ne
        return partial(ex.compared, comparison=operator.eq if equal else unequal)

    def _check_comparable(self, left: Node, right: Node, source: str) -> None:
        """Raise ExpressionError where == can't be true."""
        for node, other in ((left, right), (right, left)):
            variable = _variable(node)
            if variable is not None and not other.reads:
                self._check_value(variable, node.kind, _constant(other), source)
                return
        _check_kinds(left.kind, right.kind, source)

    def _membership(self, tree: ast.Compare) -> Node:
        if len(tree.ops) > 1:
            problem = f"in can't be part of a chain, received {self._reading.source(tree)}"
            raise ExpressionError("chained-in", problem, "write two comparisons joined by and")
        left = self._expression(tree.left)
        listed = tree.comparators[0]
        if not isinstance(listed, ast.List | ast.Tuple | ast.Set) or not listed.elts:
            problem = f"in needs a list of values, received {self._reading.source(listed)}"
            raise ExpressionError("not-a-list", problem, 'write it like ["green", "purple"]')
        members = [self._member(left, element) for element in listed.elts]
        values = frozenset(_constant(member) for member in members)
        if left.kind is Kind.BOOLEAN:
            values = frozenset(TRUE if value else FALSE for value in values)
        function = ex.is_in if isinstance(tree.ops[0], ast.In) else ex.is_not_in
        return _known(ex.apply(Kind.BOOLEAN, partial(function, members=values), [left]))

    def _member(self, left: Node, tree: ast.expr) -> Node:
        node = self._expression(tree)
        source = self._reading.source(tree)
        if node.reads:
            problem = f"a list holds literal values, {source} names a characteristic"
            raise ExpressionError("not-a-literal", problem, "compare with == and join by or")
        self._check_comparable(left, node, source)
        return node

    def _check_value(self, variable: Characteristic, kind: Kind, value: Any, source: str) -> None:
        if _has(variable, value):
            return
        _check_kinds(kind, _kind_of(value), source)
        same = _some_values(variable, kind)
        if isinstance(value, str):
            remedy = suggest(value, same)
        else:
            remedy = f"a value near it is {_show(min(same, key=lambda each: abs(each - value)))}"
        problem = f"{variable.name!r} has no value {_show(value)}"
        raise ExpressionError("not-a-value", problem, remedy)

    def _unsupported(self, tree: ast.AST, source: str) -> ExpressionError:
        what, remedy = _UNSUPPORTED.get(type(tree), ("such an expression", _ALLOWED))
        problem = f"{what} is not part of a constraint, received {source}"
        return ExpressionError("unsupported-syntax", problem, remedy)


def _has(variable: Characteristic, value: Any) -> bool:
    """Whether this is one of the values of a characteristic, and of the same kind."""
    code = variable.encode(value)
    return code is not None and _kind_of(variable.value(code)) is _kind_of(value)


def _some_values(variable: Characteristic, kind: Kind) -> list[Any]:
    """The first values of a kind, and the last one."""
    codes = np.minimum(np.arange(MOST_NEAR + 1), variable.size - 1)
    codes[-1] = variable.size - 1
    values = [each for each in variable.decode(codes).tolist() if _kind_of(each) is kind]
    return list(dict.fromkeys(map(float, values) if kind is Kind.NUMBER else values))


def _check_kinds(left: Kind, right: Kind, source: str) -> None:
    """Raise ExpressionError for kinds that are never equal."""
    if left is right:
        return
    problem = f"{left.value} can't equal {right.value}, received {source}"
    remedy = "write numbers without quotes and text in quotes"
    if Kind.BOOLEAN in {left, right}:
        remedy = "compare it with true or false, written without quotes"
    raise ExpressionError("different-kinds", problem, remedy)


def _known(truth: Node) -> Node:
    """The same truth, unsure where one of the values that it reads is missing."""
    absent = [ex.absence_of(read) for read in truth.reads.values() if read.missing is not None]
    return ex.apply(Kind.BOOLEAN, ex.unless_missing, [truth, *absent]) if absent else truth


def _variable(node: Node) -> Characteristic | None:
    """The characteristic that a node is the value of, if it is nothing else."""
    return (node.parts[0] if node.function is ex.unless_missing else node).variable


def _constant(node: Node) -> Any:
    value = ex.evaluate(node, {})
    if node.kind is Kind.BOOLEAN:
        return bool(value == TRUE)
    return value if isinstance(value, str) else np.asarray(value).item()


def _kind_of(value: object) -> Kind:
    if isinstance(value, bool):
        return Kind.BOOLEAN
    return Kind.NUMBER if isinstance(value, int | float) else Kind.TEXT


def _show(value: Any) -> str:
    if isinstance(value, str):
        return ex.quote(value)
    return str(value).lower().removesuffix(".0")
