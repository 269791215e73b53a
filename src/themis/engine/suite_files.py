"""Suites in files: CSV, JSON lines or Parquet, by whole columns.

Texts are put together without a loop over rows: every value's bytes are a row of a matrix, padded
with a byte that UTF-8 never uses; the rows that are wanted are taken, and the padding is dropped.
"""

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
from themis.inputs.characteristics import Characteristic, Integers, Values
from themis.inputs.row_files import PARQUET_START
from themis.inputs.schema import Schema

Bytes = NDArray[np.uint8]

PAD = 255  # no byte of UTF-8
TABLE_LIMIT = 65_536  # up to so many values, all texts of a characteristic are kept
BATCH_BYTES = 2**23  # built at once: memory stays flat
GROUP_ROWS = 65_536  # of a row group of Parquet
FLUSH_SECONDS = 1.0

PREFIX = "themis_"
MOST_PREFIXES = 4  # looked for, one behind the other
IN_EVERY_TEST = ("test", "against", "base")  # columns that no suite lacks
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
        self._names = [own.test, own.against, own.base, *schema.names, *own.back]
        self._spell = spell_csv if csv else spell_json
        self._csv = csv
        self._columns = [_TextColumn(each, self._spell) for each in schema]
        self._last = [self._spell(True)] if own.of_people else []
        self._file = path.open("wb", buffering=2**20)
        self._flushed = time.monotonic()
        if csv:
            self._file.write(b",".join(map(spell_csv, self._names)) + b"\n")

    def write(self, rows: SuiteRows) -> None:
        start, step = 0, 4_096
        while start < len(rows):
            pieces = self._pieces(rows.part(start, start + step))
            flat = np.concatenate(pieces, axis=1).ravel()
            self._file.write(flat[flat != PAD].data)
            start += step
            width = sum(piece.shape[1] for piece in pieces)
            step = max(BATCH_BYTES // width, 1)
        if time.monotonic() - self._flushed > FLUSH_SECONDS:
            self._file.flush()
            self._flushed = time.monotonic()

    def close(self) -> None:
        self._file.close()

    def _pieces(self, rows: SuiteRows) -> list[Bytes]:
        count = len(rows)
        cells = [
            self._tests(rows.tests),
            _repeat(self._spell(rows.against), count),
            self._table([False, True])[rows.base.astype(np.int64)],
            *(column.texts(rows.codes[:, place]) for place, column in enumerate(self._columns)),
            *self._outcome(rows),
            *(_repeat(each, count) for each in self._last),
        ]
        pieces: list[Bytes] = []
        for place, (name, cell) in enumerate(zip(self._names, cells, strict=True)):
            before = b"," if place else b""
            if not self._csv:
                before = (b", " if place else b"{") + spell_json(name) + b": "
            pieces += [_repeat(before, count), cell]
        return [*pieces, _repeat(b"\n" if self._csv else b"}\n", count)]

    def _tests(self, tests: NDArray[np.int64]) -> Bytes:
        texts = _digits(tests)
        if (tests == 0).any():
            nothing = self._spell(None)
            wide = np.full((len(tests), max(texts.shape[1], len(nothing))), PAD, dtype=np.uint8)
            wide[:, : texts.shape[1]] = texts
            wide[tests == 0] = PAD
            wide[tests == 0, : len(nothing)] = np.frombuffer(nothing, np.uint8)
            return wide
        return texts

    def _outcome(self, rows: SuiteRows) -> list[Bytes]:
        """The outputs, each with whether it is favourable, and the failure."""
        pieces = []
        for each in rows.outputs:  # −1 as a place means the last entry
            pieces.append(self._table([*each.values, None])[each.places])
            pieces.append(self._table([*each.favourable, None])[each.places])
        if not rows.failures:
            return [*pieces, _repeat(self._spell(None), len(rows))]
        kinds = sorted(set(rows.failures))
        places = np.array([kinds.index(kind) for kind in rows.failures], dtype=np.int64)
        return [*pieces, self._table([kind or None for kind in kinds])[places]]

    def _table(self, values: Sequence[Any]) -> Bytes:
        return _matrix([self._spell(value) for value in values])


class _TextColumn:
    """The texts of one characteristic's values, made once where there are not too many."""

    def __init__(self, characteristic: Characteristic, spell: Callable[[Any], bytes]) -> None:
        self._characteristic = characteristic
        self._spell = spell
        self._known: Bytes | None = None
        if characteristic.size <= TABLE_LIMIT:
            every = characteristic.decode(np.arange(characteristic.code_count)).tolist()
            self._known = _matrix([spell(value) for value in every])

    def texts(self, codes: NDArray[Any]) -> Bytes:
        """The texts of these codes, one per row."""
        if self._known is not None:
            return np.take(self._known, codes, axis=0)
        plain = self._characteristic.code_count == self._characteristic.size
        if isinstance(self._characteristic, Integers) and plain:
            return _digits(self._characteristic.decode(codes))
        present, places = np.unique(codes, return_inverse=True)
        values = self._characteristic.decode(present).tolist()
        return _matrix([self._spell(value) for value in values])[places]


def spell_csv(value: Any) -> bytes:
    """A value as CSV has it: text in quotes where it must be, truth values as JSON has them."""
    if value is None:
        return b""
    text = plain_text(value)
    if any(each in text for each in ',"\n\r'):
        text = '"' + text.replace('"', '""') + '"'
    return text.encode("utf-8", "replace")


def plain_text(value: Any) -> str:
    """A value as text, without quotes."""
    return json.dumps(value) if isinstance(value, bool | list | tuple | dict) else str(value)


def spell_json(value: Any) -> bytes:
    """A value as JSON has it."""
    return json.dumps(value, ensure_ascii=False).encode("utf-8", "replace")


def _matrix(texts: Sequence[bytes]) -> Bytes:
    """Texts as rows of bytes, padded."""
    width = max(map(len, texts), default=0)
    joined = b"".join(text.ljust(width, b"\xff") for text in texts)
    return np.frombuffer(joined, np.uint8).reshape(len(texts), width)


def _digits(numbers: NDArray[Any]) -> Bytes:
    """Whole numbers as rows of bytes, padded; several times as fast as NumPy writes them."""
    rest = np.abs(numbers)
    largest = int(rest.max(initial=0))
    rest = rest.astype(np.uint32 if largest < 2**32 else np.uint64)
    width = len(str(largest))
    matrix = np.full((len(numbers), width + 1), PAD, dtype=np.uint8)
    matrix[numbers < 0, 0] = ord("-")
    for place in range(width, 0, -1):
        left = rest // 10
        digit = (rest - 10 * left).astype(np.uint8) + ord("0")
        matrix[:, place] = digit if place == width else np.where(rest, digit, PAD)
        rest = left
    return matrix


def _repeat(text: bytes, count: int) -> Bytes:
    return np.broadcast_to(np.frombuffer(text, np.uint8), (count, len(text)))


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

        self._characteristic = characteristic
        self._texts: Any = None
        if not isinstance(characteristic, Values) or characteristic.numeric:
            given = (characteristic.value(0), *characteristic.extra)
            whole = all(isinstance(each, int) for each in given)
            self.kind = pa.int64() if whole else pa.float64()
        elif characteristic.boolean:
            self.kind = pa.bool_()
        else:
            self.kind = pa.string()
            every = characteristic.decode(np.arange(characteristic.code_count)).tolist()
            texts = [None if value is None else plain_text(value) for value in every]
            self._texts = pa.array(texts, pa.string())

    def array(self, codes: NDArray[Any]) -> Any:
        """The values of these codes."""
        import pyarrow as pa

        if self._texts is not None:
            return self._texts.take(pa.array(codes))
        return pa.array(self._characteristic.decode(codes), self.kind)
