"""Does a damaged cache ever change a result? A flipped bit is found and said, or does nothing."""

from __future__ import annotations

import json
import random
import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import themis
from tests.external import RACE, ran, write_command
from tests.projects import run
from themis.engine.cache import Cache, default_path, read_contents
from themis.engine.recall import Recall, Seals
from themis.engine.runner import Runner
from themis.errors import RequestError
from themis.subjects.base import Answers, Batch, CodesBatch, Subject, Traits
from themis.subjects.labels import Labels

SCHEMA = themis.Schema(race=["green", "purple"], age=themis.Integers(0, 99))
INPUTS = np.array([[race, age] for race in range(2) for age in range(100)], dtype=np.int32)
KINDS = {"command": "input", "worker": "batch"}


class Decider(Subject):
    """A subject whose decisions are kept as those of a command or of a worker."""

    schema = SCHEMA

    def __init__(self, kind: str, name: str, outputs: list[Any]) -> None:
        record: Any = KINDS[kind]
        self.kind, self.traits = kind, Traits(external=True, batch_size=50, record=record)
        self._name, self._outputs = name, outputs

    def fingerprint(self) -> str:
        return self._name

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self._run, codes)

    def _run(self, codes: NDArray[Any]) -> Answers:
        return Answers([self._outputs[(race + age) % 3] for race, age in codes.tolist()])


def measure(path: Path, kind: str, name: str, outputs: list[Any]) -> tuple[list[Any], Recall]:
    """The decisions of one subject on all inputs, and what its cache was found to be."""
    subject, cache, labels = Decider(kind, name, outputs), Cache(path), Labels()
    try:
        recall = Recall(cache, subject)
        runner = Runner(subject, labels, recall=recall)
        return [labels.labels[cell] for cell in runner.run(INPUTS).tolist()], recall
    finally:
        cache.close()


SUBJECTS: list[tuple[str, list[Any]]] = [("first", ["1", "0", "no"]), ("second", ["0", 1, "1"])]


def effect(path: Path, kind: str, expected: list[list[Any]]) -> str:
    damaged = 0
    try:
        for subject, decisions in zip(SUBJECTS, expected, strict=True):
            again, recall = measure(path, kind, *subject)
            assert [(type(each), each) for each in again] == [(type(e), e) for e in decisions]
            damaged += recall.damaged
        read_contents(path)
    except RequestError:
        return "refused"
    return "damaged" if damaged else "without effect"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_flipped_bits_never_change_a_decision(tmp_path: Path, kind: str) -> None:
    """One bit after the other, each in the whole file."""
    path, rng = tmp_path / "cache.sqlite", random.Random(28)
    expected = [measure(path, kind, *subject)[0] for subject in SUBJECTS]
    whole, effects = path.read_bytes(), []
    for place in rng.sample(range(len(whole)), 300):
        data = bytearray(whole)
        data[place] ^= 1 << rng.randrange(8)
        for old in tmp_path.iterdir():
            old.unlink()
        path.write_bytes(data)
        effects.append(effect(path, kind, expected))
    assert effects.count("damaged") > 1


def test_a_seal_belongs_to_its_subject_its_key_and_its_text() -> None:
    sealed = Seals("abc").close(b"key", b"text")
    assert Seals("abc").open(b"key", sealed) == b"text"
    assert Seals("abd").open(b"key", sealed) is None
    assert Seals("abc").open(b"kez", sealed) is None
    for place in range(len(sealed)):
        changed = bytearray(sealed)
        changed[place] ^= 1
        assert Seals("abc").open(b"key", bytes(changed)) is None
    odd: list[object] = [b"", sealed[:7], sealed[:-1], "text", 3, None, 0.5]
    assert [Seals("abc").open(b"key", each) for each in odd] == [None] * len(odd)


# Whole runs -------------------------------------------------------------------------------


def test_damage_is_said_and_only_what_was_lost_runs_again(tmp_path: Path) -> None:
    config = write_command(tmp_path, options="deterministic = true")
    arguments = ("score", str(config), *RACE, "--max-executions", "60", "--json")
    before = json.loads(run(*arguments).stdout)
    path = default_path(tmp_path)
    with closing(sqlite3.connect(path)) as connection, connection:  # "0" and "1" differ in one bit
        connection.execute(
            "UPDATE records SET sealed = substr(sealed, 1, 9) || X'31' || substr(sealed, 11) "
            "WHERE key IN (SELECT key FROM records WHERE substr(sealed, 10, 1) = X'30' LIMIT 3)"
        )
        connection.execute("UPDATE records SET sealed = CAST(sealed AS BLOB)")
    connection.close()
    done = run(*arguments)
    after = json.loads(done.stdout)
    said = (
        f"the cache {path} is damaged: the checksums of 3 decisions in it do not match, so those "
        "were not used but run again"
    )
    assert f"note: {said}\n" in done.stderr
    assert [note["code"] for note in after["timing"]["notes"]] == [
        *("cache-damaged", "cache-answered")
    ]
    assert (after["executions"], len(ran(tmp_path))) == (3, 63)
    assert [each["score"] for each in after["scores"]] == [e["score"] for e in before["scores"]]
    done = run(*arguments)
    assert done.stderr == ""  # it is whole again
    assert json.loads(done.stdout)["executions"] == 0
