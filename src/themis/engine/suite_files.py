"""Suites in files: CSV, JSON lines or Parquet, by whole columns."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from themis.engine.replacing import parquet_footer, text_at_risk
from themis.errors import Mistake, RequestError
from themis.inputs.characteristics import Characteristic, Values
from themis.inputs.row_files import PARQUET_START
from themis.inputs.schema import Schema

# Up to so many values, all texts of a characteristic are kept; twice as many are some megabytes.
TABLE_LIMIT = 65_536
GROUP_ROWS = 65_536  # built at once: memory stays flat; half or twice changes little
FLUSH_SECONDS = 1.0  # of rows at most are lost if the process is killed

PREFIX = "themis_"
MOST_PREFIXES = 4  # looked for, one behind the other
IN_EVERY_TEST = ("test", "against", "base")  # columns that no suite lacks
QUOTED = frozenset(',"\n\r')  # what a text of CSV may hold only in quotes
_KEYS, _SEPARATORS = re.compile(r'"([^"]+)"\s*:'), re.compile("[,;\t]")
SUFFIXES = (".csv", ".jsonl", ".ndjson", ".parquet", ".pq")


@dataclass(frozen=True)
class OutputColumn:
    """One output of some rows: distinct values, and which of them each row has."""

    values: Sequence[Any]
    favourable: Sequence[bool | None]  # of each value; None where nothing says so
    places: NDArray[np.int64]  # −1: it failed

    def part(self, rows: slice) -> OutputColumn:
        """Only these rows."""
        return OutputColumn(self.values, self.favourable, self.places[rows])


@dataclass(frozen=True)
class SuiteRows:
    """Some rows of a suite, by column."""

    tests: NDArray[np.int64]  # 0: the input belongs to no test
    against: str
    base: NDArray[np.bool_]
    codes: NDArray[Any]
    outputs: Sequence[OutputColumn]
    failures: Sequence[str]  # of each row; empty where none failed

    def __len__(self) -> int:
        return len(self.tests)

    def part(self, start: int, stop: int) -> SuiteRows:
        """The rows from start to stop."""
        rows = slice(start, stop)
        return SuiteRows(
            self.tests[rows],
            self.against,
            self.base[rows],
            self.codes[rows],
            [each.part(rows) for each in self.outputs],
            self.failures[rows] if self.failures else (),
        )


class SuiteFile(Protocol):
    """A file that rows are appended to."""

    def write(self, rows: SuiteRows) -> None:
        """Append rows."""

    def close(self) -> None:
        """Make the file complete."""


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
    if not text:
        return True
    if text.startswith(PARQUET_START.decode()):
        footer = parquet_footer(path)
        return all(name.encode() in footer for name in IN_EVERY_TEST)
    header = text.splitlines()[0]
    found = _KEYS.findall(header) if header.startswith("{") else _SEPARATORS.split(header)
    names = {each.strip().strip('"') for each in found}
    return any(
        all(f"{PREFIX * times}{name}" in names for name in IN_EVERY_TEST)
        for times in range(MOST_PREFIXES + 1)
    )


# Text -------------------------------------------------------------------------------------
class _TextFile:
    """CSV, or one JSON object per line; what was written is kept even if the process is killed."""

    def __init__(self, path: Path, schema: Schema, own: OwnColumns, *, csv: bool) -> None:
        names = [own.test, own.against, own.base, *schema.names, *own.back]
        self._spell = spell_csv if csv else spell_json
        self._names = [""] * len(names) if csv else [f"{spell_json(name)}: " for name in names]
        self._between, self._ends = ("," if csv else ", "), ("", "") if csv else ("{", "}")
        self._columns = [_Texts(each, self._spell) for each in schema]
        self._last = [True] if own.of_people else []
        self._file = path.open("w", encoding="utf-8", errors="replace", newline="\n")
        self._flushed = time.monotonic()
        if csv:
            self._file.write(",".join(map(spell_csv, names)) + "\n")

    def write(self, rows: SuiteRows) -> None:
        start, end = self._ends
        for first in range(0, len(rows), GROUP_ROWS):
            columns = self._texts(rows.part(first, first + GROUP_ROWS))
            named = [
                texts if not name else [name + text for text in texts]
                for name, texts in zip(self._names, columns, strict=True)
            ]
            lines = map(self._between.join, zip(*named, strict=True))
            self._file.writelines(f"{start}{line}{end}\n" for line in lines)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()

    def _texts(self, rows: SuiteRows) -> Iterator[list[str]]:
        """Each column's texts."""
        spell, count = self._spell, len(rows)
        nothing = spell(None)
        yield [str(test) if test else nothing for test in rows.tests.tolist()]
        yield [spell(rows.against)] * count
        yield _take([spell(False), spell(True)], rows.base.astype(np.int64))
        for place, column in enumerate(self._columns):
            yield column.of(rows.codes[:, place]).tolist()
        for each in rows.outputs:  # −1 as a place means the last entry
            yield _take([*map(spell, each.values), nothing], each.places)
            yield _take([*map(spell, each.favourable), nothing], each.places)
        yield [spell(kind or None) for kind in rows.failures] or [nothing] * count
        for value in self._last:
            yield [spell(value)] * count


class _Texts:
    """The texts of one characteristic's values, made once where there are not too many."""

    def __init__(self, characteristic: Characteristic, spell: Callable[[Any], str | None]) -> None:
        self._characteristic, self._spell = characteristic, spell
        self._known: NDArray[Any] | None = None
        if characteristic.code_count <= TABLE_LIMIT:
            self._known = self._spelled(np.arange(characteristic.code_count))

    def of(self, codes: NDArray[Any]) -> NDArray[Any]:
        """The texts of these codes."""
        texts, places = self._known, codes
        if texts is None:
            present, places = np.unique(codes, return_inverse=True)
            texts = self._spelled(present)
        taken: NDArray[Any] = texts[places]
        return taken

    def _spelled(self, codes: NDArray[Any]) -> NDArray[Any]:
        values = self._characteristic.decode(codes).tolist()
        texts = np.empty(len(values), dtype=object)
        texts[:] = [*map(self._spell, values)]
        return texts


def _take(texts: list[str], places: NDArray[np.int64]) -> list[str]:
    taken: list[str] = np.array(texts, dtype=object)[places].tolist()
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
        self._columns = [_ArrowColumn(each) for each in schema]
        kinds = dict.fromkeys(own.back, pa.string())
        kinds |= dict.fromkeys((*own.favourable, own.personal), pa.bool_())
        self._last = [True] if own.of_people else []
        fields = [
            (own.test, pa.int64()),
            (own.against, pa.string()),
            (own.base, pa.bool_()),
            *((each.name, column.kind) for each, column in zip(schema, self._columns, strict=True)),
            *((name, kinds[name]) for name in own.back),
        ]
        self._schema = pa.schema(fields)
        self._writer = parquet.ParquetWriter(path, self._schema)
        self._waiting: list[Any] = []
        self._rows = 0

    def write(self, rows: SuiteRows) -> None:
        for start in range(0, len(rows), GROUP_ROWS):
            part = rows.part(start, start + GROUP_ROWS)
            self._waiting.append(self._batch(part))
            self._rows += len(part)
            if self._rows >= GROUP_ROWS:
                self._flush()

    def close(self) -> None:
        self._flush()
        self._writer.close()

    def _flush(self) -> None:
        if self._waiting:
            table = self._pa.Table.from_batches(self._waiting, self._schema)
            self._writer.write_table(table)
        self._waiting, self._rows = [], 0

    def _batch(self, rows: SuiteRows) -> Any:
        pa = self._pa
        arrays = [
            pa.array(rows.tests, mask=rows.tests == 0),
            pa.repeat(rows.against, len(rows)),
            pa.array(rows.base),
            *(column.array(rows.codes[:, place]) for place, column in enumerate(self._columns)),
            *(column for each in rows.outputs for column in self._output(each)),
            pa.array([each or None for each in rows.failures], pa.string())
            if rows.failures
            else pa.nulls(len(rows), pa.string()),
            *(pa.repeat(each, len(rows)) for each in self._last),
        ]
        return pa.record_batch(arrays, schema=self._schema)

    def _output(self, column: OutputColumn) -> Iterator[Any]:
        """An output as text, and whether it is favourable."""
        pa = self._pa
        places = pa.array(column.places, mask=column.places < 0)
        yield pa.array([plain_text(value) for value in column.values], pa.string()).take(places)
        yield pa.array(column.favourable, pa.bool_()).take(places)


class _ArrowColumn:
    """The values of one characteristic as Arrow has them."""

    def __init__(self, characteristic: Characteristic) -> None:
        import pyarrow as pa

        self._decode: Callable[[NDArray[Any]], NDArray[Any]] = characteristic.decode
        if not isinstance(characteristic, Values) or characteristic.numeric:
            given = (characteristic.value(0), *characteristic.extra)
            whole = all(isinstance(each, int) for each in given)
            self.kind = pa.int64() if whole else pa.float64()
        elif characteristic.boolean:
            self.kind = pa.bool_()
        else:
            self.kind = pa.string()
            self._decode = _Texts(characteristic, _text_or_nothing).of

    def array(self, codes: NDArray[Any]) -> Any:
        """The values of these codes."""
        import pyarrow as pa

        return pa.array(self._decode(codes), self.kind)


def _text_or_nothing(value: Any) -> str | None:
    return None if value is None else plain_text(value)
