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
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

from themis.engine.answers import number_answers
from themis.engine.cache import Cache
from themis.inputs.characteristics import Characteristic, Values
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Subject
from themis.subjects.decisions import Cells
from themis.subjects.labels import Labels
from themis.subjects.texts import Column

KEY_BYTES, SEAL_BYTES = 16, 8
UNKNOWN = -1  # no decision
BYTES = 255  # up to so many decisions are packed as bytes, where it stands for UNKNOWN

Numbers: TypeAlias = NDArray[np.int32]  # places in a list of decisions, or UNKNOWN
Run: TypeAlias = Callable[[NDArray[Any]], Answers]
Record: TypeAlias = tuple[bytes, int, bytes]  # a key, how many decisions it holds, and their text


@dataclass(frozen=True)
class Decided:
    """The decisions on some inputs: the distinct ones as they first appear, and which is whose."""

    numbers: Numbers
    values: list[Any]


class Recalled(NamedTuple):
    """The cells of some inputs, and the answers behind those that were run."""

    cells: Cells
    answers: Answers


class Seals:
    """Seals what is stored for one subject, so that damage anywhere in the file is noticed.

    The seal depends on the subject and on the key as well: a record that a flipped bit gives to
    another subject or input is not whole either.
    """

    def __init__(self, fingerprint: str) -> None:
        self._subject = hashlib.blake2b(fingerprint.encode(), digest_size=KEY_BYTES).digest()

    def key(self, key: bytes) -> bytes:
        """A key that no other subject has."""
        return hashlib.blake2b(key, digest_size=KEY_BYTES, key=self._subject).digest()

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
        self._tested = subject
        self._by_input = subject.traits.record == "input"
        self._records = (InputRecords if self._by_input else BatchRecords)(subject.schema)
        fingerprint = subject.fingerprint() + layout
        self._seals = Seals(fingerprint)
        self._subject = cache.number_of(fingerprint, subject.kind)
        self.began_empty = not cache.holds(self._subject)

    def settle(self, codes: NDArray[Any], run: Run, labels: Labels, *, time: int = 0) -> Recalled:
        """The cells of these inputs; only those without a known decision are run, then stored.

        What is known of the first time (0) says nothing about the second (1), and so on. Of a run
        that is interrupted the answers are stored that had come in.
        """
        keys, known, damaged = self._find(codes, time)
        self.damaged += damaged
        missing = np.flatnonzero(known.numbers == UNKNOWN)
        if not len(missing):
            cells = labels.number([*map(labels.as_answer, known.values)])[known.numbers]
            return Recalled(cells, Answers(_outputs(known, labels) if (cells < 0).any() else []))
        if len(missing) < len(codes):
            # What is left to run of a batch may be nothing but the inputs on which a subject fails:
            # tell it that it has answered before.
            self._tested.note_answered()
        self._tested.unfinished = None
        try:
            answers = run(codes if len(missing) == len(codes) else codes[missing])
        except BaseException:
            if (unfinished := self._tested.unfinished) is not None:
                answered = Answers(list(unfinished.outputs), dict(unfinished.failures))
                answers = _merge(_outputs(known, labels), missing, answered)
                self._put(keys, known, _decided(answers, labels))
            raise
        if len(missing) < len(codes):
            answers = _merge(_outputs(known, labels), missing, answers)
        self._put(keys, known, _decided(answers, labels))
        return Recalled(number_answers(labels, answers), answers)

    def knows(self, codes: NDArray[Any]) -> NDArray[np.bool_]:
        """Which of these inputs have a decision of their own in the cache."""
        if not self._by_input or not len(codes):
            return np.zeros(len(codes), dtype=bool)
        known: NDArray[np.bool_] = self._find(codes, 0)[1].numbers != UNKNOWN
        return known

    def keep(self, codes: NDArray[Any], answers: Answers, labels: Labels) -> None:
        """Store answers that nobody has asked for yet, unless only whole batches are stored.

        They become durable with the next that were asked for, and not before those.
        """
        if self._by_input:
            keys, known, _ = self._find(codes, 0)
            self._put(keys, known, _decided(answers, labels), commit=False)

    def _find(self, codes: NDArray[Any], time: int) -> tuple[list[bytes], Decided, int]:
        """The keys of the records of these inputs, what is known, and how many are damaged."""
        salt = time.to_bytes(hashlib.blake2b.SALT_SIZE)
        keys = [self._seals.key(each) for each in self._records.keys(codes, salt)]
        stored = self.cache.find(keys)
        opened = {key: self._seals.open(key, stored[key]) for key in keys if key in stored}
        damaged = sum(key in opened and opened[key] is None for key in keys)
        known = self._records.read([opened.get(key) for key in keys], len(codes))
        return keys, known, damaged * len(codes) // max(len(keys), 1)

    def _put(
        self, keys: Sequence[bytes], known: Decided, decided: Decided, *, commit: bool = True
    ) -> None:
        if (decided.numbers != UNKNOWN).any():
            records = self._records.write(keys, known, decided)
            sealed = ((key, count, self._seals.close(key, text)) for key, count, text in records)
            self.cache.put(self._subject, sealed)
        if commit:
            self.cache.commit()


class InputRecords:
    """One record for each input, known by its names and values: other questions find it, too."""

    def __init__(self, schema: Schema) -> None:
        self._columns = [Column(each, _write) for each in schema]
        self._names = [_write(name) for name in schema.names]

    def keys(self, codes: NDArray[Any], salt: bytes) -> list[bytes]:
        """The key of each input; the order of its values counts: a subject may go by places."""
        texts = [column.texts(codes[:, place]) for place, column in enumerate(self._columns)]
        return [salt + _pairs(self._names, row) for row in zip(*texts, strict=True)]

    def read(self, texts: Sequence[bytes | None], count: int) -> Decided:
        """The decisions on so many inputs in the texts of their records."""
        return _numbered(texts)

    def write(self, keys: Sequence[bytes], known: Decided, decided: Decided) -> Iterable[Record]:
        """The records of what is decided, but for those of what was known."""
        texts = [_write(value) for value in decided.values]
        new = np.flatnonzero((known.numbers == UNKNOWN) & (decided.numbers != UNKNOWN)).tolist()
        return [(keys[place], 1, texts[decided.numbers[place]]) for place in new]


class BatchRecords:
    """One record for each batch, known by all of its inputs: small, quick, and only found whole."""

    def __init__(self, schema: Schema) -> None:
        self._dtypes = [np.min_scalar_type(count - 1) for count in schema.code_counts]
        self._domain = b"\n".join(map(_describe, schema))

    def keys(self, codes: NDArray[Any], salt: bytes) -> list[bytes]:
        """The key of all of them."""
        digest = hashlib.blake2b(self._domain, digest_size=KEY_BYTES, salt=salt)
        for column, dtype in enumerate(self._dtypes):  # as small as can be: half the time is here
            digest.update(np.ascontiguousarray(codes[:, column], dtype=dtype).data)
        return [digest.digest()]

    def read(self, texts: Sequence[bytes | None], count: int) -> Decided:
        """The decisions on so many inputs in the text of their record."""
        (text,) = texts
        if text is None:
            return Decided(np.full(count, UNKNOWN, dtype=np.int32), [])
        values, _, packed = zlib.decompress(text).partition(b"\n")
        if len(packed) == count:
            numbers = np.frombuffer(packed, dtype=np.uint8).astype(np.int32)
            numbers[numbers == BYTES] = UNKNOWN
        else:
            numbers = np.frombuffer(packed, dtype="<i4").astype(np.int32)
        return Decided(numbers, json.loads(values))

    def write(self, keys: Sequence[bytes], known: Decided, decided: Decided) -> Iterable[Record]:
        """A line of JSON, then a byte for each input, or four where there are many decisions."""
        numbers = decided.numbers
        packed = numbers.astype("<i4").tobytes()
        if len(decided.values) <= BYTES:
            packed = np.where(numbers == UNKNOWN, BYTES, numbers).astype(np.uint8).tobytes()
        text = zlib.compress(_write(decided.values) + b"\n" + packed, 1)
        return [(keys[0], int((numbers != UNKNOWN).sum()), text)]


def _numbered(texts: Iterable[Hashable]) -> Decided:
    """The values of these JSON texts, numbered as they first appear; None has no number."""
    places: dict[Any, int] = {None: UNKNOWN}
    numbers = [places.setdefault(text, len(places) - 1) for text in texts]
    values = [json.loads(text) for text in places if text is not None]
    return Decided(np.array(numbers, dtype=np.int32), values)


def _decided(answers: Answers, labels: Labels) -> Decided:
    """What is stored of each answer itself, whatever its label is.

    So other labels need no other executions. An answer that is no decision is kept as well.
    """
    texts: list[str | None] = [None] * len(answers.outputs)
    for place, output in enumerate(answers.outputs):
        if place not in answers.failures and (kept := labels.stored(output)) is not None:
            texts[place] = json.dumps(kept)  # tells 1, 1.0, True and "1" apart
    return _numbered(texts)


def _outputs(known: Decided, labels: Labels) -> list[Any]:
    """The answers, None where they are not known."""
    table = [*map(labels.as_answer, known.values), None]
    return [table[number] for number in known.numbers.tolist()]


def _merge(outputs: list[Any], missing: NDArray[np.int64], answers: Answers) -> Answers:
    """The known outputs and those that were missing, in the order of the inputs."""
    places = missing.tolist()
    for place, output in zip(places, answers.outputs, strict=True):
        outputs[place] = output
    return Answers(outputs, {places[at]: failure for at, failure in answers.failures.items()})


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
