"""A run on given people: each distinct one is executed once, in an order of its own."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from themis.engine.sampler import CELLS, LEAST_ROWS, Sampler
from themis.engine.tables_known import KnownOutputs
from themis.inputs.assignments import Assignments
from themis.inputs.people import People
from themis.inputs.streams import ORDER, BaseInputs
from themis.results.model import Measure
from themis.subjects.decisions import NOT_RUN, Cells

ROWS_BRANCH = 3_000  # members drawn for given people are apart from those of the common stream


class RowInputs(BaseInputs):
    """Given people as base inputs, in the order in which they are run."""

    def __init__(self, sampler: Sampler, codes: NDArray[Any]) -> None:
        super().__init__(sampler.population, sampler.seed, branch=(ROWS_BRANCH,))
        self.codes = codes

    def rows(self, start: int, stop: int) -> NDArray[Any]:
        return self.codes[start:stop]


class PeopleRun:
    """Given people, their weights and answers; what was run once is known for every set."""

    def __init__(self, sampler: Sampler, people: People) -> None:
        self.sampler = sampler
        self.people = people
        rng = BaseInputs(sampler.population, sampler.seed).generator(ORDER, ROWS_BRANCH)
        order = rng.permutation(len(people))  # a run that ends early has seen a random part
        self.base = RowInputs(sampler, np.asfortranarray(people.codes[order]))
        self.weights = people.weights[order]
        self.counts, self.heads = people.counts[order], people.heads[order]
        dtype = sampler.runner.labels.dtype
        self.answers: Cells = np.full(len(people), NOT_RUN, dtype=dtype)
        self.known = KnownOutputs(people.schema, dtype)

    @property
    def codes(self) -> NDArray[Any]:
        """The people in the order in which they are run."""
        return self.base.codes

    @property
    def seen(self) -> int:
        """How many rows were run, copies included."""
        return int(self.counts[self.answers != NOT_RUN].sum())

    def run(self, assignments: Assignments, measure: Measure) -> str:
        """Run the people as they are; gives why that ended early, or an empty text."""
        runner = self.sampler.runner
        missing = np.flatnonzero(self.answers == NOT_RUN)
        runner.cache_hits += len(self.answers) - len(missing)
        done = 0
        try:
            while done < len(missing):
                size = int(min(self.block_rows(1), runner.executions_left))
                if size < 1 or runner.out_of_time:
                    return "budget"
                chosen = missing[done : done + size]
                self.answers[chosen] = runner.run(self.codes[chosen])
                done += len(chosen)
                self.tell(assignments, measure, 1 - (len(missing) - done) / len(self.answers))
        except KeyboardInterrupt:
            if not self.sampler.keep_on_interrupt:
                raise
            return "interrupted"
        finally:
            run = missing[:done]
            self.known.add(self.known.keys(self.codes[run]), self.answers[run])
        return ""

    def block_rows(self, width: int) -> int:
        """How many rows of a table to run together, so that budgets and Ctrl-C are met soon."""
        runner = self.sampler.runner
        if runner.is_external:
            return max(runner.batch_size // width, LEAST_ROWS)
        cells = CELLS if runner.subject.vectorised else runner.batch_size
        return max(cells // width, 1)

    def tell(self, assignments: Assignments, measure: Measure, share: float) -> None:
        """Report that this share of the rows is done."""
        rows = self.people.rows
        self.sampler.tell(measure, assignments, round(share * rows), rows, lambda: (0.0, 1.0))
