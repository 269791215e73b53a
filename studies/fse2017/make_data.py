"""Makes the files in `data/` from the original files, losslessly, as integers.

    python -m studies.fse2017.make_data FOLDER

FOLDER holds `adult.data`, `adult.test` and `german.data` as UCI publishes them. Their checksums are
verified first. Text values become their place in the code book, −1 where the original has `?`;
numbers stay as they are. Left out is only education-num, which says the same as education (that is
verified, too). Running it again gives the same bytes.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import lzma
from pathlib import Path

DATA = Path(__file__).parent / "data"
ORIGINALS = {
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "german.data": "b21f3d81db8071257d5ff1deaeba1fd4303b62712e6fcc9715c7a86202cb5871",
}
MISSING = -1
LEFT_OUT = "education-num"

ADULT = [
    "age", "workclass", "fnlwgt", "education", "education-num", "marital-status", "occupation",
    "relationship", "race", "sex", "capital-gain", "capital-loss", "hours-per-week",
    "native-country", "income",
]  # fmt: skip
GERMAN = [
    "status", "duration", "history", "purpose", "amount", "savings", "employment", "rate", "gender",
    "debtors", "residence", "property", "age", "plans", "housing", "credits", "job", "dependants",
    "telephone", "foreign", "credit",
]  # fmt: skip

# What the codes of german.data stand for, in the order of our codes.
MEANINGS = {
    "A11": "balance below 0", "A12": "balance below 200", "A13": "balance 200 or more",
    "A14": "no account here",
    "A30": "no credits taken", "A31": "all paid back here", "A32": "paid back so far",
    "A33": "delays in the past", "A34": "critical, or credits elsewhere",
    "A40": "new car", "A41": "used car", "A42": "furniture", "A43": "radio or television",
    "A44": "appliances", "A45": "repairs", "A46": "education", "A47": "vacation",
    "A48": "retraining", "A49": "business", "A410": "other",
    "A61": "below 100", "A62": "100 to 500", "A63": "500 to 1,000", "A64": "1,000 or more",
    "A65": "none known",
    "A71": "unemployed", "A72": "below 1 year", "A73": "1 to 4 years", "A74": "4 to 7 years",
    "A75": "7 years or more",
    "A91": "male, divorced or separated", "A92": "female", "A93": "male, single",
    "A94": "male, married or widowed",
    "A101": "none", "A102": "co-applicant", "A103": "guarantor",
    "A121": "real estate", "A122": "savings agreement or life insurance", "A123": "car or other",
    "A124": "none known",
    "A141": "bank", "A142": "stores", "A143": "none",
    "A151": "rent", "A152": "own", "A153": "free",
    "A171": "unskilled, not resident", "A172": "unskilled, resident", "A173": "skilled",
    "A174": "highly qualified",
    "A191": "none", "A192": "registered",
    "A201": "yes", "A202": "no",
    "1": "good", "2": "bad",
}  # fmt: skip
CodeBook = dict[str, list[str] | None]  # the texts of a column in the order of codes; None: numbers


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("folder", type=Path)
    folder = parser.parse_args().folder
    texts = {name: _original(folder / name, digest) for name, digest in ORIGINALS.items()}
    adult = [
        [cell.strip() for cell in line.rstrip(".").split(",")]
        for name in ("adult.data", "adult.test")
        for line in texts[name].splitlines()
        if line and not line.startswith("|")
    ]
    _check_left_out(adult)
    german = [line.split() for line in texts["german.data"].splitlines() if line]
    books = {"adult": write("adult", ADULT, adult), "german": write("german", GERMAN, german)}
    (DATA / "codebook.json").write_text(json.dumps(books, indent=1) + "\n")
    for path in sorted(DATA.glob("*.xz")):
        print(hashlib.sha256(path.read_bytes()).hexdigest(), path.stat().st_size, path.name)


def _original(path: Path, digest: str) -> str:
    data = path.read_bytes()
    found = hashlib.sha256(data).hexdigest()
    if found != digest:
        raise SystemExit(f"{path}: sha256 is {found}, expected {digest}")
    return data.decode()


def _check_left_out(adult: list[list[str]]) -> None:
    place = ADULT.index(LEFT_OUT)
    pairs = {(row[place - 1], row[place]) for row in adult}
    if len(pairs) != len({text for text, _ in pairs}):
        raise SystemExit(f"{LEFT_OUT} does not follow from the column before it")


def write(name: str, columns: list[str], rows: list[list[str]]) -> CodeBook:
    """Write the table as compressed text, a line per column; what integers mean is returned."""
    book: CodeBook = {}
    lines: list[str] = []
    for column, cells in zip(columns, zip(*rows, strict=True), strict=True):
        if column == LEFT_OUT:
            continue
        codes = _codes(column, cells)
        book[column] = None if codes is None else [MEANINGS.get(text, text) for text in codes]
        numbers = [_code(cell, codes) for cell in cells]
        lines.append(f"{column},{','.join(map(str, numbers))}\n")
    data = "".join(lines).encode()
    path = DATA / f"{name}.csv.xz"  # by column: a third smaller than by row
    path.write_bytes(lzma.compress(data, preset=9 | lzma.PRESET_EXTREME))
    return book


def _codes(column: str, cells: tuple[str, ...]) -> list[str] | None:
    """The texts of a column in the order of their codes, or None if it holds numbers."""
    known = {cell for cell in cells if cell != "?"}
    if all(cell.isdigit() for cell in known) and column != "credit":
        return None
    if column == "purpose":
        return [code for code in MEANINGS if code.startswith("A4")]  # one of them has no people
    return [code for code in MEANINGS if code in known] or sorted(known)


def _code(cell: str, codes: list[str] | None) -> int:
    if cell == "?":
        return MISSING
    return int(cell) if codes is None else codes.index(cell)


if __name__ == "__main__":
    main()
