"""Rows with values that the schema does not have: their own value, and nobody else's."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

import themis
from tests.engine.test_suites import read
from themis.errors import RowsWarning
from themis.inputs.schema import Schema

Row = tuple[Any, ...]
NAMES = ("race", "age", "rate")
SCHEMA = Schema(
    race=["green", "blue"],
    age=themis.Integers(20, 26, step=2),
    rate=themis.Reals(0, 1, step=0.5, missing=0.1),
)
BINNED = Schema(
    race=["green", "blue"],
    age=themis.Integers(20, 26, step=2, bins=[24]),
    rate=themis.Reals(0, 1, step=0.5, missing=0.1),
)


def decide(row: dict[str, Any]) -> int:
    return random.Random(repr(sorted(row.items(), key=str))).choice((0, 0, 1))


def people(seed: int) -> list[Row]:
    """Rows of the grid, and others: red and old people, fractions, people without a rate."""
    chance = random.Random(seed)
    races, ages = ["green", "blue", "red", "grey"], [20, 22, 24, 26, 23, 25.5, 40]
    rates = [0.0, 0.5, 1.0, 0.25, None, 7.5]
    return [(chance.choice(races), chance.choice(ages), chance.choice(rates)) for _ in range(30)]


def named(rows: list[Row]) -> list[dict[str, Any]]:
    return [dict(zip(NAMES, row, strict=True)) for row in rows]


@pytest.mark.parametrize("schema", [SCHEMA, BINNED])
@pytest.mark.parametrize("names", [("age",), ("race", "age"), ("rate",)])
def test_scores_of_all_inputs_do_not_depend_on_given_rows(
    schema: Schema, names: tuple[str, ...]
) -> None:
    beside = themis.Audit(decide, schema, deterministic=True).apparent(
        named(people(2)), against=[names]
    )
    alone = themis.Audit(decide, schema, deterministic=True)
    for score in beside.scores:
        if score.population == "inputs":
            own = getattr(alone, score.measure)(*names)
            assert (score.score, score.low, score.high) == (own.score, own.low, own.high)


@pytest.mark.some_slow(core=3)
@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_a_suite_holds_the_rows_as_they_are(suffix: str, tmp_path: Path) -> None:
    path = tmp_path / f"suite{suffix}"
    rows = people(3)
    given = {"profile": named(rows), "suite": path, "show_rows": True}
    with themis.Audit(decide, SCHEMA, **given, deterministic=True) as audit:
        audit.search(threshold=0.3)
        kept = audit.schema

    def plain(row: Row) -> Row:
        return row[0], float(row[1]), None if row[2] in ("", None) else float(row[2])

    written = {plain(tuple(row[name] for name in NAMES)) for row in read(path)}
    assert {plain(row) for row in rows} <= written
    again = themis.Audit(decide, SCHEMA, profile=named(rows)).replay(path)
    assert again.changed == 0
    assert not again.unknown_rows
    assert kept.extra


def test_a_cache_knows_the_rows_by_their_values(tmp_path: Path) -> None:
    shell = 'test "$1" = red && echo 1 || echo 0'
    (tmp_path / "themis.toml").write_text(
        'version = 1\n[subject]\nkind = "command"\ndeterministic = true\n'
        f"command = ['sh', '-c', '{shell}', 'decide']\n[inputs]\nrace = ['green', 'blue']\n"
    )
    found = []
    for race in ("red", "grey", "red"):
        with themis.Audit.from_file(tmp_path / "themis.toml") as audit:
            result = audit.apparent([{"race": race}], against=["race"], only_data=True)
            found.append(result.scores[0].score)
    assert found == [1.0, 0.0, 1.0]


def test_nobody_else_gets_the_value_of_a_row() -> None:
    seen: list[dict[str, Any]] = []

    def watched(row: dict[str, Any]) -> int:
        seen.append(row)
        return decide(row)

    rows = [("red", 20, 0.0), ("green", 23, 0.5)]
    result = themis.Audit(watched, SCHEMA).apparent(named(rows), against=[NAMES], only_data=True)
    assert not any(row["race"] == "red" and row["age"] == 23 for row in seen)
    assert any(row == {"race": "red", "age": 26, "rate": 1.0} for row in seen)
    assert {note.code for note in result.notes} >= {"values-kept", "values-between-steps"}


def test_what_still_does_not_fit_is_a_warning_and_a_note_on_every_score() -> None:
    rows = [*named(people(1)), {"race": "green", "age": "old", "rate": 0.5}]
    audit = themis.Audit(decide, SCHEMA)
    with pytest.warns(RowsWarning, match="1 of 31 rows"):
        result = audit.apparent(rows, against=["race"])
    for score in result.scores:
        codes = [note.code for note in score.notes]
        assert ("rows-left-out" in codes) == (score.population == "rows")
    with pytest.warns(RowsWarning, match="1 of 31 rows"):
        profile = themis.Audit(decide, SCHEMA, profile=rows)
    assert "rows-left-out" in [note.code for note in profile.causal("race").notes]
