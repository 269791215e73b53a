"""The people that the systems were trained on: two data sets, coded, sampled, and their schemas.

Inputs are coded as in the original experiments: every characteristic takes the codes 0 … size − 1.
Age is counted in decades, the sampling weight in 20,000, capital gain in 1,000, loss in 100, the
amount of a credit in 100; what exceeds the last code gets the last. People with missing values are
left out, which leaves the 45,222 that the paper calls 45K.
"""

from __future__ import annotations

import hashlib
import json
import lzma
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import themis

DATA = Path(__file__).parent / "data"
CHECKSUMS = {
    "adult": "026aba9fa5bb71c42a15010023888c85be511c1f1f02e3f432aa0dcb607297e1",
    "german": "f3b157aa64f390f4a6c942b20539b2182688ca44cd46fc16a91c08a743c08e61",
}
SEED = 2017

Ints = NDArray[np.int64]
Bools = NDArray[np.bool_]


@dataclass(frozen=True)
class Column:
    """A characteristic: where its codes come from, and what they stand for."""

    name: str
    original: str
    size: int
    unit: int = 0  # numbers are divided by it; 0: texts, which are codes already
    least: int = 0  # the number that code 0 stands for

    @property
    def nominal(self) -> bool:
        return self.unit == 0


CENSUS = (
    Column("age", "age", 10, 10),
    Column("workclass", "workclass", 8),
    Column("weight", "fnlwgt", 70, 20_000),
    Column("education", "education", 16),
    Column("marital", "marital-status", 7),
    Column("occupation", "occupation", 14),
    Column("relation", "relationship", 6),
    Column("race", "race", 5),
    Column("gender", "sex", 2),
    Column("gain", "capital-gain", 100, 1_000),
    Column("loss", "capital-loss", 40, 100),
    Column("hours", "hours-per-week", 100, 1),
    Column("country", "native-country", 41),
)
CREDIT = (
    Column("status", "status", 4),
    Column("duration", "duration", 80, 1),
    Column("history", "history", 5),
    Column("purpose", "purpose", 11),
    Column("amount", "amount", 200, 100),
    Column("savings", "savings", 5),
    Column("employment", "employment", 5),
    Column("rate", "rate", 4, 1, 1),
    Column("gender", "gender", 4),
    Column("debtors", "debtors", 3),
    Column("residence", "residence", 4, 1, 1),
    Column("property", "property", 4),
    Column("age", "age", 75, 1, 1),
    Column("plans", "plans", 3),
    Column("housing", "housing", 3),
    Column("credits", "credits", 4, 1, 1),
    Column("job", "job", 4),
    Column("dependants", "dependants", 3, 1),
    Column("telephone", "telephone", 2),
    Column("foreign", "foreign", 2),
)


@dataclass(frozen=True)
class Source:
    """A data set: its file, its characteristics, its good outcome, and how many people to take."""

    name: str
    file: str
    columns: tuple[Column, ...]
    outcome: str
    favourable: str
    sample: int
    favoured: Mapping[str, str]  # per sensitive characteristic: how texts of the better-off begin
    explanatory: str  # for system D: what may explain a difference

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(column.size for column in self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(column.name for column in self.columns)

    def place(self, name: str) -> int:
        return self.names.index(name)


SOURCES = {
    "census": Source(
        name="census",
        file="adult",
        columns=CENSUS,
        outcome="income",
        favourable=">50K",
        sample=15_500,
        favoured={"gender": "Male", "race": "White"},
        explanatory="occupation",
    ),
    "credit": Source(
        name="credit",
        file="german",
        columns=CREDIT,
        outcome="credit",
        favourable="good",
        sample=600,
        favoured={"gender": "male"},
        explanatory="job",
    ),
}


@dataclass(frozen=True)
class People:
    """Coded people, rows = people, columns = characteristics, and who has the good outcome."""

    source: Source
    codes: Ints
    good: Bools

    def __len__(self) -> int:
        return len(self.good)

    def take(self, places: Ints) -> People:
        return People(self.source, self.codes[places], self.good[places])

    def deprived(self, sensitive: str) -> Bools:
        """Who belongs to the group that is worse off: women; people who are not white."""
        place = self.source.place(sensitive)
        texts = code_book(self.source.file)[self.source.columns[place].original] or ()
        better = self.source.favoured[sensitive]
        return np.array([not text.startswith(better) for text in texts])[self.codes[:, place]]


@lru_cache
def code_book(file: str) -> dict[str, list[str] | None]:
    """What the codes of each column of a file stand for; None for numbers."""
    books: dict[str, dict[str, list[str] | None]] = json.loads((DATA / "codebook.json").read_text())
    return books[file]


@lru_cache
def table(file: str) -> dict[str, Ints]:
    """A file of `data/` as it is: column name → integers, −1 where a value is missing."""
    packed = (DATA / f"{file}.csv.xz").read_bytes()
    found = hashlib.sha256(packed).hexdigest()
    if found != CHECKSUMS[file]:
        raise ValueError(f"{file}.csv.xz: sha256 is {found}, expected {CHECKSUMS[file]}")
    lines = lzma.decompress(packed).decode().splitlines()
    split = [line.partition(",") for line in lines]
    return {name: np.array(cells.split(","), dtype=np.int64) for name, _, cells in split}


@lru_cache
def everyone(name: str) -> People:
    """All people of a data set without missing values, coded."""
    source = SOURCES[name]
    raw = table(source.file)
    complete = np.all([values >= 0 for values in raw.values()], axis=0)
    codes = np.column_stack([_coded(raw[c.original], c) for c in source.columns])
    texts = code_book(source.file)[source.outcome]
    assert texts is not None
    good = raw[source.outcome] == texts.index(source.favourable)
    return People(source, codes[complete], good[complete])


def _coded(values: Ints, column: Column) -> Ints:
    if column.nominal:
        return values
    return np.clip((values - column.least) // column.unit, 0, column.size - 1)


@lru_cache
def balanced(name: str, *, seed: int = SEED) -> tuple[People, People]:
    """The paper's sample, half of it with the good outcome, and the people who are not in it."""
    people = everyone(name)
    half = people.source.sample // 2
    rng = np.random.default_rng(seed)
    chosen = np.zeros(len(people), dtype=bool)
    for outcome in (True, False):
        chosen[rng.choice(np.flatnonzero(people.good == outcome), half, replace=False)] = True
    return people.take(np.flatnonzero(chosen)), people.take(np.flatnonzero(~chosen))


def schema(source: Source) -> themis.Schema:
    """The inputs of every system that was trained on this source: whole numbers from 0."""
    return themis.Schema({column.name: range(column.size) for column in source.columns})
