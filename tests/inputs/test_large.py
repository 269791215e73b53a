"""Large schemas and tables: memory and work in proportion, counted and never timed."""

from __future__ import annotations

import tracemalloc
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.inputs import people, row_files, schema, streams
from themis.inputs.blocks import ColumnBlock, RejectionBlock
from themis.inputs.numbers import NumberRange
from themis.inputs.people import columns_read, people_of
from themis.inputs.population import Population
from themis.inputs.row_files import read_pieces, read_table
from themis.inputs.rows import factorise, read_rows, rows_of
from themis.inputs.schema import Schema
from themis.inputs.streams import BaseInputs


def wide(count: int) -> Schema:
    return Schema({f"c{number}": ["a", "b"] for number in range(count)})


# --- schemas --------------------------------------------------------------------------------
def test_names_are_collected_once_however_many_blocks_there_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = []
    whole = wide(200).constrained({f"{n}": f"c{n} != c{n + 100}" for n in range(100)})
    names = schema.Schema.names.func  # type: ignore[attr-defined]
    monkeypatch.setattr(schema.Schema.names, "func", lambda each: made.append(1) or names(each))
    population = Population.of(whole)
    assert len(population.blocks) == 100
    assert len(made) <= 1


def test_linked_columns_make_one_block_also_through_later_constraints() -> None:
    linked = wide(6).where("c0 != c1", "c4 != c5", "c1 != c4")
    population = Population.of(linked)
    assert [block.columns for block in population.blocks] == [(0, 1, 4, 5), (2,), (3,)]
    assert [block.size for block in population.blocks] == [2, 2, 2]


def test_groups_share_the_blocks_that_they_do_not_restrict() -> None:
    population = Population.of(wide(6).where("c0 != c1", "c2 != c3"))
    group = population.restricted({0: (0, 1)})
    assert group is not None
    assert [one is other for one, other in zip(population.blocks, group.blocks, strict=True)] == [
        False,
        True,
        True,
        True,
    ]


def test_inputs_of_a_wide_schema_are_drawn_in_few_cells_and_do_not_depend_on_the_request(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "CHUNK_CELLS", 2**12)
    base = BaseInputs(Population.of(wide(100)), seed=1)
    assert base.chunk_rows == streams.SLOW_CHUNK
    assert BaseInputs(Population.of(wide(1)), seed=1).chunk_rows == 2**12
    whole = base.rows(0, 1_000)
    parts = [base.rows(start, start + 125) for start in range(0, 1_000, 125)]
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.slow
def test_members_of_many_bins_are_drawn_in_few_cells_and_do_not_depend_on_the_request() -> None:
    ages = themis.Integers(0, 9_999, bins=list(range(10, 10_000, 10)))
    base = BaseInputs(Population.of(Schema(age=ages, sex=["f", "m"])), seed=1)
    tracemalloc.start()
    whole = base.members(0, 0, 6_000)
    held = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert held < 5 * whole.nbytes
    assert base._member_rows(0) * 1_000 <= streams.CHUNK_CELLS < base._member_rows(0) * 2_000
    parts = [base.members(0, start, start + 1_500) for start in range(0, 6_000, 1_500)]
    assert (np.concatenate(parts) == whole).all()
    levels = ages.named("age").level_of(whole)
    assert (levels == np.arange(1_000)).all()


def test_of_few_bins_as_many_members_are_drawn_as_of_inputs() -> None:
    ages = themis.Integers(0, 99, bins=[40, 65])
    base = BaseInputs(Population.of(Schema(age=ages)), seed=1)
    assert base._member_rows(0) == base.chunk_rows == streams.CHUNK


def test_streams_among_many_draw_and_keep_little() -> None:
    population = Population.of(wide(20))
    base = BaseInputs(population, 1, branch=(7,), among_many=True)
    whole = base.rows(0, 1_000)
    assert base.chunk_rows == streams.SLOW_CHUNK
    assert base._chunk.cache_info().currsize == 1
    parts = [base.rows(start, start + 125) for start in range(0, 1_000, 125)]
    assert (np.concatenate(parts) == whole).all()


def test_a_rejection_block_copies_its_own_columns_alone() -> None:
    linked = Schema(
        {
            **{f"x{n}": themis.Integers(0, 999) for n in range(3)},
            **{f"c{n}": ["a", "b"] for n in range(300)},
        }
    ).where("x0 + x1 < x2 + 1200")
    block = Population.of(linked).blocks[0]
    assert isinstance(block, RejectionBlock)
    tracemalloc.start()
    block.draw(np.random.default_rng(0), 2_000)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 2 * 303 * 8_000 * 4  # the proposals once; their other columns are never copied


def test_a_characteristic_keeps_what_it_knows_under_another_name() -> None:
    values = themis.Values(["x", "y"])
    assert values.encode("y") == 1
    named = values.named("letter")
    assert (named.name, values.name) == ("letter", "")
    assert vars(named)["_codes"] is vars(values)["_codes"]
    with pytest.raises(themis.SchemaError, match="'x' appears twice"):
        themis.Values(["x", "y", "x"])


@pytest.mark.slow
def test_a_million_values_and_ten_thousand_characteristics_fit_in_little_memory() -> None:
    def decide(table: Any) -> Any:
        return (np.asarray(table["c0"]) == "a").astype(int)

    for given_schema in (
        wide(10_000),
        Schema(c0=["a", "b"], big=[f"v{number}" for number in range(10**6)]),
    ):
        tracemalloc.start()
        score = themis.Audit(themis.batch(decide), given_schema).causal("c0")
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert score.score == 1.0
        assert peak < 2**28


# --- files of rows --------------------------------------------------------------------------
cells = st.sampled_from(["", "a", "b", "1", "1.0", " a", "true", "x\ny", "NA"])
tables = st.lists(st.tuples(cells, cells, cells), min_size=1, max_size=12)


def write_csv(path: Path, rows: list[tuple[str, ...]]) -> Path:
    lines = [",".join(f'"{cell}"' for cell in row) for row in [("a", "b", "c"), *rows]]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def write_objects(path: Path, rows: list[tuple[str, ...]]) -> Path:
    kinds = {"1": "1", "1.0": "1.0", "true": "true", "x\ny": "[1]"}
    texts = [
        ", ".join(f'"{n}": {kinds.get(v, f"{chr(34)}{v}{chr(34)}")}' for n, v in pairs if v)
        for pairs in (list(zip("abc", row, strict=True)) for row in rows)
    ]
    path.write_text("".join(f"{{{text}}}\n" for text in [*texts, '"a": 0']), encoding="utf-8")
    return path


@given(tables, st.integers(1, 5), st.sampled_from(["csv", "jsonl"]))
def test_what_is_read_does_not_depend_on_the_size_of_pieces(
    tmp_path_factory: pytest.TempPathFactory, rows: list[Any], size: int, kind: str
) -> None:
    path = tmp_path_factory.mktemp("rows") / f"rows.{kind}"
    (write_csv if kind == "csv" else write_objects)(path, rows)
    try:
        whole = read_table(path)
    except themis.RequestError:  # all rows are blank
        return
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_files, "CHUNK", size)
        parts = read_table(path)
    assert whole.lines is not None
    assert parts.lines is not None
    assert whole.lines.tolist() == parts.lines.tolist()
    assert whole.names == parts.names
    assert {n: (repr(c.values), c.codes.tolist()) for n, c in whole.columns.items()} == {
        n: (repr(c.values), c.codes.tolist()) for n, c in parts.columns.items()
    }


@given(st.lists(st.sampled_from([None, "a", "b", "c"]), min_size=1, max_size=8))
def test_a_column_of_a_file_is_factorised_as_one_in_memory(values: list[Any]) -> None:
    encoder = row_files.Encoder()
    encoder.add(values)
    column = encoder.column()
    assert column.tolist() == values
    found, places = factorise(column)
    expected, expected_places = factorise(rows_of({"x": values}).columns["x"])
    assert (found, places.tolist()) == (expected, expected_places.tolist())


def test_columns_that_nobody_asked_for_are_named_but_not_held(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,sex,w\n" + "".join(f"{n},male,2\n" for n in range(50)), "utf-8")
    sexes = Schema(sex=["female", "male"])
    rows = read_rows(path, only=columns_read(sexes, "w"))
    assert (set(rows.columns), rows.names) == ({"sex", "w"}, ("id", "sex", "w"))
    assert people_of(rows, sexes, weights="w").facts["ignored"] == ["id"]
    with pytest.raises(themis.RequestError, match="did you mean 'sex'"):
        people_of(read_rows(path, only={"Sex"}), Schema(Sex=["male"]))


def test_rows_of_few_kinds_take_a_few_bytes_each(tmp_path: Path) -> None:
    path, count = tmp_path / "rows.csv", 60_000
    path.write_text("a,b,c\n" + "x,1,long text of a cell\ny,2,\n" * (count // 2), "utf-8")
    table = read_table(path)
    assert table.lines is not None
    held = table.lines.nbytes + sum(each.codes.nbytes for each in table.columns.values())
    assert held == count * (4 + 3)


def test_reading_tells_how_far_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(row_files, "CHUNK", 1_000)
    told: list[tuple[int, int]] = []
    path = tmp_path / "rows.csv"
    path.write_text("a,b\n" + "green,purple\n" * 5_000, "utf-8")
    for _ in read_pieces(path, listen=lambda done, total: told.append((done, total))):
        pass
    size = path.stat().st_size
    assert told == sorted(told)
    assert len(told) >= 5
    assert told[-1] == (size, size)
    assert 0 < told[1][0] < size / 2


@pytest.mark.parametrize("weights", [None, "w"])
def test_people_do_not_depend_on_how_many_rows_are_compared_at_once(
    monkeypatch: pytest.MonkeyPatch, weights: str | None
) -> None:
    rng = np.random.default_rng(3)
    rows = rows_of({"a": rng.integers(0, 4, 500), "b": rng.integers(0, 3, 500), "w": [2] * 500})
    domain = Schema(a=themis.Integers(0, 2), b=themis.Integers(0, 2))
    whole = people_of(rows, domain, weights=weights)
    monkeypatch.setattr(people, "BLOCK", 7)
    parts = people_of(rows, domain, weights=weights)
    for name in ("codes", "weights", "counts", "heads"):
        assert getattr(whole, name).tolist() == getattr(parts, name).tolist(), name
    assert dict(whole.facts) == dict(parts.facts)


@given(st.integers(-5, 5), st.integers(0, 20), st.integers(1, 4), st.integers(-10, 90))
def test_a_whole_number_has_the_code_that_its_fraction_has(
    low: int, steps: int, step: int, value: int
) -> None:
    numbers = NumberRange(low, low + steps * step, step, None, whole=True)
    expected = [low + place * step for place in range(steps + 1)]
    code = expected.index(value) if value in expected else None
    assert numbers.encode(value) == numbers.encode(float(value)) == code
    assert numbers.encode(np.int64(value)) == code
    assert numbers.encode(True) is None


def test_few_inputs_are_drawn_where_few_are_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    drawn: list[int] = []
    draw = ColumnBlock.draw

    def noted(self: ColumnBlock, rng: np.random.Generator, count: int) -> Any:
        drawn.append(count)
        return draw(self, rng, count)

    monkeypatch.setattr(ColumnBlock, "draw", noted)
    base = BaseInputs(Population.of(wide(1)), seed=1)
    few = base.rows(3, 106).copy()
    assert drawn == [1_024]
    assert (base.rows(0, 200_000)[3:106] == few).all()
    assert drawn == [1_024, 3_072, 12_288, 49_152, 65_536, 65_536, 65_536]


@pytest.mark.parametrize("size", [8, 256, 1_024, 5_000, 65_536])
def test_chunks_follow_one_another_without_a_gap(size: int) -> None:
    chunks = streams.Chunks(size)
    starts = np.cumsum([0, *(chunks.rows(number) for number in range(40))])
    rows = np.arange(starts[-1])[:, None]

    def draw(number: int) -> Any:
        return rows[starts[number] : starts[number + 1]]

    assert max(np.diff(starts)) <= size
    for start, stop in ((0, 1), (0, size), (size - 1, size + 1), (3, 3), (5, 30 * size)):
        assert chunks.copy(draw, start, stop)[:, 0].tolist() == list(range(start, stop))
        assert chunks.view(draw, start, stop)[:, 0].tolist() == list(range(start, stop))
