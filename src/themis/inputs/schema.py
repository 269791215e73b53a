"""The schema: which inputs exist (Def. 3.2), as ordered characteristics and constraints."""

from __future__ import annotations

import math
import warnings
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.errors import (
    ColumnsWarning,
    Mistake,
    RequestError,
    SchemaError,
    count_of,
    listed,
    suggest,
)
from themis.inputs.characteristics import Characteristic, Integers, Reals, Value, Values
from themis.inputs.constraints import Constraint, parse_constraint
from themis.inputs.documents import Names
from themis.inputs.following import completed, derived, plain_table, ties_of
from themis.inputs.guesses import guess_table
from themis.inputs.keys import InputKeys
from themis.inputs.tables import repeated_names, rows_of

Input: TypeAlias = Characteristic | Sequence[Value] | Names
Inputs: TypeAlias = Mapping[str, Input]


class Schema:
    """The inputs of a subject: ordered characteristics, and constraints that valid inputs meet.

    >>> schema = Schema(race=["green", "purple"], age=Integers(18, 120, bins=[40, 65]))
    >>> schema.size
    206

    Names that are not identifiers go into a mapping: `Schema({"marital-status": [...]})`.
    """

    def __init__(
        self,
        inputs: Inputs | None = None,
        /,
        **named: Input,
    ) -> None:
        mistakes: list[Mistake] = []
        characteristics = []
        given = [
            each for item in [*(inputs or {}).items(), *named.items()] for each in _each(*item)
        ]
        for name, spec in given:
            try:
                characteristics.append(_characteristic(name, spec))
            except SchemaError as error:
                mistakes += [replace(m, where=f"inputs.{name}") for m in error.mistakes]
        mistakes += _name_mistakes([name for name, _ in given])
        if given and not mistakes and not any(each.is_given for each in characteristics):
            problem, remedy = "nothing is given to the subject", 'remove role = "group" of one'
            mistakes.append(Mistake("no-inputs", "inputs", problem, remedy))
        if mistakes:
            raise SchemaError(mistakes)
        characteristics = completed(characteristics)
        self.ties = ties_of(characteristics)
        self.characteristics: tuple[Characteristic, ...] = tuple(characteristics)
        self.constraints: tuple[Constraint, ...] = ()

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        *,
        protected: Iterable[str] = (),
        target: str | None = None,
        model: Any = None,
    ) -> Schema:
        """A schema guessed from a table: values or ranges, their weights, shares without a value.

        `target` is a column that is no input. Others that are none (names, free texts, dates) are
        left out with a ColumnsWarning. Of a `model` that knows its columns only those are taken,
        and the protected ones: groups of people, where it does not read them. Give the same table
        to `Audit(…, profile=frame)`, so that inputs are drawn from its rows.
        """
        guesses = guess_table(rows_of(frame), protected, target, model)
        lost = [f"{each.name}: {each.left_out}" for each in guesses if each.left_out]
        if lost:
            warnings.warn(ColumnsWarning(f"left out: {'; '.join(lost)}"), stacklevel=2)
        return cls({g.name: characteristic_from(g.spec) for g in guesses if not g.left_out})

    def extended(self, inputs: Inputs | None = None, /, **named: Input) -> Schema:
        """The same schema with further characteristics, or with other ones of the same names."""
        own = {each.name: each for each in self.characteristics}
        wider = Schema({**own, **(inputs or {}), **named})
        return wider.constrained(self._texts)

    def where(self, *expressions: str, **named: str) -> Schema:
        """The same schema with further constraints that every valid input meets.

        >>> Schema(age=Integers(18, 120), job=["none", "nurse"]).where("age < 70 or job == 'none'")
        Schema(age=Integers, job=Values; 1 constraint)
        """
        first = len(self.constraints) + 1
        texts = {f"{first + index}": text for index, text in enumerate(expressions)} | named
        return self.constrained(texts)

    def constrained(self, texts: Mapping[str, str]) -> Schema:
        """The same schema with further constraints under the given names."""
        mistakes: list[Mistake] = []
        constraints = list(self.constraints)
        for name, text in texts.items():
            try:
                constraints.append(parse_constraint(text, self.characteristics, name=name))
            except SchemaError as error:
                mistakes += error.mistakes
        if mistakes:
            raise SchemaError(mistakes)
        return self.with_constraints(constraints)

    def without(self, *names: str) -> Schema:
        """The same schema without the constraints of these names; RequestError for unknown ones."""
        known = [each.name for each in self.constraints]
        mistakes = [
            Mistake("unknown-name", "constraints", f"there is no constraint {name!r}",
                    suggest(name, known) if known else "there are none")
            for name in names
            if name not in known
        ]  # fmt: skip
        if mistakes:
            raise RequestError(mistakes)
        return self.with_constraints(each for each in self.constraints if each.name not in names)

    def with_constraints(self, constraints: Iterable[Constraint]) -> Schema:
        """The same characteristics with exactly these constraints."""
        result = copy(self)  # with all that is known already about the characteristics
        result.constraints = tuple(constraints)
        return result

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The characteristics' names in schema order."""
        return tuple(characteristic.name for characteristic in self.characteristics)

    @cached_property
    def column_by_name(self) -> Mapping[str, int]:
        """The column of each characteristic."""
        return {name: column for column, name in enumerate(self.names)}

    @property
    def protected(self) -> tuple[str, ...]:
        """The names of the characteristics marked as protected."""
        return tuple(each.name for each in self.characteristics if each.protected)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """The columns that sets are made of: all that are neither derived nor a context."""
        every = enumerate(self.characteristics)
        return tuple(column for column, each in every if outside_sets(each, "") is None)

    @cached_property
    def given(self) -> Schema:
        """What the subject is given: this schema without what is only known of people or drawn.

        Nothing is derived from that, or follows it, there; constraints are left out with it.
        """
        known_only = {each.name for each in self if not each.is_given}
        if not known_only:
            return self
        kept = [each for each in self if each.name not in known_only]
        return Schema({each.name: _untied(each, known_only) for each in kept})

    @property
    def open(self) -> tuple[str, ...]:
        """The names of the contexts that have the values of given rows, and no others."""
        return tuple(each.name for each in self if each.is_open)

    @cached_property
    def unread(self) -> frozenset[int]:
        """The columns whose change changes nothing that the subject is given."""
        groups = {column for column, each in enumerate(self) if each.role == "group"}
        ties = [tie for tie in self.ties if tie.follower not in groups]
        return frozenset(groups.difference(*(tie.leaders for tie in ties)))

    @property
    def size(self) -> int:
        """The number of inputs before constraints, exact however large."""
        return math.prod(characteristic.code_count for characteristic in self.characteristics)

    @cached_property
    def code_counts(self) -> tuple[int, ...]:
        """How many codes may occur in each column: 0, 1, … up to the number less one.

        One for each value, for "missing", and for values that only given rows have. Whatever
        numbers inputs goes by this, not by the values.
        """
        return tuple(characteristic.code_count for characteristic in self.characteristics)

    @cached_property
    def input_keys(self) -> InputKeys:
        """What tells inputs apart."""
        return InputKeys(self.code_counts)

    @cached_property
    def given_keys(self) -> InputKeys:
        """What tells inputs apart for the subject, which is not given all of them."""
        hidden = [column for column, each in enumerate(self) if not each.is_given]
        return InputKeys(self.code_counts, hidden) if hidden else self.input_keys

    @cached_property
    def dtype(self) -> type[np.int32] | type[np.int64]:
        """The integer type of this schema's codes."""
        return np.int32 if max(self.code_counts) < 2**31 else np.int64

    def columns_of(self, names: Iterable[str], *, where: str = "against") -> tuple[int, ...]:
        """The columns of a set of characteristics, in schema order."""
        wanted = [names] if isinstance(names, str) else list(names)
        mistakes = [
            _unknown_name(name, self.names, where)
            for name in wanted
            if name not in self.column_by_name
        ]
        if not wanted:
            problem = "the set of characteristics is empty"
            remedy = f"name at least one of: {', '.join(self.names)}"
            mistakes.append(Mistake("empty-set", where, problem, remedy))
        named = (each for each in self if each.name in wanted)
        mistakes += filter(None, (outside_sets(each, where) for each in named))
        if mistakes:
            raise RequestError(mistakes)
        return tuple(sorted({self.column_by_name[name] for name in wanted}))

    def valid(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which rows of a code matrix meet all constraints."""
        result = np.ones(len(codes), dtype=bool)
        for constraint in self.constraints:
            columns = {name: codes[:, self.column_by_name[name]] for name in constraint.variables}
            result &= constraint.holds(columns)
        return result

    @cached_property
    def kept_missing(self) -> Mapping[int, int]:
        """The columns in which no counterfactual gives or takes a value; the code of no value."""
        return {
            column: each.missing_code
            for column, each in enumerate(self.characteristics)
            if each.keeps_missing
        }

    def admits(self, base: NDArray[Any], variants: NDArray[Any]) -> NDArray[np.bool_]:
        """Which variants of base inputs, row by row, are counterfactuals of them.

        Those that are valid, and in which a value is missing exactly where it was before, unless
        "missing" is a counterfactual there.
        """
        result = self.valid(variants)
        for column, code in self.kept_missing.items():
            result &= (base[:, column] == code) == (variants[:, column] == code)
        return result

    def touching(self, columns: Iterable[int]) -> Schema:
        """The same schema with the constraints that read one of these columns, and no others.

        A valid input that is changed there alone is still valid if it meets these.
        """
        names = {self.names[column] for column in columns}
        own = [each for each in self.constraints if not names.isdisjoint(each.variables)]
        return self if len(own) == len(self.constraints) else self.with_constraints(own)

    def admits_table(
        self, base: NDArray[Any], changes: Mapping[int, NDArray[Any]]
    ) -> NDArray[np.bool_]:
        """Which variants of base inputs are counterfactuals of them, inputs × variants.

        `changes` has the codes of each column that variants change: inputs × variants, or one row
        for all inputs. A constraint is computed as often as what it reads varies: one that reads
        nothing but the set once for each variant, one that reads nothing of it once for each input.
        """
        width = next(iter(changes.values())).shape[1]
        result = np.ones((len(base), width), dtype=bool)
        for constraint in self.constraints:
            reads = [self.column_by_name[name] for name in constraint.variables]
            columns = np.broadcast_arrays(
                *(changes[c] if c in changes else base[:, c, None] for c in reads)
            )
            flat = [each.ravel() for each in columns]
            holds = constraint.holds(dict(zip(constraint.variables, flat, strict=True)))
            result &= holds.reshape(columns[0].shape)
        for column in self.kept_missing.keys() & changes.keys():
            code = self.kept_missing[column]
            result &= (base[:, column, None] == code) == (changes[column] == code)
        return result

    def decode_row(self, row: NDArray[Any]) -> dict[str, Value]:
        """One input as plain values by name."""
        return {
            each.name: each.value(int(code))
            for each, code in zip(self.characteristics, row, strict=True)
        }

    def decode_rows(self, codes: NDArray[Any]) -> list[dict[str, Value]]:
        """Inputs as plain values by name."""
        columns = (each.decode(codes[:, c]).tolist() for c, each in enumerate(self.characteristics))
        rows = zip(*columns, strict=True)
        return [dict(zip(self.names, values, strict=True)) for values in rows]

    def encode_rows(self, rows: Sequence[Mapping[str, Value]]) -> NDArray[Any]:
        """The codes of inputs given by values; each value of a column is looked up once."""
        codes = np.empty((len(rows), len(self)), dtype=self.dtype, order="F")
        for place, each in enumerate(self.characteristics):
            values = [row[each.name] for row in rows]
            known = {(type(value), value): value for value in values}
            found = {key: each.encode(value) for key, value in known.items()}
            codes[:, place] = np.array([found[type(value), value] for value in values])
        return codes

    def to_dict(self) -> dict[str, Any]:
        """The schema as the `inputs` and `constraints` of a `themis.toml`."""
        return {
            "inputs": {each.name: _spec(each) for each in self.characteristics},
            "constraints": self._texts,
        }

    @property
    def _texts(self) -> dict[str, str]:
        return {each.name: each.text for each in self.constraints}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Schema:
        """The schema that `to_dict` described."""
        inputs = {name: characteristic_from(spec) for name, spec in data["inputs"].items()}
        return cls(inputs).constrained(data.get("constraints", {}))

    def with_extra(self, extra: Mapping[str, Sequence[Value]]) -> Schema:
        """The same schema for rows that have further values, by characteristic."""
        inputs = {each.name: replace(each, extra=extra.get(each.name, ())) for each in self}
        return Schema(inputs).constrained(self._texts)

    @property
    def extra(self) -> tuple[tuple[Value, ...], ...]:
        """The values that only given rows have, of each characteristic."""
        return tuple(tuple(each.extra) for each in self.characteristics)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Schema):
            return False
        return self.extra == other.extra and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.characteristics, self.constraints))

    def __getitem__(self, name: str) -> Characteristic:
        if name not in self.column_by_name:
            raise RequestError([_unknown_name(name, self.names, "schema")])
        return self.characteristics[self.column_by_name[name]]

    def __contains__(self, name: object) -> bool:
        return name in self.column_by_name

    def __iter__(self) -> Iterator[Characteristic]:
        return iter(self.characteristics)

    def __len__(self) -> int:
        return len(self.characteristics)

    def _repr_html_(self) -> str:
        from html import escape

        described = self.to_dict()
        rows = {name: _shortened(str(spec)) for name, spec in described["inputs"].items()}
        rows |= {f"constraint {name}": text for name, text in described["constraints"].items()}
        cells = (f"<td>{escape(name)}</td><td>{escape(text)}</td>" for name, text in rows.items())
        return f"<table>{''.join(f'<tr>{row}</tr>' for row in cells)}</table>"

    def __repr__(self) -> str:
        parts = ", ".join(f"{each.name}={type(each).__name__}" for each in self)
        number = len(self.constraints)
        limits = f"; {count_of(number, 'constraint')}" if number else ""
        return f"Schema({parts}{limits})"


def _shortened(text: str) -> str:
    return text if len(text) <= 200 else f"{text[:199]}…"


def _unknown_name(name: Any, known: Sequence[str], where: str) -> Mistake:
    problem = f"there is no characteristic {name!r}"
    return Mistake("unknown-name", where, problem, suggest(str(name), known))


def outside_sets(each: Characteristic, where: str) -> Mistake | None:
    """Why no set can have this characteristic; None if sets can."""
    if isinstance(each, Values) and each.from_ is not None:
        leaders = each.leaders
        problem = f"{each.name!r} is derived from {listed(leaders)}, so it can't be changed alone"
        return Mistake("derived-in-set", where, problem, f"name {leaders[0]!r} instead")
    if each.role == "context":
        problem = f"{each.name!r} is a context, which is never compared"
        remedy = f'remove role = "context" from {each.name!r}, or name another characteristic'
        return Mistake("context-in-set", where, problem, remedy)
    return None


def _untied(each: Characteristic, leaders: Container[str]) -> Characteristic:
    """The characteristic without its tie to one of these."""
    if isinstance(each, Values) and any(leader in leaders for leader in each.leaders):
        return replace(each, follows=None, as_=None, from_=None)
    return each


def _each(name: str, spec: Any) -> Iterable[tuple[str, Any]]:
    return spec.expanded(name) if isinstance(spec, Names) else [(name, spec)]


def _characteristic(name: str, spec: Any) -> Characteristic:
    if isinstance(spec, Characteristic):
        return spec.named(name)
    if isinstance(spec, range) and len(spec):
        return Integers(spec[0], spec[-1], step=max(spec.step, 1), name=name)
    return Values(spec, name=name)


def _name_mistakes(names: Sequence[str]) -> Iterator[Mistake]:
    if not names:
        yield Mistake("no-inputs", "inputs", "there is no characteristic", "describe at least one")
    for name in names:
        if not isinstance(name, str) or not name.strip() or "," in name or "`" in name:
            problem = f"{name!r} can't be a name"
            yield Mistake("bad-name", "inputs", problem, "use text without commas and backquotes")
    for name in repeated_names([name for name in names if isinstance(name, str)]):
        yield Mistake("duplicate-name", "inputs", f"{name} appears twice", "rename one")


_KEYS: tuple[str, ...] = ("min", "max", "step", "bins", "weights", "protected", "missing")
_KEYS += ("missing_as_counterfactual", "follows")


def _spec(each: Characteristic) -> Any:
    """A characteristic as it stands in the file."""
    role = {} if each.role == "input" else {"role": each.role}
    if isinstance(each, Values) and each.derived:
        leaders = each.from_ if isinstance(each.from_, str) else list(each.leaders)
        return {"from": leaders, "values": plain_table(each.as_ or {}), **role}
    pairs = ((key, getattr(each, key, None)) for key in _KEYS)
    spec = {key: value for key, value in pairs if value is not None and value is not False}
    if isinstance(each, Integers) and each.step == 1:
        del spec["step"]
    spec |= {key: list(spec[key]) for key in ("bins",) if key in spec}
    if each.weights is not None:
        spec["weights"] = [float(weight) for weight in each.weights]
    if each.missing is not None:
        spec["missing"] = float(each.missing)
    if each.is_open:
        return role
    spec |= role
    if not isinstance(each, Values):
        return spec
    if each.follows is not None:
        spec["as"] = plain_table(each.as_ or {})
    return {"values": list(each.values), **spec} if spec else list(each.values)


def _in_python(options: Mapping[str, Any]) -> dict[str, Any]:
    """Keys of the file as names of Python, where `as` is a word of the language."""
    return {"as_" if key == "as" else key: value for key, value in options.items()}


def characteristic_from(spec: Any) -> Characteristic:
    """The characteristic that a spec of the file describes, still without a name."""
    if not isinstance(spec, Mapping):
        return Values(spec)
    options = dict(spec)
    if "from" in options and "values" in options:
        return derived(options.pop("from"), options.pop("values"), **_in_python(options))
    is_open = options.get("role") == "context" and "min" not in options
    if "values" in options or is_open:
        options = _in_python(options)
        return Values(options.pop("values", ()), **options)
    kind = (
        Reals
        if any(isinstance(options[key], float) for key in ("min", "max", "step") if key in options)
        else Integers
    )
    return kind(**options)
