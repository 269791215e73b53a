"""What if: what one input gets, and which single changes of it change that; each is run.

Counterfactuals are those of the engine: what follows a characteristic is rewritten with it, and the
schema admits a change or does not. Of a bin its middle value is tried.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.audit.audit import Audit
from themis.engine.account import Budget
from themis.engine.variants import Rows, Variants
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.assignments import Assignments
from themis.inputs.characteristics import OWN, Characteristic, Integers, Reals, Value
from themis.inputs.documents import Dealt
from themis.inputs.encoding import encode_values
from themis.inputs.following import rewrite
from themis.inputs.schema import Schema
from themis.inputs.streams import BaseInputs, reference_person
from themis.subjects.decisions import Cells
from themis.subjects.readings import Reading


@dataclass(frozen=True)
class Given:
    """One output of one input."""

    name: str | None  # where a subject has several
    value: Any
    favourable: bool | None  # None: nothing is favourable


@dataclass(frozen=True)
class Change:
    """One characteristic changed, with what follows it."""

    name: str
    values: dict[str, Value]  # the new ones: its own first
    outputs: tuple[Given, ...]  # none where it failed
    failure: str
    differs: bool  # in some output, or from none


@dataclass(frozen=True)
class Tried:
    """How many changes of a characteristic were run, of those that there are."""

    name: str
    protected: bool
    run: int
    values: int  # besides its own
    forbidden: int  # that were no counterfactuals, of those that were looked at


@dataclass(frozen=True)
class Answer:
    """What an input gets, and what its single changes get."""

    values: dict[str, Value]  # with what is derived
    outputs: tuple[Given, ...]
    failure: str  # why it got none
    changes: tuple[Change, ...]  # those that differ first, protected ones before others
    tried: tuple[Tried, ...]


def some_input(audit: Audit) -> dict[str, Value]:
    """An ordinary valid input to start from, which is nobody's row."""
    population = audit.apparatus.views.whole.population.generated
    codes = reference_person(population)
    if not audit.schema.valid(codes[None])[0]:
        codes = BaseInputs(population, 0).rows(0, 1)[0]
    return audit.schema.decode_row(codes)


def try_input(audit: Audit, values: Mapping[str, Any]) -> Answer:
    """Run one input and its single changes; RequestError for one that does not exist."""
    schema = audit.schema
    own = _encoded(schema, values)
    looked = [*_changes(audit, own)]
    codes = np.concatenate([own, *(each.codes for each in looked)])
    runner = audit.runner
    runner.start(Budget())
    with runner.aside():
        cells = runner.perform(codes)
    said = [each or "" for each in runner.failures.lines_of(codes, schema)]
    given, differs = _outputs(runner.labels, cells)
    columns = [column for each in looked for column in [each.column] * len(each.codes)]
    changes = [
        Change(
            schema.names[column],
            _changed(schema, own[0], codes[row], column),
            given[row],
            "" if given[row] else said[row],
            bool(differs[row]),
        )
        for row, column in enumerate(columns, 1)
    ]
    return Answer(
        schema.decode_row(own[0]),
        given[0],
        "" if given[0] else said[0],
        tuple(sorted(changes, key=lambda each: not each.differs)),
        tuple(each.tried for each in looked),
    )


def _changed(
    schema: Schema, before: NDArray[Any], after: NDArray[Any], column: int
) -> dict[str, Value]:
    """What is new in a variant: the characteristic that was changed, then what follows it."""
    places = np.flatnonzero(before != after).tolist()
    new = sorted(places, key=lambda each: each != column)
    return {schema.names[c]: schema.characteristics[c].value(int(after[c])) for c in new}


def _encoded(schema: Schema, values: Mapping[str, Any]) -> NDArray[Any]:
    """The codes of one input, as a matrix of one row."""
    codes = np.zeros((1, len(schema)), dtype=schema.dtype)
    mistakes = [*_unknown(schema, values)]
    derived = {tie.follower for tie in schema.ties if tie.derived}
    for column, each in enumerate(schema):
        if column in derived:
            continue
        value = values.get(each.name, each.values[0] if isinstance(each, Dealt) else None)
        found = encode_values(each, [value])
        codes[0, column] = max(found.codes[0], 0)
        wrong = (why for why, places in found.misfits.items() if 0 in places)
        mistakes += [_misfit(each, value, why) for why in wrong]
    if not mistakes:
        rewrite([tie for tie in schema.ties if tie.derived], codes)
        mistakes += _violations(schema, codes)
    RequestError.refuse(mistakes)
    return codes


def _unknown(schema: Schema, values: Mapping[str, Any]) -> Iterator[Mistake]:
    for name in values:
        if name not in schema.column_by_name:
            problem, remedy = f"there is no characteristic {name!r}", suggest(name, schema.names)
            yield Mistake("unknown-name", "values", problem, remedy)


def _misfit(each: Characteristic, value: Any, why: str) -> Mistake:
    problem = "it needs a value" if value in (None, "") else f"{why}: {value!r}"
    if isinstance(each, Integers | Reals):
        remedy = f"choose from {each.min} to {each.max} in steps of {each.step}"
    else:
        remedy = suggest(str(value), [str(each.value(code)) for code in range(min(each.size, 50))])
    return Mistake("not-a-value", each.name, problem, remedy)


def _violations(schema: Schema, codes: NDArray[Any]) -> Iterator[Mistake]:
    for each in schema.constraints:
        columns = {name: codes[:, schema.column_by_name[name]] for name in each.variables}
        if not each.holds(columns)[0]:
            problem = f"these values violate it: {each.text}"
            remedy = f"change {' or '.join(n for n in schema.names if n in each.variables)}"
            yield Mistake("forbidden", f"constraint {each.name!r}", problem, remedy)


@dataclass(frozen=True)
class _Looked:
    """The changes of one characteristic that are to be run."""

    column: int
    codes: NDArray[Any]
    tried: Tried


def _changes(audit: Audit, own: NDArray[Any]) -> Iterator[_Looked]:
    """The changes of each characteristic that the subject reads, protected ones first."""
    schema, left = audit.schema, 200
    columns = [column for column in schema.free if column not in schema.unread]
    for column in sorted(columns, key=lambda each: not schema.characteristics[each].protected):
        each = schema.characteristics[column]
        level = int(each.level_of(own[:, column])[0])
        places = _spread(each.possible_count, min(left, 50 if each.protected else 12))
        levels = each.possible_levels(places)
        levels = levels[(levels != level) & (levels != OWN)]
        codes = _variants(schema, column, own, levels)
        admitted = codes[schema.admits(np.repeat(own, len(codes), axis=0), codes)]
        forbidden, others = len(codes) - len(admitted), each.possible_count - 1
        tried = Tried(each.name, each.protected, len(admitted), others, forbidden)
        left -= len(admitted)
        yield _Looked(column, admitted, tried)


def _spread(count: int, most: int) -> NDArray[np.int64]:
    """All places of a list, or some all over it, with its ends."""
    return np.unique(np.linspace(0, count - 1, min(count, most + 1)).astype(np.int64))


def _variants(
    schema: Schema, column: int, own: NDArray[Any], levels: NDArray[np.int64]
) -> NDArray[Any]:
    """The input with each of these levels in one column, and what follows that."""
    each = schema.characteristics[column]
    members = {}
    if each.bin_starts is not None:
        middles = [_middle(each, level) for level in range(each.levels)]
        members = {column: np.array([middles])}
    rows = Rows(np.asfortranarray(own), members)
    variants = Variants(Assignments(schema, (column,)), levels[:, None], complete=False)
    places = np.arange(len(levels))
    return rows.inputs(variants, np.zeros(len(levels), dtype=np.int64), places)


def _middle(each: Characteristic, level: int) -> int:
    """The value that stands for a bin."""
    start, stop = each.level_range(level)
    if each.value_weights is None or start >= each.size:
        return (start + stop - 1) // 2
    codes = start + np.flatnonzero(each.value_weights[start:stop] > 0)
    return int(codes[len(codes) // 2]) if len(codes) else start


def _outputs(labels: Any, cells: Cells) -> tuple[list[tuple[Given, ...]], NDArray[np.bool_]]:
    """The outputs of each input, and whether they are others than those of the first one."""
    given: list[list[Given]] = [[] for _ in cells]
    differs = np.zeros(len(cells), dtype=bool)
    for place in range(len(labels.parts)):
        reading = Reading(labels, place)
        own = reading.cells(cells)
        first = np.repeat(own[:1], len(own))
        differs |= (first < 0) & (own >= 0)
        differs |= (reading.distances(first, own) > 0) if reading.graded else (own != first)
        good = reading.labels.is_favourable(own).tolist() if reading.has_favourable else []
        for row, number in enumerate(own.tolist()):
            if number >= 0:
                value = reading.labels.labels[number]
                name = reading.details().get("output")
                given[row].append(Given(name, value, good[row] if good else None))
    return [tuple(each) for each in given], differs & (cells >= 0)
