"""The tables of the study, as people have them: a file made from one takes each of its rows."""

from __future__ import annotations

import csv
import json
import random
import warnings
from pathlib import Path

import pytest
from studies.fse2017.data import code_book, table

import themis
from tests.projects import enter, run
from themis.errors import RowsWarning

TABLES = {
    "adult": ("sex", "income", "hours-per-week", 48_842),
    "german": ("foreign", "credit", "duration", 1_000),
}
SUBJECT = """\
version = 1
[subject]
kind = "python"
function = "long_{file}:decide"
call = "batch"
"""
DECIDE = "def decide(people):\n    return (people[{number!r}] > 30).astype(int)\n"


def rows_of(file: str) -> list[list[str]]:
    """The rows of a table, with ? where a value is missing."""
    columns = []
    for name, codes in table(file).items():
        texts = code_book(file)[name]
        if texts is None:
            columns.append([str(code) for code in codes.tolist()])
        else:
            columns.append(["?" if code < 0 else texts[code] for code in codes.tolist()])
    return [list(cells) for cells in zip(*columns, strict=True)]


@pytest.mark.parametrize(
    ("file", "count"),
    [("german", None), ("adult", 3_000), pytest.param("adult", None, marks=pytest.mark.slow)],
)
def test_a_file_made_from_a_table_takes_each_of_its_rows(
    file: str, count: int | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    enter(tmp_path, monkeypatch)
    protected, target, number, size = TABLES[file]
    rows = rows_of(file)
    assert len(rows) == size
    rows = rows if count is None else random.Random(1).sample(rows, count)
    with Path("people.csv").open("w", newline="") as people:
        csv.writer(people).writerows([list(table(file)), *rows])
    made = run("init", "--from", "people.csv", "--protected", protected, "--target", target)
    assert made.exit_code == 0, made.output
    Path(f"long_{file}.py").write_text(DECIDE.format(number=number))
    text = Path("themis.toml").read_text()
    inputs = text[text.index("[inputs]") :].split("\n[[checks]]")[0]
    assert '[profile]\ndata = "people.csv"\n' in inputs
    Path("themis.toml").write_text(SUBJECT.format(file=file) + inputs)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RowsWarning)
        facts = themis.Audit.from_file("themis.toml").apparatus.facts
    assert (facts["rows"], facts["used"], facts["dropped"]) == (len(rows), len(rows), 0)
    assert not facts["reasons"]
    done = run("apparent", "--against", protected, "--only-data", "-o", "result.json")
    assert done.exit_code == 0, done.output
    result = json.loads(Path("result.json").read_text())
    assert result["data"]["used"] == len(rows)
    notes = [note for part in (result, *result["scores"]) for note in part["notes"]]
    assert "rows-left-out" not in {note["code"] for note in notes}
    group = next(score for score in result["scores"] if score["measure"] == "group")
    assert group["score"] == pytest.approx(spread(file, rows, protected, number), abs=1e-9)


def spread(file: str, rows: list[list[str]], protected: str, number: str) -> float:
    """The group score by hand: of all rows that have the number above 30."""
    names = list(table(file))
    groups: dict[str, list[bool]] = {}
    for row in rows:
        own = groups.setdefault(row[names.index(protected)], [])
        own.append(int(row[names.index(number)]) > 30)
    rates = [sum(each) / len(each) for each in groups.values()]
    return max(rates) - min(rates)
