"""Does a new kind of subject, written as ARCHITECTURE.md says, get all that the engine offers?"""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from numpy.typing import NDArray

import themis
from themis.inputs.characteristics import Value
from themis.inputs.schema import Schema
from themis.subjects.base import Answers, Batch, CodesBatch, Subject, Traits
from themis.subjects.decisions import CRASH, Failure

SCHEMA = Schema(race=["green", "purple"], savings=range(100), age=range(18, 80))
PROGRAM = """
import sys
for line in sys.stdin:
    race, savings, age = line.split()
    print(int(int(savings) > (50 if race == "green" else 60)), flush=True)
"""


class Abacus(Subject):
    """A process that is told numbers; it has no opinion on people of a certain age."""

    kind = "abacus"

    def __init__(self, *, broken_at: int | None = None, **traits: Any) -> None:
        self.schema, self._broken_at = SCHEMA, broken_at
        self.traits = Traits(external=True, **traits)
        self.process: subprocess.Popen[str] | None = None
        self.batches: list[int] = []

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self.run, codes)

    def fingerprint(self) -> str:
        return f"abacus without {self._broken_at}"

    def run(self, codes: NDArray[Any]) -> Answers:
        self.batches.append(len(codes))
        rows = [self.schema.decode_row(each) for each in codes]
        failed = [place for place, row in enumerate(rows) if row["age"] == self._broken_at]
        failures = {place: Failure(CRASH, "too old") for place in failed}
        return Answers([self._ask(row) for row in rows], failures)

    def reproduce(self, row: Mapping[str, Value]) -> str:
        return f"echo {_line(row)} | {shlex.join([sys.executable, '-c', PROGRAM])}"

    def close(self) -> None:
        if self.process is not None:
            self.process.communicate()
            self.process = None

    def _ask(self, row: Mapping[str, Value]) -> str:
        if self.process is None:
            command, pipe = [sys.executable, "-c", PROGRAM], subprocess.PIPE
            self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True)
        print(_line(row), file=self.process.stdin, flush=True)
        assert self.process.stdout is not None
        return self.process.stdout.readline().strip()


def _line(row: Mapping[str, Value]) -> str:
    return f"{row['race']} {row['savings']} {row['age']}"


def audit(subject: Abacus, cache: Path, **options: Any) -> themis.Audit:
    return themis.Audit(subject, SCHEMA, cache=cache, error=0.1, seed=3, **options)


@pytest.mark.parametrize("record", ["input", "batch"])
def test_new_kind_is_cached_and_closed_with_its_audit(
    tmp_path: Path, record: Literal["input", "batch"]
) -> None:
    first, second = (Abacus(record=record) for _ in range(2))
    with audit(first, tmp_path / "c.sqlite") as measured:
        before = measured.causal("race")
        assert not measured.apparatus.cache_notes
        process = first.process
        assert process is not None
        assert process.poll() is None
    assert process.poll() == 0
    with audit(second, tmp_path / "c.sqlite") as measured:
        after = measured.causal("race")
    assert sum(first.batches) >= before.executions > 100
    assert (after.executions, second.batches, second.process) == (0, [], None)
    assert after.score == before.score > 0


def test_new_kind_is_run_in_batches_of_its_size(tmp_path: Path) -> None:
    with audit(few := Abacus(batch_size=30), tmp_path / "few.sqlite") as measured:
        small = measured.score([["race"]], ["causal"])
    with audit(many := Abacus(batch_size=30, jobs=20), tmp_path / "m.sqlite") as measured:
        large = measured.score([["race"]], ["causal"])
    assert max(few.batches) == 30
    assert max(many.batches) == 40  # two for each job
    assert small.timing["executor"] == "requests"
    assert large.timing["executor"] == "processes:20"
    assert small.scores[0].score == large.scores[0].score


def test_new_kind_shows_how_to_see_its_witnesses_and_failures(tmp_path: Path) -> None:
    subject = Abacus(broken_at=70)
    with audit(subject, tmp_path / "c.sqlite", max_failures=0.1) as measured:
        result = measured.score([["race"]], ["causal"])
    score = result.scores[0]
    assert isinstance(score, themis.CausalScore)
    witness = score.witnesses[0]
    printed = [_in_a_shell(line) for line in witness.reproduce]
    assert printed == list(map(str, witness.outputs))
    assert len(set(printed)) == 2
    assert result.failures[CRASH]["input"]["age"] == 70
    assert _in_a_shell(result.failures[CRASH]["reproduce"]) in ("0", "1")


def test_subject_without_traits_runs_inside_the_process(tmp_path: Path) -> None:
    class Coin(Subject):
        kind = "coin"
        schema = SCHEMA

        def load(self, codes: NDArray[Any]) -> Batch:
            return CodesBatch(lambda given: Answers(np.ones(len(given), dtype=int)), codes)

        def fingerprint(self) -> str:
            return "coin"

    with themis.Audit(Coin(), SCHEMA, cache=tmp_path / "c.sqlite") as measured:
        result = measured.score([["race"]], ["causal"])
        assert "code within this process" in str(measured.apparatus.cache_notes[0])
    assert result.timing["executor"] == "in process"
    assert result.subject["kind"] == "coin"


def _in_a_shell(line: str) -> str:
    done = subprocess.run(line, shell=True, capture_output=True, text=True, check=True)
    return done.stdout.strip()
