"""Suites in files: CSV, JSON lines or Parquet, by whole columns."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.replacing import parquet_footer, text_at_risk
from themis.errors import Mistake, RequestError
from themis.inputs.characteristics import Characteristic, Values
from themis.inputs.schema import Schema
from themis.inputs.tables import PARQUET_START

GROUP_ROWS = 65_536  # built at once: memory stays flat; half or twice changes little

PREFIX = "themis_"
IN_EVERY_TEST = ("test", "against", "base")  # columns that no suite lacks
QUOTED = frozenset(',"\n\r')  # what a text of CSV may hold only in quotes
SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet", ".pq")


@dataclass(frozen=True)
class Column:
    """One column of some rows: distinct values, None for nothing, and which of them is whose."""

    values: Sequence[Any]
    places: NDArray[np.int64]

    @classmethod
    def of(cls, codes: NDArray[Any], decode: Callable[[NDArray[Any]], NDArray[Any]]) -> Column:
        """A column of codes."""
        present, places = np.unique(codes, return_inverse=True)
        return cls(decode(present).tolist(), places)

    @classmethod
    def everywhere(cls, value: Any, count: int) -> Column:
        """A column of one value."""
        return cls([value], np.zeros(count, dtype=np.int64))


@dataclass(frozen=True)
class OwnColumns:
    """What the columns besides the characteristics are called."""

    test: str
    against: str
    base: str
    outputs: tuple[str, ...]
    favourable: tuple[str, ...]
    failure: str
    personal: str  # a column that says `true`, only there where inputs are rows of people
    of_people: bool = False

    @classmethod
    def of(cls, outputs: Sequence[str], prefix: str = "") -> OwnColumns:
        """The names for these outputs: `output.limit`; just `output` where there is only one."""
        endings = [f".{name}" for name in outputs] if len(outputs) > 1 else [""]
        return cls(
            f"{prefix}test",
            f"{prefix}against",
            f"{prefix}base",
            tuple(f"{prefix}output{ending}" for ending in endings),
            tuple(f"{prefix}favourable{ending}" for ending in endings),
            f"{prefix}failure",
            f"{prefix}personal_data",
        )

    @classmethod
    def beside(cls, names: Iterable[str], outputs: Sequence[str]) -> OwnColumns:
        """The same with a prefix where names would clash with those of characteristics."""
        taken, prefix = set(names), ""
        while taken.intersection(cls.of(outputs, prefix).all):
            prefix += PREFIX
        return cls.of(outputs, prefix)

    @property
    def back(self) -> list[str]:
        """The columns behind the characteristics."""
        pairs = zip(self.outputs, self.favourable, strict=True)
        own = [*(name for pair in pairs for name in pair), self.failure]
        return [*own, self.personal] if self.of_people else own

    @property
    def all(self) -> list[str]:
        """All of them, in their order."""
        return list(dict.fromkeys([self.test, self.against, self.base, *self.back, self.personal]))


def open_suite(path: Path, place: Path, schema: Schema, own: OwnColumns) -> SuiteFile:
    """A new file, of the kind that the path says; raises RequestError where there can be none.

    It is written at `place`.
    """
    suffix = path.suffix.lower()
    try:
        if suffix in (".parquet", ".pq"):
            return _ParquetFile(place, schema, own)
        return _TextFile(place, schema, own, csv=suffix == ".csv")
    except OSError as error:
        raise suite_mistake(path, f"can't be written: {error.strerror or error}") from None


def suite_mistake(path: Path, problem: str, remedy: str = "choose another place") -> RequestError:
    """What is wrong with the place of a suite."""
    return RequestError([Mistake("suite", "suite", f"{str(path)!r} {problem}", remedy)])


def check_place(path: Path) -> None:
    """Raise RequestError where there can be no suite."""
    if path.suffix.lower() not in SUFFIXES:
        raise suite_mistake(path, "is of no known kind", f"end it in {', '.join(SUFFIXES)}")
    if path.is_dir():
        raise suite_mistake(path, "is a folder", "name a file")
    if not path.parent.is_dir():
        raise suite_mistake(path, "is in a folder that is not there", "create it first")
    target = path if path.exists() else path.parent
    if not os.access(target, os.W_OK):
        raise suite_mistake(path, "can't be written")
    if not is_no_loss(path):
        problem = "is there already and is no suite: it would be lost"
        raise suite_mistake(path, problem, "name another file, or remove it")


def is_no_loss(path: Path) -> bool:
    """Whether a suite may take this place: nothing is there, or an earlier suite of any kind."""
    text = text_at_risk(path)
    if text.startswith(PARQUET_START.decode()):
        names = re.findall(r"\w+", parquet_footer(path).decode("ascii", "replace"))
    else:
        names = re.findall(r"\w+", text.partition("\n")[0])
    bare = {re.sub(f"^({PREFIX})+", "", name) for name in names}
    return not text or bare.issuperset(IN_EVERY_TEST)


# Text -------------------------------------------------------------------------------------
class _TextFile:
    """CSV, or one JSON object per line; what was written is kept even if the process is killed."""

    def __init__(self, path: Path, schema: Schema, own: OwnColumns, *, csv: bool) -> None:
        self._spell = spell_csv if csv else spell_json
        names = [own.test, own.against, own.base, *schema.names, *own.back]
        self._names = [""] * len(names) if csv else [f"{spell_json(name)}: " for name in names]
        self._between, self._ends = ("," if csv else ", "), ("", "") if csv else ("{", "}")
        self._file = path.open("w", encoding="utf-8", errors="replace", newline="\n")
        self._flushed = time.monotonic()
        if csv:
            self._file.write(",".join(map(spell_csv, names)) + "\n")

    def write(self, columns: Sequence[Column]) -> None:
        start, end = self._ends
        texts = map(self._texts, self._names, columns)
        lines = map(self._between.join, zip(*texts, strict=True))
        self._file.writelines(f"{start}{line}{end}\n" for line in lines)
        # The rows of a second are lost if the process is killed.
        if time.monotonic() - self._flushed > 1.0:
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()

    def _texts(self, name: str, column: Column) -> list[str]:
        """The texts of a column, each behind its name where a line has names."""
        texts = np.array([name + self._spell(value) for value in column.values], dtype=object)
        taken: list[str] = texts[column.places].tolist()
        return taken


def spell_csv(value: Any) -> str:
    """A value as CSV has it: text in quotes where it must be, truth values as JSON has them."""
    text = "" if value is None else plain_text(value)
    return '"' + text.replace('"', '""') + '"' if QUOTED.intersection(text) else text


def plain_text(value: Any) -> str:
    """A value as text, without quotes."""
    return json.dumps(value) if isinstance(value, bool | list | tuple | dict) else str(value)


def spell_json(value: Any) -> str:
    """A value as JSON has it."""
    return json.dumps(value, ensure_ascii=False)


# Parquet ----------------------------------------------------------------------------------
class _ParquetFile:
    """Parquet; it can be read once it is closed."""

    def __init__(self, path: Path, schema: Schema, own: OwnColumns) -> None:
        try:
            import pyarrow as pa
            from pyarrow import parquet
        except ImportError:
            remedy = "pip install 'themis-fairness[frames]', or end it in .csv"
            raise suite_mistake(path, "needs pyarrow, which is not installed", remedy) from None
        self._pa = pa
        kinds = dict.fromkeys(own.back, "string")
        kinds |= dict.fromkeys((*own.favourable, own.personal), "bool_")
        fields = {own.test: "int64", own.against: "string", own.base: "bool_"}
        fields |= {each.name: _arrow_kind(each) for each in schema}
        fields |= {name: kinds[name] for name in own.back}
        self._schema = pa.schema([(name, getattr(pa, kind)()) for name, kind in fields.items()])
        self._writer = parquet.ParquetWriter(path, self._schema)

        self._waiting: list[Any] = []  # as many small groups of rows would be slow to read

    def write(self, columns: Sequence[Column]) -> None:
        arrays = [*map(self._array, self._schema.types, columns)]
        self._waiting.append(self._pa.record_batch(arrays, schema=self._schema))
        if sum(map(len, self._waiting)) >= GROUP_ROWS:
            self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        self._writer.write_table(self._pa.Table.from_batches(self._waiting, self._schema))
        self._waiting = []

    def _array(self, kind: Any, column: Column) -> Any:
        values = column.values
        if self._pa.types.is_string(kind):
            values = [None if value is None else plain_text(value) for value in values]
        return self._pa.array(values, kind).take(self._pa.array(column.places))


def _arrow_kind(characteristic: Characteristic) -> str:
    """What Arrow calls the values of a characteristic."""
    if not isinstance(characteristic, Values) or characteristic.numeric:
        given = (characteristic.value(0), *characteristic.extra)
        return "int64" if all(isinstance(each, int) for each in given) else "float64"
    return "bool_" if characteristic.boolean else "string"


SuiteFile: TypeAlias = _TextFile | _ParquetFile
