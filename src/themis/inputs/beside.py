"""Columns of given rows that the schema lacks: people are compared by them, no subject has them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from themis.errors import Mistake, RequestError, count_of, suggest
from themis.inputs.characteristics import Characteristic
from themis.inputs.columns import type_column
from themis.inputs.guesses import guess_column
from themis.inputs.schema import Schema, characteristic_from
from themis.inputs.tables import Column, Table, column_of, table_of

FEATURE = "sensitive_feature"  # and its number: the name of one that has none, as Fairlearn has it


def with_groups(schema: Schema, rows: Table, names: Iterable[str]) -> Schema:
    """The schema with these columns of the rows that it lacks, in the role "group".

    Their values, or bins of numbers, are those of the rows; RequestError for what can be no
    characteristic, and for what the rows lack as well.
    """
    lacking = [name for name in dict.fromkeys(names) if name not in schema.column_by_name]
    if unknown := [name for name in lacking if name not in rows.columns]:
        known = [*schema.names, *(name for name in rows.names if name not in schema.names)]
        problem = "there is no characteristic {!r}, and no column of this name in the rows".format
        raise RequestError(
            Mistake("unknown-name", "against", problem(name), suggest(name, known))
            for name in unknown
        )
    groups = {name: _group(name, rows) for name in lacking}
    return schema.extended(groups) if groups else schema


def _group(name: str, rows: Table) -> Characteristic:
    typed = type_column(rows.columns[name], is_text=rows.is_text)
    guess = guess_column(name, typed, protected=True)
    if guess.left_out:
        problem = f"{name!r} makes no groups of people: {guess.left_out}"
        raise RequestError.one("no-groups", "against", problem, "name another column")
    spec = guess.spec if isinstance(guess.spec, dict) else {"values": guess.spec}
    return characteristic_from({**spec, "protected": True, "role": "group"})


def with_features(rows: Table, features: Any) -> tuple[Table, list[str]]:
    """The rows with columns that are given beside them, and the names of these.

    A series, an array, a list, a table or a mapping of columns. One that the rows have as well must
    be the same there.
    """
    found = _features(features)
    mistakes = []
    for name, column in found.items():
        if len(column) != len(rows):
            problem = f"{count_of(len(column), 'value')} for {count_of(len(rows), 'row')}"
            mistakes.append(_mistake(name, problem, "give one for each row"))
        elif name in rows.columns and rows.columns[name].tolist() != column.tolist():
            problem = "the rows have a column of this name with other values"
            mistakes.append(_mistake(name, problem, "give it another name"))
    if mistakes:
        raise RequestError(mistakes)
    columns = {**rows.columns, **found}
    return replace(rows, columns=columns, names=(*rows.names, *found)), list(found)


def _features(given: Any) -> dict[str, Column]:
    if isinstance(given, Mapping) or hasattr(given, "columns") or hasattr(given, "column_names"):
        return dict(table_of(given).columns)
    if isinstance(given, np.ndarray) and given.ndim == 2:
        return {f"{FEATURE}_{place}": column_of(each) for place, each in enumerate(given.T)}
    name = getattr(given, "name", None)
    return {f"{FEATURE}_0" if name is None else str(name): column_of(given)}


def _mistake(name: str, problem: str, remedy: str) -> Mistake:
    return Mistake("sensitive-features", f"sensitive_features {name!r}", problem, remedy)
