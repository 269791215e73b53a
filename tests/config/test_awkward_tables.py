"""Does `themis init` make something sensible of tables as they are found, and name nobody?"""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.projects import run
from themis.audit.given import Described
from themis.config.reader import Config, read_config

ROWS = 120
SECRETS = ("ada", "lovelace", "example.org", "555", "1985", "please call", "musterweg")


def cells(make: Callable[[int, random.Random], object], count: int = ROWS) -> list[str]:
    rng = random.Random(5)
    return [str(make(index, rng)) for index in range(count)]


def write(
    columns: dict[str, list[str]], *options: str, mark: str = ",", encoding: str = "utf-8"
) -> tuple[str, Config, str]:
    """The file that `themis init` writes beside a table, what it means, and what is printed."""
    rows = [mark.join(row) for row in (columns, *zip(*columns.values(), strict=True))]
    Path("people.csv").write_bytes("\n".join([*rows, ""]).encode(encoding))
    result = run("init", "--from", "people.csv", "--force", *options)
    assert result.exit_code == 0, result.output
    file = Path("themis.toml")
    return file.read_text(encoding="utf-8"), read_config(file), result.output


BASE = {
    "sex": cells(lambda index, rng: rng.choice(["female", "male"])),
    "age": cells(lambda index, rng: rng.randrange(18, 80)),
}


def day(index: int, rng: random.Random) -> str:
    return f"19{rng.randrange(50, 99)}-{rng.randrange(1, 13):02}-{rng.randrange(1, 28):02}"


TABLES: dict[str, dict[str, list[str]]] = {
    "ids": {
        "id": cells(lambda index, rng: index + 1),
        "customer_uuid": cells(lambda index, rng: f"{rng.randrange(2**32):08x}"),
    },
    "mails": {
        "contact": cells(lambda index, rng: f"ada{index % 90}@example.org"),
        "name": cells(lambda index, rng: rng.choice(["Ada", "Alan", "Emmy"]) + " Lovelace"),
    },
    "dates": {
        "date of birth": cells(day),
        "opened": cells(lambda index, rng: f"{rng.randrange(1, 28)}.{rng.randrange(1, 13)}.1985"),
        "snapshot": cells(lambda index, rng: rng.choice(["2024-01-01", "2024-02-01"])),
    },
    "phones": {
        "contact number": cells(lambda index, rng: f"+1 555 {rng.randrange(10**7):07}"),
        "mobile": cells(lambda index, rng: 555_000_000 + rng.randrange(10**6)),
        "account": cells(lambda index, rng: 10**9 + rng.randrange(10**9)),
    },
    "free text": {
        "remark": cells(lambda index, rng: f"please call back on day {rng.randrange(10**6)} or so"),
        "address": cells(lambda index, rng: f"Musterweg {rng.randrange(40)}"),
    },
    "nearly empty": {
        "debt": cells(lambda index, rng: rng.randrange(9) if index % 20 == 0 else ""),
        "all empty": cells(lambda index, rng: ""),
        "note": cells(
            lambda index, rng: f"please call {index} at home today" if index % 20 == 0 else ""
        ),
    },
    "mixed types": {
        "level": cells(lambda index, rng: rng.choice(["1", "two", "3.5", "true", "NA"])),
        "code": cells(lambda index, rng: rng.choice(["007", "12", "x"])),
    },
    "semicolons": {"income": cells(lambda index, rng: rng.randrange(100) * 100)},
    "decimal commas": {
        "rate": cells(lambda index, rng: f"{rng.randrange(900)},{rng.randrange(100):02}")
    },
    "utf-8 with a mark": {"größe": cells(lambda index, rng: rng.choice("SML"))},
    "utf-16": {"größe": cells(lambda index, rng: rng.choice("SML"))},
    "300 columns": {
        f"question {number}": cells(lambda index, rng, n=number: (index * n) % 7)  # type: ignore[misc]
        for number in range(1, 299)
    },
}
MARKS = {"semicolons": ";", "decimal commas": ";"}
ENCODINGS = {"utf-8 with a mark": "utf-8-sig", "utf-16": "utf-16"}


def write_table(name: str, *options: str) -> tuple[str, Config, str]:
    """What becomes of one of the tables."""
    mark, encoding = MARKS.get(name, ","), ENCODINGS.get(name, "utf-8")
    return write({**TABLES[name], **BASE}, *options, mark=mark, encoding=encoding)


def facts(config: Config) -> dict[str, Any]:
    """How many rows of the people are used, and what became of the others."""
    people = Described(config).people()
    assert people is not None
    return people.facts


KEPT = {
    "ids": {},
    "mails": {},
    "dates": {"snapshot": ("2024-01-01", "2024-02-01")},
    "phones": {},
    "free text": {},
    "nearly empty": {"debt": (0, 3, 4, 5, 7, 8)},
    "mixed types": {"level": ("1", "3.5", "true", "two"), "code": ("007", "12", "x")},
    "decimal commas": {},
    "utf-8 with a mark": {"größe": ("L", "M", "S")},
    "utf-16": {"größe": ("L", "M", "S")},
}


@pytest.mark.parametrize("name", TABLES)
def test_a_file_from_any_table_names_nobody_loses_no_row_and_gives_its_reasons(name: str) -> None:
    text, config, _ = write_table(name)
    assert not [word for word in SECRETS if word in text.lower()]
    assert (facts(config)["used"], facts(config)["dropped"]) == (ROWS, 0)
    if name not in KEPT:
        return
    kept: dict[str, Any] = {each.name: each for each in config.schema}
    assert {each: kept[each].values for each in kept if each not in ("sex", "age")} == KEPT[name]
    assert name != "nearly empty" or kept["debt"].missing == 0.95
    for column in TABLES[name]:
        assert column in kept or f"# {column}: left out: " in text


@pytest.mark.parametrize(
    ("name", "column"),
    [("dates", "date of birth"), ("mails", "contact"), ("phones", "mobile")],
)
def test_nothing_personal_is_copied_even_if_it_is_called_protected(name: str, column: str) -> None:
    text, config, _ = write_table(name, "--protected", column)
    assert column not in config.schema.names
    assert not [word for word in SECRETS if word in text.lower()]


@pytest.mark.parametrize(("rows", "said"), [(1, True), (4, True), (5, False)])
def test_a_file_says_where_it_lists_texts_of_few_rows(rows: int, said: bool) -> None:
    towns = ["Aber"] * (60 - rows) + ["Villa Lovelace"] * rows
    text, _, printed = write({"town": towns, "sex": ["f", "m"] * 30})
    remark = "# Personal data? Fewer than 5 rows have some of the texts that are listed for town:"
    assert (remark in text) == said
    assert ("texts of few rows, perhaps personal: town" in printed) == said
    listed = text[text.index("town = ") : text.index("sex ")]
    Path("themis.toml").write_text(text.replace(listed, 'town = ["Aber", "Bree"]\n'))
    assert facts(read_config(Path("themis.toml")))["used"] == 60, "removing it loses no row"


EVEN = [str(7 + 3 * index) for index in range(60)]
SPREAD = [str(1 + index * index) for index in range(60)]
MANY = "different texts are too many"


@pytest.mark.parametrize(
    ("name", "values", "reason"),
    [
        ("rowno", EVEN, "it names the rows"),
        ("id2", SPREAD, "it names the rows"),
        ("customerId", SPREAD, "it names the rows"),
        ("amount", SPREAD, ""),
        ("amount", [str(10**9 + index % 12) for index in range(60)], ""),
        ("epoch", [f"{1_600_000_000 + index * index}.0" for index in range(60)], "long numbers"),
        ("share", [f"{index}%" for index in range(60)] * 2, MANY),
        ("band", [f"{index}-{index + 1}" for index in range(60)] * 2, MANY),
        ("x y", ["0", "1"] * 30, ""),
        ("Y", ["0", "1"] * 30, "taken for what is decided"),
        # What only looks personal:
        ("income band", ["10000-20000", "20000-30000", "30000-40000"] * 20, ""),
        ("country name", ["France", "Spain", "Italy"] * 20, ""),
        ("month", ["2024-01", "2024-02", "2024-03"] * 20, ""),
        ("answer", ["yes, as often as I can", "no, not at all I think"] * 30, ""),
    ],
)
def test_columns_are_told_by_their_names_and_values(
    name: str, values: list[str], reason: str
) -> None:
    columns = {name: [f'"{value}"' for value in values], "sex": ["f", "m"] * (len(values) // 2)}
    text, config, _ = write(columns)
    assert (name in config.schema.names) == (not reason)
    assert f"# {name}: left out: " in text or not reason
    assert reason in text.replace("\n# ", " ")


@pytest.mark.parametrize("cell", ["7", "x", "1 ", "a@", "b.", "1,", "(", "+"])
def test_cells_as_long_as_files_are_told_in_linear_time(cell: str) -> None:
    long = (cell * 120_000)[:120_000]  # in quadratic time it is minutes
    _, config, _ = write({"note": [f'"{long}{end}"' for end in "wxyz"], "sex": ["f", "m"] * 2})
    assert "sex" in config.schema.names
