"""The tests that a file holds, a suite or a result, as inputs of the schema at hand.

The schema may have changed since. What it does not admit any more is counted by its reason, and
never run.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from themis.engine.suite_files import PREFIX, OwnColumns
from themis.errors import Mistake, RequestError, suggest
from themis.inputs.characteristics import Characteristic
from themis.inputs.columns import MISSING, Column, Encoder
from themis.inputs.encoding import encode_values
from themis.inputs.schema import Schema
from themis.inputs.tables import Table, kind_of, read_table
from themis.results.model import CausalScore, Result
from themis.results.notes import Note
from themis.results.saved import read_result
from themis.subjects.labels import Part, part_of
from themis.subjects.outputs import Output


@dataclass(frozen=True)
class SavedOutput:
    """One output of then: the number of each row's value, −1 where there is none."""

    numbers: NDArray[np.int64]
    values: list[Any]
    part: Part | None = None  # what tells how far values are apart; without, all others differ


@dataclass
class SavedTests:
    """The tests of a file: rows are inputs with their outputs of then."""

    source: str
    kind: Literal["suite", "result"]
    codes: NDArray[Any]  # inputs of the schema at hand
    tests: NDArray[np.int64]  # of each row: the place of its test, −1 where it is in none
    sets: list[tuple[str, ...]]  # of each test
    only: list[int | None]  # of each test: the one output that it is about, if it is not all
    base: NDArray[np.bool_]  # rows that are base inputs
    outputs: list[SavedOutput]
    usable: NDArray[np.bool_]  # rows that the schema admits
    reasons: Counter[Note] = field(default_factory=Counter)  # why rows are not usable
    notes: list[Note] = field(default_factory=list)
    fingerprint: str | None = None  # of the subject of then, where it is known
    personal: bool = False  # whether inputs are rows of people


def read_tests(
    source: Result | str | Path, schema: Schema, outputs: Sequence[Output] = ()
) -> SavedTests:
    """The tests of a suite, or the witnesses of a result; raises RequestError where are none.

    `outputs` are those that the subject is measured by; none means that its answer is a decision.
    """
    tests = _read(source, schema, outputs)
    sizes = np.bincount(tests.tests[tests.tests >= 0], minlength=1)
    if sizes.max() < 2:
        problem = "holds no tests: no two inputs belong together"
        remedy = "write some: suite=FILE"
        if tests.kind == "result":
            problem = "has no witnesses: there is nothing to run again"
            remedy = "replay a suite, which suite=FILE writes"
        raise RequestError([Mistake("no-tests", tests.source, problem, remedy)])
    return tests


def _read(source: Result | str | Path, schema: Schema, outputs: Sequence[Output]) -> SavedTests:
    if isinstance(source, Result):
        return _from_result(source, "the result", schema, outputs)
    path = Path(source)
    if kind_of(path) is not None:
        return _from_table(read_table(path, exact=True), str(path), schema, outputs, "suite")
    if path.suffix.lower() != ".json" and path.exists():
        problem = f"{str(path)!r} is neither a suite nor a result"
        remedy = "name a suite (.csv, .jsonl or .parquet), or a saved result (.json)"
        raise RequestError([Mistake("replay", "FILE", problem, remedy)])
    return _from_result(read_result(path), str(path), schema, outputs)


def _from_result(
    result: Result, source: str, schema: Schema, outputs: Sequence[Output]
) -> SavedTests:
    """The witnesses of all scores, each a test of two inputs and one output."""
    names = tuple(result.schema["inputs"])
    own = OwnColumns.beside(names, [each.name for each in outputs])
    encoders = {name: Encoder() for name in (*names, *own.all)}
    only: list[int | None] = []
    for score in result.scores:
        for witness in score.witnesses if isinstance(score, CausalScore) else ():
            place = _place(score.output, outputs, source)
            only.append(place)
            for values, output in zip(witness.inputs, witness.outputs, strict=True):
                row = {
                    **{name: values.get(name) for name in names},
                    own.test: len(only),
                    own.against: ",".join(score.against),
                    own.outputs[place or 0]: output,
                }
                for name, encoder in encoders.items():
                    encoder.add([row.get(name)])
    columns = {name: encoder.column() for name, encoder in encoders.items()}
    table = Table(columns, 2 * len(only))
    tests = _from_table(table, source, schema, outputs, "result")
    tests.only = only
    tests.fingerprint = result.subject.get("fingerprint")
    tests.personal = result.holds_people
    return tests


def _place(name: str | None, outputs: Sequence[Output], source: str) -> int | None:
    """Which of the outputs a score is of."""
    names = [each.name for each in outputs]
    if not names or (name is None and len(names) == 1):
        return None
    if name in names:
        return names.index(name)
    problem = f"has a score of the output {name!r}, which is not measured any more"
    raise RequestError([Mistake("unknown-output", source, problem, suggest(name or "", names))])


def _from_table(
    table: Table,
    source: str,
    schema: Schema,
    outputs: Sequence[Output],
    kind: Literal["suite", "result"],
) -> SavedTests:
    own = _own_columns(table, source, outputs)
    _check_columns(table, own, source, schema)
    codes = np.zeros((table.length, len(schema)), dtype=schema.dtype, order="F")
    usable = np.ones(table.length, dtype=bool)
    reasons: Counter[Note] = Counter()
    for place, characteristic in enumerate(schema):
        column = table.columns[characteristic.name]
        code_of = encode_values(characteristic, column.values).codes  # the last is of no value
        if not table.is_text and characteristic.missing is not None:
            code_of[-1] = characteristic.missing_code  # and not that of an empty text
        found = code_of[column.codes]
        bad = usable & (found < 0)
        if bad.any():
            reasons[_reason(characteristic, column, bad)] += int(bad.sum())
        usable &= ~bad
        codes[:, place] = np.maximum(found, 0)
    forbidden = usable & ~schema.valid(codes)
    if forbidden.any():
        reasons[Note.of("forbidden-by-constraint")] += int(forbidden.sum())
    usable &= ~forbidden
    tests, sets = _tests(table, own)
    for name in sorted({name for each in sets for name in each if name} - {*schema.names}):
        against = np.array([*(name in each for each in sets), False])  # the last is for no test
        gone = usable & against[tests]
        reasons[Note.of("no-such-characteristic", name=name)] += int(gone.sum())
        usable &= ~gone
    extra = [n for n in table.columns if n not in (*schema.names, *own.all)]
    return SavedTests(
        source=source,
        kind=kind,
        codes=codes,
        tests=tests,
        sets=sets,
        only=[None] * len(sets),
        base=_truths(table.columns.get(own.base), table.length),
        outputs=list(_outputs(table, own, outputs)),
        usable=usable,
        reasons=reasons,
        notes=[Note.of("column-not-used", name=name) for name in extra],
        personal=own.personal in table.columns and own.personal not in schema.names,
    )


def _own_columns(table: Table, source: str, outputs: Sequence[Output]) -> OwnColumns:
    """What the columns of the suite itself are called in this file."""
    names = [each.name for each in outputs]
    for times in range(4, -1, -1):  # a shorter one may be a characteristic's
        own = OwnColumns.of(names, PREFIX * times)
        needed = (own.test, own.against, *own.outputs)
        lacking = [each for each in needed if each not in table.columns]
        if not lacking:
            return own
    problem = f"is no suite of this subject: it has no column {', '.join(map(repr, lacking))}"
    raise RequestError([Mistake("replay", source, problem, "write one: suite=FILE")])


def _outputs(table: Table, own: OwnColumns, outputs: Sequence[Output]) -> Iterator[SavedOutput]:
    """The outputs of then, with the distances of now."""
    if not outputs:
        column = table.columns[own.outputs[0]]
        yield SavedOutput(column.codes.astype(np.int64), column.values)
    for output, name in zip(outputs, own.outputs, strict=False):
        plain = output if output.labels is None else replace(output, labels=None)
        column, part = table.columns[name], part_of(plain)  # what was saved are labels already
        numbers = part.number([_parsed(value) for value in column.values])
        known = np.append(numbers, -1).astype(np.int64)  # the last one is for MISSING
        yield SavedOutput(known[column.codes], list(part.labels), part)


def _parsed(value: Any) -> Any:
    """A list that was written as text."""
    if isinstance(value, str) and value.startswith(("[", "{")):
        try:
            return json.loads(value)
        except ValueError:
            pass
    return value


def as_written(text: Any) -> Any:
    """A truth value as suites have it, where a spreadsheet has saved it in capitals."""
    return text.lower() if text in ("TRUE", "FALSE") else text


def _truths(column: Column | None, length: int) -> NDArray[np.bool_]:
    if column is None:
        return np.zeros(length, dtype=bool)
    known = [value is True or as_written(value) == "true" for value in column.values]
    truths: NDArray[np.bool_] = np.array([*known, False])[column.codes]
    return truths


def _check_columns(table: Table, own: OwnColumns, source: str, schema: Schema) -> None:
    others = [name for name in table.columns if name not in own.all]
    mistakes = [
        Mistake(
            "unknown-name",
            source,
            f"there is no column for the characteristic {name!r}",
            suggest(name, others) if others else "write a new suite",
        )
        for name in schema.names
        if name not in others
    ]
    RequestError.refuse(mistakes)


def _reason(characteristic: Characteristic, column: Column, bad: NDArray[np.bool_]) -> Note:
    code = int(column.codes[bad][0])
    value = None if code == MISSING else column.values[code]
    return Note.of("no-such-value", name=characteristic.name, value=value)


def _tests(table: Table, own: OwnColumns) -> tuple[NDArray[np.int64], list[tuple[str, ...]]]:
    """The test of each row, and the set of each test."""
    numbers, against = table.columns[own.test], table.columns[own.against]
    tests = numbers.codes.astype(np.int64)
    sets: list[tuple[str, ...]] = [()] * len(numbers.values)
    rows = np.flatnonzero(tests >= 0)
    _, first = np.unique(tests[rows], return_index=True)
    names = [tuple(str(each).split(",")) for each in against.values]
    for place in rows[first].tolist():
        code = int(against.codes[place])
        sets[int(tests[place])] = names[code] if code != MISSING else ()
    return tests, sets
