"""Recall: what a cache knows of the inputs that one subject is to be run on.

Every record holds its decisions themselves; the labels of a run are numbered as they appear in the
run. So a run is the same, whatever the cache knew before. A record carries a seal: one whose bits
have changed, or that belongs to another subject or input, is counted as damaged and run again.

A subject may be run several times on one input. Each of these times has records of its own, so that
asking for more of them finds those that were made before.
"""

from __future__ import annotations

import hashlib
import json
import zlib
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.cache import Cache
from themis.engine.failures import number_answers
from themis.inputs.characteristics import Characteristic, Values
from themis.inputs.schema import Schema
from themis.subjects.answers import AnswerLabels
from themis.subjects.base import Answers, Subject
from themis.subjects.decisions import Cells, Labels
from themis.subjects.processes.texts import Column

KEY_BYTES = 16
SEAL_BYTES = 8
UNKNOWN = -1  # no decision
BYTES = 255  # up to so many decisions are packed as bytes, where it stands for UNKNOWN

Numbers: TypeAlias = NDArray[np.int32]  # places in a list of decisions, or UNKNOWN
Run: TypeAlias = Callable[[NDArray[Any]], Answers]


@dataclass(frozen=True)
class Decided:
    """The decisions on some inputs: the distinct ones as they first appear, and which is whose."""

    numbers: Numbers
    values: list[Any]

    @classmethod
    def nothing(cls, count: int) -> Decided:
        """No decision on so many inputs."""
        return cls(np.full(count, UNKNOWN, dtype=np.int32), [])


@dataclass(frozen=True)
class Found:
    """What is known of some inputs, and under which keys to store the rest."""

    known: Decided
    keys: Any  # as the records that gave it want them
    damaged: int = 0  # inputs whose records were there, and not whole

    @property
    def missing(self) -> NDArray[np.int64]:
        """The places of the inputs without a decision."""
        return np.flatnonzero(self.known.numbers == UNKNOWN)


@dataclass(frozen=True)
class Recalled:
    """The cells of some inputs, and the answers behind those that were run."""

    cells: Cells
    answers: Answers


class Records(Protocol):
    """How decisions are laid down: one by one, or in batches."""

    def find(self, subject: int, codes: NDArray[Any], time: int) -> Found:
        """What is known of these inputs when they are run for the time-th time, from 0 on."""

    def put(self, subject: int, found: Found, decided: Decided) -> None:
        """Store these decisions under the keys of what was found."""


class Seals:
    """Seals what is stored for one subject, so that damage anywhere in the file is noticed.

    The seal depends on the subject and on the key as well: a record that a flipped bit gives to
    another subject or input is not whole either.
    """

    def __init__(self, fingerprint: str) -> None:
        self._subject = hashlib.blake2b(fingerprint.encode(), digest_size=KEY_BYTES).digest()

    def close(self, key: bytes, text: bytes) -> bytes:
        """The text with its seal in front."""
        return self._seal(key, text) + text

    def open(self, key: bytes, sealed: object) -> bytes | None:
        """The text that was sealed under this key; None where it is damaged."""
        if not isinstance(sealed, bytes):
            return None
        text = sealed[SEAL_BYTES:]
        return text if sealed[:SEAL_BYTES] == self._seal(key, text) else None

    def _seal(self, key: bytes, text: bytes) -> bytes:
        return hashlib.blake2b(key + text, digest_size=SEAL_BYTES, key=self._subject).digest()


class Recall:
    """The decisions of one subject in a cache; counts the inputs whose records were damaged."""

    def __init__(self, cache: Cache, subject: Subject, layout: str = "") -> None:
        self.cache = cache
        self.damaged = 0
        self._fingerprint = subject.fingerprint() + layout
        self._tested = subject
        self._by_input = subject.traits.record == "input"
        kind = InputRecords if self._by_input else BatchRecords
        self._records: Records = kind(cache, subject.schema, Seals(self._fingerprint))
        self._subject = cache.number_of(self._fingerprint, subject.kind)

    def settle(
        self, codes: NDArray[Any], run: Run, labels: Labels | AnswerLabels, *, time: int = 0
    ) -> Recalled:
        """The cells of these inputs; only those without a known decision are run, then stored.

        What is known of the first time (0) says nothing about the second (1), and so on. Of a run
        that is interrupted the answers are stored that had come in.
        """
        found = self._find(codes, time)
        self.damaged += found.damaged
        missing = found.missing
        if not len(missing):
            cells = labels.number_stored(found.known.values)[found.known.numbers]
            answers = Answers(_outputs(found.known, labels) if (cells < 0).any() else [])
            return Recalled(cells, answers)
        if len(missing) < len(codes):
            # What is left to run of a batch may be nothing but the inputs on which a subject fails:
            # tell it that it has answered before.
            self._tested.note_answered()
        self._tested.unfinished = None
        try:
            run_now = run(codes if len(missing) == len(codes) else codes[missing])
        except BaseException:
            if (unfinished := self._tested.unfinished) is not None:
                answered = Answers(list(unfinished.outputs), dict(unfinished.failures))
                answers = _merge(_outputs(found.known, labels), missing, answered)
                self._put(codes, time, found, _decided_answers(answers, labels))
            raise
        answers = run_now
        if len(missing) < len(codes):
            answers = _merge(_outputs(found.known, labels), missing, run_now)
        cells = number_answers(labels, answers)
        decided = _decided_answers if labels.keeps_answers else partial(_decided_cells, cells)
        self._put(codes, time, found, decided(answers, labels))
        return Recalled(cells, answers)

    def knows(self, codes: NDArray[Any], *, time: int = 0) -> NDArray[np.bool_]:
        """Which of these inputs have a decision of their own in the cache."""
        if not self._by_input or not len(codes):
            return np.zeros(len(codes), dtype=bool)
        known: NDArray[np.bool_] = self._find(codes, time).known.numbers != UNKNOWN
        return known

    def keep(
        self, codes: NDArray[Any], answers: Answers, labels: Labels | AnswerLabels, *, time: int = 0
    ) -> None:
        """Store answers that nobody has asked for yet, unless only whole batches are stored."""
        if self._by_input:
            self._put(codes, time, self._find(codes, time), _decided_answers(answers, labels))

    def _find(self, codes: NDArray[Any], time: int) -> Found:
        if self._subject is None:
            self._subject = self.cache.number_of(self._fingerprint, self._tested.kind)
        if self._subject is None:
            return Found(Decided.nothing(len(codes)), None)
        return self._records.find(self._subject, codes, time)

    def _put(self, codes: NDArray[Any], time: int, found: Found, decided: Decided) -> None:
        """Store these decisions, if this process may."""
        if not self.cache.may_write():
            return
        if found.keys is None:
            found = self._find(codes, time)
        assert self._subject is not None
        if (decided.numbers != UNKNOWN).any():
            self._records.put(self._subject, found, decided)
            self.cache.commit()


class InputRecords:
    """One record for each input, known by its names and values: other questions find it, too."""

    def __init__(self, cache: Cache, schema: Schema, seals: Seals) -> None:
        self._cache, self._seals = cache, seals
        self._columns = [Column(each, _write) for each in schema]
        self._names = [_write(name) for name in schema.names]

    def find(self, subject: int, codes: NDArray[Any], time: int) -> Found:
        keys = self._keys(codes, time)
        stored = self._cache.find_inputs(subject, keys)
        texts = {key: self._seals.open(key, stored[key]) for key in keys if key in stored}
        known = _numbered([texts.get(key) for key in keys])
        damaged = sum(key in texts and texts[key] is None for key in keys)
        return Found(Decided(known.numbers, [*map(json.loads, known.values)]), keys, damaged)

    def put(self, subject: int, found: Found, decided: Decided) -> None:
        texts = [_write(value) for value in decided.values]
        new = np.flatnonzero((found.known.numbers == UNKNOWN) & (decided.numbers != UNKNOWN))
        pairs = [(found.keys[place], texts[decided.numbers[place]]) for place in new.tolist()]
        self._cache.put_inputs(subject, [(key, self._seals.close(key, t)) for key, t in pairs])

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

    def __init__(self, cache: Cache, schema: Schema, seals: Seals) -> None:
        self._cache, self._seals = cache, seals
        self._dtypes = [np.min_scalar_type(count - 1) for count in schema.code_counts]
        self._domain = b"\n".join(map(_describe, schema))

    def find(self, subject: int, codes: NDArray[Any], time: int) -> Found:
        key = self._key(codes, time)
        sealed = self._cache.find_batch(subject, key)
        text = self._seals.open(key, sealed)
        if text is None:
            damaged = 0 if sealed is None else len(codes)
            return Found(Decided.nothing(len(codes)), key, damaged)
        return Found(_unpack(text, len(codes)), key)

    def put(self, subject: int, found: Found, decided: Decided) -> None:
        count = int((decided.numbers != UNKNOWN).sum())
        sealed = self._seals.close(found.keys, _pack(decided))
        self._cache.put_batch(subject, found.keys, count, sealed)

    def _key(self, codes: NDArray[Any], time: int) -> bytes:
        digest = hashlib.blake2b(self._domain, digest_size=KEY_BYTES, salt=_salt(time))
        for column, dtype in enumerate(self._dtypes):  # as small as can be: half the time is here
            digest.update(np.ascontiguousarray(codes[:, column], dtype=dtype).data)
        return digest.digest()


def _numbered(texts: Iterable[Hashable]) -> Decided:
    """These texts, numbered as they first appear; None has no number."""
    places: dict[Any, int] = {None: UNKNOWN}
    numbers = [places.setdefault(text, len(places) - 1) for text in texts]
    return Decided(np.array(numbers, dtype=np.int32), list(places)[1:])


def _decided_answers(answers: Answers, labels: Labels | AnswerLabels) -> Decided:
    """What is stored of each answer itself, whatever its label is.

    So other labels need no other executions. An answer that is no decision is kept as well.
    """
    texts: list[str | None] = [None] * len(answers.outputs)
    for place, output in enumerate(answers.outputs):
        if place not in answers.failures and (kept := labels.stored(output)) is not None:
            texts[place] = json.dumps(kept)  # tells 1, 1.0, True and "1" apart
    known = _numbered(texts)
    return Decided(known.numbers, [*map(json.loads, known.values)])


def _decided_cells(cells: Cells, _: Answers, labels: Labels | AnswerLabels) -> Decided:
    """The decisions in cells; those below 0 hold none."""
    present, first = np.unique(cells, return_index=True)
    present = present[np.argsort(first)]
    present = present[present >= 0]
    values = labels.labels
    table = np.full(len(values) + 3, UNKNOWN, dtype=np.int32)
    table[present] = np.arange(len(present))
    return Decided(table[cells], [values[number] for number in present.tolist()])


def _outputs(known: Decided, labels: Labels | AnswerLabels) -> list[Any]:
    """The answers, None where they are not known."""
    table = [*map(labels.as_answer, known.values), None]
    return [table[number] for number in known.numbers.tolist()]


def _merge(outputs: list[Any], missing: NDArray[np.int64], answers: Answers) -> Answers:
    """The known outputs and those that were missing, in the order of the inputs."""
    places = missing.tolist()
    for place, output in zip(places, answers.outputs, strict=True):
        outputs[place] = output
    return Answers(outputs, {places[at]: failure for at, failure in answers.failures.items()})


def _pack(decided: Decided) -> bytes:
    """The decisions as a line of JSON, then a byte for each input, or four where there are many."""
    numbers = decided.numbers
    if len(decided.values) <= BYTES:
        packed = np.where(numbers == UNKNOWN, BYTES, numbers).astype(np.uint8).tobytes()
    else:
        packed = numbers.astype("<i4").tobytes()
    return zlib.compress(_write(decided.values) + b"\n" + packed, 1)


def _unpack(text: bytes, count: int) -> Decided:
    values, _, packed = zlib.decompress(text).partition(b"\n")
    if len(packed) == count:
        numbers = np.frombuffer(packed, dtype=np.uint8).astype(np.int32)
        numbers[numbers == BYTES] = UNKNOWN
    else:
        numbers = np.frombuffer(packed, dtype="<i4").astype(np.int32)
    return Decided(numbers, json.loads(values))


def _salt(time: int) -> bytes:
    """What makes the keys of each time different; those of the first have none."""
    return time.to_bytes(hashlib.blake2b.SALT_SIZE)


def _write(value: Any) -> bytes:
    return json.dumps(value).encode()


def _pairs(names: list[bytes], texts: tuple[bytes, ...]) -> bytes:
    return b"\n".join([part for pair in zip(names, texts, strict=True) for part in pair])


def _describe(each: Characteristic) -> bytes:
    """What the codes of a characteristic mean; bins, weights and protection change nothing."""
    behind = [*([None] if each.missing is not None else []), *each.extra]
    if isinstance(each, Values):
        return json.dumps([each.name, [*each.values, *behind]]).encode()
    ends = [each.value(0), each.value(each.size - 1)]
    return json.dumps([each.name, each.size, *ends, *behind]).encode()
