"""Expressions on columns: the nodes of a constraint, and how they are computed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import reduce
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

MAX_TABLE_SIZE = 65_536  # a characteristic with more values is decoded instead of looked up

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
    reads: Mapping[str, Variable] = field(default_factory=dict)


@dataclass(frozen=True, eq=False)
class Read:
    """The values of one characteristic."""

    kind: Kind
    variable: Variable

    @property
    def reads(self) -> Mapping[str, Variable]:
        return {self.variable.name: self.variable}


@dataclass(frozen=True, eq=False)
class Apply:
    """A function of whole columns, applied to the results of the parts."""

    kind: Kind
    function: Callable[..., Array]
    parts: tuple[Node, ...]

    @property
    def reads(self) -> Mapping[str, Variable]:
        return {name: read for part in self.parts for name, read in part.reads.items()}


@dataclass(frozen=True, eq=False)
class Table:
    """Anything that a single characteristic decides: the result for each of its codes."""

    kind: Kind
    reads: Mapping[str, Variable]
    results: Array


Node = Literal | Read | Apply | Table
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
                values = variable.decode(columns[variable.name])
                decoded[variable.name] = np.asarray(values, dtype=dtype)
            return decoded[variable.name]
        case Apply(function=function, parts=parts):
            return function(*(_compute(part, columns, decoded) for part in parts))


def tabulate(node: Node) -> Node:
    """The same node, with a table for each largest part that one small characteristic decides."""
    reads = node.reads
    if len(reads) == 1:
        ((name, variable),) = reads.items()
        if variable.size <= MAX_TABLE_SIZE:
            return Table(node.kind, reads, evaluate(node, {name: np.arange(variable.size)}))
    if isinstance(node, Apply):
        return Apply(node.kind, node.function, tuple(tabulate(part) for part in node.parts))
    return node


def unless_zero(function: Callable[..., Array], left: Any, right: Any) -> Array:
    """The quotient or remainder, undefined where the divisor is zero."""
    return np.where(np.equal(right, 0), np.nan, function(left, right))


def differ(left: Any, right: Any) -> Array:
    """Whether two numbers differ; unlike !=, false where one is undefined."""
    return np.asarray((left < right) | (left > right))


def is_in(column: Array, *, members: frozenset[Any]) -> Array:
    if column.dtype == np.object_:
        return np.fromiter(map(members.__contains__, column), np.bool_, len(column))
    return np.isin(column, list(members))


def is_not_in(column: Array, *, members: frozenset[Any]) -> Array:
    """Whether none of the members is equal; false where a number is undefined."""
    outside = ~is_in(column, members=members)
    return outside & ~np.isnan(column) if column.dtype == np.float64 else outside


def all_hold(*conditions: Array) -> Array:
    return reduce(np.logical_and, conditions)


def compare_chain(*columns: Array, comparisons: Sequence[Callable[..., Array]]) -> Array:
    """Whether each comparison holds between one column and the next, as in `a < b <= c`."""
    pairs = zip(comparisons, columns, columns[1:], strict=False)
    return all_hold(*(compare(left, right) for compare, left, right in pairs))


def any_holds(*conditions: Array) -> Array:
    return reduce(np.logical_or, conditions)
