"""Large schemas and tables: memory and work in proportion, counted and never timed."""

from __future__ import annotations

import csv
import re
import tracemalloc
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import themis
from themis.events import RowsRead
from themis.inputs import streams, tables
from themis.inputs.people import columns_read, people_of
from themis.inputs.population import Population
from themis.inputs.schema import Schema
from themis.inputs.streams import BaseInputs
from themis.inputs.tables import read_table


def wide(count: int) -> Schema:
    return Schema({f"c{number}": ["a", "b"] for number in range(count)})


# --- schemas --------------------------------------------------------------------------------
def test_streams_among_many_draw_and_keep_little() -> None:
    population = Population.of(wide(20))
    base = BaseInputs(population, 1, branch=(7,), among_many=True)
    whole = base.rows(0, 1_000)
    assert base.chunk_rows == streams.SLOW_CHUNK
    parts = [base.rows(start, start + 125) for start in range(0, 1_000, 125)]
    assert (np.concatenate(parts) == whole).all()


@pytest.mark.long
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
@pytest.mark.parametrize("kind", ["csv", "jsonl"])
def test_what_is_read_does_not_depend_on_the_size_of_pieces(tmp_path: Path, kind: str) -> None:
    """Of a file with a column of its own in the middle, and values that come late."""
    path, count = tmp_path / f"rows.{kind}", 2**18 // 3 + 5  # more than one piece of cells
    cells = [str(n % 7) if n != count - 2 else "late" for n in range(count)]
    if kind == "csv":
        path.write_text("a,b,c\n" + "".join(f"{cell},,x\n" for cell in cells), "utf-8")
    else:
        odd = ['"z": true, ' if n == 2**13 else "" for n in range(count)]
        rows = zip(odd, cells, strict=True)
        path.write_text("".join(f'{{{z}"a": "{cell}", "c": "x"}}\n' for z, cell in rows), "utf-8")
    table = read_table(path)
    assert table.lines is not None
    assert table.lines.tolist() == list(range(1 + (kind == "csv"), count + 1 + (kind == "csv")))
    assert (table.columns["a"].values, table.columns["c"].values) == ([*"0123456", "late"], ["x"])
    assert table.columns["a"].tolist() == cells
    if kind == "csv":
        assert table.columns["b"].missing == count
    else:
        assert (table.columns["z"].missing, table.columns["z"][2**13]) == (count - 1, True)
    assert read_table(path, most=count).is_cut is False
    first = read_table(path, most=count - 1)
    assert (first.is_cut, len(first), first.columns["a"].tolist()) == (True, count - 1, cells[:-1])


def test_columns_that_nobody_asked_for_are_named_but_not_held(tmp_path: Path) -> None:
    path = tmp_path / "rows.csv"
    path.write_text("id,sex,w\n" + "".join(f"{n},male,2\n" for n in range(50)), "utf-8")
    sexes = Schema(sex=["female", "male"])
    rows = read_table(path, only=columns_read(sexes, "w"))
    assert (set(rows.columns), rows.names) == ({"sex", "w"}, ("id", "sex", "w"))
    assert people_of(rows, sexes, weights="w").facts["ignored"] == ["id"]
    with pytest.raises(themis.RequestError, match="did you mean 'sex'"):
        people_of(read_table(path, only={"Sex"}), Schema(Sex=["male"]))


def test_rows_of_few_kinds_take_a_few_bytes_each(tmp_path: Path) -> None:
    path, count = tmp_path / "rows.csv", 60_000
    path.write_text("a,b,c\n" + "x,1,long text of a cell\ny,2,\n" * (count // 2), "utf-8")
    table = read_table(path)
    assert table.lines is not None
    held = table.lines.nbytes + sum(each.codes.nbytes for each in table.columns.values())
    assert held == count * (4 + 3)


def test_reading_tells_how_far_it_is(tmp_path: Path) -> None:
    told: list[RowsRead] = []
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": "green", "b": "purple"}\n' * 20_000, "utf-8")
    read_table(path, listen=told.append)
    size = path.stat().st_size
    assert len(told) >= 4
    assert [each.done for each in told] == sorted(each.done for each in told)
    assert told[-1] == RowsRead(size, size)
    assert 0 < told[0].done < size / 2


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


CELLS = st.sampled_from(["", "a", "1.5", " b ", '"q', 'p"', "x,y", "two\nlines", "cr\r\ncell", "é"])


@given(
    st.lists(st.lists(CELLS, min_size=2, max_size=2), min_size=1, max_size=9),
    st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_ALL]),
    st.sampled_from(["\n", "\r\n"]),
    st.integers(1, 3),
)
def test_a_csv_is_read_like_its_quoted_copy_however_it_is_cut(
    rows: list[list[str]], quoting: Any, end: str, piece: int
) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "CHUNK_ROWS", piece)
        path = Path(folder) / "rows.csv"
        with path.open("w", encoding="utf-8", newline="") as file:
            csv.writer(file, quoting=quoting, lineterminator=end).writerows([["k", "v"], *rows])
        with path.open(encoding="utf-8", newline="") as file:
            reader, kept = csv.reader(file, strict=True), []
            starts = []
            for cells in reader:
                if any(cell.strip() for cell in cells):
                    kept.append(cells)
                    written = sum(len(re.findall("\r\n|\r|\n", cell)) for cell in cells)
                    starts.append(reader.line_num - written)
        table = read_table(path, exact=True)
        expected = [[cell or None for cell in cells] for cells in kept[1:]]
        columns = zip(*(table.columns[n].tolist() for n in ("k", "v")), strict=True)
        assert [*map(list, columns)] == expected
        assert table.lines is not None
        assert table.lines.tolist() == starts[1:]
