"""Tables as they are found: with names and phones in them, half empty, in odd encodings."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

ROWS = 120
SECRETS = ("ada", "lovelace", "example.org", "555", "1985", "please call", "musterweg")


def cells(make: Callable[[int, random.Random], object], count: int = ROWS) -> list[str]:
    rng = random.Random(5)
    return [str(make(index, rng)) for index in range(count)]


def write(
    path: Path, columns: dict[str, list[str]], mark: str = ",", encoding: str = "utf-8"
) -> Path:
    names = mark.join(columns)
    rows = [mark.join(row) for row in zip(*columns.values(), strict=True)]
    path.write_bytes("\n".join([names, *rows, ""]).encode(encoding))
    return path


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


def write_table(name: str, folder: Path) -> Path:
    """One of the tables as a CSV file."""
    columns = {**TABLES[name], **BASE}
    mark, encoding = MARKS.get(name, ","), ENCODINGS.get(name, "utf-8")
    return write(folder / "people.csv", columns, mark, encoding)
