"""Given people: each distinct one is run once, and what was run is known for every set."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.memory import Memory, SortedOutputs
from themis.engine.sampler import CELLS, LEAST_ROWS, Sampler
from themis.inputs.assignments import Assignments
from themis.inputs.people import People
from themis.inputs.streams import ORDER, BaseInputs, Branch
from themis.results.model import Measure
from themis.results.notes import Ending
from themis.scores.question import ending_early
from themis.statistics.intervals import Flags
from themis.subjects.base import BudgetEndedError
from themis.subjects.decisions import NOT_RUN, Cells


class RowInputs(BaseInputs):
    """Given people as base inputs, in the order in which they are run."""

    def __init__(self, sampler: Sampler, codes: NDArray[Any]) -> None:
        super().__init__(sampler.population, sampler.seed, branch=(Branch.ROWS,))
        self.codes = codes

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        return self.codes[start:stop]


class PeopleRun:
    """Given people, their weights and answers; what was run once is known for every set."""

    def __init__(self, sampler: Sampler, people: People) -> None:
        self.sampler = sampler
        self.people = people
        rng = BaseInputs(sampler.population, sampler.seed).generator(ORDER, Branch.ROWS)
        self.order = rng.permutation(len(people))  # a run that ends early has seen a random part
        self.base = RowInputs(sampler, np.asfortranarray(people.codes[self.order]))
        self.weights = people.weights[self.order]
        self.counts, self.heads = people.counts[self.order], people.heads[self.order]
        dtype = sampler.runner.labels.dtype
        self.answers: Cells = np.full(len(people), NOT_RUN, dtype=dtype)
        self.memory = Memory(people.schema.given_keys, dtype)

    @property
    def codes(self) -> NDArray[Any]:
        """The people in the order in which they are run."""
        return self.base.codes

    @property
    def seen(self) -> int:
        """How many rows were run, copies included."""
        return int(self.counts[self.answers != NOT_RUN].sum())

    def known_answers(self) -> Cells:
        """The answers to these people as they are, whatever they were run for; else NOT_RUN."""
        answers = self.answers.copy()
        tables, keys = self.sampler.tables, self.memory.keys
        drawn = self.sampler.base.rows(0, tables.memory.reach)
        outputs = SortedOutputs(answers.dtype)
        outputs.add(keys.of(drawn), tables.known_outputs(drawn, 0))
        for known in (self.sampler.runner.known, lambda codes: outputs.look_up(keys.of(codes))):
            missing = answers == NOT_RUN
            answers[missing] = known(self.codes[missing])
        return answers

    def part(self, chosen: Flags) -> PeopleRun:
        """Only these people, with what is known of them; nothing further is run."""
        if chosen.all():
            return self
        other = copy.copy(self)
        other.base = RowInputs(self.sampler, self.codes[chosen])
        other.weights, other.answers = self.weights[chosen], self.answers[chosen]
        other.counts, other.heads = self.counts[chosen], self.heads[chosen]
        other.order = self.order[chosen]
        return other

    def run(
        self, assignments: Assignments, measure: Measure, look: Callable[[], None] | None = None
    ) -> Ending | None:
        """Run the people as they are; gives why that ended early, if it did.

        `look` is called when the first few have been run.
        """
        runner = self.sampler.runner
        missing = np.flatnonzero(self.answers == NOT_RUN)
        runner.ledger.remember(len(self.answers) - len(missing))
        done = 0
        try:
            with ending_early(keeps_interrupts=self.sampler.keep_on_interrupt) as early:
                while done < len(missing):
                    size = int(min(self.block_rows(1), runner.executions_left))
                    is_first = look is not None and not done
                    # A few people first: somebody looks whether their outputs make sense.
                    size = min(size, 50) if is_first else size
                    if size < 1 or runner.out_of_time:
                        return Ending.BUDGET
                    chosen = missing[done : done + size]
                    self.answers[chosen] = runner.run(self.codes[chosen])
                    done += len(chosen)
                    self.tell(assignments, measure, 1 - (len(missing) - done) / len(self.answers))
                    if look is not None and is_first:
                        look()
        finally:
            run = missing[:done]
            self.memory.add(self.memory.keys.of(self.codes[run]), self.answers[run])
        return early.ending

    def outputs(self, codes: NDArray[Any]) -> Cells:
        """The answers to other inputs; what is known is not run again.

        Raises BudgetEndedError where the budget ends.
        """
        runner, size = self.sampler.runner, self.block_rows(1)
        runner.ledger.remember(len(codes))

        def run(places: NDArray[np.int64]) -> Cells:
            runner.ledger.remember(-len(places))
            parts = [places[start : start + size] for start in range(0, len(places), size)]
            return np.concatenate([self._affordable(codes[part]) for part in parts])

        return self.memory.settle(self.memory.keys.of(codes), run)

    def _affordable(self, codes: NDArray[Any]) -> Cells:
        runner = self.sampler.runner
        if runner.executions_left < len(codes) or runner.out_of_time:
            raise BudgetEndedError
        return runner.run(codes)

    def block_rows(self, width: int) -> int:
        """How many rows of a table to run together, so that budgets and Ctrl-C are met soon."""
        runner = self.sampler.runner
        if runner.traits.external:
            return max(runner.batch_size // width, LEAST_ROWS)
        cells = CELLS if runner.traits.vectorised else runner.batch_size
        return max(cells // width, 1)

    def tell(self, assignments: Assignments, measure: Measure, share: float) -> None:
        """Report that this share of the rows is done."""
        rows = self.people.rows
        self.sampler.tell(measure, assignments, round(share * rows), rows)
