"""Subjects that run so many inputs at the same time, in this process: they note what they got."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis import Audit, Integers, Schema
from themis.subjects.base import Answers, Batch, CodesBatch, Subject, Traits
from themis.subjects.decisions import CRASH, Failure

SCHEMA = Schema(
    sex=["f", "m"],
    race=["a", "b", "c", "d"],
    region=["n", "s", "e", "w", "x", "y"],
    age=Integers(18, 90),
    income=Integers(0, 200_000),
    savings=Integers(0, 1_000_000),
)


def decide(person: dict[str, Any]) -> int:
    """A rule with a plain effect of race, and one of sex and region together."""
    limit = 60_000 + 8_000 * (person["race"] == "a")
    limit += 60_000 * (person["race"] == "b" and person["region"] == "n")
    limit += 30_000 * (person["sex"] == "f" and person["region"] in "se")
    return int(person["income"] > limit)


class Slotted(Subject):
    """A function that is run like a service; a round runs one input in each slot.

    With `stop_at` it is interrupted once it has answered so many inputs.
    """

    kind = "slotted"

    def __init__(
        self,
        slots: int,
        decide: Callable[[dict[str, Any]], Any] = decide,
        schema: Schema = SCHEMA,
        stop_at: int | None = None,
    ) -> None:
        self.schema, self.slots, self.stop_at = schema, slots, stop_at
        self.traits = Traits(external=True, batch_size=16 * slots, slots=slots)
        self.batches: list[NDArray[Any]] = []
        self.answered: list[tuple[int, ...]] = []  # inputs, in the order in which they were run
        self.watch: Callable[[], None] = lambda: None  # is called before each batch
        self._decide = decide

    @property
    def rounds(self) -> int:
        """How many rounds all batches took."""
        return sum(-(-len(batch) // self.slots) for batch in self.batches)

    def load(self, codes: NDArray[Any]) -> Batch:
        return CodesBatch(self.run, codes)

    def fingerprint(self) -> str:
        return "slotted"

    def run(self, codes: NDArray[Any]) -> Answers:
        self.watch()
        self.batches.append(np.array(codes))
        answers = self.begin(len(codes))
        for place, row in enumerate(codes):
            if len(self.answered) == self.stop_at:
                raise KeyboardInterrupt
            try:
                answers.outputs[place] = self._decide(self.schema.decode_row(row))
            except ValueError as error:
                answers.failures[place] = Failure(CRASH, str(error))
            self.answered.append(tuple(row.tolist()))
        return self.finish(answers)


def audit(subject: Slotted, **options: Any) -> Audit:
    """An audit of it."""
    return Audit(subject, subject.schema, seed=options.pop("seed", 1), **options)


def busy(subject: Slotted, executions: int) -> float:
    """The share of all slots in all rounds that ran what was asked for."""
    return executions / (subject.slots * subject.rounds)
