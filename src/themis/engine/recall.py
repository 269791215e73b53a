"""Recall: what a cache knows of the inputs that one subject is to be run on.

The labels of a cache have numbers of their own, given as they first appeared in it; those of a run
are given as they appear in the run. So a run is the same, whatever the cache knew before.

A subject may be run several times on one input. Each of these times has records of its own, so that
asking for more of them finds those that were made before.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.cache import Cache
from themis.engine.failures import number_answers
from themis.inputs.characteristics import Characteristic, Value, Values
from themis.inputs.schema import Schema
from themis.subjects.answers import AnswerLabels
from themis.subjects.base import Answers, Subject
from themis.subjects.decisions import Cells, Labels
from themis.subjects.processes.texts import Column

KEY_BYTES = 16
UNKNOWN = -1  # no decision
BYTES = 255  # label numbers below this are packed as bytes, where it stands for UNKNOWN

Numbers: TypeAlias = NDArray[np.int32]  # label numbers of the cache, or UNKNOWN
Run: TypeAlias = Callable[[NDArray[Any]], Answers]


@dataclass(frozen=True)
class Found:
    """What is known of some inputs, and under which keys to store the rest."""

    numbers: Numbers
    keys: Any  # as the records that gave it want them


@dataclass(frozen=True)
class Recalled:
    """The cells of some inputs, and the answers behind those that were run."""

    cells: Cells
    answers: Answers


class Records(Protocol):
    """How decisions are laid down: one by one, or in batches."""

    def find(self, subject: int, codes: NDArray[Any], time: int) -> Found:
        """What is known of these inputs when they are run for the time-th time, from 0 on."""

    def put(self, subject: int, found: Found, numbers: Numbers) -> None:
        """Store these decisions under the keys of what was found."""


class Recall:
    """The decisions of one subject in a cache."""

    def __init__(self, cache: Cache, subject: Subject, layout: str = "") -> None:
        self.cache = cache
        self._fingerprint, self._kind = subject.fingerprint() + layout, subject.kind
        # What is left to run of a batch may be nothing but the inputs on which a subject fails:
        # tell it that it has answered before.
        self._note_answered = subject.note_answered
        kind = InputRecords if subject.traits.record == "input" else BatchRecords
        self._records: Records = kind(cache, subject.schema)
        self._subject = cache.number_of(self._fingerprint, self._kind)
        self._labels: list[Value] = []
        self._places: dict[str, int] = {}
        self._refresh()

    def settle(
        self, codes: NDArray[Any], run: Run, labels: Labels | AnswerLabels, *, time: int = 0
    ) -> Recalled:
        """The cells of these inputs; only those without a known decision are run, then stored.

        What is known of the first time (0) says nothing about the second (1), and so on.
        """
        found = self._find(codes, time)
        missing = np.flatnonzero(found.numbers == UNKNOWN)
        if not len(missing):
            cells = self._cells(found.numbers, labels)
            answers = Answers(self._outputs(found.numbers, labels) if (cells < 0).any() else [])
            return Recalled(cells, answers)
        if len(missing) == len(codes):
            answers = run(codes)
        else:
            self._note_answered()
            answers = _merge(self._outputs(found.numbers, labels), missing, run(codes[missing]))
        cells = number_answers(labels, answers)
        self._put(codes, time, found, cells, answers, labels)
        return Recalled(cells, answers)

    def _find(self, codes: NDArray[Any], time: int) -> Found:
        if self._subject is None:
            self._refresh()
        if self._subject is None:
            return Found(np.full(len(codes), UNKNOWN, dtype=np.int32), None)
        found = self._records.find(self._subject, codes, time)
        known = found.numbers[found.numbers != UNKNOWN]
        if len(known) and int(known.max()) >= len(self._labels):
            self._refresh()  # another process has met new ones
        return found

    def _cells(self, numbers: Numbers, labels: Labels | AnswerLabels) -> Cells:
        """The label numbers of a run for inputs that are all known."""
        present, first = np.unique(numbers, return_index=True)
        order = present[np.argsort(first)]
        table = np.zeros(len(self._labels), dtype=labels.dtype)
        table[order] = labels.number_stored([self._labels[number] for number in order.tolist()])
        cells: Cells = table[numbers]
        return cells

    def _outputs(self, numbers: Numbers, labels: Labels | AnswerLabels) -> list[Any]:
        """The answers, None where they are not known."""
        table = [*map(labels.as_answer, self._labels), None]
        return [table[number] for number in numbers.tolist()]

    def _put(
        self,
        codes: NDArray[Any],
        time: int,
        found: Found,
        cells: Cells,
        answers: Answers,
        labels: Labels | AnswerLabels,
    ) -> None:
        """Store the decisions among these cells, if this process may."""
        if not self.cache.may_write():
            return
        if self._subject is None or found.keys is None:
            self._refresh()
            assert self._subject is not None
            found = self._records.find(self._subject, codes, time)
        if labels.keeps_answers:
            numbers = self._answer_numbers(answers, labels)
        else:
            numbers = self._table(labels)[cells]
        if (numbers != UNKNOWN).any():
            self._records.put(self._subject, found, numbers)
            self.cache.commit()

    def _answer_numbers(self, answers: Answers, labels: Labels | AnswerLabels) -> Numbers:
        """The cache's number of each answer itself, whatever its label is; new ones are stored.

        So other labels need no other executions. An answer that is no decision is kept as well.
        """
        numbers = np.full(len(answers.outputs), UNKNOWN, dtype=np.int32)
        for place, output in enumerate(answers.outputs):
            if place not in answers.failures and (kept := labels.stored(output)) is not None:
                numbers[place] = self._place(kept)
        return numbers

    def _table(self, labels: Labels | AnswerLabels) -> Numbers:
        """For each label number of a run the cache's; new ones are stored."""
        assert self._subject is not None
        known = labels.labels
        table = np.full(len(known) + 3, UNKNOWN, dtype=np.int32)  # cells without one are below 0
        for number, label in enumerate(known):
            table[number] = self._place(label)
        return table

    def _place(self, label: Value) -> int:
        """The cache's number of a label; a new one is stored."""
        assert self._subject is not None
        if len(self._places) < len(self._labels):
            self._places = {_key(each): place for place, each in enumerate(self._labels)}
        key = _key(label)
        if key not in self._places:
            self._places[key] = len(self._labels)
            self.cache.add_label(self._subject, len(self._labels), label)
            self._labels.append(label)
        return self._places[key]

    def _refresh(self) -> None:
        if self._subject is None:
            self._subject = self.cache.number_of(self._fingerprint, self._kind)
        if self._subject is not None:
            self._labels = self.cache.labels(self._subject)
            self._places = {}


class InputRecords:
    """One record for each input, known by its names and values: other questions find it, too."""

    def __init__(self, cache: Cache, schema: Schema) -> None:
        self._cache = cache
        self._columns = [Column(each, _write) for each in schema]
        self._names = [_write(name) for name in schema.names]

    def find(self, subject: int, codes: NDArray[Any], time: int) -> Found:
        keys = self._keys(codes, time)
        known = self._cache.find_inputs(subject, keys)
        numbers = np.array([known.get(key, UNKNOWN) for key in keys], dtype=np.int32)
        return Found(numbers, keys)

    def put(self, subject: int, found: Found, numbers: Numbers) -> None:
        new = np.flatnonzero((found.numbers == UNKNOWN) & (numbers != UNKNOWN)).tolist()
        self._cache.put_inputs(subject, [(found.keys[place], int(numbers[place])) for place in new])

    def _keys(self, codes: NDArray[Any], time: int) -> list[bytes]:
        """The key of each input; the order of its values counts: a subject may go by places."""
        texts = [column.texts(codes[:, place]) for place, column in enumerate(self._columns)]
        salt = _salt(time)
        return [
            hashlib.blake2b(_pairs(self._names, row), digest_size=KEY_BYTES, salt=salt).digest()
            for row in zip(*texts, strict=True)
        ]


class BatchRecords:
    """One record for each batch, known by all of its inputs: small, quick, and only found whole."""

    def __init__(self, cache: Cache, schema: Schema) -> None:
        self._cache = cache
        self._dtypes = [np.min_scalar_type(each.size - 1) for each in schema]
        self._domain = b"\n".join(map(_describe, schema))

    def find(self, subject: int, codes: NDArray[Any], time: int) -> Found:
        key = self._key(codes, time)
        packed = self._cache.find_batch(subject, key)
        if packed is None:
            return Found(np.full(len(codes), UNKNOWN, dtype=np.int32), key)
        return Found(_unpack(zlib.decompress(packed), len(codes)), key)

    def put(self, subject: int, found: Found, numbers: Numbers) -> None:
        packed = zlib.compress(_pack(numbers), 1)
        decided = int((numbers != UNKNOWN).sum())
        self._cache.put_batch(subject, found.keys, decided, packed)

    def _key(self, codes: NDArray[Any], time: int) -> bytes:
        digest = hashlib.blake2b(self._domain, digest_size=KEY_BYTES, salt=_salt(time))
        for column, dtype in enumerate(self._dtypes):  # as small as can be: half the time is here
            digest.update(np.ascontiguousarray(codes[:, column], dtype=dtype).data)
        return digest.digest()


def _merge(outputs: list[Any], missing: NDArray[np.int64], answers: Answers) -> Answers:
    """The known outputs and those that were missing, in the order of the inputs."""
    places = missing.tolist()
    for place, output in zip(places, answers.outputs, strict=True):
        outputs[place] = output
    return Answers(outputs, {places[at]: failure for at, failure in answers.failures.items()})


def _pack(numbers: Numbers) -> bytes:
    """Label numbers as bytes, or as four bytes each where there are many labels."""
    if int(numbers.max()) < BYTES:
        return np.where(numbers == UNKNOWN, BYTES, numbers).astype(np.uint8).tobytes()
    return numbers.astype("<i4").tobytes()


def _unpack(packed: bytes, count: int) -> Numbers:
    if len(packed) == count:
        numbers = np.frombuffer(packed, dtype=np.uint8).astype(np.int32)
        numbers[numbers == BYTES] = UNKNOWN
        return numbers
    assert len(packed) == 4 * count
    return np.frombuffer(packed, dtype="<i4").astype(np.int32)


def _key(label: Any) -> str:
    """What tells labels apart: 1, 1.0, True and "1" are four of them."""
    return json.dumps(label)


def _salt(time: int) -> bytes:
    """What makes the keys of each time different; those of the first have none."""
    return time.to_bytes(hashlib.blake2b.SALT_SIZE)


def _write(value: Value) -> bytes:
    return json.dumps(value).encode()


def _pairs(names: list[bytes], texts: tuple[bytes, ...]) -> bytes:
    return b"\n".join([part for pair in zip(names, texts, strict=True) for part in pair])


def _describe(each: Characteristic) -> bytes:
    """What the codes of a characteristic mean; bins, weights and protection change nothing."""
    if isinstance(each, Values):
        return json.dumps([each.name, each.values]).encode()
    ends = [each.value(0), each.value(each.size - 1)]
    return json.dumps([each.name, each.size, *ends]).encode()
